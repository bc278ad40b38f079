//! `tenon doctor`

use serde_json::json;
use std::process::ExitCode;
use tenon_host::{PluginKind, PluginReport, PluginState};

use crate::error::Error;
use crate::{Common, open, output};

/// Start everything that is declared, and say how it fares
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(common: &Common, Args {}: Args) -> Result<ExitCode, Error> {
    let platform = open::platform(common, |_| true).await?;
    let reports = platform.plugins();
    let diagnostics = platform.diagnostics();
    let sick = reports.iter().any(|report| report.state != PluginState::Ready);
    if common.json {
        let rows: Vec<_> = reports
            .iter()
            .map(|report| {
                json!({
                    "plugin": report.plugin,
                    "kind": report.kind,
                    "state": report.state,
                    "tools": report.tools,
                    "hooks": report.hooks,
                    "detail": report.detail,
                })
            })
            .collect();
        output::json(&rows)?;
    } else {
        for report in reports {
            output::line(line(report))?;
            for text in [report.detail.as_deref(), report.remedy.as_deref()].into_iter().flatten() {
                for text in text.lines() {
                    output::line(format!("  {text}"))?;
                }
            }
        }
        for diagnostic in &diagnostics {
            output::line(format!("note: {diagnostic}"))?;
            if let Some(remedy) = &diagnostic.remedy {
                output::line(format!("  {remedy}"))?;
            }
        }
        let ready = reports.iter().filter(|report| report.state == PluginState::Ready).count();
        output::line(format!("{ready} of {} plugins are ready", reports.len()))?;
    }
    platform.shutdown().await;
    Ok(if sick { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// One line for one plugin: `MCP: github (ok, 12 tools)`.
fn line(report: &PluginReport) -> String {
    let tier = match report.kind {
        PluginKind::Wasm => "WASM",
        PluginKind::Mcp => "MCP",
        PluginKind::Rhai => "Rhai",
        PluginKind::Builtin => "Built-in",
    };
    let state = match report.state {
        PluginState::Ready => "ok",
        PluginState::Refused => "refused",
        PluginState::Failed => "failed",
    };
    let counts = [
        (report.tools, "tool"),
        (report.hooks, "hook"),
        (report.evals, "eval"),
        (report.providers, "provider"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| {
        let plural = if *count == 1 { "" } else { "s" };
        format!(", {count} {what}{plural}")
    });
    format!("{tier}: {} ({state}{})", report.plugin, counts.collect::<String>())
}
