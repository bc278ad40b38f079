//! The approvals of a store: what was decided of a call, and each step of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenon_store::{
    Change, Durability, Item, ItemQuota, LivenessLock, MAX_BATCH_ENTRIES, Store, StoreError,
    all_items,
};

use crate::action::{Action, ActionDigest};
use crate::approval::{
    Approval, ApprovalState, AskedCall, IDS, MAX_ARGUMENT_DIGESTS, MAX_WAIT, id_of,
};
use crate::decisions::LoggedDecisions;
use crate::event::{ApprovalEvent, ApprovalStep, Decider, LOG, MAX_LOG_BYTES};
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
    lock: LivenessLock,
    /// Who decides by this value.
    decided_by: Option<Decider>,
    /// Calls of this process that are over, which the store could not be told.
    untold: Mutex<Vec<ApprovedCall>>,
}

/// A call that is over.
struct ApprovedCall {
    key: String,
    approval: Approval,
    /// How it ended, if that is known.
    outcome: Option<String>,
}

/// Which calls an approval is of.
struct CallsOf<'a> {
    plugin: &'a str,
    principal: Option<&'a str>,
    /// Nobody knows how the call ended.
    is_unknown: bool,
}

/// What became of a call that somebody has to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// It waits, under this id.
    Waits(String),
    /// Somebody has decided meanwhile.
    Decided,
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
        let (lock, untold) = (LivenessLock::new("process/"), Mutex::default());
        let decided_by = None;
        Self { store, quota: QUOTA, quota_of_one: QUOTA_OF_ONE, lock, decided_by, untold }
    }

    /// The same, by which this user decides.
    #[must_use]
    pub fn decided_by(self, user: impl Into<String>) -> Self {
        Self { decided_by: Some(Decider::User(user.into())), ..self }
    }

    /// Looks up what is decided of a call, and begins one that was approved. What was approved once nobody else makes then.
    /// What was decided of exactly this call goes before what stands. Of a call that began before and of which nobody knows
    /// how it ended nothing is decided, whatever stands.
    ///
    /// # Errors
    ///
    /// Where the store fails. Then the call must not be made.
    pub fn take(self: &Arc<Self>, action: &Action, call: &AskedCall, now: u64) -> Result<Found> {
        self.tell(now);
        for _ in 0..MAX_TRIES {
            let running = self.running(action.digest(), now)?;
            if let Some((approval, version)) = self.of(action, now)? {
                let id = approval.id.clone();
                match &approval.state {
                    ApprovalState::Pending => {}
                    ApprovalState::Unknown { at } | ApprovalState::Running { at, .. } => {
                        return Ok(Found::Undecided { unknown_since: Some(*at) });
                    }
                    ApprovalState::Denied { reason, .. } => {
                        return Ok(Found::Denied { id, reason: reason.clone() });
                    }
                    ApprovalState::Approved { .. } => {
                        match self.begin(approval, Some(version), None, Vec::new(), now)? {
                            Some(begun) => return Ok(Found::Begun(begun.into())),
                            None => continue,
                        }
                    }
                }
            }
            if let Some(standing) = self.covering(action, call, now)? {
                let step = ApprovalStep::Covered;
                let covered = ApprovalEvent::of_standing(&standing, Some(action.digest()), step);
                let approval = Approval::new(standing.id, action, call.clone(), now);
                if let Some(begun) = self.begin(approval, None, None, vec![covered], now)? {
                    return Ok(Found::Begun(begun.into()));
                }
                continue;
            }
            return Ok(match running {
                Some(id) => Found::Running { id },
                None => Found::Undecided { unknown_since: None },
            });
        }
        Err(CallApprovalError::Undecidable {
            id: id_of(action.digest()),
            why: "it changes all the time",
        })
    }

    /// Notes that a call waits for somebody to decide. One that waits already keeps its id.
    ///
    /// # Errors
    ///
    /// Where the store fails, too many wait, or nobody could see what the call would do.
    pub fn ask(&self, action: &Action, call: AskedCall, now: u64) -> Result<Asked> {
        let asked = Approval::new(id_of(action.digest()), action, call, now);
        if !asked.is_shown_whole() {
            return Err(CallApprovalError::TooLong);
        }
        let expires = Some(after(now, MAX_WAIT));
        for _ in 0..MAX_TRIES {
            if let Some((known, version)) = self.of(action, now)? {
                return match known.state {
                    ApprovalState::Pending => Ok(Asked::Waits(known.id)),
                    // That nobody knows how it ended is kept.
                    ApprovalState::Unknown { .. } if known.is_shown_whole() => {
                        Ok(Asked::Waits(known.id))
                    }
                    ApprovalState::Unknown { .. } => {
                        let shown = Approval { call: asked.call.clone(), ..known };
                        self.check_room_of_one(&shown, now)?;
                        match self.put(&shown, Some(version), None, &[], now)? {
                            true => Ok(Asked::Waits(shown.id)),
                            false => continue,
                        }
                    }
                    _ => Ok(Asked::Decided),
                };
            }
            self.check_room_of_one(&asked, now)?;
            let event = ApprovalEvent::of(&asked, asked.asked());
            if self.put(&asked, None, expires, &[event], now)? {
                return Ok(Asked::Waits(asked.id));
            }
        }
        Err(CallApprovalError::Undecidable { id: asked.id, why: "it changes all the time" })
    }

    /// Checks that not too many calls of this principal wait.
    fn check_room_of_one(&self, asked: &Approval, now: u64) -> Result<()> {
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

    /// Begins a call that somebody, `decided_by`, has just approved, who was asked at once. For a scope beyond this call, a
    /// standing approval is kept as well, for so long. Where the same call waits, was approved meanwhile, or nobody knows how
    /// it ended before, that is used up by this. One that was denied meanwhile does not begin.
    ///
    /// # Errors
    ///
    /// Where the store fails. Then the call must not be made.
    pub fn begin_approved(
        self: &Arc<Self>,
        action: &Action,
        call: AskedCall,
        (scope, holds): (ApprovalScope, Option<Duration>),
        decided_by: Decider,
        now: u64,
    ) -> Result<Found> {
        let approval = Approval::new(random_id()?, action, call, now);
        let standing = self.standing_of(&approval, scope, holds, now)?;
        for _ in 0..MAX_TRIES {
            let version = match self.of(action, now)? {
                Some((Approval { id, state: ApprovalState::Denied { reason, .. }, .. }, _)) => {
                    return Ok(Found::Denied { id, reason });
                }
                known => known.map(|(_, version)| version),
            };
            let step = match &standing {
                Some(standing) => standing.kept(),
                None => ApprovalStep::Approved,
            };
            let approved = ApprovalEvent::of(&approval, step).decided_by(Some(decided_by.clone()));
            let events = vec![approved];
            let begun = self.begin(approval.clone(), version, standing.as_ref(), events, now)?;
            if let Some(begun) = begun {
                return Ok(Found::Begun(begun.into()));
            }
        }
        Err(CallApprovalError::Undecidable { id: approval.id, why: "it changes all the time" })
    }

    /// Notes that somebody, `decided_by`, who was asked at once has denied a call. It waits no more; another one like it is asked about again.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn note_denied(
        &self,
        action: &Action,
        call: AskedCall,
        reason: Option<String>,
        decided_by: Decider,
        now: u64,
    ) -> Result<()> {
        let denied = Approval::new(random_id()?, action, call, now);
        let denied = ApprovalEvent::of(&denied, ApprovalStep::Denied { reason });
        let events = [denied.decided_by(Some(decided_by))];
        if let Some((Approval { id, state: ApprovalState::Pending, .. }, version)) =
            self.of(action, now)?
        {
            let gone = Change::RemoveItem { kind: APPROVALS, id: &id, version };
            if self.change(&[gone], &events, now)? {
                return Ok(());
            }
        }
        self.change(&[], &events, now).map(drop)
    }

    /// All approvals that can be read and whose time is not over, in the order in which they were asked for. Calls of
    /// processes that have died are unknown from here on.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn list(&self, now: u64) -> Result<Vec<Approval>> {
        self.tell(now);
        self.remove_expired(now)?;
        let running = self.settle(None, now)?;
        let known = all_items(&*self.store, APPROVALS)?.into_iter();
        // What is damaged keeps nobody from the others.
        let known =
            known.filter_map(|item| Approval::read(&item.id, &item.value, item.expires, now).ok());
        let mut all: Vec<_> = known.chain(running).collect();
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

    /// All standing approvals that can be read and whose time is not over.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn standing(&self, now: u64) -> Result<Vec<StandingApproval>> {
        self.remove_expired(now)?;
        let items = all_items(&*self.store, STANDING)?.into_iter();
        let read = |item: Item| StandingApproval::read(&item.id, &item.value, item.expires).ok();
        Ok(items.filter_map(read).collect())
    }

    /// What approvals cannot be read are called. They approve nothing; [`deny`](Self::deny) forgets them.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn damaged(&self) -> Result<Vec<String>> {
        let damaged = self.damaged_items()?.into_iter();
        Ok(damaged.map(|(kind, item)| approval_id(kind, &item.id).to_string()).collect())
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

    /// Approves a call, which is made when it is tried again. It holds for so long; without a time, for
    /// [`DEFAULT_ONCE`], or [`DEFAULT_STANDING`] where it stands. Gives the standing approval, for a scope beyond one call.
    ///
    /// # Errors
    ///
    /// Where there is no such call, it runs, its arguments are too long to be shown, the scope is none for it, or the store
    /// fails.
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
        if let Some(standing) = self.standing_of(&approval, scope, holds, now)? {
            let kept = ApprovalEvent::of(&approval, standing.kept());
            let kept = kept.decided_by(self.decided_by.clone());
            let (key, value) = (standing.key(), standing.write());
            let changes = [
                self.put_standing(&key, &value, &standing),
                Change::RemoveItem { kind: APPROVALS, id, version },
            ];
            let is_kept = self.make_room(STANDING, now, || {
                self.change(&changes, std::slice::from_ref(&kept), now)
            })?;
            return if is_kept { Ok(Some(standing)) } else { Err(decided_meanwhile(id)) };
        }
        let state = ApprovalState::Approved { at: now };
        let expires = Some(after(now, holds.unwrap_or(DEFAULT_ONCE)));
        let approved = Approval { state, ..approval };
        self.decide(&approved, version, expires, ApprovalStep::Approved, now)?;
        Ok(None)
    }

    /// Takes back all that was approved for a principal, and forgets what of theirs waits: nobody else who gets that name is
    /// to have it. Calls that run go on.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn end_principal(&self, principal: &str, now: u64) -> Result<()> {
        self.take_all_back(|of| of.principal == Some(principal), now).map(drop)
    }

    /// Takes back all that was approved of calls of a plugin, and forgets what of them waits. Calls that run go on, and of
    /// those of which nobody knows how they ended, that is kept. Says how much it was.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn end_plugin(&self, plugin: &str, now: u64) -> Result<usize> {
        self.take_all_back(|of| of.plugin == plugin && !of.is_unknown, now)
    }

    /// Takes back what is of such calls, but of those that run. Says how much it was.
    fn take_all_back(&self, is_meant: impl Fn(&CallsOf<'_>) -> bool, now: u64) -> Result<usize> {
        let mut taken = 0;
        for standing in self.standing(now)? {
            let (plugin, principal) = (&*standing.plugin, standing.principal.as_deref());
            if is_meant(&CallsOf { plugin, principal, is_unknown: false }) {
                self.take_back(&standing, now)?;
                taken += 1;
            }
        }
        for approval in self.list(now)? {
            let (plugin, principal) = (&*approval.plugin, approval.principal.as_deref());
            let is_unknown = match approval.state {
                ApprovalState::Running { .. } => continue,
                ApprovalState::Denied { unknown_since, .. } => unknown_since.is_some(),
                ApprovalState::Unknown { .. } => true,
                _ => false,
            };
            if !is_meant(&CallsOf { plugin, principal, is_unknown }) {
                continue;
            }
            let taken_back = ApprovalEvent::of(&approval, ApprovalStep::TakenBack);
            let taken_back = taken_back.decided_by(self.decided_by.clone());
            self.remove(APPROVALS, &approval.id, taken_back, now)?;
            taken += 1;
        }
        Ok(taken)
    }

    fn take_back(&self, standing: &StandingApproval, now: u64) -> Result<()> {
        let taken_back = ApprovalEvent::of_standing(standing, None, ApprovalStep::TakenBack);
        let taken_back = taken_back.decided_by(self.decided_by.clone());
        self.remove(STANDING, &standing.key(), taken_back, now)
    }

    /// Removes an item as it is now, with this step in the log, if there is one.
    fn remove(&self, kind: &str, id: &str, event: ApprovalEvent, now: u64) -> Result<()> {
        let events = [event];
        for _ in 0..MAX_TRIES {
            let Some(Item { version, .. }) = self.store.item(kind, id)? else { return Ok(()) };
            if self.change(&[Change::RemoveItem { kind, id, version }], &events, now)? {
                return Ok(());
            }
        }
        let [ApprovalEvent { id, .. }] = events;
        Err(CallApprovalError::Undecidable { id, why: "it changes all the time" })
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
        let (approval, version) = match self.decidable(id, now) {
            Err(error @ (CallApprovalError::NotFound(_) | CallApprovalError::Damaged(_))) => {
                return if self.forget_damaged(id, now)? { Ok(()) } else { Err(error) };
            }
            known => known?,
        };
        let step = ApprovalStep::Denied { reason: reason.clone() };
        let unknown_since = match approval.state {
            ApprovalState::Unknown { at } => Some(at),
            ApprovalState::Denied { unknown_since, .. } => unknown_since,
            _ => None,
        };
        let expires = unknown_since.is_none().then(|| after(now, MAX_WAIT));
        let state = ApprovalState::Denied { at: now, reason, unknown_since };
        self.decide(&Approval { state, ..approval }, version, expires, step, now)
    }

    /// Forgets what is damaged of the approval of this id. Says whether there was something.
    fn forget_damaged(&self, id: &str, now: u64) -> Result<bool> {
        let mut damaged = self.damaged_items()?;
        damaged.retain(|(kind, item)| approval_id(kind, &item.id) == id);
        let gone: Vec<_> = damaged
            .iter()
            .map(|(kind, item)| Change::RemoveItem { kind, id: &item.id, version: item.version })
            .collect();
        let taken_back = ApprovalEvent::of_damaged(id).decided_by(self.decided_by.clone());
        Ok(!gone.is_empty() && self.change(&gone, &[taken_back], now)?)
    }

    fn decide(
        &self,
        decided: &Approval,
        version: u64,
        expires: Option<u64>,
        step: ApprovalStep,
        now: u64,
    ) -> Result<()> {
        let event = ApprovalEvent::of(decided, step).decided_by(self.decided_by.clone());
        match self.put(decided, Some(version), expires, &[event], now)? {
            true => Ok(()),
            false => Err(decided_meanwhile(&decided.id)),
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
        Ok(Some((Approval::read(id, &item.value, item.expires, now)?, item.version)))
    }

    /// Begins a call, and keeps a standing approval. What was decided of the call, of this version, is used up by that. `None`
    /// where somebody else was faster.
    fn begin(
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
        let call = ApprovedCall { key, approval: running, outcome: None };
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

    fn untold(&self) -> std::sync::MutexGuard<'_, Vec<ApprovedCall>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a call is over. Where the store fails, it is told later.
    fn end(&self, call: ApprovedCall, now: u64) -> Result<()> {
        let ended = self.try_end(&call, now);
        if ended.is_err() {
            self.untold().push(call);
        }
        ended
    }

    fn try_end(&self, call: &ApprovedCall, now: u64) -> Result<()> {
        let ApprovedCall { key, approval, outcome } = call;
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
    fn settle(&self, prefix: Option<&str>, now: u64) -> Result<Vec<Approval>> {
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
    fn running(&self, digest: ActionDigest, now: u64) -> Result<Option<String>> {
        let id = id_of(digest);
        let mut running = self.settle(Some(&begun_prefix(&id)), now)?;
        running.retain(|approval| approval.id == id);
        Ok(running.pop().map(|approval| approval.id))
    }

    /// Makes a standing approval of one call, for a scope beyond that.
    fn standing_of(
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
        Ok(Some(StandingApproval {
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
        }))
    }

    /// The change that keeps a standing approval.
    fn put_standing<'a>(
        &self,
        key: &'a str,
        value: &'a [u8],
        standing: &StandingApproval,
    ) -> Change<'a> {
        let (kind, version, expires) = (STANDING, None, standing.expires);
        Change::PutItem { kind, id: key, version, value, expires, quota: self.quota }
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
                // What is damaged approves nothing.
                let standing = StandingApproval::read(&item.id, &item.value, item.expires).ok();
                let standing = standing.filter(|standing| standing.covers(action, call));
                if !item.is_expired(now) && standing.is_some() {
                    return Ok(standing);
                }
            }
            cursor = page.next;
        }
        Ok(None)
    }

    /// Sets an approval that has this version, or none, with steps in the log. Says whether it was so.
    fn put(
        &self,
        approval: &Approval,
        version: Option<u64>,
        expires: Option<u64>,
        events: &[ApprovalEvent],
        now: u64,
    ) -> Result<bool> {
        let (value, id) = (approval.write(), &*approval.id);
        let (kind, value, quota) = (APPROVALS, &*value, self.quota);
        let put = Change::PutItem { kind, id, version, value, expires, quota };
        self.make_room(APPROVALS, now, || self.change(&[put], events, now))
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
}

/// A call that was approved and has begun. One that is dropped without an end is unknown. Dropping it blocks.
pub struct BegunCall {
    approvals: Arc<CallApprovals>,
    /// Nothing, once it is over.
    call: Option<ApprovedCall>,
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
        self.approvals.end(ApprovedCall { outcome: Some(outcome.to_string()), ..call }, now)
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

fn after(now: u64, time: Duration) -> u64 {
    now.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn decided_meanwhile(id: &str) -> CallApprovalError {
    let why = "somebody else has decided at the same time";
    CallApprovalError::Undecidable { id: id.to_string(), why }
}

/// The approval that an item of this kind and id is of.
fn approval_id<'a>(kind: &str, item: &'a str) -> &'a str {
    match (kind, item.split_once('/')) {
        (STANDING, Some((_, id))) | (BEGUN, Some((id, _))) => id,
        _ => item,
    }
}

/// What the keys of calls begin with that have begun, of the action of this id.
fn begun_prefix(id: &str) -> String {
    format!("{id}/")
}

fn random_id() -> Result<String> {
    IDS.random().ok_or(CallApprovalError::NoRandomness)
}
