tenon_sdk::plugin!(tools: []);

fn main() {}
