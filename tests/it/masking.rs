//! Every way out of a plugin's text, with a secret in it: it is never shown.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tenon_config::secret::MASK;
use tenon_host::history::{self, Query};
use tenon_host::services::{
    AskingPlugin, ClientFeatures, GrantAll, Memory, MemorySearch, Messaging, Offers,
    OutgoingMessage,
};
use tenon_host::types::{
    ArgumentCompletion, CallContext, Completion, CompletionReference, CompletionRequest,
    CompletionSummary, Content, ContentBlock, Error, EvalDefinition, Evaluation, Finding,
    FormAnswer, FormRequest, HookContext, HookDecision, HookEvent, HookPoint, HookRegistration,
    Identity, Json, ListedResource, Media, ModelFeatures, ModelInfo, Part, Prompt, PromptArgument,
    PromptDefinition, PromptMessage, PromptPage, PromptRole, ProviderDefinition, Reasoning,
    Registration, ResourceBody, ResourceContents, ResourceLink, ResourcePage, ResourceTemplate,
    StopReason, Suggestions, TemplatePage, TokenUsage, ToolCall, ToolCallResult, ToolDefinition,
    ToolResult, UrlAnswer, UrlRequest, Verdict,
};
use tenon_host::{Call, CallKind, Caller, Event, Failure, Platform, Plugin, Subscription};

use crate::guests;
use crate::support::{Project, RUDE_SERVER, RunningPlatform, parsed, stderr, stdout, stored};

const SECRET: &str = "hunter/22\u{e4}";

/// What is left of the secret wherever it is shown, however it is spelled.
const TRACE: &str = "22";

fn said() -> String {
    format!("it is {SECRET}!")
}

/// The secret in JSON, as a name and as a value, in escapes.
fn json_said() -> String {
    let escaped: String = SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    format!("{{\"{escaped}\":\"it is hunter\\/22\u{e4}\"}}")
}

/// A plugin that tells the secret wherever it can.
struct Telling;

fn block(body: Content) -> ContentBlock {
    ContentBlock { body, extra: Some(json_said()) }
}

fn media() -> Media {
    Media { data: said().into_bytes(), mime_type: said() }
}

fn link() -> ResourceLink {
    ResourceLink {
        uri: said(),
        name: said(),
        title: Some(said()),
        description: Some(said()),
        mime_type: Some(said()),
        size: None,
    }
}

fn contents() -> Vec<ResourceContents> {
    let bodies = [
        ResourceBody::Text(said()),
        ResourceBody::Blob(said().into_bytes()),
        ResourceBody::Blob(json_said().into_bytes()),
    ];
    let part = |body| ResourceContents {
        uri: said(),
        mime_type: Some(said()),
        body,
        extra: Some(json_said()),
    };
    bodies.map(part).into()
}

fn blocks() -> Vec<ContentBlock> {
    let (start, rest) = SECRET.split_at(4);
    let mut blocks = vec![
        block(Content::Text(said())),
        // In two texts, which are read one after the other; others come in between.
        block(Content::Text(format!("it is {start}"))),
        block(Content::Image(media())),
        block(Content::Text(format!("{rest}!"))),
        block(Content::Image(media())),
        block(Content::Audio(media())),
        block(Content::ResourceLink(link())),
        ContentBlock { body: Content::Other(json_said()), extra: None },
    ];
    blocks.extend(contents().into_iter().map(|part| block(Content::Resource(part))));
    blocks
}

fn summary() -> CompletionSummary {
    CompletionSummary {
        model: said(),
        stop_reason: StopReason::Other(said()),
        usage: TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 },
        extra: Some(json_said()),
    }
}

#[async_trait]
impl Plugin for Telling {
    async fn register(&self) -> Result<Registration, Failure> {
        let (name, version) = ("telling", "1.0.0");
        let identity = Identity::new(name, version, "");
        let schema = json!({ "type": "object" });
        Ok(Registration {
            tools: ["tell", "fail", "trap"].map(|n| ToolDefinition::new(n, "d", &schema)).into(),
            hooks: ["context", "veto", "fail"]
                .map(|n| HookRegistration::new(HookPoint::Custom(format!("test:{n}"))))
                .into(),
            providers: vec![ProviderDefinition { name: "p".into(), description: String::new() }],
            evals: vec![EvalDefinition {
                name: "e".into(),
                description: String::new(),
                options_schema: None,
            }],
            resources: true,
            prompts: true,
            ..Registration::new(identity)
        })
    }

    async fn call_tool(&self, name: &str, _: Json, _: CallContext) -> Result<ToolResult, Failure> {
        match name {
            "fail" => Err(Failure::Answered(Error::failed(said()))),
            "trap" => Err(Failure::Trapped(said())),
            _ => Ok(ToolResult {
                content: blocks(),
                structured: Some(json_said()),
                is_error: false,
                extra: Some(json_said()),
            }),
        }
    }

    async fn handle(&self, event: HookEvent) -> Result<HookDecision, Failure> {
        match event.point.to_string().as_str() {
            "test:context" => Ok(HookDecision::Replace(HookContext::parse(&json_said()).unwrap())),
            "test:veto" => Ok(HookDecision::Veto(said())),
            _ => Err(Failure::Answered(Error::failed(said()))),
        }
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, Failure> {
        let model = |id: &str, provider: &str| ModelInfo {
            id: id.into(),
            provider: provider.into(),
            title: Some(said()),
            context_window: None,
            max_output_tokens: None,
            features: ModelFeatures::default(),
        };
        Ok(vec![model("m", "p"), model(&said(), "p"), model("n", &said())])
    }

    async fn complete(
        &self,
        request: CompletionRequest,
        _: CallContext,
    ) -> Result<Completion, Failure> {
        if request.model == "fails" {
            return Err(Failure::Answered(Error::failed(said())));
        }
        let reasoning =
            |text: &str, proof| Part::Reasoning(Reasoning { text: text.into(), signature: proof });
        let (start, rest) = SECRET.split_at(4);
        let parts = vec![
            Part::Text(said()),
            reasoning(&said(), Some(said())),
            // In two parts, of which a stream makes two pieces; others come in between.
            Part::Text(format!("it is {start}")),
            reasoning(&format!("it is {start}"), None),
            Part::ToolCall(ToolCall { id: said(), name: said(), arguments: json_said() }),
            Part::Text(format!("{rest}!")),
            reasoning(&format!("{rest}!"), None),
            Part::ToolCallResult(ToolCallResult { id: said(), content: blocks(), is_error: true }),
            Part::Image(media()),
            Part::Audio(media()),
            Part::Other(json_said()),
        ];
        Ok(Completion { parts, summary: summary() })
    }

    async fn evaluate(
        &self,
        _: &str,
        _: Json,
        _: Json,
        _: CallContext,
    ) -> Result<Evaluation, Failure> {
        let finding =
            Finding { criterion: said(), verdict: Verdict::Pass, score: None, reason: said() };
        Ok(Evaluation {
            score: 1.0,
            verdict: Verdict::Pass,
            findings: vec![finding],
            extra: Some(json_said()),
        })
    }

    async fn list_resources(
        &self,
        _: Option<String>,
        _: CallContext,
    ) -> Result<ResourcePage, Failure> {
        let resource = |uri: &str| {
            let link = ResourceLink { uri: uri.into(), ..link() };
            ListedResource { link, extra: Some(json_said()) }
        };
        Ok(ResourcePage { resources: vec![resource("a:b"), resource(&said())], next: None })
    }

    async fn list_templates(
        &self,
        _: Option<String>,
        _: CallContext,
    ) -> Result<TemplatePage, Failure> {
        let template = |uri_template: &str| ResourceTemplate {
            uri_template: uri_template.into(),
            name: said(),
            title: Some(said()),
            description: Some(said()),
            mime_type: Some(said()),
            extra: Some(json_said()),
        };
        Ok(TemplatePage { templates: vec![template("a:{b}"), template(&said())], next: None })
    }

    async fn read_resource(
        &self,
        _: &str,
        _: CallContext,
    ) -> Result<Vec<ResourceContents>, Failure> {
        Ok(contents())
    }

    async fn subscribe(&self, _: &str, _: bool, _: CallContext) -> Result<(), Failure> {
        Err(Failure::Answered(Error::not_found(said())))
    }

    async fn list_prompts(&self, _: Option<String>, _: CallContext) -> Result<PromptPage, Failure> {
        let argument = |name: &str| PromptArgument {
            name: name.into(),
            title: Some(said()),
            description: Some(said()),
            required: false,
            extra: Some(json_said()),
        };
        let prompt = |name: &str, of: &str| PromptDefinition {
            name: name.into(),
            title: Some(said()),
            description: Some(said()),
            arguments: vec![argument(of)],
            extra: Some(json_said()),
        };
        let prompts = vec![prompt("p", "a"), prompt(&said(), "a"), prompt("q", &said())];
        Ok(PromptPage { prompts, next: None })
    }

    async fn get_prompt(
        &self,
        _: &str,
        _: Vec<(String, String)>,
        _: CallContext,
    ) -> Result<Prompt, Failure> {
        let message =
            |content| PromptMessage { role: PromptRole::User, content, extra: Some(json_said()) };
        Ok(Prompt {
            description: Some(said()),
            messages: blocks().into_iter().map(message).collect(),
            extra: Some(json_said()),
        })
    }

    async fn suggest(&self, _: ArgumentCompletion, _: CallContext) -> Result<Suggestions, Failure> {
        let extra = Some(json_said());
        Ok(Suggestions { values: vec![said()], total: None, has_more: false, extra })
    }
}

/// Keeps what is sent.
#[derive(Clone, Default)]
struct RecordingMessenger(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Messaging for RecordingMessenger {
    async fn send(&self, _: &str, message: OutgoingMessage) -> Result<(), Error> {
        self.0.lock().unwrap().push(format!("{message:?}"));
        Ok(())
    }
}

async fn telling() -> RunningPlatform {
    let project = Project::new(&format!(
        "plugins.scripts = [\"keeper.rhai\"]\n[settings.keeper]\napi_key = {SECRET:?}"
    ));
    project.write("keeper.rhai", "");
    let builder = project.builder().builtin("t", Telling).state(project.path("state"));
    RunningPlatform::new(builder.build().await.expect("the platform is built"), project)
}

/// What was said has no secret in it, in whatever spelling, and says that there was one.
fn check(way: &str, said: &str) {
    let bytes = |text: &str| format!("{:?}", text.as_bytes()).trim_matches(['[', ']']).to_string();
    for trace in [SECRET.to_string(), TRACE.into(), "\\u0068".into(), bytes(SECRET)] {
        assert!(!said.contains(&trace), "{way} shows {trace}: {said}");
    }
    assert!(said.contains(MASK) || said.contains(&bytes(MASK)), "{way}: {said}");
}

fn events(events: &mut Subscription) -> String {
    let mut all = String::new();
    while let Some(event) = events.try_next() {
        all.push_str(&serde_json::to_string(&event).expect("an event is JSON"));
    }
    all
}

fn request(model: &str) -> CompletionRequest {
    CompletionRequest::new(format!("t/{model}"), said())
}

/// The answers of a platform, each by its way out. Numbers of time and memory are no part of them.
async fn answers(platform: &Platform) -> Vec<(&'static str, String)> {
    let caller = &Caller::default();
    let call = async |tool: &str, arguments: Value| {
        let mut answer = platform.call(Call::new(tool, arguments)).await;
        if let Ok(result) = &mut answer {
            assert!(result.extra.as_deref().is_none_or(|extra| extra.contains("tenon/usage")));
            let extra: Value =
                serde_json::from_str(result.extra.as_deref().unwrap_or("{}")).unwrap();
            let others = extra.as_object().unwrap().iter().filter(|(name, _)| *name != "_meta");
            result.extra = Some(json!(others.collect::<Vec<_>>()).to_string());
        }
        format!("{answer:?}")
    };
    let place = || CompletionReference::Prompt("p".into());
    let blank = ArgumentCompletion {
        reference: place(),
        name: "a".into(),
        value: String::new(),
        others: Vec::new(),
    };
    let fire = async |point: &str| {
        let point = HookPoint::Custom(format!("test:{point}"));
        let mut report = platform.fire(&point, json!({}), caller).await.unwrap();
        report.handlers.iter_mut().for_each(|handler| handler.micros = 0);
        format!("{report:?}")
    };
    let mut stream = platform.stream(request("m"), caller).await.expect("it begins");
    let mut deltas = Vec::new();
    while let Some(delta) = stream.next().await {
        deltas.push(delta);
    }
    vec![
        ("tool result", call("t__tell", json!({})).await),
        ("tool failure", call("t__fail", json!({})).await),
        ("tool trap", call("t__trap", json!({})).await),
        ("resources as a tool", call("t__list_resources", json!({})).await),
        ("templates as a tool", call("t__list_resource_templates", json!({})).await),
        ("read as a tool", call("t__read_resource", json!({ "uri": "a:b" })).await),
        (
            "read as a tool, cut in the secret",
            call("t__read_resource", json!({ "uri": "a:b", "maxBytes": 17 })).await,
        ),
        ("prompts as a tool", call("t__list_prompts", json!({})).await),
        ("prompt as a tool", call("t__get_prompt", json!({ "name": "p" })).await),
        ("resources", format!("{:?}", platform.resources("t", caller).await)),
        ("templates", format!("{:?}", platform.resource_templates("t", caller).await)),
        ("read", format!("{:?}", platform.read_resource("t", "a:b", caller).await)),
        ("prompts", format!("{:?}", platform.prompts("t", caller).await)),
        ("prompt", format!("{:?}", platform.prompt("t", "p", Vec::new(), caller).await)),
        ("suggestions", format!("{:?}", platform.suggest("t", blank, caller).await)),
        ("subscription", format!("{:?}", platform.subscribe("t", "a:b", caller).await)),
        ("models", format!("{:?}", platform.models().await)),
        ("completion", format!("{:?}", platform.complete(request("m"), caller).await)),
        ("completion failure", format!("{:?}", platform.complete(request("fails"), caller).await)),
        ("deltas", format!("{deltas:?}")),
        ("summary", format!("{:?}", stream.finish().await)),
        ("stream failure", format!("{:?}", platform.stream(request("fails"), caller).await.err())),
        (
            "evaluation",
            format!("{:?}", platform.evaluate("t/e", json!({}), json!({}), caller).await),
        ),
        ("hook context", fire("context").await),
        ("veto", fire("veto").await),
        ("hook failure", fire("fail").await),
    ]
}

#[tokio::test]
async fn a_secret_is_shown_on_no_way_out() {
    let platform = telling().await;
    let mut subscription = platform.events();
    for (way, said) in answers(&platform).await {
        check(way, &said);
    }
    let heard = events(&mut subscription);
    for (line, kind) in [("failed: it is", "tool"), ("trapped: it is", "tool")] {
        assert!(heard.contains(line) && heard.contains(kind), "{heard}");
    }
    assert!(!heard.contains("hunter"), "{heard}");
    platform.clone().shutdown().await;
    let stored = stored(&platform.project.path("state"));
    assert!(!stored.contains("hunter"), "{stored}");
    // The request of a completion is recorded, as are the errors.
    let records = history::read(&platform.project.path("state"), &Query::default()).unwrap();
    let kinds: Vec<&str> = records.iter().map(|record| record.kind.as_str()).collect();
    for kind in CallKind::ALL {
        let is_asked = kind.as_str() != "unsubscribe-resource";
        assert_eq!(kinds.contains(&kind.as_str()), is_asked, "{kinds:?}");
    }
}

#[tokio::test]
async fn a_secret_leaves_in_no_message_and_no_log() {
    let post = RecordingMessenger::default();
    let project = Project::new(&format!(
        "plugins = {{ folders = [\"own\"] }}\n[settings.s]\napi_key = {SECRET:?}"
    ));
    let manifest = "plugin.id = \"s\"\nruntime = { kind = \"rhai\", path = \"s.rhai\" }\n\
                    [capabilities]\nmessaging = [\"*\"]";
    project.write("own/s/plugin.toml", manifest);
    project.write(
        "own/s/s.rhai",
        r#"tool(#{ name: "send", description: "d" }, |a| {
               send_message("it is " + config("api_key")); "sent" });"#,
    );
    let builder = project.builder().messaging(post.clone()).approver(GrantAll);
    let platform = RunningPlatform::new(builder.build().await.unwrap(), project);
    platform.call(Call::new("s__send", json!({}))).await.expect("it is sent");
    let sent = post.0.lock().unwrap().join("\n");
    check("message", &sent);
}

/// Functions that plugins import and say something through, each with the ways out that this takes; or
/// without, where nobody else gets to see it.
const IMPORTS: &[(&str, &[&str])] = &[
    // What a plugin asks for itself is its own.
    ("config.get", &[]),
    ("host-tools.call-tool", &["tool", "tool in events", "tool in the record"]),
    ("inference.complete", &["model", "model in events", "model in the record", "sampling"]),
    ("log.write", &["message:", "key:", "value:"]),
    ("mcp-server.connected", &["revision"]),
    ("mcp-server.left-out", &["left out"]),
    ("memory.search-memory", &["memory"]),
    ("messaging.send-message", &["message"]),
    ("notify.progress", &["progress", "progress of a server"]),
    ("notify.resource-updated", &["resource"]),
    ("secrets.get", &["secret that is refused"]),
    ("user.ask", &["elicitation"]),
    ("user.ask-url", &["page"]),
];

/// The functions of the contract, and of what bridges have beside it, that plugins import and that take any text.
fn imports() -> Vec<String> {
    let texts = ["plugin", "bridge"].map(|package| {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit").join(package);
        let entries = std::fs::read_dir(folder).expect("there is a contract");
        let paths = entries.map(|entry| entry.unwrap().path());
        let texts = paths.map(|path| std::fs::read_to_string(path).expect("it is a file"));
        texts.collect::<Vec<_>>()
    });
    let (worlds, interfaces): (Vec<_>, Vec<_>) =
        texts.into_iter().flatten().partition(|text| text.contains("\nworld "));
    let exported = worlds.concat();
    let mut found = Vec::new();
    for text in interfaces {
        let text: String = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("///"))
            .map(|line| format!("{line} "))
            .collect();
        let interface = text.split_once("interface ").expect("it is an interface").1;
        let interface = interface.split_whitespace().next().expect("it has a name");
        if exported.contains(&format!("export {interface};")) {
            continue;
        }
        for function in text.split(';').filter(|item| item.contains("func(")) {
            let (name, signature) = function.rsplit_once("func(").expect("it is a function");
            let name = name.rsplit(['{', '}']).next().unwrap_or_default();
            // After what says since when it is there.
            let name = name.split(':').next().unwrap_or_default();
            let name = name.split_whitespace().last().unwrap_or_default().trim_start_matches('%');
            let parameters = signature.split("->").next().unwrap_or_default();
            let parameters = parameters.trim().trim_end_matches(')');
            // Whatever is none of these may have a text in it.
            let is_silent = |parameter: &str| {
                let kind = parameter.split_once(':').expect("it has a type").1.trim();
                let silent = [
                    "u64",
                    "u32",
                    "f64",
                    "bool",
                    "milliseconds",
                    "offer",
                    "list<u8>",
                    "list<list<u8>>",
                ];
                silent.contains(&kind)
            };
            let mut parameters = parameters.split(", ").filter(|parameter| !parameter.is_empty());
            // A pair is one parameter, and a text.
            if parameters.clone().any(|part| part.contains("tuple<"))
                || parameters.any(|parameter| !is_silent(parameter))
            {
                found.push(format!("{interface}.{name}"));
            }
        }
    }
    found
}

#[test]
fn every_import_that_takes_text_has_its_ways_out() {
    let known: Vec<&str> = IMPORTS.iter().map(|(import, _)| *import).collect();
    let mut found = imports();
    found.sort();
    assert_eq!(found, known, "a new import needs a row in IMPORTS, and one for each way out");
}

/// An embedder that keeps all that plugins say to it.
#[derive(Clone, Default)]
struct RecordingEmbedder(Arc<Mutex<Vec<(&'static str, String)>>>);

impl RecordingEmbedder {
    fn keep(&self, way: &'static str, said: String) {
        self.0.lock().unwrap().push((way, said));
    }
}

#[async_trait]
impl Messaging for RecordingEmbedder {
    async fn send(&self, _: &str, message: OutgoingMessage) -> Result<(), Error> {
        self.keep("message", format!("{message:?}"));
        Ok(())
    }
}

#[async_trait]
impl MemorySearch for RecordingEmbedder {
    async fn search(&self, _: &str, query: &str, _: u32) -> Result<Vec<Memory>, Error> {
        self.keep("memory", query.into());
        Ok(Vec::new())
    }
}

#[async_trait]
impl ClientFeatures for RecordingEmbedder {
    fn offers(&self) -> Offers {
        Offers { forms: true, pages: true, sampling: true, roots: true }
    }

    async fn ask(&self, requester: &AskingPlugin, form: FormRequest) -> Result<FormAnswer, Error> {
        self.keep("elicitation", format!("{requester:?} {form:?}"));
        Ok(FormAnswer::Declined)
    }

    async fn ask_url(
        &self,
        requester: &AskingPlugin,
        page: UrlRequest,
    ) -> Result<UrlAnswer, Error> {
        self.keep("page", format!("{requester:?} {page:?}"));
        Ok(UrlAnswer::Declined)
    }

    async fn complete(
        &self,
        requester: &AskingPlugin,
        request: CompletionRequest,
    ) -> Result<Completion, Error> {
        self.keep("sampling", format!("{requester:?} {request:?}"));
        Err(Error::denied("not that"))
    }
}

/// A project with a component and a server that say what they are told to, and with a plugin whose secret
/// that is. The server's revision of the protocol is a secret as well.
fn saying() -> Project {
    let said = said();
    let project = Project::new(&format!(
        "plugins = {{ folders = [\"own\"], scripts = [\"keeper.rhai\"], mcp = [
             {{ name = \"s\", command = {RUDE_SERVER:?}, args = [\"says\"], env = {{ SAID = {said:?} }} }} ] }}
         [settings.keeper]
         api_key = {SECRET:?}
         revision_key = {:?}",
        "2025-11-25",
    ));
    project.write("keeper.rhai", "");
    project.write("own/caller/caller.wasm", std::fs::read(guests::CALLER).unwrap());
    let manifest =
        "plugin.id = \"caller\"\nruntime = { kind = \"wasm\", path = \"caller.wasm\" }\n\
                    [capabilities]\ntools = [\"*\"]\nproviders = [\"*\"]\nsecrets = [\"own\"]\n\
                    messaging = [\"*\"]
                    memory = [\"search\"]";
    project.write("own/caller/plugin.toml", manifest);
    project
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_another_plugin_is_shown_through_no_import() {
    let (project, embedder) = (saying(), RecordingEmbedder::default());
    let state = project.path("state");
    let builder = project.builder().builtin("t", Telling).state(&state).approver(GrantAll);
    let builder = builder.messaging(embedder.clone()).memory(embedder.clone());
    let built = builder.client_features(embedder.clone()).build().await;
    let platform = RunningPlatform::new(built.expect("the platform is built"), project);
    let mut subscription = platform.events();
    let call = async |tool: &str, arguments: Value| {
        format!("{:?}", platform.call(Call::new(tool, arguments)).await)
    };
    let said = said();
    let mut ways = vec![
        (
            "model",
            call("caller__ask", json!({ "model": format!("t/{said}"), "prompt": "p" })).await,
        ),
        ("tool", call("caller__call", json!({ "name": said, "arguments": {} })).await),
        (
            "secret that is refused",
            call("caller__secret", json!({ "name": said, "plain": true })).await,
        ),
    ];
    call("caller__send", json!({ "channel": said, "text": said })).await;
    call("caller__recall", json!({ "query": said })).await;
    call("caller__tell", json!({ "said": said })).await;
    call("s__rude", json!({})).await;
    let server = platform.server("s").expect("it is a server");
    ways.push(("revision", server.revision.expect("it is connected")));
    ways.push(("left out", server.left_out.join("\n")));
    ways.extend(embedder.0.lock().unwrap().drain(..));
    while let Some(event) = subscription.try_next() {
        let way = match &event {
            Event::Progress { plugin, .. } if **plugin == *"s" => "progress of a server",
            Event::Progress { .. } => "progress",
            Event::ResourceUpdated { .. } => "resource",
            Event::Call(call) if call.kind == CallKind::Completion => "model in events",
            Event::Call(call) if call.plugin.is_none() => "tool in events",
            _ => continue,
        };
        ways.push((way, serde_json::to_string(&event).expect("an event is JSON")));
    }
    platform.clone().shutdown().await;
    for record in history::read(&state, &Query::default()).unwrap() {
        let way = match record.by {
            None => continue,
            Some(_) if record.kind == CallKind::Completion => "model in the record",
            Some(_) => "tool in the record",
        };
        ways.push((way, record.tool));
    }
    for (way, said) in &ways {
        for trace in ["hunter", "er/22", "2025-11-25"] {
            assert!(!said.contains(trace), "{way}: {said}");
        }
        assert!(said.contains(MASK), "{way}: {said}");
    }
    let taken = |way: &str| ways.iter().any(|(taken, _)| *taken == way);
    let known = IMPORTS.iter().filter(|(import, _)| *import != "log.write");
    for way in known.flat_map(|(_, ways)| *ways) {
        assert!(taken(way), "{way}: {ways:?}");
    }
}

#[test]
fn a_secret_is_printed_of_no_import() {
    let project = saying();
    let approved = project.tenon(&["approve", "caller", "--yes"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    let escaped: String = SECRET.chars().map(|c| format!("\\u{:04X}", u32::from(c))).collect();
    for said in [said(), format!("it is {escaped}!")] {
        let arguments = json!({ "said": said }).to_string();
        let mut command = project.command(&["call", "caller__tell", &arguments]);
        let output = command.env("TENON_LOG", "trace").output().unwrap();
        let printed = stderr(&output);
        assert!(output.status.success(), "{printed}");
        assert!(!printed.contains("hunter") && !printed.contains("\\u006"), "{printed}");
        let of_log = IMPORTS.iter().filter(|(import, _)| *import == "log.write");
        let ways = of_log.flat_map(|(_, ways)| *ways).chain(&["stdout:", "stderr:"]);
        for way in ways {
            assert!(printed.contains(&format!("{way} it is {MASK}!")), "{way} {printed}");
        }
    }
    let output = project.command(&["call", "s__rude", "{}"]).env("TENON_LOG", "trace").output();
    let printed = stderr(&output.unwrap());
    assert!(!printed.contains("hunter"), "{printed}");
    assert!(printed.contains(&format!("stderr: it is {MASK}!")), "{printed}");
}

/// A command loads what it needs; that another plugin is not loaded makes its secrets no less secret.
#[test]
fn a_secret_of_a_plugin_that_is_not_loaded_is_not_printed() {
    let secret = "of-another-1";
    let project = Project::new(&format!(
        "plugins = {{ scripts = [\"s.rhai\"], mcp = [
             {{ name = \"m\", command = {RUDE_SERVER:?}, env = {{ API_TOKEN = {secret:?} }} }},
             {{ name = \"off\", enabled = false, url = \"http://127.0.0.1:1/\", headers = {{ Authorization = \"Bearer of-headers-1\" }} }} ] }}"
    ));
    project.write(
        "s.rhai",
        "tool(#{ name: \"say\", description: \"d\", schema: #{ type: \"object\" } }, |a| a.x); \
         fn BeforePlan(context) { context.goal += \"!\"; }",
    );
    let said = format!("{secret} and of-headers-1");
    let arguments = json!({ "x": said }).to_string();
    let output = project.tenon(&["call", "s__say", &arguments]);
    assert_eq!(stdout(&output).trim(), format!("{MASK} and {MASK}"));
    let context = json!({ "goal": said }).to_string();
    let output = project.tenon(&["hook", "before-plan", "--context", &context]);
    assert!(stdout(&output).contains(&format!("{MASK} and {MASK}!")), "{}", stdout(&output));
    let recorded = stdout(&project.tenon(&["--json", "history"]));
    assert!(recorded.contains("s__say") && !recorded.contains("-1"), "{recorded}");
}

#[test]
fn a_secret_is_printed_by_no_verb() {
    // The provider gives back each word by itself.
    let secret = "my configuration";
    let project = Project::new(&format!(
        "plugins = {{ wasm = [{:?}], scripts = [\"s.rhai\"], mcp = [
             {{ name = \"m\", command = {RUDE_SERVER:?}, args = [\"tells\"], env = {{ API_TOKEN = {secret:?} }} }} ] }}
         [settings.s]\napi_key = {secret:?}\ntoken = \"configuration-token\"",
        guests::ECHO_PROVIDER
    ));
    project.write(
        "s.rhai",
        r#"tool(#{ name: "tell", description: "it is " + config("api_key") }, |a| { log(config("api_key")); config("api_key") });
           strategy(#{ name: "judge", description: "d" }, |s, o| #{ score: 1.0, findings: [
               #{ criterion: "c", verdict: "pass", reason: config("api_key") }] });
           hook("test:tell", |context| { context.said = config("api_key"); });
           // What has a name with the secret in it is left out.
           tool(#{ name: config("api_key"), description: "d" }, |a| "");
           strategy(#{ name: config("api_key"), description: "d" }, |s, o| #{ score: 1.0, findings: [] });
           hook("test:" + config("token"), |context| { });"#,
    );
    let prompt = format!("it is {secret} and no more");
    for arguments in [
        &["complete", "echo", "--prompt", &prompt][..],
        &["complete", "echo", "--prompt", &prompt, "--stream"],
        &["--json", "complete", "echo", "--prompt", &prompt],
        &["--json", "tools"],
        &["call", "s__tell"],
        &["eval", "s/judge", "--subject", "{}"],
        &["hook", "test:tell"],
        &["resources", "list", "m"],
        &["--json", "resources", "list"],
        &["resources", "templates", "m"],
        &["resources", "read", "m", "a:b"],
        &["--json", "resources", "read", "m", "a:b"],
        &["prompts", "list", "m"],
        &["--json", "prompts", "list"],
        &["prompts", "get", "m", "p"],
        &["call", "m__rude"],
        &["--json", "doctor"],
        &["doctor"],
        &["plugins"],
        &["inspect", "s"],
        &["inspect", "m"],
    ] {
        let output = project.command(arguments).env("TENON_LOG", "debug").output().unwrap();
        let said = [stdout(&output), stderr(&output)].concat();
        // A doctor finds fault with what is left out, and speaks of configurations itself.
        let is_doctor = arguments.contains(&"doctor");
        assert!(is_doctor || output.status.success(), "{arguments:?}: {said}");
        let trace = if is_doctor { secret } else { "configuration" };
        assert!(!said.contains(trace), "{arguments:?}: {said}");
        // These say nothing of what plugins say, but in what was left out.
        let is_silent = matches!(
            arguments,
            ["plugins"] | ["inspect", _] | ["resources" | "prompts", "list" | "templates", _]
        );
        assert!(is_silent || said.contains(MASK), "{arguments:?}: {said}");
    }
    let arguments = ["--json", "complete", "echo", "--prompt", &prompt, "--stream"];
    let pieces = stdout(&project.tenon(&arguments));
    let pieces = pieces.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text: String = pieces.filter_map(|p| p["text"].as_str().map(str::to_string)).collect();
    assert_eq!(text, "it is [redacted] and no more");
    let recorded = parsed(&project.tenon(&["--json", "history", "--kind", "completion"]));
    assert_eq!(recorded.as_array().map(Vec::len), Some(4), "{recorded}");
    assert_eq!(recorded[0]["kind"], "completion");
    assert!(!recorded.to_string().contains("configuration"), "{recorded}");
}
