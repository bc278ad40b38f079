//! The guests that reach out: to the web, to files, and to language models over HTTP.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::time::Duration;
use tenon_host::services::{GrantAll, Secret, SecretStore};
use tenon_host::types::{
    CompletionRequest, Delta, Error, ErrorCode, ModelTool, Part, StopReason, ToolResult,
};
use tenon_host::{CallError, Caller, Failure, PluginState};

use crate::guests;
use crate::http_server::{Server, serve};
use crate::support::{Project, RunningPlatform, call, text};

const KEY: &str = "sk-test-0123456789";

struct OneSecret;

#[async_trait]
impl SecretStore for OneSecret {
    async fn secret(&self, _: &str, name: &str) -> Option<Secret> {
        (name == "openai-api-key").then(|| Secret::new(KEY))
    }
}

/// A platform with one plugin.
async fn platform(id: &str, guest: &str, capabilities: &str, settings: &str) -> RunningPlatform {
    let project = Project::new("plugins.folders = [\"own\"]");
    let runtime = "runtime = { kind = \"wasm\", path = \"p.wasm\", instance = \"shared\" }";
    let manifest = format!(
        "plugin.id = {id:?}\n{runtime}\n[capabilities]\n{capabilities}\n[settings]\n{settings}"
    );
    project.write(&format!("own/{id}/plugin.toml"), manifest);
    project.write(&format!("own/{id}/p.wasm"), std::fs::read(guest).unwrap());
    let builder = project.builder().approver(GrantAll).secrets(OneSecret);
    let platform = builder.build().await.expect("the platform is built");
    for report in platform.plugins().iter() {
        assert_eq!(report.state, PluginState::Ready, "{report:?}");
    }
    RunningPlatform::new(platform, project)
}

fn structured(result: &ToolResult) -> Value {
    serde_json::from_str(result.structured.as_deref().expect("it has data")).unwrap()
}

/// The contract's error of a call that must fail.
fn answered(result: Result<impl Sized, CallError>) -> Error {
    match result {
        Err(CallError::Failed { failure: Failure::Answered(error), .. }) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it must fail"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fetch_follows_redirects_to_what_is_granted() {
    let (server, other) = (serve().await, serve().await);
    let granted = format!("network = [{:?}]", server.url("/*"));
    let platform = platform("fetch", guests::FETCH, &granted, "").await;
    let fetch = async |url: String| call(&platform, "fetch__fetch", json!({ "url": url })).await;
    let found = structured(&fetch(server.url("/redirect?/x")).await.unwrap());
    assert_eq!((&found["status"], &found["body"]), (&json!(200), &json!("ok")));
    assert_eq!(found["url"], json!(server.url("/x")));
    assert_eq!(server.heard(), ["GET /redirect?/x", "GET /x"]);

    let away = server.url(&format!("/redirect?{}", other.url("/")));
    let error = answered(fetch(away).await);
    assert_eq!(error.code, ErrorCode::Denied);
    assert!(error.message.contains("refused"), "{error:?}");
    assert!(other.heard().is_empty());

    for _ in 0..=5 {
        server.answer_next("302 Found", &["location: /again"], "");
    }
    let error = answered(fetch(server.url("/")).await);
    assert_eq!(error.code, ErrorCode::Failed);
    assert!(error.message.contains("more than 5 times"), "{error:?}");
}

#[tokio::test]
async fn files_works_on_what_is_granted() {
    let project = Project::new("");
    let base = project.path("").canonicalize().unwrap();
    let base = base.to_str().unwrap().trim_end_matches('/').to_string();
    project.write("data/one.txt", "eins zwei");
    project.write("hidden.txt", "hidden");
    let granted = format!("filesystem = [\"readwrite:{base}/data/**\"]");
    let platform = platform("files", guests::FILES, &granted, "").await;
    let at = |path: &str| json!({ "path": format!("{base}/{path}") });
    let read = call(&platform, "files__read_file", at("data/one.txt")).await.unwrap();
    assert_eq!(structured(&read)["text"], "eins zwei");
    let write = json!({ "path": format!("{base}/data/new/two.txt"), "text": "zwei" });
    call(&platform, "files__make_dir", at("data/new")).await.unwrap();
    let said = text(&platform, "files__write_file", write).await;
    assert!(said.starts_with("wrote 4 bytes"), "{said}");
    let listed = call(&platform, "files__list_dir", at("data")).await.unwrap();
    let names = |value: &Value| -> Vec<String> {
        let entries = value["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["name"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(names(&structured(&listed)), ["new", "one.txt"]);
    let find = json!({ "path": base, "pattern": "*.txt" });
    let found = structured(&call(&platform, "files__find", find).await.unwrap());
    assert_eq!(found["paths"].as_array().unwrap().len(), 2, "{found}");
    for path in ["hidden.txt", "data/../hidden.txt"] {
        let error = answered(call(&platform, "files__read_file", at(path)).await);
        assert!(matches!(&error, Error { code: ErrorCode::Denied, .. }), "{path}: {error:?}");
    }
    let error = answered(call(&platform, "files__read_file", at("data/none")).await);
    assert!(matches!(&error, Error { code: ErrorCode::NotFound, .. }), "{error:?}");
}

/// A platform with the provider, which asks this server.
async fn provider(server: &Server, settings: &str) -> RunningPlatform {
    let granted = format!("network = [{:?}]\nsecrets = [\"openai-api-key\"]", server.url("/v1/*"));
    let settings = format!("base_url = {:?}\n{settings}", server.url("/v1"));
    platform("openai", guests::OPENAI_PROVIDER, &granted, &settings).await
}

fn request() -> CompletionRequest {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let tool = ModelTool {
        name: "weather".into(),
        description: "Tells the weather".into(),
        input_schema: schema.to_string(),
    };
    let mut request = CompletionRequest::new("m-1", "Weather in Paris?");
    request.tools = vec![tool];
    request.sampling.max_tokens = Some(50);
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_behind_http_answers_in_one_piece() {
    let server = serve().await;
    let platform = provider(&server, "models = [\"m-1\"]").await;
    let answer = json!({
        "choices": [{ "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Let me see.",
            "tool_calls": [{ "id": "c1", "type": "function",
                "function": { "name": "weather", "arguments": "{\"city\":\"Paris\"}" } }],
        } }],
        "usage": { "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 },
    });
    server.answer_next("200 OK", &["content-type: application/json"], &answer.to_string());
    let completion = platform.complete(request(), &Caller::default()).await.unwrap();
    assert!(matches!(&completion.parts[..], [Part::Text(said), Part::ToolCall(call)]
        if said == "Let me see." && call.name == "weather" && call.arguments.contains("Paris")));
    assert!(matches!(completion.summary.stop_reason, StopReason::ToolUse));
    assert_eq!((completion.summary.usage.input, completion.summary.usage.output), (11, 7));
    let heard = server.heard_whole().remove(0);
    let (head, body) = heard.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{head}");
    assert!(head.to_lowercase().contains(&format!("authorization: bearer {KEY}")), "{head}");
    let sent: Value = serde_json::from_str(body).unwrap();
    assert_eq!(sent["model"], "m-1");
    assert_eq!(sent["tools"][0]["function"]["name"], "weather");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_behind_http_answers_piece_by_piece() {
    let server = serve().await;
    let platform = provider(&server, "models = [\"m-1\"]").await;
    let chunk = |delta: Value, end: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": end });
        format!("data: {}\r\n\r\n", json!({ "choices": [choice] }))
    };
    let mut events = String::from(": hello\n\n");
    events.push_str(&chunk(json!({ "role": "assistant", "content": "Grüß" }), None));
    events.push_str(&chunk(json!({ "content": " Gott" }), None));
    events.push_str(&chunk(
        json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": { "name": "weather", "arguments": "{\"ci" } }] }),
        None,
    ));
    events.push_str(&chunk(
        json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "ty\":\"Paris\"}" } }] }),
        Some("tool_calls"),
    ));
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 9 } });
    events.push_str(&format!("data: {usage}\n\ndata: [DONE]\n\n"));
    server.answer_next("200 OK", &["content-type: text/event-stream"], &events);
    let mut answer = platform.stream(request(), &Caller::default()).await.unwrap();
    let (mut said, mut arguments, mut called) = (String::new(), String::new(), String::new());
    while let Some(delta) = answer.next().await {
        match delta {
            Delta::Text(text) => said.push_str(&text),
            Delta::ToolCallStart(start) => called.push_str(&start.name),
            Delta::ToolCallArguments(piece) => arguments.push_str(&piece.fragment),
            _ => {}
        }
    }
    assert_eq!((&*said, &*called, &*arguments), ("Grüß Gott", "weather", "{\"city\":\"Paris\"}"));
    let summary = answer.finish().await.unwrap();
    assert!(matches!(summary.stop_reason, StopReason::ToolUse));
    assert_eq!((summary.usage.input, summary.usage.output), (3, 9));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_model_server_says_is_wrong_is_passed_on_without_the_key() {
    let server = serve().await;
    let platform = provider(&server, "models = [\"m-1\"]").await;
    let error = json!({ "error": { "message": format!("no good: {KEY}") } }).to_string();
    let fails = async |status: &str, headers: &[&str]| {
        server.answer_next(status, headers, &error);
        let error = answered(platform.complete(request(), &Caller::default()).await);
        assert!(!format!("{error:?}").contains(KEY), "{error:?}");
        error
    };
    assert_eq!(fails("400 Bad Request", &[]).await.code, ErrorCode::InvalidInput);
    assert_eq!(fails("401 Unauthorized", &[]).await.code, ErrorCode::Denied);
    assert_eq!(fails("404 Not Found", &[]).await.code, ErrorCode::NotFound);
    assert_eq!(fails("504 Gateway Timeout", &[]).await.code, ErrorCode::Timeout);
    let busy = fails("429 Too Many Requests", &["retry-after: 2"]).await;
    let wait = Some(Duration::from_secs(2));
    assert_eq!((busy.code, busy.retry_after), (ErrorCode::Unavailable, wait));
    assert_eq!(fails("503 Service Unavailable", &[]).await.code, ErrorCode::Unavailable);
    server.answer_next("200 OK", &["content-type: application/json"], "{");
    let malformed = answered(platform.complete(request(), &Caller::default()).await);
    assert!(matches!(malformed, Error { code: ErrorCode::Failed, .. }), "{malformed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn models_are_those_that_the_server_lists() {
    let server = serve().await;
    let platform = provider(&server, "").await;
    let listed = json!({ "data": [{ "id": "m-1" }, { "id": "m-2" }] }).to_string();
    server.answer_next("200 OK", &["content-type: application/json"], &listed);
    let models: Vec<String> =
        platform.models().await.iter().map(|model| model.info.id.clone()).collect();
    assert_eq!(models, ["m-1", "m-2"]);
}
