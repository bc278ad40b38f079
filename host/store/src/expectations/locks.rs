//! Expectations of the locks of every store.

use std::thread;

use crate::*;

fn hold(store: &dyn LockStore, name: &str) -> Option<Box<dyn HeldLock>> {
    store.hold_lock(name).expect("the lock is tried")
}

fn is_locked(store: &dyn LockStore, name: &str) -> bool {
    store.is_locked(name).expect("the lock is seen")
}

pub fn a_lock_is_held_once_until_it_is_dropped(store: &dyn LockStore) {
    assert!(!is_locked(store, "a"), "nobody holds it");
    for round in 0..3 {
        let held = hold(store, "a").expect("it is free");
        assert!(is_locked(store, "a"), "round {round}");
        assert!(hold(store, "a").is_none(), "round {round}");
        assert!(hold(store, "a").is_none(), "who is refused takes nothing");
        drop(held);
        assert!(!is_locked(store, "a"), "round {round}");
    }
}

pub fn locks_of_several_names_are_apart(store: &dyn Store) {
    let long = ["l".repeat(MAX_KEY_BYTES), "l".repeat(MAX_KEY_BYTES - 1)];
    let mut names = vec!["", "a", "A", "a\0", "b", "ü", "../a", "guard", "items k"];
    names.extend(long.iter().map(String::as_str));
    let mut held: Vec<_> = names.iter().map(|name| (*name, hold(store, name))).collect();
    assert!(held.iter().all(|(_, held)| held.is_some()), "{held:?}");
    // A store may have locks of its own with such names, and still changes what they are for.
    let quota = ItemQuota { items: 1, bytes: 10 };
    store.put_item("k", "i", None, b"", None, quota).expect("there is room");
    while let Some((name, lock)) = held.pop() {
        drop(lock);
        assert!(!is_locked(store, name), "{name:?}");
        assert!(held.iter().all(|(other, _)| is_locked(store, other)), "all except {name:?}");
    }
}

pub fn one_of_several_who_want_a_lock_holds_it(store: &dyn LockStore) {
    let held: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| hold(store, "a"))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(is_locked(store, "a"));
    drop(held);
    assert!(!is_locked(store, "a"));
}

pub fn asking_for_a_lock_keeps_nobody_from_it(store: &dyn LockStore) {
    thread::scope(|scope| {
        let holder = scope.spawn(|| {
            for round in 0..100 {
                let held = hold(store, "a");
                assert!(held.is_some() && is_locked(store, "a"), "round {round}");
            }
        });
        while !holder.is_finished() {
            is_locked(store, "a");
        }
    });
}

pub fn names_of_locks_have_a_limit(store: &dyn LockStore) {
    let long = "l".repeat(MAX_KEY_BYTES + 1);
    assert!(matches!(store.hold_lock(&long), Err(StoreError::KeyTooLong { .. })));
    assert!(matches!(store.is_locked(&long), Err(StoreError::KeyTooLong { .. })));
}

/// Of two stores of one database. It is not in the list, since a database in memory has one store only.
pub fn a_lock_holds_for_every_store_of_a_database(one: &dyn LockStore, other: &dyn LockStore) {
    let held = hold(one, "a").expect("it is free");
    assert!(is_locked(other, "a"));
    assert!(hold(other, "a").is_none());
    let apart = hold(other, "b").expect("it is free");
    assert!(is_locked(one, "b"));
    drop(held);
    assert!(!is_locked(other, "a") && is_locked(other, "b"));
    let held = hold(other, "a").expect("it is free again");
    assert!(is_locked(one, "a") && hold(one, "a").is_none());
    drop((held, apart));
    assert!(!is_locked(one, "a") && !is_locked(one, "b"));
}
