//! Who stands between plugins and what they ask of others.

use async_trait::async_trait;
use serde_json::Value;
use std::pin::Pin;
use tenon_types::{Completion, CompletionRequest, Error, ToolResult};

/// What a plugin asks for, as it would be done. It is not begun before it is polled.
pub type HostCall<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Stands between plugins and what they ask of others: records it, or answers in their place. What it sees was granted. For
/// tests of plugins; the requests of MCP servers that are reached over HTTP do not pass it.
///
/// Each method does what the plugin asks for, unless it is written otherwise.
#[async_trait]
pub trait HostCallInterceptor: Send + Sync + 'static {
    /// A plugin calls a tool of another one.
    ///
    /// # Errors
    ///
    /// What the plugin gets to see.
    async fn call_tool(
        &self,
        name: &str,
        arguments: &Value,
        call: HostCall<'_, ToolResult>,
    ) -> Result<ToolResult, Error> {
        let _ = (name, arguments);
        call.await
    }

    /// A plugin asks a language model.
    ///
    /// # Errors
    ///
    /// What the plugin gets to see.
    async fn complete(
        &self,
        request: &CompletionRequest,
        call: HostCall<'_, Completion>,
    ) -> Result<Completion, Error> {
        let _ = request;
        call.await
    }

    /// A plugin sends a request over HTTP. Both bodies are here as a whole.
    ///
    /// # Errors
    ///
    /// Why there is no response. What is denied the plugin sees as refused, and its log has the words.
    async fn fetch(
        &self,
        request: &http::Request<Vec<u8>>,
        call: HostCall<'_, http::Response<Vec<u8>>>,
    ) -> Result<http::Response<Vec<u8>>, Error> {
        let _ = request;
        call.await
    }
}
