//! Changes of items and logs together, in PostgreSQL.

use std::collections::BTreeSet;
use tenon_store::rules::check_change;
use tenon_store::{BatchStore, Change, Durability, StoreError};

use crate::{PostgresStore, item, log};

impl BatchStore for PostgresStore {
    fn change(&self, changes: &[Change<'_>], durability: Durability) -> Result<bool, StoreError> {
        changes.iter().try_for_each(check_change)?;
        let changed = changes.iter().map(|change| match change {
            Change::PutItem { kind, .. } | Change::RemoveItem { kind, .. } => {
                format!("items {kind}")
            }
            Change::Append { log, .. } | Change::RemoveLog { log } => format!("log {log}"),
        });
        self.change_all(&changed.collect::<BTreeSet<_>>(), |transaction| {
            log::set_durability(transaction, durability)?;
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
