//! The platform: the five steps in a row, and what an embedder holds afterwards.

use arc_swap::ArcSwap;
use futures::FutureExt;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use crate::admit::{Approvals, Rules, admit};
use crate::bindings::eval_handler::Evaluation;
use crate::bindings::model::{Completion, CompletionRequest};
use crate::bindings::types::{HookPoint, ToolResult};
use crate::capability::notify::News;
use crate::config::Config;
use crate::diagnostic::{Diagnostic, chain};
use crate::discover::{Candidate, Discovery, LeftOut, Places, PluginKind, Reason, discover};
use crate::event::Event;
use crate::invoke::{self, Call, CallError, Caller, HookReport, Model};
use crate::limits::Limits;
use crate::load::{Loaded, Loader};
use crate::register::{Registered, Registry, Settings, register, register_again};
use crate::runtime::{Allocation, CompletionStream, EngineError, Failure, Plugin};
use crate::schema;
use crate::surroundings::Surroundings;

/// A host for plugins. It is cheap to clone, and all clones are the same one.
///
/// Dropping the last clone ends all plugins at once; [`Platform::shutdown`] lets them say good-bye.
#[derive(Clone)]
pub struct Platform {
    inner: Arc<Inner>,
}

struct Inner {
    registry: ArcSwap<Registry>,
    reports: Vec<PluginReport>,
    diagnostics: Vec<Diagnostic>,
    allocation: Allocation,
    news: News,
    /// The task that registers plugins again which say that they have changed: the only one that
    /// makes a new registry while the platform is there.
    attending: Mutex<Option<JoinHandle<()>>>,
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

/// How a plugin fared.
#[derive(Debug, Clone, Serialize)]
pub struct PluginReport {
    /// The plugin's id.
    pub plugin: String,
    /// Its kind.
    pub kind: PluginKind,
    /// Whether it is there.
    pub state: PluginState,
    /// The name and version that it gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many tools it has.
    pub tools: usize,
    /// How many hook points it handles.
    pub hooks: usize,
    /// How many strategies it has.
    pub evals: usize,
    /// How many language-model providers it has.
    pub providers: usize,
    /// Why it is not there, or what is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Why it did not register, and whose fault that is.
    #[serde(skip)]
    pub failure: Option<Failure>,
}

/// Whether a plugin is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginState {
    /// It is registered.
    Ready,
    /// It was not admitted.
    Refused,
    /// It could not be loaded, or did not register.
    Failed,
    /// Discovery left it out: [`Reason::Nested`].
    Nested,
    /// Discovery left it out: [`Reason::Shadowed`].
    Shadowed,
    /// Discovery left it out: [`Reason::Disabled`].
    Disabled,
    /// Discovery left it out: [`Reason::NotAllowed`].
    NotAllowed,
}

impl PluginState {
    /// Whether something is wrong: the plugin was wanted and is not there.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Refused | Self::Failed)
    }
}

impl fmt::Display for PluginState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready => "ok",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Nested => "nested",
            Self::Shadowed => "shadowed",
            Self::Disabled => "disabled",
            Self::NotAllowed => "not allowed",
        })
    }
}

impl From<&Reason> for PluginState {
    fn from(reason: &Reason) -> Self {
        match reason {
            Reason::Nested { .. } => Self::Nested,
            Reason::Shadowed { .. } => Self::Shadowed,
            Reason::Disabled { .. } => Self::Disabled,
            Reason::NotAllowed { .. } => Self::NotAllowed,
        }
    }
}

/// Why there is no platform. One bad plugin is never a reason.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The engine could not be set up.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Puts a platform together.
pub struct Builder {
    configs: Vec<Config>,
    places: Places,
    discovery: Option<Discovery>,
    surroundings: Surroundings,
    allocation: Allocation,
    builtins: Vec<(String, Arc<dyn Plugin>)>,
    approvals: Approvals,
}

/// How long plugins may take to say good-bye.
const GOODBYE: Duration = Duration::from_secs(15);

/// How long a plugin's changes are gathered before it registers again.
const SETTLE: Duration = Duration::from_millis(100);

/// How long the next registration of plugins that have changed is put off after one.
const PAUSE: Duration = Duration::from_secs(1);

impl Builder {
    /// Adds a configuration. Of two plugins with one id, the one of the first configuration is
    /// loaded.
    pub fn config(mut self, config: Config) -> Self {
        self.configs.push(config);
        self
    }

    /// Looks for plugins in the `.tenon/plugins` of this folder, too.
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.places.workspace = Some(folder.into());
        self
    }

    /// Looks in this folder for plugins that come with the host.
    pub fn bundled(mut self, folder: impl Into<PathBuf>) -> Self {
        self.places.bundled.push(folder.into());
        self
    }

    /// Loads what was discovered before, in place of what would be found. The policies of the
    /// configurations hold for it all the same.
    pub fn discovery(mut self, discovery: Discovery) -> Self {
        self.discovery = Some(discovery);
        self
    }

    /// Replaces the surroundings of the process by others.
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// How instances get their memory: on demand, where nothing else is said.
    pub fn allocation(mut self, allocation: Allocation) -> Self {
        self.allocation = allocation;
        self
    }

    /// Adds a plugin that is part of the host. Built-in plugins come before all others.
    pub fn builtin(mut self, id: impl Into<String>, plugin: impl Plugin) -> Self {
        self.builtins.push((id.into(), Arc::new(plugin)));
        self
    }

    /// Takes all plugins through the five steps. A plugin that fails in one leaves the line with a
    /// [`PluginReport`]; the others go on.
    ///
    /// # Errors
    ///
    /// Only where the engine itself cannot be set up.
    pub async fn build(self) -> Result<Platform, BuildError> {
        let Self { configs, places, discovery, surroundings, allocation, builtins, approvals } =
            self;
        let discovery = discovery.unwrap_or_else(|| discover(&configs, &places, &surroundings));
        let settings = Settings::new(&configs);
        let reserved = builtins.iter().map(|(id, _)| id.clone());
        let rules = Arc::new(Rules::new(&configs, approvals).reserve(reserved));
        // While components are loaded.
        tokio::task::spawn_blocking(schema::prepare);
        let news = News::new();
        let loader = Arc::new(Loader::new(allocation, &surroundings, news.clone())?);

        let limits = configs.first().map_or_else(Limits::default, |config| config.limits.clone());
        let builtins = builtins.into_iter().map(|(id, plugin)| {
            let loaded = Loaded::builtin(&id, plugin, &limits);
            bring(id, PluginKind::Builtin, async move { Ok(loaded) }).left_future()
        });
        let candidates = discovery.candidates.into_iter().map(|candidate| {
            let (id, kind) = (candidate.id().to_string(), candidate.kind());
            bring(id, kind, prepare(loader.clone(), candidate, rules.clone())).right_future()
        });
        // All start at once; what they bring is put together in order.
        let brought = futures::future::join_all(builtins.chain(candidates)).await;

        let mut reports = Vec::new();
        let mut plugins = Vec::new();
        for result in brought {
            match result {
                Ok(registered) => {
                    reports.push(report(&registered));
                    plugins.push(Arc::new(registered));
                }
                Err(report) => reports.push(report),
            }
        }
        reports.extend(discovery.left_out.iter().map(|left_out| {
            let LeftOut { id, kind, reason, .. } = left_out;
            gone(id, *kind, reason.into(), reason.to_string(), None)
        }));
        let platform = Platform {
            inner: Arc::new(Inner {
                registry: ArcSwap::from_pointee(Registry::new(plugins, settings)),
                reports,
                diagnostics: discovery.diagnostics,
                allocation: loader.allocation(),
                news: news.clone(),
                attending: Mutex::default(),
            }),
        };
        let attending = tokio::spawn(attend(Arc::downgrade(&platform.inner), news));
        *platform.inner.attending.lock().unwrap_or_else(PoisonError::into_inner) = Some(attending);
        Ok(platform)
    }
}

/// Takes a plugin from where it is to its registration, or says why it does not get there.
async fn bring(
    id: String,
    kind: PluginKind,
    loaded: impl Future<Output = Result<Loaded, (PluginState, String, Option<String>)>>,
) -> Result<Registered, PluginReport> {
    let gone = |(state, detail, remedy)| gone(&id, kind, state, detail, remedy);
    let loaded = loaded.await.map_err(&gone)?;
    register(loaded).await.map_err(|failure| PluginReport {
        failure: Some(failure.clone()),
        ..gone((PluginState::Failed, failure.to_string(), None))
    })
}

/// Admits and loads a candidate.
async fn prepare(
    loader: Arc<Loader>,
    candidate: Candidate,
    rules: Arc<Rules>,
) -> Result<Loaded, (PluginState, String, Option<String>)> {
    let admitted = admit(candidate, &rules)
        .map_err(|refusal| (PluginState::Refused, refusal.to_string(), Some(refusal.remedy())))?;
    let failed = |problem: String, remedy| (PluginState::Failed, problem, remedy);
    // Compiling blocks.
    tokio::task::spawn_blocking(move || loader.load(admitted))
        .await
        .map_err(|error| failed(error.to_string(), None))?
        .map_err(|error| failed(chain(&error), error.remedy()))
}

/// The report of a plugin that is not there.
fn gone(
    id: &str,
    kind: PluginKind,
    state: PluginState,
    detail: String,
    remedy: Option<String>,
) -> PluginReport {
    PluginReport {
        plugin: id.to_string(),
        kind,
        state,
        version: None,
        description: None,
        tools: 0,
        hooks: 0,
        evals: 0,
        providers: 0,
        detail: Some(detail),
        remedy,
        failure: None,
    }
}

fn report(registered: &Registered) -> PluginReport {
    let loaded = registered.loaded();
    let identity = registered.identity();
    let problems: Vec<_> =
        registered.diagnostics().iter().map(|diagnostic| diagnostic.problem.as_str()).collect();
    PluginReport {
        plugin: loaded.id().to_string(),
        kind: loaded.kind(),
        state: PluginState::Ready,
        version: Some(identity.version.clone()),
        description: Some(identity.description.clone()),
        tools: registered.tools().len(),
        hooks: registered.hooks().len(),
        evals: registered.evals().len(),
        providers: registered.providers().len(),
        detail: (!problems.is_empty()).then(|| problems.join("; ")),
        remedy: None,
        failure: None,
    }
}

/// Registers plugins again that say they have changed, for as long as the platform is there.
async fn attend(platform: Weak<Inner>, news: News) {
    loop {
        news.changed().await;
        // Several changes in a row are one.
        tokio::time::sleep(SETTLE).await;
        let changed = news.take_changed();
        let Some(inner) = platform.upgrade() else { return };
        inner.register_again(&changed).await;
        drop(inner);
        // A plugin that never stops changing must not keep the host busy.
        tokio::time::sleep(PAUSE).await;
    }
}

impl Inner {
    /// Asks plugins again what they contribute.
    async fn register_again(&self, changed: &BTreeSet<Arc<str>>) {
        let registry = self.registry.load_full();
        let asked = registry.plugins().iter().map(async |former| {
            let id = former.loaded().id();
            if !changed.contains(id) {
                return (former.clone(), None);
            }
            let plugin = id.clone();
            match register_again(former).await {
                Ok(registered) => (Arc::new(registered), Some(Event::Registered { plugin })),
                Err(failure) => {
                    tracing::warn!(plugin = &**id, "the plugin did not register again: {failure}");
                    let problem = failure.to_string();
                    (former.clone(), Some(Event::NotRegistered { plugin, problem }))
                }
            }
        });
        let asked = futures::future::join_all(asked).await;
        let (plugins, events): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        let registry = Registry::new(plugins, registry.settings().clone());
        self.registry.store(Arc::new(registry));
        for event in events.into_iter().flatten() {
            let _ = self.news.events().send(event);
        }
    }
}

impl Platform {
    /// Begins to put a platform together, in the surroundings of this process.
    pub fn builder() -> Builder {
        Builder {
            configs: Vec::new(),
            places: Places::default(),
            discovery: None,
            surroundings: Surroundings::of_process(),
            allocation: Allocation::OnDemand,
            builtins: Vec::new(),
            approvals: Approvals::default(),
        }
    }

    /// What the plugins contribute at this moment.
    pub fn registry(&self) -> Arc<Registry> {
        self.inner.registry.load_full()
    }

    /// How each plugin fared when the platform was built, in load order; those that discovery left
    /// out come last.
    pub fn plugins(&self) -> &[PluginReport] {
        &self.inner.reports
    }

    /// What is wrong apart from plugins that are not there.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let registry = self.registry();
        self.inner.diagnostics.iter().chain(registry.diagnostics()).cloned().collect()
    }

    /// How instances get their memory.
    pub fn allocation(&self) -> Allocation {
        self.inner.allocation
    }

    /// What happens from now on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.inner.news.events().subscribe()
    }

    /// Calls a tool.
    ///
    /// # Errors
    ///
    /// [`CallError`] says who is to blame. A tool that could not do what it was asked is none: its
    /// result says so.
    pub async fn call(&self, call: Call) -> Result<ToolResult, CallError> {
        invoke::call::call_tool(&self.registry(), call).await
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
        Ok(invoke::hooks::fire(&self.registry(), point, context, caller).await)
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
        invoke::eval::evaluate(&self.registry(), strategy, subject, options, caller).await
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
        invoke::provider::complete(&self.registry(), request, caller).await
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
        invoke::provider::stream(&self.registry(), request, caller).await
    }

    /// Ends all plugins, each of which may say good-bye first. Calls in flight are given up.
    pub async fn shutdown(self) {
        if let Some(attending) = self.inner.stop_attending() {
            let _ = attending.await;
        }
        let registry = self.inner.registry.swap(Arc::new(Registry::default()));
        let goodbyes = registry.plugins().iter().map(|plugin| plugin.loaded().plugin().shutdown());
        if tokio::time::timeout(GOODBYE, futures::future::join_all(goodbyes)).await.is_err() {
            tracing::warn!("some plugins did not end in time and were dropped");
        }
    }
}
