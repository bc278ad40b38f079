//! Calls that rules forbid or have approved: by the command, by a client's user, by an embedder.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tenon_host::services::{
    ApprovalScope, ApproverDecision, CallApprover, CallToApprove, GrantAll, STATE_FILE, SqliteStore,
};
use tenon_host::{Call, CallError, Caller, Platform};
use tokio::sync::Notify;

use crate::approval::{on_terminal, on_terminal_after};
use crate::support::{Project, SCRIPTED_SERVER, parsed, stderr, stdout};

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
fn whoever_approves_sees_each_value_whatever_its_name_is() {
    let project = approved("tools.notes__write.approve = \"ask\"");
    let arguments = r#"{"path":"/a","token":"rm -rf /","x":{"secret":{"also":"/etc"}}}"#;
    let error = failure(&project, &["call", "notes__write", arguments], 3);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(arguments), "{message}");
    let id = waiting(&project);
    let shown = stdout(&project.tenon(&["approve", &id, "--yes"]));
    for said in [shown, stdout(&project.tenon(&["pending", "--all"]))] {
        assert!(said.contains("\"rm -rf /\"") && said.contains("\"also\": \"/etc\""), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn what_others_could_have_approved_is_not_approved() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;
    let project = approved("tools.notes__write.approve = \"ask\"");
    failure(&project, &WRITE, 3);
    let always = ["approve", &waiting(&project), "--for", "always", "--yes"];
    assert!(project.tenon(&always).status.success());
    assert_eq!(stdout(&project.tenon(&WRITE)), "write 1\n");
    let folder = project.path("state/tenon");
    for (path, open, closed) in
        [(folder.clone(), 0o777, 0o700), (folder.join(STATE_FILE), 0o666, 0o600)]
    {
        set_permissions(&path, Permissions::from_mode(open)).unwrap();
        let refused = project.tenon(&WRITE);
        let said = stderr(&refused);
        assert!(!refused.status.success() && said.contains("others can write to it"), "{said}");
        assert_ne!(project.tenon(&["pending"]).status.code(), Some(0));
        set_permissions(&path, Permissions::from_mode(closed)).unwrap();
    }
    assert_eq!(stdout(&project.tenon(&WRITE)), "write 2\n");
}

#[test]
fn whoever_approves_is_told_that_the_plugin_is_another_one_by_now() {
    let project = approved("tools.notes__write.approve = \"ask\"");
    failure(&project, &WRITE, 3);
    let id = waiting(&project);
    let approve = || {
        let approved = project.tenon(&["approve", &id, "--yes"]);
        assert!(approved.status.success(), "{}", stderr(&approved));
        stderr(&approved)
    };
    assert_eq!(approve(), "");
    project.write("own/notes/notes.rhai", format!("{SCRIPT}// changed"));
    let said = approve();
    let other = format!("plugin \"notes\" is another one here than the one that {id} waits for");
    assert!(said.contains(&other), "{said}");
    let project = project.approved();
    assert_eq!(failure(&project, &WRITE, 3)["code"], "approval-required");
    assert_eq!(writes(&project), "0");
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

/// A call whose path reads as another one.
const MISLEADING: [&str; 4] = ["call", "notes__write", "path=/a\u{202e}\u{a0}b", "text=x"];

/// Checks that whoever is shown that call sees how its path is spelled.
fn assert_is_spelled_out(shown: &str) {
    assert!(shown.contains(r"/a\u202e\u00a0b"), "{shown:?}");
    assert!(!shown.contains(['\u{202e}', '\u{a0}']), "{shown:?}");
}

#[test]
fn whoever_decides_on_a_terminal_sees_how_a_call_is_spelled() {
    let project = approved("tools.notes__write.approve = \"ask\"");
    let answered = |arguments: &[&str], answer: &str| {
        let said = on_terminal(&project, arguments, answer);
        assert_is_spelled_out(&said);
        let question = "may it be called? [o]nce, [a]lways exactly so for 30 days, [n]o: ";
        assert!(said.contains(question), "{said}");
        said
    };
    // The call itself asks.
    let said = answered(&MISLEADING, "x\n");
    assert!(said.contains("that is none of the answers: nothing is decided\n"), "{said}");
    let id = waiting(&project);
    assert_is_spelled_out(&stdout(&project.tenon(&["pending"])));
    let pending = parsed(&project.tenon(&["--json", "pending"]));
    assert_eq!(pending[0]["arguments"]["path"], "/a\u{202e}\u{a0}b");
    let approve = |answer: &str, came_to: &str| {
        let said = answered(&["approve", id.as_str()], answer);
        assert!(said.contains(&format!("{id} is {came_to}\n")), "{said}");
        said
    };
    let all = || {
        let all = stdout(&project.tenon(&["pending", "--all"]));
        assert_is_spelled_out(&all);
        all
    };
    // The end of the input is no answer, nor is what was not offered.
    let said = approve("\u{4}", "not decided");
    assert!(!said.contains("none of the answers"), "{said}");
    let said = approve("s\n", "not decided");
    assert!(said.contains("that is none of the answers: nothing is decided\n"), "{said}");
    assert_eq!((waiting(&project), writes(&project)), (id.clone(), "0".to_string()));
    approve("n\n", "denied");
    assert!(all().contains("\n  it was denied\n"));
    assert_eq!(failure(&project, &MISLEADING, 3)["code"], "approval-denied");
    approve("o\n", "approved");
    assert!(all().contains("\n  it is approved, and not called again yet\n"));
    assert_eq!(stdout(&project.tenon(&MISLEADING)), "write 1\n");
    // It was good for one call, and the next one waits under the same id.
    let error = failure(&project, &MISLEADING, 3);
    assert_eq!(error["code"], "approval-required");
    assert_is_spelled_out(error["message"].as_str().expect("it is a text"));
    let said = approve("a\n", "approved, as");
    let standing = r#"with exactly {"path":"/a\u202e\u00a0b","text":"x"}, approved "#;
    assert!(said.contains(standing) && all().contains(standing), "{said}");
    for expected in ["write 2\n", "write 3\n"] {
        assert_eq!(stdout(&project.tenon(&MISLEADING)), expected);
    }
}

#[test]
fn an_approval_for_a_session_is_for_calls_of_that_session() {
    let project = approved("tools.notes__write.approve = \"ask\"");
    failure(&project, &WRITE, 3);
    let id = waiting(&project);
    for what in ["session", "run"] {
        let error = failure(&project, &["approve", &id, "--for", what, "--yes"], 2);
        assert_eq!(error["code"], "invalid-input");
        assert_eq!(error["message"], format!("the call {id} belongs to no {what}"));
    }
    // Nobody can answer so where there is no session, and it waits still.
    let said = on_terminal(&project, &["approve", id.as_str()], "s\n");
    assert!(said.contains("[o]nce, [a]lways") && said.contains("none of the answers"), "{said}");
    assert_eq!(waiting(&project), id);
    let call = |path: &'static str, session: &'static str| {
        ["call", "notes__write", path, "text=x", "--session", session]
    };
    let (ours, of_others) = (call("path=/b", "s-1"), call("path=/b", "s-2"));
    failure(&project, &ours, 3);
    let id = waiting_for(&project, "/b");
    assert!(stdout(&project.tenon(&["pending"])).contains("\n  session: s-1\n"));
    let approve = ["approve", &id, "--for", "session", "--yes"];
    let said = stdout(&project.tenon(&approve));
    assert!(said.contains(&format!("{id} is approved, as\n")), "{said}");
    assert!(said.contains(", in session s-1, until "), "{said}");
    for expected in ["write 1\n", "write 2\n"] {
        assert_eq!(stdout(&project.tenon(&ours)), expected);
    }
    // Another session, no session, and other arguments.
    let without = ["call", "notes__write", "path=/b", "text=x"];
    for other in [&of_others[..], &without, &call("path=/c", "s-1")] {
        assert_eq!(failure(&project, other, 3)["code"], "approval-required", "{other:?}");
    }
    // On a terminal, both the command that approves and the call itself offer it.
    let id = waiting_for(&project, "/c");
    for (arguments, expected) in [
        (vec!["approve", id.as_str()], ", in session s-1, until "),
        (call("path=/d", "s-1").to_vec(), "write 3"),
    ] {
        let said = on_terminal(&project, &arguments, "s\n");
        assert!(said.contains("[o]nce, for this [s]ession, [a]lways"), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    for (path, expected) in [("path=/c", "write 4\n"), ("path=/d", "write 5\n")] {
        assert_eq!(stdout(&project.tenon(&call(path, "s-1"))), expected);
        assert_eq!(failure(&project, &call(path, "s-2"), 3)["code"], "approval-required");
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is later");
    u64::try_from(since.as_millis()).expect("there is room for it")
}

#[test]
fn an_approval_holds_as_long_as_whoever_approves_says() {
    const MINUTE: u64 = 60 * 1_000;
    const DAY: u64 = 24 * 60 * MINUTE;
    let project = approved("tools.notes__write.approve = \"ask\"");
    let asked = |path: &str| {
        let argument = format!("path={path}");
        failure(&project, &["call", "notes__write", &argument, "text=x", "--session", "s-1"], 3);
        waiting_for(&project, path)
    };
    // What was decided of the call of this path, or of calls like it.
    let decided = |path: &str| {
        let all = parsed(&project.tenon(&["--json", "pending", "--all"]));
        let mut rows = all.as_array().expect("it is a list").iter();
        rows.find(|row| row["arguments"]["path"] == path).expect("it is kept").clone()
    };
    let time = |row: &Value, name: &str| row[name].as_u64().unwrap_or_else(|| panic!("{row}"));
    let approve = |path: &str, options: &str| {
        let id = asked(path);
        let arguments = ["approve", id.as_str(), "--yes"].into_iter();
        let arguments: Vec<&str> = arguments.chain(options.split_whitespace()).collect();
        let output = project.tenon(&arguments);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    // For one call, it is a time from now on.
    for (path, options, holds) in [
        ("/a", "", 60 * MINUTE),
        ("/b", "--expires 10m", 10 * MINUTE),
        ("/c", "--for once --expires 2d", 2 * DAY),
    ] {
        let before = now();
        approve(path, options);
        let (after, row) = (now(), decided(path));
        assert_eq!(row["state"], "approved", "{path}");
        let expires = time(&row, "expiresAt");
        assert!((before + holds..=after + holds).contains(&expires), "{options}: {row}");
    }
    // One that stands says when it was given. A session has a day at most.
    for (path, options, holds) in [
        ("/d", "--for always", 30 * DAY),
        ("/e", "--for always --expires 7d", 7 * DAY),
        ("/f", "--for always --same path --expires 90d", 90 * DAY),
        ("/g", "--for session", DAY),
        ("/h", "--for session --expires 10m", 10 * MINUTE),
        ("/i", "--for session --expires 2d", DAY),
    ] {
        approve(path, options);
        let row = decided(path);
        assert_eq!(row["state"], "standing", "{path}");
        assert_eq!(time(&row, "expiresAt") - time(&row, "approvedAt"), holds, "{options}: {row}");
    }
    // Whoever says how long is asked for a yes, and told which command asks nothing.
    let id = asked("/j");
    let error = failure(&project, &["approve", &id, "--for", "always", "--expires", "7d"], 3);
    let command = format!("`tenon approve {id} --yes --for always --expires 7days`");
    let hint = error["hint"].as_str().expect("it is a text");
    assert!(hint.contains(&command), "{hint}");
    let arguments = ["approve", id.as_str(), "--expires", "10m"];
    for (answer, came_to, state) in
        [("n\n", "not decided", "pending"), ("y\n", "approved", "approved")]
    {
        let before = now();
        let said = on_terminal(&project, &arguments, answer);
        assert!(said.contains("approve it so? [y]es, [n]o: "), "{said}");
        assert!(said.ends_with(&format!("{id} is {came_to}\n")), "{said}");
        let (after, row) = (now(), decided("/j"));
        assert_eq!(row["state"], state, "{said}");
        if state == "approved" {
            let (first, last) = (before + 10 * MINUTE, after + 10 * MINUTE);
            assert!((first..=last).contains(&time(&row, "expiresAt")), "{row}");
        }
    }
    // The call that was approved is made, and it was the only one.
    let call = ["call", "notes__write", "path=/j", "text=x"];
    assert_eq!(stdout(&project.tenon(&call)), "write 1\n");
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

/// A project with a server whose tool `look` says that it changes nothing, and whose tool `change` says nothing of that. Its
/// user's configuration says more, and so may its own.
fn project_with_server(of_user: &str, of_project: &str) -> Project {
    let project = Project::new("");
    let script = project.path("script.json");
    let schema = json!({ "type": "object" });
    let says = json!({
        "tools/list": { "tools": [
            { "name": "look", "inputSchema": schema, "annotations": { "readOnlyHint": true } },
            { "name": "change", "inputSchema": schema },
        ] },
        "tools/call": { "content": [{ "type": "text", "text": "done" }] },
    });
    project.write("script.json", says.to_string());
    project.write("tenon/config.toml", of_user);
    let server = format!("name = \"s\"\ncommand = {SCRIPTED_SERVER:?}\nargs = [{script:?}]\n");
    project.write("tenon.toml", format!("{of_project}\n[[plugins.mcp]]\n{server}"));
    project.approved()
}

#[test]
fn what_a_server_says_of_its_tools_counts_where_its_user_believes_it() {
    let believes = "policy.plugins.s.believe_annotations = true";
    let when = |decision: &str, hint: &str| {
        format!("[[tools.\"s__*\".when]]\napprove = {decision:?}\nannotations = [{hint:?}]\n")
    };
    let careful = "policy.calls = \"careful\"\n".to_string();
    let asks_of_destructive = when("ask", "destructive");
    let allows_read_only = format!("policy.calls = \"locked\"\n{}", when("allow", "read-only"));
    for (rules, code, by) in [
        (careful, "approval-required", "by the mode `careful`, which asks about tools that may"),
        (asks_of_destructive, "approval-required", "by [[tools.\"s__*\".when]] number 1 of "),
        (allows_read_only, "forbidden", "by the mode `locked`, which allows only what a rule"),
    ] {
        let is_refused = |project: &Project, tool: &str| {
            let error = failure(project, &["call", tool], 3);
            assert_eq!(error["code"], code, "{rules}: {error}");
            let message = error["message"].as_str().expect("it is a text");
            assert!(message.contains(by), "{rules}: {message}");
        };
        let looks = |project: &Project| {
            let output = project.tenon(&["call", "s__look"]);
            assert_eq!(stdout(&output), "done\n", "{rules}: {}", stderr(&output));
        };
        // No project vouches for its own servers.
        let doubted = project_with_server(&rules, believes);
        is_refused(&doubted, "s__look");
        is_refused(&doubted, "s__change");
        let user = format!("{believes}\n{rules}");
        // It is what the user says that counts, and the next call works.
        doubted.write("tenon/config.toml", &user);
        looks(&doubted);
        // Where it says nothing, there is nothing to believe.
        let believed = project_with_server(&user, "");
        looks(&believed);
        is_refused(&believed, "s__change");
    }
}
