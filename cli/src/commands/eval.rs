//! `tenon eval`

use serde_json::{Value, json};
use std::process::ExitCode;
use tenon_host::bindings::eval_handler::{Evaluation, Verdict};

use crate::error::Error;
use crate::{Common, open, output};

/// Score an output with a strategy
#[derive(clap::Args)]
#[command(after_help = "Example:
  tenon eval checks/contains --subject '{\"output\": \"hello\"}' --options '{\"all\": [\"ell\"]}'")]
pub(crate) struct Args {
    /// The strategy, as PLUGIN/STRATEGY
    strategy: String,
    /// What is judged: a JSON object with `output`, and `input` or `expected` where they are
    /// needed; @FILE, or -
    #[arg(long, value_name = "JSON")]
    subject: String,
    /// The options of the strategy: a JSON object, @FILE, or -
    #[arg(long, value_name = "JSON", default_value = "{}")]
    options: String,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    if args.subject == "-" && args.options == "-" {
        let problem = "standard input can be the subject or the options, not both";
        return Err(Error::Input(problem.into()));
    }
    let subject = output::read_json("subject", &args.subject)?;
    let options = output::read_json("options", &args.options)?;
    let plugin = args.strategy.split('/').next().unwrap_or_default();
    let found = open::found(common)?;
    open::with(common, found.platform_with(plugin), async |platform| {
        let caller = open::caller(None);
        show(common, &platform.evaluate(&args.strategy, subject, options, &caller).await?)
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
            output::text(&format!("  {verdict}: {}: {}", finding.criterion, finding.reason))?;
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
    json!({
        "score": evaluation.score,
        "verdict": verdict(evaluation.verdict),
        "findings": findings,
    })
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Inconclusive => "inconclusive",
    }
}
