//! Several processes with one database, and processes that are killed. A child is this program again: it runs one
//! test, which does what its parent wants of it.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{PLENTY, all_keys, assert_sound, open, value};
use crate::{Bucket, SqliteStore, StateStore, SwapOutcome};

/// What a child does, and its database.
const TASK: &str = "TENON_STATE_CHILD_TASK";
const PATH: &str = "TENON_STATE_CHILD_PATH";

/// How often each child increments.
const INCREMENTS: usize = 100;

#[test]
fn a_child_does_what_its_parent_wants() {
    let (Ok(task), Some(path)) = (env::var(TASK), env::var_os(PATH)) else { return };
    let path = PathBuf::from(path);
    match &*task {
        "increment" => increment(&path),
        "swap" => swap(&path),
        "write" => write(&path),
        "hold a lock" => super::locks::hold_until_killed(&path),
        #[cfg(unix)]
        "hold a lock with a child" => super::locks::hold_with_a_child_until_killed(&path),
        #[cfg(unix)]
        "private" => {
            let store = open(&path);
            super::set(&store, &Bucket::user("a"), "key", "x");
            super::files::assert_private(&path);
        }
        "fill" => super::failures::fill_files_up(&path),
        other => panic!("there is no task {other}"),
    }
}

/// A child, which does not outlive its test.
pub(super) struct OwnedChild(pub(super) Child);

impl Drop for OwnedChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl OwnedChild {
    /// Starts a child with a task. `shell` are commands of a shell, which then becomes the child.
    pub(super) fn start(task: &str, path: &Path, shell: Option<&str>) -> Self {
        let program = env::current_exe().unwrap();
        let mut command = match shell {
            None => Command::new(program),
            Some(shell) => {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("{shell}; exec \"$@\""), "sh"]).arg(program);
                command
            }
        };
        command.args(["--exact", "tests::processes::a_child_does_what_its_parent_wants"]);
        command.args(["--nocapture", "--test-threads=1"]).env(TASK, task).env(PATH, path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().expect("this program starts again"))
    }

    fn succeeds(mut self) {
        let output = io::read_to_string(self.0.stdout.take().unwrap()).unwrap();
        assert!(self.0.wait().unwrap().success(), "{output}");
        assert!(output.contains("1 passed"), "{output}");
    }
}

fn increment(path: &Path) {
    let store = open(path);
    for _ in 0..INCREMENTS {
        store.increment(&Bucket::user("a"), "key", 1, PLENTY).unwrap();
    }
}

fn swap(path: &Path) {
    let (store, bucket) = (open(path), Bucket::user("a"));
    let mut current = store.get(&bucket, "key").unwrap();
    for _ in 0..INCREMENTS {
        loop {
            let number: u64 =
                current.as_deref().map_or(0, |text| str::from_utf8(text).unwrap().parse().unwrap());
            let new = (number + 1).to_string();
            let outcome =
                store.compare_and_swap(&bucket, "key", current.as_deref(), new.as_bytes(), PLENTY);
            match outcome.unwrap() {
                SwapOutcome::Swapped => {
                    current = Some(new.into_bytes());
                    break;
                }
                SwapOutcome::Differs(other) => current = other,
            }
        }
    }
}

#[test]
fn processes_count_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    // All of them find no database.
    let tasks = ["increment", "swap", "increment", "swap"];
    let children = tasks.map(|task| OwnedChild::start(task, &path, None));
    children.into_iter().for_each(OwnedChild::succeeds);
    let sum = (tasks.len() * INCREMENTS).to_string();
    assert_eq!(value(&open(&path), &Bucket::user("a"), "key"), Some(sum));
}

#[test]
#[cfg(unix)]
fn a_relative_path_that_reads_as_a_uri_is_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let name = Path::new("file:state.db?mode=memory");
    let shell = format!("cd '{}'", folder.path().display());
    OwnedChild::start("increment", name, Some(&shell)).succeeds();
    let store = open(&folder.path().join(name));
    assert_eq!(value(&store, &Bucket::user("a"), "key"), Some(INCREMENTS.to_string()));
}

#[test]
#[cfg(unix)]
fn files_are_private_whatever_the_umask() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/state.db");
    OwnedChild::start("private", &path, Some("umask 000")).succeeds();
}

#[test]
#[cfg(unix)]
fn files_that_cannot_grow_are_an_error_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let small = "trap '' XFSZ && ulimit -f 1000";
    OwnedChild::start("fill", &path, Some(small)).succeeds();
    assert_sound(&rusqlite::Connection::open(&path).unwrap());
    super::set(&open(&path), &Bucket::user("a"), "large", &"x".repeat(1_000_000));
}

/// What is in the bucket of the child that is killed.
type Entries = BTreeMap<String, Vec<u8>>;

/// The key that a step deletes first, and what it then sets in one transaction.
fn step(number: u64) -> (String, [(String, Vec<u8>); 2]) {
    let length = (number * 7919 % 9_000) as usize;
    let entries = [
        (format!("value {}", number % 7), vec![number as u8; length]),
        ("last".to_string(), number.to_string().into_bytes()),
    ];
    (format!("value {}", (number + 3) % 7), entries)
}

fn last(store: &SqliteStore) -> u64 {
    value(store, &Bucket::user("a"), "last").map_or(0, |last| last.parse().unwrap())
}

/// Writes steps without end, and says of each that it is confirmed.
fn write(path: &Path) {
    writeln!(io::stdout(), "begins at 0").unwrap();
    let (store, bucket) = (open(path), Bucket::user("a"));
    // So often that many are killed while the log is copied into the database.
    store.writer.lock().unwrap().connection.pragma_update(None, "wal_autocheckpoint", 20).unwrap();
    for number in last(&store) + 1.. {
        let (deleted, entries) = step(number);
        store.delete(&bucket, &deleted).unwrap();
        let entries = entries.each_ref().map(|(key, value)| (&**key, &**value));
        store.set_many(&bucket, &entries, PLENTY).unwrap();
        // Nobody listens any more when the parent has ended.
        if writeln!(io::stdout(), "confirmed at {number}").is_err() {
            return;
        }
    }
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// `TENON_STATE_KILLS` has more of them, and `TENON_STATE_SEED` others.
#[test]
fn what_was_confirmed_survives_a_kill() {
    let variable = |name, otherwise| {
        env::var(name).map_or(otherwise, |text| text.parse().expect("it is a number"))
    };
    let (kills, seed) = (variable("TENON_STATE_KILLS", 40), variable("TENON_STATE_SEED", 1));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let bucket = Bucket::user("a");
    let mut state = seed;
    let (mut expected, mut reached) = (Entries::new(), 0);
    for kill in 0..kills {
        let context = format!("kill {kill} of seed {seed}");
        // Another process may have the database open meanwhile.
        let witness = (random(&mut state).is_multiple_of(2)).then(|| open(&path));
        let mut child = OwnedChild::start("write", &path, None);
        let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let numbers = lines.map_while(Result::ok).filter_map(|line| {
            line.split_once(" at ").map(|(_, number)| number.parse::<u64>().unwrap())
        });
        let confirmed = numbers.take(1 + random(&mut state) as usize % 20).last();
        drop(child);
        let confirmed = confirmed.expect("the child has begun");

        let store = witness.unwrap_or_else(|| open(&path));
        let last = last(&store);
        assert!(last >= confirmed.max(reached), "{context}: {confirmed} was confirmed, not {last}");
        for number in reached + 1..=last {
            let (deleted, entries) = step(number);
            expected.remove(&deleted);
            expected.extend(entries);
        }
        reached = last;
        let keys = all_keys(&store, &bucket, 100);
        let found: Entries = keys
            .into_iter()
            .map(|key| (key.clone(), store.get(&bucket, &key).unwrap().unwrap()))
            .collect();
        if found != expected {
            // The next step had begun.
            expected.remove(&step(last + 1).0);
            assert!(found == expected, "{context}: entries after {last}");
        }
        assert_sound(&store.writer.lock().unwrap().connection);
    }
    assert!(reached > kills, "seed {seed}: the children wrote");
}
