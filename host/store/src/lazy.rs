//! A store that is opened when it is first needed.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::StoreResult;
use crate::{SqliteStore, Store};

/// The name of a host's own database, in its folder for state.
pub const FILE_NAME: &str = "plugin-state.sqlite";

/// A store that is opened when it is first needed: whoever needs none does not wait for one.
pub struct LazyStore {
    /// The file of the database; without one, what is stored ends with this.
    file: Option<PathBuf>,
    opened: Mutex<Option<Arc<dyn Store>>>,
}

impl fmt::Debug for LazyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyStore").field("file", &self.file).finish_non_exhaustive()
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
        Self { file: None, opened: Mutex::new(Some(store)) }
    }
}

impl LazyStore {
    /// The database in a file; without one, a database in memory.
    #[must_use]
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, opened: Mutex::default() }
    }

    /// Checks that the store can be used and changed. One that is not there yet is not made. It blocks.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and where the store cannot be changed.
    pub fn check(&self) -> StoreResult<()> {
        let is_missing = self.file.as_ref().is_some_and(|file| !file.exists());
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
    /// As [`SqliteStore::open`].
    pub fn get(&self) -> StoreResult<Arc<dyn Store>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*opened {
            return Ok(store.clone());
        }
        let store: Arc<dyn Store> = match &self.file {
            Some(file) => Arc::new(SqliteStore::open(file)?),
            None => Arc::new(SqliteStore::in_memory()?),
        };
        Ok(opened.insert(store).clone())
    }
}
