//! `cargo xtask fuzz`: the targets of `fuzz/`, in one of two ways.
//!
//! Without more they run as tests of the code that they are about, with inputs that are made at random of seeds and
//! words: what all tests are built from is enough. With `--guided`, cargo-fuzz runs them, and what
//! an input reaches says what is made of it. That builds wasmtime and all else anew, with counters in it.
//! What it finds to reach more is kept for the next run, in `fuzz/corpus` or where [`CORPUS`] says.
//!
//! With `--keep TARGET FILE`, an input that a target panics with is made as small as can be, and becomes
//! one of its seeds: from then on every run of the tests tries it.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{cargo, install, on_all_cores, root, run};

/// How long each target runs where nothing else is said.
const SECONDS: &str = "20";

/// Names the folder in which guided runs keep their inputs.
const CORPUS: &str = "TENON_FUZZ_CORPUS";

pub(crate) fn run_task(arguments: Vec<String>) -> Result<()> {
    if let [flag, target, file] = &arguments[..]
        && flag == "--keep"
    {
        return keep(target, Path::new(file));
    }
    let (flags, others): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument == "--guided");
    let seconds = others.first().map_or(SECONDS, String::as_str);
    seconds.parse::<u64>().with_context(|| format!("`{seconds}` is no number of seconds"))?;
    if flags.is_empty() { at_random(seconds) } else { guided(seconds) }
}

/// Runs the tests that are these targets, of the host, the command and the guests. All of the workspace is
/// named, so that what they are built from has the features that it has for all tests.
fn at_random(seconds: &str) -> Result<()> {
    let tests = ["test", "--workspace", "--lib", "--bins", "--locked"];
    let mut left: BTreeSet<String> = targets()?.into_iter().collect();
    for folder in [".", "guests"] {
        let mut command = cargo(folder, &tests);
        command.args(["--", "fuzzing::", "--nocapture"]).env("TENON_FUZZ_SECONDS", seconds);
        let mut tests = command.stdout(Stdio::piped()).spawn()?;
        for line in BufReader::new(tests.stdout.take().context("it has an output")?).lines() {
            let line = line?;
            println!("{line}");
            // As it is said there: `mcp_json: 300 inputs in 1.2s`.
            left.retain(|target| {
                !line.starts_with(&format!("{target}: ")) || !line.contains(" in ")
            });
        }
        let status = tests.wait()?;
        ensure!(status.success(), "{command:?} ended with {status}");
    }
    ensure!(left.is_empty(), "targets that no test runs: {left:?}");
    Ok(())
}

/// Runs cargo-fuzz. It needs no nightly toolchain without a sanitizer, and safe code has little use for
/// one.
fn guided(seconds: &str) -> Result<()> {
    let corpus = std::env::var_os(CORPUS).map_or_else(|| root().join("fuzz/corpus"), PathBuf::from);
    let time = format!("-max_total_time={seconds}");
    run(&mut cargo_fuzz("build", None)?)?;
    on_all_cores(targets()?, |target| {
        let corpus = corpus.join(&target);
        fs::create_dir_all(&corpus)?;
        let seeds = root().join("fuzz/seeds").join(&target);
        let words = format!("-dict=fuzz/dictionaries/{target}.dict");
        let mut command = cargo_fuzz("run", Some(&target))?;
        command.arg(&corpus).arg(seeds).args(["--", &time, &words, "-verbosity=0"]);
        command.args(["-print_final_stats=1", "-timeout=60"]);
        // What others say meanwhile stands before or behind.
        let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
        let said = [output.stdout, output.stderr].concat();
        eprintln!("{}", String::from_utf8_lossy(&said));
        ensure!(output.status.success(), "{command:?} ended with {}", output.status);
        Ok(())
    })
}

/// The targets of cargo-fuzz.
fn targets() -> Result<Vec<String>> {
    let mut targets: Vec<String> = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        targets.extend(path.file_stem().and_then(|name| name.to_str()).map(String::from));
    }
    targets.sort();
    Ok(targets)
}

fn cargo_fuzz(verb: &str, target: Option<&str>) -> Result<Command> {
    let mut command = Command::new(install::checkers()?.join("cargo-fuzz"));
    // What is built fast is better here than what is fast. Which crates check themselves, the profile says.
    let how = ["--release", "--sanitizer", "none", "--codegen-units", "16"];
    command.args(["fuzz", verb]).args(how).args(["--target-dir", "target/guided"]);
    // This is where they are compiled, and nowhere else.
    command.args(target).current_dir(root()).env("RUSTFLAGS", "--deny warnings");
    Ok(command)
}

/// Makes an input that a target panics with small, and keeps it.
fn keep(target: &str, file: &Path) -> Result<()> {
    let input = fs::read(file).with_context(|| file.display().to_string())?;
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let seeds = root().join("fuzz/seeds").join(target);
    let seed = seeds.join(format!("found_{:08x}", hasher.finish() as u32));
    // It may be as small as it can be.
    fs::write(&seed, &input).with_context(|| format!("there is no target {target}"))?;
    let mut smaller = cargo_fuzz("tmin", Some(target))?;
    let file = file.canonicalize()?;
    run(smaller.arg(file).arg("--").arg(format!("-exact_artifact_path={}", seed.display())))?;
    println!("{} is a seed now", seed.display());
    Ok(())
}
