//! What a host can watch while it runs.

use std::sync::Arc;

/// Something that happened. Events that nobody reads in time are dropped.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A plugin registered again, because it said that what it contributes has changed.
    Registered {
        /// The plugin.
        plugin: Arc<str>,
    },
    /// A plugin said that it had changed, and could not register again. What it contributed before
    /// stays.
    NotRegistered {
        /// The plugin.
        plugin: Arc<str>,
        /// Why not.
        problem: String,
    },
    /// A call has come so far.
    Progress {
        /// The plugin that serves it.
        plugin: Arc<str>,
        /// The call.
        call_id: String,
        /// How far.
        progress: f64,
        /// How far it is to the end, where that is known.
        total: Option<f64>,
        /// What is being done.
        message: Option<String>,
    },
}
