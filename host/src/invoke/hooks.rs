//! The chain of hooks at a point: in load order, each handler sees the context as the one before it
//! left it.

use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::memory::Question;
use super::{Caller, served, span_of};
use crate::bindings::hook_handler::{Event, Outcome};
use crate::bindings::types::HookPoint;
use crate::config::{HookSettings, OnFailure};
use crate::register::{Registered, Registry};
use crate::runtime::Failure;

/// What came of a point.
#[derive(Debug, Clone)]
pub struct HookReport {
    /// Whether to go on.
    pub outcome: HookOutcome,
    /// The context as the last handler left it.
    pub context: Value,
    /// Who was asked, in order.
    pub handlers: Vec<HandlerReport>,
}

/// Whether to go on.
#[derive(Debug, Clone)]
pub enum HookOutcome {
    /// With the context of the report.
    Continue,
    /// A handler has stopped what was about to happen.
    Veto {
        /// Who.
        plugin: Arc<str>,
        /// Why.
        reason: String,
    },
    /// A handler has failed, and the configuration has that stop the chain.
    Stopped {
        /// Whose.
        plugin: Arc<str>,
        /// Why.
        failure: Failure,
    },
}

/// What one handler did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandlerReport {
    /// The plugin.
    pub plugin: String,
    /// `continue`, `replace`, `veto` or `error`.
    pub outcome: &'static str,
    /// Why it counts as an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// It was not asked: it is deterministic, and has answered the same question before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remembered: bool,
}

/// Runs the handlers of a point. One that fails is recorded, and the chain goes on with the context
/// as it was before it, or stops there, as the configuration has it.
pub(crate) async fn fire(
    registry: &Registry,
    point: &HookPoint,
    context: Map<String, Value>,
    caller: &Caller,
) -> HookReport {
    let HookSettings { timeout, on_failure, .. } = &registry.settings().hooks;
    let start = Instant::now();
    let mut context = context;
    let mut outcome = HookOutcome::Continue;
    let mut handlers = Vec::new();
    for plugin in registry.handlers(point) {
        let id = plugin.loaded().id();
        let began = Instant::now();
        let memory = registry.memory(id);
        let question = memory.map(|memory| (memory, Question::new(point, &context, caller)));
        let known = question.as_ref().and_then(|(memory, question)| memory.answer(question));
        let remembered = known.is_some();
        let answer = match known {
            Some(decision) => Ok(decision),
            None => {
                let left = caller.timeout.map(|all| all.saturating_sub(start.elapsed()));
                let caller = Caller { timeout: left, ..caller.clone() };
                ask(registry, plugin, point, &context, &caller, *timeout).await
            }
        };
        // Where the caller's time is up, there is none for the others.
        let late = caller.timeout.is_some_and(|all| start.elapsed() >= all);
        if let (Some((memory, question)), Ok(decision), false) = (question, &answer, remembered) {
            memory.remember(question, decision);
        }
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let (word, error) = match answer {
            Ok(Decision::Continue) => ("continue", None),
            Ok(Decision::Replace(replaced)) => {
                context = replaced;
                ("replace", None)
            }
            Ok(Decision::Veto(reason)) => {
                outcome = HookOutcome::Veto { plugin: id.clone(), reason };
                ("veto", None)
            }
            Err(failure) => {
                tracing::warn!(plugin = &**id, %point, "a hook handler failed: {failure}");
                let error = failure.to_string();
                if *on_failure == OnFailure::Stop || late {
                    outcome = HookOutcome::Stopped { plugin: id.clone(), failure };
                }
                ("error", Some(error))
            }
        };
        let plugin = id.to_string();
        handlers.push(HandlerReport { plugin, outcome: word, error, micros, remembered });
        if !matches!(outcome, HookOutcome::Continue) {
            break;
        }
    }
    HookReport { outcome, context: Value::Object(context), handlers }
}

/// An outcome that was checked.
#[derive(Debug, Clone)]
pub(crate) enum Decision {
    Continue,
    Replace(Map<String, Value>),
    Veto(String),
}

async fn ask(
    registry: &Registry,
    plugin: &Arc<Registered>,
    point: &HookPoint,
    context: &Map<String, Value>,
    caller: &Caller,
    timeout: Duration,
) -> Result<Decision, Failure> {
    let loaded = plugin.loaded();
    let json = serde_json::to_string(context).map_err(|error| Failure::Host(error.to_string()))?;
    let (timeout, call) = caller.context(timeout.min(loaded.limits().wall));
    let span = span_of!("hook", loaded.id(), caller, call, point = point.to_string());
    let event = Event { point: point.clone(), context: json, call };
    match served(span, registry, caller, timeout, loaded.plugin().handle(event)).await? {
        Outcome::Continue => Ok(Decision::Continue),
        Outcome::Replace(mut json) => {
            registry.redactor().json_text(&mut json);
            match serde_json::from_str(&json) {
                Ok(Value::Object(replaced)) => replace(point, context, replaced),
                Ok(_) => Err(Failure::Contract("the new context is not a JSON object".into())),
                Err(error) => {
                    Err(Failure::Contract(format!("the new context is not JSON: {error}")))
                }
            }
        }
        Outcome::Veto(_) if !point.allows_veto() => {
            Err(Failure::Contract(format!("{point} cannot be vetoed: it has happened")))
        }
        Outcome::Veto(reason) => Ok(Decision::Veto(registry.redactor().text(&reason).into_owned())),
    }
}

/// The context that a handler puts in place of another, as far as the point lets it.
fn replace(
    point: &HookPoint,
    context: &Map<String, Value>,
    mut replaced: Map<String, Value>,
) -> Result<Decision, Failure> {
    point
        .check(&replaced)
        .map_err(|problem| Failure::Contract(format!("the new context: {problem}")))?;
    if let Some(subject) = point.info().and_then(|info| info.subject) {
        let changed = replaced.remove(subject);
        replaced.clone_from(context);
        replaced.extend(changed.map(|value| (subject.to_string(), value)));
    }
    Ok(Decision::Replace(replaced))
}
