//! What a run has asked, and what was answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// About how many bytes of entries are written as one entry of the log: to write one for each call takes several times as long
/// as the rest of a short run.
const BYTES_TOGETHER: usize = 64 << 10;

/// The longest answer that a journal keeps, in bytes of JSON. A run that needs a longer one again cannot go on.
const MAX_ANSWER_BYTES: usize = 512 << 10;

/// The SHA-256 of arguments, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ArgumentsDigest(String);

impl ArgumentsDigest {
    /// The digest of arguments. The order of members makes no difference.
    pub fn of(arguments: &Value) -> Self {
        Self(hex::encode(Sha256::digest(arguments.to_string())))
    }
}

impl fmt::Display for ArgumentsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalAnswer {
    /// A value.
    Value(Value),
    /// An error, which the script could catch.
    Error(String),
    /// A value that is too long to be kept: this is its digest.
    TooLong(String),
}

/// A call of a run, or a step that it has done once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JournalEntry {
    /// Its place in the run.
    pub key: String,
    /// What was called: a tool, an operation; nothing for a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
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
        key: &str,
        call: &str,
        arguments: ArgumentsDigest,
        answer: JournalAnswer,
        micros: u64,
    ) -> Self {
        let (call, arguments) = (Some(call.to_string()), Some(arguments));
        Self { key: key.to_string(), call, arguments, answer: bounded(answer), micros }
    }

    /// A step.
    pub fn step(key: &str, value: Value) -> Self {
        let answer = bounded(JournalAnswer::Value(value));
        Self { key: key.to_string(), call: None, arguments: None, answer, micros: 0 }
    }
}

fn bounded(answer: JournalAnswer) -> JournalAnswer {
    let JournalAnswer::Value(value) = &answer else { return answer };
    match value.to_string().len() > MAX_ANSWER_BYTES {
        true => JournalAnswer::TooLong(ArgumentsDigest::of(value).0),
        false => answer,
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
