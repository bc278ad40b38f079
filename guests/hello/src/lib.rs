//! Greets: about the smallest plugin there is.

use tenon_sdk::{plugin, tool};

/// Greets somebody.
#[tool(read_only)]
async fn greet(
    /// Whom to greet.
    name: String,
) -> String {
    format!("Hello, {name}!")
}

plugin!(tools: [greet]);
