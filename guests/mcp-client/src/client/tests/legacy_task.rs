//! Tools that are done as tasks.

use super::*;

fn begun() -> (Client, OperationId) {
    let mut client = connected();
    let request =
        Request { params: Members::new().with("name", "t"), task: true, ..of("tools/call") };
    let operation = client.request(request, 0);
    assert_eq!(written(&mut client)[0]["params"], json!({"name": "t", "task": {}}));
    // Its status may be told before there is a task.
    receive(
        &mut client,
        json!({"method": "notifications/tasks/status", "params": {"taskId": "x"}}),
    );
    receive(
        &mut client,
        json!({"id": 2, "result": {"task": {"taskId": "x", "status": "working"}}}),
    );
    (client, operation)
}

// MCP.md: E11, H
#[test]
fn a_task_is_begun_and_its_result_asked_for() {
    let (mut client, operation) = begun();
    let sent = written(&mut client);
    assert_eq!(sent[0]["method"], "tasks/result");
    assert_eq!(sent[0]["params"], json!({"taskId": "x"}));
    receive(&mut client, json!({"id": 3, "result": {"content": []}}));
    assert_eq!(
        finished(&mut client),
        [(operation, Ok(Outcome::Result(r#"{"content":[]}"#.into())))]
    );
}

// MCP.md: D4
#[test]
fn a_task_is_cancelled_by_its_own_method() {
    let (mut client, operation) = begun();
    actions(&mut client);
    client.cancel(operation);
    let sent = written(&mut client);
    assert_eq!(sent.len(), 1);
    assert_eq!(
        (&sent[0]["method"], &sent[0]["params"]["taskId"]),
        (&json!("tasks/cancel"), &json!("x"))
    );
}

#[test]
fn a_server_that_begins_no_task_has_failed() {
    let mut client = connected();
    client.request(
        Request { params: Members::new().with("name", "t"), task: true, ..of("tools/call") },
        0,
    );
    actions(&mut client);
    receive(&mut client, json!({"id": 2, "result": {"content": []}}));
    assert!(matches!(&finished(&mut client)[..], [(_, Err(Error::Protocol(_)))]));
}
