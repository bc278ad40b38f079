//! Step three: from an admitted candidate to a plugin that can be called.
//!
//! Here code is read, compiled and linked, and none of it runs, but for the top level of scripts.

mod check_settings;
mod error;
mod loaded;

use arc_swap::ArcSwap;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tenon_config::admit::Admitted;
use tenon_config::config::InstanceMode;
use tenon_config::discover::{
    Candidate, CodeSource, Fingerprint, McpOptions, Remote, Server, ServerCommand, ServerLocation,
    inherited_environment,
};
use tenon_config::entry::HandshakeMode;
use tenon_config::expand;
use tenon_config::files::{self, Digest, read_text};
use tenon_config::grant::{FileRules, GrantSet, Grants, NETWORK};
use tenon_config::host_environment::HostEnvironment;
use tenon_config::lock::LockedDigests;
use tenon_config::path_context::PathContext;
use tenon_config::policy::ConfinementMode;
use tenon_config::secret::{Redactor, Secret, SecretValues};
use tenon_confinement::check_support;
use tenon_types::LogLevel;

use crate::capability::filesystem::FileGrants;
use crate::capability::granted::{GrantedCapabilities, HostServices, RequestedIn};
use crate::capability::host_capability::{CapabilityContext, HostCapability, PrepareContext};
use crate::capability::network::{Network, NetworkCapability, NetworkGrants, OnReach};
use crate::capability::notify::NotifyCapability;
use crate::capability::server::{
    AccessRecorder, ChildSpec, ConfinementState, ListingCache, ServerConfinement, StartQueue,
    Supervisor,
};
use crate::capability::{
    self, Asyncness, ComponentRole, InstanceConfig, LinkSet, PluginCapabilities,
};
use crate::observe::{PluginLog, PluginNotifications};
use crate::runtime::schema::SchemaSandbox;
use crate::runtime::wasm::{
    CachePlace, CompileError, ComponentFile, EngineError, LinkedComponent, WasmPlugin, WasmRuntime,
    check_exports,
};
use crate::runtime::{
    Allocation, EngineOptions, Plugin, RhaiPlugin, ScriptSetup, SupervisedBridge, Threads, UseToken,
};
pub use check_settings::{SettingsError, check_default_settings, check_settings};
pub(crate) use error::LoadError;
pub(crate) use loaded::LoadedPlugin;

/// The bridge to MCP servers, compiled to a component when this crate was built.
pub(crate) static BRIDGE: &[u8] = include_bytes!(env!("TENON_MCP_BRIDGE"));

/// The same for servers elsewhere.
pub(crate) static REMOTE_BRIDGE: &[u8] = include_bytes!(env!("TENON_REMOTE_BRIDGE"));

/// The largest script, in bytes.
const MAX_SCRIPT_BYTES: u64 = 4 << 20;

/// How long a plugin that is no MCP server may take to say what it contributes.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an MCP server may take to start and to say what it offers, from when its process is
/// started.
const SERVER_STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// The same for programs that may have to download the server first.
const RUNNER_STARTUP_TIMEOUT: Duration = Duration::from_secs(120);

/// What the name of the folder for what confined servers download ends with.
const SERVER_CACHES: &str = "-servers";

/// How much longer the host waits than the bridge, whose clock goes first: it knows the server's last
/// words.
const STARTUP_GRACE: Duration = Duration::from_secs(1);

/// Programs that fetch and run a package.
const RUNNERS: &[&str] = &[
    "npx", "npm", "uvx", "uv", "pipx", "bunx", "bun", "pnpx", "pnpm", "yarn", "docker", "podman",
    "deno", "nix",
];

/// What loading needs: the engine, the linkers, and the environment of children.
pub(crate) struct Loader {
    wasm: Arc<WasmRuntime>,
    schemas: Arc<SchemaSandbox>,
    bridge: OnceLock<Result<LinkedComponent, String>>,
    remote_bridge: OnceLock<Result<LinkedComponent, String>>,
    host_environment: HostEnvironment,
    /// Files that no glob covers for writing, as they decide what is started.
    deciding: ArcSwap<BTreeSet<PathBuf>>,
    news: PluginNotifications,
    host_services: Arc<HostServices>,
    threads: Arc<Threads>,
    /// Where servers wait for their start.
    starts: StartQueue,
    /// Whether a server is started only when it is called, if it is known what it contributes.
    lazy: bool,
    /// What starts servers in a sandbox.
    launcher: Option<PathBuf>,
    /// What records servers, by their ids.
    recorders: BTreeMap<String, AccessRecorder>,
}

/// What a plugin is lent, whatever runs it.
struct GrantedContext {
    context: Arc<CapabilityContext>,
    /// The variables of the environment that it sees.
    environment: Vec<(String, String)>,
    /// The secrets that it may ask for, by their names.
    secrets: Arc<BTreeMap<String, Secret>>,
    /// Keeps what it was given out of what is said of it.
    redactor: Redactor,
}

impl GrantedContext {
    /// What its capabilities are prepared from, without a server.
    fn preparation<'a>(
        &'a self,
        candidate: &'a Candidate,
        settings: &'a Map<String, Value>,
        news: &'a PluginNotifications,
    ) -> PrepareContext<'a> {
        PrepareContext {
            context: &self.context,
            grants: &candidate.grants,
            limits: &candidate.limits,
            settings,
            secrets: &self.secrets,
            news,
            child: None,
            server: None,
            remote: None,
        }
    }
}

impl Loader {
    pub(crate) fn new(
        options: impl Into<EngineOptions>,
        host_environment: &HostEnvironment,
        news: PluginNotifications,
        host_services: Arc<HostServices>,
    ) -> Result<Self, EngineError> {
        let cache = host_environment.cache.as_ref().map(|cache| {
            // Beside the folder at least, where there is no better place.
            let keys = host_environment.state.as_ref().unwrap_or(cache);
            CachePlace { folder: cache.join("components"), key: keys.join("cache.key") }
        });
        let wasm = Arc::new(WasmRuntime::new(options, cache)?);
        Ok(Self {
            schemas: Arc::new(SchemaSandbox::new(wasm.clone())),
            wasm,
            bridge: OnceLock::new(),
            remote_bridge: OnceLock::new(),
            host_environment: host_environment.clone(),
            deciding: ArcSwap::default(),
            news,
            host_services,
            threads: Threads::new(),
            starts: StartQueue::default(),
            lazy: true,
            launcher: None,
            recorders: BTreeMap::new(),
        })
    }

    /// The same, with what starts servers in a sandbox.
    pub(crate) fn launcher(self, launcher: Option<PathBuf>) -> Self {
        Self { launcher, ..self }
    }

    /// The same, recording servers.
    pub(crate) fn recording(self, recorders: BTreeMap<String, AccessRecorder>) -> Self {
        Self { recorders, ..self }
    }

    /// Keeps files that decide what is started from the globs of all that is loaded from then on.
    pub(crate) fn protect(&self, deciding: &BTreeSet<PathBuf>) {
        self.deciding.store(Arc::new(deciding.clone()));
    }

    /// The same, starting every server that it loads or only those that it does not know.
    pub(crate) fn lazy(self, lazy: bool) -> Self {
        Self { lazy, ..self }
    }

    /// Where servers wait for their start.
    pub(crate) fn starts(&self) -> &StartQueue {
        &self.starts
    }

    /// Where schemas are used that have no bound.
    pub(crate) fn schemas(&self) -> &Arc<SchemaSandbox> {
        &self.schemas
    }

    /// How instances get their memory.
    pub(crate) fn allocation(&self) -> Allocation {
        self.wasm.allocation
    }

    /// Learns of secrets of plugins, whether they are going to be loaded or not: others may say them.
    pub(crate) fn know(&self, secrets: &SecretValues) {
        self.host_services.secrets.know(secrets);
    }

    /// Returns the secrets of all plugins.
    pub(crate) fn known_secrets(&self) -> SecretValues {
        self.host_services.secrets.values()
    }

    /// Loads a plugin. It blocks: compiling a component takes its time.
    ///
    /// # Errors
    ///
    /// Where its code cannot be read, compiled or linked; [`LoadError`] says why.
    pub(crate) fn load(&self, admitted: Admitted) -> Result<LoadedPlugin, LoadError> {
        let candidate = admitted.into_candidate();
        if let Some(schema) = &candidate.settings_schema {
            let id = candidate.id().to_string();
            check_settings(schema, &candidate.settings)
                .map_err(|problem| LoadError::Settings { id, problem })?;
        }
        match candidate.source.clone() {
            CodeSource::Wasm { path, mode } => self.load_component(candidate, &path, mode),
            CodeSource::Rhai { path } => self.load_script(candidate, &path),
            CodeSource::Mcp(server) => self.load_server(candidate, *server),
        }
    }

    fn load_component(
        &self,
        mut candidate: Candidate,
        path: &Path,
        mode: InstanceMode,
    ) -> Result<LoadedPlugin, LoadError> {
        let prepared = self.prepare(&mut candidate);
        let file = self.wasm.open(path).map_err(|error| LoadError::Read(path.into(), error))?;
        let digest = file.digest;
        unchanged(path, &candidate, digest)?;
        let preparation = prepared.preparation(&candidate, &candidate.settings, &self.news);
        let setting = self.instance_config(&candidate, &prepared, &preparation, STARTUP_TIMEOUT)?;
        let (plugin, imports) = self.component(path, file, mode, &candidate.grants, setting)?;
        let fingerprint = candidate.fingerprint_with(Some(digest));
        let loaded = self.loaded(candidate, plugin, fingerprint, STARTUP_TIMEOUT);
        Ok(LoadedPlugin { imports: Some(imports), ..loaded })
    }

    fn load_script(
        &self,
        mut candidate: Candidate,
        path: &Path,
    ) -> Result<LoadedPlugin, LoadError> {
        let prepared = self.prepare(&mut candidate);
        let text = read_text(path, MAX_SCRIPT_BYTES)
            .map_err(|error| LoadError::Read(path.into(), error))?;
        let digest = Digest::of(&text);
        unchanged(path, &candidate, digest)?;
        let preparation = prepared.preparation(&candidate, &candidate.settings, &self.news);
        let setting = ScriptSetup {
            id: prepared.context.id.clone(),
            version: candidate.version.clone(),
            description: candidate.description.clone(),
            limits: candidate.limits.clone(),
            settings: candidate.settings.clone(),
            log: prepared.context.log.clone(),
            granted: prepared.context.granted.clone(),
            network: NetworkCapability::prepare(&preparation),
            news: NotifyCapability::prepare(&preparation),
        };
        let plugin = RhaiPlugin::compile(setting, path, text, self.threads.clone());
        let plugin = plugin.map_err(|error| error.masked(&prepared.redactor))?;
        let fingerprint = candidate.fingerprint_with(Some(digest));
        Ok(self.loaded(candidate, Arc::new(plugin), fingerprint, STARTUP_TIMEOUT))
    }

    fn load_server(
        &self,
        mut candidate: Candidate,
        mut server: Server,
    ) -> Result<LoadedPlugin, LoadError> {
        // Secrets are not what it is made of.
        let fingerprint = candidate.fingerprint();
        let time = startup_of(&server);
        let startup = time.saturating_add(STARTUP_GRACE);
        let listing = self.listing(&server, &candidate.named_in);
        put_secrets(&mut server, &candidate.given)?;
        if let ServerLocation::Remote(remote) = &server.place {
            candidate.grants = remote_grants(remote)?;
        }
        let settings = self.bridge_settings(&candidate, &server, time, listing.as_ref());
        // What a child is granted is for the child, and not for the bridge to it.
        let granted = match &server.place {
            ServerLocation::Child(_) => std::mem::take(&mut candidate.grants),
            ServerLocation::Remote(_) => candidate.grants.clone(),
        };
        let prepared = self.prepare(&mut candidate);
        let supervisor = |transport, confinement, traffic| {
            let (id, news) = (prepared.context.id.clone(), self.news.clone());
            let supervisor = Supervisor::new(id, transport, server.supervision.clone(), news);
            let supervisor = supervisor.with_listing(listing).with_confinement(confinement);
            let supervisor = supervisor.with_traffic(traffic);
            Arc::new(supervisor.with_starts(self.starts.clone(), time))
        };
        let mut preparation = prepared.preparation(&candidate, &settings, &self.news);
        let (bridge, supervisor) = match &server.place {
            ServerLocation::Child(program) => {
                let (confinement, state) =
                    self.confinement(&candidate, &granted, program, &prepared)?;
                let traffic = confinement.as_ref().and_then(ServerConfinement::traffic);
                let supervisor = supervisor("stdio", Some(state), traffic);
                let child = self.child(&prepared.context.log, program.clone(), supervisor.clone());
                let trusted = candidate.programs.clone();
                let child = ChildSpec { trusted, confinement, ..child };
                preparation.child = Some(Arc::new(child));
                preparation.server = Some(supervisor.clone());
                let setting = self.instance_config(&candidate, &prepared, &preparation, startup)?;
                (self.bridge(setting)?, supervisor)
            }
            ServerLocation::Remote(remote) => {
                let supervisor = supervisor("http", None, None);
                preparation.server = Some(supervisor.clone());
                preparation.remote = Some(&remote.url);
                let setting = self.instance_config(&candidate, &prepared, &preparation, startup)?;
                (self.remote_bridge(&candidate.grants, setting)?, supervisor)
            }
        };
        let redactor = prepared.redactor.clone();
        let hooks = server.hooks.clone();
        let idle = match &server.place {
            ServerLocation::Child(_) => Some(candidate.limits.server_idle),
            ServerLocation::Remote(_) => None,
        };
        let bridge =
            SupervisedBridge::new(bridge, supervisor.clone(), redactor, startup, hooks, idle);
        candidate.grants = granted;
        let loaded = self.loaded(candidate, Arc::new(bridge), fingerprint, startup);
        Ok(LoadedPlugin { supervised: Some(supervisor), tool_hooks: server.hooks, ..loaded })
    }

    /// The sandbox of a server, if it is to have one and can.
    fn confinement(
        &self,
        candidate: &Candidate,
        granted: &Grants,
        program: &ServerCommand,
        prepared: &GrantedContext,
    ) -> Result<(Option<ServerConfinement>, ConfinementState), LoadError> {
        let recorder = self.recorders.get(candidate.id());
        let opens_files = recorder.is_some_and(AccessRecorder::opens_files);
        let is_required = match program.confinement {
            ConfinementMode::Required if opens_files => {
                let problem = "with its needs recorded it would reach every file; `confine = \"preferred\"` lets it, for \
                               that time";
                return Err(LoadError::Unconfined(problem.into()));
            }
            // It would be recorded of nothing.
            _ if opens_files => true,
            ConfinementMode::Unconfined => return Ok((None, ConfinementState::default())),
            ConfinementMode::Preferred => false,
            ConfinementMode::Required => true,
        };
        let launcher = match self.working_launcher() {
            Ok(launcher) => launcher,
            Err(problem) if is_required => return Err(LoadError::Unconfined(problem)),
            Err(problem) => {
                let unconfined = format!("the server runs unconfined: {problem}");
                prepared.context.log.write(LogLevel::Warn, &unconfined, &[]);
                return Ok((
                    None,
                    ConfinementState { problem: Some(problem), ..ConfinementState::default() },
                ));
            }
        };
        let rules = self.file_rules(granted, candidate.data_folder.as_deref())?;
        let servers = self.host_environment.servers.as_deref();
        if let Some((folder, own)) = rules.endangered(servers.into_iter()) {
            return Err(LoadError::Endangers { folder, own });
        }
        let grants = match opens_files {
            true => Some(NetworkGrants::everything()),
            false => NetworkGrants::of(granted),
        };
        // Somebody has to be asked, so that what is refused is known.
        let grants = grants.or_else(|| recorder.map(|_| NetworkGrants::new(vec![Vec::new()])));
        let network = grants.map(|grants| {
            let (id, limits) = (prepared.context.id.clone(), candidate.limits.clone());
            let backend = self.host_services.services.network.clone();
            let network = Network::new(id, Arc::new(grants), backend, limits);
            let tell = recorder.cloned().map(|recorder| -> OnReach {
                Box::new(move |grant, is_granted| {
                    if opens_files || !is_granted {
                        recorder.note_url(grant);
                    }
                })
            });
            let requested_in = match candidate.manifest {
                Some(_) => RequestedIn::Manifest,
                None => RequestedIn::Entry,
            };
            Arc::new(network.telling(tell).requested_in(requested_in))
        });
        let HostEnvironment { home, cache, .. } = &self.host_environment;
        // Beside the host's own, which no server sees.
        let cache = cache.as_ref().map(|cache| {
            let name = cache.file_name().unwrap_or_default().to_string_lossy().into_owned();
            cache.with_file_name(name + SERVER_CACHES).join(candidate.id())
        });
        let code = program.code_files();
        let confinement =
            ServerConfinement::new(launcher, &rules, home.as_deref(), &code, cache, network);
        let confinement = confinement.recorded(recorder.cloned());
        let confinement = confinement.with_memory(candidate.limits.server_memory);
        let state = ConfinementState { is_confined: !opens_files, ..ConfinementState::default() };
        Ok((Some(confinement), state))
    }

    /// The token of its user's login, of a server elsewhere.
    pub(crate) async fn login(&self, candidate: &Candidate) -> Option<Secret> {
        let url = candidate.server_url()?;
        self.host_services.services.access_tokens.token(url.as_str()).await
    }

    /// What starts servers in a sandbox, or why nothing can.
    fn working_launcher(&self) -> Result<&Path, String> {
        let none = || "this host has no launcher for that (`Builder::server_launcher`)".to_string();
        let launcher = self.launcher.as_deref().ok_or_else(none)?;
        check_support().map(|()| launcher)
    }

    /// Which files are granted. The plugin's own folder is there, where it is granted.
    fn file_rules(
        &self,
        granted: &Grants,
        data_folder: Option<&Path>,
    ) -> Result<FileRules, LoadError> {
        let deciding = self.deciding.load();
        let rules = FileRules::of(granted, data_folder, &self.host_environment, &deciding);
        if let Some(folder) = data_folder.filter(|_| rules.uses_data_folder()) {
            files::make_private(folder)
                .map_err(|source| LoadError::DataFolder { path: folder.into(), source })?;
        }
        Ok(rules)
    }

    /// What a bridge is told. It is the host's word alone: what a configuration sets for the plugin is for no
    /// bridge.
    fn bridge_settings(
        &self,
        candidate: &Candidate,
        server: &Server,
        startup: Duration,
        listing: Option<&ListingCache>,
    ) -> Map<String, Value> {
        let mut settings = Map::new();
        settings.insert("startup_timeout_ms".into(), json!(milliseconds(startup)));
        settings.insert("request_timeout_ms".into(), json!(milliseconds(candidate.limits.wall)));
        settings.insert("passthrough".into(), json!(candidate.context.passthrough));
        insert_protocol_settings(&mut settings, &server.options);
        let offers = self.host_services.services.features.offers();
        settings.insert("forms".into(), json!(offers.forms));
        settings.insert("pages".into(), json!(offers.pages));
        settings.insert("sampling".into(), json!(offers.sampling));
        settings.insert("client_roots".into(), json!(offers.roots));
        if let Some(revision) = listing.and_then(ListingCache::revision) {
            settings.insert("revision".into(), json!(revision));
        }
        if let ServerLocation::Remote(remote) = &server.place {
            let http = json!({
                "id": candidate.id(),
                "url": remote.url.as_str(),
                "headers": remote.headers,
                "transport": remote.transport,
                "max_message": server.supervision.max_message,
            });
            settings.insert("http".into(), http);
        }
        settings
    }

    /// Makes ready what a plugin of any kind is lent. From then on its secrets are known.
    fn prepare(&self, candidate: &mut Candidate) -> GrantedContext {
        let environment = capability::environment::of(&candidate.grants, &self.host_environment);
        for (name, value) in &environment {
            candidate.secrets.add(name, value);
        }
        self.host_services.secrets.know(&candidate.secrets);
        let id: Arc<str> = candidate.id.as_str().into();
        let redactor = Redactor::new(&candidate.secrets);
        let log = PluginLog::new(id.clone(), redactor.clone(), candidate.limits.log_rate);
        let log = Arc::new(log.among(self.host_services.secrets.clone()));
        let (grants, services) = (candidate.grants.clone(), self.host_services.clone());
        let granted = GrantedCapabilities::new(id.clone(), grants, services);
        let granted = Arc::new(granted.with_log(log.clone()));
        GrantedContext {
            context: Arc::new(CapabilityContext { id, kind: candidate.kind(), log, granted }),
            environment,
            secrets: Arc::new(std::mem::take(&mut candidate.given)),
            redactor,
        }
    }

    /// What the instances of a component are made with.
    fn instance_config(
        &self,
        candidate: &Candidate,
        prepared: &GrantedContext,
        preparation: &PrepareContext<'_>,
        startup: Duration,
    ) -> Result<InstanceConfig, LoadError> {
        let rules = self.file_rules(&candidate.grants, candidate.data_folder.as_deref())?;
        Ok(InstanceConfig {
            context: prepared.context.clone(),
            limits: candidate.limits.clone(),
            startup,
            files: Arc::new(FileGrants::new(rules)),
            environment: prepared.environment.clone(),
            capabilities: PluginCapabilities::prepare(preparation),
        })
    }

    fn loaded(
        &self,
        mut candidate: Candidate,
        plugin: Arc<dyn Plugin>,
        fingerprint: Fingerprint,
        startup: Duration,
    ) -> LoadedPlugin {
        let setting = format!("{:?}", (&candidate.settings, &candidate.grants));
        LoadedPlugin {
            id: candidate.id.as_str().into(),
            kind: candidate.kind(),
            owner: candidate.owner(),
            plugin,
            limits: candidate.limits.clone(),
            startup,
            permissions: candidate.permissions.take(),
            fingerprint: Some(fingerprint),
            setting: Digest::of(setting).to_string().into(),
            uses: UseToken::default(),
            grants: candidate.grants,
            secrets: candidate.secrets,
            requested: candidate.requests,
            skills: candidate.skills,
            imports: None,
            supervised: None,
            tool_hooks: Vec::new(),
            schemas: self.schemas.clone(),
        }
    }

    fn component(
        &self,
        path: &Path,
        file: ComponentFile,
        mode: InstanceMode,
        grants: &Grants,
        setting: InstanceConfig,
    ) -> Result<(Arc<dyn Plugin>, Vec<String>), LoadError> {
        let component = self.wasm.compile_file(file).map_err(|error| {
            let (path, problem) = (path.into(), error.to_string());
            match error {
                CompileError::TooMuch(_) => LoadError::TooLarge { path, problem },
                _ => LoadError::NotComponent { path, problem },
            }
        })?;
        let engine = &self.wasm.engine;
        let export = |source| LoadError::Export { path: path.into(), source };
        check_exports(engine, &component).map_err(export)?;
        let role = ComponentRole::Plugin(grants);
        capability::check_imports(engine, &component, role)
            .map_err(|source| LoadError::Import { path: path.into(), source })?;
        let links = LinkSet::of(role, Asyncness::of(engine, &component));
        let linked = self.wasm.link(&component, links).map_err(export)?;
        let imports = component.component_type();
        let imports = imports.imports(engine).map(|(import, _)| import.to_string()).collect();
        Ok((Arc::new(WasmPlugin::new(linked, setting, mode)), imports))
    }

    /// The bridge, with a server as its child.
    fn bridge(&self, setting: InstanceConfig) -> Result<WasmPlugin, LoadError> {
        let linked = self.bridge.get_or_init(|| self.linked_bridge(BRIDGE, ComponentRole::Bridge));
        bridge_of(linked.clone(), setting)
    }

    /// The bridge to a server elsewhere, which may reach that one.
    fn remote_bridge(
        &self,
        grants: &Grants,
        setting: InstanceConfig,
    ) -> Result<WasmPlugin, LoadError> {
        // What is linked does not depend on which server it is.
        let linked = self
            .remote_bridge
            .get_or_init(|| self.linked_bridge(REMOTE_BRIDGE, ComponentRole::RemoteBridge(grants)));
        bridge_of(linked.clone(), setting)
    }

    fn linked_bridge(
        &self,
        bridge: &[u8],
        target: ComponentRole<'_>,
    ) -> Result<LinkedComponent, String> {
        let component = self.wasm.compile(bridge, &Digest::of(bridge));
        let component = component.map_err(|error| error.to_string())?;
        let engine = &self.wasm.engine;
        capability::check_imports(engine, &component, target).map_err(|error| error.to_string())?;
        let links = LinkSet::of(target, Asyncness::Async);
        self.wasm.link(&component, links).map_err(|error| error.to_string())
    }

    /// Where what a server contributes is kept.
    fn listing(&self, server: &Server, named_in: &Path) -> Option<ListingCache> {
        let offers = self.host_services.services.features.offers();
        ListingCache::of(server, named_in, &self.host_environment, offers, self.lazy)
    }

    fn child(
        &self,
        log: &Arc<PluginLog>,
        program: ServerCommand,
        supervisor: Arc<Supervisor>,
    ) -> ChildSpec {
        let environment = &self.host_environment.environment;
        let mut environment = inherited_environment(environment, &program.inherited);
        let own = program.environment.into_iter().map(|(name, value)| (name.into(), value.into()));
        environment.extend(own);
        ChildSpec {
            log: log.clone(),
            program: program.program,
            arguments: program.arguments,
            environment,
            folder: program.folder,
            trusted: None,
            supervisor,
            confinement: None,
        }
    }
}

/// A time as JSON can say it: one that is longer is as long as can be said.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Tells the bridge what an entry says of how to speak with its server.
fn insert_protocol_settings(settings: &mut Map<String, Value>, options: &McpOptions) {
    let McpOptions { protocol, roots, log_level, ping } = options;
    if *protocol != HandshakeMode::default() {
        settings.insert("protocol".into(), json!(protocol));
    }
    if !roots.is_empty() {
        let roots = roots.iter().map(|(uri, name)| json!({ "uri": uri, "name": name }));
        settings.insert("roots".into(), roots.collect());
    }
    if let Some(level) = log_level {
        settings.insert("log_level".into(), json!(level));
    }
    if let Some(ping) = ping {
        settings.insert("ping_ms".into(), json!(milliseconds(*ping)));
    }
}

/// Puts secrets into what a server is given, where it has places for them.
fn put_secrets(server: &mut Server, given: &BTreeMap<String, Secret>) -> Result<(), LoadError> {
    let texts = match &mut server.place {
        ServerLocation::Child(program) => &mut program.environment,
        ServerLocation::Remote(remote) => &mut remote.headers,
    };
    for text in texts.values_mut() {
        let put = expand::put_secrets(text, |name| given.get(name).map(Secret::reveal));
        *text = put.map_err(LoadError::NoSecret)?;
    }
    Ok(())
}

/// What is loaded must be what was installed, where a lock file says so, and what was approved a
/// moment ago, where anything had to be.
fn unchanged(path: &Path, candidate: &Candidate, found: Digest) -> Result<(), LoadError> {
    if let Some(LockedDigests::Bound { code, .. }) = candidate.lock_entry
        && code != found
    {
        return Err(LoadError::NotAsLocked { path: path.into(), expected: code, found });
    }
    if candidate.trusted.is_some_and(|trusted| trusted != found) {
        return Err(LoadError::NotAsTrusted(path.into()));
    }
    match candidate.approves_content() && candidate.approved != Some(found) {
        true => Err(LoadError::Changed(path.into())),
        false => Ok(()),
    }
}

fn bridge_of(
    linked: Result<LinkedComponent, String>,
    setting: InstanceConfig,
) -> Result<WasmPlugin, LoadError> {
    match linked {
        Ok(linked) => Ok(WasmPlugin::new(linked, setting, InstanceMode::Shared)),
        Err(problem) => Err(LoadError::NotComponent { path: "the MCP bridge".into(), problem }),
    }
}

/// What it takes to reach one server: its origin and nothing else.
pub(crate) fn remote_grants(remote: &Remote) -> Result<Grants, LoadError> {
    let mut grants = GrantSet::default();
    let value = format!("{}/*", remote.url.origin().ascii_serialization());
    let here = Path::new("/");
    grants.add(NETWORK, &value, &PathContext::in_folder(here)).map_err(|problem| {
        LoadError::NotComponent { path: value.into(), problem: problem.to_string() }
    })?;
    Ok(Grants::new(grants.clone(), grants))
}

fn startup_of(server: &Server) -> Duration {
    let runner = match &server.place {
        ServerLocation::Child(program) => {
            program.program.file_stem().and_then(|name| name.to_str())
        }
        ServerLocation::Remote(_) => None,
    };
    let is_runner = runner.is_some_and(|name| RUNNERS.contains(&name));
    server.startup_timeout.unwrap_or(if is_runner {
        RUNNER_STARTUP_TIMEOUT
    } else {
        SERVER_STARTUP_TIMEOUT
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_config::config;
    use tenon_config::discover::{Sources, discover};

    /// A component that requests something, or nothing.
    fn candidate(requests: bool) -> Candidate {
        let request = match requests {
            true => ", capabilities = { environment = [\"X\"] }",
            false => "",
        };
        let entry = format!("plugins.wasm = [{{ path = \"a.wasm\"{request} }}]");
        let config = config::Config::parse(&entry, "/project/tenon.toml").expect("it is read");
        let mut found = discover(&Sources { configs: vec![config], ..Sources::default() });
        found.candidates.remove(0)
    }

    #[test]
    fn what_is_loaded_is_what_was_installed_trusted_and_approved() {
        let (here, other) = (Digest::of("here"), Digest::of("other"));
        let check = |change: &dyn Fn(&mut Candidate), expected: Option<&str>| {
            for requests in [false, true] {
                let mut candidate = candidate(requests);
                candidate.approved = Some(here);
                change(&mut candidate);
                let found = unchanged(Path::new("a.wasm"), &candidate, here);
                // What requests nothing was approved by nobody.
                let expected = expected.filter(|words| requests || !words.contains("approved"));
                match (found, expected) {
                    (Ok(()), None) => {}
                    (Err(error), Some(words)) => {
                        assert!(error.to_string().contains(words), "{error}");
                        assert!(error.is_refusal() && error.remedy().is_some());
                    }
                    (found, expected) => panic!("{found:?}, not {expected:?}"),
                }
            }
        };
        let bound = |code: Digest| {
            let file = PathBuf::from("tenon.lock");
            Some(LockedDigests::Bound { file, code, manifest: here, skills: None })
        };
        check(&|_| {}, None);
        check(&|candidate| candidate.approved = Some(other), Some("since it was approved"));
        check(&|candidate| candidate.approved = None, Some("since it was approved"));
        check(&|candidate| candidate.lock_entry = bound(here), None);
        check(
            &|candidate| candidate.lock_entry = bound(other),
            Some("differs from what was installed"),
        );
        check(&|candidate| candidate.trusted = Some(here), None);
        check(&|candidate| candidate.trusted = Some(other), Some("since its project was trusted"));
    }
}
