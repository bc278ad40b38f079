//! Shared instances: many calls in flight in one, and what happens to them when one goes wrong.

use serde_json::json;
use std::time::Duration;
use tenon_host::{CallError, Failure};

use crate::guests;
use crate::support::{Running, call, call_within, platform, text};

async fn shared() -> Running {
    platform(&format!(
        "plugins.wasm = [{{ path = {:?}, instance = \"shared\" }}]",
        guests::MISBEHAVE
    ))
    .await
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
async fn a_trap_ends_the_calls_of_its_instance_at_once_with_its_reason() {
    let platform = shared().await;
    let waiting = tokio::spawn({
        let platform = platform.clone();
        async move { call(&platform, "misbehave__hang", json!({})).await }
    });
    tokio::task::yield_now().await;
    assert!(call(&platform, "misbehave__panic", json!({})).await.is_err());
    let outcome = waiting.await.unwrap().unwrap_err();
    assert!(matches!(outcome, CallError::Failed { failure: Failure::Trapped(_), .. }), "{outcome}");
    assert_eq!(text(&platform, "misbehave__echo", json!({ "text": "x" })).await, "x");
}
