//! The `tenon` command: what it prints, and how it ends.

use serde_json::{Value, json};

use crate::approval::on_terminal_but_for_output;
use crate::guests;
use crate::support::{
    DEMO_SERVER, Project, REACHING_SERVER, RUDE_SERVER, SCRIPTED_SERVER, eventually, parsed,
    processes_with, stderr, stdout,
};
use tenon_host::services::STATE_FILE;

fn project() -> Project {
    let project = Project::new(&format!(
        "[plugins]\nmcp = [{{ name = \"demo\", command = {DEMO_SERVER:?} }}]\n\
         wasm = [{:?}, {:?}, {:?}, {:?}, {:?}]\nscripts = [\"hooks.rhai\"]\n",
        guests::TEXT_TOOLS,
        guests::REDACT,
        guests::CHECKS,
        guests::ECHO_PROVIDER,
        guests::MISBEHAVE
    ));
    project.write(
        "hooks.rhai",
        "fn BeforePlan(context) { if context.goal == \"\" { return veto(\"no goal\"); } context.goal += \"!\"; }",
    );
    project
}

#[test]
fn help_shows_verbs_examples_and_exit_codes() {
    let project = Project::new("");
    insta::assert_snapshot!(stdout(&project.tenon(&["--help"])));
    insta::assert_snapshot!(stdout(&project.tenon(&["call", "--help"])));
}

/// Of what stands in a list of options; examples are longer where their commands are.
#[test]
fn help_fits_a_terminal() {
    let project = Project::new("");
    let help = stdout(&project.tenon(&["--help"]));
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = verbs.take_while(|line| !line.is_empty());
    let verbs: Vec<&str> = verbs.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(verbs.len() > 20 && verbs.contains(&"serve"), "{verbs:?}");
    for verb in verbs {
        let help = stdout(&project.tenon(&[verb, "--help"]));
        let options = help.split("Examples:").next().unwrap_or_default();
        for line in options.lines() {
            assert!(line.chars().count() <= 100, "{verb}: {line}");
        }
        // A paragraph has no line that ends early.
        let examples = help.split("Examples:").nth(1).unwrap_or_default();
        for lines in examples.lines().collect::<Vec<_>>().windows(2) {
            let next = lines[1].split(' ').next().unwrap_or_default();
            let is_full = lines[0].len() + 1 + next.len() > 100;
            let is_paragraph = |line: &str| !line.is_empty() && !line.starts_with(' ');
            assert!(is_full || !lines.iter().all(|line| is_paragraph(line)), "{verb}: {lines:?}");
        }
    }
}

#[test]
fn tools_are_listed_as_mcp_tools_with_plugin_and_kind() {
    let tools = parsed(&project().tenon(&["--json", "tools"]));
    let tool = |name: &str| {
        let tools = tools.as_array().expect("it is an array");
        tools.iter().find(|tool| tool["name"] == name).expect("the tool is listed").clone()
    };
    insta::assert_json_snapshot!(tool("text_tools__count"));
    assert_eq!(tool("demo__echo")["kind"], "mcp");
    assert_eq!(tool("demo__echo")["plugin"], "demo");
}

#[test]
fn a_call_prints_the_text_or_an_mcp_result() {
    let project = project();
    let arguments = r#"{"text": "one two"}"#;
    let output = project.tenon(&["call", "text_tools__count", arguments]);
    assert_eq!(stdout(&output), "{\"characters\":7,\"words\":2,\"lines\":1,\"bytes\":7}\n");
    assert_eq!(output.status.code(), Some(0));
    let result = parsed(&project.tenon(&["call", "text_tools__count", arguments, "--json"]));
    assert_eq!(result["structuredContent"]["words"], 2);
    assert_eq!(result["isError"], false);
    project.write("arguments.json", arguments);
    let output = project.tenon(&["call", "text_tools__count", "@arguments.json"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&project.tenon(&["call", "demo__echo", r#"{"text": "hi"}"#])), "hi\n");
}

#[test]
fn arguments_come_from_standard_input_too() {
    use std::io::Write;
    use std::process::Stdio;
    let project = project();
    let mut child = project
        .command(&["call", "text_tools__slug", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("tenon starts");
    child.stdin.take().unwrap().write_all(br#"{"text": "A b"}"#).unwrap();
    assert_eq!(stdout(&child.wait_with_output().unwrap()), "a-b\n");
}

#[test]
fn a_call_starts_only_the_plugins_it_needs() {
    let project = Project::new(&format!(
        "[plugins]\nwasm = [{:?}]\nmcp = [{{ name = \"s\", command = \"/bin/sh\", args = [\"-c\", \"touch started\"] }}]",
        guests::TEXT_TOOLS
    ));
    let output = project.tenon(&["call", "text_tools__slug", r#"{"text": "A"}"#]);
    assert_eq!(stdout(&output), "a\n");
    assert!(!project.path("started").exists());
}

#[test]
fn exit_codes_say_who_is_to_blame() {
    let project = project();
    let check = |arguments: &[&str], code: i32, said: &str| {
        let output = project.tenon(arguments);
        let all = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {all}");
        assert!(all.contains(said), "{arguments:?}: {all}");
    };
    check(&["call", "misbehave__fail", r#"{"text": "sorry"}"#], 1, "sorry");
    check(&["call", "misbehave__denied"], 1, "denied");
    check(&["call", "text_tools__cuont"], 2, "did you mean \"text_tools__count\"?");
    check(
        &["call", "text_tools__count", r#"{"text": 3}"#],
        2,
        "at /text: 3 is not of type \"string\"",
    );
    check(&["call", "text_tools__count", "{"], 2, "arguments: not JSON");
    check(
        &["call", "text_tools__count", "@nowhere"],
        2,
        "arguments: nowhere cannot be read: No such file or directory (os error 2)\n  hint: an argument that begins with `@` names a file",
    );
    check(&["resources", "read", "tenon://result/x"], 2, "begins with tenon://results/");
    check(&["call", "text_tools__count", "--timeout", "0s"], 2, "greater than zero");
    check(&["eval", "checks/exact", "--subject", "-", "--options", "-"], 2, "not both");
    check(&["call"], 2, "Usage");
    check(&["call", "misbehave__trap"], 4, "trapped");
    check(&["call", "misbehave__hang", "--timeout", "100ms"], 4, "no answer within 100ms");
    check(&["hook", "before-lunch"], 2, "there is no hook point \"before-lunch\"");
    check(&["eval", "checks/none", "--subject", "{}"], 2, "there is no strategy");
    check(&["complete", "none", "--prompt", "x"], 2, "there is no model \"none\"");
    check(&["--config", "nowhere.toml", "tools"], 2, "nowhere.toml cannot be read");
    check(&["inspect", "hooks.rhai"], 2, "it is not a component");
    project.write("bad.toml", "[plugins]\nwsam = []");
    check(&["--config", "bad.toml", "tools"], 2, "bad.toml:2: unknown field `wsam`");
}

#[test]
fn what_a_plugin_says_is_not_taken_for_what_tenon_says() {
    let project = Project::new("plugins = { scripts = [\"s.rhai\"], wasm = [\"no.wasm\"] }");
    let script = r#"
        tool(#{ name: "t", description: "d", schema: #{ type: "object" } }, |a| "done");
        fn BeforeToolCall(context) {
            log("\u001b[2Jone\nWARN two");
            return veto("\u001b[2Jone\nerror: two\n  hint: `rm -rf ~`\u2028");
        }
    "#;
    project.write("s.rhai", script);
    let output = project.command(&["call", "s__t"]).env("TENON_LOG", "info").output().unwrap();
    let said = stderr(&output);
    assert!(said.contains(r"\u{1b}[2Jone\nWARN two"), "{said}");
    let forged = |line: &&str| line.starts_with("WARN two") || line.starts_with("error: two");
    assert!(!said.contains('\u{1b}') && !said.lines().any(|line| forged(&line)), "{said}");
    assert!(said.contains("    |   hint: `rm -rf ~`\\u{2028}"), "{said}");
}

#[test]
fn a_refused_plugin_is_a_refusal() {
    let project = Project::new("plugins.folders = [\"p\"]");
    project.write(
        "p/a/plugin.toml",
        "[plugin]\nid = \"a\"\n[runtime]\nkind = \"wasm\"\npath = \"a.wasm\"\n[capabilities]\nenvironment = [\"LANG\"]",
    );
    let output = project.tenon(&["call", "a__b"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("which is not approved"), "{}", stderr(&output));
    assert_eq!(parsed(&project.tenon(&["plugins", "--json"]))["plugins"][0]["state"], "refused");
}

/// A project with a plugin that requests a variable, and with the good ones.
fn project_with(manifest: &str, component: &str) -> Project {
    let project = Project::new(&format!(
        "plugins = {{ folders = [\"own\"], wasm = [{:?}] }}",
        guests::TEXT_TOOLS
    ));
    project.write("own/p/plugin.toml", format!("plugin.id = \"p\"\n{manifest}"));
    project.write("own/p/p.wasm", std::fs::read(component).unwrap());
    project
}

const REQUESTING: &str = "runtime = { kind = \"wasm\", path = \"p.wasm\" }\n\
                          capabilities.environment = [\"LANG\"]\nlimits.cpu = \"3s\"";

#[test]
fn a_provider_that_nobody_has_approved_is_a_refusal() {
    let project = project_with(REQUESTING, guests::ECHO_PROVIDER);
    for model in ["p/echo", "echo"] {
        for stream in [&["--stream"][..], &[]] {
            let arguments = [&["complete", model, "--prompt", "x"], stream].concat();
            let output = project.tenon(&arguments);
            assert_eq!(output.status.code(), Some(3), "{model}: {}", stderr(&output));
            let said = stderr(&output);
            let (_, said) = said.split_once("error: ").expect("it fails");
            assert!(said.contains("`tenon approve p`"), "{model}: {said}");
        }
    }
    assert_eq!(project.tenon(&["approve", "p", "--yes"]).status.code(), Some(0));
    assert_eq!(stdout(&project.tenon(&["complete", "echo", "--prompt", "x"])), "x\n");
    let output = project.tenon(&["complete", "none", "--prompt", "x"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_guard_that_nobody_has_approved_is_said() {
    let project = project_with(REQUESTING, guests::REDACT);
    let output = project.tenon(&["call", "text_tools__slug", "{\"text\": \"A\"}"]);
    assert_eq!(stdout(&output), "a\n");
    let said = stderr(&output);
    assert!(
        said.contains("plugin \"p\" is not loaded, and its hooks, if it has any, do not"),
        "{said}"
    );
    assert!(said.contains("`tenon approve p`"), "{said}");
    // What it requests stands where programs look for it, too.
    let rows = parsed(&project.tenon(&["doctor", "--json"]));
    let of_p = |row: &&Value| row["plugin"] == "p";
    let row = rows.as_array().unwrap().iter().find(of_p).cloned().unwrap();
    assert_eq!(row["requested"], json!({ "environment": ["LANG"] }));
    assert_eq!(row["granted"], json!({}));
}

#[test]
fn what_a_plugin_may_use_is_shown() {
    let project = project_with(REQUESTING, guests::REDACT);
    let limits = "limits: memory_mib 256, table_elements 100000, instances 64, cpu 3s, wall 30s, ";
    let said = stdout(&project.tenon(&["inspect", "p"]));
    assert!(said.contains(limits), "{said}");
    assert_eq!(parsed(&project.tenon(&["--json", "inspect", "p"]))["limits"]["cpu"], "3s");
    assert_eq!(project.tenon(&["approve", "p", "--yes"]).status.code(), Some(0));
    for of_p in [["doctor", "p"], ["doctor", "--verbose"]] {
        let said = stdout(&project.tenon(&of_p));
        assert!(said.contains("\n  limits: cpu 3s\n"), "{said}");
        assert_eq!(said.matches("limits:").count(), 1, "{said}");
    }
    // Of a script as well, which has no imports to be shown.
    project.write("own/p/p.rhai", "");
    let runtime = REQUESTING.replace("wasm", "rhai");
    project.write("own/p/plugin.toml", format!("plugin.id = \"p\"\n{runtime}"));
    let said = stdout(&project.tenon(&["inspect", "p"]));
    let shown = "capabilities of plugin \"p\" (rhai):\n  environment\n    requested LANG\nlimits: ";
    assert!(said.starts_with(shown), "{said}");
}

#[test]
fn a_plugin_whose_manifest_is_broken_is_not_unknown() {
    let broken = REQUESTING.replace("cpu", "cup");
    let project = project_with(&broken, guests::REDACT);
    let check = |arguments: &[&str], code: i32, expected: &str| {
        let output = project.tenon(arguments);
        let said = format!("{}{}", stdout(&output), stderr(&output)).replace("\n    ", " ");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    };
    let unknown = "plugin \"p\": ./own/p/plugin.toml: line 4: unknown field `cup`";
    check(&["approve", "p"], 2, unknown);
    check(&["revoke", "p"], 2, unknown);
    check(&["inspect", "p"], 2, unknown);
    check(&["doctor"], 1, unknown);
    check(&["doctor", "p"], 1, unknown);
    // Nor is one whose manifest is no TOML, in a folder of that name.
    project.write("own/p/plugin.toml", "[plugin");
    check(&["approve", "p"], 2, "own/p/plugin.toml: line 1: unclosed table");
    let nobody = "there is no plugin \"nobody\"\n  hint: `tenon plugins` lists the plugins";
    for verb in ["inspect", "tools", "doctor", "approve"] {
        check(&[verb, "nobody"], 2, nobody);
    }
    check(&["inspect", "text_tolls"], 2, "hint: did you mean \"text_tools\"?");
}

#[test]
fn a_list_with_nothing_in_it_says_so() {
    let project = Project::new("");
    for (arguments, expected) in [
        (["tools"].as_slice(), "no plugin has tools; `tenon plugins` lists the plugins"),
        (&["plugins"], "there are no plugins; `tenon new` makes one"),
        (&["complete"], "no plugin has models"),
        (&["eval"], "no plugin has strategies"),
        (&["hook"], "no plugin handles hooks"),
        (&["prompts", "list"], "there are no prompts"),
        (&["resources", "list"], "there are no resources"),
        (&["resources", "templates"], "there are no resource templates"),
        (&["history"], "no calls are recorded yet"),
    ] {
        let output = project.tenon(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        // Who reads standard output finds no line that is none of the list.
        assert_eq!(stdout(&output), "", "{arguments:?}");
        assert!(stderr(&output).starts_with(expected), "{arguments:?}: {}", stderr(&output));
        let output = project.tenon(&[&["--json"], arguments].concat());
        assert_eq!(stderr(&output), "", "{arguments:?}");
        parsed(&output);
    }
}

#[test]
fn what_fits_no_call_is_told_what_there_is() {
    let project = project();
    project.tenon(&["call", "text_tools__slug", "{\"text\": \"A\"}"]);
    let output = project.tenon(&["history", "--outcome", "bogus"]);
    let expected = "no recorded call fits; there are 3 with the outcomes ok\n";
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("", expected));
}

#[test]
fn a_result_that_only_programs_can_read_is_printed_for_people_too() {
    let project = Project::new("plugins.scripts = [\"s.rhai\"]");
    project.write(
        "s.rhai",
        "tool(#{ name: \"t\", description: \"d\", schema: #{ type: \"object\" } }, |a| \"text\");\n\
         fn AfterToolCall(context) {\n context.result.content = [];\n \
         context.result.structuredContent = #{ rows: [1, 2] };\n }",
    );
    let output = project.tenon(&["call", "s__t"]);
    let expected = "{\n  \"rows\": [\n    1,\n    2\n  ]\n}\n";
    assert_eq!(stdout(&output), expected, "{}", stderr(&output));
}

#[test]
fn a_policy_for_no_plugin_is_said_and_changes_nothing() {
    let project = Project::new(&format!(
        "plugins.wasm = [{:?}]\nhooks.on_failure = \"stop\"\n[policy.plugins]\n\
         text_tolls.enabled = false\nelsewhere.enabled = false\n\
         [policy]\ndeny = [\"text-tools\"]\n[discovery]\ndisabled = [\"nowhere\"]",
        guests::TEXT_TOOLS
    ));
    let near =
        "[policy.plugins.text_tolls] is for no plugin that is here; did you mean \"text_tools\"?";
    let call = project.tenon(&["call", "text_tools__slug", "{\"text\": \"A\"}"]);
    assert_eq!((stdout(&call).as_str(), call.status.code()), ("a\n", Some(0)));
    assert!(stderr(&call).contains(near), "{}", stderr(&call));
    let denied = "\"text-tools\" in `deny` under [policy] is for no plugin that is here; did you mean \"text_tools\"?";
    assert!(stderr(&call).contains(denied), "{}", stderr(&call));
    let plugins = stdout(&project.tenon(&["plugins"]));
    assert!(plugins.contains("\"nowhere\" in `disabled` under [discovery] is for no"), "{plugins}");
    let far = "[policy.plugins.elsewhere] is for no plugin that is here";
    assert!(!stderr(&call).contains(far), "{}", stderr(&call));
    assert!(stdout(&project.tenon(&["plugins"])).contains(far));
    let doctor = project.tenon(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(0));
    assert!(stdout(&doctor).contains(far), "{}", stdout(&doctor));
    // The user's own is for all projects.
    let config =
        "policy.plugins.elsewhere.enabled = false\npolicy.plugins.text_tolls.enabled = true";
    project.write("tenon/config.toml", config);
    project.write("tenon.toml", format!("plugins.wasm = [{:?}]", guests::TEXT_TOOLS));
    let said = stdout(&project.tenon(&["plugins"]));
    assert!(said.contains(near) && !said.contains(far), "{said}");
}

#[test]
fn a_rule_that_fits_no_tool_is_named_by_the_doctor() {
    let rules = "text_tools__slgu.enabled = false\n\"text_tools__s*\".timeout = \"1s\"\n\
                 \"nobody__*\".enabled = false\nread_resource.timeout = \"1s\"\n\
                 gone__t.enabled = false";
    let config =
        |more: &str| format!("plugins.wasm = [{:?}{more}]\n[tools]\n{rules}", guests::TEXT_TOOLS);
    let project = Project::new(&config(""));
    let notes = |arguments: &[&str], code: i32| {
        let output = project.tenon(arguments);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        let rows = parsed(&output);
        let notes = rows.as_array().unwrap().iter().filter(|row| row["state"] == "note");
        let told = |row: &Value| {
            let detail = row["detail"].as_str().unwrap();
            let (_, rule) = detail.split_once(".toml: ").expect("it names the file");
            format!("{rule} {}", row["remedy"])
        };
        notes.map(told).collect::<Vec<String>>()
    };
    let slip =
        "[tools.\"text_tools__slgu\"] fits no tool \"did you mean \\\"text_tools__slug\\\"?\"";
    let nobody = "[tools.\"nobody__*\"] fits no tool null";
    let gone = "[tools.\"gone__t\"] fits no tool null";
    assert_eq!(notes(&["--json", "doctor"], 0), [slip, gone, nobody]);
    assert!(notes(&["--json", "doctor", "text_tools"], 0).is_empty());
    // What has failed may have the tool.
    project.write("tenon.toml", config(", \"gone.wasm\""));
    assert_eq!(notes(&["--json", "doctor"], 1), [slip, nobody]);
    // A user's rules are for all projects.
    project.write("tenon/config.toml", format!("[tools]\n{rules}"));
    project.write("tenon.toml", format!("plugins.wasm = [{:?}]", guests::TEXT_TOOLS));
    assert_eq!(notes(&["--json", "doctor"], 0), [slip]);
}

#[test]
fn hooks_print_the_outcome_the_context_and_who_was_asked() {
    let project = project();
    let context = r#"{"goal": "go", "key": "sk-abcdefghijklmnop"}"#;
    let mut report =
        parsed(&project.tenon(&["--json", "hook", "before-plan", "--context", context]));
    for handler in report["handlers"].as_array_mut().unwrap() {
        assert!(handler["micros"].take().is_u64());
    }
    insta::assert_json_snapshot!(report);
    let output = project.tenon(&["--json", "hook", "BeforePlan", "--context", r#"{"goal": ""}"#]);
    assert_eq!(output.status.code(), Some(3));
    let vetoed = parsed(&output);
    assert_eq!(vetoed["outcome"], "veto");
    assert_eq!(vetoed["reason"], "no goal");
}

#[test]
fn evaluations_and_completions_are_printed_as_json() {
    let project = project();
    let evaluation = parsed(&project.tenon(&[
        "--json",
        "eval",
        "checks/length",
        "--subject",
        r#"{"output": "12345"}"#,
        "--options",
        r#"{"max": 4}"#,
    ]));
    insta::assert_json_snapshot!(evaluation);
    let completion =
        parsed(&project.tenon(&["--json", "complete", "echo_provider/echo", "--prompt", "a b"]));
    insta::assert_json_snapshot!(completion);
    let stream =
        project.tenon(&["--json", "complete", "echo_provider/echo", "--prompt", "a b", "--stream"]);
    insta::assert_snapshot!(stdout(&stream));
}

#[test]
fn an_answer_of_a_model_that_is_cut_says_where_the_whole_is() {
    let config = format!("plugins.wasm = [{:?}]\nlimits.output_kib = 1", guests::ECHO_PROVIDER);
    let project = Project::new(&config);
    let prompt = ["word"; 1000].join(" ");
    let output = project.tenon(&["complete", "echo", "--prompt", &prompt]);
    let said = stderr(&output);
    assert!(stdout(&output).len() < 1100, "{said}");
    let (_, read) = said.split_once("; `tenon resources read ").expect(&said);
    let (uri, _) = read.split_once('`').expect(&said);
    assert_eq!(stdout(&project.tenon(&["resources", "read", uri])).trim_end(), prompt);
}

#[test]
fn a_model_that_is_misspelt_is_wrong_input() {
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::ECHO_PROVIDER));
    for (model, meant) in [("ecko", "echo"), ("echo_provider/ecko", "echo_provider/echo")] {
        for more in [&[][..], &["--stream"]] {
            let output = project.tenon(&[&["complete", model, "--prompt", "a"], more].concat());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{model}: {said}");
            let expected =
                format!("there is no model \"{model}\"\n  hint: did you mean \"{meant}\"?");
            assert!(said.contains(&expected), "{said}");
        }
    }
}

#[test]
fn a_hint_names_the_configuration_that_the_command_was_told() {
    let project = Project::new("");
    let manifest = "plugin.id = \"a\"\nruntime = { kind = \"rhai\", path = \"s.rhai\" }\n\
                    capabilities.environment = [\"LANG\"]";
    project.write("the project/.tenon/plugins/a/plugin.toml", manifest);
    project.write(
        "the project/.tenon/plugins/a/s.rhai",
        r#"tool(#{ name: "t", description: "d" }, |a| "text");"#,
    );
    project.write("other.toml", "plugins.folders = [\"the project/.tenon/plugins\"]");
    for (option, value, shown) in [
        ("--project", "the project", "--project 'the project'"),
        ("--config", "other.toml", "--config other.toml"),
    ] {
        let run = |more: &[&str]| project.tenon(&[more, &[option, value]].concat());
        let approve = format!("`tenon {shown} approve a`");
        let called = run(&["call", "a__t"]);
        assert_eq!(called.status.code(), Some(3));
        assert!(stderr(&called).contains(&approve), "{}", stderr(&called));
        let form = parsed(&run(&["--json", "call", "a__t"]));
        assert!(form["error"]["hint"].as_str().unwrap().contains(&approve), "{form}");
        // The log, and verbs that print remedies themselves.
        let tools = stderr(&run(&["tools"]));
        assert!(tools.contains(&approve), "{tools}");
        for verb in ["plugins", "doctor"] {
            let said = stdout(&run(&["--json", verb]));
            assert!(said.contains(&approve), "{verb}: {said}");
        }
        let doctor = stdout(&run(&["doctor"])).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(doctor.contains(&approve), "{doctor}");
        assert!(doctor.contains(&format!("`tenon {shown} doctor PLUGIN`")), "{doctor}");
        // What is typed does what it says.
        let typed = approve.trim_matches('`').replacen("tenon", "\"$1\"", 1) + " --yes";
        let approved = project.tenon_within(&typed, &["--version"]);
        assert_eq!(approved.status.code(), Some(0), "{typed}: {}", stderr(&approved));
        assert_eq!(stdout(&run(&["call", "a__t"])), "text\n");
        assert_eq!(run(&["revoke", "a"]).status.code(), Some(0));
    }
}

#[test]
fn what_is_no_file_or_folder_is_wrong_input() {
    let project = Project::new("plugins = { wasm = [\"a.wasm\"], scripts = [\"b.rhai\"] }");
    let pipes = ["a.wasm", "b.rhai"].map(|name| project.path(name));
    let made = std::process::Command::new("mkfifo").args(pipes).status();
    assert!(made.is_ok_and(|status| status.success()));
    let doctor = project.tenon(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    assert_eq!(stdout(&doctor).matches("it is not a regular file").count(), 2);
    let output = project.tenon(&["--project", "nowhere", "tools"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--project nowhere is not a folder"), "{}", stderr(&output));
}

#[test]
fn a_bare_name_of_a_configuration_means_this_folder() {
    let project = Project::new("");
    project.write(
        "other.toml",
        format!("plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?} }}]"),
    );
    let output = project.tenon(&["--config", "other.toml", "call", "s__echo", "{\"text\": \"x\"}"]);
    assert_eq!(stdout(&output), "x\n", "{}", stderr(&output));
}

#[test]
fn doctor_finds_what_never_became_a_plugin() {
    let project = Project::new("plugins.wasm = [\"${NOT_SET}/a.wasm\"]");
    let output = project.tenon(&["doctor"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("NOT_SET"), "{}", stdout(&output));
}

#[test]
fn a_tool_is_found_though_its_name_looks_like_another_servers() {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"a\", command = {RUDE_SERVER:?}, args = [\"deep\"] }}, {{ name = \"a__b\", command = {DEMO_SERVER:?} }}]"
    ));
    let output = project.tenon(&["call", "a__b__c", "{\"text\": \"x\"}"]);
    assert_eq!(stdout(&output), "x\n", "{}", stderr(&output));
}

#[test]
fn an_endless_answer_ends_when_nobody_reads_it_or_its_time_is_up() {
    use std::io::Read;
    use std::process::Stdio;
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::MISBEHAVE));
    let endless = ["complete", "misbehave/endless", "--prompt", "x", "--stream"];
    let mut child = project.command(&endless).stdout(Stdio::piped()).spawn().expect("tenon starts");
    let mut beginning = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut beginning).expect("it has begun");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));

    let mut hurried = project.command(&endless);
    let output = hurried.args(["--timeout", "200ms"]).output().expect("tenon starts");
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
}

#[test]
fn who_names_a_plugin_whose_tools_are_disabled_is_told_so() {
    let project = Project::new(&format!(
        "plugins.wasm = [{:?}]\ntools.\"text_tools__*\".enabled = false",
        guests::TEXT_TOOLS
    ));
    let output = project.tenon(&["tools", "text_tools"]);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(0), ""));
    let said = stderr(&output);
    assert!(said.contains("they have none, or all are held or disabled"), "{said}");
}

#[test]
fn a_guard_that_is_missing_is_said_and_can_stop_what_it_guards() {
    let check = |hooks: &str, code: i32| {
        let project = Project::new(&format!(
            "plugins = {{ wasm = [{:?}], scripts = [\"guard.rhai\"] }}\n{hooks}",
            guests::TEXT_TOOLS
        ));
        project.write("guard.rhai", "fn BeforeToolCall(context) {");
        let output = project.tenon(&["call", "text_tools__slug", "{\"text\": \"A\"}"]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains("plugin \"guard\" is not loaded"), "{}", stderr(&output));
        // To look at what there is fires no hook.
        let listed = project.tenon(&["tools"]);
        assert!(stdout(&listed).contains("text_tools__slug"), "{}", stderr(&listed));
        assert!(stderr(&listed).contains("plugin \"guard\" is not loaded"), "{}", stderr(&listed));
    };
    check("", 0);
    check("hooks.on_failure = \"stop\"", 2);
}

#[test]
fn a_plugin_that_traps_when_it_registers_has_trapped() {
    let project = Project::new(&format!(
        "plugins.wasm = [{:?}]\nsettings.misbehave.register = \"trap\"",
        guests::MISBEHAVE
    ));
    let output = project.tenon(&["call", "misbehave__echo", "{\"text\": \"x\"}"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
}

#[test]
fn inspect_reads_a_component_without_running_it() {
    let project = Project::new("");
    let mut inspected = parsed(&project.tenon(&["--json", "inspect", guests::REDACT]));
    assert!(inspected["metadata"]["size"].take().is_u64());
    assert_eq!(inspected["metadata"]["sha256"].take().as_str().map(str::len), Some(64));
    assert!(inspected["metadata"]["producers"]["processed-by"].take().is_object());
    insta::assert_json_snapshot!(inspected);
    let said = stdout(&project.tenon(&["inspect", guests::REDACT]));
    insta::with_settings!({ filters => vec![
        (r"size: \d+", "size: [size]"),
        (r"sha256: [0-9a-f]{64}", "sha256: [sha256]"),
        (r"producers: .*", "producers: [producers]"),
    ] }, {
        insta::assert_snapshot!(said);
    });
}

#[test]
fn inspect_says_on_which_instance_calls_run_or_why_that_is_not_known() {
    let entry = |instance: &str| {
        format!("plugins.wasm = [{{ path = {:?}, instance = {instance:?} }}]", guests::TEXT_TOOLS)
    };
    let project = Project::new(&entry("stateless"));
    let said = stdout(&project.tenon(&["inspect", "text_tools"]));
    assert!(said.contains("\ninstance: stateless\n"), "{said}");
    let form = parsed(&project.tenon(&["--json", "inspect", "text_tools"]));
    assert_eq!(form["instance"], "stateless");
    project.write("tenon.toml", entry("bogus"));
    let said = stderr(&project.tenon(&["inspect", "text_tools"]));
    assert!(said.contains("unknown variant `bogus`"), "{said}");
}

#[test]
fn inspect_shows_a_component_as_wit() {
    let project = Project::new("plugins.scripts = [\"s.rhai\"]");
    project.write("s.rhai", "");
    let wit = stdout(&project.tenon(&["inspect", "--wit", guests::REDACT]));
    let mut resolve = wit_parser::Resolve::default();
    resolve.push_source("redact.wit", &wit).expect("it is WIT");
    assert!(wit.contains("export tenon:plugin/hooks@0.2.0;"), "{wit}");
    let as_json = parsed(&project.tenon(&["--json", "inspect", "--wit", guests::REDACT]));
    assert_eq!(as_json["wit"].as_str().map(str::trim_end), Some(wit.trim_end()));
    let output = project.tenon(&["inspect", "--wit", "s"]);
    assert!(stderr(&output).contains("plugin \"s\" is not a component"), "{}", stderr(&output));
}

#[test]
fn doctor_says_how_everything_fares() {
    let project = Project::new(&format!(
        "[plugins]\nwasm = [{:?}, \"core.wasm\"]\nscripts = [\"hooks.rhai\"]\nmcp = [\
         {{ name = \"demo\", command = {DEMO_SERVER:?} }}, {{ name = \"gone\", command = {RUDE_SERVER:?}, args = [\"dies\"] }}]",
        guests::TEXT_TOOLS
    ));
    project.write("core.wasm", b"\0asm\x01\0\0\0");
    project.write("hooks.rhai", "fn BeforePlan(context) {}");
    let output = project.tenon(&["doctor"]);
    assert_eq!(output.status.code(), Some(1));
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(&regex_of(&project.path("").display().to_string()), "");
    settings.bind(|| insta::assert_snapshot!(stdout(&output)));
    let two = project.tenon(&["doctor", "text_tools", "gone"]);
    assert_eq!(two.status.code(), Some(1));
    settings.bind(|| insta::assert_snapshot!(stdout(&two)));
    assert_eq!(project.tenon(&["doctor", "hooks"]).status.code(), Some(0));
    let rows = parsed(&project.tenon(&["doctor", "--json"]));
    let keys: Vec<_> = rows[0].as_object().unwrap().keys().cloned().collect();
    let expected = [
        "plugin",
        "kind",
        "state",
        "version",
        "tools",
        "hooks",
        "evals",
        "providers",
        "resources",
        "resourceTemplates",
        "prompts",
        "capabilities",
        "requested",
        "granted",
        "limits",
        "needs",
        "server",
        "detail",
        "remedy",
    ];
    let mut expected = expected.map(String::from).to_vec();
    let mut keys = keys;
    keys.sort();
    expected.sort();
    assert_eq!(keys, expected);
}

/// A project with a component and a script that have resources and prompts.
fn with_contributions() -> Project {
    let project = Project::new("plugins.folders = [\"everything\", \"notes\"]");
    let manifest = crate::everything::manifest("kind = \"wasm\", path = \"p.wasm\"");
    project.write("everything/plugin.toml", manifest);
    project.write("everything/p.wasm", std::fs::read(guests::EVERYTHING_RUST).unwrap());
    project.write(
        "notes/plugin.toml",
        "plugin.id = \"notes\"\nruntime = { kind = \"rhai\", path = \"notes.rhai\" }",
    );
    project.write(
        "notes/notes.rhai",
        r#"resource(#{ uri: "notes://{name}", name: "note", list: || throw "no notes today",
                     complete: #{ name: |typed| { let all = []; for i in 1..=150 { all.push(typed + i); } all } } },
                    |v| v.name);
           prompt(#{ name: "sum", description: "d", arguments: [
               #{ name: "note", complete: ["one", "once", "two"] }, "length" ] }, |a| "Sum up.");"#,
    );
    let approved = project.tenon(&["approve", "--all", "--yes"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    project
}

#[test]
fn doctor_names_resources_and_prompts() {
    let project = with_contributions();
    let mut said = stdout(&project.tenon(&["doctor"]));
    said += &stdout(&project.tenon(&["doctor", "--verbose"]));
    let rows = parsed(&project.tenon(&["--json", "doctor"]));
    for row in rows.as_array().unwrap() {
        let counts = ["plugin", "tools", "resources", "resourceTemplates", "prompts"];
        let counts = counts.map(|count| format!("{count}: {}", row[count]));
        said += &format!("{}\n", counts.join(", "));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn arguments_are_completed() {
    let project = with_contributions();
    let check = |arguments: &[&str], code: i32| {
        let output = project.tenon(arguments);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        format!("$ {}\n{}{}", arguments.join(" "), stdout(&output), stderr(&output))
    };
    let of_prompt = ["prompts", "suggest", "notes", "sum", "note"];
    let mut said = check(&of_prompt, 0);
    said += &check(&[of_prompt.as_slice(), &["on", "--with", "length=short"]].concat(), 0);
    said += &check(&[&["--json"], of_prompt.as_slice(), &["tw"]].concat(), 0);
    said += &check(&["prompts", "suggest", "notes", "sum", "length", "x"], 0);
    said += &check(&["prompts", "suggest", "notes", "sun", "note"], 2);
    said += &check(&["prompts", "suggest", "notes", "sum", "lenght"], 2);
    said += &check(&["prompts", "suggest", "notes", "sum", "note", "--with", "length"], 2);
    let component = ["prompts", "suggest", "everything", "test_prompt_with_arguments", "arg1"];
    said += &check(&[component.as_slice(), &["par"]].concat(), 0);
    let template = "test://template/{id}/data";
    said += &check(&["resources", "suggest", "everything", template, "id", "1"], 0);
    said += &check(&["resources", "suggest", "notes", "notes://{nam}", "name", "1"], 2);
    said += &check(&["resources", "suggest", "notes", "x:y", "name"], 2);
    insta::assert_snapshot!(said);

    let many = project.tenon(&["resources", "suggest", "notes", "notes://{name}", "name", "n"]);
    assert_eq!(stdout(&many).lines().count(), 100);
    assert!(stdout(&many).starts_with("n1\nn2\n"), "{}", stdout(&many));
    assert_eq!(stderr(&many), "these are 100 of 150 values\n");
}

fn regex_of(text: &str) -> String {
    text.replace('.', "\\.")
}

#[tokio::test]
async fn no_child_is_left_when_tenon_is_killed() {
    let project = Project::new("");
    let mark = format!("TENON_TEST_{}", project.path("").display());
    let diary = project.path("diary");
    let server = |name: &str, program: &str, habit: &str| {
        format!(
            "{{ name = {name:?}, command = {program:?}, args = [{habit:?}], \
             env = {{ MARK = {mark:?}, DIARY = {diary:?} }} }}"
        )
    };
    project.write(
        "tenon.toml",
        format!(
            "plugins.mcp = [{}, {}, {}]",
            server("demo", DEMO_SERVER, ""),
            server("stubborn", RUDE_SERVER, "stubborn"),
            server("family", RUDE_SERVER, "family")
        ),
    );
    for (tool, expected) in [("demo__hang", 1), ("stubborn__echo", 1), ("family__rude", 2)] {
        let mut tenon = project.command(&["call", tool]).spawn().expect("tenon starts");
        eventually("the server runs", || processes_with(&mark).len() == expected).await;
        if tool == "stubborn__echo" {
            // It has answered, and does not end: tenon waits for it, and is killed meanwhile.
            eventually("the server is asked to end", || diary.exists()).await;
            assert!(tenon.try_wait().expect("tenon can be asked").is_none());
        }
        tenon.kill().expect("SIGKILL is sent");
        tenon.wait().expect("tenon ends");
        eventually("no child is left", || processes_with(&mark).is_empty()).await;
    }
    assert_eq!(json!(processes_with(&mark)), json!([]));
}

/// A process that has begun a session of its own is in no group that could be killed.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_daemon_of_a_confined_server_is_left_when_tenon_is_killed() {
    let project = Project::new("");
    let mark = format!("TENON_TEST_{}", project.path("").display());
    let entry = format!(
        "[[plugins.mcp]]\nname = \"s\"\ncommand = {REACHING_SERVER:?}\nenv = {{ MARK = {mark:?} }}\ncapabilities = {{}}"
    );
    project.write("tenon.toml", entry);
    let words = json!({ "words": ["/bin/sh", "-c", "setsid sleep 600 & wait"] }).to_string();
    let mut tenon = project.command(&["call", "s__run", &words]).spawn().expect("tenon starts");
    // The server, the shell and the daemon.
    eventually("the daemon runs", || processes_with(&mark).len() == 3).await;
    tenon.kill().expect("SIGKILL is sent");
    tenon.wait().expect("tenon ends");
    eventually("no process is left", || processes_with(&mark).is_empty()).await;
}

#[tokio::test]
async fn whatever_a_server_does_its_call_ends_and_says_why() {
    let rows = [
        ("dies", "echo", 1, "cannot find my configuration"),
        ("dies-calling", "rude", 1, "exited with code 9"),
        ("closes", "rude", 1, "closed its output"),
        ("heir", "rude", 1, "exited with code 11"),
        ("noisy", "echo", 0, "x"),
        ("both", "rude", 1, "both a result and an error"),
    ];
    let project = Project::new("");
    let mark = format!("TENON_TEST_{}", project.path("").display());
    let entries = rows.map(|(habit, ..)| {
        format!(
            "{{ name = {habit:?}, command = {RUDE_SERVER:?}, args = [{habit:?}], env = {{ MARK = {mark:?} }} }}"
        )
    });
    project.write("tenon.toml", format!("plugins.mcp = [{}]", entries.join(", ")));
    for (habit, tool, code, said) in rows {
        let output = project.tenon(&["call", &format!("{habit}__{tool}"), r#"{"text": "x"}"#]);
        let all = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{habit}: {all}");
        assert!(all.contains(said), "{habit}: {all}");
    }
    eventually("no process is left", || processes_with(&mark).is_empty()).await;
}

#[test]
fn progress_is_shown_on_a_terminal_and_gone_when_the_call_is_over() {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"s\", command = {RUDE_SERVER:?}, args = [\"steps\"] }}]"
    ));
    let call = ["call", "s__rude"];
    let (said, printed) = on_terminal_but_for_output(&project, &call);
    let (shown, after) = said.rsplit_once("\u{1b}[K\u{1b}[?7h").expect("something is shown");
    let last = "[====================] 100%  2/2  all\\u{1b}[2J\\n";
    assert!(shown.ends_with(last), "{said:?}");
    assert_eq!((after, printed.as_str()), ("\u{1b}[K", "rude\n"));
    let json = ["--json", "call", "s__rude"];
    let (said, _) = on_terminal_but_for_output(&project, &json);
    assert_eq!(said, "");
    let output = project.tenon(&call);
    assert_eq!((stderr(&output).as_str(), stdout(&output).as_str()), ("", "rude\n"));
}

#[test]
fn doctor_fits_eighty_columns() {
    let project = Project::new("");
    let long = "a-folder-with-a-long-name/".repeat(5);
    project.write(
        "tenon.toml",
        format!("plugins = {{ wasm = [\"{long}x.wasm\", \"${{NOT_SET}}/y.wasm\"] }}"),
    );
    let said = stdout(&project.tenon(&["doctor"]));
    assert!(said.contains("fix: check the path"), "{said}");
    let widest = said.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|width| width <= 80), "{said}");
}

#[test]
fn what_was_called_is_in_the_history() {
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::TEXT_TOOLS));
    assert_eq!(stdout(&project.tenon(&["history"])), "");
    let slug = ["call", "text_tools__slug", "{\"text\": \"A b\"}", "--session", "s-1"];
    let by_agent = [&slug[..], &["--agent", "planner"]].concat();
    assert_eq!(stdout(&project.tenon(&by_agent)), "a-b\n");
    assert_eq!(project.tenon(&["call", "text_tools__slug", "{}"]).status.code(), Some(2));
    let said = stdout(&project.tenon(&["history"]));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].ends_with("{\"text\":\"A b\"}") && lines[0].contains("  ok  "), "{said}");
    assert!(lines[0].contains("  text_tools__slug (agent planner, session s-1)  ok"), "{said}");
    assert!(lines[1].contains("  text_tools__slug  invalid-input  "), "{said}");
    let failed = parsed(&project.tenon(&["--json", "history", "--failed"]));
    assert_eq!(failed.as_array().map(Vec::len), Some(1), "{failed}");
    assert_eq!(failed[0]["tool"], "text_tools__slug");
    let of_session = parsed(&project.tenon(&["--json", "history", "--session", "s-1"]));
    assert_eq!(of_session[0]["arguments"], json!({ "text": "A b" }));
    assert!(of_session[0]["usage"]["cpuMicros"].is_u64());
}

#[test]
fn the_history_shows_who_called_and_what_hooks_decided() {
    let project = Project::new(
        "plugins.scripts = [\"s.rhai\", { path = \"c.rhai\", capabilities = { tools = [\"s__*\"] } }]",
    );
    let tool = |name: &str, body: &str| {
        format!("tool(#{{ name: \"{name}\", description: \"d\" }}, |a| {body});")
    };
    let hook = r#"fn BeforeToolCall(context) {
        switch context.arguments.say {
            "stop" => veto("not that"),
            "change" => { context.arguments.say = "else"; replace(context) },
            _ => (),
        }
    }"#;
    project.write("s.rhai", format!("{}\n{hook}", tool("t", "a.say")));
    project.write("c.rhai", tool("ask", "call_tool(\"s__t\", a)"));
    assert_eq!(project.tenon(&["approve", "c", "--yes"]).status.code(), Some(0));
    for (tool, say, code) in
        [("s__t", "go", 0), ("s__t", "stop", 3), ("s__t", "change", 0), ("c__ask", "nested", 0)]
    {
        let output = project.tenon(&["call", tool, &json!({ "say": say }).to_string()]);
        assert_eq!(output.status.code(), Some(code), "{say}: {}", stderr(&output));
    }
    let rows = |more: &[&str]| {
        let said = stdout(&project.tenon(&[&["history"], more].concat()));
        let row = |line: &str| line.split("  ").skip(1).take(2).collect::<Vec<_>>().join(": ");
        said.lines().map(row).collect::<Vec<String>>()
    };
    let all = rows(&[]);
    let hooks: Vec<&String> = all.iter().filter(|row| row.starts_with("before-")).collect();
    let of_hook = |outcome: &str| format!("before-tool-call in s: {outcome}");
    assert_eq!(hooks[..3], [&of_hook("ok"), &of_hook("veto"), &of_hook("replace")], "{all:?}");
    assert!(all.contains(&"s__t (by c): ok".to_string()), "{all:?}");
    assert_eq!(rows(&["--failed"]), ["s__t: vetoed"]);
}

#[test]
fn a_folder_beside_that_of_another_plugin_is_not_in_it() {
    let project = Project::new("");
    let script = r#"tool(#{ name: "t", description: "d", schema: #{ type: "object" } }, |a| 1);"#;
    for id in ["one", "two"] {
        let manifest =
            format!("[plugin]\nid = {id:?}\n[runtime]\nkind = \"rhai\"\npath = \"s.rhai\"");
        project.write(&format!("{id}/plugin.toml"), manifest);
        project.write(&format!("{id}/s.rhai"), script);
    }
    project.write("one/tenon.toml", "plugins.folders = [\".\", \"../two\"]");
    let called = project.tenon(&["--project", "one", "call", "two__t"]);
    assert_eq!(stdout(&called), "1\n", "{}", stderr(&called));
}

#[test]
fn what_was_cut_is_read_as_a_resource() {
    let project =
        Project::new(&format!("plugins.wasm = [{:?}]\nlimits.output_kib = 1", guests::MISBEHAVE));
    let long = "word ".repeat(1_000);
    let arguments = json!({ "text": long }).to_string();
    let said = stdout(&project.tenon(&["call", "misbehave__echo", &arguments]));
    assert!(said.len() < 1_500, "{said}");
    let start = said.find("tenon://results/").expect("it says where the whole is");
    let uri = &said[start..said[start..].find(']').map_or(said.len(), |end| start + end)];
    assert_eq!(stdout(&project.tenon(&["resources", "read", uri])), format!("{long}\n"));
    let beginning = stdout(&project.tenon(&["resources", "read", uri, "--max-tokens", "5"]));
    let expected = format!("word word word word \n[cut: the first 20 of {} bytes]\n", long.len());
    assert_eq!(beginning, expected);
    let gone = project.tenon(&["resources", "read", "tenon://results/nothing"]);
    assert_eq!(gone.status.code(), Some(2), "{}", stderr(&gone));
    let expected = "there is no result tenon://results/nothing; the oldest make room for others";
    assert!(stderr(&gone).contains(expected), "{}", stderr(&gone));
    let nobody = project.tenon(&["resources", "list", "nobody"]);
    assert_eq!(nobody.status.code(), Some(2), "{}", stderr(&nobody));
    let none = project.tenon(&["resources", "list", "misbehave"]);
    assert_eq!(none.status.code(), Some(1), "{}", stderr(&none));
    let why = "error: plugin \"misbehave\": it does not provide resources";
    assert!(stderr(&none).contains(why), "{}", stderr(&none));
}

#[cfg(unix)]
#[test]
fn a_configuration_that_cannot_be_looked_at_is_not_taken_for_none() {
    let project = Project::new("");
    std::fs::remove_file(project.path("tenon.toml")).unwrap();
    assert_eq!(project.tenon(&["plugins"]).status.code(), Some(0));
    std::os::unix::fs::symlink("nowhere", project.path("tenon.toml")).unwrap();
    let output = project.tenon(&["plugins"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("tenon.toml cannot be read"), "{}", stderr(&output));
}

#[test]
fn what_the_user_says_holds_where_the_project_says_nothing() {
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::MISBEHAVE));
    project.write("tenon/config.toml", "limits.wall = \"300ms\"\nhistory.enabled = false");
    let output = project.tenon(&["call", "misbehave__hang"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("within 300ms"), "{}", stderr(&output));
    assert_eq!(stdout(&project.tenon(&["history"])), "");
}

#[test]
fn what_may_be_a_guard_and_cannot_be_read_stops_what_it_may_guard() {
    let check = |entry: &str, code: i32| {
        let project = Project::new(&format!(
            "plugins = {{ wasm = [{:?}], {entry} }}\nhooks.on_failure = \"stop\"\npolicy.deny = [\"other\"]",
            guests::TEXT_TOOLS
        ));
        project.write("guards/guard/plugin.toml", "plugin.id =");
        project.write("other.rhai", "fn BeforePlan(context) {}");
        let output = project.tenon(&["call", "text_tools__slug", "{\"text\": \"A\"}"]);
        assert_eq!(output.status.code(), Some(code), "{entry}: {}", stderr(&output));
    };
    check("folders = [\"guards\"]", 2);
    check("folders = [\"missing\"]", 2);
    check("scripts = [\"${NOPE}/guard.rhai\"]", 2);
    // What is denied is not missing.
    check("scripts = [\"other.rhai\"]", 0);
}

#[test]
fn errors_are_json_for_who_asked_for_it() {
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::TEXT_TOOLS));
    let error = |arguments: &[&str]| parsed(&project.tenon(arguments))["error"].clone();
    let missing = error(&["--json", "call", "text_tools__slgu"]);
    assert_eq!(missing["code"], "not-found");
    assert_eq!(missing["hint"], "did you mean \"text_tools__slug\"?");
    let wrong = error(&["--json", "call", "text_tools__slug", "{"]);
    assert_eq!(wrong["code"], "invalid-input");
}

#[cfg(unix)]
#[test]
fn an_interrupted_call_is_recorded() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::MISBEHAVE));
    let mut command = project.command(&["call", "misbehave__flood_log"]);
    let command = command.env("TENON_LOG", "info").stderr(Stdio::piped());
    let mut tenon = command.spawn().expect("tenon starts");
    let mut lines = BufReader::new(tenon.stderr.take().expect("it is piped")).lines();
    // It is in the middle of the call.
    lines.next().expect("it says something").expect("it is text");
    let told = |line: &String| line == "error: interrupted";
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).filter(told).count());
    assert_eq!(interrupted(tenon), Some(130));
    // What was dropped of the plugin's messages may be counted before or after it.
    assert_eq!(reader.join().unwrap(), 1);
    let history = parsed(&project.tenon(&["--json", "history"]));
    assert_eq!(history[0]["outcome"], "abandoned", "{history}");
}

#[cfg(unix)]
#[tokio::test]
async fn an_interrupted_command_takes_its_leave_of_servers() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let (project, noted) = with_diary("");
    let call = project.command(&["call", "s__echo"]).spawn().expect("tenon starts");
    eventually("the server has the call", || noted().contains("tools/call\n")).await;
    assert_eq!(interrupted(call), Some(130));
    assert!(noted().ends_with("notifications/cancelled\nend\n"), "{}", noted());

    // One that is known already would not be started.
    let mut watch = project.command(&["watch"]);
    let watch = watch.env("XDG_CACHE_HOME", project.path("cache")).stdout(Stdio::piped());
    let mut watch = watch.spawn().unwrap();
    // It ends by itself when its output is closed.
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "watching; 1 plugins are ready");
    assert!(!noted().ends_with("end\n"), "{}", noted());
    assert_eq!(interrupted(watch), Some(0));
    drop(lines);
    assert!(noted().ends_with("end\n"), "{}", noted());
}

/// One that is there while another is waited for is not dropped with it.
#[cfg(unix)]
#[tokio::test]
async fn an_interrupted_start_takes_its_leave_of_servers() {
    let (project, noted) = with_diary(&format!(
        "{{ name = \"t\", command = {RUDE_SERVER:?}, args = [\"silent\"], startup_timeout = \"60s\" }}"
    ));
    let mut doctor = project.command(&["doctor"]);
    let doctor = doctor.env("XDG_CACHE_HOME", project.path("cache")).spawn().unwrap();
    // What it has is kept once it is there.
    let kept = project.path("cache/tenon/servers");
    let kept = || std::fs::read_dir(&kept).is_ok_and(|kept| kept.count() > 0);
    eventually("the first is there", kept).await;
    assert_eq!(interrupted(doctor), Some(130));
    assert!(noted().ends_with("end\n"), "{}", noted());
}

#[test]
fn doctor_says_the_same_once_and_counts_what_could_not_be_read() {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"s\", command = {RUDE_SERVER:?}, args = [\"spiral\"] }}, \
         {{ name = \"t\", command = {RUDE_SERVER:?}, env = {{ X = \"${{NOPE}}\" }} }}]"
    ));
    let output = project.tenon(&["doctor"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stdout(&output);
    assert!(said.lines().count() < 24, "{said}");
    assert!(said.contains(" times)") && said.contains("tools/list does not end"), "{said}");
    assert!(said.contains("1 of 2 plugins are ready"), "{said}");
    let spiral = stdout(&project.tenon(&["doctor", "s"]));
    assert!(spiral.contains("(999 times)\n  tools: s__echo\n  server: ready, speaks "), "{spiral}");
    assert!(spiral.ends_with("1 of them unconfined, though not all is well\n"), "{spiral}");
}

/// It is no server that has failed, but somebody who calls it wants to know why it is not there.
#[test]
fn an_entry_that_cannot_be_understood_is_named_where_something_is_asked_of_it() {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"s\", command = {RUDE_SERVER:?}, env = {{ X = \"${{NOPE}}\" }} }}]"
    ));
    let why = "the variable NOPE is not set; set it, or write ${NOPE:-default}";
    for asked in
        [["call", "s__echo"].as_slice(), &["resources", "list", "s"], &["prompts", "list", "s"]]
    {
        let output = project.tenon(asked);
        assert_eq!(output.status.code(), Some(2), "{asked:?}");
        let expected = format!("error: plugin \"s\" is not loaded: ./tenon.toml: {why}\n");
        assert_eq!(stderr(&output), expected, "{asked:?}");
    }
    let doctor = project.tenon(&["doctor", "s"]);
    assert_eq!(doctor.status.code(), Some(1));
    let said = stdout(&doctor).replace("\n    ", " ");
    assert!(said.contains(why) && said.ends_with("\n0 of 1 plugins are ready\n"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_watch_that_nobody_reads_ends() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let project = Project::new("");
    let mut watch = project.command(&["watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(watch.stdout.take().unwrap()).lines();
    output.next().expect("it says that it watches").unwrap();
    drop(output);
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}

/// A project with a server that keeps a diary, and with another one, and what it has noted.
#[cfg(unix)]
fn with_diary(other: &str) -> (Project, impl Fn() -> String + use<>) {
    let project = Project::new("");
    let diary = project.path("diary");
    let entries = format!(
        "plugins.mcp = [{{ name = \"s\", command = {RUDE_SERVER:?}, args = [\"diary\", {diary:?}] }}, \
         {other}]"
    );
    project.write("tenon.toml", entries);
    (project, move || std::fs::read_to_string(&diary).unwrap_or_default())
}

/// The exit code of a command that somebody presses Ctrl-C on.
#[cfg(unix)]
fn interrupted(mut command: std::process::Child) -> Option<i32> {
    use rustix::process::{Pid, Signal, kill_process};
    let process = Pid::from_raw(i32::try_from(command.id()).unwrap()).unwrap();
    kill_process(process, Signal::INT).expect("it is there");
    command.wait().expect("it ends").code()
}

#[test]
fn a_record_that_was_changed_is_found() {
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::TEXT_TOOLS));
    let verify = |code| {
        let output = project.tenon(&["--json", "history", "verify"]);
        assert_eq!(output.status.code(), Some(code));
        parsed(&output)
    };
    assert_eq!(verify(0)["logs"][0]["records"], 0);
    for _ in 0..3 {
        project.tenon(&["call", "text_tools__slug", "{\"text\": \"A b\"}"]);
    }
    let whole = verify(0)["logs"][0].clone();
    assert_eq!((&whole["isWhole"], &whole["records"]), (&json!(true), &json!(3)));
    assert_eq!(verify(0)["logs"][0], whole);
    let said = stdout(&project.tenon(&["history", "verify"]));
    assert!(said.starts_with("calls: 3 records are as they were written; the last is"), "{said}");
    // The second call was of something else, somebody says.
    let file = project.path("state/tenon").join(STATE_FILE);
    let mut bytes = std::fs::read(&file).unwrap();
    let places: Vec<usize> =
        bytes.windows(5).enumerate().filter(|(_, at)| at == b"\"A b\"").map(|(at, _)| at).collect();
    assert_eq!(places.len(), 3, "each record is there once");
    bytes[places[1] + 1] = b'B';
    std::fs::write(&file, bytes).unwrap();
    let broken = verify(1);
    assert_eq!((&broken["isWhole"], &broken["logs"][0]["brokenAt"]), (&json!(false), &json!(2)));
}

#[cfg(unix)]
#[test]
fn odd_files_in_the_state_folder_hold_nothing_up() {
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::TEXT_TOOLS));
    let state = project.path("state/tenon");
    let slug = ["call", "text_tools__slug", "{\"text\": \"A b\"}"];
    assert_eq!(stdout(&project.tenon(&slug)), "a-b\n");
    for name in [STATE_FILE, "history.jsonl"] {
        // There are records of a former version only where somebody has left them.
        let _ = std::fs::remove_file(state.join(name));
        let made = std::process::Command::new("mkfifo").arg(state.join(name)).status();
        assert!(made.is_ok_and(|status| status.success()));
        let output = project.tenon(&slug);
        assert_eq!(stdout(&output), "a-b\n");
        assert!(stderr(&output).contains("calls are not recorded"), "{}", stderr(&output));
        assert_ne!(project.tenon(&["history"]).status.code(), Some(0));
        std::fs::remove_file(state.join(name)).unwrap();
        project.tenon(&slug);
    }
}

#[test]
fn a_database_that_is_away_holds_nothing_up_that_needs_none() {
    let ask = "tools.text_tools__slug.approve = \"ask\"";
    let wasm = format!("plugins.wasm = [{:?}]\n", guests::TEXT_TOOLS);
    let project = Project::new(&wasm);
    // Nobody listens there.
    let socket = project.path("nobody").display().to_string().replace('/', "%2F");
    let store = format!("store.url = \"postgresql://tenon@{socket}/tenon\"\n");
    let slug = ["call", "text_tools__slug", "{\"text\": \"A b\"}"];
    project.write("tenon/config.toml", &store);
    let output = project.tenon(&slug);
    assert_eq!(stdout(&output), "a-b\n", "{}", stderr(&output));
    assert!(stderr(&output).contains("calls are not recorded"), "{}", stderr(&output));
    assert!(project.tenon(&["tools"]).status.success());
    // What needs it says why it is not made.
    project.write("tenon/config.toml", format!("{store}{ask}"));
    let output = project.tenon(&slug);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("the database \"tenon\""), "{}", stderr(&output));
    assert_ne!(project.tenon(&["pending"]).status.code(), Some(0));
    // An address that is none is told at once.
    project.write("tenon/config.toml", "store.url = \"postgresql://a?no=1\"");
    let output = project.tenon(&slug);
    assert!(!output.status.success() && stderr(&output).contains("the address"));
}

#[test]
fn what_is_no_plugin_yet_is_listed_with_its_reason() {
    let project = Project::new("plugins.scripts = [\"${NOPE}/a.rhai\"]");
    let said = stdout(&project.tenon(&["plugins"]));
    assert!(said.contains("note: plugin \"a\"") && said.contains("NOPE"), "{said}");
    let form = parsed(&project.tenon(&["--json", "plugins"]));
    assert_eq!(form["diagnostics"][0]["plugin"], "a");
    // What is disabled need not be mended.
    let project =
        Project::new("plugins.scripts = [\"${NOPE}/a.rhai\"]\ndiscovery.disabled = [\"a\"]");
    assert_eq!(project.tenon(&["doctor"]).status.code(), Some(0));
}

#[test]
fn a_plugin_whose_file_or_folder_is_not_there_is_missing() {
    let project = Project::new(
        "plugins.wasm = [\"no.wasm\"]\nplugins.scripts = [\"there.rhai\", \"no.rhai\"]\n\
         plugins.mcp = [{ name = \"s\", command = \"./no-server\" }, \
         { name = \"f\", command = \"sh\", cwd = \"no-folder\" }, { name = \"t\", command = \"sh\" }]",
    );
    project.write("there.rhai", "");
    let runtime = "runtime = { kind = \"rhai\", path = \"gone.rhai\" }";
    let manifest = format!("plugin.id = \"m\"\n{runtime}");
    project.write(".tenon/plugins/m/plugin.toml", manifest);
    let listed = parsed(&project.tenon(&["--json", "plugins"]));
    let of = |id: &str| {
        let plugins = listed["plugins"].as_array().unwrap();
        plugins.iter().find(|plugin| plugin["plugin"] == id).unwrap_or_else(|| panic!("{id}"))
    };
    for (id, file) in
        [("no", "no.wasm"), ("s", "no-server"), ("f", "no-folder"), ("m", "plugins/m/gone.rhai")]
    {
        assert_eq!(of(id)["state"], "missing", "{id}: {listed}");
        let detail = of(id)["detail"].as_str().unwrap();
        assert!(detail.ends_with(&format!("{file} does not exist")), "{id}: {detail}");
        assert!(of(id)["remedy"].as_str().unwrap().starts_with("check "), "{id}");
    }
    for id in ["there", "t"] {
        assert_eq!((&of(id)["state"], &of(id)["detail"]), (&json!("enabled"), &Value::Null));
    }
    let said = stdout(&project.tenon(&["plugins"]));
    let line = said.lines().find(|line| line.starts_with("no ")).expect("it is listed");
    assert!(line.contains(" missing ") && line.ends_with("no.wasm does not exist"), "{said}");
}

#[test]
fn a_tool_that_is_disabled_is_not_offered() {
    let project = Project::new(&format!(
        "plugins.wasm = [{:?}]\ntools.text_tools__slug.enabled = false",
        guests::TEXT_TOOLS
    ));
    let said = stdout(&project.tenon(&["tools"]));
    assert!(said.contains("text_tools__count") && !said.contains("text_tools__slug"), "{said}");
    let slug = ["call", "text_tools__slug", "{\"text\": \"A\"}"];
    assert_eq!(project.tenon(&slug).status.code(), Some(3));
}

#[cfg(unix)]
#[test]
fn a_folder_above_a_plugin_that_anybody_can_write_to_is_a_reason_to_refuse() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new("plugins.folders = [\"own\"]");
    let manifest = "plugin.id = \"a\"\nruntime = { kind = \"rhai\", path = \"s.rhai\" }";
    project.write("own/of/a/plugin.toml", manifest);
    project.write("own/of/a/s.rhai", "");
    let state = || parsed(&project.tenon(&["--json", "plugins"]))["plugins"][0]["state"].clone();
    assert_eq!(state(), "enabled");
    for folder in ["own/of", "own"] {
        let all = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(project.path(folder), all).unwrap();
        assert_eq!(state(), "refused", "{folder}");
        let own = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(project.path(folder), own).unwrap();
    }
}

#[test]
fn doctor_says_that_nothing_can_be_kept() {
    let project = Project::new("").approved();
    let folder = project.path("state/tenon");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(STATE_FILE), "no database".repeat(500)).unwrap();
    let output = project.tenon(&["doctor"]);
    let shown = format!("{}{}", stdout(&output), stderr(&output));
    assert!(shown.contains("state cannot be kept:"), "{shown}");
    assert_ne!(output.status.code(), Some(0));
}

#[test]
fn what_is_read_can_be_written_to_a_file_as_it_is() {
    let project = Project::new(&format!(
        "limits.output_kib = 1\nplugins.scripts = [\"long.rhai\"]\n\
         plugins.mcp = [{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [\"script.json\"] }}]"
    ));
    project.write(
        "long.rhai",
        "tool(#{ name: \"t\", description: \"d\" }, |a| { let text = \"\"; text.pad(4000, 'x'); #{ text: text } })",
    );
    let blob = r#"{ "uri": "a:b", "blob": "AP8K" }, { "uri": "a:b", "text": "a\u202eb" }"#;
    project.write(
        "script.json",
        format!(
            r#"{{ "tools/list": {{ "tools": [] }}, "resources/read": {{ "contents": [{blob}] }} }}"#
        ),
    );
    let read = |arguments: &[&str]| {
        let output =
            project.tenon(&[&["resources", "read"], arguments, &["--output", "file"]].concat());
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(0), ""), "{}", stderr(&output));
        std::fs::read(project.path("file")).unwrap()
    };
    // A reader is shown what the file has as it is.
    assert_eq!(read(&["s", "a:b"]), b"\0\xff\na\xe2\x80\xaeb");
    let shown = project.tenon(&["resources", "read", "s", "a:b"]);
    assert!(shown.stdout.ends_with(b"a\\u{202e}b\n"), "{shown:?}");
    // The structured content of this one says the same as its text.
    let result = parsed(&project.tenon(&["--json", "call", "long__t"]));
    let uri = result["_meta"]["tenon/truncated"]["uri"].as_str().expect("it is kept");
    let text = format!("{{\"text\":\"{}\"}}", "x".repeat(4000));
    assert_eq!(String::from_utf8(read(&[uri])).unwrap(), text);
}
