//! Changes that are made together.

use crate::{
    Change, Durability, ItemOutcome, ItemQuota, LogIntegrity, NewEntry, Store, StoreError,
};

const QUOTA: ItemQuota = ItemQuota { items: 2, bytes: 100 };

fn add<'a>(id: &'a str, value: &'a [u8]) -> Change<'a> {
    Change::PutItem { kind: "k", id, version: None, value, expires: Some(7), quota: QUOTA }
}

fn append<'a>(log: &'a str, entries: &'a [NewEntry<'a>]) -> Change<'a> {
    Change::Append { log, entries, max_bytes: 1 << 20 }
}

pub fn changes_are_made_together_or_not_at_all(store: &dyn Store) {
    let entries = [NewEntry { at: 1, value: b"one" }, NewEntry { at: 2, value: b"two" }];
    for durability in [Durability::Process, Durability::Disk] {
        let change = |changes: &[Change<'_>]| store.change(changes, durability);
        let (ids, logs) =
            (|| store.items("k", None, 10).unwrap().items, || store.logs("").unwrap());
        assert!(change(&[]).unwrap());
        assert!(change(&[add("a", b"1"), append("l", &entries), append("m", &entries)]).unwrap());
        let kept = ids();
        assert_eq!(
            (kept[0].id.as_str(), &*kept[0].value, kept[0].expires),
            ("a", &b"1"[..], Some(7))
        );
        assert_eq!(logs(), ["l", "m"]);
        assert!(matches!(crate::check_log(store, "l").unwrap(), LogIntegrity::Whole(_)));
        // One that is there, too many, or too long: nothing is changed.
        assert!(!change(&[append("n", &entries), add("b", b""), add("a", b"2")]).unwrap());
        let full = change(&[append("n", &entries), add("b", b""), add("c", b"")]);
        assert!(matches!(full, Err(StoreError::TooManyItems { .. })), "{full:?}");
        let long = vec![0; crate::MAX_ITEM_BYTES + 1];
        assert!(change(&[append("n", &entries), add("b", &long)]).is_err());
        assert_eq!((ids(), logs()), (kept.clone(), vec!["l".to_string(), "m".to_string()]));
        let remove = |version| {
            [
                Change::RemoveLog { log: "l" },
                Change::RemoveLog { log: "none" },
                Change::RemoveItem { kind: "k", id: "a", version },
            ]
        };
        assert!(!change(&remove(kept[0].version + 1)).unwrap());
        assert_eq!(logs(), ["l", "m"]);
        assert!(change(&remove(kept[0].version)).unwrap());
        assert!(!change(&remove(kept[0].version)).unwrap());
        assert_eq!((ids(), logs()), (vec![], vec!["m".to_string()]));
        // In their order: what was removed can be added.
        let again = [Change::RemoveLog { log: "m" }, append("m", &entries[..1])];
        assert!(change(&again).unwrap());
        assert_eq!(store.log("m").unwrap().unwrap().next, 2);
        assert!(change(&[Change::RemoveLog { log: "m" }]).unwrap());
        let put = store.put_item("k", "z", None, b"", None, QUOTA).unwrap();
        let ItemOutcome::Changed(version) = put else { panic!("{put:?}") };
        let replace = Change::PutItem {
            kind: "k",
            id: "z",
            version: Some(version),
            value: b"2",
            expires: None,
            quota: QUOTA,
        };
        assert!(change(&[replace]).unwrap());
        assert!(!change(&[replace]).unwrap());
        let replaced = ids();
        assert_eq!(*replaced[0].value, *b"2");
        let version = replaced[0].version;
        assert!(change(&[Change::RemoveItem { kind: "k", id: "z", version }]).unwrap());
    }
}
