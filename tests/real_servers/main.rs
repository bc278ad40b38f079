//! MCP servers that nobody here wrote, behind the bridge.
//!
//! `cargo xtask test` installs them, at the versions of the lock files in `real/`, and says where
//! they are. Without them these tests are listed as ignored, which a line for each registry says, and none of them
//! passes.

#![allow(clippy::print_stderr)]

#[path = "../it/support.rs"]
#[allow(dead_code)]
mod support;

mod confined;
mod conformance;

use async_trait::async_trait;
use libtest_mimic::Arguments;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tenon_host::meta::TRUNCATED;
use tenon_host::services::{AskingPlugin, ClientFeatures, GrantAll, Offers};
use tenon_host::types::{
    ArgumentCompletion, Completion, CompletionReference, CompletionRequest, CompletionSummary,
    Error, FormAnswer, FormRequest, Part, ResourceBody, StopReason, TokenUsage, ToolResult,
    UrlAnswer, UrlRequest, mcp_json,
};
use tenon_host::{Call, Caller, Config, Event, HostEnvironment, Platform, PluginState, RESULT_URI};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use confined::{
    fetch_works_confined_to_one_site, git_works_confined_to_one_repository,
    servers_of_node_work_confined, sqlite_works_confined_to_one_folder,
    time_works_confined_to_nothing,
};
use conformance::{
    the_command_logs_in_as_the_official_conformance_suite_wants,
    the_command_passes_scenarios_of_the_official_conformance_suite,
    the_official_conformance_suite_fails_a_command_that_does_not_accept_defaults,
    the_official_conformance_suite_fails_a_command_that_does_not_log_in,
};
use support::{LAUNCHER_WITHOUT_NAMESPACES, Project, parsed, stderr, stdout, tenon};
use tenon_tests::{installed, npm_script, run_on_two_threads, trial};

/// What says where the servers of each registry are.
const NPM: &str = "TENON_REAL_SERVERS_NPM";
const PIP: &str = "TENON_REAL_SERVERS_PIP";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    for (group, registry) in [(NPM, "npm"), (PIP, "PyPI")] {
        if installed(&[group]).is_none() {
            eprintln!(
                "note: no real MCP servers from {registry} are installed, so their tests are ignored; `cargo xtask test` installs them"
            );
        }
    }
    tracing_subscriber::fmt().with_writer(|| Log).with_ansi(false).init();
    let mut trials = Vec::new();
    macro_rules! trial {
        ($groups:expr, $name:expr, $test:ident, $adjust:expr) => {
            let test = |folder| run_on_two_threads($test($adjust(Servers::new(folder))));
            trials.push(trial($name, "real MCP server", installed(&$groups), test));
        };
    }
    macro_rules! trials {
        ($groups:expr; $($name:ident),* $(,)?) => {$(
            trial!($groups, stringify!($name), $name, std::convert::identity);
        )*};
    }
    // In a sandbox of each kind.
    macro_rules! confined_trials {
        ($groups:expr; $($name:ident),* $(,)?) => {$(
            trials!($groups; $name);
            let name = concat!(stringify!($name), "_without_namespaces");
            trial!($groups, name, $name, Servers::without_namespaces);
        )*};
    }
    trials!([NPM];
        everything_lists_and_calls_its_tools,
        every_tool_of_everything_does_what_it_says,
        what_everything_may_not_ask_for_it_does_not_offer,
        everything_tells_of_resources_and_logs,
        everything_fills_in_prompts_and_suggests_values,
        everything_reports_progress,
        everything_offers_resources_and_prompts,
        everything_answers_many_calls_at_a_time,
        a_call_of_everything_can_be_cancelled,
        everything_works_in_the_roots_that_it_is_told,
        everything_logs_from_the_level_on_that_is_wanted,
        everything_is_asked_whether_it_lives_when_it_is_silent,
        everything_elsewhere_is_as_everything_here,
        filesystem_works_in_the_roots_that_it_is_told_and_in_no_other,
        filesystem_reads_and_writes_in_its_folder_only,
        filesystem_reads_five_megabytes,
        memory_remembers_over_a_restart,
    );
    confined_trials!([NPM]; servers_of_node_work_confined);
    trials!([PIP];
        time_tells_the_time,
        time_tells_the_time_in_either_era,
    );
    confined_trials!([PIP];
        time_works_confined_to_nothing,
        git_works_confined_to_one_repository,
        sqlite_works_confined_to_one_folder,
        fetch_works_confined_to_one_site,
    );
    trials!([NPM, PIP];
        the_command_calls_all_of_them,
        the_command_reads_what_everything_has,
        the_command_says_how_all_of_them_fare,
        forty_servers_start_by_default_on_a_busy_machine,
        the_tools_of_a_server_are_those_that_the_official_sdks_list,
        the_command_passes_scenarios_of_the_official_conformance_suite,
        the_command_logs_in_as_the_official_conformance_suite_wants,
        the_official_conformance_suite_fails_a_command_that_does_not_log_in,
        the_official_conformance_suite_fails_a_command_that_does_not_accept_defaults,
    );
    libtest_mimic::run(&arguments, trials).exit_code()
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
        Offers { forms: true, pages: true, sampling: true, roots: true }
    }

    async fn ask(&self, requester: &AskingPlugin, _: FormRequest) -> Result<FormAnswer, Error> {
        self.asked.lock().unwrap().push(requester.plugin.clone());
        Ok(FormAnswer::Accepted([("name".to_string(), json!("Ada"))].into_iter().collect()))
    }

    async fn ask_url(&self, requester: &AskingPlugin, _: UrlRequest) -> Result<UrlAnswer, Error> {
        self.asked.lock().unwrap().push(requester.plugin.clone());
        Ok(UrlAnswer::Declined)
    }

    async fn complete(
        &self,
        requester: &AskingPlugin,
        _: CompletionRequest,
    ) -> Result<Completion, Error> {
        self.asked.lock().unwrap().push(requester.plugin.clone());
        let usage = TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 };
        let stop_reason = StopReason::EndTurn;
        let summary = CompletionSummary { model: "test".into(), stop_reason, usage, extra: None };
        Ok(Completion { parts: vec![Part::Text("a model's words".into())], summary })
    }
}

/// A host that offers nothing to servers.
struct NoFeatures;

impl ClientFeatures for NoFeatures {}

/// Where the servers are, and a folder for what they write.
struct Servers {
    folder: PathBuf,
    home: TempDir,
    /// What starts those that are confined.
    launcher: &'static Path,
}

impl Servers {
    fn new(folder: PathBuf) -> Self {
        let home = TempDir::new().expect("there is room for a folder");
        Self { folder, home, launcher: tenon() }
    }

    /// The same on a system that lets users make no namespaces.
    fn without_namespaces(self) -> Self {
        Self { launcher: Path::new(LAUNCHER_WITHOUT_NAMESPACES), ..self }
    }

    /// A platform with one server, `s`.
    async fn platform(
        &self,
        command: &str,
        arguments: &[&Path],
        features: impl ClientFeatures,
    ) -> Platform {
        self.platform_of(&self.entry(command, arguments, ""), features).await
    }

    /// An entry for a server that is a program, and what else it says.
    fn entry(&self, command: &str, arguments: &[&Path], more: &str) -> String {
        let memory = self.home.path().join("memory.jsonl");
        let homes: String = HOMES.map(|name| format!("{name} = {:?}, ", self.home.path())).concat();
        format!(
            "command = {command:?}, args = {arguments:?}, \
             env = {{ {homes} MEMORY_FILE_PATH = {memory:?} }}{more}"
        )
    }

    /// Says in the configuration what the entry of the server `s` is.
    fn write(&self, entry: &str) -> PathBuf {
        let project = self.home.path().join("project");
        fs::create_dir_all(&project).expect("there is room for a folder");
        let path = project.join("tenon.toml");
        fs::write(&path, format!("plugins.mcp = [{}]", named("s", entry)))
            .expect("there is room for a file");
        path
    }

    async fn platform_of(&self, entry: &str, features: impl ClientFeatures) -> Platform {
        let config = Config::read(self.write(entry)).expect("the configuration is read");
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/tenon");
        let host_environment =
            HostEnvironment { cache: Some(cache), ..HostEnvironment::of_process() };
        let builder = Platform::builder().host_environment(host_environment).config(config);
        let builder = builder.client_features(features).approver(GrantAll);
        let platform = builder.server_launcher(self.launcher).build().await;
        let platform = platform.expect("the platform is built");
        let is_ready = platform.plugins().first().is_some_and(|of| of.state == PluginState::Ready);
        assert!(is_ready, "{:?} {:?}", platform.plugins(), platform.diagnostics());
        platform
    }

    async fn node(&self, package: &str, arguments: &[&Path]) -> Platform {
        self.node_for(package, arguments, NoFeatures).await
    }

    async fn node_for(
        &self,
        package: &str,
        arguments: &[&Path],
        features: impl ClientFeatures,
    ) -> Platform {
        self.platform_of(&self.node_entry(package, arguments, ""), features).await
    }

    fn node_entry(&self, package: &str, arguments: &[&Path], more: &str) -> String {
        let script = self.script(package);
        let all: Vec<&Path> =
            [script.as_path()].into_iter().chain(arguments.iter().copied()).collect();
        self.entry("node", &all, more)
    }

    fn script(&self, package: &str) -> PathBuf {
        npm_script(&self.folder, package)
    }

    /// Folders that a server can be told of, with a note in each, and their URIs.
    fn folders<const N: usize>(&self, names: [&str; N]) -> [(PathBuf, String); N] {
        names.map(|name| {
            let folder = self.home.path().canonicalize().unwrap().join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("note.txt"), name).unwrap();
            let uri = format!("file://{}", folder.display());
            (folder, uri)
        })
    }
}

/// An entry under a name, for a server that may take its time to start.
fn named(name: &str, entry: &str) -> String {
    format!("{{ name = {name:?}, startup_timeout = \"60s\", {entry} }}")
}

/// A file of five megabytes, and what is in it.
fn large_file(folder: &Path) -> (PathBuf, String) {
    let path = folder.join("large.txt");
    let content = "0123456789abcde\n".repeat((5 << 20) / 16);
    fs::write(&path, &content).expect("there is room for a file");
    (path, content)
}

/// The variables that name the folders in which programs keep what is theirs.
const HOMES: [&str; 4] = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"];

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
    let image = mcp_json::tool_result(&call(&platform, "get-tiny-image", json!({})).await);
    assert!(
        image["content"].as_array().unwrap().iter().any(|block| block["mimeType"] == "image/png")
    );
    let structured =
        call(&platform, "get-structured-content", json!({ "location": "New York" })).await;
    assert!(structured.structured.is_some());
    let links =
        mcp_json::tool_result(&call(&platform, "get-resource-links", json!({ "count": 3 })).await);
    let links = links["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|block| block["type"] == "resource_link");
    assert_eq!(links.count(), 3);
    let annotated =
        call(&platform, "get-annotated-message", json!({ "messageType": "error" })).await;
    assert!(mcp_json::tool_result(&annotated)["content"][0]["annotations"]["priority"].is_number());
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
        let result = mcp_json::tool_result(&result);
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
    let words = format!("Received Unsubscribe Resource request: {uri}");
    eventually("it has logged", || logged(&words)).await;
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
    let text = mcp_json::content_block(&prompt.messages[0].content)["text"].to_string();
    assert!(text.contains("Oslo"), "{text}");
    let missing = platform.prompt("s", "args-prompt", Vec::new(), &caller).await;
    assert!(missing.unwrap_err().to_string().contains("city"));
    let suggest =
        async |reference: CompletionReference, name: &str, value: &str, pairs: &[(&str, &str)]| {
            let blank = ArgumentCompletion {
                reference,
                name: name.into(),
                value: value.into(),
                others: filled(pairs),
            };
            platform.suggest("s", blank, &caller).await.expect("it suggests").values
        };
    let team = || CompletionReference::Prompt("completable-prompt".into());
    assert_eq!(suggest(team(), "department", "Sa", &[]).await, ["Sales"]);
    assert_eq!(suggest(team(), "name", "B", &[("department", "Engineering")]).await, ["Bob"]);
    assert_eq!(suggest(team(), "name", "B", &[("department", "Sales")]).await, [""; 0]);
    let template =
        CompletionReference::ResourceTemplate("demo://resource/dynamic/text/{resourceId}".into());
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

async fn everything_works_in_the_roots_that_it_is_told(servers: Servers) {
    let [(one, first), (two, second)] = servers.folders(["one", "two"]);
    let entry = |roots: &[&PathBuf]| {
        servers.node_entry("server-everything", &[], &format!(", roots = {roots:?}"))
    };
    let platform = servers.platform_of(&entry(&[&one]), NoFeatures).await;
    let told = async || {
        eventually("it knows that there are roots", || {
            platform.registry().tool("s__get-roots-list").is_some()
        })
        .await;
        call(&platform, "get-roots-list", json!({})).await.plain_text()
    };
    let roots = told().await;
    assert!(roots.contains(&first) && !roots.contains(&second), "{roots}");
    // Others in the configuration are what it is told of from then on.
    servers.write(&entry(&[&two]));
    let done = platform.reload().await;
    assert!(matches!(&done[..], [Event::Reloaded { .. }]), "{done:?}");
    let roots = told().await;
    assert!(roots.contains(&second) && !roots.contains(&first), "{roots}");
    platform.shutdown().await;
}

async fn filesystem_works_in_the_roots_that_it_is_told_and_in_no_other(servers: Servers) {
    let [(allowed, _), (outside, _)] = servers.folders(["allowed", "outside"]);
    let roots = format!(", roots = [{allowed:?}]");
    let entry = servers.node_entry("server-filesystem", &[], &roots);
    let platform = servers.platform_of(&entry, NoFeatures).await;
    let read = async |folder: &Path| {
        let path = folder.join("note.txt");
        call(&platform, "read_text_file", json!({ "path": path })).await
    };
    // It asks for them after the handshake, and has nowhere to read before it is answered.
    eventually("it knows them", || logged("Updated allowed directories from MCP roots: 1")).await;
    assert_eq!(read(&allowed).await.plain_text(), "allowed");
    let denied = read(&outside).await;
    assert!(denied.is_error && denied.plain_text().contains("denied"), "{denied:?}");
    platform.shutdown().await;
}

/// Whether this was logged, in any trial.
fn logged(part: &str) -> bool {
    String::from_utf8_lossy(&LOG.lock().unwrap()).contains(part)
}

async fn everything_logs_from_the_level_on_that_is_wanted(servers: Servers) {
    // Each subscription is logged as `info`.
    for (level, number) in [("info", 71), ("error", 72)] {
        let more = format!(", log_level = {level:?}");
        let entry = servers.node_entry("server-everything", &[], &more);
        let platform = servers.platform_of(&entry, NoFeatures).await;
        let (caller, uri) = (Caller::default(), format!("demo://resource/dynamic/text/{number}"));
        platform.subscribe("s", &uri, &caller).await.expect("it is subscribed to");
        // What it logs comes before what it answers next.
        call(&platform, "echo", json!({ "message": "after it" })).await;
        assert_eq!(logged(&uri), level == "info", "{level}");
        platform.shutdown().await;
    }
}

async fn everything_is_asked_whether_it_lives_when_it_is_silent(servers: Servers) {
    // A server that is stopped lives, and does not answer.
    let pid = servers.home.path().join("pid");
    let stopped = servers.home.path().join("stopped.sh");
    let script = servers.script("server-everything");
    fs::write(&stopped, format!("echo $$ > {pid:?}; exec node {script:?}\n")).unwrap();
    let more = ", ping_interval = \"200ms\", timeout = \"1s\"";
    let entry = servers.entry("/bin/sh", &[&stopped], more);
    let platform = servers.platform_of(&entry, NoFeatures).await;
    call(&platform, "echo", json!({ "message": "lives" })).await;
    let starts = platform.server("s").unwrap().starts;
    let pid: i32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    let process = rustix::process::Pid::from_raw(pid).expect("it is a process");
    rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    eventually("it is known not to live", || logged("the server does not answer any more")).await;
    // On a busy machine it takes longer to start than a call may take, and goes on starting.
    let echo = Call::new("s__echo", json!({ "message": "lives again" }));
    let mut answer = platform.call(echo.clone()).await;
    for _ in 0..30 {
        match answer {
            Err(_) => answer = platform.call(echo.clone()).await,
            Ok(_) => break,
        }
    }
    assert_eq!(answer.expect("it answers again").plain_text(), "Echo: lives again");
    assert_eq!(platform.server("s").unwrap().starts, starts + 1);
    platform.shutdown().await;
}

/// `server-everything` at a port that was free a moment ago: it can only be told one. Where somebody
/// else was faster it ends, and gets another.
async fn everything_elsewhere(servers: &Servers) -> (Child, u16) {
    for _ in 0..20 {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = Command::new("node");
        command.arg(servers.script("server-everything")).arg("streamableHttp");
        command.env("PORT", port.to_string()).envs(HOMES.map(|name| (name, servers.home.path())));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = command.kill_on_drop(true).spawn().expect("node starts");
        let mut words = BufReader::new(server.stderr.take().unwrap()).lines();
        while let Ok(Some(line)) = words.next_line().await {
            if line.contains(&format!("listening on port {port}")) {
                // It must be able to go on writing.
                tokio::spawn(async move { while let Ok(Some(_)) = words.next_line().await {} });
                return (server, port);
            }
        }
    }
    panic!("no port is free");
}

async fn everything_elsewhere_is_as_everything_here(servers: Servers) {
    let (mut server, port) = everything_elsewhere(&servers).await;
    let entry = format!("url = \"http://127.0.0.1:{port}/mcp\"");
    let somebody = Somebody::default();
    let platform = servers.platform_of(&entry, somebody.clone()).await;
    let calls = (0..16).map(async |i| {
        let echo = call(&platform, "echo", json!({ "message": format!("{i}") })).await;
        assert_eq!(echo.plain_text(), format!("Echo: {i}"));
    });
    futures::future::join_all(calls).await;
    // What it asks comes on the stream of the call, what it has learnt on one of its own.
    eventually("the rest of its tools is there", || {
        platform.registry().tool("s__trigger-elicitation-request").is_some()
    })
    .await;
    let answer = call(&platform, "trigger-elicitation-request", json!({})).await;
    assert!(answer.plain_text().contains("Name: Ada"), "{}", answer.plain_text());
    assert_eq!(*somebody.asked.lock().unwrap(), ["s"]);
    let mut events = platform.events();
    let arguments = json!({ "duration": 0.4, "steps": 4 });
    call(&platform, "trigger-long-running-operation", arguments).await;
    let progress = std::iter::from_fn(|| events.try_next())
        .filter(|event| matches!(event, Event::Progress { total: Some(4.0), .. }));
    assert!(progress.count() > 0);
    let caller = Caller::default();
    let uri = "demo://resource/dynamic/text/7";
    let contents = platform.read_resource("s", uri, &caller).await.expect("a resource is read");
    assert_eq!(contents[0].uri, uri);
    assert_eq!(platform.server("s").unwrap().revision.as_deref(), Some("2025-11-25"));
    platform.shutdown().await;
    server.kill().await.unwrap();
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
    let (path, content) = large_file(&root);
    let platform = servers.node("server-filesystem", &[&root]).await;
    let read = call(&platform, "read_text_file", json!({ "path": path })).await;
    // It is cut, and the whole is kept.
    let text = read.plain_text();
    assert!(text.len() < 2 << 20 && content.starts_with(&text[..1 << 20]));
    let uri = mcp_json::tool_result(&read)["_meta"][TRUNCATED]["uri"].clone();
    let uri = uri.as_str().expect("it is kept");
    assert!(uri.starts_with(RESULT_URI), "{uri}");
    let whole = platform.read_result(uri).await.unwrap();
    assert!(matches!(&whole[0].body, ResourceBody::Text(text) if *text == content));
    platform.shutdown().await;
}

async fn time_tells_the_time(servers: Servers) {
    let program = servers.folder.join("python/bin/mcp-server-time");
    let platform = servers.platform(program.to_str().unwrap(), &[], NoFeatures).await;
    let now = call(&platform, "get_current_time", json!({ "timezone": "Asia/Tokyo" })).await;
    assert!(now.plain_text().contains("+09:00"), "{}", now.plain_text());
    let wrong = call(&platform, "get_current_time", json!({ "timezone": "Mars/Base" })).await;
    assert!(wrong.is_error);
    platform.shutdown().await;
}

async fn time_tells_the_time_in_either_era(servers: Servers) {
    let program = servers.folder.join("python/bin/mcp-server-time");
    for (protocol, revision) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
        let more = format!(", protocol = {protocol:?}");
        let entry = servers.entry(program.to_str().unwrap(), &[], &more);
        let platform = servers.platform_of(&entry, NoFeatures).await;
        assert_eq!(platform.server("s").unwrap().revision.as_deref(), Some(revision));
        let now = call(&platform, "get_current_time", json!({ "timezone": "Asia/Tokyo" })).await;
        assert!(now.plain_text().contains("+09:00"), "{protocol}: {}", now.plain_text());
        let unknown = call(&platform, "get_current_time", json!({ "timezone": "Mars/Base" })).await;
        assert!(unknown.is_error, "{protocol}");
        platform.shutdown().await;
    }
}

/// A project with each of the servers: `e` is everything, and `h` the same elsewhere, at this port.
fn project_of_all(servers: &Servers, port: u16) -> Project {
    let root = servers.home.path().canonicalize().unwrap();
    let time = servers.folder.join("python/bin/mcp-server-time");
    let time = |protocol: &str| {
        servers.entry(time.to_str().unwrap(), &[], &format!(", protocol = {protocol:?}"))
    };
    let entries = [
        ("e", servers.node_entry("server-everything", &[], "")),
        ("h", format!("url = \"http://127.0.0.1:{port}/mcp\"")),
        ("f", servers.node_entry("server-filesystem", &[&root], "")),
        ("m", servers.node_entry("server-memory", &[], "")),
        ("old", time("legacy")),
        ("new", time("modern")),
    ];
    let entries = entries.map(|(name, entry)| named(name, &entry));
    Project::new(&format!("plugins.mcp = [{}]", entries.join(",\n")))
}

/// What the command says, where it ends with this code.
fn said(project: &Project, arguments: &[&str], code: i32) -> String {
    let output = project.tenon(arguments);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

async fn the_command_calls_all_of_them(servers: Servers) {
    let (mut elsewhere, port) = everything_elsewhere(&servers).await;
    let project = project_of_all(&servers, port);
    let call = |tool: &str, arguments: Value, code: i32, expected: &str| {
        let said = said(&project, &["call", tool, &arguments.to_string()], code);
        assert!(said.contains(expected), "{tool}: {said}");
    };
    for everything in ["e", "h"] {
        call(&format!("{everything}__echo"), json!({ "message": "hi" }), 0, "Echo: hi\n");
        call(&format!("{everything}__get-tiny-image"), json!({}), 0, "[image: image/png, ");
        call(&format!("{everything}__echo"), json!({ "message": 7 }), 2, "error: arguments of");
    }
    let slow = json!({ "duration": 60, "steps": 2 }).to_string();
    let slow = ["call", "e__trigger-long-running-operation", &slow, "--timeout", "1s"];
    assert!(said(&project, &slow, 4).contains("it gave no answer within 1s"));

    let root = servers.home.path().canonicalize().unwrap();
    let path = root.join("note.txt");
    call("f__write_file", json!({ "path": path, "content": "räder\n" }), 0, "");
    assert_eq!(fs::read_to_string(&path).unwrap(), "räder\n");
    call("f__read_text_file", json!({ "path": path }), 0, "räder\n");
    call("f__read_text_file", json!({ "path": "/etc/passwd" }), 1, "denied");

    let (large, content) = large_file(&root);
    let read = json!({ "path": large }).to_string();
    let read = parsed(&project.tenon(&["--json", "call", "f__read_text_file", &read]));
    let whole = read["_meta"][TRUNCATED]["uri"].as_str().expect("it is kept");
    assert!(said(&project, &["resources", "read", whole], 0).starts_with(&content));

    // Each call is a server of its own.
    let entity = json!({ "name": "tenon", "entityType": "joint", "observations": ["fits"] });
    call("m__create_entities", json!({ "entities": [entity] }), 0, "tenon");
    call("m__read_graph", json!({}), 0, "fits");

    for era in ["old", "new"] {
        let time = format!("{era}__get_current_time");
        call(&time, json!({ "timezone": "Asia/Tokyo" }), 0, "+09:00");
        call(&time, json!({ "timezone": "Mars/Base" }), 1, "Mars/Base");
    }
    elsewhere.kill().await.unwrap();
}

async fn the_command_reads_what_everything_has(servers: Servers) {
    let (mut elsewhere, port) = everything_elsewhere(&servers).await;
    let project = project_of_all(&servers, port);
    for everything in ["e", "h"] {
        let resources = parsed(&project.tenon(&["--json", "resources", "list", everything]));
        let uri = resources[0]["uri"].as_str().expect("there are resources");
        assert!(!said(&project, &["resources", "read", everything, uri], 0).is_empty());
        let templates = said(&project, &["resources", "templates", everything], 0);
        assert!(templates.contains("demo://resource/dynamic/text/{resourceId}"), "{templates}");
        let text = ["resources", "read", everything, "demo://resource/dynamic/text/7"];
        assert!(said(&project, &text, 0).contains("Resource 7"));
        said(&project, &["resources", "read", everything, "demo://nowhere"], 1);
        let prompts = said(&project, &["prompts", "list", everything], 0);
        assert!(prompts.contains("args-prompt"), "{prompts}");
        let prompt = ["prompts", "get", everything, "args-prompt", "city=Oslo"];
        assert!(said(&project, &prompt, 0).contains("Oslo"));
    }
    elsewhere.kill().await.unwrap();
}

async fn the_command_says_how_all_of_them_fare(servers: Servers) {
    let (mut elsewhere, port) = everything_elsewhere(&servers).await;
    let project = project_of_all(&servers, port);
    let doctor = said(&project, &["doctor"], 0);
    assert!(doctor.ends_with("6 of 6 plugins are ready, 5 of them unconfined\n"), "{doctor}");
    for (name, revision) in [("e", "2025-11-25"), ("old", "2025-11-25"), ("new", "2026-07-28")] {
        let one = said(&project, &["doctor", name], 0);
        assert!(one.contains(&format!("\n  server: ready, speaks {revision}")), "{one}");
    }
    let tools = parsed(&project.tenon(&["--json", "tools"]));
    let of = |plugin: &str| {
        let tools = tools.as_array().unwrap().iter();
        tools.filter(|tool| tool["plugin"] == plugin).count()
    };
    assert_eq!(of("e"), of("h"));
    for plugin in ["e", "f", "m", "old", "new"] {
        assert!(of(plugin) > 1, "{plugin}");
    }
    elsewhere.kill().await.unwrap();
}

/// Nothing is known of them, and the processors have other work.
async fn forty_servers_start_by_default_on_a_busy_machine(servers: Servers) {
    let root = servers.home.path().canonicalize().unwrap();
    let time = servers.folder.join("python/bin/mcp-server-time");
    let entries = [
        servers.node_entry("server-everything", &[], ""),
        servers.node_entry("server-filesystem", &[&root], ""),
        servers.node_entry("server-memory", &[], ""),
        servers.entry(time.to_str().expect("it is text"), &[], ""),
    ];
    // Without a time of their own to start.
    let entry = |number: usize| format!("{{ name = \"s{number}\", {} }}", entries[number % 4]);
    let entries: Vec<String> = (0..40).map(entry).collect();
    let project = Project::new(&format!("plugins.mcp = [{}]", entries.join(", ")));
    let burn = || Command::new("sh").args(["-c", "while :; do :; done"]).kill_on_drop(true).spawn();
    let busy = [burn().unwrap(), burn().unwrap()];
    let run = |arguments: &[&str], cache: &str| {
        let mut command = project.command(arguments);
        let output = command.env("XDG_CACHE_HOME", project.path(cache)).output().unwrap();
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        stdout(&output)
    };
    let tools = run(&["tools"], "cache");
    assert!((0..40).all(|number| tools.contains(&format!("s{number}__"))), "{tools}");
    // Each is asked again, and nothing is compiled yet.
    let doctor = run(&["doctor"], "another-cache");
    assert!(doctor.contains("40 of 40 plugins are ready"), "{doctor}");
    drop(busy);
}

/// A tool as its server lists it, of one as `tenon --json tools` does: under its own name, and without
/// what says whose it is.
fn of_the_server(mut tool: Value) -> Value {
    let members = tool.as_object_mut().expect("a tool is an object");
    let name = members.remove("tool").expect("it says what it is called there");
    members.insert("name".into(), name);
    members.retain(|member, _| !["plugin", "kind"].contains(&&**member));
    tool
}

/// Tools in the order of their names.
fn by_name(mut tools: Vec<Value>) -> Vec<Value> {
    tools.sort_by_key(|tool| tool["name"].as_str().map(str::to_string));
    tools
}

async fn the_tools_of_a_server_are_those_that_the_official_sdks_list(servers: Servers) {
    let root = servers.home.path().canonicalize().unwrap();
    let node = |package: &str, arguments: &[&Path]| {
        let script = servers.script(package).into_os_string();
        let arguments = arguments.iter().map(|path| path.as_os_str().to_os_string());
        [OsString::from("node"), script].into_iter().chain(arguments).collect::<Vec<OsString>>()
    };
    let time = servers.folder.join("python/bin/mcp-server-time").into_os_string();
    let commands = [
        ("e", node("server-everything", &[])),
        ("h", node("server-everything", &[])),
        ("f", node("server-filesystem", &[&root])),
        ("m", node("server-memory", &[])),
        ("old", vec![time.clone()]),
        ("new", vec![time]),
    ];
    let (mut elsewhere, port) = everything_elsewhere(&servers).await;
    let project = project_of_all(&servers, port);
    let listed = parsed(&project.tenon(&["--json", "tools"]));
    let listed = listed.as_array().expect("it is a list");
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("real/clients");
    for (plugin, command) in &commands {
        let own = listed.iter().filter(|tool| tool["plugin"] == *plugin);
        let own = by_name(own.cloned().map(of_the_server).collect());
        assert!(!own.is_empty(), "{plugin}");
        let mut typescript = Command::new("node");
        typescript.arg(clients.join("list-tools.cjs")).arg(&servers.folder);
        let mut python = Command::new(servers.folder.join("python/bin/python"));
        python.arg(clients.join("list_tools.py"));
        for (sdk, mut client) in [("TypeScript", typescript), ("Python", python)] {
            let client = client.args(command).stdin(Stdio::null());
            let output = client.envs(HOMES.map(|name| (name, servers.home.path()))).output();
            let output = output.await.expect("the client starts");
            assert!(output.status.success(), "{sdk}, {plugin}: {}", stderr(&output));
            let tools: Vec<Value> = serde_json::from_slice(&output.stdout).expect("it is JSON");
            assert_eq!(own, by_name(tools), "{sdk}, {plugin}");
        }
    }
    elsewhere.kill().await.unwrap();
}
