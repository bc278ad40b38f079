use super::*;
use serde_json::json;
use tenon_sdk::provider::{
    ModelTool, Reasoning, ResourceContents, ResourceLink, SamplingOptions, ToolCall,
};

fn request(messages: Vec<Message>) -> CompletionRequest {
    CompletionRequest { messages, ..hello() }
}

fn hello() -> CompletionRequest {
    CompletionRequest::new("m", "hello")
}

fn message(role: Role, parts: Vec<Part>) -> Message {
    Message { role, parts }
}

fn text(text: &str) -> Part {
    Part::Text(text.into())
}

fn media(mime_type: &str) -> Media {
    Media { data: b"abc".to_vec(), mime_type: mime_type.into() }
}

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall { id: id.into(), name: "add".into(), arguments: arguments.into() })
}

fn answered(id: &str, content: Vec<Content>, is_error: bool) -> Part {
    let content = content.into_iter().map(|body| ContentBlock { body, extra: None }).collect();
    Part::ToolCallResult(ToolCallResult { id: id.into(), content, is_error })
}

fn add(schema: &str) -> ModelTool {
    ModelTool { name: "add".into(), description: "Adds.".into(), input_schema: schema.into() }
}

fn local() -> Settings {
    serde_json::from_str(r#"{"base_url": "http://127.0.0.1/v1"}"#).unwrap()
}

fn written(request: &CompletionRequest, stream: bool) -> Value {
    serde_json::from_slice(&write(request, &local(), stream).unwrap()).unwrap()
}

/// Checks what messages are written as.
fn check(messages: Vec<Message>, expected: Value) {
    assert_eq!(written(&request(messages), false)["messages"], expected);
}

fn refused(request: &CompletionRequest, expected: &str) {
    let error = write(request, &local(), false).unwrap_err();
    assert_eq!(error, Error::invalid_input(expected));
}

#[test]
fn the_least_is_a_model_and_messages() {
    let hello = hello();
    let messages = json!([{"role": "user", "content": "hello"}]);
    assert_eq!(written(&hello, false), json!({"model": "m", "messages": messages}));
    let streamed = json!({
        "model": "m",
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(written(&hello, true), streamed);
}

#[test]
fn texts_are_joined_and_media_are_pieces() {
    check(
        vec![
            message(Role::System, vec![text("a"), text("b")]),
            message(Role::User, vec![]),
            message(
                Role::User,
                vec![
                    text("look"),
                    Part::Image(media("image/png")),
                    Part::Audio(media("audio/mpeg")),
                    Part::Other(r#"{"type": "file", "file": {"file_id": "f"}}"#.into()),
                ],
            ),
        ],
        json!([
            {"role": "system", "content": "a\nb"},
            {"role": "user", "content": ""},
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}},
                {"type": "input_audio", "input_audio": {"data": "YWJj", "format": "mp3"}},
                {"type": "file", "file": {"file_id": "f"}},
            ]},
        ]),
    );
}

#[test]
fn tool_calls_and_their_answers() {
    let thought = Part::Reasoning(Reasoning { text: "hm".into(), signature: None });
    let link = ResourceLink {
        uri: "file:///a".into(),
        name: "a".into(),
        title: None,
        description: None,
        mime_type: None,
        size: None,
    };
    let blob = ResourceContents {
        uri: "file:///b".into(),
        mime_type: Some("application/zip".into()),
        body: ResourceBody::Blob(vec![1, 2]),
        extra: None,
    };
    let contents = vec![
        Content::Text("3".into()),
        Content::ResourceLink(link),
        Content::Resource(blob),
        Content::Other("{\"type\":\"x\"}".into()),
    ];
    check(
        vec![
            message(Role::Assistant, vec![thought, call("c1", r#"{"a":1}"#), call("c2", "")]),
            message(Role::Tool, vec![answered("c1", contents, false)]),
            message(Role::Tool, vec![answered("c2", vec![Content::Text("no".into())], true)]),
            message(Role::Assistant, vec![text("It is "), text("3."), call("c3", "{}")]),
        ],
        json!([
            {"role": "assistant", "content": null, "tool_calls": [
                {"type": "function", "id": "c1", "function": {"name": "add", "arguments": "{\"a\":1}"}},
                {"type": "function", "id": "c2", "function": {"name": "add", "arguments": "{}"}},
            ]},
            {
                "role": "tool",
                "tool_call_id": "c1",
                "content": "3\na: file:///a\n[application/zip, 2 bytes, not shown]\n{\"type\":\"x\"}",
            },
            {"role": "tool", "tool_call_id": "c2", "content": "The tool failed.\nno"},
            {"role": "assistant", "content": "It is 3.", "tool_calls": [
                {"type": "function", "id": "c3", "function": {"name": "add", "arguments": "{}"}},
            ]},
        ]),
    );
}

#[test]
fn what_tools_show_follows_the_last_answer() {
    let image = |id| answered(id, vec![Content::Image(media("image/png"))], false);
    let audio = answered("c3", vec![Content::Audio(media("audio/ogg"))], false);
    let url = json!({"url": "data:image/png;base64,YWJj"});
    check(
        vec![
            message(Role::Tool, vec![image("c1")]),
            message(Role::Tool, vec![image("c2"), audio]),
            message(Role::User, vec![text("so?")]),
        ],
        json!([
            {"role": "tool", "tool_call_id": "c1", "content": "What it shows follows."},
            {"role": "tool", "tool_call_id": "c2", "content": "What it shows follows."},
            {"role": "tool", "tool_call_id": "c3", "content": "[audio/ogg, 3 bytes, not shown]"},
            {"role": "user", "content": [
                {"type": "text", "text": "What the tool call c1 shows:"},
                {"type": "image_url", "image_url": url},
                {"type": "text", "text": "What the tool call c2 shows:"},
                {"type": "image_url", "image_url": url},
            ]},
            {"role": "user", "content": "so?"},
        ]),
    );
}

#[test]
fn tools_and_the_choice_among_them() {
    let check = |choice: ToolChoice, expected: Value| {
        let request = CompletionRequest {
            tools: vec![add(r#"{"type": "object", "b": 1, "a": 2}"#)],
            tool_choice: choice,
            ..hello()
        };
        let body = written(&request, false);
        assert_eq!(body.get("tool_choice").unwrap_or(&Value::Null), &expected);
        assert_eq!(
            body["tools"],
            json!([{"type": "function", "function": {
                "name": "add",
                "description": "Adds.",
                "parameters": {"type": "object", "a": 2, "b": 1},
            }}])
        );
    };
    check(ToolChoice::Auto, Value::Null);
    check(ToolChoice::None, json!("none"));
    check(ToolChoice::Required, json!("required"));
    check(
        ToolChoice::Named("add".into()),
        json!({"type": "function", "function": {"name": "add"}}),
    );
    let none = CompletionRequest { tool_choice: ToolChoice::None, ..hello() };
    assert_eq!(written(&none, false).get("tool_choice"), None);
}

#[test]
fn the_members_of_a_schema_keep_their_order() {
    let schema = r#"{"type":"object","properties":{"z":{},"a":{}}}"#;
    let request = CompletionRequest {
        tools: vec![add(schema)],
        response_schema: Some(schema.into()),
        ..hello()
    };
    let body = String::from_utf8(write(&request, &local(), false).unwrap()).unwrap();
    assert_eq!(body.matches(schema).count(), 2);
}

#[test]
fn limits_and_settings() {
    let request = CompletionRequest {
        sampling: SamplingOptions {
            max_tokens: Some(5),
            temperature: Some(0.5),
            top_p: Some(1.0),
            stop_sequences: vec!["END".into()],
            seed: Some(7),
        },
        extra: Some(r#"{"reasoning_effort": "low", "provider": {"order": ["a"]}}"#.into()),
        ..hello()
    };
    let expected = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 5,
        "temperature": 0.5,
        "top_p": 1.0,
        "stop": ["END"],
        "seed": 7,
        "reasoning_effort": "low",
        "provider": {"order": ["a"]},
    });
    assert_eq!(written(&request, false), expected);
    let body: Value =
        serde_json::from_slice(&write(&request, &Settings::default(), false).unwrap()).unwrap();
    assert_eq!((&body["max_completion_tokens"], body.get("max_tokens")), (&json!(5), None));
}

#[test]
fn a_response_schema_is_strict_where_it_can_be() {
    let check = |schema: &str, strict: bool| {
        let request = CompletionRequest { response_schema: Some(schema.into()), ..hello() };
        let format = json!({"type": "json_schema", "json_schema": {
            "name": "answer",
            "schema": serde_json::from_str::<Value>(schema).unwrap(),
            "strict": strict,
        }});
        assert_eq!(written(&request, false)["response_format"], format);
    };
    let closed = r#""additionalProperties": false"#;
    check(r#"{"type": "object"}"#, false);
    check(&format!(r#"{{"type": "object", {closed}}}"#), true);
    check(&format!(r#"{{"properties": {{"a": {{}}}}, {closed}}}"#), false);
    check(&format!(r#"{{"properties": {{"a": {{}}}}, "required": ["a"], {closed}}}"#), true);
    let inner = r#"{"type": ["object", "null"]}"#;
    check(&format!(r#"{{"properties": {{"a": {inner}}}, "required": ["a"], {closed}}}"#), false);
}

#[test]
fn what_cannot_be_said_is_refused() {
    refused(&request(vec![]), "the request has no messages");
    let user = |part| request(vec![message(Role::User, vec![part])]);
    refused(&user(call("c", "{}")), "message 1: a tool call is for the assistant or a tool to say");
    refused(
        &user(Part::Audio(media("audio/ogg"))),
        "message 1: audio of type \"audio/ogg\" is not taken: use WAV or MP3",
    );
    refused(&user(Part::Other("7".into())), "message 1: a part is no JSON object");
    let tool = request(vec![message(Role::Tool, vec![text("x")])]);
    refused(&tool, "message 1: a tool says answers only, not text");
    let assistant = message(Role::Assistant, vec![Part::Image(media("image/png"))]);
    refused(&request(vec![assistant]), "message 1: the assistant cannot say an image");

    let with = |change: fn(&mut CompletionRequest)| {
        let mut request = hello();
        change(&mut request);
        request
    };
    let required = with(|request| request.tool_choice = ToolChoice::Required);
    refused(&required, "a tool is required, and the request has none");
    refused(
        &with(|request| request.tool_choice = ToolChoice::Named("sub".into())),
        "the tool \"sub\" is required, and the request has none of that name",
    );
    refused(
        &with(|request| request.tools = vec![add("[]")]),
        "the schema of the tool \"add\" is no JSON object",
    );
    refused(
        &with(|request| request.response_schema = Some("{".into())),
        "the response schema is no valid JSON: EOF while parsing an object at line 1 column 1",
    );
    refused(
        &with(|request| request.sampling.temperature = Some(f64::NAN)),
        "temperature is no number",
    );
    refused(
        &with(|request| request.extra = Some(r#"{"stream": false}"#.into())),
        "extra has \"stream\", which the request says itself",
    );
    refused(
        &with(|request| request.extra = Some("[]".into())),
        "extra is no JSON object: invalid type: sequence, expected a map at line 1 column 0",
    );
    let temperature = with(|request| request.extra = Some(r#"{"temperature": 1}"#.into()));
    assert_eq!(written(&temperature, false)["temperature"], 1);
}

#[test]
fn a_model_that_the_operator_has_not_named_is_not_found() {
    let settings: Settings = serde_json::from_str(r#"{"models": ["a"]}"#).unwrap();
    let error = write(&hello(), &settings, false).unwrap_err();
    assert_eq!(error, Error::not_found("no model \"m\""));
}
