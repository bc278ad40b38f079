//! What a strategy of a script returns: a score, a truth value, or a map with more to say.

use serde::Deserialize;
use serde_json::Value;
use tenon_types::{Evaluation, Finding, Verdict};

/// The score from which on a plain score is a pass.
const PASS_SCORE: f64 = 0.5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scored {
    score: f64,
    verdict: Option<Word>,
    #[serde(default)]
    findings: Vec<Found>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Found {
    criterion: String,
    verdict: Word,
    score: Option<f64>,
    #[serde(default)]
    reason: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Pass,
    Fail,
    Inconclusive,
}

impl From<Word> for Verdict {
    fn from(word: Word) -> Self {
        match word {
            Word::Pass => Self::Pass,
            Word::Fail => Self::Fail,
            Word::Inconclusive => Self::Inconclusive,
        }
    }
}

/// Reads what a strategy returned.
pub(super) fn read(answer: Value) -> Result<Evaluation, String> {
    let plain = |score| Scored { score, verdict: None, findings: Vec::new() };
    let Scored { score, verdict, findings } = match answer {
        Value::Bool(good) => plain(if good { 1.0 } else { 0.0 }),
        Value::Number(score) => plain(score.as_f64().unwrap_or(f64::NAN)),
        Value::Object(_) => serde_json::from_value(answer).map_err(|error| error.to_string())?,
        _ => return Err("a strategy returns a score, a truth value or a map with `score`".into()),
    };
    let by_score = if score >= PASS_SCORE { Verdict::Pass } else { Verdict::Fail };
    let findings = findings.into_iter().map(|Found { criterion, verdict, score, reason }| {
        Finding { criterion, verdict: verdict.into(), score, reason }
    });
    Ok(Evaluation {
        score,
        verdict: verdict.map_or(by_score, Verdict::from),
        findings: findings.collect(),
        extra: None,
    })
}
