use tenon_sdk::plugin;

plugin!(tools: [greet]);

/// Greets.
async fn greet(name: String) -> String {
    name
}

fn main() {}
