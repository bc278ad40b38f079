//! `tenon tools`

use serde_json::{Value, json};
use std::process::ExitCode;
use tenon_host::{Platform, PluginState, one_line, wire};

use crate::error::Error;
use crate::{Common, open, output};

/// List the tools of all plugins
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  tenon tools\n  tenon --json tools | jq '.[].name'")]
pub(crate) struct Args {}

pub(crate) async fn run(common: &Common, Args {}: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    open::with(common, found.platform(|_| true), async |platform| list(common, platform)).await
}

fn list(common: &Common, platform: &Platform) -> Result<ExitCode, Error> {
    let shown = show(common, platform);
    for report in platform.plugins().iter() {
        // What is not there at all was reported before.
        if let (Some(detail), PluginState::Ready) = (&report.detail, report.state) {
            tracing::warn!("plugin \"{}\": {detail}", report.plugin);
        }
    }
    for (plugin, name, why) in platform.registry().held() {
        tracing::warn!("{name} is held: {why}; `tenon approve {plugin}` shows it and accepts it");
    }
    shown
}

fn show(common: &Common, platform: &Platform) -> Result<ExitCode, Error> {
    let registry = platform.registry();
    if common.json {
        let tools: Vec<Value> = registry
            .tools()
            .map(|(plugin, tool)| {
                let mut form = wire::tool_definition(tool.name.as_str(), &tool.definition);
                form["plugin"] = json!(**plugin.loaded().id());
                form["tool"] = json!(tool.definition.name);
                form["kind"] = json!(plugin.loaded().kind());
                form
            })
            .collect();
        output::json(&tools)?;
    } else {
        let width = registry.tools().map(|(_, tool)| tool.name.as_str().len()).max().unwrap_or(0);
        for (_, tool) in registry.tools() {
            let about = first_sentence(&tool.definition.description);
            let about = one_line(&about);
            let (name, own) = (tool.name.as_str(), &tool.definition.name);
            // Not every name is one that models can take.
            let renamed = match name.ends_with(own) {
                true => String::new(),
                false => format!(" (\"{}\" of its plugin)", one_line(own)),
            };
            output::line(format!("{name:width$}  {about}{renamed}").trim_end())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The beginning of a description, as far as a line of a list has room for it.
fn first_sentence(description: &str) -> String {
    let line = description.lines().next().unwrap_or_default();
    let sentence = line.split_inclusive(". ").next().unwrap_or_default().trim_end();
    match sentence.char_indices().nth(100) {
        Some((cut, _)) => format!("{}…", sentence[..cut].trim_end()),
        None => sentence.to_string(),
    }
}
