//! What is fuzzed: streams of server-sent events that are cut anywhere, and what else an answer or a
//! configuration says.

use super::sse::{Event, Parser};
use super::{Headers, target};

/// Any bytes: on the first line how much is taken of a line, and then a stream. However it is cut, the
/// same events come of it, and none is longer than it may be.
pub fn sse(data: &[u8]) {
    let (first, stream) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (&[][..], data),
    };
    let most = str::from_utf8(first).ok().and_then(|most| most.trim().parse().ok()).unwrap_or(64);
    let whole = parse(stream, most, |_| usize::MAX);
    // A byte at a time, two, and pieces of which each is as long as the byte before it says.
    assert_eq!(parse(stream, most, |_| 1), whole, "each byte for itself");
    assert_eq!(parse(stream, most, |_| 2), whole, "two bytes at a time");
    let said = |at: usize| 1 + usize::from(stream[at.saturating_sub(1)]) % 7;
    assert_eq!(parse(stream, most, said), whole, "pieces of many lengths");
    for event in whole.events {
        assert!(event.data.len() <= most, "there is more data than there may be: {event:?}");
        // What is no text takes three times as much as one.
        let (name, id) = (event.name.len(), event.id.as_deref().unwrap_or_default().len());
        assert!(name.max(id) <= most.saturating_mul(3), "a line was too long: {event:?}");
        assert!(!event.name.contains(['\n', '\r']), "a name has two lines: {event:?}");
        assert!(!event.data.contains('\r'), "a line has two ends: {event:?}");
    }
}

/// What comes of a stream.
#[derive(Debug, PartialEq)]
struct StreamResult {
    events: Vec<Event>,
    retry: Option<u64>,
    is_too_long: bool,
}

/// Takes a stream apart that comes in pieces, whose length depends on where they begin.
fn parse(stream: &[u8], most: usize, length: impl Fn(usize) -> usize) -> StreamResult {
    let mut parser = Parser::with_most(most);
    let mut events = Vec::new();
    let mut at = 0;
    while at < stream.len() {
        let end = at.saturating_add(length(at)).min(stream.len());
        if parser.push(&stream[at..end], &mut events).is_err() {
            return StreamResult { events, retry: parser.retry(), is_too_long: true };
        }
        at = end;
    }
    let retry = parser.retry();
    let last = parser.finish();
    let is_too_long = last.is_err();
    events.extend(last.ok().flatten());
    StreamResult { events, retry, is_too_long }
}

/// Any text: on the first line a URL, on each other a header. A request goes where the URL says and nowhere
/// else, and headers are found under their names.
pub fn http_client(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    if let Ok(url) = target::parse(first) {
        let parts = [target::authority(&url), target::path_with_query(&url)];
        for part in &parts {
            assert!(part.bytes().all(|byte| byte.is_ascii_graphic()), "{part:?} is no part of one");
        }
        assert!(!parts[0].contains(['/', '@', '?', '#']), "{:?} is no host", parts[0]);
        assert!(parts[1].starts_with('/') && !parts[1].contains('#'), "{:?} is no path", parts[1]);
        let again = target::parse(&format!("{}://{}{}", url.scheme(), parts[0], parts[1]));
        let again = again.expect("the parts make a URL");
        let mut same = url.clone();
        same.set_fragment(None);
        assert_eq!(again, same);
        assert!(!target::shown(&url).contains(['?', '#']), "it shows what may be a secret");
    }
    let fields: Vec<(String, Vec<u8>)> = rest
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
        .collect();
    let headers = Headers::read(fields.clone());
    assert_eq!(headers.iter().count(), fields.len());
    for (name, _) in &fields {
        let value = headers.get(&name.to_ascii_lowercase()).expect("it is there");
        assert_eq!(value, value.trim());
    }
    if let Some(kind) = headers.media_type() {
        assert!(!kind.contains(';') && kind == kind.trim().to_ascii_lowercase(), "{kind:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_inputs::{InputKind, fuzz};

    #[test]
    fn streams() {
        fuzz("sse", InputKind::Bytes, sse);
    }

    #[test]
    fn urls_and_headers() {
        fuzz("http_client", InputKind::Text, http_client);
    }
}
