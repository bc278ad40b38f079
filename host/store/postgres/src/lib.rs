//! A [`Store`](tenon_store::Store) in PostgreSQL, for hosts on several machines that share one.
//!
//! Whoever changes a bucket, a log or the items of a kind holds a lock for that one until the change is over, so that
//! each operation is one step for all hosts, as in the embedded database. A change that has returned is kept as safely as
//! the server's `synchronous_commit` says.

mod connection;
mod item;
mod log;
mod state;

use postgres::{Client, Config, NoTls, Transaction};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use tenon_store::StoreError;

use connection::{failed, prepare};

/// How many connections are kept that nobody uses. There may be more while they are in use.
const MAX_IDLE: usize = 8;

/// A store in one PostgreSQL database.
///
/// It connects without TLS: through a Unix socket, or over a network that is trusted.
pub struct PostgresStore {
    config: Config,
    /// What the database is called in errors: no password is in it.
    name: String,
    idle: Mutex<Vec<Client>>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects to a database, such as `postgresql://tenon@%2Frun%2Fpostgresql/tenon`, and makes the tables that are missing.
    ///
    /// # Errors
    ///
    /// Where the address is none, nobody answers there, or a later version has made the tables.
    pub fn connect(url: &str) -> Result<Self, StoreError> {
        let config: Config = url.parse().map_err(|error| failed("the address", error))?;
        let name = format!("the database {:?}", config.get_dbname().unwrap_or_default());
        let store = Self { config, name, idle: Mutex::default() };
        store.with(prepare)?;
        Ok(store)
    }

    /// Does something with a connection. One that failed is not used again.
    fn with<T>(
        &self,
        act: impl FnOnce(&mut Client) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let before = idle().pop().filter(|client| !client.is_closed());
        let connected = before.map_or_else(|| self.config.connect(NoTls), Ok);
        let mut client = connected.map_err(|error| failed(&self.name, error))?;
        let result = act(&mut client).map_err(|failure| match failure {
            Failure::Postgres(error) => failed(&self.name, error),
            Failure::Store(error) => error,
        });
        // What was refused by us was rolled back before.
        let mut idle = idle();
        if !client.is_closed() && idle.len() < MAX_IDLE {
            idle.push(client);
        }
        result
    }

    /// Runs a change of what has this name as one transaction, which an error rolls back. Nobody else changes it meanwhile.
    fn change<T>(
        &self,
        what: &str,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.with(|client| {
            let mut transaction = client.transaction()?;
            let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
            transaction.execute(lock, &[&what.replace('\0', "\u{fffd}")])?;
            let result = change(&mut transaction)?;
            transaction.commit()?;
            Ok(result)
        })
    }
}

/// A failure in the middle of an operation.
enum Failure {
    Postgres(postgres::Error),
    Store(StoreError),
}

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A number as the database has it: one that is larger than all of its stands for the largest.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
