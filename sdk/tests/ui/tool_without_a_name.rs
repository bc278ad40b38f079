use tenon_sdk::tool;

/// Greets.
#[tool(name = "")]
async fn greet(name: String) -> String {
    name
}

fn main() {}
