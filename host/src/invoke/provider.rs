//! Language models.

use futures::stream::{FuturesOrdered, Stream, StreamExt};
use serde_json::{Value, json};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenon_config::secret::Redactor;
use tenon_types::text::cut;
use tenon_types::{
    CallContext, Completion, CompletionRequest, Content, ContentBlock, HookPoint, Json, Message,
    ModelInfo, Part, Role, ToolResult,
};
use tenon_types::{completion_json, mcp_json};
use tracing::Span;

use super::pipeline::{self, AnswerChange, HookPoints, PipelineAnswer, Request};
use super::state::CallState;
use super::truncate::{BLOCK_OVERHEAD_BYTES, length_of as length_of_block};
use super::{InvokeServices, TRUNCATED, span};
use crate::call::escape;
use crate::call::mask::{Masked, Unmasked, within_unmasked};
use crate::call::{Call, CallError, CallKind, Caller, Failure};
use crate::invoke::stored_results::ResultStore;
use crate::register::call_settings::CallSettings;
use crate::register::{RegisteredPlugin, Registry};
use crate::runtime::{CompletionStream, PluginHandle};

/// A model and the plugin that serves it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServedModel {
    /// The plugin.
    pub plugin: Arc<str>,
    /// What it says of the model.
    pub info: ModelInfo,
}

/// Lists the models of all providers. A provider that cannot say is left out, and its reason
/// logged.
pub(crate) async fn models(registry: &Registry) -> Vec<ServedModel> {
    ask_all(registry, registry.names_first(), None).concat().await
}

/// The models of each provider among plugins, in their order. All are asked at once.
fn ask_all<'a>(
    registry: &'a Registry,
    plugins: impl Iterator<Item = &'a Arc<RegisteredPlugin>>,
    timeout: Option<Duration>,
) -> impl Stream<Item = Vec<ServedModel>> {
    let providers = plugins.filter(|plugin| !plugin.providers().is_empty());
    let asked = providers.map(move |plugin| async move {
        let id = plugin.id();
        match models_of(registry, plugin, timeout).await {
            Ok(models) => models
                .iter()
                .map(|info| ServedModel { plugin: id.clone(), info: info.clone() })
                .collect(),
            Err(failure) => {
                tracing::warn!(plugin = &**id, "no models: {failure}");
                Vec::new()
            }
        }
    });
    asked.collect::<FuturesOrdered<_>>()
}

/// The models of a provider, which is asked once for each time that it registers.
async fn models_of<'a>(
    registry: &Registry,
    plugin: &'a RegisteredPlugin,
    timeout: Option<Duration>,
) -> Result<&'a [ModelInfo], Failure> {
    let loaded = plugin.loaded();
    let wall = loaded.limits().wall;
    let timeout = timeout.map_or(wall, |timeout| timeout.min(wall));
    let models = plugin.models().get_or_try_init(async || {
        let models = within_unmasked(timeout, loaded.plugin().models()).await;
        let span = tracing::warn_span!("models", plugin = &**loaded.id());
        let models = span.in_scope(|| models.mask(registry.redactor()));
        models.into_inner().map(escape::models)
    });
    Ok(models.await?)
}

/// Answers a request in one piece. The model is named by its id, or `plugin/id`.
pub(crate) async fn complete(
    invoke_services: &Arc<InvokeServices>,
    registry: &Registry,
    request: CompletionRequest,
    caller: &Caller,
) -> Result<Masked<Completion>, CallError> {
    let state = begin(invoke_services, registry, &request, caller);
    let found = provider(registry, request, caller).await.map(WholeCompletionRequest);
    pipeline::run(registry, state, found).await
}

/// Whether handlers are told of completions.
fn is_hooked(registry: &Registry) -> bool {
    let points = [HookPoint::BeforeCompletion, HookPoint::AfterCompletion];
    points.iter().any(|point| !registry.handlers(point).is_empty())
}

/// How many times the plugin's wall limit an answer may take that comes in pieces, where the caller
/// sets no time.
const STREAM_WALL_FACTOR: u32 = 20;

/// Begins to answer a request piece by piece. The plugin's time is for the beginning, and again for
/// each piece; the caller's is for all of them. Where handlers look at answers, they see the whole one before anybody
/// sees a piece.
pub(crate) async fn stream(
    invoke_services: &Arc<InvokeServices>,
    registry: &Registry,
    request: CompletionRequest,
    caller: &Caller,
) -> Result<Masked<CompletionStream>, CallError> {
    if !registry.handlers(&HookPoint::AfterCompletion).is_empty() {
        let completion = complete(invoke_services, registry, request, caller).await?;
        return Ok(completion.map(CompletionStream::from));
    }
    let state = begin(invoke_services, registry, &request, caller);
    let found = provider(registry, request, caller).await;
    let found = found.map(|model| StreamedCompletionRequest { model, timeout: caller.timeout });
    pipeline::run(registry, state, found).await
}

fn begin(
    invoke_services: &Arc<InvokeServices>,
    registry: &Registry,
    request: &CompletionRequest,
    caller: &Caller,
) -> Box<CallState> {
    let arguments = match invoke_services.are_watching() {
        true => recorded(request),
        false => Value::Null,
    };
    let call = Call { name: request.model.clone(), arguments, caller: caller.clone() };
    CallState::begin(invoke_services, registry, CallKind::Completion, call)
}

/// What the record says of a request: who said what, and what of the answer is wanted.
fn recorded(request: &CompletionRequest) -> Value {
    let CompletionRequest { messages, tools, sampling, .. } = request;
    let messages = messages.iter().map(|Message { role, parts }| {
        let role = match role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let parts: Vec<Value> = parts.iter().map(recorded_part).collect();
        json!({ "role": role, "parts": parts })
    });
    let tools = tools.iter().map(|tool| Value::from(tool.name.as_str()));
    let mut form = json!({ "messages": messages.collect::<Vec<_>>() });
    let wanted = [
        (
            "tools",
            Some(tools.collect::<Vec<_>>()).filter(|tools| !tools.is_empty()).map(Value::from),
        ),
        ("maxTokens", sampling.max_tokens.map(Value::from)),
        ("temperature", sampling.temperature.map(Value::from)),
    ];
    for (name, value) in wanted {
        if let Some(value) = value {
            form[name] = value;
        }
    }
    form
}

fn recorded_part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "text": text }),
        Part::Reasoning(reasoning) => json!({ "reasoning": reasoning.text }),
        Part::Image(media) | Part::Audio(media) => {
            json!({ "mimeType": media.mime_type, "bytes": media.data.len() })
        }
        Part::ToolCall(call) => {
            let arguments: Value = serde_json::from_str(&call.arguments)
                .unwrap_or_else(|_| call.arguments.as_str().into());
            json!({ "toolCall": { "name": call.name, "arguments": arguments } })
        }
        Part::ToolCallResult(answer) => {
            json!({ "toolAnswer": answer.content.iter().map(mcp_json::content_block).collect::<Vec<_>>() })
        }
        Part::Other(other) => serde_json::from_str(other).unwrap_or_else(|_| other.as_str().into()),
    }
}

/// The hook points around a request to a model.
const POINTS: HookPoints = HookPoints {
    before: HookPoint::BeforeCompletion,
    after: HookPoint::AfterCompletion,
    asked: ("request", None),
    answer: "completion",
};

/// A model that is asked.
struct ModelRequest {
    plugin: Arc<RegisteredPlugin>,
    /// Until it is asked, which is once.
    request: Option<CompletionRequest>,
    /// The model as its plugin names it.
    model: String,
    /// The request as handlers of hooks see it, where there are any.
    form: Option<Arc<Value>>,
}

impl ModelRequest {
    fn span(&self, state: &CallState) -> Span {
        let (number, trace) = (state.number(), state.trace());
        let id = self.plugin.id();
        span!(
            "complete",
            id,
            state.caller,
            number,
            trace,
            model = &*state.without_secrets(&self.model)
        )
    }

    fn about(&self) -> [(&'static str, String); 2] {
        [("model", self.model.clone()), ("plugin", self.plugin.id().to_string())]
    }

    fn asked(&self) -> Arc<Value> {
        self.form.clone().unwrap_or_default()
    }

    /// Takes what hooks have made of the request. The model stays.
    fn take_asked(&mut self, changed: Arc<Value>) -> Result<(), String> {
        let request = completion_json::read_request((*changed).clone());
        let request =
            request.map_err(|problem| format!("its hook left no request to a model: {problem}"))?;
        self.request = Some(CompletionRequest { model: self.model.clone(), ..request });
        self.form = Some(changed);
        Ok(())
    }

    /// The request, and its length in bytes.
    fn take(&mut self) -> (u64, Result<CompletionRequest, Failure>) {
        let request = self.request.take();
        let parts = request.iter().flat_map(|request| &request.messages);
        let parts = parts.flat_map(|message| &message.parts).map(length_of);
        let bytes = parts.sum::<usize>() as u64;
        (bytes, request.ok_or_else(|| Failure::Host("a model is asked once".into())))
    }
}

/// An answer of a model that comes as a whole.
struct WholeCompletionRequest(ModelRequest);

impl Request for WholeCompletionRequest {
    type Answer = Completion;

    const POINTS: Option<HookPoints> = Some(POINTS);

    fn plugin(&self) -> &Arc<RegisteredPlugin> {
        &self.0.plugin
    }

    fn constraints(&self) -> &CallSettings {
        &CallSettings::ONCE
    }

    fn span(&self, state: &CallState) -> Span {
        self.0.span(state)
    }

    fn about(&self, _: &CallState) -> [(&'static str, String); 2] {
        self.0.about()
    }

    fn asked(&self, _: &CallState) -> Arc<Value> {
        self.0.asked()
    }

    fn take_asked(&mut self, _: &mut CallState, changed: Arc<Value>) -> Result<(), String> {
        self.0.take_asked(changed)
    }

    fn ask(
        &mut self,
        plugin: PluginHandle<'_>,
        _: &Arc<Redactor>,
        _: &Json,
        context: CallContext,
    ) -> (u64, impl Future<Output = Unmasked<Result<Completion, Failure>>> + Send) {
        let (bytes_in, request) = self.0.take();
        let answer = async move {
            match request {
                Ok(request) => plugin.complete(request, context).await,
                Err(failure) => Unmasked::new(Err(failure)),
            }
        };
        (bytes_in, answer)
    }
}

/// An answer of a model that comes piece by piece.
struct StreamedCompletionRequest {
    model: ModelRequest,
    /// The caller's time.
    timeout: Option<Duration>,
}

impl Request for StreamedCompletionRequest {
    type Answer = CompletionStream;

    const POINTS: Option<HookPoints> = Some(POINTS);

    fn plugin(&self) -> &Arc<RegisteredPlugin> {
        &self.model.plugin
    }

    fn constraints(&self) -> &CallSettings {
        &CallSettings::ONCE
    }

    fn span(&self, state: &CallState) -> Span {
        self.model.span(state)
    }

    fn about(&self, _: &CallState) -> [(&'static str, String); 2] {
        self.model.about()
    }

    fn asked(&self, _: &CallState) -> Arc<Value> {
        self.model.asked()
    }

    fn take_asked(&mut self, _: &mut CallState, changed: Arc<Value>) -> Result<(), String> {
        self.model.take_asked(changed)
    }

    fn ask(
        &mut self,
        plugin: PluginHandle<'_>,
        _: &Arc<Redactor>,
        _: &Json,
        context: CallContext,
    ) -> (u64, impl Future<Output = Unmasked<Result<CompletionStream, Failure>>> + Send) {
        let (bytes_in, request) = self.model.take();
        let answer = async move {
            match request {
                Ok(request) => plugin.stream(request, context).await,
                Err(failure) => Unmasked::new(Err(failure)),
            }
        };
        (bytes_in, answer)
    }

    async fn check_answer(&self, stream: CompletionStream) -> Result<CompletionStream, CallError> {
        let loaded = self.model.plugin.loaded();
        let wall = loaded.limits().wall;
        let piece = self.timeout.map_or(wall, |timeout| timeout.min(wall));
        let total = self.timeout.unwrap_or(wall * STREAM_WALL_FACTOR);
        Ok(stream.with_timeout(piece, total).of(loaded.id().clone(), loaded.uses()))
    }
}

impl PipelineAnswer for CompletionStream {
    const GOES_ON: bool = true;

    fn length(&self) -> usize {
        0
    }

    /// Its pieces come as the model makes them: an emoji of several characters may stand in two. Who
    /// shows them has [`visible`](crate::visible).
    fn show(&mut self) -> bool {
        false
    }

    fn ending(self, state: Box<CallState>) -> Self {
        Self::ending(self, state)
    }
}

impl PipelineAnswer for Completion {
    fn length(&self) -> usize {
        let parts = self.parts.iter().map(|part| length_of(part) + BLOCK_OVERHEAD_BYTES);
        self.summary.extra.as_ref().map_or(0, String::len) + parts.sum::<usize>()
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
        let parts = self.parts.iter().map(recorded_part).map(|part| {
            let text = match part["text"].as_str().or(part["reasoning"].as_str()) {
                Some(text) => text.to_string(),
                None => part.to_string(),
            };
            ContentBlock { body: Content::Text(text), extra: None }
        });
        let whole = ToolResult { content: parts.collect(), ..ToolResult::text("") };
        let whole = results.keep_apart(whole).await;
        let mut left = most;
        let mut parts = Vec::new();
        for part in self.parts {
            let length = length_of(&part) + BLOCK_OVERHEAD_BYTES;
            match part {
                part if length <= left => {
                    left -= length;
                    parts.push(part);
                    continue;
                }
                Part::Text(text) => parts.push(Part::Text(cut(&text, left).to_string())),
                _ => {}
            }
            break;
        }
        self.parts = parts;
        self.summary.extra = None;
        let about = json!({ "bytes": length, "uri": whole });
        mcp_json::insert_meta_of(&mut self.summary.extra, TRUNCATED, &about);
        (self, whole)
    }

    fn form(&self) -> Value {
        completion_json::completion(self)
    }

    fn changed(self, change: AnswerChange<'_>) -> Result<Self, String> {
        let mut changed = Arc::unwrap_or_clone(change.after);
        let parts = completion_json::read_parts(&mut changed);
        let parts =
            parts.map_err(|problem| format!("its hook left no answer of a model: {problem}"))?;
        Ok(Self { parts, ..self })
    }

    fn show(&mut self) -> bool {
        escape::completion(self)
    }
}

fn length_of(part: &Part) -> usize {
    match part {
        Part::Text(text) | Part::Other(text) => text.len(),
        Part::Image(media) | Part::Audio(media) => media.data.len() + media.mime_type.len(),
        Part::Reasoning(reasoning) => {
            reasoning.text.len() + reasoning.signature.as_ref().map_or(0, String::len)
        }
        Part::ToolCall(call) => call.id.len() + call.name.len() + call.arguments.len(),
        Part::ToolCallResult(answer) => {
            answer.id.len() + answer.content.iter().map(length_of_block).sum::<usize>()
        }
    }
}

/// The model that a request names, and the request as its plugin understands it.
async fn provider(
    registry: &Registry,
    mut request: CompletionRequest,
    caller: &Caller,
) -> Result<ModelRequest, CallError> {
    let found = |plugin: &Arc<RegisteredPlugin>, request: CompletionRequest| {
        let (plugin, model) = (plugin.clone(), request.model.clone());
        let form = is_hooked(registry).then(|| completion_json::request(&request).into());
        Ok(ModelRequest { plugin, request: Some(request), model, form })
    };
    let prefixed = request.model.split_once('/').and_then(|(plugin, model)| {
        let plugin = registry.plugin(plugin).filter(|plugin| !plugin.providers().is_empty())?;
        Some((plugin, model.to_string()))
    });
    if let Some((plugin, model)) = &prefixed
        && plugin.loaded().names_come_first()
    {
        request.model.clone_from(model);
        return found(plugin, request);
    }
    // No project puts a plugin of its own in the place of a model that its user has.
    let may_have_it =
        |plugin: &&Arc<RegisteredPlugin>| prefixed.is_none() || plugin.loaded().names_come_first();
    let mut names = Vec::new();
    {
        let asked = registry.names_first().filter(may_have_it);
        let mut asked = pin!(ask_all(registry, asked, caller.timeout));
        while let Some(models) = asked.next().await {
            let model = models.iter().find(|model| model.info.id == request.model);
            if let Some(plugin) = model.and_then(|model| registry.plugin(&model.plugin)) {
                return found(plugin, request);
            }
            names.extend(models.into_iter().map(|model| model.info.id));
        }
    }
    if let Some((plugin, model)) = prefixed {
        request.model = model;
        return found(plugin, request);
    }
    Err(CallError::not_found("model", &request.model, names.iter().map(String::as_str)))
}
