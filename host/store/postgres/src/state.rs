//! The state of plugins in PostgreSQL.

use postgres::{GenericClient, Row, Transaction};
use tenon_store::rules::{check_keys, check_value, incremented};
use tenon_store::{
    Bucket, BucketUsage, KeyPage, MAX_BATCH_BYTES, MAX_PAGE_KEYS, Quota, Scope, StateStore,
    StoreError, SwapOutcome,
};

use crate::{Failure, PostgresStore, signed};

impl PostgresStore {
    /// Changes a bucket within its quota. What only deletes has none.
    fn change_bucket<T>(
        &self,
        bucket: &Bucket,
        quota: Option<Quota>,
        change: impl FnOnce(&mut BucketTransaction<'_, '_>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.change_one(&lock_of(bucket), |transaction| {
            let mut bucket = BucketTransaction::new(transaction, bucket)?;
            let result = change(&mut bucket)?;
            bucket.finish(quota)?;
            Ok(result)
        })
    }
}

/// What those have locked who change a bucket.
fn lock_of(bucket: &Bucket) -> String {
    let (scope, name) = bucket.scope.to_columns();
    format!("bucket {scope} {:?} {}", String::from_utf8_lossy(&name), bucket.plugin)
}

impl StateStore for PostgresStore {
    fn get_many(&self, bucket: &Bucket, keys: &[&str]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        check_keys(keys.iter().copied())?;
        let names: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
        self.with(|client| {
            // One statement sees the bucket as it is at one moment.
            let mut transaction = client
                .build_transaction()
                .isolation_level(postgres::IsolationLevel::RepeatableRead)
                .read_only(true)
                .start()?;
            let (id, _) = find(&mut transaction, bucket)?;
            let sum = "SELECT coalesce(sum(length(value)), 0)::bigint
                       FROM unnest($2::bytea[]) AS asked (key)
                       JOIN tenon_entries ON tenon_entries.key = asked.key WHERE bucket = $1";
            let bytes: i64 = transaction.query_one(sum, &[&id, &names])?.get(0);
            if bytes > MAX_BATCH_BYTES as i64 {
                return Err(StoreError::TooManyBytes.into());
            }
            let select =
                "SELECT value FROM unnest($2::bytea[]) WITH ORDINALITY AS asked (key, place)
                          LEFT JOIN tenon_entries ON bucket = $1 AND tenon_entries.key = asked.key
                          ORDER BY place";
            let rows = transaction.query(select, &[&id, &names])?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    fn exists(&self, bucket: &Bucket, key: &str) -> Result<bool, StoreError> {
        check_keys([key])?;
        self.with(|client| {
            let (id, _) = find(client, bucket)?;
            let select = "SELECT 1 FROM tenon_entries WHERE bucket = $1 AND key = $2";
            Ok(client.query_opt(select, &[&id, &key.as_bytes()])?.is_some())
        })
    }

    fn keys(
        &self,
        bucket: &Bucket,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<KeyPage, StoreError> {
        let limit = limit.clamp(1, MAX_PAGE_KEYS);
        // The first bytes that follow others in their order have a NUL more.
        let first = cursor.map(|key| format!("{key}\0")).unwrap_or_default();
        self.with(|client| {
            let (id, _) = find(client, bucket)?;
            let rows = client.query(
                "SELECT key FROM tenon_entries WHERE bucket = $1 AND key >= $2 ORDER BY key LIMIT $3",
                &[&id, &first.as_bytes(), &(limit as i64 + 1)],
            )?;
            let keys = rows.iter().take(limit).map(|row| text(row.get(0)));
            let keys = keys.collect::<Result<Vec<String>, _>>()?;
            let next = keys.last().filter(|_| rows.len() > limit).cloned();
            Ok(KeyPage { keys, next })
        })
    }

    fn set_many(
        &self,
        bucket: &Bucket,
        entries: &[(&str, &[u8])],
        quota: Quota,
    ) -> Result<(), StoreError> {
        check_keys(entries.iter().map(|(key, _)| *key))?;
        entries.iter().try_for_each(|(key, value)| check_value(key, value))?;
        self.change_bucket(bucket, Some(quota), |bucket| {
            entries.iter().try_for_each(|(key, value)| bucket.set(key, value))
        })
    }

    fn delete_many(&self, bucket: &Bucket, keys: &[&str]) -> Result<(), StoreError> {
        check_keys(keys.iter().copied())?;
        self.change_bucket(bucket, None, |bucket| {
            keys.iter().try_for_each(|key| bucket.delete(key))
        })
    }

    fn increment(
        &self,
        bucket: &Bucket,
        key: &str,
        delta: i64,
        quota: Quota,
    ) -> Result<i64, StoreError> {
        check_keys([key])?;
        self.change_bucket(bucket, Some(quota), |bucket| {
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
    ) -> Result<SwapOutcome, StoreError> {
        check_keys([key])?;
        check_value(key, new)?;
        self.change_bucket(bucket, Some(quota), |bucket| {
            let current = bucket.get(key)?;
            if current.as_deref() != expected {
                return Ok(SwapOutcome::Differs(current));
            }
            bucket.set(key, new)?;
            Ok(SwapOutcome::Swapped)
        })
    }

    fn usage(&self, bucket: &Bucket) -> Result<BucketUsage, StoreError> {
        self.with(|client| Ok(find(client, bucket)?.1))
    }

    fn buckets(&self, plugin: Option<&str>) -> Result<Vec<(Bucket, BucketUsage)>, StoreError> {
        self.with(|client| {
            let rows = client.query(
                "SELECT keys, bytes, plugin, scope, name FROM tenon_buckets
                 WHERE $1::bytea IS NULL OR plugin = $1 ORDER BY plugin, scope, name",
                &[&plugin.map(str::as_bytes)],
            )?;
            let buckets = rows.iter().map(|row| {
                let scope = Scope::from_columns(row.get(3), row.get(4));
                let scope = scope.ok_or_else(|| damaged("a scope is none"))?;
                Ok((Bucket::new(text(row.get(2))?, scope), usage_in(row)))
            });
            buckets.collect()
        })
    }

    fn clear(&self, bucket: &Bucket) -> Result<(), StoreError> {
        let (scope, name) = bucket.scope.to_columns();
        self.change_one(&lock_of(bucket), |transaction| {
            let delete = "DELETE FROM tenon_buckets WHERE scope = $1 AND name = $2 AND plugin = $3";
            transaction.execute(delete, &[&scope, &name, &bucket.plugin.as_bytes()])?;
            Ok(())
        })
    }

    fn clear_session(&self, session: &str) -> Result<(), StoreError> {
        let (scope, name) = Scope::Session(session.into()).to_columns();
        self.with(|client| {
            let delete = "DELETE FROM tenon_buckets WHERE scope = $1 AND name = $2";
            client.execute(delete, &[&scope, &name])?;
            Ok(())
        })
    }
}

/// A bucket in a transaction that changes it.
struct BucketTransaction<'a, 'b> {
    transaction: &'a mut Transaction<'b>,
    bucket: &'a Bucket,
    /// It has none before the first key is set.
    id: Option<i64>,
    before: BucketUsage,
    usage: BucketUsage,
    is_changed: bool,
}

impl<'a, 'b> BucketTransaction<'a, 'b> {
    fn new(transaction: &'a mut Transaction<'b>, bucket: &'a Bucket) -> Result<Self, Failure> {
        let (id, usage) = find(transaction, bucket)?;
        Ok(Self { transaction, bucket, id, before: usage, usage, is_changed: false })
    }

    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        let select = "SELECT value FROM tenon_entries WHERE bucket = $1 AND key = $2";
        let row = self.transaction.query_opt(select, &[&self.id, &key.as_bytes()])?;
        Ok(row.map(|row| row.get(0)))
    }

    /// The length of a value, if there is one.
    fn length_of(&mut self, key: &str) -> Result<Option<u64>, Failure> {
        let select =
            "SELECT length(value)::bigint FROM tenon_entries WHERE bucket = $1 AND key = $2";
        let row = self.transaction.query_opt(select, &[&self.id, &key.as_bytes()])?;
        Ok(row.map(|row| row.get::<_, i64>(0).unsigned_abs()))
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Failure> {
        if self.id.is_none() {
            let (scope, name) = self.bucket.scope.to_columns();
            let insert = "INSERT INTO tenon_buckets (scope, name, plugin) VALUES ($1, $2, $3)
                          RETURNING id";
            let plugin = self.bucket.plugin.as_bytes();
            self.id = Some(self.transaction.query_one(insert, &[&scope, &name, &plugin])?.get(0));
        }
        match self.length_of(key)? {
            Some(length) => self.usage.bytes = self.usage.bytes.saturating_sub(length),
            None => {
                self.usage.keys += 1;
                self.usage.bytes += key.len() as u64;
            }
        }
        self.usage.bytes += value.len() as u64;
        self.is_changed = true;
        let insert = "INSERT INTO tenon_entries (bucket, key, value) VALUES ($1, $2, $3)
                      ON CONFLICT (bucket, key) DO UPDATE SET value = excluded.value";
        self.transaction.execute(insert, &[&self.id, &key.as_bytes(), &value])?;
        Ok(())
    }

    fn delete(&mut self, key: &str) -> Result<(), Failure> {
        let Some(length) = self.length_of(key)? else { return Ok(()) };
        self.usage.keys = self.usage.keys.saturating_sub(1);
        self.usage.bytes = self.usage.bytes.saturating_sub(length + key.len() as u64);
        self.is_changed = true;
        let delete = "DELETE FROM tenon_entries WHERE bucket = $1 AND key = $2";
        self.transaction.execute(delete, &[&self.id, &key.as_bytes()])?;
        Ok(())
    }

    /// Checks the quota and writes the usage, in the transaction of the change: so the two never differ, and a quota
    /// is checked without counting.
    fn finish(self, quota: Option<Quota>) -> Result<(), Failure> {
        if let Some(quota) = quota {
            quota.check(self.before, self.usage)?;
        }
        let BucketUsage { keys, bytes } = self.usage;
        if keys == 0 {
            self.transaction.execute("DELETE FROM tenon_buckets WHERE id = $1", &[&self.id])?;
        } else if self.is_changed {
            let update =
                "UPDATE tenon_buckets SET keys = $2, bytes = $3, changed = now() WHERE id = $1";
            self.transaction.execute(update, &[&self.id, &signed(keys), &signed(bytes)])?;
        }
        Ok(())
    }
}

/// The id of a bucket and what it holds. A bucket that holds nothing has no id; no key is found in it.
fn find(
    client: &mut impl GenericClient,
    bucket: &Bucket,
) -> Result<(Option<i64>, BucketUsage), Failure> {
    let (scope, name) = bucket.scope.to_columns();
    let select = "SELECT keys, bytes, id FROM tenon_buckets
                  WHERE scope = $1 AND name = $2 AND plugin = $3";
    let row = client.query_opt(select, &[&scope, &name, &bucket.plugin.as_bytes()])?;
    Ok(row.map(|row| (row.get(2), usage_in(&row))).unwrap_or_default())
}

/// The usage in the first two columns.
fn usage_in(row: &Row) -> BucketUsage {
    let number = |column| row.get::<_, i64>(column).unsigned_abs();
    BucketUsage { keys: number(0), bytes: number(1) }
}

fn text(bytes: Vec<u8>) -> Result<String, StoreError> {
    String::from_utf8(bytes).map_err(damaged)
}

fn damaged(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Damaged("the table tenon_buckets".into(), problem.into())
}
