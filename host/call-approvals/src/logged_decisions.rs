//! What was decided of calls, by the log alone: items that somebody has edited differ from it.
//!
//! It leaves to others whether the log itself is as it was written.

use std::collections::HashMap;
use tenon_store::{Item, LogEntry, LogSummary, MAX_BATCH_ENTRIES, Store};

use crate::Result;
use crate::action::ActionDigest;
use crate::approval::{Approval, ApprovalState, denial_holds, id_of};
use crate::event::{ApprovalEvent, ApprovalStep, LOG};
use crate::standing::{StandingApproval, content_digest};

/// How far the clocks of hosts differ that share a store, in milliseconds: entries need not be in the order of their times.
const MAX_CLOCK_DIFFERENCE: u64 = 60_000;

/// The decisions that a log has.
#[derive(Default)]
pub(crate) struct LoggedDecisions {
    /// What is decided of an action, and the number of the entry that says so. One is pending that was asked about again, or
    /// whose approval was used up.
    calls: HashMap<ActionDigest, (ApprovalState, u64)>,
    /// What is kept of a call that somebody was asked about; nothing where the log does not say it.
    asked: HashMap<ActionDigest, Option<ActionDigest>>,
    /// How a standing approval was given, by its id, or when it was taken back.
    standing: HashMap<String, LoggedStanding>,
    /// The ids under which calls have begun that nobody had approved.
    unapproved: Vec<String>,
    /// Something that was decided before may have gone from the log, as it was full. In milliseconds since 1970.
    forgotten_before: u64,
}

/// What the log says of a standing approval.
enum LoggedStanding {
    /// It was given so.
    Given(Box<ApprovalEvent>),
    /// It was taken back, in milliseconds since 1970.
    TakenBack(u64),
}

impl LoggedDecisions {
    /// Reads the log of a store.
    pub(crate) fn read(store: &dyn Store) -> Result<Self> {
        let LogSummary { first, next, .. } = store.log(LOG)?.unwrap_or(LogSummary::EMPTY);
        let mut logged = Self::default();
        let (mut number, mut before) = (first, None);
        while number < next {
            let entries = store.entries_from(LOG, number, MAX_BATCH_ENTRIES)?;
            let Some(last) = entries.last() else { break };
            if number == first && first > 1 {
                logged.forgotten_before = entries[0].at.saturating_add(MAX_CLOCK_DIFFERENCE);
            }
            number = last.number + 1;
            for entry in entries {
                // One that was edited so that it cannot be read is found by its hash.
                let event = serde_json::from_slice(&entry.value).ok();
                if let Some(event) = &event {
                    logged.note(&entry, event, before.as_ref());
                }
                before = event;
            }
        }
        Ok(logged)
    }

    /// Takes a step into account, which follows another.
    fn note(&mut self, entry: &LogEntry, event: &ApprovalEvent, before: Option<&ApprovalEvent>) {
        let ApprovalEvent { id, digest, step, .. } = event;
        if let ApprovalStep::Kept { standing, .. } = step {
            self.standing.insert(standing.clone(), LoggedStanding::Given(event.clone().into()));
        }
        let Some(digest) = *digest else {
            if *step == ApprovalStep::TakenBack {
                self.standing.insert(id.clone(), LoggedStanding::TakenBack(entry.at));
            }
            return;
        };
        let at = entry.at;
        // What is approved or denied at once has an id of its own, and leaves what else is decided of the same action.
        let is_item = *id == id_of(digest);
        match step {
            ApprovalStep::Asked { content } => {
                self.asked.insert(digest, *content);
            }
            // What is kept of it from here on is less.
            ApprovalStep::Unknown => {
                self.asked.insert(digest, None);
            }
            ApprovalStep::Begun if !self.is_approved(event, digest, at, before) => {
                self.unapproved.push(id.clone());
            }
            _ => {}
        }
        let state = match step {
            ApprovalStep::Approved if is_item => ApprovalState::Approved { at },
            ApprovalStep::Denied { reason } if is_item => {
                ApprovalState::Denied { at, reason: reason.clone(), unknown_since: None }
            }
            ApprovalStep::Asked { .. }
            | ApprovalStep::Kept { .. }
            | ApprovalStep::TakenBack
            | ApprovalStep::Begun
                if is_item =>
            {
                ApprovalState::Pending
            }
            // A call that a standing approval covers uses nothing up.
            ApprovalStep::Begun
                if before.is_some_and(|before| {
                    before.step == ApprovalStep::Covered && before.id == *id
                }) =>
            {
                return;
            }
            // Whatever it was approved by, an approval of the same action is used up, or holds no more where somebody has denied it
            // at once. A denial goes on to hold.
            ApprovalStep::Begun | ApprovalStep::Unknown | ApprovalStep::Denied { .. }
                if matches!(self.calls.get(&digest), Some((ApprovalState::Approved { .. }, _))) =>
            {
                ApprovalState::Pending
            }
            _ => return,
        };
        self.calls.insert(digest, (state, entry.number));
    }

    /// Whether a call that begins after this event was approved, as far as the log goes back.
    fn is_approved(
        &self,
        begun: &ApprovalEvent,
        digest: ActionDigest,
        at: u64,
        before: Option<&ApprovalEvent>,
    ) -> bool {
        let is_cut = self.forgotten_before > 0;
        let before = before.filter(|before| before.id == begun.id);
        match before.map(|before| &before.step) {
            // It was approved and began in one step.
            Some(ApprovalStep::Approved | ApprovalStep::Kept { .. }) => true,
            Some(ApprovalStep::Covered) => match self.standing.get(&begun.id) {
                Some(LoggedStanding::Given(_)) => true,
                Some(LoggedStanding::TakenBack(back)) => {
                    at < back.saturating_add(MAX_CLOCK_DIFFERENCE)
                }
                None => is_cut,
            },
            _ => match self.calls.get(&digest) {
                Some((state, _)) => matches!(state, ApprovalState::Approved { .. }),
                None => is_cut,
            },
        }
    }

    /// The ids under which calls have begun that nobody had approved.
    pub(crate) fn unapproved(&self) -> impl Iterator<Item = &str> {
        self.unapproved.iter().map(String::as_str)
    }

    /// The actions that are denied at this time, each with the number of the entry that says so.
    pub(crate) fn denied(&self, now: u64) -> impl Iterator<Item = (ActionDigest, u64)> {
        self.calls.iter().filter_map(move |(digest, (state, number))| match state {
            ApprovalState::Denied { at, .. } if denial_holds(*at, now) => Some((*digest, *number)),
            _ => None,
        })
    }

    /// Whether what is kept of a call is what somebody was asked about. Of a call of which nobody knows how it ended, less
    /// is kept.
    pub(crate) fn bear_out_content(&self, approval: &Approval) -> bool {
        match self.asked.get(&approval.digest) {
            Some(Some(content)) => *content == approval.content_digest(),
            Some(None) => true,
            None => !approval.is_pending() || approval.asked < self.forgotten_before,
        }
    }

    /// Whether what an approval says that has this id was asked and decided so. One that decides nothing says nothing.
    pub(crate) fn bear_out(&self, id: &str, approval: &Approval) -> bool {
        if !self.bear_out_content(approval) {
            return false;
        }
        let (at, decided) = match approval.state.clone() {
            ApprovalState::Approved { at } => (at, ApprovalState::Approved { at }),
            ApprovalState::Denied { at, reason, .. } => {
                (at, ApprovalState::Denied { at, reason, unknown_since: None })
            }
            _ => return true,
        };
        id == id_of(approval.digest)
            && match self.calls.get(&approval.digest) {
                Some((logged, _)) => *logged == decided,
                None => at < self.forgotten_before,
            }
    }

    /// Whether a standing approval was given as it is, and not taken back.
    pub(crate) fn bear_out_standing(&self, item: &Item, standing: &StandingApproval) -> bool {
        let is_as_given = |event: &ApprovalEvent| match &event.step {
            ApprovalStep::Kept { content: Some(content), .. } => {
                *content == content_digest(&item.value, item.expires)
            }
            _ => {
                let ApprovalEvent { tool, plugin, principal, .. } = event;
                (tool, plugin, principal) == (&standing.tool, &standing.plugin, &standing.principal)
            }
        };
        item.id == standing.key()
            && match self.standing.get(&standing.id) {
                Some(LoggedStanding::Given(event)) => is_as_given(event),
                Some(LoggedStanding::TakenBack(_)) => false,
                None => standing.given < self.forgotten_before,
            }
    }
}
