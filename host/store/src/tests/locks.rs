//! Locks as files: of several stores and processes, private, and gone when nobody holds them.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::open;
use super::processes::OwnedChild;
use crate::expectations::a_lock_holds_for_every_store_of_a_database;
use crate::{LockStore, StoreError};

/// The files in the folder of locks, except for the one that is always there.
fn files(database: &Path) -> Vec<PathBuf> {
    let folder = fs::read_dir(database.with_file_name("state.db-locks"));
    let paths = folder.unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| !path.ends_with("guard")).collect()
}

#[test]
fn a_lock_holds_for_every_store_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    a_lock_holds_for_every_store_of_a_database(&open(&path), &open(&path));
    assert_eq!(files(&path), [] as [PathBuf; 0]);
}

#[test]
#[cfg(unix)]
fn a_lock_holds_for_a_store_that_was_opened_by_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("state.db"), folder.path().join("link.db"));
    let store = open(&path);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    a_lock_holds_for_every_store_of_a_database(&store, &open(&link));
}

#[test]
fn a_store_without_locks_has_no_folder_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    assert!(!open(&path).is_locked("a").unwrap());
    assert!(!path.with_file_name("state.db-locks").exists());
}

#[test]
fn a_lock_outlives_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let held = open(&path).hold_lock("a").unwrap().unwrap();
    assert!(open(&path).is_locked("a").unwrap());
    drop(held);
    assert!(!open(&path).is_locked("a").unwrap());
}

#[test]
#[cfg(unix)]
fn files_of_locks_are_private() {
    use super::files::{make, mode};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let locks = path.with_file_name("state.db-locks");
    fs::create_dir(&locks).unwrap();
    make(&locks, 0o755);
    let held = open(&path).hold_lock("a").unwrap().unwrap();
    assert_eq!(mode(&locks), 0o700);
    let files = files(&path);
    assert_eq!(files.len(), 1, "{held:?}");
    for file in [&files[0], &locks.join("guard")] {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
}

#[test]
fn what_cannot_be_locked_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let (store, locks) = (open(&path), path.with_file_name("state.db-locks"));
    fs::write(&locks, "a file").unwrap();
    let error = store.hold_lock("a").map(drop).unwrap_err();
    assert!(matches!(&error, StoreError::Io(at, _) if at.ends_with("state.db-locks")), "{error:?}");
    fs::remove_file(&locks).unwrap();
    assert!(store.hold_lock("a").unwrap().is_some());
}

/// Tells the parent that the lock is held.
fn report_held() {
    writeln!(io::stdout(), "the lock is held").unwrap();
}

fn wait_until_held(child: &mut OwnedChild) {
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("the lock is held")));
}

/// In a child.
pub(super) fn hold_until_killed(path: &Path) {
    let _held = open(path).hold_lock("a").unwrap().unwrap();
    report_held();
    loop {
        std::thread::park();
    }
}

/// In a child. Its own child ends with the input, which only the parent of both can end.
#[cfg(unix)]
pub(super) fn hold_with_a_child_until_killed(path: &Path) {
    use std::process::{Command, Stdio};
    let _held = open(path).hold_lock("a").unwrap().unwrap();
    let mut child = Command::new("cat").stdout(Stdio::null()).spawn().unwrap();
    report_held();
    child.wait().unwrap();
}

#[test]
fn a_killed_process_holds_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path);
    let mut child = OwnedChild::start("hold a lock", &path, None);
    wait_until_held(&mut child);
    assert!(store.is_locked("a").unwrap());
    assert!(store.hold_lock("a").unwrap().is_none());
    drop(child);
    assert_eq!(files(&path).len(), 1, "it could remove nothing");
    assert!(!store.is_locked("a").unwrap());
    assert_eq!(files(&path), [] as [PathBuf; 0]);
    assert!(store.hold_lock("a").unwrap().is_some());
}

#[test]
fn what_killed_processes_leave_is_removed_with_the_next_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path);
    let kept = store.hold_lock("kept").unwrap();
    let mut child = OwnedChild::start("hold a lock", &path, None);
    wait_until_held(&mut child);
    drop(child);
    assert_eq!(files(&path).len(), 2);
    let other = open(&path);
    let held = other.hold_lock("b").unwrap();
    assert_eq!(files(&path).len(), 2, "that of each lock which is held");
    assert!(other.is_locked("kept").unwrap() && store.is_locked("b").unwrap());
    drop((kept, held));
    assert_eq!(files(&path), [] as [PathBuf; 0]);
}

#[test]
#[cfg(unix)]
fn a_child_does_not_keep_the_lock_of_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path);
    let mut child = OwnedChild::start("hold a lock with a child", &path, None);
    let input = child.0.stdin.take();
    wait_until_held(&mut child);
    assert!(store.is_locked("a").unwrap());
    drop(child);
    assert!(!store.is_locked("a").unwrap());
    // Now the child of the child ends.
    drop(input);
}
