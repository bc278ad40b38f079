//! MCP servers over stdio: `tenon serve`, and servers with the official SDKs, each with the same tool. The client is the
//! same for all, and does little more than write lines and read them.
//!
//! Tenon and the server with rmcp are one program, and the others are scripts that an interpreter reads at each start.
//! `tenon serve` starts on what it has compiled before. It answers calls on threads for each core, and the other servers
//! on one thread.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::hint::black_box;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::format::{memory, rate, ratio, time, times};
use crate::programs::{Sdk, built};
use crate::rounds::{ComparedSides, SelfTimedWork, Side, median};
use crate::table::Table;
use crate::{TEXT, arguments};

/// How many calls are in flight at a time.
const IN_FLIGHT: u32 = 64;

/// How often each server has its turn, and for how long.
const ROUNDS: usize = 31;
const ROUND: Duration = Duration::from_millis(60);

/// How often each server starts.
const STARTS: usize = 11;

/// How long a server was idle when its memory is looked at, and of how many.
const IDLE_TIME: Duration = Duration::from_secs(1);
const IDLE: usize = 3;

/// A server, and how it is started.
struct Server<'a> {
    name: String,
    /// The name of the tool there.
    tool: &'static str,
    command: Box<dyn Fn() -> std::process::Command + 'a>,
}

/// Prints what calls cost, and starts, and what a server takes that is idle.
pub(crate) async fn print(sdks: &[Sdk]) {
    let component =
        format!("plugins.wasm = [{{ path = {:?}, id = \"echo\"", env!("ECHO_COMPONENT"));
    let projects = [
        ("component, shared instance", format!("{component}, instance = \"shared\" }}]")),
        ("component, an instance for each call", format!("{component} }}]")),
        ("script in Rhai", "plugins.scripts = [\"echo.rhai\"]".to_string()),
    ]
    .map(|(what, configuration)| (what, project(&configuration)));
    let mut servers: Vec<Server<'_>> = Vec::new();
    for (what, folder) in &projects {
        let command = Box::new(move || serve(folder));
        servers.push(Server { name: format!("tenon serve, {what}"), tool: "echo__echo", command });
    }
    let rmcp = || std::process::Command::new(built("demo-server"));
    servers.push(Server { name: "rmcp".into(), tool: "echo", command: Box::new(rmcp) });
    for sdk in sdks.iter().filter(|sdk| sdk.has_server) {
        let command = Box::new(move || sdk.server());
        servers.push(Server { name: sdk.name(), tool: "echo", command });
    }
    print_calls(&servers).await;
    print_starts(&servers).await;
    print_memory(&servers).await;
}

/// A project with this configuration, and with the script.
fn project(configuration: &str) -> TempDir {
    let folder = TempDir::new().expect("there is room for a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("tenon.toml", configuration).expect("the folder is there");
    write("echo.rhai", include_str!("../echo.rhai")).expect("the folder is there");
    folder
}

/// The command that serves a project.
fn serve(folder: &TempDir) -> std::process::Command {
    let mut command = std::process::Command::new(built("tenon"));
    command.args(["--trust", "serve"]).current_dir(folder.path());
    for name in ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
        command.env(name, folder.path());
    }
    command
}

async fn print_calls(servers: &[Server<'_>]) {
    let (mut one, mut many) = (ComparedSides::default(), ComparedSides::default());
    for server in servers {
        one.add(&server.name, Calls { piped: Piped::start(server).await, in_flight: 1 });
        many.add(&server.name, Calls { piped: Piped::start(server).await, in_flight: IN_FLIGHT });
    }
    let one = one.measure(ROUNDS, ROUND).await;
    let many = many.measure(ROUNDS, ROUND).await;
    let columns = ["server", "one call", "× Tenon", "64 in flight", "× Tenon"];
    let mut table = Table::new("Call of a tool of an MCP server, over stdio", columns);
    for ((name, call), (_, of_many)) in one.iter().zip(&many) {
        table.row([
            name.clone(),
            time(*call),
            times(*call, one[0].1),
            rate(*of_many),
            times(*of_many, many[0].1),
        ]);
    }
    table.print();
}

async fn print_starts(servers: &[Server<'_>]) {
    let mut sides = ComparedSides::default();
    for server in servers {
        let start = async move || {
            let began = Instant::now();
            let mut piped = Piped::start(server).await;
            piped.ask("tools/list", json!({})).await;
            began.elapsed()
        };
        sides.add(&server.name, SelfTimedWork(start));
    }
    let measured = sides.measure(STARTS, Duration::ZERO).await;
    let title = "From the start of an MCP server to its first list of tools";
    let mut table = Table::new(title, ["server", "time", "× Tenon"]);
    for (name, start) in &measured {
        table.row([name.clone(), time(*start), times(*start, measured[0].1)]);
    }
    table.print();
}

async fn print_memory(servers: &[Server<'_>]) {
    let columns = ["server", "resident", "× Tenon", "written", "× Tenon"];
    let mut table = Table::new("Memory of an idle MCP server, after a call", columns);
    let mut tenon = None;
    for server in servers {
        let mut measured = Vec::new();
        for _ in 0..IDLE {
            measured.extend(idle_memory(server).await);
        }
        if measured.len() < IDLE {
            println!("without the memory of idle servers, which this system does not tell\n");
            return;
        }
        let idle = median(measured);
        let [resident, written] = idle;
        let [first_resident, first_written] = *tenon.get_or_insert(idle);
        table.row([
            server.name.clone(),
            memory(resident),
            ratio(resident as f64, first_resident as f64),
            memory(written),
            ratio(written as f64, first_written as f64),
        ]);
    }
    table.print();
}

/// What is resident of a server, and what of it was written to, in KiB, where the system tells.
async fn idle_memory(server: &Server<'_>) -> Option<[u64; 2]> {
    let mut piped = Piped::start(server).await;
    piped.ask("tools/list", json!({})).await;
    piped.calls(1, 1).await;
    tokio::time::sleep(IDLE_TIME).await;
    let path = format!("/proc/{}/smaps_rollup", piped.server.id()?);
    let status = std::fs::read_to_string(path).ok()?;
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Some([of("Rss:")?, of("Private_Dirty:")?])
}

/// Calls of a server, so many of which are in flight at a time.
struct Calls {
    piped: Piped,
    in_flight: u32,
}

#[async_trait(?Send)]
impl Side for Calls {
    async fn round(&mut self, turns: u32) -> Duration {
        let began = Instant::now();
        self.piped.calls(turns, self.in_flight).await;
        began.elapsed() / turns
    }
}

/// A server that a client speaks with over pipes, a line for each message, and nothing in between.
struct Piped {
    tool: &'static str,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// How many requests were sent.
    sent: u64,
    server: Child,
}

impl Piped {
    async fn start(server: &Server<'_>) -> Self {
        let Server { tool, command, .. } = server;
        let mut command = Command::from(command());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.kill_on_drop(true).spawn().expect("the server starts");
        let input = server.stdin.take().expect("it is piped");
        let output = BufReader::new(server.stdout.take().expect("it is piped"));
        let mut piped = Self { tool, input, output, sent: 0, server };
        let client = json!({ "name": "peers", "version": "1" });
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

    async fn send(&mut self, method: &str, params: Value) {
        self.sent += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.sent, "method": method, "params": params });
        self.write(&request.to_string()).await;
    }

    async fn receive(&mut self) -> String {
        let mut answer = String::new();
        self.output.read_line(&mut answer).await.expect("it answers");
        assert!(answer.contains("\"result\""), "{answer}");
        answer
    }

    async fn ask(&mut self, method: &str, params: Value) -> String {
        self.send(method, params).await;
        self.receive().await
    }

    /// Calls the tool so many times. Where one of those in flight has its answer, the next one begins.
    async fn calls(&mut self, calls: u32, in_flight: u32) {
        let (mut begun, mut ended) = (0, 0);
        while ended < calls {
            while begun < calls && begun - ended < in_flight {
                let call = json!({ "name": self.tool, "arguments": arguments() });
                self.send("tools/call", call).await;
                begun += 1;
            }
            let answer = self.receive().await;
            assert!(black_box(answer).contains(TEXT));
            ended += 1;
        }
    }
}
