//! `tenon tools`

use serde::Serialize;
use std::process::ExitCode;
use tenon_host::types::ToolDefinition;
use tenon_host::types::mcp_json::McpJsonWith;
use tenon_host::types::name::nearest;
use tenon_host::types::text::one_line;
use tenon_host::{CallError, Platform, PluginKind, PluginState};

use crate::error::Error;
use crate::tool_arguments::{ArgumentHelp, rows};
use crate::{Common, open, output};

/// List the tools of all plugins, or show the named ones with their arguments
///
/// An MCP server whose tools are known from an earlier run is not started.
#[derive(clap::Args)]
#[command(after_help = "\
A named plugin or tool that does not exist is an error. Without names, if a declared plugin fails, the tools \
of the others are listed and the exit code is that of the failure. An untrusted project or a plugin \
that awaits approval is not a failure.

Examples:
  tenon tools
  tenon tools files search
  tenon tools files__read
  tenon --json tools | jq '.[].name'")]
pub(crate) struct Args {
    /// Show only these tools, or the tools of these plugins
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

pub(crate) async fn run(common: &Common, Args { names }: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    if names.is_empty() {
        return open::with(common, found.platform_to_list(), async |platform| {
            list(common, platform, None)?;
            Ok(ExitCode::from(open::code_of_failures(platform)))
        })
        .await;
    }
    // Of a name that is nobody's, the host says so.
    let ids: Vec<String> =
        names.iter().map(|name| found.owner_of(name).unwrap_or(name).to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    open::with(common, found.platform_with_only(&ids), async |platform| {
        let registry = platform.registry();
        for (name, id) in names.iter().zip(&ids).filter(|(name, id)| name != id) {
            if registry.tool(name).is_none() {
                let own = registry.tools().filter(|(plugin, _)| &**plugin.id() == *id);
                let own: Vec<&str> = own.map(|(_, tool)| tool.name.as_str()).collect();
                let nearest = nearest(name, own.into_iter()).map(str::to_string);
                let (what, name) = ("tool", name.clone());
                return Err(CallError::NotFound { what, name, nearest }.into());
            }
        }
        list(common, platform, Some(&names))?;
        for id in ids.iter().filter(|_| !common.json) {
            let confinement = platform.server(id).and_then(|server| server.confinement);
            if confinement.is_some_and(|confinement| !confinement.is_confined) {
                output::note(&format!(
                    "plugin \"{id}\" is unconfined: it reaches whatever you can"
                ));
            }
        }
        Ok(ExitCode::SUCCESS)
    })
    .await
}

/// What is said where there are no tools at all, and where those that were named have none.
const NOTHING: &str =
    "no plugin has tools; `tenon plugins` lists the plugins, `tenon doctor` shows problems";
const NOTHING_OF_THESE: &str =
    "no tool of these plugins may be called: they have none, or all are held or disabled";

/// Lists the tools of the plugins that are there; the named ones with their arguments.
fn list(common: &Common, platform: &Platform, names: Option<&[String]>) -> Result<(), Error> {
    let shown = show(common, platform, names);
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

fn show(common: &Common, platform: &Platform, names: Option<&[String]>) -> Result<(), Error> {
    let registry = platform.registry();
    let is_named = |plugin: &str, tool: &str| {
        names.is_none_or(|names| names.iter().any(|name| name == plugin || name == tool))
    };
    let tools: Vec<_> = { registry.tools() }
        .filter(|(plugin, tool)| is_named(plugin.id(), tool.name.as_str()))
        .collect();
    if common.json {
        let named: Vec<(ToolDefinition, ToolOrigin<'_>)> = { tools.iter() }
            .map(|(plugin, tool)| {
                let definition = ToolDefinition::clone(&tool.definition);
                let definition = ToolDefinition { name: tool.name.to_string(), ..definition };
                let (plugin, kind) = (plugin.id(), plugin.kind());
                (definition, ToolOrigin { plugin, tool: &tool.definition.name, kind })
            })
            .collect();
        let listed = named.iter().map(|(definition, owner)| McpJsonWith(definition, owner));
        return output::json(&listed.collect::<Vec<_>>());
    }
    output::if_empty(tools.is_empty(), if names.is_some() { NOTHING_OF_THESE } else { NOTHING });
    let width = tools.iter().map(|(_, tool)| tool.name.as_str().len()).max();
    // Where arguments stand below it, it is no column.
    let width = width.filter(|_| names.is_none()).unwrap_or_default();
    for (_, tool) in &tools {
        let about = first_sentence(&tool.definition.description);
        let about = one_line(&about);
        let (name, own) = (tool.name.as_str(), &tool.definition.name);
        // Not every name is one that models can take.
        let renamed = match name.ends_with(own) {
            true => String::new(),
            false => format!(" (\"{}\" of its plugin)", one_line(own)),
        };
        output::line(format!("{name:width$}  {about}{renamed}").trim_end())?;
        if names.is_some() {
            show_arguments(&tool.definition.input_schema)?;
        }
    }
    Ok(())
}

/// Shows the arguments of a tool, a line each.
fn show_arguments(schema: &str) -> Result<(), Error> {
    let rows = rows(schema);
    let width = |of: fn(&ArgumentHelp) -> &str| {
        rows.iter().map(of).map(|text| text.chars().count()).max().unwrap_or_default()
    };
    let (names, values) = (width(|row| &row.name), width(|row| &row.values));
    for ArgumentHelp { name, values: own, description } in &rows {
        output::line(format!("  {name:names$}  {own:values$}  {description}").trim_end())?;
    }
    Ok(())
}

/// A tool under the name that callers use, and whose it is.
#[derive(Serialize)]
struct ToolOrigin<'a> {
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
