//! The inner process of the launcher where users may make no namespaces, as in containers and with some distributions:
//! a guard, which is not in the sandbox itself. Landlock and seccomp restrict the program. What it starts and leaves behind
//! becomes the guard's to end: they have a domain of signals together, and within that the program has one of its own, so
//! that it cannot send the guard any. Should the outer process be killed, the guard is told, and ends all.
//!
//! Less holds than in namespaces: see `docs/reference/mcp-servers.md`.

use nix::sys::signal::SigSet;
use nix::sys::signal::Signal::{SIGCHLD, SIGKILL, SIGTERM};
use nix::unistd::{ForkResult, fork};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitOptions, getpid, getppid, getrlimit,
    set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal, setpgid,
    setrlimit, wait,
};
use std::fs;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use super::connections::{self, PROXY_PORT};
use super::files::{self, MountNamespace};
use super::network::{Forwarder, ProxySocket};
use super::system_calls::{Filters, tell_connections};
use super::{Outer, command, drop_capabilities, exit_code, failed, limit, not_started, stdin};
use crate::program::{ConfinedProgram, ProcessLimits};
use crate::{LaunchError, WITHOUT_NAMESPACES};

/// Starts the program in the sandbox, waits for its end, and ends all that it has left.
pub(super) fn run(outer: Outer) -> Result<ExitCode, LaunchError> {
    super::support::check_without_namespaces().map_err(|problem| LaunchError {
        doing: "making namespaces",
        problem: format!("this system lets users make none, and {problem}"),
    })?;
    setpgid(None, None).map_err(failed("leaving the group"))?;
    set_child_subreaper(Some(getpid())).map_err(failed("keeping processes"))?;
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(failed("waiting for the host"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed("closing the launcher"))?;
    files::restrict_signals()?;
    open_many_files();
    // It may have ended before this one asked to be told.
    if getppid() != Some(outer.process) {
        return Err(LaunchError { doing: "waiting for the host", problem: "it has ended".into() });
    }
    let program = ConfinedProgram::decode(stdin()?).map_err(failed("reading what to start"))?;
    if program.confinement.recording.is_some() {
        let problem = "this system lets users make no namespaces, which that needs".into();
        return Err(LaunchError { doing: "recording", problem });
    }
    files::check_hidden(&program)?;
    let proxy = program.confinement.proxy.as_deref().map(ProxySocket::open).transpose()?;
    let channel = proxy.is_some().then(UnixStream::pair).transpose();
    let channel = channel.map_err(failed("making a channel"))?;
    let (own, of_program) = channel.unzip();
    // The host reads it.
    let _ = writeln!(io::stderr(), "{WITHOUT_NAMESPACES}");
    // SAFETY: this process has one thread, so nothing is held by another that the new process does not have.
    match unsafe { fork() }.map_err(failed("starting the program"))? {
        ForkResult::Child => start(&program, of_program.as_ref(), outer.group),
        ForkResult::Parent { child } => {
            drop(of_program);
            // As long as it is open, what the program was allowed of its own files means the same.
            let _own_files = fs::File::open(format!("/proc/{child}"));
            if let (Some(channel), Some(proxy)) = (own, proxy) {
                let forwarder = Forwarder::new(proxy);
                thread::spawn(move || {
                    // There is none where the program was not started.
                    if let Ok(Some(listener)) = receive(&channel) {
                        connections::answer(&listener, &forwarder);
                    }
                });
            }
            let code = wait_for(Pid::from_raw(child.as_raw()));
            end_all();
            code
        }
    }
}

/// Lets this process have as many files open as it may: connections take some.
fn open_many_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Fewer connections are led then.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Restricts this process, and becomes the program.
fn start(
    program: &ConfinedProgram,
    channel: Option<&UnixStream>,
    group: Pid,
) -> Result<ExitCode, LaunchError> {
    // It gets the signals of the host.
    setpgid(None, Some(group)).map_err(failed("entering the group"))?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed("waiting for the host"))?;
    SigSet::all().thread_unblock().map_err(failed("letting signals through"))?;
    let mut command = command(program, MountNamespace::Shared, channel.map(|_| PROXY_PORT));
    let limits = &program.confinement.limits;
    // The kernel counts all that its user has running.
    let processes = limits.processes.map(|most| most.saturating_add(running_of_user()));
    limit(&ProcessLimits { processes, ..*limits })?;
    drop_capabilities()?;
    let filters = Filters::without_namespaces(channel.is_some())?;
    files::restrict(program, MountNamespace::Shared)?;
    if let Some(channel) = channel {
        let listener = tell_connections().map_err(failed("restricting connections"))?;
        send(channel, &listener).map_err(failed("restricting connections"))?;
    }
    filters.apply().map_err(failed("restricting system calls"))?;
    Err(not_started(program, &command.exec()))
}

/// Sends something open to the other end of a channel, with one byte.
fn send(channel: &UnixStream, open: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    let open = [open.as_fd()];
    message.push(SendAncillaryMessage::ScmRights(&open));
    sendmsg(channel, &[IoSlice::new(b"o")], &mut message, SendFlags::empty())?;
    Ok(())
}

/// What was sent. Nothing where the other end was closed.
fn receive(channel: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let mut received = message.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(open) => Some(open),
        _ => None,
    });
    Ok(received.next().and_then(|mut open| open.next()))
}

/// Waits for the end of the program, or of the outer process.
fn wait_for(program: Option<Pid>) -> Result<ExitCode, LaunchError> {
    let wanted: SigSet = [SIGCHLD, SIGTERM].into_iter().collect();
    loop {
        let signal = wanted.wait().map_err(failed("waiting for the program"))?;
        if signal == SIGTERM {
            return Ok(ExitCode::from(crate::NOT_CONFINED));
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((process, status))) if Some(process) == program => {
                    return Ok(exit_code(status));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(error) => return Err(failed("waiting for the program")(error)),
            }
        }
    }
}

/// Ends all that the program has started, wherever it is. The kernel finds it: a signal to everybody reaches nobody outside
/// of the domain of signals.
fn end_all() {
    loop {
        // There may be none.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(-1), SIGKILL);
        // They all become this one's to reap.
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => thread::sleep(REAPING_DELAY),
            Err(_) => return,
        }
    }
}

/// How long processes that were ended are waited for, before it is tried again.
const REAPING_DELAY: Duration = Duration::from_millis(1);

/// How many threads of this process's user are running.
fn running_of_user() -> u64 {
    let user = rustix::process::getuid().as_raw();
    let is_own = |process: &ProcStat| {
        let of = fs::metadata(format!("/proc/{}", process.number));
        of.is_ok_and(|metadata| metadata.uid() == user)
    };
    processes().filter(is_own).map(|process| process.threads).sum()
}

/// A process as `/proc` has it.
struct ProcStat {
    number: i32,
    threads: u64,
}

fn processes() -> impl Iterator<Item = ProcStat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|number: i32| {
        let told = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        process(number, &told)
    })
}

/// Reads the line that proc_pid_stat(5) describes.
fn process(number: i32, line: &str) -> Option<ProcStat> {
    // The name of the program is in brackets, and may have any in it.
    let (_, fields) = line.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(ProcStat { number, threads: fields.get(17)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_read_whatever_they_are_called() {
        let line = "7 (a) S 1 (b) Z 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 5 0 99";
        let read = process(7, line).unwrap();
        assert_eq!((read.number, read.threads), (7, 5));
        assert!(process(7, "7 (a").is_none() && process(7, "7 (a) S").is_none());
        let own = processes().find(|of| of.number == getpid().as_raw_nonzero().get()).unwrap();
        assert!(own.threads >= 1);
    }
}
