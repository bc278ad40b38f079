//! What a function may fail with: any error.

use std::error::Error as StdError;

use tenon_sdk::eval::{Evaluation, Subject};
use tenon_sdk::hook::Outcome;
use tenon_sdk::testing::Host;
use tenon_sdk::{ErrorCode, Result, Value, eval, hook, json, prompt, resource, tool};

/// Reads a number.
#[tool]
async fn sdk_result(text: String) -> Result<String> {
    Ok(text.parse::<u8>()?.checked_mul(2).ok_or("it is too great")?.to_string())
}

/// Reads a number.
#[tool]
async fn boxed(text: String) -> Result<String, Box<dyn StdError>> {
    Ok(text.parse::<u8>()?.checked_mul(2).ok_or("it is too great")?.to_string())
}

/// Reads a number.
#[tool]
async fn own(text: String) -> Result<String, std::num::ParseIntError> {
    Ok(text.parse::<u8>()?.wrapping_mul(2).to_string())
}

#[cfg(feature = "anyhow")]
mod with_anyhow {
    use super::*;
    use anyhow::Context as _;

    /// Reads a number.
    #[tool]
    async fn told(text: String) -> anyhow::Result<String> {
        let number: u8 = text.parse().with_context(|| format!("reading {text:?}"))?;
        anyhow::ensure!(number != 9, "not 9");
        Ok(number.to_string())
    }

    /// Reads a number.
    #[tool]
    async fn passed_on(text: String) -> Result<String> {
        Ok(told(text).await?)
    }

    #[test]
    fn errors_of_anyhow_are_told_with_their_context() {
        let check = |result: tenon_sdk::ToolResult, expected: &str| {
            assert_eq!((result.is_error, result.plain_text().as_str()), (true, expected));
        };
        let host = Host::new();
        let told = "reading \"x\": invalid digit found in string";
        check(host.call_tool::<told>(json!({ "text": "x" })).unwrap(), told);
        check(host.call_tool::<passed_on>(json!({ "text": "x" })).unwrap(), told);
        check(host.call_tool::<told>(json!({ "text": "9" })).unwrap(), "not 9");
    }
}

#[test]
fn a_tool_shows_the_model_any_error() {
    let host = Host::new();
    let arguments = json!({ "text": "x" });
    for result in [
        host.call_tool::<sdk_result>(arguments.clone()),
        host.call_tool::<boxed>(arguments.clone()),
        host.call_tool::<own>(arguments),
    ] {
        let result = result.unwrap();
        assert_eq!(
            (result.is_error, result.plain_text().as_str()),
            (true, "invalid digit found in string")
        );
    }
    let arguments = json!({ "text": "200" });
    assert_eq!(
        host.call_tool::<sdk_result>(arguments.clone()).unwrap().plain_text(),
        "it is too great"
    );
    assert_eq!(host.call_tool::<boxed>(arguments).unwrap().plain_text(), "it is too great");
}

#[hook(before_plan)]
async fn refuse(_context: Value) -> Result<Outcome, Box<dyn StdError>> {
    Err("no")?
}

/// Fails.
#[eval]
async fn judge(_subject: Subject) -> Result<Evaluation, std::fmt::Error> {
    Err(std::fmt::Error)
}

/// Fails.
#[resource("notes:all")]
async fn notes() -> Result<String, Box<dyn StdError>> {
    Err("no")?
}

/// Fails.
#[prompt]
async fn ask() -> Result<String, std::fmt::Error> {
    Err(std::fmt::Error)
}

#[test]
fn every_kind_of_function_fails_with_any_error() {
    let host = Host::new();
    let code = |error: tenon_sdk::Error| assert_eq!(error.code, ErrorCode::Failed, "{error:?}");
    code(host.handle::<refuse>("before-plan", json!({})).unwrap_err());
    code(host.evaluate::<judge>(json!({ "output": "" }), json!({})).unwrap_err());
    code(host.read_resource::<notes>("notes:all").unwrap_err());
    code(host.get_prompt::<ask>(&[]).unwrap_err());
}
