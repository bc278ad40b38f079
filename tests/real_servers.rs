//! MCP servers that nobody here wrote, behind the bridge.
//!
//! `cargo xtask test` installs them, at the versions of the lock files in `real/`, and says where
//! they are. Without them these tests are listed as ignored, which one line says, and none of them
//! passes.

#![allow(clippy::print_stderr)]

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tempfile::TempDir;
use tenon_host::invoke::TRUNCATED;
use tenon_host::types::{CallContext, ResourceBody, ToolResult};
use tenon_host::{Call, Config, Event, Platform, PluginState, Surroundings, wire};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let servers = std::env::var_os("TENON_REAL_SERVERS").map(PathBuf::from);
    if servers.is_none() {
        eprintln!(
            "note: no real MCP servers are installed, so their tests are ignored; `cargo xtask test` installs them"
        );
    }
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
        everything_reports_progress,
        everything_offers_resources_and_prompts,
        everything_answers_many_calls_at_a_time,
        a_call_of_everything_can_be_cancelled,
        filesystem_reads_and_writes_in_its_folder_only,
        filesystem_reads_five_megabytes,
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
    async fn platform(&self, command: &str, arguments: &[&Path]) -> Platform {
        let home = self.home.path();
        let environment: String = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"]
            .map(|name| format!("{name} = {home:?}, "))
            .concat();
        let text = format!(
            "plugins.mcp = [{{ name = \"s\", command = {command:?}, args = {arguments:?}, \
             env = {{ {environment} }}, startup_timeout = \"60s\" }}]"
        );
        let config =
            Config::parse(&text, home.join("tenon.toml")).expect("the configuration is read");
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/tenon");
        let surroundings = Surroundings { cache: Some(cache), ..Surroundings::of_process() };
        let platform = Platform::builder().surroundings(surroundings).config(config).build().await;
        let platform = platform.expect("the platform is built");
        assert_eq!(platform.plugins()[0].state, PluginState::Ready, "{:?}", platform.plugins());
        platform
    }

    async fn node(&self, package: &str, arguments: &[&Path]) -> Platform {
        let script = self
            .folder
            .join("node_modules/@modelcontextprotocol")
            .join(package)
            .join("dist/index.js");
        let all: Vec<&Path> =
            [script.as_path()].into_iter().chain(arguments.iter().copied()).collect();
        self.platform("node", &all).await
    }
}

async fn call(platform: &Platform, tool: &str, arguments: Value) -> ToolResult {
    let result = platform.call(Call::new(format!("s__{tool}"), arguments)).await;
    result.unwrap_or_else(|error| panic!("{tool}: {error}"))
}

fn context() -> CallContext {
    CallContext {
        call_id: "test".into(),
        agent_id: None,
        session_id: None,
        traceparent: None,
        deadline: None,
    }
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
    let plugin = server.loaded().plugin();
    let page = plugin.list_resources(None, context()).await.expect("resources are listed");
    let uri = &page.resources.first().expect("there are resources").link.uri;
    let contents = plugin.read_resource(uri, context()).await.expect("a resource is read");
    assert_eq!(&contents[0].uri, uri);
    let templates = plugin.list_templates(None, context()).await.expect("templates are listed");
    assert!(!templates.templates.is_empty());
    let page = plugin.list_prompts(None, context()).await.expect("prompts are listed");
    let simple = page.prompts.iter().find(|prompt| prompt.arguments.is_empty());
    let simple = simple.expect("there is a prompt without arguments");
    let prompt = plugin.get_prompt(&simple.name, Vec::new(), context()).await;
    assert!(!prompt.expect("the prompt is got").messages.is_empty());
    platform.shutdown().await;
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
    call_of_long.caller.timeout = Some(std::time::Duration::from_millis(200));
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
    let whole = platform.read_result(uri.as_str().expect("it is kept")).await.unwrap();
    assert!(matches!(&whole[0].body, ResourceBody::Text(text) if *text == content));
    platform.shutdown().await;
}

async fn time_tells_the_time(servers: Servers) {
    let program = servers.folder.join("python/bin/mcp-server-time");
    let platform = servers.platform(program.to_str().unwrap(), &[]).await;
    let now = call(&platform, "get_current_time", json!({ "timezone": "Asia/Tokyo" })).await;
    assert!(now.plain_text().contains("+09:00"), "{}", now.plain_text());
    let wrong = call(&platform, "get_current_time", json!({ "timezone": "Mars/Base" })).await;
    assert!(wrong.is_error);
    platform.shutdown().await;
}
