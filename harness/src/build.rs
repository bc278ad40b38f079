//! Building the package of a plugin.

use serde_json::Value;
use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-wasip2";

/// Why a package was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildFailed {
    /// This is no test that `cargo` runs.
    #[error("`CARGO_MANIFEST_DIR` is not set: run the test with cargo, or name the component")]
    NoPackage,
    /// There is no such folder, or no cargo.
    #[error("the package cannot be built")]
    NotRun(#[from] io::Error),
    /// The package has errors, or the target is missing.
    #[error(
        "the package does not build for {TARGET}; where the target is missing, `rustup target add \
         {TARGET}` installs it\n{0}"
    )]
    Errors(String),
    /// It has nothing to run.
    #[error(
        "the package makes no component: its Cargo.toml needs `crate-type = [\"cdylib\"]` under [lib]"
    )]
    NoComponent,
}

/// The package whose tests run.
pub(crate) fn tested() -> Result<PathBuf, BuildFailed> {
    env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).ok_or(BuildFailed::NoPackage)
}

/// Builds the package of a folder, and gives its component.
pub(crate) fn component(package: &Path) -> Result<PathBuf, BuildFailed> {
    // As cargo names it in what it says.
    let package = package.canonicalize()?;
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--target", TARGET])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(&package)
        // What is set for the test is not meant for the plugin.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .output()?;
    if !output.status.success() {
        return Err(BuildFailed::Errors(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let manifest = package.join("Cargo.toml");
    let messages = String::from_utf8_lossy(&output.stdout);
    made(&messages, &manifest).ok_or(BuildFailed::NoComponent)
}

/// The component of a package, among what cargo says that it has made.
fn made(messages: &str, manifest: &Path) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let own = messages.filter(|message| {
        message["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest)
    });
    let files =
        own.flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    let mut paths = files.filter_map(|file| file.as_str().map(PathBuf::from));
    paths.find(|path| path.extension().is_some_and(|extension| extension == "wasm"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_component_of_the_package_is_found_among_those_of_others() {
        let artifact = |folder: &str, file: &str| {
            let manifest = format!("/{folder}/Cargo.toml");
            json!({ "reason": "compiler-artifact", "manifest_path": manifest, "filenames": [file] })
        };
        let messages = [
            artifact("other", "/target/other.wasm"),
            artifact("own", "/target/build-script"),
            artifact("own", "/target/own.wasm"),
            json!({ "reason": "build-finished", "success": true }),
        ];
        let messages = messages.map(|message| message.to_string()).join("\nnoise\n");
        let found = |manifest| made(&messages, Path::new(manifest));
        assert_eq!(found("/own/Cargo.toml"), Some("/target/own.wasm".into()));
        assert_eq!(found("/none/Cargo.toml"), None);
    }
}
