//! What a legacy request has been told so far, so that a client whose stream was cut can have the rest.

use std::sync::{Arc, Mutex};
use tokio::sync::watch;

use crate::lock;

/// The most bytes of messages that one stream keeps. News that would exceed it get lost; the answer does not.
const MAX_BYTES: usize = 4 << 20;

/// The messages of a stream, in their order. They are counted from one.
pub(super) struct EventLog {
    messages: Mutex<(Vec<Arc<str>>, usize)>,
    state: watch::Sender<LogState>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LogState {
    /// How many messages there are.
    pub(super) count: usize,
    /// Whether there are no more to come.
    pub(super) is_over: bool,
}

impl EventLog {
    pub(super) fn new() -> Arc<Self> {
        let state = watch::Sender::new(LogState::default());
        Arc::new(Self { messages: Mutex::default(), state })
    }

    /// Adds a message. `is_answer` is of the last one.
    pub(super) fn push(&self, message: String, is_answer: bool) {
        let count = {
            let mut held = lock(&self.messages);
            let (messages, bytes) = &mut *held;
            if !is_answer && *bytes + message.len() > MAX_BYTES {
                return;
            }
            *bytes += message.len();
            messages.push(message.into());
            messages.len()
        };
        self.state.send_modify(|state| *state = LogState { count, is_over: is_answer });
    }

    /// There will be no answer.
    pub(super) fn end(&self) {
        self.state.send_modify(|state| state.is_over = true);
    }

    /// Waits until there is a message after so many, or none will come.
    pub(super) async fn wait(&self, after: usize) -> LogState {
        let mut changed = self.state.subscribe();
        let waited = changed.wait_for(|state| state.count > after || state.is_over).await;
        // The sender is here.
        waited.map(|state| *state).unwrap_or_default()
    }

    /// The message after so many.
    pub(super) fn after(&self, count: usize) -> Option<Arc<str>> {
        let held = lock(&self.messages);
        held.0.get(count).cloned()
    }

    /// How long its messages are, in bytes.
    pub(super) fn bytes(&self) -> usize {
        lock(&self.messages).1
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.borrow().is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_comes_late_and_misses_nothing() {
        let log = EventLog::new();
        log.push("a".into(), false);
        log.push("x".repeat(MAX_BYTES), false);
        log.push("b".into(), true);
        let mut seen = Vec::new();
        while let Some(message) = log.after(seen.len()) {
            seen.push(message);
        }
        assert_eq!(seen, ["a".into(), Arc::from("b")]);
        assert_eq!(log.wait(2).await, LogState { count: 2, is_over: true });
        let waiting = EventLog::new();
        let (state, ()) = tokio::join!(waiting.wait(0), async { waiting.push("c".into(), false) });
        assert_eq!(state, LogState { count: 1, is_over: false });
        waiting.end();
        assert!(waiting.wait(1).await.is_over && waiting.is_over());
    }
}
