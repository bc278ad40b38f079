//! A server elsewhere: Streamable HTTP, and the transport of 2024-11-05 with one stream of
//! server-sent events, for servers that have no other.
//!
//! Each message is a request of its own. Its answer is a message, or a stream of them; what the
//! server says by itself comes on a stream that is asked for. All of it ends up in one queue, as if
//! they were lines of a child.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;

use futures::channel::oneshot;
use futures::future::{AbortHandle, Abortable};
use mcp_client::{Era, MODERN, Server};
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tenon_sdk::http::sse::{Event as Sse, Parser};
use tenon_sdk::http::{self, Method, Request, Response, Url};
use wasip3::clocks::monotonic_clock;
pub(crate) use wit_bindgen::spawn_local as spawn;

use super::{Event, RequestHead};
use crate::bindings::tenon::plugin::types::Error;

/// A message on its way to the server.
struct OutgoingLine {
    line: Vec<u8>,
    /// What expects an answer.
    request: Option<RequestHead>,
}

/// Where the server is, as the host tells it.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub(crate) struct RemoteSettings {
    /// What its host calls the server.
    id: String,
    url: String,
    /// Headers of every request.
    headers: BTreeMap<String, String>,
    transport: HttpTransportKind,
    /// The longest message, in bytes.
    max_message: usize,
}

impl Default for RemoteSettings {
    fn default() -> Self {
        Self {
            id: String::new(),
            url: String::new(),
            headers: BTreeMap::new(),
            transport: HttpTransportKind::Http,
            max_message: 16 << 20,
        }
    }
}

impl RemoteSettings {
    /// Whether the server may be of the newer era, which has no other transport.
    pub(crate) fn speaks_streamable_http(&self) -> bool {
        self.transport == HttpTransportKind::Http
    }
}

/// How the server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum HttpTransportKind {
    /// Streamable HTTP; where the server does not know it, as below.
    Http,
    /// The transport of 2024-11-05.
    Sse,
}

/// The connection.
#[derive(Default)]
struct RemoteConnection {
    remote: RemoteSettings,
    /// Where messages go.
    target: Option<Url>,
    transport: Option<HttpTransportKind>,
    /// Counts connections, so that what comes of an old one is not taken for news of the new.
    connection: u64,
    session: Option<String>,
    /// The revision that was agreed on.
    revision: Option<String>,
    /// A message that is no request was sent: the handshake is over on the server's side, too.
    confirmed: bool,
    outbox: VecDeque<OutgoingLine>,
    sending: bool,
    events: VecDeque<Event>,
    /// Wakes whoever waits for events.
    waiting: Option<oneshot::Sender<()>>,
    /// What is under way for requests, by their numbers.
    requests: BTreeMap<u64, AbortHandle>,
    /// Streams of what the server says by itself.
    streams: Vec<AbortHandle>,
    timer: Option<u64>,
}

thread_local! {
    static STATE: RefCell<RemoteConnection> = RefCell::default();
}

fn with<R>(act: impl FnOnce(&mut RemoteConnection) -> R) -> R {
    STATE.with_borrow_mut(act)
}

/// How long a server may take to end a session.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a stream that breaks off is asked for again, for one answer.
const MAX_RESUMPTIONS: u32 = 5;

/// How long to wait before a stream is asked for again, where the server does not say, in
/// milliseconds; each further time in a row twice as long.
const RETRY_MILLIS: u64 = 1_000;

/// The least of these waits, in milliseconds, whatever the server says: one that ends each stream at
/// once is asked for the next for as long as the connection lives.
const MIN_RETRY_MILLIS: u64 = 500;

/// The longest of these waits, in milliseconds.
const MAX_RETRY_MILLIS: u64 = 30_000;

/// The most of an answer that is no message that is shown, in bytes.
const MAX_EXCERPT_BYTES: usize = 300;

pub(crate) fn now() -> u64 {
    monotonic_clock::now() / 1_000_000
}

async fn wait(milliseconds: u64) {
    monotonic_clock::wait_for(milliseconds.saturating_mul(1_000_000)).await;
}

pub(crate) fn set_timer(at: u64) {
    with(|state| state.timer = Some(at));
    spawn(async move {
        wait(at.saturating_sub(now())).await;
        // Another one may have taken its place.
        if with(|state| state.timer.take_if(|timer| *timer == at)).is_some() {
            push(Event::Timer);
        }
    });
}

/// Begins anew: no session, nothing agreed on.
pub(crate) async fn start() -> Result<(), Error> {
    let invalid = |reason| Error::unavailable(reason);
    let connection = with(|state| {
        state.end();
        let remote = crate::configuration::Configuration::read().http;
        let url = http::parse(&remote.url).map_err(|error| invalid(error.message))?;
        state.target = Some(url);
        state.transport = Some(remote.transport);
        state.remote = remote;
        Ok(state.connection)
    })?;
    match with(|state| state.transport) {
        Some(HttpTransportKind::Sse) => old_stream(connection).await.map_err(invalid),
        Some(HttpTransportKind::Http) | None => Ok(()),
    }
}

/// Ends the session, and everything under way.
pub(crate) async fn stop() {
    let ended = with(|state| {
        let ended = state.session.take().zip(state.target.clone());
        let headers = state.headers(None);
        state.end();
        ended.map(|(session, url)| (session, url, headers))
    });
    let Some((session, url, mut headers)) = ended else { return };
    headers.push(("mcp-session-id".into(), session));
    let request = Request {
        method: Method::Delete,
        url,
        headers,
        body: None,
        timeout: Some(SESSION_END_TIMEOUT),
    };
    // It may not let clients end sessions.
    let _ = http::send(request).await;
}

/// There is no log to read.
pub(crate) fn last_words() -> Vec<String> {
    Vec::new()
}

/// The handshake is over.
pub(crate) fn agreed(server: &Server) {
    let connection = with(|state| {
        state.revision = Some(server.revision.clone());
        let listens = server.era == Era::Legacy && state.transport == Some(HttpTransportKind::Http);
        listens.then_some(state.connection)
    });
    if let Some(connection) = connection {
        spawn_stream(listen(connection));
    }
}

/// Whether calls have headers for arguments, which only the newer era knows.
pub(crate) fn mirrors() -> bool {
    with(|state| state.revision.as_deref() == Some(MODERN))
}

pub(crate) fn send(line: Vec<u8>, request: impl FnOnce() -> Option<RequestHead>) {
    let message = OutgoingLine { line, request: request() };
    with(|state| state.outbox.push_back(message));
}

/// Sees to it that what is to be sent is. Each message goes by itself.
pub(crate) fn flush() {
    if with(|state| !state.outbox.is_empty() && !state.sending) {
        spawn(send_out());
    }
}

/// Sends in order, as far as that matters: what confirms the handshake must have arrived before any
/// request. Answers are not waited for.
async fn send_out() {
    if with(|state| std::mem::replace(&mut state.sending, true)) {
        return;
    }
    while let Some((message, connection)) =
        with(|state| Some((state.outbox.pop_front()?, state.connection)))
    {
        let confirms = message.request.is_none() && !with(|state| state.confirmed);
        match confirms {
            true => {
                with(|state| state.confirmed = true);
                post(message, connection).await;
            }
            false => {
                let request = message.request.as_ref().map(|head| head.id);
                let (abort, registration) = AbortHandle::new_pair();
                if let Some(id) = request {
                    with(|state| state.requests.insert(id, abort));
                }
                spawn(async move {
                    let _ = Abortable::new(post(message, connection), registration).await;
                    if let Some(id) = request {
                        with(|state| state.requests.remove(&id));
                    }
                });
            }
        }
    }
    with(|state| state.sending = false);
}

/// A request that nobody waits for any more. In the newer era this is how the server learns of it.
pub(crate) fn abandon(request: u64) {
    if let Some(abort) = with(|state| state.requests.remove(&request)) {
        abort.abort();
    }
}

/// What has happened.
pub(crate) async fn next_events() -> Vec<Event> {
    loop {
        let waiting = with(|state| {
            if !state.events.is_empty() {
                return Err(state.events.drain(..).collect());
            }
            let (wake, waiting) = oneshot::channel();
            state.waiting = Some(wake);
            Ok(waiting)
        });
        match waiting {
            Err(events) => return events,
            Ok(waiting) => drop(waiting.await),
        }
    }
}

fn push(event: Event) {
    with(|state| {
        state.events.push_back(event);
        // Dropped, it wakes.
        state.waiting = None;
    });
}

/// Passes on what came of a connection, if that is still the one.
fn push_of(connection: u64, event: Event) {
    if with(|state| state.connection == connection) {
        push(event);
    }
}

/// The connection is gone.
fn lose(connection: u64, reason: &str) {
    let is_it = with(|state| {
        let is_it = state.connection == connection;
        if is_it {
            state.end();
        }
        is_it
    });
    if is_it {
        push(Event::Lost(reason.into()));
    }
}

impl RemoteConnection {
    /// Gives up everything under way, and what is known of the server.
    fn end(&mut self) {
        self.connection += 1;
        let requests = std::mem::take(&mut self.requests).into_values();
        for abort in requests.chain(std::mem::take(&mut self.streams)) {
            abort.abort();
        }
        self.session = None;
        self.revision = None;
        self.confirmed = false;
        self.outbox.clear();
        self.events.clear();
    }

    /// The headers of a request. What a request is about is told of it from the newer era on.
    fn headers(&self, head: Option<&RequestHead>) -> Vec<(String, String)> {
        let mut headers: Vec<(String, String)> =
            self.remote.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut add = |name: &str, value: &str| headers.push((name.into(), value.into()));
        if let Some(session) = &self.session {
            add("mcp-session-id", session);
        }
        let method = head.map_or("", |head| head.method);
        let revision = match method {
            "initialize" => None,
            "server/discover" => Some(MODERN),
            _ => self.revision.as_deref(),
        };
        if let Some(revision) = revision {
            add("mcp-protocol-version", revision);
        }
        if let Some(head) = head.filter(|_| revision == Some(MODERN)) {
            add("mcp-method", head.method);
            if let Some(subject) = &head.subject {
                add("mcp-name", &header_value(subject));
            }
        }
        headers
    }
}

/// The headers for arguments of a call.
fn mirrored(head: &RequestHead, line: &[u8]) -> Result<Vec<(String, String)>, String> {
    #[derive(Deserialize)]
    struct CallMessage {
        params: CallParams,
    }
    #[derive(Deserialize)]
    struct CallParams {
        #[serde(default)]
        arguments: serde_json::Value,
    }
    if head.mirrored.is_empty() || !mirrors() {
        return Ok(Vec::new());
    }
    let call: CallMessage = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let headers = head.mirrored.iter().map(|mirrored| mirrored.header(&call.params.arguments));
    let headers = headers.filter_map(Result::transpose);
    headers.map(|header| header.map(|(name, text)| (name.into(), header_value(&text)))).collect()
}

/// A value as a header can carry it: as it is, or in Base64 with the marks of the specification.
fn header_value(text: &str) -> String {
    use base64::Engine as _;
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    match plain {
        true => text.to_string(),
        false => format!("=?base64?{}?=", base64::prelude::BASE64_STANDARD.encode(text)),
    }
}

/// Sends a message, and takes in what is answered to it.
async fn post(message: OutgoingLine, connection: u64) {
    let OutgoingLine { line, request: head } = message;
    let prepared = with(|state| {
        let url = state.target.clone()?;
        let mut headers = state.headers(head.as_ref());
        headers.push(("content-type".into(), "application/json".into()));
        headers.push(("accept".into(), "application/json, text/event-stream".into()));
        Some((url, headers, state.transport))
    });
    let Some((url, mut headers, transport)) = prepared else { return };
    let id = head.as_ref().map(|head| head.id);
    let failed = |error| {
        if let Some(request) = id {
            push_of(connection, Event::Failed { request, error });
        }
    };
    match head.as_ref().map_or_else(|| Ok(Vec::new()), |head| mirrored(head, &line)) {
        Ok(mirrored) => headers.extend(mirrored),
        Err(problem) => return failed(mcp_client::Error::Protocol(problem)),
    }
    let request =
        Request { method: Method::Post, url, headers, body: Some(line.clone()), timeout: None };
    let mut response = match http::send(request).await {
        Ok(response) => response,
        Err(error) => return failed(of_contract(error)),
    };
    match response.status {
        200..=299 => {
            if head.as_ref().is_some_and(|head| head.method == "initialize")
                && let Some(session) = response.headers.get("mcp-session-id")
            {
                with(|state| state.session = Some(session.to_string()));
            }
            match response.headers.media_type().as_deref() {
                Some("text/event-stream") => read_stream(response, id, connection).await,
                Some("application/json") => read_message(response, id, connection).await,
                // On the old transport the answer comes by the stream.
                _ if transport == Some(HttpTransportKind::Sse) => {}
                media_type => {
                    let what =
                        media_type.map_or_else(|| "no type".into(), |kind| format!("\"{kind}\""));
                    let body = response.read(MAX_EXCERPT_BYTES).await.unwrap_or_default().0;
                    failed(mcp_client::Error::Protocol(match body.is_empty() {
                        true => "the server accepted the request and answered nothing".into(),
                        false => format!(
                            "the server answered with content of {what}, which no answer has{}",
                            excerpt(&body)
                        ),
                    }));
                }
            }
        }
        404 if has_session() => lose(connection, SESSION_OVER),
        400 | 404 | 405 | 415
            if is_first(head.as_ref()) && transport == Some(HttpTransportKind::Http) =>
        {
            let status = response.status;
            let body = response.read(MAX_EXCERPT_BYTES * 10).await.unwrap_or_default().0;
            if is_error(&body) {
                return push_of(connection, Event::Line(body));
            }
            // A server of the first transport. What was said is said again over there.
            match old_stream(connection).await {
                Ok(()) => {
                    with(|state| state.transport = Some(HttpTransportKind::Sse));
                    send(line, || head);
                    flush();
                }
                Err(_) => failed(of_status(status, None, &body)),
            }
        }
        status => {
            let retry_after = response.headers.get("retry-after").and_then(|s| s.parse().ok());
            let challenge = response.headers.get("www-authenticate").map(str::to_string);
            let location = response.headers.get("location").map(str::to_string);
            let body = response.read(MAX_EXCERPT_BYTES * 10).await.unwrap_or_default().0;
            // Not every server has the status for it that the specification does.
            if status == 400 && has_session() && says_session(&body) {
                return lose(connection, SESSION_OVER);
            }
            if id.is_some() && is_error(&body) {
                return push_of(connection, Event::Line(body));
            }
            failed(match (status, location) {
                (401 | 403, _) => unauthorized(status, challenge),
                (300..=399, Some(location)) => mcp_client::Error::Protocol(format!(
                    "the server answered with HTTP {status}: it is at {location}, which is for \
                     `url` to say"
                )),
                _ => of_status(status, retry_after, &body),
            });
        }
    }
}

/// Why there is no connection any more, where the server has forgotten who we are.
const SESSION_OVER: &str = "the session has ended; the next call begins another";

fn has_session() -> bool {
    with(|state| state.session.is_some())
}

/// Whether a refusal is about the session.
fn says_session(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).to_ascii_lowercase().contains("session")
}

fn unauthorized(status: u16, challenge: Option<String>) -> mcp_client::Error {
    let wants_more = challenge.as_ref().is_some_and(|words| words.contains("insufficient_scope"));
    let challenge = challenge.map(|words| format!(", {words}")).unwrap_or_default();
    let is_said = |name: &String| name.eq_ignore_ascii_case("authorization");
    let (id, is_said) =
        with(|state| (state.remote.id.clone(), state.remote.headers.keys().any(is_said)));
    mcp_client::Error::Needs(match is_said {
        true => format!(
            "the server does not take the `Authorization` of `headers` (HTTP {status}{challenge})"
        ),
        false if wants_more => format!(
            "the login is not good for this (HTTP {status}{challenge}): `tenon login {id}` asks for more"
        ),
        false => format!(
            "the server wants to know who asks (HTTP {status}{challenge}): run `tenon login {id}`, or \
             set `headers` with `Authorization`"
        ),
    })
}

fn is_first(head: Option<&RequestHead>) -> bool {
    head.is_some_and(|head| head.method == "initialize")
}

/// Whether a body is an error of the protocol's, which says more than the status.
fn is_error(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct ErrorResponse {
        jsonrpc: String,
        error: serde_json::Value,
    }
    serde_json::from_slice(body)
        .is_ok_and(|answer: ErrorResponse| answer.jsonrpc == "2.0" && answer.error.is_object())
}

fn of_status(status: u16, retry_after: Option<u64>, body: &[u8]) -> mcp_client::Error {
    let message = format!("the server answered with HTTP {status}{}", excerpt(body));
    match status {
        408 | 425 | 429 | 500.. => mcp_client::Error::Unavailable {
            message,
            retry_after: retry_after.map(|seconds| seconds.saturating_mul(1_000)),
        },
        _ => mcp_client::Error::Protocol(message),
    }
}

/// The beginning of what is no message, for those who read why there is no answer.
fn excerpt(body: &[u8]) -> String {
    let body = String::from_utf8_lossy(&body[..body.len().min(MAX_EXCERPT_BYTES)]);
    match body.trim() {
        "" => String::new(),
        body => format!(": {body}"),
    }
}

/// An answer that is one message. One that answers something else leaves nothing to wait for.
async fn read_message(mut response: Response, id: Option<u64>, connection: u64) {
    let most = with(|state| state.remote.max_message);
    match response.read(most).await {
        Ok((body, false)) => {
            let other = format!("the server answered something else{}", excerpt(&body));
            push_of(connection, Event::Line(body));
            // What was answered knows of no failure any more.
            if let Some(request) = id {
                let error = mcp_client::Error::Protocol(other);
                push_of(connection, Event::Failed { request, error });
            }
        }
        Ok((prefix, true)) => too_long(id, prefix, connection),
        Err(error) => {
            if let Some(request) = id {
                push_of(connection, Event::Failed { request, error: of_contract(error) });
            }
        }
    }
}

fn too_long(id: Option<u64>, prefix: Vec<u8>, connection: u64) {
    match id {
        Some(request) => {
            let problem = "the server's answer is longer than the limit; `max_message` under \
                           [supervision] is what is allowed";
            let error = mcp_client::Error::Protocol(problem.into());
            push_of(connection, Event::Failed { request, error });
        }
        None => {
            let length = prefix.len() as u64;
            push_of(
                connection,
                Event::Oversized {
                    prefix: prefix[..prefix.len().min(MAX_EXCERPT_BYTES)].to_vec(),
                    length,
                },
            );
        }
    }
}

/// How far a stream has come.
#[derive(Default)]
struct StreamPosition {
    /// What to ask for to go on.
    last: Option<String>,
    /// How long to wait before, in milliseconds.
    retry: Option<u64>,
}

/// Why a stream brings nothing more.
enum End {
    /// It was over.
    Over,
    /// It broke off.
    Broke(tenon_sdk::Error),
    /// It said something too long.
    TooLong,
}

/// Reads a stream to its end.
async fn read_events(
    mut response: Response,
    progress: &mut StreamPosition,
    mut take: impl FnMut(Sse),
) -> End {
    let mut parser = Parser::with_most(with(|state| state.remote.max_message));
    let mut events = Vec::new();
    let end = loop {
        match response.chunk().await {
            Ok(Some(piece)) => {
                if parser.push(&piece, &mut events).is_err() {
                    break End::TooLong;
                }
            }
            Ok(None) => break End::Over,
            Err(error) => break End::Broke(error),
        }
        progress.retry = parser.retry().or(progress.retry);
        for event in events.drain(..) {
            if let Some(id) = &event.id {
                progress.last = Some(id.clone());
            }
            take(event);
        }
    };
    if let Ok(Some(event)) = parser.finish() {
        take(event);
    }
    end
}

/// An answer that is a stream: messages on the way to the answer, and then it. One that breaks off
/// is asked for again, where the server has said how.
async fn read_stream(response: Response, id: Option<u64>, connection: u64) {
    let mut progress = StreamPosition::default();
    let mut response = response;
    let mut answered = false;
    for resumption in 0.. {
        let take = |event: Sse| {
            answered |= id.is_some_and(|id| answers(&event.data, id));
            message(event, connection);
        };
        let end = read_events(response, &mut progress, take).await;
        let error = match end {
            End::TooLong => return too_long(id, Vec::new(), connection),
            End::Over => mcp_client::Error::Lost("the stream ended without the answer".into()),
            End::Broke(error) => of_contract(error),
        };
        let Some(request) = id.filter(|_| !answered) else { return };
        let failed = |error| push_of(connection, Event::Failed { request, error });
        if progress.last.is_none() || resumption >= MAX_RESUMPTIONS {
            return failed(error);
        }
        wait(progress.retry.unwrap_or(RETRY_MILLIS).min(MAX_RETRY_MILLIS)).await;
        response = match get(progress.last.as_deref()).await {
            Ok(response) if response.status == 200 => response,
            Ok(_) | Err(_) => return failed(error),
        };
    }
}

/// Whether a message is the answer to a request.
fn answers(message: &str, request: u64) -> bool {
    #[derive(Deserialize)]
    struct ResponseHead<'a> {
        id: Option<f64>,
        #[serde(borrow, default)]
        method: Option<std::borrow::Cow<'a, str>>,
    }
    serde_json::from_str(message)
        .is_ok_and(|ResponseHead { id, method }| method.is_none() && id == Some(request as f64))
}

/// One event of a stream.
fn message(event: Sse, connection: u64) {
    let is_message = event.name.is_empty() || event.name == "message";
    if is_message && !event.data.trim().is_empty() {
        push_of(connection, Event::Line(event.data.into_bytes()));
    }
}

/// Asks for a stream of what the server says by itself.
async fn get(last: Option<&str>) -> Result<Response, tenon_sdk::Error> {
    let prepared = with(|state| {
        let mut headers = state.headers(None);
        headers.push(("accept".into(), "text/event-stream".into()));
        headers.extend(last.map(|last| ("last-event-id".into(), last.to_string())));
        state.target.clone().map(|url| (url, headers))
    });
    let Some((url, headers)) = prepared else {
        return Err(tenon_sdk::Error::failed("there is no connection"));
    };
    http::send(Request { method: Method::Get, url, headers, body: None, timeout: None }).await
}

/// Does something for as long as the connection.
fn spawn_stream(stream: impl Future<Output = ()> + 'static) {
    let (abort, registration) = AbortHandle::new_pair();
    with(|state| state.streams.push(abort));
    spawn(async move {
        let _ = Abortable::new(stream, registration).await;
    });
}

/// Listens to what the server says by itself, as long as it lets anybody.
async fn listen(connection: u64) {
    let mut progress = StreamPosition::default();
    let mut patience = RETRY_MILLIS;
    loop {
        match get(progress.last.as_deref()).await {
            Ok(response) if response.status == 200 => {
                let take = |event| message(event, connection);
                if let End::Over = read_events(response, &mut progress, take).await {
                    patience = RETRY_MILLIS;
                }
            }
            Ok(response) if response.status == 404 && has_session() => {
                return lose(connection, SESSION_OVER);
            }
            // It says nothing by itself.
            Ok(response) if (400..500).contains(&response.status) => return,
            Ok(_) | Err(_) => {}
        }
        wait(progress.retry.unwrap_or(patience).clamp(MIN_RETRY_MILLIS, MAX_RETRY_MILLIS)).await;
        patience = (patience * 2).min(MAX_RETRY_MILLIS);
    }
}

/// Opens the one stream of the transport of 2024-11-05, whose first event says where messages go.
async fn old_stream(connection: u64) -> Result<(), String> {
    let response = get(None).await.map_err(|error| error.message)?;
    let media_type = response.headers.media_type();
    if response.status != 200 || media_type.as_deref() != Some("text/event-stream") {
        return Err(format!("the server answered with HTTP {}", response.status));
    }
    let (found, endpoint) = oneshot::channel();
    spawn_stream(async move {
        let mut found = Some(found);
        let mut progress = StreamPosition::default();
        let take = |event: Sse| match event.name.as_str() {
            "endpoint" => {
                if let Some(found) = found.take() {
                    let _ = found.send(event.data);
                }
            }
            _ => message(event, connection),
        };
        read_events(response, &mut progress, take).await;
        lose(connection, "the server ended the stream");
    });
    let endpoint = endpoint.await.map_err(|_| "the server said nowhere to go".to_string())?;
    with(|state| {
        let url = state.target.as_ref().and_then(|url| url.join(endpoint.trim()).ok());
        match url.filter(|url| state.target.as_ref().is_some_and(|at| at.origin() == url.origin()))
        {
            Some(url) => {
                state.target = Some(url);
                Ok(())
            }
            None => Err("the server sends messages elsewhere, where they must not go".into()),
        }
    })
}

/// An error of the host's as one of the client.
fn of_contract(error: tenon_sdk::Error) -> mcp_client::Error {
    match error.code {
        tenon_sdk::ErrorCode::Timeout => mcp_client::Error::Timeout,
        tenon_sdk::ErrorCode::Unavailable => mcp_client::Error::Unavailable {
            message: error.message,
            retry_after: error.retry_after,
        },
        _ => mcp_client::Error::Protocol(error.message),
    }
}
