//! `inference`: language models, through the providers of the host. Values are models, by their ids
//! or as `plugin/id`.

use tenon_config::grant::PROVIDERS;
use tenon_types::{Completion, CompletionRequest, Error};
use wasmtime::component::{Accessor, Linker};

use super::granted::{GrantedCapabilities, apart, as_contract, deeper};
use super::lifecycle::{Holds, HostCapability, InView, Preparation, View};
use crate::call::Caller;
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{inference, model, types};

/// Completes a request. `caller` is on whose behalf the plugin itself was called.
pub(crate) async fn complete(
    granted: &GrantedCapabilities,
    caller: Caller,
    request: CompletionRequest,
) -> Result<Completion, Error> {
    let model = &request.model;
    granted.require(PROVIDERS, model, &format!("asking the model {model}"))?;
    let caller = deeper(granted, caller)?;
    granted.host_services.platform_api()?.complete(request, &caller).await.map_err(as_contract)
}

pub(crate) struct InferenceCapability;

impl HostCapability for InferenceCapability {
    const NAME: &'static str = PROVIDERS;
    type Plugin = ();
    type Instance = ();

    fn prepare(_: &Preparation<'_>) {}

    fn instantiate((): &()) {}

    fn link<T: Holds<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        inference::add_to_linker::<_, InView<Self>>(linker, T::view)
    }
}

impl inference::Host for View<'_, InferenceCapability> {}

impl<T: 'static> inference::HostWithStore<T> for InView<InferenceCapability> {
    async fn complete(
        accessor: &Accessor<T, Self>,
        request: model::CompletionRequest,
    ) -> wasmtime::Result<Result<model::Completion, types::Error>> {
        let request = request.convert();
        let (granted, caller) = accessor.with(|mut access| access.get().calls.access_and_caller());
        Ok(apart(async move { complete(&granted, caller, request).await }).await.convert())
    }
}
