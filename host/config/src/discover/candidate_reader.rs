//! From a place where a plugin may be to the candidate that it is.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::machine_facts::{MachineFacts, file_of};
use super::search_locations::{EDITOR, LocationKind as Found, SearchLocation};
use super::server::{ResolveContext, ResolvedServer};
use super::walk;
use super::{
    Candidate, CodeSource, Discovery, PluginKind, PluginOrigin, Remote, Server, ServerCommand,
    ServerLocation, SharedUserSettingKeys, Sources, plugin_mcp_json,
};
use crate::approver::ServerParameters;
use crate::config::{
    Config, ContextPassthroughSettings, InstanceMode, PluginFileEntry, PluginFileTable, combine,
};
use crate::diagnostic::{Diagnostic, chain};
use crate::entry::json::McpFile;
use crate::entry::{McpEntry, json};
use crate::expand::{self, ExpandError};
use crate::files::{self, Digest, MAX_CONFIGURATION_BYTES};
use crate::grant::{FILESYSTEM, GrantSet, NETWORK};
use crate::host_environment::HostEnvironment;
use crate::limits::LimitsTable;
use crate::lock::{FoundLockFile, LockedDigests};
use crate::manifest::{self, Manifest, PluginRuntime};
use crate::path_context::{self, PathContext};
use crate::secret::SecretValues;
use crate::skills::{PluginSkillFiles, PluginSkills};

/// Reads what is in one place.
pub(super) struct CandidateReader<'a> {
    pub root: &'a SearchLocation<'a>,
    /// The place's rank among all.
    pub rank: usize,
    pub sources: &'a Sources,
    pub discovery: &'a mut Discovery,
}

/// What an entry for a server requests.
fn server_requests(
    entry: &McpEntry,
    server: &Server,
    paths: &PathContext<'_>,
) -> Result<GrantSet, String> {
    let Some(capabilities) = &entry.capabilities else { return Ok(GrantSet::default()) };
    let requests = manifest::requests_of(capabilities, paths)?;
    check_server_requests(server, &requests)?;
    Ok(requests)
}

/// What a server of a manifest requests: what one of the two tables says.
fn manifest_server_requests(
    entry: &McpEntry,
    server: &Server,
    has_capabilities: bool,
    requests: GrantSet,
    paths: &PathContext<'_>,
) -> Result<GrantSet, String> {
    if !has_capabilities {
        return server_requests(entry, server, paths);
    }
    if entry.capabilities.is_some() {
        return Err("it has [capabilities] and `capabilities` of its server; one is enough".into());
    }
    check_server_requests(server, &requests)?;
    Ok(requests)
}

/// The capabilities that a server can be granted which is a child.
const SERVER_CAPABILITIES: [&str; 2] = [FILESYSTEM, NETWORK];

/// Whether a server can be granted what is requested for it.
fn check_server_requests(server: &Server, requests: &GrantSet) -> Result<(), String> {
    if matches!(server.place, ServerLocation::Remote(_)) {
        return Err("it has `capabilities`, and its server runs elsewhere".into());
    }
    let other = requests.names().find(|name| !SERVER_CAPABILITIES.contains(name));
    other.map_or(Ok(()), |other| {
        let known = SERVER_CAPABILITIES.join("` and `");
        Err(format!("a server can be granted `{known}`, and not `{other}`"))
    })
}

impl CandidateReader<'_> {
    pub(super) fn read(&mut self) {
        let root = self.root;
        match &root.place {
            Found::Server(entry) => {
                self.add_server(&entry.name, entry, &self.config().path.clone())
            }
            Found::Servers(file) => self.add_servers(file),
            Found::File(entry, kind) => self.add_file(entry, *kind),
            Found::Named(folder) => match self.path(folder) {
                Ok(folder) => self.add_folder(&folder, None),
                Err(error) => {
                    self.report(Diagnostic::in_file(self.config().path.display(), error));
                }
            },
            Found::Folder(folder) => {
                let lock_index = self.root.lock.as_deref().map(FoundLockFile::read);
                if let Some((file, digest)) = lock_index.as_ref().and_then(FoundLockFile::content) {
                    self.note_read(file.into(), digest);
                }
                // These need not exist.
                match folder.try_exists() {
                    Ok(true) => self.add_folder(folder, lock_index.as_ref()),
                    Ok(false) => self.discovery.look_in(folder),
                    Err(error) => {
                        let problem = format!("the folder cannot be looked into: {error}");
                        self.report(Diagnostic::in_file(folder.display(), problem));
                    }
                }
                if let Some(lock_index) = lock_index {
                    self.report_what_is_gone(&lock_index);
                }
            }
        }
    }

    pub(super) fn config(&self) -> &Config {
        self.root.config
    }

    pub(super) fn host_environment(&self) -> &HostEnvironment {
        &self.sources.host_environment
    }

    /// Notes that a file was read, where it is the project's.
    fn note_read(&mut self, path: PathBuf, digest: Digest) {
        self.discovery.deciding.insert(path.clone());
        if self.root.origin.is_of_project() {
            self.discovery.read.insert(path, digest);
        }
    }

    /// Notes the file with variables of an entry: what is there decides what starts, also when it is only
    /// written later.
    fn note_env_file(&mut self, entry: &McpEntry, folder: &Path) {
        let Some(path) = self.env_file(entry, folder) else { return };
        if let Some(folder) = path.parent() {
            self.discovery.look_in(folder);
        }
        self.discovery.deciding.insert(path);
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        let is_local = matches!(self.root.place, Found::Server(_) | Found::Servers(_));
        self.discovery.diagnostics.push(Diagnostic { is_local, ..diagnostic });
    }

    /// Reports what is wrong with a plugin, unless it is disabled anyway.
    fn report_of(&mut self, id: &str, diagnostic: Diagnostic) {
        let configs = &self.sources.configs;
        // What cannot be understood may be a guard.
        let is_users = !self.root.origin.is_of_project();
        let mut speaking =
            configs.iter().filter(|config| !is_users || !combine::is_bounded(config, configs));
        let is_disabled = |config: &Config| config.discovery.disabled.iter().any(|of| of == id);
        if !speaking.any(is_disabled) {
            self.report(diagnostic);
        }
    }

    /// What the paths of a plugin are expanded with.
    fn path_context<'b>(
        &'b self,
        folder: &'b Path,
        data_folder: Option<&'b Path>,
    ) -> PathContext<'b> {
        PathContext { host_environment: self.host_environment(), folder, data_folder }
    }

    /// The folder for the data of a plugin that is found here.
    fn data_folder(&self, id: &str) -> Option<PathBuf> {
        let workspace = self.sources.workspace.as_deref();
        let project = || workspace.unwrap_or_else(|| self.config().folder());
        // However it is named, and wherever a command runs in it, a project is the folder that it really is.
        let project = self.root.origin.is_of_project().then(|| files::real_or_absolute(project()));
        path_context::data_folder(self.host_environment(), id, project.as_deref())
    }

    /// A path of the configuration, which begins in its folder.
    fn path(&self, text: &str) -> Result<PathBuf, ExpandError> {
        Ok(files::in_folder(self.config().folder(), expand::path(text, self.host_environment())?))
    }

    fn add_file(&mut self, entry: &PluginFileEntry, kind: PluginKind) {
        let simple;
        let table = match entry {
            PluginFileEntry::Table(table) => table,
            PluginFileEntry::Path(path) => {
                simple = PluginFileTable { path: path.clone(), ..PluginFileTable::default() };
                &simple
            }
        };
        let stem = Path::new(&table.path).file_stem().and_then(|stem| stem.to_str());
        let id = table.id.as_deref().or(stem).unwrap_or_default().to_string();
        let file = self.config().path.clone();
        let path = self.path(&table.path);
        if let Ok(path) = &path
            && let Some(folder) = manifest_beside(path)
        {
            let PluginFileTable { path: _, id, instance, capabilities } = table;
            if id.is_some() || *instance != InstanceMode::default() || !capabilities.is_empty() {
                let manifest = folder.join(manifest::FILE_NAME);
                let manifest = manifest.display();
                let problem =
                    format!("its entry has more than a `path`, and {manifest} says what it is");
                let remedy = "leave `path` alone in its entry, or take that file away";
                let id = id_of(stem.unwrap_or_default());
                let diagnostic = Diagnostic::of(&id, problem).file(file.display()).remedy(remedy);
                return self.report_of(&id, diagnostic);
            }
            return self.add_manifest(&folder, &folder, None);
        }
        let source = path.map_err(|error| error.to_string()).map(|path| match kind {
            PluginKind::Rhai => CodeSource::Rhai { path },
            _ => CodeSource::Wasm { path, mode: table.instance },
        });
        let data_folder = self.data_folder(&id_of(&id));
        let paths = self.path_context(self.config().folder(), data_folder.as_deref());
        let requests = manifest::requests_of(&table.capabilities, &paths);
        let source = source.and_then(|source| Ok((source, requests?)));
        self.add_entry(&id, &file, source, None);
    }

    /// Adds the servers of a file that other programs read, too. It need not be there.
    fn add_servers(&mut self, file: &Path) {
        self.discovery.look_in(file.parent().unwrap_or(Path::new(".")));
        let missing = file.symlink_metadata().err().map(|error| error.kind());
        if missing == Some(io::ErrorKind::NotFound) {
            return;
        }
        let servers = match files::read_text(file, MAX_CONFIGURATION_BYTES) {
            Ok(text) => {
                self.note_read(file.into(), Digest::of(&text));
                let McpFile { servers, questions } = json::read(&text);
                if self.root.origin.is_of_project() {
                    self.discovery.questions.extend(questions);
                }
                servers.map_err(|error| error.to_string())
            }
            Err(error) => Err(format!("it cannot be read: {error}")),
        };
        match servers {
            Err(problem) => self.report(Diagnostic::in_file(file.display(), problem)),
            Ok(servers) => {
                for (name, entry) in servers {
                    match entry {
                        Ok(entry) => self.add_server(&name, &entry, file),
                        Err(problem) => self.add_entry(&name, file, Err(problem), None),
                    }
                }
            }
        }
    }

    /// Adds a server that a file names.
    fn add_server(&mut self, name: &str, entry: &McpEntry, file: &Path) {
        let mut parent = file.parent();
        if parent.is_some_and(|parent| parent.ends_with(EDITOR)) {
            // Its paths begin where those of the project's other files do.
            parent = parent.and_then(Path::parent);
        }
        let folder =
            parent.filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.note_env_file(entry, folder);
        let is_confined = entry.capabilities.is_some();
        let meant = self.meant(entry, ResolveContext { folder, required: &[], is_confined });
        let (source, meant) = match meant {
            Ok(meant) => {
                if let Some((path, digest)) = meant.env_file.clone() {
                    self.note_read(path, digest);
                }
                let source = CodeSource::Mcp(meant.server.clone().into());
                let data_folder = self.data_folder(&id_of(name));
                let paths = self.path_context(folder, data_folder.as_deref());
                let requests = server_requests(entry, &meant.server, &paths);
                (requests.map(|requests| (source, requests)), Some(meant))
            }
            Err(problem) => (Err(problem), None),
        };
        self.add_entry(name, file, source, Some((entry, meant)));
    }

    /// Adds what an entry means, under an id made of its name.
    fn add_entry(
        &mut self,
        name: &str,
        file: &Path,
        source: Result<(CodeSource, GrantSet), String>,
        server: Option<(&McpEntry, Option<ResolvedServer>)>,
    ) {
        let id = id_of(name);
        if !manifest::is_id(&id) {
            let problem = format!("no plugin id can be made of \"{name}\"");
            let remedy = match self.root.place {
                Found::File(..) => "set `id`",
                _ => "give it another name",
            };
            return self.report(Diagnostic::in_file(file.display(), problem).remedy(remedy));
        }
        let (entry, meant) = server.unzip();
        let is_enabled = entry.is_none_or(McpEntry::is_enabled);
        let (mut settings, users_settings) = self.settings(&id, Map::new());
        let data_folder = self.data_folder(&id);
        let paths = self.path_context(Path::new("."), data_folder.as_deref());
        let made = source.and_then(|(source, requests)| {
            paths.expand_settings(&mut settings)?;
            let secrets = self.secrets(&source, &settings);
            let command = Self::command_line(entry, meant.flatten().as_ref())?;
            Ok((source, requests, secrets, command))
        });
        let (source, requests, secrets, command) = match made {
            Ok(made) => made,
            // Of what is not wanted nobody wants to know what is wrong with it.
            Err(_) if !is_enabled => return,
            Err(error) => {
                return self.report_of(&id, Diagnostic::of(&id, error).file(file.display()));
            }
        };
        let mut limits = self.config().limits_of(&id, &LimitsTable::default());
        if let Some(timeout) = entry.and_then(|entry| entry.timeout) {
            limits.wall = match &self.root.place {
                Found::Server(_) if !combine::is_bounded(self.config(), &self.sources.configs) => {
                    timeout
                }
                // It is not the operator who says it.
                _ => timeout.min(self.config().most_of(&id).wall),
            };
        }
        let files: Vec<&Path> = file_of(&source).into_iter().collect();
        if let Some(folder) = files.first().and_then(|file| file.parent()) {
            self.discovery.look_in(folder);
        }
        let mut machine_facts = MachineFacts::of_files(&files, None);
        machine_facts.look_for_folder(&source);
        self.discovery.candidates.push(Candidate {
            id,
            name: Some(name.into()),
            origin: self.root.origin,
            is_shielded: false,
            rank: self.rank,
            named_in: file.to_path_buf(),
            folder: None,
            version: None,
            description: None,
            api_version: None,
            manifest: None,
            skills: None,
            warnings: Vec::new(),
            requests,
            command,
            is_command_approved: false,
            is_enabled,
            grants: Default::default(),
            approved: None,
            given: Default::default(),
            trusted: None,
            programs: None,
            permissions: None,
            limits,
            rules: entry.map(McpEntry::rules).unwrap_or_default(),
            context: self.config().context,
            secrets,
            source,
            settings,
            data_folder,
            settings_schema: None,
            users_settings,
            machine_facts,
            lock_entry: None,
        });
    }

    /// What somebody has to approve of a server that a file of the project names.
    fn command_line(
        entry: Option<&McpEntry>,
        meant: Option<&ResolvedServer>,
    ) -> Result<Option<ServerParameters>, String> {
        match (entry, meant) {
            (Some(entry), Some(meant)) => meant.command_line(entry),
            _ => Ok(None),
        }
    }

    /// What is set for a plugin, beginning with what its manifest sets; and which of that is its user's,
    /// where a project brings the plugin.
    fn settings(
        &self,
        id: &str,
        mut settings: Map<String, Value>,
    ) -> (Map<String, Value>, SharedUserSettingKeys) {
        let configs = &self.sources.configs;
        let is_of_project = self.root.origin.is_of_project();
        // What comes first goes over what comes later, but a project's file over none of its user's.
        let (bounded, free): (Vec<&Config>, Vec<&Config>) =
            configs.iter().rev().partition(|config| combine::is_bounded(config, configs));
        let is_bounded = is_of_project && !bounded.is_empty();
        for config in bounded.into_iter().filter(|_| is_of_project) {
            settings.extend(config.settings.get(id).cloned().unwrap_or_default());
        }
        let mut of_user = SharedUserSettingKeys::default();
        for config in free {
            for (key, value) in config.settings.get(id).into_iter().flatten() {
                if is_bounded && config.origin == PluginOrigin::User {
                    // Whatever has the id of a plugin of the user's would get the keys of that.
                    if !settings.contains_key(key) {
                        of_user.withheld.insert(key.clone());
                        continue;
                    }
                    of_user.given.insert(key.clone());
                }
                settings.insert(key.clone(), value.clone());
            }
        }
        (settings, of_user)
    }

    /// What must not be shown of what a plugin is given: by the names of a server's variables and of
    /// settings, and variables of our own environment that turn up in what a server gets.
    fn secrets(&self, source: &CodeSource, settings: &Map<String, Value>) -> SecretValues {
        let mut secrets = SecretValues::default();
        secrets.add_settings(settings);
        let CodeSource::Mcp(server) = source else { return secrets };
        let given: Vec<String> = match &server.place {
            ServerLocation::Child(ServerCommand {
                program,
                arguments,
                environment,
                inherited,
                ..
            }) => {
                for (name, value) in environment {
                    secrets.add(name, value);
                }
                for name in &inherited.names {
                    if let Some(value) = self.host_environment().variable(name) {
                        secrets.add(name, value);
                    }
                }
                let program = program.to_string_lossy().into_owned();
                environment.values().chain(arguments).chain([&program]).cloned().collect()
            }
            ServerLocation::Remote(Remote { url, headers, .. }) => {
                for (name, value) in headers {
                    secrets.add_header(name, value);
                }
                headers.values().cloned().chain([url.to_string()]).collect()
            }
        };
        for (name, value) in &self.host_environment().environment {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
            if given.iter().any(|given| given.contains(value)) {
                secrets.add(name, value);
            }
        }
        secrets
    }

    fn add_folder(&mut self, folder: &Path, lock_index: Option<&FoundLockFile>) {
        let settings = &self.root.config.discovery;
        self.discovery.look_in(folder);
        let walk = walk::PluginScan::new(folder, settings, &mut self.discovery.entries);
        self.discovery.diagnostics.extend(walk.diagnostics);
        self.discovery.looked_in.extend(walk.folders);
        self.discovery.warnings.extend(walk.links.iter().map(|link| {
            Diagnostic::in_file(link.display(), "it is a link, which is not followed").remedy(
                "name its target under `plugins.folders`, or set `follow_links = true` under \
                 [discovery]",
            )
        }));
        let origin = self.root.origin;
        self.discovery.bare.extend(walk.bare.into_iter().map(|file| (origin, file)));
        if let Some(folder) = self.root.lock.as_ref().and_then(|lock| lock.parent()) {
            self.discovery.look_in(folder);
        }
        for plugin in walk.manifests {
            self.add_manifest(&plugin, folder, lock_index);
        }
    }

    /// What was installed and is not there any more may be a guard.
    fn report_what_is_gone(&mut self, lock_index: &FoundLockFile) {
        let Discovery { candidates, diagnostics, .. } = &*self.discovery;
        let here = candidates.iter().filter(|candidate| candidate.rank == self.rank);
        let here = here.map(|candidate| candidate.id.as_str());
        let told = diagnostics.iter().filter_map(|diagnostic| diagnostic.plugin.as_deref());
        let known: BTreeSet<String> = here.chain(told).map(str::to_string).collect();
        let file = lock_index.file().display();
        let ids = match lock_index.ids() {
            Ok(ids) => ids,
            Err(problem) => return self.report(Diagnostic::in_file(file, problem)),
        };
        for id in ids.filter(|id| !known.contains(*id)) {
            let remedy = match self.root.origin {
                PluginOrigin::User => "`tenon install --user` puts it back",
                _ => "`tenon install` puts it back",
            };
            let gone = Diagnostic::of(id, "it was installed, and is missing now");
            self.report_of(id, gone.file(&file).remedy(remedy));
        }
    }

    fn add_manifest(&mut self, folder: &Path, root: &Path, lock_index: Option<&FoundLockFile>) {
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
        let data_folder = self.data_folder(&manifest.plugin.id);
        let paths = self.path_context(folder, data_folder.as_deref());
        let requests = manifest.requests(&text, &paths);
        let settings = manifest.default_settings();
        let digest = text.digest();
        self.note_read(text.path.clone(), digest);
        let path = text.path;
        let Manifest {
            plugin,
            runtime,
            capabilities,
            requires,
            permissions,
            hooks,
            limits,
            context,
            settings_schema,
            ..
        } = manifest;
        let id = plugin.id;
        let mut server = None;
        let source = match runtime {
            PluginRuntime::Wasm { path, instance } => {
                Ok(CodeSource::Wasm { path: folder.join(path), mode: instance })
            }
            PluginRuntime::Rhai { path } => Ok(CodeSource::Rhai { path: folder.join(path) }),
            PluginRuntime::McpBridge { subprocess } => subprocess
                .map_or_else(
                    || {
                        let (entry, path, digest) = plugin_mcp_json::read(folder, &id)?;
                        self.note_read(path, digest);
                        Ok::<_, String>(entry)
                    },
                    |subprocess| Ok(*subprocess),
                )
                .and_then(|entry| {
                    self.note_env_file(&entry, folder);
                    // They may stand in either table.
                    let is_confined = capabilities.is_some() || entry.capabilities.is_some();
                    let required = &requires.env;
                    let meant =
                        self.meant(&entry, ResolveContext { folder, required, is_confined })?;
                    if let Some((path, digest)) = meant.env_file.clone() {
                        self.note_read(path, digest);
                    }
                    let source =
                        CodeSource::Mcp(Box::new(Server { hooks, ..meant.server.clone() }));
                    server = Some((entry, meant));
                    Ok(source)
                }),
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
        let requests = match &server {
            Some((entry, meant)) => {
                let paths = self.path_context(folder, data_folder.as_deref());
                match manifest_server_requests(
                    entry,
                    &meant.server,
                    capabilities.is_some(),
                    requests,
                    &paths,
                ) {
                    Ok(requests) => requests,
                    Err(problem) => {
                        let diagnostic = Diagnostic::of(&id, problem).file(path.display());
                        return self.report_of(&id, diagnostic);
                    }
                }
            }
            None => requests,
        };
        let skills = match PluginSkillFiles::read(folder).and_then(|files| files.skills(folder)) {
            Ok(skills) => skills,
            Err(error) => {
                return self
                    .report_of(&id, Diagnostic::of(&id, chain(&error)).file(path.display()));
            }
        };
        // Under another id it is still the plugin that was installed in its folder.
        let own = folder.file_name().and_then(|name| name.to_str());
        let lock_entry =
            lock_index.and_then(|lock_index| lock_index.of(&id).or_else(|| lock_index.of(own?)));
        let is_bound = matches!(lock_entry, Some(LockedDigests::Bound { .. }));
        let of_skills: Vec<_> = skills.iter().flat_map(PluginSkills::paths).collect();
        for (path, digest) in &of_skills {
            match is_bound {
                // The lock file has them, and whoever trusts that may have them put back.
                true => drop(self.discovery.deciding.insert(path.clone())),
                false => self.note_read(path.clone(), *digest),
            }
            path.ancestors()
                .skip(1)
                .take_while(|above| *above != folder)
                .for_each(|above| self.discovery.look_in(above));
        }
        // A program elsewhere is named by its absolute path.
        let file = file_of(&source)
            .filter(|file| source.kind() != PluginKind::Mcp || file.starts_with(folder));
        let own = [Some(&*path), file].into_iter().flatten();
        let files: Vec<&Path> = own.chain(of_skills.iter().map(|(path, _)| &**path)).collect();
        if let Some(folder) = file.and_then(Path::parent) {
            self.discovery.look_in(folder);
        }
        let mut machine_facts = MachineFacts::of_files(&files, Some(root));
        machine_facts.look_for(&requires, self.host_environment());
        machine_facts.look_for_folder(&source);
        let mut limits = self.config().limits_of(&id, &limits);
        let (mut settings, users_settings) = self.settings(&id, settings);
        let paths = self.path_context(folder, data_folder.as_deref());
        if let Err(problem) = paths.expand_settings(&mut settings) {
            return self.report_of(&id, Diagnostic::of(&id, problem).file(path.display()));
        }
        let secrets = self.secrets(&source, &settings);
        let (entry, meant) = server.unzip();
        let command = match Self::command_line(entry.as_ref(), meant.as_ref()) {
            Ok(command) => command,
            Err(problem) => {
                return self.report_of(&id, Diagnostic::of(&id, problem).file(path.display()));
            }
        };
        let entry = entry.unwrap_or_default();
        if let Some(timeout) = entry.timeout {
            limits.wall = timeout.min(self.config().most_of(&id).wall);
        }
        self.discovery.candidates.push(Candidate {
            id,
            name: None,
            origin: self.root.origin,
            is_shielded: false,
            rank: self.rank,
            named_in: path,
            folder: Some(folder.to_path_buf()),
            version: plugin.version,
            description: plugin.description,
            api_version: plugin.plugin_api_version,
            secrets,
            source,
            manifest: Some(digest),
            skills: skills.map(Arc::new),
            warnings: Vec::new(),
            requests,
            command,
            is_command_approved: false,
            is_enabled: entry.is_enabled(),
            grants: Default::default(),
            approved: None,
            given: Default::default(),
            trusted: None,
            programs: None,
            permissions,
            limits,
            rules: entry.rules(),
            context: ContextPassthroughSettings {
                passthrough: context.passthrough.unwrap_or(self.config().context.passthrough),
            },
            settings,
            data_folder,
            settings_schema,
            users_settings,
            machine_facts,
            lock_entry,
        });
    }
}

/// The folder of a component or script, where a manifest in it is of that file, or cannot be understood.
fn manifest_beside(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    if !folder.join(manifest::FILE_NAME).is_file() {
        return None;
    }
    let is_of = |manifest: &Manifest| {
        let own = manifest.code().and_then(|code| folder.join(code).canonicalize().ok());
        own.is_some() && own == path.canonicalize().ok()
    };
    match Manifest::read(folder) {
        Ok((manifest, _)) if !is_of(&manifest) => None,
        Ok(_) | Err(_) => Some(folder.to_path_buf()),
    }
}

/// An id made of a name: lower case, and `-` for what an id cannot hold.
pub(super) fn id_of(name: &str) -> String {
    let id: String = name
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .take(64)
        .collect();
    id.trim_start_matches(['-', '_']).to_string()
}
