//! Calls of tools: what is particular to them on the way of all requests.

use futures::future::{BoxFuture, FutureExt};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use tenon_config::pins::McpDefinition;
use tenon_config::secret::Redactor;
use tenon_types::mcp_json;
use tenon_types::{CallContext, HookPoint, Json, ToolResult};
use tracing::Span;

use super::mcp_operations::{self, OperationResult};
use super::pipeline::{self, AnswerChange, HookPoints, PipelineAnswer, Request};
use super::state::{CallState, REFUSED, USAGE};
use super::truncate::{bound, bound_again, length};
use super::{InvokeServices, span};
use crate::call::escape;
use crate::call::mask::{Masked, Unmasked};
use crate::call::{Call, CallError, CallKind, Failure, Usage};
use crate::invoke::stored_results::ResultStore;
use crate::register::call_settings::CallSettings;
use crate::register::tool_metrics::ToolMetrics;
use crate::register::{RegisteredPlugin, Registry, ResolvedTool, ServedBy, Tool};
use crate::runtime::PluginHandle;
use crate::runtime::schema::nulls;

/// The member of a result's `_meta` that says how structured content differs from what the tool's
/// output schema promised.
pub const OUTPUT_MISMATCH: &str = "tenon/outputSchemaMismatch";

/// Calls a tool.
pub(crate) async fn call_tool(
    invoke_services: &Arc<InvokeServices>,
    registry: &Registry,
    mut call: Call,
) -> Result<Masked<ToolResult>, CallError> {
    let resolved = registry.resolve_shared(&mut call);
    let state = CallState::begin(invoke_services, registry, CallKind::Tool, call);
    let found = resolved.and_then(|()| look_up(registry, &state.name)).map(ToolRequest);
    pipeline::run(registry, state, found).await
}

/// The hook points around a call of a tool, and around what is asked of resources and prompts.
pub(super) const TOOL_POINTS: HookPoints = HookPoints {
    before: HookPoint::BeforeToolCall,
    after: HookPoint::AfterToolCall,
    asked: ("arguments", None),
    answer: "result",
};

/// A tool that is called.
struct ToolRequest<'a>(ResolvedTool<'a>);

impl Request for ToolRequest<'_> {
    type Answer = ToolResult;

    const POINTS: Option<HookPoints> = Some(TOOL_POINTS);

    fn plugin(&self) -> &Arc<RegisteredPlugin> {
        self.0.plugin
    }

    fn constraints(&self) -> &CallSettings {
        self.0.constraints
    }

    fn constraints_in<'a>(
        &'a self,
        state: &CallState,
        registry: &'a Registry,
    ) -> Option<&'a CallSettings> {
        let latest = look_up(registry, &state.name).ok()?;
        let code = |of: &ResolvedTool<'_>| of.plugin.loaded().code_digest();
        let is_same =
            code(&latest) == code(&self.0) && latest.tool.definition == self.0.tool.definition;
        is_same.then_some(latest.constraints)
    }

    fn ruled_arguments<'a>(&self, arguments: &'a Value) -> Cow<'a, Value> {
        self.0.ruled_arguments(arguments)
    }

    fn tool_metrics(&self) -> Option<&Arc<ToolMetrics>> {
        Some(self.0.tool_metrics)
    }

    fn span(&self, state: &CallState) -> Span {
        let (number, trace) = (state.number(), state.trace());
        span!("call", self.0.id(), state.caller, number, trace, tool = state.name)
    }

    fn prepare<'a>(&'a self, arguments: &'a mut Value) -> Option<BoxFuture<'a, ()>> {
        let Tool { arguments: schema, definition, .. } = self.0.tool;
        if nulls::leave_out(schema, arguments) {
            return None;
        }
        let loaded = self.0.plugin.loaded();
        let (sandbox, limits) = (loaded.schemas(), loaded.limits());
        Some(
            nulls::leave_out_confined(sandbox, &definition.input_schema, limits, arguments).boxed(),
        )
    }

    fn definition_digest(&self) -> String {
        McpDefinition::of_tool(&self.0.tool.definition).sha256().to_string()
    }

    async fn check(&self, state: &CallState) -> Result<Vec<String>, CallError> {
        let tool = self.0.tool;
        match tool.arguments.problems(state.arguments.value()) {
            Some(problems) => Ok(problems),
            None => {
                let schema = &tool.definition.input_schema;
                Box::pin(self.check_confined(schema, state.arguments.value(), "the arguments"))
                    .await
            }
        }
    }

    fn ask(
        &mut self,
        plugin: PluginHandle<'_>,
        redactor: &Arc<Redactor>,
        arguments: &Json,
        context: CallContext,
    ) -> (u64, impl Future<Output = Unmasked<Result<ToolResult, Failure>>> + Send) {
        let arguments = arguments.clone();
        let bytes_in = arguments.text().len() as u64;
        let tool = self.0.tool;
        let answer = async move {
            match tool.served {
                ServedBy::ByPlugin => {
                    let name = &tool.definition.name;
                    let answer = plugin.call_tool(name, arguments, context).await;
                    answer.map(|answer| {
                        answer.map(|mut result| {
                            mcp_json::drop_ours_of(&mut result);
                            result
                        })
                    })
                }
                ServedBy::ByHost(operation) => {
                    let arguments = arguments.value();
                    let answer =
                        mcp_operations::serve(operation, plugin, redactor, arguments, context);
                    let answer = Box::pin(answer).await;
                    answer.map(|answer| answer.map(OperationResult::into_result))
                }
            }
        };
        (bytes_in, answer)
    }

    fn explain(&self, state: &CallState, error: CallError) -> CallError {
        match self.0.tool.served {
            ServedBy::ByPlugin => error,
            ServedBy::ByHost(operation) => {
                mcp_operations::explain(operation, self.0.plugin, state.arguments.value(), error)
            }
        }
    }

    async fn check_answer(&self, result: ToolResult) -> Result<ToolResult, CallError> {
        self.check_result(result).await
    }
}

impl ToolRequest<'_> {
    /// Checks a value against a schema of the tool that may cost any amount. What it costs too much is
    /// the failure of the plugin.
    async fn check_confined(
        &self,
        schema: &str,
        value: &Value,
        what: &'static str,
    ) -> Result<Vec<String>, CallError> {
        let loaded = self.0.plugin.loaded();
        let problems = loaded.schemas().problems(schema, value, what, loaded.limits());
        problems.await.map_err(CallError::failed(loaded.id()))
    }

    /// Checks that what should be JSON is, and marks a result whose structured content is not what the
    /// tool promised: its text may serve all the same. Content that is too long to be passed on is not
    /// held against the promise, which would cost many times its length.
    async fn check_result(&self, mut result: ToolResult) -> Result<ToolResult, CallError> {
        let (id, tool) = (self.0.id(), self.0.tool);
        mcp_json::check_tool_result(&result)
            .map_err(|error| CallError::failed(id)(Failure::Contract(error.to_string())))?;
        let most = self.0.plugin.loaded().limits().output;
        let Some(schema) = tool.output.as_ref().filter(|_| !result.is_error) else {
            return Ok(result);
        };
        let mismatch = match &result.structured {
            None => vec!["structured content is missing".to_string()],
            Some(json) if json.len() > most => return Ok(result),
            Some(json) => {
                let value: Value = serde_json::from_str(json).unwrap_or_default();
                match schema.problems(&value) {
                    Some(problems) => problems,
                    None => {
                        let schema = tool.definition.output_schema.as_deref().unwrap_or("true");
                        Box::pin(self.check_confined(schema, &value, "the result")).await?
                    }
                }
            }
        };
        if mismatch.is_empty() {
            return Ok(result);
        }
        let mismatch = mismatch.join("; ");
        // What is wrong may quote the result, in which secrets are not masked yet.
        tracing::warn!("the result does not match its output schema; see its `_meta`");
        mcp_json::insert_meta(&mut result, OUTPUT_MISMATCH, &mismatch);
        Ok(result)
    }
}

impl ResolvedTool<'_> {
    pub(super) fn id(&self) -> &Arc<str> {
        self.plugin.id()
    }
}

impl PipelineAnswer for ToolResult {
    fn length(&self) -> usize {
        length(self)
    }

    fn outcome(&self) -> &'static str {
        if self.is_error { "tool-error" } else { "ok" }
    }

    async fn bound(
        self,
        most: usize,
        kept: Option<String>,
        results: &Arc<ResultStore>,
    ) -> (Self, Option<String>) {
        match kept {
            None => bound(self, most, results).await,
            // It was cut before: where the whole is, it says already.
            Some(kept) => (bound_again(self, most, kept.clone()), Some(kept)),
        }
    }

    fn form(&self) -> Value {
        mcp_json::tool_result(self)
    }

    fn changed(self, change: AnswerChange<'_>) -> Result<Self, String> {
        let ours = mcp_json::ours_in(self.extra.as_deref());
        // A handler's result is read where it is seen whether it is one.
        let mut changed = change.result.map_or(self, |result| *result);
        // Nor does a handler speak for the host.
        mcp_json::drop_ours(&mut changed.extra);
        ours.iter().for_each(|(key, value)| mcp_json::insert_meta(&mut changed, key, value));
        Ok(changed)
    }

    fn show(&mut self) -> bool {
        escape::result(self)
    }

    fn tell(&mut self, usage: &Usage, refusals: &[String]) {
        mcp_json::insert_meta_of(&mut self.extra, USAGE, &usage);
        if !refusals.is_empty() {
            mcp_json::insert_meta(self, REFUSED, &refusals);
        }
    }
}

fn look_up<'a>(registry: &'a Registry, name: &str) -> Result<ResolvedTool<'a>, CallError> {
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
