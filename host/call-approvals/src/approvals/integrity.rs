//! What is damaged, and what differs from the log: somebody has edited it.

use tenon_store::{Change, Item, all_items};

use super::begun::BEGUN;
use super::{APPROVALS, CallApprovals, STANDING};
use crate::approval::{Approval, id_of};
use crate::event::ApprovalEvent;
use crate::logged_decisions::LoggedDecisions;
use crate::standing::StandingApproval;
use crate::{CallApprovalError, Result};

impl CallApprovals {
    /// What approvals cannot be read are called. They approve nothing; [`deny`](Self::deny) forgets them.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn damaged(&self) -> Result<Vec<String>> {
        let damaged = self.damaged_items()?.into_iter();
        Ok(damaged.map(|(kind, item)| approval_id(kind, &item.id).to_string()).collect())
    }

    /// The ids of what waits, is approved or denied, and of what stands, although the log says otherwise or says nothing of
    /// it, and of calls that have begun without an approval in the log: somebody has changed the items or the log. Where the
    /// log was full, what is older than all of its entries is not among them. Whether the entries of the log are as they were written is for [`check_log`](tenon_store::check_log).
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn undocumented(&self, now: u64) -> Result<Vec<String>> {
        let mut found = self.not_borne_out(now)?;
        if !found.is_empty() {
            // What was decided between the log and the items were read is in the log by now.
            let again = self.not_borne_out(now)?;
            found.retain(|one| again.contains(one));
        }
        Ok(found.into_iter().map(|(id, _)| id).collect())
    }

    /// Whether what is kept of a call is what somebody was asked about, by the log.
    pub(super) fn is_as_asked(&self, approval: &Approval) -> Result<bool> {
        Ok(LoggedDecisions::read(&*self.store)?.bear_out_content(approval))
    }

    /// What is not as the log says: the ids of approvals, and the versions of their items or the numbers of entries, so that
    /// what is found twice is the same.
    fn not_borne_out(&self, now: u64) -> Result<Vec<(String, u64)>> {
        // The log first: what is used up meanwhile is gone from the items then.
        let logged = LoggedDecisions::read(&*self.store)?;
        let mut found: Vec<_> = logged.unapproved().map(|id| (id.to_string(), 0)).collect();
        for (digest, number) in logged.denied(now) {
            let id = id_of(digest);
            let known = match self.read(&id, now) {
                // Nobody can tell.
                Err(CallApprovalError::Damaged(_)) => continue,
                known => known?,
            };
            if known.is_none_or(|(known, _)| known.digest != digest || known.is_pending()) {
                found.push((id, number));
            }
        }
        // What is damaged decides nothing.
        for item in all_items(&*self.store, APPROVALS)?.into_iter().filter(|of| !of.is_expired(now))
        {
            let approval = Approval::read(&item.id, &item.value, item.expires, now);
            if approval.is_ok_and(|approval| !logged.bear_out(&item.id, &approval)) {
                found.push((item.id, item.version));
            }
        }
        for item in all_items(&*self.store, STANDING)?.into_iter().filter(|of| !of.is_expired(now))
        {
            if let Ok(standing) = StandingApproval::read(&item.id, &item.value, item.expires)
                && !logged.bear_out_standing(&item, &standing)
            {
                found.push((standing.id, item.version));
            }
        }
        Ok(found)
    }

    /// The items that cannot be read, each with its kind.
    fn damaged_items(&self) -> Result<Vec<(&'static str, Item)>> {
        let mut damaged = Vec::new();
        for kind in [APPROVALS, BEGUN, STANDING] {
            let is_read = |Item { id, value, expires, .. }: &Item| match kind {
                STANDING => StandingApproval::read(id, value, *expires).is_ok(),
                _ => Approval::read(id, value, *expires, 0).is_ok(),
            };
            let all = all_items(&*self.store, kind)?.into_iter();
            damaged.extend(all.filter(|item| !is_read(item)).map(|item| (kind, item)));
        }
        Ok(damaged)
    }

    /// Forgets what is damaged of the approval of this id. Says whether there was something.
    pub(super) fn forget_damaged(&self, id: &str, now: u64) -> Result<bool> {
        let mut damaged = self.damaged_items()?;
        damaged.retain(|(kind, item)| approval_id(kind, &item.id) == id);
        let gone: Vec<_> = damaged
            .iter()
            .map(|(kind, item)| Change::RemoveItem { kind, id: &item.id, version: item.version })
            .collect();
        let taken_back = ApprovalEvent::of_damaged(id).decided_by(self.decided_by.clone());
        Ok(!gone.is_empty() && self.change(&gone, &[taken_back], now)?)
    }
}

/// The approval that an item of this kind and id is of.
fn approval_id<'a>(kind: &str, item: &'a str) -> &'a str {
    match (kind, item.split_once('/')) {
        (STANDING, Some((_, id))) | (BEGUN, Some((id, _))) => id,
        _ => item,
    }
}
