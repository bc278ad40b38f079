//! Runs of scripts: from the command, by MCP clients of profiles that list no tools, and on two hosts with one store.

use serde_json::{Value, json};
use std::sync::Arc;
use tenon_host::runs::{
    CatalogFilter, JournalAnswer, JournalEntry, MAX_RUN_DATA_BYTES, Run, RunError, RunOutcome,
    RunReport, RunState,
};
use tenon_host::services::{
    ApprovalScope, GrantAll, ItemQuota, ItemStore as _, STATE_FILE, SqliteStore,
};
use tenon_host::types::ToolDefinition;
use tenon_host::{Builtin, Caller, Platform};
use tokio::sync::Notify;

use crate::support::{Project, parsed, stderr, stdout};

/// Counts what it was told to write.
const SCRIPT: &str = r#"
    let schema = #{ type: "object", properties: #{ path: #{ type: "string" } }, required: ["path"] };
    tool(#{ name: "write", description: "Writes a note", schema: schema }, |a| `write ${state.increment("writes", 1)}`);
    tool(#{ name: "writes", description: "Counts notes", annotations: #{ read_only: true } }, |a| {
        #{ count: state.get("writes", 0) }
    });
    tool(#{ name: "fail", description: "Fails" }, |a| throw "it is what it does");
"#;

fn project(configuration: &str) -> Project {
    Project::with_notes(configuration, SCRIPT)
}

fn approved(configuration: &str) -> Project {
    project(configuration).approved()
}

const ASK: &str = "tools.notes__write.approve = \"ask\"";

/// A host of the project over a store.
async fn host(project: &Project, store: SqliteStore) -> Platform {
    let builder = project.builder().workspace(project.path("")).store(store).approver(GrantAll);
    builder.build().await.expect("it is built")
}

fn memory() -> SqliteStore {
    SqliteStore::in_memory().expect("there is memory")
}

fn ada() -> Caller {
    Caller { principal: Some("ada".into()), ..Caller::default() }
}

async fn run(platform: &Platform, script: &str) -> RunReport {
    let catalog = Arc::new(platform.catalog(CatalogFilter::default()));
    let runner = platform.runner(&catalog, ada());
    runner.run(script.into(), json!({ "n": 3 })).await.expect("the host works")
}

async fn resume(platform: &Platform, id: &str) -> Result<RunReport, RunError> {
    let catalog = Arc::new(platform.catalog(CatalogFilter::default()));
    platform.runner(&catalog, ada()).resume(id).await
}

fn done(report: &RunReport) -> &Value {
    match &report.outcome {
        RunOutcome::Done(value) => value,
        outcome => panic!("{outcome:?}"),
    }
}

#[tokio::test]
async fn a_script_calls_tools_and_its_result_alone_is_returned() {
    let project = project("");
    let platform = host(&project, memory()).await;
    let report = run(
        &platform,
        "for i in 0..data.n { print(notes.write(#{ path: `${i}` })); }
         try { notes.fail(); } catch (e) { print(`caught ${e}`); }
         notes.writes().count",
    )
    .await;
    assert_eq!(done(&report), &json!(3));
    assert_eq!(report.printed, "write 1\nwrite 2\nwrite 3\ncaught it is what it does\n");
    assert_eq!(report.usage.calls, 5);
    let called: Vec<String> = report.called.iter().map(ToString::to_string).collect();
    assert_eq!(called, ["notes__write (3 times)", "notes__fail", "notes__writes"]);
    // What it called is in the record as any call is.
    let found = run(&platform, "tools.search(\"path\")[0]").await;
    let expected = json!({ "signature": "notes.write(#{ path: string })", "description": "Writes a note", "name": "notes__write" });
    assert_eq!(done(&found), &expected);
    let described = run(&platform, "tools.describe(\"notes.writes\").description").await;
    assert_eq!(done(&described), &json!("Counts notes"));
    let wrong = run(&platform, "notes.write(#{ pth: 1 })").await;
    let RunOutcome::Failed { code, message } = &wrong.outcome else { panic!("{wrong:?}") };
    assert_eq!(code, "invalid-script");
    assert!(
        message.contains("`notes.write` has no argument `pth`; did you mean `path`?"),
        "{message}"
    );
    platform.shutdown().await;
}

#[tokio::test]
async fn a_run_pauses_for_an_approval_and_goes_on_where_it_was() {
    let project = project(ASK);
    let platform = host(&project, memory()).await;
    let script = "
        let before = notes.writes().count;
        let chosen = step(\"choice\", || \"/a\");
        let first = try_write(chosen);
        let second = notes.write(#{ path: \"/b\" });
        [before, first, second, notes.writes().count]
        fn try_write(path) { notes.write(#{ path: path }) }
    ";
    let script = script.replace("[before", "return [before").replace("count]", "count];");
    let paused = run(&platform, &script).await;
    let RunOutcome::Paused { approval, tool, message } = &paused.outcome else {
        panic!("{paused:?}")
    };
    assert_eq!(tool, "notes__write");
    assert!(message.contains(r#"it would be called with {"path":"/a"}"#), "{message}");
    // Nothing is approved yet: it pauses again, at the same call.
    let again = resume(&platform, &paused.id).await.unwrap();
    assert_eq!(again.outcome, paused.outcome);
    platform.approve_call(approval, ApprovalScope::Once, None).await.unwrap();
    let second = resume(&platform, &paused.id).await.unwrap();
    let RunOutcome::Paused { approval, message, .. } = &second.outcome else {
        panic!("{second:?}")
    };
    assert!(message.contains(r#"{"path":"/b"}"#), "{message}");
    // Another one does not get it.
    let catalog = Arc::new(platform.catalog(CatalogFilter::default()));
    let other = platform.runner(&catalog, Caller::default()).resume(&paused.id).await;
    assert!(matches!(other, Err(RunError::NotFound(_))));
    platform.approve_call(approval, ApprovalScope::Once, None).await.unwrap();
    let last = resume(&platform, &paused.id).await.unwrap();
    assert_eq!(done(&last), &json!([0, "write 1", "write 2", 2]));
    // How it ended is written after it was answered.
    let error = loop {
        match resume(&platform, &paused.id).await.unwrap_err().to_string() {
            error if error.ends_with("it runs") => tokio::task::yield_now().await,
            error => break error,
        }
    };
    assert_eq!(error, format!("the run {} cannot go on: it has ended", paused.id));
    platform.shutdown().await;
}

/// A host with a tool that never answers, and what says that it was called.
async fn host_that_hangs(configuration: &str) -> (Project, Platform, Arc<Notify>) {
    let project = project(configuration);
    let called = Arc::new(Notify::new());
    let calls = called.clone();
    let hang = Builtin::new("slow", "Is slow").tool(
        ToolDefinition::new("hang", "Never answers", &json!({ "type": "object" })),
        move |_, _| {
            calls.notify_one();
            std::future::pending()
        },
    );
    let builder = project.builder().workspace(project.path("")).store(memory());
    let platform = builder.builtin("slow", hang).approver(GrantAll).build().await;
    (project, platform.expect("it is built"), called)
}

/// The run that has ended so.
async fn ended(platform: &Platform, is_ended: impl Fn(&RunState) -> bool) -> Run {
    loop {
        let runs = platform.runs().await.expect("the store works");
        if let Some(run) = runs.into_iter().find(|run| is_ended(&run.state)) {
            return run;
        }
        tokio::task::yield_now().await;
    }
}

/// The calls in the journal of a run, and whether it is known how they ended.
async fn journal(platform: &Platform, id: &str) -> Vec<(String, bool)> {
    let (_, journal) = platform.run(id).await.expect("the store works").expect("it is kept");
    let is_known = |entry: &JournalEntry| !matches!(entry.answer, JournalAnswer::Unknown);
    let call = |entry: JournalEntry| {
        let known = is_known(&entry);
        (entry.call.map_or_else(String::new, |call| call.to_string()), known)
    };
    journal.into_iter().map(call).collect()
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_known_to_be_unknown() {
    let (_project, platform, called) = host_that_hangs("").await;
    let catalog = Arc::new(platform.catalog(CatalogFilter::default()));
    let runner = platform.runner(&catalog, ada());
    let script = "notes.writes(); slow.hang();";
    tokio::select! {
        report = runner.run(script.into(), json!({})) => panic!("{report:?}"),
        () = called.notified() => {}
    }
    // The thread of the script is the last that has it.
    let run = ended(&platform, |state| *state == RunState::Unknown).await;
    assert_eq!((run.of.script.as_str(), run.of.principal.as_deref()), (script, Some("ada")));
    let calls = [("notes__writes".to_string(), true), ("slow__hang".to_string(), false)];
    assert_eq!(journal(&platform, &run.id).await, calls);
    let error = resume(&platform, &run.id).await.expect_err("it cannot go on");
    assert!(error.to_string().contains("is not known"), "{error}");
    platform.shutdown().await;
}

#[tokio::test]
async fn a_run_that_is_given_up_between_calls_has_left_nothing_unknown() {
    let (_project, platform, _) = host_that_hangs("").await;
    let catalog = Arc::new(platform.catalog(CatalogFilter::default()));
    let asked = Arc::new(Notify::new());
    let asks = asked.clone();
    let runner = platform.runner(&catalog, ada()).admitting(move |tool| {
        if tool == "slow__hang" {
            asks.notify_one();
            return Err("not now".into());
        }
        Ok(())
    });
    let script = "notes.writes(); try { slow.hang(); } catch {} loop {}";
    tokio::select! {
        report = runner.run(script.into(), json!({})) => panic!("{report:?}"),
        () = asked.notified() => {}
    }
    let is_cancelled =
        |state: &RunState| matches!(state, RunState::Failed { code, .. } if code == "cancelled");
    let run = ended(&platform, is_cancelled).await;
    let calls = journal(&platform, &run.id).await;
    assert_eq!(calls[0], ("notes__writes".to_string(), true));
    assert!(calls.iter().all(|(_, known)| *known), "{calls:?}");
    platform.shutdown().await;
}

#[tokio::test]
async fn a_run_out_of_time_says_which_call_it_left() {
    let (_project, platform, _) = host_that_hangs("runs.wall = \"3s\"").await;
    let report = run(&platform, "notes.writes(); slow.hang();").await;
    let RunOutcome::Failed { code, message } = &report.outcome else { panic!("{report:?}") };
    assert_eq!(code, "limit");
    let expected =
        "it took longer than 3s (`runs.wall`); how the call of slow__hang ended is not known";
    assert_eq!(message, expected);
    assert_eq!(report.usage.calls, 2);
    let called: Vec<String> = report.called.iter().map(ToString::to_string).collect();
    assert_eq!(called, ["notes__writes", "slow__hang"]);
    let calls = [("notes__writes".to_string(), true), ("slow__hang".to_string(), false)];
    assert_eq!(journal(&platform, &report.id).await, calls);
    platform.shutdown().await;
}

#[tokio::test]
async fn what_a_run_has_done_is_seen_while_it_goes_on() {
    let (_project, platform, called) = host_that_hangs("").await;
    let catalog = Arc::new(platform.catalog(CatalogFilter::default()));
    let runner = platform.runner(&catalog, ada());
    let going = runner.run("notes.writes(); slow.hang();".into(), json!({}));
    let seen = async {
        called.notified().await;
        let run = ended(&platform, |state| matches!(state, RunState::Running { .. })).await;
        loop {
            let calls = journal(&platform, &run.id).await;
            if !calls.is_empty() {
                return calls;
            }
            tokio::task::yield_now().await;
        }
    };
    let calls = tokio::select! {
        report = going => panic!("{report:?}"),
        calls = seen => calls,
    };
    assert_eq!(calls, [("notes__writes".to_string(), true)]);
    platform.shutdown().await;
}

#[tokio::test]
async fn an_approval_may_be_for_the_rest_of_a_run() {
    let project = project(ASK);
    let platform = host(&project, memory()).await;
    let script = "for i in 0..3 { notes.write(#{ path: `${i}` }); } notes.writes().count";
    let paused = run(&platform, script).await;
    let RunOutcome::Paused { approval, .. } = &paused.outcome else { panic!("{paused:?}") };
    let scope = ApprovalScope::Run { fixed: Some(vec![]) };
    platform.approve_call(approval, scope, None).await.unwrap();
    assert_eq!(done(&resume(&platform, &paused.id).await.unwrap()), &json!(3));
    // Another run is another matter.
    let other = run(&platform, script).await;
    assert!(matches!(other.outcome, RunOutcome::Paused { .. }), "{other:?}");
    platform.shutdown().await;
}

#[tokio::test]
async fn what_was_answered_beside_a_call_that_waits_is_not_asked_again() {
    let project = project(ASK);
    let platform = host(&project, memory()).await;
    // What a plugin answers is journalled; what it counts in the meantime is not asked again.
    let paused =
        run(&platform, "parallel([|| notes.write(#{ path: \"/a\" }), || notes.writes()]); 1").await;
    let RunOutcome::Paused { approval, .. } = &paused.outcome else { panic!("{paused:?}") };
    platform.approve_call(approval, ApprovalScope::Once, None).await.unwrap();
    assert_eq!(done(&resume(&platform, &paused.id).await.unwrap()), &json!(1));
    assert_eq!(done(&run(&platform, "notes.writes().count").await), &json!(1));
    platform.shutdown().await;
}

#[test]
fn the_command_runs_pauses_and_resumes() {
    let project = approved(ASK);
    project.write("s.rhai", "let n = notes.writes().count; notes.write(#{ path: data.path }); [n, notes.writes().count]");
    let data = r#"{"path": "/a"}"#;
    let output = project.tenon(&["--json", "run", "s.rhai", "--data", data]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let paused = parsed(&output);
    let (id, approval) =
        (paused["id"].as_str().unwrap(), paused["paused"]["approval"].as_str().unwrap());
    let listed = stdout(&project.tenon(&["runs"]));
    assert!(
        listed.starts_with(id) && listed.contains(&format!("paused for {approval} (notes__write)")),
        "{listed}"
    );
    assert!(project.tenon(&["approve", approval, "--yes"]).status.success());
    let resumed = project.tenon(&["run", "--resume", id]);
    assert_eq!(stdout(&resumed), "[\n  0,\n  1\n]\n", "{}", stderr(&resumed));
    let shown = stdout(&project.tenon(&["runs", "show", id]));
    for part in [
        "  done\n",
        "script:\n  let n",
        "data: {\"path\":\"/a\"}",
        "  1  notes__writes  ",
        "  2  notes__write  ",
        "result: [0,1]",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let missing = project.tenon(&["run", "--resume", "R-000000000000"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("there is no run R-000000000000"));
    let wrong = project.tenon(&["run", "-"]);
    // Nothing is a script, too.
    assert_eq!(stdout(&wrong), "null\n");
}

#[test]
fn a_run_becomes_a_plugin_that_is_approved_as_any_other() {
    let project = approved("");
    let script = "// Writes notes.\nfn path(n) { `/${n}` }\nlet all = [];\nfor i in 0..data.n { all += [|| notes.write(#{ path: path(i) })]; }\nparallel(all);\nnotes.writes().count";
    project.write("s.rhai", script);
    let report = parsed(&project.tenon(&["--json", "run", "s.rhai", "--data", r#"{"n": 2}"#]));
    let (id, name) = (report["id"].as_str().unwrap(), &["--name", "count-notes"][..]);
    let promote = |more: &[&str]| {
        let arguments = [&["runs", "promote", id][..], name, more].concat();
        project.tenon(&arguments)
    };
    let promoted = promote(&[]);
    assert!(promoted.status.success(), "{}", stderr(&promoted));
    // What is there already stays.
    let again = promote(&[]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("count-notes is there already"), "{}", stderr(&again));
    let manifest = std::fs::read_to_string(project.path("count-notes/plugin.toml")).unwrap();
    for part in ["description = \"Writes notes.\"", "tools = [\"notes__write\", \"notes__writes\"]"]
    {
        assert!(manifest.contains(part), "{manifest}");
    }
    let installed = project.tenon(&["install", "./count-notes"]);
    assert!(installed.status.success(), "{}", stderr(&installed));
    let tool = ["call", "count-notes__run", r#"{"n": 3}"#];
    let refused = project.tenon(&tool);
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    assert!(project.tenon(&["approve", "count-notes", "--yes"]).status.success());
    let called = project.tenon(&tool);
    assert_eq!(stdout(&called), "5\n", "{}", stderr(&called));
    let wrong = project.tenon(&["call", "count-notes__run", "{}"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
    // A run that has not ended well is not made one.
    project.write("f.rhai", "notes.write(#{ path: \"/\" }); throw \"no\"");
    let failed = parsed(&project.tenon(&["--json", "run", "f.rhai"]));
    let arguments = ["runs", "promote", failed["id"].as_str().unwrap(), "--name", "other"];
    let refused = project.tenon(&arguments);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("is failed"), "{}", stderr(&refused));
    assert!(!project.path("other").exists());
}

#[test]
fn a_run_that_cannot_go_on_here_stays_paused_and_says_how_it_was_begun() {
    let project = approved("");
    project.write("c.toml", "plugins.folders = [\"own\"]\ntools.notes__write.approve = \"ask\"\n");
    project.write("empty/tenon.toml", "");
    project.write("s.rhai", "notes.write(#{ path: \"/a\" })");
    let begun = project.tenon(&["--config", "c.toml", "run", "s.rhai"]);
    let said = stderr(&begun);
    assert!(said.contains("`tenon --config c.toml run --resume R-"), "{said}");
    let runs = parsed(&project.tenon(&["--json", "runs"]));
    let (id, approval) = (runs[0]["id"].as_str().unwrap(), runs[0]["approval"].as_str().unwrap());
    assert!(project.tenon(&["approve", approval, "--yes"]).status.success());
    let elsewhere = project.tenon(&["--project", "empty", "run", "--resume", id]);
    assert_eq!(elsewhere.status.code(), Some(2));
    let said = stderr(&elsewhere);
    assert!(said.contains("no plugin `notes`") && said.contains("still paused"), "{said}");
    let resumed = project.tenon(&["--config", "c.toml", "run", "--resume", id]);
    assert_eq!(stdout(&resumed), "write 1\n", "{}", stderr(&resumed));
}

#[test]
fn a_journal_that_was_changed_is_found_and_not_gone_on_with() {
    let project = approved(
        "[[tools.notes__write.when]]\napprove = \"ask\"\narguments.\"/path\".equals = \"/b\"\n",
    );
    let script = "let one = notes.write(#{ path: \"/a\" }); notes.write(#{ path: \"/b\" }); one";
    project.write("s.rhai", script);
    let paused = parsed(&project.tenon(&["--json", "run", "s.rhai"]));
    let id = paused["id"].as_str().unwrap();
    assert_eq!(parsed(&project.tenon(&["--json", "history", "verify"]))["runs"]["checked"], 1);
    let file = project.path("state/tenon").join(STATE_FILE);
    let mut bytes = std::fs::read(&file).unwrap();
    let answer = b"\"write 1\"";
    let places: Vec<usize> =
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(answer)).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[at + 7] = b'9');
    std::fs::write(&file, bytes).unwrap();
    let verified = project.tenon(&["history", "verify"]);
    assert_eq!(verified.status.code(), Some(1));
    let said = stdout(&verified);
    assert!(said.contains(&format!("somebody has changed what is kept of {id}")), "{said}");
    let approval = paused["paused"]["approval"].as_str().unwrap();
    assert!(project.tenon(&["approve", approval, "--yes"]).status.success());
    let resumed = project.tenon(&["run", "--resume", id]);
    assert_eq!(resumed.status.code(), Some(5));
    assert!(stderr(&resumed).contains("is damaged"), "{}", stderr(&resumed));
}

#[test]
fn a_paused_run_says_what_it_waits_for_and_can_be_cancelled() {
    let project = approved(ASK);
    project.write("s.rhai", "notes.write(#{ path: \"/a\" })");
    let paused = parsed(&project.tenon(&["--json", "run", "s.rhai"]));
    let (id, approval) =
        (paused["id"].as_str().unwrap(), paused["paused"]["approval"].as_str().unwrap());
    let said = |args: &[&str], expected: &str| {
        let output = project.tenon(args);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(said.contains(expected), "{args:?}: {said}");
    };
    let message = paused["paused"]["message"].as_str().unwrap();
    assert!(message.ends_with(&format!("and then the run {id} can be resumed")), "{message}");
    said(&["runs"], &format!("paused for {approval} (notes__write)"));
    said(&["runs", "show", id], &format!("`tenon approve {approval}`"));
    said(&["pending"], &format!("run: {id}"));
    said(&["approve", "--all"], "one call waits, which is approved by its id");
    said(
        &["approve", approval, "--yes"],
        &format!("`tenon run --resume {id}` goes on with the run"),
    );
    said(&["runs"], &format!("paused, {approval} (notes__write) is approved"));
    said(&["runs", "show", id], &format!("is approved; `tenon run --resume {id}` goes on"));
    said(&["deny", approval], "is denied");
    said(&["runs"], &format!("paused, {approval} (notes__write) is denied"));
    said(&["runs", "cancel", &id.to_lowercase()], &format!("{id} is cancelled"));
    said(&["runs", "show", id], "cancelled: an operator cancelled it");
    said(&["runs", "cancel", id], "cannot be cancelled: it has ended");
    said(&["run", "--resume", id], "cannot go on: it has ended");
}

#[tokio::test]
async fn an_embedder_cancels_a_run() {
    let platform = host(&project(ASK), memory()).await;
    let paused = run(&platform, "notes.write(#{ path: \"/a\" })").await;
    platform.cancel_run(&paused.id).await.unwrap();
    let error = resume(&platform, &paused.id).await.unwrap_err().to_string();
    assert!(error.ends_with("it has ended"), "{error}");
    platform.shutdown().await;
}

#[tokio::test]
async fn data_that_could_not_be_kept_is_refused_at_once() {
    let platform = host(&project(ASK), memory()).await;
    let catalog = Arc::new(platform.catalog(CatalogFilter::default()));
    let runner = platform.runner(&catalog, ada());
    let script = "notes.write(#{ path: \"/a\" })";
    let run = async |bytes: usize| {
        // With its quotation marks.
        let data = json!("x".repeat(bytes - 2));
        runner.run(script.into(), data).await.unwrap().outcome
    };
    let RunOutcome::Failed { code, message } = run(MAX_RUN_DATA_BYTES + 1).await else {
        panic!("it is too long")
    };
    assert_eq!((&*code, &*message), ("invalid-input", "`data` is longer than 524288 bytes"));
    let longest = run(MAX_RUN_DATA_BYTES).await;
    assert!(matches!(longest, RunOutcome::Paused { .. }), "{longest:?}");
    platform.shutdown().await;
}

#[tokio::test]
async fn what_is_done_once_stays_so_where_a_tool_is_gone_or_new_by_then() {
    let ask = "[[tools.notes__write.when]]\napprove = \"ask\"\narguments.\"/path\".equals = \"/a\"";
    let looks = [
        "call_tool(\"news__\" + \"latest\", #{})",
        "tools.describe(\"news__\" + \"latest\").description",
    ];
    let pays = ["step(\"pay\", || pay())", "parallel([|| pay()])[0]"];
    for (look, pay) in looks.iter().flat_map(|look| pays.map(|pay| (look, pay))) {
        let script = format!(
            "fn pay() {{ notes.write(#{{ path: \"/pay\" }}) }}
             let seen = \"\"; try {{ seen = {look}; }} catch (error) {{ seen = \"none\"; }}
             let paid = {pay}; notes.write(#{{ path: \"/a\" }}); [seen, paid]"
        );
        for is_there_first in [true, false] {
            let project = project(ask);
            let open = || SqliteStore::open(project.path("own.db")).expect("it is opened");
            let set_news = |is_there: bool| match is_there {
                true => {
                    let tool = "tool(#{ name: \"latest\", description: \"news\" }, |a| \"news\")";
                    project.write("own/news/news.rhai", tool);
                    let manifest =
                        "plugin.id = \"news\"\nruntime = { kind = \"rhai\", path = \"news.rhai\" }";
                    project.write("own/news/plugin.toml", manifest);
                }
                false => drop(std::fs::remove_dir_all(project.path("own/news"))),
            };
            set_news(is_there_first);
            let platform = host(&project, open()).await;
            let paused = run(&platform, &script).await;
            let RunOutcome::Paused { approval, .. } = &paused.outcome else {
                panic!("{script}: {paused:?}")
            };
            platform.approve_call(approval, ApprovalScope::Once, None).await.unwrap();
            platform.shutdown().await;
            set_news(!is_there_first);
            let platform = host(&project, open()).await;
            let resumed = resume(&platform, &paused.id).await.unwrap();
            let seen = if is_there_first { "news" } else { "none" };
            assert_eq!(done(&resumed), &json!([seen, "write 1"]), "{script}");
            assert_eq!(done(&run(&platform, "notes.writes().count").await), &json!(2));
            platform.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_call_that_waited_for_a_tool_that_is_gone_leaves_the_run_paused() {
    let project = project("tools.news__latest.approve = \"ask\"");
    let manifest = "plugin.id = \"news\"\nruntime = { kind = \"rhai\", path = \"news.rhai\" }";
    let tool = "tool(#{ name: \"latest\", description: \"news\" }, |a| \"news\")";
    let set_up = || {
        project.write("own/news/news.rhai", tool);
        project.write("own/news/plugin.toml", manifest);
    };
    set_up();
    let open = || SqliteStore::open(project.path("own.db")).expect("it is opened");
    let platform = host(&project, open()).await;
    let paused = run(&platform, "call_tool(\"news__\" + \"latest\", #{})").await;
    let RunOutcome::Paused { approval, .. } = &paused.outcome else { panic!("{paused:?}") };
    platform.approve_call(approval, ApprovalScope::Once, None).await.unwrap();
    platform.shutdown().await;
    std::fs::remove_dir_all(project.path("own/news")).unwrap();
    let platform = host(&project, open()).await;
    let resumed = resume(&platform, &paused.id).await.unwrap();
    let RunOutcome::Failed { code, message } = &resumed.outcome else { panic!("{resumed:?}") };
    assert_eq!(code, "diverged");
    let gone = "the call of news__latest waited for an approval, and here there is no tool \"news__latest\"";
    assert!(message.starts_with(gone) && message.contains("still paused"), "{message}");
    platform.shutdown().await;
    set_up();
    let platform = host(&project, open()).await;
    assert_eq!(done(&resume(&platform, &paused.id).await.unwrap()), &json!("news"));
    platform.shutdown().await;
}

#[tokio::test]
async fn no_script_goes_on_where_nobody_can_be_asked_about_a_call() {
    let project = project(ASK);
    let platform = host(&project, memory()).await;
    // Nobody could see what it would do.
    let long = "let path = \"x\"; path.pad(300000, 'x');";
    for end in ["", "notes.fail(); 1"] {
        let script = format!("{long} try {{ notes.write(#{{ path: path }}) }} catch {{ 2 }} {end}");
        let report = run(&platform, &script).await;
        let RunOutcome::Failed { code, message } = &report.outcome else { panic!("{report:?}") };
        assert_eq!(code, "approval-required", "{message}");
        assert!(message.contains("its arguments are too long to be shown"), "{message}");
        assert!(report.called.is_empty(), "{report:?}");
    }
    assert_eq!(done(&run(&platform, "notes.writes().count").await), &json!(0));
    platform.shutdown().await;
}

/// The command counts what its threads hold.
#[test]
fn what_a_script_holds_in_no_variable_is_bounded_as_well() {
    let project = approved("");
    let make = "fn make() { let a = []; a.pad(100000, 1); a }";
    let many = |times: usize| vec!["make()"; times].join(", ");
    for script in [
        format!("{make} nowhere({})", many(450)),
        format!("{make} fn f(n) {{ if n > 0 {{ nowhere({}, f(n - 1)) }} }} f(40)", many(15)),
        format!("{make} parallel([|| nowhere({}), || nowhere({})])", many(300), many(300)),
    ] {
        project.write("s.rhai", &script);
        let output = project.tenon(&["run", "s.rhai"]);
        assert!(!output.status.success());
        let limit = "it reached its limit of 256 MiB for what its variables hold";
        assert!(stderr(&output).contains(limit), "{}", stderr(&output));
    }
    project
        .write("s.rhai", format!("{make} let n = 0; for i in 0..500 {{ n += make().len(); }} n"));
    assert_eq!(stdout(&project.tenon(&["run", "s.rhai"])), "50000000\n");
}

#[tokio::test]
async fn a_run_that_ends_without_all_that_it_did_before_says_so() {
    let project = project(ASK);
    let file = project.path("own.db");
    let open = || SqliteStore::open(&file).expect("it is opened");
    let platform = host(&project, open()).await;
    let script = "if data.n == 3 { notes.write(#{ path: \"/a\" }); } 7";
    let paused = run(&platform, script).await;
    assert!(matches!(paused.outcome, RunOutcome::Paused { .. }), "{paused:?}");
    // As if the script had come to something else.
    change_kept(&open(), &paused.id, |kept| kept["data"]["n"] = 4.into());
    let resumed = resume(&platform, &paused.id).await.unwrap();
    let RunOutcome::Failed { code, message } = &resumed.outcome else { panic!("{resumed:?}") };
    assert_eq!(code, "diverged");
    let told = "at 1: it paused for notes__write before, and has ended without that now";
    assert!(message.contains(told), "{message}");
    assert_eq!(done(&run(&platform, "notes.writes().count").await), &json!(0));
    platform.shutdown().await;
}

/// Changes what a store keeps of a run.
fn change_kept(store: &SqliteStore, id: &str, change: impl FnOnce(&mut Value)) {
    let item = store.item("runs", id).unwrap().unwrap();
    let mut kept: Value = serde_json::from_slice(&item.value).unwrap();
    change(&mut kept);
    let (value, version) = (kept.to_string().into_bytes(), Some(item.version));
    let quota = ItemQuota { items: 10, bytes: 100_000 };
    store.put_item("runs", id, version, &value, item.expires, quota).unwrap();
}

#[tokio::test]
async fn a_run_that_makes_another_call_than_it_paused_for_is_ended() {
    let project = project(ASK);
    let file = project.path("own.db");
    let open = || SqliteStore::open(&file).expect("it is opened");
    let platform = host(&project, open()).await;
    let paused = run(&platform, "notes.writes(); notes.write(#{ path: \"/a\" })").await;
    let RunOutcome::Paused { approval, .. } = &paused.outcome else { panic!("{paused:?}") };
    platform.approve_call(approval, ApprovalScope::Once, None).await.unwrap();
    // As if the script had computed other arguments before.
    change_kept(&open(), &paused.id, |kept| {
        assert_eq!(kept["tool"], "notes__write");
        kept["arguments"] = "00".repeat(32).into();
    });
    let resumed = resume(&platform, &paused.id).await.unwrap();
    let RunOutcome::Failed { code, message } = &resumed.outcome else { panic!("{resumed:?}") };
    assert_eq!(code, "diverged");
    assert!(
        message.contains("at 2: it called notes__write with other arguments before"),
        "{message}"
    );
    assert_eq!(done(&run(&platform, "notes.writes().count").await), &json!(0));
    platform.shutdown().await;
}

#[tokio::test]
async fn what_a_script_has_looked_up_stays_the_same_when_it_goes_on() {
    let project = project(ASK);
    let store = SqliteStore::open(project.path("own.db")).expect("it is opened");
    let platform = host(&project, store).await;
    let script = "let found = tools.describe(\"notes.write\").description; notes.write(#{ path: \"/a\" }); found";
    let paused = run(&platform, script).await;
    let RunOutcome::Paused { approval, .. } = &paused.outcome else { panic!("{paused:?}") };
    platform.approve_call(approval, ApprovalScope::Once, None).await.unwrap();
    platform.shutdown().await;
    // Another plugin beside it, and another description of a tool that is not called again.
    let changed = SCRIPT.replace("Writes a note", "Writes another note");
    project.write("own/notes/notes.rhai", &changed);
    let store = SqliteStore::open(project.path("own.db")).expect("it is opened");
    let platform = host(&project, store).await;
    let resumed = resume(&platform, &paused.id).await.unwrap();
    // The plugin is another now, so that its call is asked about again: what was found before is in the journal.
    let RunOutcome::Paused { approval, .. } = &resumed.outcome else { panic!("{resumed:?}") };
    platform.approve_call(approval, ApprovalScope::Once, None).await.unwrap();
    assert_eq!(done(&resume(&platform, &paused.id).await.unwrap()), &json!("Writes a note"));
    platform.shutdown().await;
}

#[tokio::test]
async fn equal_calls_beside_each_other_are_approved_one_by_one() {
    let project = project(ASK);
    let platform = host(&project, memory()).await;
    let call = "|| notes.write(#{ path: \"/a\" })";
    let script = format!("try {{ parallel([{call}, {call}, {call}]) }} catch {{ \"caught\" }}");
    let mut report = run(&platform, &script).await;
    let (mut approved, id) = (0, report.id.clone());
    while let RunOutcome::Paused { approval, .. } = &report.outcome {
        // It may have paused since the same call runs: then the next attempt asks.
        if platform.approve_call(approval, ApprovalScope::Once, None).await.is_ok() {
            approved += 1;
        }
        assert!(approved <= 3);
        report = resume(&platform, &id).await.unwrap();
    }
    assert_eq!(approved, 3);
    let mut written = done(&report).as_array().expect("all are made").clone();
    written.sort_by_key(ToString::to_string);
    assert_eq!(written, ["write 1", "write 2", "write 3"]);
    platform.shutdown().await;
}

#[tokio::test]
async fn a_run_pauses_for_what_it_reads_as_well() {
    let project = project("tools.notes__read_resource.approve = \"ask\"");
    let resource = "resource(#{ uri: \"note:///a\", name: \"a\" }, |uri| \"text\");";
    project.write("own/notes/notes.rhai", format!("{SCRIPT}{resource}"));
    let platform = host(&project, memory()).await;
    let paused = run(&platform, "resources.read(\"notes\", \"note:///a\")[0].text").await;
    let RunOutcome::Paused { approval, tool, .. } = &paused.outcome else { panic!("{paused:?}") };
    assert_eq!(tool, "notes__read_resource");
    platform.approve_call(approval, ApprovalScope::Once, None).await.unwrap();
    assert_eq!(done(&resume(&platform, &paused.id).await.unwrap()), &json!("text"));
    platform.shutdown().await;
}

#[test]
fn a_run_of_a_project_goes_on_there_only() {
    let project = approved(ASK);
    project.write("s.rhai", "notes.write(#{ path: \"/a\" })");
    // A project with a plugin of the same id, and no rule.
    project.write("other/tenon.toml", "plugins.folders = [\"own\"]");
    for file in ["own/notes/notes.rhai", "own/notes/plugin.toml"] {
        let content = std::fs::read(project.path(file)).unwrap();
        project.write(&format!("other/{file}"), content);
    }
    let paused = parsed(&project.tenon(&["--json", "run", "s.rhai"]));
    let (id, approval) =
        (paused["id"].as_str().unwrap(), paused["paused"]["approval"].as_str().unwrap());
    let elsewhere = project.tenon(&["--project", "other", "run", "--resume", id]);
    assert_eq!(elsewhere.status.code(), Some(2), "{}", stdout(&elsewhere));
    let folder = project.path("").canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    let expected = format!(
        "the run {id} began in the project {folder}, and goes on there only: `tenon run --resume {id}` in that folder"
    );
    let said = stderr(&elsewhere);
    assert!(said.contains(&expected), "{said}");
    let shown = stdout(&project.tenon(&["runs", "show", id]));
    assert!(shown.contains(&format!("  project: {folder}\n")), "{shown}");
    // Wherever it is approved, it is said where it goes on.
    let approve = project.tenon(&["--project", "other", "approve", approval, "--yes"]);
    let (said, expected) =
        (stderr(&approve), format!("`tenon --project {folder} run --resume {id}` goes on"));
    assert!(said.contains(&expected), "{said}");
    let resumed = project.tenon(&["run", "--resume", id]);
    assert_eq!(stdout(&resumed), "write 1\n", "{}", stderr(&resumed));
}

#[tokio::test]
async fn a_call_that_waited_is_made_of_another_plugin_with_another_approval_only() {
    let project = project(ASK);
    let open = || SqliteStore::open(project.path("own.db")).expect("it is opened");
    let platform = host(&project, open()).await;
    let written = "notes.writes().count";
    let paused = run(&platform, "notes.write(#{ path: \"/a\" })").await;
    let RunOutcome::Paused { approval, .. } = &paused.outcome else { panic!("{paused:?}") };
    platform.approve_call(approval, ApprovalScope::Once, None).await.unwrap();
    // A host over the same store, which has another plugin of this id, and no rule.
    let changed = SCRIPT.replace("Writes a note", "Writes another note");
    let of_other = Project::with_notes("", &changed);
    let other = host(&of_other, open()).await;
    for _ in 0..2 {
        let resumed = resume(&other, &paused.id).await.unwrap();
        let RunOutcome::Failed { code, message } = &resumed.outcome else { panic!("{resumed:?}") };
        assert_eq!(code, "diverged");
        assert!(message.contains("the call of notes__write waited for an approval"), "{message}");
        assert!(message.contains("\nthe run is still paused; `tenon runs cancel R-"), "{message}");
    }
    assert_eq!(done(&run(&other, written).await), &json!(0));
    other.shutdown().await;
    // Where it asks as well, somebody decides of that one.
    let of_asking = Project::with_notes(ASK, &changed);
    let asking = host(&of_asking, open()).await;
    let again = resume(&asking, &paused.id).await.unwrap();
    assert!(
        matches!(&again.outcome, RunOutcome::Paused { approval: of, .. } if of != approval),
        "{again:?}"
    );
    assert_eq!(done(&run(&asking, written).await), &json!(0));
    asking.shutdown().await;
    platform.shutdown().await;
}

#[tokio::test]
async fn each_call_that_waited_beside_others_is_held_to_its_plugin() {
    let project = project(ASK);
    let open = || SqliteStore::open(project.path("own.db")).expect("it is opened");
    let platform = host(&project, open()).await;
    let script = "parallel([|| notes.write(#{ path: \"/a\" }), || notes.write(#{ path: \"/b\" })])";
    // One may pause the run before the other begins.
    let paused = loop {
        let paused = run(&platform, script).await;
        let (kept, _) = platform.run(&paused.id).await.unwrap().expect("it is kept");
        if kept.waiting.len() == 2 {
            break paused;
        }
    };
    let RunOutcome::Paused { approval, .. } = &paused.outcome else { panic!("{paused:?}") };
    let pending = platform.pending_calls().await.unwrap();
    let call = pending.iter().find(|call| call.id == *approval).expect("it waits");
    // Of another plugin, only the call that the run names is asked about.
    let rule = format!(
        "[[tools.notes__write.when]]\napprove = \"ask\"\narguments.\"/path\".equals = {}\n",
        call.call.arguments["path"]
    );
    let changed = SCRIPT.replace("Writes a note", "Writes another note");
    let of_other = Project::with_notes(&rule, &changed);
    let other = host(&of_other, open()).await;
    let resumed = resume(&other, &paused.id).await.unwrap();
    assert!(!matches!(resumed.outcome, RunOutcome::Done(_)), "{resumed:?}");
    assert_eq!(done(&run(&other, "notes.writes().count").await), &json!(0));
    other.shutdown().await;
    platform.shutdown().await;
}

#[tokio::test]
async fn the_time_of_a_run_goes_on_when_it_is_resumed() {
    let project = project(ASK);
    let store = SqliteStore::open(project.path("own.db")).expect("it is opened");
    let platform = host(&project, SqliteStore::open(project.path("own.db")).unwrap()).await;
    let resumed_after = async |micros: u64| {
        let paused = run(&platform, "notes.write(#{ path: \"/a\" })").await;
        let RunOutcome::Paused { approval, .. } = &paused.outcome else { panic!("{paused:?}") };
        platform.approve_call(approval, ApprovalScope::Once, None).await.unwrap();
        change_kept(&store, &paused.id, |kept| {
            assert_eq!(kept["wallMicros"], paused.usage.wall_micros, "{kept}");
            kept["wallMicros"] = micros.into();
        });
        resume(&platform, &paused.id).await.unwrap()
    };
    let resumed = resumed_after(100_000_000).await;
    assert_eq!(done(&resumed), &json!("write 1"));
    assert!(resumed.usage.wall_micros > 100_000_000, "{:?}", resumed.usage);
    // Nothing is begun where there is no time left.
    let resumed = resumed_after(300_000_000).await;
    let RunOutcome::Failed { code, message } = &resumed.outcome else { panic!("{resumed:?}") };
    assert_eq!((&**code, &**message), ("limit", "it took longer than 300s (`runs.wall`)"));
    assert_eq!(done(&run(&platform, "notes.writes().count").await), &json!(1));
    platform.shutdown().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_run_is_as_long_as_its_result_may_be() {
    let platform = host(&project("runs.output_kib = 1"), memory()).await;
    for fails in ["parse_int(t)", "call_tool(t)", "throw t", "tools.describe(t)"] {
        let script = format!("let t = \"x\"; while t.len() < 500_000 {{ t += t; }}\n{fails}");
        let failed = run(&platform, &script).await;
        let RunOutcome::Failed { message, .. } = &failed.outcome else { panic!("{failed:?}") };
        assert!(message.starts_with("script:"), "{fails}: {message:.80}");
        assert!(message.ends_with('…'), "{fails}: {message:.80}");
        assert_eq!(message.len(), (1 << 10) + '…'.len_utf8(), "{fails}");
    }
    platform.shutdown().await;
}

#[tokio::test]
async fn a_run_that_cannot_pause_says_how_its_call_is_made() {
    let project = project(ASK);
    let long = "tool(#{ name: \"long\", description: \"Is long\" }, |a| {
        let t = \"x\";
        while t.len() < 500_000 { t += t; }
        t
    });";
    project.write("own/notes/notes.rhai", format!("{SCRIPT}{long}"));
    let platform = host(&project, memory()).await;
    let script = "notes.long(); notes.write(#{ path: \"/a\" })";
    let failed = run(&platform, script).await;
    let RunOutcome::Failed { code, message } = &failed.outcome else { panic!("{failed:?}") };
    assert_eq!(code, "limit");
    let pending = platform.pending_calls().await.unwrap();
    let [call] = &pending[..] else { panic!("{pending:?}") };
    let expected = format!(
        "the call of notes__write has to be approved, and the run cannot pause for it: the answer of notes__long was too \
         long to be kept; `tenon approve {}` approves the call, and then the script can be run anew",
        call.id
    );
    assert_eq!(*message, expected);
    platform.approve_call(&call.id, ApprovalScope::Once, None).await.unwrap();
    assert_eq!(done(&run(&platform, script).await), &json!("write 1"));
    platform.shutdown().await;
}

#[test]
fn a_cancelled_run_says_which_of_its_calls_still_wait() {
    let project = approved(ASK);
    project.write("s.rhai", "notes.write(#{ path: \"/a\" })");
    let pause = || {
        let paused = parsed(&project.tenon(&["--json", "run", "s.rhai"]));
        let text = |value: &Value| value.as_str().expect("it is a text").to_string();
        (text(&paused["id"]), text(&paused["paused"]["approval"]))
    };
    let cancelled = |id: &str| {
        let output = project.tenon(&["runs", "cancel", id]);
        assert_eq!(stdout(&output), format!("{id} is cancelled\n"), "{}", stderr(&output));
        stderr(&output)
    };
    let (first, approval) = pause();
    let said = cancelled(&first);
    let waits = format!(
        "the call of notes__write still waits under {approval}, where it can be approved: `tenon deny {approval}` ends that"
    );
    assert!(said.contains(&waits), "{said}");
    let listed = stdout(&project.tenon(&["runs"]));
    assert!(listed.starts_with(&first) && listed.contains("  cancelled  "), "{listed}");
    let listed = parsed(&project.tenon(&["--json", "runs"]));
    assert_eq!(
        (&listed[0]["state"], &listed[0]["code"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    // The same call of another run is the same to whoever approves it.
    let (second, again) = pause();
    assert_eq!(again, approval);
    assert!(project.tenon(&["approve", &approval, "--yes"]).status.success());
    let said = cancelled(&second);
    let is_approved = format!("the call of notes__write is approved under {approval}");
    assert!(said.contains(&is_approved) && said.contains("takes that back"), "{said}");
    assert!(project.tenon(&["deny", &approval]).status.success());
    project.write(
        "s.rhai",
        "let said = (); try { notes.write(#{ path: \"/a\" }) } catch (e) { said = e; } `${said}`",
    );
    let denied = stdout(&project.tenon(&["run", "s.rhai"]));
    assert!(denied.contains("was denied"), "{denied}");
}

#[test]
fn a_tool_that_nobody_may_call_is_no_unknown_one() {
    let project = approved("tools.notes__write.enabled = false");
    let message = |arguments: &[&str]| {
        let output = parsed(&project.tenon(&[&["--json"], arguments].concat()));
        output["error"]["message"].as_str().unwrap_or_default().to_string()
    };
    let said = message(&["call", "notes__write", "path=/a"]);
    assert!(said.contains("is disabled"), "{said}");
    for script in ["notes.write(#{ path: \"/a\" })", "call_tool(\"notes__\" + \"write\", #{})"] {
        project.write("s.rhai", script);
        let message = message(&["run", "s.rhai"]);
        assert!(message.contains(&said), "{script}: {message}");
    }
}
