//! What plugins say without being asked: to the operator's log, and to the host.

mod notifications;
mod plugin_log;

pub(crate) use notifications::PluginNotifications;
pub(crate) use plugin_log::{PluginLog, RateLimiter};
