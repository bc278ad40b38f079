//! Standard input and output as streams. Where they are pipes or sockets, as those of a program that another one
//! started, the system tells when there is something to read. For files and terminals a thread waits.

use tokio::io::{AsyncRead, AsyncWrite, BufReader};

/// What is read of input at once, in bytes.
const BUFFER_BYTES: usize = 64 << 10;

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input and standard output.
pub(crate) fn streams() -> (BufReader<Input>, Output) {
    let input = input().unwrap_or_else(|| Box::new(tokio::io::stdin()));
    let output = output().unwrap_or_else(|| Box::new(tokio::io::stdout()));
    (BufReader::with_capacity(BUFFER_BYTES, input), output)
}

#[cfg(unix)]
fn input() -> Option<Input> {
    use std::os::fd::AsFd;
    use tokio::net::unix::pipe::Receiver;
    let descriptor = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    match socket(&descriptor) {
        Some(socket) => Some(Box::new(socket)),
        None => Some(Box::new(Receiver::from_owned_fd(descriptor).ok()?)),
    }
}

#[cfg(unix)]
fn output() -> Option<Output> {
    use std::os::fd::AsFd;
    use tokio::net::unix::pipe::Sender;
    let descriptor = std::io::stdout().as_fd().try_clone_to_owned().ok()?;
    match socket(&descriptor) {
        Some(socket) => Some(Box::new(socket)),
        None => Some(Box::new(Sender::from_owned_fd(descriptor).ok()?)),
    }
}

/// A descriptor as the socket that it is, if it is one: programs in JavaScript give those to what they start.
#[cfg(unix)]
fn socket(descriptor: &std::os::fd::OwnedFd) -> Option<tokio::net::UnixStream> {
    use std::os::unix::net::UnixStream;
    let stream = UnixStream::from(descriptor.try_clone().ok()?);
    stream.local_addr().ok()?;
    stream.set_nonblocking(true).ok()?;
    tokio::net::UnixStream::from_std(stream).ok()
}

#[cfg(not(unix))]
fn input() -> Option<Input> {
    None
}

#[cfg(not(unix))]
fn output() -> Option<Output> {
    None
}
