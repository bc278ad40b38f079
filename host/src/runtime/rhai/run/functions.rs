//! The tools of plugins as functions of a script: `files.read(#{ path: "/a" })`.

use rhai::serde::to_dynamic;
use rhai::{
    Array, Dynamic, EvalAltResult, FnPtr, ImmutableString, Map, Module, NativeCallContext,
    ParseError, ParseErrorType, Position, Shared,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tenon_runs::step_key;
use tenon_types::ToolDefinition;
use tenon_types::name::nearest;

use super::context::{self, RunBranch, RunShared, ask, below, next_key};
use super::{RunAnswer, RunCall, ToolQuery, engine_with, running_call, stop};
use crate::runtime::rhai::engine::{MAX_VALUE_DEPTH, detach, detached, is_in_scope, weigh};
use crate::runtime::rhai::error::{ScriptResult, mistake};
use crate::runtime::rhai::json::to_json;
use crate::runtime::rhai::threads::{STACK_BYTES, within_place};

/// What the host itself offers, by the variables that have it. The variable of a plugin of such a name ends in `_`.
const OWN: [&str; 4] = ["tools", "resources", "prompts", "data"];

/// Functions of the host's that no script can define anew.
const OWN_FUNCTIONS: [&str; 5] = ["call_tool", "parallel", "step", "print", "debug"];

/// How many tools a search finds where nobody says how many.
const DEFAULT_FOUND: i64 = 8;

/// How deep `parallel` can be nested: each level begins to count calls within calls anew.
const MAX_PARALLEL_DEPTH: usize = 4;

/// The most branches of one `parallel`.
const MAX_BRANCHES: usize = 1_000;

/// The tools that scripts can call, as functions.
pub(crate) struct ToolFunctions {
    plugins: BTreeMap<ImmutableString, BTreeMap<String, Vec<ToolFunction>>>,
    /// The functions, for engines.
    module: Shared<Module>,
    /// The tools that plugins have and nobody may call, by the names that callers would use, and why.
    withheld: BTreeMap<String, String>,
    /// The engine of all runs: to make it takes longer than most scripts do.
    engine: OnceLock<rhai::Engine>,
}

/// A tool as a function.
pub(super) struct ToolFunction {
    /// The name that callers use.
    pub(super) tool: Arc<str>,
    /// The names of its arguments; nothing where it takes others, too.
    pub(super) arguments: Option<BTreeSet<String>>,
    /// Those that have to be there.
    pub(super) required: Vec<String>,
}

/// The tools of a plugin, as a script has them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PluginTools(ImmutableString);

/// What the host offers, as a script has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ToolsVariable;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ResourcesVariable;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PromptsVariable;

impl ToolFunctions {
    /// The functions of these tools: of each the plugin, its name for callers and its definition.
    pub(crate) fn new<'a>(
        tools: impl IntoIterator<Item = (&'a str, &'a str, &'a ToolDefinition)>,
    ) -> Self {
        let mut plugins = BTreeMap::<ImmutableString, BTreeMap<_, Vec<_>>>::new();
        for (plugin, tool, definition) in tools {
            let functions = plugins.entry(variable_of(plugin).into()).or_default();
            let (arguments, required) = arguments_of(&definition.input_schema);
            let function = ToolFunction { tool: tool.into(), arguments, required };
            functions.entry(identifier(&definition.name)).or_default().push(function);
        }
        let names: BTreeSet<&String> = plugins.values().flat_map(BTreeMap::keys).collect();
        let mut module = Module::new();
        for name in names {
            let (with, without) = (name.clone(), name.clone());
            module.set_native_fn(name, move |plugin: &mut PluginTools, arguments: Map| {
                call(plugin, &with, arguments)
            });
            module.set_native_fn(name, move |plugin: &mut PluginTools| {
                call(plugin, &without, Map::new())
            });
        }
        module.build_index();
        Self { plugins, module: module.into(), withheld: BTreeMap::new(), engine: OnceLock::new() }
    }

    /// The same, saying of tools that nobody may call why not.
    pub(crate) fn with_withheld(self, tools: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { withheld: tools.into_iter().collect(), ..self }
    }

    /// Why a function is none, where its tool is withheld.
    fn why_withheld(&self, variable: &str, function: &str) -> Option<&String> {
        let name = identifier(&format!("{variable}__{function}"));
        self.withheld.iter().find(|(tool, _)| identifier(tool) == name).map(|(_, why)| why)
    }

    /// The engine of the runs that call these functions.
    pub(super) fn engine(&self) -> &rhai::Engine {
        self.engine.get_or_init(|| engine_with(self))
    }

    /// The variables that scripts see.
    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        OWN.into_iter().chain(self.plugins.keys().map(ImmutableString::as_str))
    }

    /// Whether a variable is the host's.
    pub(super) fn is_variable(&self, name: &str) -> bool {
        OWN.contains(&name) || self.plugins.contains_key(name)
    }

    /// Whether a function is the host's: scripts cannot have another one of its name.
    pub(super) fn is_function(&self, name: &str) -> bool {
        OWN_FUNCTIONS.contains(&name)
            || self.plugins.values().any(|functions| functions.contains_key(name))
    }

    /// The variable of this name that is a plugin.
    fn variable(&self, name: &str) -> Option<&ImmutableString> {
        self.plugins.get_key_value(name).map(|(variable, _)| variable)
    }

    /// The functions of a plugin.
    pub(super) fn of(&self, variable: &str) -> Option<&BTreeMap<String, Vec<ToolFunction>>> {
        self.plugins.get(variable)
    }

    /// The functions that tools are, as scripts call them (`files.read`), by the names of the tools.
    pub(crate) fn names(&self) -> HashMap<String, String> {
        let all = self.plugins.iter().flat_map(|(plugin, functions)| {
            functions.iter().map(move |(name, of)| (plugin, name, of))
        });
        let only = all.filter_map(|(plugin, name, of)| match &of[..] {
            [only] => Some((only.tool.to_string(), format!("{plugin}.{name}"))),
            _ => None,
        });
        only.collect()
    }

    /// The tool that a name means: its full name, or that of its function.
    pub(crate) fn tool_of(&self, name: &str) -> Option<&Arc<str>> {
        self.function_of(name).map(|function| &function.tool)
    }

    /// The function of the tool that a name means.
    pub(super) fn function_of(&self, name: &str) -> Option<&ToolFunction> {
        let by_function = || {
            let (plugin, function) = name.split_once('.')?;
            match &self.plugins.get(plugin)?.get(function)?[..] {
                [only] => Some(only),
                _ => None,
            }
        };
        let mut all = self.plugins.values().flat_map(|functions| functions.values().flatten());
        all.find(|function| *function.tool == *name).or_else(by_function)
    }

    /// The names of all tools, as callers use them.
    pub(super) fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.plugins.values().flat_map(BTreeMap::values).flatten().map(|of| &*of.tool)
    }

    /// Says what is meant where a script does not compile for a variable that is not there, or for a tool whose name is a
    /// keyword.
    pub(super) fn explain(&self, error: &ParseError, script: &str) -> Option<String> {
        match error.err_type() {
            ParseErrorType::VariableUndefined(name) => Some(self.explain_undefined(name)),
            ParseErrorType::Reserved(_) | ParseErrorType::PropertyExpected => {
                self.explain_keyword(script, error.position())
            }
            _ => None,
        }
    }

    /// Says of a variable that is not there which one may be meant.
    fn explain_undefined(&self, name: &str) -> String {
        let problem = format!("there is no variable and no plugin `{name}`");
        match nearest(name, self.variables()) {
            Some(meant) => format!("{problem}; did you mean `{meant}`?"),
            None => format!("{problem}; `tools.search(\"…\")` finds tools"),
        }
    }

    /// Says which function is meant where a plugin has a tool of the name that stands here.
    fn explain_keyword(&self, script: &str, position: Position) -> Option<String> {
        let (line, column) = (position.line()?.checked_sub(1)?, position.position()? - 1);
        let mut lines = script.split_inclusive('\n');
        let start: usize = lines.by_ref().take(line).map(str::len).sum();
        let (offset, _) = lines.next()?.char_indices().nth(column)?;
        let (before, after) = script.split_at(start + offset);
        let is_other = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let keyword = after.split(is_other).next()?;
        let plugin = before.trim_end().strip_suffix('.')?.trim_end();
        let plugin = plugin.rsplit(is_other).next()?;
        let function = format!("{keyword}_");
        let is_there = self.of(plugin)?.contains_key(&function);
        is_there.then(|| format!("`{keyword}` is a keyword; did you mean `{function}`?"))
    }

    /// Puts the functions into an engine.
    pub(super) fn add_to(&self, engine: &mut rhai::Engine) {
        engine.register_type_with_name::<PluginTools>("Plugin");
        engine.register_type_with_name::<ToolsVariable>("Tools");
        engine.register_type_with_name::<ResourcesVariable>("Resources");
        engine.register_type_with_name::<PromptsVariable>("Prompts");
        engine.register_global_module(self.module.clone());
        #[expect(deprecated, reason = "the callback is marked as one that may change")]
        engine.on_var(|name, _, context| {
            // A variable of the script's own has no such name: the script was checked.
            if is_in_scope(name, &context)? {
                return Ok(None);
            }
            Ok(match name {
                "tools" => Some(Dynamic::from(ToolsVariable)),
                "resources" => Some(Dynamic::from(ResourcesVariable)),
                "prompts" => Some(Dynamic::from(PromptsVariable)),
                "data" => context::data(),
                name => {
                    let shared = context::shared()?;
                    match shared.functions.variable(name) {
                        Some(variable) => Some(Dynamic::from(PluginTools(variable.clone()))),
                        // Functions see the constants at the top, which the engine keeps for them.
                        None => {
                            let constants = context.global_runtime_state().constants.as_ref();
                            constants.and_then(|all| all.read().ok()?.get(name).cloned())
                        }
                    }
                }
            })
        });
        add_tools(engine);
        add_operations(engine);
        engine.register_fn("parallel", parallel);
        engine.register_fn("step", step);
    }
}

/// The variable of a plugin.
fn variable_of(plugin: &str) -> String {
    let mut variable = identifier(plugin);
    if OWN.contains(&variable.as_str()) {
        variable.push('_');
    }
    variable
}

/// A name as one that a script can write: other characters are `_`. Where the first character besides `_` is no letter, it
/// begins with `n`.
fn identifier(name: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut text: String = name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if !text.trim_start_matches('_').starts_with(|c: char| c.is_ascii_alphabetic()) {
        text.insert(0, 'n');
    }
    if is_reserved(&text) {
        text.push('_');
    }
    text
}

/// Whether a word is no name in scripts.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Words that are no names in scripts.
const RESERVED: &[&str] = &[
    "as",
    "async",
    "await",
    "break",
    "call",
    "case",
    "catch",
    "const",
    "continue",
    "curry",
    "debug",
    "default",
    "do",
    "else",
    "eval",
    "exit",
    "export",
    "false",
    "fn",
    "for",
    "global",
    "go",
    "goto",
    "if",
    "import",
    "in",
    "is_def_fn",
    "is_def_var",
    "is_shared",
    "let",
    "loop",
    "match",
    "module",
    "new",
    "nil",
    "null",
    "package",
    "print",
    "private",
    "protected",
    "public",
    "return",
    "shared",
    "spawn",
    "static",
    "super",
    "switch",
    "sync",
    "this",
    "thread",
    "throw",
    "true",
    "try",
    "type_of",
    "until",
    "use",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// The arguments that a schema names, where it takes no others, and those that have to be there.
fn arguments_of(schema: &str) -> (Option<BTreeSet<String>>, Vec<String>) {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let names = |value: &Value| -> Vec<String> {
        let names = value.as_array().into_iter().flatten();
        names.filter_map(|name| name.as_str().map(str::to_string)).collect()
    };
    let required = names(&schema["required"]);
    // What a schema says in other words may be arguments as well.
    let is_plain =
        ["allOf", "anyOf", "oneOf", "$ref", "if", "patternProperties", "dependentSchemas"]
            .iter()
            .all(|keyword| schema.get(keyword).is_none());
    let takes_others = match &schema["additionalProperties"] {
        Value::Null => false,
        Value::Bool(takes) => *takes,
        _ => true,
    };
    let properties = schema["properties"].as_object();
    let arguments = properties
        .filter(|_| is_plain && !takes_others)
        .map(|properties| properties.keys().cloned().collect());
    (arguments, required)
}

/// Calls a tool of a plugin.
fn call(plugin: &PluginTools, function: &str, arguments: Map) -> ScriptResult<Dynamic> {
    let shared = context::shared()?;
    let variable = plugin.0.as_str();
    let functions = shared.functions.of(variable);
    let problem = match functions.and_then(|all| all.get(function)).map(Vec::as_slice) {
        Some([only]) => return call_tool(&only.tool, arguments),
        Some(several) => collision(variable, function, several),
        None => unknown_function(&shared.functions, variable, function),
    };
    missing(&format!("{variable}.{function}"), arguments, problem)
}

/// That several tools come to one function.
pub(super) fn collision(variable: &str, function: &str, tools: &[ToolFunction]) -> String {
    let names: Vec<String> = tools.iter().map(|of| format!("\"{}\"", of.tool)).collect();
    format!(
        "`{variable}.{function}` may be {}: call one with `call_tool(NAME, #{{ … }})`",
        names.join(" or ")
    )
}

/// That a plugin has no such function.
pub(super) fn unknown_function(
    functions: &ToolFunctions,
    variable: &str,
    function: &str,
) -> String {
    if let Some(why) = functions.why_withheld(variable, function) {
        return why.clone();
    }
    let problem = format!("`{variable}` has no tool `{function}`");
    let known = functions.of(variable).into_iter().flat_map(BTreeMap::keys).map(String::as_str);
    match nearest(function, known) {
        Some(meant) => format!("{problem}; did you mean `{meant}`?"),
        None => format!("{problem}; `tools.search(\"…\")` finds tools"),
    }
}

/// Calls a tool by its full name.
fn call_tool(tool: &Arc<str>, arguments: Map) -> ScriptResult<Dynamic> {
    let (name, arguments) = (tool.clone(), to_json(&arguments.into())?);
    answered(RunCall::Tool { name, arguments })
}

/// Calls a tool that is not there. It is a call as any other: a later attempt is answered the same, also where the tool is there
/// by then.
fn missing(name: &str, arguments: Map, problem: String) -> ScriptResult<Dynamic> {
    let arguments = to_json(&arguments.into())?;
    answered(RunCall::Missing { name: name.into(), arguments, problem })
}

/// Calls the tool that a script names. What it may not call is not there for it.
fn call_named(name: &str, arguments: Map) -> ScriptResult<Dynamic> {
    let shared = context::shared()?;
    match shared.functions.tool_of(name) {
        Some(tool) => call_tool(tool, arguments),
        None => missing(name, arguments, unknown_tool(&shared.functions, name)),
    }
}

/// Has the host answer a call. An error can be caught.
fn answered(call: RunCall) -> ScriptResult<Dynamic> {
    let answer = ask(|host, key| async move { host.ask(key, call).await })?;
    match answer {
        RunAnswer::Value(value) => to_dynamic(&*value),
        RunAnswer::Error(message) => Err(message.into()),
    }
}

fn add_tools(engine: &mut rhai::Engine) {
    let search = |query: &str, limit: i64| -> ScriptResult<Dynamic> {
        let limit = usize::try_from(limit.min(50)).ok().filter(|limit| *limit > 0);
        let limit =
            limit.ok_or_else(|| mistake("a search finds at least one tool: pass 1 or more"))?;
        looked_up(ToolQuery::Search { query, limit })
    };
    engine.register_fn("search", move |_: &mut ToolsVariable, query: &str| {
        search(query, DEFAULT_FOUND)
    });
    engine.register_fn("search", move |_: &mut ToolsVariable, query: &str, limit: i64| {
        search(query, limit)
    });
    engine.register_fn("describe", |_: &mut ToolsVariable, name: &str| -> ScriptResult<Dynamic> {
        let shared = context::shared()?;
        let tool = shared.functions.tool_of(name);
        let (tool, is_there) = (tool.map_or(name, |tool| &**tool), tool.is_some());
        looked_up(ToolQuery::Describe { tool, is_there })
    });
    engine.register_fn("call_tool", |name: &str, arguments: Map| -> ScriptResult<Dynamic> {
        call_named(name, arguments)
    });
    engine.register_fn("call_tool", |name: &str| -> ScriptResult<Dynamic> {
        call_named(name, Map::new())
    });
}

fn looked_up(what: ToolQuery<'_>) -> ScriptResult<Dynamic> {
    let shared = context::shared()?;
    // Functions of the engine's own may have kept an error for themselves.
    if shared.is_over() {
        return Err(stop_or_limit(&shared));
    }
    let value = shared.host.look_up(next_key(), what).map_err(|_| stop(&shared))?;
    match (what, &*value) {
        (ToolQuery::Describe { tool, .. }, Value::Null) => {
            Err(unknown_tool(&shared.functions, tool).into())
        }
        (_, value) => to_dynamic(value),
    }
}

/// What is wrong with the name of a tool that nobody has.
pub(super) fn unknown_tool(functions: &ToolFunctions, tool: &str) -> String {
    if let Some(why) = functions.withheld.get(tool) {
        return why.clone();
    }
    match nearest(tool, functions.tool_names()) {
        Some(meant) => format!("there is no tool \"{tool}\"; did you mean \"{meant}\"?"),
        None => format!("there is no tool \"{tool}\"; `tools.search(\"…\")` finds tools"),
    }
}

/// Resources and prompts of plugins.
fn add_operations(engine: &mut rhai::Engine) {
    let operation = |name, plugin: &str, argument| {
        answered(RunCall::Operation { name, plugin: plugin.to_string(), argument })
    };
    engine.register_fn("list", move |_: &mut ResourcesVariable, plugin: &str| {
        operation("resources/list", plugin, Value::Null)
    });
    engine.register_fn("read", move |_: &mut ResourcesVariable, plugin: &str, uri: &str| {
        operation("resources/read", plugin, uri.into())
    });
    engine.register_fn("list", move |_: &mut PromptsVariable, plugin: &str| {
        operation("prompts/list", plugin, Value::Null)
    });
    engine.register_fn(
        "get",
        move |_: &mut PromptsVariable,
              plugin: &str,
              name: &str,
              arguments: Map|
              -> ScriptResult<Dynamic> {
            let arguments = to_json(&arguments.into())?;
            operation("prompts/get", plugin, json!({ "name": name, "arguments": arguments }))
        },
    );
}

/// Runs functions beside each other, and gives their results in their order. Each has copies of what it captured, and gives a
/// copy.
fn parallel(context: NativeCallContext<'_>, branches: Array) -> ScriptResult<Array> {
    let shared = context::shared()?;
    let (key, depth) = (next_key(), context::depth() + 1);
    if branches.len() > MAX_BRANCHES {
        let problem =
            format!("{} functions in `parallel`, of which it takes {MAX_BRANCHES}", branches.len());
        return Err(shared.reach(problem));
    }
    if depth > MAX_PARALLEL_DEPTH {
        let problem = format!("`parallel` is nested more than {MAX_PARALLEL_DEPTH} deep");
        return Err(shared.reach(problem));
    }
    let mut held = 0;
    let branches: Vec<FnPtr> = branches
        .into_iter()
        .map(|branch| {
            let function = branch.try_cast::<FnPtr>();
            let function =
                function.ok_or("`parallel` takes an array of functions: `[|| …, || …]`")?;
            detached(&function, MAX_VALUE_DEPTH, &mut held)
        })
        .collect::<Result<_, String>>()
        .map_err(mistake)?;
    if shared.is_over() {
        return Err(stop_or_limit(&shared));
    }
    shared.host.begin_parallel(&key).map_err(|_| stop(&shared))?;
    let (engine, runtime) = (context.engine(), shared.runtime());
    let (next, results) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let result_bytes = AtomicUsize::new(0);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(branch) = branches.get(number) else { return };
            let prefix = format!("{key}.{number}.");
            let thread = RunBranch::new(shared.clone(), prefix, depth);
            let result = run_branch(engine, &shared, branch, thread, &result_bytes);
            results.lock().unwrap_or_else(PoisonError::into_inner).insert(number, result);
        }
    };
    // The time of a branch begins with its place.
    let work = || within_place(&shared.processors, &runtime, work);
    running_call::waiting(&runtime, || {
        std::thread::scope(|scope| {
            // This thread works, too.
            for _ in 1..branches.len() {
                let Some(place) = shared.take_thread() else { break };
                let thread = std::thread::Builder::new().name("tenon-run".into());
                let work = move || {
                    let _place = place;
                    work();
                };
                // Where no thread can be had, the others do its work, or this one.
                let _ = thread.stack_size(STACK_BYTES).spawn_scoped(scope, work);
            }
            work();
        });
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    if shared.is_over() {
        return Err(stop_or_limit(&shared));
    }
    // All have run; the first error is that of all.
    results.into_values().collect()
}

fn run_branch(
    engine: &rhai::Engine,
    shared: &Arc<RunShared>,
    branch: &FnPtr,
    thread: RunBranch,
    result_bytes: &AtomicUsize,
) -> ScriptResult<Dynamic> {
    // Another branch may have ended all of them.
    if shared.is_over() {
        return Err(stop_or_limit(shared));
    }
    let (limits, given_up) = (&shared.script_limits, shared.given_up.clone());
    running_call::within_run(limits, given_up, &shared.used, || {
        let result = context::within(thread, || branch.call::<Dynamic>(engine, &shared.ast, ()));
        let result = running_call::unless_ended(result)?;
        let own = weigh(&result, &mut HashSet::new(), MAX_VALUE_DEPTH) + size_of::<Dynamic>();
        let all = result_bytes.fetch_add(own, Ordering::Relaxed) + own;
        if all > limits.memory {
            let problem = "the results of `parallel` are too large together".to_string();
            return Err(shared.reach(problem));
        }
        detach(&result, MAX_VALUE_DEPTH, &mut 0).map_err(mistake)
    })
}

/// Says that a run goes no further, for whatever reason.
pub(super) fn stop_or_limit(shared: &RunShared) -> Box<EvalAltResult> {
    match shared.reached_limit() {
        Some(limit) => shared.reach(limit),
        None => stop(shared),
    }
}

/// The longest name of a step, in bytes: it is kept in the journal.
const MAX_STEP_NAME_BYTES: usize = 200;

/// Runs a function once: a later attempt gets its value from the journal.
fn step(context: NativeCallContext<'_>, name: &str, function: FnPtr) -> ScriptResult<Dynamic> {
    if name.len() > MAX_STEP_NAME_BYTES {
        return Err(mistake(format!("the name of a step has at most {MAX_STEP_NAME_BYTES} bytes")));
    }
    let shared = context::shared()?;
    let place = next_key();
    let key = step_key(&place, name);
    let host = context::host()?;
    // Functions of the engine's own may have kept an error for themselves.
    if shared.is_over() {
        return Err(stop_or_limit(&shared));
    }
    match host.step(&place, name) {
        Err(_) => Err(stop(&shared)),
        Ok(Some(value)) => to_dynamic(&*value),
        Ok(None) => {
            let value = below(&key, || function.call_within_context::<Dynamic>(&context, ()))?;
            let value = to_json(&value)?;
            if shared.is_over() {
                return Err(stop_or_limit(&shared));
            }
            let kept = to_dynamic(&value)?;
            host.keep_step(key, value);
            Ok(kept)
        }
    }
}
