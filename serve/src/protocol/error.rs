//! Errors of the protocol: JSON-RPC's, and MCP's own.

use serde::Serialize;
use serde_json::{Value, json};

use super::version;

/// The `error` of a response.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

/// The message is no JSON.
pub(crate) const PARSE: i32 = -32700;
/// It is JSON and no request.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// There is no such method, or no longer in this era.
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters are wrong, or name what is not there.
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// The server failed.
pub(crate) const INTERNAL: i32 = -32603;
/// Legacy: there is no such resource.
pub(crate) const RESOURCE_NOT_FOUND: i32 = -32002;
/// Modern: a header contradicts the body.
pub(crate) const HEADER_MISMATCH: i32 = -32020;
/// Modern: the request needs a capability that the client has not declared.
pub(crate) const MISSING_CAPABILITY: i32 = -32021;
/// Modern: the revision is unknown.
pub(crate) const UNSUPPORTED_VERSION: i32 = -32022;
/// Ours: too many requests, see `data.retryAfterMs`. Codes outside of -32768…-32000 are free.
pub(crate) const RATE_LIMITED: i32 = -31001;
/// Ours: the server is shutting down, or has no room for the request.
pub(crate) const UNAVAILABLE: i32 = -31002;

impl RpcError {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(crate) fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("there is no method {method:?}"))
    }

    pub(crate) fn unsupported_version(requested: &str) -> Self {
        let supported: Vec<&str> = version::all().collect();
        let message = format!(
            "the revision {requested:?} is not supported; supported are {}",
            supported.join(", ")
        );
        let data = json!({ "supported": supported, "requested": requested });
        Self::new(UNSUPPORTED_VERSION, message).with_data(data)
    }

    pub(crate) fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(HEADER_MISMATCH, message)
    }

    /// The request needs these members of `ClientCapabilities`, which the client has not declared.
    pub(crate) fn missing_capability(required: Value) -> Self {
        let names: Vec<&String> =
            required.as_object().into_iter().flat_map(|map| map.keys()).collect();
        let message = format!(
            "the request needs a capability that the client has not declared: {}",
            names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
        );
        Self::new(MISSING_CAPABILITY, message)
            .with_data(json!({ "requiredCapabilities": required }))
    }

    /// The HTTP status of a modern response with this error.
    pub(crate) fn status(&self) -> u16 {
        match self.code {
            METHOD_NOT_FOUND => 404,
            PARSE | INVALID_REQUEST | INVALID_PARAMS | HEADER_MISMATCH | MISSING_CAPABILITY
            | UNSUPPORTED_VERSION => 400,
            RATE_LIMITED => 429,
            UNAVAILABLE => 503,
            _ => 200,
        }
    }
}
