//! Whoever decides of calls that have to be approved.

use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use tenon_call_approvals::ApprovalScope;

/// Decides of calls that have to be approved, while they wait. An implementation must not approve in the name of a user
/// who has not seen the call.
#[async_trait]
pub trait CallApprover: Send + Sync + 'static {
    /// Decides of a call. The default leaves it undecided. Then the user of the client is asked, if the client can do that;
    /// else the call fails, and waits for somebody who approves it later.
    async fn decide(&self, call: &CallToApprove) -> ApproverDecision {
        let _ = call;
        ApproverDecision::Undecided
    }
}

/// A call that has to be approved.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallToApprove {
    /// The tool, by the name that callers use.
    pub tool: String,
    /// Its plugin.
    pub plugin: Arc<str>,
    /// The arguments as the plugin would get them, with secrets masked.
    pub arguments: Value,
    /// The rule that has it approved, or the mode where no rule speaks of it.
    pub by: String,
    /// Whose call it is, if known.
    pub principal: Option<Arc<str>>,
    /// The agent, if known.
    pub agent: Option<String>,
    /// The session, if it is of one.
    pub session: Option<String>,
    /// The run of a script, if it is of one.
    pub run: Option<Arc<str>>,
    /// The plugin that makes the call, where one does.
    pub caller: Option<Arc<str>>,
    /// When the same call began of which it is not known how it ended.
    pub interrupted: Option<SystemTime>,
}

/// What somebody decided of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApproverDecision {
    /// Nothing.
    Undecided,
    /// It may be made.
    Approved {
        /// Which calls may be made besides.
        scope: ApprovalScope,
        /// For how long. `None` is the default of the scope.
        holds: Option<Duration>,
    },
    /// It may not be made.
    Denied {
        /// Why; the caller reads it.
        reason: Option<String>,
    },
}
