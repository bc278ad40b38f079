use tenon_sdk::{Context, resource};

/// Without a parameter.
#[resource("notes://{folder}/{name}")]
async fn no_parameter(name: String) -> String {
    name
}

/// Without a variable.
#[resource("notes:all")]
async fn no_variable(_context: &Context, name: String) -> String {
    name
}

/// One of many.
#[resource("notes:{/path*}")]
async fn one(path: String) -> String {
    path
}

/// Many of one.
#[resource("notes:{/path}")]
async fn many(path: Vec<String>) -> String {
    path.concat()
}

/// Perhaps many.
#[resource("notes:{?tag*}")]
async fn perhaps_many(tag: Option<Vec<String>>) -> String {
    tag.unwrap_or_default().concat()
}

/// Borrows.
#[resource("notes:{name}")]
async fn borrows(name: &str) -> String {
    name.to_string()
}

fn main() {}
