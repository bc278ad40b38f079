//! Headers of a response.

/// Names and values in the order in which they came. Names are in lower case; bytes of a value that
/// are not UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    #[cfg(any(target_arch = "wasm32", test, fuzzing))]
    pub(super) fn read(fields: Vec<(String, Vec<u8>)>) -> Self {
        let read = |(name, value): (String, Vec<u8>)| {
            (name.to_ascii_lowercase(), String::from_utf8_lossy(&value).trim().to_string())
        };
        Self(fields.into_iter().map(read).collect())
    }

    /// The first value under a name, in any spelling.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The media type of the body in lower case, without its parameters.
    pub fn media_type(&self) -> Option<String> {
        let value = self.get("content-type")?;
        let end = value.find(';').unwrap_or(value.len());
        Some(value[..end].trim().to_ascii_lowercase())
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(headers: I) -> Self {
        let lower = |(name, value): (N, V)| (name.into().to_ascii_lowercase(), value.into());
        Self(headers.into_iter().map(lower).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_care_for_case_and_values_are_trimmed() {
        let headers = Headers::read(vec![("ETag".into(), b" \"x\" ".to_vec())]);
        assert_eq!(headers.get("etag"), Some("\"x\""));
        assert_eq!(headers.get("ETag"), Some("\"x\""));
        assert_eq!(headers.get("age"), None);
    }

    #[test]
    fn a_media_type_has_no_parameters() {
        let check = |value: &str, expected: &str| {
            let headers = Headers::from_iter([("Content-Type", value)]);
            assert_eq!(headers.media_type().as_deref(), Some(expected));
        };
        check("Text/HTML; charset=utf-8", "text/html");
        check("application/json", "application/json");
        check("", "");
    }
}
