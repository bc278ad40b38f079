//! Runs of scripts: they call what a catalog offers, through the pipeline of all calls, and keep a journal.
//!
//! A call that waits for approval pauses its run. Whoever resumes it, also on another host with the same store, runs the
//! script again: calls of the journal are answered from there, and the run goes on where it paused.

mod call_target;
mod in_progress;
mod persist;
mod run_write_queue;

use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tenon_runs::{Journal, JournalEntry, NewRun, ResumeCaller, Run, RunError, RunHold, Runs};
use tenon_types::text::cut;
use tokio::task::JoinSet;

use self::in_progress::RunInProgress;
use self::run_write_queue::RunWriteQueue;
use super::Platform;
use crate::call::{Caller, CurrentCall};
use crate::capability::services::LazyInStore;
use crate::observe::history::milliseconds;
use crate::register::{CatalogFilter, ToolCatalog};
use crate::runtime::{RunEnd, RunLimits, RunScript, Threads};

/// What runs use besides the plugins.
pub(super) struct RunServices {
    runs: LazyInStore<Runs>,
    threads: Arc<Threads>,
    limits: RunLimits,
    ended: Arc<RunWriteQueue>,
    /// What is written after runs were answered that the store knows.
    writing: Mutex<JoinSet<()>>,
}

impl RunServices {
    pub(super) fn new(runs: LazyInStore<Runs>, limits: RunLimits) -> Self {
        let ended = RunWriteQueue::new(runs.clone());
        Self { runs, threads: Threads::new(), limits, ended, writing: Mutex::default() }
    }

    /// Waits until everything is written.
    pub(super) async fn flush(&self) {
        self.ended.write().await;
        while poll_fn(|context| lock(&self.writing).poll_join_next(context)).await.is_some() {}
    }

    /// Has something written in the background.
    fn write(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut writing = lock(&self.writing);
        while writing.try_join_next().is_some() {}
        writing.spawn(work);
    }
}

/// A tool that a run has called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolCallCount {
    /// The tool, by the name that callers use.
    pub tool: String,
    /// How often it was called.
    pub times: u64,
}

/// The tool, and how often it was called where that was more than once: `files__read (3 times)`.
impl fmt::Display for ToolCallCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times {
            1 => f.write_str(&self.tool),
            times => write!(f, "{} ({times} times)", self.tool),
        }
    }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunReport {
    /// The run.
    pub id: String,
    /// How it ended, or that it is paused.
    pub outcome: RunOutcome,
    /// What it printed.
    pub printed: String,
    /// The tools that it has called, in all its attempts, in the order in which they first answered; the first fifty. Those
    /// that it was not waited for come last.
    pub called: Vec<ToolCallCount>,
    /// What it used.
    pub usage: RunUsage,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunOutcome {
    /// With a value.
    Done(Value),
    /// With an error.
    Failed {
        /// A code for programs: `invalid-script`, `invalid-input` for `data`, `failed` for what the script throws, `trapped`, `limit`,
        /// `invalid-result`, `diverged`, `state`, or the code of a call that had to be approved where nobody could be asked; in what is kept of a run that nobody waited for, `cancelled`.
        code: String,
        /// What is wrong, with its place in the script where it has one. It is cut where it is longer than results may be.
        message: String,
    },
    /// It waits for the approval of a call, and can be resumed.
    Paused {
        /// The approval.
        approval: String,
        /// The tool that would be called.
        tool: String,
        /// Which call it is, and how it is approved.
        message: String,
    },
}

/// What a run used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunUsage {
    /// How many calls it made; those that were answered from the journal count as well.
    pub calls: u64,
    /// How many operations of the script it took in this attempt, which began the script again.
    pub operations: u64,
    /// How long it took in all its attempts, in microseconds. Time in which it was paused or somebody was asked does not count.
    pub wall_micros: u64,
}

/// What a run is of: a script that begins, or one that goes on.
enum NewOrResumedRun {
    New(NewRun),
    Resumed(Box<RunHold>, Journal),
}

impl Platform {
    /// Makes a catalog of the tools that somebody is offered, as the plugins are now.
    pub fn catalog(&self, filter: CatalogFilter) -> ToolCatalog {
        ToolCatalog::new(&self.registry(), filter)
    }

    /// Runs scripts that call tools of a catalog as functions, on behalf of a caller.
    ///
    /// ```no_run
    /// use serde_json::json;
    /// use std::sync::Arc;
    /// use tenon_host::Caller;
    /// use tenon_host::runs::{CatalogFilter, RunOutcome};
    ///
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::runs::RunError> {
    /// let catalog = Arc::new(platform.catalog(CatalogFilter::default()));
    /// let script = "parallel(data.paths.map(|path| || files.read(#{ path: path })))";
    /// let runner = platform.runner(&catalog, Caller::default());
    /// match runner.run(script.into(), json!({ "paths": ["/a", "/b"] })).await?.outcome {
    ///     RunOutcome::Done(value) => println!("{value}"),
    ///     other => println!("{other:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn runner(&self, catalog: &Arc<ToolCatalog>, caller: Caller) -> ScriptRunner {
        let (admits, project) = (Arc::new(|_: &str| Ok(())), None);
        ScriptRunner { platform: self.clone(), catalog: catalog.clone(), caller, admits, project }
    }

    /// Returns a run and its journal, if it is kept.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn run(&self, id: &str) -> Result<Option<(Run, Vec<JournalEntry>)>, RunError> {
        let id = id.to_string();
        let read = move |runs: &Arc<Runs>, now| match runs.get(&id, now)? {
            Some(run) => {
                let journal = runs.journal(&run.id)?;
                Ok(Some((run, journal)))
            }
            None => Ok(None),
        };
        self.inner.runs.ended.write().await;
        self.inner.runs.runs.run(read).await
    }

    /// Cancels a paused run, whoever began it: it goes on no more. What it has done stays done. Its call still waits for an
    /// approval, until that is denied or its time is over.
    ///
    /// # Errors
    ///
    /// If there is no such run, it is not paused, or the store fails.
    pub async fn cancel_run(&self, id: &str) -> Result<(), RunError> {
        let id = id.to_string();
        self.inner.runs.ended.write().await;
        self.inner.runs.runs.run(move |runs, now| runs.cancel(&id, now).map(drop)).await
    }

    /// Returns all runs that are kept and can be read, the oldest first.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn runs(&self) -> Result<Vec<Run>, RunError> {
        self.inner.runs.ended.write().await;
        self.inner.runs.runs.run(|runs, now| runs.list(now)).await
    }
}

/// Runs scripts on behalf of a caller.
#[derive(Clone)]
pub struct ScriptRunner {
    platform: Platform,
    catalog: Arc<ToolCatalog>,
    caller: Caller,
    admits: Arc<Admits>,
    project: Option<String>,
}

/// Says whether a tool may be called now, and else why not.
type Admits = dyn Fn(&str) -> Result<(), String> + Send + Sync;

impl ScriptRunner {
    /// Asks before each call whether the tool of this name may be called now. The script gets to see why not.
    #[must_use]
    pub fn admitting(
        self,
        admits: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { admits: Arc::new(admits), ..self }
    }

    /// Has the runs belong to a project, by its folder: they go on only where they belong to the same one. Hosts that share a
    /// store, and may have their folders elsewhere, leave it out.
    #[must_use]
    pub fn in_project(self, folder: impl Into<String>) -> Self {
        Self { project: Some(folder.into()), ..self }
    }

    /// Runs a script, which gets `data`.
    ///
    /// # Errors
    ///
    /// If the host fails. What is wrong with the script is an outcome.
    pub async fn run(&self, script: String, data: Value) -> Result<RunReport, RunError> {
        let of = |text: &Option<Arc<str>>| text.as_deref().map(str::to_string);
        let mut new = NewRun::new(script, data);
        new.principal = of(&self.caller.principal);
        new.profile = of(&self.caller.profile);
        new.agent.clone_from(&self.caller.agent_id);
        new.session.clone_from(&self.caller.session_id);
        new.project.clone_from(&self.project);
        self.go_on(Runs::new_id()?, NewOrResumedRun::New(new)).await
    }

    /// Resumes a run that is paused. It has to be of the same principal, the same profile and the same project. Where a call
    /// of it has waited for an approval, and its plugin is another one by now, it is made with an approval only.
    ///
    /// # Errors
    ///
    /// If there is no such run of theirs, it is not paused, it belongs to another project, or the store fails.
    pub async fn resume(&self, id: &str) -> Result<RunReport, RunError> {
        let Caller { principal, profile, .. } = self.caller.clone();
        let (resumed, project) = (id.to_string(), self.project.clone());
        // It may have ended a moment ago.
        self.platform.inner.runs.ended.write().await;
        let resume = move |runs: &Arc<Runs>, now| {
            let (principal, profile) = (principal.as_deref(), profile.as_deref());
            runs.resume(
                &resumed,
                ResumeCaller { principal, profile, project: project.as_deref() },
                now,
            )
        };
        let (hold, journal) = self.platform.inner.runs.runs.run(resume).await?;
        self.go_on(hold.run().id.clone(), NewOrResumedRun::Resumed(hold.into(), journal)).await
    }

    async fn go_on(&self, id: String, begin: NewOrResumedRun) -> Result<RunReport, RunError> {
        let began = Instant::now();
        let services = &self.platform.inner.runs;
        let limits = services.limits.clone();
        let (of, at, before) = match &begin {
            NewOrResumedRun::New(new) => (new, milliseconds(SystemTime::now()), Duration::ZERO),
            NewOrResumedRun::Resumed(hold, _) => {
                let run = hold.run();
                (&run.of, run.began, Duration::from_micros(run.wall_micros))
            }
        };
        // The script sees the time that is written, and so the same when it is resumed.
        let sees = SystemTime::UNIX_EPOCH + Duration::from_millis(at);
        let script = (of.script.clone(), of.data.clone(), sees);
        let current_call = CurrentCall::new(self.caller.clone());
        let host = Arc::new(RunInProgress::new(self, &id, at, begin, &current_call));
        let functions = self.catalog.functions().clone();
        let run = RunScript::run(script, functions, &limits, host.clone(), &services.threads);
        let run = async {
            let mut run = pin!(run);
            match tokio::time::timeout(persist::UNWRITTEN, &mut run).await {
                Ok(ran) => return ran,
                Err(_) => host.advance(|unwritten| unwritten.lasts = true),
            }
            // Also while nobody looks after this future: a call of it may wait for a user.
            tokio::spawn(persist::write_noted(Arc::downgrade(&host)));
            run.await
        };
        // Time in which somebody is asked does not count.
        let left = limits.wall.saturating_sub(before);
        let ran = match left.is_zero() {
            // It does not even begin.
            true => None,
            false => current_call.in_time(left, run).await,
        };
        let took = before + began.elapsed().saturating_sub(current_call.stood());
        let wall_micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let usage = |calls, operations| RunUsage { calls, operations, wall_micros };
        let failed =
            |code: &str, message: String| RunOutcome::Failed { code: code.into(), message };
        let (outcome, printed, usage) = match ran {
            None => {
                let mut message = format!("it took longer than {:?} (`runs.wall`)", limits.wall);
                let unfinished = host.unfinished();
                if !unfinished.is_empty() {
                    let names: Vec<_> =
                        unfinished.iter().filter_map(|of| of.call.as_deref()).collect();
                    message +=
                        &format!("; how the call of {} ended is not known", names.join(" and "));
                }
                (failed("limit", message), String::new(), usage(host.calls(), 0))
            }
            Some(Err(failure)) => (failed("host", failure.to_string()), String::new(), usage(0, 0)),
            Some(Ok(result)) => {
                let outcome = match result.end {
                    RunEnd::Value(value) => match host.check_all_done() {
                        Ok(()) => RunOutcome::Done(value),
                        Err(mismatch) => failed(in_progress::DIVERGED, mismatch.to_string()),
                    },
                    RunEnd::Failed { code, message } => failed(code, message),
                    RunEnd::Stopped => host.stopped(),
                };
                (outcome, result.printed, usage(result.calls, result.operations))
            }
        };
        let outcome = match outcome {
            RunOutcome::Failed { code, message } if message.len() > limits.output => {
                failed(&code, format!("{}…", cut(&message, limits.output)))
            }
            outcome => outcome,
        };
        let called = host.called();
        let outcome = match outcome {
            // The plugins here may be others than those that it began with.
            RunOutcome::Failed { code, message } if code == "invalid-script" => {
                match host.undo().await {
                    true => persist::still_paused(&id, code, &message),
                    false => RunOutcome::Failed { code, message },
                }
            }
            outcome => host.keep(outcome, &printed, wall_micros).await,
        };
        Ok(RunReport { id, outcome, printed, called, usage })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
