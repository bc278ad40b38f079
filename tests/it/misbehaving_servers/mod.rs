//! Servers without manners. Whatever one does, it is borne or named, its next call works where one
//! can, and the server beside it notices nothing.

mod asking;
mod call_duties;
mod crowd;
mod ending;
mod notifications;
mod single_era;

use serde_json::json;
use std::time::Duration;
use tenon_host::PluginState;
use tenon_host::types::mcp_json;

use crate::support::{Project, RUDE_SERVER, RunningPlatform, call, call_within, failure, text};
use ExpectedAnswer::{Fails, Said};

/// The longest message in these tests.
const CAP: usize = 512 << 10;

/// An entry for a server with a habit, under the name of the habit; without one it is `good`.
fn entry(habit: &str) -> String {
    let name = if habit.is_empty() { "good" } else { habit };
    format!(
        "{{ name = {name:?}, command = {RUDE_SERVER:?}, args = [{habit:?}], startup_timeout = \"20s\" }}"
    )
}

/// A configuration of servers with these habits, and one that behaves beside them.
fn configuration(habits: &[&str], supervision: &str) -> String {
    let entries: Vec<_> = habits.iter().chain([&""]).map(|habit| entry(habit)).collect();
    format!(
        "supervision = {{ max_message = {CAP}, shutdown_grace = \"1s\"{supervision} }}\n\
         plugins.mcp = [{}]",
        entries.join(", ")
    )
}

async fn among(habits: &[&str]) -> RunningPlatform {
    Project::new(&configuration(habits, "")).platform().await
}

/// The detail that a plugin is reported with.
fn detail(platform: &RunningPlatform, plugin: &str) -> (PluginState, String) {
    let reports = platform.plugins();
    let report = reports.iter().find(|report| report.plugin == plugin).expect("it is reported");
    (report.state, report.detail.clone().unwrap_or_default())
}

async fn echoes(platform: &RunningPlatform, plugin: &str) {
    let said = text(platform, &format!("{plugin}__echo"), json!({ "text": plugin })).await;
    assert_eq!(said, plugin);
}

/// What comes of a call of the tool `rude`.
enum ExpectedAnswer {
    /// A result with this text.
    Said(&'static str),
    /// An error whose text has this in it.
    Fails(&'static str),
}

/// Calls the tool `rude` of a server with each habit, all at a time. After it each still echoes,
/// and none was started again.
async fn check(rows: &[(&str, ExpectedAnswer)]) {
    let habits: Vec<_> = rows.iter().map(|(habit, _)| *habit).collect();
    let platform = among(&habits).await;
    let checks = rows.iter().map(async |(habit, comes)| {
        let tool = format!("{habit}__rude");
        let result = call_within(&platform, &tool, json!({}), Duration::from_secs(20)).await;
        match (comes, result) {
            (Said(expected), Ok(result)) => assert_eq!(result.plain_text(), *expected, "{habit}"),
            (Fails(expected), Err(error)) => {
                let said = error.to_string();
                assert!(said.contains(expected), "{habit}: {said}");
            }
            (_, result) => panic!("{habit}: {result:?}"),
        }
        echoes(&platform, habit).await;
        assert_eq!(platform.server(habit).unwrap().starts, 1, "{habit}");
    });
    futures::future::join_all(checks).await;
    echoes(&platform, "good").await;
    platform.clone().shutdown().await;
}

// MCP.md: A4, A6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_that_are_not_as_they_should_be_are_read() {
    check(&[
        ("crlf", Said("rude")),
        ("bom", Said("rude")),
        ("split", Said("r\u{fc}d\u{20ac} \u{1f980}")),
        ("latin", Said("r\u{fffd}de")),
        ("loud", Said("rude")),
    ])
    .await;
}

// MCP.md: A7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_too_long_costs_its_call() {
    check(&[
        ("giant", Fails("longer than the limit")),
        ("giant-back", Fails("longer than the limit")),
        ("endless", Fails("longer than the limit")),
    ])
    .await;
}

// MCP.md: A7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_is_followed_no_deeper_than_it_is_safe() {
    check(&[
        ("deep-structure", Fails("/structuredContent: not JSON: recursion limit exceeded")),
        ("deep-extra", Said("rude")),
        ("deep-error", Fails("rude")),
        ("deep-news", Said("rude")),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_that_nobody_can_read_is_text() {
    let platform = among(&["deep-block"]).await;
    let result = call(&platform, "deep-block__rude", json!({})).await.unwrap();
    let text = result.plain_text();
    assert!(text.starts_with(r#"{"type":"new","x":[[["#), "{}", &text[..100]);
    platform.clone().shutdown().await;
}

// MCP.md: B2, B3, B4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_for_who_asked_and_for_once() {
    check(&[
        ("float-id", Said("rude")),
        ("string-id", Said("rude")),
        ("null-id", Fails("what? (code -32700)")),
        ("wrong-id", Said("rude")),
        ("twice", Said("rude")),
        ("two-ids", Said("rude")),
        ("both", Fails("it has both a result and an error")),
        ("neither", Fails("it has neither a result nor an error")),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_another_form_is_named() {
    check(&[
        ("plain-error", Fails("\"rude\"")),
        ("odd-error", Fails("E_RUDE")),
        ("plain-result", Fails("the server's answer is invalid")),
        ("plain-content", Fails("the server's answer is invalid: \"content\"")),
        ("odd-blocks", Said("bare\n3\nrude")),
    ])
    .await;
}

// MCP.md: A5, A8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_message_is_skipped_and_counted() {
    let platform = among(&["noisy", "batch"]).await;
    for habit in ["noisy", "batch"] {
        echoes(&platform, habit).await;
    }
    // The banner, and five lines around each of `initialize`, `initialized`, `tools/list` and the
    // call; an empty line or batch is nothing at all.
    let skipped = platform.server("noisy").unwrap().skipped_lines;
    assert_eq!(skipped, 2 + 4 * 4);
    assert_eq!(platform.server("good").unwrap().skipped_lines, 0);
    platform.clone().shutdown().await;
}

// MCP.md: E1, E3, E12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_read_as_far_as_they_make_sense() {
    let platform =
        among(&["pages", "circle", "spiral", "schemas", "deep-schema", "boasts", "shy"]).await;
    for habit in ["pages", "circle", "spiral", "schemas", "deep-schema", "shy"] {
        echoes(&platform, habit).await;
    }
    let registry = platform.registry();
    let tools = |plugin: &str| {
        let registered = registry.plugin(plugin).expect("it is there");
        let names = registered.tools().iter().map(|tool| tool.definition.name.as_str());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(tools("pages"), "echo one three two");
    assert_eq!(tools("circle"), "echo");
    assert_eq!(tools("spiral"), "echo");
    assert_eq!(tools("schemas"), "echo");
    // Who looks for what is not there is told.
    let left_out = |habit: &str| platform.server(habit).unwrap().left_out;
    assert_eq!(left_out("pages").len(), 2, "{:?}", left_out("pages"));
    assert!(left_out("pages")[0].contains("no-schema"), "{:?}", left_out("pages"));
    for habit in ["circle", "spiral"] {
        assert_eq!(left_out(habit), ["tools/list does not end; what it gave so far is kept"]);
    }
    assert!(left_out("shy").is_empty());
    assert_eq!(tools("deep-schema"), "echo");
    assert_eq!(tools("boasts"), "");
    assert_eq!(tools("shy"), "echo meta");
    platform.clone().shutdown().await;
}

// MCP.md: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_boasts_of_and_does_not_know_is_empty() {
    let platform = among(&["boasts"]).await;
    assert_eq!(detail(&platform, "boasts").0, PluginState::Ready);
    let caller = tenon_host::Caller::default();
    assert!(platform.resources("boasts", &caller).await.unwrap().is_empty());
    assert!(platform.resource_templates("boasts", &caller).await.unwrap().is_empty());
    assert!(platform.prompts("boasts", &caller).await.unwrap().is_empty());
    let read = platform.read_resource("boasts", "file:///a", &caller).await.unwrap_err();
    assert!(read.to_string().contains("the server reads no resources"), "{read}");
    let got = platform.prompt("boasts", "p", Vec::new(), &caller).await.unwrap_err();
    assert!(got.to_string().contains("the server has no prompts"), "{got}");
    let subscribed = platform.subscribe("boasts", "file:///a", &caller).await.unwrap_err();
    assert!(subscribed.to_string().contains("no resources/subscribe here"), "{subscribed}");
    echoes(&platform, "good").await;
    platform.clone().shutdown().await;
}

// MCP.md: D3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_what_was_given_up_is_ignored() {
    let platform = among(&["late"]).await;
    for _ in 0..3 {
        let wait = json!({ "text": "wait" });
        let timeout = Duration::from_millis(100);
        let error = call_within(&platform, "late__echo", wait, timeout).await.unwrap_err();
        assert!(error.to_string().contains("no answer within"), "{error}");
        echoes(&platform, "late").await;
    }
    assert_eq!(platform.server("late").unwrap().starts, 1);
    platform.clone().shutdown().await;
}

// MCP.md: E11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_must_be_a_task_is_called_as_one() {
    let platform = among(&["task"]).await;
    assert_eq!(text(&platform, "task__slow", json!({})).await, "done");
    echoes(&platform, "task").await;
    platform.clone().shutdown().await;
}

// MCP.md: B7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_blocks_are_passed_on_as_they_came() {
    let platform = among(&["odd-blocks"]).await;
    let result =
        mcp_json::tool_result(&call(&platform, "odd-blocks__rude", json!({})).await.unwrap());
    assert_eq!(result["content"][2], json!({ "type": "new", "x": 1 }));
    assert_eq!(result["isError"], false);
    let refused = failure(&platform, "good__none", json!({})).await.to_string();
    assert!(refused.contains("there is no tool"), "{refused}");
    platform.clone().shutdown().await;
}
