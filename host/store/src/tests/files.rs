//! The database as a file: kept, private, and left alone where it is not ours.

use rusqlite::Connection;
use std::fs;
use std::path::Path;

use super::{PLENTY, open, set, value};
use crate::error::RawStoreError;
use crate::sqlite::open::{MIGRATIONS, migrate};
use crate::{Bucket, ItemOutcome, ItemQuota, ItemStore, SqliteStore, StateStore, StoreError};

#[test]
fn state_is_there_when_the_store_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a new/folder/state.db");
    let bucket = Bucket::project("a", "/p");
    set(&open(&path), &bucket, "key", "kept");
    let (one, other) = (open(&path), open(&path));
    assert_eq!(value(&one, &bucket, "key").as_deref(), Some("kept"));
    set(&one, &bucket, "key", "seen at once");
    assert_eq!(value(&other, &bucket, "key").as_deref(), Some("seen at once"));
    drop((one, other));
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "the last one leaves one file: {left:?}");
}

#[test]
fn what_is_kept_for_sessions_is_forgotten_if_nobody_uses_it() {
    const DAY: i64 = 24 * 60 * 60;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let (old, used, kept) =
        (Bucket::session("a", "old"), Bucket::session("a", "used"), Bucket::user("a"));
    let store = open(&path);
    [&old, &used, &kept].into_iter().for_each(|bucket| set(&store, bucket, "key", "v"));
    let age = |store: &SqliteStore, seconds: i64| {
        let writer = &store.writer.lock().unwrap().connection;
        writer.execute("UPDATE buckets SET changed = unixepoch() - ?1", [seconds]).unwrap();
    };
    age(&store, 90 * DAY - 60);
    drop(store);
    let store = open(&path);
    assert_eq!(store.buckets(None).unwrap().len(), 3);
    age(&store, 90 * DAY + 1);
    // A value of the same length is a use, too; reading is none, and neither is what changes nothing.
    set(&store, &used, "key", "w");
    store.delete(&old, "none").unwrap();
    assert!(value(&store, &old, "key").is_some());
    drop(store);
    let store = open(&path);
    let left: Vec<_> = store.buckets(None).unwrap().into_iter().map(|(bucket, _)| bucket).collect();
    assert_eq!(left, [used, kept]);
    assert_eq!(value(&store, &old, "key"), None);
}

#[test]
fn several_open_a_new_database_at_once() {
    for is_empty_file in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        if is_empty_file {
            fs::write(&path, "").unwrap();
        }
        let increment = || open(&path).increment(&Bucket::user("a"), "key", 1, PLENTY).unwrap();
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(increment))));
        assert_eq!(value(&open(&path), &Bucket::user("a"), "key").as_deref(), Some("8"));
    }
}

/// Opens a database and reads of it.
fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    SqliteStore::open(path)?.get(&Bucket::user("a"), "key 50")
}

#[test]
fn what_is_no_state_database_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.db");
    let store = open(&good);
    for number in 0..100 {
        let key = format!("key {number}");
        store.set(&Bucket::user("a"), &key, &[b'x'; 3000], PLENTY).unwrap();
    }
    drop(store);
    assert!(read(&good).unwrap().is_some());
    let good = fs::read(good).unwrap();
    let page = usize::from(u16::from_be_bytes([good[16], good[17]]));
    let filled =
        |from: usize, to: usize| [&good[..from], &vec![0xff; to - from], &good[to..]].concat();
    let sqlite = |sql: &str| {
        let path = folder.path().join("other.db");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(path).unwrap();
        bytes
    };
    let damaged: &[(&str, Vec<u8>)] = &[
        ("a text", b"a text\n".repeat(1000)),
        ("a short text", b"short".to_vec()),
        ("zeros", vec![0; 8192]),
        ("a damaged header", filled(0, 100)),
        ("damaged pages", filled(page, good.len())),
        ("half of it", good[..good.len() / 2].to_vec()),
        ("another program's", sqlite("CREATE TABLE t (a)")),
        ("another program's, empty", sqlite("PRAGMA application_id = 7; VACUUM")),
    ];
    for (name, bytes) in damaged {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let result = read(&path).map(drop);
        assert!(
            matches!(&result, Err(StoreError::Damaged(at, _)) if *at == path),
            "{name}: {result:?}"
        );
        assert!(fs::read(&path).unwrap() == *bytes, "{name} is left as it is");
    }
    // Nothing is in it that could be lost.
    fs::write(folder.path().join("empty.db"), "").unwrap();
    assert!(read(&folder.path().join("empty.db")).unwrap().is_none());
}

#[test]
fn a_database_of_a_later_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    drop(open(&path));
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let error = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Newer { version: 99, .. }), "{error:?}");
    let text = format!(
        "the state in {} has version 99, and this host reads up to {}; update the host",
        path.display(),
        MIGRATIONS.len()
    );
    assert_eq!(error.to_string(), text);
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn migrations_run_once_in_order_and_as_a_whole() {
    let path = Path::new("x");
    let mut connection = Connection::open_in_memory().unwrap();
    let mut run = |migrations: &[&str]| {
        let result = migrate(&mut connection, path, migrations).map_err(|failure| failure.at(path));
        let version: i64 =
            connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        (result.is_ok(), version)
    };
    let (one, two) = ("CREATE TABLE one (a)", "ALTER TABLE one RENAME TO two");
    assert_eq!(run(&[one]), (true, 1));
    assert_eq!(run(&[one, two]), (true, 2));
    assert_eq!(run(&[one, two]), (true, 2));
    assert_eq!(run(&[one, two, "CREATE TABLE three (a); CREATE TABLE two (a)"]), (false, 2));
    assert_eq!(run(&[one, two, "CREATE TABLE three (a)"]), (true, 3));
    assert_eq!(run(&[one]), (false, 3));
    assert!(migrate(&mut connection, path, &[one]).is_err_and(|failure: RawStoreError| {
        matches!(failure.at(path), StoreError::Newer { version: 3, supported: 1, .. })
    }));
    assert!(!MIGRATIONS.is_empty());
}

#[test]
fn items_of_an_older_database_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let before = MIGRATIONS.iter().position(|step| step.contains("TABLE item_kinds")).unwrap();
    let mut connection = Connection::open(&path).unwrap();
    assert!(migrate(&mut connection, &path, &MIGRATIONS[..before]).is_ok());
    let insert =
        "INSERT INTO items VALUES ('k', 'a', 1, NULL, x'01'), ('k', 'b', 2, NULL, x'0203')";
    connection.execute_batch(insert).unwrap();
    drop(connection);
    let store = open(&path);
    let quota = ItemQuota { items: 9, bytes: 6 };
    let put = store.put_item("k", "c", None, b"", None, quota).unwrap();
    assert!(matches!(put, ItemOutcome::Changed(_)), "{put:?}");
    let full = store.put_item("k", "d", None, b"", None, quota);
    assert!(matches!(full, Err(StoreError::TooManyItems { .. })), "{full:?}");
}

#[cfg(unix)]
pub(super) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
pub(super) fn make(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Checks the files of a store that is open.
#[cfg(unix)]
pub(super) fn assert_private(path: &Path) {
    let folder = path.parent().unwrap();
    assert_eq!(mode(folder), 0o700);
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "the database, its log and the log's index: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
#[cfg(unix)]
fn a_database_that_others_could_read_is_made_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/state.db");
    drop(open(&path));
    make(&path, 0o644);
    let store = open(&path);
    set(&store, &Bucket::user("a"), "key", "x");
    assert_private(&path);
}
