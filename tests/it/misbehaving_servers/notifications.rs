//! What servers tell by themselves, more than anybody wants to hear.

use serde_json::json;
use std::time::Instant;
use tenon_host::Event;

use super::{Project, among, echoes};
use crate::support::{RUDE_SERVER, eventually, stderr, stdout, text};

// MCP.md: D5, F2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_news_is_thinned_and_the_answer_in_it_found() {
    let platform = among(&["storm"]).await;
    let mut events = platform.events();
    assert_eq!(text(&platform, "storm__rude", json!({})).await, "rude");
    echoes(&platform, "storm").await;
    echoes(&platform, "good").await;
    let (mut progress, mut updates, mut missed) = (Vec::new(), 0, 0);
    while let Some(event) = events.try_next() {
        match event {
            Event::Progress { progress: reached, .. } => progress.push(reached),
            Event::ResourceUpdated { .. } => updates += 1,
            Event::Missed { .. } => missed += 1,
            _ => {}
        }
    }
    assert_eq!(progress.first(), Some(&1.0), "{progress:?}");
    assert_eq!(progress.last(), Some(&1000.0), "{progress:?}");
    assert!(progress.len() < 500, "{}", progress.len());
    assert!(updates < 1000, "{updates}");
    assert_eq!(missed, 0);
    platform.clone().shutdown().await;
}

// MCP.md: E10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_that_a_server_learns_are_there_though_it_says_so_a_thousand_times() {
    let platform = among(&["grows"]).await;
    let mut events = platform.events();
    for learnt in ["grows__learnt_1", "grows__learnt_2"] {
        assert!(platform.registry().tool(learnt).is_none());
        assert_eq!(text(&platform, "grows__grow", json!({})).await, "grown");
        eventually("the new tool is there", || platform.registry().tool(learnt).is_some()).await;
        assert_eq!(text(&platform, learnt, json!({ "text": "new" })).await, "new");
    }
    let mut registrations = 0;
    while let Some(event) = events.try_next() {
        registrations += usize::from(matches!(event, Event::Registered { .. }));
    }
    assert!((2..=4).contains(&registrations), "{registrations}");
    echoes(&platform, "good").await;
    platform.clone().shutdown().await;
}

// MCP.md: F5
#[test]
fn what_a_server_logs_is_told_without_its_secret() {
    const SECRET: &str = "hush \"hush\" 123";
    let project = Project::new("");
    project.write(
        "tenon.toml",
        format!(
            "plugins.mcp = [{{ name = \"s\", command = {RUDE_SERVER:?}, args = [\"blabs\"], \
             env = {{ API_TOKEN = {SECRET:?} }} }}]"
        ),
    );
    let output = project.command(&["call", "s__rude", "{}"]).env("TENON_LOG", "debug").output();
    let output = output.unwrap();
    let said = stderr(&output);
    assert_eq!(stdout(&output), "rude\n", "{said}");
    assert!(said.contains("it is [redacted]"), "{said}");
    assert!(said.contains(r#"{"token":"[redacted]"}"#), "{said}");
    assert!(!said.contains("hush"), "{said}");
}

// MCP.md: F5
#[test]
fn what_a_server_logs_is_told_at_the_rate_of_its_limit() {
    let said = |limits: &str| {
        let began = Instant::now();
        let project = Project::new(&format!(
            "plugins.mcp = [{{ name = \"s\", command = {RUDE_SERVER:?}, args = [\"logs-much\"] }}]\n\
             {limits}"
        ));
        let output = project.command(&["call", "s__rude", "{}"]).env("TENON_LOG", "debug").output();
        let output = output.unwrap();
        assert_eq!(stdout(&output), "rude\n", "{}", stderr(&output));
        let told = |number: &usize| stderr(&output).contains(&format!("line {number}."));
        ((0..1000).filter(told).count(), began.elapsed().as_secs() as usize)
    };
    assert_eq!(said("limits.log_rate = 1000").0, 1000);
    // At once 5 seconds' worth, and what the seconds that it takes add to that.
    let (told, seconds) = said("limits.log_rate = 2");
    assert!((10..=10 + 2 * (seconds + 1)).contains(&told), "{told} in {seconds} s");
}
