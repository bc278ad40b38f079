//! What a language model is asked and what it answers, as JSON: the contract's types with members in camel
//! case, so that an answer can be put into the next request.

use crate::{
    Completion, CompletionRequest, CompletionSummary, Media, Message, ModelTool, Part, Reasoning,
    Role, SamplingOptions, StopReason, TokenUsage, ToolCall, ToolCallResult, ToolChoice, mcp_json,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

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
pub fn messages(value: Value) -> Result<Vec<Message>, String> {
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
            Part::ToolCallResult(ToolCallResult { id: text("id")?, content, is_error })
        }
        _ => Part::Other(Value::Object(form).to_string()),
    })
}

/// A part of an answer.
pub fn part(part: &Part) -> Value {
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
        Part::ToolCallResult(ToolCallResult { id, content, is_error }) => {
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
pub fn tools(value: &Value) -> Result<Vec<ModelTool>, String> {
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
pub fn tool_choice(text: &str, tools: &[ModelTool]) -> Result<ToolChoice, String> {
    match text {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" => Ok(ToolChoice::Required),
        name if tools.iter().any(|tool| tool.name == name) => Ok(ToolChoice::Named(name.into())),
        name => Err(format!(
            "the tool choice must be auto, none, required, or the name of a tool, not \"{name}\""
        )),
    }
}

/// A request, with members that are left out where they say nothing.
pub fn request(request: &CompletionRequest) -> Value {
    let CompletionRequest { model, messages, tools, tool_choice, sampling, response_schema, extra } =
        request;
    let SamplingOptions { max_tokens, temperature, top_p, stop_sequences, seed } = sampling;
    let parsed = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    let messages = messages.iter().map(|message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        json!({ "role": role, "content": message.parts.iter().map(part).collect::<Vec<_>>() })
    });
    let tools = tools.iter().map(|tool| {
        let ModelTool { name, description, input_schema } = tool;
        json!({ "name": name, "description": description, "inputSchema": parsed(input_schema) })
    });
    let tools: Vec<Value> = tools.collect();
    let mut form = json!({ "model": model, "messages": messages.collect::<Vec<_>>() });
    if !tools.is_empty() {
        form["tools"] = tools.into();
        form["toolChoice"] = match tool_choice {
            ToolChoice::Auto => "auto".into(),
            ToolChoice::None => "none".into(),
            ToolChoice::Required => "required".into(),
            ToolChoice::Named(name) => name.as_str().into(),
        };
    }
    if !stop_sequences.is_empty() {
        form["stopSequences"] = json!(stop_sequences);
    }
    let others = [
        ("maxTokens", max_tokens.map(Value::from)),
        ("temperature", temperature.map(Value::from)),
        ("topP", top_p.map(Value::from)),
        ("seed", seed.map(Value::from)),
        ("responseSchema", response_schema.as_ref().map(parsed)),
        ("extra", extra.as_ref().map(parsed)),
    ];
    for (name, value) in others {
        if let Some(value) = value {
            form[name] = value;
        }
    }
    form
}

/// A request, as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RequestForm {
    model: String,
    messages: Value,
    #[serde(default)]
    tools: Option<Value>,
    #[serde(default)]
    tool_choice: Option<String>,
    #[serde(default)]
    stop_sequences: Vec<String>,
    #[serde(default)]
    max_tokens: Option<u64>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    response_schema: Option<Value>,
    #[serde(default)]
    extra: Option<Map<String, Value>>,
}

/// Reads a request in the form of [`request`].
///
/// # Errors
///
/// Says what is wrong with it.
pub fn read_request(value: Value) -> Result<CompletionRequest, String> {
    let form: RequestForm = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let tools = form.tools.as_ref().map_or_else(|| Ok(Vec::new()), tools)?;
    let choice = form.tool_choice.as_deref();
    Ok(CompletionRequest {
        model: form.model,
        messages: messages(form.messages)?,
        tool_choice: choice.map_or(Ok(ToolChoice::Auto), |choice| tool_choice(choice, &tools))?,
        tools,
        sampling: SamplingOptions {
            max_tokens: form.max_tokens,
            temperature: form.temperature,
            top_p: form.top_p,
            stop_sequences: form.stop_sequences,
            seed: form.seed,
        },
        response_schema: form.response_schema.map(|schema| schema.to_string()),
        extra: form.extra.map(|extra| Value::Object(extra).to_string()),
    })
}

/// An answer: its `parts`, and the members of [`summary`].
pub fn completion(completion: &Completion) -> Value {
    let mut form = summary(&completion.summary);
    form["parts"] = completion.parts.iter().map(part).collect();
    form
}

/// Reads the `parts` of an answer in the form of [`completion`].
///
/// # Errors
///
/// Says what is wrong with them.
pub fn read_parts(completion: &mut Value) -> Result<Vec<Part>, String> {
    let Some(Value::Array(parts)) = completion.get_mut("parts").map(Value::take) else {
        return Err("it has no list of `parts`".into());
    };
    let read = |part| match part {
        Value::Object(part) => part_of(part),
        _ => Err("a part is not an object".into()),
    };
    parts.into_iter().map(read).collect()
}

/// Reads an answer in the form of [`completion`].
///
/// # Errors
///
/// Says what is wrong with it.
pub fn read_completion(mut form: Value) -> Result<Completion, String> {
    let parts = read_parts(&mut form)?;
    let tokens = |name: &str| form["usage"][name].as_u64().unwrap_or_default();
    let text = |name: &str| form[name].as_str().map(str::to_string);
    let model = text("model").ok_or("it does not say which model answered")?;
    let stop_reason = read_stop_reason(&text("stopReason").unwrap_or_default());
    let usage = TokenUsage {
        input: tokens("input"),
        output: tokens("output"),
        cached_input: tokens("cachedInput"),
        reasoning: tokens("reasoning"),
    };
    let extra = form.get("extra").map(ToString::to_string);
    Ok(Completion { parts, summary: CompletionSummary { model, stop_reason, usage, extra } })
}

/// The reason that a word of [`stop_reason`] means.
fn read_stop_reason(word: &str) -> StopReason {
    let known = [
        StopReason::EndTurn,
        StopReason::MaxTokens,
        StopReason::StopSequence,
        StopReason::ToolUse,
        StopReason::Refusal,
    ];
    let found = known.into_iter().find(|reason| stop_reason(reason) == word);
    found.unwrap_or_else(|| StopReason::Other(word.to_string()))
}

/// Why a model stopped, in a word.
pub fn stop_reason(reason: &StopReason) -> &str {
    match reason {
        StopReason::EndTurn => "end-turn",
        StopReason::MaxTokens => "max-tokens",
        StopReason::StopSequence => "stop-sequence",
        StopReason::ToolUse => "tool-use",
        StopReason::Refusal => "refusal",
        StopReason::Other(reason) => reason,
    }
}

/// How an answer ended and what it took.
pub fn summary(summary: &CompletionSummary) -> Value {
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
    fn a_request_is_read_as_it_was_written() {
        let form = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": [{ "type": "text", "text": "be brief" }] },
                { "role": "user", "content": [{ "type": "text", "text": "hi" }] },
            ],
            "tools": [{ "name": "t", "description": "d", "inputSchema": { "type": "object" } }],
            "toolChoice": "t", "stopSequences": ["x"], "maxTokens": 5, "temperature": 0.5,
            "topP": 0.9, "seed": 7, "responseSchema": { "type": "object" }, "extra": { "a": 1 },
        });
        assert_eq!(request(&read_request(form.clone()).unwrap()), form);
        let plain = json!({ "model": "m", "messages": [] });
        assert_eq!(request(&read_request(plain.clone()).unwrap()), plain);
        for (member, value) in
            [("messages", json!(1)), ("toolChoice", json!("unknown")), ("other", json!(1))]
        {
            let mut wrong = form.clone();
            wrong[member] = value;
            assert!(read_request(wrong).is_err(), "{member}");
        }
    }

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
