//! One rule of calls: `approve` under `[tools."PATTERN"]`, or one of `[[tools."PATTERN".when]]`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use tenon_types::text::fits;

use super::argument::{ArgumentPointer, ArgumentTest};
use super::{CallDecision, CallFacts, Fit};

/// What a tool may say of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnnotationHint {
    /// It changes nothing.
    ReadOnly,
    /// It may destroy or overwrite something.
    Destructive,
    /// A second call with the same arguments changes nothing more.
    Idempotent,
    /// It reaches outside of what the host knows.
    OpenWorld,
}

impl AnnotationHint {
    fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Destructive => "destructive",
            Self::Idempotent => "idempotent",
            Self::OpenWorld => "open-world",
        }
    }
}

/// What becomes of calls of some tools. All conditions have to hold; one that is not said holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRule {
    /// The tools, by the names that callers use; `*` stands for any text.
    pub pattern: String,
    /// Its number among the rules of the pattern that have conditions, counted from one.
    pub number: Option<usize>,
    /// What becomes of the calls.
    pub decision: CallDecision,
    /// What is demanded of arguments.
    pub arguments: Vec<(ArgumentPointer, ArgumentTest)>,
    /// What the tool says of itself, as far as it is believed: one of these.
    pub annotations: Vec<AnnotationHint>,
    /// The profiles of clients: one of these patterns.
    pub profiles: Vec<String>,
    /// Who calls: one of these patterns.
    pub principals: Vec<String>,
}

/// `[[tools."PATTERN".when]]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallRuleTable {
    approve: CallDecision,
    #[serde(default)]
    arguments: BTreeMap<ArgumentPointer, ArgumentTest>,
    #[serde(default, deserialize_with = "some")]
    annotations: Vec<AnnotationHint>,
    #[serde(default, deserialize_with = "some")]
    profiles: Vec<String>,
    #[serde(default, deserialize_with = "some")]
    principals: Vec<String>,
}

/// Reads a list of alternatives. An empty one would read as one that nothing is in, and mean the contrary.
fn some<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let list = Vec::deserialize(deserializer)?;
    match list.is_empty() {
        true => Err(D::Error::custom("the list is empty; leave it out, or name one")),
        false => Ok(list),
    }
}

/// How the principals of `tenon serve` begin: those of `tenon token`, and those that an issuer vouches for.
const PRINCIPAL_FORMS: [&str; 2] = ["token:", "subject:"];

/// Whether a pattern may fit a principal of `tenon serve`.
pub(crate) fn may_fit_principal(pattern: &str) -> bool {
    let start = pattern.split('*').next().unwrap_or_default();
    let is_whole = start == pattern;
    PRINCIPAL_FORMS.iter().any(|form| match start.strip_prefix(form) {
        Some(name) => !(is_whole && name.is_empty()),
        None => !is_whole && form.starts_with(start),
    })
}

impl CallRule {
    /// A rule without conditions.
    pub fn new(pattern: impl Into<String>, decision: CallDecision) -> Self {
        Self {
            pattern: pattern.into(),
            number: None,
            decision,
            arguments: Vec::new(),
            annotations: Vec::new(),
            profiles: Vec::new(),
            principals: Vec::new(),
        }
    }

    /// The rules of a pattern: those with conditions in their order, then the one without.
    pub(crate) fn of_table(
        pattern: &str,
        approve: Option<CallDecision>,
        when: Vec<CallRuleTable>,
    ) -> Vec<Self> {
        let with_conditions = when.into_iter().zip(1..).map(|(table, number)| {
            let CallRuleTable { approve, arguments, annotations, profiles, principals } = table;
            Self {
                number: Some(number),
                arguments: arguments.into_iter().collect(),
                annotations,
                profiles,
                principals,
                ..Self::new(pattern, approve)
            }
        });
        with_conditions.chain(approve.map(|decision| Self::new(pattern, decision))).collect()
    }

    /// How what is known of a tool fits.
    pub(crate) fn hints_fit(&self, known: impl Fn(AnnotationHint) -> Fit) -> Fit {
        let fits = self.annotations.iter().map(|hint| known(*hint));
        fits.max().unwrap_or(Fit::Yes)
    }

    /// How a call fits, of whose tool is known how it does. `find` finds the value for the argument of a number.
    pub(crate) fn fit<'a>(
        &self,
        hints: Fit,
        facts: &CallFacts<'_>,
        find: impl Fn(usize) -> Option<&'a Value>,
    ) -> Fit {
        if hints == Fit::No
            || !is_one_of(&self.profiles, facts.profile)
            || !is_one_of(&self.principals, facts.principal)
        {
            return Fit::No;
        }
        let mut fit = hints;
        for (number, (_, test)) in self.arguments.iter().enumerate() {
            fit = fit.min(argument_fit(test, find(number)));
            if fit == Fit::No {
                break;
            }
        }
        fit
    }

    /// The same, condition by condition.
    pub(crate) fn conditions(&self, hints: Fit, facts: &CallFacts<'_>) -> Vec<(String, Fit)> {
        let mut conditions = Vec::new();
        if !self.annotations.is_empty() {
            let words: Vec<&str> = self.annotations.iter().map(|hint| hint.as_str()).collect();
            conditions.push((format!("annotations: {}", words.join(", ")), hints));
        }
        for (what, patterns, found) in [
            ("profiles", &self.profiles, facts.profile),
            ("principals", &self.principals, facts.principal),
        ] {
            if !patterns.is_empty() {
                let fit = Fit::of(is_one_of(patterns, found));
                conditions.push((format!("{what}: {}", patterns.join(", ")), fit));
            }
        }
        for (pointer, test) in &self.arguments {
            let fit = argument_fit(test, pointer.find(facts.arguments));
            let what = match pointer.as_str() {
                "" => "arguments".to_string(),
                pointer => format!("argument {pointer}"),
            };
            conditions.push((format!("{what} {test}"), fit));
        }
        conditions
    }
}

/// An argument that is not there is not as demanded.
fn argument_fit(test: &ArgumentTest, value: Option<&Value>) -> Fit {
    value.map_or(Fit::No, |value| test.fit(value))
}

fn is_one_of(patterns: &[String], found: Option<&str>) -> bool {
    patterns.is_empty()
        || found.is_some_and(|found| patterns.iter().any(|pattern| fits(pattern, found)))
}
