//! A client of the matrix with the Rust SDK, in either era.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorData,
    GetPromptRequestParams, Implementation, JsonObject, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions, RequestContext,
    RequestHandle, RunningService,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess, UnixSocketHttpClient};
use rmcp::{ClientHandler, RoleClient};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Mutex;
use tokio::process::Command;
use tokio::sync::mpsc;

use super::matrix::{Connection, Era, SERVERS};

/// Somebody who answers forms, and hears of progress.
struct User {
    asked: Mutex<Vec<String>>,
    progress: mpsc::UnboundedSender<ProgressNotificationParam>,
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("matrix", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            self.asked.lock().expect("nobody panics with it").push(message);
        }
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "color": "blue" })))
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.progress.send(progress);
    }
}

/// A client that is connected.
struct ConnectedClient {
    service: RunningService<RoleClient, User>,
    progress: mpsc::UnboundedReceiver<ProgressNotificationParam>,
}

/// What the client sees of all servers.
pub(super) async fn report(era: Era, connection: &Connection<'_>) -> Value {
    let lifecycle = match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let (sender, progress) = mpsc::unbounded_channel();
    let user = User { asked: Mutex::default(), progress: sender };
    let service = match connection {
        Connection::Stdio { project, arguments } => {
            let mut command = Command::from(project.program("sh"));
            command.args(arguments).kill_on_drop(true);
            let transport = TokioChildProcess::new(command).expect("the server starts");
            user.serve_with_lifecycle(transport, lifecycle).await
        }
        Connection::Http(relay) => {
            let (url, socket) = (relay.url(), relay.socket.to_str().expect("it is text"));
            let client = UnixSocketHttpClient::new(socket, &url);
            let config = StreamableHttpClientTransportConfig::with_uri(url);
            let transport = StreamableHttpClientTransport::with_client(client, config);
            user.serve_with_lifecycle(transport, lifecycle).await
        }
    };
    let mut client = ConnectedClient { service: service.expect("it connects"), progress };
    let mut servers = Map::new();
    for server in SERVERS {
        servers.insert(server.into(), client.see(server).await);
    }
    let info = client.service.peer().peer_info().expect("it is connected");
    let revision = info.protocol_version.to_string();
    client.service.cancel().await.expect("it ends");
    json!({ "revision": revision, "servers": servers })
}

/// A value as it is written in JSON.
fn form(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("it can be written")
}

/// The members with this name of those objects in a list that are a server's own.
fn own(list: impl Serialize, member: &str, server: &str) -> Vec<Value> {
    let list = form(list);
    let names = list.as_array().expect("it is a list").iter().map(|item| item[member].clone());
    let is_own = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        name.starts_with(&format!("{server}__")) || name.starts_with(&format!("test://{server}/"))
    };
    names.filter(is_own).collect()
}

fn arguments(name: &str, value: &str) -> JsonObject {
    [(name.to_string(), value.into())].into_iter().collect()
}

impl ConnectedClient {
    /// Uses everything that a server has.
    async fn see(&mut self, server: &str) -> Value {
        let service = &self.service;
        let tools = own(service.list_all_tools().await.expect("tools are listed"), "name", server);
        let resources = service.list_all_resources().await.expect("resources are listed");
        let resources = own(resources, "uri", server);
        let uri = resources[0].as_str().expect("it is text");
        let read = service.read_resource(ReadResourceRequestParams::new(uri)).await;
        let prompts = service.list_all_prompts().await.expect("prompts are listed");
        let prompts = own(prompts, "name", server);
        let prompt = GetPromptRequestParams::new(prompts[0].as_str().expect("it is text"));
        let prompt = service.get_prompt(prompt.with_arguments(arguments("to", "Bob"))).await;
        let greet = self.call(server, "greet", arguments("name", "Ada")).await;

        let counting = self.begin(server, "count", JsonObject::new()).await;
        let token = counting.progress_token.clone();
        let mut progress = [self.progress_of(&token).await, self.progress_of(&token).await];
        // rmcp hands each notification to a task of its own, so two of them may change places.
        progress.sort_by_key(Value::to_string);
        let enough = self.call(server, "enough", JsonObject::new()).await;
        let count = form(counting.await_response().await.expect("it counts"));

        let waiting = self.begin(server, "wait", JsonObject::new()).await;
        let token = waiting.progress_token.clone();
        self.progress_of(&token).await;
        waiting.cancel(Some("abandoned".into())).await.expect("it is cancelled");
        let cancelled = self.call(server, "cancelled", JsonObject::new()).await;

        let ask = self.call(server, "ask", JsonObject::new()).await;
        let asked = std::mem::take(
            &mut *self.service.service().asked.lock().expect("nobody panics with it"),
        );
        json!({
            "tools": tools, "greet": greet, "resources": resources, "prompts": prompts,
            "read": form(read.expect("it is read"))["contents"][0]["text"],
            "prompt": form(prompt.expect("there is a prompt"))["messages"][0]["content"]["text"],
            "count": count["content"][0]["text"], "progress": progress, "enough": enough,
            "wait": null, "cancelled": cancelled, "ask": ask, "asked": asked,
        })
    }

    /// The text with which a tool answers.
    async fn call(&self, server: &str, tool: &str, arguments: JsonObject) -> Value {
        let params = CallToolRequestParams::new(format!("{server}__{tool}"));
        let result = self.service.call_tool(params.with_arguments(arguments)).await;
        form(result.expect("it is answered"))["content"][0]["text"].clone()
    }

    /// Begins a call that can be cancelled, and whose progress can be told from that of others.
    async fn begin(
        &self,
        server: &str,
        tool: &str,
        arguments: JsonObject,
    ) -> RequestHandle<RoleClient> {
        let params = CallToolRequestParams::new(format!("{server}__{tool}"));
        let request = CallToolRequest::new(params.with_arguments(arguments));
        let request = ClientRequest::CallToolRequest(request);
        let options = PeerRequestOptions::no_options();
        let handle = self.service.send_cancellable_request(request, options).await;
        handle.expect("it is sent")
    }

    /// The next report of one call's progress.
    async fn progress_of(&mut self, token: &ProgressToken) -> Value {
        loop {
            let heard = self.progress.recv().await.expect("the client lives");
            if heard.progress_token == *token {
                return json!([heard.progress, heard.total, heard.message]);
            }
        }
    }
}
