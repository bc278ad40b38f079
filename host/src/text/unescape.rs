//! Texts in which JSON's escapes are read back, and where what is found there came from.

use std::ops::Range;

/// A text whose escapes were read back.
pub(crate) struct Unescaped {
    pub(crate) text: String,
    /// Where its parts begin, and where they began in the text that it was read from. Within a part
    /// both go on alike.
    parts: Vec<(usize, usize)>,
}

impl Unescaped {
    /// Reads back the escapes of a text, whether it is JSON or not; nothing where it has none.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let mut read = String::with_capacity(text.len());
        let mut parts = vec![(0, 0)];
        let mut at = 0;
        while let Some(found) = text[at..].find('\\') {
            let escape = at + found;
            read.push_str(&text[at..escape]);
            match escaped(&text[escape..]) {
                Some((meant, length)) => {
                    parts.push((read.len(), escape));
                    read.push(meant);
                    at = escape + length;
                    parts.push((read.len(), at));
                }
                None => {
                    read.push('\\');
                    at = escape + 1;
                }
            }
        }
        read.push_str(&text[at..]);
        (parts.len() > 1).then_some(Self { text: read, parts })
    }

    /// Where a part of it came from.
    pub(crate) fn origin(&self, part: Range<usize>) -> Range<usize> {
        let origin = |place: usize| {
            let before = self.parts.partition_point(|(begin, _)| *begin <= place);
            let (begin, from) = self.parts[before.saturating_sub(1)];
            from + (place - begin)
        };
        origin(part.start)..origin(part.end)
    }
}

/// The character that a text begins with as an escape, and the length of that.
fn escaped(text: &str) -> Option<(char, usize)> {
    let meant = match text.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unit(text).and_then(|first| character(first, &text[6..])),
        _ => return None,
    };
    Some((meant, 2))
}

/// The character of a UTF-16 unit and, where it needs another, the one after it.
fn character(first: u16, rest: &str) -> Option<(char, usize)> {
    let one = char::decode_utf16([first]).next()?;
    if let Ok(one) = one {
        return Some((one, 6));
    }
    let two = char::decode_utf16([first, unit(rest)?]).next()?;
    two.ok().map(|two| (two, 12))
}

/// The UTF-16 unit that `\uXXXX` at the beginning of a text stands for.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_back_and_lead_back() {
        let check = |text: &str, meant: &str, part: &str, origin: &str| {
            let read = Unescaped::of(text).expect("there are escapes");
            assert_eq!(read.text, meant, "{text}");
            let begin = meant.find(part).expect("it is a part");
            assert_eq!(&text[read.origin(begin..begin + part.len())], origin, "{text}");
        };
        check(r"a\u005ab", "aZb", "Z", r"\u005a");
        check(r#"x \"a\\b\" y"#, r#"x "a\b" y"#, r#""a\b""#, r#"\"a\\b\""#);
        check(r"\ud83d\udd11\/", "🔑/", "🔑/", r"\ud83d\udd11\/");
        check(r"ä\u00e4ä", "äää", "ää", r"ä\u00e4");
        check(r"\x\ud83d\u0041\u12", r"\x\ud83dA\u12", "A", r"\u0041");
        assert!(Unescaped::of("plain").is_none());
        assert!(Unescaped::of(r"\x \u12").is_none());
    }
}
