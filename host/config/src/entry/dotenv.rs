//! Files with variables: `NAME=value`, a line each.
//!
//! A line may begin with `export`, `#` begins a comment, and values may be in quotes: in single ones
//! they are taken as they are, in double ones `\n`, `\t`, `\"` and `\\` mean what they do elsewhere.
//! Nothing is expanded.

use std::collections::BTreeMap;

/// What is wrong with a line. The line itself may have a secret in it, and is not shown.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct DotenvError {
    line: usize,
    problem: &'static str,
}

/// Reads variables; of several with one name the last counts.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, DotenvError> {
    let mut variables = BTreeMap::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in text.lines().enumerate() {
        let wrong = |problem| DotenvError { line: number + 1, problem };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, rest) = line.split_once('=').ok_or(wrong("it has no `=`"))?;
        let name = name.trim();
        if !is_name(name) {
            return Err(wrong("the text before `=` is not a variable name"));
        }
        variables.insert(name.to_string(), value(rest.trim()).map_err(wrong)?);
    }
    Ok(variables)
}

/// Whether a text can name a variable.
pub fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(first) && text.chars().all(|c| first(c) || c.is_ascii_digit() || c == '.')
}

fn value(text: &str) -> Result<String, &'static str> {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        let end = text.find(" #").unwrap_or(text.len());
        return Ok(text[..end].trim_end().to_string());
    };
    let mut value = String::new();
    let mut rest = text[1..].chars();
    loop {
        match rest.next().ok_or("its quotes are not closed")? {
            c if c == quote => break,
            '\\' if quote == '"' => match rest.next().ok_or("its quotes are not closed")? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                c @ ('"' | '\\' | '$') => value.push(c),
                c => value.extend(['\\', c]),
            },
            c => value.push(c),
        }
    }
    let rest = rest.as_str().trim_start();
    match rest.is_empty() || rest.starts_with('#') {
        true => Ok(value),
        false => Err("there is something after its quotes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows() {
        let check = |text: &str, expected: &str| {
            assert_eq!(parse(text).unwrap().remove("A").as_deref(), Some(expected), "{text}");
        };
        check("A=b", "b");
        check("\n# why\n  export A = b c # that\n", "b c");
        check("A=b#c", "b#c");
        check("A=", "");
        check("A='$B \\n' # that", "$B \\n");
        check("A=\"x\\n\\\"y\\\" \\d\"", "x\n\"y\" \\d");
        check("A=1\r\nA=2\r\n", "2");
        let check = |text: &str, expected: &str| {
            assert_eq!(parse(text).unwrap_err().to_string(), expected);
        };
        check("A=1\nB", "line 2: it has no `=`");
        check("A B=1", "line 1: the text before `=` is not a variable name");
        check("A=\"b", "line 1: its quotes are not closed");
        check("A='b' c", "line 1: there is something after its quotes");
    }
}
