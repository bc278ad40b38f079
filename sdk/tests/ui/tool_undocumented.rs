use tenon_sdk::tool;

#[tool]
async fn greet(name: String) -> String {
    name
}

fn main() {}
