//! One client over a pair of streams, one message a line, as over standard input and output. Both eras may be spoken on
//! them: a request of the modern era says so itself, and `initialize` begins the one legacy session.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tenon_repoll::Repolled;
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinSet};

use crate::client::Outlet;
use crate::in_flight::InFlight;
use crate::legacy_session::Session;
use crate::lines::{Line, Lines};
use crate::modern::ModernRequest;
use crate::offer::Peer;
use crate::protocol::error::{INVALID_REQUEST, RpcError};
use crate::protocol::message::{self, Invalid, Message, RawRequest, RequestId};
use crate::protocol::request::Request;
use crate::protocol::version::Era;
use crate::protocol::write;
use crate::server::{Inner, Server};

/// The most messages that wait to be written. Those that may get lost do so when there are more.
const MAX_QUEUED: usize = 256;

/// How long the last messages may take to be written.
const FLUSH_TIME: Duration = Duration::from_secs(2);

impl Server {
    /// Serves one client over a pair of streams, one message a line, until its input ends or `stop` is done. What is in
    /// flight then has the time of [`Settings::drain`](crate::Settings::drain).
    ///
    /// ```no_run
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), Box<dyn std::error::Error>> {
    /// use tenon_serve::{Server, Settings};
    /// use tokio::io::BufReader;
    ///
    /// let server = Server::new(platform, Settings::default())?;
    /// let (input, output) = tokio::io::duplex(1 << 16);
    /// server.serve_lines(None, BufReader::new(input), output, std::future::pending()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the streams cannot be read or written, or there is no profile of this name.
    pub async fn serve_lines(
        &self,
        profile: Option<&str>,
        input: impl AsyncBufRead + Unpin,
        output: impl AsyncWrite + Send + Unpin + 'static,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let unknown =
            || io::Error::new(io::ErrorKind::NotFound, "there is no profile of this name");
        let profile = self.0.profile(profile).ok_or_else(unknown)?;
        let (outlet, messages) = Outlet::new(MAX_QUEUED);
        let mut writing = tokio::spawn(write_all(messages, output));
        let mut conversation = Conversation {
            server: self.0.clone(),
            peer: Peer { principal: "".into(), is_known: false, name: None, profile },
            outlet,
            session: None,
            in_flight: Arc::default(),
            ids: HashMap::new(),
            tasks: JoinSet::new(),
            closing: watch::Sender::new(false),
        };
        let mut lines = Lines::new(input, self.0.settings.max_message);
        let mut stop = std::pin::pin!(stop);
        let ended = loop {
            tokio::select! {
                line = lines.next() => {
                    conversation.note_ended();
                    let received = async {
                        match line {
                            Ok(Some(Line::Whole(line))) => conversation.receive(&line).await,
                            Ok(Some(Line::TooLong)) => conversation.refuse_long().await,
                            Ok(None) => return Some(Ok(())),
                            Err(error) => return Some(Err(error)),
                        }
                        None
                    };
                    // A client that does not read its messages must not keep the server from its end.
                    tokio::select! {
                        ended = received => if let Some(ended) = ended { break ended },
                        () = &mut stop => break Ok(()),
                    }
                }
                written = &mut writing => return written.map_err(io::Error::other)?,
                () = &mut stop => break Ok(()),
            }
        };
        conversation.drain(self.0.settings.drain).await;
        drop(conversation);
        match tokio::time::timeout(FLUSH_TIME, writing).await {
            Ok(written) => written.map_err(io::Error::other)??,
            Err(_) => tracing::warn!("the client does not read its last messages"),
        }
        ended
    }
}

/// Writes messages, one a line, until there are no more.
async fn write_all(
    mut messages: mpsc::Receiver<String>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    while let Some(mut message) = messages.recv().await {
        message.push('\n');
        output.write_all(message.as_bytes()).await?;
        if messages.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

/// What goes on with a client.
struct Conversation {
    server: Arc<Inner>,
    peer: Peer,
    outlet: Outlet,
    session: Option<Arc<Session>>,
    in_flight: Arc<InFlight>,
    /// The requests, by their tasks.
    ids: HashMap<Id, RequestId>,
    tasks: JoinSet<()>,
    /// Ends streams of news.
    closing: watch::Sender<bool>,
}

impl Conversation {
    async fn receive(&mut self, line: &[u8]) {
        let Ok(text) = std::str::from_utf8(line) else {
            let error = RpcError::new(crate::protocol::error::PARSE, "the message is not UTF-8");
            return self.refuse(None, &error).await;
        };
        if text.trim().is_empty() {
            return;
        }
        for message in message::read(text) {
            match message {
                Ok(Message::Request(request)) => self.request(request).await,
                Ok(Message::Notification { method, params }) => {
                    if method == "notifications/cancelled" {
                        // The client wants no answer any more, and gets none.
                        self.in_flight.cancel(params);
                    }
                }
                Ok(Message::Response { id, answer }) => {
                    if let Some(session) = &self.session {
                        session.pending.receive(&id, answer);
                    }
                }
                Err(Invalid { id, error }) => self.refuse(id.as_ref(), &error).await,
            }
        }
    }

    async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        self.outlet.send(write::error(id, error)).await;
    }

    async fn refuse_long(&self) {
        let most = self.server.settings.max_message;
        let message = format!("the message is longer than {most} bytes");
        self.refuse(None, &RpcError::new(INVALID_REQUEST, message)).await;
    }

    async fn request(&mut self, raw: RawRequest<'_>) {
        let id = raw.id.clone();
        if let Err(error) = self.begin(raw).await {
            self.refuse(Some(&id), &error).await;
        }
    }

    /// Begins to answer a request, or answers one that takes no time.
    async fn begin(&mut self, raw: RawRequest<'_>) -> Result<(), RpcError> {
        self.in_flight.check(&raw.id, self.server.settings.max_in_flight)?;
        let is_modern = raw.meta.version().is_some()
            || matches!(&*raw.method, "server/discover" | "subscriptions/listen");
        let (server, peer, outlet) = (self.server.clone(), self.peer.clone(), self.outlet.clone());
        let in_flight = self.in_flight.clone();
        let id = raw.id.clone();
        if is_modern {
            let mut request = ModernRequest::read(&raw, |_| Ok(()), || Ok(()))?;
            let closing = self.closing.subscribe();
            self.spawn(id.clone(), async move {
                let result = match &mut request.request {
                    Request::Listen(filter) => {
                        let filter = std::mem::take(filter);
                        server.listen(&peer, &id, filter, &outlet, closing).await
                    }
                    _ => server.answer_modern(&peer, request, outlet.clone()).await,
                };
                reply(&in_flight, &outlet, &id, result).await;
            })?;
            return Ok(());
        }
        if let Some(session) = &self.session {
            let session = session.clone();
            let meta = raw.meta.legacy()?;
            let request = Request::read(Era::Legacy, &raw.method, raw.params)?;
            self.spawn(id.clone(), async move {
                let result = session.answer(&server, request, meta, outlet.clone()).await;
                reply(&in_flight, &outlet, &id, result).await;
            })?;
            return Ok(());
        }
        match Request::read(Era::Legacy, &raw.method, raw.params)? {
            Request::Initialize(begun) => {
                let no_random =
                    || RpcError::new(crate::protocol::error::INTERNAL, "no random numbers");
                let session_id = hex::encode(self.server.seal.id().ok_or_else(no_random)?);
                let (session, result) = Session::begin(&server, session_id, peer, begun);
                let session = Arc::new(session);
                self.session = Some(session.clone());
                self.outlet.send(write::response(&id, &result)).await;
                self.tasks.spawn(async move { session.tell_changes(&server, &outlet).await });
                Ok(())
            }
            Request::Ping => {
                self.outlet.send(write::response(&id, "{}")).await;
                Ok(())
            }
            _ => Err(RpcError::new(
                INVALID_REQUEST,
                "no session has begun: send `initialize` first, or name the revision in `_meta`",
            )),
        }
    }

    fn spawn(
        &mut self,
        id: RequestId,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), RpcError> {
        let (tasks, ids, of_task) = (&mut self.tasks, &mut self.ids, id.clone());
        self.in_flight.begin(id, self.server.settings.max_in_flight, || {
            let handle = tasks.spawn(Repolled::new(task));
            ids.insert(handle.id(), of_task);
            (handle, ())
        })
    }

    /// Notes which tasks have ended. Nobody waits for that: a task that woke this one with its end would do so beside the
    /// one that writes its answer, which another thread would then run, and that takes longer than most requests.
    fn note_ended(&mut self) {
        while let Some(done) = self.tasks.try_join_next_with_id() {
            self.over(done.map_or_else(|error| error.id(), |(id, ())| id));
        }
    }

    /// A task has ended.
    fn over(&mut self, task: Id) {
        if let Some(id) = self.ids.remove(&task) {
            self.in_flight.ended(&id, task);
        }
    }

    /// Waits for what is in flight. Streams of news end at once, and so do questions: nobody answers any more.
    async fn drain(&mut self, most: Duration) {
        self.closing.send_replace(true);
        if let Some(session) = &self.session {
            session.pending.close();
        }
        let all = async {
            // What is answered may not be sent yet.
            while !self.ids.is_empty() {
                let Some(done) = self.tasks.join_next_with_id().await else { return };
                let id = done.map_or_else(|error| error.id(), |(id, ())| id);
                self.over(id);
            }
        };
        if tokio::time::timeout(most, all).await.is_err() {
            tracing::warn!("{} requests were given up", self.ids.len());
        }
        self.tasks.shutdown().await;
        if let Some(session) = self.session.take() {
            let (platform, id) = (self.server.platform.clone(), session.id.clone());
            drop(session);
            if let Err(error) = platform.end_session(&id).await {
                tracing::warn!("the state of the session stays: {error}");
            }
        }
    }
}

/// Answers a request. Its client may give its id to another one as soon as it is answered.
async fn reply(
    in_flight: &InFlight,
    outlet: &Outlet,
    id: &RequestId,
    result: Result<String, RpcError>,
) {
    in_flight.leave(id);
    let message = match result {
        Ok(result) if result.is_empty() => return,
        Ok(result) => write::response(id, &result),
        Err(error) => write::error(Some(id), &error),
    };
    outlet.send(message).await;
}
