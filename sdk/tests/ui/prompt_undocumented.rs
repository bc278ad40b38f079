use tenon_sdk::prompt;

#[prompt]
async fn greet(name: String) -> String {
    name
}

fn main() {}
