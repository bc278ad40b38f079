//! The embedded database: its files, what fails, and several processes. What every store does is in `expectations`.

mod failures;
mod files;
mod locks;
mod processes;

use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

use crate::expectations::{PLENTY, all_keys, set, value};
use crate::*;

/// Waits for others longer than a host does: a machine that runs tests is busy.
pub(crate) fn open(path: &Path) -> SqliteStore {
    SqliteStore::open_with_timeout(path, Duration::from_secs(60)).expect("the database opens")
}

/// Checks that SQLite finds nothing wrong, and that the usage of each bucket is what is in it.
fn assert_sound(connection: &Connection) {
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    let wrong: i64 = connection
        .query_row(
            "SELECT count(*) FROM buckets FULL JOIN (
                 SELECT bucket, count(*) AS n, sum(octet_length(key) + octet_length(value)) AS total
                 FROM entries GROUP BY bucket
             ) ON bucket = id WHERE keys IS NOT n OR bytes IS NOT total",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(wrong, 0, "buckets hold what their usage says");
}
