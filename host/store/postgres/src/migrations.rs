//! Connections, and the tables.

use postgres::error::SqlState;
use postgres::{Client, Transaction};
use std::error::Error;
use std::path::PathBuf;
use tenon_store::StoreError;

use crate::Failure;
use crate::tls;

/// The steps from an empty database to the tables of today. What is published here never changes: a new schema is a new
/// step. Names and keys are bytes, since text of PostgreSQL has no NUL.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE tenon_buckets (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        scope TEXT NOT NULL,
        name BYTEA NOT NULL,
        plugin BYTEA NOT NULL,
        keys BIGINT NOT NULL DEFAULT 0,
        bytes BIGINT NOT NULL DEFAULT 0,
        changed TIMESTAMPTZ NOT NULL DEFAULT now(),
        UNIQUE (scope, name, plugin)
    );
    CREATE TABLE tenon_entries (
        bucket BIGINT NOT NULL REFERENCES tenon_buckets (id) ON DELETE CASCADE,
        key BYTEA NOT NULL,
        value BYTEA NOT NULL,
        PRIMARY KEY (bucket, key)
    );
    CREATE TABLE tenon_logs (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name BYTEA NOT NULL UNIQUE,
        first BIGINT NOT NULL,
        next BIGINT NOT NULL,
        bytes BIGINT NOT NULL,
        before BYTEA NOT NULL,
        last BYTEA NOT NULL
    );
    CREATE TABLE tenon_log_entries (
        log BIGINT NOT NULL REFERENCES tenon_logs (id) ON DELETE CASCADE,
        number BIGINT NOT NULL,
        at BIGINT NOT NULL,
        hash BYTEA NOT NULL,
        value BYTEA NOT NULL,
        PRIMARY KEY (log, number)
    );
    CREATE TABLE tenon_items (
        kind BYTEA NOT NULL,
        id BYTEA NOT NULL,
        version BIGINT NOT NULL,
        expires BIGINT,
        value BYTEA NOT NULL,
        PRIMARY KEY (kind, id)
    );
    CREATE SEQUENCE tenon_versions;
"];

/// Locks the tables against others who make them.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('tenon schema', 0))";

/// Makes what is missing of the tables.
pub(crate) fn prepare(client: &mut Client) -> Result<(), Failure> {
    let mut transaction = client.transaction()?;
    transaction.execute(LOCK, &[])?;
    transaction
        .batch_execute("CREATE TABLE IF NOT EXISTS tenon_schema (version BIGINT NOT NULL)")?;
    let version = transaction.query_opt("SELECT version FROM tenon_schema", &[])?;
    let version: Option<i64> = version.map(|row| row.get(0));
    let done = usize::try_from(version.unwrap_or_default()).unwrap_or(usize::MAX);
    let Some(missing) = MIGRATIONS.get(done..) else {
        let (path, supported) = (PathBuf::from("PostgreSQL"), MIGRATIONS.len());
        let version = version.unwrap_or_default();
        return Err(StoreError::Newer { path, version, supported }.into());
    };
    if missing.is_empty() {
        forget_old_sessions(&mut transaction)?;
        return Ok(transaction.commit()?);
    }
    for migration in missing {
        transaction.batch_execute(migration)?;
    }
    transaction.execute("DELETE FROM tenon_schema", &[])?;
    let supported = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    transaction.execute("INSERT INTO tenon_schema VALUES ($1)", &[&supported])?;
    Ok(transaction.commit()?)
}

/// How long what is kept for a session may be unchanged, as in a host's own database: its host may have been killed, and then
/// nobody ends the session.
const OLD_SESSIONS: &str = "scope = 'session' AND changed < now() - INTERVAL '90 days'";

/// Deletes what is kept for sessions that nobody has used for long.
fn forget_old_sessions(transaction: &mut Transaction<'_>) -> Result<(), postgres::Error> {
    transaction.batch_execute(&format!("DELETE FROM tenon_buckets WHERE {OLD_SESSIONS}"))
}

/// The error of what keeps everything from the database of this name.
pub(crate) fn unusable(name: &str, error: impl Error + Send + Sync + 'static) -> StoreError {
    StoreError::Io(PathBuf::from(name), error.into())
}

/// The error of an operation on the database of this name.
pub(crate) fn failed(name: &str, error: postgres::Error) -> StoreError {
    let place = PathBuf::from(name);
    let code = error.code().cloned();
    let error = tls::explain(error);
    match code {
        Some(SqlState::DISK_FULL) => StoreError::Full(place),
        Some(
            SqlState::LOCK_NOT_AVAILABLE
            | SqlState::T_R_DEADLOCK_DETECTED
            | SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::TOO_MANY_CONNECTIONS,
        ) => StoreError::Busy(place),
        Some(SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED) => {
            StoreError::Damaged(place, error)
        }
        Some(_) => StoreError::Database(place, error),
        None => StoreError::Io(place, error),
    }
}
