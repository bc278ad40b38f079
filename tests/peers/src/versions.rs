//! The versions of all that is measured: of crates by the lock files that the programs were built with, and of all else
//! as it says itself.

use std::process::Command;

use crate::programs::{Sdk, built, output};
use crate::table::Table;

/// The lock file of this program.
const OWN: &str = include_str!("../Cargo.lock");

/// The lock file of the command, and of the servers.
const REPOSITORY: &str = include_str!("../../../Cargo.lock");

/// Prints them.
pub(crate) fn print(sdks: &[Sdk]) {
    let (own, repository) = (LockFile::new(OWN), LockFile::new(REPOSITORY));
    let mut table = Table::new("What is compared", ["peer", "version"]);
    let mut row = |peer: &str, version: String| table.row([peer.to_string(), version]);
    row("Tenon", output(Command::new(built("tenon")).arg("--version")).replace("tenon ", ""));
    row("wasmtime of Tenon, and alone", own.used_by("tenon-host", "wasmtime"));
    row("Extism", own.used_by("tenon-peers", "extism"));
    row("wasmtime of Extism", own.used_by("extism", "wasmtime"));
    row("the kit of Extism's plugin", own.used_by("echo-extism", "extism-pdk"));
    row("rmcp, as a client", own.used_by("tenon-peers", "rmcp"));
    row("rmcp, as a server", repository.used_by("tenon-tests", "rmcp"));
    for Sdk { package, version, interpreter, interpreter_version, .. } in sdks {
        row(package, format!("{version} on {interpreter} {interpreter_version}"));
    }
    table.print();
}

struct LockFile(Vec<toml::Table>);

impl LockFile {
    fn new(text: &str) -> Self {
        let mut file: toml::Table = text.parse().expect("a lock file is TOML");
        let packages = file.remove("package").and_then(|packages| packages.try_into().ok());
        Self(packages.expect("it has packages"))
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &toml::Table> {
        self.0.iter().filter(move |package| package["name"].as_str() == Some(name))
    }

    /// The version of one package that another one uses.
    fn used_by(&self, user: &str, package: &str) -> String {
        let user = self.named(user).next().expect("it is in the lock file");
        let used = user["dependencies"].as_array().expect("they are a list");
        // A version follows the name where there are several.
        let version =
            used.iter().filter_map(|used| used.as_str()?.strip_prefix(package)).find_map(|rest| {
                match rest.split_once(' ') {
                    Some(("", version)) => Some(version.to_string()),
                    Some(_) => None,
                    None => rest.is_empty().then(|| self.only_version(package)),
                }
            });
        version.expect("it is used")
    }

    fn only_version(&self, package: &str) -> String {
        let package = self.named(package).next().expect("it is in the lock file");
        package["version"].as_str().expect("it is a text").to_string()
    }
}
