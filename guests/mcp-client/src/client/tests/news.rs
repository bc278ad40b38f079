//! What servers tell by themselves.

use super::asked::modern;
use super::*;
use crate::settings::Features;

#[test]
fn progress_belongs_to_requests_in_flight() {
    let mut client = connected();
    let request = Request { params: r#""a":1"#, meta: r#""b":2"#, progress: true, ..of("m") };
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
    client.await_lists(Awaited { resources: true, prompts: false }, 0);
    assert_eq!(tell(&mut client, "resources", 0), [Action::ToolsChanged]);
    assert!(tell(&mut client, "prompts", 300).is_empty());
    client.await_lists(Awaited { resources: false, prompts: true }, 600);
    assert!(tell(&mut client, "resources", 600).is_empty());
    assert_eq!(tell(&mut client, "prompts", 900), [Action::ToolsChanged]);
}

#[test]
fn resources_are_subscribed_to_in_the_older_era_one_by_one() {
    let mut client = connected();
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
