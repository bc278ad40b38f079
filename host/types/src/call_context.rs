//! What a plugin is told about the call that it serves.

use std::time::Duration;

/// What the host tells a plugin about the call it serves.
#[derive(Debug, Clone, PartialEq)]
pub struct CallContext {
    /// Names this call among all calls of the host; the plugin may be asked to cancel it.
    pub call_id: String,
    /// The agent on whose behalf the call is made, where there is one.
    pub agent_id: Option<String>,
    /// The conversation or session that it belongs to, where there is one.
    pub session_id: Option<String>,
    /// The W3C Trace Context `traceparent` of the call. A plugin that makes requests of its own
    /// passes it on.
    pub traceparent: Option<String>,
    /// The time left when the call was handed over. The host enforces it; a plugin that knows
    /// it can stop early and say what it has.
    pub time_left: Option<Duration>,
    /// What else the host says of the call, as one JSON object: `tracestate` and `baggage` of the W3C, and
    /// members of its own.
    pub extra: Option<String>,
}
