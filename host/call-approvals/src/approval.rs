//! One approval: of which call, and what was decided.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tenon_store::IdKind;

use crate::action::{Action, ActionDigest};
use crate::event::ApprovalStep;
use crate::{CallApprovalError, Result};

/// What somebody who decides sees of a call, besides its tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallDetails {
    /// The arguments, with secrets masked.
    pub arguments: Value,
    /// Why it has to be approved.
    pub reason: String,
    /// The agent that calls, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The session that it is of, if it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The run of a script that it is of, if it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The plugin that makes the call, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

impl CallDetails {
    /// A call with these arguments, and why it has to be approved.
    pub fn new(arguments: Value, reason: impl Into<String>) -> Self {
        Self { arguments, reason: reason.into(), ..Self::default() }
    }

    /// The same, of a session.
    #[must_use]
    pub fn in_session(self, session: Option<String>) -> Self {
        Self { session, ..self }
    }

    /// The same, of a run.
    #[must_use]
    pub fn in_run(self, run: Option<String>) -> Self {
        Self { run, ..self }
    }

    /// The same, made by a plugin.
    #[must_use]
    pub fn by_plugin(self, caller: Option<String>) -> Self {
        Self { caller, ..self }
    }

    /// The same, by an agent.
    #[must_use]
    pub fn by_agent(self, agent: Option<String>) -> Self {
        Self { agent, ..self }
    }
}

/// What was decided of a call, and what became of one that was approved. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovalState {
    /// Nothing yet.
    Pending,
    /// It may be made once.
    Approved {
        /// When that was decided.
        at: u64,
    },
    /// It may not be made.
    Denied {
        /// When that was decided.
        at: u64,
        /// What whoever decided said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// When the same call had begun of which it is not known how it ended, if there is one. That is so again when the
        /// denial holds no more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unknown_since: Option<u64>,
    },
    /// It was begun.
    Running {
        /// When it began.
        at: u64,
        /// The lock of the process that makes it.
        lock: String,
    },
    /// It was begun, and how it ended is not known. Nothing is decided of another one.
    Unknown {
        /// When it began.
        at: u64,
    },
}

/// An approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Approval {
    /// What it is found by.
    pub id: String,
    /// The tool, by the name that callers use.
    pub tool: String,
    /// The plugin.
    pub plugin: String,
    /// Whose call it is, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// What names the code of the plugin, with the settings and grants that it had. Older approvals do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The digest of the exact action.
    pub digest: ActionDigest,
    /// That of the action without its arguments.
    pub(crate) tool_digest: ActionDigest,
    /// Those of its arguments.
    pub(crate) argument_digests: BTreeMap<String, ActionDigest>,
    /// What is shown of the call.
    pub call: CallDetails,
    /// When it was asked for first, in milliseconds since 1970.
    pub asked: u64,
    /// What was decided.
    #[serde(flatten)]
    pub state: ApprovalState,
    /// When its time is over, in milliseconds since 1970.
    #[serde(skip)]
    pub expires: Option<u64>,
}

/// The most arguments that may all have to be the same.
pub(crate) const MAX_ARGUMENT_DIGESTS: usize = 256;

/// How long a call waits for somebody to decide, and how long a denial holds.
pub const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);

pub(crate) const MAX_WAIT_MILLIS: u64 = MAX_WAIT.as_secs() * 1_000;

/// Whether a denial of one time still holds at another.
pub(crate) fn denial_holds(denied: u64, now: u64) -> bool {
    now < denied.saturating_add(MAX_WAIT_MILLIS)
}

/// The longest arguments that are kept to be shown, in bytes of JSON.
const MAX_SHOWN_BYTES: usize = 256 << 10;

/// The longest that are kept of a call of which nobody knows how it ended: such calls do not expire.
const MAX_UNKNOWN_BYTES: usize = 2 << 10;

impl Approval {
    pub(crate) fn new(id: String, action: &Action, call: CallDetails, now: u64) -> Self {
        let call = match call.arguments.to_string().len() > MAX_SHOWN_BYTES {
            // Whoever cannot see what it would do is not asked to approve it.
            true => CallDetails { arguments: Value::Null, ..call },
            false => call,
        };
        let digests = action.argument_digests().take(MAX_ARGUMENT_DIGESTS + 1);
        Self {
            id,
            tool: action.tool.clone(),
            plugin: action.plugin.clone(),
            principal: action.principal.clone(),
            code: Some(action.code.clone()),
            digest: action.digest(),
            tool_digest: action.tool_digest(),
            argument_digests: digests.map(|(name, digest)| (name.clone(), digest)).collect(),
            call,
            asked: now,
            state: ApprovalState::Pending,
            expires: None,
        }
    }

    /// The same, of which it is not known how it ended.
    pub(crate) fn unknown(&self, id: String, began: u64) -> Self {
        let mut call = self.call.clone();
        if call.arguments.to_string().len() > MAX_UNKNOWN_BYTES {
            call.arguments = Value::Null;
        }
        Self { id, call, state: ApprovalState::Unknown { at: began }, ..self.clone() }
    }

    /// As it is at this time: a denial holds for a while.
    fn at_time(self, now: u64) -> Self {
        match self.state {
            ApprovalState::Denied { at, unknown_since: Some(began), .. }
                if !denial_holds(at, now) =>
            {
                Self { state: ApprovalState::Unknown { at: began }, ..self }
            }
            _ => self,
        }
    }

    /// The digest of what is kept of the call, whatever is decided of it.
    pub(crate) fn content_digest(&self) -> ActionDigest {
        let undecided = Self { state: ApprovalState::Pending, ..self.clone() };
        ActionDigest::of(&[b"asked", &undecided.write()])
    }

    /// The step that asks about it.
    pub(crate) fn asked(&self) -> ApprovalStep {
        ApprovalStep::Asked { content: Some(self.content_digest()) }
    }

    /// Whether somebody has to decide: nothing is decided of it, or nobody knows how it ended.
    pub fn is_undecided(&self) -> bool {
        matches!(self.state, ApprovalState::Pending | ApprovalState::Unknown { .. })
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.state == ApprovalState::Pending
    }

    /// Whether its arguments can be shown. They are too long else.
    pub fn is_shown_whole(&self) -> bool {
        !self.call.arguments.is_null()
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an approval is JSON")
    }

    pub(crate) fn read(id: &str, value: &[u8], expires: Option<u64>, now: u64) -> Result<Self> {
        let read: Self = serde_json::from_slice(value)
            .map_err(|_| CallApprovalError::Damaged(id.to_string()))?;
        Ok(Self { expires, ..read }.at_time(now))
    }
}

/// Ids of approvals. None of a plugin begins so.
pub(crate) const IDS: IdKind = IdKind::new("A-");

/// The id by which a call is decided: the same for the same action.
pub(crate) fn id_of(action: ActionDigest) -> String {
    IDS.of(&ActionDigest::of(&[b"approval", &action.0]).0)
}

/// Whether a text is the id of an approval of a call.
pub fn is_approval_id(text: &str) -> bool {
    IDS.is_of(text)
}
