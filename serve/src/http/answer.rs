//! Responses of HTTP, and the events of streams.

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

use super::memory_budget::MemoryPermit;
use crate::protocol::error::RpcError;
use crate::protocol::message::RequestId;
use crate::protocol::write;

/// What a response has: all of it, or a stream.
pub(super) struct AnswerBody {
    content: AnswerContent,
    /// What the message takes that is answered, until it is.
    _memory: Option<MemoryPermit>,
}

enum AnswerContent {
    Whole(Full<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

/// A response in place of what was asked for.
pub(super) type Refused = Box<Response<AnswerBody>>;

/// The header with which proxies are told not to gather what is streamed.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

impl AnswerBody {
    /// The same, with what the message takes that it answers.
    pub(super) fn keeping(self, memory: MemoryPermit) -> Self {
        Self { _memory: Some(memory), ..self }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.content {
            AnswerContent::Whole(whole) => Pin::new(whole).poll_frame(context),
            AnswerContent::Stream(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            AnswerContent::Whole(whole) => whole.is_end_stream(),
            AnswerContent::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            AnswerContent::Whole(whole) => whole.size_hint(),
            AnswerContent::Stream(_) => SizeHint::default(),
        }
    }
}

fn whole(
    status: StatusCode,
    kind: Option<&'static str>,
    body: impl Into<Bytes>,
) -> Response<AnswerBody> {
    let content = AnswerContent::Whole(Full::new(body.into()));
    let mut response = Response::new(AnswerBody { content, _memory: None });
    *response.status_mut() = status;
    if let Some(kind) = kind {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}

/// Plain text.
pub(super) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<AnswerBody> {
    whole(status, Some("text/plain; charset=utf-8"), text)
}

/// Nothing but a status.
pub(super) fn empty(status: StatusCode) -> Response<AnswerBody> {
    whole(status, None, Bytes::new())
}

/// A message.
pub(super) fn json(status: StatusCode, message: String) -> Response<AnswerBody> {
    whole(status, Some("application/json"), message)
}

/// An error of the protocol, with a status.
pub(super) fn refusal(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &RpcError,
) -> Response<AnswerBody> {
    json(status, write::error(id, error))
}

/// A stream of events, and where its pieces go. It holds so many pieces.
pub(super) fn stream(most: usize) -> (Response<AnswerBody>, mpsc::Sender<Bytes>) {
    let (sender, receiver) = mpsc::channel(most);
    let content = AnswerContent::Stream(receiver);
    let mut response = Response::new(AnswerBody { content, _memory: None });
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    (response, sender)
}

/// A message as an event.
pub(super) fn event(id: Option<&str>, message: &str) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: message\ndata: {message}\n\n").into()
}

/// An event without a message, by which a client can go on where it was, and when to come back.
pub(super) fn priming(id: &str, retry: std::time::Duration) -> Bytes {
    format!("id: {id}\nretry: {}\ndata: \n\n", retry.as_millis()).into()
}

/// A comment, which clients ignore.
pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");
