//! What `tenon serve` costs: its tools beside the same tools of a server that is written with rmcp.

use futures::future::join_all;
use serde_json::{Value, json};
use std::hint::black_box;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::memory::memory;
use crate::table::Table;
use crate::{Row, arguments, built, guests, measure, versus};

/// The server that is written with rmcp.
const RMCP: &str = env!("CARGO_BIN_EXE_demo-server");

/// The revision of the newer era, which both servers speak over HTTP: no session is kept.
const MODERN: &str = "2026-07-28";

/// How many clients there are at a time.
const CONNECTIONS: usize = 64;

/// How many tools there are in a long list.
const TOOLS: usize = 1000;

/// A server that a client speaks with over pipes, a line for each message, and nothing in between.
struct Piped {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// How many requests were sent.
    sent: u64,
    server: Child,
}

impl Piped {
    async fn start(mut server: Command) -> Self {
        let server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut server = server.spawn().expect("the server starts");
        let input = server.stdin.take().expect("it is piped");
        let output = BufReader::new(server.stdout.take().expect("it is piped"));
        let mut piped = Self { input, output, sent: 0, server };
        let client = json!({ "name": "costs", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        piped.ask("initialize", params).await;
        let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        piped.write(&begun.to_string()).await;
        piped
    }

    async fn write(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.expect("it reads");
    }

    async fn ask(&mut self, method: &str, params: Value) -> String {
        self.sent += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.sent, "method": method, "params": params });
        self.write(&request.to_string()).await;
        let mut answer = String::new();
        self.output.read_line(&mut answer).await.expect("it answers");
        assert!(answer.contains("\"result\""), "{answer}");
        answer
    }

    async fn echo(&mut self, tool: &str) {
        let call = json!({ "name": tool, "arguments": arguments() });
        black_box(self.ask("tools/call", call).await);
    }

    /// All tools, page by page. Gives how many there are.
    async fn list(&mut self) -> usize {
        let mut cursor = Value::Null;
        let mut count = 0;
        loop {
            let params = match cursor.is_null() {
                true => json!({}),
                false => json!({ "cursor": cursor }),
            };
            let answer: Value =
                serde_json::from_str(&self.ask("tools/list", params).await).unwrap();
            count += answer["result"]["tools"].as_array().expect("it is a list").len();
            cursor = answer["result"]["nextCursor"].clone();
            if cursor.is_null() {
                return count;
            }
        }
    }
}

/// A server over HTTP, and what was sent to it.
struct Listening {
    address: String,
    /// What a client sends that calls a tool.
    request: Vec<u8>,
    _server: Child,
}

impl Listening {
    /// A server that says where it listens in a line.
    async fn start(mut server: Command, output: fn(&mut Child) -> Lines, tool: &str) -> Self {
        let server = server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = server.kill_on_drop(true).spawn().expect("the server starts");
        let mut lines = output(&mut server);
        let address = loop {
            let mut line = String::new();
            assert_ne!(lines.read_line(&mut line).await.expect("it says where"), 0, "it has ended");
            let line = line.trim().trim_start_matches("listening on http://");
            if line.starts_with("127.0.0.1:") {
                break line.trim_end_matches("/mcp").to_string();
            }
        };
        // It may say more.
        tokio::spawn(async move { lines.read_to_end(&mut Vec::new()).await });
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "costs", "version": "1" },
        });
        let params = json!({ "name": tool, "arguments": arguments(), "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let body = body.to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {MODERN}\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Self { address, request: request.into_bytes(), _server: server }
    }

    async fn connect(&self) -> HttpConnection {
        let stream = TcpStream::connect(&self.address).await.expect("it listens");
        stream.set_nodelay(true).expect("it is a socket");
        HttpConnection { stream, answer: Vec::new() }
    }

    /// Calls the tool over a connection, which stays open. Client and server share the processors, so it does no more
    /// than it has to.
    async fn echo(&self, connection: &mut HttpConnection) {
        let HttpConnection { stream, answer } = connection;
        stream.write_all(&self.request).await.expect("it reads");
        answer.clear();
        while !is_whole(answer) {
            assert_ne!(stream.read_buf(answer).await.expect("it answers"), 0, "it has ended");
        }
        black_box(answer);
    }

    /// So many calls of each of many clients at once.
    async fn echo_all(&self, connections: &mut [HttpConnection], calls: usize) {
        join_all(connections.iter_mut().map(async |connection| {
            for _ in 0..calls {
                self.echo(connection).await;
            }
        }))
        .await;
    }
}

/// A connection to a server, with what it has answered last.
struct HttpConnection {
    stream: TcpStream,
    answer: Vec<u8>,
}

/// Whether an answer has come as a whole. It is in one piece, and says how long it is.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let head = str::from_utf8(&answer[..end]).expect("it is text");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize =
        length.and_then(|(_, length)| length.parse().ok()).expect("it is in one piece");
    answer.len() >= end + 4 + length
}

type Lines = BufReader<Box<dyn tokio::io::AsyncRead + Unpin + Send>>;

fn standard_output(server: &mut Child) -> Lines {
    BufReader::new(Box::new(server.stdout.take().expect("it is piped")))
}

fn standard_error(server: &mut Child) -> Lines {
    BufReader::new(Box::new(server.stderr.take().expect("it is piped")))
}

/// A project with this configuration.
fn project(configuration: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("tenon.toml"), configuration).unwrap();
    folder
}

/// The command that serves a project.
fn serve(folder: &TempDir, arguments: &[&str]) -> Option<Command> {
    let mut command = Command::new(built("tenon")?);
    command.args(["--trust", "serve"]).args(arguments).current_dir(folder.path());
    for name in ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
        command.env(name, folder.path());
    }
    Some(command)
}

pub(crate) async fn all(rows: &mut Vec<Row>) {
    let component = format!(
        "plugins.wasm = [{{ path = {:?}, id = \"echo\", instance = \"shared\" }}]",
        guests::MISBEHAVE
    );
    let bridged = format!("plugins.mcp = [{{ name = \"echo\", command = {RMCP:?} }}]");
    let beside = "a server written with rmcp";
    for (what, configuration) in [
        ("call over stdio, component, shared instance", &component),
        ("call over stdio, the same server behind the bridge", &bridged),
    ] {
        let folder = project(configuration);
        let Some(command) = serve(&folder, &[]) else { return };
        let mut ours = Piped::start(command).await;
        let mut bare = Piped::start(Command::new(RMCP)).await;
        let times = versus(
            100,
            100,
            async || ours.echo("echo__echo").await,
            async || bare.echo("echo").await,
        )
        .await;
        rows.push(Row::new(what, times, beside));
    }

    let folder = project(&component);
    let Some(command) = serve(&folder, &["--http", "127.0.0.1:0", "--no-auth"]) else { return };
    let ours = Listening::start(command, standard_error, "echo__echo").await;
    let mut command = Command::new(RMCP);
    command.arg("--http");
    let bare = Listening::start(command, standard_output, "echo").await;
    let (mut to_ours, mut to_bare) = (ours.connect().await, bare.connect().await);
    let times = versus(
        100,
        100,
        async || ours.echo(&mut to_ours).await,
        async || bare.echo(&mut to_bare).await,
    )
    .await;
    rows.push(Row::new("call over HTTP, one connection", times, beside));
    let connect =
        async |server: &Listening| join_all((0..CONNECTIONS).map(|_| server.connect())).await;
    let (mut to_ours, mut to_bare) = (connect(&ours).await, connect(&bare).await);
    const CALLS: usize = 50;
    let (of_ours, of_bare) = versus(
        20,
        1,
        async || ours.echo_all(&mut to_ours, CALLS).await,
        async || bare.echo_all(&mut to_bare, CALLS).await,
    )
    .await;
    let each = |time: Duration| time / (CONNECTIONS * CALLS) as u32;
    let times = (each(of_ours), each(of_bare));
    rows.push(Row::new("call over HTTP, 64 connections at once", times, beside));

    let folder = project("plugins.scripts = [\"many.rhai\"]");
    let script = format!(
        "for i in 0..{TOOLS} {{ tool(#{{ name: `tool_${{i}}`, description: \"Has the number ${{i}}\", \
         schema: #{{ type: \"object\", properties: #{{ text: #{{ type: \"string\" }} }} }} }}, |a| a); }}"
    );
    std::fs::write(folder.path().join("many.rhai"), script).unwrap();
    let Some(command) = serve(&folder, &[]) else { return };
    let mut many = Piped::start(command).await;
    assert_eq!(many.list().await, TOOLS);
    let time = measure(20, 5, async || assert_eq!(many.list().await, TOOLS)).await;
    rows.push(Row { what: format!("list of {TOOLS} tools"), ours: Some(time), bare: None });

    let folder = project(&component);
    let start = async || {
        let command = serve(&folder, &[]).expect("the command is there");
        let mut server = Piped::start(command).await;
        black_box(server.list().await);
    };
    start().await;
    let times = versus(20, 1, start, async || {
        let mut server = Piped::start(Command::new(RMCP)).await;
        black_box(server.list().await);
    })
    .await;
    rows.push(Row::new("start until the first list, all cached", times, beside));
}

/// How many plugins are idle, and how many tools they have together.
const IDLE_PLUGINS: usize = 20;
const IDLE_TOOLS: usize = 500;

/// How long a server was idle when its memory is looked at.
const IDLE_TIME: Duration = Duration::from_secs(1);

/// Prints what a server takes that has nothing to do, after its tools were listed: with many plugins, with one and with
/// none, and a server that is written with rmcp. Half of the plugins are components, and half are scripts.
pub(crate) async fn print_memory() {
    let folder = project("");
    let wasm = std::fs::read(guests::MISBEHAVE).expect("the guest was built");
    let [mut components, mut scripts] = [Vec::new(), Vec::new()];
    for i in 0..IDLE_PLUGINS / 2 {
        // Each component is another one.
        let own = [&wasm[..], &[0, 3, 1, b'i', i as u8]].concat();
        std::fs::write(folder.path().join(format!("c{i}.wasm")), own).unwrap();
        components.push(format!("c{i}.wasm"));
        scripts.push(format!("s{i}.rhai"));
    }
    let write = |components: &[String], scripts: &[String]| {
        let configuration = format!("plugins.wasm = {components:?}\nplugins.scripts = {scripts:?}");
        std::fs::write(folder.path().join("tenon.toml"), configuration).unwrap();
    };
    write(&components[..1], &[]);
    let Some((_, tools_of_one)) = idle(serve(&folder, &[])).await else { return };
    let of_scripts = IDLE_TOOLS - tools_of_one * components.len();
    for (i, script) in scripts.iter().enumerate() {
        let tools = of_scripts / scripts.len() + usize::from(i < of_scripts % scripts.len());
        let script_text = format!(
            "for i in 0..{tools} {{ tool(#{{ name: `tool_${{i}}`, description: \"Has the number ${{i}}\", \
             schema: #{{ type: \"object\", properties: #{{ text: #{{ type: \"string\" }} }} }} }}, |a| a); }}"
        );
        std::fs::write(folder.path().join(script), script_text).unwrap();
    }
    let mut table = Table::new("Memory of an idle server", ["server", "resident", "written"]);
    let mut add = |what: &str, figures: [u64; 2]| {
        let [resident, written] = figures.map(|kib| format!("{:.1} MiB", kib as f64 / 1024.0));
        table.row([what.into(), resident, written]);
    };
    for (what, components, scripts) in [
        ("`tenon serve`, 500 tools of 20 plugins", &components[..], &scripts[..]),
        ("`tenon serve`, one component", &components[..1], &[]),
        ("`tenon serve`, no plugin", &[], &[]),
    ] {
        write(components, scripts);
        // The first compiles what the others find in the cache.
        let Some((_, tools)) = idle(serve(&folder, &[])).await else { return };
        assert!(scripts.is_empty() || tools == IDLE_TOOLS, "there are {tools} tools");
        if let Some((memory, _)) = median_idle(|| serve(&folder, &[])).await {
            add(what, memory);
        }
    }
    if let Some((memory, tools)) = median_idle(|| Some(Command::new(RMCP))).await {
        add(&format!("a server written with rmcp, {tools} tools"), memory);
    }
    table.print();
}

/// The memory of a server that is idle, in KiB: what is resident, and what of it was written to. And how many tools it
/// has.
async fn idle(server: Option<Command>) -> Option<([u64; 2], usize)> {
    let mut server = Piped::start(server?).await;
    let tools = server.list().await;
    tokio::time::sleep(IDLE_TIME).await;
    let process = server.server.id()?.to_string();
    Some((memory(&process, ["Rss:", "Private_Dirty:"])?, tools))
}

/// The median of some servers by what is resident.
async fn median_idle(server: impl Fn() -> Option<Command>) -> Option<([u64; 2], usize)> {
    let mut measured = Vec::new();
    for _ in 0..5 {
        measured.push(idle(server()).await?);
    }
    measured.sort_unstable();
    measured.get(measured.len() / 2).copied()
}
