//! Sends requests over `wasi:http` and reads the answers, within bounds.
//!
//! A request is sent as it is: redirects, retries and what a status means are the caller's. Every
//! failure is an error of the contract that names the target without its query, which may hold
//! secrets.

mod body;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod headers;
pub mod sse;
mod target;

use std::time::Duration;

use tenon_sdk::Error;
use wasip3::http::types::{self, Fields, HeaderError, RequestOptions, Scheme};
use wasip3::{http::client, spawn_local, wit_future, wit_stream};

pub use body::Body;
pub use headers::Headers;
pub use target::{parse, shown};
pub use types::Method;
pub use url::Url;

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to do.
    pub method: Method,
    /// Where; see [`parse`].
    pub url: Url,
    /// Names and values. A `Content-Length` among them gives way to the body's own, and the host
    /// writes `Host`.
    pub headers: Vec<(String, String)>,
    /// What to send.
    pub body: Option<Vec<u8>>,
    /// How long the other side may be silent: while it is connected to, before it answers, and
    /// between two pieces of the answer. A host that knows no such limits ignores it.
    pub patience: Option<Duration>,
}

/// An answer, whose body is still to be read.
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Headers,
    /// What follows them.
    pub body: Body,
}

/// Sends a request and waits for the beginning of the answer.
///
/// # Errors
///
/// [`Error::Denied`] where the host refuses the request, [`Error::Timeout`] where nobody answers in
/// time, [`Error::InvalidInput`] for a request that cannot be sent, and else
/// [`Error::Unavailable`].
pub async fn send(request: Request) -> Result<Response, Error> {
    let target = shown(&request.url);
    let fields = fields(&request, &target)?;
    let options = request.patience.map(options);

    // The trailers follow the body; a sender that gives up leaves none.
    let (trailers, trailers_end) = wit_future::new(|| Ok(None));
    let (contents, contents_end) = match request.body.filter(|body| !body.is_empty()) {
        Some(body) => {
            let (writer, reader) = wit_stream::new();
            (Some((writer, body)), Some(reader))
        }
        None => (None, None),
    };
    let (outgoing, _sent) = types::Request::new(fields, contents_end, trailers_end, options);
    let invalid = |what| Error::invalid_input(format!("{target}: the host does not take {what}"));
    outgoing.set_method(&request.method).map_err(|()| invalid("the method"))?;
    let scheme = if request.url.scheme() == "http" { Scheme::Http } else { Scheme::Https };
    outgoing.set_scheme(Some(&scheme)).map_err(|()| invalid("the scheme"))?;
    let authority = target::authority(&request.url);
    outgoing.set_authority(Some(&authority)).map_err(|()| invalid("the host name"))?;
    let path = target::path_with_query(&request.url);
    outgoing.set_path_with_query(Some(&path)).map_err(|()| invalid("the path"))?;

    // The answer may come before all of the body was taken, so the writing is a task of its own. It
    // ends when the host has read everything or lost interest.
    spawn_local(async move {
        if let Some((mut writer, body)) = contents {
            writer.write_all(body).await;
        }
        let _ = trailers.write(Ok(None)).await;
    });
    let response = client::send(outgoing).await.map_err(|code| error::explain(&code, &target))?;
    Ok(Response {
        status: response.get_status_code(),
        headers: Headers::read(response.get_headers().copy_all()),
        body: Body::new(response, target),
    })
}

fn fields(request: &Request, target: &str) -> Result<Fields, Error> {
    let fields = Fields::new();
    let append = |name: &str, value: &str| {
        // Values may be secrets, so only the name is told.
        fields.append(name, value.as_bytes()).map_err(|error| match error {
            HeaderError::InvalidSyntax => {
                Error::invalid_input(format!("the header \"{name}\" is malformed"))
            }
            HeaderError::Forbidden => {
                Error::denied(format!("the host does not let a plugin set the header \"{name}\""))
            }
            HeaderError::SizeExceeded => {
                Error::invalid_input(format!("the header \"{name}\" is too long"))
            }
            HeaderError::Immutable | HeaderError::Other(_) => {
                Error::failed(format!("{target}: the host does not take the header \"{name}\""))
            }
        })
    };
    // Without a length the body would be sent in chunks, which not every server takes; with a wrong
    // one, not at all.
    let given = |name: &str| !name.eq_ignore_ascii_case("content-length");
    for (name, value) in request.headers.iter().filter(|(name, _)| given(name)) {
        append(name, value)?;
    }
    if let Some(body) = &request.body {
        append("content-length", &body.len().to_string())?;
    }
    Ok(fields)
}

fn options(patience: Duration) -> RequestOptions {
    let nanoseconds = Some(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
    let options = RequestOptions::new();
    // A host may not support one; its own limits hold then.
    let _ = options.set_connect_timeout(nanoseconds);
    let _ = options.set_first_byte_timeout(nanoseconds);
    let _ = options.set_between_bytes_timeout(nanoseconds);
    options
}
