use tenon_sdk::tool;

/// Greets.
#[tool]
async fn greet() -> String {
    String::new()
}

// `#[tool]` writes this in a component.
tenon_sdk::__require_plugin!();

fn main() {}
