//! Logs in a SQLite database.

use rusqlite::{Connection, Row, Transaction, params};

use super::{SqliteStore, execute, query};
use crate::error::{RawStoreError, StoreResult};
use crate::log::{LogEntry, LogHash, LogPolicy, LogStore, LogSummary, MAX_BATCH_ENTRIES, NewEntry};
use crate::rules::{bytes_kept, check_new_entries};

impl LogStore for SqliteStore {
    fn append(
        &self,
        log: &str,
        entries: &[NewEntry<'_>],
        policy: LogPolicy,
    ) -> StoreResult<LogSummary> {
        check_new_entries(entries)?;
        let LogPolicy { max_bytes, durability } = policy;
        self.write_with(durability, |transaction| append(transaction, log, entries, max_bytes))
    }

    fn entries_before(
        &self,
        log: &str,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<LogEntry>> {
        let before = before.map_or(i64::MAX, signed);
        let select = "SELECT number, at, value, hash FROM log_entries
                      JOIN logs ON logs.id = log_entries.log
                      WHERE logs.name = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3";
        self.with_reader(|connection| entries(connection, select, log, before, limit))
    }

    fn entries_from(&self, log: &str, number: u64, limit: usize) -> StoreResult<Vec<LogEntry>> {
        let select = "SELECT number, at, value, hash FROM log_entries
                      JOIN logs ON logs.id = log_entries.log
                      WHERE logs.name = ?1 AND number >= ?2 ORDER BY number LIMIT ?3";
        self.with_reader(|connection| entries(connection, select, log, signed(number), limit))
    }

    fn log(&self, log: &str) -> StoreResult<Option<LogSummary>> {
        self.with_reader(|connection| Ok(find(connection, log)?.map(|(_, summary)| summary)))
    }

    fn logs(&self, beginning: &str) -> StoreResult<Vec<String>> {
        self.with_reader(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT name FROM logs WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name",
            )?;
            let names = statement.query_map([beginning], |row| row.get(0))?;
            Ok(names.collect::<Result<_, _>>()?)
        })
    }

    fn remove_log(&self, log: &str) -> StoreResult<()> {
        self.write(|transaction| remove(transaction, log))
    }
}

pub(super) fn append(
    transaction: &Transaction<'_>,
    log: &str,
    entries: &[NewEntry<'_>],
    max_bytes: u64,
) -> Result<LogSummary, RawStoreError> {
    let (id, mut summary) = match find(transaction, log)? {
        Some(found) => found,
        None if entries.is_empty() => return Ok(LogSummary::EMPTY),
        None => (insert(transaction, log)?, LogSummary::EMPTY),
    };
    add(transaction, id, &mut summary, entries)?;
    if summary.bytes > max_bytes {
        remove_oldest(transaction, id, &mut summary, bytes_kept(max_bytes))?;
    }
    let LogSummary { first, next, bytes, before, last } = summary;
    let update = "UPDATE logs SET first = ?2, next = ?3, bytes = ?4, before = ?5, last = ?6
                  WHERE id = ?1";
    let numbers = (first as i64, next as i64, bytes as i64);
    let (before, last) = (before.as_bytes(), last.as_bytes());
    execute(transaction, update, params![id, numbers.0, numbers.1, numbers.2, before, last])?;
    Ok(summary)
}

pub(super) fn remove(transaction: &Transaction<'_>, log: &str) -> Result<(), RawStoreError> {
    execute(transaction, "DELETE FROM logs WHERE name = ?1", [log])
}

/// The id of a log, and what there is of it.
fn find(connection: &Connection, log: &str) -> Result<Option<(i64, LogSummary)>, RawStoreError> {
    let select = "SELECT id, first, next, bytes, before, last FROM logs WHERE name = ?1";
    query(connection, select, [log], |row| {
        let summary = LogSummary {
            first: number(row, 1)?,
            next: number(row, 2)?,
            bytes: number(row, 3)?,
            before: hash(row, 4)?,
            last: hash(row, 5)?,
        };
        Ok((row.get(0)?, summary))
    })
}

fn insert(connection: &Connection, log: &str) -> Result<i64, RawStoreError> {
    let LogSummary { first, next, bytes, before, last } = LogSummary::EMPTY;
    let insert = "INSERT INTO logs (name, first, next, bytes, before, last)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let numbers = (first as i64, next as i64, bytes as i64);
    let values = params![log, numbers.0, numbers.1, numbers.2, before.as_bytes(), last.as_bytes()];
    execute(connection, insert, values)?;
    Ok(connection.last_insert_rowid())
}

fn add(
    transaction: &Transaction<'_>,
    id: i64,
    summary: &mut LogSummary,
    entries: &[NewEntry<'_>],
) -> Result<(), RawStoreError> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO log_entries (log, number, at, hash, value) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for entry in entries {
        let (number, hash) = summary.add(*entry);
        let NewEntry { at, value } = entry;
        insert.execute(params![id, number as i64, *at as i64, hash.as_bytes(), value])?;
    }
    Ok(())
}

/// Removes entries from the oldest on, until no more than so much is left.
fn remove_oldest(
    transaction: &Transaction<'_>,
    id: i64,
    summary: &mut LogSummary,
    bytes: u64,
) -> Result<(), RawStoreError> {
    let mut select = transaction.prepare_cached(
        "SELECT number, hash, octet_length(value) FROM log_entries WHERE log = ?1 ORDER BY number",
    )?;
    let mut rows = select.query([id])?;
    while summary.bytes > bytes
        && let Some(row) = rows.next()?
    {
        summary.remove_oldest(number(row, 0)?, hash(row, 1)?, number(row, 2)?);
    }
    let delete = "DELETE FROM log_entries WHERE log = ?1 AND number < ?2";
    execute(transaction, delete, params![id, summary.first as i64])
}

fn entries(
    connection: &Connection,
    select: &str,
    log: &str,
    place: i64,
    limit: usize,
) -> Result<Vec<LogEntry>, RawStoreError> {
    let limit = limit.min(MAX_BATCH_ENTRIES) as i64;
    let mut statement = connection.prepare_cached(select)?;
    let entries = statement.query_map(params![log, place, limit], |row| {
        Ok(LogEntry {
            number: number(row, 0)?,
            at: number(row, 1)?,
            value: row.get(2)?,
            hash: hash(row, 3)?,
        })
    })?;
    Ok(entries.collect::<Result<_, _>>()?)
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number = row.get::<_, i64>(column)?;
    number.try_into().map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<LogHash> {
    let hash = LogHash::from_bytes(row.get_ref(column)?.as_blob()?);
    hash.ok_or(rusqlite::Error::InvalidQuery)
}

/// A number that is larger than all of the database's stands for the largest.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
