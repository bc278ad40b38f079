//! Choices of texts as one list, which clients and models read more easily than a schema for each.

use serde_json::{Map, Value, json};

/// Makes an `enum` of each `oneOf` whose alternatives are texts. What they say goes into the description.
pub(super) fn join(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(join),
        Value::Object(members) => {
            if let Some((choices, said)) = choices(members) {
                members.remove("oneOf");
                members.insert("type".into(), "string".into());
                members.insert("enum".into(), choices.into());
                describe(members, &said);
            }
            let is_schema = |keyword: &str| !matches!(keyword, "default" | "examples" | "const");
            members.iter_mut().filter(|(name, _)| is_schema(name)).for_each(|(_, part)| join(part));
        }
        _ => {}
    }
}

/// The texts of a choice, and lines on those that are described.
fn choices(schema: &Map<String, Value>) -> Option<(Vec<Value>, Vec<String>)> {
    let (mut choices, mut said) = (Vec::new(), Vec::new());
    for alternative in schema.get("oneOf")?.as_array()? {
        let own = match (alternative.get("const"), alternative.get("enum")) {
            (Some(text), None) => vec![text.clone()],
            (None, Some(texts)) => texts.as_array()?.clone(),
            _ => return None,
        };
        if !own.iter().all(Value::is_string) {
            return None;
        }
        if let (Some(about), [Value::String(name)]) = (alternative.get("description"), &own[..]) {
            said.push(format!("- `{name}`: {}", about.as_str()?));
        }
        choices.extend(own);
    }
    Some((choices, said))
}

fn describe(schema: &mut Map<String, Value>, said: &[String]) {
    if said.is_empty() {
        return;
    }
    let before = schema.get("description").and_then(Value::as_str).map(str::to_string);
    let lines: Vec<String> = before.into_iter().chain(said.iter().cloned()).collect();
    schema.insert("description".into(), json!(lines.join("\n")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::JsonSchema;

    /// How warm.
    #[derive(JsonSchema)]
    #[schemars(rename_all = "kebab-case")]
    #[allow(dead_code)]
    enum Documented {
        /// Degrees by Celsius.
        Celsius,
        /// Degrees by Fahrenheit.
        Fahrenheit,
        VeryCold,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Bare {
        A,
        B,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Mixed {
        /// A.
        A,
        B(u8),
    }

    fn schema<T: JsonSchema>() -> Value {
        serde_json::from_str(&super::super::schema::<T>()).unwrap()
    }

    #[test]
    fn an_enumeration_of_names_is_one_list() {
        assert_eq!(
            schema::<Documented>(),
            json!({
                "type": "string",
                "enum": ["very-cold", "celsius", "fahrenheit"],
                "description": "How warm.\n- `celsius`: Degrees by Celsius.\n\
                                - `fahrenheit`: Degrees by Fahrenheit.",
            })
        );
        assert_eq!(schema::<Bare>(), json!({ "type": "string", "enum": ["A", "B"] }));
        assert!(schema::<Mixed>().get("oneOf").is_some());
    }
}
