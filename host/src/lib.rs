//! Host plugins of every kind through one typed component ABI.
//!
//! A plugin is a WebAssembly component in any language, an MCP server behind a bridge that is
//! itself such a component, a Rhai script, or Rust code of the host's own. Each goes through the
//! same five steps, and after the fourth nothing knows any more which kind it was:
//!
//! | step | takes → gives |
//! |---|---|
//! | `discover` | configuration and folders → candidates and diagnostics |
//! | `admit` | a candidate and approvals → admitted, or a refusal |
//! | `load` | an admitted candidate → a plugin that can be called |
//! | `register` | plugins → a [`Registry`] of what they contribute |
//! | `invoke` | the registry and a [`Call`] → its outcome |
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
pub mod call_policy;
mod capability;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod invoke;
mod load;
pub mod meta;
mod observe;
mod platform;
mod register;
pub mod runs;
mod runtime;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;

pub use call::{
    Call, CallError, CallFingerprint, CallKind, CallRefusal, Caller, Failure, HandlerReport,
    HookOutcome, HookReport, OuterCalls, StartedFlag, Usage,
};
pub use capability::network::NetworkTraffic;
pub use capability::server::{
    AccessRecorder, ConfinementState, ServerReport, StartQueueProgress, UngrantedAccesses,
};
pub use capability::services;
pub use invoke::stored_results::URI as RESULT_URI;
pub use invoke::{ReadLimit, ServedModel};
pub use load::{SettingsError, check_default_settings, check_settings};
pub use observe::event::{
    BreakerState, CallEvent, DiskChange, Event, ServerState, Step, Subscription,
};
pub use observe::history;
pub use platform::{
    BuildError, Builder, Difference, OnChange, Platform, PluginReport, PluginState, Watch,
    WatchError,
};
pub use register::{
    CachedServer, DeclaredTool, RegisteredEval, RegisteredPlugin, Registry, Tool, disabled_tool,
};
pub use runtime::{
    Allocation, Builtin, CompletionStream, EngineError, Plugin, ResourceRequest, ScriptLoadError,
    check_script, count_thread_memory, speaks,
};
pub use tenon_config::config::{Config, ConfigError};
pub use tenon_config::grant::{CapabilityStatus, NeedStatus};
pub use tenon_config::skills::{PluginSkills, Skill};
pub use tenon_config::{
    Diagnostic, HostEnvironment, LimitExceeded, Limits, PluginKind, SchemaLimitExceeded,
};
pub use tenon_confinement::{NOT_CONFINED, run_launcher};
pub use tenon_types as types;
