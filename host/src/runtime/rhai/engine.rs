//! The engine of a script: every limit set, nothing of the outside in it, and the functions that a
//! script defines itself with.

use rhai::module_resolvers::DummyModuleResolver;
use rhai::packages::{Package, StandardPackage};
use rhai::serde::to_dynamic;
use rhai::{
    AST, Array, Blob, Dynamic, EvalAltResult, EvalContext, FnPtr, ImmutableString, LexError, Map,
    Module, NativeCallContext, OptimizationLevel, ParseError, Position, Scope, Shared, Token,
};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use tenon_config::limits::Limits;
use tenon_types::{
    EvalDefinition, HookMode, HookPoint, HookRegistration, LogLevel, ToolDefinition,
};

use super::error::mistake;
use super::inline_run::SliceBackoff;
use super::json::to_json;
use super::resources_and_prompts::{ScriptPrompt, ScriptResource};
use super::state::{self, ScriptState};
use super::{ScriptSetup, comparison, content, host_functions, news, running_call, time};
use crate::observe::PluginLog;
use crate::runtime::MAX_TOOLS_PER_PLUGIN;

/// The deepest nesting of calls. Rhai's own default differs between debug and release builds.
const MAX_CALL_DEPTH: usize = 64;
/// The deepest nesting of expressions: at the top, and in functions.
const MAX_EXPRESSION_DEPTH: (usize, usize) = (64, 32);
/// The longest string, in bytes.
pub(super) const MAX_STRING_BYTES: usize = 1 << 20;
/// The most items of an array, those of nested ones included.
pub(super) const MAX_ARRAY_ITEMS: usize = 100_000;
/// The most members of a map, those of nested ones included.
pub(super) const MAX_MAP_ENTRIES: usize = 10_000;
/// The most variables at a time, and functions in a script.
const MAX_VARIABLES: usize = 1_000;
/// The deepest nesting of a value that leaves a script, or stays in it between calls.
pub(super) const MAX_VALUE_DEPTH: usize = 128;
/// The most values that the functions of a script hold, each counted as often as it is reached: one
/// that two functions hold is there twice where they share nothing.
const MAX_HELD_VALUES: usize = 4 * MAX_ARRAY_ITEMS;
/// How many bytes of a key or a blob count as one more value: unlike a text, each copy has its own.
const BYTES_PER_HELD_VALUE: usize = 64;
/// The most tools, strategies and hooks that a script defines.
const MAX_DEFINITIONS: usize = 5 * MAX_TOOLS_PER_PLUGIN;
/// How long the texts of all that a script defines are together at most, in bytes: names, descriptions and schemas.
const MAX_DEFINITION_BYTES: usize = 16 << 20;

/// What the operator set for a script.
pub(super) type Settings = serde_json::Map<String, Value>;

/// What a script defines while it is loaded.
#[derive(Default)]
pub(super) struct Definitions {
    pub(super) tools: Vec<ScriptTool>,
    pub(super) evals: Vec<ScriptEval>,
    pub(super) hooks: Vec<(HookRegistration, FnPtr)>,
    pub(super) resources: Vec<ScriptResource>,
    pub(super) prompts: Vec<ScriptPrompt>,
    /// After loading there is nothing more to define.
    pub(super) closed: bool,
    /// How many values its functions hold.
    pub(super) held: usize,
    /// How long the texts of the definitions are.
    pub(super) bytes: usize,
}

impl Definitions {
    /// Counts one more definition, whose texts are as long as this.
    fn count(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes;
        let number = self.tools.len() + self.evals.len() + self.hooks.len();
        if number + self.resources.len() + self.prompts.len() >= MAX_DEFINITIONS {
            return Err(format!(
                "a script defines at most {MAX_DEFINITIONS} tools, strategies, hooks, resources and prompts"
            ));
        }
        if self.bytes > MAX_DEFINITION_BYTES {
            return Err(format!(
                "what a script defines has texts of at most {MAX_DEFINITION_BYTES} bytes together"
            ));
        }
        Ok(())
    }

    /// A function that shares nothing with any other: each of its calls gets what it captured as it
    /// was when the script was loaded.
    fn detached(&mut self, function: &FnPtr) -> Result<FnPtr, String> {
        detached(function, MAX_VALUE_DEPTH, &mut self.held)
    }

    fn define_hook(&mut self, point: &str, options: &Map, function: &FnPtr) -> Result<(), String> {
        self.count(point.len())?;
        let registration = hook_registration(point, options)?;
        let function = self.detached(function)?;
        self.hooks.push((registration, function));
        Ok(())
    }

    fn define_resource(&mut self, about: &Map, function: &FnPtr) -> Result<(), String> {
        let resource = ScriptResource::define(about, function, &mut |f| self.detached(f))?;
        self.count(resource.length())?;
        let uri = resource.template.text();
        if self.resources.iter().any(|other| other.template.text() == uri) {
            return Err(format!("the resource {uri} is defined twice"));
        }
        self.resources.push(resource);
        Ok(())
    }

    fn define_prompt(&mut self, about: &Map, function: &FnPtr) -> Result<(), String> {
        let prompt = ScriptPrompt::define(about, function, &mut |f| self.detached(f))?;
        self.count(prompt.length())?;
        let name = &prompt.definition.name;
        if self.prompts.iter().any(|other| other.definition.name == *name) {
            return Err(format!("the prompt \"{name}\" is defined twice"));
        }
        self.prompts.push(prompt);
        Ok(())
    }
}

pub(super) struct ScriptTool {
    pub(super) definition: ToolDefinition,
    pub(super) function: FnPtr,
    pub(super) slices: SliceBackoff,
}

pub(super) struct ScriptEval {
    pub(super) definition: EvalDefinition,
    pub(super) function: FnPtr,
    pub(super) slices: SliceBackoff,
}

/// What a hook's function returned: the script's word for an [`HookDecision`].
///
/// [`HookDecision`]: tenon_types::HookDecision
#[derive(Clone)]
pub(super) enum ScriptDecision {
    Veto(String),
    Replace(Map),
}

/// Tells the script's thread, when it is dropped, that nobody waits any more.
pub(super) struct AbandonGuard(pub(super) Arc<AtomicBool>);

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An engine with every limit set and nothing of the outside in it.
pub(super) fn engine(
    setting: &ScriptSetup,
    definitions: &Arc<Mutex<Definitions>>,
    constants: &Arc<ScriptConstants>,
) -> rhai::Engine {
    let ScriptSetup { limits, settings, log, granted, .. } = setting;
    let mut engine = parser(limits);
    look_up_variables(&mut engine, constants.clone());
    add_bounded(&mut engine);
    comparison::add(&mut engine);
    add_log(&mut engine, log);
    add_config(&mut engine, settings);
    host_functions::add(&mut engine);
    state::add(&mut engine, limits);
    content::add(&mut engine);
    news::add(&mut engine);
    time::add(&mut engine, granted.clock());
    engine.register_fn("veto", |reason: &str| ScriptDecision::Veto(reason.to_string()));
    engine.register_fn("replace", |context: Map| ScriptDecision::Replace(context));
    add_definitions(&mut engine, definitions);
    add_contributions(&mut engine, definitions);
    engine
}

/// The functions of the language itself, which all engines share: to make them takes a millisecond, and several hundred
/// kilobytes.
static STANDARD_FUNCTIONS: LazyLock<Shared<Module>> =
    LazyLock::new(|| StandardPackage::new().as_shared_module());

/// How many strings an engine keeps for the next use, as engines do by default.
const MAX_INTERNED_STRINGS: usize = 256;

/// An engine that compiles what the other one does, and runs nothing.
pub(super) fn parser(limits: &Limits) -> rhai::Engine {
    let mut engine = rhai::Engine::new_raw();
    engine.set_max_strings_interned(MAX_INTERNED_STRINGS);
    engine.register_global_module(STANDARD_FUNCTIONS.clone());
    set_limits(&mut engine, limits);
    // A name that is written wrongly is found before anything relies on it.
    engine.set_strict_variables(true);
    comparison::compile(&mut engine);
    engine
}

/// The constants at the top of a script, by their names. Functions see them; the engine itself would show them only under
/// `global`.
#[derive(Default)]
pub(super) struct ScriptConstants(OnceLock<HashMap<ImmutableString, Dynamic>>);

impl ScriptConstants {
    /// Keeps the constants of a scope in which the top of the script has run. They share nothing with what its functions
    /// hold.
    ///
    /// # Errors
    ///
    /// Where they hold too much.
    pub(super) fn keep(&self, scope: &Scope<'_>, held: &mut usize) -> Result<(), String> {
        let constants = scope.iter().filter(|(_, is_constant, _)| *is_constant);
        let constants: Result<_, String> = constants
            .map(|(name, _, value)| Ok((name.into(), detach(&value, MAX_VALUE_DEPTH, held)?)))
            .collect();
        // It is set once, when the script is loaded.
        let _ = self.0.set(constants?);
        Ok(())
    }

    fn get(&self, name: &str) -> Option<Dynamic> {
        self.0.get()?.get(name).cloned()
    }
}

thread_local! {
    /// When the compilation on this thread has had its time.
    static COMPILED_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The constants at the top of the script that is compiled on this thread.
    static FOUND_CONSTANTS: RefCell<FoundConstants> = const { RefCell::new(FoundConstants::new()) };
}

/// Names of constants at the top of a script, as its tokens come.
struct FoundConstants {
    names: Vec<String>,
    /// How many braces are open.
    depth: usize,
    /// Whether the name of a constant comes next.
    is_next: bool,
}

impl FoundConstants {
    const fn new() -> Self {
        Self { names: Vec::new(), depth: 0, is_next: false }
    }

    fn take(&mut self, token: &Token) {
        match token {
            Token::LeftBrace | Token::MapStart => self.depth += 1,
            Token::RightBrace => self.depth = self.depth.saturating_sub(1),
            Token::Identifier(name) if self.is_next && self.depth == 0 => {
                self.names.push(name.to_string());
            }
            _ => {}
        }
        self.is_next = matches!(token, Token::Const);
    }
}

/// Compiles a script, which has as much time for that as a call: cases of a `switch` and members of a
/// map are each compared with those before.
pub(super) fn compile(
    engine: &rhai::Engine,
    script: &str,
    limits: &Limits,
) -> Result<AST, ParseError> {
    compile_knowing(engine, script, limits, [state::NAME].into_iter())
}

/// The same for a script that sees these variables of the host's.
pub(super) fn compile_knowing<'a>(
    engine: &rhai::Engine,
    script: &str,
    limits: &Limits,
    variables: impl Iterator<Item = &'a str>,
) -> Result<AST, ParseError> {
    COMPILED_UNTIL.set(Instant::now().checked_add(limits.cpu));
    let compiled = constants_of(script).and_then(|constants| {
        let mut known = Scope::new();
        for variable in variables {
            known.push_constant(variable, ());
        }
        for name in constants {
            known.push_constant(name, ());
        }
        engine.compile_with_scope(&known, script)
    });
    COMPILED_UNTIL.set(None);
    compiled
}

/// It takes names that it does not know for variables.
static LENIENT_PARSER: LazyLock<rhai::Engine> = LazyLock::new(|| {
    let mut lenient = parser(&Limits::default());
    lenient.set_strict_variables(false);
    lenient
});

/// The names of the constants at the top of a script. Functions may use constants that stand below them, so they have to be
/// known before the script is compiled.
fn constants_of(script: &str) -> Result<Vec<String>, ParseError> {
    if !script.contains("const") {
        return Ok(Vec::new());
    }
    FOUND_CONSTANTS.replace(FoundConstants::new());
    LENIENT_PARSER.compile(script)?;
    Ok(FOUND_CONSTANTS.replace(FoundConstants::new()).names)
}

/// The token that comes next, or one that ends the compilation.
fn next_token(token: Token) -> Token {
    FOUND_CONSTANTS.with_borrow_mut(|found| found.take(&token));
    match COMPILED_UNTIL.get() {
        Some(until) if Instant::now() > until => {
            let problem = "it takes too long to compile; make it shorter".to_string();
            Token::LexError(Box::new(LexError::Runtime(problem)))
        }
        _ => token,
    }
}

fn set_limits(engine: &mut rhai::Engine, limits: &Limits) {
    engine
        .set_max_operations(limits.operations())
        .set_max_call_levels(MAX_CALL_DEPTH)
        .set_max_expr_depths(MAX_EXPRESSION_DEPTH.0, MAX_EXPRESSION_DEPTH.1)
        .set_max_string_size(MAX_STRING_BYTES)
        .set_max_array_size(MAX_ARRAY_ITEMS)
        .set_max_map_size(MAX_MAP_ENTRIES)
        .set_max_variables(MAX_VARIABLES)
        .set_max_functions(MAX_VARIABLES)
        .set_max_modules(0)
        .set_module_resolver(DummyModuleResolver::new())
        // The optimizer compares cases of a `switch` with each other, and nothing ends it.
        .set_optimization_level(OptimizationLevel::None)
        .disable_symbol("eval")
        // It would nest functions without capturing a variable, which is what is counted.
        .disable_symbol("curry")
        .on_progress(|_| running_call::ended().map(Dynamic::from));
    #[expect(deprecated, reason = "the callback is marked as one that may change")]
    engine.on_parse_token(|token, _, _| next_token(token));
    // They would hold their thread, whatever the limits and the caller say.
    engine.register_fn("sleep", |_: i64| no_sleep());
    engine.register_fn("sleep", |_: f64| no_sleep());
}

fn look_up_variables(engine: &mut rhai::Engine, constants: Arc<ScriptConstants>) {
    #[expect(deprecated, reason = "the callback is marked as one that may change")]
    engine.on_var(move |name, _, context| look_up(name, &context, &constants));
}

/// Counts the use of a captured variable, and knows those that are the host's or constants of the script.
fn look_up(
    name: &str,
    context: &EvalContext<'_, '_, '_, '_, '_, '_>,
    constants: &ScriptConstants,
) -> Result<Option<Dynamic>, Box<EvalAltResult>> {
    if is_in_scope(name, context)? {
        return Ok(None);
    }
    // Functions do not see the variables of the script, so it is none.
    Ok(match name {
        state::NAME => Some(Dynamic::from(ScriptState::default())),
        name => constants.get(name),
    })
}

/// Whether there is a variable of this name. Counts its use, where a function has captured it.
pub(super) fn is_in_scope(
    name: &str,
    context: &EvalContext<'_, '_, '_, '_, '_, '_>,
) -> Result<bool, Box<EvalAltResult>> {
    running_call::count_use(context)?;
    let Some(variable) = context.scope().get(name) else { return Ok(false) };
    if variable.is_shared() {
        running_call::count_captured(variable)?;
    }
    Ok(true)
}

/// How many bytes a captured value holds, or about so, that were not seen before. The engine does not count what
/// functions hold.
pub(super) fn weigh(value: &Dynamic, seen: &mut HashSet<usize>, depth: usize) -> usize {
    let Some(depth) = depth.checked_sub(1) else { return 0 };
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return if seen.insert(text.as_ptr().addr()) { text.len() } else { 0 };
    }
    if let Some(blob) = value.read_lock::<Blob>() {
        return if seen.insert(blob.as_ptr().addr()) { blob.len() } else { 0 };
    }
    // What is shared may be reached again and again.
    let is_known = |seen: &mut HashSet<usize>, at: usize| value.is_shared() && !seen.insert(at);
    if let Some(function) = value.read_lock::<FnPtr>() {
        let is_known = is_known(seen, std::ptr::from_ref(&*function).addr());
        return if is_known { 0 } else { weigh_all(function.curry().iter(), seen, depth) };
    }
    if let Some(array) = value.read_lock::<Array>() {
        let is_known = is_known(seen, std::ptr::from_ref(&*array).addr());
        return if is_known { 0 } else { weigh_all(array.iter(), seen, depth) };
    }
    match value.read_lock::<Map>() {
        Some(map) if !is_known(seen, std::ptr::from_ref(&*map).addr()) => {
            weigh_entries(&map) + weigh_all(map.values(), seen, depth)
        }
        _ => 0,
    }
}

/// How many bytes a captured value holds, or about so, without what others hold that were captured as well.
pub(super) fn weigh_own(value: &Dynamic, depth: usize) -> usize {
    let Some(depth) = depth.checked_sub(1) else { return 0 };
    let of_all = |values: &mut dyn Iterator<Item = &Dynamic>| -> usize {
        values
            .map(|value| match value.is_shared() {
                true => size_of::<Dynamic>(),
                false => size_of::<Dynamic>() + weigh_own(value, depth),
            })
            .sum()
    };
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return text.len();
    }
    if let Some(array) = value.read_lock::<Array>() {
        return of_all(&mut array.iter());
    }
    if let Some(map) = value.read_lock::<Map>() {
        return weigh_entries(&map) + of_all(&mut map.values());
    }
    if let Some(function) = value.read_lock::<FnPtr>() {
        return of_all(&mut function.curry().iter());
    }
    value.read_lock::<Blob>().map_or(0, |blob| blob.len())
}

/// How many bytes a variable holds, or about so, that no function has captured. A text that was seen before counts once.
pub(super) fn weigh_unshared(value: &Dynamic, seen: &mut HashSet<usize>, depth: usize) -> usize {
    let depth = match depth.checked_sub(1) {
        // What is captured is counted elsewhere.
        Some(depth) if !value.is_shared() => depth,
        _ => return 0,
    };
    if value.is_int() || value.is_float() || value.is_bool() || value.is_unit() || value.is_char() {
        return 0;
    }
    let mut of_all = |values: &mut dyn Iterator<Item = &Dynamic>| -> usize {
        values.map(|value| size_of::<Dynamic>() + weigh_unshared(value, seen, depth)).sum()
    };
    if let Some(array) = value.read_lock::<Array>() {
        return of_all(&mut array.iter());
    }
    if let Some(map) = value.read_lock::<Map>() {
        return weigh_entries(&map) + of_all(&mut map.values());
    }
    if let Some(function) = value.read_lock::<FnPtr>() {
        return of_all(&mut function.curry().iter());
    }
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return if seen.insert(text.as_ptr().addr()) { text.len() } else { 0 };
    }
    value.read_lock::<Blob>().map_or(0, |blob| blob.len())
}

/// About how many bytes an entry of a map takes besides its value and the characters of its key.
const MAP_ENTRY_BYTES: usize = 32;

/// About how many bytes the entries of a map take besides their values. No other map shares a key.
fn weigh_entries(map: &Map) -> usize {
    map.keys().map(|key| MAP_ENTRY_BYTES + key.len()).sum()
}

fn weigh_all<'a>(
    values: impl Iterator<Item = &'a Dynamic>,
    seen: &mut HashSet<usize>,
    depth: usize,
) -> usize {
    values.map(|value| size_of::<Dynamic>() + weigh(value, seen, depth)).sum()
}

fn no_sleep() -> Result<(), Box<EvalAltResult>> {
    Err(mistake("a script cannot sleep"))
}

/// Functions of the engine's own that would make a text of any length before anything looks at it.
pub(super) fn add_bounded(engine: &mut rhai::Engine) {
    engine.register_fn("replace", replace);
    engine.register_fn("replace", |text: &mut ImmutableString, find: &str, by: char| {
        replace(text, find, by.encode_utf8(&mut [0; 4]))
    });
    engine.register_fn("replace", |text: &mut ImmutableString, find: char, by: &str| {
        replace(text, find.encode_utf8(&mut [0; 4]), by)
    });
    // What a function holds may be held by others as well, and would be written out for each.
    for name in ["debug", "to_debug"] {
        engine.register_fn(name, |function: &mut FnPtr| function.to_string());
    }
    for name in ["print", "to_string", "debug", "to_debug"] {
        engine.register_fn(name, array_as_text);
        engine.register_fn(name, map_as_text);
    }
    engine.register_fn("to_json", |map: &mut Map| -> ImmutableString {
        match all_fit_when_written(map.values(), true) {
            true => rhai::format_map_as_json(map).into(),
            false => too_large(),
        }
    });
}

/// An array as the engine writes it: `[1, "a"]`.
fn array_as_text(context: NativeCallContext<'_>, array: &mut Array) -> ImmutableString {
    if !all_fit_when_written(array.iter(), false) {
        return too_large();
    }
    let items = array.iter_mut().map(|item| debug_text(&context, item));
    format!("[{}]", items.collect::<Vec<_>>().join(", ")).into()
}

/// A map as the engine writes it: `#{"a": 1}`.
fn map_as_text(context: NativeCallContext<'_>, map: &mut Map) -> ImmutableString {
    if !all_fit_when_written(map.values(), false) {
        return too_large();
    }
    let members = map.iter_mut().map(|(key, value)| {
        let value = debug_text(&context, value);
        format!("{key:?}: {value}")
    });
    format!("#{{{}}}", members.collect::<Vec<_>>().join(", ")).into()
}

/// Where a value has no form of its own, its type has.
fn debug_text(context: &NativeCallContext<'_>, value: &mut Dynamic) -> ImmutableString {
    let text = context.call_native_fn_raw("to_debug", true, &mut [value]);
    text.ok()
        .and_then(|text| text.into_immutable_string().ok())
        .unwrap_or_else(|| context.engine().map_type_name(value.type_name()).into())
}

/// The text in place of one that is too long. Nothing is done with it.
fn too_large() -> ImmutableString {
    running_call::end_for_value_size();
    ImmutableString::new()
}

/// Whether values fit into one text.
fn all_fit_when_written<'a>(
    mut values: impl Iterator<Item = &'a Dynamic>,
    with_captured: bool,
) -> bool {
    let mut room = MAX_STRING_BYTES;
    values.all(|value| fits_when_written(value, &mut room, MAX_VALUE_DEPTH, with_captured))
}

fn take(room: &mut usize, bytes: usize) -> bool {
    let left = room.checked_sub(bytes);
    left.inspect(|left| *room = *left).is_some()
}

/// Whether a value takes about as many bytes as there is room for, when it is written out. What others hold as well is written
/// out for each; what functions have captured only where that is said.
pub(super) fn fits_when_written(
    value: &Dynamic,
    room: &mut usize,
    depth: usize,
    with_captured: bool,
) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    // What is written out is within itself: nobody can read it meanwhile.
    if value.is_shared() && value.is_locked() {
        return false;
    }
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return take(room, text.len() + 2);
    }
    if let Some(blob) = value.read_lock::<Blob>() {
        return take(room, 3 * blob.len());
    }
    if !take(room, 2) {
        return false;
    }
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().all(|item| fits_when_written(item, room, depth, with_captured));
    }
    if let Some(map) = value.read_lock::<Map>() {
        let mut members = map.iter();
        return members.all(|(key, value)| {
            take(room, key.len() + 4) && fits_when_written(value, room, depth, with_captured)
        });
    }
    match value.read_lock::<FnPtr>().filter(|_| with_captured) {
        Some(function) => function
            .curry()
            .iter()
            .all(|value| fits_when_written(value, room, depth, with_captured)),
        None => true,
    }
}

/// Replaces each place of a text in another one, as long as what comes of it is no longer than a
/// string may be.
fn replace(text: &mut ImmutableString, find: &str, by: &str) -> Result<(), Box<EvalAltResult>> {
    if text.is_empty() {
        return Ok(());
    }
    let found = text.matches(find).count();
    let length = (text.len() - found * find.len()).saturating_add(found.saturating_mul(by.len()));
    if length > MAX_STRING_BYTES {
        let what = "Length of string".to_string();
        return Err(EvalAltResult::ErrorDataTooLarge(what, Position::NONE).into());
    }
    *text = text.replace(find, by).into();
    Ok(())
}

fn add_log(engine: &mut rhai::Engine, log: &Arc<PluginLog>) {
    let writer = |level: LogLevel| {
        let log = log.clone();
        move |message: &str| {
            running_call::say(|client| {
                log.write_for(client, level, message, &[]);
            });
        }
    };
    let print = writer(LogLevel::Info);
    engine.on_print(move |message| print(message));
    let debug = writer(LogLevel::Debug);
    engine.on_debug(move |message, _, _| debug(message));
    for (name, level) in [
        ("log", LogLevel::Info),
        ("log_debug", LogLevel::Debug),
        ("log_info", LogLevel::Info),
        ("log_warn", LogLevel::Warn),
        ("log_error", LogLevel::Error),
    ] {
        engine.register_fn(name, writer(level));
    }
}

/// The plugin's settings: all of them, or one, which is `()` where it is not set.
fn add_config(engine: &mut rhai::Engine, settings: &Settings) {
    let all = to_dynamic(settings).unwrap_or_default();
    let map = all.clone().try_cast::<Map>().unwrap_or_default();
    engine.register_fn("config", move || all.clone());
    engine.register_fn("config", move |key: &str| map.get(key).cloned().unwrap_or_default());
}

fn add_definitions(engine: &mut rhai::Engine, definitions: &Arc<Mutex<Definitions>>) {
    let defined = definitions.clone();
    engine.register_fn("tool", move |about: Map, function: FnPtr| {
        define(&defined, |definitions| {
            let definition = definition(&about)?;
            let ToolDefinition { name, title, description, input_schema, .. } = &definition;
            let title = title.as_ref().map_or(0, String::len);
            let length = name.len() + title + description.len() + input_schema.len();
            definitions.count(length + definition.output_schema.as_ref().map_or(0, String::len))?;
            if definitions.tools.iter().any(|tool| tool.definition.name == definition.name) {
                return Err(format!("the tool \"{}\" is defined twice", definition.name));
            }
            let function = definitions.detached(&function)?;
            let slices = SliceBackoff::default();
            definitions.tools.push(ScriptTool { definition, function, slices });
            Ok(())
        })
    });
    let defined = definitions.clone();
    engine.register_fn("strategy", move |about: Map, function: FnPtr| {
        define(&defined, |definitions| {
            let definition = eval_definition(&about)?;
            let EvalDefinition { name, description, options_schema, .. } = &definition;
            let schema = options_schema.as_ref().map_or(0, String::len);
            definitions.count(name.len() + description.len() + schema)?;
            if definitions.evals.iter().any(|eval| eval.definition.name == definition.name) {
                return Err(format!("the strategy \"{}\" is defined twice", definition.name));
            }
            let function = definitions.detached(&function)?;
            let slices = SliceBackoff::default();
            definitions.evals.push(ScriptEval { definition, function, slices });
            Ok(())
        })
    });
    let defined = definitions.clone();
    engine.register_fn("hook", move |point: &str, function: FnPtr| {
        define(&defined, |definitions| definitions.define_hook(point, &Map::new(), &function))
    });
    let defined = definitions.clone();
    engine.register_fn("hook", move |point: &str, options: Map, function: FnPtr| {
        define(&defined, |definitions| definitions.define_hook(point, &options, &function))
    });
}

/// Puts into an engine what defines resources and prompts.
fn add_contributions(engine: &mut rhai::Engine, definitions: &Arc<Mutex<Definitions>>) {
    let defined = definitions.clone();
    engine.register_fn("resource", move |about: Map, function: FnPtr| {
        define(&defined, |definitions| definitions.define_resource(&about, &function))
    });
    let defined = definitions.clone();
    engine.register_fn("prompt", move |about: Map, function: FnPtr| {
        define(&defined, |definitions| definitions.define_prompt(&about, &function))
    });
}

/// Defines something, while the script is being loaded.
fn define(
    definitions: &Mutex<Definitions>,
    add: impl FnOnce(&mut Definitions) -> Result<(), String>,
) -> Result<(), Box<EvalAltResult>> {
    let mut definitions = definitions.lock().unwrap_or_else(PoisonError::into_inner);
    if definitions.closed {
        return Err(mistake("tools and hooks are defined at the top of a script, not in calls"));
    }
    add(&mut definitions).map_err(mistake)
}

/// What a script says of something that it defines.
pub(super) struct DefinitionMap {
    what: &'static str,
    members: Map,
}

impl DefinitionMap {
    pub(super) fn new(what: &'static str, members: Map, known: &[&str]) -> Result<Self, String> {
        if let Some(key) = members.keys().find(|key| !known.contains(&key.as_str())) {
            let article = if what.starts_with('a') { "an" } else { "a" };
            return Err(format!("{article} {what} has no \"{key}\"; it has {}", known.join(", ")));
        }
        Ok(Self { what, members })
    }

    /// A member, as the script has it.
    pub(super) fn member(&self, key: &str) -> Option<&Dynamic> {
        self.members.get(key)
    }

    fn json(&self, key: &str) -> Result<Option<Value>, String> {
        self.members.get(key).map(to_json).transpose()
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.json(key)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{key}` of the {} is not a text", self.what)),
        }
    }

    pub(super) fn truth(&self, key: &str) -> Result<Option<bool>, String> {
        match self.json(key)? {
            None => Ok(None),
            Some(Value::Bool(truth)) => Ok(Some(truth)),
            Some(_) => Err(format!("`{key}` of the {} is neither true nor false", self.what)),
        }
    }

    pub(super) fn name(&self) -> Result<String, String> {
        self.text("name")?.ok_or_else(|| format!("the {} has no name", self.what))
    }

    fn description(&self, name: &str) -> Result<String, String> {
        let description = self.text("description")?;
        description.ok_or_else(|| format!("the {} \"{name}\" has no description", self.what))
    }
}

fn definition(about: &Map) -> Result<ToolDefinition, String> {
    let known = ["name", "title", "description", "schema", "output_schema", "annotations", "extra"];
    let about = DefinitionMap::new("tool", about.clone(), &known)?;
    let name = about.name()?;
    let description = about.description(&name)?;
    let schema = about.json("schema")?.unwrap_or_else(|| json!({ "type": "object" }));
    let mut definition = ToolDefinition::new(name, description, &schema);
    definition.title = about.text("title")?;
    definition.output_schema = about.json("output_schema")?.map(|schema| schema.to_string());
    definition.extra = match about.json("extra")? {
        None => None,
        Some(extra @ Value::Object(_)) => Some(extra.to_string()),
        Some(_) => return Err("the `extra` of a tool is a map".into()),
    };
    if let Some(annotations) = about.members.get("annotations") {
        let annotations = annotations.clone().try_cast::<Map>();
        let annotations = annotations.ok_or("the `annotations` of a tool are a map")?;
        let known = ["read_only", "destructive", "idempotent", "open_world"];
        let about = DefinitionMap::new("tool's annotations", annotations, &known)?;
        definition.annotations.read_only = about.truth("read_only")?;
        definition.annotations.destructive = about.truth("destructive")?;
        definition.annotations.idempotent = about.truth("idempotent")?;
        definition.annotations.open_world = about.truth("open_world")?;
    }
    Ok(definition)
}

fn eval_definition(about: &Map) -> Result<EvalDefinition, String> {
    let about = DefinitionMap::new("strategy", about.clone(), &["name", "description", "schema"])?;
    let name = about.name()?;
    let description = about.description(&name)?;
    let options_schema = about.json("schema")?.map(|schema| schema.to_string());
    Ok(EvalDefinition { name, description, options_schema })
}

fn hook_registration(point: &str, options: &Map) -> Result<HookRegistration, String> {
    let point = point.parse::<HookPoint>().map_err(|error| error.to_string())?;
    let options = DefinitionMap::new("hook", options.clone(), &["priority", "mode"])?;
    let priority = match options.json("priority")? {
        None => 0,
        Some(priority) => {
            let priority = priority.as_i64().and_then(|priority| i32::try_from(priority).ok());
            priority.ok_or("the `priority` of a hook is a whole number of 32 bits")?
        }
    };
    let mode = match options.text("mode")?.as_deref() {
        None | Some("enforce") => HookMode::Enforce,
        Some("audit") => HookMode::Audit,
        Some(_) => return Err("the `mode` of a hook is \"enforce\" or \"audit\"".into()),
    };
    Ok(HookRegistration { mode, priority, ..HookRegistration::new(point) })
}

pub(super) fn detached(function: &FnPtr, depth: usize, held: &mut usize) -> Result<FnPtr, String> {
    let captured: Result<Vec<Dynamic>, String> =
        function.iter_curry().map(|value| detach(value, depth, held)).collect();
    let mut function = function.clone();
    function.set_curry(captured?);
    Ok(function)
}

/// A copy of a value with nothing shared in it.
pub(super) fn detach(value: &Dynamic, depth: usize, held: &mut usize) -> Result<Dynamic, String> {
    let Some(depth) = depth.checked_sub(1) else { return Err(too_deep()) };
    hold(1, held)?;
    if let Some(array) = value.read_lock::<Array>() {
        let items: Result<Array, String> =
            array.iter().map(|item| detach(item, depth, held)).collect();
        return Ok(items?.into());
    }
    if let Some(map) = value.read_lock::<Map>() {
        hold(map.keys().map(|key| key.len() / BYTES_PER_HELD_VALUE).sum(), held)?;
        let members: Result<Map, String> =
            map.iter().map(|(key, value)| Ok((key.clone(), detach(value, depth, held)?))).collect();
        return Ok(members?.into());
    }
    if let Some(function) = value.read_lock::<FnPtr>() {
        return Ok(detached(&function, depth, held)?.into());
    }
    if let Some(blob) = value.read_lock::<Blob>() {
        hold(blob.len() / BYTES_PER_HELD_VALUE, held)?;
    }
    Ok(value.flatten_clone())
}

/// Counts values that functions hold.
fn hold(values: usize, held: &mut usize) -> Result<(), String> {
    *held += values;
    match *held > MAX_HELD_VALUES {
        true => Err(format!("the functions of the script hold more than {MAX_HELD_VALUES} values")),
        false => Ok(()),
    }
}

pub(super) fn too_deep() -> String {
    format!("a value is nested more than {MAX_VALUE_DEPTH} deep")
}
