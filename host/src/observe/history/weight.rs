//! How much a JSON value holds, roughly, without writing it out.

use serde_json::Value;

/// What a value counts besides its text, in bytes.
const BYTES_PER_NODE: usize = 8;

/// The weight of a value, in bytes or so.
pub(crate) fn weigh(value: &Value) -> usize {
    BYTES_PER_NODE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weigh).sum(),
            Value::Object(members) => weigh_members(members.iter()),
        }
}

/// The weight of the members of an object.
pub(crate) fn weigh_members<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>) -> usize {
    members.map(|(name, value)| name.len() + weigh(value)).sum()
}
