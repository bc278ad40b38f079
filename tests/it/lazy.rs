//! Servers that are started when they are called.

use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use tenon_host::services::{ClientFeatures, Offers};
use tenon_host::{Builder, Call, Caller, HostEnvironment, Platform, ServerState};

use crate::approval::on_terminal;
use crate::support::{DEMO_SERVER, Project, eventually, parsed, stderr, text};

fn project() -> Project {
    Project::new(&format!("plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?} }}]"))
}

/// Where what its server contributes is kept.
fn servers(project: &Project) -> PathBuf {
    project.path("cache/servers")
}

/// With a cache of its own.
fn builder(project: &Project) -> Builder {
    let cache = Some(project.path("cache"));
    project
        .builder()
        .host_environment(HostEnvironment { cache, ..crate::support::host_environment() })
}

async fn built(project: &Project) -> Platform {
    builder(project).build().await.unwrap()
}

fn state(platform: &Platform) -> ServerState {
    platform.server("s").expect("it has a server").state
}

/// Has the project's server asked once, as an earlier run would.
async fn ask_once(project: &Project) {
    let platform = built(project).await;
    assert_eq!(state(&platform), ServerState::Ready);
    platform.shutdown().await;
    // Whoever was told that it is there may be gone at once.
    assert_eq!(std::fs::read_dir(servers(project)).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_known_server_is_started_by_the_first_call() {
    let project = project();
    ask_once(&project).await;
    let platform = built(&project).await;
    assert_eq!(state(&platform), ServerState::Idle);
    assert!(platform.registry().tool("s__echo").is_some());
    assert_eq!(text(&platform, "s__echo", json!({ "text": "x" })).await, "x");
    assert_eq!(state(&platform), ServerState::Ready);
    platform.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_has_in_place_of_what_was_kept_is_found_out_by_the_first_call() {
    let project = project();
    ask_once(&project).await;
    let file = std::fs::read_dir(servers(&project)).unwrap().last().unwrap().unwrap().path();
    let kept = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, kept.replace("\"hang\"", "\"gone\"")).unwrap();
    let platform = built(&project).await;
    assert!(platform.registry().tool("s__gone").is_some());
    // Nobody calls something other than they were shown; what is as it was is called.
    let gone = platform.call(Call::new("s__gone", json!({})));
    let echo = platform.call(Call::new("s__echo", json!({ "text": "x" })));
    let (gone, echo) = tokio::join!(gone, echo);
    let refused = gone.expect_err("it is not there").to_string();
    assert!(refused.contains("the server's tools have changed"), "{refused}");
    assert_eq!(echo.expect("it is there").plain_text(), "x");
    eventually("its own tools are there", || {
        let registry = platform.registry();
        registry.tool("s__gone").is_none() && registry.tool("s__hang").is_some()
    })
    .await;
    assert_eq!(text(&platform, "s__echo", json!({ "text": "x" })).await, "x");
    platform.shutdown().await;
}

/// However little time a call has: that of its server's start is another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_started_by_a_call_has_the_time_of_a_start() {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"s\", command = \"sh\", args = [\"-c\", \"sleep 1; exec $0\", \
         {DEMO_SERVER:?}], timeout = \"500ms\" }}]"
    ));
    ask_once(&project).await;
    let platform = built(&project).await;
    assert_eq!(state(&platform), ServerState::Idle);
    assert_eq!(text(&platform, "s__echo", json!({ "text": "x" })).await, "x");
    platform.shutdown().await;
    // Who gives the call up does not give the start up.
    let platform = built(&project).await;
    let hasty = Caller { timeout: Some(Duration::from_millis(100)), ..Caller::default() };
    let call = Call { caller: hasty, ..Call::new("s__echo", json!({ "text": "x" })) };
    platform.call(call).await.expect_err("there is no time for it");
    eventually("the server is there", || state(&platform) == ServerState::Ready).await;
    assert_eq!(platform.server("s").expect("it has a server").starts, 1);
    platform.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_configuration_is_asked_and_so_is_who_is_told_to_start() {
    let project = project();
    ask_once(&project).await;
    let platform = builder(&project).start_servers().build().await.unwrap();
    assert_eq!(state(&platform), ServerState::Ready);
    platform.shutdown().await;
    project.write(
        "tenon.toml",
        format!("plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?}, args = [\"-x\"] }}]"),
    );
    let platform = built(&project).await;
    assert_eq!(state(&platform), ServerState::Ready);
    platform.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_starts_every_server() {
    let project = project();
    assert!(project.tenon(&["tools"]).status.success());
    for _ in 0..2 {
        let output = project.tenon(&["doctor", "--json"]);
        assert_eq!(parsed(&output)[0]["server"]["state"], "ready");
    }
}

/// A project with two servers that note in the file `started` that they are.
fn noting() -> Project {
    let project = Project::new("");
    let note = project.path("started");
    let entry = |name: &str| {
        let script = format!("echo {name} >> {note:?}; exec {DEMO_SERVER:?}");
        format!("{{ name = {name:?}, command = \"sh\", args = [\"-c\", {script:?}] }}")
    };
    project.write("tenon.toml", format!("plugins.mcp = [{}, {}]", entry("a"), entry("b")));
    project
}

/// Which of its servers were started by a command, and what that ended with.
fn started_by(project: &Project, arguments: &[&str]) -> (String, Option<i32>, String) {
    let _ = std::fs::remove_file(project.path("started"));
    let output = project.tenon(arguments);
    let started = std::fs::read_to_string(project.path("started")).unwrap_or_default();
    (started, output.status.code(), stderr(&output))
}

#[test]
fn what_is_known_to_fail_starts_no_server() {
    let project = noting();
    project.command(&["tools"]).env("XDG_CACHE_HOME", project.path("cache")).output().unwrap();
    let check = |arguments: &[&str], expected: &[&str]| {
        let _ = std::fs::remove_file(project.path("started"));
        let mut command = project.command(arguments);
        let output = command.env("XDG_CACHE_HOME", project.path("cache")).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(!project.path("started").exists(), "{arguments:?}: {said}");
        for expected in expected {
            assert!(said.contains(expected), "{arguments:?}: {said}");
        }
    };
    let doctor = "`tenon doctor a` asks the server again";
    check(&["call", "a__echo", r#"{"text": 7}"#], &["at /text: 7 is not of type", doctor]);
    check(
        &["call", "a__ehco"],
        &["there is no tool \"a__ehco\"", "did you mean \"a__echo\"", doctor],
    );
    check(&["call", "aa__echo"], &["did you mean \"a__echo\""]);
    check(&["call", "nothing-like-it"], &["there is no tool"]);
    check(&["resources", "list", "c"], &["there is no plugin \"c\""]);
    check(&["prompts", "get", "c", "p"], &["there is no plugin \"c\""]);
}

#[test]
fn a_tool_that_is_disabled_or_declined_starts_no_server() {
    let project = noting();
    let servers = std::fs::read_to_string(project.path("tenon.toml")).unwrap();
    let call = ["call", "a__echo", r#"{"text": "x"}"#];
    let by_entry = servers.replacen(" command", " disabled_tools = [\"echo\"], command", 1);
    for (configuration, by) in [
        (format!("{servers}\ntools.a__echo.enabled = false"), "`enabled = false` under [tools]"),
        (format!("{servers}\ntools.\"*\".enabled = false"), "`enabled = false` under [tools]"),
        (by_entry, "the `disabled_tools` of its plugin"),
    ] {
        project.write("tenon.toml", &configuration);
        for is_known in [false, true] {
            if is_known {
                let (_, code, said) = started_by(&project, &["tools"]);
                assert_eq!(code, Some(0), "{said}");
            }
            let (started, code, said) = started_by(&project, &call);
            assert_eq!((&*started, code), ("", Some(3)), "{configuration}: {said}");
            assert!(said.contains(&format!("the tool a__echo is disabled by {by}")), "{said}");
        }
    }
    // Another of the same server is called as ever.
    project.write("tenon.toml", format!("{servers}\ntools.a__add.enabled = false"));
    assert_eq!(started_by(&project, &call).1, Some(0));

    // Whoever may approve it is asked before one is started that a script may turn to.
    let _ = std::fs::remove_file(project.path("started"));
    let script = |path: &str, capabilities: &str| {
        format!("{{ path = {path:?}, capabilities = {{ {capabilities} }} }}")
    };
    let scripts =
        [script("g.rhai", "tools = [\"b__*\"]"), script("own.rhai", "environment = [\"LANG\"]")];
    let scripts = scripts.join(", ");
    project.write("tenon.toml", format!("plugins.scripts = [{scripts}]\n{servers}"));
    project.write("g.rhai", "fn BeforeToolCall(context) {}");
    project.write("own.rhai", "tool(#{ name: \"t\", description: \"d\" }, |a| \"text\");");
    let approved = project.tenon(&["approve", "g", "--yes"]);
    assert_eq!(approved.status.code(), Some(0), "{}", stderr(&approved));
    let said = on_terminal(&project, &["call", "own__t"], "n\n");
    assert_eq!(said.matches("approve it?").count(), 1, "{said}");
    assert!(said.contains("which is not approved"), "{said}");
    assert!(!project.path("started").exists(), "{said}");
    let said = on_terminal(&project, &["call", "own__t"], "y\n");
    assert!(said.contains("text") && project.path("started").exists(), "{said}");
}

#[test]
fn where_nothing_is_known_only_those_are_started_that_may_have_it() {
    let project = noting();
    let (started, code, said) = started_by(&project, &["call", "c__echo"]);
    assert_eq!((&*started, code), ("", Some(2)), "{said}");
    let (started, code, said) = started_by(&project, &["resources", "list", "c"]);
    assert_eq!((&*started, code), ("", Some(2)), "{said}");
    let (started, code, said) = started_by(&project, &["call", "a__ehco"]);
    assert_eq!((&*started, code), ("a\n", Some(2)), "{said}");
    let (started, code, said) = started_by(&project, &["call", "b__echo", r#"{"text": "x"}"#]);
    assert_eq!((&*started, code), ("b\n", Some(0)), "{said}");
}

#[test]
fn a_plugin_that_may_call_tools_has_their_servers_started_and_no_other() {
    let project = noting();
    let servers = std::fs::read_to_string(project.path("tenon.toml")).unwrap();
    let script = "plugins.scripts = [{ path = \"s.rhai\", capabilities = { tools = [\"a__*\"] } }]";
    project.write("tenon.toml", format!("{script}\n{servers}"));
    project
        .write("s.rhai", "strategy(#{ name: \"e\", description: \"d\" }, |s, o| #{ score: 1.0 });");
    let approved = project.tenon(&["approve", "s", "--yes"]);
    assert_eq!(approved.status.code(), Some(0), "{}", stderr(&approved));
    for arguments in [&["eval", "s/e", "--subject", "1"][..], &["resources", "list", "s"]] {
        let (started, _, said) = started_by(&project, arguments);
        assert_eq!(started, "a\n", "{arguments:?}: {said}");
    }
}

#[test]
fn whoever_calls_a_tool_hears_of_its_server_and_of_guards_and_of_no_other() {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"a\", command = {DEMO_SERVER:?} }}, {{ name = \"b\", command = \"${{NOPE}}\" }}]"
    ));
    let call = ["call", "a__echo", r#"{"text": "x"}"#];
    let output = project.tenon(&call);
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    let listed = stderr(&project.tenon(&["tools"]));
    assert!(listed.contains("the variable NOPE is not set"), "{listed}");
    let asked = stderr(&project.tenon(&["call", "b__echo"]));
    assert!(asked.contains("the variable NOPE is not set"), "{asked}");
    // What cannot be read may be a guard.
    project.write(".tenon/plugins/guard/plugin.toml", "id = 7");
    let output = project.tenon(&call);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("guard/plugin.toml"), "{}", stderr(&output));
}

/// What it offers may be up to what it can ask for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_known_of_a_server_is_what_it_told_a_client_with_the_same_features() {
    struct OffersForms;
    impl ClientFeatures for OffersForms {
        fn offers(&self) -> Offers {
            Offers { forms: true, ..Offers::default() }
        }
    }
    let project = project();
    ask_once(&project).await;
    let other = builder(&project).client_features(OffersForms).build().await.unwrap();
    assert_eq!(state(&other), ServerState::Ready);
    other.shutdown().await;
    for platform in [builder(&project), builder(&project).client_features(OffersForms)] {
        let platform = platform.build().await.unwrap();
        assert_eq!(state(&platform), ServerState::Idle);
        platform.shutdown().await;
    }
}

/// What is started or reached in the same way may be another server: at an address of this machine, say, where each
/// project starts its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_known_of_a_server_is_what_it_told_the_same_project() {
    let project = project();
    ask_once(&project).await;
    let other = self::project();
    let cache = Some(project.path("cache"));
    let environment = HostEnvironment { cache, ..crate::support::host_environment() };
    let platform = other.builder().host_environment(environment).build().await.unwrap();
    assert_eq!(state(&platform), ServerState::Ready);
    platform.shutdown().await;
}

/// A command is run in its project, whose configuration is then named in the same way as every other's.
#[test]
fn the_command_knows_the_servers_of_one_project_from_those_of_another() {
    let configuration = format!(
        "plugins.mcp = [{{ name = \"s\", command = \"sh\", args = [\"-c\", \"echo x >> started; exec $0\", \
         {DEMO_SERVER:?}] }}]"
    );
    for project in [Project::new(&configuration), Project::new(&configuration)] {
        for _ in 0..2 {
            let output = project.tenon(&["tools"]);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        }
        let started = std::fs::read_to_string(project.path("started")).expect("it was started");
        assert_eq!(started.lines().count(), 1, "it is known from then on");
    }
}
