//! Many servers at a time.

use serde_json::json;
use tenon_host::PluginState;

use super::{Project, entry};
use crate::support::{RUDE_SERVER, eventually, processes_with, stdout, text};

/// Servers that fail, and a word of why.
const BROKEN: [(&str, &str); 5] = [
    ("dies", "cannot find my configuration"),
    ("closes-first", "closed its output"),
    ("foreign", "2099-12-31"),
    ("refuses", "no licence"),
    ("no-list", "has no \"tools\""),
];

/// Twenty servers, of which the broken ones are every fourth. The others wait until all of them are
/// there: started one after the other, none would ever answer.
fn crowd(project: &Project) {
    std::fs::create_dir(project.path("here")).unwrap();
    let here = project.path("here");
    let good = |i: usize| {
        format!(
            "{{ name = \"s{i}\", command = {RUDE_SERVER:?}, args = [\"meets\", {here:?}, \"15\"], startup_timeout = \"60s\" }}"
        )
    };
    let entries: Vec<_> =
        (0..20).map(|i| if i % 4 == 3 { entry(BROKEN[i / 4].0) } else { good(i) }).collect();
    let together = "supervision.concurrent_starts = 20";
    project.write("tenon.toml", format!("{together}\nplugins.mcp = [{}]", entries.join(", ")));
    // For the command, whose user has a say in it.
    project.write("tenon/config.toml", together);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_servers_fifteen_work_and_five_are_named() {
    let project = Project::new("");
    crowd(&project);
    let platform = project.platform().await;
    let reports = platform.plugins();
    let ready = reports.iter().filter(|report| report.state == PluginState::Ready);
    assert_eq!(ready.count(), 15, "{reports:?}");
    for (name, why) in BROKEN {
        let report = reports.iter().find(|report| report.plugin == name).unwrap();
        let detail = report.detail.as_deref().unwrap_or_default();
        assert_eq!(report.state, PluginState::Failed);
        assert!(detail.contains(why), "{name}: {detail}");
    }
    let calls = (0..20).filter(|i| i % 4 != 3).map(async |i| {
        let said = text(&platform, &format!("s{i}__echo"), json!({ "text": i.to_string() })).await;
        assert_eq!(said, i.to_string());
    });
    futures::future::join_all(calls).await;
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_names_the_broken_ones_of_twenty_and_why() {
    let project = Project::new("");
    crowd(&project);
    let output = project.tenon(&["doctor"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("15 of 20 plugins are ready"), "{said}");
    for (name, why) in BROKEN {
        let after = said.split_once(&format!("MCP: {name} (failed): ")).expect("it is named").1;
        let detail = after.split("\nMCP:").next().unwrap_or_default();
        let words: Vec<_> = detail.split_whitespace().collect();
        assert!(words.join(" ").contains(why), "{name}: {said}");
    }
    // It fits a screen.
    assert!(said.lines().count() <= 24, "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    let one = stdout(&project.tenon(&["doctor", "dies"]));
    assert!(one.contains(BROKEN[0].1) && one.ends_with("\n0 of 1 plugins are ready\n"), "{one}");
    let mark = project.path("here").display().to_string();
    eventually("no process is left", || processes_with(&mark).is_empty()).await;
}
