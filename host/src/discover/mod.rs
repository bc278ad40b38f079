//! Step one: from configuration and folders to candidates.
//!
//! It reads manifests and nothing else: no component, no script and no program is touched. A
//! candidate is a claim that there is a plugin; whether it may be one is for [`crate::admit`] to
//! say.

use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{Config, FileEntry, McpEntry};
use crate::diagnostic::{Diagnostic, chain};
use crate::expand::{self, ExpandError};
use crate::limits::Limits;
use crate::manifest::{self, Manifest, Runtime, Subprocess};
use crate::runtime::wasm::Mode;
use crate::surroundings::Surroundings;

/// The kinds of plugin. After registration nothing asks for it but reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginKind {
    /// A component.
    Wasm,
    /// An MCP server behind the bridge.
    Mcp,
    /// A script.
    Rhai,
    /// Part of the host.
    Builtin,
}

impl fmt::Display for PluginKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wasm => "wasm",
            Self::Mcp => "mcp",
            Self::Rhai => "rhai",
            Self::Builtin => "builtin",
        })
    }
}

/// What was found, and what went wrong meanwhile.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// The candidates, in the order in which they will be loaded.
    pub candidates: Vec<Candidate>,
    /// What was left out, and why.
    pub diagnostics: Vec<Diagnostic>,
}

/// A plugin that may be loaded, if it is admitted.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub(crate) id: String,
    /// The configuration file or manifest that names it.
    pub(crate) named_in: PathBuf,
    pub(crate) source: Source,
    /// Requested capabilities: the values of each, by its name.
    pub(crate) requests: BTreeMap<String, Vec<String>>,
    pub(crate) limits: Limits,
    pub(crate) settings: Map<String, Value>,
}

/// Where a candidate's code is.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Wasm { path: PathBuf, mode: Mode },
    Rhai { path: PathBuf },
    Mcp(Server),
}

/// How to start an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Variables on top of the base environment.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) startup_timeout: Option<Duration>,
}

impl Candidate {
    /// The plugin's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where its code is: a file, or the program of a server.
    pub fn source(&self) -> String {
        match &self.source {
            Source::Wasm { path, .. } | Source::Rhai { path } => path.display().to_string(),
            Source::Mcp(server) => server.program.display().to_string(),
        }
    }

    /// The plugin's kind.
    pub fn kind(&self) -> PluginKind {
        match self.source {
            Source::Wasm { .. } => PluginKind::Wasm,
            Source::Rhai { .. } => PluginKind::Rhai,
            Source::Mcp(_) => PluginKind::Mcp,
        }
    }
}

/// Finds what the configuration names. Files that come first win; the others are reported.
pub fn discover(configs: &[Config], surroundings: &Surroundings) -> Discovery {
    let mut discovery = Discovery::default();
    for config in configs {
        Search { config, surroundings, discovery: &mut discovery }.run();
    }
    let mut seen = BTreeMap::new();
    discovery.candidates.retain(|candidate| {
        if let Some(first) = seen.get(&candidate.id) {
            let problem = format!("it is shadowed by the one that {first} names");
            discovery.diagnostics.push(
                Diagnostic::of(&candidate.id, problem)
                    .file(candidate.named_in.display())
                    .remedy("give it another id, or remove one of the two"),
            );
            return false;
        }
        seen.insert(candidate.id.clone(), candidate.named_in.display().to_string());
        true
    });
    let ids: BTreeSet<_> = discovery.candidates.iter().map(|c| c.id.clone()).collect();
    for config in configs {
        for id in config.settings.keys().filter(|id| !ids.contains(*id)) {
            discovery.diagnostics.push(
                Diagnostic::in_file(
                    config.path.display(),
                    format!("[settings.{id}] is for no plugin"),
                )
                .remedy(format!("the plugins are: {}", join(&ids))),
            );
        }
    }
    discovery
}

fn join(ids: &BTreeSet<String>) -> String {
    ids.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The search through one configuration file.
struct Search<'a> {
    config: &'a Config,
    surroundings: &'a Surroundings,
    discovery: &'a mut Discovery,
}

impl Search<'_> {
    fn run(&mut self) {
        for entry in &self.config.mcp {
            self.add(&entry.name, |search| search.server(entry));
        }
        for entry in &self.config.wasm {
            self.add_file(entry, |path, mode| Source::Wasm { path, mode });
        }
        for entry in &self.config.scripts {
            self.add_file(entry, |path, _| Source::Rhai { path });
        }
        for folder in &self.config.folders {
            match self.path(folder) {
                Ok(folder) => self.add_folder(&folder),
                Err(error) => self.report(Diagnostic::in_file(self.config.path.display(), error)),
            }
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.discovery.diagnostics.push(diagnostic);
    }

    /// A path of the configuration, which begins in its folder.
    fn path(&self, text: &str) -> Result<PathBuf, ExpandError> {
        Ok(self.config.folder().join(expand::path(text, self.surroundings)?))
    }

    fn add_file(&mut self, entry: &FileEntry, source: impl FnOnce(PathBuf, Mode) -> Source) {
        let (text, id, mode) = match entry {
            FileEntry::Path(path) => (path, None, Mode::default()),
            FileEntry::Table(table) => (&table.path, table.id.as_deref(), table.instance),
        };
        let stem = Path::new(text).file_stem().and_then(|stem| stem.to_str());
        let id = id.or(stem).unwrap_or_default().to_string();
        self.add(&id, |search| Ok(source(search.path(text)?, mode)));
    }

    /// Adds what an entry of the configuration means, under an id made of its name.
    fn add(&mut self, name: &str, source: impl FnOnce(&Self) -> Result<Source, ExpandError>) {
        let file = self.config.path.display().to_string();
        let id = id_of(name);
        if !manifest::is_id(&id) {
            let problem = format!("no plugin id can be made of \"{name}\"");
            return self.report(Diagnostic::in_file(file, problem).remedy("set `id`"));
        }
        match source(self) {
            Ok(source) => {
                let settings = self.config.settings.get(&id).cloned().unwrap_or_default();
                self.discovery.candidates.push(Candidate {
                    id,
                    named_in: self.config.path.clone(),
                    source,
                    requests: BTreeMap::new(),
                    limits: self.config.limits.clone(),
                    settings,
                });
            }
            Err(error) => self.report(Diagnostic::of(&id, error).file(file)),
        }
        let entry = self.config.mcp.iter().find(|entry| entry.name == name);
        if let (Some(timeout), Some(candidate)) =
            (entry.and_then(|entry| entry.timeout), self.discovery.candidates.last_mut())
            && candidate.kind() == PluginKind::Mcp
        {
            candidate.limits.wall = timeout;
        }
    }

    fn server(&self, entry: &McpEntry) -> Result<Source, ExpandError> {
        let variables = |text: &String| expand::variables(text, self.surroundings);
        let environment = { entry.env.iter() }
            .map(|(name, value)| Ok((name.clone(), variables(value)?)))
            .collect::<Result<_, ExpandError>>()?;
        let folder = entry.cwd.as_ref().map(|folder| self.path(folder)).transpose()?;
        Ok(Source::Mcp(Server {
            program: self.program(&entry.command, self.config.folder())?,
            arguments: entry.args.iter().map(variables).collect::<Result<_, _>>()?,
            environment,
            folder: Some(folder.unwrap_or_else(|| self.config.folder().to_path_buf())),
            startup_timeout: entry.startup_timeout,
        }))
    }

    /// A program: a bare name is for `PATH`, a path begins in `folder`.
    fn program(&self, text: &str, folder: &Path) -> Result<PathBuf, ExpandError> {
        let expanded = expand::path(text, self.surroundings)?;
        let is_path = expanded.contains(['/', '\\']);
        Ok(if is_path { folder.join(expanded) } else { expanded.into() })
    }

    /// A folder with a manifest, or with folders that have one.
    fn add_folder(&mut self, folder: &Path) {
        if folder.join(manifest::FILE_NAME).is_file() {
            return self.add_manifest(folder);
        }
        let mut folders: Vec<PathBuf> = match fs::read_dir(folder) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(error) => {
                let problem = format!("the folder cannot be read: {error}");
                return self.report(Diagnostic::in_file(folder.display(), problem));
            }
        };
        folders.sort();
        for folder in folders.iter().filter(|folder| folder.join(manifest::FILE_NAME).is_file()) {
            self.add_manifest(folder);
        }
    }

    fn add_manifest(&mut self, folder: &Path) {
        let (manifest, path) = match Manifest::read(folder) {
            Ok(read) => read,
            Err(error) => {
                let file = folder.join(manifest::FILE_NAME);
                return self.report(Diagnostic::in_file(file.display(), chain(&error)));
            }
        };
        let source = match manifest.runtime {
            Runtime::Wasm { path, instance } => {
                Ok(Source::Wasm { path: folder.join(path), mode: instance })
            }
            Runtime::Rhai { path } => Ok(Source::Rhai { path: folder.join(path) }),
            Runtime::McpBridge { subprocess } => self.subprocess(&subprocess, folder),
        };
        let id = manifest.plugin.id;
        match source {
            Ok(source) => {
                let mut settings = manifest.settings;
                settings.extend(self.config.settings.get(&id).cloned().unwrap_or_default());
                self.discovery.candidates.push(Candidate {
                    id,
                    named_in: path,
                    source,
                    requests: manifest.capabilities,
                    limits: manifest.limits.over(&self.config.limits),
                    settings,
                });
            }
            Err(error) => self.report(Diagnostic::of(&id, error).file(path.display())),
        }
    }

    fn subprocess(&self, subprocess: &Subprocess, folder: &Path) -> Result<Source, ExpandError> {
        let variables = |text: &String| expand::variables(text, self.surroundings);
        let environment = { subprocess.env.iter() }
            .map(|(name, value)| Ok((name.clone(), variables(value)?)))
            .collect::<Result<_, ExpandError>>()?;
        let cwd = match &subprocess.cwd {
            Some(cwd) => folder.join(expand::path(cwd, self.surroundings)?),
            None => folder.to_path_buf(),
        };
        Ok(Source::Mcp(Server {
            program: self.program(&subprocess.binary_path, folder)?,
            arguments: subprocess.args.iter().map(variables).collect::<Result<_, _>>()?,
            environment,
            folder: Some(cwd),
            startup_timeout: None,
        }))
    }
}

/// An id made of a name: lower case, and `-` for what an id cannot hold.
fn id_of(name: &str) -> String {
    let id: String = name
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .take(64)
        .collect();
    id.trim_start_matches(['-', '_']).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Discovery {
        let config = Config::parse(text, "/project/tenon.toml").expect("the configuration is read");
        discover(&[config], &Surroundings::default())
    }

    #[test]
    fn files_are_named_after_their_stem() {
        let discovery = find(r#"plugins.wasm = ["My Tools.wasm"]"#);
        assert_eq!(discovery.candidates[0].id, "my-tools");
        let Source::Wasm { path, .. } = &discovery.candidates[0].source else { panic!() };
        assert_eq!(path, Path::new("/project/My Tools.wasm"));
    }

    #[test]
    fn an_unset_variable_costs_its_entry_only() {
        let discovery = find(
            r#"
            [plugins]
            mcp = [{ name = "a", command = "x", env = { K = "${NOPE}" } }, { name = "b", command = "./y" }]
            "#,
        );
        assert_eq!(discovery.candidates.len(), 1);
        let Source::Mcp(server) = &discovery.candidates[0].source else { panic!() };
        assert_eq!(server.program, Path::new("/project/./y"));
        assert_eq!(discovery.diagnostics[0].plugin.as_deref(), Some("a"));
    }

    #[test]
    fn the_first_of_an_id_wins_and_the_other_is_reported() {
        let discovery = find(r#"plugins.wasm = ["a.wasm", "b/a.wasm"]"#);
        assert_eq!(discovery.candidates.len(), 1);
        assert!(discovery.diagnostics[0].problem.contains("shadowed"));
    }

    #[test]
    fn settings_for_nobody_are_reported() {
        let discovery = find("plugins.wasm = [\"a.wasm\"]\n[settings.b]\nx = 1");
        assert_eq!(discovery.diagnostics[0].remedy.as_deref(), Some("the plugins are: a"));
    }
}
