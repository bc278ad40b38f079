//! Answers to HTTP requests of a test.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use serde_json::Value;

use super::{Host, not_granted};
use crate::http::{Headers, Request, Url, shown};
use crate::{Error, Failure, Result};

/// What a test answers to a request: 200 and nothing else, unless more is said.
///
/// ```
/// use tenon_sdk::json;
/// use tenon_sdk::testing::HttpAnswer;
///
/// let busy = HttpAnswer::new(503).header("retry-after", "1");
/// let found = HttpAnswer::new(200).json(&json!({ "degrees": 21 }));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HttpAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Vec<u8>>,
}

impl HttpAnswer {
    /// An answer of this status, with an empty body.
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), chunks: Vec::new() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a piece to the body: text or bytes. Several pieces arrive one after the other.
    #[must_use]
    pub fn body(mut self, piece: impl Into<Vec<u8>>) -> Self {
        self.chunks.push(piece.into());
        self
    }

    /// Adds JSON to the body, and says that it is some.
    #[must_use]
    pub fn json(self, value: &Value) -> Self {
        self.header("content-type", "application/json").body(value.to_string())
    }
}

/// What a test can answer to a request: a status, text, bytes, JSON, an [`HttpAnswer`], or an error where the request
/// fails on its way.
pub trait IntoHttpAnswer {
    /// The answer.
    ///
    /// # Errors
    ///
    /// That with which the request fails.
    fn into_http_answer(self) -> Result<HttpAnswer, Error>;
}

macro_rules! answers {
    ($($type:ty: $value:ident => $answer:expr;)*) => {$(
        impl IntoHttpAnswer for $type {
            fn into_http_answer(self) -> Result<HttpAnswer, Error> {
                let $value = self;
                Ok($answer)
            }
        }
    )*};
}

answers! {
    HttpAnswer: answer => answer;
    u16: status => HttpAnswer::new(status);
    &str: text => HttpAnswer::new(200).body(text);
    String: text => HttpAnswer::new(200).body(text);
    Vec<u8>: bytes => HttpAnswer::new(200).body(bytes);
    Value: value => HttpAnswer::new(200).json(&value);
    (u16, &str): answer => HttpAnswer::new(answer.0).body(answer.1);
    (u16, Value): answer => HttpAnswer::new(answer.0).json(&answer.1);
}

impl IntoHttpAnswer for Error {
    fn into_http_answer(self) -> Result<HttpAnswer, Self> {
        Err(self)
    }
}

impl<T: IntoHttpAnswer, E: Into<Failure>> IntoHttpAnswer for Result<T, E> {
    fn into_http_answer(self) -> Result<HttpAnswer, Error> {
        self.map_err(|error| error.into().into_error())?.into_http_answer()
    }
}

type Answer = Rc<dyn Fn(&Request) -> Result<HttpAnswer, Error>>;

/// What answers the requests of a plugin, and which there were.
#[derive(Default)]
pub(super) struct Network {
    answers: RefCell<Vec<ResponseStub>>,
    requests: RefCell<Vec<Request>>,
}

#[derive(Clone)]
struct ResponseStub {
    method: Option<String>,
    url: String,
    answer: Answer,
}

impl ResponseStub {
    fn fits(&self, request: &Request) -> bool {
        let is_same =
            |pattern: &str| Url::parse(pattern).is_ok_and(|pattern| pattern == request.url);
        self.method.as_ref().is_none_or(|method| *method == request.method.as_str())
            && (fits(&self.url, request.url.as_str()) || is_same(&self.url))
    }
}

/// Whether a text fits a pattern, in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(begin) else { return false };
    loop {
        if fits(rest, text) {
            return true;
        }
        let mut characters = text.chars();
        if characters.next().is_none() {
            return false;
        }
        text = characters.as_str();
    }
}

/// The requests of the plugin.
impl Host {
    /// Grants requests to a URL, in which `*` stands for any text, and answers them. A method before it means requests
    /// with this method alone. Of several answers to a request each is given once, in their order, and the last again
    /// and again. No request leaves the process.
    ///
    /// ```
    /// use tenon_sdk::testing::Host;
    /// use tenon_sdk::{http, json};
    ///
    /// let host = Host::new()
    ///     .http("GET https://api.example.com/*", 503)
    ///     .http("GET https://api.example.com/*", json!({ "degrees": 21 }));
    /// let asked = http::get("https://api.example.com/weather").query("city", "Graz").send();
    /// let response = host.run(asked).unwrap();
    /// assert_eq!(response.status, 200);
    /// // It was sent again, without waiting in earnest.
    /// assert_eq!(host.requests().len(), 2);
    /// assert_eq!(host.requests()[1].url.query(), Some("city=Graz"));
    /// ```
    pub fn http(self, request: &str, answer: impl IntoHttpAnswer) -> Self {
        let answer = answer.into_http_answer();
        self.answer_with(request, Rc::new(move |_| answer.clone()))
    }

    /// The same with answers that depend on the request.
    ///
    /// ```
    /// use tenon_sdk::testing::Host;
    /// use tenon_sdk::{http, json};
    ///
    /// let host = Host::new().http_with("POST https://api.example.com/echo", |request| {
    ///     (201, request.json().unwrap_or_default())
    /// });
    /// let sent = http::post("https://api.example.com/echo").json(&json!([1, 2])).send();
    /// assert_eq!(host.run(sent).unwrap().status, 201);
    /// ```
    pub fn http_with<T: IntoHttpAnswer>(
        self,
        request: &str,
        answer: impl Fn(&Request) -> T + 'static,
    ) -> Self {
        self.answer_with(request, Rc::new(move |request| answer(request).into_http_answer()))
    }

    /// The requests that were answered so far, in their order.
    pub fn requests(&self) -> Vec<Request> {
        self.network().requests.borrow().clone()
    }

    fn answer_with(self, request: &str, answer: Answer) -> Self {
        let (method, url) = match request.split_once(' ') {
            Some((method, url)) => (Some(method.to_string()), url.trim()),
            None => (None, request),
        };
        let url = url.to_string();
        self.network().answers.borrow_mut().push(ResponseStub { method, url, answer });
        self
    }

    /// Takes the answer to a request.
    fn take_answer(&self, request: &Request) -> Option<ResponseStub> {
        let mut answers = self.network().answers.borrow_mut();
        let mut fitting = (0..answers.len()).filter(|index| answers[*index].fits(request));
        let first = fitting.next()?;
        Some(match fitting.next() {
            Some(_) => answers.remove(first),
            None => answers[first].clone(),
        })
    }

    pub(super) fn answer_http(
        &self,
        request: Request,
    ) -> Result<(u16, Headers, ResponseBody), Error> {
        let Some(answering) = self.take_answer(&request) else {
            let tried = format!("{} {}", request.method, shown(&request.url));
            let wanted = format!("{}/*", request.url.origin().ascii_serialization());
            return Err(not_granted(&tried, "network", &wanted, "http"));
        };
        self.network().requests.borrow_mut().push(request.clone());
        // Nothing is borrowed while the test's own function runs: it may look at the host.
        let HttpAnswer { status, headers, chunks } = (answering.answer)(&request)?;
        let chunks = chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect();
        Ok((status, Headers::from_iter(headers), ResponseBody(chunks)))
    }
}

/// The body of an answer.
pub(crate) struct ResponseBody(VecDeque<Vec<u8>>);

impl ResponseBody {
    /// The next piece, which is not empty; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.0.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let check =
            |pattern, text, expected| assert_eq!(fits(pattern, text), expected, "{pattern}");
        check("https://a.test/*", "https://a.test/", true);
        check("https://a.test/*", "https://a.test/x?y", true);
        check("https://a.test/*/z", "https://a.test/x/y/z", true);
        check("https://a.test/*/z", "https://a.test/x/y", false);
        check("https://a.test/", "https://a.test/x", false);
        check("*", "", true);
    }
}
