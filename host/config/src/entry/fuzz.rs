//! Files with MCP servers of any text.

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;
use std::collections::HashSet;

use super::json::read;

/// Any text. What is wrong with it is on one of its lines; what is right means the same when it is
/// written in another way.
pub fn mcp_json(text: &str) {
    let found = match read(text).servers {
        Ok(found) => found,
        Err(error) => {
            let line = error.line();
            let lines = 1..=text.split('\n').count();
            assert!(lines.contains(&line), "there is no line {line}: {error}");
            return;
        }
    };
    let mut names = HashSet::new();
    for (name, entry) in &found {
        assert!(names.insert(name), "{name:?} is there twice");
        match entry {
            Ok(entry) => assert_eq!(&entry.name, name),
            Err(problem) => assert!(!problem.trim().is_empty(), "{name:?} is wrong for no reason"),
        }
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let file = parse_to_serde_value::<Value>(text, &ParseOptions::default());
    let written = file.expect("it was read").to_string();
    let again = read(&written).servers.expect("it can be read again");
    assert_eq!(again, found, "written as:\n{written}");
}
