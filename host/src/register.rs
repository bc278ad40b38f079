//! Step four: from plugins to a registry of what they contribute.
//!
//! Definitions are checked one by one: a bad one is dropped with a diagnostic, and the plugin's
//! others stay. A registry does not change; when a plugin does, there is a new one.

use jsonschema::Validator;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::OnceCell;

use crate::bindings::lifecycle::{EvalDefinition, Identity, ProviderDefinition, Registration};
use crate::bindings::model::ModelInfo;
use crate::bindings::types::{HookPoint, ToolDefinition};
use crate::capability::Grants;
use crate::config::{Config, HookSettings, NameSettings, ToolRule};
use crate::diagnostic::Diagnostic;
use crate::filter::{LeftOutBy, ToolFilter};
use crate::invoke::constraints::Constraints;
use crate::invoke::gauges::Gauges;
use crate::invoke::memory::Memory;
use crate::invoke::operations::{self, Operation};
use crate::invoke::{CallError, redact, within};
use crate::load::Loaded;
use crate::manifest::Permissions;
use crate::name::ToolName;
use crate::pins::Holds;
use crate::runtime::Failure;
use crate::schema::compile;
use crate::secret::{Redactor, Secrets};
use crate::shown;
use crate::text::{cut, one_line};

/// A plugin together with what it contributes.
pub struct Registered {
    loaded: Loaded,
    identity: Identity,
    tools: Vec<Offered>,
    hooks: Vec<HookPoint>,
    providers: Vec<ProviderDefinition>,
    /// What its providers serve, once they were asked.
    models: OnceCell<Vec<ModelInfo>>,
    evals: Vec<Eval>,
    resources: bool,
    prompts: bool,
    diagnostics: Vec<Diagnostic>,
}

/// A tool as its plugin offers it.
#[derive(Clone)]
pub struct Offered {
    /// What the plugin says of it, under its own name.
    pub definition: Arc<ToolDefinition>,
    arguments: Arc<Validator>,
    output: Option<Arc<Validator>>,
}

impl Offered {
    /// Compiles the schemas of a definition.
    pub(crate) fn new(definition: ToolDefinition) -> Result<Self, String> {
        let output = definition.output_schema.as_deref().map(compile).transpose();
        let output = output.map_err(|problem| format!("its output schema: {problem}"))?;
        let (schema, arguments) = compile(&definition.input_schema)
            .map_err(|problem| format!("its input schema: {problem}"))?;
        match schema.get("type").and_then(Value::as_str) {
            Some("object") => Ok(Self {
                definition: Arc::new(definition),
                arguments: Arc::new(arguments),
                output: output.map(|(_, validator)| Arc::new(validator)),
            }),
            _ => Err("its input schema is not of `\"type\": \"object\"`".into()),
        }
    }
}

/// A tool, ready to be checked and called.
pub struct Tool {
    /// The name that callers use.
    pub name: ToolName,
    /// What callers are told of it, under the plugin's own name for it.
    pub definition: Arc<ToolDefinition>,
    pub(crate) served: Served,
    pub(crate) arguments: Arc<Validator>,
    pub(crate) output: Option<Arc<Validator>>,
}

/// Who serves the calls of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    /// The plugin, which has registered the tool.
    ByPlugin,
    /// The host, by an operation of its own on the plugin.
    ByHost(Operation),
}

/// A strategy, ready to be used.
pub struct Eval {
    /// What the plugin says of it.
    pub definition: EvalDefinition,
    pub(crate) options: Option<Validator>,
}

impl Registered {
    /// The plugin that was loaded.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Who the plugin says it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The tools that it offers. Which of them may be called, and how they are named then, a
    /// [`Registry`] knows.
    pub fn tools(&self) -> &[Offered] {
        &self.tools
    }

    /// The points that it handles.
    pub fn hooks(&self) -> &[HookPoint] {
        &self.hooks
    }

    /// Its language-model providers.
    pub fn providers(&self) -> &[ProviderDefinition] {
        &self.providers
    }

    pub(crate) fn models(&self) -> &OnceCell<Vec<ModelInfo>> {
        &self.models
    }

    /// Its strategies.
    pub fn evals(&self) -> &[Eval] {
        &self.evals
    }

    /// Whether it has resources.
    pub fn has_resources(&self) -> bool {
        self.resources
    }

    /// Whether it has prompts.
    pub fn has_prompts(&self) -> bool {
        self.prompts
    }

    /// What was dropped of its contributions, and why.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

/// Asks a plugin what it contributes.
pub(crate) async fn register(loaded: Loaded) -> Result<Registered, Failure> {
    let known = loaded.supervised().and_then(|server| server.stand_in());
    let registration = match known {
        Some(registration) => registration,
        None => ask(&loaded).await?,
    };
    Ok(check(loaded, registration))
}

/// Asks again, for a plugin whose contributions have changed.
pub(crate) async fn register_again(former: &Registered) -> Result<Registered, Failure> {
    let registration = ask(&former.loaded).await?;
    Ok(check(former.loaded.clone(), registration))
}

/// What a plugin answered, as it is registered: what counts of it, without secrets, and safe to be
/// shown.
pub(crate) fn as_registered(redactor: &Redactor, mut registration: Registration) -> Registration {
    // One more says that there are more.
    registration.tools.truncate(MOST + 1);
    shown::registration(redact::registration(redactor, registration))
}

async fn ask(loaded: &Loaded) -> Result<Registration, Failure> {
    let registration = within(loaded.startup(), loaded.plugin().register()).await;
    let redactor = Redactor::new(loaded.secrets());
    match registration {
        Ok(registration) => {
            let registration = as_registered(&redactor, registration);
            if let Some(server) = loaded.supervised().cloned() {
                let kept = registration.clone();
                // It is short. Who did not wait for it could be over before it is.
                let _ = tokio::task::spawn_blocking(move || server.keep(&kept)).await;
            }
            Ok(registration)
        }
        Err(failure) => Err(redact::failure(&redactor, failure)),
    }
}

/// The most tools of one plugin; and the most strategies, hook points and providers.
const MOST: usize = 2_000;

/// Checks each definition that a plugin gave.
fn check(loaded: Loaded, registration: Registration) -> Registered {
    let id = loaded.id().clone();
    let mut diagnostics = Vec::new();
    let registration = match loaded.permissions() {
        Some(permissions) => permitted(registration, permissions, |what| {
            let problem =
                format!("its {what} are left out: [permissions] do not let it register any");
            diagnostics.push(Diagnostic::of(&id, problem));
        }),
        None => registration,
    };
    let Registration { identity, tools, hooks, providers, evals, resources, prompts } =
        registration;
    let mut drop = |what: &str, name: &str, problem: String| {
        let name = one_line(cut(name, 128));
        let problem = format!("the {what} \"{name}\" is left out: {problem}");
        diagnostics.push(Diagnostic::of(&id, problem));
    };

    let mut checked: Vec<Offered> = Vec::new();
    let mut names = HashSet::new();
    for (number, definition) in tools.into_iter().enumerate() {
        if number == MOST {
            drop("tool", &definition.name, format!("a plugin has at most {MOST}"));
            break;
        }
        let name = definition.name.clone();
        match check_tool(definition, loaded.grants()) {
            _ if names.contains(&name) => {
                drop("tool", &name, "there is another of this name".into());
            }
            Ok(offered) => {
                names.insert(name);
                checked.push(offered);
            }
            Err(problem) => drop("tool", &name, problem),
        }
    }
    let mut strategies: Vec<Eval> = Vec::new();
    let mut names = HashSet::new();
    for definition in evals.into_iter().take(MOST) {
        let twice = !names.insert(definition.name.clone());
        let options = definition.options_schema.as_deref().map(compile).transpose();
        match options {
            _ if twice => {
                drop("strategy", &definition.name, "there is another of this name".into())
            }
            Ok(options) => {
                let options = options.map(|(_, validator)| validator);
                strategies.push(Eval { definition, options });
            }
            Err(problem) => {
                drop("strategy", &definition.name, format!("its options schema: {problem}"));
            }
        }
    }
    let mut points: Vec<HookPoint> = Vec::new();
    for point in hooks.into_iter().take(MOST) {
        if !points.contains(&point) {
            points.push(point);
        }
    }
    let mut names = HashSet::new();
    let mut distinct: Vec<ProviderDefinition> = Vec::new();
    for definition in providers.into_iter().take(MOST) {
        match names.insert(definition.name.clone()) {
            true => distinct.push(definition),
            false => drop("provider", &definition.name, "there is another of this name".into()),
        }
    }
    Registered {
        loaded,
        identity,
        tools: checked,
        hooks: points,
        providers: distinct,
        models: OnceCell::new(),
        evals: strategies,
        resources,
        prompts,
        diagnostics: told_once(&id, diagnostics),
    }
}

/// The most that is told of what is left out of one plugin's contributions.
const TOLD: usize = 32;

/// The same with each problem told once, and how often there is it. A plugin may have thousands.
fn told_once(id: &str, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let all = diagnostics.len();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for diagnostic in &diagnostics {
        *counts.entry(diagnostic.problem.clone()).or_default() += 1;
    }
    let mut told = Vec::new();
    let mut known = 0;
    for mut diagnostic in diagnostics {
        let Some(count) = counts.remove(&diagnostic.problem) else { continue };
        if told.len() == TOLD {
            break;
        }
        known += count;
        if count > 1 {
            diagnostic.problem.push_str(&format!(" ({count} times)"));
        }
        told.push(diagnostic);
    }
    if known < all {
        told.push(Diagnostic::of(id, format!("{} more things are left out", all - known)));
    }
    told
}

/// What a plugin's permissions leave of what it wants to register.
fn permitted(
    registration: Registration,
    permissions: &Permissions,
    mut refuse: impl FnMut(&str),
) -> Registration {
    fn keep<T>(list: Vec<T>, permitted: bool, refuse: impl FnOnce()) -> Vec<T> {
        if permitted || list.is_empty() {
            return list;
        }
        refuse();
        Vec::new()
    }
    let Registration { identity, tools, hooks, providers, evals, resources, prompts } =
        registration;
    let mut flag = |flag: bool, permitted: bool, what: &str| {
        if flag && !permitted {
            refuse(what);
        }
        flag && permitted
    };
    let resources = flag(resources, permissions.register_resources, "resources");
    let prompts = flag(prompts, permissions.register_prompts, "prompts");
    Registration {
        identity,
        tools: keep(tools, permissions.register_tools, || refuse("tools")),
        hooks: keep(hooks, permissions.register_hooks, || refuse("hooks")),
        providers: keep(providers, permissions.register_providers, || refuse("providers")),
        evals: keep(evals, permissions.register_evals, || refuse("evals")),
        resources,
        prompts,
    }
}

/// Checks a definition, and compiles its schemas: of the arguments, and of structured content.
fn check_tool(definition: ToolDefinition, grants: &Grants) -> Result<Offered, String> {
    if !(1..=128).contains(&definition.name.chars().count()) {
        return Err("its name must have 1 to 128 characters".into());
    }
    if let Some(capability) = definition.capabilities.iter().find(|name| !grants.has(name)) {
        return Err(format!("it needs the capability `{capability}`, which is not granted"));
    }
    if let Some(extra) = &definition.extra {
        match serde_json::from_str(extra) {
            Ok(Value::Object(_)) => {}
            Ok(_) => return Err("its `extra` is not a JSON object".into()),
            Err(error) => return Err(format!("its `extra` is not JSON: {error}")),
        }
    }
    Offered::new(definition)
}

/// All that the plugins of a host contribute.
#[derive(Default)]
pub struct Registry {
    plugins: Vec<Arc<Registered>>,
    tools: BTreeMap<ToolName, Entry>,
    /// Tools that plugins have and nobody may call.
    absent: BTreeMap<ToolName, Absent>,
    /// Who handles each point, in load order.
    hooks: Vec<(HookPoint, Vec<Arc<Registered>>)>,
    settings: Settings,
    /// What handlers that are deterministic have answered, by their plugins.
    memories: HashMap<Arc<str>, Memory>,
    /// Keeps the secrets of all plugins out of what any of them says.
    redactor: Arc<Redactor>,
    diagnostics: Vec<Diagnostic>,
}

/// Where a tool is, and how it is called.
struct Entry {
    plugin: Arc<Registered>,
    tool: Tool,
    constraints: Constraints,
    gauges: Gauges,
}

/// Why a tool that a plugin has is not among those that may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Absent {
    /// The operator does not want it.
    LeftOut(LeftOutBy),
    /// It is not the one that was there before, as far as is known.
    Held {
        /// Its plugin, who keeps the name.
        plugin: Arc<str>,
        why: String,
    },
}

/// What is called, and how.
pub(crate) struct Called<'a> {
    pub(crate) plugin: &'a Arc<Registered>,
    pub(crate) tool: &'a Tool,
    pub(crate) constraints: &'a Constraints,
    pub(crate) gauges: &'a Gauges,
}

/// What the operator says of tools and calls, and the user of definitions that have changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) hooks: HookSettings,
    pub(crate) tools: Vec<(String, ToolRule)>,
    pub(crate) names: NameSettings,
    /// Whether there are tools for resources and prompts.
    pub(crate) resource_tools: bool,
    /// Which tools of a plugin are wanted, by its id; all that is said must hold.
    pub(crate) filters: Vec<(String, ToolFilter)>,
    /// Which tools are held.
    pub(crate) holds: Holds,
}

impl Settings {
    /// What configurations say, in the order of their precedence.
    pub(crate) fn new(configs: &[Config], holds: Holds) -> Self {
        let first = configs.first().cloned().unwrap_or_default();
        let filters = configs.iter().flat_map(|config| config.policy.plugins.iter());
        Self {
            hooks: first.hooks,
            tools: configs.iter().flat_map(|config| config.tools.iter().cloned()).collect(),
            names: first.names,
            resource_tools: first.resource_tools,
            filters: filters.map(|(id, policy)| (id.clone(), policy.tools())).collect(),
            holds,
        }
    }
}

impl Registry {
    /// Puts plugins together, in load order. Of two tools with one name, the first stays.
    pub(crate) fn new(plugins: Vec<Arc<Registered>>, settings: Settings) -> Self {
        let mut registry = Self { settings, ..Self::default() };
        for plugin in &plugins {
            registry.diagnostics.extend(plugin.diagnostics.iter().cloned());
            registry.add_tools(plugin);
            for point in &plugin.hooks {
                match registry.hooks.iter_mut().find(|(other, _)| other == point) {
                    Some((_, handlers)) => handlers.push(plugin.clone()),
                    None => registry.hooks.push((point.clone(), vec![plugin.clone()])),
                }
            }
        }
        // Last: whatever a plugin calls a tool of its own goes before ours.
        if registry.settings.resource_tools {
            plugins.iter().for_each(|plugin| registry.add_operations(plugin));
        }
        let deterministic = &registry.settings.hooks.deterministic;
        let ids = plugins.iter().map(|plugin| plugin.loaded.id());
        let ids = ids.filter(|id| deterministic.iter().any(|listed| **listed == ***id));
        registry.memories = ids.map(|id| (id.clone(), Memory::default())).collect();
        let mut secrets = Secrets::default();
        plugins.iter().for_each(|plugin| secrets.extend(plugin.loaded.secrets()));
        registry.redactor = Arc::new(Redactor::new(&secrets));
        registry.plugins = plugins;
        registry
    }

    /// Adds the tools that a plugin offers, but for those that nobody may call.
    fn add_tools(&mut self, plugin: &Arc<Registered>) {
        let id = plugin.loaded.id();
        let filters = self.filters(plugin);
        let operations = operations::on(plugin.resources, plugin.prompts);
        let operations = operations.filter(|_| self.settings.resource_tools);
        let own = plugin.tools.iter().chain(operations.map(|(_, offered)| offered));
        let names: Vec<&str> = own.map(|offered| offered.definition.name.as_str()).collect();
        let problems = filters.iter().flat_map(|filter| filter.problems(&names));
        self.diagnostics.extend(problems.map(|problem| Diagnostic::of(id, problem)));

        for offered in &plugin.tools {
            let original = &offered.definition.name;
            let name = self.name_of(plugin, original);
            if let Some(by) = filters.iter().find_map(|filter| filter.leaves_out(original)) {
                self.absent.entry(name).or_insert(Absent::LeftOut(by));
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
            if let Some(why) = self.settings.holds.why(id, original) {
                let problem = format!("the tool \"{}\" is held: {why}", one_line(original));
                let remedy = format!(
                    "`tenon approve {id}` shows what has changed and accepts it; other hosts have pins of their own"
                );
                self.diagnostics.push(Diagnostic::of(id, problem).remedy(remedy));
                self.absent.insert(name, Absent::Held { plugin: id.clone(), why });
                continue;
            }
            self.add(plugin, name, offered, Served::ByPlugin);
        }
    }

    /// Adds what the host itself does with a plugin's resources and prompts.
    fn add_operations(&mut self, plugin: &Arc<Registered>) {
        let filters = self.filters(plugin);
        for (operation, offered) in operations::on(plugin.resources, plugin.prompts) {
            let original = &offered.definition.name;
            if plugin.tools.iter().any(|own| own.definition.name == *original) {
                continue;
            }
            let name = self.name_of(plugin, original);
            if let Some(by) = filters.iter().find_map(|filter| filter.leaves_out(original)) {
                self.absent.entry(name).or_insert(Absent::LeftOut(by));
            } else if self.owner(&name).is_none() {
                self.add(plugin, name, offered, Served::ByHost(*operation));
            }
        }
    }

    fn add(&mut self, plugin: &Arc<Registered>, name: ToolName, offered: &Offered, served: Served) {
        let id = plugin.loaded.id();
        let Offered { definition, arguments, output } = offered.clone();
        let definition = match self.settings.names.origin_prefix {
            true => Arc::new(ToolDefinition {
                description: format!("[ext:{id}] {}", definition.description),
                ..ToolDefinition::clone(&definition)
            }),
            false => definition,
        };
        let constraints =
            Constraints::new(name.as_str(), &definition.annotations, &self.settings.tools);
        let gauges = Gauges::new(id, name.as_str());
        // What another plugin has and nobody may call does not stand in the way.
        self.absent.remove(&name);
        let tool = Tool { name: name.clone(), definition, served, arguments, output };
        self.tools.insert(name, Entry { plugin: plugin.clone(), tool, constraints, gauges });
    }

    /// The name that a plugin's tool has for callers.
    pub(crate) fn name_of(&self, plugin: &Registered, tool: &str) -> ToolName {
        let loaded = &plugin.loaded;
        self.settings.names.style.render(loaded.id(), loaded.namespace(), tool)
    }

    /// The name for callers of a tool that somebody asks for by what its plugin calls it.
    pub(crate) fn renamed(&self, asked: &str) -> Option<&ToolName> {
        let is_asked = |(plugin, tool): &(&Arc<Registered>, &Tool)| {
            let (id, namespace) = (plugin.loaded.id(), plugin.loaded.namespace());
            let prefix = self.settings.names.style.prefix(id, namespace);
            asked.strip_prefix(&prefix) == Some(&tool.definition.name)
        };
        self.tools().find(is_asked).map(|(_, tool)| &tool.name)
    }

    /// All that is said of which tools of a plugin are wanted.
    fn filters(&self, plugin: &Registered) -> Vec<ToolFilter> {
        let id = plugin.loaded.id();
        let policies = self.settings.filters.iter().filter(|(of, _)| **of == **id);
        let own = plugin.loaded.tool_filter().clone();
        policies.map(|(_, filter)| filter.clone()).chain([own]).collect()
    }

    /// The plugin that has a name, though nobody may call it by that.
    fn owner(&self, name: &ToolName) -> Option<Arc<str>> {
        if let Some(entry) = self.tools.get(name) {
            return Some(entry.plugin.loaded.id().clone());
        }
        match self.absent.get(name) {
            Some(Absent::Held { plugin, .. }) => Some(plugin.clone()),
            Some(Absent::LeftOut(_)) | None => None,
        }
    }

    /// Why a tool that is there may not be called, by its rendered name.
    pub(crate) fn absent(&self, name: &str) -> Option<CallError> {
        let tool = name.to_string();
        Some(match self.absent.get(name)? {
            Absent::LeftOut(by) => CallError::Disabled { tool, by: by.words() },
            Absent::Held { plugin, why } => {
                CallError::Held { tool, plugin: plugin.clone(), why: why.clone() }
            }
        })
    }

    /// The tools that are held, because they are not what they were when they were first seen: their
    /// plugins, their rendered names, and why.
    pub fn held(&self) -> impl Iterator<Item = (&Arc<str>, &ToolName, &str)> {
        self.absent.iter().filter_map(|(name, absent)| match absent {
            Absent::Held { plugin, why } => Some((plugin, name, why.as_str())),
            Absent::LeftOut(_) => None,
        })
    }

    /// How many tools of its own a plugin has here.
    pub(crate) fn count(&self, id: &str) -> usize {
        let own = |entry: &&Entry| {
            **entry.plugin.loaded.id() == *id && entry.tool.served == Served::ByPlugin
        };
        self.tools.values().filter(own).count()
    }

    /// The plugins, in load order.
    pub fn plugins(&self) -> &[Arc<Registered>] {
        &self.plugins
    }

    /// A plugin by its id.
    pub fn plugin(&self, id: &str) -> Option<&Arc<Registered>> {
        self.plugins.iter().find(|plugin| &**plugin.loaded.id() == id)
    }

    /// All tools that may be called, by name.
    pub fn tools(&self) -> impl Iterator<Item = (&Arc<Registered>, &Tool)> {
        let enabled = self.tools.values().filter(|entry| entry.constraints.enabled);
        enabled.map(|Entry { plugin, tool, .. }| (plugin, tool))
    }

    /// A tool by its rendered name.
    pub fn tool(&self, name: &str) -> Option<(&Arc<Registered>, &Tool)> {
        self.called(name).map(|called| (called.plugin, called.tool))
    }

    /// A tool by its rendered name, and all that is known of how to call it.
    pub(crate) fn called(&self, name: &str) -> Option<Called<'_>> {
        let Entry { plugin, tool, constraints, gauges } = self.tools.get(name)?;
        Some(Called { plugin, tool, constraints, gauges })
    }

    /// What a plugin's handlers have answered, for one whose handlers are deterministic.
    pub(crate) fn memory(&self, id: &Arc<str>) -> Option<&Memory> {
        self.memories.get(id)
    }

    /// Keeps secrets out of what plugins say.
    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Who handles a point, in load order.
    pub fn handlers(&self, point: &HookPoint) -> &[Arc<Registered>] {
        let found = self.hooks.iter().find(|(other, _)| other == point);
        found.map_or(&[], |(_, handlers)| handlers)
    }

    /// What the operator says of calls.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What was left out of what the plugins contribute, and why.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::runtime::Builtin;
    use crate::types::ToolResult;
    use serde_json::json;

    async fn registered(id: &str, tools: Vec<ToolDefinition>) -> Arc<Registered> {
        let builtin = tools.into_iter().fold(Builtin::new(id, ""), |builtin, definition| {
            builtin.tool(definition, async |_, _| Ok(ToolResult::text("")))
        });
        let loaded = Loaded::builtin(id, Arc::new(builtin), &Limits::default());
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
        let registry = Registry::new(vec![first, second], Settings::default());
        assert_eq!(registry.tool("a__b__c").unwrap().0.loaded().id().as_ref(), "a");
        assert_eq!(
            registry.diagnostics()[0].to_string(),
            "plugin \"a__b\": the tool \"c\" is left out: plugin \"a\" already has one named a__b__c"
        );
    }
}
