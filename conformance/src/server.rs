//! A small HTTP server on this machine, which keeps what it is asked.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// A server that ends with this.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let heard = Arc::default();
        let task = tokio::spawn(listen(listener, Arc::clone(&heard)));
        Ok(Self { address, heard, task })
    }

    /// The methods and paths of the requests since the last time.
    pub(crate) fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(listener: TcpListener, heard: Arc<Mutex<Vec<String>>>) {
    // They end with the server.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let heard = heard.clone();
        // Who asked may go away at any time.
        connections.spawn(async move { answer(stream, &heard).await.ok() });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(mut stream: TcpStream, heard: &Mutex<Vec<String>>) -> io::Result<()> {
    let request = read(&mut stream).await?;
    let line = request.lines().next().unwrap_or_default();
    let line = line.strip_suffix(" HTTP/1.1").unwrap_or(line).to_string();
    let target = line.split(' ').nth(1).unwrap_or_default().to_string();
    heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let ok =
        |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    match path {
        "/redirect" => {
            let found =
                format!("HTTP/1.1 302 Found\r\nlocation: {query}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(found.as_bytes()).await
        }
        "/echo" => stream.write_all(ok(&request).as_bytes()).await,
        "/big" => {
            let length = query.parse().unwrap_or_default();
            stream.write_all(ok(&"x".repeat(length)).as_bytes()).await
        }
        "/endless" => {
            stream.write_all(chunked.as_bytes()).await?;
            let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
            loop {
                stream.write_all(chunk.as_bytes()).await?;
            }
        }
        "/slow" => {
            stream.write_all(chunked.as_bytes()).await?;
            // It is slow on purpose; nobody relies on how slow.
            let mut now_and_then = tokio::time::interval(Duration::from_millis(20));
            loop {
                now_and_then.tick().await;
                stream.write_all(b"1\r\nx\r\n").await?;
            }
        }
        "/silent" => std::future::pending().await,
        _ => stream.write_all(ok("ok").as_bytes()).await,
    }
}

/// Reads a request, with a body that is as long as it says or comes in chunks.
async fn read(stream: &mut TcpStream) -> io::Result<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let is_whole = match head.split_once("content-length: ") {
                Some((_, length)) => {
                    let length = length.lines().next().and_then(|length| length.parse().ok());
                    body.len() >= length.unwrap_or(0)
                }
                None => !head.contains("transfer-encoding: chunked") || body.ends_with("0\r\n\r\n"),
            };
            if is_whole {
                return Ok(text);
            }
        }
        if stream.read_buf(&mut request).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
