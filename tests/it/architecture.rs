//! The repository itself: crates, and the rooms in them, depend on each other in one direction, and pages name
//! what there is.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::template_projects::ROOT;

/// What a program writes in a folder of the repository. Its arguments have no blanks in them.
fn output_of(program: &str, folder: &str, arguments: &str) -> String {
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).current_dir(Path::new(ROOT).join(folder));
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("what it writes is UTF-8")
}

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    let metadata = output_of(env!("CARGO"), "", "metadata --no-deps --format-version 1 --offline");
    let metadata: Value = serde_json::from_str(&metadata).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let allowed = |name: &str| -> &[&str] {
        match name {
            "tenon-call-approvals" => &["tenon-store"],
            "tenon-cli" => &[
                "tenon-call-approvals",
                "tenon-config",
                "tenon-contract",
                "tenon-harness",
                "tenon-host",
                "tenon-inputs",
                "tenon-runs",
                "tenon-serve",
                "tenon-store",
                "tenon-store-postgres",
                "tenon-test-host",
            ],
            "tenon-conformance" => &["tenon-contract", "tenon-host"],
            "tenon-harness" => &["tenon-types"],
            "tenon-test-host" => &["tenon-config", "tenon-harness", "tenon-host"],
            "tenon-config" => &["tenon-inputs", "tenon-types"],
            "tenon-host" => &[
                "tenon-call-approvals",
                "tenon-config",
                "tenon-confinement",
                "tenon-contract",
                "tenon-inputs",
                "tenon-repoll",
                "tenon-runs",
                "tenon-search",
                "tenon-store",
                "tenon-types",
                "tenon-uri-template",
            ],
            "tenon-serve" => {
                &["tenon-host", "tenon-inputs", "tenon-repoll", "tenon-store", "tenon-uri-template"]
            }
            "tenon-runs" => &["tenon-store"],
            "tenon-store-postgres" => &["tenon-store"],
            "tenon-types" => &["tenon-contexts"],
            "tenon-sdk" => &[
                "tenon-contexts",
                "tenon-exports",
                "tenon-inputs",
                "tenon-sdk-macros",
                "tenon-uri-template",
            ],
            "tenon-sdk-macros" => &["tenon-uri-template"],
            "tenon-tests" => &[
                "tenon-config",
                "tenon-conformance",
                "tenon-contract",
                "tenon-harness",
                "tenon-host",
                "tenon-sdk",
                "tenon-serve",
                "tenon-test-host",
            ],
            _ => &[],
        }
    };
    for package in packages {
        let name = package["name"].as_str().expect("a package has a name");
        let dependencies = package["dependencies"].as_array().expect("there is a list");
        for dependency in dependencies.iter().filter_map(|dependency| dependency["name"].as_str()) {
            let ours = dependency.starts_with("tenon-") || dependency == "xtask";
            assert!(!ours || allowed(name).contains(&dependency), "{name} depends on {dependency}");
        }
    }
}

#[test]
fn crates_below_the_host_need_neither_wasmtime_nor_an_executor() {
    for (package, needed) in [
        ("tenon-config", "tenon-types"),
        ("tenon-confinement", "landlock"),
        ("tenon-store", "rusqlite"),
        ("tenon-call-approvals", "tenon-store"),
        ("tenon-runs", "tenon-store"),
        ("tenon-search", "rusqlite"),
    ] {
        let arguments = "tree --edges normal --prefix none --format {p} --offline --package";
        let tree = output_of(env!("CARGO"), "", &format!("{arguments} {package}"));
        let names = tree.lines().filter_map(|line| line.split(' ').next());
        let names: BTreeSet<&str> = names.collect();
        assert!(names.contains(needed), "{tree}");
        for name in ["tokio", "wasmtime", "rhai"] {
            assert!(!names.contains(name), "{package} needs {name}");
        }
    }
}

#[test]
fn each_template_is_in_the_package_of_the_command() {
    let packed = output_of(env!("CARGO"), "cli", "package --list --offline --allow-dirty");
    let packed: BTreeSet<&str> = packed.lines().collect();
    let templates = output_of("git", "cli", "ls-files templates");
    let templates: BTreeSet<&str> = templates.lines().collect();
    assert!(templates.contains("templates/shared/plugin.toml"));
    let missing: Vec<_> = templates.difference(&packed).collect();
    assert!(missing.is_empty(), "not in the package: {missing:?}");
}

/// The files of a folder of the repository that end so.
fn names_in(folder: &str, suffix: &str) -> Vec<String> {
    let folder = format!("{}/../{folder}", env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(folder).expect("the folder is there").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(suffix)).collect()
}

#[test]
fn the_page_on_tests_names_each_file() {
    let page = include_str!("../README.md");
    for name in names_in("tests/it", ".rs").iter().filter(|name| *name != "main.rs") {
        assert!(page.contains(&format!("`{name}`")), "tests/README.md does not name {name}");
    }
    for name in names_in("tests", ".rs").iter().filter(|name| *name != "build.rs") {
        assert!(page.contains(&format!("`tests/{name}`")), "tests/README.md does not name {name}");
    }
}

/// Every source file of the repository's own code, as one text.
fn sources() -> String {
    let files = output_of("git", "", "ls-files *.rs");
    let read = |path: &str| fs::read_to_string(format!("{ROOT}/{path}")).unwrap_or_default();
    files.lines().map(read).collect()
}

#[test]
fn the_glossary_names_only_what_there_is() {
    let sources = sources();
    let words: HashSet<&str> = sources.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let rows = include_str!("../../docs/design/glossary.md").lines().skip(7);
    for row in rows {
        let code = row.rsplit('|').nth(1).unwrap_or_default();
        for name in code.split('`').skip(1).step_by(2) {
            let is_path = name.contains('/');
            let last = name.rsplit("::").next().unwrap_or_default();
            assert!(is_path || words.contains(last), "{row}: there is no {name}");
        }
    }
}

/// What stands between backticks in the first column of the tables of a page, from a heading to the next.
fn rows_below(page: &str, heading: &str) -> BTreeSet<String> {
    let (_, section) = page.split_once(heading).expect(heading);
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next()).map(str::to_string).collect()
}

/// The texts in a function of the repository's, which is named by its first line.
fn texts_in(path: &str, function: &str) -> BTreeSet<String> {
    let source = fs::read_to_string(format!("{ROOT}/{path}")).expect(path);
    let (_, body) = source.split_once(function).expect(function);
    let body = body.split("\n    }\n").next().unwrap_or_default();
    body.split('"').skip(1).step_by(2).map(str::to_string).collect()
}

#[test]
fn the_page_on_errors_has_each_code() {
    let page = include_str!("../../docs/reference/errors.md");
    let contract = include_str!("../../wit/plugin/types.wit");
    let (_, cases) = contract.split_once("enum error-code {").expect("there are codes");
    let lines = cases.split('}').next().unwrap_or_default().lines().map(str::trim);
    let cases = lines.filter(|line| !line.starts_with("///"));
    let cases: BTreeSet<String> =
        cases.filter_map(|case| case.strip_suffix(',')).map(str::to_string).collect();
    assert_eq!(rows_below(page, "## Codes of plugins"), cases);

    let mut codes = texts_in("cli/src/error.rs", "fn code(&self) -> &'static str {");
    for file in ["host/src/call/mod.rs", "host/src/call/refusal.rs"] {
        codes.extend(texts_in(file, "pub fn code(&self) -> &'static str {"));
    }
    assert_eq!(rows_below(page, "## Codes of the host"), codes);

    let command = include_str!("../../cli/src/error.rs");
    let (_, exits) = command.split_once("Exit codes:\n").expect("there are exit codes");
    let exits = exits.split("\";").next().unwrap_or_default().lines();
    for (code, meaning) in exits.filter_map(|line| line.trim().split_once("  ")) {
        let row = format!("\n| {code} | {meaning} |");
        assert!(page.contains(&row), "docs/reference/errors.md has no row {row}");
    }
}

/// What one room takes of another, and where: `host/src/a.rs:3: use crate::b::C;`.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// What the rooms of a crate take of each other. A room is a file or a folder beside `lib.rs` or `main.rs`.
/// Tests are left out: they may look at more than what they test.
fn uses_of(source: &Path) -> Uses {
    let mut uses = Uses::new();
    for file in files_in(source) {
        let place = file.strip_prefix(source).expect("it is below").with_extension("");
        let mut module: Vec<String> =
            place.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if ["lib", "main"].contains(&module[0].as_str())
            || module.iter().any(|name| name.starts_with("fuzz"))
        {
            continue;
        }
        module.retain(|name| name != "mod");
        let text = fs::read_to_string(&file).expect("it is a text");
        let code: String = without_tests(&text)
            .lines()
            .map(|line| format!("{}\n", line.split("//").next().unwrap_or_default()))
            .collect();
        // As many `super` as there are modules around lead to the crate.
        for root in ["crate::".to_string(), "super::".repeat(module.len())] {
            for (at, found) in code.match_indices(&root) {
                for room in first_names(&code[at + found.len()..]) {
                    let line = code[..at].matches('\n').count();
                    let shown = code.lines().nth(line).unwrap_or_default().trim();
                    let shown = format!("{}:{}: {shown}", file.display(), line + 1);
                    let of_room = uses.entry(module[0].clone()).or_default();
                    of_room.entry(room).or_insert(shown);
                }
            }
        }
    }
    // What is no room is a name at the root of the crate.
    let rooms: BTreeSet<String> = uses.keys().cloned().collect();
    for (room, others) in &mut uses {
        others.retain(|other, _| other != room && rooms.contains(other));
    }
    uses
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there").flatten();
    let files = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => files_in(&path),
        path if path.extension().is_some_and(|end| end == "rs") => vec![path],
        _ => Vec::new(),
    });
    files
        .filter(|path| !path.ends_with("tests.rs") && !path.ends_with("key_rule_tests.rs"))
        .collect()
}

/// A file up to its tests.
fn without_tests(text: &str) -> &str {
    let tests = text.find("\nmod tests {").or_else(|| text.find("\nmod trials {"));
    &text[..tests.unwrap_or(text.len())]
}

/// The names that a path may begin with: `a` of `a::B`, and both of `{a::B, c}`.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    match rest.strip_prefix('{') {
        None => vec![name(rest)],
        Some(list) => {
            let mut depth = 1;
            let end = list.find(|c| {
                depth += match c {
                    '{' => 1,
                    '}' => -1,
                    _ => 0,
                };
                depth == 0
            });
            let mut depth = 0;
            let names = list[..end.unwrap_or(list.len())].split(',').filter_map(|part| {
                let found = (depth == 0).then(|| name(part));
                depth += part.matches('{').count() as i32 - part.matches('}').count() as i32;
                found
            });
            names.collect()
        }
    }
}

/// The rooms of a circle, from one of them back to it.
fn circle(uses: &Uses) -> Option<Vec<String>> {
    fn go(uses: &Uses, way: &mut Vec<String>, done: &mut BTreeSet<String>) -> Option<Vec<String>> {
        let here = way.last().expect("it begins somewhere").clone();
        for next in uses.get(&here).into_iter().flat_map(|others| others.keys()) {
            if let Some(at) = way.iter().position(|room| room == next) {
                return Some(way[at..].iter().chain([next]).cloned().collect());
            }
            if !done.contains(next) {
                way.push(next.clone());
                let found = go(uses, way, done);
                way.pop();
                if found.is_some() {
                    return found;
                }
            }
        }
        done.insert(here);
        None
    }
    let mut done = BTreeSet::new();
    uses.keys().find_map(|room| go(uses, &mut vec![room.clone()], &mut done))
}

#[test]
fn the_host_has_few_rooms() {
    let entries = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../host/src")).unwrap();
    let rooms: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    assert!((3..=8).contains(&rooms.len()), "eight rooms are enough for one floor: {rooms:?}");
}

#[test]
fn rooms_depend_on_each_other_in_one_direction() {
    for (source, least) in [
        ("host/types/src", 5),
        ("host/config/src", 15),
        ("host/src", 8),
        ("cli/src", 10),
        ("serve/src", 10),
    ] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(source);
        let uses = uses_of(&source);
        assert!(uses.len() >= least, "{} has rooms", source.display());
        if let Some(rooms) = circle(&uses) {
            let lines = rooms.windows(2).map(|pair| uses[&pair[0]][&pair[1]].clone());
            panic!("{} is a circle:\n{}", rooms.join(" -> "), lines.collect::<Vec<_>>().join("\n"));
        }
    }
}

/// Types that are generated for one version of the contract are no types of the host's: what another version
/// changes is changed there.
#[test]
fn only_capabilities_and_adapters_see_the_generated_types() {
    const MAY: [&str; 3] = ["capability/", "runtime/wasm/abi/", "runtime/wasm/stream.rs"];
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/src");
    let mut seen = 0;
    for file in files_in(&source) {
        let place = file.strip_prefix(&source).expect("it is below").to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("it is a text");
        let sees = text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == "bindings");
        let may = MAY.iter().any(|room| place.starts_with(room));
        assert!(may || !sees, "{place} sees the generated types");
        seen += usize::from(sees);
    }
    assert!(seen > 5, "the module has this name");
}

#[test]
fn a_circle_is_found() {
    let uses = |pairs: &[(&str, &str)]| {
        let mut uses = Uses::new();
        for (one, other) in pairs {
            uses.entry(other.to_string()).or_default();
            uses.entry(one.to_string()).or_default().insert(other.to_string(), String::new());
        }
        uses
    };
    assert_eq!(circle(&uses(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    let found = circle(&uses(&[("a", "b"), ("b", "c"), ("c", "b")])).expect("there is one");
    assert_eq!(found, ["b", "c", "b"]);
    assert_eq!(first_names("{a::{B, C}, d, e::F}"), ["a", "d", "e"]);
    assert_eq!(first_names("a::B;"), ["a"]);
}
