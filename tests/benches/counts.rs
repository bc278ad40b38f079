//! What the paths that a host takes most often do, in instructions and allocations: counts are the same on a busy
//! machine and a slow one, so that a change which makes one of them longer is noticed.
//!
//! Each path is run in a process of its own, a few times in a row, and the shortest run counts: what happens now and
//! then (an epoch that ends, a table that grows) is in the others. Instructions are counted by valgrind's callgrind, on
//! the thread that calls, if it is there, and allocations without it. `--check` compares what was counted with
//! what `counts.json` says, and `--update` writes it there. The counts belong to the build that tests use.

#![allow(clippy::print_stdout)]

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use tempfile::TempDir;
use tenon_config::admit::{Rules, admit};
use tenon_config::discover::{Sources, discover};
use tenon_host::testing::BenchLoader;
use tenon_host::types::HookPoint;
use tenon_host::{Allocation, Builder, Call, Caller, Config, HostEnvironment, Platform};
use tenon_serve::{AllClientFeatures, Server, Settings};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::runtime::Runtime;

use table::Table;

mod table;

mod guests {
    #![allow(dead_code)]
    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

// --- Counting allocations ---------------------------------------------------

/// The system's allocator, which counts what the thread that calls allocates.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// How often this thread has allocated, and how many bytes.
    static ALLOCATED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

fn count(bytes: usize) {
    // A thread that ends allocates, too.
    let _ = ALLOCATED.try_with(|allocated| {
        let (times, before) = allocated.get();
        allocated.set((times + 1, before + bytes as u64));
    });
}

// SAFETY: the system's allocator does all of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller has it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller has it.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as the caller has it.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller has it.
        unsafe { System.dealloc(block, layout) }
    }
}

// --- The paths --------------------------------------------------------------

/// Goes a path once.
type Step = Box<dyn FnMut(&Runtime)>;

/// Makes all that a path needs: files in a folder of its own.
type Prepare = fn(&Runtime, &Path) -> Step;

/// The paths, by what each does.
const PATHS: [(&str, Prepare); 12] = [
    ("call, shared instance", |runtime, _| call(runtime, &component("shared"), "p__slug")),
    ("the same, with a record of each call", recorded_call),
    ("call, fresh instance on demand", |runtime, _| call(runtime, &component("fresh"), "p__slug")),
    ("call, fresh instance from a pool", |runtime, _| {
        let pool = Allocation::Pool { instances: 4 };
        call_of(runtime.block_on(built(builder(&component("fresh")).allocation(pool))), "p__slug")
    }),
    ("call, Rhai script", |runtime, folder| {
        write(folder, "p.rhai", "tool(#{ name: \"slug\", description: \"d\" }, |a| a.text);");
        call(runtime, &format!("plugins.scripts = [{:?}]", folder.join("p.rhai")), "p__slug")
    }),
    ("call, shared instance, between two hooks in a script", |runtime, folder| {
        write(folder, "h.rhai", "fn BeforeToolCall(c) { c.seen = 1; } fn AfterToolCall(c) { }");
        let script = format!("plugins.scripts = [{:?}]", folder.join("h.rhai"));
        call(runtime, &format!("{script}\n{}", component("shared")), "p__slug")
    }),
    ("call, MCP server behind the bridge", |runtime, _| {
        let server = env!("CARGO_BIN_EXE_demo-server");
        let servers = format!("plugins.mcp = [{{ name = \"p\", command = {server:?} }}]");
        let platform = runtime.block_on(built(builder(&servers)));
        // It answers when the host waits already: else it were another number of polls now and then.
        call_with(platform, "p__delay", json!({ "text": TEXT, "millis": 50 }))
    }),
    ("hook in a Rhai script", hook),
    ("request of an MCP client, shared instance", request),
    ("load a component from the cache", load),
    ("read a configuration with 100 plugins", |_, _| {
        let entries: String =
            (0..100).map(|i| format!("{{ path = \"p{i}.wasm\", id = \"i{i}\" }},\n")).collect();
        let text = format!("plugins.wasm = [{entries}]");
        Box::new(move |_| {
            drop(black_box(Config::parse(&text, "/tenon.toml").expect("it is right")))
        })
    }),
    ("find one of 1,000 tools", |runtime, folder| {
        let tools: String = (0..1_000)
            .map(|i| format!("tool(#{{ name: \"t{i}\", description: \"d\" }}, |a| 1);\n"))
            .collect();
        write(folder, "p.rhai", &tools);
        let scripts = format!("plugins.scripts = [{:?}]", folder.join("p.rhai"));
        let platform = runtime.block_on(built(builder(&scripts)));
        Box::new(move |_| {
            black_box(platform.registry().tool("p__t777").expect("it is there"));
        })
    }),
];

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("the folder is writable");
}

/// A configuration with a component.
fn component(instance: &str) -> String {
    format!(
        "plugins.wasm = [{{ path = {:?}, id = \"p\", instance = {instance:?} }}]",
        guests::TEXT_TOOLS
    )
}

/// With what every path was compiled before, in a cache that they share.
fn environment() -> HostEnvironment {
    let cache = std::env::var_os(CACHE).map(PathBuf::from);
    HostEnvironment { cache, ..HostEnvironment::of_process() }
}

fn builder(configuration: &str) -> Builder {
    let config = Config::parse(configuration, "/tenon.toml").expect("the configuration is read");
    let builder = Platform::builder().host_environment(environment());
    builder.allocation(Allocation::OnDemand).config(config)
}

async fn built(builder: Builder) -> Platform {
    let platform = builder.build().await.expect("the platform is built");
    assert!(platform.diagnostics().is_empty(), "{:?}", platform.diagnostics());
    platform
}

fn call(runtime: &Runtime, configuration: &str, tool: &'static str) -> Step {
    call_of(runtime.block_on(built(builder(configuration))), tool)
}

/// What tools are called with.
const TEXT: &str = "The quick brown fox jumps over the lazy dog";

fn call_of(platform: Platform, tool: &'static str) -> Step {
    call_with(platform, tool, json!({ "text": TEXT }))
}

fn call_with(platform: Platform, tool: &'static str, arguments: Value) -> Step {
    Box::new(move |runtime| {
        let call = platform.call(Call::new(tool, arguments.clone()));
        let result = runtime.block_on(call).expect("an answer");
        assert!(!black_box(result).plain_text().is_empty());
    })
}

fn recorded_call(runtime: &Runtime, folder: &Path) -> Step {
    let builder = builder(&component("shared")).state(folder);
    call_of(runtime.block_on(built(builder)), "p__slug")
}

fn hook(runtime: &Runtime, folder: &Path) -> Step {
    write(folder, "h.rhai", "fn BeforePlan(context) { context.goal += \"!\"; }");
    let scripts = format!("plugins.scripts = [{:?}]", folder.join("h.rhai"));
    let platform = runtime.block_on(built(builder(&scripts)));
    Box::new(move |runtime| {
        let context = json!({ "goal": "tidy", "a": 1, "b": 2, "c": 3, "d": 4, "e": 5 });
        let caller = Caller::default();
        let fired = runtime.block_on(platform.fire(&HookPoint::BeforePlan, context, &caller));
        assert_eq!(black_box(fired).expect("it runs").context["goal"], "tidy!");
    })
}

/// A call as an MCP client makes it, over streams within the process.
fn request(runtime: &Runtime, _: &Path) -> Step {
    let builder = builder(&component("shared")).client_features(AllClientFeatures);
    let platform = runtime.block_on(built(builder));
    let _within = runtime.enter();
    let server = Server::new(platform, Settings::default()).expect("the settings are right");
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    runtime.spawn(async move {
        server.serve_lines(None, BufReader::new(input), output, std::future::pending()).await
    });
    let (answers, mut requests) = tokio::io::split(ours);
    let mut answers = BufReader::new(answers).lines();
    let client = json!({ "name": "counts", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    runtime.block_on(async {
        requests.write_all(format!("{begin}\n{begun}\n").as_bytes()).await.expect("it is read");
        answers.next_line().await.expect("it answers").expect("it is there");
    });
    let params = json!({ "name": "p__slug", "arguments": { "text": "The quick brown fox" } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let call = format!("{call}\n");
    Box::new(move |runtime| {
        let answer = runtime.block_on(async {
            requests.write_all(call.as_bytes()).await.expect("it is read");
            answers.next_line().await.expect("it answers").expect("it is there")
        });
        assert!(black_box(answer).contains("the-quick-brown-fox"));
    })
}

fn load(_: &Runtime, _: &Path) -> Step {
    let config = Config::parse(&component("fresh"), "/tenon.toml").expect("it is right");
    let sources = Sources { configs: vec![config], ..Sources::default() };
    let loader = BenchLoader::new(Allocation::OnDemand, &environment());
    Box::new(move |_| {
        let candidate = discover(&sources).candidates.remove(0);
        loader.load(admit(candidate, &Rules::default()).expect("it is admitted"));
    })
}

// --- Counting ---------------------------------------------------------------

/// Names the folder of what was compiled.
const CACHE: &str = "TENON_BENCH_CACHE";

/// Comes before the name of the path that a process is to go.
const RUN: &str = "--run";

/// How often a path is gone before it is counted, and how often it is counted.
const BEFORE: u32 = 20;
const COUNTED: u32 = 20;

/// What a path takes, at least.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Count {
    /// Instructions of the thread that calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    /// How often that thread allocates.
    allocations: u64,
    /// How much it allocates, in bytes.
    bytes: u64,
}

/// Goes a path once. Callgrind counts what happens in here, and writes it down at its end.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn tenon_counted_step(step: &mut Step, runtime: &Runtime) {
    step(runtime);
}

/// Goes a path some times in a process of its own, and prints what it allocated at least.
fn run(name: &str) {
    // What is done on this thread is counted.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the runtime starts");
    let folder = TempDir::new().expect("there is room for a folder");
    let (_, prepare) = PATHS.iter().find(|(of, _)| *of == name).expect("it is one of the paths");
    let mut step = prepare(&runtime, folder.path());
    for _ in 0..BEFORE {
        step(&runtime);
    }
    let each = (0..COUNTED).map(|_| {
        let before = ALLOCATED.get();
        tenon_counted_step(&mut step, &runtime);
        let after = ALLOCATED.get();
        (after.0 - before.0, after.1 - before.1)
    });
    let (allocations, bytes) = each.min().expect("it was counted");
    println!("{allocations} {bytes}");
}

/// Runs this program on a path, with its instructions counted if there is something that counts.
fn counted(name: &str, cache: &Path, in_valgrind: bool) -> Count {
    let this = std::env::current_exe().expect("a program has a path");
    let folder = TempDir::new().expect("there is room for a folder");
    let mut command = match in_valgrind {
        false => Command::new(&this),
        true => {
            let mut command = Command::new("valgrind");
            command.args(["--tool=callgrind", "--collect-atstart=no", "--quiet"]);
            command.args(
                ["toggle-collect", "dump-after"].map(|of| format!("--{of}=tenon_counted_step")),
            );
            command
                .arg(format!("--callgrind-out-file={}", folder.path().join("counted").display()));
            command.arg(&this);
            command
        }
    };
    let output = command.args([RUN, name]).env(CACHE, cache).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    let (allocations, bytes) = text.trim().split_once(' ').expect("it says two numbers");
    let number = |text: &str| text.parse().expect("it is a number");
    let dumps = std::fs::read_dir(folder.path()).expect("the folder is there");
    let totals = dumps.filter_map(|dump| total(&dump.expect("it is readable").path()));
    Count { instructions: totals.min(), allocations: number(allocations), bytes: number(bytes) }
}

/// How many instructions a dump of callgrind counts: <https://valgrind.org/docs/manual/cl-format.html>.
fn total(dump: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(dump).expect("it is text");
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "))?;
    total.trim().parse().ok().filter(|total| *total > 0)
}

// --- Comparing --------------------------------------------------------------

/// By what part a count may differ from the one that is written down.
const TOLERANCE: f64 = 0.03;

/// What is counted for each path.
type Counts = BTreeMap<String, Count>;

/// Where the counts are written down.
fn written_down() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/counts.json")
}

impl Count {
    fn figures(&self) -> [(&'static str, Option<u64>); 3] {
        [
            ("instructions", self.instructions),
            ("allocations", Some(self.allocations)),
            ("bytes", Some(self.bytes)),
        ]
    }
}

/// What differs by more than it may, in a line each.
fn differences(now: &Counts, before: &Counts) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, count) in now {
        let Some(known) = before.get(name) else {
            lines.push(format!("{name}: it is not written down"));
            continue;
        };
        for ((what, now), (_, before)) in count.figures().into_iter().zip(known.figures()) {
            // Where there is nothing that counts instructions, they are not compared.
            let Some((now, before)) = now.zip(before) else { continue };
            let change = (now as f64 - before as f64) / before.max(1) as f64;
            if change.abs() > TOLERANCE {
                let percent = change * 100.0;
                lines.push(format!("{name}: {now} {what} instead of {before}, {percent:+.1} %"));
            }
        }
    }
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    lines.extend(gone.map(|name| format!("{name}: it is written down, and no path any more")));
    lines
}

/// Counts all paths, and prints what was counted.
fn count_all() -> Counts {
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    let cache = TempDir::new().expect("there is room for a folder");
    let columns = ["path", "instructions", "allocations", "allocated"];
    let mut table = Table::new("What is done once on a path", columns);
    let mut counts = Counts::new();
    for (name, _) in PATHS {
        // The first time what it needs is compiled.
        counted(name, cache.path(), false);
        let mut count = counted(name, cache.path(), false);
        if has_valgrind {
            // It is so slow that each run has moments in it that come by the clock, and allocate.
            count.instructions = counted(name, cache.path(), true).instructions;
        }
        let instructions = count.instructions.map(|count| count.to_string()).unwrap_or_default();
        let (allocations, bytes) = (count.allocations.to_string(), format!("{} B", count.bytes));
        table.row([name.into(), instructions, allocations, bytes]);
        counts.insert(name.into(), count);
    }
    table.print();
    counts
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // `cargo test --benches` passes this; there is nothing to test here.
    if has("--test") {
        return ExitCode::SUCCESS;
    }
    if let [first, name] = &arguments[..]
        && first == RUN
    {
        run(name);
        return ExitCode::SUCCESS;
    }
    let now = count_all();
    let file = written_down();
    if has("--update") {
        let text = serde_json::to_string_pretty(&now).expect("it has a form in JSON");
        std::fs::write(&file, text + "\n").expect("the file is writable");
    }
    if has("--check") {
        let text = std::fs::read_to_string(&file).expect("the counts are written down");
        let before = serde_json::from_str(&text).expect("they are as they were written");
        let differences = differences(&now, &before);
        if !differences.is_empty() {
            println!("{}", differences.join("\n"));
            println!("If this is meant, `cargo xtask counts --update` writes it down.");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
