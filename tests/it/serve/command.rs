//! `tenon serve`, the command.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tenon_host::services::STATE_FILE;
use tenon_serve::HttpTokenDigest;

use super::{initialize, legacy, modern, project, text};
use crate::support::{DEMO_SERVER, Project, manifest_of, stderr};

/// A project whose plugins are approved.
pub(super) fn approved() -> Project {
    let project = project();
    let output = project.tenon(&["approve", "--all", "--yes"]);
    assert!(output.status.success(), "{}", stderr(&output));
    project
}

/// A command that serves, which ends with this.
pub(super) struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Serving {
    pub(super) fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("it starts"))
    }

    /// Where it serves HTTP, and what it says before that.
    pub(super) fn address(&mut self) -> (String, String) {
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

    pub(super) fn end(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        self.0.wait().expect("it ends").code()
    }
}

#[test]
fn without_a_store_the_users_own_token_is_good() {
    let project = approved();
    assert!(project.tenon(&["token", "add", "laptop"]).status.success());
    let database = project.path("state/tenon").join(STATE_FILE);
    std::fs::write(&database, "this is no database, and long enough to be read as one").unwrap();
    let mut serving = Serving::start(project.command(&["serve", "--http", "127.0.0.1:0"]));
    let (address, said) = serving.address();
    assert!(said.contains("no named token is good until"), "{said}");
    let own = std::fs::read_to_string(project.path("state/tenon/serve-token")).unwrap();
    let list = modern(1, "tools/list", json!({})).to_string();
    let header = format!("Authorization: Bearer {}\r\n", own.trim());
    let response = exchange_as(&address, "tools/list", &header, &list);
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert_eq!(serving.end(), Some(0));
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
    exchange_as(address, "server/discover", headers, body)
}

/// The same for a method.
pub(super) fn exchange_as(address: &str, method: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{headers}\r\n{body}"
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
    assert!(stderr(&output).contains("~/.claude.json"), "{}", stderr(&output));
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

#[test]
fn an_entry_for_clients_names_what_they_can_reach() {
    let project = Project::new("");
    let check = |arguments: &[&str], expected: Result<&str, &str>| {
        let arguments = [&["--locked", "serve", "--print-config", "vscode"], arguments].concat();
        let output = project.tenon(&arguments);
        let (entry, said) = (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output));
        match expected {
            Ok(part) => assert!(entry.contains(part), "{arguments:?}: {entry}{said}"),
            Err(words) => {
                assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
                assert!(said.contains(words), "{arguments:?}: {said}");
            }
        }
    };
    check(&[], Ok("\"--locked\""));
    check(&["--http"], Ok("\"http://127.0.0.1:7331/mcp\""));
    check(&["--http", "0.0.0.0:80"], Ok("\"http://127.0.0.1:80/mcp\""));
    check(&["--http", "[::]:81"], Ok("\"http://[::1]:81/mcp\""));
    check(&["--http", "--host", "tools.example"], Ok("\"https://tools.example/mcp\""));
    check(&["--http", "127.0.0.1:0"], Err("name the port"));
    check(&["--http", "--host", "https://x/y"], Err("without a scheme and a path"));
    check(&["--profile", "nosuch"], Err("there is no profile \"nosuch\""));
    check(&["--answers", "answers.json"], Err("`--answers` is for single calls"));
}

#[test]
fn a_project_is_not_its_own_server() {
    let project = Project::new(
        "plugins.mcp = [{ name = \"script\", command = \"sh\", args = [\"server.sh\"] },
                        { name = \"again\", command = \"sh\", args = [\"again.sh\"] }]
         supervision.max_restarts = 0",
    );
    // Clients have the entry in a file that Tenon reads as well.
    let entry = project.tenon(&["serve", "--print-config", "claude-code"]);
    project.write(".mcp.json", entry.stdout);
    project.write("server.sh", format!("printenv TENON_SERVED > served; exec {DEMO_SERVER:?}"));
    let tenon = project.command(&[]).get_program().display().to_string();
    let again = format!("{tenon:?} --project . serve 2> refused; echo $? >> refused");
    project.write("again.sh", again);
    let output = project.tenon(&["approve", "--all", "--yes"]);
    assert!(output.status.success(), "{}", stderr(&output));

    let output = project.tenon(&["plugins", "--json"]);
    let plugins: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let all = plugins["plugins"].as_array().unwrap_or_else(|| panic!("{plugins}"));
    let own = all.iter().find(|plugin| plugin["plugin"] == "tenon");
    assert_eq!(own.expect("it is there")["state"], "own-server", "{plugins}");

    let mut command = project.command(&["serve"]);
    project.write("requests", format!("{}\n", modern(1, "tools/list", json!({}))));
    command.stdin(std::fs::File::open(project.path("requests")).unwrap());
    let output = command.output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).expect("it is one answer");
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.iter().any(|name| name.starts_with("script__")), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("tenon__again")), "{names:?}");
    let read = |name: &str| std::fs::read_to_string(project.path(name)).expect("it was started");
    let served = read("served");
    let is_digest =
        |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_digest(served.trim()), "{served}");
    let refused = read("refused");
    assert!(refused.contains("is served already") && refused.ends_with("2\n"), "{refused}");
}

#[test]
fn what_is_approved_or_changed_while_it_serves_is_noticed_and_clients_are_told() {
    let project = Project::new("plugins.scripts = [\"own.rhai\"]");
    project.write("own.rhai", "tool(#{ name: \"one\", description: \"Is first\" }, |a| 1);");
    let script = "tool(#{ name: \"say\", description: \"Says it\" }, |a| \"it\");";
    project.write(".tenon/plugins/late/code", script);
    let runtime = "kind = \"rhai\", path = \"code\"";
    project.write(".tenon/plugins/late/plugin.toml", manifest_of("late", runtime));
    let mut serving = Serving::start(project.command(&["serve"]));
    let mut input = serving.0.stdin.take().unwrap();
    let output = BufReader::new(serving.0.stdout.take().unwrap());
    let (sender, messages) = mpsc::channel::<Value>();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let _ = sender.send(serde_json::from_str(&line).expect("it is a message"));
        }
    });
    let wait_for = |is_it: &dyn Fn(&Value) -> bool| loop {
        let message = messages.recv_timeout(Duration::from_secs(60)).expect("it is told");
        if is_it(&message) {
            break message;
        }
    };
    writeln!(input, "{}", initialize(1, json!({}))).unwrap();
    wait_for(&|message| message["id"] == 1);
    // Lists again whenever it is told to, until the tool is there or is not.
    let mut id = 1;
    let mut list_until = |name: &str, is_there: bool| loop {
        id += 1;
        writeln!(input, "{}", legacy(id, "tools/list", json!({}))).unwrap();
        let answer = wait_for(&|message| message["id"] == id);
        let tools = answer["result"]["tools"].as_array().expect("it is a list");
        if tools.iter().any(|tool| tool["name"] == name) == is_there {
            break;
        }
        wait_for(&|message| message["method"] == "notifications/tools/list_changed");
    };
    let decide = |arguments: &[&str]| {
        let output = project.tenon(arguments);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    list_until("own__one", true);
    list_until("late__say", false);
    decide(&["approve", "late", "--yes"]);
    list_until("late__say", true);
    decide(&["revoke", "late"]);
    list_until("late__say", false);
    // The project was named by a relative path, as it is where nothing is said.
    project.write("own.rhai", "tool(#{ name: \"two\", description: \"Is second\" }, |a| 2);");
    list_until("own__two", true);
}

/// The first of several answers that has this line. It panics when a minute has passed without one.
fn eventually(answer: impl Fn() -> String, line: &str) -> String {
    let begun = Instant::now();
    loop {
        let answer = answer();
        if answer.lines().any(|found| found == line) {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{line}: {answer}");
    }
}

#[test]
fn named_tokens_are_made_listed_and_ended_while_a_server_runs() {
    let project = approved();
    project.write(
        "tenon/config.toml",
        "[profiles.texts]\ntools = [\"*_text\"]\nprefix = false\n[profiles.shut]\ncalls = \"locked\"",
    );
    let token = |arguments: &[&str], code: i32| {
        let output = project.tenon(&[&["token"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        match code {
            0 => String::from_utf8(output.stdout).unwrap(),
            _ => stderr(&output),
        }
    };
    let mut serving = Serving::start(project.command(&["serve", "--http", "127.0.0.1:0"]));
    let (address, _) = serving.address();
    let list = modern(1, "tools/list", json!({})).to_string();
    let tools = |text: &str| -> Result<Vec<String>, String> {
        let header = format!("Authorization: Bearer {}\r\n", text.trim());
        let response = exchange_as(&address, "tools/list", &header, &list);
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        if !head.starts_with("HTTP/1.1 200 ") {
            return Err(head.lines().next().unwrap().to_string());
        }
        let answer: Value = serde_json::from_str(body).unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap();
        Ok(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_string()).collect())
    };
    let text = token(&["add", "texts", "--profile", "texts"], 0);
    let listed = tools(&text).unwrap();
    assert!(!listed.is_empty() && listed.iter().all(|name| name.ends_with("_text")), "{listed:?}");
    let one =
        token(&["add", "one", "--tools", "everything__test_simple_text", "--expires", "30d"], 0);
    assert_eq!(tools(&one).unwrap(), ["everything__test_simple_text"]);
    // Nobody can read a token that was made.
    let database = project.path("state/tenon").join(STATE_FILE);
    for file in [database.clone(), database.with_extension("sqlite-wal")] {
        let kept = std::fs::read(&file).unwrap();
        let has = |text: &[u8]| kept.windows(text.len()).any(|found| found == text);
        assert!(
            ![&text, &one].iter().any(|text| has(text.trim().as_bytes())),
            "{}",
            file.display()
        );
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0);
    }
    let metrics = |text: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let token = text.trim();
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    };
    assert!(metrics(&one).starts_with("HTTP/1.1 403 "));
    let own = std::fs::read_to_string(project.path("state/tenon/serve-token")).unwrap();
    let call =
        modern(2, "tools/call", json!({ "name": "everything__test_simple_text" })).to_string();
    let header = format!(
        "Mcp-Name: everything__test_simple_text\r\nAuthorization: Bearer {}\r\n",
        own.trim()
    );
    assert!(exchange_as(&address, "tools/call", &header, &call).starts_with("HTTP/1.1 200 "));
    // A connection that its client has closed is counted until the server has noticed.
    let measured = eventually(|| metrics(&own), "tenon_serve_connections 1");
    for line in [
        "tenon_calls_total{plugin=\"everything\",tool=\"everything__test_simple_text\",outcome=\"ok\"} 1",
        "tenon_call_duration_seconds_bucket{plugin=\"everything\",tool=\"everything__test_simple_text\",le=\"120\"} 1",
        "# HELP tenon_calls_total Calls of tools that have ended, by plugin, tool and outcome.",
        "tenon_serve_rate_limited_calls_total 0",
        "tenon_serve_sessions 0",
        "tenon_serve_waiting_calls 0",
        "tenon_serve_responses_total{status=\"403\"} 1",
    ] {
        assert!(measured.lines().any(|found| found == line), "{line}: {measured}");
    }
    assert!(metrics("").starts_with("HTTP/1.1 401 "));
    // What a token narrows keeps the rules of its profile.
    let narrow = ["add", "few", "--profile", "shut", "--tools", "everything__test_simple_text"];
    let few = token(&narrow, 0);
    let header = format!(
        "Mcp-Name: everything__test_simple_text\r\nAuthorization: Bearer {}\r\n",
        few.trim()
    );
    let refused = exchange_as(&address, "tools/call", &header, &call);
    assert!(refused.contains("by the mode `locked`"), "{refused}");
    let all = token(&["list"], 0);
    assert!(all.contains("texts  profile texts\n") && !all.contains(text.trim()), "{all}");
    assert!(all.contains("one  tools everything__test_simple_text  expires 20"), "{all}");
    assert!(token(&["add", "one"], 2).contains("revoke it first"));
    let output = project.tenon(&["token", "add", "early", "--profile", "nosuch"]);
    assert!(stderr(&output).contains("no profile \"nosuch\""), "{}", stderr(&output));
    assert!(token(&["add", "a b"], 2).contains("a name has 1 to 64"));
    assert!(token(&["add", "ages", "--expires", "8500y"], 2).contains("100 years at most"));
    assert!(token(&["add", "none", "--tools", ""], 2).contains("no tool has an empty name"));
    // The file of a former version is taken over, unless others could have written it.
    let former = project.path("state/tenon/serve-tokens.json");
    let digest = HttpTokenDigest::new("of-before").sha256();
    let tokens = json!({ "tokens": [{ "name": "old", "sha256": digest, "created": "2026-01-01T00:00:00Z" }] });
    std::fs::write(&former, tokens.to_string()).unwrap();
    let set_mode = |mode| {
        std::fs::set_permissions(&former, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(0o666);
    assert!(token(&["list"], 2).contains("others could have written"));
    assert_eq!(tools("of-before"), Err("HTTP/1.1 401 Unauthorized".into()));
    set_mode(0o600);
    assert!(token(&["list"], 0).starts_with("old\n"));
    assert!(tools("of-before").is_ok() && !former.exists());
    assert!(token(&["revoke", "none"], 2).contains("there is no token"));
    token(&["revoke", "texts"], 0);
    assert_eq!(tools(&text), Err("HTTP/1.1 401 Unauthorized".into()));
    assert!(tools(&one).is_ok());
    let brief = token(&["add", "brief", "--expires", "1ms"], 0);
    assert_eq!(tools(&brief), Err("HTTP/1.1 401 Unauthorized".into()));
    assert!(token(&["list"], 0).contains("brief  expired 20"));
    assert_eq!(serving.end(), Some(0));
    // A server of one profile has no other.
    let mut serving =
        Serving::start(project.command(&["serve", "--http", "127.0.0.1:0", "--profile", "texts"]));
    let (address, _) = serving.address();
    let header = format!("Authorization: Bearer {}\r\n", one.trim());
    let response = exchange_as(&address, "tools/list", &header, &list);
    // Both narrow what there is: the token by full names.
    assert_eq!(response.matches("\"inputSchema\"").count(), 1, "{response}");
    assert!(response.contains("\"name\":\"test_simple_text\""), "{response}");
    assert_eq!(serving.end(), Some(0));
    let output = project.tenon(&["serve", "--profile", "none"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there are default, shut, texts"), "{}", stderr(&output));
}
