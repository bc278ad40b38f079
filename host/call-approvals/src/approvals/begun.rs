//! Calls that were approved and have begun: how each of them ends, also where its process has died.

use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};
use tenon_store::{Change, Item, all_items};

use super::{APPROVALS, CallApprovals, MAX_TRIES, PREFIX_PAGE_ITEMS, STANDING, random_id};
use crate::action::ActionDigest;
use crate::approval::{Approval, ApprovalState, id_of};
use crate::event::{ApprovalEvent, ApprovalStep};
use crate::standing::StandingApproval;
use crate::{CallApprovalError, Result};

/// The kind of items that calls are which were approved and have begun.
pub(super) const BEGUN: &str = "begun-calls";

/// A call that is over.
pub(super) struct BegunCallRecord {
    key: String,
    approval: Approval,
    /// How it ended, if that is known.
    outcome: Option<String>,
}

/// A call that was approved and has begun. One that is dropped without an end is unknown. Dropping it blocks.
pub struct BegunCall {
    approvals: Arc<CallApprovals>,
    /// Nothing, once it is over.
    call: Option<BegunCallRecord>,
}

impl fmt::Debug for BegunCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BegunCall").field(&self.id()).finish()
    }
}

impl BegunCall {
    /// The approval, or the standing approval that covers it.
    pub fn id(&self) -> &str {
        self.call.as_ref().map_or("", |call| &call.approval.id)
    }

    /// The call has ended so: `ok`, `tool-error` or the code of an error.
    ///
    /// # Errors
    ///
    /// Where the store fails. Then it is told when it is asked for something else; where this process ends before, it is
    /// unknown how the call ended.
    pub fn end(mut self, outcome: &str, now: u64) -> Result<()> {
        let Some(call) = self.call.take() else { return Ok(()) };
        self.approvals.end(BegunCallRecord { outcome: Some(outcome.to_string()), ..call }, now)
    }

    /// The call is over, and how it ended is not known: the next one like it is asked about.
    ///
    /// # Errors
    ///
    /// As [`end`](Self::end).
    pub fn lose(mut self, now: u64) -> Result<()> {
        self.call.take().map_or(Ok(()), |call| self.approvals.end(call, now))
    }
}

impl Drop for BegunCall {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        let ApprovalState::Running { at, .. } = call.approval.state else { return };
        // Without a store it waits until there is one.
        let _ = self.approvals.end(call, at);
    }
}

impl CallApprovals {
    /// Begins a call, and keeps a standing approval. What was decided of the call, of this version, is used up by that. `None`
    /// where somebody else was faster.
    pub(super) fn begin(
        self: &Arc<Self>,
        approval: Approval,
        decided: Option<u64>,
        standing: Option<&StandingApproval>,
        mut events: Vec<ApprovalEvent>,
        now: u64,
    ) -> Result<Option<BegunCall>> {
        let lock = self.lock.name(&*self.store)?.ok_or(CallApprovalError::NoRandomness)?;
        let id = id_of(approval.digest);
        let key = format!("{}{}", begun_prefix(&id), random_id()?);
        let running = Approval { state: ApprovalState::Running { at: now, lock }, ..approval };
        events.push(ApprovalEvent::of(&running, ApprovalStep::Begun));
        let value = running.write();
        // It does not expire: how it ends has to be known.
        let (expires, quota) = (None, self.quota);
        let begun =
            Change::PutItem { kind: BEGUN, id: &key, version: None, value: &value, expires, quota };
        let decided =
            decided.map(|version| Change::RemoveItem { kind: APPROVALS, id: &id, version });
        let written = standing.map(|standing| (standing.key(), standing.write()));
        let stands = standing
            .zip(written.as_ref())
            .map(|(standing, (key, value))| self.put_standing(key, value, standing));
        let changes: Vec<_> = decided.into_iter().chain([begun]).chain(stands).collect();
        let has_begun = match self.change(&changes, &events, now) {
            Err(error) if error.is_full() => {
                self.settle(None, now)?;
                self.make_room(STANDING, now, || self.change(&changes, &events, now))?
            }
            changed => changed?,
        };
        let call = BegunCallRecord { key, approval: running, outcome: None };
        Ok(has_begun.then(|| BegunCall { approvals: self.clone(), call: Some(call) }))
    }

    /// Tells the store what it could not be told before.
    pub(super) fn tell(&self, now: u64) {
        let untold = std::mem::take(&mut *self.untold());
        for call in untold {
            // What fails again waits again.
            let _ = self.end(call, now);
        }
    }

    fn untold(&self) -> MutexGuard<'_, Vec<BegunCallRecord>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a call is over. Where the store fails, it is told later.
    fn end(&self, call: BegunCallRecord, now: u64) -> Result<()> {
        let ended = self.try_end(&call, now);
        if ended.is_err() {
            self.untold().push(call);
        }
        ended
    }

    fn try_end(&self, call: &BegunCallRecord, now: u64) -> Result<()> {
        let BegunCallRecord { key, approval, outcome } = call;
        let item = self.store.item(BEGUN, key)?;
        let Some(outcome) = outcome else {
            return item.map_or(Ok(()), |item| self.lose(&item, approval, now));
        };
        let step = ApprovalStep::Ended { outcome: outcome.clone() };
        let events = [ApprovalEvent::of(approval, step)];
        let removed = item.map(|item| {
            let gone = Change::RemoveItem { kind: BEGUN, id: key, version: item.version };
            self.change(&[gone], &events, now)
        });
        match removed.transpose()? {
            Some(true) => Ok(()),
            // Somebody took this process for dead.
            _ => self.change(&[], &events, now).map(drop),
        }
    }

    /// Has a call that has begun be unknown: nothing is decided of another one, but for a denial, which goes on to hold.
    fn lose(&self, begun: &Item, approval: &Approval, now: u64) -> Result<()> {
        let ApprovalState::Running { at, .. } = approval.state else { return Ok(()) };
        let id = id_of(approval.digest);
        let events = [ApprovalEvent::of(approval, ApprovalStep::Unknown)];
        for _ in 0..MAX_TRIES {
            let known = self.read(&id, now)?;
            let (version, mut unknown) =
                (known.as_ref().map(|(_, version)| *version), approval.unknown(id.clone(), at));
            let is_another = match known {
                Some((known, _)) if known.digest != approval.digest => true,
                Some((
                    Approval { state: ApprovalState::Denied { at: denied, reason, .. }, .. },
                    _,
                )) => {
                    let unknown_since = Some(at);
                    unknown.state = ApprovalState::Denied { at: denied, reason, unknown_since };
                    false
                }
                _ => false,
            };
            // It does not expire: somebody has to decide.
            let (value, expires) = (unknown.write(), None);
            let (kind, value, quota) = (APPROVALS, &*value, self.quota);
            let put = Change::PutItem { kind, id: &id, version, value, expires, quota };
            let gone = Change::RemoveItem { kind: BEGUN, id: &begun.id, version: begun.version };
            let changes = if is_another { vec![gone] } else { vec![gone, put] };
            let is_done = self.make_room(APPROVALS, now, || self.change(&changes, &events, now))?;
            if is_done {
                return self.forget_oldest_unknown(&unknown, now);
            }
            if self.store.item(BEGUN, &begun.id)?.is_none() {
                return Ok(());
            }
        }
        Err(CallApprovalError::Undecidable { id, why: "it changes all the time" })
    }

    /// Forgets the calls of a principal that have been unknown for the longest time, where there are too many of them.
    fn forget_oldest_unknown(&self, latest: &Approval, now: u64) -> Result<()> {
        let mut unknown = Vec::new();
        for item in all_items(&*self.store, APPROVALS)? {
            let known = Approval::read(&item.id, &item.value, item.expires, now);
            if let Ok(Approval { principal, state: ApprovalState::Unknown { at }, .. }) = known
                && principal == latest.principal
            {
                unknown.push((at, item.id, item.version));
            }
        }
        unknown.sort();
        let most = usize::try_from(self.quota_of_one.items).unwrap_or(usize::MAX);
        for (_, id, version) in &unknown[..unknown.len().saturating_sub(most)] {
            self.store.remove_item(APPROVALS, id, *version)?;
        }
        Ok(())
    }

    /// Has calls be unknown whose processes have died: all of them, or those whose keys begin so. Gives those that run.
    pub(super) fn settle(&self, prefix: Option<&str>, now: u64) -> Result<Vec<Approval>> {
        let mut running = Vec::new();
        let mut cursor = Some(prefix.map(str::to_string));
        while let Some(from) = cursor {
            let page = self.store.items(BEGUN, from.as_deref(), PREFIX_PAGE_ITEMS)?;
            for item in page.items {
                if prefix.is_some_and(|prefix| !item.id.starts_with(prefix)) {
                    return Ok(running);
                }
                let approval = match Approval::read(&item.id, &item.value, item.expires, now) {
                    Ok(approval) => approval,
                    // What is damaged keeps nobody from the calls of other actions.
                    Err(_) if prefix.is_none() => continue,
                    Err(damaged) => return Err(damaged),
                };
                match &approval.state {
                    ApprovalState::Running { lock, .. } if self.store.is_locked(lock)? => {
                        running.push(approval);
                    }
                    _ => match self.lose(&item, &approval, now) {
                        // It stays among those that have begun until there is room.
                        Err(error) if error.is_full() && prefix.is_none() => {}
                        lost => lost?,
                    },
                }
            }
            cursor = page.next.map(Some);
        }
        Ok(running)
    }

    /// Under which id a call runs that was approved by it.
    pub(super) fn running(&self, digest: ActionDigest, now: u64) -> Result<Option<String>> {
        let id = id_of(digest);
        let mut running = self.settle(Some(&begun_prefix(&id)), now)?;
        running.retain(|approval| approval.id == id);
        Ok(running.pop().map(|approval| approval.id))
    }
}

/// What the keys of calls begin with that have begun, of the action of this id.
pub(super) fn begun_prefix(id: &str) -> String {
    format!("{id}/")
}
