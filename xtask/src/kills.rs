//! `cargo xtask kills`: commands that are killed again and again, far more often than in a run of all tests.

use anyhow::{Context, Result};

use crate::{cargo, run};

/// How often one is killed where nothing else is said.
const KILLS: &str = "1000";

/// The test that kills them.
const TEST: &str = "nothing_is_done_twice_by_processes_that_are_killed";

pub(crate) fn run_task(arguments: Vec<String>) -> Result<()> {
    let kills = arguments.first().map_or(KILLS, String::as_str);
    kills.parse::<u64>().with_context(|| format!("`{kills}` is no number of kills"))?;
    let seed = arguments.get(1);
    if let Some(seed) = seed {
        seed.parse::<u64>().with_context(|| format!("`{seed}` is no seed"))?;
    }
    crate::setup::run()?;
    // All of the workspace is named, so that the test is the one that was built with the others.
    let replicas = ["test", "--workspace", "--locked", "--test", "replicas", "--"];
    let mut test = cargo(".", &replicas);
    test.args(["--exact", TEST]).env("TENON_KILLS", kills);
    if let Some(seed) = seed {
        test.env("TENON_KILLS_SEED", seed);
    }
    run(&mut test)
}
