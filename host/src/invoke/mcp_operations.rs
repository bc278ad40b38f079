//! The host's own operations on a plugin's resources and prompts: as tools beside the plugin's own, so
//! that a model can list and read what is there, and for hosts as functions. Either way it is the same
//! request.

use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use tenon_config::pins::DefinitionKind;
use tenon_config::secret::Redactor;
use tenon_types::mcp_json;
use tenon_types::{
    CallContext, Content, ContentBlock, Error, ErrorCode, Json, ListedResource, McpOperation,
    Prompt, PromptDefinition, ResourceContents, ResourceTemplate, Suggestions, ToolResult,
};
use tracing::Span;

use super::call::TOOL_POINTS;
use super::pipeline::{self, AnswerChange, HookPoints, PipelineAnswer, Request};
use super::state::CallState;
use super::truncate::{BLOCK_OVERHEAD_BYTES, keep_first};
use super::{InvokeServices, ReadLimit, prompts, resources, span};
use crate::call::escape;
use crate::call::mask::{self, MaskSecrets, Masked, Unmasked};
use crate::call::{Call, CallError, Caller, Failure};
use crate::invoke::stored_results::ResultStore;
use crate::register::call_settings::CallSettings;
use crate::register::operation_tools::{as_tool, with_plugin};
use crate::register::tool_metrics::ToolMetrics;
use crate::register::{RegisteredPlugin, Registry};
use crate::runtime::PluginHandle;

/// Does an operation for a plugin. The arguments are what the tool's schema takes.
pub(super) async fn serve(
    operation: McpOperation,
    plugin: PluginHandle<'_>,
    redactor: &Arc<Redactor>,
    arguments: &Value,
    context: CallContext,
) -> Unmasked<Result<OperationResult, Failure>> {
    let text = |name: &str| arguments[name].as_str().unwrap_or_default();
    let answer: Unmasked<Result<_, Failure>> = Unmasked::of(|opening| async move {
        Ok(match operation {
            McpOperation::ListResources => {
                OperationResult::Resources(resources::all(plugin, context, opening).await?)
            }
            McpOperation::ListTemplates => {
                let listed = resources::all_templates(plugin, context, opening).await;
                OperationResult::Templates(match listed {
                    Err(Failure::Unsupported(_)) => Vec::new(),
                    listed => listed?,
                })
            }
            McpOperation::ReadResource => {
                let read = plugin.read_resource(text("uri"), context).await;
                OperationResult::Contents(read.open(opening)?)
            }
            McpOperation::ListPrompts => {
                OperationResult::Prompts(prompts::all(plugin, context, opening).await?)
            }
            McpOperation::GetPrompt => {
                let filled_in = pairs(&arguments["arguments"]);
                let prompt = plugin.get_prompt(text("name"), filled_in, context).await;
                OperationResult::Prompt(prompt.open(opening)?)
            }
            McpOperation::Subscribe | McpOperation::Unsubscribe => {
                let wanted = operation == McpOperation::Subscribe;
                plugin.subscribe(text("uri"), wanted, context).await.open(opening)?;
                OperationResult::Done
            }
            McpOperation::Suggest => {
                let argument = prompts::argument(arguments).map_err(Failure::Host)?;
                let suggested = plugin.suggest(argument, context).await;
                OperationResult::Suggestions(suggested.open(opening)?)
            }
        })
    })
    .await;
    // Half a secret would not be known for one, nor one with escapes in it.
    let answer = answer.mask(redactor);
    answer.map(|answer| answer.map(|answer| answer.prepared(budget(arguments)))).again()
}

/// What a plugin answers to an operation.
pub(crate) enum OperationResult {
    Resources(Vec<ListedResource>),
    Templates(Vec<ResourceTemplate>),
    Contents(Vec<ResourceContents>),
    Prompts(Vec<PromptDefinition>),
    Prompt(Prompt),
    Suggestions(Suggestions),
    Done,
}

impl OperationResult {
    /// As it is shown: what is for reading is visible, and no more is read than was wanted.
    fn prepared(mut self, budget: ReadLimit) -> Self {
        match &mut self {
            Self::Resources(listed) => listed.iter_mut().for_each(escape::resource),
            Self::Templates(listed) => listed.iter_mut().for_each(escape::template),
            Self::Contents(read) => {
                read.iter_mut().for_each(|part| mcp_json::drop_ours(&mut part.extra));
                if let Some(most) = budget.most() {
                    resources::cut_to(read, most, None);
                }
            }
            Self::Prompts(listed) => listed.iter_mut().for_each(escape::prompt_definition),
            Self::Prompt(prompt) => escape::prompt(prompt),
            Self::Suggestions(_) | Self::Done => {}
        }
        self
    }

    /// The same as the result of a tool.
    pub(super) fn into_result(self) -> ToolResult {
        match self {
            Self::Resources(_) | Self::Templates(_) | Self::Prompts(_) | Self::Done => {
                self.to_result()
            }
            Self::Contents(read) => {
                let block = |part| ContentBlock { body: Content::Resource(part), extra: None };
                ToolResult { content: read.into_iter().map(block).collect(), ..empty() }
            }
            Self::Prompt(prompt) => {
                let form = mcp_json::prompt(&prompt);
                // Who speaks stands before what is said.
                let content = prompt.messages.into_iter().flat_map(|message| {
                    [said(format!("[{}]", mcp_json::role(message.role))), message.content]
                });
                let content = content.collect();
                ToolResult { content, structured: Some(form.to_string()), ..empty() }
            }
            Self::Suggestions(suggestions) => {
                let form = mcp_json::suggestions(&suggestions).to_string();
                ToolResult { content: vec![said(form.clone())], structured: Some(form), ..empty() }
            }
        }
    }

    fn to_result(&self) -> ToolResult {
        match self {
            Self::Resources(listed) => {
                list("resources", listed.iter().map(mcp_json::listed_resource))
            }
            Self::Templates(listed) => {
                list("resourceTemplates", listed.iter().map(mcp_json::resource_template))
            }
            Self::Prompts(listed) => {
                list("prompts", listed.iter().map(mcp_json::prompt_definition))
            }
            Self::Contents(read) => Self::Contents(read.clone()).into_result(),
            Self::Prompt(prompt) => Self::Prompt(prompt.clone()).into_result(),
            Self::Suggestions(suggestions) => Self::Suggestions(suggestions.clone()).into_result(),
            Self::Done => empty(),
        }
    }

    /// The answer that hooks have made of it as the result of a tool.
    fn read(self, before: &Value, after: Value) -> Result<Self, String> {
        let result =
            mcp_json::read_tool_result(after.clone()).map_err(|error| error.to_string())?;
        if result.is_error {
            return Err(result.plain_text());
        }
        let is_structured = before["structuredContent"] != after["structuredContent"];
        let form = match is_structured {
            true => after["structuredContent"].clone(),
            // What is structured says the same as the text, which a handler may have changed alone.
            false => serde_json::from_str(&result.plain_text()).unwrap_or_default(),
        };
        let read = match self {
            Self::Resources(_) => {
                mcp_json::read_all(&form, "resources", mcp_json::read_listed_resource)
                    .map(Self::Resources)
            }
            Self::Templates(_) => {
                mcp_json::read_all(&form, "resourceTemplates", mcp_json::read_resource_template)
                    .map(Self::Templates)
            }
            Self::Prompts(_) => {
                mcp_json::read_all(&form, "prompts", mcp_json::read_prompt_definition)
                    .map(Self::Prompts)
            }
            Self::Suggestions(_) => mcp_json::read_suggestions(form).map(Self::Suggestions),
            Self::Contents(_) => {
                let parts = result.content.into_iter().map(|block| match block.body {
                    Content::Resource(part) => Ok(part),
                    _ => Err("its hook left something else than what was read".to_string()),
                });
                return parts.collect::<Result<_, _>>().map(Self::Contents);
            }
            Self::Prompt(_) if is_structured => mcp_json::read_prompt(form).map(Self::Prompt),
            Self::Prompt(mut prompt) => {
                if result.content.len() != 2 * prompt.messages.len() {
                    return Err("its hook left something else than the messages".into());
                }
                let said = result.content.into_iter().skip(1).step_by(2);
                for (message, content) in prompt.messages.iter_mut().zip(said) {
                    message.content = content;
                }
                Ok(Self::Prompt(prompt))
            }
            Self::Done => Ok(Self::Done),
        };
        read.map_err(|error| {
            format!("its hook left something else than what was asked for: {error}")
        })
    }
}

impl MaskSecrets for OperationResult {
    fn mask(&mut self, redactor: &Arc<Redactor>) {
        match self {
            Self::Resources(listed) => listed.mask(redactor),
            Self::Templates(listed) => listed.mask(redactor),
            Self::Contents(read) => mask::read(redactor, read),
            Self::Prompts(listed) => listed.mask(redactor),
            Self::Prompt(prompt) => prompt.mask(redactor),
            Self::Suggestions(suggestions) => suggestions.mask(redactor),
            Self::Done => {}
        }
    }
}

impl PipelineAnswer for OperationResult {
    fn length(&self) -> usize {
        let items = |lengths: &mut dyn Iterator<Item = usize>| -> usize {
            lengths.map(|length| length + BLOCK_OVERHEAD_BYTES).sum()
        };
        match self {
            Self::Resources(listed) => items(&mut listed.iter().map(resources::length_of)),
            Self::Templates(listed) => items(&mut listed.iter().map(resources::length_of_template)),
            Self::Contents(read) => items(&mut read.iter().map(resources::length_of_contents)),
            Self::Prompts(listed) => items(&mut listed.iter().map(prompts::length_of_definition)),
            Self::Prompt(prompt) => prompts::length_of(prompt),
            Self::Suggestions(suggestions) => {
                let extra = suggestions.extra.as_ref().map_or(0, String::len);
                extra + items(&mut suggestions.values.iter().map(String::len))
            }
            Self::Done => 0,
        }
    }

    async fn bound(
        mut self,
        most: usize,
        kept: Option<String>,
        results: &Arc<ResultStore>,
    ) -> (Self, Option<String>) {
        let length = self.length();
        if length <= most {
            return (self, kept);
        }
        let whole = match kept {
            Some(kept) => Some(kept),
            None => results.keep_apart(self.to_result()).await,
        };
        let place = whole.as_deref().unwrap_or("nowhere");
        tracing::warn!(
            "the answer is cut: a part of {length} bytes is given; the whole is {place}"
        );
        match &mut self {
            Self::Resources(listed) => keep_first(listed, most, resources::length_of),
            Self::Templates(listed) => keep_first(listed, most, resources::length_of_template),
            Self::Contents(read) => resources::cut_to(read, most, whole.as_deref()),
            Self::Prompts(listed) => keep_first(listed, most, prompts::length_of_definition),
            Self::Prompt(prompt) => prompts::cut_to(prompt, most, length, whole.as_deref()),
            Self::Suggestions(suggestions) => {
                suggestions.extra = None;
                suggestions.has_more = true;
                keep_first(&mut suggestions.values, most, String::len);
            }
            Self::Done => {}
        }
        (self, whole)
    }

    fn form(&self) -> Value {
        mcp_json::tool_result(&self.to_result())
    }

    fn changed(self, change: AnswerChange<'_>) -> Result<Self, String> {
        self.read(change.before, Arc::unwrap_or_clone(change.after))
    }

    /// What lists say is visible already, see [`Self::prepared`].
    fn show(&mut self) -> bool {
        match self {
            Self::Contents(read) => escape::contents(read),
            Self::Prompt(prompt) => escape::messages(prompt),
            Self::Suggestions(suggestions) => escape::suggestions(suggestions),
            Self::Resources(_) | Self::Templates(_) | Self::Prompts(_) | Self::Done => false,
        }
    }
}

/// An operation on a plugin that a host asks for by itself, and not as a tool.
struct McpOperationRequest<'a> {
    operation: McpOperation,
    plugin: &'a Arc<RegisteredPlugin>,
    constraints: CallSettings,
    tool_metrics: Option<&'a Arc<ToolMetrics>>,
}

/// Who is asked what, as the caller names it.
pub(crate) struct OperationContext<'a> {
    pub(crate) invoke_services: &'a Arc<InvokeServices>,
    pub(crate) registry: &'a Registry,
    pub(crate) caller: &'a Caller,
    /// The plugin, as the caller named it.
    pub(crate) plugin: &'a str,
}

impl<'a> OperationContext<'a> {
    /// Does an operation on the plugin, as the tool would that does the same.
    pub(super) async fn ask(
        &self,
        operation: McpOperation,
        arguments: Value,
    ) -> Result<Masked<OperationResult>, CallError> {
        let Self { invoke_services, registry, caller, plugin } = *self;
        let plugin = registry.plugin(plugin);
        let name = operation.name();
        let name = plugin.map_or_else(|| name.into(), |of| registry.name_of(of, name).to_string());
        let call = Call { name, arguments, caller: caller.clone() };
        let mut state = CallState::begin(invoke_services, registry, operation.into(), call);
        if let Some(plugin) = plugin {
            state.of_plugin(plugin.id());
        }
        let found = self.found(operation);
        pipeline::run(registry, state, found).await
    }

    /// The plugin that is asked, if it has what not every plugin has.
    fn found(&self, operation: McpOperation) -> Result<McpOperationRequest<'a>, CallError> {
        let Self { registry, plugin: id, .. } = *self;
        let (has, what, looked_for): (fn(&RegisteredPlugin) -> bool, _, _) = match operation {
            operation if operation.is_on_prompts() => {
                (RegisteredPlugin::may_have_prompts, "prompts", operation.looked_for())
            }
            McpOperation::Suggest => (|_| true, "completions", "plugin"),
            _ => (RegisteredPlugin::may_have_resources, "resources", operation.looked_for()),
        };
        match registry.plugin(id) {
            Some(plugin) if has(plugin) => {
                let (constraints, tool_metrics) = registry.operation(plugin, operation)?;
                Ok(McpOperationRequest { operation, plugin, constraints, tool_metrics })
            }
            Some(plugin) => Err(CallError::failed(plugin.id())(Failure::Unsupported(what))),
            None => {
                let all = registry.plugins().iter().filter(|plugin| has(plugin));
                let ids = all.map(|plugin| &**plugin.id());
                Err(CallError::not_found(looked_for, id, ids))
            }
        }
    }
}

impl Request for McpOperationRequest<'_> {
    type Answer = OperationResult;

    const POINTS: Option<HookPoints> = Some(TOOL_POINTS);

    fn plugin(&self) -> &Arc<RegisteredPlugin> {
        self.plugin
    }

    fn constraints(&self) -> &CallSettings {
        &self.constraints
    }

    fn ruled_arguments<'a>(&self, arguments: &'a Value) -> Cow<'a, Value> {
        Cow::Owned(with_plugin(arguments, self.plugin.id()))
    }

    fn tool_metrics(&self) -> Option<&Arc<ToolMetrics>> {
        self.tool_metrics
    }

    fn span(&self, state: &CallState) -> Span {
        let (number, trace) = (state.number(), state.trace());
        let id = self.plugin.id();
        span!("call", id, state.caller, number, trace, tool = state.name)
    }

    /// A caller's own arguments are of the right types; what hooks have made of them may not be.
    async fn check(&self, state: &CallState) -> Result<Vec<String>, CallError> {
        if state.changed_by.is_none() {
            return Ok(Vec::new());
        }
        let arguments = state.arguments.value();
        Ok(match self.operation {
            McpOperation::Suggest => prompts::argument(arguments).err().into_iter().collect(),
            McpOperation::Subscribe | McpOperation::Unsubscribe
                if !arguments["uri"].is_string() =>
            {
                vec!["at /uri: it is not text".into()]
            }
            // Schemas of the host's own cost little.
            operation => as_tool(operation)
                .and_then(|declared| declared.arguments.problems(arguments))
                .unwrap_or_default(),
        })
    }

    fn ask(
        &mut self,
        plugin: PluginHandle<'_>,
        redactor: &Arc<Redactor>,
        arguments: &Json,
        context: CallContext,
    ) -> (u64, impl Future<Output = Unmasked<Result<OperationResult, Failure>>> + Send) {
        let bytes_in = arguments.text().len() as u64;
        (bytes_in, Box::pin(serve(self.operation, plugin, redactor, arguments.value(), context)))
    }

    fn explain(&self, state: &CallState, error: CallError) -> CallError {
        explain(self.operation, self.plugin, state.arguments.value(), error)
    }
}

/// What an error of an operation comes to: a prompt that is held is refused by the host, not by its server.
pub(super) fn explain(
    operation: McpOperation,
    plugin: &RegisteredPlugin,
    arguments: &Value,
    error: CallError,
) -> CallError {
    let is_denied = matches!(
        &error,
        CallError::Failed { failure: Failure::Answered(Error { code: ErrorCode::Denied, .. }), .. }
    );
    let supervised = plugin.loaded().supervised().filter(|_| is_denied);
    let name = arguments["name"].as_str().filter(|_| operation == McpOperation::GetPrompt);
    let held = supervised.zip(name).and_then(|(server, name)| {
        Some((name.to_string(), server.held(DefinitionKind::Prompt, name)?))
    });
    match held {
        Some((name, why)) => {
            CallError::Held { what: "prompt", name, plugin: plugin.id().clone(), why }
        }
        None => error,
    }
}

/// How much the arguments let be read. A number that is no length bounds nothing.
fn budget(arguments: &Value) -> ReadLimit {
    let most = |name: &str| arguments[name].as_u64().and_then(|most| usize::try_from(most).ok());
    ReadLimit { max_bytes: most("maxBytes"), max_tokens: most("maxTokens") }
}

/// Texts by their names.
pub(super) fn pairs(arguments: &Value) -> Vec<(String, String)> {
    let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_string()));
    arguments.as_object().map(|of| of.iter().filter_map(pair).collect()).unwrap_or_default()
}

/// A listing, as structured content and as the same in text.
fn list(member: &str, items: impl Iterator<Item = Value>) -> ToolResult {
    let form = json!({ member: items.collect::<Vec<Value>>() }).to_string();
    ToolResult { content: vec![said(form.clone())], structured: Some(form), ..empty() }
}

fn said(text: String) -> ContentBlock {
    ContentBlock { body: Content::Text(text), extra: None }
}

fn empty() -> ToolResult {
    ToolResult { content: Vec::new(), structured: None, is_error: false, extra: None }
}
