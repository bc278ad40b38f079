use tenon_sdk::tool;

/// Greets.
#[tool]
async fn greet((first, last): (String, String)) -> String {
    first + &last
}

fn main() {}
