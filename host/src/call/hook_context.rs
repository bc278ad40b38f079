//! The context of a hook point on its way along the handlers.

use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A JSON object whose members are shared: a call's arguments and results may be large, and are not copied for
/// each handler.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct HookContext(BTreeMap<String, Arc<Value>>);

impl HookContext {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(|value| value.as_str())
    }

    /// Puts a member in, or takes it out where there is no value.
    pub(crate) fn set(&mut self, name: &str, value: Option<Arc<Value>>) {
        match value {
            Some(value) => drop(self.0.insert(name.to_string(), value)),
            None => drop(self.0.remove(name)),
        }
    }

    /// Takes a member out; `null` where there is none.
    pub(crate) fn take(&mut self, name: &str) -> Arc<Value> {
        self.0.remove(name).unwrap_or_default()
    }

    /// Whether a member is nested deeper than so many levels.
    pub(crate) fn is_deeper_than(&self, most: usize) -> bool {
        self.0.values().any(|value| is_deeper_than(value, most))
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().map(|(name, value)| (name, &**value))
    }

    /// The object. What others share is copied.
    pub(crate) fn into_value(self) -> Value {
        let members = self.0.into_iter();
        Value::Object(members.map(|(name, value)| (name, Arc::unwrap_or_clone(value))).collect())
    }
}

impl From<Map<String, Value>> for HookContext {
    fn from(members: Map<String, Value>) -> Self {
        members.into_iter().map(|(name, value)| (name, value.into())).collect()
    }
}

impl FromIterator<(String, Arc<Value>)> for HookContext {
    fn from_iter<I: IntoIterator<Item = (String, Arc<Value>)>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

/// Whether a value is nested deeper than so many levels. It is followed no deeper than that.
fn is_deeper_than(value: &Value, most: usize) -> bool {
    let is_deeper = |inner: &Value| most == 0 || is_deeper_than(inner, most - 1);
    match value {
        Value::Array(items) => items.iter().any(is_deeper) || most == 0,
        Value::Object(members) => members.values().any(is_deeper) || most == 0,
        _ => false,
    }
}
