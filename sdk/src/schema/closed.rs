//! Objects that have no other members than those that are described.

use serde_json::{Map, Value};

/// Keywords with which a schema says more of the members than `properties` does.
const OPEN: [&str; 10] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
];

/// Allows no other members in the objects of a schema, at any depth. One that is put together of several schemas stays
/// as it is: each of these knows a part of the members alone.
pub(super) fn close(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if members.contains_key("properties")
        && !OPEN.iter().any(|keyword| members.contains_key(*keyword))
    {
        members.insert("additionalProperties".into(), Value::Bool(false));
    }
    for (keyword, part) in members.iter_mut() {
        match (keyword.as_str(), part) {
            ("properties" | "$defs", Value::Object(parts)) => close_all(parts),
            ("items" | "additionalProperties", part) => close(part),
            ("prefixItems", Value::Array(parts)) => parts.iter_mut().for_each(close),
            _ => {}
        }
    }
    if !members.contains_key("properties") {
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(parts)) = members.get_mut(keyword) {
                parts.iter_mut().for_each(close);
            }
        }
    }
}

fn close_all(schemas: &mut Map<String, Value>) {
    schemas.values_mut().for_each(close);
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    struct Stop {
        city: String,
    }

    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    struct Trip {
        stops: Vec<Stop>,
        first: Option<Stop>,
        by_name: BTreeMap<String, Stop>,
        way: Way,
    }

    #[derive(JsonSchema, Deserialize)]
    #[serde(tag = "kind")]
    #[allow(dead_code)]
    enum Way {
        Train { class: u8 },
        Walk,
    }

    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    struct Flattened {
        own: u8,
        #[serde(flatten)]
        stop: Stop,
        #[serde(flatten)]
        more: serde_json::Map<String, Value>,
    }

    #[derive(JsonSchema, Deserialize)]
    #[allow(dead_code)]
    struct FlattenedChoice {
        own: u8,
        #[serde(flatten)]
        way: Way,
    }

    fn schema<T: JsonSchema>() -> Value {
        serde_json::from_str(&super::super::input_schema::<T>()).unwrap()
    }

    #[test]
    fn members_that_are_not_described_are_not_allowed_at_any_depth() {
        let schema = schema::<Trip>();
        let is_closed = |pointer: &str| {
            let part = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} in {schema}"));
            assert_eq!(part["additionalProperties"], json!(false), "{pointer} in {schema}");
        };
        is_closed("");
        is_closed("/$defs/Stop");
        is_closed("/$defs/Way/oneOf/0");
        is_closed("/$defs/Way/oneOf/1");
    }

    #[test]
    fn what_is_put_together_stays_open() {
        assert_ne!(schema::<Flattened>()["additionalProperties"], json!(false));
        assert_ne!(schema::<FlattenedChoice>()["additionalProperties"], json!(false));
        assert!(schema::<FlattenedChoice>()["oneOf"][0].get("additionalProperties").is_none());
    }
}
