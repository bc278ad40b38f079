//! `tenon hook`

use serde_json::json;
use std::process::ExitCode;
use tenon_host::hook::{POINTS, PointInfo};
use tenon_host::invoke::{HookOutcome, HookReport};
use tenon_host::types::HookPoint;
use tenon_host::{CallError, PluginKind};

use crate::error::Error;
use crate::{Common, open, output};

/// Run the hooks of a point over a context
#[derive(clap::Args)]
#[command(after_help = help())]
pub(crate) struct Args {
    /// The point, one of those below or custom:NAME
    point: HookPoint,
    /// The context: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    context: String,
}

fn help() -> String {
    let points: String = { POINTS.iter() }
        .map(|PointInfo { name, function, .. }| format!("  {name:<17} or {function}\n"))
        .collect();
    format!(
        "Points:
{points}  custom:NAME       of your own

Examples:
  tenon hook before-plan --context '{{\"goal\": \"tidy up\"}}'
  tenon --json hook custom:deploy --context @context.json"
    )
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let context = output::read_json("context", &args.context)?;
    // An MCP server has no hooks.
    let found = open::found(common)?;
    let platform = found.platform(|candidate| candidate.kind() != PluginKind::Mcp);
    open::with(common, platform, async |platform| {
        show(common, platform.fire(&args.point, context, &open::caller(None)).await?)
    })
    .await
}

fn show(common: &Common, report: HookReport) -> Result<ExitCode, Error> {
    if let HookOutcome::Stopped { plugin, failure } = report.outcome {
        return Err(CallError::Failed { plugin, failure }.into());
    }
    if common.json {
        let mut form = match &report.outcome {
            HookOutcome::Veto { reason, .. } => json!({ "outcome": "veto", "reason": reason }),
            _ => json!({ "outcome": "continue" }),
        };
        form["context"] = report.context;
        form["handlers"] = json!(report.handlers);
        output::json(&form)?;
        return Ok(ExitCode::SUCCESS);
    }
    for handler in &report.handlers {
        let error = handler.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
        tracing::info!("{} {}{error}", handler.plugin, handler.outcome);
    }
    match &report.outcome {
        HookOutcome::Veto { plugin, reason } => {
            output::text(&format!("vetoed by {plugin}: {reason}"))?;
        }
        _ => output::json(&report.context)?,
    }
    Ok(ExitCode::SUCCESS)
}
