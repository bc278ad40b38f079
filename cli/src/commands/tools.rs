//! `tenon tools`

use serde_json::{Value, json};
use std::process::ExitCode;
use tenon_host::wire;

use crate::error::Error;
use crate::{Common, open, output};

/// List the tools of all plugins
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  tenon tools\n  tenon --json tools | jq '.[].name'")]
pub(crate) struct Args {}

pub(crate) async fn run(common: &Common, Args {}: Args) -> Result<ExitCode, Error> {
    let platform = open::platform(common, |_| true).await?;
    let registry = platform.registry();
    if common.json {
        let tools: Vec<Value> = registry
            .tools()
            .map(|(plugin, tool)| {
                let mut form = wire::tool_definition(tool.name.as_str(), &tool.definition);
                form["plugin"] = json!(**plugin.loaded().id());
                form["kind"] = json!(plugin.loaded().kind());
                form
            })
            .collect();
        output::json(&tools)?;
    } else {
        let width = registry.tools().map(|(_, tool)| tool.name.as_str().len()).max().unwrap_or(0);
        for (_, tool) in registry.tools() {
            let first = tool.definition.description.lines().next().unwrap_or_default();
            output::line(format!("{:width$}  {first}", tool.name.as_str()).trim_end())?;
        }
    }
    for report in platform.plugins() {
        if let Some(detail) = &report.detail {
            tracing::warn!("plugin \"{}\": {detail}", report.plugin);
        }
    }
    platform.shutdown().await;
    Ok(ExitCode::SUCCESS)
}
