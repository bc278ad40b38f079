//! What can be said of a call without starting any server: by what configurations say of tools, and by what is kept
//! of the servers from when they were last asked.

use tenon_config::discover::Candidate;
use tenon_host::types::McpOperation;
use tenon_host::types::name::nearest;
use tenon_host::{CachedServer, CallError, disabled_tool};

use super::FoundPlugins;
use crate::error::Error;
use crate::tool_arguments::RawArguments;

/// The call that a call of a tool comes to which the host has once for all plugins: of the same tool
/// of the plugin that its arguments name.
pub(crate) fn of_one_plugin(
    found: &FoundPlugins,
    name: &str,
    arguments: &RawArguments,
) -> Option<(String, RawArguments)> {
    McpOperation::of_tool(name)?;
    let id = arguments.text(McpOperation::PLUGIN_ARGUMENT)?;
    let owner = found.discovery.candidates.iter().find(|candidate| candidate.id() == id)?;
    let style = found.sources.name_style(owner);
    let name = style.render(owner.id(), owner.namespace(), name).to_string();
    Some((name, arguments.without(McpOperation::PLUGIN_ARGUMENT)))
}

/// Why a call of a tool cannot succeed, as far as that is known. Hooks may change what a call says, so
/// its arguments are looked at only where there can be none.
pub(crate) fn refusal(
    found: &FoundPlugins,
    owners: &[&Candidate],
    name: &str,
    arguments: &RawArguments,
) -> Option<Error> {
    let (candidates, host_environment) =
        (&found.discovery.candidates, &found.sources.host_environment);
    let [owner] = owners else {
        return match owners {
            // A name that begins as none of the servers' do is a misspelt one.
            [] => not_found(found, name),
            owners => disabled(found, owners, name),
        };
    };
    let style = found.sources.name_style(owner);
    let Some(known) = CachedServer::of(owner, host_environment, found.offers()) else {
        return disabled(found, owners, name);
    };
    let rendered = |tool: &str| style.render(owner.id(), owner.namespace(), tool).to_string();
    let error = match known.tools().find(|tool| rendered(tool) == name) {
        Some(tool) => {
            if let Some(disabled) = disabled_tool(&found.sources.configs, owner, tool) {
                return Some(disabled.into());
            }
            let has_hooks = candidates.iter().any(Candidate::may_handle_hooks);
            let arguments = arguments.for_schema(known.input_schema(tool));
            let problems = if has_hooks { Vec::new() } else { known.problems(tool, &arguments) };
            if problems.is_empty() {
                return None;
            }
            CallError::InvalidInput { what: "arguments", name: name.into(), problems }
        }
        None => {
            let own = name.strip_prefix(&style.prefix(owner.id(), owner.namespace()));
            let renamed = known.tools().find(|tool| Some(*tool) == own).map(rendered);
            let names: Vec<String> = known.tools().map(rendered).collect();
            let meant = || nearest(name, names.iter().map(String::as_str)).map(str::to_string);
            CallError::NotFound { what: "tool", name: name.into(), nearest: renamed.or_else(meant) }
        }
    };
    Some(Error::Known { error: error.into(), plugin: owner.id().to_string() })
}

/// That a tool is disabled, whichever of these plugins has it.
fn disabled(found: &FoundPlugins, owners: &[&Candidate], name: &str) -> Option<Error> {
    let by_owner = owners.iter().map(|owner| {
        let prefix = found.sources.name_style(owner).prefix(owner.id(), owner.namespace());
        let error = disabled_tool(&found.sources.configs, owner, name.strip_prefix(&prefix)?)?;
        // Of a name that was cut or changed, the plugin's own is not known.
        matches!(&error, CallError::Disabled { tool, .. } if tool == name).then_some(error)
    });
    let errors = by_owner.collect::<Option<Vec<CallError>>>()?;
    errors.into_iter().next().map(Error::from)
}

/// That there is no such tool, where one that is known may be meant.
fn not_found(found: &FoundPlugins, name: &str) -> Option<Error> {
    let (sources, offers) = (&found.sources, found.offers());
    let mut meant: Option<(String, String)> = None;
    for candidate in &found.discovery.candidates {
        let known = CachedServer::of(candidate, &sources.host_environment, offers);
        let Some(known) = known else { continue };
        let style = sources.name_style(candidate);
        let (id, namespace) = (candidate.id(), candidate.namespace());
        let names = known.tools().map(|tool| style.render(id, namespace, tool).to_string());
        let names: Vec<String> = names.chain(meant.iter().map(|(name, _)| name.clone())).collect();
        if let Some(nearest) = nearest(name, names.iter().map(String::as_str))
            && meant.as_ref().is_none_or(|(before, _)| before != nearest)
        {
            meant = Some((nearest.to_string(), id.to_string()));
        }
    }
    let (nearest, plugin) = meant?;
    let error = CallError::NotFound { what: "tool", name: name.into(), nearest: Some(nearest) };
    Some(Error::Known { error: error.into(), plugin })
}
