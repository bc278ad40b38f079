//! The harness in which authors run what they have built, with the command as its host.

use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tenon_harness::protocol::{PluginSource, Setup};
use tenon_harness::types::{
    ArgumentCompletion, CompletionReference, FormAnswer, ResourceBody, UrlAnswer,
};
use tenon_harness::{BuildFailed, Harness, HttpAnswer, Scope, StartError};

use crate::guests;
use crate::support::{DEMO_SERVER, compiled_in, tenon};

fn component(path: &str) -> Harness {
    Harness::component(path).command(tenon())
}

/// A script that the test writes.
fn script(text: &str) -> (Harness, tempfile::TempDir) {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("s.rhai");
    fs::write(&path, text).unwrap();
    (Harness::script(path).command(tenon()), folder)
}

#[tokio::test]
async fn a_package_is_built_and_run() {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../guests/hello");
    let plugin = Harness::package(package).unwrap().command(tenon()).start().await.unwrap();
    let greeted = plugin.call("greet", json!({ "name": "Ada" })).await.unwrap();
    assert_eq!(greeted.plain_text(), "Hello, Ada!");
    plugin.shutdown().await;
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../guests/mcp-client");
    assert!(matches!(Harness::package(client), Err(BuildFailed::NoComponent)));
    assert!(matches!(Harness::package("nowhere"), Err(BuildFailed::NotRun(_))));
}

#[tokio::test]
async fn what_a_plugin_cannot_do_has_the_code_and_the_words_of_the_host() {
    let plugin = component(guests::HELLO).start().await.unwrap();
    let refused = plugin.call("greet", json!({ "name": 3 })).await.unwrap_err();
    assert_eq!(refused.code, "invalid-input");
    assert!(refused.message.contains("3 is not of type"), "{refused}");
    let unknown = plugin.call("wave", json!({})).await.unwrap_err();
    assert_eq!(unknown.code, "not-found");

    let plugin = component(guests::MISBEHAVE).limit("wall", "100ms").start().await.unwrap();
    assert_eq!(plugin.call("hang", json!({})).await.unwrap_err().code, "deadline");

    let ungranted = component(guests::CALLER).grant("tools", ["*"]).start().await;
    let said = ungranted.err().expect("it imports more").to_string();
    assert!(said.contains("is not granted; request it in plugin.toml with"), "{said}");
    let missing = component("nowhere.wasm").start().await.err().unwrap().to_string();
    assert!(missing.contains("nowhere.wasm"), "{missing}");
    let wrong = component(guests::HELLO).limit("wal", "1s").start().await.err().unwrap();
    assert!(wrong.to_string().contains("wal"), "{wrong}");
}

#[tokio::test]
async fn without_the_command_it_is_said_how_to_name_it() {
    let missing = component(guests::HELLO).command("/no/such/tenon").start().await.err().unwrap();
    assert!(matches!(missing, StartError::NoCommand { .. }), "{missing}");
    assert!(missing.to_string().contains("variable TENON"), "{missing}");
    // It ends without a word, and it says something else.
    for other in ["true", "cat"] {
        let other = component(guests::HELLO).command(other).start().await.err().unwrap();
        assert!(matches!(other, StartError::OtherVersion { .. }), "{other}");
    }
}

#[tokio::test]
async fn hooks_strategies_and_models_are_asked() {
    let hooks = component(guests::REDACT).config(json!({ "prefixes": ["corp_"] }));
    let hooks = hooks.start().await.unwrap();
    let context = json!({ "message": "corp_0123456789ab" });
    let report = hooks.hook("message-sending", context).await.unwrap();
    assert_eq!(report.context["message"], "[redacted]");
    assert_eq!((report.veto, report.error), (None, None));
    assert_eq!(hooks.hook("no-point", json!({})).await.unwrap_err().code, "invalid-input");

    let (guard, _folder) = script(r#"hook("before-tool-call", |c| veto("not today"));"#);
    let guard = guard.start().await.unwrap();
    let report = guard.hook("before-tool-call", json!({ "tool": "x", "arguments": {} })).await;
    assert_eq!(report.unwrap().veto.as_deref(), Some("not today"));

    let evals = component(guests::CHECKS).start().await.unwrap();
    let subject = json!({ "output": "a", "expected": "a" });
    assert_eq!(evals.evaluate("exact", subject, json!({})).await.unwrap().score, 1.0);

    let provider = component(guests::ECHO_PROVIDER).start().await.unwrap();
    let messages = json!([{ "role": "user", "content": "say this" }]);
    let request = json!({ "model": "echo", "messages": messages });
    let completion = provider.complete(request).await.unwrap();
    assert_eq!(completion["parts"][0]["text"], "say this");
}

#[tokio::test]
async fn the_test_answers_for_the_user_the_default_model_and_the_web() {
    let plugin = component(guests::EVERYTHING_RUST)
        .grant("state", ["project"])
        .user(|form| match form.message.as_str() {
            "no" => FormAnswer::Declined,
            _ => FormAnswer::accept([("username", "ada")]),
        })
        .default_model(|request| match request["messages"][0]["content"][0]["text"].as_str() {
            Some("no") => Err("the user refuses".into()),
            _ => Ok("Paris".into()),
        })
        .start()
        .await
        .unwrap();
    for (message, answer) in
        [("who?", "User response: accept, ada, "), ("no", "User response: decline")]
    {
        let result = plugin.call("test_elicitation", json!({ "message": message })).await;
        assert_eq!(result.unwrap().plain_text(), answer);
    }
    let forms = plugin.forms();
    let asked: Vec<&str> = forms.iter().map(|form| form.message.as_str()).collect();
    assert_eq!(asked, ["who?", "no"]);
    assert_eq!(forms[0].schema["required"], json!(["username"]));

    let result = plugin.call("test_sampling", json!({ "prompt": "Capital?" })).await.unwrap();
    assert_eq!(result.plain_text(), "LLM response: Paris");
    let refused = plugin.call("test_sampling", json!({ "prompt": "no" })).await.unwrap_err();
    assert!(refused.to_string().contains("the user refuses"), "{refused}");
    assert_eq!(plugin.model_requests()[0]["maxTokens"], 100);

    let (script, _folder) = script(
        r#"tool(#{ name: "pay", description: "d" }, |a| ask_url("Pay", "https://pay.example.com/17"));"#,
    );
    let script = script.pages(|_| UrlAnswer::Accepted).start().await.unwrap();
    assert_eq!(script.call("pay", json!({})).await.unwrap().plain_text(), "true");
    assert_eq!(script.pages()[0].url, "https://pay.example.com/17");

    let fetch = component(guests::FETCH)
        .grant("network", ["https://api.example.com/*"])
        .http([HttpAnswer::new("https://api.example.com/*").json(&json!({ "degrees": 21 }))])
        .start()
        .await
        .unwrap();
    let url = "https://api.example.com/v1";
    let fetched = fetch.call("fetch", json!({ "url": url })).await.unwrap();
    assert!(fetched.plain_text().contains("21"), "{fetched:?}");
    let requests = fetch.http_requests().await.unwrap();
    assert_eq!((&*requests[0].url, requests[0].was_answered), (url, true));
}

/// Asks the web, a tool and a model.
const ASKS: &str = r#"tool(#{ name: "report", description: "d" }, |a| {
    let page = http_get(`https://api.example.com/v1?key=${config("key")}`);
    let slug = call_tool("text_tools__slug", #{ text: page.body });
    `${slug}, ${page.headers["x-kind"]}: ${complete("default", slug)}`
});
tool(#{ name: "other", description: "d" }, |a| http_get("https://api.example.com/other").body);"#;

fn asking() -> (Harness, tempfile::TempDir) {
    let (harness, folder) = script(ASKS);
    let harness = harness
        .secret("key", "s3cret-of-the-test")
        .config(json!({ "key": "s3cret-of-the-test" }))
        .grant("network", ["https://api.example.com/*"])
        .grant("tools", ["text_tools__*"])
        .grant("providers", ["default"]);
    (harness, folder)
}

#[tokio::test]
async fn what_others_answer_is_recorded_and_played_to_later_tests() {
    let cassettes = tempfile::TempDir::new().unwrap();
    let name = cassettes.path().join("report");
    let name = name.to_str().unwrap();
    let (harness, _folder) = asking();
    let answer = HttpAnswer::new("https://api.example.com/*").header("x-kind", "page");
    let recording = harness
        .http([answer.header("set-cookie", "sid=17").body("Hello S3cret-of-the-test")])
        .beside(guests::TEXT_TOOLS)
        .default_model(|_| Ok("fine".into()))
        .record(name);
    let recording = recording.start().await.unwrap();
    let report = recording.call("report", json!({})).await.unwrap().plain_text();
    assert_eq!(report, "hello-[redacted], page: fine");
    assert_eq!(recording.unplayed_calls().await.unwrap(), [""; 0]);
    recording.shutdown().await;
    let kept = fs::read_to_string(cassettes.path().join("report.json")).unwrap();
    for leak in ["s3cret-of-the-test", "sid=17"] {
        assert!(!kept.contains(leak), "{kept}");
    }
    let calls =
        ["GET https://api.example.com/v1?key=[redacted]", "tool text_tools__slug", "model default"];
    for call in calls {
        assert!(kept.contains(&format!("\"call\": \"{call}\"")), "{kept}");
    }

    let (harness, _folder) = asking();
    // Nobody else is there.
    let playing = harness.replay(name).start().await.unwrap();
    assert_eq!(playing.unplayed_calls().await.unwrap(), calls);
    let report = playing.call("report", json!({})).await.unwrap().plain_text();
    assert_eq!(report, "hello-[redacted], page: fine");
    assert_eq!(playing.unplayed_calls().await.unwrap(), [""; 0]);
    for (tool, problem) in [("report", "it has this call 1 times only"), ("other", "no such call")]
    {
        let refused = playing.call(tool, json!({})).await.unwrap();
        assert!(refused.is_error && refused.plain_text().contains(problem), "{refused:?}");
    }

    let (harness, _folder) = asking();
    let none = harness.replay("none").start().await.err().unwrap().to_string();
    assert!(none.contains("cassettes/none.json: record it first"), "{none}");
    fs::write(cassettes.path().join("report.json"), "{\"version\":2,\"calls\":[]}").unwrap();
    let (harness, _folder) = asking();
    let other = harness.replay(name).start().await.err().unwrap().to_string();
    assert!(other.contains("is no cassette of version 1: it is of version 2"), "{other}");
}

#[tokio::test]
async fn requests_of_components_are_recorded_and_played() {
    let cassettes = tempfile::TempDir::new().unwrap();
    let name = cassettes.path().join("page");
    let name = name.to_str().unwrap();
    let fetch = || component(guests::FETCH).grant("network", ["https://api.example.com/*"]);
    let call = json!({ "url": "https://api.example.com/v1" });
    let answer = HttpAnswer::new("https://api.example.com/v1").body(vec![0xff, b'2', b'1']);
    let recording = fetch().http([answer]).record(name).start().await.unwrap();
    let recorded = recording.call("fetch", call.clone()).await.unwrap();
    // That there is no answer is one as well.
    let missing = json!({ "url": "https://api.example.com/v2" });
    let failed = recording.call("fetch", missing.clone()).await.unwrap_err();
    recording.shutdown().await;
    let playing = fetch().replay(name).start().await.unwrap();
    let played = playing.call("fetch", call).await.unwrap();
    assert_eq!(played.structured, recorded.structured);
    let failed_again = playing.call("fetch", missing).await.unwrap_err();
    assert_eq!(failed_again.code, failed.code);
    // What was not granted is not, whatever was recorded.
    let elsewhere = json!({ "url": "https://other.example.com/" });
    let refused = playing.call("fetch", elsewhere).await.unwrap_err().to_string();
    assert!(refused.contains("is not granted"), "{refused}");
}

#[tokio::test]
async fn resources_prompts_and_suggestions_are_asked_for() {
    let plugin = component(guests::EVERYTHING_RUST)
        .grant("state", ["project"])
        .grant("user", ["ask"])
        .grant("providers", ["default"])
        .start()
        .await
        .unwrap();
    let listed = plugin.resources().await.unwrap();
    assert!(listed.iter().any(|listed| listed.link.uri == "test://static-text"), "{listed:?}");
    let templates = plugin.resource_templates().await.unwrap();
    let template = CompletionReference::ResourceTemplate(templates[0].uri_template.clone());
    let read = plugin.read_resource("test://static-text").await.unwrap();
    let ResourceBody::Text(text) = &read[0].body else { panic!("{read:?}") };
    assert_eq!(text, "This is the content of the static text resource.");
    assert!(plugin.read_resource("test://nowhere").await.is_err());

    let prompts = plugin.prompts().await.unwrap();
    assert!(prompts.iter().any(|prompt| prompt.name == "test_simple_prompt"), "{prompts:?}");
    let name = "test_prompt_with_arguments";
    let filled_in = plugin.prompt(name, &[("arg1", "a"), ("arg2", "b")]).await.unwrap();
    assert!(format!("{filled_in:?}").contains("arg1='a', arg2='b'"), "{filled_in:?}");
    let prompt = CompletionReference::Prompt(name.into());
    for (reference, argument, typed, expected) in
        [(prompt, "arg1", "par", "paris"), (template, "id", "2", "200")]
    {
        let argument = ArgumentCompletion::new(reference, argument, typed);
        assert_eq!(plugin.suggest(argument).await.unwrap().values[0], expected);
    }
}

#[tokio::test]
async fn state_is_set_before_a_run_and_found_by_the_next_one() {
    let kept = tempfile::TempDir::new().unwrap();
    let text = r#"tool(#{ name: "add", description: "d", schema: #{ type: "object" } }, |a| {
        state.update("words", |words| { words.push(a.word); words })
    });"#;
    let run = async |word: &str, before: Option<Value>| {
        let (script, _folder) = script(text);
        let script = script.grant("state", ["project"]).state_folder(kept.path());
        let script = match before {
            Some(before) => script.state(Scope::Project, "words", before),
            None => script,
        };
        let plugin = script.start().await.unwrap();
        plugin.call("add", json!({ "word": word })).await.unwrap();
        let words = plugin.state(Scope::Project, "words").await.unwrap().unwrap();
        assert_eq!(plugin.state(Scope::User, "words").await.unwrap(), None);
        assert_eq!(plugin.state_keys(Scope::Project).await.unwrap(), ["words"]);
        plugin.set_state(Scope::User, "other", json!(1)).await.unwrap();
        plugin.shutdown().await;
        words
    };
    assert_eq!(run("on", Some(json!(["ten"]))).await, json!(["ten", "on"]));
    assert_eq!(run("s", None).await, json!(["ten", "on", "s"]));
}

#[tokio::test]
async fn a_script_is_told_the_time_of_the_test_and_keeps_it_for_its_session() {
    let (script, _folder) = script(
        r#"tool(#{ name: "mark", description: "d" }, |a| {
            let last = state.get("last");
            state.set("last", now());
            if last == () { "never" } else { `${timestamp() - parse_time(last)}` }
        });"#,
    );
    let script = script.grant("state", ["session"]).clock("2026-01-31T08:30:00Z");
    let plugin = script.start().await.unwrap();
    let monday = plugin.in_session("monday");
    assert_eq!(monday.call("mark", json!({})).await.unwrap().plain_text(), "never");
    plugin.advance_clock(Duration::from_secs(3 * 60 * 60)).await.unwrap();
    assert_eq!(monday.call("mark", json!({})).await.unwrap().plain_text(), "3h");
    let last = plugin.state(Scope::Session("monday".into()), "last").await.unwrap();
    assert_eq!(last, Some(json!("2026-01-31T11:30:00Z")));
    let of_none = plugin.call("mark", json!({})).await.unwrap();
    assert!(of_none.is_error && of_none.plain_text().contains("no session"), "{of_none:?}");
}

#[tokio::test]
async fn a_plugin_finds_its_files_variables_secrets_and_neighbours() {
    let folder = tempfile::TempDir::new().unwrap();
    fs::write(folder.path().join("escape.wasm"), fs::read(guests::ESCAPE).unwrap()).unwrap();
    let manifest = "plugin.id = \"own\"\nruntime = { kind = \"wasm\", path = \"escape.wasm\" }\n";
    fs::write(folder.path().join("plugin.toml"), manifest).unwrap();
    // What it keeps of the user is in this folder.
    let command = folder.path().join("command");
    let program = format!(
        "#!/bin/sh\nexport XDG_CACHE_HOME={0}/cache XDG_STATE_HOME={0}/state\nexec {1} \"$@\"\n",
        folder.path().display(),
        tenon().display()
    );
    fs::write(&command, program).unwrap();
    fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
    let plugin = Harness::folder(folder.path())
        .command(&command)
        .grant("filesystem", ["read:~/notes/*"])
        .grant("environment", ["SEEN"])
        .environment("SEEN", "by the plugin")
        .environment("HIDDEN", "from the plugin")
        .file("notes/a.txt", "from the test")
        .start()
        .await
        .unwrap();
    let seen = plugin.call("environment", json!({})).await.unwrap().plain_text();
    assert!(seen.contains("by the plugin") && !seen.contains("HIDDEN"), "{seen}");
    let roots = plugin.call("roots", json!({})).await.unwrap().plain_text();
    let path = format!("{}/a.txt", roots.split(' ').next().unwrap());
    let read = json!({ "edition": "std", "deed": "read", "path": path });
    let read = plugin.call("attempt", read).await.unwrap();
    assert_eq!(read.plain_text(), "ok from the test");
    let compiled = compiled_in(&folder.path().join("cache/tenon/components"));
    assert_eq!(compiled.len(), 1, "another test finds it compiled");

    let plugin = component(guests::CALLER)
        .shared()
        .beside(guests::TEXT_TOOLS)
        .grant("tools", ["text_tools__slug"])
        .grant("providers", ["none"])
        .grant("messaging", ["*"])
        .grant("memory", ["search"])
        .secret("api-key", "s3cret-of-the-test")
        .start()
        .await
        .unwrap();
    let secret = plugin.call("secret", json!({ "name": "api-key", "plain": false })).await;
    assert!(secret.unwrap().plain_text().starts_with("s 3 c"));
}

#[tokio::test]
async fn calls_are_in_flight_together_and_a_lost_host_is_told() {
    let (script, _folder) = script(
        r#"tool(#{ name: "ask", description: "d" }, |a| ask("?", #{ properties: #{ x: #{ type: "string" } } }).x);"#,
    );
    let (entered, asked) = std::sync::mpsc::channel();
    let script = script.user(move |_| {
        entered.send(()).unwrap();
        FormAnswer::accept([("x", "y")])
    });
    let plugin = script.start().await.unwrap();
    let calls = (0..8).map(|_| plugin.call("ask", json!({})));
    for result in futures::future::join_all(calls).await {
        assert_eq!(result.unwrap().plain_text(), "y");
    }
    assert_eq!(asked.try_iter().count(), 8);
    let other = plugin.clone();
    plugin.shutdown().await;
    assert_eq!(other.call("ask", json!({})).await.unwrap_err().code, "lost");
}

#[tokio::test]
async fn an_mcp_server_is_a_plugin_as_well() {
    let server = Harness::server(DEMO_SERVER, [""; 0]).command(tenon());
    let server = server.start().await.unwrap();
    let said = server.call("echo", json!({ "text": "hi" })).await.unwrap();
    assert!(said.plain_text().contains("hi"), "{said:?}");
    server.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_done_is_answered_and_the_plugin_goes_on() {
    let (script, _folder) = script(r#"tool(#{ name: "one", description: "d" }, |a| 1);"#);
    let plugin = script.start().await.unwrap();
    let long = "k".repeat(5_000);
    let refused = plugin.set_state(Scope::User, &long, json!(1)).await.unwrap_err();
    assert_eq!(refused.code, "invalid-input");
    assert_eq!(plugin.call("one", json!({})).await.unwrap().plain_text(), "1");
    let (script, _folder) = self::script("");
    let refused = script.state(Scope::User, long, json!(1)).start().await.err().unwrap();
    assert!(matches!(&refused, StartError::Refused(_)), "{refused}");
}

/// What the command says to these requests, after which its input ends.
fn said_to(requests: &[Value]) -> Vec<Value> {
    let mut command = std::process::Command::new(tenon());
    let mut child = command
        .arg("harness")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    for line in requests {
        writeln!(child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The request to start a plugin.
fn start(plugin: PluginSource) -> Value {
    json!({ "id": 1, "method": "start", "params": Setup::new(plugin) })
}

#[test]
fn calls_in_flight_are_answered_when_the_host_ends() {
    let said = said_to(&[
        start(PluginSource::Component(guests::MISBEHAVE.into())),
        json!({ "id": 2, "method": "call", "params": { "tool": "hang", "arguments": {}, "session": null } }),
        json!({ "id": 3, "method": "shutdown", "params": {} }),
    ]);
    let ids: Vec<&Value> = said.iter().map(|line| &line["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2), &json!(3)], "{said:?}");
    assert!(said[1]["error"]["code"].is_string(), "{said:?}");
    assert!(said[2].get("error").is_none(), "{said:?}");
}

#[test]
fn a_host_ends_with_its_input_while_a_plugin_starts() {
    let arguments = vec!["600".into()];
    let said = said_to(&[start(PluginSource::Server { command: "/bin/sleep".into(), arguments })]);
    // It neither failed nor started.
    assert_eq!(said, Vec::<Value>::new());
}

#[test]
fn another_version_and_unknown_requests_are_told_by_their_ids() {
    let said = said_to(&[
        json!({ "id": 1, "method": "start", "params": { "protocol": 9, "other": true } }),
        json!({ "id": 2, "method": "dance", "params": {} }),
        json!({ "id": 3, "method": "prompts", "params": {} }),
    ]);
    let ids: Vec<&Value> = said.iter().map(|line| &line["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2), &json!(3)]);
    assert!(said.iter().all(|line| line["error"]["code"] == "protocol"), "{said:?}");
    assert!(said[0]["error"]["message"].as_str().unwrap().contains("and the test 9"), "{said:?}");
}
