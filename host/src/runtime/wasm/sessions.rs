//! The live instances of a plugin that has one for each session, so that what it keeps in memory never mixes between
//! users. Number and idle time are bounded; an instance ends with its session.

use futures::future::join_all;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenon_config::limits::Limits;
use tenon_types::Error;
use tokio::time::Instant;

use super::shared::SharedInstanceSlot;
use crate::call::Failure;

/// The instances of one plugin, by session.
pub(super) struct SessionInstances {
    max: usize,
    idle: Duration,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    by_id: HashMap<String, Arc<Session>>,
    /// Whether a task ends those that are idle for too long.
    is_swept: bool,
    /// The plugin was unloaded: no session begins any more.
    is_closed: bool,
}

/// One session's instance.
struct Session {
    instance: Arc<SharedInstanceSlot>,
    usage: Mutex<SessionUsage>,
}

struct SessionUsage {
    calls: usize,
    last: Instant,
}

/// The use of a session's instance by one call. The session does not end as idle meanwhile.
pub(super) struct SessionLease(Arc<Session>);

impl SessionLease {
    pub(super) fn instance(&self) -> &Arc<SharedInstanceSlot> {
        &self.0.instance
    }
}

impl Drop for SessionLease {
    fn drop(&mut self) {
        let mut usage = self.0.usage();
        usage.calls -= 1;
        usage.last = Instant::now();
    }
}

impl Session {
    fn usage(&self) -> MutexGuard<'_, SessionUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when nobody has used it; nothing while somebody does.
    fn idle_since(&self) -> Option<Instant> {
        let usage = self.usage();
        (usage.calls == 0 && !self.instance.is_in_use()).then_some(usage.last)
    }
}

impl SessionInstances {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        let (max, idle) = (limits.sessions, limits.session_idle);
        Arc::new(Self { max, idle, sessions: Mutex::default() })
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instance of a session, which is new where there was none. Where there are too many, the one that was not
    /// used for longest ends.
    ///
    /// # Errors
    ///
    /// Where all of them serve calls, and where the plugin was unloaded.
    pub(super) fn lease(self: &Arc<Self>, id: &str) -> Result<SessionLease, Failure> {
        let mut sessions = self.sessions();
        if sessions.is_closed {
            return Err(Failure::Lost("it was unloaded".into()));
        }
        if let Some(session) = sessions.by_id.get(id) {
            session.usage().calls += 1;
            return Ok(SessionLease(session.clone()));
        }
        if sessions.by_id.len() >= self.max {
            let idle = sessions.by_id.iter();
            let idle = idle.filter_map(|(id, session)| Some((session.idle_since()?, id)));
            let Some((_, longest)) = idle.min() else {
                let message = format!(
                    "each of its {} sessions has a call in flight; `sessions` under `limits` allows more",
                    self.max
                );
                return Err(Error::unavailable(message).into());
            };
            let longest = longest.clone();
            if let Some(session) = sessions.by_id.remove(&longest) {
                tokio::spawn(async move { session.instance.end().await });
            }
        }
        let usage = Mutex::new(SessionUsage { calls: 1, last: Instant::now() });
        let session = Arc::new(Session { instance: Arc::default(), usage });
        sessions.by_id.insert(id.to_string(), session.clone());
        if !sessions.is_swept {
            sessions.is_swept = true;
            self.sweep();
        }
        Ok(SessionLease(session))
    }

    /// Ends sessions that are idle for too long, in a task that ends when there are none.
    fn sweep(self: &Arc<Self>) {
        let (sessions, idle) = (Arc::downgrade(self), self.idle);
        tokio::spawn(async move {
            let mut pause = idle;
            loop {
                tokio::time::sleep(pause).await;
                let Some(sessions) = sessions.upgrade() else { return };
                let (ended, next) = sessions.take_idle();
                drop(sessions);
                for session in ended {
                    session.instance.end().await;
                }
                match next {
                    Some(next) => pause = next,
                    None => return,
                }
            }
        });
    }

    /// Takes out those that are idle for too long. Says how long it is until another one is, as far as is known.
    fn take_idle(&self) -> (Vec<Arc<Session>>, Option<Duration>) {
        let mut sessions = self.sessions();
        let mut next = self.idle;
        let ended = sessions.by_id.extract_if(|_, session| {
            let Some(since) = session.idle_since() else { return false };
            let left = self.idle.saturating_sub(since.elapsed());
            next = if left.is_zero() { next } else { next.min(left) };
            left.is_zero()
        });
        let ended = ended.map(|(_, session)| session).collect();
        sessions.is_swept = !sessions.by_id.is_empty();
        (ended, sessions.is_swept.then_some(next))
    }

    /// Ends a session. Its calls in flight are given up.
    pub(super) async fn end(&self, id: &str) {
        let session = self.sessions().by_id.remove(id);
        if let Some(session) = session {
            session.instance.end().await;
        }
    }

    /// Ends all sessions, for good.
    pub(super) async fn close(&self) {
        let ended: Vec<_> = {
            let mut sessions = self.sessions();
            sessions.is_closed = true;
            sessions.by_id.drain().collect()
        };
        join_all(ended.iter().map(|(_, session)| session.instance.end())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(60);

    fn sessions(max: usize) -> Arc<SessionInstances> {
        let limits = Limits { sessions: max, session_idle: IDLE, ..Limits::default() };
        SessionInstances::new(&limits)
    }

    /// The sessions that there are.
    fn known(sessions: &SessionInstances) -> Vec<String> {
        let mut known: Vec<_> = sessions.sessions().by_id.keys().cloned().collect();
        known.sort();
        known
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_nobody_has_used_it_for_long() {
        let sessions = sessions(10);
        drop(sessions.lease("a").unwrap());
        let used = sessions.lease("b").unwrap();
        tokio::time::sleep(IDLE / 2).await;
        drop(sessions.lease("c").unwrap());
        tokio::time::sleep(IDLE * 3 / 4).await;
        assert_eq!(known(&sessions), ["b", "c"]);
        tokio::time::sleep(IDLE).await;
        assert_eq!(known(&sessions), ["b"]);
        // Its time begins when its last call ends.
        drop(used);
        tokio::time::sleep(IDLE / 2).await;
        assert_eq!(known(&sessions), ["b"]);
        tokio::time::sleep(IDLE).await;
        assert!(known(&sessions).is_empty());
        // One that comes later is looked after as well.
        drop(sessions.lease("d").unwrap());
        tokio::time::sleep(IDLE * 2).await;
        assert!(known(&sessions).is_empty());
    }

    #[tokio::test]
    async fn there_are_no_more_sessions_than_that_and_none_after_the_end() {
        let sessions = sessions(2);
        drop(sessions.lease("a").unwrap());
        let (b, again) = (sessions.lease("b").unwrap(), sessions.lease("b").unwrap());
        assert!(Arc::ptr_eq(b.instance(), again.instance()));
        let c = sessions.lease("c").unwrap();
        assert_eq!(known(&sessions), ["b", "c"]);
        drop(again);
        assert!(sessions.lease("d").is_err());
        drop(c);
        assert!(sessions.lease("d").is_ok());
        sessions.end("b").await;
        assert_eq!(known(&sessions), ["d"]);
        sessions.close().await;
        assert!(sessions.lease("d").is_err());
    }
}
