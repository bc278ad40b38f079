//! A store that is opened when it is first needed.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{StoreError, StoreResult};
use crate::{SqliteStore, Store};

/// The name of a host's own database, in its folder for state.
pub const FILE_NAME: &str = "plugin-state.sqlite";

/// A store that is opened when it is first needed: whoever needs none does not wait for one.
pub struct LazyStore {
    place: LazyPlace,
    opened: Mutex<Option<Arc<dyn Store>>>,
}

/// Where a store is that is not open yet.
enum LazyPlace {
    /// In memory: what is stored ends with it.
    Memory,
    /// In this file.
    File(PathBuf),
    /// Elsewhere; this opens it.
    Elsewhere(Box<StoreOpener>),
}

/// Opens a store. It may block.
type StoreOpener = dyn Fn() -> StoreResult<Arc<dyn Store>> + Send + Sync;

impl fmt::Debug for LazyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = match &self.place {
            LazyPlace::File(file) => Some(file),
            LazyPlace::Memory | LazyPlace::Elsewhere(_) => None,
        };
        f.debug_struct("LazyStore").field("file", &file).finish_non_exhaustive()
    }
}

/// A database in memory.
impl Default for LazyStore {
    fn default() -> Self {
        Self::new(None)
    }
}

/// One that is open.
impl From<Arc<dyn Store>> for LazyStore {
    fn from(store: Arc<dyn Store>) -> Self {
        Self { place: LazyPlace::Memory, opened: Mutex::new(Some(store)) }
    }
}

/// Refuses a database that others could have written: it says what is approved.
#[cfg(unix)]
fn check_guarded(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let owners = [0, rustix::process::geteuid().as_raw()];
    for path in file.parent().into_iter().chain([file]) {
        let about = match path.metadata() {
            Ok(about) => about,
            // It is made for this user alone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if !owners.contains(&about.uid()) || about.mode() & 0o022 != 0 {
            let problem = format!(
                "{} belongs to another user, or others can write to it: whatever is approved in it may be their doing",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
    }
    Ok(())
}

/// A file of the user's profile is the user's own on Windows.
#[cfg(not(unix))]
fn check_guarded(_: &Path) -> io::Result<()> {
    Ok(())
}

impl LazyStore {
    /// The database in a file, which nobody else can write to, nor to its folder; without one, a database in memory.
    #[must_use]
    pub fn new(file: Option<PathBuf>) -> Self {
        let place = file.map_or(LazyPlace::Memory, LazyPlace::File);
        Self { place, opened: Mutex::default() }
    }

    /// A store elsewhere, which this opens. It may block.
    #[must_use]
    pub fn elsewhere(
        open: impl Fn() -> StoreResult<Arc<dyn Store>> + Send + Sync + 'static,
    ) -> Self {
        Self { place: LazyPlace::Elsewhere(Box::new(open)), opened: Mutex::default() }
    }

    /// Checks that the store can be used and changed. One that is not there yet is not made. It blocks.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and where the store cannot be changed.
    pub fn check(&self) -> StoreResult<()> {
        let is_missing = matches!(&self.place, LazyPlace::File(file) if !file.exists());
        let is_open = self.opened.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if is_missing && !is_open {
            return Ok(());
        }
        // There are none of these.
        self.get()?.remove_expired_items("checks", 0).map(drop)
    }

    /// The store, opened where nobody has. One that could not be opened is tried again the next time. It blocks.
    ///
    /// # Errors
    ///
    /// As [`SqliteStore::open`], or as what opens it elsewhere.
    pub fn get(&self) -> StoreResult<Arc<dyn Store>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*opened {
            return Ok(store.clone());
        }
        let store: Arc<dyn Store> = match &self.place {
            LazyPlace::Memory => Arc::new(SqliteStore::in_memory()?),
            LazyPlace::File(file) => {
                check_guarded(file).map_err(|error| StoreError::Io(file.clone(), error.into()))?;
                Arc::new(SqliteStore::open(file)?)
            }
            LazyPlace::Elsewhere(open) => open()?,
        };
        Ok(opened.insert(store).clone())
    }
}
