use tenon_sdk::prompt;

/// Greets.
#[prompt("hello")]
async fn one() -> String {
    String::new()
}

/// Greets.
#[prompt(description = "Greets")]
async fn two() -> String {
    String::new()
}

/// Greets.
#[prompt]
async fn three(#[serde(rename = "n")] name: String) -> String {
    name
}

/// Greets.
#[prompt]
async fn four(#[argument(required)] name: String) -> String {
    name
}

/// Greets.
#[prompt]
fn five(name: String) -> String {
    name
}

fn main() {}
