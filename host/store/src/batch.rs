//! Changes of items and logs that are made together.

use crate::error::StoreResult;
use crate::item::ItemQuota;
use crate::log::{Durability, NewEntry};

/// One of several changes that are made in one step.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// Sets an item.
    PutItem {
        /// Its kind.
        kind: &'a str,
        /// What it is found by.
        id: &'a str,
        /// The version that it has before. `None` is an item that must not be there.
        version: Option<u64>,
        /// What it is.
        value: &'a [u8],
        /// From when on it is worth nothing, in milliseconds since 1970.
        expires: Option<u64>,
        /// How much the items of its kind may come to.
        quota: ItemQuota,
    },
    /// Removes an item, which must have this version.
    RemoveItem {
        /// Its kind.
        kind: &'a str,
        /// What it is found by.
        id: &'a str,
        /// The version that it has.
        version: u64,
    },
    /// Adds entries to a log, at most [`MAX_BATCH_ENTRIES`](crate::MAX_BATCH_ENTRIES). The oldest go where there are too many.
    Append {
        /// The log.
        log: &'a str,
        /// The entries.
        entries: &'a [NewEntry<'a>],
        /// What the log may count, in bytes.
        max_bytes: u64,
    },
    /// Removes a log, where there is one.
    RemoveLog {
        /// The log.
        log: &'a str,
    },
}

impl<'a> Change<'a> {
    /// The item that is changed, by its kind and id, and the version that it has to have before; `None` where it must not be
    /// there. Nothing where a log is changed.
    pub fn expected(&self) -> Option<(&'a str, &'a str, Option<u64>)> {
        match *self {
            Self::PutItem { kind, id, version, .. } => Some((kind, id, version)),
            Self::RemoveItem { kind, id, version } => Some((kind, id, Some(version))),
            Self::Append { .. } | Self::RemoveLog { .. } => None,
        }
    }
}

/// Makes changes of items and logs together. Every call blocks.
pub trait BatchStore: Send + Sync + 'static {
    /// Makes changes in one step, in their order; no two are of the same item. Says whether it did: nothing is changed where an
    /// item has another version than it is said to have, is not there, or is there and should not be.
    ///
    /// # Errors
    ///
    /// Where the database fails ([`StoreError`](crate::StoreError)), or something is too long, or beyond a quota. Then nothing is
    /// changed either.
    fn change(&self, changes: &[Change<'_>], durability: Durability) -> StoreResult<bool>;
}
