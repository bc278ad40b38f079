//! Servers that end when they should not, or do not when they should.

use serde_json::json;
use std::time::{Duration, Instant};
use tenon_host::PluginState;

use super::{Project, among, configuration, detail, echoes};
use crate::support::{RUDE_SERVER, call, call_within, eventually, failure, processes_with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_fails_says_why() {
    let rows = [
        ("dies", "exited with code 7; its last words:\ncannot find my configuration"),
        ("dies-aloud", "exited with code 6; its last words:\nusage: dies-aloud [OPTIONS]"),
        ("dies-listing", "exited with code 8; its last words:\nwhat tools?"),
        ("closes-first", "the server closed its output"),
        ("refuses", "no licence (code -32603); its last words:\nthe licence has run out"),
        ("foreign", "speaks the revision 2099-12-31"),
        ("no-list", "the server's list is invalid: it has no \"tools\""),
    ];
    let platform = among(&rows.map(|(habit, _)| habit)).await;
    for (habit, expected) in rows {
        let (state, why) = detail(&platform, habit);
        assert_eq!(state, PluginState::Failed, "{habit}");
        assert!(why.contains(expected), "{habit}: {why}");
    }
    echoes(&platform, "good").await;
    platform.clone().shutdown().await;
}

/// What it lacks it would lack again, whatever it is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_with_an_error_is_not_started_for_the_other_era() {
    let project = Project::new("");
    let diary = project.path("diary");
    project.write(
        "tenon.toml",
        format!("plugins.mcp = [{{ name = \"s\", command = {RUDE_SERVER:?}, args = [\"dies-noting\", {diary:?}] }}]"),
    );
    let platform = project.platform().await;
    let (state, why) = detail(&platform, "s");
    assert_eq!(state, PluginState::Failed);
    assert!(why.contains("exited with code 5"), "{why}");
    assert_eq!(std::fs::read_to_string(&diary).unwrap(), "started\n");
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_at_its_start_is_waited_for_no_longer_than_it_may_take() {
    let rows = [("silent", "answer the handshake"), ("silent-listing", "list its tools")];
    let configuration = configuration(&rows.map(|(habit, _)| habit), "");
    let platform = Project::new(&configuration.replacen("20s", "1s", 2)).platform().await;
    for (habit, step) in rows {
        let (state, why) = detail(&platform, habit);
        assert_eq!(state, PluginState::Failed, "{habit}");
        assert_eq!(
            why,
            format!("unavailable: the server did not {step} within 1000 ms"),
            "{habit}"
        );
    }
    echoes(&platform, "good").await;
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_up_last_is_cancelled_before_the_end() {
    const CALLS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let diary = folder.path().join("diary");
    let entry = format!(
        "plugins.mcp = [{{ name = \"s\", command = {RUDE_SERVER:?}, args = [\"diary\", {diary:?}] }}]"
    );
    let platform = Project::new(&entry).platform().await;
    let calls: Vec<_> = (0..CALLS)
        .map(|_| {
            let platform = (*platform).clone();
            tokio::spawn(async move { call(&platform, "s__echo", json!({})).await })
        })
        .collect();
    let noted = |what: &str| {
        let diary = std::fs::read_to_string(&diary).unwrap_or_default();
        diary.lines().filter(|line| *line == what).count()
    };
    eventually("the server has all calls", || noted("tools/call") == CALLS).await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    platform.clone().shutdown().await;
    assert_eq!(noted("notifications/cancelled"), CALLS);
    assert_eq!(noted("end"), 1);
}

// MCP.md: A13
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_a_server_does_not_survive_says_why_and_the_next_starts_it() {
    let rows = [
        ("dies-calling", "exited with code 9; its last words:\nnot that one"),
        ("dies-speaking", "exited with code 10"),
        ("aborts", "was ended by signal 6"),
        ("closes", "the server closed its output"),
        ("heir", "exited with code 11"),
    ];
    let platform = among(&rows.map(|(habit, _)| habit)).await;
    let checks = rows.map(async |(habit, expected)| {
        let began = Instant::now();
        let error = failure(&platform, &format!("{habit}__rude"), json!({})).await.to_string();
        assert!(error.contains(expected), "{habit}: {error}");
        // Not by a limit of time, of which the least is thirty seconds.
        assert!(began.elapsed() < Duration::from_secs(15), "{habit}: {:?}", began.elapsed());
        echoes(&platform, habit).await;
        assert_eq!(platform.server(habit).unwrap().starts, 2, "{habit}");
    });
    futures::future::join_all(checks).await;
    echoes(&platform, "good").await;
    assert_eq!(platform.server("good").unwrap().starts, 1);
    platform.clone().shutdown().await;
}

// MCP.md: A12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_read_holds_nobody_else_up() {
    let project = Project::new(&configuration(&["deaf", "deaf-and-loud"], ""));
    let mark = format!("TENON_TEST_{}", project.path("").display());
    let configuration = std::fs::read_to_string(project.path("tenon.toml")).unwrap();
    let marked = configuration.replace("startup", &format!("env = {{ MARK = {mark:?} }}, startup"));
    project.write("tenon.toml", marked);
    let platform = project.platform().await;
    for habit in ["deaf", "deaf-and-loud"] {
        let timeout = Duration::from_millis(500);
        let tool = format!("{habit}__rude");
        let rude = call_within(&platform, &tool, json!({}), timeout);
        // More than any pipe holds.
        let long = json!({ "text": "x".repeat(1 << 20) });
        let echo = format!("{habit}__echo");
        let calls = (0..3).map(|_| call_within(&platform, &echo, long.clone(), timeout));
        let (rude, echoed) = tokio::join!(rude, futures::future::join_all(calls));
        for result in [rude].into_iter().chain(echoed) {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("no answer within"), "{habit}: {error}");
        }
        echoes(&platform, "good").await;
    }
    platform.clone().shutdown().await;
    eventually("no process is left", || processes_with(&mark).is_empty()).await;
}

// MCP.md: A10, E2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_a_server_dies_of_is_made_again_only_where_its_operator_says_so() {
    // Whatever the server says of its tool.
    let attempts = |more: &str| {
        format!("tools.s__rude = {{ max_attempts = 3, retry_backoff = \"1ms\"{more} }}")
    };
    let rows = [
        (String::new(), 1),
        (attempts(""), 1),
        (attempts(", side_effects = \"repeated\""), 1),
        (attempts(", side_effects = \"none\""), 3),
        (attempts(", side_effects = \"idempotent\""), 3),
    ];
    for (rule, expected) in rows {
        let project = Project::new("");
        let diary = project.path("diary");
        project.write(
            "tenon.toml",
            format!(
                "{rule}\nsupervision = {{ backoff = \"1ms\", max_backoff = \"1ms\", breaker_failures = 100 }}\n\
                 plugins.mcp = [{{ name = \"s\", command = {RUDE_SERVER:?}, args = [\"dies-noting-calls\", {diary:?}] }}]"
            ),
        );
        let platform = project.platform().await;
        let error = failure(&platform, "s__rude", json!({})).await.to_string();
        assert!(error.contains("exited with code 9"), "{rule}: {error}");
        // Nor is it made when the server is there again.
        echoes(&platform, "s").await;
        let heard = std::fs::read_to_string(&diary).unwrap();
        assert_eq!(heard, "called\n".repeat(expected), "{rule}");
        platform.clone().shutdown().await;
    }
}
