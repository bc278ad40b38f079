//! Reading TOML that others wrote: errors name the line and say what is wrong there in plain words.

use serde::Deserializer;
use serde::de::Error as _;
use std::time::Duration;
use tenon_types::name::nearest;
use tenon_types::text::shorten;

/// Parses TOML; an error has its line and what is wrong there.
pub fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, (usize, String)> {
    if let Some(line) = deep_line(text) {
        return Err((line, format!("it is nested more than {MAX_NESTING} deep")));
    }
    let wrong = |place: &str, error: &toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start);
        let message = of_wrong_type(place, error.message());
        (line_of(text, start), message.unwrap_or_else(|| with_nearest(error.message())))
    };
    let read = toml::Deserializer::parse(text).map_err(|error| wrong(".", &error))?;
    serde_path_to_error::deserialize(read)
        .map_err(|error| wrong(&error.path().to_string(), error.inner()))
}

/// What is wrong with a value that is of another type than it should be: which it is, what it should be
/// and what it is. The words of the parser are those of a programmer.
fn of_wrong_type(place: &str, message: &str) -> Option<String> {
    let message =
        message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "));
    let (found, wanted) = message?.split_once(", expected ")?;
    let number = |text: &str| format!("the number {}", text.trim_matches('`'));
    let mut found = match found.split_once(' ') {
        Some(("string", text)) => format!("the text {text}"),
        Some(("integer", text)) => number(text),
        Some(("boolean", text)) => text.to_string(),
        Some(("floating", text)) => number(text.trim_start_matches("point ")),
        _ if found == "sequence" => "a list".into(),
        _ if found == "map" => "a table".into(),
        _ => found.to_string(),
    };
    shorten(&mut found, MAX_NAME_LENGTH);
    let is_number = |text: &str| {
        let bits = text.strip_prefix(['u', 'i']);
        bits.is_some_and(|bits| bits == "size" || bits.parse::<u8>().is_ok())
    };
    let (wanted, hint) = match wanted {
        "a sequence" | "sequence" => ("a list", ""),
        "a string" if place.ends_with("command") && found == "a list" => {
            ("a text", "; what follows the program is for `args`")
        }
        "a string" => ("a text", ""),
        "a map" => ("a table", ""),
        "a boolean" => ("`true` or `false`", ""),
        "a duration" => ("a duration such as \"30s\"", ""),
        wanted if wanted.starts_with("struct ") => ("a table", ""),
        wanted if wanted.strip_prefix("a nonzero ").is_some_and(is_number) => {
            ("a whole number greater than 0", "")
        }
        wanted if is_number(wanted) => ("a whole number", ""),
        wanted => (wanted, ""),
    };
    let subject = match place {
        "." => "it".to_string(),
        place => format!("`{place}`"),
    };
    Some(format!("{subject} must be {wanted}, not {found}{hint}"))
}

/// The deepest that TOML may be nested.
const MAX_NESTING: usize = 128;

/// The stack on which deeper TOML is looked at. The parser bounds how deep tables are within each other
/// and how many names a key has, but not one times the other.
const STACK_BYTES: usize = 128 << 20;

/// The line on which TOML begins that is nested too deep for those who follow it down.
fn deep_line(text: &str) -> Option<usize> {
    // Each level takes one of these.
    if text.bytes().filter(|byte| b".[{".contains(byte)).count() <= MAX_NESTING {
        return None;
    }
    let look = || {
        let table = toml::de::DeTable::parse(text).ok()?;
        let mut values = table.get_ref().iter();
        let (key, _) = values.find(|(_, value)| !is_within(value.get_ref(), MAX_NESTING - 1))?;
        Some(line_of(text, key.span().start))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, look);
        // Without a thread nothing is known of it.
        thread.ok().map_or(Some(1), |thread| thread.join().unwrap_or(Some(1)))
    })
}

/// Whether a value is nested no deeper than this.
fn is_within(value: &toml::de::DeValue<'_>, most: usize) -> bool {
    use toml::de::DeValue::{Array, Table};
    match (value, most.checked_sub(1)) {
        (Array(items), Some(most)) => items.iter().all(|item| is_within(item.get_ref(), most)),
        (Table(members), Some(most)) => {
            members.values().all(|value| is_within(value.get_ref(), most))
        }
        (Array(_) | Table(_), None) => false,
        _ => true,
    }
}

/// The line that a place in a text is on, counted from one.
pub fn line_of(text: &str, place: usize) -> usize {
    text[..place.min(text.len())].matches('\n').count() + 1
}

/// The longest key that may have been meant as another, and the longest message of the parser, which
/// repeats what is wrong, in bytes.
const MAX_NAME_LENGTH: usize = 64;
const MAX_MESSAGE_LENGTH: usize = 2_000;

/// Says of an unknown key which one may have been meant.
fn with_nearest(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown field").then(|| quoted.next()).flatten();
    // What is longer than any of the names is none of them.
    match unknown
        .filter(|unknown| unknown.len() <= MAX_NAME_LENGTH)
        .and_then(|name| nearest(name, quoted))
    {
        Some(meant) => format!("{message}; did you mean `{meant}`?"),
        None => {
            let mut message = message.to_string();
            shorten(&mut message, MAX_MESSAGE_LENGTH);
            message
        }
    }
}

/// Reads a time in which something can be done.
pub fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    match humantime_serde::deserialize(deserializer)? {
        Some(Duration::ZERO) => Err(D::Error::custom("a time must be greater than zero")),
        time => Ok(time),
    }
}
