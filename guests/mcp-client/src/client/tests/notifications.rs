//! What servers tell by themselves.

use super::connect::discovered;
use super::server_requests::{modern, modern_with};
use super::*;
use crate::settings::Features;

// MCP.md: D5
#[test]
fn progress_belongs_to_requests_in_flight() {
    let mut client = connected();
    let (params, meta) = (Members::new().with("a", 1), Members::new().with("b", 2));
    let request = Request { params, meta, progress: true, ..of("m") };
    let operation = client.request(request, 0);
    assert_eq!(
        written(&mut client)[0]["params"],
        json!({"a": 1, "_meta": {"b": 2, "progressToken": 2}})
    );
    let progress = json!({"method": "notifications/progress", "params": {"progressToken": 2, "progress": 1, "total": 4}});
    receive(&mut client, progress.clone());
    let expected = Action::Progress { operation, progress: 1.0, total: Some(4.0), message: None };
    assert_eq!(actions(&mut client), [expected]);
    receive(&mut client, json!({"id": 2, "result": {}}));
    actions(&mut client);
    receive(&mut client, progress);
    assert!(actions(&mut client).is_empty());
}

// MCP.md: D2
#[test]
fn however_far_it_has_come_a_request_has_the_time_that_it_was_given() {
    let mut client = connected();
    let operation = client.request(Request { progress: true, ..of("m") }, 0);
    actions(&mut client);
    for now in [50, 99] {
        let params = json!({"progressToken": 2, "progress": now, "total": 100});
        let message = json!({"method": "notifications/progress", "params": params});
        client.receive(message.to_string().into_bytes(), now);
        client.tick(now);
    }
    assert!(finished(&mut client).is_empty());
    assert_eq!(client.deadline(), Some(100));
    client.tick(100);
    let all = actions(&mut client);
    let [Action::Write { line, .. }, Action::Abandon(2), end] = &all[..] else { panic!("{all:?}") };
    let told: Value = serde_json::from_slice(line).unwrap();
    assert_eq!(told["method"], "notifications/cancelled");
    assert_eq!(*end, Action::Finish(operation, Err(Error::Timeout)));
}

// MCP.md: F5
#[test]
fn what_a_server_logs_is_told_with_how_much_it_matters() {
    let mut client = connected();
    for (said, level) in [
        ("debug", LogLevel::Debug),
        ("info", LogLevel::Info),
        ("notice", LogLevel::Info),
        ("warning", LogLevel::Warn),
        ("error", LogLevel::Error),
        ("critical", LogLevel::Error),
        ("alert", LogLevel::Error),
        ("emergency", LogLevel::Error),
        ("loud", LogLevel::Info),
    ] {
        for (data, message) in [(json!("words"), "words"), (json!({"n": 1}), r#"{"n":1}"#)] {
            let params = json!({"level": said, "logger": "l", "data": data});
            receive(&mut client, json!({"method": "notifications/message", "params": params}));
            let (message, logger) = (message.into(), Some("l".into()));
            assert_eq!(actions(&mut client), [Action::Log { level, message, logger }], "{said}");
        }
    }
}

// MCP.md: D5
#[test]
fn a_storm_of_progress_is_thinned_and_its_end_kept() {
    let mut client = connected();
    client.request(Request { progress: true, ..of("m") }, 0);
    actions(&mut client);
    for progress in 1..=1000 {
        let params = json!({"progressToken": 2, "progress": progress, "total": 1000});
        let message = json!({"method": "notifications/progress", "params": params});
        client.receive(message.to_string().into_bytes(), progress / 10);
    }
    let seen = actions(&mut client);
    assert_eq!(seen.len(), 3);
    assert!(matches!(seen[2], Action::Progress { progress: 1000.0, .. }));
}

// MCP.md: E10
#[test]
fn several_changes_in_a_row_are_one() {
    let mut client = connected();
    for now in [5, 6, 7, 60] {
        client.receive(br#"{"method":"notifications/tools/list_changed"}"#.to_vec(), now);
    }
    assert!(actions(&mut client).is_empty());
    assert_eq!(client.deadline(), Some(105));
    client.tick(105);
    assert_eq!(actions(&mut client), [Action::ToolsChanged]);
    assert_eq!(client.deadline(), None);
}

#[test]
fn that_a_list_is_no_longer_empty_is_a_change_and_another_of_a_full_one_is_none() {
    let mut client = connected();
    let tell = |client: &mut Client, of: &str, now: u64| {
        let message = json!({ "method": format!("notifications/{of}/list_changed") });
        client.receive(message.to_string().into_bytes(), now);
        client.tick(now + 200);
        actions(client)
    };
    client.await_lists(EmptyLists { resources: true, prompts: false }, 0);
    assert_eq!(tell(&mut client, "resources", 0), [Action::ToolsChanged]);
    assert!(tell(&mut client, "prompts", 300).is_empty());
    client.await_lists(EmptyLists { resources: false, prompts: true }, 600);
    assert!(tell(&mut client, "resources", 600).is_empty());
    assert_eq!(tell(&mut client, "prompts", 900), [Action::ToolsChanged]);
}

// MCP.md: F2
#[test]
fn resources_are_subscribed_to_in_the_older_era_one_by_one() {
    let mut client = connected_to(json!({"resources": {"subscribe": true}}));
    client.subscribe("file:///a", true, 0);
    client.subscribe("file:///a", false, 0);
    let sent = written(&mut client);
    assert_eq!(sent[0]["method"], "resources/subscribe");
    assert_eq!(sent[1]["method"], "resources/unsubscribe");
    assert_eq!(sent[1]["params"]["uri"], "file:///a");
    let params = json!({"uri": "file:///a"});
    receive(&mut client, json!({"method": "notifications/resources/updated", "params": params}));
    assert_eq!(actions(&mut client), [Action::ResourceUpdated("file:///a".into())]);
}

// MCP.md: F2
#[test]
fn nothing_is_subscribed_to_where_no_server_declares_that_it_tells() {
    let newer = |capabilities: Value| {
        let mut client = modern_with(Settings::default());
        client.connect(0, 100);
        let mut answer = discovered(1);
        answer["result"]["capabilities"] = capabilities;
        receive(&mut client, answer);
        actions(&mut client);
        client
    };
    for connected in [connected_to as fn(Value) -> Client, newer] {
        for (capabilities, is_declared) in [
            (json!({"resources": {"subscribe": true}}), true),
            (json!({"resources": {"subscribe": false}}), false),
            (json!({"resources": {"listChanged": true}}), false),
            (json!({"resources": {}}), false),
            (json!({"tools": {}}), false),
        ] {
            let mut client = connected(capabilities.clone());
            let operation = client.subscribe("file:///a", true, 0);
            let all = actions(&mut client);
            let is_asked = all.iter().any(|action| matches!(action, Action::Write { .. }));
            let problem = "the server does not tell when resources change";
            let refused = Action::Finish(operation, Err(Error::Undeclared(problem.into())));
            assert_eq!(is_asked, is_declared, "{capabilities}: {all:?}");
            assert_eq!(all == [refused], !is_declared, "{capabilities}: {all:?}");
        }
    }
}

// MCP.md: A10
#[test]
fn what_was_subscribed_to_in_the_older_era_is_subscribed_to_on_the_next_connection() {
    let mut client = client();
    let connect = |client: &mut Client, id: u64| {
        client.connect(0, 100);
        actions(client);
        let capabilities = json!({"resources": {"subscribe": true}});
        let result = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities});
        receive(client, json!({"id": id, "result": result}));
        let sent = written(client).into_iter().skip(1);
        sent.map(|message| (message["method"].clone(), message["params"]["uri"].clone())).collect()
    };
    let none: Vec<(Value, Value)> = connect(&mut client, 1);
    assert_eq!(none, []);
    for (id, uri) in [(2, "a:kept"), (3, "a:refused"), (4, "a:given-up")] {
        client.subscribe(uri, true, 0);
        actions(&mut client);
        match uri {
            "a:refused" => {
                receive(&mut client, json!({"id": id, "error": {"code": -32602, "message": "no"}}))
            }
            _ => receive(&mut client, json!({"id": id, "result": {}})),
        }
    }
    client.subscribe("a:given-up", false, 0);
    receive(&mut client, json!({"id": 5, "result": {}}));
    actions(&mut client);
    client.lost("it ended");
    let again: Vec<(Value, Value)> = connect(&mut client, 6);
    assert_eq!(again, [(json!("resources/subscribe"), json!("a:kept"))]);
}

// MCP.md: F2
#[test]
fn resources_are_subscribed_to_in_the_newer_era_by_one_stream() {
    let mut client = modern(Features::default());
    client.subscribe("file:///a", true, 0);
    let first = written(&mut client).remove(0);
    assert_eq!(first["method"], "subscriptions/listen");
    assert_eq!(first["params"]["notifications"], json!({"resourceSubscriptions": ["file:///a"]}));
    // The stream has no deadline, and is no operation's only request.
    assert_eq!(client.deadline(), None);
    let operation = plain(&mut client, 0);
    actions(&mut client);
    receive(&mut client, json!({"id": null, "error": {"code": 1, "message": ""}}));
    assert_eq!(finished(&mut client)[0].0, operation);
    client.subscribe("file:///b", true, 0);
    let sent = written(&mut client);
    assert_eq!(sent[0]["method"], "notifications/cancelled");
    assert_eq!(sent[0]["params"]["requestId"], first["id"]);
    let both = json!(["file:///a", "file:///b"]);
    assert_eq!(sent[1]["params"]["notifications"]["resourceSubscriptions"], both);
}

#[test]
fn a_stream_of_news_that_ends_is_begun_again_with_growing_patience() {
    let mut client = modern(Features::default());
    client.subscribe("file:///a", true, 0);
    let mut id = written(&mut client)[0]["id"].as_u64().unwrap();
    let mut now = 0;
    for wait in [1_000, 2_000, 4_000, 8_000] {
        client.receive(json!({"id": id, "result": {}}).to_string().into_bytes(), now);
        now += wait;
        assert_eq!(client.deadline(), Some(now));
        client.tick(now);
        id = written(&mut client)[0]["id"].as_u64().unwrap();
    }
    client.receive(json!({"id": id, "result": {}}).to_string().into_bytes(), now);
    assert_eq!(client.deadline(), None);
}

#[test]
fn a_server_without_a_stream_of_news_is_asked_once() {
    let mut client = modern(Features::default());
    client.subscribe("file:///a", true, 0);
    let id = written(&mut client)[0]["id"].clone();
    receive(&mut client, json!({"id": id, "error": {"code": -32601, "message": "no"}}));
    assert_eq!(client.deadline(), None);
}

#[test]
fn what_a_server_logs_is_told_with_its_level_and_the_part_of_it_that_says_it() {
    let check = |params: Value, level: LogLevel, message: &str, logger: Option<&str>| {
        let mut client = connected();
        receive(&mut client, json!({"method": "notifications/message", "params": params}));
        let (message, logger) = (message.to_string(), logger.map(str::to_string));
        assert_eq!(actions(&mut client), [Action::Log { level, message, logger }]);
    };
    check(json!({"level": "info", "data": "m"}), LogLevel::Info, "m", None);
    check(
        json!({"level": "alert", "logger": "db", "data": {"a": 1}}),
        LogLevel::Error,
        r#"{"a":1}"#,
        Some("db"),
    );
    check(json!({"level": "debug", "logger": "", "data": 1}), LogLevel::Debug, "1", Some(""));
    check(json!({"level": "new", "logger": 7}), LogLevel::Info, "null", None);
}

// MCP.md: A10
#[test]
fn what_was_subscribed_to_in_the_newer_era_is_listened_to_on_the_next_connection() {
    let mut client = modern(Features::default());
    client.subscribe("file:///a", true, 0);
    client.subscribe("file:///b", true, 0);
    client.subscribe("file:///b", false, 0);
    let call = client.request(of("tools/call"), 0);
    actions(&mut client);
    client.lost("it ended");
    // What was in flight is lost, and its caller is told.
    assert_eq!(finished(&mut client), [(call, Err(Error::Lost("it ended".into())))]);
    assert_eq!(client.deadline(), None);
    client.connect(0, 100);
    let discover = written(&mut client).remove(0);
    receive(&mut client, discovered(discover["id"].as_u64().unwrap()));
    let sent = written(&mut client);
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0]["method"], "subscriptions/listen");
    let wanted = json!({"resourceSubscriptions": ["file:///a"]});
    assert_eq!(sent[0]["params"]["notifications"], wanted);
}

/// A client of a server of the newer era that says it tells when its tools change, and the id of the
/// stream that is to say so.
fn listening() -> (Client, u64) {
    let mut client = modern_with(Settings::default());
    client.connect(0, 100);
    actions(&mut client);
    let mut introduction = discovered(1);
    introduction["result"]["capabilities"]["tools"] = json!({"listChanged": true});
    receive(&mut client, introduction);
    let sent = written(&mut client);
    assert_eq!(sent[0]["params"]["notifications"], json!({"toolsListChanged": true}));
    (client, sent[0]["id"].as_u64().unwrap())
}

/// News of the stream of this request.
fn news(method: &str, stream: Value, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": stream});
    json!({"method": format!("notifications/{method}"), "params": params})
}

// MCP.md: E10
#[test]
fn a_server_that_will_not_tell_what_it_promised_is_not_asked_again() {
    for (tells, logged) in [
        (json!({"toolsListChanged": true}), 0),
        (json!({"toolsListChanged": false}), 1),
        (json!({}), 1),
    ] {
        let (mut client, stream) = listening();
        let params = json!({"notifications": tells});
        receive(&mut client, news("subscriptions/acknowledged", json!(stream), params));
        let all = actions(&mut client);
        assert_eq!(all.len(), logged, "{tells}: {all:?}");
        assert!(all.iter().all(|action| matches!(action, Action::Log { .. })), "{all:?}");
        assert_eq!(client.deadline(), None);
        client.tick(100_000);
        assert!(actions(&mut client).is_empty());
    }
}

// MCP.md: E10
#[test]
fn news_of_a_stream_that_nobody_listens_to_are_none() {
    let (mut client, first) = listening();
    let told = |client: &mut Client, stream: Value| {
        receive(client, news("tools/list_changed", stream, json!({})));
        client.tick(200);
        actions(client).contains(&Action::ToolsChanged)
    };
    for (stream, is_news) in [
        (json!(first), true),
        (json!(first as f64), true),
        (json!(first.to_string()), true),
        (json!(first + 1), false),
        (json!(first - 1), false),
        (json!("99"), false),
        // Others have names of their own for them.
        (json!("of-the-server"), true),
        (json!(null), true),
    ] {
        assert_eq!(told(&mut client, stream.clone()), is_news, "{stream}");
    }
    let told_of = |client: &mut Client, stream: u64| {
        let uri = json!({"uri": "file:///a"});
        receive(client, news("resources/updated", json!(stream), uri));
        actions(client).contains(&Action::ResourceUpdated("file:///a".into()))
    };
    assert!(!told_of(&mut client, first + 1));
    // One that takes its place: until the server has heard of it, the former has news.
    client.subscribe("file:///a", true, 0);
    let second = written(&mut client).pop().unwrap()["id"].as_u64().unwrap();
    assert!(told(&mut client, json!(first)) && told_of(&mut client, second));
    let heard = json!({"notifications": {}});
    receive(&mut client, news("subscriptions/acknowledged", json!(first), heard.clone()));
    assert!(actions(&mut client).is_empty() && told(&mut client, json!(first)));
    receive(&mut client, news("subscriptions/acknowledged", json!(second), heard));
    actions(&mut client);
    assert!(!told(&mut client, json!(first)) && told(&mut client, json!(second)));
    // Nor has one that the server has ended.
    receive(&mut client, json!({"id": second, "result": {}}));
    assert!(!told(&mut client, json!(second)));
}
