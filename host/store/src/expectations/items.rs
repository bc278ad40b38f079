//! Expectations of the items of every store.

use crate::*;

const ROOMY: ItemQuota = ItemQuota { items: 100, bytes: 1 << 20 };

/// Sets an item that has this version, and gives its new one.
fn put(store: &dyn ItemStore, id: &str, version: Option<u64>, value: &str) -> u64 {
    match store.put_item("k", id, version, value.as_bytes(), None, ROOMY).expect("there is room") {
        ItemOutcome::Changed(version) => version,
        ItemOutcome::Differs(item) => panic!("it is {item:?}"),
    }
}

pub fn an_item_changes_from_the_version_that_was_seen(store: &dyn ItemStore) {
    assert_eq!(store.item("k", "a").unwrap(), None);
    let first = put(store, "a", None, "one");
    let item = Item { id: "a".into(), version: first, expires: None, value: b"one".to_vec() };
    assert_eq!(store.item("k", "a").unwrap(), Some(item.clone()));
    assert_eq!(store.item("other", "a").unwrap(), None);
    let change = |version| store.put_item("k", "a", version, b"no", None, ROOMY).unwrap();
    for other in [None, Some(first + 1), Some(u64::MAX)] {
        assert_eq!(change(other), ItemOutcome::Differs(Some(item.clone())), "{other:?}");
    }
    let second = put(store, "a", Some(first), "two");
    assert_ne!(second, first);
    assert!(!store.remove_item("k", "a", first).unwrap());
    assert_eq!(store.item("k", "a").unwrap().unwrap().value, b"two");
    assert!(store.remove_item("k", "a", second).unwrap());
    assert!(!store.remove_item("k", "a", second).unwrap());
    assert_eq!(change(Some(second)), ItemOutcome::Differs(None));
    // One that is made anew is not taken for the one that was there.
    assert!(![first, second].contains(&put(store, "a", None, "one")));
}

pub fn one_of_several_who_change_a_version_does(store: &dyn ItemStore) {
    let version = put(store, "a", None, "");
    let changed: usize = std::thread::scope(|scope| {
        let change = |text: String| {
            scope.spawn(move || {
                let put = store.put_item("k", "a", Some(version), text.as_bytes(), None, ROOMY);
                usize::from(matches!(put.unwrap(), ItemOutcome::Changed(_)))
            })
        };
        let threads: Vec<_> = (0..8).map(|number| change(number.to_string())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(changed, 1);
}

pub fn items_are_listed_by_their_ids(store: &dyn ItemStore) {
    let mut ids = ["b", "a", "a\0", "", "ü", "a b"];
    for id in ids {
        put(store, id, None, id);
    }
    store.put_item("other", "x", None, b"", None, ROOMY).unwrap();
    ids.sort_unstable();
    for limit in [1, 2, 6, 7] {
        let (mut listed, mut cursor) = (Vec::new(), None);
        loop {
            let page = store.items("k", cursor.as_deref(), limit).unwrap();
            assert!(page.items.len() <= limit);
            listed.extend(page.items.into_iter().map(|item| item.id));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(listed, ids, "{limit}");
    }
    assert_eq!(store.items("none", None, 5).unwrap(), ItemPage::default());
}

pub fn items_end_with_their_time(store: &dyn ItemStore) {
    for (id, expires) in [("a", None), ("b", Some(10)), ("c", Some(11)), ("d", Some(u64::MAX))] {
        store.put_item("k", id, None, b"", expires, ROOMY).unwrap();
    }
    store.put_item("other", "b", None, b"", Some(1), ROOMY).unwrap();
    let is_expired = |id| store.item("k", id).unwrap().unwrap().is_expired(10);
    assert_eq!(["a", "b", "c", "d"].map(is_expired), [false, true, false, false]);
    assert_eq!(store.remove_expired_items("k", 10).unwrap(), 1);
    assert_eq!(store.remove_expired_items("k", 10).unwrap(), 0);
    let ids = store.items("k", None, 10).unwrap().items.into_iter().map(|item| item.id);
    assert_eq!(ids.collect::<Vec<_>>(), ["a", "c", "d"]);
    assert!(store.item("other", "b").unwrap().is_some());
}

pub fn items_have_limits(store: &dyn ItemStore) {
    let quota = ItemQuota { items: 2, bytes: 10 };
    let put = |id, version, value: &[u8]| store.put_item("k", id, version, value, None, quota);
    let is_full = |put| matches!(put, Err(StoreError::TooManyItems { .. }));
    let Ok(ItemOutcome::Changed(version)) = put("a", None, b"1234") else { panic!("no room") };
    assert!(is_full(put("b", None, b"12345")));
    put("b", None, b"1234").unwrap();
    assert!(is_full(put("c", None, b"")));
    // What is there may change within the room that there is.
    assert!(is_full(put("a", Some(version), b"12345")));
    put("a", Some(version), b"4321").unwrap();
    assert!(is_full(put("c", None, b"")));
    // What goes leaves room, and so does what becomes shorter.
    let gone = store.item("k", "b").unwrap().unwrap().version;
    assert!(store.remove_item("k", "b", gone).unwrap());
    let Ok(ItemOutcome::Changed(_)) = put("c", None, b"1234") else { panic!("no room") };
    let a = store.item("k", "a").unwrap().unwrap().version;
    let Ok(ItemOutcome::Changed(a)) = put("a", Some(a), b"1") else { panic!("no room") };
    let c = store.item("k", "c").unwrap().unwrap().version;
    store.put_item("k", "c", Some(c), b"1234567", Some(5), quota).unwrap();
    assert!(is_full(put("a", Some(a), b"12")));
    assert_eq!(store.remove_expired_items("k", 5).unwrap(), 1);
    put("a", Some(a), b"123456789").unwrap();
    assert!(is_full(put("c", None, b"")));
    // Each kind has its own.
    store.put_item("other", "c", None, b"12345", None, quota).unwrap();
    let long = vec![0; MAX_ITEM_BYTES + 1];
    let put = store.put_item("k", "d", None, &long, None, ItemQuota { items: 9, bytes: 9 << 20 });
    assert!(matches!(put, Err(StoreError::ValueTooLarge { .. })));
    let put = store.put_item("k", &"d".repeat(MAX_KEY_BYTES + 1), None, b"", None, ROOMY);
    assert!(matches!(put, Err(StoreError::KeyTooLong { .. })));
}
