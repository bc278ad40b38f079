//! The chain of hooks at a point: in load order, each handler sees the context as the one before it
//! left it.

use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Caller, within};
use crate::bindings::hook_handler::{Event, Outcome};
use crate::bindings::types::HookPoint;
use crate::register::{Registered, Registry};
use crate::runtime::Failure;

/// How long one handler may take.
const HANDLER: Duration = Duration::from_secs(5);

/// What came of a point.
#[derive(Debug, Clone, PartialEq)]
pub struct HookReport {
    /// Whether to go on.
    pub outcome: HookOutcome,
    /// The context as the last handler left it.
    pub context: Value,
    /// Who was asked, in order.
    pub handlers: Vec<HandlerReport>,
}

/// Whether to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

/// Runs the handlers of a point. One that fails is recorded, and the chain goes on with the context
/// as it was before it.
pub(crate) async fn fire(
    registry: &Registry,
    point: &HookPoint,
    context: Value,
    caller: &Caller,
) -> HookReport {
    let mut report = HookReport { outcome: HookOutcome::Continue, context, handlers: Vec::new() };
    for plugin in registry.handlers(point) {
        let began = Instant::now();
        let answer = ask(plugin, point, &report.context, caller).await;
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let id = plugin.loaded().id();
        let (outcome, error) = match answer {
            Ok(Decision::Continue) => ("continue", None),
            Ok(Decision::Replace(context)) => {
                report.context = Value::Object(context);
                ("replace", None)
            }
            Ok(Decision::Veto(reason)) => {
                report.outcome = HookOutcome::Veto { plugin: id.clone(), reason };
                ("veto", None)
            }
            Err(failure) => {
                tracing::warn!(plugin = &**id, %point, "a hook handler failed: {failure}");
                ("error", Some(failure.to_string()))
            }
        };
        report.handlers.push(HandlerReport { plugin: id.to_string(), outcome, error, micros });
        if matches!(report.outcome, HookOutcome::Veto { .. }) {
            break;
        }
    }
    report
}

/// An outcome that was checked.
enum Decision {
    Continue,
    Replace(Map<String, Value>),
    Veto(String),
}

async fn ask(
    plugin: &Arc<Registered>,
    point: &HookPoint,
    context: &Value,
    caller: &Caller,
) -> Result<Decision, Failure> {
    let loaded = plugin.loaded();
    let (timeout, call) = caller.context(HANDLER.min(loaded.limits().wall));
    let event = Event { point: point.clone(), context: context.to_string(), call };
    match within(timeout, loaded.plugin().handle(event)).await? {
        Outcome::Continue => Ok(Decision::Continue),
        Outcome::Replace(json) => match serde_json::from_str(&json) {
            Ok(Value::Object(context)) => Ok(Decision::Replace(context)),
            Ok(_) => Err(Failure::Contract("the new context is not a JSON object".into())),
            Err(error) => Err(Failure::Contract(format!("the new context is not JSON: {error}"))),
        },
        Outcome::Veto(_) if !point.allows_veto() => {
            Err(Failure::Contract(format!("{point} cannot be vetoed: it has happened")))
        }
        Outcome::Veto(reason) => Ok(Decision::Veto(reason)),
    }
}
