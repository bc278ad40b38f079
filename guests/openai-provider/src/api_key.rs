//! The key of an endpoint.

use std::fmt;

/// A key, which is shown to nobody but the endpoint.
#[derive(Clone, PartialEq)]
pub struct Key(String);

impl Key {
    /// A key as the user keeps it, without the white space around it. `None` for what no header can
    /// carry, an empty text included.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| Self(text.into()))
    }

    /// The value of the header `Authorization`.
    pub fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// A text in which stars stand for the key. Endpoints quote the keys that they refuse.
    pub fn hide(&self, text: &str) -> String {
        text.replace(&self.0, "***")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_hidden_wherever_it_stands() {
        let key = Key::new(" sk-1234\n").unwrap();
        assert_eq!(key.hide("no key sk-1234, sk-1234"), "no key ***, ***");
        assert_eq!(key.header(), "Bearer sk-1234");
        assert_eq!(format!("{key:?}"), "Key(***)");
    }

    #[test]
    fn what_no_header_carries_is_no_key() {
        let check = |text| assert_eq!(Key::new(text), None, "{text:?}");
        check("");
        check(" \n");
        check("a\nb");
        check("a b");
        check("schlüssel");
    }
}
