//! What Tenon costs beside what else there is for the same purpose, each with the same echo of the same bytes, in turns,
//! in one run: other systems of plugins, and MCP servers and clients that are written with other SDKs.
//!
//! The times are medians of rounds, and are this machine's. Compare the ratios to Tenon in the columns with `× Tenon`:
//! those above one are slower or larger than Tenon. With an argument, only the tables whose names contain it are made:
//! `plugins`, `servers`, `clients`. With `--markdown` they are printed as a page has them.

#![allow(clippy::print_stdout)]

mod clients;
mod format;
mod plugins;
mod programs;
mod rounds;
mod servers;
#[path = "../../benches/table.rs"]
mod table;
mod versions;

use serde_json::{Value, json};

/// What every call passes: [`PAYLOAD`] bytes of JSON. Each side builds it for each call.
fn arguments() -> Value {
    json!({ "text": TEXT })
}

/// What is echoed.
const TEXT: &str = "The quick brown fox jumps over the lazy dog, and then it does so again and again until evening. And it rests";

/// The length of the arguments, in bytes.
const PAYLOAD: usize = 119;

fn main() {
    assert_eq!(arguments().to_string().len(), PAYLOAD);
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wanted = |group: &str| only.as_deref().is_none_or(|only| group.contains(only));
    // One thread: waking another core costs more than most of what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("the runtime starts").block_on(async {
        let sdks = programs::sdks();
        versions::print(&sdks);
        if wanted("plugins") {
            plugins::print().await;
        }
        if wanted("servers") {
            servers::print(&sdks).await;
        }
        if wanted("clients") {
            clients::print(&sdks).await;
        }
    });
}
