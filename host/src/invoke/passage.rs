//! A call on its way: what its steps leave for each other, and for those who watch.

use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tracing::{Instrument, Span};

use super::trace::TraceParent;
use super::{Call, CallError, Caller, Facilities, Fingerprint, next_call, redact, span, within};
use crate::bindings::types::{CallContext, ToolResult};
use crate::event::{CallEvent, Event, Step};
use crate::history::{Entry, Record, milliseconds};
use crate::register::{Called, Registered, Registry};
use crate::runtime::{Failure, Plugin, Serving, Usage};
use crate::secret::Redactor;
use crate::wire;

/// The member of a result's `_meta` that says what the call used: a [`Usage`].
pub const USAGE: &str = "tenon/usage";

/// The member of a result's `_meta` that says what the plugin was refused, in words.
pub const REFUSED: &str = "tenon/refused";

/// A call on its way.
pub(super) struct Passage<'a> {
    pub(super) facilities: &'a Facilities,
    /// The tool, as the caller named it.
    pub(super) name: String,
    /// What the tool is called with.
    pub(super) arguments: Value,
    /// Whose hook the arguments come from, if it is not the caller.
    pub(super) changed_by: Option<Arc<str>>,
    pub(super) caller: Caller,
    /// Names the call.
    number: u64,
    trace: Option<TraceParent>,
    /// Of what the caller passed, where somebody will hear of it.
    fingerprint: Option<Fingerprint>,
    began: Instant,
    attempts: u32,
    /// The attempt that goes on.
    attempt: Option<Arc<Serving>>,
    /// What those before it have used.
    usage: Usage,
    /// What the plugin was refused.
    refusals: Vec<String>,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    /// Where the whole result is kept.
    pub(super) whole: Option<String>,
    plugin: Option<Arc<str>>,
    redactor: Arc<Redactor>,
    /// Who hears of the steps, if anybody does.
    heard: Option<Heard>,
    span: Span,
    over: bool,
}

/// One attempt at a call.
pub(super) struct Attempt {
    /// Counted from one.
    pub(super) number: u32,
    pub(super) timeout: Duration,
    pub(super) context: CallContext,
    pub(super) serving: Arc<Serving>,
}

/// What all events of a call have in common.
struct Heard {
    call: Arc<str>,
    tool: Arc<str>,
}

impl<'a> Passage<'a> {
    /// A call begins. It is large, and hosts keep many calls beside each other.
    pub(super) fn begin(facilities: &'a Facilities, registry: &Registry, call: Call) -> Box<Self> {
        let Call { name, arguments, caller } = call;
        let number = next_call();
        let heard = facilities
            .news
            .events()
            .are_heard()
            .then(|| Heard { call: number.to_string().into(), tool: name.as_str().into() });
        let told = heard.is_some() || facilities.history.is_some();
        Box::new(Self {
            fingerprint: told.then(|| Fingerprint::of(&name, &arguments)),
            trace: caller.trace(),
            facilities,
            name,
            arguments,
            changed_by: None,
            caller,
            number,
            began: Instant::now(),
            attempts: 0,
            attempt: None,
            usage: Usage::default(),
            refusals: Vec::new(),
            bytes_in: 0,
            bytes_out: 0,
            whole: None,
            plugin: None,
            redactor: registry.redactor().clone(),
            heard,
            span: Span::none(),
            over: false,
        })
    }

    /// The tool was found. What is done for the call is done in the returned span.
    pub(super) fn found(&mut self, plugin: &Arc<str>) -> Span {
        self.plugin = Some(plugin.clone());
        self.step(|| Step::Found);
        self.span = span!("call", plugin, self.caller, self.number, self.trace, tool = self.name);
        self.span.clone()
    }

    /// Tells those who watch what was done.
    pub(super) fn step(&self, step: impl FnOnce() -> Step) {
        let (Some(Heard { call, tool }), Some(fingerprint)) = (&self.heard, self.fingerprint)
        else {
            return;
        };
        self.facilities.news.events().publish(|| {
            Event::Call(CallEvent {
                call: call.clone(),
                tool: tool.clone(),
                plugin: self.plugin.clone(),
                fingerprint,
                step: step(),
            })
        });
    }

    /// The time that the next attempt may take, and what the plugin is told of it. Each has an id
    /// of its own: one that was given up may still run.
    pub(super) fn next_attempt(&mut self, wall: Duration) -> Attempt {
        self.attempts += 1;
        let call_id = match self.attempts {
            1 => self.number.to_string(),
            attempt => format!("{}.{attempt}", self.number),
        };
        let (timeout, context) = self.caller_now().context_of(call_id, self.trace, wall);
        let traceparent = context.traceparent.clone();
        let serving = Serving::new(Caller { traceparent, timeout: None, ..self.caller.clone() });
        self.attempt = Some(serving.clone());
        Attempt { number: self.attempts, timeout, context, serving }
    }

    /// The caller, with the time that is left.
    pub(super) fn caller_now(&self) -> Caller {
        let timeout = self.caller.timeout.map(|all| all.saturating_sub(self.began.elapsed()));
        Caller { timeout, ..self.caller.clone() }
    }

    /// Tells those who watch that the result is free of secrets and short enough.
    pub(super) fn bounded(&self) {
        self.step(|| Step::Bounded { bytes: self.bytes_out, whole: self.whole.clone() });
    }

    /// Adds what the last attempt has used.
    pub(super) fn used(&mut self) {
        let Some(attempt) = self.attempt.take() else { return };
        let (words, unlogged) = attempt.refusals();
        if unlogged > 0 {
            let plugin = self.plugin.as_deref();
            self.span.in_scope(|| {
                tracing::warn!(plugin, "and {unlogged} more uses were refused in this call");
            });
        }
        for mut refusal in words {
            self.redactor.redact(&mut refusal);
            self.step(|| Step::Refused { words: refusal.clone() });
            self.refusals.push(refusal);
        }
        let Usage { cpu_micros, memory_bytes, host_calls, .. } = attempt.usage();
        let sum = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(a + b.unwrap_or(0)));
        self.usage.cpu_micros = sum(self.usage.cpu_micros, cpu_micros);
        self.usage.host_calls = sum(self.usage.host_calls, host_calls);
        self.usage.memory_bytes = self.usage.memory_bytes.max(memory_bytes);
    }

    /// The call is over: says so to the caller, to those who watch and to the record.
    pub(super) fn end(
        mut self: Box<Self>,
        called: Option<&Called<'_>>,
        result: Result<ToolResult, CallError>,
    ) -> Result<ToolResult, CallError> {
        let usage = self.usage();
        let result = match result {
            Ok(mut result) => {
                wire::insert_meta_json(&mut result.extra, USAGE, &usage.to_json());
                if !self.refusals.is_empty() {
                    wire::insert_meta(&mut result, REFUSED, &self.refusals);
                }
                Ok(result)
            }
            Err(error) => Err(self.told(error)),
        };
        let outcome = match &result {
            Ok(ToolResult { is_error: false, .. }) => "ok",
            Ok(ToolResult { is_error: true, .. }) => "tool-error",
            Err(error) => error.word(),
        };
        if let Some(called) = called {
            called.gauges.count(outcome, Duration::from_micros(usage.wall_micros));
        }
        self.conclude(outcome, result.as_ref().err(), usage);
        result
    }

    /// An error as the caller is told it.
    fn told(&self, mut error: CallError) -> CallError {
        // Steps have what is left of the caller's time; the caller knows the whole.
        if let CallError::Failed { failure: Failure::Deadline(time), .. } = &mut error
            && let Some(all) = self.caller.timeout.filter(|all| self.began.elapsed() >= *all)
        {
            *time = all;
        }
        if let CallError::Failed { failure, .. } = &mut error {
            failure.explain(&self.refusals);
        }
        redact::error(&self.redactor, error)
    }

    /// Tells those who watch how the call has ended, and records it.
    fn conclude(&mut self, outcome: &'static str, error: Option<&CallError>, usage: Usage) {
        self.over = true;
        self.span.record("outcome", outcome);
        self.span.in_scope(|| tracing::debug!("the call is over: {outcome}"));
        let error = || error.map(ToString::to_string);
        self.step(|| Step::Ended { outcome, error: error(), usage });
        let (Some(history), Some(fingerprint)) = (&self.facilities.history, self.fingerprint)
        else {
            return;
        };
        let began = SystemTime::now().checked_sub(self.began.elapsed());
        let record = Record {
            at: began.map_or(0, milliseconds),
            call: self.number.to_string(),
            plugin: self.plugin.take(),
            by: self.caller.by.take(),
            tool: std::mem::take(&mut self.name),
            agent: self.caller.agent_id.take(),
            session: self.caller.session_id.take(),
            trace: self.trace.map(|trace| trace.trace_id()),
            fingerprint,
            arguments: std::mem::take(&mut self.arguments),
            outcome: outcome.into(),
            error: error(),
            whole: self.whole.take(),
            usage,
        };
        history.record(Entry::new(record, self.redactor.clone()));
    }

    fn usage(&mut self) -> Usage {
        self.used();
        Usage {
            wall_micros: u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            attempts: self.attempts,
            ..self.usage
        }
    }
}

/// Something that is asked of a plugin which is no call of a tool.
pub(crate) struct Question<'a> {
    pub(crate) facilities: &'a Facilities,
    pub(crate) registry: &'a Registry,
    pub(crate) caller: &'a Caller,
    /// The plugin, as the caller named it.
    pub(crate) plugin: &'a str,
}

impl<'a> Question<'a> {
    /// The plugin that is asked, if it has what not every plugin has. `looked_for` says what kind of
    /// plugin there is none of, where there is none of its name.
    pub(super) fn of_one_that(
        &self,
        has: fn(&Registered) -> bool,
        what: &'static str,
        looked_for: &'static str,
    ) -> Result<&'a Registered, CallError> {
        let Self { registry, plugin: id, .. } = *self;
        match registry.plugin(id) {
            Some(plugin) if has(plugin) => Ok(plugin),
            Some(plugin) => {
                Err(CallError::failed(plugin.loaded().id())(Failure::Unsupported(what)))
            }
            None => {
                let all = registry.plugins().iter().filter(|plugin| has(plugin));
                let ids = all.map(|plugin| &**plugin.loaded().id());
                Err(CallError::not_found(looked_for, id, ids))
            }
        }
    }

    /// Asks it of the plugin, if that was found. It is watched and recorded like the call of the
    /// host's own tool that does the same, or would if there were one.
    pub(super) async fn ask<T, F>(
        &self,
        tool: &str,
        arguments: Value,
        found: Result<&'a Registered, CallError>,
        answer: impl FnOnce(&'a dyn Plugin, CallContext) -> F,
    ) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let Self { facilities, registry, caller, plugin } = *self;
        let plugin = registry.plugin(plugin);
        let name = plugin.map_or_else(|| tool.into(), |of| registry.name_of(of, tool).to_string());
        let call = Call { name, arguments, caller: caller.clone() };
        let mut passage = Passage::begin(facilities, registry, call);
        passage.plugin = plugin.map(|plugin| plugin.loaded().id().clone());
        let answer = match found {
            Ok(plugin) => passage.asked(plugin, answer).await,
            Err(error) => Err(error),
        };
        let usage = passage.usage();
        let answer = answer.map_err(|error| passage.told(error));
        let outcome = answer.as_ref().err().map_or("ok", CallError::word);
        passage.conclude(outcome, answer.as_ref().err(), usage);
        answer
    }
}

impl Passage<'_> {
    /// Asks a plugin once.
    async fn asked<'a, T, F>(
        &mut self,
        plugin: &'a Registered,
        answer: impl FnOnce(&'a dyn Plugin, CallContext) -> F,
    ) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let loaded = plugin.loaded();
        let span = self.found(loaded.id());
        let Attempt { number: attempt, timeout, context, serving } =
            span.in_scope(|| self.next_attempt(loaded.limits().wall));
        self.bytes_in = wire::written(&self.arguments).len() as u64;
        let answer = within(timeout, answer(&**loaded.plugin(), context));
        let answer = serving.by(answer).instrument(span).await;
        self.used();
        let answer = answer.map_err(|failure| redact::failure(&self.redactor, failure));
        let error = answer.as_ref().err();
        self.step(|| Step::Attempted { attempt, error: error.map(ToString::to_string) });
        answer.map_err(CallError::failed(loaded.id()))
    }
}

impl Drop for Passage<'_> {
    /// The caller has dropped the call before it was over.
    fn drop(&mut self) {
        if !self.over {
            let usage = self.usage();
            self.conclude("abandoned", None, usage);
        }
    }
}
