//! The approvals of a store: what was decided of a call, and each step of it.

mod begun;
mod integrity;
mod room;

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_store::{
    Change, Durability, Item, ItemQuota, LivenessLock, MAX_BATCH_ENTRIES, Store, all_items,
};

pub use self::begun::BegunCall;
use self::begun::{BegunCallRecord, begun_prefix};
use self::room::{QUOTA, QUOTA_OF_ONE};
use crate::action::Action;
use crate::approval::{
    Approval, ApprovalState, CallDetails, IDS, MAX_ARGUMENT_DIGESTS, MAX_WAIT, id_of,
};
use crate::event::{ApprovalEvent, ApprovalStep, Decider, LOG, MAX_LOG_BYTES};
use crate::standing::{ApprovalScope, DEFAULT_STANDING, StandingApproval, key_prefix};
use crate::{CallApprovalError, Result};

/// The kind of items that say what is decided of calls, by the ids of their actions.
const APPROVALS: &str = "call-approvals";

/// The kind of items that standing approvals are.
const STANDING: &str = "standing-call-approvals";

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
    untold: Mutex<Vec<BegunCallRecord>>,
}

/// Which calls an approval is of.
struct ApprovalSubject<'a> {
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

/// What somebody has approved who was asked at once.
#[derive(Debug, Clone)]
pub struct ImmediateApproval {
    /// Which calls it is for.
    pub scope: ApprovalScope,
    /// How long it holds beyond this call.
    pub holds: Option<Duration>,
    /// Who that was.
    pub by: Decider,
    /// The call has waited meanwhile, so that others could decide of it or take it back.
    pub waited: bool,
}

/// What is decided of a call.
#[derive(Debug)]
pub enum BeginOutcome {
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
    pub fn take(
        self: &Arc<Self>,
        action: &Action,
        call: &CallDetails,
        now: u64,
    ) -> Result<BeginOutcome> {
        self.tell(now);
        for _ in 0..MAX_TRIES {
            let running = self.running(action.digest(), now)?;
            if let Some((approval, version)) = self.of(action, now)? {
                let id = approval.id.clone();
                match &approval.state {
                    ApprovalState::Pending => {}
                    ApprovalState::Unknown { at } | ApprovalState::Running { at, .. } => {
                        return Ok(BeginOutcome::Undecided { unknown_since: Some(*at) });
                    }
                    ApprovalState::Denied { reason, .. } => {
                        return Ok(BeginOutcome::Denied { id, reason: reason.clone() });
                    }
                    ApprovalState::Approved { .. } => {
                        match self.begin(approval, Some(version), None, Vec::new(), now)? {
                            Some(begun) => return Ok(BeginOutcome::Begun(begun.into())),
                            None => continue,
                        }
                    }
                }
            }
            if let Some(standing) = self.covering(action, call, now)? {
                let step = ApprovalStep::Covered;
                let covered = ApprovalEvent::of_standing(&standing, Some(action.digest()), step);
                let covered = covered.with_arguments(&call.arguments);
                let approval = Approval::new(standing.id, action, call.clone(), now);
                if let Some(begun) = self.begin(approval, None, None, vec![covered], now)? {
                    return Ok(BeginOutcome::Begun(begun.into()));
                }
                continue;
            }
            return Ok(match running {
                Some(id) => BeginOutcome::Running { id },
                None => BeginOutcome::Undecided { unknown_since: None },
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
    pub fn ask(&self, action: &Action, call: CallDetails, now: u64) -> Result<Asked> {
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

    /// Begins a call that somebody has just approved. For a scope beyond this call, a standing approval is kept as well. Where
    /// the same call waits, was approved meanwhile, or nobody knows how it ended before, that is used up by this. One that was
    /// denied or taken back meanwhile does not begin.
    ///
    /// # Errors
    ///
    /// Where the store fails. Then the call must not be made.
    pub fn begin_approved(
        self: &Arc<Self>,
        action: &Action,
        call: CallDetails,
        given: ImmediateApproval,
        now: u64,
    ) -> Result<BeginOutcome> {
        let ImmediateApproval { scope, holds, by, waited } = given;
        let approval = Approval::new(random_id()?, action, call, now);
        let standing = self.standing_of(&approval, scope, holds, now)?;
        for _ in 0..MAX_TRIES {
            let version = match self.of(action, now)? {
                Some((Approval { id, state: ApprovalState::Denied { reason, .. }, .. }, _)) => {
                    return Ok(BeginOutcome::Denied { id, reason });
                }
                None if waited && self.is_taken_back(action)? => {
                    let (id, reason) = (id_of(action.digest()), "it was taken back meanwhile");
                    return Ok(BeginOutcome::Denied { id, reason: Some(reason.into()) });
                }
                known => known.map(|(_, version)| version),
            };
            let step = match &standing {
                Some(standing) => standing.kept(),
                None => ApprovalStep::Approved,
            };
            let approved = ApprovalEvent::of(&approval, step).decided_by(Some(by.clone()));
            let events = vec![approved];
            let begun = self.begin(approval.clone(), version, standing.as_ref(), events, now)?;
            if let Some(begun) = begun {
                return Ok(BeginOutcome::Begun(begun.into()));
            }
        }
        Err(CallApprovalError::Undecidable { id: approval.id, why: "it changes all the time" })
    }

    /// Whether taking it back is the last that was done of a call which has waited.
    fn is_taken_back(&self, action: &Action) -> Result<bool> {
        let is_of_it = |(_, event): &&(u64, ApprovalEvent)| event.digest == Some(action.digest());
        let events = self.latest_events(usize::MAX)?;
        let last = events.iter().rev().find(is_of_it);
        Ok(last.is_some_and(|(_, event)| event.step == ApprovalStep::TakenBack))
    }

    /// Notes that somebody, `decided_by`, who was asked at once has denied a call. It waits no more, and where somebody else had
    /// approved it meanwhile, that holds no more; another one like it is asked about again.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn note_denied(
        &self,
        action: &Action,
        call: CallDetails,
        reason: Option<String>,
        decided_by: Decider,
        now: u64,
    ) -> Result<()> {
        let denied = Approval::new(random_id()?, action, call, now);
        let denied = ApprovalEvent::of(&denied, ApprovalStep::Denied { reason });
        let events = [denied.decided_by(Some(decided_by))];
        for _ in 0..MAX_TRIES {
            let known = self.of(action, now)?.filter(|(known, _)| {
                matches!(known.state, ApprovalState::Pending | ApprovalState::Approved { .. })
            });
            let gone = known.as_ref().map(|(known, version)| Change::RemoveItem {
                kind: APPROVALS,
                id: &known.id,
                version: *version,
            });
            if self.change(gone.as_slice(), &events, now)? {
                return Ok(());
            }
        }
        let [ApprovalEvent { id, .. }] = events;
        Err(CallApprovalError::Undecidable { id, why: "it changes all the time" })
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
        let undecidable = |why| Err(CallApprovalError::Undecidable { id: id.to_string(), why });
        if approval.call.arguments.is_null() {
            return undecidable(
                "its arguments are too long to be shown: nobody can tell what it would do",
            );
        }
        if !self.is_as_asked(&approval)? {
            return undecidable(
                "what is kept of it is not what was asked about: somebody has changed it",
            );
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
    fn take_all_back(
        &self,
        is_meant: impl Fn(&ApprovalSubject<'_>) -> bool,
        now: u64,
    ) -> Result<usize> {
        let mut taken = 0;
        for standing in self.standing(now)? {
            let (plugin, principal) = (&*standing.plugin, standing.principal.as_deref());
            if is_meant(&ApprovalSubject { plugin, principal, is_unknown: false }) {
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
            if !is_meant(&ApprovalSubject { plugin, principal, is_unknown }) {
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

    /// Makes changes, with their steps in the log, at once.
    fn change(&self, changes: &[Change<'_>], events: &[ApprovalEvent], now: u64) -> Result<bool> {
        let values = ApprovalEvent::write(events);
        let entries = ApprovalEvent::entries(&values, now);
        let steps = Change::Append { log: LOG, entries: &entries, max_bytes: MAX_LOG_BYTES };
        let all: Vec<_> = changes.iter().copied().chain([steps]).collect();
        Ok(self.store.change(&all, Durability::Disk)?)
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
        call: &CallDetails,
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

fn after(now: u64, time: Duration) -> u64 {
    now.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn decided_meanwhile(id: &str) -> CallApprovalError {
    let why = "somebody else has decided at the same time";
    CallApprovalError::Undecidable { id: id.to_string(), why }
}

fn random_id() -> Result<String> {
    IDS.random().ok_or(CallApprovalError::NoRandomness)
}
