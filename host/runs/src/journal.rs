//! What a run has asked, and what was answered.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// About how many bytes of entries are written as one entry of the log: to write one for each call takes several times as long
/// as the rest of a short run.
const BYTES_TOGETHER: usize = 64 << 10;

/// The longest answer that a journal keeps, in bytes of JSON. A run that needs a longer one again cannot go on.
const MAX_ANSWER_BYTES: usize = 512 << 10;

/// The most that the entries of a journal come to, in bytes of JSON.
const MAX_ENTRIES_BYTES: usize = 8 << 20;

/// How many bytes more there are for calls whose answers have no room: they are noted without them.
const BARE_ENTRIES_BYTES: usize = 4 << 20;

/// The most that an entry comes to without its key, its call and its answer, in bytes of JSON.
const ENTRY_BYTES: usize = 280;

/// The SHA-256 of arguments or of a result; as text in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct JsonDigest([u8; 32]);

impl JsonDigest {
    /// The digest of a value. The order of members makes no difference.
    pub fn of(value: &Value) -> Self {
        Self::of_json(&serde_json::to_vec(value).expect("a value is JSON"))
    }

    fn of_json(json: &[u8]) -> Self {
        Self(Sha256::digest(json).into())
    }

    /// Gives the text.
    fn with_text<R>(&self, give: impl FnOnce(&str) -> R) -> R {
        let mut digits = [0; 64];
        hex::encode_to_slice(self.0, &mut digits).expect("there is room for two digits a byte");
        give(str::from_utf8(&digits).expect("digits are text"))
    }
}

impl fmt::Display for JsonDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| f.write_str(text))
    }
}

impl Serialize for JsonDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_text(|text| serializer.serialize_str(text))
    }
}

impl TryFrom<String> for JsonDigest {
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
    /// It is too long to be kept: this is the digest of the value.
    TooLong(String),
    /// Nobody waited for it, so that nobody knows it.
    Unknown,
}

impl JournalAnswer {
    /// What was answered as JSON, where it is there.
    fn json(&self) -> Option<Vec<u8>> {
        let json = match self {
            Self::Value(value) => serde_json::to_vec(&**value),
            Self::Error(message) => serde_json::to_vec(message),
            Self::TooLong(_) | Self::Unknown => return None,
        };
        Some(json.expect("an answer is JSON"))
    }
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
    pub arguments: Option<JsonDigest>,
    /// What was answered.
    pub answer: JournalAnswer,
    /// The digest of the value or the message that was answered. Older entries do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JsonDigest>,
    /// How long it took, in microseconds.
    #[serde(default)]
    pub micros: u64,
}

impl JournalEntry {
    /// A call.
    pub fn call(
        key: String,
        call: Arc<str>,
        arguments: JsonDigest,
        answer: JournalAnswer,
        micros: u64,
    ) -> Self {
        let (call, arguments) = (Some(call), Some(arguments));
        Self { key, call, arguments, answer, result: None, micros }
    }

    /// How many bytes it takes besides the answer, about.
    fn length_without_answer(&self) -> usize {
        // A key may have characters with escapes.
        ENTRY_BYTES + 6 * self.key.len() + self.call.as_ref().map_or(0, |call| call.len())
    }

    /// A step.
    pub fn step(key: String, value: Value) -> Self {
        let answer = JournalAnswer::Value(value.into());
        Self { key, call: None, arguments: None, answer, result: None, micros: 0 }
    }
}

/// The entries of a run that were not written yet. What is too long, alone or with all before, is left out of them.
#[derive(Debug)]
pub struct NewEntries {
    entries: Vec<JournalEntry>,
    /// How many bytes of entries the journal has room for.
    room: usize,
    /// How many there are for calls without their answers after that.
    bare_room: usize,
    /// The first call whose answer was left out, or a step.
    left_out: Option<Arc<str>>,
}

impl NewEntries {
    /// Entries that come after those of a journal.
    pub fn after(journal: &Journal) -> Self {
        let (room, bare_room) = (MAX_ENTRIES_BYTES, BARE_ENTRIES_BYTES);
        let mut entries = Self { entries: Vec::new(), room, bare_room, left_out: None };
        for entry in journal.entries.values() {
            let answer = entry.answer.json().map_or(0, |json| json.len());
            entries.room = entries.room.saturating_sub(answer + entry.length_without_answer());
            entries.note_left_out(entry);
        }
        entries
    }

    /// Adds an entry.
    pub fn push(&mut self, mut entry: JournalEntry) {
        let rest = entry.length_without_answer();
        let json = entry.answer.json();
        let length = json.as_ref().map_or(0, Vec::len);
        entry.result = json.as_deref().map(JsonDigest::of_json);
        let is_kept = length <= MAX_ANSWER_BYTES && rest + length <= self.room;
        if !is_kept && let Some(digest) = entry.result {
            entry.answer = JournalAnswer::TooLong(digest.to_string());
        }
        let room = match entry.call {
            _ if is_kept || rest <= self.room => &mut self.room,
            Some(_) => &mut self.bare_room,
            // A script can do any number of steps.
            None => &mut 0,
        };
        let taken = if is_kept { rest + length } else { rest };
        match room.checked_sub(taken) {
            Some(left) => {
                *room = left;
                self.note_left_out(&entry);
                self.entries.push(entry);
            }
            None => {
                self.left_out = self.left_out.take().or_else(|| entry.call.or(Some(STEP.into())));
            }
        }
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

/// What functions beside each other are called.
const PARALLEL: &str = "`parallel`";

/// The key of a step at a place.
pub fn step_key(place: &str, name: &str) -> String {
    format!("{place}:{name}")
}

fn shown_step(name: &str) -> String {
    format!("the step {name:?}")
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

    /// The answer to a call that was made before at this place.
    ///
    /// # Errors
    ///
    /// Where something else was done there, or the answer was too long to be kept.
    pub fn answer(
        &self,
        key: &str,
        call: &str,
        arguments: &JsonDigest,
    ) -> Result<Option<&JournalAnswer>, JournalMismatch> {
        if let Some(before) = self.step_at(key).or_else(|| self.branches_at(key)) {
            return Err(JournalMismatch::other(key, &before, call));
        }
        self.answer_of(key, Some(call), Some(arguments))
    }

    /// The value of a step that was done before at this place.
    ///
    /// # Errors
    ///
    /// As for [`answer`](Self::answer).
    pub fn step(&self, place: &str, name: &str) -> Result<Option<&JournalAnswer>, JournalMismatch> {
        let step = shown_step(name);
        if let Some(before) = self.call_at(place).or_else(|| self.branches_at(place)) {
            return Err(JournalMismatch::other(place, &before, &step));
        }
        let key = step_key(place, name);
        let (own, within) = (format!(":{name}"), format!(":{name}."));
        let is_own = |key: &str| {
            let rest = &key[place.len()..];
            rest == own || rest.starts_with(&within)
        };
        if let Some(other) = self.keys_at(place, ':').find(|key| !is_own(key)) {
            let before = shown_step(&other[place.len() + 1..]);
            return Err(JournalMismatch::other(place, &before, &step));
        }
        self.answer_of(&key, None, None)
    }

    /// Checks that nothing but functions beside each other was done before at this place.
    ///
    /// # Errors
    ///
    /// Where something else was.
    pub fn check_parallel(&self, place: &str) -> Result<(), JournalMismatch> {
        match self.call_at(place).or_else(|| self.step_at(place)) {
            Some(before) => Err(JournalMismatch::other(place, &before, PARALLEL)),
            None => Ok(()),
        }
    }

    /// What was done before and is not among these places: a step that is among them was done with all that it did.
    ///
    /// # Errors
    ///
    /// Where there is something.
    pub fn check_all_done(&self, done: &BTreeSet<String>) -> Result<(), JournalMismatch> {
        let is_done = |entry: &&JournalEntry| {
            done.contains(&entry.key)
                || entry.key.match_indices('.').any(|(end, _)| done.contains(&entry.key[..end]))
        };
        match self.entries.values().find(|entry| !is_done(entry)) {
            Some(JournalEntry { key, call, .. }) => {
                let before = call.as_deref().unwrap_or(STEP);
                let why = format!("it called {before} before, and has ended without that now");
                Err(JournalMismatch { key: key.clone(), why })
            }
            None => Ok(()),
        }
    }

    /// The keys below a place, after this character.
    fn keys_at(&self, place: &str, after: char) -> impl Iterator<Item = &str> {
        let prefix = format!("{place}{after}");
        let keys = self.entries.range(prefix.clone()..).map(|(key, _)| key.as_str());
        keys.take_while(move |key| key.starts_with(&prefix))
    }

    fn call_at(&self, place: &str) -> Option<String> {
        Some(self.entries.get(place)?.call.as_deref().unwrap_or(STEP).to_string())
    }

    fn step_at(&self, place: &str) -> Option<String> {
        let key = self.keys_at(place, ':').next()?;
        let is_step = self.entries.get(key).is_some_and(|entry| entry.call.is_none());
        let name = &key[place.len() + 1..];
        // It has not ended, and this is a call of it.
        let name =
            if is_step { name } else { name.rsplit_once('.').map_or(name, |(name, _)| name) };
        Some(shown_step(name))
    }

    fn branches_at(&self, place: &str) -> Option<String> {
        self.keys_at(place, '.').next().map(|_| PARALLEL.to_string())
    }

    fn answer_of(
        &self,
        key: &str,
        call: Option<&str>,
        arguments: Option<&JsonDigest>,
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
    fn other(key: &str, before: &str, now: &str) -> Self {
        let why = format!("it called {before} before, and {now} now");
        Self { key: key.into(), why }
    }

    /// Checks that a script calls at a place what it called there before, with the same arguments.
    ///
    /// # Errors
    ///
    /// Where it does not.
    pub fn check(
        key: &str,
        (before, arguments_before): (Option<&str>, Option<&JsonDigest>),
        (call, arguments): (Option<&str>, Option<&JsonDigest>),
    ) -> Result<(), Self> {
        let shown = |call: Option<&str>| call.unwrap_or(STEP).to_string();
        if before != call {
            return Err(Self::other(key, &shown(before), &shown(call)));
        }
        if arguments_before != arguments {
            let why = format!("it called {} with other arguments before", shown(call));
            return Err(Self { key: key.into(), why });
        }
        Ok(())
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
