//! The JSON forms that the Model Context Protocol gives to the contract's types: for scripts,
//! hooks, and everybody who reads `--json`.
//!
//! Source: the schema of MCP 2025-11-25. Members that the contract does not name travel in `extra`
//! and come out where they were.

use base64::Engine as _;
use base64::display::Base64Display;
use base64::prelude::BASE64_STANDARD;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::bindings::prompts::{Prompt, PromptDefinition, PromptRole};
use crate::bindings::resources::{ListedResource, ResourceTemplate};
use crate::bindings::types::{
    Content, ContentBlock, Media, ResourceBody, ResourceContents, ResourceLink, ToolAnnotations,
    ToolDefinition, ToolResult,
};

/// A JSON form that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct WireError {
    /// Where, as a JSON Pointer.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

/// A tool as `tools/list` shows it, under the name given here. Schemas and `extra` that are no JSON
/// were refused at registration.
pub fn tool_definition(name: &str, tool: &ToolDefinition) -> Value {
    let mut form = extra(tool.extra.as_deref());
    form.insert("name".into(), name.into());
    insert(&mut form, "title", tool.title.clone());
    form.insert("description".into(), tool.description.clone().into());
    form.insert("inputSchema".into(), text(&tool.input_schema));
    insert(&mut form, "outputSchema", tool.output_schema.as_deref().map(text));
    let ToolAnnotations { read_only, destructive, idempotent, open_world } = tool.annotations;
    let mut annotations = match form.remove("annotations") {
        Some(Value::Object(others)) => others,
        _ => Map::new(),
    };
    insert(&mut annotations, "readOnlyHint", read_only);
    insert(&mut annotations, "destructiveHint", destructive);
    insert(&mut annotations, "idempotentHint", idempotent);
    insert(&mut annotations, "openWorldHint", open_world);
    if !annotations.is_empty() {
        form.insert("annotations".into(), annotations.into());
    }
    Value::Object(form)
}

/// A result as `tools/call` answers it.
pub fn tool_result(result: &ToolResult) -> Value {
    tree(&Form(result))
}

/// The same for whoever writes it: what a plugin passed as JSON stays text, and nothing is copied.
pub(crate) struct Form<'a, T>(pub(crate) &'a T);

impl Serialize for Form<'_, ToolResult> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolResult { content, structured, is_error, extra } = self.0;
        let mut form = serializer.serialize_map(None)?;
        serialize_extra(&mut form, extra.as_deref())?;
        let content: Vec<_> = content.iter().map(Form).collect();
        form.serialize_entry("content", &content)?;
        if let Some(structured) = structured {
            form.serialize_entry("structuredContent", &Json(structured))?;
        }
        form.serialize_entry("isError", is_error)?;
        form.end()
    }
}

impl Serialize for Form<'_, ContentBlock> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ContentBlock { body, extra } = self.0;
        if let Content::Other(json) = body {
            return Json(json).serialize(serializer);
        }
        let mut form = serializer.serialize_map(None)?;
        serialize_extra(&mut form, extra.as_deref())?;
        let kind = match body {
            Content::Text(text) => {
                form.serialize_entry("text", text)?;
                "text"
            }
            Content::Image(media) => {
                serialize_media(&mut form, media)?;
                "image"
            }
            Content::Audio(media) => {
                serialize_media(&mut form, media)?;
                "audio"
            }
            Content::ResourceLink(link) => {
                serialize_link(&mut form, link)?;
                "resource_link"
            }
            Content::Resource(contents) => {
                form.serialize_entry("resource", &Form(contents))?;
                "resource"
            }
            Content::Other(_) => unreachable!("it was written above"),
        };
        form.serialize_entry("type", kind)?;
        form.end()
    }
}

impl Serialize for Form<'_, ResourceContents> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ResourceContents { uri, mime_type, body, extra } = self.0;
        let mut form = serializer.serialize_map(None)?;
        serialize_extra(&mut form, extra.as_deref())?;
        form.serialize_entry("uri", uri)?;
        if let Some(mime_type) = mime_type {
            form.serialize_entry("mimeType", mime_type)?;
        }
        match body {
            ResourceBody::Text(text) => form.serialize_entry("text", text)?,
            ResourceBody::Blob(bytes) => form.serialize_entry("blob", &Base64(bytes))?,
        }
        form.end()
    }
}

/// Bytes, in Base64.
struct Base64<'a>(&'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &BASE64_STANDARD))
    }
}

/// JSON text from a plugin. What does not parse is shown as the text it is.
struct Json<'a>(&'a str);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A `RawValue` may be too deep to be read.
        let json = serde_json::from_str::<Sound>(self.0);
        match json.and_then(|_| serde_json::from_str::<&RawValue>(self.0)) {
            Ok(json) => json.serialize(serializer),
            Err(_) => serializer.serialize_str(self.0),
        }
    }
}

/// The members that travel in `extra`.
fn serialize_extra<M: SerializeMap>(form: &mut M, extra: Option<&str>) -> Result<(), M::Error> {
    let Some(extra) = extra else { return Ok(()) };
    let members: BTreeMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(extra).unwrap_or_default();
    members.iter().try_for_each(|(name, value)| form.serialize_entry(name, &Json(value.get())))
}

fn serialize_media<M: SerializeMap>(form: &mut M, media: &Media) -> Result<(), M::Error> {
    form.serialize_entry("data", &Base64(&media.data))?;
    form.serialize_entry("mimeType", &media.mime_type)
}

fn serialize_link<M: SerializeMap>(form: &mut M, link: &ResourceLink) -> Result<(), M::Error> {
    let ResourceLink { uri, name, title, description, mime_type, size } = link;
    form.serialize_entry("uri", uri)?;
    form.serialize_entry("name", name)?;
    let texts = [("title", title), ("description", description), ("mimeType", mime_type)];
    for (name, text) in texts {
        if let Some(text) = text {
            form.serialize_entry(name, text)?;
        }
    }
    size.iter().try_for_each(|size| form.serialize_entry("size", size))
}

/// A form as a tree.
fn tree(form: &impl Serialize) -> Value {
    serde_json::to_value(form).unwrap_or_default()
}

/// Checks what a plugin passes as JSON in a result: that it is JSON, and of the right kind.
///
/// # Errors
///
/// Names the first member that is not what it should be.
pub(crate) fn check_tool_result(result: &ToolResult) -> Result<(), WireError> {
    if let Some(json) = &result.structured {
        check_json(json, "/structuredContent")?;
    }
    check_extra(result.extra.as_deref(), "")?;
    for (i, block) in result.content.iter().enumerate() {
        let place = format_args!("/content/{i}");
        check_extra(block.extra.as_deref(), place)?;
        match &block.body {
            Content::Other(json) => check_object(json, place)?,
            Content::Resource(contents) => check_extra(contents.extra.as_deref(), place)?,
            Content::Text(_) | Content::Image(_) | Content::Audio(_) | Content::ResourceLink(_) => {
            }
        }
    }
    Ok(())
}

/// Adds a member to a result's `_meta`. The key is one of our own, which needs no quoting.
pub(crate) fn insert_meta(result: &mut ToolResult, key: &str, value: &impl Serialize) {
    insert_meta_of(&mut result.extra, key, value);
}

/// The same for whatever has further members.
pub(crate) fn insert_meta_of(others: &mut Option<String>, key: &str, value: &impl Serialize) {
    if let Ok(json) = serde_json::to_string(value) {
        insert_meta_json(others, key, &json);
    }
}

/// The same, of a value that is JSON already.
pub(crate) fn insert_meta_json(others: &mut Option<String>, key: &str, value: &str) {
    let members = match others.as_deref() {
        // The common case, without a tree.
        None => [r#"{"_meta":{""#, key, r#"":"#, value, "}}"].concat(),
        members @ Some(_) => {
            let mut members = extra(members);
            let mut meta = match members.remove("_meta") {
                Some(Value::Object(meta)) => meta,
                // It is an object or nothing.
                Some(_) | None => Map::new(),
            };
            meta.insert(key.to_string(), text(value));
            members.insert("_meta".into(), meta.into());
            Value::Object(members).to_string()
        }
    };
    *others = Some(members);
}

/// How the keys begin that are the host's own in `_meta`.
const OURS: &str = "tenon/";

/// What is the host's own in the `_meta` of further members.
pub(crate) fn ours_in(others: Option<&str>) -> Map<String, Value> {
    match extra(others).remove("_meta") {
        Some(Value::Object(mut meta)) => {
            meta.retain(|key, _| key.starts_with(OURS));
            meta
        }
        _ => Map::new(),
    }
}

/// Takes what is the host's own out of the `_meta` of what a plugin answers: only the host says it.
pub(crate) fn drop_ours_of(result: &mut ToolResult) {
    drop_ours(&mut result.extra);
    for block in &mut result.content {
        drop_ours(&mut block.extra);
        if let Content::Resource(contents) = &mut block.body {
            drop_ours(&mut contents.extra);
        }
    }
}

/// The same for whatever has further members.
pub(crate) fn drop_ours(others: &mut Option<String>) {
    if others.is_none() || ours_in(others.as_deref()).is_empty() {
        return;
    }
    let mut members = extra(others.as_deref());
    if let Some(Value::Object(meta)) = members.get_mut("_meta") {
        meta.retain(|key, _| !key.starts_with(OURS));
        if meta.is_empty() {
            members.remove("_meta");
        }
    }
    *others = leftover(members);
}

/// Further members must be those of an object.
fn check_extra(extra: Option<&str>, place: impl fmt::Display) -> Result<(), WireError> {
    match extra {
        Some(json) => check_object(json, place),
        None => Ok(()),
    }
}

fn check_object(json: &str, place: impl fmt::Display) -> Result<(), WireError> {
    match check_json(json, &place)?.object {
        true => Ok(()),
        false => Err(problem(place, "not an object")),
    }
}

fn check_json(json: &str, place: impl fmt::Display) -> Result<Sound, WireError> {
    serde_json::from_str(json).map_err(|error| problem(place, &format!("not JSON: {error}")))
}

/// JSON that could be made a tree of, and is not: one of a long text is many times as long.
struct Sound {
    object: bool,
}

impl<'de> Deserialize<'de> for Sound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SoundVisitor)
    }
}

struct SoundVisitor;

impl<'de> Visitor<'de> for SoundVisitor {
    type Value = Sound;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Sound, E> {
        Ok(Sound { object: false })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Sound, E> {
        Ok(Sound { object: false })
    }

    fn visit_i64<E>(self, _: i64) -> Result<Sound, E> {
        Ok(Sound { object: false })
    }

    fn visit_u64<E>(self, _: u64) -> Result<Sound, E> {
        Ok(Sound { object: false })
    }

    fn visit_f64<E>(self, _: f64) -> Result<Sound, E> {
        Ok(Sound { object: false })
    }

    fn visit_str<E>(self, _: &str) -> Result<Sound, E> {
        Ok(Sound { object: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Sound, A::Error> {
        while items.next_element::<Sound>()?.is_some() {}
        Ok(Sound { object: false })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Sound, A::Error> {
        while members.next_entry::<Sound, Sound>()?.is_some() {}
        Ok(Sound { object: true })
    }
}

/// Reads a result back.
///
/// # Errors
///
/// Names the first member that is not what it should be.
pub fn read_tool_result(form: Value) -> Result<ToolResult, WireError> {
    let mut form = object(form, "")?;
    let content = match form.remove("content") {
        Some(Value::Array(blocks)) => blocks,
        Some(_) => return Err(problem("/content", "not an array")),
        None => Vec::new(),
    };
    let content = content
        .into_iter()
        .enumerate()
        .map(|(i, block)| read_content_block(block, &format!("/content/{i}")))
        .collect::<Result<_, _>>()?;
    let is_error = match form.remove("isError") {
        Some(Value::Bool(is_error)) => is_error,
        Some(_) => return Err(problem("/isError", "not a boolean")),
        None => false,
    };
    let structured = form.remove("structuredContent").map(|value| value.to_string());
    Ok(ToolResult { content, structured, is_error, extra: leftover(form) })
}

/// A content block.
pub fn content_block(block: &ContentBlock) -> Value {
    tree(&Form(block))
}

/// What was read from a resource.
pub fn resource_contents(contents: &ResourceContents) -> Value {
    tree(&Form(contents))
}

/// A resource in a listing, as `resources/list` shows it.
pub fn listed_resource(resource: &ListedResource) -> Value {
    let mut form = extra(resource.extra.as_deref());
    insert_link(&mut form, &resource.link);
    Value::Object(form)
}

/// A resource template, as `resources/templates/list` shows it.
pub fn resource_template(template: &ResourceTemplate) -> Value {
    let ResourceTemplate { uri_template, name, title, description, mime_type, extra: others } =
        template;
    let mut form = extra(others.as_deref());
    form.insert("uriTemplate".into(), uri_template.clone().into());
    form.insert("name".into(), name.clone().into());
    insert(&mut form, "title", title.clone());
    insert(&mut form, "description", description.clone());
    insert(&mut form, "mimeType", mime_type.clone());
    Value::Object(form)
}

/// A prompt in a listing, as `prompts/list` shows it.
pub fn prompt_definition(prompt: &PromptDefinition) -> Value {
    let PromptDefinition { name, title, description, arguments, extra: others } = prompt;
    let mut form = extra(others.as_deref());
    form.insert("name".into(), name.clone().into());
    insert(&mut form, "title", title.clone());
    insert(&mut form, "description", description.clone());
    let arguments = arguments.iter().map(|argument| {
        let mut form = Map::new();
        form.insert("name".into(), argument.name.clone().into());
        insert(&mut form, "title", argument.title.clone());
        insert(&mut form, "description", argument.description.clone());
        form.insert("required".into(), argument.required.into());
        Value::Object(form)
    });
    form.insert("arguments".into(), arguments.collect());
    Value::Object(form)
}

/// A prompt that was filled in, as `prompts/get` answers it.
pub fn prompt(prompt: &Prompt) -> Value {
    let mut form = Map::new();
    insert(&mut form, "description", prompt.description.clone());
    let messages = prompt.messages.iter().map(
        |message| json!({ "role": role(message.role), "content": content_block(&message.content) }),
    );
    form.insert("messages".into(), messages.collect());
    Value::Object(form)
}

/// The word for who speaks in a prompt.
pub fn role(role: PromptRole) -> &'static str {
    match role {
        PromptRole::User => "user",
        PromptRole::Assistant => "assistant",
    }
}

fn insert_link(form: &mut Map<String, Value>, link: &ResourceLink) {
    form.insert("uri".into(), link.uri.clone().into());
    form.insert("name".into(), link.name.clone().into());
    insert(form, "title", link.title.clone());
    insert(form, "description", link.description.clone());
    insert(form, "mimeType", link.mime_type.clone());
    insert(form, "size", link.size);
}

fn read_content_block(form: Value, place: &str) -> Result<ContentBlock, WireError> {
    let mut form = object(form, place)?;
    let Some(Value::String(kind)) = form.remove("type") else {
        return Err(problem(format_args!("{place}/type"), "missing, or not a string"));
    };
    let body = match kind.as_str() {
        "text" => Content::Text(required(&mut form, "text", place)?),
        "image" => Content::Image(read_media(&mut form, place)?),
        "audio" => Content::Audio(read_media(&mut form, place)?),
        "resource_link" => Content::ResourceLink(ResourceLink {
            uri: required(&mut form, "uri", place)?,
            name: required(&mut form, "name", place)?,
            title: optional(&mut form, "title"),
            description: optional(&mut form, "description"),
            mime_type: optional(&mut form, "mimeType"),
            size: form.remove("size").and_then(|size| size.as_u64()),
        }),
        "resource" => {
            let contents = form.remove("resource").unwrap_or_default();
            Content::Resource(read_resource_contents(contents, &format!("{place}/resource"))?)
        }
        _ => {
            form.insert("type".into(), kind.into());
            return Ok(ContentBlock {
                body: Content::Other(Value::Object(form).to_string()),
                extra: None,
            });
        }
    };
    Ok(ContentBlock { body, extra: leftover(form) })
}

fn read_resource_contents(form: Value, place: &str) -> Result<ResourceContents, WireError> {
    let mut form = object(form, place)?;
    let uri = required(&mut form, "uri", place)?;
    let mime_type = optional(&mut form, "mimeType");
    let body = match optional(&mut form, "blob") {
        Some(blob) => ResourceBody::Blob(decode(&blob, &format!("{place}/blob"))?),
        None => ResourceBody::Text(required(&mut form, "text", place)?),
    };
    Ok(ResourceContents { uri, mime_type, body, extra: leftover(form) })
}

fn read_media(form: &mut Map<String, Value>, place: &str) -> Result<Media, WireError> {
    let data: String = required(form, "data", place)?;
    let mime_type = required(form, "mimeType", place)?;
    Ok(Media { data: decode(&data, &format!("{place}/data"))?, mime_type })
}

fn decode(data: &str, place: &str) -> Result<Vec<u8>, WireError> {
    BASE64_STANDARD.decode(data).map_err(|error| problem(place, &format!("not base64: {error}")))
}

fn required(form: &mut Map<String, Value>, key: &str, place: &str) -> Result<String, WireError> {
    optional(form, key)
        .ok_or_else(|| problem(format_args!("{place}/{key}"), "missing, or not a string"))
}

fn optional(form: &mut Map<String, Value>, key: &str) -> Option<String> {
    match form.remove(key) {
        Some(Value::String(text)) => Some(text),
        Some(other) => {
            form.insert(key.into(), other);
            None
        }
        None => None,
    }
}

fn insert(form: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        form.insert(key.into(), value.into());
    }
}

fn object(form: Value, place: &str) -> Result<Map<String, Value>, WireError> {
    match form {
        Value::Object(form) => Ok(form),
        _ => Err(problem(place, "not an object")),
    }
}

fn problem(place: impl fmt::Display, problem: &str) -> WireError {
    WireError { place: place.to_string(), problem: problem.to_string() }
}

/// The members that travel in `extra`.
fn extra(extra: Option<&str>) -> Map<String, Value> {
    match extra.map(text) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn leftover(form: Map<String, Value>) -> Option<String> {
    (!form.is_empty()).then(|| Value::Object(form).to_string())
}

/// A tree as JSON text. What `Display` writes is the same, piece by piece through a formatter.
pub(crate) fn written(tree: &Value) -> String {
    serde_json::to_string(tree).expect("the keys of a tree are texts")
}

/// JSON text from a plugin. What does not parse is shown as the text it is.
fn text(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| json!(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a form and writes it again.
    fn check(form: Value) {
        let result = read_tool_result(form.clone()).expect("the form is read");
        assert_eq!(tool_result(&result), form);
    }

    #[test]
    fn every_block_comes_out_as_it_went_in() {
        check(json!({"isError": false, "content": [
            {"type": "text", "text": "hi", "annotations": {"audience": ["user"]}},
            {"type": "image", "data": "AQID", "mimeType": "image/png", "_meta": {"a": 1}},
            {"type": "audio", "data": "", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "t", "_meta": {}}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "/w==", "mimeType": "x/y"}},
            {"type": "hologram", "depth": 3},
        ]}));
    }

    #[test]
    fn unknown_members_of_a_result_are_kept() {
        check(
            json!({"content": [], "isError": true, "structuredContent": {"n": 1}, "_meta": {"x": [1]}, "later": 2}),
        );
    }

    #[test]
    fn what_is_the_hosts_own_is_dropped_and_the_rest_stays() {
        let check = |given: Option<&str>, expected: Option<&str>| {
            let mut others = given.map(str::to_string);
            drop_ours(&mut others);
            assert_eq!(others.as_deref(), expected, "{given:?}");
        };
        check(None, None);
        check(Some(r#"{"_meta":{"tenon/usage":{}}}"#), None);
        check(Some(r#"{"_meta":{"\u0074enon\/usage":{}}}"#), None);
        check(Some(r#"{"_meta":{"tenon/x":1,"a":2},"b":3}"#), Some(r#"{"_meta":{"a":2},"b":3}"#));
        check(Some(r#"{ "_meta": { "tenons/x": 1 } }"#), Some(r#"{ "_meta": { "tenons/x": 1 } }"#));
        check(Some(r#"{ "tenon/x": 1 }"#), Some(r#"{ "tenon/x": 1 }"#));
        let forged = json!({ "_meta": { "tenon/usage": 1 } });
        let mut part = json!({ "uri": "a:b", "text": "t" });
        part["_meta"] = forged["_meta"].clone();
        let mut block = json!({ "type": "resource", "resource": part });
        block["_meta"] = forged["_meta"].clone();
        let mut result = json!({ "content": [block] });
        result["_meta"] = forged["_meta"].clone();
        let mut result = read_tool_result(result).expect("it is read");
        drop_ours_of(&mut result);
        assert!(!tool_result(&result).to_string().contains(OURS), "{result:?}");
    }

    #[test]
    fn a_wrong_member_is_named() {
        let error =
            read_tool_result(json!({"content": [{"type": "image", "data": "%"}]})).unwrap_err();
        assert_eq!(error.place, "/content/0/mimeType");
        let error = read_tool_result(json!({"content": 3})).unwrap_err();
        assert_eq!(error.to_string(), "/content: not an array");
    }

    #[test]
    fn json_of_plugins_is_checked() {
        let check = |structured: Option<&str>, extra: Option<&str>, other: &str, expected: &str| {
            let block = ContentBlock { body: Content::Other(other.into()), extra: None };
            let result = ToolResult {
                content: vec![block],
                structured: structured.map(Into::into),
                is_error: false,
                extra: extra.map(Into::into),
            };
            let said = check_tool_result(&result).map_or_else(|error| error.place, |()| "".into());
            assert_eq!(said, expected);
        };
        check(Some("[1]"), Some("{}"), "{}", "");
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for bad in ["{", "1e400", "\"\\ud800\"", deep.as_str()] {
            check(Some(bad), None, "{}", "/structuredContent");
        }
        check(None, None, "3", "/content/0");
        check(None, None, "no", "/content/0");
    }
}
