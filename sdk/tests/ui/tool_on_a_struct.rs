use tenon_sdk::tool;

/// Greets.
#[tool]
struct Greet;

fn main() {}
