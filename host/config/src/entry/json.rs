//! Files with MCP servers as editors and agents share them: `.mcp.json` and `.vscode/mcp.json` of a
//! project, `servers.json` of a user.
//!
//! They have `mcpServers`, or `servers` as VS Code calls them; comments and trailing commas are
//! allowed. What VS Code would ask its user for, in `inputs`, is a secret where it is a password. Else it
//! is what the user said when the project was trusted, a variable, or the default. What else is in the
//! files is for other programs, and ignored.

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tenon_types::name::nearest;

use super::{FIELDS, InputOptions, InputQuestion, McpEntry};

/// Members of the file that have servers in them, the first goes before the second.
const SERVERS: [&str; 2] = ["mcpServers", "servers"];

/// What is wrong with a file, and on which line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct JsonError {
    line: usize,
    problem: String,
}

#[cfg(any(test, fuzzing, feature = "testing"))]
impl JsonError {
    /// The line.
    pub fn line(&self) -> usize {
        self.line
    }
}

/// A server of a file: its name, and its entry or what is wrong with it.
pub type NamedServer = (String, Result<McpEntry, String>);

/// What a file says.
pub struct McpFile {
    /// The servers that it names. One that cannot be understood is no problem of the others.
    pub servers: Result<Vec<NamedServer>, JsonError>,
    /// What it would have its user asked for.
    pub questions: Vec<InputQuestion>,
}

/// Reads a file.
pub fn read(text: &str) -> McpFile {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let problem = match parse_to_serde_value::<Option<Value>>(text, &ParseOptions::default()) {
        Ok(Some(Value::Object(mut file))) => {
            let declared = match file.remove("inputs") {
                Some(Value::Array(declared)) => declared,
                _ => Vec::new(),
            };
            let mut servers = servers(file, &inputs(&declared), text);
            let input_options = Arc::new(all_options(&declared));
            let named = servers.iter_mut().flatten().filter_map(|(_, entry)| entry.as_mut().ok());
            named.for_each(|entry| entry.input_options = input_options.clone());
            return McpFile { servers, questions: questions(&declared, text) };
        }
        Ok(_) => JsonError { line: 1, problem: "it is not a JSON object".into() },
        Err(error) => JsonError { line: error.line_display(), problem: error.kind().to_string() },
    };
    McpFile { servers: Err(problem), questions: Vec::new() }
}

fn servers(
    mut file: Map<String, Value>,
    inputs: &Inputs,
    text: &str,
) -> Result<Vec<NamedServer>, JsonError> {
    let mut servers: Vec<NamedServer> = Vec::new();
    let mut names = HashSet::new();
    for member in SERVERS {
        let named = match file.remove(member) {
            None => continue,
            Some(Value::Object(named)) => named,
            Some(_) => {
                let line = line_of(text, member);
                return Err(JsonError { line, problem: format!("`{member}` is not an object") });
            }
        };
        for (name, entry) in named {
            if names.insert(name.clone()) {
                let entry = self::entry(&name, entry, inputs);
                servers.push((name, entry));
            }
        }
    }
    match misplaced(&file).filter(|_| servers.is_empty()) {
        Some(name) => {
            let problem = format!(
                "`{name}` is unknown; servers stand under `{}` or `{}`",
                SERVERS[0], SERVERS[1]
            );
            Err(JsonError { line: line_of(text, name), problem })
        }
        None => Ok(servers),
    }
}

/// The member of a file that looks like a server, or like several, and is not where servers stand.
fn misplaced(file: &Map<String, Value>) -> Option<&str> {
    let is_server = |value: &Value| value.get("command").or(value.get("url")).is_some();
    let has_servers = |value: &Value| {
        is_server(value) || value.as_object().is_some_and(|named| named.values().any(is_server))
    };
    let (name, _) = file.iter().find(|(_, value)| has_servers(value))?;
    Some(name)
}

/// What a file would have its user asked for, as far as its entries need it: all of its `inputs` but
/// passwords, which are secrets.
fn questions(declared: &[Value], text: &str) -> Vec<InputQuestion> {
    let question = |input: &Value| {
        let id = input["id"].as_str()?;
        let is_asked = input["password"] != true && text.contains(&format!("${{input:{id}}}"));
        let word = |name: &str| input[name].as_str().map(str::to_string);
        is_asked.then(|| InputQuestion {
            id: id.into(),
            description: word("description"),
            default: word("default"),
            options: options(input),
        })
    };
    declared.iter().filter_map(question).collect()
}

/// What an input can be that is picked from a list; nothing where it can be anything.
fn options(input: &Value) -> Vec<String> {
    let listed = input["options"].as_array().filter(|_| input["type"] == "pickString");
    // One that has a label has its value beside it.
    let value = |option: &Value| option.as_str().or(option["value"].as_str()).map(str::to_string);
    listed.into_iter().flatten().filter_map(value).collect()
}

/// The same of all inputs that are, by their ids.
fn all_options(declared: &[Value]) -> InputOptions {
    let named = declared.iter().filter_map(|input| Some((input["id"].as_str()?, options(input))));
    let picked = named.filter(|(_, options)| !options.is_empty());
    picked.map(|(id, options)| (id.to_string(), options)).collect()
}

/// The line on which a member is first named.
fn line_of(text: &str, member: &str) -> usize {
    let place = text.find(&format!("\"{member}\"")).unwrap_or(0);
    crate::toml_parse::line_of(text, place)
}

/// What VS Code asks its user for, as what stands for it in `${…}` here, by its id.
type Inputs = BTreeMap<String, String>;

/// A password is a secret of that name. Everything else is the variable `TENON_INPUT_…`, or what the
/// file says it is where nobody says anything else.
fn inputs(declared: &[Value]) -> Inputs {
    let word = |input: &Value| {
        let id = input["id"].as_str()?;
        let word = match (input["password"].as_bool(), input["default"].as_str()) {
            (Some(true), _) => format!("secret:{id}"),
            (_, Some(default)) => format!("input:{id}:-{default}"),
            (_, None) => format!("input:{id}"),
        };
        Some((id.to_string(), word))
    };
    declared.iter().filter_map(word).collect()
}

/// A value with what stands for inputs in its texts.
fn with_inputs(value: Value, inputs: &Inputs) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => input_words(&text, inputs)?.into(),
        Value::Array(items) => {
            items.into_iter().map(|item| with_inputs(item, inputs)).collect::<Result<_, _>>()?
        }
        Value::Object(members) => {
            let members = members.into_iter();
            let members = members.map(|(name, value)| Ok((name, with_inputs(value, inputs)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
        value => value,
    })
}

fn input_words(text: &str, inputs: &Inputs) -> Result<String, String> {
    const BEGIN: &str = "${input:";
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        // What has no end is told of with all other words.
        let Some((id, after)) = after.split_once('}') else { break };
        let Some(word) = inputs.get(id) else {
            return Err(format!("`${{input:{id}}}` is not one of the file's `inputs`"));
        };
        // It would end before its end, or be expanded itself.
        if word.contains('}') || word.contains("${") {
            return Err(format!("the default of the input `{id}` has `${{` or `}}` in it"));
        }
        words.push_str(&format!("{before}${{{word}}}"));
        rest = after;
    }
    words.push_str(rest);
    Ok(words)
}

fn entry(name: &str, entry: Value, inputs: &Inputs) -> Result<McpEntry, String> {
    let Value::Object(entry) = entry else { return Err("it is not an object".into()) };
    let mut known = Map::new();
    // How each field is written in the file.
    let mut written: BTreeMap<String, String> = BTreeMap::new();
    let mut unknown = Vec::new();
    let mut urls = BTreeMap::new();
    for (member, value) in entry {
        let field = snake(&member);
        if let Some(place) = URLS.iter().position(|url| *url == field) {
            if !value.is_null() {
                urls.insert(place, (member, with_inputs(value, inputs)?));
            }
            continue;
        }
        if !FIELDS.contains(&&*field) {
            unknown.push(member);
            continue;
        }
        // `name` is in some of them, beside the one that counts.
        if field == "name" || value.is_null() {
            continue;
        }
        let value = match (&*field, with_inputs(value, inputs)?) {
            ("timeout" | "tool_timeout" | "startup_timeout" | "ping_interval", value) => {
                time(value)
            }
            ("env" | "headers", value) => texts(value),
            (_, value) => value,
        };
        if known.insert(field.clone(), value).is_some() {
            return Err(format!("it has `{field}` twice"));
        }
        written.insert(field, member);
    }
    if let Some((place, (member, url))) = urls.into_iter().next() {
        if URLS[place] == "http_url"
            && !known.contains_key("type")
            && !known.contains_key("transport")
        {
            known.insert("transport".into(), "http".into());
        }
        known.insert("url".into(), url);
        written.insert("url".into(), member);
    }
    command_and_arguments(&mut known)?;
    for (field, value) in &known {
        let member = written.get(field).unwrap_or(field);
        check(member, field, value)?;
    }
    if !["command", "binary_path", "url"].iter().any(|field| known.contains_key(*field))
        && let Some((member, meant)) =
            unknown.iter().find_map(|member| Some((member, meant(member)?)))
    {
        return Err(format!(
            "it has neither a `command` nor a `url`, and `{member}` is not known; did you mean `{meant}`?"
        ));
    }
    let entry = serde_json::from_value::<McpEntry>(Value::Object(known.clone()));
    let entry = entry.map_err(|error| {
        let alone = known.into_iter().find_map(|(field, value)| {
            let alone = Map::from_iter([(field.clone(), value)]);
            let error = serde_json::from_value::<McpEntry>(Value::Object(alone)).err()?;
            Some(format!("`{}`: {error}", written.get(&field).unwrap_or(&field)))
        });
        alone.unwrap_or_else(|| error.to_string())
    })?;
    Ok(McpEntry { name: name.into(), ..entry })
}

/// The members that say where a server is; the first that is there counts. Gemini CLI has `httpUrl` for
/// a server with Streamable HTTP, Windsurf `serverUrl` for any.
const URLS: [&str; 3] = ["http_url", "url", "server_url"];

/// Where the command is a list, as some programs have it, it begins with the program.
fn command_and_arguments(known: &mut Map<String, Value>) -> Result<(), String> {
    let Some(Value::Array(command)) = known.get_mut("command") else { return Ok(()) };
    let mut command = std::mem::take(command).into_iter();
    let program = command.next().ok_or("`command` is an empty list")?;
    known.insert("command".into(), program);
    let mut arguments: Vec<Value> = command.collect();
    match known.get_mut("args") {
        Some(Value::Array(more)) => {
            arguments.append(more);
            *more = arguments;
        }
        // One that is no list is told of.
        Some(_) => {}
        None => drop(known.insert("args".into(), arguments.into())),
    }
    Ok(())
}

/// Checks that a field has a value of the kind that it has to have.
fn check(member: &str, field: &str, value: &Value) -> Result<(), String> {
    let is_list_of_texts =
        |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
    let (is_right, kind) = match field {
        "args" => (is_list_of_texts(value), "a list of texts, such as [\"-y\", \"a-server\"]"),
        "env_vars" | "enabled_tools" | "disabled_tools" | "roots" => {
            (is_list_of_texts(value), "a list of texts")
        }
        "env" | "headers" => {
            let is_right =
                value.as_object().is_some_and(|members| members.values().all(Value::is_string));
            (is_right, "an object with texts, such as {\"NAME\": \"value\"}")
        }
        "capabilities" => {
            let is_right =
                value.as_object().is_some_and(|members| members.values().all(is_list_of_texts));
            (
                is_right,
                "an object with lists of texts, such as {\"filesystem\": [\"read:~/notes/**\"]}",
            )
        }
        "enabled" | "disabled" => (value.is_boolean(), "true or false"),
        "timeout" | "tool_timeout" | "startup_timeout" | "ping_interval" => {
            (value.is_string(), "a number of seconds, or a text such as \"30s\"")
        }
        _ => (value.is_string(), "a text"),
    };
    if is_right {
        return Ok(());
    }
    let found = match value {
        Value::Array(items) if kind.starts_with("a list") => {
            let other = items.iter().find(|item| !item.is_string()).unwrap_or(&Value::Null);
            return Err(format!("`{member}` must be {kind}; {} is in it", kind_of(other)));
        }
        Value::Object(members) if kind.starts_with("an object") => {
            let is_wrong = |value: &Value| match field {
                "capabilities" => !is_list_of_texts(value),
                _ => !value.is_string(),
            };
            let other = members.iter().find(|(_, value)| is_wrong(value));
            let (name, value) = other.map_or(("", &Value::Null), |(name, value)| (&**name, value));
            return Err(format!("`{member}` must be {kind}; `{name}` is {}", kind_of(value)));
        }
        value => kind_of(value),
    };
    Err(format!("`{member}` must be {kind}; it is {found}"))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Which of the two that an entry needs may be meant by a member that is not known.
fn meant(member: &str) -> Option<&'static str> {
    let member = member.to_ascii_lowercase();
    let other_words = [
        ("command", ["cmd", "program", "executable", "exec"]),
        ("url", ["uri", "endpoint", "address", "href"]),
    ];
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let other = other_words
        .iter()
        .find(|(field, words)| words.contains(&&*member) || letters(field) == letters(&member));
    other.map(|(field, _)| *field).or_else(|| nearest(&member, ["command", "url"].into_iter()))
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

/// The most that a number of seconds is.
const MAX_SECONDS: f64 = 3600.0;

/// Of the programs that share such files, some count in seconds, and at most an hour of them (Cline, Roo
/// Code); the others count in milliseconds (Claude Code, Gemini CLI). So a number of up to 3600 is one
/// of seconds, and a larger one of milliseconds. Who is wrong about it waits too long, and not too
/// short.
fn time(value: Value) -> Value {
    match value.as_f64() {
        Some(seconds) if (0.0..=MAX_SECONDS).contains(&seconds) => {
            format!("{}ms", (seconds * 1000.0).round()).into()
        }
        Some(millis) if millis > MAX_SECONDS => format!("{}ms", millis.round()).into(),
        _ => value,
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
        let mut servers = read(&format!("{{\"mcpServers\": {{\"s\": {entry}}}}}")).servers.unwrap();
        servers.remove(0).1
    }

    #[test]
    fn many_servers_take_no_longer_than_their_text() {
        let names: String = (0..100_000).map(|i| format!("\"s{i}\": {{}},")).collect();
        let file =
            format!("{{\"mcpServers\": {{{names}}}, \"servers\": {{\"s1\": {{}}, \"t\": {{}}}}}}");
        assert_eq!(read(&file).servers.unwrap().len(), 100_001);
    }

    #[test]
    fn entries_are_read_as_other_programs_write_them() {
        let entry = one(r#"{
            "type": "stdio", "command": "c", "args": ["a"], "env": {"N": 1, "T": true, "X": null},
            "envFile": ".env", "envVars": ["HTTP_PROXY"], "timeout": 15000, "startupTimeout": "2s",
            "disabled": true, "alwaysAllow": ["x"], "name": "other", "enabledTools": ["t"],
            "envPolicy": "filtered", "protocol": "modern", "logLevel": "notice",
        }"#)
        .unwrap();
        assert_eq!((&*entry.name, &*entry.command), ("s", "c"));
        let env = [("N", "1"), ("T", "true")].map(|(n, v)| (n.to_string(), v.to_string()));
        assert_eq!(entry.env, env.into());
        assert_eq!(entry.timeout, Some(Duration::from_millis(15_000)));
        assert_eq!(entry.startup_timeout, Some(Duration::from_secs(2)));
        assert_eq!(entry.env_file.as_deref(), Some(".env"));
        assert_eq!(entry.env_policy, super::super::EnvironmentPolicy::Filtered);
        assert!(!entry.is_enabled());
        let remote = one(r#"{"type": "streamable-http", "url": "u"}"#).unwrap();
        assert_eq!(remote.transport, Some(super::super::Transport::Http));
    }

    #[test]
    fn a_number_is_one_of_seconds_or_of_milliseconds() {
        let check = |number: &str, millis: u64| {
            let entry = one(&format!("{{\"command\": \"c\", \"timeout\": {number}}}")).unwrap();
            assert_eq!(entry.timeout, Some(Duration::from_millis(millis)), "{number}");
        };
        check("0.5", 500);
        check("60", 60_000);
        check("3600", 3_600_000);
        check("3601", 3_601);
        check("60000", 60_000);
        check("6e5", 600_000);
    }

    #[test]
    fn where_a_server_is_is_read_as_other_programs_write_it() {
        let check = |entry: &str, url: &str, transport: Option<super::super::Transport>| {
            let entry = one(entry).unwrap();
            assert_eq!((entry.url.as_deref(), entry.transport), (Some(url), transport));
        };
        let http = Some(super::super::Transport::Http);
        check(r#"{"serverUrl": "u"}"#, "u", None);
        check(r#"{"server_url": "u", "url": "v"}"#, "v", None);
        check(r#"{"httpUrl": "u"}"#, "u", http);
        check(r#"{"url": "v", "httpUrl": "u"}"#, "u", http);
        let sse = Some(super::super::Transport::Sse);
        check(r#"{"httpUrl": "u", "type": "sse"}"#, "u", sse);
    }

    #[test]
    fn a_command_that_is_a_list_has_its_arguments() {
        let check = |entry: &str, program: &str, arguments: &[&str]| {
            let entry = one(entry).unwrap();
            assert_eq!(entry.command, program);
            assert_eq!(entry.args, arguments);
        };
        check(r#"{"command": ["npx", "-y", "x"]}"#, "npx", &["-y", "x"]);
        check(r#"{"command": ["npx", "-y"], "args": ["x"]}"#, "npx", &["-y", "x"]);
        check(r#"{"command": ["c"]}"#, "c", &[]);
    }

    #[test]
    fn capabilities_are_what_they_are_in_other_files() {
        let check = |capabilities: &str, expected: Option<&[(&str, &[&str])]>| {
            let entry = one(&format!(r#"{{"command": "x"{capabilities}}}"#)).unwrap();
            let expected = expected.map(|all| {
                let all = all.iter().map(|(name, values)| {
                    (name.to_string(), values.iter().map(ToString::to_string).collect())
                });
                all.collect::<BTreeMap<String, Vec<String>>>()
            });
            assert_eq!(entry.capabilities, expected, "{capabilities}");
        };
        check("", None);
        check(r#", "capabilities": {}"#, Some(&[]));
        check(
            r#", "capabilities": {"filesystem": ["read:~/notes/**"], "network": []}"#,
            Some(&[("filesystem", &["read:~/notes/**"]), ("network", &[])]),
        );
    }

    #[test]
    fn what_is_wrong_with_an_entry_is_said_of_it() {
        let check = |entry: &str, expected: &str| assert_eq!(one(entry).unwrap_err(), expected);
        check("3", "it is not an object");
        check("{\"command\": 3}", "`command` must be a text; it is a number");
        check(
            r#"{"command": "x", "capabilities": {"filesystem": "read:/x"}}"#,
            "`capabilities` must be an object with lists of texts, such as {\"filesystem\": [\"read:~/notes/**\"]}; \
             `filesystem` is a text",
        );
        check("{\"command\": []}", "`command` is an empty list");
        check("{\"command\": [3]}", "`command` must be a text; it is a number");
        check("{\"envFile\": \"a\", \"env_file\": \"b\"}", "it has `env_file` twice");
        check("{\"timeout\": 0}", "`timeout`: a time must be greater than zero");
        check(
            "{\"toolTimeout\": true}",
            "`toolTimeout` must be a number of seconds, or a text such as \"30s\"; it is true or false",
        );
        check(
            r#"{"command": "c", "args": "-y x"}"#,
            r#"`args` must be a list of texts, such as ["-y", "a-server"]; it is a text"#,
        );
        check(
            r#"{"command": "c", "args": ["--port", 80]}"#,
            r#"`args` must be a list of texts, such as ["-y", "a-server"]; a number is in it"#,
        );
        check(
            r#"{"command": "c", "env": ["A=b"]}"#,
            r#"`env` must be an object with texts, such as {"NAME": "value"}; it is a list"#,
        );
        check(
            r#"{"command": "c", "env": {"A": ["b"]}}"#,
            r#"`env` must be an object with texts, such as {"NAME": "value"}; `A` is a list"#,
        );
        check(r#"{"httpUrl": 3}"#, "`httpUrl` must be a text; it is a number");
        check(
            r#"{"type": "http", "ulr": "https://x"}"#,
            "it has neither a `command` nor a `url`, and `ulr` is not known; did you mean `url`?",
        );
        check(
            r#"{"cmd": "c", "args": []}"#,
            "it has neither a `command` nor a `url`, and `cmd` is not known; did you mean `command`?",
        );
        check(
            "{\"type\": \"carrier-pigeon\"}",
            "`type`: unknown variant `carrier-pigeon`, expected one of `stdio`, `http`, \
             `streamable-http`, `streamableHttp`, `sse`",
        );
    }

    #[test]
    fn what_an_editor_would_ask_for_is_a_secret_or_a_variable() {
        let inputs = r#"[
            {"id": "key", "type": "promptString", "password": true, "default": "never"},
            {"id": "host", "type": "promptString", "default": "localhost"},
            {"id": "level", "type": "pickString", "options": ["a", "b"], "default": "a"},
            {"id": "none", "type": "promptString", "description": "?"},
            {"id": "made", "type": "command", "command": "x.y"},
            {"id": "odd", "default": "${HOME}"}, {"id": 3}, 4]"#;
        let check = |text: &str, expected: Result<&str, &str>| {
            let file = format!(
                r#"{{"inputs": {inputs}, "servers": {{"s": {{"command": "c", "args": ["{text}"]}}}}}}"#
            );
            let entry = read(&file).servers.unwrap().remove(0).1;
            let found = entry.as_ref().map(|entry| &*entry.args[0]).map_err(String::as_str);
            assert_eq!(found, expected);
        };
        check("a ${input:key} b", Ok("a ${secret:key} b"));
        check("${input:host}:${input:level}", Ok("${input:host:-localhost}:${input:level:-a}"));
        check("${input:none}${input:made}", Ok("${input:none}${input:made}"));
        check("${input:host", Ok("${input:host"));
        check("${input:x}", Err("`${input:x}` is not one of the file's `inputs`"));
        check("${input:odd}", Err("the default of the input `odd` has `${` or `}` in it"));
    }

    #[test]
    fn what_an_entry_needs_is_asked_for() {
        let file = r#"{ "inputs": [
            { "id": "key", "description": "Which?" }, { "id": "host", "default": "h" },
            { "id": "token", "password": true }, { "id": "unused" }, { "id": 3 } ],
            "servers": { "s": { "command": "${input:key}${input:host}${input:token}" } } }"#;
        let said = |id: &str, description: Option<&str>, default: Option<&str>| InputQuestion {
            id: id.into(),
            description: description.map(Into::into),
            default: default.map(Into::into),
            options: Vec::new(),
        };
        assert_eq!(
            read(file).questions,
            [said("key", Some("Which?"), None), said("host", None, Some("h"))]
        );
        assert_eq!(read("{").questions, []);
        assert_eq!(read(r#"{ "inputs": 3 }"#).questions, []);
    }

    #[test]
    fn what_is_picked_has_options() {
        let check = |input: &str, expected: &[&str]| {
            let file = format!(
                r#"{{ "inputs": [{{ "id": "i", {input} }}], "servers": {{ "s": {{ "command": "${{input:i}}" }} }} }}"#
            );
            let McpFile { servers, questions } = read(&file);
            assert_eq!(questions[0].options, expected, "{input}");
            let entry = servers.unwrap().remove(0).1.unwrap();
            let options = entry.input_options.get("i").map(Vec::as_slice).unwrap_or_default();
            assert_eq!(options, expected, "{input}");
        };
        check(
            r#""type": "pickString", "options": ["a", { "label": "B", "value": "b" }, 3]"#,
            &["a", "b"],
        );
        check(r#""type": "pickString", "options": "a""#, &[]);
        check(r#""type": "pickString""#, &[]);
        check(r#""type": "promptString", "options": ["a"]"#, &[]);
    }

    #[test]
    fn servers_that_stand_elsewhere_are_named() {
        let check = |text: &str, expected: &str| match read(text).servers {
            Ok(servers) => assert_eq!(expected, "", "{text}: {} servers", servers.len()),
            Err(JsonError { problem, .. }) => assert_eq!(problem, expected, "{text}"),
        };
        let elsewhere = "servers stand under `mcpServers` or `servers`";
        check(
            r#"{ "mcpservers": { "a": { "command": "x" } } }"#,
            &format!("`mcpservers` is unknown; {elsewhere}"),
        );
        check(r#"{ "a": { "url": "http://x" } }"#, &format!("`a` is unknown; {elsewhere}"));
        check("{}", "");
        check(r#"{ "inputs": [], "other": { "name": "a" } }"#, "");
        check(
            r#"{ "mcpServers": { "a": { "command": "x" } }, "sandbox": { "command": "y" } }"#,
            "",
        );
    }

    #[test]
    fn files_are_read() {
        let names = |text: &str| {
            let servers = read(text).servers.map_err(|error| error.to_string())?;
            Ok::<_, String>(servers.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        let check = |text: &str, expected: &[&str]| assert_eq!(names(text).unwrap(), expected);
        check("{}", &[]);
        check("\u{feff}{\"inputs\": [{}], \"servers\": {\"a\": {}}}", &["a"]);
        check("{ // why\n\"servers\": {\"a\": {},}, \"mcpServers\": {\"b\": 1}, }", &["b", "a"]);
        let check = |text: &str, expected: &str| assert_eq!(names(text).unwrap_err(), expected);
        check("", "line 1: it is not a JSON object");
        check("[]", "line 1: it is not a JSON object");
        check("{\n\"servers\": []}", "line 2: `servers` is not an object");
        let error = names("{\n\"servers\": {\n\"a\": }}").unwrap_err();
        assert!(error.starts_with("line 3: "), "{error}");
    }
}
