//! What a run has asked, and what was answered.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

/// About how many bytes of entries are written as one entry of the log: to write one for each call takes several times as long
/// as the rest of a short run.
const BYTES_TOGETHER: usize = 64 << 10;

/// The longest answer that a journal keeps, in bytes of JSON. A run that needs a longer one again cannot go on.
const MAX_ANSWER_BYTES: usize = 512 << 10;

/// The most that the entries of a journal come to, in bytes of JSON.
const MAX_ENTRIES_BYTES: usize = 8 << 20;

/// The most that an entry comes to without its key, its call and its answer, in bytes of JSON.
const ENTRY_BYTES: usize = 200;

/// The SHA-256 of arguments; as text in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ArgumentsDigest([u8; 32]);

impl ArgumentsDigest {
    /// The digest of arguments. The order of members makes no difference.
    pub fn of(arguments: &Value) -> Self {
        let json = serde_json::to_vec(arguments).expect("a value is JSON");
        Self(Sha256::digest(json).into())
    }

    /// Gives the text.
    fn with_text<R>(&self, give: impl FnOnce(&str) -> R) -> R {
        let mut digits = [0; 64];
        hex::encode_to_slice(self.0, &mut digits).expect("there is room for two digits a byte");
        give(str::from_utf8(&digits).expect("digits are text"))
    }
}

impl fmt::Display for ArgumentsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| f.write_str(text))
    }
}

impl Serialize for ArgumentsDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_text(|text| serializer.serialize_str(text))
    }
}

impl TryFrom<String> for ArgumentsDigest {
    type Error = hex::FromHexError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut digest = Self([0; 32]);
        hex::decode_to_slice(text, &mut digest.0).map(|()| digest)
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalAnswer {
    /// A value.
    Value(Arc<Value>),
    /// An error, which the script could catch.
    Error(String),
    /// A value that is too long to be kept: this is its digest.
    TooLong(String),
    /// Nobody waited for it, so that nobody knows it.
    Unknown,
}

/// A call of a run, or a step that it has done once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JournalEntry {
    /// Its place in the run.
    pub key: String,
    /// What was called: a tool, an operation; nothing for a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Arc<str>>,
    /// The digest of its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ArgumentsDigest>,
    /// What was answered.
    pub answer: JournalAnswer,
    /// How long it took, in microseconds.
    #[serde(default)]
    pub micros: u64,
}

impl JournalEntry {
    /// A call.
    pub fn call(
        key: String,
        call: Arc<str>,
        arguments: ArgumentsDigest,
        answer: JournalAnswer,
        micros: u64,
    ) -> Self {
        let (call, arguments) = (Some(call), Some(arguments));
        Self { key, call, arguments, answer, micros }
    }

    /// How many bytes it takes besides the answer, about.
    fn length_without_answer(&self) -> usize {
        // A key may have characters with escapes.
        ENTRY_BYTES + 6 * self.key.len() + self.call.as_ref().map_or(0, |call| call.len())
    }

    /// A step.
    pub fn step(key: String, value: Value) -> Self {
        let answer = JournalAnswer::Value(value.into());
        Self { key, call: None, arguments: None, answer, micros: 0 }
    }
}

/// The entries of a run that were not written yet. What is too long, alone or with all before, is left out of them.
#[derive(Debug)]
pub struct NewEntries {
    entries: Vec<JournalEntry>,
    /// How many bytes of entries the journal has room for.
    room: usize,
    /// The first call whose answer was left out, or a step.
    left_out: Option<Arc<str>>,
}

impl NewEntries {
    /// Entries that come after those of a journal.
    pub fn after(journal: &Journal) -> Self {
        let mut entries = Self { entries: Vec::new(), room: MAX_ENTRIES_BYTES, left_out: None };
        for entry in journal.entries.values() {
            let answer = length(&entry.answer, entries.room).unwrap_or(entries.room);
            entries.room = entries.room.saturating_sub(answer + entry.length_without_answer());
            entries.note_left_out(entry);
        }
        entries
    }

    /// Adds an entry.
    pub fn push(&mut self, mut entry: JournalEntry) {
        let rest = entry.length_without_answer();
        // A script can do any number of steps.
        if rest > self.room {
            self.left_out = self.left_out.take().or_else(|| entry.call.or(Some(STEP.into())));
            return;
        }
        self.room = self.room.saturating_sub(rest);
        match length(&entry.answer, self.room.min(MAX_ANSWER_BYTES)) {
            Some(length) => self.room -= length,
            None => {
                let digest = match &entry.answer {
                    JournalAnswer::Value(value) => ArgumentsDigest::of(value),
                    answer => ArgumentsDigest::of(&Value::from(format!("{answer:?}"))),
                };
                entry.answer = JournalAnswer::TooLong(digest.to_string());
            }
        }
        self.note_left_out(&entry);
        self.entries.push(entry);
    }

    fn note_left_out(&mut self, entry: &JournalEntry) {
        if self.left_out.is_none() && matches!(entry.answer, JournalAnswer::TooLong(_)) {
            self.left_out = Some(entry.call.clone().unwrap_or_else(|| STEP.into()));
        }
    }

    /// The first call, or a step, whose answer is too long to be kept. A script that needs it again cannot go on.
    pub fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes the entries, to write them.
    pub fn take(&mut self) -> Vec<JournalEntry> {
        std::mem::take(&mut self.entries)
    }

    /// Takes entries back that could not be written.
    pub fn put_back(&mut self, entries: Vec<JournalEntry>) {
        self.entries.splice(..0, entries);
    }
}

/// What an entry is about that calls nothing.
const STEP: &str = "a step";

/// How many bytes of JSON an answer takes, if it takes no more than this.
fn length(answer: &JournalAnswer, most: usize) -> Option<usize> {
    let mut room = LimitedWriter(most);
    let written = match answer {
        JournalAnswer::Value(value) => serde_json::to_writer(&mut room, &**value),
        JournalAnswer::Error(message) => serde_json::to_writer(&mut room, message),
        JournalAnswer::TooLong(_) | JournalAnswer::Unknown => Ok(()),
    };
    written.ok().map(|()| most - room.0)
}

/// Takes so many bytes, and forgets them.
struct LimitedWriter(usize);

impl Write for LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The entries of a run so far, by their keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Journal {
    entries: BTreeMap<String, JournalEntry>,
}

impl FromIterator<JournalEntry> for Journal {
    fn from_iter<T: IntoIterator<Item = JournalEntry>>(entries: T) -> Self {
        let entries = entries.into_iter().map(|entry| (entry.key.clone(), entry));
        Self { entries: entries.collect() }
    }
}

impl Journal {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries, in the order of their keys.
    pub fn entries(&self) -> impl Iterator<Item = &JournalEntry> {
        self.entries.values()
    }

    /// The answer to a call that was made before.
    ///
    /// # Errors
    ///
    /// Where another call was made at this place, or the answer was too long to be kept.
    pub fn answer(
        &self,
        key: &str,
        call: Option<&str>,
        arguments: Option<&ArgumentsDigest>,
    ) -> Result<Option<&JournalAnswer>, JournalMismatch> {
        let Some(entry) = self.entries.get(key) else { return Ok(None) };
        let shown = |call: Option<&str>| call.unwrap_or(STEP).to_string();
        JournalMismatch::check(
            key,
            (entry.call.as_deref(), entry.arguments.as_ref()),
            (call, arguments),
        )?;
        match &entry.answer {
            JournalAnswer::TooLong(_) => {
                let why = format!("the answer of {} was too long to be kept", shown(call));
                Err(JournalMismatch { key: key.into(), why })
            }
            JournalAnswer::Unknown => {
                let why = format!("how the call of {} ended is not known", shown(call));
                Err(JournalMismatch { key: key.into(), why })
            }
            answer => Ok(Some(answer)),
        }
    }
}

/// A script that runs again does something else than it did before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the script does not do again what it did before, at {key}: {why}")]
pub struct JournalMismatch {
    /// The place in the run.
    pub key: String,
    /// What differs.
    pub why: String,
}

impl JournalMismatch {
    /// Checks that a script calls at a place what it called there before, with the same arguments.
    ///
    /// # Errors
    ///
    /// Where it does not.
    pub fn check(
        key: &str,
        (before, arguments_before): (Option<&str>, Option<&ArgumentsDigest>),
        (call, arguments): (Option<&str>, Option<&ArgumentsDigest>),
    ) -> Result<(), Self> {
        let shown = |call: Option<&str>| call.unwrap_or(STEP).to_string();
        let why = if before != call {
            format!("it called {} before, and {} now", shown(before), shown(call))
        } else if arguments_before != arguments {
            format!("it called {} with other arguments before", shown(call))
        } else {
            return Ok(());
        };
        Err(Self { key: key.into(), why })
    }
}

/// Entries as a log keeps them: several together, in their order.
pub(crate) fn write(entries: &[JournalEntry]) -> Vec<Vec<u8>> {
    let mut written: Vec<Vec<u8>> = Vec::new();
    for entry in entries {
        let entry = serde_json::to_vec(entry).expect("an entry is JSON");
        match written.last_mut() {
            Some(last) if last.len() + entry.len() <= BYTES_TOGETHER => {
                last.push(b'\n');
                last.extend(entry);
            }
            _ => written.push(entry),
        }
    }
    written
}

/// The entries that a log has kept together. Nothing where they cannot be read.
pub(crate) fn read(value: &[u8]) -> Option<Vec<JournalEntry>> {
    value.split(|byte| *byte == b'\n').map(|entry| serde_json::from_slice(entry).ok()).collect()
}
