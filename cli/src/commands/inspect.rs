//! `tenon inspect`

use serde::Serialize;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use tenon_config::config::InstanceMode;
use tenon_config::discover::Candidate;
use tenon_config::files::{self, MAX_COMPONENT_BYTES};
use tenon_config::grant::CapabilityStatus;
use tenon_config::policy::ConfinementMode;
use tenon_host::Limits;
use tenon_host::services::{GrantDecision, GrantWarning};
use tenon_host::types::text::one_line;

use crate::approval::{CapabilityValues, command_form, command_lines};
use crate::component::{Component, ImportCapability};
use crate::error::Error;
use crate::open::FoundPlugins;
use crate::plugin_in_folder::same;
use crate::{Common, open, output};

/// Show what a component or plugin imports and requests, without running it
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon inspect target/wasm32-wasip2/release/hello.wasm
  tenon inspect --wit hello
  tenon --json inspect hello | jq .capabilities

For a plugin of the project it also shows what its manifest requests, what is granted, and its limits.")]
pub(crate) struct Args {
    /// The component, or the plugin that it is
    #[arg(value_name = "FILE.wasm|PLUGIN")]
    component: String,
    /// Print what it imports and exports as WIT
    #[arg(long)]
    wit: bool,
}

/// What a component is, as `--json` shows it.
#[derive(Serialize)]
struct Inspection {
    /// The worlds of the contract whose exports it has.
    worlds: Vec<&'static str>,
    /// The version of the contract.
    contract: Option<String>,
    exports: Vec<String>,
    imports: Vec<String>,
    /// What the imports need.
    needs: Vec<ImportCapability>,
    /// The plugin of the project that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<String>,
    /// How that plugin's manifest and its grants stand to what it imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Vec<CapabilityStatus>>,
    /// What some of that means, which nobody should grant without knowing it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<GrantWarning>,
    /// The names of the skills that it carries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skills: Vec<String>,
    /// On which instance its calls run.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<InstanceMode>,
    /// How much that plugin may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
    metadata: Map<String, Value>,
}

/// What is said of a component, in the order in which people read it.
const KEYS: [&str; 11] = [
    "name",
    "version",
    "description",
    "authors",
    "licenses",
    "source",
    "homepage",
    "revision",
    "size",
    "sha256",
    "producers",
];

pub(crate) fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let file = PathBuf::from(&args.component);
    let found = match open::found(common) {
        // It may be a plugin of the configuration that cannot be read.
        Err(error) if !file.exists() => return Err(error),
        found => found,
    };
    let candidates = found.as_ref().map_or(&[][..], |found| &found.discovery.candidates);
    // A plugin may be named like a folder.
    let is_file = file.exists() && !file.is_dir();
    let plugin = candidates.iter().find(|candidate| match is_file {
        true => candidate.component().is_some_and(|component| same(component, &file)),
        false => candidate.id() == args.component,
    });
    let path = match plugin.filter(|_| !is_file) {
        None => match &found {
            // What can be no id is a file that is not there.
            Ok(found) if !file.exists() && !args.component.contains(['/', '.']) => {
                return Err(found.unknown(&args.component));
            }
            _ => &file,
        },
        Some(plugin) => match (plugin.component(), &found) {
            (Some(component), _) => &component.to_path_buf(),
            (None, Ok(_)) if args.wit => {
                let problem = format!("plugin \"{}\" is not a component", plugin.id());
                return Err(Error::Input(problem));
            }
            (None, Ok(found)) => return show_plugin(common, found, plugin),
            (None, Err(_)) => &file,
        },
    };
    let bytes =
        files::read(path, MAX_COMPONENT_BYTES).map_err(|error| Error::Read(path.clone(), error))?;
    let no = |problem: String| Error::Input(format!("{}: {problem}", path.display()));
    let component = Component::read(&bytes).map_err(no)?;
    if args.wit {
        let wit = component.wit().map_err(no)?;
        match common.json {
            true => output::json(&json!({ "wit": wit }))?,
            false => output::text(wit.trim_end())?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut inspection = Inspection::of(component);
    if let (Some(plugin), Ok(found)) = (plugin, &found) {
        let granted = granted(found, plugin)?;
        let needs = CapabilityStatus::all(&inspection.imports, &plugin.requested(), &granted);
        inspection.warnings = warnings(found, plugin, &plugin.requested(), &granted);
        inspection.skills = plugin.skill_names().map(Into::into).collect();
        inspection.instance = plugin.instance();
        inspection.limits = Some(plugin.limits().clone());
        inspection.plugin = Some(plugin.id().to_string());
        inspection.capabilities = Some(needs);
    }
    if common.json {
        output::json(&inspection)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Inspection {
        worlds,
        contract,
        exports,
        needs,
        metadata,
        imports: _,
        plugin,
        capabilities,
        warnings,
        skills,
        instance,
        limits,
    } = inspection;
    for key in KEYS {
        let Some(value) = metadata.get(key) else { continue };
        let value = match value {
            Value::String(value) => one_line(value).into_owned(),
            Value::Object(producers) => listed(producers),
            value => value.to_string(),
        };
        output::line(format!("{key}: {value}"))?;
    }
    output::line(match (&contract, worlds.is_empty()) {
        (Some(version), false) => {
            format!("worlds: {} of tenon:plugin@{}", worlds.join(", "), one_line(version))
        }
        _ => "worlds: none of tenon:plugin".into(),
    })?;
    output::line("exports:")?;
    for export in exports {
        output::line(format!("  {}", one_line(&export)))?;
    }
    output::line("imports:")?;
    for ImportCapability { import, capability, granted } in needs {
        let availability = match (capability, granted) {
            (Some(_), true) => String::new(),
            // What was granted is told below.
            (Some(capability), false) if plugin.is_some() => format!("  (needs `{capability}`)"),
            (Some(capability), false) => format!("  (needs `{capability}`, which is not granted)"),
            (None, _) => "  (no host of this version has it)".into(),
        };
        output::line(format!("  {}{availability}", one_line(&import)))?;
    }
    if let (Some(plugin), Some(capabilities)) = (plugin, capabilities) {
        output::line(format!("capabilities of plugin \"{plugin}\":"))?;
        for CapabilityStatus { capability, verdict, requested, granted, .. } in &capabilities {
            output::line(format!("  {capability}: {verdict}"))?;
            values(capability, requested, granted, &warnings)?;
        }
        if capabilities.is_empty() {
            output::line("  none")?;
        }
    }
    skill_line(skills.iter().map(String::as_str))?;
    if let Some(instance) = instance.filter(|instance| *instance != InstanceMode::default()) {
        output::line(format!("instance: {}", instance.as_str()))?;
    }
    if let Some(limits) = limits {
        output::line(format!("limits: {limits}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What of a plugin's requests is granted now.
fn granted(found: &FoundPlugins, plugin: &Candidate) -> Result<CapabilityValues, Error> {
    let (Some(request), Some(file)) = (plugin.approval_request(), found.approvals()) else {
        return Ok(CapabilityValues::new());
    };
    Ok(match file.verdict(&request)? {
        GrantDecision::Granted(granted) => request.within(&granted),
        GrantDecision::Undecided | GrantDecision::Stale(_) => CapabilityValues::new(),
    })
}

/// What some values mean that are requested or granted.
fn warnings(
    found: &FoundPlugins,
    plugin: &Candidate,
    requested: &CapabilityValues,
    granted: &CapabilityValues,
) -> Vec<GrantWarning> {
    let (host_environment, deciding) = (&found.sources.host_environment, &found.discovery.deciding);
    let mut warnings = plugin.warnings_of(requested, host_environment, deciding);
    for warning in plugin.warnings_of(granted, host_environment, deciding) {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

/// Shows a plugin that is no component.
fn show_plugin(
    common: &Common,
    found: &FoundPlugins,
    plugin: &Candidate,
) -> Result<ExitCode, Error> {
    let granted = granted(found, plugin)?;
    let (id, kind, requested) = (plugin.id(), plugin.kind(), plugin.requested());
    let limits = plugin.limits();
    let command = plugin.command_line();
    let warnings = warnings(found, plugin, &requested, &granted);
    if common.json {
        output::json(&json!({
            "plugin": id,
            "kind": kind,
            "isConfined": plugin.confinement().map(|mode| mode != ConfinementMode::Unconfined),
            "command": command.map(command_form),
            "requested": requested,
            "granted": granted,
            "warnings": warnings,
            "skills": plugin.skill_names().collect::<Vec<_>>(),
            "limits": limits,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(command) = command {
        output::line(format!("server of plugin \"{id}\", which must be approved:"))?;
        output::write(command_lines(command))?;
    }
    output::line(format!("capabilities of plugin \"{id}\" ({kind}):"))?;
    let is_unconfined = plugin.confinement() == Some(ConfinementMode::Unconfined);
    for (capability, of) in &requested {
        output::line(format!("  {capability}"))?;
        let granted = granted.get(capability).map(Vec::as_slice).unwrap_or_default();
        values(capability, of, granted, &warnings)?;
    }
    if is_unconfined {
        output::line("  unconfined: it reaches whatever you can")?;
    } else if requested.is_empty() {
        output::line("  none")?;
    }
    skill_line(plugin.skill_names())?;
    output::line(format!("limits: {limits}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Names the skills that a plugin carries, where there are any.
fn skill_line<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    let names: Vec<&str> = names.collect();
    match names.is_empty() {
        true => Ok(()),
        false => output::line(format!("skills: {}", names.join(", "))),
    }
}

/// The values of a capability: those that are requested, and those that are granted in their place.
fn values(
    capability: &str,
    requested: &[String],
    granted: &[String],
    warnings: &[GrantWarning],
) -> Result<(), Error> {
    let line = |mark: &str, value: &String| {
        let is_it = |w: &&GrantWarning| w.capability == capability && w.value == *value;
        let meaning = warnings.iter().find(is_it);
        let meaning = meaning.map(|w| format!(" — {}", w.meaning)).unwrap_or_default();
        output::line(format!("    {mark:<9} {}{meaning}", one_line(value)))
    };
    for value in requested {
        line(if granted.contains(value) { "granted" } else { "requested" }, value)?;
    }
    for value in granted.iter().filter(|value| !requested.contains(value)) {
        line("granted", value)?;
    }
    Ok(())
}

impl Inspection {
    fn of(component: Component) -> Self {
        let imports = component.import_names();
        let Component { worlds, contract, exports, imports: needs, metadata, .. } = component;
        Self {
            worlds,
            contract,
            exports,
            imports,
            needs,
            plugin: None,
            capabilities: None,
            warnings: Vec::new(),
            skills: Vec::new(),
            instance: None,
            limits: None,
            metadata,
        }
    }
}

/// What made a component, in one line: languages, then tools, each with its version.
fn listed(producers: &Map<String, Value>) -> String {
    let tools = producers.values().filter_map(Value::as_object).flatten();
    let tools = tools.map(|(tool, version)| match version.as_str().unwrap_or_default() {
        "" => one_line(tool).into_owned(),
        version => format!("{} {}", one_line(tool), one_line(version)),
    });
    tools.collect::<Vec<_>>().join(", ")
}
