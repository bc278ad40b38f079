//! Step two: whether a candidate may be loaded. A pure function: what it needs to know of the
//! machine, discovery has looked up.
//!
//! Four layers, in order: the operator's policy, the lock file, the safety of the plugin's files, and
//! what the plugin depends on. Then what the plugin says of itself: the contract it was made for, and the
//! capabilities it requests. What it *requests* it is not lent for being admitted: a capability is
//! lent only where somebody approved it.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use tenon_types::text::one_line;

use crate::approver::{ApprovalChange, ApprovalRequest, GrantDecision};
use crate::config::{Config, combine};
use crate::contract::PACKAGE_VERSION;
use crate::diagnostic::Diagnostic;
use crate::discover::{Candidate, Discovery, MachineFacts, PluginKind, PluginOrigin, SkippedEntry};
use crate::files::Digest;
use crate::grant::{CAPABILITIES, CapabilityRow, Eligibility, GrantSet, Grants, SECRETS};
use crate::lock::LockedDigests;
use crate::policy::{ConfinementMode, Policy, PolicyRefusal};
use crate::secret::Secret;

/// What was said of the requests of plugins.
#[derive(Debug, Clone, Default)]
pub struct Approvals(BTreeMap<String, ApprovalDecision>);

/// What was said of a plugin's requests.
#[derive(Debug, Clone)]
enum ApprovalDecision {
    Granted {
        grants: GrantSet,
        /// What it was said of.
        content: Option<Digest>,
    },
    Stale(Vec<ApprovalChange>),
}

impl Approvals {
    /// The candidates that somebody has to be asked about: all that need approval and that no policy and no lock
    /// file speaks against. Nobody is bothered with what is refused in any case.
    pub fn wanted<'a>(
        candidates: &'a [Candidate],
        rules: &'a Rules,
    ) -> impl Iterator<Item = &'a Candidate> {
        let refused =
            |candidate: &Candidate| policy(candidate, rules).or_else(|| lock(candidate, rules));
        candidates
            .iter()
            .filter(move |candidate| candidate.needs_approval() && refused(candidate).is_none())
    }

    /// Whether somebody can be asked about a plugin whose file has this content: nobody can approve what is not
    /// there to be seen.
    pub fn can_ask(request: &ApprovalRequest, content: Option<Digest>) -> bool {
        content.is_some() || request.kind == PluginKind::Mcp
    }

    /// Notes what was said of a plugin, whose file has this content. Values that are none are not
    /// granted.
    pub fn insert(&mut self, plugin: &str, content: Option<Digest>, approval: GrantDecision) {
        let said = match approval {
            GrantDecision::Undecided => return,
            GrantDecision::Stale(changes) => ApprovalDecision::Stale(changes),
            GrantDecision::Granted(texts) => {
                let mut grants = GrantSet::default();
                for (capability, text) in
                    texts.iter().flat_map(|(name, of)| of.iter().map(move |text| (name, text)))
                {
                    if let Err(error) = grants.add_approved(capability, text) {
                        tracing::warn!(plugin, "what was approved is left out: {error}");
                    }
                }
                ApprovalDecision::Granted { grants, content }
            }
        };
        self.0.insert(plugin.to_string(), said);
    }
}

/// What the files of plugins hold that lock files bind.
#[derive(Debug, Clone, Default)]
pub struct ContentDigests(BTreeMap<String, Digest>);

impl ContentDigests {
    /// Reads the files of those candidates that a lock file binds. It blocks.
    pub fn read(candidates: &[Candidate]) -> Self {
        let content =
            |candidate: &Candidate| Some((candidate.id.clone(), candidate.bound_content()?));
        Self(candidates.iter().filter_map(content).collect())
    }
}

/// The policy of one configuration.
#[derive(Debug, Clone)]
struct ConfigPolicy {
    file: PathBuf,
    policy: Policy,
    /// It is a project's, and not for its user's own components and scripts.
    is_bounded: bool,
}

/// What candidates are held against.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    policies: Vec<ConfigPolicy>,
    reserved: BTreeSet<String>,
    approvals: Approvals,
    contents: ContentDigests,
}

impl Rules {
    /// The policies of these configurations; a plugin must pass all of them, but for a user's own
    /// component or script, which may be a guard, the policy of a project's file does not count.
    pub fn new(configs: &[Config]) -> Self {
        let policies = configs.iter().map(|config| ConfigPolicy {
            file: config.path.clone(),
            policy: config.policy.clone(),
            is_bounded: combine::is_bounded(config, configs),
        });
        Self { policies: policies.collect(), ..Self::default() }
    }

    /// The same, with what was approved.
    pub fn approve(self, approvals: Approvals) -> Self {
        Self { approvals, ..self }
    }

    /// The same, with what files hold that lock files bind. Without it a file that is another is not
    /// refused before it is loaded.
    pub fn contents(self, contents: ContentDigests) -> Self {
        Self { contents, ..self }
    }

    /// Why a candidate is not what was installed, where a lock file binds it to that. Nobody's
    /// approval changes it.
    pub fn not_as_locked(&self, candidate: &Candidate) -> Option<Refusal> {
        lock(candidate, self)
    }

    /// Keeps ids for plugins that are part of the host: no other is admitted under one of them.
    pub fn reserve(mut self, ids: impl IntoIterator<Item = String>) -> Self {
        self.reserved.extend(ids);
        self
    }
}

/// A candidate that may be loaded.
#[derive(Debug)]
pub struct Admitted {
    candidate: Candidate,
}

impl Admitted {
    /// The plugin's id, and the names of the secrets that it was granted, or that the entry of its
    /// server has places for.
    pub fn secrets(&self) -> (String, Vec<String>) {
        let names = self.candidate.grants.names(SECRETS);
        let mut names: BTreeSet<String> = names.map(str::to_string).collect();
        names.extend(self.candidate.secrets_of_server());
        (self.candidate.id.clone(), names.into_iter().collect())
    }

    /// Gives the plugin a secret.
    pub fn give(&mut self, name: String, secret: Secret) {
        self.candidate.secrets.add_value(secret.reveal());
        self.candidate.given.insert(name, secret);
    }

    /// The candidate, for the next step.
    pub fn into_candidate(self) -> Candidate {
        self.candidate
    }
}

/// Why a candidate is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The id belongs to a plugin of the host.
    #[error("its id is reserved for a plugin that is part of the host")]
    Reserved,
    /// A policy speaks against it.
    #[error("{objection}")]
    Policy {
        /// The configuration with the policy.
        by: PathBuf,
        /// What it says.
        objection: PolicyRefusal,
    },
    /// It is not what was installed.
    #[error(
        "its {what} {verb} not match {file}: expected {expected}, found {found}",
        verb = if *.what == SKILLS { "do" } else { "does" },
        file = .file.display(), expected = named(.expected), found = named(.found)
    )]
    NotAsLocked {
        /// The kind of place that it is in.
        origin: PluginOrigin,
        /// The lock file.
        file: PathBuf,
        /// What of it: its code, its manifest or its skills.
        what: &'static str,
        /// What was installed.
        expected: Option<Digest>,
        /// What is there.
        found: Option<Digest>,
    },
    /// The lock file of its place cannot be read.
    #[error("the lock file cannot be read: {0}")]
    Lock(String),
    /// A file lies elsewhere than it seems to.
    #[error("{} is outside of the plugin folder", .0.display())]
    Outside(PathBuf),
    /// Anybody could change what would be loaded.
    #[error("{} is writable by everyone", .0.display())]
    WorldWritable(PathBuf),
    /// What it requires is not there.
    #[error("it requires {}", .0)]
    Missing(MissingPrerequisites),
    /// It was made for another version of the contract.
    #[error("it is made for tenon:plugin@{wanted}, and this host speaks {PACKAGE_VERSION}")]
    ApiVersion {
        /// The versions it is made for.
        wanted: semver::VersionReq,
    },
    /// Its manifest has permissions, and a server is not among them.
    #[error("its [permissions] do not allow an MCP server")]
    ServerNotPermitted,
    /// The tools of a bridge are to have a namespace of their own.
    #[error("its [permissions] allow tools but set no `tool_namespace`")]
    NoNamespace,
    /// It requests something that no host has.
    #[error("it requests the capability `{name}`, which does not exist; there are {}", known())]
    Unknown {
        /// The key in the manifest.
        name: String,
    },
    /// It requests something, and nobody has approved anything of it.
    #[error("it {}, which is not approved", wants(.requests, .command.as_deref(), .skills))]
    NotApproved {
        /// The plugin.
        plugin: String,
        /// Values by the names of capabilities.
        requests: BTreeMap<String, Vec<String>>,
        /// What a file that comes with the project has it run or turn to.
        command: Option<String>,
        /// The names of its skills.
        skills: Vec<String>,
    },
    /// It is not what was approved any more.
    #[error("it has changed since it was approved: {}", listed(.changes))]
    Stale {
        /// The plugin.
        plugin: String,
        /// In what it differs.
        changes: Vec<ApprovalChange>,
    },
    /// It requests something that this host cannot lend.
    #[error("it requests the capability `{name}`, which this host does not support on this system")]
    NotLent {
        /// The capability.
        name: String,
    },
}

/// What a plugin requires and does not find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPrerequisites {
    /// Variables of the environment, all of them.
    pub env: Vec<String>,
    /// Groups of variables, one of each.
    pub env_any: Vec<Vec<String>>,
    /// Programs in `PATH`.
    pub bins: Vec<String>,
}

impl fmt::Display for MissingPrerequisites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables = self.env.iter().map(|name| format!("the variable {name}"));
        let groups = self.env_any.iter().map(|group| format!("one of {}", group.join(", ")));
        let programs = self.bins.iter().map(|name| format!("the program `{name}`"));
        let all: Vec<String> = variables.chain(groups).chain(programs).collect();
        f.write_str(&all.join(", and "))
    }
}

impl Refusal {
    /// Whether it is what the operator has said of this very plugin.
    pub fn is_meant(&self) -> bool {
        let Self::Policy { objection, .. } = self else { return false };
        matches!(objection, PolicyRefusal::Denied | PolicyRefusal::Disabled)
    }

    /// Whether somebody's approval is all that is missing.
    pub fn awaits_approval(&self) -> bool {
        matches!(self, Self::NotApproved { .. } | Self::Stale { .. })
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Reserved => "give it another id".into(),
            Self::Policy { by, objection } => {
                let by = by.display();
                match objection {
                    PolicyRefusal::Denied => format!("take it from `deny` under [policy] in {by}"),
                    PolicyRefusal::Disabled => {
                        format!("change its `enabled` under [policy.plugins] in {by}")
                    }
                    PolicyRefusal::NotLocked => format!(
                        "`tenon install` it, or add its id to `allow` under [policy] in {by}"
                    ),
                    PolicyRefusal::Unconfined => format!(
                        "say under its `capabilities` what it may reach, or change `confine` under [policy] in {by}"
                    ),
                    PolicyRefusal::Profile { .. } => {
                        format!("add its id to `allow` under [policy] in {by}")
                    }
                }
            }
            Self::NotAsLocked { origin, .. } => {
                let user = if *origin == PluginOrigin::User { " --user" } else { "" };
                format!(
                    "run `tenon install{user}` to restore what was installed, or `tenon install{user} SOURCE` to accept the change"
                )
            }
            Self::Lock(_) => "restore the lock file, or remove it and install again".into(),
            Self::Outside(_) => "put the file itself there, or name it in a configuration".into(),
            Self::WorldWritable(path) => format!("chmod o-w {}", path.display()),
            Self::Missing(missing) if missing.bins.is_empty() => "set what is missing".into(),
            Self::Missing(_) => "install or set what is missing".into(),
            Self::ApiVersion { .. } => "get a version of it that is made for this host".into(),
            Self::ServerNotPermitted => {
                "its manifest would need `register_mcp_server = true` under [permissions]".into()
            }
            Self::NoNamespace => {
                "its manifest would need `tool_namespace = \"…\"` under [permissions]".into()
            }
            Self::Unknown { .. } => {
                "correct the name under [capabilities] in its plugin.toml".into()
            }
            Self::NotApproved { plugin, .. } | Self::Stale { plugin, .. } => {
                format!("`tenon approve {plugin}` shows it and asks; other hosts have an approver")
            }
            Self::NotLent { .. } => {
                "remove the line from [capabilities] in its plugin.toml if the \
                 plugin can do without"
                    .into()
            }
        }
    }
}

/// Admits a candidate, or says why not.
///
/// # Errors
///
/// The first reason that speaks against it.
pub fn admit(mut candidate: Candidate, rules: &Rules) -> Result<Admitted, Refusal> {
    match refusal(&candidate, rules) {
        None => {
            if let Some(ApprovalDecision::Granted { grants, content }) =
                rules.approvals.0.get(&candidate.id)
            {
                candidate.grants = Grants::new(candidate.requests.clone(), grants.clone());
                candidate.approved = *content;
            }
            Ok(Admitted { candidate })
        }
        Some(refusal) => Err(refusal),
    }
}

fn refusal(candidate: &Candidate, rules: &Rules) -> Option<Refusal> {
    policy(candidate, rules)
        .or_else(|| lock(candidate, rules))
        .or_else(|| paths(&candidate.machine_facts))
        .or_else(|| dependencies(&candidate.machine_facts))
        .or_else(|| contract(candidate))
        .or_else(|| capabilities(candidate, &rules.approvals))
}

fn policy(candidate: &Candidate, rules: &Rules) -> Option<Refusal> {
    if rules.reserved.contains(&candidate.id) {
        return Some(Refusal::Reserved);
    }
    let process = (candidate.kind() == PluginKind::Mcp).then_some("process");
    let effects: Vec<&str> = process.into_iter().chain(candidate.requests.capabilities()).collect();
    let bundled = candidate.origin == PluginOrigin::Bundled;
    let is_confined = candidate.confinement() != Some(ConfinementMode::Unconfined);
    let bound = candidate.lock_entry.is_some();
    let speaks = |policy: &&ConfigPolicy| candidate.owner().hears(policy.is_bounded);
    let policies = rules.policies.iter().filter(speaks);
    policies.into_iter().find_map(|ConfigPolicy { file, policy, .. }| {
        let objection = policy.objection(&candidate.id, &effects, bundled, bound);
        let objection = objection.or_else(|| policy.confinement_objection(is_confined))?;
        Some(Refusal::Policy { by: file.clone(), objection })
    })
}

/// Whether it is what was installed. The code that is not known here, loading looks at.
fn lock(candidate: &Candidate, rules: &Rules) -> Option<Refusal> {
    let (file, code, manifest, skills) = match candidate.lock_entry.as_ref()? {
        LockedDigests::Unreadable(problem) => return Some(Refusal::Lock(problem.clone())),
        LockedDigests::Bound { file, code, manifest, skills } => (file, *code, *manifest, *skills),
    };
    let known = rules.contents.0.get(&candidate.id).copied();
    let own_skills = candidate.skills.as_ref().map(|skills| skills.digest());
    let (what, expected, found) = match (known, candidate.manifest()) {
        (Some(found), _) if found != code => ("code", Some(code), Some(found)),
        (_, found) if found != Some(manifest) => ("manifest", Some(manifest), found),
        _ if own_skills != skills => (SKILLS, skills, own_skills),
        _ => return None,
    };
    let (origin, file) = (candidate.origin, file.clone());
    Some(Refusal::NotAsLocked { origin, file, what, expected, found })
}

fn paths(machine_facts: &MachineFacts) -> Option<Refusal> {
    let outside = machine_facts.outside.first().cloned().map(Refusal::Outside);
    outside.or_else(|| machine_facts.world_writable.first().cloned().map(Refusal::WorldWritable))
}

fn dependencies(machine_facts: &MachineFacts) -> Option<Refusal> {
    let MachineFacts { missing_env, missing_env_any, missing_bins, .. } = machine_facts;
    if missing_env.is_empty() && missing_env_any.is_empty() && missing_bins.is_empty() {
        return None;
    }
    Some(Refusal::Missing(MissingPrerequisites {
        env: missing_env.clone(),
        env_any: missing_env_any.clone(),
        bins: missing_bins.clone(),
    }))
}

fn contract(candidate: &Candidate) -> Option<Refusal> {
    let ours = semver::Version::parse(PACKAGE_VERSION).ok()?;
    if let Some(wanted) = candidate.api_version.as_ref().filter(|wanted| !wanted.matches(&ours)) {
        return Some(Refusal::ApiVersion { wanted: wanted.clone() });
    }
    let permissions = candidate.permissions.as_ref()?;
    if candidate.kind() != PluginKind::Mcp {
        return None;
    }
    match permissions.register_mcp_server {
        false => Some(Refusal::ServerNotPermitted),
        true if permissions.register_tools && permissions.tool_namespace.is_none() => {
            Some(Refusal::NoNamespace)
        }
        true => None,
    }
}

fn capabilities(candidate: &Candidate, approvals: &Approvals) -> Option<Refusal> {
    for name in candidate.requests.names() {
        match CapabilityRow::named(name).filter(|named| is_requestable(named)) {
            None => return Some(Refusal::Unknown { name: name.into() }),
            Some(capability) if !capability.can_be_lent() => {
                return Some(Refusal::NotLent { name: name.into() });
            }
            Some(_) => {}
        }
    }
    let plugin = candidate.id.clone();
    match approvals.0.get(&candidate.id) {
        _ if !candidate.needs_approval() => None,
        Some(ApprovalDecision::Granted { .. }) => None,
        Some(ApprovalDecision::Stale(changes)) => {
            Some(Refusal::Stale { plugin, changes: changes.clone() })
        }
        None => Some(Refusal::NotApproved {
            plugin,
            requests: candidate.requests.texts(),
            command: candidate.command.as_ref().map(ToString::to_string),
            skills: candidate.skill_names().map(Into::into).collect(),
        }),
    }
}

fn is_requestable(capability: &CapabilityRow) -> bool {
    matches!(capability.availability, Eligibility::OnRequest { .. })
}

/// What of a plugin a lock file binds, beside its code and manifest.
const SKILLS: &str = "skills";

/// A digest, or that there is none.
fn named(digest: &Option<Digest>) -> String {
    digest.map_or_else(|| "none".into(), |digest| digest.named())
}

/// What a plugin wants to do.
fn wants(
    requests: &BTreeMap<String, Vec<String>>,
    command: Option<&str>,
    skills: &[String],
) -> String {
    let requests = (!requests.is_empty()).then(|| format!("requests {}", shown(requests)));
    let skills = (!skills.is_empty()).then(|| format!("carries skills ({})", skills.join(", ")));
    let all: Vec<String> =
        command.map(Into::into).into_iter().chain(requests).chain(skills).collect();
    all.join(" and ")
}

/// Requests as they stand in a manifest.
fn shown(requests: &BTreeMap<String, Vec<String>>) -> String {
    let lines = requests.iter().map(|(name, values)| format!("`{name} = {values:?}`"));
    lines.collect::<Vec<_>>().join(", ")
}

fn listed(changes: &[ApprovalChange]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn known() -> String {
    let names = CAPABILITIES.iter().filter(|capability| is_requestable(capability));
    names.map(|capability| capability.name).collect::<Vec<_>>().join(", ")
}

/// Which plugins are enabled and which are not, and why. It is made without running any, and holds
/// nothing but words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PluginsOverview {
    /// The plugins: those that may be loaded in their order, then the others.
    pub plugins: Vec<PluginStatus>,
    /// What could not be read or understood.
    pub diagnostics: Vec<Diagnostic>,
    /// What may be a slip, and has no consequences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
}

/// How one plugin stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// The plugin's id.
    pub plugin: String,
    /// Its kind.
    pub kind: PluginKind,
    /// The kind of place that it was found in.
    pub origin: PluginOrigin,
    /// `enabled`, `refused`, `missing`, or why discovery left it out, as [`SkipReason::state`](crate::discover::SkipReason::state).
    pub state: &'static str,
    /// The version that its manifest gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where its code is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The configuration file or manifest that names it.
    pub named_in: PathBuf,
    /// What it requests: values by the names of capabilities.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requested: BTreeMap<String, Vec<String>>,
    /// What of it is granted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub granted: BTreeMap<String, Vec<String>>,
    /// Why it is not enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl PluginsOverview {
    /// How everything that was found stands under these rules.
    pub fn new(discovery: &Discovery, rules: &Rules) -> Self {
        let candidates = discovery.candidates.iter().map(|candidate| {
            let refusal = refusal(candidate, rules);
            let absent = candidate.machine_facts.absent.as_ref();
            let (state, detail, remedy) = match (absent, &refusal) {
                (Some(path), None) => {
                    let remedy = candidate.what_to_check().unwrap_or_else(|| {
                        "check the path; `tenon build` makes what was not built yet".into()
                    });
                    ("missing", Some(format!("{} does not exist", path.display())), Some(remedy))
                }
                (_, Some(refusal)) => {
                    ("refused", Some(refusal.to_string()), Some(refusal.remedy()))
                }
                (None, None) => ("enabled", None, None),
            };
            PluginStatus {
                plugin: candidate.id.clone(),
                kind: candidate.kind(),
                origin: candidate.origin,
                state,
                version: candidate.version.as_ref().map(ToString::to_string),
                source: Some(candidate.source()),
                named_in: candidate.named_in.clone(),
                requested: candidate.requests.texts(),
                granted: match (&refusal, rules.approvals.0.get(&candidate.id)) {
                    (None, Some(ApprovalDecision::Granted { grants, .. })) => {
                        Grants::new(candidate.requests.clone(), grants.clone()).texts()
                    }
                    _ => BTreeMap::new(),
                },
                detail,
                remedy,
            }
        });
        let left_out = discovery.left_out.iter().map(|left_out| {
            let SkippedEntry { id, kind, origin, named_in, reason } = left_out;
            PluginStatus {
                plugin: id.clone(),
                kind: *kind,
                origin: *origin,
                state: reason.state(),
                version: None,
                source: None,
                named_in: named_in.clone(),
                requested: BTreeMap::new(),
                granted: BTreeMap::new(),
                detail: Some(reason.to_string()),
                remedy: None,
            }
        });
        Self {
            plugins: candidates.chain(left_out).collect(),
            diagnostics: discovery.diagnostics.clone(),
            warnings: discovery.warnings.clone(),
        }
    }
}

impl fmt::Display for PluginsOverview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.plugins.iter().map(|plugin| plugin.plugin.len()).max().unwrap_or(0);
        for standing in &self.plugins {
            let PluginStatus { plugin, kind, origin, state, source, granted, detail, .. } =
                standing;
            let (kind, origin) = (kind.to_string(), origin.to_string());
            write!(f, "{plugin:width$}  {kind:<5} {state:<11} {origin:<11}")?;
            match (detail, source) {
                (Some(detail), _) => writeln!(f, " {}", one_line(detail))?,
                (None, Some(source)) if granted.is_empty() => {
                    writeln!(f, " {}", one_line(source))?;
                }
                (None, Some(source)) => {
                    let granted: Vec<&str> = granted.keys().map(String::as_str).collect();
                    writeln!(f, " {} ({})", one_line(source), granted.join(", "))?;
                }
                (None, None) => writeln!(f)?,
            }
        }
        for diagnostic in self.diagnostics.iter().chain(&self.warnings) {
            writeln!(f, "note: {}", one_line(&diagnostic.to_string()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod key_rule_tests;
#[cfg(test)]
mod tests;
