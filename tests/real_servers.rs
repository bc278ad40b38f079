//! MCP servers that nobody here wrote, behind the bridge.
//!
//! `cargo xtask test` installs them, at the versions of the lock files in `real/`, and says where
//! they are. Without them these tests are listed as ignored, which one line says, and none of them
//! passes.

#![allow(clippy::print_stderr)]

use async_trait::async_trait;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tenon_host::bindings::completions::{Blank, Place};
use tenon_host::invoke::TRUNCATED;
use tenon_host::services::{ClientFeatures, Offers, ServerRequest};
use tenon_host::types::{Error, ResourceBody, ToolResult};
use tenon_host::{
    Call, Caller, Config, Event, Platform, PluginState, RESULT_URI, Surroundings, wire,
};
use tokio::time::timeout;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let servers = std::env::var_os("TENON_REAL_SERVERS").map(PathBuf::from);
    if servers.is_none() {
        eprintln!(
            "note: no real MCP servers are installed, so their tests are ignored; `cargo xtask test` installs them"
        );
    }
    tracing_subscriber::fmt().with_writer(|| Log).with_ansi(false).init();
    let mut trials = Vec::new();
    macro_rules! trial {
        ($($name:ident),* $(,)?) => {$(
            let folder = servers.clone();
            let trial = Trial::test(stringify!($name), move || match folder {
                Some(folder) => run($name(Servers::new(folder))),
                None => Err(Failed::from("no real MCP servers are installed")),
            });
            trials.push(trial.with_ignored_flag(servers.is_none()));
        )*};
    }
    trial!(
        everything_lists_and_calls_its_tools,
        every_tool_of_everything_does_what_it_says,
        what_everything_may_not_ask_for_it_does_not_offer,
        everything_tells_of_resources_and_logs,
        everything_fills_in_prompts_and_suggests_values,
        everything_reports_progress,
        everything_offers_resources_and_prompts,
        everything_answers_many_calls_at_a_time,
        a_call_of_everything_can_be_cancelled,
        filesystem_reads_and_writes_in_its_folder_only,
        filesystem_reads_five_megabytes,
        memory_remembers_over_a_restart,
        time_tells_the_time,
    );
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run(test: impl Future<Output = ()>) -> Result<(), Failed> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(Failed::from)?.block_on(test);
    Ok(())
}

/// What was logged by all trials.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An embedder with somebody to ask, who fills in any form with a name, and a model.
#[derive(Clone, Default)]
struct Somebody {
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl ClientFeatures for Somebody {
    fn offers(&self) -> Offers {
        Offers { forms: true, pages: true, sampling: true }
    }

    async fn elicit(&self, request: ServerRequest) -> Result<Value, Error> {
        self.asked.lock().unwrap().push(request.server);
        Ok(match request.params["mode"] == "url" {
            true => json!({ "action": "decline" }),
            false => json!({ "action": "accept", "content": { "name": "Ada" } }),
        })
    }

    async fn sample(&self, request: ServerRequest) -> Result<Value, Error> {
        self.asked.lock().unwrap().push(request.server);
        let content = json!({ "type": "text", "text": "a model's words" });
        Ok(json!({ "role": "assistant", "content": content, "model": "test" }))
    }
}

/// A host that offers nothing to servers.
struct Nobody;

impl ClientFeatures for Nobody {}

/// Where the servers are, and a folder for what they write.
struct Servers {
    folder: PathBuf,
    home: TempDir,
}

impl Servers {
    fn new(folder: PathBuf) -> Self {
        Self { folder, home: TempDir::new().expect("there is room for a folder") }
    }

    /// A platform with one server, `s`.
    async fn platform(
        &self,
        command: &str,
        arguments: &[&Path],
        features: impl ClientFeatures,
    ) -> Platform {
        let home = self.home.path();
        let environment: String = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"]
            .map(|name| format!("{name} = {home:?}, "))
            .concat();
        let memory = home.join("memory.jsonl");
        let text = format!(
            "plugins.mcp = [{{ name = \"s\", command = {command:?}, args = {arguments:?}, \
             env = {{ {environment} MEMORY_FILE_PATH = {memory:?} }}, startup_timeout = \"60s\" }}]"
        );
        let config =
            Config::parse(&text, home.join("tenon.toml")).expect("the configuration is read");
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/tenon");
        let surroundings = Surroundings { cache: Some(cache), ..Surroundings::of_process() };
        let builder = Platform::builder().surroundings(surroundings).config(config);
        let platform = builder.client_features(features).build().await;
        let platform = platform.expect("the platform is built");
        assert_eq!(platform.plugins()[0].state, PluginState::Ready, "{:?}", platform.plugins());
        platform
    }

    async fn node(&self, package: &str, arguments: &[&Path]) -> Platform {
        self.node_for(package, arguments, Nobody).await
    }

    async fn node_for(
        &self,
        package: &str,
        arguments: &[&Path],
        features: impl ClientFeatures,
    ) -> Platform {
        let script = self
            .folder
            .join("node_modules/@modelcontextprotocol")
            .join(package)
            .join("dist/index.js");
        let all: Vec<&Path> =
            [script.as_path()].into_iter().chain(arguments.iter().copied()).collect();
        self.platform("node", &all, features).await
    }
}

async fn call(platform: &Platform, tool: &str, arguments: Value) -> ToolResult {
    let result = platform.call(Call::new(format!("s__{tool}"), arguments)).await;
    result.unwrap_or_else(|error| panic!("{tool}: {error}"))
}

async fn everything_lists_and_calls_its_tools(servers: Servers) {
    let platform = servers.node("server-everything", &[]).await;
    let echo = call(&platform, "echo", json!({ "message": "hello" })).await;
    assert_eq!(echo.plain_text(), "Echo: hello");
    let sum = call(&platform, "get-sum", json!({ "a": 19, "b": 23 })).await;
    assert!(sum.plain_text().contains("42"));
    let image = wire::tool_result(&call(&platform, "get-tiny-image", json!({})).await);
    assert!(
        image["content"].as_array().unwrap().iter().any(|block| block["mimeType"] == "image/png")
    );
    let structured =
        call(&platform, "get-structured-content", json!({ "location": "New York" })).await;
    assert!(structured.structured.is_some());
    let links =
        wire::tool_result(&call(&platform, "get-resource-links", json!({ "count": 3 })).await);
    let links = links["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|block| block["type"] == "resource_link");
    assert_eq!(links.count(), 3);
    let annotated =
        call(&platform, "get-annotated-message", json!({ "messageType": "error" })).await;
    assert!(wire::tool_result(&annotated)["content"][0]["annotations"]["priority"].is_number());
    platform.shutdown().await;
}

async fn everything_reports_progress(servers: Servers) {
    let platform = servers.node("server-everything", &[]).await;
    let mut events = platform.events();
    let arguments = json!({ "duration": 0.4, "steps": 4 });
    call(&platform, "trigger-long-running-operation", arguments).await;
    let mut seen = Vec::new();
    while let Some(event) = events.try_next() {
        if let Event::Progress { progress, total, .. } = event {
            seen.push((progress, total));
        }
    }
    assert!(seen.contains(&(2.0, Some(4.0))), "{seen:?}");
    platform.shutdown().await;
}

async fn everything_offers_resources_and_prompts(servers: Servers) {
    let platform = servers.node("server-everything", &[]).await;
    let registry = platform.registry();
    let server = registry.plugin("s").unwrap();
    assert!(server.has_resources() && server.has_prompts());
    let caller = Caller::default();
    let resources = platform.resources("s", &caller).await.expect("resources are listed");
    let uri = &resources.first().expect("there are resources").link.uri;
    let contents = platform.read_resource("s", uri, &caller).await.expect("a resource is read");
    assert_eq!(&contents[0].uri, uri);
    let templates = platform.resource_templates("s", &caller).await.expect("templates are listed");
    let dynamic = templates.iter().find(|template| template.uri_template.contains("blob"));
    let uri = dynamic.expect("it makes blobs").uri_template.replace("{resourceId}", "7");
    let blob = platform.read_resource("s", &uri, &caller).await.expect("a blob is read");
    assert!(
        matches!(&blob[0].body, ResourceBody::Blob(bytes) if bytes.starts_with(b"Resource 7:"))
    );
    let gone = platform.read_resource("s", "demo://nowhere", &caller).await.unwrap_err();
    assert!(gone.to_string().contains("demo://nowhere"), "{gone}");
    let prompts = platform.prompts("s", &caller).await.expect("prompts are listed");
    let simple = prompts.iter().find(|prompt| prompt.arguments.is_empty());
    let simple = simple.expect("there is a prompt without arguments");
    let prompt = platform.prompt("s", &simple.name, Vec::new(), &caller).await;
    assert!(!prompt.expect("the prompt is got").messages.is_empty());
    platform.shutdown().await;
}

/// What to call each tool of `server-everything` with, and a part of what it says then.
const EVERYTHING: [(&str, &str, &str); 17] = [
    ("echo", r#"{"message": "hello"}"#, "Echo: hello"),
    ("get-annotated-message", r#"{"messageType": "success"}"#, "success"),
    ("get-env", "{}", "MEMORY_FILE_PATH"),
    ("get-resource-links", r#"{"count": 2}"#, "resource_link"),
    ("get-resource-reference", r#"{"resourceType": "Blob", "resourceId": 3}"#, "blob/3"),
    ("get-structured-content", r#"{"location": "Chicago"}"#, "temperature"),
    ("get-sum", r#"{"a": 1, "b": 2}"#, "3"),
    ("get-tiny-image", "{}", "image/png"),
    ("gzip-file-as-resource", r#"{"name": "a.gz", "data": "data:text/plain,hi"}"#, "a.gz"),
    ("simulate-research-query", r#"{"topic": "wood", "ambiguous": true}"#, "wood"),
    ("toggle-simulated-logging", "{}", "Started simulated"),
    ("toggle-subscriber-updates", "{}", "Started simulated"),
    ("trigger-elicitation-request", "{}", "Name: Ada"),
    ("trigger-long-running-operation", r#"{"duration": 0.1, "steps": 2}"#, "completed"),
    ("trigger-sampling-request", r#"{"prompt": "say", "maxTokens": 9}"#, "a model's words"),
    ("trigger-url-elicitation", r#"{"url": "https://example.com/"}"#, "decline"),
    ("get-roots-list", "{}", "roots"),
];

async fn every_tool_of_everything_does_what_it_says(servers: Servers) {
    let somebody = Somebody::default();
    let platform = servers.node_for("server-everything", &[], somebody.clone()).await;
    // What depends on the client comes after the handshake.
    eventually("all of its tools are there", || {
        let registry = platform.registry();
        registry.tool("s__trigger-url-elicitation").is_some()
            && registry.tool("s__simulate-research-query").is_some()
    })
    .await;
    let registry = platform.registry();
    let tools = registry.plugin("s").unwrap().tools();
    let calls = tools.iter().map(async |tool| {
        let name = &tool.definition.name;
        let row = EVERYTHING.iter().find(|(known, ..)| known == name);
        let (_, arguments, said) = row.unwrap_or_else(|| panic!("{name} has no row"));
        let result = call(&platform, name, serde_json::from_str(arguments).unwrap()).await;
        let result = wire::tool_result(&result);
        assert_ne!(result["isError"], true, "{name}: {result}");
        assert!(result.to_string().contains(said), "{name}: {result}");
    });
    futures::future::join_all(calls).await;
    // A form for the tool and one for the query, a page, and a model.
    assert_eq!(*somebody.asked.lock().unwrap(), ["s"; 4]);
    let page = json!({ "url": "https://example.com/", "errorPath": true });
    let refused = platform.call(Call::new("s__trigger-url-elicitation", page)).await.unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("the user has to do something first"), "{refused}");
    assert!(refused.contains("\"mode\":\"url\",\"url\":\"https://"), "{refused}");
    platform.shutdown().await;
}

async fn what_everything_may_not_ask_for_it_does_not_offer(servers: Servers) {
    let platform = servers.node("server-everything", &[]).await;
    eventually("the rest of its tools is there", || {
        platform.registry().tool("s__simulate-research-query").is_some()
    })
    .await;
    let registry = platform.registry();
    for tool in ["elicitation-request", "url-elicitation", "sampling-request"] {
        assert!(registry.tool(&format!("s__trigger-{tool}")).is_none(), "{tool}");
    }
    let query = json!({ "topic": "wood", "ambiguous": true });
    let answer = call(&platform, "simulate-research-query", query).await;
    assert!(answer.plain_text().contains("wood"), "{}", answer.plain_text());
    platform.shutdown().await;
}

async fn everything_tells_of_resources_and_logs(servers: Servers) {
    let platform = servers.node("server-everything", &[]).await;
    let mut events = platform.events();
    let (caller, uri) = (Caller::default(), "demo://resource/dynamic/text/1");
    platform.subscribe("s", uri, &caller).await.expect("it is subscribed to");
    call(&platform, "toggle-subscriber-updates", json!({})).await;
    let told = async {
        loop {
            match events.next().await {
                Some(Event::ResourceUpdated { plugin, uri: of }) => return (plugin, of),
                Some(_) => {}
                None => panic!("the platform has ended"),
            }
        }
    };
    let (plugin, of) = timeout(Duration::from_secs(20), told).await.expect("it tells");
    assert_eq!((&*plugin, &*of), ("s", uri));
    platform.unsubscribe("s", uri, &caller).await.expect("it is not any more");
    // It logs what it was asked.
    eventually("it has logged", || {
        let log = String::from_utf8_lossy(&LOG.lock().unwrap()).into_owned();
        log.contains(&format!("Received Unsubscribe Resource request: {uri}"))
    })
    .await;
    platform.shutdown().await;
}

async fn everything_fills_in_prompts_and_suggests_values(servers: Servers) {
    let platform = servers.node("server-everything", &[]).await;
    let caller = Caller::default();
    let filled = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect::<Vec<_>>()
    };
    let arguments = filled(&[("city", "Oslo"), ("state", "Norway")]);
    let prompt = platform.prompt("s", "args-prompt", arguments, &caller).await.unwrap();
    let text = wire::content_block(&prompt.messages[0].content)["text"].to_string();
    assert!(text.contains("Oslo"), "{text}");
    let missing = platform.prompt("s", "args-prompt", Vec::new(), &caller).await;
    assert!(missing.unwrap_err().to_string().contains("city"));
    let suggest = async |place: Place, name: &str, value: &str, pairs: &[(&str, &str)]| {
        let blank = Blank { place, name: name.into(), value: value.into(), filled: filled(pairs) };
        platform.suggest("s", blank, &caller).await.expect("it suggests").values
    };
    let team = || Place::Prompt("completable-prompt".into());
    assert_eq!(suggest(team(), "department", "Sa", &[]).await, ["Sales"]);
    assert_eq!(suggest(team(), "name", "B", &[("department", "Engineering")]).await, ["Bob"]);
    assert_eq!(suggest(team(), "name", "B", &[("department", "Sales")]).await, [""; 0]);
    let template = Place::ResourceTemplate("demo://resource/dynamic/text/{resourceId}".into());
    assert_eq!(suggest(template, "resourceId", "12", &[]).await, ["12"]);
    platform.shutdown().await;
}

async fn memory_remembers_over_a_restart(servers: Servers) {
    let platform = servers.node("server-memory", &[]).await;
    let entity = json!({ "name": "tenon", "entityType": "joint", "observations": ["fits"] });
    call(&platform, "create_entities", json!({ "entities": [entity] })).await;
    let observed = json!([{ "entityName": "tenon", "contents": ["holds"] }]);
    call(&platform, "add_observations", json!({ "observations": observed })).await;
    let graph = call(&platform, "read_graph", json!({})).await;
    platform.shutdown().await;

    let platform = servers.node("server-memory", &[]).await;
    let again = call(&platform, "read_graph", json!({})).await;
    assert_eq!(again.structured, graph.structured);
    let graph: Value = serde_json::from_str(&again.structured.unwrap()).unwrap();
    assert_eq!(graph["entities"][0]["observations"], json!(["fits", "holds"]));
    let wrong = json!([{ "entityName": "mortise", "contents": ["gapes"] }]);
    let wrong = call(&platform, "add_observations", json!({ "observations": wrong })).await;
    assert!(wrong.is_error && wrong.plain_text().contains("mortise"));
    platform.shutdown().await;
}

/// Waits until something holds that another process does, of which there is no notice.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..800 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it never came to be that {what}");
}

async fn everything_answers_many_calls_at_a_time(servers: Servers) {
    let platform = servers.node("server-everything", &[]).await;
    let calls = (0..64).map(|i| {
        let platform = &platform;
        async move {
            let echo = call(platform, "echo", json!({ "message": format!("{i}") })).await;
            assert_eq!(echo.plain_text(), format!("Echo: {i}"));
        }
    });
    futures::future::join_all(calls).await;
    platform.shutdown().await;
}

async fn a_call_of_everything_can_be_cancelled(servers: Servers) {
    let platform = servers.node("server-everything", &[]).await;
    let mut call_of_long =
        Call::new("s__trigger-long-running-operation", json!({ "duration": 60, "steps": 60 }));
    call_of_long.caller.timeout = Some(Duration::from_millis(200));
    assert!(platform.call(call_of_long).await.is_err());
    let echo = call(&platform, "echo", json!({ "message": "still here" })).await;
    assert_eq!(echo.plain_text(), "Echo: still here");
    platform.shutdown().await;
}

async fn filesystem_reads_and_writes_in_its_folder_only(servers: Servers) {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let platform = servers.node("server-filesystem", &[&root]).await;
    let path = root.join("note.txt");
    call(&platform, "write_file", json!({ "path": path, "content": "räder\n" })).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "räder\n");
    let read = call(&platform, "read_text_file", json!({ "path": path })).await;
    assert_eq!(read.plain_text(), "räder\n");
    let outside = call(&platform, "read_text_file", json!({ "path": "/etc/passwd" })).await;
    assert!(outside.is_error && outside.plain_text().contains("denied"));
    platform.shutdown().await;
}

async fn filesystem_reads_five_megabytes(servers: Servers) {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let path = root.join("large.txt");
    let content = "0123456789abcde\n".repeat((5 << 20) / 16);
    fs::write(&path, &content).unwrap();
    let platform = servers.node("server-filesystem", &[&root]).await;
    let read = call(&platform, "read_text_file", json!({ "path": path })).await;
    // It is cut, and the whole is kept.
    let text = read.plain_text();
    assert!(text.len() < 2 << 20 && content.starts_with(&text[..1 << 20]));
    let uri = wire::tool_result(&read)["_meta"][TRUNCATED]["uri"].clone();
    let uri = uri.as_str().expect("it is kept");
    assert!(uri.starts_with(RESULT_URI), "{uri}");
    let whole = platform.read_result(uri).await.unwrap();
    assert!(matches!(&whole[0].body, ResourceBody::Text(text) if *text == content));
    platform.shutdown().await;
}

async fn time_tells_the_time(servers: Servers) {
    let program = servers.folder.join("python/bin/mcp-server-time");
    let platform = servers.platform(program.to_str().unwrap(), &[], Nobody).await;
    let now = call(&platform, "get_current_time", json!({ "timezone": "Asia/Tokyo" })).await;
    assert!(now.plain_text().contains("+09:00"), "{}", now.plain_text());
    let wrong = call(&platform, "get_current_time", json!({ "timezone": "Mars/Base" })).await;
    assert!(wrong.is_error);
    platform.shutdown().await;
}
