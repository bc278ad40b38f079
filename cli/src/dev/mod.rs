//! A host for plugins that are being written: it builds what has changed, loads it with the rules of every host, runs its
//! tests, and takes calls meanwhile.
//!
//! [`Session`] is the loop. [`calls`] is what other commands have it call.

pub(crate) mod calls;
mod folder_watch;
mod session;
mod tests_of_plugin;

pub(crate) use calls::{DevCall, DevHost, call_running};
pub(crate) use session::{Session, plugin_problem};
