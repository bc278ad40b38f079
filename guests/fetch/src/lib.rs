//! Requests a URL and returns what it answers. Every redirect is a request of its own, which the
//! host judges like the first.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenon_sdk::http::{self, Headers};
use tenon_sdk::{Context, Error, Json, Result, plugin, tool};

plugin!(tools: [fetch]);

/// How much of a body is returned unless the caller says otherwise.
const USUAL_BYTES: usize = 1024 * 1024;
/// How much of a body can be asked for.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// How many redirects are followed.
const MOST_REDIRECTS: u32 = 5;

/// The headers of an answer that are told. Others are of no use to the reader, or secret.
const TOLD: [&str; 13] = [
    "allow",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "etag",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "www-authenticate",
];

/// What to do with the URL.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl From<Method> for http::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::Get,
            Method::Head => Self::Head,
            Method::Post => Self::Post,
            Method::Put => Self::Put,
            Method::Patch => Self::Patch,
            Method::Delete => Self::Delete,
            Method::Options => Self::Options,
        }
    }
}

/// How a body is written down.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// As it is.
    Text,
    /// In base64 (RFC 4648), because it is not text in UTF-8.
    Base64,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Fetched {
    /// The status code.
    status: u16,
    /// The URL that answered, after redirects.
    url: String,
    /// Headers of the answer by their names in lower case.
    headers: BTreeMap<String, String>,
    /// The body, or its beginning.
    body: String,
    /// How the body is written down.
    encoding: Encoding,
    /// Whether the body was longer than `max_bytes`.
    truncated: bool,
}

/// Requests a URL over HTTP and returns the status, the headers and the body. Follows redirects.
#[tool(open_world, capabilities("network"))]
pub async fn fetch(
    /// An http or https URL.
    url: String,
    /// What to do with it; GET unless told otherwise.
    method: Option<Method>,
    /// Headers to send, by their names.
    headers: Option<BTreeMap<String, String>>,
    /// The body to send.
    body: Option<String>,
    /// How much of the answer's body to return: 1048576 bytes unless told otherwise, at most
    /// 8388608.
    max_bytes: Option<usize>,
    context: &Context,
) -> Result<Json<Fetched>> {
    let most = max_bytes.unwrap_or(USUAL_BYTES);
    if most > MOST_BYTES {
        let message = format!("max_bytes is {most}: at most {MOST_BYTES} bytes are returned");
        return Err(Error::invalid_input(message).into());
    }
    let headers = headers.unwrap_or_default();
    let missing = |name: &str| !headers.keys().any(|key| key.eq_ignore_ascii_case(name));
    let agent = missing("user-agent").then_some(concat!("tenon-fetch/", env!("CARGO_PKG_VERSION")));
    let trace = context.traceparent().filter(|_| missing("traceparent"));
    let method = method.unwrap_or(Method::Get).into();
    let mut request = http::request(method, &url).retries(0).redirects(MOST_REDIRECTS);
    for (name, value) in [("user-agent", agent), ("traceparent", trace)] {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(body) = body {
        request = request.body(body);
    }
    let mut response = request.send().await?;
    let (status, url) = (response.status, response.url.to_string());
    let headers = told(&response.headers);
    let (bytes, truncated) = response.read(most).await?;
    let (body, encoding) = written(bytes, truncated);
    Ok(Json(Fetched { status, url, headers, body, encoding, truncated }))
}

fn told(headers: &Headers) -> BTreeMap<String, String> {
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| TOLD.contains(name)) {
        told.entry(name.into())
            .and_modify(|values| {
                values.push_str(", ");
                values.push_str(value);
            })
            .or_insert_with(|| value.into());
    }
    told
}

/// Writes a body down. A text may have been cut within a character, which is then left out.
fn written(mut bytes: Vec<u8>, truncated: bool) -> (String, Encoding) {
    if let Err(error) = std::str::from_utf8(&bytes)
        && truncated
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => (text, Encoding::Text),
        Ok(text) => (BASE64_STANDARD.encode(text), Encoding::Base64),
        Err(error) => (BASE64_STANDARD.encode(error.into_bytes()), Encoding::Base64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_text_where_they_can_be() {
        let check = |bytes: &[u8], truncated, expected: (&str, Encoding)| {
            let (body, encoding) = written(bytes.to_vec(), truncated);
            assert_eq!((body.as_str(), encoding), expected, "{bytes:?}");
        };
        check("größe".as_bytes(), false, ("größe", Encoding::Text));
        check(b"", false, ("", Encoding::Text));
        check(b"gr\xc3", true, ("gr", Encoding::Text));
        check(b"gr\xc3", false, ("Z3LD", Encoding::Base64));
        check(b"\xff\xd8\xff", true, ("/9j/", Encoding::Base64));
        check(b"a\0b", false, ("YQBi", Encoding::Base64));
    }

    #[test]
    fn cookies_are_not_told_and_repeated_headers_are_joined() {
        let headers = Headers::from_iter([
            ("Set-Cookie", "id=secret"),
            ("Link", "<a>"),
            ("Link", "<b>"),
            ("Content-Type", "text/plain"),
        ]);
        let expected = [("content-type", "text/plain"), ("link", "<a>, <b>")];
        assert_eq!(told(&headers), expected.map(|(n, v)| (n.into(), v.into())).into());
    }
}
