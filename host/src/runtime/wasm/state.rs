//! What one instance has in its store.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wasmtime::component::ResourceTable;
use wasmtime::{ResourceLimiter, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::console::Console;
use crate::capability::config::Config;
use crate::capability::log::Allowance;
use crate::capability::notify::News;
use crate::child::{ChildSlot, Spec};
use crate::limits::{Limit, Limits};

/// What every instance of a plugin is made with.
pub(crate) struct Setting {
    /// The plugin's identifier.
    pub(crate) id: Arc<str>,
    pub(crate) limits: Limits,
    /// How long a new instance may take to register.
    pub(crate) startup: Duration,
    /// The configuration, as the text of a JSON object.
    pub(crate) config: Config,
    /// How much the plugin may still log.
    pub(crate) log: Allowance,
    /// Where news of the plugin goes.
    pub(crate) news: News,
    /// The one child of a bridge.
    pub(crate) child: Option<Arc<Spec>>,
}

/// The `T` of `Store<T>`: what an instance can reach, and what it has used.
pub(crate) struct HostState {
    pub(crate) setting: Arc<Setting>,
    pub(crate) child: Option<ChildSlot>,
    pub(super) console: Console,
    pub(super) meter: Meter,
    wasi: WasiCtx,
    table: ResourceTable,
}

impl HostState {
    /// A store with every limit set.
    pub(super) fn store(engine: &wasmtime::Engine, setting: &Arc<Setting>) -> Store<Self> {
        let limits = &setting.limits;
        let console = Console::new(setting.clone());
        let wasi = WasiCtx::builder()
            .stdout(console.stdout())
            .stderr(console.stderr())
            .max_random_size(1 << 20)
            .allow_tcp(false)
            .allow_udp(false)
            .build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let state = Self {
            child: setting.child.clone().map(ChildSlot::new),
            console,
            meter: Meter::new(limits),
            wasi,
            table,
            setting: setting.clone(),
        };
        let (transfer, handles) = (limits.transfer, limits.handles);
        let mut store = Store::new(engine, state);
        store.set_max_component_handles(handles);
        if let Some(table) = store.concurrent_resource_table() {
            table.set_max_capacity(handles);
        }
        store.limiter(|state| &mut state.meter);
        store.set_hostcall_fuel(transfer);
        store.epoch_deadline_callback(|mut context| context.data_mut().meter.tick());
        store.set_epoch_deadline(1);
        store
    }
}

impl HostState {
    /// The clock that the instance's turns are counted by.
    pub(super) fn clock(&self) -> Arc<Clock> {
        self.meter.clock.clone()
    }
}

impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Counts what an instance uses, and says no.
pub(super) struct Meter {
    limits: Used,
    used: Used,
    /// What was allowed last, and may still fail for other reasons.
    growing: Used,
    instances: usize,
    cpu: Duration,
    clock: Arc<Clock>,
    /// The clock when the instance last came to rest.
    rested: Duration,
    /// The limit that was reached, for the trap that follows from it.
    pub(super) reached: Option<Limit>,
}

/// What all memories, in bytes, and all tables, in elements, of an instance come to.
#[derive(Clone, Copy, Default)]
struct Used {
    memory: usize,
    table_elements: usize,
}

impl Meter {
    fn new(limits: &Limits) -> Self {
        Self {
            limits: Used { memory: limits.memory, table_elements: limits.table_elements },
            used: Used::default(),
            growing: Used::default(),
            instances: limits.instances,
            cpu: limits.cpu,
            clock: Arc::default(),
            rested: Duration::ZERO,
            reached: None,
        }
    }

    /// Begins to count CPU time anew, for a shared instance that has done all it can do for now.
    pub(super) fn rest(&mut self) {
        self.rested = self.clock.spent();
        self.reached = None;
    }

    /// The epoch has moved on under a running guest: let others have a turn, or stop it.
    fn tick(&mut self) -> wasmtime::Result<UpdateDeadline> {
        if self.clock.spent() - self.rested > self.cpu {
            let limit = Limit::Cpu(self.cpu);
            self.reached = Some(limit);
            return Err(limit.into());
        }
        Ok(UpdateDeadline::Yield(1))
    }

    fn grow(&mut self, by: Used) -> bool {
        let memory = self.used.memory.saturating_add(by.memory);
        let table_elements = self.used.table_elements.saturating_add(by.table_elements);
        if memory > self.limits.memory {
            self.reached = Some(Limit::Memory(self.limits.memory));
            return false;
        }
        if table_elements > self.limits.table_elements {
            self.reached = Some(Limit::Table(self.limits.table_elements));
            return false;
        }
        self.used = Used { memory, table_elements };
        self.growing = by;
        true
    }

    fn shrink_back(&mut self) {
        let Used { memory, table_elements } = std::mem::take(&mut self.growing);
        self.used.memory -= memory;
        self.used.table_elements -= table_elements;
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.grow(Used { memory: desired.saturating_sub(current), ..Used::default() }))
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.shrink_back();
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.grow(Used { table_elements: desired.saturating_sub(current), ..Used::default() }))
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.shrink_back();
        Ok(())
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.instances
    }
}

/// How long an instance has been running: the time that its future was being polled. What it waits
/// for costs nothing.
pub(super) struct Clock {
    start: Instant,
    /// In nanoseconds: what was spent in turns that are over.
    spent: AtomicU64,
    /// In nanoseconds since `start`: when the turn that goes on began, or [`Clock::IDLE`].
    turn: AtomicU64,
}

impl Default for Clock {
    fn default() -> Self {
        let (spent, turn) = (AtomicU64::new(0), AtomicU64::new(Self::IDLE));
        Self { start: Instant::now(), spent, turn }
    }
}

impl Clock {
    const IDLE: u64 = u64::MAX;

    /// Counts the turns of a future.
    pub(super) async fn count<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            let began = self.now();
            self.turn.store(began, Ordering::Relaxed);
            let polled = future.as_mut().poll(context);
            self.turn.store(Self::IDLE, Ordering::Relaxed);
            self.spent.fetch_add(self.now() - began, Ordering::Relaxed);
            polled
        })
        .await
    }

    fn spent(&self) -> Duration {
        let turn = self.turn.load(Ordering::Relaxed);
        let turn = if turn == Self::IDLE { 0 } else { self.now() - turn };
        Duration::from_nanos(self.spent.load(Ordering::Relaxed) + turn)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(Self::IDLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_count_together() {
        let mut meter =
            Meter::new(&Limits { memory: 100, table_elements: 10, ..Limits::default() });
        assert!(meter.memory_growing(0, 60, None).unwrap());
        assert!(!meter.memory_growing(0, 60, None).unwrap());
        assert_eq!(meter.reached, Some(Limit::Memory(100)));
        assert!(meter.memory_growing(60, 100, None).unwrap());
        meter.memory_grow_failed(Limit::Depth.into()).unwrap();
        assert!(meter.memory_growing(0, 40, None).unwrap());
        assert!(!meter.table_growing(0, 11, None).unwrap());
    }

    #[test]
    fn waiting_costs_no_time() {
        let clock = Clock::default();
        let millisecond = Duration::from_millis(1);
        let busy = poll_fn(|_| {
            std::thread::sleep(millisecond);
            std::task::Poll::<()>::Pending
        });
        let mut counted = pin!(clock.count(busy));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(counted.as_mut().poll(&mut context).is_pending());
        let spent = clock.spent();
        assert!(spent >= millisecond);
        std::thread::sleep(millisecond);
        assert_eq!(clock.spent(), spent);
        assert!(counted.as_mut().poll(&mut context).is_pending());
        assert!(clock.spent() >= spent + millisecond);
    }
}
