//! What a store of state promises to the host. How it keeps the promise is left to its implementation.

use std::fmt;

use crate::bucket::Bucket;
use crate::error::{StoreError, StoreResult};

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 1 << 10;

/// The longest value, in bytes. Writers wait for each other, and a large value holds the others up.
pub const MAX_VALUE_BYTES: usize = 1 << 20;

/// The most keys of one call, for the same reason.
pub const MAX_BATCH_KEYS: usize = 1_000;

/// The most bytes of values that one call returns: a plugin could name a large value a thousand times.
pub const MAX_BATCH_BYTES: usize = 16 << 20;

/// The most keys of one page.
pub const MAX_PAGE_KEYS: usize = 1_000;

/// How much a bucket may hold. It belongs to the plugin's configuration, so each write brings it along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// How many keys.
    pub keys: u64,
    /// How many bytes: the lengths of all keys and values.
    pub bytes: u64,
}

/// How much a bucket holds, counted as its [`Quota`] is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BucketUsage {
    /// How many keys.
    pub keys: u64,
    /// How many bytes: the lengths of all keys and values.
    pub bytes: u64,
}

impl Quota {
    /// Checks a write by what the bucket holds before and after it. Neither number may grow beyond the quota. A
    /// bucket that is over it, as the quota was lowered, can still shrink.
    ///
    /// # Errors
    ///
    /// [`StoreError::QuotaExceeded`].
    pub fn check(self, before: BucketUsage, needed: BucketUsage) -> StoreResult<()> {
        let grows_beyond = |before, needed, most| needed > most && needed > before;
        let is_exceeded = grows_beyond(before.keys, needed.keys, self.keys)
            || grows_beyond(before.bytes, needed.bytes, self.bytes);
        match is_exceeded {
            true => Err(StoreError::QuotaExceeded { needed, quota: self }),
            false => Ok(()),
        }
    }
}

/// Some keys of a bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyPage {
    /// The keys in the order of their bytes.
    pub keys: Vec<String>,
    /// The cursor of the page that follows, unless this is the last one.
    pub next: Option<String>,
}

/// What became of a compare-and-swap. Its `Debug` shows lengths of values only.
#[derive(Clone, PartialEq, Eq)]
pub enum SwapOutcome {
    /// The value was the expected one, and is the new one now.
    Swapped,
    /// The value is this one, or absent, and stays.
    Differs(Option<Vec<u8>>),
}

impl fmt::Debug for SwapOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Swapped => f.write_str("Swapped"),
            Self::Differs(None) => f.write_str("Differs(absent)"),
            Self::Differs(Some(value)) => write!(f, "Differs({} bytes)", value.len()),
        }
    }
}

/// Stores the state of plugins. Every call blocks, and is meant for threads that may.
///
/// A write that has returned is kept, also when the machine loses power. One that fails changes nothing. Each
/// operation is one step for all threads and processes that use the same state.
///
/// Keys are any text up to [`MAX_KEY_BYTES`], also the empty one: it takes no bytes, but counts as a key.
///
/// # Errors
///
/// Each operation fails where the database does ([`StoreError`]), or if a key is too long.
pub trait StateStore: Send + Sync + 'static {
    /// Returns the value of a key, if there is one.
    fn get(&self, bucket: &Bucket, key: &str) -> StoreResult<Option<Vec<u8>>> {
        Ok(self.get_many(bucket, &[key])?.pop().flatten())
    }

    /// Returns the values of several keys in their order, all as they were at one moment.
    ///
    /// # Errors
    ///
    /// Also for more than [`MAX_BATCH_KEYS`] keys or [`MAX_BATCH_BYTES`] bytes of values.
    fn get_many(&self, bucket: &Bucket, keys: &[&str]) -> StoreResult<Vec<Option<Vec<u8>>>>;

    /// Returns whether a key has a value.
    fn exists(&self, bucket: &Bucket, key: &str) -> StoreResult<bool>;

    /// Returns up to `limit` keys in the order of their bytes, but at least one if there is one, and at most
    /// [`MAX_PAGE_KEYS`]. A cursor is [`KeyPage::next`] of the page before; it stays good when keys come and go.
    fn keys(&self, bucket: &Bucket, cursor: Option<&str>, limit: usize) -> StoreResult<KeyPage>;

    /// Returns all keys, page by page, in the order of their bytes.
    fn all_keys(&self, bucket: &Bucket) -> StoreResult<Vec<String>> {
        let (mut keys, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = self.keys(bucket, cursor.as_deref(), MAX_PAGE_KEYS)?;
            keys.extend(page.keys);
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(keys),
            }
        }
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// Also for a value that is too large, or beyond the quota.
    fn set(&self, bucket: &Bucket, key: &str, value: &[u8], quota: Quota) -> StoreResult<()> {
        self.set_many(bucket, &[(key, value)], quota)
    }

    /// Sets the values of several keys: all, or none of them. Of a key that is named twice, the last value counts.
    ///
    /// # Errors
    ///
    /// Also for more than [`MAX_BATCH_KEYS`] keys, a value that is too large, or beyond the quota.
    fn set_many(&self, bucket: &Bucket, entries: &[(&str, &[u8])], quota: Quota)
    -> StoreResult<()>;

    /// Deletes a key. One that is absent is no error.
    fn delete(&self, bucket: &Bucket, key: &str) -> StoreResult<()> {
        self.delete_many(bucket, &[key])
    }

    /// Deletes several keys: all, or none of them.
    ///
    /// # Errors
    ///
    /// Also for more than [`MAX_BATCH_KEYS`] keys.
    fn delete_many(&self, bucket: &Bucket, keys: &[&str]) -> StoreResult<()>;

    /// Adds to the value of a key and returns the sum. An absent key counts as 0. Numbers are stored as decimal text,
    /// so that a person and [`Self::get`] can read them.
    ///
    /// # Errors
    ///
    /// Also if the value is no integer, the sum does not fit 64 bits, or is beyond the quota.
    fn increment(&self, bucket: &Bucket, key: &str, delta: i64, quota: Quota) -> StoreResult<i64>;

    /// Sets the value of a key if it is the expected one; `None` expects that the key is absent.
    ///
    /// # Errors
    ///
    /// Also for a value that is too large, or beyond the quota.
    fn compare_and_swap(
        &self,
        bucket: &Bucket,
        key: &str,
        expected: Option<&[u8]>,
        new: &[u8],
        quota: Quota,
    ) -> StoreResult<SwapOutcome>;

    /// Returns how much a bucket holds.
    fn usage(&self, bucket: &Bucket) -> StoreResult<BucketUsage>;

    /// Returns all buckets that hold anything, of one plugin or of all.
    fn buckets(&self, plugin: Option<&str>) -> StoreResult<Vec<(Bucket, BucketUsage)>>;

    /// Deletes all that a bucket holds.
    fn clear(&self, bucket: &Bucket) -> StoreResult<()>;

    /// Deletes what all plugins keep in a session.
    fn clear_session(&self, session: &str) -> StoreResult<()>;
}
