//! The state of plugins in a SQLite database.

use rusqlite::{Connection, Row, params};

use super::{SqliteStore, execute, query};
use crate::bucket::{Bucket, Scope};
use crate::error::{RawStoreError, StoreError, StoreResult};
use crate::rules::{check_keys, check_value, incremented};
use crate::state::{
    BucketUsage, KeyPage, MAX_BATCH_BYTES, MAX_PAGE_KEYS, MAX_VALUE_BYTES, Quota, StateStore,
    SwapOutcome,
};

impl SqliteStore {
    /// Reads a bucket as it is at one moment.
    fn read<T>(
        &self,
        bucket: &Bucket,
        read: impl FnOnce(&Connection, Option<i64>) -> Result<T, RawStoreError>,
    ) -> StoreResult<T> {
        self.with_reader(|connection| {
            let snapshot = connection.unchecked_transaction()?;
            let (id, _) = find(&snapshot, bucket)?;
            read(&snapshot, id)
        })
    }

    /// Changes a bucket within its quota. What only deletes has none.
    fn change<T>(
        &self,
        bucket: &Bucket,
        quota: Option<Quota>,
        change: impl FnOnce(&mut BucketTransaction<'_>) -> Result<T, RawStoreError>,
    ) -> StoreResult<T> {
        self.write(|transaction| {
            let mut bucket = BucketTransaction::new(transaction, bucket)?;
            let result = change(&mut bucket)?;
            bucket.finish(quota)?;
            Ok(result)
        })
    }
}

impl StateStore for SqliteStore {
    fn get_many(&self, bucket: &Bucket, keys: &[&str]) -> StoreResult<Vec<Option<Vec<u8>>>> {
        check_keys(keys.iter().copied())?;
        self.read(bucket, |connection, id| {
            // As many values as this are never too long together.
            if keys.len() > MAX_BATCH_BYTES / MAX_VALUE_BYTES {
                let mut bytes = 0;
                for key in keys {
                    bytes += length_of(connection, id, key)?.unwrap_or(0);
                }
                if bytes > MAX_BATCH_BYTES as u64 {
                    return Err(StoreError::TooManyBytes.into());
                }
            }
            keys.iter().map(|key| value_of(connection, id, key)).collect()
        })
    }

    fn exists(&self, bucket: &Bucket, key: &str) -> StoreResult<bool> {
        check_keys([key])?;
        self.read(bucket, |connection, id| Ok(length_of(connection, id, key)?.is_some()))
    }

    fn keys(&self, bucket: &Bucket, cursor: Option<&str>, limit: usize) -> StoreResult<KeyPage> {
        let limit = limit.clamp(1, MAX_PAGE_KEYS);
        // The first text that follows another in the order of bytes has a NUL more.
        let first = cursor.map(|key| format!("{key}\0")).unwrap_or_default();
        self.read(bucket, |connection, id| {
            let mut statement = connection.prepare_cached(
                "SELECT key FROM entries WHERE bucket = ?1 AND key >= ?2 ORDER BY key LIMIT ?3",
            )?;
            let rows = statement.query_map(params![id, first, limit as i64 + 1], |row| row.get(0));
            let mut keys = rows?.collect::<Result<Vec<String>, _>>()?;
            let has_more = keys.len() > limit;
            keys.truncate(limit);
            let next = keys.last().filter(|_| has_more).cloned();
            Ok(KeyPage { keys, next })
        })
    }

    fn set_many(
        &self,
        bucket: &Bucket,
        entries: &[(&str, &[u8])],
        quota: Quota,
    ) -> StoreResult<()> {
        check_keys(entries.iter().map(|(key, _)| *key))?;
        entries.iter().try_for_each(|(key, value)| check_value(key, value))?;
        self.change(bucket, Some(quota), |bucket| {
            entries.iter().try_for_each(|(key, value)| bucket.set(key, value))
        })
    }

    fn delete_many(&self, bucket: &Bucket, keys: &[&str]) -> StoreResult<()> {
        check_keys(keys.iter().copied())?;
        self.change(bucket, None, |bucket| keys.iter().try_for_each(|key| bucket.delete(key)))
    }

    fn increment(&self, bucket: &Bucket, key: &str, delta: i64, quota: Quota) -> StoreResult<i64> {
        check_keys([key])?;
        self.change(bucket, Some(quota), |bucket| {
            let sum = incremented(key, bucket.get(key)?.as_deref(), delta)?;
            bucket.set(key, sum.to_string().as_bytes())?;
            Ok(sum)
        })
    }

    fn compare_and_swap(
        &self,
        bucket: &Bucket,
        key: &str,
        expected: Option<&[u8]>,
        new: &[u8],
        quota: Quota,
    ) -> StoreResult<SwapOutcome> {
        check_keys([key])?;
        check_value(key, new)?;
        self.change(bucket, Some(quota), |bucket| {
            let current = bucket.get(key)?;
            if current.as_deref() != expected {
                return Ok(SwapOutcome::Differs(current));
            }
            bucket.set(key, new)?;
            Ok(SwapOutcome::Swapped)
        })
    }

    fn usage(&self, bucket: &Bucket) -> StoreResult<BucketUsage> {
        self.with_reader(|connection| Ok(find(connection, bucket)?.1))
    }

    fn buckets(&self, plugin: Option<&str>) -> StoreResult<Vec<(Bucket, BucketUsage)>> {
        self.with_reader(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT keys, bytes, plugin, scope, name FROM buckets
                 WHERE ?1 IS NULL OR plugin = ?1 ORDER BY plugin, scope, name",
            )?;
            let rows = statement.query_map([plugin], |row| {
                let scope = Scope::from_columns(&row.get::<_, String>(3)?, row.get(4)?);
                let scope = scope.ok_or(rusqlite::Error::InvalidQuery)?;
                Ok((Bucket { plugin: row.get(2)?, scope }, usage_in(row)?))
            });
            Ok(rows?.collect::<Result<_, _>>()?)
        })
    }

    fn clear(&self, bucket: &Bucket) -> StoreResult<()> {
        let (scope, name) = bucket.scope.to_columns();
        self.write(|transaction| {
            let delete = "DELETE FROM buckets WHERE scope = ?1 AND name = ?2 AND plugin = ?3";
            execute(transaction, delete, params![scope, name, bucket.plugin])
        })
    }

    fn clear_session(&self, session: &str) -> StoreResult<()> {
        let (scope, name) = Scope::Session(session.into()).to_columns();
        self.write(|transaction| {
            let delete = "DELETE FROM buckets WHERE scope = ?1 AND name = ?2";
            execute(transaction, delete, params![scope, name])
        })
    }
}

/// A bucket in a transaction that changes it.
struct BucketTransaction<'a> {
    connection: &'a Connection,
    bucket: &'a Bucket,
    /// It has none before the first key is set.
    id: Option<i64>,
    before: BucketUsage,
    usage: BucketUsage,
    is_changed: bool,
}

impl<'a> BucketTransaction<'a> {
    fn new(connection: &'a Connection, bucket: &'a Bucket) -> Result<Self, RawStoreError> {
        let (id, usage) = find(connection, bucket)?;
        Ok(Self { connection, bucket, id, before: usage, usage, is_changed: false })
    }

    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, RawStoreError> {
        value_of(self.connection, self.id, key)
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), RawStoreError> {
        if self.id.is_none() {
            let (scope, name) = self.bucket.scope.to_columns();
            let insert = "INSERT INTO buckets (scope, name, plugin) VALUES (?1, ?2, ?3)";
            execute(self.connection, insert, params![scope, name, self.bucket.plugin])?;
            self.id = Some(self.connection.last_insert_rowid());
        }
        match length_of(self.connection, self.id, key)? {
            Some(length) => self.usage.bytes = self.usage.bytes.saturating_sub(length),
            None => {
                self.usage.keys += 1;
                self.usage.bytes += key.len() as u64;
            }
        }
        self.usage.bytes += value.len() as u64;
        self.is_changed = true;
        let insert = "INSERT INTO entries (bucket, key, value) VALUES (?1, ?2, ?3)
                      ON CONFLICT DO UPDATE SET value = excluded.value";
        execute(self.connection, insert, params![self.id, key, value])
    }

    fn delete(&mut self, key: &str) -> Result<(), RawStoreError> {
        let Some(length) = length_of(self.connection, self.id, key)? else { return Ok(()) };
        self.usage.keys = self.usage.keys.saturating_sub(1);
        self.usage.bytes = self.usage.bytes.saturating_sub(length + key.len() as u64);
        self.is_changed = true;
        let delete = "DELETE FROM entries WHERE bucket = ?1 AND key = ?2";
        execute(self.connection, delete, params![self.id, key])
    }

    /// Checks the quota and writes the usage, in the transaction of the change: so the two never differ, and a quota
    /// is checked without counting.
    fn finish(self, quota: Option<Quota>) -> Result<(), RawStoreError> {
        if let Some(quota) = quota {
            quota.check(self.before, self.usage)?;
        }
        let BucketUsage { keys, bytes } = self.usage;
        if keys == 0 {
            execute(self.connection, "DELETE FROM buckets WHERE id = ?1", [self.id])
        } else if self.is_changed {
            let update =
                "UPDATE buckets SET keys = ?2, bytes = ?3, changed = unixepoch() WHERE id = ?1";
            execute(self.connection, update, params![self.id, keys as i64, bytes as i64])
        } else {
            Ok(())
        }
    }
}

/// The id of a bucket and what it holds. A bucket that holds nothing has no id; no key is found in it.
fn find(
    connection: &Connection,
    bucket: &Bucket,
) -> Result<(Option<i64>, BucketUsage), RawStoreError> {
    let (scope, name) = bucket.scope.to_columns();
    let select =
        "SELECT keys, bytes, id FROM buckets WHERE scope = ?1 AND name = ?2 AND plugin = ?3";
    let found = query(connection, select, params![scope, name, bucket.plugin], |row| {
        Ok((row.get(2)?, usage_in(row)?))
    });
    Ok(found?.unwrap_or_default())
}

/// The usage in the first two columns.
fn usage_in(row: &Row<'_>) -> rusqlite::Result<BucketUsage> {
    let number = |column| {
        let number = row.get::<_, i64>(column)?;
        number.try_into().map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
    };
    Ok(BucketUsage { keys: number(0)?, bytes: number(1)? })
}

fn value_of(
    connection: &Connection,
    bucket: Option<i64>,
    key: &str,
) -> Result<Option<Vec<u8>>, RawStoreError> {
    let select = "SELECT value FROM entries WHERE bucket = ?1 AND key = ?2";
    query(connection, select, params![bucket, key], |row| row.get(0))
}

/// The length of a value, which SQLite knows without reading it.
fn length_of(
    connection: &Connection,
    bucket: Option<i64>,
    key: &str,
) -> Result<Option<u64>, RawStoreError> {
    let select = "SELECT octet_length(value) FROM entries WHERE bucket = ?1 AND key = ?2";
    let length = query(connection, select, params![bucket, key], |row| row.get::<_, i64>(0))?;
    Ok(length.map(i64::unsigned_abs))
}
