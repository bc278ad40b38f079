//! A connection to the server, over which nothing is read that was not asked for.

use serde_json::Value;
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Where the server is, and who asks.
#[derive(Clone)]
pub(crate) struct ServerEndpoint {
    pub(crate) host: String,
    pub(crate) token: String,
}

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: ServerEndpoint,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

fn broken(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.into())
}

impl Connection {
    pub(crate) async fn open(address: &ServerEndpoint) -> io::Result<Self> {
        let stream = TcpStream::connect(&address.host).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), address: address.clone() })
    }

    /// Sends a request.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<()> {
        self.check_silent()?;
        let ServerEndpoint { host, token } = &self.address;
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        self.stream.write_all(format!("{request}\r\n{body}").as_bytes()).await
    }

    /// Fails if something came that answers no request.
    pub(crate) fn check_silent(&self) -> io::Result<()> {
        if !self.stream.buffer().is_empty() {
            return Err(broken("doubled: there is more after the end of a response"));
        }
        match self.stream.get_ref().try_read(&mut [0; 1]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Err(broken("doubled: there is a response to no request")),
        }
    }

    /// Reads the head of a response.
    async fn head(&mut self) -> io::Result<Response> {
        let mut response = Response { status: 0, headers: Vec::new(), body: String::new() };
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok(response);
            }
            if let Some(status) = line.strip_prefix("HTTP/1.1 ") {
                let status = status.get(..3).and_then(|status| status.parse().ok());
                response.status = status.ok_or_else(|| broken("there is no status"))?;
            } else if let Some((name, value)) = line.split_once(':') {
                response.headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
            }
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await?;
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(line.to_string())
    }

    /// The next piece of a body that comes in pieces. Nothing at its end.
    async fn piece(&mut self) -> io::Result<Option<String>> {
        let length = self.line().await?;
        let length =
            usize::from_str_radix(&length, 16).map_err(|_| broken("a piece without a length"))?;
        let mut piece = vec![0; length + 2];
        self.stream.read_exact(&mut piece).await?;
        piece.truncate(length);
        let piece = String::from_utf8(piece).map_err(|_| broken("it is no text"))?;
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }

    /// Reads a response to its end.
    pub(crate) async fn receive(&mut self) -> io::Result<Response> {
        let mut response = self.head().await?;
        if response.header("transfer-encoding") == Some("chunked") {
            while let Some(piece) = self.piece().await? {
                response.body += &piece;
            }
        } else {
            let length = response.header("content-length").unwrap_or("0").parse();
            let mut body = vec![0; length.map_err(|_| broken("the length is no number"))?];
            self.stream.read_exact(&mut body).await?;
            response.body = String::from_utf8(body).map_err(|_| broken("it is no text"))?;
        }
        Ok(response)
    }

    /// Reads the messages of a stream as they come, until it ends.
    pub(crate) async fn receive_stream(&mut self, mut take: impl FnMut(Value)) -> io::Result<()> {
        let response = self.head().await?;
        if response.status != 200 {
            return Err(broken(format!("a stream has status {}", response.status)));
        }
        // The server sends each event as one piece.
        while let Some(body) = self.piece().await? {
            for message in messages("text/event-stream", &body)? {
                take(message);
            }
        }
        Ok(())
    }
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The messages, of a stream or of a body.
    pub(crate) fn messages(&self) -> io::Result<Vec<Value>> {
        messages(self.header("content-type").unwrap_or_default(), &self.body)
    }
}

fn messages(kind: &str, body: &str) -> io::Result<Vec<Value>> {
    let texts: Vec<&str> = match kind {
        "text/event-stream" => {
            body.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
        }
        _ => vec![body],
    };
    let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
    texts.map(|text| serde_json::from_str(text).map_err(|_| broken("it is no JSON"))).collect()
}
