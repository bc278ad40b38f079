//! What the host takes from the process and the machine it runs in. Nothing else here or in
//! `tenon-host` reads the environment or looks for a home folder.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// Environment and folders. An embedder may make them up.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HostEnvironment {
    /// The environment: `${VAR}` in configuration, and what child processes inherit of it.
    pub environment: BTreeMap<OsString, OsString>,
    /// The user's home folder: `~` in configuration.
    pub home: Option<PathBuf>,
    /// Where compiled components are kept; without it they are compiled each time.
    pub cache: Option<PathBuf>,
    /// Where this user's programs keep what they have seen and done: a place for
    /// `Builder::state`. Without that, nothing is kept there but the key by which the host
    /// tells the compiled components that it wrote itself.
    pub state: Option<PathBuf>,
    /// Where the folders of plugins for their own data are: `${data}`. Without it no plugin has one.
    pub data: Option<PathBuf>,
    /// Where the user's own configuration is.
    pub configuration: Option<PathBuf>,
    /// The file with the user's MCP servers for all programs, which need not be there.
    pub servers: Option<PathBuf>,
}

impl fmt::Debug for HostEnvironment {
    /// Shows the names of variables, and not their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { environment, home, cache, state, data, configuration, servers } = self;
        f.debug_struct("HostEnvironment")
            .field("environment", &environment.keys())
            .field("home", home)
            .field("cache", cache)
            .field("state", state)
            .field("data", data)
            .field("configuration", configuration)
            .field("servers", servers)
            .finish()
    }
}

impl HostEnvironment {
    /// The host's own folders, which are for no plugin.
    pub fn own_folders(&self) -> impl Iterator<Item = &Path> {
        let own = [&self.state, &self.configuration, &self.cache, &self.data];
        own.into_iter().flatten().map(PathBuf::as_path)
    }

    /// Nothing: no variable, and no folder.
    pub const EMPTY: Self = Self {
        environment: BTreeMap::new(),
        home: None,
        cache: None,
        state: None,
        data: None,
        configuration: None,
        servers: None,
    };

    /// The environment of this process, with folders after the XDG Base Directory Specification
    /// 0.8, or the system's own customs on macOS and Windows.
    pub fn of_process() -> Self {
        Self::from_environment(std::env::vars_os().collect())
    }

    /// What the variables of an environment say.
    pub fn from_environment(environment: BTreeMap<OsString, OsString>) -> Self {
        let folder = |name: &str| {
            let value = environment.get(OsStr::new(name))?;
            let path = PathBuf::from(value);
            path.is_absolute().then_some(path)
        };
        let home = folder("HOME").or_else(|| folder("USERPROFILE"));
        let below_home = |path: &str| home.as_deref().map(|home: &Path| home.join(path));
        let (cache, configuration, state, data) = if cfg!(target_os = "macos") {
            let support = below_home("Library/Application Support");
            (below_home("Library/Caches"), support.clone(), support.clone(), support)
        } else if cfg!(windows) {
            let local = folder("LOCALAPPDATA");
            (local.clone(), folder("APPDATA"), local.clone(), local)
        } else {
            let (cache, configuration) = (below_home(".cache"), below_home(".config"));
            (cache, configuration, below_home(".local/state"), below_home(".local/share"))
        };
        let cache = folder("XDG_CACHE_HOME").or(cache).map(|path| path.join("tenon"));
        let state = folder("XDG_STATE_HOME").or(state).map(|path| path.join("tenon"));
        let data = folder("XDG_DATA_HOME").or(data).map(|path| path.join("tenon"));
        // In the same place on every system, as for the other programs.
        let servers = folder("XDG_CONFIG_HOME").or_else(|| below_home(".config"));
        let servers = servers.map(|path| path.join("mcp/servers.json"));
        let configuration =
            folder("XDG_CONFIG_HOME").or(configuration).map(|path| path.join("tenon"));
        // Where one of the host's own folders is in the same place, which are not for plugins, it has another name.
        let data = match [&cache, &state, &configuration].contains(&&data) {
            true => data.map(|data| data.with_file_name("tenon-data")),
            false => data,
        };
        Self { environment, home, cache, state, data, configuration, servers }
    }

    /// A variable of the environment, if it is set and text.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(OsStr::new(name))?.to_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(all(unix, not(target_os = "macos")))]
    fn xdg_folders_go_before_those_below_home_unless_they_are_relative() {
        let all = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| (name.into(), value.into()));
            HostEnvironment::from_environment(pairs.collect())
        };
        let of = |pairs: &[(&str, &str)]| all(pairs).cache;
        let data = |pairs: &[(&str, &str)]| all(pairs).data;
        assert_eq!(data(&[("HOME", "/h")]), Some("/h/.local/share/tenon".into()));
        assert_eq!(data(&[("HOME", "/h"), ("XDG_DATA_HOME", "/d")]), Some("/d/tenon".into()));
        let same = [("HOME", "/h"), ("XDG_DATA_HOME", "/c"), ("XDG_CONFIG_HOME", "/c")];
        assert_eq!(data(&same), Some("/c/tenon-data".into()));
        assert_eq!(of(&[("HOME", "/h")]), Some("/h/.cache/tenon".into()));
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]), Some("/c/tenon".into()));
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "c")]), Some("/h/.cache/tenon".into()));
        assert_eq!(of(&[]), None);
    }
}
