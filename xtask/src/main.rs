//! What is done around the code. `cargo xtask` lists it.

mod bench;
mod demo;
mod fuzz;
mod install;
mod kills;
mod mutants;
mod package;
mod setup;
mod soak;
mod test;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const USAGE: &str = "\
cargo xtask TASK

  setup   installs what building needs
            --tests             and what tests and checks need, which otherwise install it themselves
  demo    builds everything, and shows what it does
  test    runs all tests, those with real MCP servers too
  fuzz    runs each fuzz target for 20 seconds, or as many as are said
            --guided            by cargo-fuzz, which keeps what it finds in fuzz/corpus, or in the
                                folder that TENON_FUZZ_CORPUS names
            --keep TARGET FILE  makes an input that a target panics with small, and one of its seeds
  mutants changes the code that decides, and says which changes no unit test notices
            --sample N          tries so many, which the commit chooses
            FILE...             tries those of these files
  package makes the crates as a registry gets them, and builds each from that alone
  lint    checks format, clippy, documentation, and licences of what is depended on
  bench   measures what this host costs, beside bare wasmtime
            curves [NAME]       how costs grow with the number of plugins, tools, calls and more
            authoring           what authors wait for
            peers               beside Extism, and MCP servers and clients with other SDKs
            size                where the bytes of the command are
            report [NAME...]    all of these, or those that are named, into docs/performance.md
  counts  counts instructions and allocations of what is done most often, and fails where they are others
          than tests/benches/counts.json says
            --update            writes them there
  soak    serves 64 clients for ten minutes, or as many seconds as are said, while plugins are loaded
          again, a server is killed each second, and clients vanish
  kills   kills commands a thousand times, or as often as is said, and checks that what they had confirmed
          is kept and nothing was done twice; a number after that is the seed of the moments";

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("setup") => setup::run_task(&arguments.collect::<Vec<_>>()),
        Some("demo") => demo::run_task(),
        Some("test") => test::run_task(arguments.collect()),
        Some("fuzz") => fuzz::run_task(arguments.collect()),
        Some("package") => package::run_task(),
        Some("mutants") => mutants::run_task(arguments.collect()),
        Some("lint") => test::lint(),
        Some("bench") => bench::run(arguments.collect()),
        Some("counts") => bench::check_counts(arguments.collect()),
        Some("soak") => soak::run_task(arguments.collect()),
        Some("kills") => kills::run_task(arguments.collect()),
        _ => bail!("{USAGE}"),
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the root is there")
}

/// Cargo, in a folder of the repository.
fn cargo(folder: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(arguments).current_dir(root().join(folder));
    // Cargo tells this program about its own package. Build scripts that ask for the same variables would
    // run again for a cargo that is started from here, and all that depends on them be built again.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_about_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether cargo sets a variable to say something about the package whose program it runs.
fn is_about_package(variable: &str) -> bool {
    ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// A package of the workspace, as cargo knows it.
#[derive(Deserialize)]
struct Package {
    name: String,
    /// The registries that it may go to, if that is said.
    publish: Option<Vec<String>>,
    targets: Vec<CargoTarget>,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
    kind: Vec<String>,
}

/// The packages of the workspace.
fn packages() -> Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let output =
        cargo(".", &["metadata", "--no-deps", "--format-version=1", "--locked"]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    Ok(metadata.packages)
}

/// Does something with each of some things, as many at a time as there are cores. Fails where one does.
fn on_all_cores<T: Send>(
    things: impl IntoIterator<Item = T, IntoIter: Send>,
    act: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let left = Mutex::new(things.into_iter());
    let next = || left.lock().expect("nobody panicked").next();
    let work = || std::iter::from_fn(next).try_for_each(&act);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
    })
}

/// Runs a command, and fails when it does.
fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("{shown} cannot be started"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}
