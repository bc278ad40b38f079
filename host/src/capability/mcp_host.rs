//! `mcp-host`: what a bridge asks on behalf of its MCP server, and what it tells of it.

use serde_json::Value;
use tenon_types::Error;
use tenon_types::text::cut;
use wasmtime::component::{Accessor, Linker};

use super::Host;
use super::granted::apart;
use crate::call::PauseGuard;
use crate::call::mask::Unmasked;
use crate::capability::HostState;
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{mcp_host, types};
use crate::services::ServerRequest;

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    mcp_host::add_to_linker::<_, Host>(linker, |state| state)
}

/// The longest name of a revision that is kept, in bytes.
const MAX_REVISION_LENGTH: usize = 64;

/// The longest word about something that is left out, in bytes.
const MAX_PROBLEM_LENGTH: usize = 500;

impl mcp_host::Host for HostState {
    fn connected(&mut self, revision: String) -> wasmtime::Result<()> {
        if let Some(server) = &self.setting.server {
            let revision = self.setting.log.masked(Unmasked::new(revision));
            server.connected(revision.map(|revision| cut(&revision, MAX_REVISION_LENGTH).into()));
        }
        Ok(())
    }

    fn skipped(&mut self, lines: u64) -> wasmtime::Result<()> {
        if let Some(server) = &self.setting.server {
            server.skipped(lines);
        }
        Ok(())
    }

    fn left_out(&mut self, problem: String) -> wasmtime::Result<()> {
        if let Some(server) = &self.setting.server {
            let problem = self.setting.log.masked(Unmasked::new(problem));
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

impl<T> mcp_host::HostWithStore<T> for Host {
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

async fn ask<T>(
    accessor: &Accessor<T, Host>,
    kind: ServerRequestKind,
    params: &str,
    call_id: Option<String>,
) -> Result<String, Error> {
    let params: Value = serde_json::from_str(params)
        .map_err(|error| Error::InvalidInput(format!("the parameters are no JSON: {error}")))?;
    let params = Unmasked::new(params);
    let (plugin, granted, calls) = accessor.with(|mut access| {
        let state = access.get();
        let calls = state.served(call_id.as_deref());
        (state.setting.id.to_string(), state.setting.granted.clone(), calls)
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
