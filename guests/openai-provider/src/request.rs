//! A request of the contract as the JSON of chat completions.
//!
//! JSON that comes with the request (schemas, arguments, settings of the provider) goes through
//! unread: the order of a schema's members is the order in which a model writes them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tenon_sdk::Error;
use tenon_sdk::provider::{
    CompletionRequest, Content, ContentBlock, Media, Message, Part, ResourceBody, Role,
    ToolCallResult, ToolChoice,
};

use crate::settings::{MaxTokensField, Settings};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ChatToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(flatten)]
    extra: BTreeMap<&'a str, &'a RawValue>,
}

/// A message.
#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    content: Option<MessageContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

/// The content of a message: text alone where it can be, since many servers take nothing else.
#[derive(Serialize)]
#[serde(untagged)]
enum MessageContent<'a> {
    Text(String),
    Pieces(Vec<Piece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text {
        text: String,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
    InputAudio {
        input_audio: InputAudio,
    },
    #[serde(untagged)]
    Other(&'a RawValue),
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct InputAudio {
    data: String,
    format: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct ChatToolCall<'a> {
    id: &'a str,
    function: CallFunction<'a>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Tool<'a> {
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: &'a RawValue,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChatToolChoice<'a> {
    Word(&'static str),
    Named(NamedChoice<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct NamedChoice<'a> {
    function: Name<'a>,
}

#[derive(Serialize)]
struct Name<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "json_schema")]
struct Format<'a> {
    json_schema: ResponseSchema<'a>,
}

#[derive(Serialize)]
struct ResponseSchema<'a> {
    name: &'static str,
    schema: &'a RawValue,
    strict: bool,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Writes a request down.
///
/// # Errors
///
/// [`ErrorCode::NotFound`] for a model that the operator has not named, [`ErrorCode::InvalidInput`] for
/// what chat completions cannot say, and [`ErrorCode::Failed`] where the configuration is wrong.
pub fn write(
    request: &CompletionRequest,
    settings: &Settings,
    stream: bool,
) -> Result<Vec<u8>, Error> {
    settings.require(&request.model)?;
    if request.messages.is_empty() {
        return Err(invalid("the request has no messages"));
    }
    let sampling = &request.sampling;
    for (name, value) in [("temperature", sampling.temperature), ("top-p", sampling.top_p)] {
        if value.is_some_and(|value| !value.is_finite()) {
            return Err(invalid(format!("{name} is no number")));
        }
    }
    let (max_tokens, max_completion_tokens) = match settings.max_tokens_field() {
        MaxTokensField::MaxTokens => (sampling.max_tokens, None),
        MaxTokensField::MaxCompletionTokens => (None, sampling.max_tokens),
    };
    let tools = request
        .tools
        .iter()
        .map(|tool| {
            let parameters = object(&tool.input_schema).map_err(|what| {
                invalid(format!("the schema of the tool \"{}\" {what}", tool.name))
            })?;
            let function =
                ToolFunction { name: &tool.name, description: &tool.description, parameters };
            Ok(Tool { function })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let response_format = match &request.response_schema {
        None => None,
        Some(schema) => {
            let raw =
                object(schema).map_err(|what| invalid(format!("the response schema {what}")))?;
            let strict = serde_json::from_str(schema).is_ok_and(|schema| can_be_strict(&schema));
            Some(Format { json_schema: ResponseSchema { name: "answer", schema: raw, strict } })
        }
    };
    let body = Body {
        model: &request.model,
        messages: messages(&request.messages)?,
        tools,
        tool_choice: choice(request)?,
        max_tokens,
        max_completion_tokens,
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        stop: &sampling.stop_sequences,
        seed: sampling.seed,
        response_format,
        stream: stream.then_some(true),
        stream_options: stream.then_some(StreamOptions { include_usage: true }),
        extra: extra(request)?,
    };
    serde_json::to_vec(&body).map_err(|error| Error::failed(format!("the request: {error}")))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::invalid_input(message)
}

/// A JSON object that is passed on unread.
fn object(json: &str) -> Result<&RawValue, String> {
    let raw: &RawValue =
        serde_json::from_str(json).map_err(|error| format!("is no valid JSON: {error}"))?;
    if raw.get().starts_with('{') { Ok(raw) } else { Err("is no JSON object".into()) }
}

fn choice(request: &CompletionRequest) -> Result<Option<ChatToolChoice<'_>>, Error> {
    let any = !request.tools.is_empty();
    Ok(match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => any.then_some(ChatToolChoice::Word("none")),
        ToolChoice::Required if any => Some(ChatToolChoice::Word("required")),
        ToolChoice::Required => {
            return Err(invalid("a tool is required, and the request has none"));
        }
        ToolChoice::Named(name) if request.tools.iter().any(|tool| tool.name == *name) => {
            Some(ChatToolChoice::Named(NamedChoice { function: Name { name } }))
        }
        ToolChoice::Named(name) => {
            return Err(invalid(format!(
                "the tool \"{name}\" is required, and the request has none of that name"
            )));
        }
    })
}

/// The settings of the endpoint. What the request says itself is not theirs to say.
fn extra(request: &CompletionRequest) -> Result<BTreeMap<&str, &RawValue>, Error> {
    let Some(json) = &request.extra else { return Ok(BTreeMap::new()) };
    let members: BTreeMap<&str, &RawValue> = serde_json::from_str(json)
        .map_err(|error| invalid(format!("extra is no JSON object: {error}")))?;
    let sampling = &request.sampling;
    let said = [
        ("model", true),
        ("messages", true),
        // The answer has one choice, and comes as it was asked for.
        ("n", true),
        ("stream", true),
        ("stream_options", true),
        ("tools", !request.tools.is_empty()),
        ("tool_choice", request.tool_choice != ToolChoice::Auto),
        ("max_tokens", sampling.max_tokens.is_some()),
        ("max_completion_tokens", sampling.max_tokens.is_some()),
        ("temperature", sampling.temperature.is_some()),
        ("top_p", sampling.top_p.is_some()),
        ("stop", !sampling.stop_sequences.is_empty()),
        ("seed", sampling.seed.is_some()),
        ("response_format", request.response_schema.is_some()),
    ];
    for (name, said) in said {
        if said && members.contains_key(name) {
            return Err(invalid(format!("extra has \"{name}\", which the request says itself")));
        }
    }
    Ok(members)
}

/// Whether OpenAI takes a schema as strict: all objects list all of their members as required and
/// allow no others. A schema that is not strict is taken as well, and followed a little less well.
fn can_be_strict(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().all(can_be_strict),
        Value::Object(members) => {
            let properties = members.get("properties").and_then(Value::as_object);
            let is_object = properties.is_some()
                || members.get("type").is_some_and(|kind| match kind {
                    Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
                    kind => kind == "object",
                });
            let required: Vec<&str> = match members.get("required") {
                Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            };
            let closed = members.get("additionalProperties") == Some(&Value::Bool(false))
                && properties.is_none_or(|properties| {
                    properties.keys().all(|name| required.contains(&name.as_str()))
                });
            (!is_object || closed) && members.values().all(can_be_strict)
        }
        _ => true,
    }
}

/// The messages. The answer of a tool is a message of its own, and holds text only; media that
/// tools gave follow as the user's, after the last answer in a row.
fn messages(messages: &[Message]) -> Result<Vec<ChatMessage<'_>>, Error> {
    let mut said = Vec::new();
    let mut media = Vec::new();
    for (i, message) in messages.iter().enumerate() {
        let wrong = |what: String| invalid(format!("message {}: {what}", i + 1));
        if message.role != Role::Tool {
            said.extend(follow_up(&mut media));
        }
        match message.role {
            Role::System => {
                said.push(plain("system", pieces(&message.parts).map_err(wrong)?, "\n"))
            }
            Role::User => said.push(plain("user", pieces(&message.parts).map_err(wrong)?, "\n")),
            Role::Assistant => said.push(assistant(&message.parts).map_err(wrong)?),
            Role::Tool => {
                for part in &message.parts {
                    let Part::ToolCallResult(answer) = part else {
                        let what = format!("a tool says answers only, not {}", kind(part));
                        return Err(wrong(what));
                    };
                    said.push(tool(answer, &mut media));
                }
            }
        }
    }
    said.extend(follow_up(&mut media));
    Ok(said)
}

fn follow_up<'a>(media: &mut Vec<Piece<'a>>) -> Option<ChatMessage<'a>> {
    (!media.is_empty()).then(|| plain("user", std::mem::take(media), "\n"))
}

/// A message of pieces; texts alone are joined.
fn plain<'a>(role: &'static str, pieces: Vec<Piece<'a>>, between: &str) -> ChatMessage<'a> {
    let texts: Option<Vec<&str>> = pieces
        .iter()
        .map(|piece| if let Piece::Text { text } = piece { Some(text.as_str()) } else { None })
        .collect();
    let content = match texts {
        Some(texts) => MessageContent::Text(texts.join(between)),
        None => MessageContent::Pieces(pieces),
    };
    ChatMessage { role, content: Some(content), tool_calls: Vec::new(), tool_call_id: None }
}

fn pieces(parts: &[Part]) -> Result<Vec<Piece<'_>>, String> {
    parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => Ok(Piece::Text { text: text.clone() }),
            Part::Image(media) => Ok(image(media)),
            Part::Audio(media) => audio(media).ok_or_else(|| {
                format!("audio of type \"{}\" is not taken: use WAV or MP3", media.mime_type)
            }),
            Part::Other(json) => other(json),
            part => Err(format!("{} is for the assistant or a tool to say", kind(part))),
        })
        .collect()
}

/// What the assistant said. Its reasoning stays here: chat completions do not take it back.
fn assistant(parts: &[Part]) -> Result<ChatMessage<'_>, String> {
    let mut pieces = Vec::new();
    let mut tool_calls = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => pieces.push(Piece::Text { text: text.clone() }),
            Part::Other(json) => pieces.push(other(json)?),
            Part::Reasoning(_) => {}
            Part::ToolCall(call) => {
                let arguments = match call.arguments.trim() {
                    "" => "{}",
                    arguments => arguments,
                };
                let function = CallFunction { name: &call.name, arguments };
                tool_calls.push(ChatToolCall { id: &call.id, function });
            }
            part => return Err(format!("the assistant cannot say {}", kind(part))),
        }
    }
    let silent = pieces.is_empty() && !tool_calls.is_empty();
    let said = plain("assistant", pieces, "");
    Ok(ChatMessage { content: said.content.filter(|_| !silent), tool_calls, ..said })
}

fn other(json: &str) -> Result<Piece<'_>, String> {
    object(json).map(Piece::Other).map_err(|what| format!("a part {what}"))
}

/// The answer of a tool. What is no text goes to `media`.
fn tool<'a>(answer: &'a ToolCallResult, media: &mut Vec<Piece<'a>>) -> ChatMessage<'a> {
    let mut texts = Vec::new();
    let mut shown = Vec::new();
    for block in &answer.content {
        match told(block) {
            ToolResultBlock::Text(text) => texts.push(text),
            ToolResultBlock::Shown(piece) => shown.push(piece),
        }
    }
    if answer.is_error {
        texts.insert(0, "The tool failed.".into());
    }
    if !shown.is_empty() {
        texts.push("What it shows follows.".into());
        let text = format!("What the tool call {} shows:", answer.id);
        media.push(Piece::Text { text });
        media.extend(shown);
    }
    ChatMessage {
        role: "tool",
        content: Some(MessageContent::Text(texts.join("\n"))),
        tool_calls: Vec::new(),
        tool_call_id: Some(&answer.id),
    }
}

/// A block of a tool's answer.
enum ToolResultBlock<'a> {
    Text(String),
    Shown(Piece<'a>),
}

fn told(block: &ContentBlock) -> ToolResultBlock<'_> {
    let hidden = |mime: &str, data: &[u8]| {
        let mime = if mime.is_empty() { "data" } else { mime };
        ToolResultBlock::Text(format!("[{mime}, {} bytes, not shown]", data.len()))
    };
    match &block.body {
        Content::Text(text) => ToolResultBlock::Text(text.clone()),
        Content::Image(media) => ToolResultBlock::Shown(image(media)),
        Content::Audio(media) => match audio(media) {
            Some(piece) => ToolResultBlock::Shown(piece),
            None => hidden(&media.mime_type, &media.data),
        },
        Content::ResourceLink(link) => {
            ToolResultBlock::Text(format!("{}: {}", link.name, link.uri))
        }
        Content::Resource(resource) => match &resource.body {
            ResourceBody::Text(text) => ToolResultBlock::Text(text.clone()),
            ResourceBody::Blob(data) => {
                hidden(resource.mime_type.as_deref().unwrap_or_default(), data)
            }
        },
        Content::Other(json) => ToolResultBlock::Text(json.clone()),
    }
}

fn image(media: &Media) -> Piece<'static> {
    let url = format!("data:{};base64,{}", media.mime_type, BASE64_STANDARD.encode(&media.data));
    Piece::ImageUrl { image_url: ImageUrl { url } }
}

fn audio(media: &Media) -> Option<Piece<'static>> {
    let format = match media.mime_type.as_str() {
        "audio/wav" | "audio/wave" | "audio/x-wav" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        _ => return None,
    };
    let data = BASE64_STANDARD.encode(&media.data);
    Some(Piece::InputAudio { input_audio: InputAudio { data, format } })
}

fn kind(part: &Part) -> &'static str {
    match part {
        Part::Text(_) => "text",
        Part::Image(_) => "an image",
        Part::Audio(_) => "audio",
        Part::Reasoning(_) => "reasoning",
        Part::ToolCall(_) => "a tool call",
        Part::ToolCallResult(_) => "the answer of a tool",
        Part::Other(_) => "a part of another kind",
    }
}

#[cfg(test)]
mod tests;
