//! What was found: a claim that there is a plugin, and where.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

use super::{MachineFacts, PluginKind, PluginOrigin, machine_facts};
use crate::approver::{ApprovalRequest, GrantWarning, ServerParameters};
use crate::config::combine::PluginOwner;
use crate::config::{ContextPassthroughSettings, InstanceMode, Supervision};
use crate::discover::trust::TrustedProgram;
use crate::entry::{
    EnvironmentPolicy, HandshakeMode, McpLogLevel, RegistrationSettings, Transport,
};
use crate::expand::secrets_in;
use crate::files::{self, Digest, MAX_COMPONENT_BYTES};
use crate::grant::{GrantSet, Grants};
use crate::host_environment::HostEnvironment;
use crate::limits::Limits;
use crate::lock::LockedDigests;
use crate::manifest::RegistrationPermissions;
use crate::path_context::PathContext;
use crate::pins::{PinMode, PinSubject};
use crate::policy::ConfinementMode;
use crate::secret::{Redactor, Secret, SecretValues};
use crate::skills::{PluginSkills, Skill};
use crate::tool_hooks::ServerHook;

/// A plugin that may be loaded, if it is admitted.
#[derive(Clone)]
pub struct Candidate {
    /// The id, which names the plugin everywhere.
    pub id: String,
    /// The name that its id is made of, where it has no manifest.
    pub name: Option<String>,
    pub(crate) origin: PluginOrigin,
    /// Whether no project has a say in it: a plugin of its user's that may handle hooks, and so guard against what
    /// a project does, or a server of its user's that one of these may call.
    pub is_shielded: bool,
    /// The rank of its place among all places.
    pub rank: usize,
    /// The configuration file or manifest that names it.
    pub named_in: PathBuf,
    /// The folder of its manifest, where it has one.
    pub folder: Option<PathBuf>,
    /// The version, as the manifest has it.
    pub version: Option<semver::Version>,
    /// What it is for, as the manifest has it.
    pub description: Option<String>,
    /// The versions of the contract that it is made for.
    pub api_version: Option<semver::VersionReq>,
    /// What runs it, and where that is.
    pub source: CodeSource,
    /// Its manifest, where it has one.
    pub manifest: Option<Digest>,
    /// The skills that it carries.
    pub skills: Option<Arc<PluginSkills>>,
    /// What it requests of each capability.
    pub requests: GrantSet,
    /// What some of that means, for those who approve.
    pub warnings: Vec<GrantWarning>,
    /// How its server is started or reached, where that has to be approved: a file that comes with
    /// a project names it.
    pub command: Option<ServerParameters>,
    /// Whether that has been approved already, with all of its project.
    pub is_command_approved: bool,
    /// Whether its entry wants it.
    pub is_enabled: bool,
    /// What it was granted of that; nothing before it is admitted.
    pub grants: Grants,
    /// The content that was approved, where somebody was asked.
    pub approved: Option<Digest>,
    /// The content that its code has to have, where its user trusts the project that it is of as that was.
    pub trusted: Option<Digest>,
    /// What its server has to be started with, likewise.
    pub programs: Option<Arc<TrustedProgram>>,
    /// What it may register; all, where nothing is said.
    pub permissions: Option<RegistrationPermissions>,
    /// How much it may use.
    pub limits: Limits,
    /// What its entry says of what it offers.
    pub rules: RegistrationSettings,
    /// What it is told of who calls.
    pub context: ContextPassthroughSettings,
    /// Its configuration, as the plugin reads it.
    pub settings: Map<String, Value>,
    /// Its folder for data of its own, which need not be there: `${data}` in its manifest and settings.
    pub data_folder: Option<PathBuf>,
    /// What settings it takes, as a JSON Schema of their object, where it says so.
    pub settings_schema: Option<Map<String, Value>>,
    /// What its user set for a plugin of its id, where a project brings it.
    pub users_settings: SharedUserSettingKeys,
    /// The secrets that it was given.
    pub given: BTreeMap<String, Secret>,
    /// What of all that must not be shown.
    pub secrets: SecretValues,
    pub(crate) machine_facts: MachineFacts,
    /// What the lock file of its place says of it.
    pub lock_entry: Option<LockedDigests>,
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
pub struct Fingerprint {
    /// All that is said of it.
    definition: Digest,
    /// The file that runs, where it could be read.
    content: Option<Digest>,
}

/// The keys of what a user set for a plugin that a project brings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedUserSettingKeys {
    /// Those that it gets, as its project has values for them, too.
    pub given: BTreeSet<String>,
    /// Those that it does not get.
    pub withheld: BTreeSet<String>,
}

/// Where a candidate's code is.
#[derive(Debug, Clone)]
pub enum CodeSource {
    /// A component.
    Wasm {
        /// Its file.
        path: PathBuf,
        /// On which instances it is called.
        mode: InstanceMode,
    },
    /// A script.
    Rhai {
        /// Its file.
        path: PathBuf,
    },
    /// An MCP server.
    Mcp(Box<Server>),
}

/// An MCP server: where it is, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// How it is started or reached.
    pub place: ServerLocation,
    /// The time that it may take to start, where the configuration says so.
    pub startup_timeout: Option<Duration>,
    /// How it is kept running.
    pub supervision: Supervision,
    /// How it is spoken to.
    pub options: McpOptions,
    /// The hook points that its tools handle.
    pub hooks: Vec<ServerHook>,
}

/// What is asked of an MCP server, and of the bridge to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpOptions {
    /// Which revisions of MCP are spoken with it.
    pub protocol: HandshakeMode,
    /// The folders that it is told to work in: URIs, and names.
    pub roots: Vec<(String, Option<String>)>,
    /// From which level on it is asked to send messages of its log.
    pub log_level: Option<McpLogLevel>,
    /// How long it may be silent before it is asked whether it lives.
    pub ping: Option<Duration>,
}

/// Where an MCP server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerLocation {
    /// It is a child of the host.
    Child(ServerCommand),
    /// It is elsewhere.
    Remote(Remote),
}

/// How to start an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables on top of those that it inherits; they may have places for secrets.
    pub environment: BTreeMap<String, String>,
    /// What it inherits of the environment of the host.
    pub inherited: InheritedEnvironment,
    /// The folder that it is started in, where that is not the host's.
    pub folder: Option<PathBuf>,
    /// Whether it is to reach nothing but what it is granted.
    pub confinement: ConfinementMode,
}

/// What a server inherits of the host's environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InheritedEnvironment {
    pub(crate) policy: EnvironmentPolicy,
    /// Variables that it gets whatever the policy is.
    pub names: BTreeSet<String>,
}

/// How to reach an MCP server over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Its URL.
    pub url: Url,
    /// Headers of every request; they may hold secrets, or have places for them.
    pub headers: BTreeMap<String, String>,
    /// Which transport of MCP it speaks.
    pub transport: Transport,
}

impl CodeSource {
    pub(crate) fn kind(&self) -> PluginKind {
        match self {
            Self::Wasm { .. } => PluginKind::Wasm,
            Self::Rhai { .. } => PluginKind::Rhai,
            Self::Mcp(_) => PluginKind::Mcp,
        }
    }
}

impl Fingerprint {
    /// What names the code that was loaded: the content of its file, and where it has none, all that is said of it.
    pub fn code(&self) -> Digest {
        self.content.unwrap_or(self.definition)
    }

    /// A text that names the code with the settings and the grants that it runs with, of which there is a digest.
    pub fn code_with(&self, setting: &str) -> String {
        format!("{} {setting}", self.code())
    }

    /// Whether such a text names this code, whatever the settings and the grants are.
    pub fn is_code_of(&self, text: &str) -> bool {
        text.split_once(' ').is_some_and(|(code, _)| code == self.code().to_string())
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

    /// Whether it may handle hooks: a component or script may, a server where its manifest maps hook points to tools.
    pub fn may_handle_hooks(&self) -> bool {
        match &self.source {
            CodeSource::Mcp(server) => !server.hooks.is_empty(),
            _ => true,
        }
    }

    /// The kind of place that it was found in.
    pub fn origin(&self) -> PluginOrigin {
        self.origin
    }

    /// Whose it is.
    pub fn owner(&self) -> PluginOwner {
        PluginOwner { origin: self.origin, is_shielded: self.is_shielded }
    }

    /// The configuration file or manifest that names it.
    pub fn named_in(&self) -> &Path {
        &self.named_in
    }

    /// What to look at where an MCP server does not do its part.
    pub fn what_to_check(&self) -> Option<String> {
        let CodeSource::Mcp(server) = &self.source else { return None };
        let (keys, how) = match server.place {
            ServerLocation::Child(_) => {
                ("`command`, `args` and `env`", "speaks over its standard input and output")
            }
            ServerLocation::Remote(_) => ("`url` and `headers`", "answers at that address"),
        };
        let named_in = self.named_in.display();
        let is_confined = match &server.place {
            ServerLocation::Child(child) => child.confinement != ConfinementMode::Unconfined,
            ServerLocation::Remote(_) => false,
        };
        let trace = match is_confined {
            true => format!("; `tenon doctor {} --trace` shows what it is refused", self.id),
            false => String::new(),
        };
        Some(format!("check its {keys} in {named_in}; it must be an MCP server that {how}{trace}"))
    }

    /// What to do where its server did not start in the time that it has.
    pub fn how_to_wait_longer(&self, startup: Duration) -> String {
        let written = |duration| humantime::format_duration(duration);
        // Nobody sets a time that is too long to be doubled.
        let (longer, startup) = (written(startup.saturating_mul(2)), written(startup));
        let key = match self.is_of_servers() {
            true => format!("\"startup_timeout\": \"{longer}\""),
            false => format!("startup_timeout = \"{longer}\""),
        };
        let named_in = self.named_in.display();
        let check = self.what_to_check().map(|check| format!("; else {check}")).unwrap_or_default();
        format!(
            "if the server needs longer than {startup} to start, set `{key}` in its entry in \
             {named_in}{check}"
        )
    }

    /// The content of its manifest, where it has one.
    pub fn manifest(&self) -> Option<Digest> {
        self.manifest
    }

    /// Whether it has a manifest of its own.
    pub fn has_manifest(&self) -> bool {
        self.folder.is_some()
    }

    /// Whether a file names it that has servers and nothing else.
    pub fn is_of_servers(&self) -> bool {
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
            CodeSource::Wasm { path, .. } | CodeSource::Rhai { path } => path.display().to_string(),
            CodeSource::Mcp(server) => match &server.place {
                ServerLocation::Child(program) => program.program.display().to_string(),
                ServerLocation::Remote(remote) => remote.url.to_string(),
            },
        };
        Redactor::new(&self.secrets).text(&source).into_owned()
    }

    /// What its definitions are pinned for, where it is a server that says it has this version.
    pub fn pinned_server(&self, version: &str, mode: PinMode) -> Option<PinSubject> {
        let CodeSource::Mcp(server) = &self.source else { return None };
        let started = Digest::of(format!("{:?} {version}", server.place));
        Some(PinSubject {
            plugin: self.id.clone(),
            named_in: self.named_in.clone(),
            server: started.to_string(),
            mode,
        })
    }

    /// How much it may use.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the names of its tools begin with.
    pub fn namespace(&self) -> &str {
        RegistrationPermissions::namespace(self.permissions.as_ref(), &self.id)
    }

    /// What it is made of, at this moment. It reads the plugin's file.
    pub fn fingerprint(&self) -> Fingerprint {
        let content = self.file().and_then(|file| files::read(file, MAX_COMPONENT_BYTES).ok());
        self.fingerprint_with(content.map(Digest::of))
    }

    /// What it is made of, with this content of its file.
    pub fn fingerprint_with(&self, content: Option<Digest>) -> Fingerprint {
        Fingerprint { definition: Digest::of(self.definition()), content }
    }

    /// Where a lock file binds it, what its file holds; nothing for one that cannot be read. It reads
    /// the file.
    pub fn bound_content(&self) -> Option<Digest> {
        self.lock_entry.as_ref().and_then(|_| self.fingerprint().content)
    }

    /// Its component, where it is one.
    pub fn component(&self) -> Option<&Path> {
        match &self.source {
            CodeSource::Wasm { path, .. } => Some(path),
            CodeSource::Rhai { .. } | CodeSource::Mcp(_) => None,
        }
    }

    /// On which instance its calls run, where it is a component.
    pub fn instance(&self) -> Option<InstanceMode> {
        match &self.source {
            CodeSource::Wasm { mode, .. } => Some(*mode),
            CodeSource::Rhai { .. } | CodeSource::Mcp(_) => None,
        }
    }

    /// Its script, where it is one.
    pub fn script(&self) -> Option<&Path> {
        match &self.source {
            CodeSource::Rhai { path } => Some(path),
            CodeSource::Wasm { .. } | CodeSource::Mcp(_) => None,
        }
    }

    /// Whether its server is to reach nothing but what it is granted; nothing for what is no server that is a child.
    pub fn confinement(&self) -> Option<ConfinementMode> {
        let CodeSource::Mcp(server) = &self.source else { return None };
        match &server.place {
            ServerLocation::Child(program) => Some(program.confinement),
            ServerLocation::Remote(_) => None,
        }
    }

    /// What it requests: values by the names of capabilities.
    pub fn requested(&self) -> BTreeMap<String, Vec<String>> {
        self.requests.texts()
    }

    /// The skills that it carries.
    pub fn skills(&self) -> &[Skill] {
        self.skills.as_ref().map_or(&[], |skills| skills.all())
    }

    /// The names of the skills that it carries.
    pub fn skill_names(&self) -> impl Iterator<Item = &str> {
        self.skills().iter().map(|skill| skill.name.as_str())
    }

    /// Whether somebody has to approve it: it requests something, it carries skills, on which agents act outside
    /// of its sandbox, or a file that comes with a project has it start a program or turn to somebody.
    pub fn needs_approval(&self) -> bool {
        self.approves_content() || self.command.is_some() && !self.is_command_approved
    }

    /// Whether what is loaded has to be what somebody approved: not for a server that only a file of a project
    /// names.
    pub fn approves_content(&self) -> bool {
        !self.requests.is_empty() || self.skills.is_some()
    }

    /// How its server is started or reached, where a file that comes with a project says so; the user's secrets
    /// are masked.
    pub fn command_line(&self) -> Option<&ServerParameters> {
        self.command.as_ref()
    }

    /// Has how its server is started or reached need no approval: who trusts the project was shown it.
    pub fn approve_command(&mut self) {
        self.is_command_approved = self.origin.is_of_project();
    }

    /// The URL of its server, if that is elsewhere.
    pub fn server_url(&self) -> Option<&Url> {
        match &self.source {
            CodeSource::Mcp(server) => match &server.place {
                ServerLocation::Remote(remote) => Some(&remote.url),
                ServerLocation::Child(_) => None,
            },
            _ => None,
        }
    }

    /// The names of the secrets that have a place in what its server is given.
    pub fn secrets_of_server(&self) -> BTreeSet<String> {
        let CodeSource::Mcp(server) = &self.source else { return BTreeSet::new() };
        let given = match &server.place {
            ServerLocation::Child(program) => &program.environment,
            ServerLocation::Remote(remote) => &remote.headers,
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
        host_environment: &HostEnvironment,
    ) -> Result<BTreeMap<String, Vec<String>>, String> {
        let context = PathContext {
            host_environment,
            folder: self.named_in.parent().unwrap_or(Path::new(".")),
            data_folder: self.data_folder.as_deref(),
        };
        let mut grants = GrantSet::default();
        for (capability, value) in values {
            grants.add(capability, value, &context).map_err(|error| error.to_string())?;
        }
        let grants = grants.texts();
        let all = |(name, of): (&String, &Vec<String>)| -> Vec<(String, String)> {
            of.iter().map(|value| (name.clone(), value.clone())).collect()
        };
        if let Some((capability, value)) = { grants.iter().flat_map(all) }
            .find(|(capability, value)| !self.requests.covers(capability, value))
        {
            let requested = self.requests.texts().remove(&capability).unwrap_or_default();
            return Err(format!(
                "`{capability} = [{value:?}]` is more than plugin \"{}\" requests: {requested:?}",
                self.id
            ));
        }
        Ok(grants)
    }

    /// The arguments of its server, where no command has to be approved that has them.
    fn own_arguments(&self) -> &[String] {
        match &self.source {
            CodeSource::Mcp(server) if self.command.is_none() => match &server.place {
                ServerLocation::Child(program) => &program.arguments,
                ServerLocation::Remote(_) => &[],
            },
            _ => &[],
        }
    }

    /// What some values mean that are granted to it or may be.
    pub fn warnings_of(
        &self,
        capabilities: &BTreeMap<String, Vec<String>>,
        host_environment: &HostEnvironment,
        deciding: &BTreeSet<PathBuf>,
    ) -> Vec<GrantWarning> {
        let values = GrantSet::approved(capabilities);
        let mut warnings = Vec::new();
        if self.confinement().is_some_and(|mode| mode != ConfinementMode::Unconfined) {
            // Whoever reads what a value means finds the first.
            warnings = values.wider_for_servers();
        }
        warnings.extend(values.warnings(host_environment, deciding));
        warnings
    }

    /// The same, and the content that somebody is asked about.
    pub fn request_approval(&self) -> (ApprovalRequest, Option<Digest>) {
        let content = self.fingerprint().content;
        let request = ApprovalRequest {
            plugin: self.id.clone(),
            kind: self.kind(),
            origin: self.origin,
            source: self.source(),
            named_in: self.named_in.clone(),
            capabilities: self.requests.texts(),
            warnings: self.warnings.clone(),
            command: self.command.clone(),
            arguments: self.own_arguments().to_vec(),
            component: content.map(|digest| digest.to_string()),
            manifest: self.manifest.map(|digest| digest.to_string()),
            skills: self.skills.clone(),
            confinement: self.confinement(),
        };
        (request, content)
    }

    /// All that is said of it, for comparing: two that differ in what they mean differ in this.
    fn definition(&self) -> String {
        let Self {
            id,
            name: _,
            origin,
            is_shielded,
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
            // What it was approved for is in the command.
            is_command_approved: _,
            // They are about what the plugin says, and not about how it runs.
            rules: _,
            // What it says is in the others.
            manifest: _,
            skills,
            // What follows from the others, and from the user.
            warnings: _,
            grants: _,
            approved: _,
            given: _,
            trusted,
            programs,
            permissions,
            limits,
            context,
            settings,
            settings_schema,
            // It follows from its id and where it was found.
            data_folder: _,
            // They are in what comes before.
            users_settings: _,
            secrets: _,
            machine_facts,
            lock_entry,
        } = self;
        let place = (id, origin, is_shielded, named_in, folder);
        let skills = skills.as_ref().map(|skills| skills.digest());
        let about = (version, description, api_version);
        let requests = requests.texts();
        let trusted = (trusted, programs.as_ref().map(|programs| programs.files()));
        format!(
            "{:?}",
            (
                (place, about, source, command, requests, permissions),
                (limits, context, settings, settings_schema),
                (machine_facts, lock_entry, trusted, skills)
            )
        )
    }

    /// The file that runs: a component, a script, or a server that lies beside its manifest.
    pub fn file(&self) -> Option<&Path> {
        let file = machine_facts::file_of(&self.source)?;
        let is_own = |folder: &PathBuf| file.starts_with(folder);
        (self.kind() != PluginKind::Mcp || self.folder.as_ref().is_some_and(is_own)).then_some(file)
    }
}
