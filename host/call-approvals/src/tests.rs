//! What is decided of calls, step by step.

use serde_json::{Value, json};
use std::mem::forget;
use std::sync::Arc;
use std::time::Duration;
use tenon_store::{LogCheck, SqliteStore, Store, check_log};

use super::*;

const NOW: u64 = 1_000_000;

fn store() -> Arc<dyn Store> {
    Arc::new(SqliteStore::in_memory().expect("there is memory"))
}

fn approvals(store: &Arc<dyn Store>) -> Arc<CallApprovals> {
    Arc::new(CallApprovals::new(store.clone()))
}

fn action(arguments: Value) -> Action {
    Action {
        tool: "files__write".into(),
        plugin: "files".into(),
        code: "c0de".into(),
        definition: "d3f".into(),
        principal: Some("ada".into()),
        arguments,
    }
}

fn call(action: &Action) -> AskedCall {
    AskedCall::new(action.arguments.clone(), "a rule").in_session(Some("s1".into()))
}

/// Whether a call may be made. It ends then.
fn is_begun(found: Found) -> bool {
    match found {
        Found::Begun(begun) => begun.end("ok", NOW).is_ok(),
        _ => false,
    }
}

/// The steps that the log has, with their ids left out. The log is whole.
fn steps(store: &Arc<dyn Store>) -> Vec<String> {
    assert!(matches!(check_log(&**store, LOG).unwrap(), LogCheck::Whole(_)));
    let entries = store.entries_from(LOG, 1, 1_000).unwrap().into_iter();
    let step = |entry: tenon_store::LogEntry| {
        let event: Value = serde_json::from_slice(&entry.value).unwrap();
        match event["outcome"].as_str() {
            Some(outcome) => format!("ended {outcome}"),
            None => event["step"].as_str().unwrap().to_string(),
        }
    };
    entries.map(step).collect()
}

fn take(approvals: &Arc<CallApprovals>, action: &Action) -> Found {
    approvals.take(action, &call(action), NOW).unwrap()
}

fn begun(found: Found) -> Box<BegunCall> {
    match found {
        Found::Begun(begun) => begun,
        found => panic!("it has not begun: {found:?}"),
    }
}

#[test]
fn a_call_is_asked_for_approved_and_made_once() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let action = action(json!({ "path": "/a", "text": "x" }));
    assert!(matches!(take(&agent, &action), Found::Undecided { unknown_since: None }));
    let id = agent.ask(&action, call(&action), NOW).unwrap();
    assert!(is_approval_id(&id), "{id}");
    // Whoever tries again waits for the same.
    assert_eq!(agent.ask(&action, call(&action), NOW + 1).unwrap(), id);
    let listed = user.list(NOW).unwrap();
    assert_eq!((listed.len(), &listed[0].id, listed[0].asked), (1, &id, NOW));
    assert_eq!(listed[0].call.arguments, action.arguments);
    user.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    let running = begun(take(&agent, &action));
    assert!(matches!(take(&agent, &action), Found::Running { .. }));
    let error = user.approve(&id, ApprovalScope::Once, None, NOW).unwrap_err();
    assert_eq!(error.to_string(), format!("the call {id} cannot be decided: it runs"));
    running.end("ok", NOW).unwrap();
    assert!(matches!(take(&agent, &action), Found::Undecided { unknown_since: None }));
    assert_eq!(steps(&store), ["asked", "approved", "begun", "ended ok"]);
    assert!(user.list(NOW).unwrap().is_empty());
}

#[test]
fn another_action_is_not_approved() {
    let store = store();
    let approvals = approvals(&store);
    let approved = action(json!({ "path": "/a" }));
    let id = approvals.ask(&approved, call(&approved), NOW).unwrap();
    approvals.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    let others = [
        action(json!({ "path": "/b" })),
        action(json!({ "path": "/a", "more": null })),
        action(json!({})),
        Action { tool: "files__rewrite".into(), ..approved.clone() },
        Action { plugin: "file".into(), ..approved.clone() },
        Action { code: "c0d".into(), ..approved.clone() },
        Action { definition: "d3".into(), ..approved.clone() },
        Action { principal: Some("bob".into()), ..approved.clone() },
        Action { principal: None, ..approved.clone() },
        // What moves from one part to the next is another action, too.
        Action { code: "c0ded".into(), definition: "3f".into(), ..approved.clone() },
    ];
    for other in &others {
        assert!(matches!(take(&approvals, other), Found::Undecided { .. }), "{other:?}");
    }
    begun(take(&approvals, &approved)).end("ok", NOW).unwrap();
}

#[test]
fn what_nobody_can_see_nobody_approves() {
    let approvals = approvals(&store());
    let long = action(json!({ "text": "x".repeat(300 << 10) }));
    let error = approvals.ask(&long, call(&long), NOW).unwrap_err().to_string();
    assert!(error.contains("too long to be shown"), "{error}");
    assert!(matches!(take(&approvals, &long), Found::Undecided { .. }));
    // Of more than these, not all can have to be the same.
    let many = (0..300).map(|number| (format!("a{number}"), json!(number)));
    let many = action(Value::Object(many.collect()));
    let id = approvals.ask(&many, call(&many), NOW).unwrap();
    let scope = ApprovalScope::Standing { fixed: None };
    let error = approvals.approve(&id, scope, None, NOW).unwrap_err().to_string();
    assert!(error.contains("too many arguments"), "{error}");
    let fixed = Some(vec!["a1".to_string()]);
    approvals.approve(&id, ApprovalScope::Standing { fixed }, None, NOW).unwrap();
    assert!(is_begun(take(&approvals, &many)));
}

#[test]
fn a_principal_that_ends_leaves_nothing_to_the_next_of_its_name() {
    let store = store();
    let approvals = approvals(&store);
    let [standing, approved, waiting] =
        ["/a", "/b", "/c"].map(|path| action(json!({ "path": path })));
    let theirs = Action { principal: Some("bob".into()), ..standing.clone() };
    let ask = |action: &Action| approvals.ask(action, call(action), NOW).unwrap();
    let always = ApprovalScope::Standing { fixed: Some(vec!["path".into()]) };
    let kept = approvals.approve(&ask(&standing), always.clone(), None, NOW).unwrap().unwrap();
    assert_eq!((&kept.shown, kept.given), (&json!({ "path": "/a" }), NOW));
    approvals.approve(&ask(&approved), ApprovalScope::Once, None, NOW).unwrap();
    ask(&waiting);
    approvals.approve(&ask(&theirs), always, None, NOW).unwrap();
    approvals.end_principal("ada", NOW).unwrap();
    for action in [&standing, &approved, &waiting] {
        assert!(matches!(take(&approvals, action), Found::Undecided { .. }), "{action:?}");
    }
    assert!(is_begun(take(&approvals, &theirs)));
    assert!(approvals.list(NOW).unwrap().is_empty());
    assert_eq!(approvals.standing(NOW).unwrap().len(), 1);
}

#[test]
fn the_order_of_arguments_is_no_difference() {
    let one: Value = serde_json::from_str(r#"{"a":1,"b":{"c":2,"d":3}}"#).unwrap();
    let other: Value = serde_json::from_str(r#"{"b":{"d":3,"c":2},"a":1}"#).unwrap();
    assert_eq!(action(one).digest(), action(other).digest());
}

#[test]
fn a_denial_holds_until_it_is_over_or_somebody_approves() {
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({}));
    let id = approvals.ask(&action, call(&action), NOW).unwrap();
    approvals.deny(&id, Some("not today".into()), NOW).unwrap();
    match take(&approvals, &action) {
        Found::Denied { reason, .. } => assert_eq!(reason.as_deref(), Some("not today")),
        found => panic!("{found:?}"),
    }
    let over = NOW + u64::try_from(MAX_WAIT.as_millis()).unwrap();
    let found = approvals.take(&action, &call(&action), over).unwrap();
    assert!(matches!(found, Found::Undecided { .. }), "{found:?}");
    let id = approvals.ask(&action, call(&action), NOW).unwrap();
    approvals.deny(&id, None, NOW).unwrap();
    approvals.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    drop(begun(take(&approvals, &action)));
}

#[test]
fn an_approval_that_is_over_is_none() {
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({}));
    let id = approvals.ask(&action, call(&action), NOW).unwrap();
    let minute = Duration::from_secs(60);
    approvals.approve(&id, ApprovalScope::Once, Some(minute), NOW).unwrap();
    let found = approvals.take(&action, &call(&action), NOW + 60_000).unwrap();
    assert!(matches!(found, Found::Undecided { .. }), "{found:?}");
    let error = approvals.approve(&id, ApprovalScope::Once, None, NOW).unwrap_err();
    assert_eq!(error.to_string(), format!("no call waits under the id {id}"));
    let id = approvals.ask(&action, call(&action), NOW).unwrap();
    let later = NOW + u64::try_from(MAX_WAIT.as_millis()).unwrap();
    assert_eq!(approvals.list(later - 1).unwrap().len(), 1);
    assert!(approvals.list(later).unwrap().is_empty(), "{id} waits no more");
}

#[test]
fn a_call_whose_process_has_died_is_unknown_and_asks_again() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let action = action(json!({}));
    let id = agent.ask(&action, call(&action), NOW).unwrap();
    user.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    // The process dies: nothing of it runs any more, and its locks are free.
    forget(begun(take(&agent, &action)));
    assert!(matches!(take(&user, &action), Found::Running { .. }));
    agent.lose_lock();
    match take(&user, &action) {
        Found::Undecided { unknown_since } => assert_eq!(unknown_since, Some(NOW)),
        found => panic!("{found:?}"),
    }
    assert_eq!(user.ask(&action, call(&action), NOW).unwrap(), id);
    assert!(matches!(user.list(NOW).unwrap()[0].state, ApprovalState::Unknown { at: NOW }));
    user.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    begun(take(&user, &action)).end("ok", NOW).unwrap();
    let expected = ["asked", "approved", "begun", "unknown", "approved", "begun", "ended ok"];
    assert_eq!(steps(&store), expected);
}

#[test]
fn a_call_that_is_dropped_is_unknown() {
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({}));
    let waiting = approvals.ask(&action, call(&action), NOW).unwrap();
    let begin = || {
        approvals.begin_approved(&action, call(&action), ApprovalScope::Once, None, NOW).unwrap()
    };
    drop(begin());
    // It is found where the call is made again, under the id by which it is decided.
    let listed = approvals.list(NOW).unwrap();
    assert_eq!((listed.len(), &listed[0].id), (1, &waiting));
    assert!(matches!(listed[0].state, ApprovalState::Unknown { .. }));
    let again = || match take(&approvals, &action) {
        Found::Undecided { unknown_since } => unknown_since,
        found => panic!("{found:?}"),
    };
    assert_eq!(again(), Some(NOW));
    // Who decides knows of it, so that it is settled.
    begin().end("ok", NOW).unwrap();
    assert_eq!(again(), None);
    assert!(approvals.list(NOW).unwrap().is_empty());
    let expected = ["asked", "approved", "begun", "unknown", "approved", "begun", "ended ok"];
    assert_eq!(steps(&store), expected);
}

#[test]
fn what_a_standing_approval_covers_asks_again_once_it_is_unknown() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let action = action(json!({}));
    let id = agent.ask(&action, call(&action), NOW).unwrap();
    let always = ApprovalScope::Standing { fixed: None };
    let standing = user.approve(&id, always, None, NOW).unwrap().unwrap().id;
    // Several at a time.
    let both = [begun(take(&agent, &action)), begun(take(&agent, &action))];
    assert!(both.iter().all(|call| call.id() == standing));
    let [one, other] = both;
    one.end("ok", NOW).unwrap();
    forget(other);
    agent.lose_lock();
    assert!(matches!(take(&user, &action), Found::Undecided { unknown_since: Some(NOW) }));
    user.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    // That is used up first. From then on it stands again.
    for _ in 0..3 {
        assert!(is_begun(take(&user, &action)));
    }
    let expected = ["covered", "begun", "covered", "begun", "ended ok", "unknown", "approved"];
    assert_eq!(steps(&store)[2..9], expected);
}

#[test]
fn a_denial_is_noted_and_asks_again() {
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({}));
    approvals.note_denied(&action, call(&action), NOW).unwrap();
    assert!(matches!(take(&approvals, &action), Found::Undecided { unknown_since: None }));
    assert_eq!(steps(&store), ["denied"]);
}

#[test]
fn who_took_a_process_for_dead_is_not_overruled() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let action = action(json!({}));
    let id = agent.ask(&action, call(&action), NOW).unwrap();
    user.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    let slow = begun(take(&agent, &action));
    agent.lose_lock();
    user.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    slow.end("ok", NOW).unwrap();
    begun(take(&user, &action)).end("ok", NOW).unwrap();
    assert_eq!(
        steps(&store),
        ["asked", "approved", "begun", "unknown", "approved", "ended ok", "begun", "ended ok"]
    );
}

#[test]
fn a_standing_approval_covers_what_its_user_fixed() {
    let check = |fixed: Option<&[&str]>, arguments: Value, covers: bool| {
        let store = store();
        let approvals = approvals(&store);
        let first = action(json!({ "path": "/a", "text": "x" }));
        let id = approvals.ask(&first, call(&first), NOW).unwrap();
        let fixed = fixed.map(|names| names.iter().map(ToString::to_string).collect());
        approvals.approve(&id, ApprovalScope::Standing { fixed }, None, NOW).unwrap();
        assert!(approvals.list(NOW).unwrap().is_empty(), "it waits no more");
        for _ in 0..2 {
            let action = action(arguments.clone());
            let elsewhere = call(&action).in_session(Some("other".into()));
            let found = approvals.take(&action, &elsewhere, NOW).unwrap();
            assert_eq!(is_begun(found), covers, "{arguments}");
        }
        let bob = Action { principal: Some("bob".into()), ..action(arguments.clone()) };
        assert!(matches!(take(&approvals, &bob), Found::Undecided { .. }));
        let standing = approvals.standing(NOW).unwrap();
        approvals.deny(&standing[0].id, None, NOW).unwrap();
        assert!(matches!(take(&approvals, &action(arguments)), Found::Undecided { .. }));
    };
    check(None, json!({ "path": "/a", "text": "x" }), true);
    check(None, json!({ "path": "/a", "text": "y" }), false);
    check(None, json!({ "path": "/a", "text": "x", "mode": 1 }), false);
    check(Some(&["path"]), json!({ "path": "/a", "text": "y" }), true);
    check(Some(&["path"]), json!({ "path": "/a", "mode": 1 }), true);
    check(Some(&["path"]), json!({ "path": "/b", "text": "x" }), false);
    check(Some(&["path"]), json!({ "text": "x" }), false);
    check(Some(&[]), json!({ "anything": true }), true);
}

#[test]
fn an_approval_of_a_session_ends_with_its_day() {
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({ "path": "/a" }));
    let id = approvals.ask(&action, call(&action), NOW).unwrap();
    let month = Duration::from_secs(30 * 24 * 3600);
    let scope = ApprovalScope::Session { fixed: None };
    approvals.approve(&id, scope.clone(), Some(month), NOW).unwrap();
    let day = 24 * 3600 * 1_000;
    let covered = |session: Option<&str>, now| {
        let call = call(&action).in_session(session.map(str::to_string));
        is_begun(approvals.take(&action, &call, now).unwrap())
    };
    assert!(covered(Some("s1"), NOW) && covered(Some("s1"), NOW + day - 1));
    assert!(!covered(Some("s2"), NOW) && !covered(None, NOW) && !covered(Some("s1"), NOW + day));
    let alone = AskedCall::new(json!({}), "a rule");
    let id = approvals.ask(&action, alone, NOW + day).unwrap();
    let error = approvals.approve(&id, scope, None, NOW + day).unwrap_err();
    assert_eq!(error.to_string(), format!("the call {id} belongs to no session"));
}

#[test]
fn an_approval_of_a_run_is_good_for_that_run() {
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({ "path": "/a" }));
    let of_run = call(&action).in_run(Some("R-1".into()));
    let id = approvals.ask(&action, of_run, NOW).unwrap();
    let scope = ApprovalScope::Run { fixed: Some(vec![]) };
    approvals.approve(&id, scope.clone(), None, NOW).unwrap();
    let covered = |run: Option<&str>| {
        let call = call(&action).in_run(run.map(str::to_string));
        is_begun(approvals.take(&action, &call, NOW).unwrap())
    };
    assert!(covered(Some("R-1")) && !covered(Some("R-2")) && !covered(None));
    let id = approvals.ask(&action, call(&action), NOW).unwrap();
    let error = approvals.approve(&id, scope, None, NOW).unwrap_err();
    assert_eq!(error.to_string(), format!("the call {id} belongs to no run"));
}

#[test]
fn no_more_wait_than_there_is_room_for() {
    let approvals = CallApprovals::with_room(store(), 20, 5);
    let ask = |who: usize, number: usize, now| {
        let action = Action { principal: Some(who.to_string()), ..action(json!({ "n": number })) };
        approvals.ask(&action, call(&action), now)
    };
    let mut asked = Vec::new();
    for who in 0..4 {
        for number in 0..5 {
            asked.push(ask(who, number, NOW).unwrap());
        }
        // One who asks too much keeps nobody else from it.
        assert!(ask(who, 5, NOW).unwrap_err().is_full());
    }
    assert!(ask(4, 0, NOW).unwrap_err().is_full());
    // What is decided makes room.
    approvals.deny(&asked[0], None, NOW).unwrap();
    ask(4, 0, NOW).unwrap();
    // And what is over.
    let later = NOW + u64::try_from(MAX_WAIT.as_millis()).unwrap();
    ask(0, 5, later).unwrap();
    assert_eq!(approvals.list(later).unwrap().len(), 1);
}

#[test]
fn an_id_is_no_id_of_a_plugin_and_read_as_it_is_written() {
    for (text, expected) in [
        ("A-0123456789AB", true),
        ("a-0123456789ab", false),
        ("A-0123456789A", false),
        ("A-0123456789AI", false),
        ("files", false),
        ("", false),
    ] {
        assert_eq!(is_approval_id(text), expected, "{text}");
    }
}
