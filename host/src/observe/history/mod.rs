//! The record of all that is asked of plugins: who called what, how it ended and what it took. It is a log in the host's
//! store, in which each record is bound to the one before; a record is one JSON object.
//!
//! Calls hand their records over without waiting; a thread of its own writes them, at the latest 50 milliseconds later,
//! so that a crash costs the last moment and nothing else. Several processes may write to one history.

mod former_files;
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
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenon_config::files::claim;
use tenon_config::secret::Redactor;
use tenon_store::LazyStore;
use tokio::sync::oneshot;

pub use query::{HistoryError, Query, check, read, read_from};

use self::weight::weigh;
use crate::call::{CallFingerprint, CallKind, Usage};
use writer::Writer;

/// The name of the log with the records.
pub const LOG: &str = "calls";

/// How long the end of a platform waits for what is written, where another process is at it.
const END_TIMEOUT: Duration = Duration::from_secs(2);

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
    /// Who called, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Arc<str>>,
    /// The run of a script that called, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Arc<str>>,
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
pub(crate) struct HistoryHandle {
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

impl HistoryHandle {
    /// Begins to write to a store, at most so many bytes in all. The folder is that of the store's file; records that
    /// former versions have left there come first.
    ///
    /// # Errors
    ///
    /// Where the folder cannot be made or others can write to it, or no thread can be started.
    pub(crate) fn open(
        folder: Option<PathBuf>,
        store: Arc<LazyStore>,
        max_bytes: u64,
    ) -> io::Result<Self> {
        if let Some(folder) = &folder {
            claim(folder)?;
        }
        let (queue, inbox) = mpsc::channel();
        let shared = Arc::<Shared>::default();
        let mut writer = Writer::new(folder, store, max_bytes, inbox, shared.clone());
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

impl Drop for HistoryHandle {
    fn drop(&mut self) {
        // The thread sees that nobody sends any more. What waits is written in milliseconds, unless
        // somebody else is at it.
        self.queue = mpsc::channel().0;
        self.writer.unpark();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(END_TIMEOUT);
    }
}

/// Milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::former_files::FILE_NAMES;
    use super::writer::{MAX_TEXT_BYTES, line};
    use super::*;
    use serde_json::json;
    use std::fs;
    use std::path::Path;
    use tenon_store::{FILE_NAME, LogIntegrity};

    fn entry(tool: &str, arguments: Value) -> QueuedRecord {
        let record = Record {
            kind: CallKind::Tool,
            at: 1,
            call: "1".into(),
            tool: tool.into(),
            plugin: Some("p".into()),
            by: None,
            agent: None,
            principal: None,
            run: None,
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

    /// A recorder with a database of its own in a folder.
    fn recorder(folder: &Path, max_bytes: u64) -> HistoryHandle {
        let store = LazyStore::new(Some(folder.join(FILE_NAME)));
        HistoryHandle::open(Some(folder.into()), Arc::new(store), max_bytes).unwrap()
    }

    fn tools(folder: &Path, query: &Query) -> Vec<String> {
        read(folder, query).unwrap().into_iter().map(|record| record.tool).collect()
    }

    fn line_of(tool: &str) -> Vec<u8> {
        line(entry(tool, json!({}))).unwrap().1
    }

    #[tokio::test]
    async fn what_was_recorded_is_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let history = recorder(folder.path(), 1 << 20);
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
        let LogIntegrity::Whole(summary) = check(folder.path()).unwrap() else {
            panic!("it is broken")
        };
        assert_eq!((summary.first, summary.next), (1, 4));
    }

    #[test]
    fn a_history_that_is_not_there_is_empty_and_stays_so() {
        let folder = tempfile::tempdir().unwrap();
        assert!(tools(folder.path(), &Query::default()).is_empty());
        assert!(matches!(check(folder.path()).unwrap(), LogIntegrity::Whole(_)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn records_in_files_of_former_versions_come_first_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name, lines: &[Vec<u8>]| {
            fs::write(folder.path().join(name), lines.join(&b'\n')).unwrap();
        };
        let torn = line_of("torn");
        write(FILE_NAMES[1], &[line_of("0"), torn[..torn.len() / 2].to_vec()]);
        // More than are taken at a time.
        let many: Vec<Vec<u8>> = (1..2_500).map(|number| line_of(&number.to_string())).collect();
        write(FILE_NAMES[3], &many);
        let history = recorder(folder.path(), 64 << 20);
        history.record(entry("new", json!({})));
        history.flush().await;
        let expected: Vec<String> =
            (0..2_500).map(|number| number.to_string()).chain(["new".into()]).collect();
        assert!(tools(folder.path(), &Query::default()) == expected);
        let left = FILE_NAMES.map(|name| folder.path().join(name).exists());
        assert_eq!(left, [false; 4]);
        // An older version that still runs writes another one.
        write(FILE_NAMES[3], &[line_of("late")]);
        assert_eq!(tools(folder.path(), &Query { limit: Some(1), ..Query::default() }), ["late"]);
        assert_eq!(tools(folder.path(), &Query::default()).len(), 2_502);
    }

    #[tokio::test]
    async fn the_oldest_records_go_for_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let history = recorder(folder.path(), 8 << 10);
        for number in 0..100 {
            history.record(entry(&number.to_string(), json!({})));
            history.flush().await;
        }
        let kept = tools(folder.path(), &Query::default());
        assert_eq!(kept.last().unwrap(), "99");
        assert!((8..40).contains(&kept.len()), "{kept:?}");
        assert!(kept.windows(2).all(|pair| pair[0].len() <= pair[1].len()));
        assert!(matches!(check(folder.path()).unwrap(), LogIntegrity::Whole(_)));
    }

    #[tokio::test]
    async fn two_writers_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let one = recorder(folder.path(), 1 << 20);
        let other = recorder(folder.path(), 1 << 20);
        for number in 0..200 {
            let writer = if number % 2 == 0 { &one } else { &other };
            writer.record(entry(&number.to_string(), json!({ "text": "x".repeat(200) })));
        }
        one.flush().await;
        other.flush().await;
        assert_eq!(tools(folder.path(), &Query::default()).len(), 200);
        assert!(matches!(check(folder.path()).unwrap(), LogIntegrity::Whole(_)));
    }

    #[test]
    fn what_is_recorded_is_short_and_has_no_secrets() {
        let recorded = |arguments| -> Record {
            let (_, line) = line(entry("t", arguments)).unwrap();
            serde_json::from_slice(&line).unwrap()
        };
        let long = "é".repeat(MAX_TEXT_BYTES);
        let record = recorded(json!({ "password": "x", "text": long }));
        assert_eq!(record.arguments["password"], "[redacted]");
        let text = record.arguments["text"].as_str().unwrap();
        assert!(text.ends_with("é[cut: 2048 bytes]") && text.len() < MAX_TEXT_BYTES + 32);
        let record = recorded(json!(vec!["x".repeat(500); 100]));
        assert_eq!(record.arguments, "[too long]");
    }

    #[test]
    fn what_was_handed_over_is_written_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let history = recorder(folder.path(), 1 << 20);
        history.record(entry("last", json!({})));
        drop(history);
        assert_eq!(tools(folder.path(), &Query::default()), ["last"]);
    }
}
