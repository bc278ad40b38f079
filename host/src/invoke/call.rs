//! The way of a tool call: look up, before-hooks, check the arguments, ask whether it may be called,
//! attempts, check the result, after-hooks.
//!
//! Every tool of every kind goes this way, and [`call_tool`] lists its steps.

use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

use super::constraints::Constraints;
use super::hooks::{HookOutcome, fire};
use super::{CallError, Caller, within};
use crate::bindings::types::{HookPoint, ToolResult};
use crate::register::{Registered, Registry, Tool};
use crate::runtime::Failure;
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
pub(crate) async fn call_tool(registry: &Registry, call: Call) -> Result<ToolResult, CallError> {
    let Call { name, arguments, caller } = call;
    let called = look_up(registry, &name)?;
    called
        .within(caller.timeout, async {
            let arguments = before(registry, &called, arguments, &caller).await?;
            check(called.tool, &arguments)?;
            permit(&called)?;
            let result = attempt(&called, &arguments.value, &caller).await?;
            let result = check_result(&called, result)?;
            after(registry, &called, arguments.value, result, &caller).await
        })
        .await
}

/// What is called.
struct Called<'a> {
    plugin: &'a Arc<Registered>,
    tool: &'a Tool,
    constraints: &'a Constraints,
}

impl Called<'_> {
    fn id(&self) -> &Arc<str> {
        self.plugin.loaded().id()
    }

    /// Gives all steps together the time that the caller has.
    async fn within<T>(
        &self,
        timeout: Option<Duration>,
        steps: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let Some(timeout) = timeout else { return steps.await };
        within(timeout, async { Ok(steps.await) }).await.map_err(CallError::failed(self.id()))?
    }
}

/// What a tool will be called with.
struct Arguments {
    value: Value,
    /// Whose hook they come from, if it is not the caller.
    changed_by: Option<Arc<str>>,
}

fn look_up<'a>(registry: &'a Registry, name: &str) -> Result<Called<'a>, CallError> {
    match registry.entry(name) {
        Some((plugin, tool, constraints)) => Ok(Called { plugin, tool, constraints }),
        None => {
            let names = registry.tools().map(|(_, tool)| tool.name.as_str());
            Err(CallError::not_found("tool", name, names))
        }
    }
}

/// Lets hooks change the arguments or stop the call.
async fn before(
    registry: &Registry,
    called: &Called<'_>,
    arguments: Value,
    caller: &Caller,
) -> Result<Arguments, CallError> {
    // What is no object the schema refuses better than any handler.
    if registry.handlers(&HookPoint::BeforeToolCall).is_empty() || !arguments.is_object() {
        return Ok(Arguments { value: arguments, changed_by: None });
    }
    let context = context(called, [("arguments", arguments)]);
    let mut report = fire(registry, &HookPoint::BeforeToolCall, context, caller).await;
    match report.outcome {
        HookOutcome::Veto { plugin, reason } => Err(CallError::Vetoed { plugin, reason }),
        HookOutcome::Stopped { plugin, failure } => Err(CallError::Failed { plugin, failure }),
        HookOutcome::Continue => {
            let changed = report.handlers.iter().rev().find(|handler| handler.outcome == "replace");
            let changed_by = changed.map(|handler| handler.plugin.as_str().into());
            Ok(Arguments { value: report.context["arguments"].take(), changed_by })
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
fn check(tool: &Tool, arguments: &Arguments) -> Result<(), CallError> {
    let Arguments { value, changed_by } = arguments;
    if tool.arguments.is_valid(value) {
        return Ok(());
    }
    let problems = problems(&tool.arguments, value);
    Err(match changed_by {
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

/// What a schema finds wrong with a value, each with its place. The value's own contents are not
/// repeated at length.
pub(super) fn problems(validator: &jsonschema::Validator, value: &Value) -> Vec<String> {
    let describe = |error: jsonschema::ValidationError<'_>| {
        let place = error.instance_path().to_string();
        let problem = error.to_string();
        if place.is_empty() { problem } else { format!("at {place}: {problem}") }
    };
    validator.iter_errors(value).take(8).map(describe).collect()
}

/// Asks whether the operator lets the tool be called.
fn permit(called: &Called<'_>) -> Result<(), CallError> {
    match called.constraints.enabled {
        true => Ok(()),
        false => Err(CallError::Disabled(called.tool.name.to_string())),
    }
}

/// Calls the plugin, and again where the failure may pass and the tool may be called twice.
async fn attempt(
    called: &Called<'_>,
    arguments: &Value,
    caller: &Caller,
) -> Result<ToolResult, CallError> {
    let loaded = called.plugin.loaded();
    let name = &called.tool.definition.name;
    let wall = called
        .constraints
        .timeout
        .map_or(loaded.limits().wall, |timeout| timeout.min(loaded.limits().wall));
    let mut number = 1;
    loop {
        let (timeout, context) = caller.context(wall);
        let answer = loaded.plugin().call_tool(name, arguments.to_string(), context);
        let failure = match within(timeout, answer).await {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        let Some(wait) = called.constraints.wait(number, &failure) else {
            return Err(CallError::failed(called.id())(failure));
        };
        tracing::info!(plugin = &**called.id(), tool = %called.tool.name, "attempt {number} failed: {failure}");
        tokio::time::sleep(wait).await;
        number += 1;
    }
}

/// The member of a result's `_meta` that says how structured content differs from what the tool's
/// output schema promised.
pub const OUTPUT_MISMATCH: &str = "tenon/outputSchemaMismatch";

/// Checks that what should be JSON is, and marks a result whose structured content is not what the
/// tool promised: its text may serve all the same.
fn check_result(called: &Called<'_>, mut result: ToolResult) -> Result<ToolResult, CallError> {
    let (id, tool) = (called.id(), called.tool);
    let structured = wire::check_tool_result(&result)
        .map_err(|error| CallError::failed(id)(Failure::Contract(error.to_string())))?;
    let Some(schema) = tool.output.as_ref().filter(|_| !result.is_error) else {
        return Ok(result);
    };
    let mismatch = match &structured {
        None => vec!["there is no structured content".to_string()],
        Some(value) if schema.is_valid(value) => return Ok(result),
        Some(value) => problems(schema, value),
    };
    let mismatch = mismatch.join("; ");
    tracing::warn!(plugin = &**id, tool = %tool.name, "not what its output schema promised: {mismatch}");
    wire::insert_meta(&mut result, OUTPUT_MISMATCH, mismatch.into());
    Ok(result)
}

/// Lets hooks change the result.
async fn after(
    registry: &Registry,
    called: &Called<'_>,
    arguments: Value,
    result: ToolResult,
    caller: &Caller,
) -> Result<ToolResult, CallError> {
    if registry.handlers(&HookPoint::AfterToolCall).is_empty() {
        return Ok(result);
    }
    let form = wire::tool_result(&result);
    let context = context(called, [("arguments", arguments), ("result", form.clone())]);
    let mut report = fire(registry, &HookPoint::AfterToolCall, context, caller).await;
    if let HookOutcome::Stopped { plugin, failure } = report.outcome {
        return Err(CallError::Failed { plugin, failure });
    }
    let changed = report.context["result"].take();
    if changed == form {
        return Ok(result);
    }
    // Each handler's result was read once already, to see whether it can be.
    Ok(wire::read_tool_result(changed).unwrap_or(result))
}
