//! The question whether a plugin gets what it requests: what it is asked with, and what the answer can be.
//!
//! Who answers is an [`Approver`]. The one that keeps answers in a file is in [`crate::approvals`].

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tenon_types::text::cut;

use crate::config::{PluginKind, PluginOrigin};
use crate::grant::GrantSet;
pub use crate::grant::GrantWarning;
use crate::policy::ConfinementMode;
use crate::skills::PluginSkills;

/// Decides what plugins get of what they request.
#[async_trait]
pub trait Approver: Send + Sync + 'static {
    /// Returns what is granted, which may be less than requested. Values that were not requested are not
    /// granted. Called each time before the plugin is loaded. The default is [`GrantDecision::Undecided`].
    async fn approve(&self, request: &ApprovalRequest) -> GrantDecision {
        let _ = request;
        GrantDecision::Undecided
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
    pub origin: PluginOrigin,
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
    pub command: Option<ServerParameters>,
    /// What its server is started with besides, where the user's own file says so: its arguments.
    pub arguments: Vec<String>,
    /// The SHA-256 of its component or script, in hexadecimal. What is loaded has this one.
    pub component: Option<String>,
    /// The SHA-256 of its manifest, in hexadecimal.
    pub manifest: Option<String>,
    /// The skills that it carries. What is read of them later has the content that it has now.
    pub skills: Option<Arc<PluginSkills>>,
    /// Whether its server is confined to what is granted, if it is a child process.
    pub confinement: Option<ConfinementMode>,
}

/// How an MCP server is started or reached, with secrets masked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerParameters {
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

impl ServerParameters {
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

impl fmt::Display for ServerParameters {
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
pub enum GrantDecision {
    /// These values are granted, by capability.
    Granted(BTreeMap<String, Vec<String>>),
    /// There is no decision. The plugin is not loaded.
    Undecided,
    /// The plugin has changed since it was approved. It is not loaded.
    Stale(Vec<ApprovalChange>),
}

impl From<BTreeMap<String, Vec<String>>> for GrantDecision {
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
    /// A file of its skills has changed, or it has other skills.
    Skills,
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
            Self::Skills => f.write_str("its skills have changed"),
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
    async fn approve(&self, request: &ApprovalRequest) -> GrantDecision {
        GrantDecision::Granted(request.capabilities.clone())
    }
}
