//! The live instances of a plugin that says it keeps nothing from one call to the next. Each is a shared one, with a task
//! of its own, so that calls of the plugin use more than one processor.

use futures::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use super::shared::SharedInstanceSlot;

/// The most instances of one plugin, whatever the processors: each takes memory.
const MAX_INSTANCES: usize = 8;

/// The instances of one plugin, one for each processor at most. They are started when they are needed.
pub(super) struct StatelessPool(Box<[Arc<PooledInstance>]>);

/// The place of one of them.
#[derive(Default)]
struct PooledInstance {
    instance: Arc<SharedInstanceSlot>,
    /// Callers that do not wait for an answer of it yet: it is being started.
    coming: AtomicUsize,
}

/// The choice of an instance for a call. It counts there until this is dropped.
pub(super) struct ChosenInstance(Arc<PooledInstance>);

impl ChosenInstance {
    pub(super) fn instance(&self) -> &Arc<SharedInstanceSlot> {
        &self.0.instance
    }
}

impl Drop for ChosenInstance {
    fn drop(&mut self) {
        self.0.coming.fetch_sub(1, Ordering::Relaxed);
    }
}

impl StatelessPool {
    pub(super) fn new() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self::of(processors.min(MAX_INSTANCES))
    }

    fn of(most: usize) -> Self {
        Self((0..most).map(|_| Arc::default()).collect())
    }

    /// The instance with the fewest calls. Another one is started only where all that there are have some.
    pub(super) fn choose(&self) -> ChosenInstance {
        let fewest = self.0.iter().min_by_key(|place| {
            let calls = place.instance.calls();
            (place.coming.load(Ordering::Relaxed) + calls.unwrap_or(0), calls.is_none())
        });
        let place = fewest.expect("there is a processor").clone();
        place.coming.fetch_add(1, Ordering::Relaxed);
        ChosenInstance(place)
    }

    /// The one that is started first.
    pub(super) fn first(&self) -> &Arc<SharedInstanceSlot> {
        &self.0[0].instance
    }

    /// Ends all of them, for good.
    pub(super) async fn end(&self) {
        join_all(self.0.iter().map(|place| place.instance.end())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_goes_where_the_fewest_are() {
        let instances = StatelessPool::of(3);
        let place = |chosen: &ChosenInstance| {
            instances.0.iter().position(|place| Arc::ptr_eq(place, &chosen.0)).unwrap()
        };
        let mut calls: Vec<_> = (0..7).map(|_| instances.choose()).collect();
        assert_eq!(calls.iter().map(place).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
        calls.remove(4);
        assert_eq!(place(&instances.choose()), 1);
        // Those that follow each other have the same one.
        drop(calls);
        assert_eq!([(), (), ()].map(|()| place(&instances.choose())), [0, 0, 0]);
    }

    #[test]
    fn there_is_an_instance_for_each_processor_up_to_a_bound() {
        let most = StatelessPool::new().0.len();
        assert!((1..=MAX_INSTANCES).contains(&most), "{most}");
    }
}
