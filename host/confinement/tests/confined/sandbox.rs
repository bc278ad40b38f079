//! Runs this program in a sandbox, or beside it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tenon_confinement::{ConfinedProgram, Confinement, ReachableFolder, launcher_arguments};

use crate::attempts::ARGUMENT;

/// This program.
pub(crate) fn this() -> PathBuf {
    std::env::current_exe().expect("it is known")
}

/// A folder that may be read, or changed as well.
pub(crate) fn folder(path: &Path, write: bool) -> ReachableFolder {
    ReachableFolder { path: path.into(), read: true, write, follows_links: false }
}

/// Starts an attempt in a sandbox.
pub(crate) fn start(confinement: Confinement, words: &[&str]) -> Child {
    start_program(&this(), [&[ARGUMENT], words].concat().as_slice(), confinement)
}

/// Starts a program in a sandbox.
pub(crate) fn start_program(program: &Path, words: &[&str], mut confinement: Confinement) -> Child {
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
    let mut child = Command::new(this())
        .args(launcher_arguments())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the launcher starts");
    let input = child.stdin.as_mut().expect("it is piped");
    input.write_all(&confined.encode().expect("it is short")).expect("it is read");
    child
}

/// What an attempt says in a sandbox.
pub(crate) fn confined(confinement: Confinement, words: &[&str]) -> String {
    said(start(confinement, words).wait_with_output().expect("it ends"))
}

/// What an attempt says without one.
pub(crate) fn unconfined(words: &[&str]) -> String {
    let mut command = Command::new(this());
    said(command.arg(ARGUMENT).args(words).stdin(Stdio::null()).output().expect("it starts"))
}

fn said(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    format!("{}{errors}", String::from_utf8_lossy(&output.stdout)).trim().to_string()
}
