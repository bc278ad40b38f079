//! The harness in which authors run what they have built.

use async_trait::async_trait;
use serde_json::json;
use std::time::Duration;
use tenon_harness::{BuildFailed, Harness, StartError};
use tenon_host::services::{Messaging, OutgoingMessage};
use tenon_host::types::hook::HookPoint;
use tenon_host::types::{CompletionRequest, Error, Message, Part, Role, Sampling, ToolChoice};
use tenon_host::{CallError, Failure, HookOutcome, Limits, PluginState};

use crate::guests;
use crate::support::DEMO_SERVER;

/// Takes whatever it is given.
struct Sink;

#[async_trait]
impl Messaging for Sink {
    async fn send(&self, _: &str, _: OutgoingMessage) -> Result<(), Error> {
        Ok(())
    }
}

#[tokio::test]
async fn a_plugin_has_what_the_test_grants_and_nothing_else() {
    // A component loads only where something of each capability is granted that it imports.
    let granted = Harness::component(guests::CALLER)
        .grant("services", ["send-message"])
        .grant("providers", ["none"])
        .grant("tools", ["none"])
        .secret("api-key", "s3cret-of-the-test")
        .host(|builder| builder.messaging(Sink))
        .start()
        .await
        .unwrap();
    let sent = granted.call("send", json!({ "text": "hi" })).await.unwrap();
    assert_eq!(sent.plain_text(), "sent");
    let secret = granted.call("secret", json!({ "name": "api-key", "plain": false })).await;
    assert!(secret.unwrap().plain_text().starts_with("s 3 c"));

    let refused = granted.call("recall", json!({ "query": "tea" })).await.unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("searching the memory is not granted"), "{said}");
    assert!(said.contains("`services = [\"search-memory\"]`"), "{said}");
    granted.shutdown().await;
}

#[tokio::test]
async fn arguments_are_held_against_the_schema() {
    let plugin = Harness::component(guests::HELLO).start().await.unwrap();
    let greeted = plugin.call("greet", json!({ "name": "Ada" })).await.unwrap();
    assert_eq!(greeted.plain_text(), "Hello, Ada!");
    let refused = plugin.call("greet", json!({ "name": 3 })).await;
    assert!(matches!(refused, Err(CallError::InvalidInput { .. })), "{refused:?}");
    let unknown = plugin.call("wave", json!({})).await;
    assert!(matches!(unknown, Err(CallError::NotFound { .. })), "{unknown:?}");
}

#[tokio::test]
async fn a_package_is_built_and_run() {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../guests/hello");
    let plugin = Harness::package(package).unwrap().start().await.unwrap();
    let greeted = plugin.call("greet", json!({ "name": "Ada" })).await.unwrap();
    assert_eq!(greeted.plain_text(), "Hello, Ada!");
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../guests/mcp-client");
    assert!(matches!(Harness::package(client), Err(BuildFailed::NoComponent)));
    assert!(matches!(Harness::package("nowhere"), Err(BuildFailed::NotRun(_))));
}

#[tokio::test]
async fn limits_hold() {
    let limits = Limits { wall: Duration::from_millis(100), ..Limits::default() };
    let plugin = Harness::component(guests::MISBEHAVE).limits(limits).start().await.unwrap();
    let given_up = plugin.call("hang", json!({})).await;
    assert!(matches!(given_up, Err(CallError::Failed { failure: Failure::Deadline(_), .. })));
}

#[tokio::test]
async fn hooks_strategies_and_models_are_asked() {
    let hooks = Harness::component(guests::REDACT);
    let hooks = hooks.config(json!({ "prefixes": ["corp_"] })).start().await.unwrap();
    let context = json!({ "message": "corp_0123456789ab" });
    let report = hooks.hook(HookPoint::MessageSending, context).await.unwrap();
    assert!(matches!(report.outcome, HookOutcome::Continue));
    assert_eq!(report.context["message"], "[redacted]");

    let evals = Harness::component(guests::CHECKS).start().await.unwrap();
    let subject = json!({ "output": "a", "expected": "a" });
    assert_eq!(evals.evaluate("exact", subject, json!({})).await.unwrap().score, 1.0);

    let provider = Harness::component(guests::ECHO_PROVIDER).start().await.unwrap();
    let completion = provider.complete(request("echo", "say this")).await.unwrap();
    let [Part::Text(text)] = &completion.parts[..] else { panic!("{completion:?}") };
    assert_eq!(text, "say this");
}

fn request(model: &str, prompt: &str) -> CompletionRequest {
    let message = Message { role: Role::User, parts: vec![Part::Text(prompt.into())] };
    let limits =
        Sampling { max_tokens: None, temperature: None, top_p: None, stop: Vec::new(), seed: None };
    CompletionRequest {
        model: model.into(),
        messages: vec![message],
        tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        limits,
        response_schema: None,
        extra: None,
    }
}

#[tokio::test]
async fn a_tool_beside_the_plugin_is_called_where_that_is_granted() {
    let plugin = Harness::component(guests::CALLER)
        .shared()
        .beside(guests::TEXT_TOOLS)
        .grant("tools", ["text_tools__slug"])
        .grant("providers", ["none"])
        .grant("services", ["send-message"])
        .secret("api-key", "s3cret-of-the-test")
        .start()
        .await
        .unwrap();
    let asked = json!({ "name": "text_tools__slug", "arguments": { "text": "A b" } });
    assert_eq!(plugin.call("call", asked).await.unwrap().plain_text(), "a-b");
}

#[tokio::test]
async fn scripts_and_servers_run_as_well() {
    let folder = tempfile::TempDir::new().unwrap();
    let script = folder.path().join("s.rhai");
    let text = "tool(#{ name: \"say\", description: \"d\", schema: #{ type: \"object\" } }, |a| config(\"word\"));";
    std::fs::write(&script, text).unwrap();
    let script = Harness::script(script).config(json!({ "word": "hi" })).start().await.unwrap();
    assert_eq!(script.call("say", json!({})).await.unwrap().plain_text(), "hi");

    let server = Harness::server(DEMO_SERVER, [""; 0]).start().await.unwrap();
    let said = server.call("echo", json!({ "text": "hi" })).await.unwrap();
    assert!(said.plain_text().contains("hi"), "{said:?}");
    server.shutdown().await;
}

#[tokio::test]
async fn why_a_plugin_does_not_start_is_said() {
    let missing = Harness::component("nowhere.wasm").start().await.err();
    assert!(matches!(missing, Some(StartError::File { .. })), "{missing:?}");
    let ungranted = Harness::component(guests::CALLER).grant("tools", ["*"]).start().await;
    let said = ungranted.err().expect("it imports more").to_string();
    assert!(said.contains("is not granted; request it in plugin.toml with"), "{said}");
    let failing = Harness::component(guests::MISBEHAVE).config(json!({ "register": "error" }));
    let Some(StartError::NotThere { state, reason, .. }) = failing.start().await.err() else {
        panic!("it does not start");
    };
    assert_eq!(state, PluginState::Failed);
    assert!(reason.contains("I would rather not"), "{reason}");
}
