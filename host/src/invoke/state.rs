//! A call on its way: what its steps leave for each other, and for those who watch.

use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tenon_call_approvals::BegunCall;
use tenon_config::secret::Redactor;
use tenon_types::{CallContext, CompletionSummary, Json};
use tracing::Span;

use super::{InvokeServices, next_call, permission};
use crate::call::mask;
use crate::call::{
    Call, CallError, CallFingerprint, CallKind, Caller, CallerClient, CurrentCall, Failure,
    StartedFlag, TraceParent, Usage,
};
use crate::observe::event::{CallEvent, Event, Step};
use crate::observe::history::{QueuedRecord, Record, milliseconds};
use crate::register::Registry;
use crate::register::tool_metrics::ToolMetrics;
use crate::runtime::StreamedCall;

/// The member of a result's `_meta` that says what the call used: a [`Usage`].
pub const USAGE: &str = "tenon/usage";

/// The member of a result's `_meta` that says what the plugin was refused, in words.
pub const REFUSED: &str = "tenon/refused";

/// A call on its way through the steps.
pub(crate) struct CallState {
    pub(super) invoke_services: Arc<InvokeServices>,
    /// What is asked.
    pub(super) kind: CallKind,
    /// The tool, strategy or model as the caller named it, or the hook point.
    pub(super) name: String,
    /// What it is asked with.
    pub(super) arguments: Json,
    /// Whose hook the arguments come from, if it is not the caller.
    pub(super) changed_by: Option<Arc<str>>,
    pub(super) caller: Caller,
    /// Names the call.
    number: u64,
    trace: Option<TraceParent>,
    /// Of what the caller passed, where somebody will hear of it.
    fingerprint: Option<CallFingerprint>,
    began: Instant,
    attempts: u32,
    /// The call was approved, and has begun.
    pub(super) begun: Option<Box<BegunCall>>,
    /// The attempt that goes on.
    attempt: Option<Arc<CurrentCall>>,
    /// What those before it have used.
    usage: Usage,
    /// What the plugin was refused.
    refusals: Vec<String>,
    pub(super) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Where the whole result is kept.
    pub(super) whole: Option<String>,
    plugin: Option<Arc<str>>,
    /// Where the call is counted, once it was found which tool is called.
    pub(super) tool_metrics: Option<Arc<ToolMetrics>>,
    redactor: Arc<Redactor>,
    /// Who hears of the steps, if anybody does.
    heard: Option<EventContext>,
    span: Span,
    over: bool,
}

/// One attempt at a call.
pub(super) struct Attempt {
    /// Counted from one.
    pub(super) number: u32,
    pub(super) timeout: Duration,
    pub(super) context: CallContext,
    pub(super) current_call: Arc<CurrentCall>,
}

/// What all events of a call have in common.
struct EventContext {
    call: Arc<str>,
    tool: Arc<str>,
}

impl CallState {
    /// A call begins. It is large, and hosts keep many calls beside each other.
    pub(super) fn begin(
        invoke_services: &Arc<InvokeServices>,
        registry: &Registry,
        kind: CallKind,
        call: Call,
    ) -> Box<Self> {
        let Call { name, arguments, caller } = call;
        let number = next_call();
        let heard = invoke_services.news.events().are_heard().then(|| EventContext {
            call: number.to_string().into(),
            tool: registry.redactor().text(&name).into(),
        });
        let told = heard.is_some() || invoke_services.history.is_some();
        Box::new(Self {
            fingerprint: told.then(|| CallFingerprint::of(&name, &arguments)),
            trace: caller.trace(),
            invoke_services: invoke_services.clone(),
            kind,
            name,
            arguments: arguments.into(),
            changed_by: None,
            caller,
            number,
            began: Instant::now(),
            attempts: 0,
            begun: None,
            attempt: None,
            usage: Usage::default(),
            refusals: Vec::new(),
            bytes_in: 0,
            bytes_out: 0,
            whole: None,
            plugin: None,
            tool_metrics: None,
            redactor: registry.redactor().clone(),
            heard,
            span: Span::none(),
            over: false,
        })
    }

    /// It was found who is asked. What is done for the call is done in the span.
    pub(super) fn found(&mut self, plugin: &Arc<str>, span: impl FnOnce(&Self) -> Span) -> Span {
        self.plugin = Some(plugin.clone());
        self.step(|| Step::Found);
        self.span = span(self);
        self.span.clone()
    }

    /// A text of the caller's, who may be a plugin, as it may be shown.
    pub(super) fn without_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.text(text)
    }

    /// Masks known secrets in a value. What only has the name of a secret stays: whoever approves a call is to see what it would
    /// do.
    pub(super) fn mask_known(&self, value: &mut Value) {
        self.redactor.texts(value);
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn trace(&self) -> Option<TraceParent> {
        self.trace
    }

    /// What the plugin was refused so far.
    pub(super) fn refusals(&self) -> &[String] {
        &self.refusals
    }

    /// Names the plugin that is asked, where that is known before it is found that it can be.
    pub(super) fn of_plugin(&mut self, plugin: &Arc<str>) {
        self.plugin = Some(plugin.clone());
    }

    /// Tells those who watch what was done.
    pub(super) fn step(&self, step: impl FnOnce() -> Step) {
        let (Some(EventContext { call, tool }), Some(fingerprint)) =
            (&self.heard, self.fingerprint)
        else {
            return;
        };
        self.invoke_services.news.events().publish(|| {
            Event::Call(CallEvent {
                kind: self.kind,
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
        let begins = StartedFlag::default();
        let mut caller = Caller { traceparent, timeout: None, begins, ..self.caller.clone() };
        if self.kind == CallKind::Hook {
            caller.client = caller.client.map(CallerClient::of_hook);
        }
        let current_call = CurrentCall::new(caller);
        self.attempt = Some(current_call.clone());
        Attempt { number: self.attempts, timeout, context, current_call }
    }

    /// The caller, with the time that is left.
    pub(super) fn caller_now(&self) -> Caller {
        let timeout = self.caller.timeout.map(|all| all.saturating_sub(self.began.elapsed()));
        // What is asked of others meanwhile is not this call.
        Caller { timeout, begins: StartedFlag::default(), ..self.caller.clone() }
    }

    /// Tells those who watch that the result is free of secrets and short enough.
    pub(super) fn bounded(&self) {
        self.step(|| Step::Bounded { bytes: self.bytes_out, full_result_uri: self.whole.clone() });
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
            self.step(|| Step::Refused { message: refusal.clone() });
            self.refusals.push(refusal);
        }
        let Usage { cpu_micros, memory_bytes, host_calls, .. } = attempt.usage();
        let sum = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(a + b.unwrap_or(0)));
        self.usage.cpu_micros = sum(self.usage.cpu_micros, cpu_micros);
        self.usage.host_calls = sum(self.usage.host_calls, host_calls);
        self.usage.memory_bytes = self.usage.memory_bytes.max(memory_bytes);
    }

    /// The call is over, with this answer: says so to those who watch and to the record.
    pub(super) fn answered(mut self: Box<Self>, outcome: &'static str, usage: Usage) {
        self.conclude(outcome, None, usage);
    }

    /// The call is over, and has failed. Gives the error as the caller is told it.
    pub(super) fn failed(mut self: Box<Self>, error: CallError, usage: Usage) -> CallError {
        let error = self.told(error);
        self.conclude(error.code(), Some(&error), usage);
        error
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
        mask::error(&self.redactor, error)
    }

    /// Tells those who watch how the call has ended, and records it.
    fn conclude(&mut self, outcome: &'static str, error: Option<&CallError>, usage: Usage) {
        self.over = true;
        self.span.record("outcome", outcome);
        self.span.in_scope(|| tracing::debug!("the call is over: {outcome}"));
        if let Some(tool_metrics) = &self.tool_metrics {
            tool_metrics.count(outcome, Duration::from_micros(usage.wall_micros));
        }
        let error = || error.map(ToString::to_string);
        self.step(|| Step::Ended { outcome, error: error(), usage });
        let (Some(history), Some(fingerprint)) = (&self.invoke_services.history, self.fingerprint)
        else {
            return;
        };
        let began = SystemTime::now().checked_sub(self.began.elapsed());
        let record = Record {
            kind: self.kind,
            at: began.map_or(0, milliseconds),
            call: self.number.to_string(),
            plugin: self.plugin.take(),
            by: self.caller.by.take(),
            tool: std::mem::take(&mut self.name),
            agent: self.caller.agent_id.take(),
            session: self.caller.session_id.take(),
            principal: self.caller.principal.take(),
            run: self.caller.run.take(),
            trace: self.trace.map(|trace| trace.trace_id()),
            fingerprint,
            arguments: std::mem::take(&mut self.arguments).into_value(),
            outcome: outcome.into(),
            error: error(),
            full_result_uri: self.whole.take(),
            usage,
        };
        history.record(QueuedRecord::new(record, self.redactor.clone()));
    }

    /// What the call has used so far.
    pub(super) fn usage(&mut self) -> Usage {
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

impl Drop for CallState {
    /// The caller has dropped the call before it was over.
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            permission::give_up(begun);
        }
        if !self.over {
            let usage = self.usage();
            self.conclude("abandoned", None, usage);
        }
    }
}

impl StreamedCall for CallState {
    fn wrote(&mut self, bytes: u64) {
        self.bytes_out += bytes;
    }

    fn end_of_stream(
        mut self: Box<Self>,
        summary: Result<CompletionSummary, Failure>,
    ) -> Result<CompletionSummary, Failure> {
        let usage = self.usage();
        match summary {
            Ok(summary) => {
                self.answered("ok", usage);
                Ok(summary)
            }
            Err(failure) => {
                let plugin = self.plugin.clone().unwrap_or_default();
                let error = CallError::Failed { plugin, failure: failure.clone() };
                self.failed(error, usage);
                Err(failure)
            }
        }
    }
}
