//! `cargo xtask package`: the crates as a registry gets them. Those that embed components bring them along, so that
//! whoever depends on them needs no target of WebAssembly. Each is built from its package alone.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::{Package, cargo, packages, root, run};

/// The crates that embed components, by their folders.
const EMBEDDING: [(&str, &str); 2] = [("host", "tenon-host"), ("conformance", "tenon-conformance")];

pub(crate) fn run_task() -> Result<()> {
    crate::setup::run()?;
    bring_components()?;
    forget_unpacked()?;
    // The components are in no commit.
    let mut package = cargo(".", &["package", "--workspace", "--locked", "--allow-dirty"]);
    for name in unpublished()? {
        package.args(["--exclude", &name]);
    }
    run(&mut package)
}

/// Removes what cargo has unpacked of these crates before, in folders that it names `-HASH`, and what it knows of having
/// built it. It does both only once for each version, and the crates change without a new one.
fn forget_unpacked() -> Result<()> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let sources = home.map(|home| home.join("registry/src"));
    let sources = sources.iter().flat_map(|folder| entries(folder));
    let sources = sources.filter(|path| name_of(path).starts_with('-'));
    let unpacked = sources.flat_map(|folder| entries(&folder));
    let built = entries(&root().join("target/debug/.fingerprint"));
    let ours: Vec<String> = packages()?.into_iter().map(|package| package.name).collect();
    for path in unpacked.chain(built) {
        let name = name_of(&path);
        let is_of = |package: &String| {
            let rest = name.strip_prefix(package.as_str()).and_then(|rest| rest.strip_prefix('-'));
            rest.is_some_and(|rest| !rest.contains('-'))
        };
        if ours.iter().any(is_of) {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

/// What is in a folder; nothing where there is none.
fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Builds the components, and puts them into the folders of the crates that embed them.
fn bring_components() -> Result<()> {
    let mut build = cargo(".", &["build", "--locked", "--message-format=json"]);
    build.args(EMBEDDING.iter().flat_map(|(_, name)| ["--package", *name]));
    let output = build.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{build:?} ended with {}", output.status);
    let messages: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|message: &Value| message["reason"] == "build-script-executed")
        .collect();
    for (folder, name) in EMBEDDING {
        let is_of = |message: &&Value| {
            let id = message["package_id"].as_str().unwrap_or_default();
            id.contains(&format!("#{name}@"))
        };
        let message = messages.iter().find(is_of);
        let built = message.and_then(|message| message["out_dir"].as_str());
        let built = built.with_context(|| format!("cargo does not say where {name} is built"))?;
        copy_components(Path::new(built), &root().join(folder).join("components"))?;
    }
    Ok(())
}

/// Replaces what is in one folder by the components of another.
fn copy_components(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if let Some(name) =
            path.file_name().filter(|_| path.extension().is_some_and(|of| of == "wasm"))
        {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// The crates that are in no registry.
fn unpublished() -> Result<Vec<String>> {
    let is_unpublished = |package: &Package| {
        package.publish.as_ref().is_some_and(|registries| registries.is_empty())
    };
    let unpublished = packages()?.into_iter().filter(is_unpublished);
    Ok(unpublished.map(|package| package.name).collect())
}
