//! Shared and stateless instances: many calls in flight in one, and what happens to them when one goes wrong.

use serde_json::json;
use std::thread::available_parallelism;
use std::time::Duration;
use tenon_host::services::GrantAll;
use tenon_host::types::ToolResult;
use tenon_host::{CallError, Event, Failure, Platform};
use tokio::task::JoinHandle;

use crate::guests;
use crate::support::{Project, RunningPlatform, call, call_within, platform, text};

async fn shared() -> RunningPlatform {
    misbehave("shared").await
}

/// A platform with `misbehave` on such instances.
async fn misbehave(instance: &str) -> RunningPlatform {
    let wasm = guests::MISBEHAVE;
    platform(&format!("plugins.wasm = [{{ path = {wasm:?}, instance = {instance:?} }}]")).await
}

/// Has a call begin that does not end.
async fn hang(platform: &Platform) -> JoinHandle<Result<ToolResult, CallError>> {
    let mut events = platform.events();
    let waiting = tokio::spawn({
        let platform = platform.clone();
        async move { call(&platform, "misbehave__hang", json!({})).await }
    });
    // The guest says when it has begun.
    loop {
        let event = events.next().await.expect("the platform is there");
        if matches!(event, Event::Progress { .. }) {
            return waiting;
        }
    }
}

#[tokio::test]
async fn two_calls_meet_in_one_instance() {
    let platform = shared().await;
    let (first, second) = futures::join!(
        text(&platform, "misbehave__meet", json!({})),
        text(&platform, "misbehave__meet", json!({})),
    );
    assert_eq!((first.as_str(), second.as_str()), ("met", "met"));
}

#[tokio::test]
async fn two_calls_of_fresh_instances_do_not_meet() {
    let platform = platform(&format!("plugins.wasm = [{:?}]", guests::MISBEHAVE)).await;
    let timeout = Duration::from_millis(300);
    let (first, second) = futures::join!(
        call_within(&platform, "misbehave__meet", json!({}), timeout),
        call_within(&platform, "misbehave__meet", json!({}), timeout),
    );
    assert!(first.is_err() && second.is_err());
}

#[tokio::test]
async fn a_call_that_ends_when_it_is_cancelled_keeps_the_instance() {
    let platform = shared().await;
    // The instance remembers one call of `meet`.
    let first = tokio::spawn({
        let platform = platform.clone();
        async move { text(&platform, "misbehave__meet", json!({})).await }
    });
    let timeout = Duration::from_millis(100);
    let given_up = call_within(&platform, "misbehave__hang_politely", json!({}), timeout).await;
    assert!(matches!(given_up, Err(CallError::Failed { failure: Failure::Deadline(_), .. })));
    // Longer than an instance that does not let go would be kept.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(text(&platform, "misbehave__meet", json!({})).await, "met");
    assert_eq!(first.await.unwrap(), "met");
}

#[tokio::test]
async fn a_call_that_does_not_end_costs_the_instance_its_place_and_others_nothing() {
    let platform = shared().await;
    let waiting = tokio::spawn({
        let platform = platform.clone();
        async move { call_within(&platform, "misbehave__meet", json!({}), Duration::from_secs(4)).await }
    });
    let timeout = Duration::from_millis(100);
    assert!(call_within(&platform, "misbehave__hang", json!({}), timeout).await.is_err());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    // New calls are on a new instance, where nobody has met yet.
    let alone = call_within(&platform, "misbehave__meet", json!({}), timeout).await;
    assert!(matches!(alone, Err(CallError::Failed { failure: Failure::Deadline(_), .. })));
    // The old one goes on for its callers until they are done.
    let outcome = waiting.await.unwrap();
    assert!(
        matches!(outcome, Err(CallError::Failed { failure: Failure::Deadline(_), .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_trap_ends_the_calls_of_its_instance_at_once_and_is_not_laid_at_their_door() {
    let platform = shared().await;
    let waiting = hang(&platform).await;
    let last_words = json!({ "text": "goodbye" });
    let trapped = call(&platform, "misbehave__panic", last_words.clone()).await;
    for outcome in [waiting.await.unwrap(), trapped] {
        let said = outcome.as_ref().unwrap_err().to_string();
        assert!(is_lost(&outcome), "{said}");
        assert!(said.contains("it trapped, in this call or in another"), "{said}");
        assert!(!said.contains("goodbye"), "{said}");
    }
    assert_eq!(text(&platform, "misbehave__echo", json!({ "text": "x" })).await, "x");
    // One that is alone is told.
    let trapped = call(&platform, "misbehave__panic", last_words).await.unwrap_err();
    assert!(trapped.to_string().contains("I was told to: goodbye"), "{trapped}");
}

fn is_lost(outcome: &Result<ToolResult, CallError>) -> bool {
    matches!(outcome, Err(CallError::Failed { failure: Failure::Lost(_), .. }))
}

/// A keeper on such instances, which may call the tools of misbehave.
async fn keeper(instance: &str) -> RunningPlatform {
    let project = Project::new(&format!(
        "plugins = {{ folders = [\"own\"], wasm = [{:?}] }}",
        guests::MISBEHAVE
    ));
    let manifest = format!(
        "plugin.id = \"keeper\"\n\
         runtime = {{ kind = \"wasm\", path = \"keeper.wasm\", instance = {instance:?} }}\n\
         [capabilities]\ntools = [\"misbehave__*\"]"
    );
    project.write("own/keeper/plugin.toml", manifest);
    project.write("own/keeper/keeper.wasm", std::fs::read(guests::KEEPER).unwrap());
    let platform = project.builder().approver(GrantAll).build().await;
    RunningPlatform::new(platform.expect("the platform is built"), project)
}

#[tokio::test]
async fn a_tool_of_the_sdk_that_waits_is_dropped_when_it_is_cancelled_and_the_instance_goes_on() {
    let platform = keeper("shared").await;
    assert_eq!(text(&platform, "keeper__count", json!({})).await, "1 calls, 0 dropped");
    let timeout = Duration::from_millis(100);
    let asks = json!({ "name": "misbehave__hang", "arguments": {} });
    for (name, arguments) in [("keeper__wait", json!({})), ("keeper__wait_for_a_tool", asks)] {
        let given_up = call_within(&platform, name, arguments, timeout).await;
        assert!(matches!(given_up, Err(CallError::Failed { failure: Failure::Deadline(_), .. })));
    }
    let polite = call_within(&platform, "keeper__wait_politely", json!({}), timeout).await;
    assert!(polite.is_err(), "{polite:?}");
    // Longer than an instance that does not let go would be kept.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(text(&platform, "keeper__count", json!({})).await, "3 calls, 2 dropped");
}

#[tokio::test]
async fn calls_that_follow_each_other_have_the_same_stateless_instance() {
    let platform = keeper("stateless").await;
    for calls in 1..=3 {
        let counted = text(&platform, "keeper__count", json!({})).await;
        assert_eq!(counted, format!("{calls} calls, 0 dropped"));
    }
}

#[tokio::test]
async fn a_stateless_instance_that_works_on_a_cancelled_call_is_passed_over() {
    if available_parallelism().is_ok_and(|processors| processors.get() == 1) {
        return;
    }
    let platform = misbehave("stateless").await;
    let calls = hang(&platform).await;
    // Its caller gives up, and it goes on.
    calls.abort();
    assert!(calls.await.is_err());
    let trapped = call(&platform, "misbehave__panic", json!({ "text": "goodbye" })).await;
    // It was the only call of its instance.
    let trapped = trapped.unwrap_err().to_string();
    assert!(trapped.contains("I was told to: goodbye"), "{trapped}");
}

#[tokio::test]
async fn one_that_reaches_a_limit_beside_others_is_not_blamed_for_them() {
    let platform = shared().await;
    let waiting = hang(&platform).await;
    let flood = call(&platform, "misbehave__hoard", json!({})).await;
    for ended in [flood, waiting.await.unwrap()] {
        assert!(is_lost(&ended), "{ended:?}");
        let told = ended.unwrap_err().to_string();
        assert!(told.contains("memory limit") && told.contains("or in another"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guests_that_compute_on_all_workers_leave_others_their_turn() {
    for instance in ["fresh", "shared"] {
        let wasm = guests::MISBEHAVE;
        let entry = |id| format!("{{ path = {wasm:?}, id = {id:?}, instance = {instance:?} }}");
        let entries = ["a", "b", "c"].map(entry).join(", ");
        let platform = platform(&format!("plugins.wasm = [{entries}]")).await;
        assert_eq!(text(&platform, "c__echo", json!({ "text": "x" })).await, "x");
        let begin = |tool: &'static str, arguments| {
            let platform = platform.clone();
            tokio::spawn(async move { call(&platform, tool, arguments).await })
        };
        let spinning = [begin("a__spin", json!({})), begin("b__spin", json!({}))];
        // Each has its turn, several times, before the limit of processor time ends those that compute.
        for _ in 0..20 {
            assert!(begin("c__echo", json!({ "text": "x" })).await.unwrap().is_ok());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for spinning in spinning {
            assert!(!spinning.is_finished(), "{instance}");
            spinning.abort();
        }
    }
}

#[tokio::test]
async fn calls_of_stateless_instances_are_spread_and_a_trap_ends_those_of_its_own() {
    let platform = misbehave("stateless").await;
    let are_several = available_parallelism().is_ok_and(|processors| processors.get() > 1);
    let waiting = hang(&platform).await;
    let trapped = call(&platform, "misbehave__panic", json!({ "text": "goodbye" })).await;
    // It was the only call of its instance.
    let trapped = trapped.unwrap_err().to_string();
    assert_eq!(trapped.contains("I was told to: goodbye"), are_several, "{trapped}");
    // Where the instance that trapped was, there is another one.
    assert_eq!(text(&platform, "misbehave__echo", json!({ "text": "x" })).await, "x");
    platform.clone().shutdown().await;
    let ended = waiting.await.unwrap();
    assert!(is_lost(&ended), "{ended:?}");
    let expected = if are_several { "it was unloaded" } else { "it trapped" };
    assert!(ended.unwrap_err().to_string().contains(expected));
}
