//! Who the server says it is, and what it says it has.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::{Era, Error, MODERN, REVISIONS};

/// Who the server says it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Server {
    /// The name and version that it gives itself, which nothing depends on.
    pub name: String,
    pub version: String,
    /// What it says about itself to a model.
    pub instructions: Option<String>,
    /// The revision of the protocol that was agreed on.
    pub revision: String,
    pub era: Era,
    pub capabilities: ServerCapabilities,
}

/// What a server declares that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCapabilities {
    pub tools: bool,
    /// It tells when its tools are other ones.
    pub tools_changes: bool,
    pub resources: bool,
    /// It tells when it has other resources.
    pub resources_changes: bool,
    /// It tells when a resource that was subscribed to is another one.
    pub subscriptions: bool,
    pub prompts: bool,
    /// It tells when it has other prompts.
    pub prompts_changes: bool,
    pub completions: bool,
    pub logging: bool,
    /// Its tools can be called as tasks.
    pub tasks: bool,
}

impl ServerCapabilities {
    fn read(declared: &BTreeMap<String, Value>) -> Self {
        // An empty object comes as an empty list from some languages.
        let has = |name: &str| {
            declared.get(name).is_some_and(|of| !matches!(of, Value::Null | Value::Bool(false)))
        };
        let member = |name: &str, path: &str| declared.get(name).and_then(|of| of.pointer(path));
        let says = |name: &str, path: &str| member(name, path) == Some(&Value::Bool(true));
        Self {
            tools: has("tools"),
            tools_changes: says("tools", "/listChanged"),
            resources: has("resources"),
            resources_changes: says("resources", "/listChanged"),
            subscriptions: says("resources", "/subscribe"),
            prompts: has("prompts"),
            prompts_changes: says("prompts", "/listChanged"),
            completions: has("completions"),
            logging: has("logging"),
            tasks: member("tasks", "/requests/tools/call").is_some_and(Value::is_object),
        }
    }
}

/// How a server introduces itself.
#[derive(Deserialize, Default)]
struct Implementation {
    #[serde(default, deserialize_with = "or_nothing")]
    name: String,
    #[serde(default, deserialize_with = "or_nothing")]
    version: String,
}

/// Reads what says something about a server. Of another type than it should have, it says nothing:
/// no connection fails for that.
fn or_nothing<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let said = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(said).unwrap_or_default())
}

impl Server {
    /// Reads the answer to `initialize`.
    pub(crate) fn initialized(result: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeResult {
            protocol_version: String,
            #[serde(default, deserialize_with = "or_nothing")]
            capabilities: BTreeMap<String, Value>,
            #[serde(default, deserialize_with = "or_nothing")]
            server_info: Implementation,
            #[serde(default, deserialize_with = "or_nothing")]
            instructions: Option<String>,
        }
        let answer: InitializeResult = serde_json::from_str(result).map_err(|error| {
            Error::Protocol(format!("the server's answer to initialize is invalid: {error}"))
        })?;
        if !REVISIONS.contains(&answer.protocol_version.as_str()) {
            return Err(unknown_revision(&[answer.protocol_version]));
        }
        let info = answer.server_info;
        Ok(Self {
            name: info.name,
            version: info.version,
            instructions: answer.instructions,
            revision: answer.protocol_version,
            era: Era::Legacy,
            capabilities: ServerCapabilities::read(&answer.capabilities),
        })
    }

    /// Reads the answer to `server/discover`.
    pub(crate) fn discovered(result: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct DiscoverResult {
            supported_versions: Vec<String>,
            #[serde(default, deserialize_with = "or_nothing")]
            capabilities: BTreeMap<String, Value>,
            #[serde(default, deserialize_with = "or_nothing")]
            instructions: Option<String>,
            #[serde(default, deserialize_with = "or_nothing", rename = "_meta")]
            meta: BTreeMap<String, Value>,
        }
        let mut answer: DiscoverResult = serde_json::from_str(result).map_err(|error| {
            Error::Protocol(format!("the server's answer to server/discover is invalid: {error}"))
        })?;
        if !answer.supported_versions.iter().any(|version| version == MODERN) {
            return Err(unknown_revision(&answer.supported_versions));
        }
        let info = answer.meta.remove("io.modelcontextprotocol/serverInfo");
        let info: Implementation =
            info.and_then(|info| serde_json::from_value(info).ok()).unwrap_or_default();
        Ok(Self {
            name: info.name,
            version: info.version,
            instructions: answer.instructions,
            revision: MODERN.into(),
            era: Era::Modern,
            capabilities: ServerCapabilities {
                // As tasks it offers them only to clients that declare the extension.
                tasks: false,
                ..ServerCapabilities::read(&answer.capabilities)
            },
        })
    }
}

pub(crate) fn unknown_revision(theirs: &[String]) -> Error {
    Error::Protocol(format!(
        "the server speaks the revision {} of the protocol, and this client speaks {MODERN}, {}",
        theirs.join(", "),
        REVISIONS.join(", ")
    ))
}
