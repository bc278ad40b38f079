//! Which test holds which duty of an MCP client. The duties stand in `docs/reference/mcp-duties.md`, a row
//! each; the same rows, with what the specification says of each, are those of `MCP.md` in the folder
//! `shared` beside a checkout, where there is one.
//!
//! A test names the rows that it holds in the line above its attributes: `// MCP.md: A9, A13`. The page
//! names the tests; `TENON_BLESS=1` writes those that there are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How many rows each section has. One without a number is a row by itself.
const SECTIONS: [(char, usize); 8] =
    [('A', 13), ('B', 7), ('C', 15), ('D', 7), ('E', 15), ('F', 6), ('G', 5), ('H', 0)];

/// Rows that no test can hold, and why.
const EXEMPT: [(&str, &str); 0] = [];

const MARK: &str = "// MCP.md: ";

/// Where tests are that may name a row.
const SOURCES: [&str; 5] = ["guests", "host/config/src", "host/src", "host/types/src", "tests"];

fn rows() -> Vec<String> {
    let rows = SECTIONS.into_iter().flat_map(|(section, count)| match count {
        0 => vec![section.to_string()],
        count => (1..=count).map(|row| format!("{section}{row}")).collect(),
    });
    rows.collect()
}

fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in a folder of it")
}

/// The Rust files in a folder, but for what was built there.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("the folder is there").map(|entry| entry.unwrap());
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

/// The rows that the tests of a file name, each with the test. What names some and is no test is told.
fn named(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut named = Vec::new();
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        let Some(ids) = line.strip_prefix(MARK) else { continue };
        let mut is_test = false;
        while let Some(attribute) = lines.next_if(|line| line.starts_with("#[")) {
            is_test |= attribute.starts_with("#[test]") || attribute.starts_with("#[tokio::test");
        }
        let test = lines.next().and_then(|line| line.split_once("fn ")?.1.split_once('('));
        let Some((test, _)) = test else { return Err(format!("no test follows `{line}`")) };
        // Or one of those that are run for every kind of plugin, whose names a macro lists.
        if !is_test && !text.lines().any(|line| line.trim() == format!("{test},")) {
            return Err(format!("`{test}` is no test"));
        }
        named.extend(ids.split(", ").map(|id| (id.to_string(), test.to_string())));
    }
    Ok(named)
}

#[test]
fn marks_are_read_where_they_stand_above_a_test() {
    let mark = |ids: &str| format!("{MARK}{ids}");
    let text = format!(
        "    {}\n    #[tokio::test(flavor = \"x\")]\n    async fn one() {{\n    // {MARK}C1\n\n{}\n#[test]\n#[cfg(unix)]\nfn two() {{",
        mark("A1, B2"),
        mark("A1")
    );
    let expected = [("A1", "one"), ("B2", "one"), ("A1", "two")];
    assert_eq!(named(&text).unwrap(), expected.map(|(id, test)| (id.into(), test.into())));
    assert!(named(&mark("A1\nfn helper() {")).is_err());
    assert!(named(&mark("A1\nlet x = 1;")).is_err());
    assert_eq!(named(&mark("A1\nasync fn each() {}\nall! {\n    each,\n}")).unwrap().len(), 1);
}

#[test]
fn every_duty_has_a_test_that_names_it() {
    let mut files = Vec::new();
    SOURCES.iter().for_each(|folder| sources(&checkout().join(folder), &mut files));
    let mut held: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("it is text");
        let named = named(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        for (id, test) in named {
            held.entry(id).or_default().push(format!("`{test}`"));
        }
    }
    let rows = rows();
    let unknown: Vec<_> = held.iter().filter(|(id, _)| !rows.contains(id)).collect();
    assert!(unknown.is_empty(), "SECTIONS here has no such rows: {unknown:?}");
    for (id, why) in EXEMPT {
        let other = held.insert(id.into(), vec![why.into()]);
        assert_eq!(other, None, "{id} is exempt");
    }
    let nobodys: Vec<_> = rows.iter().filter(|id| !held.contains_key(*id)).collect();
    assert!(nobodys.is_empty(), "no test names {nobodys:?}");

    let page = checkout().join("docs/reference/mcp-duties.md");
    let text = fs::read_to_string(&page).expect("the documentation is there");
    let mut told = Vec::new();
    let mut expected = String::new();
    let is_id = |id: &str| {
        let digits = id.strip_prefix(|letter: char| letter.is_ascii_uppercase());
        digits.is_some_and(|digits| digits.chars().all(|digit| digit.is_ascii_digit()))
    };
    for line in text.lines() {
        let cells: Vec<&str> = line.split(" | ").collect();
        match (cells.first().and_then(|id| id.strip_prefix("| ")), cells.get(1)) {
            (Some(id), Some(duty)) if held.contains_key(id) => {
                told.push(id.to_string());
                let tests = held[id].join(", ");
                expected.push_str(&format!("| {id} | {duty} | {tests} |\n"));
            }
            (Some(id), Some(_)) if is_id(id) => panic!("no test names {id}"),
            _ => expected.push_str(&format!("{line}\n")),
        }
    }
    assert_eq!(told, rows, "{} has these rows", page.display());
    if std::env::var_os("TENON_BLESS").is_some() {
        fs::write(&page, &expected).expect("it can be written");
        return;
    }
    for (line, expected) in text.lines().zip(expected.lines()) {
        assert_eq!(line, expected, "in {}; TENON_BLESS=1 writes it", page.display());
    }
}
