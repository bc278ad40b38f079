//! The escapes of JSON, read back one by one wherever they stand, in JSON or not.

/// What a text that begins with `\` begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// An escape: the character that it stands for, and its length in bytes.
    Meant(char, usize),
    /// No escape: the `\` stands for itself.
    None,
    /// More has to come before it is known.
    Unfinished,
}

impl Escape {
    /// Reads the beginning of a text that begins with `\`.
    pub fn of(text: &str) -> Self {
        let Some(kind) = text.as_bytes().get(1) else { return Self::Unfinished };
        let meant = match kind {
            b'"' | b'\\' | b'/' => char::from(*kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return Self::in_units(text),
            _ => return Self::None,
        };
        Self::Meant(meant, 2)
    }

    /// Reads one that begins with `\u`, of which a character may need two.
    fn in_units(text: &str) -> Self {
        let read = |units: &[u16]| {
            let read = char::decode_utf16(units.iter().copied()).next();
            read.and_then(Result::ok).map_or(Self::None, |c| Self::Meant(c, units.len() * 6))
        };
        match unit(text) {
            Ok(first @ 0xd800..0xdc00) => match unit(&text[6..]) {
                Ok(second) => read(&[first, second]),
                Err(unread) => unread,
            },
            Ok(first) => read(&[first]),
            Err(unread) => unread,
        }
    }
}

/// The UTF-16 unit that `\uXXXX` at the beginning of a text stands for.
fn unit(text: &str) -> Result<u16, Escape> {
    let fits = |(place, byte): (usize, u8)| match place {
        0 => byte == b'\\',
        1 => byte == b'u',
        _ => byte.is_ascii_hexdigit(),
    };
    if !text.bytes().take(6).enumerate().all(fits) {
        return Err(Escape::None);
    }
    let digits = text.get(2..6).ok_or(Escape::Unfinished)?;
    u16::from_str_radix(digits, 16).map_err(|_| Escape::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_back() {
        let check = |text: &str, expected: Escape| assert_eq!(Escape::of(text), expected, "{text}");
        for (text, meant, length) in [
            (r"\n.", '\n', 2),
            (r#"\""#, '"', 2),
            (r"\\u", '\\', 2),
            (r"\/", '/', 2),
            (r"\u005ab", 'Z', 6),
            (r"\u00E4", '\u{e4}', 6),
            (r"\ud83d\uDD11.", '\u{1f511}', 12),
        ] {
            check(text, Escape::Meant(meant, length));
        }
        for none in
            [r"\x", r"\ ", r"\u12 ", "\\u12\u{e4}", r"\ud83dx", r"\ud83d\n", r"\ud83d\u0041"]
        {
            check(none, Escape::None);
        }
        check(r"\udd11\ud83d", Escape::None);
        let whole = r"\ud83d\udd11";
        for length in (1..6).chain(6..12) {
            check(&whole[..length], Escape::Unfinished);
        }
    }
}
