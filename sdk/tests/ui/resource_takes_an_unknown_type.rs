use tenon_sdk::resource;

struct Name;

/// A note.
#[resource("notes://{name}")]
async fn note(name: Name) -> String {
    drop(name);
    String::new()
}

fn main() {}
