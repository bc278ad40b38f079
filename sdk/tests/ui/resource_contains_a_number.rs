use tenon_sdk::resource;

/// The answer.
#[resource("answers:all")]
async fn answer() -> i64 {
    42
}

fn main() {}
