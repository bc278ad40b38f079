//! Putting a platform together.

use arc_swap::ArcSwap;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, join_all};
use futures::stream::{self, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::available_parallelism;
use tenon_config::admit::{ContentDigests, Refusal, Rules, admit};
use tenon_config::config::{Config, ConfigError, combine};
use tenon_config::diagnostic::{Diagnostic, chain};
use tenon_config::discover::trust::TrustBasis;
use tenon_config::discover::{
    Candidate, Discovery, Fingerprint, PluginKind, PluginOrigin, Sources, discover,
    discover_trusted,
};
use tenon_config::host_environment::HostEnvironment;
use tenon_config::limits::Limits;
use tenon_config::pins::Quarantine;
use tenon_config::secret::LocalSecretStore;
use tenon_runs::Runs;
use tenon_store::LazyStore;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::plugin_report::{gone, there};
use super::reload::{PluginSlot, Plugins, TrackedCandidate};
use super::reregister::reregister;
use super::runs::RunServices;
use super::{Inner, Platform, PluginReport, PluginState};
use crate::call::Failure;
use crate::capability::granted::{HostServices, OtherPlugins};
use crate::capability::server::{AccessRecorder, StartObserver, StartQueueProgress};
use crate::capability::services::{
    AccessTokens, Approver, CallApprover, ClientFeatures, Clock, Connector, HostCallInterceptor,
    LazyInStore, MemorySearch, Messaging, Pins, Resolver, STATE_FILE, SecretStore, Services,
    StateBackend, Store, StoreError, ask_approver,
};
use crate::invoke::permission::CallApprovalGate;
use crate::invoke::stored_results::ResultStore;
use crate::invoke::{InvokeServices, LatestRegistry};
use crate::load::{LoadError, LoadedPlugin, Loader};
use crate::observe::PluginNotifications;
use crate::observe::history::HistoryHandle;
use crate::register::{RegisteredPlugin, learn, register, register_as};
use crate::runtime::schema;
use crate::runtime::{Allocation, EngineError, EngineOptions, Plugin, RunLimits};

/// Why the platform could not be built. A bad plugin is never a reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The engine could not be set up.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Builds a [`Platform`].
pub struct Builder {
    sources: Sources,
    discovery: Option<Discovery>,
    allocation: Allocation,
    traces_lines: bool,
    builtins: Vec<(String, Arc<dyn Plugin>)>,
    services: Services,
    lazy: bool,
    state: Option<PathBuf>,
    store: Option<LazyStore>,
    run_limits: Option<RunLimits>,
    most: Option<Limits>,
    until: Until,
    start_first: BTreeSet<String>,
    start_observer: Option<StartObserver>,
    decision_files: BTreeSet<PathBuf>,
    server_launcher: Option<PathBuf>,
    recorders: BTreeMap<String, AccessRecorder>,
}

/// Completes when plugins are not waited for any more.
type Until = Shared<BoxFuture<'static, ()>>;

impl Builder {
    pub(super) fn new() -> Self {
        let host_environment = HostEnvironment::of_process();
        Self {
            sources: Sources { host_environment, ..Sources::default() },
            discovery: None,
            allocation: Allocation::default(),
            traces_lines: false,
            builtins: Vec::new(),
            services: Services::default(),
            lazy: true,
            state: None,
            store: None,
            run_limits: None,
            most: None,
            until: pending().boxed().shared(),
            start_first: BTreeSet::new(),
            start_observer: None,
            decision_files: BTreeSet::new(),
            server_launcher: None,
            recorders: BTreeMap::new(),
        }
    }

    /// Sets what starts MCP servers with `capabilities` in a sandbox: an executable that calls [`crate::run_launcher`]
    /// before anything else, for example that of this process. Without one, servers run unconfined, and are refused
    /// where the policy requires confinement.
    pub fn server_launcher(mut self, launcher: impl Into<PathBuf>) -> Self {
        self.server_launcher = Some(launcher.into());
        self
    }

    /// Records what a confined server is refused, or would be; see [`AccessRecorder`].
    pub fn record_server(mut self, server: impl Into<String>, recorder: AccessRecorder) -> Self {
        self.recorders.insert(server.into(), recorder);
        self
    }

    /// Waits for plugins at most until this future completes. Plugins that have not registered by then are
    /// reported as failed.
    pub fn until(mut self, done: impl Future<Output = ()> + Send + 'static) -> Self {
        self.until = done.boxed().shared();
        self
    }

    /// Stores call records ([`crate::observe::history`]), truncated results and what plugins keep (`state`) in this
    /// folder. Without it, and without a [`store`](Self::store), calls are not recorded, and the others end with the
    /// platform.
    pub fn state(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state = Some(folder.into());
        self
    }

    /// Sets where call records and what plugins keep (`state`) are stored. The default is a database in the folder of
    /// [`state`](Self::state).
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(LazyStore::from(Arc::new(store) as Arc<dyn Store>));
        self
    }

    /// Sets what opens that store when something is first to be stored. Where it cannot be opened, calls that need no store are
    /// made all the same, and the others say why they are not; it is tried again by the next one. It may block.
    pub fn store_opened_by(
        mut self,
        open: impl Fn() -> Result<Arc<dyn Store>, StoreError> + Send + Sync + 'static,
    ) -> Self {
        self.store = Some(LazyStore::elsewhere(open));
        self
    }

    /// Sets the bounds of runs of scripts ([`Platform::runner`]), in place of `[runs]` of configurations.
    pub fn run_limits(mut self, limits: RunLimits) -> Self {
        self.run_limits = Some(limits);
        self
    }

    /// Sets the clock of scripts. The default is the system's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.services.clock = Arc::new(clock);
        self
    }

    /// Adds a project: its `tenon.toml`, if there is one, and the plugins in its `.tenon/plugins`.
    ///
    /// # Errors
    ///
    /// If its `tenon.toml` exists and cannot be read or parsed.
    pub fn project(self, folder: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let folder = folder.into();
        Ok(self.config(Config::read_optional(folder.join("tenon.toml"))?).workspace(folder))
    }

    /// Adds a configuration. If two plugins have the same id, that of the first configuration is loaded.
    pub fn config(mut self, config: Config) -> Self {
        self.sources.configs.push(config);
        self
    }

    /// Also looks for plugins in `.tenon/plugins` of this folder.
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.sources.workspace = Some(folder.into());
        self
    }

    /// Looks for the host's bundled plugins in this folder.
    pub fn bundled(mut self, folder: impl Into<PathBuf>) -> Self {
        self.sources.bundled.push(folder.into());
        self
    }

    /// Sets all sources of plugins, replacing those set before.
    pub fn sources(mut self, sources: Sources) -> Self {
        self.sources = sources;
        self
    }

    /// Loads an earlier discovery instead of running a new one. The configurations' policies still apply.
    pub fn discovery(mut self, discovery: Discovery) -> Self {
        self.discovery = Some(discovery);
        self
    }

    /// Sets the environment to use instead of the process's own.
    pub fn host_environment(mut self, host_environment: HostEnvironment) -> Self {
        self.sources.host_environment = host_environment;
        self
    }

    /// Sets how instances get their memory. The default is [`Allocation::Automatic`].
    pub fn allocation(mut self, allocation: Allocation) -> Self {
        self.allocation = allocation;
        self
    }

    /// Writes to the log of a component that fails where it was, with lines of its source: of one that was built with line
    /// tables, as by `tenon build --debug`. Compiled code is larger and takes longer to compile, so this is for those who
    /// write plugins. The default is not to.
    pub fn backtraces(mut self, traces_lines: bool) -> Self {
        self.traces_lines = traces_lines;
        self
    }

    /// Adds a built-in plugin. Built-in plugins come before all others.
    pub fn builtin(mut self, id: impl Into<String>, plugin: impl Plugin) -> Self {
        self.builtins.push((id.into(), Arc::new(plugin)));
        self
    }

    /// Sets who sends plugins' messages. By default messages are refused.
    pub fn messaging(mut self, messaging: impl Messaging) -> Self {
        self.services.messaging = Arc::new(messaging);
        self
    }

    /// Sets who searches memories for plugins. By default nothing is found.
    pub fn memory(mut self, memory: impl MemorySearch) -> Self {
        self.services.memory = Arc::new(memory);
        self
    }

    /// Has somebody stand between plugins and what they ask of others: tests that record it, or answer in their place.
    pub fn host_call_interceptor(mut self, interceptor: impl HostCallInterceptor) -> Self {
        self.services.interceptor = Some(Arc::new(interceptor));
        self
    }

    /// Sets who answers requests of MCP servers to their client. By default servers cannot make any.
    pub fn client_features(mut self, features: impl ClientFeatures) -> Self {
        self.services.features = Arc::new(features);
        self
    }

    /// Starts every MCP server at once. By default a server whose tools are cached is started by its first
    /// call.
    pub fn start_servers(mut self) -> Self {
        self.lazy = false;
        self
    }

    /// Starts the MCP servers of these plugins first.
    pub fn start_first(mut self, plugins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.start_first.extend(plugins.into_iter().map(Into::into));
        self
    }

    /// Observes MCP servers that start, become ready or fail to start, also after the platform is built. The
    /// observer runs while the start queue is locked and must not block.
    pub fn on_start_progress(
        mut self,
        observer: impl Fn(&StartQueueProgress<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.start_observer = Some(Arc::new(observer));
        self
    }

    /// Names files beside those of plugins that decide what is loaded, such as those of an
    /// [`approver`](Self::approver): [`Platform::watch`] notices when they change.
    pub fn decision_files(mut self, files: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.decision_files.extend(files.into_iter().map(Into::into));
        self
    }

    /// Sets who approves what plugins request. By default nothing is approved.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.services.approver = Arc::new(approver);
        self
    }

    /// Sets who decides of calls that the operator's rules have approved ([`CallApprover`]). By default nobody does, so that
    /// the user of the client is asked, or the call waits for [`Platform::approve_call`].
    pub fn call_approver(mut self, approver: impl CallApprover) -> Self {
        self.services.call_approver = Arc::new(approver);
        self
    }

    /// Sets where definitions of MCP tools are pinned when first seen, so that changed ones are held. By
    /// default nothing is pinned.
    pub fn pins(mut self, pins: impl Pins) -> Self {
        self.services.pins = Arc::new(pins);
        self
    }

    /// Sets where secrets come from. By default the secret `api-key` is the variable `API_KEY`, or the file
    /// `api-key` in the folder `secrets` of the user's configuration.
    pub fn secrets(mut self, secrets: impl SecretStore) -> Self {
        self.services.secrets = Some(Arc::new(secrets));
        self
    }

    /// Sets where access tokens for MCP servers elsewhere come from. By default there are none, and such servers get the
    /// `headers` of their entries only.
    pub fn access_tokens(mut self, tokens: impl AccessTokens) -> Self {
        self.services.access_tokens = Arc::new(tokens);
        self
    }

    /// Caps the limits of all plugins, whatever configurations and manifests say. By default the operator's
    /// settings apply, and [`Limits::most`] caps what manifests ask for.
    pub fn limits_at_most(mut self, most: Limits) -> Self {
        self.most = Some(most);
        self
    }

    /// Sets who resolves host names for plugins' requests. The default is the system's resolver.
    pub fn resolver(mut self, resolver: impl Resolver) -> Self {
        self.services.network.resolver = Arc::new(resolver);
        self
    }

    /// Sets who connects for plugins' requests. The default is TCP.
    pub fn connector(mut self, connector: impl Connector) -> Self {
        self.services.network.connector = Arc::new(connector);
        self
    }

    /// Takes all plugins through the five steps. A plugin that fails in one gets a [`PluginReport`] and stops
    /// there; the others continue.
    ///
    /// # Errors
    ///
    /// Only if the engine cannot be set up.
    pub async fn build(self) -> Result<Platform, BuildError> {
        let Self {
            mut sources,
            discovery,
            allocation,
            traces_lines,
            builtins,
            mut services,
            state,
            store,
            run_limits,
            most,
            lazy,
            until,
            start_first,
            start_observer,
            decision_files,
            server_launcher,
            recorders,
        } = self;
        Config::inherit(&mut sources.configs);
        let (sources, discovery) = match discovery {
            Some(discovery) => (sources, discovery),
            // Looking through folders blocks.
            None => tokio::task::spawn_blocking(move || {
                if sources.trust == TrustBasis::Host {
                    let discovery = discover(&sources);
                    return (sources, discovery);
                }
                let (mut discovery, errors) = discover_trusted(&mut sources);
                let errors = errors.iter().map(|error| Diagnostic::unplaced(chain(error)));
                discovery.diagnostics.extend(errors);
                (sources, discovery)
            })
            .await
            .expect("discovery does not panic, and is not aborted"),
        };
        let kept = sources.configs.first().map(|config| config.results).unwrap_or_default();
        let results = state.as_ref().map(|folder| folder.join("results"));
        let results = Arc::new(ResultStore::new(results, kept));
        // While components are loaded.
        tokio::task::spawn_blocking(schema::prepare);
        let news = PluginNotifications::default();
        let approver = services.approver.clone();
        let pins = services.pins.clone();
        let secrets = services
            .secrets
            .clone()
            .unwrap_or_else(|| Arc::new(LocalSecretStore::new(sources.host_environment.clone())));
        let is_recorded = store.is_some() || state.is_some();
        let state_file = state.as_ref().map(|folder| folder.join(STATE_FILE));
        let store = Arc::new(store.unwrap_or_else(|| LazyStore::new(state_file)));
        let permissions = CallApprovalGate::new(store.clone(), services.call_approver.clone());
        let permissions = Arc::new(permissions);
        let run_limits = run_limits.unwrap_or_else(|| {
            let first = sources.configs.first().map(|config| config.runs);
            RunLimits::from(first.unwrap_or_default())
        });
        let runs = RunServices::new(LazyInStore::new(store.clone(), Runs::new), run_limits);
        let backend = StateBackend::new(store.clone());
        services.state = Arc::new(backend.in_project(sources.workspace.clone()));
        let history = match is_recorded {
            true => open_history(state, store.clone(), &sources.configs),
            false => None,
        };
        let plugin_state = services.state.clone();
        let host_services = Arc::new(HostServices::new(services));
        let loader = Loader::new(
            EngineOptions { allocation, traces_lines },
            &sources.host_environment,
            news.clone(),
            host_services.clone(),
        )?;
        let loader = loader.lazy(lazy).launcher(server_launcher).recording(recorders);
        loader.protect(&discovery.deciding);
        loader.know(&discovery.secrets);
        loader.starts().set_slots(concurrent_starts(&sources.configs));
        if let Some(observer) = start_observer {
            loader.starts().observe(observer);
        }
        let allocation = loader.allocation();
        let factory = Arc::new(PluginFactory {
            loader,
            approver,
            pins,
            secrets,
            most,
            reserved: builtins.iter().map(|(id, _)| id.clone()).collect(),
            places: Semaphore::new(2 * available_parallelism().map_or(2, usize::from)),
        });

        let config = combine::speaking_for(&sources.configs, PluginOrigin::Bundled);
        let limits = config.map_or_else(Limits::default, |config| config.limits.clone());
        let builtins = builtins.into_iter().map(async |(id, plugin)| {
            let schemas = factory.loader.schemas().clone();
            PluginSlot::of_builtin(LoadedPlugin::builtin(&id, plugin, &limits, schemas)).await
        });
        let mut slots = join_all(builtins).await;
        let rules = tokio::select! {
            rules = factory.rules(&sources.configs, &discovery.candidates) => Some(rules),
            () = until.clone() => None,
        };
        let candidates = discovery.candidates.into_iter().map(|candidate| (candidate, None));
        let candidates: Vec<_> = candidates.collect();
        slots.extend(match rules {
            Some(rules) => factory.bring_until(candidates, &rules, &start_first, until).await,
            // Who was to approve did not.
            None => join_all(candidates.into_iter().map(late)).await,
        });
        let problems = discovery.diagnostics.iter().map(ToString::to_string).collect();
        let mut plugins = Plugins {
            sources,
            factory,
            slots,
            left_out: discovery.left_out,
            diagnostics: discovery.diagnostics,
            looked_in: discovery.looked_in,
            problems,
            replaced: Vec::new(),
            retiring: Default::default(),
            quarantine: Quarantine::default(),
            untrusted: discovery.untrusted,
        };
        plugins.check_pins().await;
        let inner = Arc::new(Inner {
            current: ArcSwap::from_pointee(plugins.current()),
            plugins: AsyncMutex::new(plugins),
            state: plugin_state,
            store,
            allocation,
            decision_files,
            invoke_services: Arc::new(InvokeServices {
                news: news.clone(),
                history,
                results,
                permissions,
                latest: OnceLock::new(),
            }),
            closing: AtomicBool::new(false),
            runs,
            draining: OnceLock::new(),
            reregistering: Mutex::default(),
        });
        let latest: Weak<dyn LatestRegistry> = Arc::<Inner>::downgrade(&inner);
        let _ = inner.invoke_services.latest.set(latest);
        let other_plugins: Weak<dyn OtherPlugins> = Arc::<Inner>::downgrade(&inner);
        host_services.lead_to(other_plugins);
        let reregistering = tokio::spawn(reregister(Arc::downgrade(&inner), news));
        *inner.reregistering.lock().unwrap_or_else(PoisonError::into_inner) = Some(reregistering);
        Ok(Platform { inner })
    }
}

/// The record of calls, unless a configuration wants none. The folder is where former versions had it.
fn open_history(
    folder: Option<PathBuf>,
    store: Arc<LazyStore>,
    configs: &[Config],
) -> Option<HistoryHandle> {
    let settings = configs.first().map(|config| config.history).unwrap_or_default();
    if !settings.enabled {
        return None;
    }
    HistoryHandle::open(folder, store, u64::from(settings.max_mib) << 20)
        .inspect_err(|error| tracing::warn!("calls are not recorded: {error}"))
        .ok()
}

/// How many servers start at a time, where it is said.
fn concurrent_starts(configs: &[Config]) -> Option<usize> {
    let starts = configs.first()?.supervision.concurrent_starts?;
    usize::try_from(starts.get()).ok()
}

/// How many plugins are on their way at a time; most of them wait for something.
const MAX_CONCURRENT_LOADS: usize = 64;

/// What plugins are made with, when a platform is built and when they are loaded again.
pub(super) struct PluginFactory {
    pub(super) loader: Loader,
    approver: Arc<dyn Approver>,
    pub(super) pins: Arc<dyn Pins>,
    secrets: Arc<dyn SecretStore>,
    /// What no plugin's limits go beyond.
    most: Option<Limits>,
    /// The ids of built-in plugins.
    reserved: Vec<String>,
    /// Compiling takes a processor.
    places: Semaphore,
}

impl PluginFactory {
    /// Keeps files that decide what is started from the globs of what is loaded from then on.
    pub(super) fn protect(&self, deciding: &BTreeSet<PathBuf>) {
        self.loader.protect(deciding);
    }

    /// Collects the rules for admission, and asks the approver about candidates that request something.
    pub(super) async fn rules(&self, configs: &[Config], candidates: &[Candidate]) -> Arc<Rules> {
        let rules = Rules::new(configs).reserve(self.reserved.iter().cloned());
        let bound: Vec<Candidate> =
            candidates.iter().filter(|candidate| candidate.lock_entry.is_some()).cloned().collect();
        let contents = match bound.is_empty() {
            true => ContentDigests::default(),
            // It reads files.
            false => tokio::task::spawn_blocking(move || ContentDigests::read(&bound))
                .await
                .expect("reading does not panic, and is not aborted"),
        };
        let rules = rules.contents(contents);
        let approvals = ask_approver(candidates, &rules, &*self.approver).await;
        Arc::new(rules.approve(approvals))
    }

    /// Takes candidates through all steps to registration, or finds out why they fail. The order is kept.
    pub(super) async fn bring_all(
        self: &Arc<Self>,
        candidates: Vec<(Candidate, Option<Fingerprint>)>,
        rules: &Arc<Rules>,
    ) -> Vec<PluginSlot> {
        let until = pending().boxed().shared();
        self.bring_until(candidates, rules, &BTreeSet::new(), until).await
    }

    /// Takes candidates through all steps; those that are late are reported as failed.
    async fn bring_until(
        self: &Arc<Self>,
        candidates: Vec<(Candidate, Option<Fingerprint>)>,
        rules: &Arc<Rules>,
        start_first: &BTreeSet<String>,
        until: Until,
    ) -> Vec<PluginSlot> {
        candidates.iter().for_each(|(candidate, _)| self.loader.know(&candidate.secrets));
        let is_first = |candidate: &Candidate| start_first.contains(candidate.id());
        let mut candidates: Vec<_> = candidates
            .into_iter()
            .enumerate()
            .map(|(place, (candidate, fingerprint))| {
                let expected = is_first(&candidate) && candidate.kind() == PluginKind::Mcp;
                let expected = expected.then(|| self.loader.starts().expect(candidate.id()));
                (place, candidate, fingerprint, expected)
            })
            .collect();
        // Servers wait for each other; nothing else has to wait for them.
        candidates.sort_by_key(|(_, candidate, _, expected)| {
            (expected.is_none(), candidate.kind() == PluginKind::Mcp)
        });
        let slots =
            candidates.into_iter().map(async |(place, candidate, fingerprint, expected)| {
                let slot = self.bring(candidate, fingerprint, rules.clone(), until.clone()).await;
                drop(expected);
                (place, slot)
            });
        let slots = stream::iter(slots).buffer_unordered(MAX_CONCURRENT_LOADS);
        let mut slots: Vec<(usize, PluginSlot)> = slots.collect().await;
        slots.sort_by_key(|(place, _)| *place);
        slots.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Applies the configurations' settings of the host.
    pub(super) fn configure(&self, configs: &[Config]) {
        self.loader.starts().set_slots(concurrent_starts(configs));
    }

    /// Takes one candidate there. Its fingerprint, where it is known, was taken before: what is
    /// written meanwhile is found to be another. One that has answered is there, whenever it is done.
    async fn bring(
        self: &Arc<Self>,
        candidate: Candidate,
        fingerprint: Option<Fingerprint>,
        rules: Arc<Rules>,
        until: Until,
    ) -> PluginSlot {
        let (id, kind) = (candidate.id().to_string(), candidate.kind());
        let loaded_from = candidate.clone();
        let requested = candidate.requested();
        let gone = |state, detail, remedy| PluginReport {
            requested: requested.clone(),
            ..gone(&id, kind, state, detail, remedy)
        };
        let Some(loaded) = before(&until, self.load(candidate, rules)).await else {
            return late((loaded_from, fingerprint)).await;
        };
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(NotLoaded::Refused(refusal)) => {
                let state = match refusal.is_meant() {
                    true => PluginState::Denied,
                    false => PluginState::Refused,
                };
                let report = PluginReport {
                    awaits_approval: refusal.awaits_approval(),
                    ..gone(state, refusal.to_string(), Some(refusal.remedy()))
                };
                return PluginSlot::without(loaded_from, fingerprint, report).await;
            }
            Err(NotLoaded::Failed { state, detail, remedy }) => {
                let report = gone(state, detail, remedy);
                return PluginSlot::without(loaded_from, fingerprint, report).await;
            }
        };
        let Some(learned) = before(&until, learn(&loaded)).await else {
            return late((loaded_from, fingerprint)).await;
        };
        let server = loaded.supervised().cloned();
        let registered = match learned {
            Ok(learned) => register_as(loaded, learned).await,
            Err(failure) => Err(failure),
        };
        match registered {
            Ok(registered) => PluginSlot::with(loaded_from, registered),
            Err(failure) => {
                let exceeded = server.and_then(|server| server.startup_exceeded());
                let remedy = match exceeded {
                    Some(startup) => Some(loaded_from.how_to_wait_longer(startup)),
                    None => loaded_from.what_to_check(),
                };
                let detail = failure.to_string();
                let report = PluginReport {
                    // What its bridge answers has the server's last words; it is out of time.
                    failure: Some(exceeded.map_or(failure, Failure::Deadline)),
                    ..gone(PluginState::Failed, detail, remedy)
                };
                PluginSlot::without(loaded_from, fingerprint, report).await
            }
        }
    }

    /// Admits and loads a candidate.
    async fn load(
        self: &Arc<Self>,
        mut candidate: Candidate,
        rules: Arc<Rules>,
    ) -> Result<LoadedPlugin, NotLoaded> {
        if let Some(most) = &self.most {
            candidate.limits = candidate.limits.at_most(most);
        }
        let mut admitted = admit(candidate, &rules).map_err(NotLoaded::Refused)?;
        let (id, names) = admitted.secrets();
        for name in names {
            match self.secrets.secret(&id, &name).await {
                Some(secret) => admitted.give(name, secret),
                None => {
                    if let Some(remedy) = self.secrets.remedy(&name) {
                        tracing::warn!("plugin \"{id}\": the secret {name} is not set; {remedy}");
                    }
                }
            }
        }
        let place = self.places.acquire().await;
        let factory = self.clone();
        // Compiling blocks.
        let loaded = tokio::task::spawn_blocking(move || factory.loader.load(admitted)).await;
        drop(place);
        match loaded {
            Ok(loaded) => loaded.map_err(NotLoaded::from),
            Err(error) => Err(NotLoaded::Failed {
                state: PluginState::Failed,
                detail: error.to_string(),
                remedy: None,
            }),
        }
    }
}

/// The result of a future that completes in time.
async fn before<T>(until: &Until, done: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        // What is there is there.
        biased;
        done = done => Some(done),
        () = until.clone() => None,
    }
}

/// The slot of a plugin that did not register in time.
async fn late((candidate, fingerprint): (Candidate, Option<Fingerprint>)) -> PluginSlot {
    let why = "it was not waited for any longer".to_string();
    let (id, kind) = (candidate.id(), candidate.kind());
    let report = gone(id, kind, PluginState::Failed, why, None);
    PluginSlot::without(candidate, fingerprint, report).await
}

/// Why a candidate was not loaded, and what to do about it.
enum NotLoaded {
    Refused(Refusal),
    Failed { state: PluginState, detail: String, remedy: Option<String> },
}

impl From<LoadError> for NotLoaded {
    fn from(error: LoadError) -> Self {
        let state = match error.is_refusal() {
            true => PluginState::Refused,
            false => PluginState::Failed,
        };
        Self::Failed { state, detail: chain(&error), remedy: error.remedy() }
    }
}

impl PluginSlot {
    async fn of_builtin(loaded: LoadedPlugin) -> Self {
        let id = loaded.id().to_string();
        match register(loaded).await {
            Ok(registered) => Self {
                id,
                loaded_from: None,
                report: there(&registered),
                registered: Some(Arc::new(registered)),
            },
            Err(failure) => {
                let detail = failure.to_string();
                let report = gone(&id, PluginKind::Builtin, PluginState::Failed, detail, None);
                let report = PluginReport { failure: Some(failure), ..report };
                Self { id, loaded_from: None, report, registered: None }
            }
        }
    }

    fn with(candidate: Candidate, registered: RegisteredPlugin) -> Self {
        let fingerprint = registered.loaded().fingerprint().cloned();
        Self {
            id: candidate.id().to_string(),
            report: there(&registered),
            registered: Some(Arc::new(registered)),
            loaded_from: fingerprint.map(|tried| TrackedCandidate {
                candidate,
                tried,
                login: None,
            }),
        }
    }

    async fn without(
        candidate: Candidate,
        fingerprint: Option<Fingerprint>,
        report: PluginReport,
    ) -> Self {
        let id = candidate.id().to_string();
        let loaded_from = tokio::task::spawn_blocking(move || {
            let tried = fingerprint.unwrap_or_else(|| candidate.fingerprint());
            TrackedCandidate { candidate, tried, login: None }
        });
        Self { id, loaded_from: loaded_from.await.ok(), registered: None, report }
    }
}
