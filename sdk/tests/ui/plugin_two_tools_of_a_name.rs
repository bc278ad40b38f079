use tenon_sdk::{plugin, tool};

plugin!(tools: [greet, welcome]);

/// Greets.
#[tool]
async fn greet(name: String) -> String {
    name
}

/// Greets as well.
#[tool(name = "greet")]
async fn welcome(name: String) -> String {
    name
}

fn main() {}
