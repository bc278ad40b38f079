//! A plugin that runs in the host of a test.

use serde_json::Value;
use tempfile::TempDir;
use tenon_host::types::hook::HookPoint;
use tenon_host::types::{Completion, CompletionRequest, Evaluation, ToolResult};
use tenon_host::{Call, CallError, Caller, CompletionStream, HookReport, Platform};

use crate::ID;

/// A plugin that runs. Dropping it ends the host at once; [`Self::shutdown`] lets the plugin say
/// good-bye.
pub struct RunningPlugin {
    platform: Platform,
    /// Where the plugin is. It is needed for as long as the host runs.
    _folder: TempDir,
}

impl RunningPlugin {
    pub(crate) fn new(platform: Platform, folder: TempDir) -> Self {
        Self { platform, _folder: folder }
    }

    /// Calls a tool by the name that the plugin gives it.
    ///
    /// # Errors
    ///
    /// Those of the host. A tool that could not do what it was asked is none: its result says so.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, CallError> {
        self.platform.call(Call::new(self.tool_name(tool), arguments)).await
    }

    /// The name under which the host has a tool of the plugin.
    fn tool_name(&self, tool: &str) -> String {
        let registry = self.platform.registry();
        let known = registry
            .tools()
            .find(|(plugin, known)| plugin.id().as_ref() == ID && known.definition.name == tool);
        known.map_or_else(|| format!("{ID}__{tool}"), |(_, known)| known.name.to_string())
    }

    /// Has the plugin handle an event, whose context is an object. What its handler did is in the
    /// report.
    ///
    /// # Errors
    ///
    /// Where the context does not fit the point.
    pub async fn hook(&self, point: HookPoint, context: Value) -> Result<HookReport, CallError> {
        self.platform.fire(&point, context, &Caller::default()).await
    }

    /// Has a strategy judge a subject. Both the subject and the options are objects.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn evaluate(
        &self,
        strategy: &str,
        subject: Value,
        options: Value,
    ) -> Result<Evaluation, CallError> {
        let name = format!("{ID}/{strategy}");
        self.platform.evaluate(&name, subject, options, &Caller::default()).await
    }

    /// Has a model of the plugin answer in one piece.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn complete(&self, request: CompletionRequest) -> Result<Completion, CallError> {
        self.platform.complete(of_plugin(request), &Caller::default()).await
    }

    /// Has a model of the plugin answer piece by piece.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn stream(&self, request: CompletionRequest) -> Result<CompletionStream, CallError> {
        self.platform.stream(of_plugin(request), &Caller::default()).await
    }

    /// The host, for all else.
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// Ends the host, and lets the plugin say good-bye.
    pub async fn shutdown(self) {
        self.platform.shutdown().await;
    }
}

fn of_plugin(request: CompletionRequest) -> CompletionRequest {
    CompletionRequest { model: format!("{ID}/{}", request.model), ..request }
}
