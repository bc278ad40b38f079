//! A host in a test, in this process: one plugin under limits, with no more than it was granted, and a made-up environment.
//! `tenon test` and `tenon harness` are built on it; embedders use it where a test needs the host's own types, for example
//! for a [`Messaging`](tenon_host::services::Messaging) of theirs. It compiles the whole host: authors of plugins use
//! `tenon-harness`, which has the installed command do the same.
//!
//! ```no_run
//! use serde_json::json;
//! use tenon_test_host::TestHost;
//! use tenon_test_host::host::types::FormAnswer;
//!
//! #[tokio::test]
//! async fn the_user_is_asked() -> Result<(), Box<dyn std::error::Error>> {
//!     let plugin = TestHost::component("target/wasm32-wasip2/release/guestbook.wasm")
//!         .grant("state", ["user"])
//!         .user(|_| FormAnswer::accept([("name", "Ada")]))
//!         .start()
//!         .await?;
//!     let result = plugin.call("welcome", json!({})).await?;
//!     assert_eq!(result.plain_text(), "Hello, Ada! This is visit 1.");
//!     Ok(())
//! }
//! # fn main() {}
//! ```
//!
//! No `tenon.toml` is read, and nothing of the user's home folder or environment: what there is of them, the test says.
//! What is granted is real: a granted network is the network unless the test answers its requests
//! ([`TestHost::http`]), a granted file is the file. The errors are the host's own.

mod cassette;
mod client;
mod clock;
mod http;
mod running_plugin;
mod state;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tenon_config::secret::{Redactor, SecretValues};
use tenon_host::services::{GrantAll, Secret, SecretStore, StoreError};
use tenon_host::types::{
    Completion, CompletionRequest, Error, FormAnswer, FormRequest, UrlAnswer, UrlRequest,
};
use tenon_host::{
    Allocation, BuildError, Builder, Config, HostEnvironment, Limits, Platform, PluginState,
};
use url::Url;

use cassette::Cassette;
pub use cassette::CassetteError;
use client::Client;
pub use clock::ManualClock;
use http::Network;
pub use running_plugin::RunningPlugin;
pub use state::State;
pub use tenon_harness::protocol::{CassetteUse, PluginSource};
pub use tenon_harness::{HttpAnswer, HttpRequest, Scope};
/// The host, whose types the calls take and give.
pub use tenon_host as host;

/// The id of the plugin in its host.
const ID: &str = "tested";

/// Its component, in its folder.
const COMPONENT: &str = "plugin.wasm";

/// A plugin, and what the host of a test gives it.
pub struct TestHost {
    program: PluginSource,
    shared: bool,
    config: Map<String, Value>,
    grants: BTreeMap<String, Vec<String>>,
    secrets: BTreeMap<String, String>,
    environment: BTreeMap<OsString, OsString>,
    limits: Option<Limits>,
    limits_table: toml::Table,
    beside: Vec<PathBuf>,
    client: Client,
    clock: Option<ManualClock>,
    state: Option<State>,
    network: Option<Network>,
    files: BTreeMap<PathBuf, Vec<u8>>,
    cassette: Option<(CassetteUse, PathBuf)>,
    /// Where compiled components are kept, and the key to them.
    compiled: Option<(PathBuf, Option<PathBuf>)>,
    adjust: Box<dyn FnOnce(Builder) -> Builder + Send>,
}

/// Whether a component has line tables, so that backtraces have lines. Their section has this name.
fn has_lines(component: &Path) -> bool {
    fs::read(component).is_ok_and(|wasm| memmem::find(&wasm, b".debug_line").is_some())
}

/// Why a plugin was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The plugin could not be put where the host finds it.
    #[error("{path} cannot be used: {problem}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: io::Error,
    },
    /// What the test says of the plugin is nothing that a host can be told.
    #[error("the configuration of the test is wrong: {0}")]
    Configuration(String),
    /// The cassette cannot be recorded or played.
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    /// The plugin's state cannot be opened.
    #[error(transparent)]
    State(#[from] StoreError),
    /// There is no host.
    #[error(transparent)]
    Host(#[from] BuildError),
    /// The host did not take the plugin, or a plugin beside it.
    #[error("the plugin \"{plugin}\" is {state}: {reason}")]
    NotThere {
        /// Which.
        plugin: String,
        /// How it fared.
        state: PluginState,
        /// Why, in the words of the host.
        reason: String,
    },
}

impl TestHost {
    /// The plugin that is at a place.
    pub fn of(plugin: PluginSource) -> Self {
        Self::new(plugin)
    }

    /// A component.
    pub fn component(path: impl Into<PathBuf>) -> Self {
        Self::new(PluginSource::Component(path.into()))
    }

    /// The plugin in a folder, as its `plugin.toml` has it, but for what it requests: it is granted what the test says. Its
    /// component has been built.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        Self::new(PluginSource::Folder(path.into()))
    }

    /// A script.
    pub fn script(path: impl Into<PathBuf>) -> Self {
        Self::new(PluginSource::Script(path.into()))
    }

    /// An MCP server: a program with its whole path, and its arguments.
    pub fn server<A: Into<String>>(
        command: impl Into<String>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self::new(PluginSource::Server { command: command.into(), arguments })
    }

    fn new(program: PluginSource) -> Self {
        Self {
            program,
            shared: false,
            config: Map::new(),
            grants: BTreeMap::new(),
            secrets: BTreeMap::new(),
            environment: BTreeMap::new(),
            limits: None,
            limits_table: toml::Table::new(),
            beside: Vec::new(),
            client: Client::default(),
            clock: None,
            state: None,
            network: None,
            files: BTreeMap::new(),
            cassette: None,
            compiled: None,
            adjust: Box::new(|builder| builder),
        }
    }

    /// The plugin's configuration: an object.
    ///
    /// # Panics
    ///
    /// When it is no object.
    pub fn config(mut self, config: Value) -> Self {
        let Value::Object(config) = config else {
            panic!("a configuration is an object, and not {config}");
        };
        self.config = config;
        self
    }

    /// Grants values of a capability, in the words of a `plugin.toml`: `grant("messaging",
    /// ["*"])`. A component that imports a capability of which nothing is granted does not
    /// start.
    pub fn grant<V: Into<String>>(
        mut self,
        capability: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let granted = self.grants.entry(capability.into()).or_default();
        granted.extend(values.into_iter().map(Into::into));
        self
    }

    /// Grants a secret, and sets it.
    pub fn secret(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.grant("secrets", [name.clone()]).secret_value(name, value)
    }

    /// Sets a secret, which the plugin gets if it is granted.
    pub fn secret_value(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.secrets.insert(name.into(), value.into());
        self
    }

    /// Answers the plugin's requests over HTTP; the network that it is granted is that of the test from then on, and nothing
    /// leaves the process. A request without an answer fails. [`RunningPlugin::http_requests`] has them all.
    pub fn http(mut self, answers: impl IntoIterator<Item = HttpAnswer>) -> Self {
        let network = self.network.get_or_insert_default();
        answers.into_iter().for_each(|answer| network.add(answer));
        self
    }

    /// Records what the plugin asks of others, or plays what was recorded: requests over HTTP, calls of the tools of other
    /// plugins, and questions to models. The file of a cassette is JSON, without the secrets of the test.
    pub fn cassette(mut self, how: CassetteUse, file: impl Into<PathBuf>) -> Self {
        self.cassette = Some((how, file.into()));
        self
    }

    /// Writes a file into the home folder of the test, which the plugin finds below `~/` if it is granted.
    pub fn file(mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), content.into());
        self
    }

    /// Shares compiled components with the hosts of this environment, which need not compile them again. By default
    /// they are kept beside a component, and end with the test where there is a folder or a script.
    pub fn share_compiled(mut self, host_environment: &HostEnvironment) -> Self {
        let HostEnvironment { cache, state, .. } = host_environment;
        self.compiled = cache.clone().map(|cache| (cache, state.clone()));
        self
    }

    /// Sets a variable of the host's environment. The plugin sees it if it is granted.
    pub fn environment(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// The limits, none of which can be more than the default.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets limits, in the words of `[limits]` of a `tenon.toml`.
    pub fn limits_table(mut self, limits: toml::Table) -> Self {
        self.limits_table = limits;
        self
    }

    /// Serves all calls of a component with one instance (`instance = "shared"`).
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Puts another component beside the plugin, which may use its tools and models where that is
    /// granted. Its id is the name of its file, in which it differs from the plugin's, `tested`.
    pub fn beside(mut self, component: impl Into<PathBuf>) -> Self {
        self.beside.push(component.into());
        self
    }

    /// Grants questions to the user (`user = ["ask"]`), and answers their forms.
    pub fn user(self, answer: impl Fn(&FormRequest) -> FormAnswer + Send + Sync + 'static) -> Self {
        self.grant("user", ["ask"]).answer_forms(answer)
    }

    /// Answers forms of a plugin that may ask its user.
    pub fn answer_forms(
        mut self,
        answer: impl Fn(&FormRequest) -> FormAnswer + Send + Sync + 'static,
    ) -> Self {
        self.client.forms = Some(Box::new(answer));
        self
    }

    /// Grants questions to the user to open a page (`user = ["ask-url"]`), and answers them.
    pub fn pages(self, answer: impl Fn(&UrlRequest) -> UrlAnswer + Send + Sync + 'static) -> Self {
        let mut granted = self.grant("user", ["ask-url"]);
        granted.client.pages = Some(Box::new(answer));
        granted
    }

    /// Grants the default model (`providers = ["default"]`), and answers the requests to it. [`Completion::text`]
    /// makes an answer.
    pub fn default_model(
        self,
        answer: impl Fn(&CompletionRequest) -> Result<Completion, Error> + Send + Sync + 'static,
    ) -> Self {
        self.grant("providers", ["default"]).answer_model(answer)
    }

    /// Answers requests to the default model, of a plugin that may use it.
    pub fn answer_model(
        mut self,
        answer: impl Fn(&CompletionRequest) -> Result<Completion, Error> + Send + Sync + 'static,
    ) -> Self {
        self.client.model = Some(Box::new(answer));
        self
    }

    /// Has the plugin keep its state here, where it finds what was kept before. The default is new and empty. Which
    /// scopes it may use, [`grant`](Self::grant) says: `grant("state", ["user"])`.
    pub fn state(mut self, state: &State) -> Self {
        self.state = Some(state.clone());
        self
    }

    /// Has a script's `now()` and `timestamp()` show this clock. Components read the system's.
    pub fn clock(mut self, clock: &ManualClock) -> Self {
        self.clock = Some(clock.clone());
        self
    }

    /// Changes the host itself: its messaging, its memory, its network.
    pub fn host(mut self, adjust: impl FnOnce(Builder) -> Builder + Send + 'static) -> Self {
        self.adjust = Box::new(adjust);
        self
    }

    /// Starts a host with the plugin.
    ///
    /// # Errors
    ///
    /// Where it does not load or register, in the host's words.
    pub async fn start(self) -> Result<RunningPlugin, StartError> {
        let folder = TempDir::new().map_err(|problem| {
            let path = std::env::temp_dir();
            StartError::File { path, problem }
        })?;
        let text = self.write(folder.path())?;
        let config = Config::parse(&text, folder.path().join("tenon.toml"))
            .map_err(|error| StartError::Configuration(error.to_string()))?;
        let host_environment = self.host_environment(folder.path());
        if let Some(home) = &host_environment.home {
            self.write_files(home)?;
        }
        let traces_lines = has_lines(&folder.path().join("own").join(ID).join(COMPONENT));
        let state = self.state.unwrap_or_default();
        let asked = self.client.asked.clone();
        let cassette = match self.cassette {
            None => None,
            Some((how, file)) => {
                let mask = mask(self.secrets.values());
                if matches!(self.program, PluginSource::Server { .. }) {
                    return Err(CassetteError::Server.into());
                }
                Some(match how {
                    CassetteUse::Record => Cassette::record(file, mask),
                    CassetteUse::Replay => Cassette::replay(file, mask)?,
                })
            }
        };
        let builder = Platform::builder()
            .allocation(Allocation::OnDemand)
            .backtraces(traces_lines)
            .host_environment(host_environment)
            .config(config)
            .approver(GrantAll)
            .start_servers()
            .secrets(Secrets(self.secrets))
            .workspace(state.project())
            .store(state.store()?)
            .client_features(self.client);
        let builder = match self.clock {
            Some(clock) => builder.clock(clock),
            None => builder,
        };
        let builder = match self.network.clone() {
            Some(network) => builder.resolver(network.clone()).connector(network),
            None => builder,
        };
        let builder = match cassette.clone() {
            Some(cassette) => builder.host_call_interceptor(cassette),
            None => builder,
        };
        let builder = match self.limits {
            Some(limits) => builder.limits_at_most(limits),
            None => builder,
        };
        let platform = (self.adjust)(builder).build().await?;
        for report in platform.plugins().iter() {
            if report.state != PluginState::Ready {
                let reasons = report.detail.iter().chain(&report.remedy).cloned();
                return Err(StartError::NotThere {
                    plugin: report.plugin.clone(),
                    state: report.state,
                    reason: reasons.collect::<Vec<_>>().join("; "),
                });
            }
        }
        if !platform.plugins().iter().any(|report| report.plugin == ID) {
            let said = platform.diagnostics().iter().map(ToString::to_string).collect::<Vec<_>>();
            return Err(StartError::Configuration(said.join("; ")));
        }
        if let Some(cassette) = &cassette {
            cassette.begin()?;
        }
        let network = self.network.unwrap_or_default();
        Ok(RunningPlugin::new(platform, asked, state, network, cassette, folder))
    }

    /// Writes the files of the test into its home folder.
    fn write_files(&self, home: &Path) -> Result<(), StartError> {
        for (path, content) in &self.files {
            let path = home.join(path);
            let unusable = |problem| StartError::File { path: path.clone(), problem };
            fs::create_dir_all(path.parent().unwrap_or(home)).map_err(unusable)?;
            fs::write(&path, content).map_err(unusable)?;
        }
        Ok(())
    }

    /// Writes the plugin into a folder, with a manifest that requests what is granted. Gives the
    /// configuration of a host that finds it there.
    fn write(&self, folder: &Path) -> Result<String, StartError> {
        let wrong = |error: toml::ser::Error| StartError::Configuration(error.to_string());
        let mut plugins = toml::Table::new();
        let beside = self.beside.iter().map(|path| path.display().to_string().into());
        plugins.insert("wasm".into(), toml::Value::Array(beside.collect()));
        let mut manifest = toml::Table::new();
        let (kind, path) = match &self.program {
            PluginSource::Server { command, arguments } => {
                let server = toml::Table::from_iter([
                    ("name".to_string(), ID.into()),
                    ("command".to_string(), command.clone().into()),
                    ("args".to_string(), arguments.clone().into()),
                ]);
                plugins.insert("mcp".into(), vec![toml::Value::Table(server)].into());
                ("mcp", None)
            }
            PluginSource::Folder(folder) => {
                manifest = read_manifest(folder)?;
                let (kind, path) = runtime_of(&manifest);
                (kind, Some(folder.join(path)))
            }
            PluginSource::Component(path) => ("wasm", Some(path.clone())),
            PluginSource::Script(path) => ("rhai", Some(path.clone())),
        };
        if let Some(path) = path {
            let own = folder.join("own").join(ID);
            let unusable = |problem| StartError::File { path: path.clone(), problem };
            fs::create_dir_all(&own).map_err(unusable)?;
            let name = if kind == "wasm" { COMPONENT } else { "plugin.rhai" };
            fs::copy(&path, own.join(name)).map_err(unusable)?;
            let runtime = table_of(&mut manifest, "runtime");
            runtime.insert("kind".into(), kind.into());
            runtime.insert("path".into(), name.into());
            if self.shared {
                runtime.insert("instance".into(), "shared".into());
            }
            table_of(&mut manifest, "plugin").insert("id".into(), ID.into());
            manifest.remove("capabilities");
            if !self.grants.is_empty() {
                let grants = toml::Value::try_from(&self.grants).map_err(wrong)?;
                manifest.insert("capabilities".into(), grants);
            }
            fs::write(own.join("plugin.toml"), manifest.to_string()).map_err(unusable)?;
            plugins.insert("folders".into(), vec![toml::Value::from("own")].into());
        }
        let config = toml::Value::try_from(&self.config).map_err(wrong)?;
        let settings = toml::Table::from_iter([(ID.to_string(), config)]);
        let tenon = toml::Table::from_iter([
            ("plugins".to_string(), toml::Value::Table(plugins)),
            ("settings".to_string(), settings.into()),
            ("limits".to_string(), self.limits_table.clone().into()),
        ]);
        Ok(tenon.to_string())
    }

    /// Surroundings without anything of the user's. What was compiled is kept beside the component,
    /// where `cargo clean` finds it, and goes with the folder of the test where there is none.
    fn host_environment(&self, folder: &Path) -> HostEnvironment {
        let kept = match &self.program {
            PluginSource::Component(path) => path.parent().unwrap_or(folder).join("tenon-harness"),
            _ => folder.join("kept"),
        };
        let (cache, state) = self.compiled.clone().unwrap_or_else(|| {
            let folder = |name: &str| kept.join(name);
            (folder("cache"), Some(folder("state")))
        });
        HostEnvironment {
            environment: self.environment.clone(),
            home: Some(folder.join("home")),
            data: Some(folder.join("data")),
            cache: Some(cache),
            // Nothing but the key is kept there: the plugin's own state is elsewhere.
            state,
            ..HostEnvironment::default()
        }
    }
}

/// Reads the manifest of a plugin.
fn read_manifest(folder: &Path) -> Result<toml::Table, StartError> {
    let path = folder.join("plugin.toml");
    let text = fs::read_to_string(&path);
    let text = text.map_err(|problem| StartError::File { path: path.clone(), problem })?;
    text.parse().map_err(|error| StartError::Configuration(format!("{}: {error}", path.display())))
}

/// The kind of a manifest's plugin, and the path of its code.
fn runtime_of(manifest: &toml::Table) -> (&'static str, PathBuf) {
    let text = |key: &str| manifest.get("runtime")?.get(key)?.as_str();
    let kind = if text("kind") == Some("rhai") { "rhai" } else { "wasm" };
    (kind, text("path").unwrap_or_default().into())
}

/// A table of a manifest, which is made where there is none.
fn table_of<'a>(manifest: &'a mut toml::Table, name: &str) -> &'a mut toml::Table {
    if !manifest.get(name).is_some_and(toml::Value::is_table) {
        manifest.insert(name.into(), toml::Table::new().into());
    }
    manifest[name].as_table_mut().expect("it was made a table")
}

/// Masks secrets, also as URLs and forms write them and in Base64.
fn mask<'a>(values: impl Iterator<Item = &'a String>) -> Redactor {
    let mut secrets = SecretValues::default();
    for value in values {
        secrets.add_value(value);
        let mut query = Url::parse("http://localhost/").expect("it is a URL");
        query.set_path(value);
        secrets.add_value(query.path().trim_start_matches('/'));
        let form: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
        secrets.add_value(&form.replace('+', "%20"));
        secrets.add_value(&form);
        secrets.add_value(&STANDARD.encode(value));
    }
    Redactor::new(&secrets)
}

/// The secrets of a test.
struct Secrets(BTreeMap<String, String>);

#[async_trait]
impl SecretStore for Secrets {
    async fn secret(&self, _: &str, name: &str) -> Option<Secret> {
        self.0.get(name).cloned().map(Secret::new)
    }
}
