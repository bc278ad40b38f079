//! What a host can offer to plugins, as traits with safe defaults: a plugin that asks a host which
//! offers nothing is told so.
//!
//! Plugins reach a service only if their manifest requests it and the host's [`Approver`] grants it.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};

pub use crate::approvals::{ApprovalError, ApprovalFile, Former};
pub use crate::bindings::services::{Memory, OutgoingMessage};
pub use crate::pins::{
    Definition, DefinitionChange, HeldDefinition, ObservedDefinitions, PinCheck, PinError, PinFile,
    PinKind, PinMode, UnstablePart,
};
pub use crate::secret::Secret;

use crate::bindings::types::Error;
use crate::capability::GrantSet;
use crate::capability::network::NetworkBackend;
use crate::discover::{Origin, PluginKind};
use crate::host_environment::HostEnvironment;
use crate::text::cut;

/// Sends plugins' messages to people, for the capability `services`.
#[async_trait]
pub trait Messaging: Send + Sync + 'static {
    /// Sends a message. The default refuses.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the channel does not exist, [`Error::Denied`] if plugins may not use it.
    async fn send(&self, plugin: &str, message: OutgoingMessage) -> Result<(), Error> {
        let _ = (plugin, message);
        Err(Error::Denied("this host sends no messages".into()))
    }
}

/// Searches the host's memory, for the capability `services`.
#[async_trait]
pub trait MemorySearch: Send + Sync + 'static {
    /// Returns at most `limit` memories, best match first. The default returns an error, so that a plugin
    /// does not take it for a search without results.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`] if the host has no memory; any other error if the search fails.
    async fn search(&self, plugin: &str, query: &str, limit: u32) -> Result<Vec<Memory>, Error> {
        let _ = (plugin, query, limit);
        Err(Error::Denied("this host remembers nothing".into()))
    }
}

/// Answers requests of MCP servers to their client: input from the user, or a model's completion. Servers can
/// request only the features that it declares.
#[async_trait]
pub trait ClientFeatures: Send + Sync + 'static {
    /// Returns the features that servers may use. The default is none.
    fn offers(&self) -> Offers {
        Offers::default()
    }

    /// Asks the user for input, naming the server that asks. Parameters and result are those of MCP's
    /// `elicitation/create`. An implementation must not answer for the user or open a page without consent.
    /// The default refuses.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`] if there is no user to ask.
    async fn elicit(&self, request: ServerRequest) -> Result<Value, Error> {
        let _ = request;
        Err(Error::Denied("this host has no user to ask".into()))
    }

    /// Completes a prompt with a model. Parameters and result are those of MCP's `sampling/createMessage`;
    /// `maxTokens` bounds the answer. The default refuses.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`] if the user refuses.
    async fn sample(&self, request: ServerRequest) -> Result<Value, Error> {
        let _ = request;
        Err(Error::Denied("this host asks no model for servers".into()))
    }
}

/// The features that a [`ClientFeatures`] declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    /// The user can fill in forms.
    pub forms: bool,
    /// The user can open web pages, whose whole address is shown first.
    pub pages: bool,
    /// A model can answer.
    pub sampling: bool,
}

/// A request of an MCP server to its client.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerRequest {
    /// The id of the plugin whose server asks.
    pub server: String,
    /// The call that the server is working on, if known.
    pub call_id: Option<String>,
    /// The parameters, as in MCP. The server controls them.
    pub params: Value,
}

/// Stores secrets for plugins.
#[async_trait]
pub trait SecretStore: Send + Sync + 'static {
    /// Returns the value of a secret, or `None` if it is not set. Called before a plugin is loaded, for each
    /// granted name. The default returns `None`.
    async fn secret(&self, plugin: &str, name: &str) -> Option<Secret> {
        let _ = (plugin, name);
        None
    }
}

/// Resolves host names for plugins' requests.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// Returns the addresses of a host, best first. Called once for each request to a name. Each address is
    /// checked before anything connects to it.
    ///
    /// # Errors
    ///
    /// If the host cannot be resolved.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// Opens connections for plugins' requests. TLS runs on top of them.
#[async_trait]
pub trait Connector: Send + Sync + 'static {
    /// Connects to an address that the plugin may reach.
    ///
    /// # Errors
    ///
    /// If the connection fails.
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>>;
}

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The system's resolver, and TCP.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNetwork;

#[async_trait]
impl Resolver for SystemNetwork {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(lookup_host((host, port)).await?.collect())
    }
}

#[async_trait]
impl Connector for SystemNetwork {
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

/// Decides what plugins get of what they request.
#[async_trait]
pub trait Approver: Send + Sync + 'static {
    /// Returns what is granted, which may be less than requested. Values that were not requested are not
    /// granted. Called each time before the plugin is loaded. The default is [`Approval::Undecided`].
    async fn approve(&self, request: &ApprovalRequest) -> Approval {
        let _ = request;
        Approval::Undecided
    }
}

/// Stores the definitions of MCP servers' tools, prompts, resource templates and instructions when they are
/// first seen.
#[async_trait]
pub trait Pins: Send + Sync + 'static {
    /// Returns the definitions that have changed, which are then held, and stores new ones. Called whenever a
    /// server registers or lists something, and on each reload. The default stores nothing and holds nothing.
    ///
    /// # Errors
    ///
    /// If the earlier definitions cannot be read: then all of them are held.
    async fn check(&self, seen: &[ObservedDefinitions]) -> Result<PinCheck, PinError> {
        let _ = seen;
        Ok(PinCheck::default())
    }
}

/// What a plugin requests, for an [`Approver`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The plugin's id.
    pub plugin: String,
    /// The plugin's kind.
    pub kind: PluginKind,
    /// Where it was found.
    pub origin: Origin,
    /// The path of its code, or its server.
    pub source: String,
    /// The configuration file or manifest that names it.
    pub named_in: PathBuf,
    /// The requested values by capability, as in `[capabilities]` of its manifest. Paths are resolved: they
    /// contain no `~`, variables or links.
    pub capabilities: BTreeMap<String, Vec<String>>,
    /// Warnings about values that are dangerous to grant.
    pub warnings: Vec<GrantWarning>,
    /// How its server is started or reached, if a project's file says so. It must be approved before the
    /// server starts.
    pub command: Option<CommandLine>,
    /// The SHA-256 of its component or script, in hexadecimal. What is loaded has this one.
    pub component: Option<String>,
    /// The SHA-256 of its manifest, in hexadecimal.
    pub manifest: Option<String>,
}

/// A warning about a value that names files which decide what programs run, or which contain keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GrantWarning {
    /// The capability.
    pub capability: String,
    /// The value, as it would be approved.
    pub value: String,
    /// What the files are, and what access to them means.
    pub meaning: String,
}

impl GrantWarning {
    /// Returns the warnings for values as they would be approved. Globs never cover such files: only a value
    /// that names one has a warning. The `files` are those that decide what programs run
    /// ([`crate::discover::Discovery::deciding`]).
    pub fn of(
        capabilities: &BTreeMap<String, Vec<String>>,
        host_environment: &HostEnvironment,
        deciding: &BTreeSet<PathBuf>,
    ) -> Vec<Self> {
        GrantSet::approved(capabilities).warnings(host_environment, deciding)
    }
}

/// How an MCP server is started or reached, with secrets masked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CommandLine {
    /// The program, of a server that is a child process.
    pub program: Option<String>,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder that it runs in.
    pub folder: Option<PathBuf>,
    /// Its environment variables, as written: `${NAME}` stands for a variable of the host's environment,
    /// `${secret:NAME}` for a secret.
    pub variables: BTreeMap<String, String>,
    /// Variables of the host's environment that it inherits.
    pub passed: Vec<String>,
    /// Whether it inherits all other variables whose names are not those of secrets.
    pub all_inherited: bool,
    /// The URL, of a remote server.
    pub url: Option<String>,
    /// Headers of every request to it, written like variables.
    pub headers: BTreeMap<String, String>,
    /// The roots that it is given.
    pub roots: Vec<String>,
    /// Members that contain variables, as written, by name.
    pub written: Vec<String>,
    /// The SHA-256 of all this in hexadecimal, before and after expansion: variables and headers as written,
    /// variables from a file with their values.
    pub digest: String,
}

impl CommandLine {
    /// Returns all of it as pairs of a label and a text.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let one = |word: &'static str, text: &Option<String>| text.clone().map(|text| (word, text));
        let all = |word: &'static str, texts: &[String]| -> Vec<_> {
            texts.iter().map(|text| (word, text.clone())).collect()
        };
        let mut lines: Vec<_> = one("command", &self.program).into_iter().collect();
        lines.extend(all("argument", &self.arguments));
        lines.extend(self.folder.iter().map(|folder| ("folder", folder.display().to_string())));
        let variables = self.variables.iter();
        lines.extend(variables.map(|(name, value)| ("variable", format!("{name}={value}"))));
        lines.extend(all("passes on", &self.passed));
        let inherited = self.all_inherited.then(|| "all that is no secret by its name".to_string());
        lines.extend(one("passes on", &inherited));
        lines.extend(one("url", &self.url));
        let headers = self.headers.iter();
        lines.extend(headers.map(|(name, value)| ("header", format!("{name}: {value}"))));
        lines.extend(all("root", &self.roots));
        lines.extend(all("written", &self.written));
        lines
    }
}

impl fmt::Display for CommandLine {
    /// Returns a short summary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nobody must take a part for the whole.
        let short = |text: &str| match cut(text, 200) {
            short if short.len() < text.len() => format!("{short} …"),
            whole => whole.to_string(),
        };
        match (&self.program, &self.url) {
            (Some(program), _) => {
                let words = [program].into_iter().chain(&self.arguments);
                let words: Vec<&str> = words.map(String::as_str).collect();
                write!(f, "runs `{}`", short(&words.join(" ")))
            }
            (None, url) => write!(f, "turns to {}", short(url.as_deref().unwrap_or_default())),
        }
    }
}

impl ApprovalRequest {
    /// Returns which of these values it requests, as far as their texts tell. A plugin never gets more than
    /// it requests.
    pub fn within(&self, values: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, Vec<String>> {
        GrantSet::approved(&self.capabilities).within(values)
    }
}

/// An approver's decision about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// These values are granted, by capability.
    Granted(BTreeMap<String, Vec<String>>),
    /// There is no decision. The plugin is not loaded.
    Undecided,
    /// The plugin has changed since it was approved. It is not loaded.
    Stale(Vec<ApprovalChange>),
}

impl From<BTreeMap<String, Vec<String>>> for Approval {
    fn from(granted: BTreeMap<String, Vec<String>>) -> Self {
        Self::Granted(granted)
    }
}

/// How a plugin differs from what was approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalChange {
    /// Its component or script has changed.
    Component,
    /// Its manifest has changed.
    Manifest,
    /// It requests a new value.
    Added {
        /// The capability.
        capability: String,
        /// The value.
        value: String,
    },
    /// It no longer requests a value.
    Removed {
        /// The capability.
        capability: String,
        /// The value.
        value: String,
    },
    /// A line was added to how its server is started or reached.
    CommandAdded(String),
    /// A line was removed from how its server is started or reached.
    CommandRemoved(String),
    /// Something else has changed: an order, or a value that is not shown.
    Command,
}

impl fmt::Display for ApprovalChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Component => f.write_str("its code has changed"),
            Self::Manifest => f.write_str("its manifest has changed"),
            Self::Added { capability, value } => {
                write!(f, "it requests `{capability} = [{value:?}]` more")
            }
            Self::Removed { capability, value } => {
                write!(f, "it requests `{capability} = [{value:?}]` no more")
            }
            Self::CommandAdded(line) => write!(f, "its server has more: {line}"),
            Self::CommandRemoved(line) => write!(f, "its server has no more: {line}"),
            Self::Command => f.write_str(
                "how its server is started or reached has changed in an order, or in what is not \
                 shown: a secret, a value in a file of variables, the writing of its entry",
            ),
        }
    }
}

/// Grants every request, for hosts that trust all their plugins.
#[derive(Debug, Clone, Copy, Default)]
pub struct GrantAll;

#[async_trait]
impl Approver for GrantAll {
    async fn approve(&self, request: &ApprovalRequest) -> Approval {
        Approval::Granted(request.capabilities.clone())
    }
}

/// The services of a host that offers none.
struct Nothing;

impl Messaging for Nothing {}
impl MemorySearch for Nothing {}
impl ClientFeatures for Nothing {}
impl Approver for Nothing {}
impl Pins for Nothing {}

/// The services of a host.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) network: NetworkBackend,
    pub(crate) messaging: Arc<dyn Messaging>,
    pub(crate) memory: Arc<dyn MemorySearch>,
    pub(crate) features: Arc<dyn ClientFeatures>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) pins: Arc<dyn Pins>,
    /// If `None`, secrets come from the environment and from files.
    pub(crate) secrets: Option<Arc<dyn SecretStore>>,
}

impl Default for Services {
    fn default() -> Self {
        Self {
            network: NetworkBackend::default(),
            messaging: Arc::new(Nothing),
            memory: Arc::new(Nothing),
            features: Arc::new(Nothing),
            approver: Arc::new(Nothing),
            pins: Arc::new(Nothing),
            secrets: None,
        }
    }
}
