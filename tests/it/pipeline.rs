//! The steps of a call, one by one: each where it is the one that stops the call, and what callers,
//! subscribers and the record learn of it.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_config::secret::MASK;
use tenon_host::history::{self, Query, Record};
use tenon_host::meta::{TRUNCATED, USAGE};
use tenon_host::services::GrantAll;
use tenon_host::types::{
    ArgumentCompletion, CallContext, CompletionReference, Content, HookPoint, Identity, Prompt,
    PromptPage, Registration, ResourceBody, ResourceContents, ResourcePage, Suggestions,
    TemplatePage, mcp_json,
};
use tenon_host::{
    Call, CallError, CallKind, Caller, Event, Failure, Platform, Plugin, Step, Subscription,
};

use crate::guests;
use crate::support::{
    Project, RUDE_SERVER, RunningPlatform, call, call_within, failure, stored, text,
};

/// The words for the steps that were heard, and for the end.
fn heard(events: &mut Subscription) -> Vec<String> {
    let mut words = Vec::new();
    while let Some(event) = events.try_next() {
        let Event::Call(event) = event else { continue };
        if event.kind != CallKind::Tool {
            continue;
        }
        words.push(match event.step {
            Step::Found => "found".to_string(),
            Step::HooksBefore { handlers } => format!("before: {}", handlers[0].outcome),
            Step::Checked => "checked".into(),
            Step::Permitted => "permitted".into(),
            Step::Attempted { attempt, error } => {
                format!("attempt {attempt}: {}", if error.is_some() { "error" } else { "ok" })
            }
            Step::Bounded { full_result_uri: whole, .. } => {
                if whole.is_some() { "bounded: cut" } else { "bounded" }.into()
            }
            Step::HooksAfter { handlers } => format!("after: {}", handlers[0].outcome),
            Step::Ended { outcome, .. } => format!("ended: {outcome}"),
            other => format!("{other:?}"),
        });
    }
    words
}

const GUARD: &str = r#"
    fn BeforeToolCall(context) {
        if context.arguments.text == "veto" { return veto("not this"); }
        if context.arguments.text == "wreck" { context.arguments.text = 3; }
    }
    fn AfterToolCall(context) {
        if context.arguments.text == "spoil" { throw "spoilt"; }
    }
"#;

async fn guarded() -> RunningPlatform {
    let project = Project::new(&format!(
        "[plugins]\nwasm = [{:?}]\nscripts = [\"guard.rhai\"]\n[hooks]\non_failure = \"stop\"\n\
         [tools.misbehave__spin]\nenabled = false\n[limits]\noutput_kib = 1",
        guests::MISBEHAVE
    ));
    project.write("guard.rhai", GUARD);
    project.platform().await
}

#[tokio::test]
async fn each_step_can_be_the_one_that_stops_a_call() {
    let platform = guarded().await;
    let mut events = platform.events();
    let mut check = async |name: &str, arguments: Value, expected: &str, steps: &[&str]| {
        let result = call(&platform, name, arguments).await;
        let said = match &result {
            Ok(_) => "ok".to_string(),
            Err(error) => format!("{}: {error}", error.code()),
        };
        assert!(said.starts_with(expected), "{name}: {said}");
        assert_eq!(heard(&mut events), steps, "{name}: {said}");
    };
    let says = |text: &str| json!({ "text": text });
    check("misbehave__ehco", says("x"), "not-found: there is no tool", &["ended: not-found"]).await;
    check(
        "misbehave__echo",
        says("veto"),
        "vetoed: plugin \"guard\" vetoed it: not this",
        &["found", "before: veto", "ended: vetoed"],
    )
    .await;
    check(
        "misbehave__echo",
        json!({ "text": 3 }),
        "invalid-input: arguments of misbehave__echo: at /text: 3 is not of type",
        &["found", "before: continue", "ended: invalid-input"],
    )
    .await;
    check(
        "misbehave__echo",
        says("wreck"),
        "contract: plugin \"guard\": its answer breaks the contract: its hook left arguments",
        &["found", "before: replace", "ended: contract"],
    )
    .await;
    check(
        "misbehave__spin",
        says("x"),
        "disabled: the tool misbehave__spin is disabled",
        &["found", "before: continue", "checked", "ended: disabled"],
    )
    .await;
    let attempted = ["found", "before: continue", "checked", "permitted", "attempt 1: error"];
    check(
        "misbehave__trap",
        says("x"),
        "trapped: plugin \"misbehave\": it trapped",
        &[&attempted[..], &["ended: trapped"]].concat(),
    )
    .await;
    check(
        "misbehave__denied",
        says("x"),
        "denied: plugin \"misbehave\": denied",
        &[&attempted[..], &["ended: denied"]].concat(),
    )
    .await;
    let answered = ["found", "before: continue", "checked", "permitted", "attempt 1: ok"];
    check(
        "misbehave__nonsense",
        says("x"),
        "contract: plugin \"misbehave\": its answer breaks the contract",
        &[&answered[..], &["ended: contract"]].concat(),
    )
    .await;
    check(
        "misbehave__echo",
        says("spoil"),
        "failed: plugin \"guard\": failed: spoilt",
        &[&answered[..], &["bounded", "after: error", "ended: failed"]].concat(),
    )
    .await;
    let passed = [&answered[..], &["bounded", "after: continue"]].concat();
    check("misbehave__echo", says("x"), "ok", &[&passed[..], &["ended: ok"]].concat()).await;
    check("misbehave__fail", says("x"), "ok", &[&passed[..], &["ended: tool-error"]].concat())
        .await;
}

/// Who has many calls in flight has as many of these futures, and moves each before it begins.
#[tokio::test]
async fn a_call_takes_little_room() {
    let platform = guarded().await;
    let call = platform.call(Call::new("misbehave__echo", json!({ "text": "x" })));
    let size = size_of_val(&call);
    assert!(size <= 2 << 10, "{size} bytes");
    call.await.expect("an answer");
}

#[tokio::test]
async fn all_events_of_a_call_name_it() {
    let platform = guarded().await;
    let mut events = platform.events();
    for _ in 0..2 {
        text(&platform, "misbehave__echo", json!({ "text": "x" })).await;
    }
    let mut calls = Vec::new();
    while let Some(Event::Call(event)) = events.try_next() {
        // The hooks around it are asked by themselves.
        if event.kind == CallKind::Hook {
            continue;
        }
        assert_eq!(event.plugin.as_deref(), Some("misbehave"));
        assert_eq!(&*event.tool, "misbehave__echo");
        calls.push((event.call.clone(), event.fingerprint));
    }
    calls.dedup();
    // Two calls, which are the same.
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].1, calls[1].1);
    let form = serde_json::to_value(Event::Missed { events: 1 }).unwrap();
    assert_eq!(form, json!({ "event": "missed", "events": 1 }));
}

#[tokio::test]
async fn a_result_that_is_too_long_is_cut_and_the_whole_is_kept() {
    let platform = guarded().await;
    let long = "word ".repeat(1_000);
    let result = call(&platform, "misbehave__echo", json!({ "text": long })).await.unwrap();
    let shown = result.plain_text();
    let (start, marker) = shown.rsplit_once('\n').expect("there is a marker");
    assert_eq!(start, &long[..1024]);
    let uri = marker
        .strip_prefix("[cut: a part of 5000 bytes; the whole is the resource ")
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or_else(|| panic!("{marker}"));
    assert!(matches!(
        &result.content.last().unwrap().body,
        Content::ResourceLink(link) if link.uri == uri && link.size == Some(5000)
    ));
    let form = mcp_json::tool_result(&result);
    assert_eq!(form["_meta"][TRUNCATED], json!({ "bytes": 5000, "uri": uri }));
    assert_eq!(form["_meta"][USAGE]["bytesOut"], 5000);
    let whole = platform.read_result(uri).await.expect("it is kept");
    assert!(matches!(&whole[0].body, ResourceBody::Text(text) if *text == long));
    assert!(platform.read_result("tenon://results/none").await.is_err());
}

#[tokio::test]
async fn secrets_do_not_leave_in_results_errors_or_the_record() {
    let project = Project::new(&format!(
        "[plugins]\nscripts = [\"s.rhai\"]\n\
         mcp = [{{ name = \"m\", command = {RUDE_SERVER:?}, env = {{ API_TOKEN = \"hunter22hunter\" }} }}]\n\
         [settings.s]\napi_key = \"swordfish-9\""
    ));
    project.write(
        "s.rhai",
        r#"tool(#{ name: "leak", description: "d" }, |a| #{ key: config("api_key") });
           tool(#{ name: "throw", description: "d" }, |a| { throw "it is " + config("api_key"); });
           tool(#{ name: "trap", description: "d" }, |a| { let key = config("api_key"); key.nothing() });"#,
    );
    let platform = project.builder().state(project.path("state")).build().await.unwrap();
    let leak = call(&platform, "s__leak", json!({})).await.unwrap();
    assert_eq!(leak.structured.as_deref(), Some(r#"{"key":"[redacted]"}"#));
    let thrown = call(&platform, "s__throw", json!({})).await.unwrap();
    assert_eq!(thrown.plain_text(), "it is [redacted]");
    // Whoever brings it up, the secret of another plugin is one.
    let said = text(&platform, "m__echo", json!({ "text": "hunter22hunter!" })).await;
    assert_eq!(said, "[redacted]!");
    let arguments = json!({ "text": "swordfish-9", "password": "mine" });
    let error = failure(&platform, "m__echo__x", arguments).await;
    assert!(matches!(error, CallError::NotFound { .. }));
    platform.shutdown().await;
    let stored = stored(&project.path("state"));
    for secret in ["swordfish", "hunter22", "mine"] {
        assert!(!stored.contains(secret), "{secret}: {stored}");
    }
    let records = history::read(&project.path("state"), &Query::default()).unwrap();
    let recorded = serde_json::to_string(&records).unwrap();
    assert_eq!(recorded.matches(MASK).count(), 3, "{recorded}");
}

#[tokio::test]
async fn secrets_do_not_leave_in_events_reports_or_complaints() {
    let project = Project::new(&format!(
        "[plugins]\nscripts = [\"s.rhai\"]\n\
         mcp = [{{ name = \"m\", command = {RUDE_SERVER:?}, args = [\"dies\"], env = {{ API_TOKEN = \"my configuration\" }} }}]\n\
         [settings.s]\napi_key = \"swordfish-9\""
    ));
    project.write(
        "s.rhai",
        r#"tool(#{ name: "login", description: "d", schema: #{ type: "object", properties: #{
               password: #{ type: "string", minLength: 12 } } } }, |a| "in");
           strategy(#{ name: "leak", description: "d" }, |s, o| #{ score: 1.0, findings: [
               #{ criterion: "c", verdict: "pass", reason: "it is " + config("api_key") }] });
           fn BeforeToolCall(context) { throw "it is " + config("api_key"); }"#,
    );
    let platform = project.platform().await;
    // The server's last words have its token in them.
    let report = platform.plugins().iter().find(|r| r.plugin == "m").cloned().unwrap();
    let detail = report.detail.expect("it says why");
    assert!(detail.contains("cannot find [redacted]"), "{detail}");
    let mut events = platform.events();
    let error = failure(&platform, "s__login", json!({ "password": "hunter2" })).await;
    assert!(error.to_string().contains("at /password: "), "{error}");
    let mut said = error.to_string();
    while let Some(event) = events.try_next() {
        said.push_str(&serde_json::to_string(&event).unwrap());
    }
    assert!(said.contains("it is [redacted]"), "{said}");
    assert!(!said.contains("hunter2") && !said.contains("swordfish"), "{said}");
    let caller = Caller::default();
    let judged = platform.evaluate("s/leak", json!({ "output": 1 }), json!({}), &caller).await;
    assert_eq!(judged.unwrap().findings[0].reason, "it is [redacted]");
}

/// A server that tells its secret wherever it can, and does as if it were the host.
async fn telling(more: &str) -> RunningPlatform {
    let project = Project::new(&format!(
        "[plugins]\nscripts = [\"s.rhai\"]\nmcp = [{{ name = \"m\", command = {RUDE_SERVER:?}, \
         args = [\"tells\"], env = {{ API_TOKEN = \"a/secret\" }} }}]"
    ));
    project.write("s.rhai", more);
    project.platform().await
}

// MCP.md: F3
#[tokio::test]
async fn secrets_do_not_leave_in_lists_names_or_types() {
    let platform = telling("").await;
    let caller = &Caller::default();
    let check = |said: Vec<Value>, masks: usize| {
        let said = json!(said).to_string();
        assert!(!said.contains("secret"), "{said}");
        assert_eq!(said.matches(MASK).count(), masks, "{said}");
    };
    let result = call(&platform, "m__rude", json!({})).await.unwrap();
    check(vec![mcp_json::tool_result(&result)], 5);
    // Where they begin again, the lists have ended; each thing is there once.
    let resources = platform.resources("m", caller).await.unwrap();
    check(resources.iter().map(mcp_json::listed_resource).collect(), 2);
    let templates = platform.resource_templates("m", caller).await.unwrap();
    check(templates.iter().map(mcp_json::resource_template).collect(), 1);
    let prompts = platform.prompts("m", caller).await.unwrap();
    check(prompts.iter().map(mcp_json::prompt_definition).collect(), 2);
    let prompt = platform.prompt("m", "p", Vec::new(), caller).await.unwrap();
    check(vec![mcp_json::prompt(&prompt)], 2);
    // The same as tools, which say it in text as well.
    for (tool, arguments, masks) in [
        ("m__list_resources", json!({}), 4),
        ("m__list_resource_templates", json!({}), 2),
        ("m__list_prompts", json!({}), 4),
        ("m__get_prompt", json!({ "name": "p" }), 3),
    ] {
        let result = call(&platform, tool, arguments).await.unwrap();
        check(vec![mcp_json::tool_result(&result)], masks);
    }
    platform.clone().shutdown().await;
}

#[tokio::test]
async fn only_the_host_speaks_for_the_host() {
    let script = r#"fn AfterToolCall(context) {
        context.result.structuredContent = #{};
        context.result._meta["tenon/refused"] = ["forged"];
        context.result._meta["tenon/usage"] = "forged";
    }"#;
    for script in ["", script] {
        let platform = telling(script).await;
        let result = call(&platform, "m__rude", json!({})).await.unwrap();
        let form = mcp_json::tool_result(&result);
        assert!(form["_meta"][USAGE].is_object(), "{form}");
        assert!(!form.to_string().contains("forged"), "{form}");
        let arguments = json!({ "uri": "a:b" });
        let read = call(&platform, "m__read_resource", arguments).await.unwrap();
        let read = mcp_json::tool_result(&read).to_string();
        assert!(!read.contains("forged"), "{read}");
        let read = platform.read_resource("m", "a:b", &Caller::default()).await.unwrap();
        assert_eq!(mcp_json::resource_contents(&read[0]), json!({ "uri": "a:b", "text": MASK }));
        platform.clone().shutdown().await;
    }
}

#[tokio::test]
async fn a_result_that_is_cut_and_changed_keeps_its_whole() {
    let project = Project::new(&format!(
        "plugins = {{ wasm = [{:?}], scripts = [\"s.rhai\"] }}\nlimits.output_kib = 1",
        guests::MISBEHAVE
    ));
    let script = "fn AfterToolCall(context) { context.result.content[0].text += \" (seen)\"; }";
    project.write("s.rhai", script);
    let platform = project.platform().await;
    let long = "word ".repeat(1_000);
    let result = call(&platform, "misbehave__echo", json!({ "text": long })).await.unwrap();
    assert!(result.plain_text().contains("(seen)\n[cut: a part of 5000 bytes"));
    let form = mcp_json::tool_result(&result);
    let uri = form["_meta"][TRUNCATED]["uri"].as_str().expect("it says where the whole is");
    let whole = platform.read_result(uri).await.unwrap();
    assert!(matches!(&whole[0].body, ResourceBody::Text(text) if *text == long));
}

#[tokio::test]
async fn who_takes_the_callers_time_is_to_blame() {
    let project = Project::new(&format!(
        "plugins = {{ wasm = [{:?}], scripts = [\"slow.rhai\"] }}\nlimits.cpu = \"1h\"",
        guests::MISBEHAVE
    ));
    project.write("slow.rhai", "fn BeforeToolCall(context) { loop {} }");
    let platform = project.platform().await;
    let timeout = Duration::from_millis(200);
    let arguments = json!({ "text": "x" });
    let error = call_within(&platform, "misbehave__echo", arguments, timeout).await.unwrap_err();
    assert!(matches!(&error, CallError::Failed { plugin, .. } if &**plugin == "slow"), "{error}");
}

#[tokio::test]
async fn calls_are_recorded_with_who_made_them_and_how_they_ended() {
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::MISBEHAVE));
    let state = project.path("state");
    let platform = project.builder().state(&state).build().await.unwrap();
    let caller = Caller {
        agent_id: Some("planner".into()),
        session_id: Some("s-1".into()),
        ..Caller::default()
    };
    let arguments = json!({ "text": "hello" });
    let echo = Call { name: "misbehave__echo".into(), arguments: arguments.clone(), caller };
    platform.call(echo).await.unwrap();
    let timeout = Some(Duration::from_millis(100));
    let caller = Caller { timeout, ..Caller::default() };
    let hang = Call { name: "misbehave__hang".into(), arguments: json!({}), caller };
    platform.call(hang).await.unwrap_err();
    failure(&platform, "nothing", json!({})).await;
    {
        let mut dropped = std::pin::pin!(call(&platform, "misbehave__hang", json!({})));
        let timeout = Duration::from_millis(50);
        tokio::time::timeout(timeout, dropped.as_mut()).await.expect_err("it hangs");
    }
    platform.shutdown().await;

    let read = |query: Query| history::read(&state, &query).unwrap();
    let records = read(Query::default());
    let outcomes: Vec<&str> = records.iter().map(|record| &*record.outcome).collect();
    assert_eq!(outcomes, ["ok", "deadline", "not-found", "abandoned"]);
    // What was given up has used something, too.
    assert!(records[3].usage.memory_bytes.is_some(), "{:?}", records[3].usage);
    let Record { agent, session, plugin, usage, fingerprint, .. } = &records[0];
    assert_eq!((agent.as_deref(), session.as_deref()), (Some("planner"), Some("s-1")));
    assert_eq!(plugin.as_deref(), Some("misbehave"));
    assert_eq!(records[0].arguments, arguments);
    assert_eq!(*fingerprint, tenon_host::CallFingerprint::of("misbehave__echo", &arguments));
    assert_eq!((usage.attempts, usage.bytes_in, usage.bytes_out), (1, 16, 5));
    assert!(usage.memory_bytes.is_some_and(|bytes| bytes >= 64 << 10));
    assert!(usage.cpu_micros.is_some() && usage.host_calls.is_some());
    assert!(records[1].usage.wall_micros >= 100_000, "{:?}", records[1].usage);
    assert!(records[1].error.as_deref().is_some_and(|error| error.contains("within 100ms")));
    assert_eq!(read(Query { failed: true, ..Query::default() }).len(), 3);
    assert_eq!(read(Query { session: Some("s-1".into()), ..Query::default() }).len(), 1);
    assert_eq!(read(Query { tool: Some("*__hang".into()), ..Query::default() }).len(), 2);
}

/// Has nothing, and notes by which ids it was asked for it.
#[derive(Clone, Default)]
struct NotesCallIds(Arc<Mutex<Vec<String>>>);

impl NotesCallIds {
    fn note(&self, context: CallContext) {
        self.0.lock().unwrap().push(context.call_id);
    }
}

#[async_trait]
impl Plugin for NotesCallIds {
    async fn register(&self) -> Result<Registration, Failure> {
        let identity = Identity::new("n", "1.0.0", "");
        Ok(Registration { resources: true, prompts: true, ..Registration::new(identity) })
    }

    async fn list_resources(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<ResourcePage, Failure> {
        self.note(context);
        let next = cursor.is_none().then(|| "more".to_string());
        Ok(ResourcePage { resources: Vec::new(), next })
    }

    async fn list_templates(
        &self,
        _: Option<String>,
        context: CallContext,
    ) -> Result<TemplatePage, Failure> {
        self.note(context);
        Ok(TemplatePage { templates: Vec::new(), next: None })
    }

    async fn read_resource(
        &self,
        _: &str,
        context: CallContext,
    ) -> Result<Vec<ResourceContents>, Failure> {
        self.note(context);
        Ok(Vec::new())
    }

    async fn subscribe(&self, _: &str, _: bool, context: CallContext) -> Result<(), Failure> {
        self.note(context);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<String>,
        context: CallContext,
    ) -> Result<PromptPage, Failure> {
        self.note(context);
        Ok(PromptPage { prompts: Vec::new(), next: None })
    }

    async fn get_prompt(
        &self,
        _: &str,
        _: Vec<(String, String)>,
        context: CallContext,
    ) -> Result<Prompt, Failure> {
        self.note(context);
        Ok(Prompt { description: None, messages: Vec::new(), extra: None })
    }

    async fn suggest(
        &self,
        _: ArgumentCompletion,
        context: CallContext,
    ) -> Result<Suggestions, Failure> {
        self.note(context);
        Err(Failure::Trapped("no".into()))
    }
}

#[tokio::test]
async fn what_is_asked_of_resources_and_prompts_has_one_id_for_all_who_hear_of_it() {
    let asked = NotesCallIds::default();
    let project = Project::new("");
    let builder = project.builder().builtin("n", asked.clone()).state(project.path("state"));
    let platform = RunningPlatform::new(builder.build().await.unwrap(), project);
    let mut events = platform.events();
    let caller = Caller::default();
    platform.resources("n", &caller).await.unwrap();
    platform.resource_templates("n", &caller).await.unwrap();
    platform.read_resource("n", "x:y", &caller).await.unwrap();
    platform.subscribe("n", "x:y", &caller).await.unwrap();
    platform.unsubscribe("n", "x:y", &caller).await.unwrap();
    platform.prompts("n", &caller).await.unwrap();
    let blanks = vec![("a".to_string(), "b".to_string())];
    platform.prompt("n", "p", blanks.clone(), &caller).await.unwrap();
    let place = CompletionReference::Prompt("p".into());
    let blank = ArgumentCompletion {
        reference: place,
        name: "c".into(),
        value: "d".into(),
        others: blanks,
    };
    assert_eq!(platform.suggest("n", blank, &caller).await.unwrap_err().code(), "trapped");
    platform.subscribe("nobody", "x:y", &caller).await.unwrap_err();

    let mut heard = Vec::new();
    while let Some(event) = events.try_next() {
        let Event::Call(event) = event else { continue };
        heard.push((event.tool.to_string(), event.call.to_string()));
    }
    heard.dedup();
    platform.clone().shutdown().await;
    let records = history::read(&platform.project.path("state"), &Query::default()).unwrap();
    let recorded: Vec<_> = records.iter().map(|of| (of.tool.clone(), of.call.clone())).collect();
    assert_eq!(heard, recorded);
    let what: Vec<_> = records.iter().map(|of| (of.tool.as_str(), &*of.outcome)).collect();
    let expected = [
        ("n__list_resources", "ok"),
        ("n__list_resource_templates", "ok"),
        ("n__read_resource", "ok"),
        ("n__subscribe_resource", "ok"),
        ("n__unsubscribe_resource", "ok"),
        ("n__list_prompts", "ok"),
        ("n__get_prompt", "ok"),
        ("n__suggest", "trapped"),
        ("subscribe_resource", "not-found"),
    ];
    assert_eq!(what, expected);
    let suggested = json!({ "prompt": "p", "name": "c", "value": "d", "filled": { "a": "b" } });
    assert_eq!(records[7].arguments, suggested);
    assert_eq!((records[7].usage.attempts, records[8].usage.attempts), (1, 0));
    let mut ids = asked.0.lock().unwrap().clone();
    // Both pages of a list are of one call.
    assert_eq!(ids.len(), 9);
    ids.dedup();
    let of_records: Vec<_> = records[..8].iter().map(|of| of.call.clone()).collect();
    assert_eq!(ids, of_records);
}

#[tokio::test]
async fn a_configuration_can_do_without_a_record() {
    let project = Project::new("history.enabled = false");
    let state = project.path("state");
    let platform = project.builder().state(&state).build().await.unwrap();
    failure(&platform, "nothing", json!({})).await;
    platform.shutdown().await;
    assert!(!state.exists());
}

#[tokio::test]
async fn a_deterministic_handler_is_not_asked_the_same_twice() {
    let fire = async |configuration: &str, expected: [bool; 3]| {
        let project = Project::new(&format!("plugins.scripts = [\"s.rhai\"]\n{configuration}"));
        project.write("s.rhai", "fn BeforePlan(context) { context.seen = true; }");
        let platform = project.platform().await;
        let mut remembered = Vec::new();
        for goal in ["a", "a", "b"] {
            let context = json!({ "goal": goal });
            let report = platform.fire(&HookPoint::BeforePlan, context, &Caller::default()).await;
            let report = report.unwrap();
            assert_eq!(report.context, json!({ "goal": goal, "seen": true }));
            remembered.push(report.handlers[0].remembered);
        }
        assert_eq!(remembered, expected, "{configuration}");
    };
    fire("hooks.deterministic = [\"s\"]", [false, true, false]).await;
    fire("hooks.deterministic = [\"other\"]", [false, false, false]).await;
}

#[tokio::test]
async fn a_server_learns_the_place_in_the_trace_and_on_request_who_calls() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let meta = async |configuration: &str, traceparent: &str| -> Value {
        let project = Project::new(&format!(
            "plugins.mcp = [{{ name = \"m\", command = {RUDE_SERVER:?} }}]\n{configuration}"
        ));
        let platform: Platform = project.builder().build().await.unwrap();
        let caller = Caller {
            agent_id: Some("planner".into()),
            session_id: Some("s\"1".into()),
            traceparent: Some(traceparent.into()),
            ..Caller::default()
        };
        let call = Call { name: "m__meta".into(), arguments: json!({}), caller };
        let said = platform.call(call).await.unwrap().plain_text();
        platform.shutdown().await;
        serde_json::from_str(&said).unwrap()
    };
    let told = meta("context.passthrough = true", PARENT).await;
    assert_eq!((&told["agent_id"], &told["session_id"]), (&json!("planner"), &json!("s\"1")));
    let traceparent = told["traceparent"].as_str().expect("there is one");
    assert!(traceparent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
    assert!(traceparent != PARENT && traceparent.ends_with("-01"));
    let told = meta("", "nonsense").await;
    let mut members: Vec<&String> = told.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["progressToken"]);
}

/// Results are read by people and models: what they would not see stands there as escapes. A plugin that
/// calls another's tool, and an operator who says so, get them as they are.
#[tokio::test]
async fn what_a_reader_of_a_result_would_not_see_is_visible() {
    let hidden = r#"
        tool(#{ name: "hides", description: "d" }, |a| "a\u202eb\r\n\u200bc");
        tool(#{ name: "tells", description: "d" }, |a| #{ text: "a\u202eb\r\n\u200bc" });
    "#;
    let asks = r#"
        tool(#{ name: "asks", description: "d" }, |a| {
            let answer = call_tool("hides__hides");
            `${answer}`.index_of("\u202e") >= 0
        });
    "#;
    for (settings, text_in, structured_in) in [
        ("", "a\\u{202e}b\r\n\\u{200b}c", r#"{"text":"a\u202eb\r\n\u200bc"}"#),
        (
            "results.invisible = \"raw\"\n",
            "a\u{202e}b\r\n\u{200b}c",
            "{\"text\":\"a\u{202e}b\\r\\n\u{200b}c\"}",
        ),
    ] {
        let project = Project::new(&format!(
            "{settings}[plugins]\nscripts = [\"hides.rhai\", {{ path = \"asks.rhai\", \
             capabilities = {{ tools = [\"hides__*\"] }} }}]"
        ));
        project.write("hides.rhai", hidden);
        project.write("asks.rhai", asks);
        let platform = project.builder().approver(GrantAll).build().await.unwrap();
        let platform = RunningPlatform::new(platform, project);
        let result = call(&platform, "hides__tells", json!({})).await.unwrap();
        assert_eq!(result.structured.unwrap(), structured_in);
        assert_eq!(text(&platform, "hides__hides", json!({})).await, text_in);
        assert_eq!(text(&platform, "asks__asks", json!({})).await, "true");
        platform.clone().shutdown().await;
    }
}
