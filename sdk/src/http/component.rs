//! Requests over `wasi:http`, as a component sends them.

use std::time::Duration;

use wasip3::http::client;
use wasip3::http::types::{
    self, ErrorCode, Fields, HeaderError, RequestOptions, Response, Scheme, Trailers,
};
use wasip3::{wit_future, wit_stream};
use wit_bindgen::{FutureReader, FutureWriter, StreamReader, StreamResult};

use super::error::explain;
use super::target::{authority, path_with_query};
use super::{Headers, Method, Request, Url, shown};
use crate::Error;

/// The most bytes to ask the host for at once.
const CHUNK: usize = 16 * 1024;

/// A body that is read piece by piece. Dropped, it tells the host that the rest is not wanted.
pub(crate) struct ResponseBody {
    stream: StreamReader<u8>,
    /// Says how the stream ended; read once.
    end: Option<FutureReader<Result<Option<Trailers>, ErrorCode>>>,
    /// Says how the reading went when it is dropped: well.
    _read: FutureWriter<Result<(), ErrorCode>>,
    url: Url,
}

impl ResponseBody {
    fn new(response: Response, url: Url) -> Self {
        let (read, read_end) = wit_future::new(|| Ok(()));
        let (stream, end) = Response::consume_body(response, read_end);
        Self { stream, end: Some(end), _read: read, url }
    }

    /// The next piece, which is not empty; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        while self.end.is_some() {
            let (result, chunk) = self.stream.read(Vec::with_capacity(CHUNK)).await;
            if !matches!(result, StreamResult::Complete(_))
                && let Some(end) = self.end.take()
                && let Err(code) = end.await
            {
                return Err(explain(&code, &self.url));
            }
            if !chunk.is_empty() {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }
}

/// Sends a request and waits for the beginning of the response.
pub(crate) async fn send(request: Request) -> Result<(u16, Headers, ResponseBody), Error> {
    let target = shown(&request.url);
    let fields = fields(&request, &target)?;
    let options = request.timeout.map(options);

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
    outgoing.set_method(&method(&request.method)).map_err(|()| invalid("the method"))?;
    let scheme = if request.url.scheme() == "http" { Scheme::Http } else { Scheme::Https };
    outgoing.set_scheme(Some(&scheme)).map_err(|()| invalid("the scheme"))?;
    let authority = authority(&request.url);
    outgoing.set_authority(Some(&authority)).map_err(|()| invalid("the host name"))?;
    let path = path_with_query(&request.url);
    outgoing.set_path_with_query(Some(&path)).map_err(|()| invalid("the path"))?;

    // The response may come before all of the body was taken, so the writing is a task of its own. It ends when the
    // host has read everything or lost interest.
    wit_bindgen::spawn_local(async move {
        if let Some((mut writer, body)) = contents {
            writer.write_all(body).await;
        }
        let _ = trailers.write(Ok(None)).await;
    });
    let response = client::send(outgoing).await.map_err(|code| explain(&code, &request.url))?;
    let headers = Headers::read(response.get_headers().copy_all());
    Ok((response.get_status_code(), headers, ResponseBody::new(response, request.url)))
}

fn method(method: &Method) -> types::Method {
    match method {
        Method::Get => types::Method::Get,
        Method::Head => types::Method::Head,
        Method::Post => types::Method::Post,
        Method::Put => types::Method::Put,
        Method::Patch => types::Method::Patch,
        Method::Delete => types::Method::Delete,
        Method::Options => types::Method::Options,
        Method::Connect => types::Method::Connect,
        Method::Trace => types::Method::Trace,
        Method::Other(name) => types::Method::Other(name.clone()),
    }
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

fn options(timeout: Duration) -> RequestOptions {
    let nanoseconds = Some(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
    let options = RequestOptions::new();
    // A host may not support one; its own limits hold then.
    let _ = options.set_connect_timeout(nanoseconds);
    let _ = options.set_first_byte_timeout(nanoseconds);
    let _ = options.set_between_bytes_timeout(nanoseconds);
    options
}
