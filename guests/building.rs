// How guests are built. The build scripts of `host`, `tests` and `conformance` include this file: all
// of them build into one folder, with the same flags, so that nothing is built twice.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
fn root() -> Result<PathBuf, Box<dyn Error>> {
    Ok(Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("..").canonicalize()?)
}

/// Builds guests for a target. Gives the folder in which they are.
fn build(target: &str, packages: &[String]) -> Result<PathBuf, Box<dyn Error>> {
    let guests = root()?.join("guests");
    let folder = guests.join("target");
    let mut command = Command::new(env::var("CARGO")?);
    command
        .args(["build", "--release", "--locked", "--target", target, "--target-dir"])
        .arg(&folder)
        .current_dir(&guests)
        // What is set for the host is not meant for a guest.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    for package in packages {
        command.args(["--package", package]);
    }
    if !command.status()?.success() {
        return Err(format!(
            "the guests were not built; if the target is missing, `rustup target add {target}` or \
             `cargo xtask setup` installs it"
        )
        .into());
    }
    Ok(folder.join(target).join("release"))
}

/// The guests that are plugins by themselves, which the bridge and its client are not.
#[allow(dead_code, reason = "who builds the bridge builds nothing else")]
fn plugins() -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root()?.join("guests"))? {
        let folder = entry?.path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        if manifest.contains("cdylib") && !folder.ends_with("mcp-bridge") && !folder.ends_with("remote-bridge") {
            names.extend(folder.file_name().and_then(|name| name.to_str()).map(str::to_string));
        }
    }
    names.sort();
    Ok(names)
}

/// Has the build script run again when a source below changes. Build folders and tests are left out.
fn watch(path: &Path) -> Result<(), Box<dyn Error>> {
    if path.ends_with("target") || path.ends_with("tests") {
        return Ok(());
    }
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            watch(&entry?.path())?;
        }
    }
    println!("cargo::rerun-if-changed={}", path.display());
    Ok(())
}
