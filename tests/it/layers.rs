//! The arrows between crates point one way.

use serde_json::Value;
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
