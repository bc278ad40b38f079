use tenon_sdk::{plugin, tool};

plugin!(tools: [greet], tools: [greet]);

/// Greets.
#[tool]
async fn greet(name: String) -> String {
    name
}

fn main() {}
