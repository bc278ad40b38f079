//! Write Tenon plugins in Rust.
//!
//! A plugin is a handful of annotated functions and one [`plugin!`] that names them. Built with
//! `cargo build --target wasm32-wasip2` it is a component that any Tenon host loads.
//!
//! ```
//! use tenon_sdk::{Result, plugin, tool};
//!
//! /// Greets somebody.
//! #[tool]
//! async fn greet(
//!     /// Whom to greet.
//!     name: String,
//! ) -> Result<String> {
//!     Ok(format!("Hello, {name}!"))
//! }
//!
//! plugin!(tools: [greet]);
//! # fn main() {}
//! ```
//!
//! Its name, its doc comment and the types of its parameters become the tool's name, description and
//! JSON Schema. All that a plugin contributes is written alike, and listed in [`plugin!`]:
//!
//! | part | what | written as |
//! |---|---|---|
//! | `tools: […]` | functions that a model calls | [`#[tool]`](macro@tool) |
//! | `hooks: […]` | a say at the points of a host's work | [`#[hook(before_plan)]`](macro@hook) |
//! | `evals: […]` | strategies that judge outputs | [`#[eval]`](macro@eval) |
//! | `resources: […]` | things to read, by their URIs | [`#[resource("notes://{name}")]`](macro@resource) |
//! | `subscriptions: […]` | those of the resources that tell of their changes | [`notify::resource_updated`] |
//! | `prompts: […]` | messages that a user chooses | [`#[prompt]`](macro@prompt) |
//! | `completions: […]` | those of the resources and prompts that suggest values | [`#[complete(…)]`](mod@completion) at a parameter |
//! | `provider: …` | language models | [`provider::Provider`] |
//! | `streaming_provider: …` | language models that stream | [`provider::StreamingProvider`] |
//!
//! The function stays a plain function, and tests call it natively: `testing::Host` is a host that a
//! test scripts.
//!
//! Arguments may be structs and enums. Cargo.toml names the crates of their derives, `serde` and `schemars`:
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use tenon_sdk::{Json, Result, plugin, tool};
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Point {
//!     x: f64,
//!     y: f64,
//! }
//!
//! /// Moves a point to the right.
//! #[tool]
//! async fn shift(point: Point, by: Option<f64>) -> Result<Json<Point>> {
//!     Ok(Json(Point { x: point.x + by.unwrap_or(1.0), ..point }))
//! }
//!
//! plugin!(tools: [shift]);
//! # fn main() {}
//! ```
//!
//! Arguments that a tool does not have are refused, and whatever does not fit is an error that says where and what was
//! expected: `` `stops[1].city` is 3 and has to be a string ``.
//!
//! A function fails with any error, by `?` or as its own [`Failure`].
//!
//! | feature | what it does |
//! |---|---|
//! | `anyhow` | errors of the contract keep their codes when `anyhow` carries them |
//! | `chrono`, `url`, `uuid` | types of that crate are arguments, with their formats in the schema |
//! | `log`, `tracing` | what is written with that crate goes to the host's log |
//!
//! Instances of a plugin come and go, so what it must know it reads from [`config`](mod@config). A
//! plugin that asks for one shared instance keeps things in memory with [`instance`](mod@instance).
//!
//! # Small components
//!
//! This profile makes a plugin as above a component of less than 150 KB:
//!
//! ```toml
//! [profile.release]
//! codegen-units = 1
//! lto = true
//! opt-level = "s"
//! panic = "abort"
//! strip = "symbols"
//! ```
//!
//! `crate-type = ["cdylib"]` stands alone: with an `rlib` beside it, cargo leaves the optimization at
//! link time out. What makes a component larger are types of one's own as arguments,
//! whose schemas are generated, regular expressions, and whatever formats with `{:?}`.
//!
//! # What a plugin can reach
//!
//! All that a plugin uses beyond its arguments its `plugin.toml` requests under `[capabilities]`, and
//! the user grants it or does not:
//!
//! | what | how | requested as |
//! |---|---|---|
//! | its configuration, the log, progress, news | [`config`](mod@config), [`log`](mod@log), [`Context`], [`notify`] | - |
//! | files | [`std::fs`], with absolute paths | `filesystem = ["read:~/notes/**"]` |
//! | variables of the environment | [`std::env::var`] | `environment = ["LANG"]` |
//! | HTTP | [`http`] | `network = ["https://api.example.com/*"]` |
//! | secrets | [`secrets`] | `secrets = ["api-key"]` |
//! | other tools | [`host_tools`] | `tools = ["text_tools__*"]` |
//! | language models | [`inference`] | `providers = ["a-model"]` |
//! | messages | [`messaging`] | `messaging = ["*"]` |
//! | the host's memory | [`memory`] | `memory = ["search"]` |
//! | what it keeps between calls | [`state`](mod@state) | `state = ["project"]` |
//! | the user | [`user`] | `user = ["ask"]` |
//!
//! The clock and randomness of `std` are there for every plugin; sockets, threads and processes for
//! none. What is not granted fails with an ordinary [`std::io::Error`] or with [`ErrorCode::Denied`].
//!
//! [`sleep`] waits, and needs no grant. Requests and pauses are async, so that other calls of the instance go on. Crates
//! over WASI 0.2 such as `waki` and `wstd` work as well, but the instance waits as a whole while they do.

// The attributes write paths of the crate's users, and tests of this crate have some.
#[cfg(test)]
extern crate self as tenon_sdk;

mod argument;
pub mod bindings;
mod check;
pub mod completion;
pub mod config;
mod content;
mod context;
mod error;
pub mod eval;
pub mod hook;
pub mod host_tools;
pub mod http;
mod imports;
pub mod inference;
pub mod instance;
pub mod log;
pub mod memory;
pub mod messaging;
mod nearest;
pub mod notify;
mod paging;
pub mod prompt;
pub mod provider;
pub mod resource;
mod schema;
pub mod secrets;
mod sleep;
pub mod state;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod tool;
pub mod user;

pub use argument::Arguments;
pub use content::{Content, Json, ToolResult};
pub use context::Context;
pub use error::{Error, ErrorCode, Failure, Result};
pub use resource::{ResourceContents, ResourceLink};
pub use sleep::sleep;
pub use tenon_sdk_macros::{eval, hook, plugin, prompt, resource, tool};

#[cfg(feature = "chrono")]
pub use chrono;
pub use schemars::{self, JsonSchema};
pub use serde::{self, Deserialize, Serialize};
pub use serde_json::{self, Value, json};
#[cfg(feature = "url")]
pub use url;
#[cfg(feature = "uuid")]
pub use uuid;

/// Fails where the crate that it stands in has no `plugin!` in its root, which leaves a mark there.
#[doc(hidden)]
#[macro_export]
#[allow(clippy::crate_in_macro_def)]
macro_rules! __require_plugin {
    () => {
        const _: () = {
            #[allow(unused_imports)]
            use $crate::__private::__TENON_PLUGIN;
            const _: () = {
                // Names of an inner block go before those of an outer one.
                #[allow(unused_imports)]
                use crate::*;
                ::core::assert!(
                    __TENON_PLUGIN,
                    "this crate has no `plugin!`, so the component would export nothing: list its functions in the \
                     root of the crate, as in `plugin!(tools: [greet]);`",
                );
            };
        };
    };
}

/// What the macros' expansions refer to. Not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::argument::{list, optional, required};
    pub use crate::bindings;
    pub use crate::bindings::base::tenon::plugin::types;
    pub use crate::bindings::evals::exports::tenon::plugin::evals::EvalDefinition;
    pub use crate::bindings::hooks::exports::tenon::plugin::hooks::HookOutcome;
    pub use crate::context::cancel;
    pub use crate::error::{parse_arguments, unknown};
    pub use crate::eval::parse_options;
    pub use crate::hook::{PointOfContext, WellKnownPointFallback, fits, is_among};
    pub use crate::log::install;
    pub use crate::schema::{
        ConstSchemaFallback, ConstSchemaOf, Parameter, are_known, input_schema, object, schema,
    };
    pub use crate::tool::{check_argument, parse_checked, parse_known};
    pub use wit_bindgen::spawn_local;

    /// Stands where a crate has no `plugin!`.
    pub const __TENON_PLUGIN: bool = false;
}
