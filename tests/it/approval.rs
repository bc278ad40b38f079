//! Approval: nothing that is requested is there before its user said so, and nothing stays approved
//! that has changed.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};

use async_trait::async_trait;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use std::path::PathBuf;
use tenon_config::discover::Sources;
use tenon_config::discover::trust::{TrustBasis, TrustFile};
use tenon_config::files::Digest;
use tenon_config::lock::{LockFile, LockedPlugin};
use tenon_host::services::{ApprovalRequest, Approver, GrantDecision};
use tenon_host::{HostEnvironment, Platform, PluginState};

use crate::guests;
use crate::support::{Project, host_environment, parsed, stderr, stdout};

/// A project with a plugin that requests files: `notes`, and what is added.
fn project() -> Project {
    let project = Project::new("plugins.folders = [\"own\"]");
    project.write("notes/a.txt", "granted a");
    project.write("notes/b.txt", "granted b");
    project.write("own/e/escape.wasm", fs::read(guests::ESCAPE).unwrap());
    write_manifest(&project, "\"read:~/notes/*\"");
    project
}

fn write_manifest(project: &Project, files: &str) {
    let runtime = "runtime = { kind = \"wasm\", path = \"escape.wasm\" }";
    let text = format!("plugin.id = \"e\"\n{runtime}\n[capabilities]\nfilesystem = [{files}]");
    project.write("own/e/plugin.toml", text);
}

fn read(project: &Project, name: &str) -> Output {
    // The home folder of the command is the project's.
    let path = project.path("notes").canonicalize().unwrap().join(name);
    let arguments = json!({ "edition": "std", "deed": "read", "path": path }).to_string();
    project.tenon(&["call", "e__attempt", &arguments])
}

fn works(project: &Project) {
    let output = read(project, "a.txt");
    assert_eq!(stdout(&output).trim(), "ok granted a", "{}", stderr(&output));
}

fn refused(project: &Project, because: &str) {
    let output = read(project, "a.txt");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains(because) && said.contains("tenon approve e"), "{said}");
}

fn run(project: &Project, arguments: &[&str], code: i32) -> String {
    let output = project.tenon(arguments);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

/// A text without what differs from run to run.
fn filtered(project: &Project, text: &str) -> String {
    let real = project.path("").canonicalize().unwrap();
    let text = text.replace(real.to_str().unwrap().trim_end_matches('/'), "ROOT");
    let digest = |line: &str| match line.split_once("sha256:") {
        Some((before, _)) => format!("{before}sha256:DIGEST"),
        None => line.to_string(),
    };
    text.lines().map(|line| format!("{}\n", digest(line))).collect()
}

#[test]
fn what_no_glob_covers_is_shown_with_what_it_means_and_never_hidden_among_others() {
    let project = project();
    let mut values: Vec<String> =
        (0..9).map(|number| format!("\"read:~/notes/{number}\"")).collect();
    values.push("\"write:~/work/.git/hooks/**\"".into());
    values.push("\"readwrite:~/work/**\"".into());
    write_manifest(&project, &values.join(", "));
    let said = run(&project, &["approve", "e"], 3);
    insta::assert_snapshot!(filtered(&project, &said), @r#"
    plugin "e" (wasm)
      code      ./own/e/escape.wasm  sha256:DIGEST
      named in  ./own/e/plugin.toml  sha256:DIGEST
      requests
        filesystem   write:ROOT/work/.git/hooks/** — settings and hooks of git, which name programs that it runs: whoever writes there runs code as you
        filesystem   read:ROOT/notes/0
        filesystem   read:ROOT/notes/1
        filesystem   read:ROOT/notes/2
        filesystem   read:ROOT/notes/3
        filesystem   read:ROOT/notes/4
        filesystem   read:ROOT/notes/5
        filesystem   read:ROOT/notes/6
        filesystem   read:ROOT/notes/7
        and 2 more: `tenon inspect e` shows all
    error: no terminal to ask for approval of e
      hint: run `tenon approve e --yes` to approve without asking
    "#);
    let inspected = stdout(&project.tenon(&["inspect", "e"]));
    let line = inspected.lines().find(|line| line.contains("/.git/hooks/**")).expect(&inspected);
    assert!(line.ends_with("whoever writes there runs code as you"), "{line}");
    let output = project.tenon(&["--json", "approve", "e", "--yes"]);
    let row = &parsed(&output)[0];
    let value = format!(
        "write:{}/work/.git/hooks/**",
        project.path("").canonicalize().unwrap().to_str().unwrap().trim_end_matches('/')
    );
    let meaning = "settings and hooks of git, which name programs that it runs: whoever writes \
                   there runs code as you";
    let expected = json!([{ "capability": "filesystem", "value": value, "meaning": meaning }]);
    assert_eq!(row["warnings"], expected);
}

#[test]
fn what_is_requested_must_be_approved_as_it_is() {
    let project = project();
    refused(&project, "which is not approved");
    let said = run(&project, &["approve", "e"], 3);
    insta::assert_snapshot!(filtered(&project, &said), @r#"
    plugin "e" (wasm)
      code      ./own/e/escape.wasm  sha256:DIGEST
      named in  ./own/e/plugin.toml  sha256:DIGEST
      requests
        filesystem   read:ROOT/notes/*
    error: no terminal to ask for approval of e
      hint: run `tenon approve e --yes` to approve without asking
    "#);
    refused(&project, "which is not approved");
    run(&project, &["approve", "e", "--yes"], 0);
    works(&project);
    assert!(run(&project, &["approve", "--all"], 0).contains("there is nothing to approve"));

    // One byte more, which means nothing.
    let component = project.path("own/e/escape.wasm");
    let mut bytes = fs::read(&component).unwrap();
    bytes.extend([0, 2, 1, b'x']);
    fs::write(&component, &bytes).unwrap();
    refused(&project, "its code has changed");
    run(&project, &["approve", "--all", "--yes"], 0);
    works(&project);
    // And one that is another.
    let last = bytes.len() - 1;
    bytes[last] = b'y';
    fs::write(&component, &bytes).unwrap();
    refused(&project, "its code has changed");
    run(&project, &["approve", "e", "--yes"], 0);
    works(&project);

    write_manifest(&project, "\"read:~/notes/a.txt\", \"write:/no/such/place\"");
    refused(&project, "it has changed since it was approved");
    let said = run(&project, &["approve", "e"], 3);
    insta::assert_snapshot!(filtered(&project, &said), @r#"
    plugin "e" (wasm)
      code      ./own/e/escape.wasm  sha256:DIGEST
      named in  ./own/e/plugin.toml  sha256:DIGEST
      requests
        filesystem   read:ROOT/notes/a.txt
        filesystem   write:/no/such/place
      since it was approved
        it requests `filesystem = ["read:ROOT/notes/a.txt"]` more
        it requests `filesystem = ["write:/no/such/place"]` more
        it requests `filesystem = ["read:ROOT/notes/*"]` no more
        its manifest has changed
    error: no terminal to ask for approval of e
      hint: run `tenon approve e --yes` to approve without asking
    "#);
    run(&project, &["approve", "e", "--yes"], 0);
    works(&project);

    run(&project, &["revoke", "e"], 0);
    refused(&project, "which is not approved");
    run(&project, &["revoke", "e"], 2);
    run(&project, &["approve", "nobody"], 2);
}

#[test]
fn a_path_that_leads_elsewhere_is_another_request() {
    let project = project();
    let (here, there) = (project.path("here"), project.path("there"));
    fs::create_dir_all(&there).unwrap();
    std::os::unix::fs::symlink("notes", &here).unwrap();
    write_manifest(&project, "\"read:~/here/*\"");
    run(&project, &["approve", "e", "--yes"], 0);
    works(&project);
    // By the name that stands in the manifest, too.
    let path = project.path("here/a.txt");
    let arguments = json!({ "edition": "std", "deed": "read", "path": path }).to_string();
    let output = project.tenon(&["call", "e__attempt", &arguments]);
    assert_eq!(stdout(&output).trim(), "ok granted a", "{}", stderr(&output));
    fs::remove_file(&here).unwrap();
    std::os::unix::fs::symlink("there", &here).unwrap();
    refused(&project, "it has changed since it was approved");
}

#[test]
fn less_can_be_granted_than_is_requested() {
    let project = project();
    run(&project, &["approve", "e", "--yes", "--grant", "filesystem=read:~/notes/a.txt"], 0);
    works(&project);
    let output = read(&project, "b.txt");
    assert_eq!(stdout(&output).trim(), "PermissionDenied");
    let less = "notes/b.txt is not granted; less was granted than its plugin.toml requests, and \
                `tenon approve e --grant …` grants more";
    assert!(stderr(&output).contains(less), "{}", stderr(&output));
    fs::create_dir_all(project.path("notes/deep")).unwrap();
    let output = read(&project, "deep/c.txt");
    assert!(stderr(&output).contains("its plugin.toml would request it"), "{}", stderr(&output));
    // What was not requested is not to be had.
    let no = |grant: &str, because: &str| {
        let said = run(&project, &["approve", "e", "--yes", "--grant", grant], 2);
        assert!(said.contains(because), "{said}");
    };
    no("filesystem=notes", "it must begin with `read:`");
    no("filesystem=read:~/**", "/**\"]` is more than plugin \"e\" requests: [\"read:/");
    no("filesystem=write:~/notes/a.txt", "is more than plugin \"e\" requests");
    no("filesytem=read:~/notes/a.txt", "does not request `filesytem`; did you mean `filesystem`?");
    no("network=https://x.example", "plugin \"e\" does not request `network`");
    let output = project.tenon(&["approve", "ee", "--yes"]);
    assert!(stderr(&output).contains("there is no plugin \"ee\"\n  hint: did you mean \"e\"?"));
}

#[test]
fn what_was_narrowed_stays_so() {
    let project = project();
    let requests = |files: &str| write_manifest(&project, files);
    let denied = |name: &str| {
        assert_eq!(stdout(&read(&project, name)).trim(), "PermissionDenied", "{name}");
    };
    requests("\"read:~/notes/*\", \"read:~/more\"");
    let said =
        run(&project, &["approve", "e", "--yes", "--grant", "filesystem=read:~/notes/a.txt"], 0);
    let (_, said) = said.split_once("read:").expect("it says what is requested");
    insta::assert_snapshot!(filtered(&project, said), @r#"
    ROOT/notes/*
        filesystem   read:ROOT/more
    plugin "e" is approved; it is granted
        filesystem   read:ROOT/notes/a.txt
      and of its request not, or not all of it
        filesystem   read:ROOT/notes/*
        filesystem   read:ROOT/more
      `tenon approve e --all-requested` grants all, `--grant` what you say
    "#);
    requests("\"read:~/notes/*\", \"read:~/more\", \"read:~/notes/b.txt\"");
    refused(&project, "it has changed since it was approved");
    let said = run(&project, &["approve", "e"], 3);
    assert!(said.contains("  was granted\n    filesystem   read:/"), "{said}");
    let said = run(&project, &["approve", "e", "--yes"], 0);
    assert!(said.contains("  and of its request not, or not all of it\n"), "{said}");
    works(&project);
    denied("b.txt");

    // As before, and some of what is new: what was asked about before is not asked about again.
    requests("\"read:~/notes/*\", \"read:~/more\", \"read:~/notes/b.txt\", \"read:~/new\"");
    let said = on_terminal(&project, &["approve", "e"], "y\ny\n");
    assert!(said.contains("[y]es, as before, [n]o, [c]hoose, [a]ll:"), "{said}");
    assert_eq!(said.matches("? [y/n]:").count(), 1, "{said}");
    denied("b.txt");

    let row = parsed(&project.tenon(&["--json", "approve", "e", "--yes"]))[0].clone();
    assert_eq!(row["granted"]["filesystem"].as_array().map(Vec::len), Some(2), "{row}");
    assert_eq!(row["notGranted"]["filesystem"].as_array().map(Vec::len), Some(3), "{row}");
    run(&project, &["approve", "e", "--yes", "--all-requested"], 0);
    assert_eq!(stdout(&read(&project, "b.txt")).trim(), "ok granted b");
}

#[test]
fn what_was_granted_stays_what_it_was() {
    let project = project();
    write_manifest(&project, "\"readwrite:~/notes/**\"");
    project.write("notes/pub/c.txt", "granted c");
    run(&project, &["approve", "e", "--yes", "--grant", "filesystem=readwrite:~/notes/pub/**"], 0);
    let output = read(&project, "pub/c.txt");
    assert_eq!(stdout(&output).trim(), "ok granted c", "{}", stderr(&output));
    // What is granted leads elsewhere now, within what was requested.
    fs::remove_dir_all(project.path("notes/pub")).unwrap();
    std::os::unix::fs::symlink(".", project.path("notes/pub")).unwrap();
    for name in ["a.txt", "pub/a.txt"] {
        assert_eq!(stdout(&read(&project, name)).trim(), "PermissionDenied", "{name}");
    }
}

#[test]
fn what_is_not_there_cannot_be_approved() {
    let project = project();
    let component = project.path("own/e/escape.wasm");
    let bytes = fs::read(&component).unwrap();
    fs::remove_file(&component).unwrap();
    run(&project, &["approve", "e", "--yes"], 0);
    fs::write(&component, bytes).unwrap();
    refused(&project, "which is not approved");
}

#[test]
fn the_hosts_own_folders_are_never_granted() {
    let project = project();
    write_manifest(&project, "\"readwrite:~/**\"");
    run(&project, &["approve", "e", "--yes"], 0);
    works(&project);
    for name in ["../state/tenon/approvals.json", "../state/tenon/../tenon/approvals.json"] {
        assert_eq!(stdout(&read(&project, name)).trim(), "PermissionDenied", "{name}");
    }
    let base = project.path("").canonicalize().unwrap();
    let rename = |from: &str, to: &str| {
        let (from, to) = (base.join(from), base.join(to));
        json!({ "edition": "std", "deed": "rename", "path": from, "other": to }).to_string()
    };
    for (from, to) in [("state", "other"), ("state/tenon", "other"), ("notes", "state/tenon/x")] {
        let output = project.tenon(&["call", "e__attempt", &rename(from, to)]);
        assert_eq!(stdout(&output).trim(), "PermissionDenied", "{from} {}", stderr(&output));
    }
}

#[test]
fn programs_get_what_was_approved_as_json() {
    let project = project();
    let standing = |project: &Project| {
        parsed(&project.tenon(&["plugins", "--json"]))["plugins"][0]["state"].clone()
    };
    assert_eq!(standing(&project), "refused");
    let output = project.tenon(&["--json", "approve", "e", "--yes"]);
    let row: &Value = &parsed(&output)[0];
    assert_eq!((&row["plugin"], &row["approved"]), (&json!("e"), &json!(true)));
    assert_eq!(row["requested"], row["granted"]);
    assert_eq!(standing(&project), "enabled");
    let output = project.tenon(&["--json", "revoke", "e"]);
    assert_eq!(parsed(&output), json!({ "plugin": "e", "revoked": 1, "calls": 0 }));
}

#[test]
fn approvals_that_cannot_be_read_approve_nothing_and_are_kept() {
    let project = project();
    run(&project, &["approve", "e", "--yes"], 0);
    let file = project.path("state/tenon/approvals.json");
    fs::write(&file, "{}").unwrap();
    refused(&project, "which is not approved");
    assert!(run(&project, &["approve", "e", "--yes"], 5).contains("is not an approvals file"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
}

/// Runs the command on a terminal on which somebody answers each question with a line, and gives what it printed there.
pub(crate) fn on_terminal(project: &Project, arguments: &[&str], answers: &str) -> String {
    on_terminal_as(project.command(arguments), answers)
}

/// The same of a command that is made ready already.
pub(crate) fn on_terminal_as(command: Command, answers: &str) -> String {
    on_terminal_after("", command, answers)
}

/// The same with something that was typed before the command had begun.
pub(crate) fn on_terminal_after(typed: &str, command: Command, answers: &str) -> String {
    let (mut control, name) = terminal();
    let output = open(&name).into();
    control.write_all(typed.as_bytes()).unwrap();
    let child = on(&name, command, output);
    ended(control, child, answers).0
}

/// The same with nobody who types, and with its standard output elsewhere, which is given as well.
pub(crate) fn on_terminal_but_for_output(
    project: &Project,
    arguments: &[&str],
) -> (String, String) {
    let (control, name) = terminal();
    let child = on(&name, project.command(arguments), Stdio::piped());
    ended(control, child, "")
}

/// A terminal, and the name under which it can be opened.
fn terminal() -> (File, String) {
    let control = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there is a terminal");
    grantpt(&control).unwrap();
    unlockpt(&control).unwrap();
    let name = ptsname(&control, Vec::new()).unwrap();
    (File::from(control), name.into_string().unwrap())
}

fn open(terminal: &str) -> File {
    File::options().read(true).write(true).open(terminal).unwrap()
}

/// Starts a command there. Nobody else keeps the terminal open for it.
fn on(terminal: &str, mut command: Command, output: Stdio) -> Child {
    command.env("TERM", "xterm").stdin(open(terminal)).stdout(output).stderr(open(terminal));
    command.spawn().expect("tenon starts")
}

/// What it printed on the terminal, where its questions are answered with these lines, and elsewhere.
fn ended(mut control: File, child: Child, answers: &str) -> (String, String) {
    let mut answers = answers.split_inclusive('\n');
    let (mut printed, mut answered) = (Vec::new(), 0);
    let mut part = [0; 4096];
    // Reading fails when the command, which has the other end, is gone.
    while let Ok(read @ 1..) = control.read(&mut part) {
        printed.extend_from_slice(&part[..read]);
        if printed[answered..].ends_with(b": ")
            && let Some(answer) = answers.next()
        {
            answered = printed.len();
            control.write_all(answer.as_bytes()).unwrap();
        }
    }
    let output = child.wait_with_output().unwrap();
    (String::from_utf8_lossy(&printed).replace('\r', ""), stdout(&output))
}

#[test]
fn on_a_terminal_the_user_is_asked() {
    let project = project();
    let path = project.path("notes").canonicalize().unwrap().join("a.txt");
    let arguments = json!({ "edition": "std", "deed": "read", "path": path }).to_string();
    let call = ["call", "e__attempt", &arguments];
    let said = on_terminal(&project, &call, "n\n");
    assert!(said.contains("approve it? [y]es, [n]o, [c]hoose:"), "{said}");
    assert!(said.contains("which is not approved"), "{said}");
    refused(&project, "which is not approved");
    let said = on_terminal(&project, &call, "y\n");
    assert!(said.contains("ok granted a"), "{said}");
    works(&project);

    write_manifest(&project, "\"read:~/notes/a.txt\", \"read:~/notes/b.txt\"");
    let said = on_terminal(&project, &["approve", "--all"], "c\ny\nn\n");
    assert!(said.contains("since it was approved") && said.contains("is approved"), "{said}");
    works(&project);
    assert_eq!(stdout(&read(&project, "b.txt")).trim(), "PermissionDenied");
}

#[test]
fn what_is_asked_can_be_seen() {
    let project = project();
    let many = (0..50).map(|i| format!("\"read:~/notes/{i}\"")).collect::<Vec<_>>().join(", ");
    let long = "x".repeat(250);
    let hidden = "\"read:~/a\\n    network   evil\\u061c\", ";
    write_manifest(&project, &format!("{hidden}\"read:~/{long}/{long}\", {many}"));
    let said = on_terminal(&project, &["approve", "e"], "n\n");
    assert!(said.contains(r"/a\n    network   evil\u{61c}"), "{said}");
    assert!(said.contains("    and 44 more: `tenon inspect e` shows all\n"), "{said}");
    assert!(said.lines().count() < 24, "{said}");
    assert!(said.lines().all(|line| line.chars().count() < 240), "{said}");
    // Whatever the terminal was told before does not hold for the question.
    let (before, _) = said.split_once("approve it?").expect("it asks");
    assert!(before.ends_with("\u{1b}[0m"), "{said}");
}

#[test]
fn what_is_imported_requested_and_granted_is_compared() {
    let project = project();
    let runtime = "runtime = { kind = \"wasm\", path = \"escape.wasm\" }";
    let capabilities = "[capabilities]\nfilesystem = [\"read:~/notes/*\"]\n\
                        environment = [\"LANG\", \"TZ\"]\nnetwork = [\"https://x.example/*\"]";
    project.write("own/e/plugin.toml", format!("plugin.id = \"e\"\n{runtime}\n{capabilities}"));
    let grants = ["--grant", "environment=LANG", "--grant", "filesystem=read:~/notes/a.txt"];
    run(&project, &[&["approve", "e", "--yes"], &grants[..]].concat(), 0);
    let said = filtered(&project, &run(&project, &["inspect", "e"], 0));
    let (_, capabilities) = said.split_once("capabilities of").expect("it compares");
    insta::assert_snapshot!(capabilities, @r#"
     plugin "e":
      filesystem: granted
        requested read:ROOT/notes/*
        granted   read:ROOT/notes/a.txt
      network: over-declared: requested and not imported
        requested https://x.example/*
      environment: granted
        granted   LANG
        requested TZ
    limits: memory_mib 256, table_elements 100000, instances 64, cpu 10s, wall 30s, transfer_mib 64, download_mib 64, output_kib 1024, host_calls 1000000, log_rate 100, state_mib 10, sessions 100, session_idle 30m, server_idle 1day, server_memory_mib 4096
    "#);
    let by_file = project.tenon(&["--json", "inspect", "own/e/escape.wasm"]);
    assert_eq!(parsed(&by_file)["capabilities"][1]["verdict"], "not-used");
    let doctor = parsed(&project.tenon(&["--json", "doctor"]));
    assert_eq!(doctor[0]["granted"]["environment"], json!(["LANG"]));
    let detail = doctor[0]["detail"].as_str().unwrap();
    assert_eq!(detail, "its manifest requests `network`, and it imports nothing of it");

    // What nobody requested is not granted, whatever stands in the file.
    let file = project.path("state/tenon/approvals.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"granted\": {", "\"granted\": {\"tools\": [\"*\"],")).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let (before, after) = text.rsplit_once("\"LANG\"").expect("it is granted");
    fs::write(&file, format!("{before}\"LANG\", \"HOME\"{after}")).unwrap();
    let inspected = parsed(&project.tenon(&["--json", "inspect", "e"]));
    assert_eq!(inspected["capabilities"][2]["granted"], json!(["LANG"]), "{inspected}");
    assert!(!run(&project, &["inspect", "e"], 0).contains("HOME"));

    // And what is imported and not requested.
    project.write("own/e/caller.wasm", fs::read(guests::CALLER).unwrap());
    let runtime = "runtime = { kind = \"wasm\", path = \"caller.wasm\" }";
    let capabilities = "[capabilities]\ntools = [\"*\"]\nproviders = [\"*\"]\nsecrets = [\"x\"]";
    project.write("own/e/plugin.toml", format!("plugin.id = \"e\"\n{runtime}\n{capabilities}"));
    run(&project, &["approve", "e", "--yes"], 0);
    let doctor = run(&project, &["doctor"], 1);
    assert!(doctor.contains("fix: its plugin.toml requests it, and less was granted"), "{doctor}");
    run(&project, &["approve", "e", "--yes", "--all-requested"], 0);
    let said = run(&project, &["inspect", "e"], 0);
    assert!(said.contains("messaging: under-declared: imported and not requested"), "{said}");
    let doctor = run(&project, &["doctor"], 1);
    assert!(doctor.contains("capability `messaging` is not granted"), "{doctor}");
}

/// Somebody who writes to a file while it is looked at, and approves.
struct Swapping {
    file: PathBuf,
    bytes: Vec<u8>,
}

#[async_trait]
impl Approver for Swapping {
    async fn approve(&self, request: &ApprovalRequest) -> GrantDecision {
        fs::write(&self.file, &self.bytes).expect("it can be written to");
        request.capabilities.clone().into()
    }
}

/// Why code is believed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TrustReason {
    Approved,
    Installed,
    Trusted,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_is_swapped_between_its_approval_and_its_loading_is_not_loaded() {
    let component = fs::read(guests::TEXT_TOOLS).unwrap();
    let script = b"fn BeforePlan(context) {}".to_vec();
    let codes = [
        ("wasm", component.clone(), [&component[..], &[0, 2, 1, b'x']].concat()),
        ("rhai", script.clone(), [&script[..], b"// another"].concat()),
    ];
    let rows = [
        (TrustReason::Approved, "has changed since it was approved"),
        (TrustReason::Installed, "differs from what was installed: expected sha256:"),
        (TrustReason::Trusted, "has changed since its project was trusted"),
    ];
    for (believed, expected) in rows {
        for (kind, code, other) in &codes {
            for (written, is_swapped) in [(code, false), (other, true)] {
                let row = format!("{believed:?} {kind}, swapped: {is_swapped}");
                let project = Project::new("plugins.folders = [\"own\"]");
                let folder = match believed {
                    TrustReason::Installed => ".tenon/plugins/p",
                    _ => "own/p",
                };
                let manifest = format!(
                    "plugin.id = \"p\"\nruntime = {{ kind = {kind:?}, path = \"code\" }}\n\
                     capabilities.environment = [\"LANG\"]"
                );
                project.write(&format!("{folder}/plugin.toml"), &manifest);
                project.write(&format!("{folder}/code"), code);
                if believed == TrustReason::Installed {
                    let locked = LockedPlugin {
                        source: "elsewhere".into(),
                        resolved: None,
                        version: None,
                        file: Some("code".into()),
                        code: Digest::of(code),
                        manifest: Digest::of(&manifest),
                        skills: None,
                    };
                    let lock = LockFile { plugins: [("p".to_string(), locked)].into() };
                    lock.write(&project.path("tenon.lock")).unwrap();
                }
                let mut sources = Sources {
                    configs: vec![project.config()],
                    workspace: Some(project.path("")),
                    host_environment: HostEnvironment { configuration: None, ..host_environment() },
                    ..Sources::default()
                };
                if believed == TrustReason::Trusted {
                    let file = TrustFile::new(project.path("private/trust.json"));
                    sources.trust = TrustBasis::Recorded(Some(file.clone()));
                    file.trust(&file.review(&sources).unwrap(), false).unwrap();
                }
                let file = project.path(folder).join("code");
                let approver = Swapping { file, bytes: written.clone() };
                let builder = Platform::builder().sources(sources).approver(approver);
                let platform = builder.build().await.unwrap();
                let report = platform.plugins()[0].clone();
                let detail = report.detail.unwrap_or_default();
                match is_swapped {
                    false => assert_eq!(report.state, PluginState::Ready, "{row}: {detail}"),
                    true => {
                        assert_eq!(report.state, PluginState::Refused, "{row}: {detail}");
                        assert!(detail.contains(expected), "{row}: {detail}");
                        assert!(platform.registry().plugin("p").is_none(), "{row}");
                    }
                }
                platform.shutdown().await;
            }
        }
    }
}
