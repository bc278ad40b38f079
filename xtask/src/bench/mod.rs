//! `cargo xtask bench` and `cargo xtask counts`: the benchmarks, and what is compared of them.

mod binary_size;
mod performance_page;

use anyhow::{Result, ensure};

use crate::{cargo, install, setup};

/// What there is to measure, by its name on the command line.
#[derive(Clone, Copy, PartialEq)]
enum Benchmark {
    /// Tenon beside the bare libraries.
    Costs,
    /// How costs grow.
    Curves,
    /// What authors wait for.
    Authoring,
    /// Tenon beside other systems.
    Peers,
    /// Instructions and allocations.
    Counts,
    /// Where the bytes of the command are.
    Size,
}

const NAMED: [(&str, Benchmark); 5] = [
    ("curves", Benchmark::Curves),
    ("authoring", Benchmark::Authoring),
    ("peers", Benchmark::Peers),
    ("counts", Benchmark::Counts),
    ("size", Benchmark::Size),
];

impl Benchmark {
    /// Its name, where it is not what is run without one.
    fn arguments(self) -> Option<&'static str> {
        NAMED.iter().find(|(_, benchmark)| *benchmark == self).map(|(name, _)| *name)
    }

    /// The command that runs it.
    fn command(self) -> String {
        ["cargo xtask bench"].into_iter().chain(self.arguments()).collect::<Vec<_>>().join(" ")
    }
}

/// Runs a benchmark in release mode: the one that the first argument names, or else `costs`. What follows names a part of
/// it, or asks for Markdown.
pub(crate) fn run(mut arguments: Vec<String>) -> Result<()> {
    if arguments.first().is_some_and(|first| first == "report") {
        return performance_page::run(&arguments[1..]);
    }
    let first = arguments.first();
    let named = NAMED.iter().find(|(name, _)| first.is_some_and(|first| first == name));
    let benchmark = named.map_or(Benchmark::Costs, |(_, benchmark)| *benchmark);
    if named.is_some() {
        arguments.remove(0);
    }
    setup::run()?;
    match benchmark {
        Benchmark::Counts => return counted(&arguments),
        Benchmark::Size => {
            ensure!(matches!(&arguments[..], [] | [_]), "`size` takes `--markdown` alone");
            return binary_size::run(arguments == ["--markdown"]);
        }
        _ => {}
    }
    crate::run(&mut cargo(
        ".",
        &["build", "--release", "--package", "tenon-cli", "--package", "tenon-tests", "--bins"],
    ))?;
    let name = match benchmark {
        Benchmark::Peers => return peers(&arguments),
        Benchmark::Authoring => "authoring",
        Benchmark::Curves => "curves",
        Benchmark::Costs | Benchmark::Counts | Benchmark::Size => "costs",
    };
    let mut command = cargo(".", &["bench", "--package", "tenon-tests", "--bench", name, "--"]);
    if benchmark == Benchmark::Authoring {
        // A language whose package is not there is left out, which its row says.
        for (variable, folder) in install::for_tests() {
            command.envs(folder.ok().map(|folder| (variable, folder)));
        }
    }
    crate::run(command.args(arguments))
}

/// Counts what the paths do that are taken most often, and compares it with what is written down; or writes it down, with
/// `--update`.
pub(crate) fn check_counts(arguments: Vec<String>) -> Result<()> {
    setup::run()?;
    counted(&[vec!["--check".to_string()], arguments].concat())
}

/// Counts in the build of the tests, which is there when they have run.
fn counted(arguments: &[String]) -> Result<()> {
    let mut command = cargo(".", &["test", "--workspace", "--bench", "counts", "--"]);
    crate::run(command.args(arguments))
}

/// Measures Tenon beside other systems of plugins and other SDKs of MCP. What is not there is left out, which a line
/// says.
fn peers(arguments: &[String]) -> Result<()> {
    let mut command = cargo("tests/peers", &["run", "--release", "--locked", NEWER_RUST, "--"]);
    for (variable, folder) in install::mcp_sdks() {
        match folder {
            Ok(folder) => command.env(variable, folder),
            Err(error) => {
                eprintln!("without {variable}: {error:#}");
                command.env_remove(variable)
            }
        };
    }
    crate::run(command.args(arguments))
}

/// The wasmtime of Extism asks for a newer Rust than this repository has, and compiles with this one all the same.
const NEWER_RUST: &str = "--ignore-rust-version";
