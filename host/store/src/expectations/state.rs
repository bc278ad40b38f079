//! Expectations of the state of plugins.

use std::ffi::OsStr;

use super::{PLENTY, all_keys, set, value};
use crate::*;

pub fn what_is_set_is_read_until_it_is_deleted(store: &dyn StateStore) {
    let bucket = Bucket::user("a");
    assert_eq!(value(store, &bucket, "key"), None);
    assert!(!store.exists(&bucket, "key").unwrap());
    store.delete(&bucket, "key").unwrap();
    for text in ["one", "", "a longer one"] {
        set(store, &bucket, "key", text);
        assert_eq!(value(store, &bucket, "key").as_deref(), Some(text));
        assert!(store.exists(&bucket, "key").unwrap());
        let usage = BucketUsage { keys: 1, bytes: 3 + text.len() as u64 };
        assert_eq!(store.usage(&bucket).unwrap(), usage, "{text}");
    }
    store.delete(&bucket, "key").unwrap();
    store.delete(&bucket, "key").unwrap();
    assert_eq!(value(store, &bucket, "key"), None);
    assert_eq!(store.usage(&bucket).unwrap(), BucketUsage::default());
    assert_eq!(store.buckets(None).unwrap(), []);
}

pub fn several_keys_are_set_and_deleted_together(store: &dyn StateStore) {
    let bucket = Bucket::user("a");
    store.set_many(&bucket, &[("x", b"1"), ("y", b"2"), ("x", b"33")], PLENTY).unwrap();
    let values = store.get_many(&bucket, &["y", "none", "x", "y"]).unwrap();
    assert_eq!(values, [Some(b"2".to_vec()), None, Some(b"33".to_vec()), Some(b"2".to_vec())]);
    assert_eq!(store.usage(&bucket).unwrap(), BucketUsage { keys: 2, bytes: 5 });
    store.delete_many(&bucket, &["x", "none", "x"]).unwrap();
    assert_eq!(all_keys(store, &bucket, 10), ["y"]);
    store.set_many(&bucket, &[], PLENTY).unwrap();
    store.clear(&bucket).unwrap();
    assert_eq!(store.get_many(&bucket, &["x", "y"]).unwrap(), [None, None]);
}

pub fn keys_are_listed_in_the_order_of_their_bytes(store: &dyn StateStore) {
    let bucket = Bucket::user("a");
    assert_eq!(store.keys(&bucket, None, 5).unwrap(), KeyPage::default());
    let long = "ü".repeat(MAX_KEY_BYTES / 2);
    let mut keys = [
        "",
        "\0",
        "\0\0",
        "A",
        "a",
        "a\0",
        "a\0b",
        "a b",
        "a'; --",
        "ab",
        "é",
        &long,
        "\u{10ffff}",
    ];
    keys.sort_unstable();
    for key in keys.iter().rev() {
        set(store, &bucket, key, key);
        assert_eq!(value(store, &bucket, key).as_deref(), Some(*key));
    }
    for limit in 1..=keys.len() + 1 {
        assert_eq!(all_keys(store, &bucket, limit), keys, "{limit}");
    }
    // A cursor is a position, and need not be a key any more.
    store.delete(&bucket, "a").unwrap();
    assert_eq!(store.keys(&bucket, Some("a"), 0).unwrap().keys, ["a\0"]);
}

pub fn numbers_are_counted_as_text(store: &dyn StateStore) {
    let bucket = Bucket::user("a");
    let check = |before: Option<&str>, delta, expected: Result<i64, &str>| {
        store.clear(&bucket).unwrap();
        before.into_iter().for_each(|before| set(store, &bucket, "key", before));
        let sum = store.increment(&bucket, "key", delta, PLENTY).map_err(|error| error.to_string());
        assert_eq!(
            sum.as_ref().map_err(|error| &**error),
            expected.as_ref().map_err(|error| *error)
        );
        let after = sum.map_or(before.map(str::to_string), |sum| Some(sum.to_string()));
        assert_eq!(value(store, &bucket, "key"), after);
    };
    let no_number = Err("the value of the key \"key\" is not a decimal integer of 64 bits");
    let overflow = Err("the value of the key \"key\" would be beyond 64 bits");
    check(None, 5, Ok(5));
    check(None, 0, Ok(0));
    check(Some("9"), 1, Ok(10));
    check(Some("9"), -10, Ok(-1));
    check(Some("-9223372036854775808"), i64::MAX, Ok(-1));
    check(Some(""), 1, no_number);
    check(Some("1.5"), 1, no_number);
    check(Some("secret"), 1, no_number);
    check(Some(" 1"), 1, no_number);
    check(Some("9223372036854775808"), -1, no_number);
    check(Some("9223372036854775807"), 1, overflow);
    check(Some("-1"), i64::MIN, overflow);
}

pub fn a_value_is_swapped_if_it_is_the_expected_one(store: &dyn StateStore) {
    let bucket = Bucket::user("a");
    let check = |before: Option<&str>, expected: Option<&str>, swaps| {
        store.clear(&bucket).unwrap();
        before.into_iter().for_each(|before| set(store, &bucket, "key", before));
        let expected = expected.map(str::as_bytes);
        let outcome = store.compare_and_swap(&bucket, "key", expected, b"new", PLENTY).unwrap();
        let stays = SwapOutcome::Differs(before.map(|before| before.into()));
        assert_eq!(outcome, if swaps { SwapOutcome::Swapped } else { stays });
        let after = if swaps { Some("new") } else { before };
        assert_eq!(value(store, &bucket, "key").as_deref(), after);
        assert!(!format!("{outcome:?}").contains("secret"));
    };
    check(None, None, true);
    check(Some("x"), Some("x"), true);
    check(Some(""), Some(""), true);
    check(None, Some(""), false);
    check(Some(""), None, false);
    check(Some("secret"), Some("secre"), false);
}

pub fn a_quota_is_exact(store: &dyn StateStore) {
    let bucket = Bucket::user("a");
    let quota = Quota { keys: 2, bytes: 10 };
    store.set_many(&bucket, &[("a", b"123"), ("b", b"1234")], quota).unwrap();
    let contents = || {
        let values = store.get_many(&bucket, &["a", "b", "c"]).unwrap();
        (values, store.usage(&bucket).unwrap())
    };
    let before = contents();
    let refused = |what: &str, result: Result<(), StoreError>, keys, bytes| {
        let needed = BucketUsage { keys, bytes };
        match result {
            Err(StoreError::QuotaExceeded { needed: found, .. }) => {
                assert_eq!(found, needed, "{what}")
            }
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!(contents(), before, "{what}");
    };
    refused("a byte more", store.set(&bucket, "a", b"12345", quota), 2, 11);
    refused("a key more", store.set(&bucket, "c", b"", quota), 3, 10);
    let entries: [(&str, &[u8]); 3] = [("a", b""), ("b", b""), ("c", b"x")];
    refused("the last of several", store.set_many(&bucket, &entries, quota), 3, 4);
    let swap = store.compare_and_swap(&bucket, "b", Some(b"1234"), b"123456", quota);
    refused("a swap", swap.map(drop), 2, 11);
    let sum = store.increment(&bucket, "b", 100_000, quota);
    refused("a longer number", sum.map(drop), 2, 11);
    let elsewhere = Bucket::user("new");
    assert!(store.set(&elsewhere, "a", b"", Quota { keys: 0, bytes: 9 }).is_err());
    assert_eq!(store.buckets(Some("new")).unwrap(), []);
    // To the border, and in any order within one call.
    store.set(&bucket, "a", b"1234", quota).unwrap();
    store.set_many(&bucket, &[("b", b"12345"), ("a", b"123")], quota).unwrap();
    store.delete(&bucket, "a").unwrap();
    store.set(&bucket, "c", b"123", quota).unwrap();
    assert_eq!(store.usage(&bucket).unwrap(), BucketUsage { keys: 2, bytes: 10 });
}

pub fn a_bucket_over_its_quota_can_shrink(store: &dyn StateStore) {
    let bucket = Bucket::user("a");
    store.set_many(&bucket, &[("a", b"12345"), ("b", b"12345"), ("c", b"")], PLENTY).unwrap();
    let lowered = Quota { keys: 1, bytes: 4 };
    assert!(store.set(&bucket, "c", b"1", lowered).is_err());
    assert!(store.set(&bucket, "d", b"", lowered).is_err());
    store.set(&bucket, "a", b"1234", lowered).unwrap();
    store.set(&bucket, "b", b"54321", lowered).unwrap();
    store.increment(&bucket, "b", -54_000, lowered).unwrap();
    store.delete(&bucket, "a").unwrap();
    assert_eq!(store.usage(&bucket).unwrap(), BucketUsage { keys: 2, bytes: 5 });
    // Bytes may grow up to their quota while there are too many keys, and no further.
    let fewer_keys = Quota { keys: 1, bytes: 6 };
    store.set(&bucket, "c", b"1", fewer_keys).unwrap();
    assert!(store.set(&bucket, "c", b"12", fewer_keys).is_err());
}

pub fn lengths_and_numbers_have_limits(store: &dyn StateStore) {
    let bucket = Bucket::user("a");
    let long = "k".repeat(MAX_KEY_BYTES + 1);
    let refused: [Result<(), StoreError>; 6] = [
        store.get(&bucket, &long).map(drop),
        store.exists(&bucket, &long).map(drop),
        store.set(&bucket, &long, b"", PLENTY),
        store.delete(&bucket, &long),
        store.increment(&bucket, &long, 1, PLENTY).map(drop),
        store.compare_and_swap(&bucket, &long, None, b"", PLENTY).map(drop),
    ];
    for result in refused {
        assert!(matches!(result, Err(StoreError::KeyTooLong { length: 1025 })), "{result:?}");
    }
    set(store, &bucket, &long[1..], "");
    let large = vec![7; MAX_VALUE_BYTES + 1];
    let result = store.set(&bucket, "large", &large, PLENTY);
    assert!(matches!(result, Err(StoreError::ValueTooLarge { .. })), "{result:?}");
    store.set(&bucket, "large", &large[1..], PLENTY).unwrap();
    assert_eq!(store.get_many(&bucket, &["large"; 16]).unwrap().len(), 16);
    let result = store.get_many(&bucket, &["large"; 17]).map(drop);
    assert!(matches!(result, Err(StoreError::TooManyBytes)), "{result:?}");
    let result = store.get_many(&bucket, &["x"; MAX_BATCH_KEYS + 1]).map(drop);
    assert!(matches!(result, Err(StoreError::TooManyKeys { .. })), "{result:?}");
    assert_eq!(store.get_many(&bucket, &["x"; MAX_BATCH_KEYS]).unwrap().len(), MAX_BATCH_KEYS);
}

pub fn buckets_never_mix(store: &dyn StateStore) {
    #[cfg(unix)]
    let odd: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"/p\xff");
    #[cfg(not(unix))]
    let odd = OsStr::new("/p\u{fffd}");
    let mut buckets = vec![
        Bucket::user(""),
        Bucket::user("a"),
        Bucket::user("a\0user"),
        Bucket::user("a/p"),
        Bucket::user("b"),
        Bucket::project("a", ""),
        Bucket::project("a", "/p"),
        Bucket::project("a", "/p\n'\"; --"),
        Bucket::project("a", "/pö"),
        Bucket::project("a", odd),
        Bucket::project("b", "/p"),
        Bucket::session("a", ""),
        Bucket::session("a", "/p"),
        Bucket::session("a", "user"),
        Bucket::session("a", "x\0b"),
        Bucket::session("a\0x", "b"),
        Bucket::session("b", "/p"),
    ];
    for (number, bucket) in buckets.iter().enumerate() {
        assert!(!store.exists(bucket, "key").unwrap(), "{bucket:?}");
        set(store, bucket, "key", &number.to_string());
    }
    for (number, bucket) in buckets.iter().enumerate() {
        assert_eq!(value(store, bucket, "key"), Some(number.to_string()), "{bucket:?}");
    }
    let trailing = Bucket::project("a", "/p/");
    assert_eq!(value(store, &trailing, "key").as_deref(), Some("6"), "equal paths are one project");
    let listed = |plugin| -> Vec<Bucket> {
        let listed = store.buckets(plugin).expect("buckets are listed");
        assert!(listed.iter().all(|(bucket, usage)| *usage == store.usage(bucket).unwrap()));
        let mut listed: Vec<Bucket> = listed.into_iter().map(|(bucket, _)| bucket).collect();
        listed.sort();
        listed
    };
    buckets.sort();
    assert_eq!(listed(None), buckets);
    let of_b: Vec<_> = buckets.iter().filter(|bucket| bucket.plugin == "b").cloned().collect();
    assert_eq!(listed(Some("b")), of_b);
    store.clear(&Bucket::user("a")).unwrap();
    buckets.retain(|bucket| *bucket != Bucket::user("a"));
    assert_eq!(listed(None), buckets);
}

pub fn a_session_ends_with_all_its_buckets(store: &dyn StateStore) {
    let of_session = [Bucket::session("a", "s"), Bucket::session("b", "s")];
    let others = [Bucket::session("a", "t"), Bucket::project("a", "s"), Bucket::user("s")];
    for bucket in of_session.iter().chain(&others) {
        set(store, bucket, "key", "x");
    }
    store.clear_session("s").unwrap();
    store.clear_session("none").unwrap();
    for (bucket, stays) in
        of_session.iter().map(|b| (b, false)).chain(others.iter().map(|b| (b, true)))
    {
        assert_eq!(store.exists(bucket, "key").unwrap(), stays, "{bucket:?}");
    }
}
