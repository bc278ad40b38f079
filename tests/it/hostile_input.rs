//! Text of plugins, servers, projects and users that is given to a library: whatever it is made of, it
//! ends in time and within the memory of the host, whoever wrote it is told what is wrong, and the next
//! call works.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::guests;
use crate::support::{Project, SCRIPTED_SERVER, stderr, stdout};

/// The memory that a command may take, in KiB. The stacks of threads count as a whole, of which those of
/// scripts have 256 MiB each.
const MEMORY_KIB: u32 = 1_536 << 10;

/// The processor time that a command may take, in seconds, before the kernel ends it.
const SECONDS: u32 = 60;

/// The time that it takes at most, however busy the machine is: what takes longer waits for something.
const TIME: Duration = Duration::from_secs(300);

/// The most that is said of what is wrong, in bytes.
const SAID: usize = 64 << 10;

/// What a command did.
struct CommandOutput {
    code: Option<i32>,
    said: String,
    out: String,
    took: Duration,
}

impl CommandOutput {
    /// What is wrong with how it ended, besides what it was asked.
    fn problem(&self) -> Option<String> {
        let Self { code, said, took, .. } = self;
        let beginning = &said[..said.floor_char_boundary(2_000)];
        if !matches!(code, Some(0..=9)) {
            return Some(format!("it broke off with {code:?}: {beginning}"));
        }
        if said.contains("panicked at") || said.contains("overflowed its stack") {
            return Some(format!("it panicked: {beginning}"));
        }
        (*took > TIME).then(|| format!("it took {took:?}"))
    }
}

/// Runs the command in a project, with bounded memory and processor time.
fn run(project: &Project, arguments: &[&str]) -> CommandOutput {
    let limits = format!("ulimit -c 0 && ulimit -d {MEMORY_KIB} && ulimit -t {SECONDS}");
    let began = Instant::now();
    let output = project.tenon_within(&limits, arguments);
    let (out, said) = (stdout(&output), stderr(&output));
    // It is wrapped.
    let said = format!("{out}{said}").split_whitespace().collect::<Vec<_>>().join(" ");
    CommandOutput { code: output.status.code(), said, out, took: began.elapsed() }
}

/// Something that another plugin has, in every project.
const FINE: &str = "tool(#{ name: \"t\", description: \"d\" }, |a| \"fine\");";

fn is_fine(project: &Project, row: &str) -> Vec<String> {
    let ran = run(project, &["call", "fine__t"]);
    match ran.problem() {
        None if ran.out == "fine\n" => Vec::new(),
        problem => vec![format!("{row}: the next call: {problem:?} {}", ran.said)],
    }
}

/// Runs a command and looks whether it ends as it should and says one of these.
fn ends(project: &Project, row: &str, arguments: &[&str], expected: &[&str]) -> Vec<String> {
    let ran = run(project, arguments);
    if let Some(problem) = ran.problem() {
        return vec![format!("{row}: {problem}")];
    }
    let said = &ran.said[..ran.said.floor_char_boundary(2_000)];
    if ran.said.len() > SAID {
        return vec![format!("{row}: it says {} bytes: {said}", ran.said.len())];
    }
    if !expected.iter().any(|expected| ran.said.contains(expected)) {
        return vec![format!("{row}: expected {expected:?}: {said}")];
    }
    Vec::new()
}

fn none_of(problems: Vec<String>) {
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// What is said of a plugin, by what `tenon --json doctor` says.
fn said_of(ran: &CommandOutput, plugin: &str) -> String {
    let reports: Value = serde_json::from_str(&ran.out).unwrap_or_default();
    let is_of = |report: &&Value| {
        let detail = report["detail"].as_str().unwrap_or_default();
        report["plugin"] == plugin || detail.contains(&format!("/{plugin}/"))
    };
    reports.as_array().into_iter().flatten().filter(is_of).map(Value::to_string).collect()
}

/// A number as WebAssembly writes it.
fn number(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], &number(content.len())[..], content].concat()
}

/// As many of the same.
fn many(count: usize, item: &[u8]) -> Vec<u8> {
    [number(count), item.repeat(count)].concat()
}

const COMPONENT_HEADER: &[u8] = b"\0asm\x0d\0\x01\0";
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// A component with a module of these sections in it.
fn of_module(sections: &[Vec<u8>]) -> Vec<u8> {
    let module = [MODULE, &sections.concat()].concat();
    [COMPONENT_HEADER, &section(1, &module)].concat()
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the text is WebAssembly")
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

/// A component that has a component within it made twice, which has another made twice, and so on.
fn doubled(innermost: &str) -> Vec<u8> {
    let levels = lines(60, |i| {
        let again = format!("(instance (instantiate $c{i}))");
        format!("(component $c{} {again} {again})", i + 1)
    });
    wat(&format!("(component (component $c0 {innermost}) {levels} (instance (instantiate $c60)))"))
}

/// Modules whose tables the compiler would write out, with the rest of each declaration.
fn tables(rest: impl Fn(usize) -> String) -> Vec<u8> {
    let tables = lines(100, rest);
    let module = format!("(core module (func $f) {tables})");
    wat(&format!("(component {})", module.repeat(10)))
}

/// One component that calls functions of another, each with a variant of its own.
fn variants(functions: usize, cases: usize) -> Vec<u8> {
    let variant = |function: usize| {
        let cases = lines(cases, |case| format!("(case \"c{function}-{case}\" u32)"));
        format!("(variant {cases})")
    };
    let lifted = lines(functions, |i| {
        format!(
            "(type $u{i} {}) (export $v{i} \"v{i}\" (type $u{i}))
             (func (export \"f{i}\") (param \"v\" $v{i}) (canon lift (core func $i \"f\")))",
            variant(i)
        )
    });
    let lowered = lines(functions, |i| {
        format!(
            "(type $u{i} {}) (import \"v{i}\" (type $v{i} (eq $u{i})))
             (import \"f{i}\" (func $f{i} (param \"v\" $v{i})))
             (core func $l{i} (canon lower (func $f{i})))",
            variant(i)
        )
    });
    let imports = lines(functions, |i| format!("(import \"\" \"f{i}\" (func (param i32 i32)))"));
    let given = lines(functions, |i| format!("(export \"f{i}\" (func $l{i}))"));
    let with = lines(functions, |i| {
        format!("(with \"v{i}\" (type $a \"v{i}\")) (with \"f{i}\" (func $a \"f{i}\"))")
    });
    wat(&format!(
        "(component
           (component $A
             (core module $m (func (export \"f\") (param i32 i32)))
             (core instance $i (instantiate $m))
             {lifted})
           (component $B
             {lowered}
             (core module $n {imports})
             (core instance (instantiate $n (with \"\" (instance {given})))))
           (instance $a (instantiate $A))
           (instance (instantiate $B {with})))"
    ))
}

/// Functions with as many parameters and results as there can be.
fn parameters(functions: usize) -> Vec<u8> {
    let values = many(1_000, &[0x7f]);
    let kind = [&[1, 0x60], &values[..], &values].concat();
    let exports = (0..functions).map(|i| {
        let name = format!("{i:06}");
        [&[6], name.as_bytes(), &[0], &number(i)].concat()
    });
    let exports = [number(functions), exports.collect::<Vec<_>>().concat()].concat();
    of_module(&[
        section(1, &kind),
        section(3, &many(functions, &[0])),
        section(7, &exports),
        section(10, &many(functions, &[3, 0, 0, 0x0b])),
    ])
}

/// Types of which each has the one before twice, and functions with the last.
fn shared_types(functions: usize) -> Vec<u8> {
    let types = lines(17, |i| format!("(type $t{} (tuple $t{i} $t{i}))", i + 1));
    let imports = lines(functions, |i| format!("(import \"f{i}\" (func (param \"p{i}\" $t17)))"));
    wat(&format!("(component (type $t0 (tuple u8 u8)) {types} {imports})"))
}

const INVALID: &[&str] = &["it is not a valid component"];
const TOO_LONG: &[&str] = &["would take too long to compile"];
const NO_PLUGIN: &[&str] = &["it does not export tenon:plugin/lifecycle"];

type Bytes = Vec<u8>;

/// Components that are large when they are read, or made, or compiled, and small as files.
fn components() -> Vec<(&'static str, Bytes, &'static [&'static str])> {
    let whole = std::fs::read(guests::TEXT_TOOLS).expect("it was built");
    let cut = |at: usize| whole[..whole.len() * at / 8].to_vec();
    let mut nested = COMPONENT_HEADER.to_vec();
    for _ in 0..3_000 {
        nested = [COMPONENT_HEADER, &section(4, &nested)].concat();
    }
    let claims = |id: u8| [COMPONENT_HEADER, &[id, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat();
    let counts =
        |id: u8| [COMPONENT_HEADER, &section(id, &[0xff, 0xff, 0xff, 0xff, 0x0f])].concat();
    let in_module = |id: u8| of_module(&[section(id, &[0xff, 0xff, 0xff, 0xff, 0x0f])]);
    let operators = ["i32.const 1 ".repeat(60_000), "i32.add ".repeat(59_999)].concat();
    let lists = lines(3_000, |i| format!("(type $t{} (list $t{i}))", i + 1));
    let chain = lines(3_000, |i| format!("(type $s{} (sub $s{i} (struct)))", i + 1));
    let blocks = ["(block ".repeat(20_000), ")".repeat(20_000)].concat();
    vec![
        ("cut-1", cut(1), INVALID),
        ("cut-4", cut(4), INVALID),
        ("cut-7", cut(7), INVALID),
        ("doubled-instances", doubled(""), TOO_LONG),
        ("doubled-modules", doubled("(core module $m) (core instance (instantiate $m))"), TOO_LONG),
        (
            "sparse-tables",
            tables(|i| {
                format!(
                    "(table $t{i} 1048576 funcref)
                     (elem (table $t{i}) (i32.const 1048575) func $f)"
                )
            }),
            TOO_LONG,
        ),
        (
            "filled-tables",
            tables(|i| format!("(table $t{i} 1048576 (ref null func) (ref.func $f))")),
            TOO_LONG,
        ),
        (
            "sparse-memory",
            wat("(component (core module (memory 65536) (data (i32.const 0) \"a\")
                 (data (i32.const -2) \"b\")))"),
            NO_PLUGIN,
        ),
        ("variants", variants(4, 5_000), NO_PLUGIN),
        ("parameters", parameters(20_000), TOO_LONG),
        ("fewer-parameters", parameters(100), NO_PLUGIN),
        ("a-million-types", of_module(&[section(1, &many(1_000_000, &[0x60, 0, 0]))]), NO_PLUGIN),
        (
            "a-million-imports",
            of_module(&[
                section(1, &many(1, &[0x60, 0, 0])),
                section(2, &many(1_000_000, b"\x01a\x01b\0\0")),
            ]),
            INVALID,
        ),
        ("shared-types", shared_types(500), INVALID),
        ("nested-components", nested, TOO_LONG),
        ("nested-lists", wat(&format!("(component (type $t0 (list u8)) {lists})")), INVALID),
        (
            "subtypes",
            wat(&format!("(component (core module (type $s0 (sub (struct))) {chain}))")),
            INVALID,
        ),
        ("nested-blocks", wat(&format!("(component (core module (func {blocks})))")), NO_PLUGIN),
        (
            "a-long-constant",
            wat(&format!("(component (core module (global i32 {operators})))")),
            TOO_LONG,
        ),
        ("claims-a-module", claims(1), INVALID),
        ("claims-a-component", claims(4), INVALID),
        ("claims-a-custom-section", claims(0), INVALID),
        ("counts-types", counts(7), TOO_LONG),
        ("counts-imports", counts(10), INVALID),
        ("counts-functions", in_module(3), INVALID),
        ("counts-code", in_module(10), INVALID),
        ("counts-data", in_module(11), INVALID),
        (
            "a-long-name",
            [
                COMPONENT_HEADER,
                &section(0, &[&number(20 << 20)[..], &vec![b'x'; 20 << 20]].concat()),
            ]
            .concat(),
            INVALID,
        ),
    ]
}

#[test]
fn a_component_takes_neither_the_time_nor_the_memory_of_the_host() {
    let rows = components();
    assert!(rows.len() > 20);
    let paths = rows.iter().map(|(row, ..)| format!("\"{row}.wasm\"")).collect::<Vec<_>>();
    let project = Project::new(&format!(
        "plugins.wasm = [{}]\nplugins.scripts = [\"fine.rhai\"]",
        paths.join(", ")
    ));
    project.write("fine.rhai", FINE);
    let mut problems = Vec::new();
    for (row, bytes, expected) in &rows {
        let path = format!("{row}.wasm");
        project.write(&path, bytes);
        problems.extend(ends(&project, row, &["doctor", row], expected));
        // Who only looks at it reads the same bytes.
        let inspected = run(&project, &["inspect", &path]);
        problems.extend(inspected.problem().map(|problem| format!("inspect {row}: {problem}")));
    }
    problems.extend(is_fine(&project, "all of them"));
    none_of(problems);
}

/// As deep as this within each other, in the words of TOML.
fn inline_tables(depth: usize, keys: &str) -> String {
    format!("{}1{}", format!("{{ {keys} = ").repeat(depth), " }".repeat(depth))
}

/// Settings that no parser of TOML should follow all the way down, and what is said of them.
fn settings() -> Vec<(&'static str, String, &'static [&'static str])> {
    let deep: &[&str] = &["recursion", "recurse", "nested"];
    let keys = vec!["a"; 79].join(".");
    let most = vec!["a"; 60].join(".");
    vec![
        ("arrays", format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000)), deep),
        ("arrays without an end", format!("a = {}", "[".repeat(1_000_000)), deep),
        ("tables", format!("a = {}", inline_tables(100_000, "a")), deep),
        ("keys", format!("{} = 1", vec!["a"; 100_000].join(".")), deep),
        ("keys of a table", format!("a = {{ {} = 1 }}", vec!["a"; 100_000].join(".")), deep),
        ("keys of tables", format!("a = {}", inline_tables(78, &keys)), deep),
        ("keys of tables in tables", format!("{keys} = {}", inline_tables(70, &most)), deep),
        ("a head", format!("[settings.p.{}]\na = 1", vec!["a"; 100_000].join(".")), deep),
        ("a number of many digits", format!("a = {}", "9".repeat(1 << 20)), &["number", "integer"]),
        ("a large exponent", "a = 1e999999".into(), &["float", "number", "fine"]),
        ("no number", "a = inf".into(), &["fine", "\"state\":\"ready\""]),
        ("a date that is none", "a = 9999-99-99T99:99:99Z".into(), &["date", "month"]),
        ("the same key", "a = 1\n".repeat(100_000), &["duplicate key"]),
        (
            "a text without an end",
            format!("a = \"{}", "x".repeat(3 << 20)),
            &["invalid basic string", "string"],
        ),
        ("escapes", format!("a = \"{}\"", "\\u".repeat(500_000)), &["unicode", "escape"]),
        ("nothing but ends", "]".repeat(3 << 20), &["missing table open"]),
    ]
}

#[test]
fn no_configuration_is_followed_deeper_than_is_safe() {
    let mut problems = Vec::new();
    for (row, text, expected) in settings() {
        let project =
            Project::new(&format!("plugins.scripts = [\"fine.rhai\"]\n[settings.fine]\n{text}"));
        project.write("fine.rhai", FINE);
        problems.extend(ends(&project, row, &["call", "fine__t"], expected));
    }
    none_of(problems);
}

#[test]
fn no_manifest_is_followed_deeper_than_is_safe() {
    let project = Project::new("plugins = { folders = [\"own\"], scripts = [\"fine.rhai\"] }");
    project.write("fine.rhai", FINE);
    let head = "plugin.id = \"ID\"\nruntime = { kind = \"rhai\", path = \"x.rhai\" }\n";
    let mut problems = Vec::new();
    let rows = settings();
    for (number, (_, text, _)) in rows.iter().enumerate() {
        let id = format!("p{number}");
        let text = format!("{}[settings]\n{text}", head.replace("ID", &id));
        project.write(&format!("own/{id}/plugin.toml"), text);
        project.write(&format!("own/{id}/x.rhai"), "");
    }
    let ran = run(&project, &["--json", "doctor"]);
    problems.extend(ran.problem().map(|problem| format!("all: {problem}")));
    for (number, (row, _, expected)) in rows.iter().enumerate() {
        let said = said_of(&ran, &format!("p{number}"));
        if !expected.iter().any(|expected| said.contains(expected)) || said.len() > SAID {
            problems.push(format!("{row}: expected {expected:?}: {said:.500}"));
        }
    }
    problems.extend(is_fine(&project, "all"));
    none_of(problems);
}

/// Files of servers that are no JSON that anybody should follow, and what is said of them.
fn files_of_servers() -> Vec<(&'static str, String, &'static [&'static str])> {
    let of = |entry: &str| format!("{{\"mcpServers\": {{\"s\": {entry}}}}}");
    let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
    let objects = |depth: usize| ["{\"a\":".repeat(depth), "1".into(), "}".repeat(depth)].concat();
    let start =
        |member: &str| of(&format!("{{\"command\": \"c\", \"{member}\": \"500000000000y\"}}"));
    let time = |time: &str| of(&format!("{{\"command\": \"c\", \"timeout\": {time}}}"));
    let deep: &[&str] = &["Maximum nesting depth exceeded"];
    vec![
        ("lists", nested(100_000), deep),
        ("objects", objects(100_000), deep),
        ("an open end", "[".repeat(2_000_000), deep),
        ("lists beside servers", format!("{{\"x\": {}}}", nested(100_000)), deep),
        ("comments", format!("{}{{}}", "/*x*/".repeat(500_000)), &["fine"]),
        (
            "a comment without an end",
            format!("/*{}", "*".repeat(3 << 20)),
            &["nterminated comment"],
        ),
        (
            "an argument within others",
            of(&format!("{{\"command\": \"c\", \"args\": {}}}", nested(500))),
            &["must be a list of texts"],
        ),
        (
            "a variable within others",
            of(&format!("{{\"command\": \"c\", \"env\": {}}}", objects(500))),
            &["must be an object with texts"],
        ),
        ("a large exponent", time("1e999999"), &["`c` cannot be started", "`timeout`"]),
        (
            "a number of many digits",
            time(&"9".repeat(1 << 20)),
            &["`c` cannot be started", "`timeout`"],
        ),
        ("the longest start", start("startup_timeout"), &["`c` cannot be started"]),
        ("the longest silence", start("ping_interval"), &["`c` cannot be started"]),
        ("a long time", time("\"99999999999999999h\""), &["`timeout`"]),
        ("the longest time", time("\"500000000000y\""), &["`c` cannot be started", "fine"]),
        (
            "a name many times",
            of(&format!("{{{}\"command\": 3}}", "\"command\": \"c\",".repeat(100_000))),
            &["`command` must be a text"],
        ),
        (
            "servers",
            format!(
                "{{\"mcpServers\": {{{}}}}}",
                (0..1_000).map(|i| format!("\"s{i}\": 3,")).collect::<String>()
            ),
            &["servers", "it is not an object"],
        ),
        (
            "inputs",
            format!(
                "{{\"inputs\": {}, \"servers\": {{\"s\": {{\"command\": \"{}\"}}}}}}",
                nested(400),
                "${input:x".repeat(1_000)
            ),
            &["without its `}`", "longer", "`${`"],
        ),
        (
            "halves of characters",
            of(&format!("{{\"command\": \"{}\"}}", "\\ud800".repeat(100_000))),
            &["surrogate", "unicode", "line"],
        ),
    ]
}

#[test]
fn no_file_of_servers_is_followed_deeper_than_is_safe() {
    let project = Project::new("plugins.scripts = [\"fine.rhai\"]");
    project.write("fine.rhai", FINE);
    let mut problems = Vec::new();
    for (row, text, expected) in files_of_servers() {
        project.write(".mcp.json", text);
        problems.extend(ends(&project, row, &["doctor", "--verbose"], expected));
        problems.extend(is_fine(&project, row));
    }
    none_of(problems);
}

/// Scripts whose reading, or whose top level, would take the time, the stack or the memory of the host.
fn scripts() -> Vec<(&'static str, String, &'static [&'static str])> {
    let deep: &[&str] = &["Expression exceeds maximum complexity"];
    let around = |open: &str, middle: &str, close: &str| {
        [open.repeat(100_000).as_str(), middle, &close.repeat(100_000)].concat()
    };
    let chain = |first: &str, more: &str| [first, &more.repeat(300_000)].concat();
    let tool = |body: &str| format!("{body} tool(#{{ name: \"t\", description: \"d\" }}, |a| f);");
    let shared = "let f = || 1; for i in 0..60 { let a = f; let b = f; f = || [a, b]; }";
    let long = "let s = \"x\"; for i in 0..20 { s += s; }";
    let contained: &[&str] = &["it reached its limit", "it reached its CPU limit"];
    // On a machine that is busy its time may be over first.
    let held: &[&str] =
        &["the functions of the script hold more than 400000 values", "it reached its CPU limit"];
    // So it does where it is quick enough.
    let late: &[&str] = &["it takes too long to compile", "bad (ok)"];
    vec![
        ("parentheses", around("(", "1", ")"), deep),
        ("arrays", around("[", "", "]"), deep),
        ("maps", around("#{a:", "1", "}"), deep),
        ("blocks", around("{", "", "}"), deep),
        ("functions", around("|a| ", "1", ""), deep),
        ("calls", around("f(", "1", ")"), deep),
        ("signs", around("- ", "1", ""), deep),
        ("negations", around("!", "true", ""), deep),
        ("conditions", around("if true { ", "1", " }"), deep),
        ("other conditions", around("if true {} else ", "{}", ""), deep),
        ("texts in texts", around("`${", "1", "}`"), deep),
        ("comments", around("/*", "", "*/"), &["fine"]),
        ("sums", chain("let x = 1", "+1"), deep),
        ("members", chain("let x = #{}; x", ".a"), deep),
        ("items", chain("let x = []; x", "[0]"), deep),
        ("methods", chain("let x = 1; x", ".abs()"), deep),
        ("alternatives", chain("let x = 1", " ?? 1"), deep),
        ("a long number", format!("let x = {};", "9".repeat(3 << 20)), late),
        ("a large exponent", "let x = 1e999999; tool(#{ name: \"t\", description: \"d\", extra: #{ x: x } }, |a| 1);".into(), &["not a number that JSON has"]),
        ("a long text", format!("let x = \"{}\";", "x".repeat(3 << 20)), &["Length of string", "too long"]),
        ("a text without an end", format!("let x = \"{}", "x".repeat(3 << 20)), &["Length of string", "it takes too long to compile"]),
        ("a long name", format!("fn {}(context) {{}}", "BeforePlan".repeat(300_000)), &["fine", "ok"]),
        ("many statements", ";".repeat(3 << 20), &["fine", "ok"]),
        ("another size", (1 << 20 .. (1 << 20) + 1).map(|_| "let x = 1;".repeat(500_000)).collect(), &["it is larger than 4 MiB"]),
        ("eval", "eval(\"1\");".into(), &["eval"]),
        ("functions that share others", tool(shared), held),
        ("functions that share others, written", tool(&format!("{shared} let x = to_debug(f);")), held),
        ("functions that share others, shown", tool(&format!("{shared} debug([f]);")), held),
        ("functions that share others, compared", tool(&format!("{shared} switch f {{ 1 => 2, _ => 3 }}")), held),
        ("functions that share others, in a text", tool(&format!("{shared} let x = `${{[f]}}`;")), held),
        ("functions that share others, thrown", format!("{shared} throw [f];"), &["Runtime error: [Fn*"]),
        ("a text that grows", tool(&format!("let f = 1; {long} s.replace(\"x\", s);")), contained),
        ("a character that grows", tool(&format!("let f = 1; {long} s.replace('x', s);")), contained),
        ("arrays of arrays", tool("let f = []; f.pad(99999, 1); loop { f = [f, f]; }"), contained),
        ("blobs", tool("let f = blob(1000000000000, 1);"), contained),
        ("texts in an array", tool("let f = []; let s = \"x\"; for i in 0..19 { s += s; } for i in 0..100000 { f.push(s); }"), contained),
        ("powers", tool("let f = 9 ** 999999999;"), &["overflow", "ok"]),
        ("a range", tool("let f = 0; for i in 0..9000000000000000000 { f += 1; }"), contained),
    ]
}

#[test]
fn no_script_takes_the_time_the_stack_or_the_memory_of_the_host() {
    let project = Project::new("");
    project.write("fine.rhai", FINE);
    let mut problems = Vec::new();
    for (row, text, expected) in scripts() {
        project.write(
            "tenon.toml",
            "plugins.scripts = [\"fine.rhai\", \"bad.rhai\"]\nlimits.cpu = \"1s\"",
        );
        project.write("bad.rhai", text);
        let row = format!("script: {row}");
        problems.extend(ends(&project, &row, &["doctor", "--verbose"], expected));
    }
    problems.extend(is_fine(&project, "the last script"));
    none_of(problems);
}

/// Arguments that nobody should follow all the way down, and what comes of a call with them.
#[test]
fn no_arguments_are_followed_deeper_than_is_safe() {
    let nested = |depth: usize| ["{\"a\":".repeat(depth), "1".into(), "}".repeat(depth)].concat();
    let project = Project::new("plugins.scripts = [\"fine.rhai\"]");
    project.write("fine.rhai", format!("{FINE} fn BeforeToolCall(context) {{ context.x = 1; }}"));
    let mut problems = Vec::new();
    for (row, text, expected) in [
        ("objects", nested(100_000), "not JSON: recursion limit exceeded"),
        ("lists", "[".repeat(10_000_000), "not JSON: recursion limit exceeded"),
        ("fewer objects", nested(120), "fine"),
        ("a large exponent", "{\"a\": 1e999999}".into(), "not JSON: number out of range"),
        ("a small exponent", "{\"a\": 1e-999999}".into(), "fine"),
        (
            "a number of many digits",
            format!("{{\"a\": {}}}", "9".repeat(1 << 20)),
            "not JSON: number out of range",
        ),
        ("a fraction of many digits", format!("{{\"a\": 0.{}}}", "9".repeat(1 << 20)), "fine"),
        ("a name many times", format!("{{{}\"a\": 1}}", "\"a\": 1,".repeat(200_000)), "fine"),
        (
            "many names",
            format!(
                "{{{}\"a\": 1}}",
                (0..20_000).map(|i| format!("\"a{i}\": 1,")).collect::<String>()
            ),
            "limit of value size",
        ),
        (
            "halves of characters",
            format!("{{\"a\": \"{}\"}}", "\\ud800".repeat(100_000)),
            "not JSON: ",
        ),
        ("a long text", format!("{{\"a\": \"{}\"}}", "x".repeat(20 << 20)), "fine"),
        ("no object", "3".into(), "object"),
        ("more than there may be", " ".repeat((64 << 20) + 1), "is larger than 64 MiB"),
    ] {
        project.write("arguments.json", text);
        problems.extend(ends(&project, row, &["call", "fine__t", "@arguments.json"], &[expected]));
    }
    problems.extend(is_fine(&project, "the last arguments"));
    none_of(problems);
}

/// Values of capabilities that are patterns, and what is said of them.
#[test]
fn no_pattern_takes_the_time_or_the_memory_of_the_host() {
    let repeated = |text: &str, count: usize| text.repeat(count);
    let several = |value: String| vec![value; 20];
    let file = |glob: String| format!("read:/{glob}");
    let url = |path: String| format!("https://a.example/{path}");
    let segments = |segment: &str| vec![segment; 16].join("/");
    type Row = (&'static str, &'static str, Vec<String>);
    let rows: Vec<Row> = vec![
        ("alternatives", "filesystem", vec![file(repeated("{a,", 80))]),
        (
            "alternatives-closed",
            "filesystem",
            vec![file([repeated("{a,", 60), repeated("}", 60)].concat())],
        ),
        ("stars", "filesystem", several(file(segments(&repeated("*a", 127))))),
        ("characters", "filesystem", several(file(segments(&repeated("\\?", 127))))),
        ("other-wildcards", "filesystem", several(file(segments(&repeated("[!a]", 63))))),
        ("all-folders", "filesystem", several(file(vec!["**"; 100].join("/")))),
        (
            "entangled",
            "filesystem",
            vec![file(format!("**/a{}", "/*".repeat(90))), file("**/a/".repeat(45))],
        ),
        ("long", "filesystem", vec![file(repeated("x", 1 << 20))]),
        ("names", "network", several(url(repeated(":a", 400)))),
        ("groups", "network", several(url(repeated("{a}", 200)))),
        ("any", "network", several(url(repeated("*x", 450)))),
        ("long-host", "network", several(format!("https://{}/", repeated("a.", 450)))),
        ("escapes", "network", several(url(repeated("%25", 300)))),
        ("tools", "tools", several(repeated("*a", 2_000))),
    ];
    let mut problems = Vec::new();
    for (row, capability, values) in rows {
        let project = Project::new("plugins = { folders = [\"own\"], scripts = [\"fine.rhai\"] }");
        project.write("fine.rhai", FINE);
        let manifest = format!(
            "plugin.id = {row:?}\nruntime = {{ kind = \"rhai\", path = \"x.rhai\" }}\n\
             capabilities.{capability} = {values:?}"
        );
        project.write(&format!("own/{row}/plugin.toml"), manifest);
        project.write(&format!("own/{row}/x.rhai"), "");
        problems.extend(ends(&project, row, &["doctor"], &[row]));
        problems.extend(is_fine(&project, row));
    }
    none_of(problems);
}

/// Times and sizes that no clock has.
#[test]
fn no_time_and_no_size_is_too_much_for_the_host() {
    let mut problems = Vec::new();
    let fine: &[&str] = &["fine"];
    for (row, text, expected) in [
        (
            "a time of many digits",
            "limits.wall = \"99999999999999999h\"",
            &["number is too large", "must be a duration such as", "invalid"][..],
        ),
        (
            "digits",
            &*format!("limits.wall = \"{}h\"", "9".repeat(1 << 20)),
            &["number is too large", "must be a duration such as", "invalid"],
        ),
        ("parts", &format!("limits.wall = \"{}\"", "1s ".repeat(500_000)), &["fine", "invalid"]),
        (
            "units",
            &format!("limits.wall = \"1{}\"", "s".repeat(1 << 20)),
            &["unknown time unit", "must be a duration such as", "invalid"],
        ),
        ("the longest wall", "limits.wall = \"500000000000y\"", fine),
        ("the longest cpu", "limits.cpu = \"500000000000y\"", fine),
        ("the longest wait for hooks", "hooks.timeout = \"500000000000y\"", fine),
        (
            "the longest attempt",
            "[tools.\"*\"]\ntimeout = \"500000000000y\"\nretry_backoff = \"500000000000y\"",
            fine,
        ),
        (
            "the most",
            "[limits]\nmemory_mib = 4294967295\ntransfer_mib = 4294967295\noutput_kib = 4294967295\nhost_calls = 4294967295",
            fine,
        ),
        (
            "more than the most",
            "limits.memory_mib = 99999999999999999999999",
            &["number", "integer", "u32"],
        ),
        ("less than nothing", "limits.memory_mib = -1", &["greater than 0"]),
        ("the longest history", "history.max_mib = 4294967295\nresults.max_mib = 4294967295", fine),
        ("the deepest folders", "discovery.max_depth = 9223372036854775807", fine),
        (
            "the longest servers",
            "[supervision]\nbackoff = \"500000000000y\"\nmax_message = 9223372036854775807\nshutdown_grace = \"500000000000y\"",
            fine,
        ),
    ] {
        let project = Project::new(&format!("plugins.scripts = [\"fine.rhai\"]\n{text}"));
        project.write("fine.rhai", FINE);
        problems.extend(ends(&project, row, &["call", "fine__t"], expected));
    }
    let project = Project::new("plugins.scripts = [\"fine.rhai\"]");
    project.write("fine.rhai", FINE);
    let call = |time: &str| ["call", "fine__t", "--timeout", time].map(String::from);
    for (row, arguments, expected) in [
        ("a call of the longest time", call("500000000000y"), "fine"),
        ("a call of no time", call("99999999999999999h"), "number is too large"),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        problems.extend(ends(&project, row, &arguments, &[expected]));
    }
    none_of(problems);
}

/// What a server answers to all that it is asked: this, and then as often as anybody reads it that.
type RawResponse = (Vec<u8>, Vec<u8>);

/// A server that answers by the path, until it is dropped.
struct RawServer {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl RawServer {
    fn start(answers: BTreeMap<String, RawResponse>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a port");
        let address = listener.local_addr().expect("it has an address");
        let over = Arc::new(AtomicBool::new(false));
        let (answers, ended) = (Arc::new(answers), over.clone());
        let task = thread::spawn(move || {
            let mut connections = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::SeqCst) {
                    break;
                }
                let (answers, ended) = (answers.clone(), ended.clone());
                connections.push(thread::spawn(move || {
                    // Who has heard enough goes.
                    let _ = respond(stream, &answers, &ended);
                }));
            }
            connections.into_iter().for_each(|connection| drop(connection.join()));
        });
        Self { address, over, task: Some(task) }
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(task) = self.task.take() {
            let _ = task.join();
        }
    }
}

fn respond(
    mut stream: TcpStream,
    answers: &BTreeMap<String, RawResponse>,
    over: &AtomicBool,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TIME))?;
    stream.set_write_timeout(Some(TIME))?;
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    let (path, length, body) = loop {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        request.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let Some(end) = text.find("\r\n\r\n") else { continue };
        let length = text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        let path = text.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_string();
        break (path, length, request.len() - end - 4);
    };
    Read::take(&mut stream, length.saturating_sub(body) as u64).read_to_end(&mut Vec::new())?;
    let Some((first, more)) = answers.get(&path) else { return Ok(()) };
    stream.write_all(first)?;
    while !more.is_empty() && !over.load(Ordering::SeqCst) {
        stream.write_all(more)?;
    }
    Ok(())
}

/// Answers over HTTP that have no end, or claim what they are not, and what is said of each.
fn answers() -> Vec<(&'static str, Vec<u8>, Vec<u8>, &'static str)> {
    let head = |more: &str| format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{more}\r\n");
    let events = |more: &str| head("content-type: text/event-stream\r\n") + more;
    let json = |more: &str| head("content-type: application/json\r\n") + more;
    let status = |status: &str, header: &str| {
        format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: 0\r\n{header}\r\n\r\n")
    };
    let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
    let coded = |coding: &str, bytes: &[u8]| {
        let head = json("").replace("\r\n\r\n", &format!("\r\ncontent-encoding: {coding}\r\n\r\n"));
        [head.as_bytes(), bytes].concat()
    };
    let said = r#"data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    let zeros = [&b"\x1f\x8b\x08\0\0\0\0\0\0\xff"[..], &[0; 4096]].concat();
    let none = Vec::new();
    let too_long = "longer than the limit";
    vec![
        ("endless-line", events("data: ").into(), vec![b'x'; 1 << 16], too_long),
        ("endless-event", events("").into(), b"data: x\n".repeat(8_000), too_long),
        ("endless-events", events("").into(), format!("{said}\n\n").repeat(500).into(), ""),
        ("endless-comments", events("").into(), b": ping\n\n".repeat(8_000), ""),
        ("endless-names", events("").into(), b"event: x\nid: 7\nretry: 0\n".repeat(2_000), ""),
        ("ends-at-once", events("id: 7\nretry: 0\ndata:\n\n").into(), none.clone(), ""),
        ("endless-space", json("").into(), vec![b' '; 1 << 16], too_long),
        ("endless-text", json("\"").into(), vec![b'x'; 1 << 16], too_long),
        ("deep", json(&nested(30_000)).into(), none.clone(), "answered something else"),
        (
            "deep-result",
            json(&format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}}", nested(30_000))).into(),
            none.clone(),
            "",
        ),
        (
            "large-id",
            json("{\"jsonrpc\":\"2.0\",\"id\":1e999999,\"result\":{}}").into(),
            none.clone(),
            "answered something else",
        ),
        ("gzip", coded("gzip", &zeros), none.clone(), "answered something else"),
        ("endless-gzip", coded("gzip", &zeros), vec![0; 1 << 16], too_long),
        ("deflate", coded("deflate", &[0x78, 0x9c, 0, 0]), none.clone(), "answered something else"),
        ("br", coded("br", &[0xff; 4096]), none.clone(), "answered something else"),
        ("many-codings", coded(&vec!["gzip"; 1_000].join(", "), &zeros), none.clone(), ""),
        (
            "long-type",
            (head(&format!("content-type: {}\r\n", "x/y;".repeat(2_000))) + "<html>").into(),
            none.clone(),
            "which no answer has",
        ),
        (
            "long-challenge",
            status("401", &format!("www-authenticate: {}", "Bearer a=\"".repeat(1_000))).into(),
            none.clone(),
            "wants to know who asks",
        ),
        (
            "long-wait",
            status("503", &format!("retry-after: {}", "9".repeat(1_000))).into(),
            none.clone(),
            "HTTP 503",
        ),
        (
            "long-way",
            status("307", &format!("location: {}", "http://a/".repeat(1_000))).into(),
            none.clone(),
            "which is for `url` to say",
        ),
        ("endless-status", b"HTTP/1.1 200 ".to_vec(), vec![b'x'; 1 << 16], ""),
        ("endless-headers", b"HTTP/1.1 200 OK\r\n".to_vec(), b"a: b\r\n".repeat(8_000), ""),
        (
            "large-chunk",
            json("")
                .replace("\r\n\r\n", "\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n")
                .into(),
            vec![b'x'; 1 << 16],
            too_long,
        ),
        (
            "long-length",
            b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n".to_vec(),
            none,
            "",
        ),
    ]
}

#[test]
fn no_answer_over_http_takes_the_time_or_the_memory_of_the_host() {
    let rows = answers();
    let by_path =
        rows.iter().map(|(row, first, more, _)| (row.to_string(), (first.clone(), more.clone())));
    let server = RawServer::start(by_path.collect());
    let entries = rows.iter().map(|(row, ..)| {
        let url = format!("http://{}/{row}", server.address);
        format!("{{ name = {row:?}, url = {url:?}, startup_timeout = \"3s\" }}")
    });
    let project = Project::new(&format!(
        "plugins.scripts = [\"fine.rhai\"]\nplugins.mcp = [{}]\n\
         supervision = {{ max_message = 65536, concurrent_starts = 32 }}",
        entries.collect::<Vec<_>>().join(", ")
    ));
    project.write("fine.rhai", FINE);
    let ran = run(&project, &["--json", "doctor"]);
    let mut problems: Vec<String> = ran.problem().into_iter().collect();
    let reports: Value = serde_json::from_str(&ran.out).unwrap_or_default();
    for (row, _, _, expected) in &rows {
        let report =
            reports.as_array().into_iter().flatten().find(|report| report["plugin"] == *row);
        let detail = report.and_then(|report| report["detail"].as_str()).unwrap_or_default();
        let is_failed = report.is_some_and(|report| report["state"] == "failed");
        if !is_failed || !detail.contains(expected) || detail.is_empty() || detail.len() > SAID {
            problems.push(format!("{row}: expected {expected:?}: {report:?}"));
        }
    }
    problems.extend(is_fine(&project, "all of them"));
    none_of(problems);
}

/// Results of a server that are no JSON that anybody can keep, or not what they say that they are.
#[test]
fn no_result_of_a_server_is_believed_to_be_what_it_says() {
    let project = Project::new(&format!(
        "plugins.scripts = [\"fine.rhai\"]\n\
         plugins.mcp = [{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [\"script.json\"] }}]"
    ));
    project.write("fine.rhai", FINE);
    let structured =
        |value: &str| format!("{{\"content\": [], \"structuredContent\": {{\"a\": {value}}}}}");
    let block = |block: &str| format!("{{\"content\": [{block}]}}");
    let image = |data: &str, kind: &str| {
        block(&format!("{{\"type\": \"image\", \"data\": \"{data}\", \"mimeType\": \"{kind}\"}}"))
    };
    let mut problems = Vec::new();
    for (row, result, expected) in [
        ("a large exponent", structured("1e999999"), "number out of range"),
        ("a small exponent", structured("1e-999999"), ""),
        ("a number of many digits", structured(&"9".repeat(1 << 20)), "number out of range"),
        ("a fraction of many digits", structured(&format!("0.{}", "9".repeat(1 << 20))), ""),
        (
            "a name many times",
            structured(&format!("{{{}\"a\": 1}}", "\"a\": 1,".repeat(100_000))),
            "",
        ),
        ("a list", block(&["[".repeat(100), "]".repeat(100)].concat()), ""),
        ("data that are none", image("!!!!", "image/png"), "!!!!"),
        ("data that are cut", image("QUJDR", "image/png"), "QUJDR"),
        ("a long type", image("QUJD", &"a/b;".repeat(1_000)), "3 bytes"),
        ("a type that is none", image("QUJD", "\\u0000\\n"), "3 bytes"),
        (
            "zeros",
            block(&format!("{{\"type\": \"text\", \"text\": \"{}\"}}", "\\u0000".repeat(10_000))),
            "",
        ),
        (
            "an address that is none",
            block(&format!(
                "{{\"type\": \"resource_link\", \"uri\": \"{}\", \"name\": \"n\"}}",
                "%".repeat(10_000)
            )),
            "%%%",
        ),
        (
            "a size",
            block(
                "{\"type\": \"resource_link\", \"uri\": \"a:b\", \"name\": \"n\", \"size\": 1e300}",
            ),
            "a:b",
        ),
        (
            "a date",
            block(
                "{\"type\": \"text\", \"text\": \"x\", \"annotations\": {\"lastModified\": \"9999-99-99T99:99:99Z\", \"priority\": 1e300}}",
            ),
            "x",
        ),
    ] {
        let tool = r#"{"name": "read", "inputSchema": {"type": "object"}}"#;
        let script =
            format!("{{\"tools/list\": {{\"tools\": [{tool}]}}, \"tools/call\": {result}}}");
        project.write("script.json", script);
        let ran = run(&project, &["call", "s__read"]);
        problems.extend(ran.problem().map(|problem| format!("{row}: {problem}")));
        if !ran.said.contains(expected) {
            let said = &ran.said[..ran.said.floor_char_boundary(500)];
            problems.push(format!("{row}: expected {expected:?}: {said}"));
        }
    }
    problems.extend(is_fine(&project, "the last result"));
    none_of(problems);
}

/// Files with variables, and versions, that are none.
#[test]
fn no_version_and_no_file_of_variables_is_too_much_for_the_host() {
    let project = Project::new("plugins = { folders = [\"own\"], scripts = [\"fine.rhai\"] }");
    project.write("fine.rhai", FINE);
    let long = "9".repeat(100_000);
    let mut rows: Vec<(String, &str)> = Vec::new();
    let versions = [
        ("version", long.clone(), "value of major version number exceeds"),
        ("version", format!("{long}.0.0"), "value of major version number exceeds"),
        ("version", "99999999999999999999999.0.0".into(), "value of major version number exceeds"),
        ("version", format!("1.0.0-{}", "a.".repeat(100_000)), "version"),
        (
            "plugin_api_version",
            vec![">1"; 100_000].join(","),
            "excessive number of version comparators",
        ),
        ("plugin_api_version", "^".repeat(100_000), "unexpected"),
        ("plugin_api_version", format!(">={long}"), "value of major version number exceeds"),
    ];
    for (number, (key, version, expected)) in versions.into_iter().enumerate() {
        let id = format!("v{number}");
        project.write(
            &format!("own/{id}/plugin.toml"),
            format!("plugin = {{ id = {id:?}, {key} = {version:?} }}\nruntime = {{ kind = \"rhai\", path = \"x.rhai\" }}"),
        );
        project.write(&format!("own/{id}/x.rhai"), "");
        rows.push((id, expected));
    }
    let files = [
        ("x".repeat(4_000_000), "it has no `=`"),
        (format!("A='{}", "x".repeat(4_000_000)), "its quotes are not closed"),
        (format!("A=\"{}", "\\".repeat(1_000_001)), "its quotes are not closed"),
        (format!("{}=1", "%".repeat(1_000_000)), "is not a variable name"),
        ("A=1\n".repeat(1_200_000), "it is larger than 4 MiB"),
        (format!("A=1\0{}", "x".repeat(1_000)), "zero"),
    ];
    for (number, (file, expected)) in files.into_iter().enumerate() {
        let id = format!("e{number}");
        project.write(
            &format!("own/{id}/plugin.toml"),
            format!(
                "plugin.id = {id:?}\nruntime.kind = \"mcp-bridge\"\n[runtime.subprocess]\n\
                 binary_path = {SCRIPTED_SERVER:?}\nenv_file = \"variables\""
            ),
        );
        project.write(&format!("own/{id}/variables"), file);
        rows.push((id, expected));
    }
    let ran = run(&project, &["--json", "doctor"]);
    let mut problems: Vec<String> = ran.problem().into_iter().collect();
    for (row, expected) in rows {
        let said = said_of(&ran, &row);
        if !said.contains(expected) || said.len() > SAID {
            let beginning = &said[..said.floor_char_boundary(500)];
            problems
                .push(format!("{row}: expected {expected:?}: {} bytes: {beginning}", said.len()));
        }
    }
    problems.extend(is_fine(&project, "all of them"));
    none_of(problems);
}
