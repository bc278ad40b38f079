use tenon_sdk::resource;

/// A note.
#[resource("notes://{name}", list = names)]
async fn note(name: String) -> String {
    name
}

async fn names() -> Vec<String> {
    Vec::new()
}

/// A page.
#[resource("pages://{name}", list = pages)]
async fn page(name: String) -> String {
    name
}

fn pages(_count: u32) {}

fn main() {}
