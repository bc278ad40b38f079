//! What every store holds to, for whoever implements one.

use crate::batch::Change;
use crate::error::{StoreError, StoreResult};
use crate::item::{Item, ItemQuota, MAX_ITEM_BYTES};
use crate::log::{MAX_BATCH_ENTRIES, MAX_ENTRY_BYTES, NewEntry};
use crate::state::{MAX_BATCH_KEYS, MAX_KEY_BYTES, MAX_VALUE_BYTES};

/// Checks the keys of one call.
///
/// # Errors
///
/// Where one is too long, or there are too many.
pub fn check_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> StoreResult<()> {
    let mut count = 0;
    for key in keys {
        count += 1;
        if key.len() > MAX_KEY_BYTES {
            return Err(StoreError::KeyTooLong { length: key.len() });
        }
    }
    match count > MAX_BATCH_KEYS {
        true => Err(StoreError::TooManyKeys { count }),
        false => Ok(()),
    }
}

/// Checks a value.
///
/// # Errors
///
/// Where it is too long.
pub fn check_value(key: &str, value: &[u8]) -> StoreResult<()> {
    match value.len() > MAX_VALUE_BYTES {
        true => Err(StoreError::ValueTooLarge { key: key.into(), length: value.len() }),
        false => Ok(()),
    }
}

/// What a value comes to after a number is added to it; one that is absent is zero.
///
/// # Errors
///
/// Where the value is no number, or the sum is too large.
pub fn incremented(key: &str, value: Option<&[u8]>, delta: i64) -> StoreResult<i64> {
    let number = match value {
        None => 0,
        Some(value) => str::from_utf8(value)
            .ok()
            .and_then(|text| text.parse::<i64>().ok())
            .ok_or_else(|| StoreError::NotANumber { key: key.into() })?,
    };
    number.checked_add(delta).ok_or_else(|| StoreError::Overflow { key: key.into() })
}

/// Checks the entries that one call adds to a log.
///
/// # Errors
///
/// Where one is too long, or there are too many.
pub fn check_new_entries(entries: &[NewEntry<'_>]) -> StoreResult<()> {
    if entries.len() > MAX_BATCH_ENTRIES {
        return Err(StoreError::TooManyEntries { count: entries.len() });
    }
    match entries.iter().map(|entry| entry.value.len()).find(|length| *length > MAX_ENTRY_BYTES) {
        Some(length) => Err(StoreError::EntryTooLong { length }),
        None => Ok(()),
    }
}

/// How much a log counts after entries were removed for new ones. It is less than the most, so that some are removed now
/// and then, and not one with each that is added.
#[must_use]
pub fn bytes_kept(max_bytes: u64) -> u64 {
    max_bytes / 8 * 7
}

/// Checks an item.
///
/// # Errors
///
/// Where its id or its value is too long.
pub fn check_item(id: &str, value: &[u8]) -> StoreResult<()> {
    if id.len() > MAX_KEY_BYTES {
        return Err(StoreError::KeyTooLong { length: id.len() });
    }
    match value.len() > MAX_ITEM_BYTES {
        true => Err(StoreError::ValueTooLarge { key: id.into(), length: value.len() }),
        false => Ok(()),
    }
}

/// Checks one of several changes.
///
/// # Errors
///
/// Where something is too long, or there is too much of it.
pub fn check_change(change: &Change<'_>) -> StoreResult<()> {
    match *change {
        Change::PutItem { id, value, .. } => check_item(id, value),
        Change::RemoveItem { id, .. } => check_item(id, &[]),
        Change::Append { entries, .. } => check_new_entries(entries),
        Change::RemoveLog { .. } => Ok(()),
    }
}

/// Checks the name of a lock.
///
/// # Errors
///
/// Where it is too long.
pub fn check_lock_name(name: &str) -> StoreResult<()> {
    check_keys([name])
}

/// Checks that there is room for a value of an item in place of the one before. There are so many items of the kind, and they
/// take so many bytes.
///
/// # Errors
///
/// Where there is none.
pub fn check_room(
    kind: &str,
    (mut items, mut bytes): (u64, u64),
    id: &str,
    before: Option<&Item>,
    value: &[u8],
    quota: ItemQuota,
) -> StoreResult<()> {
    let own = |value: &[u8]| (id.len() + value.len()) as u64;
    match before {
        Some(before) => bytes = bytes.saturating_sub(own(&before.value)),
        None => items += 1,
    }
    bytes += own(value);
    match items > quota.items || bytes > quota.bytes {
        true => Err(StoreError::TooManyItems { kind: kind.into(), items, bytes, quota }),
        false => Ok(()),
    }
}
