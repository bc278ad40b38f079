//! What one instance has in its store.

use std::sync::Arc;
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
        let console = Console::new(setting.id.clone());
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
        let transfer = limits.transfer;
        let mut store = Store::new(engine, state);
        store.limiter(|state| &mut state.meter);
        store.set_hostcall_fuel(transfer);
        store.epoch_deadline_callback(|mut context| context.data_mut().meter.tick());
        store.set_epoch_deadline(1);
        store
    }
}

impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Counts what an instance uses, and says no.
pub(super) struct Meter {
    memory: usize,
    table_elements: usize,
    instances: usize,
    cpu: std::time::Duration,
    most_ticks: u64,
    /// Ticks that came while the guest was running, since [`Meter::rest`].
    ticks: u64,
    /// The limit that was reached, for the trap that follows from it.
    pub(super) reached: Option<Limit>,
}

impl Meter {
    fn new(limits: &Limits) -> Self {
        Self {
            memory: limits.memory,
            table_elements: limits.table_elements,
            instances: limits.instances,
            cpu: limits.cpu,
            most_ticks: limits.ticks(),
            ticks: 0,
            reached: None,
        }
    }

    /// Begins to count CPU time anew. A shared instance rests whenever its event loop has nothing
    /// to run.
    pub(super) fn rest(&mut self) {
        self.ticks = 0;
    }

    /// The epoch has moved on under a running guest: let others have a turn, or stop it.
    fn tick(&mut self) -> wasmtime::Result<UpdateDeadline> {
        self.ticks += 1;
        if self.ticks > self.most_ticks {
            let limit = Limit::Cpu(self.cpu);
            self.reached = Some(limit);
            return Err(limit.into());
        }
        Ok(UpdateDeadline::Yield(1))
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let allowed = desired <= self.memory;
        if !allowed {
            self.reached = Some(Limit::Memory(self.memory));
        }
        Ok(allowed)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let allowed = desired <= self.table_elements;
        if !allowed {
            self.reached = Some(Limit::Table(self.table_elements));
        }
        Ok(allowed)
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
