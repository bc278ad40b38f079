//! `cargo xtask demo`: what Tenon does, in the open.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{cargo, root, run};

const CONFIGURATION: &str = r#"# Three kinds of plugin, one registry.
[plugins]
folders = ["own"]
mcp = [{ name = "demo", command = "BIN/demo-server" }]
wasm = [
    "GUESTS/text_tools.wasm",
    "GUESTS/redact.wasm",
    "GUESTS/checks.wasm",
    "GUESTS/echo_provider.wasm",
    "GUESTS/misbehave.wasm",
]
scripts = ["greetings.rhai"]
"#;

const SCRIPT: &str = r#"// A tool, and a hook for messages that go out.
tool(#{
    name: "greet",
    description: "Greets somebody",
    schema: #{ type: "object", properties: #{ name: #{ type: "string" } }, required: ["name"] },
}, |arguments| `Good day, ${arguments.name}!`);

fn MessageSending(context) {
    context.message += "\nSent with Tenon";
}
"#;

/// A plugin that wants files.
const NOTES: &str = r#"plugin.id = "notes"
runtime = { kind = "wasm", path = "files.wasm" }
capabilities.filesystem = ["read:FOLDER/notes/**"]
"#;

/// What is shown: a heading, the arguments of `tenon`, and the exit code that is expected. `FOLDER`
/// stands for the project's.
const STEPS: &[(&str, &[&str], i32)] = &[
    (
        "Before its user trusts it, nothing of a project is used",
        &["call", "greetings__greet", r#"{"name": "Ada"}"#],
        3,
    ),
    ("What it would do is shown; it is trusted as it is", &["trust", "--yes"], 0),
    ("Tools of an MCP server, of a component and of a script, in one list", &["tools"], 0),
    (
        "A component is called",
        &["call", "text_tools__count", r#"{"text": "three short words"}"#],
        0,
    ),
    (
        "An MCP server is called in the same way",
        &["call", "demo__echo", r#"{"text": "from another process"}"#],
        0,
    ),
    ("And a script", &["call", "greetings__greet", r#"{"name": "Ada"}"#], 0),
    (
        "A hook point: one component masks a secret, one script adds a line",
        &[
            "hook",
            "message-sending",
            "--context",
            r#"{"message": "The key is sk-abcdefghijklmnop"}"#,
        ],
        0,
    ),
    (
        "An output is scored",
        &[
            "eval",
            "checks/contains",
            "--subject",
            r#"{"output": "All tests passed"}"#,
            "--options",
            r#"{"all": ["passed"], "none": ["failed"]}"#,
        ],
        0,
    ),
    (
        "A language model answers piece by piece",
        &[
            "--json",
            "complete",
            "echo_provider/echo",
            "--prompt",
            "one piece at a time",
            "--stream",
        ],
        0,
    ),
    (
        "A guest that computes for ever is stopped",
        &["call", "misbehave__spin", "--timeout", "500ms"],
        4,
    ),
    ("And one that takes all the memory it can get", &["call", "misbehave__hoard"], 4),
    (
        "A plugin that wants files is not there before its user approved",
        &["call", "notes__read_file", r#"{"path": "FOLDER/notes/today.md"}"#],
        3,
    ),
    ("The user approves it, as it is", &["approve", "notes", "--yes"], 0),
    (
        "It reads what it was granted",
        &["call", "notes__read_file", r#"{"path": "FOLDER/notes/today.md"}"#],
        0,
    ),
    (
        "And nothing else",
        &["call", "notes__read_file", r#"{"path": "FOLDER/notes/../tenon.toml"}"#],
        1,
    ),
    ("How everything fares", &["doctor"], 0),
];

/// What the agent's plugins are, in a project of its own.
const AGENT: &str = r#"[plugins]
folders = ["own"]
mcp = [{ name = "demo", command = "BIN/demo-server" }]
wasm = ["GUESTS/redact.wasm", "GUESTS/checks.wasm", "GUESTS/echo_provider.wasm"]
"#;

const HABITS: &str = r#"plugin.id = "habits"
runtime = { kind = "rhai", path = "habits.rhai" }
capabilities.tools = ["demo__*"]
"#;

const HABITS_SCRIPT: &str = r#"fn BeforePlan(context) { context.goal += "!"; }

// A script that calls a tool of an MCP server.
fn OnLearning(context) {
    context.learning.noted = call_tool("demo__echo", #{ text: "noted" });
}
"#;

pub(crate) fn run_task() -> Result<()> {
    crate::setup::run()?;
    // Of the whole workspace, as the tests are: what is built for some packages alone is built with other features, and once
    // more for the tests. The build script of the tests builds the guests.
    run(&mut cargo(".", &["build", "--workspace", "--locked", "--bins", "--example", "agent"]))?;
    let folder = root().join("target/demo");
    write(&folder)?;
    let tenon = root().join("target/debug/tenon");
    println!("\nThe project is {}, with this tenon.toml:\n\n{CONFIGURATION}", folder.display());
    for (heading, arguments, expected) in STEPS {
        let put = |argument: &&str| argument.replace("FOLDER", &folder.display().to_string());
        let arguments: Vec<String> = arguments.iter().map(put).collect();
        println!("# {heading}\n$ tenon {}", shown(&arguments));
        let status = Command::new(&tenon)
            .args(arguments)
            .current_dir(&folder)
            // On a terminal it would ask.
            .stdin(Stdio::null())
            .env("XDG_CACHE_HOME", folder.join("cache"))
            .env("XDG_CONFIG_HOME", folder.join("config"))
            .env("XDG_STATE_HOME", folder.join("state"))
            .status()
            .with_context(|| format!("{} cannot be started", tenon.display()))?;
        if status.code() != Some(*expected) {
            bail!("tenon ended with {status}, and not with {expected}");
        }
        println!();
    }
    let agent = folder.join("agent");
    println!("# An agent whose thoughts go through the hooks of plugins, of every kind");
    run(Command::new(root().join("target/debug/examples/agent"))
        .arg(agent)
        .args(["use sk-abcdefghijklmnop", "politely"])
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("XDG_CONFIG_HOME", folder.join("config")))
}

fn write(folder: &Path) -> Result<()> {
    // What was approved last time is not approved.
    let state = folder.join("state");
    if state.exists() {
        fs::remove_dir_all(state)?;
    }
    fs::create_dir_all(folder.join("own/notes"))?;
    fs::create_dir_all(folder.join("notes"))?;
    let bin = root().join("target/debug");
    let guests = root().join("guests/target/wasm32-wasip2/release");
    let configuration = |text: &str| {
        text.replace("BIN", &bin.display().to_string())
            .replace("GUESTS", &guests.display().to_string())
            .replace("FOLDER", &folder.display().to_string())
    };
    // What a manifest names lies in its folder.
    fs::copy(guests.join("files.wasm"), folder.join("own/notes/files.wasm"))?;
    fs::write(folder.join("own/notes/plugin.toml"), configuration(NOTES))?;
    fs::write(folder.join("notes/today.md"), "Show what was promised.\n")?;
    fs::write(folder.join("tenon.toml"), configuration(CONFIGURATION))?;
    let agent = folder.join("agent");
    fs::create_dir_all(agent.join("own/habits"))?;
    fs::write(agent.join("tenon.toml"), configuration(AGENT))?;
    fs::write(agent.join("own/habits/plugin.toml"), HABITS)?;
    fs::write(agent.join("own/habits/habits.rhai"), HABITS_SCRIPT)?;
    fs::write(folder.join("greetings.rhai"), SCRIPT)?;
    Ok(())
}

/// Arguments as one would type them.
fn shown(arguments: &[String]) -> String {
    let quoted = arguments.iter().map(|argument| match argument.contains([' ', '"']) {
        true => format!("'{argument}'"),
        false => argument.to_string(),
    });
    quoted.collect::<Vec<_>>().join(" ")
}
