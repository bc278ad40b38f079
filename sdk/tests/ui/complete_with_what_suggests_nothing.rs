use tenon_sdk::prompt;

/// Suggests nothing.
#[prompt]
async fn nothing(#[complete] name: String) -> String {
    name
}

/// Suggests nothing.
#[prompt]
async fn empty(#[complete()] name: String) -> String {
    name
}

/// Suggests two things.
#[prompt]
async fn mixed(#[complete("a", values)] name: String) -> String {
    name
}

/// Suggests numbers.
#[prompt]
async fn numbers(#[complete(values)] name: String) -> String {
    name
}

async fn values(_typed: &str) -> Vec<u32> {
    Vec::new()
}

/// Suggests something in no time.
#[prompt]
async fn not_async(#[complete(at_once)] name: String) -> String {
    name
}

fn at_once(_typed: &str) -> Vec<String> {
    Vec::new()
}

fn main() {}
