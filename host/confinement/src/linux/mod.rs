//! The launcher on Linux: two processes, one inside of the other's namespaces.
//!
//! The outer one makes the namespaces and waits. The inner one is their first process: when it ends, the kernel ends all
//! others in them, whatever they have done to get away. It is killed with the outer one.

mod files;
mod network;
mod recorder;
mod support;
mod system_calls;

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, fork};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getgid, getrlimit,
    getuid, set_dumpable_behavior, set_parent_process_death_signal, setrlimit, wait, waitpid,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::fmt;
use std::fs;
use std::io;
use std::process::{Command, ExitCode};
use std::thread;

pub(crate) use support::check as support;

use self::recorder::Recorder;
use self::system_calls::Filters;
use crate::program::{ConfinedProgram, ProcessLimits};
use crate::{LaunchError, NOT_CONFINED};

/// An error of the launcher, by what it was doing.
fn failed<E: fmt::Display>(doing: &'static str) -> impl FnOnce(E) -> LaunchError {
    move |error| LaunchError { doing, problem: error.to_string() }
}

/// Makes the namespaces and a process in them, and ends as that ends.
pub(crate) fn run() -> Result<ExitCode, LaunchError> {
    // Who stops the program sends signals to the whole group, and is told how it ended.
    SigSet::all().thread_block().map_err(failed("blocking signals"))?;
    close_inherited();
    let threads = fs::read_dir("/proc/self/task").map_err(failed("counting threads"))?.count();
    if threads != 1 {
        let problem = "the host calls `run_launcher` too late: it has other threads".into();
        return Err(LaunchError { doing: "starting the launcher", problem });
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let namespaces = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    unshare(namespaces).map_err(failed("making namespaces"))?;
    let write =
        |file: &str, text: String| fs::write(file, text).map_err(failed("mapping the user"));
    // Only who may set no groups may map one.
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    // Not by starting this executable once more, which takes as long as all else.
    // SAFETY: this process has one thread, so nothing is held by another that the new process does not have.
    match unsafe { fork() }.map_err(failed("starting the launcher"))? {
        ForkResult::Child => run_inner(),
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

/// Makes the sandbox, starts the program in it, and waits for its end.
fn run_inner() -> Result<ExitCode, LaunchError> {
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
        Some(recorder) => recorder.follow(start(program, proxied, true)?).map(Started::Ended),
        None => start(program, proxied, false).map(Started::Running),
    });
    let started = started.join().map_err(|_| LaunchError {
        doing: "starting the program",
        problem: "the launcher broke off".into(),
    })??;
    match started {
        Started::Running(program) => wait_for(program),
        Started::Ended(code) => Ok(code),
    }
}

/// What has become of the program.
enum Started {
    Running(Pid),
    Ended(ExitCode),
}

/// The standard input, unbuffered: what is behind the description is the program's.
fn stdin() -> Result<fs::File, LaunchError> {
    use std::os::fd::AsFd;
    let input =
        io::stdin().as_fd().try_clone_to_owned().map_err(failed("reading what to start"))?;
    Ok(input.into())
}

/// Restricts this thread, and starts the program with it. Gives its process. One that is recorded is traced by this thread.
fn start(
    program: ConfinedProgram,
    proxy: Option<u16>,
    is_recorded: bool,
) -> Result<Pid, LaunchError> {
    let mut command = Command::new(&program.program);
    command.args(&program.arguments).env_clear().envs(program.environment.iter().cloned());
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    if let Some((_, folder)) = files::temporary(&program) {
        command.env("TMPDIR", folder);
    }
    if let Some(port) = proxy {
        command.envs(network::proxy_environment(port));
    }
    limit(&program.confinement.limits)?;
    drop_capabilities()?;
    if !program.confinement.recording.as_ref().is_some_and(|recording| recording.opens_files) {
        files::restrict(&program)?;
    }
    if is_recorded {
        return recorder::start(&command);
    }
    Filters::new()?.apply().map_err(failed("restricting system calls"))?;
    let child = command.spawn().map_err(|error| LaunchError {
        doing: "starting the program",
        problem: format!("{}: {error}", program.program.display()),
    })?;
    Ok(Pid::from_child(&child))
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
