//! `network`: HTTP and HTTPS to the URLs that a plugin was granted, as `wasi:http` in the editions
//! 0.2 and 0.3, and as `http_get` in scripts. Values are URL patterns; see [`tenon_config::grant`].
//!
//! All three go through [`client`], which checks each request for itself. There are no sockets.

mod authorization;
mod body;
mod client;
mod error;
mod grants;
mod intercepted;
#[cfg(unix)]
mod proxy_server;
mod script_get;
#[cfg(test)]
mod tests;
mod traffic;

use http::{Request, Response};
use std::sync::Arc;
use std::time::Duration;
use tenon_config::discover::PluginKind;
use tenon_config::grant::NETWORK;
use tenon_config::limits::Limits;
use tracing::{Instrument, Span};
use wasmtime::component::Linker;
use wasmtime_wasi_http::p2::bindings as p2;
use wasmtime_wasi_http::p3::bindings as p3;
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttp, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks,
};

pub(crate) use authorization::ServerAuthorization;
pub(crate) use client::{Network, OnReach};
pub(crate) use grants::NetworkGrants;
#[cfg(any(test, fuzzing))]
pub(crate) use grants::fuzz::url_pattern;
#[cfg(unix)]
pub(crate) use proxy_server::serve_proxy;
pub(crate) use script_get::{GetResponse, get};
pub use traffic::NetworkTraffic;
pub(crate) use traffic::{ServerTraffic, describe};

use super::host_capability::{
    CapabilityContext, CapabilityView, HasCapability, HostCapability, PrepareContext,
};
use super::served_calls::RefusalReporter;
use client::{RefusalMessages, SendError};

/// The most bytes of the headers of a request or a response.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// What `wasi:http` counts for headers, which is more than they are on the wire.
const MAX_FIELD_BYTES: usize = 2 * MAX_HEADER_BYTES;

/// How long a stream of a server elsewhere may last before it is asked for again.
const MAX_STREAM_TIME: Duration = Duration::from_secs(3600);

pub(crate) struct NetworkCapability;

impl HostCapability for NetworkCapability {
    const NAME: &'static str = NETWORK;
    /// The network, if anything of it was granted.
    type Plugin = Option<Arc<Network>>;
    type Instance = Http;

    fn prepare(preparation: &PrepareContext<'_>) -> Self::Plugin {
        let grants = NetworkGrants::of(preparation.grants)?;
        let limits = match preparation.context.kind {
            // Of a server elsewhere the bridge keeps the time, and a stream is no call.
            PluginKind::Mcp => Limits { wall: MAX_STREAM_TIME, ..preparation.limits.clone() },
            _ => preparation.limits.clone(),
        };
        let CapabilityContext { id, granted, .. } = preparation.context;
        let services = &granted.host_services;
        let backend = services.services.network.clone();
        let network = Network::new(id.clone(), Arc::new(grants), backend, limits);
        let authorization = preparation.remote.map(|server| {
            let tokens = services.services.access_tokens.clone();
            ServerAuthorization::new(server.clone(), tokens, services.secrets.clone())
        });
        let interceptor = match preparation.context.kind {
            // Its responses are streams, which do not end.
            PluginKind::Mcp => None,
            _ => services.services.interceptor.clone(),
        };
        Some(Arc::new(network.authorized(authorization).intercepted_by(interceptor)))
    }

    fn instantiate(network: &Self::Plugin) -> Self::Instance {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(MAX_FIELD_BYTES);
        Http { context, hooks: Hooks { network: network.clone(), refuse: None } }
    }

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        p2::http::outgoing_handler::add_to_linker::<_, WasiHttp>(linker, http_of)?;
        let options = p2::LinkOptions::default();
        p2::http::types::add_to_linker::<_, WasiHttp>(linker, &(&options).into(), http_of)?;
        p3::http::client::add_to_linker::<_, WasiHttp>(linker, http_of)?;
        p3::http::types::add_to_linker::<_, WasiHttp>(linker, http_of)
    }
}

/// What an instance has of HTTP.
pub(crate) struct Http {
    context: WasiHttpCtx,
    hooks: Hooks,
}

struct Hooks {
    network: Option<Arc<Network>>,
    /// Where refusals go, in the span of the call that is being served.
    refuse: Option<RefusalReporter>,
}

type Sending<T> = Box<dyn Future<Output = Result<T, Error>> + Send>;

/// What wasmtime-wasi-http sees of a store.
fn http_of<T: HasCapability<NetworkCapability>>(store: &mut T) -> WasiHttpCtxView<'_> {
    let CapabilityView { state, table, calls } = store.view();
    state.hooks.refuse = Some(calls.refusals());
    WasiHttpCtxView { ctx: &mut state.context, table, hooks: &mut state.hooks }
}

impl WasiHttpHooks for Hooks {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Sending<()>,
    ) -> Sending<(Response<WasiBody>, Sending<()>)> {
        let (network, refuse) = (self.network.clone(), self.refuse.clone());
        let span = refuse.as_ref().map_or_else(Span::none, RefusalReporter::span);
        let sending = async move {
            let network = network.ok_or(Error::HttpRequestDenied)?;
            let sent = network.send(request, options.unwrap_or_default()).await;
            let (response, driver) = sent.map_err(|unsent| match unsent {
                SendError::Refused(RefusalMessages { said, logged }) => {
                    if let Some(refuse) = refuse {
                        refuse.say_and_log(said, &logged);
                    }
                    Error::HttpRequestDenied
                }
                SendError::Failed(error) => error,
            })?;
            let driver: Sending<()> = Box::new(async {
                driver.await;
                Ok(())
            });
            Ok((response, driver))
        };
        Box::new(sending.instrument(span))
    }
}
