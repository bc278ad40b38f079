//! How cost grows with the number of plugins, tools, calls in flight, hooks, recorded calls and patterns, and with the
//! length of arguments: each cost at growing sizes, the exponents by which it grows, and where it grows faster than it
//! should. `curve.rs` says how to read them.
//!
//! An argument names the groups that run. With `--large`, the history has ten million calls in place of one million.

#![allow(clippy::print_stdout)]

mod curve;
mod history;
mod hooks;
mod in_flight;
mod patterns;
mod payloads;
mod plugins;
mod support;
#[path = "../table.rs"]
mod table;
mod tools;

use curve::CurveReport;

mod guests {
    #![allow(dead_code)]
    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

fn main() {
    // `cargo test --benches` passes this; there is nothing to test here.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    // One thread: waking another core costs more than most of what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the runtime starts");
    if let Some(folder) = std::env::var_os(plugins::MEASURE) {
        return runtime.block_on(plugins::print_memory(folder.as_ref()));
    }
    let mut arguments = std::env::args().skip(1);
    let only = arguments.find(|argument| !argument.starts_with('-'));
    let wanted = |group: &str| only.as_deref().is_none_or(|only| group.contains(only));
    let mut report = CurveReport::default();
    runtime.block_on(async {
        if wanted("plugins") {
            plugins::all(&mut report).await;
        }
        if wanted("tools") {
            tools::all(&mut report).await;
        }
        if wanted("in-flight") {
            in_flight::all(&mut report).await;
        }
        if wanted("payloads") {
            payloads::all(&mut report).await;
        }
        if wanted("hooks") {
            hooks::all(&mut report).await;
        }
        if wanted("history") {
            history::all(&mut report).await;
        }
        if wanted("patterns") {
            patterns::all(&mut report).await;
        }
    });
    report.print_summary();
}
