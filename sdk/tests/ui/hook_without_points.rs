use tenon_sdk::Value;
use tenon_sdk::hook;
use tenon_sdk::hook::Outcome;

#[hook]
async fn watch(_context: Value) -> Outcome {
    Outcome::Continue
}

fn main() {}
