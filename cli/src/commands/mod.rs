//! One file for each verb: its arguments, and what it does.

pub(crate) mod approve;
pub(crate) mod build;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod history;
pub(crate) mod hook;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod new;
pub(crate) mod plugins;
pub(crate) mod prompts;
pub(crate) mod publish;
pub(crate) mod resources;
pub(crate) mod revoke;
pub(crate) mod serve;
pub(crate) mod skills;
pub(crate) mod state;
pub(crate) mod token;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod uninstall;
pub(crate) mod watch;
