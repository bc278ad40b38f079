//! Says what is wrong with arguments of types whose schemas are constants.
//!
//! It looks at JSON as text: whatever holds any JSON makes a small component half as large again.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{shown_text, with_article};
use crate::Error;
use crate::nearest::suggestion;
use crate::schema::{Constant, Kind, Parameter};

/// What is wrong with arguments that could not be read: what the parameters say, or else the reader.
pub(crate) fn explain(
    what: &str,
    text: &str,
    parameters: &[Parameter],
    error: &serde_json::Error,
) -> Error {
    let problems = match serde_json::from_str::<&RawValue>(text).map(RawValue::get) {
        Ok(value) => match serde_json::from_str::<Members<'_>>(value) {
            Ok(Members(members)) => problems(&members, parameters),
            Err(_) => vec![format!("the value is {} and has to be an object", shown_text(value))],
        },
        Err(_) => Vec::new(),
    };
    let told = if problems.is_empty() { error.to_string() } else { problems.join("; ") };
    Error::invalid_input(format!("{what}: {told}"))
}

fn problems(members: &[(String, &RawValue)], parameters: &[Parameter]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut names = Vec::new();
    for Parameter { name, description, schema } in parameters {
        let Some(Constant { kind, is_required, .. }) = schema else { continue };
        let name = name.trim_matches('"');
        let member = members.iter().find(|(other, _)| other == name);
        names.push((name, member.is_some()));
        match member {
            Some((_, value)) => check(name, value.get(), kind, *is_required, &mut problems),
            None if *is_required => {
                let kind = if kind.is_list { "array" } else { kind.name };
                let about = serde_json::from_str::<String>(description);
                let about = about.map(|about| format!(": {about}")).unwrap_or_default();
                problems.push(format!("`{name}` ({kind}) is missing{about}"));
            }
            None => {}
        }
    }
    let free: Vec<&str> =
        names.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| *name).collect();
    let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    for (name, _) in members.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
        let meant = suggestion(name, if free.is_empty() { &known } else { &free });
        problems.push(format!("there is no `{name}`: {meant}"));
    }
    problems
}

fn check(name: &str, value: &str, kind: &Kind, is_required: bool, problems: &mut Vec<String>) {
    if !is_required && value == "null" {
        return;
    }
    if !kind.is_list {
        return check_one(name, value, kind, is_required, problems);
    }
    match serde_json::from_str::<Vec<&RawValue>>(value) {
        Ok(items) => {
            for (index, item) in items.into_iter().enumerate() {
                check_one(&format!("{name}[{index}]"), item.get(), kind, true, problems);
            }
        }
        Err(_) => problems.push(mismatch(name, value, "array", is_required)),
    }
}

fn check_one(path: &str, value: &str, kind: &Kind, is_required: bool, problems: &mut Vec<String>) {
    if (kind.fits)(value) {
        return;
    }
    let is_whole = kind.name == "integer"
        && value.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    problems.push(match (is_whole, value.starts_with('-')) {
        (true, true) => format!("`{path}` is {value} and has to be at least {}", kind.least),
        (true, false) => format!("`{path}` is {value} and has to be at most {}", kind.most),
        _ => mismatch(path, value, kind.name, is_required),
    });
}

fn mismatch(path: &str, value: &str, kind: &str, is_required: bool) -> String {
    let or_null = if is_required { "" } else { " or a null" };
    format!("`{path}` is {} and has to be {}{or_null}", shown_text(value), with_article(kind))
}

/// The members of an object, as they are written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Deserialize<'a> for Members<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'a> Visitor<'a> for Reader {
            type Value = Members<'a>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Members<'a>, M::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}
