//! A store in a SQLite database. [`open`] makes and opens it; what is asked of it has a file for each kind.

mod item;
mod lock_files;
mod log;
pub(crate) mod open;
mod state;
mod transaction;

use rusqlite::{Connection, OptionalExtension, Params, Row, Transaction, TransactionBehavior};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{RawStoreError, StoreError, StoreResult};
use crate::log::Durability;
use lock_files::{LockFolder, Locks};

/// How long a write waits for other processes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How many connections are kept for reading. There may be more while they are in use.
const MAX_IDLE_READERS: usize = 4;

/// A store in one SQLite database, which several processes may use at once.
///
/// Writes go through one connection, one after the other: SQLite has one writer at a time in any case, and so a
/// thread waits for a lock of this process instead of polling the file. Reads have connections of their own, so that a
/// plugin that reads does not wait for another plugin's write to reach the disk.
///
/// The journal is a write-ahead log with `synchronous=FULL`: a write returns after the disk has confirmed it, and so
/// survives the loss of power. Where the file system has no shared memory, SQLite keeps its rollback journal, which is
/// as safe; reads then wait for writes.
///
/// The file does not shrink when state is deleted: later writes use the space. What is kept for a session that nobody
/// has changed for 90 days is deleted when the store is opened.
pub struct SqliteStore {
    path: PathBuf,
    pub(crate) writer: Mutex<Writer>,
    /// Connections for reading that nobody uses. A database in memory has one connection only.
    readers: Option<Mutex<Vec<Connection>>>,
    busy_timeout: Duration,
    locks: Locks,
}

/// The connection for writing.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    /// What its transactions survive, once that was set.
    durability: Option<Durability>,
}

impl Writer {
    fn new(connection: Connection) -> Mutex<Self> {
        Mutex::new(Self { connection, durability: None })
    }

    fn set_durability(&mut self, durability: Durability) -> rusqlite::Result<()> {
        if self.durability != Some(durability) {
            // A transaction that the disk confirms takes those along that came before it.
            let synchronous = match durability {
                Durability::Process => "NORMAL",
                Durability::Disk => "FULL",
            };
            self.connection.pragma_update(None, "synchronous", synchronous)?;
            self.durability = Some(durability);
        }
        Ok(())
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the database in this file, or makes it. The file is readable by its user only, and so are the files that
    /// SQLite keeps beside it, and the folder with its locks, `<file>-locks`. A missing folder is made the same way. Whether others can write to a folder that is
    /// there already is for the caller to check.
    ///
    /// # Errors
    ///
    /// If the file cannot be read and written, is something else, or is of a later version. It is then left as it is.
    pub fn open(path: impl AsRef<Path>) -> StoreResult<Self> {
        Self::open_with_timeout(path.as_ref(), BUSY_TIMEOUT)
    }

    pub(crate) fn open_with_timeout(path: &Path, busy_timeout: Duration) -> StoreResult<Self> {
        // SQLite reads a relative path that begins with `file:` as a URI.
        let path = std::path::absolute(path)
            .map_err(|error| StoreError::Io(path.to_path_buf(), error.into()))?;
        let writer = open::writer(&path, busy_timeout).map_err(|failure| failure.at(&path))?;
        let locks =
            LockFolder::beside(&path).map_err(|error| RawStoreError::from(error).at(&path))?;
        let (readers, locks) = (Some(Mutex::default()), Locks::Files(locks));
        Ok(Self { path, writer: Writer::new(writer), readers, busy_timeout, locks })
    }

    /// Makes a database that ends with the store.
    ///
    /// # Errors
    ///
    /// If there is no memory.
    pub fn in_memory() -> StoreResult<Self> {
        let path = PathBuf::from(":memory:");
        let writer = open::in_memory(&path).map_err(|failure| failure.at(&path))?;
        let (writer, locks) = (Writer::new(writer), Locks::Names(Arc::default()));
        Ok(Self { path, writer, readers: None, busy_timeout: BUSY_TIMEOUT, locks })
    }

    fn with_reader<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, RawStoreError>,
    ) -> StoreResult<T> {
        let Some(idle) = &self.readers else {
            return read(&lock(&self.writer).connection).map_err(|failure| failure.at(&self.path));
        };
        let read = || {
            let reader = lock(idle).pop();
            let reader = reader.map_or_else(|| open::reader(&self.path, self.busy_timeout), Ok)?;
            let result = read(&reader)?;
            // A connection that failed is not used again.
            let mut idle = lock(idle);
            if idle.len() < MAX_IDLE_READERS {
                idle.push(reader);
            }
            Ok(result)
        };
        read().map_err(|failure: RawStoreError| failure.at(&self.path))
    }

    /// Runs a change as one transaction, which an error rolls back, and which the disk has confirmed.
    fn write<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, RawStoreError>,
    ) -> StoreResult<T> {
        self.write_with(Durability::Disk, change)
    }

    /// Runs a change as one transaction, which an error rolls back.
    fn write_with<T>(
        &self,
        durability: Durability,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, RawStoreError>,
    ) -> StoreResult<T> {
        let mut writer = lock(&self.writer);
        let run = || {
            writer.set_durability(durability)?;
            let writer = &mut writer.connection;
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = change(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        run().map_err(|failure: RawStoreError| failure.at(&self.path))
    }
}

fn execute(connection: &Connection, sql: &str, params: impl Params) -> Result<(), RawStoreError> {
    connection.prepare_cached(sql)?.execute(params)?;
    Ok(())
}

/// The only row that is asked for, if there is one.
fn query<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, RawStoreError> {
    Ok(connection.prepare_cached(sql)?.query_row(params, read).optional()?)
}

/// Locks also what a thread held when it panicked: its transaction has been rolled back.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
