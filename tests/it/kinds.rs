//! One suite of expectations over every kind of plugin. That it needs no word about kinds is what
//! "one ABI" means.

use serde_json::json;
use std::future::pending;
use std::time::{Duration, Instant};
use tenon_host::invoke::USAGE;
use tenon_host::types::{ToolDefinition, ToolResult};
use tenon_host::{Builtin, CallError, Failure, Platform, PluginKind, PluginState, Usage, wire};

use crate::guests;
use crate::support::{DEMO_SERVER, Project, call, call_within, failure, text};

const SCRIPT: &str = r#"
    let schema = #{ type: "object", properties: #{ text: #{ type: "string" } } };
    tool(#{ name: "echo", description: "Echoes", schema: schema }, |a| a.text);
    tool(#{ name: "fail", description: "Fails", schema: schema }, |a| { throw a.text; });
    tool(#{ name: "hang", description: "Hangs", schema: schema }, |a| { loop {} });
"#;

fn builtin() -> Builtin {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let text = |arguments: String| {
        let arguments: serde_json::Value = serde_json::from_str(&arguments).unwrap_or_default();
        arguments["text"].as_str().unwrap_or_default().to_string()
    };
    Builtin::new("subject", "For tests")
        .tool(ToolDefinition::new("echo", "Echoes", &schema), move |arguments, _| async move {
            Ok(ToolResult::text(text(arguments)))
        })
        .tool(ToolDefinition::new("fail", "Fails", &schema), move |arguments, _| async move {
            Ok(ToolResult::error(text(arguments)))
        })
        .tool(ToolDefinition::new("hang", "Hangs", &schema), |_, _| pending())
}

/// A platform whose one plugin has the id `subject` and is of a kind.
async fn subject(kind: PluginKind, shared: bool) -> Platform {
    let mode = if shared { "shared" } else { "fresh" };
    let configuration = match kind {
        PluginKind::Wasm => format!(
            "plugins.wasm = [{{ path = {:?}, id = \"subject\", instance = {mode:?} }}]",
            guests::MISBEHAVE
        ),
        PluginKind::Mcp => {
            format!("plugins.mcp = [{{ name = \"subject\", command = {DEMO_SERVER:?} }}]")
        }
        PluginKind::Rhai => "plugins.scripts = [\"subject.rhai\"]\nlimits.cpu = \"1h\"".into(),
        PluginKind::Builtin => String::new(),
    };
    let project = Project::new(&configuration);
    project.write("subject.rhai", SCRIPT);
    let builder = project.builder();
    let builder = match kind {
        PluginKind::Builtin => builder.builtin("subject", builtin()),
        PluginKind::Wasm | PluginKind::Mcp | PluginKind::Rhai => builder,
    };
    builder.build().await.expect("the platform is built")
}

/// Makes a test of each expectation for each kind.
macro_rules! suite {
    ($($expectation:ident),* $(,)?) => {
        mod wasm_fresh {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $expectation() {
                super::$expectation(super::subject(super::PluginKind::Wasm, false).await).await;
            })*
        }
        mod wasm_shared {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $expectation() {
                super::$expectation(super::subject(super::PluginKind::Wasm, true).await).await;
            })*
        }
        mod mcp {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $expectation() {
                super::$expectation(super::subject(super::PluginKind::Mcp, true).await).await;
            })*
        }
        mod rhai {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $expectation() {
                super::$expectation(super::subject(super::PluginKind::Rhai, false).await).await;
            })*
        }
        mod builtin {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $expectation() {
                super::$expectation(super::subject(super::PluginKind::Builtin, false).await).await;
            })*
        }
    };
}

suite! {
    it_registers_and_lists_its_tools,
    a_call_is_answered,
    bad_arguments_do_not_reach_it,
    an_unknown_tool_is_not_found,
    an_error_answer_is_a_result,
    it_says_what_a_call_has_used,
    a_timeout_gives_the_call_up_and_the_next_one_works,
    concurrent_calls_get_their_own_answers,
    a_dropped_call_costs_nobody_else,
    it_is_unloaded,
}

async fn it_registers_and_lists_its_tools(platform: Platform) {
    assert_eq!(platform.plugins()[0].state, PluginState::Ready, "{:?}", platform.plugins());
    let registry = platform.registry();
    for name in ["subject__echo", "subject__fail", "subject__hang"] {
        let (plugin, tool) = registry.tool(name).expect("the tool is listed");
        assert_eq!(&**plugin.loaded().id(), "subject");
        assert!(!tool.definition.description.is_empty());
    }
}

async fn a_call_is_answered(platform: Platform) {
    for said in ["hello", "", "ä\n\"quoted\"\u{1f980}", &"long ".repeat(20_000)] {
        assert_eq!(text(&platform, "subject__echo", json!({ "text": said })).await, said);
    }
}

async fn bad_arguments_do_not_reach_it(platform: Platform) {
    for bad in [json!({ "text": 3 }), json!([1]), json!(null)] {
        let error = failure(&platform, "subject__echo", bad.clone()).await;
        assert!(matches!(error, CallError::InvalidInput { .. }), "{bad}: {error}");
    }
    let error = failure(&platform, "subject__echo", json!({ "text": 3 })).await;
    assert!(error.to_string().contains("at /text: 3 is not of type"), "{error}");
}

async fn an_unknown_tool_is_not_found(platform: Platform) {
    let error = failure(&platform, "subject__ehco", json!({})).await;
    assert!(
        matches!(&error, CallError::NotFound { nearest: Some(near), .. } if near == "subject__echo"),
        "{error}"
    );
}

async fn an_error_answer_is_a_result(platform: Platform) {
    let result = call(&platform, "subject__fail", json!({ "text": "not today" })).await;
    let result = result.expect("the call is answered");
    assert!(result.is_error);
    assert_eq!(result.plain_text(), "not today");
}

async fn it_says_what_a_call_has_used(platform: Platform) {
    let arguments = json!({ "text": "hello" });
    let result = call(&platform, "subject__echo", arguments).await.expect("it is answered");
    let form = wire::tool_result(&result);
    let usage: Usage = serde_json::from_value(form["_meta"][USAGE].clone()).expect("it is there");
    let Usage { wall_micros, cpu_micros, bytes_in, bytes_out, attempts, .. } = usage;
    assert!(wall_micros > 0);
    assert_eq!((bytes_in, attempts), (16, 1));
    assert!(bytes_out >= 5);
    // Of its own code the host cannot tell.
    let kind = platform.plugins()[0].kind;
    assert_eq!(cpu_micros.is_some(), kind != PluginKind::Builtin, "{usage:?}");
    assert!(cpu_micros.is_none_or(|cpu| cpu <= wall_micros), "{usage:?}");
}

async fn a_timeout_gives_the_call_up_and_the_next_one_works(platform: Platform) {
    let timeout = Duration::from_millis(200);
    let began = Instant::now();
    let result = call_within(&platform, "subject__hang", json!({}), timeout).await;
    assert!(
        matches!(result, Err(CallError::Failed { failure: Failure::Deadline(_), .. })),
        "{result:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(
        text(&platform, "subject__echo", json!({ "text": "still here" })).await,
        "still here"
    );
}

async fn concurrent_calls_get_their_own_answers(platform: Platform) {
    let calls = (0..64).map(|i| {
        let platform = platform.clone();
        async move {
            let said = format!("call {i}");
            assert_eq!(text(&platform, "subject__echo", json!({ "text": said })).await, said);
        }
    });
    futures::future::join_all(calls).await;
}

async fn a_dropped_call_costs_nobody_else(platform: Platform) {
    let hanging = tokio::spawn({
        let platform = platform.clone();
        async move { call(&platform, "subject__hang", json!({})).await }
    });
    let others = (0..8).map(|_| text(&platform, "subject__echo", json!({ "text": "x" })));
    let others = futures::future::join_all(others);
    hanging.abort();
    assert!(others.await.iter().all(|said| said == "x"));
    assert!(hanging.await.unwrap_err().is_cancelled());
    assert_eq!(text(&platform, "subject__echo", json!({ "text": "y" })).await, "y");
}

async fn it_is_unloaded(platform: Platform) {
    let other = platform.clone();
    assert_eq!(text(&platform, "subject__echo", json!({ "text": "x" })).await, "x");
    platform.shutdown().await;
    let error = failure(&other, "subject__echo", json!({ "text": "x" })).await;
    assert!(matches!(error, CallError::NotFound { .. }));
}
