//! Evaluations.

use serde_json::Value;

use super::call::problems;
use super::{CallError, Caller, redact, served, span_of};
use crate::bindings::eval_handler::Evaluation;
use crate::register::Registry;
use crate::runtime::Failure;
use crate::wire;

/// Scores a subject with a strategy, which is named `plugin/strategy`.
pub(crate) async fn evaluate(
    registry: &Registry,
    name: &str,
    subject: Value,
    options: Value,
    caller: &Caller,
) -> Result<Evaluation, CallError> {
    let found = name.split_once('/').and_then(|(plugin, strategy)| {
        let plugin = registry.plugin(plugin)?;
        let eval = plugin.evals().iter().find(|eval| eval.definition.name == strategy)?;
        Some((plugin, eval))
    });
    let Some((plugin, eval)) = found else {
        let names: Vec<String> = registry
            .plugins()
            .iter()
            .flat_map(|plugin| {
                plugin
                    .evals()
                    .iter()
                    .map(|eval| format!("{}/{}", plugin.loaded().id(), eval.definition.name))
            })
            .collect();
        return Err(CallError::not_found("strategy", name, names.iter().map(String::as_str)));
    };
    let invalid =
        |what, problems| CallError::InvalidInput { what, name: name.to_string(), problems };
    if !subject.is_object() {
        return Err(invalid("subject", vec!["it is not a JSON object".into()]));
    }
    match &eval.options {
        _ if !options.is_object() => {
            return Err(invalid("options", vec!["they are no JSON object".into()]));
        }
        Some(schema) if !schema.is_valid(&options) => {
            return Err(invalid("options", problems(schema, &options)));
        }
        _ => {}
    }
    let loaded = plugin.loaded();
    let (timeout, context) = caller.context(loaded.limits().wall);
    let strategy = &eval.definition.name;
    let span = span_of!("evaluate", loaded.id(), caller, context, strategy = name);
    let (subject, options) = (wire::written(&subject), wire::written(&options));
    let answer = loaded.plugin().evaluate(strategy, subject, options, context);
    let evaluation = served(span, registry, caller, timeout, answer)
        .await
        .map_err(CallError::failed(loaded.id()))?;
    let scores = evaluation.findings.iter().filter_map(|finding| finding.score);
    for score in scores.chain([evaluation.score]) {
        if !(0.0..=1.0).contains(&score) {
            let problem = format!("the score {score} is not from 0 to 1");
            return Err(CallError::failed(loaded.id())(Failure::Contract(problem)));
        }
    }
    Ok(redact::evaluation(registry.redactor(), evaluation))
}
