//! Checks JSON against the schema that a plugin lists for it: what is wrong, where, and what was expected.
//!
//! The messages are those of the SDK for JavaScript. Hosts check arguments as well, and not all of them say as much.

pub(crate) mod constant_schema;
mod format;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::Error;
use crate::nearest::{nearest, suggestion};

/// Reads arguments that are JSON, or says what is wrong with them.
pub(crate) fn parse<T: DeserializeOwned>(
    what: &str,
    text: &str,
    schema: fn() -> String,
) -> Result<T, Error> {
    check(what, text, schema)?;
    serde_json::from_str(text).map_err(|error| unexplained(what, &error))
}

fn check(what: &str, text: &str, schema: fn() -> String) -> Result<(), Error> {
    let value = serde_json::from_str(text).map_err(|error| unexplained(what, &error))?;
    let schema = serde_json::from_str(&schema()).unwrap_or_default();
    let problems = problems(&value, &schema);
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Error::invalid_input(format!("{what}: {}", problems.join("; ")))),
    }
}

fn unexplained(what: &str, error: &serde_json::Error) -> Error {
    Error::invalid_input(format!("{what}: {error}"))
}

/// What is wrong with a value; nothing where it fits.
fn problems(value: &Value, schema: &Value) -> Vec<String> {
    let mut check = Check { root: schema, problems: Vec::new() };
    check.value(value, schema, "");
    check.problems
}

struct Check<'a> {
    root: &'a Value,
    problems: Vec<String>,
}

impl<'a> Check<'a> {
    /// What is wrong by another schema, by itself.
    fn apart(&self, value: &Value, schema: &'a Value, path: &str) -> Vec<String> {
        let mut check = Check { root: self.root, problems: Vec::new() };
        check.value(value, schema, path);
        check.problems
    }

    fn say(&mut self, path: &str, problem: &str) {
        let here = if path.is_empty() { "the value".into() } else { format!("`{path}`") };
        self.problems.push(format!("{here} {problem}"));
    }

    fn value(&mut self, value: &Value, schema: &'a Value, path: &str) {
        let Value::Object(members) = schema else {
            if *schema == Value::Bool(false) {
                self.say(path, "is not allowed");
            }
            return;
        };
        if let Some(target) = text(members, "$ref").and_then(|to| resolve(self.root, to)) {
            self.value(value, target, path);
        }
        if let Some(expected) = members.get("const").filter(|expected| *expected != value) {
            let problem = format!("is {} and has to be {}", shown(value), shown(expected));
            return self.say(path, &problem);
        }
        if let Some(choices) = list(members, "enum")
            && !choices.contains(value)
        {
            let names: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
            let near = value.as_str().and_then(|text| nearest(text, &names));
            let meant = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let problem =
                format!("is {} and has to be one of {}{meant}", shown(value), all(choices));
            return self.say(path, &problem);
        }
        let types = types(members);
        if !types.is_empty() && !types.iter().any(|kind| is_of(value, kind)) {
            let types: Vec<String> = types.iter().map(|kind| with_article(kind)).collect();
            let problem = format!("is {} and has to be {}", shown(value), types.join(" or "));
            return self.say(path, &problem);
        }
        for part in list(members, "allOf").into_iter().flatten() {
            self.value(value, part, path);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(alternatives) = list(members, keyword) {
                self.alternatives(value, alternatives, path);
            }
        }
        match value {
            Value::String(value) => self.string(value, members, path),
            Value::Number(_) => self.number(value, members, path),
            Value::Array(items) => self.array(items, members, path),
            Value::Object(value) => self.object(value, members, path),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn alternatives(&mut self, value: &Value, alternatives: &'a [Value], path: &str) {
        let tried: Vec<Vec<String>> =
            alternatives.iter().map(|alternative| self.apart(value, alternative, path)).collect();
        if tried.iter().any(Vec::is_empty) {
            return;
        }
        // The one that is meant, where a tag or the members say so.
        let mut meant = alternatives.iter().zip(&tried).filter(|(alternative, _)| {
            types_of(alternative) != ["null"] && is_meant(value, self.target(alternative))
        });
        if let (Some((_, problems)), None) = (meant.next(), meant.next()) {
            self.problems.extend(problems.iter().cloned());
            return;
        }
        let first: Vec<&str> =
            tried.iter().filter_map(|problems| problems.first()).map(String::as_str).collect();
        let problem = format!("is none of what it may be: {}", first.join("; or "));
        self.say(path, &problem);
    }

    /// The schema that a reference leads to, or the schema itself.
    fn target(&self, schema: &'a Value) -> &'a Value {
        let reference = schema.get("$ref").and_then(Value::as_str);
        reference.and_then(|to| resolve(self.root, to)).unwrap_or(schema)
    }

    fn string(&mut self, value: &str, schema: &Map<String, Value>, path: &str) {
        self.length(value.chars().count(), schema, ["minLength", "maxLength"], "characters", path);
        if let Some(format) = text(schema, "format").filter(|format| !format::fits(format, value)) {
            let value = shown(&value.into());
            self.say(path, &format!("is {value} and has to be {}", with_article(format)));
        }
    }

    fn number(&mut self, value: &Value, schema: &Map<String, Value>, path: &str) {
        let Some(number) = value.as_f64() else { return };
        let mut check = |keyword, is_bad: fn(f64, f64) -> bool, limit: &str| {
            if let Some(bound) = schema.get(keyword)
                && bound.as_f64().is_some_and(|bound| is_bad(number, bound))
            {
                self.say(path, &format!("is {value} and has to be {limit} {bound}"));
            }
        };
        check("minimum", |number, bound| number < bound, "at least");
        check("maximum", |number, bound| number > bound, "at most");
        check("exclusiveMinimum", |number, bound| number <= bound, "greater than");
        check("exclusiveMaximum", |number, bound| number >= bound, "less than");
    }

    fn array(&mut self, items: &[Value], schema: &'a Map<String, Value>, path: &str) {
        self.length(items.len(), schema, ["minItems", "maxItems"], "items", path);
        let first = list(schema, "prefixItems").unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or_else(|| schema.get("items")) {
                self.value(item, schema, &format!("{path}[{index}]"));
            }
        }
    }

    fn length(
        &mut self,
        length: usize,
        schema: &Map<String, Value>,
        [least, most]: [&str; 2],
        what: &str,
        path: &str,
    ) {
        let bound = |keyword| schema.get(keyword).and_then(Value::as_u64);
        if let Some(least) = bound(least).filter(|least| (length as u64) < *least) {
            self.say(path, &format!("has {length} {what} and needs at least {least}"));
        }
        if let Some(most) = bound(most).filter(|most| length as u64 > *most) {
            self.say(path, &format!("has {length} {what} and may have at most {most}"));
        }
    }

    fn object(&mut self, value: &Map<String, Value>, schema: &'a Map<String, Value>, path: &str) {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        let property = |name: &str| properties.and_then(|properties| properties.get(name));
        let below = |name: &str| {
            if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
        };
        for name in list(schema, "required").into_iter().flatten().filter_map(Value::as_str) {
            if !value.contains_key(name) {
                self.problems.push(missing(&below(name), property(name)));
            }
        }
        let others = schema.get("additionalProperties");
        let mut unknown = Vec::new();
        for (name, member) in value {
            match (property(name), others) {
                (Some(schema), _) => self.value(member, schema, &below(name)),
                (None, Some(Value::Bool(false))) => unknown.push(name),
                (None, Some(schema)) => self.value(member, schema, &below(name)),
                (None, None) => {}
            }
        }
        let known: Vec<&str> = properties.unwrap_or(&none).keys().map(String::as_str).collect();
        let free: Vec<&str> =
            known.iter().copied().filter(|known| !value.contains_key(*known)).collect();
        for name in unknown {
            let meant = suggestion(name, if free.is_empty() { &known } else { &free });
            self.problems.push(format!("there is no `{}`: {meant}", below(name)));
        }
    }
}

fn missing(path: &str, schema: Option<&Value>) -> String {
    let Some(Value::Object(schema)) = schema else { return format!("`{path}` is missing") };
    if let Some(choices) = list(schema, "enum") {
        return format!("`{path}` is missing: it has to be one of {}", all(choices));
    }
    let types = types(schema).join(" or ");
    let types = if types.is_empty() { types } else { format!(" ({types})") };
    let about = text(schema, "description").map(|about| format!(": {about}")).unwrap_or_default();
    format!("`{path}`{types} is missing{about}")
}

/// Whether a value is meant to be of an alternative: the members that can have only one value there have it, and it has
/// no others than those of the alternative.
fn is_meant(value: &Value, alternative: &Value) -> bool {
    let Some(value) = value.as_object() else { return types_of(alternative) != ["object"] };
    let Some(properties) = alternative.get("properties").and_then(Value::as_object) else {
        return types_of(alternative) == ["object"];
    };
    value.iter().all(|(name, member)| match properties.get(name) {
        Some(schema) => schema.get("const").is_none_or(|expected| expected == member),
        None => alternative.get("additionalProperties") != Some(&Value::Bool(false)),
    }) && value.keys().any(|name| properties.contains_key(name))
}

/// What a value is in JSON.
fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || is_whole(value),
        _ => true,
    }
}

fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn types_of(schema: &Value) -> Vec<&str> {
    schema.as_object().map(types).unwrap_or_default()
}

fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn text<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a str> {
    schema.get(keyword).and_then(Value::as_str)
}

fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a [Value]> {
    schema.get(keyword).and_then(Value::as_array).map(Vec::as_slice)
}

/// What a reference within the schema leads to.
fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {kind}")
}

fn all(values: &[Value]) -> String {
    values.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// A value as it is shown in a message: at most 60 characters of JSON.
fn shown(value: &Value) -> String {
    shown_text(&value.to_string())
}

fn shown_text(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some(_) => text.chars().take(57).chain(['…']).collect(),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let check = |properties: Value, value: Value, expected: &[&str]| {
            let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
            let schema = json!({
                "type": "object", "properties": properties, "required": required,
                "additionalProperties": false,
                "$defs": { "text": { "type": "string" } },
            });
            assert_eq!(problems(&value, &schema), expected, "{value}");
        };
        let name = || json!({ "type": "string", "description": "Whom to greet." });
        let unit = || json!({ "type": "string", "enum": ["celsius", "fahrenheit"] });
        let item = || json!({ "type": "array", "items": { "type": "object", "properties": { "name": name() }, "required": ["name"] } });
        check(json!({ "name": name() }), json!({ "name": "Ada" }), &[]);
        check(
            json!({ "name": name() }),
            json!({}),
            &["`name` (string) is missing: Whom to greet."],
        );
        check(
            json!({ "unit": unit() }),
            json!({}),
            &["`unit` is missing: it has to be one of \"celsius\", \"fahrenheit\""],
        );
        check(
            json!({ "name": name() }),
            json!({ "name": 3 }),
            &["`name` is 3 and has to be a string"],
        );
        check(
            json!({ "name": name() }),
            json!({ "nmae": "x" }),
            &[
                "`name` (string) is missing: Whom to greet.",
                "there is no `nmae`: did you mean `name`?",
            ],
        );
        check(
            json!({ "name": name() }),
            json!({ "nmae": "x", "name": "y" }),
            &["there is no `nmae`: did you mean `name`?"],
        );
        check(
            json!({ "unit": unit() }),
            json!({ "unit": "celcius" }),
            &[
                "`unit` is \"celcius\" and has to be one of \"celsius\", \"fahrenheit\"; did you mean `celsius`?",
            ],
        );
        check(
            json!({ "names": { "type": "array", "items": name() } }),
            json!({ "names": ["a", null] }),
            &["`names[1]` is null and has to be a string"],
        );
        check(
            json!({ "all": item() }),
            json!({ "all": [{ "name": "a" }, {}] }),
            &["`all[1].name` (string) is missing: Whom to greet."],
        );
        let number = || json!({ "type": "integer", "minimum": 1, "maximum": 9 });
        check(json!({ "n": number() }), json!({ "n": 10 }), &["`n` is 10 and has to be at most 9"]);
        check(json!({ "n": number() }), json!({ "n": 0 }), &["`n` is 0 and has to be at least 1"]);
        check(
            json!({ "n": number() }),
            json!({ "n": 1.5 }),
            &["`n` is 1.5 and has to be an integer"],
        );
        check(json!({ "n": number() }), json!({ "n": 2.0 }), &[]);
        check(
            json!({ "name": { "type": "string", "minLength": 2 } }),
            json!({ "name": "é" }),
            &["`name` has 1 characters and needs at least 2"],
        );
        check(
            json!({ "day": { "type": "string", "format": "date" } }),
            json!({ "day": "tomorrow" }),
            &["`day` is \"tomorrow\" and has to be a date"],
        );
        let or_null = json!({ "v": { "anyOf": [{ "$ref": "#/$defs/text" }, { "type": "null" }] } });
        check(or_null.clone(), json!({ "v": null }), &[]);
        check(or_null, json!({ "v": 3 }), &["`v` is 3 and has to be a string"]);
        check(
            json!({ "v": { "anyOf": [{ "type": "string" }, { "type": "boolean" }] } }),
            json!({ "v": 3 }),
            &[
                "`v` is none of what it may be: `v` is 3 and has to be a string; or `v` is 3 and has to be a boolean",
            ],
        );
        let long = "x".repeat(100);
        let told = format!("`n` is \"{}… and has to be an integer", "x".repeat(56));
        check(json!({ "n": { "type": "integer" } }), json!({ "n": long }), &[&told]);
    }

    #[test]
    fn of_several_alternatives_the_one_that_is_meant_is_told() {
        let schema = json!({ "oneOf": [
            { "type": "object", "properties": { "kind": { "const": "a" }, "x": { "type": "integer" } } },
            { "type": "object", "properties": { "kind": { "const": "b" }, "y": { "type": "integer" } } },
        ] });
        let found = problems(&json!({ "kind": "b", "y": "z" }), &schema);
        assert_eq!(found, ["`y` is \"z\" and has to be an integer"]);
        let schema = json!({ "oneOf": [
            { "type": "object", "properties": { "A": { "type": "integer" } }, "required": ["A"], "additionalProperties": false },
            { "type": "object", "properties": { "B": { "type": "integer" } }, "required": ["B"], "additionalProperties": false },
        ] });
        let found = problems(&json!({ "B": "z" }), &schema);
        assert_eq!(found, ["`B` is \"z\" and has to be an integer"]);
    }
}
