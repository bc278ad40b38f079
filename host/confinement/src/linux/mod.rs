//! The launcher on Linux: two processes, of which the outer one has the host's signals and waits, and the inner one makes
//! the sandbox. Where users may make namespaces, the inner one is their first process (`namespaces`); elsewhere Landlock and
//! seccomp have to do (`without_namespaces`).

mod connections;
mod files;
mod namespaces;
mod network;
mod process_memory;
mod recorder;
mod support;
mod system_calls;
mod without_namespaces;

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, fork};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, WaitOptions, WaitStatus, getgid, getpgrp, getpid, getrlimit, getuid,
    setrlimit, waitpid,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::fmt;
use std::fs;
use std::io;
use std::process::{Command, ExitCode};

pub(crate) use support::check as support;

use self::files::MountNamespace;
use crate::program::{ConfinedProgram, ProcessLimits};
use crate::{LaunchError, NOT_CONFINED};

/// An error of the launcher, by what it was doing.
fn failed<E: fmt::Display>(doing: &'static str) -> impl FnOnce(E) -> LaunchError {
    move |error| LaunchError { doing, problem: error.to_string() }
}

/// Starts the process that makes the sandbox, and ends as that ends.
pub(crate) fn run() -> Result<ExitCode, LaunchError> {
    // Who stops the program sends signals to the whole group, and is told how it ended.
    SigSet::all().thread_block().map_err(failed("blocking signals"))?;
    close_inherited();
    let threads = fs::read_dir("/proc/self/task").map_err(failed("counting threads"))?.count();
    if threads != 1 {
        let problem = "the host calls `run_launcher` too late: it has other threads".into();
        return Err(LaunchError { doing: "starting the launcher", problem });
    }
    let inner: fn(Outer) -> Result<ExitCode, LaunchError> = match make_namespaces()? {
        true => |_| namespaces::run(),
        false => without_namespaces::run,
    };
    let outer = Outer { process: getpid(), group: getpgrp() };
    // Not by starting this executable once more, which takes as long as all else.
    // SAFETY: this process has one thread, so nothing is held by another that the new process does not have.
    match unsafe { fork() }.map_err(failed("starting the launcher"))? {
        ForkResult::Child => inner(outer),
        ForkResult::Parent { child } => {
            let problem = || LaunchError { doing: "waiting", problem: "no process id".into() };
            let child = Pid::from_raw(child.as_raw()).ok_or_else(problem)?;
            loop {
                match waitpid(Some(child), WaitOptions::empty()) {
                    Ok(Some((_, status))) => return Ok(exit_code(status)),
                    Ok(None) | Err(Errno::INTR) => {}
                    Err(error) => return Err(failed("waiting for the launcher")(error)),
                }
            }
        }
    }
}

/// The outer process, which the host started.
struct Outer {
    process: Pid,
    /// The group that the host sends its signals to.
    group: Pid,
}

/// Makes the namespaces. Gives whether users may.
fn make_namespaces() -> Result<bool, LaunchError> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let namespaces = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    if support::check_namespaces().is_err() {
        return Ok(false);
    }
    match unshare(namespaces) {
        Ok(()) => {}
        // Forbidden, none of them left to be made, or none in this kernel.
        Err(nix::errno::Errno::EPERM | nix::errno::Errno::ENOSPC | nix::errno::Errno::EINVAL) => {
            return Ok(false);
        }
        Err(error) => return Err(failed("making namespaces")(error)),
    }
    let write =
        |file: &str, text: String| fs::write(file, text).map_err(failed("mapping the user"));
    // Only who may set no groups may map one.
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(true)
}

/// Closes what whoever started the host had open: it is nothing for the program.
fn close_inherited() {
    const FIRST: libc::c_uint = 3;
    // SAFETY: nothing here has opened anything yet.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, 0) };
}

/// The code of who ends as another process did: as shells have it, for one that was ended by a signal.
fn exit_code(status: WaitStatus) -> ExitCode {
    let signal = status.terminating_signal().map(|signal| 128 + signal);
    let code = status.exit_status().or(signal).and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(NOT_CONFINED))
}

/// The standard input, unbuffered: what is behind the description is the program's.
fn stdin() -> Result<fs::File, LaunchError> {
    use std::os::fd::AsFd;
    let input =
        io::stdin().as_fd().try_clone_to_owned().map_err(failed("reading what to start"))?;
    Ok(input.into())
}

/// The program as it is to be started, with a proxy at this port.
fn command(program: &ConfinedProgram, view: MountNamespace, proxy: Option<u16>) -> Command {
    let mut command = Command::new(&program.program);
    command.args(&program.arguments).env_clear().envs(program.environment.iter().cloned());
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    if let Some((_, folder)) = files::temporary(program, view) {
        command.env("TMPDIR", folder);
    }
    if let Some(port) = proxy {
        command.envs(network::proxy_environment(port));
    }
    command
}

/// A program that did not start.
fn not_started(program: &ConfinedProgram, error: &io::Error) -> LaunchError {
    LaunchError {
        doing: "starting the program",
        problem: format!("{}: {error}", program.program.display()),
    }
}

fn limit(limits: &ProcessLimits) -> Result<(), LaunchError> {
    let limits = [
        (Resource::Data, limits.memory),
        (Resource::Nproc, limits.processes),
        (Resource::Nofile, limits.open_files),
        (Resource::Core, Some(0)),
    ];
    for (resource, most) in limits {
        let Some(most) = most else { continue };
        // Nobody but root goes beyond what there is.
        let most = Some(getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most)));
        setrlimit(resource, Rlimit { current: most, maximum: most })
            .map_err(failed("setting limits"))?;
    }
    Ok(())
}

fn drop_capabilities() -> Result<(), LaunchError> {
    let none = CapabilitySet::empty();
    clear_ambient_capability_set().map_err(failed("dropping capabilities"))?;
    for capability in CapabilitySet::all().iter() {
        // Only root may, and only root gets any back; the kernel may know fewer of them.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(failed("dropping capabilities"))?;
    set_no_new_privs(true).map_err(failed("forbidding privileges"))
}
