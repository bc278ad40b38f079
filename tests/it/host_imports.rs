//! What plugins can ask of the host, components and scripts alike: behind grants, and through the
//! same pipeline as any other call.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_host::history::{self, Query};
use tenon_host::services::{
    ApprovalRequest, Approver, GrantAll, GrantDecision, Memory, MemorySearch, Messaging,
    OutgoingMessage, Secret, SecretStore,
};
use tenon_host::types::{Error, ErrorCode};
use tenon_host::{Call, CallError, Caller, Failure, HostEnvironment, Platform, PluginState};
use tokio::sync::Notify;

use crate::guests;
use crate::support::{Project, RunningPlatform, call, failure, host_environment, text};

/// A post office that keeps what it is given.
#[derive(Clone, Default)]
struct Post(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Messaging for Post {
    async fn send(&self, plugin: &str, message: OutgoingMessage) -> Result<(), Error> {
        let OutgoingMessage { channel, text, .. } = message;
        let line = format!("{plugin} to {}: {text}", channel.as_deref().unwrap_or("the user"));
        self.0.lock().unwrap().push(line);
        Ok(())
    }
}

struct FakeMemory;

#[async_trait]
impl MemorySearch for FakeMemory {
    async fn search(&self, _: &str, query: &str, limit: u32) -> Result<Vec<Memory>, Error> {
        // More than was asked for.
        let memory = |i| Memory { text: format!("{query} {i}"), score: 0.5, source: None };
        Ok((0..limit + 2).map(memory).collect())
    }
}

const SCRIPT: &str = r#"
    let schema = #{ type: "object" };
    tool(#{ name: "call", description: "d", schema: schema }, |a| `${call_tool(a.name, a.arguments)}`);
    tool(#{ name: "ask", description: "d", schema: schema }, |a| complete(a.model, a.prompt));
    tool(#{ name: "send", description: "d", schema: schema }, |a| {
        if "channel" in a { send_message(a.channel, a.text) } else { send_message(a.text) }
        "sent"
    });
    tool(#{ name: "recall", description: "d", schema: schema }, |a| {
        let texts = "";
        for found in search_memory(a.query, 3) {
            if texts != "" { texts += "; "; }
            texts += found.text;
        }
        texts
    });
    strategy(#{ name: "judged", description: "d" }, |subject, options| {
        if complete(options.model, subject.output).contains("good") { 1.0 } else { 0.0 }
    });
"#;

const CAPABILITIES: &str = r#"
    [capabilities]
    tools = ["text_tools__slug", "*__call"]
    providers = ["echo_provider/*"]
    messaging = ["*"]
    memory = ["search"]
    secrets = ["api-key", "unset"]
"#;

/// A project with two plugins that turn to the host, one of each kind, and with those they turn to.
fn project(capabilities: &str) -> Project {
    let project = Project::new(&format!(
        "plugins = {{ folders = [\"own\"], wasm = [{:?}, {:?}] }}",
        guests::TEXT_TOOLS,
        guests::ECHO_PROVIDER
    ));
    let manifest = |id: &str, runtime: &str| {
        format!("plugin.id = {id:?}\nruntime = {runtime}\n{capabilities}")
    };
    let wasm = manifest("w", "{ kind = \"wasm\", path = \"caller.wasm\" }");
    project.write("own/w/plugin.toml", wasm);
    project.write("own/w/caller.wasm", std::fs::read(guests::CALLER).unwrap());
    project.write("own/r/plugin.toml", manifest("r", "{ kind = \"rhai\", path = \"s.rhai\" }"));
    project.write("own/r/s.rhai", SCRIPT);
    project
}

async fn platform(capabilities: &str, approver: impl Approver, post: Post) -> RunningPlatform {
    let project = project(capabilities);
    let builder = project.builder().messaging(post).memory(FakeMemory).approver(approver);
    RunningPlatform::new(builder.build().await.expect("the platform is built"), project)
}

#[tokio::test]
async fn what_is_granted_works_for_every_kind() {
    let post = Post::default();
    let platform = platform(CAPABILITIES, GrantAll, post.clone()).await;
    for plugin in ["w", "r"] {
        let name = |tool: &str| format!("{plugin}__{tool}");
        let slug = json!({ "name": "text_tools__slug", "arguments": { "text": "A b" } });
        assert_eq!(text(&platform, &name("call"), slug).await, "a-b");
        let ask = json!({ "model": "echo_provider/echo", "prompt": "say this" });
        assert_eq!(text(&platform, &name("ask"), ask).await, "say this");
        assert_eq!(text(&platform, &name("send"), json!({ "text": "hi" })).await, "sent");
        let found = text(&platform, &name("recall"), json!({ "query": "tea" })).await;
        assert_eq!(found, "tea 0; tea 1; tea 2");
    }
    assert_eq!(*post.0.lock().unwrap(), ["w to the user: hi", "r to the user: hi"]);
    assert_eq!(text(&platform, "w__list", json!({})).await, "r__call text_tools__slug w__call");
}

#[tokio::test]
async fn an_evaluation_may_ask_a_model() {
    let platform = platform(CAPABILITIES, GrantAll, Post::default()).await;
    for plugin in ["w", "r"] {
        for (output, score) in [("all good", 1.0), ("all bad", 0.0)] {
            let options = json!({ "model": "echo_provider/echo" });
            let subject = json!({ "output": output });
            let (name, caller) = (format!("{plugin}/judged"), Caller::default());
            let evaluation = platform.evaluate(&name, subject, options, &caller).await.unwrap();
            assert_eq!(evaluation.score, score, "{name} of {output}");
        }
        let options = json!({ "model": "other" });
        let (name, caller) = (format!("{plugin}/judged"), Caller::default());
        let error = platform.evaluate(&name, json!({ "output": "x" }), options, &caller).await;
        let said = error.unwrap_err().to_string();
        assert!(said.contains("asking the model other is not granted"), "{said}");
    }
}

/// Why a call of a plugin by a plugin was refused, in whatever form its kind says so.
async fn refusal(platform: &Platform, name: &str, arguments: Value) -> String {
    match call(platform, name, arguments).await {
        Ok(result) if result.is_error => result.plain_text(),
        Err(CallError::Failed { failure: Failure::Answered(error), .. })
            if error.code == ErrorCode::Denied =>
        {
            error.message
        }
        other => panic!("{name}: {other:?}"),
    }
}

#[tokio::test]
async fn what_is_not_granted_is_refused_in_the_same_words() {
    struct PartialApprover;

    #[async_trait]
    impl Approver for PartialApprover {
        async fn approve(&self, request: &ApprovalRequest) -> GrantDecision {
            let mut granted = request.capabilities.clone();
            granted.insert("tools".into(), vec!["text_tools__slug".into()]);
            granted.insert("messaging".into(), vec!["ops".into()]);
            granted.into()
        }
    }

    let post = Post::default();
    let platform = platform(CAPABILITIES, PartialApprover, post.clone()).await;
    for plugin in ["w", "r"] {
        let name = |tool: &str| format!("{plugin}__{tool}");
        let case = json!({ "name": "text_tools__count", "arguments": { "text": "A b" } });
        let said = refusal(&platform, &name("call"), case).await;
        let expected = format!(
            "plugin \"{plugin}\": calling the tool text_tools__count is not granted; its \
             plugin.toml would request it with `tools = [\"text_tools__count\"]` under [capabilities]"
        );
        assert!(said.contains(&expected), "{said}");
        let said = refusal(&platform, &name("send"), json!({ "text": "hi" })).await;
        assert!(said.contains("sending a message is not granted"), "{said}");
        let ask = json!({ "model": "other", "prompt": "x" });
        let said = refusal(&platform, &name("ask"), ask).await;
        assert!(said.contains("asking the model other is not granted"), "{said}");
    }
    assert!(post.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn one_channel_can_be_granted() {
    let post = Post::default();
    let capabilities = "capabilities.messaging = [\"ops\"]\ncapabilities.memory = [\"search\"]\ncapabilities.tools = [\"x\"]\ncapabilities.secrets = [\"x\"]\ncapabilities.providers = [\"x\"]";
    let platform = platform(capabilities, GrantAll, post.clone()).await;
    for plugin in ["w", "r"] {
        let send = format!("{plugin}__send");
        let message = json!({ "text": "hi", "channel": "ops" });
        assert_eq!(text(&platform, &send, message).await, "sent");
    }
    assert_eq!(*post.0.lock().unwrap(), ["w to ops: hi", "r to ops: hi"]);
}

#[tokio::test]
async fn without_an_approver_nothing_is_granted() {
    let platform = project(CAPABILITIES).platform().await;
    let states: Vec<_> = platform.plugins().iter().map(|r| (r.plugin.clone(), r.state)).collect();
    for plugin in ["w", "r"] {
        assert!(states.contains(&(plugin.to_string(), PluginState::Refused)), "{states:?}");
    }
    // A manifest that requests nothing gets nothing, whoever would grant it.
    let platform = self::platform("", GrantAll, Post::default()).await;
    let report = platform.plugins().iter().find(|r| r.plugin == "w").cloned().unwrap();
    assert_eq!(report.state, PluginState::Refused);
    assert!(report.detail.unwrap().contains("is not granted"));
}

#[tokio::test]
async fn a_script_that_waits_for_the_host_does_not_hold_it_up() {
    // One thread: what blocked it would block everything.
    let platform = platform(CAPABILITIES, GrantAll, Post::default()).await;
    let slug = json!({ "name": "text_tools__slug", "arguments": { "text": "A b" } });
    // More than there are places for scripts, each of which waits for another one.
    let calls = (0..100).map(|_| {
        let arguments = json!({ "name": "r__call", "arguments": slug });
        text(&platform, "r__call", arguments)
    });
    let said = futures::future::join_all(calls).await;
    assert!(said.iter().all(|said| said == "a-b"));
}

/// A keeper of one secret, which no environment has.
struct OneSecret;

#[async_trait]
impl SecretStore for OneSecret {
    async fn secret(&self, plugin: &str, name: &str) -> Option<Secret> {
        (name == "api-key").then(|| Secret::new(format!("hunter22-{plugin}")))
    }
}

#[tokio::test]
async fn a_secret_reaches_the_plugin_and_nobody_else() {
    let project = project(CAPABILITIES);
    let builder = project.builder().approver(GrantAll).secrets(OneSecret);
    let platform = RunningPlatform::new(builder.build().await.expect("it is built"), project);
    let secret = |name: &str, plain: bool| json!({ "name": name, "plain": plain });
    let spelt = text(&platform, "w__secret", secret("api-key", false)).await;
    assert_eq!(spelt.replace(' ', ""), "hunter22-w");
    assert_eq!(text(&platform, "w__secret", secret("api-key", true)).await, "it is [redacted]");
    let said = |name: &'static str| failure(&platform, "w__secret", secret(name, true));
    let said = [said("unset").await.to_string(), said("other").await.to_string()];
    assert!(said[0].contains("the secret unset is not set"), "{}", said[0]);
    let expected = "plugin \"w\": the secret other is not granted; its plugin.toml would request \
                    it with `secrets = [\"other\"]` under [capabilities]";
    assert!(said[1].contains(expected), "{}", said[1]);
    assert!(!format!("{:?}", platform.plugins()).contains("hunter22"));
}

#[tokio::test]
async fn only_the_variables_that_were_granted_are_seen() {
    let project = Project::new("plugins.folders = [\"own\"]");
    let manifest = "plugin.id = \"e\"\nruntime = { kind = \"wasm\", path = \"e.wasm\" }\n\
                    capabilities.environment = [\"SEEN\", \"SEEN_TOKEN\", \"UNSET\"]";
    project.write("own/e/plugin.toml", manifest);
    project.write("own/e/e.wasm", std::fs::read(guests::ESCAPE).unwrap());
    let variables = [("SEEN", "one"), ("SEEN_TOKEN", "two-two-two"), ("HIDDEN", "three")];
    let environment = variables.map(|(name, value)| (name.into(), value.into())).into();
    let host_environment = HostEnvironment { environment, ..host_environment() };
    let builder = project.builder().host_environment(host_environment).approver(GrantAll);
    let platform = RunningPlatform::new(builder.build().await.expect("it is built"), project);
    let seen = text(&platform, "e__environment", json!({})).await;
    let of_each = |one: &str| [one; 3].join(" ");
    assert_eq!(seen, format!("{} {}", of_each("SEEN=one"), of_each("SEEN_TOKEN=[redacted]")));
}

/// Forbids one call of a tool, and changes what others of it answer.
const GUARD: &str = r#"
    fn BeforeToolCall(context) {
        if context.tool == "text_tools__slug" && context.arguments.text == "no" {
            return veto("not this one");
        }
    }
    fn AfterToolCall(context) {
        if context.tool == "text_tools__slug" { context.result.content[0].text += "!"; }
    }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_plugin_calls_is_held_to_what_any_call_is_and_recorded_as_its() {
    let project = project(
        "[capabilities]\ntools = [\"text_tools__*\"]\nproviders = [\"x\"]\n\
         messaging = [\"*\"]
         memory = [\"search\"]\nsecrets = [\"x\"]",
    );
    project.write("guard.rhai", GUARD);
    project.write(
        "tenon.toml",
        format!(
            "plugins = {{ folders = [\"own\"], wasm = [{:?}], scripts = [\"guard.rhai\"] }}\n\
             tools.text_tools__count.enabled = false",
            guests::TEXT_TOOLS
        ),
    );
    let state = project.path("state");
    let builder = project.builder().approver(GrantAll).state(&state);
    let platform = RunningPlatform::new(builder.build().await.expect("it is built"), project);
    let caller = Caller {
        agent_id: Some("agent-1".into()),
        session_id: Some("session-1".into()),
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
        ..Caller::default()
    };
    // What comes of a call, be it in a result or an error.
    let ask = async |name: &str, arguments: Value| {
        let caller = caller.clone();
        match platform.call(Call { name: name.into(), arguments, caller }).await {
            Ok(result) => result.plain_text(),
            Err(error) => error.to_string(),
        }
    };
    let rows = [
        ("text_tools__slug", "A b", "a-b!"),
        ("text_tools__slug", "no", "plugin \"guard\" vetoed it: not this one"),
        ("text_tools__count", "A b", "the tool text_tools__count is disabled by "),
    ];
    for (tool, subject, expected) in rows {
        let arguments = json!({ "text": subject });
        let direct = ask(tool, arguments.clone()).await;
        assert!(direct.starts_with(expected), "{tool}: {direct}");
        for plugin in ["w", "r"] {
            let nested = json!({ "name": tool, "arguments": arguments });
            let said = ask(&format!("{plugin}__call"), nested).await;
            assert!(said.contains(&direct), "{plugin} {tool}: {said}, and not {direct}");
        }
    }
    platform.clone().shutdown().await;
    let records = history::read(&state, &Query::default()).unwrap();
    for (tool, subject, _) in rows {
        let of = |by: Option<&str>| {
            let is_it = |record: &&history::Record| {
                record.tool == tool
                    && record.by.as_deref() == by
                    && record.arguments == json!({ "text": subject })
            };
            let found: Vec<_> = records.iter().filter(is_it).collect();
            assert_eq!(found.len(), 1, "{tool} {subject} by {by:?}");
            let record = found[0];
            let trace = record.trace.as_deref();
            assert_eq!(trace, Some("4bf92f3577b34da6a3ce929d0e0e4736"), "{tool} by {by:?}");
            (
                record.outcome.clone(),
                record.agent.clone(),
                record.session.clone(),
                record.fingerprint,
            )
        };
        let direct = of(None);
        let whose = (direct.1.as_deref(), direct.2.as_deref());
        assert_eq!(whose, (Some("agent-1"), Some("session-1")), "{tool}");
        for plugin in ["w", "r"] {
            assert_eq!(of(Some(plugin)), direct, "{tool} {subject} by {plugin}");
        }
    }
}

/// A post office that takes its time: it says when it was given a message, and delivers it when it may.
#[derive(Clone, Default)]
struct SlowMessaging {
    given: Arc<Notify>,
    may_deliver: Arc<Notify>,
}

#[async_trait]
impl Messaging for SlowMessaging {
    async fn send(&self, _: &str, _: OutgoingMessage) -> Result<(), Error> {
        self.given.notify_one();
        self.may_deliver.notified().await;
        Ok(())
    }
}

/// An instance that serves several calls turns to the host for the one in whose task it does. The length of the chain
/// is that of the longest, as work in no call's task belongs to none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_instance_asks_for_while_it_serves_two_callers_is_for_the_one_that_asks() {
    let capabilities = CAPABILITIES.replace("*__call", "w__*");
    let project = project(&capabilities);
    let manifest = "plugin.id = \"w\"\n\
                    runtime = { kind = \"wasm\", path = \"caller.wasm\", instance = \"shared\" }";
    project.write("own/w/plugin.toml", format!("{manifest}\n{capabilities}"));
    let (state, post) = (project.path("state"), SlowMessaging::default());
    let builder = project.builder().approver(GrantAll).messaging(post.clone()).state(&state);
    let platform = RunningPlatform::new(builder.build().await.expect("it is built"), project);
    let call = async |name: &str, arguments: Value, session: &str| {
        let caller = Caller {
            agent_id: Some("agent-1".into()),
            session_id: Some(session.into()),
            ..Caller::default()
        };
        match platform.call(Call { name: name.into(), arguments, caller }).await {
            Ok(result) => result.plain_text(),
            Err(error) => error.to_string(),
        }
    };
    let calls = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let slug = |subject: &str| calls("text_tools__slug", json!({ "text": subject }));
    let twice = |subject: &str| calls("w__call", slug(subject));
    assert_eq!(call("w__call", twice("Alone A"), "a").await, "alone-a");

    // Someone sends a message, and waits until another call was made meanwhile.
    let meanwhile = async |name: &str, arguments: Value, other: Value| {
        let waiting = call(name, arguments, "a");
        let other = async {
            post.given.notified().await;
            let said = call("w__call", other, "b").await;
            post.may_deliver.notify_one();
            said
        };
        let both = futures::future::join(waiting, other);
        tokio::time::timeout(Duration::from_secs(60), both).await.expect("the message is sent")
    };
    let send = json!({ "text": "hi" });
    let deep = (0..6).fold(calls("w__send", send.clone()), |inner, _| calls("w__call", inner));
    let (sent, other) = meanwhile("w__call", deep, twice("Meanwhile B")).await;
    assert_eq!(sent, "sent");
    let too_long = "the chain of calls of plugins by plugins is longer than 8";
    assert!(other.contains(too_long), "{other}");
    // One that is not deep is no hindrance.
    let (sent, other) = meanwhile("w__send", send, twice("Together B")).await;
    assert_eq!((&*sent, &*other), ("sent", "together-b"));
    assert_eq!(call("w__call", twice("Alone B"), "b").await, "alone-b");

    platform.clone().shutdown().await;
    let records = history::read(&state, &Query::default()).unwrap();
    for (subject, session) in
        [("Alone A", Some("a")), ("Together B", Some("b")), ("Alone B", Some("b"))]
    {
        let is_it = |record: &&history::Record| record.arguments == json!({ "text": subject });
        let found: Vec<_> = records.iter().filter(is_it).collect();
        let [record] = found[..] else { panic!("{subject}: {found:?}") };
        let of = (record.by.as_deref(), record.agent.as_deref(), record.session.as_deref());
        assert_eq!(of, (Some("w"), Some("agent-1"), session), "{subject}");
    }
}
