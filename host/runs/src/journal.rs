//! What a run has asked, and what was answered.

use serde::{Deserialize, Serialize};
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

/// The most that the answers of a journal come to, in bytes of JSON: with all else it is shorter than a journal may be.
const MAX_ANSWERS_BYTES: usize = 8 << 20;

/// The SHA-256 of arguments; as text in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ArgumentsDigest([u8; 32]);

impl ArgumentsDigest {
    /// The digest of arguments. The order of members makes no difference.
    pub fn of(arguments: &Value) -> Self {
        Self(Sha256::digest(arguments.to_string()).into())
    }
}

impl fmt::Display for ArgumentsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl From<ArgumentsDigest> for String {
    fn from(digest: ArgumentsDigest) -> Self {
        digest.to_string()
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
    /// How many bytes of answers the journal has room for.
    room: usize,
    /// The first call whose answer was left out, or a step.
    left_out: Option<Arc<str>>,
}

impl NewEntries {
    /// Entries that come after those of a journal.
    pub fn after(journal: &Journal) -> Self {
        let mut entries = Self { entries: Vec::new(), room: MAX_ANSWERS_BYTES, left_out: None };
        for entry in journal.entries.values() {
            match length(&entry.answer, entries.room) {
                Some(length) => entries.room -= length,
                None => entries.room = 0,
            }
            entries.note_left_out(entry);
        }
        entries
    }

    /// Adds an entry.
    pub fn push(&mut self, mut entry: JournalEntry) {
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
            self.left_out = Some(entry.call.clone().unwrap_or_else(|| "a step".into()));
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

/// How many bytes an answer takes, if it takes no more than this.
fn length(answer: &JournalAnswer, most: usize) -> Option<usize> {
    match answer {
        JournalAnswer::Value(value) => {
            let mut room = Room(most);
            serde_json::to_writer(&mut room, &**value).ok().map(|()| most - room.0)
        }
        JournalAnswer::Error(message) => Some(message.len()).filter(|length| *length <= most),
        JournalAnswer::TooLong(_) | JournalAnswer::Unknown => Some(0),
    }
}

/// Takes so many bytes, and forgets them.
struct Room(usize);

impl Write for Room {
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
        let shown = |call: Option<&str>| call.unwrap_or("a step").to_string();
        if entry.call.as_deref() != call {
            return Err(JournalMismatch {
                key: key.into(),
                why: format!(
                    "it called {} before, and {} now",
                    shown(entry.call.as_deref()),
                    shown(call)
                ),
            });
        }
        if entry.arguments.as_ref() != arguments {
            let why = format!("it called {} with other arguments before", shown(call));
            return Err(JournalMismatch { key: key.into(), why });
        }
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
