//! `tenon doctor`

use serde_json::{Value, json};
use std::process::ExitCode;
use tenon_host::{Diagnostic, Platform, PluginKind, PluginReport, PluginState};

use crate::error::Error;
use crate::{Common, open, output};

/// Start everything that is declared, and say how it fares
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(common: &Common, Args {}: Args) -> Result<ExitCode, Error> {
    let platform = open::found(common)?.build(|_| true).await?;
    let shown = show(common, &platform);
    open::end(platform, shown).await
}

fn show(common: &Common, platform: &Platform) -> Result<ExitCode, Error> {
    let reports = platform.plugins();
    let diagnostics = platform.diagnostics();
    let ready = reports.iter().filter(|report| report.state == PluginState::Ready).count();
    let failed = reports.iter().filter(|report| report.state.is_failure()).count();
    if common.json {
        let rows = reports.iter().map(row).chain(diagnostics.iter().map(row_of_diagnostic));
        output::json(&rows.collect::<Vec<_>>())?;
    } else {
        for report in reports.iter() {
            output::line(line(report))?;
            for text in [&report.detail, &report.remedy].into_iter().flatten() {
                for text in output::visible(text).lines() {
                    output::line(format!("  {text}"))?;
                }
            }
        }
        for diagnostic in &diagnostics {
            output::line(format!("note: {}", output::visible(&diagnostic.to_string())))?;
            if let Some(remedy) = &diagnostic.remedy {
                output::line(format!("  {remedy}"))?;
            }
        }
        output::line(format!("{ready} of {} plugins are ready", ready + failed))?;
    }
    let well = failed == 0 && diagnostics.is_empty();
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn row(report: &PluginReport) -> Value {
    let mut row = json!({
        "plugin": report.plugin,
        "kind": report.kind,
        "state": report.state,
        "tools": report.tools,
        "hooks": report.hooks,
        "detail": report.detail,
    });
    if let Some(remedy) = &report.remedy {
        row["remedy"] = json!(remedy);
    }
    row
}

/// What is wrong with something that is no plugin, or not wholly one, in the form of the others.
fn row_of_diagnostic(diagnostic: &Diagnostic) -> Value {
    json!({
        "plugin": diagnostic.plugin,
        "kind": null,
        "state": "note",
        "tools": 0,
        "hooks": 0,
        "detail": diagnostic.to_string(),
        "remedy": diagnostic.remedy,
    })
}

/// One line for one plugin: `MCP: github (ok, 12 tools)`.
fn line(report: &PluginReport) -> String {
    let tier = match report.kind {
        PluginKind::Wasm => "WASM",
        PluginKind::Mcp => "MCP",
        PluginKind::Rhai => "Rhai",
        PluginKind::Builtin => "Built-in",
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
    format!("{tier}: {} ({}{})", report.plugin, report.state, counts.collect::<String>())
}
