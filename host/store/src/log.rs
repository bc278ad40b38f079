//! Logs: what has happened, one entry after the other, each bound to the one before.
//!
//! An entry has the hash of its own number, time and value, and of the hash of the entry before it. Whoever changes an
//! entry, removes one from the middle or puts one there has to compute all hashes after it anew; and whoever has noted
//! the last hash of a log sees that as well.

use sha2::{Digest as _, Sha256};
use std::fmt;

use crate::error::StoreResult;

/// The longest entry of a log, in bytes.
pub const MAX_ENTRY_BYTES: usize = 1 << 20;

/// The most entries that are added or read in one call.
pub const MAX_BATCH_ENTRIES: usize = 1_000;

/// What an entry counts besides its value, in bytes.
pub const ENTRY_OVERHEAD_BYTES: u64 = 64;

/// What binds an entry to all that come before it: a SHA-256.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LogHash([u8; 32]);

impl LogHash {
    /// That of nothing: it stands before the first entry of a log.
    pub const NONE: Self = Self([0; 32]);

    /// That of an entry which follows one with this hash.
    #[must_use]
    pub fn next(self, number: u64, at: u64, value: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(number.to_be_bytes());
        hash.update(at.to_be_bytes());
        hash.update(value);
        Self(hash.finalize().into())
    }

    /// Its 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The hash that has these bytes; none where there are not 32 of them.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// As hexadecimal digits.
impl fmt::Display for LogHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for LogHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is added to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewEntry<'a> {
    /// When it happened, in milliseconds since 1970.
    pub at: u64,
    /// What happened.
    pub value: &'a [u8],
}

/// An entry of a log. Its `Debug` shows the length of the value only.
#[derive(Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Its place in the log: the first entry has 1.
    pub number: u64,
    /// When it happened, in milliseconds since 1970.
    pub at: u64,
    /// What happened.
    pub value: Vec<u8>,
    /// What binds it to all that came before.
    pub hash: LogHash,
}

impl fmt::Debug for LogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, at, value, hash } = self;
        write!(f, "LogEntry({number} at {at}, {} bytes, {hash})", value.len())
    }
}

/// What there is of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSummary {
    /// The number of the oldest entry that is kept; that of the next one where there is none.
    pub first: u64,
    /// The number that the next entry gets.
    pub next: u64,
    /// What the entries count, in bytes: their values, and [`ENTRY_OVERHEAD_BYTES`] for each.
    pub bytes: u64,
    /// The hash of the entry before the oldest one that is kept.
    pub before: LogHash,
    /// The hash of the last entry.
    pub last: LogHash,
}

impl LogSummary {
    /// That of a log without entries.
    pub const EMPTY: Self =
        Self { first: 1, next: 1, bytes: 0, before: LogHash::NONE, last: LogHash::NONE };

    /// Adds an entry. Returns its number and its hash.
    pub fn add(&mut self, entry: NewEntry<'_>) -> (u64, LogHash) {
        let number = self.next;
        self.last = self.last.next(number, entry.at, entry.value);
        self.next += 1;
        self.bytes += entry_bytes(entry.value.len() as u64);
        (number, self.last)
    }

    /// Removes the oldest entry, which has this number and this hash, and a value of this length in bytes.
    pub fn remove_oldest(&mut self, number: u64, hash: LogHash, length: u64) {
        self.first = number + 1;
        self.before = hash;
        self.bytes = self.bytes.saturating_sub(entry_bytes(length));
    }
}

/// What an entry counts whose value has this length, in bytes.
fn entry_bytes(length: u64) -> u64 {
    length + ENTRY_OVERHEAD_BYTES
}

/// How entries are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPolicy {
    /// What the log may count, in bytes. The oldest entries go for new ones.
    pub max_bytes: u64,
    /// What an entry survives that was added.
    pub durability: Durability,
}

/// What something survives that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, however it comes.
    Process,
    /// The loss of power as well: the disk has confirmed it.
    Disk,
}

/// Stores logs. Every call blocks, and is meant for threads that may.
///
/// A log is there from its first entry on. Each operation is one step for all threads and processes that use the same
/// store: entries that two add at a time follow each other.
///
/// # Errors
///
/// Each operation fails where the database does ([`StoreError`](crate::StoreError)). One that fails changes nothing.
pub trait LogStore: Send + Sync + 'static {
    /// Adds entries to a log, in their order, and gives what there is of it then.
    ///
    /// # Errors
    ///
    /// Also for more than [`MAX_BATCH_ENTRIES`] entries, or one that is longer than [`MAX_ENTRY_BYTES`].
    fn append(
        &self,
        log: &str,
        entries: &[NewEntry<'_>],
        policy: LogPolicy,
    ) -> StoreResult<LogSummary>;

    /// The entries before this number, the last one first; all, where there is no number. At most as many as this, and
    /// as [`MAX_BATCH_ENTRIES`].
    fn entries_before(
        &self,
        log: &str,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<LogEntry>>;

    /// The entries from this number on, the oldest first. At most as many as this, and as [`MAX_BATCH_ENTRIES`].
    fn entries_from(&self, log: &str, number: u64, limit: usize) -> StoreResult<Vec<LogEntry>>;

    /// What there is of a log, if there is one.
    fn log(&self, log: &str) -> StoreResult<Option<LogSummary>>;

    /// The names of the logs that begin so, in the order of their bytes.
    fn logs(&self, beginning: &str) -> StoreResult<Vec<String>>;

    /// Removes a log with all its entries. One that is not there is no error.
    fn remove_log(&self, log: &str) -> StoreResult<()>;
}

/// Whether a log is as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogIntegrity {
    /// Each entry is bound to the one before, from the oldest that is kept to the last.
    Whole(LogSummary),
    /// The entry with this number is missing, or is not what was written.
    Broken(u64),
}

/// Checks each entry of a log. Entries that are added meanwhile are checked or not.
///
/// # Errors
///
/// Where the database fails.
pub fn check_log(store: &dyn LogStore, log: &str) -> StoreResult<LogIntegrity> {
    loop {
        let Some(summary) = store.log(log)? else {
            return Ok(LogIntegrity::Whole(LogSummary::EMPTY));
        };
        match check_entries(store, log, summary)? {
            // What was read may have been removed for new entries since.
            LogIntegrity::Broken(_)
                if store.log(log)?.is_some_and(|now| now.first != summary.first) => {}
            checked => return Ok(checked),
        }
    }
}

fn check_entries(
    store: &dyn LogStore,
    log: &str,
    summary: LogSummary,
) -> StoreResult<LogIntegrity> {
    let (mut number, mut hash, mut bytes) = (summary.first, summary.before, 0);
    while number < summary.next {
        let entries = store.entries_from(log, number, MAX_BATCH_ENTRIES)?;
        if entries.is_empty() {
            return Ok(LogIntegrity::Broken(number));
        }
        for entry in entries.into_iter().take_while(|entry| entry.number < summary.next) {
            hash = hash.next(number, entry.at, &entry.value);
            if entry.number != number || entry.hash != hash {
                return Ok(LogIntegrity::Broken(number));
            }
            bytes += entry_bytes(entry.value.len() as u64);
            number += 1;
        }
    }
    let follows = store.entries_from(log, summary.next, 1)?;
    // What was added since is no entry that the log does not know of.
    let is_stray =
        !follows.is_empty() && store.log(log)?.is_some_and(|now| now.next == summary.next);
    match hash == summary.last && bytes == summary.bytes && !is_stray {
        true => Ok(LogIntegrity::Whole(summary)),
        // The last entries are missing, there are more, or what is said of all of them is wrong.
        false => Ok(LogIntegrity::Broken(number)),
    }
}
