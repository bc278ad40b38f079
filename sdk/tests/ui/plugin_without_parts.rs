use tenon_sdk::plugin;

plugin!();

fn main() {}
