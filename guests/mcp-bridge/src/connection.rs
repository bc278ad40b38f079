//! The one connection of an instance: the client, who waits for which of its operations, and the
//! task that reads what the child writes.
//!
//! A component has one thread, so the state lies in a thread-local; it is never borrowed across a
//! point of waiting.

use futures::channel::oneshot;
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use mcp_client::{Action, Client, LogLevel, OperationId, Outcome, Request, Server, Settings};

use crate::bindings::tenon::plugin::log::{self, Level};
use crate::bindings::tenon::plugin::stdio_child::{self, Event, ExitStatus};
use crate::bindings::tenon::plugin::types::{Error, Unavailability};
use crate::bindings::tenon::plugin::{config, notify};
use crate::convert;

/// What an operation came to.
type Ended = Result<Outcome, mcp_client::Error>;

struct State {
    client: Client,
    /// How long the handshake may take, in milliseconds.
    startup: u64,
    /// Whether the server is told on whose behalf it is called.
    passthrough: bool,
    waiting: BTreeMap<OperationId, oneshot::Sender<Ended>>,
    /// The operations of the host's calls, for their cancellation and progress.
    calls: BTreeMap<String, OperationId>,
    /// Who waits for the connection that is being made.
    connecting: Option<Vec<Waiting>>,
    outbox: VecDeque<Vec<u8>>,
    /// Somebody is writing the outbox out.
    writing: bool,
    reading: bool,
    /// The instant that the host was asked to wake us at.
    timer: Option<u64>,
}

/// Somebody who waits for the connection, on behalf of a call if there is one.
struct Waiting {
    call_id: Option<String>,
    connected: oneshot::Sender<Result<Server, Error>>,
}

/// What the host tells a bridge.
#[derive(Deserialize)]
#[serde(default)]
struct Configuration {
    startup_timeout_ms: u64,
    request_timeout_ms: u64,
    passthrough: bool,
}

impl Default for Configuration {
    fn default() -> Self {
        Self { startup_timeout_ms: 10_000, request_timeout_ms: 30_000, passthrough: false }
    }
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State::new());
}

impl State {
    fn new() -> Self {
        let configuration: Configuration = serde_json::from_str(&config::all()).unwrap_or_default();
        let settings = Settings {
            name: "tenon".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            timeout: configuration.request_timeout_ms,
        };
        Self {
            client: Client::new(settings),
            startup: configuration.startup_timeout_ms,
            passthrough: configuration.passthrough,
            waiting: BTreeMap::new(),
            calls: BTreeMap::new(),
            connecting: None,
            outbox: VecDeque::new(),
            writing: false,
            reading: false,
            timer: None,
        }
    }

    /// Carries out what the client wants done. What is to be written waits in the outbox.
    fn act(&mut self) {
        while let Some(action) = self.client.action() {
            match action {
                Action::Write(line) => self.outbox.push_back(line),
                Action::Finish(operation, result) => {
                    if let Some(waiting) = self.waiting.remove(&operation) {
                        // Whoever waited may have been dropped.
                        let _ = waiting.send(result);
                    }
                }
                Action::ToolsChanged => notify::changed(),
                Action::Progress { operation, progress, total, message } => {
                    let call = self.calls.iter().find(|(_, of_call)| **of_call == operation);
                    if let Some((call, _)) = call {
                        notify::progress(call, progress, total, message.as_deref());
                    }
                }
                Action::Log { level, message } => {
                    let level = match level {
                        LogLevel::Debug => Level::Debug,
                        LogLevel::Info => Level::Info,
                        LogLevel::Warn => Level::Warn,
                        LogLevel::Error => Level::Error,
                    };
                    log::write(level, &message, &[]);
                }
            }
        }
        if let Some(deadline) = self.client.deadline()
            && self.timer.is_none_or(|timer| deadline < timer)
        {
            self.timer = Some(deadline);
            stdio_child::set_timer(deadline);
        }
    }

    fn handle(&mut self, event: Event, now: u64) {
        match event {
            Event::Line(line) => self.client.receive(line, now),
            Event::Oversized(line) => self.client.oversized(&line.prefix, line.length),
            Event::Closed => self.lost("the server closed its output"),
            Event::Exited(status) => self.lost(&describe(status)),
            Event::Timer => {
                self.timer = None;
                self.client.tick(now);
            }
        }
    }

    fn lost(&mut self, how: &str) {
        let tail = stdio_child::stderr_tail();
        let reason = match tail.is_empty() {
            true => how.to_string(),
            false => format!("{how}; its last words:\n{}", tail.join("\n")),
        };
        self.outbox.clear();
        self.client.lost(&reason);
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code, status.signal) {
        (Some(code), _) => format!("the server exited with code {code}"),
        (None, Some(signal)) => format!("the server was ended by signal {signal}"),
        (None, None) => "the server ended".into(),
    }
}

fn with<R>(act: impl FnOnce(&mut State) -> R) -> R {
    STATE.with_borrow_mut(act)
}

/// Whether the server is told on whose behalf it is called.
pub(crate) fn passes_callers_on() -> bool {
    with(|state| state.passthrough)
}

/// The server, connected. A server that was lost is started again; who comes while that is being
/// done waits for it. It goes on when they give up.
pub(crate) async fn connected(call_id: Option<&str>) -> Result<Server, Error> {
    let waiting = with(|state| {
        if let Some(server) = state.client.server() {
            return Err(server.clone());
        }
        if state.connecting.is_none() {
            wit_bindgen::spawn_local(async {
                let result = connect().await;
                for waiting in with(|state| state.connecting.take()).into_iter().flatten() {
                    let _ = waiting.connected.send(result.clone());
                }
                // Ending the server may take its time, which nobody waits for.
                if result.is_err() {
                    stdio_child::stop().await;
                }
            });
        }
        let (connected, made) = oneshot::channel();
        let waiting = Waiting { call_id: call_id.map(Into::into), connected };
        state.connecting.get_or_insert_default().push(waiting);
        Ok(made)
    });
    match waiting {
        Err(server) => Ok(server),
        Ok(made) => made.await.unwrap_or_else(|_| Err(Error::Cancelled(CANCELLED.into()))),
    }
}

/// What a call is told that was given up.
const CANCELLED: &str = "the call was cancelled while the server was being started";

async fn connect() -> Result<Server, Error> {
    stdio_child::start().await?;
    if !with(|state| std::mem::replace(&mut state.reading, true)) {
        wit_bindgen::spawn_local(read());
    }
    let startup = with(|state| state.startup);
    let result = run(|client, now| client.connect(now, startup)).await;
    match result {
        Ok(Outcome::Connected(server)) => Ok(server),
        Ok(Outcome::Items(_) | Outcome::Result(_)) => {
            Err(Error::Failed("the answer is not one to a handshake".into()))
        }
        Err(error) => Err(match (error, stdio_child::stderr_tail()) {
            (mcp_client::Error::Timeout, tail) => Error::Unavailable(Unavailability {
                message: format!(
                    "the server did not answer the handshake within {startup} ms; its last words: {}",
                    if tail.is_empty() { "none".into() } else { format!("\n{}", tail.join("\n")) }
                ),
                retry_after: None,
            }),
            (error, _) => convert::error(error),
        }),
    }
}

/// Runs an operation to its end.
pub(crate) async fn run(begin: impl FnOnce(&mut Client, u64) -> OperationId) -> Ended {
    let now = stdio_child::now();
    let ended = with(|state| {
        let operation = begin(&mut state.client, now);
        state.expect(operation)
    });
    finish(ended).await
}

/// Runs a request that serves a call of the host.
pub(crate) async fn run_call(call_id: &str, request: Request<'_>) -> Ended {
    let now = stdio_child::now();
    let ended = with(|state| {
        let operation = state.client.request(request, now);
        state.calls.insert(call_id.to_string(), operation);
        state.expect(operation)
    });
    let result = finish(ended).await;
    with(|state| state.calls.remove(call_id));
    result
}

/// Cancels what serves a call, if it is still going on.
pub(crate) fn cancel(call_id: &str) {
    let write = with(|state| {
        if let Some(waiting) = &mut state.connecting {
            // Dropping it answers.
            waiting.retain(|waiting| waiting.call_id.as_deref() != Some(call_id));
        }
        if let Some(operation) = state.calls.get(call_id).copied() {
            state.client.cancel(operation);
            state.act();
        }
        !state.outbox.is_empty()
    });
    if write {
        wit_bindgen::spawn_local(write_out());
    }
}

impl State {
    /// Makes a place to wait for an operation, and does what its beginning asks for.
    fn expect(&mut self, operation: OperationId) -> oneshot::Receiver<Ended> {
        let (done, ended) = oneshot::channel();
        self.waiting.insert(operation, done);
        self.act();
        ended
    }
}

async fn finish(ended: oneshot::Receiver<Ended>) -> Ended {
    // Not here: a caller must not wait for what others write.
    wit_bindgen::spawn_local(write_out());
    match ended.await {
        Ok(result) => result,
        Err(_) => Err(mcp_client::Error::Lost("the connection was given up".into())),
    }
}

/// Writes what waits in the outbox, in order. One task at a time does it for all.
async fn write_out() {
    if with(|state| std::mem::replace(&mut state.writing, true)) {
        return;
    }
    while let Some(line) = with(|state| state.outbox.pop_front()) {
        if let Err(error) = stdio_child::write_line(line).await {
            with(|state| {
                state.lost(&convert::message(&error));
                state.act();
            });
        }
    }
    with(|state| state.writing = false);
}

/// Reads what happens to the child, for as long as the instance lives. It never waits for a write:
/// a server that does not read must not keep us from reading.
async fn read() {
    loop {
        let events = stdio_child::next_events().await;
        let now = stdio_child::now();
        let write = with(|state| {
            for event in events {
                state.handle(event, now);
            }
            state.act();
            !state.outbox.is_empty() && !state.writing
        });
        if write {
            wit_bindgen::spawn_local(write_out());
        }
    }
}
