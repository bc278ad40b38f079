use tenon_sdk::tool;

/// Greets.
#[tool]
async fn greet<T: ToString>(name: T) -> String {
    name.to_string()
}

fn main() {}
