//! Makes the database file, and opens connections to it. Its schema is here, with the versions before.

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::error::{RawStoreError, StoreError};

/// Says in the file's header that it is ours.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"Tnon");

/// The steps from an empty database to the schema of today. The version of a database is how many it has seen. What
/// is published here never changes: a new schema is a new step.
pub(crate) const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE buckets (
        id INTEGER PRIMARY KEY,
        scope TEXT NOT NULL,
        name BLOB NOT NULL,
        plugin TEXT NOT NULL,
        keys INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0,
        UNIQUE (scope, name, plugin)
    ) STRICT;
    CREATE TABLE entries (
        bucket INTEGER NOT NULL REFERENCES buckets (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (bucket, key)
    ) STRICT, WITHOUT ROWID;
",
    "
    ALTER TABLE buckets ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
    UPDATE buckets SET changed = unixepoch();
",
    "
    CREATE TABLE logs (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        first INTEGER NOT NULL,
        next INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        before BLOB NOT NULL,
        last BLOB NOT NULL
    ) STRICT;
    CREATE TABLE log_entries (
        log INTEGER NOT NULL REFERENCES logs (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        at INTEGER NOT NULL,
        hash BLOB NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (log, number)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE items (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        expires INTEGER,
        value BLOB NOT NULL,
        PRIMARY KEY (kind, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE versions (last INTEGER NOT NULL) STRICT;
    INSERT INTO versions VALUES (0);
",
    "
    CREATE TABLE item_kinds (
        kind TEXT PRIMARY KEY,
        items INTEGER NOT NULL,
        bytes INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT INTO item_kinds
        SELECT kind, count(*), sum(octet_length(id) + octet_length(value)) FROM items GROUP BY kind;
    CREATE TRIGGER item_added AFTER INSERT ON items BEGIN
        INSERT INTO item_kinds VALUES (new.kind, 1, octet_length(new.id) + octet_length(new.value))
            ON CONFLICT DO UPDATE SET items = items + 1, bytes = bytes + excluded.bytes;
    END;
    CREATE TRIGGER item_changed AFTER UPDATE ON items BEGIN
        UPDATE item_kinds SET bytes = bytes + octet_length(new.value) - octet_length(old.value)
            WHERE kind = new.kind;
    END;
    CREATE TRIGGER item_removed AFTER DELETE ON items BEGIN
        UPDATE item_kinds
            SET items = items - 1, bytes = bytes - octet_length(old.id) - octet_length(old.value)
            WHERE kind = old.kind;
    END;
",
];

/// How long what is kept for a session may be unchanged, in seconds: 90 days. Its host may have been killed, and then
/// nobody ends the session.
const MAX_SESSION_AGE: u32 = 90 * 24 * 60 * 60;

/// Opens the connection that writes, and makes the database if there is none.
pub(crate) fn writer(path: &Path, busy_timeout: Duration) -> Result<Connection, RawStoreError> {
    if !path.try_exists()? {
        create(path, busy_timeout)?;
    }
    let mut connection = connect(path, busy_timeout)?;
    if connection.is_readonly("main")? {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only").into());
    }
    prepare(&mut connection, path)?;
    make_private(path)?;
    forget_old_sessions(&connection)?;
    Ok(connection)
}

/// Opens a connection that cannot write.
pub(crate) fn reader(path: &Path, busy_timeout: Duration) -> Result<Connection, RawStoreError> {
    let connection = connect(path, busy_timeout)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens a database that no other connection sees.
pub(crate) fn in_memory(path: &Path) -> Result<Connection, RawStoreError> {
    let mut connection = Connection::open_in_memory()?;
    configure(&connection, Duration::ZERO)?;
    prepare(&mut connection, path)?;
    Ok(connection)
}

/// Makes the database under another name, and gives it its own when it is whole: whoever sees it sees a database that
/// is ready and private.
///
/// The file is never opened except by SQLite: closing any other handle of it would release the locks of all
/// connections of this process.
fn create(path: &Path, busy_timeout: Duration) -> Result<(), RawStoreError> {
    let folder = path.parent().unwrap_or(path);
    make_folder(folder)?;
    let new = tempfile::Builder::new().prefix(".state-").tempfile_in(folder)?.into_temp_path();
    prepare(&mut connect(&new, busy_timeout)?, path)?;
    match new.persist_noclobber(path) {
        Ok(()) => Ok(sync_folder(folder)?),
        // Another process was faster.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.error.into()),
    }
}

/// Opens a file that is there: one that SQLite made would be as private as the umask says.
fn connect(path: &Path, busy_timeout: Duration) -> Result<Connection, RawStoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    configure(&connection, busy_timeout)?;
    Ok(connection)
}

/// Sets what the file does not remember. `fullfsync` is for macOS, where a disk may otherwise confirm what it has not
/// written. An untrusted schema runs no functions with effects. A large write leaves no large log behind.
fn configure(connection: &Connection, busy_timeout: Duration) -> Result<(), RawStoreError> {
    connection.busy_timeout(busy_timeout)?;
    connection.execute_batch(
        "PRAGMA trusted_schema = OFF;
         PRAGMA foreign_keys = ON;
         PRAGMA synchronous = FULL;
         PRAGMA fullfsync = ON;
         PRAGMA journal_size_limit = 4194304;",
    )?;
    Ok(())
}

/// Brings a database up to date. What is not ours is not changed.
fn prepare(connection: &mut Connection, path: &Path) -> Result<(), RawStoreError> {
    migrate(connection, path, MIGRATIONS)?;
    // After the first migration: so a new database is whole in its file, with nothing in a log beside it.
    match connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())) {
        // Several found an empty file and open it at once. It is as safe without the log, and whoever opens it next
        // tries again.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
        switched => Ok(switched?),
    }
}

/// Applies the migrations that a database has not seen, each in a transaction.
pub(crate) fn migrate(
    connection: &mut Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<(), RawStoreError> {
    loop {
        let version = version_of(&*connection.transaction()?, path, migrations.len())?;
        let Some(migration) = migrations.get(version) else { return Ok(()) };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Before this process could write, another may have done the same.
        if version_of(&transaction, path, migrations.len())? == version {
            transaction.execute_batch(migration)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", version as i64 + 1)?;
            transaction.commit()?;
        }
    }
}

/// Deletes what is kept for sessions that nobody has used for long.
fn forget_old_sessions(connection: &Connection) -> Result<(), RawStoreError> {
    const OLD: &str = "FROM buckets WHERE scope = 'session' AND changed < unixepoch() - ?1";
    let select = format!("SELECT EXISTS (SELECT 1 {OLD})");
    // Mostly there are none, and who only reads waits for no other process.
    if connection.query_row(&select, [MAX_SESSION_AGE], |row| row.get(0))? {
        connection.execute(&format!("DELETE {OLD}"), [MAX_SESSION_AGE])?;
    }
    Ok(())
}

/// How many migrations a database has seen.
fn version_of(
    connection: &Connection,
    path: &Path,
    supported: usize,
) -> Result<usize, RawStoreError> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_empty = (application, version, objects) == (0, 0, 0);
    if application != i64::from(APPLICATION_ID) && !is_empty {
        let problem = "another program wrote it".into();
        return Err(StoreError::Damaged(path.to_path_buf(), problem).into());
    }
    match usize::try_from(version) {
        Ok(version) if version <= supported => Ok(version),
        _ => Err(StoreError::Newer { path: path.to_path_buf(), version, supported }.into()),
    }
}

#[cfg(unix)]
fn make_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// A folder of the user's profile is the user's own on Windows.
#[cfg(not(unix))]
fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Makes a folder that only its user can use, or makes one such that is there.
#[cfg(unix)]
pub(super) fn make_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    make_folder(folder)?;
    match fs::metadata(folder)?.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(folder, fs::Permissions::from_mode(0o700)),
    }
}

#[cfg(not(unix))]
pub(super) fn make_private_folder(folder: &Path) -> io::Result<()> {
    make_folder(folder)
}

/// Makes the name of a new file survive the loss of power, as what will be in the file does.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Takes a database from others that a backup, say, has restored for all to read. New files beside it get its mode.
#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_os_string();
        file.push(suffix);
        let made = match fs::metadata(&file).map(|about| about.permissions().mode() & 0o077) {
            Ok(0) => Ok(()),
            Ok(_) => fs::set_permissions(&file, fs::Permissions::from_mode(0o600)),
            Err(error) => Err(error),
        };
        match made {
            // Whoever closes the last connection removes the log.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            made => made?,
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> io::Result<()> {
    Ok(())
}
