//! All that is decided before the code of a plugin is loaded: what is configured, found, trusted, granted and
//! approved.
//!
//! | step | takes → gives |
//! |---|---|
//! | [`discover`](mod@discover) | configuration and folders → candidates and diagnostics |
//! | [`admit`](mod@admit) | a candidate and approvals → admitted, or a refusal |
//!
//! Nothing here runs a plugin, and nothing waits: neither wasmtime nor an executor is needed, so that a change here
//! is tested in seconds. Embedders find what they need of it in `tenon-host`; the command uses it directly.

pub mod admit;
pub mod approvals;
pub mod approver;
pub mod call_policy;
pub mod call_rule;
pub mod config;
pub mod contract;
pub mod diagnostic;
pub mod discover;
pub mod entry;
pub mod expand;
pub mod files;
#[cfg(any(test, fuzzing, feature = "testing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod grant;
pub mod host_environment;
pub mod ip_address;
pub mod json_file;
pub mod limits;
pub mod lock;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod log_capture;
pub mod loopback;
pub mod manifest;
pub mod path_context;
pub mod pins;
pub mod policy;
pub mod schema;
pub mod secret;
pub mod skills;
pub mod toml_parse;
pub mod tool_filter;
pub mod tool_hooks;

pub use config::{Config, ResourceTools};
pub use diagnostic::{Diagnostic, chain};
pub use discover::{PluginKind, trust};
pub use host_environment::HostEnvironment;
pub use limits::{LimitExceeded, Limits, SchemaLimitExceeded, TICK};
pub use secret::MASK;
pub use tool_filter::ToolFilter;
