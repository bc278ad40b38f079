//! What came of the expectations.

use serde::Serialize;
use std::fmt;

use crate::case::ConformanceCase;

/// What came of one expectation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowResult {
    /// The expectation.
    #[serde(flatten)]
    pub expectation: ConformanceCase,
    /// Whether it was met.
    pub verdict: Verdict,
    /// What was seen instead, or why it was not tried; nothing where it was met.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
}

/// Whether an expectation was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// It was not.
    Failed,
    /// It cannot be tried on this system.
    Untried,
    /// It was.
    Passed,
}

/// What came of all expectations, in the order of the table.
///
/// As text it shows what failed first, with what was expected and what was seen; as JSON it has
/// everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use = "a report that nobody looks at holds nothing together"]
#[non_exhaustive]
pub struct Report {
    /// What came of each.
    pub outcomes: Vec<RowResult>,
}

impl Report {
    /// Whether there were expectations, and none failed.
    pub fn passed(&self) -> bool {
        !self.outcomes.is_empty() && self.failures().next().is_none()
    }

    /// Those that were not met.
    pub fn failures(&self) -> impl Iterator<Item = &RowResult> {
        self.of(Verdict::Failed)
    }

    /// Those of a verdict.
    pub fn of(&self, verdict: Verdict) -> impl Iterator<Item = &RowResult> {
        self.outcomes.iter().filter(move |outcome| outcome.verdict == verdict)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed => "FAILED",
            Self::Untried => "untried",
            Self::Passed => "passed",
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |verdict| self.of(verdict).count();
        let [failed, untried, passed] =
            [Verdict::Failed, Verdict::Untried, Verdict::Passed].map(count);
        writeln!(f, "{failed} failed, {untried} untried, {passed} passed")?;
        for outcome in self.failures() {
            writeln!(f, "\n{}  {}", outcome.verdict, outcome.expectation.name)?;
            writeln!(f, "  expected  {}", outcome.expectation.expected)?;
            writeln!(f, "  control   {}", outcome.expectation.control)?;
            for seen in &outcome.seen {
                writeln!(f, "  seen      {seen}")?;
            }
        }
        for verdict in [Verdict::Untried, Verdict::Passed] {
            let mut separator = "\n";
            for outcome in self.of(verdict) {
                write!(f, "{separator}{verdict}  {}", outcome.expectation.name)?;
                match outcome.seen.first() {
                    Some(why) => writeln!(f, ": {why}")?,
                    None => writeln!(f)?,
                }
                separator = "";
            }
        }
        Ok(())
    }
}
