//! Clients over HTTP, good and bad.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenon_host::{CallEvent, Event, Platform, Step, Subscription};
use tenon_serve::{HttpSettings, HttpTokenDigest, Profile, Settings, TokenGrant, TokenStore};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::served_project::serve_http;
use super::{MODERN, initialize, legacy, meta, modern, project, server_with, text};
use crate::support::Project;

/// A server, and where it is.
struct RunningServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<std::io::Result<()>>,
    platform: Platform,
    _project: Project,
}

/// What a server responds.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    /// A header.
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// The messages, of a stream or of a body.
    fn messages(&self) -> Vec<Value> {
        let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| panic!("{self:?}"));
        match self.header("content-type") {
            Some("text/event-stream") => {
                let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
                data.filter(|data| !data.is_empty()).map(read).collect()
            }
            Some("application/json") => vec![read(&self.body)],
            _ => Vec::new(),
        }
    }

    fn message(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("{self:?}"))
    }
}

impl RunningServer {
    async fn new(change: impl FnOnce(&mut HttpSettings)) -> Self {
        Self::with(|_| {}, change).await
    }

    async fn with(
        change_server: impl FnOnce(&mut Settings),
        change: impl FnOnce(&mut HttpSettings),
    ) -> Self {
        let project = project();
        let (server, platform) = server_with(&project, |settings| {
            settings.max_message = 64 << 10;
            settings.drain = Duration::from_secs(600);
            change_server(settings);
        })
        .await;
        let (address, stop, serving) = serve_http(server, change).await;
        Self { address, stop: Some(stop), serving, platform, _project: project }
    }

    /// Sends bytes as they are. Gives what is responded until the connection ends.
    async fn raw(&self, request: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut all = Vec::new();
        let read = timeout(Duration::from_secs(60), stream.read_to_end(&mut all)).await;
        read.expect("the connection ends").unwrap();
        reply(&String::from_utf8(all).unwrap())
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let has = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let mut header = |name: &str, value: &str| {
            if !has(name) {
                request += &format!("{name}: {value}\r\n");
            }
        };
        header("Host", &self.address.to_string());
        header("Content-Type", "application/json");
        header("Accept", "application/json, text/event-stream");
        header("Content-Length", &body.len().to_string());
        // A value of this kind leaves a header out.
        for (name, value) in headers.iter().filter(|(_, value)| *value != "-") {
            request += &format!("{name}: {value}\r\n");
        }
        format!("{request}\r\n{body}")
    }

    async fn post(&self, headers: &[(&str, &str)], message: &Value) -> Reply {
        self.raw(&self.request("POST", "/mcp", headers, &message.to_string())).await
    }

    /// A modern request, with the headers that it needs.
    async fn modern(&self, message: &Value) -> Reply {
        let method = message["method"].as_str().unwrap();
        let name = message["params"]["name"].as_str().or(message["params"]["uri"].as_str());
        let mut headers = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        self.post(&headers, message).await
    }

    /// Begins a session. Gives its id.
    async fn begin(&self, headers: &[(&str, &str)]) -> String {
        let capabilities = json!({ "elicitation": {} });
        let begun = self.post(headers, &initialize(0, capabilities)).await;
        assert_eq!(begun.message()["result"]["protocolVersion"], "2025-11-25", "{begun:?}");
        begun.header("mcp-session-id").expect("it has one").to_string()
    }

    async fn end(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        let ended = timeout(Duration::from_secs(60), self.serving).await;
        ended.expect("it ends").expect("it does not panic").expect("it ends well");
        self.platform.shutdown().await;
    }
}

fn reply(all: &str) -> Reply {
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or((all, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("it is no response: {all:?}"));
    let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_string() };
    Reply { status, head: head.to_string(), body }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap_or(0);
        let Some(chunk) = rest.get(..length).filter(|chunk| !chunk.is_empty()) else { break };
        whole += chunk;
        body = rest[length..].trim_start_matches("\r\n");
    }
    whole
}

#[tokio::test]
async fn both_eras_are_spoken_at_one_address() {
    let served = RunningServer::new(|_| {}).await;
    let call = json!({ "name": "test_simple_text" });
    let answered = served.modern(&modern(1, "tools/call", call.clone())).await;
    assert_eq!(answered.header("content-type"), Some("application/json"));
    assert_eq!(text(&answered.message()), "This is a simple text response for testing.");
    let session = served.begin(&[]).await;
    let of_session = ("Mcp-Session-Id", &*session);
    let headers = [of_session, ("MCP-Protocol-Version", "2025-11-25")];
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(served.post(&headers, &initialized).await.status, 202);
    let answered = served.post(&headers, &legacy(1, "tools/call", call)).await;
    assert_eq!(text(&answered.message()), "This is a simple text response for testing.");
    // What there is to tell before the answer makes it a stream.
    let mut call = json!({ "name": "test_tool_with_progress" });
    call["_meta"] = json!({ "progressToken": "t" });
    let streamed = served.post(&headers, &legacy(2, "tools/call", call)).await;
    let methods: Vec<_> = streamed.messages().iter().map(|m| m["method"].clone()).collect();
    assert_eq!(methods.len(), 4, "{streamed:?}");
    assert!(streamed.body.starts_with("id: 2-0\nretry: "), "{streamed:?}");
    // What was sent may not have arrived: it can be had again.
    let again = [of_session, ("Last-Event-ID", "2-2")];
    let again = served.raw(&served.request("GET", "/mcp", &again, "")).await;
    assert_eq!(again.messages(), streamed.messages()[2..]);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(served.raw(&served.request("GET", path, &[], "")).await.status, 200);
    }
    served.end().await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_loses_its_connection() {
    let served =
        RunningServer::new(|settings| settings.read_time = Duration::from_millis(300)).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let requests = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", served.address).repeat(100);
    // It fails when the server has closed what it can write nothing more to.
    let writing = async { while stream.write_all(requests.as_bytes()).await.is_ok() {} };
    timeout(Duration::from_secs(60), writing).await.expect("the connection ends");
    served.end().await;
}

#[tokio::test]
async fn one_client_does_not_take_all_memory() {
    let served = RunningServer::new(|settings| settings.max_client_bytes = 0).await;
    let ping = modern(1, "ping", json!({})).to_string();
    let spaces = " ".repeat(40_000);
    // As much as the longest message is left to each client.
    let mut slow = TcpStream::connect(served.address).await.unwrap();
    let whole = served.request("POST", "/mcp", &[], &format!("{ping}{spaces}"));
    slow.write_all(&whole.as_bytes()[..whole.len() - 1]).await.unwrap();
    let next = format!("{ping}{spaces}");
    let send = async || served.raw(&served.request("POST", "/mcp", &[], &next)).await;
    // It is refused as soon as the other one has arrived.
    let mut refused = send().await;
    while refused.status != 429 {
        refused = send().await;
    }
    assert_eq!(refused.header("retry-after"), Some("1"), "{refused:?}");
    let mut last = String::new();
    slow.write_all(&whole.as_bytes()[whole.len() - 1..]).await.unwrap();
    slow.read_to_string(&mut last).await.unwrap();
    assert_ne!(reply(&last).status, 429);
    assert_eq!(send().await.status, reply(&last).status);
    served.end().await;
}

#[tokio::test]
async fn what_is_wrong_is_refused() {
    let served = RunningServer::new(|settings| {
        settings.tokens = Some(Arc::new(HttpTokenDigest::new("it is a secret")));
        settings.read_time = Duration::from_millis(300);
    })
    .await;
    let token = ("Authorization", "Bearer it is a secret");
    let session = served.begin(&[token]).await;
    let ping = legacy(1, "ping", json!({})).to_string();
    let list = modern(1, "tools/list", json!({})).to_string();
    let mut named = modern(
        1,
        "tools/call",
        json!({ "name": "test_custom_header", "arguments": { "value": "v" } }),
    );
    let call = named.to_string();
    named["params"]["_meta"] = meta(json!({}));
    let long = format!("{{\"x\":\"{}\"}}", "x".repeat(70_000));
    let of_session = ("Mcp-Session-Id", &*session);
    let version = ("MCP-Protocol-Version", MODERN);
    let method = ("Mcp-Method", "tools/list");
    let calls = ("Mcp-Method", "tools/call");
    let name = ("Mcp-Name", "test_custom_header");
    let argument = ("Mcp-Param-Value", "v");
    type Row<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, &'a str, u16, i64);
    let rows: Vec<Row<'_>> = vec![
        // Who may.
        ("POST", "/mcp", vec![], &ping, 401, 0),
        ("POST", "/mcp", vec![("Authorization", "Bearer wrong")], &ping, 401, 0),
        ("POST", "/mcp", vec![("Authorization", "Basic it is a secret")], &ping, 401, 0),
        ("POST", "/mcp?token=it%20is%20a%20secret", vec![], &ping, 401, 0),
        ("GET", "/mcp", vec![of_session], "", 401, 0),
        ("DELETE", "/mcp", vec![of_session], "", 401, 0),
        // From where.
        ("POST", "/mcp", vec![token, ("Host", "evil.example")], &ping, 403, 0),
        ("POST", "/mcp", vec![token, ("Origin", "https://evil.example")], &ping, 403, 0),
        ("POST", "/mcp", vec![token, ("Origin", "null")], &ping, 403, 0),
        // To where.
        ("POST", "/", vec![token], &ping, 404, 0),
        ("POST", "/mcp/", vec![token], &ping, 404, 0),
        ("POST", "/mcp/p/none", vec![token], &ping, 404, 0),
        ("PUT", "/mcp", vec![token], &ping, 405, 0),
        ("OPTIONS", "/mcp", vec![token], "", 405, 0),
        ("GET", "/mcp", vec![token], "", 405, 0),
        ("DELETE", "/mcp", vec![token], "", 405, 0),
        // What.
        ("POST", "/mcp", vec![token, ("Content-Type", "text/plain")], &ping, 415, 0),
        ("POST", "/mcp", vec![token, ("Accept", "application/json")], &ping, 406, 0),
        ("GET", "/mcp", vec![token, of_session, ("Accept", "application/json")], "", 406, 0),
        ("POST", "/mcp", vec![token], &long, 413, 0),
        ("POST", "/mcp", vec![token], "", 400, -32700),
        ("POST", "/mcp", vec![token], "{", 400, -32700),
        ("POST", "/mcp", vec![token], "[]", 400, -32600),
        ("POST", "/mcp", vec![token], "3", 400, -32600),
        ("POST", "/mcp", vec![token, ("Content-Length", "1000")], &ping, 408, 0),
        // Sessions.
        ("POST", "/mcp", vec![token], &ping, 400, -32600),
        ("POST", "/mcp", vec![token, ("Mcp-Session-Id", "x")], &ping, 404, -32600),
        ("POST", "/mcp", vec![token, ("Mcp-Session-Id", "")], &ping, 404, -32600),
        ("POST", "/mcp", vec![token, of_session, of_session], &ping, 400, -32600),
        ("POST", "/mcp", vec![token, of_session, version], &ping, 400, -32600),
        (
            "POST",
            "/mcp",
            vec![token, of_session, ("MCP-Protocol-Version", "x")],
            &ping,
            400,
            -32600,
        ),
        ("POST", "/mcp", vec![token, of_session], "[{}]", 400, -32600),
        // Headers that contradict their bodies.
        ("POST", "/mcp", vec![token, method], &list, 400, -32020),
        ("POST", "/mcp", vec![token, version], &list, 400, -32020),
        ("POST", "/mcp", vec![token, version, ("Mcp-Method", "TOOLS/LIST")], &list, 400, -32020),
        ("POST", "/mcp", vec![token, version, method, method], &list, 400, -32020),
        ("POST", "/mcp", vec![token, version, version, method], &list, 400, -32020),
        ("POST", "/mcp", vec![token, ("MCP-Protocol-Version", "v9"), method], &list, 400, -32020),
        ("POST", "/mcp", vec![token, version, calls], &call, 400, -32020),
        ("POST", "/mcp", vec![token, version, calls, ("Mcp-Name", "other")], &call, 400, -32020),
        ("POST", "/mcp", vec![token, version, calls, name], &call, 400, -32020),
        (
            "POST",
            "/mcp",
            vec![token, version, calls, name, ("Mcp-Param-Value", "w")],
            &call,
            400,
            -32020,
        ),
        (
            "POST",
            "/mcp",
            vec![token, version, calls, name, ("Mcp-Param-Value", "=?base64?!?=")],
            &call,
            400,
            -32020,
        ),
        ("POST", "/mcp", vec![token, version], &ping, 400, -32602),
    ];
    assert!(rows.len() >= 40, "{}", rows.len());
    for (verb, path, headers, body, status, code) in rows {
        let reply = served.raw(&served.request(verb, path, &headers, body)).await;
        let shown: String = body.chars().take(100).collect();
        assert_eq!(reply.status, status, "{verb} {path} {headers:?} {shown}: {reply:?}");
        if code != 0 {
            assert_eq!(reply.message()["error"]["code"], code, "{headers:?} {shown}");
        }
    }
    // Afterwards all is as it was.
    let good = served.request("POST", "/mcp", &[token, version, calls, name, argument], &call);
    assert_eq!(text(&served.raw(&good).await.message()), "The value is v");
    let good = served.request("POST", "/mcp", &[token, of_session], &ping);
    assert_eq!(served.raw(&good).await.message()["result"], json!({}));
    // Of a head that does not come to its end nothing is waited for.
    let mut slow = TcpStream::connect(served.address).await.unwrap();
    slow.write_all(b"POST /mcp HTTP/1.1\r\nHost: x").await.unwrap();
    let mut rest = String::new();
    timeout(Duration::from_secs(60), slow.read_to_string(&mut rest)).await.unwrap().unwrap();
    assert_eq!(rest, "");
    served.end().await;
}

#[tokio::test]
async fn a_session_is_its_clients_until_it_ends() {
    let served = RunningServer::new(|settings| settings.max_sessions = 2).await;
    let mine = ("Authorization", "Bearer mine");
    let session = served.begin(&[mine]).await;
    let of_session = ("Mcp-Session-Id", &*session);
    let ping = legacy(1, "ping", json!({}));
    assert_eq!(served.post(&[mine, of_session], &ping).await.status, 200);
    // Without a token to ask for, what a client sends still tells clients apart.
    for other in [vec![of_session], vec![("Authorization", "Bearer other"), of_session]] {
        assert_eq!(served.post(&other, &ping).await.status, 404);
        let deleted = served.raw(&served.request("DELETE", "/mcp", &other, "")).await;
        assert_eq!(deleted.status, 404);
    }
    // Where there is no room, one ends that nobody has used since it began.
    let unused = served.begin(&[]).await;
    let other = served.begin(&[]).await;
    assert_eq!(served.post(&[("Mcp-Session-Id", &*unused)], &ping).await.status, 404);
    assert_eq!(served.post(&[mine, of_session], &ping).await.status, 200);
    // One that is at work does not.
    let hang = legacy(2, "tools/call", json!({ "name": "hang" })).to_string();
    let of_other = ("Mcp-Session-Id", &*other);
    let mut calls = Vec::new();
    for headers in [vec![mine, of_session], vec![of_other]] {
        let request = served.request("POST", "/mcp", &headers, &hang);
        let mut stream = Stream::open(&served, &request).await;
        stream.line("id: ").await;
        calls.push(stream);
    }
    assert_eq!(served.post(&[], &initialize(0, json!({}))).await.status, 503);
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    assert_eq!(served.post(&[of_other], &cancel).await.status, 202);
    let deleted = served.raw(&served.request("DELETE", "/mcp", &[mine, of_session], "")).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(served.post(&[mine, of_session], &ping).await.status, 404);
    served.begin(&[]).await;
    served.end().await;
}

#[tokio::test]
async fn clients_that_begin_together_keep_their_sessions_where_there_is_no_room() {
    let served = RunningServer::new(|settings| settings.max_sessions = 20).await;
    let ping = legacy(1, "ping", json!({}));
    let is_there = async |session: &str| {
        served.post(&[("Mcp-Session-Id", session)], &ping).await.status == 200
    };
    let mut left_behind = Vec::new();
    for _ in 0..20 {
        let session = served.begin(&[]).await;
        assert!(is_there(&session).await);
        left_behind.push(session);
    }
    let (first, second) = (served.begin(&[]).await, served.begin(&[]).await);
    assert!(is_there(&first).await && is_there(&second).await);
    assert!(!is_there(&left_behind[0]).await && !is_there(&left_behind[1]).await);
    // Where many are begun and not used, one of these ends.
    let (unused, newer) = (served.begin(&[]).await, served.begin(&[]).await);
    served.begin(&[]).await;
    served.begin(&[]).await;
    assert!(!is_there(&unused).await);
    assert!(is_there(&newer).await && is_there(&left_behind[19]).await);
    served.end().await;
}

/// Tokens of every kind. The texts are their names.
#[derive(Debug, Default)]
struct FakeTokenStore {
    is_over: AtomicBool,
}

#[async_trait]
impl TokenStore for FakeTokenStore {
    async fn grant(&self, token: &HttpTokenDigest) -> Option<TokenGrant> {
        // By their full names, whatever a profile makes of them.
        let tools = Some(vec!["*__test_simple_*".to_string(), "nothing".to_string()]);
        let all = [
            ("all", None, None),
            ("texts", Some("texts"), None),
            ("simple", None, tools.clone()),
            ("both", Some("texts"), tools),
            ("lost", Some("none"), None),
        ];
        let (_, profile, tools) =
            all.into_iter().find(|(name, ..)| HttpTokenDigest::new(name) == *token)?;
        if self.is_over.load(Ordering::SeqCst) {
            return None;
        }
        Some(TokenGrant { principal: None, profile: profile.map(String::from), tools })
    }
}

#[tokio::test]
async fn a_token_is_good_for_what_it_was_made_for() {
    let tokens = Arc::new(FakeTokenStore::default());
    let known: Arc<dyn TokenStore> = tokens.clone();
    let texts = Profile {
        name: "texts".into(),
        tools: Some(vec!["*_text".into(), "test_elicitation".into(), "hang".into()]),
        prompts: Some(Vec::new()),
        prefix: false,
        calls_per_minute: NonZeroU32::new(1),
        ..Profile::default()
    };
    let served = RunningServer::with(
        |settings| drop(settings.profiles.insert("texts".into(), texts)),
        |settings| settings.tokens = Some(known),
    )
    .await;
    let send = async |token: &str, path: &str, message: Value| {
        let authorization = format!("Bearer {token}");
        let method = message["method"].as_str().unwrap();
        let mut headers = vec![
            ("Authorization", &*authorization),
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", method),
        ];
        headers.extend(message["params"]["name"].as_str().map(|name| ("Mcp-Name", name)));
        served.raw(&served.request("POST", path, &headers, &message.to_string())).await
    };
    let list = async |token: &str, path: &str, list: &str| -> Result<Vec<String>, u16> {
        let reply = send(token, path, modern(1, &format!("{list}/list"), json!({}))).await;
        if reply.status != 200 {
            return Err(reply.status);
        }
        let items = reply.message()["result"][list].as_array().expect("it is a list").clone();
        Ok(items.iter().filter_map(|item| item["name"].as_str().map(String::from)).collect())
    };
    let all = list("all", "/mcp", "tools").await.unwrap();
    let fitting = |fits: &dyn Fn(&str) -> bool| -> Vec<String> {
        all.iter().filter(|name| fits(name)).cloned().collect()
    };
    let is_of_texts =
        |name: &str| name.ends_with("_text") || matches!(name, "test_elicitation" | "hang");
    let is_simple = |name: &str| name.starts_with("test_simple_");
    let of_texts = fitting(&is_of_texts);
    let simple = fitting(&is_simple);
    let both = fitting(&|name| is_simple(name) && is_of_texts(name));
    assert!(of_texts.len() >= 3 && !simple.is_empty() && !both.is_empty(), "{all:?}");
    assert!(all.len() > of_texts.len());
    for (token, path, expected) in [
        ("all", "/mcp/p/texts", Ok(&of_texts)),
        ("all", "/mcp/p/default", Ok(&all)),
        ("texts", "/mcp", Ok(&of_texts)),
        ("texts", "/mcp/p/texts", Ok(&of_texts)),
        ("texts", "/mcp/p/default", Err(403)),
        ("texts", "/mcp/p/none", Err(403)),
        ("simple", "/mcp", Ok(&simple)),
        ("simple", "/mcp/p/texts", Ok(&both)),
        ("both", "/mcp", Ok(&both)),
        ("both", "/mcp/p/default", Err(403)),
        ("lost", "/mcp", Err(404)),
        ("other", "/mcp", Err(401)),
    ] {
        let listed = list(token, path, "tools").await;
        assert_eq!(listed.as_ref().map_err(|status| *status), expected, "{token} at {path}");
    }
    assert!(!list("all", "/mcp", "prompts").await.unwrap().is_empty());
    assert_eq!(list("texts", "/mcp", "prompts").await, Ok(Vec::new()));
    // What is not listed is not there either.
    let call = |name: &str| modern(2, "tools/call", json!({ "name": name }));
    let error = send("simple", "/mcp", call("test_image_content")).await.message();
    assert_eq!(error["error"]["code"], -32602, "{error}");
    // Each client has its calls of each tool.
    let simple_text = "This is a simple text response for testing.";
    for token in ["texts", "both"] {
        let first = send(token, "/mcp", call("test_simple_text")).await.message();
        assert_eq!(text(&first), simple_text);
        let second = send(token, "/mcp", call("test_simple_text")).await.message();
        assert!(text(&second).contains("can be called once in a minute"), "{second}");
        let wait = second["result"]["_meta"]["tenon/error"]["retryAfterMs"].as_u64().unwrap();
        assert!((1..=60_000).contains(&wait), "{wait}");
    }
    // A session is its token's, whatever the token is good for.
    let of_token = |token: &str| format!("Bearer {token}");
    let session = served.begin(&[("Authorization", &*of_token("all"))]).await;
    for (token, status) in [("all", 200), ("simple", 404), ("texts", 404), ("other", 401)] {
        let headers = [("Authorization", &*of_token(token)), ("Mcp-Session-Id", &*session)];
        let reply = served.post(&headers, &legacy(9, "ping", json!({}))).await;
        assert_eq!(reply.status, status, "{token}: {reply:?}");
        if status == 404 {
            assert_eq!(reply.message()["id"], 9);
        }
    }
    // What others may see otherwise is kept for one client.
    let listed = send("all", "/mcp", modern(1, "tools/list", json!({}))).await.message();
    assert_eq!(listed["result"]["cacheScope"], "private");
    // A call that waits goes on for its own token only.
    let asks = json!({ "name": "test_elicitation", "arguments": { "message": "Who?" } });
    let waiting = send("texts", "/mcp", modern(3, "tools/call", asks.clone())).await.message();
    let (questions, state) =
        (&waiting["result"]["inputRequests"], &waiting["result"]["requestState"]);
    let key = questions.as_object().and_then(|all| all.keys().next()).expect("it asks").clone();
    let mut again = asks;
    again["inputResponses"] = json!({ key: { "action": "decline" } });
    again["requestState"] = state.clone();
    let again = modern(4, "tools/call", again);
    for path in ["/mcp", "/mcp/p/texts"] {
        let error = send("all", path, again.clone()).await.message();
        assert_eq!(error["error"]["code"], -32602, "{error}");
    }
    let resumed = send("texts", "/mcp/p/texts", again).await.message();
    assert_eq!(text(&resumed), "User response: decline");
    tokens.is_over.store(true, Ordering::SeqCst);
    assert_eq!(list("all", "/mcp", "tools").await, Err(401));
    served.end().await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_takes_its_question_back() {
    let served = RunningServer::new(|_| {}).await;
    let session = served.begin(&[]).await;
    let of_session = ("Mcp-Session-Id", &*session);
    let call = json!({ "name": "test_elicitation", "arguments": { "message": "Who?" } });
    let call = legacy(1, "tools/call", call).to_string();
    let mut stream =
        Stream::open(&served, &served.request("POST", "/mcp", &[of_session], &call)).await;
    let asked = stream.message().await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(served.post(&[of_session], &cancel).await.status, 202);
    let taken_back = stream.message().await;
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    served.end().await;
}

#[tokio::test]
async fn a_stream_begins_as_the_revision_has_it() {
    let served = RunningServer::new(|_| {}).await;
    for (version, beginning) in
        [("2025-06-18", "id: 1-1\nevent: message"), ("2025-11-25", "id: 1-0\nretry: ")]
    {
        let mut begin = initialize(0, json!({}));
        begin["params"]["protocolVersion"] = json!(version);
        let begun = served.post(&[], &begin).await;
        let of_session = ("Mcp-Session-Id", begun.header("mcp-session-id").unwrap());
        let mut call = json!({ "name": "test_tool_with_progress" });
        call["_meta"] = json!({ "progressToken": "t" });
        let streamed = served.post(&[of_session], &legacy(1, "tools/call", call)).await;
        assert!(streamed.body.starts_with(beginning), "{version}: {streamed:?}");
        // What is left of no stream is not taken for news.
        for id in ["9-1", "x", "", "\u{e9}"] {
            let headers = [of_session, ("Last-Event-ID", id)];
            let reply = served.raw(&served.request("GET", "/mcp", &headers, "")).await;
            assert_eq!(reply.status, 400, "{id:?}: {reply:?}");
        }
    }
    served.end().await;
}

#[tokio::test]
async fn a_batch_is_answered_message_by_message() {
    let served = RunningServer::new(|_| {}).await;
    let mut begin = initialize(0, json!({ "elicitation": {} }));
    begin["params"]["protocolVersion"] = json!("2025-03-26");
    let begun = served.post(&[], &begin).await;
    let session = begun.header("mcp-session-id").unwrap();
    let of_session = ("Mcp-Session-Id", session);
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    let batch = json!([
        legacy(1, "ping", json!({})),
        legacy(2, "tools/call", json!({ "name": "hang" })),
        cancelled,
        legacy(3, "nothing", json!({})),
    ]);
    let answered = served.post(&[of_session], &batch).await;
    let mut ids: Vec<_> = answered.messages().iter().map(|answer| answer["id"].clone()).collect();
    ids.sort_by_key(Value::as_u64);
    assert_eq!(ids, [1, 3]);
    // A question reaches the client.
    let asks = json!([legacy(
        4,
        "tools/call",
        json!({ "name": "test_elicitation", "arguments": { "message": "Who?" } })
    )]);
    let request = served.request("POST", "/mcp", &[of_session], &asks.to_string());
    let mut stream = Stream::open(&served, &request).await;
    let asked = stream.message().await;
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } });
    assert_eq!(served.post(&[of_session], &answer).await.status, 202);
    assert_eq!(text(&stream.message().await), "User response: decline");
    served.end().await;
}

#[tokio::test]
async fn a_server_does_not_wait_at_its_end_for_answers_that_cannot_come() {
    let served = RunningServer::new(|_| {}).await;
    let session = served.begin(&[]).await;
    let call = json!({ "name": "test_elicitation", "arguments": { "message": "Who?" } });
    let legacy = legacy(1, "tools/call", call.clone()).to_string();
    let request = served.request("POST", "/mcp", &[("Mcp-Session-Id", &*session)], &legacy);
    let mut stream = Stream::open(&served, &request).await;
    assert_eq!(stream.message().await["method"], "elicitation/create");
    let waiting = served.modern(&modern(2, "tools/call", call)).await.message();
    assert_eq!(waiting["result"]["resultType"], "input_required");
    // It would wait for ten minutes.
    served.end().await;
    assert_eq!(stream.message().await["result"]["isError"], true);
}

/// A stream that is read as it comes.
struct Stream(BufReader<TcpStream>);

impl Stream {
    async fn open(served: &RunningServer, request: &str) -> Self {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        Self(BufReader::new(stream))
    }

    /// The next line that begins with this.
    async fn line(&mut self, beginning: &str) -> String {
        let next = async {
            loop {
                let mut line = String::new();
                assert_ne!(self.0.read_line(&mut line).await.unwrap(), 0, "the stream has ended");
                if let Some(rest) = line.trim_end().strip_prefix(beginning) {
                    return rest.to_string();
                }
            }
        };
        timeout(Duration::from_secs(60), next).await.expect("there is such a line")
    }

    async fn message(&mut self) -> Value {
        loop {
            let data = self.line("data: ").await;
            if !data.trim().is_empty() {
                return serde_json::from_str(&data).unwrap();
            }
        }
    }
}

/// Waits for a step of a call.
async fn heard(events: &mut Subscription, wanted: impl Fn(&Step) -> bool) {
    let next = async {
        loop {
            match events.next().await.expect("the platform runs") {
                Event::Call(CallEvent { step, .. }) if wanted(&step) => return,
                _ => {}
            }
        }
    };
    timeout(Duration::from_secs(60), next).await.expect("there is such a step");
}

#[tokio::test]
async fn a_modern_client_that_goes_away_cancels_and_a_legacy_one_does_not() {
    let served =
        RunningServer::new(|settings| settings.stream_time = Duration::from_millis(300)).await;
    let hang = modern(1, "tools/call", json!({ "name": "hang" }));
    let headers =
        [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "hang")];
    let request = served.request("POST", "/mcp", &headers, &hang.to_string());
    let mut events = served.platform.events();
    let stream = Stream::open(&served, &request).await;
    heard(&mut events, |step| matches!(step, Step::Permitted)).await;
    drop(stream);
    heard(&mut events, |step| matches!(step, Step::Ended { outcome: "abandoned", .. })).await;

    let session = served.begin(&[]).await;
    let of_session = ("Mcp-Session-Id", &*session);
    let call = legacy(
        1,
        "tools/call",
        json!({ "name": "delay", "arguments": { "millis": 1000, "text": "late" } }),
    );
    let request = served.request("POST", "/mcp", &[of_session], &call.to_string());
    let mut stream = Stream::open(&served, &request).await;
    let id = stream.line("id: ").await;
    drop(stream);
    // The rest is got in pieces, as long as each stream lasts.
    let answer = loop {
        let headers = [of_session, ("Last-Event-ID", &*id)];
        let rest = served.raw(&served.request("GET", "/mcp", &headers, "")).await;
        assert_eq!(rest.status, 200, "{rest:?}");
        if let Some(answer) = rest.messages().pop() {
            break answer;
        }
    };
    assert_eq!((&answer["id"], text(&answer)), (&json!(1), "late"));
    served.end().await;
}

#[tokio::test]
async fn a_client_is_asked_on_the_stream_of_its_call() {
    let served = RunningServer::new(|_| {}).await;
    let session = served.begin(&[]).await;
    let of_session = ("Mcp-Session-Id", &*session);
    let call = json!({ "name": "test_elicitation", "arguments": { "message": "Who?" } });
    let call = legacy(1, "tools/call", call).to_string();
    let mut stream =
        Stream::open(&served, &served.request("POST", "/mcp", &[of_session], &call)).await;
    let asked = stream.message().await;
    assert_eq!(asked["method"], "elicitation/create");
    let content = json!({ "username": "ada", "email": "a@b.c" });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept", "content": content } });
    // Somebody else's answer is none.
    assert_eq!(served.post(&[], &answer).await.status, 400);
    assert_eq!(served.post(&[of_session], &answer).await.status, 202);
    assert_eq!(text(&stream.message().await), "User response: accept, ada, a@b.c");
    served.end().await;
}

#[tokio::test]
async fn news_go_to_one_stream_and_end_with_the_server() {
    let served = RunningServer::new(|_| {}).await;
    let session = served.begin(&[]).await;
    let of_session = ("Mcp-Session-Id", &*session);
    let get = served.request("GET", "/mcp", &[of_session], "");
    let mut former = Stream::open(&served, &get).await;
    former.line(": ").await;
    let mut stream = Stream::open(&served, &get).await;
    stream.line(": ").await;
    let listen =
        modern(9, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "subscriptions/listen")];
    let request = served.request("POST", "/mcp", &headers, &listen.to_string());
    let mut listening = Stream::open(&served, &request).await;
    let acknowledged = listening.message().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    served.modern(&modern(1, "tools/call", json!({ "name": "test_trigger_tool_change" }))).await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    assert_eq!(listening.message().await["method"], "notifications/tools/list_changed");
    // The former stream has ended without having told anything.
    let mut rest = String::new();
    timeout(Duration::from_secs(60), former.0.read_to_string(&mut rest)).await.unwrap().unwrap();
    assert!(!rest.contains("list_changed"), "{rest}");
    let RunningServer { stop, serving, platform, .. } = served;
    stop.unwrap().send(()).unwrap();
    let ended = listening.message().await;
    assert_eq!((&ended["id"], &ended["result"]["resultType"]), (&json!(9), &json!("complete")));
    serving.await.unwrap().unwrap();
    platform.shutdown().await;
}
