//! The world of the bridge, generated.

#![allow(unreachable_pub, clippy::all)]

use tenon::plugin::types::{Error, ErrorCode};

#[cfg(not(feature = "http"))]
wit_bindgen::generate!({
    path: ["../../wit/plugin", "../../wit/bridge"],
    world: "tenon:bridge/mcp-bridge",
    generate_all,
    additional_derives: [Clone, PartialEq],
});

#[cfg(feature = "http")]
wit_bindgen::generate!({
    path: ["../../wit/plugin", "../../wit/bridge"],
    world: "tenon:bridge/remote-mcp-bridge",
    generate_all,
    additional_derives: [Clone, PartialEq],
});

/// The exports, wrapped so that they free the memory of their parameters.
#[cfg(target_arch = "wasm32")]
pub(crate) mod wrapped_exports {
    tenon_exports::exports! {
        cancellation: crate::bindings::exports::tenon::plugin::cancellation;
        completions: crate::bindings::exports::tenon::plugin::completions;
        lifecycle: crate::bindings::exports::tenon::plugin::lifecycle;
        prompts: crate::bindings::exports::tenon::plugin::prompts;
        resources: crate::bindings::exports::tenon::plugin::resources;
        subscriptions: crate::bindings::exports::tenon::plugin::subscriptions;
        tools: crate::bindings::exports::tenon::plugin::tools;
    }
}

impl Error {
    /// An error of this kind, with a message for people.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None, data: None }
    }

    pub(crate) fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidInput, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    pub(crate) fn cancelled(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Cancelled, message)
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Failed, message)
    }

    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Timeout, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }
}
