//! `tenon doctor`

use serde_json::{Value, json};
use std::process::ExitCode;
use tenon_host::{
    Diagnostic, Limits, Platform, PluginKind, PluginReport, PluginState, one_line, visible,
};

use crate::error::Error;
use crate::{Common, open, output};

/// Start everything that is declared, and say how it fares
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(common: &Common, Args {}: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    let warnings = found.discovery.warnings.clone();
    let platform = found.build(|_| true).await?;
    let shown = show(common, &platform, &warnings);
    open::end(common, platform, shown).await
}

fn show(common: &Common, platform: &Platform, warnings: &[Diagnostic]) -> Result<ExitCode, Error> {
    let reports = platform.plugins();
    let diagnostics = platform.diagnostics();
    let ready = reports.iter().filter(|report| report.state == PluginState::Ready).count();
    let failed = reports.iter().filter(|report| report.state.is_failure()).count();
    if common.json {
        let notes = diagnostics.iter().chain(warnings).map(row_of_diagnostic);
        output::json(&reports.iter().map(row).chain(notes).collect::<Vec<_>>())?;
    } else {
        for report in reports.iter() {
            for text in wrap(&line(report), WIDTH) {
                output::line(text)?;
            }
            details(report.detail.as_deref(), report.remedy.as_deref())?;
            let limits = report.limits.as_ref().map(Limits::special);
            if let Some(limits) = limits.filter(|limits| !limits.is_empty()) {
                details(Some(&format!("limits: {limits}")), None)?;
            }
        }
        for diagnostic in diagnostics.iter().chain(warnings) {
            output::line("note:")?;
            details(Some(&diagnostic.to_string()), diagnostic.remedy.as_deref())?;
        }
        output::line(format!("{ready} of {} plugins are ready", ready + failed))?;
    }
    let well = failed == 0 && diagnostics.is_empty();
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn row(report: &PluginReport) -> Value {
    json!({
        "plugin": report.plugin,
        "kind": report.kind,
        "state": report.state,
        "version": report.version,
        "tools": report.tools,
        "hooks": report.hooks,
        "evals": report.evals,
        "providers": report.providers,
        "capabilities": report.capabilities,
        "requested": report.requested,
        "granted": report.granted,
        "limits": report.limits,
        "needs": report.needs,
        "detail": report.detail,
        "remedy": report.remedy,
    })
}

/// What is wrong with something that is no plugin, or not wholly one, in the form of the others.
fn row_of_diagnostic(diagnostic: &Diagnostic) -> Value {
    json!({
        "plugin": diagnostic.plugin,
        "kind": null,
        "state": "note",
        "version": null,
        "tools": 0,
        "hooks": 0,
        "evals": 0,
        "providers": 0,
        "capabilities": 0,
        "requested": {},
        "granted": {},
        "limits": null,
        "needs": [],
        "detail": diagnostic.to_string(),
        "remedy": diagnostic.remedy,
    })
}

/// How wide the table is, in characters.
const WIDTH: usize = 80;

/// Prints why something is as it is, and what to do about it, below its line. Only the first line of
/// each begins where they do: what a plugin says cannot look like a remedy.
fn details(detail: Option<&str>, remedy: Option<&str>) -> Result<(), Error> {
    let remedy = remedy.map(|remedy| format!("fix: {remedy}"));
    for text in [detail, remedy.as_deref()].into_iter().flatten() {
        let mut margin = "  ";
        for text in visible(text).lines() {
            for text in wrap(text, WIDTH - 4) {
                output::line(format!("{margin}{text}"))?;
                margin = "    ";
            }
        }
    }
    Ok(())
}

/// A text in lines of so many characters, broken between words where there is a place.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest = word;
        loop {
            let line = lines.last_mut().expect("there is always one");
            let used = line.chars().count();
            let space = usize::from(used > 0);
            let length = rest.chars().count();
            if used + space + length <= width {
                line.push_str(if space == 1 { " " } else { "" });
                line.push_str(rest);
                break;
            }
            if used == 0 {
                let cut = rest.char_indices().nth(width).map_or(rest.len(), |(cut, _)| cut);
                line.push_str(&rest[..cut]);
                rest = &rest[cut..];
            }
            lines.push(String::new());
        }
    }
    lines
}

/// One line for one plugin: `MCP: github (ok, 12 tools)`, and at the end its version.
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
    let plural = |count: usize, one: &str, many: &str| match count {
        0 => String::new(),
        1 => format!(", 1 {one}"),
        count => format!(", {count} {many}"),
    };
    let counts: String =
        counts.iter().map(|(count, what)| plural(*count, what, &format!("{what}s"))).collect();
    let capabilities = plural(report.capabilities, "capability", "capabilities");
    let line = format!("{tier}: {} ({}{counts}{capabilities})", report.plugin, report.state);
    let version = report.version.as_deref().unwrap_or_default();
    let version = one_line(version);
    let room = WIDTH.saturating_sub(line.chars().count() + 1);
    match version.is_empty() || version.chars().count() > room {
        true => line,
        false => format!("{line} {version:>room$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_are_as_wide_as_they_may_be() {
        let check = |text: &str, expected: &[&str]| assert_eq!(wrap(text, 8), expected, "{text}");
        check("", &[""]);
        check("one two three", &["one two", "three"]);
        check("12345678 9", &["12345678", "9"]);
        check("a/very/long/path", &["a/very/l", "ong/path"]);
        check("é éééééééé", &["é", "éééééééé"]);
    }
}
