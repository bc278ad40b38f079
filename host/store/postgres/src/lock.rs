//! Locks in PostgreSQL: advisory locks of one connection, which the server frees when the connection ends.

use postgres::Client;
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenon_store::rules::check_lock_name;
use tenon_store::{HeldLock, LockStore, StoreError};

use crate::{PostgresStore, on_own_thread};

/// What the server knows a lock by: 64 bits of a hash, in two numbers. Locks with two numbers are apart from those with
/// one, by which this crate lets one change after the other.
type Key = (i32, i32);

/// Keeps the connection for as long as the process lives, whatever the server does with others that are idle. A process
/// whose machine is gone is missed by TCP, after 25 seconds. A server without one of these settings does without it.
const SETTINGS: &str = "
    SELECT set_config(name, value, false) FROM (VALUES
        ('idle_session_timeout', '0'),
        ('statement_timeout', '0'),
        ('tcp_keepalives_idle', '10'),
        ('tcp_keepalives_interval', '5'),
        ('tcp_keepalives_count', '3')
    ) AS wanted (name, value) WHERE name IN (SELECT name FROM pg_settings)";

/// The connection whose locks a store holds.
#[derive(Default)]
pub(crate) struct LockSession {
    client: Option<Client>,
    /// How many connections there have been. What is let go of one that is lost does not concern the next.
    number: u64,
    /// What is held: the server gives a connection the same lock several times.
    held: HashSet<Key>,
}

impl LockStore for PostgresStore {
    fn hold_lock(&self, name: &str) -> Result<Option<Box<dyn HeldLock>>, StoreError> {
        check_lock_name(name)?;
        let key = key_of(name);
        let mut session = lock(&self.locks);
        session.prepare(|| self.connect_for_locks())?;
        let is_held = session.hold(key).map_err(|error| self.failed(error))?;
        let (number, session) = (session.number, self.locks.clone());
        Ok(is_held.then(|| Box::new(AdvisoryLock { session, number, key }) as _))
    }

    fn is_locked(&self, name: &str) -> Result<bool, StoreError> {
        check_lock_name(name)?;
        // The server shows both numbers without their sign, and 2 for locks that have two.
        let (first, second) = key_of(name);
        let (first, second) = (first.cast_unsigned(), second.cast_unsigned());
        self.with(|client| {
            let select = "SELECT EXISTS (
                SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
                WHERE datname = current_database() AND locktype = 'advisory' AND granted
                AND classid = $1 AND objid = $2 AND objsubid = 2)";
            Ok(client.query_one(select, &[&first, &second])?.get(0))
        })
    }
}

impl PostgresStore {
    fn connect_for_locks(&self) -> Result<Client, StoreError> {
        let mut client = self.connect_client()?;
        client.execute(SETTINGS, &[]).map_err(|error| self.failed(error))?;
        Ok(client)
    }
}

impl LockSession {
    /// Connects, unless there is a connection that answers.
    fn prepare(
        &mut self,
        connect: impl FnOnce() -> Result<Client, StoreError>,
    ) -> Result<(), StoreError> {
        // The client sees that a connection is lost only when it is used.
        let is_alive = |client: &mut Client| client.simple_query("").is_ok();
        if !self.client.as_mut().is_some_and(is_alive) {
            self.client = None;
            self.held.clear();
            self.client = Some(connect()?);
            self.number += 1;
        }
        Ok(())
    }

    /// Takes a lock, unless somebody holds it. Says whether it is held now.
    fn hold(&mut self, key: Key) -> Result<bool, postgres::Error> {
        let Some(client) = self.client.as_mut().filter(|_| !self.held.contains(&key)) else {
            return Ok(false);
        };
        let lock = "SELECT pg_try_advisory_lock($1, $2)";
        let is_held = client.query_one(lock, &[&key.0, &key.1])?.get(0);
        if is_held {
            self.held.insert(key);
        }
        Ok(is_held)
    }

    fn release(&mut self, key: Key) {
        let unlock = "SELECT pg_advisory_unlock($1, $2)";
        let unlocked = self.client.as_mut().map(|client| client.execute(unlock, &[&key.0, &key.1]));
        self.held.remove(&key);
        if let Some(Err(_)) = unlocked {
            // Only the end of the connection lets it go now. That the other locks go too is what their holders have to
            // expect at any time.
            self.client = None;
        }
    }
}

impl Drop for LockSession {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            on_own_thread(|| drop(client));
        }
    }
}

/// A lock that is held as long as the connection with this number.
struct AdvisoryLock {
    session: Arc<Mutex<LockSession>>,
    number: u64,
    key: Key,
}

impl HeldLock for AdvisoryLock {}

impl fmt::Debug for AdvisoryLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdvisoryLock").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Drop for AdvisoryLock {
    fn drop(&mut self) {
        on_own_thread(|| {
            let mut session = lock(&self.session);
            if session.number == self.number {
                session.release(self.key);
            }
        });
    }
}

fn key_of(name: &str) -> Key {
    let hash = Sha256::new().chain_update("tenon lock ").chain_update(name).finalize();
    let number =
        |at: usize| i32::from_be_bytes([hash[at], hash[at + 1], hash[at + 2], hash[at + 3]]);
    (number(0), number(4))
}

/// Locks also what a thread held when it panicked: nothing in it is left half done.
fn lock(session: &Mutex<LockSession>) -> MutexGuard<'_, LockSession> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}
