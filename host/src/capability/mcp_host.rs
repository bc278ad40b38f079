//! `mcp-host`: what a bridge asks on behalf of its MCP server, and what it tells of it.

use serde_json::Value;
use std::sync::Arc;
use tenon_types::Error;
use tenon_types::text::cut;
use wasmtime::component::{Accessor, Linker};

use super::granted::apart;
use super::lifecycle::{Holds, HostCapability, InView, Preparation, View};
use crate::call::PauseGuard;
use crate::call::mask::Unmasked;
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{mcp_host, types};
use crate::capability::server::Supervisor;
use crate::capability::services::ServerRequest;

pub(crate) struct McpHostCapability;

impl HostCapability for McpHostCapability {
    const NAME: &'static str = "mcp-host";
    type Plugin = Option<Arc<Supervisor>>;
    type Instance = Option<Arc<Supervisor>>;

    fn prepare(preparation: &Preparation<'_>) -> Self::Plugin {
        preparation.server.clone()
    }

    fn instantiate(server: &Self::Plugin) -> Self::Instance {
        server.clone()
    }

    fn link<T: Holds<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        mcp_host::add_to_linker::<_, InView<Self>>(linker, T::view)
    }
}

/// The longest name of a revision that is kept, in bytes.
const MAX_REVISION_LENGTH: usize = 64;

/// The longest word about something that is left out, in bytes.
const MAX_PROBLEM_LENGTH: usize = 500;

impl mcp_host::Host for View<'_, McpHostCapability> {
    fn connected(&mut self, revision: String) -> wasmtime::Result<()> {
        if let Some(server) = &*self.state {
            let revision = self.calls.log().masked(Unmasked::new(revision));
            server.connected(revision.map(|revision| cut(&revision, MAX_REVISION_LENGTH).into()));
        }
        Ok(())
    }

    fn skipped(&mut self, lines: u64) -> wasmtime::Result<()> {
        if let Some(server) = &*self.state {
            server.skipped(lines);
        }
        Ok(())
    }

    fn left_out(&mut self, problem: String) -> wasmtime::Result<()> {
        if let Some(server) = &*self.state {
            let problem = self.calls.log().masked(Unmasked::new(problem));
            server.left_out(problem.map(|problem| cut(&problem, MAX_PROBLEM_LENGTH).into()));
        }
        Ok(())
    }
}

/// What a server asks for.
#[derive(Clone, Copy)]
enum ServerRequestKind {
    Elicitation,
    Sampling,
}

impl<T: 'static> mcp_host::HostWithStore<T> for InView<McpHostCapability> {
    async fn elicit(
        accessor: &Accessor<T, Self>,
        params: String,
        call_id: Option<String>,
    ) -> wasmtime::Result<Result<String, types::Error>> {
        Ok(ask(accessor, ServerRequestKind::Elicitation, &params, call_id).await.convert())
    }

    async fn sample(
        accessor: &Accessor<T, Self>,
        params: String,
        call_id: Option<String>,
    ) -> wasmtime::Result<Result<String, types::Error>> {
        Ok(ask(accessor, ServerRequestKind::Sampling, &params, call_id).await.convert())
    }
}

async fn ask<T: 'static>(
    accessor: &Accessor<T, InView<McpHostCapability>>,
    kind: ServerRequestKind,
    params: &str,
    call_id: Option<String>,
) -> Result<String, Error> {
    let params: Value = serde_json::from_str(params)
        .map_err(|error| Error::InvalidInput(format!("the parameters are no JSON: {error}")))?;
    let params = Unmasked::new(params);
    let (plugin, granted, calls) = accessor.with(|mut access| {
        let View { calls, .. } = access.get();
        let meant = calls.meant(call_id.as_deref());
        (calls.plugin().to_string(), calls.granted().clone(), meant)
    });
    let _still = PauseGuard::of(calls);
    let call_id = granted.masked(Unmasked::new(call_id)).into_inner();
    let params = granted.masked(params).into_inner();
    let request = ServerRequest { server: plugin, call_id, params };
    let features = granted.features();
    let answered = apart(async move {
        match kind {
            ServerRequestKind::Elicitation => features.elicit(request).await,
            ServerRequestKind::Sampling => features.sample(request).await,
        }
    });
    answered.await.map(|answer| answer.to_string())
}
