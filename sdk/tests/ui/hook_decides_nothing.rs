use tenon_sdk::Value;
use tenon_sdk::hook;

#[hook(before_plan)]
async fn watch(context: Value) -> Value {
    context
}

fn main() {}
