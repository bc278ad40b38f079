//! Chains of hooks over components and scripts.

use serde_json::json;
use tenon_host::services::GrantAll;
use tenon_host::types::{Completion, CompletionRequest, Delta, HookPoint, IncomingMessage, Part};
use tenon_host::{CallError, Caller, HookOutcome};

use crate::guests;
use crate::support::{
    Project, RunningPlatform, SCRIPTED_SERVER, call, failure, stderr, stdout, text,
};

async fn platform(script: &str) -> RunningPlatform {
    platform_with("", script).await
}

/// The same with further configuration.
async fn platform_with(configuration: &str, script: &str) -> RunningPlatform {
    let project = Project::new(&format!(
        "{configuration}\n[plugins]\nwasm = [{:?}, {:?}, {:?}]\nscripts = [\"script.rhai\"]",
        guests::REDACT,
        guests::MISBEHAVE,
        guests::TEXT_TOOLS
    ));
    project.write("script.rhai", script);
    project.platform().await
}

#[tokio::test]
async fn each_handler_sees_what_the_one_before_left() {
    let platform = platform(
        "fn MessageSending(context) { context.message += \" (\" + context.message.len() + \")\"; }",
    )
    .await;
    let context = json!({ "message": "use sk-abcdefghijklmnop" });
    let report =
        platform.fire(&HookPoint::MessageSending, context, &Caller::default()).await.unwrap();
    assert!(matches!(report.outcome, HookOutcome::Continue));
    // The component has masked the key before the script counted.
    assert_eq!(report.context, json!({ "message": "use [redacted] (14)" }));
    let who: Vec<_> = report.handlers.iter().map(|h| (h.plugin.as_str(), h.outcome)).collect();
    assert_eq!(who, [("redact", "replace"), ("script", "replace")]);
}

#[tokio::test]
async fn a_veto_ends_the_chain_where_it_is_allowed() {
    let platform = platform(
        "fn BeforePlan(context) { veto(\"not on a Sunday\") } fn AfterPlan(context) { veto(\"too late\") }",
    )
    .await;
    let fire = async |point: HookPoint| {
        platform.fire(&point, json!({ "goal": "x" }), &Caller::default()).await.unwrap()
    };
    let report = fire(HookPoint::BeforePlan).await;
    assert!(
        matches!(report.outcome, HookOutcome::Veto { plugin, reason } if &*plugin == "script" && reason == "not on a Sunday")
    );
    let report = fire(HookPoint::AfterPlan).await;
    assert!(matches!(report.outcome, HookOutcome::Continue));
    let errors: Vec<_> = report.handlers.iter().filter_map(|h| h.error.as_deref()).collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors.iter().all(|error| error.contains("after-plan cannot be vetoed")), "{errors:?}");
}

#[tokio::test]
async fn a_handler_that_fails_is_recorded_and_skipped() {
    let script = "for point in [\"array\", \"no-json\", \"error\", \"trap\"] { hook(\"test:\" + point, |context| { context.seen = true; }); }";
    let platform = platform(script).await;
    for (point, expected) in [
        ("array", "the new context is not a JSON object"),
        ("no-json", "the new context is not JSON"),
        ("error", "failed: no"),
        ("trap", "in a hook"),
    ] {
        let point = HookPoint::Custom(format!("test:{point}"));
        let report = platform.fire(&point, json!({ "a": 1 }), &Caller::default()).await.unwrap();
        assert_eq!(report.context, json!({ "a": 1, "seen": true }), "{point}");
        let error = report.handlers[0].error.as_deref().expect("the failure is recorded");
        assert!(error.contains(expected), "{point}: {error}");
    }
}

#[tokio::test]
async fn hooks_see_and_change_tool_calls() {
    let platform = platform(
        r#"
        fn BeforeToolCall(context) {
            if context.tool == "text_tools__slug" { context.arguments.text = "from the hook"; }
            if context.tool == "text_tools__count" { return veto("no counting"); }
        }
        fn AfterToolCall(context) { context.result.content[0].text += "!"; }
        "#,
    )
    .await;
    assert_eq!(text(&platform, "text_tools__slug", json!({ "text": "x" })).await, "from-the-hook!");
    let error = failure(&platform, "text_tools__count", json!({ "text": "x" })).await;
    assert!(matches!(&error, CallError::Vetoed { plugin, .. } if &**plugin == "script"), "{error}");
}

#[tokio::test]
async fn a_handler_that_fails_stops_the_chain_where_that_is_configured() {
    let platform = platform_with(
        "hooks.on_failure = \"stop\"",
        "hook(\"test:error\", |context| { context.seen = true; }); fn BeforeToolCall(context) { throw \"no\"; }",
    )
    .await;
    let point = HookPoint::Custom("test:error".into());
    let report = platform.fire(&point, json!({ "a": 1 }), &Caller::default()).await.unwrap();
    assert!(
        matches!(&report.outcome, HookOutcome::Stopped { plugin, .. } if &**plugin == "misbehave"),
        "{report:?}"
    );
    assert_eq!(report.context, json!({ "a": 1 }));
    assert_eq!(report.handlers.len(), 1);
    let error = failure(&platform, "text_tools__slug", json!({ "text": "x" })).await;
    assert!(matches!(&error, CallError::Failed { plugin, .. } if &**plugin == "script"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_takes_too_long_is_given_up() {
    let platform = platform_with(
        "hooks.timeout = \"2s\"",
        "fn BeforePlan(context) { loop {} } fn AfterPlan(context) { context.seen = true; }",
    )
    .await;
    let context = json!({ "goal": "x" });
    let report =
        platform.fire(&HookPoint::BeforePlan, context.clone(), &Caller::default()).await.unwrap();
    let error = report.handlers.last().and_then(|handler| handler.error.as_deref());
    assert_eq!(error, Some("it gave no answer within 2s"));
    assert_eq!(report.context, context);
    let report = platform.fire(&HookPoint::AfterPlan, context, &Caller::default()).await.unwrap();
    assert_eq!(report.context["seen"], true);
}

#[tokio::test]
async fn a_handler_that_breaks_a_context_is_recorded_and_the_context_stays() {
    let platform = platform(
        r#"
        fn BeforePlan(context) { context.goal = 3; }
        fn BeforeToolCall(context) { context.remove("arguments"); context.tool = "another"; }
        fn AfterToolCall(context) { context.result = "done"; }
        "#,
    )
    .await;
    let context = json!({ "goal": "x" });
    let report =
        platform.fire(&HookPoint::BeforePlan, context.clone(), &Caller::default()).await.unwrap();
    assert_eq!(report.context, context);
    let error = report.handlers.last().and_then(|handler| handler.error.as_deref());
    assert!(
        error.is_some_and(|error| error.contains("integer `3`, expected a string")),
        "{error:?}"
    );
    assert_eq!(text(&platform, "text_tools__slug", json!({ "text": "A b" })).await, "a-b");
}

#[tokio::test]
async fn a_host_cannot_fire_a_context_of_another_type() {
    let platform = platform("").await;
    let context = json!({ "goal": 3 });
    let error =
        platform.fire(&HookPoint::BeforePlan, context, &Caller::default()).await.unwrap_err();
    assert!(matches!(error, CallError::InvalidInput { .. }), "{error}");
}

#[tokio::test]
async fn which_call_it_is_cannot_be_changed() {
    let project = Project::new(&format!(
        "plugins = {{ wasm = [{:?}], scripts = [\"first.rhai\", \"second.rhai\"] }}",
        guests::TEXT_TOOLS
    ));
    project.write("first.rhai", "fn BeforeToolCall(context) { context.tool = \"another\"; }");
    let second = "fn BeforeToolCall(context) { context.arguments.text += context.tool; }";
    project.write("second.rhai", second);
    let platform = project.platform().await;
    let slug = text(&platform, "text_tools__slug", json!({ "text": "of " })).await;
    assert_eq!(slug, "of-text-tools-slug");
}

#[tokio::test]
async fn a_hook_cannot_smuggle_bad_arguments_past_the_schema() {
    let platform =
        platform("fn BeforeToolCall(context) { context.arguments = #{ text: 3 }; }").await;
    let error = failure(&platform, "text_tools__slug", json!({ "text": "x" })).await;
    assert!(matches!(&error, CallError::Failed { plugin, .. } if &**plugin == "script"), "{error}");
    assert!(error.to_string().contains("at /text: 3 is not of type"), "{error}");
}

#[tokio::test]
async fn secrets_do_not_reach_tools() {
    let platform = platform("").await;
    let result =
        call(&platform, "misbehave__echo", json!({ "text": "ghp_0123456789abcdef" })).await;
    assert_eq!(result.unwrap().plain_text(), "[redacted]");
}

#[tokio::test]
async fn a_context_must_be_an_object() {
    let platform = platform("").await;
    let error = platform.fire(&HookPoint::BeforePlan, json!([1]), &Caller::default()).await;
    assert!(matches!(error, Err(CallError::InvalidInput { .. })));
}

#[tokio::test]
async fn wrong_settings_do_not_let_secrets_through() {
    let platform = platform_with("settings.redact.prefixes = \"corp_\"", "").await;
    let context = json!({ "message": "use sk-abcdefghijklmnop" });
    let report =
        platform.fire(&HookPoint::MessageSending, context, &Caller::default()).await.unwrap();
    assert_eq!(report.context["message"], "use [redacted]");
}

/// What no handler can read is not let through for that: whoever makes it knows that it is guarded.
#[tokio::test]
async fn what_is_nested_too_deep_for_a_guard_is_stopped() {
    let project = Project::new("plugins.scripts = [\"guard.rhai\", \"t.rhai\"]");
    project.write(
        "guard.rhai",
        "fn BeforeToolCall(context) { if \"cmd\" in context.arguments { veto(\"no\") } }
         fn AfterToolCall(context) { context.result = #{ content: [] }; replace(context) }",
    );
    project.write(
        "t.rhai",
        "tool(#{ name: \"t\", description: \"d\" }, |a| {
            let m = [];
            for i in 1..a.deep { m = [m]; }
            #{ secret: \"CUSTOMER\", m: m }
        });",
    );
    let platform = project.platform().await;
    let nested = |depth: usize| (1..depth).fold(json!([]), |inner, _| json!([inner]));
    for (depth, expected) in
        [(1, "no"), (119, "no"), (120, "nested deeper"), (126, "nested deeper")]
    {
        let arguments = json!({ "cmd": "rm", "m": nested(depth), "deep": 1 });
        let said = call(&platform, "t__t", arguments).await.unwrap_err().to_string();
        assert!(said.contains(expected), "{depth}: {said}");
    }
    for (deep, is_read) in [(1, true), (110, true), (123, false), (126, false)] {
        let answered = call(&platform, "t__t", json!({ "deep": deep })).await;
        let said = format!("{answered:?}");
        assert!(!said.contains("CUSTOMER"), "{deep}: {said}");
        assert_eq!(answered.is_ok(), is_read, "{deep}: {said}");
    }
    platform.clone().shutdown().await;
}

/// A platform with the provider that says what it was asked, and this script.
async fn with_provider(script: &str) -> RunningPlatform {
    let project = Project::new(&format!(
        "plugins = {{ wasm = [{:?}], scripts = [\"script.rhai\"] }}",
        guests::ECHO_PROVIDER
    ));
    project.write("script.rhai", script);
    project.platform().await
}

/// The text of an answer, as a whole and in pieces, which are the same.
async fn completed(platform: &RunningPlatform, prompt: &str) -> Result<String, CallError> {
    let request = || CompletionRequest::new("echo", prompt);
    let caller = Caller::default();
    let whole = platform.complete(request(), &caller).await?;
    let mut stream = platform.stream(request(), &caller).await?;
    let mut pieces = String::new();
    while let Some(delta) = stream.next().await {
        let Delta::Text(piece) = delta else { panic!("{delta:?}") };
        pieces.push_str(&piece);
    }
    stream.finish().await.expect("it ends");
    let text = |completion: Completion| match &completion.parts[..] {
        [Part::Text(text)] => text.clone(),
        parts => panic!("{parts:?}"),
    };
    let whole = text(whole);
    assert_eq!(pieces, whole);
    Ok(whole)
}

#[tokio::test]
async fn what_a_model_is_asked_can_be_changed_and_stopped() {
    let platform = with_provider(
        r#"fn BeforeCompletion(context) {
               let parts = context.request.messages[0].content;
               if parts[0].text == "stop" { return veto(`not ${context.model} of ${context.plugin}`); }
               if parts[0].text == "spoil" { context.request.messages = 3; return; }
               context.request.messages[0].content[0].text = parts[0].text + " please";
               context.request.model = "another";
           }"#,
    )
    .await;
    assert_eq!(completed(&platform, "say it").await.unwrap(), "say it please");
    let error = completed(&platform, "stop").await.unwrap_err();
    assert_eq!(error.to_string(), "plugin \"script\" vetoed it: not echo of echo_provider");
    let error = completed(&platform, "spoil").await.unwrap_err().to_string();
    assert!(
        error.contains("\"script\"") && error.contains("left no request to a model"),
        "{error}"
    );
}

#[tokio::test]
async fn what_a_model_answers_can_be_changed_before_anybody_sees_a_piece() {
    let platform = with_provider(
        r#"fn AfterCompletion(context) {
               let asked = context.request.messages[0].content[0].text;
               if asked == "spoil" { context.completion.parts = 3; return; }
               context.completion.parts[0].text = `[${context.completion.parts[0].text}] to ${asked}`;
           }"#,
    )
    .await;
    assert_eq!(completed(&platform, "hi").await.unwrap(), "[hi] to hi");
    let error = completed(&platform, "spoil").await.unwrap_err().to_string();
    assert!(error.contains("left no answer of a model"), "{error}");
}

#[tokio::test]
async fn a_message_that_comes_in_is_what_hooks_leave_of_it() {
    let platform = platform(
        "fn MessageReceived(context) {
             if context.sender == \"mallory\" { return veto(\"unwanted\"); }
             context.message += \"!\";
         }",
    )
    .await;
    let message = |sender: &str| IncomingMessage {
        text: "use sk-abcdefghijklmnop".into(),
        channel: Some("chat".into()),
        sender: Some(sender.into()),
    };
    let caller = Caller::default();
    let received = platform.receive_message(message("ada"), &caller).await.expect("it is received");
    assert_eq!(received, IncomingMessage { text: "use [redacted]!".into(), ..message("ada") });
    let refused = platform.receive_message(message("mallory"), &caller).await;
    assert!(matches!(refused, Err(CallError::Vetoed { .. })), "{refused:?}");
}

/// A plugin that is a server whose tool `check` answers this, and handles points by this table.
fn with_server(answer: &serde_json::Value, hooks: &str) -> Project {
    let project = Project::new(&format!(
        "plugins = {{ folders = [\"own\"], wasm = [{:?}] }}",
        guests::TEXT_TOOLS
    ));
    let tools = json!([{ "name": "check", "inputSchema": { "type": "object" } }]);
    let script = json!({ "tools/list": { "tools": tools }, "tools/call": answer });
    project.write("script.json", script.to_string());
    let path = project.path("script.json");
    project.write(
        "own/guard/plugin.toml",
        format!(
            "plugin.id = \"guard\"\n[runtime]\nkind = \"mcp-bridge\"\n\
             subprocess = {{ command = {SCRIPTED_SERVER:?}, args = [{path:?}] }}\n{hooks}"
        ),
    );
    project
}

#[tokio::test]
async fn a_tool_of_a_server_handles_hooks() {
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    let hooks = "[hooks]\nbefore-tool-call = \"check\"";
    let slug = json!({ "text": "A B" });
    let replaced = json!({ "outcome": "replace", "context": {
        "tool": "x", "plugin": "x", "arguments": { "text": "C D" },
    } });
    for (answer, expected) in [
        (text(""), Ok("a-b")),
        (text(r#"{"outcome": "continue"}"#), Ok("a-b")),
        (json!({ "content": [], "structuredContent": replaced }), Ok("c-d")),
        (text(r#"{"outcome": "veto", "reason": "no"}"#), Err("vetoed it: no")),
        // One that answers something else has failed, which stops nothing unless that is said.
        (text("yes"), Ok("a-b")),
    ] {
        let project = with_server(&answer, hooks);
        let platform = project.builder().approver(GrantAll).build().await.expect("it is built");
        let platform = RunningPlatform::new(platform, project);
        match (call(&platform, "text_tools__slug", slug.clone()).await, expected) {
            (Ok(result), Ok(expected)) => assert_eq!(result.plain_text(), expected, "{answer}"),
            (Err(error), Err(expected)) => {
                assert!(error.to_string().contains(expected), "{answer}: {error}");
            }
            (result, _) => panic!("{answer}: {result:?}"),
        }
        platform.clone().shutdown().await;
    }
    // What is audited is reported, and honoured by nobody.
    let veto = text(r#"{"outcome": "veto", "reason": "no"}"#);
    let audit = "[hooks]\nbefore-tool-call = { tool = \"check\", mode = \"audit\" }";
    let project = with_server(&veto, audit);
    let platform = project.builder().approver(GrantAll).build().await.expect("it is built");
    let context = json!({ "tool": "t", "plugin": "p", "arguments": {} });
    let point = HookPoint::BeforeToolCall;
    let report = platform.fire(&point, context, &Caller::default()).await.unwrap();
    assert!(matches!(report.outcome, HookOutcome::Continue));
    assert!(report.handlers[0].audited && report.handlers[0].outcome == "veto");
    platform.shutdown().await;
}

/// The command starts no other server for a call, but one that guards it.
#[test]
fn a_server_guards_calls_of_others_in_the_command() {
    let veto = json!({ "content": [{ "type": "text", "text": r#"{"outcome": "veto", "reason": "no"}"# }] });
    let project = with_server(&veto, "[hooks]\nbefore-tool-call = \"check\"");
    let run = |arguments: &[&str], code: i32| {
        let output = project.tenon(arguments);
        let said = [stdout(&output), stderr(&output)].concat();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    };
    let said = run(&["call", "text_tools__slug", r#"{"text": "A B"}"#], 3);
    assert!(said.contains("vetoed it: no"), "{said}");
    assert!(run(&["hook"], 0).contains("guard"));
    let context = r#"{"tool": "t", "plugin": "p", "arguments": {}}"#;
    run(&["hook", "before-tool-call", "--context", context], 3);
    // It is missed as any other guard.
    let own = std::fs::read_to_string(project.path("own/guard/plugin.toml")).unwrap();
    project.write("own/guard/plugin.toml", own.replace(SCRIPTED_SERVER, "/nowhere/server"));
    let said = run(&["call", "text_tools__slug", r#"{"text": "A B"}"#], 0);
    assert!(said.contains("plugin \"guard\" is not loaded"), "{said}");
    let own = std::fs::read_to_string(project.path("tenon.toml")).unwrap();
    project.write("tenon.toml", format!("hooks.on_failure = \"stop\"\n{own}"));
    let said = run(&["call", "text_tools__slug", r#"{"text": "A B"}"#], 1);
    assert!(said.contains("plugin \"guard\""), "{said}");
}

#[tokio::test]
async fn a_tool_that_is_not_there_handles_nothing_and_the_plugin_says_so() {
    let project = with_server(&json!({ "content": [] }), "[hooks]\nbefore-plan = \"chek\"");
    let platform = project.builder().approver(GrantAll).build().await.expect("it is built");
    let reports = platform.plugins();
    let report = reports.iter().find(|report| report.plugin == "guard").expect("it is reported");
    let detail = report.detail.as_deref().unwrap_or_default();
    assert!(detail.contains("has the tool \"chek\" handle before-plan"), "{report:?}");
    platform.shutdown().await;
}
