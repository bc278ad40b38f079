//! Metrics of calls, through the `metrics` facade: the host's recorder gets them, if it has one.
//!
//! A recorder must be installed before plugins are loaded: what is counted for a tool is looked up
//! once, and not on each call.

use metrics::{Counter, Histogram, counter, histogram};
use std::sync::Arc;
use std::time::Duration;

/// The calls of a tool that have ended: labels `plugin`, `tool` and `outcome` (`ok`, `tool-error`
/// or `error`).
const CALLS: &str = "tenon_calls_total";

/// How long calls of a tool took, in seconds: labels `plugin` and `tool`.
const SECONDS: &str = "tenon_call_duration_seconds";

/// What is counted of one tool.
pub(crate) struct ToolMetrics {
    ok: Counter,
    tool_error: Counter,
    error: Counter,
    seconds: Histogram,
}

impl ToolMetrics {
    pub(crate) fn new(plugin: &Arc<str>, tool: &str) -> Self {
        let (plugin, tool) = (plugin.to_string(), tool.to_string());
        let calls = |outcome: &'static str| counter!(CALLS, "plugin" => plugin.clone(), "tool" => tool.clone(), "outcome" => outcome);
        Self {
            ok: calls("ok"),
            tool_error: calls("tool-error"),
            error: calls("error"),
            seconds: histogram!(SECONDS, "plugin" => plugin.clone(), "tool" => tool.clone()),
        }
    }

    /// Counts a call that has ended with this word.
    pub(crate) fn count(&self, outcome: &str, took: Duration) {
        match outcome {
            "ok" => self.ok.increment(1),
            "tool-error" => self.tool_error.increment(1),
            _ => self.error.increment(1),
        }
        self.seconds.record(took);
    }
}
