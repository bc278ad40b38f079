//! Prompts: listing and filling in what plugins have, always as somebody's explicit act.

use serde_json::{Map, Value, json};
use tenon_types::mcp_json;
use tenon_types::text::cut;
use tenon_types::{
    ArgumentCompletion, CallContext, CompletionReference, Content, ContentBlock, McpOperation,
    Prompt, PromptDefinition, Suggestions,
};

use super::mcp_operations::{OperationContext, OperationResult, pairs};
use super::pages::{Page, all_pages};
use super::truncate::{BLOCK_OVERHEAD_BYTES, length_of as length_of_block};
use super::{TRUNCATED, another_answer};
use crate::call::mask::{Masked, UnmaskToken};
use crate::call::{CallError, Failure};
use crate::runtime::PluginHandle;

/// Lists the prompts of a plugin.
pub(crate) async fn list(
    question: OperationContext<'_>,
) -> Result<Masked<Vec<PromptDefinition>>, CallError> {
    let listed = question.ask(McpOperation::ListPrompts, json!({})).await?;
    let listed = listed.map(|answer| match answer {
        OperationResult::Prompts(listed) => Ok(listed),
        _ => Err(another_answer(question.plugin)),
    });
    listed.transpose()
}

/// Fills in a prompt of a plugin.
pub(crate) async fn get(
    question: OperationContext<'_>,
    name: &str,
    arguments: Vec<(String, String)>,
) -> Result<Masked<Prompt>, CallError> {
    let asked = json!({ "name": name, "arguments": filled_in(&arguments) });
    let prompt = question.ask(McpOperation::GetPrompt, asked).await?;
    let prompt = prompt.map(|answer| match answer {
        OperationResult::Prompt(prompt) => Ok(prompt),
        _ => Err(another_answer(question.plugin)),
    });
    prompt.transpose()
}

/// Suggests values for an argument of a prompt or of a resource template.
pub(crate) async fn suggest(
    question: OperationContext<'_>,
    argument: ArgumentCompletion,
) -> Result<Masked<Suggestions>, CallError> {
    let (place, of) = match &argument.reference {
        CompletionReference::Prompt(name) => ("prompt", name),
        CompletionReference::ResourceTemplate(template) => ("template", template),
    };
    let filled = filled_in(&argument.others);
    let asked =
        json!({ place: of, "name": argument.name, "value": argument.value, "filled": filled });
    let suggestions = question.ask(McpOperation::Suggest, asked).await?;
    let suggestions = suggestions.map(|answer| match answer {
        OperationResult::Suggestions(suggestions) => Ok(suggestions),
        _ => Err(another_answer(question.plugin)),
    });
    suggestions.transpose()
}

/// The argument that values are suggested for, of the arguments of the request.
pub(super) fn argument(arguments: &Value) -> Result<ArgumentCompletion, String> {
    let text = |name: &str| {
        let text = arguments[name].as_str().map(ToString::to_string);
        text.ok_or_else(|| format!("at /{name}: it is not text"))
    };
    let reference = match arguments.get("template") {
        Some(_) => CompletionReference::ResourceTemplate(text("template")?),
        None => CompletionReference::Prompt(text("prompt")?),
    };
    let others = pairs(&arguments["filled"]);
    Ok(ArgumentCompletion { reference, name: text("name")?, value: text("value")?, others })
}

/// All pages of a plugin's list of prompts.
pub(super) async fn all(
    plugin: PluginHandle<'_>,
    context: CallContext,
    opening: UnmaskToken,
) -> Result<Vec<PromptDefinition>, Failure> {
    let pages = move |cursor| {
        let page = plugin.list_prompts(cursor, context.clone());
        async move {
            let page = page.await.open(opening)?;
            Ok(Page { items: page.prompts, next: page.next })
        }
    };
    all_pages("prompts", mcp_json::prompt_definition, pages).await
}

/// What arguments were filled in with, by their names.
fn filled_in(pairs: &[(String, String)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()
}

fn of(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

/// The length of a prompt in a listing, in bytes.
pub(super) fn length_of_definition(prompt: &PromptDefinition) -> usize {
    let PromptDefinition { name, title, description, arguments, extra } = prompt;
    let arguments = arguments.iter().map(|argument| {
        let texts = of(&argument.title) + of(&argument.description) + of(&argument.extra);
        argument.name.len() + texts + BLOCK_OVERHEAD_BYTES
    });
    name.len() + of(title) + of(description) + of(extra) + arguments.sum::<usize>()
}

/// The length of a prompt that was filled in, in bytes.
pub(super) fn length_of(prompt: &Prompt) -> usize {
    let messages = prompt.messages.iter();
    let messages = messages.map(|message| {
        length_of_block(&message.content) + of(&message.extra) + BLOCK_OVERHEAD_BYTES
    });
    of(&prompt.description) + of(&prompt.extra) + messages.sum::<usize>()
}

/// Cuts the messages of a prompt to so many bytes. The last says how long the prompt was, and where the
/// whole is kept.
pub(super) fn cut_to(prompt: &mut Prompt, most: usize, length: usize, whole: Option<&str>) {
    let mut left = most;
    prompt.extra = None;
    if let Some(description) = &mut prompt.description {
        *description = cut(description, left).to_string();
        left -= description.len();
    }
    let place = match whole {
        Some(uri) => format!("the whole is the resource {uri}"),
        None => "the rest is lost".into(),
    };
    let marker = format!("[cut: a part of {length} bytes; {place}]");
    let mut kept = 0;
    for message in &mut prompt.messages {
        let length = length_of_block(&message.content) + of(&message.extra) + BLOCK_OVERHEAD_BYTES;
        kept += 1;
        if length <= left {
            left -= length;
            continue;
        }
        let beginning = match &message.content.body {
            Content::Text(text) => format!("{}\n", cut(text, left)),
            _ => String::new(),
        };
        let body = Content::Text(beginning + marker.as_str());
        message.content = ContentBlock { body, extra: None };
        message.extra = None;
        break;
    }
    prompt.messages.truncate(kept);
    let about = json!({ "bytes": length, "uri": whole });
    mcp_json::insert_meta_of(&mut prompt.extra, TRUNCATED, &about);
}
