use tenon_sdk::hook;
use tenon_sdk::hook::Outcome;
use tenon_sdk::hook::context::BeforePlan;

#[hook(message_sending)]
async fn watch(_context: BeforePlan) -> Outcome<BeforePlan> {
    Outcome::Continue
}

fn main() {}
