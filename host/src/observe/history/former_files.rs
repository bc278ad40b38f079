//! Records in the files of former versions: one JSON object a line, in files of bounded length. They are taken over into
//! the log once.

use serde_json::Value;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tenon_store::{Change, Durability, IdKind, ItemQuota, MAX_BATCH_ENTRIES, NewEntry, Store};

use super::LOG;
use super::query::HistoryError;
use super::writer::Line;

/// The files, the oldest first.
pub(super) const FILE_NAMES: [&str; 4] =
    ["history.3.jsonl", "history.2.jsonl", "history.1.jsonl", "history.jsonl"];

/// Who has the turn to write to the files.
const LOCK_NAME: &str = "history.lock";

/// How long others are waited for who write to the files.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The kind of items that say how far it has come, by the ids of their folders.
const KIND: &str = "former-history";

const IDS: IdKind = IdKind::new("H-");

/// No id is as long.
const MAX_ID_BYTES: u64 = 100;

/// There is one such item for each folder in which it was interrupted.
const QUOTA: ItemQuota = ItemQuota { items: 1_000, bytes: 1 << 20 };

/// Whether there are any.
pub(super) fn are_there(folder: &Path) -> bool {
    FILE_NAMES.iter().any(|name| folder.join(name).exists())
}

/// Adds the records in the files of a folder to the log, in their order, and removes the files. Where that is interrupted it
/// goes on the next time. Lines that are no records are left out; there may be one where a process has crashed.
pub(super) fn take_over(
    folder: &Path,
    store: &dyn Store,
    max_bytes: u64,
) -> Result<(), HistoryError> {
    if !are_there(folder) {
        return Ok(());
    }
    let read = |path: &Path, error| HistoryError::FormerFile(path.into(), error);
    let lock = folder.join(LOCK_NAME);
    let mut turn = turn(&lock).map_err(|error| read(&lock, error))?;
    let id = folder_id(&mut turn).map_err(|error| read(&lock, error))?;
    let mut taken = TakenOver::of(id, store)?;
    let paths = FILE_NAMES.map(|name| folder.join(name));
    let mut skipped = taken.lines;
    let mut lines = Vec::new();
    for path in &paths {
        each_line(path, |line| {
            if skipped > 0 {
                skipped -= 1;
                return Ok(());
            }
            lines.push(line);
            match lines.len() < MAX_BATCH_ENTRIES {
                true => Ok(()),
                false => taken.add(store, &mut lines, max_bytes),
            }
        })?;
    }
    taken.add(store, &mut lines, max_bytes)?;
    for path in &paths {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(read(path, error)),
            _ => {}
        }
    }
    taken.end(store)
}

/// The id of a folder, which its lock has from the first time on.
fn folder_id(lock: &mut File) -> io::Result<String> {
    let mut id = String::new();
    lock.take(MAX_ID_BYTES).read_to_string(&mut id)?;
    if !IDS.is_of(&id) {
        id = IDS.random().ok_or_else(|| io::Error::other("the system has no random numbers"))?;
        lock.set_len(0)?;
        lock.write_all(id.as_bytes())?;
        lock.sync_all()?;
    }
    Ok(id)
}

/// How many records of a folder are in the log by now. Others write to the log as well, and other machines may have folders of
/// their own.
struct TakenOver {
    /// The id of the item that says so.
    id: String,
    version: Option<u64>,
    lines: usize,
}

impl TakenOver {
    /// What is known of the folder with this id.
    fn of(id: String, store: &dyn Store) -> Result<Self, HistoryError> {
        let item = store.item(KIND, &id)?;
        let lines = item.as_ref().and_then(|item| str::from_utf8(&item.value).ok()?.parse().ok());
        let (version, lines) = (item.map(|item| item.version), lines.unwrap_or_default());
        Ok(Self { id, version, lines })
    }

    /// Adds records to the log, and notes how many it has, in one step.
    fn add(
        &mut self,
        store: &dyn Store,
        lines: &mut Vec<Line>,
        max_bytes: u64,
    ) -> Result<(), HistoryError> {
        let done = self.lines + lines.len();
        let entries: Vec<NewEntry<'_>> =
            lines.iter().map(|(at, line)| NewEntry { at: *at, value: line }).collect();
        let (kind, id, version) = (KIND, &*self.id, self.version);
        let value = done.to_string();
        let (value, expires, quota) = (value.as_bytes(), None, QUOTA);
        let noted = Change::PutItem { kind, id, version, value, expires, quota };
        let added = Change::Append { log: LOG, entries: &entries, max_bytes };
        if !store.change(&[noted, added], Durability::Disk)? {
            let problem = io::Error::other("somebody else takes it over at the same time");
            return Err(HistoryError::FormerFile(LOCK_NAME.into(), problem));
        }
        self.version = store.item(KIND, id)?.map(|item| item.version);
        self.lines = done;
        lines.clear();
        Ok(())
    }

    /// The files are gone.
    fn end(self, store: &dyn Store) -> Result<(), HistoryError> {
        if let Some(version) = self.version {
            store.remove_item(KIND, &self.id, version)?;
        }
        Ok(())
    }
}

/// Does something with each record of a file. A file that is not there has none.
fn each_line(
    path: &Path,
    mut act: impl FnMut(Line) -> Result<(), HistoryError>,
) -> Result<(), HistoryError> {
    let failed = |error| HistoryError::FormerFile(path.into(), error);
    let file = match open(readable(), path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file.map_err(failed)?,
    };
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(failed)?;
        // It is kept as it is; a torn one is no JSON.
        let Ok(record) = serde_json::from_slice::<Value>(&line) else { continue };
        if let Some(at) = record["at"].as_u64() {
            act((at, line))?;
        }
    }
    Ok(())
}

/// Waits for this process's turn, which lasts as long as what is returned. One that keeps it is not waited for for ever.
fn turn(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true).read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    let lock = open(options, path)?;
    let until = Instant::now() + LOCK_TIMEOUT;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another process holds it"));
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
        false => Err(io::Error::other("it is not a regular file")),
    }
}

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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenon_store::{ItemStore as _, LogStore as _, SqliteStore};

    use super::*;

    fn lines(numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
        numbers.map(|number| json!({ "at": 1, "tool": number }).to_string().into_bytes()).collect()
    }

    #[test]
    fn what_was_interrupted_goes_on_where_it_was_whoever_else_writes() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::in_memory().unwrap();
        let file = folder.path().join(FILE_NAMES[3]);
        fs::write(&file, lines(0..2_500).join(&b'\n')).unwrap();
        // As if it had ended after the first records.
        let mut lock = turn(&folder.path().join(LOCK_NAME)).unwrap();
        let mut taken = TakenOver::of(folder_id(&mut lock).unwrap(), &store).unwrap();
        let first = lines(0..1_000).into_iter().map(|line| (1, line));
        taken.add(&store, &mut first.collect(), u64::MAX).unwrap();
        drop(lock);
        // Another machine takes over its own, and calls are recorded.
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join(FILE_NAMES[3]), lines(5_000..5_010).join(&b'\n')).unwrap();
        take_over(other.path(), &store, u64::MAX).unwrap();
        take_over(folder.path(), &store, u64::MAX).unwrap();
        // There is nothing left to take over.
        take_over(folder.path(), &store, u64::MAX).unwrap();
        let mut found: Vec<Vec<u8>> = Vec::new();
        let mut from = 1;
        loop {
            let read = store.entries_from(LOG, from, MAX_BATCH_ENTRIES).unwrap();
            let Some(last) = read.last() else { break };
            from = last.number + 1;
            found.extend(read.into_iter().map(|entry| entry.value));
        }
        found.sort_by_key(|line| serde_json::from_slice::<Value>(line).unwrap()["tool"].as_u64());
        assert!(found == [lines(0..2_500), lines(5_000..5_010)].concat());
        assert!(!file.exists() && store.items(KIND, None, 10).unwrap().items.is_empty());
    }
}
