//! Hook points that a tool of an MCP server handles. The tool is called with the event, and answers with a decision as
//! JSON:
//!
//! | asked with | answered |
//! |---|---|
//! | `point`, `context` | `{"outcome": "continue"}`, or nothing |
//! | | `{"outcome": "replace", "context": {…}}` |
//! | | `{"outcome": "veto", "reason": "…"}` |
//!
//! The answer is the result's structured content, or else the JSON of its text. A result that says it is an error is a
//! failure of the handler.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tenon_config::tool_hooks::ServerHook;
use tenon_types::{Error, HookDecision, HookEvent, HookPoint, Json, ToolResult};

use crate::call::Failure;

/// The tool that handles a point.
pub(super) fn tool_for<'a>(hooks: &'a [ServerHook], point: &HookPoint) -> Result<&'a str, Failure> {
    let hook = hooks.iter().find(|hook| hook.registration.point == *point);
    let hook = hook.ok_or_else(|| Error::not_found(format!("it does not handle {point}")))?;
    Ok(&hook.tool)
}

/// The arguments of a tool that handles an event.
pub(super) fn arguments(event: &HookEvent) -> Json {
    json!({ "point": event.point.to_string(), "context": event.context }).into()
}

/// A decision, as a tool writes it.
#[derive(Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase", deny_unknown_fields)]
enum DecisionForm {
    Continue {},
    Replace { context: Map<String, Value> },
    Veto { reason: String },
}

/// What a tool has decided.
pub(super) fn decision(result: &ToolResult) -> Result<HookDecision, Failure> {
    if result.is_error {
        return Err(Error::failed(result.plain_text()).into());
    }
    let text = match &result.structured {
        Some(structured) => structured.clone(),
        None => result.plain_text(),
    };
    if text.trim().is_empty() {
        return Ok(HookDecision::Continue);
    }
    let decision = serde_json::from_str(&text).map_err(|error| {
        Failure::Contract(format!(
            "its tool answered no decision of a hook, such as {{\"outcome\": \"continue\"}}: {error}"
        ))
    })?;
    Ok(match decision {
        DecisionForm::Continue {} => HookDecision::Continue,
        DecisionForm::Replace { context } => HookDecision::Replace(context.into()),
        DecisionForm::Veto { reason } => HookDecision::Veto(reason),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_types::HookContext;

    #[test]
    fn a_tool_decides_by_what_it_answers() {
        let check = |result: ToolResult, expected: Result<HookDecision, &str>| match (
            decision(&result),
            expected,
        ) {
            (Ok(decision), Ok(expected)) => assert_eq!(decision, expected),
            (Err(failure), Err(expected)) => {
                assert!(failure.to_string().contains(expected), "{failure}");
            }
            (decision, _) => panic!("{result:?}: {decision:?}"),
        };
        let text = |text: &str| ToolResult::text(text);
        let replaced = HookDecision::Replace(HookContext::parse(r#"{"a":1}"#).unwrap());
        check(text(""), Ok(HookDecision::Continue));
        check(text(r#"{"outcome": "continue"}"#), Ok(HookDecision::Continue));
        check(text(r#"{"outcome": "replace", "context": {"a": 1}}"#), Ok(replaced.clone()));
        let veto = r#"{"outcome": "veto", "reason": "no"}"#;
        check(text(veto), Ok(HookDecision::Veto("no".into())));
        // What is for programs counts.
        let structured = Some(r#"{"outcome": "replace", "context": {"a": 1}}"#.to_string());
        check(ToolResult { structured, ..text("replaced") }, Ok(replaced));
        check(ToolResult::error("cannot"), Err("cannot"));
        for wrong in
            ["yes", "{}", r#"{"outcome": "veto"}"#, r#"{"outcome": "replace", "context": 1}"#]
        {
            check(text(wrong), Err("no decision of a hook"));
        }
    }
}
