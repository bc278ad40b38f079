//! Prompts: listing and filling in what plugins have, always as somebody's explicit act.

use serde_json::{Map, Value, json};

use super::pages::{Page, all_pages};
use super::{CallError, Question, redact};
use crate::bindings::completions::{Blank, Place, Suggestions};
use crate::bindings::prompts::{Prompt, PromptDefinition};
use crate::bindings::types::CallContext;
use crate::register::Registered;
use crate::runtime::{Failure, Plugin};
use crate::{shown, wire};

/// Lists the prompts of a plugin.
pub(crate) async fn list(question: Question<'_>) -> Result<Vec<PromptDefinition>, CallError> {
    let found = with_prompts(&question);
    let mut listed = question.ask("list_prompts", json!({}), found, all).await?;
    let redactor = question.registry.redactor();
    listed.iter_mut().for_each(|prompt| redact::prompt_definition(redactor, prompt));
    Ok(listed)
}

/// Fills in a prompt of a plugin.
pub(crate) async fn get(
    question: Question<'_>,
    name: &str,
    arguments: Vec<(String, String)>,
) -> Result<Prompt, CallError> {
    let asked = json!({ "name": name, "arguments": filled_in(&arguments) });
    let found = with_prompts(&question);
    let get = question.ask("get_prompt", asked, found, |plugin, context| {
        plugin.get_prompt(name, arguments, context)
    });
    let mut prompt = get.await?;
    redact::prompt(question.registry.redactor(), &mut prompt);
    shown::prompt(&mut prompt);
    Ok(prompt)
}

/// Suggests values for a blank of a prompt or of a resource template.
pub(crate) async fn suggest(
    question: Question<'_>,
    blank: Blank,
) -> Result<Suggestions, CallError> {
    let (place, of) = match &blank.place {
        Place::Prompt(name) => ("prompt", name),
        Place::ResourceTemplate(template) => ("template", template),
    };
    let filled = filled_in(&blank.filled);
    let asked = json!({ place: of, "name": blank.name, "value": blank.value, "filled": filled });
    let found = plugin(&question);
    let suggest =
        question.ask("suggest", asked, found, |plugin, context| plugin.suggest(blank, context));
    let mut suggestions = suggest.await?;
    let redactor = question.registry.redactor();
    suggestions.values.iter_mut().for_each(|value| redactor.redact(value));
    Ok(suggestions)
}

/// All pages of a plugin's list of prompts.
pub(super) async fn all(
    plugin: &dyn Plugin,
    context: CallContext,
) -> Result<Vec<PromptDefinition>, Failure> {
    let pages = move |cursor| {
        let page = plugin.list_prompts(cursor, context.clone());
        async { page.await.map(|page| Page { items: page.prompts, next: page.next }) }
    };
    let mut listed = all_pages("prompts", wire::prompt_definition, pages).await?;
    listed.iter_mut().for_each(shown::prompt_definition);
    Ok(listed)
}

/// What blanks were filled in with, by their names.
fn filled_in(pairs: &[(String, String)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()
}

/// The plugin that is asked.
fn plugin<'a>(question: &Question<'a>) -> Result<&'a Registered, CallError> {
    let Question { registry, plugin: id, .. } = *question;
    let plugin = registry.plugin(id).ok_or_else(|| {
        let ids = registry.plugins().iter().map(|plugin| &**plugin.loaded().id());
        CallError::not_found("plugin", id, ids)
    })?;
    Ok(plugin)
}

/// The same, if it has prompts.
fn with_prompts<'a>(question: &Question<'a>) -> Result<&'a Registered, CallError> {
    question.of_one_that(Registered::has_prompts, "prompts", "plugin with prompts")
}
