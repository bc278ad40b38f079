//! Where plugins keep what outlives a call, and for which project.

use std::path::PathBuf;
use std::sync::Arc;
use tenon_store::{LazyStore, StateStore, StoreError};

/// The store, and the project that plugins keep something for.
#[derive(Default)]
pub(crate) struct StateBackend {
    store: Arc<LazyStore>,
    project: Option<PathBuf>,
}

impl StateBackend {
    /// A store for no project.
    pub(crate) fn new(store: Arc<LazyStore>) -> Self {
        Self { store, project: None }
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
        act: impl FnOnce(&dyn StateStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.store.clone();
        let act = tokio::task::spawn_blocking(move || act(&*store.get()?));
        act.await.expect("a store does not panic, and is not aborted")
    }
}
