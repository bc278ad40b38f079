use tenon_sdk::hook::Outcome;
use tenon_sdk::{eval, hook, plugin, prompt, resource, tool};

plugin!(
    tools: [greet, wave],
    hooks: [watch],
    evals: [judge],
    resources: [note],
    subscriptions: [note],
    prompts: [ask],
    completions: [ask, note],
);

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

#[resource("notes://{name}")]
async fn note(#[complete("a")] name: String) -> String {
    name
}

/// Asks.
#[prompt]
async fn ask(#[complete] name: Vec<String>) -> String {
    name.concat()
}

fn main() {}
