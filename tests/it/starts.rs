//! Many servers at once: how many start at a time, which go first, and what is said of those that do
//! not get there.

use serde_json::json;
use std::fs;
use tenon_host::PluginState;

use crate::approval::on_terminal_but_for_output;
use crate::support::{DEMO_SERVER, Project, RUDE_SERVER, parsed, stderr, stdout};

/// How many servers there are in a crowd.
const MANY: usize = 40;

/// A project with a server for each name, which runs a script before it is there.
fn project(names: &[String], script: &str, more: &str) -> Project {
    let project = Project::new("");
    let here = project.path("here");
    fs::create_dir(&here).expect("there is room for a folder");
    let entry = |name: &String| {
        let script = format!("{script}\nexec {DEMO_SERVER:?}");
        format!(
            "{{ name = {name:?}, command = \"sh\", args = [\"-c\", {script:?}, {name:?}, {here:?}], \
             startup_timeout = \"5s\" }}"
        )
    };
    let entries: Vec<_> = names.iter().map(entry).collect();
    project.write("tenon.toml", format!("plugins.mcp = [{}]\n{more}", entries.join(", ")));
    project
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("s{number}")).collect()
}

/// Each notes how many it sees starting, itself among them, and works for a while.
const COUNTING: &str = "cd $1; touch starting-$0; ls | grep -c ^starting- >> counted; sleep 0.3; \
                        rm starting-$0";

/// All together take longer than one of them may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_servers_few_start_at_a_time_and_all_are_there() {
    let project = project(&names(MANY), COUNTING, "supervision.concurrent_starts = 2");
    let platform = project.platform().await;
    let reports = platform.plugins();
    let gone = reports.iter().find(|report| report.state != PluginState::Ready);
    assert!(gone.is_none(), "{gone:?}");
    let counted = fs::read_to_string(platform.project.path("here/counted")).unwrap();
    let counted: Vec<usize> = counted.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!((counted.len(), counted.iter().max()), (MANY, Some(&2)));
    // They come in the order in which they are declared, whichever was first.
    let order: Vec<_> = reports.iter().map(|report| report.plugin.clone()).collect();
    assert_eq!(order, names(MANY));
    platform.clone().shutdown().await;
}

/// Notes its name.
const NOTING: &str = "echo $0 >> $1/started";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_servers_that_are_asked_for_start_first() {
    let project = project(&names(8), NOTING, "supervision.concurrent_starts = 1");
    let platform = project.builder().start_first(["s6", "s7"]).build().await.unwrap();
    let started = fs::read_to_string(project.path("here/started")).unwrap();
    let mut first: Vec<&str> = started.lines().take(2).collect();
    first.sort_unstable();
    assert_eq!((first, started.lines().count()), (vec!["s6", "s7"], 8));
    platform.shutdown().await;
}

/// Which servers a command starts, and its exit code.
fn started_by(project: &Project, arguments: &[&str]) -> (Vec<String>, Option<i32>, String) {
    let file = project.path("here/started");
    let _ = fs::remove_file(&file);
    let output = project.tenon(arguments);
    let started = fs::read_to_string(&file).unwrap_or_default();
    let mut started: Vec<String> = started.lines().map(str::to_string).collect();
    started.sort_unstable();
    (started, output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
}

#[test]
fn tools_of_named_plugins_start_these_alone_and_known_ones_are_not_started() {
    let project = project(&names(3), NOTING, "");
    let check = |arguments: &[&str], started: &[&str], code| {
        let (found, found_code, said) = started_by(&project, arguments);
        assert_eq!(
            (found.join(" "), found_code),
            (started.join(" "), Some(code)),
            "{arguments:?}: {said}"
        );
        said
    };
    let said = check(&["tools", "s1"], &["s1"], 0);
    assert!(said.contains("s1__echo") && !said.contains("s0__"), "{said}");
    let said = check(&["tools", "s0", "s7"], &[], 2);
    assert!(said.contains("there is no plugin \"s7\""), "{said}");
    check(&["tools"], &["s0", "s2"], 0);
    check(&["tools"], &[], 0);
    check(&["tools", "s0", "s2"], &[], 0);
    check(&["doctor"], &["s0", "s1", "s2"], 0);
    check(&["doctor", "s1"], &["s1"], 0);
}

#[test]
fn a_server_that_is_late_is_told_which_key_gives_it_longer() {
    let silent = format!(
        "{{ name = \"silent\", command = {RUDE_SERVER:?}, args = [\"silent\"], startup_timeout = \"300ms\" }}"
    );
    let good = format!("{{ name = \"good\", command = {DEMO_SERVER:?} }}");
    let project = Project::new(&format!("plugins.mcp = [{silent}, {good}]"));
    let doctor = stdout(&project.tenon(&["doctor"]));
    let words: Vec<_> = doctor.split_whitespace().collect();
    let words = words.join(" ");
    let hint =
        "needs longer than 300ms to start, set `startup_timeout = \"600ms\"` in its entry in";
    assert!(words.contains(hint) && words.contains("tenon.toml"), "{doctor}");
    let check = |arguments: &[&str], code| {
        let output = project.tenon(arguments);
        let said = stdout(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}{}", stderr(&output));
        said
    };
    assert!(check(&["tools"], 4).contains("good__echo"));
    check(&["tools", "good"], 0);
    check(&["tools", "silent"], 4);
    check(&["tools", "good", "silent"], 4);
    check(&["call", "silent__t"], 4);
}

#[test]
fn tools_ends_as_the_failure_of_a_declared_plugin_does() {
    let check = |plugins: &str, code| {
        let project = Project::new(&format!("plugins = {{ {plugins} }}"));
        project.write("s.rhai", "tool(#{ name: \"t\", description: \"d\" }, |a| 1);");
        let output = project.tenon(&["tools"]);
        assert_eq!(output.status.code(), Some(code), "{plugins}: {}", stderr(&output));
    };
    check("scripts = [\"s.rhai\"]", 0);
    check("scripts = [\"s.rhai\", \"none.rhai\"]", 2);
    check("scripts = [\"s.rhai\"], mcp = [{ name = \"b\", command = \"${NOPE}\" }]", 2);
    check("scripts = [\"s.rhai\"], mcp = [{ name = \"b\", command = \"/nowhere/b\" }]", 1);
}

#[test]
fn the_start_of_servers_is_shown_on_a_terminal_and_gone_when_it_is_over() {
    let project = project(&names(3), "", "");
    let (said, printed) = on_terminal_but_for_output(&project, &["doctor"]);
    assert!(said.contains("starting servers: "), "{said:?}");
    assert!(said.contains("; waiting for s"), "{said:?}");
    assert!(said.contains("3 of 3 are ready"), "{said:?}");
    assert!(said.ends_with("are ready\u{1b}[K\u{1b}[?7h\u{1b}[K"), "{said:?}");
    assert!(printed.ends_with("3 of 3 plugins are ready, 3 of them unconfined\n"), "{printed}");
    let (said, _) = on_terminal_but_for_output(&project, &["--json", "doctor"]);
    assert_eq!(said, "");
}

#[test]
fn how_many_start_is_the_users_word() {
    let project = project(&names(6), COUNTING, "supervision.concurrent_starts = 6");
    // Fewer than any machine starts where nobody says how many.
    project.write("tenon/config.toml", "supervision.concurrent_starts = 1");
    let reports = parsed(&project.tenon(&["--json", "doctor"]));
    let ready = reports.as_array().unwrap().iter().filter(|of| of["state"] == json!("ready"));
    assert_eq!(ready.count(), 6, "{reports}");
    let counted = fs::read_to_string(project.path("here/counted")).unwrap();
    let most = counted.lines().map(|line| line.parse::<usize>().unwrap()).max();
    assert_eq!(most, Some(1), "{counted}");
}
