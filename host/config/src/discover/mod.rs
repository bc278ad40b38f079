//! Step one: from configuration and folders to candidates.
//!
//! It reads manifests and looks at files, and opens no component, no script and no program. A
//! candidate is a claim that there is a plugin; whether it may be one is for [`crate::admit`] to
//! say.
//!
//! Plugins come from five kinds of places ([`PluginOrigin`]). What is found goes through filters in this
//! order: manifests are read, candidates inside of other candidates are left out, then those whose
//! id a place of higher precedence has, those that are disabled, and those that an allowlist does
//! not name. What is left is in order of place and id.

mod arguments;
mod candidate;
mod candidate_reader;
mod child_environment;
mod machine_facts;
mod own_server;
mod plugin_mcp_json;
mod search_locations;
mod server;
pub mod trust;
mod trusted_discovery;
mod walk;

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tenon_types::McpOperation;
use tenon_types::name::{ToolNameStyle, nearest};
use tenon_types::text::fits;

pub use crate::config::{PluginKind, PluginOrigin};
pub use candidate::Candidate;
pub use candidate::{
    CodeSource, Fingerprint, InheritedEnvironment, McpOptions, Remote, Server, ServerCommand,
    ServerLocation, SharedUserSettingKeys,
};
pub use child_environment::inherited_environment;
pub use machine_facts::MachineFacts;
pub use own_server::SERVED_VARIABLE;
pub use search_locations::{USER, WORKSPACE};
pub use trusted_discovery::discover_trusted;

use crate::call_policy::call_rules_for_nobody;
use crate::config::combine::OriginSettings;
use crate::config::{Config, combine};
use crate::diagnostic::Diagnostic;
use crate::discover::trust::{TrustBasis, UntrustedProject};
use crate::entry::InputQuestion;
use crate::files::{self, Digest};
use crate::grant::{GrantSet, TOOLS};
use crate::host_environment::HostEnvironment;
use crate::manifest::RegistrationPermissions;
pub use crate::manifest::is_id;
use crate::secret::SecretValues;
use candidate_reader::CandidateReader;

/// All that says where plugins are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sources {
    /// Configurations, in the order of their precedence.
    pub configs: Vec<Config>,
    /// The project: plugins in its `.tenon/plugins` are found.
    pub workspace: Option<PathBuf>,
    /// Whose word it is that the project may be used.
    pub trust: TrustBasis,
    /// Folders with plugins that come with the host.
    pub bundled: Vec<PathBuf>,
    /// The environment and the user's folders.
    pub host_environment: HostEnvironment,
    /// What the user said to what editors' files of the project ask for, by the ids of their `inputs`.
    /// With [`TrustBasis::Recorded`], what was said when the project was trusted takes its place.
    pub answers: BTreeMap<String, String>,
    /// The address at which what is found is served to MCP clients, so that an entry for it is none for a server.
    pub served_at: Option<SocketAddr>,
}

/// What was found, and what went wrong meanwhile.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// The candidates, in the order in which they will be loaded.
    pub candidates: Vec<Candidate>,
    /// What was found and is none.
    pub left_out: Vec<SkippedEntry>,
    /// What could not be read or understood.
    pub diagnostics: Vec<Diagnostic>,
    /// What may be a slip, and has no consequences.
    pub warnings: Vec<Diagnostic>,
    /// The folders that were looked in: what changes there may change what is found.
    pub looked_in: BTreeSet<PathBuf>,
    /// The project, where its user does not trust it: nothing of it is among the rest.
    pub untrusted: Option<UntrustedProject>,
    /// How many files and folders were looked at in search of manifests.
    entries: usize,
    /// Components and scripts in folders of plugins that no manifest is beside, and where the folders come
    /// from.
    bare: Vec<(PluginOrigin, PathBuf)>,
    /// What editors' files of the project ask their user for.
    pub questions: Vec<InputQuestion>,
    /// The files of the project whose text was read.
    pub read: BTreeMap<PathBuf, Digest>,
    /// The files that decide what is started, loaded or told, whosever they are.
    pub deciding: BTreeSet<PathBuf>,
    /// The secrets of all that was found, also of what was left out: no plugin shows those of another, whether
    /// that one is loaded or not.
    pub secrets: SecretValues,
}

/// Something that was found and is no candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedEntry {
    /// The plugin's id.
    pub id: String,
    /// Its kind.
    pub kind: PluginKind,
    /// The kind of place that it was found in.
    pub origin: PluginOrigin,
    /// The configuration file or manifest that names it.
    pub named_in: PathBuf,
    /// Why it is none.
    pub reason: SkipReason,
}

/// Why something that was found is no candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum SkipReason {
    /// Its manifest lies inside of another plugin's folder.
    Nested {
        /// The other plugin.
        within: String,
    },
    /// A place of higher precedence has a plugin of this id.
    Shadowed {
        /// The kind of that place.
        by: PluginOrigin,
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
    /// It is `tenon serve` for what is looked at: the entry is for MCP clients that read the same file.
    OwnServer,
}

impl SkipReason {
    /// The word for it: `nested`, `shadowed`, `disabled`, `not-allowed` or `own-server`.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Nested { .. } => "nested",
            Self::Shadowed { .. } => "shadowed",
            Self::Disabled { .. } => "disabled",
            Self::NotAllowed { .. } => "not-allowed",
            Self::OwnServer => "own-server",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nested { within } => write!(f, "nested in the folder of \"{within}\""),
            Self::Shadowed { by, named_in, names } => {
                write!(f, "shadowed by the one that {} names ({by})", named_in.display())?;
                match names {
                    Some([own, other]) => write!(
                        f,
                        ": one id is made of {own:?} and {other:?}; give one of them another name"
                    ),
                    None => Ok(()),
                }
            }
            Self::Disabled { by } => write!(f, "disabled in {}", by.display()),
            Self::NotAllowed { by } => {
                write!(f, "not on the allowlist in {}", by.display())
            }
            Self::OwnServer => {
                f.write_str("it is `tenon serve` for this project itself, which MCP clients start")
            }
        }
    }
}

impl Sources {
    /// The same, with configurations that say what those after them say, where they say nothing
    /// themselves.
    pub fn settled(mut self) -> Self {
        Config::inherit(&mut self.configs);
        self
    }

    /// How the names of a candidate's tools are rendered.
    pub fn name_style(&self, candidate: &Candidate) -> ToolNameStyle {
        let config = combine::speaking_for(&self.configs, candidate.origin);
        config.map(|config| config.names.style).unwrap_or_default()
    }
}

/// An id made of a name, where one can be: lower case, and `-` for what an id cannot hold.
pub fn id_of(name: &str) -> Option<String> {
    Some(candidate_reader::id_of(name)).filter(|id| is_id(id))
}

/// Finds what there is.
pub fn discover(sources: &Sources) -> Discovery {
    let configs = &sources.configs;
    let nothing = Config::default();
    let mut discovery = Discovery::default();
    for config in configs {
        discovery.look_in(config.folder());
        if let (true, Some(digest)) = (config.is_of_project_file(), config.digest()) {
            discovery.read.insert(config.path.clone(), digest);
        }
    }
    for (rank, root) in search_locations::all(sources, &nothing).iter().enumerate() {
        CandidateReader { root, rank, sources, discovery: &mut discovery }.read();
    }
    discovery.note_secrets();
    discovery.leave_out(nested);
    shield(&mut discovery.candidates, configs);
    discovery.leave_out(|candidates| own_server::own_servers(candidates, sources));
    discovery.leave_out(shadowed);
    discovery.warn_of_what_a_project_cannot_say(configs);
    discovery.leave_out(|candidates| not_wanted(candidates, configs));
    discovery.candidates.sort_by(|a, b| (a.rank, &a.id).cmp(&(b.rank, &b.id)));
    discovery.note_what_decides(configs);
    discovery.warn_of_what_is_requested(&sources.host_environment);
    discovery.warn_of_files_without_a_manifest();
    discovery.report_names_of_one_id();
    discovery.report_settings_for_nobody(configs);
    discovery.warn_of_settings_that_are_withheld(configs);
    discovery.warn_of_rules_for_nobody(configs);
    discovery.warnings.extend(call_rules_for_nobody(configs));
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

    fn note_secrets(&mut self) {
        for candidate in &self.candidates {
            self.secrets.extend(&candidate.secrets);
        }
    }

    fn note_what_decides(&mut self, configs: &[Config]) {
        // An argument may be anything. One that is no file yet is taken for one where it has the name of a
        // file: `server.js`, and not `build`, in which others may write.
        let may_be_file = |path: &PathBuf| path.is_file() || path.extension().is_some();
        for config in configs.iter().filter(|config| config.is_of_file()) {
            self.deciding.insert(config.path.clone());
            let command = config.client.message_command.iter().map(PathBuf::from).enumerate();
            let named = command
                .filter(|(number, path)| *number == 0 && files::is_path(path) || may_be_file(path));
            self.deciding.extend(named.map(|(_, path)| path));
        }
        for candidate in &self.candidates {
            self.deciding.extend(machine_facts::file_of(&candidate.source).map(Path::to_path_buf));
            if let CodeSource::Mcp(server) = &candidate.source
                && let ServerLocation::Child(program) = &server.place
            {
                self.deciding.extend(program.files().into_iter().filter(may_be_file));
            }
        }
        // What is not there yet decides once somebody writes it.
        let is_else = |path: &PathBuf| path.metadata().is_ok_and(|about| !about.is_file());
        self.deciding.retain(|path| !is_else(path));
    }

    /// Says of what candidates request what follows from it, for those who approve.
    fn warn_of_what_is_requested(&mut self, host_environment: &HostEnvironment) {
        for candidate in &mut self.candidates {
            let requested = candidate.requests.texts();
            candidate.warnings =
                candidate.warnings_of(&requested, host_environment, &self.deciding);
        }
    }

    /// Leaves out the candidates that a filter gives a reason for.
    fn leave_out(&mut self, filter: impl FnOnce(&[Candidate]) -> Vec<Option<SkipReason>>) {
        let reasons = filter(&self.candidates);
        let found = std::mem::take(&mut self.candidates);
        for (candidate, reason) in found.into_iter().zip(reasons) {
            match reason {
                None => self.candidates.push(candidate),
                Some(reason) => self.left_out.push(SkippedEntry {
                    kind: candidate.kind(),
                    id: candidate.id,
                    origin: candidate.origin,
                    named_in: candidate.named_in,
                    reason,
                }),
            }
        }
    }

    /// A component or script that lies in a folder of plugins and is none may be thought to be one.
    fn warn_of_files_without_a_manifest(&mut self) {
        const MAX_NAMES_SHOWN: usize = 5;
        let named = self.candidates.iter().filter_map(|candidate| candidate.file());
        let named: BTreeSet<PathBuf> = named.filter_map(|file| file.canonicalize().ok()).collect();
        let is_named = |file: &Path| file.canonicalize().is_ok_and(|real| named.contains(&real));
        let mut bare = std::mem::take(&mut self.bare);
        bare.retain(|(_, file)| !is_named(file));
        // In a folder that is for plugins alone somebody may take one for a guard. These go first.
        let is_local = |origin: PluginOrigin| origin == PluginOrigin::Config;
        bare.sort_by_key(|(origin, _)| is_local(*origin));
        let (named, others) = bare.split_at(bare.len().min(MAX_NAMES_SHOWN));
        for (origin, file) in named {
            let key = match file.extension().is_some_and(|kind| kind == "rhai") {
                true => "scripts",
                false => "wasm",
            };
            let problem = "it has no plugin.toml beside it, so it is not a plugin";
            let remedy = format!("put one beside it, or name the file in `{key}` under [plugins]");
            let warning = Diagnostic::in_file(file.display(), problem).remedy(remedy);
            self.warnings.push(Diagnostic { is_local: is_local(*origin), ..warning });
        }
        if let Some((_, first)) = others.first() {
            let more = others.len();
            let problem = format!("and {more} more without a plugin.toml");
            let is_local = others.iter().all(|(origin, _)| is_local(*origin));
            let warning = Diagnostic::in_file(first.display(), problem);
            self.warnings.push(Diagnostic { is_local, ..warning });
        }
    }

    /// One place that shadows another is meant to; a file that names two by one id is not.
    fn report_names_of_one_id(&mut self) {
        for SkippedEntry { id, named_in, reason, .. } in &self.left_out {
            if let SkipReason::Shadowed { named_in: other, names: Some([own, first]), .. } = reason
                && named_in == other
            {
                let problem = format!(
                    "one id is made of {first:?} and {own:?}, and it is the first; give one of them \
                     another name"
                );
                let diagnostic = Diagnostic::of(id, problem).file(named_in.display());
                self.diagnostics.push(Diagnostic { is_local: true, ..diagnostic });
            }
        }
    }

    /// What a project's file says against its user's word has no effect, and is said to have none.
    fn warn_of_what_a_project_cannot_say(&mut self, configs: &[Config]) {
        let user = combine::of_user(configs).map(|user| user.path.display().to_string());
        let Some(user) = user else { return };
        for config in configs.iter().filter(|config| combine::is_bounded(config, configs)) {
            let file = config.path.display();
            for key in config.keys_for_user_only() {
                let problem = format!("`{key}` has no effect in the file of a project");
                let remedy = format!("set it in {user}");
                let warning = Diagnostic::in_file(&file, problem).remedy(remedy);
                self.warnings.push(Diagnostic { is_local: true, ..warning });
            }
            let shielded = self.candidates.iter().filter(|candidate| candidate.is_shielded);
            let disabled = shielded.filter(|guard| config.leaves_out(&guard.id));
            let warnings = disabled.map(|guard| {
                let problem = match (guard.kind(), guard.may_handle_hooks()) {
                    (PluginKind::Mcp, false) => {
                        "a project cannot leave out a server that a component or script of its user \
                         may call"
                    }
                    (PluginKind::Mcp, true) => {
                        "a project cannot leave out a server of its user that handles hooks"
                    }
                    _ => "a project cannot leave out a component or script of its user",
                };
                let remedy = format!("add it to `disabled` under [discovery] in {user}");
                Diagnostic::of(&guard.id, problem).file(&file).remedy(remedy)
            });
            self.warnings.extend(warnings.collect::<Vec<_>>());
        }
    }

    fn report_settings_for_nobody(&mut self, configs: &[Config]) {
        let found = self.candidates.iter().map(|candidate| candidate.id.clone());
        let ids: BTreeSet<String> =
            found.chain(self.left_out.iter().map(|l| l.id.clone())).collect();
        for config in configs {
            for id in config.settings.keys().filter(|id| !ids.contains(*id)) {
                let problem = format!("[settings.{id}] is for no plugin");
                let diagnostic = Diagnostic::in_file(config.path.display(), problem);
                // A user's settings are for the plugins of all projects, and most are not here.
                if config.origin == PluginOrigin::User {
                    if let Some(meant) = nearest(id, ids.iter().map(String::as_str)) {
                        let remedy = format!("did you mean \"{meant}\"?");
                        self.warnings.push(diagnostic.remedy(remedy));
                    }
                    continue;
                }
                let known = ids.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                self.diagnostics.push(match known.is_empty() {
                    true => diagnostic,
                    false => diagnostic.remedy(format!("the plugins are: {known}")),
                });
            }
        }
    }

    /// What a user set for a plugin of a project has no effect where the project does not set it, too.
    fn warn_of_settings_that_are_withheld(&mut self, configs: &[Config]) {
        let Some(user) = combine::of_user(configs) else { return };
        let withheld = |candidate: &Candidate| {
            let keys: Vec<&str> =
                candidate.users_settings.withheld.iter().map(String::as_str).collect();
            let id = &candidate.id;
            let problem = format!(
                "a project's plugin gets only settings that its user set in [settings.{id}]; missing: {}",
                keys.join(", ")
            );
            let remedy = "give these a value in the project's file, too; yours goes over it";
            let warning = Diagnostic::of(id, problem).file(user.path.display()).remedy(remedy);
            (!keys.is_empty()).then_some(Diagnostic { is_local: true, ..warning })
        };
        let warnings: Vec<Diagnostic> = self.candidates.iter().filter_map(withheld).collect();
        self.warnings.extend(warnings);
    }

    /// A rule for a plugin that is elsewhere, or that was not installed, is no mistake. In the
    /// configuration of a user, which is for all projects, it is not even worth a word, unless it
    /// looks like another.
    fn warn_of_rules_for_nobody(&mut self, configs: &[Config]) {
        let mut warnings = Vec::new();
        let ids = self.ids();
        for config in configs {
            for (id, rule) in rules_by_id(config).filter(|(id, _)| !ids.contains(id)) {
                let problem = format!("{rule} is for no plugin that is here");
                let warning = Diagnostic::in_file(config.path.display(), &problem);
                warnings.push(match nearest(id, ids.iter().copied()) {
                    Some(meant) => {
                        let problem = format!("{problem}; did you mean \"{meant}\"?");
                        Diagnostic { plugin: Some(meant.to_string()), problem, ..warning }
                    }
                    None if config.origin == PluginOrigin::User => continue,
                    None => warning,
                });
            }
        }
        self.warnings.extend(warnings);
    }
}

/// The ids of plugins that the rules of a configuration name, each with the rule.
fn rules_by_id(config: &Config) -> impl Iterator<Item = (&str, String)> {
    let Config { policy, discovery, hooks, .. } = config;
    let policies = policy.plugins.keys();
    let policies = policies.map(|id| (id.as_str(), format!("[policy.plugins.{id}]")));
    let lists = [
        ("deny", "[policy]", &policy.deny),
        ("allow", "[policy]", &policy.allow),
        ("disabled", "[discovery]", &discovery.disabled),
        ("allowlist", "[discovery]", &discovery.allowlist),
        ("deterministic", "[hooks]", &hooks.deterministic),
    ];
    let listed = lists.into_iter().flat_map(|(key, table, ids)| {
        ids.iter().map(move |id| (id.as_str(), format!("{id:?} in `{key}` under {table}")))
    });
    policies.chain(listed)
}

/// A plugin may bring others along, in a folder of samples for instance; they are not meant.
fn nested(candidates: &[Candidate]) -> Vec<Option<SkipReason>> {
    // As they really lie: `./../two` is not in `.`.
    let real = |candidate: &Candidate| candidate.folder.as_ref()?.canonicalize().ok();
    let places: Vec<Option<PathBuf>> = candidates.iter().map(real).collect();
    let folders: HashMap<&Path, &Candidate> = { places.iter().zip(candidates) }
        .filter_map(|(place, candidate)| Some((place.as_deref()?, candidate)))
        .collect();
    let outer = |(place, inner): (&Option<PathBuf>, &Candidate)| {
        let mut above = place.as_deref()?.ancestors().skip(1);
        let within = above.find_map(|folder| folders.get(folder))?;
        // A project cannot lay a plugin around one of its user's.
        let is_laid = within.origin.is_of_project() && !inner.origin.is_of_project();
        (!is_laid).then(|| SkipReason::Nested { within: within.id.clone() })
    };
    places.iter().zip(candidates).map(outer).collect()
}

/// Keeps a project's hands off what may guard its user, and off what that turns to.
fn shield(candidates: &mut [Candidate], configs: &[Config]) {
    if !configs.iter().any(|config| combine::is_bounded(config, configs)) {
        return;
    }
    let of_user = |candidate: &&mut Candidate| !candidate.origin.is_of_project();
    let (servers, guards): (Vec<_>, Vec<_>) = { candidates.iter_mut().filter(of_user) }
        .partition(|candidate| !candidate.may_handle_hooks());
    let style = OriginSettings::of(configs, PluginOrigin::User).names.style;
    for server in servers {
        let namespace = RegistrationPermissions::namespace(server.permissions.as_ref(), &server.id);
        let prefix = style.rendered_prefix(&server.id, namespace);
        server.is_shielded = guards.iter().any(|guard| {
            let requests = &guard.requests;
            may_be_among(requests, &prefix) || is_one_shared(requests)
        });
    }
    guards.into_iter().for_each(|guard| guard.is_shielded = true);
}

/// Whether a tool could be among those that are requested whose name begins so.
fn may_be_among(requests: &GrantSet, prefix: &str) -> bool {
    requests.values(TOOLS).any(|pattern| {
        let plain = pattern.split('*').next().unwrap_or_default();
        match plain.len() < pattern.len() {
            true => plain.starts_with(prefix) || prefix.starts_with(plain),
            false => plain.starts_with(prefix),
        }
    })
}

/// Whether one is requested that a host has once for all plugins.
fn is_one_shared(requests: &GrantSet) -> bool {
    McpOperation::TOOLS
        .iter()
        .any(|operation| requests.values(TOOLS).any(|pattern| fits(pattern, operation.name())))
}

/// Of several with one id, the first counts; candidates are in the order of precedence. But what a
/// project has no say in goes before what it brings.
fn shadowed(candidates: &[Candidate]) -> Vec<Option<SkipReason>> {
    let mut reasons = Vec::new();
    let mut first: HashMap<&str, &Candidate> = HashMap::new();
    for candidate in candidates {
        let known = first.entry(&candidate.id).or_insert(candidate);
        if known.origin.is_of_project() && candidate.is_shielded {
            *known = candidate;
        }
    }
    for candidate in candidates {
        let known = first[candidate.id.as_str()];
        let names = candidate.name.clone().zip(known.name.clone());
        let names = names.filter(|(own, other)| own != other);
        let reason = SkipReason::Shadowed {
            by: known.origin,
            named_in: known.named_in.clone(),
            names: names.map(<[String; 2]>::from),
        };
        reasons.push((!std::ptr::eq(known, candidate)).then_some(reason));
    }
    reasons
}

fn not_wanted(candidates: &[Candidate], configs: &[Config]) -> Vec<Option<SkipReason>> {
    let reason = |candidate: &Candidate| {
        if !candidate.is_enabled {
            return Some(SkipReason::Disabled { by: candidate.named_in.clone() });
        }
        let owner = candidate.owner();
        let speaks = |config: &&Config| owner.hears(combine::is_bounded(config, configs));
        let mut speaking = configs.iter().filter(speaks);
        let disabled = speaking.clone().find(|c| c.discovery.disabled.contains(&candidate.id));
        if let Some(config) = disabled {
            return Some(SkipReason::Disabled { by: config.path.clone() });
        }
        let not_allowed = speaking.find(|config| {
            let allowlist = &config.discovery.allowlist;
            !allowlist.is_empty() && !allowlist.contains(&candidate.id)
        });
        not_allowed.map(|config| SkipReason::NotAllowed { by: config.path.clone() })
    };
    candidates.iter().map(reason).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_users_settings_may_be_for_plugins_of_other_projects() {
        let check = |config: Config, problems: usize, warnings: usize| {
            let found = discover(&Sources { configs: vec![config], ..Sources::default() });
            assert_eq!((found.diagnostics.len(), found.warnings.len()), (problems, warnings));
        };
        let config = |text: &str| Config::parse(text, "/c/config.toml").expect("it is read");
        let other = "[settings.elsewhere]\nx = 1";
        let slip =
            "[settings.serve]\nx = 1\n[plugins]\nmcp = [{ name = \"server\", command = \"x\" }]";
        check(config(other), 1, 0);
        check(config(other).of_user(), 0, 0);
        check(config(slip).of_user(), 0, 1);
    }

    fn find(text: &str) -> Discovery {
        let config = Config::parse(text, "/project/tenon.toml").expect("the configuration is read");
        discover(&Sources { configs: vec![config], ..Sources::default() })
    }

    #[test]
    fn files_are_named_after_their_stem() {
        let discovery = find(r#"plugins.wasm = ["My Tools.wasm"]"#);
        assert_eq!(discovery.candidates[0].id, "my-tools");
        let CodeSource::Wasm { path, .. } = &discovery.candidates[0].source else { panic!() };
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
        let CodeSource::Mcp(server) = &discovery.candidates[0].source else { panic!() };
        let ServerLocation::Child(program) = &server.place else { panic!() };
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
    struct TestMachine {
        folder: tempfile::TempDir,
        configs: Vec<Config>,
    }

    impl TestMachine {
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
            let host_environment = HostEnvironment {
                environment: [("TENON_PLUGINS".into(), path("env").into())].into(),
                configuration: Some(path("config")),
                ..HostEnvironment::default()
            };
            let discovery = discover(&Sources {
                configs: self.configs.clone(),
                workspace: Some(path("project")),
                bundled: vec![path("bundled")],
                trust: TrustBasis::Host,
                host_environment,
                ..Sources::default()
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
        let machine = TestMachine::new(
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
             \"my-server\" and \"My Server\"; give one of them another name"
        );
        assert_eq!(
            found.diagnostics[0].problem,
            "one id is made of \"My Server\" and \"my-server\", and it is the first; give one of them \
             another name"
        );
        // The same name, twice, is how one place shadows another.
        let found = find(&format!("plugins.mcp = [{}, {}]", one("s"), one("s")));
        assert!(found.diagnostics.is_empty() && found.left_out.len() == 1);
    }

    #[test]
    fn what_is_nested_disabled_or_not_allowed_is_left_out() {
        let machine = TestMachine::new(
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
