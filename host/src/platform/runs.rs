//! Runs of scripts: they call what a catalog offers, through the pipeline of all calls, and keep a journal.
//!
//! A call that waits for approval pauses its run. Whoever resumes it, also on another host with the same store, runs the
//! script again: calls of the journal are answered from there, and the run goes on where it paused.

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::Either;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};
use tenon_config::diagnostic::chain;
use tenon_runs::{
    ArgumentsDigest, EndedRun, Journal, JournalAnswer, JournalEntry, JournalMismatch, NewEntries,
    NewRun, Run, RunError, RunHold, RunState, Runs,
};
use tenon_types::{McpOperation, mcp_json};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use super::Platform;
use super::ended_runs::{EndedRuns, warn_not_kept};
use crate::call::{BeginMark, Call, CallError, CallRefusal, Caller, CurrentCall};
use crate::capability::services::InStore;
use crate::observe::history::milliseconds;
use crate::register::{CatalogFilter, ToolCatalog};
use crate::runtime::{
    RunAnswer, RunCall, RunEnd, RunHost, RunLimits, RunLookUp, RunScript, RunStop, Threads,
    value_of,
};

/// What runs use besides the plugins.
pub(super) struct RunServices {
    runs: InStore<Runs>,
    threads: Arc<Threads>,
    limits: RunLimits,
    ended: Arc<EndedRuns>,
    /// What is written after runs were answered that the store knows.
    writing: Mutex<JoinSet<()>>,
}

impl RunServices {
    pub(super) fn new(runs: InStore<Runs>, limits: RunLimits) -> Self {
        let ended = EndedRuns::new(runs.clone());
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

/// How long a run may go on before the store learns of it. One that has ended by then is written once, as what it came to.
const UNWRITTEN: Duration = Duration::from_millis(1);

/// How often it is written what a run has done that goes on.
const NOTE_EVERY: Duration = Duration::from_millis(250);

/// The most tools that a report names.
const MAX_CALLED: usize = 50;

/// A tool that a run has called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CalledTool {
    /// The tool, by the name that callers use.
    pub tool: String,
    /// How often it was called.
    pub times: u64,
}

/// The tool, and how often it was called where that was more than once: `files__read (3 times)`.
impl fmt::Display for CalledTool {
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
    pub called: Vec<CalledTool>,
    /// What it used, in this attempt.
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
        /// `invalid-result`, `diverged` or `state`; in what is kept of a run that nobody waited for, `cancelled`.
        code: String,
        /// What is wrong, with its place in the script where it has one.
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
    /// How many operations of the script it took.
    pub operations: u64,
    /// How long it took, in microseconds.
    pub wall_micros: u64,
}

/// What a run is of: a script that begins, or one that goes on.
enum Begin {
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
    pub fn runner(&self, catalog: &Arc<ToolCatalog>, caller: Caller) -> Runner {
        let admits = Arc::new(|_: &str| Ok(()));
        Runner { platform: self.clone(), catalog: catalog.clone(), caller, admits }
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

    /// Cancels a paused run, whoever began it: it goes on no more. What it has done stays done.
    ///
    /// # Errors
    ///
    /// If there is no such run, it is not paused, or the store fails.
    pub async fn cancel_run(&self, id: &str) -> Result<(), RunError> {
        let id = id.to_string();
        self.inner.runs.ended.write().await;
        self.inner.runs.runs.run(move |runs, now| runs.cancel(&id, now)).await
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
pub struct Runner {
    platform: Platform,
    catalog: Arc<ToolCatalog>,
    caller: Caller,
    admits: Arc<Admits>,
}

/// Says whether a tool may be called now, and else why not.
type Admits = dyn Fn(&str) -> Result<(), String> + Send + Sync;

impl Runner {
    /// Asks before each call whether the tool of this name may be called now. The script gets to see why not.
    #[must_use]
    pub fn admitting(
        self,
        admits: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { admits: Arc::new(admits), ..self }
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
        self.go_on(Runs::new_id()?, Begin::New(new)).await
    }

    /// Resumes a run that is paused. It has to be of the same principal and the same profile.
    ///
    /// # Errors
    ///
    /// If there is no such run of theirs, it is not paused, or the store fails.
    pub async fn resume(&self, id: &str) -> Result<RunReport, RunError> {
        let Caller { principal, profile, .. } = self.caller.clone();
        let resumed = id.to_string();
        // It may have ended a moment ago.
        self.platform.inner.runs.ended.write().await;
        let resume = move |runs: &Arc<Runs>, now| {
            runs.resume(&resumed, principal.as_deref(), profile.as_deref(), now)
        };
        let (hold, journal) = self.platform.inner.runs.runs.run(resume).await?;
        self.go_on(hold.run().id.clone(), Begin::Resumed(hold.into(), journal)).await
    }

    async fn go_on(&self, id: String, begin: Begin) -> Result<RunReport, RunError> {
        let began = Instant::now();
        let services = &self.platform.inner.runs;
        let limits = services.limits.clone();
        let (of, at) = match &begin {
            Begin::New(new) => (new, milliseconds(SystemTime::now())),
            Begin::Resumed(hold, _) => (&hold.run().of, hold.run().began),
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
            match tokio::time::timeout(UNWRITTEN, &mut run).await {
                Ok(ran) => return ran,
                Err(_) => host.advance(|unwritten| unwritten.lasts = true),
            }
            // Also while nobody looks after this future: a call of it may wait for a user.
            tokio::spawn(write_noted(Arc::downgrade(&host)));
            run.await
        };
        // Time in which somebody is asked does not count.
        let ran = current_call.in_time(limits.wall, run).await;
        let usage = |calls, operations| RunUsage {
            calls,
            operations,
            wall_micros: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
        };
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
                    RunEnd::Value(value) => RunOutcome::Done(value),
                    RunEnd::Failed { code, message } => failed(code, message),
                    RunEnd::Stopped => host.stopped(),
                };
                (outcome, result.printed, usage(result.calls, result.operations))
            }
        };
        let called = host.called();
        let outcome = match &outcome {
            // The plugins here may be others than those that it began with.
            RunOutcome::Failed { code, message } if code == "invalid-script" => {
                match host.undo().await {
                    true => failed(code, format!("{message}\nthe run is still paused")),
                    false => outcome,
                }
            }
            _ => host.keep(outcome, &printed).await,
        };
        Ok(RunReport { id, outcome, printed, called, usage })
    }
}

/// A run that goes on: what it asks for is called, noted and, where an earlier attempt has done it, answered from there.
struct RunInProgress {
    platform: Platform,
    catalog: Arc<ToolCatalog>,
    admits: Arc<Admits>,
    id: String,
    /// When it began, in milliseconds since 1970.
    at: u64,
    /// Where it is written.
    runtime: Handle,
    caller: Caller,
    replayed: Journal,
    /// The call that an earlier attempt has paused for.
    paused_at: Option<PausedCall>,
    /// What was answered, and is not written yet.
    noted: Mutex<NewEntries>,
    /// How many calls were answered.
    answered: AtomicU64,
    /// The calls that have no answer. One is noted and taken from here while `noted` is locked.
    unanswered: Mutex<Vec<UnansweredCall>>,
    /// The first tools whose calls have reached a plugin, and how often they did.
    called: Mutex<Vec<(Arc<str>, u64)>>,
    stopped: Mutex<Option<Stopped>>,
    /// Held while it is written how far it came.
    writing: tokio::sync::Mutex<()>,
    kept: Mutex<Kept>,
}

/// A call of a run: its place, what is called, and the digest of its arguments.
type CallAt<'a> = (&'a str, &'a str, ArgumentsDigest);

/// The call that a run pauses for.
#[derive(Clone)]
struct PausedCall {
    key: String,
    call: String,
    arguments: ArgumentsDigest,
}

impl PausedCall {
    /// That of a run which was resumed.
    fn of(hold: &RunHold) -> Option<Self> {
        match hold.paused_at() {
            Some(RunState::Paused {
                key, call: Some(call), arguments: Some(arguments), ..
            }) => {
                let (key, call, arguments) = (key.clone(), call.clone(), *arguments);
                Some(Self { key, call, arguments })
            }
            _ => None,
        }
    }
}

/// A call that has no answer yet.
struct UnansweredCall {
    key: String,
    name: Arc<str>,
    arguments: ArgumentsDigest,
    began: Instant,
    begins: BeginMark,
}

/// Why a run goes no further.
enum Stopped {
    Paused { approval: String, tool: String, call: PausedCall, message: String },
    Diverged(JournalMismatch),
}

/// How far a run is in the store.
enum Kept {
    /// It has called nothing yet, or began a moment ago.
    Unwritten(Unwritten),
    /// It is being written.
    Begins(JoinHandle<Result<RunHold, RunError>>),
    Begun(Box<RunHold>),
    Over,
}

/// A run that the store does not know.
struct Unwritten {
    new: Box<NewRun>,
    /// It has called something.
    calls: bool,
    /// It takes longer than [`UNWRITTEN`].
    lasts: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RunInProgress {
    fn new(
        runner: &Runner,
        id: &str,
        at: u64,
        begin: Begin,
        current_call: &Arc<CurrentCall>,
    ) -> Self {
        let Runner { platform, catalog, admits, .. } = runner;
        let caller = current_call.calls_others_for();
        let (kept, replayed, paused_at) = match begin {
            Begin::New(new) => {
                let unwritten = Unwritten { new: new.into(), calls: false, lasts: false };
                (Kept::Unwritten(unwritten), Journal::default(), None)
            }
            Begin::Resumed(hold, journal) => {
                let paused_at = PausedCall::of(&hold);
                (Kept::Begun(hold), journal, paused_at)
            }
        };
        let run = Self {
            platform: platform.clone(),
            catalog: catalog.clone(),
            admits: admits.clone(),
            id: id.to_string(),
            at,
            runtime: Handle::current(),
            caller: Caller { run: Some(id.into()), timeout: None, ..caller },
            noted: Mutex::new(NewEntries::after(&replayed)),
            replayed,
            paused_at,
            answered: AtomicU64::new(0),
            unanswered: Mutex::default(),
            called: Mutex::default(),
            stopped: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            kept: Mutex::new(kept),
        };
        // What earlier attempts have called is done as well.
        for call in run.replayed.entries().filter_map(|entry| entry.call.clone()) {
            if run.catalog.tool(&call).is_some() {
                run.note_called(call);
            }
        }
        run
    }

    /// Notes how far a run is that the store does not know. Once it calls something and lasts, that is written while it goes
    /// on.
    fn advance(&self, change: impl FnOnce(&mut Unwritten)) {
        let mut kept = lock(&self.kept);
        *kept = match std::mem::replace(&mut *kept, Kept::Over) {
            Kept::Unwritten(mut unwritten) => {
                change(&mut unwritten);
                match unwritten.calls && unwritten.lasts {
                    true => Kept::Begins(self.write_begin(*unwritten.new)),
                    false => Kept::Unwritten(unwritten),
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

    /// How many calls there were.
    fn calls(&self) -> u64 {
        self.answered.load(Ordering::Relaxed) + lock(&self.unanswered).len() as u64
    }

    fn called(&self) -> Vec<CalledTool> {
        for call in self.unfinished().into_iter().filter_map(|entry| entry.call) {
            self.note_called(call);
        }
        let called = lock(&self.called);
        let tool =
            |(tool, times): &(Arc<str>, u64)| CalledTool { tool: tool.to_string(), times: *times };
        called.iter().map(tool).collect()
    }

    /// The calls that have reached a plugin, and whose answers nobody knows, as entries of the journal. The run is over: no
    /// other reaches one from here on.
    fn unfinished(&self) -> Vec<JournalEntry> {
        let unanswered = lock(&self.unanswered);
        let begun = unanswered.iter().filter(|call| call.begins.forbid());
        let entry = |call: &UnansweredCall| {
            let (key, name, micros) =
                (call.key.clone(), call.name.clone(), micros_since(call.began));
            JournalEntry::call(key, name, call.arguments, JournalAnswer::Unknown, micros)
        };
        begun.map(entry).collect()
    }

    /// What is not written yet, with the calls that have no answer.
    fn rest(&self) -> Vec<JournalEntry> {
        let mut noted = lock(&self.noted);
        let mut entries = noted.take();
        entries.extend(self.unfinished());
        entries
    }

    /// A call has reached a plugin, or may have.
    fn note_called(&self, name: Arc<str>) {
        let mut called = lock(&self.called);
        if let Some((_, times)) = called.iter_mut().find(|(known, _)| *known == name) {
            *times += 1;
        } else if called.len() < MAX_CALLED {
            called.push((name, 1));
        }
    }

    fn note(&self, entry: JournalEntry) {
        lock(&self.noted).push(entry);
    }

    /// Writes what was noted by now, where the store knows the run.
    async fn write_noted(&self) {
        let _writing = self.writing.lock().await;
        let begins = {
            let mut kept = lock(&self.kept);
            match std::mem::replace(&mut *kept, Kept::Over) {
                Kept::Begins(begins) if begins.is_finished() => begins.now_or_never(),
                other => {
                    *kept = other;
                    None
                }
            }
        };
        if let Some(begun) = begins {
            let begun = begun.expect("it does not panic, and is not aborted");
            *lock(&self.kept) = match begun {
                Ok(hold) => Kept::Begun(hold.into()),
                Err(error) => Kept::Begins(tokio::spawn(async { Err(error) })),
            };
        }
        if !matches!(*lock(&self.kept), Kept::Begun(_)) || lock(&self.noted).is_empty() {
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
                code: "cancelled".into(),
                message: "nobody waited for it any more".into(),
                printed: String::new(),
            },
        };
        (state, self.rest())
    }

    fn stop(&self, why: Stopped) -> RunStop {
        // The first reason is the reason.
        lock(&self.stopped).get_or_insert(why);
        RunStop
    }

    /// Why the run was stopped.
    fn stopped(&self) -> RunOutcome {
        match &*lock(&self.stopped) {
            Some(Stopped::Paused { approval, tool, message, .. }) => {
                let (approval, tool) = (approval.clone(), tool.clone());
                RunOutcome::Paused { approval, tool, message: message.clone() }
            }
            Some(Stopped::Diverged(mismatch)) => {
                RunOutcome::Failed { code: "diverged".into(), message: mismatch.to_string() }
            }
            None => RunOutcome::Failed { code: "lost".into(), message: "it was given up".into() },
        }
    }

    /// Has a run that could not go on here be paused as before. Says whether it is.
    async fn undo(&self) -> bool {
        let _writing = self.writing.lock().await;
        let kept = std::mem::replace(&mut *lock(&self.kept), Kept::Over);
        let Kept::Begun(hold) = kept else { return false };
        let undone = self.platform.inner.runs.runs.run(move |_, now| hold.undo(now)).await;
        undone.unwrap_or_else(|error| {
            tracing::warn!("a run is not paused again: {}", chain(&error));
            false
        })
    }

    /// Writes how far the run came. One that is paused or was resumed is kept when this returns; another one that has ended is
    /// written afterwards.
    async fn keep(&self, outcome: RunOutcome, printed: &str) -> RunOutcome {
        let left_out = lock(&self.noted).left_out().map(str::to_string);
        let outcome = match (outcome, left_out) {
            (RunOutcome::Paused { tool, .. }, Some(left_out)) => {
                let message = format!(
                    "the call of {tool} has to be approved, and the run cannot pause for it: the answer of {left_out} was \
                     too long to be kept"
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
        let state = match &outcome {
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
        };
        // Nobody waits for this where nothing was written yet.
        let _writing = self.writing.lock().await;
        let entries = self.rest();
        let kept = std::mem::replace(&mut *lock(&self.kept), Kept::Over);
        let is_paused = matches!(outcome, RunOutcome::Paused { .. });
        let waits = is_paused || matches!(kept, Kept::Begun(_));
        let begins = match kept {
            // What never called anything is nothing that anybody looks for.
            Kept::Unwritten(Unwritten { calls: false, .. }) | Kept::Over => return outcome,
            Kept::Unwritten(Unwritten { new, .. }) if is_paused => {
                Either::Left(self.write_begin(*new))
            }
            Kept::Unwritten(Unwritten { new, .. }) => {
                let ended = EndedRun::new(self.id.clone(), *new, self.at, state, entries);
                self.platform.inner.runs.ended.add(ended, &self.runtime);
                return outcome;
            }
            Kept::Begins(begins) => Either::Left(begins),
            Kept::Begun(hold) => Either::Right(hold),
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
                Ok(hold) => runs.run(move |_, now| hold.end(state, &entries, now)).await.map(drop),
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
            Ok(Ok(())) => outcome,
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

    async fn call(
        &self,
        at: CallAt<'_>,
        what: RunCall,
        begins: BeginMark,
    ) -> Result<RunAnswer, RunStop> {
        let caller = Caller { begins, ..self.caller.clone() };
        match what {
            RunCall::Tool { name, arguments } => {
                if let Err(problem) = (self.admits)(&name) {
                    return Ok(RunAnswer::Error(problem));
                }
                let call = Call { name: name.to_string(), arguments, caller };
                let result = self.platform.call(call).await;
                if result.as_ref().err().is_none_or(CallError::may_have_begun) {
                    self.note_called(name.clone());
                }
                match result {
                    Ok(result) if result.is_error => Ok(RunAnswer::Error(result.plain_text())),
                    Ok(result) => Ok(RunAnswer::Value(value_of(&result).into())),
                    Err(error) => self.failed(at, &error),
                }
            }
            RunCall::Operation { name, plugin, argument } => {
                match self.operate(name, &plugin, argument, &caller).await {
                    Ok(value) => Ok(RunAnswer::Value(value.into())),
                    Err(error) => self.failed(at, &error),
                }
            }
        }
    }

    /// A call that somebody may approve later pauses the run.
    fn failed(
        &self,
        (key, call, arguments): CallAt<'_>,
        error: &CallError,
    ) -> Result<RunAnswer, RunStop> {
        if let CallError::NotApproved { tool, refusal } = error
            && let CallRefusal::Pending { id, .. } | CallRefusal::Running { id } = &**refusal
        {
            let (approval, tool, message) = (id.clone(), tool.clone(), error.to_string());
            let call = PausedCall { key: key.into(), call: call.into(), arguments };
            return Err(self.stop(Stopped::Paused { approval, tool, call, message }));
        }
        tracing::debug!("{call} in a run: {error}");
        Ok(RunAnswer::Error(error.to_string()))
    }

    /// Lists or reads what a plugin has besides tools.
    async fn operate(
        &self,
        name: &str,
        plugin: &str,
        argument: Value,
        caller: &Caller,
    ) -> Result<Value, CallError> {
        let (platform, filter) = (&self.platform, &self.catalog.filter);
        let not_found = |what: McpOperation, name: &str| CallError::NotFound {
            what: what.looked_for(),
            name: name.to_string(),
            nearest: None,
        };
        match name {
            "resources/list" => {
                let all = platform.resources(plugin, caller).await?;
                let all = all.iter().filter(|resource| (filter.resource)(&resource.link.uri));
                Ok(all.map(mcp_json::listed_resource).collect())
            }
            "resources/read" => {
                let uri = argument.as_str().unwrap_or_default();
                if !(filter.resource)(uri) {
                    return Err(not_found(McpOperation::ReadResource, uri));
                }
                let contents = platform.read_resource(plugin, uri, caller).await?;
                Ok(contents.iter().map(mcp_json::resource_contents).collect())
            }
            "prompts/list" => {
                let all = platform.prompts(plugin, caller).await?;
                let all = all.iter().filter(|prompt| (filter.prompt)(plugin, &prompt.name));
                Ok(all.map(mcp_json::prompt_definition).collect())
            }
            _ => {
                let prompt = argument["name"].as_str().unwrap_or_default();
                if !(filter.prompt)(plugin, prompt) {
                    return Err(not_found(McpOperation::GetPrompt, prompt));
                }
                let none = Map::new();
                let given = argument["arguments"].as_object().unwrap_or(&none);
                let text = |value: &Value| {
                    value.as_str().map_or_else(|| value.to_string(), str::to_string)
                };
                let given = given.iter().map(|(name, value)| (name.clone(), text(value)));
                let filled = platform.prompt(plugin, prompt, given.collect(), caller).await?;
                Ok(mcp_json::prompt(&filled))
            }
        }
    }
}

#[async_trait]
impl RunHost for RunInProgress {
    async fn ask(&self, key: String, what: RunCall) -> Result<RunAnswer, RunStop> {
        let (name, arguments) = match &what {
            RunCall::Tool { name, arguments } => (name.clone(), arguments),
            RunCall::Operation { name, plugin, argument } => {
                (format!("{name} {plugin}").into(), argument)
            }
        };
        let digest = ArgumentsDigest::of(arguments);
        match self.answered_before(&key, &name, &digest) {
            Err(mismatch) => return Err(self.stop(Stopped::Diverged(mismatch))),
            Ok(Some(JournalAnswer::Value(value))) => return Ok(RunAnswer::Value(value.clone())),
            Ok(Some(JournalAnswer::Error(message))) => {
                return Ok(RunAnswer::Error(message.clone()));
            }
            Ok(Some(JournalAnswer::TooLong(_) | JournalAnswer::Unknown) | None) => {}
        }
        self.advance(|unwritten| unwritten.calls = true);
        let (began, begins) = (Instant::now(), BeginMark::new());
        lock(&self.unanswered).push(UnansweredCall {
            key: key.clone(),
            name: name.clone(),
            arguments: digest,
            began,
            begins: begins.clone(),
        });
        // Where this is given up, it stays among those without an answer.
        let answer = self.call((&key, &name, digest), what, begins).await;
        let micros = micros_since(began);
        let mut noted = lock(&self.noted);
        lock(&self.unanswered).retain(|call| call.key != key);
        self.answered.fetch_add(1, Ordering::Relaxed);
        let known = match &answer {
            Ok(RunAnswer::Value(value)) => JournalAnswer::Value(value.clone()),
            Ok(RunAnswer::Error(message)) => JournalAnswer::Error(message.clone()),
            Err(RunStop) => return answer,
        };
        noted.push(JournalEntry::call(key, name, digest, known, micros));
        answer
    }

    fn step(&self, key: &str) -> Result<Option<Arc<Value>>, RunStop> {
        match self.replayed.answer(key, None, None) {
            Err(mismatch) => Err(self.stop(Stopped::Diverged(mismatch))),
            Ok(Some(JournalAnswer::Value(value))) => Ok(Some(value.clone())),
            Ok(_) => Ok(None),
        }
    }

    fn keep_step(&self, key: String, value: Value) {
        self.note(JournalEntry::step(key, value));
    }

    fn look_up(&self, key: String, what: RunLookUp<'_>) -> Result<Arc<Value>, RunStop> {
        let (name, asked) = match what {
            RunLookUp::Search { query, limit } => ("tools.search", json!([query, limit])),
            RunLookUp::Describe { tool } => ("tools.describe", tool.into()),
        };
        let digest = ArgumentsDigest::of(&asked);
        // The plugins may be others by then.
        match self.answered_before(&key, name, &digest) {
            Err(mismatch) => return Err(self.stop(Stopped::Diverged(mismatch))),
            Ok(Some(JournalAnswer::Value(value))) => return Ok(value.clone()),
            Ok(_) => {}
        }
        let value = Arc::new(self.found(what));
        let answer = JournalAnswer::Value(value.clone());
        self.note(JournalEntry::call(key, name.into(), digest, answer, 0));
        Ok(value)
    }
}

impl RunInProgress {
    /// What an earlier attempt was answered at this place.
    fn answered_before(
        &self,
        key: &str,
        name: &str,
        digest: &ArgumentsDigest,
    ) -> Result<Option<&JournalAnswer>, JournalMismatch> {
        if let Some(PausedCall { call, arguments, .. }) =
            self.paused_at.as_ref().filter(|paused| paused.key == key)
        {
            let before = (Some(call.as_str()), Some(arguments));
            JournalMismatch::check(key, before, (Some(name), Some(digest)))?;
        }
        self.replayed.answer(key, Some(name), Some(digest))
    }

    /// What a script looks up, or null where there is nothing.
    fn found(&self, what: RunLookUp<'_>) -> Value {
        match what {
            RunLookUp::Search { query, limit } => {
                let found = self.catalog.search(query, limit).into_iter().map(|tool| {
                    json!({ "name": tool.tool, "signature": tool.signature(), "description": tool.summary() })
                });
                found.collect()
            }
            RunLookUp::Describe { tool } => {
                self.catalog.tool(tool).map_or(Value::Null, |tool| tool.describe())
            }
        }
    }
}

impl Drop for RunInProgress {
    /// Nobody waits for the run any more.
    fn drop(&mut self) {
        let kept = std::mem::replace(&mut *lock(&self.kept), Kept::Over);
        if matches!(kept, Kept::Unwritten(Unwritten { calls: false, .. }) | Kept::Over) {
            return;
        }
        let (state, entries) = self.given_up();
        // It may be a script's thread that has waited last.
        let runtime = &self.runtime;
        match kept {
            Kept::Unwritten(Unwritten { new, .. }) => {
                let ended = EndedRun::new(self.id.clone(), *new, self.at, state, entries);
                self.platform.inner.runs.ended.add(ended, runtime);
            }
            Kept::Begins(begins) => drop(runtime.spawn(async {
                if let Ok(Ok(hold)) = begins.await {
                    let end = move || end_given_up(hold, state, &entries);
                    drop(tokio::task::spawn_blocking(end).await);
                }
            })),
            Kept::Begun(hold) => {
                drop(runtime.spawn_blocking(move || end_given_up(*hold, state, &entries)));
            }
            Kept::Over => {}
        }
    }
}

/// Writes now and then what a run has done, as long as there is one.
async fn write_noted(run: Weak<RunInProgress>) {
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

fn micros_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}
