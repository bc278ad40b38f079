//! `mcp-server`: what a bridge tells of its MCP server, and asks for it that no other plugin can ask.

use serde_json::Value;
use std::sync::Arc;
use tenon_types::text::cut;
use tenon_types::{Error, Root};
use wasmtime::component::{Accessor, Linker};

use super::granted::{GrantedCapabilities, apart, not_offered};
use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext,
};
use super::served_calls::AskContext;
use crate::call::PauseGuard;
use crate::call::mask::Unmasked;
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{mcp_server, types};
use crate::capability::server::Supervisor;
use crate::capability::services::{ClientFeature, Offers};

pub(crate) struct McpServerCapability;

/// The server of a bridge.
pub(crate) struct BridgedServer {
    server: Option<Arc<Supervisor>>,
    /// What the bridge said last that the server offers.
    pub(super) offer: Option<ServerOffer>,
}

/// What a server offers besides tools.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerOffer {
    pub(crate) resources: bool,
    pub(crate) prompts: bool,
}

impl HostCapability for McpServerCapability {
    const NAME: &'static str = "mcp-server";
    type Plugin = Option<Arc<Supervisor>>;
    type Instance = BridgedServer;

    fn prepare(preparation: &PrepareContext<'_>) -> Self::Plugin {
        preparation.server.clone()
    }

    fn instantiate(server: &Self::Plugin) -> Self::Instance {
        BridgedServer { server: server.clone(), offer: None }
    }

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        mcp_server::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }
}

/// The longest name of a revision that is kept, in bytes.
const MAX_REVISION_LENGTH: usize = 64;

/// The longest word about something that is left out, in bytes.
const MAX_PROBLEM_LENGTH: usize = 500;

impl mcp_server::Host for CapabilityView<'_, McpServerCapability> {
    fn connected(&mut self, revision: String) -> wasmtime::Result<()> {
        if let Some(server) = &self.state.server {
            let revision = self.calls.log().masked(Unmasked::new(revision));
            server.connected(revision.map(|revision| cut(&revision, MAX_REVISION_LENGTH).into()));
        }
        Ok(())
    }

    fn offers(&mut self, offer: mcp_server::Offer) -> wasmtime::Result<()> {
        self.state.offer = Some(ServerOffer {
            resources: offer.contains(mcp_server::Offer::RESOURCES),
            prompts: offer.contains(mcp_server::Offer::PROMPTS),
        });
        Ok(())
    }

    fn skipped(&mut self, lines: u64) -> wasmtime::Result<()> {
        if let Some(server) = &self.state.server {
            server.skipped(lines);
        }
        Ok(())
    }

    fn left_out(&mut self, problem: String) -> wasmtime::Result<()> {
        if let Some(server) = &self.state.server {
            let problem = self.calls.log().masked(Unmasked::new(problem));
            server.left_out(problem.map(|problem| cut(&problem, MAX_PROBLEM_LENGTH).into()));
        }
        Ok(())
    }

    fn client_features(&mut self) -> wasmtime::Result<mcp_server::ClientFeature> {
        use mcp_server::ClientFeature as Feature;
        let features = self.calls.features();
        let Offers { forms, pages, sampling, roots } = features.offers();
        let offered = [
            (forms, Feature::FORMS),
            (pages, Feature::PAGES),
            (sampling, Feature::SAMPLING),
            (roots, Feature::ROOTS),
        ];
        let offered = offered.into_iter().filter(|(is_offered, _)| *is_offered);
        Ok(offered.fold(Feature::empty(), |all, (_, feature)| all | feature))
    }
}

/// Asks the client of a call for its roots.
async fn roots(granted: Arc<GrantedCapabilities>, request: AskContext) -> Result<Vec<Root>, Error> {
    let features = request.features(&granted);
    if !features.offers().roots {
        return Err(not_offered(&*features, ClientFeature::Roots));
    }
    let _pause = PauseGuard::of(request.calls);
    features.roots(&request.requester).await
}

impl<T: 'static> mcp_server::HostWithStore<T> for HasView<McpServerCapability> {
    async fn list_roots(
        accessor: &Accessor<T, Self>,
    ) -> wasmtime::Result<Result<Vec<mcp_server::Root>, types::Error>> {
        let (span, asked) = accessor.with(|mut access| {
            let view = access.get();
            let asked = roots(view.calls.granted().clone(), view.calls.request());
            (view.calls.span(), asked)
        });
        let roots = apart(span, asked).await.map(|roots| {
            let root = |Root { uri, name, extra }| {
                let extra = (!extra.is_empty()).then(|| Value::Object(extra).to_string());
                mcp_server::Root { uri, name, extra }
            };
            roots.into_iter().map(root).collect::<Vec<_>>()
        });
        Ok(roots.map_err(Convert::convert))
    }
}
