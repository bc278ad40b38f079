//! The log of approvals: each step, bound to the one before.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenon_store::NewEntry;

use crate::StandingApproval;
use crate::action::ActionDigest;
use crate::approval::Approval;

/// The name of the log.
pub const LOG: &str = "call-approvals";

/// The most that the log comes to, in bytes. Its oldest entries go for new ones.
pub(crate) const MAX_LOG_BYTES: u64 = 16 << 20;

/// The longest arguments in the log, in bytes of JSON.
const MAX_ARGUMENT_BYTES: usize = 2 << 10;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovalStep {
    /// Somebody was asked.
    Asked {
        /// The digest of what is kept of the call and shown of it. Entries of former versions have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<ActionDigest>,
    },
    /// It was approved for one call.
    Approved,
    /// It was denied.
    Denied {
        /// What whoever decided said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A standing approval was given.
    Kept {
        /// The standing approval.
        standing: String,
        /// The only session whose calls it covers, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// The only run whose calls it covers, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
        /// The arguments that have to be the same. `None` is all of them, and no others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fixed: Option<Vec<String>>,
        /// When its time is over, in milliseconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<u64>,
        /// The digest of it with its end, as it was given. Entries of former versions have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<ActionDigest>,
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

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Decider {
    /// Whoever the host asks itself.
    Approver,
    /// The user of the client that the call was made for.
    Client,
    /// A user of the command or of an embedder, by this name.
    User(String),
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
    /// Who decided, where somebody did and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<Decider>,
    /// The arguments, with secrets masked, where the step is about a call that has not begun and they are short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// What happened.
    #[serde(flatten)]
    pub step: ApprovalStep,
}

impl ApprovalEvent {
    pub(crate) fn of(approval: &Approval, step: ApprovalStep) -> Self {
        let Approval { id, tool, plugin, principal, digest, .. } = approval;
        let is_before = matches!(
            step,
            ApprovalStep::Asked { .. }
                | ApprovalStep::Approved
                | ApprovalStep::Denied { .. }
                | ApprovalStep::Kept { .. }
        );
        Self {
            id: id.clone(),
            tool: tool.clone(),
            plugin: plugin.clone(),
            principal: principal.clone(),
            digest: Some(*digest),
            decided_by: None,
            arguments: is_before.then(|| short(&approval.call.arguments)).flatten(),
            step,
        }
    }

    /// The same, decided by somebody.
    #[must_use]
    pub(crate) fn decided_by(self, who: Option<Decider>) -> Self {
        Self { decided_by: who, ..self }
    }

    /// The same, with arguments that the log has room for.
    #[must_use]
    pub(crate) fn with_arguments(self, arguments: &Value) -> Self {
        Self { arguments: short(arguments), ..self }
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
            decided_by: None,
            arguments: None,
            step,
        }
    }

    /// That the approval of this id, which cannot be read, was forgotten.
    pub(crate) fn of_damaged(id: &str) -> Self {
        Self {
            id: id.to_string(),
            tool: String::new(),
            plugin: String::new(),
            principal: None,
            digest: None,
            decided_by: None,
            arguments: None,
            step: ApprovalStep::TakenBack,
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

/// Arguments that the log has room for.
fn short(arguments: &Value) -> Option<Value> {
    let is_short = !arguments.is_null() && arguments.to_string().len() <= MAX_ARGUMENT_BYTES;
    is_short.then(|| arguments.clone())
}
