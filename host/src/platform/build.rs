//! Putting a platform together.

use arc_swap::ArcSwap;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, join_all};
use futures::stream::{self, StreamExt};
use std::collections::BTreeSet;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::available_parallelism;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::attend::attend;
use super::reload::{MadeOf, Plugins, Slot};
use super::report::{gone, there};
use super::{Inner, Platform, PluginReport, PluginState};
use crate::admit::{Approvals, Contents, Refusal, Rules, admit};
use crate::capability::lent::{Hub, Reach};
use crate::capability::notify::News;
use crate::config::{Config, ConfigError, combine};
use crate::diagnostic::{Diagnostic, chain};
use crate::discover::{
    Candidate, Discovery, Fingerprint, Origin, PluginKind, Sources, discover, discover_trusted,
};
use crate::history::History;
use crate::invoke::Facilities;
use crate::limits::Limits;
use crate::load::{LoadError, Loaded, Loader};
use crate::pins::Holds;
use crate::register::{Registered, learn, register, register_as};
use crate::results::Results;
use crate::runtime::{Allocation, EngineError, Failure, Plugin};
use crate::schema;
use crate::secret::SurroundingSecrets;
use crate::server::{StartObserver, StartProgress};
use crate::services::{
    Approver, ClientFeatures, Connector, MemorySearch, Messaging, Pins, Resolver, SecretStore,
    Services,
};
use crate::surroundings::Surroundings;
use crate::trust::ProjectTrust;

/// Why there is no platform. One bad plugin is never a reason.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The engine could not be set up.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Puts a platform together.
pub struct Builder {
    sources: Sources,
    discovery: Option<Discovery>,
    allocation: Allocation,
    builtins: Vec<(String, Arc<dyn Plugin>)>,
    services: Services,
    lazy: bool,
    state: Option<PathBuf>,
    most: Option<Limits>,
    until: Until,
    start_first: BTreeSet<String>,
    start_observer: Option<StartObserver>,
}

/// When plugins are not waited for any more.
type Until = Shared<BoxFuture<'static, ()>>;

impl Builder {
    pub(super) fn new() -> Self {
        let surroundings = Surroundings::of_process();
        Self {
            sources: Sources { surroundings, ..Sources::default() },
            discovery: None,
            allocation: Allocation::OnDemand,
            builtins: Vec::new(),
            services: Services::default(),
            lazy: true,
            state: None,
            most: None,
            until: pending().boxed().shared(),
            start_first: BTreeSet::new(),
            start_observer: None,
        }
    }

    /// Waits for plugins no longer than until this is done. Those that are there by then are there,
    /// and the others are reported as failed: a platform that nobody wants any more can be shut down.
    pub fn until(mut self, done: impl Future<Output = ()> + Send + 'static) -> Self {
        self.until = done.boxed().shared();
        self
    }

    /// Keeps a record of calls in this folder ([`crate::history`]), and results that were too long
    /// to be passed on. Without it there is no record, and such results are gone with the platform.
    pub fn state(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state = Some(folder.into());
        self
    }

    /// Adds a project: what its `tenon.toml` says, where it has one, and the plugins in its
    /// `.tenon/plugins`.
    ///
    /// # Errors
    ///
    /// Where there is a `tenon.toml` and it cannot be read or understood.
    pub fn project(self, folder: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let folder = folder.into();
        Ok(self.config(Config::read_optional(folder.join("tenon.toml"))?).workspace(folder))
    }

    /// Adds a configuration. Of two plugins with one id, the one of the first configuration is
    /// loaded.
    pub fn config(mut self, config: Config) -> Self {
        self.sources.configs.push(config);
        self
    }

    /// Looks for plugins in the `.tenon/plugins` of this folder, too.
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.sources.workspace = Some(folder.into());
        self
    }

    /// Looks in this folder for plugins that come with the host.
    pub fn bundled(mut self, folder: impl Into<PathBuf>) -> Self {
        self.sources.bundled.push(folder.into());
        self
    }

    /// Takes the sources of plugins as a whole, in place of what was said of them before.
    pub fn sources(mut self, sources: Sources) -> Self {
        self.sources = sources;
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
        self.sources.surroundings = surroundings;
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

    /// Sends the messages of plugins that may send any. Without it none is sent.
    pub fn messaging(mut self, messaging: impl Messaging) -> Self {
        self.services.messaging = Arc::new(messaging);
        self
    }

    /// Searches the host's memory for plugins that may ask for it. Without it nothing is found.
    pub fn memory(mut self, memory: impl MemorySearch) -> Self {
        self.services.memory = Arc::new(memory);
        self
    }

    /// Answers what MCP servers ask of their client. Without it they can ask for nothing.
    pub fn client_features(mut self, features: impl ClientFeatures) -> Self {
        self.services.features = Arc::new(features);
        self
    }

    /// Starts every MCP server, also those whose tools are known from the last time. Without it a
    /// known server is started by the first call.
    pub fn start_servers(mut self) -> Self {
        self.lazy = false;
        self
    }

    /// Starts the MCP servers of these plugins before all others.
    pub fn start_first(mut self, plugins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.start_first.extend(plugins.into_iter().map(Into::into));
        self
    }

    /// Tells of each MCP server that starts, is ready or fails to start: also after the platform was
    /// built. It is told while the queue of starts is locked, and must not wait.
    pub fn on_start_progress(
        mut self,
        observer: impl Fn(&StartProgress<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.start_observer = Some(Arc::new(observer));
        self
    }

    /// Says what plugins get of what they request. Without it they get nothing.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.services.approver = Arc::new(approver);
        self
    }

    /// Remembers what tools of MCP servers were when they were first seen, so that those which are
    /// something else later are held. Without it none is.
    pub fn pins(mut self, pins: impl Pins) -> Self {
        self.services.pins = Arc::new(pins);
        self
    }

    /// Keeps the secrets of plugins. Without it they come from the environment, and from files in
    /// the folder `secrets` of the user's configuration folder: the secret `api-key` is the variable
    /// `API_KEY`, or the file `api-key`.
    pub fn secrets(mut self, secrets: impl SecretStore) -> Self {
        self.services.secrets = Some(Arc::new(secrets));
        self
    }

    /// Bounds the limits of all plugins, whatever configurations and manifests say. Without it they
    /// are bounded by what the operator says, and what a manifest asks for by [`Limits::most`].
    pub fn limits_at_most(mut self, most: Limits) -> Self {
        self.most = Some(most);
        self
    }

    /// Finds the hosts that plugins send requests to. Without it the system does.
    pub fn resolver(mut self, resolver: impl Resolver) -> Self {
        self.services.network.resolver = Arc::new(resolver);
        self
    }

    /// Makes the connections for the requests of plugins. Without it the system does.
    pub fn connector(mut self, connector: impl Connector) -> Self {
        self.services.network.connector = Arc::new(connector);
        self
    }

    /// Takes all plugins through the five steps. A plugin that fails in one leaves the line with a
    /// [`PluginReport`]; the others go on.
    ///
    /// # Errors
    ///
    /// Only where the engine itself cannot be set up.
    pub async fn build(self) -> Result<Platform, BuildError> {
        let Self {
            mut sources,
            discovery,
            allocation,
            builtins,
            services,
            state,
            most,
            lazy,
            until,
            start_first,
            start_observer,
        } = self;
        Config::inherit(&mut sources.configs);
        let (sources, discovery) = match discovery {
            Some(discovery) => (sources, discovery),
            // Looking through folders blocks.
            None => tokio::task::spawn_blocking(move || {
                if sources.trust == ProjectTrust::Host {
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
        let history = state.as_ref().and_then(|folder| open_history(folder, &sources.configs));
        let kept = sources.configs.first().map(|config| config.results).unwrap_or_default();
        let results = Arc::new(Results::new(state.map(|folder| folder.join("results")), kept));
        // While components are loaded.
        tokio::task::spawn_blocking(schema::prepare);
        let news = News::default();
        let approver = services.approver.clone();
        let pins = services.pins.clone();
        let secrets = services
            .secrets
            .clone()
            .unwrap_or_else(|| Arc::new(SurroundingSecrets::new(sources.surroundings.clone())));
        let reach = Arc::new(Reach::new(services));
        let loader = Loader::new(allocation, &sources.surroundings, news.clone(), reach.clone())?;
        let loader = loader.lazy(lazy);
        loader.protect(&discovery.deciding);
        loader.starts().set_slots(concurrent_starts(&sources.configs));
        if let Some(observer) = start_observer {
            loader.starts().observe(observer);
        }
        let allocation = loader.allocation();
        let workshop = Arc::new(Workshop {
            loader,
            approver,
            pins,
            secrets,
            most,
            reserved: builtins.iter().map(|(id, _)| id.clone()).collect(),
            places: Semaphore::new(available_parallelism().map_or(2, Into::into)),
        });

        let config = combine::speaking_for(&sources.configs, Origin::Bundled);
        let limits = config.map_or_else(Limits::default, |config| config.limits.clone());
        let builtins = builtins.into_iter().map(async |(id, plugin)| {
            let schemas = workshop.loader.schemas().clone();
            Slot::of_builtin(Loaded::builtin(&id, plugin, &limits, schemas)).await
        });
        let mut slots = join_all(builtins).await;
        let rules = tokio::select! {
            rules = workshop.rules(&sources.configs, &discovery.candidates) => Some(rules),
            () = until.clone() => None,
        };
        let candidates = discovery.candidates.into_iter().map(|candidate| (candidate, None));
        let candidates: Vec<_> = candidates.collect();
        slots.extend(match rules {
            Some(rules) => workshop.bring_until(candidates, &rules, &start_first, until).await,
            // Who was to approve did not.
            None => join_all(candidates.into_iter().map(late)).await,
        });
        let problems = discovery.diagnostics.iter().map(ToString::to_string).collect();
        let mut plugins = Plugins {
            sources,
            workshop,
            slots,
            left_out: discovery.left_out,
            diagnostics: discovery.diagnostics,
            looked_in: discovery.looked_in,
            problems,
            replaced: Vec::new(),
            retiring: Default::default(),
            holds: Holds::default(),
            untrusted: discovery.untrusted,
        };
        plugins.check_pins().await;
        let inner = Arc::new(Inner {
            current: ArcSwap::from_pointee(plugins.current()),
            plugins: AsyncMutex::new(plugins),
            allocation,
            facilities: Arc::new(Facilities { news: news.clone(), history, results }),
            closing: AtomicBool::new(false),
            draining: OnceLock::new(),
            attending: Mutex::default(),
        });
        let hub: Weak<dyn Hub> = Arc::<Inner>::downgrade(&inner);
        reach.lead_to(hub);
        let attending = tokio::spawn(attend(Arc::downgrade(&inner), news));
        *inner.attending.lock().unwrap_or_else(PoisonError::into_inner) = Some(attending);
        Ok(Platform { inner })
    }
}

/// The record of calls, unless a configuration wants none.
fn open_history(folder: &Path, configs: &[Config]) -> Option<History> {
    let settings = configs.first().map(|config| config.history).unwrap_or_default();
    if !settings.enabled {
        return None;
    }
    History::open(folder.to_path_buf(), u64::from(settings.max_mib) << 20)
        .inspect_err(|error| {
            tracing::warn!("calls are not recorded in {}: {error}", folder.display());
        })
        .ok()
}

/// How many servers start at a time, where it is said.
fn concurrent_starts(configs: &[Config]) -> Option<usize> {
    let starts = configs.first()?.supervision.concurrent_starts?;
    usize::try_from(starts.get()).ok()
}

/// How many plugins are on their way at a time; most of them wait for something.
const ON_THEIR_WAY: usize = 64;

/// What plugins are made with, when a platform is built and when they are loaded again.
pub(super) struct Workshop {
    loader: Loader,
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

impl Workshop {
    /// Keeps files that decide what is started from the globs of what is loaded from then on.
    pub(super) fn protect(&self, deciding: &BTreeSet<PathBuf>) {
        self.loader.protect(deciding);
    }

    /// What candidates are held against. Who approves is asked for those that request something.
    pub(super) async fn rules(&self, configs: &[Config], candidates: &[Candidate]) -> Arc<Rules> {
        let rules = Rules::new(configs).reserve(self.reserved.iter().cloned());
        let bound: Vec<Candidate> =
            candidates.iter().filter(|candidate| candidate.bond.is_some()).cloned().collect();
        let contents = match bound.is_empty() {
            true => Contents::default(),
            // It reads files.
            false => tokio::task::spawn_blocking(move || Contents::read(&bound))
                .await
                .expect("reading does not panic, and is not aborted"),
        };
        let rules = rules.contents(contents);
        let approvals = Approvals::ask(candidates, &rules, &*self.approver).await;
        Arc::new(rules.approve(approvals))
    }

    /// Takes candidates from where they are to their registration, or finds out why they do not
    /// get there. They come out in the order in which they went in.
    pub(super) async fn bring_all(
        self: &Arc<Self>,
        candidates: Vec<(Candidate, Option<Fingerprint>)>,
        rules: &Arc<Rules>,
    ) -> Vec<Slot> {
        let until = pending().boxed().shared();
        self.bring_until(candidates, rules, &BTreeSet::new(), until).await
    }

    /// The same for those that get there in time.
    async fn bring_until(
        self: &Arc<Self>,
        candidates: Vec<(Candidate, Option<Fingerprint>)>,
        rules: &Arc<Rules>,
        start_first: &BTreeSet<String>,
        until: Until,
    ) -> Vec<Slot> {
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
        let slots = stream::iter(slots).buffer_unordered(ON_THEIR_WAY);
        let mut slots: Vec<(usize, Slot)> = slots.collect().await;
        slots.sort_by_key(|(place, _)| *place);
        slots.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Takes over what configurations say of the host.
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
    ) -> Slot {
        let (id, kind) = (candidate.id().to_string(), candidate.kind());
        let made_of = candidate.clone();
        let requested = candidate.requested();
        let gone = |state, detail, remedy| PluginReport {
            requested: requested.clone(),
            ..gone(&id, kind, state, detail, remedy)
        };
        let Some(loaded) = before(&until, self.load(candidate, rules)).await else {
            return late((made_of, fingerprint)).await;
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
                return Slot::without(made_of, fingerprint, report).await;
            }
            Err(NotLoaded::Failed { state, detail, remedy }) => {
                let report = gone(state, detail, remedy);
                return Slot::without(made_of, fingerprint, report).await;
            }
        };
        let Some(learned) = before(&until, learn(&loaded)).await else {
            return late((made_of, fingerprint)).await;
        };
        let server = loaded.supervised().cloned();
        let registered = match learned {
            Ok(learned) => register_as(loaded, learned).await,
            Err(failure) => Err(failure),
        };
        match registered {
            Ok(registered) => Slot::with(made_of, registered),
            Err(failure) => {
                let exceeded = server.and_then(|server| server.startup_exceeded());
                let remedy = match exceeded {
                    Some(startup) => Some(made_of.how_to_wait_longer(startup)),
                    None => made_of.what_to_check(),
                };
                let detail = failure.to_string();
                let report = PluginReport {
                    // What its bridge answers has the server's last words; it is out of time.
                    failure: Some(exceeded.map_or(failure, Failure::Deadline)),
                    ..gone(PluginState::Failed, detail, remedy)
                };
                Slot::without(made_of, fingerprint, report).await
            }
        }
    }

    /// Admits and loads a candidate.
    async fn load(
        self: &Arc<Self>,
        mut candidate: Candidate,
        rules: Arc<Rules>,
    ) -> Result<Loaded, NotLoaded> {
        if let Some(most) = &self.most {
            candidate.limits = candidate.limits.at_most(most);
        }
        let mut admitted = admit(candidate, &rules).map_err(NotLoaded::Refused)?;
        let (id, names) = admitted.secrets();
        for name in names {
            if let Some(secret) = self.secrets.secret(&id, &name).await {
                admitted.give(name, secret);
            }
        }
        let place = self.places.acquire().await;
        let workshop = self.clone();
        // Compiling blocks.
        let loaded = tokio::task::spawn_blocking(move || workshop.loader.load(admitted)).await;
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

/// What comes of something that is done in time.
async fn before<T>(until: &Until, done: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        // What is there is there.
        biased;
        done = done => Some(done),
        () = until.clone() => None,
    }
}

/// The slot of a plugin that was not there in time.
async fn late((candidate, fingerprint): (Candidate, Option<Fingerprint>)) -> Slot {
    let why = "it was not waited for any longer".to_string();
    let (id, kind) = (candidate.id(), candidate.kind());
    let report = gone(id, kind, PluginState::Failed, why, None);
    Slot::without(candidate, fingerprint, report).await
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

impl Slot {
    async fn of_builtin(loaded: Loaded) -> Self {
        let id = loaded.id().to_string();
        match register(loaded).await {
            Ok(registered) => Self {
                id,
                made_of: None,
                report: there(&registered),
                registered: Some(Arc::new(registered)),
            },
            Err(failure) => {
                let detail = failure.to_string();
                let report = gone(&id, PluginKind::Builtin, PluginState::Failed, detail, None);
                let report = PluginReport { failure: Some(failure), ..report };
                Self { id, made_of: None, report, registered: None }
            }
        }
    }

    fn with(candidate: Candidate, registered: Registered) -> Self {
        let fingerprint = registered.loaded().fingerprint().cloned();
        Self {
            id: candidate.id().to_string(),
            report: there(&registered),
            registered: Some(Arc::new(registered)),
            made_of: fingerprint.map(|tried| MadeOf { candidate, tried }),
        }
    }

    async fn without(
        candidate: Candidate,
        fingerprint: Option<Fingerprint>,
        report: PluginReport,
    ) -> Self {
        let id = candidate.id().to_string();
        let made_of = tokio::task::spawn_blocking(move || {
            let tried = fingerprint.unwrap_or_else(|| candidate.fingerprint());
            MadeOf { candidate, tried }
        });
        Self { id, made_of: made_of.await.ok(), registered: None, report }
    }
}
