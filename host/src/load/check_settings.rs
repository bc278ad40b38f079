//! Whether the settings of a plugin are those that its manifest says it takes.

use serde_json::{Map, Value};

use crate::runtime::schema::problems_by;

/// Why a plugin cannot have its settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The schema in the manifest cannot be used.
    #[error("the `settings_schema` in its plugin.toml cannot be used: {0}")]
    Schema(String),
    /// Settings are missing or wrong, each named with its place.
    #[error("its settings are wrong: {}", .0.join("; "))]
    Values(Vec<String>),
}

/// Checks the settings of a plugin against the schema in its manifest.
///
/// # Errors
///
/// What is wrong with them, or with the schema. Values under names of secrets are masked.
///
/// ```
/// use serde_json::json;
/// use tenon_host::{SettingsError, check_settings};
///
/// let schema = json!({ "properties": { "unit": { "enum": ["celsius", "kelvin"] } } });
/// let settings = json!({ "unit": "inch" });
/// let object = |value: serde_json::Value| value.as_object().cloned().unwrap();
/// let error = check_settings(&object(schema), &object(settings)).unwrap_err();
/// assert!(error.to_string().contains("at /unit: \"inch\" is not one of"), "{error}");
/// ```
pub fn check_settings(
    schema: &Map<String, Value>,
    settings: &Map<String, Value>,
) -> Result<(), SettingsError> {
    let (schema, settings) = (Value::from(schema.clone()), Value::from(settings.clone()));
    match problems_by(&schema, &settings).map_err(SettingsError::Schema)? {
        problems if problems.is_empty() => Ok(()),
        problems => Err(SettingsError::Values(problems)),
    }
}

/// Checks the settings that a plugin's manifest itself has. What the schema requires may be for those who use the
/// plugin to set.
///
/// # Errors
///
/// What is wrong with them, or with the schema.
pub fn check_default_settings(
    schema: &Map<String, Value>,
    settings: &Map<String, Value>,
) -> Result<(), SettingsError> {
    let mut schema = schema.clone();
    schema.remove("required");
    check_settings(&schema, settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checked(schema: Value, settings: Value) -> Result<(), SettingsError> {
        let object = |value: Value| value.as_object().cloned().expect("an object");
        check_settings(&object(schema), &object(settings))
    }

    #[test]
    fn settings_are_held_against_their_schema() {
        let schema = json!({
            "properties": { "city": { "type": "string" }, "token": { "minLength": 9 } },
            "required": ["city"],
            "additionalProperties": false,
        });
        let check = |settings: Value, expected: &[&str]| match checked(schema.clone(), settings) {
            Ok(()) => assert!(expected.is_empty(), "{expected:?}"),
            Err(error) => {
                let error = error.to_string();
                assert!(expected.iter().all(|part| error.contains(part)), "{error}");
                assert!(!expected.is_empty() && !error.contains("hunter2"), "{error}");
            }
        };
        check(json!({ "city": "Graz" }), &[]);
        check(json!({}), &["its settings are wrong: \"city\" is a required property"]);
        check(json!({ "city": 1, "sity": 2 }), &["at /city: 1 is not of type", "'sity'"]);
        check(json!({ "city": "Graz", "token": "hunter2" }), &["at /token: "]);
    }

    #[test]
    fn a_schema_that_is_none_is_told() {
        let check = |schema: Value, expected: &str| {
            let error = checked(schema, json!({})).expect_err("it is no schema").to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(
            json!({ "type": "text" }),
            "`settings_schema` in its plugin.toml cannot be used: at /type",
        );
        let elsewhere = "it has `$ref = \"https://example.com/s.json\"`, and is to be one document";
        check(json!({ "$ref": "https://example.com/s.json" }), elsewhere);
        check(json!({ "properties": 3 }), "at /properties: 3 is not of type \"object\"");
        let dialect = "https://json-schema.org/draft/2020-12/schema";
        assert_eq!(checked(json!({ "$schema": dialect }), json!({})), Ok(()));
        check(
            json!({ "$schema": "https://example.com/dialect" }),
            "its `$schema` is not https://json-schema.org/draft/2020-12/schema",
        );
        let regexes = json!({ "properties": { "a": { "format": "regex" } } });
        check(regexes, "could take too long");
    }
}
