//! One client over a pair of streams.

use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use tenon_host::runs::RunState;
use tenon_serve::{Profile, ToolMode};

use super::{initialize, legacy, meta, modern, project, server, server_with, text};
use crate::support::{DEMO_SERVER, MODERN_SERVER, Project};

/// A client, and the server that it talks to.
struct Client {
    input: Option<WriteHalf<DuplexStream>>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<std::io::Result<()>>,
    _project: Project,
}

impl Client {
    async fn new(project: Project) -> Self {
        let (server, _) = server(&project).await;
        Self::of(project, server)
    }

    fn of(project: Project, server: tenon_serve::Server) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let (input, output) = tokio::io::split(theirs);
            let stop = async {
                let _ = stopped.await;
            };
            server.serve_lines(None, BufReader::new(input), output, stop).await
        });
        let (output, input) = tokio::io::split(ours);
        let output = BufReader::new(output).lines();
        Self { input: Some(input), output, stop: Some(stop), serving, _project: project }
    }

    async fn send(&mut self, message: impl ToString) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(format!("{}\n", message.to_string()).as_bytes()).await.unwrap();
    }

    /// The next message; nothing at the end.
    async fn next(&mut self) -> Option<Value> {
        let line = timeout(Duration::from_secs(60), self.output.next_line()).await;
        let line = line.expect("there is a message").expect("it can be read")?;
        Some(serde_json::from_str(&line).expect("it is JSON"))
    }

    /// The answer to a request, and what was told before it.
    async fn told(&mut self, id: u64) -> (Vec<Value>, Value) {
        let mut told = Vec::new();
        loop {
            let message = self.next().await.expect("there is an answer");
            match message.get("method").is_none() && message["id"] == id {
                true => return (told, message),
                false => told.push(message),
            }
        }
    }

    async fn ask(&mut self, request: Value) -> Value {
        let id = request["id"].as_u64().expect("it is a request");
        self.send(request).await;
        self.told(id).await.1
    }

    /// The next message of a method.
    async fn hear(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await.expect("there is more");
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Begins a session.
    async fn begin(&mut self) {
        let capabilities = json!({ "elicitation": {}, "sampling": {} });
        let begun = self.ask(initialize(1000, capabilities)).await;
        assert_eq!(begun["result"]["protocolVersion"], "2025-11-25");
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    }

    /// Closes the input. Gives what comes until the end.
    async fn end(mut self) -> Vec<Value> {
        let mut input = self.input.take().expect("it is open");
        input.shutdown().await.unwrap();
        drop(input);
        let mut rest = Vec::new();
        while let Some(message) = self.next().await {
            rest.push(message);
        }
        self.serving.await.expect("it does not panic").expect("it ends well");
        rest
    }
}

#[tokio::test]
async fn both_eras_are_spoken_on_one_stream() {
    let mut client = Client::new(project()).await;
    let discovered = client.ask(modern(1, "server/discover", json!({}))).await;
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap();
    assert_eq!((versions.len(), &versions[0]), (5, &json!("2026-07-28")));
    // No session is needed for what stands for itself, and there is none for the rest.
    let listed = client.ask(modern(2, "tools/list", json!({}))).await["result"].clone();
    assert_eq!(
        (&listed["resultType"], &listed["cacheScope"]),
        (&json!("complete"), &json!("public"))
    );
    for result in [&discovered["result"], &listed] {
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "tenon");
    }
    let early = client.ask(legacy(3, "tools/list", json!({}))).await;
    assert_eq!(early["error"]["code"], -32600);
    assert_eq!(client.ask(legacy(4, "ping", json!({}))).await["result"], json!({}));
    client.begin().await;
    let of_session = client.ask(legacy(5, "tools/list", json!({}))).await["result"].clone();
    assert_eq!(of_session["tools"], listed["tools"]);
    assert_eq!(of_session.as_object().unwrap().len(), 1, "{of_session}");
    let names: Vec<_> =
        listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    for name in ["test_simple_text", "test_custom_header", "echo"] {
        assert!(names.contains(&&json!(name)), "{names:?}");
    }
    // A kind of plugin each.
    let said = "This is a simple text response for testing.";
    for (id, name, arguments, expected) in [
        (6, "test_simple_text", json!({}), said),
        (7, "test_custom_header", json!({ "value": "v" }), "The value is v"),
        (8, "echo", json!({ "text": "hello" }), "hello"),
    ] {
        let call = json!({ "name": name, "arguments": arguments });
        assert_eq!(text(&client.ask(modern(id, "tools/call", call.clone())).await), expected);
        assert_eq!(text(&client.ask(legacy(id + 10, "tools/call", call)).await), expected);
    }
    assert_eq!(client.end().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_legacy_client_is_asked_in_the_middle_of_its_call() {
    let mut client = Client::new(project()).await;
    client.begin().await;
    let call = json!({ "name": "test_elicitation", "arguments": { "message": "Who?" } });
    client.send(legacy(1, "tools/call", call)).await;
    let asked = client.hear("elicitation/create").await;
    assert_eq!(asked["params"]["message"], "The plugin \"everything\" asks: Who?");
    let answer = json!({ "action": "accept", "content": { "username": "ada", "email": "a@b.c" } });
    client.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
    let (_, answered) = client.told(1).await;
    assert_eq!(text(&answered), "User response: accept, ada, a@b.c");
    let call = json!({ "name": "test_input_required_result_sampling" });
    client.send(legacy(2, "tools/call", call)).await;
    let asked = client.hear("sampling/createMessage").await;
    let message = &asked["params"]["messages"][0]["content"]["text"];
    assert_eq!(message, "What is the capital of France?");
    let answer = json!({ "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "m" });
    client.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
    assert_eq!(text(&client.told(2).await.1), "Paris");
    client.end().await;
}

#[tokio::test]
async fn a_call_of_a_modern_client_waits_for_its_answers() {
    let mut client = Client::new(project()).await;
    let call = |input: Value| {
        let mut params = json!({ "name": "test_input_required_result_multi_round" });
        params.as_object_mut().unwrap().extend(input.as_object().unwrap().clone());
        params
    };
    let first = client.ask(modern(1, "tools/call", call(json!({})))).await["result"].clone();
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(first["inputRequests"]["step1"]["method"], "elicitation/create");
    let answer = |key: &str, member: &str, value: &str, state: &Value| {
        let content = json!({ member: value });
        call(json!({
            "inputResponses": { key: { "action": "accept", "content": content } }, "requestState": state,
        }))
    };
    let state = &first["requestState"];
    // For another call, or changed, the state is worth nothing, and the call goes on waiting.
    let mut other = answer("step1", "name", "Ada", state);
    other["arguments"] = json!({ "x": 1 });
    assert_eq!(client.ask(modern(2, "tools/call", other)).await["error"]["code"], -32602);
    let forged = json!(format!("{}-TAMPERED", state.as_str().unwrap()));
    let forged = answer("step1", "name", "Ada", &forged);
    assert_eq!(client.ask(modern(3, "tools/call", forged)).await["error"]["code"], -32602);
    // An answer that is none is asked for again.
    let wrong = call(json!({ "inputResponses": { "step1": 3 }, "requestState": state }));
    let again = client.ask(modern(4, "tools/call", wrong)).await["result"].clone();
    assert_eq!(again["inputRequests"], first["inputRequests"]);
    let used = answer("step1", "name", "Ada", state);
    assert_eq!(client.ask(modern(5, "tools/call", used)).await["error"]["code"], -32602);
    let good = answer("step1", "name", "Ada", &again["requestState"]);
    let second = client.ask(modern(6, "tools/call", good)).await["result"].clone();
    assert_eq!(second["inputRequests"].as_object().unwrap().len(), 1);
    let last = answer("step2", "color", "blue", &second["requestState"]);
    assert_eq!(text(&client.ask(modern(7, "tools/call", last)).await), "Ada likes blue");
    // A client that declares nothing is told what it takes.
    let mut undeclared = modern(8, "tools/call", call(json!({})));
    undeclared["params"]["_meta"] = meta(json!({}));
    let error = client.ask(undeclared).await["error"].clone();
    assert_eq!(error["code"], -32021);
    assert_eq!(error["data"]["requiredCapabilities"], json!({ "elicitation": { "form": {} } }));
    client.end().await;
}

/// A client of a server that asks before the tool `echo` is called.
async fn careful_client() -> Client {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"demo\", command = {DEMO_SERVER:?} }}]\ntools.demo__echo.approve = \"ask\""
    ));
    let (server, _) = server(&project).await;
    Client::of(project, server)
}

fn echo() -> Value {
    json!({ "name": "echo", "arguments": { "text": "hello\u{202e}" } })
}

#[tokio::test]
async fn the_user_of_a_legacy_client_approves_a_call() {
    let mut client = careful_client().await;
    client.begin().await;
    let asked = "Tenon asks whether the tool demo__echo of the plugin \"demo\" may be called.";
    for (id, action, decision, expected) in [
        (1, "accept", "approve this call", "hello\\u{202e}"),
        (2, "accept", "deny", "the tool demo__echo was denied"),
        (3, "decline", "approve this call", "the tool demo__echo was denied"),
        (4, "cancel", "", "the tool demo__echo was denied: its user did not answer"),
        (5, "accept", "approve it for this session", "hello\\u{202e}"),
    ] {
        client.send(legacy(id, "tools/call", echo())).await;
        let request = client.hear("elicitation/create").await;
        let message = request["params"]["message"].as_str().unwrap();
        assert!(message.starts_with(asked) && message.contains("hello\\u202e"), "{message}");
        let answer = json!({ "action": action, "content": { "decision": decision } });
        client.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": answer })).await;
        let (_, answered) = client.told(id).await;
        assert_eq!(text(&answered), expected, "{action} {decision}");
    }
    // The session has approved it.
    assert_eq!(text(&client.ask(legacy(6, "tools/call", echo())).await), "hello\\u{202e}");
    client.end().await;
}

#[tokio::test]
async fn the_user_of_a_modern_client_approves_a_call() {
    let mut client = careful_client().await;
    // Nobody approves what was not asked.
    let mut early = echo();
    let answer = json!({ "action": "accept", "content": { "decision": "approve this call" } });
    early["inputResponses"] = json!({ "question-1": answer });
    let asked = client.ask(modern(3, "tools/call", early)).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let asked = client.ask(modern(1, "tools/call", echo())).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let schema = &request["params"]["requestedSchema"]["properties"]["decision"];
    assert_eq!(schema["enum"], json!(["approve this call", "approve it always", "deny"]));
    let mut answered = echo();
    let content = json!({ "decision": "approve this call" });
    answered["inputResponses"] = json!({ key: { "action": "accept", "content": content } });
    answered["requestState"] = asked["requestState"].clone();
    assert_eq!(text(&client.ask(modern(2, "tools/call", answered)).await), "hello\\u{202e}");
    client.end().await;
}

#[tokio::test]
async fn a_client_that_cannot_ask_is_told_which_approval_its_call_waits_for() {
    let mut client = careful_client().await;
    let mut unable = modern(1, "tools/call", echo());
    unable["params"]["_meta"] = meta(json!({}));
    let answered = client.ask(unable).await;
    let error = &answered["result"]["_meta"]["tenon/error"];
    assert_eq!(
        (&answered["result"]["isError"], &error["code"]),
        (&json!(true), &json!("approval-required"))
    );
    let id = error["approval"].as_str().unwrap();
    assert!(text(&answered).contains(&format!("`tenon approve {id}` approves it")), "{answered}");
    client.end().await;
}

/// A client with a profile that offers tools so.
async fn client_with(mode: ToolMode, configuration: &str) -> Client {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"demo\", command = {DEMO_SERVER:?} }}]\n{configuration}"
    ));
    let change = |settings: &mut tenon_serve::Settings| {
        *settings = tenon_serve::Settings::with_profile(Profile { mode, ..Profile::default() });
    };
    let (server, _) = server_with(&project, change).await;
    Client::of(project, server)
}

/// The names of the tools that are listed.
async fn listed(client: &mut Client) -> Vec<String> {
    let listed = client.ask(modern(1000, "tools/list", json!({}))).await;
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_string()).collect()
}

/// The result of a tool.
async fn use_tool(client: &mut Client, id: u64, name: &str, arguments: Value) -> Value {
    let call = json!({ "name": name, "arguments": arguments });
    client.ask(modern(id, "tools/call", call)).await
}

#[tokio::test]
async fn a_profile_that_searches_lists_two_tools_and_calls_any() {
    let mut client = client_with(ToolMode::Search, "").await;
    assert_eq!(listed(&mut client).await, ["search", "call"]);
    let found =
        use_tool(&mut client, 1, "search", json!({ "query": "say the same text again" })).await;
    assert!(text(&found).contains("demo__echo(text?: string|null)"), "{found}");
    let known = use_tool(&mut client, 2, "search", json!({ "query": "demo__echo" })).await;
    let known: Value = serde_json::from_str(text(&known)).unwrap();
    assert_eq!(
        (&known["name"], &known["arguments"]["type"]),
        (&json!("demo__echo"), &json!("object"))
    );
    let call = json!({ "name": "demo__echo", "arguments": { "text": "hello" } });
    assert_eq!(text(&use_tool(&mut client, 3, "call", call).await), "hello");
    for (id, name, arguments, expected) in [
        (
            4,
            "call",
            json!({ "name": "demo__none" }),
            "there is no tool \"demo__none\"; `search` finds tools",
        ),
        (5, "call", json!({}), "`name` has to be the name of a tool"),
        (6, "search", json!({}), "`query` has to be a text"),
        (
            9,
            "search",
            json!({ "query": "a", "limit": 51 }),
            "`limit` has to be an integer from 1 to 50",
        ),
        (10, "search", json!({ "query": "a", "limit": "2" }), "`limit` has to be an integer"),
        (
            11,
            "search",
            json!({ "query": "a", "limt": 2 }),
            "no argument \"limt\"; did you mean `limit`?",
        ),
    ] {
        let answered = use_tool(&mut client, id, name, arguments).await;
        assert_eq!(answered["result"]["isError"], true, "{answered}");
        assert!(text(&answered).contains(expected), "{answered}");
    }
    // What is not listed is not there.
    for (id, name) in [(7, "demo__echo"), (8, "run")] {
        assert_eq!(use_tool(&mut client, id, name, json!({})).await["error"]["code"], -32602);
    }
    client.end().await;
}

#[tokio::test]
async fn a_profile_of_code_runs_scripts_that_call_tools() {
    let mut client = client_with(ToolMode::Code, "").await;
    assert_eq!(listed(&mut client).await, ["search", "run"]);
    let found = use_tool(&mut client, 1, "search", json!({ "query": "text" })).await;
    assert!(text(&found).contains("demo.echo(#{ text?: string|null })"), "{found}");
    let script = "print(\"begun\"); parallel(data.map(|word| || demo.echo(#{ text: word })))";
    let ran =
        use_tool(&mut client, 2, "run", json!({ "script": script, "data": ["a", "b"] })).await;
    assert_eq!(text(&ran), r#"["a","b"]"#);
    assert_eq!(ran["result"]["content"][1]["text"], "printed:\nbegun");
    assert_eq!(ran["result"]["_meta"]["tenon/run"]["usage"]["calls"], 2);
    for (id, arguments, code, expected) in [
        (3, json!({ "script": "demo.ehco(#{})" }), "invalid-script", "did you mean `echo`?"),
        (
            4,
            json!({ "script": "demo.echo(#{ text: \"a\" }); throw \"no\"" }),
            "failed",
            "script:1:28: no\n  1 | demo.echo(#{ text: \"a\" }); throw \"no\"\nCalled before: demo__echo",
        ),
        (5, json!({ "resume": "R-000000000000" }), "not-found", "there is no run"),
        (
            6,
            json!({ "script": "1", "resume": "R-000000000000" }),
            "invalid-input",
            "it takes a `script`",
        ),
        (7, json!({}), "invalid-input", "it takes a `script`"),
        (
            10,
            json!({ "resume": "R-000000000000", "data": 1 }),
            "invalid-input",
            "a run that is resumed has its `data` already",
        ),
        (8, json!({ "script": "loop {}" }), "limit", "it took 10000000 operations"),
    ] {
        let answered = use_tool(&mut client, id, "run", arguments).await;
        assert_eq!(answered["result"]["_meta"]["tenon/error"]["code"], code, "{answered}");
        assert!(text(&answered).contains(expected), "{answered}");
    }
    assert_eq!(use_tool(&mut client, 9, "demo__echo", json!({})).await["error"]["code"], -32602);
    client.end().await;
}

#[tokio::test]
async fn a_run_of_a_client_pauses_and_is_resumed() {
    let mut client = client_with(ToolMode::Code, "tools.demo__echo.approve = \"ask\"").await;
    let script = json!({ "script": "demo.echo(#{ text: \"hello\" })" });
    let call = json!({ "name": "run", "arguments": script });
    let mut unable = modern(1, "tools/call", call.clone());
    unable["params"]["_meta"] = meta(json!({}));
    let paused = client.ask(unable).await;
    let meta_of = |answer: &Value, key: &str| answer["result"]["_meta"][key].clone();
    assert_eq!(meta_of(&paused, "tenon/error")["code"], "approval-required");
    let id = meta_of(&paused, "tenon/run")["id"].as_str().unwrap().to_string();
    assert!(
        text(&paused).contains(&format!("call `run` with {{\"resume\": \"{id}\"}}")),
        "{paused}"
    );
    // One whose user can be asked is asked, and the run goes on.
    let resume = json!({ "name": "run", "arguments": { "resume": id } });
    let asked = client.ask(modern(2, "tools/call", resume.clone())).await["result"].clone();
    let (key, _) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let mut answered = resume;
    let content = json!({ "decision": "approve this call" });
    answered["inputResponses"] = json!({ key: { "action": "accept", "content": content } });
    answered["requestState"] = asked["requestState"].clone();
    assert_eq!(text(&client.ask(modern(3, "tools/call", answered)).await), "hello");
    client.end().await;
}

#[tokio::test]
async fn a_run_that_waits_for_its_user_pauses_when_the_server_ends() {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"demo\", command = {DEMO_SERVER:?} }}]\ntools.demo__echo.approve = \"ask\""
    ));
    let code = Profile { mode: ToolMode::Code, ..Profile::default() };
    let change = |settings: &mut tenon_serve::Settings| settings.profile = code;
    let (server, platform) = server_with(&project, change).await;
    let mut client = Client::of(project, server.clone());
    let script = json!({ "script": "demo.echo(#{ text: \"hello\" })" });
    let run = json!({ "name": "run", "arguments": script });
    let asked = client.ask(modern(1, "tools/call", run)).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    server.end_waiting_calls().await;
    let runs = platform.runs().await.expect("the store works");
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert!(matches!(run.state, RunState::Paused { .. }), "{run:?}");
    client.end().await;
}

#[tokio::test]
async fn a_cancelled_request_gets_no_answer_and_others_do() {
    let mut client = Client::new(project()).await;
    client.begin().await;
    for (id, request) in [(1, legacy as fn(u64, &str, Value) -> Value), (2, modern)] {
        client.send(request(id, "tools/call", json!({ "name": "hang" }))).await;
        let cancelled = json!({ "requestId": id, "reason": "enough" });
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled });
        client.send(cancelled).await;
        client.send(request(10 + id, "tools/call", json!({ "name": "test_simple_text" }))).await;
        let (told, _) = client.told(10 + id).await;
        assert_eq!(told, Vec::<Value>::new());
        // The id is free again.
        client.ask(request(id, "tools/call", json!({ "name": "test_simple_text" }))).await;
    }
    assert_eq!(client.end().await, Vec::<Value>::new());
}

#[tokio::test]
async fn an_id_is_free_as_soon_as_it_is_answered() {
    let mut client = Client::new(project()).await;
    client.begin().await;
    for request in [legacy as fn(u64, &str, Value) -> Value, modern] {
        for _ in 0..200 {
            let call = json!({ "name": "test_simple_text" });
            let answered = client.ask(request(1, "tools/call", call)).await;
            assert!(answered.get("result").is_some(), "{answered}");
        }
    }
    client.end().await;
}

#[tokio::test]
async fn what_is_in_flight_is_answered_before_the_end() {
    let mut client = Client::new(project()).await;
    client.begin().await;
    client.send(legacy(1, "tools/call", json!({ "name": "test_tool_with_progress" }))).await;
    // Nobody answers this, and nobody waits for it.
    let asks = json!({ "name": "test_elicitation", "arguments": { "message": "Who?" } });
    client.send(legacy(2, "tools/call", asks)).await;
    client.send(modern(3, "subscriptions/listen", json!({ "notifications": {} }))).await;
    client.hear("elicitation/create").await;
    let rest = client.end().await;
    let answer =
        |id: u64| rest.iter().find(|message| message["id"] == id && message["method"].is_null());
    assert_eq!(text(answer(1).unwrap()), "Tool with progress executed successfully");
    assert_eq!(answer(2).unwrap()["result"]["isError"], true);
    assert_eq!(answer(3).unwrap()["result"], json!({ "resultType": "complete" }));
}

#[tokio::test]
async fn a_server_that_is_told_to_end_finishes_what_it_does() {
    let mut client = Client::new(project()).await;
    client.begin().await;
    let call = json!({ "name": "test_tool_with_progress", "_meta": { "progressToken": "t" } });
    client.send(legacy(1, "tools/call", call)).await;
    client.hear("notifications/progress").await;
    client.stop.take().unwrap().send(()).unwrap();
    let (_, answer) = client.told(1).await;
    assert_eq!(text(&answer), "Tool with progress executed successfully");
    assert_eq!(client.next().await, None);
}

#[tokio::test]
async fn progress_and_messages_come_before_the_answer() {
    let mut client = Client::new(project()).await;
    client.begin().await;
    let call = json!({ "name": "test_tool_with_progress", "_meta": { "progressToken": 7 } });
    client.send(legacy(1, "tools/call", call.clone())).await;
    let (told, _) = client.told(1).await;
    let progress: Vec<_> = told.iter().map(|told| &told["params"]["progress"]).collect();
    assert_eq!(progress, [0.0, 50.0, 100.0]);
    assert!(told.iter().all(|told| told["params"]["progressToken"] == 7), "{told:?}");
    client.send(legacy(2, "tools/call", json!({ "name": "test_tool_with_logging" }))).await;
    let (told, _) = client.told(2).await;
    let logged = |told: &Value| (told["params"]["level"].clone(), told["params"]["data"].clone());
    let logged: Vec<_> = told.iter().map(logged).collect();
    assert_eq!(logged[0], (json!("info"), json!("Tool execution started")));
    assert_eq!(logged.len(), 3);
    // Less is wanted, and without a token nothing is told.
    client.ask(legacy(3, "logging/setLevel", json!({ "level": "error" }))).await;
    for name in ["test_tool_with_logging", "test_tool_with_progress"] {
        client.send(legacy(4, "tools/call", json!({ "name": name }))).await;
        assert_eq!(client.told(4).await.0, Vec::<Value>::new());
    }
    // Each modern request says how much it wants; by default nothing.
    let mut logged = modern(5, "tools/call", json!({ "name": "test_tool_with_logging" }));
    client.send(&logged).await;
    assert_eq!(client.told(5).await.0, Vec::<Value>::new());
    logged["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    client.send(&logged).await;
    assert_eq!(client.told(5).await.0.len(), 3);
    client.end().await;
}

#[tokio::test]
async fn who_wants_to_know_is_told_of_changes() {
    let mut client = Client::new(project()).await;
    client.begin().await;
    client.ask(legacy(1, "resources/subscribe", json!({ "uri": "test://watched-resource" }))).await;
    client.ask(legacy(2, "tools/call", json!({ "name": "test_update_watched_resource" }))).await;
    let updated = client.hear("notifications/resources/updated").await;
    assert_eq!(updated["params"], json!({ "uri": "test://watched-resource" }));
    client
        .ask(legacy(3, "resources/unsubscribe", json!({ "uri": "test://watched-resource" })))
        .await;

    let wanted = json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["test://watched-resource", "test://none"] } });
    client.send(modern(4, "subscriptions/listen", wanted)).await;
    let acknowledged = client.hear("notifications/subscriptions/acknowledged").await;
    let accepted =
        json!({ "toolsListChanged": true, "resourceSubscriptions": ["test://watched-resource"] });
    assert_eq!(acknowledged["params"]["notifications"], accepted);
    let of_subscription = json!({ "io.modelcontextprotocol/subscriptionId": 4 });
    assert_eq!(acknowledged["params"]["_meta"], of_subscription);
    client.send(legacy(5, "tools/call", json!({ "name": "test_update_watched_resource" }))).await;
    let updated = client.hear("notifications/resources/updated").await;
    assert_eq!(updated["params"]["_meta"], of_subscription);
    client.send(legacy(6, "tools/call", json!({ "name": "test_trigger_tool_change" }))).await;
    // The session is told, too.
    let changed = [
        client.hear("notifications/tools/list_changed").await,
        client.hear("notifications/tools/list_changed").await,
    ];
    let tagged = changed.iter().filter(|change| change["params"]["_meta"] == of_subscription);
    assert_eq!(tagged.count(), 1, "{changed:?}");
    client.end().await;
}

#[tokio::test]
async fn what_is_wrong_is_refused_and_the_next_request_answered() {
    let (server, _) = {
        let project = project();
        let served = server_with(&project, |settings| settings.max_message = 4096).await;
        std::mem::forget(project);
        served
    };
    let mut client = Client::of(Project::new(""), server);
    client.begin().await;
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(5000));
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}1{}}}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    let rows: &[(&str, i64)] = &[
        ("{", -32700),
        ("nothing", -32700),
        ("[]", -32600),
        ("3", -32600),
        (&long, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"nothing/here"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/list"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing"}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#, -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"no:thing"}}"#,
            -32002,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"no:thing"}}"#,
            -32002,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"nothing"}}"#, -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"test_prompt_with_arguments"}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"nothing"},"argument":{"name":"a","value":""}}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"x"}}"#,
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"v9","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
            -32022,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
            -32601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_simple_text","requestState":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
            -32602,
        ),
    ];
    for (line, code) in rows {
        client.send(line).await;
        let error = client.next().await.unwrap();
        assert_eq!(error["error"]["code"], *code, "{line}: {error}");
        assert!(error.get("id").is_none_or(|id| *id == 1), "{error}");
        let next = client.ask(legacy(9, "ping", json!({}))).await;
        assert_eq!(next["result"], json!({}), "{line}");
    }
    // What is too deep for a reader is refused, whoever reads it.
    client.send(&deep).await;
    client.next().await.unwrap();
    // What is no request is not answered, whatever it is.
    for line in [
        "",
        "   ",
        r#"{"jsonrpc":"2.0","method":"notifications/nothing"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"5","error":{"code":1,"message":"m"}}"#,
    ] {
        client.send(line).await;
        client.send(legacy(9, "ping", json!({}))).await;
        assert_eq!(client.told(9).await.0, Vec::<Value>::new(), "{line}");
    }
    // Bytes that are no text.
    client.input.as_mut().unwrap().write_all(b"\xff\xfe\n").await.unwrap();
    assert_eq!(client.next().await.unwrap()["error"]["code"], -32700);
    client.end().await;
}

#[tokio::test]
async fn wrong_arguments_are_a_result_that_a_model_can_mend() {
    let mut client = Client::new(project()).await;
    let call = json!({ "name": "json_schema_2020_12_tool", "arguments": { "contactMethod": 3 } });
    let result = client.ask(modern(1, "tools/call", call)).await;
    assert_eq!(result["result"]["isError"], true);
    assert!(text(&result).contains("at /contactMethod"), "{result}");
    assert_eq!(result["result"]["_meta"]["tenon/error"]["code"], "invalid-input");
    client.end().await;
}

#[tokio::test]
async fn names_begin_with_their_plugins_unless_that_is_not_wanted() {
    let two = format!(
        "plugins.mcp = [{{ name = \"a\", command = {DEMO_SERVER:?} }}, {{ name = \"b\", command = {DEMO_SERVER:?} }}]"
    );
    let names = async |prefix: bool, tools: Option<&str>| {
        let project = Project::new(&two);
        let tools = tools.map(|pattern| vec![pattern.to_string()]);
        let (server, _) = server_with(&project, |settings| {
            settings.profile.prefix = prefix;
            settings.profile.tools = tools;
        })
        .await;
        let mut client = Client::of(project, server);
        let listed = client.ask(modern(1, "tools/list", json!({}))).await;
        let all = listed["result"]["tools"].as_array().unwrap();
        let names = all.iter().map(|tool| tool["name"].as_str().unwrap().to_string());
        let mut names: Vec<_> = names.filter(|name| name.ends_with("echo")).collect();
        names.push(listed["result"]["cacheScope"].as_str().unwrap().into());
        // What is not offered cannot be called either.
        for name in ["a__echo", "b__echo", "echo"] {
            let call = json!({ "name": name, "arguments": { "text": "x" } });
            let called = client.ask(modern(2, "tools/call", call)).await;
            let is_offered = names.iter().any(|offered| offered == name);
            assert_eq!(called.get("result").is_some(), is_offered, "{name}: {called}");
        }
        client.end().await;
        names
    };
    assert_eq!(names(true, None).await, ["a__echo", "b__echo", "public"]);
    assert_eq!(names(false, None).await, ["echo", "public"]);
    assert_eq!(names(true, Some("b__*")).await, ["b__echo", "private"]);
}

#[tokio::test]
async fn a_modern_server_may_ask_what_each_client_can_answer() {
    let config = format!("plugins.mcp = [{{ name = \"modern\", command = {MODERN_SERVER:?} }}]");
    let project = Project::new(&config);
    let (server, _) = server(&project).await;
    let mut client = Client::of(project, server);
    let call = |id: u64, name: &str, capabilities: Value| {
        let params = json!({ "name": name, "_meta": meta(capabilities) });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let all = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    for (capabilities, declared) in [
        (json!({}), ""),
        (json!({ "elicitation": { "form": {} } }), "elicitation"),
        (json!({ "roots": {} }), "roots"),
        (all, "elicitation roots sampling"),
    ] {
        let answer = client.ask(call(1, "declared", capabilities)).await;
        assert_eq!(text(&answer), declared);
    }
    let tool = "test_input_required_result_list_roots";
    let first = call(2, tool, json!({ "roots": {} }));
    let asked = client.ask(first.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let questions = asked["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = questions.iter().next().unwrap();
    assert_eq!(question["method"], "roots/list");
    let roots = json!([{ "uri": "file:///home/ada", "name": "home", "more": 1 }]);
    let mut again = first;
    again["id"] = json!(3);
    again["params"]["inputResponses"] = json!({ key: { "roots": roots } });
    again["params"]["requestState"] = asked["result"]["requestState"].clone();
    let answer = client.ask(again).await;
    let named: Value = serde_json::from_str(text(&answer)).unwrap();
    assert_eq!(named, roots);
    // Whoever has not declared roots is told what is missing.
    let error = client.ask(call(4, tool, json!({}))).await;
    assert_eq!(error["error"]["code"], -32021, "{error}");
    // A legacy client answers a request in the middle of its call.
    client.ask(initialize(5, json!({ "roots": { "listChanged": true } }))).await;
    client.send(legacy(6, "tools/call", json!({ "name": tool }))).await;
    let question = client.hear("roots/list").await;
    client
        .send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": roots } }))
        .await;
    let (_, answer) = client.told(6).await;
    assert_eq!(serde_json::from_str::<Value>(text(&answer)).unwrap(), roots);
    client.end().await;
}
