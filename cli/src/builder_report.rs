//! What is wrong with a plugin's source, as the builders of the packages for authors report it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a builder prints with `--json` where a plugin has problems.
#[derive(Deserialize)]
pub(crate) struct BuilderReport {
    pub(crate) problems: Vec<SourceProblem>,
}

impl BuilderReport {
    /// Reads what a builder has printed, whose last line it is; nothing where that is no report of problems.
    pub(crate) fn parse(said: &[u8]) -> Option<Self> {
        let line = said.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
        let report: Self = serde_json::from_slice(line).ok()?;
        (!report.problems.is_empty()).then_some(report)
    }
}

/// What an author has to change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SourceProblem {
    pub(crate) message: String,
    /// What to do about it.
    #[serde(default)]
    hint: Option<String>,
    /// The file, from the plugin's folder.
    #[serde(default)]
    file: Option<String>,
    /// Counted from 1, as the column is.
    #[serde(default)]
    line: Option<u32>,
    #[serde(default)]
    column: Option<u32>,
    /// The line itself.
    #[serde(default)]
    source: Option<String>,
}

impl SourceProblem {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref().filter(|hint| !hint.is_empty())
    }

    /// The line of the source, with its number.
    pub(crate) fn shown_line(&self) -> Option<String> {
        let source = self.source.as_deref().filter(|source| !source.trim().is_empty())?;
        Some(format!("{:>4} | {}", self.line?, source.trim_end()))
    }
}

/// Where it is, and what.
impl fmt::Display for SourceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = self.file.as_deref().filter(|file| !file.is_empty()) {
            write!(f, "{file}:")?;
            for number in [self.line, self.column].into_iter().map_while(|number| number) {
                write!(f, "{number}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_say_where_they_are() {
        let check = |said: &str, expected: &[&str]| {
            let report = BuilderReport::parse(said.as_bytes());
            let problems = report.map(|report| report.problems).unwrap_or_default();
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(problems, expected, "{said}");
        };
        check(
            r#"{"problems": [{"message": "no", "file": "app.py", "line": 3}]}"#,
            &["app.py:3: no"],
        );
        check(
            r#"{"problems": [{"message": "no", "file": "a.js", "line": 3, "column": 7}]}"#,
            &["a.js:3:7: no"],
        );
        check(
            r#"{"problems": [{"message": "no", "file": "", "line": null, "hint": ""}]}"#,
            &["no"],
        );
        check(
            r#"{"problems": [{"message": "no", "file": "a.js"}, {"message": "nor"}]}"#,
            &["a.js: no", "nor"],
        );
        check("what a module prints\n{\"problems\": [{\"message\": \"no\"}]}\n", &["no"]);
        check(r#"{"problems": []}"#, &[]);
        check("Traceback", &[]);
        check("", &[]);
    }
}
