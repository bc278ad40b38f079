//! `plugin.toml`: what a plugin says of itself before anything of it runs.

#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzz;

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use tenon_types::text::cut;
use toml::Spanned;

use crate::config::{CallContextTable, InstanceMode};
use crate::entry::{self, McpEntry};
use crate::files::{self, Digest, MAX_CONFIGURATION_BYTES};
use crate::grant::GrantSet;
use crate::limits::LimitsTable;
use crate::path_context::PathContext;
use crate::toml_parse::{line_of, parse};
use crate::tool_hooks::{self, ServerHook};

/// The name of the file.
pub const FILE_NAME: &str = "plugin.toml";

/// A manifest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Who the plugin is.
    pub plugin: PluginMetadata,
    /// What runs it.
    pub runtime: PluginRuntime,
    /// What it requests, by the names of capabilities. Without it, a plugin gets none; a server that is a child is not
    /// confined.
    pub capabilities: Option<BTreeMap<Spanned<String>, Vec<Spanned<String>>>>,
    #[serde(default)]
    pub(crate) requires: HostRequirements,
    /// What it may register; all, where nothing is said.
    pub permissions: Option<RegistrationPermissions>,
    /// The hook points that tools of an MCP server handle.
    #[serde(default, deserialize_with = "tool_hooks::read")]
    pub hooks: Vec<ServerHook>,
    #[serde(default)]
    pub(crate) limits: LimitsTable,
    #[serde(default)]
    pub(crate) context: CallContextTable,
    /// Settings, where the operator says nothing else.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// What settings it takes, as a JSON Schema of their object. Without one it takes any.
    pub settings_schema: Option<Map<String, Value>>,
    /// The same as in `[plugin]`, for manifests that have it outside.
    plugin_api_version: Option<semver::VersionReq>,
}

/// What stands in a manifest's file.
pub struct ManifestText {
    pub(crate) path: PathBuf,
    text: String,
}

impl ManifestText {
    #[cfg(test)]
    pub(crate) fn of(path: PathBuf, text: &str) -> Self {
        Self { path, text: text.into() }
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.text)
    }
}

/// Who the plugin is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginMetadata {
    /// `name` means the same.
    #[serde(alias = "name")]
    pub id: String,
    /// Its version.
    pub version: Option<semver::Version>,
    /// What it is for, in a sentence or two.
    pub description: Option<String>,
    /// The versions of the contract that it is made for, as Cargo would write them: `0.2` is any
    /// 0.2.x.
    pub plugin_api_version: Option<semver::VersionReq>,
}

/// What must be there for it to work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostRequirements {
    /// Variables of the environment, all of them.
    pub env: Vec<String>,
    /// Variables of the environment, one of each group.
    pub env_any: Vec<Vec<String>>,
    /// Programs in `PATH`.
    pub bins: Vec<String>,
}

/// What a plugin may register: what is permitted here, and nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RegistrationPermissions {
    /// Whether it may register tools.
    pub register_tools: bool,
    /// Whether it may register hooks.
    pub register_hooks: bool,
    /// Whether it may register providers.
    pub register_providers: bool,
    /// Whether it may register evaluation strategies.
    pub register_evals: bool,
    /// Whether it may have resources.
    pub register_resources: bool,
    /// Whether it may have prompts.
    pub register_prompts: bool,
    /// Whether it may have an MCP server.
    pub register_mcp_server: bool,
    /// What the names of its tools begin with, in place of its id.
    pub tool_namespace: Option<String>,
}

impl RegistrationPermissions {
    /// What the names of a plugin's tools begin with: the namespace of its permissions, or its id.
    pub fn namespace<'a>(permissions: Option<&'a Self>, id: &'a str) -> &'a str {
        permissions.and_then(|permissions| permissions.tool_namespace.as_deref()).unwrap_or(id)
    }
}

/// What runs it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RuntimeTable")]
pub enum PluginRuntime {
    /// A component.
    Wasm {
        /// Its file, from the manifest's folder.
        path: String,
        /// On which instances it is called.
        instance: InstanceMode,
    },
    /// A script.
    Rhai {
        /// Its file, from the manifest's folder.
        path: String,
    },
    /// An MCP server behind the bridge.
    McpBridge {
        /// Without it, `.mcp.json` beside the manifest says.
        subprocess: Option<Box<McpEntry>>,
    },
}

/// `[runtime]` as it is written. An enum with its tag inside would lose the lines of errors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuntimeTable {
    kind: RuntimeKind,
    path: Option<String>,
    instance: Option<InstanceMode>,
    #[serde(default, deserialize_with = "entry::unnamed")]
    subprocess: Option<McpEntry>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RuntimeKind {
    Wasm,
    Rhai,
    McpBridge,
}

impl TryFrom<RuntimeTable> for PluginRuntime {
    type Error = &'static str;

    fn try_from(table: RuntimeTable) -> Result<Self, Self::Error> {
        let RuntimeTable { kind, path, instance, subprocess } = table;
        match kind {
            RuntimeKind::Wasm if subprocess.is_some() => Err("a component has no `subprocess`"),
            RuntimeKind::Wasm => Ok(Self::Wasm {
                path: path.ok_or(NO_PATH)?,
                instance: instance.unwrap_or_default(),
            }),
            RuntimeKind::Rhai if instance.is_some() => Err("a script has no `instance`"),
            RuntimeKind::Rhai if subprocess.is_some() => Err("a script has no `subprocess`"),
            RuntimeKind::Rhai => Ok(Self::Rhai { path: path.ok_or(NO_PATH)? }),
            RuntimeKind::McpBridge if instance.is_some() => Err("a bridge has no `instance`"),
            RuntimeKind::McpBridge if path.is_some() => {
                Err("a bridge has no `path`; its server is under [runtime.subprocess]")
            }
            RuntimeKind::McpBridge => Ok(Self::McpBridge { subprocess: subprocess.map(Box::new) }),
        }
    }
}

const NO_PATH: &str = "missing field `path`";

/// Why a manifest was not read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file cannot be read.
    #[error("it cannot be read")]
    Read(#[source] io::Error),
    /// The file does not say what it should.
    #[error("line {line}: {problem}")]
    Invalid {
        /// The line, counted from one.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// The id is not one.
    #[error(
        "invalid plugin id `{0}`: ids have 1 to 64 characters of a-z, 0-9, `-` and `_`, and begin with a letter or digit"
    )]
    Id(String),
}

impl Manifest {
    pub(crate) fn read(folder: &Path) -> Result<(Self, ManifestText), ManifestError> {
        let path = folder.join(FILE_NAME);
        let text = files::read_text(&path, MAX_CONFIGURATION_BYTES).map_err(ManifestError::Read)?;
        Ok((Self::parse(&text)?, ManifestText { path, text }))
    }

    /// The component or script that it is of.
    pub fn code(&self) -> Option<&str> {
        match &self.runtime {
            PluginRuntime::Wasm { path, .. } | PluginRuntime::Rhai { path } => Some(path),
            PluginRuntime::McpBridge { .. } => None,
        }
    }

    /// What it requests, with relative paths beginning in its folder.
    pub fn requests(
        &self,
        text: &ManifestText,
        context: &PathContext<'_>,
    ) -> Result<GrantSet, ManifestError> {
        let mut requests = GrantSet::default();
        for (capability, values) in self.capabilities.iter().flatten() {
            let name = capability.get_ref();
            let invalid = |at: usize, problem: String| ManifestError::Invalid {
                line: line_of(&text.text, at),
                problem,
            };
            note(&mut requests, name)
                .map_err(|problem| invalid(capability.span().start, problem))?;
            for value in values {
                request(&mut requests, name, value.get_ref(), context)
                    .map_err(|problem| invalid(value.span().start, problem))?;
            }
        }
        Ok(requests)
    }

    /// The settings where the operator says nothing: those of the manifest, and else the `default` that the schema has for a
    /// property.
    pub fn default_settings(&self) -> Map<String, Value> {
        let properties = self.settings_schema.as_ref().and_then(|schema| schema.get("properties"));
        let properties = properties.and_then(Value::as_object).into_iter().flatten();
        let default = |(name, schema): (&String, &Value)| {
            Some((name.clone(), schema.get("default")?.clone()))
        };
        let mut settings: Map<String, Value> = properties.filter_map(default).collect();
        settings.extend(self.settings.clone());
        settings
    }

    /// Parses the text of a `plugin.toml`. It touches no file: paths and variables stay as they are written.
    ///
    /// # Errors
    ///
    /// What is wrong in the text, with its line.
    ///
    /// ```
    /// use tenon_config::manifest::Manifest;
    ///
    /// let manifest = "[plugin]\nid = \"hello\"\n[runtime]\nkind = \"wasm\"\npath = \"hello.wasm\"";
    /// let manifest = Manifest::parse(manifest)?;
    /// assert_eq!((&*manifest.plugin.id, manifest.code()), ("hello", Some("hello.wasm")));
    /// # Ok::<_, tenon_config::manifest::ManifestError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let mut manifest: Self =
            parse(text).map_err(|(line, problem)| ManifestError::Invalid { line, problem })?;
        if let Some(version) = manifest.plugin_api_version.take()
            && *manifest.plugin.plugin_api_version.get_or_insert_with(|| version.clone()) != version
        {
            let problem = "`plugin_api_version` is set twice, with different values".into();
            return Err(ManifestError::Invalid { line: 1, problem });
        }
        if !is_id(&manifest.plugin.id) {
            return Err(ManifestError::Id(manifest.plugin.id));
        }
        if !manifest.hooks.is_empty() && manifest.code().is_some() {
            let problem =
                "only an MCP server has [hooks]; components and scripts register their own";
            return Err(ManifestError::Invalid { line: 1, problem: problem.into() });
        }
        Ok(manifest)
    }
}

/// What an entry of a configuration requests, with relative paths beginning in a folder.
///
/// # Errors
///
/// Says what is no request.
pub fn requests_of(
    capabilities: &BTreeMap<String, Vec<String>>,
    context: &PathContext<'_>,
) -> Result<GrantSet, String> {
    let mut requests = GrantSet::default();
    for (name, values) in capabilities {
        note(&mut requests, name)?;
        for value in values {
            request(&mut requests, name, value, context)?;
        }
    }
    Ok(requests)
}

fn note(requests: &mut GrantSet, name: &str) -> Result<(), String> {
    if !is_capability(name) {
        let name = cut(name, 100);
        return Err(format!(
            "invalid capability name {name:?}: names have at most 64 characters of a-z and `-`"
        ));
    }
    requests.note(name);
    Ok(())
}

fn request(
    requests: &mut GrantSet,
    capability: &str,
    value: &str,
    context: &PathContext<'_>,
) -> Result<(), String> {
    if requests.len() == MAX_REQUESTS {
        return Err(format!("it requests more than {MAX_REQUESTS} values"));
    }
    requests.add(capability, value, context).map_err(|error| error.to_string())
}

/// The id in a file that is no manifest, as far as it can be read: what is wrong with it is told of
/// the plugin.
pub fn id_in(file: &Path) -> Option<String> {
    let table: toml::Table = parse(&files::read_text(file, MAX_CONFIGURATION_BYTES).ok()?).ok()?;
    let plugin = table.get("plugin")?;
    let id = plugin.get("id").or(plugin.get("name"))?.as_str()?;
    is_id(id).then(|| id.to_string())
}

/// The most values that a manifest requests: somebody is to read them all.
const MAX_REQUESTS: usize = 1000;

/// Whether a text can name a capability, of this host or of another version.
fn is_capability(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c == '-';
    (1..=64).contains(&text.len()) && text.chars().all(allowed)
}

/// Whether a text can name a plugin.
pub fn is_id(text: &str) -> bool {
    let first = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    first && text.len() <= 64 && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read() {
        let manifest = Manifest::parse(
            r#"
            [plugin]
            id = "weather"
            version = "1.2.3"
            [runtime]
            kind = "wasm"
            path = "weather.wasm"
            instance = "shared"
            [capabilities]
            network = ["https://api.example.com/*"]
            "#,
        )
        .unwrap();
        assert_eq!(manifest.plugin.id, "weather");
        assert_eq!(
            manifest.runtime,
            PluginRuntime::Wasm { path: "weather.wasm".into(), instance: InstanceMode::Shared }
        );
        assert_eq!(manifest.capabilities.unwrap()["network"].len(), 1);
    }

    #[test]
    fn what_nobody_would_read_is_not_requested() {
        let check = |capabilities: &str, expected: Option<&str>| {
            let text = format!(
                "plugin.id = \"p\"\nruntime = {{ kind = \"rhai\", path = \"x\" }}\n[capabilities]\n{capabilities}"
            );
            let manifest = Manifest::parse(&text).unwrap();
            let text = ManifestText { path: "/p/plugin.toml".into(), text };
            let paths = PathContext::in_folder(Path::new("/p"));
            let error = manifest.requests(&text, &paths).err();
            assert_eq!(error.map(|error| error.to_string()).as_deref(), expected);
        };
        let values = |many: usize| vec!["\"x\""; many].join(",");
        let capabilities = |many: usize| -> String {
            let name = |i: usize| "abcdefghijklm".chars().nth(i).unwrap();
            (0..many).map(|i| format!("{} = [{}]\n", name(i), values(100))).collect()
        };
        check(&capabilities(10), None);
        check(&capabilities(11), Some("line 14: it requests more than 1000 values"));
        check(
            &format!("tools = [{}]", values(101)),
            Some("line 4: `tools = [\"x\"]`: there are 100 before it, which are the most"),
        );
        let long = "x".repeat(4097);
        let shown =
            format!("line 4: `tools = [\"{}\"]`: it is longer than 4096 bytes", "x".repeat(200));
        check(&format!("tools = [\"{long}\"]"), Some(&shown));
    }

    #[test]
    fn ids() {
        let check = |id: &str, expected: bool| assert_eq!(is_id(id), expected, "{id:?}");
        check("a", true);
        check("mcp-server_2", true);
        check("", false);
        check("-a", false);
        check("A", false);
        check("a/b", false);
        check("..", false);
        check(&"x".repeat(65), false);
    }

    #[test]
    fn errors_name_the_line() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Manifest::parse(text).unwrap_err().to_string(), expected);
        };
        check("[plugin]\nid = 3", "line 2: `plugin.id` must be a text, not the number 3");
        check(
            "[plugin]\nid = \"Bad Id\"\n[runtime]\nkind = \"rhai\"\npath = \"x\"",
            "invalid plugin id `Bad Id`: ids have 1 to 64 characters of a-z, 0-9, `-` and `_`, and begin with a letter or digit",
        );
    }
}
