//! `cargo xtask bench`: the benchmark of the host, in release mode.

use anyhow::Result;

use crate::cargo;

pub(crate) fn run(arguments: Vec<String>) -> Result<()> {
    crate::setup::run()?;
    crate::run(&mut cargo(
        ".",
        &["build", "--release", "--package", "tenon-cli", "--package", "tenon-tests", "--bins"],
    ))?;
    let mut command = cargo(".", &["bench", "--package", "tenon-tests", "--bench", "costs", "--"]);
    crate::run(command.args(arguments))
}
