//! An MCP server that does whatever it is told to: the same tools for files and HTTP as the guests `files` and `fetch`
//! have, and some that only a process of its own can have.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServiceExt, tool, tool_router};
use serde::Deserialize;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::Command;

#[derive(Clone)]
struct Reaching;

#[derive(Deserialize, schemars::JsonSchema)]
struct Path {
    path: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct WriteArguments {
    path: String,
    text: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Rename {
    from: String,
    to: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Url {
    url: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Address {
    address: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct CommandLine {
    words: Vec<String>,
}

type Answer = Result<String, String>;

fn said<T>(result: io::Result<T>, good: impl FnOnce(T) -> String) -> Answer {
    result.map(good).map_err(|error| error.to_string())
}

#[tool_router(server_handler)]
impl Reaching {
    #[tool(description = "Reads a file")]
    async fn read_file(&self, Parameters(Path { path }): Parameters<Path>) -> Answer {
        said(fs::read_to_string(path), |text| text)
    }

    #[tool(description = "Writes a file")]
    async fn write_file(
        &self,
        Parameters(WriteArguments { path, text }): Parameters<WriteArguments>,
    ) -> Answer {
        said(fs::write(path, text), |()| "written".into())
    }

    #[tool(description = "Lists a folder")]
    async fn list_dir(&self, Parameters(Path { path }): Parameters<Path>) -> Answer {
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let names = fs::read_dir(path).map(|entries| entries.flatten().map(name).collect());
        said(names, |names: Vec<String>| names.join(" "))
    }

    #[tool(description = "Removes a file")]
    async fn remove(&self, Parameters(Path { path }): Parameters<Path>) -> Answer {
        said(fs::remove_file(path), |()| "removed".into())
    }

    #[tool(description = "Renames a file")]
    async fn rename(&self, Parameters(Rename { from, to }): Parameters<Rename>) -> Answer {
        said(fs::rename(from, to), |()| "renamed".into())
    }

    #[tool(description = "Requests a URL, of the proxy if the environment names one")]
    async fn fetch(&self, Parameters(Url { url }): Parameters<Url>) -> Answer {
        said(fetch(&url), |text| text)
    }

    #[tool(description = "Has the proxy lead to an address, and says what is answered there")]
    async fn tunnel(&self, Parameters(Address { address }): Parameters<Address>) -> Answer {
        said(tunnel(&address), |text| text)
    }

    #[tool(description = "Connects to an address")]
    async fn connect(&self, Parameters(Address { address }): Parameters<Address>) -> Answer {
        said(TcpStream::connect(address), |_| "connected".into())
    }

    #[tool(description = "Runs a program, and gives what it prints")]
    async fn run(&self, Parameters(CommandLine { words }): Parameters<CommandLine>) -> Answer {
        let output = Command::new(&words[0]).args(&words[1..]).output();
        said(output, |output| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    #[tool(description = "Names the variables of its environment")]
    async fn environment(&self) -> String {
        let mut names: Vec<String> =
            std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names.join(" ")
    }
}

fn proxy() -> io::Result<TcpStream> {
    let proxy = std::env::var("http_proxy").map_err(io::Error::other)?;
    TcpStream::connect(proxy.trim_start_matches("http://"))
}

fn fetch(url: &str) -> io::Result<String> {
    let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let mut stream = match proxy() {
        Ok(stream) => stream,
        Err(_) => TcpStream::connect(host)?,
    };
    let request = format!("GET {url} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.starts_with("HTTP/1.1 200") {
        true => Ok(answer),
        false => Err(io::Error::other(answer)),
    }
}

fn tunnel(address: &str) -> io::Result<String> {
    let mut stream = proxy()?;
    stream
        .write_all(format!("CONNECT {address} HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes())?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    if !head.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other(head));
    }
    let request = format!("GET /hello HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = Reaching.serve((tokio::io::stdin(), tokio::io::stdout())).await?;
        service.waiting().await?;
        Ok(())
    })
}
