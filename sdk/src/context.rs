//! What a function is told about the call it serves.

use std::time::Duration;

use crate::bindings::base::tenon::plugin::{notify, types::CallContext};

/// The call at hand. A parameter of type `&Context` receives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Context(CallContext);

impl Context {
    /// Names this call among all calls of the host.
    pub fn call_id(&self) -> &str {
        &self.0.call_id
    }

    /// The agent on whose behalf the call is made.
    pub fn agent_id(&self) -> Option<&str> {
        self.0.agent_id.as_deref()
    }

    /// The conversation or session that the call belongs to.
    pub fn session_id(&self) -> Option<&str> {
        self.0.session_id.as_deref()
    }

    /// The W3C Trace Context `traceparent` to pass on.
    pub fn traceparent(&self) -> Option<&str> {
        self.0.traceparent.as_deref()
    }

    /// How much time was left when the call was handed over.
    pub fn deadline(&self) -> Option<Duration> {
        self.0.deadline.map(Duration::from_millis)
    }

    /// Tells whoever waits how far the call has come.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        notify::progress(&self.0.call_id, progress, total, message);
    }
}

impl From<CallContext> for Context {
    fn from(context: CallContext) -> Self {
        Self(context)
    }
}
