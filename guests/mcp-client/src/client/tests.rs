//! Conversations with servers, line by line.

mod connect;
mod legacy_task;
mod modern_task;
mod notifications;
mod server_requests;

use super::*;
use serde_json::{Value, json};

fn client() -> Client {
    with_settings(Settings::default())
}

fn with_settings(settings: Settings) -> Client {
    let name = "test".into();
    Client::new(Settings { name, version: "1".into(), timeout: 100, ..settings })
}

fn actions(client: &mut Client) -> Vec<Action> {
    std::iter::from_fn(|| client.action()).collect()
}

/// What the client wrote, as JSON.
fn written(client: &mut Client) -> Vec<Value> {
    let lines = actions(client).into_iter().filter_map(|action| match action {
        Action::Write { line, .. } => Some(serde_json::from_slice(&line).expect("it writes JSON")),
        _ => None,
    });
    lines.collect()
}

/// How operations ended.
fn finished(client: &mut Client) -> Vec<(OperationId, Result<Outcome, Error>)> {
    let ends = actions(client).into_iter().filter_map(|action| match action {
        Action::Finish(operation, result) => Some((operation, result)),
        _ => None,
    });
    ends.collect()
}

fn receive(client: &mut Client, message: Value) {
    client.receive(message.to_string().into_bytes(), 0);
}

/// A client whose server is ready. The next request has the id 2.
fn connected() -> Client {
    connected_to(json!({"tools": {}}))
}

/// The same, with a server that declares this.
fn connected_to(capabilities: Value) -> Client {
    let mut client = client();
    client.connect(0, 100);
    receive(
        &mut client,
        json!({"id": 1, "result": {
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "s", "version": "2"},
        }}),
    );
    actions(&mut client);
    client
}

fn plain(client: &mut Client, now: u64) -> OperationId {
    client.request(of("m"), now)
}

/// A request without anything in it.
fn of(method: &'static str) -> Request<'static> {
    let (params, meta) = (Members::new(), Members::new());
    Request {
        method,
        params,
        meta,
        subject: None,
        timeout: None,
        progress: false,
        task: false,
        features: None,
    }
}

// MCP.md: B2
#[test]
fn answers_find_their_requests_in_any_order() {
    let mut client = connected();
    let (a, b) = (plain(&mut client, 0), plain(&mut client, 0));
    actions(&mut client);
    receive(&mut client, json!({"id": 3, "result": "b"}));
    receive(&mut client, json!({"id": 2.0, "result": "a"}));
    let done = finished(&mut client);
    assert_eq!(done[0], (b, Ok(Outcome::Result("\"b\"".into()))));
    assert_eq!(done[1], (a, Ok(Outcome::Result("\"a\"".into()))));
}

// MCP.md: B2
#[test]
fn an_answer_to_nothing_is_ignored() {
    let mut client = connected();
    let operation = plain(&mut client, 0);
    actions(&mut client);
    receive(&mut client, json!({"id": 99, "result": {}}));
    assert!(finished(&mut client).is_empty());
    receive(&mut client, json!({"id": 2, "result": 1}));
    receive(&mut client, json!({"id": 2, "result": 2}));
    assert_eq!(
        finished(&mut client).into_iter().map(|(id, _)| id).collect::<Vec<_>>(),
        [operation]
    );
}

// MCP.md: B4
#[test]
fn an_error_without_an_id_is_the_only_requests_own() {
    let mut client = connected();
    plain(&mut client, 0);
    actions(&mut client);
    receive(&mut client, json!({"id": null, "error": {"code": -32700, "message": "what?"}}));
    assert!(matches!(&finished(&mut client)[0].1, Err(Error::Rpc { code: -32700, .. })));
    plain(&mut client, 0);
    plain(&mut client, 0);
    actions(&mut client);
    receive(&mut client, json!({"id": null, "error": {"code": 1, "message": ""}}));
    assert!(finished(&mut client).is_empty());
}

// MCP.md: D1
#[test]
fn what_is_overdue_is_given_up_and_the_server_told() {
    let mut client = connected();
    let operation = plain(&mut client, 10);
    actions(&mut client);
    assert_eq!(client.deadline(), Some(110));
    client.tick(109);
    assert!(actions(&mut client).is_empty());
    client.tick(110);
    let actions = actions(&mut client);
    assert!(
        matches!(&actions[0], Action::Write { line, .. } if line.windows(23).any(|w| w == b"notifications/cancelled"))
    );
    assert_eq!(actions[1], Action::Abandon(2));
    assert_eq!(actions[2], Action::Finish(operation, Err(Error::Timeout)));
    assert_eq!(client.deadline(), None);
}

#[test]
fn what_was_answered_in_time_is_not_overdue_and_the_rest_is_waited_for() {
    let mut client = connected();
    let operations = [0, 20, 10].map(|now| plain(&mut client, now));
    receive(&mut client, json!({"id": 2, "result": {}}));
    actions(&mut client);
    assert!(client.deadline().is_some_and(|due| due <= 110));
    client.tick(100);
    assert!(actions(&mut client).is_empty());
    assert_eq!(client.deadline(), Some(110));
    client.tick(200);
    // The one whose time is over first ends first.
    let late = [operations[2], operations[1]].map(|operation| (operation, Err(Error::Timeout)));
    assert_eq!(finished(&mut client), late);
    assert_eq!(client.deadline(), None);
}

// MCP.md: D3
#[test]
fn a_cancelled_operation_ends_once_and_a_late_answer_is_ignored() {
    let mut client = connected();
    let operation = plain(&mut client, 0);
    actions(&mut client);
    client.cancel(operation);
    client.cancel(operation);
    let actions = actions(&mut client);
    assert_eq!(actions.len(), 3);
    assert_eq!(actions[2], Action::Finish(operation, Err(Error::Cancelled)));
    receive(&mut client, json!({"id": 2, "result": {}}));
    assert!(finished(&mut client).is_empty());
}

// MCP.md: A10
#[test]
fn a_lost_server_fails_all_that_is_in_flight_at_once() {
    let mut client = connected();
    let (a, b) = (plain(&mut client, 0), plain(&mut client, 0));
    actions(&mut client);
    client.lost("it exited with 3");
    let lost = || Err(Error::Lost("it exited with 3".into()));
    assert_eq!(finished(&mut client), [(a, lost()), (b, lost())]);
    assert_eq!(client.deadline(), None);
    let after = plain(&mut client, 0);
    assert!(matches!(&finished(&mut client)[..], [(id, Err(Error::Lost(_)))] if *id == after));
}

// MCP.md: E1
#[test]
fn pages_are_followed_to_the_end_and_an_empty_cursor_is_one() {
    let mut client = connected();
    let operation = client.list_tools(0, None);
    assert!(written(&mut client)[0].get("params").is_none());
    receive(&mut client, json!({"id": 2, "result": {"tools": [{"name": "a"}], "nextCursor": ""}}));
    assert_eq!(written(&mut client)[0]["params"]["cursor"], "");
    receive(&mut client, json!({"id": 3, "result": {"tools": [{"name": "b"}]}}));
    let items = Outcome::Items(vec![r#"{"name":"a"}"#.into(), r#"{"name":"b"}"#.into()]);
    assert_eq!(finished(&mut client), [(operation, Ok(items))]);
}

/// However short a call may take: a server lists its tools while it starts.
#[test]
fn all_pages_together_have_the_time_that_the_listing_was_given() {
    let mut client = connected();
    let operation = client.list_tools(0, Some(500));
    client.tick(400);
    assert_eq!(finished(&mut client), []);
    let page = json!({"id": 2, "result": {"tools": [], "nextCursor": "x"}});
    client.receive(page.to_string().into_bytes(), 400);
    client.tick(499);
    assert_eq!(finished(&mut client), []);
    client.tick(500);
    assert_eq!(finished(&mut client), [(operation, Err(Error::Timeout))]);
}

// MCP.md: E1
#[test]
fn pages_that_go_round_in_a_circle_end() {
    let mut client = connected();
    client.list_tools(0, None);
    for id in 2..4 {
        receive(&mut client, json!({"id": id, "result": {"tools": [id], "nextCursor": "x"}}));
    }
    assert!(matches!(&finished(&mut client)[0].1, Ok(Outcome::Items(items)) if items.len() == 2));
}

// MCP.md: C7
#[test]
fn a_method_that_is_declared_but_missing_lists_nothing() {
    let mut client = connected();
    client.list_tools(0, None);
    receive(&mut client, json!({"id": 2, "error": {"code": -32601, "message": "no"}}));
    assert_eq!(finished(&mut client)[0].1, Ok(Outcome::Items(Vec::new())));
}

#[test]
fn a_list_that_is_null_is_empty() {
    let mut client = connected();
    client.list_tools(0, None);
    receive(&mut client, json!({"id": 2, "result": {"tools": null}}));
    assert_eq!(finished(&mut client)[0].1, Ok(Outcome::Items(Vec::new())));
}

// MCP.md: A7
#[test]
fn a_line_that_is_too_long_costs_its_request_only() {
    let mut client = connected();
    let (a, b) = (plain(&mut client, 0), plain(&mut client, 0));
    actions(&mut client);
    client.oversized(br#"{"jsonrpc":"2.0","id": 3,"result":"#, 99);
    assert!(matches!(&finished(&mut client)[..], [(id, Err(Error::Protocol(_)))] if *id == b));
    receive(&mut client, json!({"id": 2, "result": {}}));
    assert_eq!(finished(&mut client)[0].0, a);
}

// MCP.md: A5
#[test]
fn noise_is_counted_and_told_once() {
    let mut client = connected();
    for _ in 0..3 {
        client.receive(b"Server listening on stdio".to_vec(), 0);
    }
    assert_eq!(client.noise(), 3);
    assert_eq!(actions(&mut client).len(), 1);
}

#[test]
fn noise_before_the_first_word_counts_and_that_of_a_former_server_does_not() {
    let mut client = connected();
    client.receive(b"the former".to_vec(), 0);
    client.lost("it is gone");
    client.starting();
    client.receive(b"Server listening on stdio".to_vec(), 0);
    client.connect(0, 100);
    assert_eq!(client.noise(), 1);
}

// MCP.md: A1
#[test]
fn what_is_written_is_one_line() {
    let mut client = connected();
    let mut params = Members::new();
    params.push("a", Json::parse("{\r\n}\n".into()).expect("it is JSON"));
    client.request(Request { params, ..of("m") }, 0);
    let Some(Action::Write { line, .. }) = client.action() else { panic!() };
    assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
}
