//! `tenon.lock`: what was installed, and of which bytes it is.
//!
//! It lies beside the `tenon.toml` of a project and is for the plugins in its `.tenon/plugins`, or
//! beside the user's `config.toml` and is for those in `plugins` there. What it binds is loaded as it
//! was installed or not at all: [`crate::admit`] holds candidates against it, and `load` of `tenon-host` the
//! bytes that it reads.

#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzz;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{self, Digest, MAX_CONFIGURATION_BYTES};
use crate::manifest::is_id;
use crate::toml_parse::parse;

/// The name of the file.
pub const FILE_NAME: &str = "tenon.lock";

/// The version of the file's format.
const VERSION: u32 = 1;

const HEAD: &str = "# Written by `tenon install`; it belongs into version control.\n";

/// What was installed, by the ids of plugins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockFile {
    /// The plugins.
    pub plugins: BTreeMap<String, LockedPlugin>,
}

/// One plugin that was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedPlugin {
    /// Where it came from, as its user wrote it; a relative path begins in the folder of the file.
    pub source: String,
    /// The same, bound to what was there: a reference to a registry with a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// The version that it gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The file of its component or script, below its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its component or script.
    #[serde(with = "named")]
    pub code: Digest,
    /// Its `plugin.toml`.
    #[serde(with = "named")]
    pub manifest: Digest,
    /// The files of its skills, with their paths, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "named_if_any")]
    pub skills: Option<Digest>,
}

/// Why a lock file is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// It cannot be read or written.
    #[error("{} cannot be read or written", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// It does not say what it should.
    #[error("{}:{line}: {problem}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
}

/// The file, as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockFileToml {
    version: u32,
    #[serde(default)]
    plugins: BTreeMap<String, LockedPlugin>,
}

impl LockFile {
    /// Reads a lock file; of one that is not there, nothing was installed.
    ///
    /// # Errors
    ///
    /// Where it is there and cannot be read or understood.
    pub fn read(path: &Path) -> Result<Self, LockError> {
        match Self::text(path)? {
            Some(text) => Self::parse(&text, path),
            None => Ok(Self::default()),
        }
    }

    /// The text of a lock file that is there.
    fn text(path: &Path) -> Result<Option<String>, LockError> {
        match files::read_text(path, MAX_CONFIGURATION_BYTES) {
            Ok(text) => Ok(Some(text)),
            // A link that leads nowhere is no word that nothing is bound.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(None),
            Err(error) => Err(LockError::File(path.into(), error)),
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Self, LockError> {
        let invalid = |(line, problem)| LockError::Invalid { path: path.into(), line, problem };
        let LockFileToml { version, plugins } = parse(text).map_err(invalid)?;
        if version != VERSION {
            return Err(invalid((
                1,
                format!("it has version {version}, and this host reads {VERSION}"),
            )));
        }
        if let Some(id) = plugins.keys().find(|id| !is_id(id)) {
            return Err(invalid((1, format!("invalid plugin id {id:?}"))));
        }
        Ok(Self { plugins })
    }

    /// Writes it, as a whole. The same content has the same text.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), LockError> {
        let written = self.to_text().map_err(io::Error::other);
        let written = written.and_then(|text| files::write_whole(path, text.as_bytes()));
        written.map_err(|error| LockError::File(path.into(), error))
    }

    fn to_text(&self) -> Result<String, toml::ser::Error> {
        let content = LockFileToml { version: VERSION, plugins: self.plugins.clone() };
        Ok(format!("{HEAD}{}", toml::to_string(&content)?))
    }
}

/// What a lock file says of a plugin in the folder that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockedDigests {
    /// It must be of these bytes.
    Bound {
        /// The lock file.
        file: PathBuf,
        /// What the code has to be.
        code: Digest,
        /// What the manifest has to be.
        manifest: Digest,
        /// What the skills have to be.
        skills: Option<Digest>,
    },
    /// Nobody can tell.
    Unreadable(String),
}

/// A lock file, as discovery found it.
pub struct FoundLockFile {
    file: PathBuf,
    /// Its content, where it can be read.
    content: Option<Digest>,
    lock: Result<LockFile, LockError>,
}

impl FoundLockFile {
    pub(crate) fn read(file: &Path) -> Self {
        let text = LockFile::text(file);
        let content = text.as_ref().ok().and_then(|text| text.as_ref().map(Digest::of));
        let parsed = |text: Option<String>| match text {
            Some(text) => LockFile::parse(&text, file),
            None => Ok(LockFile::default()),
        };
        Self { file: file.into(), content, lock: text.and_then(parsed) }
    }

    /// The lock file and its content, where there is one that can be read.
    pub fn content(&self) -> Option<(&Path, Digest)> {
        Some((&self.file, self.content?))
    }

    /// The lock file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The ids of what was installed, or why they are not known.
    pub fn ids(&self) -> Result<impl Iterator<Item = &str>, String> {
        match &self.lock {
            Ok(lock) => Ok(lock.plugins.keys().map(String::as_str)),
            Err(error) => Err(crate::diagnostic::chain(error)),
        }
    }

    /// What binds the plugin of an id.
    pub fn of(&self, id: &str) -> Option<LockedDigests> {
        match &self.lock {
            Ok(lock) => {
                let LockedPlugin { code, manifest, skills, .. } = lock.plugins.get(id)?;
                let (file, code, manifest) = (self.file.clone(), *code, *manifest);
                Some(LockedDigests::Bound { file, code, manifest, skills: *skills })
            }
            Err(error) => Some(LockedDigests::Unreadable(crate::diagnostic::chain(error))),
        }
    }
}

/// Digests with the name of what made them.
mod named {
    use super::*;

    pub(super) fn serialize<S: Serializer>(digest: &Digest, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&digest.named())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Digests that need not be there.
mod named_if_any {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        digest: &Option<Digest>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        digest.map(|digest| digest.named()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Digest>, D::Error> {
        named::deserialize(from).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_looks_the_same_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        assert_eq!(LockFile::read(&path).unwrap(), LockFile::default());
        let locked = |source: &str, version: Option<&str>| LockedPlugin {
            source: source.into(),
            resolved: None,
            version: version.map(Into::into),
            file: version.map(|_| "build/p.wasm".into()),
            code: Digest::of("code"),
            manifest: Digest::of("manifest"),
            skills: version.map(|_| Digest::of("skills")),
        };
        let lock = LockFile {
            plugins: [("b", locked("./b.wasm", None)), ("a", locked("./a.rhai", Some("0.1.0")))]
                .map(|(id, locked)| (id.to_string(), locked))
                .into(),
        };
        lock.write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(LockFile::read(&path).unwrap(), lock);
        let [code, manifest, skills] =
            ["code", "manifest", "skills"].map(|content| Digest::of(content).named());
        let digests = format!("code = \"{code}\"\nmanifest = \"{manifest}\"\n");
        assert_eq!(
            text,
            format!(
                "{HEAD}version = 1\n\n[plugins.a]\nsource = \"./a.rhai\"\nversion = \"0.1.0\"\nfile = \"build/p.wasm\"\n{digests}skills = \"{skills}\"\n\n\
                 [plugins.b]\nsource = \"./b.wasm\"\n{digests}"
            )
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_is_no_file_without_plugins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert!(LockFile::read(&path).is_err());
        assert!(matches!(FoundLockFile::read(&path).of("p"), Some(LockedDigests::Unreadable(_))));
    }

    #[test]
    fn what_cannot_be_understood_binds_everything() {
        let check = |text: &str, expected: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(FILE_NAME);
            std::fs::write(&path, text).unwrap();
            let Some(LockedDigests::Unreadable(problem)) = FoundLockFile::read(&path).of("p")
            else {
                panic!()
            };
            assert!(problem.ends_with(expected), "{problem}");
        };
        check("version = 2", "tenon.lock:1: it has version 2, and this host reads 1");
        check(
            "version = 1\n[plugins.x]\nsource = \"\"\ncode = 1",
            "must be a text, not the number 1",
        );
        let digest = Digest::of("").named();
        check(
            &format!(
                "version = 1\n[plugins.x]\nsource = \"\"\ncode = \"{digest}\"\nmanifest = \"{digest}\"\nskills = \"x\""
            ),
            "invalid digest: expected `sha256:` and 64 digits of 0-9 and a-f",
        );
        check(
            &format!(
                "version = 1\n[plugins.\"../x\"]\nsource = \"\"\ncode = \"{digest}\"\nmanifest = \"{digest}\""
            ),
            "tenon.lock:1: invalid plugin id \"../x\"",
        );
        check("nothing", "expected `=`");
    }

    #[test]
    fn what_is_bound_is_told_by_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let none = FoundLockFile::read(&path);
        assert_eq!((none.file(), none.content()), (&*path, None));
        assert_eq!((none.of("p"), none.ids().unwrap().count()), (None, 0));
        let (code, manifest) = (Digest::of("code"), Digest::of("manifest"));
        let locked = LockedPlugin {
            source: "./p".into(),
            resolved: None,
            version: None,
            file: None,
            code,
            manifest,
            skills: None,
        };
        let lock = LockFile { plugins: [("p".to_string(), locked)].into() };
        lock.write(&path).unwrap();
        let lock_index = FoundLockFile::read(&path);
        let content = Digest::of(std::fs::read(&path).unwrap());
        assert_eq!((lock_index.file(), lock_index.content()), (&*path, Some((&*path, content))));
        assert_eq!(lock_index.ids().unwrap().collect::<Vec<_>>(), ["p"]);
        assert_eq!(
            lock_index.of("p"),
            Some(LockedDigests::Bound { file: path.clone(), code, manifest, skills: None })
        );
        assert_eq!(lock_index.of("q"), None);
        std::fs::write(&path, "nothing").unwrap();
        let damaged = FoundLockFile::read(&path);
        assert_eq!(damaged.content(), Some((&*path, Digest::of("nothing"))));
        assert!(damaged.ids().err().unwrap().contains("expected `=`"));
    }
}
