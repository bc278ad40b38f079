//! An entry for an MCP server: one type, wherever the entry stands.
//!
//! Entries stand under `[plugins] mcp` of a configuration, under `[runtime.subprocess]` of a
//! manifest, and in the [files](json) that editors and agents share. Here they are read as they are
//! written; what they mean on this machine is for [`crate::discover`] to say.

pub mod dotenv;
#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzz;
pub mod json;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tenon_types::text::{cut, one_line};

use crate::pins::PinMode;
use crate::toml_parse::some_time;
use crate::tool_filter::ToolFilter;

/// What an editor's file has its user asked for, and is no password: one of its `inputs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InputQuestion {
    /// Its id, by which entries name it.
    pub id: String,
    /// What the file says of it. Whoever wrote the file has a say in it.
    pub description: Option<String>,
    /// What it is where nobody says anything else.
    pub default: Option<String>,
    /// What it can be; anything where there are none.
    pub options: Vec<String>,
}

impl InputQuestion {
    /// Whether a value answers it.
    pub fn takes(&self, value: &str) -> bool {
        self.options.is_empty() || self.options.iter().any(|option| option == value)
    }

    /// What it can be, in a line. Whoever wrote the file has a say in it.
    pub fn shown_options(&self) -> String {
        shown_options(&self.options)
    }
}

/// How many options are listed, and how much of one.
const MAX_OPTIONS_SHOWN: usize = 16;
const MAX_OPTION_LENGTH: usize = 100;

/// The options of an input in a line, of which a file can have any number.
pub(crate) fn shown_options(options: &[String]) -> String {
    let quoted = |option: &String| format!("\"{}\"", one_line(cut(option, MAX_OPTION_LENGTH)));
    let shown: Vec<String> = options.iter().take(MAX_OPTIONS_SHOWN).map(quoted).collect();
    match options.len().saturating_sub(MAX_OPTIONS_SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// What the inputs of a file can be of which not every value is one, by their ids.
pub type InputOptions = BTreeMap<String, Vec<String>>;

/// An MCP server: a child process, or one elsewhere.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpEntry {
    /// The plugin's id.
    pub name: String,
    /// The program: a path, or a name that is looked up in `PATH`.
    #[serde(alias = "binary_path")]
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets in addition to those that it inherits.
    pub env: BTreeMap<String, String>,
    /// The names of variables of the host's environment that it gets, too.
    pub env_vars: Vec<String>,
    /// A file with more variables, a line `NAME=value` each; those of `env` go before them.
    pub env_file: Option<String>,
    /// What it inherits of the host's environment.
    pub env_policy: EnvironmentPolicy,
    /// The folder that it runs in.
    pub cwd: Option<String>,
    /// How a server elsewhere is spoken to.
    #[serde(alias = "type")]
    pub transport: Option<Transport>,
    /// Where a server is that is no child.
    pub url: Option<String>,
    /// Headers of every request to it.
    pub headers: BTreeMap<String, String>,
    /// How long a call may take.
    #[serde(alias = "tool_timeout", deserialize_with = "some_time")]
    pub timeout: Option<Duration>,
    /// How long it may take to start and to say what it offers.
    #[serde(deserialize_with = "some_time")]
    pub startup_timeout: Option<Duration>,
    /// Whether it is wanted.
    pub enabled: Option<bool>,
    /// The same, said the other way round.
    pub disabled: Option<bool>,
    /// The only tools of it that there are, where any are named.
    pub enabled_tools: Vec<String>,
    /// Tools of it that there are not.
    pub disabled_tools: Vec<String>,
    /// What becomes of definitions that are not what they were when they were first seen.
    pub pins: Option<PinMode>,
    /// How a connection is begun.
    pub protocol: HandshakeMode,
    /// The folders that it is told to work in.
    pub roots: Vec<String>,
    /// From which level on it is asked to log.
    pub log_level: Option<McpLogLevel>,
    /// How long it may be silent before it is asked whether it lives.
    #[serde(deserialize_with = "some_time")]
    pub ping_interval: Option<Duration>,
    /// What a child may reach, by the names of capabilities; without it, whatever its user can.
    pub capabilities: Option<BTreeMap<String, Vec<String>>>,
    /// What the inputs of its file can be.
    #[serde(skip)]
    pub input_options: Arc<InputOptions>,
}

/// The names of the fields, as files have them.
const FIELDS: &[&str] = &[
    "name",
    "command",
    "binary_path",
    "args",
    "env",
    "env_vars",
    "env_file",
    "env_policy",
    "cwd",
    "transport",
    "type",
    "url",
    "headers",
    "timeout",
    "tool_timeout",
    "startup_timeout",
    "enabled",
    "disabled",
    "enabled_tools",
    "disabled_tools",
    "pins",
    "protocol",
    "roots",
    "log_level",
    "ping_interval",
    "capabilities",
];

/// What an entry says of what its plugin offers, and not of how that runs: it changes the registry and no
/// plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistrationSettings {
    /// Which of its tools are wanted.
    pub tools: ToolFilter,
    /// What becomes of definitions that are not what they were.
    pub pins: Option<PinMode>,
}

impl McpEntry {
    /// Whether it is wanted.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true) && !self.disabled.unwrap_or(false)
    }

    /// What it says of what its server offers.
    pub fn rules(&self) -> RegistrationSettings {
        let enabled = Some(self.enabled_tools.clone()).filter(|names| !names.is_empty());
        let tools = ToolFilter { enabled, disabled: self.disabled_tools.clone() };
        RegistrationSettings { tools, pins: self.pins }
    }
}

impl fmt::Debug for McpEntry {
    /// Shows nothing that could be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, command, .. } = self;
        f.debug_struct("McpEntry")
            .field("name", name)
            .field("command", command)
            .finish_non_exhaustive()
    }
}

/// Reads entries that have names.
pub fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<McpEntry>, D::Error> {
    struct NamedEntry(McpEntry);

    impl<'de> Deserialize<'de> for NamedEntry {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let entry = McpEntry::deserialize(deserializer)?;
            match entry.name.is_empty() {
                true => Err(D::Error::missing_field("name")),
                false => Ok(Self(entry)),
            }
        }
    }

    let entries = Vec::<NamedEntry>::deserialize(deserializer)?;
    Ok(entries.into_iter().map(|NamedEntry(entry)| entry).collect())
}

/// Reads the entry of a manifest, which has the manifest's name.
pub fn unnamed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<McpEntry>, D::Error> {
    let entry = McpEntry::deserialize(deserializer)?;
    if !entry.name.is_empty() {
        return Err(D::Error::custom("the server of a manifest has no `name` but the plugin's id"));
    }
    if entry.command.is_empty() && entry.url.is_none() {
        return Err(D::Error::missing_field("binary_path"));
    }
    Ok(Some(entry))
}

/// How an MCP server is spoken to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// By lines, as a child process.
    #[default]
    Stdio,
    /// By Streamable HTTP; and where a server does not know that, as [`Transport::Sse`].
    #[serde(alias = "streamable-http", alias = "streamableHttp")]
    Http,
    /// By the transport of 2024-11-05: HTTP with one stream of server-sent events.
    Sse,
}

/// How a connection is begun.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HandshakeMode {
    /// As with a server of the older era; if that fails, as with one of the newer. With a server
    /// elsewhere that is spoken to by Streamable HTTP, the other way round.
    #[default]
    Auto,
    /// The other way round, as the specification recommends.
    Probe,
    /// As with a server of the older era (2025-11-25 and before), and not otherwise.
    Legacy,
    /// As with a server of the newer era (2026-07-28), and not otherwise.
    Modern,
}

/// From which level on a server is asked to log, in the protocol's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum McpLogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// What a server inherits of the host's environment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvironmentPolicy {
    /// What every program needs to find its way, and nothing else.
    #[default]
    Clear,
    /// All but what goes under names of secrets.
    Filtered,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_all_that_are_known() {
        let error = toml::from_str::<McpEntry>("nothing = 1").unwrap_err();
        let mut known: Vec<&str> = error.message().split('`').skip(3).step_by(2).collect();
        let mut fields = FIELDS.to_vec();
        known.sort_unstable();
        fields.sort_unstable();
        assert_eq!(known, fields);
    }
}
