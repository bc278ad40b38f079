//! Scripts: what they define, and what they may not do.

use super::*;
use crate::call::Caller;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenon_config::grant::{CapabilityRow, Eligibility};
use tenon_config::limits::LimitExceeded;
use tenon_types::{HookContext, HookMode, HookPoint, Verdict};

/// The name and the number of parameters of a function, as the page on scripts has it. A getter is a function,
/// too.
fn function_of(signature: &str) -> (String, usize) {
    let (receivers, rest) = match signature.split_once('.') {
        Some((_, rest)) => (1, rest),
        None => (0, signature),
    };
    match rest.split_once('(') {
        Some((name, parameters)) => {
            let parameters = parameters.trim_end_matches(')').split(", ");
            let parameters = parameters.filter(|parameter| !parameter.is_empty());
            (name.to_string(), receivers + parameters.count())
        }
        None => (format!("get${rest}"), receivers),
    }
}

#[test]
fn the_page_on_scripts_has_each_function() {
    let page = include_str!("../../../../docs/reference/scripts.md");
    // Those of runs are others.
    let (page, _) = page.split_once("\n## In runs\n").expect("it has them");
    let mut documented = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [functions, _, needs] = cells[..] else { panic!("{row}") };
        documented.extend(functions.split('`').skip(1).step_by(2).map(function_of));
        for capability in needs.split('`').skip(1).step_by(2) {
            let capability = CapabilityRow::named(capability).expect(row);
            assert!(matches!(capability.availability, Eligibility::OnRequest { .. }), "{row}");
        }
    }
    // Operators, and functions of the engine's own that are there in a bounded form.
    let is_of_rhai = |name: &str, parameters: usize| {
        !name.starts_with(|c: char| c.is_ascii_alphabetic())
            || ["debug", "print", "sleep", "to_debug", "to_json", "to_string"].contains(&name)
            || (name, parameters) == ("replace", 3)
    };
    let engine = engine(&setting_within(Limits::default().cpu), &Arc::default(), &Arc::default());
    let registered = engine.collect_fn_metadata(
        None,
        |info| Some((info.metadata.name.to_string(), info.metadata.num_params)),
        false,
    );
    let registered = registered.into_iter().filter(|(name, n)| !is_of_rhai(name, *n));
    assert_eq!(documented, registered.collect());
}

fn compile(text: &str) -> Result<RhaiPlugin, ScriptLoadError> {
    compile_within(Limits::default().cpu, text)
}

fn compile_within(cpu: Duration, text: &str) -> Result<RhaiPlugin, ScriptLoadError> {
    compile_with(setting_within(cpu), text)
}

pub(super) fn compile_with(
    setting: ScriptSetup,
    text: &str,
) -> Result<RhaiPlugin, ScriptLoadError> {
    let path = Path::new("dir/test.rhai");
    RhaiPlugin::compile(setting, path, text.into(), Threads::new())
}

pub(super) fn setting_within(cpu: Duration) -> ScriptSetup {
    let limits = Limits { cpu, ..Limits::default() };
    let settings = json!({ "least": 3 });
    let settings = settings.as_object().cloned().unwrap_or_default();
    ScriptSetup {
        id: "test".into(),
        version: None,
        description: None,
        limits,
        settings,
        log: Arc::new(PluginLog::new("test".into(), Default::default(), 100)),
        granted: Arc::new(GrantedCapabilities::new(
            "test".into(),
            Default::default(),
            Arc::default(),
        )),
        network: None,
        news: PluginNotifier::unheard(),
    }
}

pub(super) fn context() -> CallContext {
    Caller::default().context_of("1".into(), None, Limits::default().wall).1
}

fn hook_context(json: &str) -> HookContext {
    HookContext::parse(json).expect("it is an object")
}

async fn fire(text: &str, before: Value) -> Result<HookDecision, Failure> {
    let before = hook_context(&before.to_string());
    let event = HookEvent { point: HookPoint::BeforePlan, context: before, call: context() };
    compile(text).expect("the script compiles").handle(event).await
}

async fn call(body: &str) -> Result<ToolResult, Failure> {
    call_within(Limits::default().cpu, body).await
}

async fn call_within(cpu: Duration, body: &str) -> Result<ToolResult, Failure> {
    call_with(setting_within(cpu), body).await
}

async fn call_with(setting: ScriptSetup, body: &str) -> Result<ToolResult, Failure> {
    let text = format!(
        "fn deep(n) {{ deep(n + 1) }} tool(#{{ name: \"t\", description: \"d\" }}, |a| {{ {body} }});"
    );
    compile_with(setting, &text)
        .expect("the script compiles")
        .call_tool("t", json!({ "n": 2 }).into(), context())
        .await
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_script() {
    assert!(compile("\u{feff}fn BeforePlan(context) {}").is_ok());
}

#[test]
fn a_variable_that_is_not_there_is_found_when_the_script_is_loaded() {
    let check = |text: &str, expected: Option<&str>| {
        let problem = compile(text).err().map(|error| error.to_string());
        let said = problem.as_deref().unwrap_or_default();
        assert_eq!(problem.is_some(), expected.is_some(), "{text}: {said}");
        assert!(said.contains(expected.unwrap_or_default()), "{text}: {said}");
    };
    check("fn BeforePlan(context) { if contex.goal == 1 { veto(\"no\") } }", Some("contex"));
    check("fn BeforePlan(context) {\n  limit\n}", Some("test.rhai:2:3: Undefined variable: limit"));
    check("hook(\"before-plan\", |context| contexts.goal);", Some("contexts"));
    check("let limit = 3; fn BeforePlan(context) { limit }", Some("limit"));
    check("let limit = 3; hook(\"before-plan\", |context| limit);", None);
    check("const LIMIT = 3; fn BeforePlan(context) { LIMIT }", None);
    check("fn BeforePlan(context) { LIMIT } const LIMIT = 3;", None);
    check("if true { const LIMIT = 3; } fn BeforePlan(context) { LIMIT }", Some("LIMIT"));
    check("let text = `a ${1 + 1} const X = 2`; fn BeforePlan(context) { X }", Some("X"));
    check("fn BeforePlan(context) { state.get(\"x\") }", None);
}

#[tokio::test]
async fn functions_see_the_constants_of_the_script() {
    let check = async |text: &str, expected: HookDecision| {
        let outcome = fire(text, json!({ "goal": "go" })).await;
        assert_eq!(outcome.expect("the hook answers"), expected, "{text}");
    };
    let literal = "const WHY = \"no\"; fn BeforePlan(context) { veto(WHY) }";
    check(literal, HookDecision::Veto("no".into())).await;
    let computed = "const WHY = [\"n\", \"o\"].reduce(|all, c| all + c, \"\"); fn BeforePlan(context) { helper() } fn helper() { veto(WHY) }";
    check(computed, HookDecision::Veto("no".into())).await;
    // What a call does to one is not there for the next.
    let script = compile(
        "const SEEN = []; fn BeforePlan(context) { let all = SEEN; all.push(1); if all.len() > 1 { veto(\"kept\") } }",
    )
    .expect("the script compiles");
    for _ in 0..2 {
        let event = HookEvent {
            point: HookPoint::BeforePlan,
            context: HookContext::default(),
            call: context(),
        };
        assert_eq!(script.handle(event).await.expect("it answers"), HookDecision::Continue);
    }
    let parameter = "const A = 1; fn BeforePlan(A) { if A.goal != \"go\" { veto(\"no\") } }";
    check(parameter, HookDecision::Continue).await;
}

#[tokio::test]
async fn a_context_is_changed_in_place() {
    let outcome =
        fire("fn BeforePlan(context) { context.goal.size = 2; }", json!({"goal": {"size": 1}}))
            .await;
    let expected = hook_context(r#"{"goal":{"size":2}}"#);
    assert_eq!(outcome.unwrap(), HookDecision::Replace(expected));
}

#[tokio::test]
async fn other_outcomes_are_returned() {
    let check = async |body: &str, expected: HookDecision| {
        let text = format!("fn BeforePlan(context) {{ {body} }}");
        let outcome = fire(&text, json!({"goal": 1})).await.expect("the hook answers");
        assert_eq!(outcome, expected, "{body}");
    };
    check("", HookDecision::Continue).await;
    check("context.goal", HookDecision::Continue).await;
    check("veto(\"no\")", HookDecision::Veto("no".into())).await;
    check("replace(#{ b: 2 })", HookDecision::Replace(hook_context(r#"{"b":2}"#))).await;
    check("#{ b: 2 }", HookDecision::Replace(hook_context(r#"{"b":2}"#))).await;
}

#[tokio::test]
async fn hooks_have_a_mode_and_a_priority() {
    let check = async |text: &str, expected: Result<(HookMode, i32), &str>| {
        let registered = match compile(text) {
            Ok(script) => Ok(script.register().await.expect("it registers").hooks),
            Err(error) => Err(error.to_string()),
        };
        match (registered, expected) {
            (Ok(hooks), Ok((mode, priority))) => {
                let [hook] = &hooks[..] else { panic!("{text}: {hooks:?}") };
                assert_eq!((hook.mode, hook.priority), (mode, priority), "{text}");
            }
            (Err(error), Err(expected)) => {
                assert!(error.contains(expected), "{text}: {error}");
            }
            (registered, _) => panic!("{text}: {registered:?}"),
        }
    };
    let (enforce, audit) = (HookMode::Enforce, HookMode::Audit);
    check("fn BeforePlan(c) {}", Ok((enforce, 0))).await;
    let hook = |options: &str| format!("hook(\"before-plan\", {options}|c| 1);");
    check(&hook(""), Ok((enforce, 0))).await;
    check(&hook("#{}, "), Ok((enforce, 0))).await;
    check(&hook("#{ priority: -7 }, "), Ok((enforce, -7))).await;
    check(&hook("#{ mode: \"audit\", priority: 10 }, "), Ok((audit, 10))).await;
    check(&hook("#{ mode: \"enforce\" }, "), Ok((enforce, 0))).await;
    check(&hook("#{ mode: \"watch\" }, "), Err("is \"enforce\" or \"audit\"")).await;
    check(&hook("#{ mode: true }, "), Err("`mode` of the hook is not a text")).await;
    for priority in ["1.5", "2147483648", "\"high\""] {
        let expected = Err("the `priority` of a hook is a whole number");
        check(&hook(&format!("#{{ priority: {priority} }}, ")), expected).await;
    }
    let unknown = "a hook has no \"audit\"; it has priority, mode";
    check(&hook("#{ audit: true }, "), Err(unknown)).await;
    let two = |one: &str, other: &str| [hook(one), hook(other)].concat();
    check(&two("#{ priority: 1 }, ", "#{ priority: 2 }, "), Ok((enforce, 2))).await;
    check(&two("", "#{ mode: \"audit\" }, "), Err("all of them have it, or none")).await;
}

#[tokio::test]
async fn hooks_of_a_script_run_in_the_order_of_their_priorities() {
    let hook = |priority: i32| {
        let options = format!("#{{ priority: {priority} }}");
        format!("hook(\"before-plan\", {options}, |c| {{ c.goal += \" {priority}\"; }});")
    };
    let named = "fn BeforePlan(c) { c.goal += \" named\"; }";
    let text = [hook(-1), hook(1), named.into(), hook(2)].concat();
    let outcome = fire(&text, json!({ "goal": "" })).await.unwrap();
    assert_eq!(outcome, HookDecision::Replace(hook_context(r#"{"goal":" 2 1 named -1"}"#)));
}

#[tokio::test]
async fn tools_answer_in_the_form_of_what_they_return() {
    assert_eq!(call("`n is ${a.n}`").await.unwrap().plain_text(), "n is 2");
    assert_eq!(call("#{ n: a.n + 1 }").await.unwrap().structured.as_deref(), Some("{\"n\":3}"));
    let thrown = call("throw \"not today\"").await.unwrap();
    assert!(thrown.is_error && thrown.plain_text() == "not today");
}

#[tokio::test]
async fn every_limit_stops_a_script() {
    let check = async |body: &str, expected: LimitExceeded| {
        let cpu = match expected {
            LimitExceeded::Cpu(cpu) => cpu,
            _ => Limits::default().cpu,
        };
        let mut setting = setting_within(cpu);
        // What is made before it is too much takes some time.
        setting.limits.memory = 32 << 20;
        let failure = call_with(setting, body).await.expect_err("the script is stopped");
        assert!(
            matches!(failure, Failure::LimitExceeded(limit) if limit == expected),
            "{body}: {failure}"
        );
    };
    let cpu = LimitExceeded::Cpu(Duration::from_millis(200));
    check("loop {}", cpu).await;
    check("deep(0)", LimitExceeded::Depth).await;
    check("let s = \"x\"; loop { s += s; }", LimitExceeded::ValueSize).await;
    check("let l = []; l.pad(10000000, 0); l", LimitExceeded::ValueSize).await;
    let memory = LimitExceeded::Memory(32 << 20);
    let many = "let l = []; l.pad(90000, 0); let m = #{}; for i in 0..20000 { m[`${i}`] = l; } 1";
    check(many, memory).await;
    // Long keys: of maps in a variable, and of one that a function has captured.
    let key = "let s = \"\"; s.pad(1000000, \"x\"); let k = #{};";
    check(
        &format!("{key} let m = []; for i in 0..500 {{ k = #{{}}; k[s + i] = (); m.push(k) }} 1"),
        memory,
    )
    .await;
    check(&format!("{key} let f = || k.len(); for i in 0..500 {{ k[i + s] = (); }} 1"), memory)
        .await;
    // Texts that are held by functions which hold functions.
    let long = "let s = \"x\"; for i in 0..19 { s += s; } let g = 0; loop { let v = s + \"y\";";
    check(&format!("{long} let p = g; g = || v + p; }}"), memory).await;
    check(&format!("{long} let a = [g]; g = || v + a; }}"), memory).await;
    check(&format!("{long} let m = #{{ v: v, g: g }}; g = || m; }}"), memory).await;
    check(&format!("{long} let b = blob(100000); let p = g; g = || b + p; }}"), memory).await;
    // Operations that take long each.
    check("let l = []; l.pad(99999, 1); loop { l.sort(); }", cpu).await;
    // Functions that are called often, and take few operations each.
    let calls = "let m = []; m.pad(2000, 0); m.map(|n| 0).len()";
    check(&format!("let l = []; l.pad(1000, 0); l.map(|n| {{ {calls} }}).len()"), cpu).await;
}

#[test]
fn what_is_too_large_is_told_with_its_bound() {
    let check = |script: &str, expected: &str| {
        let error = compile(script).map(drop).expect_err(script).to_string();
        let expected = format!("it reached its limit of value size: {expected}");
        assert!(error.contains(&expected), "{script}: {error}");
    };
    check("let s = \"x\"; loop { s += s; }", "a text has at most 1 MiB");
    check("let l = []; l.pad(100001, 0);", "an array or a blob has at most 100000 items");
    check("let b = blob(100001);", "an array or a blob has at most 100000 items");
    check(
        "let m = #{}; for i in 0..10001 { m[`k${i}`] = 1; } m.z = 1;",
        "a map has at most 10000 members",
    );
    check(
        "let l = [1]; let f = || l; for i in 0..200001 { l.len(); }",
        "captured variables are used at most 200000 times",
    );
}

#[test]
fn a_script_takes_so_many_operations_and_no_more_whatever_the_clock_says() {
    let setting = setting_within(Duration::from_millis(2));
    let limits = setting.limits.clone();
    let mut engine = engine(&setting, &Arc::default(), &Arc::default());
    // Nobody looks at the time; it ends all the same where there is no limit, or a larger one.
    let (most, last) = (limits.operations(), Arc::new(AtomicU64::new(0)));
    let seen = last.clone();
    engine.on_progress(move |operations| {
        seen.store(operations, Ordering::Relaxed);
        (operations > most).then_some(Dynamic::UNIT)
    });
    let error = engine.run("loop {}").expect_err("it is stopped");
    assert!(matches!(*error, EvalAltResult::ErrorTooManyOperations(_)), "{error}");
    let text = ScriptSource::new("test.rhai".into(), "loop {}".into());
    let failure = text.failure(&error, &limits);
    let cpu = limits.cpu;
    assert!(
        matches!(failure, Failure::LimitExceeded(LimitExceeded::Cpu(of)) if of == cpu),
        "{failure}"
    );
    assert_eq!(limits.operations(), 1_000_000);
    // As many as there may be are let through.
    engine.run("for i in 0..10_000 {}").expect("it is within its operations");
    let turn = last.load(Ordering::Relaxed) / 10_000;
    let turns = 990_000 / turn;
    engine.run(&format!("for i in 0..{turns} {{}}")).expect("it is within its operations");
    assert!(last.load(Ordering::Relaxed) > 900_000);
}

#[tokio::test]
async fn deep_values_do_not_exhaust_the_stack() {
    // What is stopped, and by which limit first, depends on the machine.
    for body in [
        "let v = []; loop { v = [v]; }",
        "let v = #{}; loop { v = #{ v: v }; }",
        "let f = || 1; loop { let g = f; f = || g; }",
        "let f = []; loop { let g = f; f = [|| g]; }",
    ] {
        let failure = call_within(Duration::from_millis(500), body).await;
        let failure = failure.expect_err("the script is stopped");
        assert!(matches!(failure, Failure::LimitExceeded(_)), "{body}: {failure}");
    }
    let failure = call("let v = []; for i in 0..200 { v = [v]; } v").await.unwrap_err();
    assert!(failure.to_string().contains("nested more than 128 deep"), "{failure}");
}

#[tokio::test]
async fn calls_share_nothing() {
    let script = compile(
        "let count = [0]; tool(#{ name: \"t\", description: \"d\" }, |a| { count[0] += 1; count[0] });",
    )
    .unwrap();
    for _ in 0..2 {
        let result = script.call_tool("t", json!({}).into(), context()).await.unwrap();
        assert_eq!(result.plain_text(), "1");
    }
}

#[tokio::test]
async fn the_error_of_an_unknown_resource_has_its_uri() {
    let text = "resource(#{ uri: \"a:{b}\", name: \"a\" }, |v| ());";
    let script = compile(text).expect("the script compiles");
    for uri in ["a:c", "b:c"] {
        let Err(Failure::Answered(error)) = script.read_resource(uri, context()).await else {
            panic!("there is no {uri}");
        };
        assert_eq!(error.code, tenon_types::ErrorCode::NotFound, "{uri}");
        assert_eq!(error.data, Some(json!({ "uri": uri }).into()));
    }
}

#[tokio::test]
async fn there_is_no_way_out_of_a_script() {
    assert!(compile("import \"other\" as o;").is_err());
    assert!(compile("let x = eval(\"1\");").is_err());
    assert!(compile("sleep(1000);").is_err());
    assert!(compile("sleep(1000.0);").is_err());
}

#[test]
fn errors_name_file_line_and_column() {
    let check = |text: &str, expected: &str| {
        let error = compile(text).map(drop).expect_err("the script is refused");
        assert_eq!(error.to_string(), expected);
    };
    check("let x = ;", "test.rhai:1:9: Unexpected ';'\n  1 | let x = ;");
    check("\nlet x = y;", "test.rhai:2:9: Undefined variable: y\n  2 | let x = y;");
    check(
        "tool(#{ name: \"t\" }, |a| a);",
        "test.rhai:1:1: the tool \"t\" has no description\n  1 | tool(#{ name: \"t\" }, |a| a);\n  hint: add `description: \"…\"`, which tells models what it is for",
    );
}

#[test]
fn what_could_never_be_called_is_refused() {
    let check = |text: &str, expected: &str| {
        let error = compile(text).map(drop).expect_err("the script is refused").to_string();
        let line = error.lines().next().unwrap();
        assert!(line.starts_with("test.rhai:") && line.ends_with(expected), "{text}: {error}");
    };
    check(
        "tool(#{ name: \"t\", description: \"d\" }, || 1);",
        "the function of the tool \"t\" takes 0 parameters and should take 1",
    );
    check(
        "let by = 2; strategy(#{ name: \"s\", description: \"d\" }, |a| by);",
        "the function of the strategy \"s\" takes 1 parameters and should take 2",
    );
    check(
        "hook(\"before-plan\", Fn(\"nowhere\"));",
        "the function of the hook before-plan is not in the script",
    );
    for name in ["beforePlan", "before_plan", "BeforePlann", "BeforePaln"] {
        let expected = format!("a hook point is named `BeforePlan`, not `{name}`");
        check(&format!("fn {name}(context) {{}}"), &expected);
    }
    check(
        "fn BeforePlan(a, b) {}",
        "`BeforePlan` takes 2 parameters; a hook takes one, the context",
    );
}

#[test]
fn what_a_script_defines_is_bounded_together() {
    let check = |text: &str, expected: &str| {
        let error = compile(text).map(drop).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    };
    let long = "let s = \"x\"; for i in 0..19 { s += s; } for i in 0..20000";
    let bytes = "texts of at most 16777216 bytes together";
    check(&format!("{long} {{ hook(\"test:\" + s + i, |c| 1); }}"), bytes);
    check(
        &format!("{long} {{ strategy(#{{ name: \"t\" + i, description: s }}, |a, b| 1); }}"),
        bytes,
    );
    check(&format!("{long} {{ tool(#{{ name: \"t\" + i, description: s }}, |a| 1); }}"), bytes);
    let number = "at most 10000 tools, strategies, hooks, resources and prompts";
    check("for i in 0..20000 { hook(\"test:x\" + i, |c| 1); }", number);
    let most = "for i in 0..10000 { hook(\"test:x\" + i, |c| 1); }";
    assert!(compile(most).is_ok());
}

#[tokio::test]
async fn strategies_score() {
    let check = async |body: &str, expected: Result<(f64, Verdict), &str>| {
        let text = format!(
            "let half = 0.5; strategy(#{{ name: \"s\", description: \"d\" }}, |subject, options| {{ {body} }});"
        );
        let script = compile(&text).expect("the script compiles");
        let (subject, options) = (json!({ "output": "four" }), json!({ "most": 5 }));
        let scored = script.evaluate("s", subject.into(), options.into(), context()).await;
        match (scored, expected) {
            (Ok(evaluation), Ok((score, verdict))) => {
                assert_eq!(evaluation.score, score, "{body}");
                assert_eq!(evaluation.verdict, verdict, "{body}");
            }
            (Err(failure), Err(expected)) => {
                assert!(failure.to_string().contains(expected), "{body}: {failure}");
            }
            (scored, _) => panic!("{body}: {scored:?}"),
        }
    };
    check("subject.output.len() < options.most", Ok((1.0, Verdict::Pass))).await;
    check("subject.output.len() > config(\"least\")", Ok((1.0, Verdict::Pass))).await;
    check("config().least == 3 && config(\"most\") == ()", Ok((1.0, Verdict::Pass))).await;
    check("half / 2.0", Ok((0.25, Verdict::Fail))).await;
    check("1", Ok((1.0, Verdict::Pass))).await;
    let inconclusive = "#{ score: half, verdict: \"inconclusive\" }";
    check(inconclusive, Ok((0.5, Verdict::Inconclusive))).await;
    check(
        "#{ score: 1.0, findings: [#{ criterion: \"c\", verdict: \"pass\", reason: \"r\" }] }",
        Ok((1.0, Verdict::Pass)),
    )
    .await;
    check("\"good\"", Err("a score, a truth value or a map with `score`")).await;
    check("#{ verdict: \"pass\" }", Err("missing field `score`")).await;
    check("veto(\"no\")", Err("are for hooks")).await;
    check("throw \"cannot\"", Err("cannot")).await;
}

#[test]
fn what_functions_have_captured_is_freed_with_the_call() {
    for script in [
        // A map that holds a function that holds the map.
        "let m = #{}; m.f = || m; m.t = token();",
        // A variable that holds a function that holds the variable.
        "let n = 0; let t = token(); n = || [n, t];",
    ] {
        let token = Arc::new(());
        let mut engine =
            engine(&setting_within(Duration::from_secs(5)), &Arc::default(), &Arc::default());
        let kept = token.clone();
        engine.register_fn("token", move || Dynamic::from(kept.clone()));
        let limits = Limits::default();
        let (ran, _) = running_call::within(&limits, Arc::default(), None, || engine.run(script));
        ran.expect(script);
        drop(engine);
        assert_eq!(Arc::strong_count(&token), 1, "{script}");
    }
}
