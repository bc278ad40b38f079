//! Servers in a sandbox: what the launcher is told of one, and what lasts as long as its process.
//!
//! Which files and hosts are granted is decided elsewhere; here stands what each program needs of its own besides.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use tempfile::TempDir;
use tenon_config::files;
use tenon_config::grant::FileRules;
use tenon_confinement::{
    ConfinedProgram, Confinement, ProcessLimits, ReachableFolder, launcher_arguments,
};
use tokio::process::Command;
use tokio::task::AbortHandle;

use super::ChildSpec;
use crate::capability::network::Network;

/// How much each process of a server may use.
const LIMITS: ProcessLimits =
    ProcessLimits { memory: None, processes: Some(2048), open_files: Some(8192) };

/// Variables by which programs find their folders for what they download and compile.
const CACHE_VARIABLES: [&str; 9] = [
    "XDG_CACHE_HOME",
    "npm_config_cache",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "UV_TOOL_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "DENO_DIR",
    "BUN_INSTALL_CACHE_DIR",
    "PYTHONPYCACHEPREFIX",
];

/// What the folder of a package has in it.
const PACKAGE_MARKS: [&str; 4] = ["package.json", "pyproject.toml", "setup.py", "deno.json"];

/// How far above a script its package is looked for.
const MAX_PACKAGE_LEVELS: usize = 6;

/// The sandbox of a server, over all of its processes.
pub(crate) struct ServerConfinement {
    launcher: PathBuf,
    reachable: Vec<ReachableFolder>,
    hidden: Vec<PathBuf>,
    /// A folder that it keeps from one start to the next.
    cache: Option<PathBuf>,
    network: Option<Arc<Network>>,
}

/// What a sandbox has that lasts as long as a process.
pub(super) struct ProcessSandbox {
    _temporary: TempDir,
    proxy: Option<AbortHandle>,
}

impl Drop for ProcessSandbox {
    fn drop(&mut self) {
        if let Some(proxy) = &self.proxy {
            proxy.abort();
        }
    }
}

impl ServerConfinement {
    /// A sandbox with what rules grant, for a server whose code these files are.
    pub(crate) fn new(
        launcher: &Path,
        rules: &FileRules,
        home: Option<&Path>,
        code: &[PathBuf],
        cache: Option<PathBuf>,
        network: Option<Arc<Network>>,
    ) -> Self {
        let granted = rules.reachable().into_iter().map(|folder| {
            let tenon_config::grant::ReachableFolder { path, read, write, is_exact: _ } = folder;
            ReachableFolder { path, read, write, follows_links: false }
        });
        let mut reachable: Vec<ReachableFolder> = granted.collect();
        reachable.extend(code.iter().map(|file| read_only(package_of(file, home))));
        reachable.extend(code.iter().flat_map(|file| node_modules_of(file)).map(read_only));
        let hidden = rules.hidden(home);
        Self { launcher: launcher.into(), reachable, hidden, cache, network }
    }

    /// The launcher of a process, and what it is told first.
    pub(super) fn command(
        &self,
        spec: &ChildSpec,
    ) -> io::Result<(Command, Vec<u8>, ProcessSandbox)> {
        let temporary = tempfile::Builder::new().prefix("tenon-server-").tempdir()?;
        let own = temporary.path().join("tmp");
        std::fs::create_dir(&own)?;
        let program = found(&spec.program, &spec.environment)?;
        let mut reachable = self.reachable.clone();
        reachable.extend(of_program(&program, &spec.environment).into_iter().map(read_only));
        let mut environment = spec.environment.clone();
        if let Some(cache) = &self.cache {
            files::make_private(cache)?;
            reachable.push(ReachableFolder { write: true, ..read_only(cache.clone()) });
            for variable in CACHE_VARIABLES {
                let folder = cache.join(variable.to_lowercase());
                environment.entry(variable.into()).or_insert_with(|| folder.into());
            }
        }
        let socket = temporary.path().join("proxy");
        let start = |network| start_proxy(&socket, network, spec);
        let proxy = self.network.as_ref().map(start).transpose()?;
        let confined = ConfinedProgram {
            program,
            arguments: spec.arguments.clone(),
            environment: environment.into_iter().collect(),
            // The launcher runs elsewhere.
            folder: spec.folder.as_deref().map(std::path::absolute).transpose()?,
            confinement: Confinement {
                reachable,
                hidden: self.hidden.clone(),
                temporary: Some(own),
                proxy: proxy.is_some().then_some(socket),
                limits: LIMITS,
            },
        };
        let mut command = Command::new(&self.launcher);
        command.args(launcher_arguments()).env_clear().current_dir("/").stdin(Stdio::piped());
        Ok((command, confined.encode()?, ProcessSandbox { _temporary: temporary, proxy }))
    }
}

#[cfg(unix)]
fn start_proxy(socket: &Path, network: &Arc<Network>, spec: &ChildSpec) -> io::Result<AbortHandle> {
    let listener = tokio::net::UnixListener::bind(socket)?;
    let task = crate::capability::network::serve_proxy(listener, network.clone(), spec.log.clone());
    Ok(tokio::spawn(task).abort_handle())
}

/// No launcher works there.
#[cfg(not(unix))]
fn start_proxy(_: &Path, _: &Arc<Network>, _: &ChildSpec) -> io::Result<AbortHandle> {
    Err(io::ErrorKind::Unsupported.into())
}

fn read_only(path: PathBuf) -> ReachableFolder {
    ReachableFolder { path, read: true, write: false, follows_links: true }
}

/// Where a program is: at a path, or in a folder of `PATH`.
fn found(program: &Path, environment: &BTreeMap<OsString, OsString>) -> io::Result<PathBuf> {
    if files::is_path(program) {
        return std::path::absolute(program);
    }
    let path = environment.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program));
    { found }.find(|file| file.is_file()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// What a program needs of where it is installed, and what the interpreters need that its first line names.
fn of_program(program: &Path, environment: &BTreeMap<OsString, OsString>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut next = Some(program.to_path_buf());
    for _ in 0..MAX_INTERPRETERS {
        let Some(program) = next.take() else { break };
        folders.extend(installation_of(&program));
        next = interpreter_of(&program).and_then(|name| found(&name, environment).ok());
    }
    folders
}

/// The most interpreters that start each other.
const MAX_INTERPRETERS: usize = 4;

/// The program that the first line of a script names: `#!/usr/bin/python3`, or `#!/usr/bin/env node`.
fn interpreter_of(script: &Path) -> Option<PathBuf> {
    const MAX_LINE_BYTES: u64 = 256;
    let mut line = Vec::new();
    std::fs::File::open(script).ok()?.take(MAX_LINE_BYTES).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let first = Path::new(words.next()?);
    match first.ends_with("env") {
        true => words.find(|word| !word.starts_with('-') && !word.contains('=')).map(PathBuf::from),
        false => Some(first.into()),
    }
}

/// Where a program is installed: the folder that it lies in, and the libraries beside that, for each name that it has.
fn installation_of(program: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for file in [Some(program.to_path_buf()), program.canonicalize().ok()].into_iter().flatten() {
        let Some(folder) = file.parent() else { continue };
        folders.push(folder.to_path_buf());
        // Version managers start what lies beside their shims.
        let is_of_manager = folder.ends_with("shims") || folder.ends_with(".volta/bin");
        folders.extend(folder.parent().filter(|_| is_of_manager).map(Path::to_path_buf));
        if let Some(prefix) = folder.parent().filter(|_| folder.ends_with("bin")) {
            let parts = ["lib", "lib64", "libexec", "include", "node_modules", "pyvenv.cfg"];
            folders.extend(parts.map(|part| prefix.join(part)));
        }
    }
    folders
}

/// The folders in which Node.js looks for the packages that a file needs.
fn node_modules_of(file: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = file.ancestors().skip(1).map(|folder| folder.join("node_modules"));
    folders.filter(|folder| folder.is_dir())
}

/// The package that a file of code belongs to: the nearest folder above it that is one, or else its own. The user's home
/// folder and those above it are none.
fn package_of(file: &Path, home: Option<&Path>) -> PathBuf {
    let is_package = |folder: &&Path| {
        folder.parent().is_some() && !home.is_some_and(|home| home.starts_with(folder))
    };
    let file = file.canonicalize().unwrap_or_else(|_| file.into());
    let folders: Vec<&Path> =
        file.ancestors().skip(1).take(MAX_PACKAGE_LEVELS).take_while(is_package).collect();
    let is_marked = |folder: &&&Path| PACKAGE_MARKS.iter().any(|mark| folder.join(mark).is_file());
    let package = folders.iter().find(is_marked).or(folders.first());
    package.map_or_else(|| file.clone(), |folder| folder.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_package_is_the_nearest_folder_that_is_one() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let home = root.join("home");
        for folder in ["home/server/dist", "home/other"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            "home/server/package.json",
            "home/server/dist/index.js",
            "home/a.py",
            "home/other/b.py",
        ] {
            fs::write(root.join(file), "").unwrap();
        }
        let check = |file: &str, expected: &str| {
            assert_eq!(package_of(&root.join(file), Some(&home)), root.join(expected), "{file}");
        };
        check("home/server/dist/index.js", "home/server");
        check("home/other/b.py", "home/other");
        // It would be all that the user has.
        check("home/a.py", "home/a.py");
    }

    #[test]
    fn the_interpreter_of_a_script_is_that_of_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        let check = |line: &str, expected: Option<&str>| {
            fs::write(&script, line).unwrap();
            assert_eq!(interpreter_of(&script), expected.map(PathBuf::from), "{line}");
        };
        check("#!/usr/bin/python3 -u\nimport sys", Some("/usr/bin/python3"));
        check("#! /opt/venv/bin/python\n", Some("/opt/venv/bin/python"));
        check("#!/usr/bin/env node\n", Some("node"));
        check("#!/usr/bin/env -S A=b deno run\n", Some("deno"));
        check("\x7fELF", None);
        check("#!", None);
    }
}
