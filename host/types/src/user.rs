//! What plugins ask the user, and the answers.

use serde_json::{Map, Value};

/// The member of the `_meta` of a form or page that names it among the questions of its call. Clients are not told of it.
pub const INPUT_KEY: &str = "tenon/inputKey";

/// A question that a form answers. The plugin controls all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct FormRequest {
    /// What is asked and why.
    pub message: String,
    /// The form: the JSON Schema of an object with flat members, as in MCP's `elicitation/create`.
    pub schema: Value,
    /// Members of the MCP form without a name here.
    pub extra: Map<String, Value>,
}

impl FormRequest {
    /// Asks with this message and form.
    pub fn new(message: impl Into<String>, schema: Value) -> Self {
        Self { message: message.into(), schema, extra: Map::new() }
    }

    /// The members of the form whose names are secret, as `is_secret` tells it.
    pub fn secret_member(&self, is_secret: impl Fn(&str) -> bool) -> Option<&str> {
        let members = self.schema.get("properties")?.as_object()?.iter();
        let is_password = |schema: &Value| schema["format"] == "password";
        let mut secret = members.filter(|(name, schema)| is_secret(name) || is_password(schema));
        secret.next().map(|(name, _)| name.as_str())
    }
}

/// What the user made of a form.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer {
    /// The members that were filled in.
    Accepted(Map<String, Value>),
    /// The user does not want to answer.
    Declined,
    /// The user went away, or could not be asked.
    Cancelled,
}

impl FormAnswer {
    /// Fills in these members.
    pub fn accept<K: Into<String>, V: Into<Value>>(
        members: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let members = members.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self::Accepted(members.collect())
    }
}

/// A folder or file that a client's user works with.
#[derive(Debug, Clone, PartialEq)]
pub struct Root {
    /// Where it is.
    pub uri: String,
    /// What it is called.
    pub name: Option<String>,
    /// Members of the MCP form without a name here.
    pub extra: Map<String, Value>,
}

/// A page that the user is to open. The plugin controls all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct UrlRequest {
    /// What the page is for.
    pub message: String,
    /// Its address.
    pub url: String,
    /// The plugin's name for this request: MCP's `elicitationId`.
    pub id: Option<String>,
    /// Members of the MCP form without a name here.
    pub extra: Map<String, Value>,
}

impl UrlRequest {
    /// Asks with this message for this page.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { message: message.into(), url: url.into(), id: None, extra: Map::new() }
    }
}

/// What the user made of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlAnswer {
    /// It was opened. What was done there is not known.
    Accepted,
    /// The user does not want to open it.
    Declined,
    /// The user went away, or could not be asked.
    Cancelled,
}
