//! The contract in the version of this host's own.

use futures::future::{Either, ready};
use std::sync::{Arc, OnceLock};
use wasmtime::component::{Accessor, Instance, InstancePre};

use super::{Abi, Answer, ExportError, Interface, NotExported, Streamed};
use crate::bindings::completions::{Blank, Suggestions};
use crate::bindings::eval_handler::Evaluation;
use crate::bindings::hook_handler::{Event, Outcome};
use crate::bindings::lifecycle::Registration;
use crate::bindings::model::{Completion, CompletionRequest, ModelInfo};
use crate::bindings::prompts::{Prompt, PromptPage};
use crate::bindings::resources::{ResourcePage, TemplatePage};
use crate::bindings::types::{CallContext, ResourceContents, ToolResult};
use crate::bindings::{
    completions, eval_handler, hook_handler, lifecycle, prompts, provider_handler, provider_stream,
    resources, subscriptions, tool_handler,
};
use crate::capability::HostState;

/// Where a component's exports are, found once.
#[derive(Clone)]
pub(crate) struct Indices {
    lifecycle: Option<lifecycle::GuestIndices>,
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
pub(crate) struct Newest {
    indices: Arc<Indices>,
    instance: Instance,
    lifecycle: OnceLock<lifecycle::Guest>,
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

impl Indices {
    /// Finds the exports. They are found by a version that is like this one, too.
    pub(super) fn new(
        pre: &InstancePre<HostState>,
        has: impl Fn(&str) -> bool,
    ) -> Result<Self, ExportError> {
        let shape = |error: wasmtime::Error| ExportError::Shape(format!("{error:#}"));
        /// An interface that may be there; if it is, all of its functions must be.
        macro_rules! optional {
            ($interface:literal, $module:ident) => {
                match has($interface) {
                    true => Some($module::GuestIndices::new(pre).map_err(shape)?),
                    false => None,
                }
            };
        }
        Ok(Self {
            lifecycle: optional!("plugin", lifecycle),
            tools: optional!("tool-handler", tool_handler),
            hooks: optional!("hook-handler", hook_handler),
            provider: optional!("provider-handler", provider_handler),
            stream: optional!("provider-stream", provider_stream),
            evals: optional!("eval-handler", eval_handler),
            resources: optional!("resources", resources),
            subscriptions: optional!("subscriptions", subscriptions),
            prompts: optional!("prompts", prompts),
            completions: optional!("completions", completions),
        })
    }

    pub(super) fn has(&self, interface: Interface) -> bool {
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
}

/// The interface that a call needs, from the place of its index and its guest.
macro_rules! interfaces {
    ($($field:ident: $module:ident = $interface:ident),* $(,)?) => {$(
        /// The interface, for a component that exports it.
        fn $field(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&$module::Guest> {
            if let Some(guest) = self.$field.get() {
                return Ok(guest);
            }
            let indices = self.indices.$field.as_ref();
            let indices = indices.ok_or(NotExported(Interface::$interface))?;
            let guest = accessor.with(|access| indices.load(access, &self.instance))?;
            Ok(self.$field.get_or_init(|| guest))
        }
    )*};
}

impl Newest {
    pub(super) fn new(indices: Arc<Indices>, instance: Instance) -> Self {
        Self {
            indices,
            instance,
            lifecycle: OnceLock::new(),
            tools: OnceLock::new(),
            hooks: OnceLock::new(),
            provider: OnceLock::new(),
            stream: OnceLock::new(),
            evals: OnceLock::new(),
            resources: OnceLock::new(),
            subscriptions: OnceLock::new(),
            prompts: OnceLock::new(),
            completions: OnceLock::new(),
        }
    }

    fn lifecycle(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<&lifecycle::Guest> {
        if let Some(guest) = self.lifecycle.get() {
            return Ok(guest);
        }
        let indices = self.indices.lifecycle.as_ref();
        let indices = indices.expect("a component without it is no plugin");
        let guest = accessor.with(|access| indices.load(access, &self.instance))?;
        Ok(self.lifecycle.get_or_init(|| guest))
    }

    interfaces! {
        tools: tool_handler = Tools,
        hooks: hook_handler = Hooks,
        provider: provider_handler = Provider,
        stream: provider_stream = Stream,
        evals: eval_handler = Evals,
        resources: resources = Resources,
        subscriptions: subscriptions = Subscriptions,
        prompts: prompts = Prompts,
        completions: completions = Completions,
    }
}

/// Passes calls on to functions of interfaces. It makes no `async fn`, which would have room for the
/// arguments twice.
macro_rules! passed_on {
    ($($operation:ident($($argument:ident: $kind:ty),*) -> $answer:ty
        = $interface:ident.$function:ident;)*) => {$(
        fn $operation(
            &self,
            accessor: &Accessor<HostState>,
            $($argument: $kind),*
        ) -> impl Future<Output = Answer<$answer>> + Send {
            match self.$interface(accessor) {
                Ok(interface) => Either::Left(interface.$function(accessor $(, $argument)*)),
                Err(error) => Either::Right(ready(Err(error))),
            }
        }
    )*};
}

impl Abi for Newest {
    fn check_types(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()> {
        let Indices {
            lifecycle: _,
            tools,
            hooks,
            provider,
            stream,
            evals,
            resources,
            subscriptions,
            prompts,
            completions,
        } = &*self.indices;
        if tools.is_some() {
            self.tools(accessor)?;
        }
        if hooks.is_some() {
            self.hooks(accessor)?;
        }
        if provider.is_some() {
            self.provider(accessor)?;
        }
        if stream.is_some() {
            self.stream(accessor)?;
        }
        if evals.is_some() {
            self.evals(accessor)?;
        }
        if resources.is_some() {
            self.resources(accessor)?;
        }
        if subscriptions.is_some() {
            self.subscriptions(accessor)?;
        }
        if prompts.is_some() {
            self.prompts(accessor)?;
        }
        if completions.is_some() {
            self.completions(accessor)?;
        }
        Ok(())
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

    passed_on! {
        register() -> Registration = lifecycle.call_register;
        call_tool(name: String, arguments: String, context: CallContext) -> ToolResult
            = tools.call_call;
        handle(event: Event) -> Outcome = hooks.call_handle;
        models() -> Vec<ModelInfo> = provider.call_models;
        complete(request: CompletionRequest, context: CallContext) -> Completion
            = provider.call_complete;
        stream(request: CompletionRequest, context: CallContext) -> Streamed = stream.call_stream;
        evaluate(strategy: String, subject: String, options: String, context: CallContext) -> Evaluation
            = evals.call_evaluate;
        list_resources(cursor: Option<String>, context: CallContext) -> ResourcePage
            = resources.call_list_resources;
        list_templates(cursor: Option<String>, context: CallContext) -> TemplatePage
            = resources.call_list_templates;
        read_resource(uri: String, context: CallContext) -> Vec<ResourceContents>
            = resources.call_read;
        subscribe(uri: String, context: CallContext) -> () = subscriptions.call_subscribe;
        unsubscribe(uri: String, context: CallContext) -> () = subscriptions.call_unsubscribe;
        list_prompts(cursor: Option<String>, context: CallContext) -> PromptPage
            = prompts.call_list_prompts;
        get_prompt(name: String, arguments: Vec<(String, String)>, context: CallContext) -> Prompt
            = prompts.call_get;
        suggest(blank: Blank, context: CallContext) -> Suggestions = completions.call_complete;
    }
}
