//! Finding out that something has changed on disk.
//!
//! The operating system says that *something* happened in one of the folders that discovery looked
//! in; what it means is found by comparing. So events can be lost or repeated without harm.

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tenon_config::config::WatchSettings;
use tenon_config::files::absolute;
use tenon_config::limits::MAX_DURATION;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::reload::Difference;
use super::{Inner, Platform};
use crate::observe::event::Event;

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

impl Platform {
    /// Watches configurations, manifests, components and scripts for changes. What has changed
    /// since they were loaded is found at once.
    ///
    /// ```no_run
    /// use tenon_host::OnChange;
    ///
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// let watch = platform.watch(OnChange::Reload).expect("this system can watch files");
    /// // Plugins are loaded again as their files change, until `watch` is dropped.
    /// drop(watch);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Where the system cannot watch files.
    pub fn watch(&self, on_change: OnChange) -> Result<Watch, WatchError> {
        let happened = Arc::new(Notify::new());
        happened.notify_one();
        let files = self.inner.decision_files.iter().map(|file| absolute(file)).collect();
        let folders = WatchedFolders::new(happened.clone(), files).map_err(WatchError)?;
        let watching = watch(Arc::downgrade(&self.inner), folders, happened, on_change);
        Ok(Watch { task: tokio::spawn(watching) })
    }
}

async fn watch(
    platform: Weak<Inner>,
    mut folders: WatchedFolders,
    happened: Arc<Notify>,
    on_change: OnChange,
) {
    let mut reported: Vec<Difference> = Vec::new();
    let mut unread: Vec<String> = Vec::new();
    loop {
        happened.notified().await;
        let settings = match platform.upgrade() {
            Some(inner) => watch_settings(&inner).await,
            None => return,
        };
        quiet(&happened, settings).await;
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
                    platform.inner.invoke_services.news.events().publish(|| event);
                }
                unread = problems;
                for Difference { plugin, change } in &differences {
                    let known = reported.iter().any(|d| d.plugin == *plugin && d.change == *change);
                    if !known {
                        let (plugin, change) = (plugin.as_str().into(), *change);
                        platform
                            .inner
                            .invoke_services
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

async fn watch_settings(platform: &Inner) -> WatchSettings {
    let plugins = platform.plugins.lock().await;
    plugins.sources.configs.first().map(|config| config.watch).unwrap_or_default()
}

/// Waits until nothing has happened for a while.
async fn quiet(happened: &Notify, settings: WatchSettings) {
    let debounce = settings.debounce.min(MAX_DURATION);
    let end = Instant::now() + settings.max_delay.min(MAX_DURATION);
    while timeout_at(end.min(Instant::now() + debounce), happened.notified()).await.is_ok() {
        if Instant::now() >= end {
            return;
        }
    }
}

/// The folders that are watched, each without those in it: those that matter are named themselves.
struct WatchedFolders {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    filter: Arc<PathFilter>,
    /// Something was removed or renamed: a folder of the same name may be another one.
    moved: Arc<AtomicBool>,
}

/// Which paths matter.
struct PathFilter {
    /// Single files, in folders where all else changes at every call.
    files: BTreeSet<PathBuf>,
    /// Folders of which all matters.
    folders: Mutex<BTreeSet<PathBuf>>,
}

impl PathFilter {
    fn passes(&self, path: &Path) -> bool {
        let folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let is_in = |folder: &Path| folders.contains(folder);
        self.files.contains(path) || is_in(path) || path.parent().is_some_and(is_in)
    }
}

impl WatchedFolders {
    fn new(happened: Arc<Notify>, files: BTreeSet<PathBuf>) -> notify::Result<Self> {
        let moved = Arc::new(AtomicBool::new(false));
        let noted = moved.clone();
        let filter = Arc::new(PathFilter { files, folders: Mutex::default() });
        let passing = filter.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error may be the loss of events: then anything may have happened.
            let (kind, paths) = match event {
                Ok(event) => (event.kind, event.paths),
                Err(_) => (EventKind::Any, Vec::new()),
            };
            if is_reading(&kind)
                || !paths.is_empty() && !paths.iter().any(|path| passing.passes(path))
            {
                return;
            }
            if !matches!(kind, EventKind::Access(_) | EventKind::Modify(ModifyKind::Data(_))) {
                noted.store(true, Ordering::SeqCst);
            }
            happened.notify_one();
        })?;
        Ok(Self { watcher, watched: BTreeSet::new(), filter, moved })
    }

    /// Watches these folders, and no others. Says whether one of them was not watched before.
    fn watch(&mut self, wanted: BTreeSet<PathBuf>) -> bool {
        // Events name absolute paths, however a folder was named.
        let mut wanted: BTreeSet<PathBuf> = wanted.iter().map(|folder| absolute(folder)).collect();
        self.filter.folders.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&wanted);
        let of_files = self.filter.files.iter().filter_map(|file| file.parent());
        wanted.extend(of_files.filter(|folder| folder.is_dir()).map(Path::to_path_buf));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// After how many milliseconds it is quiet, when something happens at these.
    async fn quiet_after(happenings: &[u64], settings: WatchSettings) -> u128 {
        let happened = Arc::new(Notify::new());
        let began = Instant::now();
        let times: Vec<_> =
            happenings.iter().map(|ms| began + Duration::from_millis(*ms)).collect();
        let happening = tokio::spawn({
            let happened = happened.clone();
            async move {
                for time in times {
                    tokio::time::sleep_until(time).await;
                    happened.notify_one();
                }
            }
        });
        quiet(&happened, settings).await;
        happening.abort();
        began.elapsed().as_millis()
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_taken_together_for_as_long_as_is_said() {
        let settings = |debounce, max_delay| WatchSettings {
            debounce: Duration::from_millis(debounce),
            max_delay: Duration::from_millis(max_delay),
        };
        assert_eq!(quiet_after(&[], settings(100, 2_000)).await, 100);
        assert_eq!(quiet_after(&[], settings(700, 2_000)).await, 700);
        assert_eq!(quiet_after(&[50, 120, 400], settings(100, 2_000)).await, 220);
        let many: Vec<u64> = (1..1_000).map(|n| n * 50).collect();
        assert_eq!(quiet_after(&many, settings(100, 2_000)).await, 2_000);
        assert_eq!(quiet_after(&many, settings(100, 30)).await, 30);
    }
}
