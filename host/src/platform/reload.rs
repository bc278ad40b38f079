//! Plugins that change while the host runs.
//!
//! What is on disk is compared with what is loaded by SHA-256. A plugin that differs is loaded
//! again beside the one that runs; once it has registered, new calls go to it, and the old one ends
//! when its last call has. One that does not get so far leaves the old one where it is.

use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_config::admit::{Rules, admit};
use tenon_config::config::{Config, combine};
use tenon_config::diagnostic::{Diagnostic, chain};
use tenon_config::discover::trust::{TrustProblem, UntrustedProject};
use tenon_config::discover::{
    Candidate, Discovery, Fingerprint, SkippedEntry, Sources, discover_trusted,
};
use tenon_config::grant::Grants;
use tenon_config::pins::{DefinitionKind, Quarantine};
use tenon_config::secret::Secret;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::build::PluginFactory;
use super::plugin_report::left_out;
use super::{Current, Inner, Platform, PluginReport, PluginState};
use crate::capability::services::ask_pins;
use crate::load::Loader;
use crate::observe::event::{DiskChange, Event};
use crate::register::{RegisteredPlugin, Registry, RegistrySettings};
use crate::runtime::RetiringPlugin;

/// How long the calls of a plugin that was replaced may go on.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(600);

/// The plugins, and what they were made of.
pub(super) struct Plugins {
    pub(super) sources: Sources,
    pub(super) factory: Arc<PluginFactory>,
    /// In load order.
    pub(super) slots: Vec<PluginSlot>,
    pub(super) left_out: Vec<SkippedEntry>,
    /// What discovery could not read or understand.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The folders that discovery looked in last.
    pub(super) looked_in: BTreeSet<PathBuf>,
    /// What was wrong last time.
    pub(super) problems: Vec<String>,
    /// What was replaced, and may still be found by new calls.
    pub(super) replaced: Vec<Arc<RegisteredPlugin>>,
    pub(super) retiring: RetiringPlugins,
    /// Which definitions are not what they were.
    pub(super) quarantine: Quarantine,
    /// The project, where it is not trusted.
    pub(super) untrusted: Option<UntrustedProject>,
}

/// The place of one plugin.
pub(super) struct PluginSlot {
    pub(super) id: String,
    /// Nothing for a plugin that is part of the host.
    pub(super) loaded_from: Option<TrackedCandidate>,
    pub(super) registered: Option<Arc<RegisteredPlugin>>,
    pub(super) report: PluginReport,
}

/// What a plugin is made of.
pub(super) struct TrackedCandidate {
    /// What runs; where nothing does, what was to run.
    pub(super) candidate: Candidate,
    /// What was tried last. Where that failed, what runs may be older.
    pub(super) tried: Fingerprint,
    /// The token of its user's login, where its server was tried again for that.
    pub(super) login: Option<Secret>,
}

/// Plugins that were replaced or removed, and may have calls in flight.
pub(super) struct RetiringPlugins {
    tasks: JoinSet<()>,
    /// Says that there is no more time.
    hurry: watch::Sender<bool>,
}

impl Default for RetiringPlugins {
    fn default() -> Self {
        Self { tasks: JoinSet::new(), hurry: watch::Sender::new(false) }
    }
}

impl RetiringPlugins {
    fn add(&mut self, retiring: RetiringPlugin) {
        // What has ended is not kept.
        while self.tasks.try_join_next().is_some() {}
        let mut hurry = self.hurry.subscribe();
        self.tasks.spawn(retiring.end(async move {
            tokio::select! {
                () = sleep(DRAIN_TIMEOUT) => {}
                _ = hurry.wait_for(|hurry| *hurry) => {}
            }
        }));
    }
}

/// A plugin that is not on disk as it is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The plugin.
    pub plugin: String,
    /// In what way it differs.
    pub change: DiskChange,
}

impl Plugins {
    /// The state that calls are to see.
    pub(super) fn current(&self) -> Current {
        let registered = self.slots.iter().filter_map(|slot| slot.registered.clone());
        let entries = self.slots.iter().filter_map(|slot| {
            let loaded_from = slot.loaded_from.as_ref()?;
            Some((&*slot.id, &loaded_from.candidate.rules.tools))
        });
        let settings = RegistrySettings::new(&self.sources.configs, self.quarantine.clone());
        let mut settings = settings.with_entries(entries);
        settings.secrets = self.factory.loader.known_secrets();
        let registry = Registry::new(registered.collect(), settings);
        let counts = registry.counts();
        let there = self.slots.iter().map(|slot| {
            let tools = counts.get(&*slot.id).copied().unwrap_or_default();
            let mut report = PluginReport { tools, ..slot.report.clone() };
            if let Some(registered) = &slot.registered {
                report.description = Some(registered.identity().description.clone());
            }
            report
        });
        let reports: Vec<PluginReport> = there.chain(self.left_out.iter().map(left_out)).collect();
        Current {
            registry: Arc::new(registry),
            reports: Arc::new(reports),
            diagnostics: self.diagnostics.clone(),
        }
    }

    /// Finds out which definitions of MCP servers are not what they were. It is asked again whenever
    /// plugins have registered, before calls see them.
    pub(super) async fn check_pins(&mut self) {
        let pins = &self.factory.pins;
        let servers = self.slots.iter().filter_map(|slot| {
            let (registered, loaded_from) = (slot.registered.as_ref()?, slot.loaded_from.as_ref()?);
            let candidate = &loaded_from.candidate;
            let (configs, owner) = (&self.sources.configs, registered.loaded().owner());
            let mode = combine::pin_mode(configs, &slot.id, owner, candidate.rules.pins);
            let identity = registered.said_identity();
            let server = candidate.pinned_server(&identity.version, mode)?;
            let tools = registered.tools().iter().map(|declared| &*declared.definition);
            let seen = server.registered(tools, &identity.description);
            if let Some(supervisor) = registered.loaded().supervised() {
                supervisor.pin(pins.clone(), server);
            }
            Some((mode, seen.into()))
        });
        let servers = servers.collect();
        self.quarantine = ask_pins(pins.clone(), servers).await;
        for slot in &self.slots {
            let Some(registered) = &slot.registered else { continue };
            let hold = self.quarantine.of(&slot.id, DefinitionKind::Instructions, "");
            registered.hold_instructions(hold.is_some_and(|hold| !hold.is_warning));
        }
    }

    /// Goes over to what is on disk. New plugins are there afterwards; those that they replace still
    /// take calls.
    async fn apply(&mut self, disk: DiskState) -> Vec<Event> {
        let DiskState { sources, discovery, fingerprints, problems } = disk;
        self.factory.configure(&sources.configs);
        let rules = self.factory.rules(&sources.configs, &discovery.candidates).await;
        let former = std::mem::take(&mut self.slots);
        let (builtins, former): (Vec<_>, Vec<_>) =
            former.into_iter().partition(|slot| slot.loaded_from.is_none());
        let former_order: Vec<String> = former.iter().map(|slot| slot.id.clone()).collect();
        let mut former: HashMap<String, PluginSlot> =
            former.into_iter().map(|slot| (slot.id.clone(), slot)).collect();

        let mut order: Vec<String> =
            discovery.candidates.iter().map(|c| c.id().to_string()).collect();
        let mut kept = HashMap::new();
        let mut changed = Vec::new();
        for (candidate, fingerprint) in discovery.candidates.into_iter().zip(fingerprints) {
            let id = candidate.id();
            let stays = match former.get_mut(id) {
                Some(slot) if slot.may_stay(&fingerprint, &rules) => {
                    !slot.has_new_login(&self.factory.loader).await
                }
                _ => false,
            };
            if stays {
                if let Some(TrackedCandidate { candidate: loaded_from, .. }) =
                    former.get_mut(id).and_then(|slot| slot.loaded_from.as_mut())
                {
                    loaded_from.rules = candidate.rules.clone();
                }
                kept.extend(former.remove_entry(id));
            } else {
                changed.push((candidate, Some(fingerprint)));
            }
        }

        let mut events = Vec::new();
        for mut slot in self.factory.bring_all(changed, &rules).await {
            let mut before = former.remove(&slot.id);
            if let (Some(tracked), Some(before)) = (&mut slot.loaded_from, &mut before) {
                tracked.login = before.loaded_from.as_mut().and_then(|of| of.login.take());
            }
            let stays = match &before {
                Some(before) if slot.registered.is_none() => {
                    before.may_go_on(&self.factory, &sources.configs).await
                }
                _ => false,
            };
            let (slot, replaced, event) = slot.in_place_of(before, stays);
            self.replaced.extend(replaced);
            events.push(event);
            kept.insert(slot.id.clone(), slot);
        }
        for id in &former_order {
            let Some(mut slot) = former.remove(id) else { continue };
            let problem = slot.problem_in(&discovery.diagnostics);
            if let Some(problem) = problem
                && slot.may_go_on(&self.factory, &sources.configs).await
            {
                slot.report.detail = Some(goes_on(&problem));
                insert_as_before(&mut order, &former_order, id);
                kept.insert(id.clone(), slot);
            } else {
                self.replaced.extend(slot.registered);
                let plugin = id.as_str().into();
                events.push(Event::Reloaded { plugin, change: DiskChange::Removed });
            }
        }

        self.slots = builtins;
        self.slots.extend(order.iter().filter_map(|id| kept.remove(id)));
        self.sources = sources;
        self.left_out = discovery.left_out;
        self.looked_in = discovery.looked_in;
        self.untrusted = discovery.untrusted;
        self.diagnostics = problems.into_iter().map(Diagnostic::unplaced).collect();
        self.diagnostics.extend(discovery.diagnostics);
        events.extend(self.new_problems());
        events
    }

    /// What is wrong and was not before: it is said once, as long as it lasts.
    fn new_problems(&mut self) -> Vec<Event> {
        let problems: Vec<String> = self.diagnostics.iter().map(ToString::to_string).collect();
        let new = problems.iter().filter(|problem| !self.problems.contains(problem));
        let events =
            new.map(|problem| Event::NotReloaded { plugin: None, problem: problem.clone() });
        let events = events.collect();
        self.problems = problems;
        events
    }

    /// Lets those go that no new call finds any more.
    fn retire_replaced(&mut self) {
        for registered in self.replaced.drain(..) {
            self.retiring.add(registered.loaded().retire());
        }
    }

    /// Ends all plugins. Calls in flight have so much time.
    pub(super) async fn end(&mut self, patience: Duration) {
        self.retire_replaced();
        for slot in std::mem::take(&mut self.slots) {
            if let Some(registered) = slot.registered {
                self.retiring.add(registered.loaded().retire());
            }
        }
        let RetiringPlugins { tasks, hurry } = &mut self.retiring;
        let all = async { while tasks.join_next().await.is_some() {} };
        let hurry = async {
            sleep(patience).await;
            hurry.send_replace(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = all => {}
            () = hurry => {}
        }
    }
}

/// A problem as an event has it: in one text, with what is to be done.
fn with_remedy(problem: &str, remedy: Option<&str>) -> String {
    match remedy {
        Some(remedy) => format!("{problem}; {remedy}"),
        None => problem.to_string(),
    }
}

/// What is said of a plugin that is not what is on disk any more.
fn goes_on(problem: &str) -> String {
    format!("its new form is not loaded, the former goes on: {problem}")
}

/// Puts an id behind the one that it came after before, as far as that is there: hooks run in this
/// order.
fn insert_as_before(order: &mut Vec<String>, before: &[String], id: &String) {
    let earlier = before.iter().take_while(|other| *other != id);
    let places = earlier.filter_map(|other| order.iter().position(|there| there == other));
    let place = places.last().map_or(0, |place| place + 1);
    order.insert(place, id.clone());
}

/// What is on disk now.
struct DiskState {
    sources: Sources,
    discovery: Discovery,
    fingerprints: Vec<Fingerprint>,
    /// Configurations that cannot be read, in whose place their former text stays.
    problems: Vec<String>,
}

impl DiskState {
    async fn read(sources: Sources) -> Self {
        let read = tokio::task::spawn_blocking(move || {
            let mut sources = sources;
            let (discovery, errors) = discover_trusted(&mut sources);
            let problems = errors.iter().map(|error| chain(error)).collect();
            let fingerprints = discovery.candidates.iter().map(Candidate::fingerprint).collect();
            Self { sources, discovery, fingerprints, problems }
        });
        read.await.expect("discovery does not panic, and is not aborted")
    }

    /// Why what is loaded is left as it is: the project has changed since it was trusted, and its user
    /// has not looked at that.
    fn waits_for_trust(&self, before: Option<&UntrustedProject>) -> Option<String> {
        let untrusted = self.discovery.untrusted.as_ref()?;
        let is_changed =
            matches!(untrusted.why, TrustProblem::Changed(_) | TrustProblem::Unreadable(_));
        let problem =
            || with_remedy(&untrusted.described_while_running(), Some(&untrusted.remedy()));
        (before.is_none() && is_changed).then(problem)
    }

    /// How it differs from what is loaded.
    fn differences(&self, slots: &[PluginSlot]) -> Vec<Difference> {
        let known: HashMap<&str, &PluginSlot> =
            slots.iter().map(|slot| (&*slot.id, slot)).collect();
        let found = self.discovery.candidates.iter().zip(&self.fingerprints);
        let differs = found.filter_map(|(candidate, fingerprint)| {
            let change = match known.get(candidate.id()) {
                None => DiskChange::Added,
                Some(slot) if slot.is_made_of(fingerprint) => return None,
                Some(_) => DiskChange::Modified,
            };
            Some(Difference { plugin: candidate.id().to_string(), change })
        });
        let is_there = |slot: &&PluginSlot| {
            slot.loaded_from.is_none()
                || self.discovery.candidates.iter().any(|c| c.id() == slot.id)
                || slot.problem_in(&self.discovery.diagnostics).is_some()
        };
        let gone = slots
            .iter()
            .filter(|slot| !is_there(slot))
            .map(|slot| Difference { plugin: slot.id.clone(), change: DiskChange::Removed });
        differs.chain(gone).collect()
    }
}

impl PluginSlot {
    fn is_made_of(&self, fingerprint: &Fingerprint) -> bool {
        self.loaded_from.as_ref().is_some_and(|loaded_from| loaded_from.tried == *fingerprint)
    }

    /// Whether it can stay as it is: nothing has changed, and the rules say of it what they said.
    fn may_stay(&self, fingerprint: &Fingerprint, rules: &Rules) -> bool {
        if !self.is_made_of(fingerprint) {
            return false;
        }
        let refused = matches!(self.report.state, PluginState::Refused | PluginState::Denied);
        match self.grants_by(rules) {
            None => refused,
            Some(grants) => {
                let running = self.registered.as_ref().map(|running| running.loaded().grants());
                !refused && running.is_none_or(|running| *running == grants)
            }
        }
    }

    /// Whether its user has logged in to its server since that failed.
    async fn has_new_login(&mut self, loader: &Loader) -> bool {
        let failed = self.loaded_from.as_mut().filter(|_| self.registered.is_none());
        let Some(tracked) = failed else { return false };
        let login = loader.login(&tracked.candidate).await;
        let is_new = login.is_some() && login != tracked.login;
        tracked.login = login;
        is_new
    }

    /// Why its manifest, or its entry in a configuration, could not be read, if that is why it is not
    /// found any more.
    fn problem_in(&self, diagnostics: &[Diagnostic]) -> Option<String> {
        let candidate = &self.loaded_from.as_ref()?.candidate;
        let manifest = candidate.named_in().display().to_string();
        let concerns = |diagnostic: &&Diagnostic| {
            // What is wrong with a file of servers as a whole is wrong with each of them.
            let whole = candidate.has_manifest() || candidate.is_of_servers();
            diagnostic.plugin.as_ref() == Some(&self.id)
                || whole
                    && diagnostic.plugin.is_none()
                    && diagnostic.file.as_ref() == Some(&manifest)
        };
        diagnostics.iter().find(concerns).map(ToString::to_string)
    }

    /// What the rules grant to what it is made of, if they admit it.
    fn grants_by(&self, rules: &Rules) -> Option<Grants> {
        let candidate = self.loaded_from.as_ref()?.candidate.clone();
        admit(candidate, rules).ok().map(|admitted| admitted.into_candidate().grants)
    }

    /// Whether what runs may go on, though it is not what is on disk any more: it is admitted, with
    /// all that it was granted.
    async fn may_go_on(&self, factory: &PluginFactory, configs: &[Config]) -> bool {
        let (Some(running), Some(loaded_from)) = (&self.registered, &self.loaded_from) else {
            return false;
        };
        let rules = factory.rules(configs, std::slice::from_ref(&loaded_from.candidate)).await;
        self.grants_by(&rules).is_some_and(|grants| grants == *running.loaded().grants())
    }

    /// Takes the place of another. One that is not there leaves the other where it is, if that
    /// stays.
    fn in_place_of(
        self,
        former: Option<Self>,
        stays: bool,
    ) -> (Self, Option<Arc<RegisteredPlugin>>, Event) {
        let plugin: Arc<str> = self.id.as_str().into();
        let change = if former.is_some() { DiskChange::Modified } else { DiskChange::Added };
        if self.registered.is_some() {
            let replaced = former.and_then(|former| former.registered);
            return (self, replaced, Event::Reloaded { plugin, change });
        }
        let problem = self.report.detail.clone().unwrap_or_default();
        let told = with_remedy(&problem, self.report.remedy.as_deref());
        let event = Event::NotReloaded { plugin: Some(plugin), problem: told };
        match former {
            Some(former) if stays => {
                let loaded_from =
                    former.loaded_from.zip(self.loaded_from).map(|(mut former, tried)| {
                        // What it says of what is offered holds for whatever runs.
                        former.candidate.rules = tried.candidate.rules;
                        TrackedCandidate { tried: tried.tried, ..former }
                    });
                let detail = goes_on(&problem);
                let report = PluginReport {
                    detail: Some(detail),
                    remedy: self.report.remedy,
                    ..former.report
                };
                (
                    Self { id: self.id, loaded_from, registered: former.registered, report },
                    None,
                    event,
                )
            }
            former => (self, former.and_then(|former| former.registered), event),
        }
    }
}

impl Platform {
    /// Compares what is on disk with what is loaded. Nothing is changed.
    pub async fn differences(&self) -> Vec<Difference> {
        self.compare().await.0
    }

    /// The same, and what cannot be read.
    pub(super) async fn compare(&self) -> (Vec<Difference>, Vec<String>) {
        let mut plugins = self.inner.plugins.lock().await;
        let disk = DiskState::read(plugins.sources.clone()).await;
        plugins.looked_in.clone_from(&disk.discovery.looked_in);
        if let Some(problem) = disk.waits_for_trust(plugins.untrusted.as_ref()) {
            return (Vec::new(), vec![problem]);
        }
        let differences = disk.differences(&plugins.slots);
        let problems = disk.discovery.diagnostics.iter().map(ToString::to_string);
        (differences, disk.problems.into_iter().chain(problems).collect())
    }

    /// Loads what has changed on disk: configurations that were read from files, manifests,
    /// components and scripts. Calls in flight finish where they began; a plugin whose new form
    /// cannot be loaded stays as it was. Gives what was done.
    ///
    /// ```no_run
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// for event in platform.reload().await {
    ///     println!("{event:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reload(&self) -> Vec<Event> {
        // In a task of its own: what was begun must be finished, also when nobody waits for it.
        let inner = self.inner.clone();
        let reloading = tokio::spawn(async move { inner.reload().await });
        reloading.await.unwrap_or_default()
    }
}

impl Inner {
    async fn reload(&self) -> Vec<Event> {
        let mut plugins = self.plugins.lock().await;
        if self.closing.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let disk = DiskState::read(plugins.sources.clone()).await;
        if let Some(problem) = disk.waits_for_trust(plugins.untrusted.as_ref()) {
            plugins.looked_in.extend(disk.discovery.looked_in);
            let is_told = plugins.problems.contains(&problem);
            plugins.problems = vec![problem.clone()];
            let event = Event::NotReloaded { plugin: None, problem };
            if !is_told {
                self.invoke_services.news.events().publish(|| event.clone());
            }
            return vec![event];
        }
        plugins.factory.protect(&disk.discovery.deciding);
        plugins.factory.loader.know(&disk.discovery.secrets);
        let events = plugins.apply(disk).await;
        plugins.check_pins().await;
        if self.closing.load(Ordering::SeqCst) {
            // Who shuts down waits for this to be over, and ends them all.
            return Vec::new();
        }
        self.current.store(Arc::new(plugins.current()));
        // Only now: until a moment ago new calls went to them.
        plugins.retire_replaced();
        drop(plugins);
        for event in &events {
            self.invoke_services.news.events().publish(|| event.clone());
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_keeps_its_place() {
        let check = |there: &[&str], before: &[&str], id: &str, expected: &[&str]| {
            let strings = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
            let (mut order, before): (Vec<String>, Vec<String>) = (strings(there), strings(before));
            insert_as_before(&mut order, &before, &id.to_string());
            assert_eq!(order, expected);
        };
        check(&["a", "c"], &["a", "b", "c"], "b", &["a", "b", "c"]);
        check(&["c"], &["a", "b", "c"], "b", &["b", "c"]);
        check(&["new", "a"], &["a", "b"], "b", &["new", "a", "b"]);
        check(&[], &["a"], "a", &["a"]);
    }
}
