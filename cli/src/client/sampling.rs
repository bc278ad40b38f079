//! What servers ask of a model (`sampling/createMessage` of MCP), put to a configured provider.

use serde_json::{Value, json};
use tenon_host::model::{
    Completion, CompletionRequest, Message, Part, Role, StopReason, ToolChoice,
};
use tenon_host::types::Error;

use crate::model_json;

/// The request that a server makes, for this model.
///
/// # Errors
///
/// [`Error::InvalidInput`] where it is none.
pub(super) fn request(model: &str, params: &Value) -> Result<CompletionRequest, Error> {
    let invalid = |problem: String| Error::InvalidInput(problem);
    let said =
        params["messages"].as_array().ok_or_else(|| invalid("it has no `messages`".into()))?;
    let mut messages = Vec::new();
    if let Some(system) = params["systemPrompt"].as_str() {
        messages.push(Message::text(Role::System, system));
    }
    for message in said {
        let parts = match &message["content"] {
            Value::Array(blocks) => blocks.iter().map(block).collect(),
            one => vec![block(one)],
        };
        let is_answer = parts.iter().any(|part| part["type"] == "toolAnswer");
        let role = match message["role"].as_str() {
            Some("assistant") => "assistant",
            _ if is_answer => "tool",
            _ => "user",
        };
        let one = json!([{ "role": role, "content": parts }]);
        messages.extend(model_json::messages(one).map_err(invalid)?);
    }
    let mut request = CompletionRequest::new(model, "");
    request.messages = messages;
    request.limits.max_tokens = params["maxTokens"].as_u64();
    request.limits.temperature = params["temperature"].as_f64();
    let stop = params["stopSequences"].as_array().map(Vec::as_slice).unwrap_or_default();
    request.limits.stop = stop.iter().filter_map(Value::as_str).map(str::to_string).collect();
    if params["tools"].is_array() {
        request.tools = model_json::tools(&params["tools"]).map_err(invalid)?;
        request.tool_choice = match params["toolChoice"]["mode"].as_str() {
            Some("required") => ToolChoice::Required,
            Some("none") => ToolChoice::None,
            _ => ToolChoice::Auto,
        };
    }
    Ok(request)
}

/// A content block of MCP, as a part of a message.
fn block(block: &Value) -> Value {
    match block["type"].as_str() {
        Some("tool_use") => json!({
            "type": "toolCall",
            "id": block["id"],
            "name": block["name"],
            "arguments": block["input"],
        }),
        Some("tool_result") => json!({
            "type": "toolAnswer",
            "id": block["toolUseId"],
            "content": block["content"],
            "isError": block["isError"].as_bool().unwrap_or_default(),
        }),
        _ => block.clone(),
    }
}

/// The answer in the form of the protocol.
pub(super) fn answer(completion: &Completion) -> Value {
    let texts = completion.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let text = json!({ "type": "text", "text": texts.collect::<Vec<_>>().join("\n") });
    let calls = completion.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => {
            let input: Value = serde_json::from_str(&call.arguments).unwrap_or(json!({}));
            Some(json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input }))
        }
        _ => None,
    });
    let calls: Vec<Value> = calls.collect();
    let stop = match &completion.summary.stop_reason {
        StopReason::EndTurn => "endTurn",
        StopReason::MaxTokens => "maxTokens",
        StopReason::StopText => "stopSequence",
        StopReason::ToolUse => "toolUse",
        StopReason::Refusal => "refusal",
        StopReason::Other(reason) => reason,
    };
    let content = match calls.is_empty() {
        true => text,
        false => [text].into_iter().chain(calls).collect(),
    };
    json!({
        "role": "assistant",
        "content": content,
        "model": completion.summary.model,
        "stopReason": stop,
    })
}
