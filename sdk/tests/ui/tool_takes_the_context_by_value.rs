use tenon_sdk::{Context, tool};

/// Greets.
#[tool]
async fn greet(name: String, context: Context) -> String {
    drop(context);
    name
}

fn main() {}
