//! Evaluations through the registry.

use serde_json::{Value, json};
use tenon_host::types::Verdict;
use tenon_host::{CallError, Caller, Failure};

use crate::guests;
use crate::support::{RunningPlatform, platform};

async fn checks() -> RunningPlatform {
    platform(&format!("plugins.wasm = [{:?}, {:?}]", guests::CHECKS, guests::MISBEHAVE)).await
}

#[tokio::test]
async fn every_strategy_scores() {
    let platform = checks().await;
    let check =
        async |strategy: &str, subject: Value, options: Value, verdict: Verdict, score: f64| {
            let name = format!("checks/{strategy}");
            let evaluation = platform
                .evaluate(&name, subject, options, &Caller::default())
                .await
                .expect("it scores");
            assert_eq!(format!("{:?}", evaluation.verdict), format!("{verdict:?}"), "{strategy}");
            assert!((evaluation.score - score).abs() < 1e-9, "{strategy}: {}", evaluation.score);
            assert!(evaluation.findings.iter().all(|finding| !finding.reason.is_empty()));
        };
    let output = |text: &str| json!({ "output": text });
    check(
        "exact",
        json!({ "output": "A ", "expected": "a" }),
        json!({ "trim": true, "ignore_case": true }),
        Verdict::Pass,
        1.0,
    )
    .await;
    check(
        "exact",
        json!({ "output": { "a": 1 }, "expected": { "a": 2 } }),
        json!({}),
        Verdict::Fail,
        0.0,
    )
    .await;
    check(
        "contains",
        output("one two"),
        json!({ "all": ["one", "three"], "none": ["four"], "any": ["two"] }),
        Verdict::Fail,
        0.75,
    )
    .await;
    check("regex", output("v1.2.3"), json!({ "pattern": r"^v\d+\.\d+" }), Verdict::Pass, 1.0).await;
    check(
        "json_schema",
        output(r#"{"n": 3}"#),
        json!({ "schema": { "required": ["n"] } }),
        Verdict::Pass,
        1.0,
    )
    .await;
    check("json_schema", output("{"), json!({ "schema": {} }), Verdict::Fail, 0.0).await;
    check("length", output("12345678"), json!({ "max": 4 }), Verdict::Fail, 0.5).await;
}

#[tokio::test]
async fn bad_input_says_what_is_wrong() {
    let platform = checks().await;
    let check = async |strategy: &str, subject: Value, options: Value, expected: &str| {
        let result = platform.evaluate(strategy, subject, options, &Caller::default()).await;
        let error = result.expect_err("it fails").to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("checks/exactly", json!({}), json!({}), "there is no strategy \"checks/exactly\"").await;
    check("checks/exact", json!([]), json!({}), "it is not a JSON object").await;
    check("checks/exact", json!({ "output": "x" }), json!({}), "has no `expected`").await;
    check("checks/exact", json!({ "expected": "x" }), json!({}), "missing field `output`").await;
    check("checks/length", json!({ "output": "x" }), json!({ "max": "many" }), "at /max").await;
    check("checks/regex", json!({ "output": "x" }), json!({ "pattern": "(" }), "options.pattern")
        .await;
}

#[tokio::test]
async fn a_score_that_is_none_is_refused() {
    let platform = checks().await;
    let result =
        platform.evaluate("misbehave/seven", json!({}), json!({}), &Caller::default()).await;
    assert!(matches!(result, Err(CallError::Failed { failure: Failure::Contract(_), .. })));
}
