//! `inference`: language models, through the providers of the host. Values are models, by their ids
//! or as `plugin/id`.

use wasmtime::component::{Accessor, Linker};

use super::Host;
use super::lent::{Lent, apart, as_contract, deeper};
use crate::bindings::inference;
use crate::bindings::model::{Completion, CompletionRequest};
use crate::bindings::types::Error;
use crate::invoke::Caller;
use crate::runtime::wasm::HostState;

/// The name in manifests.
pub(super) const NAME: &str = "providers";

/// Completes a request. `caller` is on whose behalf the plugin itself was called.
pub(crate) async fn complete(
    lent: &Lent,
    caller: Caller,
    request: CompletionRequest,
) -> Result<Completion, Error> {
    let model = &request.model;
    lent.require(NAME, model, &format!("asking the model {model}"))?;
    let caller = deeper(lent, caller)?;
    lent.reach.hub()?.complete(request, &caller).await.map_err(as_contract)
}

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    inference::add_to_linker::<_, Host>(linker, |state| state)
}

impl inference::Host for HostState {}

impl<T> inference::HostWithStore<T> for Host {
    async fn complete(
        accessor: &Accessor<T, Self>,
        request: CompletionRequest,
    ) -> wasmtime::Result<Result<Completion, Error>> {
        let (lent, caller) = accessor.with(|mut access| access.get().turned_to());
        Ok(apart(async move { complete(&lent, caller, request).await }).await)
    }
}
