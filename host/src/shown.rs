//! Making what plugins say of what they have safe to be shown: characters that a reader does not
//! see, or that change what is seen, stand in it as escapes. People and models see the same.
//!
//! That is done with what is for reading: titles and descriptions, those in schemas too. What a
//! program compares stays as it is: names, URIs, the values and property names of schemas; in the
//! text of a schema it is escaped in JSON's own way. Results are not touched: they are for programs,
//! and who shows them to people uses [`crate::visible`].

use serde_json::Value;
use std::borrow::Cow;

use crate::bindings::lifecycle::{Identity, Registration};
use crate::bindings::model::ModelInfo;
use crate::bindings::prompts::{Prompt, PromptDefinition};
use crate::bindings::resources::{ListedResource, ResourceTemplate};
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
