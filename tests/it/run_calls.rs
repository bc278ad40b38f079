//! What scripts of runs call on a whole platform: hostile ones, after which the next one works, what plugins have besides
//! tools, and that each call goes the way of all calls.

use serde_json::{Value, json};
use std::sync::Arc;
use tenon_host::history::{self, Query};
use tenon_host::runs::{CatalogFilter, RunOutcome, RunReport, ScriptRunner};
use tenon_host::services::{GrantAll, SqliteStore};
use tenon_host::{Builder, Call, CallKind, Caller, Platform};
use tenon_serve::AllClientFeatures;

use crate::guests;
use crate::support::{EVERYTHING_SERVER, Project, manifest_of};

/// Counts what it was told to write.
const NOTES: &str = r#"
    let schema = #{ type: "object", properties: #{ path: #{ type: "string" } }, required: ["path"] };
    tool(#{ name: "write", description: "Writes a note", schema: schema }, |a| `write ${state.increment("writes", 1)}`);
    tool(#{ name: "writes", description: "Counts notes", annotations: #{ read_only: true } }, |a| {
        #{ count: state.get("writes", 0) }
    });
    tool(#{ name: "wipe", description: "Forgets all notes" }, |a| { state.set("writes", 0); "wiped" });
    resource(#{ uri: "note:///a", name: "a" }, |uri| "text");
"#;

/// A host of the project that grants what is requested, not built yet.
fn builder(project: &Project) -> Builder {
    project.builder().workspace(project.path("")).approver(GrantAll)
}

/// Runs scripts on behalf of somebody who is offered these tools.
fn runner(platform: &Platform, filter: CatalogFilter) -> ScriptRunner {
    let catalog = Arc::new(platform.catalog(filter));
    let ada = Caller { principal: Some("ada".into()), ..Caller::default() };
    platform.runner(&catalog, ada)
}

async fn run(runner: &ScriptRunner, script: &str) -> RunReport {
    runner.run(script.into(), json!({ "path": "/a" })).await.expect("the host works")
}

fn done(report: &RunReport) -> &Value {
    match &report.outcome {
        RunOutcome::Done(value) => value,
        outcome => panic!("{outcome:?}"),
    }
}

/// Checks that an ordinary run works, and that only those before it have written.
async fn assert_works(runner: &ScriptRunner, written: usize, after: &str) {
    let script = "[notes.write(#{ path: data.path }), notes.writes().count]";
    let report = run(runner, script).await;
    assert_eq!(done(&report), &json!([format!("write {written}"), written]), "after {after}");
}

#[tokio::test]
async fn what_a_hostile_script_does_costs_the_next_one_nothing() {
    let limits = "runs = { operations = 200000, calls = 20, output_kib = 4, cpu = \"60s\" }";
    let project = Project::with_notes(limits, NOTES);
    let store = SqliteStore::in_memory().expect("there is memory");
    let platform = builder(&project).store(store).build().await.expect("it is built");
    // One tool is there and is not offered.
    let tool = Box::new(|tool: &str| tool != "notes__wipe");
    let runner = runner(&platform, CatalogFilter { tool, ..CatalogFilter::default() });
    let rows = [
        ("loop {}", "limit", "it took 200000 operations, and may take no more (`runs.operations`)"),
        ("try { loop {} } catch { 1 }", "limit", "it took 200000 operations"),
        ("parallel([|| { loop {} }, || { loop {} }])", "limit", "it took 200000 operations"),
        ("fn f() { f() } f()", "limit", "it reached its"),
        (
            "fn f(n) { parallel([|| f(n + 1)]) } f(0)",
            "limit",
            "`parallel` is nested more than 4 deep",
        ),
        (
            "let s = \"x\"; loop { s += s; }",
            "limit",
            "it reached its limit of value size: a text has at most 1 MiB",
        ),
        (
            "let s = \"\"; s.pad(1000000, \"x\"); let m = []; for i in 0..600 { let k = #{}; k[s + i] = (); m.push(k); } 1",
            "limit",
            "it reached its limit of 256 MiB for what its variables hold",
        ),
        (
            "let s = \"\"; for i in 0..500 { s += \"0123456789\"; } s",
            "limit",
            "its result and what it prints have more than 4096 bytes (`runs.output_kib`)",
        ),
        (
            "for i in 0..1000 { print(\"0123456789\"); } 1",
            "limit",
            "its result and what it prints have more than 4096 bytes (`runs.output_kib`)",
        ),
        (
            "for i in 0..30 { notes.writes(); }",
            "limit",
            "it made 20 calls, and may make no more (`runs.calls`)",
        ),
        (
            "let b = []; for i in 0..10000 { b.push(|| notes.writes()); } parallel(b)",
            "limit",
            "10000 functions in `parallel`, of which it takes 1000",
        ),
        (
            "let b = []; for i in 0..500 { b.push(|| notes.writes()); } parallel(b)",
            "limit",
            "it made 20 calls, and may make no more (`runs.calls`)",
        ),
        // Names that would stand for something of the script's own.
        (
            "let notes = #{}; notes.write(#{ path: \"/a\" })",
            "invalid-script",
            "`notes` is the host's; take another name",
        ),
        (
            "fn write(plugin, arguments) { 1 } notes.write(#{ path: \"/a\" })",
            "invalid-script",
            "`write` is the host's; take another name",
        ),
        (
            "fn call_tool(name) { 1 } call_tool(\"notes__writes\")",
            "invalid-script",
            "`call_tool` is the host's; take another name",
        ),
        ("let f = |notes| 1;", "invalid-script", "`notes` is the host's; take another name"),
        // What is not offered.
        ("notes.wipe()", "invalid-script", "`notes` has no tool `wipe`"),
        ("call_tool(\"notes__wipe\")", "invalid-script", "there is no tool \"notes__wipe\""),
        ("nobody.wipe()", "invalid-script", "there is no variable and no plugin `nobody`"),
    ];
    for (number, (script, code, expected)) in rows.into_iter().enumerate() {
        let report = run(&runner, script).await;
        let RunOutcome::Failed { code: found, message } = &report.outcome else {
            panic!("{script}: {report:?}")
        };
        assert_eq!(found, code, "{script}: {message}");
        assert!(message.contains(expected), "{script}: {message}");
        assert!(report.usage.calls <= 20 && report.printed.len() <= 4096, "{script}: {report:?}");
        assert_works(&runner, number + 1, script).await;
    }
    // A name that is known only when the script runs is looked for among what is offered as well.
    let script = "let said = (); try { call_tool(\"notes__\" + \"wipe\"); } catch (e) { said = e; } `${said}`";
    let report = run(&runner, script).await;
    let said = done(&report).as_str().expect("it is a text");
    assert!(said.contains("there is no tool"), "{said}");
    assert_works(&runner, rows.len() + 1, script).await;
    // It was there all the time.
    let wiped = platform.call(Call::new("notes__wipe", json!({}))).await.expect("it is called");
    assert_eq!(wiped.plain_text(), "wiped");
    assert_works(&runner, 1, "it was wiped").await;
    platform.shutdown().await;
}

/// The plugin with everything as a component.
fn component() -> Project {
    let project = Project::new("plugins.folders = [\"own\"]");
    let runtime = "kind = \"wasm\", path = \"everything.wasm\", instance = \"shared\"";
    project.write("own/everything/plugin.toml", manifest_of("everything", runtime));
    let code = std::fs::read(guests::EVERYTHING_RUST).expect("it is built");
    project.write("own/everything/everything.wasm", code);
    project
}

/// The same as an MCP server.
fn server() -> Project {
    let project = Project::new("");
    let memory = project.path("memory");
    let server = format!(
        "plugins.mcp = [{{ name = \"everything\", command = {EVERYTHING_SERVER:?}, args = [{memory:?}] }}]"
    );
    project.write("tenon.toml", server);
    project
}

/// What is under this name in each value of a list, in the order of the texts.
fn each<'a>(list: &'a Value, name: &str) -> Vec<&'a str> {
    let values = list.as_array().unwrap_or_else(|| panic!("{list}")).iter();
    let mut texts: Vec<&str> =
        values.map(|value| value[name].as_str().unwrap_or_else(|| panic!("{value}"))).collect();
    texts.sort_unstable();
    texts
}

/// Checks that a block of content is the picture.
fn assert_picture(block: &Value) {
    assert_eq!((&block["type"], &block["mimeType"]), (&json!("image"), &json!("image/png")));
    assert!(is_picture(&block["data"]), "{block}");
}

fn is_picture(data: &Value) -> bool {
    data.as_str().is_some_and(|data| data.starts_with("iVBORw0KGgo"))
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn assert_resources(seen: &Value) {
    let known = ["test://static-binary", "test://static-text", "test://watched-resource"];
    assert_eq!(each(&seen["resources"], "uri"), known);
    let words = "This is the content of the static text resource.";
    assert_eq!(each(&seen["read"], "text"), [words]);
    let picture = &seen["picture"][0];
    assert_eq!((&picture["uri"], &picture["mimeType"]), (&json!(known[0]), &json!("image/png")));
    assert!(is_picture(&picture["blob"]), "{picture}");
}

fn assert_prompts(seen: &Value) {
    let known = [
        "test_prompt_with_arguments",
        "test_prompt_with_embedded_resource",
        "test_prompt_with_image",
        "test_simple_prompt",
    ];
    assert_eq!(each(&seen["prompts"], "name"), known);
    let listed = seen["prompts"].as_array().expect("it is a list");
    let arguments = &listed.iter().find(|prompt| prompt["name"] == known[0]).unwrap()["arguments"];
    assert_eq!(each(arguments, "name"), ["arg1", "arg2"]);
    // What is no text is one as it is written.
    let filled = text("Prompt with arguments: arg1='hello', arg2='2'");
    assert_eq!(seen["filled"]["messages"], json!([{ "role": "user", "content": filled }]));
    let messages = &seen["drawn"]["messages"];
    assert_eq!(each(messages, "role"), ["user", "user"]);
    assert_picture(&messages[0]["content"]);
    assert_eq!(messages[1]["content"], text("Please analyze the image above."));
}

fn assert_results(seen: &Value) {
    // One text is that text; whatever else there is are blocks.
    assert_eq!(seen["one"], "This is a simple text response for testing.");
    let [image] = &seen["image"].as_array().expect("it is a list")[..] else { panic!("{seen}") };
    assert_picture(image);
    let several = seen["several"].as_array().expect("it is a list");
    let [first, second, third] = &several[..] else { panic!("{seen}") };
    assert_eq!(*first, text("Multiple content types test:"));
    assert_picture(second);
    let resource = json!({
        "uri": "test://mixed-content-resource",
        "mimeType": "application/json",
        "text": r#"{"test":"data","value":123}"#,
    });
    assert_eq!(*third, json!({ "type": "resource", "resource": resource }));
    assert_eq!(seen["why"], "This tool intentionally returns an error for testing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_sees_all_that_a_plugin_has() {
    let script = r#"
        let listed = resources.list("everything");
        let read = resources.read("everything", "test://static-text");
        let picture = resources.read("everything", "test://static-binary");
        let offered = prompts.list("everything");
        let filled = prompts.get("everything", "test_prompt_with_arguments", #{ arg1: "hello", arg2: 2 });
        let drawn = prompts.get("everything", "test_prompt_with_image", #{});
        let one = everything.test_simple_text();
        let image = everything.test_image_content();
        let several = everything.test_multiple_content_types();
        let why = ();
        try { everything.test_error_handling(); } catch (e) { why = e; }
        #{
            resources: listed, read: read, picture: picture, prompts: offered, filled: filled, drawn: drawn,
            one: one, image: image, several: several, why: why,
        }
    "#;
    for project in [component(), server()] {
        let store = SqliteStore::in_memory().expect("there is memory");
        let builder = builder(&project).store(store).client_features(AllClientFeatures);
        let platform = builder.build().await.expect("it is built");
        let runner = runner(&platform, CatalogFilter::default());
        let report = run(&runner, script).await;
        let seen = done(&report);
        assert_resources(seen);
        assert_prompts(seen);
        assert_results(seen);
        assert_eq!(report.usage.calls, 10);
        for (script, expected) in [
            ("resources.read(\"everything\", \"test://nothing\")", "test://nothing"),
            ("resources.list(\"nobody\")", "nobody"),
            ("prompts.list(\"nobody\")", "nobody"),
            ("prompts.get(\"nobody\", \"p\", #{})", "nobody"),
        ] {
            let report = run(&runner, script).await;
            let RunOutcome::Failed { code, message } = &report.outcome else {
                panic!("{script}: {report:?}")
            };
            assert_eq!(code, "failed", "{script}: {message}");
            assert!(message.contains(expected), "{script}: {message}");
            let next = run(&runner, "everything.test_simple_text()").await;
            assert_eq!(done(&next), &seen["one"], "after {script}");
        }
        platform.shutdown().await;
    }
}

/// Forbids a path, and changes what is answered for others.
const GUARD: &str = r#"
    fn BeforeToolCall(context) {
        if context.tool == "notes__write" && context.arguments.path == "/no" { return veto("nobody writes there"); }
    }
    fn AfterToolCall(context) {
        if context.tool == "notes__write" { context.result.content[0].text += "!"; }
    }
"#;

#[tokio::test]
async fn a_call_of_a_script_goes_the_way_of_all_calls() {
    let configuration =
        "plugins.scripts = [\"guard.rhai\"]\ntools.notes__wipe.approve = \"deny\"\n";
    let project = Project::with_notes(configuration, NOTES);
    project.write("guard.rhai", GUARD);
    let state = project.path("state");
    let platform = builder(&project).state(&state).build().await.expect("it is built");
    let runner = runner(&platform, CatalogFilter::default());
    let script = r#"
        let first = notes.write(#{ path: data.path });
        let vetoed = ();
        try { notes.write(#{ path: "/no" }); } catch (e) { vetoed = e; }
        let denied = ();
        try { notes.wipe(); } catch (e) { denied = e; }
        let read = resources.read("notes", "note:///a")[0].text;
        [first, vetoed, read, notes.writes().count, denied]
    "#;
    let report = run(&runner, script).await;
    let seen = done(&report).as_array().expect("it is a list");
    let vetoed = "plugin \"guard\" vetoed it: nobody writes there";
    assert_eq!(seen[..4], [json!("write 1!"), json!(vetoed), json!("text"), json!(1)]);
    let denied = seen[4].as_str().expect("it is a text");
    assert!(denied.starts_with("the tool notes__wipe may not be called like this, by"), "{denied}");
    // Those that have not reached their plugin are not called.
    let called: Vec<String> = report.called.iter().map(ToString::to_string).collect();
    assert_eq!(called, ["notes__write", "notes__writes"]);
    assert_eq!(report.usage.calls, 5);
    // What nobody catches ends the run in the same words.
    let failed = run(&runner, "notes.write(#{ path: \"/no\" })").await;
    let RunOutcome::Failed { code, message } = &failed.outcome else { panic!("{failed:?}") };
    assert_eq!(code, "failed");
    assert!(message.starts_with("script:1:") && message.contains(vetoed), "{message}");
    platform.call(Call::new("notes__writes", json!({}))).await.expect("it is called");
    platform.shutdown().await;

    let records = history::read(&state, &Query::default()).expect("it is read");
    // What hooks did has records of its own.
    let calls: Vec<_> = records.iter().filter(|record| record.kind != CallKind::Hook).collect();
    let of_run = |run: Option<&str>| {
        let own = calls.iter().filter(|record| record.run.as_deref() == run);
        let rows = own.map(|record| {
            let who = record.principal.as_deref().unwrap_or("nobody");
            format!("{} of {who}: {}", record.tool, record.outcome)
        });
        rows.collect::<Vec<String>>()
    };
    assert_eq!(
        of_run(Some(report.id.as_str())),
        [
            "notes__write of ada: ok",
            "notes__write of ada: vetoed",
            "notes__wipe of ada: forbidden",
            "notes__read_resource of ada: ok",
            "notes__writes of ada: ok",
        ]
    );
    assert_eq!(calls[0].arguments, json!({ "path": "/a" }));
    assert_eq!(of_run(Some(failed.id.as_str())), ["notes__write of ada: vetoed"]);
    assert_eq!(of_run(None), ["notes__writes of nobody: ok"]);
}
