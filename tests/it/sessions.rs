//! Plugins with an instance for each session.

use serde_json::json;
use std::sync::Arc;
use tenon_host::services::GrantAll;
use tenon_host::types::ToolDefinition;
use tenon_host::{Builtin, Call, CallError, Caller};
use tokio::sync::Notify;

use crate::guests;
use crate::support::{Project, RunningPlatform};

/// A project with `keeper`, which counts its calls in memory.
fn project(limits: &str) -> Project {
    let project = Project::new("plugins.folders = [\"own\"]");
    project.write("own/keeper/keeper.wasm", std::fs::read(guests::KEEPER).unwrap());
    let manifest = format!(
        "plugin.id = \"keeper\"
         runtime = {{ kind = \"wasm\", path = \"keeper.wasm\", instance = \"session\" }}
         capabilities.tools = [\"*\"]
         [limits]
         {limits}"
    );
    project.write("own/keeper/plugin.toml", manifest);
    project
}

async fn keeping(limits: &str) -> RunningPlatform {
    let project = project(limits);
    let platform = project.builder().approver(GrantAll).build().await.expect("it is built");
    RunningPlatform::new(platform, project)
}

fn caller(session: Option<&str>) -> Caller {
    Caller { session_id: session.map(Into::into), ..Caller::default() }
}

/// What a session's instance has counted.
async fn count(platform: &RunningPlatform, session: Option<&str>) -> String {
    let call = Call { caller: caller(session), ..Call::new("keeper__count", json!({})) };
    platform.call(call).await.expect("it counts").plain_text()
}

#[tokio::test]
async fn what_an_instance_keeps_is_for_its_session_alone() {
    let platform = keeping("").await;
    assert_eq!(count(&platform, Some("a")).await, "1 calls, 0 dropped");
    assert_eq!(count(&platform, Some("a")).await, "2 calls, 0 dropped");
    assert_eq!(count(&platform, Some("b")).await, "1 calls, 0 dropped");
    assert_eq!(count(&platform, Some("a")).await, "3 calls, 0 dropped");
    // A call of no session shares nothing with any.
    assert_eq!(count(&platform, None).await, "1 calls, 0 dropped");
    assert_eq!(count(&platform, None).await, "1 calls, 0 dropped");
}

#[tokio::test]
async fn an_instance_ends_with_its_session() {
    let platform = keeping("").await;
    for session in ["a", "b"] {
        count(&platform, Some(session)).await;
    }
    platform.end_session("a").await.expect("nothing is kept");
    platform.end_session("unknown").await.expect("nothing is kept");
    assert_eq!(count(&platform, Some("a")).await, "1 calls, 0 dropped");
    assert_eq!(count(&platform, Some("b")).await, "2 calls, 0 dropped");
}

#[tokio::test]
async fn the_session_that_was_not_used_for_longest_makes_room() {
    let platform = keeping("sessions = 2").await;
    for session in ["a", "b", "a", "c"] {
        count(&platform, Some(session)).await;
    }
    assert_eq!(count(&platform, Some("a")).await, "3 calls, 0 dropped");
    assert_eq!(count(&platform, Some("b")).await, "1 calls, 0 dropped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_all_sessions_serve_calls_no_other_begins() {
    let (project, in_flight) = (project("sessions = 1"), Arc::new(Notify::new()));
    let arrived = in_flight.clone();
    let definition = ToolDefinition::new("arrive", "Waits", &json!({ "type": "object" }));
    let gate = Builtin::new("gate", "Waits").tool(definition, move |_, _| {
        arrived.notify_one();
        std::future::pending()
    });
    let platform = project.builder().builtin("gate", gate).approver(GrantAll).build().await;
    let platform = RunningPlatform::new(platform.expect("it is built"), project);
    let waiting = tokio::spawn({
        let platform = platform.clone();
        let arguments = json!({ "name": "gate__arrive", "arguments": {} });
        let call =
            Call { caller: caller(Some("a")), ..Call::new("keeper__wait_for_a_tool", arguments) };
        async move { platform.call(call).await }
    });
    in_flight.notified().await;
    let call = Call { caller: caller(Some("b")), ..Call::new("keeper__count", json!({})) };
    let error = platform.call(call).await.expect_err("there is no room");
    let CallError::Failed { failure, .. } = &error else { panic!("{error}") };
    let said = failure.to_string();
    assert!(said.contains("each of its 1 sessions has a call in flight"), "{said}");
    waiting.abort();
}
