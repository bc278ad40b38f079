use tenon_sdk::hook;
use tenon_sdk::hook::Outcome;
use tenon_sdk::hook::context::BeforePlan;

#[hook(message_sending)]
async fn watch(_context: BeforePlan) -> Outcome<BeforePlan> {
    Outcome::Continue
}

#[hook(before_plan, message_sending)]
async fn watch_both(_context: BeforePlan) -> Outcome<BeforePlan> {
    Outcome::Continue
}

#[hook(custom(""))]
async fn watch_nothing(_context: serde_json::Value) {}

fn main() {}
