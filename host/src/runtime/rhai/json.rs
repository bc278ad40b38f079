//! JSON to and from the values of scripts.

use rhai::serde::to_dynamic;
use rhai::{Array, Dynamic, ImmutableString, Map};
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use tenon_types::{Error, HookContext, Json};

use super::engine::{MAX_VALUE_DEPTH, ScriptDecision, fits_when_written, too_deep};
use super::time::{ScriptDuration, ScriptTime};
use crate::call::Failure;

/// The most that a script's value comes to as JSON, in bytes, or about so. A value holds less, but what is in it more than once
/// is written out for each.
const MAX_JSON_BYTES: usize = 16 << 20;

fn check_size(value: &Dynamic) -> Result<(), String> {
    // What is nested too deep is told by whoever writes it.
    match fits_when_written(value, &mut { MAX_JSON_BYTES }, 2 * MAX_VALUE_DEPTH, false) {
        true => Ok(()),
        false => Err(format!(
            "a value that leaves a script has at most {} MiB as JSON, and is nested at most {MAX_VALUE_DEPTH} deep",
            MAX_JSON_BYTES >> 20
        )),
    }
}

/// A script's value as JSON.
pub(super) fn to_json(value: &Dynamic) -> Result<Value, String> {
    check_size(value)?;
    serde_json::to_value(ScriptJson::whole(value)).map_err(|error| error.to_string())
}

/// The same as text.
pub(super) fn to_text(value: &Dynamic) -> Result<String, String> {
    check_size(value)?;
    serde_json::to_string(&ScriptJson::whole(value)).map_err(|error| error.to_string())
}

/// The context of a hook as a script's map.
pub(super) fn from_context(context: &HookContext) -> Result<Dynamic, Failure> {
    let member =
        |(name, value): (&String, &Value)| Ok((name.as_str().into(), Dynamic::deserialize(value)?));
    let map: Result<Map, serde_json::Error> = context.members().map(member).collect();
    let map = map.map_err(|error| Failure::Host(format!("the context: {error}")))?;
    Ok(map.into())
}

/// The context that a script's map is now, where it differs from what it was. Members that are as they were are not
/// copied.
pub(super) fn changed_context(
    value: &Dynamic,
    before: &HookContext,
) -> Result<Option<HookContext>, String> {
    let map = value.read_lock::<Map>().ok_or("the context is not a map any more")?;
    let mut after = None;
    for (name, value) in map.iter() {
        let known = before.get(name);
        if known.is_some_and(|known| is_same(value, known)) {
            continue;
        }
        let member = ScriptJson { value, depth: MAX_VALUE_DEPTH - 1 };
        let new = serde_json::to_value(member).map_err(|error| error.to_string())?;
        if known != Some(&new) {
            after.get_or_insert_with(|| before.clone()).set(name, new);
        }
    }
    for (name, _) in before.members().filter(|(name, _)| !map.contains_key(name.as_str())) {
        after.get_or_insert_with(|| before.clone()).remove(name);
    }
    Ok(after)
}

/// Whether a script's value is of the same kind as a JSON value, and the same.
fn is_same(value: &Dynamic, json: &Value) -> bool {
    match json {
        Value::Null => value.is_unit(),
        Value::Bool(json) => value.as_bool() == Ok(*json),
        Value::Number(json) => match value.as_int() {
            Ok(value) => json.as_i64() == Some(value),
            Err(_) => json.is_f64() && value.as_float().ok() == json.as_f64(),
        },
        Value::String(json) => {
            value.read_lock::<ImmutableString>().is_some_and(|value| value.as_str() == json)
        }
        Value::Array(json) => value.read_lock::<Array>().is_some_and(|value| {
            value.len() == json.len()
                && value.iter().zip(json).all(|(value, json)| is_same(value, json))
        }),
        Value::Object(json) => value.read_lock::<Map>().is_some_and(|value| {
            let is_same = |(name, value): (_, &Dynamic)| {
                json.get::<str>(name).is_some_and(|json| is_same(value, json))
            };
            value.len() == json.len()
                && value.iter().map(|(name, value)| (name.as_str(), value)).all(is_same)
        }),
    }
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
        if let Some(time) = value.read_lock::<ScriptTime>() {
            return serializer.serialize_str(&time.text());
        }
        if let Some(span) = value.read_lock::<ScriptDuration>() {
            return serializer.serialize_f64(span.seconds());
        }
        if value.flatten_clone().is_unit() {
            return serializer.serialize_unit();
        }
        Err(S::Error::custom(match value.is::<ScriptDecision>() {
            true => "`veto` and `replace` are for hooks".to_string(),
            // A type of the host's own has its path in Rust before its name.
            false => {
                let name = value.type_name().rsplit("::").next().unwrap_or_default();
                format!("a value of type {name} cannot leave a script")
            }
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
            let read: Dynamic = serde_json::from_str(&text).expect(script);
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
    fn contexts_come_back_as_they_went() {
        let check = |json: &str| {
            let context = HookContext::parse(json).unwrap();
            let map = from_context(&context).unwrap();
            assert_eq!(changed_context(&map, &context), Ok(None), "{json}");
            let all = changed_context(&map, &HookContext::default()).unwrap();
            assert_eq!(all.unwrap_or_default(), context, "{json}");
        };
        check("{}");
        check(r#"{"a":{"c":null,"b":[1,1.5,true,"x"]},"b":9223372036854775807}"#);
    }

    #[test]
    fn a_context_changes_in_the_members_that_differ() {
        let check = |script: &str, expected: Result<Option<&str>, &str>| {
            let json = r#"{"a":[1,{"b":1.0}],"c":"x","d":null,"e":true}"#;
            let before = HookContext::parse(json).unwrap();
            let mut scope = rhai::Scope::new();
            scope.push_dynamic("c", from_context(&before).unwrap());
            let now = Engine::new().eval_with_scope::<Dynamic>(&mut scope, script).expect(script);
            let after = changed_context(&now, &before).map(|after| after.map(|of| of.to_string()));
            let expected = expected.map(|of| of.map(String::from)).map_err(String::from);
            assert_eq!(after, expected, "{script}");
        };
        check("c", Ok(None));
        check("c.a[0] = 1; c.c = \"\" + c.c; c", Ok(None));
        // Another value of a script, and the same JSON.
        check("c.c = 'x'; c", Ok(None));
        check("c.a[0] = 1.0; c", Ok(Some(r#"{"a":[1.0,{"b":1.0}],"c":"x","d":null,"e":true}"#)));
        check("c.a[1].b = 1; c", Ok(Some(r#"{"a":[1,{"b":1}],"c":"x","d":null,"e":true}"#)));
        check("c.a[1].z = (); c.a", Err("the context is not a map any more"));
        check(
            "c.a.push(0); c.e = false; c",
            Ok(Some(r#"{"a":[1,{"b":1.0},0],"c":"x","d":null,"e":false}"#)),
        );
        check(
            "c.remove(\"d\"); c.f = 2; c",
            Ok(Some(r#"{"a":[1,{"b":1.0}],"c":"x","e":true,"f":2}"#)),
        );
        check(
            "c.d = c.c; c.c = (); c",
            Ok(Some(r#"{"a":[1,{"b":1.0}],"c":null,"d":"x","e":true}"#)),
        );
        check("c.d = || 1; c", Err("a value of type Fn cannot leave a script"));
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
