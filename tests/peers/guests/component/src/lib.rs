//! Echoes: the plugin of Tenon, which bare wasmtime calls as well.

use tenon_sdk::{plugin, tool};

/// Answers with its `text`.
#[tool(read_only)]
async fn echo(text: String) -> String {
    text
}

plugin!(tools: [echo]);
