//! `plugin.toml`: what a plugin says of itself before anything of it runs.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::{LimitsTable, parse};
use crate::files::{self, CONFIGURATION};
use crate::runtime::wasm::Mode;

/// The name of the file.
pub(crate) const FILE_NAME: &str = "plugin.toml";

/// A manifest.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) plugin: About,
    pub(crate) runtime: Runtime,
    /// What it requests, by the names of capabilities.
    #[serde(default)]
    pub(crate) capabilities: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub(crate) limits: LimitsTable,
    /// Settings, where the operator says nothing else.
    #[serde(default)]
    pub(crate) settings: Map<String, Value>,
}

/// Who the plugin is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub(crate) id: String,
    pub(crate) version: Option<semver::Version>,
    pub(crate) description: Option<String>,
}

/// What runs it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Runtime {
    /// A component.
    Wasm {
        path: String,
        #[serde(default)]
        instance: Mode,
    },
    /// A script.
    Rhai { path: String },
    /// An MCP server behind the bridge.
    McpBridge { subprocess: Subprocess },
}

/// How to start an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subprocess {
    pub(crate) binary_path: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: Option<String>,
}

/// Why a manifest was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
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
        "`{0}` is no plugin id: ids are 1 to 64 of a-z, 0-9, `-` and `_`, and begin with a letter or digit"
    )]
    Id(String),
}

impl Manifest {
    pub(crate) fn read(folder: &Path) -> Result<(Self, PathBuf), ManifestError> {
        let path = folder.join(FILE_NAME);
        let text = files::read_text(&path, CONFIGURATION).map_err(ManifestError::Read)?;
        let manifest = Self::parse(&text)?;
        Ok((manifest, path))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, ManifestError> {
        let manifest: Self =
            parse(text).map_err(|(line, problem)| ManifestError::Invalid { line, problem })?;
        if !is_id(&manifest.plugin.id) {
            return Err(ManifestError::Id(manifest.plugin.id));
        }
        Ok(manifest)
    }
}

/// Whether a text can name a plugin.
pub(crate) fn is_id(text: &str) -> bool {
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
            Runtime::Wasm { path: "weather.wasm".into(), instance: Mode::Shared }
        );
        assert_eq!(manifest.capabilities["network"].len(), 1);
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
        check("[plugin]\nid = 3", "line 2: invalid type: integer `3`, expected a string");
        check(
            "[plugin]\nid = \"Bad Id\"\n[runtime]\nkind = \"rhai\"\npath = \"x\"",
            "`Bad Id` is no plugin id: ids are 1 to 64 of a-z, 0-9, `-` and `_`, and begin with a letter or digit",
        );
    }
}
