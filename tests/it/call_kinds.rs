//! All that is asked of a plugin goes one way: hooks, rules, bounds and the record hold whether it is
//! asked for as a tool, by the host's functions or by a verb.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_host::history::{self, Query};
use tenon_host::meta::TRUNCATED;
use tenon_host::services::{GrantAll, Messaging, OutgoingMessage};
use tenon_host::types::{
    ArgumentCompletion, CallContext, CompletionReference, CompletionRequest, Error, HookPoint,
    Identity, Registration, ResourceBody, ResourceContents, Verdict,
};
use tenon_host::{CallError, CallKind, Caller, Event, Failure, Platform, Plugin, Step};

use crate::guests;
use crate::support::{
    Project, RunningPlatform, SCRIPTED_SERVER, call, failure, parsed, stderr, stdout, text,
};

/// A server with a resource, a template and a prompt, and a script beside it.
fn project(configuration: &str, script: &str) -> Project {
    let project = Project::new("");
    let says = project.path("says.json");
    let said = json!({
        "tools/list": { "tools": [] },
        "resources/list": { "resources": [
            { "uri": "memo:///one", "name": "one" }, { "uri": "memo:///two", "name": "two" },
        ] },
        "resources/templates/list": { "resourceTemplates": [
            { "uriTemplate": "memo:///{name}", "name": "any" },
        ] },
        "resources/read": { "contents": [
            { "uri": "memo:///one", "text": "0123456789" },
        ] },
        "prompts/list": { "prompts": [{ "name": "hello" }] },
        "prompts/get": { "messages": [
            { "role": "user", "content": { "type": "text", "text": "Say hello" } },
        ] },
        "completion/complete": { "completion": { "values": ["one", "two"] } },
    });
    project.write("says.json", said.to_string());
    project.write(
        "tenon.toml",
        format!(
            "{configuration}\n[plugins]\nwasm = [{0:?}]\nscripts = [\"guard.rhai\"]\n\
             mcp = [{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [{says:?}] }}]",
            guests::CHECKS
        ),
    );
    project.write("guard.rhai", script);
    project
}

/// What can be asked of the server: as a tool, if there is one; by a function; by a verb.
struct RequestForms {
    tool: &'static str,
    arguments: Value,
    is_tool: bool,
    verb: &'static [&'static str],
}

fn ways() -> Vec<RequestForms> {
    let way = |tool, arguments, is_tool, verb| RequestForms { tool, arguments, is_tool, verb };
    let place = json!({ "template": "memo:///{name}", "name": "name", "value": "", "filled": {} });
    let (uri, prompt) = (json!({ "uri": "memo:///one" }), json!({ "name": "hello" }));
    vec![
        way("list_resources", json!({}), true, &["resources", "list", "s"]),
        way("list_resource_templates", json!({}), true, &["resources", "templates", "s"]),
        way("read_resource", uri.clone(), true, &["resources", "read", "s", "memo:///one"]),
        way("list_prompts", json!({}), true, &["prompts", "list", "s"]),
        way("get_prompt", prompt, true, &["prompts", "get", "s", "hello"]),
        way("subscribe_resource", uri.clone(), false, &[]),
        way("unsubscribe_resource", uri, false, &[]),
        way("suggest", place, false, &[]),
    ]
}

/// Asks by a function of the host, and gives what it answers in JSON.
async fn asked(platform: &Platform, tool: &str) -> Result<Value, CallError> {
    let caller = &Caller::default();
    let uri = "memo:///one";
    let text = |answer: String| Value::from(answer);
    match tool {
        "list_resources" => platform.resources("s", caller).await.map(|a| text(format!("{a:?}"))),
        "list_resource_templates" => {
            platform.resource_templates("s", caller).await.map(|a| text(format!("{a:?}")))
        }
        "read_resource" => {
            platform.read_resource("s", uri, caller).await.map(|a| text(format!("{a:?}")))
        }
        "list_prompts" => platform.prompts("s", caller).await.map(|a| text(format!("{a:?}"))),
        "get_prompt" => {
            let prompt = platform.prompt("s", "hello", Vec::new(), caller).await;
            prompt.map(|a| text(format!("{a:?}")))
        }
        "subscribe_resource" => platform.subscribe("s", uri, caller).await.map(|()| json!(null)),
        "unsubscribe_resource" => {
            platform.unsubscribe("s", uri, caller).await.map(|()| json!(null))
        }
        _ => {
            let reference = CompletionReference::ResourceTemplate("memo:///{name}".into());
            let (name, value) = ("name".into(), String::new());
            let blank = ArgumentCompletion { reference, name, value, others: Vec::new() };
            platform.suggest("s", blank, caller).await.map(|a| text(format!("{a:?}")))
        }
    }
}

#[tokio::test]
async fn a_veto_is_the_same_however_it_is_asked() {
    const VETO: &str =
        r#"fn BeforeToolCall(context) { veto(`${context.tool} ${context.arguments}`) }"#;
    let project = project("", VETO);
    for RequestForms { verb, tool, .. } in ways() {
        if !verb.is_empty() {
            let said = stderr(&project.tenon(verb));
            assert!(said.contains(&format!("vetoed it: s__{tool} #{{")), "{tool}: {said}");
        }
    }
    let platform = project.platform().await;
    let reason = |error: CallError| match error {
        CallError::Vetoed { plugin, reason } => format!("{plugin}: {reason}"),
        other => panic!("{other}"),
    };
    for RequestForms { tool, arguments, is_tool, .. } in ways() {
        let by_host = reason(asked(&platform, tool).await.expect_err(tool));
        assert!(by_host.starts_with(&format!("guard: s__{tool} #{{")), "{by_host}");
        if is_tool && tool != "get_prompt" {
            let by_tool = reason(failure(&platform, &format!("s__{tool}"), arguments).await);
            assert_eq!(by_host, by_tool);
        }
    }
    platform.clone().shutdown().await;
}

#[tokio::test]
async fn a_rule_for_a_tool_holds_for_what_does_the_same() {
    let refused = async |configuration: &str, word: &str| {
        let platform = project(configuration, "").platform().await;
        for RequestForms { tool, .. } in ways() {
            let error = asked(&platform, tool).await.expect_err(tool);
            assert_eq!(error.code(), word, "{configuration} {tool}: {error}");
        }
        platform.clone().shutdown().await;
    };
    refused("tools.\"s__*\".enabled = false", "disabled").await;
    refused("policy.plugins.s.disabled_tools = [\"*\"]", "disabled").await;
    // A list of the only tools that are wanted is one of tools.
    let platform = project("policy.plugins.s.enabled_tools = []", "").platform().await;
    for RequestForms { tool, .. } in ways().into_iter().filter(|way| way.is_tool) {
        asked(&platform, tool).await.expect(tool);
    }
    platform.clone().shutdown().await;
}

/// Has resources, and never answers.
struct UnansweringPlugin;

#[async_trait]
impl Plugin for UnansweringPlugin {
    async fn register(&self) -> Result<Registration, Failure> {
        let (name, version) = ("silent", "1.0.0");
        let identity = Identity::new(name, version, "");
        Ok(Registration { resources: true, ..Registration::new(identity) })
    }

    async fn read_resource(
        &self,
        _: &str,
        _: CallContext,
    ) -> Result<Vec<ResourceContents>, Failure> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn time_and_attempts_of_a_tool_are_those_of_what_does_the_same() {
    for resource_tools in ["none", "shared", "each"] {
        let project = Project::new(&format!(
            "plugins.resource_tools = {resource_tools:?}\n[tools.q__read_resource]\n\
             timeout = \"50ms\"\nmax_attempts = 2\nretry_backoff = \"1ms\""
        ));
        let builder =
            project.builder().builtin("q", UnansweringPlugin).state(project.path("state"));
        let platform = RunningPlatform::new(builder.build().await.unwrap(), project);
        let error = platform.read_resource("q", "a:b", &Caller::default()).await.unwrap_err();
        assert!(error.to_string().contains("within 50ms"), "{error}");
        platform.clone().shutdown().await;
        let state = platform.project.path("state");
        let records = history::read(&state, &Query::default()).unwrap();
        assert_eq!(records[0].usage.attempts, 2);
    }
}

#[tokio::test]
async fn hooks_change_what_is_asked_and_what_is_answered() {
    let script = r#"
        fn BeforeToolCall(context) {
            if context.tool == "s__read_resource" { context.arguments.uri = "memo:///two"; }
            if context.tool == "s__get_prompt" { context.arguments.name = 3; }
        }
        fn AfterToolCall(context) {
            let result = context.result;
            if context.tool == "s__list_resources" {
                result.structuredContent.resources = [result.structuredContent.resources[1]];
            }
            if context.tool == "s__list_prompts" { result.content[0].text = "nothing for you"; }
            if context.tool == "s__read_resource" {
                result.content[0].resource.text = context.arguments.uri;
            }
            if context.tool == "s__suggest" { result.structuredContent.completion.values = ["else"]; }
            context.result = result;
        }
    "#;
    let platform = project("", script).platform().await;
    let caller = &Caller::default();
    let listed = platform.resources("s", caller).await.unwrap();
    assert_eq!(listed.iter().map(|of| of.link.name.as_str()).collect::<Vec<_>>(), ["two"]);
    let read = platform.read_resource("s", "memo:///one", caller).await.unwrap();
    assert!(matches!(&read[0].body, ResourceBody::Text(text) if text == "memo:///two"), "{read:?}");
    let suggested = asked(&platform, "suggest").await.unwrap();
    assert!(suggested.to_string().contains("else"), "{suggested}");
    // What hooks leave that is none is their fault.
    for tool in ["list_prompts", "get_prompt"] {
        let error = asked(&platform, tool).await.unwrap_err();
        let CallError::Failed { plugin, .. } = &error else { panic!("{error}") };
        assert_eq!((&**plugin, error.code()), ("guard", "contract"), "{error}");
    }
    // What they do not touch stays.
    assert_eq!(platform.resource_templates("s", caller).await.unwrap().len(), 1);
    platform.clone().shutdown().await;
}

#[tokio::test]
async fn what_is_too_long_is_cut_and_kept() {
    let project = project("limits.output_kib = 1", "");
    let long = "word ".repeat(1_000);
    let resources: Vec<Value> = (0..100)
        .map(|number| json!({ "uri": format!("memo:///{number}"), "name": "x".repeat(100) }))
        .collect();
    let said = json!({
        "tools/list": { "tools": [] },
        "resources/list": { "resources": resources },
        "resources/read": { "contents": [{ "uri": "memo:///one", "text": long }] },
        "prompts/list": { "prompts": [{ "name": "hello" }] },
        "prompts/get": { "messages": [
            { "role": "user", "content": { "type": "text", "text": long } },
            { "role": "user", "content": { "type": "text", "text": "more" } },
        ] },
    });
    project.write("says.json", said.to_string());
    // Written to a file, it is whole.
    let file = project.path("whole.txt");
    let read = ["resources", "read", "s", "memo:///one", "--output", file.to_str().unwrap()];
    let output = project.tenon(&read);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(file).unwrap(), long);
    let shown = stdout(&project.tenon(&["resources", "read", "s", "memo:///one"]));
    assert!(shown.contains("[cut: the first 1024 of 5000 bytes; the whole is"), "{shown}");

    let platform = project.platform().await;
    let caller = &Caller::default();
    let listed = platform.resources("s", caller).await.unwrap();
    assert!((5..10).contains(&listed.len()), "{}", listed.len());
    let prompt = platform.prompt("s", "hello", Vec::new(), caller).await.unwrap();
    assert_eq!(prompt.messages.len(), 1);
    let read = platform.read_resource("s", "memo:///one", caller).await.unwrap();
    for extra in [&prompt.extra, &read[0].extra] {
        let extra: Value = serde_json::from_str(extra.as_deref().expect("it says so")).unwrap();
        let uri = extra["_meta"][TRUNCATED]["uri"].as_str().expect("it is kept").to_string();
        let whole = format!("{:?}", platform.read_result(&uri).await.unwrap());
        assert!(whole.contains(&long), "{whole}");
    }
    platform.clone().shutdown().await;
}

/// What was heard of a kind of call: the steps, in words.
fn heard(events: &mut tenon_host::Subscription, kind: CallKind) -> Vec<String> {
    let mut words = Vec::new();
    while let Some(event) = events.try_next() {
        let Event::Call(event) = event else { continue };
        if event.kind == kind {
            words.push(match event.step {
                Step::Ended { outcome, .. } => format!("{} {outcome}", event.tool),
                Step::HooksBefore { .. } => "before".into(),
                Step::HooksAfter { .. } => "after".into(),
                _ => continue,
            });
        }
    }
    words
}

const JUDGE: &str = r#"
    strategy(#{ name: "judge", description: "d" }, |subject, options| {
        #{ score: if subject.output == "good" { 1.0 } else { 0.0 }, findings: [] }
    });
    fn BeforeEvaluate(context) {
        if context.subject.output == "stop" { return veto("not this, " + context.strategy); }
        if context.subject.output == "change" { context.subject.output = "good"; }
    }
    fn AfterEvaluate(context) {
        if context.subject.output == "lower" { context.evaluation.score = 0.25; }
        if context.subject.output == "spoil" { context.evaluation.score = 7; }
        if context.subject.output == "late" { return veto("too late"); }
    }
"#;

#[tokio::test]
async fn the_host_fires_the_points_around_an_evaluation() {
    let platform = project("", JUDGE).platform().await;
    let mut events = platform.events();
    let caller = &Caller::default();
    let judged = async |output: &str| {
        let subject = json!({ "output": output });
        platform.evaluate("guard/judge", subject, json!({}), caller).await
    };
    for (output, score) in
        [("good", 1.0), ("bad", 0.0), ("change", 1.0), ("lower", 0.25), ("late", 0.0)]
    {
        assert_eq!(judged(output).await.expect(output).score, score, "{output}");
    }
    let error = judged("stop").await.unwrap_err();
    assert!(
        matches!(&error, CallError::Vetoed { reason, .. } if reason == "not this, guard/judge")
    );
    let error = judged("spoil").await.unwrap_err();
    assert!(error.to_string().contains("the score 7 is not from 0 to 1"), "{error}");
    let heard = heard(&mut events, CallKind::Evaluation);
    assert_eq!(heard[..3], ["before", "after", "guard/judge ok"]);
    assert_eq!(heard[heard.len() - 5..][..2], ["before", "guard/judge vetoed"]);
    // A guard over a component's strategy, too.
    let subject = json!({ "output": "stop", "expected": "stop" });
    let error = platform.evaluate("checks/exact", subject, json!({}), caller).await.unwrap_err();
    assert_eq!(error.code(), "vetoed");
    platform.clone().shutdown().await;
}

#[tokio::test]
async fn what_is_asked_is_recorded_with_its_kind_and_its_usage() {
    let project = Project::new(&format!(
        "plugins = {{ wasm = [{:?}, {:?}], scripts = [\"judge.rhai\"] }}",
        guests::ECHO_PROVIDER,
        guests::MISBEHAVE
    ));
    project.write("judge.rhai", JUDGE);
    let state = project.path("state");
    let platform = project.builder().state(&state).build().await.unwrap();
    let platform = RunningPlatform::new(platform, project);
    let mut events = platform.events();
    let caller = &Caller { agent_id: Some("planner".into()), ..Caller::default() };
    let request = |model: &str| CompletionRequest::new(model, "say this");
    platform.complete(request("echo_provider/echo"), caller).await.unwrap();
    let stream = platform.stream(request("echo_provider/echo"), caller).await.unwrap();
    stream.finish().await.unwrap();
    let stream = platform.stream(request("misbehave/error"), caller).await.unwrap();
    stream.finish().await.unwrap_err();
    drop(platform.stream(request("echo_provider/echo"), caller).await.unwrap());
    platform.complete(request("nobody"), caller).await.unwrap_err();
    let subject = json!({ "output": "good", "password": "mine" });
    let judged = platform.evaluate("judge/judge", subject, json!({}), caller).await.unwrap();
    assert!(matches!(judged.verdict, Verdict::Pass));
    let point = HookPoint::Custom("test:error".into());
    platform.fire(&point, json!({ "a": 1 }), caller).await.unwrap();

    let ended = heard(&mut events, CallKind::Completion);
    assert_eq!(
        ended,
        [
            "echo_provider/echo ok",
            "echo_provider/echo ok",
            "misbehave/error failed",
            "echo_provider/echo abandoned",
            "nobody not-found",
        ]
    );
    platform.clone().shutdown().await;
    let records = history::read(&state, &Query::default()).unwrap();
    let rows: Vec<String> = records
        .iter()
        .map(|of| format!("{} {} {}", of.kind.as_str(), of.tool, of.outcome))
        .collect();
    assert_eq!(
        rows,
        [
            "completion echo_provider/echo ok",
            "completion echo_provider/echo ok",
            "completion misbehave/error failed",
            "completion echo_provider/echo abandoned",
            "completion nobody not-found",
            "hook before-evaluate ok",
            "hook after-evaluate ok",
            "evaluation judge/judge ok",
            "hook test:error failed",
        ]
    );
    for record in &records {
        assert_eq!(record.agent.as_deref(), Some("planner"));
        let is_asked = record.outcome != "not-found";
        assert_eq!(record.usage.attempts, u32::from(is_asked), "{record:?}");
    }
    let said = &records[0];
    assert_eq!(said.arguments["messages"][0]["parts"][0]["text"], "say this");
    assert_eq!((said.usage.bytes_in, said.usage.bytes_out > 0), (8, true));
    assert!(records[1].usage.bytes_out > 0, "{:?}", records[1]);
    // The subject is in the row of the evaluation alone, without its secrets.
    assert_eq!(records[5].arguments, json!({ "strategy": "judge/judge", "plugin": "judge" }));
    assert_eq!(records[7].arguments["subject"]["password"], "[redacted]");
    assert_eq!(records[8].arguments, json!({ "a": 1 }));
    let hooks = Query { kind: Some(CallKind::Hook), ..Query::default() };
    assert_eq!(history::read(&state, &hooks).unwrap().len(), 3);
}

/// Keeps what is sent.
#[derive(Clone, Default)]
struct FakeMessaging(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Messaging for FakeMessaging {
    async fn send(&self, plugin: &str, message: OutgoingMessage) -> Result<(), Error> {
        let OutgoingMessage { channel, text, .. } = message;
        let line = format!("{plugin} to {}: {text}", channel.unwrap_or_default());
        self.0.lock().unwrap().push(line);
        Ok(())
    }
}

#[tokio::test]
async fn a_message_is_not_sent_before_hooks_have_seen_it() {
    let post = FakeMessaging::default();
    let project = Project::new("plugins.folders = [\"own\"]");
    let manifest = |id: &str, runtime: &str| {
        format!(
            "plugin.id = {id:?}\nruntime = {runtime}\n\
             [capabilities]\nmessaging = [\"*\"]\nmemory = [\"search\"]\n\
             tools = [\"none\"]\nproviders = [\"none\"]\nsecrets = [\"none\"]"
        )
    };
    project.write("own/w/plugin.toml", manifest("w", "{ kind = \"wasm\", path = \"c.wasm\" }"));
    project.write("own/w/c.wasm", std::fs::read(guests::CALLER).unwrap());
    project.write("own/r/plugin.toml", manifest("r", "{ kind = \"rhai\", path = \"s.rhai\" }"));
    project.write(
        "own/r/s.rhai",
        r#"tool(#{ name: "send", description: "d", schema: #{ type: "object" } }, |a| {
               send_message(a.channel, a.text); "sent" });
           fn MessageSending(context) {
               if context.message == "stop" { return veto("not to " + context.channel); }
               if context.message == "change" {
                   context.message = "changed by " + context.plugin;
                   context.channel = "elsewhere";
               }
               if context.message == "empty" { context.remove("message"); }
               if context.message == "again" { send_message("here", "again"); }
           }"#,
    );
    let builder = project.builder().messaging(post.clone()).approver(GrantAll);
    let platform = RunningPlatform::new(builder.build().await.unwrap(), project);
    let send = |text: &str| json!({ "channel": "here", "text": text });
    for plugin in ["w", "r"] {
        let name = format!("{plugin}__send");
        assert_eq!(text(&platform, &name, send("hi")).await, "sent");
        assert_eq!(text(&platform, &name, send("change")).await, "sent");
        for (said, why) in [("stop", "vetoed it: not to here"), ("empty", "left nothing")] {
            let said = match call(&platform, &name, send(said)).await {
                Ok(result) => result.plain_text(),
                Err(error) => error.to_string(),
            };
            assert!(said.contains(why), "{said}");
        }
    }
    let sent = std::mem::take(&mut *post.0.lock().unwrap());
    let expected = ["w to here: hi", "w to here: changed by w", "r to here: hi"];
    assert_eq!(sent[..3], expected);
    assert_eq!(sent[3..], ["r to here: changed by r"]);
    // A handler that sends messages itself does not do so without end.
    let ended = call(&platform, "w__send", send("again"));
    let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
    ended.expect("it ends").expect("a handler that fails is skipped");
    assert!((1..=9).contains(&post.0.lock().unwrap().len()));
    platform.clone().shutdown().await;
}

#[test]
fn history_shows_what_was_asked_by_verbs() {
    let project = project("", "");
    for RequestForms { verb, tool, .. } in ways().into_iter().filter(|way| way.is_tool) {
        let output = project.tenon(verb);
        assert!(output.status.success(), "{tool}: {}", stderr(&output));
    }
    let rows = parsed(&project.tenon(&["--json", "history"]));
    let rows = rows.as_array().expect("a list").iter();
    let kinds: Vec<_> = rows.map(|row| row["kind"].as_str().unwrap_or_default()).collect();
    let expected = [
        "list-resources",
        "list-resource-templates",
        "read-resource",
        "list-prompts",
        "get-prompt",
    ];
    assert_eq!(kinds, expected);
    let unknown = stderr(&project.tenon(&["history", "--kind", "other"]));
    assert!(unknown.contains("the kinds are tool, list-resources"), "{unknown}");
}
