//! Arrays of a server's.

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The most items of an array that are read one by one.
pub const MAX_ITEMS: usize = 100_000;

/// The items of a JSON array. One of more than [`MAX_ITEMS`] is an error: what is kept of each item may be
/// many times as long as the item, and all calls of a server share one memory.
///
/// # Errors
///
/// It is no array, or one of too many items.
pub fn items(json: &str) -> serde_json::Result<Vec<&RawValue>> {
    serde_json::from_str(json).map(|BoundedItems(items)| items)
}

struct BoundedItems<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for BoundedItems<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = BoundedItems<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            if items.len() == MAX_ITEMS {
                return Err(A::Error::custom(format_args!("it has more than {MAX_ITEMS} items")));
            }
            items.push(item);
        }
        Ok(BoundedItems(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_of_too_many_items_is_not_read() {
        let of = |n: usize| format!("[{}1]", "1,".repeat(n - 1));
        assert_eq!(items(&of(MAX_ITEMS)).unwrap().len(), MAX_ITEMS);
        let error = items(&of(MAX_ITEMS + 1)).unwrap_err();
        assert!(error.to_string().starts_with("it has more than 100000 items"), "{error}");
        assert!(items("{}").unwrap_err().to_string().contains("expected an array"));
    }
}
