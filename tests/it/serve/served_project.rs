//! A project that is served over HTTP in this process, and calls of its tools by clients whose users cannot be asked.

use serde_json::{Value, json};
use std::net::SocketAddr;
use tenon_host::Platform;
use tenon_serve::{HttpSettings, Server, Settings};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use super::command::exchange_as;
use super::{meta, modern, server_with};
use crate::support::Project;

/// A project that is served.
pub(super) struct ServedProject {
    pub(super) platform: Platform,
    address: String,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
    _project: Project,
}

impl ServedProject {
    pub(super) async fn new(
        project: Project,
        change_server: impl FnOnce(&mut Settings),
        change: impl FnOnce(&mut HttpSettings),
    ) -> Self {
        let (server, platform) = server_with(&project, change_server).await;
        let (address, stop, serving) = serve_http(server, change).await;
        let address = address.to_string();
        Self { platform, address, stop, serving, _project: project }
    }

    /// Calls a tool with a token. Gives the whole answer.
    pub(super) async fn call(&self, token: &str, tool: &str, arguments: Value) -> Value {
        let (address, token, tool) = (self.address.clone(), token.to_string(), tool.to_string());
        let called = spawn_blocking(move || call_tool(&address, &token, &tool, &arguments));
        called.await.expect("it does not panic")
    }

    pub(super) async fn end(self) {
        self.stop.send(()).expect("it runs");
        self.serving.await.expect("it does not panic").expect("it ends well");
        self.platform.shutdown().await;
    }
}

/// Serves over HTTP on a free port, until what is returned says so.
pub(super) async fn serve_http(
    server: Server,
    change: impl FnOnce(&mut HttpSettings),
) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    let address = listener.local_addr().expect("it has an address");
    let mut settings = HttpSettings::default();
    change(&mut settings);
    let (stop, stopped) = oneshot::channel();
    let serving = tokio::spawn(async move {
        let stop = async {
            let _ = stopped.await;
        };
        server.serve_http(listener, settings, stop).await
    });
    (address, stop, serving)
}

/// Calls a tool of a server at this address with a token. Gives the whole answer.
pub(super) fn call_tool(address: &str, token: &str, tool: &str, arguments: &Value) -> Value {
    let call = json!({ "name": tool, "arguments": arguments });
    let mut request = modern(1, "tools/call", call);
    // What has to be approved waits then for somebody else.
    request["params"]["_meta"] = meta(json!({}));
    let headers = format!("Mcp-Name: {tool}\r\nAuthorization: Bearer {token}\r\n");
    let response = exchange_as(address, "tools/call", &headers, &request.to_string());
    let (_, body) = response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{response}"));
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {response}"))
}
