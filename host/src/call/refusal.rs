//! Why a call is not made that was found and checked: the operator's rules, or nobody who approved it.

use std::fmt;
use std::sync::Arc;

/// Why a call is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallRefusal {
    /// A rule forbids it.
    #[error("may not be called like this, by {by}")]
    Forbidden {
        /// The rule, or the mode where no rule speaks of it.
        by: String,
    },
    /// Somebody has to approve it, and may do so later.
    #[error(
        "has to be approved, by {by}: it would be called with {arguments}{}; `tenon approve {id}` approves it, and then {}",
        InterruptedNote(*.was_interrupted), Next(.run)
    )]
    Pending {
        /// The approval that it waits for.
        id: String,
        /// The rule, or the mode where no rule speaks of it.
        by: String,
        /// The arguments as JSON, with secrets masked and cut where they are long.
        arguments: String,
        /// Whether the same call was begun before, and it is not known how it ended.
        was_interrupted: bool,
        /// The run of a script that made the call and waits for it, if one did.
        run: Option<Arc<str>>,
    },
    /// Somebody would have to approve it, and nobody can be asked.
    #[error("has to be approved, by {by}, and {problem}")]
    Unasked {
        /// The rule, or the mode where no rule speaks of it.
        by: String,
        /// Why nobody can be asked.
        problem: String,
    },
    /// Somebody would have to approve it, and what was decided cannot be read or written.
    #[error(
        "has to be approved, by {by}, and what is decided of calls cannot be read or written: {problem}"
    )]
    Unkept {
        /// The rule, or the mode where no rule speaks of it.
        by: String,
        /// What is wrong with the store.
        problem: String,
    },
    /// Somebody was asked, and does not want it.
    #[error("was denied{}", ReasonSuffix(.reason))]
    Denied {
        /// What they said.
        reason: Option<String>,
    },
    /// It was approved once, and runs.
    #[error(
        "runs already with these arguments, and was approved once, by {id}: call it again when that has ended"
    )]
    Running {
        /// The approval.
        id: String,
    },
}

impl CallRefusal {
    /// Returns a stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } => "forbidden",
            Self::Pending { .. } | Self::Unasked { .. } => "approval-required",
            Self::Unkept { .. } => "state",
            Self::Denied { .. } => "approval-denied",
            Self::Running { .. } => "approval-in-use",
        }
    }

    /// Returns the approval that the call waits for, if it waits for one.
    pub fn pending(&self) -> Option<&str> {
        match self {
            Self::Pending { id, .. } => Some(id),
            _ => None,
        }
    }
}

struct InterruptedNote(bool);

impl fmt::Display for InterruptedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            true => {
                f.write_str(" (the same call was begun before, and it is not known how it ended)")
            }
            false => Ok(()),
        }
    }
}

struct Next<'a>(&'a Option<Arc<str>>);

impl fmt::Display for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(run) => write!(f, "the run {run} can be resumed"),
            None => f.write_str("it can be called again"),
        }
    }
}

struct ReasonSuffix<'a>(&'a Option<String>);

impl fmt::Display for ReasonSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}
