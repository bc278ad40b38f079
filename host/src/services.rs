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

/// Sends the messages of plugins.
#[async_trait]
pub trait Messaging: Send + Sync + 'static {
    /// Sends a message. The default sends none.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for a channel that does not exist, [`Error::Denied`] for one that is not
    /// for plugins.
    async fn send(&self, plugin: &str, message: OutgoingMessage) -> Result<(), Error> {
        let _ = (plugin, message);
        Err(Error::Denied("this host sends no messages".into()))
    }
}

/// Searches what the host remembers.
#[async_trait]
pub trait MemorySearch: Send + Sync + 'static {
    /// Finds at most `limit` memories, best match first. The default has none, and says so: a plugin must
    /// not take it for a search that found nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`] where there is no memory; or where it cannot be searched.
    async fn search(&self, plugin: &str, query: &str, limit: u32) -> Result<Vec<Memory>, Error> {
        let _ = (plugin, query, limit);
        Err(Error::Denied("this host remembers nothing".into()))
    }
}

/// Answers what MCP servers ask of their client: input of the user, an answer of a model. What it
/// says that it offers is declared to servers; of a host that offers nothing, they cannot ask
/// anything.
#[async_trait]
pub trait ClientFeatures: Send + Sync + 'static {
    /// What servers may ask for. The default is nothing.
    fn offers(&self) -> Offers {
        Offers::default()
    }

    /// Asks the user for input, and says who asks: `params` are those of MCP's
    /// `elicitation/create`, and so is the result. Nothing may be made up for the user, and no page
    /// opened unasked. The default asks nobody.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`] where there is nobody to ask.
    async fn elicit(&self, request: ServerRequest) -> Result<Value, Error> {
        let _ = request;
        Err(Error::Denied("this host has no user to ask".into()))
    }

    /// Has a model answer: `params` are those of MCP's `sampling/createMessage`, whose `maxTokens`
    /// bounds the answer, and so is the result. The default asks none.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`] where the user does not want it.
    async fn sample(&self, request: ServerRequest) -> Result<Value, Error> {
        let _ = request;
        Err(Error::Denied("this host asks no model for servers".into()))
    }
}

/// What [`ClientFeatures`] offer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    /// The user fills in forms.
    pub forms: bool,
    /// The user opens pages, whose whole address is shown.
    pub pages: bool,
    /// A model answers.
    pub sampling: bool,
}

/// Something that an MCP server asks for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerRequest {
    /// The plugin's id of the server that asks.
    pub server: String,
    /// The call that it serves, where that is known.
    pub call_id: Option<String>,
    /// What it asks, in the form of the protocol. It is the server's word and nobody else's.
    pub params: Value,
}

/// Keeps the secrets of plugins.
#[async_trait]
pub trait SecretStore: Send + Sync + 'static {
    /// The value of a secret; nothing where there is none. It is asked before the plugin is loaded,
    /// for the names that were granted. The default has none.
    async fn secret(&self, plugin: &str, name: &str) -> Option<Secret> {
        let _ = (plugin, name);
        None
    }
}

/// Finds where the hosts are that plugins send requests to.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// Gives the addresses of a host, best first. It is asked once for each request, and not for
    /// addresses. What it gives is checked, and only what passes is connected to.
    ///
    /// # Errors
    ///
    /// Where the host cannot be found.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// Makes the connections for the requests of plugins. TLS goes on top of them.
#[async_trait]
pub trait Connector: Send + Sync + 'static {
    /// Connects to an address, which a plugin may reach.
    ///
    /// # Errors
    ///
    /// Where there is no connection.
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>>;
}

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The system's own way to resolve and to connect.
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

/// Says what plugins get of what they request.
#[async_trait]
pub trait Approver: Send + Sync + 'static {
    /// Gives what is granted, which may be less than was requested; what was not requested is not
    /// granted either way. It is asked before the plugin is loaded, each time. The default decides
    /// nothing.
    async fn approve(&self, request: &ApprovalRequest) -> Approval {
        let _ = request;
        Approval::Undecided
    }
}

/// Remembers what MCP servers said of their tools, prompts and resource templates, and of themselves,
/// when they were first seen.
#[async_trait]
pub trait Pins: Send + Sync + 'static {
    /// Gives the definitions that are not what they were; these are held. What is seen for the first
    /// time is to be remembered. It is asked whenever a server registers or lists something, and on
    /// each reload. The default remembers nothing and holds nothing.
    ///
    /// # Errors
    ///
    /// Where it is not known what they were: then all of them are held.
    async fn check(&self, seen: &[ObservedDefinitions]) -> Result<PinCheck, PinError> {
        let _ = seen;
        Ok(PinCheck::default())
    }
}

/// What a plugin requests.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The plugin's id.
    pub plugin: String,
    /// Its kind.
    pub kind: PluginKind,
    /// The kind of place that it was found in.
    pub origin: Origin,
    /// Where its code is.
    pub source: String,
    /// The configuration file or manifest that names it.
    pub named_in: PathBuf,
    /// What it requests: values by the names of capabilities, as in `[capabilities]` of its
    /// manifest. Paths are resolved: `~`, variables and links are not in them any more.
    pub capabilities: BTreeMap<String, Vec<String>>,
    /// What some of these values mean, which nobody should grant without knowing it.
    pub warnings: Vec<GrantWarning>,
    /// How its server is started or reached, where a file that comes with a project says so. It is
    /// not before that is approved.
    pub command: Option<CommandLine>,
    /// The SHA-256 of its component or script, in hexadecimal. What is loaded has this one.
    pub component: Option<String>,
    /// The SHA-256 of its manifest, in hexadecimal.
    pub manifest: Option<String>,
}

/// What it means to grant a value that names files which decide what is started, or which hold keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GrantWarning {
    /// The capability.
    pub capability: String,
    /// The value, as it is approved.
    pub value: String,
    /// What the files are, and what follows.
    pub meaning: String,
}

impl GrantWarning {
    /// The warnings for values of capabilities, as they are approved. No glob covers what they are
    /// about: only a value that names it is dangerous, and has a warning. The files are those that
    /// decide what is started ([`crate::discover::Discovery::deciding`]).
    pub fn of(
        capabilities: &BTreeMap<String, Vec<String>>,
        host_environment: &HostEnvironment,
        deciding: &BTreeSet<PathBuf>,
    ) -> Vec<Self> {
        GrantSet::approved(capabilities).warnings(host_environment, deciding)
    }
}

/// How an MCP server is started or reached. Secrets are masked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CommandLine {
    /// The program of one that is a child.
    pub program: Option<String>,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder that it runs in.
    pub folder: Option<PathBuf>,
    /// The variables that it gets, with their values as they are written: `${NAME}` stands for a
    /// variable of the host's environment, `${secret:NAME}` for a secret.
    pub variables: BTreeMap<String, String>,
    /// Variables of the host's environment that it gets, too.
    pub passed: Vec<String>,
    /// Whether it gets all others that are no secrets by their names.
    pub all_inherited: bool,
    /// Where a server is that is no child.
    pub url: Option<String>,
    /// Headers of every request to it, written as variables are.
    pub headers: BTreeMap<String, String>,
    /// The folders that it is told to work in.
    pub roots: Vec<String>,
    /// What of all that has variables in it whose values stand there, as it is written, with the name of
    /// its member.
    pub written: Vec<String>,
    /// The SHA-256, in hexadecimal, of all that, before and after variables were put in: of
    /// variables and headers as they are written, of variables in a file with their values.
    pub digest: String,
}

impl CommandLine {
    /// All of it, a line each: a word for what it is, and what it is.
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
    /// What it does, in short.
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
    /// What of these values it requests, as far as their texts tell. Whatever is granted, a plugin
    /// gets what it requests and no more.
    pub fn within(&self, values: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, Vec<String>> {
        GrantSet::approved(&self.capabilities).within(values)
    }
}

/// What somebody said to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// So much is granted: values by the names of capabilities.
    Granted(BTreeMap<String, Vec<String>>),
    /// Nobody has decided. The plugin is not loaded.
    Undecided,
    /// What was approved was another: it has changed since. The plugin is not loaded.
    Stale(Vec<ApprovalChange>),
}

impl From<BTreeMap<String, Vec<String>>> for Approval {
    fn from(granted: BTreeMap<String, Vec<String>>) -> Self {
        Self::Granted(granted)
    }
}

/// In what a plugin differs from what was approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalChange {
    /// Its component or script has another content.
    Component,
    /// Its manifest has another text.
    Manifest,
    /// It requests something more.
    Added {
        /// The capability.
        capability: String,
        /// The value.
        value: String,
    },
    /// It does not request something any more.
    Removed {
        /// The capability.
        capability: String,
        /// The value.
        value: String,
    },
    /// What its server is started or reached with has this line more.
    CommandAdded(String),
    /// It has this one no more.
    CommandRemoved(String),
    /// It differs in something else: an order, or a value that is not shown.
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

/// Grants everything that is requested, for hosts that trust all their plugins.
#[derive(Debug, Clone, Copy, Default)]
pub struct GrantAll;

#[async_trait]
impl Approver for GrantAll {
    async fn approve(&self, request: &ApprovalRequest) -> Approval {
        Approval::Granted(request.capabilities.clone())
    }
}

/// A host that offers nothing.
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
    /// Without it secrets come from the environment and from files.
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
