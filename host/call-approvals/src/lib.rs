//! Approvals of single calls: what somebody decided of exactly one call, how long that holds, and how the call ended.
//!
//! A call that has to be approved is an [`Action`]: a tool of a plugin with its code and its definition, the arguments,
//! and whose call it is. Whatever of these changes makes another action, of which nothing is decided yet. An approval is
//! an item of the store:
//!
//! ```text
//! pending ──approve──▶ approved ──the call begins──▶ running ──it ends──▶ (gone)
//!    │                    ▲                             │
//!   deny               approve                          │
//!    ▼                    │                             │
//! denied ◀──deny────── unknown ◀────the process died────┘
//! ```
//!
//! It is used once. A *standing* approval is used as often as it covers a call, until it ends: for a session, or for a
//! tool with some of its arguments. What was decided of exactly one call goes before it. Each call that begins is an item
//! of its own, however it was approved, so that it is known when its process has died. Each step is an entry of a log in which each entry is bound to the one before.
//!
//! Which calls have to be approved, who is asked and how that is shown is left to others. Every call blocks until the
//! disk has answered.

mod action;
mod approval;
mod approvals;
mod event;
mod logged_decisions;
mod standing;
#[cfg(test)]
mod tests;

pub use action::{Action, ActionDigest};
pub use approval::{Approval, ApprovalState, CallDetails, MAX_WAIT, is_approval_id};
pub use approvals::{
    Asked, BeginOutcome, BegunCall, CallApprovals, DEFAULT_ONCE, ImmediateApproval,
};
pub use event::{ApprovalEvent, ApprovalStep, Decider, LOG};
pub use standing::{ApprovalScope, DEFAULT_STANDING, StandingApproval};

use tenon_store::StoreError;

/// Why an approval could not be asked for, given or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallApprovalError {
    /// The store failed.
    #[error("approvals of calls cannot be kept")]
    Store(#[from] StoreError),
    /// There is no approval of this id, or its time is over.
    #[error("no call waits under the id {0}")]
    NotFound(String),
    /// It cannot be decided any more: the call runs, or somebody else has decided at the same time.
    #[error("the call {id} cannot be decided: {why}")]
    Undecidable {
        /// The approval.
        id: String,
        /// Why.
        why: &'static str,
    },
    /// The call has no such argument.
    #[error("the call {id} has no argument \"{name}\"")]
    NoArgument {
        /// The approval.
        id: String,
        /// The name of the argument.
        name: String,
    },
    /// It was asked for outside of a session or a run, for which it could hold.
    #[error("the call {id} belongs to no {what}")]
    NoPlace {
        /// The approval.
        id: String,
        /// A session or a run.
        what: &'static str,
    },
    /// Nobody could see what the call would do.
    #[error("the arguments are too long to be shown: nobody can tell what the call would do")]
    TooLong,
    /// It has too many arguments for all of them to have to be the same.
    #[error("the call {0} has too many arguments: say which of them have to be the same")]
    TooManyArguments(String),
    /// What is kept of it cannot be read.
    #[error("what is kept of the approval {0} is damaged")]
    Damaged(String),
    /// The system has no random numbers.
    #[error("there are no random numbers")]
    NoRandomness,
}

impl CallApprovalError {
    /// Whether the store is full of approvals.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Store(StoreError::TooManyItems { .. }))
    }
}

type Result<T> = std::result::Result<T, CallApprovalError>;
