//! `.mcp.json` beside a manifest: the server of a bridge whose manifest names none.
//!
//! The file is the one that editors and agents share; see [`crate::entry::json`].

use std::path::{Path, PathBuf};

use crate::entry::{McpEntry, json};
use crate::files::{self, Digest, MAX_CONFIGURATION_BYTES};

/// The name of the file.
pub(super) const FILE_NAME: &str = ".mcp.json";

/// The server that a plugin's `.mcp.json` names: the one with the plugin's id, or the only one.
/// Gives the file and its content, too.
pub(super) fn read(folder: &Path, id: &str) -> Result<(McpEntry, PathBuf, Digest), String> {
    let path = folder.join(FILE_NAME);
    let text = files::read_text(&path, MAX_CONFIGURATION_BYTES).map_err(|error| {
        format!("its manifest names no server under [runtime.subprocess], and {FILE_NAME} cannot be read: {error}")
    })?;
    let mut servers = json::read(&text).servers.map_err(|error| format!("{FILE_NAME}: {error}"))?;
    let place = match servers.iter().position(|(name, _)| name == id) {
        None if servers.len() == 1 => 0,
        Some(place) => place,
        None => {
            let many = servers.len();
            return Err(format!("{FILE_NAME} has {many} servers and none is named \"{id}\""));
        }
    };
    let (name, entry) = servers.swap_remove(place);
    let entry = entry.map_err(|problem| format!("{FILE_NAME}: \"{name}\": {problem}"))?;
    Ok((entry, path, Digest::of(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), text).unwrap();
        match (read(folder.path(), "me"), expected) {
            (Ok((server, ..)), Ok(command)) => assert_eq!(server.command, command),
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
        check(r#"{"servers": {"a": {"args": 1}}}"#, Err("\"a\": `args` must be a list of texts"));
        check("{", Err(".mcp.json: "));
    }
}
