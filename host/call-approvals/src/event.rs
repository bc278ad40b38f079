//! The log of approvals: each step, bound to the one before.

use serde::{Deserialize, Serialize};
use tenon_store::NewEntry;

use crate::StandingApproval;
use crate::action::ActionDigest;
use crate::approval::Approval;

/// The name of the log.
pub const LOG: &str = "call-approvals";

/// The most that the log comes to, in bytes. Its oldest entries go for new ones.
pub(crate) const MAX_LOG_BYTES: u64 = 16 << 20;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovalStep {
    /// Somebody was asked.
    Asked,
    /// It was approved for one call.
    Approved,
    /// It was denied.
    Denied,
    /// A standing approval was given.
    Kept {
        /// The standing approval.
        standing: String,
    },
    /// A standing approval was taken back.
    TakenBack,
    /// A standing approval covered a call.
    Covered,
    /// The call began.
    Begun,
    /// The call ended so.
    Ended {
        /// How: `ok`, `tool-error` or the code of an error.
        outcome: String,
    },
    /// The call had begun, and how it ended is not known.
    Unknown,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalEvent {
    /// The approval.
    pub id: String,
    /// The tool, by the name that callers use.
    pub tool: String,
    /// The plugin.
    pub plugin: String,
    /// Whose call it is, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The digest of the action, where it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<ActionDigest>,
    /// What happened.
    #[serde(flatten)]
    pub step: ApprovalStep,
}

impl ApprovalEvent {
    pub(crate) fn of(approval: &Approval, step: ApprovalStep) -> Self {
        let Approval { id, tool, plugin, principal, digest, .. } = approval;
        Self {
            id: id.clone(),
            tool: tool.clone(),
            plugin: plugin.clone(),
            principal: principal.clone(),
            digest: Some(*digest),
            step,
        }
    }

    pub(crate) fn of_standing(
        standing: &StandingApproval,
        digest: Option<ActionDigest>,
        step: ApprovalStep,
    ) -> Self {
        let StandingApproval { id, tool, plugin, principal, .. } = standing;
        Self {
            id: id.clone(),
            tool: tool.clone(),
            plugin: plugin.clone(),
            principal: principal.clone(),
            digest,
            step,
        }
    }

    /// Events as a log keeps them.
    pub(crate) fn write(events: &[Self]) -> Vec<Vec<u8>> {
        let written = events.iter().map(serde_json::to_vec);
        written.map(|event| event.expect("an event is JSON")).collect()
    }

    /// The entries of these events.
    pub(crate) fn entries(written: &[Vec<u8>], now: u64) -> Vec<NewEntry<'_>> {
        written.iter().map(|value| NewEntry { at: now, value }).collect()
    }
}
