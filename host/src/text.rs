//! Small things about texts: cutting them, and patterns that they fit.

/// The beginning of a text, cut between characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    match text.len() <= most {
        true => text,
        false => &text[..text.floor_char_boundary(most)],
    }
}

/// Cuts a text that is longer, and says in it how long it was.
pub(crate) fn shorten(text: &mut String, most: usize) {
    let length = text.len();
    if length > most {
        text.truncate(text.floor_char_boundary(most));
        text.push_str(&format!("[cut: {length} bytes]"));
    }
}

/// Whether a pattern, in which `*` stands for anything, fits a name.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').peekable();
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
