//! How much room approvals have, and what goes first where there is none.

use tenon_store::{Change, Item, ItemQuota, MAX_BATCH_ENTRIES, StoreError, all_items};

use super::{APPROVALS, CallApprovals, STANDING};
use crate::Result;
use crate::approval::{Approval, ApprovalState};
use crate::event::{ApprovalEvent, ApprovalStep};

/// How many of each kind there may be, and how many bytes they may take.
pub(super) const QUOTA: ItemQuota = ItemQuota { items: 2_000, bytes: 32 << 20 };

/// How many calls of one principal may wait at a time, and how many bytes they may take: nobody keeps others from being asked.
pub(super) const QUOTA_OF_ONE: ItemQuota = ItemQuota { items: 200, bytes: 8 << 20 };

impl CallApprovals {
    /// Checks that not too many calls of this principal wait.
    pub(super) fn check_room_of_one(&self, asked: &Approval, now: u64) -> Result<()> {
        let (mut items, mut bytes) = (1, asked.write().len() as u64);
        for item in all_items(&*self.store, APPROVALS)? {
            // What is damaged is nobody's.
            let known = Approval::read(&item.id, &item.value, item.expires, now).ok();
            let is_theirs = |known: &Approval| {
                known.is_undecided() && known.principal == asked.principal && known.id != asked.id
            };
            if !item.is_expired(now) && known.as_ref().is_some_and(is_theirs) {
                items += 1;
                bytes += item.value.len() as u64;
            }
        }
        let quota = self.quota_of_one;
        match items > quota.items || bytes > quota.bytes {
            true => {
                Err(StoreError::TooManyItems { kind: APPROVALS.into(), items, bytes, quota }.into())
            }
            false => Ok(()),
        }
    }

    /// Does something for which there may be no room before what is over has gone, and then the older half of the denials.
    pub(super) fn make_room<T>(
        &self,
        kind: &str,
        now: u64,
        act: impl Fn() -> Result<T>,
    ) -> Result<T> {
        match act() {
            Err(error) if error.is_full() => self.store.remove_expired_items(kind, now)?,
            done => return done,
        };
        match act() {
            Err(error) if error.is_full() && kind == APPROVALS => {
                let mut denied = Vec::new();
                for Item { id, version, value, expires } in all_items(&*self.store, kind)? {
                    let Ok(known) = Approval::read(&id, &value, expires, now) else { continue };
                    if let ApprovalState::Denied { at, unknown_since: None, .. } = known.state {
                        denied.push((at, id, version, known));
                    }
                }
                denied.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
                denied.truncate(denied.len().div_ceil(2));
                for some in denied.chunks(MAX_BATCH_ENTRIES) {
                    self.forget_denied(some, now)?;
                }
                act()
            }
            done => done,
        }
    }

    /// Has denials hold no more, with that in the log. Each is its time, its id, its version and itself.
    fn forget_denied(&self, denied: &[(u64, String, u64, Approval)], now: u64) -> Result<()> {
        let gone = denied.iter().map(|(_, id, version, _)| Change::RemoveItem {
            kind: APPROVALS,
            id,
            version: *version,
        });
        let taken_back = denied
            .iter()
            .map(|(_, _, _, denied)| ApprovalEvent::of(denied, ApprovalStep::TakenBack));
        // Where one of them is another by now, somebody else makes room as well.
        self.change(&gone.collect::<Vec<_>>(), &taken_back.collect::<Vec<_>>(), now).map(drop)
    }

    pub(super) fn remove_expired(&self, now: u64) -> Result<()> {
        self.store.remove_expired_items(APPROVALS, now)?;
        self.store.remove_expired_items(STANDING, now)?;
        Ok(())
    }
}
