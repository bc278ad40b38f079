//! Plugins that are WebAssembly components, the bridge to MCP servers among them.
//!
//! A component is compiled and linked once. Its calls then run on *fresh* instances, one for each
//! call, on one *shared* instance, on a few that are *stateless*, or on one for each *session*; see [`InstanceMode`]. Every instance has a store of its own, and a
//! store that has trapped, timed out or lost its caller is thrown away.

mod abi;
mod backtrace;
mod cache;
mod engine;
mod instance;
mod linked;
mod sessions;
mod shape;
mod shared;
mod stateless_pool;
pub(crate) mod stream;

use async_trait::async_trait;
use futures::FutureExt;
use std::sync::Arc;
use tenon_config::config::InstanceMode;
use tenon_types::{
    ArgumentCompletion, CallContext, Completion, CompletionRequest, Error, Evaluation,
    HookDecision, HookEvent, Identity, Json, ModelInfo, Prompt, PromptPage, Registration,
    ResourceContents, ResourcePage, Suggestions, TemplatePage, ToolResult,
};
use tokio::sync::OnceCell;
use wasmtime::component::{Accessor, HasSelf};

use abi::Indices;
#[cfg(test)]
pub(crate) use abi::link_older;
pub use abi::speaks;
pub(crate) use abi::{ExportError, check as check_exports};
use abi::{Exports, GuestAnswer, Interface};
pub(crate) use cache::CachePlace;
pub use engine::{Allocation, EngineError};
pub(crate) use engine::{CompileError, ComponentFile, EngineOptions, WasmRuntime};
pub(crate) use linked::LinkedComponent;

use super::{CompletionStream, Plugin};
use crate::call::{CurrentCall, Failure, within};
use crate::capability::{HostState, InstanceConfig};
use instance::WasmInstance;
use sessions::{SessionInstances, SessionLease};
use shared::{InstanceHandle, InstanceLease, SharedInstanceSlot};
use stateless_pool::StatelessPool;

/// A component, ready to be called.
pub(crate) struct WasmPlugin {
    component: Arc<Instantiator>,
    instances: Instances,
}

/// The live instances of a plugin.
enum Instances {
    /// None: each call has its own.
    Fresh,
    Shared(Arc<SharedInstanceSlot>),
    Stateless(StatelessPool),
    Session(Arc<SessionInstances>),
}

/// A caller's hold on a live instance.
struct LiveLease {
    lease: InstanceLease,
    /// Keeps the session from ending as idle.
    session: Option<SessionLease>,
}

/// A component that was linked, and what its instances are made with.
struct Instantiator {
    linked: LinkedComponent,
    setting: Arc<InstanceConfig>,
}

/// An instance as its event loop has it. Whoever uses it outside of that, wasmtime ends by a panic.
struct GuestHandle {
    accessor: Accessor<HostState>,
    exports: Box<dyn Exports>,
    /// Who the plugin is, once the instance was started.
    identity: OnceCell<Identity>,
}

impl GuestHandle {
    fn new(accessor: &Accessor<HostState>, exports: Box<dyn Exports>) -> Arc<Self> {
        let accessor = accessor.with_getter::<HasSelf<HostState>>(|state| state);
        Arc::new(Self { accessor, exports, identity: OnceCell::new() })
    }

    /// Starts the instance, unless that was done. It says who the plugin is.
    async fn start(&self) -> GuestAnswer<Identity> {
        let start = || async {
            match self.exports.start(&self.accessor).await {
                Ok(Ok(identity)) => Ok(identity),
                Ok(Err(error)) => Err(Ok(error)),
                Err(trap) => Err(Err(trap)),
            }
        };
        match self.identity.get_or_try_init(start).await {
            Ok(identity) => Ok(Ok(identity.clone())),
            Err(failed) => failed.map(Err),
        }
    }
}

/// Something to do inside the event loop of an instance.
trait Job<R>: FnOnce(Arc<GuestHandle>) -> Self::Doing + Send + 'static {
    type Doing: Future<Output = wasmtime::Result<R>> + Send;
}

impl<R, F, D> Job<R> for F
where
    F: FnOnce(Arc<GuestHandle>) -> D + Send + 'static,
    D: Future<Output = wasmtime::Result<R>> + Send,
{
    type Doing = D;
}

/// What is to be known of a call to run it.
struct CallIds {
    id: Arc<str>,
    session: Option<String>,
}

impl CallIds {
    fn of(context: &CallContext) -> Self {
        let session = context.session_id.clone();
        Self { id: context.call_id.as_str().into(), session }
    }
}

/// A job, and the call that it serves, if it serves one.
struct CallJob<J> {
    id: Option<Arc<str>>,
    current_call: Option<Arc<CurrentCall>>,
    job: J,
}

/// Attributes a job to the call of this id.
fn attributed<J>(id: Option<Arc<str>>, job: J) -> CallJob<J> {
    CallJob { id, current_call: CurrentCall::current(), job }
}

impl<J> CallJob<J> {
    /// Does it. The instance knows meanwhile which call it serves.
    ///
    /// It is no `async fn`, which would have room for the job twice.
    fn run<R>(self, guest: Arc<GuestHandle>) -> impl Future<Output = wasmtime::Result<R>> + Send
    where
        J: Job<R>,
    {
        let Self { id, current_call, job } = self;
        if let Some(id) = &id {
            guest.accessor.with(|mut access| access.get().begin(id.clone(), current_call));
        }
        job(guest.clone()).inspect(move |_| {
            if let Some(id) = id {
                guest.accessor.with(|mut access| access.get().end(&id));
            }
        })
    }
}

impl WasmPlugin {
    pub(crate) fn new(
        linked: LinkedComponent,
        setting: InstanceConfig,
        mode: InstanceMode,
    ) -> Self {
        let instances = match mode {
            InstanceMode::Fresh => Instances::Fresh,
            InstanceMode::Shared => Instances::Shared(Arc::default()),
            InstanceMode::Stateless => Instances::Stateless(StatelessPool::new()),
            InstanceMode::Session => Instances::Session(SessionInstances::new(&setting.limits)),
        };
        let component = Instantiator { linked, setting: Arc::new(setting) };
        Self { component: Arc::new(component), instances }
    }

    /// Runs a job on the instance that the mode asks for. `call` is what the instance is asked to cancel when the
    /// returned future is dropped.
    async fn run<R, J>(&self, call: Option<CallIds>, job: J) -> Result<R, Failure>
    where
        R: Send + 'static,
        J: Job<Result<R, Error>>,
    {
        let (id, session) = call.map(|CallIds { id, session }| (id, session)).unzip();
        let job = attributed(id, job);
        let answer = match self.live(session.flatten().as_deref()).await? {
            None => Box::pin(async { self.instantiate().await?.run(job).await }).await,
            Some(LiveLease { lease, session: _session }) => {
                let _recorder = lease.record_usage();
                lease.submit(job).wait().await
            }
        };
        Ok(answer??)
    }

    /// Refuses what the component has no interface for.
    fn needs(&self, interface: Interface) -> Result<(), Failure> {
        match self.component.linked.indices.has(interface) {
            true => Ok(()),
            false => Err(Failure::Unsupported(interface.contribution())),
        }
    }

    async fn instantiate(&self) -> Result<WasmInstance, Failure> {
        self.component.instantiate().await
    }

    /// A place at the live instance that serves a call of this session; nothing where each call has its own.
    async fn live(&self, session: Option<&str>) -> Result<Option<LiveLease>, Failure> {
        match (&self.instances, session) {
            (Instances::Fresh, _) | (Instances::Session(_), None) => Ok(None),
            (Instances::Shared(shared), _) => {
                Ok(Some(LiveLease { lease: self.lease(shared).await?, session: None }))
            }
            (Instances::Stateless(instances), _) => {
                let chosen = instances.choose();
                Ok(Some(LiveLease { lease: self.lease(chosen.instance()).await?, session: None }))
            }
            (Instances::Session(sessions), Some(id)) => {
                let session = sessions.lease(id)?;
                let lease = self.lease(session.instance()).await?;
                Ok(Some(LiveLease { lease, session: Some(session) }))
            }
        }
    }

    /// A place at a live instance. One that takes the place of another is started first, as the contract
    /// has it; what it contributes is known already.
    async fn lease(&self, shared: &Arc<SharedInstanceSlot>) -> Result<InstanceLease, Failure> {
        if let Some(lease) = shared.current() {
            return Ok(lease);
        }
        let start = || {
            let component = self.component.clone();
            async move {
                let registered = async {
                    let handle = InstanceHandle::start(component.instantiate().await?);
                    let lease = InstanceLease::new(handle.clone())?;
                    let start = async |guest: Arc<GuestHandle>| guest.start().await;
                    lease.submit(attributed(None, start)).wait().await??;
                    Ok(handle)
                };
                within(component.setting.startup, registered).await
            }
        };
        // It is needed seldom, and every call would have place for it.
        Box::pin(shared.lease(start)).await
    }
}

impl Instantiator {
    async fn instantiate(&self) -> Result<WasmInstance, Failure> {
        self.linked.instantiate(&self.setting).await
    }
}

/// Starts an instance, unless that was done, and asks it what it contributes.
async fn register(guest: Arc<GuestHandle>, indices: Indices) -> GuestAnswer<Registration> {
    let GuestHandle { accessor, exports, identity } = &*guest;
    if identity.get().is_none() {
        exports.check_types(accessor)?;
    }
    match guest.start().await? {
        Ok(identity) => abi::contributions(&*indices, &**exports, accessor, identity).await,
        Err(error) => Ok(Err(error)),
    }
}

#[async_trait]
impl Plugin for WasmPlugin {
    async fn register(&self) -> Result<Registration, Failure> {
        let indices = self.component.linked.indices.clone();
        let register = move |guest| register(guest, indices);
        let first = match &self.instances {
            Instances::Fresh | Instances::Session(_) => return self.run(None, register).await,
            Instances::Shared(shared) => shared,
            Instances::Stateless(instances) => instances.first(),
        };
        let start = || {
            let component = self.component.clone();
            async move { Ok(InstanceHandle::start(component.instantiate().await?)) }
        };
        let lease = first.lease(start).await?;
        Ok(lease.submit(attributed(None, register)).wait().await??)
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: Json,
        context: CallContext,
    ) -> Result<ToolResult, Failure> {
        let (name, key) = (name.to_string(), CallIds::of(&context));
        let arguments = arguments.into_text();
        self.needs(Interface::Tools)?;
        let call = async move |guest: Arc<GuestHandle>| {
            guest.exports.call_tool(&guest.accessor, name, arguments, context).await
        };
        self.run(Some(key), call).await
    }

    async fn handle(&self, event: HookEvent) -> Result<HookDecision, Failure> {
        let key = CallIds::of(&event.call);
        self.needs(Interface::Hooks)?;
        let call =
            async move |guest: Arc<GuestHandle>| guest.exports.handle(&guest.accessor, event).await;
        self.run(Some(key), call).await?
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, Failure> {
        self.needs(Interface::Provider)?;
        let call = async move |guest: Arc<GuestHandle>| guest.exports.models(&guest.accessor).await;
        self.run(None, call).await
    }

    async fn complete(
        &self,
        request: CompletionRequest,
        context: CallContext,
    ) -> Result<Completion, Failure> {
        let key = CallIds::of(&context);
        self.needs(Interface::Provider)?;
        let call = async move |guest: Arc<GuestHandle>| {
            guest.exports.complete(&guest.accessor, request, context).await
        };
        self.run(Some(key), call).await
    }

    async fn stream(
        &self,
        request: CompletionRequest,
        context: CallContext,
    ) -> Result<CompletionStream, Failure> {
        if !self.component.linked.indices.has(Interface::Stream) {
            return self.complete(request, context).await.map(CompletionStream::from);
        }
        // An answer that comes in pieces outlives the call that began it, so that a fresh instance
        // lives in a task of its own as well.
        let lease = match self.live(context.session_id.as_deref()).await? {
            Some(LiveLease { lease, .. }) => lease,
            None => InstanceLease::new(InstanceHandle::start(self.instantiate().await?))?,
        };
        stream::open(lease, request, context).await
    }

    async fn evaluate(
        &self,
        strategy: &str,
        subject: Json,
        options: Json,
        context: CallContext,
    ) -> Result<Evaluation, Failure> {
        let (strategy, key) = (strategy.to_string(), CallIds::of(&context));
        let (subject, options) = (subject.into_text(), options.into_text());
        self.needs(Interface::Evals)?;
        let call = async move |guest: Arc<GuestHandle>| {
            guest.exports.evaluate(&guest.accessor, strategy, subject, options, context).await
        };
        self.run(Some(key), call).await
    }

    async fn list_resources(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<ResourcePage, Failure> {
        let key = CallIds::of(&context);
        self.needs(Interface::Resources)?;
        let call = async move |guest: Arc<GuestHandle>| {
            guest.exports.list_resources(&guest.accessor, cursor, context).await
        };
        self.run(Some(key), call).await
    }

    async fn list_templates(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<TemplatePage, Failure> {
        let key = CallIds::of(&context);
        self.needs(Interface::Resources)?;
        let call = async move |guest: Arc<GuestHandle>| {
            guest.exports.list_templates(&guest.accessor, cursor, context).await
        };
        self.run(Some(key), call).await
    }

    async fn read_resource(
        &self,
        uri: &str,
        context: CallContext,
    ) -> Result<Vec<ResourceContents>, Failure> {
        let (uri, key) = (uri.to_string(), CallIds::of(&context));
        self.needs(Interface::Resources)?;
        let call = async move |guest: Arc<GuestHandle>| {
            guest.exports.read_resource(&guest.accessor, uri, context).await
        };
        self.run(Some(key), call).await
    }

    async fn list_prompts(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<PromptPage, Failure> {
        let key = CallIds::of(&context);
        self.needs(Interface::Prompts)?;
        let call = async move |guest: Arc<GuestHandle>| {
            guest.exports.list_prompts(&guest.accessor, cursor, context).await
        };
        self.run(Some(key), call).await
    }

    async fn get_prompt(
        &self,
        name: &str,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> Result<Prompt, Failure> {
        let (name, key) = (name.to_string(), CallIds::of(&context));
        self.needs(Interface::Prompts)?;
        let call = async move |guest: Arc<GuestHandle>| {
            guest.exports.get_prompt(&guest.accessor, name, arguments, context).await
        };
        self.run(Some(key), call).await
    }

    async fn subscribe(
        &self,
        uri: &str,
        wanted: bool,
        context: CallContext,
    ) -> Result<(), Failure> {
        let (uri, key) = (uri.to_string(), CallIds::of(&context));
        self.needs(Interface::Subscriptions)?;
        let call = async move |guest: Arc<GuestHandle>| match wanted {
            true => guest.exports.subscribe(&guest.accessor, uri, context).await,
            false => guest.exports.unsubscribe(&guest.accessor, uri, context).await,
        };
        self.run(Some(key), call).await
    }

    async fn suggest(
        &self,
        argument: ArgumentCompletion,
        context: CallContext,
    ) -> Result<Suggestions, Failure> {
        let key = CallIds::of(&context);
        self.needs(Interface::Completions)?;
        let call = async move |guest: Arc<GuestHandle>| {
            guest.exports.suggest(&guest.accessor, argument, context).await
        };
        self.run(Some(key), call).await
    }

    async fn end_session(&self, session: &str) {
        if let Instances::Session(sessions) = &self.instances {
            sessions.end(session).await;
        }
    }

    async fn end_unused(&self, then: Box<dyn FnOnce() + Send>) -> bool {
        match &self.instances {
            Instances::Shared(shared) => shared.end_unused(then).await,
            Instances::Fresh | Instances::Stateless(_) | Instances::Session(_) => false,
        }
    }

    async fn shutdown(&self) {
        match &self.instances {
            Instances::Fresh => {}
            Instances::Shared(shared) => shared.end().await,
            Instances::Stateless(instances) => instances.end().await,
            Instances::Session(sessions) => sessions.close().await,
        }
    }
}
