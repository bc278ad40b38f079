//! The operator's configuration: `tenon.toml` in the project, and `config.toml` in the user's
//! configuration folder.
//!
//! It says what to load and with which settings. What a file means is in [`crate::discover`].

pub mod combine;
mod issuer;
mod settings;
mod supervision;

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use crate::call_rule::CallRule;
use crate::entry;
pub use combine::{CombineRule, KEY_RULES, KeyRule};
pub use issuer::IssuerSettings;
pub use settings::{
    CallContextTable, CallHistorySettings, ContextPassthroughSettings, DEFAULT_RETRY_BACKOFF,
    DiscoverySettings, HookChainSettings, InstanceMode, Invisible, NameSettings, OnFailure,
    PluginFileEntry, PluginFileTable, PluginKind, PluginOrigin, ProfileMode, ProfileSettings,
    ResourceTools, ResultSettings, RunSettings, SamplingAndMessageSettings, SideEffects,
    StoreSettings, ToolSettings, WatchSettings,
};
use settings::{
    CallHistoryTable, FileWatchTable, HooksTable, MessagesTable, NamesTable, ResultsTable,
    RunsTable, SamplingTable, ScriptEntry, ServeProfileName, ToolTable,
};
pub use supervision::Supervision;

pub use crate::entry::{EnvironmentPolicy, HandshakeMode, McpEntry, McpLogLevel, Transport};
use crate::files::{self, Digest, MAX_CONFIGURATION_BYTES};
use crate::limits::{Limits, LimitsTable};
use crate::policy::{PluginPolicy, Policy};
use crate::toml_parse::parse;

/// One configuration file.
#[derive(Clone, PartialEq)]
pub struct Config {
    /// Where it was read from; relative paths in it begin in its folder.
    pub path: PathBuf,
    /// Components.
    pub wasm: Vec<PluginFileEntry>,
    /// Rhai scripts.
    pub scripts: Vec<PluginFileEntry>,
    /// MCP servers.
    pub mcp: Vec<McpEntry>,
    /// Folders in which a `plugin.toml` is looked for.
    pub folders: Vec<String>,
    /// How folders are looked through, and what of them is wanted.
    pub discovery: DiscoverySettings,
    /// Which plugins may be loaded.
    pub policy: Policy,
    /// How hooks are run; the first configuration that is given says it.
    pub hooks: HookChainSettings,
    /// How tools are called, by the names they have for callers; `*` stands for anything. Of
    /// several that fit, what the first says holds.
    pub tools: Vec<(String, ToolSettings)>,
    /// Which calls of tools may be made. Deny wins; else the first rule that fits decides.
    pub calls: Vec<CallRule>,
    /// Where what it names stands in the order of precedence: [`PluginOrigin::Config`], or
    /// [`PluginOrigin::User`] for the user's own.
    pub origin: PluginOrigin,
    /// The settings of plugins, by their ids.
    pub settings: BTreeMap<String, Map<String, Value>>,
    /// The limits of every plugin, where its manifest says nothing else.
    pub limits: Limits,
    /// The most that a manifest can ask for: what the operator says of the limits, and else
    /// [`Limits::most`].
    pub most: Limits,
    /// What is recorded of calls.
    pub history: CallHistorySettings,
    /// Where is kept what outlives a process.
    pub store: StoreSettings,
    /// The bounds of runs of scripts.
    pub runs: RunSettings,
    /// What plugins and servers get of a host that is the `tenon` command.
    pub client: SamplingAndMessageSettings,
    /// How long a change of files has to wait for others.
    pub watch: WatchSettings,
    /// How much is kept of results that are too long to be passed on.
    pub results: ResultSettings,
    /// What MCP clients are offered, by the names of profiles.
    pub profiles: BTreeMap<String, ProfileSettings>,
    /// Whose JSON Web Tokens MCP clients may send.
    pub issuer: Option<IssuerSettings>,
    /// What plugins are told of who calls.
    pub context: ContextPassthroughSettings,
    /// How MCP servers are kept running.
    pub supervision: Supervision,
    /// How tools are named.
    pub names: NameSettings,
    /// Whether the resources and prompts of plugins are there as tools, too, and how.
    pub resource_tools: ResourceTools,
    /// What it says itself of what it may inherit.
    said: ExplicitSettings,
    /// The configuration of the user, for a project's file that it bounds.
    bounds: Option<Box<Config>>,
    /// How it comes from its file, and so can be read again.
    file: FileBinding,
    /// The content of its file, where that was read.
    digest: Option<Digest>,
    /// Whether it lets in only what a lock binds, whatever its file says.
    is_locked: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            path: PathBuf::new(),
            wasm: Vec::new(),
            scripts: Vec::new(),
            mcp: Vec::new(),
            folders: Vec::new(),
            discovery: DiscoverySettings::default(),
            policy: Policy::default(),
            hooks: HookChainSettings::default(),
            tools: Vec::new(),
            calls: Vec::new(),
            origin: PluginOrigin::default(),
            settings: BTreeMap::new(),
            limits: Limits::default(),
            most: Limits::most(),
            history: CallHistorySettings::default(),
            store: StoreSettings::default(),
            runs: RunSettings::default(),
            client: SamplingAndMessageSettings::default(),
            watch: WatchSettings::default(),
            results: ResultSettings::default(),
            profiles: BTreeMap::new(),
            issuer: None,
            context: ContextPassthroughSettings::default(),
            supervision: Supervision::default(),
            names: NameSettings::default(),
            resource_tools: ResourceTools::default(),
            said: ExplicitSettings::default(),
            bounds: None,
            file: FileBinding::default(),
            digest: None,
            is_locked: false,
        }
    }
}

/// What a configuration says itself; see [`Config::inherit`].
#[derive(Clone, Default, PartialEq)]
struct ExplicitSettings {
    limits: LimitsTable,
    hooks: HooksTable,
    history: CallHistoryTable,
    store: StoreSettings,
    runs: RunsTable,
    watch: FileWatchTable,
    results: ResultsTable,
    profiles: BTreeMap<String, ProfileSettings>,
    issuer: Option<IssuerSettings>,
    context: CallContextTable,
    supervision: Option<Supervision>,
    names: NamesTable,
    resource_tools: Option<ResourceTools>,
    client: SamplingAndMessageSettings,
}

/// How a configuration comes from its file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum FileBinding {
    /// It does not.
    #[default]
    Text,
    /// It was read from it.
    Read,
    /// The file may be there, or not.
    Optional,
}

impl fmt::Debug for Config {
    /// Shows nothing that could be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, wasm, scripts, mcp, folders, .. } = self;
        f.debug_struct("Config")
            .field("path", path)
            .field("wasm", wasm)
            .field("scripts", scripts)
            .field("mcp", mcp)
            .field("folders", folders)
            .finish_non_exhaustive()
    }
}

/// Why a configuration file was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{} cannot be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// The file does not say what it should.
    #[error("{}:{line}: {problem}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
}

/// The file, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFileToml {
    #[serde(default)]
    plugins: PluginsTable,
    #[serde(default)]
    settings: BTreeMap<String, Map<String, Value>>,
    #[serde(default)]
    limits: LimitsTable,
    #[serde(default)]
    discovery: DiscoverySettings,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    hooks: HooksTable,
    #[serde(default)]
    tools: BTreeMap<String, ToolTable>,
    #[serde(default)]
    history: CallHistoryTable,
    #[serde(default)]
    store: StoreSettings,
    #[serde(default)]
    runs: RunsTable,
    #[serde(default)]
    watch: FileWatchTable,
    #[serde(default)]
    results: ResultsTable,
    #[serde(default)]
    profiles: BTreeMap<ServeProfileName, ProfileSettings>,
    issuer: Option<IssuerSettings>,
    #[serde(default)]
    context: CallContextTable,
    supervision: Option<Supervision>,
    #[serde(default)]
    names: NamesTable,
    #[serde(default)]
    sampling: SamplingTable,
    #[serde(default)]
    messages: MessagesTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PluginsTable {
    resource_tools: Option<ResourceTools>,
    wasm: Vec<PluginFileEntry>,
    scripts: Vec<ScriptEntry>,
    #[serde(deserialize_with = "entry::named")]
    mcp: Vec<McpEntry>,
    folders: Vec<String>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, or says something that it should not: the error names the
    /// line, and what is wrong.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let path = path.into();
        let text = files::read_text(&path, MAX_CONFIGURATION_BYTES)
            .map_err(|error| ConfigError::Read(path.clone(), error))?;
        let digest = Some(Digest::of(&text));
        Ok(Self { file: FileBinding::Read, digest, ..Self::parse(&text, path)? })
    }

    /// A file that is read when plugins are looked for ([`crate::discover::discover_trusted`]), and has to
    /// be there then.
    pub fn of_file(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), file: FileBinding::Read, ..Self::default() }
    }

    /// The same for a file that need not be there.
    pub fn of_optional_file(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), file: FileBinding::Optional, ..Self::default() }
    }

    /// The same, letting in only what a lock file binds, whatever its file says.
    pub fn locked(mut self) -> Self {
        self.is_locked = true;
        self.policy.locked = true;
        self
    }

    /// The same as before its file was read.
    pub fn unread(&self) -> Self {
        let Self { path, file, origin, is_locked, .. } = self;
        let empty = Self { path: path.clone(), file: *file, origin: *origin, ..Self::default() };
        if *is_locked { empty.locked() } else { empty }
    }

    /// The content of its file, where that was read.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Notes the content of its file, of which nothing else could be understood.
    pub fn set_digest(&mut self, digest: Option<Digest>) {
        self.digest = digest;
    }

    /// Reads a file that need not be there. Without it nothing is said; a reload finds it when it
    /// has come.
    ///
    /// # Errors
    ///
    /// As for [`Config::read`], for a file that is there.
    pub fn read_optional(path: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let config = Self::of_optional_file(path);
        Ok(config.read_again(|_| true)?.unwrap_or(config))
    }

    /// The same, with what its file says now, where it came from one whose content is let in; of a file
    /// that is not there, there is none.
    pub fn read_again(
        &self,
        let_in: impl FnOnce(Option<Digest>) -> bool,
    ) -> Result<Option<Self>, ConfigError> {
        if self.file == FileBinding::Text {
            return Ok(Some(self.clone()));
        }
        let unreadable = |error| ConfigError::Read(self.path.clone(), error);
        // Only what is not there is not there: a link that leads nowhere, or a folder that cannot be
        // looked into, may hide a policy.
        let text = match std::fs::symlink_metadata(&self.path) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && self.file == FileBinding::Optional =>
            {
                None
            }
            Err(error) => return Err(unreadable(error)),
            Ok(_) => {
                Some(files::read_text(&self.path, MAX_CONFIGURATION_BYTES).map_err(unreadable)?)
            }
        };
        let digest = text.as_ref().map(Digest::of);
        if !let_in(digest) {
            return Ok(None);
        }
        let read = match text {
            Some(text) => Self::parse(&text, &self.path)?,
            None => Self { path: self.path.clone(), ..Self::default() },
        };
        let read = Self { file: self.file, origin: self.origin, digest, ..read };
        Ok(Some(if self.is_locked { read.locked() } else { read }))
    }

    /// Has each configuration that was read from a file say what those after it say, where it says
    /// nothing itself: how much plugins may use, how hooks are run, what is recorded. A project's file
    /// is bounded by what its user's says ([`combine`]). One that was made in code says what it says.
    pub fn inherit(configs: &mut [Self]) {
        let mut below = Self::default();
        let mut user: Option<Self> = None;
        for config in configs.iter_mut().rev() {
            if config.file != FileBinding::Text {
                config.bounds = None;
                config.settle(&below);
            }
            if config.origin == PluginOrigin::User {
                user = Some(config.clone());
            } else if let Some(user) = user.as_ref().filter(|_| config.is_of_project_file()) {
                combine::bound_by_user(config, user);
            }
            below.clone_from(config);
        }
    }

    /// The same as if it had been read from its file.
    #[cfg(test)]
    pub fn into_read(self) -> Self {
        Self { file: FileBinding::Read, ..self }
    }

    /// The same, as if its file had been silent about what it may inherit.
    #[cfg(test)]
    pub fn without_explicit(self) -> Self {
        Self { said: ExplicitSettings::default(), ..self }
    }

    /// The keys that it sets and that only a user's own file can ([`CombineRule::UserOnly`]).
    pub fn keys_for_user_only(&self) -> Vec<&'static str> {
        let ExplicitSettings {
            history, store, runs, watch, results, profiles, issuer, client, ..
        } = &self.said;
        let SamplingAndMessageSettings { sampling_model, sampling_asks, message_command } = client;
        let supervision = self.said.supervision.as_ref();
        let concurrent_starts = supervision.and_then(|said| said.concurrent_starts);
        let of_profile = |is_set: fn(&ProfileSettings) -> bool| profiles.values().any(is_set);
        let of_issuer = |is_set: fn(&IssuerSettings) -> bool| issuer.as_ref().is_some_and(is_set);
        let of_plugin =
            |is_set: fn(&PluginPolicy) -> bool| self.policy.plugins.values().any(is_set);
        let keys = [
            (
                "policy.plugins.*.believe_annotations",
                of_plugin(|plugin| plugin.believe_annotations.is_some()),
            ),
            ("supervision.concurrent_starts", concurrent_starts.is_some()),
            ("history.enabled", history.enabled.is_some()),
            ("history.max_mib", history.max_mib.is_some()),
            ("store.url", store.url.is_some()),
            ("store.authorities", store.authorities.is_some()),
            ("runs.operations", runs.operations.is_some()),
            ("runs.cpu", runs.cpu.is_some()),
            ("runs.wall", runs.wall.is_some()),
            ("runs.calls", runs.calls.is_some()),
            ("runs.parallel", runs.parallel.is_some()),
            ("runs.output_kib", runs.output_kib.is_some()),
            ("sampling.model", sampling_model.is_some()),
            ("sampling.ask", !sampling_asks),
            ("messages.command", !message_command.is_empty()),
            ("watch.debounce", watch.debounce.is_some()),
            ("watch.max_delay", watch.max_delay.is_some()),
            ("results.max_mib", results.max_mib.is_some()),
            ("results.max_result_mib", results.max_result_mib.is_some()),
            ("results.invisible", results.invisible.is_some()),
            ("profiles.*.tools", of_profile(|profile| profile.tools.is_some())),
            ("profiles.*.resources", of_profile(|profile| profile.resources.is_some())),
            ("profiles.*.prompts", of_profile(|profile| profile.prompts.is_some())),
            ("profiles.*.prefix", of_profile(|profile| profile.prefix.is_some())),
            (
                "profiles.*.calls_per_minute",
                of_profile(|profile| profile.calls_per_minute.is_some()),
            ),
            ("profiles.*.mode", of_profile(|profile| profile.mode.is_some())),
            ("profiles.*.calls", of_profile(|profile| profile.calls.is_some())),
            ("issuer.url", issuer.is_some()),
            ("issuer.audience", issuer.is_some()),
            ("issuer.jwks", of_issuer(|issuer| issuer.jwks.is_some())),
            ("issuer.scopes", of_issuer(|issuer| !issuer.scopes.is_empty())),
            ("issuer.profile", of_issuer(|issuer| issuer.profile.is_some())),
            ("issuer.profile_claim", of_issuer(|issuer| issuer.profile_claim.is_some())),
        ];
        keys.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key).collect()
    }

    /// Whether it has a plugin left out, or refused by its id.
    pub fn leaves_out(&self, id: &str) -> bool {
        let has = |ids: &[String]| ids.iter().any(|listed| listed == id);
        let enabled = self.policy.plugins.get(id).and_then(|plugin| plugin.enabled);
        has(&self.discovery.disabled) || has(&self.policy.deny) || enabled == Some(false)
    }

    /// Whether it was read from a file, or would be if that were there.
    pub fn is_of_file(&self) -> bool {
        self.file != FileBinding::Text
    }

    /// Whether it was read from the file of a project, or would be if that were there.
    pub fn is_of_project_file(&self) -> bool {
        self.origin == PluginOrigin::Config && self.file != FileBinding::Text
    }

    /// Says what it says itself, and else what another says.
    fn settle(&mut self, below: &Self) {
        let ExplicitSettings {
            limits,
            hooks,
            history,
            store,
            runs,
            watch,
            results,
            profiles,
            issuer,
            context,
            supervision,
            names,
            resource_tools,
            client,
        } = &self.said;
        self.store.clone_from(store);
        self.runs = runs.over(below.runs);
        self.profiles.clone_from(profiles);
        self.issuer.clone_from(issuer);
        self.client = client.clone();
        self.limits = limits.over(&below.limits);
        self.most = limits.over(&below.most);
        self.hooks = HookChainSettings {
            timeout: hooks.timeout.unwrap_or(below.hooks.timeout),
            on_failure: hooks.on_failure.unwrap_or(below.hooks.on_failure),
            deterministic: {
                let said = hooks.deterministic.clone();
                said.unwrap_or_else(|| below.hooks.deterministic.clone())
            },
        };
        self.history = CallHistorySettings {
            enabled: history.enabled.unwrap_or(below.history.enabled),
            max_mib: history.max_mib.map_or(below.history.max_mib, NonZeroU32::get),
        };
        self.watch = WatchSettings {
            debounce: watch.debounce.unwrap_or(below.watch.debounce),
            max_delay: watch.max_delay.unwrap_or(below.watch.max_delay),
        };
        let mib = |said: Option<NonZeroU32>, below| said.map_or(below, NonZeroU32::get);
        self.results = ResultSettings {
            max_mib: mib(results.max_mib, below.results.max_mib),
            max_result_mib: mib(results.max_result_mib, below.results.max_result_mib),
            invisible: results.invisible.unwrap_or(below.results.invisible),
        };
        self.context = ContextPassthroughSettings {
            passthrough: context.passthrough.unwrap_or(below.context.passthrough),
        };
        self.names = NameSettings {
            style: names.style.unwrap_or(below.names.style),
            origin_prefix: names.origin_prefix.unwrap_or(below.names.origin_prefix),
        };
        self.resource_tools = resource_tools.unwrap_or(below.resource_tools);
        self.supervision = supervision.as_ref().unwrap_or(&below.supervision).clone();
    }

    /// Reads a text as if it stood in a file.
    ///
    /// # Errors
    ///
    /// Where the text says something that it should not.
    pub fn parse(text: &str, path: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let path = path.into();
        let file = match parse(text) {
            Ok(file) => file,
            Err((line, problem)) => return Err(ConfigError::Invalid { path, line, problem }),
        };
        let ConfigFileToml {
            plugins,
            settings,
            limits,
            discovery,
            policy,
            hooks,
            tools,
            history,
            store,
            runs,
            watch,
            results,
            profiles,
            issuer,
            context,
            supervision,
            names,
            sampling,
            messages,
        } = file;
        let client = SamplingAndMessageSettings {
            sampling_model: sampling.model,
            sampling_asks: sampling.ask.unwrap_or(true),
            message_command: messages.command,
        };
        let profiles =
            profiles.into_iter().map(|(ServeProfileName(name), profile)| (name, profile));
        let profiles = profiles.collect();
        let PluginsTable { resource_tools, wasm, scripts, mcp, folders } = plugins;
        let mut tool_tables: Vec<(String, ToolTable)> = tools.into_iter().collect();
        // The more a pattern says, the earlier it comes.
        tool_tables
            .sort_by_key(|(pattern, _)| (pattern.contains('*'), std::cmp::Reverse(pattern.len())));
        let (mut tools, mut calls) = (Vec::new(), Vec::new());
        for (pattern, table) in tool_tables {
            let (rule, rules) = table.split(&pattern);
            calls.extend(rules);
            tools.push((pattern, rule));
        }
        let origin = PluginOrigin::Config;
        let mut config = Self {
            path,
            wasm,
            scripts: scripts.into_iter().map(|ScriptEntry(entry)| entry).collect(),
            mcp,
            folders,
            discovery,
            policy,
            tools,
            calls,
            origin,
            settings,
            client: client.clone(),
            said: ExplicitSettings {
                limits,
                hooks,
                history,
                store,
                runs,
                watch,
                results,
                profiles,
                issuer,
                context,
                supervision,
                names,
                resource_tools,
                client,
            },
            ..Self::default()
        };
        config.settle(&Self::default());
        Ok(config)
    }

    /// The same as the user's own configuration, which comes after a project's.
    pub fn of_user(self) -> Self {
        Self { origin: PluginOrigin::User, ..self }
    }

    /// The limits of a plugin: what its manifest asks for, as far as the operator lets it, who may
    /// say something of this very plugin.
    pub fn limits_of(&self, id: &str, asked: &LimitsTable) -> Limits {
        let limits = asked.over(&self.own_limits(id, &self.limits));
        limits.at_most(&self.most_of(id))
    }

    /// The most that a plugin can have.
    pub fn most_of(&self, id: &str) -> Limits {
        let most = self.own_limits(id, &self.most);
        match &self.bounds {
            Some(user) => most.at_most(&user.most_of(id)),
            None => most,
        }
    }

    /// These limits, with what is said of this very plugin.
    fn own_limits(&self, id: &str, limits: &Limits) -> Limits {
        let own = self.policy.plugins.get(id).map(|plugin| &plugin.limits);
        own.map_or_else(|| limits.clone(), |own| own.over(limits))
    }

    /// The folder in which relative paths begin.
    pub fn folder(&self) -> &Path {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn check(text: &str, expected: &str) {
        let error = Config::parse(text, "tenon.toml").unwrap_err().to_string();
        assert_eq!(error, expected);
    }

    #[test]
    fn a_file_is_read() {
        let config = Config::parse(
            r#"
            [plugins]
            wasm = ["a.wasm", { path = "b.wasm", id = "bee", instance = "shared" }]
            scripts = ["hooks.rhai"]
            mcp = [{ name = "m", command = "x", timeout = "5s" }]
            [settings.bee]
            depth = 3
            [limits]
            wall = "2s"
            "#,
            "dir/tenon.toml",
        )
        .unwrap();
        assert_eq!(config.wasm[0], PluginFileEntry::Path("a.wasm".into()));
        assert!(
            matches!(&config.wasm[1], PluginFileEntry::Table(table) if table.instance == InstanceMode::Shared)
        );
        assert_eq!(config.mcp[0].timeout, Some(Duration::from_secs(5)));
        assert_eq!(config.settings["bee"]["depth"], 3);
        assert_eq!(config.limits.wall, Duration::from_secs(2));
        assert_eq!(config.folder(), Path::new("dir"));
    }

    #[test]
    fn a_file_inherits_and_code_says_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
            Config::read(folder.path().join(name)).unwrap()
        };
        let user = read(
            "user.toml",
            "limits.wall = \"2s\"\nhistory.max_mib = 64\nhooks.on_failure = \"stop\"",
        )
        .of_user();
        let project = read("project.toml", "limits.cpu = \"1s\"\nhistory.max_mib = 1");
        let mut code = Config::default();
        code.limits.memory = 1;
        let mut configs = [code, project, user];
        for _ in 0..2 {
            Config::inherit(&mut configs);
            let [code, project, user] = &configs;
            assert_eq!((code.limits.memory, code.limits.wall), (1, Limits::default().wall));
            let second = Duration::from_secs(1);
            assert_eq!((project.limits.cpu, project.limits.wall), (second, 2 * second));
            assert_eq!(project.hooks.on_failure, OnFailure::Stop);
            assert_eq!((project.history.max_mib, user.history.max_mib), (64, 64));
        }
    }

    #[test]
    fn a_manifest_gets_what_the_operator_lets_it_have() {
        let of = |configuration: &str, manifest: &str| {
            let config = Config::parse(configuration, "tenon.toml").unwrap();
            config.limits_of("p", &toml::from_str(manifest).unwrap())
        };
        let second = Duration::from_secs(1);
        assert_eq!(of("", ""), Limits::default());
        // Of what the operator says nothing, the host's ceiling holds.
        assert_eq!(of("", "cpu = \"20s\"").cpu, 20 * second);
        assert_eq!(of("", "cpu = \"20h\"").cpu, Limits::most().cpu);
        assert_eq!(of("limits.cpu = \"2s\"", "cpu = \"20s\"").cpu, 2 * second);
        assert_eq!(of("limits.cpu = \"2s\"", "cpu = \"1s\"").cpu, second);
        let own = "limits.cpu = \"2s\"\npolicy.plugins.p.limits.cpu = \"7s\"";
        assert_eq!(of(own, "").cpu, 7 * second);
        assert_eq!(of(own, "cpu = \"20s\"").cpu, 7 * second);
        assert_eq!(of("", "host_calls = 5\nlog_rate = 3\ninstances = 2").host_calls, 5);
    }

    #[test]
    fn errors_name_the_line_and_what_is_known_there() {
        check(
            "\n[plugins]\nwsam = []\n",
            "tenon.toml:3: unknown field `wsam`, expected one of `resource_tools`, `wasm`, `scripts`, `mcp`, `folders`; did you mean `wasm`?",
        );
        check(
            "[plugins]\nwasm = [\n  { path = \"x\", instnace = \"shared\" },\n]",
            "tenon.toml:3: unknown field `instnace`, expected one of `path`, `id`, `instance`, `capabilities`; did you mean `instance`?",
        );
        check(
            "plugins.wasm = [{ path = \"x\", instance = \"often\" }]",
            "tenon.toml:1: unknown variant `often`, expected one of `fresh`, `shared`, `stateless`, `session`",
        );
        check(
            "plugins.wasm = [{ path = \"x\", instance = true }]",
            "tenon.toml:1: `plugins.wasm[0].instance` must be a text, not `true`",
        );
        check(
            "plugins.scripts = [{ path = \"x\", instance = \"shared\" }]",
            "tenon.toml:1: unknown field `instance`, expected one of `path`, `id`, `capabilities`",
        );
        check(
            "plugins.scripts = [3]",
            "tenon.toml:1: `plugins.scripts[0]` must be a path, or a table with `path`, not the number 3",
        );
        check(
            "[plugins]\nmcp = [{ name = 3 }]",
            "tenon.toml:2: `plugins.mcp[0].name` must be a text, not the number 3",
        );
        check("[plugins]\nmcp = [{ command = \"x\" }]", "tenon.toml:2: missing field `name`");
        check(
            "[limits]\nwall = \"soon\"",
            "tenon.toml:2: `limits.wall` must be a duration such as \"30s\", not the text \"soon\"",
        );
        check("[plugins", "tenon.toml:1: unclosed table, expected `]`");
    }
}
