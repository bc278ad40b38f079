//! By the length of what a tool is given and answers: a component, a script, and a server behind the bridge, which all
//! answer with their argument.

use serde_json::json;
use std::fs;
use tempfile::TempDir;
use tenon_host::Allocation;

use crate::curve::{Curve, CurveReport};
use crate::guests;
use crate::support::{call, platform, time};

const SIZES: &[usize] = &[100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The longest text that a script can hold.
const MAX_SCRIPT_TEXT_BYTES: usize = 1 << 20;

/// Lets through what is measured here.
const LIMITS: &str = "limits = { output_kib = 65536, transfer_mib = 256, memory_mib = 1024 }";

/// The server that takes no time.
const SERVER: &str = env!("CARGO_BIN_EXE_rude-server");

pub(crate) async fn all(report: &mut CurveReport) {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("p.rhai");
    fs::write(&script, "tool(#{ name: \"echo\", description: \"Echoes\" }, |a| a.text);").unwrap();
    for (what, plugins, most) in [
        (
            "call of a component",
            format!(
                "plugins.wasm = [{{ path = {:?}, id = \"p\", instance = \"shared\" }}]",
                guests::MISBEHAVE
            ),
            usize::MAX,
        ),
        ("call of a script", format!("plugins.scripts = [{script:?}]"), MAX_SCRIPT_TEXT_BYTES),
        (
            "call of a server behind the bridge",
            format!("plugins.mcp = [{{ name = \"p\", command = {SERVER:?} }}]"),
            usize::MAX,
        ),
    ] {
        let mut curve = Curve::new(what, "bytes", 1.0, "each byte is copied so often");
        let configuration = format!("{LIMITS}\n{plugins}");
        let platform = platform(&configuration, Allocation::OnDemand).await;
        for &size in SIZES.iter().filter(|size| **size <= most) {
            let text = "The quick brown fox jumps over the lazy dog. ".repeat(size / 45 + 1);
            let text = &text[..size];
            let echo = async || call(&platform, "p__echo", json!({ "text": text }), text).await;
            curve.time(size, time(echo).await);
        }
        platform.shutdown().await;
        report.add(curve);
    }
}
