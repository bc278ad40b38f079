//! The JSON forms that the Model Context Protocol gives to the contract's types: for scripts,
//! hooks, and everybody who reads `--json`.
//!
//! Source: the schemas of MCP 2025-11-25 and 2026-07-28. Members that the contract does not name travel
//! in `extra` and come out where they were. A [`McpJson`] is written as JSON text in which their values are
//! spelled as the plugin spelled them; a [`Value`] of it has the precision that numbers have there.

use base64::Engine as _;
use base64::display::Base64Display;
use base64::prelude::BASE64_STANDARD;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{Error as _, SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use crate::json::JsonValidation;
use crate::{
    Content, ContentBlock, Evaluation, Finding, ListedResource, Media, Prompt, PromptArgument,
    PromptDefinition, PromptMessage, PromptRole, ResourceBody, ResourceContents, ResourceLink,
    ResourceTemplate, Suggestions, ToolAnnotations, ToolDefinition, ToolResult, Verdict,
};

/// A JSON form that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct McpJsonError {
    /// Where, as a JSON Pointer.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

/// A tool as `tools/list` shows it, under the name given here. Schemas and `extra` that are no JSON
/// were refused at registration.
pub fn tool_definition(name: &str, tool: &ToolDefinition) -> Value {
    let mut form = tree(&McpJson(tool));
    form["name"] = name.into();
    form
}

/// A result as `tools/call` answers it.
pub fn tool_result(result: &ToolResult) -> Value {
    tree(&McpJson(result))
}

/// The JSON form of a value for whoever writes it as text: what a plugin passed as JSON stays the text
/// that it is, and nothing is copied.
#[derive(Debug, Clone, Copy)]
pub struct McpJson<'a, T>(pub &'a T);

/// The JSON form of a value with members of the host's own, which say whose it is. Of two members with the same
/// name the host's counts.
#[derive(Debug, Clone, Copy)]
pub struct McpJsonWith<'a, T, O>(pub &'a T, pub O);

impl<'a, T, O: Serialize> Serialize for McpJsonWith<'a, T, O>
where
    McpJson<'a, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = serde_json::to_string(&McpJson(self.0)).map_err(S::Error::custom)?;
        let ours = serde_json::to_string(&self.1).map_err(S::Error::custom)?;
        let mut members = Members::of(Some(&form));
        let ours = Members::of(Some(&ours));
        for (name, value) in &ours.0 {
            members.set(name, value.clone().into_owned());
        }
        members.serialize(serializer)
    }
}

/// An object that is being written: the members that the contract names, and then all others.
struct ObjectWriter<M> {
    form: M,
    written: Vec<&'static str>,
}

impl<M: SerializeMap> ObjectWriter<M> {
    fn begin<S: Serializer<SerializeMap = M>>(serializer: S) -> Result<Self, S::Error>
    where
        M: SerializeMap<Ok = S::Ok, Error = S::Error>,
    {
        Ok(Self { form: serializer.serialize_map(None)?, written: Vec::with_capacity(8) })
    }

    fn member(&mut self, name: &'static str, value: &impl Serialize) -> Result<(), M::Error> {
        self.written.push(name);
        self.form.serialize_entry(name, value)
    }

    fn optional(
        &mut self,
        name: &'static str,
        value: Option<&impl Serialize>,
    ) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.member(name, value))
    }

    /// Writes those of some further members that were not written yet, and ends the object.
    fn end(mut self, others: &Members<'_>) -> Result<M::Ok, M::Error> {
        for (name, value) in &others.0 {
            if !self.written.contains(&&**name) {
                self.form.serialize_entry(name, &JsonOrText(value.get()))?;
            }
        }
        self.form.end()
    }
}

impl Serialize for McpJson<'_, ToolDefinition> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolDefinition {
            name,
            title,
            description,
            input_schema,
            output_schema,
            annotations: ToolAnnotations { read_only, destructive, idempotent, open_world },
            capabilities: _,
            extra,
        } = self.0;
        let mut others = Members::of(extra.as_deref());
        let mut form = ObjectWriter::begin(serializer)?;
        form.member("name", name)?;
        form.optional("title", title.as_ref())?;
        if !description.is_empty() {
            form.member("description", description)?;
        }
        form.member("inputSchema", &JsonOrText(input_schema))?;
        form.optional("outputSchema", output_schema.as_deref().map(JsonOrText).as_ref())?;
        let hints = [
            ("readOnlyHint", read_only),
            ("destructiveHint", destructive),
            ("idempotentHint", idempotent),
            ("openWorldHint", open_world),
        ];
        let hints = hints.map(|(name, hint)| Some((name, (*hint)?)));
        others.merge("annotations", hints.into_iter().flatten());
        form.end(&others)
    }
}

impl Serialize for McpJson<'_, ToolResult> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolResult { content, structured, is_error, extra } = self.0;
        let mut form = ObjectWriter::begin(serializer)?;
        form.member("content", &McpJsonItems(content))?;
        form.optional("structuredContent", structured.as_deref().map(JsonOrText).as_ref())?;
        form.member("isError", is_error)?;
        form.end(&Members::of(extra.as_deref()))
    }
}

impl Serialize for McpJson<'_, ContentBlock> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ContentBlock { body, extra } = self.0;
        let kind = match body {
            Content::Other(json) => return JsonOrText(json).serialize(serializer),
            Content::Text(_) => "text",
            Content::Image(_) => "image",
            Content::Audio(_) => "audio",
            Content::ResourceLink(_) => "resource_link",
            Content::Resource(_) => "resource",
        };
        let mut form = ObjectWriter::begin(serializer)?;
        form.member("type", &kind)?;
        match body {
            Content::Text(text) => form.member("text", text)?,
            Content::Image(media) | Content::Audio(media) => {
                form.member("data", &Base64(&media.data))?;
                form.member("mimeType", &media.mime_type)?;
            }
            Content::ResourceLink(link) => serialize_link(&mut form, link)?,
            Content::Resource(contents) => form.member("resource", &McpJson(contents))?,
            Content::Other(_) => unreachable!("it was written above"),
        }
        form.end(&Members::of(extra.as_deref()))
    }
}

impl Serialize for McpJson<'_, ResourceContents> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ResourceContents { uri, mime_type, body, extra } = self.0;
        let mut form = ObjectWriter::begin(serializer)?;
        form.member("uri", uri)?;
        form.optional("mimeType", mime_type.as_ref())?;
        match body {
            ResourceBody::Text(text) => form.member("text", text)?,
            ResourceBody::Blob(bytes) => form.member("blob", &Base64(bytes))?,
        }
        form.end(&Members::of(extra.as_deref()))
    }
}

impl Serialize for McpJson<'_, ListedResource> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ListedResource { link, extra } = self.0;
        let mut form = ObjectWriter::begin(serializer)?;
        serialize_link(&mut form, link)?;
        form.end(&Members::of(extra.as_deref()))
    }
}

impl Serialize for McpJson<'_, ResourceTemplate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ResourceTemplate { uri_template, name, title, description, mime_type, extra } = self.0;
        let mut form = ObjectWriter::begin(serializer)?;
        form.member("uriTemplate", uri_template)?;
        form.member("name", name)?;
        form.optional("title", title.as_ref())?;
        form.optional("description", description.as_ref())?;
        form.optional("mimeType", mime_type.as_ref())?;
        form.end(&Members::of(extra.as_deref()))
    }
}

impl Serialize for McpJson<'_, PromptDefinition> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PromptDefinition { name, title, description, arguments, extra } = self.0;
        let mut form = ObjectWriter::begin(serializer)?;
        form.member("name", name)?;
        form.optional("title", title.as_ref())?;
        form.optional("description", description.as_ref())?;
        if !arguments.is_empty() {
            form.member("arguments", &McpJsonItems(arguments))?;
        }
        form.end(&Members::of(extra.as_deref()))
    }
}

impl Serialize for McpJson<'_, PromptArgument> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PromptArgument { name, title, description, required, extra } = self.0;
        let mut form = ObjectWriter::begin(serializer)?;
        form.member("name", name)?;
        form.optional("title", title.as_ref())?;
        form.optional("description", description.as_ref())?;
        form.optional("required", required.then_some(&true))?;
        form.end(&Members::of(extra.as_deref()))
    }
}

impl Serialize for McpJson<'_, Prompt> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Prompt { description, messages, extra } = self.0;
        let mut form = ObjectWriter::begin(serializer)?;
        form.optional("description", description.as_ref())?;
        form.member("messages", &McpJsonItems(messages))?;
        form.end(&Members::of(extra.as_deref()))
    }
}

impl Serialize for McpJson<'_, PromptMessage> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PromptMessage { role: speaker, content, extra } = self.0;
        let others = Members::of(extra.as_deref());
        let mut form = ObjectWriter::begin(serializer)?;
        // One that is neither stands among the others.
        if *speaker == PromptRole::Assistant || others.get("role").is_none() {
            form.member("role", &role(*speaker))?;
        }
        form.member("content", &McpJson(content))?;
        form.end(&others)
    }
}

impl Serialize for McpJson<'_, Suggestions> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Suggestions { values, total, has_more, extra } = self.0;
        let mut others = Members::of(extra.as_deref());
        let members = [("values", Some(json!(values))), ("total", total.map(Value::from))];
        let members =
            members.into_iter().chain([("hasMore", has_more.then_some(Value::Bool(true)))]);
        others.merge("completion", members.filter_map(|(name, value)| Some((name, value?))));
        ObjectWriter::begin(serializer)?.end(&others)
    }
}

/// The forms of several values.
struct McpJsonItems<'a, T>(&'a [T]);

impl<'a, T> Serialize for McpJsonItems<'a, T>
where
    McpJson<'a, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(McpJson))
    }
}

/// The members of an object in their order, whose values stay the text that they are. Of one that is
/// there twice, the last counts.
#[derive(Default)]
struct Members<'a>(Vec<(Cow<'a, str>, Cow<'a, RawValue>)>);

impl<'a> Members<'a> {
    /// Those that travel in `extra`. What is no object has none.
    fn of(extra: Option<&'a str>) -> Self {
        extra.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, json)| json.get())
    }

    /// Puts JSON in the place of a member, or at the end.
    fn set(&mut self, name: &'a str, json: Box<RawValue>) {
        match self.0.iter_mut().find(|(other, _)| other == name) {
            Some(member) => member.1 = Cow::Owned(json),
            None => self.0.push((name.into(), Cow::Owned(json))),
        }
    }

    /// Adds members to the object that a member is. One that is none gives way to them.
    fn merge(
        &mut self,
        name: &'static str,
        members: impl IntoIterator<Item = (&'static str, impl Serialize)>,
    ) {
        let mut members = members.into_iter().peekable();
        if members.peek().is_none() {
            return;
        }
        let before = self.get(name).map(str::to_string);
        let mut merged = Members::of(before.as_deref());
        for (name, value) in members {
            if let Ok(json) = serde_json::value::to_raw_value(&value) {
                merged.set(name, json);
            }
        }
        if let Ok(json) = serde_json::value::to_raw_value(&merged) {
            self.set(name, json);
        }
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, json)| (name, json)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members: Vec<(Cow<'de, str>, Cow<'de, RawValue>)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        while let Some((name, json)) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
            match places.entry(name.to_string()) {
                Entry::Occupied(place) => members[*place.get()].1 = Cow::Borrowed(json),
                Entry::Vacant(place) => {
                    place.insert(members.len());
                    members.push((name, Cow::Borrowed(json)));
                }
            }
        }
        Ok(Members(members))
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
struct JsonOrText<'a>(&'a str);

impl Serialize for JsonOrText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A `RawValue` may be too deep to be read.
        let json = serde_json::from_str::<JsonValidation>(self.0);
        match json.and_then(|_| serde_json::from_str::<&RawValue>(self.0)) {
            Ok(json) => json.serialize(serializer),
            Err(_) => serializer.serialize_str(self.0),
        }
    }
}

fn serialize_link<M: SerializeMap>(
    form: &mut ObjectWriter<M>,
    link: &ResourceLink,
) -> Result<(), M::Error> {
    let ResourceLink { uri, name, title, description, mime_type, size } = link;
    form.member("uri", uri)?;
    form.member("name", name)?;
    form.optional("title", title.as_ref())?;
    form.optional("description", description.as_ref())?;
    form.optional("mimeType", mime_type.as_ref())?;
    form.optional("size", size.as_ref())
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
pub fn check_tool_result(result: &ToolResult) -> Result<(), McpJsonError> {
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
pub fn insert_meta(result: &mut ToolResult, key: &str, value: &impl Serialize) {
    insert_meta_of(&mut result.extra, key, value);
}

/// The same for whatever has further members.
pub fn insert_meta_of(others: &mut Option<String>, key: &str, value: &impl Serialize) {
    if others.is_some() {
        if let Ok(json) = serde_json::to_string(value) {
            insert_meta_json(others, key, &json);
        }
        return;
    }
    // The common case, written at once.
    let mut members = Vec::with_capacity(256);
    for part in [r#"{"_meta":{""#, key, r#"":"#] {
        members.extend(part.bytes());
    }
    if serde_json::to_writer(&mut members, value).is_ok() {
        members.extend(b"}}");
        *others = String::from_utf8(members).ok();
    }
}

/// The same, of a value that is JSON already.
pub fn insert_meta_json(others: &mut Option<String>, key: &str, value: &str) {
    let members = match others.as_deref() {
        // The common cases, without a tree.
        None => [r#"{"_meta":{""#, key, r#"":"#, value, "}}"].concat(),
        Some(json) if let Some(rest) = after_opening_of_meta(json, key) => {
            let comma = if rest.starts_with('}') { "" } else { "," };
            [BEGIN_META, "\"", key, r#"":"#, value, comma, rest].concat()
        }
        Some(json) => {
            let mut members = Members::of(Some(json));
            let before = members.get("_meta").map(str::to_string);
            // It is an object or nothing.
            let mut meta = Members::of(before.as_deref());
            let value = RawValue::from_string(value.to_string()).ok();
            value.into_iter().for_each(|value| meta.set(key, value));
            if let Ok(meta) = serde_json::value::to_raw_value(&meta) {
                members.set("_meta", meta);
            }
            serde_json::to_string(&members).expect("names and JSON texts make an object")
        }
    };
    *others = Some(members);
}

/// How an object begins whose first member is `_meta`, as the host writes it.
const BEGIN_META: &str = r#"{"_meta":{"#;

/// What follows the beginning of `_meta`, where that comes first, is there once and has no such key, which is plain in
/// the text alone.
fn after_opening_of_meta<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let rest = json.strip_prefix(BEGIN_META)?;
    let may_differ = rest.contains("_meta") || rest.contains(key) || rest.contains('\\');
    (!may_differ).then(|| rest.trim_start())
}

/// How the keys begin that are the host's own in `_meta`.
const OURS: &str = "tenon/";

/// What is the host's own in the `_meta` of further members.
pub fn ours_in(others: Option<&str>) -> Map<String, Value> {
    match extra(others).remove("_meta") {
        Some(Value::Object(mut meta)) => {
            meta.retain(|key, _| key.starts_with(OURS));
            meta
        }
        _ => Map::new(),
    }
}

/// Takes what is the host's own out of the `_meta` of what a plugin answers: only the host says it.
pub fn drop_ours_of(result: &mut ToolResult) {
    drop_ours(&mut result.extra);
    for block in &mut result.content {
        drop_ours(&mut block.extra);
        if let Content::Resource(contents) = &mut block.body {
            drop_ours(&mut contents.extra);
        }
    }
}

/// The same for whatever has further members.
pub fn drop_ours(others: &mut Option<String>) {
    if others.is_none() || ours_in(others.as_deref()).is_empty() {
        return;
    }
    let mut members = Members::of(others.as_deref());
    let before = members.get("_meta").map(str::to_string);
    let mut meta = Members::of(before.as_deref());
    meta.0.retain(|(key, _)| !key.starts_with(OURS));
    match serde_json::value::to_raw_value(&meta) {
        Ok(left) if !meta.0.is_empty() => members.set("_meta", left),
        _ => members.0.retain(|(name, _)| name != "_meta"),
    }
    let left = (!members.0.is_empty()).then(|| serde_json::to_string(&members));
    *others = left.and_then(Result::ok);
}

/// Further members must be those of an object.
fn check_extra(extra: Option<&str>, place: impl fmt::Display) -> Result<(), McpJsonError> {
    match extra {
        Some(json) => check_object(json, place),
        None => Ok(()),
    }
}

fn check_object(json: &str, place: impl fmt::Display) -> Result<(), McpJsonError> {
    match check_json(json, &place)?.object {
        true => Ok(()),
        false => Err(problem(place, "not an object")),
    }
}

fn check_json(json: &str, place: impl fmt::Display) -> Result<JsonValidation, McpJsonError> {
    serde_json::from_str(json).map_err(|error| problem(place, &format!("not JSON: {error}")))
}

/// Reads a result back.
///
/// # Errors
///
/// Names the first member that is not what it should be.
pub fn read_tool_result(form: Value) -> Result<ToolResult, McpJsonError> {
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

/// Reads the objects of a list back that is a member of another object.
///
/// # Errors
///
/// Names the first member that is not what it should be.
pub fn read_all<T>(
    form: &Value,
    member: &str,
    read: impl Fn(Value) -> Result<T, McpJsonError>,
) -> Result<Vec<T>, McpJsonError> {
    let Some(Value::Array(items)) = form.get(member) else {
        return Err(problem(format_args!("/{member}"), "not an array"));
    };
    items.iter().cloned().map(read).collect()
}

/// Reads a resource in a listing back.
pub fn read_listed_resource(form: Value) -> Result<ListedResource, McpJsonError> {
    let mut form = object(form, "")?;
    let link = read_link(&mut form, "")?;
    Ok(ListedResource { link, extra: leftover(form) })
}

/// Reads a resource template back.
pub fn read_resource_template(form: Value) -> Result<ResourceTemplate, McpJsonError> {
    let mut form = object(form, "")?;
    Ok(ResourceTemplate {
        uri_template: required(&mut form, "uriTemplate", "")?,
        name: required(&mut form, "name", "")?,
        title: optional(&mut form, "title"),
        description: optional(&mut form, "description"),
        mime_type: optional(&mut form, "mimeType"),
        extra: leftover(form),
    })
}

/// Reads a prompt in a listing back.
pub fn read_prompt_definition(form: Value) -> Result<PromptDefinition, McpJsonError> {
    let mut form = object(form, "")?;
    let arguments = match form.remove("arguments") {
        Some(Value::Array(arguments)) => arguments,
        Some(_) => return Err(problem("/arguments", "not an array")),
        None => Vec::new(),
    };
    let arguments = arguments.into_iter().map(|argument| {
        let mut form = object(argument, "/arguments")?;
        Ok(PromptArgument {
            name: required(&mut form, "name", "/arguments")?,
            title: optional(&mut form, "title"),
            description: optional(&mut form, "description"),
            required: form.remove("required") == Some(Value::Bool(true)),
            extra: leftover(form),
        })
    });
    Ok(PromptDefinition {
        arguments: arguments.collect::<Result<_, _>>()?,
        name: required(&mut form, "name", "")?,
        title: optional(&mut form, "title"),
        description: optional(&mut form, "description"),
        extra: leftover(form),
    })
}

/// Reads a prompt back that was filled in.
pub fn read_prompt(form: Value) -> Result<Prompt, McpJsonError> {
    let mut form = object(form, "")?;
    let Some(Value::Array(messages)) = form.remove("messages") else {
        return Err(problem("/messages", "not an array"));
    };
    let messages = messages.into_iter().map(|message| {
        let mut form = object(message, "/messages")?;
        let content = form.remove("content").unwrap_or_default();
        let content = read_content_block(content, "/messages/content")?;
        let role = match form.get("role").and_then(Value::as_str) {
            Some("assistant") => PromptRole::Assistant,
            _ => PromptRole::User,
        };
        // One that is neither stays among the others.
        if matches!(form.get("role").and_then(Value::as_str), Some("assistant" | "user")) {
            form.remove("role");
        }
        Ok(PromptMessage { role, content, extra: leftover(form) })
    });
    let messages = messages.collect::<Result<_, _>>()?;
    let description = optional(&mut form, "description");
    Ok(Prompt { description, messages, extra: leftover(form) })
}

/// Reads values for an argument back.
pub fn read_suggestions(form: Value) -> Result<Suggestions, McpJsonError> {
    let mut form = object(form, "")?;
    let mut completion = object(form.remove("completion").unwrap_or_default(), "/completion")?;
    let values = completion.remove("values").map(serde_json::from_value);
    let Some(Ok(values)) = values else {
        return Err(problem("/completion/values", "not a list of texts"));
    };
    let total = completion.remove("total").and_then(|total| total.as_u64());
    let has_more = completion.remove("hasMore") == Some(Value::Bool(true));
    if !completion.is_empty() {
        form.insert("completion".into(), completion.into());
    }
    Ok(Suggestions { values, total, has_more, extra: leftover(form) })
}

/// An evaluation: `score`, `verdict` and `findings`, and in `extra` what else the strategy reports.
pub fn evaluation(evaluation: &Evaluation) -> Value {
    let Evaluation { score, verdict, findings, extra: others } = evaluation;
    let findings = findings.iter().map(|finding| {
        let Finding { criterion, verdict, score, reason } = finding;
        let mut form = json!({
            "criterion": criterion,
            "verdict": verdict_word(*verdict),
            "reason": reason,
        });
        if let Some(score) = score {
            form["score"] = json!(score);
        }
        form
    });
    let findings: Vec<Value> = findings.collect();
    let mut form =
        json!({ "score": score, "verdict": verdict_word(*verdict), "findings": findings });
    if others.is_some() {
        form["extra"] = extra(others.as_deref()).into();
    }
    form
}

/// Reads an evaluation back.
pub fn read_evaluation(form: Value) -> Result<Evaluation, McpJsonError> {
    let findings = read_all(&form, "findings", |finding| {
        let score = finding.get("score").and_then(Value::as_f64);
        let verdict = read_verdict(&finding, "/findings")?;
        let mut form = object(finding, "/findings")?;
        let criterion = required(&mut form, "criterion", "/findings")?;
        let reason = required(&mut form, "reason", "/findings")?;
        Ok(Finding { criterion, verdict, score, reason })
    })?;
    let verdict = read_verdict(&form, "")?;
    let score = form.get("score").and_then(Value::as_f64);
    let score = score.ok_or_else(|| problem("/score", "missing, or not a number"))?;
    let extra = form.get("extra").map(Value::to_string);
    Ok(Evaluation { score, verdict, findings, extra })
}

fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn read_verdict(form: &Value, place: &str) -> Result<Verdict, McpJsonError> {
    match form.get("verdict").and_then(Value::as_str) {
        Some("pass") => Ok(Verdict::Pass),
        Some("fail") => Ok(Verdict::Fail),
        Some("inconclusive") => Ok(Verdict::Inconclusive),
        _ => Err(problem(format_args!("{place}/verdict"), "no verdict")),
    }
}

/// A content block.
pub fn content_block(block: &ContentBlock) -> Value {
    tree(&McpJson(block))
}

/// What was read from a resource.
pub fn resource_contents(contents: &ResourceContents) -> Value {
    tree(&McpJson(contents))
}

/// A resource in a listing, as `resources/list` shows it.
pub fn listed_resource(resource: &ListedResource) -> Value {
    tree(&McpJson(resource))
}

/// A resource template, as `resources/templates/list` shows it.
pub fn resource_template(template: &ResourceTemplate) -> Value {
    tree(&McpJson(template))
}

/// A prompt in a listing, as `prompts/list` shows it.
pub fn prompt_definition(prompt: &PromptDefinition) -> Value {
    tree(&McpJson(prompt))
}

/// A prompt that was filled in, as `prompts/get` answers it.
pub fn prompt(prompt: &Prompt) -> Value {
    tree(&McpJson(prompt))
}

/// Values for an argument, as `completion/complete` answers them.
pub fn suggestions(suggestions: &Suggestions) -> Value {
    tree(&McpJson(suggestions))
}

/// The word for who speaks in a prompt.
pub fn role(role: PromptRole) -> &'static str {
    match role {
        PromptRole::User => "user",
        PromptRole::Assistant => "assistant",
    }
}

fn read_content_block(form: Value, place: &str) -> Result<ContentBlock, McpJsonError> {
    let mut form = object(form, place)?;
    let Some(Value::String(kind)) = form.remove("type") else {
        return Err(problem(format_args!("{place}/type"), "missing, or not a string"));
    };
    let body = match kind.as_str() {
        "text" => Content::Text(required(&mut form, "text", place)?),
        "image" => Content::Image(read_media(&mut form, place)?),
        "audio" => Content::Audio(read_media(&mut form, place)?),
        "resource_link" => Content::ResourceLink(read_link(&mut form, place)?),
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

fn read_link(form: &mut Map<String, Value>, place: &str) -> Result<ResourceLink, McpJsonError> {
    Ok(ResourceLink {
        uri: required(form, "uri", place)?,
        name: required(form, "name", place)?,
        title: optional(form, "title"),
        description: optional(form, "description"),
        mime_type: optional(form, "mimeType"),
        size: read_size(form),
    })
}

/// Reads what a resource holds back.
///
/// # Errors
///
/// Names the member that is not what it should be.
pub fn read_contents(form: Value) -> Result<ResourceContents, McpJsonError> {
    read_resource_contents(form, "")
}

fn read_resource_contents(form: Value, place: &str) -> Result<ResourceContents, McpJsonError> {
    let mut form = object(form, place)?;
    let uri = required(&mut form, "uri", place)?;
    let mime_type = optional(&mut form, "mimeType");
    let body = match optional(&mut form, "blob") {
        Some(blob) => ResourceBody::Blob(decode(&blob, &format!("{place}/blob"))?),
        None => ResourceBody::Text(required(&mut form, "text", place)?),
    };
    Ok(ResourceContents { uri, mime_type, body, extra: leftover(form) })
}

fn read_media(form: &mut Map<String, Value>, place: &str) -> Result<Media, McpJsonError> {
    let data: String = required(form, "data", place)?;
    let mime_type = required(form, "mimeType", place)?;
    Ok(Media { data: decode(&data, &format!("{place}/data"))?, mime_type })
}

fn decode(data: &str, place: &str) -> Result<Vec<u8>, McpJsonError> {
    BASE64_STANDARD.decode(data).map_err(|error| problem(place, &format!("not base64: {error}")))
}

fn required(form: &mut Map<String, Value>, key: &str, place: &str) -> Result<String, McpJsonError> {
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

/// One that is no length stays where it is.
fn read_size(form: &mut Map<String, Value>) -> Option<u64> {
    let size = form.get("size")?.as_u64()?;
    form.remove("size");
    Some(size)
}

fn object(form: Value, place: &str) -> Result<Map<String, Value>, McpJsonError> {
    match form {
        Value::Object(form) => Ok(form),
        _ => Err(problem(place, "not an object")),
    }
}

fn problem(place: impl fmt::Display, problem: &str) -> McpJsonError {
    McpJsonError { place: place.to_string(), problem: problem.to_string() }
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
    fn a_member_of_meta_is_added_whatever_is_there() {
        let check = |before: Option<&str>, expected: Value| {
            let mut others = before.map(str::to_string);
            insert_meta_json(&mut others, "tenon/x", "7");
            let after: Value = serde_json::from_str(&others.unwrap()).expect("it is JSON");
            assert_eq!(after, expected, "{before:?}");
        };
        check(None, json!({ "_meta": { "tenon/x": 7 } }));
        check(Some(r#"{"_meta":{}}"#), json!({ "_meta": { "tenon/x": 7 } }));
        check(Some(r#"{"_meta":{ },"b":[]}"#), json!({ "_meta": { "tenon/x": 7 }, "b": [] }));
        check(Some(r#"{"_meta":{"a":1}}"#), json!({ "_meta": { "a": 1, "tenon/x": 7 } }));
        check(Some(r#"{"_meta":{"tenon/x":1}}"#), json!({ "_meta": { "tenon/x": 7 } }));
        check(Some(r#"{"_meta":{"tenon\u002fx":1}}"#), json!({ "_meta": { "tenon/x": 7 } }));
        check(Some(r#"{"_meta":{"a":1},"_meta":{}}"#), json!({ "_meta": { "tenon/x": 7 } }));
        check(
            Some(r#"{"_meta":{"a":1},"\u005fmeta":{"b":2}}"#),
            json!({ "_meta": { "b": 2, "tenon/x": 7 } }),
        );
        check(
            Some(r#"{"b":1,"_meta":{"a":1}}"#),
            json!({ "b": 1, "_meta": { "a": 1, "tenon/x": 7 } }),
        );
        check(Some(r#"{"_meta":7}"#), json!({ "_meta": { "tenon/x": 7 } }));
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
