//! The repository itself: crates depend on each other in one direction, and pages name what there is.

use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::process::Command;

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo starts");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let allowed = |name: &str| -> &[&str] {
        match name {
            "tenon-cli" => &["tenon-contract", "tenon-host", "tenon-inputs"],
            "tenon-conformance" => &["tenon-contract", "tenon-host"],
            "tenon-harness" => &["tenon-host"],
            "tenon-host" => &["tenon-contexts", "tenon-contract", "tenon-inputs"],
            "tenon-sdk" => &["tenon-contexts", "tenon-sdk-macros"],
            "tenon-tests" => {
                &["tenon-conformance", "tenon-contract", "tenon-harness", "tenon-host", "tenon-sdk"]
            }
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
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let output = Command::new("git").args(["ls-files", "*.rs"]).current_dir(root).output();
    let files = String::from_utf8(output.expect("git starts").stdout).expect("paths are UTF-8");
    let read = |path: &str| fs::read_to_string(format!("{root}/{path}")).unwrap_or_default();
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
