use tenon_sdk::tool;

/// Greets.
#[tool]
async fn greet(name: Option<&str>) -> String {
    name.unwrap_or_default().to_string()
}

fn main() {}
