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
use std::ops::{Bound, Range};
use std::sync::Arc;

use crate::files;
use crate::services::SecretStore;
use crate::surroundings::Surroundings;
use crate::text::unescape::Unescaped;

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
    "JWT",
    "COOKIE",
    "PASSWD",
    "PASSPHRASE",
];

/// What makes a name one of a secret wherever it stands in it.
const PARTS: &[&str] = &["PASSWORD", "SECRET", "CREDENTIAL", "PRIVATE_KEY"];

/// Names of secrets that are nothing but that.
const WHOLE: &[&str] = &[
    "TOKEN",
    "APIKEY",
    "PASS",
    "PASSWD",
    "PASSPHRASE",
    "JWT",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
];

/// How deep JSON is read that stands in a text of JSON, as records of records do.
const NESTED: usize = 3;

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
    /// The same in order, to tell whether a text may be the beginning of one.
    spellings: Arc<BTreeSet<String>>,
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
            .build(&patterns)
            .inspect_err(|error| tracing::error!("secrets cannot be masked: {error}"));
        Self { values: automaton.ok(), spellings: Arc::new(patterns) }
    }

    /// Whether there is nothing to mask.
    pub(crate) fn is_idle(&self) -> bool {
        self.values.is_none()
    }

    /// A text without secrets.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.places(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = String::with_capacity(text.len());
        let mut at = 0;
        for place in found {
            masked.push_str(&text[at..place.start]);
            masked.push_str(MASK);
            at = place.end;
        }
        masked.push_str(&text[at..]);
        Cow::Owned(masked)
    }

    /// Where secrets are in a text, in order, and apart from each other: as they are, as JSON spells them, and
    /// in a text of JSON that stands in another.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let Some(values) = &self.values else { return Vec::new() };
        let mut found: Vec<Range<usize>> = values.find_iter(text).map(|of| of.range()).collect();
        let mut read: Vec<Unescaped> = Vec::new();
        while read.len() < NESTED {
            let text = read.last().map_or(text, |read| read.text.as_str());
            let Some(next) = Unescaped::of(text) else { break };
            for of in values.find_iter(&next.text) {
                let place = next.origin(of.range());
                found.push(read.iter().rev().fold(place, |place, read| read.origin(place)));
            }
            read.push(next);
        }
        if read.is_empty() {
            return found;
        }
        found.sort_by_key(|place| (place.start, place.end));
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for place in found {
            match apart.last_mut().filter(|last| place.start < last.end) {
                Some(last) => last.end = last.end.max(place.end),
                None => apart.push(place),
            }
        }
        apart
    }

    /// The beginning of a longer text without secrets: what may be half of one at its end is left out.
    pub(crate) fn beginning(&self, text: &str) -> String {
        StreamRedactor::new(Arc::new(self.clone()), TextForm::Plain).push(text)
    }

    /// Masks secrets in bytes, which may be text.
    pub(crate) fn bytes(&self, bytes: &mut Vec<u8>) {
        if let Some(values) = self.values.as_ref().filter(|values| values.is_match(&*bytes)) {
            let mut masked = Vec::with_capacity(bytes.len());
            values.replace_all_with_bytes(bytes, &mut masked, |_, _, masked| {
                masked.extend_from_slice(MASK.as_bytes());
                true
            });
            *bytes = masked;
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
        match &self.values {
            Some(values) if text.contains('\\') => {
                values.is_match(text) || !self.places(text).is_empty()
            }
            Some(values) => values.is_match(text),
            None => false,
        }
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
    pub(crate) fn texts(&self, value: &mut Value) {
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

impl Redactor {
    /// Where in a text, from a place on, that may begin which more text would make a secret; the end,
    /// where nothing of it may.
    fn possible_beginning(&self, text: &str, from: usize) -> usize {
        let longest = self.values.as_ref().map_or(0, AhoCorasick::max_pattern_len);
        let start = from.max(text.len().saturating_sub(longest.saturating_sub(1)));
        let start = text.ceil_char_boundary(start);
        let mut places = text[start..].char_indices().map(|(place, _)| start + place);
        places.find(|place| self.is_beginning(&text[*place..])).unwrap_or(text.len())
    }

    /// Whether a text is the beginning of a secret, and not all of it.
    fn is_beginning(&self, text: &str) -> bool {
        let longer = (Bound::Excluded(text), Bound::Unbounded);
        // What begins with the text follows it in order.
        self.spellings.range::<str, _>(longer).next().is_some_and(|next| next.starts_with(text))
    }
}

/// Masks secrets in a text that comes in pieces. What may be the beginning of a secret is held back
/// until more of the text says whether it is.
pub(crate) struct StreamRedactor {
    redactor: Arc<Redactor>,
    form: TextForm,
    /// What is held back, as it came.
    raw: String,
    /// The same as it is read: without the escapes of JSON.
    text: String,
    /// Each character of `text`: where it begins there and in `raw`, and whether it is in a JSON text.
    places: Vec<(usize, usize, bool)>,
    /// How much of `raw` was read.
    read: usize,
    in_string: bool,
}

/// What a text in pieces is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextForm {
    /// A text as it is.
    Plain,
    /// The text of JSON, in which escapes can spell a secret in any way.
    Json,
}

impl StreamRedactor {
    pub(crate) fn new(redactor: Arc<Redactor>, form: TextForm) -> Self {
        Self {
            redactor,
            form,
            raw: String::new(),
            text: String::new(),
            places: Vec::new(),
            read: 0,
            in_string: false,
        }
    }

    /// What may be passed on when this piece has come.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        self.raw.push_str(piece);
        self.read(false);
        self.take(false)
    }

    /// What was held back: no more comes.
    pub(crate) fn end(&mut self) -> String {
        self.read(true);
        self.take(true)
    }

    /// Reads what has come, but for an escape that is not all there.
    fn read(&mut self, end: bool) {
        while self.read < self.raw.len() {
            let rest = &self.raw[self.read..];
            let (character, length) = match self.form {
                TextForm::Json if rest.starts_with('\\') => match escaped(rest) {
                    Some(read) => read,
                    None if end => ('\\', 1),
                    None => break,
                },
                _ => rest.chars().next().map_or(('\0', 1), |c| (c, c.len_utf8())),
            };
            if length == 1 && character == '"' {
                self.in_string = !self.in_string;
            }
            self.places.push((self.text.len(), self.read, self.in_string));
            self.text.push(character);
            self.read += length;
        }
    }

    fn take(&mut self, end: bool) -> String {
        let begins = |from| match end {
            true => self.text.len(),
            false => self.redactor.possible_beginning(&self.text, from),
        };
        let mut passed = String::new();
        let mut at = 0;
        let mut until = begins(0);
        let found = self.redactor.values.as_ref();
        for found in found.into_iter().flat_map(|values| values.find_iter(&self.text)) {
            // What begins later is not known yet to be all of it.
            if found.start() >= until {
                break;
            }
            passed.push_str(self.raw_of(at, found.start()));
            match self.is_number(found.start(), found.end()) {
                true => passed.push_str(self.raw_of(found.start(), found.end())),
                false => passed.push_str(MASK),
            }
            at = found.end();
            if until < at {
                until = begins(at);
            }
        }
        passed.push_str(self.raw_of(at, until));
        let (first, place) = self.first_from(until);
        self.places.drain(..first);
        for (in_text, in_raw, _) in &mut self.places {
            *in_text -= until;
            *in_raw -= place;
        }
        self.text.drain(..until);
        self.raw.drain(..place);
        self.read -= place;
        passed
    }

    /// How a part of the text came.
    fn raw_of(&self, start: usize, end: usize) -> &str {
        &self.raw[self.first_from(start).1..self.first_from(end).1]
    }

    /// The first character from a place of the text on, and where it is in what came.
    fn first_from(&self, place: usize) -> (usize, usize) {
        let first = self.places.partition_point(|(in_text, ..)| *in_text < place);
        (first, self.places.get(first).map_or(self.read, |(_, in_raw, _)| *in_raw))
    }

    /// Whether a part of JSON is one of a number, which is no text.
    fn is_number(&self, start: usize, end: usize) -> bool {
        self.form == TextForm::Json
            && self.places.get(self.first_from(start).0).is_some_and(|(.., in_string)| !in_string)
            && self.text[start..end].bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// The character that an escape of JSON at the beginning of a text stands for, and how long the escape
/// is; nothing where it is not all there.
fn escaped(text: &str) -> Option<(char, usize)> {
    let unit = |from: usize| {
        let digits = text.get(from..from + 4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let kind = *text.as_bytes().get(1)?;
    let character = match kind {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'"' | b'\\' | b'/' => char::from(kind),
        // A lone character is no escape: it stays what it is.
        b'u' if text.len() < 6 && text[2..].bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            return None;
        }
        b'u' => {
            let Some(first) = unit(2) else { return Some(('\\', 1)) };
            if !(0xd800..0xdc00).contains(&first) {
                return Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6));
            }
            let rest = &text[6..];
            let is_pair = "\\u".starts_with(rest) || rest.starts_with("\\u");
            if is_pair && rest.len() < 6 {
                return None;
            }
            let second = is_pair.then(|| unit(8)).flatten();
            let second = second.filter(|second| (0xdc00..0xe000).contains(second));
            return Some(match second {
                Some(second) => {
                    let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
                }
                None => (char::REPLACEMENT_CHARACTER, 6),
            });
        }
        _ => return Some(('\\', 1)),
    };
    Some((character, 2))
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
    use proptest::{collection, prop_assert_eq, proptest};
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
            ("session_cookie", true),
            ("pass", true),
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
        check(r"\u0068unter22 and h\u0075nter22-longer", "[redacted] and [redacted]");
        check(r#"{"x":"{\"y\":\"with\\\"quote\"}"}"#, r#"{"x":"{\"y\":\"[redacted]\"}"}"#);
        check(r#"\\\\\"with\\\\\\\"quote\\\\\""#, r#"\\\\\"[redacted]\\\\\""#);
        check(r"C:\hunter22\new \u12", r"C:\[redacted]\new \u12");
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

    /// Masks a text in two pieces, for each place where it can be cut, and in single characters.
    fn in_pieces(redactor: &Arc<Redactor>, form: TextForm, text: &str) -> Vec<String> {
        let masked = |pieces: &[&str]| {
            let mut stream = StreamRedactor::new(redactor.clone(), form);
            let mut masked: String = pieces.iter().map(|piece| stream.push(piece)).collect();
            masked.push_str(&stream.end());
            assert!(stream.raw.is_empty() && stream.text.is_empty() && stream.places.is_empty());
            masked
        };
        let places = text.char_indices().map(|(place, _)| place);
        let mut all: Vec<String> =
            places.map(|place| masked(&[&text[..place], &text[place..]])).collect();
        let single: Vec<&str> = text.split("").collect();
        all.push(masked(&single));
        all
    }

    #[test]
    fn a_text_in_pieces_is_masked_as_if_it_came_at_once() {
        let mut secrets = Secrets::default();
        secrets.add("A_TOKEN", "hunter22");
        secrets.add("B_TOKEN", "hunter22-longer");
        secrets.add("C_TOKEN", "22-long");
        secrets.add("D_TOKEN", "aabaab\u{e4}");
        secrets.add("E_TOKEN", "a/\u{1f511}\"quote");
        secrets.add("PIN_KEY", "123456");
        let redactor = Arc::new(Redactor::new(&secrets));
        let check = |form: TextForm, text: &str, expected: &str| {
            for masked in in_pieces(&redactor, form, text) {
                assert_eq!(masked, expected, "{text}");
            }
        };
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
        ] {
            assert_eq!(redactor.text(text), expected, "{text}");
            check(TextForm::Plain, text, expected);
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
        ] {
            check(TextForm::Json, json, expected);
        }
    }

    proptest! {
        /// Of two letters, so that secrets overlap each other and themselves.
        #[test]
        fn pieces_are_masked_as_the_whole_is(
            values in collection::vec("[ab]{6,9}", 1..4),
            text in "[ab]{0,40}",
            cuts in collection::vec(0..40usize, 0..6),
        ) {
            let mut secrets = Secrets::default();
            values.iter().for_each(|value| secrets.add_value(value));
            let redactor = Arc::new(Redactor::new(&secrets));
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < text.len()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            for form in [TextForm::Plain, TextForm::Json] {
                let mut stream = StreamRedactor::new(redactor.clone(), form);
                let pieces = cuts.windows(2).map(|cut| stream.push(&text[cut[0]..cut[1]]));
                let mut masked: String = pieces.collect();
                masked.push_str(&stream.end());
                prop_assert_eq!(&masked, &redactor.text(&text));
            }
        }
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
