//! The record of calls: who called what, how it ended and what it took. One JSON object a line, in
//! files of bounded length.
//!
//! Calls hand their records over without waiting; a thread of its own writes them, at the latest 50
//! milliseconds later. Lines are written whole, and a line that a crash has torn is skipped when the
//! history is read, so that a crash costs the last moment and nothing else. Several processes may
//! write to one history: they take turns by a lock file.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

use crate::files::{is_private, make_private};
use crate::invoke::Fingerprint;
use crate::invoke::constraints::fits;
use crate::invoke::weight::weigh;
use crate::runtime::Usage;
use crate::secret::Redactor;

/// How long the texts in a record may be that are not arguments, in bytes.
const WORDS: usize = 2 << 10;

/// How long a record may wait to be written, with others.
const DELAY: Duration = Duration::from_millis(50);

/// The most that waits to be written, in bytes or so; more records are dropped, and counted.
const WAITING: usize = 64 << 20;

/// What a record counts besides its arguments.
const EACH: usize = 512;

/// The heaviest arguments that are handed over.
const HEAVY: usize = 1 << 20;

/// What stands in the place of arguments that are too long.
const TOO_LONG: &str = "[too long]";

/// How long others are waited for who write to the same files.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest line that is read, in bytes; none of ours is longer.
const LINE: u64 = 1 << 20;

/// How many files there are: the one that is written to, and older ones.
const FILES: usize = 4;

/// The longest text in recorded arguments, in bytes.
const TEXT: usize = 1 << 10;

/// The longest arguments that are recorded, in bytes of JSON.
const ARGUMENTS: usize = 16 << 10;

/// The newest file.
const NAME: &str = "history.jsonl";

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When it began, in milliseconds since 1970 (UTC).
    pub at: u64,
    /// The call's id in its process.
    pub call: String,
    /// The tool, as the caller named it.
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
    pub fingerprint: Fingerprint,
    /// What the tool was called with, as hooks have left it. Secrets are masked and long texts cut.
    pub arguments: Value,
    /// How it ended: `ok`, `tool-error`, the word for its error ([`crate::CallError::word`]), or
    /// `abandoned` where the caller dropped it.
    pub outcome: Cow<'static, str>,
    /// The error, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where the whole result is kept, if it was too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<String>,
    /// What it used.
    pub usage: Usage,
}

/// A record as calls hand it over; what costs time is done by the thread that writes.
pub(crate) struct Entry {
    pub(crate) record: Record,
    pub(crate) redactor: Arc<Redactor>,
    weight: usize,
}

impl Entry {
    pub(crate) fn new(record: Record, redactor: Arc<Redactor>) -> Self {
        Self { record, redactor, weight: 0 }
    }
}

/// Writes a history. When it goes away, its thread writes what waits, and ends.
pub(crate) struct History {
    queue: mpsc::Sender<Message>,
    shared: Arc<Shared>,
    writer: thread::Thread,
    /// Closes with the thread.
    ended: Mutex<mpsc::Receiver<Infallible>>,
}

enum Message {
    Record(Box<Entry>),
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

impl History {
    /// Begins to write to a folder, of at most so many bytes in all.
    ///
    /// # Errors
    ///
    /// Where the folder cannot be made or others can write to it, or no thread can be started.
    pub(crate) fn open(folder: PathBuf, most: u64) -> io::Result<Self> {
        make_private(&folder)?;
        if !is_private(&folder)? {
            return Err(io::Error::other("others can write to the folder"));
        }
        let (queue, inbox) = mpsc::channel();
        let shared = Arc::<Shared>::default();
        let mut writer =
            Writer { folder, most: most / FILES as u64, inbox, shared: shared.clone() };
        let (ending, ended) = mpsc::channel();
        let thread = thread::Builder::new().name("tenon-history".into()).spawn(move || {
            let _ending = ending;
            while writer.write_what_waits() {}
        })?;
        let ended = Mutex::new(ended);
        Ok(Self { queue, shared, writer: thread.thread().clone(), ended })
    }

    /// Hands a record over.
    pub(crate) fn record(&self, mut entry: Entry) {
        let mut weight = EACH + weigh(&entry.record.arguments);
        if weight > HEAVY {
            entry.record.arguments = TOO_LONG.into();
            weight = EACH;
        }
        entry.weight = weight;
        if self.shared.waiting.fetch_add(weight, Ordering::SeqCst) >= WAITING {
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

impl Drop for History {
    fn drop(&mut self) {
        // The thread sees that nobody sends any more. What waits is written in milliseconds, unless
        // somebody else is at it.
        self.queue = mpsc::channel().0;
        self.writer.unpark();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(PATIENCE);
    }
}

struct Writer {
    folder: PathBuf,
    /// How long a file may become, in bytes.
    most: u64,
    inbox: mpsc::Receiver<Message>,
    shared: Arc<Shared>,
}

impl Writer {
    /// Writes what waits, and waits for more. Says whether more can come.
    fn write_what_waits(&mut self) -> bool {
        let mut lines = Vec::new();
        let mut flushed = Vec::new();
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
                    flushed.push(done);
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
        let asked = !flushed.is_empty();
        for done in flushed {
            let _ = done.send(());
        }
        if !open || asked {
            return open;
        }
        if wrote {
            thread::park_timeout(DELAY);
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
        let path = self.folder.join(NAME);
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
        for number in (0..FILES - 1).rev() {
            let (from, to) = (path(&self.folder, number), path(&self.folder, number + 1));
            match fs::rename(from, to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The file of this age: 0 is the newest.
fn path(folder: &Path, age: usize) -> PathBuf {
    match age {
        0 => folder.join(NAME),
        age => folder.join(format!("history.{age}.jsonl")),
    }
}

/// Waits for this process's turn, which lasts as long as what is returned. Others have it for
/// milliseconds; one that keeps it is not waited for for ever.
fn turn(folder: &Path) -> io::Result<File> {
    let lock = open(private(), &folder.join("history.lock"))?;
    let until = Instant::now() + PATIENCE;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("somebody keeps history.lock locked"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Opens an ordinary file; what is none, such as a pipe, is not waited for.
fn open(options: fs::OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(format!("{} is not a regular file", path.display()))),
    }
}

/// How files are opened to be appended to: for this user alone, and not through a link.
fn private() -> fs::OpenOptions {
    let mut options = File::options();
    options.create(true).append(true).read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    options
}

fn add_line(lines: &mut Vec<u8>, entry: Entry) {
    let Entry { mut record, redactor, weight: _ } = entry;
    redactor.json(&mut record.arguments);
    shorten(&mut record.arguments);
    if let Some(error) = &mut record.error {
        redactor.redact(error);
    }
    // Callers choose all of these, that of a tool which is not there too.
    let texts = [&mut record.error, &mut record.agent, &mut record.session];
    for text in texts.into_iter().flatten().chain([&mut record.tool]) {
        cut_text(text, WORDS);
    }
    let start = lines.len();
    if serde_json::to_writer(&mut *lines, &record).is_err() {
        lines.truncate(start);
        return;
    }
    if lines.len() - start > ARGUMENTS + 4 * WORDS {
        lines.truncate(start);
        record.arguments = TOO_LONG.into();
        let _ = serde_json::to_writer(&mut *lines, &record);
    }
    lines.push(b'\n');
}

/// Cuts the texts in a value that are too long.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => cut_text(text, TEXT),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

fn cut_text(text: &mut String, most: usize) {
    let length = text.len();
    if length > most {
        text.truncate(text.floor_char_boundary(most));
        text.push_str(&format!("[cut: {length} bytes]"));
    }
}

/// How files are opened to be read; a pipe is not waited for.
fn readable() -> fs::OpenOptions {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options
}

/// Milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Which calls of a history are wanted. What is not said is no condition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// The tool; `*` stands for anything.
    pub tool: Option<String>,
    /// The plugin.
    pub plugin: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// The word for how it ended.
    pub outcome: Option<String>,
    /// Only those that did not end well.
    pub failed: bool,
    /// Not before this time, in milliseconds since 1970.
    pub since: Option<u64>,
    /// At most so many, the latest; all, where nothing is said.
    pub limit: Option<usize>,
}

impl Query {
    fn wants(&self, record: &Record) -> bool {
        let Self { tool, plugin, session, outcome, failed, since, limit: _ } = self;
        tool.as_ref().is_none_or(|tool| fits(tool, &record.tool))
            && plugin.as_ref().is_none_or(|plugin| record.plugin.as_deref() == Some(plugin))
            && session.as_ref().is_none_or(|session| record.session.as_ref() == Some(session))
            && outcome.as_ref().is_none_or(|outcome| record.outcome == *outcome)
            && !(*failed && record.outcome == "ok")
            && since.is_none_or(|since| record.at >= since)
    }
}

/// Reads a history, the oldest call first. Lines that are no records are skipped; there may be one
/// where a process has crashed. A history that is not there is empty. It blocks.
///
/// # Errors
///
/// Where a file cannot be read.
pub fn read(folder: &Path, query: &Query) -> io::Result<Vec<Record>> {
    let limit = query.limit.unwrap_or(usize::MAX);
    let mut found = VecDeque::new();
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    {
        // None is renamed between one and the next. Who writes does not wait for more than that.
        let _turn = match turn(folder) {
            // Who may read and not write takes no turn.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
            turn => Some(turn?),
        };
        for age in (0..FILES).rev() {
            match open(readable(), &path(folder, age)) {
                Ok(file) => files.push(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    for file in files {
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        while lines.by_ref().take(LINE).read_until(b'\n', &mut line)? > 0 {
            let record = serde_json::from_slice::<Record>(&line);
            line.clear();
            let Ok(record) = record else { continue };
            if !query.wants(&record) {
                continue;
            }
            if found.len() == limit {
                found.pop_front();
            }
            if limit > 0 {
                found.push_back(record);
            }
        }
    }
    Ok(found.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(tool: &str, arguments: Value) -> Entry {
        let record = Record {
            at: 1,
            call: "1".into(),
            tool: tool.into(),
            plugin: Some("p".into()),
            by: None,
            agent: None,
            session: None,
            trace: None,
            fingerprint: Fingerprint::of(tool, &arguments),
            arguments,
            outcome: "ok".into(),
            error: None,
            whole: None,
            usage: Usage::default(),
        };
        Entry::new(record, Arc::default())
    }

    fn tools(folder: &Path, query: &Query) -> Vec<String> {
        read(folder, query).unwrap().into_iter().map(|record| record.tool).collect()
    }

    #[tokio::test]
    async fn what_was_recorded_is_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(folder.path().into(), 1 << 20).unwrap();
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
        fs::write(folder.path().join(NAME), torn).unwrap();
        let history = History::open(folder.path().into(), 1 << 20).unwrap();
        history.record(entry("third", json!({})));
        history.flush().await;
        assert_eq!(tools(folder.path(), &Query::default()), ["first", "third"]);
    }

    #[tokio::test]
    async fn files_rotate_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(folder.path().into(), 4 << 10).unwrap();
        for number in 0..100 {
            history.record(entry(&number.to_string(), json!({})));
            history.flush().await;
        }
        let kept = tools(folder.path(), &Query::default());
        assert_eq!(kept.last().unwrap(), "99");
        assert!((8..40).contains(&kept.len()), "{kept:?}");
        assert!(kept.windows(2).all(|pair| pair[0].len() <= pair[1].len()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), FILES + 1);
    }

    #[tokio::test]
    async fn two_writers_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let one = History::open(folder.path().into(), 1 << 20).unwrap();
        let other = History::open(folder.path().into(), 1 << 20).unwrap();
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
        let long = "é".repeat(TEXT);
        add_line(&mut line, entry("t", json!({ "password": "x", "text": long })));
        let record: Record = serde_json::from_slice(&line).unwrap();
        assert_eq!(record.arguments["password"], "[redacted]");
        let text = record.arguments["text"].as_str().unwrap();
        assert!(text.ends_with("é[cut: 2048 bytes]") && text.len() < TEXT + 32);
        let mut line = Vec::new();
        add_line(&mut line, entry("t", json!(vec!["x".repeat(500); 100])));
        let record: Record = serde_json::from_slice(&line).unwrap();
        assert_eq!(record.arguments, "[too long]");
    }

    #[test]
    fn what_was_handed_over_is_written_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(folder.path().into(), 1 << 20).unwrap();
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
