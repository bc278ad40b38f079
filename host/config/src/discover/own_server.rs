//! Entries of which a served platform would be its own server: it would start itself, without end.
//!
//! A project's file for MCP servers is one that MCP clients read as well, so the entry with which they find
//! `tenon serve` may stand in it. Where nobody can see from an entry what it starts, as with a script, the variable
//! [`SERVED_VARIABLE`] tells.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Candidate, CodeSource, Remote, ServerCommand, ServerLocation, SkipReason, Sources};
use crate::files::{Digest, absolute, exact, real_or_absolute};

/// The variable with which a platform that is served tells what it starts which projects are served already: digests of
/// their folders or configuration files, with `:` between them. Every server inherits it.
pub const SERVED_VARIABLE: &str = "TENON_SERVED";

/// The name of the command.
const COMMAND: &str = "tenon";

impl Sources {
    /// What names these sources among those that are served: the project's folder, or else the first configuration file.
    pub fn served_as(&self) -> PathBuf {
        let config = || self.configs.first().map(|config| config.path.clone());
        real_or_absolute(&self.workspace.clone().or_else(config).unwrap_or_default())
    }

    /// Notes that these sources are served, for what is started from now on.
    ///
    /// # Errors
    ///
    /// Gives what names them where what has started this process serves them already.
    pub fn note_served(&mut self) -> Result<(), PathBuf> {
        let path = self.served_as();
        // A path may have any character. So much of a digest is of one path alone.
        let own = Digest::of(exact(&path)).to_string();
        let environment = &mut self.host_environment.environment;
        let outer = environment.get(OsStr::new(SERVED_VARIABLE));
        let outer = outer.and_then(|outer| outer.to_str()).unwrap_or_default();
        if outer.split(':').any(|served| served == own) {
            return Err(path);
        }
        let all = [outer, &own].join(":");
        environment.insert(OsString::from(SERVED_VARIABLE), all.trim_start_matches(':').into());
        Ok(())
    }
}

/// Which candidates are the platform's own server.
pub(super) fn own_servers(candidates: &[Candidate], sources: &Sources) -> Vec<Option<SkipReason>> {
    // A project is served by its folder, or by its file alone.
    let configs = sources.configs.iter().filter(|config| config.is_of_file());
    let configs = configs.map(|config| real_or_absolute(&config.path));
    let own: Vec<PathBuf> = configs.chain([sources.served_as()]).collect();
    let is_own = |candidate: &Candidate| match &candidate.source {
        CodeSource::Mcp(server) => match &server.place {
            ServerLocation::Child(program) => serves(program, &own),
            ServerLocation::Remote(remote) => is_at(remote, sources),
        },
        _ => false,
    };
    candidates.iter().map(|candidate| is_own(candidate).then_some(SkipReason::OwnServer)).collect()
}

/// Whether a program is the command that serves these sources.
fn serves(program: &ServerCommand, own: &[PathBuf]) -> bool {
    let is_command =
        program.program.file_stem().is_some_and(|name| name.eq_ignore_ascii_case(COMMAND));
    let arguments = &program.arguments;
    if !is_command || !arguments.iter().any(|argument| argument == "serve") {
        return false;
    }
    let folder = absolute(program.folder.as_deref().unwrap_or(Path::new("")));
    let named = ["--config", "--project"].iter().find_map(|option| value_of(arguments, option));
    own.contains(&real_or_absolute(&folder.join(named.unwrap_or_default())))
}

/// The value of an option of the command.
fn value_of<'a>(arguments: &'a [String], option: &str) -> Option<&'a str> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.strip_prefix(option) {
            Some("") => return rest.next().map(String::as_str),
            Some(value) if value.starts_with('=') => return Some(&value[1..]),
            _ => {}
        }
    }
    None
}

/// Whether a server elsewhere is at the address at which these sources are served.
fn is_at(remote: &Remote, sources: &Sources) -> bool {
    let Some(address) = sources.served_at else { return false };
    let is_host = match remote.url.host() {
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(url::Host::Ipv4(ip)) => address.ip() == ip || ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => {
            let ip = ip.to_canonical();
            address.ip() == ip || ip.is_loopback()
        }
        None => false,
    };
    is_host && remote.url.port_or_known_default() == Some(address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::discover;
    use crate::{Config, HostEnvironment};
    use std::fs;

    #[test]
    fn the_entry_of_a_client_is_no_server_of_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        fs::create_dir_all(project.join("inner")).unwrap();
        fs::create_dir(folder.path().join("other")).unwrap();
        let check = |entry: &str, is_own: bool| {
            let text = format!(r#"{{ "mcpServers": {{ "it": {entry} }} }}"#);
            fs::write(
                project.join(".mcp.json"),
                text.replace("PROJECT", project.to_str().unwrap()),
            )
            .unwrap();
            let sources = Sources {
                configs: vec![Config::of_optional_file(project.join("tenon.toml"))],
                workspace: Some(project.clone()),
                served_at: Some("127.0.0.1:7331".parse().unwrap()),
                ..Sources::default()
            };
            let found = discover(&sources);
            let reasons: Vec<_> = found.left_out.iter().map(|left| left.reason.clone()).collect();
            assert_eq!(found.candidates.len() + reasons.len(), 1, "{entry}: {found:?}");
            assert_eq!(reasons == [SkipReason::OwnServer], is_own, "{entry}: {reasons:?}");
        };
        let child = |arguments: &str, is_own| {
            for command in ["tenon", "/usr/bin/tenon", "/somewhere/tenon.exe"] {
                check(&format!(r#"{{ "command": "{command}", "args": [{arguments}] }}"#), is_own);
            }
        };
        child(r#""serve""#, true);
        child(r#""--trust", "serve", "--prefix", "false""#, true);
        child(r#""serve", "--project", "PROJECT""#, true);
        child(r#""serve", "--project=PROJECT/inner/..""#, true);
        child(r#""--project", ".", "serve""#, true);
        child(r#""serve", "--project", "../other""#, false);
        child(r#""serve", "--config", "tenon.toml""#, true);
        child(r#""serve", "--config", "other.toml""#, false);
        child(r#""tools""#, false);
        check(r#"{ "command": "other", "args": ["serve"] }"#, false);
        check(r#"{ "type": "http", "url": "http://127.0.0.1:7331/mcp" }"#, true);
        check(r#"{ "type": "http", "url": "http://localhost:7331/mcp/p/x" }"#, true);
        check(r#"{ "type": "http", "url": "http://[::1]:7331/mcp" }"#, true);
        check(r#"{ "type": "http", "url": "http://[::ffff:127.0.0.1]:7331/mcp" }"#, true);
        check(r#"{ "type": "http", "url": "http://127.0.0.1:7332/mcp" }"#, false);
        check(r#"{ "type": "http", "url": "http://10.0.0.1:7331/mcp" }"#, false);
    }

    #[test]
    fn what_is_served_is_not_served_again_below() {
        let sources = |config: &str, outer: &HostEnvironment| Sources {
            configs: vec![Config::parse("", config).unwrap()],
            host_environment: outer.clone(),
            ..Sources::default()
        };
        let mut outer = sources("/a/tenon.toml", &HostEnvironment::default());
        outer.note_served().unwrap();
        let mut inner = sources("/b/tenon.toml", &outer.host_environment);
        inner.note_served().unwrap();
        let mut inmost = sources("/a:b/tenon.toml", &inner.host_environment);
        inmost.note_served().unwrap();
        inner.host_environment = inmost.host_environment;
        for config in ["/a/tenon.toml", "/b/tenon.toml", "/a:b/tenon.toml"] {
            let again = sources(config, &inner.host_environment).note_served();
            assert_eq!(again, Err(config.into()));
        }
    }
}
