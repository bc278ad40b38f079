//! Small things about texts: cutting and showing them, and patterns that they fit.

mod emoji;
pub mod json_escape;

use std::borrow::Cow;
use std::fmt::{self, Write};

/// The beginning of a text, cut between characters.
pub fn cut(text: &str, most: usize) -> &str {
    match text.len() <= most {
        true => text,
        false => &text[..text.floor_char_boundary(most)],
    }
}

/// The beginning of what something is written as, of so many bytes at most. The rest, which may be as
/// long as a value, is not even made.
pub fn beginning(written: &impl fmt::Display, most: usize) -> String {
    let mut beginning = PrefixWriter { text: String::new(), most };
    let _ = write!(beginning, "{written}");
    beginning.text
}

struct PrefixWriter {
    text: String,
    most: usize,
}

impl Write for PrefixWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.most - self.text.len();
        self.text.push_str(cut(text, left));
        if text.len() > left { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Cuts a text that is longer, and says in it how long it was.
pub fn shorten(text: &mut String, most: usize) {
    let length = text.len();
    if length > most {
        text.truncate(text.floor_char_boundary(most));
        text.push_str(&format!("[cut: {length} bytes]"));
    }
}

/// A text with characters that could mislead a reader made visible: controls, and those that change
/// the direction of text, have no width, or end a line where none is seen to end.
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, |c| !matches!(c, '\n' | '\t') && misleads(c))
}

/// The same for a text that must not begin a line of its own.
pub fn one_line(text: &str) -> Cow<'_, str> {
    shown(text, misleads)
}

/// A JSON text with the same characters as escapes of JSON, which change nothing of what it means.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    json_with_escapes(json, misleads)
}

/// The same for whoever decides by what is read: a blank that is not the usual one looks like it, and is another character.
pub fn exact_json(json: &str) -> Cow<'_, str> {
    json_with_escapes(json, |c| misleads(c) || (c.is_whitespace() && !c.is_ascii()))
}

fn json_with_escapes(json: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if is_plain(json) {
        return json.into();
    }
    // Between values there may be line ends and tabs; within texts they are escaped already.
    let is_hidden = |c: char| !matches!(c, '\n' | '\t' | '\r') && is_escaped(c);
    if !json.contains(is_hidden) {
        return json.into();
    }
    escaped(json, is_hidden, |shown, c| {
        let mut units = [0; 2];
        let units = c.encode_utf16(&mut units).iter();
        shown.extend(units.map(|unit| format!("\\u{unit:04x}")));
    })
    .into()
}

/// Whether a text has nothing but what is seen in ASCII, which is quickly told: a compiler makes one step of a few
/// bytes where nothing ends the loop between them.
fn is_plain(text: &str) -> bool {
    let is_seen =
        |bytes: &[u8]| bytes.iter().fold(true, |all, byte| all & matches!(byte, b' '..=b'~'));
    text.as_bytes().chunks(64).all(is_seen)
}

fn shown(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if is_plain(text) || !text.contains(&is_hidden) {
        return text.into();
    }
    escaped(text, is_hidden, |shown, c| match c {
        '\n' | '\t' | '\r' => shown.extend(c.escape_default()),
        c => shown.extend(c.escape_unicode()),
    })
    .into()
}

/// A text with escapes for what is hidden, unless it belongs to an emoji, which is seen, or to the
/// spelling of a word.
fn escaped(
    text: &str,
    is_hidden: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char),
) -> String {
    let mut shown = String::with_capacity(text.len() + 8);
    let mut rest = text;
    let mut before = None;
    while let Some(c) = rest.chars().next() {
        let length = match emoji::length(rest) {
            0 => c.len_utf8(),
            length => length,
        };
        let (start, end) = rest.split_at(length);
        match is_hidden(c) && !is_spelling(before, c, end.chars().next()) {
            true => escape(&mut shown, c),
            false => shown.push_str(start),
        }
        before = Some(c);
        rest = end;
    }
    shown
}

/// Whether a character joins two letters of a script that is written with joiners, or keeps them apart:
/// one alone between them (RFC 5892, appendix A, without the classes of letters).
fn is_spelling(before: Option<char>, c: char, after: Option<char>) -> bool {
    let is_of_script =
        |c: Option<char>| matches!(c, Some('\u{620}'..='\u{1cff}' | '\u{a840}'..='\u{abff}'));
    matches!(c, '\u{200c}' | '\u{200d}') && is_of_script(before) && is_of_script(after)
}

/// Whether a terminal would obey a character, or show nothing for it. Variation selectors and tags
/// are among them: any number of them, one after the other, is a text that nobody sees. Those that
/// belong to an emoji are no such text; see [`emoji`].
fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a pattern, in which `*` stands for any text, fits a text.
///
/// If the text is itself such a pattern, the answer is whether this pattern fits all that the other one
/// fits: a `*` of the text is fitted only by a `*` of the pattern.
pub fn fits(pattern: &str, text: &str) -> bool {
    fits_with('*', pattern, text)
}

/// The same, with another character in place of `*`.
pub fn fits_with(wildcard: char, pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once(wildcard) else { return pattern == text };
    let Some(mut left) = text.strip_prefix(start) else { return false };
    let mut parts = rest.split(wildcard).peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        match left.find(part) {
            Some(place) => left = &left[place + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
    }

    #[test]
    fn what_could_mislead_a_reader_is_visible() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected);
        check("two\nlines\tand é", "two\nlines\tand é");
        check("\u{1b}[2Jgone", "\\u{1b}[2Jgone");
        check("over\rwritten", "over\\rwritten");
        assert_eq!(one_line("two\nlines\t"), "two\\nlines\\t");
        for hidden in [
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{85}',
            '\u{115f}',
            '\u{1160}',
            '\u{180e}',
            '\u{200b}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{2066}',
            '\u{3164}',
            '\u{fe00}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{1bca0}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e007f}',
            '\u{e0100}',
            '\u{e01ef}',
        ] {
            let expected = format!("a{}b", hidden.escape_unicode());
            check(&format!("a{hidden}b"), &expected);
        }
        for seen in [
            "\u{2764}\u{fe0f}",
            "\u{260e}\u{fe0e}",
            "\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}",
            "\u{1f9d1}\u{1f3fd}\u{200d}\u{1f680}",
            "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "1\u{fe0f}\u{20e3}#\u{fe0f}\u{20e3}",
            "\u{1f1f3}\u{1f1f4}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        ] {
            check(&format!("a{seen}b"), &format!("a{seen}b"));
            assert_eq!(visible_json(&format!("\"{seen}\"")), format!("\"{seen}\""));
        }
        // What belongs to no emoji is hidden, though it is beside one.
        check("\u{2764}\u{fe0f}\u{fe0f}", "\u{2764}\u{fe0f}\\u{fe0f}");
        check("\u{2764}\u{200d}x", "\u{2764}\\u{200d}x");
        check("x\u{200d}\u{2764}", "x\\u{200d}\u{2764}");
        check("\u{fe0f}\u{200d}", "\\u{fe0f}\\u{200d}");
        check("1\u{fe0f}2", "1\\u{fe0f}2");
        check("\u{1f3f4}\u{e0067}\u{e007f}", "\u{1f3f4}\\u{e0067}\\u{e007f}");
        check("\u{1f600}\u{e0061}", "\u{1f600}\\u{e0061}");
        check("می\u{200c}خواهم क्\u{200d}ष", "می\u{200c}خواهم क्\u{200d}ष");
        check("می\u{200c}\u{200c}خ", "می\\u{200c}\\u{200c}خ");
        check("می\u{200c}", "می\\u{200c}");
        check("a\u{200d}خ", "a\\u{200d}خ");
        // Spaces can be seen, and so can accents.
        check("a\u{a0}b\u{301}", "a\u{a0}b\u{301}");
    }

    #[test]
    fn json_means_the_same_when_it_is_visible() {
        let check = |json: &str, expected: &str| {
            let shown = visible_json(json);
            assert_eq!(shown, expected);
            let read = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
            assert_eq!(read(&shown), read(json));
        };
        check("{\n\t\"é\": \"\\n\"}", "{\n\t\"é\": \"\\n\"}");
        check("\"a\u{202e}b\u{e0041}\"", "\"a\\u202eb\\udb40\\udc41\"");
    }

    #[test]
    fn blanks_are_told_apart_for_whoever_decides() {
        let json = "{\n\"a b\": \"a\u{a0}b\u{2003}c\u{3000}d\u{202e}é\"}";
        let expected = "{\n\"a b\": \"a\\u00a0b\\u2003c\\u3000d\\u202eé\"}";
        assert_eq!(exact_json(json), expected);
        assert_eq!(exact_json("{\n\t\"é\": \"\\n\"}"), "{\n\t\"é\": \"\\n\"}");
    }

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("a__b", "a__b", true),
            ("a__b", "a__bc", false),
            ("a__*", "a__b", true),
            ("*", "anything", true),
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
