//! From what a plugin answers to what it contributes: its definitions, each checked for itself.

use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenon_config::diagnostic::Diagnostic;
use tenon_config::discover::PluginKind;
use tenon_config::grant::Grants;
use tenon_config::manifest::RegistrationPermissions;
use tenon_config::secret::{MASK, Redactor};
use tenon_config::skills::Skill;
use tenon_config::tool_hooks::ServerHook;
use tenon_types::text::{cut, one_line};
use tenon_types::{
    EvalDefinition, HookRegistration, Identity, ModelInfo, ProviderDefinition, Registration,
    ToolDefinition,
};
use tokio::sync::OnceCell;

use crate::call::Failure;
use crate::call::mask::{Unmasked, within_unmasked};
use crate::load::LoadedPlugin;
use crate::runtime::schema::{self, ParsedSchema, Schema};
use crate::runtime::{MAX_TOOLS_PER_PLUGIN, as_registered};

/// A plugin together with what it contributes.
pub struct RegisteredPlugin {
    pub(super) loaded: LoadedPlugin,
    pub(super) identity: Identity,
    /// The same without what a server says of itself, where that is held.
    pub(super) bare_identity: Identity,
    pub(super) holds_instructions: AtomicBool,
    pub(super) tools: Vec<DeclaredTool>,
    pub(super) hooks: Vec<HookRegistration>,
    pub(super) providers: Vec<ProviderDefinition>,
    /// What its providers serve, once they were asked.
    pub(super) models: OnceCell<Vec<ModelInfo>>,
    pub(super) evals: Vec<RegisteredEval>,
    pub(super) resources: bool,
    pub(super) prompts: bool,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// A tool as its plugin offers it.
#[derive(Clone)]
#[non_exhaustive]
pub struct DeclaredTool {
    /// What the plugin says of it, under its own name.
    pub definition: Arc<ToolDefinition>,
    pub(crate) arguments: Arc<Schema>,
    pub(super) output: Option<Arc<Schema>>,
}

impl DeclaredTool {
    /// A tool of the host's own.
    pub(crate) fn own(definition: ToolDefinition) -> Self {
        let output = definition.output_schema.as_deref();
        Self {
            arguments: Arc::new(schema::compile_own(&definition.input_schema)),
            output: output.map(|schema| Arc::new(schema::compile_own(schema))),
            definition: Arc::new(definition),
        }
    }

    /// A tool with its schemas, each compiled or refused.
    fn with_schemas(
        definition: ToolDefinition,
        input: Result<ParsedSchema, String>,
        output: Option<Result<ParsedSchema, String>>,
    ) -> Result<Self, String> {
        let output = output.transpose();
        let output = output.map_err(|problem| format!("its output schema: {problem}"))?;
        let input = input.map_err(|problem| format!("its input schema: {problem}"))?;
        match input.of_objects {
            true => Ok(Self {
                definition: Arc::new(definition),
                arguments: Arc::new(input.schema),
                output: output.map(|output| Arc::new(output.schema)),
            }),
            false => Err("its input schema is not of `\"type\": \"object\"`".into()),
        }
    }
}

/// A strategy, ready to be used.
#[non_exhaustive]
pub struct RegisteredEval {
    /// What the plugin says of it.
    pub definition: EvalDefinition,
    pub(crate) options: Option<Schema>,
}

impl RegisteredPlugin {
    /// Its id.
    pub fn id(&self) -> &Arc<str> {
        self.loaded.id()
    }

    /// Its kind.
    pub fn kind(&self) -> PluginKind {
        self.loaded.kind()
    }

    /// The plugin that was loaded.
    pub(crate) fn loaded(&self) -> &LoadedPlugin {
        &self.loaded
    }

    /// Who the plugin says it is. The description of an MCP server is its instructions for models; it
    /// is empty while those are held, as they are not what they were when they were first seen.
    pub fn identity(&self) -> &Identity {
        match self.holds_instructions.load(Ordering::Acquire) {
            true => &self.bare_identity,
            false => &self.identity,
        }
    }

    /// The same, with instructions that are held.
    pub(crate) fn said_identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn hold_instructions(&self, quarantine: bool) {
        self.holds_instructions.store(quarantine, Ordering::Release);
    }

    /// The tools that it offers. Which of them may be called, and how they are named then, a
    /// [`Registry`](super::Registry) knows.
    pub fn tools(&self) -> &[DeclaredTool] {
        &self.tools
    }

    /// The points that it handles.
    pub fn hooks(&self) -> &[HookRegistration] {
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
    pub fn evals(&self) -> &[RegisteredEval] {
        &self.evals
    }

    /// Whether it has resources; of a server, whether it lists any, or a template.
    pub fn has_resources(&self) -> bool {
        self.resources
    }

    /// Whether it may be asked for resources: a server can have some that it does not list.
    pub(crate) fn may_have_resources(&self) -> bool {
        self.resources || self.is_server_that_may(|permissions| permissions.register_resources)
    }

    /// Whether it may be asked for prompts.
    pub(crate) fn may_have_prompts(&self) -> bool {
        self.prompts || self.is_server_that_may(|permissions| permissions.register_prompts)
    }

    fn is_server_that_may(&self, register: impl FnOnce(&RegistrationPermissions) -> bool) -> bool {
        self.loaded.kind() == PluginKind::Mcp && self.loaded.permissions().is_none_or(register)
    }

    /// Whether it has prompts; of a server, whether it lists any.
    pub fn has_prompts(&self) -> bool {
        self.prompts
    }

    /// The skills that it carries. [`Platform::read_skill`](crate::Platform::read_skill) reads their files.
    pub fn skills(&self) -> &[Skill] {
        self.loaded.skills().map_or(&[], |skills| skills.all())
    }

    /// What was dropped of its contributions, and why.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

/// What a plugin contributes: what is known of it, or else what it answers.
pub(crate) async fn learn(loaded: &LoadedPlugin) -> Result<UncheckedRegistration, Failure> {
    match loaded.supervised().and_then(|server| server.stand_in()) {
        Some(registration) => Ok(UncheckedRegistration { registration, is_new: false }),
        None => ask(loaded).await,
    }
}

/// Asks a plugin what it contributes, and registers it.
pub(crate) async fn register(loaded: LoadedPlugin) -> Result<RegisteredPlugin, Failure> {
    let learned = learn(&loaded).await?;
    register_as(loaded, learned).await
}

/// Registers a plugin with what it contributes.
pub(crate) async fn register_as(
    loaded: LoadedPlugin,
    learned: UncheckedRegistration,
) -> Result<RegisteredPlugin, Failure> {
    let UncheckedRegistration { registration, is_new } = learned;
    if is_new && let Some(server) = loaded.supervised().cloned() {
        let kept = registration.clone();
        // It is short. Who did not wait for it could be over before it is.
        let _ = tokio::task::spawn_blocking(move || server.keep(&kept)).await;
    }
    check(loaded, registration).await
}

/// Asks again, for a plugin whose contributions have changed.
pub(crate) async fn register_again(former: &RegisteredPlugin) -> Result<RegisteredPlugin, Failure> {
    let learned = ask(&former.loaded).await?;
    register_as(former.loaded.clone(), learned).await
}

/// What a plugin contributes, as it is known.
pub(crate) struct UncheckedRegistration {
    registration: Registration,
    /// Whether it has just been asked.
    is_new: bool,
}

async fn ask(loaded: &LoadedPlugin) -> Result<UncheckedRegistration, Failure> {
    let (time, registration) = (loaded.startup(), loaded.plugin().register());
    let registration = match loaded.supervised().cloned() {
        Some(server) => {
            let started = Unmasked::of(|opening| async move {
                let asked = async { registration.await.open(opening) };
                server.start_in_turn(false, time, asked).await
            });
            started.await
        }
        None => within_unmasked(time, registration).await,
    };
    let redactor = Arc::new(Redactor::new(loaded.secrets()));
    Ok(UncheckedRegistration {
        registration: as_registered(&redactor, registration)?,
        is_new: true,
    })
}

/// What a plugin contributes, with the hook points that its tools handle. A guard that could never be asked is an
/// error.
fn with_tool_hooks(
    mut registration: Registration,
    hooks: &[ServerHook],
) -> Result<Registration, Failure> {
    for ServerHook { registration: hook, tool } in hooks {
        if registration.tools.iter().all(|listed| listed.name != *tool) {
            return Err(Failure::Contract(format!(
                "its manifest has the tool \"{tool}\" handle {}, and the server lists no such tool",
                hook.point
            )));
        }
        registration.hooks.push(hook.clone());
    }
    Ok(registration)
}

/// Checks each definition that a plugin gave.
async fn check(
    loaded: LoadedPlugin,
    registration: Registration,
) -> Result<RegisteredPlugin, Failure> {
    let id = loaded.id().clone();
    let mut diagnostics = Vec::new();
    let registration = with_tool_hooks(registration, loaded.tool_hooks())?;
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
    // A server's is for its own people to say.
    if loaded.kind() == PluginKind::Wasm
        && let Err(error) = semver::Version::parse(&identity.version)
    {
        let version = one_line(cut(&identity.version, 64));
        let problem = format!("its version \"{version}\" is not a version number: {error}");
        diagnostics.push(Diagnostic::of(&id, problem));
    }
    let mut drop = |what: &str, name: &str, problem: String| {
        let name = one_line(cut(name, 128));
        let problem = format!("the {what} \"{name}\" is left out: {problem}");
        diagnostics.push(Diagnostic::of(&id, problem));
    };

    if tools.len() > MAX_TOOLS_PER_PLUGIN {
        drop(
            "tool",
            &tools[MAX_TOOLS_PER_PLUGIN].name,
            format!("a plugin has at most {MAX_TOOLS_PER_PLUGIN}"),
        );
    }
    let tools: Vec<(ToolDefinition, Result<(), String>)> = tools
        .into_iter()
        .take(MAX_TOOLS_PER_PLUGIN)
        .map(|definition| {
            let checked = check_tool(&definition, loaded.grants());
            (definition, checked)
        })
        .collect();
    let evals: Vec<EvalDefinition> = evals.into_iter().take(MAX_TOOLS_PER_PLUGIN).collect();
    let of_tools = tools.iter().filter(|(_, checked)| checked.is_ok()).flat_map(|(tool, _)| {
        [Some(&tool.input_schema), tool.output_schema.as_ref()].into_iter().flatten()
    });
    let of_evals = evals.iter().filter_map(|eval| eval.options_schema.as_ref());
    let texts = of_tools.chain(of_evals).cloned().collect();
    let schemas = schema::compile(texts, loaded.schemas(), loaded.limits()).await?;
    let mut schemas = schemas.into_iter();
    let mut next = || schemas.next().expect("each schema was compiled or refused");

    let mut checked: Vec<DeclaredTool> = Vec::new();
    let mut names = HashSet::new();
    for (definition, is_checked) in tools {
        let name = definition.name.clone();
        let declared = is_checked.and_then(|()| {
            let input = next();
            let output = definition.output_schema.is_some().then(&mut next);
            DeclaredTool::with_schemas(definition, input, output)
        });
        match declared {
            _ if names.contains(&name) => {
                drop("tool", &name, "there is another of this name".into());
            }
            Ok(declared) => {
                names.insert(name);
                checked.push(declared);
            }
            Err(problem) => drop("tool", &name, problem),
        }
    }
    let mut strategies: Vec<RegisteredEval> = Vec::new();
    let mut names = HashSet::new();
    for definition in evals {
        let twice = !names.insert(definition.name.clone());
        let options = definition.options_schema.is_some().then(&mut next).transpose();
        let twice = twice.then(|| "there is another of this name".to_string());
        let options = options.map_err(|problem| format!("its options schema: {problem}"));
        match spoilt(&definition.name).or(twice).map_or(options, Err) {
            Ok(options) => {
                let options = options.map(|options| options.schema);
                strategies.push(RegisteredEval { definition, options });
            }
            Err(problem) => drop("strategy", &definition.name, problem),
        }
    }
    let mut handled: Vec<HookRegistration> = Vec::new();
    for hook in hooks.into_iter().take(MAX_TOOLS_PER_PLUGIN) {
        let name = hook.point.to_string();
        if let Some(problem) = spoilt(&name) {
            drop("hook point", &name, problem);
        } else if !handled.iter().any(|other| other.point == hook.point) {
            handled.push(hook);
        }
    }
    let mut names = HashSet::new();
    let mut distinct: Vec<ProviderDefinition> = Vec::new();
    for definition in providers.into_iter().take(MAX_TOOLS_PER_PLUGIN) {
        let twice = || "there is another of this name".to_string();
        let is_new = names.insert(definition.name.clone());
        match spoilt(&definition.name).or_else(|| (!is_new).then(twice)) {
            None => distinct.push(definition),
            Some(problem) => drop("provider", &definition.name, problem),
        }
    }
    let bare_identity = Identity::new(&*identity.name, &*identity.version, "");
    Ok(RegisteredPlugin {
        loaded,
        identity,
        bare_identity,
        holds_instructions: AtomicBool::new(false),
        tools: checked,
        hooks: handled,
        providers: distinct,
        models: OnceCell::new(),
        evals: strategies,
        resources,
        prompts,
        diagnostics: told_once(&id, diagnostics),
    })
}

/// The most that is told of what is left out of one plugin's contributions.
const MAX_DIAGNOSTICS: usize = 32;

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
        if told.len() == MAX_DIAGNOSTICS {
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
    permissions: &RegistrationPermissions,
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

/// Why nothing can be registered by a name, if it is one of which a secret was masked.
fn spoilt(name: &str) -> Option<String> {
    name.contains(MASK).then(|| "there is a secret in its name".into())
}

/// Checks what a definition says beside its schemas.
fn check_tool(definition: &ToolDefinition, grants: &Grants) -> Result<(), String> {
    if let Some(problem) = spoilt(&definition.name) {
        return Err(problem);
    }
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
    Ok(())
}
