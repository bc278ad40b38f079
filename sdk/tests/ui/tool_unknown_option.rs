use tenon_sdk::tool;

/// Greets.
#[tool(readonly)]
async fn greet(name: String) -> String {
    name
}

fn main() {}
