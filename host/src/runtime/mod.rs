//! What a plugin is once it is loaded: one trait over the generated types, and one file for each
//! kind of plugin that implements it.
//!
//! Nothing here knows names, hooks or policy, and nothing outside knows which kind a plugin is. An
//! implementation is finished with a call when the future it returned is dropped: that is how
//! deadlines and cancellation reach it, whatever the kind.

mod activity;
mod builtin;
mod drain;
mod handle;
mod rhai;
pub(crate) mod schema;
mod supervised_bridge;
mod tool_hooks;
pub(crate) mod wasm;

use async_trait::async_trait;
use futures::future::BoxFuture;
use std::sync::Arc;
use tenon_config::secret::Redactor;
use tenon_types::{
    ArgumentCompletion, CallContext, Completion, CompletionRequest, Evaluation, HookDecision,
    HookEvent, Json, ModelInfo, Prompt, PromptPage, Registration, ResourceContents, ResourcePage,
    Suggestions, TemplatePage, ToolResult,
};

use crate::call::Failure;
pub use builtin::{Builtin, ResourceRequest};
pub(crate) use drain::{RetiringPlugin, UseToken};
pub(crate) use handle::PluginHandle;
pub use rhai::{
    MAX_RUN_DATA_BYTES, MAX_RUN_SCRIPT_BYTES, PromotedScript, RunLimits, ScriptLoadError,
    check_script, count_thread_memory,
};
pub(crate) use rhai::{
    RhaiPlugin, RunAnswer, RunCall, RunEnd, RunHost, RunScript, RunStopped, ScriptSetup, Threads,
    ToolFunctions, ToolQuery, promote, value_of,
};
pub(crate) use supervised_bridge::SupervisedBridge;
pub(crate) use wasm::EngineOptions;
pub use wasm::stream::CompletionStream;
pub(crate) use wasm::stream::StreamedCall;
pub use wasm::{Allocation, EngineError, speaks};

use crate::call::escape;
use crate::call::mask::Unmasked;

/// A plugin of any kind.
///
/// Embedders implement it for built-in plugins; [`Builtin`] does so for the common case. What a
/// plugin does not contribute it need not implement: the host asks for nothing that `register` did
/// not list.
#[async_trait]
pub trait Plugin: Send + Sync + 'static {
    /// Says who the plugin is and what it contributes.
    async fn register(&self) -> Result<Registration, Failure>;

    /// What must be over before the plugin can be called, and has a time of its own that is not the
    /// call's: a server that is started when it is called. It goes on when it is not waited for.
    fn starting(&self) -> Option<BoxFuture<'_, Result<(), Failure>>> {
        None
    }

    /// Calls a tool. The arguments are an object that matches the tool's schema.
    async fn call_tool(
        &self,
        name: &str,
        arguments: Json,
        context: CallContext,
    ) -> Result<ToolResult, Failure> {
        let _ = (name, arguments, context);
        Err(Failure::Unsupported("tools"))
    }

    /// Handles an event.
    async fn handle(&self, event: HookEvent) -> Result<HookDecision, Failure> {
        let _ = event;
        Err(Failure::Unsupported("hooks"))
    }

    /// Lists the models of the plugin's providers.
    async fn models(&self) -> Result<Vec<ModelInfo>, Failure> {
        Err(Failure::Unsupported("a provider"))
    }

    /// Answers a request to a model in one piece.
    async fn complete(
        &self,
        request: CompletionRequest,
        context: CallContext,
    ) -> Result<Completion, Failure> {
        let _ = (request, context);
        Err(Failure::Unsupported("a provider"))
    }

    /// Answers a request to a model piece by piece. A provider that cannot gives its whole answer
    /// as one piece.
    async fn stream(
        &self,
        request: CompletionRequest,
        context: CallContext,
    ) -> Result<CompletionStream, Failure> {
        self.complete(request, context).await.map(CompletionStream::from)
    }

    /// Scores a subject. Subject and options are objects.
    async fn evaluate(
        &self,
        strategy: &str,
        subject: Json,
        options: Json,
        context: CallContext,
    ) -> Result<Evaluation, Failure> {
        let _ = (strategy, subject, options, context);
        Err(Failure::Unsupported("evals"))
    }

    /// Lists a page of resources.
    async fn list_resources(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<ResourcePage, Failure> {
        let _ = (cursor, context);
        Err(Failure::Unsupported("resources"))
    }

    /// Lists a page of resource templates.
    async fn list_templates(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<TemplatePage, Failure> {
        let _ = (cursor, context);
        Err(Failure::Unsupported("resources"))
    }

    /// Reads a resource.
    async fn read_resource(
        &self,
        uri: &str,
        context: CallContext,
    ) -> Result<Vec<ResourceContents>, Failure> {
        let _ = (uri, context);
        Err(Failure::Unsupported("resources"))
    }

    /// Asks to be told when a resource changes, or not to be told any more.
    async fn subscribe(
        &self,
        uri: &str,
        wanted: bool,
        context: CallContext,
    ) -> Result<(), Failure> {
        let _ = (uri, wanted, context);
        Err(Failure::Unsupported("subscriptions"))
    }

    /// Lists a page of prompts.
    async fn list_prompts(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<PromptPage, Failure> {
        let _ = (cursor, context);
        Err(Failure::Unsupported("prompts"))
    }

    /// Fills in a prompt.
    async fn get_prompt(
        &self,
        name: &str,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> Result<Prompt, Failure> {
        let _ = (name, arguments, context);
        Err(Failure::Unsupported("prompts"))
    }

    /// Suggests values for an argument of a prompt or of a resource template.
    async fn suggest(
        &self,
        argument: ArgumentCompletion,
        context: CallContext,
    ) -> Result<Suggestions, Failure> {
        let _ = (argument, context);
        Err(Failure::Unsupported("completions"))
    }

    /// Ends what the plugin keeps running for a session. Calls in flight of that session are given up.
    async fn end_session(&self, session: &str) {
        let _ = session;
    }

    /// Ends what the plugin keeps running, unless it is in use, and returns whether it did. The next call starts
    /// it again, after `then` was called.
    async fn end_unused(&self, then: Box<dyn FnOnce() + Send>) -> bool {
        drop(then);
        false
    }

    /// Ends what the plugin keeps running. Calls in flight are given up.
    async fn shutdown(&self) {}
}

/// The most tools of one plugin; and the most strategies, hook points and providers.
pub(crate) const MAX_TOOLS_PER_PLUGIN: usize = 2_000;

/// What a plugin answered, as it is registered: what counts of it, without secrets, and safe to be
/// shown.
pub(crate) fn as_registered(
    redactor: &Arc<Redactor>,
    registration: Unmasked<Result<Registration, Failure>>,
) -> Result<Registration, Failure> {
    let registration = registration.map(|registration| {
        let mut registration = registration?;
        // One more says that there are more.
        registration.tools.truncate(MAX_TOOLS_PER_PLUGIN + 1);
        Ok(registration)
    });
    registration.mask(redactor).into_inner().map(escape::registration)
}
