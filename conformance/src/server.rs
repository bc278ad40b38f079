//! A small HTTP server on this machine, which keeps what it is asked.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, mem};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// A server that ends with this.
pub struct Server {
    /// Where it is.
    pub address: SocketAddr,
    exchange: Arc<Mutex<TestServerState>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct TestServerState {
    heard: Vec<String>,
    /// How many connections were made since the last time, and how many requests came by them.
    accepted: usize,
    asked: usize,
    /// What the next requests are answered with, whatever they ask for.
    answers: VecDeque<String>,
}

impl Server {
    /// Starts one at a port of its own.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let exchange = Arc::default();
        let task = tokio::spawn(listen(listener, Arc::clone(&exchange)));
        Ok(Self { address, exchange, task })
    }

    /// What is at a path of it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Has it answer a request with this status, these headers and this body, after those that it
    /// was given before.
    pub fn answer_next(&self, status: &str, headers: &[&str], body: &str) {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}");
        lock(&self.exchange).answers.push_back(answer);
    }

    /// The requests since the last time.
    pub fn heard_whole(&self) -> Vec<String> {
        mem::take(&mut lock(&self.exchange).heard)
    }

    /// The methods and paths of the requests since the last time.
    pub fn heard(&self) -> Vec<String> {
        self.heard_whole().iter().map(|request| line(request).to_string()).collect()
    }

    /// How many connections were made since the last time by which no request came.
    ///
    /// # Errors
    ///
    /// Where it cannot be reached.
    pub async fn silent(&self) -> io::Result<usize> {
        // Connections are accepted in their order: when this one is, so are those before it.
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(format!("{LAST} HTTP/1.1\r\n\r\n").as_bytes()).await?;
        stream.read_to_end(&mut Vec::new()).await?;
        let mut exchange = lock(&self.exchange);
        let (accepted, asked) = (mem::take(&mut exchange.accepted), mem::take(&mut exchange.asked));
        Ok(accepted.saturating_sub(asked))
    }
}

/// What the server asks itself, to learn of all connections that were made before.
const LAST: &str = "GET /conformance-last";

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(exchange: &Mutex<TestServerState>) -> MutexGuard<'_, TestServerState> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The method and the path of a request.
fn line(request: &str) -> &str {
    let line = request.lines().next().unwrap_or_default();
    line.strip_suffix(" HTTP/1.1").unwrap_or(line)
}

async fn listen(listener: TcpListener, exchange: Arc<Mutex<TestServerState>>) {
    // They end with the server.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let exchange = exchange.clone();
        lock(&exchange).accepted += 1;
        // Who asked may go away at any time.
        connections.spawn(async move { answer(stream, &exchange).await.ok() });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(mut stream: TcpStream, exchange: &Mutex<TestServerState>) -> io::Result<()> {
    let request = read(&mut stream).await?;
    let answer = {
        let mut exchange = lock(exchange);
        if line(&request) == LAST {
            exchange.accepted -= 1;
            return Ok(());
        }
        exchange.asked += 1;
        exchange.heard.push(request.clone());
        exchange.answers.pop_front()
    };
    if let Some(answer) = answer {
        return stream.write_all(answer.as_bytes()).await;
    }
    let target = line(&request).split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
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
            for _ in 0..query.parse().unwrap_or(usize::MAX) {
                now_and_then.tick().await;
                stream.write_all(b"1\r\nx\r\n").await?;
            }
            stream.write_all(b"0\r\n\r\n").await
        }
        "/silent" => {
            let Ok(milliseconds) = query.parse() else { return std::future::pending().await };
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            stream.write_all(ok("ok").as_bytes()).await
        }
        _ => stream.write_all(ok("ok").as_bytes()).await,
    }
}

/// What TLS begins with, which is not spoken here.
const TLS: u8 = 0x16;

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
        if request.first() == Some(&TLS) {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}
