//! Host plugins of every kind through one typed component ABI.
//!
//! A plugin is a WebAssembly component in any language, an MCP server behind a bridge that is
//! itself such a component, a Rhai script, or Rust code of the host's own. Each goes through the
//! same five steps, and after the fourth nothing knows any more which kind it was:
//!
//! | step | takes → gives |
//! |---|---|
//! | [`discover`](mod@discover) | configuration and folders → candidates and diagnostics |
//! | [`admit`](mod@admit) | a candidate and approvals → admitted, or a refusal |
//! | [`load`] | an admitted candidate → a plugin that can be called |
//! | [`register`] | plugins → a registry of what they contribute |
//! | [`invoke`] | the registry and a call → its outcome |
//!
//! [`Platform`] takes plugins through all of them:
//!
//! ```no_run
//! use tenon_host::{Call, Config, Platform};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::parse(r#"plugins.wasm = ["text_tools.wasm"]"#, "tenon.toml")?;
//! let platform = Platform::builder().config(config).build().await?;
//! let arguments = serde_json::json!({ "text": "one two" });
//! let result = platform.call(Call::new("text_tools__count", arguments)).await?;
//! println!("{}", result.plain_text());
//! platform.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! This library never prints, never ends the process and never reads its arguments; what it takes
//! from the environment is in [`HostEnvironment`] and can be replaced.

mod call;
pub mod capability;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod invoke;
pub mod load;
mod observe;
mod platform;
pub mod register;
pub mod runtime;
mod schema;
mod server;
pub mod services;

pub use call::SHARED_TOOL_PLUGIN;
pub use invoke::stored_results::{STRUCTURED, URI as RESULT_URI};
pub use invoke::{Call, CallError, Caller};
pub use observe::event::{CallEvent, Event, PluginChange, Step, Subscription};
pub use observe::history;
pub use platform::{
    BuildError, Builder, Difference, OnChange, Platform, PluginReport, PluginState, Watch,
    WatchError,
};
pub use register::operation_tools::is_shared_tool;
pub use register::{KnownServer, disabled_tool};
pub use runtime::{Allocation, Builtin, CompletionStream, Failure, OuterCalls, Plugin, Usage};
pub use server::{BreakerState, ServerReport, ServerState, StartQueueProgress, Supervision};
pub use services::tls;
pub use tenon_config::{
    Config, Diagnostic, HostEnvironment, LimitExceeded, Limits, MASK, PluginKind, ResourceTools,
    SchemaLimitExceeded, TICK, ToolFilter, chain, trust,
};
pub use tenon_types::text::{one_line, visible, visible_json};
pub use tenon_types::{self as types, hook, mcp_json, name};

/// The second step: what policy, approvals and locks say of a candidate.
pub mod admit {
    pub use tenon_config::admit::{
        Admitted, Approvals, Contents, MissingPrerequisites, PluginStatus, Refusal, Rules,
        Snapshot, admit,
    };
}

/// What `tenon.toml` and `config.toml` say, as types.
pub mod config {
    pub use tenon_config::config::{
        CallContextSettings, CallHistorySettings, ClientSettings, CombineRule, Config, ConfigError,
        DiscoverySettings, EnvironmentPolicy, FileEntry, FileEntryTable, HandshakeMode,
        HookSettings, InstanceMode, Invisible, KEY_RULES, KeyRule, LogLevel, McpEntry,
        NameSettings, OnFailure, Origin, PluginKind, ResourceTools, ResultSettings, SideEffects,
        Supervision, ToolRule, Transport, WatchSettings,
    };
}

/// The first step: which plugins there are.
pub mod discover {
    pub use tenon_config::discover::{
        Candidate, Discovery, Origin, PluginKind, SkipReason, SkippedEntry, Sources, USER,
        WORKSPACE, discover, discover_trusted, id_of, is_id, trust,
    };
}

/// Files of a bounded size, and the digests of what is in them.
pub mod files {
    pub use tenon_config::files::{Digest, MAX_COMPONENT_BYTES, NoDigest, read, write_whole};
}

/// `tenon.lock`: what was installed.
pub mod lock {
    pub use tenon_config::lock::{FILE_NAME, LockError, LockFile, LockedPlugin};
}

/// The operator's rules: which plugins may load, and with which limits.
pub mod policy {
    pub use tenon_config::policy::{PluginPolicy, Policy, PolicyRefusal, Profile};
}
