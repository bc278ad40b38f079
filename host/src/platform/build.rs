//! Putting a platform together.

use arc_swap::ArcSwap;
use futures::stream::{self, StreamExt};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::reload::{MadeOf, Plugins, Slot};
use super::report::{gone, there};
use super::{Inner, Platform, PluginReport, PluginState, attend};
use crate::admit::{Approvals, Rules, admit};
use crate::capability::notify::News;
use crate::config::{Config, ConfigError};
use crate::diagnostic::chain;
use crate::discover::{Candidate, Discovery, PluginKind, Sources, discover};
use crate::limits::Limits;
use crate::load::{LoadError, Loaded, Loader};
use crate::register::{Registered, register};
use crate::runtime::{Allocation, EngineError, Plugin};
use crate::schema;
use crate::surroundings::Surroundings;

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
    approvals: Approvals,
}

impl Builder {
    pub(super) fn new() -> Self {
        let surroundings = Surroundings::of_process();
        Self {
            sources: Sources { surroundings, ..Sources::default() },
            discovery: None,
            allocation: Allocation::OnDemand,
            builtins: Vec::new(),
            approvals: Approvals::default(),
        }
    }

    /// Adds a project: what its `tenon.toml` says, where it has one, and the plugins in its
    /// `.tenon/plugins`.
    ///
    /// # Errors
    ///
    /// Where there is a `tenon.toml` and it cannot be read or understood.
    pub fn project(self, folder: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let folder = folder.into();
        let file = folder.join("tenon.toml");
        let builder = match file.exists() {
            true => self.config(Config::read(file)?),
            false => self,
        };
        Ok(builder.workspace(folder))
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

    /// Takes all plugins through the five steps. A plugin that fails in one leaves the line with a
    /// [`PluginReport`]; the others go on.
    ///
    /// # Errors
    ///
    /// Only where the engine itself cannot be set up.
    pub async fn build(self) -> Result<Platform, BuildError> {
        let Self { sources, discovery, allocation, builtins, approvals } = self;
        let discovery = discovery.unwrap_or_else(|| discover(&sources));
        // While components are loaded.
        tokio::task::spawn_blocking(schema::prepare);
        let news = News::default();
        let loader = Loader::new(allocation, &sources.surroundings, news.clone())?;
        let allocation = loader.allocation();
        let workshop = Arc::new(Workshop {
            loader,
            approvals,
            reserved: builtins.iter().map(|(id, _)| id.clone()).collect(),
            places: Semaphore::new(available_parallelism().map_or(2, Into::into)),
        });

        let limits = sources.configs.first().map_or_else(Limits::default, |c| c.limits.clone());
        let builtins = builtins.into_iter().map(async |(id, plugin)| {
            Slot::of_builtin(Loaded::builtin(&id, plugin, &limits)).await
        });
        let mut slots = futures::future::join_all(builtins).await;
        let rules = Arc::new(workshop.rules(&sources.configs));
        slots.extend(workshop.bring_all(discovery.candidates, &rules).await);
        let plugins = Plugins {
            sources,
            workshop,
            slots,
            left_out: discovery.left_out,
            diagnostics: discovery.diagnostics,
            looked_in: discovery.looked_in,
            replaced: Vec::new(),
            retiring: Default::default(),
        };
        let inner = Arc::new(Inner {
            current: ArcSwap::from_pointee(plugins.current()),
            plugins: AsyncMutex::new(plugins),
            allocation,
            news: news.clone(),
            closing: AtomicBool::new(false),
            attending: Mutex::default(),
        });
        let attending = tokio::spawn(attend(Arc::downgrade(&inner), news));
        *inner.attending.lock().unwrap_or_else(PoisonError::into_inner) = Some(attending);
        Ok(Platform { inner })
    }
}

/// How many plugins are on their way at a time; most of them wait for something.
const ON_THEIR_WAY: usize = 64;

/// What plugins are made with, when a platform is built and when they are loaded again.
pub(super) struct Workshop {
    loader: Loader,
    approvals: Approvals,
    /// The ids of built-in plugins.
    reserved: Vec<String>,
    /// Compiling takes a processor.
    places: Semaphore,
}

impl Workshop {
    /// What candidates are held against.
    pub(super) fn rules(&self, configs: &[Config]) -> Rules {
        Rules::new(configs, self.approvals.clone()).reserve(self.reserved.iter().cloned())
    }

    /// Takes candidates from where they are to their registration, or finds out why they do not
    /// get there. They come out in the order in which they went in.
    pub(super) async fn bring_all(
        self: &Arc<Self>,
        candidates: Vec<Candidate>,
        rules: &Arc<Rules>,
    ) -> Vec<Slot> {
        let slots = candidates.into_iter().map(|candidate| self.bring(candidate, rules.clone()));
        stream::iter(slots).buffered(ON_THEIR_WAY).collect().await
    }

    /// Takes one candidate there.
    async fn bring(self: &Arc<Self>, candidate: Candidate, rules: Arc<Rules>) -> Slot {
        let (id, kind) = (candidate.id().to_string(), candidate.kind());
        let made_of = candidate.clone();
        let gone = |state, detail, remedy| gone(&id, kind, state, detail, remedy);
        let loaded = match self.load(candidate, rules).await {
            Ok(loaded) => loaded,
            Err(NotLoaded::Refused(detail, remedy)) => {
                return Slot::without(made_of, gone(PluginState::Refused, detail, remedy)).await;
            }
            Err(NotLoaded::Failed(detail, remedy)) => {
                return Slot::without(made_of, gone(PluginState::Failed, detail, remedy)).await;
            }
        };
        match register(loaded).await {
            Ok(registered) => Slot::with(made_of, registered),
            Err(failure) => {
                let report = PluginReport {
                    failure: Some(failure.clone()),
                    ..gone(PluginState::Failed, failure.to_string(), None)
                };
                Slot::without(made_of, report).await
            }
        }
    }

    /// Admits and loads a candidate.
    async fn load(
        self: &Arc<Self>,
        candidate: Candidate,
        rules: Arc<Rules>,
    ) -> Result<Loaded, NotLoaded> {
        let admitted = admit(candidate, &rules)
            .map_err(|refusal| NotLoaded::Refused(refusal.to_string(), Some(refusal.remedy())))?;
        let place = self.places.acquire().await;
        let workshop = self.clone();
        // Compiling blocks.
        let loaded = tokio::task::spawn_blocking(move || workshop.loader.load(admitted)).await;
        drop(place);
        loaded
            .map_err(|error| NotLoaded::Failed(error.to_string(), None))?
            .map_err(|error: LoadError| NotLoaded::Failed(chain(&error), error.remedy()))
    }
}

/// Why a candidate was not loaded, and what to do about it.
enum NotLoaded {
    Refused(String, Option<String>),
    Failed(String, Option<String>),
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

    async fn without(candidate: Candidate, report: PluginReport) -> Self {
        let id = candidate.id().to_string();
        let made_of = tokio::task::spawn_blocking(move || {
            let tried = candidate.fingerprint();
            MadeOf { candidate, tried }
        });
        Self { id, made_of: made_of.await.ok(), registered: None, report }
    }
}
