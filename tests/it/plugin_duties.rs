//! What is expected of every plugin, of whatever kind and in whatever language: one with the tools
//! `echo`, `fail` and `hang`, and the id `subject`.

use serde_json::json;
use std::time::{Duration, Instant};
use tenon_host::meta::USAGE;
use tenon_host::types::mcp_json;
use tenon_host::{CallError, Failure, Platform, PluginKind, PluginState, Usage};

use crate::support::{call, call_within, failure, text};

/// Passes the names of all expectations to a macro, behind what that needs to know.
macro_rules! expectations {
    ($then:ident! $($with:tt)*) => {
        $then! {
            $($with)*
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
    };
}
pub(crate) use expectations;

pub(crate) async fn it_registers_and_lists_its_tools(platform: Platform) {
    assert_eq!(platform.plugins()[0].state, PluginState::Ready, "{:?}", platform.plugins());
    let registry = platform.registry();
    for name in ["subject__echo", "subject__fail", "subject__hang"] {
        let (plugin, tool) = registry.tool(name).expect("the tool is listed");
        assert_eq!(&**plugin.id(), "subject");
        assert!(!tool.definition.description.is_empty());
    }
}

pub(crate) async fn a_call_is_answered(platform: Platform) {
    for said in ["hello", "", "ä\n\"quoted\"\u{1f980}", &"long ".repeat(20_000)] {
        assert_eq!(text(&platform, "subject__echo", json!({ "text": said })).await, said);
    }
}

pub(crate) async fn bad_arguments_do_not_reach_it(platform: Platform) {
    for bad in [json!({ "text": 3 }), json!([1]), json!(null)] {
        let error = failure(&platform, "subject__echo", bad.clone()).await;
        assert!(matches!(error, CallError::InvalidInput { .. }), "{bad}: {error}");
    }
    let error = failure(&platform, "subject__echo", json!({ "text": 3 })).await;
    assert!(error.to_string().contains("at /text: 3 is not of type"), "{error}");
}

pub(crate) async fn an_unknown_tool_is_not_found(platform: Platform) {
    let error = failure(&platform, "subject__ehco", json!({})).await;
    assert!(
        matches!(&error, CallError::NotFound { nearest: Some(near), .. } if near == "subject__echo"),
        "{error}"
    );
}

// MCP.md: E7
pub(crate) async fn an_error_answer_is_a_result(platform: Platform) {
    let result = call(&platform, "subject__fail", json!({ "text": "not today" })).await;
    let result = result.expect("the call is answered");
    assert!(result.is_error);
    assert_eq!(result.plain_text(), "not today");
}

pub(crate) async fn it_says_what_a_call_has_used(platform: Platform) {
    let arguments = json!({ "text": "hello" });
    let result = call(&platform, "subject__echo", arguments).await.expect("it is answered");
    let form = mcp_json::tool_result(&result);
    let usage: Usage = serde_json::from_value(form["_meta"][USAGE].clone()).expect("it is there");
    let Usage { wall_micros, cpu_micros, host_calls, bytes_in, bytes_out, attempts, .. } = usage;
    assert!(wall_micros > 0);
    assert_eq!((bytes_in, attempts), (16, 1));
    assert!(bytes_out >= 5);
    // Of its own code the host cannot tell.
    let kind = platform.plugins()[0].kind;
    assert_eq!(cpu_micros.is_some(), kind != PluginKind::Builtin, "{usage:?}");
    assert!(cpu_micros.is_none_or(|cpu| cpu <= wall_micros), "{usage:?}");
    // A server has no host to call.
    let calls_the_host = matches!(kind, PluginKind::Wasm | PluginKind::Rhai);
    assert_eq!(host_calls.is_some(), calls_the_host, "{usage:?}");
}

pub(crate) async fn a_timeout_gives_the_call_up_and_the_next_one_works(platform: Platform) {
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

pub(crate) async fn concurrent_calls_get_their_own_answers(platform: Platform) {
    let calls = (0..64).map(|i| {
        let platform = platform.clone();
        async move {
            let said = format!("call {i}");
            assert_eq!(text(&platform, "subject__echo", json!({ "text": said })).await, said);
        }
    });
    futures::future::join_all(calls).await;
}

pub(crate) async fn a_dropped_call_costs_nobody_else(platform: Platform) {
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

pub(crate) async fn it_is_unloaded(platform: Platform) {
    let other = platform.clone();
    assert_eq!(text(&platform, "subject__echo", json!({ "text": "x" })).await, "x");
    platform.shutdown().await;
    let error = failure(&other, "subject__echo", json!({ "text": "x" })).await;
    assert!(matches!(error, CallError::NotFound { .. }));
}
