//! `[hooks]` of a manifest: the hook points that an MCP server handles, each by one of its tools.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use tenon_types::{HookMode, HookPoint, HookRegistration};

/// A hook point that a tool of a server handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerHook {
    /// The point, and how its outcome counts.
    pub registration: HookRegistration,
    /// The tool, as the server names it.
    pub tool: String,
}

/// A row of the table: the tool's name, or a table.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the name of a tool, or a table with `tool`, `mode` and `priority`")]
enum ServerHookEntry {
    Tool(String),
    Table(ServerHookTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerHookTable {
    tool: String,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    priority: i32,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Enforce,
    Audit,
}

/// Reads the table.
pub(crate) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<ServerHook>, D::Error> {
    let rows = BTreeMap::<String, ServerHookEntry>::deserialize(deserializer)?;
    let hook = |(point, row): (String, ServerHookEntry)| {
        let point: HookPoint = point.parse().map_err(serde::de::Error::custom)?;
        let (tool, mode, priority) = match row {
            ServerHookEntry::Tool(tool) => (tool, Mode::default(), 0),
            ServerHookEntry::Table(ServerHookTable { tool, mode, priority }) => {
                (tool, mode, priority)
            }
        };
        if tool.is_empty() {
            return Err(serde::de::Error::custom(format!("`{point}` names no tool")));
        }
        let mode = match mode {
            Mode::Enforce => HookMode::Enforce,
            Mode::Audit => HookMode::Audit,
        };
        let registration = HookRegistration { mode, priority, ..HookRegistration::new(point) };
        Ok(ServerHook { registration, tool })
    };
    rows.into_iter().map(hook).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Table {
        #[serde(deserialize_with = "read")]
        hooks: Vec<ServerHook>,
    }

    #[test]
    fn a_point_is_mapped_to_a_tool() {
        let check = |text: &str, expected: Result<(&str, &str, HookMode, i32), &str>| {
            let read = toml::from_str::<Table>(&format!("[hooks]\n{text}"));
            match (read, expected) {
                (Ok(table), Ok((point, tool, mode, priority))) => {
                    let hook = &table.hooks[0];
                    let of = &hook.registration;
                    let read = (of.point.to_string(), &*hook.tool, of.mode, of.priority);
                    assert_eq!(read, (point.to_string(), tool, mode, priority), "{text}");
                }
                (Err(error), Err(expected)) => {
                    assert!(error.message().contains(expected), "{text}: {error}");
                }
                (read, _) => panic!("{text}: {:?}", read.map(|table| table.hooks)),
            }
        };
        let (enforce, audit) = (HookMode::Enforce, HookMode::Audit);
        check("before-tool-call = \"check\"", Ok(("before-tool-call", "check", enforce, 0)));
        check("\"acme:deploy\" = \"check\"", Ok(("acme:deploy", "check", enforce, 0)));
        let table = "message-sending = { tool = \"t\", mode = \"audit\", priority = -5 }";
        check(table, Ok(("message-sending", "t", audit, -5)));
        check("before-tool-cal = \"check\"", Err("did you mean \"before-tool-call\"?"));
        check("before-tool-call = 3", Err("the name of a tool, or a table"));
        check("before-tool-call = { mode = \"audit\" }", Err("the name of a tool, or a table"));
        check("before-tool-call = \"\"", Err("names no tool"));
    }
}
