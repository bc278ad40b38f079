use tenon_sdk::hook;

#[hook("message-sending")]
async fn redact() {}

#[hook("deploy")]
async fn deploy() {}

fn main() {}
