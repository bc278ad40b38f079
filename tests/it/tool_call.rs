//! The way of a tool call: what each step makes of it, whatever the kind of plugin.

use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tenon_host::meta::OUTPUT_MISMATCH;
use tenon_host::types::{Error, HookDecision, HookPoint, ToolDefinition, ToolResult, mcp_json};
use tenon_host::{Builtin, CallError};

use crate::guests;
use crate::support::{Project, RunningPlatform, call, call_within, failure, text};

// MCP.md: E6
#[tokio::test]
async fn a_result_that_is_not_what_its_schema_promised_is_marked_and_kept() {
    let project = Project::new("limits.output_kib = 1\nplugins.scripts = [\"sums.rhai\"]");
    let schema =
        "#{ type: \"object\", properties: #{ sum: #{ type: \"integer\" } }, required: [\"sum\"] }";
    let tool = |name: &str, body: &str| {
        format!(
            "tool(#{{ name: {name:?}, description: \"d\", output_schema: {schema} }}, |a| {body});\n"
        )
    };
    let script = [
        tool("right", "#{ sum: 13 }"),
        tool("wrong", "#{ sum: \"thirteen\" }"),
        tool("none", "\"thirteen\""),
        tool("long", &format!("#{{ sum: {:?} }}", "x".repeat(2 << 10))),
        tool("sorry", "throw \"cannot count\""),
    ];
    project.write("sums.rhai", script.concat());
    let platform = project.platform().await;
    let check = async |name: &str, expected: Option<&str>| {
        let result = call(&platform, &format!("sums__{name}"), json!({})).await.unwrap();
        let form = mcp_json::tool_result(&result);
        let marked = form["_meta"][OUTPUT_MISMATCH].as_str();
        assert_eq!(marked, expected, "{name}");
        assert!(!result.content.is_empty(), "{name}");
    };
    check("right", None).await;
    check("wrong", Some("at /sum: \"thirteen\" is not of type \"integer\"")).await;
    check("none", Some("structured content is missing")).await;
    // Nobody gets to see what is cut off.
    check("long", None).await;
    // An error owes nothing.
    check("sorry", None).await;
}

#[tokio::test]
async fn settings_reach_scripts_as_they_reach_components() {
    let project = Project::new(&format!(
        "[plugins]\nscripts = [\"s.rhai\"]\nwasm = [{:?}]\n[settings.s]\nname = \"Ada\"",
        guests::TEXT_TOOLS
    ));
    let script = "tool(#{ name: \"who\", description: \"d\" }, |a| config(\"name\"));";
    project.write("s.rhai", script);
    let platform = project.platform().await;
    assert_eq!(text(&platform, "s__who", Value::Object(Default::default())).await, "Ada");
}

/// A platform with a plugin `p` whose tool `flaky` is unavailable until its third call.
async fn flaky(
    configuration: &str,
    read_only: Option<bool>,
    idempotent: Option<bool>,
) -> (RunningPlatform, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let mut definition = ToolDefinition::new("flaky", "d", &json!({ "type": "object" }));
    definition.annotations.read_only = read_only;
    definition.annotations.idempotent = idempotent;
    let plugin = Builtin::new("p", "").tool(definition, move |_, _| {
        let number = counter.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            if number < 3 {
                let wait = Some(Duration::from_millis(1));
                return Err(Error::unavailable("warming up").retry_after(wait));
            }
            Ok(ToolResult::text(number.to_string()))
        }
    });
    let project = Project::new(configuration);
    let platform = project.builder().builtin("p", plugin).build().await.unwrap();
    (RunningPlatform::new(platform, project), calls)
}

#[tokio::test]
async fn a_failure_that_may_pass_is_tried_again_where_that_is_harmless() {
    let rule = "tools.p__flaky = { max_attempts = 3, retry_backoff = \"1ms\" }";
    let check = async |configuration: &str, (read_only, idempotent), expected| {
        let (platform, calls) = flaky(configuration, read_only, idempotent).await;
        let expected: Result<&str, usize> = expected;
        let answer = call(&platform, "p__flaky", json!({})).await;
        match (answer, expected) {
            (Ok(result), Ok(text)) => assert_eq!(result.plain_text(), text),
            (Err(error), Err(attempts)) => {
                assert!(error.to_string().contains("warming up"), "{error}");
                assert_eq!(calls.load(Ordering::SeqCst), attempts, "{configuration}");
            }
            (answer, _) => panic!("{configuration}: {answer:?}"),
        }
    };
    let (none, read_only, idempotent) = ((None, None), (Some(true), None), (None, Some(true)));
    check(rule, read_only, Ok("3")).await;
    check(rule, idempotent, Ok("3")).await;
    check(rule, (Some(true), Some(true)), Ok("3")).await;
    check(rule, (Some(false), Some(false)), Err(1)).await;
    check(rule, none, Err(1)).await;
    check("", read_only, Err(1)).await;
    check("", idempotent, Err(1)).await;
    let twice = "tools.p__flaky = { max_attempts = 2, retry_backoff = \"1ms\" }";
    check(twice, idempotent, Err(2)).await;
    let told =
        "tools.p__flaky = { max_attempts = 3, retry_backoff = \"1ms\", side_effects = \"none\" }";
    check(told, none, Ok("3")).await;
    let told = told.replace("none", "repeated");
    check(&told, read_only, Err(1)).await;
}

/// Who says how often a tool is called has not said that its plugin may have more time.
#[tokio::test]
async fn all_attempts_have_the_time_of_one_call() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let definition = ToolDefinition::new("hang", "d", &json!({ "type": "object" }));
    let plugin = Builtin::new("p", "").tool(definition, move |_, _| {
        counter.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<Result<ToolResult, Error>>()
    });
    let project = Project::new(
        "limits.wall = \"1s\"\n[tools.\"*\"]\ntimeout = \"100ms\"\nmax_attempts = 60\n\
         side_effects = \"none\"\nretry_backoff = \"1ms\"",
    );
    let platform = project.builder().builtin("p", plugin).build().await.unwrap();
    let error = failure(&platform, "p__hang", json!({})).await;
    assert!(error.to_string().contains("no answer within"), "{error}");
    let calls = calls.load(Ordering::SeqCst);
    assert!((2..=10).contains(&calls), "{calls} attempts");
}

#[tokio::test]
async fn a_tool_that_the_operator_disables_is_not_called() {
    let (platform, calls) = flaky("tools.\"p__*\".enabled = false", None, None).await;
    let error = failure(&platform, "p__flaky", json!({})).await;
    assert!(matches!(error, CallError::Disabled { .. }), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_tool_can_have_less_time_than_its_plugin() {
    let project = Project::new(&format!(
        "plugins.wasm = [{:?}]\ntools.misbehave__hang.timeout = \"50ms\"",
        guests::MISBEHAVE
    ));
    let platform = project.platform().await;
    let error = failure(&platform, "misbehave__hang", json!({})).await;
    assert!(error.to_string().contains("no answer within 50ms"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_a_caller_is_for_all_steps_together() {
    let project = Project::new(&format!(
        "plugins = {{ wasm = [{:?}], scripts = [\"a.rhai\", \"b.rhai\"] }}",
        guests::TEXT_TOOLS
    ));
    for script in ["a.rhai", "b.rhai"] {
        project.write(script, "fn BeforeToolCall(context) { loop {} }");
    }
    let platform = project.platform().await;
    let timeout = Duration::from_millis(100);
    let began = Instant::now();
    let error = call_within(&platform, "text_tools__slug", json!({ "text": "a" }), timeout).await;
    let error = error.expect_err("the first hook takes all of the time");
    assert!(error.to_string().contains("no answer within 100ms"), "{error}");
    // Far less than the handlers' own time.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test]
async fn null_for_what_can_be_left_out_is_left_out_for_hooks_and_plugin() {
    let schema = json!({
        "type": "object",
        "properties": { "text": { "type": "string" }, "limit": { "type": "integer" } },
        "required": ["text"],
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = seen.clone();
    let plugin = Builtin::new("p", "Says what it got")
        .tool(ToolDefinition::new("echo", "Echoes", &schema), async |arguments, _| {
            Ok(ToolResult::text(arguments))
        })
        .hook(HookPoint::BeforeToolCall, move |event| {
            heard.lock().unwrap().push(event.context.to_string());
            async { Ok(HookDecision::Continue) }
        });
    let project = Project::new("");
    let platform = project.builder().builtin("p", plugin).build().await.unwrap();
    let arguments = json!({ "text": "x", "limit": null });
    let said = text(&platform, "p__echo", arguments).await;
    assert_eq!(said, r#"{"text":"x"}"#);
    let context: Value = serde_json::from_str(&seen.lock().unwrap()[0]).unwrap();
    assert_eq!(context["arguments"], json!({ "text": "x" }));
    let error = failure(&platform, "p__echo", json!({ "text": null, "limit": 1 })).await;
    assert!(error.to_string().contains("at /text: null is not of type"), "{error}");
}
