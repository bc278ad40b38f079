//! JSON Schemas that plugins bring in order to cost the host time, memory or stack: whatever they are
//! written with, what they cost is contained as the plugin itself is.

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tenon_host::types::{
    CallContext, EvalDefinition, Evaluation, HookDecision, HookEvent, HookPoint, HookRegistration,
    Identity, Json, Registration, ToolDefinition, ToolResult, Verdict,
};
use tenon_host::{CallError, Caller, Failure, LimitExceeded, Plugin};

use crate::support::{
    Project, RunningPlatform, SCRIPTED_SERVER, call, parsed, stderr, stdout, text,
};

/// Brings one schema for everything, and answers each call with one value.
struct StubPlugin {
    schema: String,
    answer: String,
}

#[async_trait]
impl Plugin for StubPlugin {
    async fn register(&self) -> Result<Registration, Failure> {
        let identity = Identity::new("n", "1.0.0", "");
        let takes = ToolDefinition {
            input_schema: self.schema.clone(),
            ..ToolDefinition::new("takes", "d", &json!({}))
        };
        let gives = ToolDefinition {
            output_schema: Some(self.schema.clone()),
            ..ToolDefinition::new("gives", "d", &json!({ "type": "object" }))
        };
        let fine = ToolDefinition::new("fine", "d", &json!({ "type": "object" }));
        let eval = EvalDefinition {
            name: "scores".into(),
            description: "d".into(),
            options_schema: Some(self.schema.clone()),
        };
        Ok(Registration {
            tools: vec![takes, gives, fine],
            evals: vec![eval],
            hooks: vec![HookRegistration::new(HookPoint::BeforeToolCall)],
            ..Registration::new(identity)
        })
    }

    async fn call_tool(&self, _: &str, _: Json, _: CallContext) -> Result<ToolResult, Failure> {
        Ok(ToolResult { structured: Some(self.answer.clone()), ..ToolResult::text("fine") })
    }

    /// Arguments that ask for it become what the plugin likes.
    async fn handle(&self, event: HookEvent) -> Result<HookDecision, Failure> {
        let mut context = event.context;
        if context.get("arguments") != Some(&json!({ "change": true })) {
            return Ok(HookDecision::Continue);
        }
        context.set("arguments", serde_json::from_str(&self.answer).unwrap());
        Ok(HookDecision::Replace(context))
    }

    async fn evaluate(
        &self,
        _: &str,
        _: Json,
        _: Json,
        _: CallContext,
    ) -> Result<Evaluation, Failure> {
        let (score, verdict) = (1.0, Verdict::Pass);
        Ok(Evaluation { score, verdict, findings: Vec::new(), extra: None })
    }
}

const LIMITS: &str = "limits = { cpu = \"1s\", memory_mib = 64 }";

/// A platform with a plugin that brings a schema and answers with a value, and one that behaves.
async fn platform(schema: &Value, answer: &Value) -> RunningPlatform {
    let project = Project::new(LIMITS);
    let bad = StubPlugin { schema: schema.to_string(), answer: answer.to_string() };
    let good = StubPlugin { schema: r#"{"type":"object"}"#.into(), answer: "{}".into() };
    let builder = project.builder().builtin("bad", bad).builtin("good", good);
    let platform = builder.build().await.expect("the platform is built");
    RunningPlatform::new(platform, project)
}

/// Whether it is the failure of the plugin that its schema used up what it may.
fn is_contained(error: &CallError) -> bool {
    let CallError::Failed { plugin, failure } = error else { return false };
    &**plugin == "bad" && matches!(failure, Failure::LimitExceeded(LimitExceeded::Schema { .. }))
}

/// A schema of definitions of which each applies the next twice. A reference leads to each, which may
/// be marked.
fn fan(
    reference: impl Fn(usize) -> Value,
    mark: impl Fn(usize) -> Value,
    apply: impl Fn(&Value) -> Value,
) -> Value {
    let mut definitions = Map::new();
    for i in 0..45 {
        let mut definition = apply(&reference(i + 1));
        for (name, member) in mark(i).as_object().unwrap() {
            definition[name] = member.clone();
        }
        definitions.insert(format!("d{i}"), definition);
    }
    definitions.insert("d45".into(), mark(45));
    let mut schema = json!({ "type": "object", "allOf": [reference(0)] });
    schema["definitions"] = definitions.into();
    schema
}

fn by_pointer(before: &str) -> impl Fn(usize) -> Value {
    move |i| json!({ "$ref": format!("{before}{i}") })
}

/// The same with all that a fan can be made of, each for a value that it takes very long with.
fn fans() -> Vec<(&'static str, Value, Value)> {
    let all = |next: &Value| json!({ "allOf": [next, next] });
    let none = |_| json!({});
    let plain = || by_pointer("#/definitions/d");
    let draft = |draft: &str, mut schema: Value| {
        schema["$schema"] = draft.into();
        schema
    };
    let (draft_4, draft_7) =
        ("http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#");
    let draft_2019 = "https://json-schema.org/draft/2019-09/schema";
    let object = json!({});
    let deep = |depth: usize| (0..depth).fold(json!({}), |value, _| json!({ "a": value }));
    let in_list = |depth: usize| (0..depth).fold(json!([]), |value, _| json!([value]));
    vec![
        ("plain pointers", fan(plain(), none, all), object.clone()),
        ("an encoded letter", fan(by_pointer("#/defini%74ions/d"), none, all), object.clone()),
        ("all encoded", fan(by_pointer("#/%64efinition%73/%64"), none, all), object.clone()),
        (
            "anchors",
            fan(
                |i| json!({ "$ref": format!("#a{i}") }),
                |i| json!({ "$anchor": format!("a{i}") }),
                all,
            ),
            object.clone(),
        ),
        ("ids", fan(by_pointer("d"), |i| json!({ "$id": format!("d{i}") }), all), object.clone()),
        (
            "nested bases",
            fan(
                by_pointer("https://example.com/a/d"),
                |i| json!({ "$id": format!("https://example.com/a/b/../d{i}") }),
                all,
            ),
            object.clone(),
        ),
        (
            "dynamic references",
            fan(
                |i| json!({ "$dynamicRef": format!("#a{i}") }),
                |i| json!({ "$dynamicAnchor": format!("a{i}") }),
                all,
            ),
            object.clone(),
        ),
        (
            "draft 4",
            draft(draft_4, fan(by_pointer("#d"), |i| json!({ "id": format!("#d{i}") }), all)),
            object.clone(),
        ),
        (
            "draft 7",
            draft(draft_7, fan(by_pointer("#/%64efinitions/d"), none, all)),
            object.clone(),
        ),
        ("draft 2019-09", draft(draft_2019, fan(plain(), none, all)), object.clone()),
        (
            "anyOf",
            fan(
                plain(),
                |i| json!({ "not": { "const": i } }),
                |next| json!({ "anyOf": [{ "not": next }, { "not": next }, {}] }),
            ),
            object.clone(),
        ),
        (
            "oneOf",
            fan(plain(), none, |next| json!({ "oneOf": [next, { "not": next }] })),
            object.clone(),
        ),
        (
            "if, then",
            fan(plain(), none, |next| json!({ "if": next, "then": next })),
            object.clone(),
        ),
        (
            "not",
            fan(plain(), none, |next| json!({ "not": { "not": { "allOf": [next, next] } } })),
            object.clone(),
        ),
        (
            "dependentSchemas",
            fan(plain(), none, |next| json!({ "dependentSchemas": { "a": next, "b": next } })),
            json!({ "a": 1, "b": 1 }),
        ),
        (
            "unevaluatedProperties",
            fan(plain(), none, |next| json!({ "allOf": [next], "unevaluatedProperties": false })),
            object.clone(),
        ),
        (
            "patternProperties",
            fan(plain(), none, |next| json!({ "patternProperties": { "a": next, "^a": next } })),
            deep(46),
        ),
        (
            "properties",
            fan(plain(), none, |next| json!({ "properties": { "a": { "allOf": [next, next] } } })),
            deep(46),
        ),
        (
            "propertyNames",
            fan(
                plain(),
                none,
                |next| json!({ "propertyNames": { "allOf": [next, next] }, "allOf": [next, next] }),
            ),
            json!({ "a": 1 }),
        ),
        (
            "prefixItems",
            fan(
                plain(),
                none,
                |next| json!({ "properties": { "a": next }, "prefixItems": [{ "allOf": [next, next] }] }),
            ),
            json!({ "a": in_list(44) }),
        ),
    ]
}

/// Runs a test again, in a process of its own whose memory is bounded, and gives whether this is that
/// process.
fn is_bounded(test: &str) -> bool {
    const VARIABLE: &str = "TENON_TEST_IS_BOUNDED";
    if cfg!(not(target_os = "linux")) || std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    let run = format!("ulimit -c 0 && ulimit -d {MEMORY_KIB} && exec \"$@\"");
    let bounded = std::process::Command::new("sh")
        .args(["-c", &run, "sh"])
        .arg(std::env::current_exe().expect("a program has a path"))
        .args(["--exact", &format!("hostile_schemas::{test}")])
        .env(VARIABLE, "1")
        .output()
        .expect("a shell starts");
    let said = stdout(&bounded);
    assert!(bounded.status.success() && said.contains("1 passed"), "{said}{}", stderr(&bounded));
    false
}

/// Each ends in time, and in the memory that the process may take.
#[tokio::test]
async fn references_that_fan_out_are_contained() {
    if !is_bounded("references_that_fan_out_are_contained") {
        return;
    }
    let rows = fans();
    assert!(rows.len() >= 20);
    for (row, schema, value) in rows {
        let platform = platform(&schema, &value).await;
        let began = Instant::now();
        let error = call(&platform, "bad__takes", value).await.expect_err(row);
        assert!(is_contained(&error), "{row}: {error}");
        assert!(began.elapsed() < Duration::from_secs(20), "{row}: {:?}", began.elapsed());
        assert_eq!(text(&platform, "bad__fine", json!({})).await, "fine", "{row}");
    }
}

#[tokio::test]
async fn whatever_is_checked_is_contained() {
    let fan = fan(
        by_pointer("#/defini%74ions/d"),
        |_| json!({}),
        |next| json!({ "allOf": [next, next] }),
    );
    let platform = platform(&fan, &json!({ "some": "value" })).await;
    for (row, name, arguments) in [
        ("arguments", "bad__takes", json!({})),
        ("a result", "bad__gives", json!({})),
        ("arguments of another that a hook has changed", "bad__takes", json!({ "change": true })),
    ] {
        let error = call(&platform, name, arguments).await.expect_err(row);
        assert!(is_contained(&error), "{row}: {error}");
        assert_eq!(text(&platform, "good__fine", json!({})).await, "fine", "{row}");
    }
    let caller = Caller::default();
    let error = platform.evaluate("bad/scores", json!({}), json!({}), &caller).await.unwrap_err();
    assert!(is_contained(&error), "{error}");
    let said = call(&platform, "bad__takes", json!({})).await.unwrap_err().to_string();
    let expected = "plugin \"bad\": it reached its limit for checking the arguments against its JSON \
                    Schema, which is 1s of time; simplify the schema, or let the plugin use more under `limits`";
    assert_eq!(said, expected);
}

/// Many of one thing for many of another, each with a value.
fn products() -> Vec<(&'static str, Value, Value)> {
    let consts: Vec<Value> = (0..8_000).map(|i| json!({ "const": i })).collect();
    let long = "x".repeat(2_000);
    let items = |item: Value| Value::Array(vec![item; 20_000]);
    let of = |schema: Value| json!({ "type": "object", "properties": { "a": schema } });
    let with = |value: Value| json!({ "a": value });
    let nested: Vec<Value> =
        (0..3_000).map(|i| (0..i % 60).fold(json!([]), |value, _| json!([value, []]))).collect();
    let names: Vec<String> = (0..20_000).map(|i| format!("n{i}")).collect();
    let members: Map<String, Value> = names.iter().map(|name| (name.clone(), json!(1))).collect();
    let alternatives = |keyword: &str| of(json!({ "items": { keyword: consts } }));
    vec![
        ("anyOf, the last", alternatives("anyOf"), with(items(json!(7_999)))),
        ("oneOf", alternatives("oneOf"), with(items(json!(7_999)))),
        (
            "not anyOf",
            of(json!({ "items": { "not": { "anyOf": consts } } })),
            with(items(json!(-1))),
        ),
        (
            "enum of objects",
            of(
                json!({ "items": { "enum": (0..5_000).map(|i| json!({ "a": [i] })).collect::<Vec<_>>() } }),
            ),
            with(items(json!({ "a": [4_999] }))),
        ),
        ("contains", of(json!({ "contains": { "anyOf": consts } })), with(items(json!(-1)))),
        (
            "uniqueItems",
            of(json!({ "allOf": vec![json!({ "uniqueItems": true }); 3_000] })),
            with(json!(nested)),
        ),
        (
            "required",
            of(json!({ "items": { "required": names } })),
            with(json!(vec![members.clone(); 20])),
        ),
        (
            "patterns that backtrack",
            of(json!({ "items": { "pattern": "^(x|x)*(?=y)$" } })),
            with(json!(vec![long.clone(); 2_000])),
        ),
        (
            "patternProperties",
            of(
                json!({ "patternProperties": (0..500).map(|i| (format!("^(n|{i})*(?=z)"), json!({}))).collect::<Map<_, _>>() }),
            ),
            with(Value::Object(members)),
        ),
        (
            "prefixItems of alternatives",
            of(json!({ "items": { "prefixItems": [{ "anyOf": consts }] } })),
            with(items(json!([-1]))),
        ),
        (
            "big numbers",
            of(json!({ "items": { "allOf": vec![json!({ "multipleOf": 1e-300 }); 3_000] } })),
            with(items(json!(1.5e300))),
        ),
        (
            "if",
            of(json!({ "items": { "if": { "anyOf": consts }, "then": false } })),
            with(items(json!(-1))),
        ),
    ]
}

/// Each ends in time, and in the memory that the process may take. What costs no more than it may has an
/// answer.
#[tokio::test]
async fn many_of_one_thing_for_many_of_another_are_contained() {
    if !is_bounded("many_of_one_thing_for_many_of_another_are_contained") {
        return;
    }
    let mut contained = 0;
    for (row, schema, value) in products() {
        let platform = platform(&schema, &value).await;
        for name in ["bad__takes", "bad__gives"] {
            let arguments = if name == "bad__takes" { value.clone() } else { json!({}) };
            let began = Instant::now();
            let result = call(&platform, name, arguments).await;
            assert!(began.elapsed() < Duration::from_secs(20), "{row}: {:?}", began.elapsed());
            match result {
                Ok(_) => {}
                Err(CallError::InvalidInput { problems, .. }) => {
                    let length: usize = problems.iter().map(String::len).sum();
                    assert!(length < 10_000, "{row}: {length}");
                }
                Err(error) => {
                    assert!(is_contained(&error), "{row}: {error}");
                    contained += 1;
                }
            }
        }
        assert_eq!(text(&platform, "good__fine", json!({})).await, "fine", "{row}");
    }
    assert!(contained >= 12, "{contained}");
}

#[tokio::test]
async fn what_takes_long_to_compile_is_left_out() {
    let chain: Map<String, Value> = (0..8_000)
        .map(|i| (format!("d{i}"), json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", i + 1) }] })))
        .chain([("d8000".into(), json!({}))])
        .collect();
    let ids: Map<String, Value> = (0..4_000)
        .map(|i| (format!("p{i}"), json!({ "$id": format!("a{i}/"), "items": { "$ref": "#" } })))
        .collect();
    let patterns: Map<String, Value> =
        (0..5_000).map(|i| (format!("{i}\\p{{L}}{{30}}"), json!({}))).collect();
    let scopes: Map<String, Value> = (0..300)
        .map(|i| {
            let next = json!({ "$ref": format!("s{}", (i + 1) % 300) });
            let other = json!({ "$ref": format!("s{}", (i * 7 + 3) % 300) });
            (format!("s{i}"), json!({ "$id": format!("s{i}"), "$dynamicAnchor": "n", "items": next, "contains": other, "additionalProperties": { "$dynamicRef": "#n" } }))
        })
        .collect();
    for (row, schema) in [
        ("a chain", json!({ "type": "object", "$defs": chain, "$ref": "#/$defs/d0" })),
        ("ids", json!({ "type": "object", "properties": ids })),
        ("patterns", json!({ "type": "object", "patternProperties": patterns })),
        (
            "a long pattern",
            json!({ "type": "object", "patternProperties": { "\\d".repeat(50_000): {} } }),
        ),
        ("dynamic scopes", json!({ "type": "object", "$defs": scopes, "$ref": "s0" })),
    ] {
        let began = Instant::now();
        let platform = platform(&schema, &json!({})).await;
        // It is left out or contained.
        match call(&platform, "bad__takes", json!({ "a": [[[1]]] })).await {
            Ok(_) | Err(CallError::NotFound { .. } | CallError::InvalidInput { .. }) => {}
            Err(error) => assert!(is_contained(&error), "{row}: {error}"),
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{row}: {:?}", began.elapsed());
        assert_eq!(text(&platform, "bad__fine", json!({})).await, "fine", "{row}");
    }
}

/// A script that was granted nothing, whose tool takes for ever to check. A hook of another says when it
/// is about to be.
fn hanging() -> Project {
    let project = Project::new(
        "plugins.scripts = [\"fan.rhai\", \"tell.rhai\"]\nlimits = { cpu = \"60s\", wall = \"60s\" }",
    );
    let fan = r##"
        let definitions = #{};
        for i in 0..45 {
            let next = #{ "$ref": `#/defini%74ions/d${i + 1}` };
            definitions[`d${i}`] = #{ allOf: [next, next] };
        }
        definitions["d45"] = #{};
        let schema = #{ type: "object", "$ref": "#/defini%74ions/d0", definitions: definitions };
        tool(#{ name: "hang", description: "d", schema: schema }, |a| 1);
    "##;
    project.write("fan.rhai", fan);
    project.write("tell.rhai", "fn BeforeToolCall(context) { log_warn(\"it is checked now\"); }");
    project
}

#[cfg(unix)]
#[test]
fn a_check_that_hangs_is_ended_by_signals_and_by_time() {
    use rustix::process::{Pid, Signal, kill_process};
    let project = hanging();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut command = project
            .command(&["call", "fan__hang"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("tenon starts");
        let mut lines =
            BufReader::new(command.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("it is checked now")));
        let began = Instant::now();
        kill_process(Pid::from_raw(command.id() as i32).unwrap(), signal).expect("it is there");
        assert_eq!(command.wait().expect("it ends").code(), Some(130));
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
    let began = Instant::now();
    let output = project.tenon(&["--json", "call", "fan__hang", "--timeout", "1s"]);
    assert_eq!(parsed(&output)["error"]["code"], "deadline", "{}", stdout(&output));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// A server whose tool takes for ever to check, and a hook that says when it is about to be.
#[cfg(unix)]
fn hanging_on(schema: &Value) -> Project {
    let project = Project::new(&format!(
        "plugins.scripts = [\"tell.rhai\"]\nlimits = {{ cpu = \"60s\", wall = \"60s\" }}\n\
         plugins.mcp = [{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [\"script.json\"] }}]"
    ));
    let tool = json!({ "name": "hang", "inputSchema": schema });
    project.write("script.json", json!({ "tools/list": { "tools": [tool] } }).to_string());
    project.write("tell.rhai", "fn BeforeToolCall(context) { log_warn(\"it is checked now\"); }");
    project
}

#[cfg(unix)]
#[test]
fn whatever_hangs_is_ended_by_a_signal() {
    use rustix::process::{Pid, Signal, kill_process};
    let signals = [Signal::INT, Signal::TERM, Signal::HUP];
    // A few at a time: each has a thread and a half to itself.
    for some in fans().chunks(4) {
        let begun: Vec<_> = some
            .iter()
            .zip(signals.into_iter().cycle())
            .map(|((row, schema, value), signal)| {
                let project = hanging_on(schema);
                project.write("arguments.json", value.to_string());
                let command = project
                    .command(&["call", "s__hang", "@arguments.json"])
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .expect("tenon starts");
                (row, project, command, signal)
            })
            .collect();
        for (row, project, mut command, signal) in begun {
            let stderr = command.stderr.take().expect("it is piped");
            let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
            assert!(lines.any(|line| line.contains("it is checked now")), "{row}");
            assert!(command.try_wait().expect("it is ours").is_none(), "{row} does not hang");
            let began = Instant::now();
            let id = Pid::from_raw(command.id() as i32).expect("it has an id");
            kill_process(id, signal).expect("it is there");
            assert_eq!(command.wait().expect("it ends").code(), Some(130), "{row}");
            assert!(began.elapsed() < Duration::from_secs(20), "{row}: {:?}", began.elapsed());
            drop(project);
        }
    }
}

/// What is decided within limits is decided as it is without: by the same versions.
#[test]
fn the_checker_of_schemas_has_the_validator_of_the_host() {
    let versions = |lock: &str| {
        let path = format!("{}/../{lock}", env!("CARGO_MANIFEST_DIR"));
        let lock = std::fs::read_to_string(path).unwrap();
        let validator = [
            "fancy-regex",
            "jsonschema",
            "jsonschema-regex",
            "jsonschema-value",
            "referencing",
            "regex",
            "regex-automata",
            "regex-syntax",
            "serde_json",
        ];
        let version = |name: &str| {
            let (_, package) = lock.split_once(&format!("name = \"{name}\"\n")).expect(name);
            package.lines().next().unwrap().to_string()
        };
        validator.map(|name| (name, version(name)))
    };
    assert_eq!(versions("Cargo.lock"), versions("guests/Cargo.lock"));
}

/// Functions that take a while to compile together.
#[cfg(unix)]
fn slow_component() -> Vec<u8> {
    let blocks = "(block (br_if 0 (local.get 0)))".repeat(14_000);
    let functions = format!("(func (param i32) {blocks})").repeat(40);
    wat::parse_str(format!("(component (core module {functions}))")).expect("it is a component")
}

#[cfg(unix)]
#[test]
fn a_compilation_is_not_waited_for_when_it_is_interrupted() {
    use rustix::process::{Pid, Signal, kill_process};
    let project = Project::new("plugins.wasm = [\"slow.wasm\"]\nplugins.scripts = [\"tell.rhai\"]");
    project.write("slow.wasm", slow_component());
    // Scripts and components are loaded at the same time.
    project.write("tell.rhai", "log_warn(\"it is loaded now\");");
    let mut command =
        project.command(&["tools"]).stderr(Stdio::piped()).spawn().expect("tenon starts");
    let mut lines = BufReader::new(command.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("it is loaded now")));
    let began = Instant::now();
    kill_process(Pid::from_raw(command.id() as i32).unwrap(), Signal::INT).expect("it is there");
    assert_eq!(command.wait().expect("it ends").code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn what_would_take_too_long_to_compile_is_not_compiled() {
    let project = Project::new(
        "plugins.wasm = [\"branches.wasm\"]\nplugins.scripts = [\"cases.rhai\", \"fine.rhai\"]\n\
         limits.cpu = \"500ms\"",
    );
    let blocks = "(block (br_if 0 (local.get 0)))".repeat(100_000);
    let module = format!("(component (core module (func (param i32) {blocks})))");
    project.write("branches.wasm", wat::parse_str(module).expect("it is a component"));
    let members: String = (0..200_000).map(|i| format!("k{i}: 1,")).collect();
    project.write("cases.rhai", format!("let a = #{{ {members} }};"));
    project.write("fine.rhai", "tool(#{ name: \"t\", description: \"d\" }, |a| \"fine\");");
    let output = project.tenon(&["plugins", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let said = stdout(&project.tenon(&["doctor"]));
    // It is wrapped.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("more than 30000 branches"), "{said}");
    assert!(said.contains("it takes too long to compile"), "{said}");
    assert_eq!(stdout(&project.tenon(&["call", "fine__t"])), "fine\n");
}

/// The memory that a command may take that checks with as much as a plugin may: what is reserved and not
/// used does not count.
const MEMORY_KIB: u32 = 900 << 10;

#[cfg(target_os = "linux")]
#[test]
fn a_check_takes_no_memory_of_the_host() {
    let project = Project::new("plugins.scripts = [\"many.rhai\"]");
    let many = r##"
        let alternatives = ALTERNATIVES;
        let list = #{ type: "array", items: #{ anyOf: alternatives } };
        let schema = #{ type: "object", properties: #{ list: list } };
        tool(#{ name: "takes", description: "d", schema: schema }, |a| 1);
        tool(#{ name: "gives", description: "d", output_schema: schema }, |a| #{ list: a.list });
        tool(#{ name: "fine", description: "d" }, |a| "fine");
    "##;
    let alternatives: String = (0..8_000).map(|i| format!("#{{ \"const\": {i} }},")).collect();
    project.write("many.rhai", many.replace("ALTERNATIVES", &format!("[{alternatives}]")));
    let list = |item: i32| json!({ "list": vec![item; 20_000] }).to_string();
    let run = |tool: &str, arguments: &str| {
        project.write("arguments.json", arguments);
        let limits = format!("ulimit -d {MEMORY_KIB}");
        project.tenon_within(&limits, &["--json", "call", tool, "@arguments.json"])
    };
    for tool in ["many__takes", "many__gives"] {
        for item in [-1, 7_999] {
            let output = run(tool, &list(item));
            let said = stderr(&output);
            assert!(matches!(output.status.code(), Some(0..=9)), "{tool} {item}: {said}");
            assert!(!said.contains("is not there"), "{said}");
        }
    }
    let fine = run("many__fine", "{}");
    assert_eq!(fine.status.code(), Some(0), "{}", stderr(&fine));
}
