//! What an endpoint says when it does not answer, as errors of the contract.

use std::time::SystemTime;

use serde_json::Value;
use tenon_sdk::Error;
use tenon_sdk::http::Headers;

use crate::api_key::Key;

/// The most characters of an endpoint's own words to repeat.
const MOST_WORDS: usize = 500;

/// An endpoint, as errors name it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The base URL, without its query.
    pub name: String,
    /// The key that is sent to it, which no error repeats.
    pub key: Option<Key>,
}

impl Endpoint {
    /// The error for an answer whose status is no success.
    pub fn refused(&self, status: u16, headers: &Headers, body: &[u8], now: SystemTime) -> Error {
        let mut message = format!("{} answered {status}", self.name);
        if let Some(words) = self.words(body) {
            message.push_str(": ");
            message.push_str(&words);
        } else if let (300..400, Some(location)) = (status, headers.get("location")) {
            let end = location.find(['?', '#']).unwrap_or(location.len());
            message.push_str(": it redirects to ");
            message.push_str(&self.quoted(&location[..end]));
        }
        by_status(status, message, retry_after(headers, now))
    }

    /// The error for a failure that is told in the place of an answer, as a JSON value.
    pub fn reported(&self, error: &Value) -> Error {
        let words = told(error).map(|words| self.quoted(&words));
        let words = words.unwrap_or_else(|| "it gives no reason".into());
        let message = format!("{} reports an error: {words}", self.name);
        let of = |key: &str| error.get(key).map(|value| value.as_str().unwrap_or_default());
        let number = |key: &str| error.get(key).and_then(Value::as_u64);
        let status = [number("code"), number("status"), of("code").and_then(|c| c.parse().ok())];
        if let Some(status) =
            status.into_iter().flatten().find(|status| (400..600).contains(status))
        {
            return by_status(status as u16, message, None);
        }
        let known = [of("code"), of("type")].into_iter().flatten().find_map(status_of);
        match known {
            Some(status) => by_status(status, message, None),
            None => Error::failed(message),
        }
    }

    /// The error for an answer that cannot be made out.
    pub fn malformed(&self, what: &str) -> Error {
        Error::failed(format!("{}: {what}", self.name))
    }

    /// The error for an answer that ended too soon.
    pub fn broken_off(&self) -> Error {
        unavailable(format!("{}: the answer broke off", self.name), None)
    }

    /// What the body of a refusal says; `None` where it says nothing to a reader.
    fn words(&self, body: &[u8]) -> Option<String> {
        let words = match serde_json::from_slice::<Value>(body) {
            Ok(value) => told(&value),
            Err(_) => Some(String::from_utf8_lossy(body).into_owned()),
        };
        let words = words.filter(|words| !words.trim_start().starts_with('<'))?;
        let words = self.quoted(&words);
        (!words.is_empty()).then_some(words)
    }

    /// Words of the endpoint on one line of bounded length, without the key. The key goes first, so
    /// that no part of it stays.
    fn quoted(&self, words: &str) -> String {
        let hidden = match &self.key {
            Some(key) => key.hide(words),
            None => words.into(),
        };
        let line = hidden.split_whitespace().collect::<Vec<_>>().join(" ");
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        match line.char_indices().nth(MOST_WORDS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }
}

/// The words in what an endpoint reports. Each dialect has its own place for them.
fn told(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        // FastAPI lists what is wrong, and Gemini puts its one error into a list.
        Value::Array(items) => {
            let words: Vec<String> = items.iter().take(5).filter_map(told).collect();
            (!words.is_empty()).then(|| words.join("; "))
        }
        Value::Object(members) => {
            ["error", "message", "detail", "msg"].iter().find_map(|key| told(members.get(*key)?))
        }
        _ => None,
    }
}

fn by_status(status: u16, message: String, retry_after: Option<u64>) -> Error {
    match status {
        400 | 413 | 422 => Error::invalid_input(message),
        401 | 403 => Error::denied(message),
        404 | 410 => Error::not_found(message),
        408 | 504 => Error::timeout(message),
        409 | 425 | 429 | 500.. => unavailable(message, retry_after),
        _ => Error::failed(message),
    }
}

fn unavailable(message: String, retry_after: Option<u64>) -> Error {
    Error { retry_after, ..Error::unavailable(message) }
}

/// The status that says the same as a word in an error's `code` or `type`.
fn status_of(word: &str) -> Option<u16> {
    Some(match word {
        "invalid_request_error" | "context_length_exceeded" | "BadRequestError" => 400,
        "authentication_error" | "invalid_api_key" | "permission_error" => 401,
        "model_not_found" | "not_found_error" | "NotFoundError" => 404,
        "timeout" | "timeout_error" => 408,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
        "server_error" | "api_error" | "internal_error" | "InternalServerError" => 500,
        "overloaded_error" | "service_unavailable" | "unavailable_error" => 503,
        _ => return None,
    })
}

/// How many milliseconds to wait before another attempt, as the headers of an answer say.
pub fn retry_after(headers: &Headers, now: SystemTime) -> Option<u64> {
    let milliseconds = |text: &str, each: f64| {
        let number: f64 = text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)?;
        Some((number * each).ceil() as u64)
    };
    if let Some(exact) = headers.get("retry-after-ms").and_then(|text| milliseconds(text, 1.0)) {
        return Some(exact);
    }
    let text = headers.get("retry-after")?;
    milliseconds(text, 1000.0).or_else(|| {
        let then = httpdate::parse_http_date(text).ok()?;
        // By the clock of the endpoint where it tells the time: the clock here may differ.
        let date = headers.get("date").and_then(|date| httpdate::parse_http_date(date).ok());
        let wait = then.duration_since(date.unwrap_or(now)).unwrap_or_default();
        u64::try_from(wait.as_millis()).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::{Duration, UNIX_EPOCH};
    use tenon_sdk::ErrorCode;

    fn endpoint() -> Endpoint {
        Endpoint { name: "https://ai.test/v1".into(), key: Key::new("sk-secret") }
    }

    fn refused(status: u16, body: &str) -> Error {
        endpoint().refused(status, &Headers::default(), body.as_bytes(), UNIX_EPOCH)
    }

    #[test]
    fn each_status_is_its_own_error() {
        let check = |status: u16, expected: ErrorCode| {
            let message = format!("https://ai.test/v1 answered {status}");
            assert_eq!(refused(status, ""), Error::new(expected, message));
        };
        let unavailable = ErrorCode::Unavailable;
        check(400, ErrorCode::InvalidInput);
        check(401, ErrorCode::Denied);
        check(402, ErrorCode::Failed);
        check(403, ErrorCode::Denied);
        check(404, ErrorCode::NotFound);
        check(405, ErrorCode::Failed);
        check(408, ErrorCode::Timeout);
        check(409, unavailable);
        check(410, ErrorCode::NotFound);
        check(413, ErrorCode::InvalidInput);
        check(418, ErrorCode::Failed);
        check(422, ErrorCode::InvalidInput);
        check(429, unavailable);
        check(500, unavailable);
        check(502, unavailable);
        check(503, unavailable);
        check(504, ErrorCode::Timeout);
        check(529, unavailable);
        check(302, ErrorCode::Failed);
    }

    #[test]
    fn the_words_of_every_dialect_are_quoted() {
        let check = |body: &str, expected: &str| {
            let expected = format!("https://ai.test/v1 answered 400{expected}");
            assert_eq!(refused(400, body), Error::invalid_input(expected), "{body}");
        };
        check(r#"{"error":{"message":"Bad.","type":"x","code":null}}"#, ": Bad.");
        check(r#"{"error":"model is required"}"#, ": model is required");
        check(r#"{"object":"error","message":"too long","code":400}"#, ": too long");
        check(r#"{"detail":"Not allowed"}"#, ": Not allowed");
        check(r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, ": field required");
        check(r#"[{"error":{"code":400,"message":"API key not valid"}}]"#, ": API key not valid");
        check("just\n  text\u{7}", ": just text");
        check("<html><body>Bad Gateway</body></html>", "");
        check("{}", "");
        check("", "");
        check(r#"{"error":{"message":"no key sk-secret here"}}"#, ": no key *** here");
    }

    #[test]
    fn long_words_are_cut_after_the_key_was_hidden() {
        let body = format!("{}sk-secret", "ä".repeat(MOST_WORDS - 4));
        let message = refused(400, &body).message;
        assert!(message.ends_with("ä***"), "{message}");
        let message = refused(400, &"ä".repeat(9999)).message;
        assert!(message.ends_with("ä…"), "{message}");
        assert_eq!(message.chars().filter(|c| *c == 'ä').count(), MOST_WORDS);
    }

    #[test]
    fn a_redirect_says_where_to() {
        let headers = Headers::from_iter([("location", "https://b.test/v1?token=x")]);
        let expected = "https://ai.test/v1 answered 308: it redirects to https://b.test/v1";
        let error = endpoint().refused(308, &headers, b"", UNIX_EPOCH);
        assert_eq!(error, Error::failed(expected));
    }

    #[test]
    fn errors_in_the_place_of_answers() {
        let check = |error: Value, expected: ErrorCode, words: &str| {
            let message = format!("https://ai.test/v1 reports an error: {words}");
            assert_eq!(endpoint().reported(&error), Error::new(expected, message), "{error}");
        };
        let unavailable = ErrorCode::Unavailable;
        check(json!({"message": "x", "code": 429}), unavailable, "x");
        check(json!({"message": "x", "code": "502"}), unavailable, "x");
        check(json!({"message": "x", "code": 400}), ErrorCode::InvalidInput, "x");
        check(json!({"message": "x", "type": "server_error"}), unavailable, "x");
        check(
            json!({"message": "x", "type": "invalid_request_error", "code": "model_not_found"}),
            ErrorCode::NotFound,
            "x",
        );
        check(json!({"message": "sk-secret"}), ErrorCode::Failed, "***");
        check(json!("overloaded"), ErrorCode::Failed, "overloaded");
        check(json!({}), ErrorCode::Failed, "it gives no reason");
    }

    #[test]
    fn the_time_to_wait() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let check = |headers: &[(&str, &str)], expected: Option<u64>| {
            let read: Headers = headers.iter().copied().collect();
            assert_eq!(retry_after(&read, now), expected, "{headers:?}");
        };
        check(&[], None);
        check(&[("retry-after", "7")], Some(7000));
        check(&[("retry-after", "0.25")], Some(250));
        check(&[("Retry-After-Ms", "1500"), ("retry-after", "7")], Some(1500));
        check(&[("retry-after-ms", "soon"), ("retry-after", "7")], Some(7000));
        check(&[("retry-after", "-1")], None);
        check(&[("retry-after", "NaN")], None);
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "1e300")], Some(u64::MAX));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], Some(10_000));
        check(&[("retry-after", "Sunday, 06-Nov-94 08:49:47 GMT")], Some(10_000));
        check(&[("retry-after", "Sun Nov  6 08:49:47 1994")], Some(10_000));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(0));
        let date = ("date", "Sun, 06 Nov 1994 08:49:17 GMT");
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"), date], Some(30_000));
    }
}
