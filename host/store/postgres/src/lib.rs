//! A [`Store`](tenon_store::Store) in PostgreSQL, for hosts on several machines that share one.
//!
//! Whoever changes a bucket, a log or the items of a kind holds a lock for that one until the change is over, so that
//! each operation is one step for all hosts, as in the embedded database. A change that has returned is kept as safely as
//! the server's `synchronous_commit` says.
//!
//! The locks that a host holds are those of one connection, which is opened for the first of them and stays. They are lost
//! with it, also when the server restarts; the next lock opens a new one. What stands between a host and the server has to
//! give each connection a session of its own: PgBouncer does with `pool_mode=session`.

mod connection;
mod item;
mod lock;
mod log;
mod state;

use postgres::{Client, Config, NoTls, Transaction};
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tenon_store::StoreError;

use connection::{failed, prepare};
use lock::LockSession;

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
    locks: Arc<Mutex<LockSession>>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        let idle = mem::take(self.idle.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !idle.is_empty() {
            on_own_thread(|| drop(idle));
        }
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
        let store = Self { config, name, idle: Mutex::default(), locks: Arc::default() };
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
        let mut client = before.map_or_else(|| self.connect_client(), Ok)?;
        let result = act(&mut client).map_err(|failure| match failure {
            Failure::Postgres(error) => self.failed(error),
            Failure::Store(error) => error,
        });
        // What was refused by us was rolled back before.
        let mut idle = idle();
        if !client.is_closed() && idle.len() < MAX_IDLE {
            idle.push(client);
        }
        result
    }

    fn connect_client(&self) -> Result<Client, StoreError> {
        self.config.connect(NoTls).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: postgres::Error) -> StoreError {
        failed(&self.name, error)
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

/// Runs something on a thread of its own and waits for it. A client has an executor inside, which panics on a thread of another
/// one; and a lock is dropped there when the future is dropped that has it.
fn on_own_thread(act: impl FnOnce() + Send) {
    thread::scope(|scope| {
        // Without a thread it is not done: a lock is then let go with its connection.
        let _ = thread::Builder::new().spawn_scoped(scope, act);
    });
}

/// A number as the database has it: one that is larger than all of its stands for the largest.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
