//! `~` and `${…}` in configuration, expanded once.
//!
//! `${VAR}` and `${env:VAR}` are a variable of the environment, `${VAR:-default}` is one with a
//! default for when it is unset or empty, and `~` at the beginning of a path is the home folder. A
//! bare `$VAR` is left as it is, and what comes out of an expansion is not expanded again.

use crate::surroundings::Surroundings;

/// Why a text cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpandError {
    /// A variable has no value and no default.
    #[error("the variable {0} is not set; set it, or write ${{{0}:-default}}")]
    Unset(String),
    /// A `${` has no `}`.
    #[error("\"{0}\" has a `${{` without its `}}`")]
    Unclosed(String),
    /// There is no home folder to put for `~`.
    #[error("\"{0}\" begins with `~`, and no home folder is known")]
    NoHome(String),
}

/// Expands the variables of a text.
pub(crate) fn variables(text: &str, surroundings: &Surroundings) -> Result<String, ExpandError> {
    expand(text, surroundings, str::to_string)
}

/// Expands the variables of a text; `put` gives what is put for a value.
fn expand(
    text: &str,
    surroundings: &Surroundings,
    put: impl Fn(&str) -> String,
) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, after) = rest.split_at(start);
        expanded.push_str(before);
        let inner = &after[2..];
        let end = inner.find('}').ok_or_else(|| ExpandError::Unclosed(text.to_string()))?;
        expanded.push_str(&put(&variable(&inner[..end], surroundings)?));
        rest = &inner[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Expands a path: its variables, and `~` at its beginning.
pub(crate) fn path(text: &str, surroundings: &Surroundings) -> Result<String, ExpandError> {
    path_with(text, surroundings, str::to_string)
}

/// Expands a glob over paths. What is put into it is no glob: a wildcard there is a character.
pub(crate) fn glob(text: &str, surroundings: &Surroundings) -> Result<String, ExpandError> {
    path_with(text, surroundings, escaped)
}

/// A glob that a text is the only one to match.
pub(crate) fn escaped(text: &str) -> String {
    // `globset` leaves a backslash as it is, and would read it as an escape.
    globset::escape(text).replace('\\', "[\\]")
}

fn path_with(
    text: &str,
    surroundings: &Surroundings,
    put: impl Fn(&str) -> String,
) -> Result<String, ExpandError> {
    let expanded = expand(text, surroundings, &put)?;
    if text != "~" && !text.starts_with("~/") {
        return Ok(expanded);
    }
    let home = surroundings.home.as_deref().ok_or_else(|| ExpandError::NoHome(text.to_string()))?;
    let home = home.to_str().ok_or_else(|| ExpandError::NoHome(text.to_string()))?;
    Ok(format!("{}{}", put(home), &expanded[1..]))
}

fn variable(inner: &str, surroundings: &Surroundings) -> Result<String, ExpandError> {
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    match (surroundings.variable(name), default) {
        (Some(value), None) => Ok(value.to_string()),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value.to_string()),
        (_, Some(default)) => Ok(default.to_string()),
        (None, None) => Err(ExpandError::Unset(name.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings() -> Surroundings {
        let environment = [("A", "1"), ("EMPTY", ""), ("NESTED", "${A}")]
            .map(|(k, v)| (k.into(), v.into()))
            .into();
        Surroundings { environment, home: Some("/home/u".into()), ..Surroundings::default() }
    }

    #[test]
    fn rows() {
        let check = |text: &str, expected: &str| {
            assert_eq!(path(text, &surroundings()).as_deref(), Ok(expected), "{text}");
        };
        check("x${A}y${env:A}", "x1y1");
        check("${B:-two}", "two");
        check("${EMPTY:-two}", "two");
        check("${EMPTY}", "");
        check("$A $ {A}", "$A $ {A}");
        check("${NESTED}", "${A}");
        check("~/x", "/home/u/x");
        check("~", "/home/u");
        check("~other/x", "~other/x");
        check("a/~", "a/~");
    }

    #[test]
    fn an_unset_variable_is_named() {
        let error = variables("${NOPE}", &surroundings()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the variable NOPE is not set; set it, or write ${NOPE:-default}"
        );
        assert!(matches!(variables("${A", &surroundings()), Err(ExpandError::Unclosed(_))));
    }
}
