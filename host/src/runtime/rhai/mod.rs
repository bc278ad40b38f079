//! Plugins that are Rhai scripts.
//!
//! A script defines hooks as functions named after the points, which change `context` in place or
//! return what `veto` and `replace` make; and tools and strategies, by calling `tool` and `strategy`
//! when it is loaded:
//!
//! ```rhai
//! tool(#{ name: "shout", description: "Says it louder", schema: #{ type: "object" } },
//!      |arguments| arguments.text.to_upper());
//!
//! strategy(#{ name: "short", description: "Is it short?" },
//!          |subject, options| subject.output.len() < config("longest"));
//!
//! fn MessageSending(context) { context.message += "!"; }
//! ```
//!
//! Scripts do no input or output. A call that only computes, and not for long, runs on its caller's
//! thread ([`inline_run`]). The others run on threads of their own, so that one that computes does not hold up the host. Each
//! call is stopped by the engine's limits, or when its caller gives up.

mod comparison;
mod content;
mod context_check;
mod engine;
mod error;
mod evaluation_result;
mod hints;
mod host_functions;
mod inline_run;
mod json;
mod news;
mod resources_and_prompts;
mod run;
mod running_call;
mod state;
mod threads;
mod time;

use async_trait::async_trait;
use rhai::{
    AST, Array, CallFnOptions, Dynamic, EvalAltResult, FnPtr, FuncArgs, Map, Position, Scope,
    ScriptFuncDef,
};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tenon_config::limits::Limits;
use tenon_types::hook::POINTS;
use tenon_types::name::is_slip;
use tenon_types::{
    ArgumentCompletion, CallContext, CompletionReference, Error, Evaluation, HookDecision,
    HookEvent, HookPoint, HookRegistration, Identity, Json, ListedResource, Prompt, PromptPage,
    Registration, ResourceContents, ResourcePage, Suggestions, TemplatePage, ToolResult,
};
use tokio::runtime::Handle;
use tracing::Span;

pub(crate) use content::value_of;
pub use error::ScriptLoadError;
pub use run::{MAX_RUN_DATA_BYTES, MAX_RUN_SCRIPT_BYTES, PromotedScript, RunLimits};
pub(crate) use run::{
    RunAnswer, RunCall, RunEnd, RunHost, RunScript, RunStopped, ToolFunctions, ToolQuery, promote,
};
pub use running_call::count_thread_memory;
pub(crate) use threads::Threads;

use super::Plugin;
use super::builtin::{check_arguments, matching, no_resource, only_page};
use crate::call::{CurrentCall, Failure};
use crate::capability::granted::GrantedCapabilities;
use crate::capability::network::Network;
use crate::capability::notify::PluginNotifier;
use crate::observe::PluginLog;
use engine::{
    AbandonGuard, Definitions, ScriptConstants, ScriptDecision, ScriptEval, ScriptTool, Settings,
    engine,
};
use error::{ScriptProblem, ScriptSource, thrown};
use inline_run::{InlineSlice, MAX_INPUT_BYTES, SliceBackoff};
use json::{as_argument, to_json};
use resources_and_prompts::{Completer, ScriptPrompt, ScriptResource};
use running_call::{CallUsage, HostAccess};

/// A script, compiled.
pub(crate) struct RhaiPlugin {
    script: Arc<Script>,
    threads: Arc<Threads>,
}

/// What a script is made with.
pub(crate) struct ScriptSetup {
    pub(crate) id: Arc<str>,
    /// What its manifest says of it, where it has one.
    pub(crate) version: Option<semver::Version>,
    pub(crate) description: Option<String>,
    pub(crate) limits: Limits,
    /// What the operator set for it.
    pub(crate) settings: Settings,
    pub(crate) log: Arc<PluginLog>,
    /// What it was lent.
    pub(crate) granted: Arc<GrantedCapabilities>,
    /// The network, if anything of it was granted.
    pub(crate) network: Option<Arc<Network>>,
    /// What it tells while it runs.
    pub(crate) news: Arc<PluginNotifier>,
}

struct Script {
    setting: ScriptSetup,
    text: ScriptSource,
    engine: rhai::Engine,
    ast: AST,
    tools: Vec<ScriptTool>,
    evals: Vec<ScriptEval>,
    hooks: Vec<ScriptHook>,
    /// One for each point, of all the hooks that handle it.
    registrations: Vec<HookRegistration>,
    /// How the hooks of each point have done in slices.
    hook_slices: HashMap<HookPoint, SliceBackoff>,
    resources: Vec<ScriptResource>,
    prompts: Vec<ScriptPrompt>,
}

/// A hook, as the script registers it.
struct ScriptHook {
    registration: HookRegistration,
    function: HookFunction,
}

/// What runs at a point.
enum HookFunction {
    /// A function of the script, by its name.
    Function(&'static str),
    /// A closure that was given to `hook`.
    Closure(FnPtr),
}

impl RhaiPlugin {
    /// Compiles a script and runs its top level once, which defines its tools. It blocks.
    pub(crate) fn compile(
        setting: ScriptSetup,
        path: &Path,
        text: String,
        threads: Arc<Threads>,
    ) -> Result<Self, ScriptLoadError> {
        let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let text = ScriptSource::new(file, text);
        let compiled = threads.run_blocking(move || Script::compile(setting, text));
        let script = compiled.map_err(|failure| ScriptLoadError(failure.to_string()))??;
        Ok(Self { script: Arc::new(script), threads })
    }

    /// Runs something of the script in a slice, where that is worth trying, or else on a thread for scripts.
    /// Dropping the future stops it.
    async fn run<R: Send + 'static>(
        &self,
        call: CallContext,
        history: Option<&SliceBackoff>,
        work: impl Fn(&Script) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Failure> {
        if let Some(history) = history.filter(|history| history.is_worth_trying()) {
            tokio::task::coop::consume_budget().await;
            match self.run_in_slice(&work) {
                Some(result) => return result,
                None => history.left(),
            }
        }
        self.run_on_thread(call, work).await
    }

    /// Runs something of the script on this thread. Gives nothing where a slice is not enough for it.
    fn run_in_slice<R>(
        &self,
        work: impl Fn(&Script) -> Result<R, Failure>,
    ) -> Option<Result<R, Failure>> {
        let script = &*self.script;
        let slice = InlineSlice::begin(Instant::now())?;
        let work = || running_call::within_slice(&script.setting.limits, slice, || work(script));
        let Ok(ran) = catch_unwind(AssertUnwindSafe(work)) else {
            return Some(Err(Failure::Host("the script broke off".into())));
        };
        let (result, CallUsage { cpu, host_calls }) = ran?;
        if let Some(current_call) = CurrentCall::current() {
            current_call.note(cpu, None, Some(host_calls));
        }
        Some(result)
    }

    async fn run_on_thread<R: Send + 'static>(
        &self,
        call: CallContext,
        work: impl FnOnce(&Script) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Failure> {
        let given_up = Arc::new(AtomicBool::new(false));
        let _guard = AbandonGuard(given_up.clone());
        let (script, current_call) = (self.script.clone(), CurrentCall::current());
        let span = current_call.as_ref().and_then(|current_call| current_call.span().cloned());
        let outside = current_call.as_ref().map(|current_call| HostAccess {
            granted: script.setting.granted.clone(),
            network: script.setting.network.clone(),
            caller: current_call.calls_others_for(),
            runtime: Handle::current(),
            plugin: script.setting.id.clone(),
            log: script.setting.log.clone(),
            news: script.setting.news.clone(),
            call_id: Some(call.call_id),
        });
        self.threads
            .run(move || {
                let _entered = span.map(Span::entered);
                let limits = &script.setting.limits;
                let (result, used) =
                    running_call::within(limits, given_up, outside, || work(&script));
                if let Some(current_call) = current_call {
                    current_call.note(used.cpu, None, Some(used.host_calls));
                }
                result
            })
            .await?
    }
}

/// Compiles a script, of this file, and runs nothing of it: what it defines is not known then.
///
/// # Errors
///
/// Where it is no script, with the place.
pub fn check_script(path: &Path, script: Vec<u8>, limits: &Limits) -> Result<(), ScriptLoadError> {
    let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let lines = String::from_utf8(script)
        .map_err(|error| ScriptLoadError(format!("{file}: it is not UTF-8: {error}")))?;
    let text = ScriptSource::new(file, lines);
    let ast = engine::compile(&engine::parser(limits), &text.lines, limits);
    let ast = ast.map_err(|error| text.parse_error(&error))?;
    let hooks = named_hooks(&ast).map_err(|problem| text.load_problem(&problem))?;
    check_contexts(&ast, &hooks, &text)
}

/// Checks that the handlers of a script read what their contexts have.
fn check_contexts(
    ast: &AST,
    hooks: &[ScriptHook],
    text: &ScriptSource,
) -> Result<(), ScriptLoadError> {
    // A script may have one function handle a point thousands of times: looking once must be enough.
    let (mentioned, mut seen) = (context_check::mentioned(ast), HashSet::new());
    for ScriptHook { registration, function } in hooks {
        let (name, parameters) = match function {
            HookFunction::Function(name) => (*name, 1),
            HookFunction::Closure(closure) => (closure.fn_name(), closure.curry().len() + 1),
        };
        if seen.insert((&registration.point, name, parameters)) {
            context_check::check(ast, &registration.point, name, parameters, &mentioned)
                .map_err(|problem| text.load_problem(&problem))?;
        }
    }
    Ok(())
}

impl Script {
    fn compile(setting: ScriptSetup, text: ScriptSource) -> Result<Self, ScriptLoadError> {
        let definitions = Arc::new(Mutex::new(Definitions::default()));
        let limits = &setting.limits;
        let constants = Arc::new(ScriptConstants::default());
        let engine = engine(&setting, &definitions, &constants);
        let ast = engine::compile(&engine, &text.lines, limits)
            .map_err(|error| text.parse_error(&error))?;
        let mut scope = Scope::new();
        let lock = || definitions.lock().unwrap_or_else(PoisonError::into_inner);
        let (ran, _) = running_call::within(limits, Arc::default(), None, || {
            let ran = engine.run_ast_with_scope(&mut scope, &ast);
            ran.map_err(|error| text.load_error(&error, limits))?;
            let kept = constants.keep(&scope, &mut lock().held);
            kept.map_err(|problem| text.refusal(&problem))
        });
        ran?;

        let closed = Definitions { closed: true, ..Definitions::default() };
        let mut defined = lock();
        let Definitions { tools, evals, hooks: closures, resources, prompts, .. } =
            std::mem::replace(&mut *defined, closed);
        drop(defined);
        let mut hooks = named_hooks(&ast).map_err(|problem| text.load_problem(&problem))?;
        hooks.extend(closures.into_iter().map(|(registration, function)| ScriptHook {
            registration,
            function: HookFunction::Closure(function),
        }));
        check_contexts(&ast, &hooks, &text)?;
        hooks.sort_by_key(|hook| Reverse(hook.registration.priority));
        let registrations = joined(&hooks).map_err(|problem| text.refusal(&problem))?;
        let points = registrations.iter().map(|registration| registration.point.clone());
        let script = Self {
            setting,
            text,
            engine,
            ast,
            tools,
            evals,
            hooks,
            hook_slices: points.map(|point| (point, SliceBackoff::default())).collect(),
            registrations,
            resources,
            prompts,
        };
        script.check_parameters().map_err(|problem| script.text.load_problem(&problem))?;
        Ok(script)
    }

    /// Checks that what was defined can be called with what it will be called with.
    fn check_parameters(&self) -> Result<(), ScriptProblem> {
        for tool in &self.tools {
            let what = || format!("the function of the tool \"{}\"", tool.definition.name);
            self.check_function(&tool.function, 1, what)?;
        }
        for eval in &self.evals {
            let what = || format!("the function of the strategy \"{}\"", eval.definition.name);
            self.check_function(&eval.function, 2, what)?;
        }
        for resource in &self.resources {
            let what =
                |part: &str| format!("the {part} of the resource {}", resource.template.text());
            self.check_function(&resource.function, 1, || what("function"))?;
            if let Some(list) = &resource.list {
                self.check_function(list, 0, || what("`list`"))?;
            }
            self.check_completers(&resource.completers, || what("`complete`"))?;
        }
        for prompt in &self.prompts {
            let what =
                |part: &str| format!("the {part} of the prompt \"{}\"", prompt.definition.name);
            self.check_function(&prompt.function, 1, || what("function"))?;
            self.check_completers(&prompt.completers, || what("`complete`"))?;
        }
        for ScriptHook { registration, function } in &self.hooks {
            if let HookFunction::Closure(function) = function {
                let what = || format!("the function of the hook {}", registration.point);
                self.check_function(function, 1, what)?;
            }
        }
        Ok(())
    }

    fn check_completers(
        &self,
        completers: &[(String, Completer)],
        what: impl Fn() -> String,
    ) -> Result<(), ScriptProblem> {
        completers.iter().try_for_each(|(_, completer)| match completer {
            Completer::Function(function) => self.check_function(function, 1, &what),
            Completer::Values(_) => Ok(()),
        })
    }

    fn check_function(
        &self,
        function: &FnPtr,
        expected: usize,
        what: impl Fn() -> String,
    ) -> Result<(), ScriptProblem> {
        let captured = function.curry().len();
        let fits = |parameters: usize| parameters == captured + expected;
        let mut named = functions(&self.ast).filter(|f| f.name == function.fn_name());
        let Some(found) = named.next() else {
            let problem = format!("{} is not in the script", what());
            return Err(ScriptProblem { position: Position::NONE, problem });
        };
        if fits(found.params.len()) || named.any(|f| fits(f.params.len())) {
            return Ok(());
        }
        let takes = found.params.len().saturating_sub(captured);
        let problem = format!("{} takes {takes} parameters and should take {expected}", what());
        Err(ScriptProblem { position: found.body.start_position(), problem })
    }

    fn tool(&self, name: &str) -> Option<&ScriptTool> {
        self.tools.iter().find(|tool| tool.definition.name == name)
    }

    fn eval(&self, name: &str) -> Option<&ScriptEval> {
        self.evals.iter().find(|eval| eval.definition.name == name)
    }

    fn call_tool(&self, name: &str, arguments: &Json) -> Result<ToolResult, Failure> {
        let tool = self.tool(name).ok_or_else(|| {
            Failure::Answered(Error::not_found(format!("this script has no tool \"{name}\"")))
        })?;
        let arguments = as_argument(arguments)?;
        let answer = tool.function.call::<Dynamic>(&self.engine, &self.ast, (arguments,));
        match running_call::unless_ended(answer) {
            Ok(answer) => self.tool_result(answer).map_err(|problem| {
                let function = functions(&self.ast).find(|f| f.name == tool.function.fn_name());
                let position = function.map_or(Position::NONE, |f| f.body.start_position());
                let problem = format!("the result of the tool \"{name}\": {problem}");
                Failure::Trapped(self.text.at(position, &problem))
            }),
            // What a script throws is meant for its caller.
            Err(error) => match thrown(&error) {
                Some(message) => Ok(ToolResult::error(message)),
                None => Err(self.failure(&error)),
            },
        }
    }

    fn tool_result(&self, answer: Dynamic) -> Result<ToolResult, String> {
        if answer.is_unit() {
            return Ok(ToolResult { content: Vec::new(), ..ToolResult::text("") });
        }
        if let Some(content) = content::blocks(&answer) {
            return Ok(ToolResult { content, ..ToolResult::text("") });
        }
        if answer.is_string() {
            return Ok(ToolResult::text(answer.into_string().unwrap_or_default()));
        }
        let text = json::to_text(&answer)?;
        let structured = text.starts_with('{').then(|| text.clone());
        Ok(ToolResult { structured, ..ToolResult::text(text) })
    }

    fn handle(&self, event: &HookEvent) -> Result<HookDecision, Failure> {
        let context = json::from_context(&event.context)?;
        // A shared value, so that the function changes this very one in place.
        let mut context = context.into_shared();
        // It is shared with the host and captured by no function.
        running_call::mark_not_captured(&context);
        for hook in self.hooks.iter().filter(|hook| hook.registration.point == event.point) {
            match self
                .run_handler(&hook.function, &context)
                .map_err(|error| self.failure(&error))?
            {
                Some(ScriptDecision::Veto(reason)) => return Ok(HookDecision::Veto(reason)),
                Some(ScriptDecision::Replace(replaced)) => {
                    let mut place = context
                        .write_lock::<Map>()
                        .ok_or_else(|| self.broken("the context is not a map any more"))?;
                    *place = replaced;
                }
                None => {}
            }
        }
        let after = json::changed_context(&context, &event.context);
        let after = after.map_err(|problem| self.broken(&problem))?;
        Ok(after.map_or(HookDecision::Continue, HookDecision::Replace))
    }

    /// Runs one handler. A map that it returns is the context to go on with.
    fn run_handler(
        &self,
        handler: &HookFunction,
        context: &Dynamic,
    ) -> Result<Option<ScriptDecision>, Box<EvalAltResult>> {
        let answer = match handler {
            HookFunction::Function(name) => self.engine.call_fn_with_options::<Dynamic>(
                CallFnOptions::new().eval_ast(false),
                &mut Scope::new(),
                &self.ast,
                name,
                (context.clone(),),
            ),
            HookFunction::Closure(function) => {
                function.call::<Dynamic>(&self.engine, &self.ast, (context.clone(),))
            }
        };
        let answer = running_call::unless_ended(answer)?.flatten();
        if let Some(decision) = answer.clone().try_cast::<ScriptDecision>() {
            return Ok(Some(decision));
        }
        Ok(answer.try_cast::<Map>().map(ScriptDecision::Replace))
    }

    fn evaluate(
        &self,
        strategy: &str,
        subject: &Json,
        options: &Json,
    ) -> Result<Evaluation, Failure> {
        let eval = self.eval(strategy).ok_or_else(|| {
            Error::not_found(format!("this script has no strategy \"{strategy}\""))
        })?;
        let arguments = (as_argument(subject)?, as_argument(options)?);
        let answer = eval.function.call::<Dynamic>(&self.engine, &self.ast, arguments);
        let answer = running_call::unless_ended(answer).map_err(|error| self.failure(&error))?;
        let answer = to_json(&answer).map_err(|problem| self.broken(&problem))?;
        evaluation_result::read(answer).map_err(Failure::Contract)
    }

    /// What there is to read: what is one resource, and what templates list.
    fn list_resources(&self) -> Result<Vec<ListedResource>, Failure> {
        let mut listed: Vec<_> = self.resources.iter().filter_map(ScriptResource::listed).collect();
        for resource in &self.resources {
            let Some(list) = &resource.list else { continue };
            let items = self.call(list, ())?;
            let items = resource.read_list(&items).map_err(|problem| self.broken(&problem))?;
            listed.extend(items);
        }
        Ok(listed)
    }

    fn read_resource(&self, uri: &str) -> Result<Vec<ResourceContents>, Failure> {
        for (resource, variables) in matching(&self.resources, |of| &of.template, uri) {
            let mut map = Map::new();
            for (name, value) in variables {
                match map.get_mut(name.as_str()) {
                    None => drop(map.insert(name.into(), value.into())),
                    // A list is there once for each of its values.
                    Some(known) if !known.is_array() => {
                        *known = vec![known.clone(), value.into()].into();
                    }
                    Some(known) => {
                        known.write_lock::<Array>().into_iter().for_each(|mut values| {
                            values.push(value.clone().into());
                        });
                    }
                }
            }
            let contents = self.call(&resource.function, (map,))?;
            let contents = resource.read_contents(uri, &contents);
            if let Some(contents) = contents.map_err(|problem| self.broken(&problem))? {
                return Ok(contents);
            }
        }
        Err(no_resource("script", uri))
    }

    fn get_prompt(&self, name: &str, arguments: &[(String, String)]) -> Result<Prompt, Failure> {
        let prompt = self.prompts.iter().find(|prompt| prompt.definition.name == name);
        let prompt = prompt
            .ok_or_else(|| Error::not_found(format!("this script has no prompt \"{name}\"")))?;
        check_arguments(&prompt.definition, arguments)?;
        let map: Map = arguments.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let filled = self.call(&prompt.function, (map,))?;
        prompt.read(&filled).map_err(|problem| self.broken(&problem))
    }

    fn suggest(&self, argument: &ArgumentCompletion) -> Result<Suggestions, Failure> {
        let completers = match &argument.reference {
            CompletionReference::Prompt(name) => {
                let prompt = self.prompts.iter().find(|prompt| prompt.definition.name == *name);
                prompt.map(|prompt| &prompt.completers)
            }
            CompletionReference::ResourceTemplate(uri) => {
                let found = self.resources.iter().find(|found| found.template.text() == uri);
                found.map(|resource| &resource.completers)
            }
        };
        let unknown = || Error::not_found("this script has nothing of that name to complete");
        let mut completers = completers.ok_or_else(unknown)?.iter();
        match completers.find(|(name, _)| *name == argument.name).map(|(_, by)| by) {
            Some(Completer::Values(values)) => {
                Ok(resources_and_prompts::suggest_among(values, &argument.value))
            }
            Some(Completer::Function(function)) => {
                let values = self.call(function, (argument.value.clone(),))?;
                resources_and_prompts::suggested(&values).map_err(|problem| self.broken(&problem))
            }
            // Nothing is known of it.
            None => Ok(resources_and_prompts::suggest_among(&[], "")),
        }
    }

    /// Calls a function of the script. What it throws is its answer.
    fn call(&self, function: &FnPtr, arguments: impl FuncArgs) -> Result<Dynamic, Failure> {
        let answer = function.call::<Dynamic>(&self.engine, &self.ast, arguments);
        running_call::unless_ended(answer).map_err(|error| match thrown(&error) {
            Some(message) => Error::failed(message).into(),
            None => self.failure(&error),
        })
    }

    fn broken(&self, problem: &str) -> Failure {
        Failure::Trapped(format!("{}: {problem}", self.text.file))
    }

    fn failure(&self, error: &EvalAltResult) -> Failure {
        self.text.failure(error, &self.setting.limits)
    }
}

/// The functions of a script, those without a name too.
fn functions(ast: &AST) -> impl Iterator<Item = &ScriptFuncDef> {
    ast.iter_fn_def().map(AsRef::as_ref)
}

/// The functions of a script that are named after hook points. A name that nearly is one is an
/// error: a guard that never runs would look like one that never objects.
fn named_hooks(ast: &AST) -> Result<Vec<ScriptHook>, ScriptProblem> {
    let mut hooks = Vec::new();
    for function in functions(ast) {
        let (name, parameters) = (function.name.as_str(), function.params.len());
        let wrong = |problem| ScriptProblem { position: function.body.start_position(), problem };
        let same = |known: &str| known.eq_ignore_ascii_case(&name.replace('_', ""));
        let point = POINTS
            .iter()
            .find(|info| same(info.function))
            .or_else(|| POINTS.iter().find(|info| is_slip(name, info.function)));
        match point {
            None => {}
            Some(info) if info.function != name => {
                return Err(wrong(format!(
                    "a hook point is named `{}`, not `{name}`",
                    info.function
                )));
            }
            Some(_) if parameters != 1 => {
                return Err(wrong(format!(
                    "`{name}` takes {parameters} parameters; a hook takes one, the context"
                )));
            }
            Some(info) => hooks.push(ScriptHook {
                registration: HookRegistration::new(info.point.clone()),
                function: HookFunction::Function(info.function),
            }),
        }
    }
    // In the order of the points, whatever the order in the script.
    hooks.sort_by_key(|hook| POINTS.iter().position(|info| info.point == hook.registration.point));
    Ok(hooks)
}

/// The registrations of all hooks, which begin with the greatest priorities: one for each point, as the host asks a
/// script once for each.
fn joined(hooks: &[ScriptHook]) -> Result<Vec<HookRegistration>, String> {
    let mut joined: Vec<HookRegistration> = Vec::new();
    let mut known = HashMap::new();
    for ScriptHook { registration, .. } in hooks {
        let HookRegistration { point, mode, .. } = registration;
        match known.insert(point, *mode) {
            None => joined.push(registration.clone()),
            Some(other) if other != *mode => {
                return Err(format!(
                    "several hooks handle {point}, and one of them has the mode \"audit\": all of them have it, or none"
                ));
            }
            Some(_) => {}
        }
    }
    Ok(joined)
}

/// Whether a slice is tried for such arguments.
fn is_short(json: &str) -> bool {
    json.len() <= MAX_INPUT_BYTES
}

#[async_trait]
impl Plugin for RhaiPlugin {
    async fn register(&self) -> Result<Registration, Failure> {
        let script = &self.script;
        let ScriptSetup { id, version, description, .. } = &script.setting;
        let description = description.clone();
        let identity = Identity {
            name: id.to_string(),
            version: version.as_ref().map_or_else(|| "0.0.0".into(), ToString::to_string),
            description: description.unwrap_or_else(|| format!("The script {}", script.text.file)),
            extra: None,
        };
        Ok(Registration {
            tools: script.tools.iter().map(|tool| tool.definition.clone()).collect(),
            hooks: script.registrations.clone(),
            evals: script.evals.iter().map(|eval| eval.definition.clone()).collect(),
            resources: !script.resources.is_empty(),
            prompts: !script.prompts.is_empty(),
            ..Registration::new(identity)
        })
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: Json,
        context: CallContext,
    ) -> Result<ToolResult, Failure> {
        let called = name.to_string();
        let history = self.script.tool(name).map(|tool| &tool.slices);
        let history = history.filter(|_| is_short(arguments.text()));
        self.run(context, history, move |script| script.call_tool(&called, &arguments)).await
    }

    async fn handle(&self, event: HookEvent) -> Result<HookDecision, Failure> {
        let history = self.script.hook_slices.get(&event.point);
        let history = history.filter(|_| event.context.text_length() <= MAX_INPUT_BYTES);
        self.run(event.call.clone(), history, move |script| script.handle(&event)).await
    }

    async fn evaluate(
        &self,
        strategy: &str,
        subject: Json,
        options: Json,
        context: CallContext,
    ) -> Result<Evaluation, Failure> {
        let called = strategy.to_string();
        let history = self.script.eval(strategy).map(|eval| &eval.slices);
        let history = history.filter(|_| is_short(subject.text()) && is_short(options.text()));
        let work = move |script: &Script| script.evaluate(&called, &subject, &options);
        self.run(context, history, work).await
    }

    async fn list_resources(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<ResourcePage, Failure> {
        only_page(cursor)?;
        let resources = self.run_on_thread(context, Script::list_resources).await?;
        Ok(ResourcePage { resources, next: None })
    }

    async fn list_templates(
        &self,
        cursor: Option<String>,
        _: CallContext,
    ) -> Result<TemplatePage, Failure> {
        only_page(cursor)?;
        let templates = self.script.resources.iter().filter_map(ScriptResource::listed_template);
        Ok(TemplatePage { templates: templates.collect(), next: None })
    }

    async fn read_resource(
        &self,
        uri: &str,
        context: CallContext,
    ) -> Result<Vec<ResourceContents>, Failure> {
        let uri = uri.to_string();
        self.run_on_thread(context, move |script| script.read_resource(&uri)).await
    }

    /// A script tells of every change, and keeps no list of who wants to know.
    async fn subscribe(&self, uri: &str, _: bool, _: CallContext) -> Result<(), Failure> {
        let mut resources = self.script.resources.iter();
        match resources.any(|resource| resource.template.matches(uri).is_some()) {
            true => Ok(()),
            false => Err(no_resource("script", uri)),
        }
    }

    async fn list_prompts(
        &self,
        cursor: Option<String>,
        _: CallContext,
    ) -> Result<PromptPage, Failure> {
        only_page(cursor)?;
        let prompts = self.script.prompts.iter().map(|prompt| prompt.definition.clone());
        Ok(PromptPage { prompts: prompts.collect(), next: None })
    }

    async fn get_prompt(
        &self,
        name: &str,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> Result<Prompt, Failure> {
        let name = name.to_string();
        self.run_on_thread(context, move |script| script.get_prompt(&name, &arguments)).await
    }

    async fn suggest(
        &self,
        argument: ArgumentCompletion,
        context: CallContext,
    ) -> Result<Suggestions, Failure> {
        self.run_on_thread(context, move |script| script.suggest(&argument)).await
    }
}

#[cfg(test)]
mod tests;
