//! `tenon inspect`

use serde::Serialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tenon_host::capability::{Capability, Lent, Need};
use tenon_host::discover::Candidate;
use tenon_host::files::{self, COMPONENT};
use tenon_host::services::Approval;
use tenon_host::{Limits, one_line};
use wit_component::DecodedWasm;
use wit_parser::{Resolve, WorldItem, WorldKey};

use crate::approval::{Values, command_lines};
use crate::error::Error;
use crate::open::Found;
use crate::{Common, open, output};

/// Read a component, or what a plugin requests, without running it
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon inspect target/wasm32-wasip2/release/hello.wasm
  tenon --json inspect hello | jq .capabilities

Of a component that is a plugin of the project it shows what its manifest requests and what was
granted, beside what it imports, and how much it may use.")]
pub(crate) struct Args {
    /// The component, or the plugin that it is
    #[arg(value_name = "FILE.wasm|PLUGIN")]
    component: String,
}

/// What a component is, as `--json` shows it.
#[derive(Serialize)]
pub(crate) struct Inspection {
    /// The worlds of the contract whose exports it has.
    pub(crate) worlds: Vec<&'static str>,
    pub(crate) exports: Vec<String>,
    pub(crate) imports: Vec<String>,
    /// What the imports need.
    needs: Vec<Import>,
    /// The plugin of the project that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<String>,
    /// How that plugin's manifest and its grants stand to what it imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Vec<Need>>,
    /// How much that plugin may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
    pub(crate) metadata: Map<String, Value>,
}

/// What an import needs.
#[derive(Serialize)]
struct Import {
    import: String,
    /// The capability that lends it; nothing for one that no capability has.
    capability: Option<&'static str>,
    /// Whether a plugin gets it without asking.
    granted: bool,
}

/// The worlds of the contract by what they export besides `plugin`.
const WORLDS: [(&str, &str); 5] = [
    ("tool", "tool-handler"),
    ("hook", "hook-handler"),
    ("provider", "provider-handler"),
    ("streaming-provider", "provider-stream"),
    ("eval", "eval-handler"),
];

pub(crate) fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let found = open::found(common);
    let candidates = found.as_ref().map_or(&[][..], |found| &found.discovery.candidates);
    let file = PathBuf::from(&args.component);
    let plugin = candidates.iter().find(|candidate| match file.exists() {
        true => candidate.component().is_some_and(|component| same(component, &file)),
        false => candidate.id() == args.component,
    });
    let path = match plugin.filter(|_| !file.exists()) {
        None => match &found {
            // What can be no id is a file that is not there.
            Ok(found) if !file.exists() && !args.component.contains(['/', '.']) => {
                return Err(found.unknown(&args.component));
            }
            _ => &file,
        },
        Some(plugin) => match (plugin.component(), &found) {
            (Some(component), _) => &component.to_path_buf(),
            (None, Ok(found)) => return show_plugin(common, plugin, &granted(found, plugin)?),
            (None, Err(_)) => &file,
        },
    };
    let bytes = files::read(path, COMPONENT).map_err(|error| Error::Read(path.clone(), error))?;
    let no = |problem: String| Error::Input(format!("{}: {problem}", path.display()));
    let mut inspection = inspect(&bytes).map_err(no)?;
    if let (Some(plugin), Ok(found)) = (plugin, &found) {
        let granted = granted(found, plugin)?;
        let needs = Need::all(&inspection.imports, &plugin.requested(), &granted);
        inspection.limits = Some(plugin.limits().clone());
        inspection.plugin = Some(plugin.id().to_string());
        inspection.capabilities = Some(needs);
    }
    if common.json {
        output::json(&inspection)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Inspection { worlds, exports, needs, metadata, imports: _, plugin, capabilities, limits } =
        inspection;
    for (key, value) in &metadata {
        let value = value.as_str().map_or_else(|| value.to_string(), Into::into);
        output::line(format!("{key}: {}", one_line(&value)))?;
    }
    output::line(format!(
        "worlds: {}",
        if worlds.is_empty() { "none of tenon:plugin".into() } else { worlds.join(", ") }
    ))?;
    output::line("exports:")?;
    for export in exports {
        output::line(format!("  {}", one_line(&export)))?;
    }
    output::line("imports:")?;
    for Import { import, capability, granted } in needs {
        let lent = match (capability, granted) {
            (Some(_), true) => String::new(),
            // What was granted is told below.
            (Some(capability), false) if plugin.is_some() => format!("  (needs `{capability}`)"),
            (Some(capability), false) => format!("  (needs `{capability}`, which is not granted)"),
            (None, _) => "  (no host of this version has it)".into(),
        };
        output::line(format!("  {}{lent}", one_line(&import)))?;
    }
    if let (Some(plugin), Some(capabilities)) = (plugin, capabilities) {
        output::line(format!("capabilities of plugin \"{plugin}\":"))?;
        for Need { capability, verdict, requested, granted, .. } in &capabilities {
            output::line(format!("  {capability}: {verdict}"))?;
            values(requested, granted)?;
        }
        if capabilities.is_empty() {
            output::line("  none")?;
        }
    }
    if let Some(limits) = limits {
        output::line(format!("limits: {limits}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What of a plugin's requests is granted now.
fn granted(found: &Found, plugin: &Candidate) -> Result<Values, Error> {
    let (Some(request), Some(file)) = (plugin.approval_request(), found.approvals()) else {
        return Ok(Values::new());
    };
    Ok(match file.verdict(&request)? {
        Approval::Granted(granted) => request.within(&granted),
        Approval::Undecided | Approval::Stale(_) => Values::new(),
    })
}

/// Shows a plugin that is no component.
fn show_plugin(common: &Common, plugin: &Candidate, granted: &Values) -> Result<ExitCode, Error> {
    let (id, kind, requested) = (plugin.id(), plugin.kind(), plugin.requested());
    let limits = plugin.limits();
    let command = plugin.approval_request().and_then(|request| request.command);
    if common.json {
        output::json(&json!({
            "plugin": id,
            "kind": kind,
            "command": command,
            "requested": requested,
            "granted": granted,
            "limits": limits,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(command) = &command {
        output::line(format!("server of plugin \"{id}\", which has to be approved:"))?;
        output::write(command_lines(command))?;
    }
    output::line(format!("capabilities of plugin \"{id}\" ({kind}):"))?;
    for (capability, of) in &requested {
        output::line(format!("  {capability}"))?;
        values(of, granted.get(capability).map(Vec::as_slice).unwrap_or_default())?;
    }
    if requested.is_empty() {
        output::line("  none")?;
    }
    output::line(format!("limits: {limits}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The values of a capability: those that are requested, and those that are granted in their place.
fn values(requested: &[String], granted: &[String]) -> Result<(), Error> {
    for value in requested {
        let mark = if granted.contains(value) { "granted" } else { "requested" };
        output::line(format!("    {mark:<9} {}", one_line(value)))?;
    }
    for value in granted.iter().filter(|value| !requested.contains(value)) {
        output::line(format!("    {:<9} {}", "granted", one_line(value)))?;
    }
    Ok(())
}

/// Whether two paths lead to the same file.
fn same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Says what a component is.
pub(crate) fn inspect(bytes: &[u8]) -> Result<Inspection, String> {
    if bytes.starts_with(b"\0asm\x01\0\0\0") {
        return Err("it is a core WebAssembly module, not a component; build it with `--target wasm32-wasip2`".into());
    }
    let decoded = wit_component::decode(bytes)
        .map_err(|error| format!("it is not a component: {error:#}"))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err("it is a WIT package, not a component".into());
    };
    let world = &resolve.worlds[world];
    let mut exports: Vec<String> = world.exports.keys().map(|key| name(&resolve, key)).collect();
    // The order in a component is that of its linker, which means nothing.
    exports.sort_unstable();
    let mut needs: Vec<Import> = world
        .imports
        .iter()
        .filter(|(_, item)| has_functions(&resolve, item))
        .map(|(key, _)| {
            let import = name(&resolve, key);
            let capability = Capability::of_import(&import);
            Import {
                granted: capability
                    .is_some_and(|c| matches!(c.lent, Lent::ToAll | Lent::ToPlugins)),
                capability: capability.map(|capability| capability.name),
                import,
            }
        })
        .collect();
    needs.sort_unstable_by(|a, b| a.import.cmp(&b.import));
    let has = |interface: &str| {
        exports.iter().any(|export| export.starts_with(&format!("tenon:plugin/{interface}@")))
    };
    let worlds = match has("plugin") {
        true => WORLDS.iter().filter(|(_, export)| has(export)).map(|(world, _)| *world).collect(),
        false => Vec::new(),
    };
    let imports = needs.iter().map(|need| need.import.clone()).collect();
    let metadata = metadata(bytes)?;
    Ok(Inspection {
        worlds,
        exports,
        imports,
        needs,
        plugin: None,
        capabilities: None,
        limits: None,
        metadata,
    })
}

/// Interfaces without functions are imported for their types, which need nothing.
fn has_functions(resolve: &Resolve, item: &WorldItem) -> bool {
    match item {
        WorldItem::Interface { id, .. } => !resolve.interfaces[*id].functions.is_empty(),
        WorldItem::Function(_) => true,
        WorldItem::Type { .. } => false,
    }
}

fn name(resolve: &Resolve, key: &WorldKey) -> String {
    resolve.name_world_key(key)
}

/// What the component's custom sections say about it.
fn metadata(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let payload =
        wasm_metadata::Payload::from_binary(bytes).map_err(|error| format!("{error:#}"))?;
    let of = payload.metadata();
    let mut metadata = Map::new();
    metadata.insert("size".into(), json!(bytes.len()));
    let texts = [
        ("name", of.name.clone()),
        ("description", of.description.as_ref().map(ToString::to_string)),
        ("version", of.version.as_ref().map(ToString::to_string)),
        ("authors", of.authors.as_ref().map(ToString::to_string)),
        ("licenses", of.licenses.as_ref().map(ToString::to_string)),
        ("source", of.source.as_ref().map(ToString::to_string)),
        ("homepage", of.homepage.as_ref().map(ToString::to_string)),
        ("revision", of.revision.as_ref().map(ToString::to_string)),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            metadata.insert(key.into(), value.into());
        }
    }
    Ok(metadata)
}
