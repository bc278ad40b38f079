// How guests are built, and what they say of themselves. The build scripts of `host`, `tests` and
// `conformance` include this file: all of them build into one folder, with the same flags, so that
// nothing is built twice.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tenon_contract::{PluginMetadata, describe};

/// The root of the repository.
fn root() -> Result<PathBuf, Box<dyn Error>> {
    Ok(Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("..").canonicalize()?)
}

/// Returns the folder of the components that a package from a registry brings along, as `cargo xtask package`
/// makes it: there are no guests to build then, and nobody needs a target of WebAssembly.
#[allow(dead_code, reason = "the tests are in no package")]
fn packaged() -> Result<Option<PathBuf>, Box<dyn Error>> {
    let components = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("components");
    let is_packaged = components.is_dir() && !root()?.join("guests/building.rs").exists();
    Ok(is_packaged.then_some(components))
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

/// What the packages of the guests say of themselves, by their names.
fn packages() -> Result<BTreeMap<String, PluginMetadata>, Box<dyn Error>> {
    let output = Command::new(env::var("CARGO")?)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root()?.join("guests"))
        .output()?;
    let metadata = String::from_utf8(output.stdout)?;
    Ok(PluginMetadata::of_packages(&metadata)?)
}

/// Writes the component of a guest to a file, with what its package says of it and documentation: as
/// `tenon build` would.
fn write_described(component: &[u8], about: Option<&PluginMetadata>, path: &Path) -> Result<(), Box<dyn Error>> {
    let described = describe(component, about.unwrap_or(&PluginMetadata::default()))
        .map_err(|error| format!("{} cannot be described: {error}", path.display()))?;
    Ok(fs::write(path, described)?)
}

/// The guests that are plugins by themselves, which those are not that the host embeds.
#[allow(dead_code, reason = "who builds what is embedded builds nothing else")]
fn plugins() -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root()?.join("guests"))? {
        let folder = entry?.path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        let embedded = ["mcp-bridge", "remote-bridge", "schema-checker"];
        let is_embedded = embedded.iter().any(|name| folder.ends_with(name));
        if manifest.contains("cdylib") && !is_embedded {
            names.extend(folder.file_name().and_then(|name| name.to_str()).map(str::to_string));
        }
    }
    names.sort();
    Ok(names)
}

/// Has the build script run again when a source below changes. Build folders and tests are left out. Cargo
/// looks at everything below a folder that it is told of, so a folder with one of them is not named
/// itself. Returns whether all below is watched.
fn watch(path: &Path) -> Result<bool, Box<dyn Error>> {
    if path.ends_with("target") || path.ends_with("tests") {
        return Ok(false);
    }
    let mut is_whole = true;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            is_whole &= watch(&entry?.path())?;
        }
    }
    if is_whole {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    Ok(is_whole)
}
