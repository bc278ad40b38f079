//! `tenon serve`, the command.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use super::{modern, project, text};
use crate::support::{Project, stderr};

/// A project whose plugins are approved.
fn approved() -> Project {
    let project = project();
    let output = project.tenon(&["approve", "--all", "--yes"]);
    assert!(output.status.success(), "{}", stderr(&output));
    project
}

/// A command that serves, which ends with this.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Serving {
    fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("it starts"))
    }

    /// Where it serves HTTP, and what it says before that.
    fn address(&mut self) -> (String, String) {
        let mut lines = BufReader::new(self.0.stderr.take().expect("it is piped"));
        let mut said = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(lines.read_line(&mut line).expect("it is read"), 0, "it ended: {said}");
            if let Some(url) = line.trim().strip_prefix("listening on http://") {
                std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
                return (url.trim_end_matches("/mcp").to_string(), said);
            }
            said += &line;
        }
    }

    fn end(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        self.0.wait().expect("it ends").code()
    }
}

#[test]
fn standard_output_belongs_to_the_protocol_and_the_end_of_input_is_the_end() {
    let project = approved();
    let mut serving = Serving::start(project.command(&["serve", "--prefix", "false"]));
    let mut input = serving.0.stdin.take().unwrap();
    let call = json!({ "name": "test_simple_text" });
    let requests = [modern(1, "tools/list", json!({})), modern(2, "tools/call", call)];
    for request in &requests {
        writeln!(input, "{request}").unwrap();
    }
    drop(input);
    let mut output = String::new();
    serving.0.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    let mut answers: Vec<Value> =
        output.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.len(), 2, "{output}");
    assert!(answers[0]["result"]["tools"].as_array().unwrap().len() > 20);
    assert_eq!(text(&answers[1]), "This is a simple text response for testing.");
    assert_eq!(serving.0.wait().unwrap().code(), Some(0));
}

#[test]
fn input_may_be_a_file() {
    let project = approved();
    project.write("requests", format!("{}\n", modern(1, "server/discover", json!({}))));
    let mut command = project.command(&["serve"]);
    command.stdin(std::fs::File::open(project.path("requests")).unwrap());
    let output = command.output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).expect("it is one answer");
    assert_eq!(answer["result"]["supportedVersions"][0], "2026-07-28");
    assert_eq!(output.status.code(), Some(0));
}

/// What a server responds to one request.
fn exchange(address: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn http_asks_for_the_token_of_a_private_file() {
    let project = approved();
    let mut serving = Serving::start(project.command(&["serve", "--http", "127.0.0.1:0"]));
    let (address, said) = serving.address();
    let file = project.path("state/tenon/serve-token");
    assert!(said.contains(&file.display().to_string()), "{said}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = std::fs::read_to_string(&file).unwrap();
    assert!(!said.contains(token.trim()), "{said}");
    let discover = modern(1, "server/discover", json!({})).to_string();
    let refused = exchange(&address, "", &discover);
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let header = format!("Authorization: Bearer {}\r\n", token.trim());
    let answered = exchange(&address, &header, &discover);
    assert!(
        answered.starts_with("HTTP/1.1 200 ") && answered.contains("supportedVersions"),
        "{answered}"
    );
    // A second server has the same token, and another port.
    let mut second = Serving::start(project.command(&["serve", "--http", "127.0.0.1:0"]));
    let (other, _) = second.address();
    assert_ne!(other, address);
    assert!(exchange(&other, &header, &discover).starts_with("HTTP/1.1 200 "));
    assert_eq!((serving.end(), second.end()), (Some(0), Some(0)));
}

#[test]
fn what_would_let_everybody_in_is_refused() {
    let project = Project::new("");
    let check = |arguments: &[&str], code: i32, words: &str| {
        let mut command = project.command(&[&["serve"], arguments].concat());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    };
    check(&["--http", "0.0.0.0:0", "--no-auth"], 2, "would let everybody there use every plugin");
    check(&["--http", "[::]:0", "--no-auth"], 2, "would let everybody there use every plugin");
    check(&["--http", "localhost"], 2, "invalid");
    check(&["--no-auth"], 2, "--http");
    check(&["--http", "127.0.0.1:0", "--token-file", "nothing"], 2, "the token file nothing");
    project.write("open", "a token that others can read");
    check(&["--http", "127.0.0.1:0", "--token-file", "open"], 2, "chmod 600");
    project.write("short", "short\n");
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(project.path("short"), private).unwrap();
    check(&["--http", "127.0.0.1:0", "--token-file", "short"], 2, "at least 16");
}

#[test]
fn the_entry_of_a_client_is_printed_and_works() {
    let project = approved();
    let output = project.tenon(&["serve", "--print-config", "claude-code", "--prefix", "false"]);
    let file: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert!(stderr(&output).contains(".mcp.json"), "{}", stderr(&output));
    let entry = &file["mcpServers"]["tenon"];
    // It works from any folder.
    let mut command = Command::new(entry["command"].as_str().unwrap());
    command
        .args(entry["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()));
    let environment = project.command(&[]);
    for (name, value) in environment.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env_remove("TENON_LOG").current_dir("/");
    let mut serving = Serving::start(command);
    let mut input = serving.0.stdin.take().unwrap();
    let call = json!({ "name": "test_simple_text" });
    writeln!(input, "{}", modern(1, "tools/call", call)).unwrap();
    drop(input);
    let mut answer = String::new();
    serving.0.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    let answer = serde_json::from_str(&answer).expect("it is one answer");
    assert_eq!(text(&answer), "This is a simple text response for testing.");
    // That over HTTP has the token, which is not said in any other way.
    let http = ["serve", "--http", "--print-config"];
    let output = project.tenon(&[&http[..], &["codex"]].concat());
    let token = std::fs::read_to_string(project.path("state/tenon/serve-token")).unwrap();
    let entry = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(entry.contains(token.trim()) && entry.contains("http://127.0.0.1:7331/mcp"), "{entry}");
    assert!(!stderr(&output).contains(token.trim()));
    let output = project.tenon(&[&http[..], &["claude-desktop"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
