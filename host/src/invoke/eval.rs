//! Evaluations.

use serde_json::{Value, json};
use std::sync::Arc;
use tenon_config::secret::Redactor;
use tenon_types::mcp_json;
use tenon_types::{CallContext, Evaluation, Finding, HookPoint, Json, ToolResult};
use tracing::Span;

use super::pipeline::{self, AnswerChange, HookPoints, PipelineAnswer, Request};
use super::state::CallState;
use super::truncate::{BLOCK_OVERHEAD_BYTES, keep_first};
use super::{InvokeServices, TRUNCATED, span};
use crate::call::escape;
use crate::call::mask::{Masked, Unmasked};
use crate::call::{Call, CallError, CallKind, Caller, Failure};
use crate::invoke::stored_results::ResultStore;
use crate::register::call_settings::CallSettings;
use crate::register::{RegisteredEval, RegisteredPlugin, Registry};
use crate::runtime::PluginHandle;

/// Scores a subject with a strategy, which is named `plugin/strategy`.
pub(crate) async fn evaluate(
    invoke_services: &Arc<InvokeServices>,
    registry: &Registry,
    name: &str,
    subject: Value,
    options: Value,
    caller: &Caller,
) -> Result<Masked<Evaluation>, CallError> {
    let arguments = json!({ "subject": subject, "options": options });
    let call = Call { name: name.into(), arguments, caller: caller.clone() };
    let state = CallState::begin(invoke_services, registry, CallKind::Evaluation, call);
    pipeline::run(registry, state, find(registry, name)).await
}

fn find<'a>(registry: &'a Registry, name: &'a str) -> Result<EvalRequest<'a>, CallError> {
    let found = name.split_once('/').and_then(|(plugin, strategy)| {
        let plugin = registry.plugin(plugin)?;
        let eval = plugin.evals().iter().find(|eval| eval.definition.name == strategy)?;
        Some(EvalRequest { plugin, eval, name })
    });
    found.ok_or_else(|| {
        let names: Vec<String> = registry
            .plugins()
            .iter()
            .flat_map(|plugin| {
                plugin
                    .evals()
                    .iter()
                    .map(|eval| format!("{}/{}", plugin.id(), eval.definition.name))
            })
            .collect();
        CallError::not_found("strategy", name, names.iter().map(String::as_str))
    })
}

/// A strategy that is asked to score.
struct EvalRequest<'a> {
    plugin: &'a Arc<RegisteredPlugin>,
    eval: &'a RegisteredEval,
    /// `plugin/strategy`
    name: &'a str,
}

impl Request for EvalRequest<'_> {
    type Answer = Evaluation;

    const POINTS: Option<HookPoints> = Some(HookPoints {
        before: HookPoint::BeforeEvaluate,
        after: HookPoint::AfterEvaluate,
        asked: ("subject", Some("subject")),
        answer: "evaluation",
    });

    fn plugin(&self) -> &Arc<RegisteredPlugin> {
        self.plugin
    }

    fn constraints(&self) -> &CallSettings {
        &CallSettings::ONCE
    }

    fn span(&self, state: &CallState) -> Span {
        let (number, trace) = (state.number(), state.trace());
        let id = self.plugin.id();
        span!("evaluate", id, state.caller, number, trace, strategy = state.name)
    }

    fn about(&self, _: &CallState) -> [(&'static str, String); 2] {
        let plugin = self.plugin.id().to_string();
        [("strategy", self.name.to_string()), ("plugin", plugin)]
    }

    fn arguments_of(&self) -> &'static str {
        "subject"
    }

    async fn check(&self, state: &CallState) -> Result<Vec<String>, CallError> {
        let arguments = state.arguments.value();
        let (subject, options) = (&arguments["subject"], &arguments["options"]);
        if !subject.is_object() {
            return Ok(vec!["it is not a JSON object".into()]);
        }
        let problems = match &self.eval.options {
            _ if !options.is_object() => vec!["they are no JSON object".into()],
            Some(schema) => match schema.problems(options) {
                Some(problems) => problems,
                None => Box::pin(self.check_options(options)).await?,
            },
            None => Vec::new(),
        };
        match problems.is_empty() {
            true => Ok(problems),
            false => {
                let name = self.name.to_string();
                Err(CallError::InvalidInput { what: "options", name, problems })
            }
        }
    }

    fn ask(
        &mut self,
        plugin: PluginHandle<'_>,
        _: &Arc<Redactor>,
        arguments: &Json,
        context: CallContext,
    ) -> (u64, impl Future<Output = Unmasked<Result<Evaluation, Failure>>> + Send) {
        let member = |name: &str| Json::write(&arguments.value()[name]);
        let (subject, options) = (member("subject"), member("options"));
        let bytes_in = (subject.text().len() + options.text().len()) as u64;
        let strategy = &self.eval.definition.name;
        let evaluation = async move { plugin.evaluate(strategy, subject, options, context).await };
        (bytes_in, evaluation)
    }

    async fn check_answer(&self, evaluation: Evaluation) -> Result<Evaluation, CallError> {
        match problem(&evaluation) {
            None => Ok(evaluation),
            Some(problem) => Err(CallError::failed(self.plugin.id())(Failure::Contract(problem))),
        }
    }
}

impl EvalRequest<'_> {
    /// Checks options against a schema that may cost any amount.
    async fn check_options(&self, options: &Value) -> Result<Vec<String>, CallError> {
        let loaded = self.plugin.loaded();
        let schema = self.eval.definition.options_schema.as_deref().unwrap_or("true");
        let problems = loaded.schemas().problems(schema, options, "the options", loaded.limits());
        problems.await.map_err(CallError::failed(loaded.id()))
    }
}

/// What is wrong with the scores of an evaluation.
fn problem(evaluation: &Evaluation) -> Option<String> {
    let mut scores = evaluation.findings.iter().filter_map(|finding| finding.score);
    let scores = scores.by_ref().chain([evaluation.score]);
    let wrong = scores.into_iter().find(|score| !(0.0..=1.0).contains(score));
    wrong.map(|score| format!("the score {score} is not from 0 to 1"))
}

fn length_of(finding: &Finding) -> usize {
    finding.criterion.len() + finding.reason.len()
}

impl PipelineAnswer for Evaluation {
    fn length(&self) -> usize {
        let findings =
            self.findings.iter().map(|finding| length_of(finding) + BLOCK_OVERHEAD_BYTES);
        self.extra.as_ref().map_or(0, String::len) + findings.sum::<usize>()
    }

    async fn bound(
        mut self,
        most: usize,
        kept: Option<String>,
        results: &Arc<ResultStore>,
    ) -> (Self, Option<String>) {
        let length = self.length();
        if length <= most {
            return (self, kept);
        }
        let whole = match kept {
            Some(kept) => Some(kept),
            None => {
                let form = Some(self.form().to_string());
                let result = ToolResult { structured: form, ..ToolResult::text("") };
                results.keep_apart(result).await
            }
        };
        keep_first(&mut self.findings, most, length_of);
        self.extra = None;
        let about = json!({ "bytes": length, "uri": whole });
        mcp_json::insert_meta_of(&mut self.extra, TRUNCATED, &about);
        (self, whole)
    }

    fn form(&self) -> Value {
        mcp_json::evaluation(self)
    }

    fn show(&mut self) -> bool {
        escape::evaluation(self)
    }

    fn changed(self, change: AnswerChange<'_>) -> Result<Self, String> {
        let changed = mcp_json::read_evaluation(Arc::unwrap_or_clone(change.after));
        let changed = changed
            .map_err(|error| format!("its hook left something else than an evaluation: {error}"))?;
        match problem(&changed) {
            None => Ok(changed),
            Some(problem) => Err(problem),
        }
    }
}
