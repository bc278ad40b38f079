//! Calls that rules forbid or have approved: by the command, by a client's user, by an embedder.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tenon_host::services::{
    ApprovalScope, ApproverDecision, CallApprover, CallToApprove, GrantAll, SqliteStore,
};
use tenon_host::{Call, CallError, Caller, Platform};
use tokio::sync::Notify;

use crate::approval::on_terminal_after;
use crate::support::{Project, parsed, stderr, stdout};

/// Counts what it was told to write.
const SCRIPT: &str = r#"
    let schema = #{ type: "object", properties: #{ path: #{ type: "string" }, text: #{ type: "string" } } };
    tool(#{ name: "write", description: "d", schema: schema }, |a| `write ${state.increment("writes", 1)}`);
    tool(#{ name: "writes", description: "d", schema: schema, annotations: #{ read_only: true } }, |a| {
        `${state.get("writes", 0)}`
    });
"#;

/// A project with this configuration and a script that keeps count.
fn project(configuration: &str) -> Project {
    Project::with_notes(configuration, SCRIPT)
}

/// The same, trusted and approved for the command.
fn approved(configuration: &str) -> Project {
    project(configuration).approved()
}

const WRITE: [&str; 4] = ["call", "notes__write", "path=/a", "text=x"];

/// What the command says of a call that fails so.
fn failure(project: &Project, arguments: &[&str], exit: i32) -> Value {
    let output = project.tenon(&[&["--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(exit), "{}", stderr(&output));
    parsed(&output)["error"].clone()
}

/// How often it was written.
fn writes(project: &Project) -> String {
    stdout(&project.tenon(&["call", "notes__writes"])).trim().to_string()
}

/// The id of the only call that waits.
fn waiting(project: &Project) -> String {
    let pending = parsed(&project.tenon(&["--json", "pending"]));
    let [call] = &pending.as_array().expect("it is a list")[..] else { panic!("{pending}") };
    call["id"].as_str().expect("it has an id").to_string()
}

#[test]
fn a_denied_call_is_not_made() {
    let project = approved("tools.notes__write.approve = \"deny\"");
    let error = failure(&project, &WRITE, 3);
    assert_eq!(error["code"], "forbidden");
    let message = error["message"].as_str().unwrap();
    let by = "the tool notes__write may not be called like this, by `approve` under [tools.\"notes__write\"] of ";
    assert!(message.starts_with(by) && message.ends_with("tenon.toml"), "{message}");
    assert_eq!(writes(&project), "0");
}

#[test]
fn a_call_waits_for_the_command_and_is_made_once() {
    let project = approved("tools.notes__write.approve = \"ask\"");
    let error = failure(&project, &WRITE, 3);
    assert_eq!(error["code"], "approval-required");
    let id = waiting(&project);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(r#"it would be called with {"path":"/a","text":"x"}"#), "{message}");
    assert!(message.contains(&format!("`tenon approve {id}` approves it")), "{message}");
    // Who tries again waits for the same.
    failure(&project, &WRITE, 3);
    assert_eq!(waiting(&project), id);
    let shown = stdout(&project.tenon(&["pending"]));
    assert!(
        shown.starts_with(&format!("{id}  tool notes__write of plugin \"notes\", ")),
        "{shown}"
    );
    assert!(shown.contains("\"path\": \"/a\""), "{shown}");
    // Nobody is there to be asked.
    let error = failure(&project, &["approve", &id], 3);
    assert_eq!(error["message"], format!("no terminal to ask for approval of {id}"));
    let shown = stdout(&project.tenon(&["approve", &id, "--yes"]));
    assert!(shown.contains("\"path\": \"/a\"") && shown.ends_with("is approved\n"), "{shown}");
    assert_eq!(writes(&project), "0");
    // Another call is not approved.
    failure(&project, &["call", "notes__write", "path=/b", "text=x"], 3);
    assert_eq!(stdout(&project.tenon(&WRITE)), "write 1\n");
    failure(&project, &WRITE, 3);
    assert_eq!(writes(&project), "1");
    let verified = parsed(&project.tenon(&["--json", "history", "verify"]));
    let approvals = &verified["logs"][1];
    let steps = stdout(&project.tenon(&["history", "approvals", "--limit", "2"]));
    let lines: Vec<&str> = steps.lines().collect();
    assert!(lines.len() == 2 && lines[1].contains("notes__write of plugin \"notes\""), "{steps}");
    let user = std::env::var("USER").or(std::env::var("LOGNAME")).unwrap_or("a user".into());
    let all = stdout(&project.tenon(&["history", "approvals"]));
    let expected = format!("is approved by {user}  {{\"path\":\"/a\"");
    assert!(all.contains(&expected), "{all}");
    // Three were asked for, one was approved, begun and ended.
    assert_eq!((&approvals["isWhole"], &approvals["records"]), (&json!(true), &json!(6)));
}

#[test]
fn a_denial_is_told_with_its_reason_and_overruled() {
    let project = approved("policy.calls = \"careful\"");
    let error = failure(&project, &WRITE, 3);
    let message = error["message"].as_str().unwrap();
    let by = "by the mode `careful`, which asks about tools that may destroy something";
    assert!(message.contains(by), "{message}");
    // What is known to change nothing is not asked about.
    assert_eq!(writes(&project), "0");
    let id = waiting(&project);
    let output = project.tenon(&["deny", &id, "--reason", "use /tmp"]);
    assert_eq!(stdout(&output), format!("{id} is denied\n"));
    let error = failure(&project, &WRITE, 3);
    assert_eq!(error["code"], "approval-denied");
    assert_eq!(error["message"], "the tool notes__write was denied: use /tmp");
    assert_eq!(stdout(&project.tenon(&["pending"])), "");
    assert!(stdout(&project.tenon(&["pending", "--all"])).contains("it was denied"));
    assert!(project.tenon(&["approve", &id, "--yes"]).status.success());
    assert_eq!(stdout(&project.tenon(&WRITE)), "write 1\n");
}

#[test]
fn a_standing_approval_fixes_what_its_user_names() {
    let project = approved("tools.notes__write.approve = \"ask\"");
    failure(&project, &WRITE, 3);
    let id = waiting(&project);
    let always = ["approve", &id, "--for", "always", "--same", "path", "--yes"];
    assert!(project.tenon(&always).status.success());
    for (text, expected) in [("x", "write 1\n"), ("y", "write 2\n")] {
        let text = format!("text={text}");
        assert_eq!(stdout(&project.tenon(&["call", "notes__write", "path=/a", &text])), expected);
    }
    failure(&project, &["call", "notes__write", "path=/b", "text=x"], 3);
    let all = parsed(&project.tenon(&["--json", "pending", "--all"]));
    let standing = all.as_array().unwrap().iter().find(|call| call["state"] == "standing").unwrap();
    assert_eq!(standing["fixed"], json!(["path"]));
    let standing = standing["id"].as_str().unwrap();
    let output = project.tenon(&["deny", standing]);
    assert_eq!(stdout(&output), format!("{standing} is taken back\n"));
    failure(&project, &WRITE, 3);
    // A wrong name, a wrong id and a mixture are told.
    let id = waiting_for(&project, "/b");
    let error =
        failure(&project, &["approve", &id, "--for", "always", "--same", "pth", "--yes"], 2);
    assert_eq!(error["message"], format!("the call {id} has no argument \"pth\""));
    let error = failure(&project, &["approve", "A-000000000000", "--yes"], 2);
    assert_eq!(error["message"], "no call waits under the id A-000000000000");
    assert_eq!(failure(&project, &["approve", &id, "notes", "--yes"], 2)["code"], "invalid-input");
    assert_eq!(
        failure(&project, &["approve", "notes", "--for", "once"], 2)["code"],
        "invalid-input"
    );
}

#[test]
fn nothing_is_approved_where_one_id_is_wrong() {
    let project = approved("tools.notes__write.approve = \"ask\"");
    failure(&project, &WRITE, 3);
    let id = waiting(&project);
    let error = failure(&project, &["approve", &id, "A-000000000000", "--yes"], 2);
    assert_eq!(error["message"], "no call waits under the id A-000000000000");
    // It waits still.
    assert_eq!(waiting(&project), id);
    // One that is named twice is approved once.
    assert!(project.tenon(&["approve", &id, &id, "--yes"]).status.success());
    assert_eq!(stdout(&project.tenon(&WRITE)), "write 1\n");
}

#[test]
fn an_id_is_read_without_regard_to_case() {
    let project = approved("tools.notes__write.approve = \"ask\"");
    failure(&project, &WRITE, 3);
    let id = waiting(&project);
    let small = id.to_ascii_lowercase();
    assert_eq!(stdout(&project.tenon(&["deny", &small])), format!("{id} is denied\n"));
    let shown = stdout(&project.tenon(&["approve", &small, "--yes"]));
    assert!(shown.ends_with(&format!("{id} is approved\n")), "{shown}");
    assert_eq!(stdout(&project.tenon(&WRITE)), "write 1\n");
    let error = failure(&project, &["approve", "a-000000000000", "--yes"], 2);
    assert_eq!(error["message"], "no call waits under the id A-000000000000");
}

/// The id of the call that waits with this path.
fn waiting_for(project: &Project, path: &str) -> String {
    let pending = parsed(&project.tenon(&["--json", "pending"]));
    let mut calls = pending.as_array().expect("it is a list").iter();
    let call = calls.find(|call| call["arguments"]["path"] == path).expect("it waits");
    call["id"].as_str().expect("it has an id").to_string()
}

#[test]
fn the_rule_that_decides_is_named_with_the_others() {
    let project = approved(
        "[tools.\"notes__*\"]\napprove = \"ask\"\n\
         [[tools.notes__write.when]]\napprove = \"allow\"\narguments.\"/path\".glob = \"/tmp/**\"\n\
         [[tools.notes__write.when]]\napprove = \"deny\"\nprincipals = [\"token:guest\"]\n",
    );
    let test = |arguments: &[&str], exit| {
        let output = project.tenon(&[&["policy", "test", "notes__write"], arguments].concat());
        assert_eq!(output.status.code(), Some(exit), "{}", stderr(&output));
        let file = project.path("tenon.toml").display().to_string();
        stdout(&output).replace(&file, "tenon.toml")
    };
    let rules = |first: &str, second: &str| {
        format!(
            "  [[tools.\"notes__write\".when]] number 1 of tenon.toml: allow, {first}\n\
             \x20   argument /path glob \"/tmp/**\": {}\n\
             \x20 [[tools.\"notes__write\".when]] number 2 of tenon.toml: deny, {second}\n\
             \x20   principals: token:guest: {}\n\
             \x20 `approve` under [tools.\"notes__*\"] of tenon.toml: ask, fits\n",
            if first == "fits" { "yes" } else { "no" },
            if second == "fits" { "yes" } else { "no" },
        )
    };
    let number = |number| format!("[[tools.\"notes__write\".when]] number {number} of tenon.toml");
    let expected = format!(
        "the call of notes__write is allowed, by {}\n{}",
        number(1),
        rules("fits", "does not fit")
    );
    assert_eq!(test(&["path=/tmp/a"], 0), expected);
    let expected =
        format!("the call of notes__write is denied, by {}\n{}", number(2), rules("fits", "fits"));
    assert_eq!(test(&["path=/tmp/a", "--principal", "token:guest"], 3), expected);
    let asks = test(&["path=/etc/a"], 3);
    let expected =
        "the call of notes__write has to be approved, by `approve` under [tools.\"notes__*\"]";
    assert!(asks.starts_with(expected), "{asks}");
    // A path that climbs is not what it reads.
    let climbs = test(&["path=/tmp/../etc/a"], 3);
    assert!(climbs.contains("glob \"/tmp/**\": unclear"), "{climbs}");
    assert_eq!(failure(&project, &["policy", "test", "notes__wrote"], 2)["code"], "not-found");
    let error = failure(&project, &["policy", "test", "notes__write", "--profile", "none"], 2);
    assert_eq!(error["message"], "there is no profile \"none\" in the user's configuration");
}

/// Decides as it was told, and keeps what it was asked.
#[derive(Clone)]
struct Decides(Arc<Mutex<(ApproverDecision, Vec<CallToApprove>)>>);

impl Decides {
    fn so(answer: ApproverDecision) -> Self {
        Self(Arc::new(Mutex::new((answer, Vec::new()))))
    }

    fn asked(&self) -> Vec<CallToApprove> {
        self.0.lock().unwrap().1.clone()
    }
}

#[async_trait]
impl CallApprover for Decides {
    async fn decide(&self, call: &CallToApprove) -> ApproverDecision {
        let mut state = self.0.lock().unwrap();
        state.1.push(call.clone());
        state.0.clone()
    }
}

async fn host(project: &Project, approver: Option<Decides>) -> Platform {
    let store = SqliteStore::in_memory().expect("there is memory");
    let builder = project.builder().workspace(project.path("")).store(store).approver(GrantAll);
    let builder = match approver {
        Some(approver) => builder.call_approver(approver),
        None => builder,
    };
    builder.build().await.expect("it is built")
}

async fn write(
    platform: &Platform,
    path: &str,
    session: Option<&str>,
) -> Result<String, CallError> {
    let caller = Caller {
        session_id: session.map(str::to_string),
        principal: Some("ada".into()),
        ..Caller::default()
    };
    let call = Call { caller, ..Call::new("notes__write", json!({ "path": path })) };
    Ok(platform.call(call).await?.plain_text())
}

#[tokio::test]
async fn an_embedder_decides_while_the_call_waits() {
    let project = project("tools.notes__write.approve = \"ask\"");
    let once = ApproverDecision::Approved { scope: ApprovalScope::Once, holds: None };
    let approver = Decides::so(once);
    let platform = host(&project, Some(approver.clone())).await;
    assert_eq!(write(&platform, "/a", None).await.unwrap(), "write 1");
    assert_eq!(write(&platform, "/a", None).await.unwrap(), "write 2");
    let asked = approver.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!((&*asked[0].tool, &*asked[0].plugin), ("notes__write", "notes"));
    assert_eq!(asked[0].arguments, json!({ "path": "/a" }));
    assert_eq!(asked[0].principal.as_deref(), Some("ada"));
    assert!(asked[0].by.contains("tools.\"notes__write\""), "{}", asked[0].by);
    platform.shutdown().await;
    let session = ApprovalScope::Session { fixed: Some(vec![]) };
    let approver = Decides::so(ApproverDecision::Approved { scope: session, holds: None });
    let platform = host(&project, Some(approver.clone())).await;
    for (path, session) in [("/a", "s"), ("/b", "s"), ("/a", "t")] {
        write(&platform, path, Some(session)).await.unwrap();
    }
    assert_eq!(approver.asked().len(), 2, "the second call is of the session");
    platform.shutdown().await;
    let approver = Decides::so(ApproverDecision::Denied { reason: Some("no".into()) });
    let platform = host(&project, Some(approver)).await;
    let error = write(&platform, "/a", None).await.unwrap_err();
    assert_eq!(
        (error.code(), &*error.to_string()),
        ("approval-denied", "the tool notes__write was denied: no")
    );
    platform.shutdown().await;
}

#[tokio::test]
async fn an_embedder_decides_later() {
    let project = project("tools.notes__write.approve = \"ask\"");
    let platform = host(&project, None).await;
    let error = write(&platform, "/a", None).await.unwrap_err();
    let CallError::NotApproved { refusal, .. } = &error else { panic!("{error}") };
    let id = refusal.pending().expect("it waits").to_string();
    let waiting = platform.pending_calls().await.unwrap();
    assert_eq!((waiting.len(), &waiting[0].id), (1, &id));
    platform.approve_call(&id, ApprovalScope::Once, None).await.unwrap();
    assert_eq!(write(&platform, "/a", None).await.unwrap(), "write 1");
    assert!(write(&platform, "/a", None).await.is_err());
    platform.deny_call(&id, None).await.unwrap();
    let error = write(&platform, "/a", None).await.unwrap_err();
    assert_eq!(error.code(), "approval-denied");
    platform.shutdown().await;
}

#[tokio::test]
async fn what_a_plugin_calls_has_to_be_approved_too() {
    let project = project("tools.notes__write.approve = \"ask\"");
    project.write(
        "own/caller/plugin.toml",
        "plugin.id = \"caller\"\nruntime = { kind = \"rhai\", path = \"c.rhai\" }\ncapabilities.tools = [\"notes__*\"]",
    );
    let script = r#"tool(#{ name: "go", description: "d", schema: #{ type: "object" } }, |a| {
        call_tool("notes__write", #{ path: "/x" })
    });"#;
    project.write("own/caller/c.rhai", script);
    let approver = Decides::so(ApproverDecision::Denied { reason: None });
    let platform = host(&project, Some(approver.clone())).await;
    let caller = Caller { principal: Some("ada".into()), ..Caller::default() };
    let call = Call { caller, ..Call::new("caller__go", json!({})) };
    let answered = platform.call(call).await;
    let said = match answered {
        Ok(result) => result.plain_text(),
        Err(error) => error.to_string(),
    };
    assert!(said.contains("the tool notes__write was denied"), "{said}");
    // It is the caller's call, whoever is between.
    assert_eq!(approver.asked()[0].principal.as_deref(), Some("ada"));
    platform.shutdown().await;
}

/// Approves a call once it is told to.
#[derive(Clone, Default)]
struct ApprovesLater {
    asked: Arc<Notify>,
    may: Arc<Notify>,
}

#[async_trait]
impl CallApprover for ApprovesLater {
    async fn decide(&self, _: &CallToApprove) -> ApproverDecision {
        self.asked.notify_one();
        self.may.notified().await;
        ApproverDecision::Approved { scope: ApprovalScope::Once, holds: None }
    }
}

#[tokio::test]
async fn what_has_changed_while_somebody_was_asked_counts() {
    let ask = "tools.notes__write.approve = \"ask\"";
    let project = project(ask);
    let configured = std::fs::read_to_string(project.path("tenon.toml")).unwrap();
    let later = ApprovesLater::default();
    let store = SqliteStore::in_memory().expect("there is memory");
    let builder = project.builder().workspace(project.path("")).store(store).approver(GrantAll);
    let platform = builder.call_approver(later.clone()).build().await.expect("it is built");
    let write_while = async |change: &dyn Fn()| {
        let asked = platform.clone();
        let written = tokio::spawn(async move { write(&asked, "/a", None).await });
        later.asked.notified().await;
        change();
        platform.reload().await;
        later.may.notify_one();
        written.await.unwrap().map_err(|error| error.to_string())
    };
    assert_eq!(write_while(&|| ()).await.unwrap(), "write 1");
    let deny = || project.write("tenon.toml", configured.replace("\"ask\"", "\"deny\""));
    let denied = write_while(&deny).await.unwrap_err();
    assert!(denied.contains("may not be called like this"), "{denied}");
    project.write("tenon.toml", &configured);
    platform.reload().await;
    let change = || project.write("own/notes/notes.rhai", format!("{SCRIPT}// other"));
    let changed = write_while(&change).await.unwrap_err();
    assert!(changed.contains("its plugin is gone or another by now: call it again"), "{changed}");
    let gone = write_while(&|| project.write("tenon.toml", ask)).await.unwrap_err();
    assert!(gone.contains("its plugin is gone"), "{gone}");
    platform.shutdown().await;
}

#[test]
fn an_approval_is_for_the_settings_that_the_plugin_had() {
    let settings = |target: &str| {
        format!("tools.notes__write.approve = \"ask\"\nsettings.notes.target = \"{target}\"")
    };
    let project = project(&settings("staging")).approved();
    failure(&project, &WRITE, 3);
    let id = waiting(&project);
    assert!(
        project
            .tenon(&["approve", &id, "--for", "always", "--any-arguments", "--yes"])
            .status
            .success()
    );
    let configured = std::fs::read_to_string(project.path("tenon.toml")).unwrap();
    let elsewhere = configured.replace("staging", "production");
    assert_ne!(elsewhere, configured);
    project.write("tenon.toml", &elsewhere);
    let project = project.approved();
    failure(&project, &WRITE, 3);
    assert_eq!(writes(&project), "0");
    project.write("tenon.toml", &configured);
    let project = project.approved();
    assert_eq!(stdout(&project.tenon(&WRITE)), "write 1\n");
}

#[test]
fn a_rule_speaks_of_a_tool_of_several_plugins_by_either_name() {
    let of_plugin = "[[tools.read_resource.when]]\narguments.\"/plugin\".equals = \"notes\"\napprove = \"deny\"";
    let of_either = ["notes__read_resource", "read_resource"];
    let of_either = of_either.map(|tool| format!("tools.{tool}.approve = \"deny\""));
    for rule in of_either.into_iter().chain([of_plugin.to_string()]) {
        let project = approved(&rule);
        let resource = "resource(#{ uri: \"note:///a\", name: \"a\" }, |uri| \"text\");";
        project.write("own/notes/notes.rhai", format!("{SCRIPT}{resource}"));
        let project = project.approved();
        let arguments = ["read_resource", "plugin=notes", "uri=note:///a"];
        let own = ["call", "notes__read_resource", "uri=note:///a"];
        let by_verb = ["resources", "read", "notes", "note:///a"];
        for call in [&[&["call"], &arguments[..]].concat()[..], &own, &by_verb] {
            assert_eq!(failure(&project, call, 3)["code"], "forbidden", "{rule}: {call:?}");
        }
        let tested = project.tenon(&[&["policy", "test"], &arguments[..]].concat());
        assert_eq!(tested.status.code(), Some(3), "{}", stderr(&tested));
        let denied = "the call of read_resource is denied, by ";
        assert!(stdout(&tested).starts_with(denied));
        // What else the plugin has is not meant.
        assert_eq!(writes(&project), "0");
    }
}

#[test]
fn what_was_typed_before_a_call_was_shown_does_not_approve_it() {
    let project = approved("tools.notes__write.approve = \"ask\"");
    let said = on_terminal_after("o\na\n", project.command(&WRITE), "n\n");
    assert!(said.contains("may it be called?") && said.contains("was denied"), "{said}");
    assert_eq!(writes(&project), "0");
    let said = on_terminal_after("n\n", project.command(&WRITE), "o\n");
    assert!(said.contains("write 1"), "{said}");
    // What is none of the answers decides nothing.
    let said = on_terminal_after("", project.command(&WRITE), "yo\n");
    assert!(said.contains("that is none of the answers: nothing is decided"), "{said}");
    assert_eq!(writes(&project), "1");
}

#[test]
fn a_call_that_got_no_answer_in_time_is_asked_about_again() {
    let endless = "tool(#{ name: \"wait\", description: \"d\" }, |a| { loop {} });";
    let project = project("tools.notes__wait.approve = \"ask\"");
    project.write("own/notes/notes.rhai", format!("{SCRIPT}{endless}"));
    let project = project.approved();
    let call = ["call", "notes__wait", "--timeout", "1s"];
    failure(&project, &call, 3);
    let approve = ["approve", &waiting(&project), "--for", "always", "--any-arguments", "--yes"];
    assert!(project.tenon(&approve).status.success());
    assert_eq!(failure(&project, &call, 4)["code"], "deadline");
    let error = failure(&project, &call, 3);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("begun before, and it is not known how it ended"), "{message}");
    let steps = stdout(&project.tenon(&["history", "approvals"]));
    assert!(steps.contains("began, and how it ended is not known"), "{steps}");
}

#[test]
fn what_was_approved_of_a_plugins_calls_goes_with_the_plugins_approval() {
    let project = approved("tools.notes__write.approve = \"ask\"");
    failure(&project, &WRITE, 3);
    let approve = ["approve", &waiting(&project), "--for", "always", "--yes"];
    assert!(project.tenon(&approve).status.success());
    assert_eq!(stdout(&project.tenon(&WRITE)), "write 1\n");
    let revoked = stdout(&project.tenon(&["revoke", "notes"]));
    let expected = "plugin \"notes\" is not approved any more, nor is what was approved or waited of one call\n";
    assert_eq!(revoked, expected);
    let project = project.approved();
    failure(&project, &WRITE, 3);
    assert_eq!(writes(&project), "1");
}

#[test]
fn without_a_store_a_call_that_has_to_be_approved_is_not_made() {
    let project = approved("tools.notes__write.approve = \"ask\"");
    let database = project.path("state/tenon/plugin-state.sqlite");
    failure(&project, &WRITE, 3);
    assert!(database.exists());
    for file in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{file}", database.display()));
    }
    std::fs::write(&database, "no database").unwrap();
    let error = failure(&project, &WRITE, 5);
    assert_eq!(error["code"], "state");
    let message = error["message"].as_str().unwrap();
    let said = "what is decided of calls cannot be read or written";
    assert!(message.contains(said) && !message.contains("tenon approve"), "{message}");
}
