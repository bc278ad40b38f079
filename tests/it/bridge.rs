//! MCP servers behind the bridge.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tenon_config::grant::{CapabilityRow, Eligibility};
use tenon_host::{BreakerState, Caller, Event, PluginState, ServerState};

use crate::guests;
use crate::support::{
    DEMO_SERVER, EVERYTHING_SERVER, Project, RUDE_SERVER, SCRIPTED_SERVER, call, call_within,
    eventually, failure, platform, processes_with, text,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_calls_whose_answers_overtake_each_other_get_their_own() {
    let platform =
        platform(&format!("plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?} }}]")).await;
    let began = Instant::now();
    let calls = (0..64_u64).map(|i| {
        let platform = &platform;
        async move {
            // The first call waits the longest.
            let arguments = json!({ "millis": 640 - i * 10, "text": format!("answer {i}") });
            assert_eq!(text(platform, "s__delay", arguments).await, format!("answer {i}"));
        }
    });
    futures::future::join_all(calls).await;
    // One after the other would be twenty seconds.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    platform.clone().shutdown().await;
}

/// One of the calls reads what the server says for all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_gives_up_leaves_the_others_their_answers() {
    let platform =
        platform(&format!("plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?} }}]")).await;
    for gone_first in [true, false] {
        let gone = async {
            let given_up = call_within(&platform, "s__hang", json!({}), Duration::from_millis(50));
            assert!(given_up.await.is_err());
        };
        let stays = async {
            let arguments = json!({ "millis": 200, "text": "later" });
            assert_eq!(text(&platform, "s__delay", arguments).await, "later");
        };
        match gone_first {
            true => drop(futures::join!(gone, stays)),
            false => drop(futures::join!(stays, gone)),
        }
        assert_eq!(text(&platform, "s__echo", json!({ "text": "at once" })).await, "at once");
    }
    platform.clone().shutdown().await;
}

/// What calls say is written together, and yet in no larger pieces than the bridge may hand over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_with_long_arguments_do_not_add_up() {
    let platform = platform(&format!(
        "plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?} }}]\n[limits]\ntransfer_mib = 4"
    ))
    .await;
    let calls = (0..12_u8).map(|i| {
        let (platform, said) = (&platform, char::from(b'a' + i).to_string().repeat(1 << 20));
        async move {
            let answer = call(platform, "s__echo", json!({ "text": said })).await.unwrap();
            let kept = answer.plain_text();
            assert!(kept.starts_with(&said[..1_000]), "{:.100}", kept);
        }
    });
    futures::future::join_all(calls).await;
    platform.clone().shutdown().await;
}

// MCP.md: A10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_in_mid_call_fails_its_calls_at_once_and_nobody_elses() {
    let platform = platform(&format!(
        "[plugins]\nwasm = [{:?}]\nmcp = [{{ name = \"a\", command = {DEMO_SERVER:?} }}, {{ name = \"b\", command = {DEMO_SERVER:?} }}]",
        guests::TEXT_TOOLS
    ))
    .await;
    let other = tokio::spawn({
        let platform = platform.clone();
        async move { text(&platform, "b__delay", json!({ "millis": 300, "text": "b" })).await }
    });
    let hanging: Vec<_> = (0..8)
        .map(|_| {
            let platform = platform.clone();
            tokio::spawn(async move { failure(&platform, "a__hang", json!({})).await })
        })
        .collect();
    let began = Instant::now();
    let crashed = failure(&platform, "a__crash", json!({ "code": 42 })).await.to_string();
    assert!(crashed.contains("exited with code 42"), "{crashed}");
    assert!(crashed.contains("crashing as told"), "{crashed}");
    for hanging in hanging {
        let error = hanging.await.unwrap().to_string();
        assert!(error.contains("exited with code 42"), "{error}");
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(other.await.unwrap(), "b");
    assert_eq!(text(&platform, "text_tools__slug", json!({ "text": "A b" })).await, "a-b");
    // The next call starts it again.
    assert_eq!(text(&platform, "a__echo", json!({ "text": "back" })).await, "back");
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_keeps_dying_is_not_started_for_ever() {
    let platform = platform(&format!(
        "supervision = {{ max_restarts = 4, backoff = \"1ms\", breaker_failures = 100 }}
         plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?} }}]"
    ))
    .await;
    let mut last = String::new();
    for _ in 0..6 {
        last = failure(&platform, "s__crash", json!({ "code": 1 })).await.to_string();
    }
    assert!(last.contains("was started 5 times"), "{last}");
    assert!(last.contains("The last time: the server exited with code 1"), "{last}");
    let report = platform.server("s").unwrap();
    assert_eq!((report.state, report.starts), (ServerState::Failed, 5));
    assert!(report.stderr.iter().any(|line| line.contains("crashing")), "{report:?}");
    // It is told to start again.
    assert!(platform.restart("s"));
    assert_eq!(text(&platform, "s__echo", json!({ "text": "x" })).await, "x");
    assert_eq!(platform.server("s").unwrap().state, ServerState::Ready);
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_nobody_uses_ends_and_the_next_call_starts_it() {
    use ServerState::{Idle, Ready, Shutdown, Spawning};
    let project = Project::new("");
    let mark = project.path("idle-server").display().to_string();
    // Not even one restart is allowed, and these are none.
    project.write(
        "tenon.toml",
        format!(
            "limits.server_idle = \"50ms\"
             supervision.max_restarts = 0
             plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?}, env = {{ MARK = {mark:?} }} }}]"
        ),
    );
    let platform = project.platform().await;
    let mut events = platform.events();
    for _ in 0..3 {
        assert_eq!(text(&platform, "s__echo", json!({ "text": "x" })).await, "x");
        eventually("the server has ended", || {
            let state = platform.server("s").unwrap().state;
            state == Idle && processes_with(&mark).is_empty()
        })
        .await;
    }
    // A call that takes longer does not lose its server.
    let arguments = json!({ "millis": 300, "text": "late" });
    assert_eq!(text(&platform, "s__delay", arguments).await, "late");
    platform.clone().shutdown().await;
    let mut states = Vec::new();
    while let Some(event) = events.try_next() {
        if let Event::Server { state, .. } = event {
            states.push(state);
        }
    }
    // It may have ended once before anybody listened.
    let turn = [Shutdown, Idle, Spawning, Ready];
    assert!(states.windows(turn.len()).any(|of| of == turn), "{states:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_idle_is_registered_again() {
    let project = Project::new("");
    let script = project.path("script.json");
    let lists = |names: &[&str]| {
        let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
        let tools: Vec<Value> = names.iter().map(tool).collect();
        json!({ "tools/list": { "tools": tools }, "tools/call": { "content": [] } }).to_string()
    };
    project.write("script.json", lists(&["a"]));
    project.write(
        "tenon.toml",
        format!(
            "limits.server_idle = \"50ms\"
             plugins.mcp = [{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [{script:?}] }}]"
        ),
    );
    let builder = project.builder();
    let platform = builder.build().await.unwrap();
    let is_idle = || platform.server("s").unwrap().state == ServerState::Idle;
    eventually("the server has ended", is_idle).await;
    project.write("script.json", lists(&["a", "b"]));
    call(&platform, "s__a", json!({})).await.unwrap();
    eventually("its new tool is there", || platform.registry().tool("s__b").is_some()).await;
    // It is not started again for that.
    eventually("the server has ended", is_idle).await;
    platform.shutdown().await;
}

/// Calls come when the server is about to end, while it ends, and after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_when_a_server_ends_because_nobody_uses_it() {
    let platform = platform(&format!(
        "limits.server_idle = \"5ms\"
         supervision.max_restarts = 0
         plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?} }}]"
    ))
    .await;
    let callers = (0..4_u64).map(|caller| {
        let platform = &platform;
        async move {
            for turn in 0..25 {
                let words = format!("{caller} {turn}");
                assert_eq!(text(platform, "s__echo", json!({ "text": words })).await, words);
                tokio::time::sleep(Duration::from_micros(2000 + 311 * (caller + turn))).await;
            }
        }
    });
    futures::future::join_all(callers).await;
    let is_idle = || platform.server("s").unwrap().state == ServerState::Idle;
    eventually("the server has ended", is_idle).await;
    assert_eq!(text(&platform, "s__echo", json!({ "text": "last" })).await, "last");
    assert!(platform.server("s").unwrap().starts > 1);
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_nobody_waits_for_any_more_when_it_is_there_ends_as_well() {
    let project = Project::new("");
    let mark = project.path("slow-server").display().to_string();
    let script = format!("sleep 0.3; exec {DEMO_SERVER:?}");
    project.write(
        "tenon.toml",
        format!(
            "limits.server_idle = \"50ms\"
             plugins.mcp = [{{ name = \"s\", command = \"/bin/sh\", args = [\"-c\", {script:?}], env = {{ MARK = {mark:?} }} }}]"
        ),
    );
    let platform = project.platform().await;
    let has_ended = || {
        let state = platform.server("s").unwrap().state;
        state == ServerState::Idle && processes_with(&mark).is_empty()
    };
    eventually("the server has ended", has_ended).await;
    let arguments = json!({ "text": "x" });
    let timeout = Duration::from_millis(100);
    call_within(&platform, "s__echo", arguments.clone(), timeout).await.unwrap_err();
    eventually("the server has ended again", has_ended).await;
    assert_eq!(text(&platform, "s__echo", arguments).await, "x");
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_resource_is_subscribed_to_does_not_end() {
    let project = Project::new("");
    let memory = project.path("memory");
    project.write(
        "tenon.toml",
        format!(
            "limits.server_idle = \"20ms\"
             plugins.mcp = [{{ name = \"s\", command = {EVERYTHING_SERVER:?}, args = [{memory:?}] }}]"
        ),
    );
    let platform = project.platform().await;
    let (caller, uri) = (Caller::default(), "test://watched-resource");
    let state = || platform.server("s").unwrap().state;
    platform.subscribe("s", uri, &caller).await.expect("it is subscribed to");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(state(), ServerState::Ready);
    platform.unsubscribe("s", uri, &caller).await.expect("it is not any more");
    eventually("the server has ended", || state() == ServerState::Idle).await;
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_to_a_server_that_does_not_answer_are_not_tried_for_a_while() {
    let platform = platform(&format!(
        "supervision = {{ breaker_failures = 2, breaker_cooldown = \"300ms\" }}
         plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?} }}]"
    ))
    .await;
    let mut events = platform.events();
    for _ in 0..2 {
        let timeout = Duration::from_millis(100);
        let hung = call_within(&platform, "s__hang", json!({}), timeout).await;
        assert!(hung.unwrap_err().to_string().contains("no answer within"));
    }
    let opened = Instant::now();
    let refused = failure(&platform, "s__echo", json!({ "text": "x" })).await.to_string();
    assert!(refused.contains("none is tried for a while"), "{refused}");
    assert_eq!(platform.server("s").unwrap().breaker, "ext:stdio:s");
    // After a while one is tried, and as it gets an answer, all are.
    eventually("a call is tried", || {
        platform.server("s").unwrap().breaker_state == BreakerState::HalfOpen
    })
    .await;
    assert!(opened.elapsed() > Duration::from_millis(100));
    assert_eq!(text(&platform, "s__echo", json!({ "text": "x" })).await, "x");
    assert_eq!(platform.server("s").unwrap().breaker_state, BreakerState::Closed);
    platform.clone().shutdown().await;
    drop(platform);
    let mut states = Vec::new();
    while let Some(event) = events.next().await {
        if let Event::Breaker { breaker, state, .. } = event {
            assert_eq!(breaker, "ext:stdio:s");
            states.push(state);
        }
    }
    assert_eq!(states, [BreakerState::Open, BreakerState::Closed]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_being_started_survives_the_caller_who_gives_up() {
    let project = Project::new("");
    let (gate, starts) = (project.path("gate"), project.path("starts"));
    project.write(
        "tenon.toml",
        format!("plugins.mcp = [{{ name = \"s\", command = {RUDE_SERVER:?}, args = [\"gated\", {gate:?}] }}]"),
    );
    let platform = project.platform().await;
    let starts = || std::fs::read(&starts).unwrap().len();
    let echo = json!({ "text": "x" });
    assert_eq!(text(&platform, "s__echo", echo.clone()).await, "x");
    // It has ended after the call, so that one of the next starts it again.
    while starts() < 2 {
        let timeout = Duration::from_millis(50);
        assert!(call_within(&platform, "s__echo", echo.clone(), timeout).await.is_err());
    }
    let timeout = Duration::from_millis(1500);
    assert!(call_within(&platform, "s__echo", echo.clone(), timeout).await.is_err());
    std::fs::write(&gate, "").unwrap();
    assert_eq!(text(&platform, "s__echo", echo).await, "x");
    assert_eq!(starts(), 2);
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_get_the_base_environment_and_their_own_entries() {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?}, env = {{ MINE = \"${{SECRET_TOKEN}}\" }} }}]"
    ));
    let mut host_environment = crate::support::host_environment();
    host_environment.environment =
        [("PATH", "/usr/bin"), ("HOME", "/"), ("SECRET_TOKEN", "x"), ("LD_DEBUG", "")]
            .map(|(name, value)| (name.into(), value.into()))
            .into();
    let platform = project.builder().host_environment(host_environment).build().await.unwrap();
    assert_eq!(text(&platform, "s__environment", json!({})).await, "HOME MINE PATH");
    platform.clone().shutdown().await;
}

// MCP.md: A9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_process_is_left_after_a_shutdown() {
    let project = Project::new("");
    let mark = format!("TENON_TEST_{}", project.path("").display());
    let entries = ["child", "stubborn", "noisy"].map(|habit| {
        format!("{{ name = {habit:?}, command = {RUDE_SERVER:?}, args = [{habit:?}], env = {{ MARK = {mark:?} }} }}")
    });
    project.write("tenon.toml", format!("plugins.mcp = [{}]", entries.join(", ")));
    let platform = project.platform().await;
    assert!(platform.plugins().iter().all(|report| report.state == PluginState::Ready));
    // Each server, and the sleeping child of one.
    assert_eq!(processes_with(&mark).len(), 4);
    platform.clone().shutdown().await;
    eventually("no process is left", || processes_with(&mark).is_empty()).await;
}

#[test]
fn the_bridge_can_reach_nothing_but_its_child() {
    let allowed = [
        "stdio-child",
        "mcp-server",
        "log",
        "config",
        "notify",
        "user",
        "inference",
        "model",
        "types",
    ];
    let imports = imports_of(tenon_host::testing::BRIDGE);
    for import in &imports {
        let name = import.rsplit('/').next().unwrap().split('@').next().unwrap();
        assert!(allowed.contains(&name), "{import}");
    }
    assert_eq!(imports.len(), allowed.len(), "{imports:?}");
    assert!(
        CapabilityRow::of_import("tenon:bridge/stdio-child@0.2.0")
            .is_some_and(|capability| capability.availability == Eligibility::StdioBridge)
    );
}

/// The names of a component's imports, as its bytes say them.
pub(crate) fn imports_of(component: &[u8]) -> Vec<String> {
    let wit_component::DecodedWasm::Component(resolve, world) =
        wit_component::decode(component).expect("the bridge is a component")
    else {
        panic!("the bridge is a component");
    };
    resolve.worlds[world].imports.keys().map(|key| resolve.name_world_key(key)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_asks_for_a_child_of_its_own_is_refused() {
    let project = Project::new("plugins.wasm = [\"bridge.wasm\"]");
    project.write("bridge.wasm", tenon_host::testing::BRIDGE);
    let platform = project.platform().await;
    let detail = platform.plugins()[0].detail.clone().unwrap();
    assert!(
        detail.contains(
            "tenon:bridge/stdio-child@0.2.0, and the capability `stdio-child` is not granted"
        ),
        "{detail}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manifest_can_name_a_server_next_to_it() {
    let project = Project::new("plugins.folders = [\"plugins\"]");
    project.write(
        "plugins/server/plugin.toml",
        "[plugin]\nid = \"server\"\n[runtime]\nkind = \"mcp-bridge\"\n[runtime.subprocess]\nbinary_path = \"./run\"",
    );
    project.write("plugins/server/run", format!("#!/bin/sh\nexec {DEMO_SERVER}\n"));
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.path("plugins/server/run"), executable).unwrap();
    let platform = project.platform().await;
    assert_eq!(text(&platform, "server__echo", json!({ "text": "x" })).await, "x");
    let result: Value = tenon_host::types::mcp_json::tool_result(
        &call(&platform, "server__echo", json!({ "text": "x" })).await.unwrap(),
    );
    assert_eq!(result["content"], json!([{ "type": "text", "text": "x" }]));
    platform.clone().shutdown().await;
}
