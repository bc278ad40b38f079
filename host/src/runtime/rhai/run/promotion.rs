//! The script of a run as the script of a plugin: its statements become a tool, and the tools that it calls as functions of
//! their plugins are called by their names.
//!
//! The text is changed by its tokens, so that what its author wrote stays as it is: comments, names and line breaks.

use rhai::{Engine, ParseErrorType, Position, Token};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tenon_config::limits::Limits;
use tenon_types::hook::POINTS;

use super::functions::{ToolFunctions, collision, unknown_function};
use crate::runtime::rhai::check_script;
use crate::runtime::rhai::engine;
use crate::runtime::rhai::error::{ScriptLoadError, ScriptSource};

/// The name of the tool.
const TOOL: &str = "run";

/// The most lines, and characters of one, that the engine has places for.
const MAX_LINES: usize = 65_000;
const MAX_LINE_LENGTH: usize = 65_000;

/// Functions of runs, which plugins call in one way only.
const OF_RUNS: [&str; 3] = ["call_tool", "parallel", "step"];

/// What a plugin cannot look up, by the variables that have it.
const LOOK_UPS: [&str; 3] = ["tools", "resources", "prompts"];

/// Functions that mean something else in a plugin.
const MEANT_OTHERWISE: [&str; 10] = [
    "tool", "strategy", "hook", "resource", "prompt", "config", "ask", "ask_url", "http_get",
    "complete",
];

/// What stands for `parallel`, where it is used.
const PARALLEL: &str = "
// In a plugin, these run one after another. What they change of variables around them stays changed.
fn parallel(functions) {
    let results = functions;
    for (function, index) in functions {
        try {
            results[index] = function.call();
        } catch {
            // All of them run; the first error is that of all.
            for (later, number) in functions {
                if number > index {
                    try { later.call(); } catch {}
                }
            }
            throw;
        }
    }
    results
}
";

/// What stands for `step`, where it is used.
const STEP: &str = "
// A plugin has no journal, so each call computes it.
fn step(name, function) {
    function.call()
}
";

/// A script of a run, as that of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromotedScript {
    /// The script.
    pub text: String,
    /// The tools that it calls, by the names that callers use.
    pub tools: Vec<String>,
}

/// Writes the script of a run as that of a plugin with one tool, whose arguments are like `data`.
///
/// # Errors
///
/// What a plugin cannot do, with its place.
pub(crate) fn promote(
    script: &str,
    data: &Value,
    description: &str,
    functions: &ToolFunctions,
) -> Result<PromotedScript, ScriptLoadError> {
    let source = ScriptSource::new("script".into(), script.to_string());
    let is_long = |line: &str| line.chars().count() > MAX_LINE_LENGTH;
    if script.lines().count() > MAX_LINES || script.lines().any(is_long) {
        let problem = format!(
            "a script of more than {MAX_LINES} lines, or with one of more than {MAX_LINE_LENGTH} characters"
        );
        return Err(source.refusal(&problem));
    }
    let tokens = Tokens::of(&source)?;
    let mut changes =
        SourceEdits { functions, tokens: &tokens, edits: Vec::new(), tools: BTreeSet::new() };
    let problem =
        |(position, problem): (Position, String)| ScriptLoadError(source.at(position, &problem));
    changes.find().map_err(problem)?;
    changes.check_functions(&source)?;
    let (body, own_functions) = changes.apply(&source.lines);
    let mut text = written_tool(description, data, &body);
    for function in own_functions {
        let _ = write!(text, "\n{function}\n");
    }
    for (name, shim) in [("parallel", PARALLEL), ("step", STEP)] {
        if tokens.has(name) {
            text.push_str(shim);
        }
    }
    check_script("plugin".as_ref(), text.clone().into(), &Limits::default())?;
    Ok(PromotedScript { text, tools: changes.tools.into_iter().collect() })
}

/// The tokens of a script, with the bytes where they begin.
struct Tokens(Vec<(Token, Position, usize)>);

impl Tokens {
    fn of(source: &ScriptSource) -> Result<Self, ScriptLoadError> {
        let found = Arc::new(Mutex::new(Vec::new()));
        let mut engine: Engine = engine::parser(&Limits::default());
        engine.set_strict_variables(false);
        let add = found.clone();
        #[expect(deprecated, reason = "the callback is marked as one that may change")]
        engine.on_parse_token(move |token, position, _| {
            let mut found = add.lock().unwrap_or_else(PoisonError::into_inner);
            found.push((token.clone(), position));
            token
        });
        engine.compile(&source.lines).map_err(|error| source.parse_error(&error))?;
        let found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
        let lines: Vec<usize> = line_starts(&source.lines);
        let at = |position: Position| {
            let start = lines[position.line()? - 1];
            let column = position.position()? - 1;
            let line = &source.lines[start..];
            Some(start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at))
        };
        let end = source.lines.len();
        let tokens = found.into_iter();
        Ok(Self(
            tokens
                .map(|(token, position)| (token, position, at(position).unwrap_or(end)))
                .collect(),
        ))
    }

    fn get(&self, index: usize) -> Option<&Token> {
        self.0.get(index).map(|(token, ..)| token)
    }

    fn position(&self, index: usize) -> Position {
        self.0.get(index).map_or(Position::NONE, |(_, position, _)| *position)
    }

    fn offset(&self, index: usize) -> usize {
        self.0.get(index).map_or(0, |(_, _, offset)| *offset)
    }

    /// Whether a token is a name that stands for itself, and not for a member of something or a key of a map.
    fn is_free(&self, index: usize) -> bool {
        let before = index.checked_sub(1).and_then(|before| self.get(before));
        let is_member = matches!(before, Some(Token::Period | Token::Elvis));
        !is_member && !matches!(self.get(index + 1), Some(Token::Colon))
    }

    /// Whether a name is that of a call.
    fn is_call(&self, index: usize) -> bool {
        matches!(self.get(index + 1), Some(Token::LeftParen | Token::Unit))
    }

    /// Whether something of this name is called.
    fn has(&self, name: &str) -> bool {
        self.0.iter().enumerate().any(|(index, (token, ..))| {
            matches!(token, Token::Identifier(found) if found.as_str() == name)
                && self.is_call(index)
        })
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// What changes in the text.
struct SourceEdits<'a> {
    functions: &'a ToolFunctions,
    tokens: &'a Tokens,
    /// Places, and what stands there; functions of the script are taken out in [`SourceEdits::apply`].
    edits: Vec<(Range<usize>, String)>,
    tools: BTreeSet<String>,
}

/// The call of a tool: where it begins, the tool, and what stands there in a plugin.
type ReplacedCall = (Range<usize>, String, String);

/// What cannot be, and where.
type Refusal = (Position, String);

impl SourceEdits<'_> {
    fn find(&mut self) -> Result<(), Refusal> {
        let own = self.own_functions();
        let mut found = Vec::new();
        for index in 0..self.tokens.0.len() {
            if let Some(problem) = self.problem(index, &own) {
                return Err((self.tokens.position(index), problem));
            }
            found.extend(self.call(index)?);
        }
        for (range, tool, text) in found {
            self.tools.insert(tool);
            self.edits.push((range, text));
        }
        Ok(())
    }

    /// Why what begins at a token would be something else in a plugin, if it would.
    fn problem(&self, index: usize, own: &[Range<usize>]) -> Option<String> {
        let before = |by: usize| index.checked_sub(by).and_then(|index| self.tokens.get(index));
        let one_way = |name: &str| Some(format!("a plugin calls `{name}` as `{name}(…)`"));
        let name = match self.tokens.get(index)? {
            Token::Identifier(name) => name.as_str(),
            // `Fn("call_tool")`
            Token::StringConstant(name) if OF_RUNS.contains(&name.as_str()) => {
                let is_made = before(1) == Some(&Token::LeftParen)
                    && before(2).is_some_and(|token| token.to_string() == "Fn");
                return is_made.then(|| one_way(name)).flatten();
            }
            _ => return None,
        };
        let is_call = self.tokens.is_call(index);
        let is_method = matches!(before(1), Some(Token::Period | Token::Elvis));
        let is_function = before(1) == Some(&Token::Fn);
        let is_hook = POINTS.iter().any(|point| point.function == name);
        let is_in_function = || own.iter().any(|range| range.contains(&self.tokens.offset(index)));
        if is_function && (is_hook || MEANT_OTHERWISE.contains(&name)) {
            return Some(format!("the function `{name}` means something else in a plugin"));
        }
        if is_method && is_call && OF_RUNS.contains(&name) {
            return one_way(name);
        }
        if is_call && name == "exit" {
            return Some("a plugin does not `exit`: use `return`".into());
        }
        let is_free = self.tokens.is_free(index);
        match name {
            "global" if self.tokens.get(index + 1) == Some(&Token::DoubleColon) => {
                Some("a plugin has no constants of its statements under `global`".into())
            }
            name if is_free && LOOK_UPS.contains(&name) => {
                Some(format!("a plugin has no `{name}`: it calls what its author knows"))
            }
            "data" if is_free && is_in_function() => {
                Some("a function of a plugin does not see `data`: give it what it needs".into())
            }
            _ => None,
        }
    }

    /// The call of a tool that begins at a token, if one does: where it is, the tool, and what stands there in a plugin.
    fn call(&self, index: usize) -> Result<Option<ReplacedCall>, Refusal> {
        let Some(Token::Identifier(name)) = self.tokens.get(index) else { return Ok(None) };
        match name.as_str() {
            "call_tool" => self.by_name(index).map(Some),
            name if self.tokens.is_free(index) && self.functions.of(name).is_some() => {
                self.by_function(index, name).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// `files.read(` becomes `call_tool("files__read", `.
    fn by_function(&self, index: usize, plugin: &str) -> Result<ReplacedCall, Refusal> {
        let refusal = |index, problem| Err((self.tokens.position(index), problem));
        let (dot, name, opens) = (index + 1, index + 2, index + 3);
        let call = (self.tokens.get(dot), self.tokens.get(name), self.tokens.get(opens));
        let (Some(Token::Period), Some(Token::Identifier(function)), Some(opening)) = call else {
            return refusal(index, nothing_else(plugin));
        };
        // `()` is one token.
        let (length, rest) = match (opening, self.tokens.get(opens + 1)) {
            (Token::Unit, _) => (2, ")"),
            (Token::LeftParen, Some(Token::RightParen)) => (1, ""),
            (Token::LeftParen, _) => (1, ", "),
            _ => return refusal(index, nothing_else(plugin)),
        };
        let function = function.as_str();
        let tools = self.functions.of(plugin).and_then(|tools| tools.get(function));
        let tool = match tools.map(Vec::as_slice) {
            Some([only]) => only.tool.to_string(),
            Some(several) => return refusal(name, collision(plugin, function, several)),
            None => return refusal(name, unknown_function(self.functions, plugin, function)),
        };
        let range = self.tokens.offset(index)..self.tokens.offset(opens) + length;
        let text = format!("call_tool({}{rest}", text_literal(&tool));
        Ok((range, tool, text))
    }

    /// `call_tool("files.read"` becomes `call_tool("files__read"`.
    fn by_name(&self, index: usize) -> Result<ReplacedCall, Refusal> {
        let (name, after) = (index + 2, index + 3);
        let refusal = |index, problem| Err((self.tokens.position(index), problem));
        let given =
            match (self.tokens.is_free(index), self.tokens.get(index + 1), self.tokens.get(name)) {
                (true, Some(Token::LeftParen), Some(Token::StringConstant(name))) => name.as_str(),
                _ => {
                    let problem =
                        "a plugin says which tools it calls: give `call_tool` the name itself";
                    return refusal(index, problem.to_string());
                }
            };
        if !matches!(self.tokens.get(after), Some(Token::Comma | Token::RightParen)) {
            return refusal(
                name,
                "a plugin says which tools it calls: this name is computed".into(),
            );
        }
        let Some(tool) = self.functions.tool_of(given) else {
            return refusal(name, format!("there is no tool {given:?}"));
        };
        let range = self.tokens.offset(name)..self.tokens.offset(after);
        Ok((range, tool.to_string(), text_literal(tool)))
    }

    /// Where the functions of the script are.
    fn own_functions(&self) -> Vec<Range<usize>> {
        let (mut found, mut depth, mut begins) = (Vec::new(), 0_usize, None);
        for (index, (token, _, offset)) in self.tokens.0.iter().enumerate() {
            match token {
                Token::Private if depth == 0 => begins = Some(*offset),
                Token::Fn if depth == 0 => begins = begins.or(Some(*offset)),
                Token::LeftBrace | Token::MapStart => depth += 1,
                Token::RightBrace => {
                    depth = depth.saturating_sub(1);
                    if depth == 0
                        && let Some(begin) = begins.take()
                    {
                        found.push(begin..self.tokens.offset(index) + 1);
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Checks that the functions of the script see all that they name without its statements: in a plugin, what stands there is
    /// the tool's own.
    fn check_functions(&self, source: &ScriptSource) -> Result<(), ScriptLoadError> {
        let (script, functions) = (&source.lines, self.functions);
        // All has its place in the script.
        let mut alone = String::new();
        let mut at = 0;
        for Range { start, end } in self.own_functions() {
            let is_line_end = |c: char| c == '\n';
            alone.extend(script[at..start].chars().map(|c| if is_line_end(c) { c } else { ' ' }));
            alone.push_str(&script[start..end]);
            at = end;
        }
        let (engine, variables) = (functions.engine(), functions.variables());
        let compiled = engine::compile_knowing(engine, &alone, &Limits::default(), variables);
        let Err(error) = compiled else { return Ok(()) };
        match error.err_type() {
            ParseErrorType::VariableUndefined(name) => {
                let problem = format!(
                    "a function of a plugin does not see `{name}` of the statements: give it what it needs"
                );
                Err(ScriptLoadError(source.at(error.position(), &problem)))
            }
            // The whole is compiled as well.
            _ => Ok(()),
        }
    }

    /// The statements of the script, and its functions.
    fn apply(&self, script: &str) -> (String, Vec<String>) {
        let changed = |range: Range<usize>, without: &[Range<usize>]| {
            let mut text = String::new();
            let mut at = range.start;
            let none = String::new();
            let mut cuts: Vec<(&Range<usize>, &String)> =
                without.iter().map(|cut| (cut, &none)).collect();
            let is_cut = |of: &Range<usize>| without.iter().any(|cut| cut.contains(&of.start));
            let edits = self.edits.iter().map(|(of, text)| (of, text));
            cuts.extend(edits.filter(|(of, _)| range.contains(&of.start) && !is_cut(of)));
            cuts.sort_by_key(|(of, _)| of.start);
            for (of, by) in cuts {
                text.push_str(&script[at..of.start]);
                text.push_str(by);
                at = of.end;
            }
            text.push_str(&script[at..range.end]);
            text
        };
        let own = self.own_functions();
        let functions = own.iter().map(|range| changed(range.clone(), &[])).collect();
        (changed(0..script.len(), &own).trim().to_string(), functions)
    }
}

fn nothing_else(plugin: &str) -> String {
    format!("in a plugin, `{plugin}` is nothing but the calls of its tools")
}

/// The definition of the tool, in the language of scripts.
fn written_tool(description: &str, data: &Value, body: &str) -> String {
    let (schema, parameter, before) = match data {
        Value::Object(_) => (schema_of(data), "data", ""),
        // The run was given nothing. The arguments of a tool are a map even where there are none.
        Value::Null => (schema_of(&json!({})), "arguments", "let data = ();\n"),
        other => {
            (schema_of(&json!({ "data": other })), "arguments", "let data = arguments.data;\n")
        }
    };
    let (name, description) = (text_literal(TOOL), text_literal(description));
    let schema = literal(&schema, 1);
    format!(
        "tool(#{{\n    name: {name},\n    description: {description},\n    schema: {schema},\n}}, |{parameter}| {{\n{before}{body}\n}});\n"
    )
}

/// The schema of values that are like this one.
fn schema_of(value: &Value) -> Value {
    match value {
        // Whatever else stands here at other times.
        Value::Null => json!({}),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Number(number) if number.is_f64() => json!({ "type": "number" }),
        Value::Number(_) => json!({ "type": "integer" }),
        Value::String(_) => json!({ "type": "string" }),
        Value::Array(items) => {
            let mut schemas: Vec<Value> = items.iter().map(schema_of).collect();
            schemas.dedup();
            match &mut schemas[..] {
                [only] => json!({ "type": "array", "items": only.take() }),
                _ => json!({ "type": "array" }),
            }
        }
        Value::Object(members) => {
            let properties: Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), schema_of(value))).collect();
            let required: Vec<&String> = members.keys().collect();
            json!({
                "type": "object", "properties": properties, "required": required,
                "additionalProperties": false,
            })
        }
    }
}

/// A value in the language of scripts.
fn literal(value: &Value, depth: usize) -> String {
    let (inner, outer) = ("    ".repeat(depth + 1), "    ".repeat(depth));
    match value {
        Value::Null => "()".into(),
        Value::String(text) => text_literal(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| literal(item, depth)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if members.is_empty() => "#{}".into(),
        Value::Object(members) => {
            let mut text = "#{\n".to_string();
            for (name, value) in members {
                let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase())
                    && name.chars().all(|c| c.is_ascii_alphanumeric())
                    && rhai::is_valid_identifier(name)
                    && !super::functions::is_reserved(name);
                let name = if is_plain { name.clone() } else { text_literal(name) };
                let _ = writeln!(text, "{inner}{name}: {},", literal(value, depth + 1));
            }
            format!("{text}{outer}}}")
        }
        other => other.to_string(),
    }
}

/// A text in the language of scripts.
fn text_literal(text: &str) -> String {
    let mut literal = "\"".to_string();
    for c in text.chars() {
        match c {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(literal, "\\u{:04x}", c as u32);
            }
            c => literal.push(c),
        }
    }
    literal + "\""
}

#[cfg(test)]
mod tests {
    use super::super::tests::functions;
    use super::*;
    use crate::runtime::rhai::comparison;

    fn promoted(script: &str, data: Value) -> Result<PromotedScript, ScriptLoadError> {
        promote(script, &data, "Does \"it\"\nwell", &functions())
    }

    /// The tools that the plugin of a script calls, and what its text has and the script has not.
    fn check(script: &str, tools: &[&str], parts: &[&str]) {
        let promoted = promoted(script, Value::Null).expect(script);
        assert_eq!(promoted.tools, tools, "{script}");
        for part in parts {
            assert!(promoted.text.contains(part), "{script}\n{}", promoted.text);
        }
    }

    #[test]
    fn calls_of_tools_are_by_their_names() {
        let calls = "files.list().names.map(|name| files.read(#{ path: name }))";
        let by_name = r#"call_tool("files__list").names.map(|name| call_tool("files__read", #{ path: name }))"#;
        check(calls, &["files__list", "files__read"], &[by_name]);
        check(
            "my_mail.send( /* all */ )",
            &["my-mail__send"],
            &[r#"call_tool("my-mail__send" /* all */ )"#],
        );
        check("odd.export_()", &["odd__export"], &[r#"call_tool("odd__export")"#]);
        check("tools_.mine()", &["tools__mine"], &[r#"call_tool("tools__mine")"#]);
        check("call_tool(\"odd__a-b\")", &["odd__a-b"], &[r#"call_tool("odd__a-b")"#]);
        let text = "call_tool( \"files.read\" , #{ path: `a ${files.list().names[0]}` })";
        let changed =
            r#"call_tool( "files__read", #{ path: `a ${call_tool("files__list").names[0]}` })"#;
        check(text, &["files__list", "files__read"], &[changed]);
        // What is named like a plugin and is none.
        let other = "let a = #{ files: 1, tools: 2, data: 3 }; a.files + a.tools + a.data";
        check(other, &[], &[other]);
        // Lines, comments and characters stay as they are.
        let odd =
            "let e = '✓'; // files.read\n\n`files.read(\n${e}` + files.read(#{ path: \"ü\" })";
        let kept = "let e = '✓'; // files.read\n\n`files.read(\n${e}` + call_tool(\"files__read\", #{ path: \"ü\" })";
        check(odd, &["files__read"], &[kept]);
    }

    #[test]
    fn functions_stay_functions() {
        let script = "/// All.\nfn all() { files.list() }\nlet found = all(); private fn x(a) { if a { #{} } else { a } }\nx(found)";
        let statements =
            "|arguments| {\nlet data = ();\n/// All.\n\nlet found = all(); \nx(found)\n});";
        let parts = [
            statements,
            "\nfn all() { call_tool(\"files__list\") }\n",
            "\nprivate fn x(a) { if a { #{} } else { a } }\n",
        ];
        check(script, &["files__list"], &parts);
        // A function may have a variable of its own of that name.
        let constant = "const N = 3; fn f(N) { let M = N; M + 1 } f(N)";
        check(constant, &[], &["const N = 3;  f(N)", "\nfn f(N) { let M = N; M + 1 }\n"]);
        check(
            "parallel([|| 1, || step(\"a\", || 2)])",
            &[],
            &["fn parallel(functions)", "fn step(name, function)"],
        );
    }

    #[test]
    fn arguments_are_like_the_data() {
        let check = |data: Value, expected: &str| {
            let text = promoted("data", data).unwrap().text;
            let schema = text.split("    schema: ").nth(1).unwrap();
            let schema: String =
                schema.split(",\n}, |").next().unwrap().split_whitespace().collect();
            let expected: String = expected.split_whitespace().collect();
            assert_eq!(schema, expected, "{text}");
        };
        let none =
            r#"#{additionalProperties: false, properties: #{}, required: [], type: "object",}"#;
        check(Value::Null, none);
        check(json!({}), none);
        check(
            json!({ "days": 3, "of": ["a", "b"], "x y": { "in": 1.5, "any": null }, "mixed": [1, "a"], "yes": true }),
            r#"#{ additionalProperties: false, properties: #{
                days: #{ type: "integer", }, mixed: #{ type: "array", }, of: #{ items: #{ type: "string", }, type: "array", },
                "x y": #{ additionalProperties: false, properties: #{ any: #{}, "in": #{ type: "number", }, },
                    required: ["any", "in"], type: "object", },
                yes: #{ type: "boolean", }, }, required: ["days", "mixed", "of", "x y", "yes"], type: "object",}"#,
        );
        // A tool takes an object.
        let text = promoted("data.len()", json!([1, 2])).unwrap().text;
        assert!(
            text.contains("|arguments| {\nlet data = arguments.data;\ndata.len()\n}"),
            "{text}"
        );
        assert!(text.contains(r#"description: "Does \"it\"\nwell","#), "{text}");
        // What was not there is not there either.
        let text = promoted("data == ()", Value::Null).unwrap().text;
        assert!(text.contains("|arguments| {\nlet data = ();\ndata == ()\n}"), "{text}");
        let text = promoted("data == ()", json!({})).unwrap().text;
        assert!(text.contains("|data| {\ndata == ()\n}"), "{text}");
    }

    #[test]
    fn parallel_runs_all_functions_and_throws_the_first_error() {
        let mut engine = engine::parser(&Limits::default());
        comparison::add(&mut engine);
        let check = |script: &str, expected: &str| {
            let found = engine.eval::<String>(&format!("{PARALLEL}{script}")).expect(script);
            assert_eq!(found, expected, "{script}");
        };
        check("`${parallel([|| 1, || 2])}`", "[1, 2]");
        check("`${parallel([])}`", "[]");
        let script = "
            let ran = 0;
            let error = ();
            let a = || { ran += 1; };
            let b = || { throw \"b\"; };
            let c = || { ran += 1; throw \"c\"; };
            try { parallel([a, b, c, a]); } catch (thrown) { error = thrown; }
            `${error} ${ran}`
        ";
        check(script, "b 3");
        // It is the error itself.
        let error = engine.eval::<String>(&format!("{PARALLEL}parallel([|| [][1], || 2])"));
        let error = error.expect_err("the array is empty").to_string();
        assert!(error.contains("Array index 1 out of bounds"), "{error}");
    }

    #[test]
    fn what_a_plugin_cannot_do_is_refused_with_its_place() {
        let check = |script: &str, expected: &str| {
            let problem = promoted(script, Value::Null).expect_err(script).to_string();
            assert!(problem.starts_with(expected), "{script}: {problem}");
        };
        check("1;\n tools.search(\"x\")", "script:2:2: a plugin has no `tools`");
        check("resources.list(\"files\")", "script:1:1: a plugin has no `resources`");
        check(
            "let name = \"files__read\"; call_tool(name)",
            "script:1:27: a plugin says which tools it calls",
        );
        check(
            "call_tool(\"files__\" + \"read\")",
            "script:1:11: a plugin says which tools it calls",
        );
        check("call_tool(\"files__write\")", "script:1:11: there is no tool \"files__write\"");
        check("let f = files; f.read(#{})", "script:1:9: in a plugin, `files` is nothing but");
        check("files.raed(#{})", "script:1:7: `files` has no tool `raed`; did you mean `read`?");
        check("fn f() { data.n } f()", "script:1:10: a function of a plugin does not see `data`");
        check(
            "const N = 3;\nconst M = 4; fn f(a, N) { a + N } fn g(x) { x + M }\nf(1, N) + g(2)",
            "script:2:49: a function of a plugin does not see `M` of the statements",
        );
        check(
            "fn f(list) { \"ü\"; list.map(|a| a + N) } const N = 3; f([1])",
            "script:1:36: a function of a plugin does not see `N` of the statements",
        );
        check(
            "const N = 3; fn f() { global::N } f()",
            "script:1:23: a plugin has no constants of its statements under `global`",
        );
        check(
            "fn MessageSending(c) { } 1",
            "script:1:4: the function `MessageSending` means something else",
        );
        check(
            "fn config(key) { key } config(1)",
            "script:1:4: the function `config` means something else",
        );
        check(
            "Fn(\"call_tool\").call(\"files__list\")",
            "script:1:4: a plugin calls `call_tool` as",
        );
        check("let f = Fn(\"parallel\"); 1", "script:1:12: a plugin calls `parallel` as");
        check("[|| 1].parallel()", "script:1:8: a plugin calls `parallel` as `parallel(…)`");
        check("if true { exit(7); } 8", "script:1:11: a plugin does not `exit`");
        let long = format!("/* {} */ files.list()", "a".repeat(70_000));
        check(&long, "script: a script of more than 65000 lines, or with one of more than 65000");
        check(&"\n".repeat(70_000), "script: a script of more than 65000 lines");
        check("nothing + 1", "plugin:");
        check("1 +", "script:1:");
    }
}
