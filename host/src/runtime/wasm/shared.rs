//! The shared instance of a plugin: one task owns the store and drives its event loop, and callers
//! send it their work.
//!
//! wasmtime cannot cancel one call of a store. When a caller gives up, the guest is asked to end
//! the call; if it does not within [`GRACE`], the instance is *retired*: it takes no more calls,
//! finishes those whose callers still wait, and is then dropped. A trap ends every call of the
//! instance, which is what sharing one means; other plugins have other stores.

use arc_swap::ArcSwapOption;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, Notify, SetOnce, mpsc, oneshot};
use wasmtime::component::Accessor;

use super::instance::{Instantiated, failure};
use super::{Exports, HostState, Job, job};
use crate::runtime::Failure;

/// How long a call may go on after its caller gave up, before it costs the instance its place.
const GRACE: Duration = Duration::from_secs(1);

/// The place of a plugin's shared instance. Each call reads it without a lock.
#[derive(Default)]
pub(super) struct Shared {
    live: ArcSwapOption<Live>,
    starting: Mutex<()>,
}

/// A live instance, as its callers see it.
pub(super) struct Live {
    work: mpsc::UnboundedSender<Work>,
    fate: Arc<Fate>,
}

/// What callers and the owning task tell each other about the instance's end.
struct Fate {
    /// Why the instance has ended.
    ended: SetOnce<Failure>,
    /// Takes no more calls.
    retired: AtomicBool,
    /// Callers that still wait.
    waiting: AtomicUsize,
    /// Asks the owning task to drop the store, whatever it is doing.
    kill: Notify,
}

/// A job together with the way its answer goes. It fails when the instance is done for.
type Work = Box<
    dyn for<'a> FnOnce(&'a Accessor<HostState>, &'a Exports) -> BoxFuture<'a, wasmtime::Result<()>>
        + Send,
>;

impl Shared {
    /// The instance, or a new one where there is none that takes calls.
    pub(super) async fn get_or_start<F, I>(&self, instantiate: F) -> Result<Arc<Live>, Failure>
    where
        F: FnOnce() -> I,
        I: Future<Output = Result<Instantiated, Failure>>,
    {
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let _starting = self.starting.lock().await;
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let live = Live::start(instantiate().await?);
        self.live.store(Some(live.clone()));
        Ok(live)
    }

    /// Empties the place.
    pub(super) fn take(&self) -> Option<Arc<Live>> {
        self.live.swap(None)
    }

    fn current(&self) -> Option<Arc<Live>> {
        self.live.load_full().filter(|live| live.fate.takes_calls())
    }
}

impl Fate {
    fn takes_calls(&self) -> bool {
        !self.retired.load(Ordering::Acquire) && !self.ended.initialized()
    }

    /// Lets those finish who still wait, and nobody else begin.
    fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        if self.waiting.load(Ordering::Acquire) == 0 {
            self.kill.notify_one();
        }
    }

    fn arrive(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
    }

    fn leave(&self) {
        let left = self.waiting.fetch_sub(1, Ordering::AcqRel) - 1;
        if left == 0 && self.retired.load(Ordering::Acquire) {
            self.kill.notify_one();
        }
    }
}

impl Live {
    /// Gives an instance a task of its own.
    pub(super) fn start(instance: Instantiated) -> Arc<Self> {
        let (work, inbox) = mpsc::unbounded_channel();
        let fate = Arc::new(Fate {
            ended: SetOnce::new(),
            retired: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            kill: Notify::new(),
        });
        tokio::spawn(own(instance, inbox, fate.clone()));
        Arc::new(Self { work, fate })
    }

    /// Runs a job and waits for its answer.
    pub(super) async fn run<R, J>(
        self: &Arc<Self>,
        call_id: Option<&str>,
        job: J,
    ) -> Result<R, Failure>
    where
        R: Send + 'static,
        J: Job<R> + 'static,
    {
        self.submit(call_id, job).wait().await
    }

    /// Hands over a job. Dropping what is returned gives it up.
    pub(super) fn submit<R, J>(self: &Arc<Self>, call_id: Option<&str>, job: J) -> Pending<R>
    where
        R: Send + 'static,
        J: Job<R> + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let token = Arc::new(());
        let running = Arc::downgrade(&token);
        let work: Work = Box::new(move |accessor, exports| {
            Box::pin(async move {
                let _token = token;
                // Work whose caller gave up while it waited is not begun.
                if reply.is_closed() {
                    return Ok(());
                }
                let value = job(accessor, exports).await?;
                // A caller that gave up meanwhile wants no answer.
                let _ = reply.send(value);
                Ok(())
            })
        });
        self.fate.arrive();
        // Work that is sent to an instance that has ended is dropped, which closes the reply: the
        // caller then learns why.
        let _ = self.work.send(work);
        Pending {
            answer,
            seat: Seat {
                live: self.clone(),
                call_id: call_id.map(Into::into),
                running,
                given_up: true,
            },
        }
    }

    /// Drops the store and waits until it is gone.
    pub(super) async fn close(&self) {
        self.fate.kill.notify_one();
        self.fate.ended.wait().await;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.fate.kill.notify_one();
    }
}

/// A job that was handed over.
pub(super) struct Pending<R> {
    answer: oneshot::Receiver<R>,
    seat: Seat,
}

/// A caller's place at an instance. Leaving it early gives the call up.
struct Seat {
    live: Arc<Live>,
    call_id: Option<Box<str>>,
    /// Alive as long as the job is.
    running: Weak<()>,
    given_up: bool,
}

impl<R> Pending<R> {
    /// Waits for the answer.
    pub(super) async fn wait(mut self) -> Result<R, Failure> {
        let result = match (&mut self.answer).await {
            Ok(value) => Ok(value),
            Err(_) => Err(self.seat.live.fate.ended.wait().await.clone()),
        };
        self.seat.given_up = false;
        result
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.live.fate.leave();
        if !self.given_up || self.running.strong_count() == 0 {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            self.live.fate.retire();
            return;
        };
        let (live, running) = (self.live.clone(), self.running.clone());
        let cancel = self.call_id.take().map(|call_id| live.cancel(call_id));
        runtime.spawn(async move {
            tokio::time::sleep(GRACE).await;
            drop(cancel);
            if running.strong_count() > 0 {
                live.fate.retire();
            }
        });
    }
}

impl Live {
    /// Asks the guest to end a call.
    fn cancel(self: &Arc<Self>, call_id: Box<str>) -> oneshot::Receiver<()> {
        let (done, ended) = oneshot::channel();
        let ask = job(move |accessor: &Accessor<HostState>, exports: &Exports| {
            let cancelled: BoxFuture<'_, wasmtime::Result<()>> = Box::pin(async move {
                if let Ok(tools) = exports.tools(accessor) {
                    tools.call_cancel(accessor, call_id.into()).await?;
                }
                let _ = done.send(());
                Ok(())
            });
            cancelled
        });
        let _ = self.work.send(Box::new(ask));
        ended
    }
}

/// The task that owns an instance: begins the work that is sent, drives it together with what the
/// guest runs by itself, and says in the end why it ended.
async fn own(mut instance: Instantiated, inbox: mpsc::UnboundedReceiver<Work>, fate: Arc<Fate>) {
    let fate = Ending(fate);
    let Instantiated { store, exports } = &mut instance;
    let result = {
        let serving = store.run_concurrent(async |accessor| serve(accessor, exports, inbox).await);
        tokio::select! {
            result = serving => Some(result.flatten()),
            () = fate.0.kill.notified() => None,
        }
    };
    let reason = match result {
        Some(Err(error)) => failure(&error, instance.store.data()),
        Some(Ok(())) => Failure::Lost("it was unloaded".into()),
        None => Failure::Lost("it was discarded".into()),
    };
    if !matches!(reason, Failure::Lost(_)) {
        tracing::warn!(
            plugin = &*instance.store.data().setting.id,
            "the shared instance ended: {reason}"
        );
    }
    drop(instance);
    let _ = fate.0.ended.set(reason);
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
    exports: &Exports,
    mut inbox: mpsc::UnboundedReceiver<Work>,
) -> wasmtime::Result<()> {
    let mut running = FuturesUnordered::new();
    let mut turns = pin!(async {
        loop {
            tokio::select! {
                Some(done) = running.next(), if !running.is_empty() => done?,
                work = inbox.recv() => match work {
                    Some(work) => running.push(work(accessor, exports)),
                    None => return Ok(()),
                },
            }
        }
    });
    // This is polled when the guest has come to rest: it has had its turn.
    poll_fn(|context| {
        accessor.with(|mut access| access.get().meter.rest());
        turns.as_mut().poll(context)
    })
    .await
}
