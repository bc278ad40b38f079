//! Models send `null` for arguments that they leave out. Where a tool does not take it, and does not need
//! the argument either, the argument is left out.

use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use crate::schema::Schema;

/// The most arguments of a call that are left out.
const MOST: usize = 64;

/// Leaves out members that are null, where the schema takes no null and does not require them, at the
/// top and in objects within. Where telling that would take long, nothing is.
pub(crate) fn leave_out(schema: &Schema, arguments: &mut Value) {
    if !has_null_member(arguments) {
        return;
    }
    let Some(validator) = schema.validator_for(arguments) else { return };
    if validator.is_valid(arguments) {
        return;
    }
    let refused: Vec<Place> = {
        let errors = validator.iter_errors(arguments).take(MOST);
        let nulls = errors.filter(|error| error.instance().is_null());
        nulls.filter_map(|error| Place::of(error.instance_path().as_str())).collect()
    };
    let mut left = arguments.clone();
    let refused: Vec<Place> =
        refused.into_iter().filter(|place| place.remove_from(&mut left)).collect();
    if refused.is_empty() {
        return;
    }
    let mut required = Vec::new();
    for error in validator.iter_errors(&left).take(MOST) {
        if let ValidationErrorKind::Required { property } = error.kind()
            && let Some(property) = property.as_str()
        {
            let object = error.instance_path().as_str().to_string();
            required.push(Place { object, member: property.into() });
        }
    }
    for place in refused.iter().filter(|place| required.contains(place)) {
        // What is wrong with it is for the caller to hear.
        place.put_null_into(&mut left);
    }
    *arguments = left;
}

fn has_null_member(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.values().any(|member| member.is_null() || has_null_member(member))
        }
        Value::Array(items) => items.iter().any(has_null_member),
        _ => false,
    }
}

/// A member of an object within a value.
#[derive(PartialEq, Eq)]
struct Place {
    /// The object, as a JSON Pointer.
    object: String,
    member: String,
}

impl Place {
    fn of(pointer: &str) -> Option<Self> {
        let (object, member) = pointer.rsplit_once('/')?;
        Some(Self { object: object.into(), member: member.replace("~1", "/").replace("~0", "~") })
    }

    /// Whether there was such a member.
    fn remove_from(&self, value: &mut Value) -> bool {
        let object = value.pointer_mut(&self.object).and_then(Value::as_object_mut);
        object.is_some_and(|members| members.remove(&self.member).is_some())
    }

    fn put_null_into(&self, value: &mut Value) {
        if let Some(members) = value.pointer_mut(&self.object).and_then(Value::as_object_mut) {
            members.insert(self.member.clone(), Value::Null);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::compile_own;
    use serde_json::json;

    #[test]
    fn null_is_left_out_where_it_is_not_taken_and_nothing_is_missed() {
        let schema = json!({
            "type": "object",
            "properties": {
                "needed": { "type": "string" },
                "text": { "type": "string" },
                "choice": { "enum": ["a", "b"] },
                "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                "referred": { "$ref": "#/$defs/text" },
                "nullable": { "type": ["string", "null"] },
                "any": {},
                "a/b~c": { "type": "string" },
                "list": { "type": "array", "items": { "type": "integer" } },
                "within": {
                    "type": "object",
                    "properties": { "x": { "type": "integer" }, "y": { "type": "integer" } },
                    "required": ["y"],
                },
            },
            "required": ["needed"],
            "additionalProperties": false,
            "$defs": { "text": { "type": "string" } },
        });
        let schema = compile_own(&schema.to_string());
        let check = |mut given: Value, expected: Value| {
            leave_out(&schema, &mut given);
            assert_eq!(given, expected);
        };
        let same = |value: Value| check(value.clone(), value);
        let needed = || json!({ "needed": "n" });
        for name in ["text", "choice", "either", "referred", "a/b~c", "within", "list"] {
            check(json!({ "needed": "n", name: null }), needed());
        }
        check(
            json!({ "needed": "n", "text": null, "nullable": null, "any": null, "choice": null }),
            json!({ "needed": "n", "nullable": null, "any": null }),
        );
        check(
            json!({ "needed": "n", "within": { "x": null, "y": 1 } }),
            json!({ "needed": "n", "within": { "y": 1 } }),
        );
        // What is required is missed, and what is unknown or in a list is wrong as it is.
        same(json!({ "needed": null }));
        check(json!({ "needed": null, "text": null }), json!({ "needed": null }));
        same(json!({ "needed": "n", "within": { "y": null } }));
        same(json!({ "needed": "n", "unknown": null }));
        same(json!({ "needed": "n", "list": [null] }));
        same(json!({ "needed": 3 }));
        same(json!(null));
        same(json!([null]));
    }
}
