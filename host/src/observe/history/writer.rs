//! The thread that writes a history.

use serde_json::Value;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use tenon_config::diagnostic::chain;
use tenon_store::{Durability, LazyStore, LogPolicy, MAX_BATCH_ENTRIES, NewEntry};
use tenon_types::text::shorten;

use super::query::HistoryError;
use super::{LOG, Message, QueuedRecord, Shared, TOO_LONG, former_files};

/// How long a record may wait to be written, with others.
const WRITE_DELAY: Duration = Duration::from_millis(50);

/// The most that is written at a time, in bytes: whoever else writes to the store waits as long as this takes.
const MAX_WRITE_BYTES: usize = 1 << 20;

/// The longest text in recorded arguments, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 1 << 10;

/// How long the texts in a record may be that are not arguments, in bytes.
const MAX_MESSAGE_BYTES: usize = 2 << 10;

/// The longest arguments that are recorded, in bytes of JSON.
const MAX_ARGUMENTS_BYTES: usize = 16 << 10;

/// What the thread knows.
pub(super) struct Writer {
    folder: Option<PathBuf>,
    store: Arc<LazyStore>,
    max_bytes: u64,
    inbox: mpsc::Receiver<Message>,
    shared: Arc<Shared>,
    /// Nothing is left in files of former versions.
    is_taken_over: bool,
}

/// When a call began, and its record as it is written.
pub(super) type Line = (u64, Vec<u8>);

impl Writer {
    pub(super) fn new(
        folder: Option<PathBuf>,
        store: Arc<LazyStore>,
        max_bytes: u64,
        inbox: mpsc::Receiver<Message>,
        shared: Arc<Shared>,
    ) -> Self {
        Self { folder, store, max_bytes, inbox, shared, is_taken_over: false }
    }

    /// Writes what waits, and waits for more. Says whether more can come.
    pub(super) fn write_what_waits(&mut self) -> bool {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        let mut asked = None;
        let open = loop {
            match self.inbox.try_recv() {
                Ok(Message::Record(entry)) => {
                    self.shared.waiting.fetch_sub(entry.weight, Ordering::Relaxed);
                    if let Some(line) = line(*entry) {
                        bytes += line.1.len();
                        lines.push(line);
                    }
                    // Not all at once: they may be many.
                    if lines.len() == MAX_BATCH_ENTRIES || bytes > MAX_WRITE_BYTES {
                        break true;
                    }
                }
                Ok(Message::Flush(done)) => {
                    asked = Some(done);
                    break true;
                }
                Err(mpsc::TryRecvError::Empty) => break true,
                Err(mpsc::TryRecvError::Disconnected) => break false,
            }
        };
        let wrote = !lines.is_empty();
        if wrote && let Err(error) = self.append(&lines) {
            tracing::warn!("calls are not recorded: {}", chain(&error));
        }
        let dropped = self.shared.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "calls were not recorded: there were too many at once");
        }
        if let Some(done) = asked {
            let _ = done.send(());
            return true;
        }
        if !open {
            return false;
        }
        if wrote {
            thread::park_timeout(WRITE_DELAY);
        } else {
            self.wait();
        }
        true
    }

    /// Sleeps until there is something to do. Who sends wakes it, if it says before that it sleeps.
    fn wait(&self) {
        self.shared.idle.store(true, Ordering::SeqCst);
        if self.shared.waiting.load(Ordering::SeqCst) == 0 {
            // Woken for nothing once in a while it sees that nobody sends any more.
            thread::park_timeout(Duration::from_secs(60));
        }
        self.shared.idle.store(false, Ordering::SeqCst);
    }

    fn append(&mut self, lines: &[Line]) -> Result<(), HistoryError> {
        let store = self.store.get()?;
        if let Some(folder) = self.folder.as_ref().filter(|_| !self.is_taken_over) {
            former_files::take_over(folder, &*store, self.policy().max_bytes)?;
            self.is_taken_over = true;
        }
        let entries: Vec<NewEntry<'_>> =
            lines.iter().map(|(at, line)| NewEntry { at: *at, value: line }).collect();
        store.append(LOG, &entries, self.policy())?;
        Ok(())
    }

    fn policy(&self) -> LogPolicy {
        LogPolicy { max_bytes: self.max_bytes, durability: Durability::Process }
    }
}

/// A record as it is written; none where it cannot be.
pub(super) fn line(entry: QueuedRecord) -> Option<Line> {
    let QueuedRecord { mut record, redactor, weight: _ } = entry;
    redactor.json(&mut record.arguments);
    shorten_texts(&mut record.arguments);
    // Callers choose all of these, that of a tool which is not there too; and so may a plugin.
    let texts = [&mut record.error, &mut record.agent, &mut record.session];
    for text in texts.into_iter().flatten().chain([&mut record.tool]) {
        redactor.redact(text);
        shorten(text, MAX_MESSAGE_BYTES);
    }
    let mut line = serde_json::to_vec(&record).ok()?;
    if line.len() > MAX_ARGUMENTS_BYTES + 4 * MAX_MESSAGE_BYTES {
        record.arguments = TOO_LONG.into();
        line = serde_json::to_vec(&record).ok()?;
    }
    Some((record.at, line))
}

/// Cuts the texts in a value that are too long.
fn shorten_texts(value: &mut Value) {
    match value {
        Value::String(text) => shorten(text, MAX_TEXT_BYTES),
        Value::Array(items) => items.iter_mut().for_each(shorten_texts),
        Value::Object(members) => members.values_mut().for_each(shorten_texts),
        _ => {}
    }
}
