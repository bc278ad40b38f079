//! Arguments of a tool as they are typed, and as its JSON Schema describes them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use tenon_host::types::text::one_line;
use tenon_host::{Call, Caller, Platform};

use crate::error::Error;
use crate::output;

/// Arguments as they were typed. What a value means is decided by the schema of the tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum RawArguments {
    Json(Value),
    /// Names and values. A name that stands there several times has a list.
    Pairs(Vec<(String, String)>),
}

/// Whether what was typed is JSON, or names it.
fn is_json(text: &str) -> bool {
    text == "-" || text.starts_with(['{', '[', '"', '@'])
}

impl RawArguments {
    /// Reads what was typed: one JSON text, `@FILE` or `-`, or any number of `KEY=VALUE`.
    ///
    /// # Errors
    ///
    /// Where it is neither, or cannot be read.
    pub(crate) fn parse(words: &[String]) -> Result<Self, Error> {
        match words {
            [] => Ok(Self::Json(Value::Object(Map::new()))),
            [json] if is_json(json) => Ok(Self::Json(output::read_json("arguments", json)?)),
            pairs => pairs.iter().map(|word| pair(word)).collect::<Result<_, _>>().map(Self::Pairs),
        }
    }

    /// Reads what was typed in one line, in which JSON may have blanks and no other value has any.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`].
    pub(crate) fn parse_line(line: &str) -> Result<Self, Error> {
        let line = line.trim();
        let words = match is_json(line) {
            true => vec![line.to_string()],
            false => line.split_whitespace().map(str::to_string).collect(),
        };
        Self::parse(&words)
    }

    /// The call of a tool with these arguments.
    pub(crate) fn call(&self, platform: &Platform, name: String, caller: Caller) -> Call {
        let registry = platform.registry();
        let tool = registry.tool(&name);
        let schema = tool.as_ref().map(|(_, tool)| tool.definition.input_schema.as_str());
        let arguments = self.for_schema(schema).into_owned();
        Call { name, arguments, caller }
    }

    /// An argument that is text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self {
            Self::Json(arguments) => arguments.get(name)?.as_str().map(str::to_string),
            Self::Pairs(pairs) => {
                pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
            }
        }
    }

    /// The arguments without one of them.
    pub(crate) fn without(&self, name: &str) -> Self {
        let mut others = self.clone();
        match &mut others {
            Self::Json(arguments) => {
                if let Some(arguments) = arguments.as_object_mut() {
                    arguments.remove(name);
                }
            }
            Self::Pairs(pairs) => pairs.retain(|(key, _)| key != name),
        }
        others
    }

    /// The arguments for a tool with this schema, in JSON.
    pub(crate) fn for_schema(&self, schema: Option<&str>) -> Cow<'_, Value> {
        let schema = schema.and_then(|schema| serde_json::from_str(schema).ok());
        self.of(&schema.unwrap_or_default())
    }

    fn of(&self, schema: &Value) -> Cow<'_, Value> {
        let pairs = match self {
            Self::Json(arguments) => return Cow::Borrowed(arguments),
            Self::Pairs(pairs) => pairs,
        };
        let mut arguments = Map::new();
        for (at, (key, _)) in pairs.iter().enumerate() {
            let is_first = pairs[..at].iter().all(|(before, _)| before != key);
            if is_first {
                let values = pairs.iter().filter(|(other, _)| other == key);
                let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
                let property = Property { schema, own: &schema["properties"][key], depth: 0 };
                arguments.insert(key.clone(), property.value(&values));
            }
        }
        Cow::Owned(Value::Object(arguments))
    }
}

/// As they were typed, as far as that is in one line.
impl fmt::Display for RawArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(arguments) => arguments.fmt(f),
            Self::Pairs(pairs) => {
                let pairs: Vec<String> =
                    pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
                f.write_str(&pairs.join(" "))
            }
        }
    }
}

fn pair(word: &str) -> Result<(String, String), Error> {
    match word.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err(Error::Input(format!(
            "arguments: {word:?} is neither KEY=VALUE nor a JSON object, @FILE or -"
        ))),
    }
}

/// A property of a schema.
#[derive(Clone, Copy)]
struct Property<'a> {
    /// The whole schema, in which references are looked up.
    schema: &'a Value,
    own: &'a Value,
    /// How deep it lies in others.
    depth: usize,
}

/// How often schemas may refer to or contain others, as far as they are looked into.
const MAX_DEPTH: usize = 8;

impl<'a> Property<'a> {
    /// What was typed for it, in JSON.
    fn value(self, values: &[&str]) -> Value {
        let types = self.types();
        let is_list = types.len() == 1 && types.contains("array");
        match (values, self.items()) {
            ([value], Some(items)) if is_list && !value.trim_start().starts_with('[') => {
                Value::Array(vec![items.value(&[value])])
            }
            ([value], _) => one(value, &types),
            (values, items) => {
                let types = items.map(Self::types).unwrap_or_default();
                Value::Array(values.iter().map(|value| one(value, &types)).collect())
            }
        }
    }

    /// What is in it, where it is a list; nothing where that is too deep.
    fn items(self) -> Option<Self> {
        let depth = self.depth + 1;
        (depth < MAX_DEPTH).then(|| Self { own: &self.resolved()["items"], depth, ..self })
    }

    /// The schema, behind a reference to one of the same document.
    fn resolved(self) -> &'a Value {
        let mut resolved = self.own;
        for _ in 0..MAX_DEPTH {
            let reference = resolved["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
            match reference.and_then(|pointer| self.schema.pointer(pointer)) {
                Some(referred) => resolved = referred,
                None => break,
            }
        }
        resolved
    }

    /// The types that it may have; none where it does not say.
    fn types(self) -> BTreeSet<&'a str> {
        let mut types = BTreeSet::new();
        self.add_types(&mut types);
        types
    }

    fn add_types(self, types: &mut BTreeSet<&'a str>) {
        let (own, depth) = (self.resolved(), self.depth + 1);
        match &own["type"] {
            Value::String(name) => drop(types.insert(name.as_str())),
            Value::Array(names) => types.extend(names.iter().filter_map(Value::as_str)),
            _ => {}
        }
        let constant =
            own.get("const").into_iter().chain(own["enum"].as_array().into_iter().flatten());
        for value in constant {
            types.insert(type_of(value));
        }
        for choice in ["anyOf", "oneOf", "allOf"] {
            for own in own[choice].as_array().into_iter().flatten() {
                if depth < MAX_DEPTH {
                    Property { own, depth, ..self }.add_types(types);
                }
            }
        }
    }

    /// What it may be, for readers.
    fn shown_type(self) -> String {
        let own = self.resolved();
        let shown = |value: &Value| one_line(&value.to_string()).into_owned();
        if let Some(values) = own["enum"].as_array() {
            return values.iter().map(shown).collect::<Vec<_>>().join(" | ");
        }
        let mut names: Vec<String> = { self.types() }
            .into_iter()
            .filter(|name| *name != "null")
            .map(|name| match name {
                "array" => match self.items() {
                    Some(items) => format!("list of {}", items.shown_type()),
                    None => "list".into(),
                },
                name => one_line(name).into_owned(),
            })
            .collect();
        if names.is_empty() {
            names.push("any value".into());
        }
        let mut text = names.join(" | ");
        if let Some(format) = own["format"].as_str().filter(|_| text == "string") {
            text = one_line(format).into_owned();
        }
        for (key, word) in [("minimum", "from"), ("maximum", "to")] {
            if let Some(bound) = own.get(key) {
                text.push_str(&format!(" {word} {}", shown(bound)));
            }
        }
        text
    }
}

/// One value of these types.
fn one(value: &str, types: &BTreeSet<&str>) -> Value {
    let text = || Value::String(value.into());
    let parsed = serde_json::from_str::<Value>(value).ok();
    match parsed {
        // What may be text is text.
        _ if types.contains("string") => text(),
        Some(Value::String(_)) | None => text(),
        Some(parsed) => parsed,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// An argument of a tool, for readers.
pub(crate) struct ArgumentHelp {
    pub(crate) name: String,
    /// What it may be, and whether it is needed.
    pub(crate) values: String,
    pub(crate) description: String,
}

/// The arguments that a schema describes, in its order: those that are needed first.
pub(crate) fn rows(schema: &str) -> Vec<ArgumentHelp> {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut rows = Vec::new();
    for (name, own) in schema["properties"].as_object().into_iter().flatten() {
        let property = Property { schema: &schema, own, depth: 0 };
        let is_required = required.contains(&name.as_str());
        let mut values = property.shown_type();
        match (own.get("default"), is_required) {
            (Some(default), _) if !default.is_null() => {
                values.push_str(&format!(", default {}", one_line(&default.to_string())));
            }
            (_, true) => values.push_str(", required"),
            _ => {}
        }
        let description = own["description"].as_str().unwrap_or_default();
        let description = one_line(description).into_owned();
        let name = one_line(name).into_owned();
        rows.push((!is_required, ArgumentHelp { name, values, description }));
    }
    rows.sort_by_key(|(is_optional, _)| *is_optional);
    rows.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(words: &[&str]) -> Result<RawArguments, Error> {
        RawArguments::parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn schema() -> String {
        json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "Whom." },
                "times": { "type": "integer", "minimum": 1, "maximum": 9, "default": 1 },
                "loud": { "type": "boolean" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "sizes": { "type": "array", "items": { "type": "number" } },
                "point": { "$ref": "#/$defs/Point" },
                "mode": { "enum": ["a", "b"] },
                "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                "any": {},
                "day": { "type": "string", "format": "date" },
            },
            "required": ["name"],
            "$defs": { "Point": { "type": "object" } },
        })
        .to_string()
    }

    #[test]
    fn values_become_what_the_schema_says() {
        let check = |words: &[&str], expected: Value| {
            let arguments = parse(words).unwrap();
            assert_eq!(*arguments.for_schema(Some(&schema())), expected, "{words:?}");
        };
        check(&["name=Ada"], json!({ "name": "Ada" }));
        check(&["name=42"], json!({ "name": "42" }));
        check(&["name=a=b"], json!({ "name": "a=b" }));
        check(&["name="], json!({ "name": "" }));
        check(&["times=3", "loud=true"], json!({ "times": 3, "loud": true }));
        // What is no number is left for the schema to refuse.
        check(&["times=three"], json!({ "times": "three" }));
        check(&["tags=1"], json!({ "tags": ["1"] }));
        check(&["tags=a", "tags=b"], json!({ "tags": ["a", "b"] }));
        check(&["tags=[\"a\"]"], json!({ "tags": ["a"] }));
        check(&["sizes=1", "sizes=2.5"], json!({ "sizes": [1, 2.5] }));
        check(&["point={\"x\": 1}"], json!({ "point": { "x": 1 } }));
        check(&["mode=a"], json!({ "mode": "a" }));
        check(&["note=5"], json!({ "note": "5" }));
        check(&["any=5", "other=x"], json!({ "any": 5, "other": "x" }));
        check(&["{\"name\": 1}"], json!({ "name": 1 }));
        check(&[], json!({}));
    }

    #[test]
    fn without_a_schema_json_is_json() {
        let check = |words: &[&str], expected: Value| {
            assert_eq!(*parse(words).unwrap().for_schema(None), expected, "{words:?}");
        };
        check(&["n=1", "t=x", "t=y", "q=\"x\""], json!({ "n": 1, "t": ["x", "y"], "q": "\"x\"" }));
    }

    #[test]
    fn what_is_neither_is_refused() {
        let check = |words: &[&str], expected: &str| {
            let error = parse(words).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&["Ada"], "\"Ada\" is neither KEY=VALUE nor a JSON object");
        check(&["=x"], "\"=x\" is neither");
        check(&["{\"a\": 1}", "b=2"], "is neither");
        check(&["{\"a\": "], "not JSON");
    }

    #[test]
    fn arguments_are_listed() {
        let rows = rows(&schema());
        let shown: Vec<String> = { rows.iter() }
            .map(|row| format!("{}: {}; {}", row.name, row.values, row.description))
            .collect();
        assert_eq!(shown[0], "name: string, required; Whom.");
        for expected in [
            "times: integer from 1 to 9, default 1; ",
            "tags: list of string; ",
            "mode: \"a\" | \"b\"; ",
            "note: string; ",
            "any: any value; ",
            "day: date; ",
            "point: object; ",
        ] {
            assert!(shown.iter().any(|row| row == expected), "{expected}: {shown:?}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_has_an_end() {
        let schema = json!({
            "properties": { "a": { "$ref": "#/properties/a" }, "b": { "items": { "$ref": "#/properties/b" }, "type": "array" } }
        });
        assert_eq!(rows(&schema.to_string()).len(), 2);
    }
}
