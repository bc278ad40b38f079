use tenon_sdk::resource;

#[resource("notes://{name}")]
async fn note(name: String) -> String {
    name
}

fn main() {}
