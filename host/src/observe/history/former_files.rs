//! Records in the files of former versions: one JSON object a line, in files of bounded length. They are taken over into
//! the log once.

use serde_json::Value;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tenon_store::{
    Durability, ItemOutcome, ItemQuota, LogPolicy, MAX_BATCH_ENTRIES, NewEntry, Store,
};

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

/// The kind and the id of the item that says how far it has come.
const PROGRESS: (&str, &str) = ("former-history", "taken-over");

/// There is one such item.
const QUOTA: ItemQuota = ItemQuota { items: 1, bytes: 1 << 10 };

/// Whether there are any.
pub(super) fn are_there(folder: &Path) -> bool {
    FILE_NAMES.iter().any(|name| folder.join(name).exists())
}

/// Adds the records in the files of a folder to the log, in their order, and removes the files. Where that is interrupted it
/// goes on the next time. Lines that are no records are left out; there may be one where a process has crashed.
pub(super) fn take_over(
    folder: &Path,
    store: &dyn Store,
    policy: LogPolicy,
) -> Result<(), HistoryError> {
    if !are_there(folder) {
        return Ok(());
    }
    let read = |path: &Path, error| HistoryError::FormerFile(path.into(), error);
    let lock = folder.join(LOCK_NAME);
    let _turn = turn(&lock).map_err(|error| read(&lock, error))?;
    let (kind, id) = PROGRESS;
    let next = || Ok::<u64, HistoryError>(store.log(LOG)?.map_or(1, |log| log.next));
    // What the log had before, so that it is known how many it has of the files.
    let (version, start) = match store.item(kind, id)? {
        Some(item) => (Some(item.version), number(&item.value)),
        None => {
            let start = next()?;
            let value = start.to_string();
            match store.put_item(kind, id, None, value.as_bytes(), None, QUOTA)? {
                ItemOutcome::Changed(version) => (Some(version), Some(start)),
                ItemOutcome::Differs(item) => (item.map(|item| item.version), None),
            }
        }
    };
    let paths = FILE_NAMES.map(|name| folder.join(name));
    // Without a number all was taken over, and files were left.
    if let Some(start) = start {
        let mut skipped = next()?.saturating_sub(start);
        let policy = LogPolicy { durability: Durability::Disk, ..policy };
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
                    false => append(store, &mut lines, policy),
                }
            })?;
        }
        append(store, &mut lines, policy)?;
    }
    let mut version = version;
    if start.is_some() {
        match store.put_item(kind, id, version, b"removing", None, QUOTA)? {
            ItemOutcome::Changed(new) => version = Some(new),
            ItemOutcome::Differs(_) => return Ok(()),
        }
    }
    for path in &paths {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(read(path, error)),
            _ => {}
        }
    }
    if let Some(version) = version {
        store.remove_item(kind, id, version)?;
    }
    Ok(())
}

fn number(value: &[u8]) -> Option<u64> {
    str::from_utf8(value).ok()?.parse().ok()
}

fn append(store: &dyn Store, lines: &mut Vec<Line>, policy: LogPolicy) -> Result<(), HistoryError> {
    let entries: Vec<NewEntry<'_>> =
        lines.iter().map(|(at, line)| NewEntry { at: *at, value: line }).collect();
    store.append(LOG, &entries, policy)?;
    lines.clear();
    Ok(())
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
