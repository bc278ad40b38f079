//! MCP servers elsewhere, reached over HTTP on this machine.

mod peer;

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenon_config::secret::MASK;
use tenon_host::{Event, Platform, PluginState, ServerState};

use crate::bridge::imports_of;
use crate::support::{
    Project, RunningPlatform, call_within, eventually, failure, stderr, stdout, text,
};
use peer::{Answer, Heard, Peer, rmcp_server};

/// A platform with one server `s` elsewhere.
async fn platform(url: &str, more: &str) -> RunningPlatform {
    let entry = format!("{{ name = \"s\", url = {url:?}{more} }}");
    crate::support::platform(&format!("plugins.mcp = [{entry}]")).await
}

fn state(platform: &Platform) -> (PluginState, String) {
    let reports = platform.plugins();
    let report = reports.iter().find(|report| report.plugin == "s").expect("it is reported");
    (report.state, report.detail.clone().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_elsewhere_is_a_plugin_like_any_other() {
    let server = rmcp_server().await;
    let platform = platform(&server.url("/mcp"), "").await;
    assert_eq!(state(&platform).0, PluginState::Ready, "{}", state(&platform).1);
    let report = platform.server("s").unwrap();
    assert_eq!((report.state, &*report.breaker), (ServerState::Ready, "ext:http:s"));
    let calls = (0..32).map(|i| {
        let platform = &platform;
        async move {
            let arguments = json!({ "text": format!("answer {i}") });
            assert_eq!(text(platform, "s__echo", arguments).await, format!("answer {i}"));
        }
    });
    futures::future::join_all(calls).await;
    let mut events = platform.events();
    assert_eq!(text(&platform, "s__work", json!({})).await, "done");
    let news = loop {
        let event = events.next().await.expect("there is news of progress");
        if let Event::Progress { progress, total, message, .. } = event {
            break (progress, total, message);
        }
    };
    assert_eq!(news, (1.0, Some(2.0), Some("half".into())));
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_elsewhere_says_by_itself_is_heard() {
    let server = rmcp_server().await;
    let platform = platform(&server.url("/mcp"), "").await;
    assert!(platform.registry().tool("s__late").is_none());
    assert_eq!(text(&platform, "s__grow", json!({})).await, "grown");
    eventually("the new tool is there", || platform.registry().tool("s__late").is_some()).await;
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_go_with_every_request_and_their_secrets_nowhere_else() {
    let peer = Peer::start(|_| Answer::Json).await;
    let entry = format!(
        "plugins.mcp = [{{ name = \"s\", url = {:?}, headers = {{ Authorization = \"Bearer ${{TOKEN}}\" }} }}]",
        peer.url("/mcp")
    );
    let project = Project::new(&entry);
    let mut host_environment = crate::support::host_environment();
    host_environment.environment = [("TOKEN".into(), "hush-hush-123".into())].into();
    let platform = project.builder().host_environment(host_environment).build().await.unwrap();
    assert_eq!(text(&platform, "s__echo", json!({ "text": "hush-hush-123" })).await, MASK);
    let heard = peer.heard();
    assert!(!heard.is_empty());
    for request in &heard {
        assert_eq!(request.header("authorization"), Some("Bearer hush-hush-123"));
        if request.method == "POST" && !["server/discover", "initialize"].contains(&&*request.rpc) {
            assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"));
            assert_eq!(request.header("mcp-session-id"), Some("session-1"));
        }
    }
    platform.clone().shutdown().await;
    // The session is ended with the plugin.
    assert!(peer.heard().iter().any(|request| request.method == "DELETE"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_in_headers_reach_the_server_and_are_shown_nowhere() {
    let peer = Peer::start(|_| Answer::Json).await;
    let headers =
        "{ Authorization = \"Bearer ${secret:tracker-token}\", X-Team = \"${secret:team}\" }";
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"s\", url = {:?}, headers = {headers} }}]",
        peer.url("/mcp")
    ));
    let run = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env("TRACKER_TOKEN", "hush-hush-123").env("TEAM", "quiet-456");
        let output = tokio::task::block_in_place(|| command.output().expect("tenon starts"));
        format!("{}{}", stdout(&output), stderr(&output))
    };
    let arguments = json!({ "text": "of hush-hush-123 and quiet-456" }).to_string();
    let said = run(&["call", "s__echo", &arguments]);
    assert_eq!(said, format!("of {MASK} and {MASK}\n"));
    let heard = peer.heard();
    assert!(heard.iter().any(|request| request.rpc == "tools/call"));
    for request in &heard {
        assert_eq!(request.header("authorization"), Some("Bearer hush-hush-123"));
        assert_eq!(request.header("x-team"), Some("quiet-456"));
    }
    for (arguments, part) in [
        (&["doctor"][..], "s "),
        (&["doctor", "--json"], "ext:http:s"),
        (&["inspect", "s"], "limits"),
        (&["inspect", "s", "--json"], "limits"),
        (&["history"], "s__echo"),
        (&["history", "--json"], MASK),
    ] {
        let said = run(arguments);
        assert!(said.contains(part), "{arguments:?}: {said}");
        let shown = ["hush-hush", "quiet-456"].into_iter().find(|secret| said.contains(secret));
        assert_eq!(shown, None, "{arguments:?}: {said}");
    }
}

/// A server of the newer era that has these tools, and answers calls of them.
fn modern(request: &Heard, tools: &Value) -> Answer {
    Answer::Result(match request.rpc.as_str() {
        "server/discover" => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
        }),
        "tools/list" => json!({ "resultType": "complete", "tools": tools }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": "done" }] }),
        _ => return Answer::Error(-32601),
    })
}

/// Tools of which one has good marks on its arguments, and one a bad one.
fn marked_tools() -> Value {
    let string = |mark: &str| json!({ "type": "string", "x-mcp-header": mark });
    let tenant = json!({ "type": "object", "properties": { "tenant": string("Tenant") } });
    let good = json!({
        "region": string("Region"), "count": { "type": "integer", "x-mcp-header": "Count" },
        "of": tenant, "query": { "type": "string" },
    });
    let tool = |name: &str, properties: Value| json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } });
    json!([tool("good", good), tool("bad", json!({ "a": string("two words") }))])
}

// MCP.md: E15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marked_arguments_go_into_headers_as_well() {
    let peer = Peer::start(|request| modern(request, &marked_tools())).await;
    let platform = platform(&peer.url("/mcp"), ", protocol = \"modern\"").await;
    assert_eq!(state(&platform).0, PluginState::Ready, "{}", state(&platform).1);
    // A tool whose mark is wrong costs itself alone.
    assert!(platform.registry().tool("s__bad").is_none());
    let arguments = json!({ "region": "Malm\u{f6}", "of": { "tenant": "a b" }, "query": "q" });
    assert_eq!(text(&platform, "s__good", arguments).await, "done");
    assert_eq!(text(&platform, "s__good", json!({ "count": -7 })).await, "done");
    let heard = peer.heard();
    let params = |request: &Heard| {
        ["region", "count", "tenant"].map(|name| {
            request.header(&format!("mcp-param-{name}")).unwrap_or_default().to_string()
        })
    };
    let calls: Vec<_> = heard.iter().filter(|request| request.rpc == "tools/call").collect();
    assert_eq!(params(calls[0]), ["=?base64?TWFsbcO2?=", "", "a b"]);
    assert_eq!(params(calls[1]), ["", "-7", ""]);
    for request in &heard {
        assert_eq!(request.header("mcp-method"), Some(&*request.rpc));
        assert_eq!(request.header("mcp-name"), request.params["name"].as_str());
        assert!(request.rpc == "tools/call" || params(request).concat().is_empty());
    }
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_refused_for_want_of_headers_is_made_with_them() {
    let marked = Arc::new(AtomicBool::new(false));
    let peer = Peer::start({
        let marked = marked.clone();
        move |request| {
            let has = request.header("mcp-param-region").is_some();
            match (marked.load(Ordering::SeqCst), request.rpc.as_str()) {
                (true, "tools/call") if !has => Answer::Error(-32020),
                (true, _) => modern(request, &marked_tools()),
                (false, _) => {
                    let schema = json!({ "type": "object" });
                    modern(request, &json!([{ "name": "good", "inputSchema": schema }]))
                }
            }
        }
    })
    .await;
    let platform = platform(&peer.url("/mcp"), ", protocol = \"modern\"").await;
    let region = json!({ "region": "north" });
    assert_eq!(text(&platform, "s__good", region.clone()).await, "done");
    marked.store(true, Ordering::SeqCst);
    assert_eq!(text(&platform, "s__good", region).await, "done");
    let regions = |heard: Vec<Heard>| {
        let calls = heard.into_iter().filter(|request| request.rpc == "tools/call");
        calls.map(|call| call.header("mcp-param-region").map(String::from)).collect::<Vec<_>>()
    };
    assert_eq!(regions(peer.heard()), [None, None, Some("north".into())]);
    // Refused for anything else, it is not made again.
    let refused = failure(&platform, "s__good", json!({})).await.to_string();
    assert!(refused.contains("code -32020"), "{refused}");
    assert_eq!(regions(peer.heard()).len(), 4);
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_asked_about_by_its_name() {
    let peer = Peer::start(|request| {
        let task = |kind: &str, status: &str, result: Value| {
            Answer::Result(json!({
                "resultType": kind, "taskId": "t 1", "status": status, "ttlMs": null,
                "pollIntervalMs": 50, "result": result,
            }))
        };
        match request.rpc.as_str() {
            "tools/call" => task("task", "working", Value::Null),
            "tasks/get" => {
                let content = json!([{ "type": "text", "text": "done at last" }]);
                task("complete", "completed", json!({ "content": content }))
            }
            _ => modern(request, &marked_tools()),
        }
    })
    .await;
    let platform = platform(&peer.url("/mcp"), ", protocol = \"modern\"").await;
    assert_eq!(text(&platform, "s__good", json!({})).await, "done at last");
    let heard = peer.heard();
    let names = heard.iter().filter(|request| request.rpc == "tasks/get");
    assert_eq!(names.map(|request| request.header("mcp-name")).collect::<Vec<_>>(), [Some("t 1")]);
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_mean_nothing_to_servers_of_the_older_era() {
    let peer = Peer::start(|request| match request.rpc.as_str() {
        "tools/list" => Answer::Result(json!({ "tools": marked_tools() })),
        _ => Answer::Json,
    })
    .await;
    let platform = platform(&peer.url("/mcp"), "").await;
    assert!(platform.registry().tool("s__bad").is_some());
    assert_eq!(text(&platform, "s__good", json!({ "text": "x", "region": "y" })).await, "x");
    assert!(peer.heard().iter().all(|request| request.header("mcp-param-region").is_none()));
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_has_ended_is_begun_again() {
    // The status of the specification, and that of servers who have read another one.
    for (status, said) in [(404, "gone"), (400, "Bad Request: No valid session ID provided")] {
        let peer = Peer::start(move |request| match request.rpc.as_str() {
            "tools/call" if request.header("mcp-session-id") == Some("session-1") => {
                Answer::Status(status, said)
            }
            _ => Answer::Json,
        })
        .await;
        let platform = platform(&peer.url("/mcp"), "").await;
        let lost = failure(&platform, "s__echo", json!({ "text": "x" })).await.to_string();
        assert!(lost.contains("the session has ended"), "{lost}");
        assert_eq!(text(&platform, "s__echo", json!({ "text": "y" })).await, "y");
        platform.clone().shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_whose_stream_breaks_off_is_asked_for_again() {
    let peer = Peer::start(|request| match request.rpc.as_str() {
        "tools/call" => Answer::BreaksOff,
        _ => Answer::Json,
    })
    .await;
    let platform = platform(&peer.url("/mcp"), "").await;
    assert_eq!(text(&platform, "s__echo", json!({ "text": "x" })).await, "x");
    let heard = peer.heard();
    assert!(heard.iter().any(|request| request.header("last-event-id") == Some("half")));
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_the_first_transport_is_spoken_to_in_its_way() {
    for more in ["", ", transport = \"sse\""] {
        let peer = Peer::first_transport().await;
        let platform = platform(&peer.url("/sse"), more).await;
        assert_eq!(state(&platform).0, PluginState::Ready, "{}", state(&platform).1);
        assert_eq!(text(&platform, "s__echo", json!({ "text": "x" })).await, "x");
        platform.clone().shutdown().await;
    }
}

/// The methods of the handshake that a server heard.
fn handshake(peer: &Peer) -> Vec<String> {
    let heard = peer.heard().into_iter().filter(|request| request.method == "POST");
    let methods = heard.map(|request| request.rpc);
    methods.take_while(|method| method != "notifications/initialized").collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newer_era_is_asked_first_and_the_older_where_it_is_not_known() {
    let check = async |answer: Answer| {
        let said = format!("{answer:?}");
        let peer = Peer::start(move |request| match request.rpc.as_str() {
            "server/discover" => answer.clone(),
            _ => Answer::Json,
        })
        .await;
        // Another server may have had this port, and what is kept of it must not be of this one.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let more =
            format!(", startup_timeout = \"20s\", headers = {{ X-At = \"{}\" }}", now.as_nanos());
        let platform = platform(&peer.url("/mcp"), &more).await;
        assert_eq!(state(&platform).0, PluginState::Ready, "{said}: {}", state(&platform).1);
        assert_eq!(text(&platform, "s__echo", json!({ "text": "x" })).await, "x", "{said}");
        let revision = platform.server("s").unwrap().revision;
        assert_eq!(revision.as_deref(), Some("2025-11-25"), "{said}");
        assert_eq!(handshake(&peer), ["server/discover", "initialize"], "{said}");
        platform.clone().shutdown().await;
    };
    check(Answer::Json).await;
    check(Answer::Error(-32601)).await;
    check(Answer::Error(-32600)).await;
    check(Answer::Status(400, "Bad Request: no valid session ID provided")).await;
    check(Answer::Status(404, "")).await;
    check(Answer::Status(405, "")).await;
    check(Answer::Status(406, "")).await;
    check(Answer::Status(500, "unhandled")).await;
    check(Answer::Status(200, "<html>")).await;
    check(Answer::Status(202, "")).await;
    check(Answer::Never).await;

    let tools = marked_tools();
    let peer = Peer::start(move |request| modern(request, &tools)).await;
    let platform = platform(&peer.url("/mcp"), "").await;
    let revision = platform.server("s").unwrap().revision;
    assert_eq!(revision.as_deref(), Some("2026-07-28"));
    assert_eq!(peer.heard()[0].rpc, "server/discover");
    assert!(peer.heard().iter().all(|request| request.rpc != "initialize"));
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_nowhere_but_to_the_server() {
    let elsewhere = Peer::start(|_| Answer::Json).await;
    let peer = Peer::first_transport_that_sends_to(&elsewhere.url("/take")).await;
    let platform = platform(&peer.url("/sse"), ", transport = \"sse\"").await;
    let (state, detail) = state(&platform);
    assert_eq!(state, PluginState::Failed);
    assert!(detail.contains("elsewhere, where they must not go"), "{detail}");
    // Nor do requests follow where a server sends them.
    let location = elsewhere.url("/take");
    let peer = Peer::start(move |_| Answer::Redirect(location.clone())).await;
    let platform = crate::remote::platform(&peer.url("/mcp"), "").await;
    assert_eq!(crate::remote::state(&platform).0, PluginState::Failed);
    assert!(elsewhere.heard().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_server_elsewhere_is_named() {
    for (answer, expected) in [
        (Answer::Status(401, ""), "wants to know who asks (HTTP 401)"),
        (Answer::Status(500, "out of order"), "HTTP 500: out of order"),
        (Answer::Status(200, ""), "accepted the request and answered nothing"),
        (Answer::Status(200, "<html>"), "content of no type, which no answer has: <html>"),
        (Answer::Redirect("/there".into()), "HTTP 307: it is at /there, which is for `url` to say"),
        (
            Answer::Message(json!({ "jsonrpc": "2.0", "id": 999, "result": {} })),
            "the server answered something else: {\"id\":999",
        ),
        (Answer::Error(-32603), "no key, no service"),
    ] {
        let peer = Peer::start(move |_| answer.clone()).await;
        let platform = platform(&peer.url("/mcp"), "").await;
        let (state, detail) = state(&platform);
        assert_eq!(state, PluginState::Failed);
        assert!(detail.contains(expected), "{detail}");
    }
    // Nobody is there.
    let url = Peer::start(|_| Answer::Json).await.url("/mcp");
    let platform = platform(&url, "").await;
    assert!(state(&platform).1.contains("refused"), "{}", state(&platform).1);
    let remedy = platform.plugins()[0].remedy.clone().unwrap_or_default();
    assert!(remedy.starts_with("check its `url` and `headers` in "), "{remedy}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_given_up_is_given_up_over_there() {
    let peer = Peer::start(|request| match request.rpc.as_str() {
        "tools/call" => Answer::Never,
        _ => Answer::Json,
    })
    .await;
    let platform = platform(&peer.url("/mcp"), "").await;
    let timeout = Duration::from_millis(100);
    assert!(call_within(&platform, "s__echo", json!({ "text": "x" }), timeout).await.is_err());
    eventually("the server is told", || {
        peer.heard().iter().any(|request| request.rpc == "notifications/cancelled")
    })
    .await;
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_posted_once_whatever_becomes_of_it() {
    let rows = [
        (Answer::Json, true),
        (Answer::BreaksOff, true),
        (Answer::BreaksOffForGood, false),
        (Answer::Status(503, "busy"), false),
        (Answer::Status(500, "oh"), false),
        (Answer::Status(404, "gone"), false),
        (Answer::HangsUp, false),
        (Answer::Never, false),
    ];
    let checks = rows.map(async |(answer, succeeds)| {
        let row = format!("{answer:?}");
        let peer = Peer::start(move |request| match request.rpc.as_str() {
            "tools/call" => answer.clone(),
            _ => Answer::Json,
        })
        .await;
        let platform = platform(&peer.url("/mcp"), "").await;
        // What is tried again later would be heard before the second call is.
        for made in 1..=2 {
            let time = Duration::from_secs(if row == "Never" { 1 } else { 20 });
            let called = call_within(&platform, "s__echo", json!({ "text": "x" }), time).await;
            assert_eq!(called.is_ok(), succeeds, "{row}: {called:?}");
            let heard = peer.heard().into_iter();
            let posted = heard.filter(|heard| heard.method == "POST" && heard.rpc == "tools/call");
            assert_eq!(posted.count(), made, "{row}");
        }
        platform.clone().shutdown().await;
    });
    futures::future::join_all(checks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_origin_of_a_server_is_all_that_its_bridge_is_granted() {
    let peer = Peer::start(|_| Answer::Json).await;
    let platform = platform(&peer.url("/mcp?key=1"), "").await;
    assert_eq!(text(&platform, "s__echo", json!({ "text": "x" })).await, "x");
    let report = platform.plugins()[0].clone();
    assert_eq!(report.granted, [("network".into(), vec![peer.url("/*")])].into());
    platform.clone().shutdown().await;
}

#[test]
fn the_bridge_to_servers_elsewhere_can_reach_nothing_but_the_web() {
    let allowed = ["mcp-server", "log", "config", "notify", "user", "inference", "model", "types"];
    for import in imports_of(tenon_host::testing::REMOTE_BRIDGE) {
        let name = import.split('@').next().unwrap();
        let own = name.strip_prefix("tenon:plugin/").or(name.strip_prefix("tenon:bridge/"));
        let allowed = match own {
            Some(name) => allowed.contains(&name),
            None => name.starts_with("wasi:http/") || name.starts_with("wasi:clocks/"),
        };
        assert!(allowed, "{import}");
    }
}

/// What a peer answers to a message, if all is well.
fn result(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let params = &message["params"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "peer", "version": "1" },
        }),
        "tools/list" => {
            json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
        }
        "tools/call" => {
            json!({ "content": [{ "type": "text", "text": params["arguments"]["text"] }] })
        }
        method => {
            let error = json!({ "code": -32601, "message": format!("no {method} here") });
            return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}
