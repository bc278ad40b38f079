//! Requests to a client's model in MCP's form: `sampling/createMessage`, and its answers.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use tenon_host::types::{
    Completion, CompletionRequest, CompletionSummary, Error, Media, Message, Part, Role,
    StopReason, TokenUsage, ToolCall, ToolChoice, completion_json, mcp_json,
};

/// How long an answer may be where the plugin does not say, in tokens: MCP asks for a limit always.
const MAX_TOKENS: u64 = 1000;

/// The parameters of a request. What MCP has no place for is an error or is left out: a seed, `top_p`.
pub(crate) fn params(request: &CompletionRequest) -> Result<Value, Error> {
    let extra = request.extra.as_deref().map(serde_json::from_str::<Map<String, Value>>);
    let mut params = extra.and_then(Result::ok).unwrap_or_default();
    let mut messages = Vec::new();
    let mut system = Vec::new();
    for Message { role, parts } in &request.messages {
        if *role == Role::System {
            system.extend(parts.iter().filter_map(text_of));
            continue;
        }
        let blocks = parts.iter().filter_map(block).collect::<Vec<_>>();
        let role = if *role == Role::Assistant { "assistant" } else { "user" };
        let content = match <[Value; 1]>::try_from(blocks) {
            Ok([block]) => block,
            Err(blocks) => blocks.into(),
        };
        messages.push(json!({ "role": role, "content": content }));
    }
    if request.response_schema.is_some() {
        return Err(Error::invalid_input("a model behind an MCP client takes no response schema"));
    }
    params.insert("messages".into(), messages.into());
    if !system.is_empty() {
        params.insert("systemPrompt".into(), system.join("\n").into());
    }
    let sampling = &request.sampling;
    params.insert("maxTokens".into(), sampling.max_tokens.unwrap_or(MAX_TOKENS).into());
    if let Some(temperature) = sampling.temperature {
        params.insert("temperature".into(), temperature.into());
    }
    if !sampling.stop_sequences.is_empty() {
        params.insert("stopSequences".into(), sampling.stop_sequences.clone().into());
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let schema: Value = serde_json::from_str(&tool.input_schema).unwrap_or_default();
            json!({ "name": tool.name, "description": tool.description, "inputSchema": schema })
        });
        params.insert("tools".into(), tools.collect());
        let mode = match request.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::None => "none",
            // MCP cannot name one.
            ToolChoice::Required | ToolChoice::Named(_) => "required",
        };
        params.insert("toolChoice".into(), json!({ "mode": mode }));
    }
    Ok(params.into())
}

fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(text),
        _ => None,
    }
}

/// A part of a message; nothing where MCP has no place for it.
fn block(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(_) | Part::Image(_) | Part::Audio(_) => completion_json::part(part),
        Part::Reasoning(_) => return None,
        Part::ToolCall(ToolCall { id, name, arguments }) => {
            let input: Value = serde_json::from_str(arguments).unwrap_or(json!({}));
            json!({ "type": "tool_use", "id": id, "name": name, "input": input })
        }
        Part::ToolCallResult(result) => {
            let content: Vec<_> = result.content.iter().map(mcp_json::content_block).collect();
            json!({
                "type": "tool_result",
                "toolUseId": result.id,
                "content": content,
                "isError": result.is_error,
            })
        }
        Part::Other(json) => serde_json::from_str(json).ok()?,
    })
}

/// Reads the answer of the client's model.
pub(crate) fn read_answer(answer: &Value) -> Result<Completion, String> {
    let content = answer.get("content").ok_or("it has no `content`")?;
    let parts = match content {
        Value::Array(blocks) => blocks.iter().map(part).collect::<Result<_, _>>()?,
        block => vec![part(block)?],
    };
    let stop_reason = match answer["stopReason"].as_str() {
        None | Some("endTurn") => StopReason::EndTurn,
        Some("maxTokens") => StopReason::MaxTokens,
        Some("stopSequence") => StopReason::StopSequence,
        Some("toolUse") => StopReason::ToolUse,
        Some("refusal") => StopReason::Refusal,
        Some(other) => StopReason::Other(other.into()),
    };
    let summary = CompletionSummary {
        model: answer["model"].as_str().unwrap_or_default().into(),
        stop_reason,
        usage: TokenUsage::default(),
        extra: None,
    };
    Ok(Completion { parts, summary })
}

fn part(block: &Value) -> Result<Part, String> {
    let text = |name: &str| {
        let text = block[name].as_str().map(str::to_string);
        text.ok_or_else(|| format!("a block has no `{name}`"))
    };
    let media = || {
        let data = BASE64_STANDARD.decode(text("data")?);
        let data = data.map_err(|error| format!("a block has no base64: {error}"))?;
        Ok::<_, String>(Media { data, mime_type: text("mimeType")? })
    };
    Ok(match text("type")?.as_str() {
        "text" => Part::Text(text("text")?),
        "image" => Part::Image(media()?),
        "audio" => Part::Audio(media()?),
        "tool_use" => {
            let arguments = block["input"].to_string();
            Part::ToolCall(ToolCall { id: text("id")?, name: text("name")?, arguments })
        }
        _ => Part::Other(block.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_host::types::{ModelTool, SamplingOptions, ToolCallResult, ToolResult};

    #[test]
    fn a_request_is_written_as_the_protocol_has_it() {
        let mut request = CompletionRequest::new("default", "how many?");
        request.messages.insert(0, Message::text(Role::System, "be brief"));
        let call =
            ToolCall { id: "1".into(), name: "count".into(), arguments: r#"{"n":1}"#.into() };
        let parts = vec![Part::Text("let me".into()), Part::ToolCall(call)];
        request.messages.push(Message { role: Role::Assistant, parts });
        let content = ToolResult::text("three").content;
        let result = ToolCallResult { id: "1".into(), content, is_error: false };
        let parts = vec![Part::ToolCallResult(result)];
        request.messages.push(Message { role: Role::Tool, parts });
        request.tools = vec![ModelTool {
            name: "count".into(),
            description: "d".into(),
            input_schema: r#"{"type":"object"}"#.into(),
        }];
        request.sampling = SamplingOptions {
            temperature: Some(0.5),
            stop_sequences: vec!["x".into()],
            ..SamplingOptions::default()
        };
        request.extra = Some(r#"{"modelPreferences":{"hints":[]}}"#.into());
        let expected = json!({
            "modelPreferences": { "hints": [] },
            "systemPrompt": "be brief",
            "messages": [
                { "role": "user", "content": { "type": "text", "text": "how many?" } },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "let me" },
                    { "type": "tool_use", "id": "1", "name": "count", "input": { "n": 1 } },
                ] },
                { "role": "user", "content": { "type": "tool_result", "toolUseId": "1", "isError": false,
                    "content": [{ "type": "text", "text": "three" }] } },
            ],
            "maxTokens": 1000, "temperature": 0.5, "stopSequences": ["x"],
            "tools": [{ "name": "count", "description": "d", "inputSchema": { "type": "object" } }],
            "toolChoice": { "mode": "auto" },
        });
        assert_eq!(params(&request).unwrap(), expected);
        request.response_schema = Some("{}".into());
        assert!(params(&request).is_err());
    }

    #[test]
    fn an_answer_is_read_in_both_of_its_forms() {
        let text = json!({ "type": "text", "text": "Paris" });
        let one =
            json!({ "role": "assistant", "content": text, "model": "m", "stopReason": "endTurn" });
        assert_eq!(read_answer(&one), Ok(Completion::text("m", "Paris")));
        let call = json!({ "type": "tool_use", "id": "1", "name": "n", "input": { "a": 1 } });
        let many = json!({ "content": [text, call], "model": "m", "stopReason": "toolUse" });
        let Completion { parts, summary } = read_answer(&many).unwrap();
        assert_eq!((parts.len(), summary.stop_reason), (2, StopReason::ToolUse));
        for wrong in [json!(3), json!({}), json!({ "content": {} }), json!({ "content": [3] })] {
            assert!(read_answer(&wrong).is_err(), "{wrong}");
        }
    }
}
