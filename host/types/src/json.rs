//! JSON that was read once.

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::Error;

/// A JSON value, as its text, as a tree, or as both: what it was not made of is made where it is needed first.
/// So the arguments of a call are read once, whoever asks for them, and a plugin's JSON travels with the
/// members in the order and the numbers in the form that the plugin wrote.
///
/// A clone shares the tree.
///
/// ```
/// use serde_json::json;
/// use tenon_types::Json;
///
/// let arguments = Json::from(json!({ "city": "Ulm", "days": 3 }));
/// assert_eq!(arguments.text(), r#"{"city":"Ulm","days":3}"#);
/// let days: u8 = arguments.member("days")?;
/// assert_eq!(days, 3);
/// assert!(Json::parse("{".into()).is_err());
/// # Ok::<_, tenon_types::Error>(())
/// ```
#[derive(Clone)]
pub struct Json {
    /// One of both is there always.
    text: OnceLock<String>,
    value: OnceLock<Arc<Value>>,
}

/// The error for a text that is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: {0}")]
pub struct NotJson(String);

impl Json {
    /// Takes a text that is JSON, as it is.
    ///
    /// # Errors
    ///
    /// What is wrong with a text that is not.
    pub fn parse(text: String) -> Result<Self, NotJson> {
        let _: JsonValidation =
            serde_json::from_str(&text).map_err(|error| NotJson(error.to_string()))?;
        Ok(Self { text: text.into(), value: OnceLock::new() })
    }

    /// The same, and a text that is not JSON as the string that it is.
    pub fn parse_or_text(text: String) -> Self {
        match serde_json::from_str::<JsonValidation>(&text) {
            Ok(_) => Self { text: text.into(), value: OnceLock::new() },
            Err(_) => Value::String(text).into(),
        }
    }

    /// Takes the text of a tree, which is not copied.
    pub fn write(value: &Value) -> Self {
        Self { text: written(value).into(), value: OnceLock::new() }
    }

    /// The text. It has no white space where it was made of a tree.
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| written(self.value()))
    }

    /// The text, for whoever keeps it.
    pub fn into_text(self) -> String {
        match self.text.into_inner() {
            Some(text) => text,
            None => self.value.get().map(|value| written(&**value)).unwrap_or_default(),
        }
    }

    /// The tree.
    pub fn value(&self) -> &Value {
        self.shared_value()
    }

    /// The tree, to be shared.
    pub fn shared_value(&self) -> &Arc<Value> {
        // A text was checked when this was made.
        let read = |text: &String| Arc::new(serde_json::from_str(text).unwrap_or_default());
        self.value.get_or_init(|| self.text.get().map(read).unwrap_or_default())
    }

    /// The tree, to be changed. It is copied if others share it.
    pub fn value_mut(&mut self) -> &mut Value {
        self.shared_value();
        self.text.take();
        // It was made above where it was not there.
        self.value.get_mut().map(Arc::make_mut).expect("it was made")
    }

    /// The tree, for whoever keeps it. It is copied if others share it.
    pub fn into_value(self) -> Value {
        self.shared_value();
        self.value.into_inner().map(Arc::unwrap_or_clone).unwrap_or_default()
    }

    /// Reads it as a type.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::InvalidInput`](crate::ErrorCode::InvalidInput) where it is no value of the type, with what is wrong.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        T::deserialize(self.value()).map_err(|error| Error::invalid_input(error.to_string()))
    }

    /// Reads a member of an object as a type. One that is missing is read as `null`.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::InvalidInput`](crate::ErrorCode::InvalidInput) where it is no value of the type, with its name and what is wrong.
    pub fn member<'a, T: Deserialize<'a>>(&'a self, name: &str) -> Result<T, Error> {
        T::deserialize(&self.value()[name])
            .map_err(|error| Error::invalid_input(format!("{name}: {error}")))
    }
}

/// JSON that could be made a tree of, and is not: one of a long text is many times as long.
pub(crate) struct JsonValidation {
    pub(crate) object: bool,
}

impl<'de> Deserialize<'de> for JsonValidation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValidJsonVisitor)
    }
}

struct ValidJsonVisitor;

impl<'de> Visitor<'de> for ValidJsonVisitor {
    type Value = JsonValidation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<JsonValidation, E> {
        Ok(JsonValidation { object: false })
    }

    fn visit_bool<E>(self, _: bool) -> Result<JsonValidation, E> {
        Ok(JsonValidation { object: false })
    }

    fn visit_i64<E>(self, _: i64) -> Result<JsonValidation, E> {
        Ok(JsonValidation { object: false })
    }

    fn visit_u64<E>(self, _: u64) -> Result<JsonValidation, E> {
        Ok(JsonValidation { object: false })
    }

    fn visit_f64<E>(self, _: f64) -> Result<JsonValidation, E> {
        Ok(JsonValidation { object: false })
    }

    fn visit_str<E>(self, _: &str) -> Result<JsonValidation, E> {
        Ok(JsonValidation { object: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonValidation, A::Error> {
        while items.next_element::<JsonValidation>()?.is_some() {}
        Ok(JsonValidation { object: false })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<JsonValidation, A::Error> {
        while members.next_entry::<JsonValidation, JsonValidation>()?.is_some() {}
        Ok(JsonValidation { object: true })
    }
}

/// A tree as JSON text. What `Display` writes is the same, piece by piece through a formatter.
pub(crate) fn written(tree: &impl Serialize) -> String {
    serde_json::to_string(tree).expect("the keys of a tree are texts")
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Arc::new(value).into()
    }
}

impl From<Arc<Value>> for Json {
    fn from(value: Arc<Value>) -> Self {
        Self { text: OnceLock::new(), value: value.into() }
    }
}

impl From<Json> for String {
    fn from(json: Json) -> Self {
        json.into_text()
    }
}

impl Default for Json {
    /// `null`
    fn default() -> Self {
        Value::Null.into()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl PartialEq for Json {
    /// Whether both are the same value, in whatever form.
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.text.get() {
            Some(text) => {
                let raw: &RawValue =
                    serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
            None => self.value().serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_kept_as_it_was_written() {
        let text = r#"{ "b": 1.50, "a": 12345678901234567890123 }"#;
        let json = Json::parse(text.into()).unwrap();
        assert_eq!(json.value()["b"], 1.5);
        assert_eq!(json.text(), text);
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        assert_eq!(json.into_text(), text);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "{}{}", "nothing", "[1,]", "\u{feff}{}"] {
            assert!(Json::parse(text.into()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_change_of_the_tree_changes_the_text_and_no_clone() {
        let mut json = Json::parse(r#"{ "a": 1 }"#.into()).unwrap();
        let before = json.clone();
        json.value_mut()["a"] = 2.into();
        assert_eq!(json.text(), r#"{"a":2}"#);
        let clone = json.clone();
        json.value_mut()["a"] = 3.into();
        assert_eq!(
            [before.text(), clone.text(), json.text()],
            [r#"{ "a": 1 }"#, r#"{"a":2}"#, r#"{"a":3}"#]
        );
    }

    #[test]
    fn clones_share_the_tree() {
        let json = Json::from(json!({ "a": [1, 2] }));
        assert!(std::ptr::eq(json.value(), json.clone().value()));
    }

    #[test]
    fn what_is_read_as_another_type_is_named() {
        let json = Json::from(json!({ "n": "x" }));
        let check = |error: Error, expected: &str| {
            assert_eq!(error, Error::invalid_input(expected));
        };
        check(json.member::<u8>("n").unwrap_err(), "n: invalid type: string \"x\", expected u8");
        check(json.read::<u8>().unwrap_err(), "invalid type: map, expected u8");
        assert_eq!(json.member::<Option<u8>>("other"), Ok(None));
    }
}
