//! Values that a user keeps on this machine, each in the system's keychain or in a private file.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Secret;
use crate::files;

/// The system's keychain, as far as it keeps texts by name. Its functions may block, even on a user who is to unlock it.
pub trait Keychain: Send + Sync + 'static {
    /// Whether this system has one that can be reached.
    fn is_available(&self) -> bool;

    /// Returns the text of a name, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// Says why the keychain cannot be read.
    fn read(&self, name: &str) -> Result<Option<Secret>, String>;

    /// Stores a text under a name, in place of one that is there.
    ///
    /// # Errors
    ///
    /// Says why the keychain does not take it.
    fn write(&self, name: &str, value: &Secret) -> Result<(), String>;

    /// Removes the text of a name, if there is one.
    ///
    /// # Errors
    ///
    /// Says why the keychain cannot be changed.
    fn remove(&self, name: &str) -> Result<(), String>;
}

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In the system's keychain.
    Keychain,
    /// In a file that only its user can read.
    File,
}

/// Why a value cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StoredSecretError {
    /// It is no name of a value.
    #[error("{0:?} is not a valid name: use 1 to 128 letters, digits, `-` and `_`")]
    Name(String),
    /// A file or its folder cannot be used.
    #[error("{}", .path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The keychain does not do what it is asked for.
    #[error("the system's keychain: {0}")]
    Keychain(String),
    /// There is no keychain, or none that can be reached.
    #[error("this system has no keychain that can be reached")]
    NoKeychain,
}

/// What marks the name of a file that has no value, but says that the keychain has it. No name has a dot.
const IN_KEYCHAIN: &str = "keychain";

/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The values of one folder. The folder says of each where it is, so nobody asks the keychain in vain.
#[derive(Clone)]
pub struct StoredSecrets {
    folder: PathBuf,
    keychain: Option<Arc<dyn Keychain>>,
}

/// Whether a text can be the name of a value.
pub fn is_value_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(is_allowed)
}

impl StoredSecrets {
    /// Values of a folder, and of a keychain where there is one.
    pub fn new(folder: PathBuf, keychain: Option<Arc<dyn Keychain>>) -> Self {
        Self { folder, keychain }
    }

    /// The file of a value.
    ///
    /// # Errors
    ///
    /// For a text that is no name.
    pub fn file(&self, name: &str) -> Result<PathBuf, StoredSecretError> {
        match is_value_name(name) {
            true => Ok(self.folder.join(name)),
            false => Err(StoredSecretError::Name(name.into())),
        }
    }

    /// The files of which one is there if a value is, and changes when that does.
    ///
    /// # Errors
    ///
    /// For a text that is no name.
    pub fn files(&self, name: &str) -> Result<[PathBuf; 2], StoredSecretError> {
        let file = self.file(name)?;
        Ok([mark(&file), file])
    }

    /// Where a value is, if there is one.
    ///
    /// # Errors
    ///
    /// For a text that is no name.
    pub fn storage(&self, name: &str) -> Result<Option<Storage>, StoredSecretError> {
        let file = self.file(name)?;
        // A file is there at the latest when its mark goes, and it has the newer value then.
        Ok(if file.exists() {
            Some(Storage::File)
        } else if mark(&file).exists() {
            Some(Storage::Keychain)
        } else {
            None
        })
    }

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// Where it is, but cannot be read: others could read its file as well, or the keychain is locked.
    pub fn read(&self, name: &str) -> Result<Option<Secret>, StoredSecretError> {
        let file = self.file(name)?;
        match self.storage(name)? {
            None => Ok(None),
            Some(Storage::File) => match files::read_private(&file) {
                Ok(value) => Ok(Some(Secret::new(value))),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(in_file(&file)(error)),
            },
            Some(Storage::Keychain) => {
                let value = self.keychain()?.read(&self.item(name));
                let gone = || {
                    StoredSecretError::Keychain(format!("it has no value for {name:?} any more"))
                };
                value.map_err(StoredSecretError::Keychain)?.ok_or_else(gone).map(Some)
            }
        }
    }

    /// Stores a value: where it is said, or else in the keychain if there is one. Gives where it is.
    ///
    /// # Errors
    ///
    /// Where it cannot be stored there. What was there before stays.
    pub fn write(
        &self,
        name: &str,
        value: &Secret,
        storage: Option<Storage>,
    ) -> Result<Storage, StoredSecretError> {
        let file = self.file(name)?;
        let has_keychain =
            || self.keychain.as_ref().is_some_and(|keychain| keychain.is_available());
        let storage = storage.unwrap_or_else(|| match has_keychain() {
            true => Storage::Keychain,
            false => Storage::File,
        });
        files::make_private(&self.folder).map_err(in_file(&self.folder))?;
        let mark = mark(&file);
        match storage {
            Storage::Keychain => {
                let keychain = self.keychain()?;
                keychain.write(&self.item(name), value).map_err(StoredSecretError::Keychain)?;
                files::replace_private(&mark, b"").map_err(in_file(&mark))?;
                remove_file(&file)?;
            }
            Storage::File => {
                let former = mark.exists().then(|| self.keychain()).transpose()?;
                files::replace_private(&file, value.reveal().as_bytes()).map_err(in_file(&file))?;
                if let Some(keychain) = former {
                    keychain.remove(&self.item(name)).map_err(StoredSecretError::Keychain)?;
                    remove_file(&mark)?;
                }
            }
        }
        Ok(storage)
    }

    /// Removes a value. Gives whether there was one.
    ///
    /// # Errors
    ///
    /// Where it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<bool, StoredSecretError> {
        let file = self.file(name)?;
        let mark = mark(&file);
        let is_in_keychain = mark.exists();
        if is_in_keychain {
            self.keychain()?.remove(&self.item(name)).map_err(StoredSecretError::Keychain)?;
            remove_file(&mark)?;
        }
        Ok(remove_file(&file)? || is_in_keychain)
    }

    /// The names of all values and where each is, in alphabetical order.
    ///
    /// # Errors
    ///
    /// Where the folder cannot be read.
    pub fn list(&self) -> Result<Vec<(String, Storage)>, StoredSecretError> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(in_file(&self.folder)(error)),
        };
        let mut names = std::collections::BTreeSet::new();
        for entry in entries {
            let name = entry.map_err(in_file(&self.folder))?.file_name();
            let Some(name) = name.to_str() else { continue };
            let name = match name.split_once('.') {
                Some((name, IN_KEYCHAIN)) => name,
                _ => name,
            };
            if is_value_name(name) {
                names.insert(name.to_string());
            }
        }
        let stored = names.into_iter().map(|name| Ok((self.storage(&name)?, name)));
        let stored: Vec<_> = stored.collect::<Result<_, StoredSecretError>>()?;
        Ok(stored.into_iter().filter_map(|(storage, name)| Some((name, storage?))).collect())
    }

    fn keychain(&self) -> Result<&dyn Keychain, StoredSecretError> {
        let keychain = self.keychain.as_deref().filter(|keychain| keychain.is_available());
        keychain.ok_or(StoredSecretError::NoKeychain)
    }

    /// How the keychain knows a value: two users of one keychain, or two folders, have different ones.
    fn item(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

/// What says that the keychain has the value which a file would have.
fn mark(file: &Path) -> PathBuf {
    file.with_extension(IN_KEYCHAIN)
}

fn in_file(path: &Path) -> impl FnOnce(io::Error) -> StoredSecretError {
    let path = path.to_path_buf();
    move |source| StoredSecretError::File { path, source }
}

/// Removes a file. Gives whether there was one.
fn remove_file(path: &Path) -> Result<bool, StoredSecretError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(in_file(path)(error)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A keychain that may be locked.
    #[derive(Default)]
    pub(in crate::secret) struct FakeKeychain {
        pub(in crate::secret) items: Mutex<BTreeMap<String, String>>,
        pub(in crate::secret) is_locked: AtomicBool,
    }

    impl FakeKeychain {
        fn items(&self) -> Result<std::sync::MutexGuard<'_, BTreeMap<String, String>>, String> {
            match self.is_locked.load(Ordering::SeqCst) {
                true => Err("it is locked".into()),
                false => Ok(self.items.lock().unwrap()),
            }
        }
    }

    impl Keychain for FakeKeychain {
        fn is_available(&self) -> bool {
            true
        }

        fn read(&self, name: &str) -> Result<Option<Secret>, String> {
            Ok(self.items()?.get(name).map(Secret::new))
        }

        fn write(&self, name: &str, value: &Secret) -> Result<(), String> {
            self.items()?.insert(name.into(), value.reveal().into());
            Ok(())
        }

        fn remove(&self, name: &str) -> Result<(), String> {
            self.items()?.remove(name);
            Ok(())
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_value_is_in_one_place_wherever_it_was_before() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("secrets");
        let keychain = Arc::new(FakeKeychain::default());
        let values = StoredSecrets::new(folder.clone(), Some(keychain.clone()));
        let check = |storage: Option<Storage>, expected: Storage, files: &[&str], items: usize| {
            let value = Secret::new(format!("{expected:?}"));
            assert_eq!(values.write("key", &value, storage).unwrap(), expected);
            assert_eq!(values.read("key").unwrap(), Some(value));
            assert_eq!(values.list().unwrap(), [("key".to_string(), expected)]);
            assert_eq!(names(&folder), files);
            assert_eq!(keychain.items.lock().unwrap().len(), items);
        };
        check(None, Storage::Keychain, &["key.keychain"], 1);
        check(None, Storage::Keychain, &["key.keychain"], 1);
        check(Some(Storage::File), Storage::File, &["key"], 0);
        check(Some(Storage::Keychain), Storage::Keychain, &["key.keychain"], 1);
        assert!(values.remove("key").unwrap());
        assert_eq!(values.read("key").unwrap(), None);
        assert!(!values.remove("key").unwrap());
        assert_eq!((names(&folder), keychain.items.lock().unwrap().len()), (Vec::new(), 0));
    }

    #[test]
    fn without_a_keychain_values_are_in_files_and_those_in_one_are_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let keychain = Arc::new(FakeKeychain::default());
        let with = StoredSecrets::new(folder.path().into(), Some(keychain.clone()));
        let without = StoredSecrets::new(folder.path().into(), None);
        let one = Secret::new("one");
        with.write("in-keychain", &one, None).unwrap();
        assert_eq!(without.write("in-file", &one, None).unwrap(), Storage::File);
        assert_eq!(without.read("in-file").unwrap(), Some(one.clone()));
        let problem = |result: Result<_, StoredSecretError>| match result {
            Ok(value) => panic!("{value:?}"),
            Err(error) => error.to_string(),
        };
        let none = "this system has no keychain that can be reached";
        assert_eq!(problem(without.read("in-keychain")), none);
        let asked = without.write("other", &one, Some(Storage::Keychain));
        assert_eq!(problem(asked.map(|_| None)), none);
        assert_eq!(problem(without.remove("in-keychain").map(|_| None)), none);
        keychain.is_locked.store(true, Ordering::SeqCst);
        let locked = "the system's keychain: it is locked";
        assert_eq!(problem(with.read("in-keychain")), locked);
        assert_eq!(problem(with.write("in-keychain", &one, None).map(|_| None)), locked);
        keychain.is_locked.store(false, Ordering::SeqCst);
        assert_eq!(with.read("in-keychain").unwrap(), Some(one));
        keychain.items.lock().unwrap().clear();
        let gone = "the system's keychain: it has no value for \"in-keychain\" any more";
        assert_eq!(problem(with.read("in-keychain")), gone);
    }

    #[test]
    #[cfg(unix)]
    fn a_file_with_a_value_is_its_users_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("secrets");
        let values = StoredSecrets::new(folder.clone(), None);
        values.write("key", &Secret::new("one"), None).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("key"))), (0o700, 0o600));
        std::fs::set_permissions(folder.join("key"), PermissionsExt::from_mode(0o644)).unwrap();
        let error = values.read("key").unwrap_err();
        assert!(matches!(error, StoredSecretError::File { .. }), "{error}");
        // To write it again makes it private.
        values.write("key", &Secret::new("two"), None).unwrap();
        assert_eq!(values.read("key").unwrap(), Some(Secret::new("two")));
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        let values = StoredSecrets::new("/nowhere".into(), None);
        for name in ["", "../x", "a/b", "a.keychain", "\u{e9}", &"x".repeat(129)] {
            assert!(matches!(values.file(name), Err(StoredSecretError::Name(_))), "{name:?}");
        }
        for name in ["x", "api-key", "A_1", &"x".repeat(128)] {
            assert!(values.file(name).is_ok(), "{name:?}");
        }
        assert_eq!(values.list().unwrap(), []);
    }
}
