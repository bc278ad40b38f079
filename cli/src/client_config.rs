//! The entries with which MCP clients find `tenon serve`, in the words of each client.
//!
//! Sources: the documentation of [Claude Code](https://docs.anthropic.com/en/docs/claude-code/mcp),
//! [Claude Desktop](https://modelcontextprotocol.io/docs/develop/connect-local-servers),
//! [VS Code](https://code.visualstudio.com/docs/copilot/reference/mcp-configuration),
//! [Cursor](https://cursor.com/docs/context/mcp), [Codex](https://developers.openai.com/codex/mcp) and
//! [Gemini CLI](https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md).

use serde_json::{Value, json};
use std::path::Path;

/// An MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum McpClient {
    ClaudeCode,
    ClaudeDesktop,
    Vscode,
    Cursor,
    Codex,
    Gemini,
}

/// How a client reaches the server.
pub(crate) enum Connection<'a> {
    /// It starts the command in a folder.
    Stdio { program: &'a Path, arguments: &'a [String] },
    /// It sends requests to an address, with a token where one is asked for.
    Http { url: &'a str, token: Option<&'a str> },
}

/// The name under which clients have the server.
const NAME: &str = "tenon";

impl McpClient {
    /// The file for the entry. It is the user's own: the entry names a folder of this machine, or has a token.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::ClaudeCode => "~/.claude.json",
            Self::ClaudeDesktop => "claude_desktop_config.json (Settings, Developer, Edit Config)",
            Self::Vscode => "the user's mcp.json (command MCP: Open User Configuration)",
            Self::Cursor => "~/.cursor/mcp.json",
            Self::Codex => "~/.codex/config.toml",
            Self::Gemini => "~/.gemini/settings.json",
        }
    }

    /// The entry. An error where the client has no such connection.
    pub(crate) fn entry(self, connection: &Connection<'_>) -> Result<String, String> {
        let servers = match self {
            Self::Codex => return Ok(codex(connection)),
            Self::Vscode => "servers",
            _ => "mcpServers",
        };
        let entry = match connection {
            Connection::Stdio { program, arguments } => {
                let mut entry = json!({ "command": program.to_string_lossy(), "args": arguments });
                if matches!(self, Self::ClaudeCode | Self::Vscode) {
                    entry["type"] = "stdio".into();
                }
                entry
            }
            Connection::Http { url, token } => {
                let mut entry = match self {
                    Self::ClaudeDesktop => {
                        return Err("Claude Desktop starts servers by its file, and has others added in its settings: leave out `--http`".into());
                    }
                    Self::Gemini => json!({ "httpUrl": url }),
                    Self::Cursor => json!({ "url": url }),
                    _ => json!({ "type": "http", "url": url }),
                };
                if let Some(token) = token {
                    entry["headers"] = json!({ "Authorization": format!("Bearer {token}") });
                }
                entry
            }
        };
        Ok(pretty(&json!({ servers: { NAME: entry } })))
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

fn codex(connection: &Connection<'_>) -> String {
    let mut entry = toml::Table::new();
    match connection {
        Connection::Stdio { program, arguments } => {
            entry.insert("command".into(), program.to_string_lossy().into_owned().into());
            entry.insert("args".into(), arguments.to_vec().into());
        }
        Connection::Http { url, token } => {
            entry.insert("url".into(), (*url).into());
            if let Some(token) = token {
                let header = format!("Bearer {token}");
                let headers =
                    toml::Table::from_iter([("Authorization".to_string(), header.into())]);
                entry.insert("http_headers".into(), headers.into());
            }
        }
    }
    let servers = toml::Table::from_iter([(NAME.to_string(), toml::Value::Table(entry))]);
    let file = toml::Table::from_iter([("mcp_servers".to_string(), toml::Value::Table(servers))]);
    file.to_string().trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn each_client_has_its_entry_in_its_own_words() {
        let arguments = ["serve".to_string()];
        let stdio = Connection::Stdio { program: Path::new("/bin/tenon"), arguments: &arguments };
        let http = Connection::Http { url: "http://127.0.0.1:7331/mcp", token: Some("t") };
        for client in McpClient::value_variants() {
            let of_stdio = client.entry(&stdio).unwrap();
            assert!(of_stdio.contains("/bin/tenon") && of_stdio.contains("serve"), "{of_stdio}");
            match client.entry(&http) {
                Ok(of_http) => {
                    assert!(of_http.contains("/mcp") && of_http.contains("Bearer t"), "{of_http}");
                }
                Err(_) => assert_eq!(*client, McpClient::ClaudeDesktop),
            }
        }
        let read = |entry: String| serde_json::from_str::<Value>(&entry).unwrap();
        let entry = read(McpClient::ClaudeCode.entry(&stdio).unwrap());
        let expected = json!({ "type": "stdio", "command": "/bin/tenon", "args": ["serve"] });
        assert_eq!(entry["mcpServers"]["tenon"], expected);
        assert!(read(McpClient::Vscode.entry(&http).unwrap())["servers"]["tenon"].is_object());
        let entry: toml::Table = McpClient::Codex.entry(&http).unwrap().parse().unwrap();
        let entry = &entry["mcp_servers"]["tenon"];
        assert_eq!(entry["http_headers"]["Authorization"].as_str(), Some("Bearer t"));
    }
}
