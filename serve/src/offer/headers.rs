//! Arguments that a modern request over HTTP repeats in headers, so that what stands between client and server can see
//! them: properties of a tool's input schema with `x-mcp-header`. A header that says something else than the body is
//! refused, so that nobody is shown one call and another one is made.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What marks a property.
const MARK: &str = "x-mcp-header";

/// What the names of the headers begin with.
pub(crate) const PREFIX: &str = "mcp-param-";

/// The greatest integer that every reader of JSON takes for what it is.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// An argument that goes into a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderArgument {
    /// The name of the header, in lower case.
    pub(crate) header: String,
    /// Where the argument stands: the names of properties, from the outermost on.
    path: Vec<String>,
}

impl HeaderArgument {
    /// Finds what an input schema marks. A schema with a mark that is wrong is given back without any, since clients
    /// would leave out its tool.
    pub(crate) fn take(schema: &str) -> (Vec<Self>, Option<String>) {
        // Nearly all have none.
        if !schema.contains(MARK) {
            return (Vec::new(), None);
        }
        let Ok(mut tree) = serde_json::from_str::<Value>(schema) else { return (Vec::new(), None) };
        let mut found = Vec::new();
        let mut is_good = collect(&tree, &mut Vec::new(), &mut found);
        let mut names = BTreeSet::new();
        is_good &= found.iter().all(|mark: &Self| names.insert(mark.header.clone()));
        is_good &= count(&tree) == found.len();
        if is_good {
            return (found, None);
        }
        strip(&mut tree);
        (Vec::new(), Some(tree.to_string()))
    }

    /// Checks that the header says what the arguments do.
    pub(crate) fn check(&self, arguments: &Value, header: Option<&str>) -> Result<(), String> {
        let mut value = Some(arguments);
        for name in &self.path {
            value = value.and_then(|value| value.get(name));
        }
        let value = value.unwrap_or(&Value::Null);
        let name = &self.header;
        let matches = match (value, header) {
            (Value::Null, None) => true,
            (Value::Null, Some(_)) => return Err(format!("the header {name} has no argument")),
            (_, None) => return Err(format!("the header {name} is missing")),
            (Value::String(text), Some(header)) => text == header,
            (Value::Bool(is), Some(header)) => is.to_string() == header,
            (Value::Number(number), Some(header)) => {
                let given =
                    header.parse::<f64>().ok().filter(|given| given.abs() <= MAX_SAFE_INTEGER);
                given.is_some() && given == number.as_f64()
            }
            // Arguments are checked against the schema later.
            (Value::Array(_) | Value::Object(_), Some(_)) => false,
        };
        match matches {
            true => Ok(()),
            false => Err(format!("the header {name} is not what its argument is")),
        }
    }
}

/// Collects the marks of properties that the arguments lead to. Gives whether all of them are good.
fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<HeaderArgument>) -> bool {
    let Some(Value::Object(properties)) = schema.get("properties") else { return true };
    let mut is_good = true;
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(mark) = property.get(MARK) {
            match mark.as_str().filter(|name| is_token(name) && is_simple(property)) {
                Some(name) => {
                    let header = format!("{PREFIX}{}", name.to_ascii_lowercase());
                    found.push(HeaderArgument { header, path: path.clone() });
                }
                None => is_good = false,
            }
        }
        is_good &= collect(property, path, found);
        path.pop();
    }
    is_good
}

/// Whether a property is a text, an integer or a boolean.
fn is_simple(property: &Value) -> bool {
    let is_kind = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match property.get("type") {
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter(|kind| *kind != "null");
            kinds.next().is_some_and(is_kind) && kinds.next().is_none()
        }
        Some(kind) => is_kind(kind),
        None => false,
    }
}

/// Whether this is what the name of a header may be.
fn is_token(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

/// Keywords whose values may look like anything.
const VALUES: [&str; 4] = ["default", "const", "enum", "examples"];

/// How many marks a schema has anywhere.
fn count(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => {
            members.iter().map(|(keyword, value)| member_count(keyword, value)).sum()
        }
        Value::Array(items) => items.iter().map(count).sum(),
        _ => 0,
    }
}

fn member_count(keyword: &str, value: &Value) -> usize {
    match (keyword, value) {
        (MARK, _) => 1,
        ("properties", Value::Object(properties)) => properties.values().map(count).sum(),
        _ if VALUES.contains(&keyword) => 0,
        _ => count(value),
    }
}

/// Takes all marks away.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.remove(MARK);
            for (keyword, value) in members.iter_mut() {
                match (keyword.as_str(), value) {
                    ("properties", Value::Object(properties)) => strip_each(properties),
                    (keyword, _) if VALUES.contains(&keyword) => {}
                    (_, value) => strip(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn strip_each(properties: &mut Map<String, Value>) {
    properties.values_mut().for_each(strip);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn take(properties: Value) -> (Vec<HeaderArgument>, Option<String>) {
        HeaderArgument::take(&json!({ "type": "object", "properties": properties }).to_string())
    }

    #[test]
    fn a_header_says_what_its_argument_does() {
        let (marks, changed) = take(json!({
            "region": { "type": "string", MARK: "Region" },
            "count": { "type": ["integer", "null"], MARK: "COUNT" },
            "dry": { "type": "boolean", MARK: "Dry" },
            "where": { "type": "object", "properties": { "tenant": { "type": "string", MARK: "T" } } },
            MARK: { "type": "string" },
        }));
        assert_eq!(changed, None);
        let headers: BTreeSet<&str> = marks.iter().map(|mark| mark.header.as_str()).collect();
        let expected = ["mcp-param-count", "mcp-param-dry", "mcp-param-region", "mcp-param-t"];
        assert_eq!(headers, expected.into());
        let check = |header: &str, arguments: Value, given: Option<&str>, is_good: bool| {
            let mark = marks.iter().find(|mark| mark.header == format!("mcp-param-{header}"));
            let checked = mark.unwrap().check(&arguments, given);
            assert_eq!(checked.is_ok(), is_good, "{header} {arguments} {given:?}: {checked:?}");
        };
        check("region", json!({ "region": "eu" }), Some("eu"), true);
        check("region", json!({ "region": "eu" }), Some("EU"), false);
        check("region", json!({ "region": "eu" }), None, false);
        check("region", json!({}), None, true);
        check("region", json!({ "region": null }), None, true);
        check("region", json!({}), Some("eu"), false);
        check("count", json!({ "count": 7 }), Some("7"), true);
        check("count", json!({ "count": 7.0 }), Some("7"), true);
        check("count", json!({ "count": 7 }), Some("7.0"), true);
        check("count", json!({ "count": 7 }), Some("8"), false);
        check("count", json!({ "count": 7 }), Some("seven"), false);
        check("dry", json!({ "dry": true }), Some("true"), true);
        check("dry", json!({ "dry": true }), Some("1"), false);
        check("t", json!({ "where": { "tenant": "a" } }), Some("a"), true);
        check("t", json!({ "where": 3 }), None, true);
        check("region", json!({ "region": {} }), Some("{}"), false);
    }

    #[test]
    fn a_schema_with_a_wrong_mark_has_none() {
        let text = |mark: Value| json!({ "type": "string", MARK: mark });
        for properties in [
            json!({ "a": text(json!("")) }),
            json!({ "a": text(json!("two words")) }),
            json!({ "a": text(json!(3)) }),
            json!({ "a": text(json!("Same")), "b": text(json!("same")) }),
            json!({ "a": { "type": "number", MARK: "A" } }),
            json!({ "a": { MARK: "A" } }),
            json!({ "a": { "type": "array", "items": text(json!("A")) } }),
            json!({ "a": { "anyOf": [text(json!("A"))] }, "b": text(json!("B")) }),
        ] {
            let (marks, changed) = take(properties.clone());
            assert!(marks.is_empty(), "{properties}");
            let changed = changed.unwrap();
            assert!(!changed.contains(MARK) && changed.contains("\"a\""), "{changed}");
        }
        let value = json!({ "a": { "type": "string", "default": { MARK: "x" } } });
        assert_eq!(take(value), (Vec::new(), None));
    }
}
