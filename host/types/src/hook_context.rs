//! The context of a hook point on its way along the handlers.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, OnceLock};

use crate::json::written;

/// The context of a hook point: a JSON object. [`hook::context`](crate::hook::context) has the members of each point.
///
/// A clone is cheap: it shares the members until one of both is changed.
///
/// ```
/// use serde_json::json;
/// use tenon_types::HookContext;
///
/// let mut context = HookContext::parse(r#"{"goal":"tidy"}"#)?;
/// assert_eq!(context.text("goal"), Some("tidy"));
/// context.set("steps", json!(3));
/// assert_eq!(context.to_string(), r#"{"goal":"tidy","steps":3}"#);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct HookContext(Arc<Members>);

#[derive(Clone, Default)]
struct Members {
    named: BTreeMap<String, OwnOrSharedValue>,
    /// How long the JSON is, where that was asked.
    text_length: OnceLock<usize>,
}

impl Members {
    fn new(named: BTreeMap<String, OwnOrSharedValue>) -> Self {
        Self { named, text_length: OnceLock::new() }
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        self.named == other.named
    }
}

/// A member. A call's arguments and results may be large: they are shared with the call, and not copied.
#[derive(Clone)]
enum OwnOrSharedValue {
    Own(Value),
    Shared(Arc<Value>),
}

impl OwnOrSharedValue {
    fn value(&self) -> &Value {
        match self {
            Self::Own(value) => value,
            Self::Shared(value) => value,
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Own(value) => value,
            Self::Shared(value) => Arc::unwrap_or_clone(value),
        }
    }
}

impl PartialEq for OwnOrSharedValue {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl HookContext {
    /// Reads JSON.
    ///
    /// # Errors
    ///
    /// If the text is not JSON, or no object.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Map<String, Value>>(json).map(Self::from)
    }

    /// A member.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.named.get(name).map(OwnOrSharedValue::value)
    }

    /// A member that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// Puts a member in.
    pub fn set(&mut self, name: &str, value: Value) {
        self.insert(name, OwnOrSharedValue::Own(value));
    }

    /// Puts a member in that others may have, too.
    pub fn share(&mut self, name: &str, value: Arc<Value>) {
        self.insert(name, OwnOrSharedValue::Shared(value));
    }

    fn insert(&mut self, name: &str, member: OwnOrSharedValue) {
        self.named_mut().insert(name.to_string(), member);
    }

    /// The members, to be changed.
    fn named_mut(&mut self) -> &mut BTreeMap<String, OwnOrSharedValue> {
        let members = Arc::make_mut(&mut self.0);
        members.text_length.take();
        &mut members.named
    }

    /// Takes a member out.
    pub fn remove(&mut self, name: &str) -> Option<Arc<Value>> {
        Some(match self.named_mut().remove(name)? {
            OwnOrSharedValue::Own(value) => value.into(),
            OwnOrSharedValue::Shared(value) => value,
        })
    }

    /// The members with their names, in the order of these.
    pub fn members(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.named.iter().map(|(name, member)| (name, member.value()))
    }

    /// The object. What others share is copied.
    pub fn into_value(mut self) -> Value {
        let members = mem::take(self.named_mut()).into_iter();
        Value::Object(members.map(|(name, member)| (name, member.into_value())).collect())
    }

    /// How long its JSON is, in bytes.
    pub fn text_length(&self) -> usize {
        *self.0.text_length.get_or_init(|| {
            let mut length = ByteCounter(0);
            let written = serde_json::to_writer(&mut length, self);
            written.expect("names are texts, and counting never fails");
            length.0
        })
    }
}

/// Counts what is written.
struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Serialize for HookContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.0.named.len()))?;
        self.members().try_for_each(|(name, value)| object.serialize_entry(name, value))?;
        object.end()
    }
}

/// Its JSON.
impl fmt::Display for HookContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&written(self))
    }
}

impl fmt::Debug for HookContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Map<String, Value>> for HookContext {
    fn from(members: Map<String, Value>) -> Self {
        let members = members.into_iter().map(|(name, value)| (name, OwnOrSharedValue::Own(value)));
        Self(Arc::new(Members::new(members.collect())))
    }
}

impl FromIterator<(String, Arc<Value>)> for HookContext {
    fn from_iter<I: IntoIterator<Item = (String, Arc<Value>)>>(members: I) -> Self {
        let members =
            members.into_iter().map(|(name, value)| (name, OwnOrSharedValue::Shared(value)));
        Self(Arc::new(Members::new(members.collect())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn context(value: Value) -> HookContext {
        HookContext::parse(&value.to_string()).expect("it is an object")
    }

    #[test]
    fn a_clone_does_not_see_what_the_other_changes() {
        let mut one = context(json!({ "a": [1], "b": 2 }));
        let other = one.clone();
        one.set("c", json!(3));
        assert_eq!(one.remove("b").as_deref(), Some(&json!(2)));
        assert_eq!(one.into_value(), json!({ "a": [1], "c": 3 }));
        assert_eq!(other.into_value(), json!({ "a": [1], "b": 2 }));
    }

    #[test]
    fn what_is_shared_is_taken_out_as_it_was_put_in() {
        let large = Arc::new(json!([1, 2, 3]));
        let one: HookContext = [("a".to_string(), large.clone())].into_iter().collect();
        let mut other = one.clone();
        other.share("b", large.clone());
        assert!(Arc::ptr_eq(&other.remove("b").unwrap(), &large));
        assert!(Arc::ptr_eq(&other.remove("a").unwrap(), &large));
        assert_eq!(one.get("a"), Some(&*large));
    }

    #[test]
    fn it_is_as_long_as_its_text() {
        for value in [json!({}), json!({ "a\"": "ü\n", "b": [1.5, null, {}] })] {
            let context = context(value.clone());
            assert_eq!(context.to_string(), value.to_string());
            assert_eq!(context.text_length(), value.to_string().len());
            let mut longer = context.clone();
            longer.set("more", json!("x"));
            assert_eq!(longer.text_length(), longer.to_string().len());
        }
    }

    #[test]
    fn what_is_no_object_is_no_context() {
        let problem = |json| HookContext::parse(json).unwrap_err().to_string();
        assert!(problem("[]").contains("expected a map"), "{}", problem("[]"));
        assert!(problem("{").contains("EOF"), "{}", problem("{"));
    }
}
