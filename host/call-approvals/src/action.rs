//! Exactly one call, and its digest.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// A call as it would be made. Two that differ in anything are two actions.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// The tool, by the name that callers use.
    pub tool: String,
    /// The plugin.
    pub plugin: String,
    /// What names the plugin's code: a digest of all that it is made of.
    pub code: String,
    /// The digest of the tool's definition.
    pub definition: String,
    /// Whose call it is, if known.
    pub principal: Option<String>,
    /// The arguments, as the plugin would get them.
    pub arguments: Value,
}

impl Action {
    /// The digest of all of it.
    pub fn digest(&self) -> ActionDigest {
        ActionDigest::of(&[self.tool_digest().0.as_slice(), json(&self.arguments).as_bytes()])
    }

    /// The digest of all but the arguments.
    pub(crate) fn tool_digest(&self) -> ActionDigest {
        let Self { tool, plugin, code, definition, principal, arguments: _ } = self;
        let principal = principal.as_ref().map(|principal| format!("={principal}"));
        let parts = [tool, plugin, code, definition, &principal.unwrap_or_default()];
        ActionDigest::of(&parts.map(|part| part.as_bytes()))
    }

    /// The digest of each argument, by its name.
    pub(crate) fn argument_digests(&self) -> impl Iterator<Item = (&String, ActionDigest)> {
        let members = self.arguments.as_object().into_iter().flatten();
        members.map(|(name, value)| (name, ActionDigest::of(&[json(value).as_bytes()])))
    }
}

/// A value as JSON in one spelling: members of objects are in the order of their names.
fn json(value: &Value) -> String {
    value.to_string()
}

/// A SHA-256 of what makes an action.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionDigest(pub(crate) [u8; 32]);

impl ActionDigest {
    /// The digest of parts. Each begins with its length, so that no other parts have it.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

/// As hexadecimal digits.
impl fmt::Display for ActionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ActionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ActionDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ActionDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let pair = |i: usize| text.get(2 * i..2 * i + 2);
        let byte = |i| pair(i).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let mut bytes = [0; 32];
        for (i, place) in bytes.iter_mut().enumerate() {
            *place = byte(i).ok_or_else(|| D::Error::custom("it is no digest"))?;
        }
        match text.len() == 64 {
            true => Ok(Self(bytes)),
            false => Err(D::Error::custom("it is no digest")),
        }
    }
}
