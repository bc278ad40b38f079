//! `tenon check`

use async_trait::async_trait;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tenon_config::admit::Refusal;
use tenon_config::discover::{Candidate, discover};
use tenon_config::files::{self, MAX_COMPONENT_BYTES};
use tenon_config::grant::{CapabilityRow, CapabilityStatus, Eligibility, NeedStatus};
use tenon_host::services::{ApprovalRequest, Approver, GrantDecision};
use tenon_host::types::HookPoint;
use tenon_host::types::name::ToolNameStyle;
use tenon_host::types::text::one_line;
use tenon_host::{Platform, PluginKind, PluginState, check_default_settings, check_settings};

use crate::approval::CapabilityValues;
use crate::component::{Component, ImportCapability, UNREADABLE, WORLDS};
use crate::component_build::{BuildProfile, build};
use crate::error::{Error, Exit};
use crate::listed_by_plugin::ListedByPlugin;
use crate::open::trust;
use crate::plugin_in_folder::{AuthoredPlugins, PluginInFolder};
use crate::templates::Language;
use crate::{Common, open, output, project_folder};

/// Check the plugin of a folder, or those of a project, before they are published
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon check
  tenon check --no-register plugins/hello
  tenon --json check --no-build plugins/hello | jq .findings

Builds the plugin, then compares the manifest with the component's imports, and its exports with the \
worlds of the contract. Then it runs the registration in a host of its own, with nothing granted, checks tools and \
schemas as a host does, and has the plugin list its resources and prompts and its hooks handle the example contexts \
of their points. What fails there may need what is not granted, and is a note. The exit code is 0 if there are no errors.")]
pub(crate) struct Args {
    /// The folder of a plugin or a project [default: this one, or the nearest above it]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Check the last build
    #[arg(long)]
    no_build: bool,
    /// Run nothing of the plugin
    #[arg(long)]
    no_register: bool,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    severity: Severity,
    problem: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Severity {
    Error,
    Warning,
    /// What may be right where more is granted.
    Note,
}

/// What was found so far.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn error(&mut self, problem: impl Into<String>, remedy: Option<String>) {
        self.0.push(Finding { severity: Severity::Error, problem: problem.into(), remedy });
    }

    fn warning(&mut self, problem: impl Into<String>, remedy: Option<String>) {
        self.0.push(Finding { severity: Severity::Warning, problem: problem.into(), remedy });
    }

    fn note(&mut self, problem: impl Into<String>, remedy: Option<String>) {
        self.0.push(Finding { severity: Severity::Note, problem: problem.into(), remedy });
    }
}

/// From which size on a component is said to be large, in bytes. One with an interpreter in it has
/// some twenty million.
const LARGE_COMPONENT_BYTES: usize = 32_000_000;

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let folder = project_folder::of_author(common, args.folder.as_deref());
    let authored = AuthoredPlugins::read(common, &folder)?;
    let builds = |authored: &PluginInFolder| authored.plugin.component().is_some();
    if !args.no_build && authored.plugins.iter().any(builds) {
        trust::require_code(common, &folder)?;
    }
    let mut reports = Vec::new();
    for plugin in &authored.plugins {
        let report = check(plugin, &args).await?;
        if !common.json {
            show(&report)?;
        }
        reports.push(report);
    }
    if common.json {
        authored.print_json(&reports)?;
    }
    let fails = reports.iter().any(|report| report.count(Severity::Error) > 0);
    Ok(if fails { Exit::Failed } else { Exit::Success }.into())
}

/// What was found of a plugin.
#[derive(Debug, Serialize)]
struct Report {
    plugin: String,
    findings: Vec<Finding>,
    registered: Option<Registered>,
}

impl Report {
    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

async fn check(authored: &PluginInFolder, args: &Args) -> Result<Report, Error> {
    let plugin = &authored.plugin;
    if plugin.kind() == PluginKind::Mcp {
        let problem =
            format!("plugin \"{}\" is an MCP server: `tenon doctor` checks it", plugin.id());
        return Err(Error::Input(problem));
    }
    let mut findings = Findings::default();
    // A script is compiled in any case: that writes nothing.
    if !args.no_build || plugin.script().is_some() {
        match build(authored, BuildProfile::Release).await {
            Err(Error::NotBuilt(problem)) => {
                findings.error(format!("it does not build: {problem}"), None)
            }
            Err(Error::Source(problems)) => {
                for problem in problems {
                    let remedy = problem.hint().map(str::to_string);
                    findings.error(problem.to_string(), remedy);
                }
            }
            built => drop(built?),
        }
    }
    let is_built = findings.0.is_empty();
    if let Some(path) = plugin.component().filter(|_| is_built) {
        check_component(&mut findings, authored, path)?;
    }
    check_manifest(&mut findings, authored);
    let is_admitted = check_admission(&mut findings, authored).await;
    // What is wrong so far keeps it from being loaded.
    let is_right = findings.0.iter().all(|finding| finding.severity != Severity::Error);
    let registered = match !args.no_register && is_right && is_admitted {
        true => register(&mut findings, authored).await?,
        false => None,
    };
    Ok(Report { plugin: plugin.id().to_string(), findings: findings.0, registered })
}

/// What a plugin registered, and what it lists.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Registered {
    tools: Vec<String>,
    hooks: Vec<String>,
    providers: Vec<String>,
    evals: Vec<String>,
    resources: Vec<String>,
    resource_templates: Vec<String>,
    prompts: Vec<String>,
}

impl Registered {
    /// The names, by what they are of.
    fn parts(&self) -> [(&'static str, &[String]); 7] {
        let Self { tools, hooks, providers, evals, resources, resource_templates, prompts } = self;
        [
            ("tools", tools),
            ("hooks", hooks),
            ("providers", providers),
            ("evals", evals),
            ("resources", resources),
            ("resource templates", resource_templates),
            ("prompts", prompts),
        ]
    }
}

fn show(report: &Report) -> Result<(), Error> {
    let Report { plugin: id, findings, registered } = report;
    for Finding { severity, problem, remedy } in findings {
        let word = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        output::line(format!("{word}: {}", problem.replace('\n', "\n    ")))?;
        if let Some(remedy) = remedy {
            output::line(format!("  {}", remedy.replace('\n', "\n  ")))?;
        }
    }
    for (kind, names) in registered.iter().flat_map(Registered::parts) {
        if !names.is_empty() {
            output::line(format!("{kind}: {}", one_line(&names.join(", "))))?;
        }
    }
    let count = |many: usize, word: &str| match many {
        1 => format!("1 {word}"),
        many => format!("{many} {word}s"),
    };
    let verdict = match (report.count(Severity::Error), report.count(Severity::Warning)) {
        (0, 0) => "nothing is wrong with it".to_string(),
        (0, warnings) => count(warnings, "warning"),
        (errors, 0) => count(errors, "error"),
        (errors, warnings) => {
            format!("{} and {}", count(errors, "error"), count(warnings, "warning"))
        }
    };
    output::line(format!("plugin \"{id}\": {verdict}"))
}

/// Checks the bytes of a component, and its manifest against them.
fn check_component(
    findings: &mut Findings,
    authored: &PluginInFolder,
    path: &Path,
) -> Result<(), Error> {
    let bytes =
        files::read(path, MAX_COMPONENT_BYTES).map_err(|error| Error::Read(path.into(), error))?;
    let component = match Component::read(&bytes) {
        Ok(component) => component,
        Err(problem) => {
            findings.error(format!("{}: {problem}", path.display()), None);
            return Ok(());
        }
    };
    check_exports(findings, &component);
    check_imports(findings, &component, &authored.plugin.requested());
    check_metadata(findings, authored, &component);
    if bytes.len() > LARGE_COMPONENT_BYTES {
        let remedy = "a release build without debug information is smaller".into();
        findings.warning(
            format!("the component is large: {}", output::size(bytes.len())),
            Some(remedy),
        );
    }
    Ok(())
}

/// Whether there is a world of the contract whose exports it has, all of them and in this version.
fn check_exports(findings: &mut Findings, component: &Component) {
    let exports: Vec<(&str, &str)> = { component.exports.iter() }
        .filter_map(|export| export.strip_prefix("tenon:plugin/")?.split_once('@'))
        .collect();
    let has = |name: &str| exports.iter().any(|(export, _)| *export == name);
    let ours = tenon_contract::version();
    // A draft's versions are as different as they look.
    for (export, version) in exports.iter().filter(|(_, version)| *version != ours) {
        let problem = format!("it exports tenon:plugin/{export}@{version}, and this is {ours}");
        findings.error(problem, Some("build it against the contract of this version".into()));
    }
    let handlers: Vec<&str> =
        WORLDS.iter().map(|(_, handler)| *handler).filter(|handler| has(handler)).collect();
    let exports = |name: &str| Some(format!("export tenon:plugin/{name}@{ours}"));
    if !has("lifecycle") {
        let problem = "it does not export `lifecycle`, which every plugin does";
        findings.error(problem, exports("lifecycle"));
    }
    if handlers.is_empty() {
        let all: Vec<String> = WORLDS.iter().map(|(_, handler)| format!("`{handler}`")).collect();
        findings.error(format!("it exports none of {}", all.join(", ")), None);
    }
    if has("provider-stream") && !has("providers") {
        let problem = "it exports `provider-stream` and not `providers`";
        findings.error(problem, exports("providers"));
    }
}

/// Whether a host lends what it imports, and the manifest requests just that.
fn check_imports(findings: &mut Findings, component: &Component, requested: &CapabilityValues) {
    for import in &component.imports {
        let name = &import.import;
        match import
            .capability
            .and_then(CapabilityRow::named)
            .map(|capability| capability.availability)
        {
            None => findings
                .error(format!("it imports {name}, which no host of this version has"), None),
            Some(Eligibility::StdioBridge | Eligibility::Bridges) => {
                findings.error(
                    format!("it imports {name}, which bridges to MCP servers alone get"),
                    None,
                );
            }
            Some(
                Eligibility::All
                | Eligibility::Plugins
                | Eligibility::PluginsAndRemoteBridge
                | Eligibility::OnRequest { .. },
            ) => {}
        }
    }
    for need in
        CapabilityStatus::all(&component.import_names(), requested, &CapabilityValues::new())
    {
        let Some(problem) = need.problem() else { continue };
        let line = CapabilityRow::named(need.capability).and_then(|capability| {
            match capability.availability {
                Eligibility::OnRequest { line, .. } => Some(line),
                _ => None,
            }
        });
        let remedy = match need.verdict {
            NeedStatus::NotRequested => line.map(|line| {
                format!("add to [capabilities] in plugin.toml, with the values it needs: {line}")
            }),
            _ => Some(format!("take `{}` out of [capabilities] in plugin.toml", need.capability)),
        };
        findings.error(problem, remedy);
    }
}

/// Whether those who only look at the component learn what it is.
fn check_metadata(findings: &mut Findings, authored: &PluginInFolder, component: &Component) {
    // Where it is written down, if anywhere here.
    let language = Language::of_component(&authored.folder).ok();
    let line = |key: &str, value: &str| {
        let language = language?;
        let line = match language {
            Language::JavaScript | Language::TypeScript => format!("\"{key}\": \"{value}\""),
            _ => format!("{key} = \"{value}\""),
        };
        Some(format!("add to {}: {line}", language.file()))
    };
    let has = |key: &str| component.metadata.contains_key(key);
    if let Some(problem) = component.metadata.get(UNREADABLE).and_then(|problem| problem.as_str()) {
        findings.warning(format!("its metadata cannot be read: {problem}"), None);
        return;
    }
    if !has("licenses") {
        findings.warning("it has no license metadata", line("license", "MIT"));
    }
    if !has("description") {
        findings.warning("it has no description", line("description", "…"));
    }
    let said = component.metadata.get("version").and_then(|version| version.as_str());
    let own = authored.plugin.version().map(ToString::to_string);
    if let (Some(said), Some(own)) = (said, own)
        && said != own
    {
        let problem = format!("its version is {said}, but plugin.toml says {own}");
        findings.warning(problem, Some("let both say the same".into()));
    }
}

fn check_manifest(findings: &mut Findings, authored: &PluginInFolder) {
    if authored.plugin.description().is_none() {
        let line = "add to [plugin] in plugin.toml: description = \"…\"";
        findings.warning("plugin.toml has no description", Some(line.into()));
    }
    if authored.plugin.version().is_none() {
        let line = "add to [plugin] in plugin.toml: version = \"0.1.0\"";
        findings.warning("plugin.toml has no version", Some(line.into()));
    }
    check_settings_schema(findings, authored);
}

/// Holds the settings of the manifest against its schema.
fn check_settings_schema(findings: &mut Findings, authored: &PluginInFolder) {
    let Candidate { settings, settings_schema: Some(schema), .. } = &authored.plugin else {
        return;
    };
    if let Err(problem) = check_default_settings(schema, settings) {
        findings.error(problem.to_string(), None);
    }
}

/// Takes over what every host has against it, whatever is granted. Whether there is nothing.
async fn check_admission(findings: &mut Findings, authored: &PluginInFolder) -> bool {
    let Some(refusal) = open::refusal(&authored.plugin).await else { return true };
    match &refusal {
        // Before it was built there is nothing that could be approved.
        Refusal::NotApproved { .. } => {}
        // It need not be on the machine of who writes it.
        Refusal::Missing(_) => findings.warning(refusal.to_string(), Some(refusal.remedy())),
        _ => findings.error(refusal.to_string(), Some(refusal.remedy())),
    }
    false
}

/// Approves of everything, and grants nothing.
struct GrantNone;

#[async_trait]
impl Approver for GrantNone {
    async fn approve(&self, _: &ApprovalRequest) -> GrantDecision {
        GrantDecision::Granted(CapabilityValues::new())
    }
}

/// Runs the handlers of a point on the example context of this point. A guard that fails may guard nothing.
async fn try_hook(
    findings: &mut Findings,
    platform: &Platform,
    authored: &PluginInFolder,
    point: &HookPoint,
) -> Result<(), Error> {
    let report = platform.fire(point, point.example_context(), &open::caller(None)).await?;
    for error in report.handlers.iter().filter_map(|handler| handler.error.as_ref()) {
        let problem =
            format!("its handler of {point} fails on the example context of this point: {error}");
        let remedy = Some(format!(
            "`tenon hook {point} --context JSON` tries another context; docs/reference/hook-contexts.md has the examples"
        ));
        // What it requests is not granted here, which may be the reason.
        match authored.plugin.requested().is_empty() {
            true => findings.error(problem, remedy),
            false => findings.note(problem, remedy),
        }
    }
    Ok(())
}

/// Has the plugin register, and takes over what a host finds wrong with that.
async fn register(
    findings: &mut Findings,
    authored: &PluginInFolder,
) -> Result<Option<Registered>, Error> {
    let id = authored.plugin.id();
    let sources = authored.sources.clone();
    let mut discovery = discover(&sources);
    // What its settings have to be is for those who use it to set.
    let schemas = discovery.candidates.iter_mut().filter_map(|of| of.settings_schema.as_mut());
    schemas.for_each(|schema| drop(schema.remove("required")));
    let builder = Platform::builder().sources(sources).discovery(discovery).approver(GrantNone);
    let platform = builder.build().await?;
    let registry = platform.registry();
    let reports = platform.plugins();
    let registered = match registry.plugin(id) {
        Some(plugin) => {
            for diagnostic in plugin.diagnostics() {
                findings.error(diagnostic.problem.clone(), diagnostic.remedy.clone());
            }
            for tool in plugin.tools() {
                check_name(findings, &authored.plugin, &tool.definition.name);
            }
            let listing = ListedByPlugin::of(&platform, id).await;
            check_listing(findings, &authored.plugin, &listing);
            // A point runs all of its handlers.
            let mut points: Vec<_> = plugin.hooks().iter().map(|hook| &hook.point).collect();
            points.sort_by_key(|point| point.to_string());
            points.dedup();
            for point in points {
                try_hook(findings, &platform, authored, point).await?;
            }
            let registered = Registered {
                tools: plugin.tools().iter().map(|tool| tool.definition.name.clone()).collect(),
                hooks: plugin.hooks().iter().map(|hook| hook.point.to_string()).collect(),
                providers: plugin
                    .providers()
                    .iter()
                    .map(|provider| provider.name.clone())
                    .collect(),
                evals: plugin.evals().iter().map(|eval| eval.definition.name.clone()).collect(),
                resources: listing.resources.names().to_vec(),
                resource_templates: listing.templates.names().to_vec(),
                prompts: listing.prompts.names().to_vec(),
            };
            let has_more = plugin.has_resources() || plugin.has_prompts();
            if registered.parts().iter().all(|(_, names)| names.is_empty()) && !has_more {
                findings.warning("it registers nothing", None);
            }
            Some(registered)
        }
        None => {
            let is_it = |state: PluginState| state != PluginState::Ready;
            let report = reports.iter().find(|report| report.plugin == id && is_it(report.state));
            let detail = report.and_then(|report| report.detail.clone()).unwrap_or_default();
            // It did not come so far as to fail itself: what it imports is not there ungranted.
            let is_loaded = report.is_some_and(|report| report.failure.is_some());
            match !is_loaded && imports_what_is_lent(authored) {
                true => findings.note(
                    format!("its registration is not checked, as nothing is granted: {detail}"),
                    Some(format!("`tenon approve {id}` and `tenon doctor` show it")),
                ),
                // It may read them as it registers.
                false if is_unset(&authored.plugin) => findings.note(
                    format!("its registration is not checked without its settings: {detail}"),
                    None,
                ),
                false => findings.error(format!("it does not register: {detail}"), None),
            }
            None
        }
    };
    drop(registry);
    platform.shutdown().await;
    Ok(registered)
}

/// Whether the plugin lists what it has. One that requests something may need it for that.
fn check_listing(findings: &mut Findings, plugin: &Candidate, listing: &ListedByPlugin) {
    let id = plugin.id();
    for (what, listed) in listing.parts() {
        let Err(error) = &listed.0 else { continue };
        let problem = format!("its {what} are not listed: {error}");
        match plugin.requested().is_empty() {
            true => findings.error(problem, None),
            false => findings.note(
                problem,
                Some(format!(
                    "nothing is granted here; `tenon approve {id}` and `tenon doctor {id}` show them"
                )),
            ),
        }
    }
}

/// Whether a tool is offered by the name that its plugin gives it.
fn check_name(findings: &mut Findings, plugin: &Candidate, name: &str) {
    let style = ToolNameStyle::default();
    let offered = style.render(plugin.id(), plugin.namespace(), name);
    if offered.as_str() != format!("{}{name}", style.prefix(plugin.id(), plugin.namespace())) {
        let problem = format!("its tool \"{name}\" is offered as {offered}");
        let remedy = "with the plugin's id and `__` before it a name has at most 64 characters: \
                      letters, digits, `_` and `-`";
        findings.warning(problem, Some(remedy.into()));
    }
}

/// Whether settings are required that its manifest does not have.
fn is_unset(plugin: &Candidate) -> bool {
    let schema = plugin.settings_schema.as_ref();
    schema.is_some_and(|schema| check_settings(schema, &plugin.settings).is_err())
}

/// Whether a component imports what its manifest requests, and cannot start without.
fn imports_what_is_lent(authored: &PluginInFolder) -> bool {
    let bytes =
        authored.plugin.component().and_then(|path| files::read(path, MAX_COMPONENT_BYTES).ok());
    let component = bytes.and_then(|bytes| Component::read(&bytes).ok());
    let requested = authored.plugin.requested();
    let is_requested = |import: &ImportCapability| {
        import.capability.is_some_and(|capability| requested.contains_key(capability))
    };
    component.is_some_and(|component| component.imports.iter().any(is_requested))
}
