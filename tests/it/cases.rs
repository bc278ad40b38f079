//! `tenon test`: cases in files, for a script and for a component.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::guests;
use crate::support::{Project, compiled_in, parsed, stderr, stdout};

const SCRIPT: &str = r#"
tool(#{ name: "greet", description: "Greets", schema: #{ type: "object", properties: #{ name: #{ type: "string" } } } }, |a| {
    if a.name == "" { throw "say whom to greet"; }
    `${config("word")}, ${a.name}!`
});

tool(#{ name: "count", description: "Counts" }, |a| `${state.increment("n", 1)}`);

tool(#{ name: "name", description: "Asks" }, |a| {
    let answer = ask("Who?", #{ name: #{ type: "string" } });
    `${answer.name}`
});

hook("before-tool-call", |context| {
    if context.tool == "rm" { return veto("rm is not for agents"); }
    context.arguments.seen = true;
    context
});
"#;

/// A project with the script and a file of cases.
fn project(cases: &str) -> Project {
    let project = Project::new("plugins.folders = [\".\"]");
    let manifest = "plugin.id = \"greeter\"
        runtime = { kind = \"rhai\", path = \"greeter.rhai\" }
        capabilities = { state = [\"project\"], user = [\"ask\"] }
        settings_schema.properties.word.type = \"string\"";
    project.write("plugin.toml", manifest);
    project.write("greeter.rhai", SCRIPT);
    project.write("cases/all.toml", cases);
    project
}

const PASSING: &str = r#"
[[case]]
name = "somebody is greeted"
settings = { word = "Hello" }
call = "greet"
arguments = { name = "Ada" }
expect.text = "Hello, Ada!"

[[case]]
name = "nobody is not greeted"
call = "greet"
arguments = { name = "" }
expect.error = "say whom"

[[case]]
name = "arguments are checked"
call = "greet"
arguments = { name = 3 }
expect.error = "3 is not of type"

[[case]]
name = "it goes on counting"
state = { n = 40 }
steps = [
    { call = "count", expect.json = 41 },
    { call = "count", expect = { text = "42", state = { n = 42 } } },
]

[[case]]
name = "rm is vetoed"
hook = "before-tool-call"
context = { tool = "rm", arguments = {} }
expect.veto = "not for agents"

[[case]]
name = "another tool is let through"
hook = "before-tool-call"
context = { tool = "ls", arguments = {} }
expect.contains = "\"seen\":true"

[[case]]
name = "the user is asked"
user = { accept = { name = "Ada" } }
call = "name"
expect.contains = "Ada"

[[case]]
name = "it is not loaded with wrong settings"
settings = { word = 3 }
call = "count"
expect.error = "at /word: 3 is not of type"

[[case]]
name = "without its grant it counts nothing"
grants = { state = [] }
call = "count"
expect.error = "is not granted"
"#;

#[test]
fn cases_that_pass_are_named() {
    let project = project(PASSING);
    let output = project.tenon(&["test"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
    assert!(said.ends_with("9 passed, 0 failed\n"), "{said}");
    assert!(said.contains("  ok      somebody is greeted ("), "{said}");
    let output = project.tenon(&["test", "--only", "greeted"]);
    assert!(stdout(&output).ends_with("2 passed, 0 failed\n"), "{}", stdout(&output));
    let output = project.tenon(&["test", "--only", "no such"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Each row is a case that fails, and what is said of it.
#[test]
fn a_case_that_fails_says_what_was_expected_and_what_it_is() {
    let rows = [
        (
            "call = \"greet\"\narguments = { name = \"\" }",
            "an error was not expected: say whom to greet",
        ),
        ("call = \"count\"\nexpect.text = \"2\"", "expected \"2\", and it is \"1\""),
        (
            "call = \"count\"\nexpect.contains = \"x\"",
            "expected a text with \"x\", and it is \"1\"",
        ),
        ("call = \"count\"\nexpect.json = [1]", "expected [1], and it is 1"),
        (
            "call = \"count\"\nexpect.error = \"x\"",
            "expected an error with \"x\", and there was none",
        ),
        ("call = \"count\"\nexpect.state.n = 2", "expected 2 under the key \"n\", and there is 1"),
        (
            "call = \"greet\"\narguments = { name = \"\" }\nexpect.error = \"x\"",
            "and it is: say whom to greet",
        ),
        ("call = \"cuont\"", "an error was not expected: there is no tool"),
        (
            "hook = \"before-tool-call\"\ncontext = { tool = \"ls\", arguments = {} }\nexpect.veto = \"x\"",
            "expected a veto with \"x\"",
        ),
        (
            "hook = \"before-tool-call\"\ncontext = { tool = \"rm\", arguments = {} }",
            "a veto was not expected: rm is not for agents",
        ),
        (
            "steps = [{ call = \"count\" }, { call = \"count\", expect.text = \"3\" }]",
            "step 2: expected \"3\"",
        ),
        (
            "call = \"count\"\nexpect.asked = [\"name\"]",
            "expected questions with [\"name\"], and they were []",
        ),
        (
            "call = \"count\"\nuser = [\"decline\", \"decline\"]\nmodel = \"x\"",
            "nothing asked for 1 answer of `model`",
        ),
        (
            "call = \"count\"\nhttp = [{ url = \"https://a/*\" }]",
            "nothing was requested that `http` has for https://a/*",
        ),
        (
            "call = \"name\"\nuser = { accept = { name = \"Ada\", age = 3 } }",
            "`user` answers \"age\", and the form \"Who?\" has no such member",
        ),
        ("call = \"name\"\nuser = { accept = { name = 3 } }", "`user`: \"name\" of the form"),
        ("settings = { word = 3 }\ncall = \"count\"", "at /word: 3 is not of type"),
    ];
    let cases = rows.iter().enumerate();
    let cases = cases.map(|(number, (case, _))| format!("[[case]]\nname = \"{number}\"\n{case}\n"));
    let project = project(&cases.collect::<String>());
    let output = project.tenon(&["--json", "test"]);
    assert_eq!(output.status.code(), Some(1));
    let said = parsed(&output);
    assert_eq!(said["failed"], rows.len());
    for ((case, expected), told) in rows.iter().zip(said["cases"].as_array().unwrap()) {
        let problems = &told["problems"];
        assert!(
            problems[0].as_str().is_some_and(|problem| problem.contains(expected)),
            "{case}: {problems}"
        );
    }
    let said = stdout(&project.tenon(&["test"]));
    assert!(said.contains("  FAILED  1 ("), "{said}");
    assert!(said.contains("          cases/all.toml:6\n"), "{said}");
}

#[test]
fn a_component_requests_only_what_the_case_answers() {
    let project = Project::new("plugins.folders = [\".\"]");
    let component = fs::read(guests::FETCH).unwrap();
    let manifest = "plugin.id = \"fetch\"
        runtime = { kind = \"wasm\", path = \"fetch.wasm\" }
        capabilities.network = [\"https://api.example.com/*\"]";
    project.write("plugin.toml", manifest);
    project.write("fetch.wasm", component);
    let cases = r#"
[[case]]
name = "it is fetched"
http = [{ url = "https://api.example.com/v1/*", json = { degrees = 21 } }]
call = "fetch"
arguments = { url = "https://api.example.com/v1/vienna" }
expect.contains = "degrees"
expect.http = [{ method = "GET", url = "https://api.example.com/v1/vienna" }]

[[case]]
name = "what the case does not answer fails"
call = "fetch"
arguments = { url = "https://api.example.com/v2" }
expect.error = ""

[[case]]
name = "what is not granted is refused"
http = [{ url = "*" }]
call = "fetch"
arguments = { url = "https://elsewhere.example.com/" }
expect.error = "not granted"
"#;
    project.write("cases/fetch.toml", cases);
    let output = project.tenon(&["--json", "test", "--no-build"]);
    let said = parsed(&output);
    let problems = |case: usize| said["cases"][case]["problems"].clone();
    assert_eq!(problems(0), Value::Array(Vec::new()));
    let unanswered = problems(1)[0].as_str().unwrap_or_default().to_string();
    assert_eq!(unanswered, "the case has no answer in `http` to GET https://api.example.com/v2");
    assert_eq!(problems(2), Value::Array(Vec::new()));
}

#[test]
fn what_is_wrong_with_a_file_names_its_line() {
    let project = project("[[case]]\nname = \"a\"\ncall = \"greet\"\nexpct.text = \"b\"");
    let output = project.tenon(&["test"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("cases/all.toml") && said.contains("line 4"), "{said}");
    assert!(said.contains("expct"), "{said}");
    fs::remove_dir_all(project.path("cases")).unwrap();
    let said = stderr(&project.tenon(&["test"]));
    assert!(said.contains("has no cases"), "{said}");
}

#[test]
fn cases_do_not_compile_what_is_compiled() {
    let project = Project::new("plugins.folders = [\"hello\"]");
    project.write("hello/hello.wasm", fs::read(guests::HELLO).unwrap());
    let manifest = "plugin.id = \"hello\"\nruntime = { kind = \"wasm\", path = \"hello.wasm\" }\n";
    project.write("hello/plugin.toml", manifest);
    let case = "call = \"greet\"\narguments = { name = \"Ada\" }\nexpect.text = \"Hello, Ada!\"\n";
    let cases: Vec<String> =
        (0..3).map(|number| format!("[[case]]\nname = \"{number}\"\n{case}")).collect();
    project.write("hello/cases/greet.toml", cases.join(""));
    let cache = project.path("compiled");
    // What is compiled anew is another file.
    let compiled = || -> Vec<u64> {
        let files = compiled_in(&cache.join("tenon/components"));
        files.iter().map(|file| file.metadata().unwrap().ino()).collect()
    };
    let run = |arguments: &[&str]| {
        let output = project.command(arguments).env("XDG_CACHE_HOME", &cache).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        stdout(&output)
    };
    run(&["call", "hello__greet", "name=Ada"]);
    let before = compiled();
    assert_eq!(before.len(), 1);
    assert!(run(&["test", "hello", "--no-build"]).contains("3 passed"));
    assert_eq!(compiled(), before);
}

#[test]
fn cases_have_home_and_data_folders_of_their_own() {
    let project = Project::new("plugins.folders = [\"escape\"]");
    project.write("escape/escape.wasm", fs::read(guests::ESCAPE).unwrap());
    let manifest = "plugin.id = \"escape\"\nruntime = { kind = \"wasm\", path = \"escape.wasm\" }\n\
                    [capabilities]\nfilesystem = [\"read:/no/such/*\", \"read:~/notes/**\", \"readwrite:${data}/**\"]";
    project.write("escape/plugin.toml", manifest);
    let cases = "[[case]]\nname = \"they are there\"\nfiles = { \"~/notes/a\" = \"x\" }\ncall = \"roots\"\n\
                 expect.contains = \"/home/notes\"\n";
    project.write("escape/cases/roots.toml", cases);
    let data = "[[case]]\nname = \"data\"\ncall = \"roots\"\nexpect.contains = \"/data/\"\n";
    project.write("escape/cases/data.toml", data);
    let output = project.tenon(&["test", "escape", "--no-build"]);
    assert!(stdout(&output).contains("2 passed"), "{}{}", stdout(&output), stderr(&output));
}
