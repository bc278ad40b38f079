//! Runs this program in a sandbox, or beside it.

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tenon_confinement::{
    ConfinedProgram, Confinement, ReachableFolder, WITHOUT_NAMESPACES, launcher_arguments,
};

use crate::attempts::ARGUMENT;

/// This program.
pub(crate) fn this() -> PathBuf {
    std::env::current_exe().expect("it is known")
}

/// A folder that may be read, or changed as well.
pub(crate) fn folder(path: &Path, write: bool) -> ReachableFolder {
    ReachableFolder { path: path.into(), read: true, write, follows_links: false }
}

/// What a system lets its users do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    /// They may make namespaces.
    WithNamespaces,
    /// They may not, as a container forbids it.
    WithoutNamespaces,
}

/// Starts an attempt in a sandbox.
pub(crate) fn start(system: System, confinement: Confinement, words: &[&str]) -> Child {
    start_program(system, &this(), [&[ARGUMENT], words].concat().as_slice(), confinement)
}

/// Starts a program in a sandbox.
pub(crate) fn start_program(
    system: System,
    program: &Path,
    words: &[&str],
    mut confinement: Confinement,
) -> Child {
    if program == this() {
        confinement.reachable.push(folder(program, false));
    }
    let confined = ConfinedProgram {
        program: program.into(),
        arguments: words.iter().map(ToString::to_string).collect(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        folder: Some("/".into()),
        confinement,
    };
    let mut launcher = Command::new(this());
    launcher.args(launcher_arguments()).env_clear().process_group(0);
    launcher.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if system == System::WithoutNamespaces {
        forbid_namespaces(&mut launcher);
    }
    let mut child = launcher.spawn().expect("the launcher starts");
    let input = child.stdin.as_mut().expect("it is piped");
    input.write_all(&confined.encode().expect("it is short")).expect("it is read");
    child
}

/// Lets a program make no namespaces.
fn forbid_namespaces(command: &mut Command) {
    let calls = BTreeMap::from([(libc::SYS_unshare, Vec::new())]);
    let fails = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let architecture = ARCH.try_into().expect("it is known");
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, fails, architecture);
    let filter: BpfProgram = filter.and_then(BpfProgram::try_from).expect("it is a filter");
    // SAFETY: setting a filter allocates and locks nothing.
    unsafe {
        command.pre_exec(move || seccompiler::apply_filter(&filter).map_err(io::Error::other))
    };
}

/// What an attempt says in a sandbox.
pub(crate) fn confined(system: System, confinement: Confinement, words: &[&str]) -> String {
    said(start(system, confinement, words).wait_with_output().expect("it ends"))
}

/// What an attempt says without one.
pub(crate) fn unconfined(words: &[&str]) -> String {
    let mut command = Command::new(this());
    said(command.arg(ARGUMENT).args(words).stdin(Stdio::null()).output().expect("it starts"))
}

fn said(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    // What is said of the sandbox itself, and not by the attempt.
    let errors: String = errors.lines().filter(|line| *line != WITHOUT_NAMESPACES).collect();
    format!("{}{errors}", String::from_utf8_lossy(&output.stdout)).trim().to_string()
}
