//! JSON to and from the values of scripts.

use rhai::serde::to_dynamic;
use rhai::{Array, Dynamic, ImmutableString, Map};
use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::Value;
use tenon_types::{Error, Json};

use super::engine::{Decision, MAX_VALUE_DEPTH, too_deep};
use super::time::{Moment, Span};
use crate::call::Failure;

/// A script's value as JSON.
pub(super) fn to_json(value: &Dynamic) -> Result<Value, String> {
    serde_json::to_value(ScriptJson::whole(value)).map_err(|error| error.to_string())
}

/// The same as text.
pub(super) fn to_text(value: &Dynamic) -> Result<String, String> {
    serde_json::to_string(&ScriptJson::whole(value)).map_err(|error| error.to_string())
}

/// JSON as a script's value.
pub(super) fn from_text(json: &str) -> Result<Dynamic, serde_json::Error> {
    serde_json::from_str(json)
}

/// Whether two texts of JSON, each written by the host, have the same value. The order of members may differ.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let value = |text| serde_json::from_str::<Value>(text).ok();
    // What differs in the order alone is as long.
    one == other || one.len() == other.len() && value(one) == value(other)
}

/// Arguments as what a script's function takes.
pub(super) fn as_argument(json: &Json) -> Result<Dynamic, Failure> {
    to_dynamic(json.value())
        .map_err(|error| Failure::Answered(Error::invalid_input(format!("arguments: {error}"))))
}

/// A script's value that is written as JSON.
struct ScriptJson<'a> {
    value: &'a Dynamic,
    /// How deep it may be nested.
    depth: usize,
}

impl<'a> ScriptJson<'a> {
    fn whole(value: &'a Dynamic) -> Self {
        Self { value, depth: MAX_VALUE_DEPTH }
    }
}

impl Serialize for ScriptJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(depth) = self.depth.checked_sub(1) else {
            return Err(S::Error::custom(too_deep()));
        };
        let value = self.value;
        // What is there most often comes first.
        if let Some(text) = value.read_lock::<ImmutableString>() {
            return serializer.serialize_str(&text);
        }
        if let Some(map) = value.read_lock::<Map>() {
            let mut members = serializer.serialize_map(Some(map.len()))?;
            for (key, value) in map.iter() {
                members.serialize_entry(key.as_str(), &ScriptJson { value, depth })?;
            }
            return members.end();
        }
        if let Ok(number) = value.as_int() {
            return serializer.serialize_i64(number);
        }
        if let Some(items) = value.read_lock::<Array>() {
            return serializer.collect_seq(items.iter().map(|value| ScriptJson { value, depth }));
        }
        if let Ok(truth) = value.as_bool() {
            return serializer.serialize_bool(truth);
        }
        if let Ok(number) = value.as_float() {
            return match number.is_finite() {
                true => serializer.serialize_f64(number),
                false => Err(S::Error::custom(format!("{number} is not a number that JSON has"))),
            };
        }
        if let Ok(character) = value.as_char() {
            return serializer.serialize_char(character);
        }
        if let Some(time) = value.read_lock::<Moment>() {
            return serializer.serialize_str(&time.text());
        }
        if let Some(span) = value.read_lock::<Span>() {
            return serializer.serialize_f64(span.seconds());
        }
        if value.flatten_clone().is_unit() {
            return serializer.serialize_unit();
        }
        Err(S::Error::custom(match value.is::<Decision>() {
            true => "`veto` and `replace` are for hooks".to_string(),
            false => format!("a value of type {} cannot leave a script", value.type_name()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhai::Engine;

    #[test]
    fn values_are_written_as_text_as_they_are_as_trees() {
        let check = |script: &str, expected: &str| {
            let value = Engine::new().eval::<Dynamic>(script).expect(script);
            let text = to_text(&value).expect(script);
            assert_eq!(text, expected, "{script}");
            assert_eq!(to_json(&value).expect(script).to_string(), expected, "{script}");
            let read = from_text(&text).expect(script);
            assert_eq!(to_text(&read).expect(script), expected, "{script}");
        };
        check("1", "1");
        check("1.0", "1.0");
        check("1e300", "1e+300");
        check("'x'", "\"x\"");
        check("\"a\\n\\\"b\\\"\"", "\"a\\n\\\"b\\\"\"");
        check("()", "null");
        check("[true, [], #{}]", "[true,[],{}]");
        check("#{ b: 1, a: #{ c: () } }", "{\"a\":{\"c\":null},\"b\":1}");
        // A variable that a closure captured is shared.
        check("let a = [1]; let f = || a; a", "[1]");
    }

    #[test]
    fn the_order_of_members_is_no_difference() {
        let check =
            |one, other, expected| assert_eq!(is_same(one, other), expected, "{one} {other}");
        check(r#"{"a":1,"b":[2]}"#, r#"{"a":1,"b":[2]}"#, true);
        check(r#"{"a":1,"b":[2]}"#, r#"{"b":[2],"a":1}"#, true);
        check(r#"{"a":1,"b":[2]}"#, r#"{"a":1,"b":[3]}"#, false);
        check(r#"{"a":1}"#, r#"{"a":11}"#, false);
        check("[1,2]", "[2,1]", false);
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        let check = |script: &str, expected: &str| {
            let value = Engine::new().eval::<Dynamic>(script).expect(script);
            assert_eq!(to_json(&value), Err(expected.to_string()), "{script}");
            assert_eq!(to_text(&value), Err(expected.to_string()), "{script}");
        };
        check("0.0 / 0.0", "NaN is not a number that JSON has");
        check("[1, || 2]", "a value of type Fn cannot leave a script");
        check("let v = 1; for i in 0..200 { v = [v]; } v", &too_deep());
    }
}
