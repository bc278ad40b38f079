//! The JSON Schemas of arguments and answers.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// The JSON Schema of `T`.
///
/// It says neither its dialect, which is the contract's, nor a title, which would repeat a Rust name:
/// a model reads all of it, and each component carries what writes it.
#[doc(hidden)]
pub fn schema<T: JsonSchema>() -> String {
    let mut generator = SchemaGenerator::default();
    let mut schema = T::json_schema(&mut generator);
    let definitions = generator.take_definitions(false);
    if !definitions.is_empty() {
        schema.insert("$defs".into(), Value::Object(definitions));
    }
    schema.as_value().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Tree {
        name: String,
        branches: Vec<Tree>,
    }

    #[test]
    fn a_type_within_itself_is_defined_beside_it() {
        let schema: Value = serde_json::from_str(&schema::<Tree>()).unwrap();
        let branches = &schema["properties"]["branches"];
        assert_eq!(branches["items"]["$ref"], "#/$defs/Tree");
        assert_eq!(schema["$defs"]["Tree"]["properties"]["branches"], *branches);
        assert_eq!(schema["type"], "object");
        assert!(schema.get("title").is_none() && schema.get("$schema").is_none());
    }
}
