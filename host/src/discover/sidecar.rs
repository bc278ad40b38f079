//! `.mcp.json` beside a manifest: the server of a bridge whose manifest names none.
//!
//! The file is the one that editors and agents read (`mcpServers`, or `servers` as VS Code calls
//! it); comments and trailing commas are allowed.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

use crate::files::{self, CONFIGURATION};
use crate::manifest::Subprocess;

/// The name of the file.
pub(super) const FILE_NAME: &str = ".mcp.json";

#[derive(Deserialize)]
struct File {
    #[serde(default, rename = "mcpServers", alias = "servers")]
    servers: BTreeMap<String, Entry>,
}

/// One server. Other members are for other programs.
#[derive(Deserialize)]
struct Entry {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
}

/// The server that a plugin's `.mcp.json` names: the one with the plugin's id, or the only one.
pub(super) fn read(folder: &Path, id: &str) -> Result<Subprocess, String> {
    let text = files::read_text(&folder.join(FILE_NAME), CONFIGURATION).map_err(|error| {
        format!("its manifest names no server under [runtime.subprocess], and {FILE_NAME} cannot be read: {error}")
    })?;
    let mut file: File = parse(&text).map_err(|problem| format!("{FILE_NAME}: {problem}"))?;
    let only = (file.servers.len() == 1).then(|| file.servers.keys().next().cloned()).flatten();
    let name = if file.servers.contains_key(id) { Some(id.to_string()) } else { only };
    match name.and_then(|name| file.servers.remove(&name)) {
        Some(Entry { command, args, env, cwd }) => {
            Ok(Subprocess { binary_path: command, args, env, cwd })
        }
        None => Err(format!(
            "{FILE_NAME} has {} servers and none is named \"{id}\"",
            file.servers.len()
        )),
    }
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), text).unwrap();
        match (read(folder.path(), "me"), expected) {
            (Ok(server), Ok(command)) => assert_eq!(server.binary_path, command),
            (Err(problem), Err(expected)) => assert!(problem.contains(expected), "{problem}"),
            (result, _) => panic!("{text}: {result:?}"),
        }
    }

    #[test]
    fn rows() {
        check(r#"{"mcpServers": {"any": {"command": "a"}}}"#, Ok("a"));
        check(r#"{"servers": {"you": {"command": "a"}, "me": {"command": "b"}}}"#, Ok("b"));
        check(
            "{ // comments\n \"servers\": {\"me\": {\"command\": \"b\", \"type\": \"stdio\",},}, }",
            Ok("b"),
        );
        check(r#"{"servers": {"a": {"command": "a"}, "b": {"command": "b"}}}"#, Err("2 servers"));
        check(r#"{"servers": {"a": {"args": []}}}"#, Err("missing field `command`"));
        check("{", Err(".mcp.json: "));
    }
}
