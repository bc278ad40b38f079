//! Runs a built plugin in a test, as a host runs it: under limits, and with no more than it was granted.
//!
//! ```no_run
//! use serde_json::json;
//! use tenon_harness::Harness;
//!
//! #[tokio::test]
//! async fn somebody_is_greeted() -> Result<(), Box<dyn std::error::Error>> {
//!     let plugin = Harness::build()?              // this package, for wasm32-wasip2
//!         .config(json!({ "word": "Ciao" }))
//!         .grant("network", ["https://api.example.com/*"])
//!         .start()
//!         .await?;
//!     let result = plugin.call("greet", json!({ "name": "Ada" })).await?;
//!     assert_eq!(result.plain_text(), "Ciao, Ada!");
//!     Ok(())
//! }
//! # fn main() {}
//! ```
//!
//! The host is the installed command: `tenon` in `PATH`, or the program that the variable `TENON` names. So a test compiles
//! in seconds, and runs what users run. The host has one plugin and a made-up environment. No `tenon.toml` is read, and
//! nothing of the user's home folder or environment: what there is of them, the test says. What is granted is real: a
//! granted network is the network unless the test answers its requests ([`Harness::http`]), a granted file is the file.
//! The errors are the host's own.
//!
//! Where the plugin asks its user or the default model, the test answers. What the plugin keeps ends with the test, which
//! can look at it, set it beforehand, and keep it in a folder for another run ([`Harness::state_folder`]). Scripts are told
//! the time by the test's clock ([`Harness::clock`]).
//!
//! ```no_run
//! use serde_json::json;
//! use tenon_harness::{Harness, Scope, types::FormAnswer};
//!
//! #[tokio::test]
//! async fn the_user_is_asked_once() -> Result<(), Box<dyn std::error::Error>> {
//!     let plugin = Harness::build()?
//!         .grant("state", ["user"])
//!         .user(|_| FormAnswer::accept([("name", "Ada")]))
//!         .start()
//!         .await?;
//!     for visit in 1..=2 {
//!         let result = plugin.call("welcome", json!({})).await?;
//!         assert_eq!(result.plain_text(), format!("Hello, Ada! This is visit {visit}."));
//!     }
//!     let [form] = &plugin.forms()[..] else { panic!("it asks once") };
//!     assert_eq!(form.message, "Who are you?");
//!     assert_eq!(plugin.state(Scope::User, "name").await?, Some(json!("Ada")));
//!     Ok(())
//! }
//! # fn main() {}
//! ```
//!
//! What a service answers can be recorded once, and played to later tests ([`Harness::record`], [`Harness::replay`]).
//!
//! Tests of the plugin's functions alone are quicker, and need no build: see `tenon_sdk::testing`. The crate
//! `tenon-test-host` runs the host in the test's own process, for tests of embedders.

mod answers;
mod build;
mod connection;
pub mod protocol;
mod running_plugin;

use serde_json::{Map, Value};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenon_types::{FormAnswer, FormRequest, UrlAnswer, UrlRequest};

use answers::Answers;
pub use build::BuildFailed;
pub use protocol::{CallError, HookResult, HttpAnswer, HttpRequest, Scope};
use protocol::{CassetteSetup, CassetteUse, HomeFile, PluginSource, Setup, StateEntry};
pub use running_plugin::RunningPlugin;
/// What plugins are asked and answer.
pub use tenon_types as types;

/// The variable that names the command.
const COMMAND: &str = "TENON";

/// A plugin, and what the host of a test gives it.
pub struct Harness {
    setup: Setup,
    answers: Answers,
    command: Option<PathBuf>,
}

/// Why a plugin was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no command.
    #[error(
        "the command `{}` cannot be started: {source}; install Tenon, or name its command with the variable TENON",
        .command.display()
    )]
    NoCommand {
        /// What was started.
        command: PathBuf,
        /// Why it was not.
        source: io::Error,
    },
    /// The command does not speak as this crate does.
    #[error(
        "`{}` is not the command of this version of tenon-harness, {version}: {problem}",
        .command.display()
    )]
    OtherVersion {
        /// What was started.
        command: PathBuf,
        /// The version of this crate.
        version: &'static str,
        /// What it said.
        problem: String,
    },
    /// The host did not take the plugin, or what the test says of it is nothing that a host can be told.
    #[error("{0}")]
    Refused(String),
}

impl Harness {
    /// Builds the package whose tests run, for `wasm32-wasip2` and in release mode, with the `cargo` that runs them. It must
    /// be a `cdylib`.
    ///
    /// # Errors
    ///
    /// Where it does not build, with what the compiler said, or makes no component.
    pub fn build() -> Result<Self, BuildFailed> {
        Self::package(build::tested()?)
    }

    /// The same for the package in a folder, for tests that have a crate of their own.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn package(folder: impl AsRef<Path>) -> Result<Self, BuildFailed> {
        build::component(folder.as_ref()).map(Self::component)
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

    fn new(plugin: PluginSource) -> Self {
        Self { setup: Setup::new(plugin), answers: Answers::default(), command: None }
    }

    /// Names the command that is the host, in place of `tenon` or the variable `TENON`.
    pub fn command(mut self, path: impl Into<PathBuf>) -> Self {
        self.command = Some(path.into());
        self
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
        self.setup.config = config;
        self
    }

    /// Grants values of a capability, in the words of a `plugin.toml`: `grant("messaging", ["*"])`. A component that imports
    /// a capability of which nothing is granted does not start.
    pub fn grant<V: Into<String>>(
        mut self,
        capability: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let granted = self.setup.grants.entry(capability.into()).or_default();
        granted.extend(values.into_iter().map(Into::into));
        self
    }

    /// Grants a secret, and sets it.
    pub fn secret(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.setup.secrets.insert(name.clone(), value.into());
        self.grant("secrets", [name])
    }

    /// Answers the plugin's requests over HTTP; the network that it is granted is that of the test from then on, and nothing
    /// leaves the process. A request without an answer fails. [`RunningPlugin::http_requests`] has them all.
    pub fn http(mut self, answers: impl IntoIterator<Item = HttpAnswer>) -> Self {
        self.setup.http.get_or_insert_default().extend(answers);
        self
    }

    /// Records what the plugin asks of others in the cassette `cassettes/NAME.json` of the package that is tested, which is
    /// made anew: requests over HTTP, calls of the tools of other plugins, and questions to models. Secrets of the test are
    /// masked, and headers that sign somebody in are left out. The cassette is meant to be kept beside the test.
    pub fn record(self, name: &str) -> Self {
        self.cassette(CassetteUse::Record, name)
    }

    /// Plays the cassette `cassettes/NAME.json`: what the plugin asks of others is answered from there, in any order, and
    /// reaches nobody. Each answer is given once; a call that was not recorded is refused.
    /// [`RunningPlugin::unplayed_calls`] has those that were not made.
    pub fn replay(self, name: &str) -> Self {
        self.cassette(CassetteUse::Replay, name)
    }

    fn cassette(mut self, how: CassetteUse, name: &str) -> Self {
        let file = PathBuf::from("cassettes").join(format!("{name}.json"));
        self.setup.cassette = Some(CassetteSetup { how, file });
        self
    }

    /// Writes a file into the home folder of the test, which the plugin finds below `~/` if it is granted.
    pub fn file(mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        self.setup.files.push(HomeFile { path: path.into(), content: content.into() });
        self
    }

    /// Sets a variable of the host's environment. The plugin sees it if it is granted.
    pub fn environment(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.setup.environment.insert(name.into(), value.into());
        self
    }

    /// Sets a limit, in the words of a `plugin.toml`: `limit("wall", "100ms")`. None can be more than the default.
    pub fn limit(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.setup.limits.insert(name.into(), value.into());
        self
    }

    /// Serves all calls of a component with one instance (`instance = "shared"`).
    pub fn shared(mut self) -> Self {
        self.setup.shared = true;
        self
    }

    /// Puts another component beside the plugin, which may use its tools and models where that is granted. Its id is the
    /// name of its file, in which it differs from the plugin's, `tested`.
    pub fn beside(mut self, component: impl Into<PathBuf>) -> Self {
        self.setup.beside.push(component.into());
        self
    }

    /// Grants questions to the user (`user = ["ask"]`), and answers their forms.
    pub fn user(self, answer: impl Fn(&FormRequest) -> FormAnswer + Send + Sync + 'static) -> Self {
        let mut granted = self.grant("user", ["ask"]);
        granted.setup.answers.forms = true;
        granted.answers.forms = Some(Box::new(answer));
        granted
    }

    /// Grants questions to the user to open a page (`user = ["ask-url"]`), and answers them.
    pub fn pages(self, answer: impl Fn(&UrlRequest) -> UrlAnswer + Send + Sync + 'static) -> Self {
        let mut granted = self.grant("user", ["ask-url"]);
        granted.setup.answers.pages = true;
        granted.answers.pages = Some(Box::new(answer));
        granted
    }

    /// Grants the default model (`providers = ["default"]`), and answers the requests to it with texts. A request is an
    /// object as `tenon complete` has it, with `messages`. An `Err` is the model's refusal.
    pub fn default_model(
        self,
        answer: impl Fn(&Value) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        let mut granted = self.grant("providers", ["default"]);
        granted.setup.answers.model = true;
        granted.answers.model = Some(Box::new(answer));
        granted
    }

    /// Sets a value that the plugin finds in its state, as JSON. Which scopes it may use, [`grant`](Self::grant) says:
    /// `grant("state", ["user"])`.
    pub fn state(mut self, scope: Scope, key: impl Into<String>, value: Value) -> Self {
        self.setup.state.push(StateEntry { scope, key: key.into(), value });
        self
    }

    /// Has the plugin keep its state in this folder, where it finds what an earlier run kept. By default it ends with the
    /// plugin.
    pub fn state_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.setup.state_folder = Some(folder.into());
        self
    }

    /// Has a script's `now()` and `timestamp()` show a clock that stands at this time of RFC 3339 until
    /// [`RunningPlugin::advance_clock`] moves it on. Components read the system's.
    pub fn clock(mut self, time: impl Into<String>) -> Self {
        self.setup.clock = Some(time.into());
        self
    }

    /// Starts a host with the plugin.
    ///
    /// # Errors
    ///
    /// Where there is no command of this version, or the plugin does not load or register, in the host's words.
    pub async fn start(mut self) -> Result<RunningPlugin, StartError> {
        self.setup.resolve().map_err(|error| StartError::Refused(error.to_string()))?;
        let command = self.command.or_else(|| std::env::var_os(COMMAND).map(PathBuf::from));
        let command = command.unwrap_or_else(|| OsString::from("tenon").into());
        RunningPlugin::start(command, self.setup, self.answers).await
    }
}

/// Whole milliseconds of a duration.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// An object without members, for a request that says nothing.
fn nothing() -> Value {
    Value::Object(Map::new())
}
