//! The shared instance of a plugin: one task owns the store and drives its event loop, and callers
//! send it their work. Callers on threads that only wait for the answer drive the loop themselves for a while.
//!
//! wasmtime cannot cancel one call of a store. When a caller gives up, the guest is asked to end
//! the call; if it does not within [`CANCEL_GRACE`], the instance is *retired*: it takes no more calls,
//! finishes those whose callers still wait, and is then dropped. A trap ends every call of the
//! instance, which is what sharing one means; other plugins have other stores. wasmtime does not say
//! which of several calls trapped or reached a limit, so that none is blamed but one that ran alone:
//! the others learn that they were lost, and the log has the reason.

use arc_swap::ArcSwapOption;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tenon_repoll::HelpedTask;
use tokio::sync::{Notify, SetOnce, mpsc, oneshot};
use wasmtime::component::Accessor;

use super::instance::{WasmInstance, failure};
use super::{CallJob, GuestHandle, Job, attributed};
use crate::call::Failure;
use crate::capability::HostState;
use crate::capability::host_state::{InstanceUsage, ResourceUsageRecorder};

/// How long a call may go on after its caller gave up, before it costs the instance its place.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// A flag beside the number of callers that wait: there were none, so the instance ends.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// The place of a plugin's shared instance. Each call reads it without a lock.
#[derive(Default)]
pub(super) struct SharedInstanceSlot {
    handle: ArcSwapOption<InstanceHandle>,
    starting: Mutex<StartState>,
}

#[derive(Default)]
enum StartState {
    #[default]
    No,
    /// Callers wait for it together. It goes on when they give up. The instance before it may have to end first.
    Now(Start, Option<End>),
    /// One that nobody used ends. The next is started once it has.
    After(End),
    /// The plugin was unloaded: no instance is started any more.
    Never,
}

type Start = futures::future::Shared<BoxFuture<'static, Result<Arc<InstanceHandle>, Failure>>>;
type End = futures::future::Shared<BoxFuture<'static, ()>>;

/// A live instance, as its callers see it.
pub(super) struct InstanceHandle {
    work: mpsc::UnboundedSender<QueuedJob>,
    task: Arc<HelpedTask>,
    state: Arc<InstanceState>,
    usage_counter: Arc<InstanceUsage>,
}

/// What callers and the owning task tell each other of the instance, and of its end.
struct InstanceState {
    /// How jobs reach it, once it is being driven.
    guest: OnceLock<Arc<GuestHandle>>,
    /// Why it has ended.
    ended: SetOnce<Failure>,
    /// Why it is going to: callers wait no longer.
    ending: SetOnce<Failure>,
    /// Takes no more calls.
    retired: AtomicBool,
    /// Callers that still wait; with [`CLOSED`], no further one does.
    waiting: AtomicUsize,
    /// Jobs that the guest works on. When it breaks off, they stay counted.
    running: AtomicUsize,
    /// Asks the owning task to drop the store, whatever it is doing.
    kill: Notify,
}

/// A job together with the way its answer goes. It fails when the instance is done for.
type QueuedJob = BoxFuture<'static, wasmtime::Result<()>>;

impl SharedInstanceSlot {
    /// A place at the instance, where there is one that takes calls.
    pub(super) fn current(&self) -> Option<InstanceLease> {
        self.handle.load_full().and_then(InstanceLease::at)
    }

    /// The same, at an instance that `start` makes where there is none.
    pub(super) async fn lease<F>(
        self: &Arc<Self>,
        start: impl Fn() -> F,
    ) -> Result<InstanceLease, Failure>
    where
        F: Future<Output = Result<Arc<InstanceHandle>, Failure>> + Send + 'static,
    {
        loop {
            let handle = match self.begin(&start)? {
                Ok(lease) => return Ok(lease),
                Err(started) => started.await?,
            };
            match InstanceLease::at(handle.clone()) {
                Some(lease) => return Ok(lease),
                // It was not used for so long that it ended, since it was started.
                None if handle.state.is_closed() => {}
                None => return Err(handle.state.reason(false)),
            }
        }
    }

    /// A place, where there is one by now, or the start that callers wait for.
    fn begin<F>(
        self: &Arc<Self>,
        start: impl FnOnce() -> F,
    ) -> Result<Result<InstanceLease, Start>, Failure>
    where
        F: Future<Output = Result<Arc<InstanceHandle>, Failure>> + Send + 'static,
    {
        let mut starting = self.starting();
        let earlier = match &*starting {
            StartState::Never => return Err(unloaded()),
            StartState::Now(started, _) => return Ok(Err(started.clone())),
            StartState::After(ended) => Some(ended.clone()),
            StartState::No => None,
        };
        if let Some(lease) = self.current() {
            return Ok(Ok(lease));
        }
        let (shared, start, ended) = (self.clone(), start(), earlier.clone());
        let started = async move {
            if let Some(ended) = ended {
                ended.await;
                if matches!(*shared.starting(), StartState::Never) {
                    return Err(unloaded());
                }
            }
            let result = start.await;
            let mut starting = shared.starting();
            if matches!(*starting, StartState::Never) {
                return Err(unloaded());
            }
            *starting = StartState::No;
            if let Ok(handle) = &result {
                shared.handle.store(Some(handle.clone()));
            }
            result
        };
        let started = started.boxed().shared();
        tokio::spawn(started.clone());
        *starting = StartState::Now(started.clone(), earlier);
        Ok(Err(started))
    }

    /// Whether callers wait for it.
    pub(super) fn is_in_use(&self) -> bool {
        let handle = self.handle.load();
        handle.as_ref().is_some_and(|handle| handle.state.waiting.load(Ordering::SeqCst) > 0)
    }

    /// How many calls it has: those that callers wait for, and those that it works on after their callers gave up. Nothing
    /// where there is none.
    pub(super) fn calls(&self) -> Option<usize> {
        self.handle.load().as_ref().map(|handle| handle.state.calls())
    }

    /// Empties the place, for good. An instance that is there stops; calls in flight are given up.
    pub(super) async fn end(&self) {
        let before = std::mem::replace(&mut *self.starting(), StartState::Never);
        if let StartState::After(ended) | StartState::Now(_, Some(ended)) = before {
            ended.await;
        }
        if let Some(handle) = self.handle.swap(None) {
            handle.stop().await;
        }
    }

    /// Stops the instance unless somebody uses it, and returns whether it did. Who comes next gets another,
    /// which is started once this one has ended and `then` was called.
    pub(super) async fn end_unused(&self, then: Box<dyn FnOnce() + Send>) -> bool {
        let ended = {
            let mut starting = self.starting();
            let handle = match &*starting {
                StartState::No => self.handle.load_full(),
                _ => None,
            };
            let Some(handle) = handle.filter(|handle| handle.state.close()) else { return false };
            self.handle.store(None);
            let ended = async move {
                handle.stop().await;
                then();
            };
            let ended = ended.boxed().shared();
            tokio::spawn(ended.clone());
            *starting = StartState::After(ended.clone());
            ended
        };
        ended.await;
        true
    }

    fn starting(&self) -> MutexGuard<'_, StartState> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unloaded() -> Failure {
    Failure::Lost("it was unloaded".into())
}

/// A caller's place at an instance, which does not end while somebody has one and waits.
pub(super) struct InstanceLease {
    handle: Arc<InstanceHandle>,
}

impl InstanceLease {
    /// Takes a place, where the instance takes calls. The order matters: who has arrived is seen
    /// by whoever retires the instance, or sees that it is retired.
    pub(super) fn at(handle: Arc<InstanceHandle>) -> Option<Self> {
        let before = handle.state.waiting.fetch_add(1, Ordering::SeqCst);
        let lease = Self { handle };
        let InstanceHandle { work, state, .. } = &*lease.handle;
        let is_closed = before >= CLOSED || work.is_closed();
        (!is_closed && !state.retired.load(Ordering::SeqCst)).then_some(lease)
    }
}

impl InstanceLease {
    /// The first place at an instance.
    pub(super) fn new(handle: Arc<InstanceHandle>) -> Result<Self, Failure> {
        Self::at(handle).ok_or_else(|| Failure::Host("a new instance ended at once".into()))
    }
}

impl Drop for InstanceLease {
    fn drop(&mut self) {
        let state = &self.handle.state;
        let left = state.waiting.fetch_sub(1, Ordering::SeqCst) - 1;
        if left == 0 && state.retired.load(Ordering::SeqCst) {
            state.kill.notify_one();
        }
    }
}

impl InstanceState {
    /// Lets those finish who still wait, and nobody else begin.
    fn retire(&self) {
        self.retired.store(true, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) == 0 {
            self.kill.notify_one();
        }
    }

    /// Lets nobody begin, where nobody waits. Returns whether it is so.
    fn close(&self) -> bool {
        self.waiting.compare_exchange(0, CLOSED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn is_closed(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) >= CLOSED
    }

    fn calls(&self) -> usize {
        self.waiting.load(Ordering::SeqCst).max(self.running.load(Ordering::SeqCst))
    }

    /// Why there is no answer to a job, which may have begun, once the instance has ended.
    fn reason(&self, begun: bool) -> Failure {
        let alone = begun && self.running.load(Ordering::SeqCst) == 1;
        match self.ended.get() {
            Some(Failure::Trapped(_)) if !alone => {
                Failure::Lost("it trapped, in this call or in another".into())
            }
            Some(failure @ Failure::LimitExceeded(_)) if !alone => {
                Failure::Lost(format!("{failure}, in this call or in another"))
            }
            Some(failure) => failure.clone(),
            None => unloaded(),
        }
    }
}

impl InstanceHandle {
    /// Gives an instance a task of its own.
    pub(super) fn start(instance: WasmInstance) -> Arc<Self> {
        let (work, inbox) = mpsc::unbounded_channel();
        let state = Arc::new(InstanceState {
            guest: OnceLock::new(),
            ended: SetOnce::new(),
            ending: SetOnce::new(),
            retired: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            kill: Notify::new(),
        });
        let usage_counter = instance.store.data().usage_counter();
        let task = HelpedTask::spawn(own(instance, inbox, state.clone()));
        Arc::new(Self { work, task, state, usage_counter })
    }

    /// Hands over a job; its answer, or the end of the instance, closes what is returned.
    fn send<R, J>(&self, job_state: Arc<JobState>, job: CallJob<J>) -> oneshot::Receiver<R>
    where
        R: Send + 'static,
        J: Job<R>,
    {
        let (reply, answer) = oneshot::channel();
        let (job_state, state) = (JobOverGuard(job_state), self.state.clone());
        let work = Box::pin(async move {
            let JobOverGuard(job_state) = &job_state;
            // Work whose caller gave up while it waited is not begun.
            if reply.is_closed() {
                return Ok(());
            }
            job_state.begun.store(true, Ordering::SeqCst);
            state.running.fetch_add(1, Ordering::SeqCst);
            let guest = state.guest.get().expect("who drives an instance makes it known before");
            let value = job.run(guest.clone()).await?;
            state.running.fetch_sub(1, Ordering::SeqCst);
            // A caller that gave up meanwhile wants no answer.
            let _ = reply.send(value);
            Ok(())
        });
        // Work that is sent to an instance that has ended is dropped, which closes the reply: the
        // caller then learns why.
        self.task.hand_over(|| {
            let _ = self.work.send(work);
        });
        answer
    }

    /// Has the guest stop, and drops the store. Calls in flight are given up before.
    async fn stop(&self) {
        self.end(async |guest: Arc<GuestHandle>| guest.exports.stop(&guest.accessor).await).await;
    }

    /// Runs a job that no caller waits for as the last one, and drops the store. Calls in flight
    /// are given up before.
    async fn end<J: Job<()>>(&self, last: J) {
        // Somebody waits: the callers that leave now are not the last, whose leaving ends it.
        self.state.waiting.fetch_add(1, Ordering::SeqCst);
        self.state.retired.store(true, Ordering::SeqCst);
        let _ = self.state.ending.set(unloaded());
        let job_state = Arc::<JobState>::default();
        let goodbye = self.send(job_state.clone(), attributed(None, last));
        // One that computes and takes no work in says none.
        let taken_in = async {
            tokio::time::sleep(CANCEL_GRACE).await;
            if job_state.begun.load(Ordering::SeqCst) {
                pending::<()>().await;
            }
        };
        // Whether it says good-bye or traps, it ends here.
        tokio::select! {
            _ = goodbye => {}
            () = taken_in => {}
        }
        self.state.kill.notify_one();
        self.state.ended.wait().await;
    }
}

impl Drop for InstanceHandle {
    fn drop(&mut self) {
        self.state.kill.notify_one();
    }
}

/// A job that was handed over. Dropping it gives the job up.
pub(super) struct JobHandle<R> {
    answer: oneshot::Receiver<R>,
    call_guard: CallGuard,
}

/// The place of a caller whose job runs. Leaving it early gives the call up.
struct CallGuard {
    lease: InstanceLease,
    call_id: Option<Arc<str>>,
    job_state: Arc<JobState>,
    given_up: bool,
}

/// How far a job has come, as its caller sees it.
#[derive(Default)]
struct JobState {
    begun: AtomicBool,
    over: AtomicBool,
}

/// The job's end of it: with this, the job is over.
struct JobOverGuard(Arc<JobState>);

impl Drop for JobOverGuard {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

impl JobState {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

impl InstanceLease {
    /// Notes what the instance uses until that is dropped, for the call that is being served.
    pub(super) fn record_usage(&self) -> ResourceUsageRecorder {
        ResourceUsageRecorder::from_now(&self.handle.usage_counter)
    }

    /// Hands over a job. When its caller gives up, the guest is asked to cancel the call that it
    /// serves.
    pub(super) fn submit<R, J>(self, job: CallJob<J>) -> JobHandle<R>
    where
        R: Send + 'static,
        J: Job<R>,
    {
        let call_id = job.id.clone();
        let job_state = Arc::<JobState>::default();
        let answer = self.handle.send(job_state.clone(), job);
        JobHandle {
            answer,
            call_guard: CallGuard { lease: self, call_id, job_state, given_up: true },
        }
    }
}

impl<R> JobHandle<R> {
    /// Waits for the answer.
    pub(super) async fn wait(mut self) -> Result<R, Failure> {
        let state = &self.call_guard.lease.handle.state;
        let result = tokio::select! {
            biased;
            answer = &mut self.answer => match answer {
                Ok(value) => Ok(value),
                Err(_) => {
                    state.ended.wait().await;
                    Err(state.reason(self.call_guard.job_state.begun.load(Ordering::SeqCst)))
                }
            },
            failure = state.ending.wait() => Err(failure.clone()),
        };
        self.call_guard.given_up = false;
        result
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if !self.given_up || self.job_state.is_over() {
            return;
        }
        let (handle, job_state) = (self.lease.handle.clone(), self.job_state.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            handle.state.retire();
            return;
        };
        let cancel = self.call_id.take().map(|call_id| handle.cancel(call_id));
        runtime.spawn(async move {
            tokio::time::sleep(CANCEL_GRACE).await;
            drop(cancel);
            if !job_state.is_over() {
                handle.state.retire();
            }
        });
    }
}

impl InstanceHandle {
    /// Asks the guest to end a call.
    fn cancel(&self, call_id: Arc<str>) -> oneshot::Receiver<()> {
        let ask = async move |guest: Arc<GuestHandle>| {
            guest.exports.cancel(&guest.accessor, call_id.to_string()).await
        };
        self.send(Arc::default(), attributed(None, ask))
    }
}

/// The task that owns an instance: begins the work that is sent, drives it together with what the
/// guest runs by itself, and says in the end why it ended.
async fn own(
    instance: WasmInstance,
    inbox: mpsc::UnboundedReceiver<QueuedJob>,
    state: Arc<InstanceState>,
) {
    let state = InstanceEndGuard(state);
    let WasmInstance { mut store, exports } = instance;
    let usage_counter = store.data().usage_counter();
    let result = {
        let current_call = store.run_concurrent(async |accessor| {
            let _ = state.0.guest.set(GuestHandle::new(accessor, exports));
            serve(accessor, inbox).await
        });
        let current_call = usage_counter.count(current_call);
        tokio::select! {
            biased;
            result = current_call => Some(result.flatten()),
            () = state.0.kill.notified() => None,
        }
    };
    let reason = match result {
        Some(Err(error)) => failure(&error, store.data()),
        Some(Ok(())) => unloaded(),
        None => Failure::Lost("it was discarded".into()),
    };
    if !matches!(reason, Failure::Lost(_)) {
        tracing::warn!(
            plugin = &*store.data().setting.context.id,
            "an instance that serves several calls ended: {}",
            store.data().setting.context.log.without_secrets(&reason.to_string())
        );
    }
    drop(store);
    let _ = state.0.ended.set(reason);
}

/// Sees to it that callers learn of the end, also when the owning task is dropped with its runtime.
struct InstanceEndGuard(Arc<InstanceState>);

impl Drop for InstanceEndGuard {
    fn drop(&mut self) {
        let _ = self.0.ended.set(Failure::Host("the instance's task was dropped".into()));
    }
}

/// Takes in work until nobody can send any more, or an instance is done for.
async fn serve(
    accessor: &Accessor<HostState>,
    mut inbox: mpsc::UnboundedReceiver<QueuedJob>,
) -> wasmtime::Result<()> {
    let mut running = FuturesUnordered::<QueuedJob>::new();
    let mut turns = pin!(async {
        loop {
            tokio::select! {
                biased;
                Some(done) = running.next() => done?,
                work = inbox.recv() => match work {
                    Some(work) => running.push(work),
                    None => return Ok(()),
                },
            }
        }
    });
    // This is polled when the guest can do no more for now: what it ran until then is one turn.
    poll_fn(|context| {
        accessor.with(|mut access| access.get().meter.rest());
        turns.as_mut().poll(context)
    })
    .await
}
