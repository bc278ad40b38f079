//! The state of plugins: keys and values that plugins keep between calls, reloads and restarts.
//!
//! This crate owns one embedded database with the state of all plugins, separated into [`Bucket`]s. Which bucket a
//! plugin may use, how much it may keep, and how it asks, is left to the host. The crate depends on none of ours, and
//! needs neither wasmtime nor an executor. Every call blocks until the disk has answered.
//!
//! ```
//! use tenon_state::{Bucket, Quota, SqliteStore, StateStore};
//!
//! # fn main() -> Result<(), tenon_state::StateError> {
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

mod bucket;
mod error;
mod sqlite;
mod store;
#[cfg(test)]
mod tests;

pub use bucket::{Bucket, Scope};
pub use error::StateError;
pub use sqlite::SqliteStore;
pub use store::{BucketUsage, KeyPage, Quota, StateStore, SwapOutcome};
pub use store::{MAX_BATCH_BYTES, MAX_BATCH_KEYS, MAX_KEY_BYTES, MAX_PAGE_KEYS, MAX_VALUE_BYTES};
