//! Logs in PostgreSQL.

use postgres::{GenericClient, Row, Transaction};
use tenon_store::rules::{bytes_kept, check_new_entries};
use tenon_store::{
    Durability, LogEntry, LogHash, LogPolicy, LogStore, LogSummary, MAX_BATCH_ENTRIES, NewEntry,
    StoreError,
};

use crate::{Failure, PostgresStore, signed};

impl LogStore for PostgresStore {
    fn append(
        &self,
        log: &str,
        entries: &[NewEntry<'_>],
        policy: LogPolicy,
    ) -> Result<LogSummary, StoreError> {
        check_new_entries(entries)?;
        self.change_one(&format!("log {log}"), |transaction| {
            set_durability(transaction, policy.durability)?;
            append(transaction, log, entries, policy.max_bytes)
        })
    }

    fn entries_before(
        &self,
        log: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let select = "SELECT number, at, value, hash FROM tenon_log_entries
                      JOIN tenon_logs ON tenon_logs.id = tenon_log_entries.log
                      WHERE tenon_logs.name = $1 AND number < $2 ORDER BY number DESC LIMIT $3";
        let before = before.map_or(i64::MAX, signed);
        self.with(|client| entries(client, select, log, before, limit))
    }

    fn entries_from(
        &self,
        log: &str,
        number: u64,
        limit: usize,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let select = "SELECT number, at, value, hash FROM tenon_log_entries
                      JOIN tenon_logs ON tenon_logs.id = tenon_log_entries.log
                      WHERE tenon_logs.name = $1 AND number >= $2 ORDER BY number LIMIT $3";
        self.with(|client| entries(client, select, log, signed(number), limit))
    }

    fn log(&self, log: &str) -> Result<Option<LogSummary>, StoreError> {
        self.with(|client| Ok(find(client, log)?.map(|(_, summary)| summary)))
    }

    fn logs(&self, beginning: &str) -> Result<Vec<String>, StoreError> {
        self.with(|client| {
            let select = "SELECT name FROM tenon_logs
                          WHERE substring(name FROM 1 FOR length($1::bytea)) = $1::bytea ORDER BY name";
            let rows = client.query(select, &[&beginning.as_bytes()])?;
            let names = rows.iter().map(|row| String::from_utf8(row.get(0)).map_err(damaged));
            Ok(names.collect::<Result<_, _>>()?)
        })
    }

    fn remove_log(&self, log: &str) -> Result<(), StoreError> {
        self.change_one(&format!("log {log}"), |transaction| remove(transaction, log))
    }
}

/// Sets what the changes of a transaction survive.
pub(crate) fn set_durability(
    transaction: &mut Transaction<'_>,
    durability: Durability,
) -> Result<(), Failure> {
    if durability == Durability::Process {
        // What the server loses with its power is the last moment.
        transaction.batch_execute("SET LOCAL synchronous_commit = off")?;
    }
    Ok(())
}

pub(crate) fn append(
    transaction: &mut Transaction<'_>,
    log: &str,
    entries: &[NewEntry<'_>],
    max_bytes: u64,
) -> Result<LogSummary, Failure> {
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
    transaction.execute(
        "UPDATE tenon_logs SET first = $2, next = $3, bytes = $4, before = $5, last = $6
         WHERE id = $1",
        &[&id, &signed(first), &signed(next), &signed(bytes), &before.as_bytes(), &last.as_bytes()],
    )?;
    Ok(summary)
}

pub(crate) fn remove(transaction: &mut Transaction<'_>, log: &str) -> Result<(), Failure> {
    transaction.execute("DELETE FROM tenon_logs WHERE name = $1", &[&log.as_bytes()])?;
    Ok(())
}

/// The id of a log, and what there is of it.
fn find(client: &mut impl GenericClient, log: &str) -> Result<Option<(i64, LogSummary)>, Failure> {
    let select = "SELECT id, first, next, bytes, before, last FROM tenon_logs WHERE name = $1";
    let Some(row) = client.query_opt(select, &[&log.as_bytes()])? else { return Ok(None) };
    let summary = LogSummary {
        first: number(&row, 1),
        next: number(&row, 2),
        bytes: number(&row, 3),
        before: hash(&row, 4)?,
        last: hash(&row, 5)?,
    };
    Ok(Some((row.get(0), summary)))
}

fn insert(transaction: &mut Transaction<'_>, log: &str) -> Result<i64, Failure> {
    let LogSummary { first, next, bytes, before, last } = LogSummary::EMPTY;
    let row = transaction.query_one(
        "INSERT INTO tenon_logs (name, first, next, bytes, before, last)
         VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
        &[
            &log.as_bytes(),
            &signed(first),
            &signed(next),
            &signed(bytes),
            &before.as_bytes(),
            &last.as_bytes(),
        ],
    )?;
    Ok(row.get(0))
}

fn add(
    transaction: &mut Transaction<'_>,
    id: i64,
    summary: &mut LogSummary,
    entries: &[NewEntry<'_>],
) -> Result<(), Failure> {
    let (mut numbers, mut times) = (Vec::new(), Vec::new());
    let (mut hashes, mut values) = (Vec::new(), Vec::new());
    for entry in entries {
        let (number, hash) = summary.add(*entry);
        numbers.push(signed(number));
        times.push(signed(entry.at));
        hashes.push(hash.as_bytes().to_vec());
        values.push(entry.value);
    }
    // One statement: each takes a message and its answer.
    transaction.execute(
        "INSERT INTO tenon_log_entries (log, number, at, hash, value)
         SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[])",
        &[&id, &numbers, &times, &hashes, &values],
    )?;
    Ok(())
}

/// Removes entries from the oldest on, until no more than so much is left.
fn remove_oldest(
    transaction: &mut Transaction<'_>,
    id: i64,
    summary: &mut LogSummary,
    bytes: u64,
) -> Result<(), Failure> {
    let select = "SELECT number, hash, length(value)::bigint FROM tenon_log_entries
                  WHERE log = $1 AND number >= $2 ORDER BY number LIMIT $3";
    while summary.bytes > bytes {
        let page = MAX_BATCH_ENTRIES as i64;
        let rows = transaction.query(select, &[&id, &signed(summary.first), &page])?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            if summary.bytes <= bytes {
                break;
            }
            summary.remove_oldest(number(&row, 0), hash(&row, 1)?, number(&row, 2));
        }
    }
    let delete = "DELETE FROM tenon_log_entries WHERE log = $1 AND number < $2";
    transaction.execute(delete, &[&id, &signed(summary.first)])?;
    Ok(())
}

fn entries(
    client: &mut impl GenericClient,
    select: &str,
    log: &str,
    place: i64,
    limit: usize,
) -> Result<Vec<LogEntry>, Failure> {
    let limit = limit.min(MAX_BATCH_ENTRIES) as i64;
    let rows = client.query(select, &[&log.as_bytes(), &place, &limit])?;
    let entries = rows.iter().map(|row| {
        Ok(LogEntry {
            number: number(row, 0),
            at: number(row, 1),
            value: row.get(2),
            hash: hash(row, 3)?,
        })
    });
    entries.collect()
}

fn number(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).unsigned_abs()
}

fn hash(row: &Row, column: usize) -> Result<LogHash, Failure> {
    let hash = LogHash::from_bytes(row.get(column));
    hash.ok_or_else(|| damaged("a hash has another length").into())
}

fn damaged(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Damaged("the table tenon_logs".into(), problem.into())
}
