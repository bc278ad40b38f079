//! The time of a test, which passes at once when nothing else can go on.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::run::{current, is_in_scope};

/// What waits for some time, and how much has passed.
#[derive(Default)]
pub(super) struct Timers {
    now: Cell<Duration>,
    waiting: RefCell<Vec<Timer>>,
}

struct Timer {
    end: Duration,
    /// Gone once nothing waits for it any more.
    sleep: Weak<()>,
    waker: Waker,
}

impl Timers {
    pub(super) fn now(&self) -> Duration {
        self.now.get()
    }

    fn add(&self, end: Duration, sleep: &Arc<()>, waker: &Waker) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|timer| !timer.sleep.ptr_eq(&Arc::downgrade(sleep)));
        waiting.push(Timer { end, sleep: Arc::downgrade(sleep), waker: waker.clone() });
    }

    /// Lets the time pass until the next timer ends, and wakes what waits for it.
    pub(super) fn advance(&self) {
        let mut waiting = self.waiting.take();
        waiting.retain(|timer| timer.sleep.strong_count() > 0);
        if let Some(next) = waiting.iter().map(|timer| timer.end).min() {
            self.now.set(next);
        }
        let now = self.now.get();
        let (over, rest) = waiting.into_iter().partition(|timer| timer.end <= now);
        self.waiting.replace(rest);
        let over: Vec<Timer> = over;
        over.into_iter().for_each(|timer| timer.waker.wake());
    }
}

/// Waits for some of a test's time.
pub(crate) struct Sleep {
    time: Duration,
    end: Option<Duration>,
    identity: Arc<()>,
}

impl Sleep {
    pub(crate) fn new(time: Duration) -> Self {
        Self { time, end: None, identity: Arc::default() }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let host = current();
        let timers = host.timers();
        let end = self.end.unwrap_or_else(|| timers.now().saturating_add(self.time));
        self.end = Some(end);
        // Where no host runs the test, nobody lets the time pass.
        if timers.now() >= end || !is_in_scope() {
            return Poll::Ready(());
        }
        timers.add(end, &self.identity, task.waker());
        Poll::Pending
    }
}

/// A waker that notes whether it was called.
pub(super) struct NotingWaker {
    waker: Waker,
    was_called: AtomicBool,
}

impl NotingWaker {
    pub(super) fn new(waker: &Waker) -> Arc<Self> {
        Arc::new(Self { waker: waker.clone(), was_called: AtomicBool::new(false) })
    }

    pub(super) fn wakes(&self, waker: &Waker) -> bool {
        self.waker.will_wake(waker)
    }

    /// Whether it was called since this was asked before.
    pub(super) fn take(&self) -> bool {
        self.was_called.swap(false, Ordering::AcqRel)
    }
}

impl Wake for NotingWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.was_called.store(true, Ordering::Release);
        self.waker.wake_by_ref();
    }
}
