//! What a host owes to those who call servers, whatever these say of themselves.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use tenon_host::history::{self, Query};
use tenon_host::meta::OUTPUT_MISMATCH;
use tenon_host::services::PinFile;
use tenon_host::types::{ArgumentCompletion, CompletionReference, mcp_json};
use tenon_host::{Call, Caller};

use super::{Project, among, configuration, echoes};
use crate::support::{
    DEMO_SERVER, RunningPlatform, SCRIPTED_SERVER, call, call_within, failure, processes_with,
    stdout, text,
};

// MCP.md: C14
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_the_name_of_another_is_the_one_that_its_entry_says() {
    let rules = "tools.good__echo.enabled = false\ntools.impostor__rude.enabled = false\n";
    let servers = configuration(&["impostor"], "");
    let project = Project::new(&format!("{rules}{servers}"));
    let pins = project.path("pins.json");
    let builder = project.builder().pins(PinFile::new(pins.clone()));
    let platform = RunningPlatform::new(builder.build().await.unwrap(), project);
    // It says so, and nothing follows from it.
    let registry = platform.registry();
    let identity = registry.plugin("impostor").unwrap().identity();
    assert_eq!((&*identity.name, &*identity.version), ("good", "9"));
    echoes(&platform, "impostor").await;
    for tool in ["good__echo", "impostor__rude"] {
        assert_eq!(failure(&platform, tool, json!({})).await.code(), "disabled", "{tool}");
    }
    assert_eq!(failure(&platform, "good__rude", json!({})).await.code(), "not-found");
    for server in ["impostor", "good"] {
        let breaker = platform.server(server).unwrap().breaker;
        assert_eq!(breaker, format!("ext:stdio:{server}"));
    }
    platform.clone().shutdown().await;
    let pinned: Value = serde_json::from_slice(&std::fs::read(pins).unwrap()).unwrap();
    let tools = pinned["pins"].as_array().unwrap().iter().map(|pinned| {
        let tools = pinned["definitions"]["tool"].as_object().unwrap();
        let tools = tools.keys().map(String::as_str).collect::<Vec<_>>();
        (pinned["plugin"].as_str().unwrap(), tools)
    });
    let expected = [("good", vec!["echo", "meta"]), ("impostor", vec!["echo", "rude"])];
    assert_eq!(tools.collect::<BTreeMap<_, _>>(), expected.into());
}

// MCP.md: A11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_lives_on_whichever_session_calls_it_ends_or_is_given_up() {
    let project = Project::new("");
    let mark = format!("TENON_TEST_{}", project.path("").display());
    project.write(
        "tenon.toml",
        format!(
            "plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?}, env = {{ MARK = {mark:?} }} }}]"
        ),
    );
    let platform = project.platform().await;
    let process = processes_with(&mark);
    assert_eq!(process.len(), 1, "{process:?}");
    for session in [Some("one"), Some("two"), None, Some("one")] {
        let caller =
            |timeout| Caller { session_id: session.map(Into::into), timeout, ..Caller::default() };
        let of = |name: &str, arguments, timeout| {
            platform.call(Call { name: name.into(), arguments, caller: caller(timeout) })
        };
        let said = of("s__echo", json!({ "text": "x" }), None).await.unwrap();
        assert_eq!(said.plain_text(), "x");
        // One is given up when its time is over, and one by being dropped.
        assert!(of("s__hang", json!({}), Some(Duration::from_millis(50))).await.is_err());
        let mut dropped = Box::pin(of("s__hang", json!({}), None));
        let beside = of("s__echo", json!({ "text": "y" }), None);
        tokio::select! {
            biased;
            ended = &mut dropped => panic!("{ended:?}"),
            said = beside => assert_eq!(said.unwrap().plain_text(), "y"),
        }
        drop(dropped);
        assert_eq!(processes_with(&mark), process, "{session:?}");
    }
    assert_eq!(text(&platform, "s__echo", json!({ "text": "z" })).await, "z");
    assert_eq!(platform.server("s").unwrap().starts, 1);
    assert_eq!(processes_with(&mark), process);
    platform.clone().shutdown().await;
}

// MCP.md: E6, E8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_a_server_are_shown_stopped_checked_timed_and_recorded() {
    let servers = configuration(&["careless"], "");
    let project = Project::new(&format!("{servers}\nplugins.scripts = [\"guard.rhai\"]"));
    project.write(
        "guard.rhai",
        r#"fn BeforeToolCall(context) {
               if context.arguments.text == "delete" { return veto("not " + context.arguments.text); }
           }"#,
    );
    let state = project.path("state");
    let platform =
        RunningPlatform::new(project.builder().state(&state).build().await.unwrap(), project);
    let vetoed = failure(&platform, "careless__echo", json!({ "text": "delete" })).await;
    assert_eq!(vetoed.code(), "vetoed");
    assert!(vetoed.to_string().contains("plugin \"guard\" vetoed it: not delete"), "{vetoed}");
    echoes(&platform, "careless").await;
    let wrong = call(&platform, "careless__wrong", json!({})).await.unwrap();
    assert_eq!(wrong.plain_text(), "thirteen");
    let marked = mcp_json::tool_result(&wrong)["_meta"][OUTPUT_MISMATCH].clone();
    assert!(marked.as_str().is_some_and(|why| why.starts_with("at /sum: ")), "{marked}");
    let timeout = Duration::from_millis(100);
    let late = call_within(&platform, "careless__silent", json!({}), timeout).await.unwrap_err();
    assert!(late.to_string().contains("no answer within 100ms"), "{late}");
    platform.clone().shutdown().await;
    let of_server = Query { plugin: Some("careless".into()), ..Query::default() };
    let records = history::read(&state, &of_server).unwrap();
    let recorded = records.iter().map(|of| {
        let plugin = of.plugin.as_deref().unwrap_or_default();
        (plugin, of.tool.as_str(), of.arguments.clone(), &*of.outcome)
    });
    let expected = [
        ("careless", "careless__echo", json!({ "text": "delete" }), "vetoed"),
        ("careless", "careless__echo", json!({ "text": "careless" }), "ok"),
        ("careless", "careless__wrong", json!({}), "ok"),
        ("careless", "careless__silent", json!({}), "deadline"),
    ];
    assert_eq!(recorded.collect::<Vec<_>>(), expected);
}

// MCP.md: F4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_completes_learns_what_was_filled_in_before_if_anything_was() {
    let platform = among(&["completes"]).await;
    let asked = async |filled: &[(&str, &str)]| -> Value {
        let filled = filled.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let blank = ArgumentCompletion {
            reference: CompletionReference::Prompt("p".into()),
            name: "a".into(),
            value: "v".into(),
            others: filled.collect(),
        };
        let suggested = platform.suggest("completes", blank, &Caller::default()).await.unwrap();
        assert!(suggested.values.len() == 1 && !suggested.has_more, "{suggested:?}");
        serde_json::from_str(&suggested.values[0]).unwrap()
    };
    let mut expected = json!({
        "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "v" },
    });
    let without_meta = |mut params: Value| {
        params.as_object_mut().unwrap().remove("_meta");
        params
    };
    assert_eq!(without_meta(asked(&[]).await), expected);
    expected["context"] = json!({ "arguments": { "b": "w" } });
    assert_eq!(without_meta(asked(&[("b", "w")]).await), expected);
    platform.clone().shutdown().await;
}

// MCP.md: F6
#[test]
fn icons_are_passed_on_and_never_fetched() {
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    web.set_nonblocking(true).unwrap();
    let address = web.local_addr().unwrap();
    let icons = json!([{ "src": format!("http://{address}/icon.png") }]);
    let project = Project::new("");
    let script = json!({
        "tools/list": { "tools": [{ "name": "t", "inputSchema": { "type": "object" }, "icons": icons }] },
        "tools/call": { "content": [{ "type": "resource_link", "uri": "a:b", "name": "n", "icons": icons }] },
        "resources/list": { "resources": [{ "uri": "a:b", "name": "n", "icons": icons }] },
        "prompts/list": { "prompts": [{ "name": "p", "icons": icons }] },
    });
    project.write("script.json", script.to_string());
    let script = project.path("script.json");
    project.write(
        "tenon.toml",
        format!(
            "plugins.mcp = [{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [{script:?}] }}]"
        ),
    );
    for arguments in [
        &["tools"][..],
        &["call", "s__t", "{}"],
        &["resources", "list", "s"],
        &["prompts", "list", "s"],
    ] {
        let said = stdout(&project.tenon(&[&["--json"], arguments].concat()));
        assert!(said.contains(&format!("http://{address}/icon.png")), "{arguments:?}: {said}");
    }
    let untouched = web.accept().expect_err("nobody has come for the icon");
    assert_eq!(untouched.kind(), ErrorKind::WouldBlock);
    // Whoever does would be seen.
    let _visitor = TcpStream::connect(address).unwrap();
    assert!(web.accept().is_ok());
}
