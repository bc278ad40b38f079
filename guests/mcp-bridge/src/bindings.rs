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
