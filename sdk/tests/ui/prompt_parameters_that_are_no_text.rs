use tenon_sdk::prompt;

struct Person;

/// Takes a type that is not made from text.
#[prompt]
async fn unknown(person: Person) -> String {
    drop(person);
    String::new()
}

/// Takes a list.
#[prompt]
async fn list(names: Vec<String>) -> String {
    names.concat()
}

/// Takes what may be missing twice.
#[prompt]
async fn twice(name: Option<Option<String>>) -> String {
    name.flatten().unwrap_or_default()
}

/// Borrows.
#[prompt]
async fn borrows(name: &str) -> String {
    name.to_string()
}

/// Takes two of one name.
#[prompt]
async fn same(name: String, #[argument(name = "name")] other: String) -> String {
    name + &other
}

fn main() {}
