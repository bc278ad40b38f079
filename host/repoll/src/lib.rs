//! A future that is polled again at once where it wakes itself, for tasks that often do.
//!
//! A task that is woken while it runs goes to the end of its worker's queue, and tokio wakes another worker for what is in
//! that queue. That takes longer than most calls of a plugin. The task of an instance is woken like that by what wasmtime
//! has left to do, and that of a connection by each body that it reads.
//!
//! A task that another thread has work for is woken as well, and so is that thread in the end. A thread that would only
//! wait polls a [`HelpedTask`] itself instead.

mod helped;

pub use helped::{HelpedTask, while_helping};

use futures::task::AtomicWaker;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// How often a future is polled in one turn of its task; then others have theirs.
const MOST_POLLS: usize = 16;

/// It is not being polled: to wake it is to wake its task.
const RESTS: u8 = 0;

/// It is being polled.
const IS_POLLED: u8 = 1;

/// It is being polled, and was woken since that began.
const IS_WOKEN: u8 = 2;

/// Wakes the task of a future, unless that is being polled.
struct RepollWaker {
    state: AtomicU8,
    task: AtomicWaker,
}

impl RepollWaker {
    fn new() -> Arc<Self> {
        Arc::new(Self { state: AtomicU8::new(RESTS), task: AtomicWaker::new() })
    }

    fn change(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }

    /// From here on it is for the caller to poll.
    fn begin(&self) {
        self.state.store(IS_POLLED, Ordering::Release);
    }

    /// Polls until nothing is left to do, or as often as one turn has it. Says in that case that there is more.
    fn poll<T>(
        &self,
        mut poll: impl FnMut() -> Poll<T>,
        go_on: impl Fn() -> bool,
    ) -> (Poll<T>, bool) {
        for _ in 0..MOST_POLLS {
            self.begin();
            let polled = poll();
            if self.change(IS_POLLED, RESTS).is_ok() || polled.is_ready() {
                return (polled, false);
            }
            if !go_on() {
                break;
            }
        }
        self.state.store(RESTS, Ordering::Release);
        (Poll::Pending, true)
    }
}

impl Wake for RepollWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.change(IS_POLLED, IS_WOKEN) == Err(RESTS) {
            self.task.wake();
        }
    }
}

/// A future that is polled again at once where it wakes itself.
pub struct Repolled<F> {
    future: Pin<Box<F>>,
    alarm: Arc<RepollWaker>,
    waker: Waker,
}

impl<F> fmt::Debug for Repolled<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repolled").finish_non_exhaustive()
    }
}

impl<F: Future> Repolled<F> {
    /// The future, to be spawned or awaited in place of what is given.
    pub fn new(future: F) -> Self {
        let alarm = RepollWaker::new();
        Self { future: Box::pin(future), waker: alarm.clone().into(), alarm }
    }
}

impl<F: Future> Future for Repolled<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { future, alarm, waker } = self.get_mut();
        alarm.task.register(context.waker());
        let mut context_of_it = Context::from_waker(waker);
        let (polled, has_more) = alarm.poll(|| future.as_mut().poll(&mut context_of_it), || true);
        if has_more {
            context.waker().wake_by_ref();
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls a future once, as a task does. Gives what it is, and how often the task was woken.
    fn poll<F: Future>(future: Pin<&mut F>) -> (Poll<F::Output>, usize) {
        let task = Arc::<WakeCounter>::default();
        let polled = future.poll(&mut Context::from_waker(&task.clone().into()));
        (polled, task.0.load(Ordering::SeqCst))
    }

    /// A future that wakes itself so many times before it is ready. It gives how often it was polled.
    fn waking(times: usize) -> impl Future<Output = usize> + Unpin {
        let mut polls = 0;
        poll_fn(move |context| {
            polls += 1;
            if polls > times {
                return Poll::Ready(polls);
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    #[test]
    fn what_wakes_itself_is_polled_again_in_the_same_turn() {
        let mut future = Repolled::new(waking(3));
        assert_eq!(poll(Pin::new(&mut future)), (Poll::Ready(4), 0));
    }

    #[test]
    fn what_wakes_itself_for_ever_leaves_others_their_turn() {
        let mut future = Repolled::new(waking(MOST_POLLS + 1));
        assert_eq!(poll(Pin::new(&mut future)), (Poll::Pending, 1));
        assert_eq!(poll(Pin::new(&mut future)), (Poll::Ready(MOST_POLLS + 2), 0));
    }

    #[test]
    fn what_others_wake_wakes_its_task_once() {
        let mut kept = None;
        let mut future =
            Repolled::new(poll_fn(|context| match kept.replace(context.waker().clone()) {
                None => Poll::Pending,
                Some(_) => Poll::Ready(()),
            }));
        let task = Arc::<WakeCounter>::default();
        let waker = task.clone().into();
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut future).poll(&mut context).is_pending());
        let of_future = future.waker.clone();
        assert_eq!(task.0.load(Ordering::SeqCst), 0);
        of_future.wake_by_ref();
        of_future.wake();
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
        assert!(Pin::new(&mut future).poll(&mut context).is_ready());
    }
}
