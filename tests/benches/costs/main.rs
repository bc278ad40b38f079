//! What Tenon costs, each time beside the same work done with the bare libraries on the same bytes,
//! in the same run.
//!
//! The numbers are medians of rounds. Compare the ratios; the times are this machine's.

#![allow(clippy::print_stdout)]

use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;
#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use serde_json::{Value, json};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tenon_config::admit::{Rules, admit};
use tenon_config::discover::{Sources, discover};
use tenon_host::services::GrantAll;
use tenon_host::testing::BenchLoader;
use tenon_host::types::HookPoint;
use tenon_host::{Allocation, Builder, Call, Caller, Config, HostEnvironment, Platform};
use tenon_tests::bare;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{
    Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store, UpdateDeadline,
};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

mod memory;
mod runs;
mod served;
#[path = "../table.rs"]
mod table;
mod throughput;

use table::Table;

mod guests {
    #![allow(dead_code)]
    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

/// The servers that calls are bridged to: one as people write them, and one that answers as fast as
/// it can, so that nothing but the client is measured.
const SERVERS: [(&str, &str); 2] = [
    ("bridged call, server written with rmcp", env!("CARGO_BIN_EXE_demo-server")),
    ("bridged call, server that takes no time", env!("CARGO_BIN_EXE_rude-server")),
];

/// The instances of the pool, here and there.
const POOL: u32 = 256;

/// What every call passes but those that read files: [`PAYLOAD`] bytes of JSON. Either side builds it for
/// each call.
fn arguments() -> Value {
    json!({ "text": "The quick brown fox jumps over the lazy dog, and then it does so again and again until evening. And it rests" })
}

/// The length of the arguments, in bytes.
const PAYLOAD: usize = 119;

/// What a piece of work takes, here and beside.
struct Row {
    what: String,
    ours: Option<Duration>,
    bare: Option<(&'static str, Duration)>,
}

impl Row {
    fn new(
        what: impl Into<String>,
        (ours, bare): (Duration, Duration),
        beside: &'static str,
    ) -> Self {
        Self { what: what.into(), ours: Some(ours), bare: Some((beside, bare)) }
    }
}

fn print(rows: &[Row]) {
    let columns = ["work", "tenon", "bare", "ratio", "beside"];
    let mut table = Table::new("Time of one", columns);
    for Row { what, ours, bare } in rows {
        let ratio =
            ours.zip(*bare).map(|(ours, (_, bare))| ours.as_secs_f64() / bare.as_secs_f64());
        let ratio = ratio.map(|ratio| format!("{ratio:.2}×")).unwrap_or_default();
        let (beside, bare) = bare.map(|(beside, time)| (beside, Some(time))).unwrap_or_default();
        table.row([what.clone(), shown(*ours), shown(bare), ratio, beside.into()]);
    }
    table.print();
}

/// A time in the unit that suits it.
fn shown(time: Option<Duration>) -> String {
    let Some(micros) = time.map(|time| time.as_secs_f64() * 1e6) else { return String::new() };
    match micros {
        ..1e3 => format!("{micros:.2} µs"),
        1e3..1e6 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

/// The median time of one of `each` turns, over `rounds` rounds.
async fn measure<F: AsyncFnMut()>(rounds: usize, each: u32, turn: F) -> Duration {
    versus(rounds, each, turn, async || ()).await.0
}

/// The same for two kinds of work whose rounds take turns, so that a slow moment of the machine is
/// one for both. Who begins takes turns, too.
async fn versus<A: AsyncFnMut(), B: AsyncFnMut()>(
    rounds: usize,
    each: u32,
    mut ours: A,
    mut bare: B,
) -> (Duration, Duration) {
    for _ in 0..each.min(20) {
        ours().await;
        bare().await;
    }
    let mut times = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for round in 0..rounds {
        if round % 2 == 0 {
            times.0.push(timed(each, &mut ours).await);
            times.1.push(timed(each, &mut bare).await);
        } else {
            times.1.push(timed(each, &mut bare).await);
            times.0.push(timed(each, &mut ours).await);
        }
    }
    (median(times.0), median(times.1))
}

/// The time of one of so many turns.
async fn timed<F: AsyncFnMut()>(turns: u32, turn: &mut F) -> Duration {
    let began = Instant::now();
    for _ in 0..turns {
        turn().await;
    }
    began.elapsed() / turns
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    // `cargo test --benches` passes this; there is nothing to test here.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    // One thread: waking another core costs more than most of what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the runtime starts");
    if let Ok(measure) = std::env::var(memory::MEASURE) {
        return runtime.block_on(memory::measure(&measure));
    }
    assert_eq!(arguments().to_string().len(), PAYLOAD);
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wanted = |group: &str| only.as_deref().is_none_or(|only| group.contains(only));
    print(&runtime.block_on(all(wanted)));
    if wanted("serve") {
        runtime.block_on(served::print_memory());
    }
    if wanted("runs") {
        runtime.block_on(runs::print_tokens());
    }
    if wanted("throughput") {
        let rows = runtime.block_on(throughput::in_flight());
        throughput::print("Calls a second, 64 in flight, on all cores", rows);
    }
    drop(runtime);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("the runtime starts");
    if wanted("throughput") {
        let rows = runtime.block_on(throughput::in_flight_of_tasks());
        throughput::print("Calls a second, 64 tasks that call, a thread for each core", rows);
    }
    if wanted("burst") {
        let rows = runtime.block_on(throughput::at_once());
        throughput::print("Calls a second, 20,000 at once, a thread for each core", rows);
    }
    drop(runtime);
    if wanted("memory") {
        memory::print();
    }
}

/// Runs the groups that are wanted: all, or those whose name contains an argument.
async fn all(wanted: impl Fn(&str) -> bool) -> Vec<Row> {
    let mut rows = Vec::new();
    if wanted("load") {
        compile_and_load(&mut rows).await;
    }
    if wanted("call") {
        calls(&mut rows).await;
    }
    if wanted("files") {
        files(&mut rows).await;
    }
    if wanted("bridge") {
        bridged(&mut rows).await;
    }
    if wanted("confine") {
        confined(&mut rows).await;
    }
    if wanted("serve") {
        served::all(&mut rows).await;
    }
    if wanted("runs") {
        runs::all(&mut rows).await;
    }
    if wanted("hook") {
        hooks(&mut rows).await;
    }
    if wanted("command") {
        command(&mut rows).await;
    }
    if wanted("many") {
        many(&mut rows).await;
    }
    rows
}

// --- The bare side ---------------------------------------------------------

struct WasiState {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for WasiState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

struct BareWasmtime {
    engine: Engine,
    pre: InstancePre<WasiState>,
    tools: bare::GuestIndices,
}

fn bare_config(pool: bool) -> wasmtime::Config {
    let mut config = wasmtime::Config::new();
    config.epoch_interruption(true).generate_address_map(false);
    if pool {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_core_instances(POOL)
            .total_component_instances(POOL)
            .total_memories(POOL)
            .total_tables(POOL * 2)
            .total_stacks(POOL)
            .max_unused_warm_slots(POOL)
            .max_memory_size(256 << 20)
            .max_core_instances_per_component(64)
            .max_memories_per_component(16)
            .max_tables_per_component(64)
            .max_core_instance_size(4 << 20)
            .max_component_instance_size(4 << 20)
            .table_elements(100_000)
            .linear_memory_keep_resident(2 << 20)
            .table_keep_resident(64 << 10)
            .async_stack_keep_resident(64 << 10)
            .pagemap_scan(Enabled::Auto);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    config
}

impl BareWasmtime {
    fn new(pool: bool, wasm: &[u8]) -> Self {
        let engine = Engine::new(&bare_config(pool)).expect("the engine is set up");
        let component = Component::new(&engine, wasm).expect("the component compiles");
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI is linked");
        wasmtime_wasi::p3::add_to_linker(&mut linker).expect("WASI is linked");
        let pre = linker.instantiate_pre(&component).expect("the component is linked");
        let tools = bare::GuestIndices::new(&pre).expect("it has tools");
        Self { engine, pre, tools }
    }

    fn store(&self) -> Store<WasiState> {
        self.store_with(WasiCtx::builder().build())
    }

    fn store_with(&self, wasi: WasiCtx) -> Store<WasiState> {
        let state = WasiState { wasi, table: ResourceTable::new() };
        let mut store = Store::new(&self.engine, state);
        store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
        store.set_epoch_deadline(1);
        store
    }

    async fn instance(&self) -> (Store<WasiState>, bare::Guest) {
        let mut store = self.store();
        let instance = self.pre.instantiate_async(&mut store).await.expect("it is instantiated");
        let tools = self.tools.load(&mut store, &instance).expect("it has tools");
        (store, tools)
    }
}

async fn bare_call(store: &mut Store<WasiState>, tools: &bare::Guest) {
    let result = store
        .run_concurrent(async |accessor| {
            let arguments = arguments().to_string();
            tools.call_call_tool(accessor, "slug".into(), arguments, context()).await
        })
        .await;
    black_box(result.expect("the loop runs").expect("no trap").expect("an answer"));
}

fn context() -> bare::CallContext {
    bare::CallContext {
        call_id: "1".into(),
        agent_id: None,
        session_id: None,
        traceparent: None,
        time_left: Some(30_000),
        extra: None,
    }
}

// --- The rows --------------------------------------------------------------

/// After how long a compiled component is known again by its times.
const KNOWN_AFTER: Duration = Duration::from_secs(4);

async fn compile_and_load(rows: &mut Vec<Row>) {
    let wasm = std::fs::read(guests::TEXT_TOOLS).expect("the guest was built");
    let config =
        Config::parse(&format!("plugins.wasm = [{:?}]", guests::TEXT_TOOLS), "/tenon.toml")
            .unwrap();
    let sources = Sources { configs: vec![config], ..Sources::default() };
    let cache = TempDir::new().unwrap();
    let host_environment =
        HostEnvironment { cache: Some(cache.path().into()), ..HostEnvironment::default() };
    let loader = |host_environment: &HostEnvironment| {
        BenchLoader::new(Allocation::OnDemand, host_environment)
    };
    let load = |loader: &BenchLoader| {
        let candidate = discover(&sources).candidates.remove(0);
        loader.load(admit(candidate, &Rules::default()).unwrap());
    };

    let without_cache = loader(&HostEnvironment::default());
    let engine = Engine::new(&bare_config(false)).unwrap();
    let times = versus(
        5,
        1,
        async || load(&without_cache),
        async || drop(black_box(Component::new(&engine, &wasm).unwrap())),
    )
    .await;
    rows.push(Row::new("discover, admit, compile, link", times, "Component::new"));

    let with_cache = loader(&host_environment);
    load(&with_cache);
    // As it is after the first start: what was compiled is known again, and is not read any more.
    std::thread::sleep(KNOWN_AFTER);
    load(&with_cache);
    let file = cache.path().join("bare.cwasm");
    std::fs::write(&file, Component::new(&engine, &wasm).unwrap().serialize().unwrap()).unwrap();
    let bare = async || {
        // SAFETY: the file was written a moment ago by this engine.
        drop(black_box(unsafe { Component::deserialize_file(&engine, &file) }.unwrap()));
    };
    let times = versus(20, 20, async || load(&with_cache), bare).await;
    rows.push(Row::new("the same from the cache", times, "deserialize_file"));
}

async fn platform(configuration: &str, allocation: Allocation) -> Platform {
    builder(configuration, allocation).build().await.expect("the platform is built")
}

fn builder(configuration: &str, allocation: Allocation) -> Builder {
    let config = Config::parse(configuration, "/tenon.toml").expect("the configuration is read");
    let host_environment = HostEnvironment { cache: None, ..HostEnvironment::of_process() };
    Platform::builder().host_environment(host_environment).allocation(allocation).config(config)
}

async fn calls(rows: &mut Vec<Row>) {
    let wasm = std::fs::read(guests::TEXT_TOOLS).expect("the guest was built");
    let entry = |id: &str, mode: &str| {
        format!("{{ path = {:?}, id = {id:?}, instance = {mode:?} }}", guests::TEXT_TOOLS)
    };
    for pool in [true, false] {
        let bare = BareWasmtime::new(pool, &wasm);
        let allocation =
            if pool { Allocation::Pool { instances: POOL } } else { Allocation::OnDemand };
        let configuration =
            format!("plugins.wasm = [{}, {}]", entry("shared", "shared"), entry("fresh", "fresh"));
        let platform = platform(&configuration, allocation).await;

        if pool {
            let instantiate =
                measure(30, 100, async || drop(black_box(bare.instance().await))).await;
            let what = "instance from a pool, for comparison".to_string();
            let instance = Some(("store and instance", instantiate));
            rows.push(Row { what, ours: None, bare: instance });
            let (mut store, tools) = bare.instance().await;
            let times = versus(
                50,
                1_000,
                async || ours(&platform, "shared__slug").await,
                async || bare_call(&mut store, &tools).await,
            )
            .await;
            rows.push(Row::new("call, shared instance", times, "call_concurrent"));
            let state = TempDir::new().unwrap();
            let recorded = builder(&configuration, allocation).state(state.path());
            let recorded = recorded.build().await.expect("the platform is built");
            let times = versus(
                50,
                1_000,
                async || ours(&recorded, "shared__slug").await,
                async || bare_call(&mut store, &tools).await,
            )
            .await;
            recorded.shutdown().await;
            rows.push(Row::new("the same, with a record of each call", times, "call_concurrent"));
        }
        let times = versus(
            50,
            100,
            async || ours(&platform, "fresh__slug").await,
            async || {
                let (mut store, tools) = bare.instance().await;
                bare_call(&mut store, &tools).await;
            },
        )
        .await;
        let what =
            if pool { "call, fresh instance, pool" } else { "call, fresh instance, on demand" };
        rows.push(Row::new(what, times, "the same, bare"));
        platform.shutdown().await;
    }
}

async fn ours(platform: &Platform, name: &str) {
    black_box(platform.call(Call::new(name, arguments())).await.expect("an answer"));
}

/// Reads a small file many times in one call, through the guest's own standard library and both
/// editions of WASI; beside it the same component with a plain preopened folder.
async fn files(rows: &mut Vec<Row>) {
    /// How often one call reads.
    const READS: u32 = 100;
    let folder = TempDir::new().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let file = base.join("a/b/notes.txt");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "granted: a few words").unwrap();
    let manifest = format!(
        "plugin.id = \"e\"\n\
         runtime = {{ kind = \"wasm\", path = \"e.wasm\", instance = \"shared\" }}\n\
         capabilities.filesystem = [\"read:{}/**/*.txt\"]",
        base.display()
    );
    std::fs::create_dir_all(base.join("own/e")).unwrap();
    std::fs::copy(guests::ESCAPE, base.join("own/e/e.wasm")).unwrap();
    std::fs::write(base.join("own/e/plugin.toml"), manifest).unwrap();
    let configuration = format!("plugins.folders = [{:?}]", base.join("own"));
    let builder = builder(&configuration, Allocation::OnDemand).approver(GrantAll);
    let platform = builder.build().await.expect("the platform is built");

    let bare = BareWasmtime::new(false, &std::fs::read(guests::ESCAPE).unwrap());
    let mut wasi = WasiCtx::builder();
    let name = base.to_str().unwrap();
    wasi.preopened_dir(&base, name, FsPerms::ReadOnly).expect("the folder is there");
    let mut store = bare.store_with(wasi.build());
    let instance = bare.pre.instantiate_async(&mut store).await.expect("it is instantiated");
    let tools = bare.tools.load(&mut store, &instance).expect("it has tools");

    for (edition, what) in [
        ("std", "open and read a small file, std::fs"),
        ("0.2", "the same, WASI 0.2"),
        ("0.3", "the same, WASI 0.3"),
    ] {
        let arguments = || json!({ "edition": edition, "path": file, "rounds": READS });
        let times = versus(
            30,
            5,
            async || {
                let call = Call::new("e__attempts", arguments());
                let said = platform.call(call).await.expect("an answer").plain_text();
                assert_eq!(said, format!("0 of {READS} and 0 refused"));
            },
            async || {
                let context = context();
                let called = store.run_concurrent(async |accessor| {
                    let arguments = arguments().to_string();
                    tools.call_call_tool(accessor, "attempts".into(), arguments, context).await
                });
                let answer = called.await.expect("the loop runs").expect("no trap");
                assert_eq!(
                    bare::text_of(answer.expect("an answer")),
                    format!("0 of {READS} and 0 refused")
                );
            },
        )
        .await;
        let (ours, beside) = times;
        rows.push(Row::new(what, (ours / READS, beside / READS), "wasmtime-wasi"));
    }
    platform.shutdown().await;
}

async fn bridged(rows: &mut Vec<Row>) {
    // What waking another core costs depends on which one a server happens to be on, and is more than
    // what is measured.
    let one = CorePinGuard::new();
    let on = if one.is_some() { ", on one core" } else { "" };
    for (what, server) in SERVERS {
        let platform = bridge(server).await;
        let client = rmcp_client(server).await;
        let times =
            versus(150, 100, async || echo(&platform).await, async || rmcp_echo(&client).await)
                .await;
        client.cancel().await.expect("the client ends");
        platform.shutdown().await;
        rows.push(Row::new(format!("{what}{on}"), times, "rmcp client"));
    }

    let mut cat = tokio::process::Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("cat starts");
    let mut input = cat.stdin.take().unwrap();
    let mut output = BufReader::new(cat.stdout.take().unwrap());
    let line = format!("{}\n", arguments());
    let mut back = String::new();
    let pipe = measure(30, 200, async || {
        input.write_all(line.as_bytes()).await.unwrap();
        back.clear();
        output.read_line(&mut back).await.unwrap();
    })
    .await;
    let what = format!("a line through cat and back, for comparison{on}");
    rows.push(Row { what, ours: None, bare: Some(("pipes", pipe)) });
}

/// What it costs that a server is confined: until it is ready, with all that its host does for that, and for a call.
async fn confined(rows: &mut Vec<Row>) {
    let Some(launcher) = built("tenon-launcher") else { return };
    let server = env!("CARGO_BIN_EXE_demo-server");
    // The bridge is compiled once.
    let cache = TempDir::new().expect("there is room for a folder");
    let host_environment = HostEnvironment {
        cache: Some(cache.path().join("tenon")),
        ..HostEnvironment::of_process()
    };
    let platform = async |capabilities: &str| {
        let entry =
            format!("plugins.mcp = [{{ name = \"s\", command = {server:?}{capabilities} }}]");
        let builder = builder(&entry, Allocation::OnDemand).server_launcher(&launcher);
        let builder = builder.host_environment(host_environment.clone());
        let platform = builder.start_servers().build().await.expect("the platform is built");
        let report = platform.server("s").expect("it has started");
        let is_confined = report.confinement.is_some_and(|of| of.is_confined);
        assert_eq!(is_confined, !capabilities.is_empty(), "this system confines");
        platform
    };
    let start = async |capabilities: &str| platform(capabilities).await.shutdown().await;
    const CONFINED: &str = ", capabilities = {}";
    let times = versus(40, 1, async || start(CONFINED).await, async || start("").await).await;
    rows.push(Row::new("a server starts and ends, confined", times, "unconfined"));
    // As for any bridged call.
    let one = CorePinGuard::new();
    let on = if one.is_some() { ", on one core" } else { "" };
    let (ours, bare) = (platform(CONFINED).await, platform("").await);
    let times = versus(100, 100, async || echo(&ours).await, async || echo(&bare).await).await;
    rows.push(Row::new(format!("bridged call, server confined{on}"), times, "unconfined"));
    ours.shutdown().await;
    bare.shutdown().await;
}

/// This thread is kept on one core, with all that it starts meanwhile.
struct CorePinGuard {
    #[cfg(target_os = "linux")]
    before: CpuSet,
}

#[cfg(target_os = "linux")]
impl CorePinGuard {
    /// Nothing, where the system does not let it.
    fn new() -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        sched_setaffinity(None, &one).ok()?;
        Some(Self { before })
    }
}

#[cfg(target_os = "linux")]
impl Drop for CorePinGuard {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(not(target_os = "linux"))]
impl CorePinGuard {
    fn new() -> Option<Self> {
        None
    }
}

/// A platform whose one plugin is a server.
async fn bridge(server: &str) -> Platform {
    let config = format!("plugins.mcp = [{{ name = \"s\", command = {server:?} }}]");
    platform(&config, Allocation::OnDemand).await
}

async fn echo(platform: &Platform) {
    let call = Call::new("s__echo", arguments());
    black_box(platform.call(call).await.expect("an answer"));
}

type Client = rmcp::service::RunningService<rmcp::RoleClient, ()>;

async fn rmcp_client(server: &str) -> Client {
    let command = tokio::process::Command::new(server);
    ().serve(TokioChildProcess::new(command).expect("the server starts")).await.expect("it answers")
}

async fn rmcp_echo(client: &Client) {
    let Value::Object(arguments) = arguments() else { unreachable!("they are an object") };
    let mut params = CallToolRequestParams::new("echo");
    params.arguments = Some(arguments);
    black_box(client.call_tool(params).await.expect("an answer"));
}

async fn hooks(rows: &mut Vec<Row>) {
    const SCRIPT: &str = "fn BeforePlan(context) { context.goal += \"!\"; context.steps = 3; }";
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("h.rhai"), SCRIPT).unwrap();
    let config =
        Config::parse("plugins.scripts = [\"h.rhai\"]", folder.path().join("tenon.toml")).unwrap();
    let platform = Platform::builder()
        .host_environment(HostEnvironment::default())
        .config(config)
        .build()
        .await
        .unwrap();
    let context = || -> Value {
        (0..9)
            .map(|i| (format!("member{i}"), json!(i)))
            .chain([("goal".into(), json!("tidy"))])
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let ours = async || {
        let caller = Caller::default();
        black_box(platform.fire(&HookPoint::BeforePlan, context(), &caller).await.unwrap());
    };
    let engine = rhai::Engine::new();
    let ast = engine.compile(SCRIPT).unwrap();
    let bare = async || {
        let value: Value = serde_json::from_str(&context().to_string()).unwrap();
        let context = rhai::serde::to_dynamic(value).unwrap().into_shared();
        let options = rhai::CallFnOptions::new().eval_ast(false);
        let mut scope = rhai::Scope::new();
        let _ = engine
            .call_fn_with_options::<rhai::Dynamic>(
                options,
                &mut scope,
                &ast,
                "BeforePlan",
                (context.clone(),),
            )
            .unwrap();
        let back: Value = rhai::serde::from_dynamic(&context.flatten()).unwrap();
        black_box(back.to_string());
    };
    let times = versus(30, 200, ours, bare).await;
    rows.push(Row::new("hook in a Rhai script", times, "rhai, from JSON and back"));
}

/// A program of the command's package, if it was built.
fn built(name: &str) -> Option<PathBuf> {
    let bench = std::env::current_exe().expect("a program has a path");
    let program = bench.ancestors().nth(2).map(|folder| folder.join(name));
    program.filter(|path| path.exists())
}

/// The command from its start to its end, with a component that was compiled before.
async fn command(rows: &mut Vec<Row>) {
    let Some(tenon) = built("tenon") else { return };
    let folder = TempDir::new().unwrap();
    std::fs::write(
        folder.path().join("tenon.toml"),
        format!("plugins.wasm = [{:?}]", guests::TEXT_TOOLS),
    )
    .unwrap();
    let run = |program: &Path, arguments: &[&str]| {
        let output = std::process::Command::new(program)
            .args(arguments)
            .current_dir(folder.path())
            .env("XDG_CACHE_HOME", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .env("XDG_STATE_HOME", folder.path())
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&tenon, &["trust", "--yes"]);
    let times = versus(
        20,
        5,
        async || run(&tenon, &["call", "text_tools__slug", &arguments().to_string()]),
        async || run(&tenon, &["--version"]),
    )
    .await;
    rows.push(Row::new("`tenon call`, start to end, cached", times, "`tenon --version`"));
}

/// How many plugins there are in [`many`], and how many of them are faulty.
const MANY: (usize, usize) = (500, 50);

/// A folder with many plugins: components, scripts, and some that are broken in different ways.
/// They are discovered, admitted, loaded from the cache and registered; and one that only waits
/// takes so much memory.
async fn many(rows: &mut Vec<Row>) {
    let folder = TempDir::new().unwrap();
    let wasm = std::fs::read(guests::TEXT_TOOLS).expect("the guest was built");
    let (all, faulty) = MANY;
    for i in 0..all {
        let plugin = folder.path().join(format!("plugins/p{i}"));
        std::fs::create_dir_all(&plugin).unwrap();
        let (kind, file) = if i / 2 % 2 == 0 { ("wasm", "p.wasm") } else { ("rhai", "p.rhai") };
        let mut manifest =
            format!("plugin.id = \"p{i}\"\nruntime = {{ kind = {kind:?}, path = {file:?} }}\n");
        let script = format!("tool(#{{ name: \"t\", description: \"d\" }}, |a| {i});");
        // Each component is another one.
        let own = [&wasm[..], &[0, 5, 1, b'v', (i >> 8) as u8, i as u8, 0]].concat();
        let (mut script, mut own) = (script.into_bytes(), own);
        if i % (all / faulty) == 0 {
            match i / (all / faulty) % 5 {
                0 => manifest.push_str("capabilities.network = [\"https://x/*\"]\n"),
                1 => manifest.push_str("plugin.nmae = 3\n"),
                2 => manifest.push_str("requires.env = [\"NOT_SET\"]\n"),
                3 => own.truncate(100),
                _ => own = Vec::new(),
            }
            script.truncate(9);
        }
        std::fs::write(plugin.join("plugin.toml"), manifest).unwrap();
        std::fs::write(plugin.join(file), if kind == "wasm" { own } else { script }).unwrap();
    }
    let host_environment =
        HostEnvironment { cache: Some(folder.path().join("cache")), ..HostEnvironment::default() };
    let config = format!("plugins.folders = [{:?}]", folder.path().join("plugins"));
    let build = async || {
        let config = Config::parse(&config, folder.path().join("tenon.toml")).unwrap();
        let builder = Platform::builder().host_environment(host_environment.clone()).config(config);
        builder.build().await.expect("the platform is built")
    };
    for pause in [Duration::ZERO, KNOWN_AFTER] {
        std::thread::sleep(pause);
        let platform = build().await;
        let ready = platform.registry().plugins().len();
        assert_eq!(ready, all - faulty, "{:?}", platform.diagnostics());
        platform.shutdown().await;
    }
    let mut times = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let platform = build().await;
        times.push(began.elapsed());
        platform.shutdown().await;
    }
    let what = "500 plugins, 50 of them faulty, from cache".to_string();
    rows.push(Row { what, ours: Some(median(times)), bare: None });
}
