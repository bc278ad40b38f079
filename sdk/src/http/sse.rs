//! Server-sent events (WHATWG HTML, 9.2), as they come in: in pieces cut anywhere.

/// The longest line to take, where nothing is said.
pub const MOST_LINE: usize = 4 * 1024 * 1024;

/// An event.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Event {
    /// Its type; empty where the server names none.
    pub name: String,
    /// Its data, lines joined by line feeds.
    pub data: String,
    /// What to ask for to go on behind it, where the server says.
    pub id: Option<String>,
}

/// A line or an event that is longer than may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EventTooLong;

/// Takes a stream apart.
#[derive(Debug)]
pub struct Parser {
    /// The longest line, and the most data of an event, in bytes.
    most: usize,
    /// How long the server wants a client to wait before it asks again, in milliseconds.
    retry: Option<u64>,
    /// The line that has not ended yet. Its bytes may end within a character, so that it becomes
    /// text as a whole.
    line: Vec<u8>,
    /// The last byte was a carriage return, so that a line feed belongs to it.
    returned: bool,
    /// The first line was seen, which may begin with a byte order mark.
    begun: bool,
    /// What the event at hand consists of so far.
    event: Event,
    /// It has data, be it empty.
    data: bool,
}

impl Default for Parser {
    fn default() -> Self {
        Self::with_most(MOST_LINE)
    }
}

impl Parser {
    /// A parser that takes so many bytes of a line, or of the data of an event.
    pub fn with_most(most: usize) -> Self {
        Self {
            most,
            retry: None,
            line: Vec::new(),
            returned: false,
            begun: false,
            event: Event::default(),
            data: false,
        }
    }

    /// How long the server wants a client to wait before it asks again, in milliseconds, where it
    /// has said so.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Takes more bytes, and adds the events that they complete to `events`.
    ///
    /// # Errors
    ///
    /// [`EventTooLong`], after which the parser is of no more use.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), EventTooLong> {
        let mut rest = bytes;
        if self.returned
            && let [first, after @ ..] = rest
        {
            self.returned = false;
            if *first == b'\n' {
                rest = after;
            }
        }
        while let Some(end) = rest.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            self.extend(&rest[..end])?;
            events.extend(self.end_line()?);
            let skip = match rest[end..] {
                [b'\r', b'\n', ..] => 2,
                [b'\r'] => {
                    self.returned = true;
                    1
                }
                _ => 1,
            };
            rest = &rest[end + skip..];
        }
        self.extend(rest)
    }

    /// What the end of the stream completes: some servers leave out the last empty line.
    ///
    /// # Errors
    ///
    /// [`EventTooLong`]
    pub fn finish(mut self) -> Result<Option<Event>, EventTooLong> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        self.end_line()
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + bytes.len() > self.most {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<Event>, EventTooLong> {
        let line = std::mem::take(&mut self.line);
        let mut line = String::from_utf8_lossy(&line);
        if !std::mem::replace(&mut self.begun, true)
            && let Some(after) = line.strip_prefix('\u{feff}')
        {
            line = after.to_string().into();
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return Ok(std::mem::take(&mut self.data).then_some(event));
        }
        // A line that begins with a colon is a comment: its field has no name.
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = value.into(),
            "id" if !value.contains('\0') => self.event.id = Some(value.into()),
            "retry" => self.retry = value.parse().ok().or(self.retry),
            "data" => {
                if std::mem::replace(&mut self.data, true) {
                    self.event.data.push('\n');
                }
                if self.event.data.len() + value.len() > self.most {
                    return Err(EventTooLong);
                }
                self.event.data.push_str(value);
            }
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8], piece: usize) -> Vec<Event> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for piece in bytes.chunks(piece) {
            parser.push(piece, &mut events).unwrap();
        }
        events.extend(parser.finish().unwrap());
        events
    }

    /// Checks the data of the events, however the stream is cut.
    fn check(text: &str, expected: &[&str]) {
        for piece in 1..=text.len().max(1) {
            let events = parse(text.as_bytes(), piece);
            let data: Vec<&str> = events.iter().map(|event| event.data.as_str()).collect();
            assert_eq!(data, expected, "{text:?} in pieces of {piece}");
        }
    }

    #[test]
    fn events_end_at_empty_lines_of_all_kinds() {
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check("data: a\r\rdata: b\r\r", &["a", "b"]);
        check("data: a\r\n\ndata: b\n\r\n\n\n", &["a", "b"]);
    }

    #[test]
    fn data_lines_are_joined() {
        check("data: a\ndata: b\n\n", &["a\nb"]);
        check("data\ndata:\n\n", &["\n"]);
        check("data:a\n\n", &["a"]);
        check("data:  a\n\n", &[" a"]);
        check("data:\n\n", &[""]);
    }

    #[test]
    fn comments_and_other_fields_are_passed_over() {
        check(": ping\n\n: ping\n\ndata: a\n\n", &["a"]);
        check("id: 7\nretry: 10\nunknown: x\ndata: a\n\n", &["a"]);
        check("event: x\n\ndata: a\n\n", &["a"]);
        check("", &[]);
    }

    #[test]
    fn an_end_without_an_empty_line_counts() {
        check("data: a\n\ndata: [DONE]", &["a", "[DONE]"]);
        check("data: a\n", &["a"]);
    }

    #[test]
    fn characters_cut_apart_are_whole_again() {
        check("data: größe ✓ 🦀\n\n", &["größe ✓ 🦀"]);
        check("\u{feff}data: a\n\n", &["a"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(parse(b"data: a\xff\n\n", 3)[0].data, "a\u{fffd}");
    }

    #[test]
    fn names_belong_to_their_event() {
        let events = parse(b"event: error\ndata: a\n\ndata: b\n\n", 1);
        let event =
            |name: &str, data: &str| Event { name: name.into(), data: data.into(), id: None };
        assert_eq!(events, [event("error", "a"), event("", "b")]);
    }

    #[test]
    fn ids_and_waits_are_told() {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        parser
            .push(b"id: 7\nretry: 250\ndata: a\n\nretry: soon\ndata: b\n\n", &mut events)
            .unwrap();
        assert_eq!(events[0].id.as_deref(), Some("7"));
        assert_eq!(events[1].id, None);
        assert_eq!(parser.retry(), Some(250));
    }

    #[test]
    fn a_line_without_an_end_is_too_long() {
        let mut parser = Parser::default();
        let piece = vec![b'x'; MOST_LINE / 2];
        let mut events = Vec::new();
        assert_eq!(parser.push(&piece, &mut events), Ok(()));
        assert_eq!(parser.push(&piece, &mut events), Ok(()));
        assert_eq!(parser.push(b"x", &mut events), Err(EventTooLong));
    }

    #[test]
    fn an_event_without_an_end_is_too_long() {
        let mut parser = Parser::default();
        let line = [b"data: ".to_vec(), vec![b'x'; MOST_LINE / 2], b"\n".to_vec()].concat();
        let mut events = Vec::new();
        assert_eq!(parser.push(&line, &mut events), Ok(()));
        assert_eq!(parser.push(&line, &mut events), Err(EventTooLong));
    }
}
