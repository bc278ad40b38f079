//! What authors of plugins do: `tenon new`, `build`, `check`, `schema`, and `completions`.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::guests;
use crate::support::{Project, parsed, stderr, stdout};
use crate::template_projects::{ROOT, empty, run, try_out};

#[test]
fn a_new_project_says_what_it_consists_of() {
    let project = empty();
    let new = |arguments: &[&str]| {
        let arguments = [&["new"], arguments].concat();
        stdout(&run(&project, &project.path(""), &arguments, 0))
    };
    let mut said = new(&["hello"]);
    said += &new(&["hello-py", "--world", "eval", "--lang", "python"]);
    said += &new(&["hello-js", "--world", "hook", "--lang", "javascript"]);
    said += &new(&["hello-ts", "--lang", "typescript"]);
    said += &new(&["hello-rhai", "--lang", "rhai"]);
    said += &new(&["hello-other", "--lang", "other", "--world", "resource"]);
    insta::assert_snapshot!(said);
    insta::assert_snapshot!(fs::read_to_string(project.path("hello-py/README.md")).unwrap());
    insta::assert_snapshot!(fs::read_to_string(project.path("hello-py/plugin.toml")).unwrap());
    let made = run(&project, &project.path(""), &["--json", "new", "other", "--lang", "rhai"], 0);
    assert_eq!(
        parsed(&made)["files"],
        json!(["README.md", "other.rhai", "plugin.toml", "tenon.toml"])
    );
}

#[test]
fn what_cannot_be_made_is_refused_and_nothing_is_written() {
    let project = empty();
    let check = |arguments: &[&str], expected: &str| {
        let arguments = [&["new"], arguments].concat();
        let said = stderr(&run(&project, &project.path(""), &arguments, 2));
        assert!(said.contains(expected), "{arguments:?}: {said}");
    };
    check(
        &["Hello"],
        "invalid plugin id `Hello`: ids have 1 to 64 characters of a-z, 0-9, `-` and `_`",
    );
    check(&["../hello"], "invalid plugin id");
    check(&["match"], "`match` is not a valid crate name");
    check(&["x", "--lang", "rhai", "--world", "provider"], "a script cannot provide");
    check(
        &["x", "--lang", "cobol"],
        "possible values: rust, python, javascript, typescript, rhai, other",
    );
    check(&["x", "--lang", "rhai", "--sdk", "."], "there is no SDK for Rhai");
    check(&["x", "--sdk", "."], "is not the folder `sdk` of a checkout");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    check(&["x", "--sdk", root], "/sdk?");
    let made = fs::read_dir(project.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    // Tests keep the key of their cache there.
    assert_eq!(made.filter(|name| name != "state").count(), 0);
    project.write("full/file", "mine");
    check(&["full"], "full is there already, and not empty");
    assert_eq!(fs::read_dir(project.path("full")).unwrap().count(), 1);
}

#[test]
fn scripts_of_every_world_work_at_once() {
    let project = empty();
    for world in ["tool", "hook", "eval", "resource", "prompt"] {
        let name = format!("my-{world}");
        run(&project, &project.path(""), &["new", &name, "--lang", "rhai", "--world", world], 0);
        let folder = project.path(&name);
        let said = stdout(&run(&project, &folder, &["check"], 0));
        assert!(said.contains("nothing is wrong with it"), "{said}");
        try_out(&project, &folder, &name, world);
    }
}

/// Builds what is made for Rust with what the guests are made of, and without a network.
fn offline<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("templates-target");
    command
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_HOME", home("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", home("RUSTUP_HOME", ".rustup"))
        .env("TENON_SDK", format!("{ROOT}/sdk"))
        .current_dir(folder)
}

/// A folder of the toolchain's, which is there whatever home folder a test has.
fn home(variable: &str, folder: &str) -> PathBuf {
    let named = std::env::var_os(variable).map(PathBuf::from);
    named.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(folder))
}

#[test]
fn plugins_in_rust_of_every_world_build_pass_their_tests_and_work() {
    let project = empty();
    // Always the same folder: Cargo keeps what it makes by the path of a package.
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("templates");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    for world in ["tool", "hook", "provider", "eval", "resource", "prompt"] {
        let name = format!("rust-{world}");
        run(&project, &root, &["new", &name, "--world", world], 0);
        let folder = root.join(&name);
        fs::copy(format!("{ROOT}/guests/Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        let manifest = folder.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        let said = "license = \"MIT OR Apache-2.0\"\nrepository = \"https://example.com/x\"\n";
        fs::write(&manifest, text.replacen("publish", &format!("{said}publish"), 1)).unwrap();

        let output = offline(&mut project.command(&["--json", "build"]), &folder).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let component = folder.join(format!("{name}.wasm"));
        assert_eq!(parsed(&output)["size"], fs::metadata(&component).unwrap().len());
        let mut test = Command::new(env!("CARGO"));
        let output = offline(test.args(["test", "--quiet"]), &folder).output().unwrap();
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));

        let said = stdout(&run(&project, &folder, &["check", "--no-build"], 0));
        assert!(said.contains("nothing is wrong with it"), "{said}");
        let named = match world {
            "resource" => "resource templates: planets://{number}\n",
            "prompt" => "prompts: explain\n",
            _ => "",
        };
        assert!(said.contains(named), "{said}");
        let inspected = run(&project, &folder, &["--json", "inspect", &name], 0);
        let inspected = parsed(&inspected);
        assert_eq!(inspected["worlds"], json!([world]));
        assert_eq!(inspected["metadata"]["licenses"], "MIT OR Apache-2.0");
        assert_eq!(inspected["metadata"]["source"], "https://example.com/x");
        try_out(&project, &folder, &name, world);
    }
    let wit = stdout(&run(&project, &root, &["inspect", "--wit", "rust-tool/rust-tool.wasm"], 0));
    assert!(wit.contains("/// rust-tool 0.1.0: Greets people\n"), "{wit}");
    assert!(wit.contains("`tenon:plugin/tools@0.2.0`: Tools: functions that"), "{wit}");
}

#[test]
fn a_plugin_that_fails_says_in_which_line() {
    let project = empty();
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("failing");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    run(&project, &root, &["new", "dividing"], 0);
    let folder = root.join("dividing");
    fs::copy(format!("{ROOT}/guests/Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let source = "\
use tenon_sdk::{Result, plugin, tool};

/// Divides a hundred.
#[tool]
async fn divide(by: u32) -> Result<String> {
    Ok(quotient(by).to_string())
}

#[inline(never)]
fn quotient(by: u32) -> u32 {
    100 / by
}

plugin!(tools: [divide]);
";
    fs::write(folder.join("src/lib.rs"), source).unwrap();
    let cases = "[[case]]\nname = \"by zero\"\ncall = \"divide\"\narguments = { by = 0 }\nexpect = { error = \"unreachable\" }\n";
    fs::create_dir(folder.join("cases")).unwrap();
    fs::write(folder.join("cases/dividing.toml"), cases).unwrap();
    let output = offline(&mut project.command(&["test"]), &folder).output().unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let said = stderr(&output);
    let line =
        said.lines().find(|line| line.contains("failed in ")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("failed in dividing::quotient at "), "{said}");
    assert!(line.contains("src/lib.rs:11"), "{said}");
    assert!(said.contains("called by ") && said.contains("src/lib.rs:6"), "{said}");
}

#[test]
fn who_lacks_a_tool_is_told_how_to_install_it() {
    let project = empty();
    let check = |language: &str, expected: &str| {
        let folder = project.path("");
        run(&project, &folder, &["new", language, "--lang", language], 0);
        let mut command = project.command(&["build", language]);
        let output = command.env("PATH", &folder).env_remove("CARGO").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        // And what is there of the component is nothing.
        let made = fs::read_dir(folder.join(language)).unwrap();
        let mut names = made.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(!names.any(|name| name.contains(".wasm")));
    };
    check(
        "python",
        "tenon-sdk for Python is not installed\n  hint: install it with `python3 -m venv",
    );
    for language in ["javascript", "typescript"] {
        check(language, "@tenon/sdk is not installed\n  hint: install it with `npm install`");
    }
    let made = run(&project, &project.path(""), &["--json", "new", "rust"], 0);
    assert_eq!(parsed(&made)["folder"], "rust");
    let mut command = project.command(&["build", "rust"]);
    let output = command.env("PATH", project.path("")).env_remove("CARGO").output().unwrap();
    assert!(stderr(&output).contains("cargo is not installed"), "{}", stderr(&output));
}

/// A folder with a component and a manifest that has this after it.
fn with_component(component: impl AsRef<[u8]>, more: &str) -> Project {
    let project = empty();
    let manifest = "plugin = { id = \"p\", version = \"0.1.0\", description = \"d\" }\nruntime = { kind = \"wasm\", path = \"p.wasm\" }";
    project.write("plugin.toml", format!("{manifest}\n{more}"));
    project.write("p.wasm", component);
    project
}

#[test]
fn a_check_names_what_is_wrong_and_the_line_to_write() {
    let read = |path: &str| fs::read(path).unwrap();
    let check = |component: Vec<u8>, more: &str, code: i32| {
        let project = with_component(component, more);
        stdout(&run(&project, &project.path(""), &["check", "--no-build"], code))
    };
    let mut said = check(read(guests::FETCH), "", 1);
    said += &check(read(guests::TEXT_TOOLS), "capabilities.tools = [\"x\"]", 1);
    said += &check(read(guests::TEXT_TOOLS), "", 0);
    said += &check(
        wat::parse_str("(component (import \"a:b/c\" (instance (export \"f\" (func)))))").unwrap(),
        "",
        1,
    );
    said += &check(wat::parse_str("(module)").unwrap(), "", 1);
    insta::with_settings!({ filters => vec![(r"[^ ]*/p.wasm", "p.wasm")] }, {
        insta::assert_snapshot!(said);
    });
    let project = with_component(read(guests::FETCH), "");
    let checked = run(&project, &project.path(""), &["--json", "check", "--no-build"], 1);
    assert_eq!(parsed(&checked)["findings"][0]["severity"], "error");
}

#[test]
fn settings_are_held_against_the_schema_of_the_manifest() {
    let project = Project::new("");
    let manifest = |settings: &str| {
        format!(
            "plugin = {{ id = \"weather\", version = \"0.1.0\", description = \"Knows units\" }}\n\
             runtime = {{ kind = \"rhai\", path = \"weather.rhai\" }}\n[settings]\n{settings}\n\
             [settings_schema]\nrequired = [\"city\"]\n[settings_schema.properties]\n\
             city.type = \"string\"\nunit = {{ enum = [\"celsius\", \"kelvin\"], default = \"kelvin\" }}"
        )
    };
    project.write("own/weather/plugin.toml", manifest(""));
    let tool = "tool(#{ name: \"unit\", description: \"Says the unit\" }, |a| `${config(\"unit\")} in ${config(\"city\")}`);";
    project.write("own/weather/weather.rhai", tool);
    let folder = project.path("own/weather");
    let check = |settings: &str, code: i32, expected: &str| {
        project.write("tenon.toml", format!("plugins.folders = [\"own\"]\n{settings}"));
        let output = run(&project, &project.path(""), &["call", "weather__unit"], code);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(said.contains(expected), "{settings}: {said}");
    };
    check("settings.weather.city = \"Graz\"", 0, "kelvin in Graz");
    check("settings.weather = { city = \"Graz\", unit = \"celsius\" }", 0, "celsius in Graz");
    check("", 2, "its settings are wrong: \"city\" is a required property");
    check(
        "settings.weather = { city = 5, unit = \"inch\" }",
        2,
        "at /unit: \"inch\" is not one of",
    );
    let doctor = stdout(&run(&project, &project.path(""), &["doctor"], 1));
    assert!(doctor.contains("at /city: 5 is not of type"), "{doctor}");
    assert!(doctor.contains("under [settings.weather] in tenon.toml"), "{doctor}");
    // What is required is for its users to set.
    run(&project, &folder, &["check"], 0);
    project.write("own/weather/plugin.toml", manifest("unit = \"inch\""));
    let said = stdout(&run(&project, &folder, &["check"], 1));
    assert!(said.contains("error: its settings are wrong: at /unit: \"inch\""), "{said}");
}

#[test]
fn a_check_runs_the_registration_unless_it_is_told_not_to() {
    let project = empty();
    let folder = project.path("");
    project.write(
        "plugin.toml",
        "plugin.id = \"s\"\nruntime = { kind = \"rhai\", path = \"s.rhai\" }",
    );
    project.write("s.rhai", "throw \"it ran\";");
    let said = stdout(&run(&project, &folder, &["check", "--no-register"], 0));
    assert!(!said.contains("it ran"), "{said}");
    let said = stdout(&run(&project, &folder, &["check"], 1));
    assert!(said.contains("it ran"), "{said}");
    let tool = "tool(#{ name: \"t\", description: \"d\", schema: #{ type: \"object\", required: 3 } }, |a| 1);";
    project.write("s.rhai", tool);
    let said = stdout(&run(&project, &folder, &["check"], 1));
    assert!(said.contains("its input schema"), "{said}");
    project.write("s.rhai", tool.replace(", required: 3", "").replace("\"t\"", "\"a tool\""));
    let said = stdout(&run(&project, &folder, &["check"], 0));
    assert!(said.contains("its tool \"a tool\" is offered as s__a_tool_"), "{said}");
    project.write("s.rhai", "fn BeforeToolCall(context) { context.arguments.path.starts_with(7) }");
    let said = stdout(&run(&project, &folder, &["check"], 1));
    assert!(
        said.contains("its handler of before-tool-call fails on the example context"),
        "{said}"
    );
    project.write("s.rhai", "fn BeforeToolCall(contxt) { context.arguments }");
    let said = stdout(&run(&project, &folder, &["check"], 1));
    assert!(said.contains("s.rhai:1:"), "{said}");
    assert!(said.contains("Undefined variable: context"), "{said}");
    project.write("s.rhai", "// Nothing yet.");
    let said = stdout(&run(&project, &folder, &["check"], 0));
    assert!(said.contains("warning: it registers nothing"), "{said}");
    project.write("s.rhai", "fn BeforePlan(context) {\n  let x = ;\n}");
    let said = stdout(&run(&project, &folder, &["check"], 1));
    assert!(said.contains("s.rhai:2"), "{said}");
    assert!(stderr(&run(&project, &folder, &["build"], 1)).contains("s.rhai:2"));
}

#[test]
fn a_check_names_what_a_plugin_registers_and_lists() {
    let project = empty();
    let folder = project.path("");
    let manifest = "plugin = { id = \"s\", version = \"0.1.0\", description = \"d\" }\n\
                    runtime = { kind = \"rhai\", path = \"s.rhai\" }\n";
    project.write("plugin.toml", manifest);
    let script = |list: &str| {
        format!(
            r#"tool(#{{ name: "t", description: "d" }}, |a| 1);
            fn BeforePlan(context) {{}}
            resource(#{{ uri: "notes://help", name: "help" }}, |v| "Read.");
            resource(#{{ uri: "notes://{{name}}", name: "note", list: || {list} }}, |v| v.name);
            prompt(#{{ name: "sum", description: "d" }}, |a| "Sum up.");
            prompt(#{{ name: "ask", description: "d" }}, |a| "Ask.");"#
        )
    };
    let check = |list: &str, code: i32| {
        project.write("s.rhai", script(list));
        stdout(&run(&project, &folder, &["check"], code))
    };
    let listed = "[#{ uri: \"notes://a\", name: \"a\" }]";
    let mut said = check(listed, 0);
    let checked = parsed(&run(&project, &folder, &["--json", "check"], 0));
    said += &serde_json::to_string_pretty(&checked["registered"]).unwrap();
    said += "\n";
    said += &check("throw \"no notes today\"", 1);
    // What it requests is not granted here, which is no fault of its own.
    project.write("plugin.toml", format!("{manifest}capabilities.state = [\"user\"]"));
    said += &check("state.keys().map(|key| #{ uri: \"notes://\" + key, name: key })", 0);
    insta::assert_snapshot!(said);
}

#[test]
fn a_build_replaces_nothing_that_somebody_wrote() {
    let project = empty();
    let folder = project.path("hello");
    run(&project, &project.path(""), &["new", "hello"], 0);
    let manifest = fs::read_to_string(folder.join("plugin.toml")).unwrap();
    let source = fs::read_to_string(folder.join("src/lib.rs")).unwrap();
    for (path, because) in [
        ("src/lib.rs", "src/lib.rs, which is not a component"),
        ("plugin.toml", "is that of a manifest"),
        ("../victim.txt", "leads out of its folder"),
    ] {
        let moved = manifest.replace("path = \"hello.wasm\"", &format!("path = {path:?}"));
        assert_ne!(moved, manifest);
        fs::write(folder.join("plugin.toml"), moved).unwrap();
        let said = stderr(&run(&project, &folder, &["build"], 2));
        assert!(said.contains(because), "{path}: {said}");
    }
    assert_eq!(fs::read_to_string(folder.join("src/lib.rs")).unwrap(), source);
    assert!(!project.path("victim.txt").exists());
}

/// What only works with a grant cannot register without one, which is no fault of its own.
#[test]
fn who_cannot_register_without_a_grant_is_told_so() {
    let network = "capabilities.network = [\"https://example.com/*\"]";
    let project = with_component(fs::read(guests::FETCH).unwrap(), network);
    let output = run(&project, &project.path(""), &["check", "--no-build"], 0);
    let said = stdout(&output);
    assert!(said.contains("its registration is not checked, as nothing is granted"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_component_says_which_commit_it_was_built_from() {
    let git = |folder: &Path, arguments: &[&str]| {
        let mut command = Command::new("git");
        let identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
        let output = command.arg("-C").arg(folder).args(identity).args(arguments).output();
        let output = output.expect("git starts");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).trim().to_string()
    };
    // A builder that gives what it was given.
    let script = format!("for last; do :; done\ncp {} \"$last\"", guests::TEXT_TOOLS);
    let project = with_builder(&script);
    let folder = project.path("hello");
    let revision = || {
        let output = run(&project, &folder, &["--json", "build"], 0);
        let inspected = run(&project, &folder, &["--json", "inspect", "hello.wasm"], 0);
        let (built, inspected) = (parsed(&output), parsed(&inspected));
        assert_eq!(built["revision"], inspected["metadata"]["revision"]);
        assert_eq!(built["sha256"], inspected["metadata"]["sha256"]);
        (built["revision"].clone(), stderr(&output))
    };
    assert_eq!(revision().0, Value::Null);
    git(&folder, &["init", "--quiet"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "--quiet", "--message", "x"]);
    let commit = git(&folder, &["rev-parse", "HEAD"]);
    assert_eq!(revision().0, json!(commit));
    project.write("hello/logic.js", "");
    let (none, said) = revision();
    assert_eq!(none, Value::Null);
    assert!(said.contains("there are changes that are not committed"), "{said}");
}

#[test]
fn shells_can_complete_every_verb() {
    let project = empty();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&project.tenon(&["completions", shell]));
        for verb in ["call", "inspect", "new", "build", "check", "completions"] {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
    }
    // The shell itself finds nothing wrong with it.
    let script = project.path("tenon.bash");
    fs::write(&script, stdout(&project.tenon(&["completions", "bash"]))).unwrap();
    let checked = Command::new("bash").arg("-n").arg(&script).output();
    assert!(checked.is_ok_and(|checked| checked.status.success()));
}

/// A project in JavaScript whose builder is this script.
#[cfg(unix)]
fn with_builder(script: &str) -> Project {
    use std::os::unix::fs::PermissionsExt;
    let project = empty();
    run(&project, &project.path(""), &["new", "hello", "--lang", "javascript"], 0);
    let builder = "hello/node_modules/.bin/tenon-build-javascript";
    project.write(builder, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(project.path(builder), fs::Permissions::from_mode(0o755)).unwrap();
    project
}

#[test]
fn editors_get_a_schema_of_each_file() {
    let project = empty();
    for (file, title) in [("plugin", "plugin.toml"), ("project", "tenon.toml")] {
        let schema = stdout(&project.tenon(&["schema", file]));
        let schema: Value = serde_json::from_str(&schema).expect("it is JSON");
        assert_eq!(schema["title"], title);
    }
}

#[cfg(unix)]
#[test]
fn what_a_compiler_says_is_shown() {
    let script = "echo 'plugin.js:3: there is a parenthesis too many' >&2\nexit 1";
    let project = with_builder(script);
    for verb in ["build", "check"] {
        let output = run(&project, &project.path("hello"), &[verb], 1);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(said.contains("plugin.js:3: there is a parenthesis too many\n"), "{verb}: {said}");
        assert!(said.contains("does not build: @tenon/sdk ended with exit status: 1"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn what_is_wrong_with_a_source_is_shown_with_its_file_and_line() {
    let problems = r#"{"problems": [
        {"file": "plugin.js", "line": 3, "column": 5, "source": "  readonly: true,", "message": "no such field\nerror: x", "hint": "did you mean `readOnly`?"},
        {"message": "there is no tool", "hint": ""}
    ]}"#
    .replace('\n', " ");
    let project =
        with_builder(&format!("echo 'what it says'; cat <<'END'\n{problems}\nEND\nexit 1"));
    let folder = project.path("hello");
    insta::assert_snapshot!(stderr(&run(&project, &folder, &["build"], 1)));
    let output = parsed(&run(&project, &folder, &["--json", "build"], 1));
    let error = &output["error"];
    assert_eq!(error["code"], "not-built");
    assert_eq!(error["message"], "plugin.js:3:5: no such field\nerror: x\nthere is no tool");
    assert_eq!(error["problems"][0]["line"], 3);
    assert_eq!(error["problems"][0]["hint"], "did you mean `readOnly`?");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 9, "no part of a component is left");
}

#[test]
fn what_every_host_refuses_is_found_before_anybody_has_it() {
    let project = empty();
    let script = r#"tool(#{ name: "t", description: "d", schema: #{ type: "object" } }, |a| 1);"#;
    project.write("hello/s.rhai", script);
    let check = |plugin: &str, more: &str, code: i32, expected: &str| {
        let manifest = format!(
            "[plugin]\nid = \"hello\"\nversion = \"1.0.0\"\ndescription = \"Greets\"\n{plugin}\n\
             [runtime]\nkind = \"rhai\"\npath = \"s.rhai\"\n{more}\n"
        );
        project.write("hello/plugin.toml", manifest);
        let said = stdout(&run(&project, &project.path("hello"), &["check"], code));
        assert!(said.contains(expected), "{said}");
    };
    check("", "", 0, "nothing is wrong with it");
    let unknown = "[capabilities]\nnetwrok = [\"https://a.example/*\"]";
    check("", unknown, 1, "error: it requests the capability `netwrok`, which does not exist");
    let version = "plugin_api_version = \"2\"";
    check(version, "", 1, "error: it is made for tenon:plugin@^2, and this host speaks");
    check("", "[requires]\nenv = [\"TENON_TEST_NOWHERE\"]", 0, "warning: it requires");
}
