//! The network of a test: the answers that the test gives, and what was requested. Nothing leaves the process.

use async_trait::async_trait;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::HOST;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tenon_harness::protocol::{HttpAnswer, HttpRequest};
use tenon_host::services::{Connector, Resolver, Stream};
use tenon_host::types::text::fits;

fn fits_request(answer: &HttpAnswer, method: &str, url: &str) -> bool {
    answer.method.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(method))
        && fits(&answer.url, url)
}

/// # Errors
///
/// Where HTTP has no such status or header.
fn response(answer: HttpAnswer) -> http::Result<Response<Full<Bytes>>> {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    response.body(Full::new(answer.body.into()))
}

/// The network of one test.
#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Mutex<NetworkState>>);

#[derive(Default)]
struct NetworkState {
    answers: Vec<PreparedAnswer>,
    requests: Vec<HttpRequest>,
}

struct PreparedAnswer {
    answer: HttpAnswer,
    is_used: bool,
}

impl Network {
    pub(crate) fn add(&self, answer: HttpAnswer) {
        self.state().answers.push(PreparedAnswer { answer, is_used: false });
    }

    /// The answers that no request has had so far.
    pub(crate) fn unused_answers(&self) -> Vec<HttpAnswer> {
        let state = self.state();
        let unused = state.answers.iter().filter(|kept| !kept.is_used);
        unused.map(|kept| kept.answer.clone()).collect()
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
        let mut fitting =
            (0..answers.len()).filter(|i| fits_request(&answers[*i].answer, method, url));
        let first = fitting.next()?;
        if fitting.next().is_some() {
            return Some(answers.remove(first).answer);
        }
        answers[first].is_used = true;
        Some(answers[first].answer.clone())
    }

    async fn answer(
        &self,
        scheme: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes().to_vec();
        let text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
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
        Ok(response(answer.ok_or("the test has no answer to this request")?)?)
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
        assert_eq!(network.unused_answers(), []);
        network.add(HttpAnswer::new("http://b/*"));
        assert_eq!(network.unused_answers(), [HttpAnswer::new("http://b/*")]);
    }
}
