//! A [`Store`](tenon_store::Store) in PostgreSQL, for hosts on several machines that share one.
//!
//! Whoever changes a bucket, a log or the items of a kind holds a lock for that one until the change is over, so that
//! each operation is one step for all hosts, as in the embedded database. A change that has returned is kept as safely as
//! the server's `synchronous_commit` says.
//!
//! The locks that a host holds are those of one connection, which is opened for the first of them and stays. They are lost
//! with it, also when the server restarts; the next lock opens a new one. What stands between a host and the server has to
//! give each connection a session of its own: PgBouncer does with `pool_mode=session`.

mod address;
mod batch;
mod item;
mod lock;
mod log;
mod migrations;
mod state;
mod tls;

use postgres::{Client, Config, Transaction};
use std::collections::BTreeSet;
use std::fmt;
use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tenon_store::StoreError;
use tokio_postgres_rustls::MakeRustlsConnect;

use lock::LockSession;
use migrations::{failed, prepare, unusable};

/// How many connections are kept that nobody uses. There may be more while they are in use.
const MAX_IDLE: usize = 8;

/// A store in one PostgreSQL database.
///
/// Over a network, `sslmode` in the address says whether it connects with TLS: `disable` never, `require` and `verify-full` always, and
/// `prefer`, which holds by default, where the server has it. A server with TLS always has to prove that it is the host of the
/// address. One that cannot is refused, also with `prefer`. Whoever is between can pretend that a server has no TLS, so only
/// `require` is safe where others are on the network. A Unix socket has none.
pub struct PostgresStore {
    config: Config,
    tls: MakeRustlsConnect,
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
    /// A server with TLS is believed if the authorities in this PEM file vouch for it; without a file, if a public authority does.
    ///
    /// # Errors
    ///
    /// Where the address is none, the authorities cannot be read, nobody answers, the server is not believed or wants TLS that
    /// `sslmode` forbids, or a later version has made the tables. No error has the password in it.
    pub fn connect(url: &str, authorities: Option<&Path>) -> Result<Self, StoreError> {
        let store = Self::unconnected(url, authorities)?;
        store.with(prepare)?;
        Ok(store)
    }

    /// Checks what can be known of an address without connecting.
    ///
    /// # Errors
    ///
    /// Where it is none, or the authorities cannot be read. No error has the password in it.
    pub fn check_address(url: &str, authorities: Option<&Path>) -> Result<(), StoreError> {
        Self::unconnected(url, authorities).map(drop)
    }

    fn unconnected(url: &str, authorities: Option<&Path>) -> Result<Self, StoreError> {
        let config = address::parse(url).map_err(|error| unusable("PostgreSQL", error))?;
        let name = format!("the database {:?}", config.get_dbname().unwrap_or_default());
        let tls = tls::connector(authorities).map_err(|error| unusable(&name, error))?;
        Ok(Self { config, tls, name, idle: Mutex::default(), locks: Arc::default() })
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
        self.config.connect(self.tls.clone()).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: postgres::Error) -> StoreError {
        failed(&self.name, error)
    }

    /// Runs a change of what has this name as one transaction, which an error rolls back. Nobody else changes it meanwhile.
    fn change_one<T>(
        &self,
        what: &str,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.change_all(&BTreeSet::from([what.to_string()]), change)
    }

    /// The same of several things. All who change several take their locks in one order.
    fn change_all<T>(
        &self,
        all: &BTreeSet<String>,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.with(|client| {
            let mut transaction = client.transaction()?;
            let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
            for what in all {
                transaction.execute(lock, &[&what.replace('\0', "\u{fffd}")])?;
            }
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
