//! Which host a thread's code turns to, and how a future is driven to its end there.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use super::Host;

thread_local! {
    /// Outside of any host, code meets one that grants nothing.
    static CURRENT: RefCell<Host> = RefCell::new(Host::new());

    /// How many scopes the code is in.
    static SCOPES: Cell<usize> = const { Cell::new(0) };
}

/// Whether the code of this thread runs within [`Host::scope`].
pub(super) fn is_in_scope() -> bool {
    SCOPES.get() > 0
}

/// The host that the code of this thread turns to.
pub(crate) fn current() -> Host {
    CURRENT.with_borrow(Host::clone)
}

/// Turns the code of this thread to a host until it is dropped.
pub(super) struct HostScope(Option<Host>);

impl HostScope {
    pub(super) fn new(host: &Host) -> Self {
        crate::log::install();
        SCOPES.set(SCOPES.get() + 1);
        Self(Some(CURRENT.replace(host.clone())))
    }
}

impl Drop for HostScope {
    fn drop(&mut self) {
        if let Some(former) = self.0.take() {
            SCOPES.set(SCOPES.get() - 1);
            CURRENT.replace(former);
        }
    }
}

struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Drives a future to its end.
///
/// # Panics
///
/// When it waits and nothing has kept what would wake it: it would wait for ever.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let unpark = Arc::new(Unpark { thread: thread::current(), woken: AtomicBool::new(false) });
    let waker = Waker::from(unpark.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !unpark.woken.swap(false, Ordering::Acquire) {
            // One is here, the other in `waker`. Who wakes does so before it lets go of its own.
            let forgotten = Arc::strong_count(&unpark) == 2;
            fence(Ordering::Acquire);
            if forgotten && !unpark.woken.load(Ordering::Acquire) {
                panic!("the function waits for ever: nothing is left that could wake it");
            }
            thread::park();
        }
    }
}
