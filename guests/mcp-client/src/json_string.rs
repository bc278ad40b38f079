//! Texts in JSON, read at the cost of what they say.

use std::borrow::Cow;

/// What a JSON string says, if it is one that can be read: `json` is the text of a value. A string
/// without escapes is not copied, and the copy of another is as long as it has to be. A parser has
/// several copies of it for a while, which matters where memory is never given back.
pub fn text(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    let mut escapes = 0;
    let mut at = 0;
    while let Some(found) = inner.get(at..)?.find('\\') {
        escapes += 1;
        at += found + 2;
    }
    if escapes == 0 {
        return Some(Cow::Borrowed(inner));
    }
    let mut text = String::with_capacity(inner.len() - escapes);
    let mut rest = inner;
    while let Some((before, escape)) = rest.split_once('\\') {
        text.push_str(before);
        let (c, length) = escaped(escape)?;
        text.push(c);
        rest = &escape[length..];
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

/// JSON without the escapes that it could do without, as some write `<` and all that is not ASCII. Who
/// looks for something in it then finds it.
pub fn without_needless_escapes(json: &str) -> Cow<'_, str> {
    if !json.contains('\\') {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, escape)) = rest.split_once('\\') {
        text.push_str(before);
        match escaped(escape) {
            Some((c, length)) if c >= ' ' && c != '"' && c != '\\' => {
                text.push(c);
                rest = &escape[length..];
            }
            // One that is needed, or none at all: what follows the backslash belongs to it.
            _ => {
                let length = escape.chars().next().map_or(0, char::len_utf8);
                text.push('\\');
                text.push_str(&escape[..length]);
                rest = &escape[length..];
            }
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The character that an escape stands for, and how long it is without its backslash.
fn escaped(escape: &str) -> Option<(char, usize)> {
    let c = match escape.bytes().next()? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(escape),
        _ => return None,
    };
    Some((c, 1))
}

/// The same for `uXXXX`, and two of them where one is half a character.
fn unicode(escape: &str) -> Option<(char, usize)> {
    let first = unit(escape)?;
    if let Some(c) = char::from_u32(first.into()) {
        return Some((c, 5));
    }
    let second = unit(escape.get(5..)?.strip_prefix('\\')?)?;
    let mut both = char::decode_utf16([first, second]);
    Some((both.next()?.ok()?, 11))
}

fn unit(escape: &str) -> Option<u16> {
    u16::from_str_radix(escape.strip_prefix('u')?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_escapes_that_are_needed_stay() {
        for (json, expected) in [
            (r#"{"a":"tok\u0026en\u003c\/9"}"#, r#"{"a":"tok&en</9"}"#),
            (r#""\u00e4 \ud83e\udd80""#, "\"\u{e4} \u{1f980}\""),
            (r#""\"\\u0026 \u0022\u005c\n\u0001""#, r#""\"\\u0026 \u0022\u005c\n\u0001""#),
            ("[1]", "[1]"),
        ] {
            assert_eq!(without_needless_escapes(json), expected);
        }
    }

    proptest! {
        #[test]
        fn without_needless_escapes_it_says_the_same(text: String) {
            let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("[\"{escaped}\"]");
            let plain = without_needless_escapes(&json);
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&plain).unwrap(), [text]);
        }
    }

    #[test]
    fn strings_say_what_they_say_and_others_nothing() {
        for json in [
            r#""""#,
            r#""plain""#,
            r#""a\nb\\\"\/\b\f\r\t""#,
            r#""\\""#,
            r#""\u00e4 \ud83e\udd80 é""#,
            r#""\ud800""#,
            r#""\ud800\n""#,
            r#""\udc00\ud800""#,
            "3",
            "[\"a\"]",
        ] {
            let expected: Option<String> = serde_json::from_str(json).ok();
            assert_eq!(text(json).map(Cow::into_owned), expected, "{json}");
        }
    }

    #[test]
    fn what_is_not_escaped_is_not_copied_and_what_is_once() {
        assert!(matches!(text(r#""plain""#), Some(Cow::Borrowed("plain"))));
        let lines = format!("\"{}\"", r"line\n".repeat(1000));
        let Some(Cow::Owned(lines)) = text(&lines) else { panic!("it is escaped") };
        assert_eq!((lines.len(), lines.capacity()), (5000, 5000));
    }

    proptest! {
        #[test]
        fn it_reads_what_a_parser_reads(said in any::<String>()) {
            let json = serde_json::to_string(&said).unwrap();
            prop_assert_eq!(text(&json), Some(Cow::Borrowed(said.as_str())));
            let ascii: String = said.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{ascii}\"");
            prop_assert_eq!(text(&json), Some(Cow::Borrowed(said.as_str())));
        }
    }
}
