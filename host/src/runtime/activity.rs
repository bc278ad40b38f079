//! Whether a server is used, by calls and subscriptions, and since when it is not.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What a server is used for.
pub(super) struct ServerActivity {
    /// How long it runs without being used.
    limit: Duration,
    state: Mutex<ServerActivityState>,
}

struct ServerActivityState {
    calls: usize,
    /// The resources of which somebody wants to know that they change.
    subscriptions: BTreeSet<String>,
    /// When it was used last.
    last: Instant,
    /// The task that waits for it to be idle, while there is one.
    watcher: Option<AbortHandle>,
}

/// A call that uses a server.
pub(super) struct ServerUseGuard<'a>(&'a ServerActivity);

impl Drop for ServerUseGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.calls -= 1;
        state.last = Instant::now();
    }
}

impl Drop for ServerActivity {
    fn drop(&mut self) {
        if let Some(watcher) = self.state().watcher.take() {
            watcher.abort();
        }
    }
}

impl ServerActivity {
    pub(super) fn new(limit: Duration) -> Self {
        let state = ServerActivityState {
            calls: 0,
            subscriptions: BTreeSet::new(),
            last: Instant::now(),
            watcher: None,
        };
        Self { limit, state: Mutex::new(state) }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    fn state(&self) -> MutexGuard<'_, ServerActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins. `watch` spawns the task that waits for the server to be idle, where there is none.
    pub(super) fn begin(&self, watch: impl FnOnce() -> AbortHandle) -> ServerUseGuard<'_> {
        let mut state = self.state();
        state.calls += 1;
        state.watcher.get_or_insert_with(watch);
        ServerUseGuard(self)
    }

    /// A subscription was made.
    pub(super) fn subscribed(&self, uri: &str) {
        self.state().subscriptions.insert(uri.to_string());
    }

    /// A subscription has ended.
    pub(super) fn unsubscribed(&self, uri: &str) {
        self.state().subscriptions.remove(uri);
    }

    /// How long to wait before the server may be idle for too long; zero where it is.
    pub(super) fn time_left(&self) -> Duration {
        self.state().time_left(self.limit)
    }

    /// The server has ended. Returns whether it was not used since, so that nobody has to wait any more.
    pub(super) fn stop_watching(&self) -> bool {
        let mut state = self.state();
        let is_idle = state.time_left(self.limit).is_zero();
        if is_idle {
            state.watcher = None;
        }
        is_idle
    }
}

impl ServerActivityState {
    fn time_left(&self, limit: Duration) -> Duration {
        match self.calls == 0 && self.subscriptions.is_empty() {
            true => limit.saturating_sub(self.last.elapsed()),
            false => limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::time::advance;

    const LIMIT: Duration = Duration::from_secs(60);

    fn watch() -> AbortHandle {
        tokio::spawn(pending::<()>()).abort_handle()
    }

    fn never() -> AbortHandle {
        panic!("somebody waits already")
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_is_idle_when_nobody_has_used_it_for_long() {
        let activity = ServerActivity::new(LIMIT);
        let first = activity.begin(watch);
        let second = activity.begin(never);
        drop(first);
        advance(2 * LIMIT).await;
        assert_eq!(activity.time_left(), LIMIT);
        drop(second);
        advance(LIMIT / 3).await;
        assert_eq!(activity.time_left(), LIMIT / 3 * 2);
        activity.subscribed("a");
        activity.subscribed("b");
        activity.unsubscribed("a");
        advance(LIMIT).await;
        assert_eq!(activity.time_left(), LIMIT);
        activity.unsubscribed("b");
        assert_eq!(activity.time_left(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn somebody_waits_as_long_as_the_server_is_used() {
        let activity = ServerActivity::new(LIMIT);
        drop(activity.begin(watch));
        advance(LIMIT).await;
        // It is used while it ends.
        drop(activity.begin(never));
        assert!(!activity.stop_watching());
        drop(activity.begin(never));
        advance(LIMIT).await;
        assert!(activity.stop_watching());
        let mut is_watched = false;
        drop(activity.begin(|| {
            is_watched = true;
            watch()
        }));
        assert!(is_watched);
    }

    #[tokio::test]
    async fn nobody_waits_for_a_server_that_is_unloaded() {
        let activity = ServerActivity::new(LIMIT);
        let watcher = tokio::spawn(pending::<()>());
        drop(activity.begin(|| watcher.abort_handle()));
        drop(activity);
        assert!(watcher.await.unwrap_err().is_cancelled());
    }
}
