use tenon_sdk::prompt;

/// Says the answer.
#[prompt]
async fn answer() -> i64 {
    42
}

fn main() {}
