use tenon_sdk::hook::Outcome;
use tenon_sdk::{eval, hook, plugin, tool};

plugin!(tools: [greet, wave], hooks: [watch], evals: [judge]);

/// Greets.
#[tool]
async fn greet(name: &str) -> String {
    name.to_string()
}

/// Waves.
#[tool]
fn wave() -> String {
    String::new()
}

#[hook]
async fn watch() -> Outcome {
    Outcome::Continue
}

#[eval]
async fn judge() -> f64 {
    1.0
}

fn main() {}
