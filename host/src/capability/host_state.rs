//! What one instance has in its store.

use serde_json::Map;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tenon_config::discover::PluginKind;
use tenon_config::grant::Grants;
use tenon_config::limits::{LimitExceeded, Limits};
use tenon_config::secret::Redactor;
use wasmtime::component::{GuestTaskId, ResourceTable};
use wasmtime::{CallHook, ResourceLimiter, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::console::Console;
#[cfg(unix)]
use super::filesystem::FilesView;
use super::filesystem::{FileGrants, FilesystemState};
use super::granted::GrantedCapabilities;
use super::host_capability::{CapabilityContext, PrepareContext};
use super::mcp_server::ServerOffer;
use super::served_calls::ServedCalls;
use super::{InstanceCapabilities, PluginCapabilities};
use crate::call::CurrentCall;
use crate::observe::{PluginLog, PluginNotifications};

/// What every instance of a plugin is made with.
pub(crate) struct InstanceConfig {
    pub(crate) context: Arc<CapabilityContext>,
    pub(crate) limits: Limits,
    /// How long a new instance may take to register.
    pub(crate) startup: Duration,
    /// The files that it may use.
    pub(crate) files: Arc<FileGrants>,
    /// The variables of the environment that it sees.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) capabilities: PluginCapabilities,
}

impl InstanceConfig {
    /// What a component of the host's own is made with: limits, and nothing that it could use.
    pub(crate) fn without_grants(id: &str, limits: Limits) -> Self {
        let id: Arc<str> = id.into();
        let log = PluginLog::new(id.clone(), Redactor::default(), 1);
        let grants = Grants::default();
        let granted = GrantedCapabilities::new(id.clone(), grants.clone(), Arc::default());
        let context = CapabilityContext {
            id,
            kind: PluginKind::Builtin,
            log: Arc::new(log),
            granted: Arc::new(granted),
        };
        let capabilities = PluginCapabilities::prepare(&PrepareContext {
            context: &context,
            grants: &grants,
            limits: &limits,
            settings: &Map::new(),
            secrets: &Arc::default(),
            news: &PluginNotifications::default(),
            child: None,
            server: None,
            remote: None,
        });
        Self {
            context: Arc::new(context),
            capabilities,
            startup: limits.wall,
            limits,
            files: Arc::default(),
            environment: Vec::new(),
        }
    }
}

/// The `T` of `Store<T>`: what an instance can reach, and what it has used.
pub(crate) struct HostState {
    pub(crate) setting: Arc<InstanceConfig>,
    pub(super) calls: ServedCalls,
    pub(super) capabilities: InstanceCapabilities,
    pub(super) table: ResourceTable,
    pub(crate) console: Console,
    pub(crate) meter: Meter,
    wasi: WasiCtx,
    folders: FilesystemState,
}

impl HostState {
    /// A store with every limit set.
    pub(crate) fn store(engine: &wasmtime::Engine, setting: &Arc<InstanceConfig>) -> Store<Self> {
        let limits = &setting.limits;
        let console = Console::new(setting.context.log.clone());
        let wasi = WasiCtx::builder()
            .stdout(console.stdout())
            .stderr(console.stderr())
            .envs(&setting.environment)
            .max_random_size(1 << 20)
            .allow_tcp(false)
            .allow_udp(false)
            .build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let state = Self {
            calls: ServedCalls::new(setting.context.clone()),
            capabilities: setting.capabilities.instantiate(),
            table,
            console,
            meter: Meter::new(limits, setting.capabilities.has_child()),
            wasi,
            folders: FilesystemState::default(),
            setting: setting.clone(),
        };
        let (transfer, handles) = (limits.transfer, limits.handles);
        let mut store = Store::new(engine, state);
        store.set_max_component_handles(handles);
        if let Some(table) = store.concurrent_resource_table() {
            table.set_max_capacity(handles);
        }
        store.limiter(|state| &mut state.meter);
        store.call_hook(|mut context, transition| match transition {
            CallHook::CallingHost => {
                // The same room each time: this is done at each call of the host.
                let mut tasks = context.data_mut().calls.take_tasks();
                tasks.extend(context.async_call_stack()?);
                let state = context.data_mut();
                state.calls.asked_in(tasks);
                state.meter.calls_host()
            }
            _ => Ok(()),
        });
        store.set_hostcall_fuel(transfer);
        store.epoch_deadline_callback(|mut context| context.data_mut().meter.tick());
        store.set_epoch_deadline(1);
        store
    }
}

impl HostState {
    /// What tells what the instance uses.
    pub(crate) fn usage_counter(&self) -> Arc<InstanceUsage> {
        self.meter.usage_counter.clone()
    }
}

impl HostState {
    /// What the server of a bridge offers besides tools; nothing of a plugin that is no bridge.
    pub(crate) fn offered_by_server(&self) -> Option<ServerOffer> {
        self.capabilities.mcp_server.offer
    }

    /// A call begins.
    pub(crate) fn begin(&mut self, id: Arc<str>, current_call: Option<Arc<CurrentCall>>) {
        self.calls.begin(id, current_call);
        self.meter.lend_host_calls(self.calls.count());
    }

    /// The identifier of a call that the instance serves.
    pub(crate) fn served_as(&self, id: &str) -> Option<Arc<str>> {
        self.calls.served_as(id)
    }

    /// The guest serves a call in this task.
    pub(crate) fn serve_in(&mut self, id: &Arc<str>, task: GuestTaskId) {
        self.calls.serve_in(id, task);
    }

    /// A call is over.
    pub(crate) fn end(&mut self, id: &Arc<str>) {
        self.calls.end(id);
    }

    /// What the interfaces of files see.
    #[cfg(unix)]
    pub(crate) fn files(&mut self) -> FilesView<'_> {
        let refuse = self.calls.refusals();
        let Self { table, folders, setting, .. } = self;
        FilesView { table, folders, files: &setting.files, refuse }
    }
}

impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Counts what an instance uses, and says no.
pub(crate) struct Meter {
    limits: MemoryTotals,
    used: MemoryTotals,
    instances: usize,
    cpu: Duration,
    /// How many calls of the host are left; nothing where they are not counted.
    host_calls: Option<HostCallBudget>,
    usage_counter: Arc<InstanceUsage>,
    /// The CPU time when the instance last came to rest; unknown until the epoch moves on, as a
    /// clock is not worth being read each time.
    rested: Option<Duration>,
    /// The limit that was reached, for the trap that follows from it.
    pub(crate) reached: Option<LimitExceeded>,
}

/// How many calls of the host an instance may still make.
struct HostCallBudget {
    /// What one call of the plugin may make, within the time that it may take.
    most: u64,
    within: Duration,
    left: u64,
    /// When they were lent last.
    since: Instant,
}

/// What all memories, in bytes, and all tables, in elements, of an instance come to.
#[derive(Clone, Copy, Default)]
struct MemoryTotals {
    memory: usize,
    table_elements: usize,
}

impl Meter {
    /// The bridge waits for its server in calls of the host, for as long as that lives, and its server
    /// cannot call the host: there is nothing to count.
    fn new(limits: &Limits, is_bridge: bool) -> Self {
        let host_calls = HostCallBudget {
            most: limits.host_calls,
            within: limits.wall,
            left: limits.host_calls,
            since: Instant::now(),
        };
        Self {
            limits: MemoryTotals { memory: limits.memory, table_elements: limits.table_elements },
            used: MemoryTotals::default(),
            instances: limits.instances,
            cpu: limits.cpu,
            host_calls: (!is_bridge).then_some(host_calls),
            usage_counter: Arc::new(InstanceUsage {
                host_calls: (!is_bridge).then(AtomicU64::default),
                ..InstanceUsage::default()
            }),
            rested: Some(Duration::ZERO),
            reached: None,
        }
    }

    /// Begins to count CPU time anew, for a shared instance that has done all it can do for now.
    pub(crate) fn rest(&mut self) {
        self.rested = None;
        self.reached = None;
    }

    /// The epoch has moved on under a running guest: let others have a turn, or stop it.
    fn tick(&mut self) -> wasmtime::Result<UpdateDeadline> {
        let spent = self.usage_counter.spent();
        if spent - *self.rested.get_or_insert(spent) > self.cpu {
            let limit = LimitExceeded::Cpu(self.cpu);
            self.reached = Some(limit);
            return Err(limit.into());
        }
        // Not merely to the end of the queue: as many guests that compute as there are workers would keep tokio from its
        // timers and from what comes in.
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    }

    /// A call begins, of so many that are in flight: it may make calls of its own.
    fn lend_host_calls(&mut self, in_flight: usize) {
        if let Some(calls) = &mut self.host_calls {
            let most = calls.most.saturating_mul(in_flight as u64);
            calls.left = calls.left.saturating_add(calls.most).min(most);
        }
    }

    /// The guest calls the host: counts it, or stops it.
    fn calls_host(&mut self) -> wasmtime::Result<()> {
        let Some(calls) = &mut self.host_calls else { return Ok(()) };
        if let Some(made) = &self.usage_counter.host_calls {
            made.fetch_add(1, Ordering::Relaxed);
        }
        if calls.left == 0 {
            // What runs for long, and not too fast, may go on.
            if calls.since.elapsed() < calls.within {
                let limit = LimitExceeded::HostCalls(calls.most);
                self.reached = Some(limit);
                return Err(limit.into());
            }
            (calls.left, calls.since) = (calls.most, Instant::now());
        }
        calls.left -= 1;
        Ok(())
    }

    /// What was allowed and fails for another reason stays counted: wasmtime tells of failures that
    /// it has not asked about before, so that giving back could give too much.
    fn grow(&mut self, by: MemoryTotals) -> bool {
        let memory = self.used.memory.saturating_add(by.memory);
        let table_elements = self.used.table_elements.saturating_add(by.table_elements);
        if memory > self.limits.memory {
            self.reached = Some(LimitExceeded::Memory(self.limits.memory));
            return false;
        }
        if table_elements > self.limits.table_elements {
            self.reached = Some(LimitExceeded::Table(self.limits.table_elements));
            return false;
        }
        self.used = MemoryTotals { memory, table_elements };
        self.usage_counter.memory.store(memory, Ordering::Relaxed);
        true
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.grow(MemoryTotals {
            memory: desired.saturating_sub(current),
            ..MemoryTotals::default()
        }))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.grow(MemoryTotals {
            table_elements: desired.saturating_sub(current),
            ..MemoryTotals::default()
        }))
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

/// What an instance uses, for others to read.
pub(crate) struct InstanceUsage {
    start: Instant,
    /// How long the instance has been running, in nanoseconds: the time that its future was being
    /// polled, in turns that are over. What it waits for costs nothing.
    spent: AtomicU64,
    /// In nanoseconds since `start`: when the turn that goes on began, or [`InstanceUsage::IDLE`].
    turn: AtomicU64,
    /// All of its linear memories, in bytes. They never shrink.
    memory: AtomicUsize,
    /// How many calls of the host it made, where they are counted.
    host_calls: Option<AtomicU64>,
}

impl Default for InstanceUsage {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            spent: AtomicU64::new(0),
            turn: AtomicU64::new(Self::IDLE),
            memory: AtomicUsize::new(0),
            host_calls: None,
        }
    }
}

impl InstanceUsage {
    const IDLE: u64 = u64::MAX;

    /// Counts the turns of a future.
    pub(crate) async fn count<F: Future>(&self, future: F) -> F::Output {
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
        let turn = if turn == Self::IDLE { 0 } else { self.now().saturating_sub(turn) };
        Duration::from_nanos(self.spent.load(Ordering::Relaxed) + turn)
    }

    fn host_calls(&self) -> Option<u64> {
        self.host_calls.as_ref().map(|made| made.load(Ordering::Relaxed))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(Self::IDLE)
    }
}

/// Notes what an instance uses until this is dropped, for the call that is being served.
pub(crate) struct ResourceUsageRecorder {
    current_call: Option<Arc<CurrentCall>>,
    usage_counter: Arc<InstanceUsage>,
    /// What it had used before.
    cpu: Duration,
    host_calls: u64,
}

impl ResourceUsageRecorder {
    /// Notes all that the instance uses, and has used.
    pub(crate) fn all(usage_counter: Arc<InstanceUsage>) -> Self {
        Self {
            current_call: CurrentCall::current(),
            usage_counter,
            cpu: Duration::ZERO,
            host_calls: 0,
        }
    }

    /// Notes what the instance uses from now on.
    pub(crate) fn from_now(usage_counter: &Arc<InstanceUsage>) -> Self {
        let host_calls = usage_counter.host_calls().unwrap_or(0);
        let (current_call, cpu) = (CurrentCall::current(), usage_counter.spent());
        Self { current_call, usage_counter: usage_counter.clone(), cpu, host_calls }
    }
}

impl Drop for ResourceUsageRecorder {
    fn drop(&mut self) {
        let Some(current_call) = &self.current_call else { return };
        let cpu = self.usage_counter.spent().saturating_sub(self.cpu);
        let host_calls = self.usage_counter.host_calls().map(|made| made - self.host_calls);
        current_call.note(cpu, Some(self.usage_counter.memory.load(Ordering::Relaxed)), host_calls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Allocation;
    use crate::runtime::wasm::WasmRuntime;
    use wasmtime::component::{Component, Linker, ResourceTableError, TypedFunc};

    /// A store with these limits.
    fn store(limits: Limits) -> Store<HostState> {
        let wasm = WasmRuntime::new(Allocation::OnDemand, None).unwrap();
        HostState::store(&wasm.engine, &Arc::new(InstanceConfig::without_grants("p", limits)))
    }

    /// A store with these limits, and the function `act` of a component in it.
    async fn instance(limits: Limits, component: &str) -> (Store<HostState>, TypedFunc<(), ()>) {
        let mut store = store(limits);
        let component = wat::parse_str(component).expect("it is a component");
        let component = Component::new(store.engine(), component).unwrap();
        let mut linker = Linker::new(store.engine());
        linker.root().func_wrap("poke", |_, ()| Ok(())).unwrap();
        let instance = linker.instantiate_async(&mut store, &component).await.unwrap();
        let act = instance.get_typed_func(&mut store, "act").unwrap();
        (store, act)
    }

    /// Has a guest take one thing after another, by a function that is built into the component model and
    /// needs these definitions. Returns how many it got, and what stopped it.
    async fn taken(handles: usize, types: &str, function: [&str; 3]) -> (usize, wasmtime::Error) {
        let [name, signature, arguments] = function;
        let component = format!(
            r#"(component
                {types}
                (core func $take (canon {name}))
                (core module $module
                    (import "" "take" (func $take {signature}))
                    (func (export "act") (drop (call $take {arguments}))))
                (core instance $inner (instantiate $module
                    (with "" (instance (export "take" (func $take))))))
                (func (export "act") (canon lift (core func $inner "act"))))"#
        );
        let (mut store, act) = instance(Limits { handles, ..Limits::default() }, &component).await;
        for taken in 0..10 * handles {
            if let Err(error) = act.call_async(&mut store, ()).await {
                return (taken, error);
            }
        }
        panic!("nothing stops it");
    }

    #[test]
    fn the_host_keeps_so_many_objects_for_an_instance() {
        let mut store = store(Limits { handles: 30, ..Limits::default() });
        let table = &mut store.data_mut().table;
        let kept: Vec<_> = (0..40).map_while(|number| table.push(number).ok()).collect();
        assert_eq!(kept.len(), 30);
        assert!(matches!(table.push(0), Err(ResourceTableError::Full)));
        // What it lets go of makes room.
        table.delete(kept.into_iter().next().unwrap()).unwrap();
        assert!(table.push(0).is_ok());
    }

    #[test]
    fn a_call_is_known_by_its_id_while_the_instance_serves_it() {
        let mut store = store(Limits::default());
        let state = store.data_mut();
        let id: Arc<str> = "a".into();
        state.begin(id.clone(), None);
        assert!(state.served_as("a").is_some_and(|served| Arc::ptr_eq(&served, &id)));
        assert_eq!(state.served_as("b"), None);
        state.end(&id);
        assert_eq!(state.served_as("a"), None);
    }

    #[tokio::test]
    async fn a_guest_keeps_so_many_handles_of_its_own() {
        let resource = "(type $resource (resource (rep i32)))";
        let new = ["resource.new $resource", "(param i32) (result i32)", "(i32.const 0)"];
        let (taken, error) = taken(30, resource, new).await;
        // The call that takes them is known by a handle as well.
        assert!((25..=30).contains(&taken), "{taken}: {error:?}");
        assert!(format!("{error:?}").contains("store handle limit exceeded"), "{error:?}");
    }

    #[tokio::test]
    async fn a_guest_keeps_so_many_streams_tasks_and_their_like() {
        // A stream is three of them, and two handles.
        let stream = "(type $stream (stream u8))";
        let (taken, error) = taken(30, stream, ["stream.new $stream", "(result i64)", ""]).await;
        assert!((5..=10).contains(&taken), "{taken}: {error:?}");
        let reason = error.downcast_ref::<ResourceTableError>();
        assert!(matches!(reason, Some(ResourceTableError::Full)), "{error:?}");
    }

    #[tokio::test]
    async fn each_call_of_a_plugin_may_call_the_host_so_often() {
        let component = r#"(component
            (import "poke" (func $poke))
            (core func $lowered (canon lower (func $poke)))
            (core module $module
                (import "" "poke" (func $poke))
                (func (export "act") (call $poke)))
            (core instance $inner (instantiate $module
                (with "" (instance (export "poke" (func $lowered))))))
            (func (export "act") (canon lift (core func $inner "act"))))"#;
        let limits = Limits { host_calls: 50, wall: Duration::MAX, ..Limits::default() };
        let pokes = async |store: &mut Store<HostState>, act: &TypedFunc<(), ()>, most: usize| {
            let mut made = 0;
            while made < most && act.call_async(&mut *store, ()).await.is_ok() {
                made += 1;
            }
            made
        };
        // However many there were before: what one has not used is not left to the next. A few calls are
        // those of the component model itself.
        for calls in 1..=3 {
            let (mut store, act) = instance(limits.clone(), component).await;
            for number in 0..calls {
                let id: Arc<str> = number.to_string().into();
                store.data_mut().begin(id.clone(), None);
                store.data_mut().end(&id);
            }
            let made = pokes(&mut store, &act, 1000).await;
            assert!((40..=50).contains(&made), "{calls}: {made}");
            assert_eq!(store.data().meter.reached, Some(LimitExceeded::HostCalls(50)));
        }
        // Another call may make its own.
        let (mut store, act) = instance(limits, component).await;
        for id in ["first", "second"] {
            store.data_mut().begin(id.into(), None);
            assert_eq!(pokes(&mut store, &act, 40).await, 40);
        }
        assert!(pokes(&mut store, &act, 1000).await <= 20);
    }

    #[test]
    fn random_bytes_and_instances_have_an_end() {
        use wasmtime_wasi::p2::bindings::random::random::Host;
        use wasmtime_wasi::random::WasiRandomView;
        let mut store = store(Limits { instances: 7, ..Limits::default() });
        let random = store.data_mut().random();
        assert_eq!(random.get_random_bytes(1 << 20).unwrap().len(), 1 << 20);
        assert!(random.get_random_bytes((1 << 20) + 1).is_err());
        let meter = &store.data().meter;
        assert_eq!((meter.instances(), meter.tables(), meter.memories()), (7, 7, 7));
    }

    #[tokio::test]
    async fn what_an_instance_uses_is_noted_for_the_call_that_it_serves() {
        let limits = Limits { host_calls: 10, ..Limits::default() };
        let mut meter = Meter::new(&limits, false);
        let uses = |meter: &mut Meter| {
            meter.calls_host().unwrap();
            meter.memory_growing(0, 100, None).unwrap();
            meter.usage_counter.spent.fetch_add(2_000, Ordering::Relaxed);
        };
        uses(&mut meter);
        let usage_counter = meter.usage_counter.clone();
        let (all, later) =
            (CurrentCall::new(Default::default()), CurrentCall::new(Default::default()));
        let recorder_of_all =
            all.by(async { ResourceUsageRecorder::all(usage_counter.clone()) }).await;
        let recorder = later.by(async { ResourceUsageRecorder::from_now(&usage_counter) }).await;
        uses(&mut meter);
        assert_eq!(later.usage().cpu_micros, None);
        drop((recorder_of_all, recorder));
        let noted = |current_call: &CurrentCall| {
            let usage = current_call.usage();
            (usage.cpu_micros, usage.memory_bytes, usage.host_calls)
        };
        assert_eq!(noted(&all), (Some(4), Some(200), Some(2)));
        assert_eq!(noted(&later), (Some(2), Some(200), Some(1)));
    }

    #[tokio::test]
    async fn a_guest_that_loops_lets_others_have_their_turn() {
        let looping = r#"(component
            (core module $module (func (export "act") (loop $again (br $again))))
            (core instance $inner (instantiate $module))
            (func (export "act") (canon lift (core func $inner "act"))))"#;
        let (mut store, act) = instance(Limits::default(), looping).await;
        let usage_counter = store.data().usage_counter();
        let other = tokio::spawn(tokio::task::yield_now());
        tokio::select! {
            biased;
            ended = usage_counter.count(act.call_async(&mut store, ())) => panic!("{ended:?}"),
            other = other => other.unwrap(),
        }
    }

    #[test]
    fn memories_count_together() {
        let limits = Limits { memory: 100, table_elements: 10, ..Limits::default() };
        let mut meter = Meter::new(&limits, false);
        assert!(meter.memory_growing(0, 60, None).unwrap());
        assert!(!meter.memory_growing(0, 60, None).unwrap());
        assert_eq!(meter.reached, Some(LimitExceeded::Memory(100)));
        assert!(meter.memory_growing(60, 100, None).unwrap());
        // Whatever failed meanwhile, nothing is given back.
        meter.memory_grow_failed(LimitExceeded::Depth.into()).unwrap();
        meter.table_grow_failed(LimitExceeded::Depth.into()).unwrap();
        assert!(!meter.memory_growing(100, 101, None).unwrap());
        assert!(!meter.table_growing(0, 11, None).unwrap());
        assert!(meter.table_growing(0, 10, None).unwrap());
    }

    #[test]
    fn calls_of_the_host_are_counted_by_the_call() {
        let limits = Limits { host_calls: 2, wall: Duration::MAX, ..Limits::default() };
        let mut meter = Meter::new(&limits, false);
        let calls = |meter: &mut Meter| (0..10).take_while(|_| meter.calls_host().is_ok()).count();
        meter.lend_host_calls(1);
        assert_eq!(calls(&mut meter), 2);
        assert_eq!(meter.reached, Some(LimitExceeded::HostCalls(2)));
        meter.lend_host_calls(1);
        meter.lend_host_calls(2);
        assert_eq!(calls(&mut meter), 4);
        assert_eq!(calls(&mut Meter::new(&limits, true)), 10);
        let limits = Limits { wall: Duration::ZERO, ..limits };
        assert_eq!(calls(&mut Meter::new(&limits, false)), 10);
    }

    #[test]
    fn time_may_be_spent_up_to_the_limit_and_anew_after_a_rest() {
        let cpu = Duration::from_millis(300);
        let mut meter = Meter::new(&Limits { cpu, ..Limits::default() }, false);
        let nanosecond = Duration::from_nanos(1);
        let may_go_on = |meter: &mut Meter, spent: Duration| {
            let spent = u64::try_from(spent.as_nanos()).unwrap();
            meter.usage_counter.spent.store(spent, Ordering::Relaxed);
            meter.tick().is_ok()
        };
        assert!(may_go_on(&mut meter, cpu));
        assert!(!may_go_on(&mut meter, cpu + nanosecond));
        assert_eq!(meter.reached, Some(LimitExceeded::Cpu(cpu)));
        meter.rest();
        assert_eq!(meter.reached, None);
        // The next call begins where the clock is read first.
        assert!(may_go_on(&mut meter, 3 * cpu));
        assert!(may_go_on(&mut meter, 4 * cpu));
        assert!(!may_go_on(&mut meter, 4 * cpu + nanosecond));
    }

    #[test]
    fn waiting_costs_no_time() {
        let usage_counter = InstanceUsage::default();
        let millisecond = Duration::from_millis(1);
        let busy = poll_fn(|_| {
            let before = usage_counter.spent();
            std::thread::sleep(millisecond);
            // It costs its time while it goes on, too.
            assert!(usage_counter.spent() >= before + millisecond);
            std::task::Poll::<()>::Pending
        });
        let mut counted = pin!(usage_counter.count(busy));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(counted.as_mut().poll(&mut context).is_pending());
        let spent = usage_counter.spent();
        assert!(spent >= millisecond);
        std::thread::sleep(millisecond);
        assert_eq!(usage_counter.spent(), spent);
        assert!(counted.as_mut().poll(&mut context).is_pending());
        assert!(usage_counter.spent() >= spent + millisecond);
        assert!(usage_counter.spent() <= usage_counter.start.elapsed());
    }
}
