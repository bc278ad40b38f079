use tenon_sdk::resource;

/// Without a scheme.
#[resource("notes")]
async fn no_scheme() -> String {
    String::new()
}

/// With a space.
#[resource("notes://to do")]
async fn space() -> String {
    String::new()
}

/// Without an end.
#[resource("notes://{name")]
async fn no_end(name: String) -> String {
    name
}

/// Two values side by side.
#[resource("notes://{a}{b}")]
async fn side_by_side(a: String, b: String) -> String {
    a + &b
}

/// With a character between them that both may have.
#[resource("notes://{a}-{b}")]
async fn hyphen(a: String, b: String) -> String {
    a + &b
}

/// With a query that the path may contain.
#[resource("notes://{+path}{?page}")]
async fn query(path: String, page: Option<u32>) -> String {
    format!("{path} {page:?}")
}

/// With a beginning that may be missing.
#[resource("notes:{/a}{/b}")]
async fn missing(a: Option<String>, b: String) -> String {
    a.unwrap_or(b)
}

/// With the beginning of a value.
#[resource("notes://{name:3}")]
async fn beginning(name: String) -> String {
    name
}

/// With dots.
#[resource("notes://file{.extension}")]
async fn dots(extension: String) -> String {
    extension
}

fn main() {}
