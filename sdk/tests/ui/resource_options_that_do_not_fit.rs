use tenon_sdk::resource;
use tenon_sdk::resource::ListedResource;

async fn all() -> Vec<ListedResource> {
    Vec::new()
}

/// Is there as it is.
#[resource("notes:all", list = all)]
async fn fixed() -> String {
    String::new()
}

/// Has no size.
#[resource("notes://{name}", size = 3)]
async fn template(name: String) -> String {
    name
}

/// Is of a type.
#[resource("notes:one", mime = "text/plain")]
async fn unknown() -> String {
    String::new()
}

/// Has two names.
#[resource("notes:two", name = "a", name = "b")]
async fn twice() -> String {
    String::new()
}

/// Has an option of serde's.
#[resource("notes://{id}")]
async fn foreign(#[serde(default)] id: String) -> String {
    id
}

/// Has a variable with a title.
#[resource("notes://{id}")]
async fn titled(#[argument(title = "Id")] id: String) -> String {
    id
}

fn main() {}
