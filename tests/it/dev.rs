//! `tenon dev`: plugins that are edited while they run.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use crate::support::{Project, stderr, stdout};

/// A `tenon dev` of a project.
struct Dev {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Dev {
    /// Starts it, and waits until its plugins are ready.
    fn start(project: &Project, ready: usize) -> Self {
        let mut command = project.command(&["dev"]);
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let mut dev = Self { process, lines };
        dev.until(&format!("{ready} plugins are ready; `tenon call` calls their tools"));
        dev
    }

    /// Waits for a line that begins so, and gives it.
    fn until(&mut self, beginning: &str) -> String {
        let mut before = Vec::new();
        for line in &mut self.lines {
            let line = line.expect("it is text");
            if line.starts_with(beginning) {
                return line;
            }
            before.push(line);
        }
        panic!("it ended without {beginning:?}: {before:#?}");
    }

    /// Interrupts it, and gives its exit code and what is on standard error.
    fn end(self) -> (Option<i32>, String) {
        let Self { process, lines } = self;
        let number = i32::try_from(process.id()).expect("it is a process id");
        let id = rustix::process::Pid::from_raw(number).expect("it is not zero");
        rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it is there");
        // What it says meanwhile is read, so that it can go on.
        let reading = std::thread::spawn(move || lines.for_each(drop));
        let output = process.wait_with_output().expect("it ends");
        reading.join().expect("it is read");
        (output.status.code(), stderr(&output))
    }
}

/// A project with a plugin that is a script, which requests state.
fn project(script: &str) -> Project {
    let project = Project::new("plugins.folders = [\"greeter\"]");
    let manifest = "plugin.id = \"greeter\"
        runtime = { kind = \"rhai\", path = \"greeter.rhai\" }
        capabilities.state = [\"project\"]";
    project.write("greeter/plugin.toml", manifest);
    project.write("greeter/greeter.rhai", script);
    project
}

/// A script that greets with a word.
fn greeting(word: &str) -> String {
    format!("tool(#{{ name: \"greet\", description: \"Greets\" }}, |a| \"{word}\");")
}

#[test]
fn a_call_gets_what_was_saved_a_moment_ago() {
    let project = project(&greeting("one"));
    let mut dev = Dev::start(&project, 1);
    let call = || project.tenon(&["call", "greeter__greet"]);
    let output = call();
    assert_eq!(stdout(&output), "one\n", "{}", stderr(&output));
    dev.until("greeter__greet: ok, ");
    for word in ["two", "three", "four"] {
        project.write("greeter/greeter.rhai", greeting(word));
        assert_eq!(stdout(&call()), format!("{word}\n"));
    }
    // The last call is made again by itself, and nobody has to ask.
    project.write("greeter/greeter.rhai", greeting("five"));
    dev.until("five");
    assert_eq!(dev.end().0, Some(0));
    // Without it a command loads the plugin by itself, which nobody has approved.
    let output = call();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

#[test]
fn what_does_not_compile_leaves_the_former_plugin_and_says_so() {
    let project = project(&greeting("good"));
    let mut dev = Dev::start(&project, 1);
    project.write("greeter/greeter.rhai", "let x = ;");
    dev.until("greeter: not built");
    let output = project.tenon(&["call", "greeter__greet"]);
    assert_eq!(stdout(&output), "good\n");
    let said = stderr(&output);
    assert!(said.contains("plugin \"greeter\" is older than its source"), "{said}");
    assert!(said.contains("greeter.rhai:1:9"), "{said}");
    project.write("greeter/greeter.rhai", greeting("mended"));
    let output = project.tenon(&["call", "greeter__greet"]);
    assert_eq!((stdout(&output), stderr(&output)), ("mended\n".into(), String::new()));
    dev.end();
}

#[test]
fn what_does_not_load_leaves_the_former_plugin_and_each_call_says_so() {
    let project = project(&greeting("good"));
    let manifest = std::fs::read_to_string(project.path("greeter/plugin.toml")).unwrap();
    let dev = Dev::start(&project, 1);
    let wrong =
        format!("{manifest}\nsettings.city = 4\nsettings_schema.properties.city.type = \"string\"");
    for (text, expected) in [
        (&*wrong, "at /city: 4 is not of type"),
        (&format!("{manifest}\nsettigns.x = 1"), "settigns"),
    ] {
        project.write("greeter/plugin.toml", text);
        for _ in 0..2 {
            let output = project.tenon(&["call", "greeter__greet"]);
            let said = stderr(&output);
            assert_eq!(stdout(&output), "good\n", "{said}");
            assert!(said.contains(expected), "{said}");
        }
    }
    project.write("greeter/plugin.toml", &manifest);
    let output = project.tenon(&["call", "greeter__greet"]);
    assert_eq!((stdout(&output), stderr(&output)), ("good\n".into(), String::new()));
    dev.end();
}

#[test]
fn errors_of_calls_are_those_of_every_command() {
    let project = project("tool(#{ name: \"fail\", description: \"Fails\" }, |a| throw \"no\");");
    let dev = Dev::start(&project, 1);
    for (arguments, code, said) in [
        (&["call", "greeter__fail"][..], 1, "no"),
        (&["call", "greeter__fial"], 2, "hint: did you mean \"greeter__fail\"?"),
        (&["call", "greeter__fail", "[]"], 2, "arguments"),
    ] {
        let output = project.tenon(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {}", stderr(&output));
        let all = format!("{}{}", stdout(&output), stderr(&output));
        assert!(all.contains(said), "{all}");
    }
    let output = project.tenon(&["--json", "call", "greeter__fial"]);
    let error = crate::support::parsed(&output);
    assert_eq!(error["error"]["code"], "not-found");
    dev.end();
}

#[test]
fn a_plugin_gets_what_it_requests_as_long_as_its_author_runs_it() {
    let script =
        "tool(#{ name: \"count\", description: \"Counts\" }, |a| `${state.increment(\"n\", 1)}`);";
    let project = project(script);
    let refused = project.tenon(&["call", "greeter__count"]);
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    let dev = Dev::start(&project, 1);
    for count in ["1\n", "2\n"] {
        let output = project.tenon(&["call", "greeter__count"]);
        assert_eq!(stdout(&output), count, "{}", stderr(&output));
    }
    dev.end();
    assert_eq!(project.tenon(&["call", "greeter__count"]).status.code(), Some(3));
}

#[test]
fn a_plugin_that_is_added_is_there_and_one_that_is_removed_is_not() {
    let project = project(&greeting("one"));
    project.write("tenon.toml", "plugins.folders = [\"greeter\", \"other\"]");
    let mut dev = Dev::start(&project, 1);
    let manifest = "plugin.id = \"other\"\nruntime = { kind = \"rhai\", path = \"other.rhai\" }";
    project.write("other/other.rhai", greeting("two"));
    project.write("other/plugin.toml", manifest);
    dev.until("other: loaded");
    assert_eq!(stdout(&project.tenon(&["call", "other__greet"])), "two\n");
    std::fs::remove_dir_all(project.path("other")).unwrap();
    dev.until("other: unloaded");
    dev.end();
}

#[test]
fn one_runs_in_a_project() {
    let project = project(&greeting("one"));
    let dev = Dev::start(&project, 1);
    let second = project.tenon(&["dev"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains("another `tenon dev` runs in"), "{}", stderr(&second));
    // One that is killed leaves its socket, and the next takes its place.
    let mut dev = dev;
    dev.process.kill().unwrap();
    dev.process.wait().unwrap();
    let dev = Dev::start(&project, 1);
    let called = project.tenon(&["call", "greeter__greet"]);
    assert_eq!(stdout(&called), "one\n", "{}", stderr(&called));
    dev.end();
}

#[test]
fn a_folder_that_nobody_trusts_is_not_built() {
    let project = project(&greeting("one"));
    let output = project.command(&["dev"]).env_remove("TENON_TRUST").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("--allow-code-changes"), "{}", stderr(&output));
}

#[test]
fn a_plugin_that_no_project_loads_is_told_what_to_write() {
    let project = project(&greeting("one"));
    let output = project.tenon(&["dev", "greeter"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("write `plugins.folders = [\".\"]`"), "{}", stderr(&output));
}

#[test]
fn a_tool_that_is_left_out_is_told_when_it_is_loaded_and_when_it_is_called() {
    let project = project(&greeting("good"));
    let mut dev = Dev::start(&project, 1);
    let wrong = "tool(#{ name: \"greet\", description: \"d\", schema: #{ type: \"object\", required: 3 } }, |a| 1);";
    project.write("greeter/greeter.rhai", wrong);
    let told = dev.until("plugin \"greeter\": the tool \"greet\" is left out");
    assert!(told.contains("its input schema"), "{told}");
    let output = project.tenon(&["call", "greeter__greet"]);
    assert!(stderr(&output).contains("the tool \"greet\" is left out"), "{}", stderr(&output));
    dev.end();
}

#[test]
fn a_script_that_is_removed_and_written_anew_is_granted_what_it_was() {
    let project = project(&greeting("0"));
    let mut dev = Dev::start(&project, 1);
    for number in 1..6 {
        std::fs::remove_file(project.path("greeter/greeter.rhai")).unwrap();
        if number % 2 == 0 {
            dev.until("greeter: not built");
        }
        project.write("greeter/greeter.rhai", greeting(&number.to_string()));
        let output = project.tenon(&["call", "greeter__greet"]);
        assert_eq!(stdout(&output), format!("{number}\n"), "{}", stderr(&output));
    }
    dev.end();
}

#[test]
fn what_a_call_asks_is_answered_by_its_own_answers() {
    let script = "tool(#{ name: \"name\", description: \"d\" }, |a| {
        let answer = ask(\"Who?\", #{ name: #{ type: \"string\" } });
        `${answer.name}`
    });";
    let project = project(script);
    let manifest = std::fs::read_to_string(project.path("greeter/plugin.toml")).unwrap();
    project.write(
        "greeter/plugin.toml",
        manifest.replace("capabilities.state = [\"project\"]", "capabilities.user = [\"ask\"]"),
    );
    let mut dev = Dev::start(&project, 1);
    for name in ["Ada", "Eve"] {
        project.write("answers.json", format!("[{{\"accept\": {{\"name\": \"{name}\"}}}}]"));
        let output = project.tenon(&["call", "greeter__name", "--answers", "answers.json"]);
        assert_eq!(stdout(&output), format!("{name}\n"), "{}", stderr(&output));
        dev.until("greeter__name: ok, ");
    }
    let output = project.tenon(&["call", "greeter__name"]);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert!(said.contains("`--answers FILE`"), "{said}");
    project.write("answers.json", "[3]");
    let output = project.tenon(&["call", "greeter__name", "--answers", "answers.json"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    dev.end();
}
