//! The chain of hooks at a point: by priority and in load order, each handler sees the context as the one before
//! it left it. The outcome of a handler that audits is recorded and not honoured.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenon_config::config::OnFailure;
use tenon_config::secret::Redactor;
use tenon_types::text::shorten;
use tenon_types::{
    CallContext, HookContext, HookDecision, HookEvent, HookMode, HookPoint, Json, ToolResult,
};
use tracing::Span;

use super::pipeline::{self, HookPoints, PipelineAnswer, Request};
use super::state::CallState;
use super::{InvokeServices, span};
use crate::call::escape;
use crate::call::mask::{MaskSecrets, Unmasked};
use crate::call::{
    Call, CallError, CallKind, Caller, Failure, HandlerReport, HookOutcome, HookReport,
};
use crate::register::call_settings::CallSettings;
use crate::register::hook_answer_cache::{HookQuestion, Replacement, ValidatedDecision};
use crate::register::{HookHandler, RegisteredPlugin, Registry};
use crate::runtime::PluginHandle;

/// What came of a chain of handlers.
pub(crate) struct ChainReport {
    pub(super) outcome: HookOutcome,
    /// The context as the last handler left it.
    pub(super) context: HookContext,
    pub(super) handlers: Vec<HandlerReport>,
    /// The tool's result that is in the context, where a handler has put it there.
    pub(super) result: Option<Box<ToolResult>>,
}

impl From<ChainReport> for HookReport {
    fn from(report: ChainReport) -> Self {
        let ChainReport { outcome, context, handlers, result: _ } = report;
        Self { outcome, context: context.into_value(), handlers }
    }
}

/// Runs the handlers of a point. One that fails is recorded, and the chain goes on with the context
/// as it was before it, or stops there, as the configuration has it.
///
/// Handlers are asked the way of all requests, which itself fires points: the future is boxed.
pub(crate) fn fire<'a>(
    invoke_services: &'a Arc<InvokeServices>,
    registry: &'a Registry,
    point: &'a HookPoint,
    context: HookContext,
    caller: &'a Caller,
) -> BoxFuture<'a, ChainReport> {
    chain(invoke_services, registry, point, context, caller).boxed()
}

/// How deep the values of a context may be nested. Readers of JSON follow 127 levels; a handler that could not
/// read what it guards against would be left out.
const MAX_CONTEXT_DEPTH: usize = 120;

async fn chain(
    invoke_services: &Arc<InvokeServices>,
    registry: &Registry,
    point: &HookPoint,
    mut context: HookContext,
    caller: &Caller,
) -> ChainReport {
    let settings = registry.settings();
    let start = Instant::now();
    let mut result = None;
    let mut outcome = HookOutcome::Continue;
    let mut handlers = Vec::new();
    // Whether a project's handler has had a hand in the context.
    let mut is_of_project = false;
    let is_handled = !registry.handlers(point).is_empty();
    let mut is_too_deep = is_handled && is_too_deep_for_readers(&context);
    // A guard of the user's knows a tool by its name in the user's style, whatever a project calls it.
    let users_name = match point {
        HookPoint::BeforeToolCall | HookPoint::AfterToolCall => {
            let text = |name: &str| context.text(name).unwrap_or_default();
            registry.name_for_user(text("plugin"), text("tool"))
        }
        _ => None,
    };
    for HookHandler { plugin, mode } in registry.handlers(point) {
        let id = plugin.id();
        let timeout = settings.of(plugin.loaded().origin()).hooks.timeout;
        let began = Instant::now();
        let users_name = users_name.as_ref().filter(|_| !plugin.loaded().origin().is_of_project());
        let seen = match users_name {
            None => Cow::Borrowed(&context),
            Some(name) => {
                let mut seen = context.clone();
                seen.set("tool", name.as_str().into());
                Cow::Owned(seen)
            }
        };
        let memory = registry.memory(id);
        let question = memory.map(|memory| (memory, HookQuestion::new(point, &seen, caller)));
        let known = question.as_ref().and_then(|(memory, question)| memory.answer(question));
        let remembered = known.is_some();
        let answer = match known {
            Some(decision) => Ok(decision),
            None if is_too_deep => Err(Failure::Host(format!(
                "the context is nested deeper than {MAX_CONTEXT_DEPTH}, which no handler can read"
            ))),
            None => {
                let left = caller.timeout.map(|all| all.saturating_sub(start.elapsed()));
                let caller = Caller { timeout: left, ..caller.clone() };
                let handler = HandlerCall { plugin, point, context: &seen, timeout };
                ask(invoke_services, registry, handler, caller).await
            }
        };
        // Where the caller's time is up, there is none for the others.
        let late = caller.timeout.is_some_and(|all| start.elapsed() >= all);
        if let (Some((memory, question)), Ok(decision), false) = (question, &answer, remembered) {
            memory.remember(question, decision);
        }
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let audited = *mode == HookMode::Audit;
        let (word, error) = match answer {
            Ok(ValidatedDecision::Continue) => ("continue", None),
            Ok(decision) if audited => (decision.outcome(), None),
            Ok(ValidatedDecision::Replace(replacement)) => {
                match replacement {
                    Replacement::Context(replaced) => context = replaced,
                    Replacement::Member { name, value, result: read } => {
                        match value {
                            Some(value) => context.share(name, value),
                            None => drop(context.remove(name)),
                        }
                        result = read;
                    }
                }
                is_too_deep = is_too_deep_for_readers(&context);
                is_of_project |= plugin.loaded().origin().is_of_project();
                ("replace", None)
            }
            Ok(ValidatedDecision::Veto(reason)) => {
                outcome = HookOutcome::Veto { plugin: id.clone(), reason };
                ("veto", None)
            }
            Err(failure) => {
                tracing::warn!(plugin = &**id, %point, "a hook handler failed: {failure}");
                let error = failure.to_string();
                // A project cannot have its user's guard fail, and so be left out.
                let is_failed = is_of_project && !plugin.loaded().origin().is_of_project();
                let stops = settings.on_failure == OnFailure::Stop || is_failed || is_too_deep;
                if late || stops && !audited {
                    outcome = HookOutcome::Stopped { plugin: id.clone(), failure };
                }
                ("error", Some(error))
            }
        };
        let plugin = id.to_string();
        handlers.push(HandlerReport { plugin, outcome: word, error, micros, audited, remembered });
        if !matches!(outcome, HookOutcome::Continue) {
            break;
        }
    }
    ChainReport { outcome, context, handlers, result }
}

/// A handler that is asked.
struct HandlerCall<'a> {
    plugin: &'a Arc<RegisteredPlugin>,
    point: &'a HookPoint,
    context: &'a HookContext,
    timeout: Duration,
}

async fn ask(
    invoke_services: &Arc<InvokeServices>,
    registry: &Registry,
    handler: HandlerCall<'_>,
    caller: Caller,
) -> Result<ValidatedDecision, Failure> {
    let arguments = match invoke_services.are_watching() {
        true => handler.recorded(),
        false => Value::Null,
    };
    let call = Call { name: handler.point.to_string(), arguments, caller };
    let state = CallState::begin(invoke_services, registry, CallKind::Hook, call);
    match pipeline::run(registry, state, Ok(handler)).await {
        Ok(decision) => Ok(decision.into_inner()),
        Err(CallError::Failed { failure, .. }) => Err(failure),
        Err(error) => Err(Failure::Host(error.to_string())),
    }
}

impl HandlerCall<'_> {
    /// What the record says of the context. That of a call, an evaluation or a completion has a row of its own,
    /// which says the rest, as far as it is recorded.
    fn recorded(&self) -> Value {
        let is_of_another = matches!(
            self.point,
            HookPoint::BeforeToolCall
                | HookPoint::AfterToolCall
                | HookPoint::BeforeEvaluate
                | HookPoint::AfterEvaluate
                | HookPoint::BeforeCompletion
                | HookPoint::AfterCompletion
        );
        let about =
            |name: &str| !is_of_another || matches!(name, "tool" | "plugin" | "strategy" | "model");
        let members = self.context.members().filter(|(name, _)| about(name));
        members.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

impl Request for HandlerCall<'_> {
    type Answer = ValidatedDecision;

    const POINTS: Option<HookPoints> = None;

    fn plugin(&self) -> &Arc<RegisteredPlugin> {
        self.plugin
    }

    fn constraints(&self) -> &CallSettings {
        &CallSettings::ONCE
    }

    fn span(&self, state: &CallState) -> Span {
        let (number, trace) = (state.number(), state.trace());
        let id = self.plugin.id();
        span!("hook", id, state.caller, number, trace, point = state.name)
    }

    fn wall(&self) -> Duration {
        self.timeout.min(self.plugin.loaded().limits().wall)
    }

    fn ask(
        &mut self,
        plugin: PluginHandle<'_>,
        _: &Arc<Redactor>,
        _: &Json,
        call: CallContext,
    ) -> (u64, impl Future<Output = Unmasked<Result<ValidatedDecision, Failure>>> + Send) {
        let point = self.point;
        let bytes_in = self.context.text_length() as u64;
        let event = HookEvent { point: point.clone(), context: self.context.clone(), call };
        let decision = async move {
            let outcome = plugin.handle(event).await;
            outcome.map(|outcome| decide(point, outcome?))
        };
        (bytes_in, decision)
    }
}

/// What an outcome means at a point.
fn decide(point: &HookPoint, outcome: HookDecision) -> Result<ValidatedDecision, Failure> {
    match outcome {
        HookDecision::Continue => Ok(ValidatedDecision::Continue),
        HookDecision::Replace(replaced) => replace(point, replaced).map(ValidatedDecision::Replace),
        HookDecision::Veto(_) if !point.allows_veto() => {
            Err(Failure::Contract(format!("{point} cannot be vetoed: it has happened")))
        }
        HookDecision::Veto(reason) => Ok(ValidatedDecision::Veto(reason)),
    }
}

/// Whether a member is nested deeper than readers of JSON follow.
fn is_too_deep_for_readers(context: &HookContext) -> bool {
    context.members().any(|(_, value)| is_deeper_than(value, MAX_CONTEXT_DEPTH))
}

/// Whether a value is nested deeper than so many levels. It is followed no deeper than that.
fn is_deeper_than(value: &Value, most: usize) -> bool {
    let is_deeper = |inner: &Value| most == 0 || is_deeper_than(inner, most - 1);
    match value {
        Value::Array(items) => items.iter().any(is_deeper) || most == 0,
        Value::Object(members) => members.values().any(is_deeper) || most == 0,
        _ => false,
    }
}

/// The longest reason of a veto, in bytes.
const MAX_REASON_BYTES: usize = 16 << 10;

impl MaskSecrets for ValidatedDecision {
    fn mask(&mut self, redactor: &Arc<Redactor>) {
        match self {
            Self::Continue => {}
            Self::Replace(_) if redactor.is_idle() => {}
            Self::Replace(Replacement::Context(context)) => {
                let mut masked = std::mem::take(context).into_value();
                redactor.texts(&mut masked);
                if let Value::Object(masked) = masked {
                    *context = masked.into();
                }
            }
            Self::Replace(Replacement::Member { value, result, .. }) => {
                value.iter_mut().for_each(|value| redactor.texts(Arc::make_mut(value)));
                result.iter_mut().for_each(|result| result.mask(redactor));
            }
            Self::Veto(reason) => {
                redactor.redact(reason);
                shorten(reason, MAX_REASON_BYTES);
            }
        }
    }
}

impl PipelineAnswer for ValidatedDecision {
    fn length(&self) -> usize {
        match self {
            Self::Continue => 0,
            Self::Replace(replacement) => replacement.weight(),
            Self::Veto(reason) => reason.len(),
        }
    }

    fn outcome(&self) -> &'static str {
        match self {
            Self::Continue => "ok",
            Self::Replace(_) => "replace",
            Self::Veto(_) => "veto",
        }
    }

    /// A context is for programs.
    fn show(&mut self) -> bool {
        match self {
            Self::Veto(reason) => escape::reason(reason),
            Self::Continue | Self::Replace(_) => false,
        }
    }
}

/// What a handler puts in place of a context, as far as the point lets it.
fn replace(point: &HookPoint, mut replaced: HookContext) -> Result<Replacement, Failure> {
    let checked = point
        .check(&replaced)
        .map_err(|problem| Failure::Contract(format!("the new context: {problem}")))?;
    let Some(name) = point.info().and_then(|info| info.subject) else {
        return Ok(Replacement::Context(replaced));
    };
    let value = replaced.remove(name);
    Ok(Replacement::Member { name, value, result: checked.result.map(Box::new) })
}

#[cfg(test)]
mod tests;
