use tenon_sdk::tool;

/// Greets.
#[tool("hello")]
async fn one() -> String {
    String::new()
}

/// Greets.
#[tool(name)]
async fn two() -> String {
    String::new()
}

/// Greets.
#[tool(name = "a", name = "b")]
async fn three() -> String {
    String::new()
}

/// Greets.
#[tool(capabilities = ["network"])]
async fn four() -> String {
    String::new()
}

/// Greets.
#[tool(read_only, destructive)]
async fn five() -> String {
    String::new()
}

/// Greets.
#[tool(idempotent, idempotent = false)]
async fn six() -> String {
    String::new()
}

fn main() {}
