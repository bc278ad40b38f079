//! Standing approvals: they cover every call of a tool that has some arguments, until they end.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::action::{Action, ActionDigest};
use crate::approval::CallDetails;
use crate::event::ApprovalStep;
use crate::{CallApprovalError, Result};

/// How long a standing approval holds where nobody says how long.
pub const DEFAULT_STANDING: Duration = Duration::from_secs(30 * 24 * 3600);

/// For which calls an approval is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ApprovalScope {
    /// For the next call that is exactly this one.
    #[default]
    Once,
    /// For calls of the session. `None` has all arguments be the same; else those of these names.
    Session {
        /// The arguments that have to be the same.
        fixed: Option<Vec<String>>,
    },
    /// For calls of the run of a script. `None` has all arguments be the same; else those of these names.
    Run {
        /// The arguments that have to be the same.
        fixed: Option<Vec<String>>,
    },
    /// For calls of anybody who is the same principal, in whatever session.
    Standing {
        /// The arguments that have to be the same.
        fixed: Option<Vec<String>>,
    },
}

/// A standing approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StandingApproval {
    /// What it is found by.
    pub id: String,
    /// The tool, by the name that callers use.
    pub tool: String,
    /// The plugin.
    pub plugin: String,
    /// Whose calls it covers; those of nobody who is known where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The only session whose calls it covers, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The only run whose calls it covers, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The arguments that have to be the same, as they are shown. `None` is all of them, and no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<Vec<String>>,
    /// These arguments, with secrets masked; nothing where they are too long to be shown.
    #[serde(default)]
    pub shown: Value,
    /// When it was given, in milliseconds since 1970.
    #[serde(default)]
    pub given: u64,
    /// The digest of the action without its arguments.
    pub(crate) tool_digest: ActionDigest,
    /// The digests of the arguments that have to be the same.
    pub(crate) arguments: BTreeMap<String, ActionDigest>,
    /// When its time is over, in milliseconds since 1970.
    #[serde(skip)]
    pub expires: Option<u64>,
}

impl StandingApproval {
    /// Whether it covers a call.
    pub(crate) fn covers(&self, action: &Action, call: &CallDetails) -> bool {
        let is_of = |own: &Option<String>, of: &Option<String>| own.is_none() || own == of;
        if self.tool_digest != action.tool_digest()
            || !is_of(&self.session, &call.session)
            || !is_of(&self.run, &call.run)
        {
            return false;
        }
        let given: BTreeMap<&String, ActionDigest> = action.argument_digests().collect();
        let is_same = |(name, digest): (&String, &ActionDigest)| given.get(name) == Some(digest);
        self.arguments.iter().all(is_same)
            && (self.fixed.is_some() || given.len() == self.arguments.len())
    }

    /// The key under which it is kept: those of one tool are beside each other.
    pub(crate) fn key(&self) -> String {
        format!("{}{}", key_prefix(self.tool_digest), self.id)
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an approval is JSON")
    }

    /// The step that gives it.
    pub(crate) fn kept(&self) -> ApprovalStep {
        let content = Some(content_digest(&self.write(), self.expires));
        ApprovalStep::Kept {
            standing: self.id.clone(),
            session: self.session.clone(),
            run: self.run.clone(),
            fixed: self.fixed.clone(),
            until: self.expires,
            content,
        }
    }

    pub(crate) fn read(key: &str, value: &[u8], expires: Option<u64>) -> Result<Self> {
        let read: Self = serde_json::from_slice(value)
            .map_err(|_| CallApprovalError::Damaged(key.to_string()))?;
        Ok(Self { expires, ..read })
    }
}

/// The digest of a standing approval as it is written, with its end.
pub(crate) fn content_digest(value: &[u8], expires: Option<u64>) -> ActionDigest {
    // A store has no later time than this.
    let expires = expires.map(|at| at.min(i64::MAX.cast_unsigned()).to_be_bytes());
    let expires = expires.as_ref().map_or(&[][..], |at| at);
    ActionDigest::of(&[b"standing", value, expires])
}

/// What the keys of all that are for a tool begin with.
pub(crate) fn key_prefix(tool: ActionDigest) -> String {
    format!("{tool}/")
}
