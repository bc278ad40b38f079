//! What a server says comes out as it went in: every member of every object of MCP, known and unknown,
//! with its value as it was written.

use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tenon_host::Caller;
use tenon_host::meta::USAGE;
use tenon_host::types::mcp_json::McpJson;
use tenon_host::types::{ArgumentCompletion, CompletionReference};

use crate::support::{Project, SCRIPTED_SERVER, failure, stderr, stdout};

/// Members that no revision of MCP has, with every kind of value; `U` stands for them.
const UNKNOWN: &str = r#""x-new":{"n":[1.0,1e3,-0,-1.5E-7,18446744073709551617,null,true],"o":{},"z":"\"é\ud83d\ude00","a":[[]]}"#;

/// What each object of MCP may have; `A` and `I` stand for the annotations of content, and for icons.
const ANNOTATIONS: &str =
    r#"{"audience":["user","assistant"],"priority":1.0,"lastModified":"2026-01-02T03:04:05Z",U}"#;
const ICONS: &str = r#"[{"src":"https://example.com/i.png","mimeType":"image/png","sizes":["48x48"],"theme":"dark",U}]"#;

const TOOLS: [&str; 4] = [
    r#"{"name":"full","title":"T","description":"d","inputSchema":{"type":"object","properties":{"n":{"type":"number","maximum":1e3,"default":1.0,U}},U},"outputSchema":{"type":"object",U},"annotations":{"title":"A","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false,U},"icons":I,"execution":{"taskSupport":"optional",U},"_meta":{U},U}"#,
    r#"{"name":"bare","inputSchema":{"type":"object"}}"#,
    r#"{"name":"empty","title":"","description":"","inputSchema":{"type":"object"},"annotations":{},"icons":[],"_meta":{}}"#,
    r#"{"name":"odd","title":null,"description":null,"inputSchema":{"type":"object"},"outputSchema":null,"annotations":{"title":7,"readOnlyHint":"yes","destructiveHint":null},"icons":null}"#,
];

const RESULT: &str = r#"{"content":[
    {"type":"text","text":"t","annotations":A,"_meta":{U},U},
    {"type":"text","text":""},
    {"type":"image","data":"AQI=","mimeType":"image/png","annotations":A,"_meta":{U},U},
    {"type":"audio","data":"","mimeType":"audio/wav","annotations":A,"_meta":{U},U},
    {"type":"resource_link","uri":"a:b","name":"n","title":"T","description":"d","mimeType":"m/n","size":3,"icons":I,"annotations":A,"_meta":{U},U},
    {"type":"resource_link","uri":"a:b","name":"n","title":null,"mimeType":7,"size":3.0},
    {"type":"resource","resource":{"uri":"a:b","mimeType":"m/n","text":"t","_meta":{U},U},"annotations":A,"_meta":{U},U},
    {"type":"resource","resource":{"uri":"a:b","mimeType":null,"blob":"/w==","_meta":{U},U}},
    {"type":"hologram","depth":1e3,"annotations":A,"_meta":{U},U},
    {"type":"text","text":7,U},
    {"type":"image","data":"A Q I","mimeType":"image/png"}
    ],"structuredContent":{"a":1.0,U},"isError":false,"_meta":{U},U}"#;

const RESOURCES: [&str; 3] = [
    r#"{"uri":"a:b","name":"n","title":"T","description":"d","mimeType":"m/n","size":3,"icons":I,"annotations":A,"_meta":{U},U}"#,
    r#"{"uri":"a:c","name":"n"}"#,
    r#"{"uri":"a:d","name":"n","title":null,"size":-1,"annotations":{}}"#,
];

const TEMPLATES: [&str; 2] = [
    r#"{"uriTemplate":"a:{b}","name":"n","title":"T","description":"d","mimeType":"m/n","icons":I,"annotations":A,"_meta":{U},U}"#,
    r#"{"uriTemplate":"a:{c}","name":"n","description":null}"#,
];

const CONTENTS: [&str; 3] = [
    r#"{"uri":"a:b","mimeType":"m/n","text":"t","_meta":{U},U}"#,
    r#"{"uri":"a:b","blob":"/w==","_meta":{U},U}"#,
    r#"{"uri":"a:b","mimeType":null,"text":""}"#,
];

const PROMPTS: [&str; 4] = [
    r#"{"name":"p","title":"T","description":"d","arguments":[{"name":"a","title":"T","description":"d","required":true,U},{"name":"b"},{"name":"c","required":false,"title":null}],"icons":I,"_meta":{U},U}"#,
    r#"{"name":"bare"}"#,
    r#"{"name":"empty","description":"","arguments":[]}"#,
    r#"{"name":"odd","title":7,"arguments":null}"#,
];

const PROMPT: &str = r#"{"description":"d","messages":[
    {"role":"user","content":{"type":"text","text":"t","annotations":A,"_meta":{U},U},U},
    {"role":"assistant","content":{"type":"resource","resource":{"uri":"a:b","text":"t",U},U}},
    {"role":"system","content":{"type":"text","text":"t"}}
    ],"_meta":{U},U}"#;

const COMPLETIONS: [&str; 3] = [
    r#"{"completion":{"values":["a","b"],"total":7,"hasMore":true,U},"_meta":{U},U}"#,
    r#"{"completion":{"values":[],"hasMore":false}}"#,
    r#"{"completion":{"values":["a"],"total":1.5,"hasMore":null}}"#,
];

/// An object as the server says it.
fn full(object: &str) -> String {
    object
        .replace(":I", &format!(":{ICONS}"))
        .replace(":A", &format!(":{ANNOTATIONS}"))
        .replace(",U", &format!(",{UNKNOWN}"))
        .replace("{U", &format!("{{{UNKNOWN}"))
}

fn list(member: &str, objects: &[&str]) -> String {
    format!(
        "{{\"{member}\":[{}]}}",
        objects.iter().map(|one| full(one)).collect::<Vec<_>>().join(",")
    )
}

/// A server that says all of it; of completions one.
fn project(completion: &str) -> Project {
    let script = format!(
        r#"{{"tools/list":{},"tools/call":{},"resources/list":{},"resources/templates/list":{},"resources/read":{},"prompts/list":{},"prompts/get":{},"completion/complete":{}}}"#,
        list("tools", &TOOLS),
        full(RESULT),
        list("resources", &RESOURCES),
        list("resourceTemplates", &TEMPLATES),
        list("contents", &CONTENTS),
        list("prompts", &PROMPTS),
        full(PROMPT),
        full(completion),
    );
    let project = Project::new("");
    project.write("script.json", script);
    let script = project.path("script.json");
    project.write(
        "tenon.toml",
        format!(
            "plugins.mcp = [{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [{script:?}] }}]"
        ),
    );
    project
}

/// JSON with the members of objects in order, and all else as it is written.
fn ordered(json: &str) -> String {
    let json = json.trim();
    if let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) {
        let members =
            members.iter().map(|(name, value)| format!("{name:?}:{}", ordered(value.get())));
        return format!("{{{}}}", members.collect::<Vec<_>>().join(","));
    }
    match serde_json::from_str::<Vec<&RawValue>>(json) {
        Ok(items) => {
            let items = items.iter().map(|item| ordered(item.get()));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        Err(_) => match serde_json::from_str::<String>(json) {
            // However it is escaped.
            Ok(text) => format!("{text:?}"),
            Err(_) => json.into(),
        },
    }
}

#[track_caller]
fn assert_same(json: &str, expected: &str) {
    assert_eq!(ordered(json), ordered(expected));
}

/// The items of an array, as they are written.
fn items(json: &str) -> Vec<String> {
    let items: Vec<&RawValue> = serde_json::from_str(json).expect("it is an array");
    items.iter().map(|item| item.get().to_string()).collect()
}

/// An object without some of its members.
fn without(json: &str, names: &[&str]) -> String {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(json).expect("an object");
    members.retain(|name, _| !names.contains(&&**name));
    serde_json::to_string(&members).expect("it is JSON")
}

// MCP.md: B7, E9, F6
#[test]
fn the_command_says_what_a_server_says_member_for_member() {
    let project = project(COMPLETIONS[0]);
    let said = |arguments: &[&str]| {
        let output = project.tenon(&[&["--json"], arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let check = |arguments: &[&str], expected: &[&str]| {
        let listed = items(&said(arguments));
        assert_eq!(listed.len(), expected.len(), "{arguments:?}");
        for expected in expected {
            let expected = ordered(&full(expected));
            let found = listed.iter().any(|item| ordered(item) == expected);
            assert!(found, "{arguments:?}: {expected} is not in\n{}", listed.join("\n"));
        }
    };
    check(&["resources", "list", "s"], &RESOURCES);
    check(&["resources", "templates", "s"], &TEMPLATES);
    check(&["resources", "read", "s", "a:b"], &CONTENTS);
    check(&["prompts", "list", "s"], &PROMPTS);
    assert_same(&said(&["prompts", "get", "s", "p", "a=1"]), &full(PROMPT));
    // Whatever else is listed is the host's.
    let tools = items(&said(&["tools"]));
    for expected in TOOLS {
        let expected = full(expected);
        let own: Value = serde_json::from_str(&expected).unwrap();
        let is_it =
            |tool: &&String| serde_json::from_str::<Value>(tool).unwrap()["tool"] == own["name"];
        let tool = tools.iter().find(is_it).expect("it is listed");
        let tool = without(tool, &["name", "plugin", "tool", "kind"]);
        assert_same(&tool, &without(&expected, &["name"]));
    }
    let result = said(&["call", "s__full", "{}"]);
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&result).unwrap();
    assert_same(&without(members["_meta"].get(), &[USAGE]), &full("{U}"));
    assert_same(&without(&result, &["_meta"]), &without(&full(RESULT), &["_meta"]));
}

/// What the host says of an item stands beside what its server says, and goes before it.
#[test]
fn a_server_does_not_say_whose_its_tools_and_resources_are() {
    let project = Project::new("");
    let lies = r#""plugin":"files","tool":"read","kind":"builtin","x":1.0"#;
    let tool = format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},{lies}}}"#);
    let resource = format!(r#"{{"uri":"a:b","name":"n",{lies}}}"#);
    project.write(
        "script.json",
        format!(
            r#"{{"tools/list":{{"tools":[{tool}]}},"resources/list":{{"resources":[{resource}]}}}}"#
        ),
    );
    let script = project.path("script.json");
    project.write(
        "tenon.toml",
        format!(
            "plugins.mcp = [{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [{script:?}] }}]"
        ),
    );
    let listed = |arguments: &[&str], expected: &str| {
        let said = stdout(&project.tenon(&[&["--json"], arguments].concat()));
        let items = items(&said);
        let found = items.iter().any(|item| ordered(item) == ordered(expected));
        assert!(found && !said.contains("files"), "{said}");
    };
    listed(
        &["tools"],
        r#"{"name":"s__t","inputSchema":{"type":"object"},"plugin":"s","tool":"t","kind":"mcp","x":1.0}"#,
    );
    listed(
        &["resources", "list"],
        r#"{"uri":"a:b","name":"n","plugin":"s","tool":"read","kind":"builtin","x":1.0}"#,
    );
}

// MCP.md: F4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedder_gets_what_a_server_says_member_for_member() {
    for expected in COMPLETIONS {
        let platform = project(expected).platform().await;
        let blank = ArgumentCompletion {
            reference: CompletionReference::Prompt("p".into()),
            name: "a".into(),
            value: String::new(),
            others: Vec::new(),
        };
        let suggested = platform.suggest("s", blank, &Caller::default()).await.unwrap();
        assert_same(&serde_json::to_string(&McpJson(&suggested)).unwrap(), &full(expected));
        platform.clone().shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_passes_on_what_the_contract_does_not_name() {
    let project = Project::new("plugins.scripts = [\"s.rhai\"]");
    project.write(
        "s.rhai",
        r#"tool(#{ name: "t", description: "d", annotations: #{ read_only: true }, extra: #{ icons: [], annotations: #{ title: "A" }, "x-new": 1.5 } },
            |a| "")"#,
    );
    let platform = project.platform().await;
    let registry = platform.registry();
    let (_, tool) = registry.tool("s__t").expect("it is there");
    assert_same(
        &serde_json::to_string(&McpJson(&*tool.definition)).unwrap(),
        r#"{"name":"t","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"title":"A"},"icons":[],"x-new":1.5}"#,
    );
}

/// A server that refuses whatever it is asked of resources and tools, and logs before it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_refuses_keeps_its_meaning_and_its_data() {
    let check = async |code: i32,
                       tool: (&str, &str),
                       resource: (&str, &str),
                       news: (&str, &str)| {
        let error = format!(r#"{{"code":{code},"message":"not so","data":{{"at":"a:b"}}}}"#);
        let project = Project::new("");
        let script = format!(
            r#"{{"tools/list":{{"tools":[{}]}},"resources/list":{{"resources":[]}},"errors":{{"tools/call":{error},"resources/read":{error},"resources/subscribe":{error}}}}}"#,
            TOOLS[1]
        );
        project.write("script.json", script);
        let script = project.path("script.json");
        let entry =
            format!("{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [{script:?}] }}");
        project.write("tenon.toml", format!("plugins.mcp = [{entry}]"));
        let platform = project.platform().await;
        let called = failure(&platform, "s__bare", serde_json::json!({})).await;
        let caller = Caller::default();
        let read = platform.read_resource("s", "a:b", &caller).await.unwrap_err();
        let subscribed = platform.subscribe("s", "a:b", &caller).await.unwrap_err();
        for (error, (word, said)) in [(&called, tool), (&read, resource), (&subscribed, news)] {
            assert_eq!(error.code(), word, "{code}: {error}");
            assert!(error.to_string().contains(said), "{code}: {error}");
            let has_data = error.to_string().contains(r#"{"at":"a:b"}"#);
            assert_eq!(has_data, said.ends_with('{'), "{code}: {error}");
        }
        platform.clone().shutdown().await;
    };
    let not_found = ("not-found", "not so: {");
    // What is wrong with a resource that is asked for is that it is not there.
    check(-32602, ("invalid-input", "not so: {"), not_found, not_found).await;
    check(-32002, not_found, not_found, not_found).await;
    // A method that it does not know is one of a feature that it does not have.
    check(-32601, not_found, ("not-found", "the server reads no resources"), not_found).await;
    let failed = ("failed", "not so (code 7, {");
    check(7, failed, failed, failed).await;
}

#[test]
fn what_a_server_logs_names_the_part_of_it_that_says_it() {
    let project = Project::new("");
    let script = format!(
        r#"{{"tools/list":{{"tools":[{}]}},"tools/call":{{"content":[]}},"log":{{"level":"warning","logger":"the database","data":"it is slow"}}}}"#,
        TOOLS[1]
    );
    project.write("script.json", script);
    let script = project.path("script.json");
    let entry = format!("{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [{script:?}] }}");
    project.write("tenon.toml", format!("plugins.mcp = [{entry}]"));
    let output = project.command(&["call", "s__bare"]).env("TENON_LOG", "warn").output().unwrap();
    let said = stderr(&output);
    let line = said.lines().find(|line| line.contains("it is slow")).expect(&said);
    assert!(line.contains("logger") && line.contains("the database"), "{line}");
}
