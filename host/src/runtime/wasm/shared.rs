//! The shared instance of a plugin: one task owns the store and drives its event loop, and callers
//! send it their work.
//!
//! wasmtime cannot cancel one call of a store. When a caller gives up, the guest is asked to end
//! the call; if it does not within [`GRACE`], the instance is *retired*: it takes no more calls,
//! finishes those whose callers still wait, and is then dropped. A trap ends every call of the
//! instance, which is what sharing one means; other plugins have other stores. wasmtime does not say
//! which of several calls trapped, so that none is blamed but one that ran alone: the others learn
//! that they were lost, and the log has the trap.

use arc_swap::ArcSwapOption;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::task::AtomicWaker;
use futures::{FutureExt, StreamExt};
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, SetOnce, mpsc, oneshot};
use wasmtime::component::{Accessor, AccessorTask};

use super::instance::{Instantiated, failure};
use super::state::{Gauge, Noting};
use super::{Attributed, HostState, Inside, Job, attributed};
use crate::runtime::Failure;

/// How long a call may go on after its caller gave up, before it costs the instance its place.
const GRACE: Duration = Duration::from_secs(1);

/// How many calls have to be in flight before an instance gives way to its child.
const CROWD: usize = 8;

/// How long it may take until it is its turn again. A core's other work gets more than that at a time.
const SHORT: Duration = Duration::from_millis(1);

/// For how long an instance does not give way whose turn was longer in coming.
const FOR_NOW: Duration = Duration::from_millis(250);

/// The place of a plugin's shared instance. Each call reads it without a lock.
#[derive(Default)]
pub(super) struct Shared {
    live: ArcSwapOption<Live>,
    starting: Mutex<Starting>,
}

#[derive(Default)]
enum Starting {
    #[default]
    No,
    /// Callers wait for it together. It goes on when they give up.
    Now(Start),
    /// The plugin was unloaded: no instance is started any more.
    Never,
}

type Start = futures::future::Shared<BoxFuture<'static, Result<Arc<Live>, Failure>>>;

/// A live instance, as its callers see it.
pub(super) struct Live {
    work: mpsc::UnboundedSender<Work>,
    fate: Arc<Fate>,
    gauge: Arc<Gauge>,
}

/// What callers and the owning task tell each other of the instance, and of its end.
struct Fate {
    /// How jobs reach it, once it is being driven.
    inside: OnceLock<Arc<Inside>>,
    /// Why it has ended.
    ended: SetOnce<Failure>,
    /// Why it is going to: callers wait no longer.
    ending: SetOnce<Failure>,
    /// Takes no more calls.
    retired: AtomicBool,
    /// Callers that still wait.
    waiting: AtomicUsize,
    /// Jobs that the guest works on. When it breaks off, they stay counted.
    running: AtomicUsize,
    /// Asks the owning task to drop the store, whatever it is doing.
    kill: Notify,
}

/// A job together with the way its answer goes. It fails when the instance is done for.
type Work = BoxFuture<'static, wasmtime::Result<()>>;

impl Shared {
    /// A place at the instance, where there is one that takes calls.
    pub(super) fn current(&self) -> Option<Place> {
        self.live.load_full().and_then(Place::at)
    }

    /// The same, at an instance that `start` makes where there is none.
    pub(super) async fn place<F>(
        self: &Arc<Self>,
        start: impl FnOnce() -> F,
    ) -> Result<Place, Failure>
    where
        F: Future<Output = Result<Arc<Live>, Failure>> + Send + 'static,
    {
        let live = match self.begin(start)? {
            Ok(place) => return Ok(place),
            Err(started) => started.await?,
        };
        Place::at(live.clone()).ok_or_else(|| live.fate.reason(false))
    }

    /// A place, where there is one by now, or the start that callers wait for.
    fn begin<F>(
        self: &Arc<Self>,
        start: impl FnOnce() -> F,
    ) -> Result<Result<Place, Start>, Failure>
    where
        F: Future<Output = Result<Arc<Live>, Failure>> + Send + 'static,
    {
        let mut starting = self.starting();
        match &*starting {
            Starting::Never => return Err(unloaded()),
            Starting::Now(started) => return Ok(Err(started.clone())),
            Starting::No => {}
        }
        if let Some(place) = self.current() {
            return Ok(Ok(place));
        }
        let (shared, start) = (self.clone(), start());
        let started = async move {
            let result = start.await;
            let mut starting = shared.starting();
            if matches!(*starting, Starting::Never) {
                return Err(unloaded());
            }
            *starting = Starting::No;
            if let Ok(live) = &result {
                shared.live.store(Some(live.clone()));
            }
            result
        };
        let started = started.boxed().shared();
        tokio::spawn(started.clone());
        *starting = Starting::Now(started.clone());
        Ok(Err(started))
    }

    /// Empties the place, for good.
    pub(super) fn close(&self) -> Option<Arc<Live>> {
        *self.starting() = Starting::Never;
        self.live.swap(None)
    }

    fn starting(&self) -> MutexGuard<'_, Starting> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unloaded() -> Failure {
    Failure::Lost("it was unloaded".into())
}

/// A caller's place at an instance, which does not end while somebody has one and waits.
pub(super) struct Place {
    live: Arc<Live>,
}

impl Place {
    /// Takes a place, where the instance takes calls. The order matters: who has arrived is seen
    /// by whoever retires the instance, or sees that it is retired.
    pub(super) fn at(live: Arc<Live>) -> Option<Self> {
        live.fate.waiting.fetch_add(1, Ordering::SeqCst);
        let place = Self { live };
        let Live { work, fate, .. } = &*place.live;
        let takes_calls = !fate.retired.load(Ordering::SeqCst) && !work.is_closed();
        takes_calls.then_some(place)
    }
}

impl Place {
    /// The first place at an instance.
    pub(super) fn new(live: Arc<Live>) -> Result<Self, Failure> {
        Self::at(live).ok_or_else(|| Failure::Host("a new instance ended at once".into()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let fate = &self.live.fate;
        let left = fate.waiting.fetch_sub(1, Ordering::SeqCst) - 1;
        if left == 0 && fate.retired.load(Ordering::SeqCst) {
            fate.kill.notify_one();
        }
    }
}

impl Fate {
    /// Lets those finish who still wait, and nobody else begin.
    fn retire(&self) {
        self.retired.store(true, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) == 0 {
            self.kill.notify_one();
        }
    }

    /// Why there is no answer to a job, which may have begun, once the instance has ended.
    fn reason(&self, begun: bool) -> Failure {
        let alone = begun && self.running.load(Ordering::SeqCst) == 1;
        match self.ended.get() {
            Some(Failure::Trapped(_)) if !alone => {
                Failure::Lost("it trapped, in this call or in another".into())
            }
            Some(failure) => failure.clone(),
            None => unloaded(),
        }
    }
}

impl Live {
    /// Gives an instance a task of its own.
    pub(super) fn start(instance: Instantiated) -> Arc<Self> {
        let (work, inbox) = mpsc::unbounded_channel();
        let fate = Arc::new(Fate {
            inside: OnceLock::new(),
            ended: SetOnce::new(),
            ending: SetOnce::new(),
            retired: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            kill: Notify::new(),
        });
        let gauge = instance.store.data().gauge();
        tokio::spawn(own(instance, inbox, fate.clone()));
        Arc::new(Self { work, fate, gauge })
    }

    /// Hands over a job; its answer, or the end of the instance, closes what is returned.
    fn send<R, J>(&self, course: Arc<Course>, job: Attributed<J>) -> oneshot::Receiver<R>
    where
        R: Send + 'static,
        J: Job<R>,
    {
        let (reply, answer) = oneshot::channel();
        let (course, fate) = (Steered(course), self.fate.clone());
        let work = Box::pin(async move {
            let Steered(course) = &course;
            // Work whose caller gave up while it waited is not begun.
            if reply.is_closed() {
                return Ok(());
            }
            course.begun.store(true, Ordering::SeqCst);
            fate.running.fetch_add(1, Ordering::SeqCst);
            let inside = fate.inside.get().expect("who drives an instance makes it known before");
            let value = job.run(inside.clone()).await?;
            fate.running.fetch_sub(1, Ordering::SeqCst);
            // A caller that gave up meanwhile wants no answer.
            let _ = reply.send(value);
            Ok(())
        });
        // Work that is sent to an instance that has ended is dropped, which closes the reply: the
        // caller then learns why.
        let _ = self.work.send(work);
        answer
    }

    /// Runs a job that no caller waits for as the last one, and drops the store. Calls in flight
    /// are given up before.
    pub(super) async fn end<J: Job<()>>(&self, last: J) {
        // Somebody waits: the callers that leave now are not the last, whose leaving ends it.
        self.fate.waiting.fetch_add(1, Ordering::SeqCst);
        self.fate.retired.store(true, Ordering::SeqCst);
        let _ = self.fate.ending.set(unloaded());
        let course = Arc::<Course>::default();
        let goodbye = self.send(course.clone(), attributed(None, last));
        // One that computes and takes no work in says none.
        let taken_in = async {
            tokio::time::sleep(GRACE).await;
            if course.begun.load(Ordering::SeqCst) {
                pending::<()>().await;
            }
        };
        // Whether it says good-bye or traps, it ends here.
        tokio::select! {
            _ = goodbye => {}
            () = taken_in => {}
        }
        self.fate.kill.notify_one();
        self.fate.ended.wait().await;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.fate.kill.notify_one();
    }
}

/// A job that was handed over. Dropping it gives the job up.
pub(super) struct Pending<R> {
    answer: oneshot::Receiver<R>,
    seat: Seat,
}

/// The place of a caller whose job runs. Leaving it early gives the call up.
struct Seat {
    place: Place,
    call_id: Option<Arc<str>>,
    course: Arc<Course>,
    given_up: bool,
}

/// How far a job has come, as its caller sees it.
#[derive(Default)]
struct Course {
    begun: AtomicBool,
    over: AtomicBool,
}

/// The job's end of it: with this, the job is over.
struct Steered(Arc<Course>);

impl Drop for Steered {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

impl Course {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

impl Place {
    /// Runs a job and waits for its answer. The job is handed over at once, so that what waits does not
    /// have place for it.
    pub(super) fn run<R, J>(
        self,
        job: Attributed<J>,
    ) -> impl Future<Output = Result<R, Failure>> + Send + use<R, J>
    where
        R: Send + 'static,
        J: Job<R>,
    {
        let noting = Noting::from_now(&self.live.gauge);
        let pending = self.submit(job);
        async move {
            let _noting = noting;
            pending.wait().await
        }
    }

    /// Hands over a job. When its caller gives up, the guest is asked to cancel the call that it
    /// serves.
    pub(super) fn submit<R, J>(self, job: Attributed<J>) -> Pending<R>
    where
        R: Send + 'static,
        J: Job<R>,
    {
        let call_id = job.id.clone();
        let course = Arc::<Course>::default();
        let answer = self.live.send(course.clone(), job);
        Pending { answer, seat: Seat { place: self, call_id, course, given_up: true } }
    }
}

impl<R> Pending<R> {
    /// Waits for the answer.
    pub(super) async fn wait(mut self) -> Result<R, Failure> {
        let fate = &self.seat.place.live.fate;
        let result = tokio::select! {
            biased;
            answer = &mut self.answer => match answer {
                Ok(value) => Ok(value),
                Err(_) => {
                    fate.ended.wait().await;
                    Err(fate.reason(self.seat.course.begun.load(Ordering::SeqCst)))
                }
            },
            failure = fate.ending.wait() => Err(failure.clone()),
        };
        self.seat.given_up = false;
        result
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.given_up || self.course.is_over() {
            return;
        }
        let (live, course) = (self.place.live.clone(), self.course.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            live.fate.retire();
            return;
        };
        let cancel = self.call_id.take().map(|call_id| live.cancel(call_id));
        runtime.spawn(async move {
            tokio::time::sleep(GRACE).await;
            drop(cancel);
            if !course.is_over() {
                live.fate.retire();
            }
        });
    }
}

impl Live {
    /// Asks the guest to end a call.
    fn cancel(&self, call_id: Arc<str>) -> oneshot::Receiver<()> {
        let ask = async move |inside: Arc<Inside>| {
            inside.exports.cancel(&inside.accessor, call_id.to_string()).await
        };
        self.send(Arc::default(), attributed(None, ask))
    }
}

/// The task that owns an instance: begins the work that is sent, drives it together with what the
/// guest runs by itself, and says in the end why it ended.
async fn own(instance: Instantiated, inbox: mpsc::UnboundedReceiver<Work>, fate: Arc<Fate>) {
    let fate = Ending(fate);
    let Instantiated { mut store, exports } = instance;
    let gauge = store.data().gauge();
    let has_child = store.data().setting.child.is_some();
    let result = {
        let gate = Gate::new();
        let serving = store.run_concurrent(async |accessor| {
            let _ = fate.0.inside.set(Inside::new(accessor, exports));
            serve(accessor, inbox, &gate).await
        });
        let serving = gauge.count(gate.around(serving));
        let is_crowded = || has_child && fate.0.running.load(Ordering::Relaxed) >= CROWD;
        tokio::select! {
            biased;
            result = giving_way(is_crowded, serving) => Some(result.flatten()),
            () = fate.0.kill.notified() => None,
        }
    };
    let reason = match result {
        Some(Err(error)) => failure(&error, store.data()),
        Some(Ok(())) => unloaded(),
        None => Failure::Lost("it was discarded".into()),
    };
    if !matches!(reason, Failure::Lost(_)) {
        tracing::warn!(
            plugin = &*store.data().setting.id,
            "the shared instance ended: {}",
            store.data().setting.voice.without_secrets(&reason.to_string())
        );
    }
    drop(store);
    let _ = fate.0.ended.set(reason);
}

/// Runs an instance. While it is crowded, each of its turns lets whatever else the core has to do go
/// first. That is most likely the child, which was interrupted by what woke us, and has more to say a
/// moment later: answers come together then, for far less than one by one. Where there is nothing else to
/// do, it costs as much as any call of the system; where there is so much that our own turn is long in
/// coming, it is left alone for a while.
async fn giving_way<F: Future>(is_crowded: impl Fn() -> bool, instance: F) -> F::Output {
    let mut instance = pin!(instance);
    let mut not_before = Instant::now();
    poll_fn(|context| {
        if is_crowded() {
            let began = Instant::now();
            if began >= not_before {
                std::thread::yield_now();
                let back = Instant::now();
                if back - began > SHORT {
                    not_before = back + FOR_NOW;
                }
            }
        }
        instance.as_mut().poll(context)
    })
    .await
}

/// Sees to it that callers learn of the end, also when the owning task is dropped with its runtime.
struct Ending(Arc<Fate>);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.ended.set(Failure::Host("the instance's task was dropped".into()));
    }
}

/// Takes in work until nobody can send any more, or an instance is done for.
async fn serve(
    accessor: &Accessor<HostState>,
    mut inbox: mpsc::UnboundedReceiver<Work>,
    gate: &Arc<Gate>,
) -> wasmtime::Result<()> {
    let mut running = FuturesUnordered::<Work>::new();
    // A set whose futures were all polled wakes itself to be polled once more, and the whole instance
    // with it. With one among them that is never woken, it does not. The same goes for the set of
    // what the instance waits for.
    running.push(pending().boxed());
    accessor.spawn(Asleep)?;
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
    let waker = gate.clone().into();
    // This is polled when the guest can do no more for now: what it ran until then is one turn.
    poll_fn(|_| {
        accessor.with(|mut access| access.get().meter.rest());
        match gate.woken.swap(false, Ordering::SeqCst) {
            true => turns.as_mut().poll(&mut Context::from_waker(&waker)),
            false => Poll::Pending,
        }
    })
    .await
}

struct Asleep;

impl AccessorTask<HostState> for Asleep {
    async fn run(self, _: &Accessor<HostState>) -> wasmtime::Result<()> {
        pending().await
    }
}

/// Stands between an instance and what is done with it. The instance asks after that whenever its
/// guest has made a step, and nearly always for nothing; and an answer of the guest, which is seen to
/// in the same turn, would have the instance polled once more.
struct Gate {
    /// There is something to do.
    woken: AtomicBool,
    /// Whether the instance is being polled: [`Gate::AT_REST`] or one of those below it.
    turn: AtomicU8,
    instance: AtomicWaker,
}

impl Wake for Gate {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        let (polled, woken) = (Self::POLLED, Self::WOKEN);
        let turn = self.turn.compare_exchange(polled, woken, Ordering::SeqCst, Ordering::SeqCst);
        if turn == Err(Self::AT_REST) {
            self.instance.wake();
        }
    }
}

impl Gate {
    const AT_REST: u8 = 0;
    /// It is, and may yet see to what there is to do.
    const POLLED: u8 = 1;
    /// There came something to do since.
    const WOKEN: u8 = 2;

    fn new() -> Arc<Self> {
        let (woken, turn) = (AtomicBool::new(true), AtomicU8::new(Self::AT_REST));
        Arc::new(Self { woken, turn, instance: AtomicWaker::new() })
    }

    /// Runs the instance.
    async fn around<F: Future>(&self, instance: F) -> F::Output {
        let mut instance = pin!(instance);
        poll_fn(|context| {
            self.instance.register(context.waker());
            self.turn.store(Self::POLLED, Ordering::SeqCst);
            let polled = instance.as_mut().poll(context);
            let turn = self.turn.swap(Self::AT_REST, Ordering::SeqCst);
            // Not whenever there is something to do: a guest that has the host wait for something
            // sees to nothing else until that is there.
            if turn == Self::WOKEN && self.woken.load(Ordering::SeqCst) {
                context.waker().wake_by_ref();
            }
            polled
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls an instance that does this in its turn. Returns how often it was woken by it.
    fn turn(gate: &Arc<Gate>, act: impl Fn(&Arc<Gate>)) -> u32 {
        let woken = Arc::<Woken>::default();
        let waker = woken.clone().into();
        let mut instance = pin!(gate.around(poll_fn(|_| {
            act(gate);
            Poll::<()>::Pending
        })));
        assert!(instance.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        woken.0.load(Ordering::SeqCst)
    }

    fn see_to_it(gate: &Arc<Gate>) {
        gate.woken.store(false, Ordering::SeqCst);
    }

    #[test]
    fn an_instance_is_woken_for_what_it_has_not_seen_to() {
        let gate = Gate::new();
        // It sees to nothing, and is not asked again for what was there before.
        assert_eq!(turn(&gate, |_| {}), 0);
        assert_eq!(turn(&gate, see_to_it), 0);
        assert_eq!(turn(&gate, Wake::wake_by_ref), 1);
        let both = |gate: &Arc<Gate>| {
            gate.wake_by_ref();
            see_to_it(gate);
        };
        assert_eq!(turn(&gate, both), 0);
    }

    #[test]
    fn an_instance_at_rest_is_woken() {
        let gate = Gate::new();
        let woken = Arc::<Woken>::default();
        gate.instance.register(&woken.clone().into());
        gate.wake_by_ref();
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert!(gate.woken.load(Ordering::SeqCst));
    }
}
