//! What a function is told about the call it serves.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::bindings::base::tenon::plugin::types::CallContext;
use crate::imports::notify;
use crate::{Error, Failure};

/// The call at hand. A parameter of type `&Context` receives it.
///
/// # When nobody waits any more
///
/// A host asks a [shared instance](mod@crate::state) to end a call whose caller gave up or whose
/// time is over. A tool is then dropped where it waits, as futures are, and the instance goes on
/// with its other calls. A tool that has something to finish, or that computes without ever waiting,
/// asks for itself with [`Self::is_cancelled`] or [`Self::cancelled`]; from then on it is not
/// dropped and has to end soon: a host discards an instance in which a call goes on.
#[derive(Clone)]
pub struct Context(Arc<ContextState>);

struct ContextState {
    context: CallContext,
    cancellation: Mutex<CancellationState>,
}

#[derive(Default)]
struct CancellationState {
    /// The host asked for the call to end.
    asked: bool,
    /// The function looks after its end itself.
    heeded: bool,
    waiting: Vec<Waker>,
}

thread_local! {
    /// The calls that are being served, and some that were.
    static CALLS: RefCell<Vec<Weak<ContextState>>> = const { RefCell::new(Vec::new()) };
}

/// Asks for the call with this id to end. One that there is not has ended meanwhile.
#[doc(hidden)]
pub fn cancel(call_id: &str) {
    let call = CALLS.with_borrow(|calls| {
        calls.iter().filter_map(Weak::upgrade).find(|call| call.context.call_id == call_id)
    });
    if let Some(call) = call {
        Context(call).cancel();
    }
}

impl Context {
    /// Names this call among all calls of the host.
    pub fn call_id(&self) -> &str {
        &self.0.context.call_id
    }

    /// The agent on whose behalf the call is made.
    pub fn agent_id(&self) -> Option<&str> {
        self.0.context.agent_id.as_deref()
    }

    /// The conversation or session that the call belongs to.
    pub fn session_id(&self) -> Option<&str> {
        self.0.context.session_id.as_deref()
    }

    /// The W3C Trace Context `traceparent` to pass on.
    pub fn traceparent(&self) -> Option<&str> {
        self.0.context.traceparent.as_deref()
    }

    /// How much time was left when the call was handed over.
    pub fn time_left(&self) -> Option<Duration> {
        self.0.context.time_left.map(Duration::from_millis)
    }

    /// Tells whoever waits how far the call has come.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        notify::progress(self.call_id(), progress, total, message);
    }

    /// Whether the host asked for the call to end. Who asks must see to it that it does.
    pub fn is_cancelled(&self) -> bool {
        let mut cancellation = self.cancellation();
        cancellation.heeded = true;
        cancellation.asked
    }

    /// Waits until the host asks for the call to end. Who waits must see to it that it does.
    pub fn cancelled(&self) -> impl Future<Output = ()> + use<> {
        self.cancellation().heeded = true;
        let context = self.clone();
        poll_fn(move |task| {
            let mut cancellation = context.cancellation();
            if cancellation.asked {
                return Poll::Ready(());
            }
            cancellation.wake_later(task.waker());
            Poll::Pending
        })
    }

    /// Awaits what serves the call; gives it up, with nothing, once the host asked for that and
    /// the function does not see to it itself.
    pub(crate) async fn until_cancelled<F: Future>(&self, served: F) -> Option<F::Output> {
        let mut served = pin!(served);
        poll_fn(|task| {
            if let Poll::Ready(output) = served.as_mut().poll(task) {
                return Poll::Ready(Some(output));
            }
            let mut cancellation = self.cancellation();
            if cancellation.asked && !cancellation.heeded {
                return Poll::Ready(None);
            }
            cancellation.wake_later(task.waker());
            Poll::Pending
        })
        .await
    }

    /// Awaits what serves the call, and says what the caller gets of it.
    pub(crate) async fn serve<T>(
        &self,
        served: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Error> {
        match self.until_cancelled(served).await {
            Some(outcome) => outcome.map_err(Failure::into_error),
            None => Err(Error::cancelled("the caller gave up")),
        }
    }

    /// Asks for the call to end.
    pub(crate) fn cancel(&self) {
        let waiting = {
            let mut cancellation = self.cancellation();
            cancellation.asked = true;
            std::mem::take(&mut cancellation.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    fn cancellation(&self) -> MutexGuard<'_, CancellationState> {
        self.0.cancellation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CancellationState {
    fn wake_later(&mut self, waker: &Waker) {
        if !self.asked && !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }
}

impl From<CallContext> for Context {
    fn from(context: CallContext) -> Self {
        let call = Arc::new(ContextState { context, cancellation: Mutex::default() });
        CALLS.with_borrow_mut(|calls| {
            calls.retain(|call| call.strong_count() > 0);
            calls.push(Arc::downgrade(&call));
        });
        Self(call)
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.0.context == other.0.context
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Context").field(&self.0.context).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Host;
    use std::future::pending;

    #[test]
    fn a_call_that_waits_is_dropped_when_it_is_cancelled() {
        let host = Host::new();
        let context = host.context();
        let cancelling = async { cancel(context.call_id()) };
        let served = context.until_cancelled(pending::<()>());
        let (outcome, ()) = host.run(async { futures::join!(served, cancelling) });
        assert_eq!(outcome, None);
    }

    #[test]
    fn a_call_that_has_ended_is_forgotten() {
        let before = Host::new().context();
        cancel("nobody");
        drop(before);
        let _after = Host::new().context();
        assert_eq!(CALLS.with_borrow(Vec::len), 1);
    }
}
