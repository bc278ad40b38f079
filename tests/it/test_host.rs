//! The host in which `tenon test` and embedders run one plugin.

use async_trait::async_trait;
use serde_json::json;
use std::time::Duration;
use tenon_host::services::{Messaging, OutgoingMessage};
use tenon_host::types::Error;
use tenon_host::{CallError, Caller, Failure, Limits, PluginState};
use tenon_test_host::{ManualClock, Scope, StartError, TestHost};

use crate::guests;
use crate::support::DEMO_SERVER;

/// Takes whatever it is given.
struct NullMessaging;

#[async_trait]
impl Messaging for NullMessaging {
    async fn send(&self, _: &str, _: OutgoingMessage) -> Result<(), Error> {
        Ok(())
    }
}

#[tokio::test]
async fn a_plugin_has_what_the_test_grants_and_nothing_else() {
    // A component loads only where something of each capability is granted that it imports.
    let granted = TestHost::component(guests::CALLER)
        .grant("messaging", ["*"])
        .grant("memory", ["search"])
        .grant("providers", ["none"])
        .grant("tools", ["none"])
        .secret("api-key", "s3cret-of-the-test")
        .host(|builder| builder.messaging(NullMessaging))
        .start()
        .await
        .unwrap();
    let sent = granted.call("send", json!({ "text": "hi" })).await.unwrap();
    assert_eq!(sent.plain_text(), "sent");
    let secret = granted.call("secret", json!({ "name": "api-key", "plain": false })).await;
    assert!(secret.unwrap().plain_text().starts_with("s 3 c"));

    let ask = json!({ "model": "other", "prompt": "tea" });
    let said = granted.call("ask", ask).await.unwrap_err().to_string();
    assert!(said.contains("asking the model other is not granted"), "{said}");
    assert!(said.contains("`providers = [\"other\"]`"), "{said}");
    granted.shutdown().await;
}

#[tokio::test]
async fn arguments_are_held_against_the_schema() {
    let plugin = TestHost::component(guests::HELLO).start().await.unwrap();
    let greeted = plugin.call("greet", json!({ "name": "Ada" })).await.unwrap();
    assert_eq!(greeted.plain_text(), "Hello, Ada!");
    let refused = plugin.call("greet", json!({ "name": 3 })).await;
    assert!(matches!(refused, Err(CallError::InvalidInput { .. })), "{refused:?}");
    let unknown = plugin.call("wave", json!({})).await;
    assert!(matches!(unknown, Err(CallError::NotFound { .. })), "{unknown:?}");
}

#[tokio::test]
async fn limits_hold() {
    let limits = Limits { wall: Duration::from_millis(100), ..Limits::default() };
    let plugin = TestHost::component(guests::MISBEHAVE).limits(limits).start().await.unwrap();
    let given_up = plugin.call("hang", json!({})).await;
    assert!(matches!(given_up, Err(CallError::Failed { failure: Failure::Deadline(_), .. })));
}

#[tokio::test]
async fn a_tool_beside_the_plugin_is_called_where_that_is_granted() {
    let plugin = TestHost::component(guests::CALLER)
        .shared()
        .beside(guests::TEXT_TOOLS)
        .grant("tools", ["text_tools__slug"])
        .grant("providers", ["none"])
        .grant("messaging", ["*"])
        .grant("memory", ["search"])
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
    let script = TestHost::script(script).config(json!({ "word": "hi" })).start().await.unwrap();
    assert_eq!(script.call("say", json!({})).await.unwrap().plain_text(), "hi");

    let server = TestHost::server(DEMO_SERVER, [""; 0]).start().await.unwrap();
    let said = server.call("echo", json!({ "text": "hi" })).await.unwrap();
    assert!(said.plain_text().contains("hi"), "{said:?}");
    server.shutdown().await;
}

/// A script that the test writes.
fn script(text: &str) -> (TestHost, tempfile::TempDir) {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("s.rhai");
    std::fs::write(&path, text).unwrap();
    (TestHost::script(path), folder)
}

#[tokio::test]
async fn a_script_is_told_the_time_of_the_test_and_keeps_it_for_its_session() {
    let (script, _folder) = script(
        r#"tool(#{ name: "mark", description: "d" }, |a| {
            let last = state.get("last");
            state.set("last", now());
            if last == () { "never" } else { `${timestamp() - parse_time(last)}` }
        });"#,
    );
    let clock = ManualClock::at("2026-01-31T08:30:00Z");
    let plugin = script.grant("state", ["session"]).clock(&clock).start().await.unwrap();
    let monday =
        plugin.with_caller(Caller { session_id: Some("monday".into()), ..Caller::default() });
    assert_eq!(monday.call("mark", json!({})).await.unwrap().plain_text(), "never");
    clock.advance(Duration::from_secs(3 * 60 * 60));
    assert_eq!(monday.call("mark", json!({})).await.unwrap().plain_text(), "3h");
    let last = plugin.state().get(Scope::Session("monday".into()), "last");
    assert_eq!(last, Some(json!("2026-01-31T11:30:00Z")));
    let of_none = plugin.call("mark", json!({})).await.unwrap();
    assert!(of_none.is_error && of_none.plain_text().contains("no session"), "{of_none:?}");
}

#[tokio::test]
async fn why_a_plugin_does_not_start_is_said() {
    let missing = TestHost::component("nowhere.wasm").start().await.err();
    assert!(matches!(missing, Some(StartError::File { .. })), "{missing:?}");
    let ungranted = TestHost::component(guests::CALLER).grant("tools", ["*"]).start().await;
    let said = ungranted.err().expect("it imports more").to_string();
    assert!(said.contains("is not granted; request it in plugin.toml with"), "{said}");
    let failing = TestHost::component(guests::MISBEHAVE).config(json!({ "register": "error" }));
    let Some(StartError::NotThere { state, reason, .. }) = failing.start().await.err() else {
        panic!("it does not start");
    };
    assert_eq!(state, PluginState::Failed);
    assert!(reason.contains("I would rather not"), "{reason}");
}
