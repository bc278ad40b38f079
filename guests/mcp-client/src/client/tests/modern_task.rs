//! Calls that a server of the newer era makes tasks of.

use super::server_requests::modern;
use super::*;
use crate::Features;

const ALL: Features = Features { forms: true, pages: true, sampling: true, roots: false };

/// A call that became the task `x`, to be asked about after 200 milliseconds.
fn made(features: Features) -> (Client, OperationId) {
    let mut client = modern(features);
    let request = Request {
        params: Members::new().with("name", "t"),
        subject: Some("t"),
        ..of("tools/call")
    };
    let operation = client.request(Request { timeout: Some(10_000), ..request }, 0);
    let sent = written(&mut client).remove(0);
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let extensions = &sent["params"]["_meta"][capabilities]["extensions"];
    assert_eq!(*extensions, json!({"io.modelcontextprotocol/tasks": {}}));
    let task = json!({
        "resultType": "task", "taskId": "x", "status": "working", "ttlMs": null, "pollIntervalMs": 200,
    });
    receive(&mut client, json!({"id": 2, "result": task}));
    assert!(actions(&mut client).is_empty());
    assert_eq!(client.deadline(), Some(200));
    (client, operation)
}

/// What the client writes when it asks about the task. Gives the id of the request.
fn asked_about(client: &mut Client) -> u64 {
    client.tick(client.deadline().expect("it waits for something"));
    let sent = written(client);
    assert_eq!(sent.len(), 1, "{sent:?}");
    let id = sent[0]["id"].as_u64().unwrap();
    assert_eq!(client.head(id), Some(("tasks/get", Some("x"))));
    assert_eq!(sent[0]["params"]["taskId"], "x");
    id
}

/// The server says how the task stands.
fn stands(client: &mut Client, id: u64, more: Value) {
    let mut task = json!({"resultType": "complete", "taskId": "x"});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.receive(json!({"id": id, "result": task}).to_string().into_bytes(), client.now);
}

fn cancels(sent: &[Value]) -> bool {
    let is_cancel =
        |sent: &Value| sent["method"] == "tasks/cancel" && sent["params"]["taskId"] == "x";
    sent.iter().filter(|sent| is_cancel(sent)).count() == 1
        && sent.iter().all(|sent| sent["method"] != "notifications/cancelled")
}

// MCP.md: H
#[test]
fn a_task_is_asked_about_until_it_is_done() {
    let (mut client, operation) = made(Features::default());
    let id = asked_about(&mut client);
    stands(&mut client, id, json!({"status": "working", "pollIntervalMs": 0}));
    // However often it wants to be asked, there is a limit.
    assert_eq!(client.deadline(), Some(250));
    let id = asked_about(&mut client);
    let result = json!({"content": [], "isError": true});
    stands(&mut client, id, json!({"status": "completed", "result": result}));
    let expected = Outcome::Result(JsonSlice::from(&*result.to_string()));
    assert_eq!(finished(&mut client), [(operation, Ok(expected))]);
    assert_eq!(client.deadline(), None);
}

#[test]
fn a_task_that_comes_to_nothing_says_why() {
    let error = |more: Value| {
        let (mut client, _) = made(Features::default());
        let id = asked_about(&mut client);
        stands(&mut client, id, more);
        finished(&mut client).remove(0).1.unwrap_err()
    };
    let failed = json!({"status": "failed", "error": {"code": 7, "message": "no luck"}});
    assert_eq!(error(failed), Error::Rpc { code: 7, message: "no luck".into(), data: None });
    for (more, part) in [
        (json!({"status": "cancelled", "statusMessage": "shut"}), "has cancelled the task: shut"),
        (json!({"status": "completed"}), "invalid: it is \"completed\""),
        (json!({"status": "odd"}), "invalid: it is \"odd\""),
        (json!({"status": 3}), "invalid"),
    ] {
        let error = error(more);
        assert!(matches!(&error, Error::Protocol(words) if words.contains(part)), "{error:?}");
    }
}

#[test]
fn a_task_that_the_server_has_lost_is_no_fault_of_the_callers() {
    let (mut client, operation) = made(Features::default());
    let id = asked_about(&mut client);
    receive(&mut client, json!({"id": id, "error": {"code": -32602, "message": "gone"}}));
    let lost = Error::Protocol("the server has lost its task: gone".into());
    assert_eq!(finished(&mut client), [(operation, Err(lost))]);
}

// MCP.md: H
#[test]
fn what_a_task_needs_is_asked_once_and_sent() {
    let (mut client, _) = made(ALL);
    let needs = json!({"status": "input_required", "inputRequests": {
        "who": {"method": "elicitation/create", "params": {"message": "who?"}},
    }});
    let id = asked_about(&mut client);
    stands(&mut client, id, needs.clone());
    let asks = actions(&mut client);
    let [Action::Ask { ask, kind: AskKind::Elicitation, .. }] = asks[..] else {
        panic!("{asks:?}")
    };
    // It says so until it has the answer.
    let id = asked_about(&mut client);
    stands(&mut client, id, needs);
    assert!(actions(&mut client).is_empty());
    client.answer(ask, Ok(r#"{"action":"accept"}"#.into()), client.now);
    let sent = written(&mut client).remove(0);
    assert_eq!(sent["method"], "tasks/update");
    assert_eq!(sent["params"]["taskId"], "x");
    assert_eq!(sent["params"]["inputResponses"], json!({"who": {"action": "accept"}}));
    assert_eq!(client.head(sent["id"].as_u64().unwrap()), Some(("tasks/update", Some("x"))));
}

#[test]
fn a_task_that_needs_what_nobody_has_is_cancelled() {
    let (mut client, _) = made(Features::default());
    let id = asked_about(&mut client);
    let needs = json!({"status": "input_required", "inputRequests": {
        "say": {"method": "sampling/createMessage"},
    }});
    stands(&mut client, id, needs);
    let all = actions(&mut client);
    assert!(matches!(&all[..], [Action::Write { .. }, Action::Finish(_, Err(Error::Needs(_)))]));
    // So is one that needs what somebody does not want to give.
    let (mut client, operation) = made(ALL);
    let id = asked_about(&mut client);
    let needs = json!({"status": "input_required", "inputRequests": {
        "a": {"method": "elicitation/create"}, "b": {"method": "elicitation/create"},
    }});
    stands(&mut client, id, needs);
    let asks = actions(&mut client);
    let [Action::Ask { ask, .. }, Action::Ask { ask: other, .. }] = asks[..] else {
        panic!("{asks:?}")
    };
    client.answer(ask, Err((-1, "no".into())), client.now);
    let all = actions(&mut client);
    assert_eq!(all[0], Action::Withdraw(other));
    assert_eq!(all[2], Action::Finish(operation, Err(Error::Needs("no".into()))));
    assert_eq!(all.len(), 3);
}

// MCP.md: H
#[test]
fn a_task_that_nobody_waits_for_is_cancelled_by_its_own_method() {
    // While it is waited for, and while it is asked about.
    for asked in [false, true] {
        let (mut client, operation) = made(Features::default());
        if asked {
            asked_about(&mut client);
        }
        client.cancel(operation);
        let sent = written(&mut client);
        assert!(cancels(&sent), "{sent:?}");
        let (mut client, operation) = made(Features::default());
        if asked {
            asked_about(&mut client);
        }
        client.tick(10_000);
        let all = actions(&mut client);
        assert!(all.contains(&Action::Finish(operation, Err(Error::Timeout))), "{all:?}");
    }
}

#[test]
fn a_server_that_cannot_be_reached_for_a_while_still_has_the_task() {
    let (mut client, operation) = made(Features::default());
    let id = asked_about(&mut client);
    let busy = Error::Unavailable { message: "busy".into(), retry_after: Some(700) };
    client.failed(id, busy);
    assert_eq!(client.deadline(), Some(900));
    let id = asked_about(&mut client);
    client.failed(id, Error::Protocol("it is broken".into()));
    let broken = Error::Protocol("it is broken".into());
    assert_eq!(finished(&mut client), [(operation, Err(broken))]);
}

#[test]
fn nothing_but_a_call_is_made_a_task_of() {
    let mut client = modern(Features::default());
    client.request(of("prompts/get"), 0);
    receive(&mut client, json!({"id": 2, "result": {"resultType": "task", "taskId": "x"}}));
    assert!(matches!(&finished(&mut client)[..], [(_, Err(Error::Protocol(_)))]));
}
