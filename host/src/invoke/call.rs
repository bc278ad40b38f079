//! The way of a tool call: look up, before-hooks, check the arguments, call, check the result,
//! after-hooks.
//!
//! Every tool of every kind goes this way, and [`call_tool`] lists its steps.

use serde_json::{Map, Value};
use std::sync::Arc;

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
    let (plugin, tool) = look_up(registry, &name)?;
    let arguments = before(registry, plugin, tool, arguments, &caller).await?;
    check(tool, &arguments)?;
    let result = run(plugin, tool, &arguments, &caller).await?;
    check_result(plugin, &result)?;
    after(registry, plugin, tool, &arguments, result, &caller).await
}

fn look_up<'a>(
    registry: &'a Registry,
    name: &str,
) -> Result<(&'a Arc<Registered>, &'a Tool), CallError> {
    registry.tool(name).ok_or_else(|| {
        let names = registry.tools().map(|(_, tool)| tool.name.as_str());
        CallError::not_found("tool", name, names)
    })
}

/// Lets hooks change the arguments or stop the call.
async fn before(
    registry: &Registry,
    plugin: &Arc<Registered>,
    tool: &Tool,
    arguments: Value,
    caller: &Caller,
) -> Result<Value, CallError> {
    if registry.handlers(&HookPoint::BeforeToolCall).is_empty() {
        return Ok(arguments);
    }
    if !arguments.is_object() {
        // The schema says so better than any handler.
        return Ok(arguments);
    }
    let context = context(plugin, tool, [("arguments", arguments)]);
    let mut report = fire(registry, &HookPoint::BeforeToolCall, context, caller).await;
    match report.outcome {
        HookOutcome::Veto { plugin, reason } => Err(CallError::Vetoed { plugin, reason }),
        HookOutcome::Stopped { plugin, failure } => Err(CallError::Failed { plugin, failure }),
        HookOutcome::Continue => Ok(report.context["arguments"].take()),
    }
}

/// The context of a hook at a call.
fn context<const N: usize>(
    plugin: &Registered,
    tool: &Tool,
    members: [(&str, Value); N],
) -> Map<String, Value> {
    let which = [("tool", tool.name.as_str()), ("plugin", plugin.loaded().id())];
    let which = which.into_iter().map(|(name, value)| (name.to_string(), value.into()));
    which.chain(members.map(|(name, value)| (name.to_string(), value))).collect()
}

/// Checks the arguments against the tool's schema.
fn check(tool: &Tool, arguments: &Value) -> Result<(), CallError> {
    if tool.arguments.is_valid(arguments) {
        return Ok(());
    }
    Err(CallError::InvalidInput {
        what: "arguments",
        name: tool.name.to_string(),
        problems: problems(&tool.arguments, arguments),
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

async fn run(
    plugin: &Arc<Registered>,
    tool: &Tool,
    arguments: &Value,
    caller: &Caller,
) -> Result<ToolResult, CallError> {
    let loaded = plugin.loaded();
    let (timeout, context) = caller.context(loaded.limits().wall);
    let answer = loaded.plugin().call_tool(&tool.definition.name, arguments.to_string(), context);
    within(timeout, answer).await.map_err(CallError::failed(loaded.id()))
}

/// Checks that what should be JSON is.
fn check_result(plugin: &Arc<Registered>, result: &ToolResult) -> Result<(), CallError> {
    wire::check_tool_result(result).map_err(|error| {
        CallError::failed(plugin.loaded().id())(Failure::Contract(error.to_string()))
    })
}

/// Lets hooks change the result.
async fn after(
    registry: &Registry,
    plugin: &Arc<Registered>,
    tool: &Tool,
    arguments: &Value,
    result: ToolResult,
    caller: &Caller,
) -> Result<ToolResult, CallError> {
    if registry.handlers(&HookPoint::AfterToolCall).is_empty() {
        return Ok(result);
    }
    let form = wire::tool_result(&result);
    let context =
        context(plugin, tool, [("arguments", arguments.clone()), ("result", form.clone())]);
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
