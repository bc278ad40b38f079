//! Language models.

use futures::stream::{FuturesOrdered, Stream, StreamExt};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::{CallError, Caller, redact, served, span_of, within};
use crate::bindings::model::{Completion, CompletionRequest, ModelInfo};
use crate::register::{Registered, Registry};
use crate::runtime::{CompletionStream, Failure};
use crate::shown;

/// A model and the plugin that serves it.
#[derive(Debug, Clone)]
pub struct Model {
    /// The plugin.
    pub plugin: Arc<str>,
    /// What it says of the model.
    pub info: ModelInfo,
}

/// Lists the models of all providers. A provider that cannot say is left out, and its reason
/// logged.
pub(crate) async fn models(registry: &Registry) -> Vec<Model> {
    ask_all(registry, None).concat().await
}

/// The models of each provider, in load order. All are asked at once.
fn ask_all(registry: &Registry, timeout: Option<Duration>) -> impl Stream<Item = Vec<Model>> {
    let providers = registry.plugins().iter().filter(|plugin| !plugin.providers().is_empty());
    let asked = providers.map(move |plugin| async move {
        let id = plugin.loaded().id();
        match models_of(plugin, timeout).await {
            Ok(models) => {
                models.iter().map(|info| Model { plugin: id.clone(), info: info.clone() }).collect()
            }
            Err(failure) => {
                tracing::warn!(plugin = &**id, "no models: {failure}");
                Vec::new()
            }
        }
    });
    asked.collect::<FuturesOrdered<_>>()
}

/// The models of a provider, which is asked once for each time that it registers.
async fn models_of(
    plugin: &Registered,
    timeout: Option<Duration>,
) -> Result<&[ModelInfo], Failure> {
    let loaded = plugin.loaded();
    let wall = loaded.limits().wall;
    let timeout = timeout.map_or(wall, |timeout| timeout.min(wall));
    let models = plugin.models().get_or_try_init(async || {
        within(timeout, loaded.plugin().models()).await.map(shown::models)
    });
    Ok(models.await?)
}

/// Answers a request in one piece. The model is named by its id, or `plugin/id`.
pub(crate) async fn complete(
    registry: &Registry,
    request: CompletionRequest,
    caller: &Caller,
) -> Result<Completion, CallError> {
    let (plugin, request) = provider(registry, request, caller).await?;
    let loaded = plugin.loaded();
    let (timeout, context) = caller.context(loaded.limits().wall);
    let model = request.model.clone();
    let span = span_of!("complete", loaded.id(), caller, context, model = model);
    let answer = loaded.plugin().complete(request, context);
    let completion = served(span, registry, caller, timeout, answer).await;
    let completion = completion.map_err(CallError::failed(loaded.id()))?;
    Ok(redact::completion(registry.redactor(), completion))
}

/// How many times the plugin's wall limit an answer may take that comes in pieces, where the caller
/// sets no time.
const PIECES: u32 = 20;

/// Begins to answer a request piece by piece. The plugin's time is for the beginning, and again for
/// each piece; the caller's is for all of them.
pub(crate) async fn stream(
    registry: &Registry,
    request: CompletionRequest,
    caller: &Caller,
) -> Result<CompletionStream, CallError> {
    let (plugin, request) = provider(registry, request, caller).await?;
    let loaded = plugin.loaded();
    let (timeout, context) = caller.context(loaded.limits().wall);
    let model = request.model.clone();
    let span = span_of!("complete", loaded.id(), caller, context, model = model);
    let answer = loaded.plugin().stream(request, context);
    let stream = served(span, registry, caller, timeout, answer).await;
    let stream = stream.map_err(CallError::failed(loaded.id()))?;
    let total = caller.timeout.unwrap_or(loaded.limits().wall * PIECES);
    Ok(stream.with_patience(timeout, total).of(loaded.id().clone(), loaded.uses()))
}

/// The plugin that serves a request, and the request as the plugin understands it.
async fn provider(
    registry: &Registry,
    mut request: CompletionRequest,
    caller: &Caller,
) -> Result<(Arc<Registered>, CompletionRequest), CallError> {
    if let Some((plugin, model)) = request.model.split_once('/')
        && let Some(plugin) = registry.plugin(plugin)
        && !plugin.providers().is_empty()
    {
        let (plugin, model) = (plugin.clone(), model.to_string());
        request.model = model;
        return Ok((plugin, request));
    }
    let mut names = Vec::new();
    {
        let mut asked = pin!(ask_all(registry, caller.timeout));
        while let Some(models) = asked.next().await {
            let found = models.iter().find(|model| model.info.id == request.model);
            if let Some(plugin) = found.and_then(|model| registry.plugin(&model.plugin)) {
                return Ok((plugin.clone(), request));
            }
            names.extend(models.into_iter().map(|model| model.info.id));
        }
    }
    Err(CallError::not_found("model", &request.model, names.iter().map(String::as_str)))
}
