//! Models send `null` for arguments that they leave out. Where a tool does not take it, and does not need
//! the argument either, the argument is left out.

use serde_json::Value;
use tenon_config::limits::Limits;

use super::{NullViolations, Schema, SchemaSandbox};

/// Leaves out members that are null, where the schema takes no null and does not require them, at the
/// top and in objects within. Says whether that was told at once; else [`leave_out_confined`] tells it.
pub(crate) fn leave_out(schema: &Schema, arguments: &mut Value) -> bool {
    if !has_null_member(arguments) {
        return true;
    }
    let Some(found) = schema.nulls(arguments) else { return false };
    let Some(rest) = CleanedArguments::of(arguments, found) else { return true };
    let Some(found) = schema.nulls(&rest.value) else { return false };
    *arguments = rest.with_required(found);
    true
}

/// The same for a schema that may cost any amount. Where it costs too much, nothing is left out.
pub(crate) async fn leave_out_confined(
    sandbox: &SchemaSandbox,
    schema: &str,
    limits: &Limits,
    arguments: &mut Value,
) {
    let Ok(found) = sandbox.nulls(schema, arguments, limits).await else { return };
    let Some(rest) = CleanedArguments::of(arguments, found) else { return };
    let Ok(found) = sandbox.nulls(schema, &rest.value, limits).await else { return };
    *arguments = rest.with_required(found);
}

/// Arguments without the nulls that are not taken.
struct CleanedArguments {
    value: Value,
    /// Where those were.
    removed: Vec<MemberPath>,
}

impl CleanedArguments {
    /// Nothing where that is all of the arguments.
    fn of(arguments: &Value, found: NullViolations) -> Option<Self> {
        let mut value = arguments.clone();
        let refused = found.refused.iter().filter_map(|pointer| MemberPath::of(pointer));
        let removed: Vec<MemberPath> =
            refused.filter(|place| place.remove_from(&mut value)).collect();
        (!removed.is_empty()).then_some(Self { value, removed })
    }

    /// With the nulls that turn out to be required: what is wrong with them is for the caller to hear.
    fn with_required(self, found: NullViolations) -> Value {
        let Self { mut value, removed } = self;
        let is_missed = |place: &&MemberPath| {
            let mut missing = found.missing.iter();
            missing.any(|[object, member]| *object == place.object && *member == place.member)
        };
        removed.iter().filter(is_missed).for_each(|place| place.put_null_into(&mut value));
        value
    }
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
struct MemberPath {
    /// The object, as a JSON Pointer.
    object: String,
    member: String,
}

impl MemberPath {
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
    use crate::runtime::schema::fuzz::SANDBOX;
    use crate::runtime::schema::{compile, compile_own};
    use serde_json::json;

    #[tokio::test]
    async fn null_is_left_out_where_it_is_not_taken_and_nothing_is_missed() {
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
        let text = schema.to_string();
        let schema = compile_own(&text);
        let check = async |mut given: Value, expected: Value| {
            let mut confined = given.clone();
            assert!(leave_out(&schema, &mut given));
            assert_eq!(given, expected);
            leave_out_confined(&SANDBOX, &text, &Limits::default(), &mut confined).await;
            assert_eq!(confined, expected, "in the sandbox");
        };
        let same = async |value: Value| check(value.clone(), value).await;
        let needed = || json!({ "needed": "n" });
        for name in ["text", "choice", "either", "referred", "a/b~c", "within", "list"] {
            check(json!({ "needed": "n", name: null }), needed()).await;
        }
        check(
            json!({ "needed": "n", "text": null, "nullable": null, "any": null, "choice": null }),
            json!({ "needed": "n", "nullable": null, "any": null }),
        )
        .await;
        check(
            json!({ "needed": "n", "within": { "x": null, "y": 1 } }),
            json!({ "needed": "n", "within": { "y": 1 } }),
        )
        .await;
        // What is required is missed, and what is unknown or in a list is wrong as it is.
        same(json!({ "needed": null })).await;
        check(json!({ "needed": null, "text": null }), json!({ "needed": null })).await;
        same(json!({ "needed": "n", "within": { "y": null } })).await;
        same(json!({ "needed": "n", "unknown": null })).await;
        same(json!({ "needed": "n", "list": [null] })).await;
        same(json!({ "needed": 3 })).await;
        same(json!(null)).await;
        same(json!([null])).await;
    }

    #[tokio::test]
    async fn a_schema_without_a_bound_says_it_in_the_sandbox() {
        // A pattern that looks ahead may backtrack.
        let schema = json!({
            "type": "object",
            "properties": {
                "needed": { "type": "string", "pattern": "^(?!x)" },
                "text": { "type": "string" },
            },
            "required": ["needed"],
        });
        let text = schema.to_string();
        let compiled = compile(vec![text.clone()], &SANDBOX, &Limits::default()).await.unwrap();
        let schema = compiled.into_iter().next().unwrap().expect("it can be used").schema;
        let mut given = json!({ "needed": "n", "text": null });
        assert!(!leave_out(&schema, &mut given));
        leave_out_confined(&SANDBOX, &text, &Limits::default(), &mut given).await;
        assert_eq!(given, json!({ "needed": "n" }));
    }
}
