//! What stands behind [`#[eval]`](macro@crate::eval).

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bindings::evals::exports::tenon::plugin::evals as wit;
use crate::bindings::evals::exports::tenon::plugin::evals::EvalDefinition;
use crate::{Context, Error, Failure};
pub use wit::{Evaluation, Finding, Verdict};

/// What is judged, as most strategies need it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// What was produced.
    pub output: Value,
    /// What it was produced from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// What should have been produced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// What else the caller passed.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}

impl Subject {
    /// The output as text: a string as it is, anything else as JSON.
    pub fn output_text(&self) -> String {
        match &self.output {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// A finding that passed or failed, without degrees.
pub fn finding(criterion: impl Into<String>, passed: bool, reason: impl Into<String>) -> Finding {
    Finding {
        criterion: criterion.into(),
        verdict: if passed { Verdict::Pass } else { Verdict::Fail },
        score: None,
        reason: reason.into(),
    }
}

/// Sums findings up: the score is the share that passed, and the verdict is "pass" when all did.
/// Without findings it is inconclusive.
pub fn summarize(findings: Vec<Finding>) -> Evaluation {
    let passed = findings.iter().filter(|finding| finding.verdict == Verdict::Pass).count();
    let verdict = match findings.len() {
        0 => Verdict::Inconclusive,
        all if all == passed => Verdict::Pass,
        _ => Verdict::Fail,
    };
    let score = if findings.is_empty() { 0.0 } else { passed as f64 / findings.len() as f64 };
    Evaluation { score, verdict, findings, extra: None }
}

/// What a strategy's function may return: an evaluation, alone or in a result.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a strategy can return",
    label = "not what a strategy returns",
    note = "return `Evaluation`, alone or in a `Result`; \
            `tenon_sdk::eval::summarize` makes one of findings"
)]
pub trait IntoEvaluation {
    fn into_evaluation(self) -> crate::Result<Evaluation>;
}

impl IntoEvaluation for Evaluation {
    fn into_evaluation(self) -> crate::Result<Self> {
        Ok(self)
    }
}

impl<E: Into<Failure>> IntoEvaluation for Result<Evaluation, E> {
    fn into_evaluation(self) -> crate::Result<Evaluation> {
        self.map_err(Into::into)
    }
}

/// Reads the options of a strategy.
#[doc(hidden)]
pub fn parse_options<T: DeserializeOwned + JsonSchema>(what: &str, text: &str) -> Result<T, Error> {
    crate::check::parse(what, text, crate::schema::input_schema::<T>)
}

/// A strategy. The attribute implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no evaluation strategy",
    label = "no `#[eval]`",
    note = "write `#[eval]` above its function"
)]
pub trait Eval {
    /// The name by which the host asks for it.
    const NAME: &'static str;

    /// How the host lists the strategy.
    fn definition() -> EvalDefinition;

    /// Judges a subject; both arguments are JSON objects.
    fn evaluate(
        subject: &str,
        options: &str,
        context: Context,
    ) -> impl Future<Output = Result<Evaluation, Failure>>;
}
