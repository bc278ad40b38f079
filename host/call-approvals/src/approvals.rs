//! The approvals of a store: what was decided of a call, and each step of it.

use std::sync::Arc;
use std::time::Duration;
use tenon_store::{Item, ItemOutcome, ItemQuota, MAX_BATCH_ENTRIES, ProcessLock, Store, all_items};

use crate::action::{Action, ActionDigest};
use crate::approval::{Approval, ApprovalState, AskedCall, CallPlace, IDS};
use crate::event::{ApprovalEvent, ApprovalStep, LOG};
use crate::standing::{ApprovalScope, DEFAULT_STANDING, StandingApproval, key_prefix};
use crate::{CallApprovalError, Result};

/// The kind of items that approvals are.
const APPROVALS: &str = "call-approvals";

/// The kind of items that standing approvals are.
const STANDING: &str = "standing-call-approvals";

/// How many of each kind there may be, and how many bytes they may take.
const QUOTA: ItemQuota = ItemQuota { items: 2_000, bytes: 32 << 20 };

/// How long a call waits for somebody to decide, and how long a denial holds.
pub const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);

/// How long an approval for one call holds where nobody says how long.
pub const DEFAULT_ONCE: Duration = Duration::from_secs(3600);

/// The longest that an approval holds for a session.
const MAX_SESSION: Duration = Duration::from_secs(24 * 3600);

/// How many items of a tool are read at a time: most tools have none.
const PREFIX_PAGE_ITEMS: usize = 16;

/// The longest that an approval holds for a run: as long as runs are kept.
const MAX_RUN: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often a change is tried again that somebody else was faster with.
const MAX_TRIES: usize = 8;

/// The approvals of calls that a store has.
pub struct CallApprovals {
    store: Arc<dyn Store>,
    /// The lock that says that this process lives, from the first call on that begins.
    lock: ProcessLock,
}

/// What is decided of a call.
#[derive(Debug)]
pub enum Found {
    /// A standing approval covers it.
    Covered {
        /// The standing approval.
        id: String,
    },
    /// It was approved, and has begun.
    Begun(Box<BegunCall>),
    /// It may not be made.
    Denied {
        /// The approval.
        id: String,
        /// What whoever decided said.
        reason: Option<String>,
    },
    /// The same call runs, and nothing is decided of another one.
    Running {
        /// The approval.
        id: String,
    },
    /// Nothing.
    Undecided {
        /// When the same call began of which it is not known how it ended.
        unknown_since: Option<u64>,
    },
}

impl CallApprovals {
    /// The approvals that a store has.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, lock: ProcessLock::new("process/") }
    }

    /// Looks up what is decided of a call, and begins one that was approved once: nobody else makes it then.
    ///
    /// # Errors
    ///
    /// Where the store fails. Then the call must not be made.
    pub fn take(
        self: &Arc<Self>,
        action: &Action,
        place: CallPlace<'_>,
        now: u64,
    ) -> Result<Found> {
        for _ in 0..MAX_TRIES {
            if let Some(standing) = self.covering(action, place, now)? {
                let step = ApprovalStep::Covered;
                self.log(ApprovalEvent::of_standing(&standing, Some(action.digest()), step), now)?;
                return Ok(Found::Covered { id: standing.id });
            }
            let Some((approval, version)) = self.of(action, now)? else {
                return Ok(Found::Undecided { unknown_since: None });
            };
            let id = approval.id.clone();
            match &approval.state {
                ApprovalState::Pending => return Ok(Found::Undecided { unknown_since: None }),
                ApprovalState::Unknown { at } => {
                    return Ok(Found::Undecided { unknown_since: Some(*at) });
                }
                ApprovalState::Denied { reason, .. } => {
                    return Ok(Found::Denied { id, reason: reason.clone() });
                }
                ApprovalState::Running { .. } => match self.settle(approval, version, now)? {
                    // It is unknown, or gone.
                    true => continue,
                    false => return Ok(Found::Running { id }),
                },
                ApprovalState::Approved { .. } => {
                    if let Some(begun) = self.begin(approval, Some(version), now)? {
                        return Ok(Found::Begun(begun.into()));
                    }
                }
            }
        }
        Err(CallApprovalError::Undecidable {
            id: id_of_action(action),
            why: "it changes all the time",
        })
    }

    /// Notes that a call waits for somebody to decide, and gives the id by which it is decided. One that waits already
    /// keeps its id.
    ///
    /// # Errors
    ///
    /// Where the store fails, or too many wait.
    pub fn ask(&self, action: &Action, call: AskedCall, now: u64) -> Result<String> {
        let asked = Approval::new(id_of_action(action), action, call, now);
        let expires = Some(after(now, MAX_WAIT));
        for _ in 0..MAX_TRIES {
            if let Some((Approval { id, state, .. }, _)) = self.of(action, now)? {
                return match state {
                    // That nobody knows how it ended is kept.
                    ApprovalState::Pending | ApprovalState::Unknown { .. } => Ok(id),
                    _ => Err(CallApprovalError::Undecidable { id, why: "it is decided already" }),
                };
            }
            if self.put(&asked, None, expires, now)?.is_some() {
                self.log(ApprovalEvent::of(&asked, ApprovalStep::Asked), now)?;
                return Ok(asked.id);
            }
        }
        Err(CallApprovalError::Undecidable { id: asked.id, why: "it changes all the time" })
    }

    /// Begins a call that somebody has just approved, and who was asked at once. For a scope beyond this call, a standing
    /// approval is kept as well, for so long.
    ///
    /// # Errors
    ///
    /// Where the store fails. Then the call must not be made.
    pub fn begin_approved(
        self: &Arc<Self>,
        action: &Action,
        call: AskedCall,
        scope: ApprovalScope,
        holds: Option<Duration>,
        now: u64,
    ) -> Result<BegunCall> {
        let approval = Approval::new(random_id()?, action, call, now);
        self.log(ApprovalEvent::of(&approval, ApprovalStep::Approved), now)?;
        self.keep(&approval, scope, holds, now)?;
        let begun = self.begin(approval, None, now)?;
        begun.ok_or(CallApprovalError::NoRandomness)
    }

    /// All approvals whose time is not over, in the order in which they were asked for. Calls of processes that have died
    /// are unknown from here on.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn list(&self, now: u64) -> Result<Vec<Approval>> {
        self.remove_expired(now)?;
        let mut all = Vec::new();
        for Item { id, version, value, expires } in all_items(&*self.store, APPROVALS)? {
            let mut approval = Approval::read(&id, &value, expires)?;
            if matches!(approval.state, ApprovalState::Running { .. })
                && self.settle(approval.clone(), version, now)?
            {
                match self.store.item(APPROVALS, &id)? {
                    Some(item) => approval = Approval::read(&id, &item.value, item.expires)?,
                    None => continue,
                }
            }
            all.push(approval);
        }
        all.sort_by(|one, other| (one.asked, &one.id).cmp(&(other.asked, &other.id)));
        Ok(all)
    }

    /// The latest steps of approvals, at most so many, in their order; each with its time, in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// Where the store fails, or an entry cannot be read.
    pub fn latest_events(&self, most: usize) -> Result<Vec<(u64, ApprovalEvent)>> {
        let Some(summary) = self.store.log(LOG)? else { return Ok(Vec::new()) };
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let mut number = summary.first.max(summary.next.saturating_sub(most));
        let mut events = Vec::new();
        while number < summary.next {
            let entries = self.store.entries_from(LOG, number, MAX_BATCH_ENTRIES)?;
            let Some(last) = entries.last() else { break };
            number = last.number + 1;
            for entry in entries {
                let damaged = |_| CallApprovalError::Damaged(format!("{LOG} {}", entry.number));
                events.push((entry.at, serde_json::from_slice(&entry.value).map_err(damaged)?));
            }
        }
        Ok(events)
    }

    /// All standing approvals whose time is not over.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn standing(&self, now: u64) -> Result<Vec<StandingApproval>> {
        self.remove_expired(now)?;
        let items = all_items(&*self.store, STANDING)?.into_iter();
        items.map(|item| StandingApproval::read(&item.id, &item.value, item.expires)).collect()
    }

    /// Approves a call, which is made when it is tried again. It holds for so long; without a time, for
    /// [`DEFAULT_ONCE`], or [`DEFAULT_STANDING`] where it stands. Gives the standing approval, for a scope beyond one call.
    ///
    /// # Errors
    ///
    /// Where there is no such call, it runs or is approved already, the scope is none for it, or the store fails.
    pub fn approve(
        &self,
        id: &str,
        scope: ApprovalScope,
        holds: Option<Duration>,
        now: u64,
    ) -> Result<Option<StandingApproval>> {
        let (approval, version) = self.decidable(id, now)?;
        if approval.call.arguments.is_null() {
            let why = "its arguments are too long to be shown: nobody can tell what it would do";
            return Err(CallApprovalError::Undecidable { id: id.to_string(), why });
        }
        if let Some(standing) = self.keep(&approval, scope, holds, now)? {
            self.store.remove_item(APPROVALS, id, version)?;
            return Ok(Some(standing));
        }
        let state = ApprovalState::Approved { at: now };
        let expires = after(now, holds.unwrap_or(DEFAULT_ONCE));
        let approved = Approval { state, ..approval };
        self.decide(approved, version, expires, ApprovalStep::Approved, now)?;
        Ok(None)
    }

    /// Takes back all that was approved for a principal, and forgets what of theirs waits: nobody else who gets that name is
    /// to have it. Calls that run go on.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn end_principal(&self, principal: &str, now: u64) -> Result<()> {
        let is_theirs = |of: &Option<String>| of.as_deref() == Some(principal);
        for standing in self.standing(now)?.into_iter().filter(|of| is_theirs(&of.principal)) {
            self.take_back(&standing, now)?;
        }
        for approval in self.list(now)?.into_iter().filter(|of| is_theirs(&of.principal)) {
            if matches!(approval.state, ApprovalState::Running { .. }) {
                continue;
            }
            self.log(ApprovalEvent::of(&approval, ApprovalStep::TakenBack), now)?;
            self.remove(APPROVALS, &approval.id)?;
        }
        Ok(())
    }

    fn take_back(&self, standing: &StandingApproval, now: u64) -> Result<()> {
        self.remove(STANDING, &standing.key())?;
        self.log(ApprovalEvent::of_standing(standing, None, ApprovalStep::TakenBack), now)
    }

    /// Removes an item as it is now, if there is one.
    fn remove(&self, kind: &str, id: &str) -> Result<()> {
        if let Some(item) = self.store.item(kind, id)? {
            self.store.remove_item(kind, id, item.version)?;
        }
        Ok(())
    }

    /// Denies a call, or takes a standing approval back.
    ///
    /// # Errors
    ///
    /// Where there is neither, the call runs, or the store fails.
    pub fn deny(&self, id: &str, reason: Option<String>, now: u64) -> Result<()> {
        if let Some(standing) = self.standing(now)?.into_iter().find(|standing| standing.id == id) {
            return self.take_back(&standing, now);
        }
        let (approval, version) = self.decidable(id, now)?;
        let state = ApprovalState::Denied { at: now, reason };
        let expires = after(now, MAX_WAIT);
        self.decide(Approval { state, ..approval }, version, expires, ApprovalStep::Denied, now)?;
        Ok(())
    }

    fn decide(
        &self,
        decided: Approval,
        version: u64,
        expires: u64,
        step: ApprovalStep,
        now: u64,
    ) -> Result<Approval> {
        // What was decided is in the log before it can be used.
        self.log(ApprovalEvent::of(&decided, step), now)?;
        match self.put(&decided, Some(version), Some(expires), now)? {
            Some(_) => Ok(Approval { expires: Some(expires), ..decided }),
            None => {
                let why = "somebody else has decided at the same time";
                Err(CallApprovalError::Undecidable { id: decided.id, why })
            }
        }
    }

    /// A call of which something can be decided.
    fn decidable(&self, id: &str, now: u64) -> Result<(Approval, u64)> {
        let not_found = || CallApprovalError::NotFound(id.to_string());
        let (approval, version) = self.read(id, now)?.ok_or_else(not_found)?;
        if !matches!(approval.state, ApprovalState::Running { .. }) {
            return Ok((approval, version));
        }
        match self.settle(approval, version, now)? {
            true => self.read(id, now)?.ok_or_else(not_found),
            false => Err(CallApprovalError::Undecidable { id: id.to_string(), why: "it runs" }),
        }
    }

    /// What is decided of a call.
    fn of(&self, action: &Action, now: u64) -> Result<Option<(Approval, u64)>> {
        let known = self.read(&id_of_action(action), now)?;
        // An id is shorter than a digest.
        Ok(known.filter(|(approval, _)| approval.digest == action.digest()))
    }

    /// An approval whose time is not over, and its version.
    fn read(&self, id: &str, now: u64) -> Result<Option<(Approval, u64)>> {
        let Some(item) = self.store.item(APPROVALS, id)? else { return Ok(None) };
        if item.is_expired(now) {
            self.store.remove_item(APPROVALS, id, item.version)?;
            return Ok(None);
        }
        Ok(Some((Approval::read(id, &item.value, item.expires)?, item.version)))
    }

    /// Begins a call. `None` where somebody else was faster.
    fn begin(
        self: &Arc<Self>,
        approval: Approval,
        version: Option<u64>,
        now: u64,
    ) -> Result<Option<BegunCall>> {
        let lock = self.lock.name(&*self.store)?.ok_or(CallApprovalError::NoRandomness)?;
        let state = ApprovalState::Running { at: now, lock };
        let running = Approval { state, ..approval.clone() };
        // It does not expire: how it ends has to be known.
        let Some(version) = self.put(&running, version, None, now)? else { return Ok(None) };
        let begun =
            BegunCall { approvals: self.clone(), approval: running, version, is_over: false };
        if let Err(error) = self.log(ApprovalEvent::of(&approval, ApprovalStep::Begun), now) {
            begun.take_back(&approval, now);
            return Err(error);
        }
        Ok(Some(begun))
    }

    /// Has a call be unknown whose process has died. Says whether anything has changed.
    fn settle(&self, approval: Approval, version: u64, now: u64) -> Result<bool> {
        let ApprovalState::Running { at, lock } = &approval.state else { return Ok(false) };
        if self.store.is_locked(lock)? {
            return Ok(false);
        }
        let unknown = Approval { state: ApprovalState::Unknown { at: *at }, ..approval };
        self.log(ApprovalEvent::of(&unknown, ApprovalStep::Unknown), now)?;
        self.put(&unknown, Some(version), Some(after(now, MAX_WAIT)), now)?;
        Ok(true)
    }

    /// Keeps a standing approval, for a scope beyond one call.
    fn keep(
        &self,
        approval: &Approval,
        scope: ApprovalScope,
        holds: Option<Duration>,
        now: u64,
    ) -> Result<Option<StandingApproval>> {
        let of = |own: &Option<String>, what| {
            let id = approval.id.clone();
            own.clone().map(Some).ok_or(CallApprovalError::NoPlace { id, what })
        };
        let call = &approval.call;
        let (session, run, fixed, longest) = match scope {
            ApprovalScope::Once => return Ok(None),
            ApprovalScope::Session { fixed } => {
                (of(&call.session, "session")?, None, fixed, MAX_SESSION)
            }
            ApprovalScope::Run { fixed } => (None, of(&call.run, "run")?, fixed, MAX_RUN),
            ApprovalScope::Standing { fixed } => {
                (None, None, fixed, holds.unwrap_or(DEFAULT_STANDING))
            }
        };
        let digest = |name: &String| {
            let digest = approval.argument_digests.get(name).copied();
            let (id, name) = (approval.id.clone(), name.clone());
            let missing = CallApprovalError::NoArgument { id, name: name.clone() };
            digest.map(|digest| (name, digest)).ok_or(missing)
        };
        let arguments = match &fixed {
            None => approval.argument_digests.clone(),
            Some(names) => names.iter().map(digest).collect::<Result<_>>()?,
        };
        let mut shown = call.arguments.clone();
        if let (Some(members), Some(fixed)) = (shown.as_object_mut(), &fixed) {
            members.retain(|name, _| fixed.contains(name));
        }
        let expires = after(now, holds.unwrap_or(longest).min(longest));
        let standing = StandingApproval {
            id: random_id()?,
            tool: approval.tool.clone(),
            plugin: approval.plugin.clone(),
            principal: approval.principal.clone(),
            session,
            run,
            fixed,
            shown,
            given: now,
            tool_digest: approval.tool_digest,
            arguments,
            expires: Some(expires),
        };
        let step = ApprovalStep::Kept { standing: standing.id.clone() };
        self.log(ApprovalEvent::of(approval, step), now)?;
        self.make_room(STANDING, now, || {
            let (key, value) = (standing.key(), standing.write());
            self.store.put_item(STANDING, &key, None, &value, Some(expires), QUOTA)
        })?;
        Ok(Some(standing))
    }

    /// The standing approval that covers a call, if one does.
    fn covering(
        &self,
        action: &Action,
        place: CallPlace<'_>,
        now: u64,
    ) -> Result<Option<StandingApproval>> {
        let prefix = key_prefix(action.tool_digest());
        let mut cursor = Some(prefix.clone());
        while let Some(from) = cursor {
            let page = self.store.items(STANDING, Some(&from), PREFIX_PAGE_ITEMS)?;
            for item in page.items {
                if !item.id.starts_with(&prefix) {
                    return Ok(None);
                }
                let standing = StandingApproval::read(&item.id, &item.value, item.expires)?;
                if !item.is_expired(now) && standing.covers(action, place) {
                    return Ok(Some(standing));
                }
            }
            cursor = page.next;
        }
        Ok(None)
    }

    /// Sets an approval that has this version, or none. Gives the new version; `None` where it has another one.
    fn put(
        &self,
        approval: &Approval,
        version: Option<u64>,
        expires: Option<u64>,
        now: u64,
    ) -> Result<Option<u64>> {
        let value = approval.write();
        let outcome = self.make_room(APPROVALS, now, || {
            self.store.put_item(APPROVALS, &approval.id, version, &value, expires, QUOTA)
        })?;
        Ok(match outcome {
            ItemOutcome::Changed(version) => Some(version),
            ItemOutcome::Differs(_) => None,
        })
    }

    /// Does something for which there may be no room before what is over has gone.
    fn make_room<T>(
        &self,
        kind: &str,
        now: u64,
        act: impl Fn() -> std::result::Result<T, tenon_store::StoreError>,
    ) -> Result<T> {
        match act() {
            Err(tenon_store::StoreError::TooManyItems { .. }) => {
                self.store.remove_expired_items(kind, now)?;
                Ok(act()?)
            }
            done => Ok(done?),
        }
    }

    fn remove_expired(&self, now: u64) -> Result<()> {
        self.store.remove_expired_items(APPROVALS, now)?;
        self.store.remove_expired_items(STANDING, now)?;
        Ok(())
    }

    /// As if the process had died.
    #[cfg(test)]
    pub(crate) fn lose_lock(&self) {
        self.lock.release();
    }

    fn log(&self, event: ApprovalEvent, now: u64) -> Result<()> {
        ApprovalEvent::append(&*self.store, &[event], now)
    }
}

/// A call that was approved and has begun. One that is dropped without an end is unknown. Dropping it blocks.
pub struct BegunCall {
    approvals: Arc<CallApprovals>,
    approval: Approval,
    version: u64,
    is_over: bool,
}

impl std::fmt::Debug for BegunCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BegunCall").field(&self.approval.id).finish()
    }
}

impl BegunCall {
    /// The approval.
    pub fn id(&self) -> &str {
        &self.approval.id
    }

    /// The call has ended so: `ok`, `tool-error` or the code of an error.
    ///
    /// # Errors
    ///
    /// Where the store fails. Then it is unknown how the call ended, as soon as this process ends.
    pub fn end(mut self, outcome: &str, now: u64) -> Result<()> {
        self.is_over = true;
        let step = ApprovalStep::Ended { outcome: outcome.to_string() };
        self.approvals.log(ApprovalEvent::of(&self.approval, step), now)?;
        // Somebody may have taken this process for dead.
        self.approvals.store.remove_item(APPROVALS, &self.approval.id, self.version)?;
        Ok(())
    }

    /// It does not begin after all.
    fn take_back(mut self, approved: &Approval, now: u64) {
        self.is_over = true;
        let expires = approved.expires.or(Some(after(now, DEFAULT_ONCE)));
        // Nothing was done. Where this fails too, it is unknown.
        let _ = self.approvals.put(approved, Some(self.version), expires, now);
    }
}

impl Drop for BegunCall {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let ApprovalState::Running { at, .. } = self.approval.state else { return };
        let approval = Approval { state: ApprovalState::Unknown { at }, ..self.approval.clone() };
        // Without a store it stays as it is, and is unknown when this process ends.
        let _ = self.approvals.log(ApprovalEvent::of(&approval, ApprovalStep::Unknown), at);
        let expires = Some(after(at, MAX_WAIT));
        let _ = self.approvals.put(&approval, Some(self.version), expires, at);
    }
}

fn after(now: u64, time: Duration) -> u64 {
    now.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The id by which a call is decided: the same for the same call.
fn id_of_action(action: &Action) -> String {
    IDS.of(&ActionDigest::of(&[b"approval", &action.digest().0]).0)
}

fn random_id() -> Result<String> {
    IDS.random().ok_or(CallApprovalError::NoRandomness)
}
