//! What a hostile program tries. Each attempt prints `reached`, or why not.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, connect, sendto, socket, socket_with,
};
use rustix::process::{Pid, Resource, Signal, kill_process, setsid};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, SystemTime};

/// The argument before the name of an attempt.
pub(crate) const ARGUMENT: &str = "attempt";

pub(crate) fn run(words: &[OsString]) -> ExitCode {
    let words: Vec<&str> = words.iter().map(|word| word.to_str().expect("it is text")).collect();
    match attempt(words[0], &words[1..]) {
        Ok(()) => output("reached"),
        Err(error) => output(&error.to_string()),
    }
    ExitCode::SUCCESS
}

fn output(line: &str) {
    let mut output = io::stdout();
    writeln!(output, "{line}").and_then(|()| output.flush()).expect("it is read");
}

fn attempt(name: &str, words: &[&str]) -> io::Result<()> {
    match name {
        "read" => fs::read(words[0]).map(drop),
        "list" => fs::read_dir(words[0]).map(drop),
        "write" => fs::write(words[0], "x"),
        "remove" => fs::remove_file(words[0]),
        "run" => Command::new(words[0]).status().map(drop),
        // A link in a folder of its own, to what is none of it.
        "read-through-link" => {
            symlink(words[1], words[0])?;
            fs::read(words[0]).map(drop)
        }
        // A file that is moved into a folder of its own.
        "rename" => fs::rename(words[1], words[0]),
        "link" => fs::hard_link(words[1], words[0]),
        "change-mode" => fs::set_permissions(words[0], PermissionsExt::from_mode(0o666)),
        "change-time" => fs::File::open(words[0])?.set_modified(SystemTime::UNIX_EPOCH),
        "set-attribute" => {
            Ok(rustix::fs::setxattr(words[0], "user.x", b"y", rustix::fs::XattrFlags::empty())?)
        }
        "send-datagram" => {
            let (socket, _) = UnixDatagram::pair()?;
            socket.send_to(b"x", words[0]).map(drop)
        }
        "connect" => TcpStream::connect(words[0]).map(drop),
        // By a socket that does not wait.
        "connect-later" => connect_later(words[0].parse().expect("it is an address")),
        // With what is sent first.
        "connect-fast" => connect_fast(words[0].parse().expect("it is an address")),
        "datagram" => {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.send_to(b"x", words[0]).map(drop)
        }
        "socket" => Ok(socket(AddressFamily::INET, SocketType::STREAM, None).map(drop)?),
        "request" => request(words[0]),
        "listen" => TcpListener::bind("127.0.0.1:0").map(drop),
        "connect-unix" => UnixStream::connect(words[0]).map(drop),
        "connect-abstract" => {
            let address = SocketAddr::from_abstract_name(words[0])?;
            UnixStream::connect_addr(&address).map(drop)
        }
        "raw-socket" => Ok(socket(AddressFamily::PACKET, SocketType::RAW, None).map(drop)?),
        "vsock" => Ok(socket(AddressFamily::VSOCK, SocketType::STREAM, None).map(drop)?),
        "signal" => {
            let number = words[0].parse().expect("it is a number");
            let process = Pid::from_raw(number).expect("it is not zero");
            Ok(kill_process(process, Signal::WINCH)?)
        }
        "limit-process" => {
            let process = Pid::from_raw(words[0].parse().expect("it is a number"));
            let same = rustix::process::getrlimit(Resource::Core);
            Ok(rustix::process::prlimit(process, Resource::Core, same).map(drop)?)
        }
        "slow-process" => {
            let process = Pid::from_raw(words[0].parse().expect("it is a number"));
            Ok(rustix::process::setpriority_process(process, 0)?)
        }
        "shared-memory" => {
            let key = words[0].parse().expect("it is a number");
            // SAFETY: nothing is mapped.
            match unsafe { libc::shmget(key, 0, 0) } {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            }
        }
        "see-process" => fs::read(format!("/proc/{}/cmdline", words[0])).map(drop),
        "memory-of-parent" => {
            let parent = std::os::unix::process::parent_id();
            fs::read(format!("/proc/{parent}/maps")).map(drop)
        }
        "user-namespace" => system(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER)),
        // `strace` and the like.
        "trace" => trace(),
        "io-uring" => io_uring(),
        "x32" => x32(),
        "allocate" => allocate(words[0].parse().expect("it is a number")),
        "fork" => fork(words[0].parse().expect("it is a number")),
        "daemon" => daemon(words[0], false),
        // Its first thread ends before it does.
        "headless-daemon" => daemon(words[0], true),
        "own-signals" => {
            let (socket, _other) = UnixStream::pair()?;
            let process: libc::c_int = words[0].parse().expect("it is a number");
            // SAFETY: the call takes a number.
            match unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_SETOWN, process) } {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            }
        }
        "set-flags" => {
            let file = fs::File::open(words[0])?;
            let flags = rustix::fs::ioctl_getflags(&file)?;
            Ok(rustix::fs::ioctl_setflags(&file, flags)?)
        }
        "echo" => io::copy(&mut io::stdin(), &mut io::stdout()).map(drop),
        "environment" => {
            let known = std::env::vars().map(|(name, _)| name).collect::<Vec<_>>();
            Err(io::Error::other(known.join(" ")))
        }
        other => panic!("there is no attempt {other}"),
    }
}

fn system<T>(result: Result<T, nix::Error>) -> io::Result<()> {
    result.map(drop).map_err(io::Error::from)
}

/// Requests a URL of the proxy that the environment names.
fn request(url: &str) -> io::Result<()> {
    let proxy = std::env::var("http_proxy").map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(proxy.trim_start_matches("http://"))?;
    stream.write_all(format!("GET {url} HTTP/1.1\r\nconnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.starts_with("HTTP/1.1 200") {
        true => Ok(()),
        false => Err(io::Error::other(answer)),
    }
}

fn connect_later(address: std::net::SocketAddr) -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
        None,
    )?;
    match connect(&socket, &address) {
        Ok(()) => return Ok(()),
        Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    poll(&mut [PollFd::new(&socket, PollFlags::OUT)], None)?;
    Ok(socket_error(&socket)??)
}

fn connect_fast(address: std::net::SocketAddr) -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    let flags = SendFlags::from_bits_retain(libc::MSG_FASTOPEN.cast_unsigned());
    Ok(sendto(&socket, b"x", flags, &address).map(drop)?)
}

fn trace() -> io::Result<()> {
    let mut child = Command::new("/bin/sleep").arg("5").spawn()?;
    let process = nix::unistd::Pid::from_raw(child.id().cast_signed());
    let seized = nix::sys::ptrace::seize(process, nix::sys::ptrace::Options::empty());
    child.kill()?;
    child.wait()?;
    system(seized)
}

/// A call that no filter knows fails because of its argument, not because it is forbidden.
fn io_uring() -> io::Result<()> {
    let io_uring = fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    if io_uring.is_ok_and(|disabled| disabled.trim() != "0") {
        return Ok(());
    }
    match rustix_io_uring() {
        Err(Errno::PERM) => Err(Errno::PERM.into()),
        _ => Ok(()),
    }
}

/// `getpid` of the x32 ABI, which not every kernel has.
fn x32() -> io::Result<()> {
    // SAFETY: the call takes nothing, and changes nothing.
    match unsafe { libc::syscall(0x4000_0000 | libc::SYS_getpid) } {
        -1 if io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) => {
            Err(io::Error::last_os_error())
        }
        _ => Ok(()),
    }
}

fn rustix_io_uring() -> rustix::io::Result<()> {
    let mut parameters = rustix::io_uring::io_uring_params::default();
    // SAFETY: the parameters are whole, and what is set up is closed at once, before anything is put into it.
    unsafe { rustix::io_uring::io_uring_setup(1, &mut parameters) }.map(drop)
}

/// Takes so many mebibytes.
fn allocate(mebibytes: usize) -> io::Result<()> {
    let mut kept = Vec::new();
    for _ in 0..mebibytes {
        let mut block: Vec<u8> = Vec::new();
        block.try_reserve_exact(1 << 20).map_err(io::Error::other)?;
        block.resize(1 << 20, 1);
        kept.push(block);
    }
    Ok(())
}

/// Starts so many processes, and has them be there together.
fn fork(many: usize) -> io::Result<()> {
    let mut children = Vec::new();
    for _ in 0..many {
        match Command::new("/bin/sleep").arg("60").spawn() {
            Ok(child) => children.push(child),
            Err(error) => {
                children.iter_mut().for_each(|child| drop(child.kill()));
                return Err(error);
            }
        }
    }
    for child in &mut children {
        child.kill()?;
        child.wait()?;
    }
    Ok(())
}

/// Leaves everything that it could be ended by: it begins a session of its own, in a process that its parent does not wait
/// for, and holds this file open for as long as it lives.
fn daemon(lock: &str, is_headless: bool) -> io::Result<()> {
    let me = std::env::current_exe()?;
    match std::env::var_os("DAEMON") {
        None => {
            let name = if is_headless { "headless-daemon" } else { "daemon" };
            Command::new(me).args([ARGUMENT, name, lock]).env("DAEMON", "1").spawn().map(drop)
        }
        Some(_) => {
            setsid()?;
            let file = fs::OpenOptions::new().write(true).open(lock)?;
            rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
            let stays = || loop {
                thread::sleep(Duration::from_secs(600));
            };
            if is_headless {
                thread::spawn(stays);
                output("daemon");
                // SAFETY: only this thread ends, and nobody waits for it.
                unsafe { libc::syscall(libc::SYS_exit, 0) };
            }
            output("daemon");
            stays()
        }
    }
}
