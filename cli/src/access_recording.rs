//! Recordings of servers: the calls that are made meanwhile, and what was recorded, for people and in JSON, with the grants
//! that would allow it.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tenon_config::diagnostic::chain;
use tenon_config::grant::{FILESYSTEM, NETWORK, PathKind, ProtectedPaths, file_grants};
use tenon_host::types::text::one_line;
use tenon_host::{AccessRecorder, HostEnvironment, Platform, Tool, UngrantedAccesses};

use crate::error::{Error, Exit};
use crate::tool_arguments::RawArguments;
use crate::{open, output};

/// The most lines of one kind that are shown to people.
const MAX_LINES: usize = 20;

/// Calls of a server that is recorded.
pub(crate) struct CallsToMake(Vec<(String, RawArguments)>);

impl CallsToMake {
    /// Reads calls: each a tool, by its own name or by that which callers use, and arguments as `tenon call` takes them.
    pub(crate) fn parse(calls: &[String]) -> Result<Self, Error> {
        let parse = |call: &String| {
            let call = call.trim();
            let (tool, rest) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
            if tool.is_empty() {
                return Err(Error::Input("`--call` has no tool".into()));
            }
            Ok((tool.to_string(), RawArguments::parse_line(rest)?))
        };
        calls.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Makes the calls, and says which fail.
    pub(crate) async fn make(self, platform: &Platform, server: &str) -> Exit {
        let mut code = Exit::Success;
        for (tool, arguments) in self.0 {
            let registry = platform.registry();
            let is_it = |own: &Tool| own.definition.name == tool || own.name.to_string() == tool;
            let mut tools = registry.tools().filter(|(plugin, _)| **plugin.id() == *server);
            let name = tools.find(|(_, own)| is_it(own)).map(|(_, own)| own.name.to_string());
            let name = name.unwrap_or(tool);
            let call = arguments.call(platform, name.clone(), open::caller(None));
            let problem = match platform.call(call).await {
                Ok(result) if result.is_error => result.plain_text(),
                Ok(_) => continue,
                Err(error) => chain(&error),
            };
            output::note(&format!("{name} failed: {}", one_line(&problem)));
            code = Exit::Failed;
        }
        code
    }
}

/// What was recorded, and the grants.
pub(crate) struct RecordingReport {
    attempts: UngrantedAccesses,
    /// What is missing, and all that would be granted with it, by the names of capabilities.
    missing: BTreeMap<&'static str, Vec<String>>,
    capabilities: BTreeMap<String, Vec<String>>,
    home: Option<PathBuf>,
}

/// An error of a recorder's.
pub(crate) fn failed(error: std::io::Error) -> Error {
    Error::Host(format!("the server cannot be recorded: {error}"))
}

impl RecordingReport {
    /// What was recorded of a server which was granted this.
    pub(crate) fn of(
        recorder: &AccessRecorder,
        granted: &BTreeMap<String, Vec<String>>,
    ) -> Result<Self, Error> {
        let attempts = recorder.attempts().map_err(failed)?;
        recorder.remove();
        let environment = HostEnvironment::of_process();
        let kind = |path: &Path| kind_of(path, &environment);
        let home = environment.home.as_deref();
        let files = file_grants(&attempts.reads, &attempts.writes, home, kind);
        let urls = attempts.urls.iter().cloned().collect();
        let missing = [(FILESYSTEM, files), (NETWORK, urls)];
        let missing = missing.into_iter().filter(|(_, values): &(_, Vec<_>)| !values.is_empty());
        let missing: BTreeMap<_, _> = missing.collect();
        let mut capabilities = granted.clone();
        if let (Some(home), Some(values)) = (home, capabilities.get_mut(FILESYSTEM)) {
            // As somebody writes them.
            let begin = format!(":{}/", home.display());
            values.iter_mut().for_each(|value| *value = value.replacen(&begin, ":~/", 1));
        }
        for (name, values) in &missing {
            let all = capabilities.entry(name.to_string()).or_default();
            all.extend(
                values.iter().filter(|value| !all.contains(value)).cloned().collect::<Vec<_>>(),
            );
        }
        Ok(Self { attempts, missing, capabilities, home: environment.home.clone() })
    }

    pub(crate) fn to_json(&self) -> Value {
        let UngrantedAccesses { reads, writes, urls, connections, .. } = &self.attempts;
        json!({
            "reads": reads,
            "writes": writes,
            "urls": urls,
            "connections": connections,
            "missing": self.missing,
            "capabilities": self.capabilities,
        })
    }

    /// Prints what was recorded.
    pub(crate) fn print(
        &self,
        server: &str,
        verb: &str,
        file: &Path,
        called: Exit,
    ) -> Result<(), Error> {
        let shown_file = file.display();
        let UngrantedAccesses { reads, writes, urls, connections, .. } = &self.attempts;
        let path = |path: &PathBuf| match self.home.as_ref().map(|home| path.strip_prefix(home)) {
            Some(Ok(own)) => format!("~/{}", own.display()),
            _ => path.display().to_string(),
        };
        let kinds: [(&str, Vec<String>); 4] = [
            ("read", reads.iter().map(path).collect()),
            ("write", writes.iter().map(path).collect()),
            ("request", urls.iter().cloned().collect()),
            ("connect", connections.iter().map(ToString::to_string).collect()),
        ];
        if kinds.iter().all(|(_, lines)| lines.is_empty()) {
            let so_far = if called == Exit::Success { "" } else { ", as far as it came" };
            output::line(format!("{server} {verb} nothing that it has no grant for{so_far}"))?;
            if called != Exit::Success {
                output::line("What fails may need more than it came to: nothing is proposed.")?;
            } else if self.capabilities.is_empty() {
                output::line(format!("Its entry in {shown_file} may have `capabilities = {{}}`"))?;
            }
            return Ok(());
        }
        output::line(format!("{server} {verb}:"))?;
        for (kind, lines) in kinds {
            for line in lines.iter().take(MAX_LINES) {
                output::line(format!("  {kind:<8} {}", one_line(line)))?;
            }
            if let Some(more @ 1..) = lines.len().checked_sub(MAX_LINES) {
                output::line(format!("  {kind:<8} and {more} more"))?;
            }
        }
        if !connections.is_empty() {
            output::line(
                "No grant allows `connect`: a program reaches hosts by HTTP_PROXY and HTTPS_PROXY, and no others.",
            )?;
        }
        if self.missing.is_empty() {
            return Ok(());
        }
        output::line(format!("To grant that, its `capabilities` in {shown_file} have:"))?;
        if file.extension().is_some_and(|extension| extension == "json") {
            output::line(format!("  \"capabilities\": {}", json!(self.capabilities)))?;
            return self.print_next(server);
        }
        for (name, values) in &self.capabilities {
            let values: Vec<toml::Value> =
                values.iter().cloned().map(toml::Value::String).collect();
            output::line(format!("  {name} = {}", toml::Value::Array(values)))?;
        }
        self.print_next(server)
    }

    fn print_next(&self, server: &str) -> Result<(), Error> {
        output::line(format!(
            "Then `tenon approve {server}`, and try again: behind what is refused there may be more."
        ))
    }
}

/// What a path is for who proposes grants.
fn kind_of(path: &Path, environment: &HostEnvironment) -> PathKind {
    if environment.own_folders().any(|folder| path.starts_with(folder)) {
        return PathKind::Own;
    }
    let holds_keys = |part: &Path| ProtectedPaths::secret_names().any(|name| part.ends_with(name));
    if path.ancestors().any(holds_keys) {
        return PathKind::Secret;
    }
    if path.is_dir() { PathKind::Folder } else { PathKind::File }
}
