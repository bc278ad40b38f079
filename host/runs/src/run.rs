//! One run: its script, whose it is, and how far it came.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tenon_store::{IdKind, LogSummary};

use crate::journal::JsonDigest;
use crate::{Result, RunError};

/// A run that begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NewRun {
    /// The script.
    pub script: String,
    /// What it gets.
    pub data: Value,
    /// Whose it is, if known. Nobody else resumes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The profile that the client uses, if it uses one. It is resumed with the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The agent, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The session, if it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The project that it belongs to, by its folder, if it belongs to one. It goes on there only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Who resumes a run, and where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResumeCaller<'a> {
    /// Whose runs they are, if known.
    pub principal: Option<&'a str>,
    /// The profile that the client uses, if it uses one.
    pub profile: Option<&'a str>,
    /// The project, by its folder, if it is in one.
    pub project: Option<&'a str>,
}

impl NewRun {
    /// A run of a script, with what it gets.
    pub fn new(script: impl Into<String>, data: Value) -> Self {
        Self { script: script.into(), data, ..Self::default() }
    }
}

/// How far a run came. What it printed was bounded before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RunState {
    /// It runs.
    Running {
        /// The lock of the process that runs it.
        lock: String,
    },
    /// It waits for the approval of a call.
    Paused {
        /// The approval.
        approval: String,
        /// The tool that would be called.
        tool: String,
        /// The place of the call in the run.
        key: String,
        /// What is called there: a tool by the name that the script uses, or an operation. A script that is resumed makes
        /// this call, and no other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// The digest of its arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<JsonDigest>,
    },
    /// It has ended with a value.
    Done {
        /// The value.
        value: Value,
        /// What it printed.
        printed: String,
    },
    /// It has ended with an error.
    Failed {
        /// A code for programs.
        code: String,
        /// What is wrong.
        message: String,
        /// What it printed.
        printed: String,
    },
    /// It had begun, and its process has died or nobody waited for it any more. Which of its calls were made is not known.
    Unknown,
}

impl RunState {
    /// The code of a run that was cancelled, or that nobody waited for any more.
    pub const CANCELLED: &str = "cancelled";

    /// What is said of a run of which it is not known how far it came.
    pub const UNKNOWN: &str = "its process died, or nobody waited for it any more, and which of its calls were made is not known";

    /// The state as people and programs read it. One that was cancelled has not failed.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Running { .. } => "running",
            Self::Paused { .. } => "paused",
            Self::Done { .. } => "done",
            Self::Failed { code, .. } if code == Self::CANCELLED => "cancelled",
            Self::Failed { .. } => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// The longest message of a run that is too long to be kept whole, in bytes.
const MAX_SHORT_BYTES: usize = 4 << 10;

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// What it is found by.
    pub id: String,
    /// When it began, in milliseconds since 1970. Its script sees this time at each attempt.
    pub began: u64,
    /// How often it was begun or went on.
    pub attempts: u32,
    /// The hash of the last entry of its journal, where it goes on no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) journal: Option<String>,
    /// How many bytes its journal counts, where it goes on no more.
    #[serde(default, rename = "journalBytes", skip_serializing_if = "is_zero")]
    pub(crate) journal_bytes: u64,
    /// How long it had taken in all its attempts when it paused last, in microseconds.
    #[serde(default, rename = "wallMicros", skip_serializing_if = "is_zero")]
    pub wall_micros: u64,
    /// The digests of the tools whose calls waited for an approval when it paused last, by the places of the calls. Of another
    /// tool no such call is made without an approval.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<String, String>,
    /// What began.
    #[serde(flatten)]
    pub of: NewRun,
    /// How far it came.
    #[serde(flatten)]
    pub state: RunState,
}

impl Run {
    /// A run that has begun at this time, and came so far in its first attempt.
    pub(crate) fn new(id: String, of: NewRun, began: u64, state: RunState) -> Self {
        let (journal_bytes, wall_micros, waiting) = Default::default();
        let (attempts, journal) = (1, None);
        Self { id, began, attempts, journal, journal_bytes, wall_micros, waiting, of, state }
    }

    /// The same, with this journal.
    pub(crate) fn with_journal(self, log: &LogSummary) -> Self {
        Self { journal: Some(log.last.to_string()), journal_bytes: log.bytes, ..self }
    }

    /// Whether it waits for the approval of a call.
    pub fn is_paused(&self) -> bool {
        matches!(self.state, RunState::Paused { .. })
    }

    /// The same, without what may be too long to be kept.
    pub(crate) fn shortened(&self) -> Self {
        let left_out = || "[too long to be kept]".to_string();
        let state = match self.state.clone() {
            RunState::Done { .. } => {
                RunState::Done { value: left_out().into(), printed: left_out() }
            }
            RunState::Failed { code, mut message, .. } => {
                message.truncate(message.floor_char_boundary(MAX_SHORT_BYTES));
                RunState::Failed { code, message, printed: left_out() }
            }
            state => state,
        };
        Self { state, ..self.clone() }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a run is JSON")
    }

    pub(crate) fn read(id: &str, value: &[u8]) -> Result<Self> {
        serde_json::from_slice(value).map_err(|_| RunError::Damaged(id.to_string()))
    }
}

const IDS: IdKind = IdKind::new("R-");

pub(crate) fn random_id() -> Result<String> {
    IDS.random().ok_or(RunError::NoRandomness)
}
