//! Notices that files change, in folders that are watched without those in them: what builds write lies in others.

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::error::Error;

/// How long it must have been quiet before changes are looked at: an editor writes a file in several steps.
const QUIET: Duration = Duration::from_millis(20);

/// How often nothing is waited for any more.
const MAX_WAITS: usize = 50;

/// Watches folders.
pub(super) struct FolderWatch {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    settled: Arc<Notify>,
    settling: AbortHandle,
}

impl Drop for FolderWatch {
    fn drop(&mut self) {
        self.settling.abort();
    }
}

impl FolderWatch {
    /// Watches nothing yet.
    ///
    /// # Errors
    ///
    /// Where the system lets nothing be watched.
    pub(super) fn new() -> Result<Self, Error> {
        let happened = Arc::new(Notify::new());
        let noted = happened.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error may be the loss of events: then anything may have happened.
            if event.map_or(true, |event| is_writing(&event.kind)) {
                noted.notify_one();
            }
        });
        let watcher =
            watcher.map_err(|error| Error::Host(format!("changes go unnoticed: {error}")))?;
        let settled = Arc::new(Notify::new());
        let settling = tokio::spawn(settle(happened, settled.clone())).abort_handle();
        Ok(Self { watcher, watched: BTreeSet::new(), settled, settling })
    }

    /// Watches these folders, and no others.
    pub(super) fn set(&mut self, wanted: BTreeSet<PathBuf>) {
        for folder in self.watched.difference(&wanted) {
            // It may be gone, and its watch with it.
            let _ = self.watcher.unwatch(folder);
        }
        // Watching a folder again is no harm, and needed where it was removed and made anew.
        for folder in &wanted {
            if let Err(error) = self.watcher.watch(folder, RecursiveMode::NonRecursive)
                && !self.watched.contains(folder)
            {
                tracing::warn!("changes in {} go unnoticed: {error}", folder.display());
            }
        }
        self.watched = wanted;
    }

    /// Waits until something has changed, and it is quiet again.
    pub(super) async fn changed(&self) {
        self.settled.notified().await;
    }
}

/// Passes on that something has happened, when it is quiet again.
async fn settle(happened: Arc<Notify>, settled: Arc<Notify>) {
    loop {
        happened.notified().await;
        for _ in 0..MAX_WAITS {
            if timeout(QUIET, happened.notified()).await.is_err() {
                break;
            }
        }
        settled.notify_one();
    }
}

/// Whether an event is more than somebody's reading.
fn is_writing(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}
