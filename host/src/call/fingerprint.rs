//! The fingerprint of a call: the same for calls that are the same.

use fnv::FnvHasher;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::hash::Hasher;

/// FNV-1a 64 of a name and its arguments.
///
/// It finds calls that may be the same; whether they are, only their arguments tell: it takes no
/// effort to make two calls of one fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallFingerprint(u64);

impl CallFingerprint {
    /// The fingerprint of a call. The order of the members of objects makes no difference.
    ///
    /// ```
    /// use serde_json::json;
    /// use tenon_host::CallFingerprint;
    ///
    /// let one = CallFingerprint::of("a__b", &json!({ "x": 1, "y": [true] }));
    /// assert_eq!(one.to_string(), "63a3cfe772a694c2");
    /// assert_ne!(one, CallFingerprint::of("a__b", &json!({ "x": 2, "y": [true] })));
    /// ```
    pub fn of(name: &str, arguments: &Value) -> Self {
        let mut hasher = begin(name);
        write(&mut hasher, arguments);
        Self(hasher.finish())
    }

    /// The same, of an object by its members.
    pub(crate) fn of_members<'a>(
        name: &str,
        members: impl Iterator<Item = (&'a String, &'a Value)>,
    ) -> Self {
        let mut hasher = begin(name);
        write_object(&mut hasher, members);
        Self(hasher.finish())
    }
}

fn begin(name: &str) -> FnvHasher {
    let mut hasher = FnvHasher::default();
    hasher.write(name.as_bytes());
    hasher.write_u8(0);
    hasher
}

/// Writes a value as JSON without white space and with the members of objects in order. Texts stand
/// as they are between quotes: no two values come out the same but by what they contain.
fn write(hasher: &mut FnvHasher, value: &Value) {
    match value {
        Value::Null => hasher.write(b"null"),
        Value::Bool(true) => hasher.write(b"true"),
        Value::Bool(false) => hasher.write(b"false"),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => write_integer(hasher, number),
            (None, Some(number)) => {
                hasher.write_u8(b'-');
                write_integer(hasher, number.unsigned_abs());
            }
            (None, None) => hasher.write(number.to_string().as_bytes()),
        },
        Value::String(text) => write_text(hasher, text),
        Value::Array(items) => {
            hasher.write_u8(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    hasher.write_u8(b',');
                }
                write(hasher, item);
            }
            hasher.write_u8(b']');
        }
        Value::Object(members) => write_object(hasher, members.iter()),
    }
}

fn write_object<'a>(
    hasher: &mut FnvHasher,
    members: impl Iterator<Item = (&'a String, &'a Value)>,
) {
    // As a rule they are in order already; a feature of serde_json can keep another.
    let mut members: Vec<(&String, &Value)> = members.collect();
    if !members.is_sorted_by_key(|(name, _)| *name) {
        members.sort_unstable_by_key(|(name, _)| *name);
    }
    hasher.write_u8(b'{');
    for (i, (name, value)) in members.into_iter().enumerate() {
        if i > 0 {
            hasher.write_u8(b',');
        }
        write_text(hasher, name);
        hasher.write_u8(b':');
        write(hasher, value);
    }
    hasher.write_u8(b'}');
}

fn write_text(hasher: &mut FnvHasher, text: &str) {
    hasher.write_u8(b'"');
    hasher.write(text.as_bytes());
    hasher.write_u8(b'"');
}

fn write_integer(hasher: &mut FnvHasher, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    hasher.write(&digits[start..]);
}

impl fmt::Display for CallFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for CallFingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallFingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_fnv_1a_over_canonical_json() {
        let check = |arguments: Value, canonical: &str| {
            let mut hasher = FnvHasher::default();
            hasher.write(format!("t\0{canonical}").as_bytes());
            assert_eq!(CallFingerprint::of("t", &arguments).0, hasher.finish(), "{canonical}");
        };
        check(json!({}), "{}");
        check(json!({ "b": [1, -2, 0], "a": { "c": null } }), r#"{"a":{"c":null},"b":[1,-2,0]}"#);
        check(
            json!([u64::MAX, i64::MIN, 1.5, true, "é"]),
            r#"[18446744073709551615,-9223372036854775808,1.5,true,"é"]"#,
        );
        let members = json!({ "b": 1, "a": [] });
        let of_members = CallFingerprint::of_members("t", members.as_object().unwrap().iter());
        assert_eq!(of_members, CallFingerprint::of("t", &members));
        // The test vector of the algorithm's authors for the empty text, before anything is in it.
        assert_eq!(FnvHasher::default().finish(), 0xcbf2_9ce4_8422_2325);
    }
}
