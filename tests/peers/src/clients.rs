//! MCP clients that call the same server over stdio: Tenon's bridge, and clients with the official SDKs.
//!
//! Tenon and rmcp are in this process, and the clients in other languages in processes of their own, which time their calls
//! themselves. All are kept on one core with their server: what waking another core costs depends on which one a
//! server happens to be on, and is more than what is measured. Tenon's side is a whole call, as with any plugin.

use async_trait::async_trait;
use futures::future::join_all;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::Value;
use std::hint::black_box;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tenon_host::{Allocation, Call, Config, HostEnvironment, Platform};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::format::{rate, time, times};
use crate::programs::{Sdk, built};
use crate::rounds::{ComparedSides, Side};
use crate::table::Table;
use crate::{TEXT, arguments};

/// The servers that are called: one as people write them, and one that answers as fast as it can, so that little but
/// the client is measured.
const SERVERS: [(&str, &str); 2] =
    [("is written with rmcp", "demo-server"), ("takes no time", "rude-server")];

/// How many calls are in flight at a time.
const IN_FLIGHT: u32 = 64;

/// How often each client has its turn, and for how long.
const ROUNDS: usize = 31;
const ROUND: Duration = Duration::from_millis(60);

/// Prints what a call costs of each server.
pub(crate) async fn print(sdks: &[Sdk]) {
    let on_one_core = if keep_on_one_core() { ", on one core" } else { "" };
    for (what, server) in SERVERS {
        let server = built(server);
        let (tenon, rmcp) = (bridge(&server).await, rmcp_client(&server).await);
        let in_this_process =
            [("Tenon's bridge", Here::Tenon(&tenon)), ("rmcp", Here::Rmcp(&rmcp))];
        let mut measured = Vec::new();
        for in_flight in [1, IN_FLIGHT] {
            let mut sides = ComparedSides::default();
            for (name, client) in in_this_process {
                sides.add(name, CallLoad { client, in_flight });
            }
            for sdk in sdks {
                let client = ProcessClient::start(sdk, &server);
                sides.add(sdk.name(), CallLoad { client, in_flight });
            }
            measured.push(sides.measure(ROUNDS, ROUND).await);
        }
        let [one, many] = &measured[..] else { unreachable!("there are two") };
        let columns = ["client", "one call", "× Tenon", "64 in flight", "× Tenon"];
        let title = format!("Call of an MCP server that {what}, over stdio{on_one_core}");
        let mut table = Table::new(&title, columns);
        for ((name, call), (_, of_many)) in one.iter().zip(many) {
            table.row([
                name.clone(),
                time(*call),
                times(*call, one[0].1),
                rate(*of_many),
                times(*of_many, many[0].1),
            ]);
        }
        table.print();
        rmcp.cancel().await.expect("the client ends");
        tenon.shutdown().await;
    }
}

/// Keeps this thread on the core that it is on, with all that it starts from now on. Returns whether the system lets it.
fn keep_on_one_core() -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        sched_setaffinity(None, &one).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    false
}

/// A platform whose one plugin is the server.
async fn bridge(server: &Path) -> Platform {
    let config = format!("plugins.mcp = [{{ name = \"s\", command = {server:?} }}]");
    let config = Config::parse(&config, "/tenon.toml").expect("the configuration is read");
    let host_environment = HostEnvironment { cache: None, ..HostEnvironment::of_process() };
    let builder = Platform::builder().host_environment(host_environment).config(config);
    builder.allocation(Allocation::OnDemand).build().await.expect("the platform is built")
}

type Client = RunningService<RoleClient, ()>;

async fn rmcp_client(server: &Path) -> Client {
    let transport = TokioChildProcess::new(Command::new(server)).expect("the server starts");
    ().serve(transport).await.expect("it answers")
}

/// A client that can call the tool several times at once.
#[async_trait(?Send)]
trait BenchClient {
    /// So many calls at a time, and so many after each other in each place. Returns how long that took.
    async fn call(&mut self, in_flight: u32, in_row: u32) -> Duration;
}

/// Calls by a client, so many of which are in flight at a time.
struct CallLoad<C> {
    client: C,
    in_flight: u32,
}

#[async_trait(?Send)]
impl<C: BenchClient> Side for CallLoad<C> {
    async fn round(&mut self, turns: u32) -> Duration {
        let in_row = turns.div_ceil(self.in_flight);
        self.client.call(self.in_flight, in_row).await / (self.in_flight * in_row)
    }
}

/// A client of this process.
#[derive(Clone, Copy)]
enum Here<'a> {
    Tenon(&'a Platform),
    Rmcp(&'a Client),
}

impl Here<'_> {
    async fn echo(&self) {
        match self {
            Self::Tenon(platform) => {
                let result = platform.call(Call::new("s__echo", arguments())).await;
                assert_eq!(black_box(result.expect("an answer")).plain_text(), TEXT);
            }
            Self::Rmcp(client) => {
                let Value::Object(arguments) = arguments() else {
                    unreachable!("they are an object")
                };
                let mut params = CallToolRequestParams::new("echo");
                params.arguments = Some(arguments);
                let result = black_box(client.call_tool(params).await.expect("an answer"));
                let text = result.content[0].as_text().expect("it is a text");
                assert_eq!(text.text, TEXT);
            }
        }
    }
}

#[async_trait(?Send)]
impl BenchClient for Here<'_> {
    async fn call(&mut self, in_flight: u32, in_row: u32) -> Duration {
        let began = Instant::now();
        let place = async || {
            for _ in 0..in_row {
                self.echo().await;
            }
        };
        join_all((0..in_flight).map(|_| place())).await;
        began.elapsed()
    }
}

/// A client of another process: a script, which is told on a line what to do, and prints how long that took.
struct ProcessClient {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _client: Child,
}

impl ProcessClient {
    fn start(sdk: &Sdk, server: &Path) -> Self {
        let mut command = Command::from(sdk.client());
        command.arg(arguments().to_string()).arg(server);
        let client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut client = client.spawn().expect("the client starts");
        let input = client.stdin.take().expect("it is piped");
        let output = BufReader::new(client.stdout.take().expect("it is piped"));
        Self { input, output, _client: client }
    }
}

#[async_trait(?Send)]
impl BenchClient for ProcessClient {
    async fn call(&mut self, in_flight: u32, in_row: u32) -> Duration {
        let line = format!("{in_flight} {in_row}\n");
        self.input.write_all(line.as_bytes()).await.expect("it reads");
        let mut line = String::new();
        self.output.read_line(&mut line).await.expect("it answers");
        Duration::from_nanos(line.trim().parse().expect("it is a time"))
    }
}
