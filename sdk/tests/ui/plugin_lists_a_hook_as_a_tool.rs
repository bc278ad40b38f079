use tenon_sdk::Value;
use tenon_sdk::hook::Outcome;
use tenon_sdk::{hook, plugin};

plugin!(tools: [watch]);

#[hook(before_plan)]
async fn watch(_context: Value) -> Outcome {
    Outcome::Continue
}

fn main() {}
