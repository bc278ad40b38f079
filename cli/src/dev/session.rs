//! The loop of `tenon dev`: files change, plugins are built and loaded, calls are answered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tenon_config::discover::Candidate;
use tenon_host::types::ToolResult;
use tenon_host::{Event, Platform, PluginKind, PluginReport, PluginState, Subscription};
use tokio::task::{AbortHandle, JoinSet};

use super::call_socket::{CallConnection, DevAnswer, DevHost, ForwardedCall, Listener};
use super::folder_watch::FolderWatch;
use super::tests_of_plugin;
use crate::component_build::{self, BuildProfile};
use crate::error::Error;
use crate::plugin_in_folder::PluginInFolder;
use crate::source_snapshot::SourceSnapshot;
use crate::templates::Language;
use crate::{Common, content, open, output};

/// Plugins that are being written, and the platform that has them.
pub(crate) struct Session {
    common: Common,
    project: PathBuf,
    runs_tests: bool,
    plugins: BTreeMap<String, WatchedPlugin>,
    watch: FolderWatch,
    work: JoinSet<SessionEvent>,
    /// Calls that wait for what is being built.
    waiting: Vec<(CallConnection, ForwardedCall)>,
    /// The last call, which is made again when plugins are loaded.
    last_call: Option<ForwardedCall>,
}

/// A plugin of the project that has its source beside its manifest.
struct WatchedPlugin {
    folder: PathBuf,
    component: Option<PathBuf>,
    language: Language,
    source: SourceSnapshot,
    building: Option<AbortHandle>,
    testing: Option<AbortHandle>,
    /// Why what is there is not what was built of its source.
    problem: Option<String>,
}

/// Something has ended that ran beside the loop.
enum SessionEvent {
    Built {
        plugin: String,
        result: Result<Duration, Error>,
    },
    Tested {
        plugin: String,
        result: Result<Option<Duration>, Error>,
    },
    /// A command has said what it wants to have called.
    Asked(CallConnection, ForwardedCall),
    /// The last call was made again.
    Repeated {
        call: ForwardedCall,
        result: Result<ToolResult, Error>,
    },
    Answered,
}

impl Session {
    /// Looks for the plugins of a project, and builds those whose components are missing or outdated. What does not build is
    /// said, and may be mended later.
    ///
    /// # Errors
    ///
    /// Where the configuration cannot be read, or changes cannot be noticed.
    pub(crate) async fn begin(common: &Common, runs_tests: bool) -> Result<Self, Error> {
        let project = common.project.canonicalize();
        let project = project.map_err(|error| Error::Read(common.project.clone(), error))?;
        let mut session = Self {
            common: common.clone(),
            project,
            runs_tests,
            plugins: BTreeMap::new(),
            watch: FolderWatch::new()?,
            work: JoinSet::new(),
            waiting: Vec::new(),
            last_call: None,
        };
        session.look()?;
        while let Some(done) = session.work.join_next().await {
            session.take(done)?;
        }
        Ok(session)
    }

    /// Goes on until it is told to stop.
    pub(crate) async fn run(
        mut self,
        host: &DevHost,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let listener = Listener::bind(&self.project).await?;
        let mut loads = LoadEvents(host.platform.events());
        let mut stop = std::pin::pin!(stop);
        for id in self.plugins.keys().cloned().collect::<Vec<_>>() {
            self.test(&id);
        }
        loop {
            tokio::select! {
                () = &mut stop => return Ok(()),
                () = self.watch.changed() => self.look_and_load(host, &mut loads).await?,
                // The platform watches as well, and may have been the first.
                event = loads.next() => {
                    if is_loaded(&event) {
                        self.repeat(host);
                    }
                }
                Ok(mut asking) = listener.accept() => {
                    self.work.spawn(async move {
                        match asking.call().await {
                            Some(call) => SessionEvent::Asked(asking, call),
                            None => SessionEvent::Answered,
                        }
                    });
                }
                Some(done) = self.work.join_next(), if !self.work.is_empty() => match done {
                    Ok(SessionEvent::Asked(asking, call)) => {
                        // What was saved a moment ago is what is called.
                        self.look_and_load(host, &mut loads).await?;
                        self.waiting.push((asking, call));
                    }
                    done => {
                        if self.take(done)? {
                            self.load(host, &mut loads).await;
                        }
                    }
                }
            }
            if !self.is_building() {
                self.answer(host);
            }
        }
    }

    fn is_building(&self) -> bool {
        self.plugins.values().any(|plugin| plugin.building.is_some())
    }

    /// Finds the plugins of the project and their sources, and begins to build those that have changed.
    fn look(&mut self) -> Result<(), Error> {
        let mut found = BTreeMap::new();
        let mut folders = BTreeSet::from([self.project.clone()]);
        for candidate in open::candidates(&self.common)? {
            let Some(mut plugin) = WatchedPlugin::of(&candidate, &self.project) else { continue };
            folders.insert(plugin.folder.clone());
            folders.extend(plugin.source.folders().map(Path::to_path_buf));
            let id = candidate.id().to_string();
            let former = self.plugins.remove(&id);
            let is_changed = match &former {
                Some(former) => former.source != plugin.source,
                None => plugin.is_outdated(),
            };
            if let Some(former) = former {
                plugin.building = former.building;
                plugin.testing = former.testing;
                plugin.problem = former.problem;
            }
            found.insert(id, (plugin, is_changed));
        }
        for plugin in std::mem::take(&mut self.plugins).into_values() {
            plugin.building.into_iter().chain(plugin.testing).for_each(|task| task.abort());
        }
        self.watch.set(folders);
        let changed: Vec<String> =
            found.iter().filter(|(_, (_, changed))| *changed).map(|(id, _)| id.clone()).collect();
        self.plugins = found.into_iter().map(|(id, (plugin, _))| (id, plugin)).collect();
        for id in changed {
            self.build(&id);
        }
        Ok(())
    }

    async fn look_and_load(&mut self, host: &DevHost, loads: &mut LoadEvents) -> Result<(), Error> {
        self.look()?;
        if !self.is_building() {
            self.load(host, loads).await;
        }
        Ok(())
    }

    /// Begins to build a plugin. What was begun of its former source is given up.
    fn build(&mut self, id: &str) {
        let Some(plugin) = self.plugins.get_mut(id) else { return };
        plugin
            .building
            .take()
            .into_iter()
            .chain(plugin.testing.take())
            .for_each(|task| task.abort());
        let (folder, id) = (plugin.folder.clone(), id.to_string());
        plugin.building = Some(self.work.spawn(async move {
            let began = Instant::now();
            let built = async {
                let authored = PluginInFolder::read(&folder)?;
                component_build::build(&authored, BuildProfile::Debug).await
            };
            SessionEvent::Built { plugin: id, result: built.await.map(|_| began.elapsed()) }
        }));
    }

    /// Begins to test a plugin.
    fn test(&mut self, id: &str) {
        let Some(plugin) = self.plugins.get_mut(id).filter(|_| self.runs_tests) else { return };
        plugin.testing.take().into_iter().for_each(|task| task.abort());
        let (folder, language, id) = (plugin.folder.clone(), plugin.language, id.to_string());
        plugin.testing = Some(self.work.spawn(async move {
            let began = Instant::now();
            let ran = tests_of_plugin::run(&folder, language).await;
            SessionEvent::Tested { plugin: id, result: ran.map(|ran| ran.then(|| began.elapsed())) }
        }));
    }

    /// Says what has ended. Gives whether a component was built.
    fn take(&mut self, done: Result<SessionEvent, tokio::task::JoinError>) -> Result<bool, Error> {
        match done {
            Ok(SessionEvent::Built { plugin, result }) => {
                let Some(watched) = self.plugins.get_mut(&plugin) else { return Ok(false) };
                watched.building = None;
                watched.problem = result.as_ref().err().map(ToString::to_string);
                match result {
                    Ok(time) => {
                        // A script is only compiled.
                        if watched.component.is_some() {
                            output::line(format!("{plugin}: built in {}", seconds(time)))?;
                        }
                        self.test(&plugin);
                        Ok(true)
                    }
                    Err(error) => {
                        error.tell();
                        output::line(format!("{plugin}: not built; what was loaded before stays"))?;
                        Ok(false)
                    }
                }
            }
            Ok(SessionEvent::Tested { plugin, result }) => {
                if let Some(watched) = self.plugins.get_mut(&plugin) {
                    watched.testing = None;
                }
                match result {
                    Ok(None) => {}
                    Ok(Some(time)) => {
                        output::line(format!("{plugin}: its tests pass, in {}", seconds(time)))?;
                    }
                    Err(error) => {
                        error.tell();
                        output::line(format!("{plugin}: its tests fail"))?;
                    }
                }
                Ok(false)
            }
            Ok(SessionEvent::Repeated { call, result }) => {
                output::line(format!("again: {} {}", call.tool, call.arguments))?;
                match result {
                    Ok(result) => content::print(&result)?,
                    Err(error) => error.tell(),
                }
                Ok(false)
            }
            Ok(SessionEvent::Asked(..) | SessionEvent::Answered) => Ok(false),
            // It was given up for a newer one.
            Err(error) if error.is_cancelled() => Ok(false),
            Err(error) => Err(Error::Host(error.to_string())),
        }
    }

    /// Loads what has changed on disk, and makes the last call again where something has.
    async fn load(&mut self, host: &DevHost, loads: &mut LoadEvents) {
        host.platform.reload().await;
        // Where somebody has just asked for a call, that one is enough.
        if loads.arrived().iter().any(is_loaded) && self.waiting.is_empty() {
            self.repeat(host);
        }
    }

    /// Begins to make the last call again.
    fn repeat(&mut self, host: &DevHost) {
        let Some(call) = self.last_call.clone() else { return };
        let host = host.clone();
        self.work.spawn(async move {
            let result = host.call(&call).await;
            SessionEvent::Repeated { call, result }
        });
    }

    /// Makes the calls that have waited.
    fn answer(&mut self, host: &DevHost) {
        for (mut asking, call) in std::mem::take(&mut self.waiting) {
            self.last_call = Some(call.clone());
            let notes = self.notes(&host.platform, &call.tool);
            let host = host.clone();
            self.work.spawn(async move {
                let answer = tokio::select! {
                    result = host.call(&call) => Some(DevAnswer::new(notes, result)),
                    // The call is given up with its command.
                    () = asking.gone() => None,
                };
                if let Some(answer) = answer {
                    asking.answer(&answer).await;
                }
                SessionEvent::Answered
            });
        }
    }

    /// What the caller of a tool should know of its plugin.
    fn notes(&self, platform: &Platform, tool: &str) -> Vec<String> {
        let registry = platform.registry();
        // It may be a tool of one that is not there, or that has left it out.
        let owner = registry.tool(tool).map(|(owner, _)| owner.id().clone());
        let is_concerned = |id: &str| owner.as_ref().is_none_or(|owner| **owner == *id);
        let not_built = self.plugins.iter().filter_map(|(id, plugin)| {
            let problem = plugin.problem.as_ref().filter(|_| is_concerned(id))?;
            Some(format!("plugin \"{id}\" is older than its source: {problem}"))
        });
        let mut notes: Vec<String> = not_built.collect();
        for report in platform.plugins().iter().filter(|report| is_concerned(&report.plugin)) {
            let is_told = self.plugins.get(&report.plugin).is_some_and(|of| of.problem.is_some());
            notes.extend(plugin_problem(report).filter(|_| !is_told));
        }
        let unread = platform.unread().into_iter().map(|diagnostic| diagnostic.to_string());
        let new: Vec<String> =
            unread.filter(|problem| notes.iter().all(|note| !note.contains(problem))).collect();
        notes.extend(new);
        notes
    }
}

/// What is wrong with a plugin, which may be there all the same: as it was before, or without a part.
pub(crate) fn plugin_problem(report: &PluginReport) -> Option<String> {
    let detail = report.detail.as_deref();
    match report.state {
        PluginState::Ready => Some(format!("plugin \"{}\": {}", report.plugin, detail?)),
        state => {
            let why = detail.unwrap_or_default();
            Some(format!("plugin \"{}\" is {state}: {why}", report.plugin))
        }
    }
}

/// Whether an event may be one of a plugin that was loaded: whatever was missed may have been that.
fn is_loaded(event: &Event) -> bool {
    !matches!(event, Event::NotReloaded { .. })
}

/// The events of plugins that were loaded or not, by whomever: who watches them all says what was loaded.
struct LoadEvents(Subscription);

impl LoadEvents {
    /// Waits for one.
    async fn next(&mut self) -> Event {
        loop {
            match self.0.next().await {
                Some(event) if is_of_load(&event) => return event,
                Some(_) => {}
                // The platform has ended, and loads nothing more.
                None => std::future::pending().await,
            }
        }
    }

    /// Takes those that have arrived.
    fn arrived(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.0.try_next()).filter(is_of_load).collect()
    }
}

fn is_of_load(event: &Event) -> bool {
    matches!(
        event,
        Event::Reloaded { .. } | Event::NotReloaded { plugin: Some(_), .. } | Event::Missed { .. }
    )
}

impl WatchedPlugin {
    /// The plugin of a candidate, if its source lies in the project.
    fn of(candidate: &Candidate, project: &Path) -> Option<Self> {
        let folder = candidate.named_in().parent()?.canonicalize().ok()?;
        if candidate.kind() == PluginKind::Mcp || !folder.starts_with(project) {
            return None;
        }
        let component = candidate.component().map(Path::to_path_buf);
        let language = match &component {
            Some(_) => Language::of_component(&folder).ok()?,
            None => Language::Rhai,
        };
        let source = SourceSnapshot::read(&folder);
        Some(Self {
            folder,
            component,
            language,
            source,
            building: None,
            testing: None,
            problem: None,
        })
    }

    /// Whether its component is not there, or older than its source.
    fn is_outdated(&self) -> bool {
        self.component.as_ref().is_some_and(|component| self.source.is_unbuilt(component))
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
