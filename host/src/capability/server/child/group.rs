//! A process group that does not outlive the host.
//!
//! On Unix the group's leader is a shell that waits for the end of its input, a pipe whose other
//! end only the host holds. When the host ends, killed or not, the pipe closes and the shell kills
//! its own group. It ignores the signals that ask for termination, so that it is there to the last,
//! and as long as it is, the group's number cannot come to mean another group. A child that leaves
//! the group by itself escapes; its pipes break all the same.
//!
//! Elsewhere a child is killed when it is dropped, and its own children are not.

use std::io;
use tokio::process::Command;

/// What is sent to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Terminate,
    Kill,
}

#[cfg(unix)]
mod imp {
    use super::*;
    use rustix::process::{Pid, kill_process_group};
    use std::process::Stdio;
    use tokio::process::{Child, ChildStdin};

    /// What the leader does.
    const LEADER: &str = "trap '' HUP INT QUIT TERM; read -r _; kill -KILL 0";

    pub(in super::super) struct Group {
        number: Pid,
        _leader: Child,
        /// Closes with the host.
        _lifeline: Option<ChildStdin>,
    }

    impl Group {
        pub(in super::super) fn new() -> io::Result<Self> {
            let mut leader = Command::new("/bin/sh")
                .args(["-c", LEADER])
                .env_clear()
                .current_dir("/")
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0)
                .spawn()?;
            let lifeline = leader.stdin.take();
            let number = leader
                .id()
                .and_then(|id| Pid::from_raw(id.cast_signed()))
                .ok_or_else(|| io::Error::other("the leader of the process group has ended"))?;
            Ok(Self { number, _leader: leader, _lifeline: lifeline })
        }

        /// Makes a command run in the group.
        pub(in super::super) fn enclose(&self, command: &mut Command) {
            command.process_group(self.number.as_raw_pid());
        }

        pub(in super::super) fn signal(&self, signal: Signal) {
            let signal = match signal {
                Signal::Terminate => rustix::process::Signal::TERM,
                Signal::Kill => rustix::process::Signal::KILL,
            };
            // A group without members any more has nothing left to kill.
            let _ = kill_process_group(self.number, signal);
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            // The leader is reaped after this, so the number still means this group.
            self.signal(Signal::Kill);
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use super::*;

    pub(in super::super) struct Group;

    impl Group {
        pub(in super::super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(in super::super) fn enclose(&self, _: &mut Command) {}

        pub(in super::super) fn signal(&self, _: Signal) {}
    }
}

pub(super) use imp::Group;
