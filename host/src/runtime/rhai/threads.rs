//! The threads that scripts run on.
//!
//! They are the host's own, and not those of the async runtime, for their stacks: dropping and
//! copying a nested value recurses, and a script can nest values as deep as the engine's limits
//! let it. The stack is address space; what no script reaches costs nothing.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::call::Failure;

/// The stack of a thread, in bytes: enough for the deepest value (see [`super::engine`]) in a build
/// without optimization.
pub(super) const STACK_BYTES: usize = 256 << 20;

/// How many scripts run at a time; more wait.
const MAX_THREADS: usize = 64;

/// How many threads are kept for the next call.
const MAX_IDLE_THREADS: usize = 4;

/// How long a thread looks for its next work before it sleeps: to sleep and to be woken takes about as long.
const AWAKE: Duration = Duration::from_micros(50);

/// What a thread does. It gives its answer back, which is sent when the thread is free for the next work: who gets it may
/// have some at once.
type Work = Box<dyn FnOnce() -> SendAnswer + Send>;

type SendAnswer = Box<dyn FnOnce()>;

/// Threads that scripts run on. They end with the last handle, and when there are more than are
/// worth keeping.
pub(crate) struct Threads {
    idle: Mutex<Vec<mpsc::Sender<Work>>>,
    places: Arc<Semaphore>,
}

impl Threads {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { idle: Mutex::default(), places: Arc::new(Semaphore::new(MAX_THREADS)) })
    }

    /// Runs something and waits for it without blocking.
    pub(super) async fn run<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Failure> {
        let place = self.places.clone().acquire_owned().await;
        let place = place.map_err(|error| Failure::Host(error.to_string()))?;
        let (reply, result) = oneshot::channel();
        self.begin(Box::new(move || {
            PLACE.set(Some(place));
            let _leave = ThreadGuard;
            let result = work();
            // Who gave up wants no result.
            Box::new(move || drop(reply.send(result)))
        }))?;
        result.await.map_err(|_| broken())
    }

    /// Runs something and blocks until it is done.
    pub(super) fn run_blocking<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Failure> {
        let (reply, result) = mpsc::sync_channel(1);
        self.begin(Box::new(move || {
            let result = work();
            Box::new(move || drop(reply.send(result)))
        }))?;
        result.recv().map_err(|_| broken())
    }

    fn begin(self: &Arc<Self>, mut work: Work) -> Result<(), Failure> {
        // Waking a thread takes longer than looking for one, so the list is not kept locked for it.
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(thread) = idle() {
            match thread.send(work) {
                Ok(()) => return Ok(()),
                Err(mpsc::SendError(returned)) => work = returned,
            }
        }
        let threads = Arc::downgrade(self);
        thread::Builder::new()
            .name("tenon-script".into())
            .stack_size(STACK_BYTES)
            .spawn(move || serve(work, &threads))
            .map_err(|error| Failure::Host(format!("no thread for a script: {error}")))?;
        Ok(())
    }
}

thread_local! {
    /// The place of the script that runs on this thread.
    static PLACE: Cell<Option<OwnedSemaphorePermit>> = const { Cell::new(None) };
}

/// Lets another script run while this one waits for the host. Gives the places, to wait for one
/// again.
pub(super) fn place() -> Option<Arc<Semaphore>> {
    PLACE.take().map(|place| place.semaphore().clone())
}

/// Takes a place again.
pub(super) fn take_place(place: Option<OwnedSemaphorePermit>) {
    PLACE.set(place);
}

/// Waits on this thread until there is a place.
pub(super) fn wait_for_place(
    places: &Arc<Semaphore>,
    runtime: &Handle,
) -> Option<OwnedSemaphorePermit> {
    match places.clone().try_acquire_owned() {
        Ok(place) => Some(place),
        Err(_) => runtime.block_on(places.clone().acquire_owned()).ok(),
    }
}

/// Places for the threads of one run: as many of them compute at a time as there are processors. More
/// would take turns, and the time of each would go on meanwhile.
pub(super) fn processors() -> Arc<Semaphore> {
    static COUNT: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));
    Arc::new(Semaphore::new(*COUNT))
}

/// Runs something on this thread once there is a place for it.
pub(super) fn within_place<R>(
    places: &Arc<Semaphore>,
    runtime: &Handle,
    work: impl FnOnce() -> R,
) -> R {
    take_place(wait_for_place(places, runtime));
    let _leave = ThreadGuard;
    work()
}

/// Leaves the place in the end, come what may.
struct ThreadGuard;

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        PLACE.take();
    }
}

fn broken() -> Failure {
    Failure::Host("the script's thread broke off".into())
}

/// Puts a thread into the list of idle ones, where there is room. Gives what comes for it.
fn wait_in(threads: &Weak<Threads>) -> Option<mpsc::Receiver<Work>> {
    let threads = threads.upgrade()?;
    let mut idle = threads.idle.lock().unwrap_or_else(PoisonError::into_inner);
    (idle.len() < MAX_IDLE_THREADS).then(|| {
        let (sender, inbox) = mpsc::channel();
        idle.push(sender);
        inbox
    })
}

/// The life of a thread.
fn serve(first: Work, threads: &Weak<Threads>) {
    let mut work = first;
    loop {
        let answer = work();
        let inbox = wait_in(threads);
        answer();
        let Some(inbox) = inbox else { return };
        match next(&inbox) {
            Ok(next) => work = next,
            Err(mpsc::RecvError) => return,
        }
    }
}

/// Waits for the next work. Others who have something to do meanwhile come first.
fn next(inbox: &mpsc::Receiver<Work>) -> Result<Work, mpsc::RecvError> {
    let until = Instant::now() + AWAKE;
    while Instant::now() < until {
        match inbox.try_recv() {
            Ok(work) => return Ok(work),
            Err(mpsc::TryRecvError::Disconnected) => return Err(mpsc::RecvError),
            Err(mpsc::TryRecvError::Empty) => thread::yield_now(),
        }
    }
    inbox.recv()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[tokio::test]
    async fn work_that_follows_other_work_has_its_thread() {
        let threads = Threads::new();
        let mut used = HashSet::new();
        for _ in 0..200 {
            used.insert(threads.run(|| thread::current().id()).await.expect("there is a thread"));
            let blocking = threads.run_blocking(|| thread::current().id());
            used.insert(blocking.expect("there is a thread"));
        }
        assert_eq!(used.len(), 1);
    }
}
