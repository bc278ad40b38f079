//! `tenon plugins`

use std::process::ExitCode;
use tenon_config::admit::{ContentDigests, PluginsOverview, Rules};
use tenon_host::services::ask_approver;
use tenon_host::types::text::visible;

use crate::error::Error;
use crate::hint::as_typed;
use crate::{Common, open, output};

/// List the plugins and whether they may be loaded, without starting them
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(common: &Common, Args {}: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    let candidates = &found.discovery.candidates;
    let rules = Rules::new(&found.sources.configs).contents(ContentDigests::read(candidates));
    let rules = match found.approvals() {
        Some(file) => {
            let approvals = ask_approver(candidates, &rules, &file).await;
            rules.approve(approvals)
        }
        None => rules,
    };
    let mut snapshot = PluginsOverview::new(&found.discovery, &rules);
    let PluginsOverview { plugins, diagnostics, warnings } = &mut snapshot;
    let notes = diagnostics.iter_mut().chain(warnings);
    let remedies = notes.map(|note| &mut note.remedy);
    let remedies = plugins.iter_mut().map(|plugin| &mut plugin.remedy).chain(remedies);
    for remedy in remedies.flatten() {
        *remedy = as_typed(remedy).into_owned();
    }
    match common.json {
        true => output::json(&snapshot)?,
        false => {
            let shown = snapshot.to_string();
            let nothing = "there are no plugins; `tenon new` makes one, and tenon.toml, .mcp.json or \
                 .tenon/plugins name others";
            output::if_empty(shown.is_empty(), nothing);
            output::write(visible(&as_typed(&shown)))?
        }
    }
    Ok(ExitCode::SUCCESS)
}
