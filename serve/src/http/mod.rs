//! Clients over Streamable HTTP. One endpoint speaks both eras.
//!
//! TLS is for a proxy in front of it.

mod answer;
mod body;
mod event_log;
mod guard;
mod issuer;
mod legacy;
mod mcp;
mod memory_budget;
mod metrics;
mod modern_headers;
mod protected_resource;
mod token;

use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tenon_repoll::Repolled;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;

use crate::offer::Peer;
use crate::offer::Profile;
use crate::server::{Inner, Server, closed};
use answer::{AnswerBody, Refused, empty, text};
use guard::Guard;
pub use issuer::{DocumentFetcher, IssuerSettings, TokenIssuer};
use legacy::Sessions;
use memory_budget::ClientMemoryBudget;
pub use metrics::MetricsSource;
use token::Access;
pub use token::{HttpTokenDigest, TokenGrant, TokenStore};

/// How HTTP is served. The default is for clients on this machine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpSettings {
    /// The tokens that clients send as `Authorization: Bearer …`. Without them and without an issuer everybody may use
    /// the server.
    pub tokens: Option<Arc<dyn TokenStore>>,
    /// Who issues JSON Web Tokens that clients may send in their place.
    pub issuer: Option<Arc<TokenIssuer>>,
    /// What `/metrics` shows; without it there is no such page.
    pub metrics: Option<Arc<dyn MetricsSource>>,
    /// Names of this server beside those of loopback, as clients write them in `Host` and `PluginOrigin`: `host` or
    /// `host:port`.
    pub hosts: Vec<String>,
    /// The most connections at a time.
    pub max_connections: usize,
    /// The most bytes that the messages of one client take which are being read or are not answered. One message may be as long
    /// as [`Settings::max_message`](crate::Settings::max_message) all the same.
    pub max_client_bytes: usize,
    /// The most legacy sessions at a time.
    pub max_sessions: usize,
    /// How long a legacy session may be idle.
    pub session_idle: Duration,
    /// How long the headers of a request, and its body, may take to arrive, and how long a client may read nothing of what
    /// it is sent.
    pub read_time: Duration,
    /// How long a legacy call streams before its client has to ask for the rest, so that no proxy cuts it.
    pub stream_time: Duration,
    /// How often a comment keeps a silent stream open.
    pub keep_alive: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            tokens: None,
            issuer: None,
            metrics: None,
            hosts: Vec::new(),
            max_connections: 1024,
            max_client_bytes: 64 << 20,
            max_sessions: 1000,
            session_idle: Duration::from_secs(30 * 60),
            read_time: Duration::from_secs(30),
            stream_time: Duration::from_secs(5 * 60),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// The largest set of headers, in bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// What all connections share.
pub(crate) struct Shared {
    server: Arc<Inner>,
    settings: HttpSettings,
    guard: Guard,
    sessions: Arc<Sessions>,
    memory: Arc<ClientMemoryBudget>,
    /// Room for connections.
    room: Arc<Semaphore>,
    closing: watch::Receiver<bool>,
}

impl Server {
    /// Serves clients over HTTP, at `/mcp` and for a profile at `/mcp/p/PROFILE`, until `stop` is done. Requests in
    /// flight then have the time of [`Settings::drain`](crate::Settings::drain).
    ///
    /// ```no_run
    /// # async fn example(server: tenon_serve::Server) -> std::io::Result<()> {
    /// use tenon_serve::HttpSettings;
    /// use tokio::net::TcpListener;
    ///
    /// let listener = TcpListener::bind("127.0.0.1:7331").await?;
    /// server.serve_http(listener, HttpSettings::default(), std::future::pending()).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the listener has no address, or fails for good.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        settings: HttpSettings,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let address = listener.local_addr()?;
        metrics::describe();
        let (close, closing) = watch::channel(false);
        let room = Arc::new(Semaphore::new(settings.max_connections));
        let shared = Arc::new(Shared {
            guard: Guard::new(&settings, address),
            sessions: Sessions::new(settings.max_sessions, settings.session_idle),
            memory: ClientMemoryBudget::new(
                settings.max_client_bytes.max(self.0.settings.max_message),
            ),
            room: room.clone(),
            server: self.0.clone(),
            settings,
            closing,
        });
        let mut connections = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
                () = &mut stop => break,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                // A client that is gone already, or too many open files: others may come.
                Err(error) => {
                    tracing::warn!("a connection is not accepted: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Ok(place) = room.clone().try_acquire_owned() else {
                tracing::warn!(
                    "a connection is refused: there are {} already",
                    shared.settings.max_connections
                );
                continue;
            };
            let _ = stream.set_nodelay(true);
            let mut stream = Box::pin(TimeoutStream::new(stream));
            stream.as_mut().set_write_timeout_pinned(Some(shared.settings.read_time));
            let shared = shared.clone();
            connections.spawn(Repolled::new(async move {
                let _place = place;
                serve_connection(shared, TokioIo::new(stream)).await;
            }));
        }
        drop(listener);
        close.send_replace(true);
        shared.sessions.close_questions();
        let all = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(self.0.settings.drain, all).await.is_err() {
            tracing::warn!("{} connections were given up", connections.len());
        }
        connections.shutdown().await;
        shared.sessions.end_all(&shared.server).await;
        self.0.parked.end().await;
        Ok(())
    }
}

/// A connection. A client that reads nothing loses it after a while.
type ClientStream = TokioIo<Pin<Box<TimeoutStream<TcpStream>>>>;

async fn serve_connection(shared: Arc<Shared>, stream: ClientStream) {
    let service = {
        let shared = shared.clone();
        service_fn(move |request| {
            let shared = shared.clone();
            async move {
                let response = respond(&shared, request).await;
                metrics::count(&shared, response.status());
                Ok::<_, Infallible>(response)
            }
        })
    };
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new());
    http.header_read_timeout(shared.settings.read_time);
    http.max_buf_size(MAX_HEADER_BYTES);
    let mut connection = std::pin::pin!(http.serve_connection(stream, service));
    let mut closing = shared.closing.clone();
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = closed(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!("a connection has ended: {error}");
    }
}

async fn respond(shared: &Arc<Shared>, request: Request<Incoming>) -> Response<AnswerBody> {
    respond_or_refuse(shared, request).await.unwrap_or_else(|refused| *refused)
}

async fn respond_or_refuse(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Refused> {
    let (path, headers) = (request.uri().path(), request.headers());
    let (guard, is_get) = (&shared.guard, request.method() == Method::GET);
    match path {
        "/healthz" => return Ok(text(StatusCode::OK, "ok\n")),
        "/readyz" => {
            return Ok(match *shared.closing.borrow() {
                false => text(StatusCode::OK, "ready\n"),
                true => text(StatusCode::SERVICE_UNAVAILABLE, "ending\n"),
            });
        }
        _ => {}
    }
    let issuer = guard.issuer();
    if let Some(issuer) = issuer.filter(|_| protected_resource::is_metadata(path, issuer)) {
        // Who has no token yet learns here where to get one.
        guard.check_names(headers)?;
        return match is_get {
            true => Ok(protected_resource::metadata(issuer)),
            false => Ok(not_allowed("GET")),
        };
    }
    let profile = match path {
        "/mcp" | "/metrics" => None,
        path => Some(
            path.strip_prefix("/mcp/p/")
                .ok_or_else(|| text(StatusCode::NOT_FOUND, "not found; MCP is served at /mcp\n"))?,
        ),
    };
    guard.check_names(headers)?;
    let access = guard.check_token(headers).await?;
    let is_known = access.is_some();
    let Access { principal, grant } = access.unwrap_or_else(|| Access {
        principal: guard::unchecked_principal(headers),
        grant: TokenGrant::default(),
    });
    if path == "/metrics" {
        return match is_get {
            true => metrics::get(shared, &grant),
            false => Ok(not_allowed("GET")),
        };
    }
    let profile = profile_for(shared, profile, &grant)?;
    let peer = Peer { principal, is_known, name: grant.principal.map(Into::into), profile };
    Ok(match *request.method() {
        Method::POST => mcp::post(shared, peer, request).await,
        Method::GET => legacy::get(shared, &peer, request.headers()),
        Method::DELETE => legacy::delete(shared, &peer, request.headers()).await,
        _ => not_allowed("GET, POST, DELETE"),
    })
}

/// There is no such method, but these.
fn not_allowed(methods: &'static str) -> Response<AnswerBody> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(hyper::header::ALLOW, HeaderValue::from_static(methods));
    response
}

/// What a request is offered that is sent to the address of a profile, or to that of none.
fn profile_for(
    shared: &Shared,
    named: Option<&str>,
    grant: &TokenGrant,
) -> Result<Arc<Profile>, Refused> {
    let of_token = grant.profile.as_deref();
    if let (Some(named), Some(own)) = (named, of_token)
        && named != own
    {
        let problem = format!("the token is good for the profile {own:?} only\n");
        return Err(text(StatusCode::FORBIDDEN, problem).into());
    }
    let name = named.or(of_token);
    let unknown = || {
        let problem = format!("there is no profile {:?}\n", name.unwrap_or_default());
        Refused::from(text(StatusCode::NOT_FOUND, problem))
    };
    let profile = shared.server.profile(name).ok_or_else(unknown)?;
    Ok(match &grant.tools {
        None => profile,
        Some(tools) => shared.server.narrowed(&profile, tools),
    })
}
