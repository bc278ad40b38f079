//! Items in a SQLite database.

use rusqlite::{Connection, Row, Transaction, params};

use super::{SqliteStore, execute, query};
use crate::error::{RawStoreError, StoreResult};
use crate::item::{Item, ItemOutcome, ItemPage, ItemQuota, ItemStore, MAX_PAGE_ITEMS};
use crate::rules::{check_item, check_room};

impl ItemStore for SqliteStore {
    fn item(&self, kind: &str, id: &str) -> StoreResult<Option<Item>> {
        self.with_reader(|connection| find(connection, kind, id))
    }

    fn items(&self, kind: &str, cursor: Option<&str>, limit: usize) -> StoreResult<ItemPage> {
        let limit = limit.clamp(1, MAX_PAGE_ITEMS);
        // The first text that follows another in the order of bytes has a NUL more.
        let first = cursor.map(|id| format!("{id}\0")).unwrap_or_default();
        self.with_reader(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, version, expires, value FROM items
                 WHERE kind = ?1 AND id >= ?2 ORDER BY id LIMIT ?3",
            )?;
            let rows = statement.query_map(params![kind, first, limit as i64 + 1], item)?;
            let mut items = rows.collect::<Result<Vec<_>, _>>()?;
            let has_more = items.len() > limit;
            items.truncate(limit);
            let next = items.last().filter(|_| has_more).map(|item| item.id.clone());
            Ok(ItemPage { items, next })
        })
    }

    fn put_item(
        &self,
        kind: &str,
        id: &str,
        version: Option<u64>,
        value: &[u8],
        expires: Option<u64>,
        quota: ItemQuota,
    ) -> StoreResult<ItemOutcome> {
        check_item(id, value)?;
        self.write(|transaction| put(transaction, (kind, id), version, (value, expires), quota))
    }

    fn remove_item(&self, kind: &str, id: &str, version: u64) -> StoreResult<bool> {
        self.write(|transaction| remove(transaction, kind, id, version))
    }

    fn remove_expired_items(&self, kind: &str, now: u64) -> StoreResult<u64> {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        self.write(|transaction| {
            let delete = "DELETE FROM items WHERE kind = ?1 AND expires <= ?2";
            Ok(transaction.prepare_cached(delete)?.execute(params![kind, now])? as u64)
        })
    }
}

pub(super) fn put(
    transaction: &Transaction<'_>,
    (kind, id): (&str, &str),
    version: Option<u64>,
    (value, expires): (&[u8], Option<u64>),
    quota: ItemQuota,
) -> Result<ItemOutcome, RawStoreError> {
    let before = find(transaction, kind, id)?;
    if before.as_ref().map(|item| item.version) != version {
        return Ok(ItemOutcome::Differs(before));
    }
    check_room(kind, used(transaction, kind)?, id, before.as_ref(), value, quota)?;
    let version = next_version(transaction)?;
    let put = "INSERT INTO items (kind, id, version, expires, value) VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT DO UPDATE SET
                   version = excluded.version, expires = excluded.expires, value = excluded.value";
    let expires = expires.map(|at| i64::try_from(at).unwrap_or(i64::MAX));
    execute(transaction, put, params![kind, id, version, expires, value])?;
    Ok(ItemOutcome::Changed(version.unsigned_abs()))
}

pub(super) fn remove(
    transaction: &Transaction<'_>,
    kind: &str,
    id: &str,
    version: u64,
) -> Result<bool, RawStoreError> {
    let version = i64::try_from(version).unwrap_or(i64::MAX);
    let delete = "DELETE FROM items WHERE kind = ?1 AND id = ?2 AND version = ?3";
    Ok(transaction.prepare_cached(delete)?.execute(params![kind, id, version])? == 1)
}

pub(super) fn find(
    connection: &Connection,
    kind: &str,
    id: &str,
) -> Result<Option<Item>, RawStoreError> {
    let select = "SELECT id, version, expires, value FROM items WHERE kind = ?1 AND id = ?2";
    query(connection, select, params![kind, id], item)
}

fn item(row: &Row<'_>) -> rusqlite::Result<Item> {
    let unsigned = |column, number: i64| {
        number.try_into().map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
    };
    Ok(Item {
        id: row.get(0)?,
        version: unsigned(1, row.get(1)?)?,
        expires: row.get::<_, Option<i64>>(2)?.map(|at| unsigned(2, at)).transpose()?,
        value: row.get(3)?,
    })
}

/// How many items of a kind there are, and how many bytes they take.
fn used(connection: &Connection, kind: &str) -> Result<(u64, u64), RawStoreError> {
    let select = "SELECT items, bytes FROM item_kinds WHERE kind = ?1";
    let used = query(connection, select, [kind], |row| {
        Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, i64>(1)?.unsigned_abs()))
    })?;
    Ok(used.unwrap_or_default())
}

/// A number that no item has had before.
fn next_version(connection: &Connection) -> Result<i64, RawStoreError> {
    let next = "UPDATE versions SET last = last + 1 RETURNING last";
    let next = query(connection, next, [], |row| row.get(0))?;
    next.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
}
