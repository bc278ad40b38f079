//! Step five: calls of all kinds through one registry.
//!
//! `pipeline.rs` is the way of all that is asked of a plugin, from its name to its answer; `state.rs` is
//! what its steps leave for each other. What is particular to tools, resources and prompts, hooks,
//! evaluations and models is beside it.

pub(crate) mod call;
pub(crate) mod eval;
pub(crate) mod hooks;
pub(crate) mod mcp_operations;
mod pages;
pub(crate) mod permission;
mod pipeline;
pub(crate) mod prompts;
pub(crate) mod provider;
mod read_limit;
pub(crate) mod resources;
mod state;
pub(crate) mod stored_results;
mod truncate;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

pub use call::OUTPUT_MISMATCH;
pub(crate) use mcp_operations::OperationContext;
pub use provider::ServedModel;
pub use read_limit::ReadLimit;
pub use state::{REFUSED, USAGE};
pub use truncate::TRUNCATED;

use crate::call::{CallError, Failure};
use crate::invoke::permission::CallApprovalGate;
use crate::invoke::stored_results::ResultStore;
use crate::observe::PluginNotifications;
use crate::observe::history::HistoryHandle;
use crate::register::Registry;

/// What calls use besides the registry.
pub(crate) struct InvokeServices {
    pub(crate) news: PluginNotifications,
    pub(crate) history: Option<HistoryHandle>,
    pub(crate) results: Arc<ResultStore>,
    pub(crate) permissions: Arc<CallApprovalGate>,
    /// Whoever has the registry in which calls that begin now find what they call.
    pub(crate) latest: OnceLock<Weak<dyn LatestRegistry>>,
}

/// Has the registry in which calls that begin now find what they call.
pub(crate) trait LatestRegistry: Send + Sync {
    fn latest(&self) -> Arc<Registry>;
}

impl InvokeServices {
    /// The registry in which calls that begin now find what they call; nothing where the host is gone.
    fn latest_registry(&self) -> Option<Arc<Registry>> {
        Some(self.latest.get()?.upgrade()?.latest())
    }

    /// Whether anyone observes calls.
    fn are_watching(&self) -> bool {
        self.history.is_some() || self.news.events().are_heard()
    }
}

/// The span of whatever a plugin serves. All kinds of it have the same fields, and one that says
/// what is asked of the plugin.
macro_rules! span {
    ($what:literal, $plugin:expr, $caller:expr, $call:expr, $trace:expr, $field:ident = $value:expr) => {
        tracing::info_span!(
            $what,
            plugin = &**$plugin,
            $field = $value,
            call = $call,
            agent = $caller.agent_id,
            session = $caller.session_id,
            trace_id = $trace.as_ref().map(|trace: &$crate::call::TraceParent| trace.trace_id()),
            span_id = $trace.as_ref().map(|trace: &$crate::call::TraceParent| trace.span_id()),
            outcome = tracing::field::Empty,
        )
    };
}
pub(crate) use span;

/// The number of the next call.
fn next_call() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(1);
    CALLS.fetch_add(1, Ordering::Relaxed)
}

/// An operation had an answer of another kind, which cannot be.
fn another_answer(plugin: &str) -> CallError {
    let failure = Failure::Host("the answer is of another kind".into());
    CallError::Failed { plugin: plugin.into(), failure }
}
