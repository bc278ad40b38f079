//! Skills that plugins carry: listed, read, approved, locked and installed.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Output;
use tenon_host::services::GrantAll;
use tenon_host::types::ResourceBody;
use tenon_host::{CallError, Failure, Platform, PluginState};

use crate::support::{Project, parsed, stderr, stdout, text};

const SCRIPT: &str =
    r#"tool(#{ name: "hi", description: "d", schema: #{ type: "object" } }, |a| "hello");"#;

const MANIFEST: &str =
    "plugin.id = \"reviews\"\nruntime = { kind = \"rhai\", path = \"reviews.rhai\" }\n";

const SKILL: &str = "---\nname: code-review\ndescription: Reviews a change before it is merged.\n---\n\nRead it twice.\n";

/// Where the plugin of a project is that was put there by hand.
const OWN: &str = ".tenon/plugins/reviews";

/// Writes a plugin with one skill into a folder.
fn write_plugin(project: &Project, folder: &str) {
    project.write(&format!("{folder}/plugin.toml"), MANIFEST);
    project.write(&format!("{folder}/reviews.rhai"), SCRIPT);
    project.write(&format!("{folder}/skills/code-review/SKILL.md"), SKILL);
    project.write(&format!("{folder}/skills/code-review/scripts/diff.sh"), "git diff\n");
}

fn project() -> Project {
    let project = Project::new("");
    write_plugin(&project, OWN);
    project
}

fn run(project: &Project, arguments: &[&str], code: i32) -> Output {
    let output = project.tenon(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    output
}

/// What the command says of a plugin that is not let in, on standard error.
fn refused(project: &Project, arguments: &[&str]) -> String {
    stderr(&run(project, arguments, 3))
}

const READ: [&str; 4] = ["skills", "read", "reviews", "code-review"];

async fn host(project: &Project) -> Platform {
    let builder = project.builder().workspace(project.path("")).approver(GrantAll);
    builder.build().await.expect("it is built")
}

#[tokio::test]
async fn an_embedder_lists_and_reads_them() {
    let project = project();
    let platform = host(&project).await;
    let registry = platform.registry();
    let plugin = registry.plugin("reviews").expect("it is there");
    let [skill] = plugin.skills() else { panic!("{:?}", plugin.skills()) };
    assert_eq!(
        (&*skill.name, &*skill.description),
        ("code-review", "Reviews a change before it is merged.")
    );
    assert_eq!(skill.files().collect::<Vec<_>>(), ["SKILL.md", "scripts/diff.sh"]);
    assert_eq!(platform.plugins()[0].skills, 1);
    let read = platform.read_skill("reviews", "code-review", None).await.expect("it is read");
    assert_eq!(read.uri, "skill://reviews/code-review/SKILL.md");
    assert_eq!(read.mime_type.as_deref(), Some("text/markdown"));
    assert_eq!(read.body, ResourceBody::Text(SKILL.into()));
    let read = platform.read_skill("reviews", "code-review", Some("scripts/diff.sh")).await;
    assert_eq!(read.expect("it is read").body, ResourceBody::Text("git diff\n".into()));
    for (plugin, skill, path, expected) in [
        ("review", "code-review", None, ("plugin", "reviews")),
        ("reviews", "code-revue", None, ("skill", "code-review")),
        ("reviews", "code-review", Some("SKILL.mf"), ("file", "SKILL.md")),
    ] {
        let error = platform.read_skill(plugin, skill, path).await.expect_err("there is none");
        let CallError::NotFound { what, nearest, .. } = error else { panic!("{error:?}") };
        assert_eq!((what, nearest.as_deref()), (expected.0, Some(expected.1)));
    }
    let outside = platform.read_skill("reviews", "code-review", Some("../../plugin.toml")).await;
    assert!(matches!(outside, Err(CallError::NotFound { what: "file", .. })), "{outside:?}");
    platform.shutdown().await;
}

#[tokio::test]
async fn what_is_read_is_what_was_approved() {
    let project = project();
    let platform = host(&project).await;
    project.write(&format!("{OWN}/skills/code-review/SKILL.md"), SKILL.replace("twice", "never"));
    let error = platform.read_skill("reviews", "code-review", None).await.expect_err("it changed");
    let CallError::Failed { failure: Failure::Host(problem), .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(problem, "skills/code-review/SKILL.md has changed since the plugin was loaded");
    // Calls go on.
    assert_eq!(text(&platform, "reviews__hi", json!({})).await, "hello");
    platform.reload().await;
    let read = platform.read_skill("reviews", "code-review", None).await.expect("it is read");
    assert_eq!(read.body, ResourceBody::Text(SKILL.replace("twice", "never")));
    fs::remove_dir_all(project.path(&format!("{OWN}/skills"))).unwrap();
    platform.reload().await;
    assert!(platform.registry().plugin("reviews").unwrap().skills().is_empty());
    platform.shutdown().await;
}

#[tokio::test]
async fn what_a_reader_does_not_see_is_escaped() {
    let project = project();
    let hidden = format!("{SKILL}\u{e0041}\u{202e}");
    project.write(&format!("{OWN}/skills/code-review/SKILL.md"), hidden);
    project.write(&format!("{OWN}/skills/code-review/logo.png"), [0x89, b'P', 0xff]);
    let platform = host(&project).await;
    let read = platform.read_skill("reviews", "code-review", None).await.expect("it is read");
    let ResourceBody::Text(text) = read.body else { panic!("{read:?}") };
    assert!(!text.contains(['\u{e0041}', '\u{202e}']) && text.contains("e0041"), "{text:?}");
    let read = platform.read_skill("reviews", "code-review", Some("logo.png")).await;
    assert_eq!(read.expect("it is read").body, ResourceBody::Blob(vec![0x89, b'P', 0xff]));
    platform.shutdown().await;
}

#[tokio::test]
async fn without_an_approver_a_plugin_with_skills_is_not_loaded() {
    let project = project();
    let builder = project.builder().workspace(project.path(""));
    let platform = builder.build().await.expect("it is built");
    let [report] = &platform.plugins()[..] else { panic!("{:?}", platform.plugins()) };
    assert_eq!((report.state, report.awaits_approval), (PluginState::Refused, true));
    assert_eq!(
        report.detail.as_deref(),
        Some("it carries skills (code-review), which is not approved")
    );
    platform.shutdown().await;
}

#[test]
fn the_command_lists_and_reads_what_is_approved() {
    let project = project();
    let said = refused(&project, &READ);
    assert!(said.contains("it carries skills (code-review), which is not approved"), "{said}");
    assert!(said.contains("tenon approve reviews"), "{said}");
    let list = run(&project, &["skills", "list"], 0);
    assert_eq!(stdout(&list), "");
    assert!(
        stderr(&list).contains("the skills of plugin \"reviews\" are left out"),
        "{}",
        stderr(&list)
    );
    let shown = project.tenon(&["approve", "reviews"]);
    assert!(stdout(&shown).contains(
        "  carries skills, on which agents act outside of its sandbox\n    code-review  Reviews a change before \
         it is merged.\n      2 files in "
    ), "{}", stdout(&shown));
    let approved = run(&project, &["approve", "reviews", "--yes"], 0);
    assert!(
        stdout(&approved).ends_with("\nplugin \"reviews\" is approved\n"),
        "{}",
        stdout(&approved)
    );

    let list = stdout(&run(&project, &["skills", "list"], 0));
    assert_eq!(list, "reviews  code-review  Reviews a change before it is merged.\n");
    let rows = parsed(&run(&project, &["--json", "skills", "list", "reviews"], 0));
    let folder = rows[0]["folder"].as_str().unwrap().to_string();
    let expected = project.path(&format!("{OWN}/skills/code-review"));
    assert_eq!(fs::canonicalize(&folder).unwrap(), fs::canonicalize(expected).unwrap());
    assert!(Path::new(&folder).is_absolute(), "{folder}");
    let expected = json!([{
        "plugin": "reviews",
        "name": "code-review",
        "description": "Reviews a change before it is merged.",
        "license": null,
        "compatibility": null,
        "folder": folder,
        "files": ["SKILL.md", "scripts/diff.sh"],
    }]);
    assert_eq!(rows, expected);
    assert_eq!(stdout(&run(&project, &READ, 0)).trim_end(), SKILL.trim_end());
    let script = [&READ[..], &["scripts/diff.sh"]].concat();
    assert_eq!(stdout(&run(&project, &script, 0)), "git diff\n");
    let json = parsed(&run(&project, &[&["--json"], &script[..]].concat(), 0));
    assert_eq!(json["text"], "git diff\n");
    run(&project, &[&script[..], &["--output", "copy.sh"]].concat(), 0);
    assert_eq!(fs::read_to_string(project.path("copy.sh")).unwrap(), "git diff\n");
    let unknown = run(&project, &["skills", "read", "reviews", "code-revue"], 2);
    assert!(stderr(&unknown).contains("did you mean \"code-review\"?"), "{}", stderr(&unknown));
    let unknown = run(&project, &[&READ[..], &["../../plugin.toml"]].concat(), 2);
    assert!(stderr(&unknown).contains("no file"), "{}", stderr(&unknown));
    let inspected = stdout(&run(&project, &["inspect", "reviews"], 0));
    assert!(inspected.contains("skills: code-review\n"), "{inspected}");
}

#[test]
fn an_approval_ends_with_any_change_of_a_skill() {
    let project = project();
    run(&project, &["approve", "reviews", "--yes"], 0);
    let check = |change: &dyn Fn(), undo: &dyn Fn()| {
        run(&project, &READ, 0);
        run(&project, &["call", "reviews__hi"], 0);
        change();
        for arguments in [&READ[..], &["call", "reviews__hi"]] {
            let said = refused(&project, arguments);
            assert!(said.contains("since it was approved: its skills have changed"), "{said}");
        }
        undo();
    };
    let file = |path: &str| project.path(&format!("{OWN}/skills/{path}"));
    let script = || file("code-review/scripts/diff.sh");
    check(&|| fs::write(script(), "rm -r .").unwrap(), &|| {
        fs::write(script(), "git diff\n").unwrap()
    });
    check(&|| fs::remove_file(script()).unwrap(), &|| fs::write(script(), "git diff\n").unwrap());
    let more = || file("code-review/more.md");
    check(&|| fs::write(more(), "").unwrap(), &|| fs::remove_file(more()).unwrap());
    let other = SKILL.replace("code-review", "other");
    check(
        &|| {
            fs::create_dir(file("other")).unwrap();
            fs::write(file("other/SKILL.md"), &other).unwrap();
        },
        &|| fs::remove_dir_all(file("other")).unwrap(),
    );
    run(&project, &READ, 0);
}

#[test]
fn a_skill_that_is_none_keeps_its_plugin_out_and_nothing_else() {
    let project = project();
    project.write(".tenon/plugins/other/plugin.toml", MANIFEST.replace("reviews", "other"));
    project.write(".tenon/plugins/other/other.rhai", SCRIPT);
    project.write(&format!("{OWN}/skills/code-review/SKILL.md"), "# Review\n");
    let said = stderr(&run(&project, &["call", "reviews__hi"], 2));
    assert!(
        said.contains("skills/code-review/SKILL.md: it must begin with front matter"),
        "{said}"
    );
    assert!(stdout(&run(&project, &["call", "other__hi"], 0)).contains("hello"));
    let said = stderr(&run(&project, &["skills", "list"], 2));
    assert!(said.contains("it must begin with front matter"), "{said}");
    let said = stderr(&run(&project, &["check", OWN], 2));
    assert!(said.contains("it must begin with front matter"), "{said}");
}

#[cfg(unix)]
#[test]
fn nothing_is_read_through_a_link() {
    let project = project();
    project.write("secret", "hunter22");
    std::os::unix::fs::symlink(
        project.path("secret"),
        project.path(&format!("{OWN}/skills/code-review/x")),
    )
    .unwrap();
    let said = stderr(&run(&project, &READ, 2));
    assert!(said.contains("skills/code-review/x: it is a link"), "{said}");
}

#[test]
fn they_are_installed_with_their_plugin_and_bound_by_the_lock_file() {
    let project = Project::new("");
    write_plugin(&project, "src");
    let installed = parsed(&run(&project, &["--json", "install", "src", "--yes"], 0));
    let digest = installed[0]["skills"].as_str().expect("it is there").to_string();
    let lock = || fs::read_to_string(project.path("tenon.lock")).unwrap();
    assert!(lock().contains(&format!("skills = \"{digest}\"")), "{}", lock());
    assert_eq!(stdout(&run(&project, &READ, 0)).trim_end(), SKILL.trim_end());
    let there = stdout(&run(&project, &["install"], 0));
    assert!(there.contains("plugin \"reviews\" is there"), "{there}");

    let changed = format!("{OWN}/skills/code-review/scripts/diff.sh");
    project.write(&changed, "rm -r .");
    let said = refused(&project, &READ);
    assert!(said.contains("its skills do not match ") && said.contains("tenon install"), "{said}");
    // Nobody's approval changes it.
    assert!(
        refused(&project, &["approve", "reviews", "--yes"]).contains("its skills do not match")
    );
    run(&project, &["install"], 0);
    assert_eq!(fs::read_to_string(project.path(&changed)).unwrap(), "git diff\n");
    run(&project, &READ, 0);

    // What is not what the lock file has is not restored from a source that has changed.
    project.write("src/skills/code-review/scripts/diff.sh", "git diff --stat\n");
    project.write(&changed, "rm -r .");
    let said = refused(&project, &["install"]);
    assert!(
        said.contains("the skills of plugin \"reviews\" are not what the lock file has"),
        "{said}"
    );
    assert!(refused(&project, &["--locked", "install", "src"]).contains("the skills of plugin"));
    run(&project, &["install", "src", "--yes"], 0);
    assert!(!lock().contains(&digest), "{}", lock());
    run(&project, &READ, 0);

    // Without skills, those that were there are gone.
    fs::remove_dir_all(project.path("src/skills")).unwrap();
    run(&project, &["install", "src", "--yes"], 0);
    assert!(!project.path(&format!("{OWN}/skills")).exists() && !lock().contains("skills"));
    run(&project, &["call", "reviews__hi"], 0);
    let names = fs::read_dir(project.path(OWN)).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.count(), 2);
}

#[test]
fn uninstalling_removes_them_but_not_what_somebody_wrote() {
    let project = Project::new("");
    write_plugin(&project, "src");
    run(&project, &["install", "src", "--yes"], 0);
    run(&project, &["uninstall", "reviews", "--yes"], 0);
    assert!(!project.path(OWN).exists());
    run(&project, &["install", "src", "--yes"], 0);
    project.write(&format!("{OWN}/skills/code-review/notes.md"), "mine");
    let output = run(&project, &["--json", "uninstall", "reviews", "--yes"], 0);
    let left: Value = parsed(&output)["left"].take();
    assert!(left[0].as_str().unwrap().ends_with("reviews/skills"), "{left}");
    let notes = project.path(&format!("{OWN}/skills/code-review/notes.md"));
    assert_eq!(fs::read_to_string(notes).unwrap(), "mine");
}

#[test]
fn what_is_in_skills_and_no_skill_is_not_installed() {
    let project = Project::new("");
    write_plugin(&project, "src");
    project.write("src/skills/README.md", "");
    let said = stderr(&run(&project, &["install", "src"], 2));
    assert!(said.contains("skills/README.md: it is not in the folder of a skill"), "{said}");
    assert!(!project.path(".tenon").exists() && !project.path("tenon.lock").exists());
}

#[test]
fn skills_of_a_server_are_read_without_starting_it() {
    let project = project();
    let runtime = "kind = \"mcp-bridge\", subprocess = { command = \"/no/such/server\" }";
    let manifest = format!("plugin.id = \"reviews\"\nruntime = {{ {runtime} }}\n");
    project.write(&format!("{OWN}/plugin.toml"), manifest);
    assert!(refused(&project, &READ).contains("carries skills (code-review)"));
    run(&project, &["approve", "reviews", "--yes"], 0);
    assert_eq!(stdout(&run(&project, &READ, 0)).trim_end(), SKILL.trim_end());
    project.write(&format!("{OWN}/skills/code-review/SKILL.md"), SKILL.replace("twice", "never"));
    assert!(refused(&project, &READ).contains("its skills have changed"));
}

#[test]
fn skills_of_a_trusted_project_are_what_they_were_unless_its_code_may_change() {
    let project = project();
    let run = |arguments: &[&str], code: i32| {
        let output = project.command(arguments).env_remove("TENON_TRUST").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    };
    let skill = format!("{OWN}/skills/code-review/SKILL.md");
    run(&["trust", "--yes"], 0);
    run(&["approve", "reviews", "--yes"], 0);
    run(&READ, 0);
    project.write(&skill, SKILL.replace("twice", "never"));
    let said = run(&READ, 3);
    assert!(said.contains("has changed since it was trusted"), "{said}");
    assert!(said.contains("skills/code-review/SKILL.md"), "{said}");
    // Who writes plugins approves them, and need not trust the project again.
    run(&["trust", "--yes", "--allow-code-changes"], 0);
    run(&["approve", "reviews", "--yes"], 0);
    project.write(&skill, SKILL);
    let said = run(&READ, 3);
    assert!(said.contains("its skills have changed"), "{said}");
}

#[test]
fn what_was_installed_into_a_trusted_project_is_put_back() {
    let project = Project::new("");
    write_plugin(&project, "src");
    let run = |arguments: &[&str], code: i32| {
        let output = project.command(arguments).env_remove("TENON_TRUST").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    };
    run(&["trust", "--yes"], 0);
    run(&["install", "src", "--yes"], 0);
    run(&READ, 0);
    project.write(&format!("{OWN}/skills/code-review/SKILL.md"), SKILL.replace("twice", "never"));
    let said = run(&READ, 3);
    assert!(said.contains("its skills do not match"), "{said}");
    run(&["install"], 0);
    run(&READ, 0);
}
