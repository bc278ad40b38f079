//! Making what plugins say of what they have safe to be shown: characters that a reader does not
//! see, or that change what is seen, stand in it as escapes. People and models see the same.
//!
//! That is done with what is for reading: titles and descriptions, those in schemas too. What a
//! program compares stays as it is: names, URIs, the values and property names of schemas; in the
//! text of a schema it is escaped in JSON's own way. The results of tools that a host is given are for a
//! reader, too, unless its operator says otherwise; those that another plugin is given are not.

use serde_json::Value;
use std::borrow::Cow;

use crate::bindings::lifecycle::{Identity, Registration};
use crate::bindings::model::ModelInfo;
use crate::bindings::prompts::{Prompt, PromptDefinition};
use crate::bindings::resources::{ListedResource, ResourceTemplate};
use crate::bindings::types::{Content, ContentBlock, ResourceBody, ToolResult};
use crate::text::{one_line, visible, visible_json};

/// What a plugin registers.
pub(crate) fn registration(mut registration: Registration) -> Registration {
    let Identity { name, version, description } = &mut registration.identity;
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
/// that changed anything.
pub(crate) fn result(result: &mut ToolResult) -> bool {
    let replaced = |text: &mut String, shown: Option<String>| match shown {
        Some(shown) if shown != *text => {
            *text = shown;
            true
        }
        _ => false,
    };
    let said = |text: &mut String| {
        let shown = visible_lines(text);
        replaced(text, shown)
    };
    let json = |json: &mut String| {
        let shown = match visible_json(json) {
            Cow::Owned(shown) => Some(shown),
            Cow::Borrowed(_) => None,
        };
        replaced(json, shown)
    };
    let mut changed = false;
    for ContentBlock { body, extra } in &mut result.content {
        changed |= match body {
            Content::Text(text) => said(text),
            Content::Resource(resource) => {
                let is_changed = resource.extra.as_mut().is_some_and(json);
                match &mut resource.body {
                    ResourceBody::Text(text) => said(text) | is_changed,
                    ResourceBody::Blob(_) => is_changed,
                }
            }
            Content::ResourceLink(link) => {
                let texts = [&mut link.title, &mut link.description].into_iter().flatten();
                texts.fold(false, |any, text| said(text) | any)
            }
            Content::Other(other) => json(other),
            Content::Image(_) | Content::Audio(_) => false,
        };
        changed |= extra.as_mut().is_some_and(json);
    }
    for text in [&mut result.structured, &mut result.extra].into_iter().flatten() {
        changed |= json(text);
    }
    changed
}

/// A text whose lines may end as they do in some files; nothing where nothing in it is hidden.
fn visible_lines(text: &str) -> Option<String> {
    let lines: Vec<Cow<'_, str>> = text.split("\r\n").map(visible).collect();
    let is_changed = lines.iter().any(|line| matches!(line, Cow::Owned(_)));
    is_changed.then(|| lines.join("\r\n"))
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
