//! Plugins that are WebAssembly components, the bridge to MCP servers among them.
//!
//! A component is compiled and linked once. Its calls then run on *fresh* instances, one for each
//! call, or on one *shared* instance; see [`Mode`]. Every instance has a store of its own, and a
//! store that has trapped, timed out or lost its caller is thrown away.

mod cache;
mod console;
mod engine;
mod exports;
mod instance;
mod shared;
mod state;
pub(crate) mod stream;

use async_trait::async_trait;
use futures::future::BoxFuture;
use std::sync::Arc;
use wasmtime::component::{Accessor, InstancePre};

pub use engine::{Allocation, EngineError};
pub(crate) use engine::{CompileError, WasmRuntime};
pub use exports::ExportError;
pub(crate) use exports::{ExportIndices, Exports, check as check_exports};
pub(crate) use state::{HostState, Setting};

use super::{CompletionStream, Failure, Plugin};
use crate::bindings::eval_handler::Evaluation;
use crate::bindings::hook_handler::{Event, Outcome};
use crate::bindings::lifecycle::Registration;
use crate::bindings::model::{Completion, CompletionRequest, ModelInfo};
use crate::bindings::prompts::{Prompt, PromptPage};
use crate::bindings::resources::{ResourcePage, TemplatePage};
use crate::bindings::types::{CallContext, Error, ResourceContents, ToolResult};
use instance::Instantiated;
use shared::{Live, Shared};

/// On which instance a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Each call has an instance of its own, made for it and gone after it.
    #[default]
    Fresh,
    /// All calls share one live instance, many of them in flight at a time.
    Shared,
}

/// A component, ready to be called.
pub(crate) struct WasmPlugin {
    pre: InstancePre<HostState>,
    indices: Arc<ExportIndices>,
    setting: Arc<Setting>,
    /// The live instance, for a plugin that shares one.
    shared: Option<Shared>,
}

/// Something to do with the exports of an instance, inside its event loop.
trait Job<R>:
    for<'a> FnOnce(&'a Accessor<HostState>, &'a Exports) -> BoxFuture<'a, wasmtime::Result<R>> + Send
{
}

impl<R, F> Job<R> for F where
    F: for<'a> FnOnce(&'a Accessor<HostState>, &'a Exports) -> BoxFuture<'a, wasmtime::Result<R>>
        + Send
{
}

/// Helps the compiler see that a closure is good for any lifetime.
fn job<R, F>(job: F) -> F
where
    F: for<'a> FnOnce(&'a Accessor<HostState>, &'a Exports) -> BoxFuture<'a, wasmtime::Result<R>>
        + Send,
{
    job
}

impl WasmPlugin {
    pub(crate) fn new(
        pre: InstancePre<HostState>,
        indices: ExportIndices,
        setting: Setting,
        mode: Mode,
    ) -> Self {
        let shared = (mode == Mode::Shared).then(Shared::default);
        Self { pre, indices: Arc::new(indices), setting: Arc::new(setting), shared }
    }

    /// Runs a job on the instance that the mode asks for. `call_id` is the call that the instance
    /// is asked to cancel when the returned future is dropped.
    async fn run<R, J>(&self, call_id: Option<&str>, job: J) -> Result<R, Failure>
    where
        R: Send + 'static,
        J: Job<R> + 'static,
    {
        match &self.shared {
            None => self.instantiate().await?.run(job).await,
            Some(shared) => {
                let live = self.live(shared).await?;
                live.run(call_id, job).await
            }
        }
    }

    /// Runs a job whose answer is an error of the contract or a value.
    async fn ask<R, J>(&self, call_id: Option<&str>, job: J) -> Result<R, Failure>
    where
        R: Send + 'static,
        J: Job<Result<R, Error>> + 'static,
    {
        self.run(call_id, job).await?.map_err(Failure::Answered)
    }

    async fn instantiate(&self) -> Result<Instantiated, Failure> {
        Instantiated::new(&self.pre, &self.indices, &self.setting).await
    }

    /// The shared instance, started where there is none that takes calls.
    async fn live(&self, shared: &Shared) -> Result<Arc<Live>, Failure> {
        shared.get_or_start(|| self.instantiate()).await
    }
}

#[async_trait]
impl Plugin for WasmPlugin {
    async fn register(&self) -> Result<Registration, Failure> {
        self.ask(
            None,
            job(|accessor, exports| {
                Box::pin(async move {
                    exports.check(accessor)?;
                    exports.lifecycle(accessor)?.call_register(accessor).await
                })
            }),
        )
        .await
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: String,
        context: CallContext,
    ) -> Result<ToolResult, Failure> {
        if self.indices.tools.is_none() {
            return Err(Failure::Unsupported("tools"));
        }
        let name = name.to_string();
        let call_id = context.call_id.clone();
        self.ask(
            Some(&call_id),
            job(move |accessor, exports| {
                Box::pin(async move {
                    exports.tools(accessor)?.call_call(accessor, name, arguments, context).await
                })
            }),
        )
        .await
    }

    async fn handle(&self, event: Event) -> Result<Outcome, Failure> {
        self.ask(
            None,
            job(move |accessor, exports| {
                Box::pin(async move { exports.hooks(accessor)?.call_handle(accessor, event).await })
            }),
        )
        .await
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, Failure> {
        self.ask(
            None,
            job(|accessor, exports| {
                Box::pin(async move { exports.provider(accessor)?.call_models(accessor).await })
            }),
        )
        .await
    }

    async fn complete(
        &self,
        request: CompletionRequest,
        context: CallContext,
    ) -> Result<Completion, Failure> {
        self.ask(
            None,
            job(move |accessor, exports| {
                Box::pin(async move {
                    exports.provider(accessor)?.call_complete(accessor, request, context).await
                })
            }),
        )
        .await
    }

    async fn stream(
        &self,
        request: CompletionRequest,
        context: CallContext,
    ) -> Result<CompletionStream, Failure> {
        if self.indices.stream.is_none() {
            return self.complete(request, context).await.map(CompletionStream::from);
        }
        // An answer that comes in pieces outlives the call that began it, so that a fresh instance
        // lives in a task of its own as well.
        let live = match &self.shared {
            Some(shared) => self.live(shared).await?,
            None => Live::start(self.instantiate().await?),
        };
        stream::open(live, request, context).await
    }

    async fn evaluate(
        &self,
        strategy: &str,
        subject: String,
        options: String,
        context: CallContext,
    ) -> Result<Evaluation, Failure> {
        let strategy = strategy.to_string();
        self.ask(
            None,
            job(move |accessor, exports| {
                Box::pin(async move {
                    exports
                        .evals(accessor)?
                        .call_evaluate(accessor, strategy, subject, options, context)
                        .await
                })
            }),
        )
        .await
    }

    async fn list_resources(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<ResourcePage, Failure> {
        self.ask(
            None,
            job(move |accessor, exports| {
                Box::pin(async move {
                    exports
                        .resources(accessor)?
                        .call_list_resources(accessor, cursor, context)
                        .await
                })
            }),
        )
        .await
    }

    async fn list_templates(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<TemplatePage, Failure> {
        self.ask(
            None,
            job(move |accessor, exports| {
                Box::pin(async move {
                    exports
                        .resources(accessor)?
                        .call_list_templates(accessor, cursor, context)
                        .await
                })
            }),
        )
        .await
    }

    async fn read_resource(
        &self,
        uri: &str,
        context: CallContext,
    ) -> Result<Vec<ResourceContents>, Failure> {
        let uri = uri.to_string();
        self.ask(
            None,
            job(move |accessor, exports| {
                Box::pin(async move {
                    exports.resources(accessor)?.call_read(accessor, uri, context).await
                })
            }),
        )
        .await
    }

    async fn list_prompts(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<PromptPage, Failure> {
        self.ask(
            None,
            job(move |accessor, exports| {
                Box::pin(async move {
                    exports.prompts(accessor)?.call_list_prompts(accessor, cursor, context).await
                })
            }),
        )
        .await
    }

    async fn get_prompt(
        &self,
        name: &str,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> Result<Prompt, Failure> {
        let name = name.to_string();
        self.ask(
            None,
            job(move |accessor, exports| {
                Box::pin(async move {
                    exports.prompts(accessor)?.call_get(accessor, name, arguments, context).await
                })
            }),
        )
        .await
    }

    async fn shutdown(&self) {
        if let Some(live) = self.shared.as_ref().and_then(Shared::take) {
            // Whether it says good-bye or traps, it ends here.
            let goodbye = job(|accessor, exports| {
                Box::pin(async move { exports.lifecycle(accessor)?.call_shutdown(accessor).await })
            });
            let _: Result<(), Failure> = live.run(None, goodbye).await;
            live.close().await;
        }
    }
}
