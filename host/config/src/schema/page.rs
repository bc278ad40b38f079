//! The tables of keys in the reference, which are made of the schemas.
//!
//! A page has a mark such as `<!-- keys: runtime -->` before each table. A key stands in the table of the longest mark
//! that it begins with. `TENON_BLESS=1` writes the tables.

use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

use super::keys::{FileSchema, Key};
use super::{PLUGIN, PROJECT};

const HEAD: &str = "| key | value | default | meaning |\n|---|---|---|---|\n";

#[test]
fn the_page_on_manifests_has_each_key() {
    check(PLUGIN, "manifest.md");
}

#[test]
fn the_page_on_projects_has_each_key() {
    check(PROJECT, "project.md");
}

fn check(schema: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    let text = std::fs::read_to_string(&path).expect("the page is there");
    let expected = with_tables(&FileSchema::parse(schema), &text);
    if std::env::var_os("TENON_BLESS").is_some() {
        std::fs::write(&path, &expected).expect("it can be written");
    }
    let text = std::fs::read_to_string(&path).expect("the page is there");
    assert!(
        text == expected,
        "docs/reference/{page} is to be, as TENON_BLESS=1 writes it:\n{expected}"
    );
}

/// A page with the tables that it must have.
fn with_tables(schema: &FileSchema, page: &str) -> String {
    let marks: Vec<&str> = page.lines().filter_map(mark).collect();
    let mut tables: Vec<String> = marks.iter().map(|_| HEAD.to_string()).collect();
    for key in schema.keys() {
        let is_row = schema.table(&key.schema).is_none_or(|table| {
            let is_closed =
                table["additionalProperties"] == false || table["properties"].is_object();
            !is_closed && schema.table(&table["additionalProperties"]).is_none()
        });
        let path = key.path();
        let fits = |mark: &str| {
            path.strip_prefix(mark)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let mark = (0..marks.len()).filter(|i| fits(marks[*i])).max_by_key(|i| marks[*i].len());
        let mark = mark.unwrap_or_else(|| panic!("the page has no mark for `{path}`"));
        let is_mentioned = is_mentioned(&key);
        if (is_row || is_mentioned) && !is_within_mentioned(&key) {
            tables[mark].push_str(&row(schema, &key));
        }
    }
    let mut tables = tables.into_iter();
    let mut written = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        written.push_str(line);
        written.push('\n');
        if mark(line).is_some() {
            while lines.next_if(|line| line.starts_with('|')).is_some() {}
            written.push_str(&tables.next().unwrap_or_default());
        }
    }
    written
}

fn mark(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- keys: ")?.strip_suffix(" -->")
}

/// Tables whose keys stand elsewhere: these are those of `[limits]` and `[capabilities]`.
fn is_mentioned(key: &Key) -> bool {
    key.steps.len() > 1
        && key.steps.last().is_some_and(|step| step == "limits" || step == "capabilities")
}

fn is_within_mentioned(key: &Key) -> bool {
    let outer = key.steps[..key.steps.len() - 1].iter().skip(1);
    outer.into_iter().any(|step| step == "limits" || step == "capabilities")
}

fn row(schema: &FileSchema, key: &Key) -> String {
    let of_key = schema.resolve(&key.schema);
    let default = of_key.get("default").map(|value| format!("`{}`", written(value)));
    let default = default.unwrap_or_default();
    let (kind, meaning) = (kind(schema, &key.schema), key.description());
    format!("| `{}` | {kind} | {default} | {meaning} |\n", key.path()).replace("|  |", "| |")
}

/// What a value can be, with an example where the default is none.
fn kind(schema: &FileSchema, of_key: &Value) -> String {
    let resolved = schema.resolve(of_key);
    let mut kind = match of_key["$ref"].as_str() {
        Some("#/$defs/duration" | "#/$defs/durationOrZero") => "duration".to_string(),
        _ => kind_of(schema, &resolved),
    };
    if let Some(example) = resolved["examples"].get(0) {
        let _ = write!(kind, ", such as `{}`", written(example));
    }
    kind
}

fn kind_of(schema: &FileSchema, resolved: &Value) -> String {
    if let Some(values) = resolved["enum"].as_array() {
        let values: Vec<String> =
            values.iter().map(|value| format!("`{}`", written(value))).collect();
        return values.join(", ");
    }
    match resolved["type"].as_str() {
        Some("string") => "text".into(),
        Some("boolean") => "`true`, `false`".into(),
        Some("integer") => match resolved["minimum"].as_i64() {
            Some(minimum @ 0..) => format!("whole number from {minimum}"),
            _ => "whole number".into(),
        },
        Some("number") => "number".into(),
        Some("array") => {
            let items = schema.resolve(&resolved["items"]);
            if items["enum"].is_array() {
                return format!("list of {}", kind_of(schema, &items));
            }
            match (items["type"].as_str(), items["anyOf"].is_array()) {
                (Some("string"), _) => "list of texts".into(),
                (Some("array"), _) => "list of lists of texts".into(),
                (None, true) => "list of texts or tables".into(),
                _ => "list of tables".into(),
            }
        }
        Some(_) => "table".into(),
        None if resolved["anyOf"].is_array() => "text or table".into(),
        None => "any value".into(),
    }
}

/// A value as TOML has it.
fn written(value: &Value) -> String {
    toml::Value::try_from(value).expect("TOML has such values").to_string()
}
