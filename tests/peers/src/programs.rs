//! Programs that are measured, or that run what is: those of this repository, and the official SDKs in other languages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use tenon_tests::{installed, newer_node};

/// What tells where the packages from npm and from PyPI are. Node.js itself comes with the latter.
const NPM: &str = "TENON_REAL_SERVERS_NPM";
const PYPI: &str = "TENON_REAL_SERVERS_PIP";

/// A program of the repository, which lies beside this one.
pub(crate) fn built(name: &str) -> PathBuf {
    let peers = std::env::current_exe().expect("a program has a path");
    let program = peers.with_file_name(name);
    assert!(
        program.exists(),
        "there is no {}: `cargo xtask bench peers` builds it",
        program.display()
    );
    program
}

/// An official SDK in another language, as it is installed.
pub(crate) struct Sdk {
    pub(crate) package: &'static str,
    pub(crate) version: String,
    /// What runs it.
    pub(crate) interpreter: &'static str,
    pub(crate) interpreter_version: String,
    /// Whether one can write a server with it.
    pub(crate) has_server: bool,
    /// The ending of the scripts that use it.
    ending: &'static str,
    program: PathBuf,
    /// What the script of a server is told, and that of a client first.
    for_server: Vec<OsString>,
    for_client: Vec<OsString>,
}

impl Sdk {
    /// What tables call it.
    pub(crate) fn name(&self) -> String {
        format!("{}, {} {}", self.interpreter, self.package, self.version)
    }

    /// The command that runs the script of the server.
    pub(crate) fn server(&self) -> Command {
        self.script("servers", &self.for_server)
    }

    /// The command that runs the script of the client, to which its own arguments are to be added.
    pub(crate) fn client(&self) -> Command {
        self.script("clients", &self.for_client)
    }

    fn script(&self, folder: &str, arguments: &[OsString]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("echo");
        let mut command = Command::new(&self.program);
        command.arg(script.with_extension(self.ending)).args(arguments);
        // Nothing is written into the folder of the sources.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// The SDKs that are installed. A line says which are not.
pub(crate) fn sdks() -> Vec<Sdk> {
    let mut sdks = Vec::new();
    match installed(&[NPM, PYPI]) {
        Some(folder) => {
            sdks.push(node(&folder, "@modelcontextprotocol/sdk", true));
            // The server of this version is another package, which is not installed.
            sdks.push(node(&folder, "@modelcontextprotocol/client", false));
        }
        None => println!(
            "without Node.js and its SDKs, which are not installed: {NPM} does not name their folder\n"
        ),
    }
    match installed(&[PYPI]) {
        Some(folder) => {
            sdks.extend(["python-1", "python"].map(|environment| python(&folder.join(environment))))
        }
        None => println!(
            "without the SDKs for Python, which are not installed: {PYPI} does not name their folder\n"
        ),
    }
    sdks
}

fn node(folder: &Path, package: &'static str, has_server: bool) -> Sdk {
    let program = newer_node(folder);
    let manifest = std::fs::read(folder.join("node_modules").join(package).join("package.json"));
    let manifest = serde_json::from_slice(&manifest.expect("the package is installed"));
    let manifest: serde_json::Value = manifest.expect("it is JSON");
    Sdk {
        package,
        version: manifest["version"].as_str().expect("it has a version").to_string(),
        interpreter: "Node.js",
        interpreter_version: output(Command::new(&program).arg("--version")),
        has_server,
        ending: "cjs",
        program,
        for_server: vec![folder.into()],
        for_client: vec![folder.into(), package.into()],
    }
}

fn python(environment: &Path) -> Sdk {
    let program = environment.join("bin/python");
    let version = "import importlib.metadata; print(importlib.metadata.version('mcp'))";
    let interpreter_version = "import platform; print(platform.python_version())";
    Sdk {
        package: "mcp",
        version: output(Command::new(&program).args(["-c", version])),
        interpreter: "Python",
        interpreter_version: output(Command::new(&program).args(["-c", interpreter_version])),
        has_server: true,
        ending: "py",
        program,
        for_server: Vec::new(),
        for_client: Vec::new(),
    }
}

/// What a program prints.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}
