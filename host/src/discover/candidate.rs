//! From a place where a plugin may be to the candidate that it is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::facts::{Facts, file_of};
use super::roots::{Place as Found, Root};
use super::walk;
use super::{
    Candidate, Discovery, Place, PluginKind, Program, Remote, Server, Source, Sources, sidecar,
};
use crate::config::{Config, ContextSettings, FileEntry, LimitsTable, McpEntry, Transport};
use crate::diagnostic::{Diagnostic, chain};
use crate::expand::{self, ExpandError};
use crate::manifest::{self, Manifest, Runtime, Subprocess};
use crate::secret::Secrets;
use crate::surroundings::Surroundings;

/// Reads what is in one place.
pub(super) struct Reader<'a> {
    pub(super) root: &'a Root<'a>,
    /// The place's rank among all.
    pub(super) rank: usize,
    pub(super) sources: &'a Sources,
    pub(super) discovery: &'a mut Discovery,
}

impl Reader<'_> {
    pub(super) fn read(&mut self) {
        let root = self.root;
        match &root.place {
            Found::Server(entry) => self.add_entry(&entry.name, |reader| reader.server(entry)),
            Found::File(entry, kind) => self.add_file(entry, *kind),
            Found::Named(folder) => match self.path(folder) {
                Ok(folder) => self.add_folder(&folder),
                Err(error) => {
                    self.report(Diagnostic::in_file(self.config().path.display(), error));
                }
            },
            Found::Folder(folder) => {
                // These need not exist.
                match folder.try_exists() {
                    Ok(true) => self.add_folder(folder),
                    Ok(false) => self.discovery.look_in(folder),
                    Err(error) => {
                        let problem = format!("the folder cannot be looked into: {error}");
                        self.report(Diagnostic::in_file(folder.display(), problem));
                    }
                }
            }
        }
    }

    fn config(&self) -> &Config {
        self.root.config
    }

    fn surroundings(&self) -> &Surroundings {
        &self.sources.surroundings
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.discovery.diagnostics.push(diagnostic);
    }

    /// Reports what is wrong with a plugin, unless it is disabled anyway.
    fn report_of(&mut self, id: &str, diagnostic: Diagnostic) {
        let mut configs = self.sources.configs.iter();
        if !configs.any(|config| config.discovery.disabled.iter().any(|disabled| disabled == id)) {
            self.report(diagnostic);
        }
    }

    /// A path of the configuration, which begins in its folder.
    fn path(&self, text: &str) -> Result<PathBuf, ExpandError> {
        Ok(self.config().folder().join(expand::path(text, self.surroundings())?))
    }

    fn add_file(&mut self, entry: &FileEntry, kind: PluginKind) {
        let (text, id, mode) = match entry {
            FileEntry::Path(path) => (path, None, Default::default()),
            FileEntry::Table(table) => (&table.path, table.id.as_deref(), table.instance),
        };
        let stem = Path::new(text).file_stem().and_then(|stem| stem.to_str());
        let id = id.or(stem).unwrap_or_default().to_string();
        self.add_entry(&id, |reader| {
            let path = reader.path(text).map_err(|error| error.to_string())?;
            Ok(match kind {
                PluginKind::Rhai => Source::Rhai { path },
                _ => Source::Wasm { path, mode },
            })
        });
    }

    /// Adds what an entry of the configuration means, under an id made of its name.
    fn add_entry(&mut self, name: &str, source: impl FnOnce(&Self) -> Result<Source, String>) {
        let file = self.config().path.clone();
        let id = id_of(name);
        if !manifest::is_id(&id) {
            let problem = format!("no plugin id can be made of \"{name}\"");
            return self.report(Diagnostic::in_file(file.display(), problem).remedy("set `id`"));
        }
        let source = match source(self) {
            Ok(source) => source,
            Err(error) => {
                return self.report_of(&id, Diagnostic::of(&id, error).file(file.display()));
            }
        };
        let mut limits = self.config().limits_of(&id, &LimitsTable::default());
        if let Found::Server(McpEntry { timeout: Some(timeout), .. }) = &self.root.place {
            limits.wall = *timeout;
        }
        let files: Vec<&Path> = file_of(&source).into_iter().collect();
        if let Some(folder) = files.first().and_then(|file| file.parent()) {
            self.discovery.look_in(folder);
        }
        let facts = Facts::of_files(&files, None);
        let settings = self.settings(&id);
        self.discovery.candidates.push(Candidate {
            id,
            origin: self.root.origin,
            rank: self.rank,
            named_in: file,
            folder: None,
            version: None,
            description: None,
            api_version: None,
            manifest: None,
            requests: Default::default(),
            grants: Default::default(),
            approved: None,
            given: Default::default(),
            permissions: None,
            limits,
            tools: Default::default(),
            context: self.config().context,
            secrets: self.secrets(&source, &settings),
            source,
            settings,
            facts,
        });
    }

    /// What the operator set for a plugin.
    fn settings(&self, id: &str) -> serde_json::Map<String, serde_json::Value> {
        let mut settings = serde_json::Map::new();
        // What comes first goes over what comes later.
        for config in self.sources.configs.iter().rev() {
            settings.extend(config.settings.get(id).cloned().unwrap_or_default());
        }
        settings
    }

    /// What must not be shown of what a plugin is given: by the names of a server's variables and of
    /// settings, and variables of our own environment that turn up in what a server gets.
    fn secrets(
        &self,
        source: &Source,
        settings: &serde_json::Map<String, serde_json::Value>,
    ) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add_settings(settings);
        let Source::Mcp(server) = source else { return secrets };
        let given: Vec<String> = match &server.place {
            Place::Child(Program { program, arguments, environment, .. }) => {
                for (name, value) in environment {
                    secrets.add(name, value);
                }
                let program = program.to_string_lossy().into_owned();
                environment.values().chain(arguments).chain([&program]).cloned().collect()
            }
            Place::Remote(Remote { url, headers, .. }) => {
                for (name, value) in headers {
                    secrets.add_header(name, value);
                }
                headers.values().cloned().chain([url.to_string()]).collect()
            }
        };
        for (name, value) in &self.surroundings().environment {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
            if given.iter().any(|given| given.contains(value)) {
                secrets.add(name, value);
            }
        }
        secrets
    }

    fn server(&self, entry: &McpEntry) -> Result<Source, String> {
        let place = match self.remote(entry)? {
            Some(remote) => Place::Remote(remote),
            None => {
                let subprocess = Subprocess {
                    binary_path: entry.command.clone(),
                    args: entry.args.clone(),
                    env: entry.env.clone(),
                    cwd: entry.cwd.clone(),
                };
                let program = self.subprocess(&subprocess, self.config().folder());
                Place::Child(program.map_err(|error| error.to_string())?)
            }
        };
        Ok(Source::Mcp(self.served(place, entry.startup_timeout)))
    }

    fn served(&self, place: Place, startup_timeout: Option<Duration>) -> Server {
        Server { place, startup_timeout, supervision: self.config().supervision.clone() }
    }

    /// How to reach a server elsewhere, for an entry that names one.
    fn remote(&self, entry: &McpEntry) -> Result<Option<Remote>, String> {
        let transport = entry.transport.unwrap_or_else(|| match entry.url {
            Some(_) => Transport::Http,
            None => Transport::Stdio,
        });
        let url = match (transport, &entry.url, entry.command.is_empty()) {
            (Transport::Stdio, None, false) => return Ok(None),
            (Transport::Http | Transport::Sse, Some(url), true) => url,
            (_, Some(_), false) => return Err("it has both a `command` and a `url`".into()),
            (Transport::Stdio, ..) => return Err("it has no `command`".into()),
            (Transport::Http | Transport::Sse, ..) => return Err("it has no `url`".into()),
        };
        let expanded = |text: &str| {
            expand::variables(text, self.surroundings()).map_err(|error| error.to_string())
        };
        let url = url::Url::parse(&expanded(url)?)
            .map_err(|error| format!("its `url` is not valid: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err("its `url` must begin with http:// or https://".into());
        }
        let headers = entry.headers.iter();
        let headers = headers.map(|(name, value)| Ok((name.clone(), expanded(value)?)));
        Ok(Some(Remote { url, headers: headers.collect::<Result<_, String>>()?, transport }))
    }

    /// A server whose paths begin in `folder`.
    fn subprocess(&self, subprocess: &Subprocess, folder: &Path) -> Result<Program, ExpandError> {
        let Subprocess { binary_path, args, env, cwd } = subprocess;
        let variables = |text: &String| expand::variables(text, self.surroundings());
        // A bare name is for `PATH`.
        let program = expand::path(binary_path, self.surroundings())?;
        let is_path = program.contains(['/', '\\']);
        let cwd = match cwd {
            Some(cwd) => folder.join(expand::path(cwd, self.surroundings())?),
            None => folder.to_path_buf(),
        };
        Ok(Program {
            program: if is_path { folder.join(program) } else { program.into() },
            arguments: args.iter().map(variables).collect::<Result<_, _>>()?,
            environment: { env.iter() }
                .map(|(name, value)| Ok((name.clone(), variables(value)?)))
                .collect::<Result<_, ExpandError>>()?,
            folder: Some(cwd),
        })
    }

    fn add_folder(&mut self, folder: &Path) {
        let settings = &self.root.config.discovery;
        self.discovery.look_in(folder);
        let walk = walk::Walk::new(folder, settings);
        self.discovery.diagnostics.extend(walk.diagnostics);
        self.discovery.looked_in.extend(walk.folders);
        for plugin in walk.manifests {
            self.add_manifest(&plugin, folder);
        }
    }

    fn add_manifest(&mut self, folder: &Path, root: &Path) {
        let (manifest, text) = match Manifest::read(folder) {
            Ok(read) => read,
            Err(error) => {
                let file = folder.join(manifest::FILE_NAME);
                return match manifest::id_in(&file) {
                    Some(id) => {
                        let diagnostic = Diagnostic::of(&id, chain(&error));
                        self.report_of(&id, diagnostic.file(file.display()));
                    }
                    None => self.report(Diagnostic::in_file(file.display(), chain(&error))),
                };
            }
        };
        let requests = manifest.requests(&text, self.surroundings());
        let digest = text.digest();
        let path = text.path;
        let Manifest {
            plugin,
            runtime,
            capabilities: _,
            requires,
            permissions,
            limits,
            context,
            settings,
        } = manifest;
        let id = plugin.id;
        let source = match runtime {
            Runtime::Wasm { path, instance } => {
                Ok(Source::Wasm { path: folder.join(path), mode: instance })
            }
            Runtime::Rhai { path } => Ok(Source::Rhai { path: folder.join(path) }),
            Runtime::McpBridge { subprocess } => subprocess
                .map_or_else(|| sidecar::read(folder, &id), Ok)
                .and_then(|subprocess| {
                    self.subprocess(&subprocess, folder).map_err(|error| error.to_string())
                })
                .map(|program| Source::Mcp(self.served(Place::Child(program), None))),
        };
        let source = match source {
            Ok(source) => source,
            Err(problem) => {
                return self.report_of(&id, Diagnostic::of(&id, problem).file(path.display()));
            }
        };
        let requests = match requests {
            Ok(requests) => requests,
            Err(error) => {
                return self.report_of(&id, Diagnostic::of(&id, error).file(path.display()));
            }
        };
        // A program elsewhere is named by its absolute path.
        let file = file_of(&source)
            .filter(|file| source.kind() != PluginKind::Mcp || file.starts_with(folder));
        let files: Vec<&Path> = [Some(&*path), file].into_iter().flatten().collect();
        if let Some(folder) = file.and_then(Path::parent) {
            self.discovery.look_in(folder);
        }
        let mut facts = Facts::of_files(&files, Some(root));
        facts.look_for(&requires, self.surroundings());
        let limits = self.config().limits_of(&id, &limits);
        let mut merged = settings;
        merged.extend(self.settings(&id));
        self.discovery.candidates.push(Candidate {
            id,
            origin: self.root.origin,
            rank: self.rank,
            named_in: path,
            folder: Some(folder.to_path_buf()),
            version: plugin.version,
            description: plugin.description,
            api_version: plugin.plugin_api_version,
            secrets: self.secrets(&source, &merged),
            source,
            manifest: Some(digest),
            requests,
            grants: Default::default(),
            approved: None,
            given: Default::default(),
            permissions,
            limits,
            tools: Default::default(),
            context: ContextSettings {
                passthrough: context.passthrough.unwrap_or(self.config().context.passthrough),
            },
            settings: merged,
            facts,
        });
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
