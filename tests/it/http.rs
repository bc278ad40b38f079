//! A small HTTP server on this machine, which keeps what it is asked.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server that ends with this.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
    /// What the next requests are answered with, whatever they ask for.
    answers: Arc<Mutex<VecDeque<String>>>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = listener.local_addr().expect("it has an address");
        let heard = Arc::default();
        let answers = Arc::default();
        let task = tokio::spawn(listen(listener, Arc::clone(&heard), Arc::clone(&answers)));
        Self { address, heard, answers, task }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// What is at a path of it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Has it answer a request with this status, these headers and this body, after those that it
    /// was given before.
    pub(crate) fn answer_next(&self, status: &str, headers: &[&str], body: &str) {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}");
        self.answers.lock().unwrap().push_back(answer);
    }

    /// The requests since the last time.
    pub(crate) fn heard_whole(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }

    /// The first lines of the requests since the last time.
    pub(crate) fn heard(&self) -> Vec<String> {
        let heard = self.heard_whole();
        heard.iter().filter_map(|request| Some(request.lines().next()?.to_string())).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(
    listener: TcpListener,
    heard: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<VecDeque<String>>>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let (heard, answers) = (heard.clone(), answers.clone());
        // Who asked may go away at any time.
        tokio::spawn(async move { answer(stream, &heard, &answers).await.ok() });
    }
}

async fn answer(
    mut stream: TcpStream,
    heard: &Mutex<Vec<String>>,
    answers: &Mutex<VecDeque<String>>,
) -> std::io::Result<()> {
    let request = read(&mut stream).await?;
    let line = request.lines().next().unwrap_or_default().to_string();
    heard.lock().unwrap().push(request.clone());
    let answer = answers.lock().unwrap().pop_front();
    if let Some(answer) = answer {
        return stream.write_all(answer.as_bytes()).await;
    }
    let target = line.split(' ').nth(1).unwrap_or_default();
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
            loop {
                stream.write_all(b"1\r\nx\r\n").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        "/silent" => std::future::pending().await,
        _ => stream.write_all(ok("ok").as_bytes()).await,
    }
}

/// Reads a request, with a body that is as long as it says or comes in chunks.
async fn read(stream: &mut TcpStream) -> std::io::Result<String> {
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
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}
