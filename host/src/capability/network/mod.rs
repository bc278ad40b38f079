//! `network`: HTTP and HTTPS to the URLs that a plugin was granted, as `wasi:http` in the editions
//! 0.2 and 0.3, and as `http_get` in scripts. Values are URL patterns; see [`tenon_config::grant`].
//!
//! All three go through [`client`], which checks each request for itself. There are no sockets.

mod address;
mod body;
mod client;
mod error;
mod get;
mod grants;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use http::{Request, Response};
use tracing::{Instrument, Span};
use wasmtime::component::{Linker, ResourceTable};
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks,
};

pub(crate) use client::Network;
pub(crate) use get::{GetResponse, get};
pub(crate) use grants::NetworkGrants;
#[cfg(any(test, fuzzing))]
pub(crate) use grants::fuzz::url_pattern;

use crate::capability::{HostState, RefusalReporter};
use client::{Refusal, SendError};

/// The most bytes of the headers of a request or a response.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// What `wasi:http` counts for headers, which is more than they are on the wire.
const MAX_FIELD_BYTES: usize = 2 * MAX_HEADER_BYTES;

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    wasmtime_wasi_http::p3::add_to_linker(linker)
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

impl Http {
    pub(crate) fn new(network: Option<Arc<Network>>) -> Self {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(MAX_FIELD_BYTES);
        Self { context, hooks: Hooks { network, refuse: None } }
    }

    pub(crate) fn view<'a>(
        &'a mut self,
        table: &'a mut ResourceTable,
        refuse: RefusalReporter,
    ) -> WasiHttpCtxView<'a> {
        self.hooks.refuse = Some(refuse);
        WasiHttpCtxView { ctx: &mut self.context, table, hooks: &mut self.hooks }
    }
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
                SendError::Refused(Refusal { said, logged }) => {
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
