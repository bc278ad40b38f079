//! The network of the program: a loopback interface of its own, and a port on it that leads to the host's proxy.

use rustix::net::{AddressFamily, SendFlags, SocketType, send, socket};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use super::failed;
use crate::LaunchError;

/// The most connections to the proxy at a time.
const MAX_CONNECTIONS: usize = 256;

/// The most bytes that are under way in one direction of a connection.
const BUFFER_BYTES: usize = 64 << 10;

/// The host's proxy, which stays reachable whatever is hidden later.
pub(super) struct ProxySocket {
    /// The folder that it lies in.
    folder: File,
    name: PathBuf,
}

impl ProxySocket {
    pub(super) fn open(path: &Path) -> Result<Self, LaunchError> {
        let wrong = || LaunchError {
            doing: "finding the proxy",
            problem: format!("{} is no path of a socket", path.display()),
        };
        let folder = path.parent().ok_or_else(wrong)?;
        let name = path.file_name().ok_or_else(wrong)?.into();
        let folder = File::open(folder).map_err(failed("finding the proxy"))?;
        Ok(Self { folder, name })
    }

    fn connect(&self) -> io::Result<UnixStream> {
        let folder = PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()));
        UnixStream::connect(folder.join(&self.name))
    }
}

/// Brings the loopback interface up, which a new namespace has and which is down there.
pub(super) fn bring_loopback_up() -> Result<(), LaunchError> {
    // A message of rtnetlink(7): RTM_NEWLINK, whose `ifinfomsg` names the first interface and sets IFF_UP.
    const LENGTH: u32 = 32;
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST: u16 = 1;
    const LOOPBACK: i32 = 1;
    const IFF_UP: u32 = 1;
    let mut message = Vec::new();
    message.extend(LENGTH.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    // The number of the message and who sends it, and the family and type of the interface.
    message.extend([0; 12]);
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    let done = socket(AddressFamily::NETLINK, SocketType::RAW, None)
        .and_then(|socket| send(&socket, &message, SendFlags::empty()));
    done.map(drop).map_err(failed("bringing the loopback interface up"))
}

/// Leads connections to the host's proxy.
pub(super) struct Forwarder {
    proxy: ProxySocket,
    /// Each open connection has one of these.
    open: Arc<()>,
}

impl Forwarder {
    pub(super) fn new(proxy: ProxySocket) -> Self {
        Self { proxy, open: Arc::new(()) }
    }

    /// Leads a connection there in threads of its own. It is closed where there are too many.
    pub(super) fn forward(&self, program: TcpStream) {
        if Arc::strong_count(&self.open) > MAX_CONNECTIONS {
            return;
        }
        // A host that has ended takes no connections, and this ends with it.
        let Ok(proxy) = self.proxy.connect() else { return };
        let counted = self.open.clone();
        let leads = move || {
            lead(program, proxy);
            drop(counted);
        };
        // Without another thread the connection is closed.
        let _ = thread::Builder::new().spawn(leads);
    }
}

/// Listens on a port of the loopback interface, and leads who connects to the proxy. Gives the port.
pub(super) fn forward(proxy: ProxySocket) -> Result<u16, LaunchError> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed("listening for the proxy"))?;
    let port = listener.local_addr().map_err(failed("listening for the proxy"))?.port();
    let forwarder = Forwarder::new(proxy);
    thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| forwarder.forward(stream));
    });
    Ok(port)
}

/// Copies both ways until both are at their end.
fn lead(program: TcpStream, proxy: UnixStream) {
    let (program, proxy) = (Arc::new(program), Arc::new(proxy));
    let (answers_to, answers) = (program.clone(), proxy.clone());
    let back = thread::Builder::new().spawn(move || {
        copy(&*answers, &*answers_to);
        let _ = answers_to.shutdown(Shutdown::Write);
    });
    let Ok(back) = back else { return };
    copy(&*program, &*proxy);
    let _ = proxy.shutdown(Shutdown::Write);
    let _ = back.join();
}

fn copy(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(read) => {
                if to.write_all(&buffer[..read]).is_err() {
                    return;
                }
            }
        }
    }
}

/// The variables with which programs find a proxy.
pub(super) fn proxy_environment(port: u16) -> impl Iterator<Item = (&'static str, String)> {
    let proxy = format!("http://127.0.0.1:{port}");
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
    let proxies = names.into_iter().map(move |name| (name, proxy.clone()));
    // Node.js reads them only if it is told to.
    proxies.chain([("NODE_USE_ENV_PROXY", "1".to_string())])
}
