//! The state machine.

mod connect;
mod legacy_task;
mod listing;
mod modern_task;
mod notifications;
mod outgoing;
mod server_requests;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::message::{Answer, Incoming, JsonSlice, OversizedMessage, RpcError, beginning, read};
use crate::raw_json::{Json, Members};
use crate::settings::{CLIENT_CAPABILITIES, Era, Features, Settings};
use crate::{Server, ServerCapabilities};
use connect::Handshake;
use listing::PartialList;
use modern_task::PolledTask;
use notifications::Subscriptions;
use server_requests::{PendingServerRequest, RetryWithInput, Round};

/// Something that was asked of the server, from the asking to the outcome. It may take several
/// requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(u64);

/// Something that the server asks of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(u64);

/// What the driver is to do.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Write this line to the server. What expects an answer has a number, by which
    /// [`Client::head`] tells more about it.
    Write { line: Vec<u8>, request: Option<u64> },
    /// Nobody waits for the answer to this request any more.
    Abandon(u64),
    /// An operation is over.
    Finish(OperationId, Result<Outcome, Error>),
    /// Start the server again, which ended before it was connected, and say
    /// [`Client::restarted`].
    Restart,
    /// The server does not answer any more: end it, and say [`Client::lost`].
    Disconnect(String),
    /// The server's tools are other ones now.
    ToolsChanged,
    /// A resource that was subscribed to is another one now.
    ResourceUpdated(String),
    /// An operation has come so far.
    Progress { operation: OperationId, progress: f64, total: Option<f64>, message: Option<String> },
    /// The server asks for something: `params` is what it says, as JSON. To be answered with
    /// [`Client::answer`]. The operation is the one it is for, where that is known.
    Ask { ask: AskId, kind: AskKind, params: String, operation: Option<OperationId> },
    /// The answer to something that was asked is not wanted any more.
    Withdraw(AskId),
    /// Something that the server has is left out, and why.
    Skipped(String),
    /// Something for the log: the server's words, with the part of it that they are of where it says one;
    /// or what is wrong with it.
    Log { level: LogLevel, message: String, logger: Option<String> },
}

/// What a server can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskKind {
    /// Input of the user: `elicitation/create`.
    Elicitation,
    /// A model's answer: `sampling/createMessage`.
    Sampling,
    /// The client's roots: `roots/list`.
    Roots,
}

/// How much a log message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

/// What an operation gives.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The server is ready.
    Connected(Server),
    /// All items of a listing, each as it came.
    Items(Vec<String>),
    /// The result of a request, as it came.
    Result(JsonSlice),
}

/// Why an operation gives nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// The server answered with an error.
    Rpc { code: i64, message: String, data: Option<String> },
    /// The server did not answer in time.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// The server is gone, or was never there.
    Lost(String),
    /// It cannot be reached now, or is busy. It may say after how many milliseconds to try again.
    Unavailable { message: String, retry_after: Option<u64> },
    /// The server's answer breaks the protocol.
    Protocol(String),
    /// The server needs something of the client that it does not get.
    Needs(String),
    /// The server does not declare that it can do this.
    Undeclared(String),
}

/// A request that has one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    pub method: &'static str,
    pub params: Members,
    /// What `_meta` is to say besides what the client says of itself.
    pub meta: Members,
    /// What the request is about: the name of a tool or a prompt, the URI of a resource.
    pub subject: Option<&'a str>,
    /// How long it may take, in milliseconds.
    pub timeout: Option<u64>,
    /// Whether to ask the server to tell how far it has come.
    pub progress: bool,
    /// Whether the server does it as a task, which it is asked about later.
    pub task: bool,
    /// What the server may ask for meanwhile, of those that are in the settings. Only servers of the newer era are told
    /// with each request.
    pub features: Option<Features>,
}

/// The state machine; see the crate.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    state: ConnectionState,
    /// The instant of what happens just now.
    now: u64,
    operations: u64,
    /// The ids of requests are never used twice, over all connections.
    ids: u64,
    in_flight: BTreeMap<u64, InFlight>,
    /// None of them has an earlier deadline. It may be one that was answered.
    earliest: u64,
    /// When to ask about tasks, and the numbers under which they wait for it.
    polls: BTreeSet<(u64, u64)>,
    actions: VecDeque<Action>,
    /// What every request of the newer era says of the client.
    modern_meta: Members,
    /// What such a request declares that says nothing else.
    modern_capabilities: Members,
    /// What the server asked and was not answered.
    asked: BTreeMap<AskId, PendingServerRequest>,
    asks: u64,
    /// Since when there is any of that: meanwhile no request runs out of time.
    asking_since: Option<u64>,
    /// When to say that the tools are others.
    tools_changed: Option<u64>,
    /// The lists that had nothing, and are news once they have something.
    awaited: EmptyLists,
    subscriptions: Subscriptions,
    /// When the server was last heard, on this connection.
    heard: u64,
    /// It is being started, and not yet spoken to.
    starting: bool,
    /// It ended meanwhile: why, and whether it would do so again.
    early_end: Option<EarlyServerExit>,
    /// Lines that were no messages, on this connection.
    noise: u64,
    /// The last of them that came before the handshake was over.
    words: VecDeque<String>,
}

/// How a server ended before it was spoken to.
#[derive(Debug)]
struct EarlyServerExit {
    reason: String,
    for_good: bool,
}

/// Lists that had nothing when they were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmptyLists {
    /// That of resources.
    pub resources: bool,
    /// That of prompts.
    pub prompts: bool,
}

/// How many lines that are no messages are kept, and how much of each, in bytes.
const MAX_NOISE_LINES: usize = 8;
const MAX_NOISE_LINE_BYTES: usize = 512;

#[derive(Debug, Clone, PartialEq)]
enum ConnectionState {
    Disconnected,
    Connecting(Handshake),
    Connected(Server),
}

/// A request whose answer is awaited.
#[derive(Debug)]
struct InFlight {
    operation: OperationId,
    /// [`NEVER`] for one that is open for as long as the connection.
    deadline: u64,
    method: &'static str,
    subject: Option<String>,
    /// When its progress was last passed on.
    progressed: Option<u64>,
    purpose: Purpose,
}

/// The deadline of what has none.
const NEVER: u64 = u64::MAX;

#[derive(Debug)]
enum Purpose {
    Initialize,
    Discover,
    List(PartialList),
    /// A request of the driver's, and what it takes to send it again where a server may answer that
    /// it needs something first.
    Plain(Option<Box<ResendParams>>),
    /// The server was asked to begin a task.
    BeginTask,
    /// The server was asked for the result of a task.
    TaskResult {
        task: String,
    },
    /// Was answered: the server needs something first.
    Asking(Box<Round>),
    /// Was answered: there is a task, which is asked about in a while.
    Task(Box<PolledTask>),
    /// The server was asked how a task stands.
    TaskStatus(Box<PolledTask>),
    /// The stream of what the server tells by itself, in the newer era.
    Listen,
    Ping,
    /// Nobody waits for the answer.
    Aside,
}

/// What it takes to send a request again.
#[derive(Debug, Clone)]
struct ResendParams {
    params: Members,
    meta: Members,
    progress: bool,
    /// How often it was sent again.
    rounds: u32,
}

impl Client {
    pub fn new(settings: Settings) -> Self {
        Self {
            modern_meta: settings.modern_meta(),
            modern_capabilities: Members::new()
                .with(CLIENT_CAPABILITIES, settings.modern_capabilities(settings.features)),
            settings,
            state: ConnectionState::Disconnected,
            now: 0,
            operations: 0,
            ids: 0,
            in_flight: BTreeMap::new(),
            earliest: NEVER,
            polls: BTreeSet::new(),
            actions: VecDeque::new(),
            asked: BTreeMap::new(),
            asks: 0,
            asking_since: None,
            tools_changed: None,
            awaited: EmptyLists::default(),
            subscriptions: Subscriptions::default(),
            heard: 0,
            starting: false,
            early_end: None,
            noise: 0,
            words: VecDeque::new(),
        }
    }

    /// The server, once it is ready.
    pub fn server(&self) -> Option<&Server> {
        match &self.state {
            ConnectionState::Connected(server) => Some(server),
            ConnectionState::Disconnected | ConnectionState::Connecting(_) => None,
        }
    }

    /// The next thing to do.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Client::tick`] is due, at the latest.
    pub fn deadline(&self) -> Option<u64> {
        let poll = self.polls.first().map(|(due, _)| *due);
        let rest = [self.tools_changed, self.ping_due(), self.subscriptions.due(), poll];
        let earliest = self.asking_since.is_none().then_some(self.earliest);
        rest.into_iter().flatten().chain(earliest).filter(|due| *due != NEVER).min()
    }

    /// How many lines of the server were no messages, since it was started.
    pub fn noise(&self) -> u64 {
        self.noise
    }

    /// The last lines of a server that were no messages, while it is being connected: what it says
    /// there may be why that fails.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }

    /// The method of a request that is in flight, and what it is about.
    pub fn head(&self, request: u64) -> Option<(&'static str, Option<&str>)> {
        self.in_flight.get(&request).map(|request| (request.method, request.subject.as_deref()))
    }

    /// Sends a request.
    pub fn request(&mut self, request: Request<'_>, now: u64) -> OperationId {
        self.now = now;
        let operation = self.operation();
        let Request { method, mut params, mut meta, subject, timeout, progress, task, features } =
            request;
        let era = match &self.state {
            ConnectionState::Connected(server) => server.era,
            ConnectionState::Disconnected | ConnectionState::Connecting(_) => {
                self.finish(operation, Err(Error::Lost("the server is not connected".into())));
                return operation;
            }
        };
        if let (Era::Modern, Some(features)) = (era, features) {
            let declared = self.settings.modern_capabilities(features);
            meta.push(CLIENT_CAPABILITIES, Json::from(&declared));
        }
        let deadline = now.saturating_add(timeout.unwrap_or(self.settings.timeout));
        let purpose = match era {
            Era::Legacy if task => Purpose::BeginTask,
            // The others are never answered so.
            Era::Modern if matches!(method, "tools/call" | "prompts/get" | "resources/read") => {
                let (params, meta) = (params.clone(), meta.clone());
                Purpose::Plain(Some(Box::new(ResendParams { params, meta, progress, rounds: 0 })))
            }
            Era::Legacy | Era::Modern => Purpose::Plain(None),
        };
        if let Purpose::BeginTask = purpose {
            params.push("task", Json::from(&json!({})));
        }
        self.send_request(operation, method, &params, &meta, progress, deadline, purpose);
        self.name_last(subject.map(Into::into));
        operation
    }

    /// Gives an operation up and tells the server so. An operation that is over is not touched.
    pub fn cancel(&mut self, operation: OperationId) {
        let found = self.in_flight.iter().find(|(_, request)| request.operation == operation);
        match found {
            Some((id, _)) => drop(self.give_up(*id, "the caller gave up")),
            // One whose server is being started again waits for no answer.
            None if self.is_connecting(operation) => {}
            None => return,
        }
        if self.is_connecting(operation) {
            self.state = ConnectionState::Disconnected;
        }
        self.finish(operation, Err(Error::Cancelled));
    }

    /// Takes in a line of the server.
    pub fn receive(&mut self, line: Vec<u8>, now: u64) {
        self.now = now;
        self.heard = now;
        let connecting = self.starting || matches!(self.state, ConnectionState::Connecting(_));
        let beginning = connecting.then(|| line[..line.len().min(MAX_NOISE_LINE_BYTES)].to_vec());
        match read(line) {
            Ok(messages) => {
                for message in messages {
                    self.handle(message);
                }
            }
            Err(_) => {
                self.noise += 1;
                let words =
                    beginning.map(|words| String::from_utf8_lossy(&words).trim().to_string());
                if let Some(words) = words.filter(|words| !words.is_empty()) {
                    if self.words.len() == MAX_NOISE_LINES {
                        self.words.pop_front();
                    }
                    self.words.push_back(words);
                }
                if self.noise == 1 {
                    self.log(LogLevel::Warn, "the server writes lines that are no messages");
                }
            }
        }
    }

    /// Takes in what is left of a line that was too long. It costs the request that it answers.
    pub fn oversized(&mut self, prefix: &[u8], length: u64) {
        let problem = format!(
            "a message of {length} bytes from the server is longer than the limit; \
                 `max_message` under [supervision] is what is allowed"
        );
        let id = match beginning(prefix) {
            OversizedMessage::Answer(id) => {
                id.filter(|id| self.in_flight.contains_key(id)).or_else(|| self.only_request())
            }
            OversizedMessage::Other => None,
        };
        match id {
            Some(id) => self.failed(id, Error::Protocol(problem)),
            None => self.log(LogLevel::Warn, problem),
        }
    }

    /// Learns that a request will have no answer, though the connection is there.
    pub fn failed(&mut self, request: u64, error: Error) {
        if let Some(request) = self.forget(request) {
            self.conclude(request, Err(error));
        }
    }

    /// Learns that the server has ended and says that it failed. It is not started again for the other
    /// era, unless its words say that the era was the reason: what it lacks, it would lack again.
    pub fn failed_to_go_on(&mut self, reason: &str) {
        if self.ends_early(reason, true) {
            return;
        }
        self.ended_for_good(reason);
        self.lost(reason);
    }

    /// Learns that the server is gone. Nothing is sent again: its caller decides.
    pub fn lost(&mut self, reason: &str) {
        if self.ends_early(reason, false) {
            return;
        }
        // What it said and asked is over with it, also where it is started again at once.
        self.tools_changed = None;
        for ask in std::mem::take(&mut self.asked).into_keys() {
            self.actions.push_back(Action::Withdraw(ask));
        }
        self.asking_since = None;
        self.earliest = NEVER;
        self.polls.clear();
        if self.begin_again(reason) {
            return;
        }
        self.subscriptions.lost();
        let in_flight = std::mem::take(&mut self.in_flight);
        if matches!(self.state, ConnectionState::Connecting(_)) {
            return self.lost_in_handshake(reason);
        }
        self.state = ConnectionState::Disconnected;
        for request in in_flight.into_values() {
            if !request.purpose.is_own() {
                self.finish(request.operation, Err(Error::Lost(reason.to_string())));
            }
        }
    }

    /// Learns what time it is, and gives up what is overdue.
    pub fn tick(&mut self, now: u64) {
        self.now = now;
        while self.asking_since.is_none() && self.earliest <= now {
            self.give_up_overdue();
        }
        if self.tools_changed.is_some_and(|due| due <= now) {
            self.tools_changed = None;
            self.actions.push_back(Action::ToolsChanged);
        }
        if self.ping_due().is_some_and(|due| due <= now) {
            self.ping();
        }
        self.poll();
        self.listen_again();
    }

    /// Gives up the requests whose time is over, and looks when the next one's is.
    fn give_up_overdue(&mut self) {
        let overdue = self.in_flight.iter().filter(|(_, request)| request.deadline <= self.now);
        let mut overdue: Vec<_> = overdue.map(|(id, request)| (request.deadline, *id)).collect();
        overdue.sort_unstable();
        for (_, id) in overdue {
            if let Some(request) = self.give_up(id, "it took too long") {
                self.conclude(request, Err(Error::Timeout));
            }
        }
        self.look_when_the_next_is_due();
    }

    fn look_when_the_next_is_due(&mut self) {
        let deadlines = self.in_flight.values().map(|request| request.deadline);
        self.earliest = deadlines.min().unwrap_or(NEVER);
    }

    fn operation(&mut self) -> OperationId {
        self.operations += 1;
        OperationId(self.operations)
    }

    fn finish(&mut self, operation: OperationId, result: Result<Outcome, Error>) {
        self.actions.push_back(Action::Finish(operation, result));
    }

    fn log(&mut self, level: LogLevel, message: impl Into<String>) {
        self.actions.push_back(Action::Log { level, message: message.into(), logger: None });
    }

    fn wait_for(&mut self, id: u64, request: InFlight) {
        self.earliest = self.earliest.min(request.deadline);
        self.in_flight.insert(id, request);
    }

    fn forget(&mut self, id: u64) -> Option<InFlight> {
        let request = self.in_flight.remove(&id)?;
        if self.in_flight.is_empty() {
            self.earliest = NEVER;
        }
        if matches!(request.purpose, Purpose::Task(_)) {
            self.polls.retain(|(_, of)| *of != id);
        }
        Some(request)
    }

    /// The request in flight, if it is the only one: what cannot be attributed otherwise is its.
    fn only_request(&self) -> Option<u64> {
        let mut ids = self.in_flight.iter().filter(|(_, request)| !request.purpose.is_own());
        let (id, _) = ids.next()?;
        ids.next().is_none().then_some(*id)
    }

    /// Does without the answer to a request, and tells the server so.
    fn give_up(&mut self, id: u64, reason: &str) -> Option<InFlight> {
        let request = self.forget(id)?;
        match &request.purpose {
            // A handshake is not cancelled, and what was answered cannot be.
            Purpose::Initialize | Purpose::Discover => {}
            Purpose::Asking(_) => self.withdraw(id),
            // The result of a task is not the task, and neither is how it stands.
            Purpose::TaskResult { task } => {
                let task = task.clone();
                self.cancel_task(&task);
            }
            Purpose::Task(polled) | Purpose::TaskStatus(polled) => {
                let task = polled.task.clone();
                self.forget_asks_of(&task);
                self.cancel_task(&task);
            }
            _ => self.cancelled(id, reason),
        }
        self.actions.push_back(Action::Abandon(id));
        Some(request)
    }

    /// Whether the server is ready and has something. If it has not, the listing is empty.
    fn require(&mut self, operation: OperationId, has: fn(&ServerCapabilities) -> bool) -> bool {
        let result = match self.server() {
            Some(server) if has(&server.capabilities) => return true,
            Some(_) => Ok(Outcome::Items(Vec::new())),
            None => Err(Error::Lost("the server is not connected".into())),
        };
        self.finish(operation, result);
        false
    }

    fn handle(&mut self, message: Incoming) {
        match message {
            Incoming::Response { id, answer } => self.answered(id, answer),
            Incoming::Request { id, method, params } => {
                self.asked(id, &method, params.as_deref().unwrap_or("{}"));
            }
            Incoming::Notification { method, params } => {
                self.notified(&method, params.as_deref().unwrap_or("{}"));
            }
        }
    }

    fn answered(&mut self, id: Option<u64>, answer: Answer) {
        // An error without a usable id can only mean the one request there is.
        let id = match (&answer, id) {
            (_, Some(id)) => Some(id),
            (Answer::Error(_), None) => self.only_request(),
            (Answer::Result(_) | Answer::Invalid(_), None) => None,
        };
        let waits =
            |request: &InFlight| !matches!(request.purpose, Purpose::Asking(_) | Purpose::Task(_));
        let id = id.filter(|id| self.in_flight.get(id).is_some_and(waits));
        let Some(request) = id.and_then(|id| self.forget(id)) else {
            let problem = "the server answered what was not asked, or twice, or too late";
            return self.log(LogLevel::Debug, problem);
        };
        let result = match answer {
            Answer::Result(payload) => Ok(payload),
            Answer::Error(error) => Err(rpc_error(error)),
            Answer::Invalid(problem) => {
                Err(Error::Protocol(format!("the server's answer is invalid: {problem}")))
            }
        };
        self.conclude(request, result);
    }

    /// Goes on from what came of a request.
    fn conclude(&mut self, request: InFlight, result: Result<JsonSlice, Error>) {
        let InFlight { operation, deadline, method, subject, purpose, .. } = request;
        let result = match self.era() {
            Some(Era::Modern) => result.and_then(complete),
            Some(Era::Legacy) | None => result.map(ResultType::Whole),
        };
        let result = match result {
            Ok(ResultType::Whole(payload)) => Ok(payload),
            Ok(ResultType::NeedsInput(payload)) => match purpose {
                Purpose::Plain(Some(resend)) => {
                    let again =
                        RetryWithInput { operation, deadline, method, subject, resend: *resend };
                    return self.needs_input(again, &payload);
                }
                _ => Err(Error::Protocol(format!("the server asks for input to {method}"))),
            },
            Ok(ResultType::Task(payload)) => match (method, &purpose) {
                ("tools/call", Purpose::Plain(_)) => {
                    return self.task_made(operation, deadline, &payload);
                }
                _ => Err(Error::Protocol(format!("the server makes a task of {method}"))),
            },
            Err(error) => Err(error),
        };
        match purpose {
            Purpose::Plain(_) => {
                if result.is_ok() && self.era() == Some(Era::Legacy) {
                    self.subscribed(method, subject.as_deref());
                }
                self.finish(operation, result.map(Outcome::Result));
            }
            Purpose::Initialize => self.initialized(result),
            Purpose::Discover => self.discovered(result),
            Purpose::List(listing) => self.listed(operation, listing, result),
            Purpose::BeginTask => self.task_begun(operation, deadline, result),
            Purpose::TaskResult { .. } => self.finish(operation, result.map(Outcome::Result)),
            // Its deadline has come.
            Purpose::Asking(_) | Purpose::Task(_) => {
                self.finish(operation, result.map(Outcome::Result));
            }
            Purpose::TaskStatus(polled) => self.task_told(operation, deadline, *polled, result),
            Purpose::Listen => self.listening_ended(result.err()),
            Purpose::Ping => self.pinged(result.err()),
            Purpose::Aside => {}
        }
    }

    /// The era of the connection, also of one that is being made.
    fn era(&self) -> Option<Era> {
        match &self.state {
            ConnectionState::Connected(server) => Some(server.era),
            ConnectionState::Connecting(_) | ConnectionState::Disconnected => None,
        }
    }
}

impl Purpose {
    /// Whether the client sent the request for itself: no operation ends with it.
    fn is_own(&self) -> bool {
        matches!(self, Self::Listen | Self::Ping | Self::Aside)
    }
}

/// What a result of the newer era is.
enum ResultType {
    Whole(JsonSlice),
    NeedsInput(JsonSlice),
    Task(JsonSlice),
}

/// Reads what kind of result it is.
fn complete(payload: JsonSlice) -> Result<ResultType, Error> {
    #[derive(Deserialize)]
    struct ResultTypeField<'a> {
        #[serde(borrow, default, rename = "resultType")]
        kind: Option<&'a RawValue>,
    }
    let typed = serde_json::from_str::<ResultTypeField<'_>>(payload.get());
    // What is no object at all is for its reader to refuse.
    let typed = typed.ok().filter(|_| payload.get().starts_with('{'));
    match typed.and_then(|typed| typed.kind).map(RawValue::get) {
        None | Some(r#""complete""#) => Ok(ResultType::Whole(payload)),
        Some(r#""input_required""#) => Ok(ResultType::NeedsInput(payload)),
        Some(r#""task""#) => Ok(ResultType::Task(payload)),
        Some(other) => {
            let problem = format!("the server's answer is of the unknown type {other}");
            Err(Error::Protocol(problem))
        }
    }
}

fn rpc_error(error: RpcError) -> Error {
    let data = error.data.map(|data| data.get().to_string());
    Error::Rpc { code: error.code as i64, message: error.message, data }
}

#[cfg(test)]
mod tests;
