//! {{description}}.

use schemars::JsonSchema;
use serde::Deserialize;
use tenon_sdk::eval::{Evaluation, Subject, finding, summarize};
use tenon_sdk::{eval, plugin};

plugin!(evals: [concise]);

/// Options of `concise`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The most words.
    most: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { most: 100 }
    }
}

/// Passes when the output is short. Beyond that the score falls with its length.
#[eval]
pub async fn concise(subject: Subject, options: Options) -> Evaluation {
    let words = subject.output_text().split_whitespace().count();
    let passed = words <= options.most;
    let reason = format!("it has {words} words, and {} are the most", options.most);
    let mut evaluation = summarize(vec![finding("words", passed, reason)]);
    if !passed {
        evaluation.score = options.most as f64 / words as f64;
    }
    evaluation
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::eval::Verdict;
    use tenon_sdk::json;
    use tenon_sdk::testing::Host;

    #[test]
    fn what_is_short_passes() {
        let evaluation = Host::new().evaluate::<concise>(json!({ "output": "yes" }), json!({}));
        assert_eq!(evaluation.unwrap().verdict, Verdict::Pass);
    }

    #[test]
    fn what_is_long_fails_by_degrees() {
        let subject = json!({ "output": "one two three four" });
        let evaluation = Host::new().evaluate::<concise>(subject, json!({ "most": 3 })).unwrap();
        assert_eq!((evaluation.verdict, evaluation.score), (Verdict::Fail, 0.75));
    }
}
