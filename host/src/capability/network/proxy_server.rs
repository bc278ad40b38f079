//! The network of a confined server: a proxy for HTTP/1.1 that takes its requests, as far as they are granted.
//!
//! A request in the clear is checked whole, and sent as a component's is. What goes to a server with TLS is a tunnel that
//! nobody opens: its host and its port are checked, and its paths and methods cannot be.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderName, TE, TRAILER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tenon_types::LogLevel;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, Error, RequestOptions, WasiBody};

use super::client::{Network, RefusalMessages, SendError};
use super::error;
use super::traffic::{CountedStream, ServerTraffic};
use crate::observe::PluginLog;

/// Headers that are for one connection, which components may send.
const OF_CONNECTION: [HeaderName; 2] = [TE, TRAILER];

/// The proxy of one server.
struct EgressProxy {
    network: Arc<Network>,
    log: Arc<PluginLog>,
    /// Ends what goes on beside a connection.
    ended: watch::Receiver<()>,
}

/// Takes connections until it is dropped, which ends them all.
pub(crate) async fn serve_proxy(
    listener: UnixListener,
    network: Arc<Network>,
    log: Arc<PluginLog>,
    traffic: Arc<ServerTraffic>,
) {
    let (_end, ended) = watch::channel(());
    let proxy = Arc::new(EgressProxy { network, log, ended });
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                drop(connections.spawn(serve(traffic.clone().counted(stream), proxy.clone())))
            }
            // There may be too many open files, and fewer in a moment.
            Err(_) => sleep(RETRY_DELAY).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// How long nothing is accepted after that failed.
const RETRY_DELAY: Duration = Duration::from_millis(100);

async fn serve(stream: CountedStream<UnixStream>, proxy: Arc<EgressProxy>) {
    let service = service_fn(move |request| {
        let proxy = proxy.clone();
        async move { Ok::<_, Infallible>(proxy.answer(request).await) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // Who breaks it off learns nothing more.
    let _ = connection.with_upgrades().await;
}

impl EgressProxy {
    async fn answer(&self, request: Request<Incoming>) -> Response<WasiBody> {
        let answered = match request.method() == Method::CONNECT {
            true => self.tunnel(request).await,
            false => self.send(request).await,
        };
        answered.unwrap_or_else(|error| match error {
            SendError::Refused(RefusalMessages { said, logged }) => {
                self.log.write(LogLevel::Warn, &logged, &[]);
                explain(StatusCode::FORBIDDEN, said)
            }
            SendError::Failed(error) => explain(StatusCode::BAD_GATEWAY, error.to_string()),
        })
    }

    /// Sends a request that names its whole URL.
    async fn send(&self, mut request: Request<Incoming>) -> Result<Response<WasiBody>, SendError> {
        let headers = request.headers_mut();
        let forbidden = DEFAULT_FORBIDDEN_HEADERS.into_iter().filter(|name| *name != HOST);
        for name in forbidden.chain(OF_CONNECTION) {
            headers.remove(name);
        }
        let request = request.map(|body| body.map_err(error::of_hyper).boxed_unsync());
        let (response, driver) = self.network.send(request, RequestOptions::default()).await?;
        let mut ended = self.ended.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = driver => {}
                _ = ended.changed() => {}
            }
        });
        Ok(response)
    }

    /// Leads to a host and a port, and what is said there is not looked at.
    async fn tunnel(&self, request: Request<Incoming>) -> Result<Response<WasiBody>, SendError> {
        let authority = request.uri().authority().ok_or(Error::HttpRequestUriInvalid)?.clone();
        let (mut stream, place) = self.network.tunnel(authority.as_str()).await?;
        let mut ended = self.ended.clone();
        tokio::spawn(async move {
            let _place = place;
            let copied = async {
                let upgraded = hyper::upgrade::on(request).await.map_err(io::Error::other)?;
                copy_bidirectional(&mut TokioIo::new(upgraded), &mut stream).await
            };
            tokio::select! {
                // However it ended: both sides know.
                _ = copied => {}
                _ = ended.changed() => {}
            }
        });
        Ok(Response::new(
            Full::default().map_err(|never: Infallible| match never {}).boxed_unsync(),
        ))
    }
}

/// An answer of the proxy's own.
fn explain(status: StatusCode, text: String) -> Response<WasiBody> {
    let body = Full::new(Bytes::from(text + "\n")).map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    response
}
