//! JSON that is kept as text, and objects that are written from such texts.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

/// A JSON value, kept as its text. What it holds was parsed once, so that it can stand in a message as it
/// is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes a text.
    ///
    /// # Errors
    ///
    /// Returns the parser's error where the text is not one JSON value.
    pub fn parse(text: String) -> serde_json::Result<Self> {
        RawValue::from_string(text).map(Self)
    }

    /// The text of the value.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self(to_raw_value(value).expect("a value is JSON"))
    }
}

impl From<&RawValue> for Json {
    fn from(value: &RawValue) -> Self {
        Self(value.to_owned())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

/// The members of an object, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members(Vec<(Cow<'static, str>, Json)>);

impl Members {
    /// No members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member.
    pub fn push(&mut self, name: impl Into<Cow<'static, str>>, value: Json) {
        self.0.push((name.into(), value));
    }

    /// The same members and one more.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.push(name, Json::from(&value.into()));
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl FromIterator<(String, Json)> for Members {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(members: I) -> Self {
        Self(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl From<&Members> for Json {
    fn from(members: &Members) -> Self {
        Self(to_raw_value(members).expect("members are JSON"))
    }
}
