//! The bodies of requests and responses, as they stream: bounded in length, and in time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use wasmtime_wasi_http::{Error, WasiBody};

use super::error;

/// The body of a request. What the plugin sends is its own, and only counted.
pub(super) struct LimitedBody {
    body: WasiBody,
    left: u64,
    most: u64,
}

impl LimitedBody {
    pub(super) fn new(body: WasiBody, most: u64) -> Result<Self, Error> {
        match body.size_hint().lower() > most {
            true => Err(Error::HttpRequestBodySize(Some(most))),
            false => Ok(Self { body, left: most, most }),
        }
    }
}

impl Body for LimitedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && !count(&mut self.left, frame)
        {
            return Poll::Ready(Some(Err(Error::HttpRequestBodySize(Some(self.most)))));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response. When it is over, for whatever reason, so is its connection.
pub(super) struct ResponseBody {
    body: Option<Incoming>,
    left: u64,
    most: u64,
    between_bytes: Duration,
    /// How long the server is still waited for, while it is: the plugin may take its time.
    waiting: Option<Pin<Box<Sleep>>>,
    deadline: Pin<Box<Sleep>>,
}

impl ResponseBody {
    pub(super) fn new(
        body: Incoming,
        most: u64,
        between_bytes: Duration,
        deadline: Instant,
    ) -> Self {
        let deadline = Box::pin(sleep_until(deadline));
        Self { body: Some(body), left: most, most, between_bytes, waiting: None, deadline }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        if self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Error::HttpResponseTimeout)));
        }
        let Poll::Ready(frame) = Pin::new(body).poll_frame(context) else {
            let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(self.between_bytes)));
            ready!(waiting.as_mut().poll(context));
            return Poll::Ready(Some(Err(Error::ConnectionReadTimeout)));
        };
        self.waiting = None;
        Poll::Ready(frame.map(|frame| match frame {
            Ok(frame) if count(&mut self.left, &frame) => Ok(frame),
            Ok(_) => Err(Error::HttpResponseBodySize(Some(self.most))),
            Err(error) => Err(error::of_hyper(error)),
        }))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(self.poll(context));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// Takes a frame off what is left. Says whether there was enough.
fn count(left: &mut u64, frame: &Frame<Bytes>) -> bool {
    let length = frame.data_ref().map_or(0, |data| data.len() as u64);
    let rest = left.checked_sub(length);
    *left = rest.unwrap_or(0);
    rest.is_some()
}
