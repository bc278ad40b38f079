//! wasmtime without Tenon, with the same component and a pool of the same size.

use std::hint::black_box;
use std::path::Path;
use tenon_tests::bare;
use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    UpdateDeadline,
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::{COMPONENT, POOL};
use crate::{TEXT, arguments};

/// What a store has.
pub(super) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// An engine that can end a call, as that of Tenon can.
pub(super) fn engine() -> Engine {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(POOL)
        .total_component_instances(POOL)
        .total_memories(POOL)
        .total_tables(POOL * 2)
        .total_stacks(POOL)
        .max_unused_warm_slots(POOL)
        .max_memory_size(256 << 20)
        .linear_memory_keep_resident(2 << 20)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .generate_address_map(false)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config).expect("the engine is set up")
}

/// The component, compiled.
pub(super) fn compiled(engine: &Engine) -> Component {
    Component::from_file(engine, COMPONENT).expect("the component compiles")
}

/// Compiles the component into a file.
pub(super) fn precompile(file: &Path) {
    let compiled = compiled(&engine()).serialize().expect("it can be kept");
    std::fs::write(file, compiled).expect("the folder is there");
}

/// The component of such a file.
pub(super) fn precompiled(engine: &Engine, file: &Path) -> Component {
    // SAFETY: `precompile` has written the file, and nobody else knows it.
    unsafe { Component::deserialize_file(engine, file) }.expect("the component is read")
}

/// A component that can be instantiated.
pub(super) struct PreparedComponent {
    engine: Engine,
    pre: InstancePre<State>,
    tools: bare::GuestIndices,
}

impl PreparedComponent {
    pub(super) fn new(engine: Engine, component: impl Fn(&Engine) -> Component) -> Self {
        let component = component(&engine);
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI is linked");
        wasmtime_wasi::p3::add_to_linker(&mut linker).expect("WASI is linked");
        let pre = linker.instantiate_pre(&component).expect("the component is linked");
        let tools = bare::GuestIndices::new(&pre).expect("it has tools");
        Self { engine, pre, tools }
    }

    pub(super) async fn instance(&self) -> Instance {
        let state = State { wasi: WasiCtx::builder().build(), table: ResourceTable::new() };
        let mut store = Store::new(&self.engine, state);
        store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
        store.set_epoch_deadline(1);
        let instance = self.pre.instantiate_async(&mut store).await.expect("it is instantiated");
        let tools = self.tools.load(&mut store, &instance).expect("it has tools");
        Instance { store, tools }
    }
}

/// An instance of the component.
pub(super) struct Instance {
    store: Store<State>,
    tools: bare::Guest,
}

impl Instance {
    pub(super) async fn echo(&mut self) {
        let Self { store, tools } = self;
        let context = bare::CallContext {
            call_id: "1".into(),
            agent_id: None,
            session_id: None,
            traceparent: None,
            time_left: Some(30_000),
            extra: None,
        };
        let called = store.run_concurrent(async |accessor| {
            tools.call_call_tool(accessor, "echo".into(), arguments().to_string(), context).await
        });
        let answer = called.await.expect("the loop runs").expect("no trap");
        assert_eq!(bare::text_of(black_box(answer.expect("an answer"))), TEXT);
    }
}
