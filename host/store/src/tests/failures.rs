//! What fails, fails with a reason, and loses nothing.

use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

use super::{PLENTY, assert_sound, open, set, value};
use crate::{
    Bucket, Durability, LogIntegrity, LogPolicy, LogStore, NewEntry, SqliteStore, StateStore,
    StoreError, check_log,
};

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let (store, bucket) = (open(&path), Bucket::user("a"));
    set(&store, &bucket, "kept", "confirmed");
    let limit = |pages: i64| {
        let writer = &store.writer.lock().unwrap().connection;
        let set = writer.pragma_update_and_check(None, "max_page_count", pages, |row| row.get(0));
        let set: i64 = set.unwrap();
        set
    };
    limit(1);
    let text = format!("there is no room on the disk for the state in {}", path.display());
    for _ in 0..3 {
        let error = store.set(&bucket, "large", &[0; 100_000], PLENTY).unwrap_err();
        assert!(matches!(error, StoreError::Full(_)), "{error:?}");
        assert_eq!(error.to_string(), text);
        let error = store.set_many(&bucket, &[("kept", b""), ("new", &[0; 9_999])], PLENTY);
        assert!(matches!(error, Err(StoreError::Full(_))), "{error:?}");
        assert_eq!(value(&store, &bucket, "kept").as_deref(), Some("confirmed"));
    }
    assert_eq!(store.usage(&bucket).unwrap().keys, 1);
    limit(1_000_000);
    store.set(&bucket, "large", &[0; 100_000], PLENTY).unwrap();
    drop(store);
    assert_sound(&Connection::open(&path).unwrap());
}

/// In a child whose files may not grow beyond some length.
pub(super) fn fill_files_up(path: &Path) {
    let (store, bucket) = (open(path), Bucket::user("a"));
    let mut confirmed = 0;
    let error = loop {
        match store.set(&bucket, &confirmed.to_string(), &[0; 20_000], PLENTY) {
            Ok(()) => confirmed += 1,
            Err(error) => break error,
        }
        assert!(confirmed < 1000, "the length has no limit");
    };
    assert!(confirmed > 0);
    assert!(matches!(error, StoreError::Io(..) | StoreError::Full(_)), "{error:?}");
    for store in [&store, &open(path)] {
        assert_eq!(store.usage(&bucket).unwrap().keys, confirmed);
        for key in 0..confirmed {
            assert!(store.exists(&bucket, &key.to_string()).unwrap());
        }
        assert!(!store.exists(&bucket, &confirmed.to_string()).unwrap());
    }
}

#[test]
fn a_writer_does_not_wait_for_another_process_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = SqliteStore::open_with_timeout(&path, Duration::from_millis(20)).unwrap();
    let bucket = Bucket::user("a");
    set(&store, &bucket, "key", "before");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.set(&bucket, "key", b"after", PLENTY).unwrap_err();
    assert!(matches!(error, StoreError::Busy(_)), "{error:?}");
    let again = SqliteStore::open_with_timeout(&path, Duration::from_millis(20)).unwrap();
    assert_eq!(value(&again, &bucket, "key").as_deref(), Some("before"));
    other.execute_batch("ROLLBACK").unwrap();
    set(&store, &bucket, "key", "after");
    assert_eq!(value(&again, &bucket, "key").as_deref(), Some("after"));
}

#[test]
fn readers_do_not_wait_for_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("state.db"));
    set(&store, &Bucket::user("a"), "key", "x");
    let writing = &store.writer.lock().unwrap().connection;
    writing.execute_batch("BEGIN IMMEDIATE; DELETE FROM buckets").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                assert_eq!(value(&store, &Bucket::user("a"), "key").as_deref(), Some("x"))
            });
        }
    });
    writing.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn several_keys_are_read_as_they_were_at_one_moment() {
    let folder = tempfile::tempdir().unwrap();
    let (store, bucket) = (open(&folder.path().join("state.db")), Bucket::user("a"));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..100u8 {
                store.set_many(&bucket, &[("a", &[number]), ("b", &[number])], PLENTY).unwrap();
            }
        });
        while !writer.is_finished() {
            let values = store.get_many(&bucket, &["a", "b"]).unwrap();
            assert_eq!(values[0], values[1]);
        }
    });
}

#[test]
fn a_writer_that_panics_leaves_the_store_usable() {
    let store = SqliteStore::in_memory().unwrap();
    let panicked = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _writer = store.writer.lock().unwrap();
            panic!("as a test does");
        });
        thread.join().is_err()
    });
    assert!(panicked);
    set(&store, &Bucket::user("a"), "key", "x");
}

/// Runs something without the privileges by which root passes the modes of files.
#[cfg(target_os = "linux")]
fn bound_by_modes<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let run = || {
        let mut sets = capabilities(None).unwrap();
        sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
        set_capabilities(None, sets).unwrap();
        run()
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn files_that_cannot_be_written_are_refused_when_the_store_is_opened() {
    use super::files::make;
    let folder = tempfile::tempdir().unwrap();
    let check = |name: &str, is_there: bool, file_mode: u32, folder_mode: u32| {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("state.db");
        if is_there {
            set(&open(&path), &Bucket::user("a"), "key", "kept");
            make(&path, file_mode);
        }
        make(&folder, folder_mode);
        let error = bound_by_modes(|| SqliteStore::open(&path)).unwrap_err();
        assert!(matches!(&error, StoreError::Io(at, _) if *at == path), "{name}: {error:?}");
        let text = format!("the state in {} cannot be read or written", path.display());
        assert_eq!(error.to_string(), text);
        make(&folder, 0o700);
        if is_there {
            make(&path, 0o600);
            assert_eq!(value(&open(&path), &Bucket::user("a"), "key").as_deref(), Some("kept"));
        }
    };
    check("a new file in a folder to read", false, 0, 0o500);
    check("a new file in a closed folder", false, 0, 0o000);
    check("a file in a closed folder", true, 0o600, 0o000);
    check("a file to read", true, 0o400, 0o700);
    check("a closed file", true, 0o000, 0o700);
    check("a file in a folder to read, where no log can be", true, 0o600, 0o500);
    let error = SqliteStore::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::Io(..)), "a folder: {error:?}");
}

#[test]
fn a_log_that_somebody_has_changed_is_broken_there() {
    let check = |change: &str, expected: Option<u64>| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = open(&path);
        let policy = LogPolicy { max_bytes: 1 << 20, durability: Durability::Process };
        let entries: Vec<NewEntry<'_>> = (1..=5).map(|at| NewEntry { at, value: b"x" }).collect();
        store.append("a", &entries, policy).unwrap();
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        let broken = match check_log(&store, "a").unwrap() {
            LogIntegrity::Whole(_) => None,
            LogIntegrity::Broken(number) => Some(number),
        };
        assert_eq!(broken, expected, "{change}");
    };
    check("SELECT 1", None);
    check("UPDATE log_entries SET value = x'79' WHERE number = 3", Some(3));
    check("UPDATE log_entries SET at = 9 WHERE number = 1", Some(1));
    check("UPDATE log_entries SET hash = zeroblob(32) WHERE number = 4", Some(4));
    check("DELETE FROM log_entries WHERE number = 2", Some(2));
    check("DELETE FROM log_entries WHERE number = 5", Some(5));
    check("DELETE FROM log_entries", Some(1));
    check("UPDATE logs SET last = zeroblob(32)", Some(6));
    check(
        "INSERT INTO log_entries (log, number, at, value, hash)
         SELECT log, 6, at, value, hash FROM log_entries WHERE number = 5",
        Some(6),
    );
    check("UPDATE logs SET before = randomblob(32)", Some(1));
    // Two entries that change places.
    check(
        "UPDATE log_entries SET number = 9 WHERE number = 2;
         UPDATE log_entries SET number = 2 WHERE number = 3;
         UPDATE log_entries SET number = 3 WHERE number = 9;",
        Some(2),
    );
}
