//! The approvals of a store: what was decided of a call, and each step of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenon_store::{
    Change, Durability, Item, ItemOutcome, ItemQuota, MAX_BATCH_ENTRIES, ProcessLock, Store,
    StoreError, all_items,
};

use crate::action::{Action, ActionDigest};
use crate::approval::{Approval, ApprovalState, AskedCall, IDS, MAX_ARGUMENT_DIGESTS};
use crate::event::{ApprovalEvent, ApprovalStep, LOG, MAX_LOG_BYTES};
use crate::standing::{ApprovalScope, DEFAULT_STANDING, StandingApproval, key_prefix};
use crate::{CallApprovalError, Result};

/// The kind of items that say what is decided of calls, by the ids of their actions.
const APPROVALS: &str = "call-approvals";

/// The kind of items that calls are which were approved and have begun.
const BEGUN: &str = "begun-calls";

/// The kind of items that standing approvals are.
const STANDING: &str = "standing-call-approvals";

/// How many of each kind there may be, and how many bytes they may take.
const QUOTA: ItemQuota = ItemQuota { items: 2_000, bytes: 32 << 20 };

/// How many calls of one principal may wait at a time, and how many bytes they may take: nobody keeps others from being asked.
const QUOTA_OF_ONE: ItemQuota = ItemQuota { items: 200, bytes: 8 << 20 };

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
    quota: ItemQuota,
    quota_of_one: ItemQuota,
    /// The lock that says that this process lives, from the first call on that begins.
    lock: ProcessLock,
    /// Calls of this process that are over, which the store could not be told.
    untold: Mutex<Vec<EndedCall>>,
}

/// A call that is over.
struct EndedCall {
    key: String,
    approval: Approval,
    /// How it ended, if that is known.
    outcome: Option<String>,
}

/// What is decided of a call.
#[derive(Debug)]
pub enum Found {
    /// It was approved, or a standing approval covers it, and has begun.
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
        let (lock, untold) = (ProcessLock::new("process/"), Mutex::default());
        Self { store, quota: QUOTA, quota_of_one: QUOTA_OF_ONE, lock, untold }
    }

    /// Looks up what is decided of a call, and begins one that was approved. What was approved once nobody else makes then.
    /// Of a call that began before and of which nobody knows how it ended nothing is decided, whatever stands.
    ///
    /// # Errors
    ///
    /// Where the store fails. Then the call must not be made.
    pub fn take(self: &Arc<Self>, action: &Action, call: &AskedCall, now: u64) -> Result<Found> {
        self.tell(now);
        for _ in 0..MAX_TRIES {
            let running = self.running(action.digest(), now)?;
            let known = self.of(action, now)?;
            if let Some((Approval { state: ApprovalState::Unknown { at }, .. }, _)) = &known {
                return Ok(Found::Undecided { unknown_since: Some(*at) });
            }
            if let Some(standing) = self.covering(action, call, now)? {
                let step = ApprovalStep::Covered;
                let covered = ApprovalEvent::of_standing(&standing, Some(action.digest()), step);
                let approval = Approval::new(standing.id, action, call.clone(), now);
                if let Some(begun) = self.begin(approval, None, vec![covered], now)? {
                    return Ok(Found::Begun(begun.into()));
                }
                continue;
            }
            let Some((approval, version)) = known else {
                return Ok(match running {
                    Some(id) => Found::Running { id },
                    None => Found::Undecided { unknown_since: None },
                });
            };
            let id = approval.id.clone();
            match &approval.state {
                ApprovalState::Pending => return Ok(Found::Undecided { unknown_since: None }),
                ApprovalState::Unknown { at } | ApprovalState::Running { at, .. } => {
                    return Ok(Found::Undecided { unknown_since: Some(*at) });
                }
                ApprovalState::Denied { reason, .. } => {
                    return Ok(Found::Denied { id, reason: reason.clone() });
                }
                ApprovalState::Approved { .. } => {
                    if let Some(begun) = self.begin(approval, Some(version), Vec::new(), now)? {
                        return Ok(Found::Begun(begun.into()));
                    }
                }
            }
        }
        Err(CallApprovalError::Undecidable {
            id: id_of(action.digest()),
            why: "it changes all the time",
        })
    }

    /// Notes that a call waits for somebody to decide, and gives the id by which it is decided. One that waits already
    /// keeps its id.
    ///
    /// # Errors
    ///
    /// Where the store fails, too many wait, or nobody could see what the call would do.
    pub fn ask(&self, action: &Action, call: AskedCall, now: u64) -> Result<String> {
        let asked = Approval::new(id_of(action.digest()), action, call, now);
        if !asked.is_shown_whole() {
            return Err(CallApprovalError::TooLong);
        }
        let expires = Some(after(now, MAX_WAIT));
        for _ in 0..MAX_TRIES {
            if let Some((Approval { id, state, .. }, _)) = self.of(action, now)? {
                return match state {
                    // That nobody knows how it ended is kept.
                    ApprovalState::Pending | ApprovalState::Unknown { .. } => Ok(id),
                    _ => Err(CallApprovalError::Undecidable { id, why: "it is decided already" }),
                };
            }
            self.check_room_of_one(&asked, now)?;
            if self.put(&asked, None, expires, now)?.is_some() {
                self.log(ApprovalEvent::of(&asked, ApprovalStep::Asked), now)?;
                return Ok(asked.id);
            }
        }
        Err(CallApprovalError::Undecidable { id: asked.id, why: "it changes all the time" })
    }

    /// Checks that not too many calls of this principal wait.
    fn check_room_of_one(&self, asked: &Approval, now: u64) -> Result<()> {
        let (mut items, mut bytes) = (1, asked.write().len() as u64);
        for item in all_items(&*self.store, APPROVALS)? {
            // What is damaged is nobody's.
            let known = Approval::read(&item.id, &item.value, item.expires).ok();
            let is_theirs = |known: &Approval| {
                known.principal == asked.principal && known.state == ApprovalState::Pending
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

    /// Begins a call that somebody has just approved, and who was asked at once. For a scope beyond this call, a standing
    /// approval is kept as well, for so long. Where the same call waits, or nobody knows how it ended before, that is decided
    /// by this as well.
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
        self.keep(&approval, scope, holds, now)?;
        for _ in 0..MAX_TRIES {
            let waiting = self.of(action, now)?.filter(|(known, _)| {
                matches!(known.state, ApprovalState::Pending | ApprovalState::Unknown { .. })
            });
            let waiting = waiting.map(|(_, version)| version);
            let approved = vec![ApprovalEvent::of(&approval, ApprovalStep::Approved)];
            if let Some(begun) = self.begin(approval.clone(), waiting, approved, now)? {
                return Ok(begun);
            }
        }
        Err(CallApprovalError::Undecidable { id: approval.id, why: "it changes all the time" })
    }

    /// Notes that somebody who was asked at once has denied a call. Another one like it is asked about again.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn note_denied(&self, action: &Action, call: AskedCall, now: u64) -> Result<()> {
        let denied = Approval::new(random_id()?, action, call, now);
        self.log(ApprovalEvent::of(&denied, ApprovalStep::Denied), now)
    }

    /// All approvals whose time is not over, in the order in which they were asked for. Calls of processes that have died
    /// are unknown from here on.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn list(&self, now: u64) -> Result<Vec<Approval>> {
        self.tell(now);
        self.remove_expired(now)?;
        let running = self.settle(None, now)?;
        let known = all_items(&*self.store, APPROVALS)?.into_iter();
        let known = known.map(|item| Approval::read(&item.id, &item.value, item.expires));
        let mut all = known.chain(running.into_iter().map(Ok)).collect::<Result<Vec<_>>>()?;
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
        let running = self.settle(Some(&begun_prefix(id)), now)?;
        let known = self.read(id, now)?;
        known.ok_or_else(|| match running.is_empty() {
            true => CallApprovalError::NotFound(id.to_string()),
            false => CallApprovalError::Undecidable { id: id.to_string(), why: "it runs" },
        })
    }

    /// What is decided of a call.
    fn of(&self, action: &Action, now: u64) -> Result<Option<(Approval, u64)>> {
        let known = self.read(&id_of(action.digest()), now)?;
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

    /// Begins a call. What was decided of it, of this version, is used up by that. `None` where somebody else was faster.
    fn begin(
        self: &Arc<Self>,
        approval: Approval,
        decided: Option<u64>,
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
        let changes: Vec<_> = decided.into_iter().chain([begun]).collect();
        let has_begun = match self.change(&changes, &events, now) {
            Err(error) if error.is_full() => {
                self.settle(None, now)?;
                self.change(&changes, &events, now)?
            }
            changed => changed?,
        };
        let call = EndedCall { key, approval: running, outcome: None };
        Ok(has_begun.then(|| BegunCall { approvals: self.clone(), call: Some(call) }))
    }

    /// Makes changes, with their steps in the log, at once.
    fn change(&self, changes: &[Change<'_>], events: &[ApprovalEvent], now: u64) -> Result<bool> {
        let values = ApprovalEvent::write(events);
        let entries = ApprovalEvent::entries(&values, now);
        let steps = Change::Append { log: LOG, entries: &entries, max_bytes: MAX_LOG_BYTES };
        let all: Vec<_> = changes.iter().copied().chain([steps]).collect();
        Ok(self.store.change(&all, Durability::Disk)?)
    }

    /// Tells the store what it could not be told before.
    fn tell(&self, now: u64) {
        let untold = std::mem::take(&mut *self.untold());
        for call in untold {
            // What fails again waits again.
            let _ = self.end(call, now);
        }
    }

    fn untold(&self) -> std::sync::MutexGuard<'_, Vec<EndedCall>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a call is over. Where the store fails, it is told later.
    fn end(&self, call: EndedCall, now: u64) -> Result<()> {
        let ended = self.try_end(&call, now);
        if ended.is_err() {
            self.untold().push(call);
        }
        ended
    }

    fn try_end(&self, call: &EndedCall, now: u64) -> Result<()> {
        let EndedCall { key, approval, outcome } = call;
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

    /// Has a call that has begun be unknown: nothing is decided of another one, but for a denial.
    fn lose(&self, begun: &Item, approval: &Approval, now: u64) -> Result<()> {
        let ApprovalState::Running { at, .. } = approval.state else { return Ok(()) };
        let id = id_of(approval.digest);
        let events = [ApprovalEvent::of(approval, ApprovalStep::Unknown)];
        let unknown =
            Approval { id: id.clone(), state: ApprovalState::Unknown { at }, ..approval.clone() };
        let (value, expires) = (unknown.write(), Some(after(now, MAX_WAIT)));
        for _ in 0..MAX_TRIES {
            let known = self.read(&id, now)?;
            let stays = known.as_ref().is_some_and(|(known, _)| {
                known.digest != approval.digest
                    || matches!(known.state, ApprovalState::Denied { .. })
            });
            let version = known.map(|(_, version)| version);
            let (kind, value, quota) = (APPROVALS, &*value, self.quota);
            let put = Change::PutItem { kind, id: &id, version, value, expires, quota };
            let gone = Change::RemoveItem { kind: BEGUN, id: &begun.id, version: begun.version };
            let changes = if stays { vec![gone] } else { vec![gone, put] };
            let is_done = self.make_room(APPROVALS, now, || self.change(&changes, &events, now))?;
            if is_done || self.store.item(BEGUN, &begun.id)?.is_none() {
                return Ok(());
            }
        }
        Err(CallApprovalError::Undecidable { id, why: "it changes all the time" })
    }

    /// Has calls be unknown whose processes have died: all of them, or those whose keys begin so. Gives those that run.
    fn settle(&self, prefix: Option<&str>, now: u64) -> Result<Vec<Approval>> {
        let mut running = Vec::new();
        let mut cursor = Some(prefix.map(str::to_string));
        while let Some(from) = cursor {
            let page = self.store.items(BEGUN, from.as_deref(), PREFIX_PAGE_ITEMS)?;
            for item in page.items {
                if prefix.is_some_and(|prefix| !item.id.starts_with(prefix)) {
                    return Ok(running);
                }
                let approval = Approval::read(&item.id, &item.value, item.expires)?;
                match &approval.state {
                    ApprovalState::Running { lock, .. } if self.store.is_locked(lock)? => {
                        running.push(approval);
                    }
                    _ => self.lose(&item, &approval, now)?,
                }
            }
            cursor = page.next.map(Some);
        }
        Ok(running)
    }

    /// Under which id a call runs that was approved by it.
    fn running(&self, digest: ActionDigest, now: u64) -> Result<Option<String>> {
        let id = id_of(digest);
        let mut running = self.settle(Some(&begun_prefix(&id)), now)?;
        running.retain(|approval| approval.id == id);
        Ok(running.pop().map(|approval| approval.id))
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
            None if approval.argument_digests.len() > MAX_ARGUMENT_DIGESTS => {
                return Err(CallApprovalError::TooManyArguments(approval.id.clone()));
            }
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
            Ok(self.store.put_item(STANDING, &key, None, &value, Some(expires), self.quota)?)
        })?;
        Ok(Some(standing))
    }

    /// The standing approval that covers a call, if one does.
    fn covering(
        &self,
        action: &Action,
        call: &AskedCall,
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
                if !item.is_expired(now) && standing.covers(action, call) {
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
            Ok(self.store.put_item(
                APPROVALS,
                &approval.id,
                version,
                &value,
                expires,
                self.quota,
            )?)
        })?;
        Ok(match outcome {
            ItemOutcome::Changed(version) => Some(version),
            ItemOutcome::Differs(_) => None,
        })
    }

    /// Does something for which there may be no room before what is over has gone, and then the older half of the denials.
    fn make_room<T>(&self, kind: &str, now: u64, act: impl Fn() -> Result<T>) -> Result<T> {
        match act() {
            Err(error) if error.is_full() => self.store.remove_expired_items(kind, now)?,
            done => return done,
        };
        match act() {
            Err(error) if error.is_full() && kind == APPROVALS => {
                let mut denied = Vec::new();
                for Item { id, version, value, expires } in all_items(&*self.store, kind)? {
                    let known = Approval::read(&id, &value, expires);
                    if let Ok(ApprovalState::Denied { at, .. }) = known.map(|known| known.state) {
                        denied.push((at, id, version));
                    }
                }
                denied.sort();
                for (_, id, version) in &denied[..denied.len().div_ceil(2)] {
                    self.store.remove_item(kind, id, *version)?;
                }
                act()
            }
            done => done,
        }
    }

    fn remove_expired(&self, now: u64) -> Result<()> {
        self.store.remove_expired_items(APPROVALS, now)?;
        self.store.remove_expired_items(STANDING, now)?;
        Ok(())
    }

    /// With room for so many, and for so many of one principal.
    #[cfg(test)]
    pub(crate) fn with_room(store: Arc<dyn Store>, items: u64, of_one: u64) -> Self {
        let quota = |items| ItemQuota { items, ..QUOTA };
        Self { quota: quota(items), quota_of_one: quota(of_one), ..Self::new(store) }
    }

    /// As if the process had died.
    #[cfg(test)]
    pub(crate) fn lose_lock(&self) {
        self.lock.release();
    }

    /// Adds an entry to the log. It is kept when this returns, also when the machine loses power.
    fn log(&self, event: ApprovalEvent, now: u64) -> Result<()> {
        self.change(&[], &[event], now).map(drop)
    }
}

/// A call that was approved and has begun. One that is dropped without an end is unknown. Dropping it blocks.
pub struct BegunCall {
    approvals: Arc<CallApprovals>,
    /// Nothing, once it is over.
    call: Option<EndedCall>,
}

impl std::fmt::Debug for BegunCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
        self.approvals.end(EndedCall { outcome: Some(outcome.to_string()), ..call }, now)
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

fn after(now: u64, time: Duration) -> u64 {
    now.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The id by which a call is decided: the same for the same action.
fn id_of(action: ActionDigest) -> String {
    IDS.of(&ActionDigest::of(&[b"approval", &action.0]).0)
}

/// What the keys of calls begin with that have begun, of the action of this id.
fn begun_prefix(id: &str) -> String {
    format!("{id}/")
}

fn random_id() -> Result<String> {
    IDS.random().ok_or(CallApprovalError::NoRandomness)
}
