//! The inner process of the launcher in namespaces of its own. When it ends, the kernel ends all others in them, whatever
//! they have done to get away. It is killed with the outer one.

use nix::sys::signal::SigSet;
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, set_dumpable_behavior,
    set_parent_process_death_signal, wait,
};
use std::process::ExitCode;
use std::thread;

use super::files::{self, MountNamespace};
use super::recorder::{self, Recorder};
use super::system_calls::Filters;
use super::{command, drop_capabilities, exit_code, failed, limit, network, not_started, stdin};
use crate::LaunchError;
use crate::program::ConfinedProgram;

/// Makes the sandbox, starts the program in it, and waits for its end.
pub(super) fn run() -> Result<ExitCode, LaunchError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed("waiting for the host"))?;
    // The program gets signals as ever.
    SigSet::all().thread_unblock().map_err(failed("letting signals through"))?;
    // The program must not get at this process, whose other threads are not in the sandbox.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed("closing the launcher"))?;
    let program = ConfinedProgram::decode(stdin()?).map_err(failed("reading what to start"))?;
    // Before its path may be hidden.
    let proxy = program.confinement.proxy.as_deref().map(network::ProxySocket::open).transpose()?;
    files::close(&program)?;
    // Before the file is hidden.
    let recorder = Recorder::of(&program)?;
    files::hide(&program)?;
    network::bring_loopback_up()?;
    let proxied = proxy.map(network::forward).transpose()?;
    // In a thread of its own: what it restricts are itself and what it starts. This one goes on reaping.
    let started = thread::spawn(move || match recorder {
        // Only the thread that starts a program can trace it.
        Some(recorder) => recorder.follow(start(program, proxied, true)?).map(ProgramState::Ended),
        None => start(program, proxied, false).map(ProgramState::Running),
    });
    let started = started.join().map_err(|_| LaunchError {
        doing: "starting the program",
        problem: "the launcher broke off".into(),
    })??;
    match started {
        ProgramState::Running(program) => wait_for(program),
        ProgramState::Ended(code) => Ok(code),
    }
}

/// What has become of the program.
enum ProgramState {
    Running(Pid),
    Ended(ExitCode),
}

/// Restricts this thread, and starts the program with it. Gives its process. One that is recorded is traced by this thread.
fn start(
    program: ConfinedProgram,
    proxy: Option<u16>,
    is_recorded: bool,
) -> Result<Pid, LaunchError> {
    let mut command = command(&program, MountNamespace::Own, proxy);
    limit(&program.confinement.limits)?;
    drop_capabilities()?;
    if !program.confinement.recording.as_ref().is_some_and(|recording| recording.opens_files) {
        files::restrict(&program, MountNamespace::Own)?;
    }
    if is_recorded {
        return recorder::start(&command);
    }
    Filters::in_namespaces()?.apply().map_err(failed("restricting system calls"))?;
    let child = command.spawn().map_err(|error| not_started(&program, &error))?;
    Ok(Pid::from_child(&child))
}

/// Waits for the program, and for all that is left to the first process of a namespace. The others end with it.
fn wait_for(program: Pid) -> Result<ExitCode, LaunchError> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((process, status))) if process == program => return Ok(exit_code(status)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(failed("waiting for the program")(error)),
        }
    }
}
