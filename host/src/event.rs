//! What a host can watch while it runs: events, and who hears them.
//!
//! Every subscriber has a queue of its own, so that calls share no lock with each other for the
//! sake of those who watch. One that does not keep up misses events and is told how many.

use arc_swap::ArcSwap;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::mpsc;

use crate::invoke::{CallKind, Fingerprint, HandlerReport};
use crate::runtime::Usage;
use crate::server::{BreakerState, ServerState};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// A plugin registered again, because it said that what it contributes has changed.
    Registered {
        /// The plugin.
        plugin: Arc<str>,
    },
    /// A plugin said that it had changed, and could not register again. What it contributed before
    /// stays.
    NotRegistered {
        /// The plugin.
        plugin: Arc<str>,
        /// Why not.
        problem: String,
    },
    /// What is on disk is not what is loaded.
    Changed {
        /// The plugin.
        plugin: Arc<str>,
        /// In what way.
        change: Change,
    },
    /// What is on disk is loaded now; for a plugin that was removed, it is unloaded.
    Reloaded {
        /// The plugin.
        plugin: Arc<str>,
        /// What was done.
        change: Change,
    },
    /// What is on disk could not be loaded. Where there was a version before it, that one stays.
    NotReloaded {
        /// The plugin; nothing for a configuration, in whose place its former text stays.
        plugin: Option<Arc<str>>,
        /// Why not.
        problem: String,
    },
    /// A call has come so far.
    Progress {
        /// The plugin that serves it.
        plugin: Arc<str>,
        /// The call.
        call_id: String,
        /// How far.
        progress: f64,
        /// How far it is to the end, where that is known.
        total: Option<f64>,
        /// What is being done.
        message: Option<String>,
    },
    /// A resource that was subscribed to is another one now.
    ResourceUpdated {
        /// The plugin that has it.
        plugin: Arc<str>,
        /// The resource.
        uri: String,
    },
    /// An MCP server is in another state.
    Server {
        /// Its plugin.
        plugin: Arc<str>,
        /// The state.
        state: ServerState,
        /// Why, where something is wrong.
        error: Option<String>,
    },
    /// Calls to an MCP server are tried, or are not any more.
    Breaker {
        /// Its plugin.
        plugin: Arc<str>,
        /// The breaker: `ext:stdio:PLUGIN`.
        breaker: String,
        /// Whether they are.
        state: BreakerState,
    },
    /// What was asked of a plugin has taken a step: a call of a tool, a completion, an evaluation, the
    /// handling of a hook point. What is asked of resources and prompts goes by the name of the tool that
    /// does the same: `server__read_resource`.
    Call(CallEvent),
    /// So many events were missed, because the subscriber did not keep up.
    Missed {
        /// How many.
        events: u64,
    },
}

/// A step of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallEvent {
    /// What is asked.
    pub kind: CallKind,
    /// The call's id.
    pub call: Arc<str>,
    /// The tool, strategy or model as the caller named it, or the hook point.
    pub tool: Arc<str>,
    /// The plugin; nothing where there is no such tool.
    pub plugin: Option<Arc<str>>,
    /// The same for calls that are the same.
    pub fingerprint: Fingerprint,
    /// What was done.
    #[serde(flatten)]
    pub step: Step,
}

/// What was done for a call. A step that stops the call is followed by [`Step::Ended`] at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Step {
    /// The tool was found.
    Found,
    /// Hooks had their say before the call.
    HooksBefore {
        /// Who was asked, in order.
        handlers: Vec<HandlerReport>,
    },
    /// The arguments are what the tool's schema says.
    Checked,
    /// The operator lets the tool be called.
    Permitted,
    /// The plugin was called.
    Attempted {
        /// The number of the attempt, counted from one.
        attempt: u32,
        /// Why it has failed.
        error: Option<String>,
    },
    /// The plugin tried what it was not granted.
    Refused {
        /// Who tried what, and the line that would request it.
        words: String,
    },
    /// The result is free of secrets and short enough.
    Bounded {
        /// The length of the plugin's answer, in bytes.
        bytes: u64,
        /// Where the whole answer is kept, if it was too long.
        whole: Option<String>,
    },
    /// Hooks had their say about the result.
    HooksAfter {
        /// Who was asked, in order.
        handlers: Vec<HandlerReport>,
    },
    /// The call is over.
    Ended {
        /// `ok`, `tool-error`, the code of the error ([`crate::CallError::code`]), or `abandoned`
        /// where the caller dropped the call.
        outcome: &'static str,
        /// The error.
        error: Option<String>,
        /// What it used.
        usage: Usage,
    },
}

/// How a plugin on disk differs from the one that is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is new.
    Added,
    /// Its code, its manifest or its settings are others.
    Modified,
    /// It is gone, or no longer wanted.
    Removed,
}

/// The events that wait for a slow subscriber.
const MAX_QUEUED_EVENTS: usize = 4096;

/// Hands events to those who subscribed. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<ArcSwap<Vec<Subscriber>>>);

#[derive(Clone)]
struct Subscriber {
    queue: mpsc::Sender<Event>,
    missed: Arc<AtomicU64>,
}

impl Events {
    /// Whether anybody would hear an event.
    pub(crate) fn are_heard(&self) -> bool {
        !self.0.load().is_empty()
    }

    /// Tells everybody who subscribed. Nothing is made where nobody did.
    pub(crate) fn publish(&self, event: impl FnOnce() -> Event) {
        let subscribers = self.0.load();
        if subscribers.is_empty() {
            return;
        }
        let event = event();
        for subscriber in subscribers.iter() {
            if let Err(mpsc::error::TrySendError::Full(_)) =
                subscriber.queue.try_send(event.clone())
            {
                subscriber.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        let (sender, queue) = mpsc::channel(MAX_QUEUED_EVENTS);
        let missed = Arc::new(AtomicU64::new(0));
        let subscriber = Subscriber { queue: sender, missed: missed.clone() };
        self.0.rcu(|subscribers| {
            let mut subscribers = Vec::clone(subscribers);
            subscribers.push(subscriber.clone());
            subscribers
        });
        Subscription { queue, missed, events: Arc::downgrade(&self.0) }
    }
}

/// The events from the moment of subscribing on.
pub struct Subscription {
    queue: mpsc::Receiver<Event>,
    missed: Arc<AtomicU64>,
    events: Weak<ArcSwap<Vec<Subscriber>>>,
}

impl Subscription {
    /// The next event; nothing when the platform is gone.
    pub async fn next(&mut self) -> Option<Event> {
        match self.take_missed() {
            Some(missed) => Some(missed),
            None => self.queue.recv().await,
        }
    }

    /// An event that is there already.
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
