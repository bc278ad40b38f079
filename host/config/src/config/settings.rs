//! The sections of a configuration: what each may say, and what holds where it says nothing.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;
use tenon_types::name::ToolNameStyle;

use crate::call_rule::{CallDecision, CallRule, CallRuleTable, DefaultCallMode};
use crate::toml_parse::some_time;

/// How the tools are there that list and read the resources and prompts of plugins: `resource_tools`
/// under `[plugins]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceTools {
    /// There are none.
    None,
    /// Once for all plugins: `read_resource` and the like, with the plugin's id as an argument.
    #[default]
    Shared,
    /// For each plugin that has something: `files__read_resource` and the like.
    Each,
}

/// `[discovery]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiscoverySettings {
    /// How many folders deep a manifest is looked for.
    pub max_depth: usize,
    /// The names of folders that are not looked into.
    pub ignore_dirs: Vec<String>,
    /// Whether symbolic links are followed; never out of the folder that is looked through.
    pub follow_links: bool,
    /// The ids of plugins that are left out.
    pub disabled: Vec<String>,
    /// The ids of the only plugins that are not left out; without any, all.
    pub allowlist: Vec<String>,
}

impl Default for DiscoverySettings {
    fn default() -> Self {
        Self {
            max_depth: 4,
            ignore_dirs: ["node_modules", ".git", "target"].map(Into::into).into(),
            follow_links: false,
            disabled: Vec::new(),
            allowlist: Vec::new(),
        }
    }
}

/// How a tool is called: `[tools."PATTERN"]`. What is not said is as the plugin has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// Whether it may be called.
    pub enabled: Option<bool>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// How often a call is tried that fails for a reason which may pass; once, where nothing is
    /// said. Only a tool whose calls may be repeated is tried again.
    pub max_attempts: Option<NonZeroU32>,
    /// How long to wait before the second attempt; each further one waits twice as long.
    pub retry_backoff: Option<Duration>,
    /// What its calls change, in place of what the tool says of itself.
    pub side_effects: Option<SideEffects>,
}

/// `[tools."PATTERN"]`, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolTable {
    enabled: Option<bool>,
    #[serde(default, deserialize_with = "some_time")]
    timeout: Option<Duration>,
    max_attempts: Option<NonZeroU32>,
    #[serde(default, with = "humantime_serde")]
    retry_backoff: Option<Duration>,
    side_effects: Option<SideEffects>,
    approve: Option<CallDecision>,
    #[serde(default)]
    when: Vec<CallRuleTable>,
}

impl ToolTable {
    /// How the tools are called, and which of their calls may be made.
    pub(super) fn split(self, pattern: &str) -> (ToolSettings, Vec<CallRule>) {
        let Self { enabled, timeout, max_attempts, retry_backoff, side_effects, approve, when } =
            self;
        let rule = ToolSettings { enabled, timeout, max_attempts, retry_backoff, side_effects };
        (rule, CallRule::of_table(pattern, approve, when))
    }
}

/// How long to wait before a second attempt at a call, where nothing is said.
pub const DEFAULT_RETRY_BACKOFF: Duration = Duration::from_millis(200);

/// What the calls of a tool change, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SideEffects {
    /// Nothing.
    None,
    /// Something, but a second call of the same changes nothing more.
    Idempotent,
    /// Something, each time anew.
    Repeated,
}

/// `[sampling]` and `[messages]`: what servers and plugins get of a host that is the `tenon` command. Others
/// have services of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingAndMessageSettings {
    /// The model that answers servers, by its id or as PLUGIN/ID; without one they cannot ask.
    pub sampling_model: Option<String>,
    /// Whether the user is asked each time; then servers get no answer where there is no terminal.
    pub sampling_asks: bool,
    /// The program that is started for each message of a plugin, which it gets as JSON on its standard
    /// input, and its arguments; without one, messages are shown on the terminal.
    pub message_command: Vec<String>,
}

impl Default for SamplingAndMessageSettings {
    fn default() -> Self {
        Self { sampling_model: None, sampling_asks: true, message_command: Vec::new() }
    }
}

/// `[sampling]`, as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SamplingTable {
    pub(super) model: Option<String>,
    pub(super) ask: Option<bool>,
}

/// `[messages]`, as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MessagesTable {
    pub(super) command: Vec<String>,
}

/// `[history]`, as it is written.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CallHistoryTable {
    pub(super) enabled: Option<bool>,
    pub(super) max_mib: Option<NonZeroU32>,
}

/// `[history]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallHistorySettings {
    /// Whether calls are recorded, where the host has a place for it.
    pub enabled: bool,
    /// How much may be kept, in MiB.
    pub max_mib: u32,
}

impl Default for CallHistorySettings {
    fn default() -> Self {
        Self { enabled: true, max_mib: 16 }
    }
}

/// `[store]`: where is kept what outlives a process.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSettings {
    /// The address of a PostgreSQL database, which several hosts can share. Without one, it is kept in the user's folder for
    /// state. Variables of the environment stand in it for what nobody else may read.
    pub url: Option<String>,
    /// A PEM file with the authorities that vouch for the database's server. Without one, public authorities do.
    pub authorities: Option<String>,
}

/// An address may have a password in it.
impl fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, authorities } = self;
        let mut shown = f.debug_struct("StoreSettings");
        shown.field("url", &url.is_some()).field("authorities", authorities).finish()
    }
}

/// `[runs]`, as it is written.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RunsTable {
    pub(super) operations: Option<NonZeroU64>,
    #[serde(deserialize_with = "some_time")]
    pub(super) cpu: Option<Duration>,
    #[serde(deserialize_with = "some_time")]
    pub(super) wall: Option<Duration>,
    pub(super) calls: Option<NonZeroU32>,
    pub(super) parallel: Option<NonZeroU32>,
    pub(super) output_kib: Option<NonZeroU32>,
}

/// `[runs]`: the bounds of runs of scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSettings {
    /// How many operations of the script a run may take.
    pub operations: u64,
    /// How long it may compute.
    pub cpu: Duration,
    /// How long it may take in all.
    pub wall: Duration,
    /// How many calls it may make.
    pub calls: u32,
    /// How many branches run at a time.
    pub parallel: u32,
    /// How much it may print and return, in KiB.
    pub output_kib: u32,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            operations: 10_000_000,
            cpu: Duration::from_secs(10),
            wall: Duration::from_secs(300),
            calls: 500,
            parallel: 8,
            output_kib: 256,
        }
    }
}

impl RunsTable {
    /// What is said, and what holds where nothing is.
    pub(super) fn over(&self, below: RunSettings) -> RunSettings {
        RunSettings {
            operations: self.operations.map_or(below.operations, NonZeroU64::get),
            cpu: self.cpu.unwrap_or(below.cpu),
            wall: self.wall.unwrap_or(below.wall),
            calls: self.calls.map_or(below.calls, NonZeroU32::get),
            parallel: self.parallel.map_or(below.parallel, NonZeroU32::get),
            output_kib: self.output_kib.map_or(below.output_kib, NonZeroU32::get),
        }
    }
}

/// `[watch]`, as it is written.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileWatchTable {
    #[serde(deserialize_with = "some_time")]
    pub(super) debounce: Option<Duration>,
    #[serde(deserialize_with = "some_time")]
    pub(super) max_delay: Option<Duration>,
}

/// `[watch]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchSettings {
    /// How long it must have been quiet before changes are looked at: a build writes several files.
    pub debounce: Duration,
    /// How long to wait for quiet.
    pub max_delay: Duration,
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self { debounce: Duration::from_millis(100), max_delay: Duration::from_secs(2) }
    }
}

/// `[results]`, as it is written.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ResultsTable {
    pub(super) max_mib: Option<NonZeroU32>,
    pub(super) max_result_mib: Option<NonZeroU32>,
    pub(super) invisible: Option<Invisible>,
}

/// `[results]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultSettings {
    /// How much is kept in all, in MiB; the oldest result goes first.
    pub max_mib: u32,
    /// The longest result that is kept, in MiB of JSON.
    pub max_result_mib: u32,
    /// What becomes of characters in results that a reader does not see.
    pub invisible: Invisible,
}

/// What becomes of characters that a reader does not see, or that change what is seen, in the results of
/// tools: `invisible` under `[results]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Invisible {
    /// They stand there as escapes: `\u{202e}`, and in JSON as `\u202e`.
    #[default]
    Escape,
    /// They are left as they are.
    Raw,
}

impl Default for ResultSettings {
    fn default() -> Self {
        Self { max_mib: 256, max_result_mib: 128, invisible: Invisible::default() }
    }
}

/// On which instance a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InstanceMode {
    /// Each call has an instance of its own, made for it and gone after it.
    #[default]
    Fresh,
    /// All calls share one live instance, many of them in flight at a time.
    Shared,
    /// Calls are spread over a few live instances, one for each processor at most, with many in flight in each: for what
    /// keeps nothing from one call to the next.
    Stateless,
    /// The calls of each session share one live instance, which ends with the session. A call of no session has
    /// an instance of its own.
    Session,
}

impl InstanceMode {
    /// The word for it in manifests and configurations.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Shared => "shared",
            Self::Stateless => "stateless",
            Self::Session => "session",
        }
    }
}

/// By hand, since TOML's own reader of enums does not say which value was wrong, and where.
impl<'de> Deserialize<'de> for InstanceMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const ALL: [InstanceMode; 4] = [
            InstanceMode::Fresh,
            InstanceMode::Shared,
            InstanceMode::Stateless,
            InstanceMode::Session,
        ];
        let word = String::deserialize(deserializer)?;
        let mode = ALL.into_iter().find(|mode| mode.as_str() == word);
        mode.ok_or_else(|| {
            D::Error::unknown_variant(&word, &["fresh", "shared", "stateless", "session"])
        })
    }
}

/// The kinds of places that plugins come from, the first that has an id wins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginOrigin {
    #[default]
    /// Named by a configuration file: an entry, or a folder under `plugins.folders`.
    Config,
    /// In a folder that the environment names, in `TENON_PLUGINS`.
    Environment,
    /// In the project's `.tenon/plugins`, or named by its `.mcp.json` or `.vscode/mcp.json`.
    Workspace,
    /// Named by the user's own configuration, in `plugins` beside it, or named by the file with the
    /// user's servers for all programs.
    User,
    /// Part of the host.
    Bundled,
}

impl PluginOrigin {
    /// Whether a project brings what is found there; what is found elsewhere is its user's, or the
    /// host's.
    pub fn is_of_project(self) -> bool {
        matches!(self, Self::Config | Self::Workspace)
    }
}

impl fmt::Display for PluginOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Config => "config",
            Self::Environment => "environment",
            Self::Workspace => "workspace",
            Self::User => "user",
            Self::Bundled => "bundled",
        })
    }
}

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

/// `[context]`, here and in manifests, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallContextTable {
    pub(crate) passthrough: Option<bool>,
}

/// `[context]`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextPassthroughSettings {
    /// Whether MCP servers get the ids of the agent and the session in the `_meta` of calls.
    pub passthrough: bool,
}

/// `[profiles.NAME]`: what MCP clients are offered that use a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileSettings {
    /// The tools, by the names that clients have for them. In a pattern `*` stands for any text. All, where it is not
    /// said.
    pub tools: Option<Vec<String>>,
    /// The resources, by patterns of their URIs. All, where it is not said.
    pub resources: Option<Vec<String>>,
    /// The prompts, by patterns of the names that clients have for them. All, where it is not said.
    pub prompts: Option<Vec<String>>,
    /// Whether the names of tools and prompts begin with those of their plugins. They do where it is not said.
    pub prefix: Option<bool>,
    /// How often in a minute one client may call each tool. As often as it likes, where it is not said.
    pub calls_per_minute: Option<NonZeroU32>,
    /// What becomes of calls of which no rule says anything, in place of `calls` under `[policy]`.
    pub calls: Option<DefaultCallMode>,
    /// How the tools are offered. All are listed where it is not said.
    pub mode: Option<ProfileMode>,
}

/// How MCP clients are offered the tools of a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileMode {
    /// All are listed.
    #[default]
    Tools,
    /// Two tools are listed: one finds tools, the other calls one.
    Search,
    /// Two tools are listed: one finds tools, the other runs a script that calls them.
    Code,
}

/// The name of a profile, which stands in URLs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct ServeProfileName(pub(super) String);

impl TryFrom<String> for ServeProfileName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        match (1..=64).contains(&name.len()) && name.bytes().all(is_allowed) {
            true => Ok(Self(name)),
            false => Err(format!(
                "`{name}` is no name of a profile: it has 1 to 64 of a-z, 0-9, - and _"
            )),
        }
    }
}

/// `[names]`, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NamesTable {
    pub(super) style: Option<ToolNameStyle>,
    pub(super) origin_prefix: Option<bool>,
}

/// `[names]`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NameSettings {
    /// How the names of tools are rendered.
    pub style: ToolNameStyle,
    /// Whether descriptions of tools begin with whose they are: `[ext:ID]`.
    pub origin_prefix: bool,
}

/// `[hooks]`, as it is written.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HooksTable {
    #[serde(deserialize_with = "some_time")]
    pub(super) timeout: Option<Duration>,
    pub(super) on_failure: Option<OnFailure>,
    pub(super) deterministic: Option<Vec<String>>,
}

/// `[hooks]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookChainSettings {
    /// How long one handler may take.
    pub timeout: Duration,
    /// What a handler that fails, or takes longer, means for the chain.
    pub on_failure: OnFailure,
    /// The ids of plugins whose handlers answer the same to the same: they are not asked twice.
    pub deterministic: Vec<String>,
}

impl Default for HookChainSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            on_failure: OnFailure::Skip,
            deterministic: Vec::new(),
        }
    }
}

/// What a handler that fails means for the chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// It is recorded, and the chain goes on as if there were no such handler.
    #[default]
    Skip,
    /// The chain stops, and what was about to happen does not.
    Stop,
}

/// A component or a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginFileEntry {
    /// Only where it is.
    Path(String),
    /// More than that.
    Table(PluginFileTable),
}

impl<'de> Deserialize<'de> for PluginFileEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read::<PluginFileTable, D>(deserializer)
    }
}

/// The entry of a script as it is written.
pub(super) struct ScriptEntry(pub(super) PluginFileEntry);

impl<'de> Deserialize<'de> for ScriptEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PluginFileEntry::read::<ScriptEntryTable, D>(deserializer).map(Self)
    }
}

/// What more than a path is said of a script: it has no instances.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptEntryTable {
    path: String,
    id: Option<String>,
    #[serde(default)]
    capabilities: BTreeMap<String, Vec<String>>,
}

impl From<ScriptEntryTable> for PluginFileTable {
    fn from(table: ScriptEntryTable) -> Self {
        let ScriptEntryTable { path, id, capabilities } = table;
        Self { path, id, capabilities, ..Self::default() }
    }
}

impl PluginFileEntry {
    /// Reads a path, or a table of this kind. By hand: serde's untagged enums lose which key was wrong, and where.
    fn read<'de, T, D>(deserializer: D) -> Result<Self, D::Error>
    where
        T: Deserialize<'de> + Into<PluginFileTable>,
        D: Deserializer<'de>,
    {
        struct PluginFileVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de> + Into<PluginFileTable>> Visitor<'de> for PluginFileVisitor<T> {
            type Value = PluginFileEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path, or a table with `path`")
            }

            fn visit_str<E>(self, path: &str) -> Result<PluginFileEntry, E> {
                Ok(PluginFileEntry::Path(path.to_string()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PluginFileEntry, A::Error> {
                let table = T::deserialize(MapAccessDeserializer::new(map))?;
                Ok(PluginFileEntry::Table(table.into()))
            }
        }

        deserializer.deserialize_any(PluginFileVisitor::<T>(PhantomData))
    }
}

/// A component or a script with more than a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginFileTable {
    /// Where it is.
    pub path: String,
    /// The plugin's id; the name of the file without it.
    pub id: Option<String>,
    /// On which instance calls of a component run.
    #[serde(default)]
    pub instance: InstanceMode,
    /// What it requests, as `[capabilities]` of a manifest says it.
    #[serde(default)]
    pub capabilities: BTreeMap<String, Vec<String>>,
}
