//! `mcp-server`: what a bridge tells of its MCP server.

use std::sync::Arc;
use tenon_types::text::cut;
use wasmtime::component::Linker;

use super::lifecycle::{Holds, HostCapability, InView, Preparation, View};
use crate::call::mask::Unmasked;
use crate::capability::bindings::mcp_server;
use crate::capability::server::Supervisor;

pub(crate) struct McpServerCapability;

/// The server of a bridge.
pub(crate) struct ServerState {
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
    type Instance = ServerState;

    fn prepare(preparation: &Preparation<'_>) -> Self::Plugin {
        preparation.server.clone()
    }

    fn instantiate(server: &Self::Plugin) -> Self::Instance {
        ServerState { server: server.clone(), offer: None }
    }

    fn link<T: Holds<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        mcp_server::add_to_linker::<_, InView<Self>>(linker, T::view)
    }
}

/// The longest name of a revision that is kept, in bytes.
const MAX_REVISION_LENGTH: usize = 64;

/// The longest word about something that is left out, in bytes.
const MAX_PROBLEM_LENGTH: usize = 500;

impl mcp_server::Host for View<'_, McpServerCapability> {
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
}
