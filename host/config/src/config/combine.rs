//! How a project's configuration combines with its user's: no project weakens what its user set.
//!
//! Each file speaks for the plugins that it brings. A project's word never reaches the user's own
//! components and scripts, which may be guards, nor those of the user's servers that one of them may
//! call; and for what the project brings itself the user's word bounds it. [`KEY_RULES`] has the rule
//! of each key.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;
use tenon_types::text::fits;

use super::{
    Config, DEFAULT_RETRY_BACKOFF, HookChainSettings, NameSettings, OnFailure, ResourceTools,
    SideEffects, ToolSettings,
};
use crate::config::{PluginOrigin, Supervision};
use crate::pins::PinMode;
use crate::policy::ConfinePolicy;
use crate::tool_filter::ToolFilter;

/// How what a project's file says of a key combines with what its user's file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CombineRule {
    /// Both add to it.
    Both,
    /// Each file speaks for the plugins that it brings.
    OwnPlugins,
    /// Each file speaks for the plugins that it brings, and where the user's file says something, the
    /// stricter of the two holds for the project's plugins.
    OwnPluginsStricter,
    /// The stricter of the two holds.
    Stricter,
    /// The user's file alone says it; a project's file has no effect.
    UserOnly,
}

impl CombineRule {
    /// Returns a short description, for documentation.
    pub fn description(self) -> &'static str {
        match self {
            Self::Both => "both files add to it",
            Self::OwnPlugins => "each file speaks for its own plugins",
            Self::OwnPluginsStricter => {
                "each file speaks for its own plugins; what the user sets bounds the project's"
            }
            Self::Stricter => "the stricter of both",
            Self::UserOnly => "the user's file alone",
        }
    }
}

/// The rule of one key.
#[derive(Debug, Clone, Copy)]
pub struct KeyRule {
    /// The key as it is written in a file, where `*` stands for a name that the file chooses.
    pub key: &'static str,
    /// The rule.
    pub rule: CombineRule,
    /// What the rule comes to for this key.
    pub detail: &'static str,
}

const fn row(key: &'static str, rule: CombineRule, detail: &'static str) -> KeyRule {
    KeyRule { key, rule, detail }
}

use CombineRule::{Both, OwnPlugins, OwnPluginsStricter, Stricter, UserOnly};

/// The rule of every key of a configuration file.
pub const KEY_RULES: &[KeyRule] = &[
    row(
        "plugins.wasm",
        Both,
        "of two plugins with one id, the user's component or script is loaded",
    ),
    row(
        "plugins.scripts",
        Both,
        "of two plugins with one id, the user's component or script is loaded",
    ),
    row(
        "plugins.mcp",
        Both,
        "of two servers with one name, the project's is loaded; the user's, if one of the user's plugins may \
         call it",
    ),
    row(
        "plugins.folders",
        Both,
        "of two plugins with one id, the user's component or script is loaded",
    ),
    row("plugins.resource_tools", OwnPluginsStricter, "`none` of the user holds"),
    row(
        "settings.*",
        OwnPluginsStricter,
        "a project's plugin gets the user's value where both set one, and `tenon trust` shows for which keys",
    ),
    row("limits.memory_mib", OwnPluginsStricter, "the smaller"),
    row("limits.table_elements", OwnPluginsStricter, "the smaller"),
    row("limits.instances", OwnPluginsStricter, "the smaller"),
    row("limits.cpu", OwnPluginsStricter, "the smaller"),
    row("limits.wall", OwnPluginsStricter, "the smaller"),
    row("limits.transfer_mib", OwnPluginsStricter, "the smaller"),
    row("limits.download_mib", OwnPluginsStricter, "the smaller"),
    row("limits.output_kib", OwnPluginsStricter, "the smaller"),
    row("limits.sessions", OwnPluginsStricter, "the smaller"),
    row("limits.session_idle", OwnPluginsStricter, "the smaller"),
    row("limits.server_idle", OwnPluginsStricter, "the smaller"),
    row("limits.server_memory_mib", OwnPluginsStricter, "the smaller"),
    row("limits.state_mib", OwnPluginsStricter, "the smaller"),
    row("limits.host_calls", OwnPluginsStricter, "the smaller"),
    row("limits.log_rate", OwnPluginsStricter, "the smaller"),
    row("discovery.max_depth", OwnPlugins, ""),
    row("discovery.ignore_dirs", OwnPlugins, ""),
    row("discovery.follow_links", OwnPlugins, ""),
    row(
        "discovery.disabled",
        OwnPluginsStricter,
        "a project also leaves out those of the user's servers that it reaches",
    ),
    row(
        "discovery.allowlist",
        OwnPluginsStricter,
        "a project also leaves out those of the user's servers that it reaches",
    ),
    row(
        "policy.profile",
        OwnPluginsStricter,
        "a plugin must pass both files; one that no project setting applies to, only the user's",
    ),
    row(
        "policy.allow",
        OwnPluginsStricter,
        "a plugin must pass both files; one that no project setting applies to, only the user's",
    ),
    row(
        "policy.deny",
        OwnPluginsStricter,
        "a plugin must pass both files; one that no project setting applies to, only the user's",
    ),
    row(
        "policy.locked",
        OwnPluginsStricter,
        "a plugin must pass both files; one that no project setting applies to, only the user's",
    ),
    row(
        "policy.calls",
        Stricter,
        "`\"locked\"` before `\"careful\"` before `\"trusting\"`, of a project's file where it reaches",
    ),
    row(
        "policy.confine",
        OwnPluginsStricter,
        "`\"required\"` before `\"preferred\"` before `\"off\"`",
    ),
    row(
        "policy.plugins.*.enabled",
        OwnPluginsStricter,
        "a plugin must pass both files; one that no project setting applies to, only the user's",
    ),
    row("policy.plugins.*.limits", OwnPluginsStricter, "the smaller"),
    row(
        "policy.plugins.*.enabled_tools",
        Stricter,
        "a tool must be wanted by both files; one that no project setting applies to, only by the user's",
    ),
    row(
        "policy.plugins.*.disabled_tools",
        Stricter,
        "a tool must be wanted by both files; one that no project setting applies to, only by the user's",
    ),
    row(
        "policy.plugins.*.pins",
        OwnPluginsStricter,
        "`\"hold\"` before `\"warn\"` before `\"off\"`; it goes before `pins` of a server's entry",
    ),
    row("policy.plugins.*.believe_annotations", UserOnly, ""),
    row("hooks.timeout", OwnPlugins, ""),
    row("hooks.on_failure", Stricter, "`\"stop\"` holds"),
    row("hooks.deterministic", OwnPlugins, ""),
    row("tools.*.enabled", Stricter, "`false` holds, of a project's file where it reaches"),
    row("tools.*.timeout", Stricter, "the shorter"),
    row(
        "tools.*.max_attempts",
        Stricter,
        "the fewer; a project raises them only for its own tools",
    ),
    row("tools.*.retry_backoff", Stricter, "the longer"),
    row("tools.*.side_effects", Stricter, "the more; a project lowers them only for its own tools"),
    row(
        "tools.*.approve",
        Stricter,
        "`\"deny\"` before `\"ask\"` before `\"allow\"`, of a project's file where it reaches",
    ),
    row(
        "tools.*.when",
        Stricter,
        "`\"deny\"` before `\"ask\"` before `\"allow\"`, of a project's file where it reaches",
    ),
    row("history.enabled", UserOnly, ""),
    row("history.max_mib", UserOnly, ""),
    row("store.url", UserOnly, ""),
    row("store.authorities", UserOnly, ""),
    row("runs.operations", UserOnly, ""),
    row("runs.cpu", UserOnly, ""),
    row("runs.wall", UserOnly, ""),
    row("runs.calls", UserOnly, ""),
    row("runs.parallel", UserOnly, ""),
    row("runs.output_kib", UserOnly, ""),
    row("sampling.model", UserOnly, ""),
    row("sampling.ask", UserOnly, ""),
    row("messages.command", UserOnly, ""),
    row("watch.debounce", UserOnly, ""),
    row("watch.max_delay", UserOnly, ""),
    row("results.max_mib", UserOnly, ""),
    row("results.max_result_mib", UserOnly, ""),
    row("results.invisible", UserOnly, ""),
    row("profiles.*.tools", UserOnly, ""),
    row("profiles.*.resources", UserOnly, ""),
    row("profiles.*.prompts", UserOnly, ""),
    row("profiles.*.prefix", UserOnly, ""),
    row("profiles.*.calls_per_minute", UserOnly, ""),
    row("profiles.*.calls", UserOnly, ""),
    row("profiles.*.mode", UserOnly, ""),
    row("issuer.url", UserOnly, ""),
    row("issuer.audience", UserOnly, ""),
    row("issuer.jwks", UserOnly, ""),
    row("issuer.scopes", UserOnly, ""),
    row("issuer.profile", UserOnly, ""),
    row("issuer.profile_claim", UserOnly, ""),
    row("context.passthrough", OwnPluginsStricter, "`false` of the user holds"),
    row("supervision.max_restarts", OwnPluginsStricter, "the fewer"),
    row("supervision.restart_window", OwnPluginsStricter, "the longer"),
    row("supervision.backoff", OwnPluginsStricter, "the longer"),
    row("supervision.max_backoff", OwnPluginsStricter, "the longer"),
    row("supervision.breaker_failures", OwnPluginsStricter, "the fewer"),
    row("supervision.breaker_cooldown", OwnPluginsStricter, "the longer"),
    row("supervision.shutdown_grace", OwnPluginsStricter, "the shorter"),
    row("supervision.max_message", OwnPluginsStricter, "the smaller"),
    row("supervision.concurrent_starts", UserOnly, ""),
    row("names.style", OwnPlugins, "the user's hooks see each tool's name in the user's style"),
    row("names.origin_prefix", OwnPluginsStricter, "`true` of the user holds"),
];

/// The user's own configuration, where there is one.
pub fn of_user(configs: &[Config]) -> Option<&Config> {
    configs.iter().find(|config| config.origin == PluginOrigin::User)
}

/// Whether a configuration is a project's file whose user has a configuration, too: then the rules
/// of this module hold between the two. One that was made in code is its embedder's word.
pub fn is_bounded(config: &Config, configs: &[Config]) -> bool {
    config.is_of_project_file() && of_user(configs).is_some()
}

/// Whose a plugin is.
#[derive(Debug, Clone, Copy)]
pub struct PluginOwner {
    /// Whose it is.
    pub origin: PluginOrigin,
    /// Whether no project has a say in it.
    pub is_shielded: bool,
}

impl From<PluginOrigin> for PluginOwner {
    fn from(origin: PluginOrigin) -> Self {
        Self { origin, is_shielded: false }
    }
}

impl PluginOwner {
    /// Whether a configuration has a say in the plugin: a project's file, which is bounded by its
    /// user's, has not in all.
    pub fn hears(self, is_bounded: bool) -> bool {
        !(self.is_shielded && is_bounded)
    }
}

/// The configuration that speaks for plugins of an origin.
pub fn speaking_for(configs: &[Config], origin: PluginOrigin) -> Option<&Config> {
    let first = configs.first();
    if origin.is_of_project() { first } else { of_user(configs).or(first) }
}

/// Makes the settings of a project's file what the rules let them be, given those of its user.
pub fn bound_by_user(project: &mut Config, user: &Config) {
    project.limits = project.limits.clone().at_most(&user.most);
    project.most = project.most.clone().at_most(&user.most);
    project.bounds = Some(Box::new(user.clone()));
    project.history = user.history;
    project.store = user.store.clone();
    project.runs = user.runs;
    project.client = user.client.clone();
    project.watch = user.watch;
    project.results = user.results;
    project.profiles.clone_from(&user.profiles);
    project.issuer.clone_from(&user.issuer);
    if user.hooks.on_failure == OnFailure::Stop {
        project.hooks.on_failure = OnFailure::Stop;
    }
    project.names.origin_prefix |= user.names.origin_prefix;
    if user.resource_tools == ResourceTools::None {
        project.resource_tools = ResourceTools::None;
    }
    if user.said.context.passthrough == Some(false) {
        project.context.passthrough = false;
    }
    if let Some(of_user) = &user.said.supervision {
        project.supervision = stricter_supervision(&project.supervision, of_user);
    }
    project.supervision.concurrent_starts = user.supervision.concurrent_starts;
}

fn stricter_supervision(project: &Supervision, user: &Supervision) -> Supervision {
    let (one, other) = (project, user);
    Supervision {
        max_restarts: one.max_restarts.min(other.max_restarts),
        restart_window: one.restart_window.max(other.restart_window),
        backoff: one.backoff.max(other.backoff),
        max_backoff: one.max_backoff.max(other.max_backoff),
        breaker_failures: one.breaker_failures.min(other.breaker_failures),
        breaker_cooldown: one.breaker_cooldown.max(other.breaker_cooldown),
        shutdown_grace: one.shutdown_grace.min(other.shutdown_grace),
        max_message: one.max_message.min(other.max_message),
        concurrent_starts: other.concurrent_starts,
    }
}

/// What becomes of definitions of an MCP server that are not what they were. `own` is what its entry
/// says.
pub fn pin_mode(
    configs: &[Config],
    plugin: &str,
    owner: PluginOwner,
    own: Option<PinMode>,
) -> PinMode {
    let said = |config: &Config| config.policy.plugins.get(plugin).and_then(|policy| policy.pins);
    let speaker = speaking_for(configs, owner.origin);
    let mode = speaker.and_then(said).or(own).unwrap_or_default();
    raised(configs, owner, mode, said)
}

/// The servers whose word on the effects of their tools is believed. No project vouches for its own.
#[derive(Debug, Clone, Default)]
pub struct BelievedServers {
    /// Among those of a project.
    project: BTreeSet<String>,
    /// Among all others.
    user: BTreeSet<String>,
}

impl BelievedServers {
    /// What these files say.
    pub fn new(configs: &[Config]) -> Self {
        let is_apart = configs.iter().any(|config| is_bounded(config, configs));
        let named = |origin| {
            let speaker = match is_apart {
                true => of_user(configs),
                false => speaking_for(configs, origin),
            };
            let policies = speaker.into_iter().flat_map(|config| &config.policy.plugins);
            let believed = policies.filter(|(_, policy)| policy.believe_annotations == Some(true));
            believed.map(|(id, _)| id.clone()).collect()
        };
        Self { project: named(PluginOrigin::Config), user: named(PluginOrigin::User) }
    }

    /// Whether a server is one of them.
    pub fn has(&self, plugin: &str, owner: PluginOwner) -> bool {
        let ids = if owner.origin.is_of_project() { &self.project } else { &self.user };
        ids.contains(plugin)
    }
}

/// Whether the servers of an owner are confined.
pub fn confine(configs: &[Config], owner: PluginOwner) -> ConfinePolicy {
    let said = |config: &Config| config.policy.confine;
    let mode = speaking_for(configs, owner.origin).and_then(said).unwrap_or_default();
    raised(configs, owner, mode, said)
}

/// The strictest of what speaks for an owner and of what others say: nobody else makes it less than who speaks for it.
fn raised<T: Ord>(
    configs: &[Config],
    owner: PluginOwner,
    mode: T,
    said: impl Fn(&Config) -> Option<T>,
) -> T {
    let others = configs.iter().filter(|config| owner.hears(is_bounded(config, configs)));
    others.filter_map(said).fold(mode, T::max)
}

/// What files say of hooks and names, by the plugins that they speak for.
#[derive(Debug, Clone, Default)]
pub struct OriginSettings {
    /// How hooks are run.
    pub hooks: HookChainSettings,
    /// How tools are named.
    pub names: NameSettings,
    /// How tools for resources and prompts are there.
    pub resource_tools: ResourceTools,
}

impl OriginSettings {
    /// What holds for plugins of an origin.
    pub fn of(configs: &[Config], origin: PluginOrigin) -> Self {
        let config = speaking_for(configs, origin).cloned().unwrap_or_default();
        let Config { hooks, names, resource_tools, .. } = config;
        Self { hooks, names, resource_tools }
    }
}

/// Which tools of plugins files want, by `[policy.plugins]`.
#[derive(Debug, Clone, Default)]
pub struct ToolFilters(Vec<PluginToolFilter>);

/// Which tools of a plugin a file wants.
#[derive(Debug, Clone)]
struct PluginToolFilter {
    plugin: String,
    filter: ToolFilter,
    /// Whether it is that of a project's file which its user's file bounds.
    is_bounded: bool,
}

impl ToolFilters {
    /// What these files say together, the user's and the project's.
    pub fn new(configs: &[Config]) -> Self {
        let filters = configs.iter().flat_map(|config| {
            let is_bounded = is_bounded(config, configs);
            let policies = config.policy.plugins.iter();
            policies.map(move |(id, policy)| PluginToolFilter {
                plugin: id.clone(),
                filter: policy.tools(),
                is_bounded,
            })
        });
        Self(filters.collect())
    }

    /// What is said of the tools of somebody's plugin: a tool has to be wanted by all.
    pub fn of<'a>(
        &'a self,
        plugin: &'a str,
        owner: PluginOwner,
    ) -> impl Iterator<Item = &'a ToolFilter> {
        let said =
            self.0.iter().filter(move |said| said.plugin == plugin && owner.hears(said.is_bounded));
        said.map(|said| &said.filter)
    }
}

/// The `[tools]` rules of files, by whose they are.
#[derive(Debug, Clone, Default)]
pub struct ToolRules {
    /// Those of the project, or of configurations that were made in code.
    project: Vec<(String, ToolSettings)>,
    /// Those of the user, where they are apart.
    user: Vec<(String, ToolSettings)>,
}

impl ToolRules {
    /// What these files say together, the user's and the project's.
    pub fn new(configs: &[Config]) -> Self {
        let mut rules = Self::default();
        // Without a project's file nobody is held against anybody: what is said first holds.
        let is_apart = configs.iter().any(|config| is_bounded(config, configs));
        for config in configs {
            match is_apart && config.origin == PluginOrigin::User {
                true => rules.user.extend(config.tools.iter().cloned()),
                false => rules.project.extend(config.tools.iter().cloned()),
            }
        }
        if !is_apart {
            rules.user.clone_from(&rules.project);
            rules.project.clear();
        }
        rules
    }

    /// What the rules come to for a tool of somebody's plugin: by its name, and for the user's rules
    /// also by the name that it would have as the user's file has tools named.
    pub fn of(&self, name: &str, users_name: &str, owner: PluginOwner) -> ToolSettings {
        let project = first_said(&self.project, &[name]);
        let user = first_said(&self.user, &[name, users_name]);
        match owner.origin.is_of_project() {
            true => stricter_rule(project, user),
            false if owner.is_shielded => user,
            false => {
                let project = without_loosening(project, &user);
                stricter_rule(user, project)
            }
        }
    }
}

/// What rules say of a tool: of several that fit, the first that says something holds.
fn first_said(rules: &[(String, ToolSettings)], names: &[&str]) -> ToolSettings {
    let mut said = ToolSettings::default();
    let is_meant = |pattern: &str| names.iter().any(|name| fits(pattern, name));
    for (_, rule) in rules.iter().filter(|(pattern, _)| is_meant(pattern)) {
        let ToolSettings { enabled, timeout, max_attempts, retry_backoff, side_effects } = rule;
        said.enabled = said.enabled.or(*enabled);
        said.timeout = said.timeout.or(*timeout);
        said.max_attempts = said.max_attempts.or(*max_attempts);
        said.retry_backoff = said.retry_backoff.or(*retry_backoff);
        said.side_effects = said.side_effects.or(*side_effects);
    }
    said
}

/// A project's rule for a tool of the user's, without what would loosen how the user's file, or
/// nothing, has it called.
fn without_loosening(project: ToolSettings, user: &ToolSettings) -> ToolSettings {
    let effects = project.side_effects.filter(|effects| {
        // What is not said is the plugin's own word, and nothing is stricter than the last.
        user.side_effects.is_some() || *effects == SideEffects::Repeated
    });
    ToolSettings {
        max_attempts: project
            .max_attempts
            .map(|most| most.min(user.max_attempts.unwrap_or(NonZeroU32::MIN))),
        retry_backoff: project.retry_backoff.map(|wait| wait.max(DEFAULT_RETRY_BACKOFF)),
        side_effects: effects,
        ..project
    }
}

/// Of each member the stricter of those that are said.
fn stricter_rule(one: ToolSettings, other: ToolSettings) -> ToolSettings {
    ToolSettings {
        enabled: both(one.enabled, other.enabled, |a, b| a && b),
        timeout: both(one.timeout, other.timeout, Duration::min),
        max_attempts: both(one.max_attempts, other.max_attempts, NonZeroU32::min),
        retry_backoff: both(one.retry_backoff, other.retry_backoff, Duration::max),
        side_effects: both(one.side_effects, other.side_effects, SideEffects::max),
    }
}

fn both<T>(one: Option<T>, other: Option<T>, of_two: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(of_two(one, other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, LimitsTable};
    use crate::discover::{Discovery, Sources, discover};
    use crate::limits::Limits;
    use std::path::Path;

    /// A project's file and its user's, settled.
    fn settled(project: &str, user: &str) -> [Config; 2] {
        let project = Config::parse(project, "/p/tenon.toml").expect("the project's is read");
        let user = Config::parse(user, "/u/config.toml").expect("the user's is read").of_user();
        let mut configs = [project, user].map(Config::into_read);
        Config::inherit(&mut configs);
        configs
    }

    fn at_project(configs: &[Config; 2]) -> &Config {
        speaking_for(configs, PluginOrigin::Workspace).expect("there are configurations")
    }

    #[test]
    fn the_documentation_has_every_rule() {
        let mut table = String::from("| key | rule | in detail |\n|---|---|---|\n");
        for KeyRule { key, rule, detail } in KEY_RULES {
            table.push_str(&format!("| `{key}` | {} | {detail} |\n", rule.description()));
        }
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
        let text = std::fs::read_to_string(path).expect("the documentation is there");
        assert!(
            text.contains(&table),
            "docs/reference/configuration.md must have this table:\n{table}"
        );
    }

    #[test]
    fn every_key_has_one_rule_and_no_other_has_one() {
        let mut keys = BTreeSet::new();
        // What serde says of an unknown key names all that there are.
        let known = |table: &str| -> Vec<String> {
            let text = match table {
                "" => "nosuchkey = 1".into(),
                table => format!("[{table}]\nnosuchkey = 1"),
            };
            let error = Config::parse(&text, "t").map(|_| ()).unwrap_err().to_string();
            let expected = error.split_once("expected ").expect(&error).1;
            expected.split('`').skip(1).step_by(2).map(str::to_string).collect()
        };
        for table in known("") {
            match table.as_str() {
                // Each has the keys that its plugin has.
                "settings" => keys.extend(["settings.*".to_string()]),
                "tools" => keys.extend(known("tools.x").iter().map(|key| format!("tools.*.{key}"))),
                "profiles" => {
                    keys.extend(known("profiles.x").iter().map(|key| format!("profiles.*.{key}")));
                }
                "policy" => {
                    let own = known("policy.plugins.x");
                    keys.extend(own.iter().map(|key| format!("policy.plugins.*.{key}")));
                    let others = known("policy").into_iter().filter(|key| key != "plugins");
                    keys.extend(others.map(|key| format!("policy.{key}")));
                }
                table => keys.extend(known(table).iter().map(|key| format!("{table}.{key}"))),
            }
        }
        let ruled: Vec<&str> = KEY_RULES.iter().map(|rule| rule.key).collect();
        let set: BTreeSet<String> = ruled.iter().map(ToString::to_string).collect();
        assert_eq!(set, keys);
        assert_eq!(set.len(), ruled.len());
    }

    #[test]
    fn what_the_user_sets_bounds_what_the_project_brings() {
        let check = |project: &str, user: &str, holds: fn(&Config) -> bool| {
            let configs = settled(project, user);
            assert!(holds(at_project(&configs)), "{project} and {user}");
        };
        let of_p =
            |config: &Config| config.limits_of("p", &toml::from_str("wall = \"9s\"").unwrap());
        check("limits.wall = \"60s\"", "limits.wall = \"2s\"", |c| c.limits.wall.as_secs() == 2);
        check("limits.wall = \"1s\"", "limits.wall = \"2s\"", |c| c.limits.wall.as_secs() == 1);
        check("", "limits.wall = \"2s\"", |c| c.limits.wall.as_secs() == 2);
        check("policy.plugins.p.limits.wall = \"1h\"", "limits.wall = \"2s\"", |c| {
            c.limits_of("p", &LimitsTable::default()).wall.as_secs() == 2
        });
        let users = settled("limits.wall = \"8s\"", "policy.plugins.p.limits.wall = \"3s\"");
        assert_eq!(of_p(at_project(&users)).wall.as_secs(), 3);
        check("limits.wall = \"90h\"", "", |c| c.limits.wall <= Limits::most().wall);
        check("hooks.on_failure = \"skip\"", "hooks.on_failure = \"stop\"", |c| {
            c.hooks.on_failure == OnFailure::Stop
        });
        check("hooks.on_failure = \"stop\"", "hooks.on_failure = \"skip\"", |c| {
            c.hooks.on_failure == OnFailure::Stop
        });
        check("plugins.resource_tools = \"each\"", "plugins.resource_tools = \"none\"", |c| {
            c.resource_tools == ResourceTools::None
        });
        check("plugins.resource_tools = \"each\"", "plugins.resource_tools = \"shared\"", |c| {
            c.resource_tools == ResourceTools::Each
        });
        check("plugins.resource_tools = \"none\"", "plugins.resource_tools = \"each\"", |c| {
            c.resource_tools == ResourceTools::None
        });
        check("context.passthrough = true", "context.passthrough = false", |c| {
            !c.context.passthrough
        });
        check("context.passthrough = true", "", |c| c.context.passthrough);
        check("names.origin_prefix = false", "names.origin_prefix = true", |c| {
            c.names.origin_prefix
        });
        check("history.enabled = false\nhistory.max_mib = 1", "", |c| {
            c.history == crate::config::CallHistorySettings::default()
        });
        check("history.enabled = true", "history.enabled = false", |c| !c.history.enabled);
        check("watch = { debounce = \"1h\", max_delay = \"1h\" }", "", |c| {
            c.watch == crate::config::WatchSettings::default()
        });
        check("watch.debounce = \"1h\"", "watch.debounce = \"1s\"", |c| {
            c.watch.debounce == Duration::from_secs(1)
        });
        check("results = { max_mib = 1, max_result_mib = 1 }", "results.max_mib = 9", |c| {
            (c.results.max_mib, c.results.max_result_mib) == (9, 128)
        });
        check("results.invisible = \"raw\"", "", |c| {
            c.results.invisible == crate::config::Invisible::Escape
        });
        check(
            "[supervision]\nmax_restarts = 99\nrestart_window = \"1s\"\nbackoff = \"1ms\"\nmax_backoff = \"1ms\"\n\
             breaker_failures = 99\nbreaker_cooldown = \"1ms\"\nshutdown_grace = \"1h\"\nmax_message = 999999999",
            "[supervision]",
            |c| c.supervision == Supervision::default(),
        );
        check("supervision.max_restarts = 99", "", |c| c.supervision.max_restarts == 99);
    }

    #[test]
    fn pins_are_what_the_servers_own_side_says_or_stricter() {
        use PinMode::{Hold, Off, Warn};
        let check =
            |project: &str, user: &str, origin: PluginOrigin, own: Option<PinMode>, expected| {
                let table = |mode: &str| match mode {
                    "" => String::new(),
                    mode => format!("policy.plugins.s.pins = \"{mode}\""),
                };
                let configs = settled(&table(project), &table(user));
                let found = pin_mode(&configs, "s", origin.into(), own);
                assert_eq!(found, expected, "{project} and {user} for {origin:?}, {own:?}");
                assert_eq!(pin_mode(&configs, "other", origin.into(), None), Hold);
            };
        let (project, user) = (PluginOrigin::Config, PluginOrigin::User);
        for origin in [project, user] {
            check("", "", origin, None, Hold);
            check("", "", origin, Some(Off), Off);
            check("", "", origin, Some(Warn), Warn);
            check("hold", "hold", origin, Some(Off), Hold);
            check("off", "off", origin, Some(Hold), Off);
            check("warn", "off", origin, Some(Hold), Warn);
            check("off", "warn", origin, Some(Hold), Warn);
            check("off", "hold", origin, None, Hold);
        }
        // A project says nothing for its user's servers but what is stricter.
        check("off", "", user, None, Hold);
        check("off", "", user, Some(Warn), Warn);
        check("hold", "", user, Some(Off), Hold);
        // The user bounds a project's servers, and leaves to it what is not said.
        check("off", "", project, None, Off);
        check("", "hold", project, Some(Off), Hold);
        check("", "off", project, Some(Warn), Warn);
    }

    #[test]
    fn rules_for_tools_are_never_loosened() {
        let check = |project: &str, user: &str, origin: PluginOrigin, expected: &str| {
            let configs = settled(project, user);
            let ToolSettings { enabled, timeout, max_attempts, retry_backoff, side_effects } =
                ToolRules::new(&configs).of("p__t", "p__t", origin.into());
            let millis = |time: Duration| time.as_millis();
            let found = format!(
                "{enabled:?} {:?} {:?} {:?} {side_effects:?}",
                timeout.map(millis),
                max_attempts.map(NonZeroU32::get),
                retry_backoff.map(millis)
            );
            assert_eq!(found, expected, "{project} and {user}");
        };
        let (project, user) = (PluginOrigin::Config, PluginOrigin::User);
        let off = "tools.\"*\".enabled = false";
        check("tools.p__t.enabled = true", off, project, "Some(false) None None None None");
        check("tools.p__t.enabled = true", off, user, "Some(false) None None None None");
        check(off, "tools.p__t.enabled = true", user, "Some(false) None None None None");
        let dear = "tools.p__t = { max_attempts = 9, retry_backoff = \"1ms\", side_effects = \"none\", timeout = \"9s\" }";
        check(dear, "", project, "None Some(9000) Some(9) Some(1) Some(None)");
        check(dear, "", user, "None Some(9000) Some(1) Some(200) None");
        let strict = "tools.\"p__*\" = { max_attempts = 2, retry_backoff = \"1s\", side_effects = \"idempotent\", timeout = \"3s\" }";
        for origin in [project, user] {
            check(dear, strict, origin, "None Some(3000) Some(2) Some(1000) Some(Idempotent)");
        }
        check(
            "tools.p__t.side_effects = \"repeated\"",
            "",
            user,
            "None None None None Some(Repeated)",
        );
        // Another style of names does not lead round what the user says.
        let configs = settled("names.style = \"namespace::tool\"", off);
        let rules = ToolRules::new(&configs);
        assert_eq!(rules.of("p::t", "p__t", project.into()).enabled, Some(false));
        let configs = settled("", "tools.p__t.enabled = false");
        assert_eq!(
            ToolRules::new(&configs).of("p::t", "p__t", project.into()).enabled,
            Some(false)
        );
    }

    /// A user with a guard, and what is found of it beside a project.
    fn found(project: &str, user: &str) -> (Discovery, Vec<Config>) {
        let configs = settled(project, user).to_vec();
        let discovery = discover(&Sources { configs: configs.clone(), ..Sources::default() });
        (discovery, configs)
    }

    #[test]
    fn a_project_takes_no_guard_from_its_user() {
        use crate::admit::{Rules, admit};
        let user = "plugins.scripts = [\"guard.rhai\"]\nsettings.guard.deny = [\"rm\"]";
        for project in [
            "discovery.disabled = [\"guard\"]",
            "discovery.allowlist = [\"other\"]",
            "policy.deny = [\"guard\"]",
            "policy.plugins.guard.enabled = false",
            "policy.locked = true",
            "policy.profile = \"minimal\"",
            "plugins.scripts = [{ path = \"other.rhai\", id = \"guard\" }]",
            "plugins.wasm = [\"guard.wasm\"]",
            "plugins.mcp = [{ name = \"guard\", command = \"true\" }]",
            "settings.guard.deny = []",
            "settings.guard.more = 1",
        ] {
            let (discovery, configs) = found(project, user);
            let guards: Vec<_> = discovery
                .candidates
                .into_iter()
                .filter(|candidate| candidate.id() == "guard")
                .collect();
            let [guard] = &guards[..] else { panic!("{project}: {:?}", discovery.left_out) };
            assert_eq!(guard.script(), Some(Path::new("/u/guard.rhai")), "{project}");
            assert_eq!(
                serde_json::Value::from(guard.settings.clone()),
                serde_json::json!({ "deny": ["rm"] }),
                "{project}"
            );
            admit(guard.clone(), &Rules::new(&configs)).expect("it is admitted");
        }
        // What has no effect is said.
        let (discovery, _) =
            found("discovery.disabled = [\"guard\"]\nhistory.enabled = false", user);
        let said: Vec<String> = discovery.warnings.iter().map(ToString::to_string).collect();
        assert!(
            said[0].contains("`history.enabled` has no effect in the file of a project"),
            "{said:?}"
        );
        assert!(said[1].contains("a project cannot leave out"), "{said:?}");
        // A server of the user's has no hooks, and a project may do without it.
        let user = "plugins.mcp = [{ name = \"s\", command = \"true\" }]";
        assert!(found("discovery.disabled = [\"s\"]", user).0.candidates.is_empty());
        // And for its own plugins a project gets what its user has not set.
        let own = "plugins.scripts = [\"own.rhai\"]\nsettings.own = { a = 1, b = 1 }";
        let (discovery, _) = found(own, "settings.own.b = 2");
        assert_eq!(discovery.candidates[0].settings["a"], 1);
        assert_eq!(discovery.candidates[0].settings["b"], 2);
    }
}
