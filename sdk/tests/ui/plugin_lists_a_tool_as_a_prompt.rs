use tenon_sdk::{plugin, prompt, tool};

plugin!(resources: [greet], prompts: [greet, quiet], completions: [quiet]);

/// Greets.
#[tool]
async fn greet(name: String) -> String {
    name
}

/// Suggests nothing.
#[prompt]
async fn quiet(name: String) -> String {
    name
}

fn main() {}
