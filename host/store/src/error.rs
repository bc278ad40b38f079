//! Why an operation on state fails. No error has the text of a value in it.

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use crate::item::ItemQuota;
use crate::log::{MAX_BATCH_ENTRIES, MAX_ENTRY_BYTES};
use crate::state::{
    BucketUsage, MAX_BATCH_BYTES, MAX_BATCH_KEYS, MAX_KEY_BYTES, MAX_VALUE_BYTES, Quota,
};

/// Why state is not read or written. Whatever the reason, a failed write changes nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The bucket would grow beyond its quota.
    #[error(
        "the stored state would take {} bytes in {} keys, and its quota is {} bytes in {} keys",
        needed.bytes, needed.keys, quota.bytes, quota.keys
    )]
    QuotaExceeded {
        /// What the bucket would take after the write.
        needed: BucketUsage,
        /// What it may take.
        quota: Quota,
    },
    /// The key is longer than [`MAX_KEY_BYTES`].
    #[error("the key has {length} bytes, and the most is {MAX_KEY_BYTES}")]
    KeyTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// The value is longer than [`MAX_VALUE_BYTES`].
    #[error("the value of the key {key:?} has {length} bytes, and the most is {MAX_VALUE_BYTES}")]
    ValueTooLarge {
        /// The value's key.
        key: String,
        /// Its length in bytes.
        length: usize,
    },
    /// One call names more than [`MAX_BATCH_KEYS`] keys.
    #[error("the call has {count} keys, and the most is {MAX_BATCH_KEYS}; split it")]
    TooManyKeys {
        /// How many keys it names.
        count: usize,
    },
    /// One call asks for values that are longer than [`MAX_BATCH_BYTES`] together.
    #[error("the values of these keys have more than {MAX_BATCH_BYTES} bytes; split the call")]
    TooManyBytes,
    /// The value to be incremented is no integer.
    #[error("the value of the key {key:?} is not a decimal integer of 64 bits")]
    NotANumber {
        /// The value's key.
        key: String,
    },
    /// The incremented value would not fit 64 bits.
    #[error("the value of the key {key:?} would be beyond 64 bits")]
    Overflow {
        /// The value's key.
        key: String,
    },
    /// One call adds more than [`MAX_BATCH_ENTRIES`] entries to a log.
    #[error("the call has {count} entries, and the most is {MAX_BATCH_ENTRIES}; split it")]
    TooManyEntries {
        /// How many entries it adds.
        count: usize,
    },
    /// The entry of a log is longer than [`MAX_ENTRY_BYTES`].
    #[error("the entry has {length} bytes, and the most is {MAX_ENTRY_BYTES}")]
    EntryTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// There would be more items of a kind than there may be.
    #[error(
        "there would be {items} items of the kind {kind:?} with {bytes} bytes, and the most is {} with {}",
        quota.items, quota.bytes
    )]
    TooManyItems {
        /// Their kind.
        kind: String,
        /// How many there would be.
        items: u64,
        /// How many bytes they would take.
        bytes: u64,
        /// What there may be.
        quota: ItemQuota,
    },
    /// There is no room on the disk.
    #[error("there is no room on the disk for the state in {}", .0.display())]
    Full(PathBuf),
    /// Another process was writing longer than this one waits.
    #[error("another process keeps the state in {} locked; try again", .0.display())]
    Busy(PathBuf),
    /// The file is not a state database, or what is in it is damaged.
    #[error("{} is not a state database, or is damaged; move it away to start over", .0.display())]
    Damaged(PathBuf, #[source] Box<dyn Error + Send + Sync>),
    /// A later version of the host wrote the file.
    #[error(
        "the state in {} has version {version}, and this host reads up to {supported}; update the host",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        version: i64,
        /// The last version that is understood.
        supported: usize,
    },
    /// The file cannot be opened, read or written.
    #[error("the state in {} cannot be read or written", .0.display())]
    Io(PathBuf, #[source] Box<dyn Error + Send + Sync>),
    /// The database failed for a reason that is none of these.
    #[error("the database in {} failed", .0.display())]
    Database(PathBuf, #[source] Box<dyn Error + Send + Sync>),
}

/// What an operation on state returns.
pub(crate) type StoreResult<T> = Result<T, StoreError>;

/// A failure in the middle of an operation, where the database is not named yet.
pub(crate) enum RawStoreError {
    Io(io::Error),
    Sqlite(rusqlite::Error),
    State(StoreError),
}

impl RawStoreError {
    /// The error of an operation on the database in this file.
    pub(crate) fn at(self, path: &Path) -> StoreError {
        let path = path.to_path_buf();
        match self {
            Self::State(error) => error,
            Self::Io(error) if error.kind() == io::ErrorKind::StorageFull => StoreError::Full(path),
            Self::Io(error) => StoreError::Io(path, error.into()),
            // SQLite extends the file that its processes share only where there is room for it.
            Self::Sqlite(error) if extended(&error) == Some(SQLITE_IOERR_SHMSIZE) => {
                StoreError::Full(path)
            }
            Self::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => StoreError::Full(path),
                Some(
                    ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::FileLockingProtocolFailed,
                ) => StoreError::Busy(path),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    StoreError::Damaged(path, error.into())
                }
                Some(
                    ErrorCode::CannotOpen
                    | ErrorCode::PermissionDenied
                    | ErrorCode::ReadOnly
                    | ErrorCode::SystemIoFailure,
                ) => StoreError::Io(path, error.into()),
                Some(_) => StoreError::Database(path, error.into()),
                // The statements are ours, so what cannot be read as it was written has been changed since.
                None => StoreError::Damaged(path, error.into()),
            },
        }
    }
}

impl From<io::Error> for RawStoreError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rusqlite::Error> for RawStoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for RawStoreError {
    fn from(error: StoreError) -> Self {
        Self::State(error)
    }
}

/// SQLite's code for exactly what has failed.
fn extended(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}
