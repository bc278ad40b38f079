//! Buckets: whose state it is, and where it applies. The names of plugins, projects and sessions come from the host.

use std::path::PathBuf;

/// The keys and values of one plugin in one scope. Buckets share nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Bucket {
    /// The plugin's id in the host.
    pub plugin: String,
    /// Where the state applies.
    pub scope: Scope,
}

/// Where the state of a plugin applies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Everywhere this user runs the plugin.
    User,
    /// In one project, which is its folder. Links are not followed: the host gives the real path.
    Project(PathBuf),
    /// In one session, until the host ends it.
    Session(String),
}

impl Bucket {
    /// The bucket of a plugin in this scope.
    pub fn new(plugin: impl Into<String>, scope: Scope) -> Self {
        Self { plugin: plugin.into(), scope }
    }

    /// The bucket of a plugin for everything its user does.
    pub fn user(plugin: impl Into<String>) -> Self {
        Self { plugin: plugin.into(), scope: Scope::User }
    }

    /// The bucket of a plugin in the project in this folder.
    pub fn project(plugin: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        Self { plugin: plugin.into(), scope: Scope::Project(folder.into()) }
    }

    /// The bucket of a plugin in one session.
    pub fn session(plugin: impl Into<String>, session: impl Into<String>) -> Self {
        Self { plugin: plugin.into(), scope: Scope::Session(session.into()) }
    }
}

impl Scope {
    /// The two columns in which a store holds a scope: its kind, and its name. They are apart, so that no name can imitate
    /// another kind of scope.
    #[must_use]
    pub fn to_columns(&self) -> (&'static str, Vec<u8>) {
        match self {
            Self::User => ("user", Vec::new()),
            // `/a` and `/a/` are equal as paths, so they are one bucket.
            Self::Project(folder) => {
                let folder: PathBuf = folder.components().collect();
                ("project", folder.as_os_str().as_encoded_bytes().to_vec())
            }
            Self::Session(session) => ("session", session.clone().into_bytes()),
        }
    }

    /// Reads what [`Self::to_columns`] gives.
    #[must_use]
    pub fn from_columns(kind: &str, name: Vec<u8>) -> Option<Self> {
        match kind {
            "user" => Some(Self::User),
            "project" => Some(Self::Project(path_from_bytes(name))),
            "session" => String::from_utf8(name).ok().map(Self::Session),
            _ => None,
        }
    }
}

#[cfg(unix)]
fn path_from_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

/// Elsewhere a folder whose name is no Unicode has a bucket too, but is listed with another name.
#[cfg(not(unix))]
fn path_from_bytes(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
