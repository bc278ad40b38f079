//! Expectations of the logs of every store.

use crate::*;

const ROOMY: LogPolicy = LogPolicy { max_bytes: 1 << 20, durability: Durability::Process };

/// Adds texts to a log, each a millisecond after the other.
fn append(store: &dyn LogStore, log: &str, texts: &[&str], policy: LogPolicy) -> LogSummary {
    let begin = store.log(log).unwrap().map_or(1, |summary| summary.next);
    let entries: Vec<NewEntry<'_>> =
        (begin..).zip(texts).map(|(at, text)| NewEntry { at, value: text.as_bytes() }).collect();
    store.append(log, &entries, policy).expect("there is room")
}

fn texts(entries: &[LogEntry]) -> Vec<(u64, String)> {
    let text = |entry: &LogEntry| String::from_utf8(entry.value.clone()).expect("it is text");
    entries.iter().map(|entry| (entry.number, text(entry))).collect()
}

fn numbered(texts: &[(u64, &str)]) -> Vec<(u64, String)> {
    texts.iter().map(|(number, text)| (*number, (*text).to_string())).collect()
}

pub fn entries_are_read_in_both_directions(store: &dyn LogStore) {
    assert_eq!(store.log("a").unwrap(), None);
    assert_eq!(store.entries_before("a", None, 10).unwrap(), []);
    assert_eq!(store.append("a", &[], ROOMY).unwrap(), LogSummary::EMPTY);
    assert_eq!(store.log("a").unwrap(), None, "a log begins with an entry");
    append(store, "a", &["one", "two"], ROOMY);
    append(store, "b", &["other"], ROOMY);
    let summary = append(store, "a", &["three"], ROOMY);
    assert_eq!(store.log("a").unwrap(), Some(summary));
    assert_eq!((summary.first, summary.next), (1, 4));
    assert_eq!(summary.bytes, 11 + 3 * ENTRY_OVERHEAD_BYTES);
    let before = |number, limit| texts(&store.entries_before("a", number, limit).unwrap());
    assert_eq!(before(None, 2), numbered(&[(3, "three"), (2, "two")]));
    assert_eq!(before(Some(2), 9), numbered(&[(1, "one")]));
    assert_eq!(before(Some(u64::MAX), 1), numbered(&[(3, "three")]));
    let from = |number, limit| texts(&store.entries_from("a", number, limit).unwrap());
    assert_eq!(from(0, 2), numbered(&[(1, "one"), (2, "two")]));
    assert_eq!(from(3, 9), numbered(&[(3, "three")]));
    assert_eq!(from(u64::MAX, 9), []);
    assert_eq!(store.entries_from("a", 2, 1).unwrap()[0].at, 2);
}

pub fn each_entry_is_bound_to_the_one_before(store: &dyn LogStore) {
    let summary = append(store, "a", &["one", "two", "three"], ROOMY);
    let entries = store.entries_from("a", 1, 10).unwrap();
    let first = LogHash::NONE.next(1, 1, b"one");
    assert_eq!(entries[0].hash, first);
    assert_eq!(entries[1].hash, first.next(2, 2, b"two"));
    assert_eq!(entries[2].hash, summary.last);
    // Each part of an entry has a say.
    let others = [first.next(3, 2, b"two"), first.next(2, 3, b"two"), first.next(2, 2, b"twO")];
    assert!(!others.contains(&entries[1].hash));
    assert_eq!(check_log(store, "a").unwrap(), LogIntegrity::Whole(summary));
    assert_eq!(check_log(store, "none").unwrap(), LogIntegrity::Whole(LogSummary::EMPTY));
}

pub fn the_oldest_entries_go_for_new_ones(store: &dyn LogStore) {
    let policy = LogPolicy { max_bytes: 10 * (1 + ENTRY_OVERHEAD_BYTES), ..ROOMY };
    for number in 0..10 {
        assert_eq!(append(store, "a", &["x"], policy).first, 1, "{number}");
    }
    let before = store.entries_from("a", 1, 10).unwrap();
    let summary = append(store, "a", &["x"], policy);
    // An eighth of the room is made at a time.
    assert_eq!((summary.first, summary.next), (4, 12));
    assert_eq!(summary.bytes, 8 * (1 + ENTRY_OVERHEAD_BYTES));
    assert_eq!(summary.before, before[2].hash);
    assert_eq!(store.entries_from("a", 0, 20).unwrap().len(), 8);
    assert_eq!(check_log(store, "a").unwrap(), LogIntegrity::Whole(summary));
    // One that has no room at all is not kept, and the log goes on after it.
    let long = "y".repeat(2_000);
    let summary = append(store, "a", &[&long], policy);
    assert_eq!((summary.first, summary.next, summary.bytes), (13, 13, 0));
    assert_eq!(summary.before, summary.last);
    let summary = append(store, "a", &["z"], policy);
    assert_eq!((summary.first, summary.next), (13, 14));
    assert_eq!(check_log(store, "a").unwrap(), LogIntegrity::Whole(summary));
}

pub fn logs_are_listed_and_removed(store: &dyn LogStore) {
    for log in ["run/2", "run/1", "calls", "run", "run/1%"] {
        append(store, log, &["x"], ROOMY);
    }
    assert_eq!(store.logs("run/").unwrap(), ["run/1", "run/1%", "run/2"]);
    assert_eq!(store.logs("run/1%").unwrap(), ["run/1%"]);
    assert_eq!(store.logs("").unwrap().len(), 5);
    store.remove_log("run/1").unwrap();
    store.remove_log("run/1").unwrap();
    assert_eq!(store.log("run/1").unwrap(), None);
    assert_eq!(store.entries_from("run/1", 0, 10).unwrap(), []);
    // A name may be used again, and begins anew.
    assert_eq!(append(store, "run/1", &["y"], ROOMY).next, 2);
    assert_eq!(texts(&store.entries_from("run/1", 0, 10).unwrap()), numbered(&[(1, "y")]));
}

pub fn entries_have_limits(store: &dyn LogStore) {
    let long = vec![b'x'; MAX_ENTRY_BYTES + 1];
    let add = |value| {
        store.append("a", &[NewEntry { at: 1, value }], LogPolicy { max_bytes: 4 << 20, ..ROOMY })
    };
    assert!(matches!(add(&long), Err(StoreError::EntryTooLong { .. })));
    assert_eq!(store.log("a").unwrap(), None);
    assert!(add(&long[1..]).is_ok());
    let many = vec![NewEntry { at: 1, value: b"x" }; MAX_BATCH_ENTRIES + 1];
    assert!(matches!(store.append("b", &many, ROOMY), Err(StoreError::TooManyEntries { .. })));
    store.append("b", &many[1..], ROOMY).unwrap();
    assert_eq!(store.entries_from("b", 0, usize::MAX).unwrap().len(), MAX_BATCH_ENTRIES);
    assert_eq!(store.entries_before("b", None, 0).unwrap(), []);
}

pub fn entries_that_many_add_follow_each_other(store: &dyn LogStore) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for number in 0..25 {
                    append_one(store, &format!("{thread} {number}"));
                }
            });
        }
    });
    let entries = store.entries_from("a", 0, 1_000).unwrap();
    let numbers: Vec<u64> = entries.iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, (1..=100).collect::<Vec<_>>());
    let mut all: Vec<String> = texts(&entries).into_iter().map(|(_, text)| text).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 100);
    assert!(matches!(check_log(store, "a").unwrap(), LogIntegrity::Whole(_)));
}

fn append_one(store: &dyn LogStore, text: &str) {
    let entry = NewEntry { at: 1, value: text.as_bytes() };
    store.append("a", &[entry], ROOMY).expect("there is room");
}
