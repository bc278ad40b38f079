//! Legacy clients over HTTP: sessions by the header `Mcp-Session-Id`, streams that can be taken up again, and calls that
//! go on when their client loses its connection.

use futures::future::join_all;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

use super::answer::{self, AnswerBody, KEEP_ALIVE, Refused, empty, json, refusal, text};
use super::event_log::EventLog;
use super::mcp::{MAX_PIECES, MAX_QUEUED};
use super::{Shared, body, modern_headers};
use crate::client::Outlet;
use crate::in_flight::InFlight;
use crate::legacy_session::Session;
use crate::lock;
use crate::offer::Peer;
use crate::protocol::error::{INTERNAL, INVALID_REQUEST, RpcError, UNAVAILABLE};
use crate::protocol::message::{self, Invalid, Message, RawRequest, RequestId};
use crate::protocol::meta::RequestMeta;
use crate::protocol::request::Request;
use crate::protocol::version::{Era, LEGACY, WITHOUT_HEADER};
use crate::protocol::write;
use crate::server::{Inner, closed};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How long a call may take before its client gets a stream in place of an answer.
const STREAM_AFTER: Duration = Duration::from_millis(200);

/// When a client whose stream has ended is to ask for the rest.
const RETRY: Duration = Duration::from_millis(500);

/// How long plugins may take to let go of a request that was given up.
const MAX_LETTING_GO: Duration = Duration::from_secs(5);

/// The first revision whose streams begin with an event that has no message.
const PRIMING_SINCE: &str = "2025-11-25";

/// The most streams of one session whose messages are kept after they have ended, and the most bytes of these.
const MAX_KEPT_STREAMS: usize = 16;
const MAX_KEPT_BYTES: usize = 1 << 20;

/// The share of all sessions that may be unused: one in so many. Where there are fewer, a client that has just begun one
/// and is about to use it is among them, and it keeps it.
const UNUSED_SHARE: usize = 10;

/// The sessions, by their ids.
pub(super) struct Sessions {
    all: Mutex<HashMap<String, Arc<HttpSession>>>,
    most: usize,
    idle: Duration,
}

/// A session of a client over HTTP.
struct HttpSession {
    session: Session,
    used: Mutex<Instant>,
    /// Its client has used it after it had begun.
    is_in_use: AtomicBool,
    in_flight: InFlight,
    /// What its requests were told, by the numbers of their streams.
    logs: Mutex<BTreeMap<u64, Arc<EventLog>>>,
    next_stream: AtomicU64,
    /// Which of its streams of news is the one: each message goes to one stream only.
    news: watch::Sender<u64>,
}

impl Sessions {
    pub(super) fn new(most: usize, idle: Duration) -> Arc<Self> {
        Arc::new(Self { all: Mutex::default(), most, idle })
    }

    /// The session that a client names, if it is its own.
    fn get(&self, id: &str, peer: &Peer) -> Option<Arc<HttpSession>> {
        let session = lock(&self.all).get(id).cloned()?;
        let of = &session.session.peer;
        if of.principal != peer.principal || of.profile.key() != peer.profile.key() {
            return None;
        }
        *lock(&session.used) = Instant::now();
        session.is_in_use.store(true, Ordering::Relaxed);
        Some(session)
    }

    /// Adds a session, if there is room. Those that are idle make some, and where there is none, one makes it that
    /// misses least: its client begins another when it comes back. Otherwise whoever begins many sessions locks all
    /// others out.
    fn add(&self, session: Arc<HttpSession>) -> (bool, Vec<Arc<HttpSession>>) {
        let mut all = lock(&self.all);
        let idle: Vec<String> = all
            .iter()
            .filter(|(_, session)| session.is_idle(self.idle))
            .map(|(id, _)| id.clone())
            .collect();
        let mut ended: Vec<_> = idle.iter().filter_map(|id| all.remove(id)).collect();
        if all.len() >= self.most {
            let principal = &session.session.peer.principal;
            let least = least_missed(all.values(), self.most, principal);
            ended.extend(least.and_then(|id| all.remove(&id)));
        }
        let has_room = all.len() < self.most;
        if has_room {
            all.insert(session.session.id.clone(), session);
        }
        (has_room, ended)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        lock(&self.all).len()
    }

    /// Nobody can answer any more: no connection is accepted.
    pub(super) fn close_questions(&self) {
        lock(&self.all).values().for_each(|session| session.session.pending.close());
    }

    /// Ends all sessions.
    pub(super) async fn end_all(&self, server: &Inner) {
        let all: Vec<_> = lock(&self.all).drain().map(|(_, session)| session).collect();
        for session in all {
            session.end(server).await;
        }
    }
}

/// The session that ends where one has to for a session of this principal: of those of the same principal first, then of
/// those that nobody has used since they began if these are many, then of those that nobody listens to, the one unused
/// for longest. None that is at work ends.
fn least_missed<'a>(
    all: impl Iterator<Item = &'a Arc<HttpSession>> + Clone,
    most: usize,
    principal: &str,
) -> Option<String> {
    let unused = all.clone().filter(|session| !session.is_in_use()).count();
    let are_many = unused > most / UNUSED_SHARE;
    let waiting = all.filter(|session| session.in_flight.is_empty());
    let least = waiting.min_by_key(|session| {
        let is_others = *session.session.peer.principal != *principal;
        let is_missed = session.is_in_use() || !are_many;
        (is_others, is_missed, session.is_listening(), *lock(&session.used))
    });
    least.map(|session| session.session.id.clone())
}

impl HttpSession {
    fn is_idle(&self, most: Duration) -> bool {
        lock(&self.used).elapsed() > most && self.in_flight.is_empty() && !self.is_listening()
    }

    /// Whether its client has a stream of news.
    fn is_listening(&self) -> bool {
        self.news.receiver_count() > 0
    }

    fn is_in_use(&self) -> bool {
        self.is_in_use.load(Ordering::Relaxed)
    }

    /// Ends the session: what is in flight is given up.
    async fn end(&self, server: &Inner) {
        self.session.pending.close();
        self.in_flight.abort_all();
        lock(&self.logs).values().for_each(|log| log.end());
        self.news.send_modify(|news| *news += 1);
        if let Err(error) = server.platform.end_session(&self.session.id).await {
            tracing::warn!("the state of a session stays: {error}");
        }
    }

    /// A stream for a request.
    fn open(&self) -> (u64, Arc<EventLog>) {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed) + 1;
        let log = EventLog::new();
        let mut logs = lock(&self.logs);
        logs.insert(number, log.clone());
        // Nobody knows what of a stream has arrived, so its messages are kept beyond its end: those of the newest.
        let over: Vec<(u64, usize)> = logs
            .iter()
            .filter(|(_, log)| log.is_over())
            .map(|(number, log)| (*number, log.bytes()))
            .collect();
        let (mut count, mut bytes) = (0, 0);
        for (number, of_log) in over.into_iter().rev() {
            (count, bytes) = (count + 1, bytes + of_log);
            if count > 1 && (count > MAX_KEPT_STREAMS || bytes > MAX_KEPT_BYTES) {
                logs.remove(&number);
            }
        }
        (number, log)
    }

    fn close(&self, number: u64) {
        lock(&self.logs).remove(&number);
    }
}

/// Whether a request names a session.
pub(super) fn has_session(headers: &HeaderMap) -> bool {
    headers.contains_key(SESSION)
}

fn bad_request(id: Option<&RequestId>, message: impl Into<String>) -> Response<AnswerBody> {
    refusal(StatusCode::BAD_REQUEST, id, &RpcError::new(INVALID_REQUEST, message))
}

/// The session that headers name. `id` is that of the request, for what is said where there is none.
fn session_of(
    shared: &Shared,
    peer: &Peer,
    headers: &HeaderMap,
    id: Option<&RequestId>,
) -> Result<Arc<HttpSession>, Refused> {
    let version = modern_headers::version(headers);
    let version =
        version.map_err(|error| Box::new(refusal(StatusCode::BAD_REQUEST, id, &error)))?;
    if !LEGACY.contains(&version.unwrap_or(WITHOUT_HEADER)) {
        let message = format!("no session speaks {:?}", version.unwrap_or_default());
        return Err(bad_request(id, message).into());
    }
    let mut ids = headers.get_all(SESSION).iter();
    let Some(named) = ids.next() else {
        let problem = "the header Mcp-Session-Id is missing: send `initialize` first";
        return Err(bad_request(id, problem).into());
    };
    if ids.next().is_some() {
        return Err(bad_request(id, "the header Mcp-Session-Id is there twice").into());
    }
    let session = named.to_str().ok().and_then(|named| shared.sessions.get(named, peer));
    session.ok_or_else(|| {
        let error = RpcError::new(INVALID_REQUEST, "there is no such session, or it has ended");
        refusal(StatusCode::NOT_FOUND, id, &error).into()
    })
}

pub(super) async fn post(
    shared: &Arc<Shared>,
    peer: &Peer,
    headers: &HeaderMap,
    message: Message<'_>,
) -> Response<AnswerBody> {
    if let Message::Request(raw) = &message
        && raw.method == "initialize"
        && !has_session(headers)
    {
        return initialize(shared, peer, raw).await;
    }
    let id = match &message {
        Message::Request(raw) => Some(&raw.id),
        _ => None,
    };
    let session = match session_of(shared, peer, headers, id) {
        Ok(session) => session,
        Err(refused) => return *refused,
    };
    match message {
        Message::Request(raw) => match begin(shared, &session, &raw) {
            Ok((number, log)) => answer(shared, &session, number, log).await,
            Err(error) => refusal(StatusCode::OK, Some(&raw.id), &error),
        },
        other => {
            take(&session, other);
            empty(StatusCode::ACCEPTED)
        }
    }
}

/// Takes what needs no answer.
fn take(session: &HttpSession, message: Message<'_>) {
    match message {
        Message::Notification { method, params } if method == "notifications/cancelled" => {
            session.in_flight.cancel(params);
        }
        Message::Response { id, answer } => session.session.pending.receive(&id, answer),
        Message::Notification { .. } | Message::Request(_) => {}
    }
}

/// A batch, which only the revision 2025-03-26 has.
pub(super) async fn post_batch(
    shared: &Arc<Shared>,
    peer: &Peer,
    headers: &HeaderMap,
    text: &str,
) -> Response<AnswerBody> {
    let session = match session_of(shared, peer, headers, None) {
        Ok(session) => session,
        Err(refused) => return *refused,
    };
    if session.session.version() != "2025-03-26" {
        return bad_request(None, "only the revision 2025-03-26 has batches");
    }
    let mut logs = Vec::new();
    let mut answers = Vec::new();
    for message in message::read(text) {
        match message {
            Ok(Message::Request(raw)) => match begin(shared, &session, &raw) {
                Ok(log) => logs.push(log),
                Err(error) => answers.push(write::error(Some(&raw.id), &error)),
            },
            Ok(other) => take(&session, other),
            Err(Invalid { id, error }) => answers.push(write::error(id.as_ref(), &error)),
        }
    }
    if logs.is_empty() {
        return match answers.is_empty() {
            true => empty(StatusCode::ACCEPTED),
            false => json(StatusCode::OK, format!("[{}]", answers.join(","))),
        };
    }
    // What is asked meanwhile has to reach the client, so it is a stream.
    let (response, pieces) = answer::stream(MAX_PIECES);
    tokio::spawn(async move {
        for answer in answers {
            let _ = pieces.send(answer::event(None, &answer)).await;
        }
        join_all(logs.into_iter().map(|(_, log)| forward(log, &pieces))).await;
    });
    response
}

/// Sends all messages of a stream, until it or the client is gone.
async fn forward(log: Arc<EventLog>, pieces: &mpsc::Sender<Bytes>) {
    let mut count = 0;
    loop {
        let state = tokio::select! {
            state = log.wait(count) => state,
            () = pieces.closed() => return,
        };
        while let Some(message) = log.after(count) {
            if pieces.send(answer::event(None, &message)).await.is_err() {
                return;
            }
            count += 1;
        }
        if state.is_over && log.after(count).is_none() {
            return;
        }
    }
}

async fn initialize(
    shared: &Arc<Shared>,
    peer: &Peer,
    raw: &RawRequest<'_>,
) -> Response<AnswerBody> {
    let begun = match Request::read(Era::Legacy, &raw.method, raw.params) {
        Ok(Request::Initialize(begun)) => begun,
        Ok(_) => return bad_request(Some(&raw.id), "it is no `initialize`"),
        Err(error) => return refusal(StatusCode::OK, Some(&raw.id), &error),
    };
    let Some(id) = shared.server.seal.id() else {
        let error = RpcError::new(INTERNAL, "the system has no random numbers");
        return refusal(StatusCode::INTERNAL_SERVER_ERROR, Some(&raw.id), &error);
    };
    let id = hex::encode(id);
    let (session, result) = Session::begin(&shared.server, id.clone(), peer.clone(), begun);
    let session = Arc::new(HttpSession {
        session,
        used: Mutex::new(Instant::now()),
        is_in_use: AtomicBool::new(false),
        in_flight: InFlight::default(),
        logs: Mutex::default(),
        next_stream: AtomicU64::new(0),
        news: watch::Sender::new(0),
    });
    let (is_added, ended) = shared.sessions.add(session);
    for session in ended {
        session.end(&shared.server).await;
    }
    if !is_added {
        let error = RpcError::new(UNAVAILABLE, "there are too many sessions");
        return refusal(StatusCode::SERVICE_UNAVAILABLE, Some(&raw.id), &error);
    }
    let mut response = json(StatusCode::OK, write::response(&raw.id, &result));
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// A request in flight. However it ends, even before it has begun, it is no longer one.
struct RequestGuard {
    session: Arc<HttpSession>,
    /// Nothing once it is answered.
    id: Option<RequestId>,
}

impl RequestGuard {
    /// It is to be answered: its client may give its id to another request as soon as it is.
    fn leave(&mut self) {
        if let Some(id) = self.id.take() {
            self.session.in_flight.leave(&id);
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Begins a request. It goes on whether or not its client waits: a client of this era says when it does not.
fn begin(
    shared: &Arc<Shared>,
    session: &Arc<HttpSession>,
    raw: &RawRequest<'_>,
) -> Result<(u64, Arc<EventLog>), RpcError> {
    let meta = raw.meta.legacy()?;
    let request = Request::read(Era::Legacy, &raw.method, raw.params)?;
    let most = shared.server.settings.max_in_flight;
    session.in_flight.begin(raw.id.clone(), most, || {
        let (number, log) = session.open();
        let guard = RequestGuard { session: session.clone(), id: Some(raw.id.clone()) };
        let (outlet, messages) = Outlet::new(MAX_QUEUED);
        let told = EventLogWriter { messages: Some(messages), log: log.clone() };
        let (server, id) = (shared.server.clone(), raw.id.clone());
        let task = tokio::spawn(carry_out(server, id, request, meta, guard, outlet, told));
        (task.abort_handle(), (number, log))
    })
}

/// What is told about a request before its answer.
struct EventLogWriter {
    /// Nothing once all was told.
    messages: Option<mpsc::Receiver<String>>,
    log: Arc<EventLog>,
}

impl EventLogWriter {
    /// Waits for a message, and keeps it.
    async fn keep_next(&mut self) {
        let Some(messages) = &mut self.messages else { return std::future::pending().await };
        match messages.recv().await {
            Some(message) => self.log.push(message, false),
            None => self.messages = None,
        }
    }

    /// Keeps what was told, and then the answer.
    fn finish(mut self, answer: String) {
        if let Some(mut messages) = self.messages.take() {
            while let Ok(message) = messages.try_recv() {
                self.log.push(message, false);
            }
        }
        self.log.push(answer, true);
    }
}

/// Where a request is given up, the plugins that it asked let go of it a little later, and take back what they have
/// asked. That is told as well, before the stream ends.
impl Drop for EventLogWriter {
    fn drop(&mut self) {
        let (messages, log) = (self.messages.take(), self.log.clone());
        let (Some(mut messages), Ok(runtime)) = (messages, tokio::runtime::Handle::try_current())
        else {
            return log.end();
        };
        runtime.spawn(async move {
            let rest = async {
                while let Some(message) = messages.recv().await {
                    log.push(message, false);
                }
            };
            let _ = tokio::time::timeout(MAX_LETTING_GO, rest).await;
            log.end();
        });
    }
}

/// Carries out a request, and keeps what its client is told.
async fn carry_out(
    server: Arc<Inner>,
    id: RequestId,
    request: Request,
    meta: RequestMeta,
    mut guard: RequestGuard,
    outlet: Outlet,
    mut told: EventLogWriter,
) {
    let session = guard.session.clone();
    let result = {
        let mut answering = std::pin::pin!(session.session.answer(&server, request, meta, outlet));
        loop {
            tokio::select! {
                biased;
                () = told.keep_next() => {}
                result = &mut answering => break result,
            }
        }
    };
    let message = match result {
        Ok(result) => write::response(&id, &result),
        Err(error) => write::error(Some(&id), &error),
    };
    guard.leave();
    told.finish(message);
}

/// Answers with a message where that is all there is to tell, and else with a stream.
async fn answer(
    shared: &Arc<Shared>,
    session: &Arc<HttpSession>,
    number: u64,
    log: Arc<EventLog>,
) -> Response<AnswerBody> {
    let state = tokio::time::timeout(STREAM_AFTER, log.wait(0)).await;
    if let Ok(state) = state
        && state.is_over
        && state.count <= 1
    {
        session.close(number);
        return match log.after(0) {
            Some(message) => json(StatusCode::OK, message.to_string()),
            // It was cancelled: nothing is sent of it.
            None => empty(StatusCode::ACCEPTED),
        };
    }
    stream(shared, session, number, log, 0)
}

/// Streams what there is to tell after so many messages.
fn stream(
    shared: &Arc<Shared>,
    session: &HttpSession,
    number: u64,
    log: Arc<EventLog>,
    mut count: usize,
) -> Response<AnswerBody> {
    let (response, pieces) = answer::stream(MAX_PIECES);
    let keep_alive = shared.settings.keep_alive;
    let until = tokio::time::Instant::now() + shared.settings.stream_time;
    let mut closing = shared.closing.clone();
    // Clients of earlier revisions take an event without a message for a message.
    let is_primed = session.session.version() >= PRIMING_SINCE;
    tokio::spawn(async move {
        if is_primed {
            let first = answer::priming(&format!("{number}-{count}"), RETRY);
            if pieces.send(first).await.is_err() {
                return;
            }
        }
        loop {
            while let Some(message) = log.after(count) {
                let event = answer::event(Some(&format!("{number}-{}", count + 1)), &message);
                if pieces.send(event).await.is_err() {
                    return;
                }
                count += 1;
            }
            if log.is_over() && log.after(count).is_none() {
                return;
            }
            tokio::select! {
                _ = log.wait(count) => {}
                () = pieces.closed() => return,
                // The client comes back for the rest.
                () = tokio::time::sleep_until(until) => return,
                () = closed(&mut closing), if log.is_over() => return,
                () = tokio::time::sleep(keep_alive) => {
                    if pieces.send(KEEP_ALIVE).await.is_err() {
                        return;
                    }
                }
            }
        }
    });
    response
}

/// GET: the rest of a stream that was cut, or news of the session.
pub(super) fn get(shared: &Arc<Shared>, peer: &Peer, headers: &HeaderMap) -> Response<AnswerBody> {
    // In the newer era there is nothing to get.
    if !has_session(headers) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "there is no session to get news of\n");
    }
    if !body::accepts(headers, "text/event-stream") {
        return text(StatusCode::NOT_ACCEPTABLE, "news are text/event-stream\n");
    }
    let session = match session_of(shared, peer, headers, None) {
        Ok(session) => session,
        Err(refused) => return *refused,
    };
    // One that is no text names no stream.
    let last = headers.get(LAST_EVENT).map(|id| id.to_str().unwrap_or_default());
    let Some(last) = last else { return news(shared, session) };
    let known = last.split_once('-').and_then(|(number, count)| {
        let (number, count): (u64, usize) = (number.parse().ok()?, count.parse().ok()?);
        Some((number, lock(&session.logs).get(&number).cloned()?, count))
    });
    match known {
        Some((number, log, count)) => stream(shared, &session, number, log, count),
        // A stream of news in its place would end the one that the client has.
        None => bad_request(None, "nothing is left of the stream that Last-Event-ID names"),
    }
}

/// Waits until another stream of news takes the place of this one.
async fn changed(news: &mut watch::Receiver<u64>, mine: u64) {
    let _ = news.wait_for(|news| *news != mine).await;
}

/// Streams news of a session. Another such stream ends.
fn news(shared: &Arc<Shared>, session: Arc<HttpSession>) -> Response<AnswerBody> {
    let (response, pieces): (_, mpsc::Sender<Bytes>) = answer::stream(MAX_PIECES);
    session.news.send_modify(|news| *news += 1);
    let mine = *session.news.borrow();
    let (server, keep_alive) = (shared.server.clone(), shared.settings.keep_alive);
    let mut closing = shared.closing.clone();
    tokio::spawn(async move {
        let (outlet, mut messages) = Outlet::new(MAX_QUEUED);
        let mut replaced = session.news.subscribe();
        let mut telling = std::pin::pin!(session.session.tell_changes(&server, &outlet));
        // So that the client sees at once that it is connected.
        let mut piece = KEEP_ALIVE;
        loop {
            if pieces.send(piece).await.is_err() {
                return;
            }
            piece = tokio::select! {
                Some(message) = messages.recv() => answer::event(None, &message),
                () = &mut telling => return,
                () = pieces.closed() => return,
                () = changed(&mut replaced, mine) => return,
                () = closed(&mut closing) => return,
                () = tokio::time::sleep(keep_alive) => KEEP_ALIVE,
            };
        }
    });
    response
}

/// DELETE: ends a session.
pub(super) async fn delete(
    shared: &Arc<Shared>,
    peer: &Peer,
    headers: &HeaderMap,
) -> Response<AnswerBody> {
    if !has_session(headers) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "there is no session to end\n");
    }
    let session = match session_of(shared, peer, headers, None) {
        Ok(session) => session,
        Err(refused) => return *refused,
    };
    lock(&shared.sessions.all).remove(&session.session.id);
    session.end(&shared.server).await;
    empty(StatusCode::NO_CONTENT)
}
