//! `cargo xtask soak`: `tenon serve` under load for a long time.

use anyhow::{Context, Result};
use std::process::Command;

use crate::{cargo, run};

/// How long it takes where nothing else is said.
const SECONDS: &str = "600";

/// The programs that it consists of.
const PROGRAMS: [&str; 3] = ["tenon", "counting-server", "soak"];

pub(crate) fn run_task(arguments: Vec<String>) -> Result<()> {
    let seconds = arguments.first().map_or(SECONDS, String::as_str);
    seconds.parse::<u64>().with_context(|| format!("`{seconds}` is no number of seconds"))?;
    crate::setup::run()?;
    // All of the workspace is named, so that these programs are those that the tests are built with.
    let mut build = cargo(".", &["build", "--workspace", "--locked"]);
    run(build.args(PROGRAMS.iter().flat_map(|program| ["--bin", *program])))?;
    // It is beside this program, and not run by cargo, which builds a package on its own with other features.
    let own = std::env::current_exe()?.with_file_name("soak");
    run(Command::new(own).arg(seconds))
}
