//! `cargo xtask bench`: the benchmarks of the host, of how its costs grow, and of what authors wait for, in release mode.

use anyhow::Result;

use crate::cargo;

pub(crate) fn run(mut arguments: Vec<String>) -> Result<()> {
    crate::setup::run()?;
    crate::run(&mut cargo(
        ".",
        &["build", "--release", "--package", "tenon-cli", "--package", "tenon-tests", "--bins"],
    ))?;
    let is_for_authors = arguments.first().is_some_and(|first| first == "authoring");
    let is_of_growth = arguments.first().is_some_and(|first| first == "curves");
    let name = match (is_for_authors, is_of_growth) {
        (true, _) => "authoring",
        (_, true) => "curves",
        _ => "costs",
    };
    if is_of_growth {
        // What follows names a group of curves.
        arguments.remove(0);
    }
    let mut command = cargo(".", &["bench", "--package", "tenon-tests", "--bench", name, "--"]);
    if is_for_authors {
        // A language whose package is not there is left out, which its row says.
        for (variable, folder) in crate::install::for_tests() {
            command.envs(folder.ok().map(|folder| (variable, folder)));
        }
    }
    crate::run(command.args(arguments))
}
