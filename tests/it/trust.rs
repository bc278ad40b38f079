//! Projects that nobody trusts: nothing of them is started, loaded or compiled, whatever is asked, and what
//! is the user's own goes on.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};

use tenon_config::discover::Sources;
use tenon_config::discover::trust::{TrustBasis, TrustFile};
use tenon_host::{Config, Event, HostEnvironment, Platform};

use crate::approval::on_terminal_as;
use crate::guests;
use crate::support::{
    DEMO_SERVER, Project, SCRIPTED_SERVER, call, host_environment, parsed, stderr, stdout,
};

/// What a hook of the user's forbids.
const GUARD: &str = "fn MessageSending(context) { veto(\"the guard says no\"); }";

/// A script with a tool.
const SCRIPT: &str =
    "tool(#{ name: \"t\", description: \"d\", schema: #{ type: \"object\" } }, |a| \"ran\");";

/// A script with a hook.
const HOOKS: &str = "fn MessageSending(context) { log_error(\"the hook ran\"); }";

/// A checkout in a folder of its own below that of the user.
struct Checkout(Project);

impl Checkout {
    fn new() -> Self {
        let home = Project::new("");
        fs::remove_file(home.path("tenon.toml")).unwrap();
        home.write("tenon/plugins/guard/plugin.toml", manifest("guard", "rhai", "guard.rhai"));
        home.write("tenon/plugins/guard/guard.rhai", GUARD);
        fs::create_dir(home.path("checkout")).unwrap();
        Self(home)
    }

    /// One in which there are these files.
    fn with(files: &[(&str, String)]) -> Self {
        let checkout = Self::new();
        for (name, text) in files {
            checkout.write(name, text);
        }
        checkout
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        self.0.write(&format!("checkout/{name}"), text);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.command(arguments);
        command
            .current_dir(self.0.path("checkout"))
            .env("MARK", self.0.path("mark"))
            .env("XDG_CACHE_HOME", self.0.path("cache"))
            .env_remove("TENON_TRUST")
            .stdin(Stdio::null());
        command
    }

    fn tenon(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("tenon starts")
    }

    /// Runs a command that ends with this code, and gives all that it says.
    fn run(&self, arguments: &[&str], code: i32) -> String {
        let output = self.tenon(arguments);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.tenon(&[&["--json"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        parsed(&output)
    }

    /// Makes a link in the checkout.
    fn link(&self, name: &str, to: &str) {
        let link = self.0.path(&format!("checkout/{name}"));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(to, link).unwrap();
    }

    /// The marks that programs of the project have left.
    fn marks(&self) -> Vec<String> {
        let files = fs::read_dir(self.0.path("")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut marks: Vec<String> = names.filter(|name| name.starts_with("mark")).collect();
        marks.sort();
        marks
    }

    /// Whether a program of the project has run.
    fn is_marked(&self) -> bool {
        !self.marks().is_empty()
    }

    /// Checks that the user's own guard still forbids what it forbade, and gives all that is said.
    fn is_guarded(&self, options: &[&str], what: &str) -> String {
        let sending = ["hook", "message-sending", "--context", r#"{"message": "m"}"#];
        let said = self.run(&[options, &sending].concat(), 3);
        assert!(said.contains("the guard says no"), "{what}: {said}");
        said
    }

    /// The plugins that are let in where the checkout is trusted.
    fn enabled(&self) -> Vec<String> {
        let listed = parsed(&self.tenon(&["--trust", "--json", "plugins"]))["plugins"].take();
        let rows = listed.as_array().expect("it is a list").iter();
        let enabled = rows.filter(|row| row["state"] == "enabled");
        enabled.map(|row| row["plugin"].as_str().expect("it has an id").to_string()).collect()
    }

    /// What is said by `tenon watch`, which is interrupted when it has begun.
    fn watched(&self) -> String {
        let mut command = self.command(&["watch"]);
        let mut tenon = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(tenon.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("watching"), "{line}");
        let process = Pid::from_child(&tenon);
        kill_process(process, Signal::INT).expect("it is there");
        let output = tenon.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        line + stderr(&output).as_str()
    }

    /// Whether something was compiled.
    fn has_compiled(&self) -> bool {
        self.0.has_compiled()
    }
}

fn manifest(id: &str, kind: &str, path: &str) -> String {
    format!("[plugin]\nid = {id:?}\n[runtime]\nkind = {kind:?}\npath = {path:?}")
}

/// A server that leaves a mark, as a JSON file of servers names it.
fn marking(member: &str) -> String {
    let server = json!({ "command": "sh", "args": ["-c", "echo ran > \"$MARK\""], "env": { "MARK": "${MARK}" } });
    json!({ member: { "evil": server } }).to_string()
}

/// The same in TOML.
const MARKING: &str = "command = \"sh\"\nargs = [\"-c\", \"echo ran > \\\"$MARK\\\"\"]\nenv = { MARK = \"${MARK}\" }\n";

/// Something that a checkout may bring. Its name is that of its plugin, and no other has it.
struct Hostile {
    name: &'static str,
    /// Files of the checkout, or beside it.
    files: Vec<(&'static str, Vec<u8>)>,
    /// Links, and where they lead.
    links: Vec<(&'static str, &'static str)>,
    /// What becomes of it once the checkout is trusted.
    trusted: TrustedOutcome,
}

/// What becomes of something once its checkout is trusted.
#[derive(Clone, Copy, PartialEq)]
enum TrustedOutcome {
    /// It leaves a mark.
    Starts,
    /// It turns to the server that the test has.
    Reaches,
    /// It is loaded.
    Loads,
    /// It is compiled, and loaded.
    Compiles,
    /// It is passed over: the user's own goes before it, or it lies where no plugin is looked for.
    Stays,
}

/// A server that leaves a mark, in TOML.
fn starting(name: &str) -> String {
    let command = format!("echo ran > \"$MARK-{name}\"");
    format!("command = \"sh\"\nargs = [\"-c\", {command:?}]\nenv = {{ MARK = \"${{MARK}}\" }}\n")
}

/// The same, as a JSON file of servers names it.
fn started(member: &str, name: &str, mark: &str) -> Vec<u8> {
    let args = ["-c", &format!("echo ran > \"$MARK-{mark}\"")];
    let server = json!({ "command": "sh", "args": args, "env": { "MARK": "${MARK}" } });
    json!({ member: { name: server } }).to_string().into()
}

/// Files by their names.
type Files = Vec<(&'static str, Vec<u8>)>;

/// All that a checkout may bring. What is reached is at this address.
fn hostile(address: &str) -> Vec<Hostile> {
    use TrustedOutcome::{Compiles, Loads, Reaches, Starts, Stays};
    let entry = |name: &str| format!("[[plugins.mcp]]\nname = {name:?}\n{}", starting(name));
    let bridge =
        |name: &str| format!("[plugin]\nid = {name:?}\n[runtime]\nkind = \"mcp-bridge\"\n");
    let subprocess =
        |name: &str| format!("{}[runtime.subprocess]\n{}", bridge(name), starting(name));
    let component = || fs::read(guests::HELLO).unwrap();
    let row = |name, trusted, files: Files, links| Hostile { name, files, links, trusted };
    let rows: Vec<(&str, TrustedOutcome, Files)> = vec![
        ("entry", Starts, vec![("tenon.toml", entry("entry").into())]),
        ("of-all", Starts, vec![(".mcp.json", started("mcpServers", "of-all", "of-all"))]),
        ("of-editor", Starts, vec![(".vscode/mcp.json", started("servers", "of-editor", "of-editor"))]),
        ("bridge", Starts, vec![(".tenon/plugins/bridge/plugin.toml", subprocess("bridge").into())]),
        (
            "sidecar",
            Starts,
            vec![
                (".tenon/plugins/sidecar/plugin.toml", bridge("sidecar").into()),
                (".tenon/plugins/sidecar/.mcp.json", started("mcpServers", "any", "sidecar")),
            ],
        ),
        (
            "folder",
            Starts,
            vec![
                ("tenon.toml", "plugins.folders = [\"own\"]".into()),
                ("own/a/b/plugin.toml", subprocess("folder").into()),
            ],
        ),
        (
            "variables",
            Starts,
            vec![
                ("tenon.toml", format!("{}env_file = \".env\"\n", entry("variables")).into()),
                (".env", "OTHER=1".into()),
            ],
        ),
        (
            "remote",
            Reaches,
            vec![(
                ".mcp.json",
                json!({ "mcpServers": { "remote": { "type": "http", "url": address, "startup_timeout": "300ms" } } })
                    .to_string()
                    .into(),
            )],
        ),
        (
            "script",
            Loads,
            vec![
                ("tenon.toml", "plugins.scripts = [\"script.rhai\"]".into()),
                ("script.rhai", SCRIPT.into()),
            ],
        ),
        (
            "in-folder",
            Loads,
            vec![
                (".tenon/plugins/in-folder/plugin.toml", manifest("in-folder", "rhai", "it.rhai").into()),
                (".tenon/plugins/in-folder/it.rhai", SCRIPT.into()),
            ],
        ),
        (
            "hook",
            Loads,
            vec![
                ("tenon.toml", "plugins.scripts = [\"hook.rhai\"]".into()),
                ("hook.rhai", HOOKS.into()),
            ],
        ),
        (
            "component",
            Compiles,
            vec![
                ("tenon.toml", "plugins.wasm = [\"component.wasm\"]".into()),
                ("component.wasm", component()),
            ],
        ),
        (
            "packed",
            Compiles,
            vec![
                (".tenon/plugins/packed/plugin.toml", manifest("packed", "wasm", "packed.wasm").into()),
                (".tenon/plugins/packed/packed.wasm", component()),
                (
                    ".tenon/plugins/packed/Cargo.toml",
                    "[package]\nname = \"packed\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]".into(),
                ),
                (
                    ".tenon/plugins/packed/build.rs",
                    "fn main() { std::fs::write(std::env::var(\"MARK\").unwrap() + \"-build\", \"ran\").unwrap() }".into(),
                ),
                (".tenon/plugins/packed/src/lib.rs", Vec::new()),
            ],
        ),
        (
            "locked",
            Loads,
            vec![
                ("tenon.lock", "version = 1".into()),
                (".tenon/plugins/locked/plugin.toml", manifest("locked", "rhai", "it.rhai").into()),
                (".tenon/plugins/locked/it.rhai", SCRIPT.into()),
            ],
        ),
        (
            "settings",
            Loads,
            vec![
                (
                    "tenon.toml",
                    "plugins.scripts = [\"settings.rhai\"]\ndiscovery.disabled = [\"guard\"]\npolicy.deny = [\"guard\"]\n\
                     hooks.on_failure = \"skip\"\nhooks.timeout = \"1ms\"\nlimits.wall = \"1ms\""
                        .into(),
                ),
                ("settings.rhai", SCRIPT.into()),
            ],
        ),
        (
            "id-of-the-guard",
            Stays,
            vec![
                (".tenon/plugins/guard/plugin.toml", manifest("guard", "rhai", "no.rhai").into()),
                (".tenon/plugins/guard/no.rhai", "fn MessageSending(context) {}".into()),
            ],
        ),
        ("guard-in-capitals", Stays, vec![(".mcp.json", started("mcpServers", "GUARD", "guard-in-capitals"))]),
        // Cyrillic, which looks like the same.
        ("gu-rd", Starts, vec![(".mcp.json", started("mcpServers", "gu\u{430}rd", "gu-rd"))]),
        ("guard-", Starts, vec![(".vscode/mcp.json", started("servers", "guard.", "guard-"))]),
        ("guard--", Starts, vec![(".mcp.json", started("mcpServers", "guard. ", "guard--"))]),
        (
            "nested",
            Stays,
            vec![
                (".tenon/plugins/outer/plugin.toml", manifest("outer", "rhai", "it.rhai").into()),
                (".tenon/plugins/outer/it.rhai", SCRIPT.into()),
                (".tenon/plugins/outer/samples/inner/plugin.toml", subprocess("nested").into()),
            ],
        ),
    ];
    let rows = rows.into_iter().map(|(name, trusted, files)| row(name, trusted, files, Vec::new()));
    let linked = [
        row(
            "linked-file",
            Starts,
            vec![("../elsewhere/tenon.toml", entry("linked-file").into())],
            vec![("tenon.toml", "../elsewhere/tenon.toml")],
        ),
        row(
            "linked-servers",
            Starts,
            vec![(
                "../elsewhere/servers",
                started("mcpServers", "linked-servers", "linked-servers"),
            )],
            vec![(".mcp.json", "../elsewhere/servers")],
        ),
        row(
            "linked-tenon",
            Starts,
            vec![("../elsewhere/tenon/plugins/x/plugin.toml", subprocess("linked-tenon").into())],
            vec![(".tenon", "../elsewhere/tenon")],
        ),
        row(
            "linked-folder",
            Starts,
            vec![
                ("tenon.toml", "plugins.folders = [\"linked\"]".into()),
                ("../elsewhere/own/x/plugin.toml", subprocess("linked-folder").into()),
            ],
            vec![("linked", "../elsewhere/own")],
        ),
        row(
            "linked-plugin",
            Stays,
            vec![
                (".tenon/plugins/outer/plugin.toml", manifest("outer", "rhai", "it.rhai").into()),
                (".tenon/plugins/outer/it.rhai", SCRIPT.into()),
                ("../elsewhere/plugin/plugin.toml", subprocess("linked-plugin").into()),
            ],
            vec![(".tenon/plugins/linked-plugin", "../../../elsewhere/plugin")],
        ),
    ];
    rows.chain(linked).collect()
}

/// Files of several checkouts, as one checkout has them.
fn together(rows: Vec<Hostile>) -> BTreeMap<&'static str, Vec<u8>> {
    let mut files: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for (name, content) in rows.into_iter().flat_map(|row| row.files) {
        let Some(before) = files.get(name) else {
            files.insert(name, content);
            continue;
        };
        let text = |content: &[u8]| String::from_utf8(content.to_vec()).unwrap();
        let (before, content) = (text(before), text(&content));
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let merged = match name.ends_with(".toml") {
            true => merged_lines(&before, &content),
            false => merged(value(&before), value(&content)).to_string(),
        };
        files.insert(name, merged.into());
    }
    files
}

/// The lines of two configurations: lists of one name become one list.
fn merged_lines(one: &str, other: &str) -> String {
    let split = |text: &str| {
        let (lines, tables) = text.split_at(text.find("[[").unwrap_or(text.len()));
        (lines.lines().map(str::to_string).collect::<Vec<_>>(), tables.to_string())
    };
    let ((mut lines, tables), (others, other_tables)) = (split(one), split(other));
    for line in others {
        let (key, list) = line.split_once(" = ").unwrap();
        match lines.iter_mut().find(|line| line.split(" = ").next() == Some(key)) {
            Some(before) => {
                *before =
                    format!("{}, {}", before.trim_end_matches(']'), list.trim_start_matches('['));
            }
            None => lines.push(line),
        }
    }
    format!("{}\n{tables}{other_tables}", lines.join("\n"))
}

/// All that is in either of two values.
fn merged(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            for (key, value) in other {
                let before = one.remove(&key);
                one.insert(key, before.map_or(value.clone(), |before| merged(before, value)));
            }
            one.into()
        }
        (Value::Array(one), Value::Array(other)) => [one, other].concat().into(),
        (one, other) => {
            assert_eq!(one, other, "one file says one thing");
            one
        }
    }
}

/// What a verb says of a project that nobody trusts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ExpectedNotice {
    /// That it is not trusted, in one line.
    Untrusted,
    /// That code is not trusted which it would have to run.
    Code,
    /// What the project would do.
    Review,
    /// Nothing, as it uses nothing of any project.
    Nothing,
}

/// Everything that may be done in a project without trust: the arguments, the exit code, and what is said.
const VERBS: &[(&[&str], i32, ExpectedNotice)] = &[
    (&["tools"], 0, ExpectedNotice::Untrusted),
    (&["tools", "entry"], 3, ExpectedNotice::Untrusted),
    (&["--json", "tools"], 0, ExpectedNotice::Untrusted),
    (&["tools", "--project", "../checkout"], 0, ExpectedNotice::Untrusted),
    (&["plugins"], 0, ExpectedNotice::Untrusted),
    (&["--locked", "plugins"], 0, ExpectedNotice::Untrusted),
    (&["serve"], 0, ExpectedNotice::Untrusted),
    (&["doctor"], 0, ExpectedNotice::Untrusted),
    (&["doctor", "entry"], 3, ExpectedNotice::Untrusted),
    (&["doctor", "entry", "--trace"], 3, ExpectedNotice::Untrusted),
    (&["confine", "entry", "--learn"], 3, ExpectedNotice::Untrusted),
    (&["login", "entry"], 3, ExpectedNotice::Untrusted),
    (&["logout", "entry"], 3, ExpectedNotice::Untrusted),
    (&["logout", "http://127.0.0.1:1/"], 2, ExpectedNotice::Nothing),
    (&["secret", "list"], 0, ExpectedNotice::Nothing),
    (&["secret", "set", "s"], 2, ExpectedNotice::Nothing),
    (&["secret", "remove", "none"], 2, ExpectedNotice::Nothing),
    (&["call", "entry__t", "{}"], 3, ExpectedNotice::Untrusted),
    (&["hook"], 0, ExpectedNotice::Untrusted),
    (&["hook", "before-plan"], 0, ExpectedNotice::Untrusted),
    (&["eval"], 0, ExpectedNotice::Untrusted),
    (&["eval", "component/s", "--subject", "{}"], 3, ExpectedNotice::Untrusted),
    (&["complete"], 0, ExpectedNotice::Untrusted),
    (&["complete", "component/m", "--prompt", "p"], 3, ExpectedNotice::Untrusted),
    (&["resources", "list"], 0, ExpectedNotice::Untrusted),
    (&["resources", "list", "of-all"], 3, ExpectedNotice::Untrusted),
    (&["resources", "templates"], 0, ExpectedNotice::Untrusted),
    (&["resources", "templates", "of-all"], 3, ExpectedNotice::Untrusted),
    (&["resources", "suggest", "of-all", "x:{y}", "y"], 3, ExpectedNotice::Untrusted),
    (&["resources", "read", "of-all", "x:y"], 3, ExpectedNotice::Untrusted),
    (&["prompts", "list"], 0, ExpectedNotice::Untrusted),
    (&["prompts", "list", "of-editor"], 3, ExpectedNotice::Untrusted),
    (&["prompts", "get", "of-editor", "p"], 3, ExpectedNotice::Untrusted),
    (&["skills", "list"], 0, ExpectedNotice::Untrusted),
    (&["skills", "list", "packed"], 3, ExpectedNotice::Untrusted),
    (&["skills", "read", "packed", "s"], 3, ExpectedNotice::Untrusted),
    (&["prompts", "suggest", "of-editor", "p", "a"], 3, ExpectedNotice::Untrusted),
    (&["approve", "--all"], 0, ExpectedNotice::Untrusted),
    (&["approve", "bridge"], 3, ExpectedNotice::Untrusted),
    (&["revoke", "bridge"], 3, ExpectedNotice::Untrusted),
    (&["run", "none.rhai"], 2, ExpectedNotice::Nothing),
    (&["runs"], 0, ExpectedNotice::Nothing),
    (&["runs", "cancel", "R-000000000000"], 2, ExpectedNotice::Nothing),
    (&["runs", "show", "R-000000000000"], 2, ExpectedNotice::Nothing),
    (&["runs", "promote", "R-000000000000", "--name", "n"], 2, ExpectedNotice::Untrusted),
    (&["pending"], 0, ExpectedNotice::Nothing),
    (&["deny", "A-000000000000"], 2, ExpectedNotice::Nothing),
    (&["policy", "test", "bridge__echo"], 3, ExpectedNotice::Untrusted),
    (&["inspect", "sidecar"], 3, ExpectedNotice::Untrusted),
    (&["inspect", ".tenon/plugins/packed/packed.wasm"], 0, ExpectedNotice::Untrusted),
    (&["install"], 3, ExpectedNotice::Untrusted),
    (&["install", "../tenon/plugins/guard"], 3, ExpectedNotice::Untrusted),
    (&["uninstall", "packed", "--yes"], 3, ExpectedNotice::Untrusted),
    (&["build", ".tenon/plugins/packed"], 3, ExpectedNotice::Code),
    (&["dev"], 3, ExpectedNotice::Code),
    (&["dev", ".tenon/plugins/packed"], 2, ExpectedNotice::Nothing),
    (&["test", ".tenon/plugins/packed"], 3, ExpectedNotice::Code),
    (&["check", ".tenon/plugins/packed"], 3, ExpectedNotice::Code),
    (
        &["publish", ".tenon/plugins/packed", "oci://127.0.0.1:0/packed:1"],
        5,
        ExpectedNotice::Nothing,
    ),
    (&["watch"], 0, ExpectedNotice::Untrusted),
    (&["trust"], 3, ExpectedNotice::Review),
    (&["trust", "--list"], 0, ExpectedNotice::Nothing),
    (&["trust", "--revoke"], 2, ExpectedNotice::Nothing),
    (&["state", "list"], 0, ExpectedNotice::Nothing),
    (&["state", "get", "p"], 2, ExpectedNotice::Nothing),
    (&["state", "clear", "p", "--yes"], 2, ExpectedNotice::Nothing),
    (&["token", "list"], 0, ExpectedNotice::Nothing),
    (&["token", "add", "t"], 0, ExpectedNotice::Nothing),
    (&["token", "revoke", "none"], 2, ExpectedNotice::Nothing),
    (&["history"], 0, ExpectedNotice::Nothing),
    (&["history", "verify"], 0, ExpectedNotice::Nothing),
    (&["history", "approvals"], 0, ExpectedNotice::Nothing),
    (&["schema", "plugin"], 0, ExpectedNotice::Nothing),
    (&["completions", "bash"], 0, ExpectedNotice::Nothing),
    (&["new", "made", "--lang", "rhai"], 0, ExpectedNotice::Nothing),
];

/// The verbs that a command has, by what it says itself.
fn verbs_of(checkout: &Checkout, verb: &[&str]) -> Vec<String> {
    let help = checkout.run(&[verb, &["--help"]].concat(), 0);
    let Some((_, commands)) = help.split_once("Commands:\n") else { return Vec::new() };
    let lines = commands.lines().take_while(|line| !line.is_empty());
    // What a verb does may go on in a line of its own.
    let lines =
        lines.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_string).collect()
}

#[test]
fn every_verb_is_tried_where_nothing_is_trusted() {
    let checkout = Checkout::new();
    let is_tried = |verb: &[&str]| {
        VERBS.iter().any(|(arguments, ..)| arguments.windows(verb.len()).any(|part| part == verb))
    };
    let verbs = verbs_of(&checkout, &[]);
    assert!(verbs.len() > 20, "{verbs:?}");
    for verb in &verbs {
        assert!(is_tried(&[verb]), "{verb}");
        for own in verbs_of(&checkout, &[verb]) {
            assert!(is_tried(&[verb, &own]), "{verb} {own}");
        }
    }
}

/// Every row, in a checkout of its own: nothing of it is used, and all of it is there once it is trusted.
#[test]
fn a_checkout_that_nobody_trusts_does_nothing() {
    let rows = hostile("http://127.0.0.1:1/").len();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || (thread..rows).step_by(4).for_each(a_row_does_nothing));
        }
    });
}

fn a_row_does_nothing(number: usize) {
    let listener = ConnectionProbe::new();
    let Hostile { name, files, links, trusted } = hostile(&listener.address()).remove(number);
    let checkout = Checkout::new();
    files.iter().for_each(|(path, content)| checkout.write(path, content));
    links.iter().for_each(|(link, to)| checkout.link(link, to));
    let tool = format!("{name}__t");
    for (arguments, code) in [
        (&["tools"][..], 0),
        (&["doctor"], 0),
        (&["call", &tool], 3),
        (&["plugins"], 0),
        (&["trust"], 3),
    ] {
        let said = checkout.run(arguments, code);
        let says =
            if arguments == ["trust"] { ExpectedNotice::Review } else { ExpectedNotice::Untrusted };
        assert_eq!(said_of_trust(&said), Some(says), "{name}: {arguments:?}: {said}");
    }
    checkout.is_guarded(&[], name);
    assert_eq!(checkout.marks(), [""; 0], "{name}");
    assert!(!checkout.has_compiled(), "{name} was compiled");
    assert!(!listener.was_reached(), "{name} was reached");

    // With trust it is there: nothing else kept it from running.
    let enabled = checkout.enabled();
    let is_there = enabled.iter().any(|plugin| plugin == name);
    assert_eq!(is_there, trusted != TrustedOutcome::Stays, "{name}: {enabled:?}");
    // What was compiled for other rows need not be compiled anew, but for what has to be seen to be compiled.
    let cache = match trusted {
        TrustedOutcome::Compiles => checkout.0.path("cache"),
        _ => crate::support::cache(),
    };
    let doctor =
        checkout.command(&["--trust", "doctor"]).env("XDG_CACHE_HOME", cache).output().unwrap();
    let expected =
        if trusted == TrustedOutcome::Starts { vec![format!("mark-{name}")] } else { Vec::new() };
    assert_eq!(checkout.marks(), expected, "{name}: {}", stderr(&doctor));
    assert_eq!(listener.was_reached(), trusted == TrustedOutcome::Reaches, "{name}");
    assert_eq!(checkout.has_compiled(), trusted == TrustedOutcome::Compiles, "{name}");
    let said = checkout.is_guarded(&["--trust"], name);
    assert_eq!(said.contains("the hook ran"), name == "hook", "{said}");
}

/// All rows in one checkout, and the same where each file of it is a link: no verb uses anything of them.
#[test]
fn no_verb_uses_what_nobody_trusts() {
    std::thread::scope(|scope| {
        for is_linked in [false, true] {
            scope.spawn(move || {
                let listener = ConnectionProbe::new();
                let mut rows = hostile(&listener.address());
                // These are about links alone.
                rows.retain(|row| row.links.is_empty());
                let checkout = Checkout::new();
                for (name, content) in together(rows) {
                    match is_linked {
                        false => checkout.write(name, content),
                        true => {
                            checkout.0.write(&format!("elsewhere/{name}"), content);
                            let first = name.split('/').next().unwrap();
                            if !checkout.0.path(&format!("checkout/{first}")).exists() {
                                checkout.link(first, &format!("../elsewhere/{first}"));
                            }
                        }
                    }
                }
                for (arguments, code, says) in VERBS {
                    let said = match arguments {
                        ["watch"] => checkout.watched(),
                        arguments => checkout.run(arguments, *code),
                    };
                    let expected = Some(*says).filter(|says| *says != ExpectedNotice::Nothing);
                    assert_eq!(said_of_trust(&said), expected, "{arguments:?}: {said}");
                    assert!(!said.contains("the hook ran"), "{arguments:?}: {said}");
                    assert_eq!(checkout.marks(), [""; 0], "{arguments:?}");
                    assert!(!checkout.has_compiled(), "{arguments:?} compiled something");
                    assert!(!listener.was_reached(), "{arguments:?} reached a server");
                }
                checkout.is_guarded(&[], "all");
                // Where they are trusted, they are all there.
                let enabled = checkout.enabled();
                for row in hostile("http://127.0.0.1:1/") {
                    let is_there = enabled.iter().any(|plugin| plugin == row.name);
                    let expected = row.links.is_empty() && row.trusted != TrustedOutcome::Stays;
                    assert_eq!(is_there, expected, "{}: {enabled:?}", row.name);
                }
            });
        }
    });
}

/// What was said of trust, where that was said in one line and nothing else was.
fn said_of_trust(said: &str) -> Option<ExpectedNotice> {
    let lines = |text: &str| said.lines().filter(|line| line.contains(text)).count();
    let untrusted = lines("is not trusted, and nothing of it is used");
    let code = lines("is not trusted, and to build it is to run it");
    let review = lines("no terminal to ask whether to trust the project in ");
    match (untrusted, code, review) {
        (0, 0, 0) => None,
        (1, 0, 0) => Some(ExpectedNotice::Untrusted),
        (0, 1, 0) => Some(ExpectedNotice::Code),
        (0, 0, 1) => Some(ExpectedNotice::Review),
        _ => panic!("it is said more than once: {said}"),
    }
}

/// A server that only takes connections.
struct ConnectionProbe(TcpListener);

impl ConnectionProbe {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        listener.set_nonblocking(true).expect("it need not wait");
        Self(listener)
    }

    fn address(&self) -> String {
        format!("http://{}/", self.0.local_addr().expect("it has an address"))
    }

    /// Whether somebody has connected.
    fn was_reached(&self) -> bool {
        self.0.accept().is_ok()
    }
}

/// Files with names that look like those of a project make none.
#[test]
fn a_name_that_looks_like_one_of_a_project_is_none() {
    let entry = format!("[[plugins.mcp]]\nname = \"evil\"\n{MARKING}");
    let checkout = Checkout::new();
    for name in ["Tenon.toml", "tenon.toml.", "tenon.toml ", "t\u{435}non.toml", "sub/tenon.toml"] {
        checkout.write(name, &entry);
    }
    for name in [".MCP.json", ".mcp.json.", ".mcp.json ", ".vscode /mcp.json", ".vscode/MCP.json"] {
        checkout.write(name, marking("mcpServers"));
    }
    for name in [".Tenon/plugins/evil", ".tenon /plugins/evil", ".tenon/Plugins/evil"] {
        checkout.write(&format!("{name}/plugin.toml"), manifest("evil", "rhai", "evil.rhai"));
        checkout.write(&format!("{name}/evil.rhai"), SCRIPT);
    }
    for arguments in [&[][..], &["--trust"]] {
        for (verb, code) in [(&["tools"][..], 0), (&["doctor"], 0), (&["call", "evil__t"], 2)] {
            let said = checkout.run(&[arguments, verb].concat(), code);
            assert!(!said.contains("trusted"), "{said}");
            assert!(!checkout.is_marked(), "{said}");
        }
    }
}

#[test]
fn what_cannot_be_understood_is_no_reason_to_look_closer() {
    for (what, text) in [("broken", "this is = = no TOML"), ("unknown key", "surprise = 1")] {
        let checkout = Checkout::with(&[("tenon.toml", text.into())]);
        let said = checkout.run(&["tools"], 0);
        assert!(said.contains("is not trusted") && !said.contains("TOML"), "{what}: {said}");
        checkout.run(&["--trust", "tools"], 2);
    }
    // A pipe would never end.
    let checkout = Checkout::new();
    let pipes = ["tenon.toml", ".mcp.json", "tenon.lock"]
        .map(|name| checkout.0.path(&format!("checkout/{name}")));
    assert!(Command::new("mkfifo").args(pipes).status().unwrap().success());
    assert!(checkout.run(&["tools"], 0).contains("is not trusted"));
    // Nor is a link that leads nowhere nothing.
    let checkout = Checkout::new();
    symlink("nowhere", checkout.0.path("checkout/tenon.toml")).unwrap();
    assert!(checkout.run(&["tools"], 0).contains("is not trusted"));
    // Where there is nothing, there is nothing to be said.
    let checkout = Checkout::with(&[("README.md", "tenon".into())]);
    assert!(!checkout.run(&["tools"], 0).contains("trusted"));
    assert!(checkout.run(&["call", "evil__t"], 2).contains("there is no tool"));
}

#[test]
fn what_is_trusted_is_trusted_as_it_was() {
    let entry = format!("[[plugins.mcp]]\nname = \"evil\"\nenv_file = \"vars.env\"\n{MARKING}");
    let checkout = Checkout::with(&[
        (
            "tenon.toml",
            format!(
                "plugins.scripts = [\"s.rhai\"]\nplugins.wasm = [\"own.wasm\"]\nlimits.wall = \"3s\"\n{entry}"
            ),
        ),
        ("vars.env", "OTHER=1".into()),
        (
            ".tenon/plugins/b/plugin.toml",
            "[plugin]\nid = \"b\"\n[runtime]\nkind = \"mcp-bridge\"".into(),
        ),
        (".tenon/plugins/b/.mcp.json", marking("mcpServers")),
        ("s.rhai", SCRIPT.into()),
        (
            ".mcp.json",
            json!({ "mcpServers": { "there": { "command": "node", "args": ["server.js"] } } })
                .to_string(),
        ),
        ("server.js", "1".into()),
    ]);
    checkout.write("own.wasm", fs::read(guests::HELLO).unwrap());
    // Nobody is there to be asked, and everything is shown.
    let said = checkout.run(&["trust"], 3);
    for shown in [
        "starts    evil: sh",
        "argument -c",
        "starts    there: node",
        "argument server.js",
        "loads     s: s.rhai",
        "loads     own: own.wasm",
        "starts    b: sh",
        "variable OTHER=(of vars.env)",
        "sets      limits.wall = \"3s\"",
        "`tenon trust --yes`",
    ] {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    assert!(!checkout.is_marked());
    checkout.run(&["trust", "--yes"], 0);
    assert!(checkout.run(&["trust"], 0).contains("is trusted as it is"));
    assert!(checkout.run(&["call", "s__t"], 0).contains("ran"));
    assert!(!checkout.run(&["plugins"], 0).contains("trusted"));

    // Any of its files is a change, and the difference is shown.
    let check = |name: &str, text: Option<&str>, changed: &str, shown: &str| {
        let path = checkout.0.path(&format!("checkout/{name}"));
        let before = fs::read(&path).ok();
        match text {
            Some(text) => checkout.write(name, text),
            None => fs::remove_file(&path).unwrap(),
        }
        let said = checkout.run(&["call", "s__t"], 3);
        assert!(
            said.contains("has changed since it was trusted") && said.contains(changed),
            "{said}"
        );
        let said = checkout.run(&["trust"], 3);
        assert!(said.contains(shown), "{shown}: {said}");
        match before {
            Some(before) => checkout.write(name, before),
            None => fs::remove_file(&path).unwrap(),
        }
        checkout.run(&["call", "s__t"], 0);
    };
    check(
        "tenon.toml",
        Some("plugins.scripts = [\"s.rhai\"]\nlimits.wall = \"9h\""),
        ": tenon.toml",
        "+ sets      limits.wall = \"9h\"",
    );
    check("tenon.toml", Some("= broken"), ": tenon.toml", "- loads     s: s.rhai");
    check("tenon.toml", None, ": tenon.toml", "- loads     s: s.rhai");
    check(".mcp.json", Some(&marking("mcpServers")), ".mcp.json", "- starts    there: node");
    check(
        ".vscode/mcp.json",
        Some(&marking("servers")),
        ".vscode/mcp.json",
        "changed   .vscode/mcp.json",
    );
    check("server.js", Some("2"), ": server.js", "changed   server.js");
    check("vars.env", Some("OTHER=2"), ": vars.env", "changed   vars.env");
    check("vars.env", Some("MORE=1"), ": vars.env", "variable MORE=(of vars.env)");
    let sidecar = ".tenon/plugins/b/.mcp.json";
    let other = json!({ "mcpServers": { "b": { "command": "true" } } }).to_string();
    check(sidecar, Some(&other), sidecar, "- starts    b: sh");
    check(
        ".tenon/plugins/n/plugin.toml",
        Some(&manifest("n", "rhai", "n.rhai")),
        ".tenon/plugins/n/plugin.toml",
        "+ loads     n: .tenon/plugins/n/n.rhai",
    );
    check("tenon.lock", Some("version = 1"), ": tenon.lock", "changed   tenon.lock");
    fs::remove_dir_all(checkout.0.path("checkout/.tenon/plugins/n")).unwrap();

    // Of code that changes, its plugin alone waits.
    let greet = ["call", "own__greet", r#"{"name": "Ada"}"#];
    checkout.run(&greet, 0);
    checkout.write("own.wasm", fs::read(guests::TEXT_TOOLS).unwrap());
    let said = checkout.run(&greet, 3);
    assert!(said.contains("own.wasm has changed since its project was trusted"), "{said}");
    assert!(checkout.run(&["trust"], 3).contains("changed   own.wasm"));
    checkout.run(&["call", "s__t"], 0);
    checkout.write("own.wasm", fs::read(guests::HELLO).unwrap());
    checkout.run(&greet, 0);
    checkout.write("s.rhai", SCRIPT.replace("ran", "other"));
    let said = checkout.run(&["call", "s__t"], 3);
    assert!(said.contains("s.rhai has changed since its project was trusted"), "{said}");
    assert!(said.contains("`tenon trust`"), "{said}");
    assert!(checkout.run(&["trust"], 3).contains("changed   s.rhai"));
    checkout.run(&["trust", "--yes", "--allow-code-changes"], 0);
    assert!(checkout.run(&["call", "s__t"], 0).contains("other"));
    checkout.write("s.rhai", SCRIPT);
    assert!(checkout.run(&["call", "s__t"], 0).contains("ran"));

    let listed = checkout.json(&["trust", "--list"]);
    assert_eq!(listed[0]["codeMayChange"], true);
    checkout.run(&["trust", "--revoke"], 0);
    checkout.run(&["trust", "--revoke"], 2);
    assert!(checkout.run(&["call", "s__t"], 3).contains("is not trusted"));
    assert_eq!(checkout.json(&["trust", "--list"]), json!([]));
}

#[test]
fn a_folder_that_is_named_is_the_one_that_is_trusted() {
    let script = || ("s.rhai", SCRIPT.to_string());
    let checkout =
        Checkout::with(&[("tenon.toml", "plugins.scripts = [\"s.rhai\"]".into()), script()]);
    checkout.0.write("tenon.toml", "plugins.scripts = [\"checkout/s.rhai\"]");
    let run = |arguments: &[&str], code: i32| {
        let mut command = checkout.command(arguments);
        let output = command.current_dir(checkout.0.path("")).output().unwrap();
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    };
    let said = run(&["trust", "checkout"], 3);
    assert!(said.contains("loads     s: s.rhai"), "{said}");
    assert!(said.contains("`tenon trust checkout --yes` trusts it without asking"), "{said}");
    run(&["trust", "checkout", "--yes"], 0);
    assert!(checkout.run(&["call", "s__t"], 0).contains("ran"));
    run(&["call", "s__t"], 3);
    run(&["trust", "--revoke", "checkout"], 0);
    checkout.run(&["call", "s__t"], 3);
    run(&["trust", "nowhere"], 2);
}

/// What a project does with what is the user's is among what its user is shown.
#[test]
fn what_a_project_is_given_and_does_not_compare_is_shown() {
    let entry = |name: &str, pins: &str| {
        format!("[[plugins.mcp]]\nname = {name:?}\npins = {pins:?}\n{MARKING}")
    };
    let off = json!({ "mcpServers": { "file": { "command": "true", "pins": "off" } } });
    let checkout = Checkout::with(&[
        (
            "tenon.toml",
            format!(
                "settings.warns = {{ region = \"r\", own = \"o\" }}\n{}{}",
                entry("warns", "warn"),
                entry("holds", "hold")
            ),
        ),
        (".mcp.json", off.to_string()),
    ]);
    checkout.0.write(
        "tenon/config.toml",
        "settings.warns = { region = \"mine\", api_key = \"hunter22\" }\nsettings.file.api_key = \"hunter22\"",
    );
    let said = checkout.run(&["trust"], 3);
    let expected = [
        "receives  warns: what you set for it: region\n",
        "sets      warns: pins = \"warn\"\n",
        "sets      file: pins = \"off\"\n",
    ];
    for shown in expected {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    assert!(!said.contains("holds: pins") && !said.contains("receives  file"), "{said}");
    assert!(!said.contains("hunter22"), "{said}");
    // What is not given is told to who wonders.
    let said = checkout.run(&["--trust", "plugins"], 0);
    let told = said.lines().filter(|line| line.contains("gets only settings"));
    let told: Vec<&str> = told.filter_map(|line| line.split("; missing: ").nth(1)).collect();
    assert_eq!(told, ["api_key", "api_key"], "{said}");
}

#[test]
fn a_server_starts_as_its_user_was_shown_or_not_at_all() {
    let mark = "echo ran > \"$MARK\"";
    let entry = |command: &str, arguments: &[&str]| {
        let environment = json!({ "MARK": "${MARK}" });
        json!({ "mcpServers": { "evil": {
            "command": command, "args": arguments, "env": environment
        } } })
    };
    let editor = json!({
        "inputs": [{ "id": "later", "type": "promptString" }],
        "servers": { "evil": {
            "command": "sh", "args": ["-c", mark, "${input:later}"], "env": { "MARK": "${MARK}" }
        } }
    });
    for (file, written, shown, variable, value) in [
        (
            ".mcp.json",
            entry("sh", &["-c", mark, "${LATER}"]),
            "the variable LATER is not set",
            "LATER",
            "1",
        ),
        (".vscode/mcp.json", editor, "the input `later`", "TENON_INPUT_LATER", "1"),
        (
            ".mcp.json",
            entry("${LATER:-true}", &["-c", mark]),
            "written `command` ${LATER:-true}",
            "LATER",
            "sh",
        ),
        (
            ".mcp.json",
            entry("sh", &["-c", "${LATER:-true}"]),
            "written `args` ${LATER:-true}",
            "LATER",
            mark,
        ),
    ] {
        let checkout = Checkout::with(&[(file, written.to_string())]);
        let said = checkout.run(&["trust", "--yes"], 0);
        assert!(said.contains(shown), "{said}");
        let later = |arguments: &[&str]| {
            let mut command = checkout.command(arguments);
            let output = command.env(variable, value).output().expect("tenon starts");
            (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
        };
        for arguments in [["tools", "evil"].as_slice(), &["doctor"], &["call", "evil__t"]] {
            let (code, said) = later(arguments);
            assert!(!checkout.is_marked(), "{written}: {arguments:?}: {said}");
            assert!(code == Some(3) || arguments == ["doctor"], "{written}: {arguments:?}: {said}");
        }
        let (_, said) = later(&["trust"]);
        assert!(said.contains("changed   evil in "), "{written}: {said}");
        assert_eq!(later(&["trust", "--yes"]).0, Some(0));
        later(&["tools", "evil"]);
        assert!(checkout.is_marked(), "{written}");
    }
}

#[test]
fn the_program_that_is_shown_is_the_one_that_starts() {
    for (program, folder, shown, other) in
        [("./run", "d", "run", "d/run"), ("./d/run", "d", "d/run", "run")]
    {
        let checkout = Checkout::new();
        for (name, text) in [(shown, "echo ran > \"$MARK\""), (other, "exit 0")] {
            write_program(&checkout, name, text);
        }
        let environment = json!({ "MARK": "${MARK}" });
        let entry = json!({ "command": program, "cwd": folder, "env": environment });
        checkout.write(".mcp.json", json!({ "mcpServers": { "evil": entry } }).to_string());
        let said = checkout.run(&["trust", "--yes"], 0);
        let path = checkout.0.path("checkout").join(shown);
        assert!(said.contains(&format!("{}\n", path.display())), "{said}");
        checkout.tenon(&["tools", "evil"]);
        assert!(checkout.is_marked(), "{program}");
        write_program(&checkout, shown, "exit 3");
        assert!(checkout.run(&["tools", "evil"], 3).contains("has changed since"), "{program}");
    }
}

/// A program that bears the mark, in the checkout.
fn write_program(checkout: &Checkout, name: &str, text: &str) {
    checkout.write(name, format!("#!/bin/sh\n{text}\n"));
    let is_executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(checkout.0.path(&format!("checkout/{name}")), is_executable).unwrap();
}

#[test]
fn a_program_of_the_project_that_path_finds_is_shown_and_compared() {
    let entry = json!({ "command": "mytool", "env": { "MARK": "${MARK}" } });
    let entry = json!({ "mcpServers": { "evil": entry } }).to_string();
    let path = std::env::var("PATH").expect("there is a path");
    // Folders of a path are relative to where the program runs, too.
    for first in ["bin", "HERE/bin"] {
        let checkout = Checkout::with(&[(".mcp.json", entry.clone())]);
        write_program(&checkout, "bin/mytool", "echo ran > \"$MARK\"");
        let here = checkout.0.path("checkout").display().to_string();
        let path = format!("{}:{path}", first.replace("HERE", &here));
        let found = |arguments: &[&str]| {
            let mut command = checkout.command(arguments);
            let output = command.env("PATH", &path).output().expect("tenon starts");
            (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
        };
        // What is another program once the path leads into the project was not shown.
        checkout.run(&["trust", "--yes"], 0);
        let (code, said) = found(&["tools", "evil"]);
        assert_eq!(code, Some(3), "{said}");
        assert!(!checkout.is_marked(), "{said}");
        let (_, said) = found(&["trust", "--yes"]);
        assert!(said.contains(&format!("{here}/bin/mytool\n")), "{said}");
        found(&["tools", "evil"]);
        assert!(checkout.is_marked());
        write_program(&checkout, "bin/mytool", "exit 3");
        let (code, said) = found(&["tools", "evil"]);
        assert!(code == Some(3) && said.contains("has changed since"), "{said}");
    }
}

#[test]
fn a_file_that_arguments_name_in_any_way_is_compared() {
    for (program, arguments, file) in [
        ("sh", json!(["-c", "exec sh ./own.sh"]), "own.sh"),
        ("sh", json!(["-c", "cd d; . ./own.sh"]), "own.sh"),
        ("cat", json!(["-r./own.sh"]), "own.sh"),
        ("sh", json!(["-c", "exec python3 \"$PWD/own.py\""]), "own.py"),
        ("sh", json!(["-c", "exec python3 ./own"]), "own"),
        ("node", json!(["./own"]), "own.js"),
        ("python3", json!(["pkg"]), "pkg/__main__.py"),
        ("python3", json!(["-m", "pkg.own"]), "pkg/own.py"),
        ("uv", json!(["--directory", "pkg", "run", "own.py"]), "pkg/own.py"),
    ] {
        let checkout = Checkout::with(&[(file, "first".into())]);
        let entry = json!({ "mcpServers": { "evil": { "command": program, "args": arguments } } });
        checkout.write(".mcp.json", entry.to_string());
        checkout.run(&["trust", "--yes"], 0);
        checkout.write(file, "second");
        let said = checkout.run(&["tools", "evil"], 3);
        assert!(said.contains("has changed since") && said.contains(file), "{entry}: {said}");
    }
}

#[test]
fn a_program_too_long_to_be_read_each_time_is_no_other() {
    let checkout = Checkout::new();
    let program = checkout.0.path("checkout/long.sh");
    let write = |text: &str| {
        fs::write(&program, text).unwrap();
        let file = fs::File::options().write(true).open(&program).unwrap();
        // Sparse, and more than a component may have.
        file.set_len(300 << 20).unwrap();
    };
    write("exit 0\n");
    let entry = json!({ "command": "sh", "args": ["long.sh"], "env": { "MARK": "${MARK}" } });
    checkout.write(".mcp.json", json!({ "mcpServers": { "evil": entry } }).to_string());
    checkout.run(&["trust", "--yes"], 0);
    assert!(!checkout.run(&["doctor"], 1).contains("has changed"));
    write("echo ran > \"$MARK\"; exit 0\n");
    assert!(checkout.run(&["tools", "evil"], 3).contains("long.sh"));
    assert!(!checkout.is_marked());
}

#[test]
fn a_link_to_what_a_server_starts_leads_where_it_led() {
    let checkout = Checkout::new();
    checkout.0.write("elsewhere/fine.sh", "exit 0");
    checkout.0.write("elsewhere/evil.sh", "echo ran > \"$MARK\"");
    let link = checkout.0.path("checkout/server.sh");
    symlink("../elsewhere/fine.sh", &link).unwrap();
    let entry = json!({ "command": "sh", "args": ["server.sh"], "env": { "MARK": "${MARK}" } });
    checkout.write(".mcp.json", json!({ "mcpServers": { "evil": entry } }).to_string());
    checkout.run(&["trust", "--yes"], 0);
    // What is there is not the project's.
    checkout.0.write("elsewhere/fine.sh", "exit 1");
    assert!(!checkout.run(&["doctor"], 1).contains("has changed"));
    fs::remove_file(&link).unwrap();
    symlink("../elsewhere/evil.sh", &link).unwrap();
    let said = checkout.run(&["tools", "evil"], 3);
    assert!(
        said.contains("has changed since it was trusted") && said.contains("server.sh"),
        "{said}"
    );
    assert!(!checkout.is_marked());
}

#[test]
fn what_was_approved_in_a_project_is_taken_back_though_it_has_changed() {
    let checkout = Checkout::with(&[
        ("tenon.toml", "plugins.folders = [\"own\"]".into()),
        (
            "own/evil/plugin.toml",
            manifest("evil", "rhai", "evil.rhai") + "\n[capabilities]\ntools = [\"x\"]",
        ),
        ("own/evil/evil.rhai", SCRIPT.into()),
    ]);
    checkout.run(&["trust", "--yes"], 0);
    checkout.run(&["approve", "evil", "--yes"], 0);
    checkout.write("tenon.toml", "plugins.folders = [\"own\"] # changed");
    checkout.run(&["call", "evil__t"], 3);
    checkout.run(&["revoke", "evil"], 0);
    checkout.run(&["trust", "--yes"], 0);
    let said = checkout.run(&["call", "evil__t"], 3);
    assert!(said.contains("is not approved"), "{said}");
}

#[test]
fn a_mistake_in_a_project_that_is_trusted_is_told_as_one() {
    for (text, expected) in [
        ("[plugins]\nscripts = [{ path = \"s.rhai\", capabilites = {} }]", "tenon.toml:2"),
        ("[plugins", "tenon.toml:1"),
    ] {
        let checkout = Checkout::with(&[("tenon.toml", text.into())]);
        let said = checkout.run(&["trust", "--yes"], 0);
        assert!(said.contains("problem"), "{said}");
        for arguments in [["tools"].as_slice(), &["doctor"], &["call", "s__t"]] {
            let said = checkout.run(arguments, 2);
            assert!(said.contains(expected) && !said.contains("has changed"), "{said}");
        }
        checkout.write("tenon.toml", format!("{text}\n"));
        assert!(checkout.run(&["tools"], 0).contains("has changed since it was trusted"));
    }
}

#[test]
fn the_environment_names_folders_with_all_that_is_in_them() {
    let checkout = Checkout::with(&[
        ("tenon.toml", "plugins.scripts = [\"s.rhai\"]".into()),
        ("s.rhai", SCRIPT.into()),
    ]);
    let check = |value: String, code: i32| {
        let output =
            checkout.command(&["call", "s__t"]).env("TENON_TRUST", &value).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{value}: {}", stderr(&output));
        let is_told = stderr(&output).contains("is not an absolute path");
        assert_eq!(is_told, [".", "*"].contains(&value.as_str()), "{value}: {}", stderr(&output));
    };
    let path = |name: &str| checkout.0.path(name).display().to_string();
    check(path("checkout"), 0);
    check(path("."), 0);
    check(format!("/no/such:{}/", path("checkout")), 0);
    // What is named like it, what is in it, and what would be everywhere, is not it.
    fs::create_dir_all(checkout.0.path("checkout/in")).unwrap();
    fs::create_dir_all(checkout.0.path("check")).unwrap();
    for value in [path("check"), path("checkout/in"), ".".into(), "*".into(), String::new()] {
        check(value, 3);
    }
    let output = checkout.tenon(&["call", "s__t", "--config", "tenon.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn what_a_command_of_the_user_makes_is_trusted_and_nothing_beside_it() {
    let checkout = Checkout::new();
    checkout.run(&["new", "mine", "--lang", "rhai"], 0);
    let mine = checkout.0.path("checkout/mine").display().to_string();
    let of_mine = ["--project", &mine];
    let call = [&of_mine[..], &["call", "mine__greet", r#"{"name": "Ada"}"#]].concat();
    assert!(checkout.run(&call, 0).contains("Ada"));
    // Its author writes on.
    let script = fs::read_to_string(checkout.0.path("checkout/mine/mine.rhai")).unwrap();
    checkout.write("mine/mine.rhai", script.replace("Hello", "Salve"));
    assert!(checkout.run(&call, 0).contains("Salve"));
    checkout.run(&["build", &mine], 0);
    let own = fs::read_to_string(checkout.0.path("checkout/mine/plugin.toml")).unwrap();
    checkout.write(
        "mine/plugin.toml",
        format!("{own}\n[permissions]\nregister_tools = true\ntool_namespace = \"m\""),
    );
    checkout.run(&[&of_mine[..], &["call", "m__greet", r#"{"name": "Ada"}"#]].concat(), 0);
    // But a program is no code in a sandbox.
    let bridge = format!(
        "[plugin]\nid = \"mine\"\n[runtime]\nkind = \"mcp-bridge\"\n[runtime.subprocess]\n{MARKING}"
    );
    checkout.write("mine/plugin.toml", bridge);
    checkout.run(&call, 3);
    assert!(!checkout.is_marked());
    checkout.write("mine/plugin.toml", own);
    // What is installed is the user's doing, in a folder without anything.
    checkout.run(&["install", "mine"], 0);
    let call = ["call", "mine__greet", r#"{"name": "Ada"}"#];
    checkout.run(&call, 0);
    // A script that somebody else put there is not trusted for being there when another is installed.
    checkout.write(".tenon/plugins/mine/mine.rhai", "");
    checkout.run(&["new", "other", "--lang", "rhai"], 0);
    checkout.run(&["install", "other"], 0);
    checkout.run(&["call", "other__greet", r#"{"name": "Ada"}"#], 0);
    checkout.run(&call, 3);
    checkout.run(&["uninstall", "other", "--yes"], 0);
    checkout.run(&call, 3);
    // Nor is anything installed into what is not trusted.
    checkout.write(".mcp.json", marking("mcpServers"));
    assert!(checkout.run(&["install", "other"], 3).contains("has changed since it was trusted"));
}

#[test]
fn what_others_could_have_written_is_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let checkout = Checkout::with(&[
        ("tenon.toml", "plugins.scripts = [\"s.rhai\"]".into()),
        ("s.rhai", SCRIPT.into()),
    ]);
    checkout.run(&["trust", "--yes"], 0);
    let file = checkout.0.path("state/tenon/trust.json");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    assert!(checkout.run(&["call", "s__t"], 3).contains("chmod go-w"));
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    checkout.run(&["call", "s__t"], 0);
    fs::write(&file, "{}").unwrap();
    assert!(checkout.run(&["call", "s__t"], 3).contains("is not a file of trusted projects"));
}

/// A project is found by where it really is.
#[test]
fn a_project_under_another_name_is_the_same_and_another_under_its_name_is_not() {
    let server = "{ name = \"m\", command = \"sh\", args = [\"-c\", \"exit ${workspaceFolder}\"] }";
    let checkout = Checkout::with(&[
        ("tenon.toml", format!("plugins = {{ scripts = [\"s.rhai\"], mcp = [{server}] }}")),
        ("s.rhai", SCRIPT.into()),
    ]);
    checkout.run(&["trust", "--yes"], 0);
    symlink("checkout", checkout.0.path("link")).unwrap();
    checkout.run(&["--project", "../link", "call", "s__t"], 0);
    for name in [".", "../checkout", "../link", "../link/../checkout/."] {
        let said = checkout.run(&["--project", name, "plugins"], 0);
        assert!(said.contains("m") && !said.contains("not approved"), "{name}: {said}");
        let said = checkout.run(&["trust", name], 0);
        assert!(said.contains("is trusted as it is"), "{name}: {said}");
    }
    fs::rename(checkout.0.path("checkout"), checkout.0.path("moved")).unwrap();
    checkout.write("tenon.toml", "plugins.scripts = [\"../moved/s.rhai\"]");
    checkout.run(&["call", "s__t"], 3);
    assert!(checkout.run(&["--project", "../moved", "call", "s__t"], 3).contains("is not trusted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_goes_on_until_its_change_is_trusted_and_ends_with_the_trust() {
    let project = Project::new("plugins.scripts = [\"s.rhai\"]");
    project.write("s.rhai", SCRIPT);
    let file = TrustFile::new(project.path("private/trust.json"));
    let sources = Sources {
        configs: vec![Config::of_optional_file(project.path("tenon.toml"))],
        workspace: Some(project.path("")),
        trust: TrustBasis::Recorded(Some(file.clone())),
        host_environment: HostEnvironment { configuration: None, ..host_environment() },
        ..Sources::default()
    };
    let trust = || file.trust(&file.review(&sources).unwrap(), false).unwrap();
    let builder = Platform::builder().sources(sources.clone());
    let platform = builder.build().await.unwrap();
    let answer = async |tool: &str| match call(&platform, tool, json!({})).await {
        Ok(result) => format!("{:?}", result.content),
        Err(error) => error.to_string(),
    };
    assert!(answer("s__t").await.contains("there is no tool"));
    trust();
    platform.reload().await;
    assert!(answer("s__t").await.contains("ran"));

    project.write("more.rhai", SCRIPT);
    project.write("tenon.toml", "plugins.scripts = [\"s.rhai\", \"more.rhai\"]");
    let events = platform.reload().await;
    assert!(
        matches!(&events[..], [Event::NotReloaded { plugin: None, problem }] if problem.contains("has changed since it was trusted")),
        "{events:?}"
    );
    assert_eq!(platform.differences().await, []);
    assert!(answer("s__t").await.contains("ran"));
    assert!(answer("more__t").await.contains("there is no tool"));
    trust();
    platform.reload().await;
    assert!(answer("more__t").await.contains("ran"));

    // A script that is another is that script's own matter.
    project.write("s.rhai", SCRIPT.replace("ran", "other"));
    platform.reload().await;
    assert!(answer("s__t").await.contains("ran"));
    trust();
    platform.reload().await;
    assert!(answer("s__t").await.contains("other"));

    assert!(file.revoke(&project.path("")).unwrap());
    platform.reload().await;
    assert!(answer("s__t").await.contains("there is no tool"));
    platform.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_late_starts_as_it_was_trusted() {
    let entry =
        format!("{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [\"script.json\"] }}");
    let project = Project::new(&format!("plugins.mcp = [{entry}]"));
    let script = |answer: &str| {
        let said = json!({
            "tools/list": { "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] },
            "tools/call": { "content": [{ "type": "text", "text": answer }] },
        });
        project.write("script.json", said.to_string());
    };
    script("ran");
    let file = TrustFile::new(project.path("private/trust.json"));
    let sources = Sources {
        configs: vec![Config::of_optional_file(project.path("tenon.toml"))],
        workspace: Some(project.path("")),
        trust: TrustBasis::Recorded(Some(file.clone())),
        host_environment: HostEnvironment { configuration: None, ..host_environment() },
        ..Sources::default()
    };
    let trust = || file.trust(&file.review(&sources).unwrap(), false).unwrap();
    trust();
    let build = async || Platform::builder().sources(sources.clone()).build().await.unwrap();
    let answer = async |platform: &Platform| match call(platform, "s__t", json!({})).await {
        Ok(result) => format!("{:?}", result.content),
        Err(error) => error.to_string(),
    };
    let first = build().await;
    assert!(answer(&first).await.contains("ran"));
    first.shutdown().await;

    // What it has is known, and it is not started before it is called.
    let platform = build().await;
    script("other");
    let said = answer(&platform).await;
    assert!(said.contains("script.json has changed since its project was trusted"), "{said}");
    trust();
    platform.reload().await;
    assert!(answer(&platform).await.contains("other"));
    platform.shutdown().await;
}

/// What an editor would ask its user for at each start is asked for once, and is a part of what was trusted.
#[test]
fn what_an_editor_would_ask_for_is_asked_when_the_project_is_trusted() {
    let project = Project::new("");
    project.write(
        ".vscode/mcp.json",
        json!({
            "inputs": [
                { "id": "greeting", "type": "promptString", "description": "What \u{202e}to say" },
                { "id": "host", "type": "promptString", "default": "localhost" },
            ],
            "servers": { "s": { "command": DEMO_SERVER, "args": ["${input:greeting}", "${input:host}"] } },
        })
        .to_string(),
    );
    let tenon = |arguments: &[&str]| {
        project.command(arguments).env_remove("TENON_TRUST").output().expect("tenon starts")
    };
    // Nobody is there to be asked.
    let said = stderr(&tenon(&["trust", "--yes"]));
    assert!(!said.contains("asks for"), "{said}");
    let said = stderr(&tenon(&["tools"]));
    assert!(said.contains("the input `greeting` has no value"), "{said}");
    assert!(
        said.contains("run `tenon trust` to enter it, or set the variable TENON_INPUT_GREETING"),
        "{said}"
    );
    let trusted = |typed: &str| {
        let mut command = project.command(&["trust"]);
        command.env_remove("TENON_TRUST");
        on_terminal_as(command, typed)
    };
    let said = trusted("hello there\ny\n");
    assert!(said.contains("the project asks for greeting (What \\u{202e}to say): "), "{said}");
    assert!(!said.contains("asks for host"), "{said}");
    assert!(said.contains("argument hello there") && said.contains("argument localhost"), "{said}");
    let listed = tenon(&["tools"]);
    assert!(stdout(&listed).contains("s__echo"), "{}", stderr(&listed));
    // It is not asked for again, and a variable goes before it, which is another start.
    assert!(trusted("").contains("is trusted as it is"));
    let other = project
        .command(&["tools"])
        .env_remove("TENON_TRUST")
        .env("TENON_INPUT_GREETING", "bye")
        .output()
        .unwrap();
    assert!(!stdout(&other).contains("s__echo"), "{}", stdout(&other));
    assert!(stderr(&other).contains("is not approved"), "{}", stderr(&other));
}

/// What is to be picked is one of its options, whoever says it.
#[test]
fn what_an_editor_would_have_picked_is_one_of_its_options() {
    let project = Project::new("");
    let write = |default: Value| {
        let options = json!(["low", { "label": "High", "value": "high\u{202e}" }]);
        let level =
            json!({ "id": "level", "type": "pickString", "options": options, "default": default });
        let server = json!({ "command": DEMO_SERVER, "args": ["${input:level}"] });
        let file = json!({ "inputs": [level], "servers": { "s": server } });
        project.write(".vscode/mcp.json", file.to_string());
    };
    let command = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env_remove("TENON_TRUST");
        command
    };
    write(Value::Null);
    let said = on_terminal_as(command(&["trust"]), "middle\nlow\ny\n");
    let question = "the project asks for level, one of \"low\", \"high\\u{202e}\": ";
    assert_eq!(said.matches(question).count(), 2, "{said}");
    assert!(said.contains("it is none of these"), "{said}");
    assert!(said.contains("argument low"), "{said}");
    let listed = command(&["tools"]).output().unwrap();
    assert!(stdout(&listed).contains("s__echo"), "{}", stderr(&listed));
    let other = command(&["tools"]).env("TENON_INPUT_LEVEL", "middle").output().unwrap();
    let refused = "the input `level` must be one of \"low\", \"high\\u{202e}\"";
    assert!(stderr(&other).contains(refused), "{}", stderr(&other));
    assert!(stderr(&other).contains("set the variable TENON_INPUT_LEVEL"), "{}", stderr(&other));
    assert!(!stdout(&other).contains("s__echo"), "{}", stdout(&other));

    // A default is offered. One that is no option is not.
    assert_eq!(command(&["trust", "--revoke"]).output().unwrap().status.code(), Some(0));
    write(json!("low"));
    let said = on_terminal_as(command(&["trust"]), "\ny\n");
    assert!(said.contains(" [low]: ") && said.contains("argument low"), "{said}");
    assert!(on_terminal_as(command(&["trust"]), "").contains("is trusted as it is"));
    assert_eq!(command(&["trust", "--revoke"]).output().unwrap().status.code(), Some(0));
    write(json!("middle"));
    let said = on_terminal_as(command(&["trust"]), "\nn\n");
    assert!(said.contains(question) && said.contains(refused), "{said}");
}

#[test]
fn what_has_not_changed_is_not_said_to_have() {
    let entries = |more: &str| {
        format!("plugins.mcp = [{{ name = \"a\", command = \"sh\", args = [\"a.sh\"] }}{more}]")
    };
    let both = entries(", { name = \"b\", command = \"sh\", args = [\"b.sh\"] }");
    let checkout = Checkout::with(&[
        ("tenon.toml", both.clone()),
        ("a.sh", "exit 1".into()),
        ("b.sh", "exit 1".into()),
    ]);
    checkout.run(&["trust", "--yes"], 0);
    for written in [entries(""), both.clone()] {
        checkout.write("tenon.toml", written);
        let said = checkout.run(&["trust"], 3);
        assert!(said.contains("changed   tenon.toml"), "{said}");
        assert!(!said.contains("changed   b.sh"), "{said}");
        checkout.run(&["trust", "--yes"], 0);
    }
    // What has is.
    checkout.write("b.sh", "exit 2");
    assert!(checkout.run(&["trust"], 3).contains("changed   b.sh"));
    checkout.write("tenon.toml", format!("{both}\n# more"));
    assert!(checkout.run(&["trust"], 3).contains("changed   b.sh"));
}
