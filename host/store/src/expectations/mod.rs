//! What every store does, whatever it is made of. Each is a function that breaks off where a store does something else; the
//! store is empty before.
#![allow(missing_docs, clippy::missing_panics_doc)]

mod batch;
mod items;
mod locks;
mod logs;
mod state;

pub use batch::*;
pub use items::*;
pub use locks::*;
pub use logs::*;
pub use state::*;

use crate::{Bucket, Quota, StateStore, Store};

pub(crate) const PLENTY: Quota = Quota { keys: 10_000, bytes: 100 << 20 };

pub(crate) fn value(store: &dyn StateStore, bucket: &Bucket, key: &str) -> Option<String> {
    let value = store.get(bucket, key).expect("the key is read");
    value.map(|value| String::from_utf8(value).expect("tests store text"))
}

pub(crate) fn set(store: &dyn StateStore, bucket: &Bucket, key: &str, value: &str) {
    store.set(bucket, key, value.as_bytes(), PLENTY).expect("there is room");
}

/// Every key of a bucket, read in pages of this length.
pub(crate) fn all_keys(store: &dyn StateStore, bucket: &Bucket, limit: usize) -> Vec<String> {
    let (mut keys, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.keys(bucket, cursor.as_deref(), limit).expect("keys are listed");
        assert!(page.keys.len() <= limit);
        keys.extend(page.keys);
        cursor = page.next;
        if cursor.is_none() {
            return keys;
        }
    }
}

/// What a store does, as a function that breaks off where it does something else.
pub type Expectation = fn(&dyn Store);

/// Lists expectations by their names.
macro_rules! expectations {
    ($($name:ident),+ $(,)?) => {
        /// All of them, by their names.
        pub const ALL: &[(&str, Expectation)] = &[$((stringify!($name), |store| $name(store))),+];

        /// Makes a test of each, with new stores of two kinds.
        #[cfg(test)]
        mod tests {
            mod on_disk {
                $(#[test] fn $name() {
                    let folder = tempfile::tempdir().unwrap();
                    crate::expectations::$name(&crate::tests::open(&folder.path().join("state.db")));
                })+
            }
            mod in_memory {
                $(#[test] fn $name() {
                    crate::expectations::$name(&crate::SqliteStore::in_memory().unwrap());
                })+
            }
        }
    };
}

expectations![
    what_is_set_is_read_until_it_is_deleted,
    several_keys_are_set_and_deleted_together,
    keys_are_listed_in_the_order_of_their_bytes,
    numbers_are_counted_as_text,
    a_value_is_swapped_if_it_is_the_expected_one,
    a_quota_is_exact,
    a_bucket_over_its_quota_can_shrink,
    lengths_and_numbers_have_limits,
    buckets_never_mix,
    a_session_ends_with_all_its_buckets,
    entries_are_read_in_both_directions,
    each_entry_is_bound_to_the_one_before,
    the_oldest_entries_go_for_new_ones,
    logs_are_listed_and_removed,
    entries_have_limits,
    entries_that_many_add_follow_each_other,
    an_item_changes_from_the_version_that_was_seen,
    one_of_several_who_change_a_version_does,
    items_are_listed_by_their_ids,
    items_end_with_their_time,
    items_have_limits,
    changes_are_made_together_or_not_at_all,
    a_lock_is_held_once_until_it_is_dropped,
    locks_of_several_names_are_apart,
    one_of_several_who_want_a_lock_holds_it,
    asking_for_a_lock_keeps_nobody_from_it,
    names_of_locks_have_a_limit,
];
