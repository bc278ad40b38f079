//! JSON-RPC 2.0 messages, as servers write them and as they should.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

use crate::json_array::items;
use crate::json_string::without_needless_escapes;
use crate::raw_json::Json;

/// A JSON value inside of the line that brought it. Nothing is copied.
#[derive(Clone)]
pub struct JsonSlice {
    line: String,
    range: Range<usize>,
}

impl JsonSlice {
    /// The text of the value.
    pub fn get(&self) -> &str {
        &self.line[self.range.clone()]
    }

    /// Where a value stands that is inside of this one.
    pub fn place_of(&self, value: &str) -> Range<usize> {
        let start = value.as_ptr() as usize - self.get().as_ptr() as usize;
        start..start + value.len()
    }

    /// The value at a place inside of this one.
    pub fn part(self, place: Range<usize>) -> Self {
        let start = self.range.start;
        Self { line: self.line, range: start + place.start..start + place.end }
    }

    /// The text of the value, in the memory of the line.
    pub fn into_text(self) -> String {
        let Self { line: mut text, range } = self;
        text.truncate(range.end);
        text.drain(..range.start);
        text
    }
}

/// Two are equal when they hold the same text, whatever stood around it.
impl PartialEq for JsonSlice {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl std::fmt::Debug for JsonSlice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.get())
    }
}

impl From<&str> for JsonSlice {
    fn from(value: &str) -> Self {
        Self { line: value.to_string(), range: 0..value.len() }
    }
}

/// What a server said.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// The answer to a request.
    Response { id: Option<u64>, answer: Answer },
    /// It asks for something. The id is given back as it is.
    Request { id: Json, method: String, params: Option<String> },
    /// It tells something.
    Notification { method: String, params: Option<String> },
}

/// An answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    Result(JsonSlice),
    Error(RpcError),
    /// Neither, or both at once.
    Invalid(&'static str),
}

/// The `error` of a response.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub(crate) struct RpcError {
    #[serde(default)]
    pub(crate) code: f64,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) data: Option<Json>,
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Reads a line: one message, several in a batch, or nothing that is one.
pub(crate) fn read(mut line: Vec<u8>) -> Result<Vec<Incoming>, NotMessages> {
    mend_halves(&mut line);
    let line = match String::from_utf8(line) {
        Ok(line) => line,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    let text = content(&line);
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if text.starts_with('[') {
        let batch = items(text).map_err(|_| NotMessages)?;
        let read = batch.into_iter().map(|message| one(message.get().to_string()));
        return Ok(read.filter_map(Result::ok).collect());
    }
    one(line).map(|message| vec![message])
}

/// What a line says, without white space around it and a mark of its byte order before it.
fn content(line: &str) -> &str {
    match line.as_bytes() {
        // Nearly all have neither.
        [b'{', .., b'}'] => line,
        _ => line.trim_start_matches('\u{feff}').trim(),
    }
}

/// Replaces escapes of half a character, which are written where a text was cut in the middle of one,
/// and which no reader of JSON takes. The line stays as long as it is.
fn mend_halves(line: &mut [u8]) {
    let mut at = 0;
    while let Some(found) = line.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        at += match (unit(line, at), unit(line, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                line[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            // What follows a backslash begins no escape.
            _ => 2,
        };
    }
}

/// The UTF-16 unit that an escape stands for.
fn unit(line: &[u8], at: usize) -> Option<u16> {
    let digits = line.get(at..)?.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// A line that holds no message.
#[derive(Debug, PartialEq)]
pub(crate) struct NotMessages;

fn one(line: String) -> Result<Incoming, NotMessages> {
    let text = content(&line);
    let message: RawMessage<'_> = serde_json::from_str(text).map_err(|_| NotMessages)?;
    if let Some(method) = message.method {
        let method = method.into_owned();
        let params = message.params.map(|params| params.get().to_string());
        return Ok(match message.id.filter(|id| id.get() != "null") {
            // Any other could not be given back.
            Some(id) if !is_id(id.get()) => return Err(NotMessages),
            Some(id) => Incoming::Request { id: id.into(), method, params },
            None => Incoming::Notification { method, params },
        });
    }
    let id = message.id.and_then(|id| read_id(id.get()));
    let error = message.error.filter(|error| error.get() != "null");
    let answer = match (message.result, error) {
        (Some(_), Some(_)) => Answer::Invalid("it has both a result and an error"),
        (Some(result), None) => {
            let start = result.get().as_ptr() as usize - line.as_ptr() as usize;
            let range = start..start + result.get().len();
            Answer::Result(JsonSlice { line, range })
        }
        (None, Some(error)) => Answer::Error(read_error(error.get())),
        (None, None) if id.is_some() => Answer::Invalid("it has neither a result nor an error"),
        (None, None) => return Err(NotMessages),
    };
    Ok(Incoming::Response { id, answer })
}

/// The longest id of a server's, in bytes of JSON: it is kept until it is answered.
const MAX_ID_BYTES: usize = 1 << 10;

/// Whether this is what an id may be: a string or a number.
fn is_id(text: &str) -> bool {
    text.len() <= MAX_ID_BYTES
        && text.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

/// An id of ours, which is an integer. Some servers give it back as a float.
fn read_id(text: &str) -> Option<u64> {
    if let Ok(id) = text.parse() {
        return Some(id);
    }
    let id: f64 = text.parse().ok()?;
    (id.fract() == 0.0 && (0.0..9e15).contains(&id)).then_some(id as u64)
}

/// What the beginning shows of a message that is too long to read whole.
#[derive(Debug, PartialEq)]
pub(crate) enum OversizedMessage {
    /// It may be an answer, to the request of this id where that was seen.
    Answer(Option<u64>),
    /// It asks or tells something: it is nobody's answer, whatever its id.
    Other,
}

/// Reads the beginning of a message: its own members, not those in what it holds.
pub(crate) fn beginning(prefix: &[u8]) -> OversizedMessage {
    let mut id = None;
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = prefix.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(end) = end_of_string(prefix, at) else { break };
                let after = prefix[end..].trim_ascii_start();
                // Otherwise it is a value, not a name.
                if let Some(value) = after.strip_prefix(b":").filter(|_| depth == 1) {
                    match &prefix[at..end] {
                        b"\"method\"" | b"\"params\"" => return OversizedMessage::Other,
                        b"\"id\"" => id = whole_number(value),
                        _ => {}
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    OversizedMessage::Answer(id)
}

/// The number that a value is, where all of it is there.
fn whole_number(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii_start();
    let end = value.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&value[..end]).ok()?.parse().ok()
}

/// Where the string ends that begins here, behind its closing quote.
fn end_of_string(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// An error. One that is not of the form it should have is kept as text.
pub(crate) fn read_error(text: &str) -> RpcError {
    serde_json::from_str(text).unwrap_or_else(|_| {
        let message = without_needless_escapes(text).into_owned();
        RpcError { message, ..RpcError::default() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(id: u64, result: &str) -> Incoming {
        Incoming::Response { id: Some(id), answer: Answer::Result(result.into()) }
    }

    fn check(line: &str, expected: &[Incoming]) {
        let read = read(line.as_bytes().to_vec()).expect("the line is read");
        assert_eq!(read, expected, "{line}");
    }

    #[test]
    fn responses() {
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#, &[response(7, r#"{"a":1}"#)]);
        check(r#"  {"result": [1, 2] ,"id":7.0}  "#, &[response(7, "[1, 2]")]);
        check("\u{feff}{\"id\":7,\"result\":{}}", &[response(7, "{}")]);
        check("", &[]);
    }

    // MCP.md: A8
    #[test]
    fn batches_are_read_and_their_broken_members_skipped() {
        check(
            r#"[{"id":1,"result":{}}, 3, {"id":2,"result":{}}]"#,
            &[response(1, "{}"), response(2, "{}")],
        );
    }

    // MCP.md: B3
    #[test]
    fn an_answer_that_is_two_things_or_nothing_is_invalid() {
        let invalid = |text: &str| {
            let read = read(text.as_bytes().to_vec()).unwrap();
            matches!(read[..], [Incoming::Response { answer: Answer::Invalid(_), .. }])
        };
        assert!(invalid(r#"{"id":1,"result":{},"error":{"code":1,"message":""}}"#));
        assert!(invalid(r#"{"id":1}"#));
        assert!(!invalid(r#"{"id":1,"result":{},"error":null}"#));
    }

    #[test]
    fn a_part_of_a_result_is_where_it_stood() {
        let read = read(br#" {"id":1,"result":{"a":[1, 2],"b":3}} "#.to_vec()).unwrap();
        let [Incoming::Response { answer: Answer::Result(payload), .. }] = &read[..] else {
            panic!("{read:?}")
        };
        let place = payload.place_of(&payload.get()[5..11]);
        assert_eq!(payload.clone().part(place).into_text(), "[1, 2]");
        assert_eq!(payload.clone().into_text(), payload.get());
    }

    // MCP.md: B2
    #[test]
    fn ids_of_other_kinds_are_none_of_ours() {
        for id in ["\"7\"", "null", "7.5", "-1", "[7]"] {
            let line = format!(r#"{{"id":{id},"result":{{}}}}"#);
            let read = read(line.into_bytes()).unwrap();
            assert!(matches!(read[..], [Incoming::Response { id: None, .. }]), "{id}");
        }
    }

    // MCP.md: A6
    #[test]
    fn invalid_utf8_is_replaced_and_read_on() {
        let read = read(b"{\"id\":1,\"result\":\"a\xffb\"}".to_vec()).unwrap();
        assert_eq!(read, [response(1, "\"a\u{fffd}b\"")]);
    }

    // MCP.md: A6
    #[test]
    fn half_a_character_is_replaced_and_read_on() {
        for (written, expected) in [
            (r"cut \ud83d", r"cut \ufffd"),
            (r"\uD83D\ud83e\udd80\udd80", r"\ufffd\ud83e\udd80\ufffd"),
            // Text, not an escape.
            (r"\\ud83d", r"\\ud83d"),
            (r"\u00e4\n", r"\u00e4\n"),
        ] {
            let line = format!(r#"{{"id":1,"result":"{written}"}}"#);
            let read = read(line.into_bytes()).unwrap();
            assert_eq!(read, [response(1, &format!("\"{expected}\""))]);
        }
        for cut in [r"\", r"\u", r"\ud83", r#"{"a":"\ud83d"#] {
            let mut line = cut.as_bytes().to_vec();
            mend_halves(&mut line);
            assert_eq!(line.len(), cut.len());
        }
    }

    #[test]
    fn the_beginning_of_a_message_says_whose_answer_it_is() {
        for (prefix, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":"xx"#, Some(7)),
            (r#"{"id" : 12 , "#, Some(12)),
            (r#"{"result":{"id":7,"a":["#, None),
            (r#"{"result":"\"id\":7","id":8,"#, Some(8)),
            (r#"{"jsonrpc":"2.0","id":7"#, None),
            (r#"{"result":"id","#, None),
            (r#"{"id":"7","#, None),
        ] {
            assert_eq!(
                beginning(prefix.as_bytes()),
                OversizedMessage::Answer(expected),
                "{prefix}"
            );
        }
        for prefix in [
            r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"a":"xx"#,
            r#"{"method":"notifications/message","params":"xx"#,
            r#"{"id":7,"params":["xx"#,
        ] {
            assert_eq!(beginning(prefix.as_bytes()), OversizedMessage::Other, "{prefix}");
        }
    }

    #[test]
    fn what_is_no_message_is_said_to_be_none() {
        for line in ["hello", "{", "3", "{}", "{\"a\":1}", r#"{"id":[1],"method":"ping"}"#] {
            assert_eq!(read(line.as_bytes().to_vec()), Err(NotMessages), "{line}");
        }
        let long = format!(r#"{{"id":"{}","method":"ping"}}"#, "x".repeat(MAX_ID_BYTES));
        assert_eq!(read(long.into_bytes()), Err(NotMessages));
    }
}
