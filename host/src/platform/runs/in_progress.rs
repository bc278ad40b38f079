//! A run that goes on: what it asks for is called, noted and, where an earlier attempt has done it, answered from there.

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tenon_runs::{
    Journal, JournalAnswer, JournalEntry, JournalMismatch, JsonDigest, NewEntries, RunState,
    step_key,
};
use tenon_types::mcp_json;
use tokio::runtime::Handle;

use super::call_target::TargetName;
use super::persist::{RunPersistence, UnwrittenRun};
use super::{Admits, NewOrResumedRun, RunOutcome, ScriptRunner, ToolCallCount, lock};
use crate::call::mask::Masked;
use crate::call::{Call, CallError, CallRefusal, Caller, CurrentCall, StartedFlag};
use crate::invoke::{self, ReadLimit};
use crate::platform::Platform;
use crate::register::{Registry, ToolCatalog};
use crate::runtime::{RunAnswer, RunCall, RunHost, RunStopped, ToolQuery, value_of};

/// The code of a run that does something else than it did before, or would have something else done.
pub(super) const DIVERGED: &str = "diverged";

/// The most tools that a report names.
const MAX_CALLED: usize = 50;

/// A run that goes on: what it asks for is called, noted and, where an earlier attempt has done it, answered from there.
pub(super) struct RunInProgress {
    pub(super) platform: Platform,
    catalog: Arc<ToolCatalog>,
    admits: Arc<Admits>,
    pub(super) id: String,
    /// When it began, in milliseconds since 1970.
    pub(super) at: u64,
    /// Where it is written.
    pub(super) runtime: Handle,
    caller: Caller,
    replayed: Journal,
    /// How an earlier attempt has paused.
    pub(super) paused_at: Option<RunState>,
    /// The places of what an earlier attempt has done and this one has asked for again.
    done_again: Mutex<BTreeSet<String>>,
    /// The digests of the tools whose calls wait for an approval, by the places of the calls. See [`digest`](super::call_target::CallTarget::digest).
    pub(super) waiting: Mutex<BTreeMap<String, String>>,
    /// What was answered, and is not written yet.
    pub(super) noted: Mutex<NewEntries>,
    /// How many calls were answered.
    answered: AtomicU64,
    /// The calls that have no answer. One is noted and taken from here while `noted` is locked.
    unanswered: Mutex<Vec<InFlightCall>>,
    /// The first tools whose calls have reached a plugin, and how often they did.
    called: Mutex<Vec<(Arc<str>, u64)>>,
    pub(super) stopped: Mutex<Option<Stopped>>,
    /// Held while it is written how far it came.
    pub(super) writing: tokio::sync::Mutex<()>,
    pub(super) kept: Mutex<RunPersistence>,
}

/// A call of a run: its place, what is called, and the digest of its arguments.
type CallAt<'a> = (&'a str, &'a str, JsonDigest);

/// The call that a run pauses for.
#[derive(Clone)]
pub(super) struct PausedCall {
    pub(super) key: String,
    pub(super) call: String,
    pub(super) arguments: JsonDigest,
}

/// A call that has no answer yet.
struct InFlightCall {
    key: String,
    name: Arc<str>,
    arguments: JsonDigest,
    began: Instant,
    begins: StartedFlag,
}

/// Why a run goes no further.
pub(super) enum Stopped {
    Paused {
        approval: String,
        tool: String,
        call: PausedCall,
        message: String,
    },
    Diverged(JournalMismatch),
    /// A call that has waited for an approval would be made without one, of another plugin than the one that it waited for, or is
    /// of a tool that is not here.
    OtherTarget {
        message: String,
    },
    /// A call has to be approved, and nobody could be asked.
    Unasked {
        code: &'static str,
        message: String,
    },
}

impl RunInProgress {
    pub(super) fn new(
        runner: &ScriptRunner,
        id: &str,
        at: u64,
        begin: NewOrResumedRun,
        current_call: &Arc<CurrentCall>,
    ) -> Self {
        let ScriptRunner { platform, catalog, admits, .. } = runner;
        let caller = current_call.calls_others_for();
        let (kept, replayed, paused_at, waiting) = match begin {
            NewOrResumedRun::New(new) => {
                let (replayed, waiting) = Default::default();
                (RunPersistence::Unwritten(UnwrittenRun::new(new)), replayed, None, waiting)
            }
            NewOrResumedRun::Resumed(hold, journal) => {
                let (paused_at, waiting) = (hold.paused_at().cloned(), hold.run().waiting.clone());
                (RunPersistence::Begun(hold), journal, paused_at, waiting)
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
            done_again: Mutex::default(),
            waiting: Mutex::new(waiting),
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

    /// How many calls there were.
    pub(super) fn calls(&self) -> u64 {
        self.answered.load(Ordering::Relaxed) + lock(&self.unanswered).len() as u64
    }

    pub(super) fn called(&self) -> Vec<ToolCallCount> {
        for call in self.unfinished().into_iter().filter_map(|entry| entry.call) {
            self.note_called(call);
        }
        let called = lock(&self.called);
        let tool = |(tool, times): &(Arc<str>, u64)| ToolCallCount {
            tool: tool.to_string(),
            times: *times,
        };
        called.iter().map(tool).collect()
    }

    /// The calls that have reached a plugin, and whose answers nobody knows, as entries of the journal. The run is over: no
    /// other reaches one from here on.
    pub(super) fn unfinished(&self) -> Vec<JournalEntry> {
        let unanswered = lock(&self.unanswered);
        let begun = unanswered.iter().filter(|call| call.begins.forbid());
        let entry = |call: &InFlightCall| {
            let (key, name, micros) =
                (call.key.clone(), call.name.clone(), micros_since(call.began));
            JournalEntry::call(key, name, call.arguments, JournalAnswer::Unknown, micros)
        };
        begun.map(entry).collect()
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

    fn stop(&self, why: Stopped) -> RunStopped {
        // The first reason is the reason.
        lock(&self.stopped).get_or_insert(why);
        RunStopped
    }

    /// Why the run was stopped.
    pub(super) fn stopped(&self) -> RunOutcome {
        match &*lock(&self.stopped) {
            Some(Stopped::Paused { approval, tool, message, .. }) => {
                let (approval, tool) = (approval.clone(), tool.clone());
                RunOutcome::Paused { approval, tool, message: message.clone() }
            }
            Some(Stopped::Diverged(mismatch)) => {
                RunOutcome::Failed { code: DIVERGED.into(), message: mismatch.to_string() }
            }
            Some(Stopped::OtherTarget { message }) => {
                RunOutcome::Failed { code: DIVERGED.into(), message: message.clone() }
            }
            Some(Stopped::Unasked { code, message }) => {
                RunOutcome::Failed { code: (*code).into(), message: message.clone() }
            }
            None => RunOutcome::Failed { code: "lost".into(), message: "it was given up".into() },
        }
    }

    async fn call(
        &self,
        at: CallAt<'_>,
        what: RunCall,
        begins: StartedFlag,
    ) -> Result<RunAnswer, RunStopped> {
        let caller = Caller { begins, ..self.caller.clone() };
        // What is looked at here is what is called, also where the plugins are replaced meanwhile.
        let registry = self.platform.registry();
        let target = TargetName::of(&what);
        self.check_target(at, &target, &registry, &what)?;
        match what {
            RunCall::Tool { name, arguments } => {
                if let Err(problem) = (self.admits)(&name) {
                    return Ok(RunAnswer::Error(problem));
                }
                let call = Call { name: name.to_string(), arguments, caller };
                let context = &self.platform.inner.invoke_services;
                let result = invoke::call::call_tool(context, &registry, call).await;
                let result = result.map(Masked::into_inner);
                if result.as_ref().err().is_none_or(CallError::may_have_begun) {
                    self.note_called(name.clone());
                }
                match result {
                    Ok(result) if result.is_error => Ok(RunAnswer::Error(result.plain_text())),
                    Ok(result) => Ok(RunAnswer::Value(value_of(&result).into())),
                    Err(error) => self.failed(at, &target, &registry, &error),
                }
            }
            RunCall::Missing { problem, .. } => Ok(RunAnswer::Error(problem)),
            RunCall::Operation { name, plugin, argument } => {
                match self.operate(&registry, name, &plugin, argument, &caller).await {
                    Ok(value) => Ok(RunAnswer::Value(value.into())),
                    Err(error) => self.failed(at, &target, &registry, &error),
                }
            }
        }
    }

    /// Checks of a call that has waited for an approval that it is of the same plugin as then, or is asked about here as well.
    fn check_target(
        &self,
        (key, call, _): CallAt<'_>,
        target: &TargetName,
        registry: &Registry,
        what: &RunCall,
    ) -> Result<(), RunStopped> {
        let Some(waited) = lock(&self.waiting).get(key).cloned() else { return Ok(()) };
        let stop = |here: &str| {
            let message = format!("the call of {call} waited for an approval{here}");
            Err(self.stop(Stopped::OtherTarget { message }))
        };
        if let RunCall::Missing { problem, .. } = what {
            return stop(&format!(", and here {problem}"));
        }
        // What is not there is not called.
        let Some(target) = target.find(registry) else { return Ok(()) };
        match target.digest(call) == waited || !target.is_made_unasked(what, &self.caller) {
            true => Ok(()),
            false => stop(
                "; here its plugin is another one, or has other settings or another definition, and nobody has to approve the \
                 call: it is not made",
            ),
        }
    }

    /// A call that somebody may approve later pauses the run. One about which nobody can be asked ends it.
    fn failed(
        &self,
        (key, call, arguments): CallAt<'_>,
        target: &TargetName,
        registry: &Registry,
        error: &CallError,
    ) -> Result<RunAnswer, RunStopped> {
        if let CallError::NotApproved { tool, refusal } = error
            && let CallRefusal::Pending { id, .. } | CallRefusal::Running { id } = &**refusal
        {
            if let Some(target) = target.find(registry) {
                lock(&self.waiting).insert(key.into(), target.digest(call));
            }
            let (approval, tool, message) = (id.clone(), tool.clone(), error.to_string());
            let call = PausedCall { key: key.into(), call: call.into(), arguments };
            return Err(self.stop(Stopped::Paused { approval, tool, call, message }));
        }
        // Nor is a script to go on where nobody could be asked.
        if let CallError::NotApproved { refusal, .. } = error
            && let CallRefusal::Unasked { .. } | CallRefusal::Unkept { .. } = &**refusal
        {
            let message = error.to_string();
            return Err(self.stop(Stopped::Unasked { code: refusal.code(), message }));
        }
        tracing::debug!("{call} in a run: {error}");
        Ok(RunAnswer::Error(error.to_string()))
    }

    /// Lists or reads what a plugin has besides tools.
    async fn operate(
        &self,
        registry: &Registry,
        name: &str,
        plugin: &str,
        argument: Value,
        caller: &Caller,
    ) -> Result<Value, CallError> {
        let filter = &self.catalog.filter;
        let question = self.platform.question(registry, plugin, caller);
        let not_found = |what: &'static str, name: &str| CallError::NotFound {
            what,
            name: name.to_string(),
            nearest: None,
        };
        match name {
            "resources/list" => {
                let all = invoke::resources::list(question).await?.into_inner();
                let all = all.iter().filter(|resource| (filter.resource)(&resource.link.uri));
                Ok(all.map(mcp_json::listed_resource).collect())
            }
            "resources/read" => {
                let uri = argument.as_str().unwrap_or_default();
                if !(filter.resource)(uri) {
                    return Err(not_found("resource", uri));
                }
                let contents = invoke::resources::read(question, uri, ReadLimit::default()).await?;
                Ok(contents.into_inner().iter().map(mcp_json::resource_contents).collect())
            }
            "prompts/list" => {
                let all = invoke::prompts::list(question).await?.into_inner();
                let all = all.iter().filter(|prompt| (filter.prompt)(plugin, &prompt.name));
                Ok(all.map(mcp_json::prompt_definition).collect())
            }
            _ => {
                let prompt = argument["name"].as_str().unwrap_or_default();
                if !(filter.prompt)(plugin, prompt) {
                    return Err(not_found("prompt", prompt));
                }
                let none = Map::new();
                let given = argument["arguments"].as_object().unwrap_or(&none);
                let text = |value: &Value| {
                    value.as_str().map_or_else(|| value.to_string(), str::to_string)
                };
                let given = given.iter().map(|(name, value)| (name.clone(), text(value)));
                let filled = invoke::prompts::get(question, prompt, given.collect()).await?;
                Ok(mcp_json::prompt(&filled.into_inner()))
            }
        }
    }
}

#[async_trait]
impl RunHost for RunInProgress {
    async fn ask(&self, key: String, what: RunCall) -> Result<RunAnswer, RunStopped> {
        let (name, arguments) = match &what {
            RunCall::Tool { name, arguments } => (name.clone(), arguments),
            RunCall::Operation { name, plugin, argument } => {
                (format!("{name} {plugin}").into(), argument)
            }
            RunCall::Missing { name, arguments, .. } => (name.clone(), arguments),
        };
        let digest = JsonDigest::of(arguments);
        match self.answered_before(&key, &name, &digest) {
            Err(mismatch) => return Err(self.stop(Stopped::Diverged(mismatch))),
            Ok(Some(JournalAnswer::Value(value))) => return Ok(RunAnswer::Value(value.clone())),
            Ok(Some(JournalAnswer::Error(message))) => {
                return Ok(RunAnswer::Error(message.clone()));
            }
            Ok(Some(JournalAnswer::TooLong(_) | JournalAnswer::Unknown) | None) => {}
        }
        self.advance(|unwritten| unwritten.calls = true);
        let (began, begins) = (Instant::now(), StartedFlag::new());
        lock(&self.unanswered).push(InFlightCall {
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
            Err(RunStopped) => return answer,
        };
        lock(&self.waiting).remove(&key);
        noted.push(JournalEntry::call(key, name, digest, known, micros));
        answer
    }

    fn step(&self, place: &str, name: &str) -> Result<Option<Arc<Value>>, RunStopped> {
        match self.replayed.step(place, name) {
            Err(mismatch) => Err(self.stop(Stopped::Diverged(mismatch))),
            Ok(Some(JournalAnswer::Value(value))) => {
                self.note_done_again(&step_key(place, name));
                Ok(Some(value.clone()))
            }
            Ok(_) => Ok(None),
        }
    }

    fn begin_parallel(&self, place: &str) -> Result<(), RunStopped> {
        let checked = self.replayed.check_parallel(place);
        checked.map_err(|mismatch| self.stop(Stopped::Diverged(mismatch)))
    }

    fn keep_step(&self, key: String, value: Value) {
        self.note(JournalEntry::step(key, value));
    }

    fn look_up(&self, key: String, what: ToolQuery<'_>) -> Result<Arc<Value>, RunStopped> {
        let (name, asked) = match what {
            ToolQuery::Search { query, limit } => ("tools.search", json!([query, limit])),
            ToolQuery::Describe { tool, .. } => ("tools.describe", tool.into()),
        };
        let digest = JsonDigest::of(&asked);
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
        digest: &JsonDigest,
    ) -> Result<Option<&JournalAnswer>, JournalMismatch> {
        if let Some(RunState::Paused {
            key: paused,
            call: Some(call),
            arguments: Some(arguments),
            ..
        }) = &self.paused_at
            && paused == key
        {
            let before = (Some(call.as_str()), Some(arguments));
            JournalMismatch::check(key, before, (Some(name), Some(digest)))?;
        }
        self.note_done_again(key);
        self.replayed.answer(key, name, digest)
    }

    /// What an earlier attempt has done at a place is asked for again.
    fn note_done_again(&self, key: &str) {
        if self.paused_at.is_some() {
            lock(&self.done_again).insert(key.into());
        }
    }

    /// Checks of a run that has ended well that it has done again all that an earlier attempt has done.
    pub(super) fn check_all_done(&self) -> Result<(), JournalMismatch> {
        let done = lock(&self.done_again);
        self.replayed.check_all_done(&done)?;
        match &self.paused_at {
            Some(RunState::Paused { key, tool, .. }) if !done.contains(key) => {
                let why = format!("it paused for {tool} before, and has ended without that now");
                Err(JournalMismatch { key: key.clone(), why })
            }
            _ => Ok(()),
        }
    }

    /// What a script looks up, or null where there is nothing.
    fn found(&self, what: ToolQuery<'_>) -> Value {
        match what {
            ToolQuery::Search { query, limit } => {
                let found = self.catalog.search(query, limit).into_iter().map(|tool| {
                    json!({ "name": tool.tool, "signature": tool.signature(), "description": tool.summary() })
                });
                found.collect()
            }
            ToolQuery::Describe { is_there: false, .. } => Value::Null,
            ToolQuery::Describe { tool, is_there: true } => {
                self.catalog.tool(tool).map_or(Value::Null, |tool| tool.describe())
            }
        }
    }
}

fn micros_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}
