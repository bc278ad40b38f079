//! `cargo xtask test` and `cargo xtask lint`.

use anyhow::Result;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{cargo, root, run};

/// Runs all tests; what is passed goes to the test programs.
fn run_tests(filters: &[String]) -> Result<()> {
    let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
    let servers = real_servers();
    let mut host = cargo(".", &["test", "--workspace", "--locked"]);
    if let Some(servers) = servers {
        host.env("TENON_REAL_SERVERS", servers);
    }
    let mut guests = cargo("guests", &["test", "--workspace", "--locked"]);
    for command in [&mut host, &mut guests] {
        command.args(&filters);
        run(command)?;
    }
    Ok(())
}

pub(crate) fn run_task(filters: Vec<String>) -> Result<()> {
    crate::setup::run()?;
    run_tests(&filters)
}

/// Installs the MCP servers that nobody here wrote, at the versions of the lock files. Without
/// their package managers, or without a network, the tests with them are skipped and say so.
fn real_servers() -> Option<PathBuf> {
    let source = root().join("tests/real");
    let folder = root().join("target/real-servers");
    let installed = install(&source, &folder);
    if let Err(error) = installed {
        eprintln!("note: the tests with real MCP servers will be skipped: {error:#}");
        return None;
    }
    Some(folder)
}

fn install(source: &std::path::Path, folder: &std::path::Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let locks = ["package.json", "package-lock.json", "requirements.txt"];
    let wanted: Vec<String> =
        locks.iter().map(|lock| fs::read_to_string(source.join(lock))).collect::<Result<_, _>>()?;
    let stamp = folder.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted.join("\n")) {
        return Ok(());
    }
    for lock in locks {
        fs::copy(source.join(lock), folder.join(lock))?;
    }
    run(Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(folder))?;
    run(Command::new("python3").args(["-m", "venv", "python"]).current_dir(folder))?;
    run(Command::new(folder.join("python/bin/pip"))
        .args(["install", "--quiet", "--require-hashes", "--requirement", "requirements.txt"])
        .current_dir(folder))?;
    fs::write(stamp, wanted.join("\n"))?;
    Ok(())
}

/// Checks format, clippy and documentation, without warnings.
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
    run(cargo(".", &["doc", "--workspace", "--no-deps", "--locked"])
        .env("RUSTDOCFLAGS", "--deny warnings"))
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
