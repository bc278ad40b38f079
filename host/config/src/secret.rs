//! Secrets: where they are kept, and how their values are kept out of what is shown.
//!
//! A value is known to be a secret by the name it goes under: a variable of a server's environment,
//! a setting of a plugin. Wherever such a value turns up in what plugins answer, say or fail with,
//! [`MASK`] stands in its place.

use arc_swap::ArcSwapOption;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzz;
mod matcher;
mod sensitive_names;
mod store;
mod stored_secrets;
mod stream;

pub use sensitive_names::{is_secret_name, is_secret_variable};
pub use store::{LocalSecretStore, SecretStore, secret_variable};
pub use stored_secrets::{Keychain, Storage, StoredSecretError, StoredSecrets, is_value_name};
pub use stream::{StreamFormat, StreamRedactor};

use self::matcher::{OutputPiece, Patterns, TextScanner};

/// The secrets of all plugins that were ever there, none of which may say those of another.
#[derive(Default)]
pub struct KnownSecrets {
    known: Mutex<SecretValues>,
    redactor: ArcSwapOption<Redactor>,
}

impl KnownSecrets {
    /// Learns of secrets of a plugin, before it or any other can say them. They are never forgotten.
    pub fn know(&self, secrets: &SecretValues) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.extend(secrets) {
            self.redactor.store(Some(Arc::new(Redactor::new(&known))));
        }
    }

    /// Returns all secrets that are known.
    pub fn values(&self) -> SecretValues {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the secrets of all plugins out of what any of them says, if there are any.
    pub fn redactor(&self) -> Option<Arc<Redactor>> {
        self.redactor.load_full()
    }
}

/// What stands in the place of a secret.
pub const MASK: &str = "[redacted]";

/// How deep JSON is read that stands in a text of JSON, as records of records do.
const MAX_NESTED_ESCAPES: usize = 3;

/// The shortest secret that is looked for, in bytes: a shorter one would be found everywhere.
pub const MIN_SECRET_LENGTH: usize = 6;

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

/// The values of secrets. It shows none of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretValues(BTreeSet<String>);

impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

impl SecretValues {
    /// Adds the value of a variable, if its name says that it is a secret.
    pub fn add(&mut self, name: &str, value: &str) {
        if is_secret_variable(name) {
            self.add_value(value);
        }
    }

    /// Adds the value of a header of requests, if its name says that it is a secret; of one that
    /// names a scheme (`Bearer …`), what follows that.
    pub fn add_header(&mut self, name: &str, value: &str) {
        let lower = name.to_ascii_lowercase();
        if lower.contains("authorization") || lower.contains("cookie") || is_secret_name(name) {
            self.add_value(value);
            if let Some((_, credentials)) = value.split_once(' ') {
                self.add_value(credentials.trim());
            }
        }
    }

    /// Adds a value that is known to be a secret.
    pub fn add_value(&mut self, value: &str) {
        // Programs show texts line by line.
        for part in std::iter::once(value).chain(value.lines().map(str::trim)) {
            if part.len() >= MIN_SECRET_LENGTH {
                self.0.insert(part.to_string());
            }
        }
    }

    /// Adds the values in settings whose names say that they are secrets.
    pub fn add_settings(&mut self, settings: &Map<String, Value>) {
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

    /// Adds others. Gives whether any of them is new.
    pub fn extend(&mut self, others: &Self) -> bool {
        let before = self.0.len();
        self.0.extend(others.0.iter().cloned());
        self.0.len() > before
    }
}

/// Masks secrets in texts.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Each secret, as it is and as programs write it in JSON. Absent where there are none.
    patterns: Option<Arc<Patterns>>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Masks these.
    pub fn new(secrets: &SecretValues) -> Self {
        let spelled = secrets.0.iter().flat_map(|value| spellings(value)).collect();
        Self { patterns: Patterns::new(spelled).map(Arc::new) }
    }

    /// One that knows these secrets.
    #[cfg(any(test, feature = "testing"))]
    #[doc(hidden)]
    pub fn of(values: &[&str]) -> Self {
        let mut secrets = SecretValues::default();
        values.iter().for_each(|value| secrets.add_value(value));
        Self::new(&secrets)
    }

    /// Whether there is nothing to mask.
    pub fn is_idle(&self) -> bool {
        self.patterns.is_none()
    }

    /// A text without secrets: as they are, as JSON spells them, and in a text of JSON that stands in
    /// another.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = String::new();
        let has_secrets = self.pass(text, |piece| {
            masked.push_str(match piece {
                OutputPiece::Clear(text) => text,
                OutputPiece::Secret(_) => MASK,
                OutputPiece::More(_) => "",
            });
        });
        if has_secrets { Cow::Owned(masked) } else { Cow::Borrowed(text) }
    }

    /// Masks secrets in texts that are shown one after the other, with nothing in between or each on lines
    /// of its own, so that none is shown that begins in one and goes on in the next.
    pub fn together(&self, texts: &mut [&mut String]) {
        match texts {
            [] => {}
            [text] => self.redact(text),
            texts => {
                self.joined(texts, "");
                self.joined(texts, "\n");
            }
        }
    }

    /// Masks secrets in texts as if they were one, with this in between.
    fn joined(&self, texts: &mut [&mut String], between: &str) {
        let whole = texts.iter().map(|text| text.as_str()).collect::<Vec<_>>().join(between);
        let (mut at, mut secrets) = (0, Vec::<Range<usize>>::new());
        self.pass(&whole, |piece| {
            let (OutputPiece::Clear(text) | OutputPiece::Secret(text) | OutputPiece::More(text)) =
                piece;
            let begin = at;
            at += text.len();
            match (piece, secrets.last_mut()) {
                (OutputPiece::Clear(_), _) => {}
                (OutputPiece::More(_), Some(last)) => last.end = at,
                _ => secrets.push(begin..at),
            }
        });
        if secrets.is_empty() {
            return;
        }
        let mut start = 0;
        for text in texts {
            let (end, next) = (start + text.len(), start + text.len() + between.len());
            let first = secrets.partition_point(|secret| secret.end <= start);
            let own = secrets[first..].iter().take_while(|secret| secret.start < next);
            let mut masked = String::with_capacity(text.len());
            let mut at = start;
            for secret in own {
                if secret.start >= start {
                    masked.push_str(&whole[at..secret.start.min(end)]);
                    masked.push_str(MASK);
                }
                at = secret.end.min(end);
            }
            masked.push_str(&whole[at..end]);
            **text = masked;
            start = next;
        }
    }

    /// What of the end of a text may begin a secret that goes on in what comes after it.
    pub fn unfinished<'a>(&self, text: &'a str) -> &'a str {
        match &self.patterns {
            Some(patterns) => &text[patterns.possible_beginning(text, 0)..],
            None => "",
        }
    }

    /// Passes a text on in pieces, if there is a secret in it. Gives whether there is.
    fn pass(&self, text: &str, each: impl FnMut(OutputPiece<'_>)) -> bool {
        let Some(patterns) = self.patterns.as_deref() else { return false };
        if !patterns.may_be_in(text.as_bytes()) {
            return false;
        }
        let mut matcher = TextScanner::new(Cow::Borrowed(text), MAX_NESTED_ESCAPES);
        let until = matcher.decide(Some(patterns), true);
        let has_secrets = matcher.has_found();
        if has_secrets {
            matcher.pass(until, each);
        }
        has_secrets
    }

    /// The beginning of a longer text without secrets: what may be half of one at its end is left out.
    /// So is half a character.
    pub fn beginning(&self, text: &[u8]) -> String {
        let last = text.utf8_chunks().last().map_or(0, |last| last.invalid().len());
        let text = String::from_utf8_lossy(&text[..text.len() - last]);
        StreamRedactor::new(Arc::new(self.clone()), StreamFormat::Plain).push(&text)
    }

    /// Masks secrets in bytes. What of them is text is masked as text is.
    pub fn bytes(&self, bytes: &mut Vec<u8>) {
        if !self.patterns.as_ref().is_some_and(|patterns| patterns.may_be_in(bytes)) {
            return;
        }
        let mut masked = Vec::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            let text = chunk.valid();
            // In what is no text, most of them are short.
            match text.len() < MIN_SECRET_LENGTH {
                true => masked.extend_from_slice(text.as_bytes()),
                false => masked.extend_from_slice(self.text(text).as_bytes()),
            }
            masked.extend_from_slice(chunk.invalid());
        }
        *bytes = masked;
    }

    /// Masks secrets in a text.
    pub fn redact(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }

    /// Whether there is a secret in a text.
    pub fn holds(&self, text: &str) -> bool {
        self.pass(text, |_| {})
    }

    /// Masks known secrets in the texts of a JSON text, which stays JSON.
    pub fn json_text(&self, json: &mut String) {
        // Escapes can spell a secret in other ways than those that are looked for.
        if self.is_idle() || !(json.contains('\\') || self.holds(json)) {
            return;
        }
        let mut reader = serde_json::Deserializer::from_str(json);
        match JsonSecretScan(self)
            .deserialize(&mut reader)
            .and_then(|held| reader.end().map(|()| held))
        {
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
    pub fn texts(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.texts(item)),
            Value::Object(members) => {
                members.values_mut().for_each(|value| self.texts(value));
                self.names(members);
            }
            Value::Number(number) if self.is_secret_number(number) => *value = MASK.into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether a number is a secret: all of it, as the number of an account is none because it begins so.
    fn is_secret_number(&self, number: &(impl fmt::Display + ?Sized)) -> bool {
        if self.is_idle() {
            return false;
        }
        let text = number.to_string();
        let digits = text.strip_prefix('-').unwrap_or(&text);
        let digits = digits.strip_suffix(".0").unwrap_or(digits);
        digits.len() >= MIN_SECRET_LENGTH && self.text(digits) == MASK
    }

    /// Masks known secrets in the names of members.
    fn names(&self, members: &mut Map<String, Value>) {
        if members.keys().any(|name| self.holds(name)) {
            let named = std::mem::take(members).into_iter();
            *members = named.map(|(name, value)| (self.text(&name).into_owned(), value)).collect();
        }
    }

    /// Masks secrets in JSON: known values, and what goes under a name that speaks of one.
    pub fn json(&self, value: &mut Value) {
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
            Value::Number(number) if self.is_secret_number(number) => *value = MASK.into(),
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
struct JsonSecretScan<'a>(&'a Redactor);

impl<'de> DeserializeSeed<'de> for JsonSecretScan<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonSecretScan<'_> {
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

    fn visit_i64<E>(self, number: i64) -> Result<bool, E> {
        Ok(self.0.is_secret_number(&number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<bool, E> {
        Ok(self.0.is_secret_number(&number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<bool, E> {
        Ok(self.0.is_secret_number(&number))
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

    use proptest::collection;
    use proptest::prelude::{ProptestConfig, Strategy, prop_assert, prop_assert_eq, proptest};
    use serde_json::json;

    #[test]
    fn what_is_a_secret_of_one_plugin_is_masked_for_all() {
        let shared = KnownSecrets::default();
        let secrets = |value: &str| {
            let mut secrets = SecretValues::default();
            secrets.add("API_KEY", value);
            secrets
        };
        assert!(shared.redactor().is_none());
        for value in ["hunter22", "swordfish9"] {
            shared.know(&secrets(value));
        }
        let mut both = secrets("hunter22");
        both.extend(&secrets("swordfish9"));
        assert!(shared.values() == both);
        let redactor = shared.redactor().expect("there are secrets");
        assert_eq!(redactor.text("hunter22 swordfish9"), format!("{MASK} {MASK}"));
    }

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
            ("session_cookie", true),
            ("pass", true),
            ("API_TOKEN_1", true),
            ("openai_api_key2", true),
            ("privateKey", true),
            ("clientKey", true),
            ("v2Key", true),
            ("db_pwd", true),
            ("pwd", true),
            ("PWD", false),
            ("OLDPWD", false),
            ("aws_creds", true),
            ("accesstoken", true),
            ("passcode", true),
            ("sha256", false),
        ] {
            assert_eq!(is_secret_name(name), expected, "{name}");
        }
    }

    #[test]
    fn values_are_masked_as_they_are_and_as_they_stand_in_json() {
        let mut secrets = SecretValues::default();
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
        check(r"\u0068unter22 and h\u0075nter22-longer", "[redacted] and [redacted]");
        check(r#"{"x":"{\"y\":\"with\\\"quote\"}"}"#, r#"{"x":"{\"y\":\"[redacted]\"}"}"#);
        check(r#"\\\\\"with\\\\\\\"quote\\\\\""#, r#"\\\\\"[redacted]\\\\\""#);
        check(r"C:\hunter22\new \u12", r"C:\[redacted]\new \u12");
        check("> MIIABCDEF <", "> [redacted] <");
        check("a key alone", "[redacted]");
    }

    #[test]
    fn json_text_stays_json() {
        let mut secrets = SecretValues::default();
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
        // A number is one as a whole.
        for number in ["123456", "-123456", "123456.0"] {
            check(&format!("[{number}]"), r#"["[redacted]"]"#);
        }
        let mut value = json!({ "n": [123456, 7] });
        Redactor::new(&secrets).json(&mut value);
        assert_eq!(value, json!({ "n": [MASK, 7] }));
        for number in ["1234560", "0.123456", "7", "-7", "7.5"] {
            let json = format!(r#"[ {number}, "\u0041" ]"#);
            check(&json, &json);
        }
        // However it is spelled, and wherever it stands.
        check(r#"["a\/ä\"secret"]"#, r#"["[redacted]"]"#);
        check(r#"["\u0061/\u00e4\u0022\u0073ecret"]"#, r#"["[redacted]"]"#);
        check(r#"{"a\/ä\"secret":{"x":["123456"]}}"#, r#"{"[redacted]":{"x":["[redacted]"]}}"#);
        check(r#"{"x":"\u0031\u00323456","x":"1"}"#, r#"{"x":"1"}"#);
        // What has none stays as it was written.
        check(r#"{ "n": 123456.10, "t": "\/" }"#, r#"{ "n": 123456.10, "t": "\/" }"#);
        check("{ 123456", "{ [redacted]");
        for value in ["null", "true", "-1", "1", "1.0"] {
            let json = format!("{{ \"n\": {value}, \"t\": \"\\/\" }}");
            check(&json, &json);
        }
    }

    #[test]
    fn what_goes_under_the_name_of_a_secret_is_one() {
        let check = |secrets: &SecretValues, text: &str, expected: &str| {
            assert_eq!(Redactor::new(secrets).text(text), expected);
        };
        for (name, value, expected) in [
            ("Authorization", "Bearer hunter22", "[redacted], [redacted]"),
            ("Proxy-Authorization", "Bearer hunter22", "[redacted], [redacted]"),
            ("Set-Cookie-2", "Bearer hunter22", "[redacted], [redacted]"),
            ("X-Api-Key", "Bearer hunter22", "[redacted], [redacted]"),
            ("Accept", "Bearer hunter22", "Bearer hunter22, hunter22"),
        ] {
            let mut secrets = SecretValues::default();
            secrets.add_header(name, value);
            check(&secrets, "Bearer hunter22, hunter22", expected);
        }
        let settings = json!({
            "api_key": 12345678, "port": 87654321, "name": "plainly", "auth_token": ["in a list"]
        });
        let mut secrets = SecretValues::default();
        secrets.add_settings(settings.as_object().unwrap());
        check(
            &secrets,
            "12345678 87654321 plainly in a list",
            "[redacted] 87654321 plainly [redacted]",
        );
        let mut more = SecretValues::default();
        assert!(more.extend(&secrets));
        assert!(!more.extend(&secrets));
        assert_eq!(format!("{:?}", Redactor::new(&more)), "Redactor");
    }

    #[test]
    fn only_what_may_begin_a_secret_is_unfinished() {
        let redactor = Redactor::of(&["hunter22"]);
        for (text, expected) in [("a hunt", "hunt"), ("a hxyz", ""), ("h\u{e4}", ""), ("", "")] {
            assert_eq!(redactor.unfinished(text), expected);
        }
        assert_eq!(Redactor::default().unfinished("a hunt"), "");
        // A backslash alone is reason to look closer, and no secret.
        assert!(!redactor.holds(r"C:\new"));
        assert!(redactor.holds("hunter22"));
    }

    /// Masks a text in pieces.
    fn masked(redactor: &Arc<Redactor>, form: StreamFormat, pieces: &[&str]) -> String {
        let mut stream = StreamRedactor::new(redactor.clone(), form);
        let mut masked: String = pieces.iter().map(|piece| stream.push(piece)).collect();
        masked.push_str(&stream.end());
        assert!(stream.kept() <= 2 * MAX_NESTED_ESCAPES + 2, "something is held back for ever");
        masked
    }

    /// Masks a text in two pieces, for each place where it can be cut, and in single characters.
    fn in_pieces(redactor: &Arc<Redactor>, form: StreamFormat, text: &str) -> Vec<String> {
        let places = text.char_indices().map(|(place, _)| place);
        let cut = |place| masked(redactor, form, &[&text[..place], &text[place..]]);
        let mut all: Vec<String> = places.map(cut).collect();
        all.push(masked(redactor, form, &text.split("").collect::<Vec<_>>()));
        all
    }

    /// Each character of a text as JSON can write it, with what this says; as often as it says so.
    fn spelled(text: &str, hows: &[Vec<u8>]) -> String {
        hows.iter().fold(text.to_string(), |text, hows| {
            let mut how = hows.iter().cycle();
            text.chars()
                .map(|c| match (*how.next().unwrap_or(&0), c) {
                    (1, c) => {
                        c.encode_utf16(&mut [0; 2]).iter().map(|u| format!("\\u{u:04x}")).collect()
                    }
                    (2, c) => {
                        c.encode_utf16(&mut [0; 2]).iter().map(|u| format!("\\u{u:04X}")).collect()
                    }
                    (3, '/') => "\\/".to_string(),
                    (_, '"' | '\\') => format!("\\{c}"),
                    (_, c) => c.to_string(),
                })
                .collect()
        })
    }

    #[test]
    fn a_text_in_pieces_is_masked_as_if_it_came_at_once() {
        let mut secrets = SecretValues::default();
        secrets.add("A_TOKEN", "hunter22");
        secrets.add("B_TOKEN", "hunter22-longer");
        secrets.add("C_TOKEN", "22-long");
        secrets.add("D_TOKEN", "aabaab\u{e4}");
        secrets.add("E_TOKEN", "a/\u{1f511}\"quote");
        secrets.add("F_TOKEN", "new\\secret");
        secrets.add("PIN_KEY", "123456");
        let redactor = Arc::new(Redactor::new(&secrets));
        let check = |form: StreamFormat, text: &str, expected: &str| {
            for masked in in_pieces(&redactor, form, text) {
                assert_eq!(masked, expected, "{text}");
            }
        };
        let nested = |text: &str, times: usize| spelled(text, &vec![vec![1]; times]);
        for (text, expected) in [
            ("", ""),
            ("hunter2", "hunter2"),
            ("a hunter22 b", "a [redacted] b"),
            ("hunter22-longer", "[redacted]"),
            ("hunter22-long", "[redacted]-long"),
            ("hunter22hunter22-longest", "[redacted][redacted]-longest"),
            ("aabaabaab\u{e4}", "aab[redacted]"),
            ("aabaaba", "aabaaba"),
            ("a/\u{1f511}\"quote a\\/\\ud83d\\udd11\\\"quote", "[redacted] [redacted]"),
            ("id 1234567", "id [redacted]7"),
            // Whoever spells it in another way, and once more.
            (r"it is \u0068unter22!", "it is [redacted]!"),
            (r"aabaab\u00E4 aabaab\u00e4", "[redacted] [redacted]"),
            (r"a\/\uD83D\uDd11\u0022quote", "[redacted]"),
            (r"\\u0068unter22\n", r"[redacted]\n"),
            (&format!("it is {}!", nested("h", 2) + "unter22"), "it is [redacted]!"),
            (&format!("it is {}!", nested("h", 3) + "unter22"), "it is [redacted]!"),
            // What is left is never half of an escape, and nothing is held for what is none.
            (r"C:\hunter22\new \u12 \ud83d\n", r"C:\[redacted]\new \u12 \ud83d\n"),
            (r"C:\new\secret", "C:[redacted]"),
            (r"\u00hunter22\", r"\u00[redacted]\"),
        ] {
            assert_eq!(redactor.text(text), expected, "{text}");
            check(StreamFormat::Plain, text, expected);
        }
        for (json, expected) in [
            (r#"{"x":"\u0068unter22"}"#, r#"{"x":"[redacted]"}"#),
            (
                r#"{"x":"a\/\ud83d\udd11\u0022quote","y":"\t\ud83d\n"}"#,
                r#"{"x":"[redacted]","y":"\t\ud83d\n"}"#,
            ),
            (r#"{"x":"a/🔑\"quote"}"#, r#"{"x":"[redacted]"}"#),
            (r#"{"n":1234567,"t":"1234567"}"#, r#"{"n":1234567,"t":"[redacted]7"}"#),
            (r#"{"\u0031\u00323456":"\u"}"#, r#"{"[redacted]":"\u"}"#),
            (r#"it is hunter22, \x \"#, r#"it is [redacted], \x \"#),
            // Text of JSON in JSON.
            (r#"["{\"k\":\"a/🔑\\\"quote\"}"]"#, r#"["{\"k\":\"[redacted]\"}"]"#),
            (&format!("[\"{}\"]", nested("h", 4) + "unter22"), r#"["[redacted]"]"#),
            // A quotation mark is the end of a text or not, however it is written.
            (r#"{"x":"a\"123456"}"#, r#"{"x":"a\"[redacted]"}"#),
            (r#"["{\"k\":\"a/🔑\\\u0022quote\"}"]"#, r#"["{\"k\":\"[redacted]\"}"]"#),
        ] {
            check(StreamFormat::Json, json, expected);
        }
    }

    /// One secret is spelled in escapes, and in what these mean is another.
    #[test]
    fn secrets_that_overlap_are_masked_as_one() {
        let redactor = Arc::new(Redactor::of(&[r"abc\u0064efgh", "bcdefg"]));
        let text = r"an abc\u0064efgh.";
        assert_eq!(redactor.text(text), "an [redacted].");
        for masked in in_pieces(&redactor, StreamFormat::Plain, text) {
            assert_eq!(masked, "an [redacted].");
        }
        // The one that is found first ends first.
        let redactor = Redactor::of(&[r"abc\u0064ef", "cdefgh!"]);
        assert_eq!(redactor.text(r"an abc\u0064efgh! x"), "an [redacted] x");
        let mut parts = [r"an abc\u0064efg".to_string(), "h! x".to_string()];
        redactor.together(&mut parts.iter_mut().collect::<Vec<_>>());
        assert_eq!(parts, ["an [redacted]", " x"]);
    }

    #[test]
    fn what_json_has_none_of_is_no_text() {
        let redactor = Redactor::default();
        let error = JsonSecretScan(&redactor).visit_bytes::<serde_json::Error>(b"x").unwrap_err();
        assert!(error.to_string().contains("expected JSON"), "{error}");
    }

    #[test]
    fn no_more_is_held_back_than_may_be_a_secret() {
        let redactor = Arc::new(Redactor::of(&["hunter22"]));
        let most = 6_usize.pow(3) * "hunter22".len();
        for text in
            ["\\", "\\u005c", "h", "hunter22", "\\\\u0068", "\\ud83d", "\\u00", "{\"a\":\"\\\""]
        {
            for form in [StreamFormat::Plain, StreamFormat::Json] {
                let mut stream = StreamRedactor::new(redactor.clone(), form);
                for _ in 0..4_000 {
                    stream.push(text);
                    assert!(stream.kept() < 8 * most, "{text}: {}", stream.kept());
                }
            }
        }
    }

    #[test]
    fn texts_beside_each_other_are_masked_together() {
        let redactor = Redactor::of(&["hunter22", "in\ntwo"]);
        let check = |texts: &[&str], expected: &[&str]| {
            let mut texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
            redactor.together(&mut texts.iter_mut().collect::<Vec<_>>());
            assert_eq!(texts, expected);
        };
        check(&[], &[]);
        check(&["is hunter22"], &["is [redacted]"]);
        check(&["is hun", "ter22!"], &["is [redacted]", "!"]);
        check(&["hu", "nter", "22!", "hunter22"], &["[redacted]", "", "!", "[redacted]"]);
        check(&["is hun", "", "\\u0074er22!"], &["is [redacted]", "", "!"]);
        check(&["is \\u0068un", "ter22!"], &["is [redacted]", "!"]);
        check(&["is in", "two lines"], &["is [redacted]", " lines"]);
        check(&["h", "hello", ""], &["h", "hello", ""]);
    }

    #[test]
    fn bytes_are_masked_as_text_where_they_are_text() {
        let redactor = Redactor::of(&["hunter/22", "sixsix"]);
        let check = |bytes: &[u8], expected: &[u8]| {
            let mut masked = bytes.to_vec();
            redactor.bytes(&mut masked);
            assert_eq!(masked, expected);
        };
        check(b"is hunter/22!", b"is [redacted]!");
        check(b"is \\u0068unter\\/22!", b"is [redacted]!");
        check(b"\xff\xfe\\hunter/22\xff\\", b"\xff\xfe\\[redacted]\xff\\");
        check(b"hunter/\xff22", b"hunter/\xff22");
        check(b"\xffsixsix\xff", b"\xff[redacted]\xff");
        check(b"\xffsixsi\xffsixsix!", b"\xffsixsi\xff[redacted]!");
        check(b"\xffsixsi\xff", b"\xffsixsi\xff");
    }

    #[test]
    fn the_beginning_of_a_text_ends_before_what_may_be_a_secret() {
        let redactor = Redactor::of(&["hunter22\u{e4}"]);
        let check = |text: &[u8]| assert_eq!(redactor.beginning(text), "is ");
        for secret in ["hunter22\u{e4}", r"hunter22\u00E4", r"\u0068unter22\\u00e4"] {
            (1..secret.len()).for_each(|cut| check(&[b"is ", &secret.as_bytes()[..cut]].concat()));
        }
    }

    /// A part of a text: a few letters, and then which secret and how it is spelled.
    type Part = (String, usize, Vec<Vec<u8>>);

    /// Of what escapes are made of, and quotes, and a few letters, so that secrets overlap each other and
    /// themselves.
    fn parts() -> impl Strategy<Value = Vec<Part>> {
        let hows = collection::vec(collection::vec(0..4u8, 1..5), 0..=MAX_NESTED_ESCAPES);
        collection::vec((r#"[ab\\u06Cc5"/nä]{0,12}"#, 0..4usize, hows), 1..4)
    }

    fn pieces<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
        let mut cuts: Vec<usize> =
            cuts.iter().map(|cut| text.floor_char_boundary(cut % (text.len() + 1))).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect()
    }

    /// A text of random letters, in which secrets stand in any spelling.
    fn with_secrets(values: &[String], parts: &[Part]) -> String {
        let parts = parts.iter().map(|(letters, which, hows)| {
            [letters.as_str(), &spelled(&values[which % values.len()], hows)].concat()
        });
        parts.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn pieces_are_masked_as_the_whole_is(
            values in collection::vec(r#"[ab\\u06Cc5"/nä]{6,9}"#, 1..4),
            parts in parts(),
            cuts in collection::vec(0..4_000usize, 0..8),
        ) {
            let mut secrets = SecretValues::default();
            values.iter().for_each(|value| secrets.add_value(value));
            let redactor = Arc::new(Redactor::new(&secrets));
            let text = with_secrets(&values, &parts);
            let whole = redactor.text(&text);
            prop_assert!(!redactor.holds(&values[0]) || redactor.holds(&spelled(&values[0], &parts[0].2)));
            let single: Vec<&str> = text.split("").collect();
            for pieces in [pieces(&text, &cuts), single.clone()] {
                prop_assert_eq!(&masked(&redactor, StreamFormat::Plain, &pieces), &whole);
            }
            let whole = masked(&redactor, StreamFormat::Json, &[&text]);
            for pieces in [pieces(&text, &cuts), single] {
                prop_assert_eq!(&masked(&redactor, StreamFormat::Json, &pieces), &whole);
            }
        }

        /// A stream of JSON stays JSON, and has no secret where the whole has none.
        #[test]
        fn json_in_pieces_stays_json(
            // Those that can stand in the syntax of JSON would spoil it.
            values in collection::vec(r"[ab\\u06Ccnä]{6,9}", 1..4),
            parts in parts(),
            how in collection::vec(0..4u8, 1..5),
            cuts in collection::vec(0..4_000usize, 0..8),
        ) {
            let mut secrets = SecretValues::default();
            values.iter().for_each(|value| secrets.add_value(value));
            let redactor = Arc::new(Redactor::new(&secrets));
            let text = spelled(&with_secrets(&values, &parts), &[how]);
            let json = format!("{{\"a\":[\"{text}\",123],\"b\":true}}");
            let masked = masked(&redactor, StreamFormat::Json, &pieces(&json, &cuts));
            let read: Value = serde_json::from_str(&masked).expect("it is JSON");
            prop_assert_eq!(read["a"][1].as_u64(), Some(123));
            let mut whole = json.clone();
            redactor.json_text(&mut whole);
            let whole: Value = serde_json::from_str(&whole).expect("it is JSON");
            let clear = |value: &Value| !redactor.holds(value["a"][0].as_str().unwrap_or_default());
            prop_assert!(clear(&read) || !clear(&whole), "{} {}", read, whole);
        }
    }

    #[test]
    fn json_is_masked_by_name_and_by_value() {
        let mut secrets = SecretValues::default();
        let settings =
            json!({ "apiKey": "0123456789", "deep": { "list": [{ "auth_token": "abcdefgh" }] } });
        secrets.add_settings(settings.as_object().unwrap());
        let mut value = json!({ "password": 12345, "text": "is 0123456789", "more": ["abcdefgh"], "token": null, "abcdefgh": 1 });
        Redactor::new(&secrets).json(&mut value);
        let masked = json!({ "password": MASK, "text": "is [redacted]", "more": [MASK], "token": null, MASK: 1 });
        assert_eq!(value, masked);
    }
}
