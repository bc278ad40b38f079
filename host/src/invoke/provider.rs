//! Language models.

use std::sync::Arc;

use super::{CallError, Caller, within};
use crate::bindings::model::{Completion, CompletionRequest, ModelInfo};
use crate::register::{Registered, Registry};
use crate::runtime::CompletionStream;

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
    let providers = registry.plugins().iter().filter(|plugin| !plugin.providers().is_empty());
    let asked = providers.map(|plugin| async move { (plugin, models_of(plugin).await) });
    let mut models = Vec::new();
    for (plugin, listed) in futures::future::join_all(asked).await {
        match listed {
            Ok(listed) => models.extend(listed),
            Err(error) => {
                tracing::warn!(plugin = &**plugin.loaded().id(), "no models: {error}");
            }
        }
    }
    models
}

async fn models_of(plugin: &Arc<Registered>) -> Result<Vec<Model>, CallError> {
    let loaded = plugin.loaded();
    let listed = within(loaded.limits().wall, loaded.plugin().models()).await;
    let listed = listed.map_err(CallError::failed(loaded.id()))?;
    Ok(listed.into_iter().map(|info| Model { plugin: loaded.id().clone(), info }).collect())
}

/// Answers a request in one piece. The model is named by its id, or `plugin/id`.
pub(crate) async fn complete(
    registry: &Registry,
    request: CompletionRequest,
    caller: &Caller,
) -> Result<Completion, CallError> {
    let (plugin, request) = provider(registry, request).await?;
    let loaded = plugin.loaded();
    let (timeout, context) = caller.context(loaded.limits().wall);
    let answer = loaded.plugin().complete(request, context);
    within(timeout, answer).await.map_err(CallError::failed(loaded.id()))
}

/// Begins to answer a request piece by piece. The timeout is for the beginning, and again for each
/// piece.
pub(crate) async fn stream(
    registry: &Registry,
    request: CompletionRequest,
    caller: &Caller,
) -> Result<CompletionStream, CallError> {
    let (plugin, request) = provider(registry, request).await?;
    let loaded = plugin.loaded();
    let (timeout, context) = caller.context(loaded.limits().wall);
    let answer = loaded.plugin().stream(request, context);
    let stream = within(timeout, answer).await.map_err(CallError::failed(loaded.id()))?;
    Ok(stream.with_patience(timeout))
}

/// The plugin that serves a request, and the request as the plugin understands it.
async fn provider(
    registry: &Registry,
    mut request: CompletionRequest,
) -> Result<(Arc<Registered>, CompletionRequest), CallError> {
    if let Some((plugin, model)) = request.model.split_once('/')
        && let Some(plugin) = registry.plugin(plugin)
        && !plugin.providers().is_empty()
    {
        let (plugin, model) = (plugin.clone(), model.to_string());
        request.model = model;
        return Ok((plugin, request));
    }
    let models = models(registry).await;
    let found = models.iter().find(|model| model.info.id == request.model);
    match found.and_then(|model| registry.plugin(&model.plugin)) {
        Some(plugin) => Ok((plugin.clone(), request)),
        None => {
            let names = models.iter().map(|model| model.info.id.as_str());
            Err(CallError::not_found("model", &request.model, names))
        }
    }
}
