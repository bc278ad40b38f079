//! `tenon hook`

use serde_json::json;
use std::process::ExitCode;
use tenon_config::discover::Candidate;
use tenon_host::types::HookPoint;
use tenon_host::types::hook::{POINTS, PointInfo};
use tenon_host::types::text::one_line;
use tenon_host::{CallError, HookOutcome, HookReport, Registry};

use crate::error::{Error, Exit};
use crate::{Common, open, output};

/// Run the hooks of a point with a context, or list all handlers
#[derive(clap::Args)]
#[command(after_help = help())]
pub(crate) struct Args {
    /// The point, one of those below or PREFIX:NAME; without it, the handlers are listed in their order
    point: Option<HookPoint>,
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
{points}  PREFIX:NAME       of a host's own

A veto ends the command with the exit code 3.

Examples:
  tenon hook
  tenon hook before-plan --context '{{\"goal\": \"tidy up\"}}'
  tenon --json hook acme:deploy --context @context.json"
    )
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let context = output::read_json("context", &args.context)?;
    let found = open::found(common)?;
    let Some(point) = &args.point else {
        let platform = found.platform(Candidate::may_handle_hooks);
        return open::with(common, platform, async |platform| list(common, &platform.registry()))
            .await;
    };
    open::with(common, found.platform_with_hooks(), async |platform| {
        show(common, platform.fire(point, context, &open::caller(None)).await?)
    })
    .await
}

/// Lists who handles which point. Handlers run in this order.
fn list(common: &Common, registry: &Registry) -> Result<ExitCode, Error> {
    let rows = registry.hooks().map(|(point, handlers)| {
        (point.to_string(), handlers.iter().map(|handler| handler.plugin.id()).collect::<Vec<_>>())
    });
    if common.json {
        let rows = rows.map(|(point, handlers)| {
            let handlers: Vec<&str> = handlers.iter().map(|id| &***id).collect();
            json!({ "point": point, "handlers": handlers })
        });
        output::json(&rows.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = rows.collect();
    output::if_empty(rows.is_empty(), "no plugin handles hooks; `tenon plugins` lists the plugins");
    for (point, handlers) in rows {
        let handlers: Vec<&str> = handlers.iter().map(|id| &***id).collect();
        output::line(format!("{}  {}", one_line(&point), handlers.join(", ")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(common: &Common, report: HookReport) -> Result<ExitCode, Error> {
    if let HookOutcome::Stopped { plugin, failure } = report.outcome {
        return Err(CallError::Failed { plugin, failure }.into());
    }
    let code = match report.outcome {
        HookOutcome::Veto { .. } => Exit::Refused,
        _ => Exit::Success,
    };
    if common.json {
        let mut form = match &report.outcome {
            HookOutcome::Veto { reason, .. } => json!({ "outcome": "veto", "reason": reason }),
            _ => json!({ "outcome": "continue" }),
        };
        form["context"] = report.context;
        form["handlers"] = json!(report.handlers);
        output::json(&form)?;
        return Ok(code.into());
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
    Ok(code.into())
}
