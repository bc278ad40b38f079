//! Making what plugins say of what they have safe to be shown: characters that a reader does not
//! see, or that change what is seen, stand in it as escapes. People and models see the same.
//!
//! That is done with what is for reading: titles and descriptions, those in schemas too. What a
//! program compares stays as it is: names, URIs, the values and property names of schemas; in the
//! text of a schema it is escaped in JSON's own way. What a host is given as an answer (a result, what
//! a resource or prompt has, an evaluation, a completion) is for a reader, too, unless its operator or
//! the caller says otherwise; what another plugin is given is not.

use serde::de::IgnoredAny;
use serde_json::Value;
use std::borrow::Cow;
use tenon_types::text::{one_line, visible, visible_json};
use tenon_types::{
    Completion, Content, ContentBlock, Evaluation, Finding, Identity, ListedResource, ModelInfo,
    Part, Prompt, PromptDefinition, Registration, ResourceBody, ResourceContents, ResourceTemplate,
    Suggestions, ToolResult,
};

/// What a plugin registers.
pub(crate) fn registration(mut registration: Registration) -> Registration {
    let Identity { name, version, description, extra } = &mut registration.identity;
    extra.iter_mut().for_each(json);
    line(name);
    line(version);
    text(description);
    for tool in &mut registration.tools {
        text(&mut tool.description);
        tool.title.iter_mut().for_each(line);
        json(&mut tool.input_schema);
        [&mut tool.output_schema, &mut tool.extra].into_iter().flatten().for_each(json);
    }
    registration.providers.iter_mut().for_each(|provider| text(&mut provider.description));
    for eval in &mut registration.evals {
        text(&mut eval.description);
        eval.options_schema.iter_mut().for_each(json);
    }
    registration
}

/// A resource in a listing.
pub(crate) fn resource(resource: &mut ListedResource) {
    resource.link.title.iter_mut().for_each(line);
    resource.link.description.iter_mut().for_each(text);
    resource.extra.iter_mut().for_each(json);
}

/// A resource template in a listing.
pub(crate) fn template(template: &mut ResourceTemplate) {
    template.title.iter_mut().for_each(line);
    template.description.iter_mut().for_each(text);
    template.extra.iter_mut().for_each(json);
}

/// A prompt in a listing.
pub(crate) fn prompt_definition(prompt: &mut PromptDefinition) {
    prompt.title.iter_mut().for_each(line);
    prompt.description.iter_mut().for_each(text);
    prompt.extra.iter_mut().for_each(json);
    for argument in &mut prompt.arguments {
        argument.title.iter_mut().for_each(line);
        argument.description.iter_mut().for_each(text);
        argument.extra.iter_mut().for_each(json);
    }
}

/// What a prompt that was filled in says of itself. Its messages are a result.
pub(crate) fn prompt(prompt: &mut Prompt) {
    prompt.description.iter_mut().for_each(text);
}

/// The models of a plugin's providers.
pub(crate) fn models(mut models: Vec<ModelInfo>) -> Vec<ModelInfo> {
    models.iter_mut().filter_map(|model| model.title.as_mut()).for_each(line);
    models
}

/// The result of a tool: its texts, and in its JSON what is hidden as escapes of JSON. Gives whether
/// that changed anything, as all of the following do.
pub(crate) fn result(result: &mut ToolResult) -> bool {
    let mut changed = any(&mut result.content, block);
    for text in [&mut result.structured, &mut result.extra] {
        changed |= any(text, answered_json);
    }
    changed
}

/// What was read of resources.
pub(crate) fn contents(read: &mut [ResourceContents]) -> bool {
    any(read, part_of_resource)
}

/// What a prompt that was filled in says.
pub(crate) fn messages(prompt: &mut Prompt) -> bool {
    any(&mut prompt.messages, |message| {
        block(&mut message.content) | any(&mut message.extra, answered_json)
    }) | any(&mut prompt.extra, answered_json)
}

/// What an argument may be completed to. The values are passed on as arguments and stay what they are.
pub(crate) fn suggestions(suggestions: &mut Suggestions) -> bool {
    any(&mut suggestions.extra, answered_json)
}

/// Why a handler stopped what was about to happen.
pub(crate) fn reason(reason: &mut String) -> bool {
    answered(reason)
}

/// What an evaluation found.
pub(crate) fn evaluation(evaluation: &mut Evaluation) -> bool {
    any(&mut evaluation.findings, |Finding { criterion, reason, .. }| {
        answered(criterion) | answered(reason)
    }) | any(&mut evaluation.extra, answered_json)
}

/// What a model answered. Reasoning that is signed has to go back as it is.
pub(crate) fn completion(completion: &mut Completion) -> bool {
    any(&mut completion.parts, |part| match part {
        Part::Text(text) => answered(text),
        Part::Reasoning(reasoning) if reasoning.signature.is_none() => {
            answered(&mut reasoning.text)
        }
        Part::ToolCall(call) => answered_json(&mut call.arguments),
        Part::ToolCallResult(answer) => any(&mut answer.content, block),
        Part::Other(other) => answered_json(other),
        Part::Reasoning(_) | Part::Image(_) | Part::Audio(_) => false,
    }) | any(&mut completion.summary.extra, answered_json)
}

/// Whether one of all these changed.
fn any<'a, T: 'a>(
    all: impl IntoIterator<Item = &'a mut T>,
    mut show: impl FnMut(&'a mut T) -> bool,
) -> bool {
    all.into_iter().fold(false, |any, one| show(one) | any)
}

fn block(ContentBlock { body, extra }: &mut ContentBlock) -> bool {
    let changed = match body {
        Content::Text(text) => answered(text),
        Content::Resource(resource) => part_of_resource(resource),
        Content::ResourceLink(link) => {
            any(&mut link.title, answered) | any(&mut link.description, answered)
        }
        Content::Other(other) => answered_json(other),
        Content::Image(_) | Content::Audio(_) => false,
    };
    changed | any(extra, answered_json)
}

fn part_of_resource(ResourceContents { body, extra, .. }: &mut ResourceContents) -> bool {
    let changed = match body {
        ResourceBody::Text(text) => answered(text),
        ResourceBody::Blob(_) => false,
    };
    changed | any(extra, answered_json)
}

/// A text of an answer, whose lines may end as they do in some files. One that is JSON as a whole stays so: programs
/// read it.
fn answered(text: &mut String) -> bool {
    let is_visible = |line| matches!(visible(line), Cow::Borrowed(_));
    if is_visible(text) || text.split("\r\n").all(is_visible) {
        return false;
    }
    let lines: Vec<Cow<'_, str>> = text.split("\r\n").map(visible).collect();
    let shown = lines.join("\r\n");
    if shown == *text {
        return false;
    }
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return answered_json(text);
    }
    *text = shown;
    true
}

/// The same of JSON, which means the same afterwards.
fn answered_json(json: &mut String) -> bool {
    match visible_json(json) {
        Cow::Owned(shown) if shown != *json => {
            *json = shown;
            true
        }
        _ => false,
    }
}

fn text(text: &mut String) {
    if text.contains("\r\n") {
        // A line that ends so ends all the same.
        *text = text.replace("\r\n", "\n");
    }
    if let Cow::Owned(shown) = visible(text) {
        *text = shown;
    }
}

fn line(text: &mut String) {
    if let Cow::Owned(shown) = one_line(text) {
        *text = shown;
    }
}

/// The members that are for reading, in schemas and elsewhere.
const READ: [&str; 3] = ["title", "description", "$comment"];

/// The members of schemas whose values are data, whatever they look like.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// A JSON text. What is none is refused elsewhere.
fn json(json: &mut String) {
    if let Ok(mut value) = serde_json::from_str::<Value>(json)
        && read_out(&mut value)
    {
        *json = value.to_string();
    }
    if let Cow::Owned(shown) = visible_json(json) {
        *json = shown;
    }
}

/// Gives whether it changed anything.
fn read_out(value: &mut Value) -> bool {
    match value {
        Value::Array(items) => items.iter_mut().fold(false, |any, item| read_out(item) | any),
        Value::Object(members) => members.iter_mut().fold(false, |any, (name, value)| {
            let changed = match value {
                _ if DATA.contains(&name.as_str()) => false,
                Value::String(words) if READ.contains(&name.as_str()) => {
                    let before = words.clone();
                    text(words);
                    *words != before
                }
                value => read_out(value),
            };
            changed | any
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tenon_types::{CompletionSummary, Reasoning, StopReason, TokenUsage};

    #[test]
    fn a_result_says_what_it_hides_and_its_json_means_the_same() {
        let check = |given: &str, expected: &str| {
            let mut said = ToolResult::text(given);
            said.structured = Some(json!({ "a": given }).to_string());
            assert_eq!(result(&mut said), given != expected, "{given:?}");
            let Content::Text(text) = &said.content[0].body else { panic!("it is text") };
            assert_eq!(text, expected);
            let structured: Value =
                serde_json::from_str(said.structured.as_ref().unwrap()).unwrap();
            assert_eq!(structured, json!({ "a": given }));
        };
        check("two\r\nlines\tand \u{2764}\u{fe0f} é", "two\r\nlines\tand \u{2764}\u{fe0f} é");
        // Persian and Hindi are written with joiners.
        check("می\u{200c}خواهم क्\u{200d}ष", "می\u{200c}خواهم क्\u{200d}ष");
        check("a\rb\r\nc\u{202e}d", "a\\rb\r\nc\\u{202e}d");
        check("ignore\u{e0041}\u{200b}\u{1b}[2J", "ignore\\u{e0041}\\u{200b}\\u{1b}[2J");
    }

    #[test]
    fn a_text_that_is_json_means_the_same_when_it_is_visible() {
        let check = |given: &str, expected: &str| {
            let mut shown = given.to_string();
            assert_eq!(answered(&mut shown), given != expected, "{given:?}");
            assert_eq!(shown, expected);
        };
        check(
            "{\r\n\t\"a\": [\"b\u{200b}\u{e0041}\", 1.50]\r\n}\n",
            "{\r\n\t\"a\": [\"b\\u200b\\udb40\\udc41\", 1.50]\r\n}\n",
        );
        check("\"\u{202e}\"", "\"\\u202e\"");
        check("[\"\u{2764}\u{fe0f}\"]", "[\"\u{2764}\u{fe0f}\"]");
        let (deep, end) = ("[".repeat(100_000), "]".repeat(100_000));
        check(&format!("{deep}\"\u{ad}\"{end}"), &format!("{deep}\"\\u00ad\"{end}"));
        // These are no JSON.
        check("{\"a\": \"\u{200b}\"", "{\"a\": \"\\u{200b}\"");
        check("\u{feff}{}", "\\u{feff}{}");
        check("{}\u{200b}", "{}\\u{200b}");
        check("\"\u{1b}\"", "\"\\u{1b}\"");
    }

    /// Its provider wants reasoning back as it signed it.
    #[test]
    fn reasoning_is_visible_where_nobody_signed_it() {
        for (signature, expected) in [(None, "a\\u{202e}b"), (Some("s".into()), "a\u{202e}b")] {
            let reasoning = Reasoning { text: "a\u{202e}b".into(), signature };
            let usage = TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 };
            let (model, stop_reason) = (String::new(), StopReason::EndTurn);
            let summary = CompletionSummary { model, stop_reason, usage, extra: None };
            let mut said = Completion { parts: vec![Part::Reasoning(reasoning)], summary };
            let is_changed = completion(&mut said);
            let Part::Reasoning(reasoning) = &said.parts[0] else { panic!("it is reasoning") };
            assert_eq!((&*reasoning.text, is_changed), (expected, expected.is_ascii()));
        }
    }

    #[test]
    fn what_is_for_reading_is_visible_and_what_is_compared_is_the_same() {
        let check = |given: Value, expected: Value| {
            let mut text = given.to_string();
            json(&mut text);
            assert!(text.is_ascii(), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        };
        check(json!({ "description": "a\u{202e}b" }), json!({ "description": "a\\u{202e}b" }));
        check(
            json!({ "properties": { "description": { "title": "\u{200b}", "enum": ["\u{200b}"] } } }),
            json!({ "properties": { "description": { "title": "\\u{200b}", "enum": ["\u{200b}"] } } }),
        );
        check(
            json!({ "default": { "title": "\u{200b}" } }),
            json!({ "default": { "title": "\u{200b}" } }),
        );
        check(json!({ "required": ["\u{feff}x"] }), json!({ "required": ["\u{feff}x"] }));
    }
}
