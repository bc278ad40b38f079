//! Rows: what runs come to, over a host that answers from a table.

use serde_json::json;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::Barrier;

use super::*;

/// Answers calls, and notes them.
#[derive(Default)]
struct Host {
    /// The keys of calls and what was called.
    calls: Mutex<Vec<(String, String)>>,
    steps: Mutex<BTreeMap<String, Arc<Value>>>,
    /// The run stops at the call of this tool.
    stops_at: Option<&'static str>,
    /// Calls are answered when so many are in flight as this says.
    in_flight: Option<CallsInFlight>,
}

/// Calls that are answered together, and how many there were at most at a time.
struct CallsInFlight {
    now: AtomicUsize,
    most: AtomicUsize,
    all_there: Barrier,
}

impl CallsInFlight {
    fn answered_by(number: usize) -> Self {
        let (now, most) = Default::default();
        Self { now, most, all_there: Barrier::new(number) }
    }

    /// Waits until there are as many as are answered together.
    async fn wait(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.all_there.wait().await;
        // Whoever would call besides them gets its turn.
        for _ in 0..1_000 {
            std::thread::yield_now();
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl RunHost for Host {
    async fn ask(&self, key: String, what: RunCall) -> Result<RunAnswer, RunStopped> {
        let (name, arguments) = match what {
            RunCall::Tool { name, arguments } => (name, arguments),
            RunCall::Operation { name, plugin, argument } => {
                (format!("{name} {plugin}").into(), argument)
            }
            RunCall::Missing { problem, .. } => return Ok(RunAnswer::Error(problem)),
        };
        self.calls.lock().unwrap().push((key, format!("{name} {arguments}")));
        if self.stops_at == Some(&*name) {
            return Err(RunStopped);
        }
        if let Some(in_flight) = &self.in_flight {
            in_flight.wait().await;
        }
        tokio::task::yield_now().await;
        let value = match &*name {
            "files__read" => json!(format!("content of {}", arguments["path"])),
            "files__list" => json!({ "names": ["a", "b"] }),
            "my-mail__send" => return Ok(RunAnswer::Error("the mailbox is full".into())),
            _ => json!([name, arguments]),
        };
        Ok(RunAnswer::Value(value.into()))
    }

    fn step(&self, place: &str, name: &str) -> Result<Option<Arc<Value>>, RunStopped> {
        Ok(self.steps.lock().unwrap().get(&tenon_runs::step_key(place, name)).cloned())
    }

    fn begin_parallel(&self, _: &str) -> Result<(), RunStopped> {
        Ok(())
    }

    fn keep_step(&self, key: String, value: Value) {
        self.steps.lock().unwrap().insert(key, value.into());
    }

    fn look_up(&self, _: String, what: ToolQuery<'_>) -> Result<Arc<Value>, RunStopped> {
        let value = match what {
            ToolQuery::Search { query, limit } => json!([query, limit]),
            ToolQuery::Describe { is_there: false, .. } => Value::Null,
            ToolQuery::Describe { tool, is_there: true } => json!(tool),
        };
        Ok(value.into())
    }
}

pub(super) fn functions() -> Arc<ToolFunctions> {
    let schema = json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "limit": { "type": "integer" } },
        "required": ["path"],
    });
    let open = json!({ "type": "object" });
    let tools = [
        ("files", "files__read", tenon_types::ToolDefinition::new("read", "d", &schema)),
        ("files", "files__list", tenon_types::ToolDefinition::new("list", "d", &open)),
        ("my-mail", "my-mail__send", tenon_types::ToolDefinition::new("send", "d", &open)),
        ("odd", "odd__export", tenon_types::ToolDefinition::new("export", "d", &open)),
        ("odd", "odd__print", tenon_types::ToolDefinition::new("print", "d", &open)),
        ("odd", "odd__null", tenon_types::ToolDefinition::new("null", "d", &open)),
        ("odd", "odd__loop", tenon_types::ToolDefinition::new("loop", "d", &open)),
        ("odd", "odd__a-b", tenon_types::ToolDefinition::new("a-b", "d", &open)),
        ("odd", "odd__a.b", tenon_types::ToolDefinition::new("a.b", "d", &open)),
        ("tools", "tools__mine", tenon_types::ToolDefinition::new("mine", "d", &open)),
        ("data", "data__search", tenon_types::ToolDefinition::new("search", "d", &open)),
        ("9lives", "9lives__9foo", tenon_types::ToolDefinition::new("9foo", "d", &open)),
        ("9lives", "9lives__8", tenon_types::ToolDefinition::new("8", "d", &open)),
        ("9lives", "9lives__n8", tenon_types::ToolDefinition::new("n8", "d", &open)),
    ];
    let tools = tools.iter().map(|(plugin, tool, of)| (*plugin, *tool, of));
    Arc::new(ToolFunctions::new(tools))
}

fn limits() -> RunLimits {
    RunLimits {
        operations: 200_000,
        cpu: Duration::from_secs(20),
        wall: Duration::from_secs(60),
        calls: 20,
        parallel: 3,
        output: 4_000,
    }
}

fn began() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(60)
}

fn compiled(script: &str) -> Result<RunScript, String> {
    RunScript::compile(script.into(), &functions(), &limits())
}

async fn run_within(script: &str, limits: &RunLimits, host: &Arc<Host>) -> RunResult {
    let script = (script.to_string(), json!({ "n": [1, 2] }), began());
    let threads = Threads::new();
    let run = RunScript::run(script, functions(), limits, host.clone(), &threads);
    run.await.expect("there are threads")
}

async fn run_with(script: &str, host: &Arc<Host>) -> RunResult {
    run_within(script, &limits(), host).await
}

async fn run(script: &str) -> RunEnd {
    run_with(script, &Arc::default()).await.end
}

#[tokio::test]
async fn tools_are_functions_of_their_plugins() {
    for (script, expected) in [
        ("files.read(#{ path: \"/x\" })", json!("content of \"/x\"")),
        ("files.list().names", json!(["a", "b"])),
        (
            "files.list().names.map(|n| files.read(#{ path: n }))",
            json!(["content of \"a\"", "content of \"b\""]),
        ),
        (
            "fn both(n) { files.read(#{ path: n }) + \"!\" } both(\"/y\")",
            json!("content of \"/y\"!"),
        ),
        ("data.n[1]", json!(2)),
        ("const N = 5; fn five() { N } five()", json!(5)),
        ("timestamp().unix", json!(60)),
        // Limits are those of the script also after its branches.
        ("parallel([|| 1]); let i = 0; while i < 300 { i += 1; } i", json!(300)),
        ("fn first() { data.n[0] } first()", json!(1)),
        ("return 7; 8", json!(7)),
        (
            "let x = (); try { my_mail.send() } catch (e) { x = `caught: ${e}`; } x",
            json!("caught: the mailbox is full"),
        ),
        ("odd.export_()", json!(["odd__export", {}])),
        ("odd.print_()", json!(["odd__print", {}])),
        ("call_tool(\"odd__a-b\", #{ x: 1 })", json!(["odd__a-b", { "x": 1 }])),
        ("call_tool(\"files.list\")", json!({ "names": ["a", "b"] })),
        // Plugins whose names are the host's.
        ("tools_.mine(#{ x: 1 })", json!(["tools__mine", { "x": 1 }])),
        ("call_tool(\"tools_.mine\")", json!(["tools__mine", {}])),
        ("call_tool(\"tools__mine\")", json!(["tools__mine", {}])),
        ("data_.search(#{ n: data.n[0] })", json!(["data__search", { "n": 1 }])),
        // Names that begin with a digit.
        ("n9lives.n9foo(#{ x: 1 })", json!(["9lives__9foo", { "x": 1 }])),
        ("call_tool(\"n9lives.n9foo\")", json!(["9lives__9foo", {}])),
        ("call_tool(\"9lives__8\")", json!(["9lives__8", {}])),
        // Arguments that are known when the script runs.
        ("let m = (); files.read(m ?? #{ path: \"/x\" })", json!("content of \"/x\"")),
        (
            "let m = (); call_tool(\"files__read\", m ?? #{ path: \"/x\" })",
            json!("content of \"/x\""),
        ),
        ("tools.search(\"mail\", 3)", json!(["mail", 3])),
        ("tools.describe(\"my_mail.send\")", json!("my-mail__send")),
        ("resources.read(\"notes\", \"n:1\")", json!(["resources/read notes", "n:1"])),
        (
            "prompts.get(\"p\", \"q\", #{ a: \"b\" })",
            json!(["prompts/get p", { "arguments": { "a": "b" }, "name": "q" }]),
        ),
        ("now().unix", json!(60)),
        (
            "parallel([|| files.read(#{ path: \"1\" }), || 2, || files.list().names[0]])",
            json!(["content of \"1\"", 2, "a"]),
        ),
        ("let x = 5; parallel([|| { x += 1; x }, || x])", json!([6, 5])),
        ("parallel([])", json!([])),
        ("()", Value::Null),
    ] {
        assert_eq!(run(script).await, RunEnd::Value(expected), "{script}");
    }
}

#[tokio::test]
async fn what_is_wrong_is_told_before_anything_is_called() {
    for (script, expected) in [
        (
            "files.raed(#{ path: 1 })",
            "script:1:7: `files` has no tool `raed`; did you mean `read`?",
        ),
        (
            "let a = 1;\nfils.read(#{ path: 1 })",
            "script:2:1: there is no variable and no plugin `fils`; did you mean `files`?",
        ),
        (
            "files.read(#{ pth: \"x\", path: \"y\" })",
            "script:1:15: `files.read` has no argument `pth`; did you mean `path`?",
        ),
        (
            "files.read(#{ path: \"x\", limit: 1, z: 2 })",
            "`files.read` has no argument `z`; it has limit, path",
        ),
        ("files.read(#{ limit: 1 })", "script:1:7: `files.read` needs `path`"),
        ("files.read()", "script:1:7: `files.read` needs `path`"),
        ("files.read(\"/x\")", "`files.read` takes its arguments as one map: `files.read(#{ … })`"),
        ("if false { [|| files.raed()] }", "`files` has no tool `raed`"),
        // Tools whose names are keywords.
        ("odd.print(#{ x: 1 })", "script:1:5: `print` is a keyword; did you mean `print_`?"),
        ("let x = odd\n  .null()", "script:2:4: `null` is a keyword; did you mean `null_`?"),
        ("if true { odd.loop() }", "script:1:15: `loop` is a keyword; did you mean `loop_`?"),
        ("odd.match()", "script:1:5: 'match' is a reserved keyword"),
        ("files.print()", "script:1:7: 'print' is a reserved keyword"),
        ("let print = 1;", "'print' is a reserved keyword"),
        (
            "odd.a_b(#{})",
            "`odd.a_b` may be \"odd__a-b\" or \"odd__a.b\": call one with `call_tool(NAME, #{ … })`",
        ),
        (
            "n9lives.n8()",
            "`n9lives.n8` may be \"9lives__8\" or \"9lives__n8\": call one with `call_tool(NAME, #{ … })`",
        ),
        // Tools that are called by their names.
        (
            "call_tool(\"files__raed\", #{ path: \"x\" })",
            "script:1:11: there is no tool \"files__raed\"; did you mean \"files__read\"?",
        ),
        (
            "let r = [1].map(|n| call_tool(\"fils.read\"));",
            "there is no tool \"fils.read\"; did you mean \"files__read\"?",
        ),
        ("call_tool(\"files.raed\")", "`files` has no tool `raed`; did you mean `read`?"),
        ("call_tool(\"odd.a_b\")", "`odd.a_b` may be \"odd__a-b\" or \"odd__a.b\""),
        (
            "if false { call_tool(\"secret__tool\") }",
            "there is no tool \"secret__tool\"; `tools.search(\"…\")` finds tools",
        ),
        (
            "call_tool(\"files__read\", #{ pth: \"x\", path: \"y\" })",
            "script:1:29: `files__read` has no argument `pth`; did you mean `path`?",
        ),
        ("call_tool(\"files__read\", #{ limit: 1 })", "script:1:11: `files__read` needs `path`"),
        ("call_tool(\"files.read\")", "script:1:11: `files.read` needs `path`"),
        (
            "call_tool(\"files__read\", \"/x\").len()",
            "`files__read` takes its arguments as one map: `call_tool(\"files__read\", #{ … })`",
        ),
        ("let files = 1;", "script:1:5: `files` is the host's; take another name"),
        ("for tools in [1] {}", "`tools` is the host's; take another name"),
        ("for (x, data) in [1] {}", "`data` is the host's; take another name"),
        ("try { 1 } catch (files) { 2 }", "`files` is the host's; take another name"),
        ("fn read(a, b) { 1 } 2", "`read` is the host's; take another name"),
        ("fn parallel(x) { x } 2", "`parallel` is the host's; take another name"),
        ("let f = |files| 1;", "`files` is the host's; take another name"),
        ("let tools_ = 1;", "`tools_` is the host's; take another name"),
        ("tools_.search(\"x\")", "`tools_` has no tool `search`"),
        ("const resources = 1;", "`resources` is the host's; take another name"),
        ("let x = ", "script:1:9: "),
        ("eval(\"1\")", "eval"),
    ] {
        let Err(problem) = compiled(script) else { panic!("{script}: nothing is wrong") };
        assert!(problem.contains(expected), "{script}: {problem}");
    }
    // What nobody can tell before is no problem.
    for script in [
        "let m = #{}; files.read(m)",
        "let m = #{}; call_tool(\"files__read\", m)",
        "let name = \"files__raed\"; call_tool(name, #{})",
        "call_tool(\"files__\" + \"raed\")",
        "call_tool(`files__${1}`)",
        "let f = Fn(\"f\");",
        "let readable = files;",
        "files.list(#{ any: 1 })",
    ] {
        assert!(compiled(script).is_ok(), "{script}");
    }
}

#[test]
fn each_tool_has_a_function_that_a_script_can_call() {
    for (plugin, tool, expected) in [
        ("my-mail", "send", "my_mail.send"),
        ("9lives", "9foo", "n9lives.n9foo"),
        ("_9", "__", "n_9.n__"),
        ("_a", "_a9", "_a._a9"),
        ("日本", "é1", "n__.n_1"),
        ("data", "let", "data_.let_"),
        ("a", "", "a.n"),
    ] {
        let definition = tenon_types::ToolDefinition::new(tool, "d", &json!({ "type": "object" }));
        let functions = ToolFunctions::new([(plugin, "tool", &definition)]);
        assert_eq!(functions.names()["tool"], expected, "{plugin} {tool}");
        let script = RunScript::compile(format!("{expected}()"), &functions, &limits());
        assert!(script.is_ok(), "{expected}: {:?}", script.err());
    }
}

#[test]
fn two_plugins_that_come_to_one_variable_are_told_apart_by_the_names_of_their_tools() {
    let [only, both] =
        ["mine", "send"].map(|tool| tenon_types::ToolDefinition::new(tool, "d", &json!({})));
    let functions = ToolFunctions::new([
        ("a-b", "a-b__send", &both),
        ("a_b", "a_b__send", &both),
        ("a_b", "a_b__mine", &only),
    ]);
    let compiled = |script: &str| RunScript::compile(script.into(), &functions, &limits());
    let Err(problem) = compiled("a_b.send()") else { panic!("nothing is wrong") };
    let expected =
        "`a_b.send` may be \"a-b__send\" or \"a_b__send\": call one with `call_tool(NAME, #{ … })`";
    assert!(problem.contains(expected), "{problem}");
    for script in ["a_b.mine()", "call_tool(\"a-b__send\")", "call_tool(\"a_b__send\")"] {
        assert!(compiled(script).is_ok(), "{script}");
    }
}

#[tokio::test]
async fn no_script_goes_beyond_its_bounds() {
    for (script, code, expected) in [
        ("loop {}", "limit", "200000 operations, and may take no more (`runs.operations`)"),
        ("try { loop {} } catch { 1 }", "limit", "it took 200000 operations"),
        ("fn f() { f() } f()", "limit", "it reached its"),
        ("let a = []; loop { a.push(\"0123456789abcdef\" * 10000); }", "trapped", ""),
        (
            "let s = \"x\"; loop { s += s; }",
            "limit",
            "it reached its limit of value size: a text has at most 1 MiB",
        ),
        // Functions that are called often, and take few operations each.
        (
            "let a = []; a.pad(1000, 0); a.map(|x| { let b = []; b.pad(1000, 0); b.map(|y| 0).len() }).len()",
            "limit",
            "it took 200000 operations",
        ),
        (
            "fn many() { let f = []; f.pad(1000, || 1); parallel(f).len() } let g = []; g.pad(1000, || many()); parallel(g).len()",
            "limit",
            "it took 200000 operations",
        ),
        ("let a = []; loop { a.push(1); }", "limit", ""),
        ("for i in 0..30 { files.list(); }", "limit", "and may make no more (`runs.calls`)"),
        ("try { for i in 0..30 { files.list(); } } catch { 1 }", "limit", "it made 20 calls"),
        (
            "let b = []; for i in 0..10000 { b.push(|| files.list()); } parallel(b)",
            "limit",
            "10000 functions in `parallel`",
        ),
        (
            "let b = []; for i in 0..500 { b.push(|| files.list()); } parallel(b)",
            "limit",
            "it made 20 calls",
        ),
        ("parallel([|| { loop {} }, || { loop {} }])", "limit", "it took 200000 operations"),
        ("parallel([1])", "trapped", "`parallel` takes an array of functions"),
        (
            "let s = \"\"; for i in 0..500 { s += \"0123456789\"; } s",
            "limit",
            "its result and what it prints have more than 4000 bytes (`runs.output_kib`)",
        ),
        (
            "fn f(n) { parallel([|| f(n + 1)]) } f(0)",
            "limit",
            "`parallel` is nested more than 4 deep",
        ),
        (
            "fn f(n) { if n > 3 { 1 } else { let b = []; for i in 0..8 { b.push(|| f(n + 1)); } parallel(b) } } f(0); loop {}",
            "limit",
            "it took 200000 operations",
        ),
        ("parallel([|| 1]); loop {}", "limit", "it took 200000 operations"),
        // What functions hold is memory, too: at once, and when it is put there later.
        (
            "let b = \"x\"; while b.len() < 500000 { b += b; } let all = 0; for i in 0..8000 { let s = b + \"y\"; let k = all; all = || [s, k]; } 1",
            "limit",
            "",
        ),
        (
            "let b = \"x\"; while b.len() < 500000 { b += b; } for i in 0..2000 { let m = #{}; m.f = || m; m.s = b + \"y\"; } 1",
            "limit",
            "",
        ),
        (
            "let b = []; for i in 0..300 { b.push(|| { let a = []; a.pad(90000, 7); a }); } parallel(b).len()",
            "limit",
            "the results of `parallel` are too large together",
        ),
        // Keys of maps, in variables, in results and in what functions capture.
        (
            "let s = \"\"; s.pad(1000000, \"x\"); let m = []; for i in 0..600 { let k = #{}; k[s + i] = (); m.push(k); } 1",
            "limit",
            "it reached its limit of 256 MiB for what its variables hold",
        ),
        (
            "let f = []; for i in 0..600 { f.push(|| { let s = \"x\"; while s.len() < 500000 { s += s; } let k = #{}; k[s] = 1; k }); } parallel(f).len()",
            "limit",
            "the results of `parallel` are too large together",
        ),
        (
            "let s = \"\"; s.pad(1000000, \"x\"); let k = #{}; k[s] = 1; let f = []; for i in 0..1000 { f.push(|| k.len()); } parallel(f).len()",
            "trapped",
            "the functions of the script hold more than 400000 values",
        ),
        // Sorting keeps errors for itself.
        (
            "let a = []; for i in 0..100 { a.push(i); } a.sort(|x, y| { files.list(); 0 }); print(\"after\"); 7",
            "limit",
            "it made 20 calls",
        ),
        // What is put into a part of a variable as well, in functions that call each other, and by several threads.
        (
            "let a = []; a.pad(90000, 7); let m = #{}; for i in 0..20000 { m[`k${i}`] = a; } m.len()",
            "limit",
            "it reached its",
        ),
        (
            "let s = \"\"; s.pad(900000, \"x\"); let a = []; a.pad(20000, 0); for i in 0..20000 { a[i] = s + i; } 1",
            "limit",
            "it reached its",
        ),
        (
            "fn f(n) { let a = []; a.pad(90000, 7); let m = #{}; for i in 0..60 { m[`${i}`] = a; } if n < 50 { f(n + 1) } m.len() } f(0)",
            "limit",
            "it reached its",
        ),
        (
            "fn f() { let a = []; a.pad(90000, 7); let m = #{}; for i in 0..100 { m[`${i}`] = a; } let n = 0; for i in 0..4000 { n += m.len(); } n } parallel([|| f(), || f(), || f()])",
            "limit",
            "it reached its",
        ),
        // What others hold as well would be written out for each, and what is within itself without an end.
        (
            "let s = \"\"; s.pad(900000, \"x\"); let a = []; a.pad(3000, 0); for i in 0..3000 { a[i] = s; } a.to_string().len()",
            "limit",
            "it reached its limit of value size",
        ),
        (
            "let s = \"\"; s.pad(900000, \"x\"); let a = []; a.pad(3000, 0); for i in 0..3000 { a[i] = s; } let t = `${a}`; t.len()",
            "limit",
            "it reached its limit of value size",
        ),
        (
            "let s = \"\"; s.pad(900000, \"x\"); let m = #{}; for i in 0..3000 { m[`k${i}`] = s; } try { m.to_json() } catch { } m.len()",
            "limit",
            "it reached its limit of value size",
        ),
        (
            "let s = \"\"; s.pad(900000, \"x\"); let a = []; a.pad(3000, 0); for i in 0..3000 { a[i] = s; } step(\"x\", || a)",
            "failed",
            "has at most 16 MiB as JSON",
        ),
        (
            "let s = \"\"; s.pad(900000, \"x\"); let a = []; a.pad(3000, 0); for i in 0..3000 { a[i] = s; } a",
            "invalid-result",
            "has at most 16 MiB as JSON",
        ),
        (
            "let m = #{}; let f = || m; m.f = f; m.to_json()",
            "limit",
            "it reached its limit of value size",
        ),
        ("sleep(1)", "trapped", "cannot sleep"),
        ("import \"x\" as y; 1", "trapped", "modules"),
        ("throw \"why\"", "failed", "script:1:1: why"),
        ("throw ()", "failed", "script:1:1: it has thrown `()`"),
        ("parallel([|a| a])", "trapped", "called with more or fewer values here than it takes"),
        ("my_mail.send()", "failed", "script:1:9: the mailbox is full"),
        (
            "let name = \"secret__tool\"; call_tool(name, #{})",
            "failed",
            "there is no tool \"secret__tool\"",
        ),
        ("tools.describe(\"secret__tool\")", "failed", "there is no tool \"secret__tool\""),
        ("|x| x", "invalid-result", ""),
    ] {
        match run(script).await {
            RunEnd::Failed { code: found, message } => {
                assert_eq!(found, code, "{script}: {message}");
                assert!(message.contains(expected), "{script}: {message}");
            }
            end => panic!("{script}: {end:?}"),
        }
        // The next one runs.
        assert_eq!(run("files.list(); ()").await, RunEnd::Value(Value::Null), "{script}");
    }
}

#[tokio::test]
async fn a_run_has_its_own_bound_of_time() {
    let limits = RunLimits { operations: u64::MAX, cpu: Duration::from_millis(50), ..limits() };
    for script in [
        "loop {}",
        "try { loop {} } catch { 1 }",
        "parallel([|| { loop {} }])",
        // All threads have it together, and all functions.
        "let f = []; for i in 0..1000 { f.push(|| { for i in 0..1000 { } }); } loop { parallel(f); }",
    ] {
        let end = run_within(script, &limits, &Arc::default()).await.end;
        let RunEnd::Failed { code, message } = &end else { panic!("{script}: {end:?}") };
        assert_eq!(*code, "limit", "{script}: {message}");
        assert!(message.contains("it reached its CPU limit of 50ms (`runs.cpu`)"), "{message}");
    }
}

#[tokio::test]
async fn the_time_of_a_run_counts_once_however_many_functions_it_takes() {
    let cpu = Duration::from_secs(1);
    let limits = RunLimits { operations: u64::MAX, cpu, parallel: 3, ..limits() };
    let spin = "|| { let n = 0; loop { n += 1; if n > 3_000 { break; } } n }";
    let script =
        format!("let f = []; for i in 0..500 {{ f.push({spin}); }} loop {{ parallel(f); }}");
    let end = run_within(&script, &limits, &Arc::default()).await.end;
    let RunEnd::Failed { code: "limit", message } = &end else { panic!("{end:?}") };
    assert!(message.contains("CPU limit of 1s"), "{message}");
}

#[tokio::test]
async fn threads_do_not_take_the_time_of_each_other() {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    // More threads than compute at a time.
    let parallel = (4 * processors).min(400);
    let least = Duration::from_millis(200);
    let cpu = least * u32::try_from(processors).expect("they are few");
    let limits = RunLimits { operations: u64::MAX, cpu, parallel, ..limits() };
    let began = Instant::now();
    let script =
        format!("let f = []; for i in 0..{parallel} {{ f.push(|| {{ loop {{}} }}); }} parallel(f)");
    let end = run_within(&script, &limits, &Arc::default()).await.end;
    let took = began.elapsed();
    let RunEnd::Failed { code: "limit", message } = &end else { panic!("{end:?}") };
    assert!(message.contains("CPU limit"), "{message}");
    assert!(took >= least, "{took:?}");
}

#[tokio::test]
async fn operations_count_once_whatever_calls_a_function() {
    let operations = async |script: &str| {
        let result = run_with(script, &Arc::default()).await;
        assert!(matches!(result.end, RunEnd::Value(_)), "{script}: {:?}", result.end);
        result.operations
    };
    let loops = "for i in 0..50000 {}";
    let alone = operations(loops).await;
    for call in [
        "[1, 2, 3].map(|n| n)",
        "[1, 2, 3].filter(|n| n > 1)",
        "[3, 1, 2].sort(|a, b| a - b)",
        "step(\"s\", || 1)",
        "parallel([|| 1, || 2])",
        "let f = |n| n; f.call(1)",
    ] {
        let all = operations(&format!("{loops} {call}; 1")).await;
        assert!((alone..alone + 200).contains(&all), "{call}: {all} with {alone} before");
    }
    let steps = operations("for i in 0..500 { step(\"s\" + i, || i); } 1").await;
    assert!(steps < 20_000, "{steps}");
}

#[tokio::test]
async fn as_many_functions_run_beside_each_other_as_may_and_no_more() {
    for parallel in [1, 3, 6] {
        let limits = RunLimits { parallel, ..limits() };
        let in_flight = Some(CallsInFlight::answered_by(parallel));
        let host = Arc::new(Host { in_flight, ..Host::default() });
        let calls = 3 * parallel;
        let script = format!(
            "let f = []; for i in 0..{calls} {{ f.push(|| files.list()); }} parallel(f).len()"
        );
        // With fewer at a time, no call would be answered.
        let run =
            tokio::time::timeout(Duration::from_secs(60), run_within(&script, &limits, &host));
        let run = run.await.unwrap_or_else(|_| panic!("there are never {parallel} in flight"));
        assert_eq!(run.end, RunEnd::Value(json!(calls)), "{parallel}");
        let in_flight = host.in_flight.as_ref().expect("it counts them");
        assert_eq!(in_flight.most.load(Ordering::SeqCst), parallel);
    }
}

#[tokio::test]
async fn functions_without_a_name_are_shown_without_one() {
    let host = Arc::default();
    let script = "let f = |x| x + 1; print(f); debug(f); print([f]); print(#{ f: f });
        [f.name, name(f), f.to_string(), `${f}`, \"\" + f, [f].to_string(), Fn(\"named\").name]";
    let result = run_with(script, &host).await;
    let shown = json!(["", "", "Fn()", "Fn()", "Fn()", "[Fn()]", "named"]);
    assert_eq!(result.end, RunEnd::Value(shown));
    assert_eq!(result.printed, "Fn()\nFn()\n[Fn()]\n#{\"f\": Fn()}\n");
}

#[tokio::test]
async fn what_is_printed_is_kept_as_far_as_there_is_room() {
    let host = Arc::default();
    let result = run_with("print(\"one\"); debug(2); 3", &host).await;
    assert_eq!((result.printed.as_str(), result.calls), ("one\n2\n", 0));
    let flood = run_with("for i in 0..1000 { print(\"0123456789\"); } ()", &host).await;
    assert!((3_900..=4_000).contains(&flood.printed.len()), "{}", flood.printed.len());
    assert!(flood.printed.ends_with("the rest is left out"), "it is cut");
    let thrown = run("let s = \"x\"; s.pad(9000, 'y'); throw s").await;
    let RunEnd::Failed { code: "failed", message } = thrown else { panic!("{thrown:?}") };
    assert!((4_000..4_100).contains(&message.len()), "{}", message.len());
}

#[tokio::test]
async fn a_run_that_is_stopped_goes_no_further_whatever_it_catches() {
    for script in [
        "files.list(); my_mail.send(); files.list()",
        "try { my_mail.send() } catch { files.list(); files.list() } files.list()",
        "for i in 0..5 { try { my_mail.send(); } catch { } } 7",
        "parallel([|| my_mail.send(), || { let i = 0; while i < 1000 { i += 1; } i }]); files.list(); 7",
        "step(\"s\", || my_mail.send()); 7",
        "let ok = false; let a = [2, 1]; a.sort(|x, y| { my_mail.send(); ok = true; 0 }); print(\"x\"); step(\"v\", || ok)",
        "let a = [2, 1]; a.sort(|x, y| { my_mail.send(); 0 }); 7",
        "let a = [2, 1]; a.sort(|x, y| { my_mail.send(); 0 }); loop {}",
    ] {
        let host = Arc::new(Host { stops_at: Some("my-mail__send"), ..Host::default() });
        let result = run_with(script, &host).await;
        assert_eq!(result.end, RunEnd::Stopped, "{script}");
        let calls = host.calls.lock().unwrap();
        let last = calls.last().expect("something was called");
        assert!(last.1.starts_with("my-mail__send"), "{script}: {calls:?}");
        assert!(host.steps.lock().unwrap().is_empty() && result.printed.is_empty(), "{script}");
    }
}

#[tokio::test]
async fn calls_have_the_same_keys_at_each_attempt() {
    let script = "
        files.list();
        let all = parallel([|| files.read(#{ path: \"a\" }), || { files.list(); files.list() }]);
        step(\"chosen\", || files.read(#{ path: \"b\" }));
        files.list();
    ";
    let first = Arc::<Host>::default();
    run_with(script, &first).await;
    let mut keys = first.calls.lock().unwrap().clone();
    keys.sort();
    let expected = [
        ("1", "files__list {}"),
        ("2.0.1", "files__read {\"path\":\"a\"}"),
        ("2.1.1", "files__list {}"),
        ("2.1.2", "files__list {}"),
        ("3:chosen.1", "files__read {\"path\":\"b\"}"),
        ("4", "files__list {}"),
    ];
    assert_eq!(keys, expected.map(|(key, call)| (key.to_string(), call.to_string())));
    // A step that was done is not done again.
    let again = Arc::new(Host {
        steps: Mutex::new(first.steps.lock().unwrap().clone()),
        ..Host::default()
    });
    run_with(script, &again).await;
    assert!(again.calls.lock().unwrap().iter().all(|(key, _)| !key.starts_with('3')));
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_ends() {
    let script = "loop { try { files.list() } catch {} }".to_string();
    let host = Arc::<Host>::default();
    let (threads, limits) = (Threads::new(), limits());
    let script = (script, Value::Null, began());
    let run = RunScript::run(script, functions(), &limits, host.clone(), &threads);
    let waited = tokio::time::timeout(Duration::from_millis(1), run);
    // However far it came, its thread ends, and nothing keeps the host.
    let _ = waited.await;
    let weak = Arc::downgrade(&host);
    drop(host);
    while weak.upgrade().is_some() {
        tokio::task::yield_now().await;
    }
}
