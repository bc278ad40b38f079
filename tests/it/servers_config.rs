//! Entries for MCP servers: where they stand, what they mean, and who has to approve them.

use serde_json::json;
use std::process::Output;
use std::time::{Duration, Instant};
use tenon_host::services::GrantAll;
use tenon_host::{HostEnvironment, PluginReport, PluginState};

use crate::approval::on_terminal;
use crate::support::{
    DEMO_SERVER, Project, RUDE_SERVER, RunningPlatform, failure, host_environment, parsed, stderr,
    stdout, text,
};

/// A file of servers, as other programs write it.
fn file(servers: &[(&str, serde_json::Value)]) -> String {
    let servers = servers.iter().map(|(name, entry)| (name.to_string(), entry.clone()));
    json!({ "mcpServers": servers.collect::<serde_json::Map<_, _>>() }).to_string()
}

/// The demo server, and what else an entry says.
fn demo(more: serde_json::Value) -> serde_json::Value {
    let mut entry = json!({ "command": DEMO_SERVER });
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    entry
}

/// A platform of a project whose every server is approved, in an environment of these variables.
async fn approved(project: Project, variables: &[(&str, &str)]) -> RunningPlatform {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    let environment = [("PATH", "/usr/bin"), ("HOME", "/")].map(|(n, v)| (n.into(), v.into()));
    let host_environment = HostEnvironment {
        environment: environment.into_iter().chain(variables).collect(),
        configuration: Some(project.path("user")),
        servers: Some(project.path("mcp/servers.json")),
        ..host_environment()
    };
    let builder = project.builder().host_environment(host_environment).workspace(project.path(""));
    let platform = builder.approver(GrantAll).build().await.expect("the platform is built");
    RunningPlatform::new(platform, project)
}

fn report(platform: &RunningPlatform, id: &str) -> PluginReport {
    let reports = platform.plugins();
    reports.iter().find(|report| report.plugin == id).expect("it is reported").clone()
}

async fn environment(platform: &RunningPlatform, id: &str) -> String {
    text(platform, &format!("{id}__environment"), json!({})).await
}

/// Runs the command in a project that is not trusted otherwise.
fn run(project: &Project, arguments: &[&str], code: i32) -> String {
    let output = untrusting(project, arguments);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

#[test]
fn the_first_of_four_places_wins_and_the_others_are_reported() {
    let entries = |names: &[&str]| {
        let entry = |name: &&str| format!("{{ name = {name:?}, command = {DEMO_SERVER:?} }}");
        format!("plugins.mcp = [{}]", names.iter().map(entry).collect::<Vec<_>>().join(", "))
    };
    let servers = |names: &[&str]| {
        file(&names.iter().map(|name| (*name, demo(json!({})))).collect::<Vec<_>>())
    };
    let project = Project::new(&entries(&["b", "a"]));
    project.write(".mcp.json", servers(&["a"]));
    project.write("tenon/config.toml", entries(&["c", "b", "a"]));
    project.write("mcp/servers.json", servers(&["a", "b", "c", "d"]));
    let output = project.tenon(&["plugins", "--json"]);
    let plugins = parsed(&output)["plugins"].clone();
    let rows = plugins.as_array().unwrap().iter().map(|row| {
        let word = |member: &str| row[member].as_str().unwrap_or_default().to_string();
        let named_in = word("namedIn").replace(&*project.path("").to_string_lossy(), "");
        let named_in = named_in.trim_start_matches("./").trim_start_matches('/').to_string();
        format!("{} {} {named_in}", word("plugin"), word("state"))
    });
    let rows: Vec<String> = rows.collect();
    assert_eq!(
        rows,
        [
            "a enabled .mcp.json",
            "b enabled tenon.toml",
            "c enabled tenon/config.toml",
            "d enabled mcp/servers.json",
            "a shadowed tenon.toml",
            "b shadowed tenon/config.toml",
            "a shadowed tenon/config.toml",
            "a shadowed mcp/servers.json",
            "b shadowed mcp/servers.json",
            "c shadowed mcp/servers.json",
        ],
        "{}",
        stderr(&output)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_gets_of_the_environment_what_its_entry_says() {
    let project = Project::new("");
    project.write(".env", "# of the project\nexport FROM_FILE='1'\nBOTH=file\n");
    let both = json!({ "env": { "BOTH": "entry" }, "envFile": "${workspaceFolder}/.env" });
    project.write(
        ".mcp.json",
        file(&[
            ("clear", demo(json!({ "env_vars": ["MY_TOKEN", "UNSET"] }))),
            ("filtered", demo(json!({ "envPolicy": "filtered" }))),
            ("passing", demo(json!({ "envPolicy": "filtered", "envVars": ["MY_TOKEN"] }))),
            ("file", demo(both)),
            ("secret", demo(json!({ "env": { "S": "${secret:my-token}" } }))),
            ("no-secret", demo(json!({ "env": { "S": "${secret:nowhere}" } }))),
        ]),
    );
    project.write(
        ".tenon/plugins/r/plugin.toml",
        format!(
            "plugin.id = \"requiring\"\nrequires.env = [\"MY_TOKEN\"]\nruntime.kind = \"mcp-bridge\"
             [runtime.subprocess]\nbinary_path = {DEMO_SERVER:?}\nenv_policy = \"filtered\""
        ),
    );
    let requiring = |id: &str, variable: &str| {
        let bridge = format!(
            "plugin.id = {id:?}\nrequires.env = [{variable:?}]\nruntime.kind = \"mcp-bridge\"\n\
             [runtime.subprocess]\nbinary_path = {DEMO_SERVER:?}"
        );
        project.write(&format!(".tenon/plugins/{id}/plugin.toml"), bridge);
    };
    requiring("requiring-clear", "MY_TOKEN");
    requiring("requiring-path", "PATH");
    requiring("requiring-code", "NODE_OPTIONS");
    let variables = [
        ("MY_TOKEN", "hunter22"),
        ("HTTP_PROXY", "x"),
        ("DB_PASSWORD_OLD", "y"),
        ("NODE_OPTIONS", "--require=x"),
    ];
    let platform = approved(project, &variables).await;
    for (id, expected) in [
        ("clear", "HOME MY_TOKEN PATH"),
        ("filtered", "HOME HTTP_PROXY NODE_OPTIONS PATH"),
        ("passing", "HOME HTTP_PROXY MY_TOKEN NODE_OPTIONS PATH"),
        ("requiring", "HOME HTTP_PROXY MY_TOKEN NODE_OPTIONS PATH"),
        ("requiring-clear", "HOME MY_TOKEN PATH"),
        ("requiring-path", "HOME PATH"),
        ("file", "BOTH FROM_FILE HOME PATH"),
        ("secret", "HOME PATH S"),
    ] {
        assert_eq!(environment(&platform, id).await, expected, "{id}");
    }
    let report = report(&platform, "no-secret");
    assert_eq!(report.detail.as_deref(), Some("the secret `nowhere` does not exist"));
    let remedy = report.remedy.expect("there is one");
    assert!(
        remedy.starts_with("run `tenon secret set nowhere`, or set the variable NOWHERE"),
        "{remedy}"
    );
    // What no entry of a project can pass on, no manifest of it can require.
    let diagnostics = platform.diagnostics();
    let refused = diagnostics.iter().find(|of| of.plugin.as_deref() == Some("requiring-code"));
    let problem = &refused.expect("it is told").problem;
    assert!(problem.starts_with("the variable NODE_OPTIONS changes"), "{problem}");
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_entry_costs_itself_and_a_disabled_one_is_left_out() {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"loads\", command = {DEMO_SERVER:?}, env = {{ LD_PRELOAD = \"x\" }} }}]"
    ));
    project.write(
        ".mcp.json",
        file(&[
            ("good", json!({ "command": "${SHELL_OF:-/bin/sh}", "args": ["-c", "exec ${D} $D"] })),
            ("unset", demo(json!({ "args": ["${NOWHERE}"] }))),
            ("dollar", demo(json!({ "args": ["$NOWHERE", "${env:D}", "${userHome}"] }))),
            ("typed", json!({ "command": 3 })),
            ("path", demo(json!({ "env": { "Path": "/evil" } }))),
            ("passes", demo(json!({ "envVars": ["NODE_OPTIONS"] }))),
            ("equals", demo(json!({ "env": { "LD_PRELOAD=x;": "" } }))),
            ("file", demo(json!({ "envFile": "bad.env" }))),
            ("off", demo(json!({ "disabled": true }))),
            ("off-too", demo(json!({ "enabled": false, "args": ["${NOWHERE}"] }))),
        ]),
    );
    project.write("bad.env", "GOOD=1\nhunter22 without a sign");
    // What the user says himself may be anything.
    project.write("user-servers", file(&[("own", demo(json!({ "env": { "PYTHONPATH": "x" } })))]));
    std::fs::create_dir_all(project.path("mcp")).unwrap();
    std::fs::rename(project.path("user-servers"), project.path("mcp/servers.json")).unwrap();
    let platform = approved(project, &[("D", DEMO_SERVER)]).await;
    let ready = platform.plugins().iter().filter(|r| r.state == PluginState::Ready).count();
    assert_eq!(ready, 3, "{:?}", platform.plugins());
    assert_eq!(environment(&platform, "own").await, "HOME PATH PYTHONPATH");
    let diagnostics = platform.diagnostics();
    let problem = |id: &str| {
        let of = diagnostics.iter().find(|of| of.plugin.as_deref() == Some(id));
        of.unwrap_or_else(|| panic!("{id}: {diagnostics:?}")).problem.clone()
    };
    assert!(problem("unset").contains("the variable NOWHERE is not set"));
    assert_eq!(problem("typed"), "`command` must be a text; it is a number");
    for (id, variable) in [("loads", "LD_PRELOAD"), ("path", "Path"), ("passes", "NODE_OPTIONS")] {
        let problem = problem(id);
        assert!(problem.starts_with(&format!("the variable {variable} changes")), "{problem}");
    }
    assert_eq!(problem("equals"), "\"LD_PRELOAD=x;\" is not a variable name");
    assert!(problem("file").ends_with("bad.env: line 2: it has no `=`"), "{}", problem("file"));
    assert_eq!(diagnostics.len(), 7, "{diagnostics:?}");
    assert_eq!(report(&platform, "off").state, PluginState::Disabled);

    // A file that is broken as a whole is one thing that is wrong, and those that run stay.
    platform.project.write(".mcp.json", "{\n  \"mcpServers\": {\n");
    platform.reload().await;
    assert_eq!(report(&platform, "good").state, PluginState::Ready);
    let diagnostics = platform.diagnostics();
    let of_file: Vec<String> =
        { diagnostics.iter() }.filter(|of| of.plugin.is_none()).map(ToString::to_string).collect();
    assert_eq!(of_file.len(), 1, "{diagnostics:?}");
    assert!(of_file[0].contains("/.mcp.json: line "), "{of_file:?}");
    // And one that is gone takes them with it.
    std::fs::remove_file(platform.project.path(".mcp.json")).unwrap();
    platform.reload().await;
    assert!(platform.plugins().iter().all(|report| report.plugin != "good"));
    platform.clone().shutdown().await;
}

fn untrusting(project: &Project, arguments: &[&str]) -> Output {
    project.command(arguments).env_remove("TENON_TRUST").output().expect("tenon starts")
}

fn call(project: &Project) -> Output {
    untrusting(project, &["call", "s__echo", r#"{"text": "it runs"}"#])
}

fn runs(project: &Project) {
    let output = call(project);
    assert_eq!(stdout(&output).trim(), "it runs", "{}", stderr(&output));
}

fn refused(project: &Project, because: &str) {
    let output = call(project);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains(because) && said.contains("`tenon trust`"), "{said}");
}

/// A text without what differs from run to run.
fn filtered(project: &Project, text: &str) -> String {
    let real = project.path("").canonicalize().unwrap();
    let text = text.replace(real.to_str().unwrap().trim_end_matches('/'), "ROOT");
    text.replace(DEMO_SERVER, "SERVER")
}

#[test]
fn a_server_of_the_project_starts_when_the_project_was_trusted_as_it_is() {
    let project = Project::new("");
    let mark = project.path("started");
    let script = format!("touch {mark:?}; exec {DEMO_SERVER} \"$@\"");
    let write = |arguments: &[&str], more: &str| {
        let arguments = [&["-c", &script], arguments].concat();
        let arguments = serde_json::to_string(&arguments).unwrap();
        project.write(
            ".mcp.json",
            format!(
                "{{ // of the team\n \"mcpServers\": {{ \"s\": {{ \"command\": \"/bin/sh\",
                 \"args\": {arguments}, \"env\": {{ \"API_TOKEN\": \"hunter22{more}\", \"M\": \"${{HOME}}\" }} }} }} }}"
            ),
        );
    };
    write(&["one"], "");
    refused(&project, "is not trusted, and nothing of it is used");
    let said = run(&project, &["trust"], 3);
    let said = filtered(&project, &said).replace(&filtered(&project, &script), "SCRIPT");
    insta::assert_snapshot!(said, @r"
    the project in ROOT
      starts    s: /bin/sh
                  argument -c
                  argument SCRIPT
                  argument one
                  folder ROOT
                  variable API_TOKEN=[redacted]
                  variable M=${HOME}
    error: no terminal to ask whether to trust the project in ROOT
      hint: `tenon trust --yes` trusts it without asking
    ");
    run(&project, &["doctor"], 0);
    assert!(!mark.exists(), "it must not start before it is trusted");
    run(&project, &["trust", "--yes"], 0);
    runs(&project);
    assert!(mark.exists());
    let said = run(&project, &["inspect", "s"], 0);
    assert!(said.contains("argument     one"), "{said}");

    write(&["two"], "");
    refused(&project, "has changed since it was trusted, and nothing of it is used: .mcp.json");
    let said = filtered(&project, &run(&project, &["trust"], 3));
    assert!(said.contains("\n+             argument two\n"), "{said}");
    assert!(said.contains("\n- starts    s: argument one\n"), "{said}");
    assert!(!said.contains("+ starts"), "{said}");
    run(&project, &["trust", "--yes"], 0);
    runs(&project);
    // A secret that is another.
    write(&["two"], "x");
    refused(&project, "has changed since it was trusted");
    assert!(run(&project, &["trust"], 3).contains("changed   .mcp.json"));
    write(&["two"], "");
    runs(&project);
    run(&project, &["trust", "--revoke"], 0);
    refused(&project, "is not trusted");
}

#[test]
fn on_a_terminal_the_user_is_asked_to_trust_a_project() {
    let project = Project::new("");
    project.write(".mcp.json", file(&[("s", demo(json!({ "env": { "MODE": "x" } })))]));
    let said = on_terminal(&project, &["trust"], "n\n");
    assert!(said.contains("             variable MODE=x\n"), "{said}");
    assert!(said.contains("trust it? [y]es, [n]o: "), "{said}");
    refused(&project, "is not trusted");
    on_terminal(&project, &["trust"], "y\n");
    runs(&project);
}

#[test]
fn servers_elsewhere_and_those_of_manifests_are_trusted_with_their_project() {
    let project = Project::new("");
    let remote = json!({
        "type": "http",
        "url": "https://mcp.example.com/mcp",
        "headers": { "Authorization": "Bearer ${secret:my-token}", "X-Api-Key": "hunter22" },
    });
    project.write(".mcp.json", file(&[("r", remote)]));
    project.write(
        ".tenon/plugins/s/plugin.toml",
        format!(
            "plugin.id = \"s\"\n[runtime]\nkind = \"mcp-bridge\"\n[runtime.subprocess]\nbinary_path = {DEMO_SERVER:?}"
        ),
    );
    let said = run(&project, &["trust"], 3);
    insta::assert_snapshot!(filtered(&project, &said), @r"
    the project in ROOT
      starts    s: SERVER
                  folder ROOT/.tenon/plugins/s
      reaches   r: https://mcp.example.com/mcp
                  header Authorization: Bearer ${secret:my-token}
                  header X-Api-Key: [redacted]
    error: no terminal to ask whether to trust the project in ROOT
      hint: `tenon trust --yes` trusts it without asking
    ");
    refused(&project, "is not trusted");
    run(&project, &["trust", "--yes"], 0);
    runs(&project);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_say_how_long_to_wait_and_which_era_to_speak() {
    let project = Project::new("");
    let silent = json!({ "command": RUDE_SERVER, "args": ["silent"], "startup_timeout": "300ms" });
    project.write(
        ".mcp.json",
        file(&[
            ("silent", silent),
            ("brief", demo(json!({ "toolTimeout": 0.2 }))),
            ("modern", json!({ "command": RUDE_SERVER, "args": ["batch"], "protocol": "modern" })),
        ]),
    );
    let platform = approved(project, &[]).await;
    let silent = report(&platform, "silent").detail.unwrap();
    assert!(silent.contains("did not answer the handshake within 300 ms"), "{silent}");
    let began = Instant::now();
    let hung = failure(&platform, "brief__hang", json!({})).await.to_string();
    assert!(hung.contains("no answer within 200"), "{hung}");
    assert!(began.elapsed() < Duration::from_secs(5));
    let modern = report(&platform, "modern");
    assert_eq!(modern.state, PluginState::Failed, "{modern:?}");
    let detail = modern.detail.unwrap();
    assert!(detail.contains("server/discover"), "{detail}");
    platform.clone().shutdown().await;
}

#[test]
fn a_file_that_cannot_be_read_is_a_failure_of_who_lists() {
    let project = Project::new("");
    project.write(".mcp.json", "{");
    let output = project.tenon(&["tools"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("./.mcp.json: line 1: "), "{}", stderr(&output));
}
