use tenon_sdk::tool;

/// Greets.
#[tool]
async fn greet(name: &str) -> String {
    name.to_string()
}

fn main() {}
