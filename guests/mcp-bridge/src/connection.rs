//! The one connection of an instance: the client, who waits for which of its operations, and the
//! task that reads what comes from the server.
//!
//! A component has one thread, so the state lies in a thread-local; it is never borrowed across a
//! point of waiting.

use futures::channel::{mpsc, oneshot};
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use mcp_client::{
    Action, AskId, AskKind, Client, EmptyLists, Features, HeaderArgument, LogLevel, OperationId,
    Outcome, Server, ServerCapabilities,
};

use crate::bindings::tenon::bridge::mcp_server::{self, ClientFeature};
use crate::bindings::tenon::plugin::log::{self, Level};
use crate::bindings::tenon::plugin::notify;
use crate::bindings::tenon::plugin::types::{Error, ErrorCode};
use crate::configuration::Configuration;
use crate::convert;
use crate::server_requests;
use crate::transport::{self, Event, RequestHead};

/// What an operation came to.
type OperationOutcome = Result<Outcome, mcp_client::Error>;

struct BridgeState {
    client: Client,
    /// How long the handshake and the first list of tools may take together, in milliseconds.
    startup: u64,
    /// When they have to be done, of the connection that there is.
    started_by: u64,
    /// Whether the server is told on whose behalf it is called.
    passthrough: bool,
    expected: BTreeMap<OperationId, OperationWaiter>,
    /// What the host is being asked for the server. Dropped, it is not asked any more.
    asking: BTreeMap<AskId, oneshot::Sender<()>>,
    /// Who waits for the connection that is being made.
    connecting: Option<Vec<ConnectionWaiter>>,
    reading: bool,
    /// The instant that the host was asked to wake us at.
    timer: Option<u64>,
    /// How many lines that were no messages the host was told of.
    skipped: u64,
    /// How each tool is called, once the tools were listed.
    tools: Option<BTreeMap<String, ToolCallOptions>>,
}

/// How a tool is called.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolCallOptions {
    /// Only as a task.
    pub(crate) task: bool,
    /// With these arguments in headers as well.
    pub(crate) mirrored: Vec<HeaderArgument>,
}

/// An operation whose end somebody waits for.
struct OperationWaiter {
    done: oneshot::Sender<OperationOutcome>,
    /// The host's call that it serves, if it serves one, for its cancellation and progress.
    call_id: Option<String>,
    /// What the server asks for meanwhile. Who waits asks the host in a task of its own, so that the host knows for
    /// which call that is.
    asks: mpsc::UnboundedSender<ServerRequest>,
}

/// Something that the server asks its client for.
struct ServerRequest {
    ask: AskId,
    kind: AskKind,
    params: String,
    /// Closed when the server does not want to know any more.
    withdrawn: oneshot::Receiver<()>,
}

/// Somebody who waits for the connection, on behalf of a call if there is one.
struct ConnectionWaiter {
    call_id: Option<String>,
    connected: oneshot::Sender<Result<ServerCapabilities, Error>>,
}

thread_local! {
    static STATE: RefCell<BridgeState> = RefCell::new(BridgeState::new());
}

impl BridgeState {
    fn new() -> Self {
        let configuration = Configuration::read();
        Self {
            client: Client::new(configuration.settings()),
            startup: configuration.startup_timeout_ms,
            started_by: 0,
            passthrough: configuration.passthrough,
            expected: BTreeMap::new(),
            asking: BTreeMap::new(),
            connecting: None,
            reading: false,
            timer: None,
            skipped: 0,
            tools: None,
        }
    }

    /// Carries out what the client wants done. What is to be written waits for [`transport::flush`].
    fn act(&mut self) {
        while let Some(action) = self.client.action() {
            match action {
                Action::Write { line, request } => {
                    transport::send(line, || self.head(request?));
                }
                Action::Abandon(request) => transport::abandon(request),
                Action::Finish(operation, result) => {
                    if let Ok(Outcome::Connected(server)) = &result {
                        transport::agreed(server);
                    }
                    if let Some(OperationWaiter { done, .. }) = self.expected.remove(&operation) {
                        // Whoever waited may have been dropped.
                        let _ = done.send(result);
                    }
                }
                Action::Restart => transport::spawn(restart()),
                Action::Disconnect(reason) => {
                    self.lost(&reason);
                    transport::spawn(transport::stop());
                }
                Action::ToolsChanged => notify::contributions_changed(),
                Action::ResourceUpdated(uri) => notify::resource_updated(&uri),
                Action::Progress { operation, progress, total, message } => {
                    if let Some(call) = self.call_of(operation) {
                        notify::progress(call, progress, total, message.as_deref());
                    }
                }
                Action::Ask { ask, kind, params, operation } => {
                    let (asking, withdrawn) = oneshot::channel();
                    self.asking.insert(ask, asking);
                    let request = ServerRequest { ask, kind, params, withdrawn };
                    let waiter = operation.and_then(|operation| self.expected.get(&operation));
                    let left = match waiter {
                        Some(waiter) => {
                            waiter.asks.unbounded_send(request).err().map(|e| e.into_inner())
                        }
                        None => Some(request),
                    };
                    // It is for no call that is known.
                    if let Some(request) = left {
                        transport::spawn(put_to_host(request));
                    }
                }
                Action::Skipped(problem) => left_out(&problem),
                Action::Withdraw(ask) => drop(self.asking.remove(&ask)),
                Action::Log { level, message, logger } => {
                    let level = match level {
                        LogLevel::Debug => Level::Debug,
                        LogLevel::Info => Level::Info,
                        LogLevel::Warn => Level::Warn,
                        LogLevel::Error => Level::Error,
                    };
                    let logger = logger.map(|logger| ("logger".to_string(), logger));
                    log::write(level, &message, logger.as_slice());
                }
            }
        }
        if self.client.noise() != self.skipped {
            self.skipped = self.client.noise();
            mcp_server::skipped(self.skipped);
        }
        if let Some(deadline) = self.client.deadline()
            && self.timer.is_none_or(|timer| deadline < timer)
        {
            self.timer = Some(deadline);
            transport::set_timer(deadline);
        }
    }

    /// What a request is about.
    fn head(&self, id: u64) -> Option<RequestHead> {
        let (method, subject) = self.client.head(id)?;
        let called = subject.filter(|_| method == "tools/call");
        let called = called.and_then(|tool| self.tools.as_ref()?.get(tool));
        let mirrored = called.map(|called| called.mirrored.clone());
        Some(RequestHead {
            id,
            method,
            subject: subject.map(Into::into),
            mirrored: mirrored.unwrap_or_default(),
        })
    }

    /// The host's call that an operation serves.
    fn call_of(&self, operation: OperationId) -> Option<&str> {
        self.expected.get(&operation)?.call_id.as_deref()
    }

    fn handle(&mut self, event: Event, now: u64) {
        match event {
            Event::Line(line) => self.client.receive(line, now),
            Event::Oversized { prefix, length } => self.client.oversized(&prefix, length),
            Event::Failed { request, error } => self.client.failed(request, error),
            Event::Lost(how) => self.lost(&how),
            Event::Ended(how) => {
                let how = with_last_words(&how, &self.client);
                self.client.failed_to_go_on(&how);
            }
            Event::Timer => {
                self.timer = None;
                self.client.tick(now);
            }
        }
    }

    fn lost(&mut self, how: &str) {
        let how = with_last_words(how, &self.client);
        self.client.lost(&how);
    }

    /// Makes a place to wait for an operation, and does what its beginning asks for.
    fn expect(
        &mut self,
        operation: OperationId,
        call_id: Option<&str>,
    ) -> (oneshot::Receiver<OperationOutcome>, mpsc::UnboundedReceiver<ServerRequest>) {
        let (done, ended) = oneshot::channel();
        let (asks, asked) = mpsc::unbounded();
        let call_id = call_id.map(Into::into);
        self.expected.insert(operation, OperationWaiter { done, call_id, asks });
        self.act();
        (ended, asked)
    }
}

fn with<R>(act: impl FnOnce(&mut BridgeState) -> R) -> R {
    STATE.with_borrow_mut(act)
}

/// Tells the client something, and does what it wants done about it.
fn tell(what: impl FnOnce(&mut BridgeState)) {
    with(|state| {
        what(state);
        state.act();
    });
    transport::flush();
}

/// Something that the server has is left out.
pub(crate) fn left_out(problem: &str) {
    log::write(Level::Warn, problem, &[]);
    mcp_server::left_out(problem);
}

/// Something that somebody has asked the server for cannot be listed. Whoever asks again is told again.
pub(crate) fn not_listed(problem: &str) {
    log::write(Level::Warn, problem, &[]);
}

/// Whether the server is told on whose behalf it is called.
pub(crate) fn passes_callers_on() -> bool {
    with(|state| state.passthrough)
}

/// When a first list of tools has to be whole. One that is asked for after the start has as long as
/// that took at most.
pub(crate) fn listed_by() -> u64 {
    let now = transport::now();
    with(|state| match state.started_by {
        past if past <= now => now.saturating_add(state.startup),
        started_by => started_by,
    })
}

/// What the host is told of a server that has not said in time what it offers.
pub(crate) fn not_started(step: &str) -> Error {
    let message = with(|state| {
        let how = format!("the server did not {step} within {} ms", state.startup);
        with_last_words(&how, &state.client)
    });
    Error::unavailable(message)
}

/// The server is gone.
#[cfg(not(feature = "http"))]
pub(crate) fn lost(how: &str) {
    tell(|state| state.lost(how));
}

/// Notes how each tool is called.
pub(crate) fn note_tools(tools: BTreeMap<String, ToolCallOptions>) {
    with(|state| state.tools = Some(tools));
}

/// Notes which lists have nothing, so that it is news when they do.
pub(crate) fn await_lists(awaited: EmptyLists) {
    let now = transport::now();
    tell(|state| state.client.await_lists(awaited, now));
}

/// Whether the tools were listed.
pub(crate) fn knows_tools() -> bool {
    with(|state| state.tools.is_some())
}

/// How a tool is called, as far as is known.
pub(crate) fn called(tool: &str) -> ToolCallOptions {
    with(|state| state.tools.as_ref()?.get(tool).cloned()).unwrap_or_default()
}

/// The server, once it was connected.
pub(crate) fn server() -> Option<Server> {
    with(|state| state.client.server().cloned())
}

/// How often somebody waits for a connection that is lost before they use it.
const MOST_CONNECTIONS: usize = 3;

/// What the server has, connected. A server that was lost is started again; who comes while that is
/// being done waits for it. It goes on when they give up.
pub(crate) async fn connected(call_id: Option<&str>) -> Result<ServerCapabilities, Error> {
    for _ in 0..MOST_CONNECTIONS {
        let capabilities = connection(call_id).await?;
        // Between the connection and those who waited for it the server may end. Nothing was sent to it.
        if with(|state| state.client.server().is_some()) {
            return Ok(capabilities);
        }
    }
    Err(Error::unavailable("the server ends as soon as it is connected"))
}

/// What the server has that is connected or that is being connected now.
async fn connection(call_id: Option<&str>) -> Result<ServerCapabilities, Error> {
    let waiting = with(|state| {
        if let Some(server) = state.client.server() {
            return Err(server.capabilities);
        }
        if state.connecting.is_none() {
            transport::spawn(async {
                let result = connect().await;
                for waiting in with(|state| state.connecting.take()).into_iter().flatten() {
                    let _ = waiting.connected.send(result.clone());
                }
                // Ending the server may take its time, which nobody waits for.
                if result.is_err() {
                    transport::stop().await;
                }
            });
        }
        let (connected, made) = oneshot::channel();
        let waiting = ConnectionWaiter { call_id: call_id.map(Into::into), connected };
        state.connecting.get_or_insert_default().push(waiting);
        Ok(made)
    });
    match waiting {
        Err(capabilities) => Ok(capabilities),
        Ok(made) => made.await.unwrap_or_else(|_| Err(Error::cancelled(CANCELLED))),
    }
}

/// What a call is told that was given up.
const CANCELLED: &str = "the call was cancelled while the server was being started";

async fn start() -> Result<(), Error> {
    with(|state| state.client.starting());
    let started = transport::start().await;
    if started.is_err() {
        with(|state| state.client.not_started());
    }
    started
}

async fn connect() -> Result<ServerCapabilities, Error> {
    start().await?;
    if !with(|state| std::mem::replace(&mut state.reading, true)) {
        transport::spawn(read());
    }
    let startup = with(|state| {
        state.started_by = transport::now().saturating_add(state.startup);
        state.startup
    });
    let result = run(None, |client, now| client.connect(now, startup)).await;
    match result {
        Ok(Outcome::Connected(server)) => {
            mcp_server::connected(&server.revision);
            Ok(server.capabilities)
        }
        Ok(Outcome::Items(_) | Outcome::Result(_)) => {
            Err(Error::failed("the answer is not one to a handshake"))
        }
        Err(error) => Err(match error {
            mcp_client::Error::Timeout => not_started("answer the handshake"),
            // It has them already. Nothing was asked of the server.
            mcp_client::Error::Lost(_) => Error { data: None, ..convert::error(error) },
            _ => {
                // What it wrote may still be on its way, until it has ended.
                transport::stop().await;
                let error = convert::error(error);
                let message = with(|state| with_last_words(&error.message, &state.client));
                Error { message, ..error }
            }
        }),
    }
}

/// What has become of a server, with what it wrote to its standard error last, and to its standard
/// output besides messages before it was connected.
fn with_last_words(how: &str, client: &Client) -> String {
    let mut words = transport::last_words();
    words.extend(client.words().map(str::to_string));
    match words.is_empty() {
        true => how.to_string(),
        false => format!("{how}; its last words:\n{}", words.join("\n")),
    }
}

/// Starts a server again that ended at the first word of the handshake.
async fn restart() {
    match start().await {
        Ok(()) => {
            let now = transport::now();
            tell(|state| state.client.restarted(now));
        }
        Err(error) => tell(|state| state.client.lost(&error.message)),
    }
}

/// Asks the host what the server asks, until the server does not want to know any more.
async fn put_to_host(request: ServerRequest) {
    let ServerRequest { ask, kind, params, withdrawn } = request;
    let answer = server_requests::answer(kind, &params);
    let Either::Left((answer, _)) = select(pin!(answer), withdrawn).await else { return };
    let now = transport::now();
    tell(|state| {
        state.asking.remove(&ask);
        // The protocol's code for what the user does not want is -1.
        let answer = answer.map_err(|error| match error.code {
            ErrorCode::Denied => (-1, error.message),
            _ => (-32603, error.message),
        });
        state.client.answer(ask, answer, now);
    });
}

/// What the client of the call can be asked for that this task works on.
pub(crate) fn client_features() -> Features {
    let offered = mcp_server::client_features();
    let has = |feature| offered.contains(feature);
    Features {
        forms: has(ClientFeature::FORMS),
        pages: has(ClientFeature::PAGES),
        sampling: has(ClientFeature::SAMPLING),
        roots: has(ClientFeature::ROOTS),
    }
}

/// Runs an operation to its end, on behalf of a call of the host if there is one.
pub(crate) async fn run(
    call_id: Option<&str>,
    begin: impl FnOnce(&mut Client, u64) -> OperationId,
) -> OperationOutcome {
    let now = transport::now();
    let (mut ended, mut asked) = with(|state| {
        let operation = begin(&mut state.client, now);
        state.expect(operation, call_id)
    });
    transport::flush();
    let mut asking = FuturesUnordered::new();
    poll_fn(|context| {
        loop {
            if let Poll::Ready(ended) = ended.poll_unpin(context) {
                let lost = mcp_client::Error::Lost("the connection was given up".into());
                return Poll::Ready(ended.unwrap_or(Err(lost)));
            }
            if let Poll::Ready(Some(request)) = asked.poll_next_unpin(context) {
                asking.push(put_to_host(request));
            } else if !matches!(asking.poll_next_unpin(context), Poll::Ready(Some(()))) {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Cancels what serves a call, if it is still going on.
pub(crate) fn cancel(call_id: &str) {
    tell(|state| {
        if let Some(waiting) = &mut state.connecting {
            // Dropping it answers.
            waiting.retain(|waiting| waiting.call_id.as_deref() != Some(call_id));
        }
        let mut expected = state.expected.iter();
        let serves = |(_, expected): &(&OperationId, &OperationWaiter)| {
            expected.call_id.as_deref() == Some(call_id)
        };
        if let Some((operation, _)) = expected.find(serves) {
            state.client.cancel(*operation);
        }
    });
}

/// Reads what comes from the server, for as long as the instance lives.
async fn read() {
    loop {
        let events = transport::next_events().await;
        let now = transport::now();
        tell(|state| {
            for event in events {
                state.handle(event, now);
            }
        });
    }
}
