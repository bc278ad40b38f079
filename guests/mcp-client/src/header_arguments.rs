//! Arguments that go into headers as well, so that what stands between client and server can see
//! them: properties of a tool's input schema with `x-mcp-header`. Only servers elsewhere have them,
//! in the newer era.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What marks a property.
const MARK: &str = "x-mcp-header";

/// The greatest integer that every reader of JSON takes for what it is.
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// An argument that goes into a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderArgument {
    /// The name of the header.
    header: String,
    /// Where the argument stands: the names of properties, from the outermost on.
    path: Vec<String>,
}

impl HeaderArgument {
    /// Finds what an input schema marks.
    ///
    /// # Errors
    ///
    /// Says what is wrong with a mark. A tool that has such a one must not be offered.
    pub fn in_schema(schema: &str) -> Result<Vec<Self>, String> {
        // The common case, without a tree.
        if !schema.contains(MARK) {
            return Ok(Vec::new());
        }
        let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        look_through(&schema, Some(&mut Vec::new()), &mut found)?;
        let mut names = BTreeSet::new();
        match found.iter().find(|mark| !names.insert(mark.header.to_ascii_lowercase())) {
            Some(mark) => Err(format!("two of its arguments go into the header {}", mark.header)),
            None => Ok(found),
        }
    }

    /// The header, and what it says of these arguments: nothing where there is no such one.
    ///
    /// # Errors
    ///
    /// Names an argument that no header can have.
    pub fn header(&self, arguments: &Value) -> Result<Option<(&str, String)>, String> {
        let mut value = arguments;
        for name in &self.path {
            let Some(inner) = value.get(name) else { return Ok(None) };
            value = inner;
        }
        let text = match value {
            Value::Null => return Ok(None),
            Value::String(text) => text.clone(),
            Value::Bool(is) => is.to_string(),
            Value::Number(number) => {
                let whole = number.as_i64().or_else(|| {
                    let number = number.as_f64().filter(|number| number.fract() == 0.0)?;
                    Some(number as i64)
                });
                match whole.filter(|whole| (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(whole)) {
                    Some(whole) => whole.to_string(),
                    None => return Err(self.cannot_have("no integer that a header can have")),
                }
            }
            Value::Array(_) | Value::Object(_) => {
                return Err(self.cannot_have("neither text nor an integer nor a boolean"));
            }
        };
        Ok(Some((&self.header, text)))
    }

    fn cannot_have(&self, what: &str) -> String {
        format!("the argument {:?}, which goes into a header, is {what}", self.path.join("."))
    }
}

/// Looks for marks in a schema. What `path` leads to can be told from the arguments alone; anywhere
/// else there must be none.
fn look_through(
    schema: &Value,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<HeaderArgument>,
) -> Result<(), String> {
    let Value::Object(members) = schema else { return Ok(()) };
    if let Some(mark) = members.get(MARK) {
        let path = path.as_deref().filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| format!("its {MARK} {mark} is at no argument of its own"))?;
        found.push(marked(mark, members, path)?);
    }
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            // Values, which may look like anything.
            ("default" | "const" | "enum" | "examples" | MARK, _) => {}
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    let Some(path) = path.as_deref_mut() else {
                        look_through(property, None, found)?;
                        continue;
                    };
                    path.push(name.clone());
                    look_through(property, Some(path), found)?;
                    path.pop();
                }
            }
            (
                "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                Value::Object(schemas),
            ) => {
                for schema in schemas.values() {
                    look_through(schema, None, found)?;
                }
            }
            (_, Value::Array(schemas)) => {
                for schema in schemas {
                    look_through(schema, None, found)?;
                }
            }
            (_, schema) => look_through(schema, None, found)?,
        }
    }
    Ok(())
}

/// A property that is marked.
fn marked(
    mark: &Value,
    property: &Map<String, Value>,
    path: &[String],
) -> Result<HeaderArgument, String> {
    let name = mark.as_str().filter(|name| is_token(name));
    let name = name.ok_or_else(|| format!("its {MARK} {mark} is no name of a header"))?;
    let is_kind = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    let simple = match property.get("type") {
        // One that may be null has no header then.
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter(|kind| *kind != "null");
            kinds.next().is_some_and(is_kind) && kinds.next().is_none()
        }
        Some(kind) => is_kind(kind),
        None => false,
    };
    if !simple {
        let problem = "is neither text nor an integer nor a boolean";
        return Err(format!(
            "its argument {:?}, which goes into a header, {problem}",
            path.join(".")
        ));
    }
    Ok(HeaderArgument { header: format!("mcp-param-{name}"), path: path.to_vec() })
}

/// Whether this is what the name of a header may be.
fn is_token(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn string(mark: &str) -> Value {
        json!({ "type": "string", MARK: mark })
    }

    /// What the headers of a call say, if the schema is taken.
    fn headers(properties: Value, arguments: Value) -> Result<Vec<(String, String)>, String> {
        let schema = json!({ "type": "object", "properties": properties });
        let marks = HeaderArgument::in_schema(&schema.to_string())?;
        let headers = marks.iter().map(|mark| mark.header(&arguments));
        let headers: Vec<_> = headers.collect::<Result<_, _>>()?;
        Ok(headers.into_iter().flatten().map(|(name, value)| (name.into(), value)).collect())
    }

    fn check(properties: Value, arguments: Value, expected: &[(&str, &str)]) {
        let found = headers(properties, arguments).unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn marked_arguments_go_into_headers_and_others_do_not() {
        let properties = json!({
            "count": { "type": "integer", MARK: "Count" },
            "dry": { "type": ["boolean", "null"], MARK: "Dry-Run" },
            "query": { "type": "string" },
            "region": string("Region"),
            "where": { "type": "object", "properties": { "tenant": string("Tenant") } },
        });
        let arguments = json!({
            "count": -7, "dry": true, "query": "q", "region": "Malm\u{f6}", "where": { "tenant": "a" },
        });
        check(
            properties.clone(),
            arguments,
            &[
                ("mcp-param-Count", "-7"),
                ("mcp-param-Dry-Run", "true"),
                ("mcp-param-Region", "Malm\u{f6}"),
                ("mcp-param-Tenant", "a"),
            ],
        );
        check(properties.clone(), json!({ "dry": null, "where": 3 }), &[]);
        check(properties, json!({ "count": 42.0 }), &[("mcp-param-Count", "42")]);
    }

    #[test]
    fn what_looks_like_a_mark_and_is_none_is_let_be() {
        let named = json!({ MARK: { "type": "string", "default": { MARK: "" } } });
        check(named, json!({ MARK: "x" }), &[]);
    }

    // MCP.md: E15
    #[test]
    fn marks_that_are_wrong_are_named() {
        for (properties, problem) in [
            (json!({ "a": string("") }), "no name of a header"),
            (json!({ "a": string("two words") }), "no name of a header"),
            (json!({ "a": string("a\r\nb") }), "no name of a header"),
            (json!({ "a": { "type": "string", MARK: 3 } }), "no name of a header"),
            (json!({ "a": string("Same"), "b": string("sAME") }), "two of its arguments"),
            (json!({ "a": { "type": "number", MARK: "A" } }), "neither text nor"),
            (json!({ "a": { "type": ["string", "integer"], MARK: "A" } }), "neither text nor"),
            (json!({ "a": { MARK: "A" } }), "neither text nor"),
            (json!({ "a": { "type": "array", "items": string("A") } }), "at no argument"),
            (json!({ "a": { "anyOf": [string("A")] } }), "at no argument"),
            (json!({ "a": { "$defs": { "d": string("A") } } }), "at no argument"),
            (json!({ "a": { "not": { "properties": { "b": string("A") } } } }), "at no argument"),
        ] {
            let error = headers(properties.clone(), json!({})).unwrap_err();
            assert!(error.contains(problem), "{properties}: {error}");
        }
        let root = json!({ "type": "object", MARK: "A" }).to_string();
        assert!(HeaderArgument::in_schema(&root).unwrap_err().contains("at no argument"));
    }

    #[test]
    fn arguments_that_no_header_can_have_are_named() {
        let properties = json!({ "a": { "type": "integer", MARK: "A" } });
        for value in [json!(1.5), json!(1_u64 << 53), json!([1]), json!({})] {
            let error = headers(properties.clone(), json!({ "a": value })).unwrap_err();
            assert!(error.contains("the argument \"a\""), "{error}");
        }
    }
}
