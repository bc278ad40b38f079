//! The thread that writes a history.

use serde_json::Value;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use tenon_types::text::shorten;

use super::files::{FILE_NAME, MAX_FILES, open, path, private, turn};
use super::{Message, QueuedRecord, Shared, TOO_LONG};

/// How long a record may wait to be written, with others.
const WRITE_DELAY: Duration = Duration::from_millis(50);

/// The longest text in recorded arguments, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 1 << 10;

/// How long the texts in a record may be that are not arguments, in bytes.
const MAX_MESSAGE_BYTES: usize = 2 << 10;

/// The longest arguments that are recorded, in bytes of JSON.
const MAX_ARGUMENTS_BYTES: usize = 16 << 10;

/// What the thread knows.
pub(super) struct Writer {
    pub(super) folder: PathBuf,
    /// How long a file may become, in bytes.
    pub(super) most: u64,
    pub(super) inbox: mpsc::Receiver<Message>,
    pub(super) shared: Arc<Shared>,
}

impl Writer {
    /// Writes what waits, and waits for more. Says whether more can come.
    pub(super) fn write_what_waits(&mut self) -> bool {
        let mut lines = Vec::new();
        let mut asked = None;
        let open = loop {
            match self.inbox.try_recv() {
                Ok(Message::Record(entry)) => {
                    self.shared.waiting.fetch_sub(entry.weight, Ordering::Relaxed);
                    add_line(&mut lines, *entry);
                    // Not all at once: they may be many.
                    if lines.len() as u64 > (self.most / 4).min(1 << 20) {
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
            tracing::warn!("calls are not recorded in {}: {error}", self.folder.display());
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

    fn append(&self, lines: &[u8]) -> io::Result<()> {
        let _turn = turn(&self.folder)?;
        let path = self.folder.join(FILE_NAME);
        let mut file = open(private(), &path)?;
        let length = file.metadata()?.len();
        if length > 0 && length + lines.len() as u64 > self.most {
            drop(file);
            self.rotate()?;
            file = open(private(), &path)?;
        } else if length > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                // A crash has torn the last line: what comes now is no part of it.
                file.write_all(b"\n")?;
            }
        }
        file.write_all(lines)
    }

    /// Makes the newest file the second, and so on; the oldest goes.
    fn rotate(&self) -> io::Result<()> {
        for number in (0..MAX_FILES - 1).rev() {
            let (from, to) = (path(&self.folder, number), path(&self.folder, number + 1));
            match fs::rename(from, to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Adds a record to lines that are to be written.
pub(super) fn add_line(lines: &mut Vec<u8>, entry: QueuedRecord) {
    let QueuedRecord { mut record, redactor, weight: _ } = entry;
    redactor.json(&mut record.arguments);
    shorten_texts(&mut record.arguments);
    // Callers choose all of these, that of a tool which is not there too; and so may a plugin.
    let texts = [&mut record.error, &mut record.agent, &mut record.session];
    for text in texts.into_iter().flatten().chain([&mut record.tool]) {
        redactor.redact(text);
        shorten(text, MAX_MESSAGE_BYTES);
    }
    let start = lines.len();
    if serde_json::to_writer(&mut *lines, &record).is_err() {
        lines.truncate(start);
        return;
    }
    if lines.len() - start > MAX_ARGUMENTS_BYTES + 4 * MAX_MESSAGE_BYTES {
        lines.truncate(start);
        record.arguments = TOO_LONG.into();
        let _ = serde_json::to_writer(&mut *lines, &record);
    }
    lines.push(b'\n');
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
