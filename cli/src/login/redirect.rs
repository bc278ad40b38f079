//! Where a browser comes back to after a login: a port of this machine, as RFC 8252 has it for native applications.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use url::Url;

/// The path of the URL.
const PATH: &str = "/callback";

/// What listens for the browser.
pub(super) struct RedirectListener {
    listener: TcpListener,
    pub(super) port: u16,
}

/// What the authorization server sends back with the browser.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RedirectAnswer {
    /// The code, and who says that it has made it, after RFC 9207.
    Code { code: String, issuer: Option<String> },
    /// There is none.
    Denied(String),
}

impl RedirectListener {
    /// Listens on the port that is wanted, or on any.
    pub(super) async fn bind(port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The URL that leads here.
    pub(super) fn url(&self) -> String {
        format!("http://{}:{}{PATH}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// Waits for a browser with this state, which nobody else can know. Others are told that there is nothing here.
    pub(super) async fn answer(self, state: &str) -> RedirectAnswer {
        let (give, mut given) = mpsc::channel(1);
        let state: std::sync::Arc<str> = state.into();
        // A browser may open connections that it does not use.
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                answer = given.recv() => {
                    if let Some(answer) = answer {
                        // It is shown the page before the port goes.
                        while connections.join_next().await.is_some_and(|ended| ended.is_err()) {}
                        return answer;
                    }
                }
                accepted = self.listener.accept() => {
                    let Ok((stream, _)) = accepted else { continue };
                    let (give, state) = (give.clone(), state.clone());
                    let service = service_fn(move |request: Request<Incoming>| {
                        let (response, answer) = respond(&request, &state);
                        let give = give.clone();
                        async move {
                            if let Some(answer) = answer {
                                // Only the first counts.
                                let _ = give.try_send(answer);
                            }
                            Ok::<_, Infallible>(response)
                        }
                    });
                    let connection = http1::Builder::new()
                        .keep_alive(false)
                        .serve_connection(TokioIo::new(stream), service);
                    connections.spawn(async move {
                        // Who breaks it off learns nothing more.
                        let _ = connection.await;
                    });
                }
            }
        }
    }
}

fn respond(
    request: &Request<Incoming>,
    state: &str,
) -> (Response<Full<Bytes>>, Option<RedirectAnswer>) {
    let target = request.uri().path_and_query().map_or("", |target| target.as_str());
    let (status, text, answer) = match read(target, state) {
        Some(RedirectAnswer::Denied(problem)) => (
            StatusCode::OK,
            "Tenon is not logged in. This page can be closed.",
            Some(RedirectAnswer::Denied(problem)),
        ),
        Some(code) => {
            (StatusCode::OK, "Tenon goes on in the terminal. This page can be closed.", Some(code))
        }
        None => (StatusCode::NOT_FOUND, "There is nothing here.", None),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    (response, answer)
}

/// A parameter of the query of a URL.
pub(super) fn query_parameter(url: &Url, name: &str) -> Option<String> {
    let found = url.query_pairs().find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

/// What the path and the query of a request say, if they are those of an answer.
fn read(target: &str, state: &str) -> Option<RedirectAnswer> {
    let url = Url::parse("http://localhost").ok()?.join(target).ok()?;
    let parameter = |name: &str| query_parameter(&url, name);
    if url.path() != PATH || parameter("state")? != state {
        return None;
    }
    let issuer = parameter("iss");
    if let Some(error) = parameter("error") {
        let description = parameter("error_description");
        return Some(RedirectAnswer::Denied(match description {
            Some(description) => format!("{error}: {description}"),
            None => error,
        }));
    }
    parameter("code").map(|code| RedirectAnswer::Code { code, issuer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_state_that_was_sent() {
        let code = |issuer: Option<&str>| {
            let issuer = issuer.map(str::to_string);
            Some(RedirectAnswer::Code { code: "c d".into(), issuer })
        };
        let denied = |problem: &str| Some(RedirectAnswer::Denied(problem.into()));
        let check = |target: &str, expected: Option<RedirectAnswer>| {
            assert_eq!(read(target, "s1"), expected, "{target}");
        };
        check("/callback?code=c+d&state=s1", code(None));
        check("/callback?state=s1&iss=https%3A%2F%2Fa&code=c%20d", code(Some("https://a")));
        check("/callback?error=access_denied&state=s1", denied("access_denied"));
        check("/callback?error=e&error_description=no+way&state=s1", denied("e: no way"));
        check("/callback?code=c&state=s2", None);
        check("/callback?code=c", None);
        check("/callback?state=s1", None);
        check("/other?code=c&state=s1", None);
        check("/favicon.ico", None);
        check("", None);
    }
}
