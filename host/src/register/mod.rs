//! Step four: from plugins to a registry of what they contribute.
//!
//! Definitions are checked one by one: a bad one is dropped with a diagnostic, and the plugin's
//! others stay. A registry does not change; when a plugin does, there is a new one.

mod cached_server;
pub(crate) mod call_settings;
mod catalog;
pub(crate) mod hook_answer_cache;
pub(crate) mod operation_tools;
mod registration;
mod registry;
pub(crate) mod tool_metrics;

pub use cached_server::CachedServer;
pub use catalog::{CatalogFilter, CatalogTool, PromptFilter, ToolCatalog};
pub use registration::{DeclaredTool, RegisteredEval, RegisteredPlugin};
pub(crate) use registration::{learn, register, register_again, register_as};
pub(crate) use registry::{HookHandler, RegistrySettings, ResolvedTool, ServedBy};
pub use registry::{Registry, Tool, disabled_tool};
