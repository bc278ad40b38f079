//! Who is told of calls and plugins: watchers, by [`event`]s; the record, in [`history`]; the operator's log; and the
//! host, of what plugins say without being asked.

pub(crate) mod event;
pub mod history;
mod plugin_log;
mod plugin_notifications;

pub(crate) use plugin_log::{PluginLog, RateLimiter};
pub(crate) use plugin_notifications::PluginNotifications;
