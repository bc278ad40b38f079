//! Finding out that something has changed on disk.
//!
//! The operating system says that *something* happened in one of the folders that discovery looked
//! in; what it means is found by comparing. So events can be lost or repeated without harm.

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::reload::Difference;
use super::{Inner, Platform};
use crate::event::Event;

/// What to do about changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnChange {
    /// Tell subscribers: [`Event::Changed`].
    Report,
    /// Load what has changed: [`Platform::reload`].
    Reload,
}

/// Why nothing is watched.
#[derive(Debug, thiserror::Error)]
#[error("changes of files cannot be watched")]
pub struct WatchError(#[source] notify::Error);

/// A watch over the files of plugins. It ends when it is dropped.
pub struct Watch {
    task: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How long it must have been quiet before changes are looked at: a build writes several files.
const QUIET: Duration = Duration::from_millis(100);

/// How long to wait for quiet.
const LONGEST: Duration = Duration::from_secs(2);

impl Platform {
    /// Watches configurations, manifests, components and scripts for changes. What has changed
    /// since they were loaded is found at once.
    ///
    /// # Errors
    ///
    /// Where the system cannot watch files.
    pub fn watch(&self, on_change: OnChange) -> Result<Watch, WatchError> {
        let happened = Arc::new(Notify::new());
        happened.notify_one();
        let folders = Folders::new(happened.clone()).map_err(WatchError)?;
        let watching = watch(Arc::downgrade(&self.inner), folders, happened, on_change);
        Ok(Watch { task: tokio::spawn(watching) })
    }
}

async fn watch(
    platform: Weak<Inner>,
    mut folders: Folders,
    happened: Arc<Notify>,
    on_change: OnChange,
) {
    let mut reported: Vec<Difference> = Vec::new();
    let mut unread: Vec<String> = Vec::new();
    loop {
        happened.notified().await;
        quiet(&happened).await;
        let Some(inner) = platform.upgrade() else { return };
        let platform = Platform { inner };
        match on_change {
            OnChange::Reload => {
                platform.reload().await;
            }
            OnChange::Report => {
                let (differences, problems) = platform.compare().await;
                for problem in problems.iter().filter(|problem| !unread.contains(problem)) {
                    let problem = problem.clone();
                    let event = Event::NotReloaded { plugin: None, problem };
                    platform.inner.facilities.news.events().publish(|| event);
                }
                unread = problems;
                for Difference { plugin, change } in &differences {
                    let known = reported.iter().any(|d| d.plugin == *plugin && d.change == *change);
                    if !known {
                        let (plugin, change) = (plugin.as_str().into(), *change);
                        platform
                            .inner
                            .facilities
                            .news
                            .events()
                            .publish(|| Event::Changed { plugin, change });
                    }
                }
                reported = differences;
            }
        }
        let looked_in = platform.inner.plugins.lock().await.looked_in.clone();
        if folders.watch(looked_in) {
            // What happened in a folder before it was watched is found by looking again.
            happened.notify_one();
        }
    }
}

/// Waits until nothing has happened for a while.
async fn quiet(happened: &Notify) {
    let end = Instant::now() + LONGEST;
    while timeout_at(end.min(Instant::now() + QUIET), happened.notified()).await.is_ok() {
        if Instant::now() >= end {
            return;
        }
    }
}

/// The folders that are watched, each without those in it: those that matter are named themselves.
struct Folders {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    /// Something was removed or renamed: a folder of the same name may be another one.
    moved: Arc<AtomicBool>,
}

impl Folders {
    fn new(happened: Arc<Notify>) -> notify::Result<Self> {
        let moved = Arc::new(AtomicBool::new(false));
        let noted = moved.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error may be the loss of events: then anything may have happened.
            let kind = event.map_or(EventKind::Any, |event| event.kind);
            if is_reading(&kind) {
                return;
            }
            if !matches!(kind, EventKind::Access(_) | EventKind::Modify(ModifyKind::Data(_))) {
                noted.store(true, Ordering::SeqCst);
            }
            happened.notify_one();
        })?;
        Ok(Self { watcher, watched: BTreeSet::new(), moved })
    }

    /// Watches these folders, and no others. Says whether one of them was not watched before.
    fn watch(&mut self, wanted: BTreeSet<PathBuf>) -> bool {
        let more = !wanted.is_subset(&self.watched);
        for folder in self.watched.difference(&wanted) {
            // It may be gone, and its watch with it.
            let _ = self.watcher.unwatch(folder);
        }
        let all = self.moved.swap(false, Ordering::SeqCst);
        for folder in wanted.iter().filter(|folder| all || !self.watched.contains(*folder)) {
            // Watching it again is no harm, and needed where it was removed and made anew.
            if let Err(error) = self.watcher.watch(folder, RecursiveMode::NonRecursive)
                && !self.watched.contains(folder)
            {
                tracing::warn!("changes in {} go unnoticed: {error}", folder.display());
            }
        }
        self.watched = wanted;
        more
    }
}

/// Whether an event is somebody's reading, our own for instance.
fn is_reading(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        _ => false,
    }
}
