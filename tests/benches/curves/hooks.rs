//! By the number of hooks around a call: scripts that change its arguments or its result, and components that look at both.

use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use tempfile::TempDir;
use tenon_host::Allocation;

use crate::curve::{Curve, CurveReport};
use crate::guests;
use crate::support::{call, platform, time};

const SIZES: &[usize] = &[0, 1, 2, 5, 10, 20, 50];

pub(crate) async fn all(report: &mut CurveReport) {
    for (what, script, mark) in [
        (
            "call with scripts before it",
            Some("fn BeforeToolCall(context) { context.arguments.text += \"!\"; }"),
            "!",
        ),
        (
            "call with scripts after it",
            Some("fn AfterToolCall(context) { context.result.content[0].text += \"?\"; }"),
            "?",
        ),
        ("call with components before and after it", None, ""),
    ] {
        let mut curve = Curve::new(what, "hooks", 1.0, "each is called once");
        for &size in SIZES {
            let folder = TempDir::new().unwrap();
            let configuration = write(&folder, script, size);
            let platform = platform(&configuration, Allocation::OnDemand).await;
            let answer = format!("hello{}", mark.repeat(size));
            let arguments = || json!({ "text": "hello" });
            let called = async || call(&platform, "echo__echo", arguments(), &answer).await;
            curve.time(size, time(called).await);
            let hooks = platform.plugins().iter().filter(|report| report.hooks > 0).count();
            assert!(hooks >= size);
            platform.shutdown().await;
        }
        report.add(curve);
    }
}

/// The configuration of a plugin that echoes, and of so many that have hooks: this script, or components that mask secrets.
fn write(folder: &TempDir, script: Option<&str>, hooks: usize) -> String {
    let entry = |path: &str, id: &str| {
        format!("{{ path = {path:?}, id = \"{id}\", instance = \"shared\" }}, ")
    };
    let (mut components, mut scripts) = (String::new(), String::new());
    let echo = folder.path().join("echo.rhai");
    fs::write(&echo, "tool(#{ name: \"echo\", description: \"Echoes\" }, |a| a.text);").unwrap();
    write!(scripts, "{echo:?}, ").unwrap();
    for i in 0..hooks {
        match script {
            Some(script) => {
                let path = folder.path().join(format!("h{i}.rhai"));
                fs::write(&path, script).unwrap();
                write!(scripts, "{path:?}, ").unwrap();
            }
            None => components.push_str(&entry(guests::REDACT, &format!("h{i}"))),
        }
    }
    format!("plugins.scripts = [{scripts}]\nplugins.wasm = [{components}]")
}
