//! The host in which `tenon test` and embedders run one plugin.

use async_trait::async_trait;
use serde_json::json;
use std::time::Duration;
use tenon_host::services::{Messaging, OutgoingMessage};
use tenon_host::types::hook::HookPoint;
use tenon_host::types::{
    ArgumentCompletion, Completion, CompletionReference, CompletionRequest, Error, FormAnswer,
    Message, Part, ResourceBody, Role, SamplingOptions, ToolChoice, UrlAnswer,
};
use tenon_host::{CallError, Caller, Failure, HookOutcome, Limits, PluginState};
use tenon_test_host::{ManualClock, Scope, StartError, State, TestHost};

use crate::guests;
use crate::support::DEMO_SERVER;

/// Takes whatever it is given.
struct Sink;

#[async_trait]
impl Messaging for Sink {
    async fn send(&self, _: &str, _: OutgoingMessage) -> Result<(), Error> {
        Ok(())
    }
}

#[tokio::test]
async fn a_plugin_has_what_the_test_grants_and_nothing_else() {
    // A component loads only where something of each capability is granted that it imports.
    let granted = TestHost::component(guests::CALLER)
        .grant("messaging", ["*"])
        .grant("memory", ["search"])
        .grant("providers", ["none"])
        .grant("tools", ["none"])
        .secret("api-key", "s3cret-of-the-test")
        .host(|builder| builder.messaging(Sink))
        .start()
        .await
        .unwrap();
    let sent = granted.call("send", json!({ "text": "hi" })).await.unwrap();
    assert_eq!(sent.plain_text(), "sent");
    let secret = granted.call("secret", json!({ "name": "api-key", "plain": false })).await;
    assert!(secret.unwrap().plain_text().starts_with("s 3 c"));

    let ask = json!({ "model": "other", "prompt": "tea" });
    let said = granted.call("ask", ask).await.unwrap_err().to_string();
    assert!(said.contains("asking the model other is not granted"), "{said}");
    assert!(said.contains("`providers = [\"other\"]`"), "{said}");
    granted.shutdown().await;
}

#[tokio::test]
async fn arguments_are_held_against_the_schema() {
    let plugin = TestHost::component(guests::HELLO).start().await.unwrap();
    let greeted = plugin.call("greet", json!({ "name": "Ada" })).await.unwrap();
    assert_eq!(greeted.plain_text(), "Hello, Ada!");
    let refused = plugin.call("greet", json!({ "name": 3 })).await;
    assert!(matches!(refused, Err(CallError::InvalidInput { .. })), "{refused:?}");
    let unknown = plugin.call("wave", json!({})).await;
    assert!(matches!(unknown, Err(CallError::NotFound { .. })), "{unknown:?}");
}

#[tokio::test]
async fn limits_hold() {
    let limits = Limits { wall: Duration::from_millis(100), ..Limits::default() };
    let plugin = TestHost::component(guests::MISBEHAVE).limits(limits).start().await.unwrap();
    let given_up = plugin.call("hang", json!({})).await;
    assert!(matches!(given_up, Err(CallError::Failed { failure: Failure::Deadline(_), .. })));
}

#[tokio::test]
async fn hooks_strategies_and_models_are_asked() {
    let hooks = TestHost::component(guests::REDACT);
    let hooks = hooks.config(json!({ "prefixes": ["corp_"] })).start().await.unwrap();
    let context = json!({ "message": "corp_0123456789ab" });
    let report = hooks.hook(HookPoint::MessageSending, context).await.unwrap();
    assert!(matches!(report.outcome, HookOutcome::Continue));
    assert_eq!(report.context["message"], "[redacted]");

    let evals = TestHost::component(guests::CHECKS).start().await.unwrap();
    let subject = json!({ "output": "a", "expected": "a" });
    assert_eq!(evals.evaluate("exact", subject, json!({})).await.unwrap().score, 1.0);

    let provider = TestHost::component(guests::ECHO_PROVIDER).start().await.unwrap();
    let completion = provider.complete(request("echo", "say this")).await.unwrap();
    let [Part::Text(text)] = &completion.parts[..] else { panic!("{completion:?}") };
    assert_eq!(text, "say this");
}

fn request(model: &str, prompt: &str) -> CompletionRequest {
    let message = Message { role: Role::User, parts: vec![Part::Text(prompt.into())] };
    let sampling = SamplingOptions {
        max_tokens: None,
        temperature: None,
        top_p: None,
        stop_sequences: Vec::new(),
        seed: None,
    };
    CompletionRequest {
        model: model.into(),
        messages: vec![message],
        tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        sampling,
        response_schema: None,
        extra: None,
    }
}

#[tokio::test]
async fn a_tool_beside_the_plugin_is_called_where_that_is_granted() {
    let plugin = TestHost::component(guests::CALLER)
        .shared()
        .beside(guests::TEXT_TOOLS)
        .grant("tools", ["text_tools__slug"])
        .grant("providers", ["none"])
        .grant("messaging", ["*"])
        .grant("memory", ["search"])
        .secret("api-key", "s3cret-of-the-test")
        .start()
        .await
        .unwrap();
    let asked = json!({ "name": "text_tools__slug", "arguments": { "text": "A b" } });
    assert_eq!(plugin.call("call", asked).await.unwrap().plain_text(), "a-b");
}

#[tokio::test]
async fn scripts_and_servers_run_as_well() {
    let folder = tempfile::TempDir::new().unwrap();
    let script = folder.path().join("s.rhai");
    let text = "tool(#{ name: \"say\", description: \"d\", schema: #{ type: \"object\" } }, |a| config(\"word\"));";
    std::fs::write(&script, text).unwrap();
    let script = TestHost::script(script).config(json!({ "word": "hi" })).start().await.unwrap();
    assert_eq!(script.call("say", json!({})).await.unwrap().plain_text(), "hi");

    let server = TestHost::server(DEMO_SERVER, [""; 0]).start().await.unwrap();
    let said = server.call("echo", json!({ "text": "hi" })).await.unwrap();
    assert!(said.plain_text().contains("hi"), "{said:?}");
    server.shutdown().await;
}

/// A plugin that asks, keeps state, and has resources and prompts.
fn everything() -> TestHost {
    TestHost::component(guests::EVERYTHING_RUST)
        .grant("state", ["project"])
        .user(|form| match form.message.as_str() {
            "no" => FormAnswer::Declined,
            _ => FormAnswer::accept([("username", "ada")]),
        })
        .default_model(|request| match &request.messages[0].parts[..] {
            [Part::Text(prompt)] if prompt == "no" => Err(Error::denied("the user refuses")),
            _ => Ok(Completion::text("m", "Paris")),
        })
}

#[tokio::test]
async fn the_test_answers_for_the_user_and_the_default_model() {
    let plugin = everything().start().await.unwrap();
    for (message, answer) in
        [("who?", "User response: accept, ada, "), ("no", "User response: decline")]
    {
        let result = plugin.call("test_elicitation", json!({ "message": message })).await;
        assert_eq!(result.unwrap().plain_text(), answer);
    }
    let forms = plugin.forms();
    let asked: Vec<&str> = forms.iter().map(|form| form.message.as_str()).collect();
    assert_eq!(asked, ["who?", "no"]);
    assert_eq!(forms[0].schema["required"], json!(["username"]));

    let result = plugin.call("test_sampling", json!({ "prompt": "Capital?" })).await.unwrap();
    assert_eq!(result.plain_text(), "LLM response: Paris");
    let refused = plugin.call("test_sampling", json!({ "prompt": "no" })).await.unwrap_err();
    assert!(refused.to_string().contains("the user refuses"), "{refused}");
    let requests = plugin.model_requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].sampling.max_tokens, Some(100));
}

#[tokio::test]
async fn resources_prompts_and_suggestions_are_asked_for() {
    let plugin = everything().start().await.unwrap();
    let listed = plugin.resources().await.unwrap();
    assert!(listed.iter().any(|listed| listed.link.uri == "test://static-text"), "{listed:?}");
    let templates = plugin.resource_templates().await.unwrap();
    let template = CompletionReference::ResourceTemplate(templates[0].uri_template.clone());
    let read = plugin.read_resource("test://static-text").await.unwrap();
    let ResourceBody::Text(text) = &read[0].body else { panic!("{read:?}") };
    assert_eq!(text, "This is the content of the static text resource.");
    assert!(plugin.read_resource("test://nowhere").await.is_err());

    let prompts = plugin.prompts().await.unwrap();
    assert!(prompts.iter().any(|prompt| prompt.name == "test_simple_prompt"), "{prompts:?}");
    let name = "test_prompt_with_arguments";
    let arguments = [("arg1", "a"), ("arg2", "b")];
    let filled_in = format!("{:?}", plugin.prompt(name, &arguments).await.unwrap());
    assert!(filled_in.contains("arg1='a', arg2='b'"), "{filled_in}");

    let prompt = CompletionReference::Prompt(name.into());
    for (reference, argument, typed, expected) in
        [(prompt, "arg1", "par", "paris"), (template, "id", "2", "200")]
    {
        let argument = ArgumentCompletion::new(reference, argument, typed);
        assert_eq!(plugin.suggest(argument).await.unwrap().values[0], expected);
    }
}

#[tokio::test]
async fn state_is_set_before_a_run_and_looked_at_after_it() {
    let state = State::new();
    state.set(Scope::Project, "words", &json!(["ten"]));
    for (word, count) in [("on", "2"), ("s", "3")] {
        let plugin = everything().state(&state).start().await.unwrap();
        let result = plugin.call("test_remember", json!({ "word": word })).await.unwrap();
        assert_eq!(result.plain_text(), count);
        plugin.shutdown().await;
    }
    assert_eq!(state.get(Scope::Project, "words"), Some(json!(["ten", "on", "s"])));
    let plugin = everything().start().await.unwrap();
    assert!(plugin.state().keys(Scope::Project).is_empty(), "each run begins with its own state");
}

/// A script that the test writes.
fn script(text: &str) -> (TestHost, tempfile::TempDir) {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("s.rhai");
    std::fs::write(&path, text).unwrap();
    (TestHost::script(path), folder)
}

#[tokio::test]
async fn a_script_is_told_the_time_of_the_test_and_keeps_it_for_its_session() {
    let (script, _folder) = script(
        r#"tool(#{ name: "mark", description: "d" }, |a| {
            let last = state.get("last");
            state.set("last", now());
            if last == () { "never" } else { `${timestamp() - parse_time(last)}` }
        });"#,
    );
    let clock = ManualClock::at("2026-01-31T08:30:00Z");
    let plugin = script.grant("state", ["session"]).clock(&clock).start().await.unwrap();
    let monday =
        plugin.with_caller(Caller { session_id: Some("monday".into()), ..Caller::default() });
    assert_eq!(monday.call("mark", json!({})).await.unwrap().plain_text(), "never");
    clock.advance(Duration::from_secs(3 * 60 * 60));
    assert_eq!(monday.call("mark", json!({})).await.unwrap().plain_text(), "3h");
    let last = plugin.state().get(Scope::Session("monday"), "last");
    assert_eq!(last, Some(json!("2026-01-31T11:30:00Z")));
    let of_none = plugin.call("mark", json!({})).await.unwrap();
    assert!(of_none.is_error && of_none.plain_text().contains("no session"), "{of_none:?}");
}

#[tokio::test]
async fn the_test_opens_a_page_or_not() {
    let (script, _folder) = script(
        r#"tool(#{ name: "pay", description: "d" }, |a| ask_url("Pay", "https://pay.example.com/17"));"#,
    );
    let plugin = script.pages(|_| UrlAnswer::Accepted).start().await.unwrap();
    assert_eq!(plugin.call("pay", json!({})).await.unwrap().plain_text(), "true");
    assert_eq!(plugin.pages()[0].url, "https://pay.example.com/17");
}

#[tokio::test]
async fn why_a_plugin_does_not_start_is_said() {
    let missing = TestHost::component("nowhere.wasm").start().await.err();
    assert!(matches!(missing, Some(StartError::File { .. })), "{missing:?}");
    let ungranted = TestHost::component(guests::CALLER).grant("tools", ["*"]).start().await;
    let said = ungranted.err().expect("it imports more").to_string();
    assert!(said.contains("is not granted; request it in plugin.toml with"), "{said}");
    let failing = TestHost::component(guests::MISBEHAVE).config(json!({ "register": "error" }));
    let Some(StartError::NotThere { state, reason, .. }) = failing.start().await.err() else {
        panic!("it does not start");
    };
    assert_eq!(state, PluginState::Failed);
    assert!(reason.contains("I would rather not"), "{reason}");
}
