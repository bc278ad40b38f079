//! Secrets: which names speak of them, and how their values are kept out of what is shown.
//!
//! A value is known to be a secret by the name it goes under: a variable of a server's environment,
//! a setting of a plugin. Wherever such a value turns up in what plugins answer, say or fail with,
//! [`MASK`] stands in its place.

use aho_corasick::AhoCorasick;
use async_trait::async_trait;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io;

use crate::files;
use crate::services::SecretStore;
use crate::surroundings::Surroundings;

/// What stands in the place of a secret.
pub const MASK: &str = "[redacted]";

/// The ends of names whose values are secrets, after `_`.
const SUFFIXES: &[&str] = &[
    "TOKEN",
    "KEY",
    "SECRET",
    "PASSWORD",
    "PASS",
    "CREDENTIAL",
    "PAT",
    "AUTH",
    "APIKEY",
    "BEARER",
    "SESSION",
];

/// What makes a name one of a secret wherever it stands in it.
const PARTS: &[&str] = &["PASSWORD", "SECRET", "CREDENTIAL", "PRIVATE_KEY"];

/// Names of secrets that are nothing but that.
const WHOLE: &[&str] =
    &["TOKEN", "APIKEY", "PASSWD", "PASSPHRASE", "AUTHORIZATION", "BEARER", "COOKIE"];

/// The shortest secret that is looked for, in bytes: a shorter one would be found everywhere.
const SHORTEST: usize = 6;

/// Whether what goes under a name is a secret: `GITHUB_TOKEN`, `apiKey`, `client-secret`.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = upper_snake(name);
    let ends = |suffix: &str| {
        name.strip_suffix(suffix).is_some_and(|start| start.len() > 1 && start.ends_with('_'))
    };
    WHOLE.contains(&name.as_str())
        || SUFFIXES.iter().any(|suffix| ends(suffix))
        || PARTS.iter().any(|part| name.contains(part))
}

/// The same of a variable, which may be named `KEY` and nothing more.
pub(crate) fn is_secret_variable(name: &str) -> bool {
    is_secret_name(name) || SUFFIXES.contains(&upper_snake(name).as_str())
}

/// `clientSecret` and `client-secret` as `CLIENT_SECRET`.
fn upper_snake(name: &str) -> String {
    let mut upper = String::with_capacity(name.len() + 2);
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && was_lower {
            upper.push('_');
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        upper.push(if c.is_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    }
    upper
}

/// The value of a secret. It is shown to nobody but who asks for it by [`Secret::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Secrets from the environment and from files, where a host has no other place for them. The
/// secret `api-key` is the variable `API_KEY`, or what is in the file `secrets/api-key` in the
/// user's configuration folder, which nobody else may be able to read.
pub(crate) struct SurroundingSecrets {
    surroundings: Surroundings,
}

impl SurroundingSecrets {
    pub(crate) fn new(surroundings: Surroundings) -> Self {
        Self { surroundings }
    }

    fn find(&self, name: &str) -> Option<Secret> {
        let variable = self.surroundings.variable(&upper_snake(name));
        if let Some(value) = variable.filter(|value| !value.is_empty()) {
            return Some(Secret::new(value));
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !name.chars().all(is_name) {
            return None;
        }
        let file = self.surroundings.configuration.as_ref()?.join("secrets").join(name);
        match files::read_private(&file) {
            Ok(value) => Some(Secret::new(value.trim_end_matches(['\r', '\n']))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!("the secret in {} cannot be used: {error}", file.display());
                None
            }
        }
    }
}

#[async_trait]
impl SecretStore for SurroundingSecrets {
    async fn secret(&self, _: &str, name: &str) -> Option<Secret> {
        self.find(name)
    }
}

/// The values of secrets. It shows none of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secrets(BTreeSet<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

impl Secrets {
    /// Adds the value of a variable, if its name says that it is a secret.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        if is_secret_variable(name) {
            self.add_value(value);
        }
    }

    /// Adds the value of a header of requests, if its name says that it is a secret; of one that
    /// names a scheme (`Bearer …`), what follows that.
    pub(crate) fn add_header(&mut self, name: &str, value: &str) {
        let lower = name.to_ascii_lowercase();
        if lower.contains("authorization") || lower.contains("cookie") || is_secret_name(name) {
            self.add_value(value);
            if let Some((_, credentials)) = value.split_once(' ') {
                self.add_value(credentials.trim());
            }
        }
    }

    /// Adds a value that is known to be a secret.
    pub(crate) fn add_value(&mut self, value: &str) {
        // Programs show texts line by line.
        for part in std::iter::once(value).chain(value.lines().map(str::trim)) {
            if part.len() >= SHORTEST {
                self.0.insert(part.to_string());
            }
        }
    }

    /// Adds the values in settings whose names say that they are secrets.
    pub(crate) fn add_settings(&mut self, settings: &Map<String, Value>) {
        for (name, value) in settings {
            self.add_setting(value, is_secret_name(name));
        }
    }

    /// Adds the texts in a setting; all of them, where it goes under a name of a secret.
    fn add_setting(&mut self, value: &Value, secret: bool) {
        match value {
            Value::String(text) if secret => self.add_value(text),
            Value::Number(number) if secret => self.add_value(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.add_setting(item, secret)),
            Value::Object(members) => {
                for (name, value) in members {
                    self.add_setting(value, secret || is_secret_name(name));
                }
            }
            _ => {}
        }
    }

    pub(crate) fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }
}

/// Masks secrets in texts.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    /// Each secret, as it is and as programs write it in JSON. Absent where there are none.
    values: Option<AhoCorasick>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    pub(crate) fn new(secrets: &Secrets) -> Self {
        let patterns: BTreeSet<String> =
            secrets.0.iter().flat_map(|value| spellings(value)).collect();
        if patterns.is_empty() {
            return Self::default();
        }
        // The longest first: a secret may begin with another.
        let automaton = AhoCorasick::builder()
            .match_kind(aho_corasick::MatchKind::LeftmostLongest)
            .build(patterns)
            .inspect_err(|error| tracing::error!("secrets cannot be masked: {error}"));
        Self { values: automaton.ok() }
    }

    /// Whether there is nothing to mask.
    pub(crate) fn is_idle(&self) -> bool {
        self.values.is_none()
    }

    /// A text without secrets.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.values {
            Some(values) if self.holds(text) => {
                let mut masked = String::with_capacity(text.len());
                values.replace_all_with(text, &mut masked, |_, _, masked| {
                    masked.push_str(MASK);
                    true
                });
                Cow::Owned(masked)
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// Masks secrets in a text.
    pub(crate) fn redact(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }

    /// Whether there is a secret in a text.
    fn holds(&self, text: &str) -> bool {
        self.values.as_ref().is_some_and(|values| values.is_match(text))
    }

    /// Masks known secrets in the texts of a JSON text, which stays JSON.
    pub(crate) fn json_text(&self, json: &mut String) {
        // Escapes can spell a secret in other ways than those that are looked for.
        if self.is_idle() || !(json.contains('\\') || self.holds(json)) {
            return;
        }
        let mut reader = serde_json::Deserializer::from_str(json);
        match InTexts(self).deserialize(&mut reader).and_then(|held| reader.end().map(|()| held)) {
            Ok(false) => {}
            Ok(true) => {
                let mut value: Value = serde_json::from_str(json).unwrap_or_default();
                self.texts(&mut value);
                *json = value.to_string();
            }
            Err(_) => self.redact(json),
        }
    }

    /// Masks known secrets in the texts of a value, and in the names of its members.
    fn texts(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.texts(item)),
            Value::Object(members) => {
                members.values_mut().for_each(|value| self.texts(value));
                self.names(members);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Masks known secrets in the names of members.
    fn names(&self, members: &mut Map<String, Value>) {
        if members.keys().any(|name| self.holds(name)) {
            let named = std::mem::take(members).into_iter();
            *members = named.map(|(name, value)| (self.text(&name).into_owned(), value)).collect();
        }
    }

    /// Masks secrets in JSON: known values, and what goes under a name that speaks of one.
    pub(crate) fn json(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(members) => {
                for (name, value) in &mut *members {
                    match value {
                        Value::Null | Value::Bool(_) => {}
                        _ if is_secret_name(name) => *value = MASK.into(),
                        _ => self.json(value),
                    }
                }
                self.names(members);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// A text as it is, and as programs write it in JSON: with or without escapes for what is not ASCII,
/// and for `/`.
fn spellings(text: &str) -> [String; 5] {
    let quoted = Value::from(text).to_string();
    let json = &quoted[1..quoted.len() - 1];
    let ascii = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    let ascii: String = json.chars().map(ascii).collect();
    let (of_json, of_ascii) = (json.replace('/', "\\/"), ascii.replace('/', "\\/"));
    [text.to_string(), json.to_string(), ascii, of_json, of_ascii]
}

/// Reads JSON without keeping it, to tell whether there is a secret in one of its texts or names.
/// No member is left out for another of its name.
#[derive(Clone, Copy)]
struct InTexts<'a>(&'a Redactor);

impl<'de> DeserializeSeed<'de> for InTexts<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for InTexts<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(self.0.holds(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut any = false;
        while let Some(held) = items.next_element_seed(self)? {
            any |= held;
        }
        Ok(any)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let mut any = false;
        while let Some((name, value)) = members.next_entry_seed(self, self)? {
            any |= name | value;
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_of_secrets() {
        for (name, expected) in [
            ("GITHUB_TOKEN", true),
            ("github_pat", true),
            ("apiKey", true),
            ("client-secret", true),
            ("DB_PASSWORD_FILE", true),
            ("password", true),
            ("Authorization", true),
            ("token", true),
            ("key", false),
            ("monkey", false),
            ("PATH", false),
            ("max_tokens", false),
            ("session_id", false),
            ("_KEY", false),
        ] {
            assert_eq!(is_secret_name(name), expected, "{name}");
        }
    }

    #[test]
    fn values_are_masked_as_they_are_and_as_they_stand_in_json() {
        let mut secrets = Secrets::default();
        secrets.add("A_TOKEN", "hunter22");
        secrets.add("B_TOKEN", "hunter22-longer");
        secrets.add("C_TOKEN", "with\"quote");
        secrets.add("D_TOKEN", "short");
        secrets.add("NAME", "harmless");
        secrets.add("PEM_KEY", "-----BEGIN-----\nMIIABCDEF");
        secrets.add("KEY", "a key alone");
        secrets.add("E_TOKEN", "a/\u{e4}\u{1f511}");
        assert_eq!(format!("{secrets:?}"), "8 secrets");
        let redactor = Redactor::new(&secrets);
        let check = |text: &str, expected: &str| assert_eq!(redactor.text(text), expected);
        check("a hunter22 b hunter22-longer", "a [redacted] b [redacted]");
        check(r#"{"x":"with\"quote"} with"quote"#, r#"{"x":"[redacted]"} [redacted]"#);
        check(r#"a/\u00e4\ud83d\udd11 a\/\u00e4\ud83d\udd11 a\/ä🔑 a/ä🔑"#, &[MASK; 4].join(" "));
        check("short and harmless", "short and harmless");
        check("> MIIABCDEF <", "> [redacted] <");
        check("a key alone", "[redacted]");
    }

    #[test]
    #[cfg(unix)]
    fn secrets_come_from_the_environment_and_from_private_files() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("secrets")).unwrap();
        let write = |name: &str, mode: u32| {
            let path = folder.path().join("secrets").join(name);
            std::fs::write(&path, format!("of {name}\n")).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        };
        write("private", 0o600);
        write("open", 0o644);
        write("api-key", 0o600);
        let surroundings = Surroundings {
            environment: [("API_KEY".into(), "from the environment".into())].into(),
            configuration: Some(folder.path().into()),
            ..Surroundings::default()
        };
        let secrets = SurroundingSecrets::new(surroundings);
        let check = |name: &str, expected: Option<&str>| {
            let found = secrets.find(name);
            assert_eq!(found.as_ref().map(Secret::reveal), expected, "{name}");
        };
        check("api-key", Some("from the environment"));
        check("private", Some("of private"));
        check("open", None);
        check("missing", None);
        check("../secrets/private", None);
        assert_eq!(format!("{:?}", Secret::new("x")), "Secret");
    }

    #[test]
    fn json_text_stays_json() {
        let mut secrets = Secrets::default();
        secrets.add("PIN_KEY", "123456");
        secrets.add("A_TOKEN", "a/\u{e4}\"secret");
        let check = |json: &str, expected: &str| {
            let mut text = json.to_string();
            Redactor::new(&secrets).json_text(&mut text);
            assert_eq!(text, expected, "{json}");
        };
        check(
            r#"{"id":1234567,"text":"it is 123456"}"#,
            r#"{"id":1234567,"text":"it is [redacted]"}"#,
        );
        // However it is spelled, and wherever it stands.
        check(r#"["a\/ä\"secret"]"#, r#"["[redacted]"]"#);
        check(r#"["\u0061/\u00e4\u0022\u0073ecret"]"#, r#"["[redacted]"]"#);
        check(r#"{"a\/ä\"secret":{"x":["123456"]}}"#, r#"{"[redacted]":{"x":["[redacted]"]}}"#);
        check(r#"{"x":"\u0031\u00323456","x":"1"}"#, r#"{"x":"1"}"#);
        // What has none stays as it was written.
        check(r#"{ "n": 123456.10, "t": "\/" }"#, r#"{ "n": 123456.10, "t": "\/" }"#);
        check("{ 123456", "{ [redacted]");
    }

    #[test]
    fn json_is_masked_by_name_and_by_value() {
        let mut secrets = Secrets::default();
        let settings =
            json!({ "apiKey": "0123456789", "deep": { "list": [{ "auth_token": "abcdefgh" }] } });
        secrets.add_settings(settings.as_object().unwrap());
        let mut value = json!({ "password": 12345, "text": "is 0123456789", "more": ["abcdefgh"], "token": null, "abcdefgh": 1 });
        Redactor::new(&secrets).json(&mut value);
        let masked = json!({ "password": MASK, "text": "is [redacted]", "more": [MASK], "token": null, MASK: 1 });
        assert_eq!(value, masked);
    }
}
