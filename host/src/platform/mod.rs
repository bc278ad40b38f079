//! The platform: the five steps in a row, and what an embedder holds afterwards.
//!
//! `build` takes plugins through the steps when it is made, `reload` does so again for those that
//! have changed on disk, and `watch` finds out when that is; `attend` asks those again that say that
//! they have changed. Here is what is done with the plugins.

mod attend;
mod build;
mod reload;
mod report;
mod watch;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;

pub use build::{BuildError, Builder};
pub use reload::Difference;
pub use report::{PluginReport, PluginState};
pub use watch::{OnChange, Watch, WatchError};

use crate::bindings::completions::{Blank, Suggestions};
use crate::bindings::eval_handler::Evaluation;
use crate::bindings::model::{Completion, CompletionRequest};
use crate::bindings::prompts::{Prompt, PromptDefinition};
use crate::bindings::resources::{ListedResource, ResourceTemplate};
use crate::bindings::types::{HookPoint, ResourceContents, ToolResult};
use crate::capability::lent::Hub;
use crate::diagnostic::Diagnostic;
use crate::event::Subscription;
use crate::invoke::{
    self, Budget, Call, CallError, Caller, Facilities, HookReport, Masked, Model, Question,
};
use crate::register::Registry;
use crate::runtime::{Allocation, CompletionStream};
use crate::server::ServerReport;
use crate::shown;
use reload::Plugins;

/// A host for plugins. It is cheap to clone, and all clones are the same one.
///
/// Dropping the last clone ends all plugins at once; [`Platform::shutdown`] lets them say good-bye.
#[derive(Clone)]
pub struct Platform {
    inner: Arc<Inner>,
}

struct Inner {
    /// What calls see. It is replaced as a whole.
    current: ArcSwap<Current>,
    /// What the current state was made of. Whoever replaces it holds this meanwhile.
    plugins: AsyncMutex<Plugins>,
    allocation: Allocation,
    facilities: Arc<Facilities>,
    /// It is being shut down: what calls see is not replaced any more.
    closing: AtomicBool,
    /// While it is being shut down, what calls in flight see.
    draining: OnceLock<Weak<Registry>>,
    /// The task that registers plugins again which say that they have changed.
    attending: Mutex<Option<JoinHandle<()>>>,
}

/// The plugins as they are between two changes.
#[derive(Default)]
struct Current {
    registry: Arc<Registry>,
    reports: Arc<Vec<PluginReport>>,
    /// What discovery could not read or understand.
    diagnostics: Vec<Diagnostic>,
}

impl Inner {
    /// Ends the task that makes new registries; it ends where it waits.
    fn stop_attending(&self) -> Option<JoinHandle<()>> {
        let attending = self.attending.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        attending.abort();
        Some(attending)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop_attending();
    }
}

/// How long a shutdown may take, where nothing is said.
const GOODBYE: Duration = Duration::from_secs(15);

/// How long the record of calls may take to be written.
const FLUSH: Duration = Duration::from_secs(3);

#[async_trait]
impl Hub for Inner {
    fn registry(&self) -> Arc<Registry> {
        let draining = self.draining.get().and_then(Weak::upgrade);
        draining.unwrap_or_else(|| self.current.load().registry.clone())
    }

    async fn call(&self, call: Call) -> Result<ToolResult, CallError> {
        let registry = self.registry();
        invoke::call::call_tool(&self.facilities, &registry, call).await.map(Masked::into_inner)
    }

    async fn complete(
        &self,
        request: CompletionRequest,
        caller: &Caller,
    ) -> Result<Completion, CallError> {
        let registry = self.registry();
        let completion =
            invoke::provider::complete(&self.facilities, &registry, request, caller).await;
        completion.map(Masked::into_inner)
    }

    async fn fire(
        &self,
        point: &HookPoint,
        context: Map<String, Value>,
        caller: &Caller,
    ) -> HookReport {
        let registry = self.registry();
        invoke::hooks::fire(&self.facilities, &registry, point, context, caller).await
    }
}

impl Platform {
    /// Begins to put a platform together, in the surroundings of this process.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// What the plugins contribute at this moment. Whoever keeps it keeps plugins alive that were
    /// replaced meanwhile.
    pub fn registry(&self) -> Arc<Registry> {
        self.inner.current.load().registry.clone()
    }

    /// How each plugin fares, in load order; those that discovery left out come last.
    pub fn plugins(&self) -> Arc<Vec<PluginReport>> {
        self.inner.current.load().reports.clone()
    }

    /// What is wrong apart from plugins that are not there.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let current = self.inner.current.load();
        current.diagnostics.iter().chain(current.registry.diagnostics()).cloned().collect()
    }

    /// Those of [`Self::diagnostics`] that are about what could not be read or understood, and not about
    /// what plugins offer that are there.
    pub fn unread(&self) -> Vec<Diagnostic> {
        self.inner.current.load().diagnostics.clone()
    }

    /// How instances get their memory.
    pub fn allocation(&self) -> Allocation {
        self.inner.allocation
    }

    /// What happens from now on.
    pub fn events(&self) -> Subscription {
        self.inner.facilities.news.events().subscribe()
    }

    /// Calls a tool.
    ///
    /// # Errors
    ///
    /// [`CallError`] says who is to blame. A tool that could not do what it was asked is none: its
    /// result says so.
    pub async fn call(&self, call: Call) -> Result<ToolResult, CallError> {
        let inner = &self.inner;
        let registry = self.registry();
        invoke::call::call_tool(&inner.facilities, &registry, call).await.map(Masked::into_inner)
    }

    /// Runs the hooks of a point over a context, a JSON object.
    ///
    /// # Errors
    ///
    /// Where the context is no object, or a member of it is not of the type that the point gives it
    /// (see [`crate::hook::context`]). A handler that fails is in the report.
    pub async fn fire(
        &self,
        point: &HookPoint,
        context: Value,
        caller: &Caller,
    ) -> Result<HookReport, CallError> {
        let context = match context {
            Value::Object(context) => point.check(&context).map(|()| context),
            _ => Err("it is not a JSON object".into()),
        };
        let context = context.map_err(|problem| CallError::InvalidInput {
            what: "context",
            name: point.to_string(),
            problems: vec![problem],
        })?;
        let facilities = &self.inner.facilities;
        Ok(invoke::hooks::fire(facilities, &self.registry(), point, context, caller).await)
    }

    /// Scores a subject with a strategy, which is named `plugin/strategy`. Both arguments are JSON
    /// objects.
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
        let (facilities, registry) = (&self.inner.facilities, self.registry());
        let evaluation =
            invoke::eval::evaluate(facilities, &registry, strategy, subject, options, caller);
        evaluation.await.map(Masked::into_inner)
    }

    /// Lists the models of all providers.
    pub async fn models(&self) -> Vec<Model> {
        invoke::provider::models(&self.registry()).await
    }

    /// Answers a request to a model, which is named by its id or by `plugin/id`, in one piece.
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn complete(
        &self,
        request: CompletionRequest,
        caller: &Caller,
    ) -> Result<Completion, CallError> {
        let (facilities, registry) = (&self.inner.facilities, self.registry());
        let completion = invoke::provider::complete(facilities, &registry, request, caller);
        completion.await.map(Masked::into_inner)
    }

    /// Answers a request to a model piece by piece.
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`]; what goes wrong later is said by [`CompletionStream::finish`].
    pub async fn stream(
        &self,
        request: CompletionRequest,
        caller: &Caller,
    ) -> Result<CompletionStream, CallError> {
        let (facilities, registry) = (&self.inner.facilities, self.registry());
        let stream = invoke::provider::stream(facilities, &registry, request, caller);
        stream.await.map(Masked::into_inner)
    }

    /// Lists the resources of a plugin.
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

    /// Asks a plugin to tell when a resource changes: then there is an
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

    /// Ends that.
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

    /// Something that is asked of a plugin.
    fn question<'a>(
        &'a self,
        registry: &'a Registry,
        plugin: &'a str,
        caller: &'a Caller,
    ) -> Question<'a> {
        Question { facilities: &self.inner.facilities, registry, caller, plugin }
    }

    /// Suggests values for a blank of a prompt or of a resource template, as a user types.
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn suggest(
        &self,
        plugin: &str,
        blank: Blank,
        caller: &Caller,
    ) -> Result<Suggestions, CallError> {
        let registry = self.registry();
        let question = self.question(&registry, plugin, caller);
        invoke::prompts::suggest(question, blank).await.map(Masked::into_inner)
    }

    /// How the MCP server of a plugin fares at this moment; nothing for a plugin without one.
    pub fn server(&self, plugin: &str) -> Option<ServerReport> {
        let registry = self.registry();
        let supervised = registry.plugin(plugin)?.loaded().supervised()?.clone();
        Some(supervised.report())
    }

    /// Lets an MCP server start again that has failed: the next call starts it. Gives whether there
    /// is such a server.
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
        self.read_resource_within(plugin, uri, Budget::default(), caller).await
    }

    /// The same, of which no more than so many bytes or tokens are wanted. What is longer is cut, and
    /// says so in words and in its `_meta` ([`invoke::TRUNCATED`]). How many tokens a text has is an
    /// estimate: [`invoke::tokens`].
    ///
    /// # Errors
    ///
    /// As for [`Platform::call`].
    pub async fn read_resource_within(
        &self,
        plugin: &str,
        uri: &str,
        budget: Budget,
        caller: &Caller,
    ) -> Result<Vec<ResourceContents>, CallError> {
        let registry = self.registry();
        let question = self.question(&registry, plugin, caller);
        invoke::resources::read(question, uri, budget).await.map(Masked::into_inner)
    }

    /// Reads the whole of a result that was too long to be passed on, by the URI that the result
    /// gave (`tenon://results/…`), as the plugin gave it.
    ///
    /// # Errors
    ///
    /// Where there is no such result, or none any more: the oldest make room for new ones.
    pub async fn read_result(&self, uri: &str) -> io::Result<Vec<ResourceContents>> {
        let (results, uri) = (self.inner.facilities.results.clone(), uri.to_string());
        let read = tokio::task::spawn_blocking(move || results.read(&uri));
        read.await.map_err(io::Error::other)?
    }

    /// The same for a reader: characters that are not seen stand in it as escapes, unless
    /// `[results] invisible` says otherwise, and no more than so many bytes or tokens are read; see
    /// [`read_resource_within`](Self::read_resource_within).
    ///
    /// # Errors
    ///
    /// As for [`read_result`](Self::read_result).
    pub async fn read_result_within(
        &self,
        uri: &str,
        budget: Budget,
    ) -> io::Result<Vec<ResourceContents>> {
        let mut read = self.read_result(uri).await?;
        if !self.inner.facilities.results.are_raw() {
            shown::contents(&mut read);
        }
        if let Some(most) = budget.most() {
            invoke::resources::cut_to(&mut read, most, None);
        }
        Ok(read)
    }

    /// Ends all plugins: no call begins any more, those in flight may finish, and each plugin may
    /// say good-bye. It takes fifteen seconds at most; what is not done then is given up.
    pub async fn shutdown(self) {
        self.shutdown_within(GOODBYE).await;
    }

    /// The same with a deadline, of which the first half is for the calls in flight and the rest
    /// for good-byes.
    pub async fn shutdown_within(self, deadline: Duration) {
        let inner = &self.inner;
        if let Some(attending) = inner.stop_attending() {
            let _ = attending.await;
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
        if let Some(history) = &inner.facilities.history {
            // Others may be at it; it is not waited for long.
            let _ = tokio::time::timeout(FLUSH, history.flush()).await;
        }
    }
}
