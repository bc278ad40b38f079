//! What a client is told before it begins.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::MODERN;
use crate::raw_json::Members;

/// The member of `_meta` in which requests of the newer era declare what their client can do.
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The extension by which a server answers a call with a task.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// What is the same for all of a client's requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The name and version that the client gives itself.
    pub name: String,
    pub version: String,
    /// How long each request may take that has no limit of its own, in milliseconds.
    pub timeout: u64,
    pub protocol: HandshakeMode,
    /// The era in which this server was last spoken to, which is tried first.
    pub era: Option<Era>,
    /// What a server may ask for.
    pub features: Features,
    /// The folders that a server is told to work in; none, and it is told that there is no such
    /// list.
    pub roots: Vec<Root>,
    /// From which level on a server is asked to log, in the protocol's words.
    pub log_level: Option<String>,
    /// How long a server may be silent before it is asked whether it lives, in milliseconds.
    pub ping: Option<u64>,
}

/// How a connection is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandshakeMode {
    /// As with a server of the older era; if that fails, as with one of the newer. The
    /// specification recommends the other order. But there are published servers of the older era
    /// that end or fall silent when they are asked what they do not know. (Over HTTP they do not, and
    /// whoever makes the settings chooses the other order.)
    #[default]
    Auto,
    /// The other way round.
    Probe,
    /// As with a server of the older era, and not otherwise.
    Legacy,
    /// As with a server of the newer era, and not otherwise.
    Modern,
}

/// The two ways in which the protocol works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    #[default]
    Legacy,
    Modern,
}

/// What a server may ask of its client. Only what is here is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// To have the user fill in a form.
    pub forms: bool,
    /// To have the user open a page.
    pub pages: bool,
    /// To have a model answer.
    pub sampling: bool,
    /// To name the client's roots, where [`Settings::roots`] has none. Only servers of the newer era can ask for them, in
    /// a request of whose client they are.
    pub roots: bool,
}

/// A folder that a server is told to work in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    pub name: Option<String>,
}

impl Settings {
    /// What is declared to the server.
    pub(crate) fn capabilities(&self) -> Value {
        Self::declared(self.features, !self.roots.is_empty())
    }

    fn declared(features: Features, roots: bool) -> Value {
        let mut capabilities = json!({});
        let Features { forms, pages, sampling, .. } = features;
        if forms || pages {
            let mut modes = json!({});
            for (mode, has) in [("form", forms), ("url", pages)] {
                if has {
                    modes[mode] = json!({});
                }
            }
            capabilities["elicitation"] = modes;
        }
        if sampling {
            capabilities["sampling"] = json!({});
        }
        if roots {
            capabilities["roots"] = json!({});
        }
        capabilities
    }

    /// Who the client is.
    pub(crate) fn info(&self) -> Value {
        json!({ "name": self.name, "version": self.version })
    }

    /// What is declared in a request of the newer era, in its `_meta`, where the server may ask for these.
    pub(crate) fn modern_capabilities(&self, features: Features) -> Value {
        let mut capabilities = Self::declared(features, features.roots || !self.roots.is_empty());
        capabilities["extensions"] = json!({ TASKS: {} });
        capabilities
    }

    /// What every request of the newer era carries in its `_meta` besides what it declares.
    pub(crate) fn modern_meta(&self) -> Members {
        let meta = Members::new()
            .with("io.modelcontextprotocol/protocolVersion", MODERN)
            .with("io.modelcontextprotocol/clientInfo", self.info());
        match &self.log_level {
            Some(level) => meta.with("io.modelcontextprotocol/logLevel", &**level),
            None => meta,
        }
    }

    /// The answer to `roots/list`.
    pub(crate) fn roots(&self) -> Value {
        let roots = self.roots.iter().map(|root| match &root.name {
            Some(name) => json!({ "uri": root.uri, "name": name }),
            None => json!({ "uri": root.uri }),
        });
        json!({ "roots": roots.collect::<Vec<_>>() })
    }
}
