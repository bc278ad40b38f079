//! What a language model is asked and what it answers, as JSON: the contract's types with members in camel
//! case, so that an answer can be put into the next request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tenon_host::types::{
    CompletionSummary, Media, Message, ModelTool, Part, Reasoning, Role, StopReason, ToolAnswer,
    ToolCall, ToolChoice, mcp_json,
};

use crate::error::Error;

/// A message, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageForm {
    role: RoleForm,
    content: ContentForm,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RoleForm {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ContentForm {
    Text(String),
    Parts(Vec<Map<String, Value>>),
}

/// Reads a conversation: a list of objects with `role`, and with `content` that is a text or a list of
/// parts.
///
/// # Errors
///
/// Says which message is none, and why.
pub(crate) fn messages(value: Value) -> Result<Vec<Message>, String> {
    let Value::Array(messages) = value else { return Err("it is not a list of messages".into()) };
    let read = |(place, message): (usize, Value)| {
        message_of(message).map_err(|problem| format!("message {}: {problem}", place + 1))
    };
    messages.into_iter().enumerate().map(read).collect()
}

fn message_of(value: Value) -> Result<Message, String> {
    let MessageForm { role, content } =
        serde_json::from_value(value).map_err(|error| error.to_string())?;
    let role = match role {
        RoleForm::System => Role::System,
        RoleForm::User => Role::User,
        RoleForm::Assistant => Role::Assistant,
        RoleForm::Tool => Role::Tool,
    };
    let parts = match content {
        ContentForm::Text(text) => vec![Part::Text(text)],
        ContentForm::Parts(parts) => parts.into_iter().map(part_of).collect::<Result<_, _>>()?,
    };
    Ok(Message { role, parts })
}

fn part_of(form: Map<String, Value>) -> Result<Part, String> {
    let text = |name: &str| match form.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("`{name}` of a part is not text")),
        None => Err(format!("a part has no `{name}`")),
    };
    let media = || {
        let data = STANDARD.decode(text("data")?);
        let data = data.map_err(|error| format!("`data` of a part is not base64: {error}"))?;
        Ok::<_, String>(Media { data, mime_type: text("mimeType")? })
    };
    Ok(match text("type")?.as_str() {
        "text" => Part::Text(text("text")?),
        "image" => Part::Image(media()?),
        "audio" => Part::Audio(media()?),
        "reasoning" => {
            let signature =
                form.contains_key("signature").then(|| text("signature")).transpose()?;
            Part::Reasoning(Reasoning { text: text("text")?, signature })
        }
        "toolCall" => {
            let arguments = match form.get("arguments") {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => "{}".into(),
            };
            Part::ToolCall(ToolCall { id: text("id")?, name: text("name")?, arguments })
        }
        "toolAnswer" => {
            let content = match form.get("content") {
                Some(Value::String(text)) => json!([{ "type": "text", "text": text }]),
                content => content.cloned().unwrap_or(json!([])),
            };
            let result = mcp_json::read_tool_result(json!({ "content": content }));
            let content = result.map_err(|error| error.to_string())?.content;
            let is_error = form.get("isError").and_then(Value::as_bool).unwrap_or_default();
            Part::ToolAnswer(ToolAnswer { id: text("id")?, content, is_error })
        }
        _ => Part::Other(Value::Object(form).to_string()),
    })
}

/// A part of an answer.
pub(crate) fn part(part: &Part) -> Value {
    let media = |kind: &str, media: &Media| json!({ "type": kind, "data": STANDARD.encode(&media.data), "mimeType": media.mime_type });
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image(image) => media("image", image),
        Part::Audio(audio) => media("audio", audio),
        Part::Reasoning(Reasoning { text, signature: None }) => {
            json!({ "type": "reasoning", "text": text })
        }
        Part::Reasoning(Reasoning { text, signature }) => {
            json!({ "type": "reasoning", "text": text, "signature": signature })
        }
        Part::ToolCall(ToolCall { id, name, arguments }) => {
            json!({ "type": "toolCall", "id": id, "name": name, "arguments": arguments })
        }
        Part::ToolAnswer(ToolAnswer { id, content, is_error }) => {
            let content: Vec<Value> = content.iter().map(mcp_json::content_block).collect();
            json!({ "type": "toolAnswer", "id": id, "content": content, "isError": is_error })
        }
        Part::Other(text) => {
            serde_json::from_str(text).unwrap_or_else(|_| json!({ "type": "other", "text": text }))
        }
    }
}

/// Reads the tools that a model may ask for: a list of objects as MCP and `tenon --json tools` have them,
/// of which `name`, `description` and `inputSchema` are read.
///
/// # Errors
///
/// Says which is no tool.
pub(crate) fn tools(value: &Value) -> Result<Vec<ModelTool>, String> {
    let Value::Array(tools) = value else { return Err("it is not a list of tools".into()) };
    let read = |tool: &Value| {
        let name = tool["name"].as_str().ok_or_else(|| format!("a tool has no `name`: {tool}"))?;
        let schema = match &tool["inputSchema"] {
            Value::Null => json!({ "type": "object" }),
            schema @ Value::Object(_) => schema.clone(),
            _ => return Err(format!("`inputSchema` of the tool {name:?} is not an object")),
        };
        Ok(ModelTool {
            name: name.to_string(),
            description: tool["description"].as_str().unwrap_or_default().to_string(),
            input_schema: schema.to_string(),
        })
    };
    tools.iter().map(read).collect()
}

/// Reads whether the model has to call one of these tools.
///
/// # Errors
///
/// Where it names another.
pub(crate) fn tool_choice(text: &str, tools: &[ModelTool]) -> Result<ToolChoice, Error> {
    match text {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" => Ok(ToolChoice::Required),
        name if tools.iter().any(|tool| tool.name == name) => Ok(ToolChoice::Named(name.into())),
        name => Err(Error::Input(format!(
            "the tool choice must be auto, none, required, or the name of a tool in --tools, not \"{name}\""
        ))),
    }
}

/// Why a model stopped, in a word.
pub(crate) fn stop_reason(reason: &StopReason) -> &str {
    match reason {
        StopReason::EndTurn => "end-turn",
        StopReason::MaxTokens => "max-tokens",
        StopReason::StopText => "stop-text",
        StopReason::ToolUse => "tool-use",
        StopReason::Refusal => "refusal",
        StopReason::Other(reason) => reason,
    }
}

/// How an answer ended and what it took.
pub(crate) fn summary(summary: &CompletionSummary) -> Value {
    let mut form = json!({
        "model": summary.model,
        "stopReason": stop_reason(&summary.stop_reason),
        "usage": {
            "input": summary.usage.input,
            "output": summary.usage.output,
            "cachedInput": summary.usage.cached_input,
            "reasoning": summary.usage.reasoning,
        },
    });
    if let Some(extra) = &summary.extra {
        form["extra"] = serde_json::from_str(extra).unwrap_or_else(|_| json!(extra));
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_can_be_asked_about() {
        let parts = json!([
            { "type": "text", "text": "a" },
            { "type": "image", "data": "QUJD", "mimeType": "image/png" },
            { "type": "reasoning", "text": "r" },
            { "type": "reasoning", "text": "r", "signature": "s" },
            { "type": "toolCall", "id": "1", "name": "t", "arguments": "{}" },
            { "type": "toolAnswer", "id": "1", "content": [{ "type": "text", "text": "x" }], "isError": true },
            { "type": "of-a-provider", "more": 1 },
        ]);
        let read = messages(json!([{ "role": "assistant", "content": parts }])).unwrap();
        let again: Vec<Value> = read[0].parts.iter().map(part).collect();
        assert_eq!(Value::Array(again), parts);
    }

    #[test]
    fn what_is_no_message_is_said() {
        let check = |value: Value, expected: &str| {
            let problem = messages(value).map(|_| ()).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        };
        check(json!({}), "not a list of messages");
        check(
            json!([{ "role": "user", "content": "a" }, { "role": "robot", "content": "" }]),
            "message 2: unknown variant `robot`",
        );
        check(json!([{ "role": "user" }]), "missing field `content`");
        check(json!([{ "role": "user", "content": [{ "text": "a" }] }]), "a part has no `type`");
        check(
            json!([{ "role": "user", "content": [{ "type": "text", "text": 1 }] }]),
            "`text` of a part is not text",
        );
        check(
            json!([{ "role": "user", "content": [{ "type": "image", "data": "?", "mimeType": "a/b" }] }]),
            "not base64",
        );
    }
}
