//! A task whose future is polled by waiting threads as well.

use futures::future::BoxFuture;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

use crate::RepollWaker;

/// How long a thread helps in one go, but for the poll that it is in. What it waits for may be done before.
const MAX_HELP: Duration = Duration::from_micros(200);

thread_local! {
    static IS_HELPING: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether this thread helps, until it is dropped.
struct HelpingGuard {
    before: bool,
}

impl HelpingGuard {
    fn set(helps: bool) -> Self {
        Self { before: IS_HELPING.replace(helps) }
    }
}

impl Drop for HelpingGuard {
    fn drop(&mut self) {
        IS_HELPING.set(self.before);
    }
}

/// Does something on this thread, which helps meanwhile with the tasks that it hands work to.
pub fn while_helping<R>(what: impl FnOnce() -> R) -> R {
    let _helping = HelpingGuard::set(true);
    what()
}

/// A spawned task, as those see it who have work for it.
pub struct HelpedTask {
    /// Nothing, once it is over.
    future: Mutex<Option<BoxFuture<'static, ()>>>,
    /// The runtime has dropped the task.
    is_dropped: AtomicBool,
    alarm: Arc<RepollWaker>,
    waker: Waker,
    runtime: Handle,
}

impl fmt::Debug for HelpedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HelpedTask").finish_non_exhaustive()
    }
}

impl HelpedTask {
    /// Spawns a task on the runtime that this is called in. Where its future wakes itself, it is polled again at once, as a
    /// [`Repolled`](crate::Repolled) is.
    ///
    /// # Panics
    ///
    /// Where this is called outside of a runtime.
    pub fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let alarm = RepollWaker::new();
        let task = Arc::new(Self {
            future: Mutex::new(Some(Box::pin(future))),
            is_dropped: AtomicBool::new(false),
            waker: alarm.clone().into(),
            alarm,
            runtime: Handle::current(),
        });
        task.runtime.spawn(TaskFuture(task.clone()));
        task
    }

    /// Hands work over: `work` wakes the future. A thread that helps has it done as far as it can be done now, and leaves the
    /// rest to the task; any other leaves all of it.
    pub fn hand_over(&self, work: impl FnOnce()) {
        // What it polls here helps no other: an event loop of wasmtime must not run within another one.
        let helping = HelpingGuard::set(false);
        match helping.before.then(|| self.lock()).flatten() {
            Some(future) => self.help(future, work),
            // Where it is being polled, that goes on until this is seen.
            None => work(),
        }
    }

    fn help(&self, future: MutexGuard<'_, Option<BoxFuture<'static, ()>>>, work: impl FnOnce()) {
        let _entered = self.runtime.enter();
        self.alarm.begin();
        work();
        let until = Instant::now() + MAX_HELP;
        let poll = |future: &mut BoxFuture<'static, ()>, context: &mut Context<'_>| {
            let poll = AssertUnwindSafe(|| future.as_mut().poll(context));
            // What has panicked is over, as it is where its task panics.
            catch_unwind(poll).unwrap_or(Poll::Ready(()))
        };
        let (polled, has_more) = self.poll_with(future, poll, || Instant::now() < until);
        if polled.is_ready() || has_more {
            self.alarm.task.wake();
        }
        if self.is_dropped.load(Ordering::SeqCst) {
            self.forget();
        }
    }

    /// Polls the future, and drops it once it is over. Says whether there is more to do at once.
    fn poll_with(
        &self,
        mut future: MutexGuard<'_, Option<BoxFuture<'static, ()>>>,
        poll: impl Fn(&mut BoxFuture<'static, ()>, &mut Context<'_>) -> Poll<()>,
        go_on: impl Fn() -> bool,
    ) -> (Poll<()>, bool) {
        let mut context = Context::from_waker(&self.waker);
        let once = || future.as_mut().map_or(Poll::Ready(()), |future| poll(future, &mut context));
        let (polled, has_more) = self.alarm.poll(once, go_on);
        let over = if polled.is_ready() { future.take() } else { None };
        // Nobody finds it locked while it is dropped.
        drop(future);
        drop(over);
        (polled, has_more)
    }

    /// The future, unless somebody polls it.
    fn lock(&self) -> Option<MutexGuard<'_, Option<BoxFuture<'static, ()>>>> {
        match self.future.try_lock() {
            Ok(future) => Some(future),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Drops the future, unless somebody polls it: they do then.
    fn forget(&self) {
        let future = self.lock().and_then(|mut future| future.take());
        drop(future);
    }
}

/// The task itself.
struct TaskFuture(Arc<HelpedTask>);

impl Future for TaskFuture {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let HelpedTask { alarm, .. } = &*self.0;
        alarm.task.register(context.waker());
        let Some(future) = self.0.lock() else {
            // Who helps polls once more, or has this woken.
            alarm.wake_by_ref();
            return Poll::Pending;
        };
        let poll = |future: &mut BoxFuture<'static, ()>, context: &mut Context<'_>| {
            future.as_mut().poll(context)
        };
        let (polled, has_more) = self.0.poll_with(future, poll, || true);
        if has_more {
            context.waker().wake_by_ref();
        }
        polled
    }
}

impl Drop for TaskFuture {
    fn drop(&mut self) {
        self.0.is_dropped.store(true, Ordering::SeqCst);
        self.0.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, poll_fn};
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;
    use std::thread;
    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    type Job = Box<dyn FnOnce() + Send>;

    /// A runtime whose task does nothing before somebody drives it.
    fn resting() -> Runtime {
        Builder::new_current_thread().build().unwrap()
    }

    /// A task that does jobs.
    fn task_of_jobs(runtime: &Runtime) -> (Arc<HelpedTask>, UnboundedSender<Job>) {
        let _entered = runtime.enter();
        let (jobs, mut inbox) = unbounded_channel::<Job>();
        let task = HelpedTask::spawn(async move {
            while let Some(job) = inbox.recv().await {
                job();
            }
        });
        (task, jobs)
    }

    #[test]
    fn a_thread_that_helps_does_its_work_itself() {
        let runtime = resting();
        let (task, jobs) = task_of_jobs(&runtime);
        let (done, on) = mpsc::channel();
        let job = |done: mpsc::Sender<_>| -> Job {
            Box::new(move || done.send(thread::current().id()).unwrap())
        };
        // Nobody polls the task, so that what is handed over without help waits.
        task.hand_over(|| assert!(jobs.send(job(done.clone())).is_ok()));
        assert!(on.try_recv().is_err());
        while_helping(|| task.hand_over(|| assert!(jobs.send(job(done.clone())).is_ok())));
        assert_eq!(
            (on.recv(), on.recv()),
            (Ok(thread::current().id()), Ok(thread::current().id()))
        );
        // Nor does it help any more.
        task.hand_over(|| assert!(jobs.send(job(done.clone())).is_ok()));
        assert!(on.try_recv().is_err());
        runtime.block_on(tokio::task::yield_now());
        assert!(on.recv().is_ok());
    }

    #[test]
    fn what_it_polls_helps_no_other() {
        let runtime = resting();
        let (task, jobs) = task_of_jobs(&runtime);
        let (inner, inner_jobs) = task_of_jobs(&runtime);
        let (done, is_done) = mpsc::channel();
        let job: Job = Box::new(move || {
            let job: Job = Box::new(move || done.send(()).unwrap());
            inner.hand_over(|| assert!(inner_jobs.send(job).is_ok()));
        });
        while_helping(|| task.hand_over(|| assert!(jobs.send(job).is_ok())));
        assert!(is_done.try_recv().is_err());
        runtime.block_on(tokio::task::yield_now());
        assert!(is_done.recv().is_ok());
    }

    #[test]
    fn what_never_rests_is_left_to_the_task() {
        let runtime = resting();
        let polls = Arc::<AtomicUsize>::default();
        let counted = polls.clone();
        let task = {
            let _entered = runtime.enter();
            HelpedTask::spawn(poll_fn(move |context| {
                counted.fetch_add(1, Ordering::SeqCst);
                context.waker().wake_by_ref();
                Poll::Pending
            }))
        };
        while_helping(|| task.hand_over(|| ()));
        let before = polls.load(Ordering::SeqCst);
        assert!((1..=crate::MOST_POLLS).contains(&before), "{before}");
        runtime.block_on(tokio::task::yield_now());
        assert!(polls.load(Ordering::SeqCst) > before);
    }

    #[test]
    fn what_panics_is_over() {
        let runtime = resting();
        let (task, jobs) = task_of_jobs(&runtime);
        let job: Job = Box::new(|| panic!("on purpose"));
        while_helping(|| task.hand_over(|| assert!(jobs.send(job).is_ok())));
        assert!(jobs.is_closed());
        while_helping(|| task.hand_over(|| ()));
        runtime.block_on(tokio::task::yield_now());
        assert!(task.is_dropped.load(Ordering::SeqCst), "the task has not ended");
    }

    #[test]
    fn what_its_runtime_drops_is_dropped() {
        /// Says when it is dropped.
        struct DropSignal(mpsc::Sender<()>);
        impl Drop for DropSignal {
            fn drop(&mut self) {
                self.0.send(()).unwrap();
            }
        }
        for helps in [false, true] {
            let runtime = resting();
            let (dropped, is_dropped) = mpsc::channel();
            let (go_on, waits) = mpsc::channel::<()>();
            let (began, has_begun) = mpsc::channel();
            let guard = DropSignal(dropped);
            let task = {
                let _entered = runtime.enter();
                HelpedTask::spawn(async move {
                    let _guard = guard;
                    began.send(()).unwrap();
                    // It is being polled for that long.
                    let _ = waits.recv();
                    pending::<()>().await;
                })
            };
            let helper = helps.then(|| {
                let task = task.clone();
                let helper = thread::spawn(move || while_helping(|| task.hand_over(|| ())));
                has_begun.recv().unwrap();
                helper
            });
            drop(runtime);
            assert_eq!(is_dropped.try_recv().is_ok(), !helps);
            drop(go_on);
            if let Some(helper) = helper {
                helper.join().unwrap();
                assert!(is_dropped.recv().is_ok());
            }
        }
    }

    #[test]
    fn all_work_of_many_threads_is_done() {
        const THREADS: usize = 4;
        const JOBS: usize = 2_000;
        let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let (task, jobs) = task_of_jobs(&runtime);
        thread::scope(|scope| {
            for number in 0..THREADS {
                let (task, jobs) = (&task, &jobs);
                scope.spawn(move || {
                    let hand_over = || {
                        let (done, is_done) = mpsc::channel();
                        let job: Job = Box::new(move || done.send(()).unwrap());
                        task.hand_over(|| assert!(jobs.send(job).is_ok()));
                        is_done.recv().unwrap();
                    };
                    for _ in 0..JOBS {
                        match number % 2 {
                            0 => hand_over(),
                            _ => while_helping(hand_over),
                        }
                    }
                });
            }
        });
    }
}
