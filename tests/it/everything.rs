//! What is expected of a plugin that has what the conformance suite of MCP asks a server for, of whatever kind and in
//! whatever language. Its id is `everything`.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_host::services::{
    AskingPlugin, CallClient, ClientFeature, ClientFeatures, GrantAll, LogMessage, Offers, Progress,
};
use tenon_host::types::{
    ArgumentCompletion, Completion, CompletionReference, CompletionRequest, CompletionSummary,
    Error, FormAnswer, FormRequest, LogLevel, Part, StopReason, TokenUsage, mcp_json,
};
use tenon_host::{Call, CallError, Caller, Event, Failure, Platform, Subscription};
use tokio::time::timeout;

use crate::support::{Project, manifest_of, stderr};

/// Passes the names of all expectations to a macro, behind what that needs to know.
macro_rules! expectations {
    ($then:ident! $($with:tt)*) => {
        $then! {
            $($with)*
            tools_return_every_kind_of_content,
            an_error_of_a_tool_is_a_result,
            resources_are_listed_and_read,
            who_subscribes_is_told,
            prompts_are_filled_in,
            values_of_arguments_are_suggested,
            progress_is_reported,
            what_is_logged_reaches_the_operator,
            the_user_is_asked,
            a_model_is_asked,
            a_call_has_its_own_client,
            what_it_remembers_outlives_a_restart,
            a_change_of_its_tools_is_noticed,
            a_call_is_cancelled_and_the_next_one_works,
            its_memory_does_not_grow_with_calls,
        }
    };
}
pub(crate) use expectations;

/// The manifest of the plugin where it is a component or a script.
pub(crate) fn manifest(runtime: &str) -> String {
    manifest_of("everything", runtime)
}

/// A client with a user who fills in forms, and a model.
#[derive(Clone, Default)]
struct HostClient(Arc<Mutex<Vec<Value>>>);

#[async_trait]
impl ClientFeatures for HostClient {
    fn offers(&self) -> Offers {
        Offers { forms: true, pages: false, sampling: true, roots: false }
    }

    async fn ask(&self, requester: &AskingPlugin, form: FormRequest) -> Result<FormAnswer, Error> {
        let fields: Vec<_> = form.schema["properties"].as_object().unwrap().keys().collect();
        self.0.lock().unwrap().push(json!([requester.plugin, form.message, fields]));
        if form.message == "no" {
            return Ok(FormAnswer::Declined);
        }
        let answer = json!({ "username": "ada", "email": "ada@example.com" });
        Ok(FormAnswer::Accepted(serde_json::from_value(answer).unwrap()))
    }

    async fn complete(
        &self,
        requester: &AskingPlugin,
        request: CompletionRequest,
    ) -> Result<Completion, Error> {
        let [message] = &request.messages[..] else { panic!("{request:?}") };
        let Part::Text(prompt) = &message.parts[0] else { panic!("{request:?}") };
        let asked = json!([requester.plugin, prompt, request.sampling.max_tokens]);
        self.0.lock().unwrap().push(asked);
        let usage = TokenUsage { input: 1, output: 1, cached_input: 0, reasoning: 0 };
        let summary = CompletionSummary {
            model: "m".into(),
            stop_reason: StopReason::EndTurn,
            usage,
            extra: None,
        };
        Ok(Completion { parts: vec![Part::Text("Paris".into())], summary })
    }
}

/// A host of the project, and what its client was asked.
async fn host(project: &Project) -> (Platform, HostClient) {
    let client = HostClient::default();
    let builder = project.builder().workspace(project.path("")).state(project.path("state"));
    let builder = builder.approver(GrantAll).client_features(client.clone());
    let platform = builder.build().await.expect("it is built");
    (platform, client)
}

async fn call(platform: &Platform, tool: &str, arguments: Value) -> Value {
    let result = platform.call(Call::new(format!("everything__{tool}"), arguments)).await;
    let mut result =
        mcp_json::tool_result(&result.unwrap_or_else(|error| panic!("{tool}: {error}")));
    result.as_object_mut().unwrap().remove("_meta");
    result
}

/// The next event that is wanted.
async fn heard<T>(events: &mut Subscription, wanted: impl Fn(Event) -> Option<T>) -> T {
    let next = async {
        loop {
            if let Some(found) = wanted(events.next().await.expect("the platform runs")) {
                return found;
            }
        }
    };
    timeout(Duration::from_secs(30), next).await.expect("it is told")
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

async fn says(platform: &Platform, tool: &str, arguments: Value, words: &str) {
    assert_eq!(call(platform, tool, arguments).await["content"], json!([text(words)]), "{tool}");
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime_type, "text": text } })
}

/// Whether it is a picture.
fn assert_picture(data: &Value, mime_type: &Value) {
    assert!(data.as_str().unwrap().starts_with("iVBORw0KGgo"), "{data}");
    assert_eq!(mime_type, "image/png");
}

pub(crate) async fn tools_return_every_kind_of_content(project: Project) {
    let (platform, _) = host(&project).await;
    let simple = "This is a simple text response for testing.";
    says(&platform, "test_simple_text", json!({}), simple).await;
    let image = call(&platform, "test_image_content", json!({})).await["content"][0].clone();
    assert_eq!(image["type"], "image");
    assert_picture(&image["data"], &image["mimeType"]);
    let audio = call(&platform, "test_audio_content", json!({})).await["content"][0].clone();
    assert_eq!((&audio["type"], &audio["mimeType"]), (&json!("audio"), &json!("audio/wav")));
    assert!(audio["data"].as_str().unwrap().starts_with("UklGR"), "{audio}");
    let words = "This is an embedded resource content.";
    let resource = embedded("test://embedded-resource", "text/plain", words);
    let found = call(&platform, "test_embedded_resource", json!({})).await;
    assert_eq!(found["content"], json!([resource]));
    let mixed = call(&platform, "test_multiple_content_types", json!({})).await;
    let [first, second, third] = &mixed["content"].as_array().unwrap()[..] else {
        panic!("{mixed}")
    };
    assert_eq!(*first, text("Multiple content types test:"));
    assert_eq!(second["type"], "image");
    let data = r#"{"test":"data","value":123}"#;
    assert_eq!(*third, embedded("test://mixed-content-resource", "application/json", data));
    platform.shutdown().await;
}

pub(crate) async fn an_error_of_a_tool_is_a_result(project: Project) {
    let (platform, _) = host(&project).await;
    let failed = call(&platform, "test_error_handling", json!({})).await;
    assert_eq!(failed["isError"], true);
    assert_eq!(
        failed["content"],
        json!([text("This tool intentionally returns an error for testing")])
    );
    platform.shutdown().await;
}

pub(crate) async fn resources_are_listed_and_read(project: Project) {
    let (platform, _) = host(&project).await;
    let caller = Caller::default();
    let listed = platform.resources("everything", &caller).await.expect("they are listed");
    let mut uris: Vec<_> = listed.iter().map(|listed| listed.link.uri.as_str()).collect();
    uris.sort_unstable();
    let known = ["test://static-binary", "test://static-text", "test://watched-resource"];
    assert_eq!(uris, known);
    let templates = platform.resource_templates("everything", &caller).await;
    let templates = templates.expect("they are listed");
    let templates: Vec<_> = templates.iter().map(|of| of.uri_template.as_str()).collect();
    assert_eq!(templates, ["test://template/{id}/data"]);
    let read = async |uri: &str| {
        let read = platform.read_resource("everything", uri, &caller).await;
        let read = read.unwrap_or_else(|error| panic!("{uri}: {error}"));
        assert_eq!((read.len(), read[0].uri.as_str()), (1, uri));
        mcp_json::resource_contents(&read[0])
    };
    let words = "This is the content of the static text resource.";
    assert_eq!(read("test://static-text").await["text"], words);
    let picture = read("test://static-binary").await;
    assert_picture(&picture["blob"], &picture["mimeType"]);
    let data = read("test://template/123/data").await;
    assert_eq!(data["mimeType"], "application/json");
    let data: Value = serde_json::from_str(data["text"].as_str().unwrap()).expect("it is JSON");
    let expected = json!({ "id": "123", "templateTest": true, "data": "Data for ID: 123" });
    assert_eq!(data, expected);
    let gone = platform.read_resource("everything", "test://nothing", &caller).await.unwrap_err();
    assert!(gone.to_string().contains("test://nothing"), "{gone}");
    platform.shutdown().await;
}

pub(crate) async fn who_subscribes_is_told(project: Project) {
    let (platform, _) = host(&project).await;
    let (caller, uri) = (Caller::default(), "test://watched-resource");
    let read = async || {
        let read = platform.read_resource("everything", uri, &caller).await.expect("it is read");
        mcp_json::resource_contents(&read[0])["text"].as_str().unwrap().to_string()
    };
    let before = read().await;
    platform.subscribe("everything", uri, &caller).await.expect("it is subscribed to");
    let mut events = platform.events();
    says(&platform, "test_update_watched_resource", json!({}), "Resource updated").await;
    let told = heard(&mut events, |event| match event {
        Event::ResourceUpdated { plugin, uri } => Some((plugin, uri)),
        _ => None,
    });
    let told = told.await;
    assert_eq!((&*told.0, &*told.1), ("everything", uri));
    let after = read().await;
    assert!(after != before && after.contains("changed 1 times"), "{after}");
    platform.unsubscribe("everything", uri, &caller).await.expect("it is not any more");
    platform.shutdown().await;
}

pub(crate) async fn prompts_are_filled_in(project: Project) {
    let (platform, _) = host(&project).await;
    let caller = Caller::default();
    let listed = platform.prompts("everything", &caller).await.expect("they are listed");
    let mut names: Vec<_> = listed.iter().map(|prompt| prompt.name.as_str()).collect();
    names.sort_unstable();
    let known = [
        "test_prompt_with_arguments",
        "test_prompt_with_embedded_resource",
        "test_prompt_with_image",
        "test_simple_prompt",
    ];
    assert_eq!(names, known);
    let arguments = &listed.iter().find(|prompt| prompt.name == known[0]).unwrap().arguments;
    let arguments: Vec<_> = arguments.iter().map(|of| (of.name.as_str(), of.required)).collect();
    assert_eq!(arguments, [("arg1", true), ("arg2", true)]);
    let get = async |name: &str, arguments: &[(&str, &str)]| {
        let pair = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let arguments = arguments.iter().map(pair).collect();
        let prompt = platform.prompt("everything", name, arguments, &caller).await;
        let prompt = prompt.unwrap_or_else(|error| panic!("{name}: {error}"));
        let messages = mcp_json::prompt(&prompt)["messages"].as_array().unwrap().clone();
        let contents = messages.into_iter().map(|mut message| {
            assert_eq!(message["role"], "user");
            message["content"].take()
        });
        contents.collect::<Vec<_>>()
    };
    let words = "This is a simple prompt for testing.";
    assert_eq!(get("test_simple_prompt", &[]).await, [text(words)]);
    let arguments = [("arg1", "hello"), ("arg2", "world")];
    let words = "Prompt with arguments: arg1='hello', arg2='world'";
    assert_eq!(get("test_prompt_with_arguments", &arguments).await, [text(words)]);
    let uri = "test://example-resource";
    let words = "Embedded resource content for testing.";
    let expected =
        [embedded(uri, "text/plain", words), text("Please process the embedded resource above.")];
    let arguments = [("resourceUri", uri)];
    assert_eq!(get("test_prompt_with_embedded_resource", &arguments).await, expected);
    let [image, words] = &get("test_prompt_with_image", &[]).await[..] else { panic!() };
    assert_picture(&image["data"], &image["mimeType"]);
    assert_eq!(*words, text("Please analyze the image above."));
    platform.shutdown().await;
}

pub(crate) async fn values_of_arguments_are_suggested(project: Project) {
    let (platform, _) = host(&project).await;
    let suggest = async |reference: CompletionReference, name: &str, value: &str| {
        let argument = ArgumentCompletion {
            reference,
            name: name.into(),
            value: value.into(),
            others: Vec::new(),
        };
        let suggested = platform.suggest("everything", argument, &Caller::default()).await;
        suggested.expect("it suggests").values
    };
    let prompt = || CompletionReference::Prompt("test_prompt_with_arguments".into());
    assert_eq!(suggest(prompt(), "arg1", "par").await, ["paris", "park", "party"]);
    assert_eq!(suggest(prompt(), "arg1", "x").await, [""; 0]);
    let template = CompletionReference::ResourceTemplate("test://template/{id}/data".into());
    assert_eq!(suggest(template, "id", "12").await, ["123", "124"]);
    platform.shutdown().await;
}

pub(crate) async fn progress_is_reported(project: Project) {
    let (platform, _) = host(&project).await;
    let mut events = platform.events();
    let words = "Tool with progress executed successfully";
    says(&platform, "test_tool_with_progress", json!({}), words).await;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let report = heard(&mut events, |event| match event {
            Event::Progress { progress, total, message, .. } => Some((progress, total, message)),
            _ => None,
        });
        seen.push(report.await);
    }
    let step =
        |step: u32| (f64::from(step), Some(100.0), Some(format!("Completed step {step} of 100")));
    assert_eq!(seen, [step(0), step(50), step(100)]);
    platform.shutdown().await;
}

pub(crate) async fn what_is_logged_reaches_the_operator(project: Project) {
    let approved = project.tenon(&["approve", "everything", "--yes"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    let mut command = project.command(&["call", "everything__test_tool_with_logging", "{}"]);
    let output = command.env("TENON_LOG", "info").output().expect("tenon starts");
    let log = stderr(&output);
    let lines: Vec<_> = log.lines().filter(|line| line.contains("Tool ")).collect();
    for words in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let line = lines.iter().find(|line| line.contains(words)).expect(&log);
        assert!(line.contains("INFO") && line.contains("everything"), "{line}");
    }
}

pub(crate) async fn the_user_is_asked(project: Project) {
    let (platform, client) = host(&project).await;
    let question = json!({ "message": "Who are you?" });
    let words = "User response: accept, ada, ada@example.com";
    says(&platform, "test_elicitation", question, words).await;
    let declined = "User response: decline";
    says(&platform, "test_elicitation", json!({ "message": "no" }), declined).await;
    let fields = |asked: &Value| {
        let mut fields: Vec<String> = serde_json::from_value(asked[2].clone()).unwrap();
        fields.sort();
        (asked[0].clone(), asked[1].clone(), fields)
    };
    let asked: Vec<_> = client.0.lock().unwrap().iter().map(fields).collect();
    let expected = |message: &str| {
        (json!("everything"), json!(message), vec!["email".to_string(), "username".to_string()])
    };
    assert_eq!(asked, [expected("Who are you?"), expected("no")]);
    platform.shutdown().await;
}

pub(crate) async fn a_model_is_asked(project: Project) {
    let (platform, client) = host(&project).await;
    let question = json!({ "prompt": "What is the capital of France?" });
    says(&platform, "test_sampling", question, "LLM response: Paris").await;
    let asked = json!([["everything", "What is the capital of France?", 100]]);
    assert_eq!(json!(*client.0.lock().unwrap()), asked);
    platform.shutdown().await;
}

/// The client of one call.
struct RecordingCallClient {
    user: &'static str,
    heard: Mutex<Vec<String>>,
}

#[async_trait]
impl ClientFeatures for RecordingCallClient {
    fn offers(&self) -> Offers {
        Offers { forms: self.user != "nobody", ..Offers::default() }
    }

    fn remedy(&self, _: ClientFeature) -> String {
        "use another client".into()
    }

    async fn ask(&self, _: &AskingPlugin, form: FormRequest) -> Result<FormAnswer, Error> {
        self.heard.lock().unwrap().push(format!("asked: {}", form.message));
        Ok(FormAnswer::accept([("username", self.user), ("email", "own")]))
    }
}

impl CallClient for RecordingCallClient {
    fn progress(&self, progress: Progress) {
        let Progress { done, total, .. } = progress;
        self.heard.lock().unwrap().push(format!("{done} of {total:?}"));
    }

    fn wants_log(&self, level: LogLevel) -> bool {
        level == LogLevel::Info
    }

    fn log(&self, message: LogMessage) {
        let LogMessage { plugin, text, .. } = message;
        // A server says whose message it is.
        let text = text.split(" (logger").next().unwrap();
        self.heard.lock().unwrap().push(format!("{plugin}: {text}"));
    }
}

pub(crate) async fn a_call_has_its_own_client(project: Project) {
    let (platform, of_host) = host(&project).await;
    let call = async |client: &Arc<RecordingCallClient>, tool: &str, arguments: Value| {
        let client = Some(client.clone().into());
        let caller = Caller { client, ..Caller::default() };
        let name = format!("everything__{tool}");
        let result = platform.call(Call { name, arguments, caller }).await;
        result.map_or_else(|error| error.to_string(), |result| result.plain_text())
    };
    let client = |user| Arc::new(RecordingCallClient { user, heard: Mutex::default() });
    for client in [client("ada"), client("bob")] {
        let said = call(&client, "test_elicitation", json!({ "message": "Who?" })).await;
        assert_eq!(said, format!("User response: accept, {}, own", client.user));
        call(&client, "test_tool_with_progress", json!({})).await;
        call(&client, "test_tool_with_logging", json!({})).await;
        let expected = [
            "asked: Who?",
            "0 of Some(100.0)",
            "50 of Some(100.0)",
            "100 of Some(100.0)",
            "everything: Tool execution started",
            "everything: Tool processing data",
            "everything: Tool execution completed",
        ];
        assert_eq!(*client.heard.lock().unwrap(), expected);
    }
    let said = call(&client("nobody"), "test_elicitation", json!({ "message": "Who?" })).await;
    // A server says in its own words that it was refused.
    assert!(!said.contains("accept"), "{said}");
    assert!(of_host.0.lock().unwrap().is_empty(), "the host's is not asked");
    says(&platform, "test_elicitation", json!({ "message": "no" }), "User response: decline").await;
    platform.shutdown().await;
}

pub(crate) async fn what_it_remembers_outlives_a_restart(project: Project) {
    let (platform, _) = host(&project).await;
    says(&platform, "test_remember", json!({ "word": "oak" }), "1").await;
    says(&platform, "test_remember", json!({ "word": "ash" }), "2").await;
    platform.shutdown().await;
    let (platform, _) = host(&project).await;
    says(&platform, "test_remember", json!({ "word": "elm" }), "3").await;
    platform.shutdown().await;
}

pub(crate) async fn a_change_of_its_tools_is_noticed(project: Project) {
    let (platform, _) = host(&project).await;
    let mut events = platform.events();
    says(&platform, "test_trigger_tool_change", json!({}), "Tools changed").await;
    let plugin = heard(&mut events, |event| match event {
        Event::Registered { plugin } => Some(plugin),
        _ => None,
    });
    assert_eq!(&*plugin.await, "everything");
    says(&platform, "test_remember", json!({ "word": "oak" }), "1").await;
    platform.shutdown().await;
}

pub(crate) async fn a_call_is_cancelled_and_the_next_one_works(project: Project) {
    let (platform, _) = host(&project).await;
    let mut call_of_wait = Call::new("everything__test_wait", json!({}));
    call_of_wait.caller.timeout = Some(Duration::from_millis(200));
    let error = platform.call(call_of_wait).await.expect_err("nobody answers it");
    assert!(matches!(error, CallError::Failed { failure: Failure::Deadline(_), .. }), "{error}");
    let words = "This is a simple text response for testing.";
    says(&platform, "test_simple_text", json!({}), words).await;
    platform.shutdown().await;
}

/// A plugin that kept a hundred bytes of each call would grow by several pages.
pub(crate) async fn its_memory_does_not_grow_with_calls(project: Project) {
    const ROUNDS: usize = 1_000;
    let (platform, _) = host(&project).await;
    let caller = Caller::default();
    let round = async || {
        let read = platform.read_resource("everything", "test://static-text", &caller).await;
        read.expect("it is read");
        let prompt = platform.prompt("everything", "test_simple_prompt", Vec::new(), &caller);
        prompt.await.expect("it is filled in");
        let call = Call {
            name: "everything__test_simple_text".into(),
            arguments: json!({}),
            caller: caller.clone(),
        };
        let result = platform.call(call).await.expect("it is called");
        let extra = result.extra.expect("it says what it used");
        let extra: Value = serde_json::from_str(&extra).expect("it is JSON");
        extra["_meta"]["tenon/usage"]["memoryBytes"].as_u64()
    };
    let mut before = None;
    for _ in 0..ROUNDS / 4 {
        before = round().await;
    }
    let mut after = None;
    for _ in 0..ROUNDS {
        after = round().await;
    }
    assert_eq!(after, before);
    platform.shutdown().await;
}
