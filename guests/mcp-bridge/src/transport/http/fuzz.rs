//! Answers in HTTP of any kind, and requests about anything.

use base64::Engine as _;
use mcp_client::HeaderArgument;

use super::*;

/// Any bytes: on the first line a status, a time to wait and a challenge; on the second the schema of a tool,
/// on the third the arguments of a call; and then the body of an answer. Headers are such as
/// every server takes, and what is told of an answer is short.
pub fn http(data: &[u8]) {
    let mut lines = data.splitn(4, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (first, schema, arguments, body) = (line(), line(), line(), line());
    let first = String::from_utf8_lossy(first);
    let (status, rest) = first.split_once(' ').unwrap_or((&first, ""));
    let (retry_after, challenge) = rest.split_once(' ').unwrap_or((rest, ""));

    let status = status.parse().unwrap_or(500);
    let told = match of_status(status, retry_after.parse().ok(), body) {
        mcp_client::Error::Unavailable { message, .. } | mcp_client::Error::Protocol(message) => {
            message
        }
        other => panic!("{other:?}"),
    };
    // What is no text is three bytes for each of its own.
    assert!(told.len() <= 3 * MAX_EXCERPT_BYTES + 100, "{told}");
    assert!(excerpt(body).len() <= 3 * MAX_EXCERPT_BYTES + 2);
    let unauthorized = unauthorized(status, Some(challenge.to_string()));
    assert!(
        matches!(unauthorized, mcp_client::Error::Needs(message) if message.contains(challenge))
    );
    let (_, _) = (is_error(body), says_session(body));
    let _ = answers(&String::from_utf8_lossy(body), 1);

    let text = String::from_utf8_lossy(body).into_owned();
    check_value(&header_value(&text), &text);
    let schema = String::from_utf8_lossy(schema);
    let Ok(mirrored) = HeaderArgument::in_schema(&schema) else { return };
    let head = RequestHead { id: 1, method: "tools/call", subject: Some(text), mirrored };
    let line = [b"{\"params\":{\"arguments\":", arguments, b"}}"].concat();
    with(|state| state.revision = Some(MODERN.into()));
    let headers = with(|state| state.headers(Some(&head)));
    let mirrored = super::mirrored(&head, &line).unwrap_or_default();
    for (name, value) in headers.iter().chain(&mirrored) {
        assert!(!name.is_empty() && name.bytes().all(is_token), "{name:?} is no name of a header");
        assert!(value.bytes().all(is_legal), "{name}: {value:?} is no value of a header");
    }
}

/// Holds the value of a header against the text that it is for.
fn check_value(value: &str, text: &str) {
    assert!(value.bytes().all(is_legal) && value.trim() == value, "{value:?}");
    let inner = value.strip_prefix("=?base64?").and_then(|value| value.strip_suffix("?="));
    let read = match inner {
        Some(inner) => {
            let bytes = base64::prelude::BASE64_STANDARD.decode(inner).expect("it is Base64");
            String::from_utf8(bytes).expect("it is the text")
        }
        None => value.to_string(),
    };
    assert_eq!(read, text);
}

fn is_legal(byte: u8) -> bool {
    (0x20..=0x7e).contains(&byte)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
