//! An MCP server as the host sees it: whether it runs, how often it was started, whether it answers.
//!
//! What happens between the bridge and the server is the bridge's affair. Here is what an operator
//! wants to know of it, and what keeps a broken server from costing more than itself: a budget of
//! [starts](Supervision::max_restarts), and a [`breaker`] for calls.

mod access_recorder;
mod breaker;
mod child;
mod listing_cache;
mod starts;

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenon_config::pins::{DefinitionKind, McpDefinition, PinSubject};
use tenon_types::Registration;
use tokio::time::Instant;

use crate::call::mask::Masked;
use crate::call::{Failure, within};
use crate::capability::network::{NetworkTraffic, ServerTraffic};
use crate::capability::services::{Pins, ask_pins};
use crate::observe::PluginNotifications;
use crate::observe::event::Event;
pub(crate) use crate::observe::event::{BreakerState, ServerState};
pub use access_recorder::{AccessRecorder, UngrantedAccesses};
use breaker::Breaker;
pub(crate) use child::{
    Child, ChildEvent, ChildSlot, ChildSpec, ExitStatus, OversizedLine, ServerConfinement,
    unavailable,
};
pub(crate) use listing_cache::ListingCache;
pub use starts::StartQueueProgress;
pub(crate) use starts::{StartObserver, StartPriority, StartQueue};
pub(crate) use tenon_config::config::Supervision;

/// How a server fares.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ServerReport {
    /// Whether it runs.
    pub state: ServerState,
    /// The revision of the protocol that it speaks, once it has said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// How often it was started, all in all.
    pub starts: u64,
    /// How many lines of its output were no messages, since it was started last.
    pub skipped_lines: u64,
    /// What of that it listed last is left out, and why: the first of it.
    pub left_out: Vec<String>,
    /// What is held of the prompts, resources and templates that it listed last, and why.
    pub held: Vec<String>,
    /// The name of its breaker.
    pub breaker: String,
    /// Whether calls are tried.
    pub breaker_state: BreakerState,
    /// Why it ended last, or was not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The last lines of its standard error.
    pub stderr: Vec<String>,
    /// Whether it reaches nothing but what it is granted; nothing for a server elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confinement: Option<ConfinementState>,
    /// What it sends and receives, if it is confined and was granted URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkTraffic>,
}

/// Whether a server that is a child reaches nothing but what it is granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ConfinementState {
    /// Whether it is confined.
    pub is_confined: bool,
    /// It is confined by Landlock and seccomp alone, as this system lets users make no namespaces: nothing in what it
    /// was granted can be hidden, and nothing recorded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lacks_namespaces: bool,
    /// Why it is not, though it has capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How much of what is left out is remembered.
const MAX_LEFT_OUT_SHOWN: usize = 8;

/// Keeps watch over one server, over all instances of its bridge.
pub(crate) struct Supervisor {
    plugin: Arc<str>,
    /// `stdio` or `http`.
    transport: &'static str,
    policy: Supervision,
    news: PluginNotifications,
    /// What it contributed when it was last asked.
    listing: Option<ListingCache>,
    /// Where its starts wait for their turn, and how long one may take then.
    starts: StartQueue,
    startup: Duration,
    confinement: Option<ConfinementState>,
    traffic: Option<Arc<ServerTraffic>>,
    watched: Mutex<SupervisorState>,
}

#[derive(Default)]
struct SupervisorState {
    state: ServerState,
    /// When it was started of late.
    starts: VecDeque<Instant>,
    all_starts: u64,
    revision: Option<String>,
    skipped: u64,
    left_out: Vec<String>,
    last_error: Option<String>,
    stderr: Vec<String>,
    breaker: Breaker,
    /// Who remembers what it said of what it lists.
    pins: Option<(Arc<dyn Pins>, PinSubject)>,
    /// What of that is held, and why.
    held: BTreeMap<(DefinitionKind, String), String>,
    /// Its launcher made no namespaces.
    lacks_namespaces: bool,
    /// Its last start took longer than it may.
    ran_out_of_time: bool,
    /// It has ended because nobody used it, and may list something else when it is there again.
    has_been_idle: bool,
}

/// Why a server is not started: it ended too often.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server was started {starts} times within {} seconds and ended each time; it stays down until it is restarted{}",
    window.as_secs(),
    last.as_ref().map(|last| format!(". The last time: {last}")).unwrap_or_default()
)]
pub(crate) struct TooManyStarts {
    starts: usize,
    window: Duration,
    last: Option<String>,
}

impl Supervisor {
    pub(crate) fn new(
        plugin: Arc<str>,
        transport: &'static str,
        policy: Supervision,
        news: PluginNotifications,
    ) -> Self {
        Self {
            plugin,
            transport,
            policy,
            news,
            confinement: None,
            traffic: None,
            listing: None,
            starts: StartQueue::default(),
            startup: Duration::MAX,
            watched: Mutex::default(),
        }
    }

    /// The same, with a queue for its starts, and how long one may take.
    pub(crate) fn with_starts(self, starts: StartQueue, startup: Duration) -> Self {
        Self { starts, startup, ..self }
    }

    /// Starts the server when it is its turn, unless it runs. One that is called goes first. The time
    /// that it has begins with its turn.
    pub(crate) async fn start_in_turn<T>(
        &self,
        is_called: bool,
        time: Duration,
        start: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        if self.is_ready() {
            return within(time, start).await;
        }
        let order = match (self.transport, is_called) {
            ("stdio", true) => StartPriority::First,
            ("stdio", false) => StartPriority::InTurn,
            _ => StartPriority::AtOnce,
        };
        let timed = async {
            let began = Instant::now();
            let result = within(time, start).await;
            let is_over = began.elapsed() >= self.startup;
            self.watched().ran_out_of_time = result.is_err() && is_over;
            result
        };
        self.starts.run(&self.plugin, order, timed).await
    }

    /// How long the last start could take, where it took longer.
    pub(crate) fn startup_exceeded(&self) -> Option<Duration> {
        self.watched().ran_out_of_time.then_some(self.startup)
    }

    /// The same, of a server that is confined or not.
    pub(crate) fn with_confinement(self, confinement: Option<ConfinementState>) -> Self {
        Self { confinement, ..self }
    }

    /// The same, of a server whose traffic is counted.
    pub(crate) fn with_traffic(self, traffic: Option<Arc<ServerTraffic>>) -> Self {
        Self { traffic, ..self }
    }

    /// The same, with a place for what it contributes.
    pub(crate) fn with_listing(self, listing: Option<ListingCache>) -> Self {
        Self { listing, ..self }
    }

    /// What it contributed when it was last asked, where that may stand for its answer.
    pub(crate) fn stand_in(&self) -> Option<Registration> {
        self.listing.as_ref()?.stand_in()
    }

    /// Whether something was registered in place of its answer.
    pub(crate) fn has_stand_in(&self) -> bool {
        self.listing.as_ref().is_some_and(ListingCache::stands_in)
    }

    /// Whether it answers what was registered in place of its answer. If not, it is registered
    /// again.
    pub(crate) fn agrees(&self, registration: &Registration) -> bool {
        let agrees = self.listing.as_ref().is_none_or(|listing| listing.agrees(registration));
        if !agrees {
            self.news.note_change(&self.plugin);
        }
        agrees
    }

    /// The tools that were registered in place of its answer, and are not among what it answers as
    /// they are.
    pub(crate) fn differing(&self, registration: &Registration) -> BTreeSet<String> {
        self.listing.as_ref().map(|listing| listing.differing(registration)).unwrap_or_default()
    }

    /// Keeps what it answered. It blocks.
    pub(crate) fn keep(&self, registration: &Registration) {
        let Some(listing) = &self.listing else { return };
        let revision = self.watched().revision.clone();
        if let Err(error) = listing.keep(registration, revision) {
            tracing::debug!(plugin = &*self.plugin, "its tools cannot be cached: {error}");
        }
    }

    pub(crate) fn policy(&self) -> &Supervision {
        &self.policy
    }

    fn watched(&self) -> MutexGuard<'_, SupervisorState> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a start from the budget. Gives how long to wait before it.
    pub(crate) fn start(&self, now: Instant) -> Result<Duration, TooManyStarts> {
        let mut watched = self.watched();
        let window = self.policy.restart_window;
        let too_often = |watched: &SupervisorState| TooManyStarts {
            starts: watched.starts.len(),
            window,
            last: watched.last_error.clone(),
        };
        if watched.state == ServerState::Failed {
            return Err(too_often(&watched));
        }
        while watched.starts.front().is_some_and(|start| now - *start > window) {
            watched.starts.pop_front();
        }
        let restarts = watched.starts.len();
        if restarts > self.policy.max_restarts as usize {
            let error = too_often(&watched);
            self.enter(&mut watched, ServerState::Failed);
            return Err(error);
        }
        let wait = match restarts {
            0 => Duration::ZERO,
            n => self.backoff(u32::try_from(n - 1).unwrap_or(u32::MAX)),
        };
        watched.starts.push_back(now + wait);
        watched.all_starts += 1;
        watched.skipped = 0;
        let next = match watched.state {
            ServerState::Idle => ServerState::Spawning,
            _ => ServerState::Restarting,
        };
        self.enter(&mut watched, next);
        Ok(wait)
    }

    /// The time before a restart, with as much chance as it takes for servers that ended together
    /// not to start together.
    fn backoff(&self, earlier: u32) -> Duration {
        let whole = self.policy.backoff.saturating_mul(1 << earlier.min(16));
        let whole = whole.min(self.policy.max_backoff);
        let chance = std::hash::RandomState::new().build_hasher().finish();
        // Between a half and the whole.
        let share = (chance >> 11) as f64 / (1_u64 << 53) as f64;
        whole.mul_f64(0.5 + share / 2.0)
    }

    /// The handshake is over. After an idle time the server is registered again.
    pub(crate) fn connected(&self, revision: Masked<String>) {
        let mut watched = self.watched();
        watched.revision = Some(revision.into_inner());
        watched.last_error = None;
        self.enter(&mut watched, ServerState::Ready);
        if std::mem::take(&mut watched.has_been_idle) {
            self.news.note_change(&self.plugin);
        }
    }

    /// So many lines were no messages.
    pub(crate) fn skipped(&self, lines: u64) {
        self.watched().skipped = lines;
    }

    /// It is going to say what it has.
    pub(crate) fn lists(&self) {
        self.watched().left_out.clear();
    }

    /// Something of that is left out.
    pub(crate) fn left_out(&self, problem: Masked<String>) {
        self.lacks(problem.into_inner());
    }

    fn lacks(&self, problem: String) {
        let mut watched = self.watched();
        if watched.left_out.len() < MAX_LEFT_OUT_SHOWN {
            watched.left_out.push(problem);
        }
    }

    /// From now on, what it lists is compared with what it listed when it was first seen.
    pub(crate) fn pin(&self, pins: Arc<dyn Pins>, server: PinSubject) {
        self.watched().pins = Some((pins, server));
    }

    /// Whether what it lists is compared with what it was.
    pub(crate) fn is_pinned(&self) -> bool {
        self.watched().pins.is_some()
    }

    /// Compares what it has just listed with what it listed when it was first seen. What is held is
    /// known afterwards.
    pub(crate) async fn compare(
        &self,
        kind: DefinitionKind,
        listed: Vec<(String, McpDefinition)>,
        is_whole: bool,
    ) {
        let Some((pins, server)) = self.watched().pins.clone() else { return };
        let names: Vec<String> = listed.iter().map(|(name, _)| name.clone()).collect();
        let seen = server.seen(kind, listed.into_iter(), is_whole);
        let holds = ask_pins(pins, vec![(server.mode, vec![seen])]).await;
        for name in names {
            let told = holds.told(&self.plugin, kind, &name);
            if let Some((_, said)) = &told {
                let remedy = tenon_config::pins::remedy(&self.plugin);
                tracing::warn!("plugin \"{}\": {said}; {remedy}", self.plugin);
            }
            let key = (kind, name);
            match told.filter(|(hold, _)| !hold.is_warning) {
                Some((mismatch, said)) => {
                    if !self.watched().left_out.contains(&said) {
                        self.lacks(said);
                    }
                    self.watched().held.insert(key, mismatch.why);
                }
                None => drop(self.watched().held.remove(&key)),
            }
        }
    }

    /// Why something that it listed is held, if it is.
    pub(crate) fn held(&self, kind: DefinitionKind, name: &str) -> Option<String> {
        self.watched().held.get(&(kind, name.to_string())).cloned()
    }

    /// It has ended, or could not be started. Whether it is started again is for its callers.
    pub(crate) fn ended(&self, how: &str, stderr: Vec<String>) {
        let mut watched = self.watched();
        watched.last_error = Some(how.to_string());
        watched.stderr = stderr;
        if !matches!(watched.state, ServerState::Failed | ServerState::Shutdown) {
            self.enter(&mut watched, ServerState::Restarting);
        }
    }

    /// It was told to end.
    pub(crate) fn stopped(&self) {
        let mut watched = self.watched();
        if watched.state != ServerState::Failed {
            self.enter(&mut watched, ServerState::Shutdown);
        }
    }

    /// It was told to end because nobody used it. If it ran until then, the next start is no restart of a server
    /// that failed.
    pub(crate) fn stopped_as_idle(&self) {
        let mut watched = self.watched();
        if watched.state == ServerState::Shutdown {
            watched.starts.pop_back();
            watched.has_been_idle = true;
            self.enter(&mut watched, ServerState::Idle);
        }
    }

    /// Forgets what went wrong, so that the next call starts it.
    pub(crate) fn reset(&self) {
        let mut watched = self.watched();
        watched.starts.clear();
        watched.breaker = Breaker::default();
        if watched.state == ServerState::Failed {
            self.enter(&mut watched, ServerState::Idle);
        }
    }

    fn enter(&self, watched: &mut SupervisorState, state: ServerState) {
        if watched.state == state {
            return;
        }
        watched.state = state;
        let error = watched.last_error.clone().filter(|_| state != ServerState::Ready);
        self.news.events().publish(|| Event::Server { plugin: self.plugin.clone(), state, error });
    }

    /// How it fares.
    pub(crate) fn report(&self) -> ServerReport {
        let watched = self.watched();
        let held = watched.held.iter();
        let held =
            held.map(|((kind, name), why)| format!("{} is held: {why}", kind.describe(name)));
        ServerReport {
            held: held.collect(),
            state: watched.state,
            revision: watched.revision.clone(),
            starts: watched.all_starts,
            skipped_lines: watched.skipped,
            left_out: watched.left_out.clone(),
            breaker: self.breaker_name(),
            breaker_state: watched.breaker.state(Instant::now(), &self.policy),
            last_error: watched.last_error.clone(),
            stderr: watched.stderr.clone(),
            confinement: self.confinement.clone().map(|confinement| ConfinementState {
                lacks_namespaces: watched.lacks_namespaces,
                ..confinement
            }),
            network: self.traffic.as_ref().map(|traffic| traffic.read()),
        }
    }

    /// Notes that its launcher made no namespaces.
    pub(super) fn lacks_namespaces(&self) {
        self.watched().lacks_namespaces = true;
    }

    /// Whether it is there to answer.
    pub(crate) fn is_ready(&self) -> bool {
        self.watched().state == ServerState::Ready
    }

    /// Why it ended last, or was not started.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.watched().last_error.clone()
    }

    fn breaker_name(&self) -> String {
        format!("ext:{}:{}", self.transport, self.plugin)
    }

    /// Whether a call may be tried; if not, in how long.
    pub(crate) fn admit(&self, now: Instant) -> Result<(), Duration> {
        self.watched().breaker.admit(now, &self.policy)
    }

    /// A call got an answer, whatever it says.
    pub(crate) fn answered(&self) {
        let mut watched = self.watched();
        if watched.breaker.answered() {
            self.tell_of_breaker(BreakerState::Closed);
        }
    }

    /// A call got none.
    pub(crate) fn unanswered(&self, began: Instant, now: Instant) {
        let mut watched = self.watched();
        let before = watched.breaker.state(now, &self.policy);
        watched.breaker.unanswered(began, now, &self.policy);
        let state = watched.breaker.state(now, &self.policy);
        if state != before {
            self.tell_of_breaker(state);
        }
    }

    /// A call was given up before it could be told whether there would be an answer.
    pub(crate) fn abandoned(&self) {
        self.watched().breaker.abandoned();
    }

    fn tell_of_breaker(&self, state: BreakerState) {
        self.news.events().publish(|| Event::Breaker {
            plugin: self.plugin.clone(),
            breaker: self.breaker_name(),
            state,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::mask::Unmasked;

    fn supervisor() -> Supervisor {
        let policy = Supervision { max_restarts: 2, ..Supervision::default() };
        Supervisor::new("s".into(), "stdio", policy, PluginNotifications::default())
    }

    fn at(seconds: u64) -> Instant {
        // Far from the beginning of the clock, whatever that is.
        *BEGIN.get_or_init(Instant::now) + Duration::from_secs(seconds)
    }

    static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();

    #[test]
    fn a_server_that_ends_again_and_again_has_failed_until_it_is_told_to_start() {
        let supervisor = supervisor();
        assert_eq!(supervisor.start(at(0)), Ok(Duration::ZERO));
        for earlier in 0..2 {
            supervisor.ended("it exited with code 1", Vec::new());
            let wait = supervisor.start(at(1)).unwrap();
            let whole = Duration::from_millis(250 << earlier);
            assert!((whole / 2..=whole).contains(&wait), "{wait:?}");
        }
        let error = supervisor.start(at(2)).unwrap_err();
        assert!(error.to_string().ends_with("The last time: it exited with code 1"), "{error}");
        assert_eq!(supervisor.report().state, ServerState::Failed);
        // Not even when the window is over.
        assert!(supervisor.start(at(600)).is_err());
        supervisor.reset();
        assert_eq!(supervisor.start(at(600)), Ok(Duration::ZERO));
    }

    #[test]
    fn a_server_that_ends_now_and_then_is_started_at_once() {
        let supervisor = supervisor();
        for minute in 0..20 {
            assert_eq!(supervisor.start(at(minute * 61)), Ok(Duration::ZERO));
        }
    }

    #[test]
    fn no_wait_is_longer_than_the_longest() {
        let policy = Supervision { max_restarts: 50, ..Supervision::default() };
        let supervisor =
            Supervisor::new("s".into(), "stdio", policy, PluginNotifications::default());
        for _ in 0..50 {
            assert!(supervisor.start(at(0)).unwrap() <= Duration::from_secs(10));
        }
    }

    #[test]
    fn only_a_server_that_ran_until_it_was_idle_is_started_as_if_for_the_first_time() {
        let revision = || Unmasked::new("2025-11-25".to_string()).mask(&Arc::default());
        let supervisor = supervisor();
        for _ in 0..9 {
            assert_eq!(supervisor.start(at(0)), Ok(Duration::ZERO));
            assert_eq!(supervisor.report().state, ServerState::Spawning);
            supervisor.connected(revision());
            supervisor.stopped();
            supervisor.stopped_as_idle();
            assert_eq!(supervisor.report().state, ServerState::Idle);
        }
        // One that ended by itself has used up a start, though nobody has called it since.
        for _ in 0..3 {
            supervisor.start(at(1)).unwrap();
            supervisor.ended("it ended", Vec::new());
            supervisor.stopped_as_idle();
            assert_eq!(supervisor.report().state, ServerState::Restarting);
        }
        supervisor.start(at(1)).unwrap_err();
        supervisor.stopped_as_idle();
        assert_eq!(supervisor.report().state, ServerState::Failed);
    }

    #[tokio::test]
    async fn those_who_watch_see_each_state_once() {
        let news = PluginNotifications::default();
        let mut seen = news.events().subscribe();
        let policy = Supervision { max_restarts: 0, ..Supervision::default() };
        let supervisor = Supervisor::new("s".into(), "stdio", policy, news);
        supervisor.start(at(0)).unwrap();
        let revision = Unmasked::new("2025-11-25".to_string()).mask(&Arc::default());
        supervisor.connected(revision.clone());
        supervisor.connected(revision);
        supervisor.ended("it ended", Vec::new());
        supervisor.start(at(1)).unwrap_err();
        let mut states = Vec::new();
        for _ in 0..4 {
            let Some(Event::Server { state, .. }) = seen.next().await else { panic!() };
            states.push(state);
        }
        use ServerState::{Failed, Ready, Restarting, Spawning};
        assert_eq!(states, [Spawning, Ready, Restarting, Failed]);
    }
}
