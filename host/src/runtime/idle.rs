//! How long a server has not been used. It runs for calls and for subscriptions.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What a server is used for.
pub(super) struct ServerUsage {
    /// How long it runs without being used.
    limit: Duration,
    uses: Mutex<Uses>,
}

struct Uses {
    calls: usize,
    /// The resources of which somebody wants to know that they change.
    subscriptions: BTreeSet<String>,
    last: Instant,
    /// Whether a task waits for it to be idle.
    is_watched: bool,
    watcher: Option<AbortHandle>,
}

/// A call that uses a server.
pub(super) struct ServerUse<'a>(&'a ServerUsage);

impl Drop for ServerUse<'_> {
    fn drop(&mut self) {
        let mut uses = self.0.uses();
        uses.calls -= 1;
        uses.last = Instant::now();
    }
}

impl Drop for ServerUsage {
    fn drop(&mut self) {
        if let Some(watcher) = self.uses().watcher.take() {
            watcher.abort();
        }
    }
}

impl ServerUsage {
    pub(super) fn new(limit: Duration) -> Self {
        let uses = Uses {
            calls: 0,
            subscriptions: BTreeSet::new(),
            last: Instant::now(),
            is_watched: false,
            watcher: None,
        };
        Self { limit, uses: Mutex::new(uses) }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins. Says whether a task has to be [spawned](Self::watched_by) that waits for the server to be idle.
    pub(super) fn begin(&self) -> (ServerUse<'_>, bool) {
        let mut uses = self.uses();
        uses.calls += 1;
        let is_watched = std::mem::replace(&mut uses.is_watched, true);
        (ServerUse(self), !is_watched)
    }

    /// This task waits for the server to be idle.
    pub(super) fn watched_by(&self, watcher: AbortHandle) {
        self.uses().watcher = Some(watcher);
    }

    /// A subscription was made, or ended.
    pub(super) fn subscribed(&self, uri: &str, wanted: bool) {
        let mut uses = self.uses();
        match wanted {
            true => drop(uses.subscriptions.insert(uri.to_string())),
            false => drop(uses.subscriptions.remove(uri)),
        }
    }

    /// How long to wait before the server may be idle for too long; nothing where it is. Nobody waits then.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let mut uses = self.uses();
        if uses.calls > 0 || !uses.subscriptions.is_empty() {
            return Some(self.limit);
        }
        let left = self.limit.saturating_sub(uses.last.elapsed());
        uses.is_watched = !left.is_zero();
        uses.is_watched.then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    const LIMIT: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_server_is_idle_when_nobody_has_used_it_for_long() {
        let usage = ServerUsage::new(LIMIT);
        let (first, must_watch) = usage.begin();
        assert!(must_watch);
        let (second, must_watch) = usage.begin();
        assert!(!must_watch);
        drop(first);
        advance(2 * LIMIT).await;
        assert_eq!(usage.time_left(), Some(LIMIT));
        drop(second);
        advance(LIMIT / 3).await;
        assert_eq!(usage.time_left(), Some(LIMIT / 3 * 2));
        usage.subscribed("a", true);
        usage.subscribed("b", true);
        usage.subscribed("a", false);
        advance(LIMIT).await;
        assert_eq!(usage.time_left(), Some(LIMIT));
        usage.subscribed("b", false);
        assert_eq!(usage.time_left(), None);
        // Who calls next watches again.
        assert!(usage.begin().1);
    }
}
