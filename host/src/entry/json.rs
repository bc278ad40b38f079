//! Files with MCP servers as editors and agents share them: `.mcp.json` of a project, `servers.json`
//! of a user.
//!
//! They have `mcpServers`, or `servers` as VS Code calls them; comments and trailing commas are
//! allowed. What else is in them is for other programs, and ignored.

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Map, Value};

use super::{FIELDS, McpEntry};

/// Members of the file that have servers in them, the first goes before the second.
const SERVERS: [&str; 2] = ["mcpServers", "servers"];

/// What is wrong with a file, and on which line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(crate) struct JsonError {
    line: usize,
    problem: String,
}

/// A server of a file: its name, and its entry or what is wrong with it.
pub(crate) type Server = (String, Result<McpEntry, String>);

/// The servers that a file names. One that cannot be understood is no problem of the others.
pub(crate) fn servers(text: &str) -> Result<Vec<Server>, JsonError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut file = match parse_to_serde_value::<Option<Value>>(text, &ParseOptions::default()) {
        Ok(Some(Value::Object(file))) => file,
        Ok(_) => return Err(JsonError { line: 1, problem: "it is no JSON object".into() }),
        Err(error) => {
            let problem = error.kind().to_string();
            return Err(JsonError { line: error.line_display(), problem });
        }
    };
    let mut servers: Vec<Server> = Vec::new();
    for member in SERVERS {
        let named = match file.remove(member) {
            None => continue,
            Some(Value::Object(named)) => named,
            Some(_) => {
                let line = line_of(text, member);
                return Err(JsonError { line, problem: format!("`{member}` is no object") });
            }
        };
        for (name, entry) in named {
            if !servers.iter().any(|(known, _)| *known == name) {
                let entry = self::entry(&name, entry);
                servers.push((name, entry));
            }
        }
    }
    Ok(servers)
}

/// The line on which a member is first named.
fn line_of(text: &str, member: &str) -> usize {
    let place = text.find(&format!("\"{member}\"")).unwrap_or(0);
    crate::config::line_of(text, place)
}

fn entry(name: &str, entry: Value) -> Result<McpEntry, String> {
    let Value::Object(entry) = entry else { return Err("it is no object".into()) };
    let mut known = Map::new();
    for (member, value) in entry {
        let field = snake(&member);
        // `name` is in some of them, beside the one that counts.
        if field == "name" || !FIELDS.contains(&&*field) || value.is_null() {
            continue;
        }
        let value = match &*field {
            "timeout" | "tool_timeout" | "startup_timeout" | "ping_interval" => time(value),
            "env" | "headers" => texts(value),
            _ => value,
        };
        if known.insert(field.clone(), value).is_some() {
            return Err(format!("it has `{field}` twice"));
        }
    }
    let entry: McpEntry =
        serde_json::from_value(Value::Object(known)).map_err(|error| error.to_string())?;
    Ok(McpEntry { name: name.into(), ..entry })
}

/// `envFile` as `env_file`.
fn snake(member: &str) -> String {
    let mut snake = String::with_capacity(member.len() + 2);
    for c in member.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Numbers are milliseconds here.
fn time(value: Value) -> Value {
    match value.as_u64() {
        Some(millis) => format!("{millis}ms").into(),
        None => value,
    }
}

/// What other programs take for the texts that they are made to.
fn texts(value: Value) -> Value {
    let Value::Object(members) = value else { return value };
    let text = |(name, value): (String, Value)| match value {
        Value::Null => None,
        Value::Number(_) | Value::Bool(_) => Some((name, value.to_string().into())),
        value => Some((name, value)),
    };
    Value::Object(members.into_iter().filter_map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn one(entry: &str) -> Result<McpEntry, String> {
        let mut servers = servers(&format!("{{\"mcpServers\": {{\"s\": {entry}}}}}")).unwrap();
        servers.remove(0).1
    }

    #[test]
    fn entries_are_read_as_other_programs_write_them() {
        let entry = one(r#"{
            "type": "stdio", "command": "c", "args": ["a"], "env": {"N": 1, "T": true, "X": null},
            "envFile": ".env", "envVars": ["HTTP_PROXY"], "timeout": 1500, "startupTimeout": "2s",
            "disabled": true, "alwaysAllow": ["x"], "name": "other", "enabledTools": ["t"],
            "envPolicy": "filtered", "protocol": "modern", "logLevel": "notice",
        }"#)
        .unwrap();
        assert_eq!((&*entry.name, &*entry.command), ("s", "c"));
        let env = [("N", "1"), ("T", "true")].map(|(n, v)| (n.to_string(), v.to_string()));
        assert_eq!(entry.env, env.into());
        assert_eq!(entry.timeout, Some(Duration::from_millis(1500)));
        assert_eq!(entry.startup_timeout, Some(Duration::from_secs(2)));
        assert_eq!(entry.env_file.as_deref(), Some(".env"));
        assert_eq!(entry.env_policy, super::super::EnvironmentPolicy::Filtered);
        assert!(!entry.is_enabled());
        let remote = one(r#"{"type": "streamable-http", "url": "u"}"#).unwrap();
        assert_eq!(remote.transport, Some(super::super::Transport::Http));
    }

    #[test]
    fn what_is_wrong_with_an_entry_is_said_of_it() {
        let check = |entry: &str, expected: &str| assert_eq!(one(entry).unwrap_err(), expected);
        check("3", "it is no object");
        check("{\"command\": 3}", "invalid type: integer `3`, expected a string");
        check("{\"envFile\": \"a\", \"env_file\": \"b\"}", "it has `env_file` twice");
        check("{\"timeout\": 0}", "a time must be more than nothing");
        check(
            "{\"type\": \"carrier-pigeon\"}",
            "unknown variant `carrier-pigeon`, expected one of `stdio`, `http`, `streamable-http`, \
             `streamableHttp`, `sse`",
        );
    }

    #[test]
    fn files_are_read() {
        let names = |text: &str| {
            let servers = servers(text).map_err(|error| error.to_string())?;
            Ok::<_, String>(servers.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        let check = |text: &str, expected: &[&str]| assert_eq!(names(text).unwrap(), expected);
        check("{}", &[]);
        check("\u{feff}{\"inputs\": [{}], \"servers\": {\"a\": {}}}", &["a"]);
        check("{ // why\n\"servers\": {\"a\": {},}, \"mcpServers\": {\"b\": 1}, }", &["b", "a"]);
        let check = |text: &str, expected: &str| assert_eq!(names(text).unwrap_err(), expected);
        check("", "line 1: it is no JSON object");
        check("[]", "line 1: it is no JSON object");
        check("{\n\"servers\": []}", "line 2: `servers` is no object");
        let error = names("{\n\"servers\": {\n\"a\": }}").unwrap_err();
        assert!(error.starts_with("line 3: "), "{error}");
    }
}
