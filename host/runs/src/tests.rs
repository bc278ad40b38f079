//! What becomes of runs, step by step.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::mem::forget;
use std::sync::Arc;
use tenon_store::{ItemQuota, SqliteStore, Store};

use super::*;

const NOW: u64 = 1_000_000;

fn store() -> Arc<dyn Store> {
    Arc::new(SqliteStore::in_memory().expect("there is memory"))
}

fn runs(store: &Arc<dyn Store>) -> Arc<Runs> {
    Arc::new(Runs::new(store.clone()))
}

fn new_run() -> NewRun {
    NewRun { principal: Some("ada".into()), ..NewRun::new("1", json!({ "n": 1 })) }
}

fn entry(key: &str, call: &str, arguments: Value, answer: Value) -> JournalEntry {
    let digest = JsonDigest::of(&arguments);
    JournalEntry::call(key.into(), call.into(), digest, JournalAnswer::Value(answer.into()), 7)
}

fn paused() -> RunState {
    RunState::Paused {
        approval: "A-1".into(),
        tool: "t".into(),
        key: "3".into(),
        call: None,
        arguments: None,
    }
}

fn resume(runs: &Arc<Runs>, id: &str) -> std::result::Result<(RunHold, Journal), String> {
    let ada = ResumeCaller { principal: Some("ada"), ..ResumeCaller::default() };
    runs.resume(id, ada, NOW).map_err(|error| error.to_string())
}

#[test]
fn a_run_pauses_and_goes_on_elsewhere_with_its_journal() {
    let store = store();
    let (one, other) = (runs(&store), runs(&store));
    let hold = one.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    let id = hold.run().id.clone();
    assert_eq!(one.get(&id.to_lowercase(), NOW).unwrap().unwrap().id, id);
    assert_eq!(resume(&other, &id).unwrap_err(), format!("the run {id} cannot go on: it runs"));
    let entries = [
        entry("1", "files__read", json!({ "a": 1, "b": 2 }), json!("x")),
        JournalEntry::step("2:choice".into(), json!([1])),
    ];
    hold.end(paused(), &entries, NOW).unwrap();
    assert_eq!(other.get(&id, NOW).unwrap().unwrap().state, paused());
    // Nobody else goes on with it.
    for (principal, profile) in [(Some("bob"), None), (None, None), (Some("ada"), Some("p"))] {
        let by = ResumeCaller { principal, profile, ..ResumeCaller::default() };
        let error = other.resume(&id, by, NOW).unwrap_err();
        assert_eq!(error.to_string(), format!("there is no run {id}"));
    }
    let (hold, journal) = resume(&other, &id).unwrap();
    assert_eq!((hold.run().attempts, hold.run().began, journal.len()), (2, NOW, 2));
    assert_eq!(resume(&one, &id).unwrap_err(), format!("the run {id} cannot go on: it runs"));
    let same = JsonDigest::of(&json!({ "b": 2, "a": 1 }));
    let answer = journal.answer("1", "files__read", &same).unwrap();
    assert_eq!(answer, Some(&JournalAnswer::Value(json!("x").into())));
    assert_eq!(
        journal.step("2", "choice").unwrap(),
        Some(&JournalAnswer::Value(json!([1]).into()))
    );
    assert_eq!(journal.answer("3", "files__read", &same).unwrap(), None);
    let done = RunState::Done { value: json!(1), printed: "p".into() };
    hold.end(done.clone(), &[entry("3", "t", json!({}), json!(2))], NOW).unwrap();
    assert_eq!(one.journal(&id).unwrap().len(), 3);
    assert_eq!(one.get(&id, NOW).unwrap().unwrap().state, done);
    assert_eq!(resume(&one, &id).unwrap_err(), format!("the run {id} cannot go on: it has ended"));
}

#[test]
fn a_journal_that_is_missing_or_shorter_is_not_gone_on_with() {
    let store = store();
    let runs = runs(&store);
    let entries = [entry("1", "a", json!({}), json!(1))];
    let pause = || {
        let hold = runs.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
        let id = hold.run().id.clone();
        (id, hold.end(paused(), &entries, NOW).unwrap())
    };
    let (id, run) = pause();
    assert!(runs.is_as_written(&run).unwrap());
    store.remove_log(&format!("run/{id}")).unwrap();
    assert!(!runs.is_as_written(&run).unwrap());
    assert!(resume(&runs, &id).unwrap_err().contains("is damaged"));
    // One that goes on is known to be longer.
    let (id, _) = pause();
    let (hold, _) = resume(&runs, &id).unwrap();
    runs.note(&id, &entries, NOW).unwrap();
    let run = hold.end(paused(), &entries, NOW).unwrap();
    assert!(runs.is_as_written(&run).unwrap());
    let ended = UnsavedRun::new("R-1".into(), new_run(), NOW, RunState::Unknown, entries.to_vec());
    runs.keep(&[ended], NOW).unwrap();
    let kept = runs.get("R-1", NOW).unwrap().unwrap();
    assert!(kept.journal.is_some() && runs.is_as_written(&kept).unwrap());
}

#[test]
fn what_a_script_does_otherwise_is_told_with_its_place() {
    let journal: Journal = [entry("1", "a", json!({ "x": 1 }), json!(1))].into_iter().collect();
    let differs = |call: &str, arguments: Value| {
        let digest = JsonDigest::of(&arguments);
        journal.answer("1", call, &digest).unwrap_err().to_string()
    };
    let begin = "the script does not do again what it did before, at 1: ";
    assert_eq!(differs("b", json!({ "x": 1 })), format!("{begin}it called a before, and b now"));
    assert_eq!(
        differs("a", json!({ "x": 2 })),
        format!("{begin}it called a with other arguments before")
    );
    let mut new = NewEntries::after(&journal);
    new.push(entry("2", "b", json!({}), json!("x".repeat(500_000))));
    assert_eq!(new.left_out(), None);
    new.push(entry("1", "a", json!({}), json!("x".repeat(600_000))));
    assert_eq!(new.left_out(), Some("a"));
    let long = new.take().pop().unwrap();
    assert!(matches!(long.answer, JournalAnswer::TooLong(_)));
    // Nor is there room for many that are shorter.
    for number in 0..20 {
        new.push(entry(&number.to_string(), "b", json!({}), json!("x".repeat(500_000))));
    }
    let all = new.take();
    new.push(entry("last", "b", json!({}), json!(1)));
    new.put_back(all);
    let mut all = new.take();
    assert_eq!(all.pop().unwrap().key, "last");
    let is_kept = |entry: &&JournalEntry| matches!(entry.answer, JournalAnswer::Value(_));
    assert_eq!((all.len(), all.iter().filter(is_kept).count()), (20, 15));
    let unknown =
        JournalEntry { answer: JournalAnswer::Unknown, ..entry("1", "a", json!({}), json!(1)) };
    let journal: Journal = [unknown].into_iter().collect();
    let digest = JsonDigest::of(&json!({}));
    let error = journal.answer("1", "a", &digest).unwrap_err().to_string();
    assert_eq!(error, format!("{begin}how the call of a ended is not known"));
    let journal: Journal = [long].into_iter().collect();
    let error = journal.answer("1", "a", &digest).unwrap_err().to_string();
    assert_eq!(error, format!("{begin}the answer of a was too long to be kept"));
}

#[test]
fn what_a_script_does_of_another_kind_at_a_place_is_told_as_well() {
    let call = |key: &str| entry(key, "a", json!({}), json!(1));
    let step = |key: &str| JournalEntry::step(key.to_string(), json!(1));
    let digest = JsonDigest::of(&json!({}));
    // What is done at place 1: a call, a step `s`, functions beside each other.
    let now = |before: &[JournalEntry]| {
        let journal: Journal = before.iter().cloned().collect();
        let call = journal.answer("1", "a", &digest).map(drop);
        let all = [call, journal.step("1", "s").map(drop), journal.check_parallel("1")];
        all.map(|checked| checked.err().map_or("as before".to_string(), |of| of.why))
    };
    let before = |what: &str, now: &str| format!("it called {what} before, and {now} now");
    let (the_step, parallel) = ("the step \"s\"", "`parallel`");
    let same = || "as before".to_string();
    assert_eq!(now(&[]), [same(), same(), same()]);
    assert_eq!(now(&[call("1")]), [same(), before("a", the_step), before("a", parallel)]);
    // It has ended, or has not.
    for of_step in [[step("1:s"), call("1:s.1")], [call("1:s.1"), call("1:s.2")]] {
        assert_eq!(now(&of_step), [before(the_step, "a"), same(), before(the_step, parallel)]);
    }
    assert_eq!(now(&[step("1:other")])[1], before("the step \"other\"", the_step));
    let of_parallel = now(&[call("1.0.1")]);
    assert_eq!(of_parallel, [before(parallel, "a"), before(parallel, the_step), same()]);
    // Other places are others.
    assert_eq!(now(&[call("10.0.1"), step("11:x"), call("2.1.1")]), [same(), same(), same()]);
}

#[test]
fn what_a_script_does_not_do_again_is_told() {
    let journal: Journal = [
        entry("1", "a", json!({}), json!(1)),
        JournalEntry::step("2:s".into(), json!(1)),
        entry("2:s.1", "b", json!({}), json!(1)),
        entry("3.0.1", "c", json!({}), json!(1)),
    ]
    .into_iter()
    .collect();
    let left = |done: &[&str]| {
        let done = done.iter().map(|place| (*place).to_string()).collect();
        journal.check_all_done(&done).map_err(|mismatch| mismatch.key)
    };
    assert_eq!(left(&["1", "2:s", "3.0.1"]), Ok(()));
    assert_eq!(left(&["1", "2:s", "3.0.1", "4"]), Ok(()));
    assert_eq!(left(&["2:s", "3.0.1"]), Err("1".into()));
    assert_eq!(left(&["1", "2:s.1", "3.0.1"]), Err("2:s".into()));
    assert_eq!(left(&["1", "2:s"]), Err("3.0.1".into()));
}

#[test]
fn each_call_is_noted_with_the_digest_of_its_result() {
    let mut new = NewEntries::after(&Journal::default());
    new.push(entry("1", "a", json!({}), json!({ "b": 1, "a": 2 })));
    new.push(entry("2", "a", json!({}), json!("x".repeat(600_000))));
    let [kept, long] = &new.take()[..] else { panic!("both are noted") };
    assert_eq!(kept.result, Some(JsonDigest::of(&json!({ "a": 2, "b": 1 }))));
    let digest = JsonDigest::of(&json!("x".repeat(600_000)));
    assert_eq!(long.result, Some(digest));
    assert_eq!(long.answer, JournalAnswer::TooLong(digest.to_string()));
    // Where answers have no room any more, calls are noted all the same.
    let mut new = NewEntries::after(&Journal::default());
    for number in 0..10_000 {
        new.push(entry(&number.to_string(), "a", json!({}), json!("x".repeat(2_000))));
    }
    let all = new.take();
    assert_eq!(all.len(), 10_000);
    let is_kept = |entry: &&JournalEntry| matches!(entry.answer, JournalAnswer::Value(_));
    assert!((1_000..9_000).contains(&all.iter().filter(is_kept).count()));
    let written: usize = journal::write(&all).iter().map(Vec::len).sum();
    assert!(written < 12 << 20, "{written}");
}

#[test]
fn the_journals_of_all_runs_that_have_ended_have_a_bound_together() {
    let store: Arc<dyn Store> = store();
    let runs = Arc::new(Runs::with_room_for_journals(store.clone(), 1 << 20));
    let done = || RunState::Done { value: json!(1), printed: String::new() };
    let long =
        |number: u64| entry(&number.to_string(), "a", json!({}), json!("x".repeat(400 << 10)));
    let journals = || store.logs("run/").unwrap().len();
    let hold = runs.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    let pauses = hold.run().id.clone();
    hold.end(paused(), &[long(1), long(2)], NOW).unwrap();
    let ids: Vec<String> = (1..=4).map(|number| format!("R-{number}")).collect();
    for (number, id) in (1..).zip(&ids) {
        let (began, journal) = (NOW + number, vec![long(1)]);
        // One way or the other.
        match number % 2 {
            0 => {
                let ended = UnsavedRun::new(id.clone(), new_run(), began, done(), journal);
                runs.keep(&[ended], began).unwrap();
            }
            _ => {
                let hold = runs.begin(id.clone(), new_run(), began).unwrap();
                hold.end(done(), &journal, began).unwrap();
            }
        }
    }
    let kept = runs.list(NOW + 5).unwrap().into_iter().map(|run| run.id);
    // The oldest of those that have ended are gone, and none that is paused.
    assert_eq!(kept.collect::<Vec<_>>(), [pauses, ids[2].clone(), ids[3].clone()]);
    assert_eq!(journals(), 3);
    // Short ones are not added up.
    let ended = UnsavedRun::new("R-5".into(), new_run(), NOW + 6, done(), vec![]);
    runs.keep(&[ended], NOW + 6).unwrap();
    assert_eq!(runs.list(NOW + 6).unwrap().len(), 4);
}

#[test]
fn a_run_whose_process_died_or_that_nobody_waits_for_is_unknown() {
    let store = store();
    let (one, other) = (runs(&store), runs(&store));
    let hold = one.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    let dropped = hold.run().id.clone();
    drop(hold);
    let hold = one.begin(Runs::new_id().unwrap(), new_run(), NOW + 1).unwrap();
    let killed = hold.run().id.clone();
    forget(hold);
    let states = |at: &Arc<Runs>| -> Vec<&'static str> {
        at.list(NOW).unwrap().iter().map(|run| run.state.as_str()).collect()
    };
    assert_eq!(states(&other), ["unknown", "running"]);
    one.lose_lock();
    assert_eq!(states(&other), ["unknown", "unknown"]);
    for id in [dropped, killed] {
        let why = resume(&other, &id).unwrap_err();
        let expected = format!("the run {id} cannot go on: {}; run it anew", RunState::UNKNOWN);
        assert_eq!(why, expected);
    }
}

#[test]
fn who_was_taken_for_dead_does_not_overrule_that() {
    let store = store();
    let (one, other) = (runs(&store), runs(&store));
    let hold = one.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    let id = hold.run().id.clone();
    one.lose_lock();
    assert_eq!(other.get(&id, NOW).unwrap().unwrap().state, RunState::Unknown);
    let error = hold.end(paused(), &[], NOW).unwrap_err().to_string();
    assert_eq!(error, format!("the run {id} cannot go on: its process was taken for dead"));
    assert_eq!(other.get(&id, NOW).unwrap().unwrap().state, RunState::Unknown);
}

#[test]
fn runs_are_forgotten_with_their_journals() {
    let store = store();
    let runs = runs(&store);
    let hold = runs.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    let id = hold.run().id.clone();
    hold.end(paused(), &[entry("1", "a", json!({}), json!(1))], NOW).unwrap();
    assert_eq!(store.logs("run/").unwrap().len(), 1);
    let week = 7 * 24 * 3600 * 1_000;
    assert!(runs.get(&id, NOW + week - 1).unwrap().is_some());
    assert!(runs.list(NOW + week).unwrap().is_empty());
    assert!(store.logs("run/").unwrap().is_empty());
    // Where there are too many, those that have ended go first.
    let kept = runs.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    for number in 0..1_100 {
        let hold = runs.begin(Runs::new_id().unwrap(), new_run(), NOW + number).unwrap();
        let done = RunState::Done { value: Value::Null, printed: String::new() };
        hold.end(done, &[], NOW).unwrap();
    }
    assert!(runs.list(NOW).unwrap().len() <= 1_000);
    assert!(runs.get(&kept.run().id, NOW).unwrap().is_some());
}

#[test]
fn a_principal_with_too_many_paused_runs_keeps_nobody_else_from_pausing() {
    let store: Arc<dyn Store> = store();
    let runs = Arc::new(Runs::with_room_of_one(store, 2));
    let pause = |principal: &str| {
        let new = NewRun { principal: Some(principal.into()), ..new_run() };
        let hold = runs.begin(Runs::new_id().unwrap(), new, NOW).unwrap();
        let id = hold.run().id.clone();
        (id, hold.end(paused(), &[], NOW).map(drop).map_err(|error| error.to_string()))
    };
    let (first, paused_first) = pause("ada");
    paused_first.unwrap();
    pause("ada").1.unwrap();
    let (third, refused) = pause("ada");
    let refused = refused.unwrap_err();
    assert!(refused.starts_with("2 runs of the same caller are paused"), "{refused}");
    assert!(refused.ends_with("and `tenon runs cancel ID` ends one"), "{refused}");
    let state = runs.get(&third, NOW).unwrap().unwrap().state;
    assert!(matches!(&state, RunState::Failed { code, .. } if code == "limit"), "{state:?}");
    pause("bob").1.unwrap();
    // One that goes on may pause again, and one that is cancelled makes room.
    let (hold, _) = resume(&runs, &first).unwrap();
    hold.end(paused(), &[], NOW).unwrap();
    runs.cancel(&first, NOW).unwrap();
    pause("ada").1.unwrap();
}

#[test]
fn a_cancelled_run_goes_on_no_more() {
    let runs = runs(&store());
    let hold = runs.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    let id = hold.run().id.clone();
    let cancel = |id: &str| runs.cancel(id, NOW).map_err(|error| error.to_string());
    let why = cancel(&id).unwrap_err();
    assert!(why.contains("cannot be cancelled: it runs"), "{why}");
    hold.end(paused(), &[], NOW).unwrap();
    // Its call still waits: whoever cancels it is told under which approval.
    assert_eq!(cancel(&id).unwrap().state, paused());
    assert_eq!(runs.get(&id, NOW).unwrap().unwrap().state.as_str(), "cancelled");
    assert_eq!(resume(&runs, &id).unwrap_err(), format!("the run {id} cannot go on: it has ended"));
    assert!(cancel(&id).unwrap_err().contains("it has ended"));
    assert_eq!(cancel("R-000000000000"), Err("there is no run R-000000000000".into()));
}

#[test]
fn a_run_of_a_project_goes_on_there_only() {
    let runs = runs(&store());
    let new = NewRun { project: Some("/work/a".into()), ..new_run() };
    let hold = runs.begin(Runs::new_id().unwrap(), new, NOW).unwrap();
    let id = hold.run().id.clone();
    hold.end(paused(), &[], NOW).unwrap();
    let resume_in = |id: &str, project: Option<&str>| {
        let by = ResumeCaller { principal: Some("ada"), profile: None, project };
        runs.resume(id, by, NOW).map_err(|error| error.to_string())
    };
    for elsewhere in [None, Some("/work/b")] {
        let error = resume_in(&id, elsewhere).unwrap_err();
        let expected = format!(
            "the run {id} began in the project /work/a, and goes on there only: `tenon run --resume {id}` in that folder"
        );
        assert_eq!(error, expected);
    }
    let (hold, _) = resume_in(&id, Some("/work/a")).unwrap();
    hold.end(RunState::Unknown, &[], NOW).unwrap();
    // Why it goes on nowhere is told everywhere.
    assert!(resume_in(&id, None).unwrap_err().contains("its process died"));
    // One that belongs to none goes on in any, also one that was kept by an older version.
    let hold = runs.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    let id = hold.run().id.clone();
    hold.end(paused(), &[], NOW).unwrap();
    resume_in(&id, Some("/work/b")).unwrap();
}

#[test]
fn a_paused_run_keeps_how_long_it_took_and_which_tools_wait() {
    let store = store();
    let runs = runs(&store);
    let mut hold = runs.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    let id = hold.run().id.clone();
    let waiting = BTreeMap::from([("3".to_string(), "00ff".to_string())]);
    hold.note_pause(7, waiting.clone());
    hold.end(paused(), &[], NOW).unwrap();
    let (hold, _) = resume(&runs, &id).unwrap();
    assert_eq!((hold.run().wall_micros, &hold.run().waiting), (7, &waiting));
    assert!(hold.undo(NOW).unwrap());
    let kept = runs.get(&id, NOW).unwrap().unwrap();
    assert_eq!((kept.wall_micros, &kept.waiting), (7, &waiting));
    // One that an older version has kept says nothing of it.
    let item = store.item("runs", &id).unwrap().unwrap();
    let mut older: Value = serde_json::from_slice(&item.value).unwrap();
    for member in ["wallMicros", "waiting"] {
        assert!(older.as_object_mut().unwrap().remove(member).is_some(), "{member}: {older}");
    }
    let (older, quota) = (older.to_string(), ItemQuota { items: 10, bytes: 1_000 });
    store.put_item("runs", &id, Some(item.version), older.as_bytes(), item.expires, quota).unwrap();
    let (hold, _) = resume(&runs, &id).unwrap();
    assert_eq!((hold.run().wall_micros, hold.run().waiting.len()), (0, 0));
}

#[test]
fn a_damaged_run_keeps_nobody_from_the_others() {
    let store = store();
    let runs = runs(&store);
    let ids = [1, 2].map(|_| {
        let hold = runs.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
        let id = hold.run().id.clone();
        hold.end(paused(), &[], NOW).unwrap();
        id
    });
    let version = store.item("runs", &ids[0]).unwrap().unwrap().version;
    let quota = ItemQuota { items: 10, bytes: 1_000 };
    store.put_item("runs", &ids[0], Some(version), b"{}", None, quota).unwrap();
    let listed: Vec<_> = runs.list(NOW).unwrap().into_iter().map(|run| run.id).collect();
    assert_eq!(listed, ids[1..]);
    assert_eq!(runs.damaged().unwrap(), ids[..1]);
    let damaged = runs.get(&ids[0], NOW).unwrap_err().to_string();
    assert_eq!(damaged, format!("what is kept of the run {} is damaged", ids[0]));
}

#[test]
fn a_run_that_cannot_go_on_here_stays_paused() {
    let store = store();
    let runs = runs(&store);
    let hold = runs.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    let id = hold.run().id.clone();
    hold.end(paused(), &[], NOW).unwrap();
    let before = runs.get(&id, NOW).unwrap().unwrap();
    let (hold, _) = resume(&runs, &id).unwrap();
    assert!(hold.undo(NOW).unwrap());
    assert_eq!(runs.get(&id, NOW).unwrap().unwrap(), before);
    // One that begins has nothing to go back to.
    let hold = runs.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    let id = hold.run().id.clone();
    assert!(!hold.undo(NOW).unwrap());
    assert_eq!(runs.get(&id, NOW).unwrap().unwrap().state, RunState::Unknown);
}

#[test]
fn a_principal_that_ends_leaves_no_run_to_the_next_of_its_name() {
    let store = store();
    let runs = runs(&store);
    let hold = runs.begin(Runs::new_id().unwrap(), new_run(), NOW).unwrap();
    let id = hold.run().id.clone();
    hold.end(paused(), &[], NOW).unwrap();
    runs.end_principal("bob", NOW).unwrap();
    assert_eq!(runs.get(&id, NOW).unwrap().unwrap().state, paused());
    runs.end_principal("ada", NOW).unwrap();
    assert_eq!(resume(&runs, &id).unwrap_err(), format!("the run {id} cannot go on: it has ended"));
}

#[test]
fn a_run_that_is_over_is_kept_at_once_with_its_journal() {
    let store = store();
    let runs = runs(&store);
    let id = Runs::new_id().unwrap();
    let done = RunState::Done { value: json!(7), printed: "p".into() };
    let entries = [entry("1", "a", json!({}), json!(1))];
    let ended = |state: RunState, entries: &[JournalEntry]| {
        UnsavedRun::new(id.clone(), new_run(), NOW, state, entries.to_vec())
    };
    let other = UnsavedRun::new(Runs::new_id().unwrap(), new_run(), NOW, RunState::Unknown, vec![]);
    runs.keep(&[ended(done.clone(), &entries), other], NOW).unwrap();
    assert_eq!(runs.list(NOW).unwrap().len(), 2);
    let run = runs.get(&id, NOW).unwrap().unwrap();
    assert_eq!((run.began, run.attempts, &run.state, &run.of), (NOW, 1, &done, &new_run()));
    assert_eq!(runs.journal(&id).unwrap(), entries);
    assert!(resume(&runs, &id).unwrap_err().contains("it has ended"));
    // It replaces no other.
    let entries = [entry("1", "b", json!({}), json!(2))];
    let third = UnsavedRun::new(Runs::new_id().unwrap(), new_run(), NOW, done.clone(), vec![]);
    assert!(runs.keep(&[third, ended(RunState::Unknown, &entries)], NOW).is_err());
    assert_eq!(runs.list(NOW).unwrap().len(), 2);
    assert_eq!(runs.get(&id, NOW).unwrap().unwrap().state, done);
    assert_eq!(runs.journal(&id).unwrap().len(), 1);
}

#[test]
fn a_run_that_is_too_long_is_kept_without_its_value() {
    let runs = runs(&store());
    let long = "x".repeat(900 << 10);
    let new = || NewRun { script: "s".repeat(200 << 10), ..new_run() };
    let done = RunState::Done { value: long.clone().into(), printed: "p".into() };
    let failed = RunState::Failed { code: "failed".into(), message: long.clone(), printed: long };
    let id = Runs::new_id().unwrap();
    let other = UnsavedRun::new(Runs::new_id().unwrap(), new_run(), NOW, RunState::Unknown, vec![]);
    runs.keep(&[UnsavedRun::new(id.clone(), new(), NOW, done, vec![]), other], NOW).unwrap();
    assert_eq!(runs.list(NOW).unwrap().len(), 2);
    let kept = runs.get(&id, NOW).unwrap().unwrap();
    let RunState::Done { value, .. } = &kept.state else { panic!("{:?}", kept.state) };
    assert_eq!(value, "[too long to be kept]");
    assert_eq!(kept.of, new());
    let hold = runs.begin(Runs::new_id().unwrap(), new(), NOW).unwrap();
    let id = hold.run().id.clone();
    hold.end(failed, &[], NOW).unwrap();
    let RunState::Failed { code, message, .. } = runs.get(&id, NOW).unwrap().unwrap().state else {
        panic!("it has failed")
    };
    assert_eq!((&*code, message.len()), ("failed", 4_096));
}

#[test]
fn what_a_journal_has_no_room_for_is_told() {
    let mut new = NewEntries::after(&Journal::default());
    // A script may do steps without an end.
    for number in 0..100_000 {
        new.push(JournalEntry::step(format!("{number}:step"), Value::Null));
    }
    assert_eq!(new.left_out(), Some("a step"));
    let entries = new.take();
    assert!((10_000..50_000).contains(&entries.len()), "{}", entries.len());
    let written: usize = journal::write(&entries).iter().map(Vec::len).sum();
    assert!(written < 8 << 20, "{written}");
    // Escapes count, and what was written before.
    let mut new = NewEntries::after(&entries.into_iter().take(100).collect());
    let error = JournalAnswer::Error("\"".repeat(300 << 10));
    let digest = JsonDigest::of(&Value::Null);
    new.push(JournalEntry::call("1".into(), "t".into(), digest, error, 1));
    assert_eq!(new.left_out(), Some("t"));
}
