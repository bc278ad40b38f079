//! Logins to MCP servers elsewhere, and secrets that their user stores: with the command, against a server that gives tokens
//! itself.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Output, Stdio};
use std::sync::{Arc, Mutex};
use tenon_config::secret::MASK;

use crate::support::{Project, files_with, output_of, stderr, stdout};

/// A request that the server got.
#[derive(Debug, Clone, Default)]
struct Heard {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Heard {
    /// A parameter of the query or of a form. None of them has a character that is written in another way.
    fn parameter(&self, name: &str) -> String {
        let query = self.path.split_once('?').map_or("", |(_, query)| query);
        let all = query.split('&').chain(self.body.split('&'));
        let found = all.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
        found.map(|(_, value)| value.replace("%3A", ":").replace("%2F", "/")).unwrap_or_default()
    }
}

/// What the server knows and does.
#[derive(Default)]
struct State {
    heard: Vec<Heard>,
    /// How many access tokens there were. The last one is good.
    tokens: usize,
    /// How long tokens are good, as their answers say.
    seconds: u64,
    /// The scope without which calls are refused.
    scope_of_calls: Option<&'static str>,
    /// The scopes that were asked for last.
    scopes: String,
    /// The last token is good no more.
    is_revoked: bool,
    /// Nothing is renewed any more.
    is_over: bool,
    /// Logins are refused.
    denies: bool,
    /// The page that is named for logins, where it is another.
    page: Option<&'static str>,
}

/// A server that gives tokens and takes them.
struct Guarded {
    address: String,
    state: Arc<Mutex<State>>,
}

impl Guarded {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it has one").to_string();
        let state = Arc::new(Mutex::new(State { seconds: 3600, ..State::default() }));
        let (shared, base) = (state.clone(), format!("http://{address}"));
        // They end with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, base) = (shared.clone(), base.clone());
                std::thread::spawn(move || serve(&stream, &state, &base));
            }
        });
        Self { address, state }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    fn heard(&self, path: &str) -> Vec<Heard> {
        let state = self.state.lock().unwrap();
        state
            .heard
            .iter()
            .filter(|heard| heard.path.split('?').next() == Some(path))
            .cloned()
            .collect()
    }

    fn token(&self) -> String {
        token(self.state.lock().unwrap().tokens)
    }
}

fn token(number: usize) -> String {
    format!("hush-token-{number:04}")
}

fn serve(stream: &TcpStream, state: &Mutex<State>, base: &str) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(heard) = hear(&mut reader) {
        let (status, headers, body) = state.lock().unwrap().answer(&heard, base);
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn hear(reader: &mut impl BufRead) -> Option<Heard> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ');
    let mut heard =
        Heard { method: words.next()?.into(), path: words.next()?.into(), ..Heard::default() };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        heard.headers.insert(name.to_lowercase(), value.into());
    }
    let length = heard.headers.get("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    heard.body = String::from_utf8(body).ok()?;
    Some(heard)
}

impl State {
    fn answer(&mut self, heard: &Heard, base: &str) -> (u16, String, String) {
        self.heard.push(heard.clone());
        let json =
            |value: Value| (200, "Content-Type: application/json\r\n".into(), value.to_string());
        let path = heard.path.split('?').next().unwrap_or_default();
        match (heard.method.as_str(), path) {
            ("GET", "/.well-known/oauth-protected-resource/mcp") => {
                json(json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] }))
            }
            ("GET", "/.well-known/oauth-authorization-server") => json(json!({
                "issuer": base,
                "authorization_endpoint": self.page.map_or_else(|| format!("{base}/authorize"), str::to_string),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            })),
            ("POST", "/register") => {
                let asked: Value = serde_json::from_str(&heard.body).unwrap_or_default();
                let id = "client-1";
                json(json!({ "client_id": id, "redirect_uris": asked["redirect_uris"] }))
            }
            ("GET", "/authorize") => {
                self.scopes = heard.parameter("scope").replace('+', " ");
                let outcome = if self.denies { "error=access_denied" } else { "code=code-1" };
                let (back, state) = (heard.parameter("redirect_uri"), heard.parameter("state"));
                (302, format!("Location: {back}?{outcome}&state={state}\r\n"), String::new())
            }
            ("POST", "/token") => {
                let renews = heard.parameter("grant_type") == "refresh_token";
                let is_known = heard.parameter("refresh_token") == format!("renew-{}", self.tokens);
                if renews && (self.is_over || !is_known) {
                    let (_, headers, body) = json(json!({ "error": "invalid_grant" }));
                    return (400, headers, body);
                }
                self.tokens += 1;
                self.is_revoked = false;
                json(json!({
                    "access_token": token(self.tokens),
                    "token_type": "Bearer",
                    "expires_in": self.seconds,
                    "refresh_token": format!("renew-{}", self.tokens),
                }))
            }
            ("POST", "/mcp") => self.answer_message(heard, base),
            _ => (404, String::new(), String::new()),
        }
    }

    fn answer_message(&self, heard: &Heard, base: &str) -> (u16, String, String) {
        let document =
            format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
        let refuse = |status: u16, challenge: String| {
            (status, format!("WWW-Authenticate: Bearer {challenge}, {document}\r\n"), String::new())
        };
        let good = format!("Bearer {}", token(self.tokens));
        let is_good = self.tokens > 0 && !self.is_revoked;
        if !is_good || heard.headers.get("authorization") != Some(&good) {
            return refuse(401, "scope=\"read\"".into());
        }
        let message: Value = serde_json::from_str(&heard.body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default();
        if let Some(scope) = self.scope_of_calls.filter(|_| method == "tools/call")
            && !self.scopes.split(' ').any(|asked| asked == scope)
        {
            return refuse(403, format!("error=\"insufficient_scope\", scope=\"{scope}\""));
        }
        let params = &message["params"];
        let result = match method {
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "guarded", "version": "1" },
            }),
            "tools/list" => {
                json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
            }
            "tools/call" => {
                json!({ "content": [{ "type": "text", "text": params["arguments"]["text"] }] })
            }
            _ if message.get("id").is_none() => return (202, String::new(), String::new()),
            _ => {
                let error = json!({ "code": -32601, "message": "not here" });
                let body = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                return (200, "Content-Type: application/json\r\n".into(), body.to_string());
            }
        };
        let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        (200, "Content-Type: application/json\r\n".into(), body.to_string())
    }
}

/// A project with the server as `s`.
fn project(server: &Guarded) -> Project {
    Project::new(&format!("plugins.mcp = [{{ name = \"s\", url = {:?} }}]", server.url()))
}

/// The command, which finds no keychain but one that a test has for it.
fn tenon(project: &Project, arguments: &[&str]) -> Output {
    command(project, arguments).output().expect("tenon starts")
}

fn command(project: &Project, arguments: &[&str]) -> std::process::Command {
    let mut command = project.command(arguments);
    command.env_remove("DBUS_SESSION_BUS_ADDRESS").env("XDG_RUNTIME_DIR", project.path("run"));
    command
}

/// A login that waits for its user, and the page that it names.
fn begin(
    project: &Project,
    arguments: &[&str],
) -> (Child, BufReader<std::process::ChildStderr>, String) {
    let arguments = [&["login", "s", "--no-browser"], arguments].concat();
    let mut command = command(project, &arguments);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tenon starts");
    let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it says something");
    let page = line.trim().strip_prefix("log in on this page: ");
    let page = page.unwrap_or_else(|| panic!("it names a page: {line}")).to_string();
    (child, said, page)
}

/// The response to a GET, as a browser asks.
fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").expect("it is of this machine");
    let (address, path) = rest.split_once('/').expect("it has a path");
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    // The server keeps the connection: a page is over where a redirect has said where to go.
    let mut response = String::new();
    let mut reader = BufReader::new(stream);
    while reader.read_line(&mut response).expect("it answers") > 0
        && !response.ends_with("\r\n\r\n")
    {}
    if response.starts_with("HTTP/1.1 200") {
        reader.read_to_string(&mut response).expect("it ends");
    }
    response
}

/// Opens a page, and goes where it leads.
fn browse(page: &str) -> String {
    let response = get(page);
    let location = response.lines().find_map(|line| line.strip_prefix("Location: "));
    match location {
        Some(location) => browse(location.trim()),
        None => response,
    }
}

/// Logs in, and gives what the command says.
fn log_in(project: &Project, arguments: &[&str]) -> (Output, String) {
    let (child, mut said, page) = begin(project, arguments);
    browse(&page);
    let output = child.wait_with_output().expect("it ends");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("it is text");
    (output, rest)
}

fn call(project: &Project, text: &str) -> (String, String) {
    let arguments = json!({ "text": text }).to_string();
    let output = tenon(project, &["call", "s__echo", &arguments]);
    (stdout(&output), stderr(&output))
}

#[test]
fn a_login_is_for_all_calls_until_it_is_forgotten() {
    let server = Guarded::start();
    let project = project(&server);
    let (_, said) = call(&project, "x");
    assert!(said.contains("the server wants to know who asks (HTTP 401"), "{said}");
    assert!(said.contains("run `tenon login s`, or set `headers`"), "{said}");

    let (output, said) = log_in(&project, &[]);
    assert_eq!(stdout(&output), "logged in to s, scopes read\n", "{said}");
    let asked = &server.heard("/authorize")[0];
    assert_eq!(asked.parameter("resource"), server.url());
    assert_eq!(asked.parameter("code_challenge_method"), "S256");
    let exchanged = &server.heard("/token")[0];
    assert_eq!(exchanged.parameter("resource"), server.url());
    assert!(!exchanged.parameter("code_verifier").is_empty());

    // What the server echoes is no way to see the token.
    let (printed, said) = call(&project, &format!("of {}", server.token()));
    assert_eq!(printed, format!("of {MASK}\n"), "{said}");
    let is_found = |text: &str| files_with(&project.path("state"), text);
    let kept = is_found(&server.token());
    assert_eq!(kept.len(), 1, "it is kept once: {kept:?}");
    assert!(kept[0].parent().unwrap().ends_with("logins"), "{kept:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&kept[0].metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    assert_eq!(stdout(&tenon(&project, &["logout", "s"])), "logged out of s\n");
    assert_eq!(is_found(&server.token()), [""; 0].map(std::path::PathBuf::from));
    let (_, said) = call(&project, "x");
    assert!(said.contains("run `tenon login s`"), "{said}");
    log_in(&project, &[]);
    project.write("tenon.toml", "");
    assert_eq!(
        stdout(&tenon(&project, &["logout", &server.url()])),
        format!("logged out of {}\n", server.url())
    );
    let again = tenon(&project, &["logout", &server.url()]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("there is no login to"), "{}", stderr(&again));
}

/// The next message of a host that serves which has this member.
fn hear_from(output: &mut impl BufRead, member: &str, value: &Value) -> Value {
    loop {
        let mut line = String::new();
        assert_ne!(output.read_line(&mut line).expect("it is text"), 0, "it ended");
        let message: Value = serde_json::from_str(&line).expect("it is a message");
        if message[member] == *value {
            return message;
        }
    }
}

/// A request to a host that serves, and what it answers.
fn ask(serving: &mut Child, output: &mut impl BufRead, request: &Value) -> Value {
    writeln!(serving.stdin.as_mut().expect("it is piped"), "{request}").expect("it reads");
    hear_from(output, "id", &request["id"])
}

#[test]
fn a_host_that_runs_takes_up_a_login() {
    let server = Guarded::start();
    let project = project(&server);
    let mut command = command(&project, &["serve"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut serving = command.spawn().expect("tenon starts");
    let mut output = BufReader::new(serving.stdout.take().expect("it is piped"));
    let request = |id: u32, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let client = json!({ "name": "test", "version": "1" });
    let begin =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    ask(&mut serving, &mut output, &request(1, "initialize", begin));
    let listed = ask(&mut serving, &mut output, &request(2, "tools/list", json!({})));
    assert_eq!(listed["result"]["tools"], json!([]));
    log_in(&project, &[]);
    hear_from(&mut output, "method", &json!("notifications/tools/list_changed"));
    let call = json!({ "name": "s__echo", "arguments": { "text": "hello" } });
    let said = ask(&mut serving, &mut output, &request(3, "tools/call", call));
    assert_eq!(said["result"]["content"][0]["text"], "hello", "{said}");
    drop(serving.stdin.take());
    assert_eq!(serving.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_token_is_renewed_before_its_end_and_where_the_server_takes_it_no_more() {
    let server = Guarded::start();
    let project = project(&server);
    // It is over at once.
    server.set(|state| state.seconds = 1);
    log_in(&project, &[]);
    server.set(|state| state.seconds = 3600);
    assert_eq!(call(&project, "one").0, "one\n");
    let renewed = server.heard("/token").pop().unwrap();
    assert_eq!(renewed.parameter("grant_type"), "refresh_token");
    assert_eq!(renewed.parameter("resource"), server.url());
    assert_eq!(server.token(), token(2));
    let asked = server.heard("/token").len();
    assert_eq!(call(&project, "two").0, "two\n");
    assert_eq!(server.heard("/token").len(), asked, "a token that is good is not renewed");

    // Before its time, and in the middle of a session.
    server.set(|state| state.is_revoked = true);
    let (printed, said) = call(&project, "three");
    assert_eq!(printed, "three\n", "{said}");
    assert_eq!(server.token(), token(3));

    server.set(|state| (state.is_revoked, state.is_over) = (true, true));
    let (printed, said) = call(&project, "four");
    assert_eq!(printed, "");
    assert!(said.contains("run `tenon login s`"), "{said}");
    log_in(&project, &[]);
    assert_eq!(call(&project, "five").0, "five\n");
}

#[test]
fn more_rights_are_asked_for_with_those_that_there_are() {
    let server = Guarded::start();
    let project = project(&server);
    server.set(|state| state.scope_of_calls = Some("write"));
    log_in(&project, &[]);
    assert_eq!(server.heard("/authorize")[0].parameter("scope"), "read");
    let (_, said) = call(&project, "x");
    assert!(said.contains("the login is not good for this (HTTP 403"), "{said}");
    assert!(said.contains("`tenon login s` asks for more"), "{said}");
    log_in(&project, &[]);
    assert_eq!(server.heard("/authorize")[1].parameter("scope"), "read+write");
    // The client that was registered is used again, at its port.
    assert_eq!(server.heard("/register").len(), 1);
    assert_eq!(call(&project, "x").0, "x\n");
}

#[test]
fn a_login_that_is_refused_leaves_the_one_before() {
    let server = Guarded::start();
    let project = project(&server);
    log_in(&project, &[]);
    server.set(|state| state.denies = true);
    let (output, said) = log_in(&project, &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(said.contains("the authorization server refuses: access_denied"), "{said}");
    assert_eq!(call(&project, "x").0, "x\n");
}

#[test]
fn no_browser_opens_what_is_no_page() {
    for page in ["file:///etc/passwd", "javascript:alert(1)", "http://10.0.0.1/authorize"] {
        let server = Guarded::start();
        server.set(|state| state.page = Some(page));
        let project = project(&server);
        let mut command = command(&project, &["login", "s"]);
        // Whatever it opens, it would be seen.
        let opened = project.path("opened");
        project.write("browser", format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display()));
        let output =
            command.env("BROWSER", project.path("browser")).output().expect("tenon starts");
        assert_eq!(output.status.code(), Some(3), "{page}: {}", stderr(&output));
        let problem = "names a page that is neither https nor of this machine";
        assert!(stderr(&output).contains(problem), "{page}: {}", stderr(&output));
        assert!(!opened.exists(), "{page}");
    }
}

#[test]
fn who_comes_back_without_the_state_is_nobody() {
    let server = Guarded::start();
    let project = project(&server);
    let (child, _, page) = begin(&project, &[]);
    let asked = Heard { path: page.clone(), ..Heard::default() };
    let back = asked.parameter("redirect_uri");
    for wrong in ["?code=evil&state=wrong", "?code=evil", "/other"] {
        assert!(get(&format!("{back}{wrong}")).starts_with("HTTP/1.1 404"), "{wrong}");
    }
    browse(&page);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(server.heard("/token")[0].parameter("code"), "code-1");
}

#[test]
fn a_login_is_for_servers_elsewhere_that_ask_for_one() {
    let server = Guarded::start();
    let project = Project::new(&format!(
        "plugins.mcp = [
            {{ name = \"here\", command = \"true\" }},
            {{ name = \"said\", url = {:?}, headers = {{ authorization = \"x\" }} }},
        ]",
        server.url()
    ));
    let check = |name: &str, expected: &str| {
        let output = tenon(&project, &["login", name, "--no-browser"]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(stderr(&output).contains(expected), "{name}: {}", stderr(&output));
    };
    check("here", "\"here\" is no MCP server elsewhere");
    check("said", "has `Authorization` under `headers`");
    check("other", "there is no plugin \"other\"");
}

#[test]
fn a_client_that_the_user_names_proves_itself_with_a_stored_secret() {
    let server = Guarded::start();
    let project = project(&server);
    let named = ["--client-id", "mine", "--client-secret", "mine-secret"];
    let unset = tenon(&project, &[&["login", "s"][..], &named].concat());
    assert!(stderr(&unset).contains("run `tenon secret set mine-secret`"), "{}", stderr(&unset));
    store(&project, &["mine-secret"], "s3cret-of-client\n");
    let (output, said) = log_in(&project, &named);
    assert!(output.status.success(), "{said}");
    assert_eq!(server.heard("/register").len(), 0);
    assert_eq!(server.heard("/authorize")[0].parameter("client_id"), "mine");
    use base64::Engine as _;
    let basic = base64::prelude::BASE64_STANDARD.encode("mine:s3cret-of-client");
    let exchanged = &server.heard("/token")[0];
    assert_eq!(exchanged.headers["authorization"], format!("Basic {basic}"));
}

/// Stores a secret whose value comes by standard input.
fn store(project: &Project, arguments: &[&str], value: &str) -> Output {
    output_of(command(project, &[&["secret", "set"], arguments].concat()), value)
}

#[test]
fn secrets_are_stored_listed_and_removed_and_shown_nowhere() {
    let project = Project::new("");
    let stored = store(&project, &["api-key"], "hunter22-of-file\n");
    assert_eq!(stdout(&stored), "stored api-key (file)\n", "{}", stderr(&stored));
    let file = project.path("tenon/secrets/api-key");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "hunter22-of-file");
    store(&project, &["other"], "x");
    assert_eq!(stdout(&tenon(&project, &["secret", "list"])), "api-key  file\nother  file\n");
    let mut listed = command(&project, &["secret", "list", "--json"]);
    let listed = listed.env("API_KEY", "y").output().unwrap();
    let expected = json!([
        { "name": "api-key", "storage": "file", "variable": "API_KEY" },
        { "name": "other", "storage": "file", "variable": null },
    ]);
    assert_eq!(serde_json::from_str::<Value>(&stdout(&listed)).unwrap(), expected);
    let removed = tenon(&project, &["secret", "remove", "api-key"]);
    assert_eq!(stdout(&removed), "removed api-key\n");
    assert!(!file.exists());
    let check = |arguments: &[&str], value: &str, expected: &str| {
        let output = store(&project, arguments, value);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    };
    check(&["api-key"], "\n", "the value of \"api-key\" is empty");
    check(&["api-key"], &"x".repeat(70_000), "has more than 64 KiB");
    check(&["../api-key"], "x", "is not a valid name");
    check(&["api-key", "--keychain"], "x", "this system has no keychain that can be reached");
    check(&["api-key", "--keychain", "--file"], "x", "cannot be used with");
    let again = tenon(&project, &["secret", "remove", "api-key"]);
    assert!(stderr(&again).contains("there is no secret \"api-key\""), "{}", stderr(&again));
}
