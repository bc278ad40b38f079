//! `cargo xtask fuzz`: the targets of `fuzz/`, in one of two ways.
//!
//! Without more they run as tests of the code that they are about, with inputs that are made at random of seeds and
//! words: what all tests are built from is enough. With `--guided`, cargo-fuzz runs them, and what
//! an input reaches says what is made of it. That is for longer runs: it builds wasmtime and all
//! else anew, with counters in it, which takes minutes.

use anyhow::{Context, Result};
use std::fs;

use crate::{cargo, root, run};

/// How long each target runs where nothing else is said.
const SECONDS: &str = "20";

pub(crate) fn run_task(arguments: Vec<String>) -> Result<()> {
    let (flags, others): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument == "--guided");
    let seconds = others.first().map_or(SECONDS, String::as_str);
    seconds.parse::<u64>().with_context(|| format!("`{seconds}` is no number of seconds"))?;
    if flags.is_empty() { at_random(seconds) } else { guided(seconds) }
}

/// Runs the tests that are these targets, of the host and of the guests. All of the workspace is
/// named, so that what they are built from has the features that it has for all tests.
fn at_random(seconds: &str) -> Result<()> {
    let tests = ["test", "--workspace", "--lib", "--locked", "--", "fuzzing::", "--nocapture"];
    for folder in [".", "guests"] {
        run(cargo(folder, &tests).env("TENON_FUZZ_SECONDS", seconds))?;
    }
    Ok(())
}

/// Runs cargo-fuzz, which `cargo install --locked cargo-fuzz` installs. It needs no nightly toolchain
/// without a sanitizer, and safe code has little use for one.
fn guided(seconds: &str) -> Result<()> {
    let time = format!("-max_total_time={seconds}");
    let mut targets: Vec<String> = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        targets.extend(path.file_stem().and_then(|name| name.to_str()).map(String::from));
    }
    targets.sort();
    for target in targets {
        let corpus = format!("fuzz/corpus/{target}");
        fs::create_dir_all(root().join(&corpus))?;
        let seeds = format!("fuzz/seeds/{target}");
        let words = format!("-dict=fuzz/dictionaries/{target}.dict");
        let how = ["fuzz", "run", "--sanitizer", "none", &target, &corpus, &seeds, "--"];
        run(cargo(".", &how).args([&time, &words]))?;
    }
    Ok(())
}
