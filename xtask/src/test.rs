//! `cargo xtask test` and `cargo xtask lint`.

use anyhow::Result;

use crate::{cargo, install, root, run};

/// Runs all tests; what is passed goes to the test programs.
fn run_tests(filters: &[String]) -> Result<()> {
    let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
    let mut host = cargo(".", &["test", "--workspace", "--locked"]);
    for foreign in [install::REAL_SERVERS, install::TOOLCHAINS] {
        if let Some(folder) = foreign.install() {
            host.env(foreign.variable, folder);
        }
    }
    if let Some(folder) = install::registry() {
        host.env(install::REGISTRY, folder);
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
