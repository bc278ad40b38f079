//! The contract in the version 0.1.

use async_trait::async_trait;
use std::sync::{Arc, OnceLock};
use tenon_types::{
    Blank, CallContext, Completion, CompletionRequest, Evaluation, HookDecision, HookEvent,
    ModelInfo, Prompt, PromptPage, Registration, ResourceContents, ResourcePage, Suggestions,
    TemplatePage, ToolResult,
};
use wasmtime::component::{Accessor, Instance, InstancePre};

use super::{Answer, ExportError, ExportedInterfaces, FindExports, Interface, NotExported};
use crate::capability::HostState;
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{
    completions, eval_handler, hook_handler, lifecycle, prompts, provider_handler, provider_stream,
    resources, subscriptions, tool_handler,
};
use crate::runtime::wasm::stream::AnswerWriter;

/// Where a component's exports are, found once.
struct Indices {
    lifecycle: lifecycle::GuestIndices,
    tools: Option<tool_handler::GuestIndices>,
    hooks: Option<hook_handler::GuestIndices>,
    provider: Option<provider_handler::GuestIndices>,
    stream: Option<provider_stream::GuestIndices>,
    evals: Option<eval_handler::GuestIndices>,
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
    tools: OnceLock<tool_handler::Guest>,
    hooks: OnceLock<hook_handler::Guest>,
    provider: OnceLock<provider_handler::Guest>,
    stream: OnceLock<provider_stream::Guest>,
    evals: OnceLock<eval_handler::Guest>,
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
            tools: has(Interface::Tools)
                .then(|| tool_handler::GuestIndices::new(pre))
                .transpose()?,
            hooks: has(Interface::Hooks)
                .then(|| hook_handler::GuestIndices::new(pre))
                .transpose()?,
            provider: has(Interface::Provider)
                .then(|| provider_handler::GuestIndices::new(pre))
                .transpose()?,
            stream: has(Interface::Stream)
                .then(|| provider_stream::GuestIndices::new(pre))
                .transpose()?,
            evals: has(Interface::Evals)
                .then(|| eval_handler::GuestIndices::new(pre))
                .transpose()?,
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

    fn tools(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&tool_handler::Guest> {
        found(&self.tools, || {
            let indices = self.indices.tools.as_ref().ok_or(NotExported(Interface::Tools))?;
            accessor.with(|access| indices.load(access, &self.instance))
        })
    }

    fn hooks(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&hook_handler::Guest> {
        found(&self.hooks, || {
            let indices = self.indices.hooks.as_ref().ok_or(NotExported(Interface::Hooks))?;
            accessor.with(|access| indices.load(access, &self.instance))
        })
    }

    fn provider(
        &self,
        accessor: &Accessor<HostState>,
    ) -> wasmtime::Result<&provider_handler::Guest> {
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

    fn evals(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&eval_handler::Guest> {
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

#[async_trait]
impl super::Exports for Exports {
    async fn register(&self, accessor: &Accessor<HostState>) -> Answer<Registration> {
        self.check_types(accessor)?;
        Ok(self.lifecycle(accessor)?.call_register(accessor).await?.convert())
    }

    async fn shutdown(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()> {
        self.lifecycle(accessor)?.call_shutdown(accessor).await
    }

    async fn cancel(
        &self,
        accessor: &Accessor<HostState>,
        call_id: String,
    ) -> wasmtime::Result<()> {
        match self.indices.tools {
            Some(_) => self.tools(accessor)?.call_cancel(accessor, call_id).await,
            None => Ok(()),
        }
    }

    async fn call_tool(
        &self,
        accessor: &Accessor<HostState>,
        name: String,
        arguments: String,
        context: CallContext,
    ) -> Answer<ToolResult> {
        let answer =
            self.tools(accessor)?.call_call(accessor, name, arguments, context.convert()).await?;
        Ok(answer.convert())
    }

    async fn handle(
        &self,
        accessor: &Accessor<HostState>,
        event: HookEvent,
    ) -> Answer<HookDecision> {
        let answer = self.hooks(accessor)?.call_handle(accessor, event.convert()).await?;
        Ok(answer.convert())
    }

    async fn models(&self, accessor: &Accessor<HostState>) -> Answer<Vec<ModelInfo>> {
        let answer = self.provider(accessor)?.call_models(accessor).await?;
        Ok(answer.convert())
    }

    async fn complete(
        &self,
        accessor: &Accessor<HostState>,
        request: CompletionRequest,
        context: CallContext,
    ) -> Answer<Completion> {
        let answer = self
            .provider(accessor)?
            .call_complete(accessor, request.convert(), context.convert())
            .await?;
        Ok(answer.convert())
    }

    async fn stream(
        &self,
        accessor: &Accessor<HostState>,
        request: CompletionRequest,
        context: CallContext,
        answer: AnswerWriter,
    ) -> Answer<()> {
        let stream = self.stream(accessor)?;
        match stream.call_stream(accessor, request.convert(), context.convert()).await? {
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
    ) -> Answer<Evaluation> {
        let answer = self
            .evals(accessor)?
            .call_evaluate(accessor, strategy, subject, options, context.convert())
            .await?;
        Ok(answer.convert())
    }

    async fn list_resources(
        &self,
        accessor: &Accessor<HostState>,
        cursor: Option<String>,
        context: CallContext,
    ) -> Answer<ResourcePage> {
        let answer = self
            .resources(accessor)?
            .call_list_resources(accessor, cursor, context.convert())
            .await?;
        Ok(answer.convert())
    }

    async fn list_templates(
        &self,
        accessor: &Accessor<HostState>,
        cursor: Option<String>,
        context: CallContext,
    ) -> Answer<TemplatePage> {
        let answer = self
            .resources(accessor)?
            .call_list_templates(accessor, cursor, context.convert())
            .await?;
        Ok(answer.convert())
    }

    async fn read_resource(
        &self,
        accessor: &Accessor<HostState>,
        uri: String,
        context: CallContext,
    ) -> Answer<Vec<ResourceContents>> {
        let answer = self.resources(accessor)?.call_read(accessor, uri, context.convert()).await?;
        Ok(answer.convert())
    }

    async fn subscribe(
        &self,
        accessor: &Accessor<HostState>,
        uri: String,
        context: CallContext,
    ) -> Answer<()> {
        let answer =
            self.subscriptions(accessor)?.call_subscribe(accessor, uri, context.convert()).await?;
        Ok(answer.convert())
    }

    async fn unsubscribe(
        &self,
        accessor: &Accessor<HostState>,
        uri: String,
        context: CallContext,
    ) -> Answer<()> {
        let answer = self
            .subscriptions(accessor)?
            .call_unsubscribe(accessor, uri, context.convert())
            .await?;
        Ok(answer.convert())
    }

    async fn list_prompts(
        &self,
        accessor: &Accessor<HostState>,
        cursor: Option<String>,
        context: CallContext,
    ) -> Answer<PromptPage> {
        let answer =
            self.prompts(accessor)?.call_list_prompts(accessor, cursor, context.convert()).await?;
        Ok(answer.convert())
    }

    async fn get_prompt(
        &self,
        accessor: &Accessor<HostState>,
        name: String,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> Answer<Prompt> {
        let answer =
            self.prompts(accessor)?.call_get(accessor, name, arguments, context.convert()).await?;
        Ok(answer.convert())
    }

    async fn suggest(
        &self,
        accessor: &Accessor<HostState>,
        blank: Blank,
        context: CallContext,
    ) -> Answer<Suggestions> {
        let answer = self
            .completions(accessor)?
            .call_complete(accessor, blank.convert(), context.convert())
            .await?;
        Ok(answer.convert())
    }
}
