//! What a strategy of a script returns: a score, a truth value, or a map with more to say.

use serde::Deserialize;
use serde_json::Value;
use tenon_types::{Evaluation, Finding, Verdict};

/// The score from which on a plain score is a pass.
const PASS_SCORE: f64 = 0.5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScoreTable {
    score: f64,
    verdict: Option<EvalVerdictWord>,
    #[serde(default)]
    findings: Vec<FindingTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FindingTable {
    criterion: String,
    verdict: EvalVerdictWord,
    score: Option<f64>,
    #[serde(default)]
    reason: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EvalVerdictWord {
    Pass,
    Fail,
    Inconclusive,
}

impl From<EvalVerdictWord> for Verdict {
    fn from(word: EvalVerdictWord) -> Self {
        match word {
            EvalVerdictWord::Pass => Self::Pass,
            EvalVerdictWord::Fail => Self::Fail,
            EvalVerdictWord::Inconclusive => Self::Inconclusive,
        }
    }
}

/// Reads what a strategy returned.
pub(super) fn read(answer: Value) -> Result<Evaluation, String> {
    let plain = |score| ScoreTable { score, verdict: None, findings: Vec::new() };
    let ScoreTable { score, verdict, findings } = match answer {
        Value::Bool(good) => plain(if good { 1.0 } else { 0.0 }),
        Value::Number(score) => plain(score.as_f64().unwrap_or(f64::NAN)),
        Value::Object(_) => serde_json::from_value(answer).map_err(|error| error.to_string())?,
        _ => return Err("a strategy returns a score, a truth value or a map with `score`".into()),
    };
    let by_score = if score >= PASS_SCORE { Verdict::Pass } else { Verdict::Fail };
    let findings =
        findings.into_iter().map(|FindingTable { criterion, verdict, score, reason }| Finding {
            criterion,
            verdict: verdict.into(),
            score,
            reason,
        });
    Ok(Evaluation {
        score,
        verdict: verdict.map_or(by_score, Verdict::from),
        findings: findings.collect(),
        extra: None,
    })
}
