//! What a host can watch while it runs: events, and who hears them.
//!
//! Every subscriber has a queue of its own, so that calls share no lock with each other for the
//! sake of those who watch. One that does not keep up misses events and is told how many.

use arc_swap::ArcSwap;
use serde::Serialize;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::mpsc;

use crate::call::{CallFingerprint, CallKind, HandlerReport, Usage};

/// Whether a server runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ServerState {
    /// It does not run: nobody has called it yet, or nobody has for long.
    #[default]
    Idle,
    /// It was started and has not answered the handshake yet.
    Spawning,
    /// It answers.
    Ready,
    /// It has ended, and is started again.
    Restarting,
    /// It ended too often, or cannot be started. It stays so until it is restarted.
    Failed,
    /// It was told to end.
    Shutdown,
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Spawning => "spawning",
            Self::Ready => "ready",
            Self::Restarting => "restarting",
            Self::Failed => "failed",
            Self::Shutdown => "shutdown",
        })
    }
}

/// Whether calls are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BreakerState {
    /// They are.
    Closed,
    /// They are not, for a while.
    Open,
    /// One is, to see whether the server answers again.
    HalfOpen,
}

impl fmt::Display for BreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        })
    }
}

/// An event of the platform.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Event {
    /// A plugin registered again after it reported a change.
    Registered {
        /// The plugin.
        plugin: Arc<str>,
    },
    /// A plugin reported a change but failed to register again. What it contributed before stays.
    NotRegistered {
        /// The plugin.
        plugin: Arc<str>,
        /// Why not.
        problem: String,
    },
    /// A plugin on disk differs from the loaded one.
    Changed {
        /// The plugin.
        plugin: Arc<str>,
        /// The difference.
        change: DiskChange,
    },
    /// The plugin on disk was loaded; a plugin that was removed was unloaded.
    Reloaded {
        /// The plugin.
        plugin: Arc<str>,
        /// The difference that was applied.
        change: DiskChange,
    },
    /// The plugin on disk failed to load. An earlier version stays loaded.
    NotReloaded {
        /// The plugin, or `None` for a configuration, whose earlier text stays in effect.
        plugin: Option<Arc<str>>,
        /// Why not.
        problem: String,
    },
    /// Progress of a call.
    Progress {
        /// The plugin that serves it.
        plugin: Arc<str>,
        /// The call.
        call_id: String,
        /// The progress so far.
        progress: f64,
        /// The progress at the end, if known.
        total: Option<f64>,
        /// What the plugin is doing.
        message: Option<String>,
    },
    /// A subscribed resource has changed.
    ResourceUpdated {
        /// The plugin that has it.
        plugin: Arc<str>,
        /// The resource.
        uri: String,
    },
    /// The state of an MCP server has changed.
    Server {
        /// Its plugin.
        plugin: Arc<str>,
        /// The state.
        state: ServerState,
        /// The reason, if something is wrong.
        error: Option<String>,
    },
    /// The circuit breaker of an MCP server has opened or closed.
    Breaker {
        /// Its plugin.
        plugin: Arc<str>,
        /// The breaker: `ext:stdio:PLUGIN`.
        breaker: String,
        /// Its new state.
        state: BreakerState,
    },
    /// A call has taken a step: a tool call, a completion, an evaluation or a hook. Operations on resources
    /// and prompts have the name of the equivalent tool: `server__read_resource`.
    Call(CallEvent),
    /// The subscriber was too slow and missed events.
    Missed {
        /// The number of missed events.
        events: u64,
    },
}

/// A step of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallEvent {
    /// The kind of call.
    pub kind: CallKind,
    /// The call's id.
    pub call: Arc<str>,
    /// The name of the tool, strategy or model that the caller used, or the hook point.
    pub tool: Arc<str>,
    /// The plugin, or `None` if the tool does not exist.
    pub plugin: Option<Arc<str>>,
    /// Equal for equal calls: see [`crate::call::CallFingerprint`].
    pub fingerprint: CallFingerprint,
    /// The step.
    #[serde(flatten)]
    pub step: Step,
}

/// A step of a call. A step that stops the call is followed by [`Step::Ended`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Step {
    /// The tool was found.
    Found,
    /// The hooks before the call have run.
    HooksBefore {
        /// The handlers that ran, in order.
        handlers: Vec<HandlerReport>,
    },
    /// The arguments match the tool's schema.
    Checked,
    /// The operator allows the call.
    Permitted,
    /// The plugin was called.
    Attempted {
        /// The number of the attempt, counted from one.
        attempt: u32,
        /// Why it failed, if it did.
        error: Option<String>,
    },
    /// The plugin tried something that is not granted.
    Refused {
        /// The refusals, each with the line that would request the capability.
        message: String,
    },
    /// The result is masked and, if too long, truncated.
    Bounded {
        /// The length of the plugin's answer, in bytes.
        bytes: u64,
        /// The URI of the whole answer, if it was truncated.
        full_result_uri: Option<String>,
    },
    /// The hooks after the call have run.
    HooksAfter {
        /// The handlers that ran, in order.
        handlers: Vec<HandlerReport>,
    },
    /// The call has ended.
    Ended {
        /// `ok`, `tool-error`, `replace` or `veto` of a hook, the code of the error
        /// ([`crate::CallError::code`]), or `abandoned` where the caller dropped the call.
        outcome: &'static str,
        /// The error message.
        error: Option<String>,
        /// The resources that it used.
        usage: Usage,
    },
}

/// How a plugin on disk differs from the one that is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskChange {
    /// It is new.
    Added,
    /// Its code, manifest or settings have changed.
    Modified,
    /// It was removed or disabled.
    Removed,
}

/// The most events that wait for a slow subscriber.
const MAX_QUEUED_EVENTS: usize = 4096;

/// Sends events to all subscribers. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<ArcSwap<Vec<SubscriberQueue>>>);

#[derive(Clone)]
struct SubscriberQueue {
    queue: mpsc::Sender<Event>,
    missed: Arc<AtomicU64>,
    /// Whether it hears of calls.
    hears_calls: bool,
}

impl Events {
    /// Whether anybody hears of calls.
    pub(crate) fn are_heard(&self) -> bool {
        self.0.load().iter().any(|subscriber| subscriber.hears_calls)
    }

    /// Sends an event to all subscribers, and builds it only if there are any.
    pub(crate) fn publish(&self, event: impl FnOnce() -> Event) {
        let subscribers = self.0.load();
        if subscribers.is_empty() {
            return;
        }
        let event = event();
        let is_of_call = matches!(event, Event::Call(_) | Event::Progress { .. });
        for subscriber in subscribers.iter().filter(|to| to.hears_calls || !is_of_call) {
            if let Err(mpsc::error::TrySendError::Full(_)) =
                subscriber.queue.try_send(event.clone())
            {
                subscriber.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        self.subscribe_to(true)
    }

    /// The same without calls, which then take no time for their events.
    pub(crate) fn subscribe_to_changes(&self) -> Subscription {
        self.subscribe_to(false)
    }

    fn subscribe_to(&self, hears_calls: bool) -> Subscription {
        let (sender, queue) = mpsc::channel(MAX_QUEUED_EVENTS);
        let missed = Arc::new(AtomicU64::new(0));
        let subscriber = SubscriberQueue { queue: sender, missed: missed.clone(), hears_calls };
        self.0.rcu(|subscribers| {
            let mut subscribers = Vec::clone(subscribers);
            subscribers.push(subscriber.clone());
            subscribers
        });
        Subscription { queue, missed, events: Arc::downgrade(&self.0) }
    }
}

/// A subscription to events.
pub struct Subscription {
    queue: mpsc::Receiver<Event>,
    missed: Arc<AtomicU64>,
    events: Weak<ArcSwap<Vec<SubscriberQueue>>>,
}

impl Subscription {
    /// Returns the next event, or `None` when the platform has ended.
    pub async fn next(&mut self) -> Option<Event> {
        match self.take_missed() {
            Some(missed) => Some(missed),
            None => self.queue.recv().await,
        }
    }

    /// Returns an event that has already arrived.
    pub fn try_next(&mut self) -> Option<Event> {
        self.take_missed().or_else(|| self.queue.try_recv().ok())
    }

    fn take_missed(&self) -> Option<Event> {
        let events = self.missed.swap(0, Ordering::Relaxed);
        (events > 0).then_some(Event::Missed { events })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Some(events) = self.events.upgrade() else { return };
        events.rcu(|subscribers| {
            let others = subscribers.iter().filter(|s| !Arc::ptr_eq(&s.missed, &self.missed));
            others.cloned().collect::<Vec<_>>()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(plugin: &str) -> Event {
        Event::Registered { plugin: plugin.into() }
    }

    #[tokio::test]
    async fn everybody_hears_what_comes_after_subscribing() {
        let events = Events::default();
        events.publish(|| unreachable!("nobody has subscribed"));
        let mut first = events.subscribe();
        events.publish(|| event("a"));
        let mut second = events.subscribe();
        events.publish(|| event("b"));
        assert_eq!(first.next().await, Some(event("a")));
        assert_eq!(first.next().await, Some(event("b")));
        assert_eq!(second.try_next(), Some(event("b")));
        drop(first);
        assert!(events.are_heard());
        drop(events);
        assert_eq!(second.next().await, None);
    }

    #[tokio::test]
    async fn who_wants_no_calls_costs_them_nothing() {
        let events = Events::default();
        let mut changes = events.subscribe_to_changes();
        assert!(!events.are_heard());
        let all = events.subscribe();
        let (plugin, call_id) = ("p".into(), "1".into());
        events.publish(|| Event::Progress {
            plugin,
            call_id,
            progress: 1.0,
            total: None,
            message: None,
        });
        events.publish(|| event("a"));
        assert_eq!(changes.next().await, Some(event("a")));
        drop(all);
        assert!(!events.are_heard());
    }

    #[tokio::test]
    async fn who_does_not_keep_up_is_told_what_was_missed() {
        let events = Events::default();
        let mut slow = events.subscribe();
        for _ in 0..MAX_QUEUED_EVENTS + 3 {
            events.publish(|| event("a"));
        }
        assert_eq!(slow.next().await, Some(Event::Missed { events: 3 }));
        assert_eq!(slow.next().await, Some(event("a")));
    }
}
