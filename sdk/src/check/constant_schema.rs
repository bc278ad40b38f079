//! Says what is wrong with arguments of types whose schemas are constants.
//!
//! It looks at JSON as text: whatever holds any JSON makes a small component half as large again.

use super::{shown_text, with_article};
use crate::Error;
use crate::nearest::suggestion;
use crate::schema::{ConstantSchema, Parameter, PrimitiveType};

/// What is wrong with arguments that could not be read: what the parameters say, or else the reader.
pub(crate) fn explain(
    what: &str,
    text: &str,
    parameters: &[Parameter],
    error: &serde_json::Error,
) -> Error {
    let text = text.trim();
    let problems = match parts(text, '{') {
        _ if !error.is_data() => Vec::new(),
        Some(members) => problems(&members, parameters),
        None => vec![format!("the value is {} and has to be an object", shown_text(text))],
    };
    let told = if problems.is_empty() { error.to_string() } else { problems.join("; ") };
    Error::invalid_input(format!("{what}: {told}"))
}

fn problems(members: &[(&str, &str)], parameters: &[Parameter]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut names = Vec::new();
    for Parameter { name, description, schema } in parameters {
        let Some(ConstantSchema { kind, is_required, .. }) = schema else { continue };
        let name = name.trim_matches('"');
        let member = members.iter().find(|(other, _)| *other == name);
        names.push((name, member.is_some()));
        match member {
            Some((_, value)) => check(name, value, kind, *is_required, &mut problems),
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
    for (name, _) in members.iter().filter(|(name, _)| !known.contains(name)) {
        let meant = suggestion(name, if free.is_empty() { &known } else { &free });
        problems.push(format!("there is no `{name}`: {meant}"));
    }
    problems
}

fn check(
    name: &str,
    value: &str,
    kind: &PrimitiveType,
    is_required: bool,
    problems: &mut Vec<String>,
) {
    if !is_required && value == "null" {
        return;
    }
    if !kind.is_list {
        return check_one(name, value, kind, is_required, problems);
    }
    match parts(value, '[') {
        Some(items) => {
            for (index, (_, item)) in items.into_iter().enumerate() {
                check_one(&format!("{name}[{index}]"), item, kind, true, problems);
            }
        }
        None => problems.push(mismatch(name, value, "array", is_required)),
    }
}

fn check_one(
    path: &str,
    value: &str,
    kind: &PrimitiveType,
    is_required: bool,
    problems: &mut Vec<String>,
) {
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

/// The members of an object or the items of an array, as they are written; items have no names. What is no valid JSON
/// ends early.
fn parts(text: &str, open: char) -> Option<Vec<(&str, &str)>> {
    let mut rest = text.strip_prefix(open)?.trim_start();
    let mut parts = Vec::new();
    while !rest.is_empty() && !rest.starts_with([']', '}']) {
        let mut name = "";
        if open == '{' {
            let (key, after) = rest.split_at(end(rest));
            name = key.trim_matches('"');
            rest = after.trim_start().trim_start_matches(':').trim_start();
        }
        let (value, after) = rest.split_at(end(rest));
        parts.push((name, value));
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None => break,
        }
    }
    Some(parts)
}

/// Where the value ends with which a text begins.
fn end(text: &str) -> usize {
    let (mut depth, mut is_text, mut is_escaped) = (0, false, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => {
                is_text = !is_text;
                if !is_text && depth == 0 {
                    return index + 1;
                }
            }
            _ if is_text => {}
            b'[' | b'{' => depth += 1,
            b',' | b':' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return index,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_apart() {
        let check = |text, open, expected: Option<&[(&str, &str)]>| {
            assert_eq!(parts(text, open).as_deref(), expected, "{text}");
        };
        check("{}", '{', Some(&[]));
        check("[]", '{', None);
        check("[ 1 , \"a,]\" ]", '[', Some(&[("", "1"), ("", "\"a,]\"")]));
        check(
            r#"{ "a" : {"b": [1, "}"]}, "c":"\"x", "ä":null}"#,
            '{',
            Some(&[("a", r#"{"b": [1, "}"]}"#), ("c", r#""\"x""#), ("ä", "null")]),
        );
        // What is cut or malformed ends, and does not go on for ever.
        check("{\"a\": [1", '{', Some(&[("a", "[1")]));
        check("{,,", '{', Some(&[("", ""), ("", "")]));
        check("[", '[', Some(&[]));
        check("[]]]", '[', Some(&[]));
    }
}
