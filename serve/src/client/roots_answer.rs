//! The roots of a client, as it answers `roots/list`.

use serde_json::Value;
use tenon_host::types::Root;

/// The most roots that are taken.
const MAX_ROOTS: usize = 1000;

/// Reads a `ListRootsResult`.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn read_answer(answer: &Value) -> Result<Vec<Root>, String> {
    let roots = answer["roots"].as_array().ok_or("`roots` is no list")?;
    if roots.len() > MAX_ROOTS {
        return Err(format!("there are more than {MAX_ROOTS} roots"));
    }
    roots.iter().map(root).collect()
}

fn root(json: &Value) -> Result<Root, String> {
    let mut extra = json.as_object().ok_or("a root is no object")?.clone();
    let Some(Value::String(uri)) = extra.remove("uri") else {
        return Err("the `uri` of a root is no text".into());
    };
    let name = match extra.remove("name") {
        None => None,
        Some(Value::String(name)) => Some(name),
        Some(_) => return Err("the `name` of a root is no text".into()),
    };
    Ok(Root { uri, name, extra })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn roots_are_read_with_what_nobody_knows() {
        let answer = json!({ "roots": [
            { "uri": "file:///a", "name": "a", "_meta": { "x": 1 } }, { "uri": "file:///b" },
        ] });
        let roots = read_answer(&answer).unwrap();
        assert_eq!((&*roots[0].uri, roots[0].name.as_deref()), ("file:///a", Some("a")));
        assert_eq!(Value::Object(roots[0].extra.clone()), json!({ "_meta": { "x": 1 } }));
        assert_eq!(
            roots[1],
            Root { uri: "file:///b".into(), name: None, extra: Default::default() }
        );
        for wrong in [
            json!({}),
            json!({ "roots": {} }),
            json!({ "roots": [3] }),
            json!({ "roots": [{ "name": "a" }] }),
            json!({ "roots": [{ "uri": "a:b", "name": 3 }] }),
            json!({ "roots": vec![json!({ "uri": "a:b" }); 1001] }),
        ] {
            assert!(read_answer(&wrong).is_err(), "{wrong}");
        }
    }
}
