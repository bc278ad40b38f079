//! Items: what is found by its id, changes in steps, and may end: approvals that are asked for, runs, tokens.

use std::fmt;

use crate::error::StoreResult;

/// The longest value of an item, in bytes.
pub const MAX_ITEM_BYTES: usize = 1 << 20;

/// The most items of one page.
pub const MAX_PAGE_ITEMS: usize = 1_000;

/// An item. Its `Debug` shows the length of the value only.
#[derive(Clone, PartialEq, Eq)]
pub struct Item {
    /// What it is found by, among those of its kind.
    pub id: String,
    /// Another one after each change; no other item of the store ever has it.
    pub version: u64,
    /// From when on it is worth nothing, in milliseconds since 1970. It stays until it is removed.
    pub expires: Option<u64>,
    /// What it is.
    pub value: Vec<u8>,
}

impl Item {
    /// Whether its time is over.
    #[must_use]
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, version, expires, value } = self;
        write!(f, "Item({id:?}, version {version}, {expires:?}, {} bytes)", value.len())
    }
}

/// How much the items of a kind may come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemQuota {
    /// How many there may be.
    pub items: u64,
    /// How many bytes: the lengths of all ids and values.
    pub bytes: u64,
}

/// Some items of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemPage {
    /// The items in the order of the bytes of their ids.
    pub items: Vec<Item>,
    /// The cursor of the page that follows, unless this is the last one.
    pub next: Option<String>,
}

/// What became of a change of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemOutcome {
    /// It was changed, and has this version.
    Changed(u64),
    /// Somebody else has changed it: it is this one, or absent, and stays.
    Differs(Option<Item>),
}

/// Stores items. Every call blocks, and is meant for threads that may.
///
/// A change that has returned is kept, also when the machine loses power. Each operation is one step for all threads
/// and processes that use the same store, so that of several who change a version of an item one does.
///
/// # Errors
///
/// Each operation fails where the database does ([`StoreError`](crate::StoreError)), or if an id is longer than [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES). One that
/// fails changes nothing.
pub trait ItemStore: Send + Sync + 'static {
    /// Returns an item, if there is one.
    fn item(&self, kind: &str, id: &str) -> StoreResult<Option<Item>>;

    /// Returns up to `limit` items in the order of the bytes of their ids, at most [`MAX_PAGE_ITEMS`]. A cursor is
    /// [`ItemPage::next`] of the page before; it stays good when items come and go.
    fn items(&self, kind: &str, cursor: Option<&str>, limit: usize) -> StoreResult<ItemPage>;

    /// Sets an item whose version is this one; without a version it has to be absent.
    ///
    /// # Errors
    ///
    /// Also for a value that is longer than [`MAX_ITEM_BYTES`], or beyond the quota.
    fn put_item(
        &self,
        kind: &str,
        id: &str,
        version: Option<u64>,
        value: &[u8],
        expires: Option<u64>,
        quota: ItemQuota,
    ) -> StoreResult<ItemOutcome>;

    /// Removes an item, if it has this version still. Says whether it did.
    fn remove_item(&self, kind: &str, id: &str, version: u64) -> StoreResult<bool>;

    /// Removes the items of a kind whose time is over, and says how many.
    fn remove_expired_items(&self, kind: &str, now: u64) -> StoreResult<u64>;
}

/// Returns all items of a kind, in the order of the bytes of their ids. Those that come meanwhile may be left out.
///
/// # Errors
///
/// As [`ItemStore::items`].
pub fn all_items(store: &dyn ItemStore, kind: &str) -> StoreResult<Vec<Item>> {
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = store.items(kind, cursor.as_deref(), MAX_PAGE_ITEMS)?;
        all.extend(page.items);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(all),
        }
    }
}
