//! The engine that all components of a host share: its configuration, its epoch ticker, its linkers
//! and its compiler.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use tenon_config::diagnostic::chain;
use tenon_config::files::{self, Digest, MAX_COMPONENT_BYTES};
use tenon_config::limits::TICK;
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{
    Enabled, InstanceAllocationStrategy, PoolingAllocationConfig, WasmBacktraceDetails,
};

use super::abi::{ExportError, link_older};
use super::cache::{Cache, CachePlace};
use super::linked::LinkedComponent;
use super::shape;
use crate::capability::{HostState, LinkSet};

/// How instances get their memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Allocation {
    /// From a pool of the host's choice, which reserves address space and takes memory only for what is used. It makes
    /// fresh calls several times as fast. Instances for which the pool has no room get their memory
    /// from the operating system. So do all where address space is short, for example under `ulimit -v`.
    #[default]
    Automatic,
    /// From the operating system, as they come: no address space is reserved. Good for a command
    /// that makes a few calls.
    OnDemand,
    /// From a pool with room for this many core instances, of which a component may need several. Calls for which there is
    /// no room fail.
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
    linkers: Linkers,
    cache: Option<Cache>,
    spare: Option<Arc<OverflowEngine>>,
}

/// The file of a component, as it was found.
pub(crate) struct ComponentFile {
    /// The digest of what is in it.
    pub(crate) digest: Digest,
    code: ComponentSource,
}

enum ComponentSource {
    Wasm(Vec<u8>),
    Compiled(Component),
}

/// The linkers of an engine. Most components share one: what they are linked with is the same.
#[derive(Default)]
struct Linkers(Mutex<HashMap<LinkSet, Arc<Linker<HostState>>>>);

impl Linkers {
    fn instance_pre(
        &self,
        component: &Component,
        links: &LinkSet,
    ) -> Result<InstancePre<HostState>, ExportError> {
        let linker = self.linker(component.engine(), links);
        let linker = linker.map_err(|error| ExportError::Shape(format!("{error:#}")))?;
        linker.instantiate_pre(component).map_err(|error| ExportError::linking(&error))
    }

    fn linker(
        &self,
        engine: &wasmtime::Engine,
        links: &LinkSet,
    ) -> wasmtime::Result<Arc<Linker<HostState>>> {
        let mut linkers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = linkers.get(links) {
            return Ok(known.clone());
        }
        let linker = Arc::new(links.linker(engine, link_older)?);
        linkers.insert(links.clone(), linker.clone());
        Ok(linker)
    }
}

/// An engine for the instances for which a pool has no room. It is set up when it is needed first.
pub(super) struct OverflowEngine {
    traces_lines: bool,
    engine: OnceLock<Result<wasmtime::Engine, String>>,
    linkers: Linkers,
}

impl OverflowEngine {
    /// A component of another engine, with a copy of its code. It blocks.
    pub(super) fn copy_of(
        &self,
        component: &Component,
        links: LinkSet,
    ) -> Result<LinkedComponent, String> {
        let make = || make_engine(None, self.traces_lines).map_err(|error| error.to_string());
        let engine = self.engine.get_or_init(make);
        let engine = engine.as_ref().map_err(String::clone)?;
        let described = |error: wasmtime::Error| format!("{error:#}");
        let code = component.serialize().map_err(described)?;
        // SAFETY: it is what this process compiled, or loaded as such, and nobody else has it.
        let copied = unsafe { Component::deserialize(engine, code) }.map_err(described)?;
        let pre = self.linkers.instance_pre(&copied, &links).map_err(|error| error.to_string())?;
        LinkedComponent::new(pre, links, None).map_err(|error| error.to_string())
    }
}

/// How many instances the pools of [`Allocation::Automatic`] have room for; the first that can be set up is taken. One
/// takes 8 GiB of address space: 4 for its memory, and 4 for a heap that the engine collects.
const POOL_SIZES: [u32; 3] = [1_024, 128, 16];

/// How many core instances a component may have on average, so that it is memory that a pool runs out of first.
const CORE_INSTANCES_PER_INSTANCE: u32 = 16;

/// The largest table of a pooled instance, in elements.
const MAX_POOLED_TABLE_ELEMENTS: usize = 10_000_000;

/// The most that an instance takes beside its memories and tables, in bytes: more than a component has place for.
const MAX_INSTANCE_BYTES: usize = 1 << 30;

/// How many slots of [`Allocation::Automatic`] keep what they were used with, for each processor. The next instance
/// takes them up faster; they take memory meanwhile.
const WARM_SLOTS_PER_CORE: usize = 8;

impl WasmRuntime {
    /// Sets up an engine whose compiled components are kept in `cache`, where there is one.
    pub(crate) fn new(
        options: impl Into<EngineOptions>,
        cache: Option<CachePlace>,
    ) -> Result<Self, EngineError> {
        Self::with_pools(options.into(), &POOL_SIZES, cache)
    }

    /// The same, with the sizes of automatic pools.
    pub(super) fn with_pools(
        options: EngineOptions,
        sizes: &[u32],
        cache: Option<CachePlace>,
    ) -> Result<Self, EngineError> {
        let EngineOptions { allocation, traces_lines } = options;
        let (engine, allocation) = set_up(allocation, sizes, traces_lines)?;
        let cache = cache.and_then(|place| {
            Cache::open(place, &engine)
                .inspect_err(|error| {
                    tracing::warn!("components are compiled each time: {}", chain(error));
                })
                .ok()
        });
        let spare = (allocation == Allocation::Automatic).then(|| {
            let (engine, linkers) = (OnceLock::new(), Linkers::default());
            Arc::new(OverflowEngine { traces_lines, engine, linkers })
        });
        Ok(Self { engine, allocation, linkers: Linkers::default(), cache, spare })
    }

    /// Links a component with functions of the host, and finds out what it exports.
    pub(crate) fn link(
        &self,
        component: &Component,
        links: LinkSet,
    ) -> Result<LinkedComponent, ExportError> {
        let pre = self.linkers.instance_pre(component, &links)?;
        LinkedComponent::new(pre, links, self.spare.as_ref())
    }

    /// Reads the file of a component, unless what is in it is known and was compiled before.
    pub(crate) fn open(&self, path: &Path) -> io::Result<ComponentFile> {
        let stamp = self.cache.as_ref().and_then(|cache| Some((cache, Cache::stamp(path)?)));
        if let Some((cache, stamp)) = &stamp
            && let Some(digest) = cache.known_digest(path, stamp)
            && let Some(component) = cache.get(&self.engine, &digest)
        {
            return Ok(ComponentFile { digest, code: ComponentSource::Compiled(component) });
        }
        let wasm = files::read(path, MAX_COMPONENT_BYTES)?;
        let digest = Digest::of(&wasm);
        if let Some((cache, stamp)) = &stamp {
            cache.know_digest(path, stamp, &digest);
        }
        Ok(ComponentFile { digest, code: ComponentSource::Wasm(wasm) })
    }

    /// Compiles the component of a file, unless that was done.
    pub(crate) fn compile_file(&self, file: ComponentFile) -> Result<Component, CompileError> {
        match file.code {
            ComponentSource::Compiled(component) => Ok(component),
            ComponentSource::Wasm(wasm) => self.compile(&wasm, &file.digest),
        }
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

/// Sets up an engine. Says what became of the allocation, too: where no pool can be had, an automatic one is on demand.
fn set_up(
    allocation: Allocation,
    sizes: &[u32],
    traces_lines: bool,
) -> Result<(wasmtime::Engine, Allocation), EngineError> {
    let engine = |pool| make_engine(pool, traces_lines);
    match allocation {
        Allocation::OnDemand => {}
        Allocation::Pool { instances } => {
            return Ok((engine(Some(pool_of(instances)))?, allocation));
        }
        Allocation::Automatic => {
            for &instances in sizes {
                match engine(Some(automatic_pool(instances))) {
                    Ok(engine) => return Ok((engine, allocation)),
                    Err(error) => tracing::debug!("no pool of {instances} instances: {error}"),
                }
            }
        }
    }
    Ok((engine(None)?, Allocation::OnDemand))
}

fn make_engine(
    pool: Option<PoolingAllocationConfig>,
    traces_lines: bool,
) -> Result<wasmtime::Engine, EngineError> {
    let engine = wasmtime::Engine::new(&configuration(pool, traces_lines))
        .map_err(|error| EngineError::Engine(format!("{error:#}")))?;
    tick(&engine);
    Ok(engine)
}

fn configuration(pool: Option<PoolingAllocationConfig>, traces_lines: bool) -> wasmtime::Config {
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
    if let Some(pool) = pool {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    config
}

/// A pool with room for so many core instances.
fn pool_of(instances: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(instances)
        .total_component_instances(instances)
        .total_memories(instances)
        .total_tables(instances.saturating_mul(2))
        .total_stacks(instances)
        .total_gc_heaps(instances)
        .max_unused_warm_slots(instances)
        // What a plugin may use is limited by its store; see [`crate::Limits`].
        .max_memory_size(1 << 32)
        .table_elements(MAX_POOLED_TABLE_ELEMENTS)
        .max_core_instances_per_component(instances)
        .max_memories_per_component(instances)
        .max_tables_per_component(instances.saturating_mul(2))
        .max_component_instance_size(MAX_INSTANCE_BYTES)
        .max_core_instance_size(MAX_INSTANCE_BYTES)
        .linear_memory_keep_resident(2 << 20)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// A pool with room for so many components.
fn automatic_pool(instances: u32) -> PoolingAllocationConfig {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let warm = u32::try_from(cores * WARM_SLOTS_PER_CORE).unwrap_or(instances);
    let core_instances = instances * CORE_INSTANCES_PER_INSTANCE;
    let mut pool = pool_of(instances);
    pool.total_core_instances(core_instances)
        .max_core_instances_per_component(core_instances)
        .max_unused_warm_slots(warm.min(instances));
    pool
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
