//! What servers ask for.

use super::connect::discovered;
use super::*;
use crate::settings::{Features, HandshakeMode, Root};

// MCP.md: B5, B6, D6
#[test]
fn a_ping_is_answered_and_other_requests_are_declined() {
    let mut client = connected();
    receive(&mut client, json!({"id": "p1", "method": "ping"}));
    receive(&mut client, json!({"id": 5, "method": "roots/list", "params": {}}));
    receive(&mut client, json!({"method": "notifications/unheard-of"}));
    let sent = written(&mut client);
    assert_eq!(sent[0], json!({"jsonrpc": "2.0", "id": "p1", "result": {}}));
    assert_eq!(sent[1]["error"]["code"], -32601);
    assert_eq!(sent.len(), 2);
}

const ALL: Features = Features { forms: true, pages: true, sampling: true, roots: false };

/// A client of a server of the older era, which has all that can be asked for.
fn legacy(features: Features) -> Client {
    let roots = vec![Root { uri: "file:///work".into(), name: Some("work".into()) }];
    let mut client = with_settings(Settings { features, roots, ..Settings::default() });
    client.connect(0, 100);
    receive(
        &mut client,
        json!({"id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}}),
    );
    actions(&mut client);
    client
}

/// A client of a server of the newer era. The next request has the id 2.
pub(super) fn modern(features: Features) -> Client {
    let mut client = modern_with(Settings { features, ..Settings::default() });
    client.connect(0, 100);
    receive(&mut client, discovered(1));
    actions(&mut client);
    client
}

/// One that is not connected yet.
pub(super) fn modern_with(settings: Settings) -> Client {
    with_settings(Settings { protocol: HandshakeMode::Modern, ..settings })
}

fn asks(client: &mut Client) -> Vec<(AskId, AskKind, Value)> {
    let asks = actions(client).into_iter().filter_map(|action| match action {
        Action::Ask { ask, kind, params, .. } => {
            Some((ask, kind, serde_json::from_str(&params).expect("it is JSON")))
        }
        _ => None,
    });
    asks.collect()
}

// MCP.md: G2, G3, G4
#[test]
fn what_a_server_asks_is_the_drivers_to_answer() {
    let mut client = legacy(ALL);
    receive(
        &mut client,
        json!({"id": "e", "method": "elicitation/create", "params": {"message": "who?"}}),
    );
    receive(
        &mut client,
        json!({"id": 9, "method": "sampling/createMessage", "params": {"maxTokens": 5}}),
    );
    receive(&mut client, json!({"id": 10, "method": "roots/list"}));
    let all = actions(&mut client);
    let [
        Action::Ask { ask: form, kind: AskKind::Elicitation, .. },
        Action::Ask { ask: sample, kind: AskKind::Sampling, .. },
        Action::Write { line, .. },
    ] = &all[..]
    else {
        panic!("{all:?}")
    };
    let roots: Value = serde_json::from_slice(line).unwrap();
    assert_eq!(roots["result"], json!({"roots": [{"uri": "file:///work", "name": "work"}]}));
    client.answer(*sample, Err((-1, "the user does not want it".into())), 0);
    client.answer(*form, Ok(r#"{"action":"decline"}"#.into()), 0);
    // What was answered is over.
    client.answer(*form, Ok("{}".into()), 0);
    let sent = written(&mut client);
    assert_eq!(sent.len(), 2);
    assert_eq!((&sent[0]["id"], &sent[0]["error"]["code"]), (&json!(9), &json!(-1)));
    assert_eq!((&sent[1]["id"], &sent[1]["result"]["action"]), (&json!("e"), &json!("decline")));
}

// MCP.md: G3, G4
#[test]
fn what_was_not_declared_is_not_given() {
    let mut client = legacy(Features::default());
    receive(&mut client, json!({"id": 1, "method": "elicitation/create", "params": {}}));
    receive(&mut client, json!({"id": 2, "method": "sampling/createMessage", "params": {}}));
    let sent = written(&mut client);
    assert_eq!(sent[0]["result"], json!({"action": "cancel"}));
    assert_eq!(sent[1]["error"]["code"], -32601);
    let mut client = legacy(Features { forms: true, ..Features::default() });
    let url = json!({"id": 3, "method": "elicitation/create", "params": {"mode": "url"}});
    receive(&mut client, url);
    assert_eq!(written(&mut client)[0]["error"]["code"], -32602);
}

#[test]
fn what_the_server_takes_back_is_not_answered() {
    let mut client = legacy(ALL);
    receive(&mut client, json!({"id": "e", "method": "elicitation/create", "params": {}}));
    let ask = asks(&mut client)[0].0;
    receive(
        &mut client,
        json!({"method": "notifications/cancelled", "params": {"requestId": "e"}}),
    );
    assert_eq!(actions(&mut client), [Action::Withdraw(ask)]);
    client.answer(ask, Ok("{}".into()), 0);
    assert!(actions(&mut client).is_empty());
}

#[test]
fn a_server_cannot_ask_for_ever_more_at_a_time() {
    let mut client = legacy(ALL);
    for id in 0..20 {
        receive(&mut client, json!({"id": id, "method": "elicitation/create", "params": {}}));
    }
    let all = actions(&mut client);
    let asked = all.iter().filter(|action| matches!(action, Action::Ask { .. })).count();
    assert_eq!((asked, all.len()), (16, 20));
    client.lost("over");
    let withdrawn = actions(&mut client);
    assert_eq!(withdrawn.len(), 16);
}

fn call(client: &mut Client) -> OperationId {
    let request = Request {
        params: Members::new().with("name", "t").with("arguments", json!({})),
        meta: Members::new().with("traceparent", "x"),
        subject: Some("t"),
        ..of("tools/call")
    };
    client.request(request, 0)
}

fn needs(id: u64, requests: Value, state: Option<&str>) -> Value {
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    json!({"id": id, "result": result})
}

// MCP.md: C8, E13
#[test]
fn a_call_that_needs_input_is_sent_again_with_it() {
    let mut client = modern(ALL);
    let operation = call(&mut client);
    let first = written(&mut client).remove(0);
    let requests = json!({
        "who": {"method": "elicitation/create", "params": {"message": "who?"}},
        "say": {"method": "sampling/createMessage", "params": {}},
    });
    receive(&mut client, needs(2, requests, Some("s=\u{e4}\\n")));
    let asked = asks(&mut client);
    assert_eq!(asked.len(), 2);
    for (ask, kind, _) in asked {
        assert!(written(&mut client).is_empty());
        let answer = match kind {
            AskKind::Elicitation => json!({"action": "accept", "content": {"name": "n"}}),
            AskKind::Sampling => json!({"role": "assistant"}),
            AskKind::Roots => unreachable!("nobody asks for roots here"),
        };
        client.answer(ask, Ok(answer.to_string()), 0);
    }
    let again = written(&mut client).remove(0);
    assert_ne!(again["id"], first["id"]);
    assert_eq!(again["params"]["requestState"], "s=\u{e4}\\n");
    assert_eq!(again["params"]["inputResponses"]["who"]["content"]["name"], "n");
    assert_eq!(again["params"]["inputResponses"]["say"], json!({"role": "assistant"}));
    assert_eq!(again["params"]["name"], "t");
    assert_eq!(again["params"]["_meta"], first["params"]["_meta"]);
    let id = again["id"].as_u64().unwrap();
    assert_eq!(client.head(id), Some(("tools/call", Some("t"))));
    receive(&mut client, json!({"id": id, "result": {"resultType": "complete", "content": []}}));
    assert!(
        matches!(&finished(&mut client)[..], [(done, Ok(Outcome::Result(_)))] if *done == operation)
    );
}

/// However long a server says that an answer holds, nothing of it is kept, and least of all what was
/// answered for one call.
// MCP.md: E14
#[test]
fn nothing_is_kept_of_answers_and_none_is_asked_for_by_itself() {
    let mut client = modern(ALL);
    for id in [2, 3] {
        client.list_tools(0, None);
        assert_eq!(written(&mut client)[0]["method"], "tools/list");
        let fresh = json!({"resultType": "complete", "tools": [], "ttlMs": 60_000});
        receive(&mut client, json!({"id": id, "result": fresh}));
        actions(&mut client);
    }
    // Once it is stale, neither.
    assert_eq!(client.deadline(), None);
    for _ in 0..2 {
        call(&mut client);
        let first = written(&mut client).remove(0);
        assert!(first["params"].get("inputResponses").is_none());
        let who = json!({"who": {"method": "elicitation/create", "params": {}}});
        receive(&mut client, needs(first["id"].as_u64().unwrap(), who, None));
        let ask = asks(&mut client)[0].0;
        client.answer(ask, Ok(r#"{"action":"accept"}"#.into()), 0);
        let again = written(&mut client).remove(0);
        let fresh = json!({"resultType": "complete", "content": [], "ttlMs": 60_000});
        receive(&mut client, json!({"id": again["id"], "result": fresh}));
        assert!(finished(&mut client)[0].1.is_ok());
    }
    assert_eq!(client.deadline(), None);
}

// MCP.md: E13
#[test]
fn a_call_with_nothing_but_a_state_is_sent_again_at_once_and_not_for_ever() {
    let mut client = modern(ALL);
    let operation = call(&mut client);
    let mut sent = 0;
    loop {
        let written = written(&mut client);
        let Some(message) = written.first() else { break };
        sent += 1;
        let id = message["id"].as_u64().unwrap();
        assert!(message["params"].get("inputResponses").is_none());
        client.receive(needs(id, json!({}), Some("s")).to_string().into_bytes(), 0);
        if let Some((done, result)) = client.actions.iter().find_map(|action| match action {
            Action::Finish(done, result) => Some((*done, result.is_err())),
            _ => None,
        }) {
            assert_eq!((done, result), (operation, true));
            break;
        }
    }
    assert_eq!(sent, 9);
}

#[test]
fn a_call_that_needs_what_nobody_has_fails_and_says_so() {
    let mut client = modern(Features::default());
    call(&mut client);
    receive(&mut client, needs(2, json!({"s": {"method": "sampling/createMessage"}}), None));
    assert!(matches!(&finished(&mut client)[..], [(_, Err(Error::Needs(_)))]));
}

#[test]
fn a_call_that_waits_for_input_can_be_given_up() {
    let requests =
        json!({"a": {"method": "elicitation/create"}, "b": {"method": "elicitation/create"}});
    let waiting = || {
        let mut client = modern(ALL);
        let operation = call(&mut client);
        receive(&mut client, needs(2, requests.clone(), None));
        let asks = asks(&mut client);
        (client, operation, asks)
    };
    let (mut client, operation, asks) = waiting();
    client.cancel(operation);
    let all = actions(&mut client);
    assert_eq!(all.len(), 4, "{all:?}");
    assert_eq!(all[3], Action::Finish(operation, Err(Error::Cancelled)));
    client.answer(asks[0].0, Ok("{}".into()), 0);
    assert!(actions(&mut client).is_empty());
    let (mut client, operation, _) = waiting();
    client.tick(100);
    assert_eq!(finished(&mut client), []);
    client.cancel(operation);
    assert_eq!(finished(&mut client), [(operation, Err(Error::Cancelled))]);
    let (mut client, operation, asks) = waiting();
    client.answer(asks[0].0, Err((-1, "no".into())), 0);
    assert_eq!(finished(&mut client), [(operation, Err(Error::Needs("no".into())))]);
}

// MCP.md: C13
#[test]
fn results_of_the_newer_era_are_whole_or_unknown() {
    for (result, good) in [
        (json!({"content": []}), true),
        (json!({"resultType": "complete"}), true),
        (json!({"resultType": "task"}), false),
        (json!({"resultType": 5}), false),
        (json!({"resultType": null}), true),
        (json!([1]), true),
    ] {
        let mut client = modern(Features::default());
        call(&mut client);
        receive(&mut client, json!({"id": 2, "result": result}));
        assert_eq!(finished(&mut client)[0].1.is_ok(), good, "{result}");
    }
}

// MCP.md: A3
#[test]
fn a_server_of_the_newer_era_gets_no_responses() {
    let mut client = modern(ALL);
    for method in ["ping", "roots/list", "elicitation/create", "x"] {
        receive(&mut client, json!({"id": 1, "method": method, "params": {}}));
    }
    assert!(written(&mut client).is_empty());
}

#[test]
fn no_request_runs_out_of_time_while_somebody_is_asked() {
    let mut client = legacy(ALL);
    let call = plain(&mut client, 10);
    actions(&mut client);
    for id in ["one", "two"] {
        client.receive(
            json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {}})
                .to_string()
                .into_bytes(),
            60,
        );
    }
    let asked = asks(&mut client);
    client.tick(5_000);
    assert_eq!(client.deadline(), None);
    client.answer(asked[0].0, Ok("{}".into()), 6_000);
    client.tick(7_000);
    assert!(!actions(&mut client).iter().any(|action| matches!(action, Action::Finish(..))));
    client.answer(asked[1].0, Ok("{}".into()), 10_060);
    // It had 50 left.
    assert_eq!(client.deadline(), Some(10_110));
    client.tick(10_110);
    assert!(actions(&mut client).contains(&Action::Finish(call, Err(Error::Timeout))));
}

#[test]
fn a_modern_server_learns_with_each_request_what_it_may_ask_for() {
    let mut client = modern(Features { roots: true, ..ALL });
    for (features, declared) in [
        (None, json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})),
        (Some(Features::default()), json!({})),
        (Some(Features { roots: true, ..Features::default() }), json!({"roots": {}})),
    ] {
        client.request(Request { features, ..of("tools/call") }, 0);
        let sent = written(&mut client).remove(0);
        let mut found =
            sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone();
        found.as_object_mut().unwrap().remove("extensions");
        assert_eq!(found, declared);
    }
}

#[test]
fn a_modern_server_asks_for_the_roots_of_a_client() {
    let ask = json!({"roots": {"method": "roots/list", "params": {}}});
    let features = Features { roots: true, ..Features::default() };
    let mut client = modern(features);
    call(&mut client);
    let id = written(&mut client).remove(0)["id"].as_u64().unwrap();
    receive(&mut client, needs(id, ask.clone(), None));
    let (question, kind, _) = asks(&mut client).remove(0);
    assert_eq!(kind, AskKind::Roots);
    client.answer(question, Ok(json!({"roots": []}).to_string()), 0);
    let again = written(&mut client).remove(0);
    assert_eq!(again["params"]["inputResponses"]["roots"], json!({"roots": []}));
    // What its entry names goes before.
    let roots = vec![Root { uri: "file:///a".into(), name: None }];
    let mut client = modern_with(Settings { features, roots, ..Settings::default() });
    client.connect(0, 100);
    receive(&mut client, discovered(1));
    actions(&mut client);
    call(&mut client);
    let id = written(&mut client).remove(0)["id"].as_u64().unwrap();
    receive(&mut client, needs(id, ask, None));
    let again = written(&mut client).remove(0);
    assert_eq!(again["params"]["inputResponses"]["roots"]["roots"][0]["uri"], "file:///a");
}
