//! What rules of calls, the record and runs of scripts cost, and how many tokens a client reads of tools.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use tempfile::TempDir;
use tenon_host::runs::{CatalogFilter, RunOutcome};
use tenon_host::{Allocation, Builder, Call, Caller, Platform};
use tenon_serve::{AllClientFeatures, Profile, Server, Settings, ToolMode};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::table::Table;
use crate::{Row, arguments, guests, shown, versus};

/// The calls of the script, and those beside it.
const CALLS: usize = 20;

/// The rules of a policy.
const RULES: usize = 200;

/// The tools that a client would read of.
const TOOLS: usize = 500;

fn builder(configuration: &str) -> Builder {
    crate::builder(configuration, Allocation::OnDemand)
}

pub(crate) async fn all(rows: &mut Vec<Row>) {
    let plugin =
        format!("plugins.wasm = [{{ path = {:?}, instance = \"shared\" }}]\n", guests::TEXT_TOOLS);
    let fresh = format!("plugins.wasm = [{:?}]\n", guests::TEXT_TOOLS);
    let plain = builder(&plugin).build().await.expect("it is built");
    type Given = fn() -> Value;
    let kinds: [(&str, String, Given); 3] = [
        ("call under 200 rules for other tools", other_rules(), arguments),
        ("call under 200 rules for its tool", own_rules(), arguments),
        ("call under 200 rules of four kinds for its tool", mixed_rules(), numbered_arguments),
    ];
    for (what, rules, given) in kinds {
        let ruled = builder(&format!("{plugin}{rules}")).build().await.expect("it is built");
        let (with, without) = versus(
            31,
            2_000,
            async || call_with(&ruled, given()).await,
            async || call_with(&plain, given()).await,
        )
        .await;
        let added = shown(Some(with.saturating_sub(without)));
        rows.push(Row::new(format!("{what}, which add {added}"), (with, without), "without rules"));
        ruled.shutdown().await;
    }
    let folder = TempDir::new().expect("there is room");
    let recording = builder(&plugin).state(folder.path()).build().await.expect("it is built");
    let times = versus(31, 2_000, async || call(&recording).await, async || call(&plain).await);
    rows.push(Row::new("recorded call", times.await, "without a record"));
    for (what, builder) in [
        ("script of 0 calls", builder(&plugin)),
        ("script of 1 call", builder(&plugin)),
        ("script of 20 calls", builder(&plugin)),
        ("script of 20 calls, kept on disk", builder(&plugin).state(folder.path())),
        ("script of 20 calls, each on a new instance", builder(&fresh)),
        (
            "script of 20 calls, each on a new instance of the pool",
            crate::builder(&fresh, Allocation::Automatic),
        ),
    ] {
        let platform = builder.build().await.expect("it is built");
        let catalog = Arc::new(platform.catalog(CatalogFilter::default()));
        let runner = platform.runner(&catalog, Caller::default());
        let calls: usize =
            what.split(' ').find_map(|word| word.parse().ok()).expect("it says how many");
        let script = format!("for i in 0..{calls} {{ text_tools.slug(data); }}");
        let times = versus(
            31,
            100,
            async || {
                let report = runner.run(script.clone(), arguments()).await.expect("it runs");
                assert!(matches!(report.outcome, RunOutcome::Done(_)), "{report:?}");
            },
            async || {
                for _ in 0..CALLS {
                    call(&platform).await;
                }
            },
        );
        rows.push(Row::new(what, times.await, "20 calls"));
        platform.shutdown().await;
    }
    plain.shutdown().await;
    recording.shutdown().await;
}

async fn call(platform: &Platform) {
    call_with(platform, arguments()).await;
}

async fn call_with(platform: &Platform, given: Value) {
    let call = Call::new("text_tools__slug", given);
    black_box(platform.call(call).await.expect("it answers"));
}

fn other_rules() -> String {
    (0..RULES).fold(String::new(), |mut rules, number| {
        let _ = writeln!(rules, "tools.other{number}__x.approve = \"ask\"");
        rules
    })
}

/// Rules for the tool that is called, none of which fits its arguments.
fn own_rules() -> String {
    (0..RULES).fold(String::new(), |mut rules, number| {
        let _ = writeln!(
            rules,
            "[[tools.text_tools__slug.when]]\napprove = \"ask\"\narguments.\"/text\".equals = \"{number}\""
        );
        rules
    })
}

/// The [`arguments`], and a number.
fn numbered_arguments() -> Value {
    let mut all = arguments();
    all["max_length"] = 200.into();
    all
}

/// Rules for the tool that is called, a quarter of each kind. All of them are tried on [`numbered_arguments`], and none fits.
/// The texts that it would have to equal are as long as its argument and begin as it does: a glance does not tell them apart.
fn mixed_rules() -> String {
    let all = arguments();
    let text = all["text"].as_str().expect("it is a text");
    let beginning = &text[..text.len() - 3];
    (0..RULES).fold(String::new(), |mut rules, number| {
        let test = match number % 4 {
            0 => format!("\"/text\".equals = \"{beginning}{number:03}\""),
            1 => format!("\"/text\".glob = \"/work/{number}/**/*.txt\""),
            2 => format!("\"/text\".regex = \"The [a-z]+ {number}[0-9]* .+\""),
            _ => format!("\"/max_length\".min = {}", 1_000 + number),
        };
        let _ =
            writeln!(rules, "[[tools.text_tools__slug.when]]\napprove = \"ask\"\narguments.{test}");
        rules
    })
}

/// Prints how many tokens a client reads of many tools, and of those that find them.
pub(crate) async fn print_tokens() {
    let tokenizer = tiktoken_rs::o200k_base().expect("it is part of the library");
    let mut table = Table::new(
        "Tokens of the tools of a client (o200k_base), 500 tools of 10 plugins",
        ["listed", "tools", "tokens"],
    );
    for (what, mode) in [
        ("all", ToolMode::All),
        ("`search` and `call`", ToolMode::Search),
        ("`search` and `run`", ToolMode::Code),
    ] {
        let tools = listed(mode).await;
        let text = Value::from(tools.clone()).to_string();
        let tokens = tokenizer.encode_ordinary(&text).len();
        table.row([what.to_string(), tools.len().to_string(), tokens.to_string()]);
        assert!(mode == ToolMode::All || tokens <= 900, "{what} take {tokens} tokens");
    }
    table.print();
}

/// The tools that a client with such a profile lists.
async fn listed(mode: ToolMode) -> Vec<Value> {
    let folder = TempDir::new().expect("there is room");
    let mut scripts = Vec::new();
    for plugin in 0..10 {
        let mut script = String::new();
        for tool in 0..TOOLS / 10 {
            let _ = writeln!(
                script,
                r#"tool(#{{ name: "operation_{tool}", description: "Does the operation {tool} with a document, and says what came of it",
                schema: #{{ type: "object", properties: #{{ path: #{{ type: "string", description: "the document" }},
                limit: #{{ type: "integer", description: "how much of it" }} }}, required: ["path"] }} }}, |a| a.path);"#
            );
        }
        let path = folder.path().join(format!("plugin{plugin}.rhai"));
        std::fs::write(&path, script).expect("there is room");
        scripts.push(path);
    }
    let builder: Builder = builder(&format!("plugins.scripts = {scripts:?}"));
    let platform = builder.client_features(AllClientFeatures).build().await.expect("it is built");
    let settings = Settings::with_profile(Profile { mode, ..Profile::default() });
    let server = Server::new(platform.clone(), settings).expect("the settings are right");
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(async move {
        server.serve_lines(None, BufReader::new(input), output, std::future::pending()).await
    });
    let (answers, mut requests) = tokio::io::split(ours);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let list =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    requests.write_all(format!("{list}\n").as_bytes()).await.expect("it listens");
    let line = BufReader::new(answers).lines().next_line().await.expect("it answers");
    let answer: Value = serde_json::from_str(&line.expect("it answers")).expect("it is JSON");
    serving.abort();
    platform.shutdown().await;
    answer["result"]["tools"].as_array().expect("it is a list").clone()
}
