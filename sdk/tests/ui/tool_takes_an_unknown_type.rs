use tenon_sdk::tool;

struct Person;

/// Greets.
#[tool]
async fn greet(person: Person) -> String {
    drop(person);
    String::new()
}

fn main() {}
