//! The record of all that is asked of plugins: who called what, how it ended and what it took. One JSON object a line, in
//! files of bounded length.
//!
//! Calls hand their records over without waiting; a thread of its own writes them, at the latest 50
//! milliseconds later. Lines are written whole, and a line that a crash has torn is skipped when the
//! history is read, so that a crash costs the last moment and nothing else. Several processes may
//! write to one history: they take turns by a lock file.

mod files;
mod lines;
mod query;
pub(crate) mod weight;
mod writer;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};
use tenon_config::files::claim;
use tenon_config::secret::Redactor;
use tokio::sync::oneshot;

pub use query::{Query, read};

use self::weight::weigh;
use crate::call::{CallFingerprint, CallKind, Usage};
use files::{LOCK_TIMEOUT, MAX_FILES};
use writer::Writer;

/// The most that waits to be written, in bytes or so; more records are dropped, and counted.
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// What a record counts besides its arguments.
const RECORD_OVERHEAD_BYTES: usize = 512;

/// The heaviest arguments that are handed over.
const MAX_ARGUMENTS_BYTES: usize = 1 << 20;

/// What stands in the place of arguments that are too long.
const TOO_LONG: &str = "[too long]";

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// What was asked.
    #[serde(default)]
    pub kind: CallKind,
    /// When it began, in milliseconds since 1970 (UTC).
    pub at: u64,
    /// The call's id in its process.
    pub call: String,
    /// The tool as the caller named it; the name of the tool that does the same, for what is asked of
    /// resources and prompts; else the strategy, the model or the hook point.
    pub tool: String,
    /// The plugin; nothing where there was no such tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Arc<str>>,
    /// The plugin that called, where it was not the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<str>>,
    /// On whose behalf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The conversation or session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The W3C Trace Context trace id, where the caller gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// FNV-1a 64 of the tool and the arguments that the caller gave, in hexadecimal: the same for the
    /// same call.
    pub fingerprint: CallFingerprint,
    /// What the tool was called with, as hooks have left it. Secrets are masked and long texts cut.
    pub arguments: Value,
    /// How it ended: `ok`, `tool-error`, `replace` or `veto` where that is what a hook decided, the code of its
    /// error ([`crate::CallError::code`]), or `abandoned` where the caller dropped it.
    pub outcome: Cow<'static, str>,
    /// The error, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where the whole result is kept, if it was too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_result_uri: Option<String>,
    /// What it used.
    pub usage: Usage,
}

/// A record as calls hand it over; what costs time is done by the thread that writes.
pub(crate) struct QueuedRecord {
    pub(crate) record: Record,
    pub(crate) redactor: Arc<Redactor>,
    weight: usize,
}

impl QueuedRecord {
    pub(crate) fn new(record: Record, redactor: Arc<Redactor>) -> Self {
        Self { record, redactor, weight: 0 }
    }
}

/// Writes a history. When it goes away, its thread writes what waits, and ends.
pub(crate) struct CallRecorder {
    queue: mpsc::Sender<Message>,
    shared: Arc<Shared>,
    writer: thread::Thread,
    /// Closes with the thread.
    ended: Mutex<mpsc::Receiver<Infallible>>,
}

enum Message {
    Record(Box<QueuedRecord>),
    /// Somebody waits until all that came before is written.
    Flush(oneshot::Sender<()>),
}

#[derive(Default)]
struct Shared {
    /// The thread sleeps until it is woken.
    idle: AtomicBool,
    waiting: AtomicUsize,
    dropped: AtomicU64,
}

impl CallRecorder {
    /// Begins to write to a folder, of at most so many bytes in all.
    ///
    /// # Errors
    ///
    /// Where the folder cannot be made or others can write to it, or no thread can be started.
    pub(crate) fn open(folder: PathBuf, most: u64) -> io::Result<Self> {
        claim(&folder)?;
        let (queue, inbox) = mpsc::channel();
        let shared = Arc::<Shared>::default();
        let mut writer =
            Writer { folder, most: most / MAX_FILES as u64, inbox, shared: shared.clone() };
        let (ending, ended) = mpsc::channel();
        let thread = thread::Builder::new().name("tenon-history".into()).spawn(move || {
            let _ending = ending;
            while writer.write_what_waits() {}
        })?;
        let ended = Mutex::new(ended);
        Ok(Self { queue, shared, writer: thread.thread().clone(), ended })
    }

    /// Hands a record over.
    pub(crate) fn record(&self, mut entry: QueuedRecord) {
        let mut weight = RECORD_OVERHEAD_BYTES + weigh(&entry.record.arguments);
        if weight > MAX_ARGUMENTS_BYTES {
            entry.record.arguments = TOO_LONG.into();
            weight = RECORD_OVERHEAD_BYTES;
        }
        entry.weight = weight;
        if self.shared.waiting.fetch_add(weight, Ordering::SeqCst) >= MAX_QUEUED_BYTES {
            self.shared.waiting.fetch_sub(weight, Ordering::Relaxed);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let _ = self.queue.send(Message::Record(Box::new(entry)));
        // One that writes, or waits for more to write, looks again by itself.
        if self.shared.idle.load(Ordering::SeqCst) && self.shared.idle.swap(false, Ordering::SeqCst)
        {
            self.writer.unpark();
        }
    }

    /// Waits until everything is written that was handed over.
    pub(crate) async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.queue.send(Message::Flush(done)).is_ok() {
            self.writer.unpark();
            let _ = written.await;
        }
    }
}

impl Drop for CallRecorder {
    fn drop(&mut self) {
        // The thread sees that nobody sends any more. What waits is written in milliseconds, unless
        // somebody else is at it.
        self.queue = mpsc::channel().0;
        self.writer.unpark();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(LOCK_TIMEOUT);
    }
}

/// Milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::files::FILE_NAME;
    use super::writer::{MAX_TEXT_BYTES, add_line};
    use super::*;
    use serde_json::json;
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    fn entry(tool: &str, arguments: Value) -> QueuedRecord {
        let record = Record {
            kind: CallKind::Tool,
            at: 1,
            call: "1".into(),
            tool: tool.into(),
            plugin: Some("p".into()),
            by: None,
            agent: None,
            session: None,
            trace: None,
            fingerprint: CallFingerprint::of(tool, &arguments),
            arguments,
            outcome: "ok".into(),
            error: None,
            full_result_uri: None,
            usage: Usage::default(),
        };
        QueuedRecord::new(record, Arc::default())
    }

    fn tools(folder: &Path, query: &Query) -> Vec<String> {
        read(folder, query).unwrap().into_iter().map(|record| record.tool).collect()
    }

    #[tokio::test]
    async fn what_was_recorded_is_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let history = CallRecorder::open(folder.path().into(), 1 << 20).unwrap();
        for tool in ["a__x", "b__y", "a__z"] {
            history.record(entry(tool, json!({})));
        }
        history.flush().await;
        let all = Query::default();
        assert_eq!(tools(folder.path(), &all), ["a__x", "b__y", "a__z"]);
        let some = Query { tool: Some("a__*".into()), limit: Some(1), ..Query::default() };
        assert_eq!(tools(folder.path(), &some), ["a__z"]);
        let none = Query { failed: true, ..Query::default() };
        assert!(tools(folder.path(), &none).is_empty());
    }

    #[tokio::test]
    async fn a_torn_line_costs_itself_only() {
        let folder = tempfile::tempdir().unwrap();
        let whole = |tool| {
            let mut line = Vec::new();
            add_line(&mut line, entry(tool, json!({})));
            line
        };
        let (first, second) = (whole("first"), whole("second"));
        let torn = [&first[..], &second[..second.len() / 2]].concat();
        fs::write(folder.path().join(FILE_NAME), torn).unwrap();
        let history = CallRecorder::open(folder.path().into(), 1 << 20).unwrap();
        history.record(entry("third", json!({})));
        history.flush().await;
        assert_eq!(tools(folder.path(), &Query::default()), ["first", "third"]);
    }

    #[tokio::test]
    async fn files_rotate_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let history = CallRecorder::open(folder.path().into(), 4 << 10).unwrap();
        for number in 0..100 {
            history.record(entry(&number.to_string(), json!({})));
            history.flush().await;
        }
        let kept = tools(folder.path(), &Query::default());
        assert_eq!(kept.last().unwrap(), "99");
        assert!((8..40).contains(&kept.len()), "{kept:?}");
        assert!(kept.windows(2).all(|pair| pair[0].len() <= pair[1].len()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MAX_FILES + 1);
    }

    #[tokio::test]
    async fn two_writers_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let one = CallRecorder::open(folder.path().into(), 1 << 20).unwrap();
        let other = CallRecorder::open(folder.path().into(), 1 << 20).unwrap();
        for number in 0..200 {
            let writer = if number % 2 == 0 { &one } else { &other };
            writer.record(entry(&number.to_string(), json!({ "text": "x".repeat(200) })));
        }
        one.flush().await;
        other.flush().await;
        assert_eq!(tools(folder.path(), &Query::default()).len(), 200);
    }

    #[test]
    fn what_is_recorded_is_short_and_has_no_secrets() {
        let mut line = Vec::new();
        let long = "é".repeat(MAX_TEXT_BYTES);
        add_line(&mut line, entry("t", json!({ "password": "x", "text": long })));
        let record: Record = serde_json::from_slice(&line).unwrap();
        assert_eq!(record.arguments["password"], "[redacted]");
        let text = record.arguments["text"].as_str().unwrap();
        assert!(text.ends_with("é[cut: 2048 bytes]") && text.len() < MAX_TEXT_BYTES + 32);
        let mut line = Vec::new();
        add_line(&mut line, entry("t", json!(vec!["x".repeat(500); 100])));
        let record: Record = serde_json::from_slice(&line).unwrap();
        assert_eq!(record.arguments, "[too long]");
    }

    #[test]
    fn what_was_handed_over_is_written_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let history = CallRecorder::open(folder.path().into(), 1 << 20).unwrap();
        history.record(entry("last", json!({})));
        drop(history);
        for _ in 0..200 {
            if tools(folder.path(), &Query::default()) == ["last"] {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("it was never written");
    }
}
