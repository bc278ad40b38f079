//! `cargo xtask setup`: the targets that guests are compiled for, and on request what tests need besides.

use anyhow::{Result, bail};
use std::process::Command;

/// Plugins are components for WASI 0.2; the bridge is built without any WASI.
const TARGETS: [&str; 2] = ["wasm32-wasip2", "wasm32-unknown-unknown"];

pub(crate) fn run_task(arguments: &[String]) -> Result<()> {
    run()?;
    match arguments {
        [] => Ok(()),
        [flag] if flag == "--tests" => crate::install::everything(),
        _ => bail!("`setup` knows nothing but `--tests`"),
    }
}

pub(crate) fn run() -> Result<()> {
    let listed = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let listed = listed.unwrap_or_default();
    let missing: Vec<_> =
        TARGETS.into_iter().filter(|target| !listed.lines().any(|line| line == *target)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    crate::run(
        Command::new("rustup").args(["target", "add"]).args(missing).current_dir(crate::root()),
    )
}
