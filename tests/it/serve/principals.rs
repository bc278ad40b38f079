//! Whose calls are whose over HTTP: rules are about the names of tokens, and what waits for an approval is its client's alone.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use tenon_host::services::ApprovalScope;
use tenon_serve::{
    HttpSettings, HttpTokenDigest, Profile, Settings, TokenGrant, TokenStore, ToolMode,
};

use super::command::Serving;
use super::served_project::{ServedProject, call_tool};
use super::text;
use crate::support::{Project, parsed, stderr, stdout};

/// Counts what it was told to write, and what was read of it.
const SCRIPT: &str = r#"
    let schema = #{ type: "object", properties: #{ path: #{ type: "string" } }, required: ["path"] };
    tool(#{ name: "write", description: "Writes a note", schema: schema }, |a| `write ${state.increment("writes", 1)}`);
    tool(#{ name: "writes", description: "Counts notes" }, |a| `${state.get("writes", 0)}`);
    resource(#{ uri: "note:///a", name: "a" }, |a| `write ${state.increment("writes", 1)}`);
"#;

const ASK: &str = "tools.notes__write.approve = \"ask\"";

const GUESTS_MAY_NOT_WRITE: &str =
    "tools.notes__write.when = [{ approve = \"deny\", principals = [\"token:guest\"] }]";

const GUESTS_MAY_NOT_READ: &str =
    "tools.notes__read_resource.when = [{ approve = \"deny\", principals = [\"token:guest\"] }]";

/// A script that writes.
const WRITE: &str = "notes.write(#{ path: \"/a\" })";

/// A run that nobody has.
const NO_RUN: &str = "R-000000000000";

/// Tokens of two names, each for two profiles. Their texts are `NAME@PROFILE`.
#[derive(Debug)]
struct NamedTokens;

#[async_trait]
impl TokenStore for NamedTokens {
    async fn grant(&self, token: &HttpTokenDigest) -> Option<TokenGrant> {
        for name in ["laptop", "guest"] {
            for profile in ["listed", "code"] {
                if HttpTokenDigest::new(&format!("{name}@{profile}")) == *token {
                    let principal = Some(format!("token:{name}"));
                    let profile = Some(profile.to_string());
                    return Some(TokenGrant { principal, profile, tools: None });
                }
            }
        }
        None
    }
}

/// A server with these rules, for clients with such tokens.
async fn serve(rules: &str) -> ServedProject {
    let profiles = |settings: &mut Settings| {
        for (name, mode) in [("listed", ToolMode::All), ("code", ToolMode::Code)] {
            let profile = Profile { name: name.into(), mode, ..Profile::default() };
            settings.profiles.insert(name.into(), profile);
        }
    };
    let tokens = |settings: &mut HttpSettings| settings.tokens = Some(Arc::new(NamedTokens));
    ServedProject::new(Project::with_notes(rules, SCRIPT), profiles, tokens).await
}

/// Runs a script, or has a run go on, for whoever has a token of this name.
async fn run(served: &ServedProject, name: &str, arguments: Value) -> Value {
    served.call(&format!("{name}@code"), "run", arguments).await
}

/// How often it was written, as a guest may ask.
async fn writes(served: &ServedProject) -> String {
    let counted = served.call("guest@listed", "notes__writes", json!({})).await;
    text(&counted).to_string()
}

/// The code of an error.
fn code(answer: &Value) -> &Value {
    &answer["result"]["_meta"]["tenon/error"]["code"]
}

/// The approval that a call or a run waits for.
fn approval_of(answer: &Value) -> String {
    assert_eq!(code(answer), "approval-required", "{answer}");
    let approval = &answer["result"]["_meta"]["tenon/error"]["approval"];
    approval.as_str().expect("it waits for one").to_string()
}

fn run_of(answer: &Value) -> String {
    answer["result"]["_meta"]["tenon/run"]["id"].as_str().expect("it is of a run").to_string()
}

#[tokio::test]
async fn a_rule_is_for_whom_it_names_also_in_runs() {
    let served = serve(&format!("{GUESTS_MAY_NOT_WRITE}\n{GUESTS_MAY_NOT_READ}")).await;
    let script = |script: &str| ("code", "run", json!({ "script": script }));
    let rows = [
        ("listed", "notes__write", json!({ "path": "/a" })),
        script(WRITE),
        script("call_tool(\"notes__\" + \"write\", #{ path: \"/a\" })"),
        script("parallel([|| notes.write(#{ path: \"/a\" })])[0]"),
        script("step(\"s\", || notes.write(#{ path: \"/a\" }))"),
        script("resources.read(\"notes\", \"note:///a\")[0].text"),
    ];
    for (made, (profile, tool, arguments)) in rows.into_iter().enumerate() {
        let refused = served.call(&format!("guest@{profile}"), tool, arguments.clone()).await;
        assert_eq!(refused["result"]["isError"], true, "{arguments}: {refused}");
        let words = "may not be called like this, by ";
        assert!(text(&refused).contains(words), "{arguments}: {refused}");
        // What is forbidden to a guest is not done, and what is not goes on.
        assert_eq!(writes(&served).await, made.to_string(), "{arguments}");
        let done = served.call(&format!("laptop@{profile}"), tool, arguments.clone()).await;
        assert_eq!(text(&done), format!("write {}", made + 1), "{arguments}: {done}");
    }
    // A script may catch it, which does not make the call.
    let caught = json!({ "script": format!("let n = (); try {{ {WRITE} }} catch {{ n = notes.writes(); }} n") });
    let caught = run(&served, "guest", caught).await;
    assert_eq!(text(&caught), writes(&served).await, "{caught}");
    served.end().await;
}

#[tokio::test]
async fn what_is_approved_of_one_clients_call_is_not_approved_of_anothers() {
    let served = serve(ASK).await;
    let write = async |name: &str, path: &str| {
        let token = format!("{name}@listed");
        served.call(&token, "notes__write", json!({ "path": path })).await
    };
    let own = approval_of(&write("laptop", "/a").await);
    let of_guest = approval_of(&write("guest", "/a").await);
    assert_ne!(own, of_guest);
    let approve = async |scope: ApprovalScope| {
        served.platform.approve_call(&own, scope, None).await.expect("it waits");
    };
    approve(ApprovalScope::Once).await;
    assert_eq!(approval_of(&write("guest", "/a").await), of_guest);
    assert_eq!(writes(&served).await, "0");
    assert_eq!(text(&write("laptop", "/a").await), "write 1");
    // It was for one call.
    assert_eq!(approval_of(&write("laptop", "/a").await), own);
    approve(ApprovalScope::Standing { fixed: Some(Vec::new()) }).await;
    for path in ["/a", "/b"] {
        approval_of(&write("guest", path).await);
    }
    assert_eq!(writes(&served).await, "1");
    assert_eq!(text(&write("laptop", "/b").await), "write 2");
    served.end().await;
}

/// Checks that a client is told the same of a run as of one that nobody has.
async fn check_hidden(served: &ServedProject, name: &str, id: &str) {
    let told = run(served, name, json!({ "resume": id })).await;
    assert_eq!(code(&told), "not-found", "{told}");
    let of_none = run(served, name, json!({ "resume": NO_RUN })).await;
    assert_eq!(told.to_string().replace(id, NO_RUN), of_none.to_string());
}

#[tokio::test]
async fn a_run_that_waits_is_there_for_its_own_client_only() {
    let served = serve(ASK).await;
    let script = json!({ "script": WRITE });
    let own = run(&served, "laptop", script.clone()).await;
    let of_guest = run(&served, "guest", script.clone()).await;
    let (own, own_approval) = (run_of(&own), approval_of(&own));
    let (of_guest, guest_approval) = (run_of(&of_guest), approval_of(&of_guest));
    assert_ne!(own_approval, guest_approval);
    let pending = served.platform.pending_calls().await.expect("the store works");
    assert_eq!(pending.len(), 2, "{pending:?}");
    for (approval, principal, id) in
        [(&own_approval, "token:laptop", &own), (&guest_approval, "token:guest", &of_guest)]
    {
        let call = pending.iter().find(|call| call.id == *approval).expect("it waits");
        assert_eq!(call.principal.as_deref(), Some(principal));
        assert_eq!(call.call.run.as_ref(), Some(id));
    }
    check_hidden(&served, "guest", &own).await;
    check_hidden(&served, "laptop", &of_guest).await;
    let approve = async |approval: &str| {
        let approved = served.platform.approve_call(approval, ApprovalScope::Once, None).await;
        approved.expect("it waits");
    };
    approve(&own_approval).await;
    // The same call of another client waits as before: in its run, in one that begins, and outside of any.
    check_hidden(&served, "guest", &own).await;
    let resumed = run(&served, "guest", json!({ "resume": of_guest })).await;
    assert_eq!(approval_of(&resumed), guest_approval);
    let anew = run(&served, "guest", script).await;
    assert_eq!(approval_of(&anew), guest_approval);
    let outside = served.call("guest@listed", "notes__write", json!({ "path": "/a" })).await;
    assert_eq!(approval_of(&outside), guest_approval);
    assert_eq!(writes(&served).await, "0");
    let resumed = run(&served, "laptop", json!({ "resume": own })).await;
    assert_eq!(text(&resumed), "write 1", "{resumed}");
    let again = run(&served, "laptop", json!({ "resume": own })).await;
    assert_eq!(code(&again), "not-paused", "{again}");
    assert_eq!(writes(&served).await, "1");
    // One that has ended is hidden as well.
    check_hidden(&served, "guest", &own).await;
    approve(&guest_approval).await;
    let resumed = run(&served, "guest", json!({ "resume": of_guest })).await;
    assert_eq!(text(&resumed), "write 2", "{resumed}");
    assert_eq!(writes(&served).await, "2");
    served.end().await;
}

#[test]
fn a_token_of_the_command_is_what_rules_and_approvals_name() {
    let rules = format!("{ASK}\n{GUESTS_MAY_NOT_WRITE}");
    let project = Project::with_notes(&rules, SCRIPT).approved();
    project.write("tenon/config.toml", "profiles.code.mode = \"code\"");
    let token = |name: &str| {
        let added = project.tenon(&["token", "add", name, "--profile", "code"]);
        assert!(added.status.success(), "{}", stderr(&added));
        stdout(&added).trim().to_string()
    };
    let (laptop, guest) = (token("laptop"), token("guest"));
    let mut serving = Serving::start(project.command(&["serve", "--http", "127.0.0.1:0"]));
    let (address, _) = serving.address();
    let run = |token: &str, arguments: Value| call_tool(&address, token, "run", &arguments);
    let refused = run(&guest, json!({ "script": WRITE }));
    assert!(text(&refused).contains("may not be called like this, by "), "{refused}");
    let paused = run(&laptop, json!({ "script": WRITE }));
    let (id, approval) = (run_of(&paused), approval_of(&paused));
    let pending = parsed(&project.tenon(&["--json", "pending"]));
    let [call] = &pending.as_array().expect("it is a list")[..] else { panic!("{pending}") };
    assert_eq!(call["id"], json!(approval), "{call}");
    assert_eq!((&call["principal"], &call["run"]), (&json!("token:laptop"), &json!(id)), "{call}");
    let approved = project.tenon(&["approve", &approval, "--yes"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    let hidden = run(&guest, json!({ "resume": id }));
    assert_eq!(code(&hidden), "not-found", "{hidden}");
    let resumed = run(&laptop, json!({ "resume": id }));
    assert_eq!(text(&resumed), "write 1", "{resumed}");
    let counted = run(&guest, json!({ "script": "notes.writes()" }));
    assert_eq!(text(&counted), "1", "{counted}");
    assert_eq!(serving.end(), Some(0));
}
