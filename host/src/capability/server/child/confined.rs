//! Servers in a sandbox: what the launcher is told of one, and what lasts as long as its process.
//!
//! Which files and hosts are granted is decided elsewhere; here stands what each program needs of its own besides.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
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
#[cfg(unix)]
use crate::capability::network::serve_proxy;
use crate::capability::network::{Network, ServerTraffic};
use crate::capability::server::AccessRecorder;

/// The most processes and threads of a server, and the most open files of each.
const MAX_PROCESSES: u64 = 2048;
const MAX_OPEN_FILES: u64 = 8192;

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
    own: OwnFiles,
    hidden: Vec<PathBuf>,
    unchangeable: Vec<PathBuf>,
    /// A folder that it keeps from one start to the next.
    cache: Option<PathBuf>,
    network: Option<MeteredNetwork>,
    recorder: Option<AccessRecorder>,
    /// How much memory of its own each process may have, in bytes.
    memory: Option<u64>,
}

/// The network of a server, and what goes through it.
struct MeteredNetwork {
    network: Arc<Network>,
    traffic: Arc<ServerTraffic>,
}

/// What a sandbox has that lasts as long as a process.
pub(super) struct SandboxGuard {
    _temporary: TempDir,
    proxy: Option<AbortHandle>,
}

impl Drop for SandboxGuard {
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
        let own = OwnFiles { writable: writable(&reachable), home: home.map(Path::to_path_buf) };
        // What the server may change does not say what else it reaches.
        let code = code.iter().filter(|file| !own.may_be_changed(file));
        let folders =
            code.flat_map(|file| [package_of(file, home)].into_iter().chain(node_modules_of(file)));
        let folders: Vec<PathBuf> = folders.filter(|folder| own.is_reachable(folder)).collect();
        reachable.extend(folders.into_iter().map(read_only));
        let (hidden, unchangeable) = (rules.hidden(home), rules.unchangeable());
        let (recorder, memory) = (None, None);
        let network = network.map(|network| {
            let traffic = ServerTraffic::new(network.plugin());
            MeteredNetwork { network, traffic }
        });
        let launcher = launcher.into();
        Self { launcher, reachable, own, hidden, unchangeable, cache, network, recorder, memory }
    }

    /// How much goes through its network, if it has one.
    pub(crate) fn traffic(&self) -> Option<Arc<ServerTraffic>> {
        self.network.as_ref().map(|of| of.traffic.clone())
    }

    /// The same, in which each process may have so much memory of its own.
    pub(crate) fn with_memory(self, bytes: usize) -> Self {
        Self { memory: u64::try_from(bytes).ok(), ..self }
    }

    /// The same, recorded.
    pub(crate) fn recorded(self, recorder: Option<AccessRecorder>) -> Self {
        Self { recorder, ..self }
    }

    /// The launcher of a process, and what it is told first.
    pub(super) fn command(&self, spec: &ChildSpec) -> io::Result<(Command, Vec<u8>, SandboxGuard)> {
        let temporary = tempfile::Builder::new().prefix("tenon-server-").tempdir()?;
        let own = temporary.path().join("tmp");
        std::fs::create_dir(&own)?;
        let program = found(&spec.program, &spec.environment)?;
        let mut reachable = self.reachable.clone();
        let installed = of_program(&program, &spec.environment, &self.own);
        reachable.extend(installed.into_iter().map(read_only));
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
                unchangeable: self.unchangeable.clone(),
                temporary: Some(own),
                proxy: proxy.is_some().then_some(socket),
                limits: ProcessLimits {
                    memory: self.memory,
                    processes: Some(MAX_PROCESSES),
                    open_files: Some(MAX_OPEN_FILES),
                },
                recording: self.recorder.as_ref().map(AccessRecorder::recording),
            },
        };
        let mut command = Command::new(&self.launcher);
        command.args(launcher_arguments()).env_clear().current_dir("/").stdin(Stdio::piped());
        Ok((command, confined.encode()?, SandboxGuard { _temporary: temporary, proxy }))
    }
}

#[cfg(unix)]
fn start_proxy(socket: &Path, of: &MeteredNetwork, spec: &ChildSpec) -> io::Result<AbortHandle> {
    let listener = tokio::net::UnixListener::bind(socket)?;
    let MeteredNetwork { network, traffic } = of;
    let task = serve_proxy(listener, network.clone(), spec.log.clone(), traffic.clone());
    Ok(tokio::spawn(task).abort_handle())
}

/// No launcher works there.
#[cfg(not(unix))]
fn start_proxy(_: &Path, _: &MeteredNetwork, _: &ChildSpec) -> io::Result<AbortHandle> {
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

/// What is the server's own to change, and what is never reached for its code.
struct OwnFiles {
    writable: Vec<PathBuf>,
    home: Option<PathBuf>,
}

/// The folders that may be changed.
fn writable(reachable: &[ReachableFolder]) -> Vec<PathBuf> {
    let writable = reachable.iter().filter(|folder| folder.write);
    writable
        .flat_map(|folder| [Some(folder.path.clone()), folder.path.canonicalize().ok()])
        .flatten()
        .collect()
}

/// A path without `..`, as it is written.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// The most links on the way to a file.
const MAX_LINKS: usize = 40;

impl OwnFiles {
    /// Whether a file, or a link on the way to it, lies where the server may change it: what it is then, the server says.
    fn may_be_changed(&self, file: &Path) -> bool {
        let is_own = |path: &Path| self.writable.iter().any(|folder| path.starts_with(folder));
        let mut path = file.to_path_buf();
        for _ in 0..MAX_LINKS {
            if is_own(&path) {
                return true;
            }
            let link = path.ancestors().collect::<Vec<_>>().into_iter().rev().find_map(|part| {
                let target = std::fs::read_link(part).ok()?;
                let rest = path.strip_prefix(part).ok()?;
                // What is before the first link has none in it, so `..` is the folder above.
                Some(without_parents(&part.parent()?.join(target)).join(rest))
            });
            match link {
                Some(next) => path = next,
                None => return false,
            }
        }
        true
    }

    /// Whether a folder may be read for the code in it: not the user's home folder, and nothing above that.
    fn is_reachable(&self, folder: &Path) -> bool {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.into());
        let is_above_home = self.home.as_ref().is_some_and(|home| home.starts_with(&real));
        real.parent().is_some() && !is_above_home
    }
}

/// What a program needs of where it is installed, and what the interpreters need that its first line names.
fn of_program(
    program: &Path,
    environment: &BTreeMap<OsString, OsString>,
    own: &OwnFiles,
) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut next = Some(program.to_path_buf());
    for _ in 0..MAX_INTERPRETERS {
        let Some(program) = next.take().filter(|program| !own.may_be_changed(program)) else {
            break;
        };
        folders.extend(installation_of(&program));
        next = interpreter_of(&program).and_then(|name| found(&name, environment).ok());
    }
    folders.retain(|folder| own.is_reachable(folder));
    folders
}

/// The most interpreters that start each other.
const MAX_INTERPRETERS: usize = 4;

/// The program that looks for others in `PATH`.
const ENV: [&str; 2] = ["/usr/bin/env", "/bin/env"];

/// The program that the first line of a script names: `#!/usr/bin/python3`, or `#!/usr/bin/env node`.
fn interpreter_of(script: &Path) -> Option<PathBuf> {
    const MAX_LINE_BYTES: u64 = 256;
    let mut line = Vec::new();
    std::fs::File::open(script).ok()?.take(MAX_LINE_BYTES).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let first = Path::new(words.next()?);
    match ENV.iter().any(|env| first == Path::new(env)) {
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
    #[cfg(unix)]
    fn what_a_server_may_change_does_not_say_what_it_reaches() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["granted", "docs", "opt/bin", "home"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in ["docs/a.py", "opt/bin/run", "granted/run"] {
            fs::write(root.join(file), "").unwrap();
        }
        symlink("../docs/a.py", root.join("granted/link.py")).unwrap();
        symlink("../granted/link.py", root.join("opt/through.py")).unwrap();
        symlink("../docs", root.join("opt/docs")).unwrap();
        let own = OwnFiles { writable: vec![root.join("granted")], home: Some(root.join("home")) };
        let check = |file: &str, expected: bool| {
            assert_eq!(own.may_be_changed(&root.join(file)), expected, "{file}");
        };
        check("granted/run", true);
        check("granted/none", true);
        check("granted/link.py", true);
        check("opt/through.py", true);
        check("opt/docs/a.py", false);
        check("docs/a.py", false);
        check("opt/bin/run", false);
        let environment = BTreeMap::new();
        let of = |file: &str| of_program(&root.join(file), &environment, &own);
        assert_eq!(of("granted/run"), [""; 0].map(PathBuf::from));
        assert!(of("opt/bin/run").contains(&root.join("opt/bin")));
        // A first line leads nowhere but to where the program is.
        fs::write(root.join("opt/bin/run"), format!("#!{}/x\n", root.display())).unwrap();
        assert!(!of("opt/bin/run").contains(&root.join("home")));
        for folder in ["/", "home", ""] {
            assert!(!own.is_reachable(&root.join(folder)), "{folder}");
        }
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
        check("#!/opt/env /opt/x", Some("/opt/env"));
        check("\x7fELF", None);
        check("#!", None);
    }
}
