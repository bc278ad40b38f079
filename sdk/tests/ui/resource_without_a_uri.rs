use tenon_sdk::resource;

/// A note.
#[resource]
async fn one() -> String {
    String::new()
}

/// A note.
#[resource(name = "two")]
async fn two() -> String {
    String::new()
}

fn main() {}
