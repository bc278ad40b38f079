use tenon_sdk::tool;

/// Greets.
#[tool]
async fn greet(name: impl Into<String>) -> String {
    name.into()
}

fn main() {}
