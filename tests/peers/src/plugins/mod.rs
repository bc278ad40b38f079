//! Plugins in the process of their host: Tenon, wasmtime alone, and Extism.
//!
//! All of them get the arguments as JSON, which the plugin reads, and answer with the text. What differs:
//!
//! * Tenon's side is a whole call, with hooks, checks of arguments and result against their schemas, a deadline and
//!   limits, masking and usage. wasmtime alone does nothing of that. Extism has a deadline where one is set, which none
//!   is here, and checks no schema.
//! * Tenon and wasmtime call a component asynchronously, and an instance that is kept takes several calls at once.
//!   Extism calls a core module synchronously, one call at a time.
//! * For each call, Extism tells a thread of its own that a call begins and ends, which runs on another core.
//! * The component has the standard library's WASI in it. The module of Extism has none, and is smaller.

mod extism;
mod tenon;
mod wasmtime;

use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

use crate::format::{time, times};
use crate::rounds::{ComparedSides, SelfTimedWork, Work};
use crate::table::Table;

/// The component of Tenon and wasmtime, and the module of Extism.
const COMPONENT: &str = env!("ECHO_COMPONENT");
const MODULE: &str = env!("ECHO_EXTISM");

/// How many instances there are in a pool.
const POOL: u32 = 256;

/// How often each side has its turn, and for how long.
const ROUNDS: usize = 51;
const ROUND: Duration = Duration::from_millis(20);

/// How often each side starts.
const STARTS: usize = 21;

/// After how long Tenon knows what it compiled by the times of the file.
const KNOWN_AFTER: Duration = Duration::from_secs(4);

/// Prints what a call costs, and a start.
pub(crate) async fn print() {
    print_kept().await;
    print_fresh().await;
    print_starts().await;
}

fn table(title: &str, measured: &[(String, Duration)]) {
    let mut table = Table::new(title, ["side", "time", "× Tenon"]);
    let (_, tenon) = measured[0];
    for (name, taken) in measured {
        table.row([name.clone(), time(*taken), times(*taken, tenon)]);
    }
    table.print();
}

async fn print_kept() {
    let folder = TempDir::new().expect("there is room for a folder");
    let host = tenon::platform(&tenon::entries(folder.path()), None).await;
    let wasmtime = wasmtime::Host::new(wasmtime::engine(), wasmtime::compiled);
    let mut instance = wasmtime.instance().await;
    let compiled = extism::compiled(None);
    let mut plugin = extism::plugin(&compiled);
    let mut sides = ComparedSides::default();
    sides.add("Tenon, component", Work(async || tenon::echo(&host, tenon::SHARED).await));
    sides.add("Tenon, script in Rhai", Work(async || tenon::echo(&host, tenon::SCRIPT).await));
    sides.add("wasmtime, component", Work(async || instance.echo().await));
    sides.add("Extism", Work(async || extism::echo(&mut plugin)));
    let measured = sides.measure(ROUNDS, ROUND).await;
    table("Call of a plugin whose instance is kept", &measured);
    host.shutdown().await;
}

async fn print_fresh() {
    let folder = TempDir::new().expect("there is room for a folder");
    let host = tenon::platform(&tenon::entries(folder.path()), None).await;
    let wasmtime = wasmtime::Host::new(wasmtime::engine(), wasmtime::compiled);
    let [pool, on_demand] = [Some(POOL), None].map(extism::compiled);
    let mut sides = ComparedSides::default();
    sides.add("Tenon, pool", Work(async || tenon::echo(&host, tenon::FRESH).await));
    sides.add("wasmtime, pool", Work(async || wasmtime.instance().await.echo().await));
    sides.add("Extism, pool", Work(async || extism::echo(&mut extism::plugin(&pool))));
    sides.add(
        "Extism, as it is by default",
        Work(async || extism::echo(&mut extism::plugin(&on_demand))),
    );
    let measured = sides.measure(ROUNDS, ROUND).await;
    table("Call of a plugin that has a new instance for each call", &measured);
    host.shutdown().await;
}

/// From nothing in memory to the first answer: with what each keeps of a compilation, and without.
async fn print_starts() {
    let folder = TempDir::new().expect("there is room for a folder");
    let (cache, entry) = (folder.path().join("tenon"), tenon::entry());
    let tenon = async |cache: Option<&Path>| {
        let began = Instant::now();
        let host = tenon::platform(&entry, cache).await;
        tenon::echo(&host, tenon::FRESH).await;
        let taken = began.elapsed();
        host.shutdown().await;
        taken
    };
    let file = folder.path().join("echo.cwasm");
    wasmtime::precompile(&file);
    let wasmtime = async |file: Option<&Path>| {
        let began = Instant::now();
        let host = wasmtime::Host::new(wasmtime::engine(), |engine| match file {
            Some(file) => wasmtime::precompiled(engine, file),
            None => wasmtime::compiled(engine),
        });
        host.instance().await.echo().await;
        began.elapsed()
    };
    let config = extism::cache(folder.path());
    let extism = async |cache: Option<&Path>| {
        let began = Instant::now();
        let mut plugin = extism::start(cache);
        extism::echo(&mut plugin);
        began.elapsed()
    };
    tenon(Some(&cache)).await;
    tokio::time::sleep(KNOWN_AFTER).await;
    let mut sides = ComparedSides::default();
    sides.add("Tenon, its cache", SelfTimedWork(async || tenon(Some(&cache)).await));
    sides.add("wasmtime, `deserialize_file`", SelfTimedWork(async || wasmtime(Some(&file)).await));
    sides.add("Extism, its cache", SelfTimedWork(async || extism(Some(&config)).await));
    let measured = sides.measure(STARTS, ROUND).await;
    table("From the start of a host to the first answer, compiled before", &measured);

    let mut sides = ComparedSides::default();
    sides.add("Tenon", SelfTimedWork(async || tenon(None).await));
    sides.add("wasmtime", SelfTimedWork(async || wasmtime(None).await));
    sides.add("Extism", SelfTimedWork(async || extism(None).await));
    let measured = sides.measure(STARTS / 3, ROUND).await;
    table("The same where nothing was compiled before", &measured);
}
