//! A server that is a child of the host's.

use futures::future::join;
use std::cell::RefCell;
use std::collections::VecDeque;

use super::{Event, Head};
use crate::bindings::tenon::plugin::stdio_child::{self, ExitStatus};
use crate::bindings::tenon::plugin::types::Error;
use crate::{connection, convert};

pub(crate) use crate::tasks::{keep, spawn};
pub(crate) use stdio_child::set_timer;

/// What is to be written.
#[derive(Default)]
struct Outbox {
    lines: VecDeque<Vec<u8>>,
    /// Somebody is writing it.
    writing: bool,
    /// Somebody is going to, and leaves others a moment to put more into it.
    gathering: bool,
    /// What time it is in that moment, once somebody has asked.
    moment: Option<u64>,
    /// How often the server was started: what is written to one is nothing to the next.
    starts: u64,
}

/// How many bytes are written at a time, but for a line that is longer: as many as a pipe holds.
const TOGETHER: usize = 64 << 10;

/// How many lines are gathered at most before they are written.
const GATHERED: usize = 16;

impl Outbox {
    /// The next lines to write; none when there are none.
    fn next(&mut self) -> Vec<Vec<u8>> {
        let mut length = 0;
        let fit = self.lines.iter().take_while(|line| {
            length += line.len();
            length <= TOGETHER
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

/// What time it is, in milliseconds. Calls whose lines are gathered need not each ask the host.
pub(crate) fn now() -> u64 {
    with(|outbox| match outbox.gathering {
        true => *outbox.moment.get_or_insert_with(stdio_child::now),
        false => stdio_child::now(),
    })
}

pub(crate) async fn start() -> Result<(), Error> {
    with(|outbox| {
        outbox.lines.clear();
        outbox.starts += 1;
    });
    stdio_child::start().await
}

/// Ends the server. What was still to be said is written before its input is closed, as far as it
/// reads.
pub(crate) async fn stop() {
    let stopped = with(|outbox| outbox.starts);
    // What is to be said to the next server is not for this one.
    let write =
        async { while with(|outbox| outbox.starts) == stopped && write_next().await.is_some() {} };
    join(write, stdio_child::stop()).await;
}

/// What the server said last, to whoever reads its log.
pub(crate) fn last_words() -> Vec<String> {
    stdio_child::stderr_tail()
}

/// Puts a message behind those that are still to be written. Lines need no head.
pub(crate) fn send(line: Vec<u8>, _: impl FnOnce() -> Option<Head>) {
    with(|outbox| outbox.lines.push_back(line));
}

/// Sees to it that what is to be written is. It never waits: a server that does not read must not
/// keep us from reading, and a caller not from what others write. Where `more` may come at once, it
/// is written together, but not so much of it that the server waits for work.
pub(crate) fn flush(more: bool) {
    let more = with(|outbox| {
        let more = more && outbox.lines.len() < GATHERED;
        let seen_to = outbox.writing || more && outbox.gathering;
        let begin = !outbox.lines.is_empty() && !seen_to;
        outbox.gathering |= begin && more;
        begin.then_some(more)
    });
    match more {
        Some(true) => spawn(async {
            // Calls that have begun by now get to say what they want.
            wit_bindgen::yield_async().await;
            with(|outbox| (outbox.gathering, outbox.moment) = (false, None));
            write_out();
        }),
        Some(false) => write_out(),
        None => {}
    }
}

/// Writes in order, several lines at a time. One does it for all: where the server does not take
/// them at once, that is a task.
fn write_out() {
    loop {
        let lines = with(|outbox| match outbox.writing {
            true => Vec::new(),
            false => outbox.next(),
        });
        if lines.is_empty() {
            return;
        }
        match stdio_child::try_write_lines(&lines) {
            Ok(true) => {}
            Ok(false) => {
                with(|outbox| outbox.writing = true);
                return spawn(write_rest());
            }
            Err(error) => {
                with(|outbox| outbox.lines.clear());
                return connection::lost(&convert::message(&error));
            }
        }
    }
}

/// Writes what the server did not take at once, and what comes after it.
async fn write_rest() {
    let mut next = Some(written(Vec::new()).await);
    while let Some(written) = next {
        if let Err(error) = written {
            connection::lost(&convert::message(&error));
        }
        next = write_next().await;
    }
    with(|outbox| outbox.writing = false);
}

/// Writes the next lines; `None` when there are none.
async fn write_next() -> Option<Result<(), Error>> {
    let lines = with(Outbox::next);
    match lines.is_empty() {
        true => None,
        false => Some(written(lines).await),
    }
}

/// Writes lines. A server that does not take them gets no more. What a server did not take that was
/// started again meanwhile is no error.
async fn written(lines: Vec<Vec<u8>>) -> Result<(), Error> {
    let start = with(|outbox| outbox.starts);
    let written = stdio_child::write_lines(lines).await;
    with(|outbox| match written {
        Err(error) if outbox.starts == start => {
            outbox.lines.clear();
            Err(error)
        }
        Ok(()) | Err(_) => Ok(()),
    })
}

/// A request that nobody waits for any more: it was written, and its answer will be ignored.
pub(crate) fn abandon(_: u64) {}

/// Whether calls have headers for arguments. Lines have none.
pub(crate) fn mirrors() -> bool {
    false
}

/// The handshake is over, which lines do not need to know.
pub(crate) fn agreed(_: &mcp_client::Server) {}

/// What has happened, and at what time it is said.
pub(crate) async fn next_events() -> (u64, Vec<Event>) {
    let (now, events) = stdio_child::next_events_at().await;
    let events = events.into_iter().map(|event| match event {
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
    (now, events.collect())
}

fn describe(status: ExitStatus) -> String {
    match (status.code, status.signal) {
        (Some(code), _) => format!("the server exited with code {code}"),
        (None, Some(signal)) => format!("the server was ended by signal {signal}"),
        (None, None) => "the server ended".into(),
    }
}
