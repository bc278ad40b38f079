//! Step four: from plugins to a registry of what they contribute.
//!
//! Definitions are checked one by one: a bad one is dropped with a diagnostic, and the plugin's
//! others stay. A registry does not change; when a plugin does, there is a new one.

pub(crate) mod call_settings;
mod catalog;
pub(crate) mod hook_answer_cache;
mod known_server;
pub(crate) mod operation_tools;
mod registration;
mod registry;
pub(crate) mod tool_metrics;

pub use catalog::{CatalogFilter, CatalogTool, PromptFilter, ToolCatalog};
pub use known_server::KnownServer;
pub use registration::{DeclaredTool, RegisteredEval, RegisteredPlugin};
pub(crate) use registration::{learn, register, register_again, register_as};
pub(crate) use registry::{HookHandler, RegistrySettings, ResolvedTool, ServedBy};
pub use registry::{Registry, Tool, disabled_tool};
