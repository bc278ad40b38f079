//! What people do first: name a file by its path, look at what there is, ask a model.

use serde_json::{Value, json};
use std::fs;

use crate::guests;
use crate::http_server::serve;
use crate::support::{Project, SCRIPTED_SERVER, parsed, stderr, stdout};

const SCRIPT: &str =
    "tool(#{ name: \"t\", description: \"d\", schema: #{ type: \"object\" } }, |a| \"done\");";

/// A script that asks another.
const CALLER: &str = "tool(#{ name: \"ask\", description: \"d\", schema: #{ type: \"object\" } }, |a| call_tool(\"s__t\", #{}));";

fn run(project: &Project, arguments: &[&str], code: i32) -> String {
    let output = project.tenon(arguments);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

fn json_of(project: &Project, arguments: &[&str]) -> Value {
    let output = project.tenon(&[&["--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    parsed(&output)
}

fn caller(capabilities: &str) -> Project {
    let entry = format!("{{ path = \"c.rhai\", capabilities = {capabilities} }}");
    let project = Project::new(&format!("plugins.scripts = [\"s.rhai\", {entry}]"));
    project.write("s.rhai", SCRIPT);
    project.write("c.rhai", CALLER);
    project
}

#[test]
fn a_script_that_is_named_by_its_path_gets_what_was_requested_there_and_approved() {
    // Without a request it asks in vain.
    let project = Project::new("plugins.scripts = [\"s.rhai\", \"c.rhai\"]");
    project.write("s.rhai", SCRIPT);
    project.write("c.rhai", CALLER);
    let said = run(&project, &["call", "c__ask"], 1);
    assert!(said.contains("not granted"), "{said}");

    let project = caller("{ tools = [\"s__t\"] }");
    let said = run(&project, &["call", "c__ask"], 3);
    assert!(said.contains("`tenon approve c`") && said.contains("tools"), "{said}");
    let output = project.command(&["trust"]).env_remove("TENON_TRUST").output().unwrap();
    assert!(stdout(&output).contains("requests  c: tools s__t"), "{}", stdout(&output));
    run(&project, &["approve", "c", "--yes"], 0);
    assert!(run(&project, &["call", "c__ask"], 0).contains("done"));
    // What is requested of the same file anew is not approved.
    let entry = "{ path = \"c.rhai\", capabilities = { tools = [\"s__t\", \"s__u\"] } }";
    project.write("tenon.toml", format!("plugins.scripts = [\"s.rhai\", {entry}]"));
    assert!(run(&project, &["call", "c__ask"], 3).contains("has changed since it was approved"));

    for (capabilities, problem) in [
        ("{ \"Tools\" = [\"a\"] }", "invalid capability name \"Tools\""),
        ("{ filesystem = [\"everything\"] }", "filesystem"),
    ] {
        let project = caller(capabilities);
        let said = run(&project, &["call", "c__ask"], 2);
        assert!(said.contains(problem) && said.contains("\"c\""), "{capabilities}: {said}");
    }
}

#[test]
fn a_manifest_beside_a_file_that_is_named_by_its_path_is_read() {
    let manifest = |path: &str| {
        format!(
            "[plugin]\nid = \"own\"\n[runtime]\nkind = \"rhai\"\npath = {path:?}\n[capabilities]\ntools = [\"x__*\"]"
        )
    };
    let project = Project::new("plugins.scripts = [\"p/c.rhai\"]");
    project.write("p/c.rhai", SCRIPT);
    project.write("p/plugin.toml", manifest("c.rhai"));
    let plugins = json_of(&project, &["plugins"])["plugins"].clone();
    assert_eq!((&plugins[0]["plugin"], &plugins[1]), (&json!("own"), &Value::Null));
    assert!(run(&project, &["call", "own__t"], 3).contains("`tenon approve own`"));
    // It is of another file, and says nothing of this one.
    project.write("p/other.rhai", SCRIPT);
    project.write("p/plugin.toml", manifest("other.rhai"));
    assert!(run(&project, &["call", "c__t"], 0).contains("done"));
    // It may be of this one.
    project.write("p/plugin.toml", "[plugin");
    assert!(run(&project, &["call", "c__t"], 2).contains("plugin.toml"));
    // Both say something.
    project.write("p/plugin.toml", manifest("c.rhai"));
    project.write("tenon.toml", "plugins.scripts = [{ path = \"p/c.rhai\", id = \"mine\" }]");
    let said = run(&project, &["doctor"], 1);
    assert!(said.contains("its entry has more than a `path`"), "{said}");

    // It is the same for a component.
    let project = Project::new("plugins.wasm = [\"p/c.wasm\"]");
    let own = |path: &str| manifest(path).replace("\"rhai\"", "\"wasm\"");
    let component = fs::read(guests::HELLO).unwrap();
    for name in ["p/c.wasm", "p/other.wasm"] {
        project.write(name, &component);
    }
    let greet = |id: &str| format!("{id}__greet");
    let name = r#"{"name": "Ada"}"#;
    project.write("p/plugin.toml", own("c.wasm"));
    assert!(run(&project, &["call", &greet("own"), name], 3).contains("`tenon approve own`"));
    run(&project, &["approve", "own", "--yes"], 0);
    assert!(run(&project, &["call", &greet("own"), name], 0).contains("Ada"));
    project.write("p/plugin.toml", own("other.wasm"));
    assert!(run(&project, &["call", &greet("c"), name], 0).contains("Ada"));
}

#[test]
fn a_file_in_a_folder_of_plugins_without_a_manifest_is_named() {
    let project =
        Project::new("plugins = { folders = [\"more\"], scripts = [\"more/named.rhai\"] }");
    for name in
        [".tenon/plugins/bare.rhai", "more/named.rhai", "more/x/y/bare.wasm", "more/p/extra.rhai"]
    {
        project.write(name, SCRIPT);
    }
    project.write(
        "more/p/plugin.toml",
        "[plugin]\nid = \"p\"\n[runtime]\nkind = \"rhai\"\npath = \"extra.rhai\"",
    );
    let said = run(&project, &["tools"], 0);
    for (file, key) in [(".tenon/plugins/bare.rhai", "scripts"), ("more/x/y/bare.wasm", "wasm")] {
        let line =
            said.lines().find(|line| line.contains(file)).unwrap_or_else(|| panic!("{said}"));
        assert!(
            line.contains("it has no plugin.toml beside it") && line.contains(&format!("`{key}`")),
            "{line}"
        );
    }
    assert_eq!(said.matches("beside it, so it is not a plugin").count(), 2, "{said}");
    // It costs nobody anything, and who asks a plugin does not hear of it.
    let said = run(&project, &["call", "p__t"], 0);
    assert!(!said.contains("bare.rhai") && !said.contains("bare.wasm"), "{said}");
    for verb in ["plugins", "doctor"] {
        let said = run(&project, &[verb], 0).split_whitespace().collect::<String>();
        assert!(said.contains("bare.rhai:") && said.contains("bare.wasm:"), "{said}");
    }
    // Of many, some are named, and all are counted.
    for number in 0..6 {
        project.write(&format!("more/x/{number}.wasm"), "");
    }
    let said = run(&project, &["tools"], 0);
    assert_eq!(said.matches("beside it, so it is not a plugin").count(), 5, "{said}");
    assert!(said.contains("x/4.wasm: and 3 more without a plugin.toml"), "{said}");
    // Those that may be taken for guards come first.
    assert!(said.contains("bare.rhai"), "{said}");
}

#[test]
fn what_all_plugins_have_is_listed() {
    let server = json!({
        "resources/list": { "resources": [{ "uri": "x:1", "name": "one" }] },
        "resources/templates/list": { "resourceTemplates": [{ "uriTemplate": "x:{n}", "name": "any" }] },
        "prompts/list": { "prompts": [{ "name": "ask", "arguments": [{ "name": "a", "required": true }, { "name": "b" }] }] },
        "tools/list": { "tools": [] },
    });
    let project = Project::new(&format!(
        "[plugins]\nwasm = [{:?}, {:?}, {:?}]\nscripts = [\"first.rhai\", \"second.rhai\"]\n\
         mcp = [{{ name = \"m\", command = {SCRIPTED_SERVER:?}, args = [\"script.json\"] }}]",
        guests::ECHO_PROVIDER,
        guests::CHECKS,
        guests::REDACT,
    ));
    project.write("script.json", server.to_string());
    project.write("first.rhai", "fn BeforePlan(context) {} hook(\"test:own\", |context| {});");
    project.write("second.rhai", "fn BeforePlan(context) {}");
    assert!(run(&project, &["complete"], 0).contains("echo_provider/echo"));
    let models = json_of(&project, &["complete"]);
    assert_eq!((&models[0]["plugin"], &models[0]["id"]), (&json!("echo_provider"), &json!("echo")));
    assert!(run(&project, &["eval"], 0).contains("checks/contains  "));
    assert!(json_of(&project, &["eval"])[0]["optionsSchema"].is_object());
    let hooks = run(&project, &["hook"], 0);
    // In the order in which they run.
    assert!(hooks.contains("before-plan  redact, first, second\n"), "{hooks}");
    assert!(hooks.contains("test:own  first\n"), "{hooks}");
    let rows = json_of(&project, &["hook"]);
    assert!(
        rows.as_array().unwrap().contains(&json!({ "point": "test:own", "handlers": ["first"] }))
    );
    assert_eq!(run(&project, &["resources", "list"], 0), "m  x:1  one\n");
    assert_eq!(run(&project, &["resources", "templates"], 0), "m  x:{n}  any\n");
    assert_eq!(run(&project, &["prompts", "list"], 0), "m  ask a=… [b=…]\n");
    assert_eq!(
        json_of(&project, &["resources", "list"]),
        json!([{ "plugin": "m", "uri": "x:1", "name": "one" }])
    );
}

#[test]
fn a_model_is_asked_all_that_the_contract_has() {
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::ECHO_PROVIDER));
    let conversation = json!([
        { "role": "user", "content": "first" },
        { "role": "assistant", "content": [{ "type": "text", "text": "yes" }] },
        { "role": "user", "content": [{ "type": "text", "text": "one two stop three" }] },
    ]);
    project.write("said.json", conversation.to_string());
    let tools = json!([{ "name": "look", "description": "d", "inputSchema": { "type": "object" } }, { "name": "find" }]);
    project.write("tools.json", tools.to_string());
    let ask = |arguments: &[&str]| json_of(&project, &[&["complete", "echo"], arguments].concat());
    assert_eq!(ask(&["--messages", "@said.json"])["text"], "one two stop three");
    // The prompt is the last message, and what the system says is counted.
    let answer = ask(&["--messages", "@said.json", "--prompt", "last", "--system", "be brief"]);
    assert_eq!((&answer["text"], &answer["usage"]["input"]), (&json!("last"), &json!(9)));
    let answer = ask(&[
        "--messages",
        "@said.json",
        "--stop",
        "nothing",
        "--stop",
        "stop",
        "--seed",
        "1",
        "--temperature",
        "0.5",
        "--top-p",
        "1",
    ]);
    assert_eq!(
        (&answer["text"], &answer["stopReason"]),
        (&json!("one two"), &json!("stop-sequence"))
    );
    let answer = ask(&["--prompt", "x", "--tools", "@tools.json", "--tool-choice", "find"]);
    assert_eq!(answer["stopReason"], "tool-use");
    let call = answer["parts"].as_array().unwrap().last().unwrap();
    assert_eq!((&call["type"], &call["name"]), (&json!("toolCall"), &json!("find")));
    // People see what is no text beside it.
    for stream in [&[][..], &["--stream"]] {
        let arguments = [
            &[
                "complete",
                "echo",
                "--prompt",
                "x",
                "--tools",
                "@tools.json",
                "--tool-choice",
                "required",
            ],
            stream,
        ]
        .concat();
        let output = project.tenon(&arguments);
        let said = stderr(&output);
        assert!(
            said.contains("[asks for: look {") && said.contains("[stopped: tool-use]"),
            "{said}"
        );
        assert!(!stdout(&output).contains("asks for"), "{}", stdout(&output));
    }
    for (arguments, problem) in [
        (&["--messages", "{}"][..], "messages: it is not a list"),
        (&["--messages", "[{\"role\": \"x\", \"content\": \"\"}]"], "message 1: unknown variant"),
        (&["--system", "s"], "there is nothing to ask"),
        (&["--prompt", "p", "--tools", "[1]"], "a tool has no `name`"),
        (&["--prompt", "p", "--extra", "[]"], "extra must be a JSON object"),
        (&["--messages", "-", "--tools", "-"], "standard input can be one of the options"),
        (&["--prompt", "p", "--tool-choice", "none"], "--tools"),
        (&["--prompt", "p", "--tools", "@tools.json", "--tool-choice", "lok"], "not \"lok\""),
    ] {
        let said = run(&project, &[&["complete", "echo"], arguments].concat(), 2);
        assert!(said.contains(problem), "{arguments:?}: {said}");
    }
    fs::remove_file(project.path("said.json")).unwrap();
    run(&project, &["complete", "echo", "--messages", "@said.json"], 2);
}

/// Each option reaches the provider, by what a server is sent that the provider turns to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_gets_every_option_of_a_request() {
    let server = serve().await;
    let project = Project::new("plugins.folders = [\"own\"]");
    let manifest = format!(
        "plugin.id = \"openai\"\nruntime = {{ kind = \"wasm\", path = \"p.wasm\" }}\n\
         [capabilities]\nnetwork = [{:?}]\nsecrets = [\"openai-api-key\"]\n\
         [settings]\nbase_url = {:?}\nmodels = [\"m-1\"]",
        server.url("/v1/*"),
        server.url("/v1"),
    );
    project.write("own/openai/plugin.toml", manifest);
    project.write("own/openai/p.wasm", fs::read(guests::OPENAI_PROVIDER).unwrap());
    run(&project, &["approve", "openai", "--yes"], 0);
    project.write("schema.json", r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#);
    let answer = json!({ "choices": [{ "finish_reason": "stop", "message": { "role": "assistant", "content": "yes" } }] });
    server.answer_next("200 OK", &["content-type: application/json"], &answer.to_string());
    let arguments = [
        ["complete", "m-1"],
        ["--prompt", "last"],
        ["--system", "be brief"],
        ["--max-tokens", "11"],
        ["--temperature", "0.5"],
        ["--top-p", "0.25"],
        ["--stop", "end"],
        ["--seed", "7"],
        ["--response-schema", "@schema.json"],
        ["--extra", r#"{"user": "somebody", "service_tier": "flex"}"#],
    ];
    let mut command = project.command(&arguments.concat());
    let output = command.env("OPENAI_API_KEY", "sk-test-0123456789").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim(), "yes");
    let heard = server.heard_whole().remove(0);
    let (_, body) = heard.split_once("\r\n\r\n").unwrap();
    let sent: Value = serde_json::from_str(body).unwrap();
    let most = ["max_tokens", "max_completion_tokens"].map(|key| sent[key].as_u64());
    assert_eq!(most.into_iter().flatten().collect::<Vec<_>>(), [11], "{sent}");
    for (member, expected) in [
        ("/model", json!("m-1")),
        ("/messages/0/role", json!("system")),
        ("/messages/0/content", json!("be brief")),
        ("/messages/1/content", json!("last")),
        ("/temperature", json!(0.5)),
        ("/top_p", json!(0.25)),
        ("/stop", json!(["end"])),
        ("/seed", json!(7)),
        ("/response_format/json_schema/schema/properties/a/type", json!("string")),
        ("/user", json!("somebody")),
        ("/service_tier", json!("flex")),
    ] {
        assert_eq!(sent.pointer(member), Some(&expected), "{member}: {sent}");
    }
}
