//! What a rule demands of one argument: that it equals a value, fits a glob or a regular expression, or is in a range.

mod text_glob;

use regex::{Regex, RegexBuilder};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::fmt;

use super::Fit;
use text_glob::TextGlob;

/// The longest glob or regular expression, in bytes.
const MAX_PATTERN_BYTES: usize = 4096;

/// The most memory that a compiled regular expression may take, in bytes.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// Where an argument is in the arguments of a call: a JSON Pointer ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ArgumentPointer {
    text: String,
    tokens: Vec<String>,
}

impl TryFrom<String> for ArgumentPointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = |problem: &str| Err(format!("`{text}` is no JSON Pointer: {problem}"));
        if text.is_empty() {
            return Ok(Self { text, tokens: Vec::new() });
        }
        let Some(rest) = text.strip_prefix('/') else {
            return wrong("it must begin with `/`, as in \"/path\"");
        };
        let mut tokens = Vec::new();
        for token in rest.split('/') {
            if token.replace("~0", "").replace("~1", "").contains('~') {
                return wrong("`~` must be written as `~0`");
            }
            tokens.push(token.replace("~1", "/").replace("~0", "~"));
        }
        Ok(Self { text, tokens })
    }
}

impl ArgumentPointer {
    /// The pointer as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value that it points at; the empty pointer points at all arguments.
    pub fn find<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        self.tokens.iter().try_fold(arguments, |value, token| match value {
            Value::Object(members) => members.get(token),
            Value::Array(items) => items.get(index(token)?),
            _ => None,
        })
    }
}

/// An index of an array, which RFC 6901 writes without a sign and without leading zeros.
fn index(token: &str) -> Option<usize> {
    let is_canonical = token == "0" || !token.starts_with(['0', '+']);
    token.parse().ok().filter(|_| is_canonical)
}

/// What is demanded of an argument. All that is said has to hold. It is small, so that many are looked through quickly.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ArgumentTable")]
pub struct ArgumentTest(ArgumentTable);

/// The same as it is written, where it may demand nothing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArgumentTable {
    #[serde(default, deserialize_with = "json_of_toml")]
    equals: Option<Value>,
    glob: Option<Box<TextGlob>>,
    regex: Option<Box<TextRegex>>,
    min: Option<Bound>,
    max: Option<Bound>,
}

/// Reads a value that JSON has, too.
fn json_of_toml<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    match beyond_json(&value) {
        Some(problem) => Err(D::Error::custom(problem)),
        None => Ok(Some(value)),
    }
}

/// The key by which the parser of TOML hands over dates and times.
const TOML_DATE: &str = "$__toml_private_datetime";

/// Why no argument equals a value of TOML, where JSON has nothing of its kind.
fn beyond_json(value: &Value) -> Option<String> {
    match value {
        // TOML has no null: it was one of these.
        Value::Null => {
            Some("JSON has neither `nan` nor `inf`, so no argument equals them".to_string())
        }
        Value::Array(items) => items.iter().find_map(beyond_json),
        Value::Object(members) => match members.get(TOML_DATE).and_then(Value::as_str) {
            Some(date) => Some(format!(
                "JSON has no dates and times, so no argument equals {date}; write it as a text: \"{date}\""
            )),
            None => members.values().find_map(beyond_json),
        },
        _ => None,
    }
}

impl TryFrom<ArgumentTable> for ArgumentTest {
    type Error = &'static str;

    fn try_from(table: ArgumentTable) -> Result<Self, Self::Error> {
        let ArgumentTable { equals, glob, regex, min, max } = &table;
        let is_empty =
            equals.is_none() && glob.is_none() && regex.is_none() && min.is_none() && max.is_none();
        match is_empty {
            true => Err("a test of an argument needs `equals`, `glob`, `regex`, `min` or `max`"),
            false => Ok(Self(table)),
        }
    }
}

impl ArgumentTest {
    /// The text that the argument has to equal, where it has to equal one. Nothing else fits then.
    pub(crate) fn equal_text(&self) -> Option<&str> {
        self.0.equals.as_ref().and_then(Value::as_str)
    }

    /// Whether a value is as demanded. One that is of another type than the test is about may mean anything to the tool.
    pub(super) fn fit(&self, value: &Value) -> Fit {
        let ArgumentTable { equals, glob, regex, min, max } = &self.0;
        let equals = equals.as_ref().map(|wanted| Fit::of(is_equal(wanted, value)));
        if equals == Some(Fit::No) {
            return Fit::No;
        }
        let glob = glob.as_ref().map(|glob| of_text(value, |text| glob.fit(text)));
        let regex = regex.as_ref().map(|regex| of_text(value, |text| regex.fit(text)));
        let min = min.as_ref().map(|min| min.fit(value, Ordering::is_ge));
        let max = max.as_ref().map(|max| max.fit(value, Ordering::is_le));
        [equals, glob, regex, min, max].into_iter().flatten().fold(Fit::Yes, Fit::min)
    }
}

/// As it is written: `glob "/work/**"`.
impl fmt::Display for ArgumentTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArgumentTable { equals, glob, regex, min, max } = &self.0;
        let parts = [
            equals.as_ref().map(|value| format!("equals {value}")),
            glob.as_ref().map(|glob| format!("glob {:?}", glob.as_str())),
            regex.as_ref().map(|regex| format!("regex {:?}", regex.text)),
            min.as_ref().map(|min| format!("min {}", min.0)),
            max.as_ref().map(|max| format!("max {}", max.0)),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

fn of_text(value: &Value, fit: impl FnOnce(&str) -> Fit) -> Fit {
    value.as_str().map_or(Fit::Unclear, fit)
}

/// Whether two values are the same JSON: `1` and `1.0` are.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => order(one, other) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(key, one)| other.get(key).is_some_and(|other| is_equal(one, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

/// The order of two numbers, as they are: as floating-point numbers, great integers that differ are equal.
fn order(one: &Number, other: &Number) -> Option<Ordering> {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        (Some(one), None) => order_to_float(one, other.as_f64()?),
        (None, Some(other)) => Some(order_to_float(other, one.as_f64()?)?.reverse()),
        (None, None) => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// The order of an integer of JSON to a floating-point number. No such integer is as great as the `i128` that a number
/// out of range becomes.
fn order_to_float(integer: i128, float: f64) -> Option<Ordering> {
    let whole = float.trunc();
    Some(integer.cmp(&(whole as i128)).then(whole.partial_cmp(&float)?))
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// The least or the greatest number of a range.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
struct Bound(Number);

impl Bound {
    /// Whether a value is a number whose order to the bound holds.
    fn fit(&self, value: &Value, holds: impl FnOnce(Ordering) -> bool) -> Fit {
        let order = value.as_number().and_then(|number| order(number, &self.0));
        order.map_or(Fit::Unclear, |order| Fit::of(holds(order)))
    }
}

/// A regular expression that has to fit a whole text. Whether its `.` is meant to match line feeds is unclear.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
struct TextRegex {
    text: String,
    /// With a `.` that matches no line feed.
    within_lines: Regex,
    /// With a `.` that does.
    across_lines: Regex,
}

impl PartialEq for TextRegex {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for TextRegex {}

impl TryFrom<String> for TextRegex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        check_length(&text)?;
        let compile = |text: &str, across_lines: bool| {
            let mut builder = RegexBuilder::new(text);
            builder.size_limit(MAX_REGEX_BYTES).dot_matches_new_line(across_lines);
            builder.build().map_err(|error| {
                format!("`{text}` is no regular expression: {}", last_line(&error.to_string()))
            })
        };
        // By itself first: `a)(b` would be one within the parentheses.
        compile(&text, false)?;
        // A comment of the expression's own may take the rest of its line.
        let whole = |end: &str, across| compile(&format!(r"\A(?:{text}{end})\z"), across);
        let whole = |across| whole("", across).or_else(|_| whole("\n", across));
        let (within_lines, across_lines) = (whole(false)?, whole(true)?);
        Ok(Self { text, within_lines, across_lines })
    }
}

impl TextRegex {
    fn fit(&self, text: &str) -> Fit {
        // What fits within lines also fits across them.
        match self.across_lines.is_match(text) {
            false => Fit::No,
            true if self.within_lines.is_match(text) => Fit::Yes,
            true => Fit::Unclear,
        }
    }
}

/// The parser of regular expressions shows the place on several lines, and says last what is wrong.
fn last_line(message: &str) -> &str {
    message.lines().last().unwrap_or_default().trim_start_matches("error: ")
}

fn check_length(text: &str) -> Result<(), String> {
    match text.len() > MAX_PATTERN_BYTES {
        true => Err(format!("a pattern has at most {MAX_PATTERN_BYTES} bytes")),
        false => Ok(()),
    }
}
