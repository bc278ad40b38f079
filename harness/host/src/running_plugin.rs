//! A plugin that runs in the host of a test.

use serde_json::Value;
use std::sync::Arc;
use tempfile::TempDir;
use tenon_host::types::hook::HookPoint;
use tenon_host::types::{
    ArgumentCompletion, Completion, CompletionRequest, Evaluation, FormRequest, ListedResource,
    Prompt, PromptDefinition, ResourceContents, ResourceTemplate, Suggestions, ToolResult,
    UrlRequest,
};
use tenon_host::{Call, CallError, Caller, CompletionStream, HookReport, Platform};

use crate::cassette::Cassette;
use crate::client::ClientRequestLogs;
use crate::http::Network;
use crate::{HttpAnswer, HttpRequest, ID, State};

/// A plugin that runs. Dropping it ends the host at once; [`Self::shutdown`] lets the plugin say
/// good-bye.
pub struct RunningPlugin {
    platform: Platform,
    caller: Caller,
    asked: Arc<ClientRequestLogs>,
    state: State,
    network: Network,
    cassette: Option<Cassette>,
    /// Where the plugin is. It is needed for as long as the host runs.
    folder: Arc<TempDir>,
}

impl RunningPlugin {
    pub(crate) fn new(
        platform: Platform,
        asked: Arc<ClientRequestLogs>,
        state: State,
        network: Network,
        cassette: Option<Cassette>,
        folder: TempDir,
    ) -> Self {
        let (caller, folder) = (Caller::default(), Arc::new(folder));
        Self { platform, caller, asked, state, network, cassette, folder }
    }

    /// Returns the same plugin, called on behalf of another caller: an agent, a session, or one with less time.
    pub fn with_caller(&self, caller: Caller) -> Self {
        Self {
            platform: self.platform.clone(),
            caller,
            asked: self.asked.clone(),
            state: self.state.clone(),
            network: self.network.clone(),
            cassette: self.cassette.clone(),
            folder: self.folder.clone(),
        }
    }

    /// Calls a tool by the name that the plugin gives it.
    ///
    /// # Errors
    ///
    /// Those of the host. A tool that could not do what it was asked is none: its result says so.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, CallError> {
        let (name, caller) = (self.tool_name(tool), self.caller.clone());
        self.platform.call(Call { name, arguments, caller }).await
    }

    /// The name under which the host has a tool of the plugin.
    fn tool_name(&self, tool: &str) -> String {
        let registry = self.platform.registry();
        let known = registry
            .tools()
            .find(|(plugin, known)| plugin.id().as_ref() == ID && known.definition.name == tool);
        known.map_or_else(|| format!("{ID}__{tool}"), |(_, known)| known.name.to_string())
    }

    /// Returns the calls of the cassette that the plugin has not made so far, where one is played.
    pub fn unplayed_calls(&self) -> Vec<String> {
        self.cassette.as_ref().map(Cassette::unplayed).unwrap_or_default()
    }

    /// Has the plugin handle an event, whose context is an object. What its handler did is in the
    /// report.
    ///
    /// # Errors
    ///
    /// Where the context does not fit the point.
    pub async fn hook(&self, point: HookPoint, context: Value) -> Result<HookReport, CallError> {
        self.platform.fire(&point, context, &self.caller).await
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
        self.platform.evaluate(&name, subject, options, &self.caller).await
    }

    /// Has a model of the plugin answer in one piece.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn complete(&self, request: CompletionRequest) -> Result<Completion, CallError> {
        self.platform.complete(of_plugin(request), &self.caller).await
    }

    /// Has a model of the plugin answer piece by piece.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn stream(&self, request: CompletionRequest) -> Result<CompletionStream, CallError> {
        self.platform.stream(of_plugin(request), &self.caller).await
    }

    /// Lists the resources of the plugin.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn resources(&self) -> Result<Vec<ListedResource>, CallError> {
        self.platform.resources(ID, &self.caller).await
    }

    /// Lists the templates of the plugin's resources.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn resource_templates(&self) -> Result<Vec<ResourceTemplate>, CallError> {
        self.platform.resource_templates(ID, &self.caller).await
    }

    /// Reads a resource of the plugin.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<ResourceContents>, CallError> {
        self.platform.read_resource(ID, uri, &self.caller).await
    }

    /// Lists the prompts of the plugin.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn prompts(&self) -> Result<Vec<PromptDefinition>, CallError> {
        self.platform.prompts(ID, &self.caller).await
    }

    /// Fills in a prompt of the plugin.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: &[(&str, &str)],
    ) -> Result<Prompt, CallError> {
        let arguments = arguments.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        self.platform.prompt(ID, name, arguments.collect(), &self.caller).await
    }

    /// Suggests values for an argument of a prompt or resource template.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn suggest(&self, argument: ArgumentCompletion) -> Result<Suggestions, CallError> {
        self.platform.suggest(ID, argument, &self.caller).await
    }

    /// The forms that the user was asked to fill in so far.
    pub fn forms(&self) -> Vec<FormRequest> {
        self.asked.forms.all()
    }

    /// The pages that the user was asked to open so far.
    pub fn pages(&self) -> Vec<UrlRequest> {
        self.asked.pages.all()
    }

    /// The requests to the default model so far.
    pub fn model_requests(&self) -> Vec<CompletionRequest> {
        self.asked.model.all()
    }

    /// What the plugin keeps.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What the plugin requested over HTTP so far, where the test answers ([`TestHost::http`](crate::TestHost::http)).
    pub fn http_requests(&self) -> Vec<HttpRequest> {
        self.network.requests()
    }

    /// The answers of the test that no request has had so far.
    pub fn unused_http_answers(&self) -> Vec<HttpAnswer> {
        self.network.unused_answers()
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
