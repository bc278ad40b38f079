use tenon_sdk::tool;

/// Greets.
#[tool]
async fn greet() -> String {
    String::new()
}

tenon_sdk::plugin!(tools: greet);

fn main() {}
