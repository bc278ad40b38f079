//! Step one: from configuration and folders to candidates.
//!
//! It reads manifests and looks at files, and opens no component, no script and no program. A
//! candidate is a claim that there is a plugin; whether it may be one is for [`crate::admit`] to
//! say.
//!
//! Plugins come from five kinds of places ([`Origin`]). What is found goes through filters in this
//! order: manifests are read, candidates inside of other candidates are left out, then those whose
//! id a place of higher precedence has, those that are disabled, and those that an allowlist does
//! not name. What is left is in order of place and id.

mod candidate;
mod facts;
mod roots;
mod server;
mod sidecar;
mod walk;

use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use facts::Facts;
pub use roots::{Origin, USER, WORKSPACE};

use crate::capability::{GrantSet, Grants};
use crate::config::{Config, ContextSettings};
use crate::diagnostic::Diagnostic;
use crate::entry::{EnvironmentPolicy, LogLevel, Protocol, Transport};
use crate::expand::secrets_in;
use crate::files::{self, COMPONENT, Digest};
use crate::filter::ToolFilter;
use crate::limits::Limits;
use crate::lock::Bond;
use crate::manifest::Permissions;
pub use crate::manifest::is_id;
use crate::name::nearest;
use crate::runtime::wasm::Mode;
use crate::secret::{Redactor, Secret, Secrets};
use crate::server::Supervision;
use crate::services::{ApprovalRequest, CommandLine};
use crate::surroundings::Surroundings;
use candidate::Reader;

/// The kinds of plugin. After registration nothing asks for it but reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginKind {
    /// A component.
    Wasm,
    /// An MCP server behind the bridge.
    Mcp,
    /// A script.
    Rhai,
    /// Part of the host.
    Builtin,
}

impl fmt::Display for PluginKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wasm => "wasm",
            Self::Mcp => "mcp",
            Self::Rhai => "rhai",
            Self::Builtin => "builtin",
        })
    }
}

/// All that says where plugins are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sources {
    /// Configurations, in the order of their precedence.
    pub configs: Vec<Config>,
    /// The project: plugins in its `.tenon/plugins` are found.
    pub workspace: Option<PathBuf>,
    /// Folders with plugins that come with the host.
    pub bundled: Vec<PathBuf>,
    /// The environment and the user's folders.
    pub surroundings: Surroundings,
}

/// What was found, and what went wrong meanwhile.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// The candidates, in the order in which they will be loaded.
    pub candidates: Vec<Candidate>,
    /// What was found and is none.
    pub left_out: Vec<LeftOut>,
    /// What could not be read or understood.
    pub diagnostics: Vec<Diagnostic>,
    /// What may be a slip, and has no consequences.
    pub warnings: Vec<Diagnostic>,
    /// The folders that were looked in: what changes there may change what is found.
    pub looked_in: BTreeSet<PathBuf>,
}

/// Something that was found and is no candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The plugin's id.
    pub id: String,
    /// Its kind.
    pub kind: PluginKind,
    /// The kind of place that it was found in.
    pub origin: Origin,
    /// The configuration file or manifest that names it.
    pub named_in: PathBuf,
    /// Why it is none.
    pub reason: Reason,
}

/// Why something that was found is no candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Reason {
    /// Its manifest lies inside of another plugin's folder.
    Nested {
        /// The other plugin.
        within: String,
    },
    /// A place of higher precedence has a plugin of this id.
    Shadowed {
        /// The kind of that place.
        by: Origin,
        /// What names the other plugin.
        named_in: PathBuf,
        /// The name that this one was given and that of the other, where the two differ and one id
        /// is made of both.
        #[serde(skip_serializing_if = "Option::is_none")]
        names: Option<[String; 2]>,
    },
    /// A configuration disables it, or its own entry does.
    Disabled {
        /// The file that says so.
        by: PathBuf,
    },
    /// A configuration has an allowlist, and it is not on it.
    NotAllowed {
        /// The configuration.
        by: PathBuf,
    },
}

impl Reason {
    /// The word for it: `nested`, `shadowed`, `disabled` or `not-allowed`.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Nested { .. } => "nested",
            Self::Shadowed { .. } => "shadowed",
            Self::Disabled { .. } => "disabled",
            Self::NotAllowed { .. } => "not-allowed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nested { within } => write!(f, "nested in the folder of \"{within}\""),
            Self::Shadowed { by, named_in, names } => {
                write!(f, "shadowed by the one that {} names ({by})", named_in.display())?;
                match names {
                    Some([own, other]) => write!(f, ": one id is made of {own:?} and {other:?}"),
                    None => Ok(()),
                }
            }
            Self::Disabled { by } => write!(f, "disabled in {}", by.display()),
            Self::NotAllowed { by } => {
                write!(f, "not on the allowlist in {}", by.display())
            }
        }
    }
}

/// A plugin that may be loaded, if it is admitted.
#[derive(Clone)]
pub struct Candidate {
    pub(crate) id: String,
    /// The name that its id is made of, where it has no manifest.
    name: Option<String>,
    pub(crate) origin: Origin,
    /// The rank of its place among all places.
    rank: usize,
    /// The configuration file or manifest that names it.
    pub(crate) named_in: PathBuf,
    /// The folder of its manifest, where it has one.
    folder: Option<PathBuf>,
    pub(crate) version: Option<semver::Version>,
    pub(crate) description: Option<String>,
    /// The versions of the contract that it is made for.
    pub(crate) api_version: Option<semver::VersionReq>,
    pub(crate) source: Source,
    /// Its manifest, where it has one.
    manifest: Option<Digest>,
    pub(crate) requests: GrantSet,
    /// How its server is started or reached, where that has to be approved: a file that comes with
    /// a project names it.
    pub(crate) command: Option<CommandLine>,
    /// Whether its entry wants it.
    is_enabled: bool,
    /// What it was granted of that; nothing before it is admitted.
    pub(crate) grants: Grants,
    /// The content that was approved, where somebody was asked.
    pub(crate) approved: Option<Digest>,
    /// What it may register; all, where nothing is said.
    pub(crate) permissions: Option<Permissions>,
    pub(crate) limits: Limits,
    /// Which of its tools are wanted.
    pub(crate) tools: ToolFilter,
    /// What it is told of who calls.
    pub(crate) context: ContextSettings,
    pub(crate) settings: Map<String, Value>,
    /// The secrets that it was given.
    pub(crate) given: BTreeMap<String, Secret>,
    /// What of all that must not be shown.
    pub(crate) secrets: Secrets,
    pub(crate) facts: Facts,
    /// What the lock file of its place says of it.
    pub(crate) bond: Option<Bond>,
}

impl fmt::Debug for Candidate {
    /// Shows nothing that could be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("id", &self.id)
            .field("kind", &self.kind())
            .field("named_in", &self.named_in)
            .finish_non_exhaustive()
    }
}

/// What a plugin was made of: two that are equal make the same plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// All that is said of it.
    definition: Digest,
    /// The file that runs, where it could be read.
    content: Option<Digest>,
}

/// Where a candidate's code is.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Wasm { path: PathBuf, mode: Mode },
    Rhai { path: PathBuf },
    Mcp(Box<Server>),
}

/// An MCP server: where it is, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) place: Place,
    pub(crate) startup_timeout: Option<Duration>,
    /// How it is kept running.
    pub(crate) supervision: Supervision,
    pub(crate) wishes: Wishes,
}

/// What is asked of an MCP server, and of the bridge to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    pub(crate) protocol: Protocol,
    /// The folders that it is told to work in: URIs, and names.
    pub(crate) roots: Vec<(String, Option<String>)>,
    pub(crate) log_level: Option<LogLevel>,
    /// How long it may be silent before it is asked whether it lives.
    pub(crate) ping: Option<Duration>,
}

/// Where an MCP server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is a child of the host.
    Child(Program),
    /// It is elsewhere.
    Remote(Remote),
}

/// How to start an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Variables on top of those that it inherits; they may have places for secrets.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) inherited: Inherited,
    pub(crate) folder: Option<PathBuf>,
}

/// What a server inherits of the host's environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Inherited {
    pub(crate) policy: EnvironmentPolicy,
    /// Variables that it gets whatever the policy is.
    pub(crate) names: BTreeSet<String>,
}

/// How to reach an MCP server over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) url: url::Url,
    /// Headers of every request; they may hold secrets, or have places for them.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) transport: Transport,
}

impl Source {
    fn kind(&self) -> PluginKind {
        match self {
            Self::Wasm { .. } => PluginKind::Wasm,
            Self::Rhai { .. } => PluginKind::Rhai,
            Self::Mcp(_) => PluginKind::Mcp,
        }
    }
}

impl Candidate {
    /// The plugin's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The plugin's kind.
    pub fn kind(&self) -> PluginKind {
        self.source.kind()
    }

    /// The kind of place that it was found in.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The configuration file or manifest that names it.
    pub fn named_in(&self) -> &Path {
        &self.named_in
    }

    /// What to look at where an MCP server does not do its part.
    pub(crate) fn what_to_check(&self) -> Option<String> {
        let Source::Mcp(server) = &self.source else { return None };
        let (keys, how) = match server.place {
            Place::Child(_) => {
                ("`command`, `args` and `env`", "speaks over its standard input and output")
            }
            Place::Remote(_) => ("`url` and `headers`", "answers at that address"),
        };
        let named_in = self.named_in.display();
        Some(format!("check its {keys} in {named_in}; it must be an MCP server that {how}"))
    }

    /// The content of its manifest, where it has one.
    pub(crate) fn manifest(&self) -> Option<Digest> {
        self.manifest
    }

    /// Whether it has a manifest of its own.
    pub(crate) fn has_manifest(&self) -> bool {
        self.folder.is_some()
    }

    /// Whether a file names it that has servers and nothing else.
    pub(crate) fn is_of_servers(&self) -> bool {
        !self.has_manifest() && self.named_in.extension().is_some_and(|kind| kind == "json")
    }

    /// The version that its manifest gives it.
    pub fn version(&self) -> Option<&semver::Version> {
        self.version.as_ref()
    }

    /// What its manifest says it is.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Where its code is: a file, or the program of a server. A secret in it is masked.
    pub fn source(&self) -> String {
        let source = match &self.source {
            Source::Wasm { path, .. } | Source::Rhai { path } => path.display().to_string(),
            Source::Mcp(server) => match &server.place {
                Place::Child(program) => program.program.display().to_string(),
                Place::Remote(remote) => remote.url.to_string(),
            },
        };
        Redactor::new(&self.secrets).text(&source).into_owned()
    }

    /// How much it may use.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the names of its tools begin with.
    pub fn namespace(&self) -> &str {
        Permissions::namespace(self.permissions.as_ref(), &self.id)
    }

    /// What it is made of, at this moment. It reads the plugin's file.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let content = self.file().and_then(|file| files::read(file, COMPONENT).ok());
        self.fingerprint_with(content.map(Digest::of))
    }

    /// What it is made of, with this content of its file.
    pub(crate) fn fingerprint_with(&self, content: Option<Digest>) -> Fingerprint {
        Fingerprint { definition: Digest::of(self.definition()), content }
    }

    /// Where a lock file binds it, what its file holds; nothing for one that cannot be read. It reads
    /// the file.
    pub(crate) fn bound_content(&self) -> Option<Digest> {
        self.bond.as_ref().and_then(|_| self.fingerprint().content)
    }

    /// Its component, where it is one.
    pub fn component(&self) -> Option<&Path> {
        match &self.source {
            Source::Wasm { path, .. } => Some(path),
            Source::Rhai { .. } | Source::Mcp(_) => None,
        }
    }

    /// Its script, where it is one.
    pub fn script(&self) -> Option<&Path> {
        match &self.source {
            Source::Rhai { path } => Some(path),
            Source::Wasm { .. } | Source::Mcp(_) => None,
        }
    }

    /// What it requests: values by the names of capabilities.
    pub fn requested(&self) -> BTreeMap<String, Vec<String>> {
        self.requests.texts()
    }

    /// Whether somebody has to approve it: it requests something, or a file that comes with a
    /// project has it start a program or turn to somebody.
    pub(crate) fn needs_approval(&self) -> bool {
        !self.requests.is_empty() || self.command.is_some()
    }

    /// The names of the secrets that have a place in what its server is given.
    pub(crate) fn secrets_of_server(&self) -> BTreeSet<String> {
        let Source::Mcp(server) = &self.source else { return BTreeSet::new() };
        let given = match &server.place {
            Place::Child(program) => &program.environment,
            Place::Remote(remote) => &remote.headers,
        };
        given.values().flat_map(|value| secrets_in(value)).map(str::to_string).collect()
    }

    /// What somebody is asked who approves; nothing for one that needs no approval, or whose code
    /// cannot be read. It reads the plugin's file.
    pub fn approval_request(&self) -> Option<ApprovalRequest> {
        let request = self.needs_approval().then(|| self.request_approval().0)?;
        (request.component.is_some() || self.kind() == PluginKind::Mcp).then_some(request)
    }

    /// Reads values that somebody wants to grant to it, in place of what it requests: `~`, variables
    /// and relative paths are resolved as they would be in its manifest.
    ///
    /// # Errors
    ///
    /// Says which value is none, or is more than the plugin requests.
    pub fn grants_of(
        &self,
        values: &[(String, String)],
        surroundings: &Surroundings,
    ) -> Result<BTreeMap<String, Vec<String>>, String> {
        let folder = self.named_in.parent().unwrap_or(Path::new("."));
        let mut grants = GrantSet::default();
        for (capability, value) in values {
            grants
                .add(capability, value, surroundings, folder)
                .map_err(|error| error.to_string())?;
        }
        let grants = grants.texts();
        let all = |(name, of): (&String, &Vec<String>)| -> Vec<(String, String)> {
            of.iter().map(|value| (name.clone(), value.clone())).collect()
        };
        if let Some((capability, value)) = { grants.iter().flat_map(all) }
            .find(|(capability, value)| !self.requests.may_cover(capability, value))
        {
            let requested = self.requests.texts().remove(&capability).unwrap_or_default();
            return Err(format!(
                "`{capability} = [{value:?}]` is more than plugin \"{}\" requests: {requested:?}",
                self.id
            ));
        }
        Ok(grants)
    }

    /// The same, and the content that somebody is asked about.
    pub(crate) fn request_approval(&self) -> (ApprovalRequest, Option<Digest>) {
        let content = self.fingerprint().content;
        let request = ApprovalRequest {
            plugin: self.id.clone(),
            kind: self.kind(),
            origin: self.origin,
            source: self.source(),
            named_in: self.named_in.clone(),
            capabilities: self.requests.texts(),
            command: self.command.clone(),
            component: content.map(|digest| digest.to_string()),
            manifest: self.manifest.map(|digest| digest.to_string()),
        };
        (request, content)
    }

    /// All that is said of it, for comparing: two that differ in what they mean differ in this.
    fn definition(&self) -> String {
        let Self {
            id,
            name: _,
            origin,
            // Its neighbours' doing.
            rank: _,
            named_in,
            folder,
            version,
            description,
            api_version,
            source,
            requests,
            command,
            // One that is not wanted is not compared.
            is_enabled: _,
            // What it says is in the others.
            manifest: _,
            // What follows from the others, and from the user.
            grants: _,
            approved: _,
            given: _,
            permissions,
            limits,
            tools,
            context,
            settings,
            // They are in what comes before.
            secrets: _,
            facts,
            bond,
        } = self;
        let place = (id, origin, named_in, folder);
        let about = (version, description, api_version);
        let requests = requests.texts();
        format!(
            "{:?}",
            (
                (place, about, source, command, requests, permissions),
                (limits, tools, context, settings, facts, bond)
            )
        )
    }

    /// The file that runs: a component, a script, or a server that lies beside its manifest.
    pub fn file(&self) -> Option<&Path> {
        let file = facts::file_of(&self.source)?;
        let is_own = |folder: &PathBuf| file.starts_with(folder);
        (self.kind() != PluginKind::Mcp || self.folder.as_ref().is_some_and(is_own)).then_some(file)
    }
}

impl Sources {
    /// The same, with configurations that say what those after them say, where they say nothing
    /// themselves.
    pub fn settled(mut self) -> Self {
        Config::inherit(&mut self.configs);
        self
    }
}

/// An id made of a name, where one can be: lower case, and `-` for what an id cannot hold.
pub fn id_of(name: &str) -> Option<String> {
    Some(candidate::id_of(name)).filter(|id| is_id(id))
}

/// Finds what there is.
pub fn discover(sources: &Sources) -> Discovery {
    let configs = &sources.configs;
    let nothing = Config::default();
    let mut discovery = Discovery::default();
    for config in configs {
        discovery.look_in(config.folder());
    }
    for (rank, root) in roots::all(sources, &nothing).iter().enumerate() {
        Reader { root, rank, sources, discovery: &mut discovery }.read();
    }
    discovery.leave_out(nested);
    discovery.leave_out(shadowed);
    discovery.leave_out(|candidates| not_wanted(candidates, configs));
    discovery.candidates.sort_by(|a, b| (a.rank, &a.id).cmp(&(b.rank, &b.id)));
    discovery.report_names_of_one_id();
    discovery.report_settings_for_nobody(configs);
    discovery.warn_of_policies_for_nobody(configs);
    discovery
}

impl Discovery {
    /// The ids of all that was found, also of what was left out, and of what could not be understood.
    pub fn ids(&self) -> BTreeSet<&str> {
        let found = self.candidates.iter().map(|candidate| candidate.id.as_str());
        let left_out = self.left_out.iter().map(|left_out| left_out.id.as_str());
        let broken = self.diagnostics.iter().filter_map(|broken| broken.plugin.as_deref());
        found.chain(left_out).chain(broken).collect()
    }

    /// Notes that a folder was looked in; for one that is not there, the one in which it would be
    /// made.
    fn look_in(&mut self, folder: &Path) {
        let there = folder.ancestors().find(|folder| folder.is_dir());
        self.looked_in.extend(there.map(Path::to_path_buf));
    }

    /// Leaves out the candidates that a filter gives a reason for.
    fn leave_out(&mut self, filter: impl FnOnce(&[Candidate]) -> Vec<Option<Reason>>) {
        let reasons = filter(&self.candidates);
        let found = std::mem::take(&mut self.candidates);
        for (candidate, reason) in found.into_iter().zip(reasons) {
            match reason {
                None => self.candidates.push(candidate),
                Some(reason) => self.left_out.push(LeftOut {
                    kind: candidate.kind(),
                    id: candidate.id,
                    origin: candidate.origin,
                    named_in: candidate.named_in,
                    reason,
                }),
            }
        }
    }

    /// One place that shadows another is meant to; a file that names two by one id is not.
    fn report_names_of_one_id(&mut self) {
        for LeftOut { id, named_in, reason, .. } in &self.left_out {
            if let Reason::Shadowed { named_in: other, names: Some([own, first]), .. } = reason
                && named_in == other
            {
                let problem =
                    format!("one id is made of {first:?} and {own:?}, and it is the first");
                self.diagnostics.push(
                    Diagnostic::of(id, problem)
                        .file(named_in.display())
                        .remedy("give one of them another name"),
                );
            }
        }
    }

    fn report_settings_for_nobody(&mut self, configs: &[Config]) {
        let found = self.candidates.iter().map(|candidate| candidate.id.clone());
        let ids: BTreeSet<String> =
            found.chain(self.left_out.iter().map(|l| l.id.clone())).collect();
        for config in configs {
            for id in config.settings.keys().filter(|id| !ids.contains(*id)) {
                let problem = format!("[settings.{id}] is for no plugin");
                let known = ids.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                self.diagnostics.push(
                    Diagnostic::in_file(config.path.display(), problem)
                        .remedy(format!("the plugins are: {known}")),
                );
            }
        }
    }

    /// A policy for a plugin that is elsewhere, or that was not installed, is no mistake. In the
    /// configuration of a user, which is for all projects, it is not even worth a word, unless it
    /// looks like another.
    fn warn_of_policies_for_nobody(&mut self, configs: &[Config]) {
        let mut warnings = Vec::new();
        let ids = self.ids();
        for config in configs {
            let own = config.policy.plugins.keys().map(String::as_str);
            for id in own.filter(|id| !ids.contains(id)) {
                let problem = format!("[policy.plugins.{id}] is for no plugin that is here");
                let problem = match nearest(id, ids.iter().copied()) {
                    Some(meant) => format!("{problem}; did you mean \"{meant}\"?"),
                    None if config.origin == Origin::User => continue,
                    None => problem,
                };
                warnings.push(Diagnostic::in_file(config.path.display(), problem));
            }
        }
        self.warnings.extend(warnings);
    }
}

/// A plugin may bring others along, in a folder of samples for instance; they are not meant.
fn nested(candidates: &[Candidate]) -> Vec<Option<Reason>> {
    // As they really lie: `./../two` is not in `.`.
    let real = |candidate: &Candidate| candidate.folder.as_ref()?.canonicalize().ok();
    let places: Vec<Option<PathBuf>> = candidates.iter().map(real).collect();
    let folders: HashMap<&Path, &str> = { places.iter().zip(candidates) }
        .filter_map(|(place, candidate)| Some((place.as_deref()?, candidate.id.as_str())))
        .collect();
    let outer = |place: &Option<PathBuf>| {
        let mut above = place.as_deref()?.ancestors().skip(1);
        let within = above.find_map(|folder| folders.get(folder))?;
        Some(Reason::Nested { within: within.to_string() })
    };
    places.iter().map(outer).collect()
}

/// Of several with one id, the first counts; candidates are in the order of precedence.
fn shadowed(candidates: &[Candidate]) -> Vec<Option<Reason>> {
    let mut reasons = Vec::new();
    let mut first: HashMap<&str, &Candidate> = HashMap::new();
    for candidate in candidates {
        let known = *first.entry(&candidate.id).or_insert(candidate);
        let names = candidate.name.clone().zip(known.name.clone());
        let names = names.filter(|(own, other)| own != other);
        let reason = Reason::Shadowed {
            by: known.origin,
            named_in: known.named_in.clone(),
            names: names.map(<[String; 2]>::from),
        };
        reasons.push((!std::ptr::eq(known, candidate)).then_some(reason));
    }
    reasons
}

fn not_wanted(candidates: &[Candidate], configs: &[Config]) -> Vec<Option<Reason>> {
    let reason = |candidate: &Candidate| {
        if !candidate.is_enabled {
            return Some(Reason::Disabled { by: candidate.named_in.clone() });
        }
        let disabled = configs.iter().find(|c| c.discovery.disabled.contains(&candidate.id));
        if let Some(config) = disabled {
            return Some(Reason::Disabled { by: config.path.clone() });
        }
        let not_allowed = configs.iter().find(|config| {
            let allowlist = &config.discovery.allowlist;
            !allowlist.is_empty() && !allowlist.contains(&candidate.id)
        });
        not_allowed.map(|config| Reason::NotAllowed { by: config.path.clone() })
    };
    candidates.iter().map(reason).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn find(text: &str) -> Discovery {
        let config = Config::parse(text, "/project/tenon.toml").expect("the configuration is read");
        discover(&Sources { configs: vec![config], ..Sources::default() })
    }

    #[test]
    fn files_are_named_after_their_stem() {
        let discovery = find(r#"plugins.wasm = ["My Tools.wasm"]"#);
        assert_eq!(discovery.candidates[0].id, "my-tools");
        let Source::Wasm { path, .. } = &discovery.candidates[0].source else { panic!() };
        assert_eq!(path, Path::new("/project/My Tools.wasm"));
    }

    #[test]
    fn an_unset_variable_costs_its_entry_only() {
        let discovery = find(
            r#"
            [plugins]
            mcp = [{ name = "a", command = "x", env = { K = "${NOPE}" } }, { name = "b", command = "./y" }]
            "#,
        );
        assert_eq!(discovery.candidates.len(), 1);
        let Source::Mcp(server) = &discovery.candidates[0].source else { panic!() };
        let Place::Child(program) = &server.place else { panic!() };
        assert_eq!(program.program, Path::new("/project/./y"));
        assert_eq!(discovery.diagnostics[0].plugin.as_deref(), Some("a"));
    }

    #[test]
    fn settings_for_nobody_are_reported() {
        let discovery = find("plugins.wasm = [\"a.wasm\"]\n[settings.b]\nx = 1");
        assert_eq!(discovery.diagnostics[0].remedy.as_deref(), Some("the plugins are: a"));
    }

    /// A machine with folders at every place, and what is found on it: a line for each candidate
    /// and each that is none.
    struct Machine {
        folder: tempfile::TempDir,
        configs: Vec<Config>,
    }

    impl Machine {
        fn new(project: &str, user: &str, plugins: &[&str]) -> Self {
            let folder = tempfile::tempdir().expect("there is room for a folder");
            let path = |name: &str| folder.path().join(name);
            let project = Config::parse(project, path("project/tenon.toml")).unwrap();
            let user = Config::parse(user, path("config/config.toml")).unwrap().of_user();
            for plugin in plugins {
                let id = plugin.rsplit('/').next().unwrap();
                fs::create_dir_all(path(plugin)).unwrap();
                let manifest = format!(
                    "plugin.id = {id:?}\nruntime = {{ kind = \"rhai\", path = \"x.rhai\" }}"
                );
                fs::write(path(plugin).join("plugin.toml"), manifest).unwrap();
            }
            Self { folder, configs: vec![project, user] }
        }

        fn found(&self) -> Vec<String> {
            let path = |name: &str| self.folder.path().join(name);
            let surroundings = Surroundings {
                environment: [("TENON_PLUGINS".into(), path("env").into())].into(),
                configuration: Some(path("config")),
                ..Surroundings::default()
            };
            let discovery = discover(&Sources {
                configs: self.configs.clone(),
                workspace: Some(path("project")),
                bundled: vec![path("bundled")],
                surroundings,
            });
            assert_eq!(discovery.diagnostics, []);
            let found = discovery.candidates.iter().map(|c| format!("{} {}", c.origin, c.id));
            let left_out = discovery.left_out.iter().map(|left_out| {
                let reason = left_out.reason.to_string();
                let reason = reason.replace(&*self.folder.path().to_string_lossy(), "");
                format!("{} {}: {reason}", left_out.origin, left_out.id)
            });
            found.chain(left_out).collect()
        }
    }

    #[test]
    fn places_have_an_order_and_the_first_of_an_id_wins() {
        let machine = Machine::new(
            "plugins = { folders = [\"own\"], scripts = [\"z.rhai\", \"b.rhai\"] }",
            "plugins.scripts = [\"u.rhai\", \"z.rhai\"]",
            &[
                "project/own/d",
                "project/own/c",
                "env/c",
                "env/e",
                "project/.tenon/plugins/w",
                "config/plugins/w",
                "bundled/k",
                "bundled/e",
            ],
        );
        assert_eq!(
            machine.found(),
            [
                "config z",
                "config b",
                "config c",
                "config d",
                "environment e",
                "workspace w",
                "user u",
                "bundled k",
                "environment c: shadowed by the one that /project/own/c/plugin.toml names (config)",
                "user z: shadowed by the one that /project/tenon.toml names (config)",
                "user w: shadowed by the one that /project/.tenon/plugins/w/plugin.toml names (workspace)",
                "bundled e: shadowed by the one that /env/e/plugin.toml names (environment)",
            ]
        );
    }

    #[test]
    fn two_names_that_make_one_id_are_both_told() {
        let one = |name| format!("{{ name = {name:?}, command = \"true\" }}");
        let found = find(&format!("plugins.mcp = [{}, {}]", one("My Server"), one("my_server")));
        assert_eq!(found.candidates.len(), 2);
        let found = find(&format!("plugins.mcp = [{}, {}]", one("My Server"), one("my-server")));
        assert_eq!(
            found.left_out[0].reason.to_string(),
            "shadowed by the one that /project/tenon.toml names (config): one id is made of \
             \"my-server\" and \"My Server\""
        );
        assert_eq!(
            found.diagnostics[0].problem,
            "one id is made of \"My Server\" and \"my-server\", and it is the first"
        );
        // The same name, twice, is how one place shadows another.
        let found = find(&format!("plugins.mcp = [{}, {}]", one("s"), one("s")));
        assert!(found.diagnostics.is_empty() && found.left_out.len() == 1);
    }

    #[test]
    fn what_is_nested_disabled_or_not_allowed_is_left_out() {
        let machine = Machine::new(
            "discovery = { disabled = [\"a\"] }",
            "discovery = { allowlist = [\"a\", \"b\"] }",
            &["env/a", "env/b", "env/b/samples/inner", "env/c"],
        );
        assert_eq!(
            machine.found(),
            [
                "environment b",
                "environment inner: nested in the folder of \"b\"",
                "environment a: disabled in /project/tenon.toml",
                "environment c: not on the allowlist in /config/config.toml",
            ]
        );
    }

    #[test]
    fn ten_thousand_folders_are_no_burden() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..100 {
            for k in 0..100 {
                fs::create_dir_all(folder.path().join(format!("{i}/{k}"))).unwrap();
            }
        }
        let bundled = vec![folder.path().into()];
        let discovery = discover(&Sources { bundled, ..Sources::default() });
        assert!(discovery.candidates.is_empty() && discovery.diagnostics.is_empty());
    }
}
