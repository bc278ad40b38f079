//! The standard output and error of a guest: lines for the log, and the last words of one that
//! trapped.
//!
//! A guest that panics writes why to its standard error before it traps, so the writes are taken at
//! once and not by a task that may come too late.

use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tenon_types::LogLevel;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::observe::PluginLog;

/// How much of the standard error is kept.
const MAX_KEPT_BYTES: usize = 4096;

/// The longest line that is logged whole.
const MAX_LINE_BYTES: usize = 2048;

/// Both streams of one guest.
#[derive(Clone)]
pub(crate) struct Console {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    log: Arc<PluginLog>,
    /// The unfinished line of each stream.
    lines: [Vec<u8>; 2],
    /// The last lines that were written to standard error, without secrets: what is left of a secret whose
    /// beginning is gone would not be known for one.
    tail: String,
}

/// One of the two.
#[derive(Clone)]
pub(super) struct Writer {
    console: Console,
    stream: StandardStream,
}

#[derive(Clone, Copy, PartialEq)]
enum StandardStream {
    Out,
    Err,
}

impl Console {
    pub(super) fn new(log: Arc<PluginLog>) -> Self {
        let inner = Inner { log, lines: [Vec::new(), Vec::new()], tail: String::new() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    pub(super) fn stdout(&self) -> Writer {
        Writer { console: self.clone(), stream: StandardStream::Out }
    }

    pub(super) fn stderr(&self) -> Writer {
        Writer { console: self.clone(), stream: StandardStream::Err }
    }

    /// The last of what was written to standard error, as text.
    pub(crate) fn tail(&self) -> String {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let unfinished = inner.without_secrets(&inner.lines[StandardStream::Err as usize]);
        let tail = [inner.tail.as_str(), &unfinished].concat();
        last(&tail).trim().to_string()
    }
}

/// As much of a text as is kept.
fn last(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_KEPT_BYTES))..]
}

impl Inner {
    fn write(&mut self, stream: StandardStream, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let line = &mut self.lines[stream as usize];
            let room = MAX_LINE_BYTES.saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(line);
                let line = self.without_secrets(&line);
                let (level, name) = match stream {
                    StandardStream::Out => (LogLevel::Debug, "stdout"),
                    StandardStream::Err => (LogLevel::Info, "stderr"),
                };
                let message = format!("{name}: {}", line.trim_end());
                self.log.write(level, &message, &[]);
                if stream == StandardStream::Err {
                    self.tail.push_str(&line);
                    self.tail.push('\n');
                    let excess = self.tail.len() - last(&self.tail).len();
                    self.tail.drain(..excess);
                }
            }
        }
    }

    /// What of a line may be shown.
    fn without_secrets(&self, line: &[u8]) -> String {
        match line.len() >= MAX_LINE_BYTES {
            true => self.log.beginning_without_secrets(line),
            false => {
                let line = String::from_utf8_lossy(line);
                self.log.without_secrets(line.trim_end_matches(['\r', '\n'])).into_owned()
            }
        }
    }
}

impl Writer {
    fn take(&self, bytes: &[u8]) {
        let mut inner = self.console.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.write(self.stream, bytes);
    }
}

impl IsTerminal for Writer {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Writer {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for Writer {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 << 10)
    }
}

#[async_trait::async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {}
}
