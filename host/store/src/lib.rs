//! What outlives a process, in one database.
//!
//! A [`Store`] has three kinds of things, each with bounds, and locks:
//!
//! * the state of plugins ([`StateStore`]): keys and values, separated into [`Bucket`]s;
//! * logs ([`LogStore`]): what has happened, one entry bound to the one before, such as the record of calls;
//! * items ([`ItemStore`]): what changes in steps and may end, such as an approval that is asked for;
//! * locks ([`LockStore`]): which processes live, so that others take over the items of one that was killed.
//!
//! Which bucket a plugin may use, how much it may keep, and how it asks, is left to the host. The crate depends on none
//! of ours, and needs neither wasmtime nor an executor. Every call blocks until the disk has answered.
//!
//! ```
//! use tenon_store::{Bucket, Quota, SqliteStore, StateStore};
//!
//! # fn main() -> Result<(), tenon_store::StoreError> {
//! let store = SqliteStore::in_memory()?;
//! let bucket = Bucket::user("word-count");
//! let quota = Quota { keys: 100, bytes: 1 << 20 };
//!
//! store.set(&bucket, "greeting", b"hello", quota)?;
//! assert_eq!(store.get(&bucket, "greeting")?, Some(b"hello".to_vec()));
//! assert_eq!(store.increment(&bucket, "calls", 1, quota)?, 1);
//! assert_eq!(store.keys(&bucket, None, 10)?.keys, ["calls", "greeting"]);
//! # Ok(())
//! # }
//! ```

mod batch;
mod bucket;
mod error;
#[cfg(any(test, feature = "expectations"))]
pub mod expectations;
mod item;
mod lazy;
mod liveness_lock;
mod log;
pub mod rules;
mod short_id;
mod sqlite;
mod state;
#[cfg(test)]
mod tests;

pub use batch::{BatchStore, Change};
pub use bucket::{Bucket, Scope};
pub use error::StoreError;
pub use item::{
    Item, ItemOutcome, ItemPage, ItemQuota, ItemStore, MAX_ITEM_BYTES, MAX_PAGE_ITEMS, all_items,
};
pub use lazy::{FILE_NAME, LazyStore};
pub use liveness_lock::{HeldLock, LivenessLock, LockStore};
pub use log::{
    Durability, ENTRY_OVERHEAD_BYTES, LogEntry, LogHash, LogIntegrity, LogPolicy, LogStore,
    LogSummary, MAX_BATCH_ENTRIES, MAX_ENTRY_BYTES, NewEntry, check_log,
};
pub use short_id::IdKind;
pub use sqlite::SqliteStore;
pub use state::{BucketUsage, KeyPage, Quota, StateStore, SwapOutcome};
pub use state::{MAX_BATCH_BYTES, MAX_BATCH_KEYS, MAX_KEY_BYTES, MAX_PAGE_KEYS, MAX_VALUE_BYTES};

/// All that outlives a process, and what says which processes live. Whatever stores all of it is one.
pub trait Store: StateStore + LogStore + ItemStore + BatchStore + LockStore {}

impl<T: StateStore + LogStore + ItemStore + BatchStore + LockStore> Store for T {}
