//! JSON of MCP into the contract's types.
//!
//! Each object is read as members whose values stay text until they are known. A member goes into a
//! type where the type can say exactly that. Every other member goes into its `extra` as it came: one
//! that the type does not name, and one that is null or of another type than it should be. So the host
//! can write what the server said, member for member.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mcp_client::JsonSlice;
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::bindings::exports::tenon::plugin::completions::Suggestions;
use crate::bindings::exports::tenon::plugin::prompts::{
    Prompt, PromptArgument, PromptDefinition, PromptMessage, PromptPage, PromptRole,
};
use crate::bindings::exports::tenon::plugin::resources::{
    ListedResource, ResourcePage, ResourceTemplate, TemplatePage,
};
use crate::bindings::tenon::plugin::types::{
    Content, ContentBlock, Error, ErrorCode, Media, ResourceBody, ResourceContents, ResourceLink,
    ToolAnnotations, ToolDefinition, ToolResult,
};

/// The most members of an object that are read one by one: what is kept of each may be many times as
/// long as the member.
const MAX_MEMBERS: usize = 10_000;

/// The members of an object that were not taken yet. Of one that is there twice, the last counts.
#[derive(Default)]
pub(crate) struct RemainingMembers<'a> {
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// What is left of members that are objects themselves, in their place.
    inner: Vec<(&'static str, String)>,
}

impl<'de> Deserialize<'de> for RemainingMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = RemainingMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(4);
                while let Some((MemberName(name), value)) = map.next_entry()? {
                    if members.len() == MAX_MEMBERS {
                        let problem = format_args!("an object has more than {MAX_MEMBERS} members");
                        return Err(A::Error::custom(problem));
                    }
                    members.push((name, value));
                }
                Ok(RemainingMembers { members, inner: Vec::new() })
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// The name of a member, where it stands if it has no escapes.
#[derive(Deserialize)]
struct MemberName<'a>(#[serde(borrow)] Cow<'a, str>);

type Result<T, E = String> = std::result::Result<T, E>;

impl<'a> RemainingMembers<'a> {
    pub(crate) fn read(json: &'a str) -> Result<Self> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    /// A member's text as it is, which may be null. It is not taken.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.get())
    }

    /// A member's text, if it is there and not null. One that is null is left.
    pub(crate) fn raw(&mut self, key: &str) -> Option<&'a str> {
        let text = self.get(key).filter(|text| *text != "null")?;
        self.members.retain(|(name, _)| name != key);
        Some(text)
    }

    /// A member that says something about another. One of the wrong type is left.
    pub(crate) fn hint<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        self.hint_if(key, |_| true)
    }

    /// The same for a value that the type can say. Every other one is left.
    fn hint_if<T: DeserializeOwned>(
        &mut self,
        key: &str,
        can_be_said: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        let text = self.get(key).filter(|text| *text != "null")?;
        let value = serde_json::from_str(text).ok().filter(can_be_said)?;
        self.raw(key);
        Some(value)
    }

    /// A member that is another object: `read` takes what it knows of it, and the rest of it is left.
    pub(crate) fn within<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut RemainingMembers<'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(mut inner) = self.get(key).and_then(|json| RemainingMembers::read(json).ok())
        else {
            return Ok(None);
        };
        let is_empty = inner.members.is_empty();
        let value = read(&mut inner)?;
        match inner.rest() {
            Some(rest) => self.inner.push((key, rest)),
            // One that was empty is there all the same.
            None if is_empty => {}
            None => drop(self.raw(key)),
        }
        Ok(Some(value))
    }

    /// A text of any length.
    pub(crate) fn text(&mut self, key: &str) -> Result<Cow<'a, str>> {
        let json = self.raw(key).ok_or_else(|| format!("\"{key}\" is missing"))?;
        match mcp_client::text(json) {
            Some(text) => Ok(text),
            // A parser says what is wrong with it.
            None => serde_json::from_str::<String>(json)
                .map(Cow::Owned)
                .map_err(|error| format!("\"{key}\": {error}")),
        }
    }

    pub(crate) fn required<T: DeserializeOwned>(&mut self, key: &str) -> Result<T> {
        let text = self.raw(key).ok_or_else(|| format!("\"{key}\" is missing"))?;
        serde_json::from_str(text).map_err(|error| format!("\"{key}\": {error}"))
    }

    pub(crate) fn items(&mut self, key: &str) -> Result<Vec<&'a str>> {
        let Some(text) = self.raw(key) else { return Ok(Vec::new()) };
        let items = mcp_client::items(text).map_err(|error| format!("\"{key}\": {error}"))?;
        Ok(items.into_iter().map(RawValue::get).collect())
    }

    /// What is left, as an object in the order of its members.
    pub(crate) fn rest(self) -> Option<String> {
        let positions = self.members.iter().enumerate();
        let last: BTreeMap<&str, usize> =
            positions.map(|(position, (name, _))| (&**name, position)).collect();
        let mut rest = String::new();
        for (position, (name, json)) in self.members.iter().enumerate() {
            if last.get(&**name) != Some(&position) {
                continue;
            }
            rest.push(if rest.is_empty() { '{' } else { ',' });
            rest.push_str(&quoted(name));
            rest.push(':');
            let inner = self.inner.iter().find(|(key, _)| key == name);
            match inner.map_or(json.get(), |(_, json)| json) {
                json if is_readable(json) => rest.push_str(json),
                // As a text it costs nothing but itself.
                json => rest.push_str(&quoted(json)),
            }
        }
        (!rest.is_empty()).then(|| rest + "}")
    }
}

/// How deep a member may be that goes along as JSON: readers give up at 128, of which some are
/// around it.
const MAX_DEPTH: usize = 100;

/// The most digits in a row of a number that any reader takes.
const MAX_DIGITS: u32 = 300;

/// Whether every reader of JSON takes a value. Some do not take what is nested deeply, half a
/// character, or a number beyond all bounds.
fn is_readable(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let (mut digits, mut is_doubtful) = (0, false);
    for (at, byte) in json.bytes().enumerate() {
        match byte {
            _ if std::mem::take(&mut escaped) => {
                let next = json.as_bytes().get(at + 1);
                is_doubtful |= byte == b'u' && matches!(next, Some(b'd' | b'D'));
            }
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'e' | b'E' => is_doubtful |= digits > 0,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return false;
        }
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        is_doubtful |= digits > MAX_DIGITS;
    }
    !is_doubtful || serde_json::from_str::<serde_json::Value>(json).is_ok()
}

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text can be JSON")
}

/// The server's answer is not what it should be.
fn broken(problem: String) -> Error {
    Error::failed(format!("the server's answer is invalid: {problem}"))
}

/// An error of the client as one of the contract. The host looks for secrets in its words, among which
/// the data is JSON.
pub(crate) fn error(error: mcp_client::Error) -> Error {
    use mcp_client::{Error as E, without_needless_escapes as plain};
    match error {
        E::Rpc { code, message, data } => {
            let data = data.as_deref().map(plain);
            let with_data = |message: String| match &data {
                Some(data) => format!("{message}: {data}"),
                None => message,
            };
            match code {
                -32602 => Error::invalid_input(with_data(message)),
                -32601 | -32002 => Error::not_found(with_data(message)),
                // The data names what is to be done: the pages to open, the capability that is missing.
                -32042 => Error::failed(with_data(format!(
                    "the user has to do something first: {message}"
                ))),
                -32021 => Error::failed(with_data(format!(
                    "the server needs what this host does not have: {message}"
                ))),
                _ => Error::failed(match &data {
                    Some(data) => format!("{message} (code {code}, {data})"),
                    None => format!("{message} (code {code})"),
                }),
            }
        }
        E::Timeout => unknown(Error::timeout("the server did not answer in time")),
        E::Cancelled => Error::cancelled("the call was cancelled"),
        E::Lost(message) => unknown(Error::unavailable(message)),
        E::Unavailable { message, retry_after } => {
            Error { retry_after, ..Error::unavailable(message) }
        }
        E::Protocol(message) | E::Needs(message) => Error::failed(message),
        E::Undeclared(message) => Error::not_found(message),
    }
}

/// The same, of which nobody knows whether the server has done what it was asked for.
fn unknown(error: Error) -> Error {
    Error { data: Some(r#"{"outcome":"unknown"}"#.into()), ..error }
}

/// The same for a request that names a resource and says nothing else: if that is wrong, there is no
/// such resource. The newer era has the code of bad parameters for it.
pub(crate) fn of_resource(error: Error) -> Error {
    match error.code {
        ErrorCode::InvalidInput => Error { code: ErrorCode::NotFound, ..error },
        _ => error,
    }
}

/// How a tool is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Execution {
    Call,
    /// Its calls are begun as tasks, and their results asked for.
    Task,
}

/// A tool. The error says which tool it was, where it has a name.
pub(crate) fn tool(json: &str) -> Result<(ToolDefinition, Execution)> {
    let mut members = RemainingMembers::read(json)?;
    let name: String = members.required("name")?;
    let problem = |problem: String| format!("\"{name}\": {problem}");
    let schema =
        members.raw("inputSchema").ok_or_else(|| problem("it has no input schema".into()))?;
    if !schema.trim_start().starts_with('{') {
        return Err(problem("its input schema is not an object".into()));
    }
    let execution = members.get("execution").and_then(|json| RemainingMembers::read(json).ok());
    let support: Option<String> = execution.and_then(|mut members| members.hint("taskSupport"));
    let execution = match support.as_deref() {
        Some("required") => Execution::Task,
        _ => Execution::Call,
    };
    let hints = members.within("annotations", |annotations| {
        Ok(ToolAnnotations {
            read_only: annotations.hint("readOnlyHint"),
            destructive: annotations.hint("destructiveHint"),
            idempotent: annotations.hint("idempotentHint"),
            open_world: annotations.hint("openWorldHint"),
        })
    });
    let no_hints =
        ToolAnnotations { read_only: None, destructive: None, idempotent: None, open_world: None };
    let tool = ToolDefinition {
        title: members.hint("title"),
        // The type cannot tell one that is empty from none.
        description: members
            .hint_if("description", |text: &String| !text.is_empty())
            .unwrap_or_default(),
        input_schema: schema.to_string(),
        output_schema: members.raw("outputSchema").map(Into::into),
        annotations: hints?.unwrap_or(no_hints),
        capabilities: Vec::new(),
        extra: members.rest(),
        name,
    };
    Ok((tool, execution))
}

/// The answer of a tool. A block that is broken becomes an opaque one. Structured content, which may
/// be long, stays in the memory that it came in.
pub(crate) fn tool_result(payload: JsonSlice) -> Result<ToolResult, Error> {
    let mut members = RemainingMembers::read(payload.get()).map_err(broken)?;
    let content = members.items("content").map_err(broken)?;
    let content = content.into_iter().map(content_block).collect();
    let structured = members.raw("structuredContent").map(|json| payload.place_of(json));
    let is_error = members.hint("isError").unwrap_or(false);
    let extra = members.rest();
    let structured = structured.map(|place| payload.part(place).into_text());
    Ok(ToolResult { content, structured, is_error, extra })
}

pub(crate) fn content_block(json: &str) -> ContentBlock {
    read_block(json).unwrap_or_else(|_| {
        // One that cannot be read, being too deep, would cost the whole answer.
        let is_block =
            json.starts_with('{') && serde_json::from_str::<serde_json::Value>(json).is_ok();
        let body = match is_block {
            true => Content::Other(json.to_string()),
            false => Content::Text(as_text(json)),
        };
        ContentBlock { body, extra: None }
    })
}

/// What says something in a form that nobody knows: a bare string as it is, and all else as JSON. It
/// is better than nothing.
fn as_text(json: &str) -> String {
    mcp_client::text(json).map_or_else(|| json.into(), Cow::into_owned)
}

fn read_block(json: &str) -> Result<ContentBlock> {
    let mut members = RemainingMembers::read(json)?;
    let kind = members.text("type")?;
    let body = match &*kind {
        "text" => Content::Text(members.text("text")?.into_owned()),
        "image" => Content::Image(media(&mut members)?),
        "audio" => Content::Audio(media(&mut members)?),
        "resource_link" => Content::ResourceLink(link(&mut members)?),
        "resource" => {
            let contents = members.raw("resource").ok_or("\"resource\" is missing")?;
            Content::Resource(contents_part(contents)?)
        }
        other => return Err(format!("blocks of type \"{other}\" are not known")),
    };
    Ok(ContentBlock { body, extra: members.rest() })
}

fn media(members: &mut RemainingMembers<'_>) -> Result<Media> {
    Ok(Media { data: bytes(members, "data")?, mime_type: members.required("mimeType")? })
}

fn bytes(members: &mut RemainingMembers<'_>, key: &str) -> Result<Vec<u8>> {
    let text = members.text(key)?;
    BASE64_STANDARD.decode(text.as_bytes()).map_err(|error| format!("\"{key}\": {error}"))
}

fn link(members: &mut RemainingMembers<'_>) -> Result<ResourceLink> {
    Ok(ResourceLink {
        uri: members.required("uri")?,
        name: members.required("name")?,
        title: members.hint("title"),
        description: members.hint("description"),
        mime_type: members.hint("mimeType"),
        size: members.hint("size"),
    })
}

fn contents_part(json: &str) -> Result<ResourceContents> {
    let mut members = RemainingMembers::read(json)?;
    let uri = members.required("uri")?;
    let mime_type = members.hint("mimeType");
    let body = match members.get("blob").is_some_and(|json| json != "null") {
        true => ResourceBody::Blob(bytes(&mut members, "blob")?),
        false => ResourceBody::Text(members.text("text")?.into_owned()),
    };
    Ok(ResourceContents { uri, mime_type, body, extra: members.rest() })
}

/// What was read from a resource. A part that is none of the known ones is text.
pub(crate) fn resource_contents(json: &str, uri: &str) -> Result<Vec<ResourceContents>, Error> {
    let mut members = RemainingMembers::read(json).map_err(broken)?;
    let parts = members.items("contents").map_err(broken)?;
    let part = |json| {
        contents_part(json).unwrap_or_else(|_| ResourceContents {
            uri: uri.to_string(),
            mime_type: None,
            body: ResourceBody::Text(as_text(json)),
            extra: None,
        })
    };
    Ok(parts.into_iter().map(part).collect())
}

/// The items of a page that are what they should be, and the cursor of the next. Of each other one
/// `left_out` is told what is wrong.
fn page<T>(
    json: &str,
    key: &str,
    read: impl Fn(RemainingMembers<'_>) -> Result<T>,
    mut left_out: impl FnMut(&str),
) -> Result<(Vec<T>, Option<String>), Error> {
    let mut members = RemainingMembers::read(json).map_err(broken)?;
    let items = members.items(key).map_err(broken)?;
    let item = |item| RemainingMembers::read(item).and_then(&read);
    let items = items.into_iter().filter_map(|json| match item(json) {
        Ok(item) => Some(item),
        Err(problem) => {
            left_out(&format!("one of \"{key}\" is left out: {problem}"));
            None
        }
    });
    Ok((items.collect(), members.hint("nextCursor")))
}

pub(crate) fn resource_page(json: &str, left_out: impl FnMut(&str)) -> Result<ResourcePage, Error> {
    let read = |mut members: RemainingMembers<'_>| {
        Ok(ListedResource { link: link(&mut members)?, extra: members.rest() })
    };
    let (resources, next) = page(json, "resources", read, left_out)?;
    Ok(ResourcePage { resources, next })
}

pub(crate) fn template_page(json: &str, left_out: impl FnMut(&str)) -> Result<TemplatePage, Error> {
    let read = |mut members: RemainingMembers<'_>| {
        Ok(ResourceTemplate {
            uri_template: members.required("uriTemplate")?,
            name: members.required("name")?,
            title: members.hint("title"),
            description: members.hint("description"),
            mime_type: members.hint("mimeType"),
            extra: members.rest(),
        })
    };
    let (templates, next) = page(json, "resourceTemplates", read, left_out)?;
    Ok(TemplatePage { templates, next })
}

/// Whether a page of a list has anything, or another one follows. What cannot be read may have.
pub(crate) fn has_items(json: &str, member: &str) -> bool {
    let Ok(page) = RemainingMembers::read(json) else { return true };
    let of = |key| page.get(key).filter(|text| *text != "null");
    let is_empty =
        of(member).is_none_or(|items| mcp_client::items(items).is_ok_and(|items| items.is_empty()));
    !is_empty || of("nextCursor").is_some()
}

pub(crate) fn prompt_page(json: &str, left_out: impl FnMut(&str)) -> Result<PromptPage, Error> {
    let read = |mut members: RemainingMembers<'_>| {
        // Nor one list without arguments from none.
        let arguments = match members.get("arguments").map(mcp_client::items) {
            Some(Ok(items)) if items.is_empty() => Vec::new(),
            _ => members.items("arguments")?,
        };
        Ok(PromptDefinition {
            name: members.required("name")?,
            title: members.hint("title"),
            description: members.hint("description"),
            arguments: arguments.into_iter().map(argument).collect::<Result<_>>()?,
            extra: members.rest(),
        })
    };
    let (prompts, next) = page(json, "prompts", read, left_out)?;
    Ok(PromptPage { prompts, next })
}

fn argument(json: &str) -> Result<PromptArgument> {
    let mut members = RemainingMembers::read(json)?;
    Ok(PromptArgument {
        name: members.required("name")?,
        title: members.hint("title"),
        description: members.hint("description"),
        required: members.hint_if("required", |required| *required).unwrap_or(false),
        extra: members.rest(),
    })
}

/// Values for an argument. Who suggests nothing at all has none.
pub(crate) fn suggestions(json: &str) -> Result<Suggestions, Error> {
    let mut members = RemainingMembers::read(json).map_err(broken)?;
    let suggested = members.within("completion", |completion| {
        let mut values: Vec<String> = completion.hint("values").unwrap_or_default();
        let more = completion.hint_if("hasMore", |more| *more).unwrap_or(false);
        let more = more || values.len() > MAX_SUGGESTIONS;
        values.truncate(MAX_SUGGESTIONS);
        Ok((values, completion.hint("total"), more))
    });
    let (values, total, more) = suggested.map_err(broken)?.unwrap_or_default();
    Ok(Suggestions { values, total, has_more: more, extra: members.rest() })
}

/// The most values that are suggested for an argument.
const MAX_SUGGESTIONS: usize = 100;

/// A prompt, filled in.
pub(crate) fn prompt(json: &str) -> Result<Prompt, Error> {
    let mut members = RemainingMembers::read(json).map_err(broken)?;
    let messages = members.items("messages").map_err(broken)?;
    Ok(Prompt {
        description: members.hint("description"),
        messages: messages.into_iter().map(prompt_message).collect(),
        extra: members.rest(),
    })
}

/// A message of a prompt. What is none is the user's, and what it says.
fn prompt_message(json: &str) -> PromptMessage {
    let mut members = RemainingMembers::read(json).unwrap_or_default();
    let role = members.hint_if("role", |role: &String| matches!(&**role, "user" | "assistant"));
    let role = match role.as_deref() {
        Some("assistant") => PromptRole::Assistant,
        Some(_) | None => PromptRole::User,
    };
    match members.raw("content") {
        Some(content) => {
            PromptMessage { role, content: content_block(content), extra: members.rest() }
        }
        None => PromptMessage { role, content: content_block(json), extra: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_deep_for_readers_goes_along_as_text() {
        let (deep, flat) = (["[".repeat(101), "]".repeat(101)].concat(), r#"["[[\"[["]"#);
        let json = format!(r#"{{"type":"text","text":"t","_meta":{deep},"annotations":{flat}}}"#);
        let block = content_block(&json);
        assert!(matches!(&block.body, Content::Text(text) if text == "t"));
        let extra: serde_json::Value =
            serde_json::from_str(block.extra.as_deref().unwrap()).unwrap();
        assert_eq!(extra, serde_json::json!({ "_meta": deep, "annotations": ["[[\"[["] }));
    }

    #[test]
    fn an_object_of_too_many_members_costs_its_answer_alone() {
        let members: Vec<_> = (0..=MAX_MEMBERS).map(|i| format!("\"{i}\":1")).collect();
        let json = format!("{{{}}}", members.join(","));
        assert!(
            RemainingMembers::read(&json)
                .err()
                .unwrap()
                .starts_with("an object has more than 10000")
        );
    }

    #[test]
    fn what_is_null_in_a_part_of_a_resource_is_not_there() {
        let parts =
            r#"{"contents":[{"uri":"a","text":"one"},{"uri":"b","blob":null,"text":"two"}]}"#;
        let parts = resource_contents(parts, "a").unwrap();
        assert!(matches!(&parts[1].body, ResourceBody::Text(text) if text == "two"));
    }

    // MCP.md: F1
    #[test]
    fn a_broken_part_of_a_resource_or_prompt_is_text_and_costs_no_other() {
        let broken = [r#""bare""#, r#"{"uri":"b"}"#, r#"{"uri":"c","blob":"?"}"#, "3"];
        let good = [r#"{"uri":"a","text":"good"}"#, r#"{"role":"assistant","content":"good"}"#];
        let expected = ["bare", r#"{"uri":"b"}"#, r#"{"uri":"c","blob":"?"}"#, "3", "good"];
        let json = |key: &str, good| format!(r#"{{"{key}":[{},{good}]}}"#, broken.join(","));
        let parts = resource_contents(&json("contents", good[0]), "asked").unwrap();
        let shown = parts.iter().map(|part| match &part.body {
            ResourceBody::Text(text) => (&*part.uri, &**text),
            ResourceBody::Blob(_) => panic!("{part:?}"),
        });
        let uris = ["asked", "asked", "asked", "asked", "a"];
        assert_eq!(shown.collect::<Vec<_>>(), uris.into_iter().zip(expected).collect::<Vec<_>>());
        let prompt = prompt(&json("messages", good[1])).unwrap();
        let shown = prompt.messages.iter().map(|message| match &message.content.body {
            Content::Text(text) | Content::Other(text) => &**text,
            body => panic!("{body:?}"),
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_cannot_be_listed_is_told_and_costs_no_other() {
        let json = r#"{"prompts":[{"title":"?"},{"name":"p"},7],"nextCursor":"x"}"#;
        let mut told = Vec::new();
        let page = prompt_page(json, |problem| told.push(problem.to_string())).unwrap();
        assert_eq!((&*page.prompts[0].name, page.next.as_deref()), ("p", Some("x")));
        assert_eq!(told[0], "one of \"prompts\" is left out: \"name\" is missing");
        assert_eq!(told.len(), 2);
    }

    #[test]
    fn a_tool_keeps_what_it_does_not_name() {
        let tool = tool(
            r#"{"name":"t","inputSchema":{"type":"object"},"icons":[1],"_meta":{"a":2},
                "annotations":{"title":"T","readOnlyHint":true,"destructiveHint":"?"}}"#,
        )
        .unwrap();
        let (tool, execution) = tool;
        assert_eq!(execution, Execution::Call);
        assert_eq!(
            tool.extra.as_deref(),
            Some(
                r#"{"icons":[1],"_meta":{"a":2},"annotations":{"title":"T","destructiveHint":"?"}}"#
            )
        );
        assert_eq!(tool.title, None);
        assert_eq!((tool.annotations.read_only, tool.annotations.destructive), (Some(true), None));
    }

    #[test]
    fn what_a_type_cannot_say_is_left_for_extra() {
        let check = |json: &str, expected: Option<&str>| {
            let members = &json[1..];
            let all = format!(r#"{{"name":"t","inputSchema":{{}}{}{members}"#, comma(members));
            assert_eq!(tool(&all).unwrap().0.extra.as_deref(), expected, "{json}");
        };
        fn comma(members: &str) -> &str {
            if members == "}" { "" } else { "," }
        }
        check("{}", None);
        check(r#"{"title":"T","description":"d","outputSchema":{}}"#, None);
        check(r#"{"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#, None);
        for same in [
            r#"{"annotations":{}}"#,
            r#"{"annotations":null}"#,
            r#"{"annotations":"?"}"#,
            r#"{"annotations":{"title":null}}"#,
            r#"{"annotations":{"idempotentHint":1}}"#,
            r#"{"title":null,"description":null,"outputSchema":null}"#,
            r#"{"title":7,"description":""}"#,
            r#"{"_meta":{"a":1.0,"b":1e3,"c":123456789012345678901234567890,"d":-0}}"#,
            r#"{"z":{},"a":[],"\n":null}"#,
            r#"{"x":"\ud83d\ude00"}"#,
        ] {
            check(same, Some(same));
        }
        check(r#"{"a":1,"b":2,"a":3}"#, Some(r#"{"b":2,"a":3}"#));
        // What some readers do not take goes along as text.
        check(r#"{"x":"\ud83d"}"#, Some(r#"{"x":"\"\\ud83d\""}"#));
        check(r#"{"x":[1E+400]}"#, Some(r#"{"x":"[1E+400]"}"#));
        let long = format!(r#"{{"x":{}}}"#, "1".repeat(400));
        check(&long, Some(&long.replace(":1", ":\"1").replace('}', "\"}")));
    }

    // MCP.md: E12
    #[test]
    fn a_tool_without_a_name_or_a_schema_is_none() {
        for json in [
            r#"{"name":"t"}"#,
            r#"{"name":"t","inputSchema":null}"#,
            r#"{"name":"t","inputSchema":7}"#,
            r#"{"inputSchema":{}}"#,
            "3",
        ] {
            assert!(tool(json).is_err(), "{json}");
        }
    }

    // MCP.md: E11
    #[test]
    fn a_tool_may_have_to_be_called_as_a_task() {
        let json = r#"{"name":"t","inputSchema":{},"execution":{"taskSupport":"required"}}"#;
        assert_eq!(tool(json).unwrap().1, Execution::Task);
    }

    // MCP.md: B7, E9
    #[test]
    fn results_keep_their_blocks_in_order_and_unknown_ones_as_they_came() {
        let result = tool_result(JsonSlice::from(
            r#"{"content":[{"type":"text","text":"a\nb","annotations":{"priority":1}},
                {"type":"image","data":"AQI=","mimeType":"image/png"},{"type":"new","x":1},
                {"type":"image","data":"%","mimeType":"x"},"bare",3],"structuredContent":{"n": 1},"isError":true,"_meta":{}}"#,
        ))
        .unwrap();
        assert_eq!(result.content[0].body, Content::Text("a\nb".into()));
        assert_eq!(result.content[0].extra.as_deref(), Some(r#"{"annotations":{"priority":1}}"#));
        assert!(matches!(&result.content[1].body, Content::Image(media) if media.data == [1, 2]));
        assert_eq!(result.content[2].body, Content::Other(r#"{"type":"new","x":1}"#.into()));
        assert!(matches!(&result.content[3].body, Content::Other(_)));
        assert_eq!(result.content[4].body, Content::Text("bare".into()));
        assert_eq!(result.content[5].body, Content::Text("3".into()));
        assert_eq!(result.structured.as_deref(), Some(r#"{"n": 1}"#));
        assert!(result.is_error);
        assert_eq!(result.extra.as_deref(), Some(r#"{"_meta":{}}"#));
    }

    // MCP.md: F1
    #[test]
    fn errors_keep_their_meaning() {
        let rpc = |code| mcp_client::Error::Rpc { code, message: "m".into(), data: None };
        assert_eq!(error(rpc(-32602)), Error::invalid_input("m"));
        assert_eq!(error(rpc(-32002)), Error::not_found("m"));
        assert_eq!(of_resource(error(rpc(-32602))), Error::not_found("m"));
        assert_eq!(of_resource(error(rpc(5))), Error::failed("m (code 5)"));
        assert_eq!(error(rpc(5)), Error::failed("m (code 5)"));
    }

    #[test]
    fn the_data_of_an_error_is_told_whatever_its_code() {
        let check = |code, expected: Error| {
            let data = Some(r#"{"uri":"a:b"}"#.to_string());
            let rpc = mcp_client::Error::Rpc { code, message: "m".into(), data };
            assert_eq!(error(rpc), expected, "{code}");
        };
        let with_data = r#"m: {"uri":"a:b"}"#;
        check(-32602, Error::invalid_input(with_data));
        check(-32601, Error::not_found(with_data));
        check(-32002, Error::not_found(with_data));
        let first = format!("the user has to do something first: {with_data}");
        check(-32042, Error::failed(first));
        let needs = format!("the server needs what this host does not have: {with_data}");
        check(-32021, Error::failed(needs));
        check(5, Error::failed(r#"m (code 5, {"uri":"a:b"})"#));
    }

    // MCP.md: C15, G5
    #[test]
    fn an_error_says_what_is_lacking_or_to_be_done_first() {
        let check = |code, data: Option<&str>, expected: &str| {
            let data = data.map(Into::into);
            let rpc = mcp_client::Error::Rpc { code, message: "m".into(), data };
            assert_eq!(error(rpc), Error::failed(expected));
        };
        let lacks = "the server needs what this host does not have: m";
        check(-32021, None, lacks);
        let data = r#"{"requiredCapabilities":{"sampling":{}}}"#;
        check(-32021, Some(data), &format!("{lacks}: {data}"));
        let first = "the user has to do something first: m";
        check(-32042, None, first);
        let pages =
            r#"{"elicitations":[{"url":"https:\/\/a.test\/1"},{"url":"https://a.test/2"}]}"#;
        let plain = pages.replace("\\/", "/");
        check(-32042, Some(pages), &format!("{first}: {plain}"));
    }

    // MCP.md: F4
    #[test]
    fn suggestions_are_as_many_as_a_reader_can_use() {
        let check = |json: &str, many: usize, more: bool| {
            let Suggestions { values, has_more, .. } = suggestions(json).unwrap();
            assert_eq!((values.len(), has_more), (many, more), "{json:.80}");
        };
        let values = |many: usize| {
            let values = (0..many).map(|i| format!("\"{i}\"")).collect::<Vec<_>>().join(",");
            format!(r#"{{"completion":{{"values":[{values}]}}}}"#)
        };
        check(&values(100), 100, false);
        check(&values(150), 100, true);
        check(r#"{"completion":{"values":["a"],"hasMore":true}}"#, 1, true);
        for nothing in ["{}", r#"{"completion":null}"#, r#"{"completion":{}}"#] {
            check(nothing, 0, false);
        }
        check(r#"{"completion":{"values":"x"}}"#, 0, false);
        check(r#"{"completion":{"values":null,"hasMore":"?"}}"#, 0, false);
        assert!(suggestions("[]").is_err());
    }
}
