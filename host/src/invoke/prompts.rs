//! Prompts: listing and filling in what plugins have, always as somebody's explicit act.

use super::pages::{Page, all_pages};
use super::{CallError, Caller, redact, served, span_of};
use crate::bindings::completions::{Blank, Suggestions};
use crate::bindings::prompts::{Prompt, PromptDefinition};
use crate::register::{Registered, Registry};
use crate::shown;

/// Lists the prompts of a plugin, all pages of it.
pub(crate) async fn list(
    registry: &Registry,
    plugin: &str,
    caller: &Caller,
) -> Result<Vec<PromptDefinition>, CallError> {
    let loaded = with_prompts(registry, plugin)?.loaded();
    let mut listed = all_pages("prompts", move |cursor| async move {
        let (timeout, context) = caller.context(loaded.limits().wall);
        let span = span_of!("list_prompts", loaded.id(), caller, context, cursor = cursor);
        let answer = loaded.plugin().list_prompts(cursor, context);
        let page = served(span, registry, caller, timeout, answer).await?;
        Ok(Page { items: page.prompts, next: page.next })
    })
    .await
    .map_err(CallError::failed(loaded.id()))?;
    listed.iter_mut().for_each(shown::prompt_definition);
    Ok(listed)
}

/// Fills in a prompt of a plugin.
pub(crate) async fn get(
    registry: &Registry,
    plugin: &str,
    name: &str,
    arguments: Vec<(String, String)>,
    caller: &Caller,
) -> Result<Prompt, CallError> {
    let loaded = with_prompts(registry, plugin)?.loaded();
    let (timeout, context) = caller.context(loaded.limits().wall);
    let span = span_of!("get_prompt", loaded.id(), caller, context, name = name);
    let answer = loaded.plugin().get_prompt(name, arguments, context);
    let prompt = served(span, registry, caller, timeout, answer).await;
    let mut prompt = prompt.map_err(CallError::failed(loaded.id()))?;
    shown::prompt(&mut prompt);
    prompt
        .messages
        .iter_mut()
        .for_each(|message| redact::block(registry.redactor(), &mut message.content));
    Ok(prompt)
}

/// Suggests values for a blank of a prompt or of a resource template.
pub(crate) async fn suggest(
    registry: &Registry,
    plugin: &str,
    blank: Blank,
    caller: &Caller,
) -> Result<Suggestions, CallError> {
    let plugin = registry.plugin(plugin).ok_or_else(|| {
        let ids = registry.plugins().iter().map(|plugin| &**plugin.loaded().id());
        CallError::not_found("plugin", plugin, ids)
    })?;
    let loaded = plugin.loaded();
    let (timeout, context) = caller.context(loaded.limits().wall);
    let span = span_of!("suggest", loaded.id(), caller, context, name = blank.name);
    let answer = loaded.plugin().suggest(blank, context);
    let suggestions = served(span, registry, caller, timeout, answer).await;
    suggestions.map_err(CallError::failed(loaded.id()))
}

/// A plugin that has prompts.
fn with_prompts<'a>(registry: &'a Registry, id: &str) -> Result<&'a Registered, CallError> {
    let all = registry.plugins().iter().filter(|plugin| plugin.has_prompts());
    let ids = all.map(|plugin| &**plugin.loaded().id());
    let plugin = registry.plugin(id).filter(|plugin| plugin.has_prompts());
    let plugin = plugin.ok_or_else(|| CallError::not_found("plugin with prompts", id, ids))?;
    Ok(plugin)
}
