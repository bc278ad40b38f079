//! What another process has in its memory, which a tracer and who decides on its calls may read.

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of a process's memory.
pub(super) fn memory(process: Pid, at: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    let remote = RemoteIoVec { base: usize::try_from(at).ok()?, len: length };
    let read = process_vm_readv(process, &mut [IoSliceMut::new(&mut bytes)], &[remote]).ok()?;
    (read == length).then_some(bytes)
}

/// The address of IP that lies there, of so many bytes: what a call connects to.
pub(super) fn address(process: Pid, at: u64, length: u64) -> Option<SocketAddr> {
    let length = usize::try_from(length).ok()?.min(size_of::<libc::sockaddr_storage>());
    let bytes = memory(process, at, length)?;
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = || Some(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?));
    let address: IpAddr = match family {
        libc::AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(address, port()?))
}
