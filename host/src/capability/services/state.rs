//! Where what plugins keep is stored: a store of the embedder's, or one of the host's that is opened when a plugin first
//! needs it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tenon_state::{SqliteStore, StateError, StateStore};

/// The database with what plugins keep, in the folder of [`Builder::state`](crate::Builder::state).
pub const STATE_FILE: &str = "plugin-state.sqlite";

/// The store of what plugins keep, and the project that it is kept for.
#[derive(Default)]
pub(crate) struct StateBackend {
    /// The file of the host's own store; without one what is kept ends with the host.
    file: Option<PathBuf>,
    project: Option<PathBuf>,
    opened: Mutex<Option<Arc<dyn StateStore>>>,
}

impl StateBackend {
    /// A store of the host's own.
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self { file, ..Self::default() }
    }

    /// A store that an embedder has.
    pub(crate) fn given(store: Arc<dyn StateStore>) -> Self {
        Self { opened: Mutex::new(Some(store)), ..Self::default() }
    }

    /// The same, for a project.
    pub(crate) fn in_project(self, project: Option<PathBuf>) -> Self {
        // One folder is one project, by whatever path it was reached.
        let project = project.map(|folder| folder.canonicalize().unwrap_or(folder));
        Self { project, ..self }
    }

    /// The project that the host works in.
    pub(crate) fn project(&self) -> Option<&PathBuf> {
        self.project.as_ref()
    }

    /// Does something with the store, on a thread that may block.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&dyn StateStore) -> Result<T, StateError> + Send + 'static,
    ) -> Result<T, StateError> {
        let backend = self.clone();
        let act = tokio::task::spawn_blocking(move || act(&*backend.store()?));
        act.await.expect("a store does not panic, and is not aborted")
    }

    /// The store, opened where nobody has. It blocks.
    fn store(&self) -> Result<Arc<dyn StateStore>, StateError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*opened {
            return Ok(store.clone());
        }
        let store: Arc<dyn StateStore> = match &self.file {
            Some(file) => Arc::new(SqliteStore::open(file)?),
            None => Arc::new(SqliteStore::in_memory()?),
        };
        Ok(opened.insert(store).clone())
    }
}
