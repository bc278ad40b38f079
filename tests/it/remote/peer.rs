//! MCP servers that listen on this machine: one made with `rmcp`, and one that answers as a test
//! wants.

use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ProgressNotificationParam, ServerCapabilities, ServerConfig};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::result;

/// A server that ends with this.
pub(super) struct Listening {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Listening {
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Body = Either<Full<Bytes>, Channel<Bytes, Infallible>>;

/// Serves each connection with a service, which is made anew for it.
macro_rules! serve {
    ($service:expr) => {{
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let service = $service;
                connections.spawn(async move {
                    let http = hyper::server::conn::http1::Builder::new();
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Listening { address, task }
    }};
}

#[derive(Clone)]
struct Demo {
    tool_router: ToolRouter<Self>,
    /// There is another tool.
    grown: Arc<AtomicBool>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TextArguments {
    text: String,
}

#[tool_router]
impl Demo {
    #[tool(description = "Answers with its `text`")]
    async fn echo(&self, Parameters(TextArguments { text }): Parameters<TextArguments>) -> String {
        text
    }

    #[tool(description = "Tells how far it has come")]
    async fn work(&self, context: RequestContext<RoleServer>) -> String {
        if let Some(token) = context.meta.get_progress_token() {
            let half = ProgressNotificationParam::new(token, 1.0).with_total(2.0);
            let _ = context.peer.notify_progress(half.with_message("half")).await;
        }
        "done".into()
    }

    #[tool(description = "Gets the server another tool")]
    async fn grow(&self, context: RequestContext<RoleServer>) -> String {
        self.grown.store(true, Ordering::SeqCst);
        let _ = context.peer.notify_tool_list_changed().await;
        "grown".into()
    }

    #[tool(description = "Is not there at first")]
    async fn late(&self) -> String {
        "late".into()
    }
}

#[tool_handler(router = self.tools())]
impl ServerHandler for Demo {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed();
        ServerConfig::new(capabilities.build())
    }
}

impl Demo {
    fn tools(&self) -> ToolRouter<Self> {
        let mut tools = self.tool_router.clone();
        if !self.grown.load(Ordering::SeqCst) {
            tools.remove_route("late");
        }
        tools
    }
}

/// A server as people write them, at `/mcp`.
pub(super) async fn rmcp_server() -> Listening {
    let grown = Arc::new(AtomicBool::new(false));
    let make = move || Ok(Demo { tool_router: Demo::tool_router(), grown: grown.clone() });
    let config = StreamableHttpServerConfig::default();
    let service: StreamableHttpService<Demo, LocalSessionManager> =
        StreamableHttpService::new(make, Default::default(), config);
    serve!(TowerToHyperService::new(service.clone()))
}

/// How a peer answers a request.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// As it should, in one piece.
    Json,
    /// With this result.
    Result(Value),
    /// With this message, whatever was asked.
    Message(Value),
    /// With an error of the protocol of this code, and the status 400.
    Error(i64),
    /// With a status and a text that is no message.
    Status(u16, &'static str),
    /// By sending the client elsewhere.
    Redirect(String),
    /// With a stream that ends before the answer; who asks for the rest gets it.
    BreaksOff,
    /// The same, and who asks for the rest does not get it.
    BreaksOffForGood,
    /// By closing the connection.
    HangsUp,
    /// Never.
    Never,
}

/// A request that a peer got.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) method: String,
    /// The method of the message in it.
    pub(super) rpc: String,
    pub(super) params: Value,
    headers: BTreeMap<String, String>,
}

impl Heard {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// A server that answers as a test wants.
pub(super) struct Peer {
    listening: Listening,
    heard: Arc<Mutex<Vec<Heard>>>,
}

/// What a peer keeps.
struct State {
    answer: Box<dyn Fn(&Heard) -> Answer + Send + Sync>,
    heard: Arc<Mutex<Vec<Heard>>>,
    sessions: AtomicUsize,
    /// The answer whose stream broke off.
    rest: Mutex<Option<Value>>,
    /// Whether the rest is not to be had.
    withheld: AtomicBool,
}

impl Peer {
    pub(super) fn url(&self, path: &str) -> String {
        self.listening.url(path)
    }

    /// The requests so far.
    pub(super) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// One that speaks Streamable HTTP.
    pub(super) async fn start(answer: impl Fn(&Heard) -> Answer + Send + Sync + 'static) -> Self {
        let heard = Arc::<Mutex<Vec<Heard>>>::default();
        let state = Arc::new(State {
            answer: Box::new(answer),
            heard: heard.clone(),
            sessions: AtomicUsize::new(0),
            rest: Mutex::default(),
            withheld: AtomicBool::default(),
        });
        let listening = serve!({
            let state = state.clone();
            service_fn(move |request| respond(state.clone(), request))
        });
        Self { listening, heard }
    }

    /// One that speaks the transport of 2024-11-05, at `/sse`.
    pub(super) async fn first_transport() -> Self {
        Self::first_transport_that_sends_to("/messages?of=1").await
    }

    pub(super) async fn first_transport_that_sends_to(endpoint: &str) -> Self {
        let heard = Arc::<Mutex<Vec<Heard>>>::default();
        let stream = Arc::<tokio::sync::Mutex<Option<Sender<Bytes, Infallible>>>>::default();
        let (endpoint, noted) = (endpoint.to_string(), heard.clone());
        let listening = serve!({
            let (endpoint, noted, stream) = (endpoint.clone(), noted.clone(), stream.clone());
            service_fn(move |request: Request<Incoming>| {
                let (endpoint, noted, stream) = (endpoint.clone(), noted.clone(), stream.clone());
                async move {
                    let path = request.uri().path().to_string();
                    let (heard, message) = hear(request).await;
                    let (method, post) = (heard.method.clone(), path == "/messages");
                    noted.lock().unwrap().push(heard);
                    Ok::<_, Infallible>(match method.as_str() {
                        "GET" => {
                            let (mut sender, body) = Channel::new(16);
                            let event = format!("event: endpoint\ndata: {endpoint}\n\n");
                            let _ = sender.send_data(event.into()).await;
                            *stream.lock().await = Some(sender);
                            events(Either::Right(body))
                        }
                        "POST" if post => {
                            if let (Some(answer), Some(stream)) =
                                (result(&message), &mut *stream.lock().await)
                            {
                                let event = format!("event: message\ndata: {answer}\n\n");
                                let _ = stream.send_data(event.into()).await;
                            }
                            status(202, "")
                        }
                        _ => status(405, ""),
                    })
                }
            })
        });
        Self { listening, heard }
    }
}

async fn hear(request: Request<Incoming>) -> (Heard, Value) {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let value = |value: &hyper::header::HeaderValue| value.to_str().unwrap_or_default().to_string();
    let heard = Heard {
        method: head.method.to_string(),
        rpc: message["method"].as_str().unwrap_or_default().to_string(),
        params: message["params"].clone(),
        headers: head.headers.iter().map(|(k, v)| (k.to_string(), value(v))).collect(),
    };
    (heard, message)
}

async fn respond(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Body>, &'static str> {
    let (heard, message) = hear(request).await;
    state.heard.lock().unwrap().push(heard.clone());
    if heard.method == "GET" && heard.header("last-event-id").is_some() {
        if state.withheld.load(Ordering::SeqCst) {
            return Ok(status(500, "no"));
        }
        let rest = state.rest.lock().unwrap().take();
        let event = rest.map(|answer| format!("data: {answer}\n\n")).unwrap_or_default();
        return Ok(events(Either::Left(event.into())));
    }
    if heard.method != "POST" {
        return Ok(status(405, ""));
    }
    Ok(match (state.answer)(&heard) {
        Answer::Status(code, text) => status(code, text),
        Answer::Result(_) | Answer::Message(_) if message.get("id").is_none() => status(202, ""),
        Answer::Message(message) => one(&message),
        Answer::Result(result) => {
            one(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
        }
        Answer::Error(code) => {
            let error = json!({ "code": code, "message": "no key, no service" });
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
            let mut response = one(&answer);
            *response.status_mut() = hyper::StatusCode::BAD_REQUEST;
            response
        }
        Answer::Redirect(location) => {
            let mut response = status(307, "");
            response.headers_mut().insert("location", location.parse().unwrap());
            response
        }
        Answer::Never => std::future::pending().await,
        Answer::HangsUp => return Err("it hangs up"),
        answer @ (Answer::BreaksOff | Answer::BreaksOffForGood) => {
            state.withheld.store(matches!(answer, Answer::BreaksOffForGood), Ordering::SeqCst);
            *state.rest.lock().unwrap() = result(&message);
            events(Either::Left("id: half\nretry: 10\ndata:\n\n".into()))
        }
        Answer::Json => match result(&message) {
            None => status(202, ""),
            Some(answer) => {
                let mut response = one(&answer);
                if heard.rpc == "initialize" {
                    let session = state.sessions.fetch_add(1, Ordering::SeqCst) + 1;
                    let session = format!("session-{session}").parse().unwrap();
                    response.headers_mut().insert("mcp-session-id", session);
                }
                response
            }
        },
    })
}

fn one(answer: &Value) -> Response<Body> {
    typed("application/json", Either::Left(answer.to_string().into()))
}

fn events(body: Body) -> Response<Body> {
    typed("text/event-stream", body)
}

fn typed(media_type: &'static str, body: Body) -> Response<Body> {
    let response = Response::builder().header("content-type", media_type);
    response.body(body).expect("the headers are valid")
}

fn status(code: u16, text: &'static str) -> Response<Body> {
    let response = Response::builder().status(code);
    response.body(Either::Left(text.into())).expect("the status is valid")
}
