//! The connections of a program whose network is that of all programs: it gets none of its own. Each call of connect(2)
//! waits for this one, which gives the program a connection to the host's proxy in place of its socket, or refuses. What
//! the program names meanwhile does not matter: where the connection leads is decided here.

use nix::unistd::Pid;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};

use super::network::Forwarder;
use super::process_memory;

/// The port of loopback at which the program finds the proxy: that of Squid, as most have it. Nobody listens there for
/// it.
pub(super) const PROXY_PORT: u16 = 3128;

/// Answers the calls that a listener tells of, until there is nobody who calls.
pub(super) fn answer(listener: &OwnedFd, forwarder: &Forwarder) {
    loop {
        // SAFETY: it is a structure of numbers; the kernel wants it zeroed.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        match control(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) {
            Ok(()) => {}
            // Who called has ended meanwhile.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::ENOENT)) => {
                continue;
            }
            Err(_) => return,
        }
        let error = match connect(listener, &call, forwarder) {
            Ok(()) => 0,
            Err(error) => error.raw_os_error().unwrap_or(libc::ECONNREFUSED),
        };
        let mut answer = libc::seccomp_notif_resp { id: call.id, val: 0, error: -error, flags: 0 };
        // Who called may have ended.
        let _ = control(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer);
    }
}

/// Puts a connection to the proxy in the place of the socket that is to be connected.
fn connect(
    listener: &OwnedFd,
    call: &libc::seccomp_notif,
    forwarder: &Forwarder,
) -> io::Result<()> {
    let caller = Pid::from_raw(call.pid.cast_signed());
    let [socket, at, length, ..] = call.data.args;
    let address = process_memory::address(caller, at, length);
    let flags = flags(caller, socket as u32);
    let is_socket = fs::read_link(format!("/proc/{caller}/fd/{}", socket as u32))
        .is_ok_and(|target| target.as_os_str().as_encoded_bytes().starts_with(b"socket:"));
    // What was read is of the caller only if that is still there.
    let mut id = call.id;
    control(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw mut id)?;
    if address != Some(SocketAddr::from((Ipv4Addr::LOCALHOST, PROXY_PORT))) {
        return Err(io::Error::from_raw_os_error(libc::ENETUNREACH));
    }
    if !is_socket {
        return Err(io::Error::from_raw_os_error(libc::ENOTSOCK));
    }
    let flags = flags.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
    let (program, proxy) = pair()?;
    program.set_nonblocking(flags & libc::O_NONBLOCK != 0)?;
    let mut given = libc::seccomp_notif_addfd {
        id: call.id,
        flags: libc::SECCOMP_ADDFD_FLAG_SETFD as u32,
        srcfd: program.as_raw_fd().cast_unsigned(),
        newfd: socket as u32,
        newfd_flags: (flags & libc::O_CLOEXEC).cast_unsigned(),
    };
    control(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw mut given)?;
    forwarder.forward(proxy);
    Ok(())
}

/// The flags of something that a process has open: see proc_pid_fdinfo(5).
fn flags(process: Pid, number: u32) -> Option<i32> {
    let told = fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).ok()?;
    let flags = told.lines().find_map(|line| line.strip_prefix("flags:"))?;
    i32::from_str_radix(flags.trim(), 8).ok()
}

/// Both ends of a TCP connection, which is what the program expects. Nobody else gets one of them.
fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let own = one.local_addr()?;
    loop {
        let (other, address) = listener.accept()?;
        if address == own {
            return Ok((one, other));
        }
    }
}

/// A call of ioctl(2) with a structure that belongs to it.
fn control<T>(listener: &OwnedFd, number: libc::Ioctl, told: *mut T) -> io::Result<()> {
    // SAFETY: each number here is called with a pointer to the structure that its kernel interface has, which lives until
    // the call is over.
    match unsafe { libc::ioctl(listener.as_raw_fd(), number, told) } {
        error if error < 0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
