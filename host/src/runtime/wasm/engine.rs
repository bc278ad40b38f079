//! The engine that all components of a host share: its configuration, its epoch ticker, its linkers
//! and its compiler.

use std::thread;
use tenon_config::diagnostic::chain;
use tenon_config::files::Digest;
use tenon_config::limits::TICK;
use wasmtime::component::Component;
use wasmtime::{
    Enabled, InstanceAllocationStrategy, PoolingAllocationConfig, WasmBacktraceDetails,
};

use super::cache::{Cache, CachePlace};
use super::shape;

/// How instances get their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// From the operating system, as they come: no address space is reserved. Good for a command
    /// that makes a few calls.
    OnDemand,
    /// From a pool made in advance, which halves the cost of a fresh call. It reserves address
    /// space for this many core instances, of which a component may need several.
    Pool {
        /// The core instances at a time, over all plugins.
        instances: u32,
    },
}

/// How an engine is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EngineOptions {
    pub(crate) allocation: Allocation,
    /// Whether the backtraces of guests have lines, as far as components say them. Compiled code is larger then, and takes
    /// longer to compile.
    pub(crate) traces_lines: bool,
}

impl From<Allocation> for EngineOptions {
    fn from(allocation: Allocation) -> Self {
        Self { allocation, traces_lines: false }
    }
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine refused its configuration; a pool may be too large for the address space.
    #[error("the WebAssembly engine could not be set up: {0}")]
    Engine(String),
}

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompileError {
    #[error("it is a core WebAssembly module, not a component")]
    CoreModule,
    #[error("it is not WebAssembly")]
    NotWasm,
    #[error("it is not a valid component: {0}")]
    Invalid(String),
    #[error("{0}, and would take too long to compile")]
    TooMuch(shape::ShapeLimit),
}

/// The engine and what belongs to it.
pub(crate) struct WasmRuntime {
    pub(crate) engine: wasmtime::Engine,
    pub(crate) allocation: Allocation,
    cache: Option<Cache>,
}

/// The largest memory of a pooled instance; see [`crate::Limits::memory`] for the limit of a
/// plugin.
const MAX_POOLED_MEMORY_BYTES: usize = 256 << 20;

impl WasmRuntime {
    /// Sets up an engine whose compiled components are kept in `cache`, where there is one.
    pub(crate) fn new(
        options: impl Into<EngineOptions>,
        cache: Option<CachePlace>,
    ) -> Result<Self, EngineError> {
        let options = options.into();
        let engine = wasmtime::Engine::new(&configuration(options))
            .map_err(|error| EngineError::Engine(format!("{error:#}")))?;
        let cache = cache.and_then(|place| {
            Cache::open(place, &engine)
                .inspect_err(|error| {
                    tracing::warn!("components are compiled each time: {}", chain(error));
                })
                .ok()
        });
        tick(&engine);
        Ok(Self { engine, allocation: options.allocation, cache })
    }

    /// Compiles a component, or finds it compiled.
    pub(crate) fn compile(&self, wasm: &[u8], digest: &Digest) -> Result<Component, CompileError> {
        check_header(wasm)?;
        if let Some(cache) = &self.cache
            && let Some(component) = cache.get(&self.engine, digest)
        {
            return Ok(component);
        }
        shape::check(wasm).map_err(CompileError::TooMuch)?;
        let component = Component::new(&self.engine, wasm)
            .map_err(|error| CompileError::Invalid(format!("{error:#}")))?;
        if let Some(cache) = &self.cache {
            cache.put(digest, &component);
        }
        Ok(component)
    }
}

fn configuration(options: EngineOptions) -> wasmtime::Config {
    let EngineOptions { allocation, traces_lines } = options;
    let mut config = wasmtime::Config::new();
    config.epoch_interruption(true);
    config.wasm_component_model_async(true);
    // No toolchain of guests needs it, and it takes bounds that everything else relies on.
    config.wasm_memory64(false);
    // Without a reader, a guest's debug information would only slow its compilation down. No variable decides this:
    // what is compiled is kept for other processes.
    config.generate_address_map(traces_lines);
    config.wasm_backtrace_details(match traces_lines {
        true => WasmBacktraceDetails::Enable,
        false => WasmBacktraceDetails::Disable,
    });
    if let Allocation::Pool { instances } = allocation {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_core_instances(instances)
            .total_component_instances(instances)
            .total_memories(instances)
            .total_tables(instances.saturating_mul(2))
            .total_stacks(instances)
            .total_gc_heaps(instances)
            .max_unused_warm_slots(instances)
            .max_memory_size(MAX_POOLED_MEMORY_BYTES)
            .max_core_instances_per_component(64)
            .max_memories_per_component(16)
            .max_tables_per_component(64)
            .max_component_instance_size(4 << 20)
            .max_core_instance_size(4 << 20)
            .table_elements(100_000)
            .linear_memory_keep_resident(2 << 20)
            .table_keep_resident(64 << 10)
            .async_stack_keep_resident(64 << 10)
            .pagemap_scan(Enabled::Auto);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    config
}

/// Moves the engine's epoch on, for as long as the engine lives.
fn tick(engine: &wasmtime::Engine) {
    let engine = engine.weak();
    let ticker = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            thread::sleep(TICK);
        }
    };
    thread::Builder::new()
        .name("tenon-epoch".into())
        .spawn(ticker)
        .expect("the system lets a program start one thread");
}

/// Tells a component from what is often mistaken for one.
fn check_header(wasm: &[u8]) -> Result<(), CompileError> {
    match wasm {
        [b'\0', b'a', b's', b'm', _, _, 1, 0, ..] => Ok(()),
        [b'\0', b'a', b's', b'm', 1, 0, 0, 0, ..] => Err(CompileError::CoreModule),
        _ => Err(CompileError::NotWasm),
    }
}
