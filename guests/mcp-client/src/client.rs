//! The state machine.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::REVISIONS;
use crate::message::{Answer, Incoming, Payload, RpcError, read};

/// The most pages of one listing.
const PAGES: usize = 1_000;

/// The most items of one listing.
const ITEMS: usize = 100_000;

/// Something that was asked of the server, from the asking to the outcome. It may take several
/// requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(u64);

/// What the driver is to do.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Write this line to the server.
    Write(Vec<u8>),
    /// An operation is over.
    Finish(OperationId, Result<Outcome, Error>),
    /// The server's tools are other ones now.
    ToolsChanged,
    /// An operation has come so far.
    Progress { operation: OperationId, progress: f64, total: Option<f64>, message: Option<String> },
    /// Something for the log: the server's words, or what is wrong with it.
    Log { level: LogLevel, message: String },
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
    Result(Payload),
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
    /// The server's answer breaks the protocol.
    Protocol(String),
}

/// Who the server says it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Server {
    /// The name and version that it gives itself, which nothing depends on.
    pub name: String,
    pub version: String,
    /// What it says about itself to a model.
    pub instructions: Option<String>,
    /// The revision of the protocol that was agreed on.
    pub revision: String,
    pub capabilities: ServerCapabilities,
}

/// What a server declares that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCapabilities {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
}

/// What is the same for all of a client's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name and version that the client gives itself.
    pub name: String,
    pub version: String,
    /// How long each request may take that has no limit of its own, in milliseconds.
    pub timeout: u64,
}

/// A request that has one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    pub method: &'a str,
    /// The parameters, as the members of a JSON object without its braces.
    pub params: &'a str,
    /// Members of `_meta`, in the same form.
    pub meta: &'a str,
    /// How long it may take, in milliseconds.
    pub timeout: Option<u64>,
    /// Whether to ask the server to tell how far it has come.
    pub progress: bool,
}

/// The state machine; see the crate.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    state: State,
    operations: u64,
    /// The ids of requests are never used twice, over all connections.
    ids: u64,
    in_flight: BTreeMap<u64, InFlight>,
    /// The same by deadline.
    deadlines: BTreeSet<(u64, u64)>,
    actions: VecDeque<Action>,
    /// Lines that were no messages, on this connection.
    noise: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Disconnected,
    Connecting,
    Connected(Server),
}

/// A request whose answer is awaited.
#[derive(Debug)]
struct InFlight {
    operation: OperationId,
    deadline: u64,
    purpose: Purpose,
}

#[derive(Debug)]
enum Purpose {
    Initialize,
    List(Listing),
    Plain,
}

/// A listing, page after page.
#[derive(Debug)]
struct Listing {
    method: &'static str,
    /// The member of each page that holds its items.
    member: &'static str,
    items: Vec<String>,
    cursors: BTreeSet<String>,
}

impl Client {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: State::Disconnected,
            operations: 0,
            ids: 0,
            in_flight: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            actions: VecDeque::new(),
            noise: 0,
        }
    }

    /// The server, once it is ready.
    pub fn server(&self) -> Option<&Server> {
        match &self.state {
            State::Connected(server) => Some(server),
            State::Disconnected | State::Connecting => None,
        }
    }

    /// The next thing to do.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Client::tick`] is due.
    pub fn deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// How many lines of the server were no messages.
    pub fn noise(&self) -> u64 {
        self.noise
    }

    /// Begins a connection with a server that has just started.
    pub fn connect(&mut self, now: u64, timeout: u64) -> OperationId {
        let operation = self.operation();
        self.state = State::Connecting;
        self.noise = 0;
        let params = json!({
            "protocolVersion": REVISIONS[0],
            "capabilities": {},
            "clientInfo": { "name": self.settings.name, "version": self.settings.version },
        });
        let params = params.to_string();
        let members = &params[1..params.len() - 1];
        let deadline = now.saturating_add(timeout);
        self.send(operation, "initialize", members, deadline, Purpose::Initialize);
        operation
    }

    /// Lists all tools.
    pub fn list_tools(&mut self, now: u64) -> OperationId {
        let operation = self.operation();
        if !self.require(operation, |capabilities| capabilities.tools) {
            return operation;
        }
        let listing = Listing {
            method: "tools/list",
            member: "tools",
            items: Vec::new(),
            cursors: BTreeSet::new(),
        };
        self.next_page(operation, listing, None, now);
        operation
    }

    /// Sends a request.
    pub fn request(&mut self, request: Request<'_>, now: u64) -> OperationId {
        let operation = self.operation();
        let Request { method, params, meta, timeout, progress } = request;
        if self.server().is_none() {
            let error = Error::Lost("the server is not connected".into());
            self.finish(operation, Err(error));
            return operation;
        }
        let deadline = now.saturating_add(timeout.unwrap_or(self.settings.timeout));
        // The token is the id that the request will have.
        let members = with_meta(params, meta, progress.then_some(self.ids + 1));
        self.send(operation, method, &members, deadline, Purpose::Plain);
        operation
    }

    /// Gives an operation up and tells the server so. An operation that is over is not touched.
    pub fn cancel(&mut self, operation: OperationId) {
        let found = self.in_flight.iter().find(|(_, request)| request.operation == operation);
        let Some((&id, request)) = found else { return };
        // A client must not cancel the handshake.
        if !matches!(request.purpose, Purpose::Initialize) {
            self.give_up(id, "the caller gave up");
        }
        self.forget(id);
        self.finish(operation, Err(Error::Cancelled));
    }

    /// Takes in a line of the server.
    pub fn receive(&mut self, line: Vec<u8>, now: u64) {
        match read(line) {
            Ok(messages) => {
                for message in messages {
                    self.handle(message, now);
                }
            }
            Err(_) => {
                self.noise += 1;
                if self.noise == 1 {
                    let message = "the server writes lines that are no messages".to_string();
                    self.actions.push_back(Action::Log { level: LogLevel::Warn, message });
                }
            }
        }
    }

    /// Takes in what is left of a line that was too long. It costs the request that it answers.
    pub fn oversized(&mut self, prefix: &[u8], length: u64) {
        let problem = format!("the server's answer of {length} bytes is longer than the limit");
        let id = id_in(&String::from_utf8_lossy(prefix))
            .filter(|id| self.in_flight.contains_key(id))
            .or_else(|| self.only_request());
        match id.and_then(|id| self.forget(id)) {
            Some(request) => self.finish(request.operation, Err(Error::Protocol(problem))),
            None => self.actions.push_back(Action::Log { level: LogLevel::Warn, message: problem }),
        }
    }

    /// Learns that the server is gone. Nothing is sent again: its caller decides.
    pub fn lost(&mut self, reason: &str) {
        self.state = State::Disconnected;
        self.deadlines.clear();
        for (_, request) in std::mem::take(&mut self.in_flight) {
            self.finish(request.operation, Err(Error::Lost(reason.to_string())));
        }
    }

    /// Learns what time it is, and gives up what is overdue.
    pub fn tick(&mut self, now: u64) {
        while let Some(&(deadline, id)) = self.deadlines.first()
            && deadline <= now
        {
            let Some(request) = self.forget(id) else { continue };
            if !matches!(request.purpose, Purpose::Initialize) {
                self.give_up(id, "it took too long");
            }
            self.finish(request.operation, Err(Error::Timeout));
        }
    }

    fn operation(&mut self) -> OperationId {
        self.operations += 1;
        OperationId(self.operations)
    }

    fn finish(&mut self, operation: OperationId, result: Result<Outcome, Error>) {
        self.actions.push_back(Action::Finish(operation, result));
    }

    fn forget(&mut self, id: u64) -> Option<InFlight> {
        let request = self.in_flight.remove(&id)?;
        self.deadlines.remove(&(request.deadline, id));
        Some(request)
    }

    /// The request in flight, if it is the only one: what cannot be attributed otherwise is its.
    fn only_request(&self) -> Option<u64> {
        let mut ids = self.in_flight.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }

    fn send(
        &mut self,
        operation: OperationId,
        method: &str,
        members: &str,
        deadline: u64,
        purpose: Purpose,
    ) {
        self.ids += 1;
        let id = self.ids;
        let mut line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}""#);
        if !members.is_empty() {
            line.push_str(r#","params":{"#);
            line.push_str(members);
            line.push('}');
        }
        line.push('}');
        self.write(line);
        self.in_flight.insert(id, InFlight { operation, deadline, purpose });
        self.deadlines.insert((deadline, id));
    }

    /// Writes a message. Line ends in it can only be white space between JSON tokens.
    fn write(&mut self, message: String) {
        let mut line = message.into_bytes();
        for byte in &mut line {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        self.actions.push_back(Action::Write(line));
    }

    fn give_up(&mut self, id: u64, reason: &str) {
        self.write(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"{reason}"}}}}"#
        ));
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

    fn next_page(
        &mut self,
        operation: OperationId,
        listing: Listing,
        cursor: Option<String>,
        now: u64,
    ) {
        let members = match cursor {
            Some(cursor) => format!("\"cursor\":{}", Value::String(cursor)),
            None => String::new(),
        };
        let deadline = now.saturating_add(self.settings.timeout);
        let method = listing.method;
        self.send(operation, method, &members, deadline, Purpose::List(listing));
    }

    fn handle(&mut self, message: Incoming, now: u64) {
        match message {
            Incoming::Response { id, answer } => self.answered(id, answer, now),
            Incoming::Request { id, method } if method == "ping" => {
                self.write(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
            }
            Incoming::Request { id, method } => {
                let message = Value::String(format!("this client does not have {method}"));
                self.write(format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":{message}}}}}"#
                ));
            }
            Incoming::Notification { method, params } => {
                self.notified(&method, params.as_deref().unwrap_or("{}"));
            }
        }
    }

    fn answered(&mut self, id: Option<u64>, answer: Answer, now: u64) {
        // An error without a usable id can only mean the one request there is.
        let id = match (&answer, id) {
            (_, Some(id)) => Some(id),
            (Answer::Error(_), None) => self.only_request(),
            (Answer::Result(_) | Answer::Invalid(_), None) => None,
        };
        let Some(InFlight { operation, purpose, .. }) = id.and_then(|id| self.forget(id)) else {
            let message = "the server answered what was not asked, or twice, or too late".into();
            self.actions.push_back(Action::Log { level: LogLevel::Debug, message });
            return;
        };
        let result = match answer {
            Answer::Result(payload) => Ok(payload),
            Answer::Error(error) => Err(rpc_error(error)),
            Answer::Invalid(problem) => {
                Err(Error::Protocol(format!("the server's answer is invalid: {problem}")))
            }
        };
        match purpose {
            Purpose::Plain => self.finish(operation, result.map(Outcome::Result)),
            Purpose::Initialize => self.initialized(operation, result),
            Purpose::List(listing) => self.listed(operation, listing, result, now),
        }
    }

    fn initialized(&mut self, operation: OperationId, result: Result<Payload, Error>) {
        let connected = result.and_then(|payload| read_server(payload.get()));
        match connected {
            Ok(server) => {
                self.state = State::Connected(server.clone());
                self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into());
                self.finish(operation, Ok(Outcome::Connected(server)));
            }
            Err(error) => {
                self.state = State::Disconnected;
                self.finish(operation, Err(error));
            }
        }
    }

    fn listed(
        &mut self,
        operation: OperationId,
        mut listing: Listing,
        result: Result<Payload, Error>,
        now: u64,
    ) {
        let page = match result {
            Ok(payload) => read_page(payload.get(), listing.member),
            // Declared and not there: as good as empty.
            Err(Error::Rpc { code: -32601, .. }) => Ok(Page { items: Vec::new(), next: None }),
            Err(error) => Err(error),
        };
        let Page { items, next } = match page {
            Ok(page) => page,
            Err(error) => return self.finish(operation, Err(error)),
        };
        listing.items.extend(items);
        let Some(cursor) = next else {
            return self.finish(operation, Ok(Outcome::Items(listing.items)));
        };
        let endless = !listing.cursors.insert(cursor.clone())
            || listing.cursors.len() >= PAGES
            || listing.items.len() >= ITEMS;
        if endless {
            let message = format!("{} does not end; what it gave so far is kept", listing.method);
            self.actions.push_back(Action::Log { level: LogLevel::Warn, message });
            listing.items.truncate(ITEMS);
            return self.finish(operation, Ok(Outcome::Items(listing.items)));
        }
        self.next_page(operation, listing, Some(cursor), now);
    }

    fn notified(&mut self, method: &str, params: &str) {
        match method {
            "notifications/tools/list_changed" => self.actions.push_back(Action::ToolsChanged),
            "notifications/progress" => self.progressed(params),
            "notifications/message" => self.logged(params),
            _ => {}
        }
    }

    fn progressed(&mut self, params: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            progress_token: f64,
            progress: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(default)]
            message: Option<String>,
        }
        let Ok(Params { progress_token, progress, total, message }) = serde_json::from_str(params)
        else {
            return;
        };
        // The token is the request's id. One that is over has no progress.
        if let Some(request) = self.in_flight.get(&(progress_token as u64)) {
            let operation = request.operation;
            self.actions.push_back(Action::Progress { operation, progress, total, message });
        }
    }

    fn logged(&mut self, params: &str) {
        #[derive(Deserialize)]
        struct Params {
            #[serde(default)]
            level: String,
            #[serde(default)]
            data: Value,
        }
        let Ok(Params { level, data }) = serde_json::from_str(params) else { return };
        let level = match level.as_str() {
            "debug" => LogLevel::Debug,
            "warning" => LogLevel::Warn,
            "error" | "critical" | "alert" | "emergency" => LogLevel::Error,
            _ => LogLevel::Info,
        };
        let message = match data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        self.actions.push_back(Action::Log { level, message });
    }
}

/// Parameters with a `_meta`, where there is anything for it.
fn with_meta(params: &str, meta: &str, token: Option<u64>) -> String {
    let token = token.map(|token| format!(r#""progressToken":{token}"#)).unwrap_or_default();
    let meta: Vec<&str> = [meta, &token].into_iter().filter(|part| !part.is_empty()).collect();
    let meta = match meta.is_empty() {
        true => String::new(),
        false => format!(r#""_meta":{{{}}}"#, meta.join(",")),
    };
    let parts: Vec<&str> = [params, &meta].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(",")
}

fn rpc_error(error: RpcError) -> Error {
    let data = error.data.map(|data| data.get().to_string());
    Error::Rpc { code: error.code as i64, message: error.message, data }
}

/// The id in the beginning of a message that is too long to read.
fn id_in(prefix: &str) -> Option<u64> {
    let (_, after) = prefix.split_once("\"id\"")?;
    let after = after.trim_start().strip_prefix(':')?.trim_start();
    let end = after.find(|c: char| !c.is_ascii_digit())?;
    after[..end].parse().ok()
}

fn read_server(result: &str) -> Result<Server, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialized {
        protocol_version: String,
        #[serde(default)]
        capabilities: BTreeMap<String, Value>,
        #[serde(default)]
        server_info: Option<Info>,
        #[serde(default)]
        instructions: Option<String>,
    }
    #[derive(Deserialize, Default)]
    struct Info {
        #[serde(default)]
        name: String,
        #[serde(default)]
        version: String,
    }
    let initialized: Initialized = serde_json::from_str(result).map_err(|error| {
        Error::Protocol(format!("the server's answer to initialize is invalid: {error}"))
    })?;
    if !REVISIONS.contains(&initialized.protocol_version.as_str()) {
        return Err(Error::Protocol(format!(
            "the server speaks the revision {} of the protocol, and this client speaks {}",
            initialized.protocol_version,
            REVISIONS.join(", ")
        )));
    }
    let has = |name: &str| initialized.capabilities.get(name).is_some_and(Value::is_object);
    let info = initialized.server_info.unwrap_or_default();
    Ok(Server {
        name: info.name,
        version: info.version,
        instructions: initialized.instructions,
        revision: initialized.protocol_version,
        capabilities: ServerCapabilities {
            tools: has("tools"),
            resources: has("resources"),
            prompts: has("prompts"),
        },
    })
}

/// A page of a listing.
struct Page {
    items: Vec<String>,
    /// An empty cursor is one, too.
    next: Option<String>,
}

fn read_page(result: &str, member: &str) -> Result<Page, Error> {
    let invalid =
        |problem: String| Error::Protocol(format!("the server's list is invalid: {problem}"));
    let page: BTreeMap<String, &RawValue> =
        serde_json::from_str(result).map_err(|error| invalid(error.to_string()))?;
    let items = match page.get(member) {
        Some(items) => serde_json::from_str::<Vec<&RawValue>>(items.get())
            .map_err(|error| invalid(format!("{member}: {error}")))?,
        None => return Err(invalid(format!("it has no \"{member}\""))),
    };
    let next = page.get("nextCursor").and_then(|next| serde_json::from_str(next.get()).ok());
    Ok(Page { items: items.into_iter().map(|item| item.get().to_string()).collect(), next })
}

#[cfg(test)]
mod tests;
