//! Items in PostgreSQL.

use postgres::{GenericClient, Row, Transaction};
use tenon_store::rules::{check_item, check_room};
use tenon_store::{Item, ItemOutcome, ItemPage, ItemQuota, ItemStore, MAX_PAGE_ITEMS, StoreError};

use crate::{Failure, PostgresStore, signed};

impl ItemStore for PostgresStore {
    fn item(&self, kind: &str, id: &str) -> Result<Option<Item>, StoreError> {
        self.with(|client| find(client, kind, id))
    }

    fn items(
        &self,
        kind: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ItemPage, StoreError> {
        let limit = limit.clamp(1, MAX_PAGE_ITEMS);
        // The first bytes that follow others in their order have a NUL more.
        let first = cursor.map(|id| format!("{id}\0")).unwrap_or_default();
        self.with(|client| {
            let rows = client.query(
                "SELECT id, version, expires, value FROM tenon_items
                 WHERE kind = $1 AND id >= $2 ORDER BY id LIMIT $3",
                &[&kind.as_bytes(), &first.as_bytes(), &(limit as i64 + 1)],
            )?;
            let has_more = rows.len() > limit;
            let items = rows.iter().take(limit).map(item).collect::<Result<Vec<_>, _>>()?;
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
    ) -> Result<ItemOutcome, StoreError> {
        check_item(id, value)?;
        self.change_one(&format!("items {kind}"), |transaction| {
            put(transaction, (kind, id), version, (value, expires), quota)
        })
    }

    fn remove_item(&self, kind: &str, id: &str, version: u64) -> Result<bool, StoreError> {
        self.change_one(&format!("items {kind}"), |transaction| {
            remove(transaction, kind, id, version)
        })
    }

    fn remove_expired_items(&self, kind: &str, now: u64) -> Result<u64, StoreError> {
        self.change_one(&format!("items {kind}"), |transaction| {
            let delete = "DELETE FROM tenon_items WHERE kind = $1 AND expires <= $2";
            Ok(transaction.execute(delete, &[&kind.as_bytes(), &signed(now)])?)
        })
    }
}

pub(crate) fn put(
    transaction: &mut Transaction<'_>,
    (kind, id): (&str, &str),
    version: Option<u64>,
    (value, expires): (&[u8], Option<u64>),
    quota: ItemQuota,
) -> Result<ItemOutcome, Failure> {
    let before = find(transaction, kind, id)?;
    if before.as_ref().map(|item| item.version) != version {
        return Ok(ItemOutcome::Differs(before));
    }
    let used = transaction.query_one(
        "SELECT count(*), coalesce(sum(length(id) + length(value)), 0)::bigint
         FROM tenon_items WHERE kind = $1",
        &[&kind.as_bytes()],
    )?;
    let used = (used.get::<_, i64>(0).unsigned_abs(), used.get::<_, i64>(1).unsigned_abs());
    check_room(kind, used, id, before.as_ref(), value, quota)?;
    let put = transaction.query_one(
        "INSERT INTO tenon_items (kind, id, version, expires, value)
         VALUES ($1, $2, nextval('tenon_versions'), $3, $4)
         ON CONFLICT (kind, id) DO UPDATE SET
             version = excluded.version, expires = excluded.expires, value = excluded.value
         RETURNING version",
        &[&kind.as_bytes(), &id.as_bytes(), &expires.map(signed), &value],
    )?;
    Ok(ItemOutcome::Changed(put.get::<_, i64>(0).unsigned_abs()))
}

pub(crate) fn remove(
    transaction: &mut Transaction<'_>,
    kind: &str,
    id: &str,
    version: u64,
) -> Result<bool, Failure> {
    let delete = "DELETE FROM tenon_items WHERE kind = $1 AND id = $2 AND version = $3";
    let values = (kind.as_bytes(), id.as_bytes(), signed(version));
    Ok(transaction.execute(delete, &[&values.0, &values.1, &values.2])? == 1)
}

pub(crate) fn find(
    client: &mut impl GenericClient,
    kind: &str,
    id: &str,
) -> Result<Option<Item>, Failure> {
    let select = "SELECT id, version, expires, value FROM tenon_items WHERE kind = $1 AND id = $2";
    let row = client.query_opt(select, &[&kind.as_bytes(), &id.as_bytes()])?;
    Ok(row.as_ref().map(item).transpose()?)
}

fn item(row: &Row) -> Result<Item, StoreError> {
    let id = String::from_utf8(row.get(0))
        .map_err(|error| StoreError::Damaged("the table tenon_items".into(), Box::new(error)))?;
    Ok(Item {
        id,
        version: row.get::<_, i64>(1).unsigned_abs(),
        expires: row.get::<_, Option<i64>>(2).map(i64::unsigned_abs),
        value: row.get(3),
    })
}
