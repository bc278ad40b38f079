//! A server that is a child of the host's.

use futures::future::join;
use std::cell::RefCell;
use std::collections::VecDeque;

use super::{Event, RequestHead};
use crate::bindings::tenon::bridge::stdio_child::{self, ExitStatus};
use crate::bindings::tenon::plugin::types::Error;
use crate::connection;

pub(crate) use stdio_child::{now, set_timer};
pub(crate) use wit_bindgen::spawn_local as spawn;

/// Lines for the child's standard input.
#[derive(Default)]
struct Outbox {
    lines: VecDeque<Vec<u8>>,
    /// A task is writing them.
    writing: bool,
    /// How often the server was started. Lines for one start are not written to the next.
    starts: u64,
}

/// The most bytes of one write, unless a single line is longer: what a pipe holds.
const MAX_WRITE_BYTES: usize = 64 << 10;

impl Outbox {
    /// Takes the next lines to write; none when there are none.
    fn next(&mut self) -> Vec<Vec<u8>> {
        let mut length = 0;
        let fit = self.lines.iter().take_while(|line| {
            length += line.len();
            length <= MAX_WRITE_BYTES
        });
        let fit = fit.count().max(1).min(self.lines.len());
        self.lines.drain(..fit).collect()
    }
}

thread_local! {
    static OUTBOX: RefCell<Outbox> = RefCell::default();
}

fn with<R>(act: impl FnOnce(&mut Outbox) -> R) -> R {
    OUTBOX.with_borrow_mut(act)
}

pub(crate) async fn start() -> Result<(), Error> {
    with(|outbox| {
        outbox.lines.clear();
        outbox.starts += 1;
    });
    stdio_child::start().await
}

/// Ends the server. Before its input is closed, the remaining lines are written, as far as it reads them.
pub(crate) async fn stop() {
    let stopped = with(|outbox| outbox.starts);
    let write =
        async { while with(|outbox| outbox.starts) == stopped && write_next().await.is_some() {} };
    join(write, stdio_child::stop()).await;
}

/// The last lines of the server's standard error.
pub(crate) fn last_words() -> Vec<String> {
    stdio_child::stderr_tail()
}

/// Queues a message. Lines need no head.
pub(crate) fn send(line: Vec<u8>, _: impl FnOnce() -> Option<RequestHead>) {
    with(|outbox| outbox.lines.push_back(line));
}

/// Has the queued lines written. It never waits: a server that does not read must not keep the bridge
/// from reading, and one caller's line must not delay another's.
pub(crate) fn flush() {
    let begins = with(|outbox| {
        let begins = !outbox.lines.is_empty() && !outbox.writing;
        outbox.writing |= begins;
        begins
    });
    if begins {
        spawn(async {
            while let Some(written) = write_next().await {
                if let Err(error) = written {
                    connection::lost(&error.message);
                }
            }
            with(|outbox| outbox.writing = false);
        });
    }
}

/// Writes the next lines; `None` when there are none. After an error the queue is empty. An error about a
/// server that was started again meanwhile is ignored.
async fn write_next() -> Option<Result<(), Error>> {
    let (lines, start) = with(|outbox| (outbox.next(), outbox.starts));
    if lines.is_empty() {
        return None;
    }
    let written = stdio_child::write_lines(lines).await;
    Some(with(|outbox| match written {
        Err(error) if outbox.starts == start => {
            outbox.lines.clear();
            Err(error)
        }
        Ok(()) | Err(_) => Ok(()),
    }))
}

/// A request that nobody waits for any more: it was written, and its answer will be ignored.
pub(crate) fn abandon(_: u64) {}

/// Whether calls have headers for arguments. Lines have none.
pub(crate) fn mirrors() -> bool {
    false
}

/// The handshake is over, which lines do not need to know.
pub(crate) fn agreed(_: &mcp_client::Server) {}

/// What has happened.
pub(crate) async fn next_events() -> Vec<Event> {
    let events = stdio_child::next_events().await.into_iter();
    let events = events.map(|event| match event {
        stdio_child::Event::Line(line) => Event::Line(line),
        stdio_child::Event::Oversized(line) => {
            Event::Oversized { prefix: line.prefix, length: line.length }
        }
        stdio_child::Event::Closed => Event::Lost("the server closed its output".into()),
        stdio_child::Event::Exited(status) => match status.code {
            Some(code) if code != 0 => Event::Ended(describe(status)),
            _ => Event::Lost(describe(status)),
        },
        stdio_child::Event::Timer => Event::Timer,
    });
    events.collect()
}

fn describe(status: ExitStatus) -> String {
    match (status.code, status.signal) {
        (Some(code), _) => format!("the server exited with code {code}"),
        (None, Some(signal)) => format!("the server was ended by signal {signal}"),
        (None, None) => "the server ended".into(),
    }
}
