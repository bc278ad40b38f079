use tenon_sdk::tool;

/// Greets.
#[tool]
fn greet(name: String) -> String {
    name
}

fn main() {}
