//! How much a confined server sends and receives.

use metrics::{Counter, Unit, counter, describe_counter};
use serde::Serialize;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes of confined servers: labels `plugin` and `direction` (`sent` or `received`).
const BYTES: &str = "tenon_server_network_bytes_total";

/// How much a confined server has sent to the host's proxy and received from it, since it was loaded, over all of its
/// starts. What is said to the proxy itself is counted with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct NetworkTraffic {
    /// Bytes that it has sent.
    pub sent_bytes: u64,
    /// Bytes that it has received.
    pub received_bytes: u64,
}

/// Tells the recorder of metrics what is measured.
pub(crate) fn describe() {
    describe_counter!(BYTES, Unit::Bytes, "What confined servers send and receive, by plugin.");
}

/// Counts the traffic of one server.
pub(crate) struct ServerTraffic {
    sent: DirectionCounter,
    received: DirectionCounter,
}

struct DirectionCounter {
    bytes: AtomicU64,
    metric: Counter,
}

impl DirectionCounter {
    fn new(plugin: &str, direction: &'static str) -> Self {
        let metric = counter!(BYTES, "plugin" => plugin.to_string(), "direction" => direction);
        Self { bytes: AtomicU64::new(0), metric }
    }

    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.metric.increment(bytes as u64);
    }
}

impl ServerTraffic {
    pub(crate) fn new(plugin: &str) -> Arc<Self> {
        let [sent, received] = ["sent", "received"].map(|of| DirectionCounter::new(plugin, of));
        Arc::new(Self { sent, received })
    }

    /// What was counted so far.
    pub(crate) fn read(&self) -> NetworkTraffic {
        NetworkTraffic {
            sent_bytes: self.sent.bytes.load(Ordering::Relaxed),
            received_bytes: self.received.bytes.load(Ordering::Relaxed),
        }
    }

    /// A connection of the server's, counted.
    pub(super) fn counted<S>(self: Arc<Self>, stream: S) -> CountedStream<S> {
        CountedStream { stream, traffic: self }
    }
}

/// The host's end of a connection of the server's.
pub(super) struct CountedStream<S> {
    stream: S,
    traffic: Arc<ServerTraffic>,
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.traffic.sent.add(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.traffic.received.add(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
