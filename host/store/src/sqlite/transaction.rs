//! Changes of items and logs together, in a SQLite database.

use super::{SqliteStore, item, log};
use crate::batch::{BatchStore, Change};
use crate::error::StoreResult;
use crate::log::Durability;
use crate::rules::check_change;

impl BatchStore for SqliteStore {
    fn change(&self, changes: &[Change<'_>], durability: Durability) -> StoreResult<bool> {
        changes.iter().try_for_each(check_change)?;
        self.write_with(durability, |transaction| {
            // First, since this ends the transaction with what it has changed by then.
            for (kind, id, expected) in changes.iter().filter_map(Change::expected) {
                if item::find(transaction, kind, id)?.map(|item| item.version) != expected {
                    return Ok(false);
                }
            }
            for change in changes {
                match *change {
                    Change::PutItem { kind, id, version, value, expires, quota } => {
                        item::put(transaction, (kind, id), version, (value, expires), quota)?;
                    }
                    Change::RemoveItem { kind, id, version } => {
                        item::remove(transaction, kind, id, version)?;
                    }
                    Change::Append { log, entries, max_bytes } => {
                        log::append(transaction, log, entries, max_bytes)?;
                    }
                    Change::RemoveLog { log } => log::remove(transaction, log)?,
                }
            }
            Ok(true)
        })
    }
}
