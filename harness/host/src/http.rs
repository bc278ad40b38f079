//! The network of a test: the answers that the test gives, and what was requested. Nothing leaves the process.

use async_trait::async_trait;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::HOST;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tenon_host::services::{Connector, Resolver, Stream};
use tenon_host::types::text::fits;

/// What a test answers to HTTP requests of its plugin.
///
/// ```
/// use serde_json::json;
/// use tenon_test_host::HttpAnswer;
///
/// let busy = HttpAnswer::new("https://api.example.com/v1/*").status(503);
/// let found = HttpAnswer::new("https://api.example.com/v1/*").json(&json!({ "degrees": 21 }));
/// ```
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    method: Option<String>,
    url: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// What a plugin requested over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpRequest {
    /// The method, in capitals.
    pub method: String,
    /// The whole URL. A port other than 443 is taken for one of `http`.
    pub url: String,
    /// The headers, by their names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the test had an answer. A request without one fails.
    pub was_answered: bool,
}

impl HttpAnswer {
    /// Answers requests to a URL, in which `*` stands for any text, with the status 200 and nothing else. Of several
    /// answers to a request each is given once, in their order, and the last again and again.
    pub fn new(url: impl Into<String>) -> Self {
        Self { method: None, url: url.into(), status: 200, headers: Vec::new(), body: Vec::new() }
    }

    /// Answers requests with this method only.
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = Some(method.into());
        self
    }

    /// Sets the status.
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the body to JSON, and says that it is.
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    fn fits(&self, method: &str, url: &str) -> bool {
        self.method.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(method))
            && fits(&self.url, url)
    }

    /// # Errors
    ///
    /// Where HTTP has no such status or header.
    fn response(&self) -> hyper::http::Result<Response<Full<Bytes>>> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        response.body(Full::new(self.body.clone().into()))
    }
}

/// The network of one test.
#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Mutex<NetworkState>>);

#[derive(Default)]
struct NetworkState {
    answers: Vec<HttpAnswer>,
    requests: Vec<HttpRequest>,
}

impl Network {
    pub(crate) fn add(&self, answer: HttpAnswer) {
        self.state().answers.push(answer);
    }

    pub(crate) fn requests(&self) -> Vec<HttpRequest> {
        self.state().requests.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, NetworkState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the answer to a request.
    fn take(&self, method: &str, url: &str) -> Option<HttpAnswer> {
        let answers = &mut self.state().answers;
        let mut fitting = (0..answers.len()).filter(|i| answers[*i].fits(method, url));
        let first = fitting.next()?;
        Some(match fitting.next() {
            Some(_) => answers.remove(first),
            None => answers[first].clone(),
        })
    }

    async fn answer(
        &self,
        scheme: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes().to_vec();
        let text = |value: &hyper::header::HeaderValue| {
            String::from_utf8_lossy(value.as_bytes()).into_owned()
        };
        let host = parts.headers.get(HOST).map(text).unwrap_or_default();
        let url = format!("{scheme}://{host}{}", parts.uri);
        let method = parts.method.to_string();
        let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
        let answer = self.take(&method, &url);
        self.state().requests.push(HttpRequest {
            headers: headers.collect(),
            was_answered: answer.is_some(),
            method,
            url,
            body,
        });
        Ok(answer.ok_or("the test has no answer to this request")?.response()?)
    }
}

/// An address on the Internet, which every name leads to. Nothing connects to it.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 215, 14));

#[async_trait]
impl Resolver for Network {
    async fn resolve(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![SocketAddr::new(ADDRESS, port)])
    }
}

#[async_trait]
impl Connector for Network {
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let (stream, other) = tokio::io::duplex(64 << 10);
        let network = self.clone();
        let scheme = if address.port() == 443 { "https" } else { "http" };
        tokio::spawn(async move {
            let service = service_fn(|request| network.answer(scheme, request));
            let served = hyper::server::conn::http1::Builder::new();
            // A request without an answer ends the connection, and is noted.
            let _ = served.serve_connection(TokioIo::new(other), service).await;
        });
        Ok(Box::new(stream))
    }

    fn is_secure(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_fit_patterns() {
        let check =
            |pattern, url, expected| assert_eq!(fits(pattern, url), expected, "{pattern} {url}");
        check("https://a/b", "https://a/b", true);
        check("https://a/b", "https://a/b?c", false);
        check("https://a/*", "https://a/b?c=d", true);
        check("https://*/b*", "https://x.y/b", true);
        check("https://*/b*", "https://x.y/c", false);
        check("*", "", true);
    }

    #[test]
    fn answers_are_given_in_their_order_and_the_last_again() {
        let network = Network::default();
        network.add(HttpAnswer::new("http://a/*").status(503));
        network.add(HttpAnswer::new("http://a/b").method("get").status(200));
        network.add(HttpAnswer::new("http://a/*").status(404));
        let statuses = |method, url| -> Vec<Option<u16>> {
            (0..3).map(|_| network.take(method, url).map(|answer| answer.status)).collect()
        };
        assert_eq!(statuses("GET", "http://a/b"), [Some(503), Some(200), Some(404)]);
        assert_eq!(statuses("POST", "http://a/b"), [Some(404); 3]);
        assert_eq!(statuses("GET", "http://b/"), [None; 3]);
    }
}
