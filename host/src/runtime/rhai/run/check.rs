//! What can be told of a script before it runs: tools that no plugin has, arguments that are missing or misspelt, names that
//! would hide those of the host.

use rhai::{AST, ASTNode, Expr, FnCallExpr, FnPtr, Position, Stmt};
use std::collections::{BTreeSet, HashMap};
use tenon_types::name::nearest;

use super::functions::{ToolFunction, ToolFunctions, collision, unknown_function, unknown_tool};
use crate::runtime::rhai::context_check::CAPTURE;
use crate::runtime::rhai::error::ScriptProblem;

/// The most problems that are told.
const MAX_PROBLEMS: usize = 10;

/// The function that calls a tool by its name.
const CALL_TOOL: &str = "call_tool";

/// What is wrong with a script.
pub(super) fn problems(ast: &AST, functions: &ToolFunctions) -> Vec<ScriptProblem> {
    let mut problems = Vec::new();
    let captured = captured(ast);
    for function in ast.iter_fn_def() {
        let (name, position) = (function.name.as_str(), function.body.start_position());
        if functions.is_function(name) || functions.is_variable(name) {
            problems.push(hides(position, name));
        }
        // What a closure captures are its first parameters.
        let own = function.params.iter().skip(captured.get(name).copied().unwrap_or_default());
        for parameter in own.filter(|name| functions.is_variable(name)) {
            problems.push(hides(position, parameter));
        }
    }
    ast.walk(&mut |path| {
        if let Some(node) = path.last() {
            look_at(node, functions, &mut problems);
        }
        problems.len() < MAX_PROBLEMS
    });
    problems
}

/// How many variables each closure captures, by its name.
fn captured(ast: &AST) -> HashMap<String, usize> {
    let mut captured = HashMap::new();
    ast.walk(&mut |path| {
        if let Some(ASTNode::Expr(Expr::FnCall(call, _))) = path.last()
            && call.name == CAPTURE
            && let [Expr::DynamicConstant(closure, _), variables @ ..] = &call.args[..]
            && let Some(closure) = closure.read_lock::<FnPtr>()
        {
            captured.insert(closure.fn_name().to_string(), variables.len());
        }
        true
    });
    captured
}

fn hides(position: Position, name: &str) -> ScriptProblem {
    ScriptProblem { position, problem: format!("`{name}` is the host's; take another name") }
}

fn look_at(node: &ASTNode<'_>, functions: &ToolFunctions, problems: &mut Vec<ScriptProblem>) {
    let hidden = |name: &str| functions.is_variable(name);
    match node {
        ASTNode::Stmt(Stmt::Var(variable, ..)) if hidden(&variable.0.name) => {
            problems.push(hides(variable.0.pos, &variable.0.name));
        }
        ASTNode::Stmt(Stmt::For(names, _)) => {
            let counter = names.1.as_ref();
            for name in [Some(&names.0), counter].into_iter().flatten() {
                if hidden(&name.name) {
                    problems.push(hides(name.pos, &name.name));
                }
            }
        }
        ASTNode::Stmt(Stmt::TryCatch(block, position)) => {
            if let Expr::Variable(name, ..) = &block.expr
                && hidden(&name.1)
            {
                problems.push(hides(*position, &name.1));
            }
        }
        ASTNode::Stmt(Stmt::Assignment(assignment)) => {
            if let Expr::Variable(name, _, position) = &assignment.1.lhs
                && hidden(&name.1)
            {
                problems.push(hides(*position, &name.1));
            }
        }
        ASTNode::Expr(Expr::Dot(access, ..)) => {
            if let Expr::Variable(variable, ..) = &access.lhs
                && let Some((call, position)) = first_call(&access.rhs)
            {
                problems.extend(call_problems(&variable.1, call, position, functions));
            }
        }
        ASTNode::Expr(Expr::FnCall(call, _)) | ASTNode::Stmt(Stmt::FnCall(call, _))
            if call.name == CALL_TOOL =>
        {
            problems.extend(call_by_name_problems(call, functions));
        }
        _ => {}
    }
}

/// The call that a chain begins with.
fn first_call(expr: &Expr) -> Option<(&FnCallExpr, Position)> {
    match expr {
        Expr::MethodCall(call, position) => Some((call, *position)),
        Expr::Dot(chain, ..) | Expr::Index(chain, ..) => first_call(&chain.lhs),
        _ => None,
    }
}

/// What is wrong with the call of a function of a plugin.
fn call_problems(
    variable: &str,
    call: &FnCallExpr,
    position: Position,
    functions: &ToolFunctions,
) -> Vec<ScriptProblem> {
    let Some(of_plugin) = functions.of(variable) else { return Vec::new() };
    let problem = |problem: String| vec![ScriptProblem { position, problem }];
    let name = call.name.as_str();
    let tool = match of_plugin.get(name).map(Vec::as_slice) {
        None => return problem(unknown_function(functions, variable, name)),
        Some([only]) => only,
        Some(several) => return problem(collision(variable, name, several)),
    };
    let name = format!("{variable}.{name}");
    let form = format!("{name}(#{{ … }})");
    ScriptCall { name, form, tool, position }.problems(&call.args)
}

/// What is wrong with the call of a tool by its name. What a name means that is computed, nobody knows yet.
fn call_by_name_problems(call: &FnCallExpr, functions: &ToolFunctions) -> Vec<ScriptProblem> {
    let [Expr::StringConstant(name, position), arguments @ ..] = &call.args[..] else {
        return Vec::new();
    };
    let (name, position) = (name.to_string(), *position);
    let Some(tool) = functions.function_of(&name) else {
        return vec![ScriptProblem { position, problem: unknown_name(functions, &name) }];
    };
    let form = format!("{CALL_TOOL}(\"{name}\", #{{ … }})");
    ScriptCall { name, form, tool, position }.problems(arguments)
}

/// That a name means no tool, or several.
fn unknown_name(functions: &ToolFunctions, name: &str) -> String {
    if let Some((variable, function)) = name.split_once('.')
        && let Some(of_plugin) = functions.of(variable)
    {
        return match of_plugin.get(function) {
            Some(several) => collision(variable, function, several),
            None => unknown_function(functions, variable, function),
        };
    }
    unknown_tool(functions, name)
}

/// The call of a tool.
struct ScriptCall<'a> {
    /// The name that the script calls it by: `files.read`, or `files__read`.
    name: String,
    /// How it is called with arguments.
    form: String,
    tool: &'a ToolFunction,
    position: Position,
}

impl ScriptCall<'_> {
    /// What is wrong with its arguments.
    fn problems(&self, arguments: &[Expr]) -> Vec<ScriptProblem> {
        let position = self.position;
        match arguments {
            [] => self.missing(&BTreeSet::new()),
            [Expr::Map(map, _)] => {
                let given = map.0.iter().map(|(name, _)| (name.name.to_string(), name.pos));
                self.argument_problems(given.collect())
            }
            // A map without anything to compute is a constant.
            [Expr::DynamicConstant(value, _)] if value.is_map() => {
                let map = value.as_map_ref();
                let given = map.iter().flat_map(|map| map.keys());
                self.argument_problems(given.map(|name| (name.to_string(), position)).collect())
            }
            // What it is nobody knows yet.
            [
                Expr::Variable(..)
                | Expr::ThisPtr(..)
                | Expr::FnCall(..)
                | Expr::Dot(..)
                | Expr::Index(..)
                | Expr::Coalesce(..)
                | Expr::Stmt(..),
            ] => Vec::new(),
            _ => {
                let Self { name, form, .. } = self;
                let problem = format!("`{name}` takes its arguments as one map: `{form}`");
                vec![ScriptProblem { position, problem }]
            }
        }
    }

    /// What is wrong with the names of its arguments.
    fn argument_problems(&self, given: Vec<(String, Position)>) -> Vec<ScriptProblem> {
        let mut problems = Vec::new();
        if let Some(known) = &self.tool.arguments {
            for (name, position) in given.iter().filter(|(name, _)| !known.contains(name)) {
                let unknown = format!("`{}` has no argument `{name}`", self.name);
                let problem = match nearest(name, known.iter().map(String::as_str)) {
                    Some(meant) => format!("{unknown}; did you mean `{meant}`?"),
                    None => {
                        let known: Vec<&str> = known.iter().map(String::as_str).collect();
                        format!("{unknown}; it has {}", known.join(", "))
                    }
                };
                problems.push(ScriptProblem { position: *position, problem });
            }
        }
        let given = given.into_iter().map(|(name, _)| name).collect();
        problems.extend(self.missing(&given));
        problems
    }

    /// That arguments are missing, besides those that are given.
    fn missing(&self, given: &BTreeSet<String>) -> Vec<ScriptProblem> {
        let missing: Vec<String> = { self.tool.required.iter() }
            .filter(|name| !given.contains(*name))
            .map(|name| format!("`{name}`"))
            .collect();
        match missing.is_empty() {
            true => Vec::new(),
            false => {
                let problem = format!("`{}` needs {}", self.name, missing.join(", "));
                vec![ScriptProblem { position: self.position, problem }]
            }
        }
    }
}
