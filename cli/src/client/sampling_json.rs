//! What servers ask of a model (`sampling/createMessage` of MCP), put to a configured provider.

use serde_json::{Value, json};
use tenon_host::types::{
    Completion, CompletionRequest, Error, Message, Part, Role, StopReason, ToolChoice,
};

use crate::completion_json;

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
        messages.extend(completion_json::messages(one).map_err(invalid)?);
    }
    let mut request = CompletionRequest::new(model, "");
    request.messages = messages;
    request.limits.max_tokens = params["maxTokens"].as_u64();
    request.limits.temperature = params["temperature"].as_f64();
    let stop = params["stopSequences"].as_array().map(Vec::as_slice).unwrap_or_default();
    request.limits.stop = stop.iter().filter_map(Value::as_str).map(str::to_string).collect();
    if params["tools"].is_array() {
        request.tools = completion_json::tools(&params["tools"]).map_err(invalid)?;
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
    let content = match (calls.is_empty(), text["text"] == "") {
        (true, _) => text,
        (false, true) => calls.into(),
        (false, false) => [text].into_iter().chain(calls).collect(),
    };
    json!({
        "role": "assistant",
        "content": content,
        "model": completion.summary.model,
        "stopReason": stop,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_host::types::{CompletionSummary, Content, TokenUsage, ToolCall};

    #[test]
    fn what_tools_were_called_for_and_answered_is_put_to_the_model() {
        let params = json!({
            "messages": [
                { "role": "user", "content": { "type": "text", "text": "how many?" } },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "let me count" },
                    { "type": "tool_use", "id": "1", "name": "count", "input": { "n": 1.0 } },
                ] },
                { "role": "user", "content": { "type": "tool_result", "toolUseId": "1",
                    "content": [{ "type": "text", "text": "three" }], "isError": true } },
            ],
            "tools": [{ "name": "count", "description": "d", "inputSchema": { "type": "object" } }],
            "toolChoice": { "mode": "required" },
            "maxTokens": 7, "temperature": 0.5, "stopSequences": ["x"],
        });
        let request = request("m", &params).expect("it is one");
        let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
        let Part::ToolCall(call) = &request.messages[1].parts[1] else { panic!("it is a call") };
        assert_eq!((&*call.id, &*call.name, &*call.arguments), ("1", "count", r#"{"n":1.0}"#));
        let Part::ToolAnswer(answer) = &request.messages[2].parts[0] else { panic!("an answer") };
        assert!(answer.id == "1" && answer.is_error);
        assert!(matches!(&answer.content[0].body, Content::Text(text) if text == "three"));
        assert_eq!((request.tools.len(), &*request.tools[0].name), (1, "count"));
        assert!(matches!(request.tool_choice, ToolChoice::Required));
        let limits = &request.limits;
        assert_eq!((limits.max_tokens, limits.temperature), (Some(7), Some(0.5)));
        assert_eq!(limits.stop, ["x"]);
        for wrong in [
            json!({}),
            json!({ "messages": [{ "role": "user", "content": { "type": "tool_use" } }] }),
        ] {
            assert!(self::request("m", &wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_model_that_calls_tools_says_so_in_the_form_of_the_protocol() {
        let answered = |parts, stop_reason| {
            let usage = TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 };
            let summary = CompletionSummary { model: "m".into(), stop_reason, usage, extra: None };
            answer(&Completion { parts, summary })
        };
        let text = || Part::Text("so".into());
        let (id, name) = (|| "1".to_string(), || "count".to_string());
        let call = |arguments: &str| {
            Part::ToolCall(ToolCall { id: id(), name: name(), arguments: arguments.into() })
        };
        let said = json!({ "type": "text", "text": "so" });
        let called = json!({ "type": "tool_use", "id": "1", "name": "count", "input": { "n": 1 } });
        for (parts, content) in [
            (vec![text()], said.clone()),
            (vec![text(), call(r#"{"n":1}"#)], json!([said, called])),
            (vec![call(r#"{"n":1}"#)], json!([called])),
        ] {
            let answer = answered(parts, StopReason::ToolUse);
            assert_eq!((&answer["content"], &answer["stopReason"]), (&content, &json!("toolUse")));
        }
    }
}
