//! What the handlers of a hook point did.

use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

use super::Failure;

/// What came of a point.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HookReport {
    /// Whether to go on.
    pub outcome: HookOutcome,
    /// The context as the last handler left it.
    pub context: Value,
    /// Who was asked, in order.
    pub handlers: Vec<HandlerReport>,
}

/// Whether to go on.
#[derive(Debug, Clone)]
pub enum HookOutcome {
    /// With the context of the report.
    Continue,
    /// A handler has stopped what was about to happen.
    Veto {
        /// Who.
        plugin: Arc<str>,
        /// Why.
        reason: String,
    },
    /// A handler has failed, and the configuration has that stop the chain.
    Stopped {
        /// Whose.
        plugin: Arc<str>,
        /// Why.
        failure: Failure,
    },
}

/// What one handler did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HandlerReport {
    /// The plugin.
    pub plugin: String,
    /// `continue`, `replace`, `veto` or `error`.
    pub outcome: &'static str,
    /// Why it counts as an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// It audits: its outcome was recorded and not honoured.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub audited: bool,
    /// It was not asked: it is deterministic, and has answered the same question before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remembered: bool,
}
