//! All that the plugins of a host contribute, by the names that callers use.

use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tenon_config::call_policy::{CallExplanation, CallFacts, CallRules, ToolCallPolicy};
use tenon_config::config::combine::{
    BelievedServers, OriginSettings, PluginOwner, ToolFilters, ToolRules,
};
use tenon_config::config::{Config, OnFailure, ResourceTools, ToolSettings};
use tenon_config::diagnostic::Diagnostic;
use tenon_config::discover::{Candidate, PluginKind, PluginOrigin};
use tenon_config::limits::Limits;
use tenon_config::pins::{self, DefinitionKind, Quarantine};
use tenon_config::secret::{Redactor, SecretValues};
use tenon_config::tool_filter::{FilterReason, ToolFilter};
use tenon_types::name::{ToolName, nearest};
use tenon_types::text::{fits, one_line};
use tenon_types::{
    HookMode, HookPoint, HookRegistration, Identity, McpOperation, ToolAnnotations, ToolDefinition,
};
use tokio::sync::OnceCell;

use super::call_settings::CallSettings;
use super::hook_answer_cache::HookCache;
use super::operation_tools::{self, with_plugin};
use super::registration::{DeclaredTool, RegisteredPlugin};
use super::tool_metrics::{self, ToolMetrics};
use crate::call::{Call, CallError, TOOL_RULE};
use crate::load::LoadedPlugin;
use crate::runtime::Builtin;
use crate::runtime::schema::Schema;

/// The id under which tools are listed that are the host's own, for all plugins.
const HOST: &str = "tenon";

/// A tool, ready to be checked and called.
#[non_exhaustive]
pub struct Tool {
    /// The name that callers use.
    pub name: ToolName,
    /// What callers are told of it, under the plugin's own name for it.
    pub definition: Arc<ToolDefinition>,
    pub(crate) served: ServedBy,
    pub(crate) arguments: Arc<Schema>,
    pub(crate) output: Option<Arc<Schema>>,
}

impl Tool {
    /// Whether it is a tool of the host's own for a plugin's resources or prompts, which
    /// [`Platform`](crate::Platform) offers in methods as well.
    pub fn is_of_host(&self) -> bool {
        matches!(self.served, ServedBy::ByHost(_))
    }
}

/// Who serves the calls of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServedBy {
    /// The plugin, which has registered the tool.
    ByPlugin,
    /// The host, by an operation of its own on the plugin.
    ByHost(McpOperation),
}

/// All that the plugins of a host contribute.
#[derive(Default)]
pub struct Registry {
    plugins: Vec<Arc<RegisteredPlugin>>,
    /// Where each plugin is in [`Self::plugins`], by its id.
    places: HashMap<Arc<str>, usize>,
    tools: BTreeMap<ToolName, ToolEntry>,
    /// Tools that are there once for all plugins.
    shared: BTreeMap<ToolName, SharedOperationTool>,
    /// Tools that plugins have and nobody may call.
    absent: BTreeMap<ToolName, WithheldTool>,
    /// Who handles each point, in load order.
    hooks: Vec<(HookPoint, Vec<HookHandler>)>,
    settings: RegistrySettings,
    /// What handlers that are deterministic have answered, by their plugins.
    memories: HashMap<Arc<str>, HookCache>,
    /// Keeps the secrets of all plugins out of what any of them says.
    redactor: Arc<Redactor>,
    diagnostics: Vec<Diagnostic>,
    /// Those of them that are about definitions which are used though they are not what they were.
    pin_warnings: Vec<Diagnostic>,
}

/// Where a tool is, and how it is called.
struct ToolEntry {
    plugin: Arc<RegisteredPlugin>,
    tool: Tool,
    constraints: CallSettings,
    tool_metrics: Arc<ToolMetrics>,
}

/// A tool of the host's own that does for any plugin what an [`ToolEntry`] does for one.
struct SharedOperationTool {
    host: Arc<RegisteredPlugin>,
    tool: Tool,
    /// The plugins that it is for. Where there is none, it is not offered.
    ids: Vec<Arc<str>>,
}

impl SharedOperationTool {
    fn declared(&self) -> Option<(&Arc<RegisteredPlugin>, &Tool)> {
        (!self.ids.is_empty()).then_some((&self.host, &self.tool))
    }
}

/// Why a tool that a plugin has is not among those that may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WithheldTool {
    /// The operator does not want it, by what is said here.
    Skipped(&'static str),
    /// It is not the one that was there before, as far as is known.
    Held {
        /// Its plugin, who keeps the name.
        plugin: Arc<str>,
        why: String,
    },
}

/// The host, as the owner of tools that are of no plugin. It contributes nothing itself.
fn host() -> RegisteredPlugin {
    let nothing = Arc::new(Builtin::new(HOST, env!("CARGO_PKG_VERSION")));
    let identity = Identity::new(HOST, env!("CARGO_PKG_VERSION"), "");
    RegisteredPlugin {
        loaded: LoadedPlugin::builtin(HOST, nothing, &Limits::default(), Arc::default()),
        bare_identity: identity.clone(),
        identity,
        holds_instructions: AtomicBool::new(false),
        tools: Vec::new(),
        hooks: Vec::new(),
        providers: Vec::new(),
        models: OnceCell::new(),
        evals: Vec::new(),
        resources: false,
        prompts: false,
        diagnostics: Vec::new(),
    }
}

/// Plugins in load order, but those first whose names go before the same of others.
fn names_first(plugins: &[Arc<RegisteredPlugin>]) -> impl Iterator<Item = &Arc<RegisteredPlugin>> {
    let first = plugins.iter().filter(|plugin| plugin.loaded.names_come_first());
    first.chain(plugins.iter().filter(|plugin| !plugin.loaded.names_come_first()))
}

/// What is called, and how.
pub(crate) struct ResolvedTool<'a> {
    pub(crate) plugin: &'a Arc<RegisteredPlugin>,
    pub(crate) tool: &'a Tool,
    pub(crate) constraints: &'a CallSettings,
    pub(crate) tool_metrics: &'a Arc<ToolMetrics>,
}

impl ResolvedTool<'_> {
    /// The arguments of a call as rules see them.
    pub(crate) fn ruled_arguments<'a>(&self, arguments: &'a Value) -> Cow<'a, Value> {
        match self.tool.served {
            ServedBy::ByPlugin => Cow::Borrowed(arguments),
            ServedBy::ByHost(_) => Cow::Owned(with_plugin(arguments, self.plugin.id())),
        }
    }
}

/// What the operator says of tools and calls, and the user of definitions that have changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct RegistrySettings {
    /// What a handler that fails means.
    pub(crate) on_failure: OnFailure,
    /// What holds for the plugins of the project.
    project: OriginSettings,
    /// What holds for all others.
    user: OriginSettings,
    tools: ToolRules,
    calls: CallRules,
    /// The servers whose word on the effects of their tools counts.
    believed: BelievedServers,
    filters: ToolFilters,
    /// What its own entry says of which tools are wanted, by the plugin.
    entries: HashMap<String, ToolFilter>,
    /// Which tools are held.
    pub(crate) quarantine: Quarantine,
    /// The secrets of plugins, also of those that are not loaded.
    pub(crate) secrets: SecretValues,
}

impl RegistrySettings {
    /// What configurations say, in the order of their precedence.
    pub(crate) fn new(configs: &[Config], quarantine: Quarantine) -> Self {
        Self {
            on_failure: configs.first().map(|first| first.hooks.on_failure).unwrap_or_default(),
            project: OriginSettings::of(configs, PluginOrigin::Config),
            user: OriginSettings::of(configs, PluginOrigin::User),
            tools: ToolRules::new(configs),
            calls: CallRules::new(configs),
            believed: BelievedServers::new(configs),
            filters: ToolFilters::new(configs),
            entries: HashMap::new(),
            quarantine,
            secrets: SecretValues::default(),
        }
    }

    /// With what entries say of which tools of their plugins are wanted.
    pub(crate) fn with_entries<'a>(
        self,
        entries: impl Iterator<Item = (&'a str, &'a ToolFilter)>,
    ) -> Self {
        let entries = entries.map(|(id, filter)| (id.to_string(), filter.clone()));
        Self { entries: entries.collect(), ..self }
    }

    /// What holds for the hooks and names of plugins of an origin.
    pub(crate) fn of(&self, origin: PluginOrigin) -> &OriginSettings {
        if origin.is_of_project() { &self.project } else { &self.user }
    }

    /// The name that a plugin's tool has for callers.
    fn name_of(&self, plugin: ToolNaming<'_>, tool: &str) -> ToolName {
        self.of(plugin.owner.origin).names.style.render(plugin.id, plugin.namespace, tool)
    }

    /// All that is said of which tools of a plugin are wanted.
    fn filters(&self, plugin: ToolNaming<'_>) -> Vec<ToolFilter> {
        let own = self.entries.get(plugin.id);
        self.filters.of(plugin.id, plugin.owner).chain(own).cloned().collect()
    }

    /// What the operator says of a tool of a plugin.
    fn rule(&self, plugin: ToolNaming<'_>, name: &ToolName, original: &str) -> ToolSettings {
        let users_name = self.user.names.style.render(plugin.id, plugin.namespace, original);
        self.tools.of(name.as_str(), users_name.as_str(), plugin.owner)
    }

    /// What decides of the calls of a tool of a plugin.
    fn policy(
        &self,
        plugin: ToolNaming<'_>,
        name: &ToolName,
        original: &str,
        hints: ToolAnnotations,
        is_of_host: bool,
    ) -> ToolCallPolicy {
        let users_name = self.user.names.style.render(plugin.id, plugin.namespace, original);
        // What the host does with any plugin is also called by the name that it has for all of them.
        let names = [name.as_str(), original];
        let names = if is_of_host { &names[..] } else { &names[..1] };
        self.calls.of_any(names, users_name.as_str(), plugin.owner, hints)
    }
}

/// What decides how the tools of a plugin are named, and what is said of them.
#[derive(Clone, Copy)]
struct ToolNaming<'a> {
    id: &'a str,
    namespace: &'a str,
    owner: PluginOwner,
}

impl<'a> From<&'a LoadedPlugin> for ToolNaming<'a> {
    fn from(loaded: &'a LoadedPlugin) -> Self {
        Self { id: loaded.id(), namespace: loaded.namespace(), owner: loaded.owner() }
    }
}

impl<'a> From<&'a Candidate> for ToolNaming<'a> {
    fn from(candidate: &'a Candidate) -> Self {
        Self { id: candidate.id(), namespace: candidate.namespace(), owner: candidate.owner() }
    }
}

/// Returns why a tool of a plugin that is not loaded is disabled, by what configurations and the plugin's own entry say
/// of it. The tool goes by the name that the plugin gives it.
pub fn disabled_tool(configs: &[Config], candidate: &Candidate, tool: &str) -> Option<CallError> {
    let settings = RegistrySettings::new(configs, Quarantine::default());
    let entry = (candidate.id(), &candidate.rules.tools);
    let settings = settings.with_entries([entry].into_iter());
    let plugin = ToolNaming::from(candidate);
    let name = settings.name_of(plugin, tool);
    let filtered = settings.filters(plugin).iter().find_map(|filter| filter.leaves_out(tool));
    let by = match filtered {
        Some(by) => by.describe(),
        None if settings.rule(plugin, &name, tool).enabled == Some(false) => TOOL_RULE,
        None => return None,
    };
    Some(CallError::Disabled { tool: name.to_string(), by })
}

/// A plugin that handles a point.
#[derive(Clone)]
pub struct HookHandler {
    /// The plugin.
    pub plugin: Arc<RegisteredPlugin>,
    /// What becomes of its outcome.
    pub mode: HookMode,
}

impl Registry {
    /// Puts plugins together, in load order. Of two tools with one name, the first stays.
    pub(crate) fn new(plugins: Vec<Arc<RegisteredPlugin>>, settings: RegistrySettings) -> Self {
        let mut registry = Self { settings, ..Self::default() };
        tool_metrics::describe();
        crate::capability::network::describe();
        let mut secrets = std::mem::take(&mut registry.settings.secrets);
        for plugin in &plugins {
            secrets.extend(plugin.loaded.secrets());
        }
        registry.redactor = Arc::new(Redactor::new(&secrets));
        for plugin in names_first(&plugins) {
            registry.add_tools(plugin);
        }
        for plugin in &plugins {
            registry.diagnostics.extend(plugin.diagnostics.iter().cloned());
        }
        // What a project's handlers make of a context is seen by its user's, and not the reverse.
        let (of_project, others): (Vec<_>, Vec<_>) =
            plugins.iter().partition(|plugin| plugin.loaded.origin().is_of_project());
        [of_project, others].into_iter().for_each(|plugins| registry.add_hooks(&plugins));
        // Last: whatever a plugin calls a tool of its own goes before ours.
        names_first(&plugins).for_each(|plugin| registry.add_operations(plugin));
        if plugins.iter().any(|plugin| registry.resource_tools(plugin) == ResourceTools::Shared) {
            registry.share_operations();
        }
        registry.diagnostics.extend(registry.pin_warnings.iter().cloned());
        for plugin in &plugins {
            let id = plugin.loaded.id();
            let deterministic = &registry.settings.of(plugin.loaded.origin()).hooks.deterministic;
            if deterministic.iter().any(|listed| **listed == **id) {
                registry.memories.insert(id.clone(), HookCache::default());
            }
        }
        // The first of an id stays.
        let places = plugins.iter().enumerate().rev();
        registry.places =
            places.map(|(place, plugin)| (plugin.loaded.id().clone(), place)).collect();
        registry.plugins = plugins;
        registry
    }

    /// Adds the handlers of plugins behind those that are there: by their priorities, and in load order where these
    /// are the same.
    fn add_hooks(&mut self, plugins: &[&Arc<RegisteredPlugin>]) {
        let of = |plugin: &Arc<RegisteredPlugin>| {
            let hooks = plugin.hooks.iter();
            hooks.map(|hook| (hook.clone(), plugin.clone())).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = plugins.iter().flat_map(|plugin| of(plugin)).collect();
        all.sort_by_key(|(hook, _)| Reverse(hook.priority));
        for (HookRegistration { point, mode, priority: _ }, plugin) in all {
            let handler = HookHandler { plugin, mode };
            match self.hooks.iter_mut().find(|(other, _)| *other == point) {
                Some((_, handlers)) => handlers.push(handler),
                None => self.hooks.push((point, vec![handler])),
            }
        }
    }

    /// Adds the tools that a plugin offers, but for those that nobody may call.
    fn add_tools(&mut self, plugin: &Arc<RegisteredPlugin>) {
        let id = plugin.loaded.id();
        let filters = self.filters(plugin);
        let operations = operation_tools::on(plugin.resources, plugin.prompts);
        let is_wanted = self.resource_tools(plugin) != ResourceTools::None;
        let operations = operations.filter(|_| is_wanted);
        let own = plugin.tools.iter().chain(operations.map(|(_, declared)| declared));
        let names: Vec<&str> = own.map(|declared| declared.definition.name.as_str()).collect();
        let problems = filters.iter().flat_map(|filter| filter.problems(&names));
        self.diagnostics.extend(problems.map(|problem| Diagnostic::of(id, problem)));

        for declared in &plugin.tools {
            let original = &declared.definition.name;
            let name = self.name_of(plugin, original);
            if let Some(by) = filters.iter().find_map(|filter| filter.leaves_out(original)) {
                self.absent.entry(name).or_insert(WithheldTool::Skipped(by.describe()));
                continue;
            }
            // What is no secret in the plugin's name for it may be one in ours.
            if self.redactor.holds(name.as_str()) {
                let problem = "a tool is left out: there is a secret in its name for callers";
                self.diagnostics.push(Diagnostic::of(id, problem));
                continue;
            }
            if let Some(other) = self.owner(&name) {
                let problem = format!(
                    "the tool \"{}\" is left out: plugin \"{other}\" already has one named {name}",
                    one_line(original),
                );
                self.diagnostics.push(Diagnostic::of(id, problem));
                continue;
            }
            if let Some(why) = self.compared(id, DefinitionKind::Tool, original) {
                self.absent.insert(name, WithheldTool::Held { plugin: id.clone(), why });
                continue;
            }
            self.add(plugin, name, declared, ServedBy::ByPlugin);
        }
        if !plugin.said_identity().description.is_empty() {
            self.compared(id, DefinitionKind::Instructions, "");
        }
        let unstable = self.settings.quarantine.unstable(id);
        self.pin_warnings.extend(unstable.map(|problem| Diagnostic::of(id, problem)));
    }

    /// Why a definition is held, if it is. That it is not what it was is told either way.
    fn compared(&mut self, id: &str, kind: DefinitionKind, name: &str) -> Option<String> {
        let (hold, problem) = self.settings.quarantine.told(id, kind, name)?;
        let diagnostic = Diagnostic::of(id, problem).remedy(pins::remedy(id));
        match hold.is_warning {
            true => self.pin_warnings.push(diagnostic),
            false => self.diagnostics.push(diagnostic),
        }
        (!hold.is_warning).then_some(hold.why)
    }

    /// Adds what the host itself does with a plugin's resources and prompts.
    fn add_operations(&mut self, plugin: &Arc<RegisteredPlugin>) {
        if self.resource_tools(plugin) == ResourceTools::None {
            return;
        }
        let filters = self.filters(plugin);
        for (operation, declared) in operation_tools::on(plugin.resources, plugin.prompts) {
            let original = &declared.definition.name;
            if plugin.tools.iter().any(|own| own.definition.name == *original) {
                continue;
            }
            let name = self.name_of(plugin, original);
            if let Some(by) = filters.iter().find_map(|filter| filter.leaves_out(original)) {
                self.absent.entry(name).or_insert(WithheldTool::Skipped(by.describe()));
            } else if self.owner(&name).is_none() {
                self.add(plugin, name, declared, ServedBy::ByHost(*operation));
            }
        }
    }

    /// Puts one tool in the place of those that do the same for a plugin each.
    fn share_operations(&mut self) {
        let host = Arc::new(host());
        for operation in McpOperation::TOOLS {
            let served = ServedBy::ByHost(operation);
            let same = self.tools.values().filter(|entry| entry.tool.served == served);
            let same = same.filter(|entry| entry.constraints.enabled);
            let is_shared = |plugin| self.resource_tools(plugin) == ResourceTools::Shared;
            let same = same.filter(|entry| is_shared(&entry.plugin));
            let plugins: Vec<&LoadedPlugin> = same.map(|entry| &entry.plugin.loaded).collect();
            let ids: Vec<Arc<str>> = plugins.iter().map(|loaded| loaded.id().clone()).collect();
            let name = ToolName::shared(operation.name());
            let is_shielded = plugins.iter().any(|loaded| loaded.owner().is_shielded);
            let owner = PluginOwner { origin: PluginOrigin::User, is_shielded };
            let rule = self.settings.tools.of(name.as_str(), name.as_str(), owner);
            if self.owner(&name).is_some() {
                continue;
            }
            if rule.enabled == Some(false) {
                self.absent.insert(name, WithheldTool::Skipped(TOOL_RULE));
                continue;
            }
            let DeclaredTool { definition, arguments, output } =
                operation_tools::shared(operation, &ids);
            let tool = Tool { name: name.clone(), definition, served, arguments, output };
            self.shared.insert(name, SharedOperationTool { host: host.clone(), tool, ids });
        }
    }

    /// Makes the call of a tool that is there once for all plugins the call that it is of one of them.
    ///
    /// # Errors
    ///
    /// Where it names no plugin that has what is asked for.
    pub(crate) fn resolve_shared(&self, call: &mut Call) -> Result<(), CallError> {
        let Some(SharedOperationTool { tool, ids, .. }) = self.shared.get(call.name.as_str())
        else {
            return Ok(());
        };
        let ServedBy::ByHost(operation) = tool.served else { return Ok(()) };
        let id = call.arguments.get(McpOperation::PLUGIN_ARGUMENT).and_then(Value::as_str);
        let id = id.ok_or_else(|| CallError::without_plugin(&call.name))?.to_string();
        let own_name = self.plugin(&id).map(|plugin| self.name_of(plugin, operation.name()));
        let Some(name) = own_name.filter(|name| {
            ids.iter().any(|known| **known == *id) || self.absent.contains_key(name)
        }) else {
            let looked_for = operation.looked_for();
            return Err(CallError::not_found(looked_for, &id, ids.iter().map(|id| &**id)));
        };
        call.name = name.to_string();
        if let Value::Object(arguments) = &mut call.arguments {
            arguments.remove(McpOperation::PLUGIN_ARGUMENT);
        }
        Ok(())
    }

    fn add(
        &mut self,
        plugin: &Arc<RegisteredPlugin>,
        name: ToolName,
        declared: &DeclaredTool,
        served: ServedBy,
    ) {
        let id = plugin.loaded.id();
        let DeclaredTool { definition, arguments, output } = declared.clone();
        let origin = plugin.loaded.origin();
        let definition = match self.settings.of(origin).names.origin_prefix {
            true => Arc::new(ToolDefinition {
                description: format!("[ext:{id}] {}", definition.description),
                ..ToolDefinition::clone(&definition)
            }),
            false => definition,
        };
        // Nobody has vouched for what a server says of itself; what the host does it knows.
        let is_of_host = matches!(served, ServedBy::ByHost(_));
        let is_believed = plugin.loaded.kind() != PluginKind::Mcp
            || is_of_host
            || self.settings.believed.has(id, plugin.loaded.owner());
        let hints = is_believed.then_some(&definition.annotations);
        let constraints = self.call_settings(plugin, &name, &definition.name, hints, is_of_host);
        let tool_metrics = Arc::new(ToolMetrics::new(id, name.as_str()));
        // What another plugin has and nobody may call does not stand in the way.
        self.absent.remove(&name);
        let tool = Tool { name: name.clone(), definition, served, arguments, output };
        self.tools
            .insert(name, ToolEntry { plugin: plugin.clone(), tool, constraints, tool_metrics });
    }

    /// The name for callers of something that a plugin calls by this name: of a prompt, for example. It is made as the
    /// names of tools are. `None` if there is no such plugin.
    pub fn rendered_name(&self, plugin: &str, name: &str) -> Option<ToolName> {
        Some(self.name_of(self.plugin(plugin)?, name))
    }

    /// The name that a plugin's tool has for callers.
    pub(crate) fn name_of(&self, plugin: &RegisteredPlugin, tool: &str) -> ToolName {
        self.settings.name_of((&plugin.loaded).into(), tool)
    }

    /// The name that a tool of a plugin has in the style of the user, where callers have it in another.
    pub(crate) fn name_for_user(&self, plugin: &str, name: &str) -> Option<ToolName> {
        let loaded = &self.plugin(plugin)?.loaded;
        let (own, users) =
            (self.settings.of(loaded.origin()).names.style, self.settings.user.names.style);
        if own == users {
            return None;
        }
        let of_plugin = |tool: &str| users.render(loaded.id(), loaded.namespace(), tool);
        match self.tool(name) {
            Some((_, tool)) => Some(of_plugin(&tool.definition.name)),
            None => name.strip_prefix(&own.prefix(loaded.id(), loaded.namespace())).map(of_plugin),
        }
    }

    /// The name for callers of a tool that somebody asks for by what its plugin calls it.
    pub(crate) fn renamed(&self, asked: &str) -> Option<&ToolName> {
        let is_asked = |(plugin, tool): &(&Arc<RegisteredPlugin>, &Tool)| {
            let (id, namespace) = (plugin.loaded.id(), plugin.loaded.namespace());
            let style = self.settings.of(plugin.loaded.origin()).names.style;
            let prefix = style.prefix(id, namespace);
            asked.strip_prefix(&prefix) == Some(&tool.definition.name)
        };
        self.tools().find(is_asked).map(|(_, tool)| &tool.name)
    }

    /// All that is said of which tools of a plugin are wanted.
    fn filters(&self, plugin: &RegisteredPlugin) -> Vec<ToolFilter> {
        self.settings.filters((&plugin.loaded).into())
    }

    /// How tools for a plugin's resources and prompts are there.
    fn resource_tools(&self, plugin: &RegisteredPlugin) -> ResourceTools {
        self.settings.of(plugin.loaded.origin()).resource_tools
    }

    /// The plugin that has a name, though nobody may call it by that.
    fn owner(&self, name: &ToolName) -> Option<Arc<str>> {
        if let Some(entry) = self.tools.get(name) {
            return Some(entry.plugin.loaded.id().clone());
        }
        match self.absent.get(name) {
            Some(WithheldTool::Held { plugin, .. }) => Some(plugin.clone()),
            Some(WithheldTool::Skipped(_)) | None => None,
        }
    }

    /// Why a tool that is there may not be called, by its rendered name.
    pub(crate) fn absent(&self, name: &str) -> Option<CallError> {
        let tool = name.to_string();
        Some(match self.absent.get(name)? {
            WithheldTool::Skipped(by) => CallError::Disabled { tool, by },
            WithheldTool::Held { plugin, why } => {
                let (plugin, why) = (plugin.clone(), why.clone());
                CallError::Held { what: "tool", name: tool, plugin, why }
            }
        })
    }

    /// The tools that are there and may not be called, by their rendered names, and why.
    pub(crate) fn withheld(&self) -> impl Iterator<Item = (String, CallError)> {
        let names = self.absent.keys().map(ToolName::as_str);
        let absent = names.filter_map(|name| Some((name.to_string(), self.absent(name)?)));
        let disabled = self.tools.iter().filter(|(_, entry)| !entry.constraints.enabled);
        absent.chain(disabled.map(|(name, _)| {
            (name.to_string(), CallError::Disabled { tool: name.to_string(), by: TOOL_RULE })
        }))
    }

    /// What of servers is used though it has changed since it was first seen, or varies from one
    /// start to the next. It is among [`Self::diagnostics`] as well.
    pub fn pin_warnings(&self) -> &[Diagnostic] {
        &self.pin_warnings
    }

    /// The tools that are held, because they are not what they were when they were first seen: their
    /// plugins, their rendered names, and why.
    pub fn held(&self) -> impl Iterator<Item = (&Arc<str>, &ToolName, &str)> {
        self.absent.iter().filter_map(|(name, absent)| match absent {
            WithheldTool::Held { plugin, why } => Some((plugin, name, why.as_str())),
            WithheldTool::Skipped(_) => None,
        })
    }

    /// How many tools of its own each plugin has here, by its id. One that has none is left out.
    pub(crate) fn counts(&self) -> HashMap<&str, usize> {
        let mut counts = HashMap::new();
        for entry in self.tools.values().filter(|entry| entry.tool.served == ServedBy::ByPlugin) {
            *counts.entry(&**entry.plugin.loaded.id()).or_default() += 1;
        }
        counts
    }

    /// The plugins, in load order.
    pub fn plugins(&self) -> &[Arc<RegisteredPlugin>] {
        &self.plugins
    }

    /// The plugins, those before the others whose names for things go before the same of others.
    pub(crate) fn names_first(&self) -> impl Iterator<Item = &Arc<RegisteredPlugin>> {
        names_first(&self.plugins)
    }

    /// A plugin by its id.
    pub fn plugin(&self, id: &str) -> Option<&Arc<RegisteredPlugin>> {
        self.places.get(id).map(|place| &self.plugins[*place])
    }

    /// All tools that are offered, by name; last those that the host has once for all plugins.
    pub fn tools(&self) -> impl Iterator<Item = (&Arc<RegisteredPlugin>, &Tool)> {
        let is_offered = |entry: &&ToolEntry| {
            let is_shared = || self.resource_tools(&entry.plugin) == ResourceTools::Shared;
            entry.constraints.enabled && (entry.tool.served == ServedBy::ByPlugin || !is_shared())
        };
        let own = self.tools.values().filter(is_offered).map(|entry| (&entry.plugin, &entry.tool));
        own.chain(self.shared.values().filter_map(SharedOperationTool::declared))
    }

    /// A tool by its rendered name.
    pub fn tool(&self, name: &str) -> Option<(&Arc<RegisteredPlugin>, &Tool)> {
        let shared = || self.shared.get(name).and_then(SharedOperationTool::declared);
        self.called(name).map(|called| (called.plugin, called.tool)).or_else(shared)
    }

    /// A tool by its rendered name, and all that is known of how to call it.
    pub(crate) fn called(&self, name: &str) -> Option<ResolvedTool<'_>> {
        let ToolEntry { plugin, tool, constraints, tool_metrics } = self.tools.get(name)?;
        Some(ResolvedTool { plugin, tool, constraints, tool_metrics })
    }

    /// How an operation of the host's own on a plugin may be done, whether or not there is a tool for it;
    /// and where that is counted, if there is.
    pub(crate) fn operation(
        &self,
        plugin: &RegisteredPlugin,
        operation: McpOperation,
    ) -> Result<(CallSettings, Option<&Arc<ToolMetrics>>), CallError> {
        let (id, original) = (plugin.loaded.id(), operation.name());
        let name = self.name_of(plugin, original);
        let entry = self.tools.get(&name).filter(|entry| {
            entry.tool.served == ServedBy::ByHost(operation) && entry.plugin.loaded.id() == id
        });
        if let Some(ToolEntry { constraints, tool_metrics, .. }) = entry {
            return Ok((constraints.clone(), Some(tool_metrics)));
        }
        // A list of the only tools that are wanted says nothing of what is no tool.
        let disabled = self.filters(plugin).iter().find_map(|filter| {
            filter.leaves_out(original).filter(|by| *by == FilterReason::Disabled)
        });
        if let Some(by) = disabled {
            return Err(CallError::Disabled { tool: name.to_string(), by: by.describe() });
        }
        let hints =
            operation_tools::as_tool(operation).map(|declared| &declared.definition.annotations);
        Ok((self.call_settings(plugin, &name, original, hints, true), None))
    }

    /// How a tool of a plugin is called, by what the operator says and what it says of itself, as far as that is believed.
    fn call_settings(
        &self,
        plugin: &RegisteredPlugin,
        name: &ToolName,
        original: &str,
        hints: Option<&ToolAnnotations>,
        is_of_host: bool,
    ) -> CallSettings {
        let owner = (&plugin.loaded).into();
        let known = hints.copied().unwrap_or_default();
        let policy = self.settings.policy(owner, name, original, known, is_of_host);
        CallSettings::new(hints, self.settings.rule(owner, name, original)).with_policy(policy)
    }

    /// Explains which rule decides of a call of a tool. The call is not made, and its arguments are not checked.
    ///
    /// # Errors
    ///
    /// If no tool of this name may be called.
    pub fn explain_call(
        &self,
        name: &str,
        facts: &CallFacts<'_>,
    ) -> Result<CallExplanation, CallError> {
        // The tool of several plugins is that of one of them.
        let mut call = Call::new(name, facts.arguments.clone());
        self.resolve_shared(&mut call)?;
        let (name, facts) = (&*call.name, &CallFacts { arguments: &call.arguments, ..*facts });
        let Some(resolved) = self.called(name) else {
            let absent = self.absent(name);
            return Err(absent.unwrap_or_else(|| {
                CallError::not_found("tool", name, self.tools().map(|(_, tool)| tool.name.as_str()))
            }));
        };
        let policy = resolved.constraints.policy.as_deref().cloned().unwrap_or_default();
        let arguments = resolved.ruled_arguments(facts.arguments);
        Ok(policy.explain(&CallFacts { arguments: &arguments, ..*facts }))
    }

    /// What a plugin's handlers have answered, for one whose handlers are deterministic.
    pub(crate) fn memory(&self, id: &Arc<str>) -> Option<&HookCache> {
        self.memories.get(id)
    }

    /// Keeps secrets out of what plugins say.
    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// The points that anybody handles, each with its handlers in the order in which they are called.
    pub fn hooks(&self) -> impl Iterator<Item = (&HookPoint, &[HookHandler])> {
        self.hooks.iter().map(|(point, handlers)| (point, &handlers[..]))
    }

    /// Who handles a point: those of a project before all others, those of a greater priority before the rest, and
    /// in load order where that is the same.
    pub fn handlers(&self, point: &HookPoint) -> &[HookHandler] {
        let found = self.hooks.iter().find(|(other, _)| other == point);
        found.map_or(&[], |(_, handlers)| handlers)
    }

    /// What the operator says of calls.
    pub(crate) fn settings(&self) -> &RegistrySettings {
        &self.settings
    }

    /// What was left out of what the plugins contribute, and why.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The `[tools]` rules of configurations that fit no tool of these plugins, as warnings. `may_fit` says which patterns
    /// may fit a tool of a plugin that is not here. A user's rules are for the plugins of all projects: only one that
    /// looks like a slip is worth a word.
    pub fn unused_rules(
        &self,
        configs: &[Config],
        may_fit: impl Fn(&str) -> bool,
    ) -> Vec<Diagnostic> {
        let mut names: Vec<String> =
            McpOperation::TOOLS.iter().map(|operation| operation.name().to_string()).collect();
        for plugin in &self.plugins {
            let operations = operation_tools::on(plugin.resources, plugin.prompts);
            let all = plugin.tools.iter().chain(operations.map(|(_, declared)| declared));
            for tool in all.map(|declared| &declared.definition.name) {
                let name = self.name_of(plugin, tool);
                let for_user = self.name_for_user(plugin.loaded.id(), name.as_str());
                names.extend([Some(name), for_user].into_iter().flatten().map(|n| n.to_string()));
            }
        }
        let names = || names.iter().map(String::as_str);
        let mut unused = Vec::new();
        for config in configs {
            let patterns = config.tools.iter().map(|(pattern, _)| pattern);
            for pattern in patterns.filter(|pattern| !may_fit(pattern)) {
                let meant = nearest(pattern, names());
                let is_elsewhere = config.origin == PluginOrigin::User && meant.is_none();
                if is_elsewhere || names().any(|name| fits(pattern, name)) {
                    continue;
                }
                let problem = format!("[tools.{pattern:?}] fits no tool");
                let warning = Diagnostic::in_file(config.path.display(), problem);
                unused.push(match meant {
                    Some(meant) => warning.remedy(format!("did you mean \"{meant}\"?")),
                    None => warning,
                });
            }
        }
        unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::register;
    use crate::runtime::Builtin;
    use crate::types::ToolResult;
    use serde_json::json;
    use tenon_config::limits::Limits;

    async fn registered(id: &str, tools: Vec<ToolDefinition>) -> Arc<RegisteredPlugin> {
        let builtin = tools.into_iter().fold(Builtin::new(id, ""), |builtin, definition| {
            builtin.tool(definition, async |_, _| Ok(ToolResult::text("")))
        });
        let schemas = Arc::default();
        let loaded = LoadedPlugin::builtin(id, Arc::new(builtin), &Limits::default(), schemas);
        Arc::new(register(loaded).await.expect("it registers"))
    }

    fn tool(name: &str, schema: Value) -> ToolDefinition {
        ToolDefinition::new(name, "does it", &schema)
    }

    #[tokio::test]
    async fn a_bad_definition_is_dropped_and_the_others_stay() {
        let plugin = registered(
            "p",
            vec![
                tool("good", json!({"type": "object"})),
                tool("", json!({"type": "object"})),
                tool("list", json!({"type": "array"})),
                tool("null", json!(null)),
                tool("odd", json!({"type": "object", "properties": 3})),
                tool("away", json!({"type": "object", "$ref": "https://example.com/schema"})),
                tool("good", json!({"type": "object"})),
                ToolDefinition {
                    capabilities: vec!["network".into()],
                    ..tool("net", json!({"type": "object"}))
                },
                ToolDefinition {
                    extra: Some("[]".into()),
                    ..tool("extra", json!({"type": "object"}))
                },
            ],
        )
        .await;
        let names = plugin.tools().iter().map(|tool| tool.definition.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["good"]);
        assert_eq!(plugin.diagnostics().len(), 8);
    }

    #[tokio::test]
    async fn what_is_left_out_is_told_once_and_not_without_end() {
        let object = || json!({"type": "object"});
        let check = async |names: Vec<String>, expected: &[(usize, &str)]| {
            let tools = names.iter().map(|name| tool(name, object())).collect();
            let plugin = registered("p", tools).await;
            let told = plugin.diagnostics();
            for (place, problem) in expected {
                assert_eq!(told[*place].problem, *problem);
            }
            assert_eq!(told.len(), expected.last().map_or(0, |(place, _)| place + 1));
        };
        check(vec!["a".into()], &[]).await;
        let same = "the tool \"a\" is left out: there is another of this name";
        check(vec!["a".into(); 2], &[(0, same)]).await;
        check(vec!["a".into(); 500], &[(0, &format!("{same} (499 times)"))]).await;
        let pairs = (0..100).flat_map(|i| [i.to_string(), i.to_string()]).collect();
        check(pairs, &[(32, "68 more things are left out")]).await;
    }

    #[tokio::test]
    async fn a_name_is_given_once_and_the_second_learns_by_whom() {
        let first = registered("a", vec![tool("b__c", json!({"type": "object"}))]).await;
        let second = registered("a__b", vec![tool("c", json!({"type": "object"}))]).await;
        let registry = Registry::new(vec![first, second], RegistrySettings::default());
        assert_eq!(registry.tool("a__b__c").unwrap().0.id().as_ref(), "a");
        assert_eq!(
            registry.diagnostics()[0].to_string(),
            "plugin \"a__b\": the tool \"c\" is left out: plugin \"a\" already has one named a__b__c"
        );
    }

    #[tokio::test]
    async fn a_tool_that_is_held_keeps_its_name() {
        let object = || json!({ "type": "object" });
        let (ours, theirs) = ("a__b__c", "a");
        let first = registered(theirs, vec![tool("b__c", object())]).await;
        let second = registered("a__b", vec![tool("c", object())]).await;
        let quarantine = Quarantine::of_tool(theirs, "b__c", "it is another");
        let settings = RegistrySettings { quarantine, ..RegistrySettings::default() };
        let registry = Registry::new(vec![first.clone(), second.clone()], settings);
        // Who calls it by its name must not get another's.
        assert!(registry.tool(ours).is_none());
        let absent = registry.absent(ours);
        assert!(matches!(&absent, Some(CallError::Held { plugin, .. }) if **plugin == *theirs));
        let told = registry.diagnostics().iter().map(ToString::to_string);
        let left_out = "the tool \"c\" is left out: plugin \"a\" already has one named a__b__c";
        assert!(told.clone().any(|told| told.contains(left_out)), "{:?}", told.collect::<Vec<_>>());
        // One that its operator does not want keeps nothing.
        let filter = ToolFilter { enabled: None, disabled: vec!["b__c".into()] };
        let settings = RegistrySettings::default().with_entries([(theirs, &filter)].into_iter());
        let registry = Registry::new(vec![first, second], settings);
        assert_eq!(&**registry.tool(ours).expect("it is free").0.id(), "a__b");
    }
}
