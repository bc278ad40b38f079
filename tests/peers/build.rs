//! Builds the guests, in one profile, and tells the program where they are.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

/// A guest: its package, its target, and the variable that names its file.
const GUESTS: [(&str, &str, &str); 2] = [
    ("echo-component", "wasm32-wasip2", "ECHO_COMPONENT"),
    ("echo-extism", "wasm32-unknown-unknown", "ECHO_EXTISM"),
];

fn main() -> Result<(), Box<dyn Error>> {
    for input in ["guests", "Cargo.toml", "Cargo.lock", "../../sdk/src", "../../wit"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let folder = PathBuf::from(env::var("OUT_DIR")?).join("guests");
    for (package, target, variable) in GUESTS {
        let built = Command::new(env::var("CARGO")?)
            .args(["build", "--locked", "--profile", "guest", "--package", package])
            .args(["--target", target, "--target-dir"])
            .arg(&folder)
            // What is set for the host is not meant for a guest.
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS")
            .env_remove("RUSTC_WRAPPER")
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .status()?;
        if !built.success() {
            return Err(format!("the guest {package} was not built").into());
        }
        let file = format!("{}.wasm", package.replace('-', "_"));
        let path = folder.join(target).join("guest").join(file);
        println!("cargo::rustc-env={variable}={}", path.display());
    }
    Ok(())
}
