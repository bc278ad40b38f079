//! `services`: what the host itself does for plugins, behind [`crate::services`]. Values are
//! `send-message`, or `send-message:CHANNEL` for one channel alone, and `search-memory`.

use serde_json::{Map, Value};
use tenon_config::grant::SERVICES;
use tenon_types::{Error, HookPoint, Memory, OutgoingMessage};
use wasmtime::component::{Accessor, Linker};

use super::granted::{GrantedCapabilities, apart, as_contract, deeper};
use super::lifecycle::{Holds, HostCapability, InView, Preparation, View};
use crate::call::mask::{Masked, Unmasked};
use crate::call::{CallError, Caller, HookOutcome};
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{services, types};

/// The most memories that are found at a time.
const MAX_MEMORIES: u32 = 100;

/// Sends a message, unless a hook stops it. Handlers of `message-sending` may change its text; where it
/// goes stays. `caller` is on whose behalf the plugin itself was called.
pub(crate) async fn send_message(
    granted: &GrantedCapabilities,
    caller: Caller,
    message: Unmasked<OutgoingMessage>,
) -> Result<(), Error> {
    let message = granted.masked_message(message);
    let allows_one =
        |channel: &String| granted.grants().allow(SERVICES, &format!("send-message:{channel}"));
    if !message.channel.as_ref().is_some_and(allows_one) {
        granted.require(SERVICES, "send-message", "sending a message")?;
    }
    let message = hooked(granted, caller, message).await?;
    granted.host_services.services.messaging.send(granted.plugin(), message).await
}

/// The message as hooks have left it.
async fn hooked(
    granted: &GrantedCapabilities,
    caller: Caller,
    message: Masked<OutgoingMessage>,
) -> Result<OutgoingMessage, Error> {
    let (platform_api, caller) = (granted.host_services.platform_api()?, deeper(granted, caller)?);
    let OutgoingMessage { channel, text, extra } = message.into_inner();
    if !platform_api.is_handled(&HookPoint::MessageSending) {
        return Ok(OutgoingMessage { channel, text, extra });
    }
    let mut context = Map::new();
    context.insert("plugin".into(), granted.plugin().into());
    context.insert("message".into(), text.into());
    context.extend(channel.clone().map(|channel| ("channel".into(), channel.into())));
    let mut report = platform_api.fire(&HookPoint::MessageSending, context, &caller).await;
    match report.outcome {
        HookOutcome::Veto { plugin, reason } => {
            return Err(as_contract(CallError::Vetoed { plugin, reason }));
        }
        HookOutcome::Stopped { plugin, failure } => {
            return Err(as_contract(CallError::Failed { plugin, failure }));
        }
        HookOutcome::Continue => {}
    }
    match report.context["message"].take() {
        Value::String(text) => Ok(OutgoingMessage { channel, text, extra }),
        _ => Err(Error::Denied("a hook left nothing of the message".into())),
    }
}

/// Searches the host's memory.
pub(crate) async fn search_memory(
    granted: &GrantedCapabilities,
    query: Unmasked<String>,
    limit: u32,
) -> Result<Vec<Memory>, Error> {
    granted.require(SERVICES, "search-memory", "searching the memory")?;
    let limit = limit.min(MAX_MEMORIES);
    let query = granted.masked(query);
    let mut found =
        granted.host_services.services.memory.search(granted.plugin(), &query, limit).await?;
    found.truncate(limit as usize);
    Ok(found)
}

pub(crate) struct ServicesCapability;

impl HostCapability for ServicesCapability {
    const NAME: &'static str = SERVICES;
    type Plugin = ();
    type Instance = ();

    fn prepare(_: &Preparation<'_>) {}

    fn instantiate((): &()) {}

    fn link<T: Holds<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        services::add_to_linker::<_, InView<Self>>(linker, T::view)
    }
}

impl services::Host for View<'_, ServicesCapability> {}

impl<T: 'static> services::HostWithStore<T> for InView<ServicesCapability> {
    async fn send_message(
        accessor: &Accessor<T, Self>,
        message: services::OutgoingMessage,
    ) -> wasmtime::Result<Result<(), types::Error>> {
        let message = Unmasked::new(message.convert());
        let (granted, caller) = accessor.with(|mut access| access.get().calls.access_and_caller());
        Ok(apart(async move { send_message(&granted, caller, message).await }).await.convert())
    }

    async fn search_memory(
        accessor: &Accessor<T, Self>,
        query: String,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<services::Memory>, types::Error>> {
        let query = Unmasked::new(query);
        let granted = accessor.with(|mut access| access.get().calls.granted().clone());
        Ok(apart(async move { search_memory(&granted, query, limit).await }).await.convert())
    }
}
