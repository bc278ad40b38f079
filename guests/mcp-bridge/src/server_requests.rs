//! What the server asks its client for, put to the host through the contract: `elicitation/create` to `user`,
//! `sampling/createMessage` to `inference`, and `roots/list` to `mcp-server`. See the [specification](https://modelcontextprotocol.io/specification).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mcp_client::AskKind;
use serde_json::{Value, json};

use crate::bindings::tenon::bridge::mcp_server::{self, Root};
use crate::bindings::tenon::plugin::model::{
    Completion, CompletionRequest, Message, ModelTool, Part, Role, SamplingOptions, StopReason,
    ToolCall, ToolCallResult, ToolChoice,
};
use crate::bindings::tenon::plugin::types::{Content, Error, Media};
use crate::bindings::tenon::plugin::user::{FormAnswer, FormRequest, UrlAnswer, UrlRequest};
use crate::bindings::tenon::plugin::{inference, user};
use crate::convert::{self, RemainingMembers};

/// The model that the host chooses.
const DEFAULT_MODEL: &str = "default";

/// What the server is answered.
pub(crate) async fn answer(kind: AskKind, params: &str) -> Result<String, Error> {
    match kind {
        AskKind::Elicitation => elicit(params).await,
        AskKind::Sampling => {
            let completion = inference::complete(completion_request(params)?).await?;
            Ok(sampling_result(completion).to_string())
        }
        AskKind::Roots => Ok(roots_result(mcp_server::list_roots().await?)),
    }
}

fn invalid(problem: String) -> Error {
    Error::invalid_input(format!("what the server asks for is invalid: {problem}"))
}

async fn elicit(params: &str) -> Result<String, Error> {
    let mut members = RemainingMembers::read(params).map_err(invalid)?;
    let mode = members.hint::<String>("mode");
    let message = members.hint("message").unwrap_or_default();
    let answer = match mode.as_deref() {
        Some("url") => {
            let url = members.required("url").map_err(invalid)?;
            let id = members.hint("elicitationId");
            let page = UrlRequest { message, url, id, extra: members.rest() };
            let action = match user::ask_url(page).await? {
                UrlAnswer::Accepted => "accept",
                UrlAnswer::Declined => "decline",
                UrlAnswer::Cancelled => "cancel",
            };
            json!({ "action": action })
        }
        _ => {
            let schema = members.raw("requestedSchema").unwrap_or("{}").to_string();
            let form = FormRequest { message, schema, extra: members.rest() };
            match user::ask(form).await? {
                FormAnswer::Accepted(content) => {
                    let content: Value = serde_json::from_str(&content).map_err(|error| {
                        Error::failed(format!("the answer of the user is no JSON: {error}"))
                    })?;
                    json!({ "action": "accept", "content": content })
                }
                FormAnswer::Declined => json!({ "action": "decline" }),
                FormAnswer::Cancelled => json!({ "action": "cancel" }),
            }
        }
    };
    Ok(answer.to_string())
}

/// The client's roots in the form of the protocol.
fn roots_result(roots: Vec<Root>) -> String {
    let root = |Root { uri, name, extra }: Root| {
        let extra = extra.and_then(|extra| serde_json::from_str::<Value>(&extra).ok());
        let mut root = extra.filter(Value::is_object).unwrap_or_else(|| json!({}));
        root["uri"] = uri.into();
        if let Some(name) = name {
            root["name"] = name.into();
        }
        root
    };
    json!({ "roots": roots.into_iter().map(root).collect::<Vec<_>>() }).to_string()
}

fn completion_request(params: &str) -> Result<CompletionRequest, Error> {
    let mut members = RemainingMembers::read(params).map_err(invalid)?;
    if members.get("messages").is_none() {
        return Err(invalid("\"messages\" is missing".into()));
    }
    let said = members.items("messages").map_err(invalid)?;
    let mut messages = Vec::with_capacity(said.len() + 1);
    if let Some(system) = members.hint("systemPrompt") {
        messages.push(Message { role: Role::System, parts: vec![Part::Text(system)] });
    }
    for said in said {
        messages.push(message(said).map_err(invalid)?);
    }
    let tools = match members.get("tools").is_some_and(|json| json != "null") {
        true => {
            let tools = members.items("tools").map_err(invalid)?;
            tools.into_iter().map(tool).collect::<Result<_, _>>().map_err(invalid)?
        }
        false => Vec::new(),
    };
    let mode = members.within("toolChoice", |choice| Ok(choice.hint::<String>("mode")));
    let tool_choice = match mode.map_err(invalid)?.flatten().as_deref() {
        Some("required") => ToolChoice::Required,
        Some("none") => ToolChoice::None,
        _ => ToolChoice::Auto,
    };
    let sampling = SamplingOptions {
        max_tokens: members.hint("maxTokens"),
        temperature: members.hint("temperature"),
        top_p: None,
        stop_sequences: members.hint("stopSequences").unwrap_or_default(),
        seed: None,
    };
    Ok(CompletionRequest {
        model: DEFAULT_MODEL.into(),
        messages,
        tools,
        tool_choice,
        sampling,
        response_schema: None,
        // Which model the server would like is among it.
        extra: members.rest(),
    })
}

fn message(json: &str) -> Result<Message, String> {
    let mut members = RemainingMembers::read(json)?;
    let role = members.hint::<String>("role");
    let content = members.raw("content").ok_or("a message has no \"content\"")?;
    let parts = match content.starts_with('[') {
        true => serde_json::from_str::<Vec<&serde_json::value::RawValue>>(content)
            .map_err(|error| error.to_string())?
            .into_iter()
            .map(|block| part(block.get()))
            .collect::<Result<Vec<_>, _>>()?,
        false => vec![part(content)?],
    };
    let is_answer = parts.iter().any(|part| matches!(part, Part::ToolCallResult(_)));
    let role = match role.as_deref() {
        Some("assistant") => Role::Assistant,
        _ if is_answer => Role::Tool,
        _ => Role::User,
    };
    Ok(Message { role, parts })
}

/// A content block of a message. One of a kind that is not known goes along as it is.
fn part(json: &str) -> Result<Part, String> {
    let mut members = RemainingMembers::read(json)?;
    Ok(match &*members.text("type")? {
        "tool_use" => Part::ToolCall(ToolCall {
            id: members.required("id")?,
            name: members.required("name")?,
            arguments: members.raw("input").unwrap_or("{}").to_string(),
        }),
        "tool_result" => Part::ToolCallResult(ToolCallResult {
            id: members.required("toolUseId")?,
            content: members.items("content")?.into_iter().map(convert::content_block).collect(),
            is_error: members.hint("isError").unwrap_or(false),
        }),
        _ => match convert::content_block(json).body {
            Content::Text(text) => Part::Text(text),
            Content::Image(media) => Part::Image(media),
            Content::Audio(media) => Part::Audio(media),
            _ => Part::Other(json.to_string()),
        },
    })
}

fn tool(json: &str) -> Result<ModelTool, String> {
    let mut members = RemainingMembers::read(json)?;
    Ok(ModelTool {
        name: members.required("name")?,
        description: members.hint("description").unwrap_or_default(),
        input_schema: members.raw("inputSchema").unwrap_or(r#"{"type":"object"}"#).to_string(),
    })
}

/// The answer of a model in the form of the protocol: one block, or a list where there are several.
fn sampling_result(Completion { parts, summary }: Completion) -> Value {
    let mut text: Option<String> = None;
    let mut blocks = Vec::new();
    let media = |kind: &str, Media { data, mime_type }: Media| json!({ "type": kind, "data": BASE64_STANDARD.encode(data), "mimeType": mime_type });
    for part in parts {
        match part {
            Part::Text(more) => match &mut text {
                Some(text) => {
                    text.push('\n');
                    text.push_str(&more);
                }
                None => text = Some(more),
            },
            Part::ToolCall(ToolCall { id, name, arguments }) => {
                let input: Value = serde_json::from_str(&arguments).unwrap_or(json!({}));
                blocks.push(json!({ "type": "tool_use", "id": id, "name": name, "input": input }));
            }
            Part::Image(of) => blocks.push(media("image", of)),
            Part::Audio(of) => blocks.push(media("audio", of)),
            // The protocol has no place for these.
            Part::Reasoning(_) | Part::ToolCallResult(_) | Part::Other(_) => {}
        }
    }
    let has_no_text = text.as_deref().unwrap_or_default().is_empty();
    let text = json!({ "type": "text", "text": text.unwrap_or_default() });
    let content = match (blocks.is_empty(), has_no_text) {
        (true, _) => text,
        (false, true) => blocks.into(),
        (false, false) => [text].into_iter().chain(blocks).collect(),
    };
    let stop = match &summary.stop_reason {
        StopReason::EndTurn => "endTurn",
        StopReason::MaxTokens => "maxTokens",
        StopReason::StopSequence => "stopSequence",
        StopReason::ToolUse => "toolUse",
        StopReason::Refusal => "refusal",
        StopReason::Other(reason) => reason,
    };
    json!({ "role": "assistant", "content": content, "model": summary.model, "stopReason": stop })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::tenon::plugin::model::{CompletionSummary, TokenUsage};

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
            "systemPrompt": "be brief",
            "tools": [{ "name": "count", "description": "d", "inputSchema": { "type": "object" } }],
            "toolChoice": { "mode": "required" },
            "maxTokens": 7, "temperature": 0.5, "stopSequences": ["x"],
            "modelPreferences": { "hints": [{ "name": "small" }] },
        });
        let request = completion_request(&params.to_string()).expect("it is one");
        let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
        let Part::ToolCall(call) = &request.messages[2].parts[1] else { panic!("it is a call") };
        assert_eq!((&*call.id, &*call.name, &*call.arguments), ("1", "count", r#"{"n":1.0}"#));
        let Part::ToolCallResult(answer) = &request.messages[3].parts[0] else {
            panic!("it is an answer")
        };
        assert!(answer.id == "1" && answer.is_error);
        assert!(matches!(&answer.content[0].body, Content::Text(text) if text == "three"));
        assert_eq!((request.tools.len(), &*request.tools[0].name), (1, "count"));
        assert!(matches!(request.tool_choice, ToolChoice::Required));
        let sampling = &request.sampling;
        assert_eq!((sampling.max_tokens, sampling.temperature), (Some(7), Some(0.5)));
        assert_eq!(sampling.stop_sequences, ["x"]);
        let extra = r#"{"modelPreferences":{"hints":[{"name":"small"}]}}"#;
        assert_eq!(request.extra.as_deref(), Some(extra));
        for wrong in [
            json!({}),
            json!({ "messages": [{ "role": "user", "content": { "type": "tool_use" } }] }),
            json!({ "messages": [{ "role": "user" }] }),
        ] {
            assert!(completion_request(&wrong.to_string()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_model_that_calls_tools_says_so_in_the_form_of_the_protocol() {
        let usage = TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 };
        let answered = |parts| {
            let stop_reason = StopReason::ToolUse;
            let summary = CompletionSummary { model: "m".into(), stop_reason, usage, extra: None };
            sampling_result(Completion { parts, summary })
        };
        let text = || Part::Text("so".into());
        let call = |arguments: &str| {
            let (id, name) = ("1".into(), "count".into());
            Part::ToolCall(ToolCall { id, name, arguments: arguments.into() })
        };
        let said = json!({ "type": "text", "text": "so" });
        let called = json!({ "type": "tool_use", "id": "1", "name": "count", "input": { "n": 1 } });
        for (parts, content) in [
            (vec![text()], said.clone()),
            (vec![text(), call(r#"{"n":1}"#)], json!([said, called])),
            (vec![call(r#"{"n":1}"#)], json!([called])),
        ] {
            let answer = answered(parts);
            assert_eq!((&answer["content"], &answer["stopReason"]), (&content, &json!("toolUse")));
        }
    }
}
