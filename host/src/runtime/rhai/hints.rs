//! What to do about the problems of a script that the engine tells of. The engine's own words name the cause.

use tenon_types::name::nearest;

/// What a problem's text has in it, what its line has in it, and what to do.
type Row = (&'static str, &'static str, &'static str);

/// The first row that fits holds.
const ROWS: &[Row] = &[
    ("Undefined variable", "=>", "a closure is written `|x| …`"),
    ("'null' is a reserved", "", "a value that is not there is `()`"),
    ("'nil' is a reserved", "", "a value that is not there is `()`"),
    ("reserved keyword 'eval'", "", "a script runs no text as code: write a function"),
    ("is a reserved keyword", "", "take another name"),
    ("Expecting ';'", "{ \"", "a map is written `#{ key: value }`"),
    ("Expecting ';'", " and ", "write `&&`"),
    ("Expecting ';'", " or ", "write `||`"),
    ("Expecting ';'", "", "statements end in `;`, also that of the line before"),
    ("Expecting '}'", "", "each `{` before it needs its `}`"),
    (
        "Expecting ')'",
        "",
        "each `(` before it needs its `)`, and values in it are separated by `,`",
    ),
    ("Expecting ','", "", "values are separated by `,`"),
    ("Invalid character: '", "", "texts are in double quotes"),
    ("Cannot assign to constant", "", "declare it with `let`"),
    ("Too many modules", "", "a script imports no other: put their functions into one file"),
    ("cannot compare", "", "test `\"name\" in map` or `value != ()` first"),
    ("Array index", "", "test its `len()` first"),
    (
        "for type '()'",
        "data.",
        "`data` is what the run is given: `--data JSON`, or the member `data` of an MCP client's call",
    ),
    ("for type '()'", "", "a value that is not there is `()`: test `value != ()` first"),
    ("Division by zero", "", "test that it is not 0 first"),
    (
        "Error parsing",
        "",
        "catch it with `try { … } catch { … }`, and say what was wrong with `throw`",
    ),
    ("cannot sleep", "", "return, and let the caller ask again"),
    (
        "Function not found: anon$",
        "",
        "a function made with `|…| …` is called with more or fewer values here than it takes",
    ),
    (
        "Function not found",
        "",
        "check its spelling and the types of what it gets: docs/reference/scripts.md and rhai.rs/book list functions",
    ),
    ("has no description", "", "add `description: \"…\"`, which tells models what it is for"),
    ("the tool has no name", "", "add `name: \"…\"`"),
    ("has no uri", "", "add `uri: \"…\"`"),
    ("is defined twice", "", "give one of them another name"),
    ("not while the script is loaded", "", "ask in a function that a call runs"),
    ("not in calls", "", "move the definition to the top"),
    ("cannot leave a script", "", "return texts, numbers, truth values, arrays or maps"),
    ("not a number that JSON has", "", "return another value for it"),
    ("are for hooks", "", "a tool says why it fails with `throw`"),
];

/// What to do about a problem in a line of a script.
pub(super) fn hint(problem: &str, line: &str, script: &str) -> Option<String> {
    if let Some(name) = problem.strip_prefix("Undefined variable: ") {
        let declared = script.contains(&format!("let {name} "));
        if declared {
            return Some(format!(
                "functions see no `let` of the top: make `{name}` a `const`, or pass it to them"
            ));
        }
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let others =
            script.split(|c| !is_name(c)).filter(|other| *other != name && !other.is_empty());
        if let Some(meant) = nearest(name, others).filter(|_| !line.contains("=>")) {
            return Some(format!("did you mean `{meant}`?"));
        }
    }
    let row =
        ROWS.iter().find(|(part, of_line, _)| problem.contains(part) && line.contains(of_line));
    row.map(|(.., hint)| (*hint).to_string())
}
