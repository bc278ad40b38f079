//! The lines of a child's standard output.

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::ChildStdout;

/// How much is read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// How much of a line that is too long is kept.
const MAX_PREFIX_BYTES: usize = 4 << 10;

/// The most events that are given at a time.
const MAX_BATCH_LINES: usize = 256;

/// The most that is read of what a child has left in its pipe, and more than that holds.
const MAX_LEFT_BYTES: u64 = 1 << 20;

/// What happened to a child, in order.
#[cfg_attr(test, derive(Debug))]
pub(crate) enum ChildEvent {
    /// A line of its standard output, without the line end.
    Line(Vec<u8>),
    /// A line longer than the host's cap. It was drained and thrown away but for its beginning.
    Oversized(OversizedLine),
    /// The standard output was closed though the process lives. Nothing more can come.
    Closed,
    /// The process has ended. Nothing more can come.
    Exited(ExitStatus),
}

/// What is left of a line that was too long.
#[cfg_attr(test, derive(Debug))]
pub(crate) struct OversizedLine {
    /// Its first bytes.
    pub(crate) prefix: Vec<u8>,
    /// How many bytes it had.
    pub(crate) length: u64,
}

/// How a process ended: by a code, by a signal, or unknown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExitStatus {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

/// Cuts a stream into lines. Waiting may be given up and begun again at any point without losing a
/// byte.
pub(super) struct LineReader<R = ChildStdout> {
    reader: R,
    cap: usize,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    /// Of a line that is too long: its beginning, and how long it is so far.
    oversized: Option<OversizedLine>,
    /// How many bytes were read.
    read: u64,
    /// How many were when the child was first known to have ended.
    read_before_end: Option<u64>,
    closed: bool,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(reader: R, cap: usize) -> Self {
        let buffer = BytesMut::new();
        Self {
            reader,
            cap,
            buffer,
            searched: 0,
            oversized: None,
            read: 0,
            read_before_end: None,
            closed: false,
            ended: false,
        }
    }

    /// The next lines: all that are there, or else the first that comes. Empty at the end of the
    /// stream.
    pub(super) async fn next(&mut self) -> Vec<ChildEvent> {
        loop {
            let events = self.cut();
            if !events.is_empty() || self.closed {
                return events;
            }
            self.buffer.reserve(CHUNK_BYTES);
            match self.reader.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => {
                    self.closed = true;
                    return self.last().into_iter().collect();
                }
                Ok(read) => self.read += read as u64,
            }
        }
    }

    /// Whether there can still be lines of a child that has ended. Its own children may write on for
    /// ever.
    pub(super) fn may_have_more(&mut self) -> bool {
        self.read - *self.read_before_end.get_or_insert(self.read) <= MAX_LEFT_BYTES
    }

    /// Whether the end was reported.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Marks the end as reported.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Takes whole lines out of the buffer.
    fn cut(&mut self) -> Vec<ChildEvent> {
        let mut events = Vec::new();
        while events.len() < MAX_BATCH_LINES {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                self.drain_oversized();
                break;
            };
            let line = self.take_line(self.searched + found);
            self.searched = 0;
            events.push(self.finish(line));
        }
        events
    }

    /// Takes a line of this length out of the buffer, and its end. A line is copied, so that there is
    /// one buffer for all that is read; but a long one keeps its memory, and what comes after it is
    /// copied, which is little.
    fn take_line(&mut self, length: usize) -> Vec<u8> {
        if length < CHUNK_BYTES {
            let line = self.buffer[..length].to_vec();
            self.buffer.advance(length + 1);
            return line;
        }
        let rest = BytesMut::from(&self.buffer[length + 1..]);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.truncate(length);
        line.into()
    }

    /// The event for a line whose end was found.
    fn finish(&mut self, mut line: Vec<u8>) -> ChildEvent {
        match self.oversized.take() {
            Some(mut oversized) => {
                oversized.length += line.len() as u64;
                ChildEvent::Oversized(oversized)
            }
            None if line.len() > self.cap => ChildEvent::Oversized(OversizedLine {
                prefix: line[..line.len().min(MAX_PREFIX_BYTES)].to_vec(),
                length: line.len() as u64,
            }),
            None => {
                line.truncate(line.strip_suffix(b"\r").unwrap_or(&line).len());
                ChildEvent::Line(line)
            }
        }
    }

    /// Throws away what a line that is already too long has in the buffer.
    fn drain_oversized(&mut self) {
        if let Some(oversized) = &mut self.oversized {
            oversized.length += self.buffer.len() as u64;
        } else if self.buffer.len() > self.cap {
            self.oversized = Some(OversizedLine {
                prefix: self.buffer[..self.buffer.len().min(MAX_PREFIX_BYTES)].to_vec(),
                length: self.buffer.len() as u64,
            });
        } else {
            return;
        }
        self.buffer.clear();
        self.searched = 0;
    }

    /// What stood after the last line end.
    fn last(&mut self) -> Option<ChildEvent> {
        let rest = self.buffer.split();
        self.searched = 0;
        (!rest.is_empty() || self.oversized.is_some()).then(|| self.finish(rest.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8], cap: usize) -> Vec<String> {
        let mut lines = LineReader::new(input, cap);
        let mut seen = Vec::new();
        loop {
            let events = lines.next().await;
            if events.is_empty() {
                return seen;
            }
            seen.extend(events.into_iter().map(|event| match event {
                ChildEvent::Line(line) => String::from_utf8(line).unwrap(),
                ChildEvent::Oversized(OversizedLine { prefix, length }) => {
                    format!("<{} of {length}>", String::from_utf8(prefix).unwrap())
                }
                other => format!("{other:?}"),
            }));
        }
    }

    // MCP.md: A6
    #[tokio::test]
    async fn lines_end_with_or_without_a_carriage_return_and_at_the_end_of_the_stream() {
        assert_eq!(all(b"one\r\n\ntwo\nthree", 100).await, ["one", "", "two", "three"]);
        assert!(all(b"", 100).await.is_empty());
    }

    // MCP.md: A7
    #[tokio::test]
    async fn a_line_over_the_cap_is_reported_by_its_beginning_and_costs_no_other() {
        assert_eq!(all(b"abcdef\nok\n", 5).await, ["<abcdef of 6>", "ok"]);
        let long = vec![b'x'; 3 * CHUNK_BYTES];
        let input = [&long[..], b"\nok\n"].concat();
        let seen = all(&input, CHUNK_BYTES).await;
        assert_eq!(seen[0], format!("<{} of {}>", "x".repeat(MAX_PREFIX_BYTES), 3 * CHUNK_BYTES));
        assert_eq!(seen[1..], ["ok"]);
    }

    #[tokio::test]
    async fn a_long_line_takes_nothing_of_those_around_it() {
        let long = "x".repeat(2 * CHUNK_BYTES);
        let input = format!("one\n{long}\r\ntwo\n\n{long}\nthree");
        let seen = all(input.as_bytes(), 3 * CHUNK_BYTES).await;
        assert_eq!(seen, ["one", &long, "two", "", &long, "three"]);
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_bounded_too() {
        let long = vec![b'x'; 5 * CHUNK_BYTES];
        let mut lines = LineReader::new(&long[..], CHUNK_BYTES);
        let events = lines.next().await;
        assert!(
            matches!(&events[..], [ChildEvent::Oversized(line)] if line.length == 5 * CHUNK_BYTES as u64)
        );
        assert!(lines.buffer.capacity() <= 4 * CHUNK_BYTES);
    }
}
