//! Plugins that are Rhai scripts.
//!
//! A script defines hooks as functions named after the points, which change `context` in place or
//! return what `veto` and `replace` make; and tools, by calling `tool` when it is loaded:
//!
//! ```rhai
//! tool(#{ name: "shout", description: "Says it louder", schema: #{ type: "object" } },
//!      |arguments| arguments.text.to_upper());
//!
//! fn MessageSending(context) { context.message += "!"; }
//! ```
//!
//! Scripts do no input or output. They run on threads of their own, so that one that computes does
//! not hold up the host, and each call is stopped by the engine's limits, or when its caller gives
//! up.

mod engine;
mod threads;

use async_trait::async_trait;
use rhai::serde::to_dynamic;
use rhai::{AST, CallFnOptions, Dynamic, EvalAltResult, FnPtr, Map, Scope};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use threads::Threads;

use super::{Failure, Plugin};
use crate::bindings::hook_handler::{Event, Outcome};
use crate::bindings::lifecycle::{Identity, Registration};
use crate::bindings::types::{CallContext, Error, HookPoint, ToolResult};
use crate::hook::POINTS;
use crate::limits::{Limit, Limits};
use engine::{Decision, Definitions, Ended, GiveUp, ScriptTool, engine, to_json};

/// A script, compiled.
pub(crate) struct RhaiPlugin {
    script: Arc<Script>,
    threads: Arc<Threads>,
}

struct Script {
    id: Arc<str>,
    file: String,
    engine: rhai::Engine,
    ast: AST,
    tools: Vec<ScriptTool>,
    hooks: Vec<(HookPoint, Handler)>,
    limits: Limits,
}

/// What runs at a point.
enum Handler {
    /// A function of the script, by its name.
    Function(&'static str),
    /// A closure that was given to `hook`.
    Closure(FnPtr),
}

/// Why a script is no plugin. The place is that of the script's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(String);

impl RhaiPlugin {
    /// Compiles a script and runs its top level once, which defines its tools. It blocks.
    pub(crate) fn compile(
        id: Arc<str>,
        path: &Path,
        text: String,
        limits: Limits,
        threads: Arc<Threads>,
    ) -> Result<Self, ScriptError> {
        let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let compiled = threads.run_blocking(move || Script::compile(id, file, &text, limits));
        let script = compiled.map_err(|failure| ScriptError(failure.to_string()))??;
        Ok(Self { script: Arc::new(script), threads })
    }

    /// Runs something of the script on a thread that may compute. Dropping the future stops it.
    async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Script) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Failure> {
        let given_up = Arc::new(AtomicBool::new(false));
        let _guard = GiveUp(given_up.clone());
        let script = self.script.clone();
        self.threads
            .run(move || engine::within(script.limits.cpu, given_up, || work(&script)))
            .await?
    }
}

impl Script {
    fn compile(
        id: Arc<str>,
        file: String,
        text: &str,
        limits: Limits,
    ) -> Result<Self, ScriptError> {
        let definitions = Arc::new(Mutex::new(Definitions::default()));
        let engine = engine(&id, &limits, &definitions);
        let ast = engine.compile(text).map_err(|error| {
            ScriptError(format!("{file}:{}: {}", place(error.position()), error.err_type()))
        })?;
        engine::within(limits.cpu, Arc::default(), || engine.run_ast(&ast))
            .map_err(|error| ScriptError(explain(&file, &error)))?;

        let mut defined = definitions.lock().unwrap_or_else(PoisonError::into_inner);
        defined.closed = true;
        let tools = std::mem::take(&mut defined.tools);
        let closures = std::mem::take(&mut defined.hooks);
        drop(defined);
        let functions = POINTS.iter().filter_map(|info| {
            let defined = ast
                .iter_functions()
                .any(|function| function.name == info.function && function.params.len() == 1);
            defined.then(|| (info.point.clone(), Handler::Function(info.function)))
        });
        let closures =
            closures.into_iter().map(|(point, function)| (point, Handler::Closure(function)));
        let hooks = functions.chain(closures).collect();
        Ok(Self { id, file, engine, ast, tools, hooks, limits })
    }

    fn call_tool(&self, name: &str, arguments: &str) -> Result<ToolResult, Failure> {
        let tool =
            self.tools.iter().find(|tool| tool.definition.name == name).ok_or_else(|| {
                Failure::Answered(Error::NotFound(format!("this script has no tool \"{name}\"")))
            })?;
        let arguments = parse(arguments)?;
        match tool.function.call::<Dynamic>(&self.engine, &self.ast, (arguments,)) {
            Ok(answer) => self.tool_result(answer),
            // What a script throws is meant for its caller.
            Err(error) => match thrown(&error) {
                Some(message) => Ok(ToolResult::error(message)),
                None => Err(self.failure(&error)),
            },
        }
    }

    fn tool_result(&self, answer: Dynamic) -> Result<ToolResult, Failure> {
        if answer.is_unit() {
            return Ok(ToolResult { content: Vec::new(), ..ToolResult::text("") });
        }
        if answer.is_string() {
            return Ok(ToolResult::text(answer.into_string().unwrap_or_default()));
        }
        let value = to_json(&answer).map_err(|problem| self.broken(&problem))?;
        let text = value.to_string();
        let structured = value.is_object().then(|| text.clone());
        Ok(ToolResult { structured, ..ToolResult::text(text) })
    }

    fn handle(&self, event: &Event) -> Result<Outcome, Failure> {
        let before: Value = serde_json::from_str(&event.context)
            .map_err(|error| Failure::Host(format!("the context is no JSON: {error}")))?;
        // A shared value, so that the function changes this very one in place.
        let mut context = to_dynamic(&before).map_err(|error| self.failure(&error))?.into_shared();
        for (_, handler) in self.hooks.iter().filter(|(point, _)| *point == event.point) {
            match self.run_handler(handler, &context).map_err(|error| self.failure(&error))? {
                Some(Decision::Veto(reason)) => return Ok(Outcome::Veto(reason)),
                Some(Decision::Replace(replaced)) => {
                    let mut place = context
                        .write_lock::<Map>()
                        .ok_or_else(|| self.broken("the context is no map any more"))?;
                    *place = replaced;
                }
                None => {}
            }
        }
        let after = to_json(&context).map_err(|problem| self.broken(&problem))?;
        Ok(if after == before { Outcome::Continue } else { Outcome::Replace(after.to_string()) })
    }

    /// Runs one handler. A map that it returns is the context to go on with.
    fn run_handler(
        &self,
        handler: &Handler,
        context: &Dynamic,
    ) -> Result<Option<Decision>, Box<EvalAltResult>> {
        let answer = match handler {
            Handler::Function(name) => self.engine.call_fn_with_options::<Dynamic>(
                CallFnOptions::new().eval_ast(false),
                &mut Scope::new(),
                &self.ast,
                name,
                (context.clone(),),
            )?,
            Handler::Closure(function) => {
                function.call::<Dynamic>(&self.engine, &self.ast, (context.clone(),))?
            }
        };
        let answer = answer.flatten();
        if let Some(decision) = answer.clone().try_cast::<Decision>() {
            return Ok(Some(decision));
        }
        Ok(answer.try_cast::<Map>().map(Decision::Replace))
    }

    fn broken(&self, problem: &str) -> Failure {
        Failure::Trapped(format!("{}: {problem}", self.file))
    }

    /// What an error of the engine means.
    fn failure(&self, error: &EvalAltResult) -> Failure {
        let mut root = error;
        while let EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
        | EvalAltResult::ErrorInModule(_, inner, _) = root
        {
            root = inner;
        }
        match root {
            EvalAltResult::ErrorTooManyOperations(_) => Failure::Limit(Limit::Cpu(self.limits.cpu)),
            EvalAltResult::ErrorStackOverflow(_) => Failure::Limit(Limit::Depth),
            EvalAltResult::ErrorDataTooLarge(..) => Failure::Limit(Limit::ValueSize),
            EvalAltResult::ErrorTerminated(why, _) => match why.clone().try_cast::<Ended>() {
                Some(Ended::OutOfTime) => Failure::Limit(Limit::Cpu(self.limits.cpu)),
                Some(Ended::TooManyCaptures) => Failure::Limit(Limit::ValueSize),
                Some(Ended::GivenUp) | None => Failure::Lost("its caller gave up".into()),
            },
            _ => match thrown(root) {
                Some(message) => Failure::Answered(Error::Failed(message)),
                None => Failure::Trapped(explain(&self.file, error)),
            },
        }
    }
}

/// The message of a `throw`.
fn thrown(error: &EvalAltResult) -> Option<String> {
    match error {
        EvalAltResult::ErrorRuntime(value, _) => Some(value.to_string()),
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _) => thrown(inner),
        _ => None,
    }
}

/// An error with the place of the innermost call.
fn explain(file: &str, error: &EvalAltResult) -> String {
    let mut root = error;
    while let EvalAltResult::ErrorInFunctionCall(_, _, inner, _) = root {
        root = inner;
    }
    let mut bare = root.to_string();
    // The message ends in its place, which goes in front.
    if let Some(end) = bare.rfind(" (line ") {
        bare.truncate(end);
    }
    format!("{file}:{}: {bare}", place(root.position()))
}

fn place(position: rhai::Position) -> String {
    match (position.line(), position.position()) {
        (Some(line), Some(column)) => format!("{line}:{column}"),
        (Some(line), None) => line.to_string(),
        _ => "0".into(),
    }
}

fn parse(json: &str) -> Result<Dynamic, Failure> {
    let value: Value = serde_json::from_str(json)
        .map_err(|error| Failure::Answered(Error::InvalidInput(format!("arguments: {error}"))))?;
    to_dynamic(&value)
        .map_err(|error| Failure::Answered(Error::InvalidInput(format!("arguments: {error}"))))
}

#[async_trait]
impl Plugin for RhaiPlugin {
    async fn register(&self) -> Result<Registration, Failure> {
        let script = &self.script;
        let mut hooks: Vec<HookPoint> = Vec::new();
        for (point, _) in &script.hooks {
            if !hooks.contains(point) {
                hooks.push(point.clone());
            }
        }
        Ok(Registration {
            identity: Identity {
                name: script.id.to_string(),
                version: "0.0.0".into(),
                description: format!("The script {}", script.file),
            },
            tools: script.tools.iter().map(|tool| tool.definition.clone()).collect(),
            hooks,
            providers: Vec::new(),
            evals: Vec::new(),
            resources: false,
            prompts: false,
        })
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: String,
        _: CallContext,
    ) -> Result<ToolResult, Failure> {
        let name = name.to_string();
        self.run(move |script| script.call_tool(&name, &arguments)).await
    }

    async fn handle(&self, event: Event) -> Result<Outcome, Failure> {
        self.run(move |script| script.handle(&event)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compile(text: &str) -> Result<RhaiPlugin, ScriptError> {
        let limits = Limits { cpu: std::time::Duration::from_millis(50), ..Limits::default() };
        let path = Path::new("dir/test.rhai");
        RhaiPlugin::compile("test".into(), path, text.into(), limits, Threads::new())
    }

    fn context() -> CallContext {
        CallContext {
            call_id: "1".into(),
            agent_id: None,
            session_id: None,
            traceparent: None,
            deadline: None,
        }
    }

    async fn fire(text: &str, before: Value) -> Result<Outcome, Failure> {
        let event =
            Event { point: HookPoint::BeforePlan, context: before.to_string(), call: context() };
        compile(text).expect("the script compiles").handle(event).await
    }

    async fn call(body: &str) -> Result<ToolResult, Failure> {
        let text = format!(
            "fn deep(n) {{ deep(n + 1) }} tool(#{{ name: \"t\", description: \"d\" }}, |a| {{ {body} }});"
        );
        compile(&text)
            .expect("the script compiles")
            .call_tool("t", "{\"n\": 2}".into(), context())
            .await
    }

    #[tokio::test]
    async fn a_context_is_changed_in_place() {
        let outcome =
            fire("fn BeforePlan(context) { context.goal.size = 2; }", json!({"goal": {"size": 1}}))
                .await;
        assert!(matches!(outcome, Ok(Outcome::Replace(json)) if json == r#"{"goal":{"size":2}}"#));
    }

    #[tokio::test]
    async fn other_outcomes_are_returned() {
        let check = async |body: &str, expected: &str| {
            let text = format!("fn BeforePlan(context) {{ {body} }}");
            let outcome = fire(&text, json!({"a": 1})).await.expect("the hook answers");
            assert_eq!(format!("{outcome:?}"), expected);
        };
        check("", "Outcome::Continue").await;
        check("context.a", "Outcome::Continue").await;
        check("veto(\"no\")", "Outcome::Veto(\"no\")").await;
        check("replace(#{ b: 2 })", "Outcome::Replace(\"{\\\"b\\\":2}\")").await;
        check("#{ b: 2 }", "Outcome::Replace(\"{\\\"b\\\":2}\")").await;
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
        let check = async |body: &str, expected: Limit| {
            let failure = call(body).await.expect_err("the script is stopped");
            assert!(
                matches!(failure, Failure::Limit(limit) if limit == expected),
                "{body}: {failure}"
            );
        };
        let cpu = Limit::Cpu(std::time::Duration::from_millis(50));
        check("loop {}", cpu).await;
        check("deep(0)", Limit::Depth).await;
        check("let s = \"x\"; loop { s += s; }", Limit::ValueSize).await;
        check("let l = []; l.pad(10000000, 0); l", Limit::ValueSize).await;
        // Operations that take long each.
        check("let l = []; l.pad(99999, 1); loop { l.sort(); }", cpu).await;
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
            let failure = call(body).await.expect_err("the script is stopped");
            assert!(matches!(failure, Failure::Limit(_)), "{body}: {failure}");
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
            let result = script.call_tool("t", "{}".into(), context()).await.unwrap();
            assert_eq!(result.plain_text(), "1");
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
        check("let x = ;", "test.rhai:1:9: Unexpected ';'");
        check("\nlet x = y;", "test.rhai:2:9: Variable not found: y");
        check(
            "tool(#{ name: \"t\" }, |a| a);",
            "test.rhai:1:1: Runtime error: the tool \"t\" has no description",
        );
    }
}
