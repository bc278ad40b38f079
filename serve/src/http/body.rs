//! What a client sends with POST: a message of bounded length, in bounded time.

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use super::answer::{Refused, refusal, text};
use super::memory_budget::MemoryPermit;
use crate::protocol::error::{PARSE, RpcError};

/// Checks what the client says that it sends and takes.
pub(super) fn check_types(headers: &HeaderMap) -> Result<(), Refused> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let problem = "the Content-Type of a message is application/json\n";
        return Err(text(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem).into());
    }
    if !(accepts(headers, "application/json") && accepts(headers, "text/event-stream")) {
        let problem = "a client has to accept application/json and text/event-stream\n";
        return Err(text(StatusCode::NOT_ACCEPTABLE, problem).into());
    }
    Ok(())
}

/// Whether the client takes a type of content. One that says nothing takes all.
pub(super) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let mut ranges = headers.get_all(ACCEPT).iter().peekable();
    if ranges.peek().is_none() {
        return true;
    }
    let main = kind.split('/').next().unwrap_or_default();
    let ranges = ranges.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut ranges = ranges.map(|range| {
        let mut parameters = range.split(';');
        let range = parameters.next().unwrap_or_default().trim();
        let mut parameters = parameters.map(str::trim);
        (
            range,
            parameters.any(|parameter| matches!(parameter, "q=0" | "q=0.0" | "q=0.00" | "q=0.000")),
        )
    });
    ranges.any(|(range, is_refused)| {
        !is_refused
            && (range == "*/*"
                || range.eq_ignore_ascii_case(kind)
                || range.strip_suffix("/*").is_some_and(|range| range.eq_ignore_ascii_case(main)))
    })
}

/// Reads the message. What it takes is taken of the client's memory.
pub(super) async fn read(
    body: Incoming,
    most: usize,
    time: Duration,
    memory: &mut MemoryPermit,
) -> Result<String, Refused> {
    let too_large = || {
        let problem = format!("the message is longer than {most} bytes\n");
        Refused::from(text(StatusCode::PAYLOAD_TOO_LARGE, problem))
    };
    // What says that it is too long need not be sent.
    if hyper::body::Body::size_hint(&body).lower() > most as u64 {
        return Err(too_large());
    }
    let mut body = pin!(Limited::new(body, most));
    let collected = async {
        // Pieces are put together as they come: each for itself would take much more than it has.
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await.transpose()? {
            if let Ok(data) = frame.into_data() {
                if !memory.take(data.len()) {
                    return Ok(None);
                }
                bytes.extend_from_slice(&data);
            }
        }
        Ok::<_, Box<dyn Error + Send + Sync>>(Some(bytes))
    };
    let body = match tokio::time::timeout(time, collected).await {
        Err(_) => {
            return Err(text(StatusCode::REQUEST_TIMEOUT, "the message took too long\n").into());
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
        Ok(Err(error)) => {
            let problem = format!("the message cannot be read: {error}\n");
            return Err(text(StatusCode::BAD_REQUEST, problem).into());
        }
        Ok(Ok(None)) => {
            let problem =
                "the messages of this client that are not answered yet are too long together\n";
            let mut refused = text(StatusCode::TOO_MANY_REQUESTS, problem);
            refused.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return Err(refused.into());
        }
        Ok(Ok(Some(body))) => body,
    };
    String::from_utf8(body).map_err(|_| {
        let error = RpcError::new(PARSE, "the message is not UTF-8");
        refusal(StatusCode::BAD_REQUEST, None, &error).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_takes_both_kinds_of_answers() {
        let check = |accept: Option<&str>, kind: &str, status: u16| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            if let Some(accept) = accept {
                headers.insert(ACCEPT, accept.parse().unwrap());
            }
            let checked = check_types(&headers);
            let found = checked.map_or_else(|refused| refused.status().as_u16(), |()| 200);
            assert_eq!(found, status, "{accept:?} {kind}");
        };
        let json = "application/json";
        for accept in [
            "application/json, text/event-stream",
            "text/event-stream;q=0.5,application/json",
            "*/*",
            "application/*, text/*",
        ] {
            check(Some(accept), json, 200);
        }
        check(None, json, 200);
        check(Some("application/json"), json, 406);
        check(Some("text/event-stream"), json, 406);
        check(Some("application/json, text/event-stream;q=0"), json, 406);
        check(Some("*/*"), "application/json; charset=utf-8", 200);
        check(Some("*/*"), "text/plain", 415);
        check(Some("*/*"), "application/jsonp", 415);
    }
}
