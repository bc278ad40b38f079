//! A host for plugins that are being written: it builds what has changed, loads it with the rules of every host, runs its
//! tests, and takes calls meanwhile.
//!
//! [`Session`] is the loop. [`call_socket`] is what other commands have it call.

pub(crate) mod call_socket;
mod folder_watch;
mod session;
mod tests_of_plugin;

pub(crate) use call_socket::{DevHost, ForwardedCall, call_running};
pub(crate) use session::{Session, plugin_problem};
