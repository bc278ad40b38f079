//! The way of a tool call: look up, before-hooks, check the arguments, ask whether it may be called,
//! attempts, check the result, redact and bound it, after-hooks, record.
//!
//! Every tool of every kind goes this way: [`call_tool`] finds the tool and sees the call off,
//! [`steps`] lists what lies between.

use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;

use super::bound::{bound, bound_again, length};
use super::hooks::{HookOutcome, HookReport, fire};
use super::passage::{Attempt, Passage};
use super::{CallError, Caller, Facilities, redact, within};
use crate::bindings::types::{HookPoint, ToolResult};
use crate::event::Step;
use crate::register::{Called, Registry, Served, Tool};
use crate::runtime::Failure;
use crate::secret::is_secret_name;
use crate::text::cut;
use crate::wire;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool's rendered name.
    pub name: String,
    /// Its arguments, a JSON object.
    pub arguments: Value,
    /// On whose behalf.
    pub caller: Caller,
}

impl Call {
    /// A call on nobody's behalf, with the plugin's own time limit.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self { name: name.into(), arguments, caller: Caller::default() }
    }
}

/// Calls a tool.
pub(crate) async fn call_tool(
    facilities: &Facilities,
    registry: &Registry,
    call: Call,
) -> Result<ToolResult, CallError> {
    let mut passage = Passage::begin(facilities, registry, call);
    let called = match look_up(registry, &passage.name) {
        Ok(called) => called,
        Err(error) => return passage.end(None, Err(error)),
    };
    let span = passage.found(called.id());
    let steps = steps(registry, &called, &mut passage).instrument(span);
    let result = steps.await;
    passage.end(Some(&called), result)
}

/// All that is done for a call of a tool that is there. Together the steps have the time that the
/// caller gives.
async fn steps(
    registry: &Registry,
    called: &Called<'_>,
    passage: &mut Passage<'_>,
) -> Result<ToolResult, CallError> {
    let timeout = passage.caller.timeout;
    let steps = Box::pin(async {
        before(registry, called, passage).await?;
        check(called.tool, passage)?;
        permit(called, passage)?;
        let result = attempt(registry, called, passage).await?;
        let result = check_result(called, result)?;
        let result = redact::result(registry.redactor(), result);
        passage.bytes_out = length(&result) as u64;
        let result = shorten(called, passage, result).await;
        passage.bounded();
        after(registry, called, passage, result).await
    });
    called.within(timeout, steps).await
}

/// How much later than the caller's time a call is given up that no step has given up itself.
const LATE: Duration = Duration::from_millis(20);

impl Called<'_> {
    pub(super) fn id(&self) -> &Arc<str> {
        self.plugin.loaded().id()
    }

    /// Gives all steps together the time that the caller has.
    async fn within<T>(
        &self,
        timeout: Option<Duration>,
        steps: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let Some(timeout) = timeout else { return steps.await };
        // Each step has what is left of the time, and knows better whose fault it is when there is
        // none: this comes after it.
        let late = timeout.saturating_add(LATE);
        within(late, async { Ok(steps.await) }).await.map_err(CallError::failed(self.id()))?
    }
}

fn look_up<'a>(registry: &'a Registry, name: &str) -> Result<Called<'a>, CallError> {
    registry.called(name).ok_or_else(|| {
        if let Some(error) = registry.absent(name) {
            return error;
        }
        if let Some(renamed) = registry.renamed(name) {
            let nearest = Some(renamed.to_string());
            return CallError::NotFound { what: "tool", name: name.to_string(), nearest };
        }
        let names = registry.tools().map(|(_, tool)| tool.name.as_str());
        CallError::not_found("tool", name, names)
    })
}

/// Lets hooks change the arguments or stop the call.
async fn before(
    registry: &Registry,
    called: &Called<'_>,
    passage: &mut Passage<'_>,
) -> Result<(), CallError> {
    // What is no object the schema refuses better than any handler.
    if registry.handlers(&HookPoint::BeforeToolCall).is_empty() || !passage.arguments.is_object() {
        return Ok(());
    }
    let context = context(called, [("arguments", passage.arguments.clone())]);
    let HookReport { outcome, mut context, handlers } =
        Box::pin(fire(registry, &HookPoint::BeforeToolCall, context, &passage.caller_now())).await;
    let changed = handlers.iter().rev().find(|handler| handler.outcome == "replace");
    passage.changed_by = changed.map(|handler| handler.plugin.as_str().into());
    passage.step(|| Step::HooksBefore { handlers });
    match outcome {
        HookOutcome::Veto { plugin, reason } => Err(CallError::Vetoed { plugin, reason }),
        HookOutcome::Stopped { plugin, failure } => Err(CallError::Failed { plugin, failure }),
        HookOutcome::Continue => {
            passage.arguments = context["arguments"].take();
            Ok(())
        }
    }
}

/// The context of a hook at a call.
fn context<const N: usize>(called: &Called<'_>, members: [(&str, Value); N]) -> Map<String, Value> {
    let which = [("tool", called.tool.name.as_str()), ("plugin", called.id())];
    let which = which.into_iter().map(|(name, value)| (name.to_string(), value.into()));
    which.chain(members.map(|(name, value)| (name.to_string(), value))).collect()
}

/// Checks the arguments against the tool's schema.
fn check(tool: &Tool, passage: &Passage<'_>) -> Result<(), CallError> {
    if tool.arguments.is_valid(&passage.arguments) {
        passage.step(|| Step::Checked);
        return Ok(());
    }
    let problems = problems(&tool.arguments, &passage.arguments);
    Err(match &passage.changed_by {
        None => {
            CallError::InvalidInput { what: "arguments", name: tool.name.to_string(), problems }
        }
        Some(plugin) => CallError::failed(plugin)(Failure::Contract(format!(
            "its hook left arguments that {} does not take: {}",
            tool.name,
            problems.join("; ")
        ))),
    })
}

/// The longest description of one thing that is wrong, in bytes.
const PROBLEM: usize = 512;

/// What a schema finds wrong with a value, each with its place. The value's own contents are not
/// repeated at length.
pub(super) fn problems(validator: &jsonschema::Validator, value: &Value) -> Vec<String> {
    let describe = |error: jsonschema::ValidationError<'_>| {
        let place = error.instance_path().to_string();
        // What goes under such a name is not repeated.
        let secret = place.split('/').any(is_secret_name);
        let problem = if secret { error.masked().to_string() } else { error.to_string() };
        let problem = cut(&problem, PROBLEM);
        if place.is_empty() { problem.to_string() } else { format!("at {place}: {problem}") }
    };
    validator.iter_errors(value).take(8).map(describe).collect()
}

/// Asks whether the operator lets the tool be called.
fn permit(called: &Called<'_>, passage: &Passage<'_>) -> Result<(), CallError> {
    match called.constraints.enabled {
        true => {
            passage.step(|| Step::Permitted);
            Ok(())
        }
        false => Err(CallError::Disabled {
            tool: called.tool.name.to_string(),
            by: "`enabled = false` under [tools]",
        }),
    }
}

/// Calls the plugin, and again where the failure may pass and the tool may be called twice.
async fn attempt(
    registry: &Registry,
    called: &Called<'_>,
    passage: &mut Passage<'_>,
) -> Result<ToolResult, CallError> {
    let loaded = called.plugin.loaded();
    let wall = called
        .constraints
        .timeout
        .map_or(loaded.limits().wall, |timeout| timeout.min(loaded.limits().wall));
    loop {
        let started = match loaded.plugin().starting() {
            Some(starting) => starting.await,
            None => Ok(()),
        };
        let Attempt { number: attempt, timeout, context, serving } = passage.next_attempt(wall);
        let arguments = wire::written(&passage.arguments);
        passage.bytes_in = arguments.len() as u64;
        let answer = async {
            started?;
            let (plugin, redactor) = (&**loaded.plugin(), registry.redactor());
            match called.tool.served {
                Served::ByPlugin => {
                    let name = &called.tool.definition.name;
                    let answer = plugin.call_tool(name, arguments, context).await;
                    answer.map(|mut result| {
                        wire::drop_ours_of(&mut result);
                        result
                    })
                }
                Served::ByHost(operation) => {
                    let answer = operation.serve(plugin, redactor, &passage.arguments, context);
                    Box::pin(answer).await
                }
            }
        };
        let answer = serving.by(within(timeout, answer)).await;
        passage.used();
        let answer = answer.map_err(|failure| redact::failure(registry.redactor(), failure));
        let error = answer.as_ref().err();
        passage.step(|| Step::Attempted { attempt, error: error.map(ToString::to_string) });
        let failure = match answer {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        let Some(wait) = called.constraints.wait(attempt, &failure) else {
            return Err(CallError::failed(called.id())(failure));
        };
        tracing::info!("attempt {attempt} failed: {failure}");
        tokio::time::sleep(wait).await;
    }
}

/// The member of a result's `_meta` that says how structured content differs from what the tool's
/// output schema promised.
pub const OUTPUT_MISMATCH: &str = "tenon/outputSchemaMismatch";

/// Checks that what should be JSON is, and marks a result whose structured content is not what the
/// tool promised: its text may serve all the same. Content that is too long to be passed on is not
/// held against the promise, which would cost many times its length.
fn check_result(called: &Called<'_>, mut result: ToolResult) -> Result<ToolResult, CallError> {
    let (id, tool) = (called.id(), called.tool);
    wire::check_tool_result(&result)
        .map_err(|error| CallError::failed(id)(Failure::Contract(error.to_string())))?;
    let most = called.plugin.loaded().limits().output;
    let Some(schema) = tool.output.as_ref().filter(|_| !result.is_error) else {
        return Ok(result);
    };
    let mismatch = match &result.structured {
        None => vec!["there is no structured content".to_string()],
        Some(json) if json.len() > most => return Ok(result),
        Some(json) => match serde_json::from_str(json).unwrap_or_default() {
            value if schema.is_valid(&value) => return Ok(result),
            value => problems(schema, &value),
        },
    };
    let mismatch = mismatch.join("; ");
    tracing::warn!("the result is not what its output schema promised: {mismatch}");
    wire::insert_meta(&mut result, OUTPUT_MISMATCH, &mismatch);
    Ok(result)
}

/// Cuts a result that is too long; the whole is kept.
async fn shorten(called: &Called<'_>, passage: &mut Passage<'_>, result: ToolResult) -> ToolResult {
    let most = called.plugin.loaded().limits().output;
    let Some(kept) = passage.whole.clone() else {
        let (result, whole) = bound(result, most, &passage.facilities.results).await;
        passage.whole = whole;
        return result;
    };
    // It was cut before: where the whole is, it says already.
    bound_again(result, most, kept)
}

/// Lets hooks change the result. What they make of it is kept as short.
async fn after(
    registry: &Registry,
    called: &Called<'_>,
    passage: &mut Passage<'_>,
    result: ToolResult,
) -> Result<ToolResult, CallError> {
    if registry.handlers(&HookPoint::AfterToolCall).is_empty() {
        return Ok(result);
    }
    let form = wire::tool_result(&result);
    let arguments = passage.arguments.clone();
    let context = context(called, [("arguments", arguments), ("result", form.clone())]);
    let HookReport { outcome, mut context, handlers } =
        Box::pin(fire(registry, &HookPoint::AfterToolCall, context, &passage.caller_now())).await;
    passage.step(|| Step::HooksAfter { handlers });
    if let HookOutcome::Stopped { plugin, failure } = outcome {
        return Err(CallError::Failed { plugin, failure });
    }
    let changed = context["result"].take();
    if changed == form {
        return Ok(result);
    }
    // Each handler's result was read once already, to see whether it can be.
    let ours = wire::ours_in(result.extra.as_deref());
    let mut changed = wire::read_tool_result(changed).unwrap_or(result);
    // Nor does a handler speak for the host.
    wire::drop_ours(&mut changed.extra);
    ours.iter().for_each(|(key, value)| wire::insert_meta(&mut changed, key, value));
    Ok(shorten(called, passage, redact::result(registry.redactor(), changed)).await)
}
