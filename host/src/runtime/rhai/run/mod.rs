//! Runs: scripts that call tools of many plugins as functions, for somebody who sends them.
//!
//! ```rhai
//! let found = parallel([|| github.search(#{ query: "bug" }), || tracker.list()]);
//! step("choice", || found[0][0].id)
//! ```
//!
//! A run has the bounds of any script. Each of its calls has a key that names its place: the number of the call, and in
//! [`parallel`](functions) that of the branch. As long as a script computes the same, it makes the same calls under the same
//! keys, so that [`RunHost`] can answer those of an earlier attempt from its journal.

mod check;
mod context;
mod functions;
mod promotion;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use rhai::serde::to_dynamic;
use rhai::{AST, Dynamic, EvalAltResult, FnPtr, Position, Scope};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};
use tenon_config::config::RunSettings;
use tenon_config::limits::{LimitExceeded, Limits};
use tenon_types::text::cut;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

pub(crate) use functions::ToolFunctions;
pub use promotion::PromotedScript;
pub(crate) use promotion::promote;

use super::engine::{self, AbandonGuard};
use super::error::{ScriptSource, limit_text, root, thrown};
use super::threads::{self, Threads};
use super::{comparison, content, json, running_call, time};
use crate::call::Failure;
use crate::capability::services::Clock;
use context::{RunBranch, RunCounters, RunShared};

/// The bounds of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLimits {
    /// How many operations of the script it may take.
    pub operations: u64,
    /// How long it may compute; the time of its calls is not counted.
    pub cpu: Duration,
    /// How long it may take in all. The time in which it is paused is not counted.
    pub wall: Duration,
    /// How many calls it may make.
    pub calls: u64,
    /// How many branches of `parallel` run at a time.
    pub parallel: usize,
    /// How many bytes its result and what it prints may have together.
    pub output: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        RunSettings::default().into()
    }
}

impl From<RunSettings> for RunLimits {
    fn from(settings: RunSettings) -> Self {
        let RunSettings { operations, cpu, wall, calls, parallel, output_kib } = settings;
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            operations,
            cpu,
            wall,
            calls: calls.into(),
            parallel: size(parallel),
            output: size(output_kib).saturating_mul(1 << 10),
        }
    }
}

/// The longest script of a run, in bytes.
pub const MAX_RUN_SCRIPT_BYTES: usize = 256 << 10;

/// The longest `data` of a run, in bytes of JSON: it is kept with the script as one item of the store.
pub const MAX_RUN_DATA_BYTES: usize = 512 << 10;

/// What a run asks for. Dropping a future of it gives the call up.
#[async_trait]
pub(crate) trait RunHost: Send + Sync + 'static {
    /// Does what the script asks for.
    async fn ask(&self, key: String, what: RunCall) -> Result<RunAnswer, RunStopped>;

    /// The value of a step at a place, where an earlier attempt has come to one.
    fn step(&self, place: &str, name: &str) -> Result<Option<Arc<Value>>, RunStopped>;

    /// Keeps the value of a step, by its key.
    fn keep_step(&self, key: String, value: Value);

    /// Functions beside each other are to be run at this place.
    fn begin_parallel(&self, place: &str) -> Result<(), RunStopped>;

    /// Looks something up; a later attempt gets the same. It is null where there is nothing.
    fn look_up(&self, key: String, what: ToolQuery<'_>) -> Result<Arc<Value>, RunStopped>;
}

/// A call that a script makes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RunCall {
    /// Of a tool, by its full name.
    Tool { name: Arc<str>, arguments: Value },
    /// Of an operation on what plugins have besides tools: `resources/list`, `resources/read`, `prompts/list`, `prompts/get`.
    Operation { name: &'static str, plugin: String, argument: Value },
    /// Of a tool that is not there, as the script names it, and what is wrong with the name.
    Missing { name: Arc<str>, arguments: Value, problem: String },
}

/// What a script looks up.
#[derive(Clone, Copy)]
pub(crate) enum ToolQuery<'a> {
    /// Tools, by words.
    Search { query: &'a str, limit: usize },
    /// One tool: by its full name, or as the script names it where it is not there.
    Describe { tool: &'a str, is_there: bool },
}

/// What a call comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RunAnswer {
    /// A value.
    Value(Arc<Value>),
    /// An error, which the script can catch.
    Error(String),
}

/// The run goes no further. The host knows why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunStopped;

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RunEnd {
    /// With a value.
    Value(Value),
    /// With an error of the script's.
    Failed { code: &'static str, message: String },
    /// The host has stopped it.
    Stopped,
}

/// What a run comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunResult {
    pub(crate) end: RunEnd,
    /// What it printed.
    pub(crate) printed: String,
    /// How many calls it made.
    pub(crate) calls: u64,
    /// How many operations it took.
    pub(crate) operations: u64,
}

impl RunResult {
    /// Of what cannot run.
    fn invalid(code: &'static str, message: String) -> Self {
        let end = RunEnd::Failed { code, message };
        Self { end, printed: String::new(), calls: 0, operations: 0 }
    }
}

/// What a run gets, as a script has it.
fn to_data(data: &Value) -> Result<Dynamic, String> {
    if matches!(data, Value::String(_) | Value::Array(_) | Value::Object(_))
        && data.to_string().len() > MAX_RUN_DATA_BYTES
    {
        return Err(format!("`data` is longer than {MAX_RUN_DATA_BYTES} bytes"));
    }
    to_dynamic(data).map_err(|error| format!("`data` is nothing that a script can have: {error}"))
}

/// A script that can run.
pub(crate) struct RunScript {
    text: ScriptSource,
    ast: AST,
    script_limits: Limits,
}

impl RunScript {
    /// Compiles and checks a script. It blocks.
    ///
    /// # Errors
    ///
    /// Each problem with its place: what is no script, what no plugin has, arguments that are missing or misspelt.
    fn compile(
        script: String,
        functions: &ToolFunctions,
        limits: &RunLimits,
    ) -> Result<Self, String> {
        if script.len() > MAX_RUN_SCRIPT_BYTES {
            return Err(format!("the script is longer than {MAX_RUN_SCRIPT_BYTES} bytes"));
        }
        let text = ScriptSource::new("script".into(), script);
        let script_limits = Limits { cpu: limits.cpu, ..Limits::default() };
        let (engine, variables) = (functions.engine(), functions.variables());
        let ast = engine::compile_knowing(engine, &text.lines, &script_limits, variables).map_err(
            |error| match functions.explain(&error, &text.lines) {
                Some(problem) => text.at(error.position(), &problem),
                None => text.parse_error(&error).to_string(),
            },
        )?;
        let problems = check::problems(&ast, functions);
        if !problems.is_empty() {
            let told: Vec<String> =
                problems.iter().map(|of| text.at(of.position, &of.problem)).collect();
            return Err(told.join("\n"));
        }
        Ok(Self { text, ast, script_limits })
    }

    /// Compiles and runs a script, with the `data` that it gets and the time that it sees, at each attempt the same. Dropping
    /// the future stops it.
    ///
    /// # Errors
    ///
    /// Where there is no thread for it. What is wrong with the script is a way to end.
    pub(crate) async fn run(
        (script, data, began): (String, Value, SystemTime),
        functions: Arc<ToolFunctions>,
        limits: &RunLimits,
        host: Arc<dyn RunHost>,
        threads: &Arc<Threads>,
    ) -> Result<RunResult, Failure> {
        let (_alive, ended) = oneshot::channel::<()>();
        let abandoned: Abandoned = ended.map(drop).boxed().shared();
        let given_up = Arc::new(AtomicBool::new(false));
        // It is dropped first: nothing begins from there on.
        let _guard = AbandonGuard(given_up.clone());
        let (runtime, limits) = (Handle::current(), limits.clone());
        let work = move || {
            let script = match Self::compile(script, &functions, &limits) {
                Ok(script) => script,
                Err(message) => return RunResult::invalid("invalid-script", message),
            };
            let data = match to_data(&data) {
                Ok(data) => data,
                Err(message) => return RunResult::invalid("invalid-input", message),
            };
            let shared = Arc::new(RunShared {
                host,
                runtime,
                abandoned,
                given_up,
                functions,
                limits,
                script_limits: script.script_limits.clone(),
                ast: script.ast.clone(),
                data,
                began,
                used: Arc::default(),
                processors: threads::processors(),
                progress: RunCounters::default(),
            });
            script.run_here(&shared)
        };
        threads.run(work).await
    }

    fn run_here(&self, shared: &Arc<RunShared>) -> RunResult {
        let thread = RunBranch::new(shared.clone(), String::new(), 0);
        let (given_up, engine) = (shared.given_up.clone(), shared.functions.engine());
        let result = running_call::within_run(&self.script_limits, given_up, &shared.used, || {
            context::within(thread, || {
                let value = engine.eval_ast_with_scope::<Dynamic>(&mut Scope::new(), &self.ast);
                running_call::unless_ended(value).map(|value| self.value(&value, shared))
            })
        });
        let end = result.unwrap_or_else(|error| self.failed(&error, shared));
        let (printed, calls, operations) = shared.used();
        RunResult { end, printed, calls, operations }
    }

    fn value(&self, value: &Dynamic, shared: &RunShared) -> RunEnd {
        // Where everything was stopped, a script cannot have gone on.
        if shared.is_stopped() {
            return RunEnd::Stopped;
        }
        let failed = |code, problem: &str| RunEnd::Failed {
            code,
            message: self.text.at(Position::NONE, problem),
        };
        // Nor where it has reached a bound.
        if let Some(limit) = shared.reached_limit() {
            return failed("limit", &limit);
        }
        match json::to_json(value) {
            Err(problem) => failed("invalid-result", &format!("its result: {problem}")),
            Ok(value) if !shared.has_room_for(&value) => {
                let most = shared.limits.output;
                let problem = format!(
                    "its result and what it prints have more than {most} bytes (`runs.output_kib`)"
                );
                failed("limit", &problem)
            }
            Ok(value) => RunEnd::Value(value),
        }
    }

    fn failed(&self, error: &EvalAltResult, shared: &RunShared) -> RunEnd {
        if shared.is_stopped() {
            return RunEnd::Stopped;
        }
        if let Some(limit) = shared.reached_limit() {
            let message = self.text.at(error.position(), &limit);
            return RunEnd::Failed { code: "limit", message };
        }
        if let Some(mut problem) = thrown(error) {
            if problem.len() > shared.limits.output {
                problem = format!("{}…", cut(&problem, shared.limits.output));
            }
            // Where it was thrown: whoever has sent the script is to find that.
            let message = self.text.at(root(error).position(), &problem);
            return RunEnd::Failed { code: "failed", message };
        }
        match self.text.failure(error, &self.script_limits) {
            Failure::LimitExceeded(limit) => {
                let limit = match limit {
                    // Runs have a key of their own for it.
                    LimitExceeded::Cpu(cpu) => format!("CPU limit of {cpu:?} (`runs.cpu`)"),
                    // It is the same for all of them.
                    LimitExceeded::Memory(bytes) => {
                        format!("limit of {} MiB for what its variables hold", bytes >> 20)
                    }
                    limit => limit_text(error, limit),
                };
                let message = self.text.at(error.position(), &format!("it reached its {limit}"));
                RunEnd::Failed { code: "limit", message }
            }
            Failure::Trapped(message) => RunEnd::Failed { code: "trapped", message },
            failure => RunEnd::Failed { code: "trapped", message: failure.to_string() },
        }
    }
}

/// The most variables that a run has at a time.
const MAX_VARIABLES: usize = 200;

/// Ends when nobody waits for a run any more.
type Abandoned = Shared<BoxFuture<'static, ()>>;

/// The time that a run sees does not go on: what it computes from it is the same at each attempt.
struct FrozenClock;

impl Clock for FrozenClock {
    fn now(&self) -> SystemTime {
        context::began()
    }
}

/// Makes the engine of all runs that call these functions. It has no state of any of them: that belongs to their threads.
fn engine_with(functions: &ToolFunctions) -> rhai::Engine {
    let mut engine = engine::parser(&Limits::default());
    // They are counted for all threads of a run together.
    engine.set_max_operations(0);
    engine.set_max_variables(MAX_VARIABLES);
    engine.on_progress(|_| {
        let ended = running_call::ended().map(Dynamic::from);
        ended.or_else(|| context::count().then(|| Dynamic::from(RunStopped)))
    });
    engine.on_print(context::print);
    engine.on_debug(|text, _, _| context::print(text));
    engine::add_bounded(&mut engine);
    comparison::add(&mut engine);
    content::add(&mut engine);
    time::add(&mut engine, Arc::new(FrozenClock));
    hide_names(&mut engine);
    functions.add_to(&mut engine);
    engine
}

/// Hides the names of functions that the script has not named: the engine makes other ones in each process, and a run that is
/// resumed elsewhere is to compute the same.
fn hide_names(engine: &mut rhai::Engine) {
    let name = |function: &mut FnPtr| match function.is_anonymous() {
        true => String::new(),
        false => function.fn_name().to_string(),
    };
    engine.register_get("name", name).register_fn("name", name);
    for shown in ["to_string", "to_debug", "print", "debug"] {
        engine.register_fn(shown, move |function: &mut FnPtr| format!("Fn({})", name(function)));
    }
}

/// Says that a run goes no further.
fn stop(shared: &RunShared) -> Box<EvalAltResult> {
    shared.stop();
    EvalAltResult::ErrorTerminated(Dynamic::from(RunStopped), Position::NONE).into()
}
