//! A loaded plugin as the host asks it: its answers come out of it unmasked, and say so.

use futures::FutureExt;
use futures::future::BoxFuture;
use tenon_types::{
    ArgumentCompletion, CallContext, Completion, CompletionRequest, Evaluation, HookDecision,
    HookEvent, Json, ModelInfo, Prompt, PromptPage, Registration, ResourceContents, ResourcePage,
    Suggestions, TemplatePage, ToolResult,
};

use super::{CompletionStream, Plugin};
use crate::call::Failure;
use crate::call::mask::Unmasked;

/// A loaded plugin. Its methods are those of [`Plugin`]; what they give shows nothing before it is
/// masked.
#[derive(Clone, Copy)]
pub(crate) struct PluginHandle<'a>(&'a dyn Plugin);

type UnmaskedAnswer<T> = Unmasked<Result<T, Failure>>;

impl<'a> PluginHandle<'a> {
    pub(crate) fn new(plugin: &'a dyn Plugin) -> Self {
        Self(plugin)
    }

    /// As [`Plugin::starting`].
    pub(crate) fn starting(self) -> Option<BoxFuture<'a, Result<(), Failure>>> {
        self.0.starting()
    }

    /// As [`Plugin::register`].
    pub(crate) fn register(self) -> impl Future<Output = UnmaskedAnswer<Registration>> + Send + 'a {
        self.0.register().map(Unmasked::new)
    }

    /// As [`Plugin::end_session`].
    pub(crate) fn end_session(self, session: &'a str) -> impl Future<Output = ()> + Send + 'a {
        self.0.end_session(session)
    }

    /// As [`Plugin::call_tool`].
    pub(crate) fn call_tool(
        self,
        name: &'a str,
        arguments: Json,
        context: CallContext,
    ) -> impl Future<Output = UnmaskedAnswer<ToolResult>> + Send + 'a {
        self.0.call_tool(name, arguments, context).map(Unmasked::new)
    }

    /// As [`Plugin::handle`].
    pub(crate) fn handle(
        self,
        event: HookEvent,
    ) -> impl Future<Output = UnmaskedAnswer<HookDecision>> + Send + 'a {
        self.0.handle(event).map(Unmasked::new)
    }

    /// As [`Plugin::models`].
    pub(crate) fn models(self) -> impl Future<Output = UnmaskedAnswer<Vec<ModelInfo>>> + Send + 'a {
        self.0.models().map(Unmasked::new)
    }

    /// As [`Plugin::complete`].
    pub(crate) fn complete(
        self,
        request: CompletionRequest,
        context: CallContext,
    ) -> impl Future<Output = UnmaskedAnswer<Completion>> + Send + 'a {
        self.0.complete(request, context).map(Unmasked::new)
    }

    /// As [`Plugin::stream`].
    pub(crate) fn stream(
        self,
        request: CompletionRequest,
        context: CallContext,
    ) -> impl Future<Output = UnmaskedAnswer<CompletionStream>> + Send + 'a {
        self.0.stream(request, context).map(Unmasked::new)
    }

    /// As [`Plugin::evaluate`].
    pub(crate) fn evaluate(
        self,
        strategy: &'a str,
        subject: Json,
        options: Json,
        context: CallContext,
    ) -> impl Future<Output = UnmaskedAnswer<Evaluation>> + Send + 'a {
        self.0.evaluate(strategy, subject, options, context).map(Unmasked::new)
    }

    /// As [`Plugin::list_resources`].
    pub(crate) fn list_resources(
        self,
        cursor: Option<String>,
        context: CallContext,
    ) -> impl Future<Output = UnmaskedAnswer<ResourcePage>> + Send + 'a {
        self.0.list_resources(cursor, context).map(Unmasked::new)
    }

    /// As [`Plugin::list_templates`].
    pub(crate) fn list_templates(
        self,
        cursor: Option<String>,
        context: CallContext,
    ) -> impl Future<Output = UnmaskedAnswer<TemplatePage>> + Send + 'a {
        self.0.list_templates(cursor, context).map(Unmasked::new)
    }

    /// As [`Plugin::read_resource`].
    pub(crate) fn read_resource(
        self,
        uri: &'a str,
        context: CallContext,
    ) -> impl Future<Output = UnmaskedAnswer<Vec<ResourceContents>>> + Send + 'a {
        self.0.read_resource(uri, context).map(Unmasked::new)
    }

    /// As [`Plugin::subscribe`].
    pub(crate) fn subscribe(
        self,
        uri: &'a str,
        wanted: bool,
        context: CallContext,
    ) -> impl Future<Output = UnmaskedAnswer<()>> + Send + 'a {
        self.0.subscribe(uri, wanted, context).map(Unmasked::new)
    }

    /// As [`Plugin::list_prompts`].
    pub(crate) fn list_prompts(
        self,
        cursor: Option<String>,
        context: CallContext,
    ) -> impl Future<Output = UnmaskedAnswer<PromptPage>> + Send + 'a {
        self.0.list_prompts(cursor, context).map(Unmasked::new)
    }

    /// As [`Plugin::get_prompt`].
    pub(crate) fn get_prompt(
        self,
        name: &'a str,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> impl Future<Output = UnmaskedAnswer<Prompt>> + Send + 'a {
        self.0.get_prompt(name, arguments, context).map(Unmasked::new)
    }

    /// As [`Plugin::suggest`].
    pub(crate) fn suggest(
        self,
        argument: ArgumentCompletion,
        context: CallContext,
    ) -> impl Future<Output = UnmaskedAnswer<Suggestions>> + Send + 'a {
        self.0.suggest(argument, context).map(Unmasked::new)
    }
}
