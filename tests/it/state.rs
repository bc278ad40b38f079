//! What plugins keep between calls, reloads and restarts.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tenon_host::services::{
    ApprovalRequest, Approver, GrantAll, GrantDecision, SqliteStore, Store, StoreError,
};
use tenon_host::{Call, Caller, Platform};

use crate::support::{Project, parsed, stderr, stdout, text};

const SCRIPT: &str = r#"
    let schema = #{ type: "object" };
    tool(#{ name: "set", description: "d", schema: schema }, |a| { state.set(a.key, a.value); "set" });
    tool(#{ name: "get", description: "d", schema: schema }, |a| `${state.get(a.key, "nothing")}`);
    tool(#{ name: "remove", description: "d", schema: schema }, |a| { state.remove(a.key); "removed" });
    tool(#{ name: "keys", description: "d", schema: schema }, |a| `${state.keys()}`);
    tool(#{ name: "add", description: "d", schema: schema }, |a| `${state.increment("number", a.by)}`);
    tool(#{ name: "append", description: "d", schema: schema }, |a| {
        let list = state.update("list", |list| { if list == () { list = []; } list.push(a.item); list });
        `${list.len()}`
    });
    tool(#{ name: "scoped", description: "d", schema: schema }, |a| {
        let bucket = switch a.scope { "user" => state.user, "session" => state.session, _ => state.project };
        if "value" in a { bucket.set("k", a.value); }
        `${bucket.get("k")}`
    });
"#;

/// A project with a script that keeps what it is told, with these capabilities.
fn project(capabilities: &str) -> Project {
    let project = Project::new("plugins.folders = [\"own\"]");
    project.write("own/kept/kept.rhai", SCRIPT);
    project.write(
        "own/kept/plugin.toml",
        format!(
            "plugin.id = \"kept\"\nruntime = {{ kind = \"rhai\", path = \"kept.rhai\" }}\n{capabilities}"
        ),
    );
    project
}

/// A host of the project, which keeps state in this folder.
async fn host(project: &Project, state: &PathBuf) -> Platform {
    let builder = project.builder().workspace(project.path("")).state(state).approver(GrantAll);
    builder.build().await.expect("it is built")
}

async fn in_session(platform: &Platform, session: Option<&str>, arguments: Value) -> String {
    let caller = Caller { session_id: session.map(Into::into), ..Caller::default() };
    let call = Call { caller, ..Call::new("kept__scoped", arguments) };
    platform.call(call).await.expect("it is called").plain_text()
}

/// What a tool answers, also where that is an error.
async fn answer(platform: &Platform, tool: &str, arguments: Value) -> String {
    platform.call(Call::new(tool, arguments)).await.expect("it is called").plain_text()
}

const PROJECT: &str = "capabilities.state = [\"project\"]";

#[tokio::test]
async fn what_is_kept_survives_reload_and_restart() {
    let project = project(PROJECT);
    let state = project.path("state");
    let platform = host(&project, &state).await;
    let value = json!({ "key": "k", "value": { "n": [1, 2.5, "x", true, null] } });
    assert_eq!(text(&platform, "kept__set", value).await, "set");
    let get = async |platform: &Platform| text(platform, "kept__get", json!({ "key": "k" })).await;
    let kept = get(&platform).await;
    assert_eq!(kept, r#"#{"n": [1, 2.5, "x", true, ()]}"#);
    project.write("own/kept/kept.rhai", format!("// Changed.\n{SCRIPT}"));
    platform.reload().await;
    assert_eq!(get(&platform).await, kept);
    platform.shutdown().await;

    let platform = host(&project, &state).await;
    assert_eq!(get(&platform).await, kept);
    assert_eq!(text(&platform, "kept__keys", json!({})).await, "[\"k\"]");
    assert_eq!(text(&platform, "kept__remove", json!({ "key": "k" })).await, "removed");
    assert_eq!(get(&platform).await, "nothing");
    platform.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_many_calls_at_once_are_all_made() {
    let project = project(PROJECT);
    let platform = host(&project, &project.path("state")).await;
    let calls = (0..20).map(async |item| {
        let append = text(&platform, "kept__append", json!({ "item": item })).await;
        let add = text(&platform, "kept__add", json!({ "by": 2 })).await;
        (append, add)
    });
    let answers = futures::future::join_all(calls).await;
    let mut lengths: Vec<usize> = answers.iter().map(|(len, _)| len.parse().unwrap()).collect();
    let mut sums: Vec<i64> = answers.iter().map(|(_, sum)| sum.parse().unwrap()).collect();
    lengths.sort();
    sums.sort();
    assert_eq!(lengths, (1..=20).collect::<Vec<_>>());
    assert_eq!(sums, (1..=20).map(|n| 2 * n).collect::<Vec<_>>());
    platform.shutdown().await;
}

#[tokio::test]
async fn each_scope_is_kept_by_itself_and_only_where_it_is_granted() {
    let project = project("capabilities.state = [\"user\", \"session\"]");
    let platform = host(&project, &project.path("state")).await;
    let set = |scope: &str, value: &str| json!({ "scope": scope, "value": value });
    let get = |scope: &str| json!({ "scope": scope });
    assert_eq!(in_session(&platform, Some("a"), set("session", "of a")).await, "of a");
    assert_eq!(in_session(&platform, Some("a"), set("user", "of all")).await, "of all");
    assert_eq!(in_session(&platform, Some("a"), get("session")).await, "of a");
    assert_eq!(in_session(&platform, Some("b"), get("session")).await, "");
    assert_eq!(in_session(&platform, Some("b"), get("user")).await, "of all");
    let said = in_session(&platform, None, get("session")).await;
    assert!(said.contains("the call belongs to no session"), "{said}");
    let said = in_session(&platform, Some("a"), get("project")).await;
    assert!(said.contains("`state = [\"project\"]` under [capabilities]"), "{said}");
    // What is meant by no scope is the narrowest.
    let caller = Caller { session_id: Some("a".into()), ..Caller::default() };
    let call = Call { caller, ..Call::new("kept__get", json!({ "key": "k" })) };
    assert_eq!(platform.call(call).await.unwrap().plain_text(), "of a");
    platform.end_session("a").await.expect("it ends");
    assert_eq!(in_session(&platform, Some("a"), get("session")).await, "");
    assert_eq!(in_session(&platform, Some("a"), get("user")).await, "of all");
    platform.shutdown().await;
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_is_tried_again_by_the_next_call() {
    let project = project("capabilities.state = [\"user\"]");
    project.write("tenon.toml", "plugins.folders = [\"own\"]\nhistory.enabled = false");
    let (file, tries) = (project.path("elsewhere.db"), AtomicU32::new(0));
    let open = move || match tries.fetch_add(1, Ordering::SeqCst) {
        0 => Err(StoreError::Busy("elsewhere".into())),
        _ => Ok(Arc::new(SqliteStore::open(&file)?) as Arc<dyn Store>),
    };
    let builder = project.builder().workspace(project.path("")).approver(GrantAll);
    let platform = builder.store_opened_by(open).build().await.expect("it is built");
    let add = json!({ "by": 1 });
    let said = answer(&platform, "kept__add", add.clone()).await;
    assert!(said.contains("elsewhere"), "{said}");
    assert_eq!(text(&platform, "kept__add", add).await, "1");
    platform.shutdown().await;
}

#[tokio::test]
async fn what_is_not_granted_is_not_kept() {
    struct GrantNothing;

    #[async_trait::async_trait]
    impl Approver for GrantNothing {
        async fn approve(&self, _: &ApprovalRequest) -> GrantDecision {
            GrantDecision::Granted(Default::default())
        }
    }

    // The record of calls is in the same database.
    let project = project(PROJECT);
    project.write("tenon.toml", "plugins.folders = [\"own\"]\nhistory.enabled = false");
    let state = project.path("state");
    let builder =
        project.builder().workspace(project.path("")).state(&state).approver(GrantNothing);
    let platform = builder.build().await.expect("it is built");
    let said = answer(&platform, "kept__get", json!({ "key": "k" })).await;
    assert!(said.contains("keeping state of the scope \"project\" is not granted"), "{said}");
    platform.shutdown().await;
    assert!(!state.join(tenon_host::services::STATE_FILE).exists(), "nothing is opened");
}

#[tokio::test]
async fn a_plugin_keeps_no_more_than_its_limit() {
    let project = project(&format!("{PROJECT}\nlimits.state_mib = 1"));
    let platform = host(&project, &project.path("state")).await;
    let half = "x".repeat(600_000);
    let set = |key: &str| json!({ "key": key, "value": half });
    assert_eq!(text(&platform, "kept__set", set("a")).await, "set");
    let said = answer(&platform, "kept__set", set("b")).await;
    assert!(said.contains("its quota is 1048576 bytes"), "{said}");
    assert_eq!(text(&platform, "kept__set", set("a")).await, "set");
    assert_eq!(text(&platform, "kept__keys", json!({})).await, "[\"a\"]");
    let said = answer(&platform, "kept__set", json!({ "key": "k".repeat(2000), "value": 1 })).await;
    assert!(said.contains("the key has 2000 bytes"), "{said}");
    let text = json!({ "key": "number", "value": "x" });
    assert_eq!(answer(&platform, "kept__set", text).await, "set");
    let said = answer(&platform, "kept__add", json!({ "by": 1 })).await;
    assert!(said.contains("\"number\" is not a decimal integer"), "{said}");
    platform.shutdown().await;
}

#[tokio::test]
async fn an_operator_sees_and_deletes_what_is_kept() {
    let project = project("capabilities.state = [\"project\", \"user\"]");
    let run = |arguments: &[&str], code: i32| {
        let output = project.tenon(arguments);
        let said = [stdout(&output), stderr(&output)].concat();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    };
    assert!(run(&["state", "list"], 0).contains("no plugin keeps anything"));
    run(&["approve", "kept", "--yes"], 0);
    for (scope, value) in [("user", "everywhere"), ("project", "here")] {
        let arguments = json!({ "scope": scope, "value": value }).to_string();
        run(&["call", "kept__scoped", &arguments], 0);
    }
    run(&["call", "kept__set", r#"{"key": "other", "value": [1]}"#], 0);
    let listed = run(&["state", "list"], 0);
    assert!(listed.contains("kept  user  1 key, 13 bytes"), "{listed}");
    assert!(listed.contains("2 keys"), "{listed}");
    let listed = parsed(&project.tenon(&["--json", "state", "list", "kept"]));
    assert_eq!((&listed[0]["scope"], &listed[1]["scope"]), (&json!("project"), &json!("user")));
    assert_eq!(listed[1], json!({ "plugin": "kept", "scope": "user", "keys": 1, "bytes": 13 }));

    assert_eq!(run(&["state", "get", "kept", "other"], 0), "[1]\n");
    assert_eq!(run(&["state", "get", "kept", "k", "--scope", "user"], 0), "\"everywhere\"\n");
    let said = run(&["state", "get", "kept", "k"], 2);
    assert!(said.contains("is kept in several scopes; name one"), "{said}");
    assert!(run(&["state", "get", "kept"], 0).contains("user:\n  k\n"));
    let shown = parsed(&project.tenon(&["--json", "state", "get", "kept", "other"]));
    assert_eq!(shown, json!({ "value": [1] }));
    let said = run(&["state", "get", "kept", "unknown"], 2);
    assert!(said.contains("keeps no \"unknown\" there"), "{said}");
    let said = run(&["state", "get", "kep"], 2);
    assert!(said.contains("did you mean \"kept\"?"), "{said}");

    let said = run(&["state", "clear", "kept"], 3);
    assert!(said.contains("no terminal to ask whether to delete"), "{said}");
    assert!(said.contains("tenon state clear kept --yes"), "{said}");
    let said = run(&["state", "clear", "kept", "--scope", "user"], 3);
    assert!(said.contains("tenon state clear kept --scope user --yes"), "{said}");
    run(&["state", "clear", "kept", "--scope", "user", "--yes"], 0);
    assert!(!run(&["state", "list"], 0).contains("user"));
    assert_eq!(run(&["call", "kept__scoped", r#"{"scope": "project"}"#], 0), "here\n");
    run(&["state", "clear", "kept", "--yes"], 0);
    assert!(run(&["state", "list"], 0).contains("no plugin keeps anything"));
    let said = run(&["state", "clear", "kept", "--yes"], 2);
    assert!(said.contains("plugin \"kept\" keeps nothing"), "{said}");
}
