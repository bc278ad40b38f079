//! Records what a server says to a client: on its standard output, or over HTTP through a relay.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::task::JoinHandle;

use serde_json::{Deserializer, value::RawValue};

/// Passes on, line by line, what a program prints, each line after it is recorded in a file: `sh -c RECORD FILE PROGRAM …`.
pub(crate) const RECORD: &str = r#"
    "$@" | while IFS= read -r line; do
        printf '%s\n' "$line" >> "$0"
        printf '%s\n' "$line"
    done"#;

/// What the server has said on each connection.
type Recorded = Arc<Mutex<BTreeMap<usize, Vec<u8>>>>;

/// A relay to a server over HTTP. It ends with this.
pub(crate) struct Relay {
    /// Where clients connect over TCP.
    address: SocketAddr,
    /// Where they connect as well.
    pub(crate) socket: PathBuf,
    recorded: Recorded,
    tasks: [JoinHandle<io::Result<()>>; 2],
}

impl Drop for Relay {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Relay {
    /// Relays what arrives there, or at a socket of this name.
    pub(crate) fn start(tcp: TcpListener, socket: PathBuf, server: SocketAddr) -> io::Result<Self> {
        let unix = UnixListener::bind(&socket)?;
        let address = tcp.local_addr()?;
        let recorded = Recorded::default();
        let of_tcp = recorded.clone();
        let tcp = tokio::spawn(async move {
            loop {
                tokio::spawn(relay(tcp.accept().await?.0, server, of_tcp.clone()));
            }
        });
        let of_unix = recorded.clone();
        let unix = tokio::spawn(async move {
            loop {
                tokio::spawn(relay(unix.accept().await?.0, server, of_unix.clone()));
            }
        });
        Ok(Self { address, socket, recorded, tasks: [tcp, unix] })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// All that the server has said.
    pub(crate) fn messages(&self) -> Vec<Box<RawValue>> {
        let recorded = self.recorded.lock().expect("nobody panics with it");
        recorded.values().flat_map(|bytes| messages(bytes)).collect()
    }
}

async fn relay(
    client: impl AsyncRead + AsyncWrite,
    server: SocketAddr,
    recorded: Recorded,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = TcpStream::connect(server).await?.into_split();
    let connection = {
        let mut recorded = recorded.lock().expect("nobody panics with it");
        let number = recorded.len();
        recorded.insert(number, Vec::new());
        number
    };
    let requests = async {
        tokio::io::copy(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await
    };
    let responses = async {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let length = from_server.read(&mut buffer).await?;
            if length == 0 {
                return to_client.shutdown().await;
            }
            let said = &buffer[..length];
            if let Some(all) = recorded.lock().expect("nobody panics with it").get_mut(&connection)
            {
                all.extend(said);
            }
            to_client.write_all(said).await?;
        }
    };
    tokio::try_join!(requests, responses).map(drop)
}

/// The messages that were recorded in a file.
pub(crate) fn messages_in(file: &Path) -> Vec<Box<RawValue>> {
    messages(&std::fs::read(file).expect("it was recorded"))
}

/// The messages of MCP in a stream, whatever is between them.
fn messages(bytes: &[u8]) -> Vec<Box<RawValue>> {
    const START: &[u8] = br#"{"jsonrpc""#;
    let starts = (0..bytes.len()).filter(|start| bytes[*start..].starts_with(START));
    let messages = starts.map(|start| {
        let mut values = Deserializer::from_slice(&bytes[start..]).into_iter();
        values.next().expect("a message begins there").expect("a message is JSON")
    });
    messages.collect()
}
