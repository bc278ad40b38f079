//! Which request follows an answer that redirects.

use super::{Method, Request, parse, shown};
use crate::{Error, ErrorCode};

/// Headers that belong to the origin that they were meant for.
const OF_ORIGIN: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// Headers that describe a body.
const OF_BODY: [&str; 4] =
    ["content-encoding", "content-language", "content-location", "content-type"];

/// The request that an answer asks for in place of the one that was sent; `None` for an answer that
/// redirects nowhere.
///
/// # Errors
///
/// [`ErrorCode::Failed`] where it redirects to something that cannot be requested.
pub(super) fn next(
    request: &Request,
    status: u16,
    location: Option<&str>,
) -> Result<Option<Request>, Error> {
    let (301 | 302 | 303 | 307 | 308, Some(location)) = (status, location) else { return Ok(None) };
    let failed = |reason: String| {
        Error::failed(format!("{} redirects to nowhere: {reason}", shown(&request.url)))
    };
    let url = request.url.join(location).map_err(|error| failed(error.to_string()))?;
    let url = parse(url.as_str()).map_err(|error| match error.code {
        ErrorCode::InvalidInput => failed(error.message),
        _ => error,
    })?;

    let mut next = Request { url, ..request.clone() };
    // What browsers do: 303 always means to look there, and a POST becomes a GET on old redirects.
    let looks = match status {
        303 => !matches!(request.method, Method::Get | Method::Head),
        301 | 302 => matches!(request.method, Method::Post),
        _ => false,
    };
    let mut dropped: Vec<&str> = Vec::new();
    if looks {
        next.method = Method::Get;
        next.body = None;
        dropped.extend(OF_BODY);
    }
    if next.url.origin() != request.url.origin() {
        dropped.extend(OF_ORIGIN);
    }
    next.headers.retain(|(name, _)| !dropped.iter().any(|other| name.eq_ignore_ascii_case(other)));
    Ok(Some(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method) -> Request {
        let headers = [("Authorization", "key"), ("Content-Type", "text/plain"), ("Accept", "*/*")];
        Request {
            method,
            url: parse("https://a.test/one/two?three").unwrap(),
            headers: headers.map(|(name, value)| (name.into(), value.into())).into(),
            body: Some(b"body".to_vec()),
            timeout: None,
        }
    }

    #[test]
    fn redirects() {
        let check = |method: Method, status, location, expected: (&str, &str, &str, bool)| {
            let next = next(&request(method), status, Some(location)).unwrap().unwrap();
            let names: Vec<&str> = next.headers.iter().map(|(name, _)| name.as_str()).collect();
            let (method, names) = (next.method.as_str(), names.join(" "));
            assert_eq!((method, next.url.as_str(), &*names, next.body.is_some()), expected);
        };
        let (kept, looked) = ("Authorization Content-Type Accept", "Authorization Accept");
        check(Method::Get, 301, "/x", ("GET", "https://a.test/x", kept, true));
        check(Method::Get, 302, "?y", ("GET", "https://a.test/one/two?y", kept, true));
        check(Method::Post, 302, "x", ("GET", "https://a.test/one/x", looked, false));
        check(Method::Put, 302, "x", ("PUT", "https://a.test/one/x", kept, true));
        check(Method::Put, 303, "x", ("GET", "https://a.test/one/x", looked, false));
        check(Method::Head, 303, "x", ("HEAD", "https://a.test/one/x", kept, true));
        check(Method::Post, 307, "x", ("POST", "https://a.test/one/x", kept, true));
        let bare = "Content-Type Accept";
        check(Method::Get, 308, "https://b.test", ("GET", "https://b.test/", bare, true));
        check(Method::Get, 308, "//b.test/x", ("GET", "https://b.test/x", bare, true));
        check(Method::Get, 308, "http://a.test/x", ("GET", "http://a.test/x", bare, true));
        check(Method::Get, 308, "https://a.test:444", ("GET", "https://a.test:444/", bare, true));
        check(Method::Post, 303, "https://b.test", ("GET", "https://b.test/", "Accept", false));
    }

    #[test]
    fn other_answers_redirect_nowhere() {
        let check = |status, location| {
            assert!(next(&request(Method::Get), status, location).unwrap().is_none());
        };
        check(200, Some("/x"));
        check(304, Some("/x"));
        check(301, None);
    }

    #[test]
    fn what_cannot_be_requested_is_told() {
        let check = |location, expected: &str| {
            let error = next(&request(Method::Get), 301, Some(location)).unwrap_err();
            let expected = format!("https://a.test/one/two redirects to nowhere: {expected}");
            assert_eq!(error, Error::failed(expected));
        };
        check("file:///x", "the scheme \"file\" is not supported: use http or https");
        check("https://me:word@a.test", "the URL holds credentials: pass them in a header");
        check("https://[", "invalid IPv6 address");
    }
}
