//! Builds the bridge to MCP servers, which the crate embeds.
//!
//! The bridge is compiled for `wasm32-unknown-unknown` and made a component here, and not for
//! `wasm32-wasip2`: that way it imports the interfaces of its world and no WASI at all.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("..").canonicalize()?;
    let guests = root.join("guests");
    for input in
        ["guests/mcp-bridge", "guests/mcp-client", "guests/Cargo.toml", "guests/Cargo.lock", "wit"]
    {
        println!("cargo::rerun-if-changed={}", root.join(input).display());
    }
    let module = build(&guests)?;
    let component = wit_component::ComponentEncoder::default()
        .module(&fs::read(&module)?)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| format!("{} cannot be made a component: {error:#}", module.display()))?;
    let path = PathBuf::from(env::var("OUT_DIR")?).join("mcp_bridge.wasm");
    fs::write(&path, component)?;
    println!("cargo::rustc-env=TENON_MCP_BRIDGE={}", path.display());
    Ok(())
}

fn build(guests: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = guests.join("target");
    let status = Command::new(env::var("CARGO")?)
        .args(["build", "--release", "--locked", "--target", TARGET, "--package", "mcp-bridge"])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(guests)
        // What is set for the host is not meant for a guest.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status()?;
    if !status.success() {
        return Err(format!(
            "the MCP bridge was not built; if the target is missing, `rustup target add {TARGET}` \
             or `cargo xtask setup` installs it"
        )
        .into());
    }
    Ok(target.join(TARGET).join("release/mcp_bridge.wasm"))
}
