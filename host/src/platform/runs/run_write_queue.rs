//! Runs that were answered and are not in the store yet. Those that end within a moment are written in one step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenon_config::diagnostic::chain;
use tenon_runs::{RunError, Runs, UnsavedRun};
use tokio::runtime::Handle;

use crate::capability::services::LazyInStore;

/// How long a run waits for others before it is written.
const DELAY: Duration = Duration::from_millis(10);

/// After this time a task that was to write them has been dropped with its runtime.
const OVERDUE: Duration = Duration::from_secs(1);

/// The most runs that are written in one step.
const MAX_TOGETHER: usize = 100;

/// How many bytes of runs wait for a store that fails. Those that have waited for the longest time go for others.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// Runs that have ended.
pub(super) struct RunWriteQueue {
    runs: LazyInStore<Runs>,
    waiting: Mutex<UnwrittenRuns>,
    /// Held while they are written.
    writing: tokio::sync::Mutex<()>,
}

/// The runs that wait to be written.
#[derive(Default)]
struct UnwrittenRuns {
    runs: Vec<UnsavedRun>,
    /// When a task was spawned that writes them.
    since: Option<Instant>,
}

impl RunWriteQueue {
    pub(super) fn new(runs: LazyInStore<Runs>) -> Arc<Self> {
        let (waiting, writing) = Default::default();
        Arc::new(Self { runs, waiting, writing })
    }

    fn waiting(&self) -> MutexGuard<'_, UnwrittenRuns> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a run written, on this runtime.
    pub(super) fn add(self: &Arc<Self>, run: UnsavedRun, runtime: &Handle) {
        let mut waiting = self.waiting();
        waiting.runs.push(run);
        if waiting.since.is_some_and(|since| since.elapsed() < OVERDUE) {
            return;
        }
        waiting.since = Some(Instant::now());
        drop(waiting);
        let ended = self.clone();
        runtime.spawn(async move {
            tokio::time::sleep(DELAY).await;
            ended.write().await;
        });
    }

    /// Writes all that have ended by now.
    pub(super) async fn write(&self) {
        let _writing = self.writing.lock().await;
        let UnwrittenRuns { runs, .. } = std::mem::take(&mut *self.waiting());
        if runs.is_empty() {
            return;
        }
        let runs = Arc::new(Mutex::new(runs));
        let left = runs.clone();
        let keep = move |store: &Arc<Runs>, now| {
            let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
            while !runs.is_empty() {
                let count = runs.len().min(MAX_TOGETHER);
                keep(store, &runs[..count], now)?;
                runs.drain(..count);
            }
            Ok(())
        };
        if let Err(error) = self.runs.run(keep).await {
            warn_not_kept(&error);
            // They are written with the next one, if the store works by then.
            let mut left =
                std::mem::take(&mut *left.lock().unwrap_or_else(PoisonError::into_inner));
            let mut waiting = self.waiting();
            left.append(&mut waiting.runs);
            let mut room = MAX_WAITING_BYTES;
            let has_room = |run: &&UnsavedRun| {
                let length = run.length();
                let fits = length <= room;
                room = room.saturating_sub(length);
                fits
            };
            let kept = left.iter().rev().take_while(has_room).count();
            left.drain(..left.len() - kept);
            waiting.runs = left;
        }
    }
}

/// Keeps runs. Where one of them cannot be kept, the others are.
fn keep(store: &Runs, runs: &[UnsavedRun], now: u64) -> Result<(), RunError> {
    match store.keep(runs, now) {
        // The next time it may be another.
        Err(error @ RunError::Store(_)) if !error.is_of_size() => Err(error),
        Err(_) => {
            for run in runs {
                if let Err(error) = store.keep(std::slice::from_ref(run), now) {
                    warn_not_kept(&error);
                }
            }
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Says in the operator's log that the store does not know how a run ended.
pub(super) fn warn_not_kept(error: &RunError) {
    tracing::warn!("how a run ended is not kept: {}", chain(error));
}
