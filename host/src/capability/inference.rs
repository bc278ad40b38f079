//! `providers`: language models, through the providers of the host. Values are models, by their ids
//! or as `plugin/id`. The model `default` is the one that the host chooses.

use futures::FutureExt;
use tenon_config::grant::PROVIDERS;
use tenon_types::{Completion, CompletionRequest, Error};
use wasmtime::component::{Accessor, Linker};

use super::granted::{GrantedCapabilities, apart, as_contract, deeper, not_offered};
use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext, link_blocking,
    sync_interface,
};
use super::served_calls::AskContext;
use crate::call::mask::Unmasked;
use crate::call::{Caller, PauseGuard};
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{inference, model, types};
use crate::capability::services::ClientFeature;

/// The model that the host chooses.
pub(crate) const DEFAULT_MODEL: &str = "default";

/// Completes a request, if its model was granted. `caller` is on whose behalf the plugin itself was called.
pub(crate) async fn complete(
    granted: &GrantedCapabilities,
    caller: Caller,
    asks: AskContext,
    request: CompletionRequest,
) -> Result<Completion, Error> {
    let model = &request.model;
    granted.require(PROVIDERS, model, &format!("asking the model {model}"))?;
    let Some(interceptor) = &granted.host_services.services.interceptor else {
        return answered(granted, caller, asks, request).await;
    };
    let seen = request.clone();
    interceptor.complete(&seen, Box::pin(answered(granted, caller, asks, request))).await
}

/// Has a model answer.
async fn answered(
    granted: &GrantedCapabilities,
    caller: Caller,
    asks: AskContext,
    request: CompletionRequest,
) -> Result<Completion, Error> {
    if request.model == DEFAULT_MODEL {
        return complete_by_default(granted, asks, request).await;
    }
    let caller = deeper(granted, caller)?;
    granted.host_services.other_plugins()?.complete(request, &caller).await.map_err(as_contract)
}

/// Completes a request with the model that the host chooses.
async fn complete_by_default(
    granted: &GrantedCapabilities,
    asks: AskContext,
    request: CompletionRequest,
) -> Result<Completion, Error> {
    let features = asks.features(granted);
    if !features.offers().sampling {
        return Err(not_offered(&*features, ClientFeature::Sampling));
    }
    let request = granted.masked(Unmasked::new(request)).into_inner();
    let _pause = PauseGuard::of(asks.calls);
    features.complete(&asks.requester, request).await
}

pub(crate) struct InferenceCapability;

impl HostCapability for InferenceCapability {
    const NAME: &'static str = PROVIDERS;
    type Plugin = ();
    type Instance = ();

    fn prepare(_: &PrepareContext<'_>) {}

    fn instantiate((): &()) {}

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        inference::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }

    fn link_sync<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        let mut instance = linker.instance(&sync_interface("inference"))?;
        link_blocking(&mut instance, "complete", begin_completion)
    }
}

fn begin_completion(
    CapabilityView { calls, .. }: CapabilityView<'_, InferenceCapability>,
    (request,): (model::CompletionRequest,),
) -> impl Future<Output = Result<model::Completion, types::Error>> + use<> {
    let (granted, caller) = calls.access_and_caller();
    // A server may ask the default model and no other.
    let (is_bridge, asks, span) = (calls.is_bridge(), calls.request(), calls.span());
    let completed = apart(span, async move {
        let request: CompletionRequest = request.convert();
        match is_bridge && request.model == DEFAULT_MODEL {
            true => complete_by_default(&granted, asks, request).await,
            false => complete(&granted, caller, asks, request).await,
        }
    });
    completed.map(Convert::convert)
}

impl inference::Host for CapabilityView<'_, InferenceCapability> {}

impl<T: 'static> inference::HostWithStore<T> for HasView<InferenceCapability> {
    async fn complete(
        accessor: &Accessor<T, Self>,
        request: model::CompletionRequest,
    ) -> wasmtime::Result<Result<model::Completion, types::Error>> {
        Ok(accessor.with(|mut access| begin_completion(access.get(), (request,))).await)
    }
}
