//! Servers of one era of the protocol only.

use serde_json::json;
use tenon_host::types::ResourceBody;
use tenon_host::{Caller, PluginState};

use super::{among, detail, echoes};
use crate::support::{eventually, failure, text};

// MCP.md: C10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_either_era_work() {
    let platform = among(&["old", "modern", "modern-dies", "modern-twice", "ahead"]).await;
    for (habit, revision, starts) in [
        ("old", "2025-11-25", 1),
        ("modern", "2026-07-28", 1),
        // It ended when it was asked in the words of the older era.
        ("modern-dies", "2026-07-28", 2),
        ("modern-twice", "2026-07-28", 1),
        ("good", "2025-11-25", 1),
    ] {
        assert_eq!(detail(&platform, habit), (PluginState::Ready, String::new()), "{habit}");
        echoes(&platform, habit).await;
        let report = platform.server(habit).unwrap();
        assert_eq!(
            (report.revision.as_deref(), report.starts),
            (Some(revision), starts),
            "{habit}"
        );
    }
    let (state, why) = detail(&platform, "ahead");
    assert_eq!(state, PluginState::Failed);
    assert!(why.contains("2099-12-31") && why.contains("2026-07-28"), "{why}");
    platform.clone().shutdown().await;
}

// MCP.md: E10, E14
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_the_newer_era_says_what_it_needs_and_what_it_learns() {
    let platform = among(&["modern"]).await;
    // Nobody is there to be asked.
    let said = text(&platform, "modern__ask", json!({})).await;
    assert_eq!(said, r#"[{"action":"cancel"},true]"#);
    assert_eq!(text(&platform, "modern__slow", json!({})).await, r#"{"who":{"action":"cancel"}}"#);
    let error = failure(&platform, "modern__sample", json!({})).await.to_string();
    assert!(error.contains("asks for sampling/createMessage before it answers"), "{error}");
    let odd = failure(&platform, "modern__odd", json!({})).await.to_string();
    assert!(odd.contains("of the unknown type \"odd\""), "{odd}");
    assert_eq!(text(&platform, "modern__grow", json!({})).await, "grown");
    eventually("the new tool is there", || platform.registry().tool("modern__learnt").is_some())
        .await;
    assert_eq!(text(&platform, "modern__learnt", json!({ "text": "new" })).await, "new");
    assert_eq!(platform.server("modern").unwrap().starts, 1);
    platform.clone().shutdown().await;
}

// MCP.md: C15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_needs_and_this_host_lacks_is_named_and_it_is_called_once() {
    let platform = among(&["modern"]).await;
    // The server counts.
    for call in 1..=2 {
        let error = failure(&platform, "modern__lacks", json!({})).await.to_string();
        let expected = format!("the server needs what this host does not have: call {call} needs");
        assert!(error.contains(&expected), "{error}");
        assert!(error.contains(r#"{"requiredCapabilities":{"sampling":{}}}"#), "{error}");
    }
    echoes(&platform, "modern").await;
    assert_eq!(platform.server("modern").unwrap().starts, 1);
    platform.clone().shutdown().await;
}

// MCP.md: E14
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_says_to_be_fresh_is_asked_for_each_time() {
    let platform = among(&["modern-fresh"]).await;
    let caller = Caller::default();
    let mut said = Vec::new();
    for _ in 0..2 {
        let listed = platform.resources("modern-fresh", &caller).await.unwrap();
        said.push(listed[0].link.name.clone());
        let read = platform.read_resource("modern-fresh", "a:b", &caller).await.unwrap();
        let ResourceBody::Text(text) = &read[0].body else { panic!("{read:?}") };
        said.push(text.clone());
    }
    let mut numbers: Vec<u32> = said.iter().map(|said| said.parse().unwrap()).collect();
    numbers.dedup();
    assert!(numbers.len() == 4 && numbers.is_sorted(), "{said:?}");
    platform.clone().shutdown().await;
}
