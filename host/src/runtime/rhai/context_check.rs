//! The members of a hook's context that a script reads. One that its point does not have would be `()`, and a guard that
//! looks at it would never object; so such a script is not loaded.
//!
//! What is read is found in the code: in the handler, in functions that the context is passed to, and in closures that
//! capture it. A member that a script writes, or tests for with `in`, is its host's or its own.

use rhai::{AST, ASTNode, Expr, FnCallExpr, FnPtr, ImmutableString, OP_CONTAINS, Position, Stmt};
use std::collections::HashSet;
use tenon_types::HookPoint;
use tenon_types::name::nearest;

use super::error::ScriptProblem;

/// What the engine calls with a closure to give it what it captures.
pub(super) const CAPTURE: &str = "curry";

/// Looks at what a handler reads of its context, which is the last of its parameters, in a script that mentions these
/// members.
///
/// # Errors
///
/// The first member that no context of the point has.
pub(super) fn check(
    ast: &AST,
    point: &HookPoint,
    handler: &str,
    parameters: usize,
    mentioned: &HashSet<ImmutableString>,
) -> Result<(), ScriptProblem> {
    // What contexts of other points have is for their hosts to say.
    let Some(info) = point.info() else { return Ok(()) };
    let example = info.context().example();
    let members = info.context().members.iter().map(|member| member.name);
    // What hosts say besides is in the example.
    let others = example.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let mut known: Vec<&str> = members.chain(others).collect();
    known.sort_unstable();
    known.dedup();
    let well_known = known.len();
    known.extend(mentioned.iter().map(ImmutableString::as_str));
    let mut uses = ContextUses { ast, known: &known, seen: HashSet::new(), unknown: None };
    let index = parameters.saturating_sub(1);
    uses.look_into(ContextReceiver {
        function: handler.into(),
        parameters: Some(parameters),
        index,
    });
    let Some((name, position)) = uses.unknown else { return Ok(()) };
    known.truncate(well_known);
    let meant = match nearest(&name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("it has {}.", known.join(", ")),
    };
    let problem = format!(
        "the context of {point} has no member `{name}`; {meant} One that only some hosts have is asked for first: `\"{name}\" in context`"
    );
    Err(ScriptProblem { position, problem })
}

/// The names of members that a script writes or tests for, of whatever map.
pub(super) fn mentioned(ast: &AST) -> HashSet<ImmutableString> {
    let mut names = HashSet::new();
    ast.walk(&mut |path| {
        match path.last() {
            Some(ASTNode::Stmt(Stmt::Assignment(assignment)))
                if !assignment.0.is_op_assignment() =>
            {
                let (Expr::Dot(target, ..) | Expr::Index(target, ..)) = &assignment.1.lhs else {
                    return true;
                };
                names.extend(name_of(&target.rhs));
            }
            Some(
                ASTNode::Expr(Expr::FnCall(call, _) | Expr::MethodCall(call, _))
                | ASTNode::Stmt(Stmt::FnCall(call, _)),
            ) if [OP_CONTAINS, "set"].contains(&call.name.as_str()) => {
                names.extend(call.args.iter().filter_map(name_of));
            }
            _ => {}
        }
        true
    });
    names
}

/// The name that a member is reached by: `.name` or `["name"]`.
fn name_of(expr: &Expr) -> Option<ImmutableString> {
    match expr {
        Expr::Property(property, _) => Some(property.2.clone()),
        Expr::StringConstant(name, _) => Some(name.clone()),
        _ => None,
    }
}

/// A function that gets the context.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ContextReceiver {
    function: ImmutableString,
    /// How many parameters it has. Closures have names of their own, whatever they take.
    parameters: Option<usize>,
    /// The parameter that gets the context.
    index: usize,
}

struct ContextUses<'a> {
    ast: &'a AST,
    known: &'a [&'a str],
    seen: HashSet<ContextReceiver>,
    /// The first that was found.
    unknown: Option<(ImmutableString, Position)>,
}

impl ContextUses<'_> {
    /// Looks into a function, and into those that it passes the context to.
    fn look_into(&mut self, receiver: ContextReceiver) {
        if !self.seen.insert(receiver.clone()) {
            return;
        }
        let ContextReceiver { function, parameters, index } = receiver;
        let is_it = |name: &str, number: usize| {
            name == function && parameters.is_none_or(|parameters| parameters == number)
        };
        let found = self.ast.iter_functions().find(|f| is_it(f.name, f.params.len()));
        let Some(context) = found.as_ref().and_then(|f| f.params.get(index)) else { return };
        let mut names = HashSet::from([ImmutableString::from(*context)]);
        let mut receivers = Vec::new();
        let mut body = self.ast.clone_functions_only();
        body.retain_functions(|_, _, name, number| is_it(name, number));
        body.walk(&mut |path| {
            self.look_at(path, &mut names, &mut receivers);
            self.unknown.is_none()
        });
        for receiver in receivers {
            if self.unknown.is_none() {
                self.look_into(receiver);
            }
        }
    }

    /// Looks at a node, where some variables are the context. Adds the functions that get it.
    fn look_at(
        &mut self,
        path: &[ASTNode<'_>],
        names: &mut HashSet<ImmutableString>,
        receivers: &mut Vec<ContextReceiver>,
    ) {
        let is_context = |expr: &Expr| matches!(expr, Expr::Variable(variable, ..) if names.contains(&variable.1));
        let [before @ .., node] = path else { return };
        match node {
            // Another variable of this name hides the context; one with the context is another name for it.
            ASTNode::Stmt(Stmt::Var(variable, ..)) => {
                let is_alias = is_context(&variable.1);
                match is_alias {
                    true => names.insert(variable.0.name.clone()),
                    false => names.remove(&variable.0.name),
                };
            }
            ASTNode::Expr(chain @ (Expr::Dot(access, ..) | Expr::Index(access, ..)))
                if is_context(&access.lhs) =>
            {
                let is_written = matches!(
                    before.last(),
                    Some(ASTNode::Stmt(Stmt::Assignment(to)))
                        if std::ptr::eq(&to.1.lhs, *chain) && !to.0.is_op_assignment()
                );
                let (member, is_whole) = first(&access.rhs);
                if let Some(name) = name_of(member)
                    && !(is_written && is_whole)
                    && !self.known.contains(&name.as_str())
                {
                    self.unknown = Some((name, member.position()));
                }
            }
            ASTNode::Expr(Expr::FnCall(call, _)) | ASTNode::Stmt(Stmt::FnCall(call, _)) => {
                receivers.extend(receivers_of(call, is_context));
            }
            _ => {}
        }
    }
}

/// The first link of a chain, and whether there is no other.
fn first(mut expr: &Expr) -> (&Expr, bool) {
    let mut is_whole = true;
    while let Expr::Dot(chain, ..) | Expr::Index(chain, ..) = expr {
        (expr, is_whole) = (&chain.lhs, false);
    }
    (expr, is_whole)
}

/// The functions that a call passes the context to: the function that is called, or the closure that captures it.
fn receivers_of(call: &FnCallExpr, is_context: impl Fn(&Expr) -> bool) -> Vec<ContextReceiver> {
    let (function, parameters, given) = match &call.args[..] {
        [Expr::DynamicConstant(closure, _), captured @ ..] if call.name == CAPTURE => {
            let Some(closure) = closure.read_lock::<FnPtr>() else { return Vec::new() };
            (closure.fn_name().into(), None, captured)
        }
        arguments => (call.name.clone(), Some(arguments.len()), arguments),
    };
    let indexed = given.iter().enumerate().filter(|(_, argument)| is_context(argument));
    let receiver = |(index, _)| ContextReceiver { function: function.clone(), parameters, index };
    indexed.map(receiver).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::rhai::engine;
    use tenon_config::limits::Limits;

    /// What is wrong with the handler `handler` of `message-sending`, whose context has `message`.
    fn problem(script: &str) -> Option<String> {
        let limits = Limits::default();
        let ast = engine::compile(&engine::parser(&limits), script, &limits).expect(script);
        let found =
            check(&ast, &HookPoint::MessageSending, "handler", 1, &mentioned(&ast)).err()?;
        Some(format!("{:?}: {}", found.position, found.problem))
    }

    #[test]
    fn members_that_the_point_has_not_are_found_where_they_are_read() {
        let check = |script: &str, expected: &str| {
            let problem = problem(script).unwrap_or_else(|| panic!("{script}: nothing is found"));
            assert!(problem.contains(expected), "{script}: {problem}");
        };
        check("fn handler(context) { context.mesage += 1 }", "did you mean `message`?");
        check("fn handler(c) {\n  if c.tool.name == 1 { veto(\"\") }\n}", "2:8: the context of ");
        check(
            "fn handler(c) { c[\"tool\"] }",
            "no member `tool`; it has channel, message, plugin, recipient.",
        );
        check("fn handler(c) { c?.tool }", "no member `tool`");
        check("fn handler(c) { c.tool.name = 1 }", "no member `tool`");
        check("fn handler(c) { c.tool ?? 1 }", "no member `tool`");
        check("fn handler(c) { let other = c; other.tool }", "no member `tool`");
        check("fn handler(c) { helper(1, c) } fn helper(n, c) { c.tool }", "no member `tool`");
        check("fn handler(c) { [1].filter(|n| n == c.tool) }", "no member `tool`");
        check("fn handler(c) { `${c.message} ${c.tool}` }", "no member `tool`");
        check("fn handler(c) { switch 1 { 1 => c.tool, _ => 2 } }", "no member `tool`");
        check("fn handler(c) { c.tool += 1 }", "no member `tool`");
        check("fn handler(c) { c.tool.trim() }", "no member `tool`");
    }

    #[test]
    fn what_a_host_or_the_script_adds_is_no_problem() {
        let check = |script: &str| assert_eq!(problem(script), None, "{script}");
        check("fn handler(context) { context.message += \"!\" }");
        check("fn handler(context) { context.message.anything.at_all }");
        check("fn handler(c) { if \"tool\" in c { c.tool.name } }");
        check("fn handler(c) { if c.contains(\"tool\") { c.tool } }");
        check("fn handler(c) { c.note = 1; c.note + 1 }");
        check("fn handler(c) { c[\"note\"] = 1; c.note }");
        check("fn handler(c) { let c = #{ tool: 1 }; c.tool }");
        check("fn handler(c) { helper(c.message) } fn helper(m) { m.tool }");
        check("fn handler(c) { handler(c) }");
        check("fn other(c) { c.tool } fn handler(c) { c.message }");
        check("fn handler(c) { c.keys() }");
    }

    #[test]
    fn contexts_of_other_hosts_points_have_what_they_have() {
        let limits = Limits::default();
        let script = "fn handler(c) { c.anything }";
        let ast = engine::compile(&engine::parser(&limits), script, &limits).expect(script);
        let point = HookPoint::Custom("acme:deploy".into());
        assert!(check(&ast, &point, "handler", 1, &mentioned(&ast)).is_ok());
    }
}
