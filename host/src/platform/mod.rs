//! The platform: the five steps in a row, and what an embedder holds afterwards.
//!
//! `build` takes plugins through the steps when it is made, `reload` does so again for those that
//! have changed on disk, and `watch` finds out when that is; `reregister` asks those again that say that
//! they have changed. Here is what is done with the plugins.

mod build;
mod plugin_report;
mod reload;
mod reregister;
mod runs;
mod skills;
mod watch;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tenon_call_approvals::{CallApprovals, StandingApproval};
use tenon_config::diagnostic::Diagnostic;
use tenon_types::{
    ArgumentCompletion, Completion, CompletionRequest, Evaluation, HookContext, HookPoint,
    IncomingMessage, ListedResource, Prompt, PromptDefinition, ResourceContents, ResourceTemplate,
    Suggestions, ToolDefinition, ToolResult,
};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;

pub use build::{BuildError, Builder};
pub use plugin_report::{PluginReport, PluginState};
pub use reload::Difference;
pub use runs::{RunOutcome, RunReport, RunUsage, ScriptRunner, ToolCallCount};
pub use watch::{OnChange, Watch, WatchError};

use crate::call::escape;
use crate::call::mask::Masked;
use crate::call::{Call, CallError, Caller, HookOutcome, HookReport};
use crate::capability::granted::OtherPlugins;
use crate::capability::server::ServerReport;
use crate::capability::services::{
    ApprovalScope, CallApprovalError, LazyStore, PendingCall, StateBackend, StoreError,
};
use crate::invoke::{
    self, InvokeServices, LatestRegistry, OperationContext, ReadLimit, ServedModel,
};
use crate::observe::event::Subscription;
use crate::register::Registry;
use crate::runtime::{Allocation, CompletionStream};
use reload::Plugins;
use runs::RunServices;

/// A host for plugins. Clones are cheap and share the same plugins.
///
/// Dropping the last clone stops all plugins immediately; [`Platform::shutdown`] stops them gracefully.
#[derive(Clone)]
pub struct Platform {
    inner: Arc<Inner>,
}

struct Inner {
    /// The state that calls use. It is replaced as a whole.
    current: ArcSwap<Current>,
    /// What the current state was built from. A task that replaces the state locks it.
    plugins: AsyncMutex<Plugins>,
    allocation: Allocation,
    invoke_services: Arc<InvokeServices>,
    /// Files beside those of plugins that decide what is loaded.
    decision_files: BTreeSet<PathBuf>,
    /// Set during shutdown: the state is not replaced any more.
    closing: AtomicBool,
    /// What plugins keep.
    state: Arc<StateBackend>,
    /// What outlives the process.
    store: Arc<LazyStore>,
    /// What runs of scripts use.
    runs: RunServices,
    /// The state that calls in flight use during shutdown.
    draining: OnceLock<Weak<Registry>>,
    /// The task that registers plugins again after they report a change.
    reregistering: Mutex<Option<JoinHandle<()>>>,
}

/// The plugins between two changes.
#[derive(Default)]
struct Current {
    registry: Arc<Registry>,
    reports: Arc<Vec<PluginReport>>,
    /// What discovery could not read or parse.
    diagnostics: Vec<Diagnostic>,
}

impl Inner {
    /// Stops the task that builds new registries, at its next wait.
    fn stop_reregistering(&self) -> Option<JoinHandle<()>> {
        let reregistering =
            self.reregistering.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        reregistering.abort();
        Some(reregistering)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop_reregistering();
    }
}

/// The default timeout of a shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);

/// How long writing the call records may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

impl Inner {
    /// The registry that plugins reach: while a reload waits for calls to end, the one that they began with.
    fn registry(&self) -> Arc<Registry> {
        let draining = self.draining.get().and_then(Weak::upgrade);
        draining.unwrap_or_else(|| self.current.load().registry.clone())
    }
}

impl LatestRegistry for Inner {
    fn latest(&self) -> Arc<Registry> {
        self.registry()
    }
}

#[async_trait]
impl OtherPlugins for Inner {
    fn tools(&self, is_allowed: &dyn Fn(&str) -> bool) -> Vec<ToolDefinition> {
        let registry = self.registry();
        let allowed = registry.tools().filter(|(_, tool)| is_allowed(tool.name.as_str()));
        let renamed = allowed.map(|(_, tool)| ToolDefinition {
            name: tool.name.to_string(),
            ..ToolDefinition::clone(&tool.definition)
        });
        renamed.collect()
    }

    fn is_handled(&self, point: &HookPoint) -> bool {
        !self.registry().handlers(point).is_empty()
    }

    async fn call(&self, call: Call) -> Result<ToolResult, CallError> {
        let registry = self.registry();
        invoke::call::call_tool(&self.invoke_services, &registry, call)
            .await
            .map(Masked::into_inner)
    }

    async fn complete(
        &self,
        request: CompletionRequest,
        caller: &Caller,
    ) -> Result<Completion, CallError> {
        let registry = self.registry();
        let completion =
            invoke::provider::complete(&self.invoke_services, &registry, request, caller).await;
        completion.map(Masked::into_inner)
    }

    async fn fire(
        &self,
        point: &HookPoint,
        context: Map<String, Value>,
        caller: &Caller,
    ) -> HookReport {
        let registry = self.registry();
        invoke::hooks::fire(&self.invoke_services, &registry, point, context.into(), caller)
            .await
            .into()
    }
}

impl Platform {
    /// Creates a builder that uses the environment of this process.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Returns what the plugins contribute now. Holding a `Registry` keeps replaced plugins alive.
    ///
    /// ```no_run
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// for (plugin, tool) in platform.registry().tools() {
    ///     println!("{}: {} ({})", plugin.id(), tool.name, plugin.kind());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn registry(&self) -> Arc<Registry> {
        self.inner.current.load().registry.clone()
    }

    /// Returns the state of each plugin in load order; plugins that discovery skipped come last.
    ///
    /// ```no_run
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// for report in platform.plugins().iter() {
    ///     println!("{}: {}", report.plugin, report.state);
    ///     if let Some(remedy) = &report.remedy {
    ///         println!("  {remedy}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn plugins(&self) -> Arc<Vec<PluginReport>> {
        self.inner.current.load().reports.clone()
    }

    /// Returns all problems except plugins that failed to load.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let current = self.inner.current.load();
        current.diagnostics.iter().chain(current.registry.diagnostics()).cloned().collect()
    }

    /// Returns the [`Self::diagnostics`] about what could not be read or parsed, without those about loaded
    /// plugins.
    pub fn unread(&self) -> Vec<Diagnostic> {
        self.inner.current.load().diagnostics.clone()
    }

    /// Returns the store of what outlives the process: that of [`Builder::store`] or [`Builder::state`], else one in memory.
    pub fn store(&self) -> &Arc<LazyStore> {
        &self.inner.store
    }

    /// Returns the calls that wait for approval, and those that were decided and not made yet, oldest first.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn pending_calls(&self) -> Result<Vec<PendingCall>, CallApprovalError> {
        self.inner.invoke_services.permissions.run(|all, now| all.list(now)).await
    }

    /// Approves a call that waits: it is made when it is tried again. For a scope beyond one call, it gives the standing
    /// approval. `None` is the default time of the scope: an hour for
    /// one call, a day for a session, else thirty days.
    ///
    /// # Errors
    ///
    /// If no such call waits, the scope is none for it, or the store fails.
    pub async fn approve_call(
        &self,
        id: &str,
        scope: ApprovalScope,
        holds: Option<Duration>,
    ) -> Result<Option<StandingApproval>, CallApprovalError> {
        let id = id.to_string();
        let approve = move |all: &Arc<CallApprovals>, now| all.approve(&id, scope, holds, now);
        self.inner.invoke_services.permissions.run(approve).await
    }

    /// Denies a call that waits, or takes a standing approval back. The caller is told the reason.
    ///
    /// # Errors
    ///
    /// If there is neither, the call runs, or the store fails.
    pub async fn deny_call(
        &self,
        id: &str,
        reason: Option<String>,
    ) -> Result<(), CallApprovalError> {
        let id = id.to_string();
        let deny = move |all: &Arc<CallApprovals>, now| all.deny(&id, reason, now);
        self.inner.invoke_services.permissions.run(deny).await
    }

    /// Returns how instances get their memory: [`Allocation::OnDemand`] where an automatic pool could not be had.
    pub fn allocation(&self) -> Allocation {
        self.inner.allocation
    }

    /// Subscribes to events from now on.
    ///
    /// ```no_run
    /// use tenon_host::Event;
    ///
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// let mut events = platform.events();
    /// tokio::spawn(async move {
    ///     while let Some(event) = events.next().await {
    ///         if let Event::Call(call) = event {
    ///             println!("{}: {:?}", call.tool, call.step);
    ///         }
    ///     }
    /// });
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(&self) -> Subscription {
        self.inner.invoke_services.news.events().subscribe()
    }

    /// Subscribes to events from now on, without those of calls and their progress. It costs calls nothing.
    pub fn changes(&self) -> Subscription {
        self.inner.invoke_services.news.events().subscribe_to_changes()
    }

    /// Calls a tool.
    ///
    /// ```
    /// use serde_json::json;
    /// use tenon_host::types::{ToolDefinition, ToolResult};
    /// use tenon_host::{Builtin, Call, Platform};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    /// let greeter = Builtin::new("greeter", "Greets").tool(
    ///     ToolDefinition::new("greet", "Greets somebody", &schema),
    ///     |arguments, _context| async move {
    ///         let name: String = arguments.member("name")?;
    ///         Ok(ToolResult::text(format!("Hello, {name}")))
    ///     },
    /// );
    /// let platform = Platform::builder().builtin("greeter", greeter).build().await?;
    /// let call = Call::new("greeter__greet", json!({ "name": "Ada" }));
    /// assert_eq!(platform.call(call).await?.plain_text(), "Hello, Ada");
    /// # platform.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`CallError`] says whose fault it is. A tool that reports an error in its result is not an error here.
    pub async fn call(&self, call: Call) -> Result<ToolResult, CallError> {
        let inner = &self.inner;
        let registry = self.registry();
        invoke::call::call_tool(&inner.invoke_services, &registry, call)
            .await
            .map(Masked::into_inner)
    }

    /// Runs the hooks of a point with a context, a JSON object.
    ///
    /// ```no_run
    /// use serde_json::json;
    /// use tenon_host::types::HookPoint;
    /// use tenon_host::{Caller, HookOutcome};
    ///
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// let context = json!({ "message": "hello", "channel": "chat", "sender": "ada" });
    /// let report = platform.fire(&HookPoint::MessageReceived, context, &Caller::default()).await?;
    /// match report.outcome {
    ///     HookOutcome::Continue => println!("{}", report.context),
    ///     HookOutcome::Veto { plugin, reason } => println!("{plugin} says no: {reason}"),
    ///     HookOutcome::Stopped { plugin, failure } => println!("{plugin} failed: {failure}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the context is not an object, or a member has the wrong type (see [`tenon_types::hook::context`]).
    /// Failures of handlers are in the report.
    pub async fn fire(
        &self,
        point: &HookPoint,
        context: Value,
        caller: &Caller,
    ) -> Result<HookReport, CallError> {
        let context = match context {
            Value::Object(context) => {
                let context = HookContext::from(context);
                point.check(&context).map(|_| context)
            }
            _ => Err("it is not a JSON object".into()),
        };
        let context = context.map_err(|problem| CallError::InvalidInput {
            what: "context",
            name: point.to_string(),
            problems: vec![problem],
        })?;
        let invoke_services = &self.inner.invoke_services;
        let report =
            invoke::hooks::fire(invoke_services, &self.registry(), point, context, caller).await;
        Ok(report.into())
    }

    /// Takes in a message: runs the hooks of `message-received`, and returns the message as they left it.
    ///
    /// # Errors
    ///
    /// If a handler vetoes the message, or fails and the configuration lets that stop it.
    pub async fn receive_message(
        &self,
        message: IncomingMessage,
        caller: &Caller,
    ) -> Result<IncomingMessage, CallError> {
        let IncomingMessage { text, channel, sender } = message;
        let context = json!({ "message": text, "channel": channel, "sender": sender });
        let HookReport { outcome, mut context, .. } =
            self.fire(&HookPoint::MessageReceived, context, caller).await?;
        match outcome {
            HookOutcome::Veto { plugin, reason } => Err(CallError::Vetoed { plugin, reason }),
            HookOutcome::Stopped { plugin, failure } => Err(CallError::Failed { plugin, failure }),
            HookOutcome::Continue => {
                let mut member = |name: &str| match context[name].take() {
                    Value::String(text) => Some(text),
                    _ => None,
                };
                let text = member("message").unwrap_or_default();
                Ok(IncomingMessage { text, channel: member("channel"), sender: member("sender") })
            }
        }
    }

    /// Scores a subject with a strategy, named `plugin/strategy`. Both arguments are JSON objects.
    ///
    /// ```no_run
    /// use serde_json::json;
    /// use tenon_host::Caller;
    ///
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// let subject = json!({ "text": "A sentence." });
    /// let evaluation =
    ///     platform.evaluate("checks/length", subject, json!({}), &Caller::default()).await?;
    /// println!("{:?}: {:?}", evaluation.verdict, evaluation.findings);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn evaluate(
        &self,
        strategy: &str,
        subject: Value,
        options: Value,
        caller: &Caller,
    ) -> Result<Evaluation, CallError> {
        let (invoke_services, registry) = (&self.inner.invoke_services, self.registry());
        let evaluation =
            invoke::eval::evaluate(invoke_services, &registry, strategy, subject, options, caller);
        evaluation.await.map(Masked::into_inner)
    }

    /// Lists the models of all providers.
    pub async fn models(&self) -> Vec<ServedModel> {
        invoke::provider::models(&self.registry()).await
    }

    /// Completes a request with a model, named by its id or `plugin/id`, and returns the whole answer.
    ///
    /// ```no_run
    /// use tenon_host::Caller;
    /// use tenon_host::types::CompletionRequest;
    ///
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// let request = CompletionRequest::new("openai/gpt-5", "What is a tenon?");
    /// let completion = platform.complete(request, &Caller::default()).await?;
    /// println!("{:?}: {:?}", completion.parts, completion.summary.stop_reason);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn complete(
        &self,
        request: CompletionRequest,
        caller: &Caller,
    ) -> Result<Completion, CallError> {
        let (invoke_services, registry) = (&self.inner.invoke_services, self.registry());
        let completion = invoke::provider::complete(invoke_services, &registry, request, caller);
        completion.await.map(Masked::into_inner)
    }

    /// Completes a request with a model and returns the answer as a stream.
    ///
    /// ```no_run
    /// use tenon_host::Caller;
    /// use tenon_host::types::{CompletionRequest, Delta};
    ///
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// let request = CompletionRequest::new("openai/gpt-5", "What is a tenon?");
    /// let mut stream = platform.stream(request, &Caller::default()).await?;
    /// while let Some(delta) = stream.next().await {
    ///     if let Delta::Text(text) = delta {
    ///         print!("{text}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`]; later errors come from [`CompletionStream::finish`].
    pub async fn stream(
        &self,
        request: CompletionRequest,
        caller: &Caller,
    ) -> Result<CompletionStream, CallError> {
        let (invoke_services, registry) = (&self.inner.invoke_services, self.registry());
        let stream = invoke::provider::stream(invoke_services, &registry, request, caller);
        stream.await.map(Masked::into_inner)
    }

    /// Lists the resources of a plugin.
    ///
    /// ```no_run
    /// use tenon_host::Caller;
    ///
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// let caller = Caller::default();
    /// for listed in platform.resources("notes", &caller).await? {
    ///     let contents = platform.read_resource("notes", &listed.link.uri, &caller).await?;
    ///     println!("{}: {} parts", listed.link.uri, contents.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn resources(
        &self,
        plugin: &str,
        caller: &Caller,
    ) -> Result<Vec<ListedResource>, CallError> {
        let registry = self.registry();
        let listed = invoke::resources::list(self.question(&registry, plugin, caller)).await;
        listed.map(Masked::into_inner)
    }

    /// Lists the resource templates of a plugin.
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn resource_templates(
        &self,
        plugin: &str,
        caller: &Caller,
    ) -> Result<Vec<ResourceTemplate>, CallError> {
        let registry = self.registry();
        let listed = invoke::resources::templates(self.question(&registry, plugin, caller)).await;
        listed.map(Masked::into_inner)
    }

    /// Subscribes to changes of a resource, which arrive as
    /// [`Event::ResourceUpdated`](crate::Event::ResourceUpdated).
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn subscribe(
        &self,
        plugin: &str,
        uri: &str,
        caller: &Caller,
    ) -> Result<(), CallError> {
        let registry = self.registry();
        let question = self.question(&registry, plugin, caller);
        invoke::resources::subscribe(question, uri, true).await
    }

    /// Ends a subscription to changes of a resource.
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn unsubscribe(
        &self,
        plugin: &str,
        uri: &str,
        caller: &Caller,
    ) -> Result<(), CallError> {
        let registry = self.registry();
        let question = self.question(&registry, plugin, caller);
        invoke::resources::subscribe(question, uri, false).await
    }

    /// Lists the prompts of a plugin.
    ///
    /// ```no_run
    /// use tenon_host::Caller;
    ///
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// let caller = Caller::default();
    /// for prompt in platform.prompts("notes", &caller).await? {
    ///     println!("{}", prompt.name);
    /// }
    /// let arguments = vec![("topic".to_string(), "joinery".to_string())];
    /// let prompt = platform.prompt("notes", "summarize", arguments, &caller).await?;
    /// println!("{} messages", prompt.messages.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn prompts(
        &self,
        plugin: &str,
        caller: &Caller,
    ) -> Result<Vec<PromptDefinition>, CallError> {
        let registry = self.registry();
        let listed = invoke::prompts::list(self.question(&registry, plugin, caller)).await;
        listed.map(Masked::into_inner)
    }

    /// Fills in a prompt of a plugin.
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn prompt(
        &self,
        plugin: &str,
        name: &str,
        arguments: Vec<(String, String)>,
        caller: &Caller,
    ) -> Result<Prompt, CallError> {
        let registry = self.registry();
        let question = self.question(&registry, plugin, caller);
        invoke::prompts::get(question, name, arguments).await.map(Masked::into_inner)
    }

    /// Prepares an operation on a plugin.
    fn question<'a>(
        &'a self,
        registry: &'a Registry,
        plugin: &'a str,
        caller: &'a Caller,
    ) -> OperationContext<'a> {
        OperationContext { invoke_services: &self.inner.invoke_services, registry, caller, plugin }
    }

    /// Suggests values for an argument of a prompt or resource template, as a user types.
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn suggest(
        &self,
        plugin: &str,
        argument: ArgumentCompletion,
        caller: &Caller,
    ) -> Result<Suggestions, CallError> {
        let registry = self.registry();
        let question = self.question(&registry, plugin, caller);
        invoke::prompts::suggest(question, argument).await.map(Masked::into_inner)
    }

    /// Returns the state of a plugin's MCP server, or `None` if the plugin has none.
    pub fn server(&self, plugin: &str) -> Option<ServerReport> {
        let registry = self.registry();
        let supervised = registry.plugin(plugin)?.loaded().supervised()?.clone();
        Some(supervised.report())
    }

    /// Lets a failed MCP server start again: the next call starts it. Returns whether the plugin has a
    /// server.
    pub fn restart(&self, plugin: &str) -> bool {
        let registry = self.registry();
        let server =
            registry.plugin(plugin).and_then(|plugin| plugin.loaded().supervised().cloned());
        if let Some(server) = &server {
            server.reset();
        }
        server.is_some()
    }

    /// Reads a resource of a plugin.
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn read_resource(
        &self,
        plugin: &str,
        uri: &str,
        caller: &Caller,
    ) -> Result<Vec<ResourceContents>, CallError> {
        self.read_resource_within(plugin, uri, ReadLimit::default(), caller).await
    }

    /// Reads a resource of a plugin, within a budget of bytes or tokens. Longer content is truncated, with a
    /// notice and a member of its `_meta` ([`TRUNCATED`](crate::meta::TRUNCATED)). Tokens are estimated: see
    /// [`ReadLimit::max_tokens`].
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn read_resource_within(
        &self,
        plugin: &str,
        uri: &str,
        budget: ReadLimit,
        caller: &Caller,
    ) -> Result<Vec<ResourceContents>, CallError> {
        let registry = self.registry();
        let question = self.question(&registry, plugin, caller);
        invoke::resources::read(question, uri, budget).await.map(Masked::into_inner)
    }

    /// Reads a truncated result in full, by the URI in the result (`tenon://results/…`), as the plugin
    /// returned it.
    ///
    /// # Errors
    ///
    /// If the result does not exist, or was removed to make room for newer ones.
    pub async fn read_result(&self, uri: &str) -> io::Result<Vec<ResourceContents>> {
        let (results, uri) = (self.inner.invoke_services.results.clone(), uri.to_string());
        let read = tokio::task::spawn_blocking(move || results.read(&uri));
        read.await.map_err(io::Error::other)?
    }

    /// Reads a truncated result for display: invisible characters are escaped unless `[results] invisible`
    /// says otherwise, and the budget applies as in [`read_resource_within`](Self::read_resource_within).
    ///
    /// # Errors
    ///
    /// As for [`read_result`](Self::read_result).
    pub async fn read_result_within(
        &self,
        uri: &str,
        budget: ReadLimit,
    ) -> io::Result<Vec<ResourceContents>> {
        let mut read = self.read_result(uri).await?;
        if !self.inner.invoke_services.results.are_raw() {
            escape::contents(&mut read);
        }
        if let Some(most) = budget.most() {
            invoke::resources::cut_to(&mut read, most, None);
        }
        Ok(read)
    }

    /// Ends a session: the instances that plugins keep for it stop, and what plugins keep of the scope `session` is
    /// deleted. Calls of the session that are in flight are given up.
    ///
    /// # Errors
    ///
    /// If what plugins keep cannot be deleted. The instances have ended all the same.
    pub async fn end_session(&self, session: &str) -> Result<(), StoreError> {
        let registry = self.registry();
        let plugins = registry.plugins().iter();
        join_all(plugins.map(|plugin| plugin.loaded().plugin().end_session(session))).await;
        let (state, session) = (self.inner.state.clone(), session.to_string());
        state.run(move |store| store.clear_session(&session)).await
    }

    /// Shuts down: no new call begins, calls in flight may finish, and each plugin's `shutdown` runs. After
    /// fifteen seconds the rest is dropped.
    pub async fn shutdown(self) {
        self.shutdown_within(SHUTDOWN_TIMEOUT).await;
    }

    /// Shuts down within a timeout: the first half is for calls in flight, the rest for the plugins'
    /// `shutdown`.
    pub async fn shutdown_within(self, deadline: Duration) {
        let inner = &self.inner;
        if let Some(reregistering) = inner.stop_reregistering() {
            let _ = reregistering.await;
        }
        inner.closing.store(true, Ordering::SeqCst);
        let last = inner.current.swap(Arc::default());
        // What is in flight may call other plugins; it keeps them alive.
        let _ = inner.draining.set(Arc::downgrade(&last.registry));
        drop(last);
        let ended = tokio::time::timeout(deadline, async {
            let mut plugins = inner.plugins.lock().await;
            // A reload that was under way may have put another in its place.
            inner.current.store(Arc::default());
            plugins.end(deadline / 2).await;
        });
        if ended.await.is_err() {
            tracing::warn!("some plugins did not end in time");
        }
        if let Some(history) = &inner.invoke_services.history {
            // Others may be at it; it is not waited for long.
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, history.flush()).await;
        }
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, inner.runs.flush()).await;
    }
}
