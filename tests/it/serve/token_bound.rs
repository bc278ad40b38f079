//! How many tokens a model reads of the tools of profiles that do not list all.

use serde_json::{Value, json};
use std::fmt::Write as _;
use tenon_serve::{Profile, Settings, ToolMode};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::{modern, server_with};
use crate::support::Project;

/// The most tokens that such tools come to.
const MAX_TOKENS: usize = 900;

/// The tools that a client lists of so many, with a profile that offers them so.
async fn listed(mode: ToolMode, tools: usize) -> Vec<Value> {
    let project = Project::new("plugins.scripts = [\"many.rhai\"]");
    let mut script = String::new();
    for number in 0..tools {
        let _ = writeln!(
            script,
            r#"tool(#{{ name: "operation_{number}", description: "Does the operation {number} with a document",
            schema: #{{ type: "object", properties: #{{ path: #{{ type: "string" }} }}, required: ["path"] }} }}, |a| a.path);"#
        );
    }
    project.write("many.rhai", script);
    let change =
        |settings: &mut Settings| settings.profile = Profile { mode, ..Profile::default() };
    let (server, platform) = server_with(&project, change).await;
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let serving = tokio::spawn(async move {
        let (input, output) = tokio::io::split(theirs);
        server.serve_lines(None, BufReader::new(input), output, std::future::pending()).await
    });
    let (answers, mut requests) = tokio::io::split(ours);
    let list = modern(1, "tools/list", json!({}));
    requests.write_all(format!("{list}\n").as_bytes()).await.expect("it listens");
    let line = BufReader::new(answers).lines().next_line().await.expect("it answers");
    let answer: Value = serde_json::from_str(&line.expect("it answers")).expect("it is JSON");
    serving.abort();
    platform.shutdown().await;
    answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

#[tokio::test]
async fn tools_that_find_others_cost_a_model_no_more_than_900_tokens_however_many_there_are() {
    let tokenizer = tiktoken_rs::o200k_base().expect("it is part of the library");
    let tokens = |tools: &[Value]| tokenizer.encode_ordinary(&json!(tools).to_string()).len();
    for mode in [ToolMode::Search, ToolMode::Code] {
        let tools = listed(mode, 50).await;
        let tokens = tokens(&tools);
        assert!(tools.len() == 2 && tokens <= MAX_TOKENS, "{mode:?}: {tokens} tokens");
        assert_eq!(tools, listed(mode, 1).await, "{mode:?}");
    }
    // A list of all of them costs more.
    let all = listed(ToolMode::All, 50).await;
    assert!(all.len() == 50 && tokens(&all) > MAX_TOKENS, "{} tools", all.len());
}
