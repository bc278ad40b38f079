//! `tenon tools`

use serde::Serialize;
use std::process::ExitCode;
use tenon_host::types::ToolDefinition;
use tenon_host::types::mcp_json::McpJsonWith;
use tenon_host::types::text::one_line;
use tenon_host::{Platform, PluginKind, PluginState};

use crate::error::Error;
use crate::{Common, open, output};

/// List the tools of all plugins, or of the named ones
///
/// An MCP server whose tools are known from an earlier run is not started.
#[derive(clap::Args)]
#[command(after_help = "\
A named plugin that does not exist is an error. Without names, if a declared plugin fails, the tools \
of the others are listed and the exit code is that of the failure. An untrusted project or a plugin \
that awaits approval is not a failure.

Examples:
  tenon tools
  tenon tools files search
  tenon --json tools | jq '.[].name'")]
pub(crate) struct Args {
    /// List only the tools of these plugins
    #[arg(value_name = "PLUGIN")]
    plugins: Vec<String>,
}

pub(crate) async fn run(common: &Common, Args { plugins }: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    let ids: Vec<&str> = plugins.iter().map(String::as_str).collect();
    if ids.is_empty() {
        return open::with(common, found.platform_to_list(), async |platform| {
            list(common, platform, NOTHING)?;
            Ok(ExitCode::from(open::code_of_failures(platform)))
        })
        .await;
    }
    let platform = found.platform_with_only(&ids);
    open::with(common, platform, async |platform| {
        list(common, platform, NOTHING_OF_THESE)?;
        Ok(ExitCode::SUCCESS)
    })
    .await
}

/// What is said where there are no tools at all, and where those that were named have none.
const NOTHING: &str =
    "no plugin has tools; `tenon plugins` lists the plugins, `tenon doctor` shows problems";
const NOTHING_OF_THESE: &str =
    "no tool of these plugins may be called: they have none, or all are held or disabled";

/// Lists the tools of the plugins that are there.
fn list(common: &Common, platform: &Platform, nothing: &str) -> Result<(), Error> {
    let shown = show(common, platform, nothing);
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

fn show(common: &Common, platform: &Platform, nothing: &str) -> Result<(), Error> {
    let registry = platform.registry();
    if common.json {
        let named: Vec<(ToolDefinition, Owner<'_>)> = registry
            .tools()
            .map(|(plugin, tool)| {
                let definition = ToolDefinition::clone(&tool.definition);
                let definition = ToolDefinition { name: tool.name.to_string(), ..definition };
                let (plugin, kind) = (plugin.id(), plugin.kind());
                (definition, Owner { plugin, tool: &tool.definition.name, kind })
            })
            .collect();
        let listed = named.iter().map(|(definition, owner)| McpJsonWith(definition, owner));
        output::json(&listed.collect::<Vec<_>>())?;
    } else {
        let width = registry.tools().map(|(_, tool)| tool.name.as_str().len()).max().unwrap_or(0);
        output::if_empty(registry.tools().next().is_none(), nothing);
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
    Ok(())
}

/// A tool under the name that callers use, and whose it is.
#[derive(Serialize)]
struct Owner<'a> {
    plugin: &'a str,
    /// What its plugin calls it.
    tool: &'a str,
    kind: PluginKind,
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
