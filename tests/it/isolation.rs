//! Whatever one plugin does, another's calls are answered.

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tenon_host::services::GrantAll;
use tenon_host::types::{CompletionRequest, ErrorCode};
use tenon_host::{Call, CallError, Caller, Failure, LimitExceeded, Platform};

use crate::guests;
use crate::support::{Project, RunningPlatform, call, text};

/// A platform with a plugin that does its worst on fresh instances and on a shared one, one that
/// calls itself, and one that is left alone.
async fn platform() -> RunningPlatform {
    let project = Project::new(&format!(
        r#"
        [plugins]
        folders = ["own"]
        wasm = [
            {{ path = {worst:?}, id = "fresh" }},
            {{ path = {worst:?}, id = "shared", instance = "shared" }},
            {{ path = {good:?}, id = "good", instance = "shared" }},
        ]
        [limits]
        memory_mib = 64
        cpu = "1s"
        wall = "6s"
        transfer_mib = 4
        host_calls = 10000
        "#,
        worst = guests::MISBEHAVE,
        good = guests::TEXT_TOOLS,
    ));
    let manifest = "plugin.id = \"w\"\nruntime = { kind = \"wasm\", path = \"w.wasm\" }\n\
                    [capabilities]\ntools = [\"*\"]\nproviders = [\"*\"]\nmessaging = [\"*\"]\nmemory = [\"search\"]\n\
                    secrets = [\"x\"]";
    project.write("own/w/plugin.toml", manifest);
    project.write("own/w/w.wasm", std::fs::read(guests::CALLER).unwrap());
    let builder = project.builder().approver(GrantAll);
    RunningPlatform::new(builder.build().await.expect("the platform is built"), project)
}

/// Calls a plugin a hundred times a second until it is over. Gives how often that was.
async fn keep_calling(
    platform: Arc<RunningPlatform>,
    over: Arc<AtomicBool>,
    calls: Arc<AtomicU32>,
) {
    let mut pace = tokio::time::interval(Duration::from_millis(10));
    let mut running = Vec::new();
    while !over.load(Ordering::Relaxed) {
        pace.tick().await;
        let platform = platform.clone();
        // Each on its own: one that waits does not hold up the next.
        running.push(tokio::spawn(async move {
            text(&platform, "good__slug", json!({ "text": "Well done" })).await
        }));
        calls.fetch_add(1, Ordering::Relaxed);
    }
    for call in running {
        assert_eq!(call.await.expect("the call succeeds"), "well-done");
    }
}

async fn failure(platform: &Platform, name: &str, arguments: Value) -> Failure {
    match call(platform, name, arguments).await {
        Err(CallError::Failed { failure, .. }) => failure,
        other => panic!("{name}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worst_of_one_plugin_is_no_trouble_to_another() {
    let platform = Arc::new(platform().await);
    let (over, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let others = tokio::spawn(keep_calling(platform.clone(), over.clone(), calls.clone()));

    type Expected = fn(&Failure) -> bool;
    let ways: [(&str, Expected); 8] = [
        ("spin", |failure| matches!(failure, Failure::LimitExceeded(LimitExceeded::Cpu(_)))),
        ("hang", |failure| matches!(failure, Failure::Deadline(_))),
        ("hoard", |failure| matches!(failure, Failure::LimitExceeded(LimitExceeded::Memory(_)))),
        ("recurse", |f| {
            matches!(f, Failure::Trapped(_) | Failure::LimitExceeded(LimitExceeded::Depth))
        }),
        ("flood_host", |failure| {
            matches!(failure, Failure::LimitExceeded(LimitExceeded::HostCalls(_)))
        }),
        ("flood_log", |failure| {
            matches!(failure, Failure::LimitExceeded(LimitExceeded::HostCalls(_)))
        }),
        ("flood_console", |failure| {
            matches!(failure, Failure::LimitExceeded(LimitExceeded::HostCalls(_)))
        }),
        ("flood_output", |failure| {
            matches!(failure, Failure::LimitExceeded(LimitExceeded::Transfer(_)))
        }),
    ];
    for (way, expected) in ways {
        for mode in ["fresh", "shared"] {
            let failure = failure(&platform, &format!("{mode}__{way}"), json!({})).await;
            // The call before, which hangs, may be in the same instance still.
            let after_hang = (mode, way) == ("shared", "hoard");
            let lost = |why: &String| {
                why.contains("memory limit") && why.contains("in this call or in another")
            };
            let is_lost = after_hang && matches!(&failure, Failure::Lost(why) if lost(why));
            assert!(expected(&failure) || is_lost, "{mode} {way}: {failure:?}");
        }
    }
    never_ending_stream(&platform).await;
    recursion(&platform).await;
    // Many at a time, and all at once.
    let many = (0..32).map(|i| {
        let (way, expected) = ways[i % ways.len()];
        let platform = platform.clone();
        async move {
            let failure = failure(&platform, &format!("fresh__{way}"), json!({})).await;
            // With all processors taken, time may run out first.
            let slow = matches!(
                failure,
                Failure::Deadline(_) | Failure::LimitExceeded(LimitExceeded::Cpu(_))
            );
            assert!(expected(&failure) || slow, "{way}: {failure:?}");
        }
    });
    futures::future::join_all(many).await;

    over.store(true, Ordering::Relaxed);
    others.await.expect("all calls of the other plugin succeeded");
    let calls = calls.load(Ordering::Relaxed);
    assert!(calls > 100, "there were {calls} calls meanwhile");
}

/// A model that never stops is given up.
async fn never_ending_stream(platform: &Platform) {
    let caller = Caller { timeout: Some(Duration::from_secs(1)), ..Caller::default() };
    let request = CompletionRequest::new("fresh/endless", "x");
    let mut answer = platform.stream(request, &caller).await.expect("it begins");
    let mut pieces = 0_u64;
    while answer.next().await.is_some() {
        pieces += 1;
    }
    assert!(pieces > 0);
    let end = answer.finish().await.expect_err("it does not end by itself");
    assert!(matches!(end, Failure::Deadline(_) | Failure::LimitExceeded(_)), "{end:?}");
}

/// A plugin that calls itself through the host gets so deep, and no deeper.
async fn recursion(platform: &Platform) {
    let mut arguments = json!({ "name": "good__slug", "arguments": { "text": "The end" } });
    for _ in 0..7 {
        arguments = json!({ "name": "w__call", "arguments": arguments });
    }
    assert_eq!(text(platform, "w__call", arguments.clone()).await, "the-end");
    for _ in 0..20 {
        arguments = json!({ "name": "w__call", "arguments": arguments });
    }
    let call = Call { name: "w__call".into(), arguments, caller: Caller::default() };
    match platform.call(call).await {
        Err(CallError::Failed { failure: Failure::Answered(error), .. })
            if error.code == ErrorCode::Denied =>
        {
            let message = error.message;
            assert!(message.contains("the chain of calls of plugins by plugins"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}
