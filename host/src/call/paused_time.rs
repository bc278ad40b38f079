//! The time of a call stands still while somebody is asked on its behalf: how long a user takes to fill in
//! a form, or a model to answer, is not its plugin's doing.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep};

use super::CurrentCall;

/// The calls for which another is made, whose time stands still while its own does. A host has none of its
/// own and leaves it empty.
#[derive(Debug, Clone, Default)]
pub struct OuterCalls(Option<Arc<CurrentCall>>);

impl PartialEq for OuterCalls {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for OuterCalls {}

impl OuterCalls {
    pub(crate) fn of(current_call: &Arc<CurrentCall>) -> Self {
        Self(Some(current_call.clone()))
    }

    /// The innermost of them.
    pub(crate) fn innermost(&self) -> Option<&Arc<CurrentCall>> {
        self.0.as_ref()
    }
}

/// For how long the time of a call has stood still.
#[derive(Debug, Default)]
pub(crate) struct PausedTime(Mutex<PauseState>);

#[derive(Debug, Default)]
struct PauseState {
    /// How often somebody is being asked, and since when.
    asking: u32,
    since: Option<Instant>,
    /// What that took before.
    stood: Duration,
}

impl PausedTime {
    fn change<R>(&self, change: impl FnOnce(&mut PauseState) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn begin(&self) {
        self.change(|state| {
            state.asking += 1;
            state.since.get_or_insert_with(Instant::now);
        });
    }

    fn end(&self) {
        self.change(|state| {
            state.asking -= 1;
            if state.asking == 0
                && let Some(since) = state.since.take()
            {
                state.stood += since.elapsed();
            }
        });
    }

    /// For how long it has stood still until now.
    fn stood(&self) -> Duration {
        self.change(|state| state.stood + state.since.map_or(Duration::ZERO, |at| at.elapsed()))
    }

    fn stands(&self) -> bool {
        self.change(|state| state.asking > 0)
    }
}

/// While there is one, the time of some calls stands still.
pub(crate) struct PauseGuard(Vec<Arc<CurrentCall>>);

impl PauseGuard {
    /// That of these calls, and of those for which they were made.
    pub(crate) fn of(calls: impl IntoIterator<Item = Arc<CurrentCall>>) -> Self {
        let mut still: Vec<Arc<CurrentCall>> = Vec::new();
        let mut left: Vec<Arc<CurrentCall>> = calls.into_iter().collect();
        while let Some(current_call) = left.pop() {
            if still.iter().any(|known| Arc::ptr_eq(known, &current_call)) {
                continue;
            }
            left.extend(current_call.caller().outer.innermost().cloned());
            current_call.paused_time().begin();
            still.push(current_call);
        }
        Self(still)
    }
}

impl Drop for PauseGuard {
    fn drop(&mut self) {
        self.0.iter().for_each(|current_call| current_call.paused_time().end());
    }
}

/// How often it is looked at least whether somebody is still being asked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

impl CurrentCall {
    /// For how long the time of the call has stood still until now.
    pub(crate) fn stood(&self) -> Duration {
        self.paused_time().stood()
    }

    /// What comes of something in this time, which begins now; nothing where it takes longer. Time in
    /// which it stands still does not count.
    pub(crate) async fn in_time<T>(
        &self,
        time: Duration,
        answer: impl Future<Output = T>,
    ) -> Option<T> {
        let (began, before) = (Instant::now(), self.stood());
        let mut answer = pin!(answer);
        let mut sleep = pin!(sleep(time));
        poll_fn(|context| {
            loop {
                if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                    return Poll::Ready(Some(answer));
                }
                if sleep.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                let paused_time = self.paused_time();
                let stood = paused_time.stood().saturating_sub(before);
                let left = (time + stood).saturating_sub(began.elapsed());
                match paused_time.stands() {
                    true => sleep.as_mut().reset(Instant::now() + left.max(CHECK_INTERVAL)),
                    false if left.is_zero() => return Poll::Ready(None),
                    false => sleep.as_mut().reset(Instant::now() + left),
                }
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Caller;
    use std::future::pending;
    use tokio::time::{advance, timeout};

    const SECOND: Duration = Duration::from_secs(1);

    fn made_for(outer: &Arc<CurrentCall>) -> Arc<CurrentCall> {
        CurrentCall::new(Caller { outer: OuterCalls::of(outer), ..Caller::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_somebody_is_asked_does_not_count() {
        let outer = CurrentCall::new(Caller::default());
        let inner = made_for(&outer);
        for current_call in [&outer, &inner] {
            let began = Instant::now();
            let asking = async {
                sleep(SECOND / 2).await;
                let twice = [(); 2].map(|()| PauseGuard::of([inner.clone(), made_for(&inner)]));
                sleep(60 * SECOND).await;
                drop(twice);
                pending::<()>().await;
            };
            assert_eq!(current_call.in_time(SECOND, asking).await, None);
            let took = began.elapsed();
            assert!(took >= 61 * SECOND && took < 61 * SECOND + CHECK_INTERVAL, "{took:?}");
        }
        // Who made neither is not concerned.
        let other = CurrentCall::new(Caller::default());
        let _still = PauseGuard::of([inner]);
        assert_eq!(other.in_time(SECOND, pending::<()>()).await, None);
        assert_eq!(other.stood(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_over_while_somebody_is_asked() {
        let current_call = CurrentCall::new(Caller::default());
        let _still = PauseGuard::of([current_call.clone()]);
        advance(SECOND).await;
        assert!(
            timeout(3600 * SECOND, current_call.in_time(SECOND, pending::<()>())).await.is_err()
        );
        assert_eq!(current_call.in_time(SECOND, async { 1 }).await, Some(1));
    }
}
