//! `cargo xtask bench` and `cargo xtask counts`: the benchmarks, and what is compared of them.

use anyhow::Result;

use crate::{cargo, install, setup};

/// A program of benchmarks besides `costs`, by the first argument that asks for it. What follows that names a part of it.
const OTHERS: [&str; 2] = ["authoring", "curves"];

/// Runs a benchmark in release mode.
pub(crate) fn run(mut arguments: Vec<String>) -> Result<()> {
    setup::run()?;
    crate::run(&mut cargo(
        ".",
        &["build", "--release", "--package", "tenon-cli", "--package", "tenon-tests", "--bins"],
    ))?;
    let first = arguments.first();
    let other = OTHERS.into_iter().find(|other| first.is_some_and(|first| first == other));
    let name = other.unwrap_or("costs");
    let mut command = cargo(".", &["bench", "--package", "tenon-tests", "--bench", name, "--"]);
    if other.is_some() {
        arguments.remove(0);
    }
    if name == "authoring" {
        // A language whose package is not there is left out, which its row says.
        for (variable, folder) in install::for_tests() {
            command.envs(folder.ok().map(|folder| (variable, folder)));
        }
    }
    crate::run(command.args(arguments))
}

/// Counts what the paths do that are taken most often, and compares it with what is written down; or writes it down, with
/// `--update`. The build is that of the tests.
pub(crate) fn counts(arguments: Vec<String>) -> Result<()> {
    setup::run()?;
    let mut command = cargo(".", &["test", "--workspace", "--bench", "counts", "--"]);
    command.arg("--check");
    crate::run(command.args(arguments))
}
