//! Requests, and how they are made.

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;

use super::retry::send_with_retries;
use super::{MAX_BODY_BYTES, Method, Response, Url, parse, redirect, shown};
use crate::Error;

/// How often a request is sent again that may be, where nothing is said.
const USUAL_RETRIES: u32 = 2;

/// How many redirects are followed, where nothing is said.
const USUAL_REDIRECTS: u32 = 10;

/// How long the other side may be silent, where nothing is said.
const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The header that says who asks, where the request has none: some servers refuse requests without.
const USER_AGENT: &str = concat!("tenon-rust/", env!("CARGO_PKG_VERSION"));

/// A request, as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What to do.
    pub method: Method,
    /// Where; see [`parse`].
    pub url: Url,
    /// Names and values. A `Content-Length` among them gives way to the body's own, and the host writes `Host`.
    pub headers: Vec<(String, String)>,
    /// What to send.
    pub body: Option<Vec<u8>>,
    /// How long the other side may be silent: while it is connected to, before it answers, and between two pieces of
    /// the answer. A host that knows no such limits ignores it.
    pub timeout: Option<Duration>,
}

impl Request {
    /// The first header of a name, in any spelling.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as text, where it is UTF-8; empty without a body.
    pub fn text(&self) -> Option<&str> {
        str::from_utf8(self.body.as_deref().unwrap_or_default()).ok()
    }

    /// The body as JSON, where it is some.
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(self.body.as_deref()?).ok()
    }

    fn add_missing(&mut self, name: &str, value: &str) {
        if self.header(name).is_none() {
            self.headers.push((name.into(), value.into()));
        }
    }
}

/// A request that is being made. [`Self::send`] sends it.
#[derive(Debug, Clone)]
#[must_use = "a request is sent by `send`"]
pub struct RequestBuilder {
    request: Result<Request, Error>,
    /// What the body is, unless a header says it.
    media_type: Option<&'static str>,
    retries: Option<u32>,
    redirects: u32,
    most: usize,
}

impl RequestBuilder {
    pub(super) fn new(method: Method, url: &str) -> Self {
        let (headers, body, timeout) = (Vec::new(), None, Some(USUAL_TIMEOUT));
        let request = parse(url).map(|url| Request { method, url, headers, body, timeout });
        Self {
            request,
            media_type: None,
            retries: None,
            redirects: USUAL_REDIRECTS,
            most: MAX_BODY_BYTES,
        }
    }

    /// Adds a header.
    pub fn header(self, name: impl Into<String>, value: impl Display) -> Self {
        self.with(|request| request.headers.push((name.into(), value.to_string())))
    }

    /// Adds a header that shows a token: `authorization: Bearer …`.
    pub fn bearer_auth(self, token: impl Display) -> Self {
        self.header("authorization", format_args!("Bearer {token}"))
    }

    /// Adds a member to the query of the URL.
    pub fn query(self, name: impl AsRef<str>, value: impl Display) -> Self {
        self.with(|request| {
            request.url.query_pairs_mut().append_pair(name.as_ref(), &value.to_string());
        })
    }

    /// Sends a value as JSON.
    pub fn json(mut self, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self { media_type: Some("application/json"), ..self.body(body) },
            Err(error) => {
                self.request = self.request.and(Err(Error::invalid_input(format!(
                    "the body of the request cannot be written as JSON: {error}"
                ))));
                self
            }
        }
    }

    /// Sends members of a form.
    pub fn form<N: AsRef<str>, V: AsRef<str>>(
        self,
        members: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let body =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(members).finish();
        Self { media_type: Some("application/x-www-form-urlencoded"), ..self.body(body) }
    }

    /// Sends bytes or text.
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        self.with(|request| request.body = Some(body.into()))
    }

    /// Sets how long the other side may be silent: while it is connected to, before it answers, and between two pieces
    /// of the answer. It is 30 seconds unless set.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|request| request.timeout = Some(timeout))
    }

    /// Sets how often the request is sent again when the server cannot be reached or answers with the status 429, 502,
    /// 503 or 504. Unless set, this is twice for methods that are idempotent, and never for others.
    pub fn retries(self, retries: u32) -> Self {
        Self { retries: Some(retries), ..self }
    }

    /// Sets how many redirects are followed, 10 unless set. With 0, the response that redirects is the response.
    pub fn redirects(self, redirects: u32) -> Self {
        Self { redirects, ..self }
    }

    /// Sets the most bytes of the body of the response that [`Response::bytes`], `text` and `json` read,
    /// [`MAX_BODY_BYTES`] unless set.
    pub fn max_bytes(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Sends the request, and waits for the beginning of the response. A status such as 404 is no error: see
    /// [`Response::error_for_status`].
    ///
    /// A redirect to another origin is followed without the headers `authorization`, `cookie` and
    /// `proxy-authorization`.
    ///
    /// # Errors
    ///
    /// As for [`send`](super::send), and [`ErrorCode::Failed`](crate::ErrorCode::Failed) where redirects lead to
    /// nowhere or do not end.
    pub async fn send(self) -> Result<Response, Error> {
        let mut request = self.request?;
        if let Some(media_type) = self.media_type {
            request.add_missing("content-type", media_type);
        }
        request.add_missing("user-agent", USER_AGENT);
        let usual = if request.method.is_idempotent() { USUAL_RETRIES } else { 0 };
        let retries = self.retries.unwrap_or(usual);
        let first = request.url.clone();
        for left in (0..=self.redirects).rev() {
            let response = send_with_retries(&request, retries).await?;
            if self.redirects == 0 {
                return Ok(response.with_most(self.most));
            }
            let location = response.headers.get("location");
            match redirect::next(&request, response.status, location)? {
                None => return Ok(response.with_most(self.most)),
                Some(_) if left == 0 => break,
                Some(next) => request = next,
            }
        }
        let (first, most) = (shown(&first), self.redirects);
        Err(Error::failed(format!("{first} redirects more than {most} times")))
    }

    fn with(mut self, change: impl FnOnce(&mut Request)) -> Self {
        if let Ok(request) = &mut self.request {
            change(request);
        }
        self
    }
}
