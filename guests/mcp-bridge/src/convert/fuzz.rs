//! Answers of any text.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::*;

/// Any bytes, as the answer to each request. What cannot be read is an error, and what can be is whole: there
/// is a block for each item, and what is said to be JSON is.
pub fn tool_result(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    // A parser has seen the line that an answer came in.
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return;
    }
    let tree: Option<Value> = serde_json::from_str(text).ok();
    let items = |key: &str| Some(tree.as_ref()?.get(key)?.as_array()?.len());

    let result = super::tool_result(JsonSlice::from(text));
    if let Ok(result) = &result {
        if let Some(items) = items("content") {
            assert_eq!(result.content.len(), items, "there is a block for each item");
        }
        if let Some(structured) = &result.structured {
            let structured = serde_json::from_str::<IgnoredAny>(structured);
            structured.expect("structured content is JSON");
        }
        result.content.iter().for_each(check_block);
        check_extra(&result.extra);
    }
    if let Ok(parts) = resource_contents(text, "file:///a") {
        assert!(items("contents").is_none_or(|items| items == parts.len()), "each part is there");
        parts.iter().for_each(|part| check_extra(&part.extra));
    }
    if let Ok(prompt) = prompt(text) {
        let messages = prompt.messages.len();
        assert!(items("messages").is_none_or(|items| items == messages), "each message is there");
        prompt.messages.iter().for_each(|message| {
            check_block(&message.content);
            check_extra(&message.extra);
        });
        check_extra(&prompt.extra);
    }
    if let Ok(suggestions) = suggestions(text) {
        assert!(suggestions.values.len() <= MAX_SUGGESTIONS);
        check_extra(&suggestions.extra);
    }
    let mut left_out = 0;
    let mut count = |_: &str| left_out += 1;
    if let Ok(page) = resource_page(text, &mut count) {
        page.resources.iter().for_each(|resource| check_extra(&resource.extra));
        let all = page.resources.len() + std::mem::take(&mut left_out);
        assert!(items("resources").is_none_or(|items| items == all), "each is there or told of");
    }
    let mut count = |_: &str| left_out += 1;
    if let Ok(page) = template_page(text, &mut count) {
        page.templates.iter().for_each(|template| check_extra(&template.extra));
    }
    if let Ok(page) = prompt_page(text, |_| {}) {
        page.prompts.iter().for_each(|prompt| check_extra(&prompt.extra));
    }
    has_items(text, "resources");
    if let Ok((tool, _)) = tool(text) {
        let schema = tool.input_schema.trim_start();
        assert!(schema.starts_with('{'), "{schema} is not an object");
        for schema in [Some(&tool.input_schema), tool.output_schema.as_ref()].into_iter().flatten()
        {
            serde_json::from_str::<IgnoredAny>(schema).expect("a schema is JSON");
        }
        check_extra(&tool.extra);
    }
}

fn check_block(block: &ContentBlock) {
    if let Content::Other(json) = &block.body {
        assert!(serde_json::from_str::<Value>(json).is_ok_and(|json| json.is_object()), "{json}");
    }
    if let Content::Resource(part) = &block.body {
        check_extra(&part.extra);
    }
    check_extra(&block.extra);
}

/// The host reads it as an object.
fn check_extra(extra: &Option<String>) {
    let Some(extra) = extra else { return };
    let extra =
        serde_json::from_str::<Value>(extra).unwrap_or_else(|error| panic!("{error}: {extra}"));
    assert!(extra.as_object().is_some_and(|extra| !extra.is_empty()), "{extra}");
}
