//! Mistakes that authors of scripts make, and all that they see then, held as one snapshot. The tables for the other languages
//! stand beside their packages: `sdk/python/tests`, `sdk/javascript/test`.

use crate::support::{Project, stderr, stdout};

/// A mistake, the script that makes it, and the command that tells.
struct Mistake(&'static str, &'static str, Command);

enum Command {
    /// `tenon check`
    Check,
    /// `tenon call` of the tool `t`, with these arguments.
    Call(&'static str),
    /// `tenon hook` at a point, with this context.
    Hook(&'static str, &'static str),
}

use Command::{Call, Check, Hook};

const MISTAKES: &[Mistake] = &[
    // The language.
    Mistake(
        "a variable is misspelled",
        "tool(#{ name: \"t\", description: \"d\" },\n  |arguments| argument.name);",
        Check,
    ),
    Mistake(
        "a function uses a variable at the top",
        "let limit = 5;\nfn MessageSending(context) {\n  if context.message.len() > limit { veto(\"long\") }\n}",
        Check,
    ),
    Mistake(
        "a brace is missing",
        "fn MessageSending(context) {\n  if context.message == \"\" { return veto(\"empty\");\n}",
        Check,
    ),
    Mistake("a semicolon is missing", "let a = 1\nlet b = 2;", Check),
    Mistake(
        "a closure is written as in JavaScript",
        "tool(#{ name: \"t\", description: \"d\" }, (arguments) => 1);",
        Check,
    ),
    Mistake("a text is in single quotes", "let a = 'word';", Check),
    Mistake("a comparison is written as in JavaScript", "let a = 1;\nif a === 1 { }", Check),
    Mistake("a condition assigns", "let a = 1;\nif a = 1 { }", Check),
    Mistake("`and` is a word", "let a = true and false;", Check),
    Mistake("`null` is no value", "let a = null;", Check),
    Mistake("a map is written as in JSON", "let a = { \"b\": 1 };", Check),
    Mistake("a constant is assigned to", "const A = 1;\nA = 2;", Check),
    Mistake("a reserved word is a name", "let default = 1;", Check),
    Mistake("another script is imported", "import \"other\" as other;", Check),
    Mistake("a text is evaluated", "eval(\"1 + 1\");", Check),
    Mistake(
        "a function is misspelled",
        "tool(#{ name: \"t\", description: \"d\" }, |a| a.name.to_uper());",
        Call("{\"name\": \"x\"}"),
    ),
    Mistake(
        "a function gets another type",
        "tool(#{ name: \"t\", description: \"d\" }, |a| parse_int(a.n));",
        Call("{\"n\": 5}"),
    ),
    Mistake(
        "a text is no number",
        "tool(#{ name: \"t\", description: \"d\" }, |a| parse_int(a.n));",
        Call("{\"n\": \"five\"}"),
    ),
    Mistake(
        "an argument that is not there is compared",
        "tool(#{ name: \"t\", description: \"d\" },\n  |a| if a.size > 5 { 1 } else { 2 });",
        Call("{}"),
    ),
    Mistake(
        "an index is out of bounds",
        "tool(#{ name: \"t\", description: \"d\" }, |a| a.list[3]);",
        Call("{\"list\": [1]}"),
    ),
    Mistake(
        "a number is divided by zero",
        "tool(#{ name: \"t\", description: \"d\" }, |a| 1 / a.n);",
        Call("{\"n\": 0}"),
    ),
    Mistake(
        "a loop never ends",
        "tool(#{ name: \"t\", description: \"d\" }, |a| loop { });",
        Call("{}"),
    ),
    Mistake(
        "a function calls itself for ever",
        "fn f(n) { f(n + 1) }\ntool(#{ name: \"t\", description: \"d\" }, |a| f(1));",
        Call("{}"),
    ),
    Mistake(
        "a script sleeps",
        "tool(#{ name: \"t\", description: \"d\" }, |a| sleep(1));",
        Call("{}"),
    ),
    // Definitions.
    Mistake("a tool has no name", "tool(#{ description: \"d\" }, |a| 1);", Check),
    Mistake("a tool has no description", "tool(#{ name: \"t\" }, |a| 1);", Check),
    Mistake(
        "a member of a definition is misspelled",
        "tool(#{ name: \"t\", descripton: \"d\" }, |a| 1);",
        Check,
    ),
    Mistake(
        "a schema is a text",
        "tool(#{ name: \"t\", description: \"d\", schema: \"object\" }, |a| 1);",
        Check,
    ),
    Mistake(
        "`required` stands in a property",
        "tool(#{\n  name: \"t\", description: \"d\",\n  schema: #{ type: \"object\", properties: #{ n: #{ type: \"string\", required: true } } },\n}, |a| 1);",
        Check,
    ),
    Mistake(
        "a type of JSON Schema is none",
        "tool(#{ name: \"t\", description: \"d\", schema: #{ type: \"object\", properties: #{ n: #{ type: \"int\" } } } }, |a| 1);",
        Check,
    ),
    Mistake(
        "a tool's function takes two parameters",
        "tool(#{ name: \"t\", description: \"d\" }, |arguments, context| 1);",
        Check,
    ),
    Mistake(
        "two tools have one name",
        "tool(#{ name: \"t\", description: \"d\" }, |a| 1);\ntool(#{ name: \"t\", description: \"d\" }, |a| 2);",
        Check,
    ),
    Mistake(
        "a name has a space",
        "tool(#{ name: \"my tool\", description: \"d\" }, |a| 1);",
        Check,
    ),
    Mistake(
        "a tool is defined in a call",
        "tool(#{ name: \"t\", description: \"d\" },\n  |a| tool(#{ name: \"u\", description: \"d\" }, |b| 1));",
        Call("{}"),
    ),
    Mistake(
        "a tool returns a function",
        "tool(#{ name: \"t\", description: \"d\" }, |a| #{ f: |b| 1 });",
        Call("{}"),
    ),
    Mistake(
        "a tool returns what is no number",
        "tool(#{ name: \"t\", description: \"d\" }, |a| #{ n: 0.0 / 0.0 });",
        Call("{}"),
    ),
    Mistake(
        "a tool vetoes",
        "tool(#{ name: \"t\", description: \"d\" }, |a| veto(\"x\"));",
        Call("{}"),
    ),
    Mistake("a resource has no uri", "resource(#{ name: \"r\" }, |variables| \"text\");", Check),
    Mistake(
        "a resource's template is none",
        "resource(#{ uri: \"notes://{name\", name: \"r\" }, |variables| \"text\");",
        Check,
    ),
    Mistake(
        "a prompt's argument has an unknown member",
        "prompt(#{ name: \"p\", arguments: [#{ name: \"a\", type: \"string\" }] }, |arguments| \"text\");",
        Check,
    ),
    // Hooks.
    Mistake("a hook's function is misspelled", "fn BeforeToolCal(context) { }", Check),
    Mistake("a hook point is misspelled", "hook(\"before-tol-call\", |context| ());", Check),
    Mistake("a hook takes two parameters", "fn BeforeToolCall(context, tool) { }", Check),
    Mistake(
        "a member of a context is misspelled",
        "fn BeforeToolCall(context) {\n  if context.tol == \"rm\" { return veto(\"no\"); }\n}",
        Check,
    ),
    Mistake(
        "a hook compares what is not there",
        "fn BeforeToolCall(context) {\n  if context.arguments.size > 10 { return veto(\"large\"); }\n}",
        Check,
    ),
    Mistake(
        "a hook's priority is a text",
        "hook(\"before-plan\", #{ priority: \"high\" }, |context| ());",
        Check,
    ),
    Mistake(
        "a hook has a mode that there is not",
        "hook(\"before-plan\", #{ mode: \"block\" }, |context| ());",
        Check,
    ),
    Mistake(
        "a hook vetoes what has happened",
        "fn AfterPlan(context) { veto(\"too late\") }",
        Hook("after-plan", "{\"goal\": \"g\", \"plan\": []}"),
    ),
    Mistake(
        "a hook changes what nobody reads",
        "fn MessageSending(context) { context.message = 5; }",
        Hook("message-sending", "{\"message\": \"hi\"}"),
    ),
    // The host.
    Mistake(
        "a script asks the host while it is loaded",
        "let page = http_get(\"https://example.com\");",
        Check,
    ),
    Mistake(
        "another plugin's tool is called without a grant",
        "tool(#{ name: \"t\", description: \"d\" }, |a| call_tool(\"files__read\", #{ path: \"x\" }));",
        Call("{}"),
    ),
    Mistake(
        "a page is read without a grant",
        "tool(#{ name: \"t\", description: \"d\" }, |a| http_get(\"https://example.com\"));",
        Call("{}"),
    ),
    Mistake(
        "state is kept without a grant",
        "tool(#{ name: \"t\", description: \"d\" }, |a| state.set(\"n\", 1));",
        Call("{}"),
    ),
    Mistake(
        "a model is asked without a grant",
        "tool(#{ name: \"t\", description: \"d\" }, |a| complete(\"default\", \"hi\"));",
        Call("{}"),
    ),
    Mistake(
        "the user is asked without a grant",
        "tool(#{ name: \"t\", description: \"d\" }, |a| ask(\"sure?\", #{ type: \"object\", properties: #{ yes: #{ type: \"boolean\" } } }));",
        Call("{}"),
    ),
];

#[test]
fn what_authors_of_scripts_see_names_the_line_and_what_to_do() {
    let manifest = "[plugin]\nid = \"s\"\nversion = \"0.1.0\"\ndescription = \"d\"\n\
                    [runtime]\nkind = \"rhai\"\npath = \"s.rhai\"\n[limits]\ncpu = \"200ms\"";
    let mut table = String::new();
    for Mistake(mistake, script, command) in MISTAKES {
        let project = Project::new("plugins.folders = [\"own\"]");
        project.write("own/s/plugin.toml", manifest);
        project.write("own/s/s.rhai", script);
        let output = match command {
            Check => project.tenon(&["check", "own/s"]),
            Call(arguments) => project.tenon(&["call", "s__t", arguments]),
            Hook(point, context) => project.tenon(&["hook", point, "--context", context]),
        };
        let said = format!("{}{}", stdout(&output), stderr(&output));
        let is_told = !output.status.success()
            || ["warning: ", " WARN "].iter().any(|mark| said.contains(mark));
        assert!(is_told, "{mistake}: {said}");
        let said = said.replace(&project.path("").display().to_string(), "PROJECT/");
        table += &format!("# {mistake}\n\n{script}\n\n{}\n\n", said.trim_end());
    }
    insta::assert_snapshot!(table);
}
