//! Forms and pages in MCP's form: `elicitation/create`, and its answers.

use serde_json::{Map, Value, json};
use tenon_host::types::{FormAnswer, FormRequest, UrlAnswer, UrlRequest};

/// The parameters of a form.
pub(crate) fn params(FormRequest { message, schema, extra }: FormRequest) -> Value {
    let mut params = extra;
    params.insert("message".into(), message.into());
    params.insert("requestedSchema".into(), flat_schema(schema));
    params.into()
}

/// The parameters of a page.
pub(crate) fn page_params(UrlRequest { message, url, id, extra }: UrlRequest) -> Value {
    let mut params = extra;
    params.insert("mode".into(), "url".into());
    params.insert("message".into(), message.into());
    params.insert("url".into(), url.into());
    if let Some(id) = id {
        params.insert("elicitationId".into(), id.into());
    }
    params.into()
}

/// A schema as clients take it: flat members of one type. Languages write a member that may be missing as one that may
/// be null; here it is one that is not required.
fn flat_schema(mut schema: Value) -> Value {
    let Some(form) = schema.as_object_mut() else { return schema };
    form.entry("type").or_insert_with(|| "object".into());
    let properties = form.entry("properties").or_insert_with(|| json!({}));
    let mut optional = Vec::new();
    for (name, property) in properties.as_object_mut().into_iter().flatten() {
        if without_null(property) {
            optional.push(name.clone());
        }
    }
    if let Some(Value::Array(required)) = form.get_mut("required") {
        required
            .retain(|name| name.as_str().is_none_or(|name| !optional.iter().any(|n| n == name)));
    }
    schema
}

/// Takes `null` off the types of a member. Gives whether it was there.
fn without_null(property: &mut Value) -> bool {
    let Some(members) = property.as_object_mut() else { return false };
    let mut was_nullable = false;
    if let Some(Value::Array(types)) = members.get_mut("type") {
        let before = types.len();
        types.retain(|kind| kind != "null");
        was_nullable = types.len() < before;
        if let [one] = &types[..] {
            let one = one.clone();
            members.insert("type".into(), one);
        }
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(choices)) = members.get_mut(keyword) else { continue };
        let before = choices.len();
        choices.retain(|choice| choice["type"] != "null");
        was_nullable |= choices.len() < before;
        if let ([Value::Object(only)], true) = (&choices[..], choices.len() < before) {
            let only = only.clone();
            members.remove(keyword);
            members.extend(only);
        }
    }
    if was_nullable && members.get("default") == Some(&Value::Null) {
        members.remove("default");
    }
    was_nullable
}

/// Reads the answer to a form: its content has the members of the form.
pub(crate) fn read_answer(schema: &Value, answer: &Value) -> Result<FormAnswer, String> {
    match action(answer)? {
        UrlAnswer::Declined => Ok(FormAnswer::Declined),
        UrlAnswer::Cancelled => Ok(FormAnswer::Cancelled),
        UrlAnswer::Accepted => {
            let content = match answer.get("content") {
                None | Some(Value::Null) => Map::new(),
                Some(Value::Object(content)) => content.clone(),
                Some(_) => return Err("`content` is not an object".into()),
            };
            check(schema, &content)?;
            Ok(FormAnswer::Accepted(content))
        }
    }
}

/// Reads the answer to a page.
pub(crate) fn read_page_answer(answer: &Value) -> Result<UrlAnswer, String> {
    action(answer)
}

fn action(answer: &Value) -> Result<UrlAnswer, String> {
    match answer["action"].as_str() {
        Some("accept") => Ok(UrlAnswer::Accepted),
        Some("decline") => Ok(UrlAnswer::Declined),
        Some("cancel") => Ok(UrlAnswer::Cancelled),
        _ => Err("`action` is accept, decline or cancel".into()),
    }
}

/// Checks what was filled in against the form: what is required is there, and each value has the type of its member.
fn check(schema: &Value, content: &Map<String, Value>) -> Result<(), String> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if content.get(name).is_none_or(Value::is_null) {
            return Err(format!("{name:?} is missing"));
        }
    }
    for (name, value) in content {
        let member = &schema["properties"][name.as_str()];
        let fits = match member["type"].as_str() {
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Some("number") => value.is_number(),
            Some("array") => value.is_array(),
            _ => true,
        };
        let is_choice = |choices: &Vec<Value>| choices.contains(value);
        if !fits || !member["enum"].as_array().is_none_or(is_choice) {
            return Err(format!("{name:?} is not what the form asks for"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_may_be_null_is_one_that_may_be_missing() {
        let check = |schema: Value, expected: Value| assert_eq!(flat_schema(schema), expected);
        check(
            json!({ "type": "object", "required": ["a", "b", "c"], "properties": {
                "a": { "type": "string", "title": "A" },
                "b": { "type": ["string", "null"], "default": null, "format": "email" },
                "c": { "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "null" }] },
            } }),
            json!({ "type": "object", "required": ["a"], "properties": {
                "a": { "type": "string", "title": "A" },
                "b": { "type": "string", "format": "email" },
                "c": { "type": "integer", "minimum": 1 },
            } }),
        );
        check(json!({}), json!({ "type": "object", "properties": {} }));
        let choices = json!({ "type": "object", "properties": {
            "x": { "type": "string", "oneOf": [{ "const": "a", "title": "A" }] },
        } });
        check(choices.clone(), choices);
    }

    #[test]
    fn an_answer_has_what_the_form_asks_for() {
        let schema = json!({ "required": ["a"], "properties": {
            "a": { "type": "string", "enum": ["x", "y"] }, "n": { "type": "integer" },
        } });
        let check = |answer: Value, expected: Result<FormAnswer, &str>| {
            let read = read_answer(&schema, &answer);
            assert_eq!(read, expected.map_err(str::to_string), "{answer}");
        };
        let accept = |content: Value| json!({ "action": "accept", "content": content });
        check(accept(json!({ "a": "x" })), Ok(FormAnswer::accept([("a", "x")])));
        check(json!({ "action": "decline" }), Ok(FormAnswer::Declined));
        check(json!({ "action": "cancel", "content": null }), Ok(FormAnswer::Cancelled));
        check(json!({ "action": "accept" }), Err("\"a\" is missing"));
        check(accept(json!({ "a": null })), Err("\"a\" is missing"));
        check(accept(json!({ "a": "z" })), Err("\"a\" is not what the form asks for"));
        check(accept(json!({ "a": 1 })), Err("\"a\" is not what the form asks for"));
        check(accept(json!({ "a": "x", "n": 1.5 })), Err("\"n\" is not what the form asks for"));
        check(accept(json!([])), Err("`content` is not an object"));
        for wrong in [json!(3), json!({}), json!({ "action": "yes" }), json!(null)] {
            check(wrong, Err("`action` is accept, decline or cancel"));
        }
    }

    #[test]
    fn what_the_plugin_adds_goes_along() {
        let mut form = FormRequest::new("m", json!({ "type": "object" }));
        form.extra.insert("x".into(), 1.into());
        let expected = json!({ "x": 1, "message": "m", "requestedSchema": { "type": "object", "properties": {} } });
        assert_eq!(params(form), expected);
        let mut page = UrlRequest::new("m", "https://a.com");
        page.id = Some("7".into());
        let expected =
            json!({ "mode": "url", "message": "m", "url": "https://a.com", "elicitationId": "7" });
        assert_eq!(page_params(page), expected);
    }
}
