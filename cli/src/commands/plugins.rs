//! `tenon plugins`

use serde::Serialize;
use std::process::ExitCode;
use tenon_host::PluginKind;
use tenon_host::admit::{Approvals, admit};

use crate::error::Error;
use crate::{Common, open, output};

/// List what the configuration names, and whether it may be loaded; nothing is started
#[derive(clap::Args)]
pub(crate) struct Args {}

/// One plugin, as `--json` shows it.
#[derive(Serialize)]
struct Row {
    plugin: String,
    kind: PluginKind,
    state: &'static str,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

pub(crate) async fn run(common: &Common, Args {}: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    let rows: Vec<Row> = found
        .discovery
        .candidates
        .into_iter()
        .map(|candidate| {
            let (plugin, kind) = (candidate.id().to_string(), candidate.kind());
            let source = candidate.source();
            let refusal = admit(candidate, &Approvals::default()).err();
            Row {
                plugin,
                kind,
                state: if refusal.is_some() { "refused" } else { "admitted" },
                source,
                detail: refusal.map(|refusal| refusal.to_string()),
            }
        })
        .collect();
    if common.json {
        output::json(&rows)?;
    } else {
        let width = rows.iter().map(|row| row.plugin.len()).max().unwrap_or(0);
        for Row { plugin, kind, state, source, detail } in rows {
            output::line(format!("{plugin:width$}  {kind:<5} {state:<8}  {source}"))?;
            if let Some(detail) = detail {
                output::line(format!("{:width$}  {detail}", ""))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
