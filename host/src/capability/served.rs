//! The calls that an instance serves: on whose behalf it turns to the host, and who is told of refusals.

use std::sync::Arc;
use tenon_types::LogLevel;
use tracing::Span;

use super::granted::GrantedCapabilities;
use super::lifecycle::PluginContext;
use crate::call::{Caller, CurrentCall};
use crate::observe::PluginLog;

/// A call that an instance serves.
struct ServedCall {
    id: Arc<str>,
    current_call: Option<Arc<CurrentCall>>,
}

/// The calls that an instance serves, and whose instance it is.
pub(crate) struct ServedCalls {
    context: Arc<PluginContext>,
    calls: Vec<ServedCall>,
}

impl ServedCalls {
    /// None, of an instance of this plugin.
    pub(crate) fn new(context: Arc<PluginContext>) -> Self {
        Self { context, calls: Vec::new() }
    }

    /// The plugin's identifier.
    pub(crate) fn plugin(&self) -> &Arc<str> {
        &self.context.id
    }

    /// How the plugin speaks in the log.
    pub(crate) fn log(&self) -> &Arc<PluginLog> {
        &self.context.log
    }

    /// What the plugin was lent.
    pub(crate) fn granted(&self) -> &Arc<GrantedCapabilities> {
        &self.context.granted
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.calls.len()
    }

    /// A call begins.
    pub(crate) fn begin(&mut self, id: Arc<str>, current_call: Option<Arc<CurrentCall>>) {
        self.calls.push(ServedCall { id, current_call });
    }

    /// A call is over.
    pub(crate) fn end(&mut self, id: &Arc<str>) {
        // The oldest is nearly always the first to end.
        if let Some(at) = self.calls.iter().position(|call| Arc::ptr_eq(&call.id, id)) {
            self.calls.remove(at);
        }
    }

    /// Whether the instance serves a call of this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.calls.iter().any(|call| &*call.id == id)
    }

    /// The calls that the instance serves: the one of this id, or all where none is said.
    pub(crate) fn meant(&self, id: Option<&str>) -> Vec<Arc<CurrentCall>> {
        let meant = self.calls.iter().filter(|call| id.is_none_or(|id| *call.id == *id));
        meant.filter_map(|call| call.current_call.clone()).collect()
    }

    /// The span of the call that the instance serves; none where it serves several, of which each
    /// could be meant.
    pub(crate) fn span(&self) -> Span {
        match &self.calls[..] {
            [ServedCall { current_call: Some(current_call), .. }] => current_call.span().cloned(),
            _ => None,
        }
        .unwrap_or_else(Span::none)
    }

    /// What the plugin was lent that turns to the host, and on whose behalf it does. Of several
    /// calls that the instance serves each could be meant: the chain that is longest counts, and
    /// who they are not all made for is not named.
    pub(crate) fn access_and_caller(&self) -> (Arc<GrantedCapabilities>, Caller) {
        let mut callers = self
            .calls
            .iter()
            .filter_map(|call| Some(call.current_call.as_ref()?.calls_others_for()));
        let first = callers.next().unwrap_or_default();
        let caller = callers.fold(first, |mut common, other| {
            let Caller {
                agent_id,
                session_id,
                traceparent,
                depth,
                outer,
                by: _,
                timeout: _,
                raw: _,
            } = other;
            common.agent_id = common.agent_id.filter(|id| agent_id.as_ref() == Some(id));
            common.session_id = common.session_id.filter(|id| session_id.as_ref() == Some(id));
            common.traceparent = common.traceparent.filter(|id| traceparent.as_ref() == Some(id));
            common.depth = common.depth.max(depth);
            common.outer.extend(outer);
            common
        });
        (self.granted().clone(), caller)
    }

    /// Where refusals go: of several calls that the instance serves each could be meant, and none
    /// is told.
    pub(crate) fn refusals(&self) -> RefusalReporter {
        let current_call = match &self.calls[..] {
            [ServedCall { current_call, .. }] => current_call.clone(),
            _ => None,
        };
        RefusalReporter { context: self.context.clone(), current_call }
    }
}

/// Where refusals go that a guest gets to know as a mere code: to the log, and to who called.
#[derive(Clone)]
pub(crate) struct RefusalReporter {
    context: Arc<PluginContext>,
    current_call: Option<Arc<CurrentCall>>,
}

impl RefusalReporter {
    /// What the plugin tried was not granted; `value` would have allowed it.
    pub(crate) fn not_granted(&self, tried: &str, capability: &str, value: &str) {
        self.say(self.context.granted.not_granted(tried, capability, value));
    }

    /// What the plugin tried is covered by no glob, for what it is; `value` would have allowed it.
    pub(crate) fn protected(&self, tried: &str, capability: &str, value: &str, what: &str) {
        self.say(self.context.granted.protected(tried, capability, value, what));
    }

    /// The plugin looked whether something is there that it was not granted. Libraries look for much
    /// that they can do without.
    pub(crate) fn looked(&self, tried: &str, capability: &str, value: &str) {
        let words = self.context.granted.not_granted(tried, capability, value);
        self.span().in_scope(|| self.context.log.write(LogLevel::Debug, &words, &[]));
    }

    /// What the plugin tried cannot be granted.
    pub(crate) fn never(&self, what: &str) {
        self.say(format!("plugin \"{}\": {what} is never granted", self.context.id));
    }

    /// Says it in these words.
    pub(crate) fn say(&self, words: String) {
        let logged = words.clone();
        self.say_and_log(words, &logged);
    }

    /// Says it in these words, and in others to the operator.
    pub(crate) fn say_and_log(&self, words: String, logged: &str) {
        let written = self.span().in_scope(|| self.context.log.write(LogLevel::Warn, logged, &[]));
        if let Some(current_call) = &self.current_call {
            current_call.refused(words, written);
        }
    }

    /// The span of the call that is being served.
    pub(crate) fn span(&self) -> Span {
        self.current_call
            .as_ref()
            .and_then(|current_call| current_call.span().cloned())
            .unwrap_or_else(Span::none)
    }
}
