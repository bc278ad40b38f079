//! Runs a program in a sandbox: it reaches the files that it was granted, what every program needs of the system, and the
//! network through a proxy of the host's or not at all. No process that it starts outlives it.
//!
//! A host starts a *launcher* in place of the program: an executable that calls [`run_launcher`]. The launcher makes
//! namespaces of its own and becomes their first process; it hides what the program must not see, restricts itself with
//! Landlock and seccomp, and starts the program. What the program is, and what it may reach, the launcher reads from the
//! beginning of its standard input ([`ConfinedProgram::encode`]); the rest of that is the program's.
//!
//! This crate decides nothing: which files and hosts are granted, its caller says. It needs Linux with Landlock, and with
//! user namespaces or of version 6.12; elsewhere [`run_launcher`] says that it cannot.

mod program;

#[cfg(target_os = "linux")]
mod linux;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

pub use program::{
    ConfinedProgram, Confinement, ConfinementViolation, MAX_ENCODED_BYTES, ProcessLimits,
    ReachableFolder, RecordingOptions,
};

/// The exit code of a launcher that could not start the program. Standard error says why.
pub const NOT_CONFINED: u8 = 125;

/// The first line of a program's standard error where users may make no namespaces, by which its host knows: less of its
/// confinement holds.
pub const WITHOUT_NAMESPACES: &str = "tenon: this system lets users make no namespaces: the server is confined by Landlock and seccomp alone";

/// The argument that makes an executable a launcher.
const ARGUMENT: &str = "launch-confined";

/// The form of what a launcher is told. It changes with [`ConfinedProgram`]: host and launcher may be two executables, of
/// which one was replaced.
const FORM: &str = "3";

/// The arguments with which an executable is started that calls [`run_launcher`].
pub fn launcher_arguments() -> [&'static str; 2] {
    [ARGUMENT, FORM]
}

/// Checks that this system has what confinement needs, without trying it. It takes some microseconds.
///
/// # Errors
///
/// Says what is missing.
pub fn check_support() -> Result<(), String> {
    support()
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
#[error("the server cannot be confined: {doing}: {problem}")]
struct LaunchError {
    doing: &'static str,
    problem: String,
}

/// Runs a launcher, if the arguments of this process (without its name) are those of one. A host calls it before
/// anything else, with one thread.
pub fn run_launcher(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter();
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let launched = match arguments.next() {
        Some(form) if form == FORM => run(),
        _ => Err(LaunchError {
            doing: "starting the launcher",
            problem: "it is of another version of Tenon than the host".into(),
        }),
    };
    Some(launched.unwrap_or_else(|error| {
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "tenon: {error}");
        ExitCode::from(NOT_CONFINED)
    }))
}

#[cfg(target_os = "linux")]
use linux::{run, support};

#[cfg(not(target_os = "linux"))]
fn run() -> Result<ExitCode, LaunchError> {
    let problem = support().expect_err("there is none");
    Err(LaunchError { doing: "confining", problem })
}

#[cfg(not(target_os = "linux"))]
fn support() -> Result<(), String> {
    Err("programs are confined on Linux only".into())
}
