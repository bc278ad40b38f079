//! The clients: of both eras, over connections that stay open or not, some of which vanish in the middle of a call.

use serde_json::{Value, json};
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::http::{Connection, ServerEndpoint};
use crate::tally::{Tally, Target};

/// The revision of the newer era.
const MODERN: &str = "2026-07-28";

/// The newest revision of the older one.
const LEGACY: &str = "2025-11-25";

/// How long a client waits for an answer before it counts as lost. It is no measure of speed.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a client rests between two calls, so that the machine is busy and not choked.
const REST: Duration = Duration::from_millis(20);

/// How many calls a session has before it ends, or is left behind.
const CALLS_OF_SESSION: u64 = 50;

/// How many requests a client over stdio has in flight.
const IN_FLIGHT: usize = 16;

/// What all clients share.
#[derive(Clone)]
pub(crate) struct ClientContext {
    pub(crate) address: ServerEndpoint,
    pub(crate) tally: Arc<Tally>,
    pub(crate) until: Instant,
}

/// How a client behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClientBehavior {
    /// Modern, over a connection that stays open, or over one for each call.
    Modern {
        keeps: bool,
    },
    /// Sessions one after the other, of which every other one is left behind.
    Legacy,
    /// A legacy session with a stream of news beside.
    Listening,
    /// Goes away in the middle of each call.
    ModernVanishing,
    LegacyVanishing,
}

/// How many of each kind there are.
pub(crate) const KINDS: [(ClientBehavior, &str, usize); 6] = [
    (ClientBehavior::Modern { keeps: true }, "modern", 20),
    (ClientBehavior::Modern { keeps: false }, "modern, a connection each", 8),
    (ClientBehavior::Legacy, "legacy", 18),
    (ClientBehavior::Listening, "legacy, listening", 4),
    (ClientBehavior::ModernVanishing, "modern, vanishing", 6),
    (ClientBehavior::LegacyVanishing, "legacy, vanishing", 6),
];

/// A modern request.
fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn legacy(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn initialize() -> Value {
    let client = json!({ "name": "soak", "version": "1" });
    let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client });
    legacy(0, "initialize", params)
}

/// Sends a modern request.
async fn send_modern(connection: &mut Connection, request: &Value) -> io::Result<()> {
    let method = request["method"].as_str().unwrap_or_default();
    let mut headers = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
    headers.extend(request["params"]["name"].as_str().map(|name| ("Mcp-Name", name)));
    connection.send("POST", "/mcp", &headers, &request.to_string()).await
}

/// Sends a request of a session.
async fn send_legacy(
    connection: &mut Connection,
    session: &str,
    request: &Value,
) -> io::Result<()> {
    let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", LEGACY)];
    connection.send("POST", "/mcp", &headers, &request.to_string()).await
}

/// Begins a session over a connection. Gives its id.
pub(crate) async fn begin_session(connection: &mut Connection) -> io::Result<String> {
    connection.send("POST", "/mcp", &[], &initialize().to_string()).await?;
    let response = connection.receive().await?;
    let problem = || io::Error::other(format!("no session begins: {}", response.body));
    let session = response.header("mcp-session-id").ok_or_else(problem)?.to_string();
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    send_legacy(connection, &session, &initialized).await?;
    connection.receive().await?;
    Ok(session)
}

impl ClientContext {
    /// Runs a client until time is up.
    pub(crate) async fn run(self, kind: ClientBehavior, name: &'static str, place: usize) {
        while Instant::now() < self.until {
            let result = match kind {
                ClientBehavior::Modern { keeps } => self.run_modern(name, place, keeps).await,
                ClientBehavior::Legacy => self.run_session(name, place).await,
                ClientBehavior::Listening => self.run_listening(name, place).await,
                ClientBehavior::ModernVanishing => self.vanish_modern(name, place).await,
                ClientBehavior::LegacyVanishing => self.vanish_legacy(name).await,
            };
            if let Err(error) = result {
                let what = match error.to_string().starts_with("doubled") {
                    true => "doubled",
                    false => "lost",
                };
                self.tally.fail(what, format!("{name}: {error}"));
                sleep(REST).await;
            }
        }
    }

    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    /// The next call of a client: all plugins take turns.
    fn next(&self, place: usize, turn: u64) -> (Target, u64) {
        (Target::ALL[(place + turn as usize) % Target::ALL.len()], self.tally.number())
    }

    async fn run_modern(&self, name: &'static str, place: usize, keeps: bool) -> io::Result<()> {
        let mut connection = Connection::open(&self.address).await?;
        let mut turn = 0;
        while self.goes_on() {
            turn += 1;
            if turn % 25 == 0 {
                send_modern(&mut connection, &modern(turn, "tools/list", json!({}))).await?;
                self.check_list(&mut connection).await?;
            }
            let call = self.next(place, turn);
            let began = Instant::now();
            send_modern(&mut connection, &modern(call.1, "tools/call", call.0.call(call.1)))
                .await?;
            self.take(name, call, &mut connection, began).await?;
            sleep(REST).await;
            connection.check_silent()?;
            if !keeps {
                connection = Connection::open(&self.address).await?;
            }
        }
        Ok(())
    }

    async fn run_session(&self, name: &'static str, place: usize) -> io::Result<()> {
        let mut connection = Connection::open(&self.address).await?;
        for round in 0.. {
            let session = begin_session(&mut connection).await?;
            self.call_in_session(name, place, &session, &mut connection, CALLS_OF_SESSION).await?;
            if round % 2 == 0 {
                self.tally.event("sessions left behind");
            } else {
                connection.send("DELETE", "/mcp", &[("Mcp-Session-Id", &session)], "").await?;
                if connection.receive().await?.status != 204 {
                    self.tally.fail("refused", format!("{name}: a session does not end"));
                }
                self.tally.event("sessions ended");
            }
            if !self.goes_on() {
                break;
            }
        }
        Ok(())
    }

    async fn call_in_session(
        &self,
        name: &'static str,
        place: usize,
        session: &str,
        connection: &mut Connection,
        turns: u64,
    ) -> io::Result<()> {
        for turn in 1..=turns {
            if !self.goes_on() {
                break;
            }
            if turn % 25 == 0 {
                let list = legacy(turn, "tools/list", json!({}));
                send_legacy(connection, session, &list).await?;
                self.check_list(connection).await?;
            }
            let call = self.next(place, turn);
            let began = Instant::now();
            let request = legacy(call.1, "tools/call", call.0.call(call.1));
            send_legacy(connection, session, &request).await?;
            self.take(name, call, connection, began).await?;
            sleep(REST).await;
            connection.check_silent()?;
        }
        Ok(())
    }

    /// A session whose client has a stream of news. What answers a request has no place in it.
    async fn run_listening(&self, name: &'static str, place: usize) -> io::Result<()> {
        let mut connection = Connection::open(&self.address).await?;
        let session = begin_session(&mut connection).await?;
        let mut news = Connection::open(&self.address).await?;
        news.send("GET", "/mcp", &[("Mcp-Session-Id", &session)], "").await?;
        let take = |message: Value| match message["method"].as_str() {
            Some("notifications/tools/list_changed") => self.tally.event("told of changed lists"),
            Some(_) => {}
            None => self.tally.fail("doubled", format!("{name}: {message} among the news")),
        };
        tokio::select! {
            result = self.call_in_session(name, place, &session, &mut connection, u64::MAX) => result,
            result = news.receive_stream(take) => {
                result?;
                Err(io::Error::other("the stream of news has ended"))
            }
        }
    }

    /// Goes away while a call is carried out, which gives it up.
    async fn vanish_modern(&self, name: &'static str, place: usize) -> io::Result<()> {
        let mut connection = Connection::open(&self.address).await?;
        let target = match place % 2 {
            0 => Target::Killed,
            _ => Target::Spared,
        };
        let number = self.tally.number();
        let mut call = target.call(number);
        call["arguments"]["millis"] = 500.into();
        // Before it is sent: it may be carried out from then on.
        self.tally.vanish(name, (target, number));
        send_modern(&mut connection, &modern(number, "tools/call", call)).await?;
        sleep(Duration::from_millis(number % 300)).await;
        drop(connection);
        let mut connection = Connection::open(&self.address).await?;
        let call = json!({ "name": "echo__hang", "arguments": {} });
        send_modern(&mut connection, &modern(number, "tools/call", call)).await?;
        self.tally.event("calls of what never ends, left");
        sleep(Duration::from_millis(number % 300)).await;
        Ok(())
    }

    /// Goes away in the middle of a call, and leaves the session behind.
    async fn vanish_legacy(&self, name: &'static str) -> io::Result<()> {
        let mut connection = Connection::open(&self.address).await?;
        let session = begin_session(&mut connection).await?;
        for target in [Target::Spared, Target::Killed] {
            let number = self.tally.number();
            let mut call = target.call(number);
            call["arguments"]["millis"] = 500.into();
            self.tally.vanish(name, (target, number));
            send_legacy(&mut connection, &session, &legacy(number, "tools/call", call)).await?;
            sleep(Duration::from_millis(number % 300)).await;
            connection = Connection::open(&self.address).await?;
        }
        self.tally.event("sessions left behind");
        Ok(())
    }

    /// Calls a tool over a connection of its own.
    pub(crate) async fn call_once(&self, target: Target) -> io::Result<()> {
        self.call_with(target, self.tally.number(), None).await
    }

    /// The same with a number that the call has, and with other arguments.
    pub(crate) async fn call_with(
        &self,
        target: Target,
        number: u64,
        arguments: Option<Value>,
    ) -> io::Result<()> {
        let mut params = target.call(number);
        if let Some(arguments) = arguments {
            params["arguments"] = arguments;
        }
        let mut connection = Connection::open(&self.address).await?;
        let began = Instant::now();
        send_modern(&mut connection, &modern(number, "tools/call", params)).await?;
        self.take("single", (target, number), &mut connection, began).await
    }

    /// Takes the answer to a call.
    async fn take(
        &self,
        name: &'static str,
        call: (Target, u64),
        connection: &mut Connection,
        began: Instant,
    ) -> io::Result<()> {
        let lost = |problem: &str| io::Error::other(format!("{call:?}: {problem}"));
        let response = timeout(PATIENCE, connection.receive()).await;
        let response = response.map_err(|_| lost("no answer"))?;
        let response = response.map_err(|error| lost(&error.to_string()))?;
        if response.status != 200 {
            return Err(lost(&format!("status {}: {}", response.status, response.body)));
        }
        self.tally.take(name, call, &response.messages()?, began.elapsed());
        Ok(())
    }

    /// While plugins are loaded again and servers start, no list is short of a tool.
    async fn check_list(&self, connection: &mut Connection) -> io::Result<()> {
        let response = timeout(PATIENCE, connection.receive()).await;
        let response = response.map_err(|_| io::Error::other("tools/list: no answer"))??;
        let messages = response.messages()?;
        let list = messages.last().unwrap_or(&Value::Null);
        let tools = list["result"]["tools"].as_array().into_iter().flatten();
        let names: Vec<_> = tools.filter_map(|tool| tool["name"].as_str()).collect();
        for target in Target::ALL {
            if !names.contains(&target.tool()) {
                self.tally.fail("not listed", format!("{target:?}: {names:?}"));
            }
        }
        self.tally.event("lists of tools");
        Ok(())
    }
}

/// A client over standard input and output, which has several calls in flight at a time. Its server is a process of its
/// own.
pub(crate) async fn run_stdio(
    tally: &Tally,
    name: &'static str,
    is_modern: bool,
    mut server: Command,
    until: Instant,
) -> io::Result<()> {
    let server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = server.kill_on_drop(true).spawn()?;
    let mut input = server.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut output = BufReader::new(server.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).lines();
    if !is_modern {
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        input.write_all(format!("{}\n{initialized}\n", initialize()).as_bytes()).await?;
        output.next_line().await?;
    }
    while Instant::now() < until {
        let mut calls = Vec::new();
        let mut lines = String::new();
        let began = Instant::now();
        for turn in 0..IN_FLIGHT {
            let target = [Target::Component, Target::Script, Target::Spared][turn % 3];
            let number = tally.number();
            let params = target.call(number);
            let request = match is_modern {
                true => modern(number, "tools/call", params),
                false => legacy(number, "tools/call", params),
            };
            lines += &format!("{request}\n");
            calls.push((target, number));
        }
        input.write_all(lines.as_bytes()).await?;
        while !calls.is_empty() {
            let line = timeout(PATIENCE, output.next_line()).await;
            let line = line.map_err(|_| io::Error::other(format!("no answer to {calls:?}")))??;
            let line = line.ok_or(io::ErrorKind::UnexpectedEof)?;
            let message: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
            if message.get("method").is_some() {
                continue;
            }
            match calls.iter().position(|(_, number)| message["id"] == *number) {
                Some(place) => {
                    tally.take(name, calls.swap_remove(place), &[message], began.elapsed());
                }
                None => tally.fail("doubled", format!("{name}: {message}")),
            }
        }
        sleep(REST).await;
    }
    drop(input);
    let rest = async {
        while let Some(line) = output.next_line().await? {
            if !line.contains("\"method\"") {
                tally.fail("doubled", format!("{name}: {line}"));
            }
        }
        server.wait().await
    };
    let status = timeout(PATIENCE, rest).await;
    let status = status.map_err(|_| io::Error::other("the server does not end"))??;
    if !status.success() {
        tally.fail("ended badly", format!("{name}: {status}"));
    }
    Ok(())
}
