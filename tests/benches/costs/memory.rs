//! The memory of idle plugins.

use std::path::Path;
use tempfile::TempDir;
use tenon_host::{Config, HostEnvironment, Platform};

use crate::table::Table;
use crate::{guests, ours};

/// Amounts of memory of a process, in KiB, where the system tells.
pub(crate) fn memory<const N: usize>(process: &str, names: [&str; N]) -> Option<[u64; N]> {
    let status = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let found: Option<Vec<u64>> = names.into_iter().map(of).collect();
    found?.try_into().ok()
}

/// The memory of this process that is its own, in KiB: what was written to, and what is mapped from files that nobody
/// else maps, such as cached code.
fn private_memory() -> Option<[u64; 2]> {
    memory("self", ["Private_Dirty:", "Private_Clean:"])
}

/// How many plugins [`measure`] looks at.
const IDLE: usize = 100;

/// Names what a process of its own is to measure: the mode of the instances, and the folder.
pub(crate) const MEASURE: &str = "TENON_BENCH_MEMORY";

/// Prints what idle plugins take: loaded and registered components whose calls have fresh
/// instances, and shared instances that have served a call. Each is measured in a process of its
/// own, in which nothing was freed that could be used again.
pub(crate) fn print() {
    let folder = TempDir::new().unwrap();
    let wasm = std::fs::read(guests::TEXT_TOOLS).expect("the guest was built");
    for i in 0..IDLE {
        let own = [&wasm[..], &[0, 4, 1, b'm', (i >> 8) as u8, i as u8]].concat();
        std::fs::write(folder.path().join(format!("p{i}.wasm")), own).unwrap();
    }
    let columns = ["instances", "written", "mapped"];
    let mut table = Table::new("Memory of an idle component", columns);
    let bench = std::env::current_exe().expect("a program has a path");
    for (mode, what) in [
        // The first compiles, and is not shown.
        ("fresh", ""),
        ("fresh", "fresh instances, registered"),
        ("shared", "shared instance, after a call"),
    ] {
        let measure = format!("{mode} {}", folder.path().display());
        let measured = std::process::Command::new(&bench).env(MEASURE, measure).output();
        let measured = measured.expect("it starts").stdout;
        if !what.is_empty() {
            let measured = String::from_utf8_lossy(&measured);
            let mut figures = measured.trim().split(',').map(|kib| format!("{kib} KiB"));
            let mut next = || figures.next().unwrap_or_default();
            table.row([what.into(), next(), next()]);
        }
    }
    table.print();
}

/// Measures what [`print`] prints.
pub(crate) async fn measure(measure: &str) {
    let (mode, folder) = measure.split_once(' ').expect("it is a mode and a folder");
    let folder = Path::new(folder);
    let host_environment =
        HostEnvironment { cache: Some(folder.join("cache")), ..HostEnvironment::default() };
    let build = async |plugins: std::ops::Range<usize>| {
        let entries: String = plugins
            .clone()
            .map(|i| {
                let path = folder.join(format!("p{i}.wasm"));
                format!("{{ path = {path:?}, instance = {mode:?} }}, ")
            })
            .collect();
        let config = Config::parse(&format!("plugins.wasm = [{entries}]"), "/tenon.toml").unwrap();
        let builder = Platform::builder().host_environment(host_environment.clone()).config(config);
        let platform = builder.build().await.expect("the platform is built");
        for i in plugins {
            ours(&platform, &format!("p{i}__slug")).await;
        }
        platform
    };
    // What a host needs whatever plugins it has.
    let _host = build(0..1).await;
    let before = private_memory();
    let _plugins = build(1..IDLE).await;
    let (Some(before), Some(after)) = (before, private_memory()) else { return };
    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / (IDLE - 1) as f64;
    let (written, mapped) = (each(before[0], after[0]), each(before[1], after[1]));
    println!("{written:.1},{mapped:.1}");
}
