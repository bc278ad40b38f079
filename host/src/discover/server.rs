//! From an entry for an MCP server to the server that it means on this machine.

use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::candidate::Reader;
use super::{Inherited, Origin, Place, Program, Remote, Server, Wishes};
use crate::child::{changes_loading, is_base};
use crate::entry::{EnvironmentPolicy, McpEntry, Transport, dotenv};
use crate::expand::Words;
use crate::files::{self, CONFIGURATION, Digest};
use crate::secret::{MASK, Redactor, Secrets, is_secret_name};
use crate::services::CommandLine;

/// The longest command that somebody is asked about, in bytes, with all that belongs to it.
const COMMAND: usize = 32 << 10;

/// What an entry means.
pub(super) struct Meant {
    pub(super) server: Server,
    /// Variables of its file.
    from_file: BTreeMap<String, String>,
}

/// Where an entry stands.
#[derive(Clone, Copy)]
pub(super) struct Standpoint<'a> {
    /// The folder in which its relative paths begin.
    pub(super) folder: &'a Path,
    /// Variables that it gets in any case: those that its manifest requires.
    pub(super) required: &'a [String],
}

impl Reader<'_> {
    /// What an entry means.
    pub(super) fn meant(&self, entry: &McpEntry, at: Standpoint<'_>) -> Result<Meant, String> {
        let workspace = self.workspace();
        let words = Words { surroundings: self.surroundings(), workspace: workspace.as_deref() };
        let mut from_file = BTreeMap::new();
        let place = match transport_of(entry)? {
            Transport::Stdio => {
                if let Some(file) = &entry.env_file {
                    from_file = variables_in(file, words, at.folder)?;
                }
                Place::Child(self.program(entry, words, at, &from_file)?)
            }
            transport => Place::Remote(remote(entry, transport, words)?),
        };
        let server = Server {
            place,
            startup_timeout: entry.startup_timeout,
            supervision: self.config().supervision.clone(),
            wishes: wishes(entry, words, at.folder)?,
        };
        Ok(Meant { server, from_file })
    }

    /// The project's folder: the one that was given, or else that of the first configuration which
    /// is no user's own.
    fn workspace(&self) -> Option<PathBuf> {
        let configs = &self.sources.configs;
        let of_config = || configs.iter().find(|config| config.origin == Origin::Config);
        let folder = match &self.sources.workspace {
            Some(folder) => folder,
            None => of_config()?.folder(),
        };
        std::path::absolute(folder).ok()
    }

    /// A server that is a child.
    fn program(
        &self,
        entry: &McpEntry,
        words: Words<'_>,
        at: Standpoint<'_>,
        from_file: &BTreeMap<String, String>,
    ) -> Result<Program, String> {
        let text = |text: &String| words.text(text).map_err(|error| error.to_string());
        let path = |text: &String| words.path(text).map_err(|error| error.to_string());
        // A bare name is for `PATH`.
        let program = path(&entry.command)?;
        let is_path = program.contains(['/', '\\']);
        let mut environment = from_file.clone();
        for (name, value) in &entry.env {
            let value = words.text_with_secrets(value).map_err(|error| error.to_string())?;
            environment.insert(name.clone(), value);
        }
        // One with `=` in it would be another to the program than it is here.
        let is_name = |name: &&String| !name.is_empty() && !name.contains(['=', '\0']);
        let mut names = environment.keys().chain(&entry.env_vars);
        if let Some(name) = names.find(|name| !is_name(name)) {
            return Err(format!("{name:?} is no name of a variable"));
        }
        if matches!(self.root.origin, Origin::Config | Origin::Workspace) {
            // What it gets in any case it may ask for.
            let passed = entry.env_vars.iter().filter(|name| !is_base(name.as_ref()));
            let mut names = environment.keys().chain(passed);
            if let Some(name) = names.find(|name| changes_loading(name)) {
                return Err(format!(
                    "the variable {name} changes which code programs load, and no file of a project \
                     can set it; the user's own configuration can"
                ));
            }
        }
        let mut names: BTreeSet<String> = entry.env_vars.iter().cloned().collect();
        if entry.env_policy == EnvironmentPolicy::Filtered {
            names.extend(at.required.iter().cloned());
        }
        Ok(Program {
            program: if is_path { at.folder.join(program) } else { program.into() },
            arguments: entry.args.iter().map(text).collect::<Result<_, _>>()?,
            environment,
            inherited: Inherited { policy: entry.env_policy, names },
            folder: Some(match &entry.cwd {
                Some(cwd) => at.folder.join(path(cwd)?),
                None => at.folder.to_path_buf(),
            }),
        })
    }
}

impl Meant {
    /// What somebody is shown who is to approve the server.
    pub(super) fn command_line(
        &self,
        entry: &McpEntry,
        secrets: &Secrets,
    ) -> Result<CommandLine, String> {
        let redactor = Redactor::new(secrets);
        let masked = |text: &str| redactor.text(text).into_owned();
        // What stands there by the name of a variable is shown by that name.
        let as_written = |name: &str, value: &str| match names_secret(name) && !value.contains("${")
        {
            true => MASK.to_string(),
            false => masked(value),
        };
        let roots = self.server.wishes.roots.iter().map(|(uri, _)| uri.clone());
        let mut command = CommandLine { roots: roots.collect(), ..CommandLine::default() };
        let expanded = match &self.server.place {
            Place::Child(Program { program, arguments, folder, inherited, environment: _ }) => {
                // From wherever the host is started, it is the same.
                let absolute = |path: &Path| std::path::absolute(path).unwrap_or(path.into());
                let is_path = program.components().nth(1).is_some();
                let program = if is_path { absolute(program) } else { program.clone() };
                let folder = folder.as_deref().map(absolute);
                command.program = Some(masked(&program.display().to_string()));
                command.arguments = arguments.iter().map(|argument| masked(argument)).collect();
                command.folder.clone_from(&folder);
                let from_file = self.from_file.keys();
                let file = entry.env_file.as_deref().unwrap_or_default();
                let from_file = from_file.map(|name| (name.clone(), format!("(of {file})")));
                command.variables = from_file.collect();
                let own = entry.env.iter();
                let own = own.map(|(name, value)| (name.clone(), as_written(name, value)));
                command.variables.extend(own);
                command.passed = inherited.names.iter().cloned().collect();
                command.all_inherited = inherited.policy == EnvironmentPolicy::Filtered;
                json!([program, arguments, folder, inherited.names])
            }
            Place::Remote(remote) => {
                command.url = Some(masked(remote.url.as_str()));
                let headers = entry.headers.iter();
                let headers = headers.map(|(name, value)| (name.clone(), as_written(name, value)));
                command.headers = headers.collect();
                json!([remote.url.as_str(), remote.transport])
            }
        };
        let McpEntry {
            command: program, args, env, env_file, env_policy, cwd, url, headers, ..
        } = entry;
        let written = json!([program, args, env, env_file, env_policy, cwd, url, headers]);
        let all = json!([written, expanded, self.from_file, command.roots]).to_string();
        if all.len() > COMMAND {
            return Err(format!("it has more than {} KiB to be approved", COMMAND >> 10));
        }
        command.digest = Digest::of(all).to_string();
        Ok(command)
    }
}

/// Whether a variable or a header of a name has a secret.
fn names_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_secret_name(name) || lower.contains("authorization") || lower.contains("cookie")
}

/// How a server is spoken to, by what its entry has.
fn transport_of(entry: &McpEntry) -> Result<Transport, String> {
    let transport = entry.transport.unwrap_or(match entry.url {
        Some(_) => Transport::Http,
        None => Transport::Stdio,
    });
    match (transport, &entry.url, entry.command.is_empty()) {
        (Transport::Stdio, None, false) => Ok(transport),
        (Transport::Http | Transport::Sse, Some(_), true) => Ok(transport),
        (_, Some(_), false) => Err("it has both a `command` and a `url`".into()),
        (Transport::Stdio, ..) => Err("it has no `command`".into()),
        (Transport::Http | Transport::Sse, ..) => Err("it has no `url`".into()),
    }
}

/// How to reach a server elsewhere.
fn remote(entry: &McpEntry, transport: Transport, words: Words<'_>) -> Result<Remote, String> {
    let url = words.text(entry.url.as_deref().unwrap_or_default());
    let url = url::Url::parse(&url.map_err(|error| error.to_string())?)
        .map_err(|error| format!("its `url` is not valid: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("its `url` must begin with http:// or https://".into());
    }
    let headers = entry.headers.iter().map(|(name, value)| {
        let value = words.text_with_secrets(value).map_err(|error| error.to_string())?;
        Ok((name.clone(), value))
    });
    Ok(Remote { url, headers: headers.collect::<Result<_, String>>()?, transport })
}

/// What is asked of the server, and of those who speak with it.
fn wishes(entry: &McpEntry, words: Words<'_>, folder: &Path) -> Result<Wishes, String> {
    let root = |root: &String| {
        let path = words.path(root).map_err(|error| error.to_string())?;
        let no = |_| format!("the root {root:?} is no folder that a URL can name");
        let path = std::path::absolute(folder.join(path)).map_err(|_| no(()))?;
        let uri = url::Url::from_file_path(&path).map_err(no)?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok::<_, String>((uri.to_string(), name))
    };
    Ok(Wishes {
        protocol: entry.protocol,
        roots: entry.roots.iter().map(root).collect::<Result<_, _>>()?,
        log_level: entry.log_level,
        ping: entry.ping_interval,
    })
}

/// The variables of a file.
fn variables_in(
    file: &str,
    words: Words<'_>,
    folder: &Path,
) -> Result<BTreeMap<String, String>, String> {
    let path = folder.join(words.path(file).map_err(|error| error.to_string())?);
    let of_file = |problem: String| format!("its `env_file` {}: {problem}", path.display());
    let text = files::read_text(&path, CONFIGURATION)
        .map_err(|error| of_file(format!("it cannot be read: {error}")))?;
    match text.contains('\0') {
        true => Err(of_file("there is a zero byte in it".into())),
        false => dotenv::parse(&text).map_err(|error| of_file(error.to_string())),
    }
}
