//! What those see who watch a host from outside: spans with the same fields for every kind of
//! plugin, traces that go on, and metrics.

use futures::FutureExt;
use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use serde_json::json;

use crate::guests;
use crate::support::{DEMO_SERVER, Project, call, failure, stderr};

#[test]
fn every_kind_is_called_in_a_span_with_the_same_fields() {
    let project = Project::new(&format!(
        "[plugins]\nwasm = [{{ path = {0:?}, id = \"fresh\" }}, {{ path = {0:?}, id = \"shared\", instance = \"shared\" }}]\n\
         scripts = [\"script.rhai\"]\nmcp = [{{ name = \"server\", command = {DEMO_SERVER:?} }}]",
        guests::MISBEHAVE
    ));
    let script =
        "tool(#{ name: \"echo\", description: \"d\" }, |a| { log(\"heard \" + a.text); a.text });";
    project.write("script.rhai", script);
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let run = |plugin: &str, tool: &str| {
        let name = format!("{plugin}__{tool}");
        let mut command = project.command(&["call", &name, "{\"text\": \"x\"}"]);
        command.args(["--agent", "a", "--session", "s", "--timeout", "2s"]);
        stderr(&command.env("TENON_LOG", "debug").env("TRACEPARENT", PARENT).output().unwrap())
    };
    for plugin in ["fresh", "shared", "script", "server"] {
        let said = run(plugin, "echo");
        let over = said.lines().find(|line| line.contains("the call is over: ok"));
        let over = over.unwrap_or_else(|| panic!("{plugin}: {said}"));
        let fields = format!(
            "call{{plugin=\"{plugin}\" tool=\"{plugin}__echo\" call=1 agent=\"a\" session=\"s\" \
             trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\" span_id="
        );
        assert!(over.contains(&fields), "{over}");
    }
    // What a plugin logs belongs to the call, on whatever thread and instance it runs.
    let of_call = |said: &str, words: &str| {
        let line = said.lines().find(|line| line.contains(words));
        line.unwrap_or_else(|| panic!("{words}: {said}")).contains("call{plugin=")
    };
    assert!(of_call(&run("script", "echo"), "heard x"));
    assert!(of_call(&run("fresh", "panic"), "panicked"));
    assert!(of_call(&run("fresh", "flood_log"), "again and again"));
    assert!(of_call(&run("shared", "flood_log"), "again and again"));
}

#[tokio::test]
async fn calls_are_counted_and_timed() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::MISBEHAVE));
    let platform = project.platform().await;
    for _ in 0..2 {
        call(&platform, "misbehave__echo", json!({ "text": "x" })).await.unwrap();
    }
    call(&platform, "misbehave__fail", json!({ "text": "x" })).await.unwrap();
    failure(&platform, "misbehave__trap", json!({})).await;
    // Given up after it was begun.
    assert!(call(&platform, "misbehave__hang", json!({})).now_or_never().is_none());
    let mut counted = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let labels: Vec<&str> = key.key().labels().map(|label| label.value()).collect();
        match (key.kind(), value) {
            (MetricKind::Counter, DebugValue::Counter(count)) if count > 0 => {
                assert_eq!(key.key().name(), "tenon_calls_total");
                counted.push(format!("{} {count}", labels.join(" ")));
            }
            (MetricKind::Histogram, DebugValue::Histogram(times)) if !times.is_empty() => {
                assert_eq!(key.key().name(), "tenon_call_duration_seconds");
                counted.push(format!("{} timed {}", labels.join(" "), times.len()));
            }
            _ => {}
        }
    }
    counted.sort();
    assert_eq!(
        counted,
        [
            "misbehave misbehave__echo ok 2",
            "misbehave misbehave__echo timed 2",
            "misbehave misbehave__fail timed 1",
            "misbehave misbehave__fail tool-error 1",
            "misbehave misbehave__hang abandoned 1",
            "misbehave misbehave__hang timed 1",
            "misbehave misbehave__trap error 1",
            "misbehave misbehave__trap timed 1",
        ]
    );
}
