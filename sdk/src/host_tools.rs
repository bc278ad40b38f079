//! The host's other tools. The manifest names them under `tools`.

use serde::Serialize;

pub use crate::bindings::base::tenon::plugin::types::{ToolAnnotations, ToolDefinition};
use crate::error::as_json;
use crate::imports::host_tools;
use crate::{Error, ToolResult};

/// The tools that the plugin may call, under the names that it calls them by.
///
/// # Errors
///
/// Where the host cannot say.
pub async fn list() -> Result<Vec<ToolDefinition>, Error> {
    host_tools::list_tools().await
}

/// Calls a tool with arguments that are a JSON object: `json!({ … })`, or a type that serializes to
/// one. That the tool could not do it is no error, but a result with
/// [`is_error`](ToolResult::is_error).
///
/// ```no_run
/// # async fn example() -> tenon_sdk::Result<String> {
/// let result = tenon_sdk::host_tools::call("slug", tenon_sdk::json!({ "text": "A b" })).await?;
/// Ok(result.plain_text())
/// # }
/// ```
///
/// # Errors
///
/// [`ErrorCode::Denied`](crate::ErrorCode::Denied) for a tool that is not granted, and those of the tool itself.
pub async fn call(name: impl Into<String>, arguments: impl Serialize) -> Result<ToolResult, Error> {
    host_tools::call_tool(name.into(), as_json("arguments", &arguments)?).await
}
