use tenon_sdk::Value;
use tenon_sdk::hook;
use tenon_sdk::hook::Outcome;

#[hook(before_tool)]
async fn watch(_context: Value) -> Outcome {
    Outcome::Continue
}

fn main() {}
