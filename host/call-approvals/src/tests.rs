//! What is decided of calls, step by step.

use serde_json::{Value, json};
use std::mem::forget;
use std::sync::Arc;
use std::time::Duration;
use tenon_store::{
    Durability, ItemQuota, LogIntegrity, LogPolicy, NewEntry, SqliteStore, Store, check_log,
};

use super::*;
use crate::approval::MAX_WAIT_MILLIS;

const NOW: u64 = 1_000_000;

/// The kinds of items.
const APPROVALS: &str = "call-approvals";
const STANDING: &str = "standing-call-approvals";

/// Room for what is edited by hand.
const QUOTA: ItemQuota = ItemQuota { items: 100, bytes: 1 << 20 };

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

fn call(action: &Action) -> CallDetails {
    CallDetails::new(action.arguments.clone(), "a rule").in_session(Some("s1".into()))
}

/// Whether a call may be made. It ends then.
fn is_begun(found: BeginOutcome) -> bool {
    match found {
        BeginOutcome::Begun(begun) => begun.end("ok", NOW).is_ok(),
        _ => false,
    }
}

/// The steps that the log has, with their ids left out. The log is whole, and says all that is decided.
fn steps(store: &Arc<dyn Store>) -> Vec<String> {
    assert!(matches!(check_log(&**store, LOG).unwrap(), LogIntegrity::Whole(_)));
    assert_eq!(approvals(store).undocumented(NOW).unwrap(), [""; 0]);
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

/// Has a call wait, and gives the id under which it does.
fn ask(approvals: &Arc<CallApprovals>, action: &Action) -> String {
    waiting(approvals.ask(action, call(action), NOW).unwrap())
}

/// The id under which a call waits.
fn waiting(asked: Asked) -> String {
    match asked {
        Asked::Waits(id) => id,
        Asked::Decided => panic!("it is decided"),
    }
}

fn take(approvals: &Arc<CallApprovals>, action: &Action) -> BeginOutcome {
    approvals.take(action, &call(action), NOW).unwrap()
}

fn begun(found: BeginOutcome) -> Box<BegunCall> {
    match found {
        BeginOutcome::Begun(begun) => begun,
        found => panic!("it has not begun: {found:?}"),
    }
}

/// Begins a call that the user of a client has approved.
fn begin_approved(approvals: &Arc<CallApprovals>, action: &Action) -> Box<BegunCall> {
    let once = given(ApprovalScope::Once);
    begun(approvals.begin_approved(action, call(action), once, NOW).unwrap())
}

/// What the user of a client says.
fn given(scope: ApprovalScope) -> ImmediateApproval {
    ImmediateApproval { scope, holds: None, by: Decider::Client, waited: true }
}

#[test]
fn a_call_is_asked_for_approved_and_made_once() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let action = action(json!({ "path": "/a", "text": "x" }));
    assert!(matches!(take(&agent, &action), BeginOutcome::Undecided { unknown_since: None }));
    let id = ask(&agent, &action);
    assert!(is_approval_id(&id), "{id}");
    // Whoever tries again waits for the same.
    let again = agent.ask(&action, call(&action), NOW + 1).unwrap();
    assert_eq!(again, Asked::Waits(id.clone()));
    let listed = user.list(NOW).unwrap();
    assert_eq!((listed.len(), &listed[0].id, listed[0].asked), (1, &id, NOW));
    assert_eq!(listed[0].call.arguments, action.arguments);
    user.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    let running = begun(take(&agent, &action));
    assert!(matches!(take(&agent, &action), BeginOutcome::Running { .. }));
    let error = user.approve(&id, ApprovalScope::Once, None, NOW).unwrap_err();
    assert_eq!(error.to_string(), format!("the call {id} cannot be decided: it runs"));
    running.end("ok", NOW).unwrap();
    assert!(matches!(take(&agent, &action), BeginOutcome::Undecided { unknown_since: None }));
    assert_eq!(steps(&store), ["asked", "approved", "begun", "ended ok"]);
    assert!(user.list(NOW).unwrap().is_empty());
}

#[test]
fn another_action_is_not_approved() {
    let store = store();
    let approvals = approvals(&store);
    let approved = action(json!({ "path": "/a" }));
    let id = ask(&approvals, &approved);
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
        assert!(matches!(take(&approvals, other), BeginOutcome::Undecided { .. }), "{other:?}");
    }
    begun(take(&approvals, &approved)).end("ok", NOW).unwrap();
}

#[test]
fn what_nobody_can_see_nobody_approves() {
    let approvals = approvals(&store());
    let long = action(json!({ "text": "x".repeat(300 << 10) }));
    let error = approvals.ask(&long, call(&long), NOW).unwrap_err().to_string();
    assert!(error.contains("too long to be shown"), "{error}");
    assert!(matches!(take(&approvals, &long), BeginOutcome::Undecided { .. }));
    // Of more than these, not all can have to be the same.
    let many = (0..300).map(|number| (format!("a{number}"), json!(number)));
    let many = action(Value::Object(many.collect()));
    let id = ask(&approvals, &many);
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
    let ask = |action: &Action| ask(&approvals, action);
    let always = ApprovalScope::Standing { fixed: Some(vec!["path".into()]) };
    let kept = approvals.approve(&ask(&standing), always.clone(), None, NOW).unwrap().unwrap();
    assert_eq!((&kept.shown, kept.given), (&json!({ "path": "/a" }), NOW));
    approvals.approve(&ask(&approved), ApprovalScope::Once, None, NOW).unwrap();
    ask(&waiting);
    approvals.approve(&ask(&theirs), always, None, NOW).unwrap();
    approvals.end_principal("ada", NOW).unwrap();
    for action in [&standing, &approved, &waiting] {
        assert!(matches!(take(&approvals, action), BeginOutcome::Undecided { .. }), "{action:?}");
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
    let id = ask(&approvals, &action);
    approvals.deny(&id, Some("not today".into()), NOW).unwrap();
    match take(&approvals, &action) {
        BeginOutcome::Denied { reason, .. } => assert_eq!(reason.as_deref(), Some("not today")),
        found => panic!("{found:?}"),
    }
    let over = NOW + u64::try_from(MAX_WAIT.as_millis()).unwrap();
    let found = approvals.take(&action, &call(&action), over).unwrap();
    assert!(matches!(found, BeginOutcome::Undecided { .. }), "{found:?}");
    let id = ask(&approvals, &action);
    approvals.deny(&id, None, NOW).unwrap();
    approvals.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    drop(begun(take(&approvals, &action)));
}

#[test]
fn an_approval_that_is_over_is_none() {
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({}));
    let id = ask(&approvals, &action);
    let minute = Duration::from_secs(60);
    approvals.approve(&id, ApprovalScope::Once, Some(minute), NOW).unwrap();
    let found = approvals.take(&action, &call(&action), NOW + 60_000).unwrap();
    assert!(matches!(found, BeginOutcome::Undecided { .. }), "{found:?}");
    let error = approvals.approve(&id, ApprovalScope::Once, None, NOW).unwrap_err();
    assert_eq!(error.to_string(), format!("no call waits under the id {id}"));
    let id = ask(&approvals, &action);
    let later = NOW + u64::try_from(MAX_WAIT.as_millis()).unwrap();
    assert_eq!(approvals.list(later - 1).unwrap().len(), 1);
    assert!(approvals.list(later).unwrap().is_empty(), "{id} waits no more");
}

#[test]
fn a_call_whose_process_has_died_is_unknown_and_asks_again() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let action = action(json!({}));
    let id = ask(&agent, &action);
    user.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    // The process dies: nothing of it runs any more, and its locks are free.
    forget(begun(take(&agent, &action)));
    assert!(matches!(take(&user, &action), BeginOutcome::Running { .. }));
    agent.lose_lock();
    match take(&user, &action) {
        BeginOutcome::Undecided { unknown_since } => assert_eq!(unknown_since, Some(NOW)),
        found => panic!("{found:?}"),
    }
    assert_eq!(ask(&user, &action), id);
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
    let waiting = ask(&approvals, &action);
    let begin = || begin_approved(&approvals, &action);
    drop(begin());
    // It is found where the call is made again, under the id by which it is decided.
    let listed = approvals.list(NOW).unwrap();
    assert_eq!((listed.len(), &listed[0].id), (1, &waiting));
    assert!(matches!(listed[0].state, ApprovalState::Unknown { .. }));
    let again = || match take(&approvals, &action) {
        BeginOutcome::Undecided { unknown_since } => unknown_since,
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
    let id = ask(&agent, &action);
    let always = ApprovalScope::Standing { fixed: None };
    let standing = user.approve(&id, always, None, NOW).unwrap().unwrap().id;
    // Several at a time.
    let both = [begun(take(&agent, &action)), begun(take(&agent, &action))];
    assert!(both.iter().all(|call| call.id() == standing));
    let [one, other] = both;
    one.end("ok", NOW).unwrap();
    forget(other);
    agent.lose_lock();
    assert!(matches!(take(&user, &action), BeginOutcome::Undecided { unknown_since: Some(NOW) }));
    user.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    // That is used up first. From then on it stands again.
    for _ in 0..3 {
        assert!(is_begun(take(&user, &action)));
    }
    let expected = ["covered", "begun", "covered", "begun", "ended ok", "unknown", "approved"];
    assert_eq!(steps(&store)[2..9], expected);
}

#[test]
fn what_is_decided_of_one_call_goes_before_what_stands() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let [first, second, third] = ["/a", "/b", "/c"].map(|path| action(json!({ "path": path })));
    let ids = [&first, &second, &third].map(|action| ask(&agent, action));
    let any = ApprovalScope::Standing { fixed: Some(Vec::new()) };
    let standing = user.approve(&ids[1], any, None, NOW).unwrap().unwrap().id;
    user.deny(&ids[0], None, NOW).unwrap();
    assert!(matches!(take(&agent, &first), BeginOutcome::Denied { .. }));
    assert!(is_begun(take(&agent, &second)));
    // What is approved once is used up though something stands, so that nothing of it is left.
    user.approve(&ids[2], ApprovalScope::Once, None, NOW).unwrap();
    assert!(is_begun(take(&agent, &third)));
    user.deny(&standing, None, NOW).unwrap();
    assert!(matches!(take(&agent, &third), BeginOutcome::Undecided { .. }));
}

#[test]
fn what_is_decided_while_somebody_is_asked_counts() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let (denied, approved) = (action(json!({ "n": 1 })), action(json!({ "n": 2 })));
    let ids = [&denied, &approved].map(|action| ask(&agent, action));
    user.deny(&ids[0], Some("no".into()), NOW).unwrap();
    user.approve(&ids[1], ApprovalScope::Once, None, NOW).unwrap();
    for action in [&denied, &approved] {
        assert_eq!(agent.ask(action, call(action), NOW).unwrap(), Asked::Decided);
    }
    let always = given(ApprovalScope::Standing { fixed: None });
    let found = agent.begin_approved(&denied, call(&denied), always, NOW).unwrap();
    assert!(matches!(&found, BeginOutcome::Denied { reason: Some(reason), .. } if reason == "no"));
    assert!(agent.standing(NOW).unwrap().is_empty());
    // There was one call to approve, and both have approved it.
    begin_approved(&agent, &approved).end("ok", NOW).unwrap();
    assert!(matches!(take(&agent, &approved), BeginOutcome::Undecided { .. }));
}

#[test]
fn what_is_taken_back_while_somebody_is_asked_does_not_begin() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let action = action(json!({ "n": 1 }));
    let begin = |waited| {
        let given = ImmediateApproval { waited, ..given(ApprovalScope::Once) };
        agent.begin_approved(&action, call(&action), given, NOW).unwrap()
    };
    ask(&agent, &action);
    user.end_plugin(&action.plugin, NOW).unwrap();
    assert!(matches!(begin(true), BeginOutcome::Denied { reason: Some(_), .. }));
    // A later question is another one.
    ask(&agent, &action);
    begun(begin(true)).end("ok", NOW).unwrap();
    // Nor does what never waited have anything that could be taken back.
    ask(&agent, &action);
    user.end_plugin(&action.plugin, NOW).unwrap();
    begun(begin(false)).end("ok", NOW).unwrap();
}

#[test]
fn what_is_shown_otherwise_than_it_was_asked_about_cannot_be_approved() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let action = action(json!({ "path": "/etc" }));
    let id = ask(&agent, &action);
    edit(&store, (APPROVALS, &id), |item| item["call"]["arguments"]["path"] = json!("/tmp"));
    let refused = user.approve(&id, ApprovalScope::Once, None, NOW).unwrap_err();
    assert!(matches!(refused, CallApprovalError::Undecidable { .. }), "{refused:?}");
    assert_eq!(user.undocumented(NOW).unwrap(), [&*id]);
    assert!(matches!(take(&agent, &action), BeginOutcome::Undecided { .. }));
    user.deny(&id, None, NOW).unwrap();
}

#[test]
fn that_nobody_knows_how_a_call_ended_is_not_forgotten() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let action = action(json!({ "text": "x".repeat(5_000) }));
    let id = ask(&agent, &action);
    let always = ApprovalScope::Standing { fixed: None };
    user.approve(&id, always, None, NOW).unwrap();
    drop(begun(take(&agent, &action)));
    let at = |now| match agent.take(&action, &call(&action), now).unwrap() {
        BeginOutcome::Undecided { unknown_since } => format!("unknown since {unknown_since:?}"),
        BeginOutcome::Denied { .. } => "denied".into(),
        found => panic!("{found:?}"),
    };
    let week = 7 * 24 * 3600 * 1_000;
    let unknown = format!("unknown since Some({NOW})");
    assert_eq!(at(NOW + week), unknown);
    // Its arguments are kept again once somebody is asked.
    let listed = || agent.list(NOW).unwrap().pop().unwrap();
    assert!(!listed().is_shown_whole());
    assert!(user.approve(&id, ApprovalScope::Once, None, NOW).is_err());
    assert_eq!(ask(&agent, &action), id);
    assert!(listed().is_shown_whole());
    // A denial holds for a day, and what nobody knew then is still not known.
    user.deny(&id, None, NOW).unwrap();
    assert_eq!(at(NOW + 1), "denied");
    assert_eq!(at(NOW + week), unknown);
    assert!(matches!(listed().state, ApprovalState::Denied { .. }));
    // That is so as well where it was denied while it ran.
    user.approve(&id, ApprovalScope::Once, None, NOW + week).unwrap();
    let running = begun(agent.take(&action, &call(&action), NOW + week).unwrap());
    let short = Action { arguments: json!({}), ..action.clone() };
    assert!(matches!(take(&agent, &short), BeginOutcome::Undecided { unknown_since: None }));
    drop(running);
    assert_eq!(at(NOW + week), format!("unknown since Some({})", NOW + week));
}

#[test]
fn a_principal_with_too_many_unknown_calls_keeps_nobody_from_being_asked() {
    let store: Arc<dyn Store> = store();
    let approvals = Arc::new(CallApprovals::with_room(store, 4, 2));
    for n in 0..10 {
        let action = action(json!({ "n": n }));
        let now = NOW + n;
        let once = given(ApprovalScope::Once);
        let found = approvals.begin_approved(&action, call(&action), once, now).unwrap();
        drop(begun(found));
    }
    let left: Vec<_> =
        approvals.list(NOW).unwrap().into_iter().map(|of| of.call.arguments).collect();
    assert_eq!(left, [json!({ "n": 8 }), json!({ "n": 9 })]);
    let other = Action { principal: Some("bob".into()), ..action(json!({})) };
    ask(&approvals, &other);
}

#[test]
fn a_denial_is_noted_and_asks_again() {
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({}));
    approvals.note_denied(&action, call(&action), None, Decider::Client, NOW).unwrap();
    assert!(matches!(take(&approvals, &action), BeginOutcome::Undecided { unknown_since: None }));
    assert_eq!(steps(&store), ["denied"]);
}

#[test]
fn a_denial_at_once_ends_what_somebody_else_has_approved_meanwhile() {
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({}));
    let id = ask(&approvals, &action);
    approvals.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    approvals.note_denied(&action, call(&action), None, Decider::Client, NOW).unwrap();
    assert!(matches!(take(&approvals, &action), BeginOutcome::Undecided { unknown_since: None }));
    assert_eq!(approvals.undocumented(NOW).unwrap(), [""; 0]);
    // A denial of the same call holds.
    let id = ask(&approvals, &action);
    approvals.deny(&id, None, NOW).unwrap();
    approvals.note_denied(&action, call(&action), None, Decider::Client, NOW).unwrap();
    assert!(matches!(take(&approvals, &action), BeginOutcome::Denied { .. }));
    assert_eq!(approvals.undocumented(NOW).unwrap(), [""; 0]);
}

#[test]
fn the_log_says_who_decided_what_and_why() {
    let store = store();
    let agent = approvals(&store);
    let user = Arc::new(CallApprovals::new(store.clone()).decided_by("ops"));
    let of = |n: usize| action(json!({ "n": n }));
    let ask = |n: usize| ask(&agent, &of(n));
    user.deny(&ask(1), Some("not today".into()), NOW).unwrap();
    user.approve(&ask(2), ApprovalScope::Once, None, NOW).unwrap();
    begin_approved(&agent, &of(3)).end("ok", NOW).unwrap();
    agent.note_denied(&of(4), call(&of(4)), Some("no".into()), Decider::Approver, NOW).unwrap();
    let always = ApprovalScope::Standing { fixed: None };
    let standing = user.approve(&ask(5), always, None, NOW).unwrap().unwrap();
    user.deny(&standing.id, None, NOW).unwrap();
    let told = agent.latest_events(100).unwrap().into_iter().map(|(_, event)| {
        let ApprovalEvent { step, decided_by, arguments, .. } = event;
        let step = serde_json::to_value(step).unwrap();
        let step = [&step["step"], &step["reason"]].map(|text| text.as_str().unwrap_or("-"));
        let n = arguments.map_or(0, |arguments| arguments["n"].as_u64().unwrap());
        let who = match decided_by {
            None => "-".into(),
            Some(Decider::User(name)) => name,
            Some(who) => format!("{who:?}"),
        };
        format!("{} {n} {who}", step.join(" "))
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "asked - 1 -",
            "denied not today 1 ops",
            "asked - 2 -",
            "approved - 2 ops",
            "approved - 3 Client",
            "begun - 0 -",
            "ended - 0 -",
            "denied no 4 Approver",
            "asked - 5 -",
            "kept - 5 ops",
            "taken-back - 0 ops",
        ]
    );
    let long = action(json!({ "text": "x".repeat(3_000) }));
    agent.ask(&long, call(&long), NOW).unwrap();
    assert_eq!(agent.latest_events(1).unwrap()[0].1.arguments, None);
}

#[test]
fn what_is_damaged_approves_nothing_and_keeps_nobody_from_the_rest() {
    let store = store();
    let approvals = approvals(&store);
    let (damaged, whole) = (action(json!({ "n": 1 })), action(json!({ "n": 2 })));
    let [id, other] = [&damaged, &whole].map(|of| ask(&approvals, of));
    approvals.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    let version = store.item("call-approvals", &id).unwrap().unwrap().version;
    let quota = ItemQuota { items: 10, bytes: 10_000 };
    store.put_item("call-approvals", &id, Some(version), b"{", None, quota).unwrap();
    let error = approvals.take(&damaged, &call(&damaged), NOW).unwrap_err();
    assert!(matches!(error, CallApprovalError::Damaged(of) if of == id));
    let listed = approvals.list(NOW).unwrap();
    assert_eq!(listed.iter().map(|approval| &approval.id).collect::<Vec<_>>(), [&other]);
    assert_eq!(approvals.damaged().unwrap(), [id]);
    approvals.approve(&other, ApprovalScope::Once, None, NOW).unwrap();
    assert!(is_begun(take(&approvals, &whole)));
}

#[test]
fn how_a_call_ended_is_told_when_the_store_works_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.db");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&file).unwrap());
    let sql = |statement| rusqlite::Connection::open(&file).unwrap().execute_batch(statement);
    let approvals = approvals(&store);
    let (ended, dropped) = (action(json!({ "n": 1 })), action(json!({ "n": 2 })));
    let (first, second) =
        (begin_approved(&approvals, &ended), begin_approved(&approvals, &dropped));
    sql("CREATE TRIGGER full BEFORE INSERT ON log_entries BEGIN SELECT RAISE(ABORT, 'full'); END")
        .unwrap();
    assert!(matches!(first.end("ok", NOW), Err(CallApprovalError::Store(_))));
    drop(second);
    assert_eq!(steps(&store), ["approved", "begun", "approved", "begun"]);
    // Until then the store takes both for calls that run.
    assert_eq!(approvals.list(NOW).unwrap().len(), 2);
    sql("DROP TRIGGER full").unwrap();
    assert_eq!(approvals.list(NOW).unwrap().len(), 1);
    assert_eq!(steps(&store)[4..], ["ended ok", "unknown"]);
    let unknown = take(&approvals, &dropped);
    assert!(matches!(unknown, BeginOutcome::Undecided { unknown_since: Some(_) }), "{unknown:?}");
}

#[test]
fn who_took_a_process_for_dead_is_not_overruled() {
    let store = store();
    let (agent, user) = (approvals(&store), approvals(&store));
    let action = action(json!({}));
    let id = ask(&agent, &action);
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
        let id = ask(&approvals, &first);
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
        assert!(matches!(take(&approvals, &bob), BeginOutcome::Undecided { .. }));
        let standing = approvals.standing(NOW).unwrap();
        approvals.deny(&standing[0].id, None, NOW).unwrap();
        assert!(matches!(take(&approvals, &action(arguments)), BeginOutcome::Undecided { .. }));
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
    let id = ask(&approvals, &action);
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
    let alone = CallDetails::new(json!({}), "a rule");
    let id = waiting(approvals.ask(&action, alone, NOW + day).unwrap());
    let error = approvals.approve(&id, scope, None, NOW + day).unwrap_err();
    assert_eq!(error.to_string(), format!("the call {id} belongs to no session"));
}

#[test]
fn an_approval_of_a_run_is_good_for_that_run() {
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({ "path": "/a" }));
    let of_run = call(&action).in_run(Some("R-1".into()));
    let id = waiting(approvals.ask(&action, of_run, NOW).unwrap());
    let scope = ApprovalScope::Run { fixed: Some(vec![]) };
    approvals.approve(&id, scope.clone(), None, NOW).unwrap();
    let covered = |run: Option<&str>| {
        let call = call(&action).in_run(run.map(str::to_string));
        is_begun(approvals.take(&action, &call, NOW).unwrap())
    };
    assert!(covered(Some("R-1")) && !covered(Some("R-2")) && !covered(None));
    let id = ask(&approvals, &action);
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
            asked.push(waiting(ask(who, number, NOW).unwrap()));
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

/// Edits an item by hand, or puts a new one there.
fn edit(store: &Arc<dyn Store>, (kind, id): (&str, &str), edit: impl FnOnce(&mut Value)) {
    let item = store.item(kind, id).unwrap();
    let mut value =
        item.as_ref().map_or(json!({}), |of| serde_json::from_slice(&of.value).unwrap());
    edit(&mut value);
    let (version, expires) = item.map_or((None, None), |item| (Some(item.version), item.expires));
    let value = value.to_string();
    store.put_item(kind, id, version, value.as_bytes(), expires, QUOTA).unwrap();
}

/// The only item of a kind: its id, and what it is.
fn only_item(store: &Arc<dyn Store>, kind: &str) -> (String, Value) {
    let mut items = tenon_store::all_items(&**store, kind).unwrap();
    assert_eq!(items.len(), 1);
    let item = items.remove(0);
    (item.id, serde_json::from_slice(&item.value).unwrap())
}

#[test]
fn an_approval_that_somebody_edited_is_not_as_the_log_says() {
    let approved = |value: &mut Value| {
        value["state"] = "approved".into();
        value["at"] = NOW.into();
    };
    // What is done to a call that waits, and what somebody edits then.
    type Act = fn(&Arc<CallApprovals>, &str);
    let check = |what: &str, act: Act, change: &dyn Fn(&mut Value), is_found: bool| {
        let store = store();
        let approvals = approvals(&store);
        let id = ask(&approvals, &action(json!({ "n": 1 })));
        let (_, waiting) = only_item(&store, APPROVALS);
        act(&approvals, &id);
        assert_eq!(approvals.undocumented(NOW).unwrap(), [""; 0], "{what}");
        // One that was used up is put back.
        let is_gone = store.item(APPROVALS, &id).unwrap().is_none();
        edit(&store, (APPROVALS, &id), |value| {
            if is_gone {
                *value = waiting;
            }
            change(value);
        });
        let expected = if is_found { vec![id] } else { Vec::new() };
        assert_eq!(approvals.undocumented(NOW).unwrap(), expected, "{what}");
    };
    let approve: Act = |all, id| drop(all.approve(id, ApprovalScope::Once, None, NOW).unwrap());
    let deny: Act = |all, id| all.deny(id, Some("no".into()), NOW).unwrap();
    let make: Act = |all, id| {
        all.approve(id, ApprovalScope::Once, None, NOW).unwrap();
        assert!(is_begun(take(all, &action(json!({ "n": 1 })))));
    };
    let lose: Act = |all, id| {
        all.approve(id, ApprovalScope::Once, None, NOW).unwrap();
        drop(begun(take(all, &action(json!({ "n": 1 })))));
    };
    let approve_at_once: Act = |all, id| {
        all.approve(id, ApprovalScope::Once, None, NOW).unwrap();
        begin_approved(all, &action(json!({ "n": 1 }))).end("ok", NOW).unwrap();
    };
    let note_denied: Act = |all, _| {
        let action = action(json!({ "n": 1 }));
        all.note_denied(&action, call(&action), None, Decider::Client, NOW).unwrap();
    };
    let approve_and_deny_at_once: Act = |all, id| {
        all.approve(id, ApprovalScope::Once, None, NOW).unwrap();
        let action = action(json!({ "n": 1 }));
        all.note_denied(&action, call(&action), None, Decider::Client, NOW).unwrap();
    };
    let keep: Act = |all, id| {
        all.approve(id, ApprovalScope::Once, None, NOW).unwrap();
        let always = ApprovalScope::Standing { fixed: None };
        all.approve(id, always, None, NOW).unwrap();
    };
    let approve_another: Act = |all, id| {
        let action = action(json!({ "n": 1 }));
        let running = begin_approved(all, &action);
        ask(all, &action);
        all.approve(id, ApprovalScope::Once, None, NOW).unwrap();
        // Nothing is decided of another one then.
        drop(running);
    };
    let ask_again: Act = |all, id| {
        let (action, minute) = (action(json!({ "n": 1 })), Duration::from_secs(60));
        all.approve(id, ApprovalScope::Once, Some(minute), NOW).unwrap();
        waiting(all.ask(&action, call(&action), NOW + 60_000).unwrap());
    };
    let take_back: Act = |all, id| {
        all.approve(id, ApprovalScope::Once, None, NOW).unwrap();
        all.end_principal("ada", NOW).unwrap();
    };
    let wait: Act = |_, _| {};
    let denied = |value: &mut Value| {
        value["state"] = "denied".into();
        value["at"] = NOW.into();
    };
    check("denied", deny, &approved, true);
    check("waits", wait, &approved, true);
    check("waits, denied", wait, &denied, true);
    check("was made", make, &approved, true);
    check("is unknown", lose, &approved, true);
    check("was made at once", approve_at_once, &approved, true);
    check("was denied at once", note_denied, &denied, true);
    check("was approved, and denied at once", approve_and_deny_at_once, &approved, true);
    check("stands", keep, &approved, true);
    check("is unknown while another one is approved", approve_another, &approved, true);
    check("waits again", ask_again, &approved, true);
    check("was taken back", take_back, &approved, true);
    check("another reason", deny, &|value| value["reason"] = "yes".into(), true);
    check("another time", approve, &|value| value["at"] = (NOW + 1).into(), true);
    let other = action(json!({ "n": 2 })).digest().to_string();
    check("another action", approve, &|value| value["digest"] = other.clone().into(), true);
    check("as it was", approve, &|_| {}, false);
    check("as it was", deny, &|_| {}, false);
    check("nothing is decided", approve, &|value| value["state"] = "pending".into(), false);

    // It is good for what has its id.
    let store = store();
    let approvals = approvals(&store);
    let id = ask(&approvals, &action(json!({})));
    approvals.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    let (_, whole) = only_item(&store, APPROVALS);
    edit(&store, (APPROVALS, "A-0123456789AB"), |value| *value = whole);
    assert_eq!(approvals.undocumented(NOW).unwrap(), ["A-0123456789AB"]);
}

#[test]
fn what_was_approved_while_a_standing_approval_was_found_is_left() {
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({}));
    let always = ApprovalScope::Standing { fixed: None };
    approvals.approve(&ask(&approvals, &action), always, None, NOW).unwrap();
    let id = ask(&approvals, &action);
    approvals.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    // Who looks for what stands has not seen it yet.
    let item = store.item(APPROVALS, &id).unwrap().unwrap();
    assert!(store.remove_item(APPROVALS, &id, item.version).unwrap());
    let running = begun(take(&approvals, &action));
    store.put_item(APPROVALS, &id, None, &item.value, item.expires, QUOTA).unwrap();
    assert_eq!(approvals.undocumented(NOW).unwrap(), [""; 0]);
    running.end("ok", NOW).unwrap();
    assert!(is_begun(take(&approvals, &action)));
    let expected = ["covered", "begun", "ended ok", "begun", "ended ok"];
    assert_eq!(steps(&store)[4..], expected);
}

#[test]
fn a_standing_approval_that_somebody_edited_is_not_as_the_log_says() {
    let check = |what: &str, is_taken_back: bool, change: &dyn Fn(&mut Value), is_found: bool| {
        let store = store();
        let approvals = approvals(&store);
        let id = ask(&approvals, &action(json!({ "path": "/a" })));
        let always = ApprovalScope::Standing { fixed: None };
        let standing = approvals.approve(&id, always, None, NOW).unwrap().unwrap();
        let (key, given) = only_item(&store, STANDING);
        let expires = store.item(STANDING, &key).unwrap().unwrap().expires;
        if is_taken_back {
            approvals.deny(&standing.id, None, NOW).unwrap();
        }
        assert_eq!(approvals.undocumented(NOW).unwrap(), [""; 0], "{what}");
        let mut value = given;
        change(&mut value);
        let id = value["id"].as_str().unwrap().to_string();
        let key = key.replace(&standing.id, &id);
        let version = store.item(STANDING, &key).unwrap().map(|item| item.version);
        let written = serde_json::from_value::<StandingApproval>(value).unwrap().write();
        store.put_item(STANDING, &key, version, &written, expires, QUOTA).unwrap();
        let expected = if is_found { vec![id] } else { Vec::new() };
        assert_eq!(approvals.undocumented(NOW).unwrap(), expected, "{what}");
        // It is worth nothing any more.
        assert_eq!(approvals.undocumented(expires.unwrap()).unwrap(), [""; 0], "{what}");
    };
    check("as it was", false, &|_| {}, false);
    check("taken back", true, &|_| {}, true);
    check("never given", false, &|value| value["id"] = "A-0123456789AB".into(), true);
    check("for more calls", false, &|value| value["fixed"] = json!([]), true);
    check("with other arguments", false, &|value| value["arguments"] = json!({}), true);
    check("given before", false, &|value| value["given"] = 0.into(), true);

    // Its end, and the tool for which it stands, are part of it.
    let store = store();
    let approvals = approvals(&store);
    let id = ask(&approvals, &action(json!({})));
    let always = ApprovalScope::Standing { fixed: None };
    let id = approvals.approve(&id, always, Some(Duration::MAX), NOW).unwrap().unwrap().id;
    let (key, _) = only_item(&store, STANDING);
    assert_eq!(approvals.undocumented(NOW).unwrap(), [""; 0]);
    let item = store.item(STANDING, &key).unwrap().unwrap();
    let other = key.replace(&key[..4], if key.starts_with("0000") { "1111" } else { "0000" });
    store.put_item(STANDING, &other, None, &item.value, item.expires, QUOTA).unwrap();
    assert_eq!(approvals.undocumented(NOW).unwrap(), [&*id]);
    let version = store.item(STANDING, &other).unwrap().unwrap().version;
    assert!(store.remove_item(STANDING, &other, version).unwrap());
    store.put_item(STANDING, &key, Some(item.version), &item.value, None, QUOTA).unwrap();
    assert_eq!(approvals.undocumented(NOW).unwrap(), [id]);
}

/// Has a call each that is approved, is denied and is unknown, one that stands, and one that waits. Gives the ids, but of
/// the unknown one.
fn one_of_each(store: &Arc<dyn Store>) -> [String; 4] {
    let approvals = approvals(store);
    let ask = |n: usize| ask(&approvals, &action(json!({ "n": n })));
    let (approved, denied, unknown, standing) = (ask(1), ask(2), ask(3), ask(4));
    approvals.approve(&approved, ApprovalScope::Once, None, NOW).unwrap();
    approvals.deny(&denied, None, NOW).unwrap();
    approvals.approve(&unknown, ApprovalScope::Once, None, NOW).unwrap();
    drop(begun(take(&approvals, &action(json!({ "n": 3 })))));
    let always = ApprovalScope::Standing { fixed: None };
    let standing = approvals.approve(&standing, always, None, NOW).unwrap().unwrap().id;
    [approved, denied, standing, ask(5)]
}

#[test]
fn what_is_decided_without_a_log_is_found() {
    let store = store();
    let mut known = one_of_each(&store);
    let approvals = approvals(&store);
    assert_eq!(approvals.undocumented(NOW).unwrap(), [""; 0]);
    store.remove_log(LOG).unwrap();
    known.sort();
    let found = |now| {
        let mut found = approvals.undocumented(now).unwrap();
        found.sort();
        found
    };
    assert_eq!(found(NOW), known);
    // A log that begins anew has not been full.
    let id = ask(&approvals, &action(json!({ "n": 6 })));
    approvals.approve(&id, ApprovalScope::Once, None, NOW).unwrap();
    assert_eq!(found(NOW), known);
    // What is over is worth nothing.
    assert_eq!(found(u64::MAX), [""; 0]);
}

#[test]
fn what_a_full_log_has_forgotten_is_nobodys_edit() {
    let later = NOW + 12 * 3600 * 1_000;
    let store = store();
    let [approved, _, standing, _] = one_of_each(&store);
    let approvals = approvals(&store);
    // New entries take the place of all that were there.
    let entry = NewEntry { at: NOW + 1, value: &[b' '; 500] };
    let policy = LogPolicy { max_bytes: 1_000, durability: Durability::Process };
    let log = store.append(LOG, &[entry; 3], policy).unwrap();
    assert_eq!(log.next - log.first, 1);
    assert_eq!(approvals.undocumented(NOW).unwrap(), [""; 0]);
    // What was decided later is in it, whenever it was asked for.
    let id = ask(&approvals, &action(json!({})));
    approvals.approve(&id, ApprovalScope::Once, None, later).unwrap();
    assert_eq!(approvals.undocumented(later).unwrap(), [""; 0]);
    let decided_at =
        |at: u64| edit(&store, (APPROVALS, &approved), |value| value["at"] = at.into());
    decided_at(later);
    assert_eq!(approvals.undocumented(NOW).unwrap(), [&*approved]);
    decided_at(NOW);
    assert_eq!(approvals.undocumented(NOW).unwrap(), [""; 0]);
    // So is what became of something older.
    let (key, _) = only_item(&store, STANDING);
    let items = [(APPROVALS, &*approved), (STANDING, &*key)];
    let before = items.map(|(kind, id)| store.item(kind, id).unwrap().unwrap());
    assert!(is_begun(take(&approvals, &action(json!({ "n": 1 })))));
    approvals.deny(&standing, None, NOW).unwrap();
    for ((kind, id), item) in items.iter().zip(before) {
        store.put_item(kind, id, None, &item.value, item.expires, QUOTA).unwrap();
    }
    assert_eq!(approvals.undocumented(NOW).unwrap(), [approved, standing]);
}

#[test]
fn a_call_that_begins_without_an_approval_is_found() {
    let check = |what: &str, forge: &dyn Fn(&Arc<dyn Store>, &str)| {
        let store = store();
        let approvals = approvals(&store);
        let action = action(json!({ "n": 1 }));
        let id = ask(&approvals, &action);
        forge(&store, &id);
        assert!(is_begun(take(&approvals, &action)), "{what}");
        assert_eq!(approvals.undocumented(NOW).unwrap(), [id], "{what}");
    };
    let approve = |store: &Arc<dyn Store>, id: &str| {
        edit(store, (APPROVALS, id), |value| {
            value["state"] = "approved".into();
            value["at"] = NOW.into();
        });
    };
    check("of one that waits", &approve);
    check("of one that was denied", &|store, id| {
        approvals(store).deny(id, None, NOW).unwrap();
        approve(store, id);
    });
    check("of one that was used up", &|store, id| {
        let approvals = approvals(store);
        approvals.approve(id, ApprovalScope::Once, None, NOW).unwrap();
        let used = store.item(APPROVALS, id).unwrap().unwrap();
        begun(take(&approvals, &action(json!({ "n": 1 })))).end("ok", NOW).unwrap();
        store.put_item(APPROVALS, id, None, &used.value, used.expires, QUOTA).unwrap();
    });

    // By one that stands and was taken back a while ago.
    let store = store();
    let approvals = approvals(&store);
    let action = action(json!({}));
    let always = ApprovalScope::Standing { fixed: None };
    let standing = approvals.approve(&ask(&approvals, &action), always, None, NOW);
    let id = standing.unwrap().unwrap().id;
    let (key, _) = only_item(&store, STANDING);
    let item = store.item(STANDING, &key).unwrap().unwrap();
    approvals.deny(&id, None, NOW - 100_000).unwrap();
    store.put_item(STANDING, &key, None, &item.value, item.expires, QUOTA).unwrap();
    begun(take(&approvals, &action)).end("ok", NOW).unwrap();
    approvals.deny(&id, None, NOW).unwrap();
    assert_eq!(approvals.undocumented(NOW).unwrap(), [id]);
}

#[test]
fn a_denial_that_is_gone_and_a_call_that_is_shown_otherwise_are_found() {
    let check = |what: &str, is_denied: bool, change: &dyn Fn(&Arc<dyn Store>, &str)| {
        let store = store();
        let approvals = approvals(&store);
        let id = ask(&approvals, &action(json!({ "n": 5 })));
        if is_denied {
            approvals.deny(&id, None, NOW).unwrap();
        }
        assert_eq!(approvals.undocumented(NOW).unwrap(), [""; 0], "{what}");
        change(&store, &id);
        assert_eq!(approvals.undocumented(NOW).unwrap(), [id], "{what}");
        // Its time is over then.
        assert_eq!(approvals.undocumented(NOW + MAX_WAIT_MILLIS).unwrap(), [""; 0], "{what}");
    };
    let gone = |store: &Arc<dyn Store>, id: &str| {
        let version = store.item(APPROVALS, id).unwrap().unwrap().version;
        assert!(store.remove_item(APPROVALS, id, version).unwrap());
    };
    check("gone", true, &gone);
    check("waits", true, &|store, id| {
        edit(store, (APPROVALS, id), |value| value["state"] = "pending".into());
    });
    check("over", true, &|store, id| {
        let item = store.item(APPROVALS, id).unwrap().unwrap();
        store.put_item(APPROVALS, id, Some(item.version), &item.value, Some(1), QUOTA).unwrap();
    });
    for is_denied in [false, true] {
        check("with other arguments", is_denied, &|store, id| {
            edit(store, (APPROVALS, id), |value| value["call"]["arguments"]["n"] = 55.into());
        });
        check("with another digest", is_denied, &|store, id| {
            edit(store, (APPROVALS, id), |value| {
                value["argument_digests"]["n"] = value["tool_digest"].clone();
            });
        });
    }
}

#[test]
fn what_is_damaged_keeps_nobody_from_other_calls_and_can_be_forgotten() {
    let store = store();
    let approvals = approvals(&store);
    let [action, other] = [1, 2].map(|n| action(json!({ "n": n })));
    let id = ask(&approvals, &action);
    let always = ApprovalScope::Standing { fixed: None };
    let standing = approvals.approve(&id, always, None, NOW).unwrap().unwrap().id;
    let (key, _) = only_item(&store, STANDING);
    let waits = ask(&approvals, &other);
    for (kind, id) in [(STANDING, &*key), (APPROVALS, &*waits)] {
        let item = store.item(kind, id).unwrap().unwrap();
        store.put_item(kind, id, Some(item.version), b"{", item.expires, QUOTA).unwrap();
    }
    assert!(matches!(take(&approvals, &action), BeginOutcome::Undecided { .. }));
    let mut damaged = approvals.damaged().unwrap();
    damaged.sort();
    let mut both = vec![standing, waits];
    both.sort();
    assert_eq!(damaged, both);
    for id in both {
        approvals.deny(&id, None, NOW).unwrap();
        let again = approvals.deny(&id, None, NOW).unwrap_err();
        assert!(matches!(again, CallApprovalError::NotFound(_)), "{again}");
    }
    assert_eq!(approvals.damaged().unwrap(), [""; 0]);
    assert!(matches!(take(&approvals, &other), BeginOutcome::Undecided { .. }));
}

#[test]
fn what_was_approved_of_a_plugin_can_be_taken_back() {
    let store = store();
    let approvals = approvals(&store);
    let ask = |n: usize| ask(&approvals, &action(json!({ "n": n })));
    let (standing, once, unknown) = (ask(1), ask(2), ask(3));
    let always = ApprovalScope::Standing { fixed: None };
    approvals.approve(&standing, always, None, NOW).unwrap();
    approvals.approve(&once, ApprovalScope::Once, None, NOW).unwrap();
    approvals.approve(&unknown, ApprovalScope::Once, None, NOW).unwrap();
    drop(begun(take(&approvals, &action(json!({ "n": 3 })))));
    ask(4);
    assert_eq!(approvals.end_plugin("another", NOW).unwrap(), 0);
    let plugin = approvals.list(NOW).unwrap().pop().unwrap().plugin;
    assert_eq!(approvals.end_plugin(&plugin, NOW).unwrap(), 3);
    assert!(approvals.standing(NOW).unwrap().is_empty());
    let left = approvals.list(NOW).unwrap();
    assert!(matches!(&left[..], [Approval { id, .. }] if *id == unknown), "{left:?}");
    assert_eq!(approvals.undocumented(NOW).unwrap(), [""; 0]);
}

#[test]
fn what_is_decided_meanwhile_is_as_the_log_says() {
    let store = store();
    let (agent, auditor) = (approvals(&store), approvals(&store));
    std::thread::scope(|scope| {
        let decides = scope.spawn(|| {
            let action = action(json!({}));
            for _ in 0..100 {
                agent.approve(&ask(&agent, &action), ApprovalScope::Once, None, NOW).unwrap();
                assert!(is_begun(take(&agent, &action)));
                agent.deny(&ask(&agent, &action), None, NOW).unwrap();
                agent.end_principal("ada", NOW).unwrap();
            }
        });
        while !decides.is_finished() {
            assert_eq!(auditor.undocumented(NOW).unwrap(), [""; 0]);
        }
    });
}

/// Numbers without a pattern that anything depends on: the same at each start.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[test]
fn whatever_is_done_the_log_says_so() {
    let hour = Duration::from_secs(3600);
    for start in 0..8 {
        let (store, mut chance, mut now) = (store(), Chance(start), NOW);
        // The second one dies now and then.
        let all = [approvals(&store), approvals(&store)];
        let mut running = Vec::new();
        let mut done = Vec::new();
        for _ in 0..60 {
            let who = usize::try_from(chance.below(2)).unwrap();
            let approvals = &all[who];
            let action = action(json!({ "n": chance.below(3) }));
            let call = call(&action);
            let listed = approvals.list(now).unwrap();
            let any = chance.below(listed.len().max(1) as u64);
            let id = listed.get(usize::try_from(any).unwrap()).map(|approval| approval.id.clone());
            let always = ApprovalScope::Standing { fixed: None };
            let holds = (chance.below(2) == 0).then_some(hour);
            let step = chance.below(14);
            // What cannot be done is not done.
            match (step, id) {
                (0..=2, _) => drop(approvals.ask(&action, call, now)),
                (3..=4, Some(id)) => drop(approvals.approve(&id, ApprovalScope::Once, holds, now)),
                (5, Some(id)) => drop(approvals.approve(&id, always, holds, now)),
                (6, Some(id)) => drop(approvals.deny(&id, holds.map(|_| "no".into()), now)),
                (7..=8, _) => match approvals.take(&action, &call, now) {
                    Ok(BeginOutcome::Begun(begun)) => running.push((who, begun)),
                    found => drop(found),
                },
                (9, _) => {
                    let scope = if chance.below(2) == 0 { always } else { ApprovalScope::Once };
                    let given = ImmediateApproval { holds, ..given(scope) };
                    match approvals.begin_approved(&action, call, given, now) {
                        Ok(BeginOutcome::Begun(begun)) => running.push((who, begun)),
                        found => drop(found),
                    }
                }
                (10, _) => {
                    let noted = approvals.note_denied(&action, call, None, Decider::Client, now);
                    noted.unwrap();
                }
                (11, _) => match (running.pop(), chance.below(3)) {
                    (Some((_, begun)), 0) => begun.end("ok", now).unwrap(),
                    (Some((_, begun)), 1) => drop(begun),
                    (begun, _) => {
                        begun.into_iter().for_each(forget);
                        running.extract_if(.., |(who, _)| *who == 1).for_each(forget);
                        all[1].lose_lock();
                    }
                },
                (12, _) => {
                    let standing = approvals.standing(now).unwrap().pop();
                    standing.map_or(Ok(()), |of| approvals.deny(&of.id, None, now)).unwrap();
                }
                _ if chance.below(4) == 0 => approvals.end_principal("ada", now).unwrap(),
                _ => now += chance.below(30 * 3_600_000),
            }
            done.push((step, now));
            assert_eq!(approvals.undocumented(now).unwrap(), [""; 0], "{start}: {done:?}");
        }
    }
}
