//! How a run gets into the store: when it begins, what it has done by now, and how it ended.

use futures::FutureExt;
use futures::future::Either;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};
use tenon_config::diagnostic::chain;
use tenon_runs::{JournalEntry, NewRun, RunError, RunHold, RunState, Runs, UnsavedRun};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::in_progress::{DIVERGED, RunInProgress, Stopped};
use super::run_write_queue::warn_not_kept;
use super::{RunOutcome, lock};
use crate::observe::history::milliseconds;

/// How long a run may go on before the store learns of it. One that has ended by then is written once, as what it came to.
pub(super) const UNWRITTEN: Duration = Duration::from_millis(1);

/// How often it is written what a run has done that goes on.
const NOTE_EVERY: Duration = Duration::from_millis(250);

/// How far a run is in the store.
pub(super) enum RunPersistence {
    /// It has called nothing yet, or began a moment ago.
    Unwritten(UnwrittenRun),
    /// It is being written.
    Begins(JoinHandle<Result<RunHold, RunError>>),
    Begun(Box<RunHold>),
    Over,
}

/// A run that the store does not know.
pub(super) struct UnwrittenRun {
    new: Box<NewRun>,
    /// It has called something.
    pub(super) calls: bool,
    /// It takes longer than [`UNWRITTEN`].
    pub(super) lasts: bool,
}

impl UnwrittenRun {
    pub(super) fn new(new: NewRun) -> Self {
        Self { new: new.into(), calls: false, lasts: false }
    }
}

impl RunInProgress {
    /// Notes how far a run is that the store does not know. Once it calls something and lasts, that is written while it goes
    /// on.
    pub(super) fn advance(&self, change: impl FnOnce(&mut UnwrittenRun)) {
        let mut kept = lock(&self.kept);
        *kept = match std::mem::replace(&mut *kept, RunPersistence::Over) {
            RunPersistence::Unwritten(mut unwritten) => {
                change(&mut unwritten);
                match unwritten.calls && unwritten.lasts {
                    true => RunPersistence::Begins(self.write_begin(*unwritten.new)),
                    false => RunPersistence::Unwritten(unwritten),
                }
            }
            other => other,
        };
    }

    fn write_begin(&self, new: NewRun) -> JoinHandle<Result<RunHold, RunError>> {
        let (id, at) = (self.id.clone(), self.at);
        let begin = move |runs: &Arc<Runs>, _| runs.begin(id, new, at);
        tokio::spawn(self.platform.inner.runs.runs.run(begin))
    }

    /// What is not written yet, with the calls that have no answer.
    fn rest(&self) -> Vec<JournalEntry> {
        let mut noted = lock(&self.noted);
        let mut entries = noted.take();
        entries.extend(self.unfinished());
        entries
    }

    /// Writes what was noted by now, where the store knows the run.
    async fn write_noted(&self) {
        let _writing = self.writing.lock().await;
        let begins = {
            let mut kept = lock(&self.kept);
            match std::mem::replace(&mut *kept, RunPersistence::Over) {
                RunPersistence::Begins(begins) if begins.is_finished() => begins.now_or_never(),
                other => {
                    *kept = other;
                    None
                }
            }
        };
        if let Some(begun) = begins {
            let begun = begun.expect("it does not panic, and is not aborted");
            *lock(&self.kept) = match begun {
                Ok(hold) => RunPersistence::Begun(hold.into()),
                Err(error) => RunPersistence::Begins(tokio::spawn(async { Err(error) })),
            };
        }
        if !matches!(*lock(&self.kept), RunPersistence::Begun(_)) || lock(&self.noted).is_empty() {
            return;
        }
        let (id, entries) = (self.id.clone(), Arc::new(lock(&self.noted).take()));
        let written = entries.clone();
        let write = move |runs: &Arc<Runs>, now| runs.note(&id, &written, now);
        if let Err(error) = self.platform.inner.runs.runs.run(write).await {
            warn_not_kept(&error);
            // What was written in part is written again. Of one place in the run, each entry says the same.
            lock(&self.noted).put_back(Arc::unwrap_or_clone(entries));
        }
    }

    /// What becomes of a run that nobody waits for any more. How the calls ended that have no answer is not known.
    fn given_up(&self) -> (RunState, Vec<JournalEntry>) {
        let has_unfinished = !self.unfinished().is_empty();
        let state = match has_unfinished {
            true => RunState::Unknown,
            false => RunState::Failed {
                code: RunState::CANCELLED.into(),
                message: "nobody waited for it any more".into(),
                printed: String::new(),
            },
        };
        (state, self.rest())
    }

    /// Has a run that could not go on here be paused as before. Says whether it is.
    pub(super) async fn undo(&self) -> bool {
        let _writing = self.writing.lock().await;
        let kept = std::mem::replace(&mut *lock(&self.kept), RunPersistence::Over);
        let RunPersistence::Begun(hold) = kept else { return false };
        let undone = self.platform.inner.runs.runs.run(move |_, now| hold.undo(now)).await;
        undone.unwrap_or_else(|error| {
            tracing::warn!("a run is not paused again: {}", chain(&error));
            false
        })
    }

    /// How a run was paused that stays so: a plugin is another one here than the one that its call waited for, or is not here.
    fn stays_paused(&self, outcome: &RunOutcome) -> Option<RunState> {
        let is_other_target = matches!(&*lock(&self.stopped), Some(Stopped::OtherTarget { .. }));
        match outcome {
            RunOutcome::Failed { code, .. } if is_other_target && code == DIVERGED => {
                self.paused_at.clone()
            }
            _ => None,
        }
    }

    /// Writes how far the run came, which took so long by now. One that is paused or was resumed is kept when this returns;
    /// another one that has ended is written afterwards.
    pub(super) async fn keep(
        &self,
        outcome: RunOutcome,
        printed: &str,
        wall_micros: u64,
    ) -> RunOutcome {
        let left_out = lock(&self.noted).left_out().map(str::to_string);
        let stays_paused = self.stays_paused(&outcome).filter(|_| left_out.is_none());
        let outcome = match (outcome, left_out) {
            (RunOutcome::Paused { approval, tool, .. }, Some(left_out)) => {
                let message = format!(
                    "the call of {tool} has to be approved, and the run cannot pause for it: the answer of {left_out} was \
                     too long to be kept; `tenon approve {approval}` approves the call, and then the script can be run anew"
                );
                RunOutcome::Failed { code: "limit".into(), message }
            }
            (outcome, _) => outcome,
        };
        let printed = printed.to_string();
        let paused = match &*lock(&self.stopped) {
            Some(Stopped::Paused { call, .. }) => Some(call.clone()),
            _ => None,
        };
        let state = stays_paused.unwrap_or_else(|| match &outcome {
            RunOutcome::Done(value) => RunState::Done { value: value.clone(), printed },
            RunOutcome::Failed { code, message } => {
                let (code, message) = (code.clone(), message.clone());
                RunState::Failed { code, message, printed }
            }
            RunOutcome::Paused { approval, tool, .. } => {
                let (approval, tool) = (approval.clone(), tool.clone());
                let arguments = paused.as_ref().map(|paused| paused.arguments);
                let (key, call) = paused.map(|paused| (paused.key, paused.call)).unzip();
                RunState::Paused { approval, tool, key: key.unwrap_or_default(), call, arguments }
            }
        });
        // Nobody waits for this where nothing was written yet.
        let _writing = self.writing.lock().await;
        let entries = self.rest();
        let kept = std::mem::replace(&mut *lock(&self.kept), RunPersistence::Over);
        let is_paused = matches!(state, RunState::Paused { .. });
        let waiting = lock(&self.waiting).clone();
        let waits = is_paused || matches!(kept, RunPersistence::Begun(_));
        let begins = match kept {
            // What never called anything is nothing that anybody looks for.
            RunPersistence::Unwritten(UnwrittenRun { calls: false, .. }) | RunPersistence::Over => {
                return outcome;
            }
            RunPersistence::Unwritten(UnwrittenRun { new, .. }) if is_paused => {
                Either::Left(self.write_begin(*new))
            }
            RunPersistence::Unwritten(UnwrittenRun { new, .. }) => {
                let ended = UnsavedRun::new(self.id.clone(), *new, self.at, state, entries);
                self.platform.inner.runs.ended.add(ended, &self.runtime);
                return outcome;
            }
            RunPersistence::Begins(begins) => Either::Left(begins),
            RunPersistence::Begun(hold) => Either::Right(hold),
        };
        let runs = self.platform.inner.runs.runs.clone();
        let (told, written) = oneshot::channel();
        // It is written also where nobody waits for the run any more.
        self.platform.inner.runs.write(async move {
            let hold = match begins {
                Either::Left(begins) => {
                    begins.await.expect("it does not panic, and is not aborted")
                }
                Either::Right(hold) => Ok(*hold),
            };
            let ended = match hold {
                Ok(mut hold) => {
                    if is_paused {
                        hold.note_pause(wall_micros, waiting);
                    }
                    runs.run(move |_, now| hold.end(state, &entries, now)).await.map(drop)
                }
                Err(error) => Err(error),
            };
            // Whoever is told says so, if it is a failure.
            if let Err(Err(error)) = told.send(ended) {
                warn_not_kept(&error);
            }
        });
        if !waits {
            return outcome;
        }
        match written.await {
            Ok(Ok(())) => match outcome {
                RunOutcome::Failed { code, message } if is_paused => {
                    still_paused(&self.id, code, &message)
                }
                outcome => outcome,
            },
            Ok(Err(error)) if is_paused => {
                let code = match &error {
                    RunError::TooManyPaused(_) => "limit",
                    _ => "state",
                };
                let message = format!("it cannot be resumed: {}", chain(&error));
                RunOutcome::Failed { code: code.into(), message }
            }
            Ok(Err(error)) => {
                warn_not_kept(&error);
                outcome
            }
            Err(_) => {
                let message = "the host is ending".to_string();
                RunOutcome::Failed { code: "state".into(), message }
            }
        }
    }
}

impl Drop for RunInProgress {
    /// Nobody waits for the run any more.
    fn drop(&mut self) {
        let kept = std::mem::replace(&mut *lock(&self.kept), RunPersistence::Over);
        if matches!(
            kept,
            RunPersistence::Unwritten(UnwrittenRun { calls: false, .. }) | RunPersistence::Over
        ) {
            return;
        }
        let (state, entries) = self.given_up();
        // It may be a script's thread that has waited last.
        let runtime = &self.runtime;
        match kept {
            RunPersistence::Unwritten(UnwrittenRun { new, .. }) => {
                let ended = UnsavedRun::new(self.id.clone(), *new, self.at, state, entries);
                self.platform.inner.runs.ended.add(ended, runtime);
            }
            RunPersistence::Begins(begins) => drop(runtime.spawn(async {
                if let Ok(Ok(hold)) = begins.await {
                    let end = move || end_given_up(hold, state, &entries);
                    drop(tokio::task::spawn_blocking(end).await);
                }
            })),
            RunPersistence::Begun(hold) => {
                drop(runtime.spawn_blocking(move || end_given_up(*hold, state, &entries)));
            }
            RunPersistence::Over => {}
        }
    }
}

/// That something is wrong for which a run that was resumed does not end.
pub(super) fn still_paused(id: &str, code: String, message: &str) -> RunOutcome {
    let message = format!("{message}\nthe run is still paused; `tenon runs cancel {id}` ends it");
    RunOutcome::Failed { code, message }
}

/// Writes now and then what a run has done, as long as there is one.
pub(super) async fn write_noted(run: Weak<RunInProgress>) {
    loop {
        tokio::time::sleep(NOTE_EVERY).await;
        match run.upgrade() {
            Some(run) => run.write_noted().await,
            None => return,
        }
    }
}

fn end_given_up(hold: RunHold, state: RunState, entries: &[JournalEntry]) {
    if let Err(error) = hold.end(state, entries, milliseconds(SystemTime::now())) {
        warn_not_kept(&error);
    }
}
