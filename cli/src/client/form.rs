//! The forms that servers have their user fill in: the flat JSON Schemas of MCP's `elicitation/create`, with
//! defaults (SEP-1034) and the shapes of choices (SEP-1330).

use serde_json::{Map, Value, json};
use tenon_host::types::text::one_line;

/// One member of a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(super) name: String,
    title: Option<String>,
    description: Option<String>,
    required: bool,
    default: Option<Value>,
    kind: FieldKind,
}

#[derive(Debug, Clone, PartialEq)]
enum FieldKind {
    Text {
        format: Option<String>,
        min: Option<u64>,
        max: Option<u64>,
    },
    Number {
        integer: bool,
        min: Option<f64>,
        max: Option<f64>,
    },
    Boolean,
    /// One of several values, each with its title.
    Choice(Vec<(String, String)>),
    /// Any number of them.
    Choices {
        options: Vec<(String, String)>,
        min: Option<u64>,
        max: Option<u64>,
    },
}

/// The members of a form, first those that have to be answered.
///
/// # Errors
///
/// Where it is no form.
pub(crate) fn fields(schema: &Value) -> Result<Vec<Field>, String> {
    let Value::Object(properties) = &schema["properties"] else {
        return Err("the form has no `properties`".into());
    };
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut fields = properties
        .iter()
        .map(|(name, schema)| {
            let text = |key: &str| schema[key].as_str().map(str::to_string);
            Ok(Field {
                name: name.clone(),
                title: text("title"),
                description: text("description"),
                required: required.iter().any(|of| of == name),
                default: schema.get("default").cloned(),
                kind: kind(schema).ok_or_else(|| {
                    format!("the member {name:?} of the form is of a kind that forms do not have")
                })?,
            })
        })
        .collect::<Result<Vec<_>, String>>()?;
    fields.sort_by_key(|field: &Field| !field.required);
    Ok(fields)
}

fn kind(schema: &Value) -> Option<FieldKind> {
    let length = |key: &str| schema[key].as_u64();
    Some(match schema["type"].as_str()? {
        "string" => match options(schema) {
            Some(options) => FieldKind::Choice(options),
            None => FieldKind::Text {
                format: schema["format"].as_str().map(str::to_string),
                min: length("minLength"),
                max: length("maxLength"),
            },
        },
        number @ ("number" | "integer") => FieldKind::Number {
            integer: number == "integer",
            min: schema["minimum"].as_f64(),
            max: schema["maximum"].as_f64(),
        },
        "boolean" => FieldKind::Boolean,
        "array" => FieldKind::Choices {
            options: options(&schema["items"])?,
            min: length("minItems"),
            max: length("maxItems"),
        },
        _ => return None,
    })
}

/// The values that can be chosen, each with its title.
fn options(schema: &Value) -> Option<Vec<(String, String)>> {
    if let Some(values) = schema["enum"].as_array() {
        let titles = schema["enumNames"].as_array().map(Vec::as_slice).unwrap_or_default();
        let option = |(place, value): (usize, &Value)| {
            let value = value.as_str()?.to_string();
            let title = titles.get(place).and_then(Value::as_str).unwrap_or(&value).to_string();
            Some((value, title))
        };
        return values.iter().enumerate().map(option).collect();
    }
    let titled = schema["oneOf"].as_array().or(schema["anyOf"].as_array())?;
    let option = |option: &Value| {
        let value = option["const"].as_str()?.to_string();
        let title = option["title"].as_str().unwrap_or(&value).to_string();
        Some((value, title))
    };
    titled.iter().map(option).collect()
}

/// A member that was answered and that the form does not have, if there is one.
pub(crate) fn unknown<'a>(fields: &[Field], given: &'a Map<String, Value>) -> Option<&'a String> {
    given.keys().find(|name| fields.iter().all(|field| field.name != **name))
}

/// A form that was filled in: what was given, and else defaults.
///
/// # Errors
///
/// Says which member has no value that it can have.
pub(crate) fn filled_in(
    fields: &[Field],
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut content = Map::new();
    for field in fields {
        match given.get(&field.name).or(field.default.as_ref()) {
            Some(value) => {
                let problem = |problem| format!("{:?} of the form {problem}", field.name);
                field.check(value).map_err(problem)?;
                content.insert(field.name.clone(), value.clone());
            }
            None if field.required => {
                return Err(format!("{:?} of the form must be answered", field.name));
            }
            None => {}
        }
    }
    Ok(content)
}

impl Field {
    /// Whether the member can have a value.
    fn check(&self, value: &Value) -> Result<(), String> {
        let of_options = |options: &[(String, String)], value: &Value| {
            let known = options.iter().any(|(option, _)| Some(option.as_str()) == value.as_str());
            match known {
                true => Ok(()),
                false => {
                    let options: Vec<&str> = options.iter().map(|(value, _)| &**value).collect();
                    Err(format!("must be one of {}", options.join(", ")))
                }
            }
        };
        match &self.kind {
            FieldKind::Text { format, min, max } => {
                let text = value.as_str().ok_or("must be a text")?;
                let length = text.chars().count() as u64;
                if min.is_some_and(|min| length < min) || max.is_some_and(|max| length > max) {
                    return Err(format!("must have {} characters", between(*min, *max)));
                }
                match format.as_deref() {
                    Some("email") if !text.contains('@') => {
                        Err("must be an address with `@`".into())
                    }
                    Some("uri") if !text.contains(':') => Err("must be a URI".into()),
                    _ => Ok(()),
                }
            }
            FieldKind::Number { integer, min, max } => {
                let number = value.as_f64().ok_or("must be a number")?;
                if *integer && number.fract() != 0.0 {
                    return Err("must be a whole number".into());
                }
                match min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max) {
                    true => Err(format!("must be {}", between(*min, *max))),
                    false => Ok(()),
                }
            }
            FieldKind::Boolean => match value {
                Value::Bool(_) => Ok(()),
                _ => Err("must be true or false".into()),
            },
            FieldKind::Choice(options) => of_options(options, value),
            FieldKind::Choices { options, min, max } => {
                let values = value.as_array().ok_or("must be a list")?;
                let count = values.len() as u64;
                if min.is_some_and(|min| count < min) || max.is_some_and(|max| count > max) {
                    return Err(format!("must have {} entries", between(*min, *max)));
                }
                values.iter().try_for_each(|value| of_options(options, value))
            }
        }
    }

    /// What somebody means who types this; nothing for an empty line where nothing has to be said.
    pub(super) fn read(&self, line: &str) -> Result<Option<Value>, String> {
        let line = line.trim();
        if line.is_empty() {
            return match (&self.default, self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err("must be answered".into()),
            };
        }
        // A value, its title, or its number in the list.
        let option = |options: &[(String, String)], typed: &str| {
            let by_number =
                typed.parse::<usize>().ok().and_then(|n| options.get(n.checked_sub(1)?));
            let by_name = options.iter().find(|(value, title)| value == typed || title == typed);
            by_name.or(by_number).map_or(json!(typed), |(value, _)| json!(value))
        };
        let value = match &self.kind {
            FieldKind::Text { .. } => json!(line),
            FieldKind::Number { integer: true, .. } => {
                line.parse::<i64>().map_or(json!(line), |n| json!(n))
            }
            FieldKind::Number { .. } => line.parse::<f64>().map_or(json!(line), |n| json!(n)),
            FieldKind::Boolean => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" => json!(true),
                "n" | "no" | "false" => json!(false),
                _ => json!(line),
            },
            FieldKind::Choice(options) => option(options, line),
            FieldKind::Choices { options, .. } => {
                line.split(',').map(|typed| option(options, typed.trim())).collect()
            }
        };
        self.check(&value).map(|()| Some(value))
    }

    /// What somebody is asked. The server has a say in it.
    pub(super) fn question(&self) -> String {
        let mut text = format!("  {}", one_line(self.title.as_ref().unwrap_or(&self.name)));
        if let Some(description) = &self.description {
            text.push_str(&format!(" ({})", one_line(description)));
        }
        let list = |options: &[(String, String)]| {
            let list = options.iter().enumerate();
            let list = list.map(|(place, (value, title))| match value == title {
                true => format!("\n    {}. {}", place + 1, one_line(value)),
                false => format!("\n    {}. {} ({})", place + 1, one_line(title), one_line(value)),
            });
            list.collect::<String>()
        };
        text.push_str(&match &self.kind {
            FieldKind::Text { format: Some(format), .. } => format!(", {}", one_line(format)),
            FieldKind::Text { .. } => String::new(),
            FieldKind::Number { integer: true, .. } => ", a whole number".into(),
            FieldKind::Number { .. } => ", a number".into(),
            FieldKind::Boolean => ", yes or no".into(),
            FieldKind::Choice(options) => format!(", one of{}\n   ", list(options)),
            FieldKind::Choices { options, .. } => {
                format!(", any of, with commas between them{}\n   ", list(options))
            }
        });
        match &self.default {
            Some(default) => text.push_str(&format!(" [{}]", one_line(&default.to_string()))),
            None if !self.required => text.push_str(" [nothing]"),
            None => {}
        }
        text.push_str(": ");
        text
    }
}

fn between<T: std::fmt::Display>(min: Option<T>, max: Option<T>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("{min} or more"),
        (None, Some(max)) => format!("{max} or less"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Vec<Field> {
        fields(&json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 2 },
                "mail": { "type": "string", "format": "email", "default": "a@b" },
                "age": { "type": "integer", "minimum": 0, "maximum": 150 },
                "ok": { "type": "boolean", "default": true },
                "plain": { "type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"] },
                "titled": { "type": "string", "oneOf": [{ "const": "x", "title": "X!" }] },
                "many": { "type": "array", "items": { "type": "string", "enum": ["p", "q"] }, "maxItems": 1 },
            },
            "required": ["name"],
        }))
        .unwrap()
    }

    #[test]
    fn a_form_is_filled_in_with_what_is_given_and_with_defaults() {
        let check = |given: Value, expected: Result<Value, &str>| {
            let given = given.as_object().unwrap();
            match (filled_in(&form(), given), expected) {
                (Ok(content), Ok(expected)) => assert_eq!(Value::Object(content), expected),
                (Err(problem), Err(expected)) => assert!(problem.contains(expected), "{problem}"),
                (result, _) => panic!("{given:?}: {result:?}"),
            }
        };
        check(json!({ "name": "Ada" }), Ok(json!({ "name": "Ada", "mail": "a@b", "ok": true })));
        check(json!({}), Err("\"name\" of the form must be answered"));
        check(json!({ "name": "A" }), Err("2 or more characters"));
        let with = |key: &str, value: Value| json!({ "name": "Ada", key: value });
        check(with("age", json!(1.5)), Err("a whole number"));
        check(with("age", json!(200)), Err("0 to 150"));
        check(with("mail", json!("x")), Err("`@`"));
        check(with("ok", json!("yes")), Err("true or false"));
        check(with("plain", json!("A")), Err("one of a, b"));
        check(with("many", json!(["p", "q"])), Err("1 or less entries"));
        check(with("many", json!(["z"])), Err("one of p, q"));
    }

    #[test]
    fn what_somebody_types_becomes_a_value() {
        let form = form();
        let check = |name: &str, line: &str, expected: Result<Option<Value>, &str>| {
            let field = form.iter().find(|field| field.name == name).unwrap();
            match (field.read(line), expected) {
                (Ok(value), Ok(expected)) => assert_eq!(value, expected),
                (Err(problem), Err(expected)) => assert!(problem.contains(expected), "{problem}"),
                (result, _) => panic!("{name} {line:?}: {result:?}"),
            }
        };
        check("name", " Ada \n", Ok(Some(json!("Ada"))));
        check("name", "\n", Err("must be answered"));
        check("mail", "", Ok(Some(json!("a@b"))));
        check("age", "36", Ok(Some(json!(36))));
        check("age", "", Ok(None));
        check("age", "old", Err("must be a number"));
        check("ok", "N", Ok(Some(json!(false))));
        check("ok", "perhaps", Err("true or false"));
        for typed in ["b", "B", "2"] {
            check("plain", typed, Ok(Some(json!("b"))));
        }
        check("titled", "X!", Ok(Some(json!("x"))));
        check("many", "2", Ok(Some(json!(["q"]))));
        check("many", "3", Err("one of p, q"));
    }

    #[test]
    fn what_is_no_form_is_said() {
        for schema in [
            json!({}),
            json!({ "properties": { "a": { "type": "object" } } }),
            json!({ "properties": { "a": {} } }),
            json!({ "properties": { "a": { "type": "array", "items": { "type": "number" } } } }),
        ] {
            assert!(fields(&schema).is_err(), "{schema}");
        }
    }
}
