//! The contract in the version 0.2.

use async_trait::async_trait;
use std::sync::{Arc, OnceLock};
use tenon_types::{
    ArgumentCompletion, CallContext, Completion, CompletionRequest, EvalDefinition, Evaluation,
    HookContext, HookDecision, HookEvent, HookRegistration, Identity, ModelInfo, Prompt,
    PromptPage, ProviderDefinition, ResourceContents, ResourcePage, Suggestions, TemplatePage,
    ToolDefinition, ToolResult,
};
use wasmtime::component::{
    Accessor, ComponentNamedList, Instance, InstancePre, Lift, Lower, TypedFunc,
};

use super::{ExportError, ExportedInterfaces, FindExports, GuestAnswer, Interface, NotExported};
use crate::call::Failure;
use crate::capability::HostState;
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{
    cancellation, completions, evals, hooks, lifecycle, prompts, provider_stream, providers,
    resources, subscriptions, tools, types,
};
use crate::runtime::wasm::stream::AnswerWriter;

/// Where a component's exports are, found once.
struct Indices {
    lifecycle: lifecycle::GuestIndices,
    cancellation: Option<cancellation::GuestIndices>,
    tools: Option<tools::GuestIndices>,
    hooks: Option<hooks::GuestIndices>,
    provider: Option<providers::GuestIndices>,
    stream: Option<provider_stream::GuestIndices>,
    evals: Option<evals::GuestIndices>,
    resources: Option<resources::GuestIndices>,
    subscriptions: Option<subscriptions::GuestIndices>,
    prompts: Option<prompts::GuestIndices>,
    completions: Option<completions::GuestIndices>,
}

/// The exports of one instance. Each interface is found, and the types of its functions checked,
/// when it is first called: a fresh instance has one of them called and no other.
struct Exports {
    indices: Arc<Indices>,
    instance: Instance,
    tools: OnceLock<tools::Guest>,
    hooks: OnceLock<hooks::Guest>,
    provider: OnceLock<providers::Guest>,
    stream: OnceLock<provider_stream::Guest>,
    evals: OnceLock<evals::Guest>,
    resources: OnceLock<resources::Guest>,
    subscriptions: OnceLock<subscriptions::Guest>,
    prompts: OnceLock<prompts::Guest>,
    completions: OnceLock<completions::Guest>,
}

/// Finds the exports. They are found by a version that is like this one, too. Of an interface that is there, all
/// functions must be.
pub(super) fn find(
    pre: &InstancePre<HostState>,
    exported: &ExportedInterfaces,
) -> Result<super::Indices, ExportError> {
    let has = |interface: Interface| exported.has(interface.name());
    let find = || -> wasmtime::Result<Indices> {
        Ok(Indices {
            lifecycle: lifecycle::GuestIndices::new(pre)?,
            cancellation: has(Interface::Cancellation)
                .then(|| cancellation::GuestIndices::new(pre))
                .transpose()?,
            tools: has(Interface::Tools).then(|| tools::GuestIndices::new(pre)).transpose()?,
            hooks: has(Interface::Hooks).then(|| hooks::GuestIndices::new(pre)).transpose()?,
            provider: has(Interface::Provider)
                .then(|| providers::GuestIndices::new(pre))
                .transpose()?,
            stream: has(Interface::Stream)
                .then(|| provider_stream::GuestIndices::new(pre))
                .transpose()?,
            evals: has(Interface::Evals).then(|| evals::GuestIndices::new(pre)).transpose()?,
            resources: has(Interface::Resources)
                .then(|| resources::GuestIndices::new(pre))
                .transpose()?,
            subscriptions: has(Interface::Subscriptions)
                .then(|| subscriptions::GuestIndices::new(pre))
                .transpose()?,
            prompts: has(Interface::Prompts)
                .then(|| prompts::GuestIndices::new(pre))
                .transpose()?,
            completions: has(Interface::Completions)
                .then(|| completions::GuestIndices::new(pre))
                .transpose()?,
        })
    };
    match find() {
        Ok(indices) => Ok(Arc::new(indices)),
        Err(error) => Err(ExportError::Shape(format!("{error:#}"))),
    }
}

impl FindExports for Indices {
    fn has(&self, interface: Interface) -> bool {
        match interface {
            Interface::Cancellation => self.cancellation.is_some(),
            Interface::Tools => self.tools.is_some(),
            Interface::Hooks => self.hooks.is_some(),
            Interface::Provider => self.provider.is_some(),
            Interface::Stream => self.stream.is_some(),
            Interface::Evals => self.evals.is_some(),
            Interface::Resources => self.resources.is_some(),
            Interface::Subscriptions => self.subscriptions.is_some(),
            Interface::Prompts => self.prompts.is_some(),
            Interface::Completions => self.completions.is_some(),
        }
    }

    fn of(self: Arc<Self>, instance: Instance) -> Box<dyn super::Exports> {
        Box::new(Exports {
            indices: self,
            instance,
            tools: OnceLock::new(),
            hooks: OnceLock::new(),
            provider: OnceLock::new(),
            stream: OnceLock::new(),
            evals: OnceLock::new(),
            resources: OnceLock::new(),
            subscriptions: OnceLock::new(),
            prompts: OnceLock::new(),
            completions: OnceLock::new(),
        })
    }
}

impl Exports {
    fn lifecycle(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<lifecycle::Guest> {
        accessor.with(|access| self.indices.lifecycle.load(access, &self.instance))
    }

    fn tools(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&tools::Guest> {
        found(&self.tools, || {
            let indices = self.indices.tools.as_ref().ok_or(NotExported(Interface::Tools))?;
            accessor.with(|access| indices.load(access, &self.instance))
        })
    }

    fn hooks(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&hooks::Guest> {
        found(&self.hooks, || {
            let indices = self.indices.hooks.as_ref().ok_or(NotExported(Interface::Hooks))?;
            accessor.with(|access| indices.load(access, &self.instance))
        })
    }

    fn provider(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&providers::Guest> {
        found(&self.provider, || {
            let indices = self.indices.provider.as_ref().ok_or(NotExported(Interface::Provider))?;
            accessor.with(|access| indices.load(access, &self.instance))
        })
    }

    fn stream(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&provider_stream::Guest> {
        found(&self.stream, || {
            let indices = self.indices.stream.as_ref().ok_or(NotExported(Interface::Stream))?;
            accessor.with(|access| indices.load(access, &self.instance))
        })
    }

    fn evals(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&evals::Guest> {
        found(&self.evals, || {
            let indices = self.indices.evals.as_ref().ok_or(NotExported(Interface::Evals))?;
            accessor.with(|access| indices.load(access, &self.instance))
        })
    }

    fn resources(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&resources::Guest> {
        found(&self.resources, || {
            let indices =
                self.indices.resources.as_ref().ok_or(NotExported(Interface::Resources))?;
            accessor.with(|access| indices.load(access, &self.instance))
        })
    }

    fn subscriptions(
        &self,
        accessor: &Accessor<HostState>,
    ) -> wasmtime::Result<&subscriptions::Guest> {
        found(&self.subscriptions, || {
            let indices =
                self.indices.subscriptions.as_ref().ok_or(NotExported(Interface::Subscriptions))?;
            accessor.with(|access| indices.load(access, &self.instance))
        })
    }

    fn prompts(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&prompts::Guest> {
        found(&self.prompts, || {
            let indices = self.indices.prompts.as_ref().ok_or(NotExported(Interface::Prompts))?;
            accessor.with(|access| indices.load(access, &self.instance))
        })
    }

    fn completions(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&completions::Guest> {
        found(&self.completions, || {
            let indices =
                self.indices.completions.as_ref().ok_or(NotExported(Interface::Completions))?;
            accessor.with(|access| indices.load(access, &self.instance))
        })
    }

    /// Checks the types of all functions.
    fn check_types(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()> {
        let Indices { lifecycle: _, tools, hooks, provider, stream, evals, .. } = &*self.indices;
        let Indices { resources, subscriptions, prompts, completions, .. } = &*self.indices;
        tools.as_ref().map(|_| self.tools(accessor)).transpose()?;
        hooks.as_ref().map(|_| self.hooks(accessor)).transpose()?;
        provider.as_ref().map(|_| self.provider(accessor)).transpose()?;
        stream.as_ref().map(|_| self.stream(accessor)).transpose()?;
        evals.as_ref().map(|_| self.evals(accessor)).transpose()?;
        resources.as_ref().map(|_| self.resources(accessor)).transpose()?;
        subscriptions.as_ref().map(|_| self.subscriptions(accessor)).transpose()?;
        prompts.as_ref().map(|_| self.prompts(accessor)).transpose()?;
        completions.as_ref().map(|_| self.completions(accessor)).transpose()?;
        Ok(())
    }
}

/// Calls an export that serves a call, and notes in which task of the component it does.
async fn served<P, R>(
    accessor: &Accessor<HostState>,
    context: CallContext,
    function: TypedFunc<P, R>,
    parameters: impl FnOnce(types::CallContext) -> P,
) -> wasmtime::Result<R>
where
    P: ComponentNamedList + Lower + Send + Sync + 'static,
    R: ComponentNamedList + Lift + Send + Sync + 'static,
{
    let call = accessor.with(|mut access| -> wasmtime::Result<_> {
        let known = access.get().served_as(&context.call_id);
        let parameters = parameters(context.convert());
        let call = function.start_call_concurrent(&mut access, parameters)?;
        if let Some(id) = known {
            access.get().serve_in(&id, call.task());
        }
        Ok(call)
    })?;
    function.finish_call_concurrent(accessor, call).await
}

/// What an interface was found as, or is found now.
fn found<T>(
    cell: &OnceLock<T>,
    find: impl FnOnce() -> wasmtime::Result<T>,
) -> wasmtime::Result<&T> {
    match cell.get() {
        Some(found) => Ok(found),
        None => find().map(|found| cell.get_or_init(|| found)),
    }
}

/// What a plugin's outcome of a hook means. Its context is JSON, or the plugin breaks the contract.
fn decision(outcome: hooks::HookOutcome) -> Result<HookDecision, Failure> {
    Ok(match outcome {
        hooks::HookOutcome::Continue => HookDecision::Continue,
        hooks::HookOutcome::Replace(json) => {
            let context = HookContext::parse(&json).map_err(|error| {
                let what = if error.is_data() { "is not a JSON object" } else { "is not JSON" };
                Failure::Contract(format!("the new context {what}: {error}"))
            })?;
            HookDecision::Replace(context)
        }
        hooks::HookOutcome::Veto(reason) => HookDecision::Veto(reason),
    })
}

#[async_trait]
impl super::Exports for Exports {
    fn check_types(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()> {
        Self::check_types(self, accessor)
    }

    async fn start(&self, accessor: &Accessor<HostState>) -> GuestAnswer<Identity> {
        Ok(self.lifecycle(accessor)?.call_start(accessor).await?.convert())
    }

    async fn stop(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()> {
        self.lifecycle(accessor)?.call_stop(accessor).await
    }

    async fn cancel(
        &self,
        accessor: &Accessor<HostState>,
        call_id: String,
    ) -> wasmtime::Result<()> {
        let Some(indices) = &self.indices.cancellation else { return Ok(()) };
        let cancellation = accessor.with(|access| indices.load(access, &self.instance))?;
        cancellation.call_cancel(accessor, call_id).await
    }

    async fn list_tools(&self, accessor: &Accessor<HostState>) -> GuestAnswer<Vec<ToolDefinition>> {
        Ok(self.tools(accessor)?.call_list_tools(accessor).await?.convert())
    }

    async fn list_hooks(
        &self,
        accessor: &Accessor<HostState>,
    ) -> GuestAnswer<Vec<HookRegistration>> {
        Ok(self.hooks(accessor)?.call_list_hooks(accessor).await?.convert())
    }

    async fn list_providers(
        &self,
        accessor: &Accessor<HostState>,
    ) -> GuestAnswer<Vec<ProviderDefinition>> {
        Ok(self.provider(accessor)?.call_list_providers(accessor).await?.convert())
    }

    async fn list_evals(&self, accessor: &Accessor<HostState>) -> GuestAnswer<Vec<EvalDefinition>> {
        Ok(self.evals(accessor)?.call_list_evals(accessor).await?.convert())
    }

    async fn call_tool(
        &self,
        accessor: &Accessor<HostState>,
        name: String,
        arguments: String,
        context: CallContext,
    ) -> GuestAnswer<ToolResult> {
        let function = self.tools(accessor)?.func_call_tool();
        let (answer,) =
            served(accessor, context, function, |context| (name, arguments, context)).await?;
        Ok(answer.convert())
    }

    async fn handle(
        &self,
        accessor: &Accessor<HostState>,
        event: HookEvent,
    ) -> GuestAnswer<Result<HookDecision, Failure>> {
        let HookEvent { point, context: event_context, call: context } = event;
        let event_context = event_context.to_string();
        let event = hooks::HookEvent { point: point.to_string(), event_context };
        let function = self.hooks(accessor)?.func_handle_event();
        let (answer,) = served(accessor, context, function, |context| (event, context)).await?;
        Ok(answer.map(decision).map_err(Convert::convert))
    }

    async fn models(&self, accessor: &Accessor<HostState>) -> GuestAnswer<Vec<ModelInfo>> {
        let answer = self.provider(accessor)?.call_list_models(accessor).await?;
        Ok(answer.convert())
    }

    async fn complete(
        &self,
        accessor: &Accessor<HostState>,
        request: CompletionRequest,
        context: CallContext,
    ) -> GuestAnswer<Completion> {
        let function = self.provider(accessor)?.func_complete();
        let (answer,) =
            served(accessor, context, function, |context| (request.convert(), context)).await?;
        Ok(answer.convert())
    }

    async fn stream(
        &self,
        accessor: &Accessor<HostState>,
        request: CompletionRequest,
        context: CallContext,
        answer: AnswerWriter,
    ) -> GuestAnswer<()> {
        let function = self.stream(accessor)?.func_complete_stream();
        let parameters = |context| (request.convert(), context);
        match served(accessor, context, function, parameters).await?.0 {
            Ok((deltas, summary)) => answer.write(accessor, deltas, summary).await.map(Ok),
            Err(error) => Ok(Err(error.convert())),
        }
    }

    async fn evaluate(
        &self,
        accessor: &Accessor<HostState>,
        strategy: String,
        subject: String,
        options: String,
        context: CallContext,
    ) -> GuestAnswer<Evaluation> {
        let function = self.evals(accessor)?.func_evaluate();
        let (answer,) =
            served(accessor, context, function, |context| (strategy, subject, options, context))
                .await?;
        Ok(answer.convert())
    }

    async fn list_resources(
        &self,
        accessor: &Accessor<HostState>,
        cursor: Option<String>,
        context: CallContext,
    ) -> GuestAnswer<ResourcePage> {
        let function = self.resources(accessor)?.func_list_resources();
        let (answer,) = served(accessor, context, function, |context| (cursor, context)).await?;
        Ok(answer.convert())
    }

    async fn list_templates(
        &self,
        accessor: &Accessor<HostState>,
        cursor: Option<String>,
        context: CallContext,
    ) -> GuestAnswer<TemplatePage> {
        let function = self.resources(accessor)?.func_list_templates();
        let (answer,) = served(accessor, context, function, |context| (cursor, context)).await?;
        Ok(answer.convert())
    }

    async fn read_resource(
        &self,
        accessor: &Accessor<HostState>,
        uri: String,
        context: CallContext,
    ) -> GuestAnswer<Vec<ResourceContents>> {
        let function = self.resources(accessor)?.func_read_resource();
        let (answer,) = served(accessor, context, function, |context| (uri, context)).await?;
        Ok(answer.convert())
    }

    async fn subscribe(
        &self,
        accessor: &Accessor<HostState>,
        uri: String,
        context: CallContext,
    ) -> GuestAnswer<()> {
        let function = self.subscriptions(accessor)?.func_subscribe();
        let (answer,) = served(accessor, context, function, |context| (uri, context)).await?;
        Ok(answer.convert())
    }

    async fn unsubscribe(
        &self,
        accessor: &Accessor<HostState>,
        uri: String,
        context: CallContext,
    ) -> GuestAnswer<()> {
        let function = self.subscriptions(accessor)?.func_unsubscribe();
        let (answer,) = served(accessor, context, function, |context| (uri, context)).await?;
        Ok(answer.convert())
    }

    async fn list_prompts(
        &self,
        accessor: &Accessor<HostState>,
        cursor: Option<String>,
        context: CallContext,
    ) -> GuestAnswer<PromptPage> {
        let function = self.prompts(accessor)?.func_list_prompts();
        let (answer,) = served(accessor, context, function, |context| (cursor, context)).await?;
        Ok(answer.convert())
    }

    async fn get_prompt(
        &self,
        accessor: &Accessor<HostState>,
        name: String,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> GuestAnswer<Prompt> {
        let function = self.prompts(accessor)?.func_get_prompt();
        let (answer,) =
            served(accessor, context, function, |context| (name, arguments, context)).await?;
        Ok(answer.convert())
    }

    async fn suggest(
        &self,
        accessor: &Accessor<HostState>,
        argument: ArgumentCompletion,
        context: CallContext,
    ) -> GuestAnswer<Suggestions> {
        let function = self.completions(accessor)?.func_complete_argument();
        let (answer,) =
            served(accessor, context, function, |context| (argument.convert(), context)).await?;
        Ok(answer.convert())
    }
}
