//! Metrics of calls, through the `metrics` facade: the host's recorder gets them, if it has one.
//!
//! A recorder must be installed before plugins are loaded: what is counted for a tool is looked up
//! once, and not on each call.

use metrics::{Counter, Histogram, Unit, counter, describe_counter, describe_histogram, histogram};
use std::sync::Arc;
use std::time::Duration;

/// The calls of a tool that have ended: labels `plugin`, `tool` and `outcome` (`ok`, `tool-error`, `error`, or
/// `abandoned` where the caller gave the call up).
const CALLS: &str = "tenon_calls_total";

/// How long calls of a tool took, in seconds: labels `plugin` and `tool`.
const SECONDS: &str = "tenon_call_duration_seconds";

/// What is counted of one tool.
pub(crate) struct ToolMetrics {
    ok: Counter,
    tool_error: Counter,
    error: Counter,
    abandoned: Counter,
    seconds: Histogram,
}

/// Tells the recorder what is measured.
pub(crate) fn describe() {
    describe_counter!(CALLS, "Calls of tools that have ended, by plugin, tool and outcome.");
    describe_histogram!(SECONDS, Unit::Seconds, "How long calls of tools took.");
}

impl ToolMetrics {
    pub(crate) fn new(plugin: &Arc<str>, tool: &str) -> Self {
        let (plugin, tool) = (plugin.to_string(), tool.to_string());
        let calls = |outcome: &'static str| counter!(CALLS, "plugin" => plugin.clone(), "tool" => tool.clone(), "outcome" => outcome);
        Self {
            ok: calls("ok"),
            tool_error: calls("tool-error"),
            error: calls("error"),
            abandoned: calls("abandoned"),
            seconds: histogram!(SECONDS, "plugin" => plugin.clone(), "tool" => tool.clone()),
        }
    }

    /// Counts a call that has ended with this word.
    pub(crate) fn count(&self, outcome: &str, took: Duration) {
        match outcome {
            "ok" => self.ok.increment(1),
            "tool-error" => self.tool_error.increment(1),
            "abandoned" => self.abandoned.increment(1),
            _ => self.error.increment(1),
        }
        self.seconds.record(took);
    }
}
