//! What admission wants to know of the machine, looked up here so that it can decide without
//! touching anything.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::{CodeSource, ServerCommand, ServerLocation};
use crate::files;
use crate::host_environment::HostEnvironment;
use crate::manifest::HostRequirements;

/// What was found out about a candidate's files and its dependencies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// Files that lie outside of the folder they should be in, once links are followed.
    pub outside: Vec<PathBuf>,
    /// The file that runs, or the folder that it is started in, where there is none.
    pub absent: Option<PathBuf>,
    /// Files and folders that everybody can write to.
    pub world_writable: Vec<PathBuf>,
    /// Variables that must be set and are not.
    pub missing_env: Vec<String>,
    /// Groups of variables of which one must be set and none is.
    pub missing_env_any: Vec<Vec<String>>,
    /// Programs that must be in `PATH` and are not.
    pub missing_bins: Vec<String>,
}

/// The file that runs, where the candidate names one by its path.
pub(super) fn file_of(source: &CodeSource) -> Option<&Path> {
    match source {
        CodeSource::Wasm { path, .. } | CodeSource::Rhai { path } => Some(path),
        CodeSource::Mcp(server) => {
            let ServerLocation::Child(ServerCommand { program, .. }) = &server.place else {
                return None;
            };
            files::is_path(program).then_some(program)
        }
    }
}

impl MachineFacts {
    /// Looks at the files of a plugin: its manifest, where it has one, and the one that runs. Both
    /// must lie below `root`, where there is one.
    pub fn of_files(files: &[&Path], root: Option<&Path>) -> Self {
        let mut machine_facts = Self::default();
        let real_root = root.and_then(|root| root.canonicalize().ok());
        for file in files {
            let Ok(real) = file.canonicalize() else {
                // Nothing is refused for it: loading tells why it cannot be read.
                let is_program = cfg!(windows) && file.with_extension("exe").exists();
                if !file.exists() && !is_program {
                    machine_facts.absent.get_or_insert(file.to_path_buf());
                }
                continue;
            };
            if real_root.as_ref().is_some_and(|root| !real.starts_with(root)) {
                machine_facts.outside.push(file.to_path_buf());
            }
            let folder = real.parent().unwrap_or(&real);
            // Who can write to a folder above can put another in the place of this one.
            let root = real_root.as_deref().filter(|root| folder.starts_with(root));
            let above = folder
                .ancestors()
                .take_while(|above| root.is_some_and(|root| above.starts_with(root)));
            let own = if root.is_none() { Some(folder) } else { None };
            for path in [&*real].into_iter().chain(own).chain(above) {
                if is_world_writable(path)
                    && !machine_facts.world_writable.iter().any(|p| p == path)
                {
                    machine_facts.world_writable.push(path.to_path_buf());
                }
            }
        }
        machine_facts
    }

    /// Looks for the folder that a program is started in.
    pub fn look_for_folder(&mut self, source: &CodeSource) {
        let CodeSource::Mcp(server) = source else { return };
        let ServerLocation::Child(ServerCommand { folder: Some(folder), .. }) = &server.place
        else {
            return;
        };
        if !folder.is_dir() {
            self.absent.get_or_insert(folder.clone());
        }
    }

    /// Looks for what a manifest requires.
    pub fn look_for(&mut self, requires: &HostRequirements, host_environment: &HostEnvironment) {
        let is_set = |name: &String| host_environment.variable(name).is_some_and(|v| !v.is_empty());
        let is_missing = |name: &&String| !is_set(name);
        self.missing_env = requires.env.iter().filter(is_missing).cloned().collect();
        let groups = requires.env_any.iter().filter(|group| !group.iter().any(is_set));
        self.missing_env_any = groups.cloned().collect();
        let is_missing = |name: &&String| !is_in_path(name, host_environment);
        self.missing_bins = requires.bins.iter().filter(is_missing).cloned().collect();
    }
}

fn is_in_path(program: &str, host_environment: &HostEnvironment) -> bool {
    let Some(path) = host_environment.environment.get(OsStr::new("PATH")) else { return false };
    std::env::split_paths(path).any(|folder| {
        let file = folder.join(program);
        is_executable(&file) || cfg!(windows) && is_executable(&file.with_extension("exe"))
    })
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// A folder in which everybody may write but not replace what others wrote (`/tmp`, mode 1777) does
/// not count.
#[cfg(unix)]
fn is_world_writable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|data| {
        let mode = data.permissions().mode();
        mode & 0o002 != 0 && !(data.is_dir() && mode & 0o1000 != 0)
    })
}

#[cfg(not(unix))]
fn is_world_writable(_: &Path) -> bool {
    false
}
