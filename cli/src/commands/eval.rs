//! `tenon eval`

use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tenon_host::PluginKind;
use tenon_host::types::text::one_line;
use tenon_host::types::{EvalDefinition, Evaluation, Finding, Verdict};

use crate::error::Error;
use crate::{Common, open, output};

/// Score an output with a strategy, or list the strategies
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon eval
  tenon eval checks/contains --subject '{\"output\": \"hello\"}' --options '{\"all\": [\"ell\"]}'")]
pub(crate) struct Args {
    /// The strategy, as PLUGIN/STRATEGY; without it, the strategies are listed
    #[arg(requires = "subject")]
    strategy: Option<String>,
    /// What to score: a JSON object with `output`, and optionally `input` and `expected`; @FILE, or -
    #[arg(long, value_name = "JSON", requires = "strategy")]
    subject: Option<String>,
    /// The options of the strategy: a JSON object, @FILE, or -
    #[arg(long, value_name = "JSON", default_value = "{}")]
    options: String,
    /// Timeout, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = crate::duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let (Some(strategy), Some(subject)) = (args.strategy, args.subject) else {
        return list(common).await;
    };
    if subject == "-" && args.options == "-" {
        let problem = "standard input can be the subject or the options, not both";
        return Err(Error::Input(problem.into()));
    }
    let subject = output::read_json("subject", &subject)?;
    let options = output::read_json("options", &args.options)?;
    let plugin = strategy.split('/').next().unwrap_or_default();
    let found = open::found(common)?;
    open::with(common, found.platform_with(plugin), async |platform| {
        let caller = open::caller(args.timeout);
        show(common, &platform.evaluate(&strategy, subject, options, &caller).await?)
    })
    .await
}

/// Lists the strategies of all plugins. An MCP server has none.
async fn list(common: &Common) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    let platform = found.platform(|candidate| candidate.kind() != PluginKind::Mcp);
    open::with(common, platform, async |platform| {
        let registry = platform.registry();
        let all = registry
            .plugins()
            .iter()
            .flat_map(|plugin| plugin.evals().iter().map(|eval| (plugin.id(), &eval.definition)));
        if common.json {
            let form = |(plugin, eval): (&Arc<str>, &EvalDefinition)| {
                let schema = eval.options_schema.as_deref().map(serde_json::from_str::<Value>);
                json!({
                    "plugin": &**plugin,
                    "name": eval.name,
                    "description": eval.description,
                    "optionsSchema": schema.and_then(Result::ok),
                })
            };
            output::json(&all.map(form).collect::<Vec<Value>>())?;
            return Ok(ExitCode::SUCCESS);
        }
        let all: Vec<_> = all.collect();
        output::if_empty(
            all.is_empty(),
            "no plugin has strategies; `tenon plugins` lists the plugins",
        );
        for (plugin, eval) in all {
            let about = eval.description.lines().next().unwrap_or_default();
            let name = format!("{plugin}/{}", eval.name);
            output::line(format!("{}  {}", one_line(&name), one_line(about)).trim_end())?;
        }
        Ok(ExitCode::SUCCESS)
    })
    .await
}

fn show(common: &Common, evaluation: &Evaluation) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&form(evaluation))?;
    } else {
        output::line(format!("{} ({:.2})", verdict(evaluation.verdict), evaluation.score))?;
        for finding in &evaluation.findings {
            let verdict = verdict(finding.verdict);
            let score = finding.score.map(|score| format!(" ({score:.2})")).unwrap_or_default();
            let Finding { criterion, reason, .. } = finding;
            output::text(&format!("  {verdict}{score}: {criterion}: {reason}"))?;
        }
        if let Some(extra) = &evaluation.extra {
            output::text(&format!("  {extra}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn form(evaluation: &Evaluation) -> Value {
    let findings: Vec<Value> = evaluation
        .findings
        .iter()
        .map(|finding| {
            let mut form = json!({
                "criterion": finding.criterion,
                "verdict": verdict(finding.verdict),
                "reason": finding.reason,
            });
            if let Some(score) = finding.score {
                form["score"] = json!(score);
            }
            form
        })
        .collect();
    let mut form = json!({
        "score": evaluation.score,
        "verdict": verdict(evaluation.verdict),
        "findings": findings,
    });
    if let Some(extra) = &evaluation.extra {
        form["extra"] = serde_json::from_str(extra).unwrap_or_else(|_| json!(extra));
    }
    form
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Inconclusive => "inconclusive",
    }
}
