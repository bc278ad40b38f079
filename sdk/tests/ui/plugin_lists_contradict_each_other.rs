use tenon_sdk::{plugin, prompt, resource};

plugin!(
    resources: [one, two, three],
    subscriptions: [four],
    prompts: [greet, wave],
    completions: [one, forgotten],
);

/// A note.
#[resource("notes://{name}")]
async fn one(#[complete("a")] name: String) -> String {
    name
}

/// The same note.
#[resource("notes://{name}", name = "two")]
async fn two(name: String) -> String {
    name
}

/// A page that suggests names.
#[resource("pages://{name}")]
async fn three(#[complete("a")] name: String) -> String {
    name
}

/// Has news, and cannot be read.
#[resource("news:all")]
async fn four() -> String {
    String::new()
}

/// Greets.
#[prompt]
async fn greet(#[complete("Ada")] name: String) -> String {
    name
}

/// Greets as well.
#[prompt(name = "greet")]
async fn wave() -> String {
    String::new()
}

/// Is not listed.
#[prompt]
async fn forgotten(#[complete("Ada")] name: String) -> String {
    name
}

fn main() {}
