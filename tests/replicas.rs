//! Runs on several processes: two that serve MCP clients over one PostgreSQL, and one that is killed again and again.
//!
//! `cargo xtask test` installs PostgreSQL, and says where it is. Without it the tests that need it are listed as ignored.

#![allow(clippy::print_stderr)]

#[path = "replicas/kills.rs"]
mod kills;
#[path = "../host/store/postgres/tests/it/server.rs"]
#[allow(dead_code)]
mod server;
#[path = "it/support.rs"]
#[allow(dead_code)]
mod support;

use libtest_mimic::{Arguments, Trial};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Output, Stdio};

use server::Server;
use support::{Project, parsed, stderr, stdout};
use tenon_tests::trial;

const COUNTING_SERVER: &str = env!("CARGO_BIN_EXE_counting-server");

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let packages = std::env::var_os("TENON_POSTGRES").map(PathBuf::from);
    if packages.is_none() {
        eprintln!(
            "note: no PostgreSQL is installed, so its tests are ignored; `cargo xtask test` installs one"
        );
    }
    let shared = trial(
        "a_run_pauses_on_one_replica_and_goes_on_at_another",
        "PostgreSQL",
        packages,
        |packages| {
            goes_on_at_another(&packages);
        },
    );
    let killed = Trial::test("nothing_is_done_twice_by_processes_that_are_killed", || {
        kills::killed_again_and_again();
        Ok(())
    });
    libtest_mimic::run(&arguments, vec![shared, killed]).exit_code()
}

/// A project with a server that keeps account of its calls, of which those with great numbers have to be approved.
fn project() -> Project {
    let project = Project::new("");
    let folder = project.path("account");
    fs::create_dir_all(&folder).expect("there is room");
    project.write(
        "tenon.toml",
        format!(
            "plugins.mcp = [{{ name = \"counting\", command = {COUNTING_SERVER:?}, args = [\"legacy\", {folder:?}] }}]\n\
             tools.counting__count.approve = \"ask\"\n\
             [[tools.counting__count.when]]\napprove = \"allow\"\narguments.\"/number\".max = 2\n"
        ),
    );
    project
}

/// The numbers that the server was given, in their order.
fn counted(project: &Project) -> Vec<u64> {
    let lines = fs::read_to_string(project.path("account/calls")).unwrap_or_default();
    lines.lines().map(|line| line.parse().expect("it is a number")).collect()
}

/// A command of the project on a machine of its own: what it keeps beside the store is elsewhere.
fn command_on(project: &Project, machine: &str, arguments: &[&str]) -> Command {
    let mut command = project.command(arguments);
    command.env("XDG_STATE_HOME", project.path(machine));
    command
}

fn run_on(project: &Project, machine: &str, arguments: &[&str]) -> Output {
    command_on(project, machine, arguments).output().expect("tenon starts")
}

/// A process of `tenon serve`.
struct Replica {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Replica {
    fn start(project: &Project, machine: &str) -> Self {
        let approved = run_on(project, machine, &["approve", "--all", "--yes"]);
        assert!(approved.status.success(), "{}", stderr(&approved));
        let mut command = command_on(project, machine, &["serve", "--profile", "code"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("tenon starts");
        let input = process.stdin.take().expect("it is piped");
        let output = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Self { process, input, output }
    }

    /// The result of the tool `run`.
    fn run(&mut self, id: u64, arguments: Value) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": "run", "arguments": arguments, "_meta": meta });
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        writeln!(self.input, "{request}").expect("it listens");
        let line = self.output.next().expect("it answers").expect("it can be read");
        let answer: Value = serde_json::from_str(&line).expect("it is JSON");
        answer["result"].clone()
    }
}

fn goes_on_at_another(packages: &std::path::Path) {
    let server = Server::start(packages);
    let project = project();
    let database = server.database();
    project.write(
        "tenon/config.toml",
        format!("store.url = {database:?}\nprofiles.code.mode = \"code\"\n"),
    );
    let (mut one, mut other) = (Replica::start(&project, "one"), Replica::start(&project, "other"));
    let script = "let all = []; for n in 1..=4 { all.push(counting.count(#{ number: n })); } all";
    let paused = one.run(1, json!({ "script": script }));
    let (error, run) = (&paused["_meta"]["tenon/error"], &paused["_meta"]["tenon/run"]);
    assert_eq!(error["code"], "approval-required", "{paused}");
    assert_eq!(counted(&project), [1, 2]);
    let (approval, id) = (error["approval"].as_str().unwrap(), run["id"].as_str().unwrap());
    // Nobody has approved it yet, wherever it is tried.
    let again = other.run(1, json!({ "resume": id }));
    assert_eq!(again["_meta"]["tenon/error"]["approval"], approval, "{again}");
    let pending = parsed(&run_on(&project, "desk", &["--json", "pending"]));
    assert_eq!(pending[0]["arguments"], json!({ "number": 3 }), "{pending}");
    let always = ["approve", approval, "--for", "run", "--any-arguments", "--yes"];
    let approved = run_on(&project, "desk", &always);
    assert!(approved.status.success(), "{}", stderr(&approved));
    // The replica that began it is gone.
    drop(one);
    let done = other.run(2, json!({ "resume": id }));
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(counted(&project), [1, 2, 3, 4]);
    let ended = other.run(3, json!({ "resume": id }));
    assert_eq!(ended["_meta"]["tenon/error"]["code"], "not-paused", "{ended}");
    assert_eq!(counted(&project), [1, 2, 3, 4]);
    let shown = stdout(&run_on(&project, "desk", &["runs", "show", id]));
    assert!(shown.contains("  4  counting__count  "), "{shown}");
    let verified = run_on(&project, "desk", &["history", "verify"]);
    assert!(verified.status.success(), "{}", stdout(&verified));
}
