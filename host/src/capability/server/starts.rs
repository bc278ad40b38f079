//! How many MCP servers are started at a time, and which go first.
//!
//! Starting a server costs a processor for a while. When all of many servers start at once, none is
//! there in time. So starts wait here for a slot, and the time that a server has to start begins
//! when it gets one.

use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::sync::oneshot;

use crate::call::Failure;

/// How long a start keeps its slot. A server that takes longer mostly waits for something else than
/// a processor, and must not keep the others from starting.
const SLOT_TIME: Duration = Duration::from_secs(10);

/// How far the start of MCP servers has come.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StartQueueProgress<'a> {
    /// How many are ready.
    pub ready: usize,
    /// How many did not start.
    pub failed: usize,
    /// How many are to start, as far as is known by now.
    pub total: usize,
    /// The plugins whose servers are being started; who began first comes first.
    pub starting: &'a [Arc<str>],
}

/// Who watches servers start.
pub(crate) type StartObserver = Arc<dyn Fn(&StartQueueProgress<'_>) + Send + Sync>;

/// When a server starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartPriority {
    /// Before those that nobody waits for.
    First,
    /// After those that were queued before it.
    InTurn,
    /// Without a slot: it is no process of this machine.
    AtOnce,
}

/// The servers that wait to be started, and the slots for those that are being started.
#[derive(Clone)]
pub(crate) struct StartQueue {
    state: Arc<Mutex<QueueState>>,
}

struct QueueState {
    slots: usize,
    taken: usize,
    first: VecDeque<oneshot::Sender<StartSlot>>,
    in_turn: VecDeque<oneshot::Sender<StartSlot>>,
    /// The plugins that go first and are not queued yet: the others wait for them.
    expected: BTreeSet<String>,
    waiting: usize,
    starting: Vec<Arc<str>>,
    ready: usize,
    failed: usize,
    observer: Option<StartObserver>,
}

/// The slot of one start; the next start gets it when this is dropped.
struct StartSlot {
    queue: Option<StartQueue>,
}

impl Drop for StartSlot {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.state().taken -= 1;
            queue.hand_out();
        }
    }
}

impl Default for StartQueue {
    fn default() -> Self {
        let state = QueueState {
            slots: default_slots(),
            taken: 0,
            first: VecDeque::new(),
            in_turn: VecDeque::new(),
            expected: BTreeSet::new(),
            waiting: 0,
            starting: Vec::new(),
            ready: 0,
            failed: 0,
            observer: None,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }
}

/// One slot for each processor, and two at least: a server also waits for files and for others.
fn default_slots() -> usize {
    available_parallelism().map_or(2, NonZeroUsize::get).max(2)
}

impl StartQueue {
    /// Sets how many servers start at a time; where nothing is said, as the processors suggest.
    pub(crate) fn set_slots(&self, slots: Option<usize>) {
        self.state().slots = slots.unwrap_or_else(default_slots).max(1);
        self.hand_out();
    }

    /// Tells someone of each start, while the queue is locked.
    pub(crate) fn observe(&self, observer: StartObserver) {
        self.state().observer = Some(observer);
    }

    /// Has the server of a plugin go first, and the others wait until it is queued or what is
    /// returned is dropped.
    pub(crate) fn expect(&self, plugin: &str) -> PriorityStart {
        self.state().expected.insert(plugin.to_string());
        PriorityStart { queue: self.clone(), plugin: plugin.to_string() }
    }

    /// Starts a server when it is its turn. The time until then is not the start's.
    pub(crate) async fn run<T>(
        &self,
        plugin: &Arc<str>,
        order: StartPriority,
        start: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut entry = QueueEntry::new(self, plugin);
        let slot = match order {
            StartPriority::AtOnce => {
                self.state().expected.remove(&**plugin);
                self.hand_out();
                None
            }
            order => self.slot(plugin, order).await,
        };
        entry.begin();
        let mut start = pin!(start);
        let result = match tokio::time::timeout(SLOT_TIME, &mut start).await {
            Ok(result) => result,
            Err(_) => {
                drop(slot);
                start.await
            }
        };
        entry.end(result.is_ok());
        result
    }

    async fn slot(&self, plugin: &str, order: StartPriority) -> Option<StartSlot> {
        let (sender, slot) = oneshot::channel();
        {
            let mut state = self.state();
            let is_expected = state.expected.remove(plugin);
            match is_expected || order == StartPriority::First {
                true => state.first.push_back(sender),
                false => state.in_turn.push_back(sender),
            }
        }
        self.hand_out();
        // Every sender is kept until it is used.
        slot.await.ok()
    }

    /// Gives free slots to those whose turn it is.
    fn hand_out(&self) {
        loop {
            let mut state = self.state();
            if state.taken >= state.slots {
                return;
            }
            let next = match state.first.pop_front() {
                None if state.expected.is_empty() => state.in_turn.pop_front(),
                next => next,
            };
            let Some(next) = next else { return };
            state.taken += 1;
            drop(state);
            if let Err(mut slot) = next.send(StartSlot { queue: Some(self.clone()) }) {
                // Nobody waits for this start any more.
                slot.queue = None;
                self.state().taken -= 1;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`StartQueue::expect`].
pub(crate) struct PriorityStart {
    queue: StartQueue,
    plugin: String,
}

impl Drop for PriorityStart {
    fn drop(&mut self) {
        self.queue.state().expected.remove(&self.plugin);
        self.queue.hand_out();
    }
}

/// One start as observers see it. Dropped, it is not among those that are to start any more.
struct QueueEntry<'a> {
    queue: &'a StartQueue,
    plugin: &'a Arc<str>,
    stage: QueueStage,
}

#[derive(PartialEq)]
enum QueueStage {
    Waiting,
    Starting,
    Ended,
}

impl<'a> QueueEntry<'a> {
    fn new(queue: &'a StartQueue, plugin: &'a Arc<str>) -> Self {
        let mut state = queue.state();
        state.waiting += 1;
        state.tell();
        Self { queue, plugin, stage: QueueStage::Waiting }
    }

    fn begin(&mut self) {
        let mut state = self.queue.state();
        state.waiting -= 1;
        state.starting.push(self.plugin.clone());
        self.stage = QueueStage::Starting;
        state.tell();
    }

    fn end(&mut self, is_ready: bool) {
        let mut state = self.queue.state();
        state.remove(self.plugin);
        match is_ready {
            true => state.ready += 1,
            false => state.failed += 1,
        }
        self.stage = QueueStage::Ended;
        state.tell();
    }
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        match self.stage {
            QueueStage::Waiting => state.waiting -= 1,
            QueueStage::Starting => state.remove(self.plugin),
            QueueStage::Ended => return,
        }
        state.tell();
    }
}

impl QueueState {
    fn remove(&mut self, plugin: &Arc<str>) {
        let place = self.starting.iter().position(|starting| Arc::ptr_eq(starting, plugin));
        if let Some(place) = place {
            self.starting.remove(place);
        }
    }

    fn tell(&self) {
        let Some(observer) = &self.observer else { return };
        let Self { ready, failed, waiting, starting, .. } = self;
        let total = ready + failed + waiting + starting.len();
        observer(&StartQueueProgress { ready: *ready, failed: *failed, total, starting });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::server::{Supervision, Supervisor};
    use crate::observe::PluginNotifications;
    use futures::future::join_all;
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::time::{sleep, timeout};

    fn queue(slots: usize) -> StartQueue {
        let queue = StartQueue::default();
        queue.set_slots(Some(slots));
        queue
    }

    fn id(number: usize) -> Arc<str> {
        number.to_string().into()
    }

    /// A start that takes so long.
    async fn sleeps(time: Duration) -> Result<(), Failure> {
        sleep(time).await;
        Ok(())
    }

    /// Starts that note their order, each a second long.
    async fn noted(order: &Mutex<Vec<String>>, plugin: &str) -> Result<(), Failure> {
        order.lock().unwrap().push(plugin.to_string());
        sleep(Duration::from_secs(1)).await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_start_at_once_than_there_are_slots() {
        for slots in [1, 2, 7] {
            let queue = queue(slots);
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let starts = (0..40).map(async |number| {
                let start = async {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    sleep(Duration::from_secs(1)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                };
                queue.run(&id(number), StartPriority::InTurn, start).await
            });
            assert!(join_all(starts).await.iter().all(Result::is_ok));
            assert_eq!(most.into_inner(), slots);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_start_begins_with_its_slot() {
        let queue = queue(1);
        let starts = (0..40).map(async |number| {
            let supervisor = Supervisor::new(
                id(number),
                "stdio",
                Supervision::default(),
                PluginNotifications::default(),
            );
            let supervisor = supervisor.with_starts(queue.clone(), Duration::from_secs(3));
            let start = sleeps(Duration::from_secs(2));
            supervisor.start_in_turn(false, Duration::from_secs(3), start).await
        });
        assert!(join_all(starts).await.iter().all(Result::is_ok));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_called_or_expected_goes_first() {
        let (queue, order) = (queue(1), Mutex::default());
        let expected = queue.expect("expected");
        let run = async |plugin: &str, place, after| {
            sleep(Duration::from_millis(after)).await;
            queue.run(&plugin.into(), place, noted(&order, plugin)).await
        };
        use StartPriority::{AtOnce, First, InTurn};
        let _ = tokio::join!(
            run("one", InTurn, 0),
            run("two", InTurn, 0),
            run("expected", InTurn, 10),
            run("called", First, 20),
            run("elsewhere", AtOnce, 30),
        );
        let order = order.into_inner().unwrap();
        assert_eq!(order, ["expected", "elsewhere", "called", "one", "two"]);
        drop(expected);
    }

    /// Nobody waits for a server elsewhere, which takes no processor.
    #[tokio::test(start_paused = true)]
    async fn who_is_expected_and_starts_at_once_holds_nobody_up() {
        let queue = queue(1);
        let _expected = queue.expect("1");
        let (elsewhere, here) = (id(1), id(2));
        let both = async {
            tokio::join!(
                queue.run(&elsewhere, StartPriority::AtOnce, pending::<Result<(), Failure>>()),
                queue.run(&here, StartPriority::InTurn, async { Ok(()) }),
            )
        };
        assert!(timeout(Duration::from_secs(1), both).await.is_err());
        assert_eq!(queue.state().ready, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_expected_and_does_not_come_holds_nobody_up() {
        let (queue, order) = (queue(1), Mutex::default());
        let expected = queue.expect("expected");
        let one = "one".into();
        let run = queue.run(&one, StartPriority::InTurn, noted(&order, "one"));
        let ((), result) = tokio::join!(async { drop(expected) }, run);
        assert!(result.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_that_is_given_up_leaves_its_slot_and_its_place() {
        let queue = queue(1);
        let (first, second, third) = (id(1), id(2), id(3));
        let never = || pending::<Result<(), Failure>>();
        let short = Duration::from_secs(1);
        let (one, two) = tokio::join!(
            timeout(short, queue.run(&first, StartPriority::InTurn, never())),
            timeout(short, queue.run(&second, StartPriority::InTurn, never())),
        );
        assert!(one.is_err() && two.is_err());
        let third = queue.run(&third, StartPriority::InTurn, async { Ok(()) });
        assert!(timeout(short, third).await.is_ok());
        assert_eq!(queue.state().taken, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_that_takes_long_lets_the_next_one_begin() {
        let (queue, order) = (queue(1), Mutex::default());
        let (slow, next) = (id(1), id(2));
        let long = sleeps(3 * SLOT_TIME);
        let both = async {
            tokio::join!(
                queue.run(&slow, StartPriority::InTurn, long),
                timeout(2 * SLOT_TIME, queue.run(&next, StartPriority::InTurn, noted(&order, "2"))),
            )
        };
        let (slow, next) = both.await;
        assert!(slow.is_ok() && next.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn observers_see_how_far_it_is() {
        let queue = queue(1);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let seeing = seen.clone();
        queue.observe(Arc::new(move |progress| {
            let StartQueueProgress { ready, failed, total, starting } = progress;
            seeing.lock().unwrap().push(format!("{ready} {failed} {total} {}", starting.join(",")));
        }));
        let (a, b) = ("a".into(), "b".into());
        let fails = async { Err::<(), _>(Failure::Lost("it ended".into())) };
        let _ = tokio::join!(
            queue.run(&a, StartPriority::InTurn, sleeps(Duration::from_secs(1))),
            queue.run(&b, StartPriority::InTurn, fails),
        );
        let expected = ["0 0 1 ", "0 0 1 a", "0 0 2 a", "1 0 2 ", "1 0 2 b", "1 1 2 "];
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}
