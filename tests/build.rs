//! Builds the guests, and writes down where each is.
//!
//! The names come out as private constants: a guest that no test mentions is dead code, which the
//! tests deny.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

const TARGET: &str = "wasm32-wasip2";

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("..").canonicalize()?;
    let guests = root.join("guests");
    for input in ["guests", "sdk", "wit"] {
        watch(&root.join(input))?;
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&guests)? {
        let folder = entry?.path();
        // Guests that are plugins by themselves, which the bridge and its client are not.
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        if manifest.contains("cdylib") && !folder.ends_with("mcp-bridge") {
            names.extend(folder.file_name().and_then(|name| name.to_str()).map(str::to_string));
        }
    }
    names.sort();
    let target = guests.join("target");
    let mut command = Command::new(env::var("CARGO")?);
    command
        .args(["build", "--release", "--locked", "--target", TARGET, "--target-dir"])
        .arg(&target)
        .current_dir(&guests)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    for name in &names {
        command.args(["--package", name]);
    }
    if !command.status()?.success() {
        return Err(format!(
            "the guests were not built; if the target is missing, `rustup target add {TARGET}` or \
             `cargo xtask setup` installs it"
        )
        .into());
    }
    let mut constants = String::new();
    for name in names {
        let name = name.replace('-', "_");
        let path = target.join(TARGET).join("release").join(format!("{name}.wasm"));
        writeln!(constants, "pub(crate) const {}: &str = {path:?};", name.to_uppercase())?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("guests.rs"), constants)?;
    Ok(())
}

/// Has this run again when a source below changes. Build folders are left out.
fn watch(path: &Path) -> Result<(), Box<dyn Error>> {
    if path.ends_with("target") {
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
