//! A small MCP server as people write them, with `rmcp`, over stdio or with `--http` over HTTP. Its tools are those that every kind of
//! plugin has in the tests, and two that only a server of its own process can have.

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServiceExt, tool, tool_router};
use serde::Deserialize;
use std::time::Duration;
use tokio::net::TcpListener;

#[derive(Clone)]
struct Demo;

#[derive(Deserialize, schemars::JsonSchema)]
struct Text {
    /// What to say.
    text: Option<String>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Delay {
    /// How long to wait, in milliseconds.
    millis: u64,
    /// What to say then.
    text: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Crash {
    /// The exit code.
    code: i32,
}

#[tool_router(server_handler)]
impl Demo {
    #[tool(description = "Answers with its `text`")]
    async fn echo(&self, Parameters(Text { text }): Parameters<Text>) -> String {
        text.unwrap_or_default()
    }

    #[tool(description = "Answers with a result that is an error, saying `text`")]
    async fn fail(
        &self,
        Parameters(Text { text }): Parameters<Text>,
    ) -> Result<CallToolResult, ErrorData> {
        Ok(CallToolResult::error(vec![ContentBlock::text(text.unwrap_or_default())]))
    }

    #[tool(description = "Never answers")]
    async fn hang(&self) -> String {
        std::future::pending().await
    }

    #[tool(description = "Answers after a while, so that answers overtake each other")]
    async fn delay(&self, Parameters(Delay { millis, text }): Parameters<Delay>) -> String {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        text
    }

    #[tool(description = "Ends the server in the middle of everything")]
    async fn crash(&self, Parameters(Crash { code }): Parameters<Crash>) -> String {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("crashing as told");
        }
        std::process::exit(code)
    }

    #[tool(description = "Names the variables of the server's environment")]
    async fn environment(&self) -> String {
        let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names.join(" ")
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("--http") {
        // Many clients at once.
        return tokio::runtime::Runtime::new()?.block_on(serve_http());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = Demo.serve((tokio::io::stdin(), tokio::io::stdout())).await?;
        service.waiting().await?;
        Ok(())
    })
}

/// Serves modern clients over HTTP, with what rmcp has for it, on a free port of loopback. The address is printed.
async fn serve_http() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = StreamableHttpServerConfig::default();
    config.legacy_session_mode = false;
    config.json_response = true;
    let service: StreamableHttpService<Demo, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Demo), Default::default(), config);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    #[allow(clippy::print_stdout)]
    {
        println!("{}", listener.local_addr()?);
    }
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new();
            connection.serve_connection(TokioIo::new(stream), service).await
        });
    }
}
