use tenon_sdk::{plugin, tool};

plugin!(tool: [greet]);

/// Greets.
#[tool]
async fn greet(name: String) -> String {
    name
}

fn main() {}
